//! Finds wrong scopes of rules.

use goyaml::Node;

use crate::policy::matching::{Matches, UnservedResource};

/// Returns true if the scope is the only mistake of a rule: the scope excludes each resource of the rule, and no
/// resource of the rule has a counterpart with the other scope, as `roles` has the counterpart `clusterroles`.
/// `is_served` returns true for the name of a served resource.
pub(super) fn is_only_mistake(
    is_served: &dyn Fn(&str) -> bool,
    matches: &Matches,
    (rule, unserved): (&Node, &UnservedResource),
) -> bool {
    let of_rule: Vec<&str> = excluded_names(matches, unserved).collect();
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

/// Returns true if a rule would match all its resources if it had another scope.
pub(super) fn is_wrong(matches: &Matches, (rule, unserved): (&Node, &UnservedResource)) -> bool {
    let resources = rule.get("resources").map_or(&[][..], Node::items);
    !resources.is_empty() && resources.len() == excluded_names(matches, unserved).count()
}

/// Returns the names of the resources that the scope of a rule excludes. `unserved` is one of these resources.
fn excluded_names<'m>(
    matches: &'m Matches,
    unserved: &UnservedResource,
) -> impl Iterator<Item = &'m str> {
    let all = matches.unserved.iter();
    let of_rule =
        all.filter(move |it| it.index == unserved.index && it.suggestion == unserved.suggestion);
    of_rule.map(|it| it.name.as_str())
}
