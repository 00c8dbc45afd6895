//! `ParamsResolved`: whether the paramKind is served, and what follows for requests.
//!
//! What follows was read in the API server: it takes a policy into account once a binding refers to
//! it, and one whose paramKind it cannot find fails for every request that the policy's own rules
//! match, whatever its bindings select.
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

/// State of a policy's paramKind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKindState {
    /// The policy has none.
    NotRequired,
    /// It is served.
    Served(Gvk, ParamsState),
    /// Nothing serves or defines it. `similar` are served kinds that may have been meant.
    NotFound {
        /// The paramKind.
        gvk: Gvk,
        /// Kinds that may have been meant, as `apiVersion Kind`.
        similar: Vec<String>,
    },
    /// It is defined, and not served.
    NotServed {
        /// The paramKind.
        gvk: Gvk,
        /// Why.
        why: NotServed,
    },
    /// Its group could not be discovered, for this reason.
    Undiscovered {
        /// The paramKind.
        gvk: Gvk,
        /// The reason.
        reason: String,
    },
}

/// State of the params that bindings refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamsState {
    /// No binding refers to any.
    NotReferred,
    /// They were not read yet.
    Unread,
    /// They cannot be read now, for this reason.
    Failed(String),
    /// We may not read them; the text says what is missing.
    NotPermitted(String),
    /// We may not read the bindings, so that nobody knows which params are meant.
    BindingsNotPermitted,
    /// They were looked for.
    Examined {
        /// The references that lead to params, of all bindings.
        n_found: usize,
        /// The references that lead to none.
        missing: Vec<MissingParams>,
    },
}

/// The params that a reference of a binding means.
#[derive(Clone, Debug)]
pub enum Sought<'a> {
    /// Those of that name, in that namespace or, where it is `None`, in any.
    Named(&'a str, Option<&'a str>),
    /// Those that the selector selects, in that namespace or in any.
    Selected(Selector, Option<&'a str>),
}

impl ParamsState {
    /// Looks for the params of each binding by `exists`; `resource` is that of the paramKind.
    ///
    /// A reference without a namespace, to objects that have one, means those in the namespace of the
    /// request: that there are some in any namespace is all that can be told.
    pub fn examine<'a>(
        bindings: impl Iterator<Item = &'a ValidatingAdmissionPolicyBinding>,
        resource: &ApiResource,
        mut exists: impl FnMut(&'a ValidatingAdmissionPolicyBinding, Sought<'a>) -> bool,
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
            let (sought, what) = match (&reference.name, &reference.selector) {
                (Some(name), None) => (Sought::Named(name, namespace), name.clone()),
                (_, Some(selector)) => {
                    let Ok(selector) = Selector::new(selector) else {
                        continue;
                    };
                    (
                        Sought::Selected(selector, namespace),
                        "any that the selector selects".to_owned(),
                    )
                }
                (None, None) => continue,
            };
            if exists(binding, sought) {
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
                what: format!("{what}{place}"),
                denies: reference.parameter_not_found_action.as_deref() == Some("Deny"),
            });
        }
        Self::Examined { n_found, missing }
    }
}

/// A reference of a binding that leads to no params.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingParams {
    /// The name of the binding.
    pub binding: String,
    /// Referenced object: `limits in namespace default`.
    pub what: String,
    /// True if its parameterNotFoundAction is Deny.
    pub denies: bool,
}

/// Why a kind that is defined is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// Other versions of it are, by name.
    OtherVersions(Vec<String>),
    /// No version of its CRD is served.
    NoVersion {
        /// The name of the CRD.
        crd: String,
    },
    /// Its CRD is not established; the reason is the API server's.
    NotEstablished {
        /// The name of the CRD.
        crd: String,
        /// Why, where the API server says.
        reason: Option<String>,
    },
    /// Its CRD is established, and the API server does not list it.
    NotListed {
        /// The name of the CRD.
        crd: String,
    },
}

/// Returns the API server's behavior while it cannot find the paramKind.
///
/// Between the quotes is the API server's own text, as requests get to see it.
fn consequence(gvk: &Gvk, effect: Effect) -> String {
    let text = format!("failed to find resource referenced by paramKind: '{gvk}'");
    if effect.fails_closed {
        format!(
            "with failurePolicy Fail every request that the rules match is denied once the policy \
             has a binding (\"{text}\")"
        )
    } else {
        format!(
            "with failurePolicy Ignore no request is {} (\"{text}\")",
            effect.done()
        )
    }
}

/// Why nothing serves the paramKind, and what the API server does because of it; `None` where it is served, or not
/// known.
pub(crate) fn unserved(state: &ParamKindState, effect: Effect) -> Option<(String, String)> {
    let (gvk, what) = match state {
        ParamKindState::NotFound { gvk, similar } => {
            let hint = if similar.is_empty() {
                String::new()
            } else {
                format!(" (did you mean {}?)", message::list(similar))
            };
            let kind = message::kind(gvk);
            let what = format!(
                "nothing serves paramKind {kind} and no CustomResourceDefinition defines it{hint}"
            );
            (gvk, what)
        }
        ParamKindState::NotServed { gvk, why } => {
            let (kind, why) = (message::kind(gvk), why_not_served(gvk, why));
            (gvk, format!("paramKind {kind} is not served: {why}"))
        }
        ParamKindState::NotRequired
        | ParamKindState::Served(..)
        | ParamKindState::Undiscovered { .. } => return None,
    };
    Some((what, consequence(gvk, effect)))
}

/// Returns the API server's behavior for a request where a binding's params do not exist.
fn without_params(effect: Effect) -> &'static str {
    if effect.fails_closed {
        "where they do not, parameterNotFoundAction Deny denies every request that the binding matches"
    } else if effect.is_mutating() {
        "where they do not, the binding changes no request"
    } else {
        "where they do not, the binding checks no request"
    }
}

/// The condition `ParamsResolved`.
pub(super) fn verdict(state: &ParamKindState, effect: Effect) -> Verdict {
    let unserved = || {
        let (what, consequence) = unserved(state, effect).unwrap_or_default();
        format!("{what}; {consequence}")
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
                "whether paramKind {} is served cannot be told: {} could not be discovered: {reason}",
                message::kind(gvk),
                gvk.api_version()
            ),
        ),
    };
    let evidence = match state {
        ParamKindState::Undiscovered { .. } => Evidence::Awaited,
        _ => Evidence::Complete,
    };
    Verdict::new(status, reason, text).with_evidence(evidence)
}

/// The verdict about params of a kind that is served.
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
                "; no binding refers to params of it",
                Evidence::Complete,
            );
        }
        ParamsState::Unread => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                "; the params were not read yet",
                Evidence::Awaited,
            );
        }
        ParamsState::Failed(reason) => {
            let text = format!("; the params cannot be read now: {reason}");
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                &text,
                Evidence::Awaited,
            );
        }
        ParamsState::NotPermitted(text) => {
            let text = format!(
                "; whether the params of bindings exist cannot be told, and {}: {text}",
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
                "; which params are meant cannot be told, as bindings may not be read (see Bound)",
                Evidence::Complete,
            );
        }
        ParamsState::Examined { n_found, missing } => (*n_found, missing),
    };
    let (status, reason, text) = examined(n_found, missing, effect);
    verdict(status, reason, &text, Evidence::Complete)
}

/// The verdict about params that were looked for, and its text.
fn examined(
    n_found: usize,
    missing: &[MissingParams],
    effect: Effect,
) -> (ConditionStatus, Reason, String) {
    let describe = |denies: bool| -> Vec<String> {
        let wanted = missing.iter().filter(|missing| missing.denies == denies);
        wanted
            .map(|missing| format!("{} by binding {}", missing.what, missing.binding))
            .collect()
    };
    let (denied, allowed) = (describe(true), describe(false));
    if !denied.is_empty() {
        let consequence = if effect.fails_closed {
            "parameterNotFoundAction Deny denies every request that the binding matches"
        } else if effect.is_mutating() {
            "with failurePolicy Ignore the binding changes no request"
        } else {
            "with failurePolicy Ignore the binding checks no request"
        };
        let text = format!(
            ", but params do not exist: {}; {consequence}",
            message::list(&denied)
        );
        return (ConditionStatus::False, Reason::ParamsNotFound, text);
    }
    let absent = if allowed.is_empty() {
        String::new()
    } else {
        format!(
            "; parameterNotFoundAction Allow passes requests over, as these do not exist: {}",
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
