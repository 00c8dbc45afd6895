//! How much the cases of a run say of the policies: what they evaluate, and which changes they notice.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};

use super::cluster::FileCluster;
use super::coverage::{self, Coverage, Met};
use super::mutants::{self, Missed, Mutant, MutantReport};
use super::probes::Probe;
use crate::cli::check::known::Known;
use crate::cli::input::Input;
use crate::cli::parallel;
use crate::policy::admission::Admission;
use crate::probe::api::BindingSource;
use crate::probe::run::{self, CaseRequest};

/// The probes of each policy; those of webhooks are about nothing that is measured.
fn by_policy(probes: &[Probe]) -> BTreeMap<&str, Vec<&Probe>> {
    let mut found: BTreeMap<&str, Vec<&Probe>> = BTreeMap::new();
    for probe in probes.iter().filter(|probe| probe.target.is_none()) {
        let of_policy = found.entry(&probe.spec.policy_name).or_default();
        of_policy.push(probe);
    }
    found
}

/// The coverage of the policies that probes are about.
pub(super) fn coverage(
    input: &Input,
    known: &Known,
    cluster: &FileCluster<'_>,
    probes: &[Probe],
) -> Vec<Coverage> {
    let mut found = Vec::new();
    for (name, probes) in by_policy(probes) {
        let Some((policy, compiled)) = cluster.policy(name) else {
            continue;
        };
        let mut met = Met::default();
        let mut actions = BTreeSet::new();
        for probe in probes {
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
            for (case, result) in probe.spec.cases.iter().zip(cluster.run(&probe.spec)) {
                let request = run::admission_request(&case.request, &known.mapper);
                let (Ok(request), Some(outcome)) = (request, result.outcome) else {
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
pub(super) fn mutants(cluster: &FileCluster<'_>, probes: &[Probe]) -> MutantReport {
    let mut report = MutantReport::default();
    for (name, probes) in by_policy(probes) {
        let Some((policy, compiled)) = cluster.policy(name) else {
            continue;
        };
        let admission = Admission::from_compiled(compiled);
        let requests = panic::catch_unwind(AssertUnwindSafe(|| {
            let requests = probes.iter().map(|probe| cluster.requests(&probe.spec));
            let requests: Vec<_> = requests.collect();
            let mut all = probes.iter().zip(&requests);
            let all_pass = all.all(|(probe, requests)| {
                cluster.n_passed_with(&probe.spec, requests, &admission) == probe.spec.cases.len()
            });
            all_pass.then_some(requests)
        }));
        let Ok(Some(requests)) = requests else {
            report.skipped.push(name.to_owned());
            continue;
        };
        let (mutants, n_alike) = mutants::of_policy(compiled);
        report.alike += n_alike;
        let noticed = parallel::map(&mutants, |mutant| {
            // What breaks off on a mutant is noticed.
            panic::catch_unwind(AssertUnwindSafe(|| {
                notice(cluster, &probes, &requests, mutant)
            }))
            .unwrap_or((true, 0))
        });
        for (mutant, (is_noticed, n)) in mutants.into_iter().zip(noticed) {
            report.total += 1;
            report.evaluations += n;
            if is_noticed {
                report.caught += 1;
                continue;
            }
            let place = policy.places_in_field(&mutant.field_ref).of(mutant.offset);
            report.missed.push(Missed {
                policy: name.to_owned(),
                file: policy.source.name.clone(),
                line: place.line,
                column: place.column,
                field_ref: mutant.field_ref,
                change: mutant.change,
            });
        }
    }
    report
}

/// Reports whether a case of the probes notices the mutant, and how many were evaluated until one does.
fn notice(
    cluster: &FileCluster<'_>,
    probes: &[&Probe],
    requests: &[Vec<CaseRequest>],
    mutant: &Mutant,
) -> (bool, usize) {
    let admission = Admission::new(&mutant.policy);
    let mut n = 0;
    for (probe, requests) in probes.iter().zip(requests) {
        let n_passed = cluster.n_passed_with(&probe.spec, requests, &admission);
        n += n_passed;
        if n_passed < requests.len() {
            return (true, n + 1);
        }
    }
    (false, n)
}
