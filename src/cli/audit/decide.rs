//! Evaluates policies for stored objects. Each object is treated as a CREATE request, or as an UPDATE without changes.
//!
//! This module reads no files and sends no requests, and retains no objects.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use serde_json::Value;

use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::unified;
use crate::defaulting::Stage;
use crate::policy::admission::{
    AdmissionRequest, AuditAnnotationAction, AuthorizerList, Equivalent, EvaluationResult, Object,
    Operation, ParamList, ParamSource, ReviewContext, ReviewOutcome, Status, UserInfo, kind_of,
};
use crate::policy::matching;
use crate::probe::api::{self, Request, Samples};
use crate::probe::mutation::{self, ObjectMutation, patch};
use crate::probe::run::{self, case_namespaces};
use crate::probe::unknown_defaults::UnknownDefaults;
use crate::probe::{prepare, sample};
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Gvk, Gvr};

/// The maximum number of schema violations in a message.
const MAX_VIOLATIONS: usize = 3;

/// An object to audit.
#[derive(Debug)]
pub(in crate::cli) struct Item {
    /// The object, or the reason why it cannot be read.
    pub(in crate::cli) value: Result<Value, String>,
    /// The file and line of the object. `None` for an object of a cluster.
    pub(in crate::cli) place: Option<(Arc<str>, usize)>,
    /// True if the item represents a whole file that cannot be read.
    pub(in crate::cli) is_file: bool,
}

impl Item {
    /// Returns true if the object belongs to the API groups of policies, probes or CRDs. Policies are not evaluated for
    /// such objects.
    pub(in crate::cli) fn is_policy_input(&self) -> bool {
        let value = self.value.as_ref().ok();
        let group = value.and_then(|value| value.get("apiVersion")?.as_str());
        let group = group.and_then(|version| Some(version.split_once('/')?.0));
        matches!(
            group,
            Some("admissionregistration.k8s.io" | "vap-status.dev" | "apiextensions.k8s.io")
        )
    }
}

/// Identifies an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectId {
    /// The apiVersion; empty if the object could not be read.
    pub api_version: String,
    /// The kind; empty if the object could not be read.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name, or the generateName of an object without a name.
    pub name: String,
    /// The file; absent for an object of a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl ObjectId {
    /// Returns the kind, namespace and name for messages; empty for an object that could not be read.
    pub(super) fn display_name(&self) -> String {
        let name = match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        };
        let parts = [self.kind.as_str(), name.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }
}

/// The decision of a policy for an object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyResult {
    /// The name of the policy. The name of a mutating policy has the prefix `MutatingAdmissionPolicy/`.
    pub policy: String,
    /// The index of the policy in the policy set.
    #[serde(skip)]
    pub index: usize,
    /// The operation of the request.
    pub operation: &'static str,
    /// True if the API server would deny the request because of a validation or an error.
    pub denied: bool,
    /// The match condition that excludes the object.
    #[serde(skip)]
    pub excluded_by: Option<String>,
    /// True if the validations were evaluated for at least one binding. They are not evaluated without params.
    #[serde(skip)]
    pub is_evaluated: bool,
    /// The validations that are not true. A validation has one entry for each binding and param.
    pub violations: Vec<Violation>,
    /// The evaluations that failed.
    pub errors: Vec<Failure>,
    /// The reason why the decision of a matching policy is unknown. All other fields are then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// The change by a mutating policy as a JSON patch; absent if the object does not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Vec<Value>>,
    /// The change as a unified diff of YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The evaluation cost, in CEL cost units.
    pub cost_used: u64,
    /// The annotations of the request's audit event.
    #[serde(skip)]
    pub audit_annotations: BTreeMap<String, String>,
    /// The warnings that the client receives.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// The status of the denied request.
    #[serde(skip)]
    pub denial: Option<Status>,
    /// The object before and after the mutations of a mutating policy; absent if the object does not change.
    #[serde(skip)]
    pub mutation: Option<[Arc<Value>; 2]>,
}

/// A validation that is not true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The field, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The message of the validation.
    pub message: String,
    /// The reason, such as `Invalid`.
    pub reason: String,
    /// The name of the binding; absent if the binding is implied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// The params, `namespace/name`; absent if the policy has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The validationActions of the binding: `Deny`, `Warn`, `Audit`.
    pub validation_actions: Vec<String>,
}

impl Violation {
    /// Returns true if the violation denies the request.
    pub(super) fn is_denied(&self) -> bool {
        self.validation_actions.iter().any(|it| it == "Deny")
    }
}

/// An evaluation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The field, such as `spec.validations[0].expression`, or another part of the policy.
    pub field_ref: String,
    /// The message of the error.
    pub message: String,
}

#[derive(Debug)]
pub(in crate::cli) struct ObjectResult {
    pub(in crate::cli) id: ObjectId,
    /// The namespace in which the API server stores the object; empty for cluster-scoped objects.
    pub(in crate::cli) namespace: String,
    /// The decisions of the policies that match, or the reason why no policy could be evaluated.
    pub(in crate::cli) results: Result<Vec<PolicyResult>, String>,
}

/// An object as the API server passes it to policies.
struct Complete<'a> {
    value: Cow<'a, Value>,
    /// The fields whose values are unknown, for example because of unknown defaults. `None` if all fields are known.
    undefaulted: Option<UnknownDefaults>,
}

/// The served resource of a kind, and its equivalents in other groups and versions.
#[derive(Debug)]
struct Served {
    gvr: Gvr,
    gvk: Gvk,
    is_namespaced: bool,
    equivalents: Vec<Equivalent>,
}

/// The operations of the requests that are generated for each object.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Operations {
    operations: Vec<Operation>,
    /// True if a policy is evaluated only for the first operation that it matches.
    is_first_only: bool,
}

impl Operations {
    /// Returns CREATE, and UPDATE for policies that do not match CREATE. If `operation` is set, returns only this
    /// operation.
    pub(in crate::cli) fn for_stored_objects(operation: Option<Operation>) -> Self {
        let default = || vec![Operation::Create, Operation::Update];
        Self {
            operations: operation.map_or_else(default, |operation| vec![operation]),
            is_first_only: true,
        }
    }

    pub(in crate::cli) fn any(&self, is: impl Fn(Operation) -> bool) -> bool {
        self.operations.iter().any(|operation| is(*operation))
    }

    /// Returns CREATE, UPDATE and DELETE. A policy is evaluated for each of them that it matches.
    pub(in crate::cli) fn each() -> Self {
        Self {
            operations: vec![Operation::Create, Operation::Update, Operation::Delete],
            is_first_only: false,
        }
    }
}

/// Evaluates policies for objects.
pub(in crate::cli) struct Auditor<'a> {
    policy_set: &'a PolicySet<'a>,
    operations: Operations,
    user: UserInfo,
    kinds: RwLock<HashMap<Gvk, Option<Arc<Served>>>>,
    /// True if the objects are from a cluster. They then have all defaults.
    is_stored: bool,
}

impl<'a> Auditor<'a> {
    /// Creates an auditor for the policies of `policy_set`.
    ///
    /// The auditor sets the defaults of objects from files. Objects with a `metadata.uid` come from a cluster, and
    /// remain unchanged.
    pub(in crate::cli) fn new(
        policy_set: &'a PolicySet<'a>,
        operations: Operations,
        user: Option<api::UserInfo>,
        is_stored: bool,
    ) -> Self {
        Self {
            policy_set,
            operations,
            user: run::user_info(user),
            kinds: RwLock::default(),
            is_stored,
        }
    }

    /// Returns true if the object is a policy, or an object that policies need: a binding, a probe, a CRD, a param
    /// object or a namespace.
    pub(super) fn is_input(&self, item: &Item) -> bool {
        let Ok(value) = &item.value else {
            return false;
        };
        let kind = kind_of(value);
        let mut policies = self.policy_set.policies.iter();
        item.is_policy_input()
            || (kind.group.is_empty() && kind.kind == "Namespace")
            || policies.any(|policy| policy.param_kind.as_ref() == Some(&kind))
    }

    /// Evaluates the policies with the indices `policies` for an object. A panic affects only the result of this
    /// object.
    pub(in crate::cli) fn evaluate(&self, item: &Item, policies: &[usize]) -> ObjectResult {
        let id = object_id(item);
        let value = match &item.value {
            Ok(value) => value,
            Err(why) => {
                return ObjectResult {
                    namespace: id.namespace.clone(),
                    id,
                    results: Err(why.clone()),
                };
            }
        };
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| self.results(value, policies)));
        let results = outcome.unwrap_or_else(|_| {
            Err(
                "the evaluation failed with an internal error in kubectl-vap; please report it"
                    .to_owned(),
            )
        });
        let served = id
            .namespace
            .is_empty()
            .then(|| self.served(&kind_of(value)));
        let is_namespaced = served.flatten().is_some_and(|served| served.is_namespaced);
        let namespace = match &*id.namespace {
            "" if is_namespaced => "default".to_owned(),
            namespace => namespace.to_owned(),
        };
        ObjectResult {
            id,
            namespace,
            results,
        }
    }

    fn results(&self, value: &Value, policies: &[usize]) -> Result<Vec<PolicyResult>, String> {
        if !value.is_object() {
            return Err("it is not an object".to_owned());
        }
        let gvk = kind_of(value);
        if gvk.kind.is_empty() || gvk.version.is_empty() {
            return Err("apiVersion or kind is missing".to_owned());
        }
        if value
            .get("metadata")
            .is_none_or(|metadata| !metadata.is_object())
        {
            return Err("metadata is missing".to_owned());
        }
        let Some(served) = self.served(&gvk) else {
            return self.unserved(&gvk, policies);
        };
        let Some(complete) = self.complete(value, &gvk, policies, &served)? else {
            return Ok(Vec::new());
        };
        let object = Object::new(&complete.value);
        let mut results = Vec::new();
        let operations = &self.operations.operations;
        let mut requests: Vec<Option<AdmissionRequest>> = vec![None; operations.len()];
        for index in policies {
            let Some(policy) = self.policy_set.policies.get(*index) else {
                continue;
            };
            if policy.rejection.is_some() {
                continue;
            }
            for (operation, request) in operations.iter().zip(&mut requests) {
                let request =
                    request.get_or_insert_with(|| self.request(&served, &object, *operation));
                if request.is_exempt() {
                    break;
                }
                if let Some(result) = self.evaluate_policy(*index, policy, request, &complete) {
                    results.push(result);
                    if self.operations.is_first_only {
                        break;
                    }
                }
            }
        }
        Ok(results)
    }

    /// Returns the object as the API server passes it to policies. Returns `None` if no policy has a rule for the API
    /// group of the object.
    ///
    /// # Errors
    /// Returns an error if the API server rejects the object, or if its request cannot be prepared.
    fn complete<'b>(
        &self,
        value: &'b Value,
        gvk: &Gvk,
        policies: &[usize],
        served: &Served,
    ) -> Result<Option<Complete<'b>>, String> {
        let is_stored = value.pointer("/metadata/uid").is_some_and(Value::is_string);
        if self.is_stored || is_stored {
            return Ok(Some(Complete {
                value: Cow::Borrowed(value),
                undefaulted: None,
            }));
        }
        let has_group_rule = |gvr: &Gvr| self.has_rule(policies, |group| group == gvr.group);
        if !has_group_rule(&served.gvr)
            && !served.equivalents.iter().any(|it| has_group_rule(&it.gvr))
        {
            return Ok(None);
        }
        let apis = self.policy_set.known;
        let violations = sample::violations(value, gvk, apis, Samples::Whole, "");
        if !violations.is_empty() {
            let messages = violations.iter().take(MAX_VIOLATIONS).map(|fault| {
                format!(
                    "{}: {}",
                    fault.field_ref.trim_start_matches('.'),
                    fault.message
                )
            });
            let messages: Vec<String> = messages.collect();
            return Err(format!(
                "the API server rejects the object: {}",
                messages.join("; ")
            ));
        }
        let request = Request {
            object: Some(value.clone()),
            ..Request::default()
        };
        let prepared = prepare::objects(
            &request,
            apis.version(),
            (Samples::Whole, Stage::Validation),
            &apis.mapper,
            apis,
        )?;
        let (request, undefaulted) = (prepared.request, prepared.unknown_defaults);
        Ok(request.into_owned().object.map(|object| Complete {
            value: Cow::Owned(object),
            undefaulted,
        }))
    }

    fn request(&self, served: &Served, object: &Object, operation: Operation) -> AdmissionRequest {
        let mut namespace = object.namespace().to_owned();
        if served.gvr.group.is_empty() && served.gvr.resource == "namespaces" {
            object.name().clone_into(&mut namespace);
        } else if namespace.is_empty() && served.is_namespaced {
            "default".clone_into(&mut namespace);
        }
        let (is_new, is_old) = match operation {
            Operation::Create | Operation::Connect => (true, false),
            Operation::Update => (true, true),
            Operation::Delete => (false, true),
        };
        AdmissionRequest {
            operation,
            gvk: served.gvk.clone(),
            gvr: served.gvr.clone(),
            name: object.name().to_owned(),
            namespace,
            object: is_new.then(|| object.clone()),
            old_object: is_old.then(|| object.clone()),
            user_info: self.user.clone(),
            equivalents: served.equivalents.clone(),
            ..AdmissionRequest::default()
        }
    }

    /// Returns the decision of a policy. Returns `None` if the policy does not match the request.
    fn evaluate_policy(
        &self,
        index: usize,
        policy: &PreparedPolicy<'_>,
        request: &AdmissionRequest,
        complete: &Complete<'_>,
    ) -> Option<PolicyResult> {
        let value = &*complete.value;
        let case = Request::default();
        let namespaces = case_namespaces(&case, &request.namespace, &self.policy_set.namespaces);
        let admission = &policy.admission;
        let to = admission.matched_kind(request, &namespaces);
        let is_mutating = policy.mutating.is_some();
        if let Some(undefaulted) = complete.undefaulted.as_ref().filter(|_| to.is_some()) {
            let case = self::case(request, value);
            let result = undefaulted.check_readable_fields(admission, &case);
            // A mutating policy always needs the defaults. `mutated` returns an error if they are unknown.
            if let Err(why) = result
                && !is_mutating
            {
                return Some(undecided(index, policy, request, why));
            }
        }
        let converted = match &to {
            Some(to) if *to != request.gvk => {
                let case = self::case(request, value);
                let to = Some(to.clone());
                let converted = prepare::convert(&case, request.clone(), to, self.policy_set.known);
                match converted {
                    Ok(converted) => Cow::Owned(converted),
                    Err(why) => return Some(undecided(index, policy, request, why)),
                }
            }
            _ => Cow::Borrowed(request),
        };
        let none = ParamList::default();
        let authorizer = Arc::new(AuthorizerList(Vec::new()));
        let mut context = ReviewContext::new(&none, &namespaces, authorizer);
        if policy.param_kind.is_some() {
            context.params = match &policy.params {
                Ok(list) => Ok(list as &dyn ParamSource),
                Err(why) => {
                    to.as_ref()?;
                    return Some(undecided(index, policy, request, why.clone()));
                }
            };
        }
        let decided = self.policy_set.limit.run(|is_cancelled| {
            context.is_cancelled = Some(Arc::clone(is_cancelled));
            if is_mutating {
                self.mutated(policy, (request, value), &context)
            } else {
                let outcome = admission.review(&converted, &policy.bindings, &context);
                Ok((outcome, None))
            }
        });
        let (outcome, mutated) = match decided {
            Ok(Ok(decided)) => decided,
            Ok(Err(_)) if to.is_none() => return None,
            Ok(Err(why)) | Err(why) => return Some(undecided(index, policy, request, why)),
        };
        if let Some(exceeded) = outcome.exceeded {
            return Some(undecided(index, policy, request, exceeded.to_string()));
        }
        let is_matched = outcome.definition.error.is_some()
            || (to.is_some()
                && outcome
                    .bindings
                    .iter()
                    .any(|it| it.matches || it.error.is_some()));
        is_matched.then(|| {
            let mut result = policy_result(index, policy, request.operation, &outcome);
            if let Some(mutated) = &mutated {
                result.mutate(mutated);
            }
            result
        })
    }

    /// Returns the outcome of a mutating policy, and the object before and after its mutations.
    ///
    /// # Errors
    /// Returns the reason why the outcome is unknown.
    fn mutated(
        &self,
        policy: &PreparedPolicy<'_>,
        (request, value): (&AdmissionRequest, &Value),
        context: &ReviewContext<'_>,
    ) -> Result<(ReviewOutcome, Option<ObjectMutation>), String> {
        let Some(mutating) = policy.mutating(self.policy_set) else {
            return Err("it is not a mutating policy".to_owned());
        };
        let object = if request.object.is_some() {
            // An older API server may have stored the object without the current defaults, so they are added.
            let completed = mutating.kinds.completed(&request.gvk, value.clone());
            Some(completed.map_err(|(_, why)| why)?)
        } else {
            None
        };
        let bindings = (policy.bindings.as_slice(), Samples::Partial);
        let outcome = mutation::outcome(&mutating, (request, object.as_ref()), bindings, context)?;
        Ok((outcome.review, Some(outcome.mutated)))
    }

    fn served(&self, gvk: &Gvk) -> Option<Arc<Served>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kinds.get(gvk) {
            return found.clone();
        }
        drop(kinds);
        let mapper = &self.policy_set.known.mapper;
        let to_served = |served: &ApiResource| {
            Arc::new(Served {
                gvr: served.gvr.clone(),
                gvk: gvk.clone(),
                is_namespaced: served.namespaced,
                equivalents: run::equivalents(&served.gvr, "", mapper),
            })
        };
        let resource = mapper.resources_of_kind(gvk).next().map(to_served);
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        kinds.insert(gvk.clone(), resource.clone());
        resource
    }

    /// Returns the results for a kind that is not served. The results are empty, because no policy matches such a kind.
    ///
    /// # Errors
    /// Returns an error if a policy has a rule for the group of the kind, unless the kind is built in.
    fn unserved(&self, gvk: &Gvk, policies: &[usize]) -> Result<Vec<PolicyResult>, String> {
        let has_rule = self.has_rule(policies, |group| group == gvk.group);
        if has_rule && !self.policy_set.known.is_complete(&gvk.group) {
            return Err(format!(
                "{} {} is unknown: its CustomResourceDefinition is missing",
                gvk.api_version(),
                gvk.kind
            ));
        }
        if has_rule && self.policy_set.known.is_builtin(gvk) {
            return Ok(Vec::new());
        }
        if has_rule {
            return Err(format!(
                "the API server does not serve a resource of kind {} {}",
                gvk.api_version(),
                gvk.kind
            ));
        }
        Ok(Vec::new())
    }

    /// Returns true if one of the policies has a rule for a group that `is_group` accepts.
    fn has_rule(&self, policies: &[usize], is_group: impl Fn(&str) -> bool) -> bool {
        policies.iter().any(|index| {
            let policy = self.policy_set.policies.get(*index);
            policy.is_some_and(|policy| {
                matching::groups(&policy.object.value).any(|group| group == "*" || is_group(group))
            })
        })
    }
}

impl PolicyResult {
    /// Adds the change of the object as a patch and a diff. Does nothing if the object is unchanged.
    pub(in crate::cli) fn mutate(&mut self, mutated: &ObjectMutation) {
        let Some(after) = mutated.after.as_ref().filter(|_| mutated.is_changed()) else {
            return;
        };
        self.patch = Some(patch::between(&mutated.before, after));
        let names = ("before", "after");
        self.change = Some(unified::from_objects(names, &mutated.before, after));
        self.mutation = Some([&mutated.before, after].map(|object| Arc::new(object.clone())));
    }
}

fn undecided(
    index: usize,
    policy: &PreparedPolicy<'_>,
    request: &AdmissionRequest,
    why: String,
) -> PolicyResult {
    let result = policy_result(index, policy, request.operation, &ReviewOutcome::default());
    PolicyResult {
        undecided: Some(why),
        ..result
    }
}

/// Returns a request for a probe case with only the fields `object` and `oldObject`. Each field is `value` if `request`
/// sets it, and absent otherwise.
fn case(request: &AdmissionRequest, value: &Value) -> Request {
    let object = |is_there: bool| is_there.then(|| value.clone());
    Request {
        object: object(request.object.is_some()),
        old_object: object(request.old_object.is_some()),
        ..Request::default()
    }
}

pub(in crate::cli) fn policy_result(
    index: usize,
    policy: &PreparedPolicy<'_>,
    operation: Operation,
    outcome: &ReviewOutcome,
) -> PolicyResult {
    let fields = &policy.validations;
    let mut violations = Vec::new();
    let mut errors: Vec<Failure> = Vec::new();
    let mut fails = |field: &str, message: &str| {
        let failure = Failure {
            field_ref: field.to_owned(),
            message: message.to_owned(),
        };
        if !errors.contains(&failure) {
            errors.push(failure);
        }
    };
    let mut excluded_by = None;
    let mut n_excluded = 0;
    let mut is_evaluated = false;
    let mut cost_used: u64 = 0;
    for evaluation in &outcome.evaluations {
        cost_used = cost_used.saturating_add(evaluation.costs.used());
        let conditions = evaluation.match_conditions.as_ref();
        if let Some(name) = conditions.and_then(|it| it.failed_condition.as_ref()) {
            excluded_by.get_or_insert_with(|| name.clone());
            n_excluded += 1;
        }
        let error = conditions.and_then(|it| it.error.as_ref().or(it.ignored.as_ref()));
        if let Some(error) = error {
            fails("spec.matchConditions", error);
            continue;
        }
        let is_whole = evaluation.decisions.len() == fields.len();
        is_evaluated |= is_whole;
        for (n, decision) in evaluation.decisions.iter().enumerate() {
            let field = fields
                .get(n)
                .filter(|_| is_whole)
                .map_or("spec", String::as_str);
            match decision.evaluation {
                EvaluationResult::Admit => {}
                EvaluationResult::Error => fails(field, &decision.message),
                EvaluationResult::Deny => violations.push(Violation {
                    field_ref: field.to_owned(),
                    message: decision.message.clone(),
                    reason: decision.reason.clone(),
                    binding: evaluation.binding.clone().filter(|_| !policy.is_unbound),
                    params: evaluation.params.clone(),
                    validation_actions: policy.actions(evaluation.binding.as_deref()).to_vec(),
                }),
            }
        }
        for annotation in &evaluation.audit_annotations {
            let is_error = annotation.action == AuditAnnotationAction::Error;
            if is_error || !annotation.error.is_empty() {
                fails("spec.auditAnnotations", &annotation.error);
            }
        }
    }
    if outcome.evaluations.is_empty() {
        for error in &outcome.errors {
            fails("spec", error);
        }
    } else if policy.mutating.is_some() {
        for error in &outcome.errors {
            fails("spec.mutations", error);
        }
    }
    // If the request is denied without a violation or an error, for example after a panic, the denial is reported as an
    // error.
    let unexplained = outcome.denial.as_ref();
    let unexplained = unexplained.filter(|_| violations.is_empty() && errors.is_empty());
    errors.extend(unexplained.map(|denial| Failure {
        field_ref: "spec".to_owned(),
        message: denial.message.clone(),
    }));
    PolicyResult {
        policy: policy.id().to_string(),
        index,
        operation: operation.as_str(),
        denied: outcome.denial.is_some(),
        excluded_by: excluded_by.filter(|_| n_excluded == outcome.evaluations.len()),
        is_evaluated,
        violations,
        errors,
        undecided: None,
        patch: None,
        change: None,
        cost_used,
        audit_annotations: outcome.audit_annotations.clone(),
        warnings: outcome.warnings.clone(),
        denial: outcome.denial.clone(),
        mutation: None,
    }
}

fn object_id(item: &Item) -> ObjectId {
    let (file, line) = item.place.clone().unzip();
    let value = item.value.as_ref().ok();
    let text = |pointer: &str| {
        let text = value.and_then(|value| value.pointer(pointer)?.as_str());
        text.unwrap_or_default().to_owned()
    };
    let mut name = text("/metadata/name");
    if name.is_empty() {
        name = text("/metadata/generateName");
    }
    ObjectId {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name,
        file: file.map(|file| file.to_string()),
        line,
    }
}
