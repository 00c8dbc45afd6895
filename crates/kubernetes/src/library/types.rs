//! The CEL types that the API server's libraries add.
//!
//! A type that upstream declares with `cel.ObjectType` is an object type without declared fields here, so selecting a
//! field is a type error. A type declared with `cel.OpaqueType` has no fields at all.

use cel::decls::Sig;

/// The type of the variable `authorizer`.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `AuthorizerType`.
pub const AUTHORIZER: Sig = Sig::Object("kubernetes.authorization.Authorizer");

/// An authorization check for a non-resource path.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `PathCheckType`.
pub const PATH_CHECK: Sig = Sig::Object("kubernetes.authorization.PathCheck");

/// An authorization check for an API group. The expression has not selected a resource yet.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `GroupCheckType`.
pub const GROUP_CHECK: Sig = Sig::Object("kubernetes.authorization.GroupCheck");

/// An authorization check for a resource.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `ResourceCheckType`.
pub const RESOURCE_CHECK: Sig = Sig::Object("kubernetes.authorization.ResourceCheck");

/// The decision of an authorizer.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `DecisionType`.
pub const DECISION: Sig = Sig::Object("kubernetes.authorization.Decision");

/// An IP address. Expressions can use this type by name.
///
/// Source: k8s.io/apiserver `pkg/cel/ip.go`, `IPType`.
pub const IP: Sig = Sig::Opaque("net.IP");

/// A network in CIDR notation. Expressions can use this type by name.
///
/// Source: k8s.io/apiserver `pkg/cel/cidr.go`, `CIDRType`.
pub const CIDR: Sig = Sig::Opaque("net.CIDR");

/// A named format, such as `format.dns1123Label()`.
///
/// Source: k8s.io/apiserver `pkg/cel/format.go`, `FormatType`.
pub const NAMED_FORMAT: Sig = Sig::Object("kubernetes.NamedFormat");

/// A quantity such as `1.5Gi`.
///
/// Source: k8s.io/apiserver `pkg/cel/quantity.go`, `QuantityType`.
pub const QUANTITY: Sig = Sig::Object("kubernetes.Quantity");

/// A semantic version.
///
/// Source: k8s.io/apiserver `pkg/cel/semver.go`, `SemverType`.
pub const SEMVER: Sig = Sig::Object("kubernetes.Semver");

/// A URL.
///
/// Source: k8s.io/apiserver `pkg/cel/url.go`, `URLType`.
pub const URL: Sig = Sig::Object("kubernetes.URL");
