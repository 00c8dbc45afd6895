//! Witnesses: requests that are made to fit needs, and what the evaluator says of them.

mod build;
pub(crate) mod builders;
mod evaluation;
pub(crate) mod kinds;
pub(crate) mod object_cache;
mod prepare;
mod synthetic_request;
mod witness;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{MatchResources, ValidatingAdmissionPolicy};
use serde_json::{Value as Json, json};

use crate::admission::{Admission, AuthorizerList, Namespace, Operation};
use crate::compile::CompiledPolicy;
use crate::runtime_errors::failures::Failure;
use crate::runtime_errors::input_types::InputType;
use crate::runtime_errors::input_types::roots::{ParamsType, request_input_type, roots};
use crate::runtime_errors::symbolic::SymbolicEvaluator;
pub(crate) use evaluation::Budget;
use kubernetes::defaulting::{self, Custom};
use kubernetes::schema::rest_mapper::ApiResource;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root, fails_validation};
use object_cache::ObjectCache;
use prepare::stored_operation;
pub(crate) use synthetic_request::SyntheticRequest;
pub use witness::Witness;

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
}

fn match_constraints(policy: &ValidatingAdmissionPolicy) -> Option<&MatchResources> {
    policy.spec.as_ref()?.match_constraints.as_ref()
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
