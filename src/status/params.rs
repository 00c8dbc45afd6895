//! Computes the condition `ParamsResolved`: True if the paramKind is served and the params of bindings exist.
//!
//! The API server evaluates a policy if a binding refers to it. If the paramKind cannot be found, the policy fails for
//! every request that its own rules match. The rules of the bindings have no effect then.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_source.go`,
//! `ensureParamsForPolicyLocked`; `plugin/policy/validating/dispatcher.go`, `Dispatch`.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::condition::{ConditionStatus, Reason};
use super::message;
use super::verdict::{Effect, Evidence, Verdict};
use crate::policy::admission::Selector;
use crate::schema::Gvk;
use crate::schema::rest_mapper::ApiResource;

/// The result of looking up the paramKind of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKindState {
    /// The policy has no paramKind.
    NotRequired,
    /// The paramKind is served. Contains the state of the params.
    Served(Gvk, ParamsState),
    /// The paramKind is not served, and no CRD defines it.
    NotFound {
        /// The paramKind.
        gvk: Gvk,
        /// Served kinds with similar names, as `apiVersion Kind`.
        similar: Vec<String>,
    },
    /// A CRD defines the paramKind, but the kind is not served.
    NotServed {
        /// The paramKind.
        gvk: Gvk,
        /// The reason why the kind is not served.
        why: NotServed,
    },
    /// The group of the paramKind could not be discovered.
    Undiscovered {
        /// The paramKind.
        gvk: Gvk,
        /// The error message of discovery.
        reason: String,
    },
}

/// The state of the params to which bindings refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamsState {
    /// No binding refers to params.
    NotReferred,
    /// The params have not been read yet.
    Unread,
    /// The params are temporarily unreadable. Contains the reason.
    Failed(String),
    /// The controller is not allowed to read the params. Contains a description of the missing permission.
    NotPermitted(String),
    /// The controller is not allowed to read the bindings, so the params are unknown.
    BindingsNotPermitted,
    /// The controller checked whether the params exist.
    Examined {
        /// The number of references to existing params, in all bindings.
        n_found: usize,
        /// The references to missing params, in all bindings.
        missing: Vec<MissingParams>,
    },
}

/// A query for the params of a binding.
#[derive(Clone, Debug)]
pub enum ParamLookup<'a> {
    /// A lookup of params by name. If the namespace is `None`, params in any namespace match.
    ByName(&'a str, Option<&'a str>),
    /// A lookup of params by selector. If the namespace is `None`, params in any namespace match.
    BySelector(Selector, Option<&'a str>),
}

impl ParamsState {
    /// Checks whether the params of each binding exist, by calling `exists`. `resource` is the resource of the
    /// paramKind.
    ///
    /// A paramRef without a namespace refers to params in the namespace of each request. They count as existing if they
    /// exist in any namespace.
    pub fn examine<'a>(
        bindings: impl Iterator<Item = &'a ValidatingAdmissionPolicyBinding>,
        resource: &ApiResource,
        mut exists: impl FnMut(&'a ValidatingAdmissionPolicyBinding, ParamLookup<'a>) -> bool,
    ) -> Self {
        let mut n_found = 0;
        let mut missing = Vec::new();
        for binding in bindings {
            let Some(reference) = &binding.spec.param_ref else {
                continue;
            };
            let namespace = reference
                .namespace
                .as_deref()
                .filter(|namespace| resource.namespaced && !namespace.is_empty());
            let (lookup, name) = match (&reference.name, &reference.selector) {
                (Some(name), None) => (ParamLookup::ByName(name, namespace), name.clone()),
                (_, Some(selector)) => {
                    let Ok(selector) = Selector::new(selector) else {
                        continue;
                    };
                    (
                        ParamLookup::BySelector(selector, namespace),
                        "any object that matches the selector".to_owned(),
                    )
                }
                (None, None) => continue,
            };
            if exists(binding, lookup) {
                n_found += 1;
                continue;
            }
            let place = match (namespace, resource.namespaced) {
                (Some(namespace), _) => format!(" in namespace {namespace}"),
                (None, true) => " in any namespace".to_owned(),
                (None, false) => String::new(),
            };
            missing.push(MissingParams {
                binding: binding.metadata.name.clone().unwrap_or_default(),
                what: format!("{name}{place}"),
                denies: reference.parameter_not_found_action.as_deref() == Some("Deny"),
            });
        }
        Self::Examined { n_found, missing }
    }
}

/// A paramRef to missing params.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingParams {
    /// The name of the binding.
    pub binding: String,
    /// A description of the missing params, such as `limits in namespace default`.
    pub what: String,
    /// True if the binding's parameterNotFoundAction is Deny.
    pub denies: bool,
}

/// The reason why a kind that a CRD defines is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// Only other versions of the kind are served.
    OtherVersions(Vec<String>),
    /// The CRD serves no version.
    NoVersion {
        /// The name of the CRD.
        crd: String,
    },
    /// The API server has not established the CRD.
    NotEstablished {
        /// The name of the CRD.
        crd: String,
        /// The reason in the CRD's conditions, if any.
        reason: Option<String>,
    },
    /// The CRD is established, but discovery does not list the resource.
    NotListed {
        /// The name of the CRD.
        crd: String,
    },
}

/// Returns the effect on requests if the API server cannot find the paramKind. The quoted error is the error that
/// rejected clients get.
fn consequence(gvk: &Gvk, effect: Effect) -> String {
    let text = format!("failed to find resource referenced by paramKind: '{gvk}'");
    if effect.fails_closed {
        format!(
            "with failurePolicy Fail, every request that the rules match is denied once the policy \
             has a binding (\"{text}\")"
        )
    } else {
        format!(
            "with failurePolicy Ignore, no request is {} (\"{text}\")",
            effect.done()
        )
    }
}

/// Returns why the paramKind is not served, and the effect on requests. Returns `None` if it is served, absent or
/// undiscovered.
pub(crate) fn unserved(state: &ParamKindState, effect: Effect) -> Option<(String, String)> {
    let (gvk, cause) = match state {
        ParamKindState::NotFound { gvk, similar } => {
            let hint = if similar.is_empty() {
                String::new()
            } else {
                format!(" (did you mean {}?)", message::list(similar))
            };
            let kind = message::kind(gvk);
            let cause = format!(
                "paramKind {kind} is not served and no CustomResourceDefinition defines it{hint}"
            );
            (gvk, cause)
        }
        ParamKindState::NotServed { gvk, why } => {
            let (kind, why) = (message::kind(gvk), why_not_served(gvk, why));
            (gvk, format!("paramKind {kind} is not served: {why}"))
        }
        ParamKindState::NotRequired
        | ParamKindState::Served(..)
        | ParamKindState::Undiscovered { .. } => return None,
    };
    Some((cause, consequence(gvk, effect)))
}

fn without_params(effect: Effect) -> &'static str {
    if effect.fails_closed {
        "if they do not, parameterNotFoundAction Deny denies every request that the binding matches"
    } else if effect.is_mutating() {
        "if they do not, the binding changes no request"
    } else {
        "if they do not, the binding checks no request"
    }
}

pub(super) fn verdict(state: &ParamKindState, effect: Effect) -> Verdict {
    let unserved = || {
        let (cause, consequence) = unserved(state, effect).unwrap_or_default();
        format!("{cause}; {consequence}")
    };
    let (status, reason, text) = match state {
        ParamKindState::NotRequired => (
            ConditionStatus::True,
            Reason::ParamsNotRequired,
            "the policy has no paramKind".to_owned(),
        ),
        ParamKindState::Served(gvk, params) => return served(gvk, params, effect),
        ParamKindState::NotFound { .. } => (
            ConditionStatus::False,
            Reason::ParamKindNotFound,
            unserved(),
        ),
        ParamKindState::NotServed { .. } => (
            ConditionStatus::False,
            Reason::ParamKindNotServed,
            unserved(),
        ),
        ParamKindState::Undiscovered { gvk, reason } => (
            ConditionStatus::Unknown,
            Reason::DiscoveryIncomplete,
            format!(
                "cannot determine whether paramKind {} is served: discovery of {} failed: {reason}",
                message::kind(gvk),
                gvk.api_version()
            ),
        ),
    };
    let evidence = match state {
        ParamKindState::Undiscovered { .. } => Evidence::Pending,
        _ => Evidence::Complete,
    };
    Verdict::new(status, reason, text).with_evidence(evidence)
}

fn served(gvk: &Gvk, params: &ParamsState, effect: Effect) -> Verdict {
    let is_served = format!("paramKind {} is served", message::kind(gvk));
    let verdict = |status, reason, text: &str, evidence| {
        Verdict::new(status, reason, format!("{is_served}{text}")).with_evidence(evidence)
    };
    let (n_found, missing) = match params {
        ParamsState::NotReferred => {
            return verdict(
                ConditionStatus::True,
                Reason::ParamKindServed,
                "; no binding refers to params",
                Evidence::Complete,
            );
        }
        ParamsState::Unread => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                "; the params have not been read yet",
                Evidence::Pending,
            );
        }
        ParamsState::Failed(reason) => {
            let text = format!("; the params cannot currently be read: {reason}");
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                &text,
                Evidence::Pending,
            );
        }
        ParamsState::NotPermitted(text) => {
            let text = format!(
                "; cannot determine whether the params of bindings exist; {}: {text}",
                without_params(effect)
            );
            return verdict(
                ConditionStatus::Unknown,
                Reason::NotPermitted,
                &text,
                Evidence::Complete,
            );
        }
        ParamsState::BindingsNotPermitted => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::NotPermitted,
                "; cannot determine which params are used, because bindings cannot be read (see Bound)",
                Evidence::Complete,
            );
        }
        ParamsState::Examined { n_found, missing } => (*n_found, missing),
    };
    let (status, reason, text) = examined(n_found, missing, effect);
    verdict(status, reason, &text, Evidence::Complete)
}

/// Returns the status and reason of the condition, and the end of its message, from the references to existing and
/// missing params.
fn examined(
    n_found: usize,
    missing: &[MissingParams],
    effect: Effect,
) -> (ConditionStatus, Reason, String) {
    let describe = |denies: bool| -> Vec<String> {
        let described = missing.iter().filter(|missing| missing.denies == denies);
        described
            .map(|missing| format!("{} (binding {})", missing.what, missing.binding))
            .collect()
    };
    let (denied, allowed) = (describe(true), describe(false));
    if !denied.is_empty() {
        let consequence = if effect.fails_closed {
            "parameterNotFoundAction Deny denies every request that the binding matches"
        } else if effect.is_mutating() {
            "with failurePolicy Ignore, the binding changes no request"
        } else {
            "with failurePolicy Ignore, the binding checks no request"
        };
        let text = format!(
            ", but these params do not exist: {}; {consequence}",
            message::list(&denied)
        );
        return (ConditionStatus::False, Reason::ParamsNotFound, text);
    }
    let absent = if allowed.is_empty() {
        String::new()
    } else {
        format!(
            "; parameterNotFoundAction Allow skips requests, because these params do not exist: {}",
            message::list(&allowed)
        )
    };
    if n_found == 0 {
        return (ConditionStatus::True, Reason::ParamKindServed, absent);
    }
    let text = format!(", and the params that bindings refer to exist{absent}");
    (ConditionStatus::True, Reason::ParamsFound, text)
}

fn why_not_served(gvk: &Gvk, why: &NotServed) -> String {
    match why {
        NotServed::OtherVersions(versions) => {
            format!("{} is served as {}", gvk.kind, message::list(versions))
        }
        NotServed::NoVersion { crd } => {
            format!("CustomResourceDefinition {crd} serves no version")
        }
        NotServed::NotEstablished {
            crd,
            reason: Some(reason),
        } => {
            format!("CustomResourceDefinition {crd} is not established ({reason})")
        }
        NotServed::NotEstablished { crd, reason: None } => {
            format!("CustomResourceDefinition {crd} is not established")
        }
        NotServed::NotListed { crd } => {
            format!(
                "CustomResourceDefinition {crd} is established, but the API server does not list it"
            )
        }
    }
}
