//! The model of an admission policy: compilation, matching, analysis, and evaluation.
//!
//! All functions are pure. Their inputs are API objects and schemas. They do not access a cluster, files or a clock.
//!
//! - [`subject`]: the object kinds with expressions to check.
//! - [`compile`]: compiles the expressions of a policy as the API server does. [`consequence`]: the effect of a failing
//!   expression on the request.
//! - [`mutations`]: the mutations of a mutating policy.
//! - [`reads`]: the inputs, variables and fields that an expression reads.
//! - [`matching`]: the resources and kinds that a policy's rules match.
//! - [`analysis`]: type errors for each expression and kind. [`finding`] and [`rule`] describe findings.
//! - [`runtime_errors`]: expressions that fail at run time, each with a request that confirms the error.
//! - [`lint`]: valid constructs that are probably mistakes. [`lockout`]: bindings that deny requests of a cluster's own
//!   components.
//! - [`scope`]: the names and types that an expression can use, for editors.
//! - [`cost`]: upper bounds of the cost of expressions, compared with the API server's limits.
//! - [`version_changes`]: the changes between Kubernetes versions that affect policies.
//! - [`admission`]: the decision of an API server on a request, for a policy and its bindings.
//!
//! ```
//! use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
//! use policy::compile::CompiledPolicy;
//!
//! let policy: ValidatingAdmissionPolicy = serde_json::from_value(serde_json::json!({
//!     "metadata": {"name": "replicas"},
//!     "spec": {"validations": [
//!         {"expression": "object.spec.replicas <= 50"},
//!         {"expression": "objct.spec.replicas <= 50"},
//!     ]},
//! }))?;
//! let compiled = CompiledPolicy::new(&policy);
//! let finding = &compiled.findings()[0];
//! assert_eq!(finding.field_ref, "spec.validations[1].expression");
//! assert_eq!(finding.consequence.id(), "denied");
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod admission;
pub mod advice;
pub mod analysis;
pub mod compile;
mod comprehensions;
pub mod consequence;
pub mod cost;
mod environment;
pub mod exempt;
pub mod expressions;
pub mod finding;
#[cfg(test)]
mod interruption;
pub mod lint;
pub mod lockout;
pub mod matching;
pub mod mutations;
pub mod nearest;
pub mod reads;
pub mod request_policy;
pub mod rule;
pub mod runtime_errors;
pub mod scope;
pub mod subexpressions;
pub mod subject;
pub mod suggestion;
pub mod version_changes;
pub mod webhooks;

// The public API of this crate uses types of these crates.
pub use cel;
pub use k8s_openapi;
pub use kubernetes;
pub use kubernetes::schema::{Gvk, Gvr};
pub use kubernetes::version::KubernetesVersion;
pub use request_policy::{RequestPolicy, declared_param_kind, fails_closed, param_kind};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
