//! Finds policies that lock out a cluster: bound with Deny, they deny requests that the cluster needs to work.
//!
//! The check evaluates sample requests of the cluster's components as an API server would. It does not reason about
//! rules and selectors, so it respects every kind of guard in a policy.

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

/// Maximum number of bindings of a policy that are checked.
const MAX_BINDINGS: usize = 5;

/// Maximum CEL cost of one request. If a request costs more, the remaining requests are not evaluated.
const MAX_COST: u64 = 300_000;

/// A set of denied requests that the cluster needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// The denied requests, the most important one first.
    pub denied: Vec<Denied>,
    /// True if nodes or the control plane stop working. False if only single workloads are affected.
    pub is_vital: bool,
}

/// A request that the policy denies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// A description of the request.
    pub request: &'static str,
    /// The user of the request.
    pub user: String,
    /// The name of the binding that denies the request.
    pub binding: String,
    /// The message of the denial.
    pub message: String,
    /// True if the denial is due to missing params in the request's namespace. The real cluster may have these params.
    pub is_for_params: bool,
}

/// How the kind of a policy's params is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// The kind of a CRD or an aggregated API. It is not served yet when the API server starts.
    Late,
    /// A kind that the API server itself serves.
    Own {
        /// True if objects of the kind are namespaced.
        is_namespaced: bool,
    },
}

/// Returns the essential requests that `policy` denies under `bindings`. `None` if it denies none of them, or if its
/// decisions cannot be determined. `params` is `None` if the policy has no paramKind.
#[must_use]
pub fn find(
    policy: &CompiledPolicy,
    bindings: &[&ValidatingAdmissionPolicyBinding],
    params: Option<ParamKind>,
) -> Option<Lockout> {
    // The API server rejects a policy without rules.
    let constraints = policy.policy().match_constraints.as_ref()?;
    constraints.resource_rules.as_ref()?;
    // A binding is skipped if the decision depends on the content of params, which is unknown here. A policy that reads
    // the authorizer is skipped as a whole.
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
        // If the whole cluster stops working, single workloads are not reported.
        let reported = denied.into_iter().filter(|(of_all, _)| *of_all == is_vital);
        let mut denied: Vec<Denied> = reported.map(|(_, denied)| denied).collect();
        // Denials that do not depend on params come first.
        denied.sort_by_key(|denied| denied.is_for_params);
        (!denied.is_empty()).then_some(Lockout { denied, is_vital })
    })
}

/// Returns true if the system namespaces certainly lack the params that `reference` selects.
///
/// A `reference` without a namespace selects params in the namespace of each request. The system namespaces are assumed
/// to contain only the objects that the controller manager creates in every namespace: the `ConfigMap`
/// `kube-root-ca.crt` and the service account `default`. The result is false if `reference` has a namespace, names one
/// of these objects, or has a selector that may select them.
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
        // These objects have no labels, so only a selector that requires no label selects them.
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
