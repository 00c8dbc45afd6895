//! Findings about policies that deny what the cluster itself needs.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};

use super::finding::{Finding, Severity};
use super::known::Known;
use super::policy::{Answers, bindings_of, finding};
use crate::cli::input::Object;
use crate::policy::lockout::{self, ParamKind};
use crate::policy::param_kind;
use crate::policy::rule::Rule;

/// The longest message of a denial that is shown, in characters.
const MAX_SHOWN: usize = 120;

/// Adds what `policy` denies of the cluster's own requests under the bindings of the input.
pub(super) fn check(
    policy: &Object<ValidatingAdmissionPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    known: &Known,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    // What does not compile has findings enough.
    if !answers.errors.is_empty() {
        return;
    }
    let of_policy: Vec<_> = bindings_of(policy, bindings)
        .map(|binding| &binding.value)
        .collect();
    let params = param_kind(&policy.value).map(|gvk| {
        let mut resources = known.mapper.resources_of_kind(&gvk);
        match resources.next().filter(|_| known.is_builtin(&gvk)) {
            Some(resource) => ParamKind::Own {
                is_namespaced: resource.namespaced,
            },
            None => ParamKind::Late,
        }
    });
    let Some(found) = lockout::find(answers.compiled(), &of_policy, params) else {
        return;
    };
    let Some((first, others)) = found.denied.split_first() else {
        return;
    };
    let words = first.message.split_whitespace().collect::<Vec<_>>();
    let said: String = words.join(" ").chars().take(MAX_SHOWN).collect();
    let others = match others.len() {
        0 => String::new(),
        1 => ", and one more that the cluster needs".to_owned(),
        n => format!(", and {n} more that the cluster needs"),
    };
    let under = match first.binding.as_str() {
        "" => String::new(),
        binding => format!(" under the binding `{binding}`"),
    };
    let message = format!(
        "denies {}, by {}{under}, with `{said}`{others}",
        first.request, first.user
    );
    // A kind of a CRD is served some time after the API server has started.
    let is_for_good = params != Some(ParamKind::Late);
    let severity = if found.is_vital && is_for_good && !first.is_for_params {
        Severity::Warning
    } else {
        Severity::Note
    };
    let field_ref = "spec.matchConstraints.resourceRules";
    let node = policy.document.node.nearest(field_ref);
    let mut shown = finding(
        policy,
        severity,
        Rule::LockOut,
        &message,
        policy.place_of(node),
    );
    shown.field_ref = Some(field_ref.to_owned());
    shown.help = Some(if first.is_for_params {
        "paramRef names no namespace, so that each namespace needs params of its own, those of the cluster's parts too: \
         create them there, name the resources that are meant, or leave such requests out by a namespaceSelector on \
         `kubernetes.io/metadata.name`"
            .to_owned()
    } else if is_for_good {
        "name the resources that are meant, or leave such requests out by matchConditions on request.userInfo or a \
         namespaceSelector on `kubernetes.io/metadata.name`"
            .to_owned()
    } else {
        "until the kind of the params is served, as when the API server starts, each request that the rules match is \
         denied, before match conditions are asked: name the resources that are meant"
            .to_owned()
    });
    findings.push(shown);
}
