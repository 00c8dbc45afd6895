//! Evaluates a policy for synthetic requests, within a budget.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value as Json;

use super::synthetic_request::AdmissionInput;
use super::{RequestBuilder, SyntheticRequest, TracedRequest};
use crate::admission::trace::{Step, TRACED_CALL_LIMIT};
use crate::admission::{
    Admission, AdmissionRequest, Namespace, Object, Operation, ParamList, ReviewContext, UserInfo,
};
use crate::runtime_errors::failures::{Failure, effective_failures};
use crate::runtime_errors::symbolic::SymbolicEvaluator;
use cel::value::EvalError;
use kubernetes::defaulting;
use kubernetes::library::estimate::AUTHORIZER_CHECK_COST;
use kubernetes::validity::InputConstraints;
use kubernetes::version::KubernetesVersion;

/// The remaining evaluations and the remaining CEL cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) n_evaluations: u32,
    pub(crate) cost: u64,
}

impl Budget {
    /// No limit. Used by searches that have their own limit on the number of evaluations.
    pub(crate) const UNLIMITED: Self = Self {
        n_evaluations: u32::MAX,
        cost: u64::MAX,
    };

    pub(crate) fn is_used_up(self) -> bool {
        self.n_evaluations == 0 || self.cost == 0
    }
}

impl RequestBuilder<'_> {
    /// Adapts the objects of `request` to `version`, for example by removing newer fields. `request` must have been
    /// built from `synthetic`. `None` if nothing changes.
    pub(crate) fn adapted(
        &self,
        synthetic: &SyntheticRequest,
        request: &AdmissionRequest,
        version: KubernetesVersion,
    ) -> Option<AdmissionRequest> {
        let is_stored = matches!(&*request.subresource, "" | "status")
            && synthetic.operation != Operation::Connect;
        if !self.is_builtin || !is_stored || !defaulting::is_adapted(version) {
            return None;
        }
        let objects = [&synthetic.object, &synthetic.old_object];
        let [object, old_object] = objects.map(|object| {
            let mut object = object.clone()?;
            defaulting::adapt_to_version(version, &request.gvk, &mut object, None);
            Some(object)
        });
        if object == synthetic.object && old_object == synthetic.old_object {
            return None;
        }
        Some(AdmissionRequest {
            object: object.as_ref().map(Object::new),
            old_object: old_object.as_ref().map(Object::new),
            ..request.clone()
        })
    }

    /// Converts a synthetic request to a request for admission. Also returns its namespace, and all namespaces by name.
    /// `None` if the request is about a Namespace, and has neither an object nor an old object.
    pub(crate) fn admission_request(&self, synthetic: &SyntheticRequest) -> Option<AdmissionInput> {
        let (resource, subresource) = self.resource_and_subresource();
        let text = |name: &str| {
            let value = synthetic.request.get(name).and_then(Json::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut gvr = self.resource.gvr.clone();
        resource.clone_into(&mut gvr.resource);
        let request = AdmissionRequest {
            operation: synthetic.operation,
            gvk: self.resource.gvk.clone(),
            gvr,
            subresource: subresource.to_owned(),
            name: text("name"),
            namespace: text("namespace"),
            object: synthetic.object.as_ref().map(Object::new),
            old_object: synthetic.old_object.as_ref().map(Object::new),
            user_info: user_info(synthetic.request.get("userInfo")),
            dry_run: synthetic.request.get("dryRun") == Some(&Json::Bool(true)),
            ..AdmissionRequest::default()
        };
        let namespace = synthetic
            .namespace
            .as_ref()
            .map(|namespace| self.namespace(namespace));
        let mut namespaces = BTreeMap::new();
        if let Some(namespace) = &namespace {
            namespaces.insert(request.namespace.clone(), namespace.clone());
        } else if !request.namespace.is_empty() {
            let own = synthetic
                .object
                .as_ref()
                .or(synthetic.old_object.as_ref())?;
            namespaces.insert(request.namespace.clone(), Namespace::new(own));
        }
        Some((request, namespace, namespaces))
    }

    /// Converts a namespace. Consecutive requests in the same namespace share the result.
    fn namespace(&self, namespace: &Json) -> Namespace {
        let mut last = self.last_namespace.borrow_mut();
        match &*last {
            Some((known, read)) if known == namespace => read.clone(),
            _ => {
                let read = Namespace::new(namespace);
                *last = Some((namespace.clone(), read.clone()));
                read
            }
        }
    }

    /// Returns true if the policy was already evaluated for this request.
    pub(crate) fn is_evaluated(&self, synthetic: &Rc<SyntheticRequest>) -> bool {
        self.evaluated.contains_key(synthetic)
    }

    /// Evaluates the policy for a request, and returns the failures, which are empty if no expression fails. Repeated
    /// calls return the cached result.
    ///
    /// Returns `None` in each of these cases:
    ///
    /// - The budget is used up.
    /// - The rules of the policy or of the given binding do not match the request. An equivalent resource that matches
    ///   is not sufficient.
    /// - The evaluation exceeds a limit of this crate. The API server's decision is then unknown.
    pub(crate) fn evaluate(
        &mut self,
        symbolic: &SymbolicEvaluator<'_>,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Rc<Vec<Failure>>> {
        match self.evaluated.get(synthetic) {
            Some(known) => known.clone(),
            None => self.evaluate_uncached(symbolic, synthetic, budget),
        }
    }

    /// Evaluates the policy for a request and caches the result. A result `None` is cached too.
    fn evaluate_uncached(
        &mut self,
        symbolic: &SymbolicEvaluator<'_>,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Rc<Vec<Failure>>> {
        let steps = self.trace_uncached(synthetic, budget);
        let failures = steps.map(|steps| Rc::new(effective_failures(symbolic, &steps)));
        self.evaluated
            .insert(Rc::clone(synthetic), failures.clone());
        failures
    }

    /// Evaluates the policy for a request, and returns the results of the evaluated expressions. Returns `None` if the
    /// request was already evaluated, and in the same cases as [`RequestBuilder::evaluate`].
    pub(crate) fn trace_once(
        &mut self,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Vec<Step>> {
        if self.evaluated.insert(Rc::clone(synthetic), None).is_some() {
            return None;
        }
        self.trace_uncached(synthetic, budget)
    }

    /// Returns the requests for which the policy was evaluated, in a fixed order.
    pub(crate) fn evaluated_requests(&self) -> Vec<Rc<SyntheticRequest>> {
        let mut requests: Vec<_> = self.evaluated.keys().map(Rc::clone).collect();
        requests.sort_by_key(|synthetic| synthetic.digest);
        requests
    }

    /// Returns a request that satisfies `constraints`. Builds it on first use. `None` if no valid request is found.
    pub(crate) fn built(&self, constraints: &InputConstraints) -> Option<Rc<SyntheticRequest>> {
        let mut built = self.built.borrow_mut();
        if let Some(known) = built.get(constraints) {
            return known.clone();
        }
        let synthetic = self.build(constraints);
        built.insert(constraints.clone(), synthetic.clone());
        synthetic
    }

    /// Evaluates the policy for a request of a trial, and keeps the results for the next trials. Returns `None` in the
    /// same cases as [`RequestBuilder::evaluate`].
    pub(crate) fn traced(
        &self,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Rc<TracedRequest>> {
        if let Some(known) = self.traced.borrow().get(synthetic) {
            return known.clone();
        }
        if budget.is_used_up() {
            return None;
        }
        let trace = |budget| {
            let input = self.admission_request(synthetic)?;
            let steps = self.trace_input(self.admission, (synthetic, &input), budget)?;
            Some(Rc::new(TracedRequest { input, steps }))
        };
        let traced = trace(budget);
        let mut cached = self.traced.borrow_mut();
        cached.insert(Rc::clone(synthetic), traced.clone());
        traced
    }

    /// Evaluates the policy for a request, and returns the results of the evaluated expressions.
    fn trace_uncached(
        &self,
        synthetic: &SyntheticRequest,
        budget: &mut Budget,
    ) -> Option<Vec<Step>> {
        if budget.is_used_up() {
            return None;
        }
        let input = self.admission_request(synthetic)?;
        self.trace_input(self.admission, (synthetic, &input), budget)
    }

    /// Evaluates `admission`, which may be a changed policy, for a request and its converted form. Returns the results of
    /// the evaluated expressions.
    pub(crate) fn trace_input(
        &self,
        admission: &Admission,
        (synthetic, (request, namespace, namespaces)): (&SyntheticRequest, &AdmissionInput),
        budget: &mut Budget,
    ) -> Option<Vec<Step>> {
        if budget.is_used_up() {
            return None;
        }
        budget.n_evaluations -= 1;
        let binding = self.binding_constraints.as_ref();
        let is_bound = binding.is_none_or(|binding| {
            let matched = binding.matches(request, namespaces);
            matched.is_ok_and(|matched| matched.is_some())
        });
        if !is_bound || !admission.matches_exactly(request, namespaces) {
            return None;
        }
        let no_params = ParamList::default();
        let context = ReviewContext::new(&no_params, namespaces, synthetic.authorizer());
        let params = synthetic.params.as_ref().map(Object::new);
        let (evaluation, steps) =
            admission.trace(request, params.as_ref(), namespace.as_ref(), &context);
        // An interrupted expression is charged the cost limit of one evaluation.
        let is_over = |step: &&Step| step.result.as_ref().is_err_and(EvalError::ends_evaluation);
        let over = steps.iter().filter(is_over);
        let of_ended = over.fold(0, |cost: u64, _| cost.saturating_add(TRACED_CALL_LIMIT));
        // Authorizer checks take no time here, so they are not charged. Each of them costs `AUTHORIZER_CHECK_COST`, so
        // the remainder is the cost of everything else.
        let cost = evaluation.costs.used() % AUTHORIZER_CHECK_COST;
        let cost = cost.saturating_add(100).saturating_add(of_ended);
        budget.cost = budget.cost.saturating_sub(cost);
        // If a limit is exceeded, the API server's decision is unknown.
        evaluation.exceeded.is_none().then_some(steps)
    }
}

fn user_info(value: Option<&Json>) -> UserInfo {
    let text = |name: &str| {
        let text = value.and_then(|value| value.get(name)?.as_str());
        text.unwrap_or_default().to_owned()
    };
    let texts = |value: &Json| {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| Some(item.as_str()?.to_owned()))
            .collect()
    };
    let extra = value.and_then(|value| value.get("extra")?.as_object());
    UserInfo {
        username: text("username"),
        uid: text("uid"),
        groups: value
            .and_then(|value| value.get("groups"))
            .map(texts)
            .unwrap_or_default(),
        extra: extra
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), Some(texts(values))))
            .collect(),
    }
}
