//! Group, version and kind or resource: how Kubernetes names what is served.

use std::fmt;

/// A group, version and kind; ordered by group, version, kind, as warnings are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Gvk {
    /// The kind `kind` of `group` and `version`.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` for the core group.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// A group, version and resource (the plural name, `deployments`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvr {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource, with its subresource if it is one: `deployments/scale`.
    pub resource: String,
}

impl Gvr {
    /// The resource `resource` of `group` and `version`.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        resource: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }
}

/// `apps/v1, Resource=deployments`.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionResource.String`.
impl fmt::Display for Gvr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}
