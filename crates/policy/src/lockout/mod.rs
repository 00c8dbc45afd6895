//! Finds policies that lock out a cluster: with the action Deny, they deny requests of the cluster's own components.
//!
//! The check evaluates sample requests of these components as an API server would. It therefore takes every kind of
//! guard in a policy into account.

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

/// Maximum number of checked bindings of a policy.
const MAX_BINDINGS: usize = 5;

/// Maximum CEL cost of one request. After a more expensive request, no further requests are evaluated.
const MAX_COST: u64 = 300_000;

/// A set of denied requests that the cluster needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// The denied requests, most important first.
    pub denied: Vec<Denied>,
    /// True if nodes or the control plane stop working. False if only individual workloads are affected.
    pub is_vital: bool,
}

/// A denied request.
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
    /// True if the request is denied because its namespace lacks params. A real cluster may have these params.
    pub is_for_params: bool,
}

/// The type of API that serves the params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A CRD or an aggregated API. It is not served yet when the API server starts.
    Late,
    /// The API server itself serves the kind.
    Own {
        /// True if objects of the kind are namespaced.
        is_namespaced: bool,
    },
}

/// Returns the essential requests that `policy` denies under `bindings`. `None` if no such request is denied, or if the
/// decisions are unknown. `params` is `None` if the policy has no paramKind.
#[must_use]
pub fn find(
    policy: &CompiledPolicy,
    bindings: &[&ValidatingAdmissionPolicyBinding],
    params: Option<ParamKind>,
) -> Option<Lockout> {
    // The API server rejects a policy without rules.
    let constraints = policy.policy().match_constraints.as_ref()?;
    constraints.resource_rules.as_ref()?;
    // The content of params is unknown, so a binding whose decision depends on it is skipped. A policy that reads the
    // authorizer is skipped as a whole.
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
        // If vital requests are denied, denied requests of individual workloads are not reported.
        let reported = denied.into_iter().filter(|(of_all, _)| *of_all == is_vital);
        let mut denied: Vec<Denied> = reported.map(|(_, denied)| denied).collect();
        // Denials that are independent of params come first.
        denied.sort_by_key(|denied| denied.is_for_params);
        (!denied.is_empty()).then_some(Lockout { denied, is_vital })
    })
}

/// Returns true if the system namespaces certainly lack the params that `reference` selects.
///
/// Without a namespace, `reference` selects params in the namespace of each request. The system namespaces are assumed
/// to have only the objects that the controller manager creates in every namespace: the `ConfigMap` `kube-root-ca.crt`
/// and the service account `default`. The result is false if `reference` has a namespace, names one of these objects,
/// or has a selector that may select them.
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
        // `kube-root-ca.crt` and `default` have no labels, so only a selector that requires no label selects them.
        let mut requirements = selector.match_expressions.iter().flatten();
        !has_labels && !requirements.any(|it| matches!(&*it.operator, "In" | "Exists"))
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
