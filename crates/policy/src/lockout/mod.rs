//! Policies that lock out a cluster: bound with Deny, they deny requests that the cluster needs to work.
//!
//! The check evaluates the requests of the cluster's components as an API server does, instead of reasoning about rules
//! and selectors. So every kind of guard in the policy counts.

mod requests;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{ParamRef, ValidatingAdmissionPolicyBinding};
use serde_json::json;

use crate::admission::{
    Admission, AuthorizerList, Binding, Namespace, PARAMS_NOT_FOUND as NOT_FOUND, ParamList,
    ReviewContext,
};
use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use crate::reads::{Input, Reads};
use cel::stack::run_on_deep_stack;
use requests::{EssentialRequest, NAMESPACES, essential_requests};

/// Maximum number of bindings of a policy that are tried.
const MAX_BINDINGS: usize = 5;

/// Cost limit: no further requests are evaluated after one that costs more.
const MAX_COST: u64 = 300_000;

/// A lockout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// The denied requests, the most important first.
    pub denied: Vec<Denied>,
    /// True if nodes or the control plane stop working.
    pub is_vital: bool,
}

/// A request that is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// A description of the request.
    pub request: &'static str,
    /// The user of the request.
    pub user: String,
    /// The binding that denies it.
    pub binding: String,
    /// The message of the denial.
    pub message: String,
    /// True if params are missing in the namespace of the request, which may have them in the real cluster.
    pub is_for_params: bool,
}

/// The kind of a policy's params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A kind of a CRD or an aggregated API, which is served some time after the API server has started.
    Late,
    /// A kind that the API server itself serves.
    Own {
        /// True if its objects are namespaced.
        is_namespaced: bool,
    },
}

/// Returns the essential requests that `policy` denies under `bindings`. `params` is the kind of its params, if it has
/// a paramKind.
#[must_use]
pub fn find(
    policy: &CompiledPolicy,
    bindings: &[&ValidatingAdmissionPolicyBinding],
    params: Option<ParamKind>,
) -> Option<Lockout> {
    // The API server rejects a policy without rules.
    let constraints = policy.policy().match_constraints.as_ref()?;
    constraints.resource_rules.as_ref()?;
    // The content of params and the results of the authorizer are unknown.
    let denying = bindings.iter().take(MAX_BINDINGS).filter(|binding| {
        let mut actions = binding.spec.validation_actions.iter();
        let reference = binding.spec.param_ref.as_ref();
        let is_known = match (params, reference) {
            (None | Some(ParamKind::Late), _) | (_, None) => true,
            (Some(ParamKind::Own { is_namespaced }), Some(reference)) => {
                is_namespaced && are_missing(reference)
            }
        };
        actions.any(|action| action == "Deny") && is_known
    });
    let bindings: Vec<Binding> = denying.map(|binding| Binding::new(binding)).collect();
    if bindings.is_empty() || reads_authorizer(policy) {
        return None;
    }
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let admission = Admission::from_compiled(policy);
        let denied = review(&admission, &bindings, params);
        let is_vital = denied.iter().any(|(is_vital, _)| *is_vital);
        // Workloads are not reported if the whole cluster stops working.
        let reported = denied.into_iter().filter(|(of_all, _)| *of_all == is_vital);
        let mut denied: Vec<Denied> = reported.map(|(_, denied)| denied).collect();
        // Certain denials come first.
        denied.sort_by_key(|denied| denied.is_for_params);
        (!denied.is_empty()).then_some(Lockout { denied, is_vital })
    })
}

/// Returns true if the system namespaces have no params for `reference`. Each namespace needs its own params, and these
/// namespaces only have the objects that the controller manager creates in every namespace.
///
/// Source: `k8s.io/kubernetes` `pkg/controller/certificates/rootcacertpublisher` (`RootCACertConfigMapName`),
/// `pkg/controller/serviceaccount/serviceaccounts_controller.go` (the `default` service account).
fn are_missing(reference: &ParamRef) -> bool {
    let is_empty = |text: Option<&str>| text.unwrap_or_default().is_empty();
    let is_published = matches!(
        reference.name.as_deref(),
        Some("kube-root-ca.crt" | "default")
    );
    let selects_all = reference.selector.as_ref().is_some_and(|selector| {
        let has_labels = selector
            .match_labels
            .iter()
            .any(|labels| !labels.is_empty());
        // Objects without labels match selectors that require none.
        let mut asks = selector.match_expressions.iter().flatten();
        !has_labels && !asks.any(|it| matches!(&*it.operator, "In" | "Exists"))
    });
    is_empty(reference.namespace.as_deref()) && !is_published && !selects_all
}

fn review(
    admission: &Admission,
    bindings: &[Binding],
    params: Option<ParamKind>,
) -> Vec<(bool, Denied)> {
    let namespaces: BTreeMap<String, Namespace> = NAMESPACES
        .iter()
        .map(|name| {
            let namespace = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            ((*name).to_owned(), Namespace::new(&namespace))
        })
        .collect();
    let is_namespaced = matches!(
        params,
        Some(ParamKind::Own {
            is_namespaced: true
        })
    );
    let no_params = ParamList::new(is_namespaced, Vec::new());
    let mut context =
        ReviewContext::new(&no_params, &namespaces, Arc::new(AuthorizerList::default()));
    if params == Some(ParamKind::Late) {
        context.params = Err("the kind of the params is not served yet".to_owned());
    }
    let mut denials = Vec::new();
    for EssentialRequest {
        request,
        name,
        is_vital,
    } in essential_requests()
    {
        let outcome = admission.review(request, bindings, &context);
        let costs = outcome.evaluations.iter().map(|evaluation| {
            if evaluation.costs.is_over() {
                MAX_COST
            } else {
                evaluation.costs.used()
            }
        });
        let cost: u64 = costs.fold(0, u64::saturating_add);
        if outcome.exceeded.is_some() {
            break;
        }
        if let Some(denial) = outcome.denial {
            let denied = Denied {
                request: name,
                user: request.user_info.username.clone(),
                binding: denial.binding.unwrap_or_default(),
                is_for_params: denial.cause.contains(NOT_FOUND),
                message: denial.cause,
            };
            denials.push((*is_vital, denied));
        }
        if cost >= MAX_COST {
            break;
        }
    }
    denials
}

fn reads_authorizer(policy: &CompiledPolicy) -> bool {
    policy.expressions().iter().any(|expression| {
        let parsed = expression.parsed();
        parsed.is_ok_and(|ast| Reads::new(ast).has(&[Input::Authorizer]))
    })
}
