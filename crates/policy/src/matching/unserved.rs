//! Describes resources in rules that the cluster does not serve, and suggests the resource that was probably intended.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use kubernetes::schema::Gvk;
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};

use super::{UnservedResource, field_ref, list};
use crate::nearest::{is_near, nearest_of};

/// Maximum number of unserved resources for which similar names are looked up.
pub(super) const MAX_SEARCHED: usize = 20;

/// Maximum number of shown values of a list.
const MAX_SHOWN: usize = 10;

/// Maximum length of a shown value of a list, in bytes. Group names are not longer.
const MAX_SHOWN_BYTES: usize = 253;

/// The short names of resources that kubectl accepts, each with the resource.
const SHORT_NAMES: [(&str, &str); 27] = [
    ("cj", "cronjobs"),
    ("cm", "configmaps"),
    ("crd", "customresourcedefinitions"),
    ("crds", "customresourcedefinitions"),
    ("csr", "certificatesigningrequests"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("ep", "endpoints"),
    ("ev", "events"),
    ("hpa", "horizontalpodautoscalers"),
    ("ing", "ingresses"),
    ("limits", "limitranges"),
    ("netpol", "networkpolicies"),
    ("no", "nodes"),
    ("ns", "namespaces"),
    ("pc", "priorityclasses"),
    ("pdb", "poddisruptionbudgets"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rc", "replicationcontrollers"),
    ("rs", "replicasets"),
    ("sa", "serviceaccounts"),
    ("sc", "storageclasses"),
    ("sts", "statefulsets"),
    ("svc", "services"),
];

fn shortened(value: &str) -> &str {
    let ends = value.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= MAX_SHOWN_BYTES).last();
    value.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Joins the values of a rule's list for a message.
fn joined(values: &[String]) -> String {
    let shown = values.iter().take(MAX_SHOWN);
    // The name of the core group is empty, so it is quoted if the list has other values.
    let shown = shown.map(|value| match shortened(value) {
        "" if values.len() > 1 => "\"\"",
        value => value,
    });
    let shown: Vec<_> = shown.collect();
    match values.len().checked_sub(MAX_SHOWN) {
        Some(n_left @ 1..) => format!("{},… ({n_left} more)", shown.join(",")),
        _ => shown.join(","),
    }
}

pub(super) fn unserved(
    n: usize,
    rule: &NamedRuleWithOperations,
    name: &str,
    mapper: &RestMapper,
    is_searched: bool,
) -> UnservedResource {
    let groups = list(rule.api_groups.as_ref());
    let versions = joined(list(rule.api_versions.as_ref()));
    let group_version = match joined(groups) {
        core if core.is_empty() => versions,
        groups => format!("{groups}/{versions}"),
    };
    let all_versions = list(rule.api_versions.as_ref());
    let variant = suggestion((groups, all_versions), name, mapper);
    let is_variant = variant.as_ref().is_some_and(|(group, _)| group.is_none());
    let (suggestion, is_only) = match variant {
        Some((Some(group), name)) => (Some(format!("{group} {name}")), None),
        Some((None, name)) => (Some(name), None),
        // The name may be correct if discovery of its group is incomplete. A merely similar name is therefore suggested
        // last.
        None if is_searched => near(groups, name, mapper).unzip(),
        None => (None, None),
    };
    let meant = suggestion.as_deref().filter(|_| is_only == Some(true));
    let is_misspelled = is_variant || meant.is_some_and(|meant| is_typo(rule, name, meant));
    let words = format!("{group_version} {name}");
    let suggestion = match rule.scope.as_deref() {
        Some("Cluster" | "Namespaced") if is_excluded_by_scope(rule, name, mapper) => {
            Some(format!("scope: {}", scope_of_all(rule, mapper)))
        }
        _ => suggestion,
    };
    UnservedResource {
        field_ref: field_ref(n),
        index: n,
        rule: words,
        name: name.to_owned(),
        is_misspelled,
        is_known: is_known(groups, name, mapper),
        suggestion,
    }
}

/// Returns true if the groups and versions of `rule` include a served resource `name`, so that only the scope excludes
/// it.
fn is_excluded_by_scope(rule: &NamedRuleWithOperations, name: &str, mapper: &RestMapper) -> bool {
    let includes = |values: Option<&Vec<String>>, value: &str| {
        list(values).iter().any(|it| it == value || it == "*")
    };
    mapper.resources.iter().any(|served| {
        served.gvr.resource == name
            && includes(rule.api_groups.as_ref(), &served.gvr.group)
            && includes(rule.api_versions.as_ref(), &served.gvr.version)
    })
}

/// Returns the scope that includes all served resources of `rule`.
fn scope_of_all(rule: &NamedRuleWithOperations, mapper: &RestMapper) -> &'static str {
    let names = list(rule.resources.as_ref());
    let served = mapper.resources.iter().filter(|served| {
        let is_named = names.contains(&served.gvr.resource);
        is_named && is_excluded_by_scope(rule, &served.gvr.resource, mapper)
    });
    let is_namespaced: BTreeSet<bool> = served.map(|served| served.namespaced).collect();
    match (is_namespaced.first(), is_namespaced.last()) {
        (Some(true), Some(true)) => "Namespaced",
        (Some(false), Some(false)) => "Cluster",
        _ => "*",
    }
}

/// Returns true if the groups differ only in the last label, such as `pki.acme.com` and `pki.acme.io`.
fn differ_in_domain(group: &str, other: &str) -> bool {
    let parts = [group, other].map(|name| name.rsplit_once('.'));
    matches!(parts, [Some((own, _)), Some((others, _))] if own == others)
}

/// Returns true if `group` lacks the last labels of `served`, as in `rbac.authorization.k8s`. Also returns true if
/// `group` is `served` with an added `.k8s.io` or `.k8s`, as in `apps.k8s.io`.
fn differ_in_length(group: &str, served: &str) -> bool {
    let is_part = !group.is_empty()
        && served
            .strip_prefix(group)
            .is_some_and(|it| it.starts_with('.'));
    // The core group has no name.
    let name = if served.is_empty() { "core" } else { served };
    is_part || matches!(group.strip_prefix(name), Some(".k8s.io" | ".k8s"))
}

/// Returns true if the rule has only one possible group, and this group or a group with a similar name serves a
/// resource `name`. For a subresource, the main resource is sufficient.
fn is_known(groups: &[String], name: &str, mapper: &RestMapper) -> bool {
    let is_served = |group: &String| mapper.resources.iter().any(|it| it.gvr.group == *group);
    let possible = groups.iter().filter(|it| it.contains('.') || is_served(it));
    let possible: Vec<&String> = possible.collect();
    let [group] = *possible else {
        return false;
    };
    let main = |name: &str| name.split('/').next().map(str::to_owned);
    let mut resources = mapper.resources.iter();
    resources.any(|served| {
        let of_group = &served.gvr.group;
        let is_group = || {
            of_group == group
                || is_near(of_group, group)
                || differ_in_domain(of_group, group)
                || differ_in_length(group, of_group)
        };
        main(&served.gvr.resource) == main(name) && is_group()
    })
}

/// Returns the most similar served resource in `groups`, and true if no other resource is equally similar. For a
/// subresource, only subresources of the same resource are considered.
fn near(groups: &[String], name: &str, mapper: &RestMapper) -> Option<(String, bool)> {
    let main = |name: &str| name.split_once('/').map(|(main, _)| main.to_owned());
    let names = mapper
        .resources
        .iter()
        .filter(|r| groups.contains(&r.gvr.group))
        .map(|r| r.gvr.resource.as_str())
        .filter(|known| main(known) == main(name));
    nearest_of(name, names).map(|(known, is_only)| (known.to_owned(), is_only))
}

/// Minimum length in bytes of a name that counts as misspelled if a served name differs from it by one edit. Shorter
/// names of different resources often differ by only one edit.
const MIN_TYPO_BYTES: usize = 6;

/// Returns true if `name` is very likely a misspelling of `meant`, a resource of the same group. The names must be
/// long, must differ by at most one edit and not in a digit, and the rule must not list `meant`.
fn is_typo(rule: &NamedRuleWithOperations, name: &str, meant: &str) -> bool {
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    let is_long = name.len().min(meant.len()) >= MIN_TYPO_BYTES;
    let is_listed = list(rule.resources.as_ref()).iter().any(|it| it == meant);
    is_long && !is_listed && digits(name) == digits(meant) && is_near(name, meant)
}

/// A version such as `v2beta1`: the major version, the stability (0 for alpha, 2 for a stable version), and the minor
/// version.
type VersionParts = (u32, u8, u32);

/// Parses a version of an API group. `None` for a version in another format.
///
/// Source: `k8s.io/apimachinery` `pkg/version/helpers.go`, `parseKubeVersion`.
fn version_parts(version: &str) -> Option<VersionParts> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (major, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let (stability, minor) = if let Some(minor) = rest.strip_prefix("alpha") {
        (0, minor)
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (1, minor)
    } else {
        (2, if rest.is_empty() { "0" } else { rest })
    };
    Some((major.parse().ok()?, stability, minor.parse().ok()?))
}

/// Returns the resource in the version that probably replaces one of `versions`: the most stable version with the major
/// version of the replaced version, or else the most stable and newest version.
fn newest<'m>(
    resources: impl Iterator<Item = &'m ApiResource>,
    versions: &[String],
) -> Option<&'m ApiResource> {
    let majors = versions
        .iter()
        .filter_map(|version| Some(version_parts(version)?.0));
    let majors: Vec<u32> = majors.collect();
    let mut newest: Option<(_, &ApiResource)> = None;
    for resource in resources {
        let parts = version_parts(&resource.gvr.version);
        let is_successor = parts.is_some_and(|(major, ..)| majors.contains(&major));
        let order = parts.map(|(major, stability, minor)| (stability, major, minor));
        let rank = (is_successor, order);
        if newest.is_none_or(|(known, _)| known < rank) {
            newest = Some((rank, resource));
        }
    }
    newest.map(|(_, resource)| resource)
}

/// Returns the name of the served resource that the rule probably intended. If this resource is in a different group or
/// version, also returns its API version.
fn suggestion(
    (groups, versions): (&[String], &[String]),
    name: &str,
    mapper: &RestMapper,
) -> Option<(Option<String>, String)> {
    let full = SHORT_NAMES.iter().find(|(short, _)| *short == name);
    let is_spelling_variant = |resource: &ApiResource| {
        full.is_some_and(|(_, full)| resource.gvr.resource == *full)
            || resource.gvr.resource.eq_ignore_ascii_case(name)
            || resource.gvk.kind.eq_ignore_ascii_case(name)
            || resource.singular.eq_ignore_ascii_case(name)
    };
    let candidates = || {
        mapper
            .resources
            .iter()
            .filter(|r| !r.gvr.resource.contains('/'))
    };
    if let Some(subresource) = subresource(groups, name, mapper) {
        return Some((None, subresource));
    }
    candidates()
        .find(|r| is_spelling_variant(r) && r.gvr.resource != name && groups.contains(&r.gvr.group))
        .map(|r| (None, r.gvr.resource.clone()))
        .or_else(|| {
            let is_same = |r: &&ApiResource| r.gvr.resource == name;
            let is_own = |r: &&ApiResource| groups.contains(&r.gvr.group);
            let is_near_own =
                |r: &&ApiResource| groups.iter().any(|own| is_near(own, &r.gvr.group));
            let resources = || mapper.resources.iter();
            let served = newest(resources().filter(|r| is_same(r) && is_own(r)), versions)
                .or_else(|| {
                    newest(
                        resources().filter(|r| is_same(r) && is_near_own(r)),
                        versions,
                    )
                })
                .or_else(|| resources().find(|r| is_same(r) && name.contains('/')))
                .or_else(|| candidates().find(|r| is_spelling_variant(r)))?;
            let gvk = Gvk::new(served.gvr.group.clone(), served.gvr.version.clone(), "");
            Some((Some(gvk.api_version()), served.gvr.resource.clone()))
        })
}

/// Returns the subresource in `groups` that `name` denotes with another separator, as in `deployments.scale`, or with
/// the singular or the kind of the resource, as in `pod/exec`.
fn subresource(groups: &[String], name: &str, mapper: &RestMapper) -> Option<String> {
    let (main, sub) = name.split_once(['/', '.', '-', ':'])?;
    let mut resources = mapper.resources.iter();
    let main = resources.find(|served| {
        let names = [&served.gvr.resource, &served.gvk.kind, &served.singular];
        let mut names = names.into_iter();
        let is_named = names.any(|known| known.eq_ignore_ascii_case(main));
        groups.contains(&served.gvr.group) && !served.gvr.resource.contains('/') && is_named
    })?;
    let meant = format!("{}/{sub}", main.gvr.resource);
    let mut resources = mapper.resources.iter();
    let is_served =
        resources.any(|served| served.gvr.resource == meant && served.gvr.group == main.gvr.group);
    (is_served && meant != name).then_some(meant)
}
