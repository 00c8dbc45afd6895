//! Maps served resources to their kinds.
//!
//! [`RestMapper::kinds_for`] reproduces upstream's mapper, including its oddities. The other methods find the resources
//! that requests to the API server can use.
//!
//! Source: apimachinery `pkg/api/meta/restmapper.go` (`DefaultRESTMapper`),
//! `pkg/api/meta/multirestmapper.go`; client-go `restmapper/discovery.go`
//! (`NewDiscoveryRESTMapper`).

use super::{Gvk, Gvr};

/// A served resource or subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiResource {
    /// The resource, such as `deployments`. A subresource includes its resource, such as `deployments/scale`.
    pub gvr: Gvr,
    /// The kind of the objects in requests. The kind of a subresource may differ from the kind of the resource
    /// (`autoscaling/v1, Kind=Scale`).
    pub gvk: Gvk,
    /// The singular name. Empty if discovery does not provide it.
    pub singular: String,
    /// True if the resource is namespaced.
    pub namespaced: bool,
}

/// All served resources of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestMapper {
    /// The resources, sorted by group, version and name.
    pub resources: Vec<ApiResource>,
    /// Group versions (`group/version`) whose resources could not be listed, with the reason. An example is the group
    /// of an unavailable aggregated API server.
    pub incomplete: Vec<(String, String)>,
    /// Group versions (`group/version`, sorted) that have not been discovered for some time. Their resources may still
    /// be known, but results that depend on them may be outdated.
    pub undiscovered: Vec<String>,
}

/// The wildcard for all groups, versions, resources or subresources in a rule of a policy.
const ANY: &str = "*";

impl RestMapper {
    /// Creates a mapper for `resources`, in any order. If several resources have the same group, version and name, the
    /// first of them is used. It is namespaced if any of them is namespaced.
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

    /// Returns the kinds that upstream's mapper finds for a group, version and resource of a rule.
    ///
    /// The resource may be in upper case, singular, or the kind with the suffix `list` or `lists`. An empty group,
    /// which is the core group, matches any group. An empty version matches any version. If the version is empty and
    /// the group has no such resource, all groups that start with the group's name are searched. Subresources are not
    /// found.
    ///
    /// Differs: upstream returns the kinds in the order of discovery; this function sorts them by group and version.
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

    /// Returns the kind of `resource` in each group version for which `is_wanted` returns true. `is_wanted` is called
    /// with one [`Gvr`] of each group version, and must ignore its resource.
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
            // Upstream inserts the resources into a map one after the other, so the last resource with the name is
            // used.
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

    /// Returns the resources whose objects have the kind. Subresources are not returned.
    pub fn resources_of_kind<'a, 'k>(
        &'a self,
        gvk: &'k Gvk,
    ) -> impl Iterator<Item = &'a ApiResource> + use<'a, 'k> {
        self.resources
            .iter()
            .filter(move |served| served.gvk == *gvk && !served.gvr.is_subresource())
    }

    /// Returns the resources and subresources that match a rule with these groups, versions and resources, sorted.
    ///
    /// `*` matches all groups, all versions, or all resources without their subresources. `pods/*` matches `pods` and
    /// all its subresources, `*/scale` matches the `scale` subresource of every resource, and `*/*` matches everything.
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

/// Returns true if `rule`, the name of a resource in a rule, matches the resource or subresource `served`.
///
/// Source: apiserver `pkg/admission/plugin/webhook/predicates/rules/rules.go`, `Matcher.resource`.
#[must_use]
pub fn rule_matches(rule: &str, served: &str) -> bool {
    let split = |name| str::split_once(name, '/').unwrap_or((name, ""));
    let ((resource, subresource), (served, served_subresource)) = (split(rule), split(served));
    (resource == ANY || resource == served)
        && (subresource == ANY || subresource == served_subresource)
}

/// Returns the kind to which upstream maps `name` because `served` exists: the resource's kind for its plural and
/// singular name, or the kind of lists for the name of its lists. Returns `None` for all other names.
///
/// If discovery provides no singular name, the singular name is derived from the kind. The names of lists are always
/// derived from the kind.
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
