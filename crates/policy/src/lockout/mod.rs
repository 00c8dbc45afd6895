//! Policies that lock a cluster out: under a binding with Deny they deny requests without which it stops working.
//!
//! Nothing is guessed from rules and selectors: the requests that the parts of a cluster make are reviewed as an API
//! server reviews them, so that each guard counts, in whatever form.

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

/// The most bindings of a policy that are tried.
const MAX_BINDINGS: usize = 5;

/// After a request that took more cost units than this no further one is tried.
const MAX_COST: u64 = 300_000;

/// A lock-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockout {
    /// The requests that are denied, the most vital first.
    pub denied: Vec<Denied>,
    /// True where nodes or the control plane stop.
    pub is_vital: bool,
}

/// A request that is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The request, in words.
    pub request: &'static str,
    /// The user who makes it.
    pub user: String,
    /// The binding.
    pub binding: String,
    /// The message of the denial.
    pub message: String,
    /// True if the namespace of the request may hold the params that are missing there.
    pub is_for_params: bool,
}

/// The kind of a policy's params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// One of a CRD or of an aggregated API, which is served some time after the API server has started.
    Late,
    /// One that the API server itself serves.
    Own {
        /// True if its objects have namespaces.
        is_namespaced: bool,
    },
}

/// The requests that a cluster needs and that `policy` denies under `bindings`; `params` is the kind of its params,
/// where it has a paramKind.
#[must_use]
pub fn find(
    policy: &CompiledPolicy,
    bindings: &[&ValidatingAdmissionPolicyBinding],
    params: Option<ParamKind>,
) -> Option<Lockout> {
    // A policy without rules is none that the API server takes.
    let spec = policy.policy().spec.as_ref()?;
    let constraints = spec.match_constraints.as_ref()?;
    constraints.resource_rules.as_ref()?;
    // What params hold and what an authorizer says is not known.
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
        // Of workloads nothing is said where the cluster as a whole stops.
        let told = denied.into_iter().filter(|(of_all, _)| *of_all == is_vital);
        let mut denied: Vec<Denied> = told.map(|(_, denied)| denied).collect();
        // What is certain comes first.
        denied.sort_by_key(|denied| denied.is_for_params);
        (!denied.is_empty()).then_some(Lockout { denied, is_vital })
    })
}

/// Reports whether the namespaces of the cluster's own parts hold no params that `reference` names: each namespace is
/// to have its own, and these have none but what the controller manager puts into each.
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
        // What has no labels is selected by what asks for none.
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
    let mut found = Vec::new();
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
            found.push((*is_vital, denied));
        }
        if cost >= MAX_COST {
            break;
        }
    }
    found
}

fn reads_authorizer(policy: &CompiledPolicy) -> bool {
    policy.expressions().iter().any(|expression| {
        let parsed = expression.parsed();
        parsed.is_ok_and(|ast| Reads::new(ast).has(&[Input::Authorizer]))
    })
}
