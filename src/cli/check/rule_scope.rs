//! Corrects the scope of a rule that excludes the rule's resources.

use goyaml::Node;

use super::known::Known;
use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::policy::RequestPolicy;
use crate::policy::matching::{Matches, UnservedResource};

/// Replaces the scope of a rule if only the scope excludes the rule's resources. The edit is an assumption instead of a
/// fix if the resource may be the mistake.
pub(super) fn edit(
    policy: &Object<RequestPolicy>,
    rule: &Node,
    unserved: &UnservedResource,
) -> Option<Edit> {
    let meant = unserved.suggestion.as_deref()?.strip_prefix("scope: ")?;
    let document = &policy.document;
    document.edit_value(&policy.source, rule.get("scope")?, meant)
}

/// Returns true if the scope is the only mistake of a rule: it excludes each resource, and no resource has a counterpart of
/// the other scope, such as `clusterroles` for `roles`.
pub(super) fn is_only_mistake(
    known: &Known,
    matches: &Matches,
    (rule, unserved): (&Node, &UnservedResource),
) -> bool {
    let others = matches.unserved.iter();
    let of_rule: Vec<&str> = others
        .filter(|it| it.index == unserved.index && it.suggestion == unserved.suggestion)
        .map(|it| it.name.as_str())
        .collect();
    let is_served = |name: &str| {
        let mut resources = known.mapper.resources.iter();
        resources.any(|it| it.gvr.resource == name)
    };
    let has_counterpart = |name: &str| match name.strip_prefix("cluster") {
        Some(rest) => is_served(rest),
        None => is_served(&format!("cluster{name}")),
    };
    let mut resources = rule.get("resources").map_or(&[][..], Node::items).iter();
    resources.all(|item| {
        let name = item.as_str().unwrap_or_default();
        of_rule.contains(&name) && !has_counterpart(name)
    })
}
