//! Generated requests as cases of probes. `upgrade-check` and `diff` evaluate them for two versions of a policy.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;

use crate::cel::interrupt::Interrupt;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::input::Object;
use crate::cli::test::init;
use crate::cli::time_limit::TimeLimit;
use crate::policy::admission::{AuthorizerDecision, AuthorizerRule};
use crate::policy::runtime_errors::{Context, Witness};
use crate::policy::subject::SubjectKind;
use crate::probe::api::{self, BindingSource, Case, PolicyProbeSpec, Source};

/// Runs a search for requests within a time limit. At the time limit, the flag that `run` receives becomes true. `run`
/// must then return.
///
/// # Errors
/// Returns the reason why the search failed.
pub(super) fn search<T: Send>(
    policy_set: &PolicySet<'_>,
    limit: TimeLimit,
    run: impl Fn(&Context<'_>, &Arc<AtomicBool>) -> T + Send + Sync,
) -> Result<T, String> {
    let apis = policy_set.known;
    let context = Context {
        mapper: &apis.mapper,
        schemas: apis,
        written: apis,
        type_findings: &[],
        without_params: None,
        never_has_params: false,
        match_resources: None,
        kinds: None,
        object_cache: &apis.object_cache,
    };
    let search = || {
        limit.run(|is_cancelled| {
            let flag = Arc::clone(is_cancelled);
            let interrupt = Interrupt::new(move || flag.load(Ordering::Relaxed));
            interrupt.run(|| run(&context, is_cancelled))
        })
    };
    match panic::catch_unwind(AssertUnwindSafe(search)) {
        Ok(Ok(Ok(result))) => Ok(result),
        Ok(Err(why)) => Err(why.replace("the evaluation", "the search for requests")),
        Ok(Ok(Err(_))) => Err("the search for requests exceeded the time limit".to_owned()),
        Err(_) => Err(
            "the search for requests failed with an internal error in kubectl-vap; please report it"
                .to_owned(),
        ),
    }
}

/// Returns the binding with which requests for the policy `name` are generated. Prefers a binding that denies requests.
pub(super) fn binding<'b>(
    name: &str,
    bindings: &'b [Object<ValidatingAdmissionPolicyBinding>],
) -> Option<&'b ValidatingAdmissionPolicyBinding> {
    let of_policy = || {
        bindings
            .iter()
            .filter(|it| it.value.spec.policy_name == name)
    };
    let denies = |it: &&Object<ValidatingAdmissionPolicyBinding>| {
        let mut actions = it.value.spec.validation_actions.iter();
        actions.any(|action| action == "Deny")
    };
    let chosen = of_policy().find(denies).or_else(|| of_policy().next());
    chosen.map(|binding| &binding.value)
}

/// Converts a generated request to the case of a probe.
pub(super) fn case(
    policy: &PreparedPolicy<'_>,
    binding: Option<&ValidatingAdmissionPolicyBinding>,
    witness: &Witness,
    is_short: bool,
) -> Option<(PolicyProbeSpec, Case)> {
    let case = json!({
        "name": "generated",
        "request": init::request(witness, is_short)?,
        "expect": {},
    });
    let mut case: Case = serde_json::from_value(case).ok()?;
    case.request.authorizer = witness.authorizer.iter().map(authorizer_rule).collect();
    let mut spec = PolicyProbeSpec::default();
    if policy.kind() == SubjectKind::ValidatingAdmissionPolicy {
        policy.name.clone_into(&mut spec.policy_name);
    } else {
        let target = json!({"kind": policy.kind().row().kind, "name": policy.name});
        spec.target = serde_json::from_value(target).ok();
    }
    match binding {
        None => spec.bindings = BindingSource::Implied,
        Some(binding) => {
            spec.bindings = BindingSource::Inline;
            spec.inline_bindings = vec![ValidatingAdmissionPolicyBindingSpec {
                param_ref: policy.param_kind.as_ref().map(|_| ParamRef {
                    selector: Some(LabelSelector::default()),
                    parameter_not_found_action: Some("Deny".to_owned()),
                    ..ParamRef::default()
                }),
                ..binding.spec.clone()
            }];
        }
    }
    if let Some(params) = &witness.params {
        spec.params = Source::Inline;
        let mut params = params.clone();
        // Moves the params to the namespace of the request: a binding whose paramRef has no namespace uses the params
        // there.
        if let Some(namespace) = params.pointer_mut("/metadata/namespace")
            && let Some(of_request) = witness.request.get("namespace")
        {
            namespace.clone_from(of_request);
        }
        spec.inline_params = Some(params)
            .filter(|it| !it.is_null())
            .into_iter()
            .collect();
    }
    Some((spec, case))
}

fn authorizer_rule(rule: &AuthorizerRule) -> api::AuthorizerRule {
    api::AuthorizerRule {
        verb: rule.verb.clone(),
        group: rule.group.clone(),
        resource: rule.resource.clone(),
        sub_resource: rule.subresource.clone(),
        namespace: rule.namespace.clone(),
        name: rule.name.clone(),
        path: rule.path.clone(),
        decision: match rule.answer.decision {
            AuthorizerDecision::Allow => api::AuthorizerDecision::Allow,
            AuthorizerDecision::Deny => api::AuthorizerDecision::Deny,
            AuthorizerDecision::NoOpinion => api::AuthorizerDecision::NoOpinion,
        },
        reason: None,
        error: None,
    }
}
