//! `Bound`: whether bindings enforce the policy.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`,
//! `validateValidatingAdmissionPolicyBindingSpec`; `k8s.io/apiserver`
//! `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams`.

use k8s_openapi::api::admissionregistration::v1::{ParamRef, ValidatingAdmissionPolicyBinding};

use super::condition::{ConditionStatus, Reason};
use super::message;
use super::verdict::{Effect, Evidence, Verdict};
use crate::policy::admission::Selector;
use crate::schema::rest_mapper::ApiResource;

/// State of a policy's bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingsState {
    /// They were not read yet.
    Unread,
    /// We may not read them.
    NotPermitted,
    /// These are all.
    Known(Vec<BindingFacts>),
}

/// Facts about one binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingFacts {
    /// The name.
    pub name: String,
    /// `Deny`, `Warn`, `Audit`.
    pub actions: Vec<String>,
    /// Why the API server cannot use it.
    pub problem: Option<String>,
    /// True if it leaves `params` null, although the policy has a paramKind.
    pub gives_no_params: bool,
}

impl BindingsState {
    /// The state of `bindings`, which are all of a policy; `params` is the resource of its paramKind.
    #[must_use]
    pub fn of<'a>(
        bindings: impl Iterator<Item = &'a ValidatingAdmissionPolicyBinding>,
        has_param_kind: bool,
        params: Option<&ApiResource>,
    ) -> Self {
        let facts = |binding: &ValidatingAdmissionPolicyBinding| {
            let spec = &binding.spec;
            let reference = spec.param_ref.as_ref().filter(|_| has_param_kind);
            BindingFacts {
                name: binding.metadata.name.clone().unwrap_or_default(),
                actions: spec.validation_actions.clone(),
                problem: reference.and_then(|reference| problem(reference, params)),
                gives_no_params: has_param_kind && reference.is_none(),
            }
        };
        Self::Known(bindings.map(facts).collect())
    }
}

/// Why the API server cannot use a reference to params.
fn problem(reference: &ParamRef, params: Option<&ApiResource>) -> Option<String> {
    let has_name = reference.name.as_ref().is_some_and(|name| !name.is_empty());
    let has_namespace = reference
        .namespace
        .as_ref()
        .is_some_and(|namespace| !namespace.is_empty());
    match (has_name, &reference.selector) {
        (true, Some(_)) => return Some("paramRef has both name and selector".into()),
        (false, None) => return Some("paramRef has neither name nor selector".into()),
        (false, Some(selector)) => {
            if let Err(error) = Selector::new(selector) {
                return Some(format!("paramRef.selector is invalid: {error}"));
            }
        }
        (true, None) => {}
    }
    let is_cluster_scoped = params.is_some_and(|served| !served.namespaced);
    (has_namespace && is_cluster_scoped)
        .then(|| "paramRef.namespace is given, and objects of paramKind have no namespace".into())
}

/// The permission that is missing where bindings may not be read.
fn not_permitted(effect: Effect) -> String {
    let kind = if effect.is_mutating() {
        "mutating"
    } else {
        "validating"
    };
    format!(
        "vap-status-controller may not read bindings: grant `list` and `watch` on {kind}admissionpolicybindings to it"
    )
}

/// The effect of having no binding.
const fn unbound(effect: Effect) -> &'static str {
    if effect.is_mutating() {
        "no MutatingAdmissionPolicyBinding refers to the policy; it changes no request"
    } else {
        "no ValidatingAdmissionPolicyBinding refers to the policy; it is not enforced"
    }
}

/// The condition `Bound`.
pub(super) fn verdict(state: &BindingsState, effect: Effect) -> Verdict {
    let verdict = |status, reason, message: String, evidence| {
        Verdict::new(status, reason, message).with_evidence(evidence)
    };
    let bindings = match state {
        BindingsState::Unread => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                "the bindings were not read yet".to_owned(),
                Evidence::Awaited,
            );
        }
        BindingsState::NotPermitted => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::NotPermitted,
                not_permitted(effect),
                Evidence::Complete,
            );
        }
        BindingsState::Known(bindings) => bindings,
    };
    if bindings.is_empty() {
        return verdict(
            ConditionStatus::False,
            Reason::NoBindings,
            unbound(effect).to_owned(),
            Evidence::Complete,
        );
    }
    let broken: Vec<String> = bindings
        .iter()
        .filter_map(|binding| {
            let problem = binding.problem.as_ref()?;
            Some(format!("{} ({problem})", binding.name))
        })
        .collect();
    if !broken.is_empty() {
        let consequence = if effect.fails_closed {
            "with failurePolicy Fail every request that it matches is denied"
        } else if effect.is_mutating() {
            "with failurePolicy Ignore it changes no request"
        } else {
            "with failurePolicy Ignore it checks no request"
        };
        return verdict(
            ConditionStatus::False,
            Reason::BindingsInvalid,
            format!(
                "the API server cannot use {}; {consequence}",
                message::list(&broken)
            ),
            Evidence::Complete,
        );
    }
    let described: Vec<String> = bindings
        .iter()
        .map(|binding| {
            if effect.is_mutating() {
                // Those of mutating policies have no actions.
                return binding.name.clone();
            }
            format!("{} ({})", binding.name, binding.actions.join(", "))
        })
        .collect();
    let mut text = format!("bound by {}", message::list(&described));
    let denies = |binding: &BindingFacts| binding.actions.iter().any(|action| action == "Deny");
    if !effect.is_mutating() && !bindings.iter().any(denies) {
        text.push_str("; none of them denies requests");
    }
    let without_params: Vec<&str> = bindings
        .iter()
        .filter(|binding| binding.gives_no_params)
        .map(|binding| binding.name.as_str())
        .collect();
    if !without_params.is_empty() {
        text.push_str("; params is null by ");
        text.push_str(&message::list(&without_params));
        text.push_str(", without paramRef");
    }
    verdict(
        ConditionStatus::True,
        Reason::BindingsFound,
        text,
        Evidence::Complete,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::schema::{Gvk, Gvr};

    #[test]
    fn what_the_api_server_cannot_use_is_said() {
        let mut served = ApiResource {
            gvr: Gvr::new("example.com", "v1", "limits"),
            gvk: Gvk::new("example.com", "v1", "Limit"),
            singular: String::new(),
            namespaced: true,
        };
        let of = |reference: Value, served: &ApiResource| {
            problem(&serde_json::from_value(reference).unwrap(), Some(served))
        };
        assert_eq!(of(json!({"name": "a", "namespace": "b"}), &served), None);
        assert!(
            of(json!({}), &served)
                .unwrap()
                .contains("neither name nor selector")
        );
        assert!(
            of(json!({"name": "a", "selector": {}}), &served)
                .unwrap()
                .contains("both")
        );
        let bad = json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}});
        assert!(of(bad, &served).unwrap().contains("invalid"));
        served.namespaced = false;
        assert!(
            of(json!({"name": "a", "namespace": "b"}), &served)
                .unwrap()
                .contains("no namespace")
        );
    }
}
