//! Selects a few kinds that represent all kinds that the rules of a policy match.

use std::collections::HashSet;

use k8s_openapi::api::admissionregistration::v1::MatchResources;

use crate::admission::Operation;
use crate::matching::Target;
use kubernetes::schema::rest_mapper::ApiResource;

/// Maximum number of representatives of the kinds matched by name.
const MAX_KINDS: usize = 16;

/// Preferred representatives of the kinds matched by a wildcard, best first.
const USUAL_KINDS: [(&str, &str); 3] = [("", "Pod"), ("apps", "Deployment"), ("", "ConfigMap")];

/// Maximum number of representatives of the kinds matched by a wildcard. There are such representatives only if no rule
/// matches a kind by name.
const MAX_WILDCARD_KINDS: usize = 2;

/// Returns resources that represent all matched resources, each with the operations of its requests.
///
/// If rules match resources by name, the result contains one resource for each of the first [`MAX_KINDS`] kinds.
/// Otherwise it contains one resource for each of [`MAX_WILDCARD_KINDS`] kinds, preferably [`USUAL_KINDS`]. A resource
/// is preferred to a subresource of the same kind.
pub(crate) fn representative_kinds<'a>(
    targets: &'a [Target<'a>],
) -> Vec<(&'a ApiResource, Vec<Operation>)> {
    representative_kinds_up_to(targets, MAX_KINDS)
}

/// Like [`representative_kinds`], but with `max` instead of [`MAX_KINDS`]. The limit for wildcards remains
/// [`MAX_WILDCARD_KINDS`].
pub(crate) fn representative_kinds_up_to<'a>(
    targets: &'a [Target<'a>],
    max: usize,
) -> Vec<(&'a ApiResource, Vec<Operation>)> {
    let named: Vec<_> = targets
        .iter()
        .filter(|target| !target.by_wildcard)
        .collect();
    let by_wildcard: Vec<_> = targets.iter().filter(|target| target.by_wildcard).collect();
    let mut chosen = one_per_kind(&named, max);
    if chosen.is_empty() {
        let is_usual = |target: &&&Target<'_>| {
            let gvk = &target.resource.gvk;
            USUAL_KINDS.contains(&(&*gvk.group, &*gvk.kind))
        };
        let mut ordered: Vec<_> = by_wildcard.iter().filter(is_usual).copied().collect();
        let rank = |target: &&Target<'_>| {
            USUAL_KINDS
                .iter()
                .position(|(_, kind)| *kind == target.resource.gvk.kind)
        };
        ordered.sort_by_key(rank);
        ordered.extend(by_wildcard.iter().filter(|target| !is_usual(target)));
        chosen = one_per_kind(&ordered, MAX_WILDCARD_KINDS);
    }
    chosen
        .into_iter()
        .map(|target| (target.resource, operations(target)))
        .collect()
}

/// Returns the targets that the rules of `match_resources` list by name. Returns all targets if there are no such
/// rules.
pub(crate) fn named_targets<'a>(
    targets: Vec<Target<'a>>,
    match_resources: Option<&MatchResources>,
) -> Vec<Target<'a>> {
    let rules = match_resources.and_then(|it| it.resource_rules.as_deref());
    let rules = rules.unwrap_or_default();
    let has =
        |values: &Option<Vec<String>>, value: &str| values.iter().flatten().any(|it| it == value);
    let is_named = |target: &Target<'_>| {
        let gvr = &target.resource.gvr;
        let mut rules = rules.iter();
        rules.any(|it| has(&it.api_groups, &gvr.group) && has(&it.resources, &gvr.resource))
    };
    if targets.iter().any(is_named) {
        targets.into_iter().filter(is_named).collect()
    } else {
        targets
    }
}

/// Returns the number of kinds that rules match by name.
pub(crate) fn named_kinds(targets: &[Target<'_>]) -> usize {
    let named = targets.iter().filter(|target| !target.by_wildcard);
    let kinds: HashSet<_> = named.map(|target| &target.resource.gvk).collect();
    kinds.len()
}

/// Returns the operations of requests for `target`. The most common operation is first.
pub(crate) fn operations(target: &Target<'_>) -> Vec<Operation> {
    let names: Vec<_> = target.operations.names().collect();
    // A status or a scale can only be updated.
    let (_, subresource) = target
        .resource
        .gvr
        .resource
        .split_once('/')
        .unwrap_or_default();
    let is_only_changed = matches!(subresource, "status" | "scale");
    let all = [
        Operation::Create,
        Operation::Update,
        Operation::Delete,
        Operation::Connect,
    ];
    all.into_iter()
        .filter(|operation| names.contains(&operation.as_str()))
        .filter(|operation| !is_only_changed || *operation == Operation::Update)
        .collect()
}

/// Returns at most `max` targets, one per kind. A resource is preferred to a subresource.
pub(crate) fn one_per_kind<'a>(targets: &[&'a Target<'a>], max: usize) -> Vec<&'a Target<'a>> {
    let mut seen = HashSet::new();
    let (subresources, resources): (Vec<_>, Vec<_>) = targets
        .iter()
        .copied()
        .partition(|target| target.resource.gvr.is_subresource());
    resources
        .into_iter()
        .chain(subresources)
        .filter(|target| seen.insert(&target.resource.gvk))
        .take(max)
        .collect()
}
