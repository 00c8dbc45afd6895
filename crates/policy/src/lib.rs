//! The model of an admission policy: compiled, matched, analysed and decided.
//!
//! Pure functions over API objects and schemas; nothing here reads the cluster, a file or a clock.
//!
//! - [`subject`]: the kinds of objects whose expressions are evaluated.
//! - [`compile`]: every expression of a policy, compiled as the API server does; [`consequence`] says what happens to
//!   a request for which one fails.
//! - [`mutations`]: what a mutating policy is in terms of a validating one.
//! - [`reads`]: inputs, variables and fields that an expression reads.
//! - [`matching`]: the resources and kinds that a policy's rules match.
//! - [`analysis`]: which expressions fail for which kinds; [`finding`] and [`rule`] are how that is told.
//! - [`runtime_errors`]: expressions that fail at run time, each with a request that confirms it.
//! - [`cost`]: what the expressions may cost, and how far that stays below the limits.
//! - [`admission`]: what an API server decides of a request because of a policy and its bindings.
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

/// The kind of the policy's params, or `None` without a paramKind, or where its apiVersion cannot be
/// read.
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

/// The paramKind as the policy declares it, to be looked up and shown: where its apiVersion cannot be
/// read, the whole of it stands for the version, which names nothing that is served.
#[must_use]
pub fn declared_param_kind(policy: &ValidatingAdmissionPolicy) -> Option<Gvk> {
    let declared = policy.spec.as_ref()?.param_kind.as_ref()?;
    Some(param_kind(policy).unwrap_or_else(|| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Gvk::new("", text(&declared.api_version), text(&declared.kind))
    }))
}

/// Reports whether errors deny requests: failurePolicy Fail, the default.
#[must_use]
pub fn fails_closed(policy: &ValidatingAdmissionPolicy) -> bool {
    let spec = policy.spec.as_ref();
    spec.and_then(|spec| spec.failure_policy.as_deref()) != Some("Ignore")
}
