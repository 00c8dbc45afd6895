//! Witnesses: requests that are made to fit needs, and what the evaluator says of them.

mod build;
pub(crate) mod builders;
pub(crate) mod kinds;
pub(crate) mod object_cache;
mod prepare;
mod synthetic_request;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{MatchResources, ValidatingAdmissionPolicy};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::admission::trace::{Step, TRACED_CALL_LIMIT};
use crate::admission::{
    Admission, AdmissionRequest, AuthorizerList, Namespace, Object, Operation, ParamList,
    ReviewContext, UserInfo,
};
use crate::compile::CompiledPolicy;
use crate::runtime_errors::failures::{Failure, effective_failures};
use crate::runtime_errors::input_types::InputType;
use crate::runtime_errors::input_types::roots::{ParamsType, request_input_type, roots};
use crate::runtime_errors::symbolic::SymbolicEvaluator;
use cel::value::EvalError;
use kubernetes::defaulting::{self, Custom};
use kubernetes::library::estimate::AUTHORIZER_CHECK_COST;
use kubernetes::schema::rest_mapper::ApiResource;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root, fails_validation};
use object_cache::ObjectCache;
use prepare::stored_operation;
pub(crate) use synthetic_request::SyntheticRequest;

/// A request for which an expression fails, as an `AdmissionReview` has it, with what is asked besides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    /// The request: operation, kind, resource, name, namespace, userInfo, object, oldObject.
    pub request: Json,
    /// The params, where the policy has a paramKind; null without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Json>,
    /// The namespace of the request, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_object: Option<Json>,
    /// The error of the expression.
    pub error: String,
}
/// Makes requests of one kind, and evaluates them.
pub(crate) struct RequestBuilder<'a> {
    pub(crate) admission: &'a Admission,
    pub(crate) policy: &'a CompiledPolicy,
    pub(crate) resource: &'a ApiResource,
    pub(crate) operations: Vec<Operation>,
    pub(crate) object: InputType<'a>,
    /// The type of the params, where the policy has a paramKind.
    pub(crate) params: Option<ParamsType<'a>>,
    /// True of Kubernetes' own kinds.
    is_builtin: bool,
    /// The definition of a custom resource.
    custom: Option<Custom<'a>>,
    /// True if an expression may read `metadata.generation`.
    reads_generation: bool,
    /// The type of `request`.
    request: InputType<'static>,
    object_cache: &'a ObjectCache,
    /// The least object, once something is made.
    minimal: OnceCell<Option<Json>>,
    /// The namespace of the last request.
    last_namespace: RefCell<Option<(Json, Namespace)>>,
    /// The needs that requests were made for.
    tried: Vec<InputConstraints>,
    /// The requests that were evaluated, with the failures of those that the rules match.
    evaluated: HashMap<Rc<SyntheticRequest>, Option<Rc<Vec<Failure>>>>,
    authorizer: Arc<AuthorizerList>,
    /// The constraints that requests have to meet: those of the policy, and of a binding.
    match_resources: Vec<&'a MatchResources>,
}

/// The cost that evaluations may still have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) n_evaluations: u32,
    pub(crate) cost: u64,
}

impl Budget {
    pub(crate) fn is_used_up(self) -> bool {
        self.n_evaluations == 0 || self.cost == 0
    }
}

impl<'a> RequestBuilder<'a> {
    pub(crate) fn new(
        admission: &'a Admission,
        policy: &'a CompiledPolicy,
        resource: &'a ApiResource,
        operations: Vec<Operation>,
        object: InputType<'a>,
        params: Option<ParamsType<'a>>,
        object_cache: &'a ObjectCache,
    ) -> Self {
        Self {
            custom: None,
            admission,
            policy,
            resource,
            operations,
            is_builtin: object.is_builtin(),
            reads_generation: policy
                .expressions()
                .iter()
                .any(|expression| expression.text.contains("generation")),
            request: request_input_type(resource),
            object_cache,
            minimal: OnceCell::new(),
            object,
            params,
            last_namespace: RefCell::default(),
            tried: Vec::new(),
            evaluated: HashMap::new(),
            authorizer: Arc::new(AuthorizerList::default()),
            match_resources: match_constraints(policy.policy()).into_iter().collect(),
        }
    }

    /// The maker of requests for a kind that a CRD defines, where there is one.
    pub(crate) fn with_definition(mut self, custom: Option<Custom<'a>>) -> Self {
        self.custom = custom;
        self
    }

    /// The maker of requests that meet the selectors of `constraints` too, those of a binding.
    pub(crate) fn with_match_resources(
        mut self,
        match_resources: Option<&'a MatchResources>,
    ) -> Self {
        self.match_resources.extend(match_resources);
        self
    }

    /// A reader of the policy's expressions for the kind, that may take `max_steps`.
    pub(crate) fn evaluator(&self, max_steps: u32) -> SymbolicEvaluator<'a> {
        let roots = roots(&self.object, &self.request, self.params.as_ref());
        SymbolicEvaluator::new(self.policy, roots, self.constants(), max_steps)
    }

    /// The values that are the same in all requests.
    fn constants(&self) -> Vec<(FieldPath, Json)> {
        let (resource, subresource) = self.resource_and_subresource();
        let (gvk, gvr) = (&self.resource.gvk, &self.resource.gvr);
        let mut found = Vec::new();
        for root in [Root::Object, Root::OldObject] {
            found.push((FieldPath::new(root).field("kind"), json!(gvk.kind)));
            found.push((
                FieldPath::new(root).field("apiVersion"),
                json!(gvk.api_version()),
            ));
        }
        let request = FieldPath::new(Root::Request);
        for part in ["kind", "requestKind"] {
            let part = request.field(part);
            let field = |name| part.as_ref().and_then(|part| part.field(name));
            found.push((field("group"), json!(gvk.group)));
            found.push((field("version"), json!(gvk.version)));
            found.push((field("kind"), json!(gvk.kind)));
        }
        for part in ["resource", "requestResource"] {
            let part = request.field(part);
            let field = |name| part.as_ref().and_then(|part| part.field(name));
            found.push((field("group"), json!(gvr.group)));
            found.push((field("version"), json!(gvr.version)));
            found.push((field("resource"), json!(resource)));
        }
        if !subresource.is_empty() {
            found.push((request.field("subResource"), json!(subresource)));
            found.push((request.field("requestSubResource"), json!(subresource)));
        }
        found.push((request.field("dryRun"), json!(false)));
        if let [only] = &*self.operations {
            found.push((request.field("operation"), json!(only.as_str())));
        }
        found
            .into_iter()
            .filter_map(|(path, value)| Some((path?, value)))
            .collect()
    }

    /// Reports whether no request was made for `needs` before.
    pub(crate) fn is_untried(&mut self, constraints: &InputConstraints) -> bool {
        let is_untried = !self.tried.contains(constraints);
        if is_untried {
            self.tried.push(constraints.clone());
        }
        is_untried
    }

    fn resource_and_subresource(&self) -> (&'a str, &'a str) {
        let resource = &*self.resource.gvr.resource;
        resource.split_once('/').unwrap_or((resource, ""))
    }

    /// Reports whether validation refuses an object of what was made, one of Kubernetes' own kinds.
    pub(crate) fn fails_validation(&self, synthetic: &SyntheticRequest) -> bool {
        let is_whole = matches!(self.resource_and_subresource(), (_, "" | "status"));
        let kind = &self.resource.gvk.kind;
        // The object of a connection is one that is stored.
        let update = defaulting::Operation::Update;
        let operation = stored_operation(synthetic.operation).unwrap_or(update);
        let old = synthetic.sent[1].as_ref().map(|old| (update, old));
        let new = synthetic.sent[0].as_ref().map(|new| (operation, new));
        let mut all = old.into_iter().chain(new);
        self.is_builtin
            && is_whole
            && all.any(|(operation, object)| fails_validation(kind, operation, object))
    }

    /// The witness of what was made, for which `error` came up.
    pub(crate) fn witness(&self, synthetic: &SyntheticRequest, error: &str) -> Witness {
        let mut request = synthetic.request.clone();
        if let Some(fields) = request.as_object_mut() {
            for name in [
                "requestKind",
                "requestResource",
                "requestSubResource",
                "options",
                "dryRun",
            ] {
                fields.remove(name);
            }
            let or_null = |object: &Option<Json>| object.clone().unwrap_or(Json::Null);
            let [object, old_object] = &synthetic.sent;
            fields.insert("object".to_owned(), or_null(object));
            fields.insert("oldObject".to_owned(), or_null(old_object));
        }
        let has_params = self.params.is_some();
        Witness {
            request,
            params: has_params.then(|| synthetic.params.clone().unwrap_or(Json::Null)),
            namespace_object: synthetic.namespace.clone(),
            error: error.to_owned(),
        }
    }

    /// The request that was made as the admission sees it, with its namespace and the namespaces that there are.
    pub(crate) fn admission_request(
        &self,
        synthetic: &SyntheticRequest,
    ) -> Option<(
        AdmissionRequest,
        Option<Namespace>,
        BTreeMap<String, Namespace>,
    )> {
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

    /// The namespace, read once for all requests in it.
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

    /// Evaluates the policy for what was made; `None` where the rules do not match it or it has been evaluated
    /// before.
    pub(crate) fn evaluate_once(
        &mut self,
        evaluator: &SymbolicEvaluator<'_>,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Vec<Failure>> {
        if self.evaluated.contains_key(synthetic) {
            return None;
        }
        self.evaluate_uncached(evaluator, synthetic, budget)
            .as_deref()
            .cloned()
    }

    /// [`RequestBuilder::evaluate`], with what is known of a request that has been evaluated before.
    pub(crate) fn evaluate(
        &mut self,
        evaluator: &SymbolicEvaluator<'_>,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Rc<Vec<Failure>>> {
        match self.evaluated.get(synthetic) {
            Some(known) => known.clone(),
            None => self.evaluate_uncached(evaluator, synthetic, budget),
        }
    }

    /// Evaluates the policy for what was made, and keeps the failures.
    fn evaluate_uncached(
        &mut self,
        evaluator: &SymbolicEvaluator<'_>,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Rc<Vec<Failure>>> {
        let steps = self.trace(synthetic, budget);
        let found = steps.map(|steps| Rc::new(effective_failures(evaluator, &steps)));
        self.evaluated.insert(Rc::clone(synthetic), found.clone());
        found
    }

    /// The results of all expressions for what was made; `None` where [`RequestBuilder::evaluate`] has none.
    pub(crate) fn trace_once(
        &mut self,
        synthetic: &Rc<SyntheticRequest>,
        budget: &mut Budget,
    ) -> Option<Vec<Step>> {
        if self.evaluated.insert(Rc::clone(synthetic), None).is_some() {
            return None;
        }
        self.trace(synthetic, budget)
    }

    fn trace(&self, synthetic: &SyntheticRequest, budget: &mut Budget) -> Option<Vec<Step>> {
        if budget.is_used_up() {
            return None;
        }
        budget.n_evaluations -= 1;
        let (request, namespace, namespaces) = self.admission_request(synthetic)?;
        if !self.admission.matches_exactly(&request, &namespaces) {
            return None;
        }
        let no_params = ParamList::default();
        let context =
            ReviewContext::new(&no_params, &namespaces, Arc::clone(&self.authorizer) as _);
        let params = synthetic.params.as_ref().map(Object::new);
        let (evaluation, steps) =
            self.admission
                .trace(&request, params.as_ref(), namespace.as_ref(), &context);
        // Each that ended early may have cost as much as a call may.
        let is_over = |step: &&Step| step.result.as_ref().is_err_and(EvalError::ends_evaluation);
        let over = steps.iter().filter(is_over);
        let of_ended = over.fold(0, |cost: u64, _| cost.saturating_add(TRACED_CALL_LIMIT));
        // A check asks nobody here.
        let cost = evaluation.costs.used() % AUTHORIZER_CHECK_COST;
        let cost = cost.saturating_add(100).saturating_add(of_ended);
        budget.cost = budget.cost.saturating_sub(cost);
        // The decision of the API server about such a request is unknown.
        evaluation.exceeded.is_none().then_some(steps)
    }
}

fn match_constraints(policy: &ValidatingAdmissionPolicy) -> Option<&MatchResources> {
    policy.spec.as_ref()?.match_constraints.as_ref()
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

/// The needs of the least request of each operation.
pub(crate) fn minimal_constraints(operations: &[Operation]) -> Vec<InputConstraints> {
    let mut all = vec![InputConstraints::default()];
    for operation in operations.iter().skip(1) {
        let mut constraints = InputConstraints::default();
        let path = FieldPath::new(Root::Request).field("operation");
        let name = Json::from(operation.as_str());
        if path
            .and_then(|path| constraints.add(&path, Constraint::Equals(name)))
            .is_some()
        {
            all.push(constraints);
        }
    }
    all
}
