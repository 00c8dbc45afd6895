//! The types that the API server's libraries add.
//!
//! Types from `cel.ObjectType` are object types without declared fields, so selecting a field is a type check error.
//! Types from `cel.OpaqueType` have no fields at all.

use cel::decls::Sig;

/// An authorizer, the type of the variable `authorizer`.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `AuthorizerType`.
pub const AUTHORIZER: Sig = Sig::Object("kubernetes.authorization.Authorizer");

/// A check of a non-resource path.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `PathCheckType`.
pub const PATH_CHECK: Sig = Sig::Object("kubernetes.authorization.PathCheck");

/// A check of an API group, before a resource is chosen.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `GroupCheckType`.
pub const GROUP_CHECK: Sig = Sig::Object("kubernetes.authorization.GroupCheck");

/// A check of a resource.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `ResourceCheckType`.
pub const RESOURCE_CHECK: Sig = Sig::Object("kubernetes.authorization.ResourceCheck");

/// Type of an authorizer's decision.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `DecisionType`.
pub const DECISION: Sig = Sig::Object("kubernetes.authorization.Decision");

/// An IP address. Expressions can use the type's name.
///
/// Source: k8s.io/apiserver `pkg/cel/ip.go`, `IPType`.
pub const IP: Sig = Sig::Opaque("net.IP");

/// A network in CIDR notation. Expressions can use the type's name.
///
/// Source: k8s.io/apiserver `pkg/cel/cidr.go`, `CIDRType`.
pub const CIDR: Sig = Sig::Opaque("net.CIDR");

/// A format by its name.
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
