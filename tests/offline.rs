//! What is built in, beside what it is made of.
//!
//! The built-in schemas say what Kubernetes' OpenAPI documents say; and over the corpus of real
//! policies, `kubectl vap check` gives the warnings that the type checker gives over the documents.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and says so where it cannot run"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::{Input, Wanted};
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::policy::rule::Rule;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver as _};
use vap_status_controller::schema::{Builtin, DeclKind, DeclType, GroupVersion, Gvk, RestMapper};
use vap_status_controller::status::warnings::warnings;

#[test]
fn warnings_are_those_of_the_type_checker() {
    let (Some(corpus), Some(openapi)) = (support::corpus_dir(), support::openapi_dir()) else {
        return;
    };
    let policies = vec![corpus.join("policies")];
    let crds = vec![corpus.join("crds")];
    let mut offline = Offline::default();
    for (name, bytes) in support::documents(&openapi) {
        let own = GroupVersion::from_openapi_file_name(&name);
        offline.add_document(own.as_ref(), &bytes).unwrap();
    }
    for crd in Input::load(&crds, Wanted::Crds, &mut std::io::empty()).crds {
        offline.add_crd(&crd.value);
    }
    let input = Input::load(&policies, Wanted::Policies, &mut std::io::empty());
    for crd in &input.crds {
        offline.add_crd(&crd.value);
    }
    let (schemas, mapper) = offline.finish();

    for profile in [Profile::Truthful, Profile::Upstream] {
        let options = Options {
            paths: policies.clone(),
            crds: crds.clone(),
            profile,
            version: None,
        };
        let report = check::run(&options, &mut std::io::empty()).unwrap();
        assert_eq!(report.policies.len(), input.policies.len());
        assert!(input.policies.len() > 400, "{}", input.policies.len());
        for (ours, policy) in report.policies.iter().zip(&input.policies) {
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
            // Each warning is a finding with a place.
            for (field_ref, _) in theirs {
                let is_found = report.findings.iter().any(|found| {
                    found.location.file == ours.file && found.field_ref.as_ref() == Some(&field_ref)
                });
                assert!(is_found, "{field_ref} of {} in {}", ours.name, ours.file);
            }
        }
        for found in &report.findings {
            assert_ne!(found.rule, Rule::BrokenCheck, "{}", found.location.file);
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

#[test]
fn the_built_in_schemas_say_what_the_documents_say() {
    let Some(directory) = support::openapi_dir() else {
        return;
    };
    let mut offline = Offline::default();
    for (name, bytes) in support::documents(&directory) {
        let own = GroupVersion::from_openapi_file_name(&name);
        offline.add_document(own.as_ref(), &bytes).unwrap();
    }
    let (schemas, mapper) = offline.finish();
    let builtin = Builtin::load().unwrap();

    assert_eq!(RestMapper::new(builtin.resources().to_vec()), mapper);
    assert!(mapper.resources.len() >= 150, "{}", mapper.resources.len());

    let kinds: BTreeSet<&Gvk> = schemas.kinds().collect();
    assert_eq!(builtin.kinds().collect::<BTreeSet<_>>(), kinds);
    assert!(kinds.len() > 200, "{}", kinds.len());
    for gvk in kinds {
        match (schemas.resolve(gvk), builtin.resolve(gvk)) {
            (Resolution::Found(theirs), Resolution::Found(ours)) => {
                assert!(
                    is_same(&theirs, &ours, &mut BTreeSet::new()),
                    "{gvk} differs"
                );
            }
            (theirs, ours) => panic!("{gvk}: {theirs:?} and {ours:?}"),
        }
    }
}

type Pair = (*const DeclType, *const DeclType);

/// Whether two types say the same; `known` are the pairs that do.
fn is_same(a: &Arc<DeclType>, b: &Arc<DeclType>, known: &mut BTreeSet<Pair>) -> bool {
    let pair = (Arc::as_ptr(a), Arc::as_ptr(b));
    if known.contains(&pair) {
        return true;
    }
    let same_kind = match (&a.kind, &b.kind) {
        (DeclKind::List(a), DeclKind::List(b)) | (DeclKind::Map(a), DeclKind::Map(b)) => {
            is_same(a, b, known)
        }
        (DeclKind::Object(a), DeclKind::Object(b)) => {
            a.is_open == b.is_open
                && a.name == b.name
                && a.fields().len() == b.fields().len()
                && a.fields().iter().zip(b.fields()).all(|(a, b)| {
                    a.name == b.name
                        && a.required == b.required
                        && is_same(&a.type_, &b.type_, known)
                })
        }
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    let same = same_kind
        && a.max_elements == b.max_elements
        && a.min_serialized_size == b.min_serialized_size
        && a.nullable == b.nullable
        && a.has_default == b.has_default
        && a.embedded_resource == b.embedded_resource
        && a.enum_values == b.enum_values;
    if same {
        known.insert(pair);
    }
    same
}
