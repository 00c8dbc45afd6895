//! `Bound`: whether bindings enforce the policy.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`,
//! `validateValidatingAdmissionPolicyBindingSpec`; `k8s.io/apiserver`
//! `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams`.

use super::compute::{Lacks, Verdict};
use super::condition::{ConditionStatus, Reason};
use super::message;

/// What is known of a policy's bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingsState {
    /// They were not read yet.
    Unread,
    /// We may not read them.
    NotPermitted,
    /// These are all.
    Known(Vec<BindingFacts>),
}

/// What is known of one binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingFacts {
    /// The name.
    pub name: String,
    /// `Deny`, `Warn`, `Audit`.
    pub actions: Vec<String>,
    /// Why the API server cannot use it.
    pub problem: Option<String>,
    /// Whether it leaves `params` null, although the policy has a paramKind.
    pub gives_no_params: bool,
}

/// The condition `Bound`.
pub(super) fn verdict(state: &BindingsState, fails_closed: bool) -> Verdict {
    let verdict = |status, reason, message: String, lacks| Verdict {
        status,
        reason,
        message,
        lacks,
    };
    let bindings = match state {
        BindingsState::Unread => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::Pending,
                "the bindings were not read yet".to_owned(),
                Lacks::Evidence,
            );
        }
        BindingsState::NotPermitted => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::NotPermitted,
                "vap-status-controller may not read bindings: grant `list` and `watch` on \
                 validatingadmissionpolicybindings to it"
                    .to_owned(),
                Lacks::Nothing,
            );
        }
        BindingsState::Known(bindings) => bindings,
    };
    if bindings.is_empty() {
        return verdict(
            ConditionStatus::False,
            Reason::NoBindings,
            "no ValidatingAdmissionPolicyBinding refers to the policy; it is not enforced"
                .to_owned(),
            Lacks::Nothing,
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
        let consequence = if fails_closed {
            "with failurePolicy Fail every request that it matches is denied"
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
            Lacks::Nothing,
        );
    }
    let described: Vec<String> = bindings
        .iter()
        .map(|binding| format!("{} ({})", binding.name, binding.actions.join(", ")))
        .collect();
    let mut text = format!("bound by {}", message::list(&described));
    let denies = |binding: &BindingFacts| binding.actions.iter().any(|action| action == "Deny");
    if !bindings.iter().any(denies) {
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
        Lacks::Nothing,
    )
}
