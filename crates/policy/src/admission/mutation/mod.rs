//! Mutation: computes the effect of mutating policies and their bindings on a request's object.
//!
//! A [`MutatingAdmission`] is created once per policy. [`mutate`] invokes the policies in order. Match constraints,
//! bindings and params are evaluated for the original object. Match conditions and mutations are evaluated for the
//! object that the previous mutation returned. Defaults are set after each mutation. A policy with reinvocation is
//! invoked again if the object changed after its first invocation.
//!
//! The caller determines the order of the policies. An API server has no fixed order, because it stores the policies in
//! a map.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/dispatcher.go` (`dispatchInvocations`),
//! `pkg/admission/plugin/policy/generic/policy_dispatcher.go` (`Dispatch`).

mod apply;
mod context;
mod error;
mod kinds;
mod native;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy;
use serde_json::Value as Json;

use super::binding::Binding;
use super::evaluate::Conditions;
use super::failure::FailurePolicy;
use super::namespace::Namespace;
use super::object::Object;
use super::outcome::{BindingMatch, Evaluation, ReviewOutcome, Status};
use super::params::ParamSource;
use super::request::{AdmissionRequest, Operation};
use super::rules::namespace_not_found;
use super::scope::{Inputs, Scope};
use super::text::go_quote;
use super::{Admission, visible};
use crate::compile::CompiledPolicy;
use crate::mutations;
use cel::value::{EvalBudget, Exceeded, Value};
use kubernetes::schema::{GroupVersion, Gvk, Gvr};
use kubernetes::version::{Behavior, KubernetesVersion};

use error::{End, Failure, internal, status};

pub use context::MutationContext;
pub use error::{StepCause, StepError};
pub use kinds::{Kinds, KindsOf, KnownKinds, KnownTypes};
pub(crate) use trial::step_errors;

/// A compiled mutating policy that mutates any number of requests.
#[derive(Debug)]
pub struct MutatingAdmission {
    admission: Admission,
    /// The number of mutations of the policy, including those without an expression.
    n_mutations: usize,
    /// True if the policy must be invoked again after a later mutation changes the object.
    pub reinvokes: bool,
}

impl MutatingAdmission {
    /// Prepares `policy` for an API server of `version`: parses its selectors and compiles its expressions.
    #[must_use]
    pub fn new(policy: &MutatingAdmissionPolicy, version: KubernetesVersion) -> Self {
        let spec = policy.spec.as_ref();
        let reinvocation = spec.and_then(|spec| spec.reinvocation_policy.as_deref());
        let compiled = CompiledPolicy::from_mutating(policy, version);
        Self::from_compiled(&compiled, mutations::mutations(policy).len(), reinvocation)
    }

    /// Parses the selectors of a policy that is already compiled. `reinvocation` is its reinvocationPolicy.
    #[must_use]
    pub fn from_compiled(
        compiled: &CompiledPolicy,
        n_mutations: usize,
        reinvocation: Option<&str>,
    ) -> Self {
        Self {
            admission: Admission::from_compiled(compiled),
            n_mutations,
            reinvokes: reinvocation == Some("IfNeeded"),
        }
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        self.admission.name()
    }

    /// Returns the parts that validating policies also have: constraints and match conditions.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Returns an error if `n_compiled`, the number of mutations with a compiled expression, differs from the number of
    /// mutations.
    fn expect_compiled(&self, n_compiled: usize) -> Result<(), Status> {
        if n_compiled == self.n_mutations {
            return Ok(());
        }
        let (n_mutations, name) = (self.n_mutations, self.name());
        Err(internal(&format!(
            "expected {n_mutations} compiled evaluators for policy {name}, got {n_compiled}"
        )))
    }
}

/// A policy with its bindings. The bindings apply even if their policyName differs from the policy's name.
#[derive(Clone)]
pub struct BoundPolicy<'a> {
    /// The policy.
    pub policy: &'a MutatingAdmission,
    /// The bindings.
    pub bindings: &'a [Binding],
    /// The objects of the policy's paramKind, or the error if they cannot be read.
    pub params: Result<&'a dyn ParamSource, String>,
}

impl fmt::Debug for BoundPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundPolicy")
            .field("policy", &self.policy.name())
            .finish_non_exhaustive()
    }
}

/// The result of all mutations for a request.
#[derive(Clone, Debug, Default)]
pub struct MutationOutcome {
    /// The object after all mutations. `None` if the request has no object.
    pub object: Option<Json>,
    /// The status of the rejected request. `None` if the request is allowed.
    pub denial: Option<Status>,
    /// The errors of policies, including errors that failurePolicy `Ignore` hides.
    pub errors: Vec<String>,
    /// The reasons why steps of the API server cannot be reproduced. An example is a kind whose defaults are unknown.
    pub unknown: Vec<String>,
    /// The outcome of each policy, in the caller's order: the results of matching the policy and its bindings, and one
    /// evaluation for each first invocation. These evaluations have no decisions. Denials and errors are only in the
    /// fields of [`MutationOutcome`].
    pub reviews: Vec<ReviewOutcome>,
    /// The evaluated mutations, in the order of evaluation.
    pub steps: Vec<Step>,
    /// The exceeded limit of this crate, if any. In this case the API server's object and decision are unknown.
    pub exceeded: Option<Exceeded>,
}

/// The evaluation of one mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The index of the policy in the caller's order.
    pub policy: usize,
    /// The name of the binding.
    pub binding: String,
    /// The namespace and name of the params, such as `default/limits`. `None` without params.
    pub params: Option<String>,
    /// The index of the mutation in the policy.
    pub mutation: usize,
    /// True if this is a second invocation of the policy.
    pub is_again: bool,
    /// The cost of the expression and of the variables evaluated for it, but at most the budget.
    pub cost: u64,
    /// True if the mutation changed the object. `Err` if the mutation failed.
    pub changes: Result<bool, StepError>,
}

/// Computes the object of `request` after the mutations by `policies`, in an API server that has no other policies.
#[must_use]
pub fn mutate(
    request: &AdmissionRequest,
    object: Option<&Json>,
    policies: &[BoundPolicy<'_>],
    context: &MutationContext<'_>,
) -> MutationOutcome {
    let request = AdmissionRequest {
        object: object.map(Object::new),
        ..request.clone()
    };
    let mut run = Run::new(request, object.cloned(), policies, context);
    let denial = run.all().err();
    if let Some(exceeded) = run.budget.exceeded() {
        for review in &mut run.reviews {
            review.exceed(exceeded);
        }
        return MutationOutcome {
            object: object.cloned(),
            reviews: run.reviews,
            exceeded: Some(exceeded),
            ..MutationOutcome::default()
        };
    }
    MutationOutcome {
        object: run.object,
        denial,
        errors: run.errors,
        unknown: run.unknown.into_iter().collect(),
        reviews: run.reviews,
        steps: run.steps,
        exceeded: None,
    }
}

/// Identifies an invocation by the names of its policy, binding and params.
type Key = (String, String, Option<String>);

struct Invocation<'a> {
    policy: &'a MutatingAdmission,
    /// The index of the policy in the caller's order.
    nth: usize,
    binding: &'a Binding,
    gvr: Gvr,
    gvk: Gvk,
    params: Option<Object>,
}

impl Invocation<'_> {
    fn behavior(&self) -> Behavior {
        self.policy
            .admission
            .evaluator
            .programs()
            .version
            .behavior()
    }

    /// Returns true if the policy reads the request as a Go value.
    fn reads_go_values(&self) -> bool {
        self.behavior().reads_go_values
    }

    fn key(&self) -> Key {
        let params = self.params.as_ref().map(Object::namespaced_name);
        let (policy, binding) = (self.policy.name(), self.binding.name());
        (policy.to_owned(), binding.to_owned(), params)
    }
}

struct PolicyError<'a> {
    policy: &'a MutatingAdmission,
    binding: Option<&'a Binding>,
    message: String,
    /// The reason of the status. An empty reason means `Forbidden`.
    reason: &'static str,
}

/// The object in a version that the rules of at least one policy match.
struct VersionedObject {
    json: Json,
    object: Object,
    is_changed: bool,
    forms: Forms,
}

/// The forms in which expressions read `object` and `oldObject`: true for a Go value, false for an unstructured value.
/// The form of a value is chosen when the value is first used. A Go value is chosen if match conditions that read Go
/// values were evaluated before or are evaluated now. The form of `object` is chosen again after the object changes.
///
/// Source: k8s.io/apiserver 0.37 `pkg/admission/conversion.go`, `LazyObject`.
#[derive(Debug, Default)]
struct Forms {
    is_go_requested: bool,
    object: Option<bool>,
    old_object: Option<bool>,
}

impl Forms {
    /// Returns the forms of `object` and `oldObject` for the next evaluation.
    fn next(&mut self, is_go_requested: bool) -> (bool, bool) {
        self.is_go_requested |= is_go_requested;
        let default = self.is_go_requested;
        (
            *self.object.get_or_insert(default),
            *self.old_object.get_or_insert(default),
        )
    }
}

struct Run<'a> {
    context: &'a MutationContext<'a>,
    policies: &'a [BoundPolicy<'a>],
    request: AdmissionRequest,
    object: Option<Json>,
    /// The invocations so far that must be repeated if a later mutation changes the object.
    previously: BTreeSet<Key>,
    /// The invocations to repeat in the second pass.
    again: BTreeSet<Key>,
    unknown: BTreeSet<String>,
    errors: Vec<String>,
    reviews: Vec<ReviewOutcome>,
    steps: Vec<Step>,
    /// True if the caller only needs the errors. Objects that no later mutation reads are not built in this case.
    is_trial: bool,
    /// The limits on work steps and memory that all expressions share.
    budget: Arc<EvalBudget>,
}

impl<'a> Run<'a> {
    fn new(
        request: AdmissionRequest,
        object: Option<Json>,
        policies: &'a [BoundPolicy<'a>],
        context: &'a MutationContext<'a>,
    ) -> Self {
        Self {
            context,
            policies,
            request,
            object,
            previously: BTreeSet::new(),
            again: BTreeSet::new(),
            unknown: BTreeSet::new(),
            errors: Vec::new(),
            reviews: vec![ReviewOutcome::default(); policies.len()],
            steps: Vec::new(),
            is_trial: false,
            budget: Arc::new(EvalBudget::cancelled_by(context.is_cancelled.clone())),
        }
    }

    fn all(&mut self) -> Result<(), Status> {
        // A DELETE request has no object to mutate, so the API server does not call the plugin.
        if self.request.operation == Operation::Delete {
            return Ok(());
        }
        let is_changed = self.pass(false)?;
        if is_changed {
            self.pass(true)?;
        }
        Ok(())
    }

    /// Invokes all policies, or in the second pass the policies to reinvoke. Returns true if an object was mutated.
    fn pass(&mut self, is_again: bool) -> Result<bool, Status> {
        let mut errors = Vec::new();
        let mut reviews = vec![ReviewOutcome::default(); self.policies.len()];
        let mut invocations = self.invocations(&mut errors, &mut reviews);
        if self.context.is_reversed {
            invocations.reverse();
        }
        if !is_again {
            self.reviews = reviews;
        }
        let is_changed = if invocations.is_empty() {
            false
        } else {
            self.invoke(&invocations, is_again, &mut errors)?
        };
        self.errors
            .extend(errors.iter().map(|error| error.message.clone()));
        match rejection(&errors) {
            Some(status) => Err(status),
            None => Ok(is_changed),
        }
    }

    /// Source: `policy_dispatcher.go`, `Dispatch`.
    fn invocations<'p>(
        &self,
        errors: &mut Vec<PolicyError<'p>>,
        reviews: &mut [ReviewOutcome],
    ) -> Vec<Invocation<'p>>
    where
        Self: 'p,
    {
        let mut invocations = Vec::new();
        for ((nth, bound), review) in self.policies.iter().enumerate().zip(reviews) {
            let admission = &bound.policy.admission;
            let mut config = |binding: Option<&'p Binding>, error: &str| {
                let subject = binding.map_or("policy", |_| "binding");
                errors.push(PolicyError {
                    policy: bound.policy,
                    binding,
                    message: format!("failed to configure {subject}: {error}"),
                    reason: "",
                });
            };
            let (gvr, gvk) = match admission.matches(&self.request, self.context.namespaces) {
                Err(error) => {
                    config(None, &error);
                    review.definition.error = Some(error);
                    continue;
                }
                Ok(None) => continue,
                Ok(Some(matched)) => matched,
            };
            review.definition.matched = Some((gvr.clone(), gvk.clone()));
            if admission.has_param_kind()
                && let Err(error) = &bound.params
            {
                config(None, error);
                continue;
            }
            for binding in bound.bindings {
                let matches =
                    admission.binding_matches(binding, &self.request, self.context.namespaces);
                review.bindings.push(BindingMatch {
                    name: binding.name().to_owned(),
                    matches: matches == Ok(true),
                    error: matches.clone().err(),
                    unmatched: None,
                });
                match matches {
                    Err(error) => config(Some(binding), &error),
                    Ok(false) => {}
                    Ok(true) => {
                        let source = bound.params.as_ref().ok().copied();
                        match admission.collect_params(binding, source, &self.request) {
                            Err(error) => config(Some(binding), &error),
                            Ok(params) => {
                                invocations.extend(params.into_iter().map(|params| Invocation {
                                    policy: bound.policy,
                                    nth,
                                    binding,
                                    gvr: gvr.clone(),
                                    gvk: gvk.clone(),
                                    params,
                                }));
                            }
                        }
                    }
                }
            }
        }
        invocations
    }

    /// Returns true if the remaining mutations are not evaluated, because a limit was exceeded or a trial reached a
    /// step that cannot be reproduced.
    fn ends_early(&self) -> bool {
        self.budget.exceeded().is_some() || (self.is_trial && !self.unknown.is_empty())
    }

    /// Source: `dispatcher.go`, `dispatchInvocations`.
    fn invoke<'p>(
        &mut self,
        invocations: &[Invocation<'p>],
        is_again: bool,
        errors: &mut Vec<PolicyError<'p>>,
    ) -> Result<bool, Status> {
        let namespace = self.namespace()?;
        let mut versions: BTreeMap<Gvk, VersionedObject> = BTreeMap::new();
        let mut last: Option<&Gvk> = None;
        let is_only_pass = !invocations.iter().any(|of| of.policy.reinvokes);
        for (nth, invocation) in invocations.iter().enumerate() {
            let is_last = nth + 1 == invocations.len();
            let evaluator = &invocation.policy.admission.evaluator;
            let programs = evaluator.programs();
            invocation
                .policy
                .expect_compiled(programs.mutations.len())?;
            if let Some(json) = &self.object
                && !versions.contains_key(&invocation.gvk)
            {
                let version = self.version(json, &invocation.gvk);
                versions.insert(invocation.gvk.clone(), version);
            }
            let mut error = |message| {
                errors.push(PolicyError {
                    policy: invocation.policy,
                    binding: Some(invocation.binding),
                    message,
                    reason: "Invalid",
                });
            };
            let inputs = self.condition_inputs(invocation, versions.get_mut(&invocation.gvk));
            match self.conditions(invocation, &inputs, is_again) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(reason) => {
                    error(reason);
                    continue;
                }
            }
            let key = invocation.key();
            if is_again && !self.again.contains(&key) {
                continue;
            }
            let is_watched = !self.previously.is_empty();
            let current = versions.get(&invocation.gvk).filter(|_| is_watched);
            let first = current.map(|of| of.json.clone());
            for (n, (role, expression)) in programs.mutations.iter().enumerate() {
                if self.ends_early() {
                    return Ok(false);
                }
                last = Some(&invocation.gvk);
                let Some(version) = versions.get_mut(&invocation.gvk) else {
                    continue;
                };
                let seen = (&invocation.gvr, namespace.as_ref());
                let forms = version.forms.next(false);
                let inputs = self.inputs(invocation, Some(&version.object), seen, forms);
                let scope = || Scope::new(programs, Arc::clone(&inputs));
                let mut cost = 0;
                let before = (&invocation.gvk, &version.json);
                let mut mutated = self.mutated(
                    (*role, programs.version.behavior()),
                    expression,
                    &scope,
                    before,
                    &mut cost,
                );
                let is_final = is_last && is_only_pass && n + 1 == programs.mutations.len();
                let is_unchanged = || mutated.as_ref().is_ok_and(|json| *json == version.json);
                // A trial sets defaults only if the object changed and a later mutation reads it.
                let is_read = !(self.is_trial && (is_final || is_unchanged()));
                if is_read {
                    mutated = mutated.map(|json| self.completed(&invocation.gvk, json));
                }
                self.step(invocation, (n, is_again, cost), &mutated, &version.json);
                match mutated {
                    Ok(json) => {
                        version.is_changed = true;
                        version.forms.object = None;
                        if is_read {
                            version.object = Object::new(&json);
                            version.json = json;
                        }
                    }
                    Err(Failure { end, .. }) => match end {
                        End::Policy(message) => error(message),
                        // A trial continues without the failed mutation.
                        End::Request(_) if self.is_trial => {}
                        End::Request(status) => return Err(status),
                    },
                }
            }
            let json = versions.get(&invocation.gvk).map(|of| &of.json);
            if first.is_some() && first.as_ref() != json {
                self.again.append(&mut self.previously);
            }
            if invocation.policy.reinvokes {
                self.previously.insert(key);
            }
        }
        let Some(version) = last.and_then(|gvk| versions.remove(gvk)) else {
            return Ok(false);
        };
        self.take_object(version)
    }

    /// Stores `version`, the result of the last mutation, as the object of the request. Returns true if the object
    /// changed.
    fn take_object(&mut self, version: VersionedObject) -> Result<bool, Status> {
        if version.is_changed {
            self.again.append(&mut self.previously);
            if self.is_trial && self.again.is_empty() {
                return Ok(false);
            }
            let json = self.converted(version.json)?;
            self.request.object = Some(Object::new(&json));
            self.object = Some(json);
        }
        Ok(version.is_changed)
    }

    /// Returns `json` with the apiVersion and kind of `gvk`.
    fn version(&self, json: &Json, gvk: &Gvk) -> VersionedObject {
        let is_same = json.get("kind").and_then(Json::as_str) == Some(&*gvk.kind)
            && json.get("apiVersion").and_then(Json::as_str) == Some(&*gvk.api_version());
        let json = with_kind(json.clone(), gvk);
        let unchanged = self.request.object.as_ref().filter(|_| is_same);
        VersionedObject {
            object: unchanged.cloned().unwrap_or_else(|| Object::new(&json)),
            json,
            is_changed: false,
            forms: Forms::default(),
        }
    }

    /// Converts the object to the version of the request.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/conversion/converter.go` (`crConverter.ConvertToVersion`).
    fn converted(&self, mut object: Json) -> Result<Json, Status> {
        let (kinds, gvk) = (self.context.kinds, &self.request.gvk);
        if !kinds.is_custom(gvk) {
            return Ok(with_kind(object, gvk));
        }
        let text = |name| object.get(name).and_then(Json::as_str).unwrap_or_default();
        let api_version = text("apiVersion").to_owned();
        let (group, version) = GroupVersion::split(&api_version);
        let fault = |error: String| Err(internal(&format!("failed to convert object: {error}")));
        if group != &*gvk.group {
            return fault(format!(
                "{group}/{version}, Kind={} is unstructured and is not suitable for converting to {}",
                text("kind"),
                go_quote(&gvk.api_version())
            ));
        }
        if !kinds.is_custom(&Gvk::new(group, version, &*gvk.kind)) {
            return fault(format!(
                "request to convert CR from an invalid group/version: {api_version}"
            ));
        }
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        }
        Ok(object)
    }

    /// Evaluates the match conditions of an invocation. Returns true if all of them are true.
    ///
    /// # Errors
    /// Returns the error of a failing condition. The failure policy applies to it.
    fn conditions(
        &mut self,
        invocation: &Invocation<'_>,
        inputs: &Arc<Inputs>,
        is_again: bool,
    ) -> Result<bool, String> {
        let mut evaluation = Evaluation {
            binding: Some(invocation.binding.name().to_owned()),
            params: invocation.params.as_ref().map(Object::namespaced_name),
            ..Evaluation::default()
        };
        let evaluator = &invocation.policy.admission.evaluator;
        let programs = evaluator.programs();
        let mut is_met = Ok(true);
        if !programs.match_conditions.is_empty() {
            let scope = || Scope::new(programs, Arc::clone(inputs));
            if let Conditions::End(_) = evaluator.match_conditions(&scope, &mut evaluation) {
                let conditions = evaluation.match_conditions.as_ref();
                let error = conditions.and_then(|conditions| conditions.error.clone());
                is_met = error.map_or(Ok(false), Err);
            }
        }
        if let Some(review) = self.reviews.get_mut(invocation.nth).filter(|_| !is_again) {
            review.evaluations.push(evaluation);
        }
        is_met
    }

    fn step(
        &mut self,
        invocation: &Invocation<'_>,
        (mutation, is_again, cost): (usize, bool, u64),
        mutated: &Result<Json, Failure>,
        before: &Json,
    ) {
        self.steps.push(Step {
            policy: invocation.nth,
            binding: invocation.binding.name().to_owned(),
            params: invocation.params.as_ref().map(Object::namespaced_name),
            mutation,
            is_again,
            cost,
            changes: match mutated {
                Ok(json) => Ok(json != before),
                Err(failure) => Err(failure.error()),
            },
        });
    }

    fn condition_inputs(
        &self,
        invocation: &Invocation<'_>,
        version: Option<&mut VersionedObject>,
    ) -> Arc<Inputs> {
        let programs = invocation.policy.admission.evaluator.programs();
        let has_conditions = !programs.match_conditions.is_empty();
        let (object, forms) = match version {
            Some(version) if has_conditions => {
                let forms = version.forms.next(invocation.reads_go_values());
                (Some(&version.object), forms)
            }
            version => (version.map(|version| &version.object), (false, false)),
        };
        self.inputs(invocation, object, (&self.request.gvr, None), forms)
    }

    /// Returns the inputs of match conditions or mutations. For match conditions, `gvr` is the resource that the client
    /// requested, and `namespace` is `None`. The flags are true if `object` and `oldObject` are Go values.
    fn inputs(
        &self,
        invocation: &Invocation<'_>,
        object: Option<&Object>,
        (gvr, namespace): (&Gvr, Option<&Namespace>),
        (object_go, old_go): (bool, bool),
    ) -> Arc<Inputs> {
        let behavior = invocation.behavior();
        let go = behavior.reads_go_values;
        let params = invocation.params.as_ref();
        let request = &self.request;
        let old = request.old_object.as_ref();
        Arc::new(Inputs {
            object: object.map_or(Value::Null, |object| {
                object.seen_as(object.gvk(), object_go)
            }),
            old_object: old.map_or(Value::Null, |old| old.seen_as(&invocation.gvk, old_go)),
            params: params.map_or(Value::Null, |params| params.value_as_mutating_params(go)),
            request: visible::request(request, gvr, &invocation.gvk, go),
            namespace: namespace.map_or(Value::Null, |namespace| namespace.visible(&behavior)),
            authorizer: Some(visible::authorizer(request, &self.context.authorizer)),
            budget: Arc::clone(&self.budget),
            is_cancelled: self.context.is_cancelled.clone(),
            trace: None,
            recorder: self.context.recorder.clone(),
        })
    }

    /// Returns the namespace of the request. `None` for a request about a Namespace or a cluster-scoped object.
    fn namespace(&self) -> Result<Option<Namespace>, Status> {
        let gvk = &self.request.gvk;
        let is_namespace = gvk.group.is_empty() && gvk.version == "v1" && gvk.kind == "Namespace";
        let name = &self.request.namespace;
        if is_namespace || name.is_empty() {
            return Ok(None);
        }
        let namespace = self.context.namespaces.namespace(name);
        let missing = || status(404, "NotFound", &namespace_not_found(name));
        namespace.map(Some).ok_or_else(missing)
    }
}

fn with_kind(mut object: Json, gvk: &Gvk) -> Json {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.clone().into());
    }
    object
}

/// Returns the status for the first error that rejects the request. An error of a policy with failurePolicy `Ignore`
/// does not reject the request.
///
/// Source: `policy_dispatcher.go`, `Dispatch`, `PolicyError.Error`.
fn rejection(errors: &[PolicyError<'_>]) -> Option<Status> {
    let is_counted =
        |error: &&PolicyError<'_>| error.policy.admission.failure_policy != FailurePolicy::Ignore;
    let first = errors.iter().find(is_counted)?;
    let policy = first.policy.name();
    let message = match first.binding {
        Some(binding) => format!(
            "policy '{policy}' with binding '{}' denied request: {}",
            binding.name(),
            first.message
        ),
        None => format!(
            "policy {} denied request: {}",
            go_quote(policy),
            first.message
        ),
    };
    let reason = match first.reason {
        "" => "Forbidden",
        reason => reason,
    };
    Some(Status {
        cause: first.message.clone(),
        binding: first.binding.map(|binding| binding.name().to_owned()),
        ..status(403, reason, &message)
    })
}

#[cfg(test)]
mod tests;
