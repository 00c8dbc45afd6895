//! Which resources are served and which kinds they hold.
//!
//! [`RestMapper::kinds_for`] answers as upstream's mapper does, oddities included; the other methods
//! answer what a request to the API server would find.
//!
//! Source: apimachinery `pkg/api/meta/restmapper.go` (`DefaultRESTMapper`),
//! `pkg/api/meta/multirestmapper.go`; client-go `restmapper/discovery.go`
//! (`NewDiscoveryRESTMapper`).

use super::{Gvk, Gvr};

/// A served resource or subresource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiResource {
    /// The resource; `deployments`, or `deployments/scale` for a subresource.
    pub gvr: Gvr,
    /// The kind of the objects in its requests; for a subresource that of the subresource
    /// (`autoscaling/v1, Kind=Scale`).
    pub gvk: Gvk,
    /// The singular name; empty where the API server gives none.
    pub singular: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
}

/// All served resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestMapper {
    /// The resources, sorted.
    pub resources: Vec<ApiResource>,
    /// Groups (`group/version`) whose resources could not be listed, with the reason: an aggregated
    /// API whose server does not answer, for one.
    pub incomplete: Vec<(String, String)>,
    /// Group versions (`group/version`, sorted) that have not been listed for some time, be their resources known from
    /// before or not: what rests on them may be out of date.
    pub undiscovered: Vec<String>,
}

/// The one character that stands for all groups, versions, resources or subresources in a rule.
const ANY: &str = "*";

impl RestMapper {
    /// A mapper of `resources`, in any order; of several of one name the first counts, and it is
    /// namespaced if one of them is.
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

    /// The kinds that upstream finds for a group, version and resource of a rule.
    ///
    /// The resource may be upper case or singular, or the kind with `list` or `lists` behind it. The
    /// empty group, that is the core group, stands for any group; an empty version for any version. A
    /// group that has no such resource stands for all groups that begin with it, if the version is
    /// empty. Subresources are not found.
    ///
    /// Differs: upstream lists the kinds in the order of discovery, this sorted by group and version.
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

    /// Returns the kind that `resource` has in each wanted group version. `is_wanted` sees one [`Gvr`] of each and may only
    /// depend on its group and version.
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
            // Upstream enters one resource after the other into a table, so that the last counts.
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

    /// The resource or subresource, by its exact name.
    #[must_use]
    pub fn resource(&self, gvr: &Gvr) -> Option<&ApiResource> {
        let idx = self
            .resources
            .binary_search_by(|served| served.gvr.cmp(gvr))
            .ok()?;
        self.resources.get(idx)
    }

    /// The resources, without subresources, whose objects are of the kind.
    pub fn resources_of_kind<'a, 'k>(
        &'a self,
        gvk: &'k Gvk,
    ) -> impl Iterator<Item = &'a ApiResource> + use<'a, 'k> {
        self.resources
            .iter()
            .filter(move |served| served.gvk == *gvk && !served.gvr.is_subresource())
    }

    /// The resources and subresources that a rule of these groups, versions and resources matches,
    /// sorted.
    ///
    /// `*` stands for all groups, all versions, or all resources without their subresources;
    /// `pods/*` for the pods and all their subresources, `*/scale` for the scale of every resource,
    /// `*/*` for everything.
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

/// Reports whether `rule`, a resource in a rule, matches the resource or subresource `served`.
///
/// Source: apiserver `pkg/admission/plugin/webhook/predicates/rules/rules.go`, `Matcher.resource`.
#[must_use]
pub fn rule_matches(rule: &str, served: &str) -> bool {
    let split = |name| str::split_once(name, '/').unwrap_or((name, ""));
    let ((resource, subresource), (served, served_subresource)) = (split(rule), split(served));
    (resource == ANY || resource == served)
        && (subresource == ANY || subresource == served_subresource)
}

/// The kind that upstream's table has for `name` on account of one resource.
///
/// The singular is guessed where discovery gives none, and so are the names of lists.
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
