//! `kubectl vap test`: the cases of `PolicyProbe`s in files, without a cluster.
//!
//! Takes manifests, gives what each case came to. The evaluator is that of the controller; what exists is
//! what the files hold, what is served is Kubernetes' own APIs and the CRDs of the input.

mod alike;
pub(super) mod cluster;
pub mod convert;
pub mod coverage;
pub(super) mod expand;
pub mod github;
pub mod init;
pub mod junit;
mod measure;
pub mod mutants;
pub(super) mod probes;
pub(super) mod refusal;
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
use super::input::{Input, KindFilter};
use super::parallel;
use super::time_limit::TimeLimit;
use crate::policy;
use cluster::{FileCluster, mutating_key};
use measure::Ran;
use report::{About, TestReport};

/// Options of a test run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Files and directories; `-` is standard input.
    pub paths: Vec<PathBuf>,
    /// Files and directories of CRDs.
    pub crds: Vec<PathBuf>,
    /// True to say how much of the policies the cases evaluate.
    pub coverage: bool,
    /// True to say which small changes of the policies no case notices.
    pub mutants: bool,
    /// The time that one evaluation may take.
    pub limit: TimeLimit,
}

/// Runs all probes of the input.
///
/// # Errors
/// If this build is broken.
pub fn run(options: &Options, stdin: &mut dyn Read) -> Result<TestReport, Broken> {
    let mut input = Input::load(&options.paths, KindFilter::All, stdin);
    let mut crds = Input::load(&options.crds, KindFilter::Crds, stdin);
    let no_crds = no_crds(&options.crds, &crds);
    let own_crds = std::mem::take(&mut input.crds).into_iter();
    let all_crds = own_crds.chain(std::mem::take(&mut crds.crds));
    let crds_of_probes = target::definitions(&input.probes, all_crds);
    let known = Known::new(crds_of_probes.crds.into_iter(), input.all_policies())
        .map_err(|error| Broken(error.to_string()))?;

    let mut findings: Vec<Finding> = no_crds.into_iter().collect();
    findings.extend(input.problems.iter().chain(&crds.problems).map(unread));
    for invalid in input.invalid.iter().chain(&crds.invalid) {
        let found = shape::invalid(invalid).into_iter();
        // Whether it is good style is the affair of `check`.
        findings.extend(found.filter(|found| found.severity == Severity::Error));
    }
    let names = input.policies.iter();
    let names = names.map(|policy| policy.name().unwrap_or_default().to_owned());
    let policies: Vec<String> = names.collect();
    let probes = std::mem::take(&mut input.probes);
    let webhooks = target::webhooks(&input.webhooks);
    let mutating = input.mutating_policies.iter().map(|policy| &policy.shared);
    let keys = mutating
        .clone()
        .map(|policy| mutating_key(policy.name().unwrap_or_default()));
    let definitions = crds_of_probes.keys;
    let targets: Vec<String> = webhooks
        .keys()
        .cloned()
        .chain(keys)
        .chain(definitions)
        .collect();
    let probes = probes::read(probes, &policies, Some(&targets), &mut findings).map_err(Broken)?;
    probes::duplicate_policies(&probes, input.policies.iter(), str::to_owned, &mut findings);
    probes::duplicate_policies(&probes, mutating, mutating_key, &mut findings);

    let probed: BTreeSet<&str> = probes
        .iter()
        .map(|probe| probe.spec.policy_name.as_str())
        .collect();
    let mut refusals = refusal::of_policies(&input, &known, &probed, &mut findings);
    refusal::of_mutating_policies(&input, &known, &probed, &mut findings, &mut refusals);
    refusal::of_webhooks(&webhooks, &known, &probed, &mut findings, &mut refusals);
    let definitions = refusal::of_definitions(crds_of_probes.named, &probed, &mut findings);
    let of_policies = input.policies.iter();
    let of_policies =
        of_policies.filter(|policy| probed.contains(policy.name().unwrap_or_default()));
    let mutating = input.mutating_policies.iter().map(|policy| &policy.shared);
    let mutating = mutating
        .filter(|policy| probed.contains(mutating_key(policy.name().unwrap_or_default()).as_str()));
    let of_both = of_policies.chain(mutating);
    let param_kinds = of_both.filter_map(|policy| policy::param_kind(&policy.value));
    refusal::of_objects(&input, &known, &param_kinds.collect(), &mut findings);

    let mut report = TestReport::new(known.kubernetes(), input.n_files, findings);
    let mut cluster = FileCluster::new(&input, &webhooks, &definitions, &known, &refusals);
    cluster.limit = options.limit;
    let cluster = cluster;
    let runs = parallel::map(&probes, |probe| cluster.run(&probe.spec));
    let ran = probes.iter().zip(&runs);
    let ran: Vec<Ran<'_>> = ran.map(|(probe, run)| Ran { probe, run }).collect();
    for Ran { probe, run } in &ran {
        let name = &probe.spec.policy_name;
        let about = About {
            policy: cluster.policy(name),
            webhook: webhooks.get(name).map(|webhook| webhook.n),
            definition: cluster.definition(name),
            refusal: cluster.refusal(name),
        };
        report.add(probe, &run.results, about);
    }
    if options.coverage {
        report.coverage = Some(measure::coverage(&input, &known, &cluster, &ran));
    }
    if options.mutants {
        report.mutants = Some(measure::mutants(&cluster, &ran));
    }
    if options.coverage || options.mutants {
        let targets = probes.iter().filter_map(|probe| probe.target.as_ref());
        let named: BTreeSet<String> = targets.map(ToString::to_string).collect();
        report.not_measured = named.into_iter().collect();
    }
    report.finish();
    Ok(report)
}

/// This build is broken.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub(super) String);

impl From<Broken> for CliError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken.0)
    }
}
