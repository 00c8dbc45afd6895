//! Computes the condition `Bound`: True if bindings enforce the policy.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`,
//! `validateValidatingAdmissionPolicyBindingSpec`; `k8s.io/apiserver`
//! `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams`.

use k8s_openapi::api::admissionregistration::v1::{ParamRef, ValidatingAdmissionPolicyBinding};

use super::condition::{ConditionStatus, Reason};
use super::message;
use super::verdict::{Effect, Evidence, Verdict};
use crate::policy::admission::Selector;
use crate::policy::matching;
use crate::schema::rest_mapper::{ApiResource, RestMapper};

/// The state of a policy's bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingsState {
    /// The bindings have not been read yet.
    Unread,
    /// The controller is not allowed to read bindings.
    NotPermitted,
    /// All bindings of the policy were read.
    Known(Vec<BindingFacts>),
}

/// The properties of a binding that determine the condition `Bound`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingFacts {
    /// The name of the binding.
    pub name: String,
    /// The `validationActions`: `Deny`, `Warn`, `Audit`.
    pub actions: Vec<String>,
    /// The reason why the API server cannot use the binding, if any.
    pub problem: Option<String>,
    /// True if the policy has a paramKind but the binding has no paramRef. The variable `params` is then null.
    pub gives_no_params: bool,
    /// True if the binding has rules, but none of them matches a resource that the cluster serves.
    pub matches_nothing: bool,
}

impl BindingsState {
    /// Creates the state from the bindings of a policy. `params` is the resource of the paramKind. `mapper` contains the
    /// served resources.
    #[must_use]
    pub fn from_bindings<'a>(
        bindings: impl Iterator<Item = &'a ValidatingAdmissionPolicyBinding>,
        has_param_kind: bool,
        params: Option<&ApiResource>,
        mapper: &RestMapper,
    ) -> Self {
        let facts = |binding: &ValidatingAdmissionPolicyBinding| {
            let spec = &binding.spec;
            let reference = spec.param_ref.as_ref().filter(|_| has_param_kind);
            BindingFacts {
                name: binding.metadata.name.clone().unwrap_or_default(),
                actions: spec.validation_actions.clone(),
                problem: reference.and_then(|reference| problem(reference, params)),
                gives_no_params: has_param_kind && reference.is_none(),
                matches_nothing: spec
                    .match_resources
                    .as_ref()
                    .is_some_and(|resources| matching::match_nothing(resources, mapper)),
            }
        };
        Self::Known(bindings.map(facts).collect())
    }
}

/// Returns the reason why the API server cannot use a paramRef, if any.
fn problem(reference: &ParamRef, params: Option<&ApiResource>) -> Option<String> {
    let has_name = reference.name.as_ref().is_some_and(|name| !name.is_empty());
    let has_namespace = reference
        .namespace
        .as_ref()
        .is_some_and(|namespace| !namespace.is_empty());
    match (has_name, &reference.selector) {
        (true, Some(_)) => return Some("paramRef has both `name` and `selector`".into()),
        (false, None) => return Some("paramRef has neither `name` nor `selector`".into()),
        (false, Some(selector)) => {
            if let Err(error) = Selector::new(selector) {
                return Some(format!("paramRef.selector is invalid: {error}"));
            }
        }
        (true, None) => {}
    }
    let is_cluster_scoped = params.is_some_and(|served| !served.namespaced);
    (has_namespace && is_cluster_scoped)
        .then(|| "paramRef.namespace is set, but the paramKind is cluster-scoped".into())
}

fn not_permitted(effect: Effect) -> String {
    let kind = if effect.is_mutating() {
        "mutating"
    } else {
        "validating"
    };
    format!(
        "vap-status-controller is not allowed to read bindings: grant it `list` and `watch` on \
         {kind}admissionpolicybindings"
    )
}

const fn unbound(effect: Effect) -> &'static str {
    if effect.is_mutating() {
        "no MutatingAdmissionPolicyBinding refers to the policy; the policy changes no request"
    } else {
        "no ValidatingAdmissionPolicyBinding refers to the policy; the policy is not enforced"
    }
}

pub(super) fn verdict(state: &BindingsState, effect: Effect) -> Verdict {
    let verdict = |status, reason, message: String, evidence| {
        Verdict::new(status, reason, message).with_evidence(evidence)
    };
    let bindings = match state {
        BindingsState::Unread => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                "the bindings have not been read yet".to_owned(),
                Evidence::Pending,
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
    let (status, reason, message) = if let Some(message) = broken(bindings, effect) {
        (ConditionStatus::False, Reason::BindingsInvalid, message)
    } else if bindings.iter().all(|binding| binding.matches_nothing) {
        let names: Vec<&str> = bindings.iter().map(|binding| &*binding.name).collect();
        let noun = if names.len() == 1 {
            "binding"
        } else {
            "bindings"
        };
        let consequence = if effect.is_mutating() {
            "the policy changes no request"
        } else {
            "the policy is not enforced"
        };
        let names = message::list(&names);
        let message = format!(
            "the rules of the {noun} {names} match no resource that the cluster serves; {consequence}"
        );
        (ConditionStatus::False, Reason::NoServedResources, message)
    } else {
        let message = description(bindings, effect);
        (ConditionStatus::True, Reason::BindingsFound, message)
    };
    verdict(status, reason, message, Evidence::Complete)
}

/// Returns the message about bindings that the API server cannot use. `None` if it can use all of them.
fn broken(bindings: &[BindingFacts], effect: Effect) -> Option<String> {
    let broken = bindings.iter().filter_map(|binding| {
        let problem = binding.problem.as_ref()?;
        Some(format!("{} ({problem})", binding.name))
    });
    let broken: Vec<String> = broken.collect();
    let is_one = broken.len() == 1;
    let consequence = match (effect.fails_closed, effect.is_mutating(), is_one) {
        (true, _, true) => "Fail, every request that this binding matches is denied",
        (true, _, false) => "Fail, every request that one of these bindings matches is denied",
        (false, true, true) => "Ignore, this binding changes no request",
        (false, true, false) => "Ignore, these bindings change no request",
        (false, false, true) => "Ignore, this binding checks no request",
        (false, false, false) => "Ignore, these bindings check no request",
    };
    let noun = if is_one { "binding" } else { "bindings" };
    (!broken.is_empty()).then(|| {
        format!(
            "the API server cannot use the {noun} {}; with failurePolicy {consequence}",
            message::list(&broken)
        )
    })
}

/// Returns the message about bindings that enforce the policy.
fn description(bindings: &[BindingFacts], effect: Effect) -> String {
    let described = bindings.iter().map(|binding| {
        if effect.is_mutating() {
            return binding.name.clone();
        }
        format!("{} ({})", binding.name, binding.actions.join(", "))
    });
    let described: Vec<String> = described.collect();
    let mut text = format!("bound by {}", message::list(&described));
    let denies = |binding: &BindingFacts| binding.actions.iter().any(|action| action == "Deny");
    if !effect.is_mutating() && !bindings.iter().any(denies) {
        text.push_str("; no binding denies requests");
    }
    let names = |is_named: fn(&BindingFacts) -> bool| {
        let named = bindings.iter().filter(|binding| is_named(binding));
        let names: Vec<&str> = named.map(|binding| binding.name.as_str()).collect();
        (!names.is_empty()).then(|| message::list(&names))
    };
    if let Some(names) = names(|binding| binding.matches_nothing) {
        text.push_str("; no served resource matches the rules of ");
        text.push_str(&names);
    }
    if let Some(names) = names(|binding| binding.gives_no_params) {
        text.push_str("; params is null for ");
        text.push_str(&names);
        text.push_str(" (no paramRef)");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::schema::{Gvk, Gvr};

    #[test]
    fn problem_of_invalid_param_ref_is_described() {
        let mut served = ApiResource {
            gvr: Gvr::new("example.com", "v1", "limits"),
            gvk: Gvk::new("example.com", "v1", "Limit"),
            singular: String::new(),
            namespaced: true,
        };
        let problem_of = |reference: Value, served: &ApiResource| {
            problem(&serde_json::from_value(reference).unwrap(), Some(served))
        };
        assert_eq!(
            problem_of(json!({"name": "a", "namespace": "b"}), &served),
            None
        );
        assert!(
            problem_of(json!({}), &served)
                .unwrap()
                .contains("neither `name` nor `selector`")
        );
        assert!(
            problem_of(json!({"name": "a", "selector": {}}), &served)
                .unwrap()
                .contains("both")
        );
        let bad = json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}});
        assert!(problem_of(bad, &served).unwrap().contains("invalid"));
        served.namespaced = false;
        assert!(
            problem_of(json!({"name": "a", "namespace": "b"}), &served)
                .unwrap()
                .contains("cluster-scoped")
        );
    }

    fn binding(name: &str, actions: &[&str]) -> BindingFacts {
        BindingFacts {
            name: name.to_owned(),
            actions: actions.iter().map(ToString::to_string).collect(),
            ..BindingFacts::default()
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn verdict_of_bindings_has_reason_and_message() {
        use crate::policy::subject::SubjectKind;
        let effect = |subject, fails_closed| Effect {
            fails_closed,
            subject,
        };
        let validating = effect(SubjectKind::ValidatingAdmissionPolicy, true);
        let ignoring = effect(SubjectKind::ValidatingAdmissionPolicy, false);
        let mutating = effect(SubjectKind::MutatingAdmissionPolicy, false);
        let broken = || BindingFacts {
            problem: Some("no paramRef".to_owned()),
            ..binding("b", &["Deny"])
        };
        let without_params = || BindingFacts {
            gives_no_params: true,
            ..binding("bare", &["Deny"])
        };
        let without_resources = || BindingFacts {
            matches_nothing: true,
            ..binding("void", &["Deny"])
        };
        let void = |message| ("False", "NoServedResources", Evidence::Complete, message);
        let bound = |message| ("True", "BindingsFound", Evidence::Complete, message);
        let invalid = |message| ("False", "BindingsInvalid", Evidence::Complete, message);
        let unbound = |message| ("False", "NoBindings", Evidence::Complete, message);
        let rejected = |message| ("Unknown", "NotPermitted", Evidence::Complete, message);
        let read = BindingsState::Known;
        let table = [
            (
                BindingsState::Unread,
                validating,
                (
                    "Unknown",
                    "Pending",
                    Evidence::Pending,
                    "the bindings have not been read yet",
                ),
            ),
            (
                BindingsState::NotPermitted,
                validating,
                rejected(
                    "vap-status-controller is not allowed to read bindings: grant it `list` and `watch` on \
                     validatingadmissionpolicybindings",
                ),
            ),
            (
                BindingsState::NotPermitted,
                mutating,
                rejected(
                    "vap-status-controller is not allowed to read bindings: grant it `list` and `watch` on \
                     mutatingadmissionpolicybindings",
                ),
            ),
            (
                read(vec![]),
                validating,
                unbound(
                    "no ValidatingAdmissionPolicyBinding refers to the policy; the policy is not enforced",
                ),
            ),
            (
                read(vec![]),
                mutating,
                unbound(
                    "no MutatingAdmissionPolicyBinding refers to the policy; the policy changes no request",
                ),
            ),
            (
                read(vec![binding("a", &["Deny"]), broken()]),
                validating,
                invalid(
                    "the API server cannot use the binding b (no paramRef); with failurePolicy Fail, every request \
                     that this binding matches is denied",
                ),
            ),
            (
                read(vec![broken()]),
                ignoring,
                invalid(
                    "the API server cannot use the binding b (no paramRef); with failurePolicy Ignore, this \
                     binding checks no request",
                ),
            ),
            (
                read(vec![broken(), broken()]),
                validating,
                invalid(
                    "the API server cannot use the bindings b (no paramRef), b (no paramRef); with failurePolicy Fail, \
                     every request that one of these bindings matches is denied",
                ),
            ),
            (
                read(vec![broken()]),
                mutating,
                invalid(
                    "the API server cannot use the binding b (no paramRef); with failurePolicy Ignore, this \
                     binding changes no request",
                ),
            ),
            (
                read(vec![binding("a", &["Deny", "Audit"])]),
                validating,
                bound("bound by a (Deny, Audit)"),
            ),
            (
                read(vec![binding("a", &["Warn"]), binding("b", &["Deny"])]),
                validating,
                bound("bound by a (Warn), b (Deny)"),
            ),
            (
                read(vec![binding("a", &["Warn", "Audit"])]),
                ignoring,
                bound("bound by a (Warn, Audit); no binding denies requests"),
            ),
            (
                read(vec![binding("a", &[]), binding("b", &[])]),
                mutating,
                bound("bound by a, b"),
            ),
            (
                read(vec![binding("a", &["Deny"]), without_params()]),
                validating,
                bound("bound by a (Deny), bare (Deny); params is null for bare (no paramRef)"),
            ),
            (
                read(vec![binding("a", &["Deny"]), without_resources()]),
                validating,
                bound(
                    "bound by a (Deny), void (Deny); no served resource matches the rules of void",
                ),
            ),
            (
                read(vec![without_resources()]),
                validating,
                void(
                    "the rules of the binding void match no resource that the cluster serves; the policy is not enforced",
                ),
            ),
            (
                read(vec![without_resources(), without_resources()]),
                mutating,
                void(
                    "the rules of the bindings void, void match no resource that the cluster serves; the policy \
                     changes no request",
                ),
            ),
        ];
        for (state, effect, expected) in table {
            let verdict = verdict(&state, effect);
            let actual = (
                verdict.status.as_str(),
                verdict.reason.as_str(),
                verdict.evidence,
                &*verdict.message,
            );
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn binding_matches_nothing_if_its_rules_match_no_served_resource() {
        let served = ApiResource {
            gvr: Gvr::new("apps", "v1", "deployments"),
            gvk: Gvk::new("apps", "v1", "Deployment"),
            singular: String::new(),
            namespaced: true,
        };
        let mut mapper = RestMapper::new(vec![served]);
        let binding = |resources: Value| -> ValidatingAdmissionPolicyBinding {
            let value = json!({"spec": {"matchResources": resources}});
            serde_json::from_value(value).unwrap()
        };
        let rules = |group, resource| {
            let rule = json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]});
            binding(json!({"resourceRules": [rule]}))
        };
        let bindings = [
            rules("apps", "deployments"),
            rules("apps", "deployment"),
            rules("example.com", "*"),
            binding(json!({"namespaceSelector": {}})),
        ];
        let matches_nothing = |mapper: &RestMapper| -> Vec<bool> {
            let state = BindingsState::from_bindings(bindings.iter(), false, None, mapper);
            let BindingsState::Known(facts) = state else {
                panic!("{state:?}");
            };
            facts.iter().map(|it| it.matches_nothing).collect()
        };
        assert_eq!(matches_nothing(&mapper), [false, true, true, false]);
        mapper.incomplete = [("example.com/v1".to_owned(), "no answer".to_owned())].into();
        assert_eq!(matches_nothing(&mapper), [false, true, false, false]);
    }

    #[test]
    fn param_ref_is_used_only_with_param_kind() {
        let values = [
            json!({"metadata": {"name": "bad"}, "spec": {"validationActions": ["Warn"], "paramRef": {}}}),
            json!({"metadata": {"name": "bare"}, "spec": {}}),
        ];
        let read = |value| serde_json::from_value(value).unwrap();
        let bindings: Vec<ValidatingAdmissionPolicyBinding> = values.map(read).into();
        let mapper = RestMapper::default();
        let state = |has_param_kind| {
            BindingsState::from_bindings(bindings.iter(), has_param_kind, None, &mapper)
        };
        let plain = [binding("bad", &["Warn"]), binding("bare", &[])];
        assert_eq!(state(false), BindingsState::Known(plain.to_vec()));
        let [mut bad, mut bare] = plain;
        bad.problem = Some("paramRef has neither `name` nor `selector`".to_owned());
        bare.gives_no_params = true;
        assert_eq!(state(true), BindingsState::Known(vec![bad, bare]));
    }
}
