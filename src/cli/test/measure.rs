//! How much the cases of a run say of the policies: what they evaluate, and which changes they notice.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};

use super::cluster::{FileCluster, Run};
use super::coverage::{self, Coverage, Met};
use super::mutants::{Changes, Judge, Judged, Missed, MutantReport};
use super::probes::Probe;
use crate::cli::check::known::Known;
use crate::cli::input::Input;
use crate::cli::parallel;
use crate::policy::admission::Admission;
use crate::probe::api::BindingSource;
use crate::probe::run;

/// A probe with what its cases came to.
#[derive(Clone, Copy)]
pub(super) struct Ran<'a> {
    pub(super) probe: &'a Probe,
    pub(super) run: &'a Run,
}

/// The probes of each policy; those of webhooks are about nothing that is measured.
fn by_policy<'a>(ran: &[Ran<'a>]) -> BTreeMap<&'a str, Vec<Ran<'a>>> {
    let mut found: BTreeMap<&str, Vec<Ran<'_>>> = BTreeMap::new();
    for it in ran.iter().filter(|it| it.probe.target.is_none()) {
        let of_policy = found.entry(&it.probe.spec.policy_name).or_default();
        of_policy.push(*it);
    }
    found
}

/// The coverage of the policies that probes are about.
pub(super) fn coverage(
    input: &Input,
    known: &Known,
    cluster: &FileCluster<'_>,
    ran: &[Ran<'_>],
) -> Vec<Coverage> {
    let mut found = Vec::new();
    for (name, ran) in by_policy(ran) {
        let Some((policy, compiled)) = cluster.policy(name) else {
            continue;
        };
        let mut met = Met::default();
        let mut actions = BTreeSet::new();
        for Ran { probe, run } in ran {
            match probe.spec.bindings {
                BindingSource::Implied => {
                    actions.insert("Deny".to_owned());
                }
                BindingSource::Inline => {
                    let of_probe = probe.spec.inline_bindings.iter();
                    actions.extend(of_probe.flat_map(|it| it.validation_actions.clone()));
                }
                BindingSource::FromCluster => {
                    let bindings = input.bindings.iter().map(|binding| &binding.value.spec);
                    let of_policy = bindings.filter(|spec| spec.policy_name == name);
                    actions.extend(of_policy.flat_map(|spec| spec.validation_actions.clone()));
                }
            }
            for (case, result) in probe.spec.cases.iter().zip(&run.results) {
                let request = run::admission_request(&case.request, &known.mapper);
                let (Ok(request), Some(outcome)) = (request, &result.outcome) else {
                    continue;
                };
                if outcome.definition.matched.is_some() {
                    met.add(&request, &result.recording);
                }
                if outcome.denial.is_some() {
                    met.add_action("Deny");
                }
                if !outcome.warnings.is_empty() {
                    met.add_action("Warn");
                }
                let mut annotations = outcome.audit_annotations.keys();
                if annotations.any(|key| key.ends_with("/validation_failure")) {
                    met.add_action("Audit");
                }
            }
        }
        found.push(coverage::of_policy(policy, compiled, &met, &actions));
    }
    found
}

/// The changes of the policies that no case notices. Policies of whose cases one does not pass are left out: what they
/// notice cannot be told.
pub(super) fn mutants(cluster: &FileCluster<'_>, ran: &[Ran<'_>]) -> MutantReport {
    let mut report = MutantReport::default();
    for (name, ran) in by_policy(ran) {
        let Some((policy, compiled)) = cluster.policy(name) else {
            continue;
        };
        if !ran.iter().all(|it| it.run.passes()) {
            report.skipped.push(name.to_owned());
            continue;
        }
        let Changes { tried, n_untried } = Changes::new(compiled);
        report.untried += n_untried;
        let judge = Judge::new(compiled);
        let results = parallel::map(&tried, |change| match judge.judge(change) {
            Judged::Broken => Judged::Broken,
            Judged::Alike => Judged::Alike,
            // A panic on a mutant counts as noticed.
            Judged::Mutant(admission) => Judged::Mutant(
                panic::catch_unwind(AssertUnwindSafe(|| notice(cluster, &ran, &admission)))
                    .unwrap_or((true, 0)),
            ),
        });
        for (change, result) in tried.into_iter().zip(results) {
            let (is_noticed, n_evaluated) = match result {
                Judged::Broken => continue,
                Judged::Alike => {
                    report.alike += 1;
                    continue;
                }
                Judged::Mutant(evaluated) => evaluated,
            };
            report.total += 1;
            report.evaluations += n_evaluated;
            if is_noticed {
                report.caught += 1;
                continue;
            }
            let place = policy.places_in_field(&change.field_ref).of(change.offset);
            report.missed.push(Missed {
                policy: name.to_owned(),
                file: policy.source.name.clone(),
                line: place.line,
                column: place.column,
                field_ref: change.field_ref,
                change: change.words,
            });
        }
    }
    report
}

/// Reports whether a case of the probes notices the mutant, and how many were evaluated until one does.
fn notice(cluster: &FileCluster<'_>, ran: &[Ran<'_>], mutant: &Admission) -> (bool, usize) {
    let mut n = 0;
    for Ran { probe, run } in ran {
        let n_passed = cluster.n_passed_with(&probe.spec, &run.requests, mutant);
        n += n_passed;
        if n_passed < run.requests.len() {
            return (true, n + 1);
        }
    }
    (false, n)
}
