//! Fields of a policy and its bindings that the controller does not know, because the API server is newer than the
//! supported versions.
//!
//! A condition is Unknown if it depends on such a field. An unknown field within a known part of the spec affects only
//! the conditions that are computed from this part. If a whole part of the spec is unknown, it can affect all
//! conditions.

use super::compute::{Observations, unsupported_version};
use super::condition::{ConditionStatus, ConditionType, Reason};
use super::verdict::Verdict;

/// The unknown fields, as paths such as `spec.validations[0].new`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownFields {
    /// The fields of the policy or webhook configuration.
    pub policy: Vec<String>,
    /// The name of each binding with such fields, and the fields.
    pub bindings: Vec<(String, Vec<String>)>,
}

/// Returns the verdict of a condition that depends on an unknown field. `None` if no unknown field affects it. On a
/// supported version, fields cannot be unknown.
pub(super) fn verdict(type_: ConditionType, observed: &Observations<'_>) -> Option<Verdict> {
    let server = observed.server;
    if !server.version.is_too_new() {
        return None;
    }
    let UnknownFields { policy, bindings } = &observed.unknown_fields;
    let of_policy = policy.iter().filter(|path| affects(path, type_));
    let of_policy = of_policy.map(|path| format!("the field {path}"));
    let of_bindings = bindings.iter().flat_map(|(binding, paths)| {
        let paths = paths.iter().filter(|path| binding_affects(path, type_));
        paths.map(move |path| format!("the field {path} of the binding {binding}"))
    });
    let mut fields = of_policy.chain(of_bindings);
    let first = fields.next()?;
    let more = match fields.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(Verdict::new(
        ConditionStatus::Unknown,
        Reason::UnknownField,
        format!(
            "{first}{more} is not known to vap-status-controller{}; upgrade vap-status-controller",
            unsupported_version(server)
        ),
    ))
}

/// Returns true if a condition depends on a field of a policy or of a webhook.
fn affects(path: &str, type_: ConditionType) -> bool {
    use ConditionType::{Bound, Compiled, ParamsResolved, ProbesPassed, ResourcesMatched};
    let path = match path.strip_prefix("webhooks[") {
        Some(rest) => rest.split_once("].").map_or(rest, |(_, path)| path),
        None => path.strip_prefix("spec.").unwrap_or(path),
    };
    let part = path.split(['.', '[']).next().unwrap_or(path);
    let is_part = part.len() < path.len();
    match type_ {
        ConditionType::TypeChecked | ProbesPassed => true,
        Compiled => !(is_part && matches!(part, "matchConstraints" | "paramKind" | "rules")),
        ResourcesMatched => !is_part || matches!(part, "matchConstraints" | "rules"),
        ParamsResolved => !is_part || part == "paramKind",
        Bound | ConditionType::Ready | ConditionType::Stalled => false,
    }
}

/// Returns true if a condition depends on a field of a binding.
fn binding_affects(path: &str, type_: ConditionType) -> bool {
    match type_ {
        ConditionType::Bound | ConditionType::ProbesPassed => true,
        ConditionType::ParamsResolved => !path.starts_with("spec.matchResources."),
        _ => false,
    }
}
