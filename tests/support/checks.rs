//! Compares the warnings of `kubectl vap check` with those of the type checker.

use std::path::PathBuf;

use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::{Input, KindFilter};
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::policy::rule::Rule;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use vap_status_controller::schema::{GroupVersion, Gvk, connect_options};
use vap_status_controller::status::warnings::warnings;
use vap_status_controller::version::KubernetesVersion;

use crate::support;

/// The schemas of the OpenAPI documents, and the schemas of the options of CONNECT requests. No document contains the
/// latter.
struct WithConnectOptions(SchemaSet);

impl SchemaResolver for WithConnectOptions {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        match self.0.resolve(gvk) {
            Resolution::NotFound => connect_options::resolve(gvk),
            resolution => resolution,
        }
    }
}

/// Asserts that `kubectl vap check` and the type checker report the same warnings for the files `policies`, in both
/// profiles. At least `at_least` policies must be compared.
pub(crate) fn warnings_match_the_type_checker(
    policies: &[PathBuf],
    crds: &[PathBuf],
    at_least: usize,
) {
    let openapi = support::openapi_dir();
    let mut offline = Offline::default();
    for (name, bytes) in support::documents(&openapi) {
        let own = GroupVersion::from_openapi_file_name(&name);
        offline.add_document(own.as_ref(), &bytes).unwrap();
    }
    for crd in Input::load(crds, KindFilter::Crds, &mut std::io::empty()).crds {
        offline.add_crd(&crd.value);
    }
    let input = Input::load(policies, KindFilter::Policies, &mut std::io::empty());
    for crd in &input.crds {
        offline.add_crd(&crd.value);
    }
    let (schemas, mapper) = offline.finish();
    let schemas = WithConnectOptions(schemas);

    for profile in [Profile::Truthful, Profile::Upstream] {
        let options = Options {
            paths: policies.to_vec(),
            crds: crds.to_vec(),
            profile,
            // The version of the OpenAPI documents.
            version: Some(KubernetesVersion::DEFAULT),
            ..Options::default()
        };
        let report = check::run(&options, &mut std::io::empty()).unwrap();
        // Skips mutating policies. Their kind has no status and thus no expressionWarnings.
        let validating = report.policies.iter();
        let validating = validating.filter(|policy| policy.kind.is_none());
        let validating: Vec<_> = validating.collect();
        assert_eq!(validating.len(), input.policies.len());
        assert!(input.policies.len() >= at_least, "{}", input.policies.len());
        for (ours, policy) in validating.into_iter().zip(&input.policies) {
            let compiled = CompiledPolicy::new(&policy.value);
            let theirs = type_check(&compiled, &mapper, &schemas, profile);
            let theirs: Vec<_> = warnings(&theirs.findings)
                .into_iter()
                .map(|warning| (warning.field_ref.clone(), warning.text()))
                .collect();
            let ours_: Vec<_> = ours
                .expression_warnings
                .iter()
                .map(|warning| (warning.field_ref.clone(), warning.warning.clone()))
                .collect();
            assert_eq!(ours_, theirs, "{} in {}", ours.name, ours.file);
            // Each warning of the type checker must be a finding with a location.
            for (field_ref, _) in theirs {
                let is_found = report.findings.iter().any(|found| {
                    let others = found.also.iter().map(|other| &other.field_ref);
                    let mut fields = std::iter::once(&found.field_ref).chain(others);
                    found.location.file == ours.file
                        && fields.any(|it| it.as_ref() == Some(&field_ref))
                });
                assert!(is_found, "{field_ref} of {} in {}", ours.name, ours.file);
            }
        }
        for found in &report.findings {
            assert_ne!(found.rule, Rule::CheckFailed, "{}", found.location.file);
            let (Some(place), Some(source)) = (found.location.place, &found.location.source) else {
                panic!("no place: {found:?}")
            };
            let n_columns = source.line(place.line).chars().count();
            assert!(
                place.column + found.location.length <= n_columns + 2,
                "beyond the line: {found:?}"
            );
        }
    }
}
