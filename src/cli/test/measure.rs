//! Measures test cases: their coverage of the policies, and the mutants that they detect.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};

use super::cluster::{FileCluster, Run};
use super::coverage::{self, Coverage, CoverageHits};
use super::mutants::{Changes, MutantCompiler, MutantOutcome, MutantReport, SurvivingMutant};
use super::probes::Probe;
use super::target::TargetId;
use crate::cli::check::known::Known;
use crate::cli::input::Input;
use crate::cli::parallel;
use crate::policy::admission::Admission;
use crate::policy::subject::SubjectKind;
use crate::probe::api::BindingSource;
use crate::probe::run;

#[derive(Clone, Copy)]
pub(super) struct ProbeRun<'a> {
    pub(super) probe: &'a Probe,
    pub(super) run: &'a Run,
}

/// Returns the probes of validating policies, by policy. Probes of other targets are not measured.
fn by_policy<'a>(probe_runs: &[ProbeRun<'a>]) -> BTreeMap<&'a TargetId, Vec<ProbeRun<'a>>> {
    let mut groups: BTreeMap<&TargetId, Vec<ProbeRun<'_>>> = BTreeMap::new();
    let is_measured =
        |it: &&ProbeRun<'_>| it.probe.kind() == SubjectKind::ValidatingAdmissionPolicy;
    for it in probe_runs.iter().filter(is_measured) {
        let policy_runs = groups.entry(&it.probe.id).or_default();
        policy_runs.push(*it);
    }
    groups
}

/// Returns the coverage of the policies. If `skips_untested` is true, omits policies without probes.
pub(super) fn coverage(
    input: &Input,
    known: &Known,
    cluster: &FileCluster<'_>,
    probe_runs: &[ProbeRun<'_>],
    skips_untested: bool,
) -> Vec<Coverage> {
    let mut coverages = Vec::new();
    let policies = input.policies.iter().filter(|_| !skips_untested);
    let ids: Vec<TargetId> = policies
        .map(|policy| TargetId::policy(policy.name().unwrap_or_default()))
        .collect();
    let mut groups = by_policy(probe_runs);
    for id in &ids {
        groups.entry(id).or_default();
    }
    for (id, probe_runs) in groups {
        let Some((policy, compiled)) = cluster.policy(id) else {
            continue;
        };
        let name = &*id.subject.name;
        let mut hits = CoverageHits::default();
        let mut actions = BTreeSet::new();
        let bound_actions = || {
            let bindings = input.bindings.iter().map(|binding| &binding.value.spec);
            let policy_bindings = bindings.filter(|spec| spec.policy_name == name);
            policy_bindings.flat_map(|spec| spec.validation_actions.clone())
        };
        if probe_runs.is_empty() {
            actions.extend(bound_actions());
        }
        let n_probes = probe_runs.len();
        for ProbeRun { probe, run } in probe_runs {
            match probe.spec.bindings {
                BindingSource::Implied => {
                    actions.insert("Deny".to_owned());
                }
                BindingSource::Inline => {
                    let inline_bindings = probe.spec.inline_bindings.iter();
                    actions.extend(inline_bindings.flat_map(|it| it.validation_actions.clone()));
                }
                BindingSource::FromCluster => actions.extend(bound_actions()),
            }
            for (case, result) in probe.spec.cases.iter().zip(&run.results) {
                let request = run::admission_request(&case.request, &known.mapper);
                let (Ok(request), Some(outcome)) = (request, &result.outcome) else {
                    continue;
                };
                if outcome.definition.matched.is_some() {
                    hits.add(&request, &result.recording);
                }
                if outcome.denial.is_some() {
                    hits.add_action("Deny");
                }
                if !outcome.warnings.is_empty() {
                    hits.add_action("Warn");
                }
                let mut annotations = outcome.audit_annotations.keys();
                if annotations.any(|key| key.ends_with("/validation_failure")) {
                    hits.add_action("Audit");
                }
            }
        }
        let mut policy_coverage = coverage::policy_coverage(policy, compiled, &hits, &actions);
        policy_coverage.probes = n_probes;
        coverages.push(policy_coverage);
    }
    coverages
}

/// Runs mutation tests for the policies that have probes. A policy with a case that does not pass is skipped, because
/// such a case cannot detect a mutant.
pub(super) fn mutants(cluster: &FileCluster<'_>, probe_runs: &[ProbeRun<'_>]) -> MutantReport {
    let mut report = MutantReport::default();
    for (id, probe_runs) in by_policy(probe_runs) {
        let Some((policy, compiled)) = cluster.policy(id) else {
            continue;
        };
        let name = &*id.subject.name;
        if !probe_runs.iter().all(|it| it.run.passes()) {
            report.skipped.push(name.to_owned());
            continue;
        }
        let Changes { tried, n_untried } = Changes::new(compiled);
        report.untried += n_untried;
        let compiler = MutantCompiler::new(compiled);
        let results = parallel::map(&tried, |change| match compiler.compile(change) {
            MutantOutcome::Invalid => MutantOutcome::Invalid,
            MutantOutcome::Equivalent => MutantOutcome::Equivalent,
            // If the evaluation of a mutant panics, the mutant counts as detected.
            MutantOutcome::Mutant(admission) => MutantOutcome::Mutant(
                panic::catch_unwind(AssertUnwindSafe(|| {
                    evaluate_mutant(cluster, &probe_runs, &admission)
                }))
                .unwrap_or((true, 0)),
            ),
        });
        for (change, result) in tried.into_iter().zip(results) {
            let (is_detected, n_evaluated) = match result {
                MutantOutcome::Invalid => continue,
                MutantOutcome::Equivalent => {
                    report.equivalent += 1;
                    continue;
                }
                MutantOutcome::Mutant(evaluated) => evaluated,
            };
            report.total += 1;
            report.evaluations += n_evaluated;
            if is_detected {
                report.killed += 1;
                continue;
            }
            let place = policy.places_in_field(&change.field_ref).at(change.offset);
            report.survived.push(SurvivingMutant {
                policy: name.to_owned(),
                file: policy.source.name.clone(),
                line: place.line,
                column: place.column,
                field_ref: change.field_ref,
                change: change.description,
            });
        }
    }
    report
}

/// Evaluates the cases for a mutant until a case fails. Returns true if a case failed, and the number of evaluated
/// cases.
fn evaluate_mutant(
    cluster: &FileCluster<'_>,
    probe_runs: &[ProbeRun<'_>],
    mutant: &Admission,
) -> (bool, usize) {
    let mut n = 0;
    for ProbeRun { probe, run } in probe_runs {
        let n_passed =
            cluster.n_passed_before_failure(&probe.id, &probe.spec, &run.requests, mutant);
        n += n_passed;
        if n_passed < run.requests.len() {
            return (true, n + 1);
        }
    }
    (false, n)
}
