//! `kubectl vap test`: runs the cases of `PolicyProbe`s in files, without a cluster.
//!
//! The controller uses the same evaluator. Here, the cluster state consists of the objects in the files, and the served
//! APIs are those of Kubernetes and of the CRDs in the input.

pub mod case_filter;
pub(super) mod cluster;
pub mod convert;
pub mod coverage;
mod equivalence;
pub(super) mod expand;
pub mod github;
pub mod init;
pub mod junit;
mod measure;
pub mod mutants;
pub(super) mod probes;
pub(super) mod rejection;
pub mod render;
pub mod report;
mod target;
pub mod trace;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use super::check::finding::{Finding, Severity};
use super::check::known::Known;
use super::check::report::{no_crds, unread};
use super::check::shape;
use super::error::CliError;
use super::input::{Input, KindFilter, Object};
use super::parallel;
use super::time_limit::TimeLimit;
use crate::policy::subject::SubjectKind;
use crate::policy::{self, RequestPolicy};
use crate::probe::target::TargetId;
use crate::version::KubernetesVersion;
use case_filter::CaseFilter;
use cluster::FileCluster;
use measure::ProbeRun;
use report::{ProbeSubject, TestReport};

const VALIDATING: SubjectKind = SubjectKind::ValidatingAdmissionPolicy;
const MUTATING: SubjectKind = SubjectKind::MutatingAdmissionPolicy;

/// Options of a test run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files and directories; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Files and directories of CRDs.
    pub crds: Vec<PathBuf>,
    /// The version of the API server. `None` for the default version.
    pub version: Option<KubernetesVersion>,
    /// True to measure the coverage of the policies.
    pub coverage: bool,
    /// True to run mutation tests.
    pub mutants: bool,
    /// The cases to run. `None` for all cases.
    pub filter: Option<CaseFilter>,
    /// True to measure the durations of cases.
    pub durations: bool,
    /// The time limit of one evaluation.
    pub limit: TimeLimit,
}

/// Runs all probes of the input.
///
/// # Errors
/// Returns an error if the data built into this program cannot be used.
pub fn run(options: &Options, stdin: &mut dyn Read) -> Result<TestReport, Broken> {
    let input = Input::load(&options.paths, KindFilter::All, stdin);
    let crds = Input::load(&options.crds, KindFilter::Crds, stdin);
    run_input(options, input, crds)
}

/// Runs all probes of an input that has already been read.
///
/// # Errors
/// Returns an error if the data built into this program cannot be used.
pub(in crate::cli) fn run_input(
    options: &Options,
    mut input: Input,
    mut crds: Input,
) -> Result<TestReport, Broken> {
    let no_crds = no_crds(&options.crds, &crds);
    let own_crds = std::mem::take(&mut input.crds).into_iter();
    let all_crds = own_crds.chain(std::mem::take(&mut crds.crds));
    let crds_of_probes = target::definitions(&input.probes, all_crds);
    let crds_of_input = crds_of_probes.crds.into_iter();
    let apis = Known::new(options.version, crds_of_input, input.all_policies())
        .map_err(|error| Broken(error.to_string()))?;

    let mut findings: Vec<Finding> = no_crds.into_iter().collect();
    findings.extend(input.problems.iter().chain(&crds.problems).map(unread));
    for invalid in input.invalid.iter().chain(&crds.invalid) {
        let problems = shape::invalid(invalid).into_iter();
        // Only `check` reports warnings.
        findings.extend(problems.filter(|problem| problem.severity == Severity::Error));
    }
    let probes = std::mem::take(&mut input.probes);
    let webhooks = target::webhooks(&input.webhooks);
    let mutating = input.mutating_policies.iter().map(|policy| &policy.shared);
    let validating = input.policies.iter();
    let mut targets = targets(&input);
    targets.extend(crds_of_probes.ids);
    let mut probes = probes::read(probes, &targets, &mut findings).map_err(Broken)?;
    let filter = options.filter.as_ref();
    let not_selected = filter.map(|filter| filter.retain(&mut probes));
    let probes = probes;
    probes::duplicate_policies(&probes, VALIDATING, validating.clone(), &mut findings);
    probes::duplicate_policies(&probes, MUTATING, mutating.clone(), &mut findings);

    let probed: BTreeSet<TargetId> = probes.iter().map(|probe| probe.id.clone()).collect();
    let mut rejections = rejection::check_policies(&input, &apis, &probed, &mut findings);
    rejection::check_mutating_policies(&input, &apis, &probed, &mut findings, &mut rejections);
    rejection::check_webhooks(&webhooks, &apis, &probed, &mut findings, &mut rejections);
    let definitions =
        rejection::check_definitions(crds_of_probes.named, &probed, apis.version(), &mut findings);
    let validating = validating.filter(|policy| probed.contains(&id(VALIDATING, policy)));
    let mutating = mutating.filter(|policy| probed.contains(&id(MUTATING, policy)));
    let all_policies = validating.chain(mutating);
    let param_kinds = all_policies.filter_map(|policy| policy::param_kind(&policy.value));
    rejection::check_objects(&input, &apis, &param_kinds.collect(), &mut findings);

    let mut report = TestReport::new(apis.kubernetes(), input.n_files, findings);
    let mut cluster = FileCluster::new(&input, &webhooks, &definitions, &apis, &rejections);
    cluster.limit = options.limit;
    cluster.measures_durations = options.durations;
    let cluster = cluster;
    let runs = parallel::map(&probes, |probe| cluster.run(&probe.id, &probe.spec));
    let probe_runs = probes.iter().zip(&runs);
    let probe_runs: Vec<ProbeRun<'_>> = probe_runs
        .map(|(probe, run)| ProbeRun { probe, run })
        .collect();
    for ProbeRun { probe, run } in &probe_runs {
        let id = &probe.id;
        let subject = ProbeSubject {
            policy: cluster.policy(id),
            webhook: webhooks.get(id).map(|webhook| webhook.n),
            definition: cluster.definition(id),
            rejection: cluster.rejection(id),
        };
        report.add(probe, run, subject);
    }
    if options.coverage {
        report.coverage = Some(measure::coverage(
            &input,
            &apis,
            &cluster,
            &probe_runs,
            filter.is_some(),
        ));
    }
    if options.mutants {
        report.mutants = Some(measure::mutants(&cluster, &probe_runs));
    }
    if options.coverage || options.mutants {
        let targets = probes.iter().filter_map(|probe| probe.spec.target.as_ref());
        let named: BTreeSet<String> = targets.map(ToString::to_string).collect();
        report.not_measured = named.into_iter().collect();
    }
    report.finish(not_selected.unwrap_or_default());
    Ok(report)
}

fn id(kind: SubjectKind, policy: &Object<RequestPolicy>) -> TargetId {
    TargetId::new(kind, policy.name().unwrap_or_default())
}

/// Returns the possible targets of probes: the policies and webhooks of the input.
pub(in crate::cli) fn targets(input: &Input) -> Vec<TargetId> {
    let validating = input.policies.iter().map(|policy| id(VALIDATING, policy));
    let mutating = input.mutating_policies.iter();
    let mutating = mutating.map(|policy| id(MUTATING, &policy.shared));
    let webhooks = target::webhooks(&input.webhooks).into_keys();
    validating.chain(mutating).chain(webhooks).collect()
}

/// An error in the data that is built into this program.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub(super) String);

impl From<Broken> for CliError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken.0)
    }
}
