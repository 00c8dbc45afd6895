//! The model of a ValidatingAdmissionPolicy: compiled, matched, analysed and decided.
//!
//! Pure functions over API objects and schemas; nothing here reads the cluster, a file or a clock.

pub mod absence;
pub mod admission;
pub mod analysis;
pub mod compile;
pub mod consequence;
pub mod cost;
mod environment;
pub mod exempt;
pub mod expressions;
pub mod finding;
pub mod matching;
pub mod rule;
pub mod suspicious;
mod variables;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use kubernetes::schema::Gvk;

/// The kind of the policy's params, or `None` without a paramKind, or where its apiVersion cannot be
/// read.
///
/// Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go`, `TypeChecker.paramsGVK`.
#[must_use]
pub fn param_kind(policy: &ValidatingAdmissionPolicy) -> Option<Gvk> {
    let param_kind = policy.spec.as_ref()?.param_kind.as_ref()?;
    let api_version = param_kind.api_version.as_deref().unwrap_or_default();
    let kind = param_kind.kind.clone().unwrap_or_default();
    match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => None,
        Some((group, version)) => Some(Gvk::new(group, version, kind)),
        None => Some(Gvk::new("", api_version, kind)),
    }
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
