//! Compares the rules for creating policies and bindings in both versions. Finds the changes of the classes REFUSED and
//! TAKEN, and the policies that are not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use k8s_openapi::api::admissionregistration::v1::{Mutation, ValidatingAdmissionPolicyBinding};

use super::others::Others;
use super::report::{Change, Class, Reason, Undecided};
use super::{change, mutating_policy, place, reasons};
use crate::cli::check::api_version;
use crate::cli::check::finding::{Finding, Owner};
use crate::cli::check::known::Known;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::eval::setup::Setup;
use crate::cli::input::Object;
use crate::cli::test::rejection;
use crate::policy::RequestPolicy;
use crate::policy::compile::CompiledPolicy;
use crate::policy::rule::Rule;
use crate::policy::version_changes;
use crate::probe::target::TargetId;
use crate::schema::{Builtin, Gvr};
use crate::version::{KubernetesVersion, StaticNames};

/// Adds the errors for which each version rejects new policies and bindings. Marks a policy from a file as rejected if
/// it has an error.
pub(super) fn apply_creation_rules(
    (setup, other_objects): (&Setup, &Others),
    static_dir: Option<&Path>,
    [before, after]: [&mut PolicySet<'_>; 2],
    [old_errors, new_errors]: [&mut Vec<Finding>; 2],
) {
    let apis = [before.known, after.known];
    add_live_rejections(setup, before, old_errors);
    add_live_rejections(setup, after, new_errors);
    rejection::add_creation_errors(&setup.input, before.known, static_dir, old_errors);
    rejection::add_creation_errors(&setup.input, after.known, static_dir, new_errors);
    new_errors.extend(removed_versions(setup, apis));
    reject(before, old_errors);
    reject(after, new_errors);
    for (known, errors) in apis.into_iter().zip([old_errors, new_errors]) {
        errors.extend(other_objects.creation_errors(&setup.input, known, static_dir));
    }
    // The old API server has stored the policies that it accepts. The new API server evaluates them even if it would
    // reject them as new policies.
    for (old, new) in before.policies.iter().zip(&mut after.policies) {
        if old.rejection.is_none() {
            new.rejection = None;
        }
    }
}

/// Adds the errors for which an API server would reject the policies of the cluster if they were created again.
/// `policy_set` determines the version of the API server.
fn add_live_rejections(setup: &Setup, policy_set: &PolicySet<'_>, errors: &mut Vec<Finding>) {
    let live = policy_set.policies.iter().filter(|policy| policy.is_live);
    let live: BTreeSet<TargetId> = live.map(PreparedPolicy::id).collect();
    if live.is_empty() {
        return;
    }
    let apis = policy_set.known;
    let mut rejections = rejection::check_policies(&setup.input, apis, &live, errors);
    rejection::check_mutating_policies(&setup.input, apis, &live, errors, &mut rejections);
}

/// Returns an error for each policy or binding in a file if only the old version serves its `apiVersion`.
fn removed_versions(setup: &Setup, known: [&Known; 2]) -> Vec<Finding> {
    let policies = policies_of_files(setup);
    let mut errors: Vec<Finding> = policies
        .filter_map(|policy| api_version::removed(policy, known))
        .collect();
    if setup.server.is_none() {
        let input = &setup.input;
        let bindings = input.bindings.iter().chain(&input.mutating_bindings);
        errors.extend(bindings.filter_map(|binding| api_version::removed(binding, known)));
    }
    errors
}

/// Returns the policies of files, with the shared parts of mutating policies.
fn policies_of_files(setup: &Setup) -> impl Iterator<Item = &Object<RequestPolicy>> {
    let cluster_inputs = setup.cluster_inputs.as_ref();
    let n_own = cluster_inputs.map_or(usize::MAX, |it| it.n_own_policies);
    let n_mutating = cluster_inputs.map_or(usize::MAX, |it| it.n_own_mutating);
    let policies = setup.input.policies.iter().take(n_own);
    let mutating = setup.input.mutating_policies.iter().take(n_mutating);
    policies.chain(mutating.map(|policy| &policy.shared))
}

/// Returns a warning for each policy in a file if neither version serves the policy's `apiVersion`. Like `check`, the
/// comparison reads such a policy as if it had the stable version.
pub(super) fn unserved_versions(setup: &Setup, new: &Known, errors: &[Finding]) -> Vec<Finding> {
    let unserved = policies_of_files(setup).filter(|policy| {
        let gvr = api_version::resource_of(policy);
        let mut both = [&setup.known, new].into_iter();
        gvr.is_some_and(|gvr| both.all(|apis| apis.mapper.resource(&gvr).is_none()))
    });
    let warnings = unserved.filter_map(|policy| api_version::policy_finding(policy, new));
    let is_error = |finding: &Finding| {
        let mut errors = errors.iter();
        errors.any(|error| error.owner == finding.owner && error.message == finding.message)
    };
    warnings
        .filter(|finding| !finding.rejected && !is_error(finding))
        .collect()
}

/// Marks each policy from a file as rejected if the policy has errors, with the message of the first error.
fn reject(policy_set: &mut PolicySet<'_>, errors: &[Finding]) {
    let by_object = errors_by_object(errors);
    for policy in &mut policy_set.policies {
        if policy.is_live || policy.rejection.is_some() {
            continue;
        }
        let errors = by_object.get(&policy_key(policy));
        policy.rejection = errors.and_then(|errors| Some(errors.first()?.message.clone()));
    }
}

/// The ids of the changes that affect the estimated costs of validation rules.
const ESTIMATES: &[&str] = &["function-costs", "estimates-of-variables"];

/// The noun for a CustomResourceDefinition in a list of errors.
const CRD: &str = "CustomResourceDefinition";

/// Identifies an object in a list of errors: the noun of its kind, its name, and its file.
type ObjectKey<'a> = (&'static str, &'a str, &'a str);

fn policy_key<'a>(policy: &'a PreparedPolicy<'_>) -> ObjectKey<'a> {
    ("policy", policy.name, &policy.object.source.name)
}

/// Returns the policies that the old version, `from`, rejects, each with the first error. `old` and `new` are the errors
/// of both versions.
fn rejected_policies(
    before: &PolicySet<'_>,
    [old, new]: [&BTreeMap<ObjectKey<'_>, Vec<&Finding>>; 2],
    from: KubernetesVersion,
) -> Vec<Undecided> {
    let mut not_compared = Vec::new();
    for (index, policy) in before.policies.iter().enumerate() {
        let Some(why) = &policy.rejection else {
            continue;
        };
        let key = policy_key(policy);
        let first = |errors: &BTreeMap<ObjectKey<'_>, Vec<&Finding>>| {
            let first = errors.get(&key)?.first()?;
            Some(first.message.clone())
        };
        let message = first(old).unwrap_or_else(|| why.clone());
        let reason = match first(new) {
            Some(_) => format!("both versions reject it: {message}"),
            None => format!("{from} rejects it: {message}"),
        };
        not_compared.push(Undecided {
            index,
            policy: policy.id().to_string(),
            place: place(policy, None),
            reason,
            unserved: false,
        });
    }
    not_compared
}

/// Returns a change for each policy or binding that only one of the two API servers accepts, with the first error. Also
/// returns the policies that are not compared because the old version rejects them.
pub(super) fn rejections(
    before: &PolicySet<'_>,
    (setup, other_objects): (&Setup, &Others),
    [old, new]: [&[Finding]; 2],
    versions: (KubernetesVersion, KubernetesVersion),
) -> (Vec<Change>, Vec<Undecided>) {
    let [old, new] = [old, new].map(errors_by_object);
    let not_compared = rejected_policies(before, [&old, &new], versions.0);
    let mut changes = Vec::new();
    for (class, rejected, other) in [(Class::Refused, &new, &old), (Class::Taken, &old, &new)] {
        for (key, findings) in rejected {
            let Some((first, others)) = findings.split_first() else {
                continue;
            };
            if other.contains_key(key) {
                continue;
            }
            let (noun, name, file) = *key;
            let mut policies = before.policies.iter().enumerate();
            let policy = policies.find(|(_, policy)| policy_key(policy) == *key);
            let mutating = policy.and_then(|(_, policy)| mutating_policy(&setup.input, policy));
            let mutations = mutating.map(|it| it.mutations.as_slice());
            let field = first.field_ref.clone();
            let api = {
                let input = &setup.input;
                let is_it = |it: &&Object<ValidatingAdmissionPolicyBinding>| {
                    it.name() == Some(name) && *it.source.name == *file
                };
                let mut bindings = input.bindings.iter().chain(&input.mutating_bindings);
                match policy {
                    Some((_, policy)) => api_version::resource_of(policy.object),
                    None => bindings.find(is_it).and_then(api_version::resource_of),
                }
            };
            let reason = match first.rule {
                Rule::OldVersion => api.and_then(|gvr| served_since(&gvr, versions, class)),
                Rule::InvalidName => names_since(versions),
                _ if noun == CRD => {
                    let is_changed = |version| {
                        other_objects.accepts((name, file), version) == (class == Class::Taken)
                    };
                    let is_cost = first.message.contains(" cost exceeds ");
                    let ids: &[&str] = if is_cost { ESTIMATES } else { &[] };
                    first_release_with(versions, ids, is_changed)
                }
                _ => policy
                    .zip(field.as_deref())
                    .and_then(|((_, policy), field)| {
                        rejection_reason((policy, mutations), field, versions, class)
                    }),
            };
            let name = match noun {
                "policy" => name.to_owned(),
                noun => format!("{noun} {name}"),
            };
            let [accepted, rejected] = ["accepted", "rejected"].map(str::to_owned);
            let message = Some(first.message.clone());
            let (old, new, old_message, new_message) = match class {
                Class::Refused => (accepted, rejected, None, message),
                _ => (rejected, accepted, message, None),
            };
            let is_new = class == Class::Refused
                && matches!(
                    first.rule,
                    Rule::NewerFunction | Rule::OldVersion | Rule::InvalidName
                );
            changes.push(Change {
                class,
                other_fields: others
                    .iter()
                    .filter_map(|it| it.field_ref.clone())
                    .collect(),
                old,
                old_message,
                new,
                new_message,
                reason,
                fix: first.help.clone().filter(|_| is_new),
                ..change(policy.map(|(_, policy)| policy), name, field)
            });
            if let Some(change) = changes.last_mut() {
                change.index = policy.map(|(index, _)| index);
                if policy.is_none() {
                    let line = first.location.place.map_or(1, |place| place.line);
                    change.place = Some(format!("{file}:{line}"));
                }
            }
        }
    }
    (changes, not_compared)
}

fn errors_by_object(findings: &[Finding]) -> BTreeMap<ObjectKey<'_>, Vec<&Finding>> {
    let mut by_object: BTreeMap<ObjectKey<'_>, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let (noun, name) = match &finding.owner {
            Owner::Binding(name) => ("binding", name.as_str()),
            Owner::Crd(name) => (CRD, name.as_str()),
            Owner::Webhook { configuration, .. } => (
                "webhook configuration",
                configuration.as_deref().unwrap_or_default(),
            ),
            owner => ("policy", owner.name().unwrap_or_default()),
        };
        let key = (noun, name, finding.location.file.as_str());
        by_object.entry(key).or_default().push(finding);
    }
    by_object
}

/// Finds the first release in which the API server serves a resource (class TAKEN), or no longer serves it (other
/// classes).
fn served_since(
    gvr: &Gvr,
    versions: (KubernetesVersion, KubernetesVersion),
    class: Class,
) -> Option<Reason> {
    let reason = first_release_with(versions, &[], |version| {
        let builtin = Builtin::load(version);
        let is_served = builtin.is_ok_and(|it| it.resources().iter().any(|it| it.gvr == *gvr));
        is_served == (class == Class::Taken)
    })?;
    let summary = if class == Class::Taken {
        "API servers serve this API version."
    } else {
        "API servers no longer serve this API version."
    };
    Some(Reason {
        change: Some("api-versions"),
        summary: Some(summary),
        source: Some("k8s.io/kubernetes api/openapi-spec/v3"),
        ..reason
    })
}

/// Finds the first release in which the API server rejects names that are reserved for static manifests.
fn names_since(versions: (KubernetesVersion, KubernetesVersion)) -> Option<Reason> {
    first_release_with(versions, &["static-names"], |version| {
        version.behavior().static_names == StaticNames::Rejected
    })
}

/// Finds the first release after `from` for which `is_changed` is true. Returns a reason with this release and the
/// first of the changes `ids` that the release contains.
pub(super) fn first_release_with(
    (from, to): (KubernetesVersion, KubernetesVersion),
    ids: &[&str],
    is_changed: impl Fn(KubernetesVersion) -> bool,
) -> Option<Reason> {
    let mut previous = from;
    for step in from.steps_to(to) {
        if is_changed(step) {
            let mut changes = version_changes::between(previous, step);
            let change = changes.find(|change| ids.contains(&change.id));
            return Some(reasons::reason(change, (previous, step)));
        }
        previous = step;
    }
    None
}

/// Finds the first release in which the API server rejects the expression `field` of a new policy (class REFUSED), or
/// accepts it (other classes).
fn rejection_reason(
    (policy, mutations): (&PreparedPolicy<'_>, Option<&[Mutation]>),
    field: &str,
    (from, to): (KubernetesVersion, KubernetesVersion),
    class: Class,
) -> Option<Reason> {
    let compile =
        |version| CompiledPolicy::from_parts(policy.object.value.clone(), mutations, version);
    let newest = compile(KubernetesVersion {
        min_compat: KubernetesVersion::NEWEST.minor,
        ..KubernetesVersion::NEWEST
    });
    let mut previous = from;
    for step in from.steps_to(to) {
        let refused = compile(step).refused();
        let is_refused = refused.iter().any(|it| it.field_ref == field)
            || newest.too_new(step).iter().any(|it| it.field_ref == field);
        if is_refused == (class == Class::Refused) {
            let compiled = &policy.compiled;
            let mut expressions = compiled.expressions().iter();
            let text = expressions
                .find(|it| it.field_ref == field)
                .map(|it| &it.text);
            let change =
                text.and_then(|text| version_changes::compiling_change(text, previous, step));
            return Some(reasons::reason(change, (previous, step)));
        }
        previous = step;
    }
    None
}
