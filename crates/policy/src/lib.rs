//! The model of an admission policy: compilation, matching, analysis, and evaluation.
//!
//! Pure functions over API objects and schemas; nothing here reads the cluster, a file or a clock.
//!
//! - [`subject`]: the kinds of objects with expressions to evaluate.
//! - [`compile`]: compiles the expressions of a policy as the API server does. [`consequence`]: the effect of a failing
//!   expression on the request.
//! - [`mutations`]: represents a mutating policy as a validating one.
//! - [`reads`]: inputs, variables and fields that an expression reads.
//! - [`matching`]: the resources and kinds that a policy's rules match.
//! - [`analysis`]: type errors by expression and kind. [`finding`] and [`rule`] describe them.
//! - [`runtime_errors`]: expressions that fail at run time, each with a request that confirms it.
//! - [`lint`]: valid constructs that are probably mistakes. [`lockout`]: bindings that stop a cluster.
//! - [`cost`]: upper bounds of the cost of expressions, compared with the limits.
//! - [`admission`]: the decision of an API server on a request, for a policy and its bindings.
//!
//! ```
//! use policy::compile::CompiledPolicy;
//!
//! let policy = serde_json::from_value(serde_json::json!({
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
pub mod analysis;
pub mod compile;
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
pub mod rule;
pub mod runtime_errors;
pub mod subexpressions;
pub mod subject;
pub mod webhooks;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use kubernetes::schema::{GroupVersion, Gvk};

/// Returns the kind of the policy's params. `None` without a paramKind, or if its apiVersion cannot be parsed.
///
/// Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go`, `TypeChecker.paramsGVK`.
#[must_use]
pub fn param_kind(policy: &ValidatingAdmissionPolicy) -> Option<Gvk> {
    let param_kind = policy.spec.as_ref()?.param_kind.as_ref()?;
    let api_version = param_kind.api_version.as_deref().unwrap_or_default();
    let kind = param_kind.kind.clone().unwrap_or_default();
    let (group, version) = GroupVersion::split_valid(api_version)?;
    Some(Gvk::new(group, version, kind))
}

/// Returns the paramKind as declared, for lookups and messages. If its apiVersion cannot be parsed, the whole
/// apiVersion is the version, which matches no served kind.
#[must_use]
pub fn declared_param_kind(policy: &ValidatingAdmissionPolicy) -> Option<Gvk> {
    let declared = policy.spec.as_ref()?.param_kind.as_ref()?;
    Some(param_kind(policy).unwrap_or_else(|| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Gvk::new("", text(&declared.api_version), text(&declared.kind))
    }))
}

/// Returns true if errors deny requests: failurePolicy is Fail, the default.
#[must_use]
pub fn fails_closed(policy: &ValidatingAdmissionPolicy) -> bool {
    let spec = policy.spec.as_ref();
    spec.and_then(|spec| spec.failure_policy.as_deref()) != Some("Ignore")
}
