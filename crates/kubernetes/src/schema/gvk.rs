//! Identifiers of API types: group, version, and kind or resource.

use std::fmt;

/// A group and version. Ordered by group, then by version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
}

impl GroupVersion {
    /// Creates a group version.
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
        }
    }

    /// Parses an `apiVersion`. Returns `None` if it is invalid.
    ///
    /// Source: apimachinery `pkg/runtime/schema/group_version.go`, `ParseGroupVersion`.
    ///
    /// Differs: for an empty string and for `/`, upstream returns an empty group and version. This function returns
    /// `None`.
    #[must_use]
    pub fn parse(api_version: &str) -> Option<Self> {
        match Self::split_valid(api_version)? {
            ("", "") => None,
            (group, version) => Some(Self::new(group, version)),
        }
    }

    /// Splits an `apiVersion` at its first slash into group and version. Without a slash, the group is empty.
    #[must_use]
    pub fn split(api_version: &str) -> (&str, &str) {
        api_version.split_once('/').unwrap_or(("", api_version))
    }

    /// Splits an `apiVersion` into group and version. Returns `None` if it contains more than one slash.
    ///
    /// Source: apimachinery `pkg/runtime/schema/group_version.go`, `ParseGroupVersion`.
    #[must_use]
    pub fn split_valid(api_version: &str) -> Option<(&str, &str)> {
        let (group, version) = Self::split(api_version);
        (!version.contains('/')).then_some((group, version))
    }

    /// Parses the path of an OpenAPI v3 document, such as `api/v1` or `apis/apps/v1`. Returns `None` if the document is
    /// not for a group version (`apis/apps`, `version`).
    ///
    /// Source: apiserver `pkg/cel/openapi/resolver/discovery.go`, `resourcePathFromGV`.
    #[must_use]
    pub fn from_openapi_path(path: &str) -> Option<Self> {
        let mut parts = path.split('/');
        let gv = match (parts.next()?, parts.next()?, parts.next()) {
            ("api", version, None) => Self::new("", version),
            ("apis", group, Some(version)) => Self::new(group, version),
            _ => return None,
        };
        parts.next().is_none().then_some(gv)
    }

    /// Parses a file name in the Kubernetes directory `api/openapi-spec/v3`, such as `apis__apps__v1_openapi.json`.
    /// Returns `None` if the document is not for a group version.
    #[must_use]
    pub fn from_openapi_file_name(name: &str) -> Option<Self> {
        Self::from_openapi_path(&name.strip_suffix("_openapi.json")?.replace("__", "/"))
    }
}

/// Formats the group version as an `apiVersion`: `apps/v1`, or `v1` for the core group.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// A group, version and kind. Ordered like upstream's warnings: by group, then by version, then by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Gvk {
    /// Creates a group, version and kind.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// Returns the group and version of the kind.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Returns the `apiVersion`: `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }

    /// Returns the CEL type name of the kind's objects, such as `Deployment#`. `#` is not allowed in identifiers, so no
    /// expression can refer to the type.
    ///
    /// Differs: upstream appends the current time in nanoseconds instead of `#`, so its warnings differ between runs
    /// (apiserver `pkg/admission/plugin/policy/validating/typechecking.go`, `generateUniqueTypeName`).
    #[must_use]
    pub fn type_name(&self) -> String {
        format!("{}#", self.kind)
    }
}

/// Formats the kind as `apps/v1, Kind=Deployment`, or `/v1, Kind=Pod` for the core group.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// A group, version and resource. The resource is a plural name, such as `deployments`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvr {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource, such as `deployments`, or the subresource, such as `deployments/scale`.
    pub resource: String,
}

impl Gvr {
    /// Creates a group, version and resource.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        resource: impl Into<String>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
        }
    }

    /// Returns the group and version of the resource.
    #[must_use]
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Returns true if this is a subresource, such as `deployments/scale`.
    #[must_use]
    pub fn is_subresource(&self) -> bool {
        self.resource.contains('/')
    }
}

/// Formats the resource as `apps/v1, Resource=deployments`.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionResource.String`.
impl fmt::Display for Gvr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}, Resource={}",
            self.group, self.version, self.resource
        )
    }
}
