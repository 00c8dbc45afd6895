//! `kubectl vap check`: checks policies in files or in a cluster.
//!
//! Compiles and type-checks policies as the controller does. The APIs are those of the input's CRDs, and either the
//! built-in APIs or the APIs of a cluster.

mod advice;
pub mod annotations;
pub(super) mod api_version;
mod assumptions;
pub mod baseline;
mod binding_rules;
mod broken;
mod cascade;
pub mod changes;
#[cfg(not(target_family = "wasm"))]
pub(super) mod command;
mod comment;
pub mod config;
pub mod config_schema;
mod containers;
mod corrections;
pub mod costs;
pub(in crate::cli) mod crd;
mod crd_copies;
mod expressions;
mod field_versions;
mod file_names;
pub mod finding;
pub(in crate::cli) mod fingerprint;
pub mod fix;
mod fixes;
mod glob;
mod kinds;
pub mod known;
pub mod levels;
mod lint;
mod lockout;
pub(super) mod manifests;
mod missing_params;
mod names;
mod other_languages;
mod param_kind;
mod param_objects;
mod partial;
pub mod policy;
pub mod render;
pub mod report;
mod resources;
mod rewrite;
mod rule_scope;
mod runtime_errors;
pub mod settings;
pub mod shape;
mod skipped_values;
pub(super) mod suggestion;
mod suppression;
mod time_limit;
mod tokens;
mod types;
pub mod validation;
mod version_range;
pub mod versions;
#[cfg(not(target_family = "wasm"))]
pub(in crate::cli) mod watch;
pub(in crate::cli) mod webhook;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use serde_json::Value;

use crate::policy::analysis::Profile;
use crate::schema::{Crd, SchemaError};
use crate::version::KubernetesVersion;

use super::input::files::ReadOptions;
use super::input::{Input, KindFilter, Object};
use super::live::{ClusterData, FileCounts, Served};
use super::parallel;
pub(in crate::cli) use containers::CheckedContainers;
use crd_copies::CrdCopies;
use finding::Finding;
use known::Known;
use report::CheckReport;
use settings::Settings;
pub(in crate::cli) use time_limit::Cancellation;

/// The inputs and the checking semantics of a check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The files and directories to check; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Files and directories with CRDs. The check uses their schemas, but does not validate the CRDs themselves.
    pub crds: Vec<PathBuf>,
    /// The checking semantics of this project, or of kube-controller-manager.
    pub profile: Profile,
    /// The version of the target API server. `None` for the version of the cluster or, without a cluster, the newest
    /// version.
    pub version: Option<KubernetesVersion>,
    /// Further versions for which the objects are checked, newest first.
    pub other_versions: Vec<KubernetesVersion>,
}

/// Checks all policies of the input, with default settings.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read, which only happens in a broken build.
pub fn run(options: &Options, stdin: &mut dyn Read) -> Result<CheckReport, SchemaError> {
    run_with(options, &Settings::default(), stdin)
}

/// Checks all policies of the input.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read, which only happens in a broken build.
pub(super) fn run_with(
    options: &Options,
    settings: &Settings,
    stdin: &mut dyn Read,
) -> Result<CheckReport, SchemaError> {
    run_with_cluster(options, settings, stdin, |_, _| Ok(None))
}

/// Checks all policies of the input. `ask` may add the policies of a cluster to the input. `ask` returns the data of
/// that cluster, or `None` if no cluster is used.
///
/// # Errors
/// Returns the errors of `ask`, or an error if the built-in schemas cannot be read.
pub(super) fn run_with_cluster<E: From<SchemaError>>(
    options: &Options,
    settings: &Settings,
    stdin: &mut dyn Read,
    ask: impl FnOnce(&mut Input, &Input) -> Result<Option<(ClusterData, Served)>, E>,
) -> Result<CheckReport, E> {
    let read_options = ReadOptions {
        is_excluded: &|path| settings.exclude.has(path),
        text_of: &|path| {
            let has_some = !settings.replaced_contents.is_empty();
            let path = has_some.then(|| path.canonicalize().ok())?;
            settings.replaced_contents.get(&path?).cloned()
        },
    };
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    let (mut input, crds) = if options.crds.iter().any(is_stdin) {
        let input = Input::load_with(&options.paths, KindFilter::Policies, stdin, &read_options);
        (input, Input::load(&options.crds, KindFilter::Crds, stdin))
    } else {
        parallel::both(
            || Input::load_with(&options.paths, KindFilter::Policies, stdin, &read_options),
            || Input::load(&options.crds, KindFilter::Crds, &mut std::io::empty()),
        )
    };
    let cluster = ask(&mut input, &crds)?;
    Ok(check_input(options, settings, input, crds, cluster)?)
}

/// Checks an input that was read. `crds` contains the definitions whose schemas are used but not checked. `cluster`
/// contains the data of the cluster, if one is used.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read.
pub(in crate::cli) fn check_input(
    options: &Options,
    settings: &Settings,
    mut input: Input,
    mut crds: Input,
    cluster: Option<(ClusterData, Served)>,
) -> Result<CheckReport, SchemaError> {
    let (cluster, served) = match cluster {
        Some((cluster, served)) => (cluster, Some(served)),
        None => (ClusterData::default(), None),
    };
    names::set_other_files(&mut input);
    skipped_values::remove_invalid_requirements(&mut input);
    let no_crds = report::no_crds(&options.crds, &crds);
    input.problems.extend(std::mem::take(&mut crds.problems));
    let mut of_input = input_findings(&input, &crds.crds, options, settings);
    let mut own_crds = std::mem::take(&mut input.crds);
    let n_crds = own_crds.len();
    let of_cluster = own_crds.split_off(cluster.file_counts.crds.min(n_crds));
    let version = target_version(options, served.as_ref());
    of_input.extend(crd::check(&own_crds, version));
    of_input.extend(crd::check_stored(&of_cluster, version));
    let others = &options.other_versions;
    let check_crds = |other: &KubernetesVersion| crd::check(&own_crds, *other);
    let crds_in_others: Vec<Vec<Finding>> = others.iter().map(check_crds).collect();
    let copies = CrdCopies::new(own_crds.iter().chain(&crds.crds));
    let of_flag = std::mem::take(&mut crds.crds);
    let crd_names = own_crds.iter().chain(&of_cluster).chain(&of_flag);
    let crd_names = crd_names.filter_map(Object::name).map(str::to_owned);
    let crd_names = crd_names.collect();
    let all_crds = own_crds.into_iter().chain(of_flag);
    let all_crds = all_crds.map(|crd| crd.value);
    let apis = match served {
        Some(served) => Known::with_cluster(options.version, all_crds, Arc::new(served))?,
        None => Known::new(options.version, all_crds, input.all_policies())?,
    };
    let read = ReadObjects {
        others: None,
        copies,
        input,
        crds,
        cluster,
        n_crds,
        crd_names,
        of_input,
        crds_in_others,
        no_crds,
    };
    check_read(options, settings, &apis, read)
}

/// Checks the objects of one file, for a caller that has read all files.
///
/// The first objects of each list of `input` are those of the file. The others are objects of other files that affect
/// the findings about the file. `context` contains the number of objects that are from the file, and the names of
/// policies in other files.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read.
pub(in crate::cli) fn check_file(
    options: &Options,
    settings: &Settings,
    apis: &Known,
    mut input: Input,
    (others, context): (&OtherFiles<'_>, ClusterData),
) -> Result<CheckReport, SchemaError> {
    skipped_values::remove_invalid_requirements(&mut input);
    let mut of_input = others.duplicates(&input);
    of_input.extend(crd::check(&input.crds, apis.version()));
    let versions = options.other_versions.iter();
    let read = ReadObjects {
        n_crds: input.crds.len(),
        crd_names: (input.crds.iter().filter_map(Object::name))
            .map(str::to_owned)
            .collect(),
        crds_in_others: versions
            .map(|version| crd::check(&input.crds, *version))
            .collect(),
        others: Some(others),
        copies: CrdCopies::default(),
        input,
        crds: Input::default(),
        cluster: context,
        of_input,
        no_crds: None,
    };
    check_read(options, settings, apis, read)
}

/// The files that are not checked, in the order of their names.
pub(in crate::cli) struct OtherFiles<'a> {
    /// The files before the checked one.
    pub(in crate::cli) before: Vec<&'a Input>,
    /// The files after the checked one.
    pub(in crate::cli) after: Vec<&'a Input>,
    /// Returns the container fields that the policies in these files check.
    pub(in crate::cli) container_reads: &'a (dyn Fn() -> Vec<&'a CheckedContainers> + Sync),
}

impl OtherFiles<'_> {
    /// Returns the findings about objects of the input that have the same name as an earlier object.
    fn duplicates(&self, input: &Input) -> Vec<Finding> {
        let before = self.before.iter().copied();
        let after = self.after.iter().copied();
        let inputs: Vec<_> = before.chain([input]).chain(after).collect();
        let crds: Vec<_> = inputs.iter().flat_map(|input| &input.crds).collect();
        let mut findings = names::duplicates(&inputs, &crds);
        findings.retain(|finding| input.files.contains(&finding.location.file));
        findings
    }
}

/// The objects of a check, and the findings about the input as a whole.
struct ReadObjects<'r, 'a> {
    others: Option<&'r OtherFiles<'a>>,
    copies: CrdCopies,
    input: Input,
    /// The input of `--crds` without its definitions.
    crds: Input,
    cluster: ClusterData,
    n_crds: usize,
    crd_names: Vec<String>,
    of_input: Vec<Finding>,
    /// The findings about the definitions for each of the other versions.
    crds_in_others: Vec<Vec<Finding>>,
    no_crds: Option<Finding>,
}

fn check_read(
    options: &Options,
    settings: &Settings,
    apis: &Known,
    read: ReadObjects<'_, '_>,
) -> Result<CheckReport, SchemaError> {
    let ReadObjects {
        others: other_files,
        copies,
        mut input,
        crds,
        cluster,
        n_crds,
        crd_names,
        of_input,
        crds_in_others,
        no_crds,
    } = read;
    let version = apis.version();
    let mut report = CheckReport::new(apis.kubernetes(), options.profile, &input);
    report.expressions = options.version.map(|version| version.to_string());
    report.summary.crds = n_crds;
    for invalid in input.invalid.iter().chain(&crds.invalid) {
        report.findings.extend(shape::invalid(invalid));
    }
    let from_files = (cluster.file_counts, settings.static_dir.as_deref());
    let scope = (from_files, other_files);
    check_objects(
        &input,
        (apis, &copies),
        options.profile,
        (scope, &mut report),
    );
    let others = &options.other_versions;
    let no_copies = CrdCopies::default();
    let mut in_others = Vec::new();
    for (other, of_crds) in others.iter().zip(crds_in_others) {
        let apis = apis.copy_for(*other)?;
        let mut of_other = CheckReport::new(apis.kubernetes(), options.profile, &input);
        of_other.findings = of_crds;
        check_objects(
            &input,
            (&apis, &no_copies),
            options.profile,
            (scope, &mut of_other),
        );
        in_others.push((*other, of_other.findings));
    }
    report.add_bindings(&input, &cluster);
    report.summary.probes = input.probes.len();
    if let Some(check_probes) = settings.probe_check {
        let has_others = other_files.is_some();
        let of_probes = check_probes(&input, &crd_names, &cluster, has_others);
        report.findings.extend(of_probes);
    }
    report.add_cluster(cluster);
    report.findings.extend(no_crds);
    report.findings.extend(of_input);
    if !others.is_empty() {
        report.other_versions = others.iter().map(ToString::to_string).collect();
        version_range::merge(&mut report.findings, version, in_others);
    }
    // The API server has accepted the objects of a cluster, so they are not corrected.
    if report.cluster.is_none() {
        corrections::add_hidden(&mut report, &mut input, &mut |corrected, file_counts| {
            let apis = apis.with_corrected(&corrected.crds, corrected.all_policies());
            let mut of_corrected = CheckReport::new(apis.kubernetes(), options.profile, corrected);
            for invalid in &corrected.invalid {
                of_corrected.findings.extend(shape::invalid(invalid));
            }
            let of_crds = crd::check(&corrected.crds, version);
            of_corrected.findings.extend(of_crds);
            let from_files = (file_counts, settings.static_dir.as_deref());
            check_objects(
                corrected,
                (&apis, &copies),
                options.profile,
                ((from_files, other_files), &mut of_corrected),
            );
            of_corrected.findings
        });
    }
    input.comments.extend(crds.comments);
    report.finish(settings, &input);
    Ok(report)
}

/// Returns the version of the API server for which the objects are checked.
fn target_version(options: &Options, served: Option<&Served>) -> KubernetesVersion {
    let of_served = served.and_then(|served| served.version);
    let version = options.version.or(of_served);
    version.unwrap_or(KubernetesVersion::NEWEST)
}

/// Returns the findings about the input as a whole.
fn input_findings(
    input: &Input,
    crds: &[Object<Crd>],
    options: &Options,
    settings: &Settings,
) -> Vec<Finding> {
    let all_crds: Vec<_> = input.crds.iter().chain(crds).collect();
    let mut findings = names::duplicates(&[input], &all_crds);
    findings.extend(names::skipped_kinds(&input.dropped));
    findings.extend(missing_params::check(input));
    let reads_stdin = options.paths.iter().any(|path| path.as_os_str() == "-");
    findings.extend(names::empty_input(input, reads_stdin));
    if let Some(dir) = &settings.static_dir {
        findings.extend(manifests::check(dir, input));
    }
    findings
}

/// The scope of a check. It contains the number of objects that come from files, the directory of static manifests, and
/// the files that are not checked.
type CheckScope<'r, 'a> = ((FileCounts, Option<&'r Path>), Option<&'r OtherFiles<'a>>);

/// Checks the policies, bindings and webhook configurations of the input, and adds the findings to the report.
fn check_objects(
    input: &Input,
    (known, copies): (&Known, &CrdCopies),
    profile: Profile,
    (((file_counts, static_dir), others), report): (CheckScope<'_, '_>, &mut CheckReport),
) {
    let policies: Vec<_> = input.policies.iter().enumerate().collect();
    let mut outcomes = parallel::map(&policies, |(n, policy)| {
        let mut outcome = copies.check(known, &policy.source.name, |known| {
            policy::check(policy, &input.bindings, known, profile)
        });
        // Only policies from files are validated. The API server has accepted the policies of a cluster, and has set
        // fields that are invalid in a new policy.
        if *n < file_counts.policies {
            outcome.findings.extend(shape::check(policy));
            outcome.findings.extend(validation::policy(policy));
            let reserved = manifests::reserved_name(policy, static_dir, known.version());
            outcome.findings.extend(reserved);
        }
        skipped_values::mark(policy, &mut outcome.findings);
        partial::adapt(policy, &mut outcome.findings);
        versions::check(policy, None, known.version(), &mut outcome.findings);
        cascade::remove_consequences(&mut outcome.findings, &|it| {
            skipped_values::is_left_out(policy, it)
        });
        outcome
    });
    containers::remove_checked_elsewhere(&input.policies, others, &mut outcomes, known);
    for (policy, outcome) in input.policies.iter().zip(outcomes) {
        report.add(policy, outcome);
    }
    for binding in input.bindings.iter().take(file_counts.bindings) {
        let of_binding = binding_findings(binding, known, static_dir, validation::binding);
        report.findings.extend(of_binding);
    }
    add_rules_of_bindings(&input.bindings, file_counts.bindings, known, report);
    let from_files = (file_counts, static_dir);
    check_mutating(input, (known, copies), profile, (from_files, report));
    binding_rules::remove_repeated_notes(&mut report.findings);
    // A param object that is invalid with one copy of a definition may be valid with another copy.
    if copies.is_empty() {
        report.findings.extend(param_objects::check(input, known));
    }
    let of_webhooks = webhook_findings(input, known, profile, from_files);
    report.findings.extend(of_webhooks);
}

/// Returns the findings about the webhook configurations of the input. The first configurations are from files, the
/// others from a cluster.
fn webhook_findings(
    input: &Input,
    known: &Known,
    profile: Profile,
    (file_counts, static_dir): (FileCounts, Option<&Path>),
) -> Vec<Finding> {
    let webhooks: Vec<_> = input.webhooks.iter().enumerate().collect();
    let findings = parallel::map(&webhooks, |(n, configuration)| {
        let is_of_file = *n < file_counts.webhooks;
        let place = (is_of_file, static_dir);
        let mut findings = configuration_findings(configuration, known, profile, place);
        cascade::remove_consequences(&mut findings, &|_| false);
        findings
    });
    findings.into_iter().flatten().collect()
}

/// Returns the findings about a single webhook configuration, including findings that are consequences of others.
pub(in crate::cli) fn configuration_findings(
    configuration: &Object<Value>,
    known: &Known,
    profile: Profile,
    (is_of_file, static_dir): (bool, Option<&Path>),
) -> Vec<Finding> {
    let mut findings = webhook::check(configuration, known, profile, is_of_file);
    if is_of_file {
        findings.extend(validation::webhooks(configuration));
        let version = known.version();
        findings.extend(manifests::reserved_name(configuration, static_dir, version));
    }
    for finding in &mut findings {
        finding.owner.set_configuration(configuration.name());
    }
    findings
}

/// Returns the findings about a single validating or mutating binding.
fn binding_findings(
    binding: &Object<ValidatingAdmissionPolicyBinding>,
    known: &Known,
    static_dir: Option<&Path>,
    validate: impl FnOnce(&Object<ValidatingAdmissionPolicyBinding>) -> Vec<Finding>,
) -> Vec<Finding> {
    let mut findings = shape::check(binding);
    findings.extend(binding_rules::check(binding, known));
    findings.extend(api_version::policy_finding(binding, known));
    findings.extend(validate(binding));
    api_version::apply_defaults(binding, known, &mut findings);
    partial::adapt(binding, &mut findings);
    findings.extend(manifests::reserved_name(
        binding,
        static_dir,
        known.version(),
    ));
    cascade::remove_consequences(&mut findings, &|_| false);
    findings
}

/// Checks the mutating policies of the input and their bindings, and adds the findings to the report.
fn check_mutating(
    input: &Input,
    (known, copies): (&Known, &CrdCopies),
    profile: Profile,
    ((file_counts, static_dir), report): ((FileCounts, Option<&Path>), &mut CheckReport),
) {
    let policies: Vec<_> = input.mutating_policies.iter().enumerate().collect();
    let outcomes = parallel::map(&policies, |(n, policy)| {
        let (shared, bindings) = (&policy.shared, &input.mutating_bindings);
        let mut outcome = copies.check(known, &shared.source.name, |known| {
            policy::check_mutating(policy, bindings, known, profile)
        });
        if *n < file_counts.mutating_policies {
            outcome.findings.extend(shape::check(shared));
            outcome.findings.extend(validation::mutating_policy(shared));
            assumptions::assume_patch_type(shared, &mut outcome.findings);
            let reserved = manifests::reserved_name(shared, static_dir, known.version());
            outcome.findings.extend(reserved);
        }
        skipped_values::mark(shared, &mut outcome.findings);
        partial::adapt(shared, &mut outcome.findings);
        let mutations = Some(policy.mutations.as_slice());
        versions::check(shared, mutations, known.version(), &mut outcome.findings);
        cascade::remove_consequences(&mut outcome.findings, &|it| {
            skipped_values::is_left_out(shared, it)
        });
        outcome
    });
    for (policy, outcome) in input.mutating_policies.iter().zip(outcomes) {
        report.add_mutating(&policy.shared, outcome);
    }
    for binding in input
        .mutating_bindings
        .iter()
        .take(file_counts.mutating_bindings)
    {
        let of_binding = binding_findings(binding, known, static_dir, validation::mutating_binding);
        report.findings.extend(of_binding);
    }
    let n_from_files = file_counts.mutating_bindings;
    add_rules_of_bindings(&input.mutating_bindings, n_from_files, known, report);
}

/// Adds findings about the rules of bindings from a cluster. [`binding_findings`] checks the bindings from files.
fn add_rules_of_bindings(
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    n_from_files: usize,
    known: &Known,
    report: &mut CheckReport,
) {
    let others = bindings.iter().skip(n_from_files);
    report
        .findings
        .extend(others.flat_map(|binding| binding_rules::check(binding, known)));
}
