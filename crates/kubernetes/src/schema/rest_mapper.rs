//! Maps served resources to their kinds.
//!
//! [`RestMapper::kinds_for`] returns the same kinds as upstream's mapper, including its unusual results. The other
//! methods look up resources that the API server serves.
//!
//! Source: apimachinery `pkg/api/meta/restmapper.go` (`DefaultRESTMapper`),
//! `pkg/api/meta/multirestmapper.go`; client-go `restmapper/discovery.go`
//! (`NewDiscoveryRESTMapper`).

use super::{Gvk, Gvr};

/// A served resource or subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiResource {
    /// The resource, such as `deployments`, or the subresource, such as `deployments/scale`.
    pub gvr: Gvr,
    /// The kind of the request objects. The kind of a subresource, such as `autoscaling/v1, Kind=Scale`, may differ
    /// from the kind of its resource.
    pub gvk: Gvk,
    /// The singular name. Empty if discovery does not return one.
    pub singular: String,
    /// True if the resource is namespaced.
    pub namespaced: bool,
}

/// All served resources of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestMapper {
    /// The resources, sorted by group, version and name.
    pub resources: Vec<ApiResource>,
    /// The group versions (`group/version`) whose resources could not be listed, with the reasons. For example, an
    /// aggregated API server may be unavailable.
    pub incomplete: Vec<(String, String)>,
    /// The group versions (`group/version`, sorted) whose last successful discovery is too old. Results that depend on
    /// their resources may be outdated.
    pub undiscovered: Vec<String>,
}

/// The wildcard in the groups, versions and resources of a policy rule.
const ANY: &str = "*";

impl RestMapper {
    /// Creates a mapper. If several resources have the same group, version and name, only the first is kept. It becomes
    /// namespaced if any of its duplicates is namespaced.
    #[must_use]
    pub fn new(mut resources: Vec<ApiResource>) -> Self {
        resources.sort_by(|a, b| a.gvr.cmp(&b.gvr));
        resources.dedup_by(|later, kept| {
            let same = later.gvr == kept.gvr;
            kept.namespaced |= same && later.namespaced;
            same
        });
        Self {
            resources,
            incomplete: Vec::new(),
            undiscovered: Vec::new(),
        }
    }

    /// Returns the kinds that upstream's mapper finds for a group, version and resource in a rule.
    ///
    /// - The resource name may contain uppercase letters, and may be the singular name or the kind with the suffix
    ///   `list` or `lists`.
    /// - An empty `group` matches all groups, although it is the name of the core group. An empty `version` matches all
    ///   versions.
    /// - If no kind is found and the version is empty, `group` is used as a prefix of group names.
    /// - Subresources are not found.
    ///
    /// Differs: the kinds are sorted by group and version. Upstream returns them in discovery order.
    ///
    /// Source: apimachinery `pkg/api/meta/restmapper.go`, `DefaultRESTMapper.KindsFor`.
    #[must_use]
    pub fn kinds_for(&self, group: &str, version: &str, resource: &str) -> Vec<Gvk> {
        if resource.is_empty() {
            return Vec::new();
        }
        let resource = resource.to_lowercase();
        let version = if version == "__internal" { "" } else { version };
        let has_version = |gvr: &Gvr| version.is_empty() || gvr.version == version;
        let exact = |gvr: &Gvr| (group.is_empty() || gvr.group == group) && has_version(gvr);
        let mut kinds = self.kinds_in(&resource, exact);
        if kinds.is_empty() && !group.is_empty() && version.is_empty() {
            kinds = self.kinds_in(&resource, |gvr: &Gvr| gvr.group.starts_with(group));
        }
        kinds
    }

    /// Returns the kind of `resource` in each matching group version. Calls `is_wanted` once per group version, with
    /// the [`Gvr`] of an arbitrary resource of this group version.
    fn kinds_in(&self, resource: &str, is_wanted: impl Fn(&Gvr) -> bool) -> Vec<Gvk> {
        let mut kinds = Vec::new();
        let mut rest = self.resources.as_slice();
        while let Some(first) = rest.first() {
            let Gvr { group, version, .. } = &first.gvr;
            let n_in_version = rest.partition_point(|served| {
                served.gvr.group == *group && served.gvr.version == *version
            });
            let (in_version, others) = rest.split_at(n_in_version);
            rest = others;
            if !is_wanted(&first.gvr) {
                continue;
            }
            // Upstream stores the resources in a map by name, so a later resource replaces an earlier one with the same
            // name.
            let mut resources = in_version
                .iter()
                .filter(|served| !served.gvr.is_subresource());
            let kind = match resource {
                "list" | "lists" => resources.next().map(|_| "List".into()),
                _ => resources
                    .filter_map(|served| mapped_kind(served, resource))
                    .next_back(),
            };
            kinds.extend(kind.map(|kind| Gvk::new(group, version, kind)));
        }
        kinds
    }

    /// Returns the resource or subresource with exactly this group, version and name.
    #[must_use]
    pub fn resource(&self, gvr: &Gvr) -> Option<&ApiResource> {
        let idx = self
            .resources
            .binary_search_by(|served| served.gvr.cmp(gvr))
            .ok()?;
        self.resources.get(idx)
    }

    /// Returns the resources whose objects have this kind, without subresources.
    pub fn resources_of_kind<'a, 'k>(
        &'a self,
        gvk: &'k Gvk,
    ) -> impl Iterator<Item = &'a ApiResource> + use<'a, 'k> {
        self.resources
            .iter()
            .filter(move |served| served.gvk == *gvk && !served.gvr.is_subresource())
    }

    /// Returns the resources and subresources that match a rule, sorted.
    ///
    /// For `groups` and `versions`, `*` matches everything. For `resources`, `*` matches all resources, but no
    /// subresources. `pods/*` matches `pods` and all its subresources. `*/scale` matches all `scale` subresources.
    /// `*/*` matches everything.
    ///
    /// Source: apiserver `pkg/admission/plugin/webhook/predicates/rules/rules.go`, `Matcher`.
    pub fn matching<'a>(
        &'a self,
        groups: &'a [String],
        versions: &'a [String],
        resources: &'a [String],
    ) -> impl Iterator<Item = &'a ApiResource> {
        let is_in = |rule: &[String], name: &str| rule.iter().any(|r| r == ANY || r == name);
        self.resources.iter().filter(move |served| {
            is_in(groups, &served.gvr.group)
                && is_in(versions, &served.gvr.version)
                && resources
                    .iter()
                    .any(|rule| rule_matches(rule, &served.gvr.resource))
        })
    }
}

/// Returns true if `rule`, a resource name in a rule, matches `served`, a resource or subresource.
///
/// Source: apiserver `pkg/admission/plugin/webhook/predicates/rules/rules.go`, `Matcher.resource`.
#[must_use]
pub fn rule_matches(rule: &str, served: &str) -> bool {
    let split = |name| str::split_once(name, '/').unwrap_or((name, ""));
    let ((resource, subresource), (served, served_subresource)) = (split(rule), split(served));
    (resource == ANY || resource == served)
        && (subresource == ANY || subresource == served_subresource)
}

/// Returns the kind to which upstream maps `name` for the resource `served`. For the plural or singular name, this is
/// the resource's kind. For the name of the resource's list, this is the kind of the list. Returns `None` for other
/// names.
///
/// If discovery returns no singular name, the kind in lower case is used instead. List names always consist of the kind
/// in lower case and a suffix.
fn mapped_kind(served: &ApiResource, name: &str) -> Option<String> {
    let kind = &served.gvk.kind;
    let item = name
        .strip_suffix("list")
        .or_else(|| name.strip_suffix("lists"));
    if item.is_some_and(|item| item == kind.to_lowercase()) {
        return Some(format!("{kind}List"));
    }
    let is_singular = if served.singular.is_empty() {
        name == kind.to_lowercase()
    } else {
        name == served.singular
    };
    (name == served.gvr.resource || is_singular).then(|| kind.clone())
}
