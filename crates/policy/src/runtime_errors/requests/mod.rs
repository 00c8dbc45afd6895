//! Builds synthetic requests that satisfy constraints, and evaluates the policy for them.
//!
//! - `builders`, `kinds`: create one [`RequestBuilder`] for each kind that represents the matched kinds.
//! - `build`: turns constraints into a [`SyntheticRequest`] with valid objects.
//! - `prepare`, `object_cache`: add the defaults and metadata that the API server sets before admission.
//! - `evaluation`: evaluates the whole policy within a [`Budget`].
//! - `witness`: converts a request to the form that findings show.

mod build;
pub(crate) mod builders;
mod evaluation;
pub(crate) mod kinds;
pub(crate) mod object_cache;
mod prepare;
mod synthetic_request;
mod witness;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use serde_json::{Value as Json, json};

use crate::admission::rules::Constraints;
use crate::admission::{Admission, Namespace, Operation};
use crate::compile::CompiledPolicy;
use crate::runtime_errors::failures::Failure;
use crate::runtime_errors::input_types::InputType;
use crate::runtime_errors::input_types::roots::{
    ParamsType, authorizer_input_type, request_input_type, roots,
};
use crate::runtime_errors::symbolic::SymbolicEvaluator;
pub(crate) use evaluation::Budget;
use kubernetes::custom_resource::Validator;
use kubernetes::defaulting::{self, Custom};
use kubernetes::schema::Crd;
use kubernetes::schema::rest_mapper::ApiResource;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root, fails_validation};
use object_cache::ObjectCache;
use prepare::stored_operation;
pub(crate) use synthetic_request::{SyntheticRequest, TracedRequest};
pub use witness::Witness;

/// Maximum number of values in given params that the symbolic evaluator treats as constants.
const MAX_SCALARS: usize = 200;

/// Adds the numbers, strings and booleans of a value, with their paths.
fn scalars(path: FieldPath, value: &Json, found: &mut Vec<(FieldPath, Json)>) {
    if found.len() >= MAX_SCALARS {
        return;
    }
    match value {
        Json::Object(fields) => {
            for (name, value) in fields {
                if let Some(path) = path.field(name) {
                    scalars(path, value, found);
                }
            }
        }
        Json::Array(items) => {
            for (n, value) in items.iter().enumerate() {
                if let Some(path) = path.element(n) {
                    scalars(path, value, found);
                }
            }
        }
        Json::Null => {}
        value => found.push((path, value.clone())),
    }
}

/// Builds requests for one kind, and evaluates the policy for them.
pub(crate) struct RequestBuilder<'a> {
    pub(crate) admission: &'a Admission,
    pub(crate) policy: &'a CompiledPolicy,
    pub(crate) resource: &'a ApiResource,
    pub(crate) operations: Vec<Operation>,
    pub(crate) object: InputType<'a>,
    /// The type of the params. `None` if the policy has no paramKind.
    pub(crate) params: Option<ParamsType<'a>>,
    is_builtin: bool,
    /// The schema and subresources of a custom resource. `None` for a built-in kind.
    custom: Option<Custom<'a>>,
    /// The CRD of a custom resource, if it is known.
    crd: Option<&'a Crd>,
    /// Validates objects by the rules of the CRD. Built on first use. `None` without a CRD.
    validator: OnceCell<Option<Validator>>,
    /// True if an expression may read `metadata.generation`.
    reads_generation: bool,
    /// The type of `request`.
    request: InputType<'static>,
    object_cache: &'a ObjectCache,
    /// The minimal valid object of the kind. Built on first use.
    minimal: OnceCell<Option<Json>>,
    /// The namespace of the latest request, as JSON and as a [`Namespace`].
    last_namespace: RefCell<Option<(Json, Namespace)>>,
    /// The constraints for which a request was already built.
    tried: HashSet<InputConstraints>,
    /// The failures of the evaluated requests. `None` if [`RequestBuilder::evaluate`] had no result, or if only
    /// [`RequestBuilder::trace_once`] was called.
    evaluated: HashMap<Rc<SyntheticRequest>, Option<Rc<Vec<Failure>>>>,
    /// The requests that were built for the search and for trials, by their constraints. `None` if no valid request is
    /// found.
    built: RefCell<HashMap<InputConstraints, Option<Rc<SyntheticRequest>>>>,
    /// The evaluations of requests that are used for trials. `None` if an evaluation had no result.
    traced: RefCell<HashMap<Rc<SyntheticRequest>, Option<Rc<TracedRequest>>>>,
    /// The matchConstraints of the policy, and the matchResources of a binding if given. Requests satisfy all of them.
    match_resources: Vec<&'a MatchResources>,
    /// The matchResources of the binding with parsed selectors.
    binding_constraints: Option<Constraints>,
    /// Builders for several matched kinds, possibly including the kind of this builder. Changed expressions are tried
    /// with the requests of these builders.
    pub(crate) other_kinds: Rc<Vec<RequestBuilder<'a>>>,
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
            crd: None,
            validator: OnceCell::new(),
            admission,
            policy,
            resource,
            operations,
            is_builtin: object.is_builtin(),
            reads_generation: policy
                .expressions()
                .iter()
                .any(|expression| expression.text.contains("generation")),
            request: request_input_type(resource, object.is_name_generated()),
            object_cache,
            minimal: OnceCell::new(),
            object,
            params,
            last_namespace: RefCell::default(),
            tried: HashSet::new(),
            evaluated: HashMap::new(),
            built: RefCell::default(),
            traced: RefCell::default(),
            match_resources: policy.policy().match_constraints.iter().collect(),
            binding_constraints: None,
            other_kinds: Rc::default(),
        }
    }

    pub(crate) fn with_definition(mut self, custom: Option<Custom<'a>>) -> Self {
        self.custom = custom;
        self
    }

    pub(crate) fn with_crd(mut self, crd: Option<&'a Crd>) -> Self {
        self.crd = crd;
        self
    }

    /// Restricts the requests to those that match the matchResources of a binding.
    pub(crate) fn with_match_resources(
        mut self,
        match_resources: Option<&'a MatchResources>,
    ) -> Self {
        self.match_resources.extend(match_resources);
        let rules = match_resources.and_then(|it| it.resource_rules.as_deref());
        if let Some(rules) = rules.filter(|rules| !rules.is_empty()) {
            let names = rules
                .iter()
                .flat_map(|rule| rule.operations.iter().flatten());
            let names: Vec<&String> = names.collect();
            let is_named = |it: &Operation| {
                let mut names = names.iter();
                names.any(|name| **name == "*" || **name == it.as_str())
            };
            self.operations.retain(is_named);
        }
        self.binding_constraints = match_resources.map(Constraints::new);
        self
    }

    /// Returns the symbolic evaluator of the policy for the kind. It takes at most `max_steps` steps.
    pub(crate) fn evaluator(&self, max_steps: u32) -> SymbolicEvaluator<'a> {
        let roots = roots(&self.object, &self.request, self.params.as_ref());
        SymbolicEvaluator::new(self.policy, roots, self.constants(), max_steps)
    }

    /// Returns a symbolic evaluator for a search that combines inputs. Comprehensions visit two elements of a list, and
    /// requests may be dry runs. The decisions of authorization checks are inputs.
    pub(crate) fn combining_evaluator(&self, max_steps: u32) -> SymbolicEvaluator<'a> {
        let mut roots = roots(&self.object, &self.request, self.params.as_ref());
        roots.push((Root::Authorizer, authorizer_input_type()));
        let dry_run = FieldPath::new(Root::Request).field("dryRun");
        let mut constants = self.constants();
        constants.retain(|(path, _)| Some(path) != dry_run.as_ref());
        SymbolicEvaluator::new(self.policy, roots, constants, max_steps).with_elements(2)
    }

    /// Returns the inputs that have the same value in all requests for the kind.
    fn constants(&self) -> Vec<(FieldPath, Json)> {
        let (resource, subresource) = self.resource_and_subresource();
        let (gvk, gvr) = (&self.resource.gvk, &self.resource.gvr);
        let mut constants = Vec::new();
        for root in [Root::Object, Root::OldObject] {
            constants.push((FieldPath::new(root).field("kind"), json!(gvk.kind)));
            constants.push((
                FieldPath::new(root).field("apiVersion"),
                json!(gvk.api_version()),
            ));
        }
        let request = FieldPath::new(Root::Request);
        for part in ["kind", "requestKind"] {
            let part = request.field(part);
            let field = |name| part.as_ref().and_then(|part| part.field(name));
            constants.push((field("group"), json!(gvk.group)));
            constants.push((field("version"), json!(gvk.version)));
            constants.push((field("kind"), json!(gvk.kind)));
        }
        for part in ["resource", "requestResource"] {
            let part = request.field(part);
            let field = |name| part.as_ref().and_then(|part| part.field(name));
            constants.push((field("group"), json!(gvr.group)));
            constants.push((field("version"), json!(gvr.version)));
            constants.push((field("resource"), json!(resource)));
        }
        if !subresource.is_empty() {
            constants.push((request.field("subResource"), json!(subresource)));
            constants.push((request.field("requestSubResource"), json!(subresource)));
        }
        constants.push((request.field("dryRun"), json!(false)));
        if let [only] = &*self.operations {
            constants.push((request.field("operation"), json!(only.as_str())));
        }
        let constants = constants.into_iter();
        let mut constants: Vec<_> = constants
            .filter_map(|(path, value)| Some((path?, value)))
            .collect();
        if let Some(given) = self.params.as_ref().and_then(|it| it.given.as_ref()) {
            scalars(FieldPath::new(Root::Params), given, &mut constants);
        }
        constants
    }

    /// Sets the params of all requests, if the policy has a paramKind.
    pub(crate) fn set_params(&mut self, given: Option<&Arc<Json>>) {
        if let Some(params) = &mut self.params {
            params.given = given.cloned();
        }
    }

    /// Returns true if the policy was evaluated for at least one request.
    pub(crate) fn has_evaluated(&self) -> bool {
        self.evaluated.values().any(Option::is_some)
    }

    /// Marks `constraints` as tried. Returns true if they were not tried before.
    pub(crate) fn is_untried(&mut self, constraints: &InputConstraints) -> bool {
        let is_untried = !self.tried.contains(constraints);
        if is_untried {
            self.tried.insert(constraints.clone());
        }
        is_untried
    }

    fn resource_and_subresource(&self) -> (&'a str, &'a str) {
        let resource = &*self.resource.gvr.resource;
        resource.split_once('/').unwrap_or((resource, ""))
    }

    /// Returns true if the schema or the rules of the CRD reject the object of the request. False for a subresource, and
    /// if the object cannot be validated.
    pub(crate) fn fails_crd_rules(&self, synthetic: &SyntheticRequest) -> bool {
        let (_, subresource) = self.resource_and_subresource();
        let Some(object) = synthetic.object.as_ref().filter(|_| subresource.is_empty()) else {
            return false;
        };
        let validator = self.validator.get_or_init(|| {
            let version = &self.resource.gvk.version;
            Validator::new(self.crd?.definition(), version, self.policy.version()).ok()
        });
        let Some(validator) = validator else {
            return false;
        };
        let namespace = synthetic.request.get("namespace").and_then(Json::as_str);
        let before = synthetic.old_object.as_ref();
        let verdict = validator.validate(object, before, namespace.unwrap_or_default());
        verdict.is_ok_and(|verdict| !verdict.errors.is_empty())
    }

    /// Returns true if the validation of a built-in kind rejects an object of the request.
    pub(crate) fn fails_validation(&self, synthetic: &SyntheticRequest) -> bool {
        let is_whole = matches!(self.resource_and_subresource(), (_, "" | "status"));
        let kind = &self.resource.gvk.kind;
        // A CONNECT request refers to a stored object, which is validated like an updated object.
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

/// Returns the constraints of the minimal request for each operation.
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
