//! Findings about bindings whose params are not among the objects of the param kind in the input.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::finding::{Assumption, Finding, Severity};
use super::policy::object_finding;
use crate::cli::input::skipped::ByKind;
use crate::cli::input::{Input, Object};
use crate::policy::nearest::is_near;
use crate::policy::rule::Rule;
use crate::policy::{RequestPolicy, declared_param_kind};
use crate::status::message;

/// The namespace and the name of an object. A namespace that is not set is empty.
type Name = (String, String);

/// Returns a finding for each binding whose paramRef names no object of the input, although the input has objects of
/// the param kind.
///
/// The finding is a warning if the input has an object with a similar name. Otherwise, it is a note, because the params
/// may be outside the input.
pub(super) fn check(input: &Input) -> Vec<Finding> {
    check_in(input, &input.dropped)
}

/// Like [`check`], but searches `objects` instead of the objects of `input`.
pub(super) fn check_in(input: &Input, objects: &ByKind) -> Vec<Finding> {
    let policies: Vec<_> = input.policies.iter().map(|policy| &policy.value).collect();
    let mutating = input.mutating_policies.iter();
    let mutating: Vec<_> = mutating.map(|policy| &policy.shared.value).collect();
    let pairs = [
        (&input.bindings, policies),
        (&input.mutating_bindings, mutating),
    ];
    let mut findings = Vec::new();
    for (bindings, policies) in pairs {
        let all = bindings.iter();
        findings.extend(all.filter_map(|binding| missing(binding, &policies, objects)));
    }
    findings
}

fn missing(
    binding: &Object<ValidatingAdmissionPolicyBinding>,
    policies: &[&RequestPolicy],
    objects: &ByKind,
) -> Option<Finding> {
    let spec = &binding.value.spec;
    let param_ref = spec.param_ref.as_ref()?;
    let name = param_ref.name.as_deref().filter(|name| !name.is_empty())?;
    let is_own = |policy: &&&RequestPolicy| policy.name.as_deref() == Some(&*spec.policy_name);
    let policy = policies.iter().find(is_own)?;
    let gvk = declared_param_kind(policy)?;
    let objects = objects.get(&(gvk.api_version(), gvk.kind.clone()))?;
    let names = &objects.names;
    let namespace = param_ref.namespace.as_deref().unwrap_or_default();
    let is_found = |(of, own): &Name| own == name && is_in_namespace(of, namespace);
    if names.iter().any(is_found) || !objects.has_all_names() {
        return None;
    }
    let similar = similar(names, (namespace, name));
    let field = similar.map_or("name", |(field, _)| field);
    let message = format!(
        "the input has no {} `{}`",
        message::kind(&gvk),
        if namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{namespace}/{name}")
        }
    );
    let effect = match param_ref.parameter_not_found_action.as_deref() {
        Some("Allow") => {
            "with parameterNotFoundAction Allow, a binding without params has no effect"
        }
        _ => "with parameterNotFoundAction Deny, requests are denied if the params do not exist",
    };
    let field_ref = format!("spec.paramRef.{field}");
    let node = binding.document.node.nearest(&field_ref);
    let place = binding.place_of(node);
    // The params may be outside the input unless a similar name suggests a mistake.
    let severity = similar.map_or(Severity::Note, |_| Severity::Warning);
    let mut finding = object_finding(binding, severity, Rule::ParamsNotFound, &message, place);
    finding.location.length = binding.length_of(node);
    finding.help = Some(match similar {
        Some((_, meant)) => format!("did you mean `{meant}`? {effect}"),
        None => effect.to_owned(),
    });
    let edit = similar.and_then(|(_, meant)| {
        let document = &binding.document;
        document.edit_value(&binding.source, node, meant)
    });
    finding.assumption = edit.map(Assumption::new);
    finding.field_ref = Some(field_ref);
    Some(finding)
}

/// Returns true if an object with the namespace `of` may be in the namespace of a paramRef. An object without a namespace
/// may be created in any namespace, and a paramRef without a namespace refers to that of the request.
fn is_in_namespace(of: &str, namespace: &str) -> bool {
    of.is_empty() || namespace.is_empty() || of == namespace
}

/// Returns the field of the paramRef that is probably misspelled, and its correct value: either the namespace of an
/// object with the name in the paramRef, or the name of an object in the namespace of the paramRef.
fn similar<'n>(
    names: &'n BTreeSet<Name>,
    (namespace, name): (&str, &str),
) -> Option<(&'static str, &'n str)> {
    let in_other = names
        .iter()
        .find(|(of, own)| own == name && is_near(of, namespace));
    let with_other = || {
        let mut near = names.iter();
        near.find(|(of, own)| is_in_namespace(of, namespace) && is_near(own, name))
    };
    match in_other {
        Some((of, _)) => Some(("namespace", of)),
        None => with_other().map(|(_, own)| ("name", &**own)),
    }
}
