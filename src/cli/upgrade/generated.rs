//! Generates requests for a policy, and runs them as probe cases to confirm that the two versions differ.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::effects::{Effect, effects};
use crate::cli::audit::PolicyResult;
use crate::cli::check::known::Known;
use crate::cli::diff::case_result;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::eval::run_case;
use crate::cli::generated_requests;
use crate::cli::input::Object;
use crate::policy::admission::{RecordedValue, Recording};
use crate::policy::matching::{self, UnservedResource};
use crate::policy::runtime_errors::{self, Context, Witness};
use crate::policy::version_changes::AffectedNode;
use crate::probe::api::{Case, CaseOutcome, PolicyProbeSpec};
use crate::schema::Builtin;
use crate::version::KubernetesVersion;

/// The generated requests of a policy.
#[derive(Default)]
pub(super) struct Generated {
    /// The number of requests that were evaluated under both versions.
    pub(super) n_requests: usize,
    /// The requests for which the versions differ.
    pub(super) differing: Vec<DifferingCase>,
    /// The name of the binding that applies to the requests. `None` if the policy has none.
    pub(super) binding: Option<String>,
    /// The reasons why an effect of the upgrade is unknown.
    pub(super) undecided: Vec<String>,
    /// The indices of the affected nodes that no request reached.
    pub(super) unreached: Vec<usize>,
}

/// A generated request for which the versions differ, as the case of a probe.
pub(super) struct DifferingCase {
    pub(super) spec: PolicyProbeSpec,
    pub(super) case: Case,
    pub(super) witness: Witness,
    pub(super) effects: Vec<Effect>,
}

/// The same policy, prepared for both versions.
#[derive(Clone, Copy)]
pub(super) struct BothVersions<'a> {
    pub(super) policies: [&'a PreparedPolicy<'a>; 2],
    pub(super) sets: [&'a PolicySet<'a>; 2],
}

impl BothVersions<'_> {
    /// Evaluates a case under both versions.
    ///
    /// # Errors
    /// Returns the reason why a version could not be evaluated.
    fn run(
        self,
        spec: &PolicyProbeSpec,
        case: &Case,
        (nodes, reached): (&[AffectedNode], &mut [bool]),
    ) -> Result<[Option<PolicyResult>; 2], String> {
        let [old, new] = self.policies;
        let [old_set, new_set] = self.sets;
        let mut old_result = run_case(old, spec, case, old_set);
        let recording = std::mem::take(&mut old_result.recording);
        let results = [
            case_result(old, old_result)?,
            case_result(new, run_case(new, spec, case, new_set))?,
        ];
        for (is_reached, affected) in reached.iter_mut().zip(nodes) {
            *is_reached |= has_value(&recording, affected);
        }
        Ok(results)
    }

    /// Returns true if a case passes in the old version, but not in the new version.
    pub(super) fn passes_only_before(self, spec: &PolicyProbeSpec, case: &Case) -> bool {
        let passes = |policy, set| {
            let result = run_case(policy, spec, case, set);
            result.invalid.is_empty() && result.status.outcome == CaseOutcome::Passed
        };
        let ([old, new], [old_set, new_set]) = (self.policies, self.sets);
        passes(old, old_set) && !passes(new, new_set)
    }

    /// Returns the reason why requests that the policy matches exist only in the old version. `None` if the new version
    /// serves the resources that the rules of the policy name.
    pub(super) fn unserved(self) -> Option<String> {
        let [old, new] = self.policies;
        let [old_apis, new_apis] = self.sets.map(|set| set.known);
        let [old, new] = [(old, old_apis), (new, new_apis)]
            .map(|(policy, apis)| matching::resolve(&policy.object.value, &apis.mapper));
        let version = new_apis.kubernetes();
        if !old.resources.is_empty() && new.resources.is_empty() {
            return Some(format!(
                "Kubernetes {version} does not serve the resources that its rules match"
            ));
        }
        // The new Kubernetes version may serve the resource in another API version, and another rule may match the
        // resource in that API version.
        let is_matched = |unserved: &UnservedResource| {
            let mut resources = new.resources.iter();
            resources.any(|it| !it.by_wildcard && it.gvr.resource == unserved.name)
        };
        let was_served = |unserved: &UnservedResource| {
            let mut before = old.unserved.iter();
            !before.any(|it| it.field_ref == unserved.field_ref && it.name == unserved.name)
        };
        let mut gone = new.unserved.iter();
        let gone = gone.find(|unserved| was_served(unserved) && !is_matched(unserved))?;
        let suggestion = gone.suggestion.as_ref();
        let instead = suggestion.map(|it| format!("; it serves {it}"));
        Some(format!(
            "Kubernetes {version} does not serve {}, so {} no longer matches requests for it{}",
            gone.rule,
            gone.field_ref,
            instead.unwrap_or_default()
        ))
    }
}

/// Returns true if `recording` contains a value of the affected node.
pub(super) fn has_value(recording: &Recording, affected: &AffectedNode) -> bool {
    let recorded = recording.get(&(affected.index, affected.node.index()));
    recorded.is_some_and(RecordedValue::has_value)
}

/// Generates requests for a policy that both versions evaluate. `nodes` are the nodes that a change may affect, and
/// `bindings` the bindings of the input.
pub(super) fn generate(
    both: BothVersions<'_>,
    nodes: &[AffectedNode],
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
) -> Generated {
    let binding = generated_requests::binding(both.policies[0].name, bindings);
    let compiled = both.policies.map(|policy| &policy.compiled);
    let match_resources = binding.and_then(|binding| binding.spec.match_resources.as_ref());
    let compare = |context: &Context<'_>, is_cancelled: &Arc<AtomicBool>| {
        runtime_errors::compare_versions(compiled, context, nodes, match_resources, is_cancelled)
    };
    let comparison =
        match generated_requests::search(both.sets[0], both.sets[0].limit.for_search(), compare) {
            Ok(comparison) => comparison,
            Err(why) => {
                return Generated {
                    undecided: vec![why],
                    unreached: (0..nodes.len()).collect(),
                    ..Generated::default()
                };
            }
        };
    let mut generated = Generated {
        n_requests: comparison.n_requests,
        binding: binding.and_then(|it| it.metadata.name.clone()),
        ..Generated::default()
    };
    let mut last_error = None;
    let of_differences = comparison.differences.into_iter().map(|it| it.witness);
    let mut reached = comparison.reached;
    for witness in of_differences {
        match confirm(both, binding, witness, (nodes, &mut reached)) {
            Ok(Some(differing)) => generated.differing.push(differing),
            Ok(None) => {}
            Err(why) => last_error = Some(why),
        }
    }
    for witness in comparison.samples {
        match confirm(both, binding, witness, (nodes, &mut reached)) {
            Ok(confirmed) => {
                generated.n_requests += 1;
                generated.differing.extend(confirmed);
            }
            Err(why) => last_error = Some(why),
        }
    }
    let unreached = reached.iter().enumerate();
    let unreached = unreached.filter(|(_, is_reached)| !**is_reached);
    generated.unreached = unreached.map(|(n, _)| n).collect();
    if generated.n_requests == 0 {
        let why = match last_error {
            Some(why) => why,
            None => no_request(both),
        };
        generated.undecided.push(why);
    } else if let Some(why) = last_error.filter(|_| generated.differing.is_empty()) {
        let why = format!("a generated request differs, but cannot be confirmed: {why}");
        generated.undecided.push(why);
    }
    generated
}

/// Returns true if the rules of a policy match a known resource.
fn matches_a_resource(policy: &PreparedPolicy<'_>, apis: &Known) -> bool {
    let matches = matching::resolve(&policy.object.value, &apis.mapper);
    !matches.resources.is_empty()
}

fn no_request(both: BothVersions<'_>) -> String {
    let policy = both.policies[0];
    let apis = both.sets[0].known;
    if matches_a_resource(policy, apis) {
        "no valid request that its rules match was found; pass objects with -f, or probes"
            .to_owned()
    } else {
        let groups = rule_groups(policy);
        let is_builtin = |group: &String| is_kubernetes_group(group);
        if !groups.is_empty() && groups.iter().all(is_builtin) {
            format!(
                "its rules match no resource that Kubernetes {} serves",
                apis.kubernetes()
            )
        } else {
            "its rules match no known resource; pass the CustomResourceDefinitions with --crds"
                .to_owned()
        }
    }
}

fn rule_groups(policy: &PreparedPolicy<'_>) -> Vec<String> {
    let constraints = policy.object.value.match_constraints.as_ref();
    let rules = constraints.and_then(|it| it.resource_rules.as_ref());
    let groups = rules.into_iter().flatten();
    groups
        .flat_map(|rule| rule.api_groups.iter().flatten().cloned())
        .collect()
}

/// Returns true if the newest version of Kubernetes serves built-in resources of the group.
fn is_kubernetes_group(group: &str) -> bool {
    let served = Builtin::load(KubernetesVersion::NEWEST);
    served.is_ok_and(|served| served.resources().iter().any(|it| it.gvr.group == group))
}

/// Converts a generated request to a case, in the shortest form for which both versions differ. `None` if they do not
/// differ.
///
/// # Errors
/// Returns the reason why the request could not be evaluated.
fn confirm(
    both: BothVersions<'_>,
    binding: Option<&ValidatingAdmissionPolicyBinding>,
    witness: Witness,
    (nodes, reached): (&[AffectedNode], &mut [bool]),
) -> Result<Option<DifferingCase>, String> {
    let mut error = None;
    let mut is_evaluated = false;
    for is_short in [true, false] {
        let Some((spec, case)) =
            generated_requests::case(both.policies[0], binding, &witness, is_short)
        else {
            continue;
        };
        let results = match both.run(&spec, &case, (nodes, &mut *reached)) {
            Ok(results) => results,
            Err(why) => {
                error = Some(why);
                continue;
            }
        };
        is_evaluated |= results.iter().any(Option::is_some);
        let effects = effects([results[0].as_ref(), results[1].as_ref()]);
        if !effects.is_empty() {
            let differing = DifferingCase {
                spec,
                case,
                witness,
                effects,
            };
            return Ok(Some(differing));
        }
    }
    match error {
        Some(why) if !is_evaluated => Err(why),
        _ if !is_evaluated => Err(match binding.and_then(|it| it.metadata.name.as_ref()) {
            Some(name) => format!("the binding {name} does not match the request"),
            None => "the policy does not match the request".to_owned(),
        }),
        _ => Ok(None),
    }
}
