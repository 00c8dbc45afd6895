//! The variables of a stage: objects, the request, and the policy's own variables, which are evaluated
//! where they are first read.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/activation.go` (`evaluationActivation`),
//! `composition.go` (`compositionContext`, `variableAccessor`), `pkg/cel/lazy/lazy.go` (`MapValue`).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::authorizer::Authorizer;
use super::object::Object;
use super::program::{Program, Programs};
use super::request::AdmissionRequest;
use super::text::go_quote;
use super::visible;
use crate::cel::eval::{Activation, Limits};
use crate::cel::types::{StructType, Type};
use crate::cel::value::{EvalError, MapSource, Traits, Value};
use crate::library::limits::PER_CALL_LIMIT;
use crate::schema::escape::unescape;
use crate::schema::{Gvk, Gvr};

/// The values of the variables of a stage that are there from the start.
#[derive(Clone, Debug)]
pub(super) struct Inputs<'a> {
    original: &'a AdmissionRequest,
    gvk: &'a Gvk,
    object: Value,
    old_object: Value,
    params: Value,
    request: Value,
    namespace: Value,
    authorizer: Option<(Value, Value)>,
}

impl<'a> Inputs<'a> {
    /// The inputs of an evaluation of `request` as one of an object of the kind `gvk`.
    pub(super) fn new(
        request: &'a AdmissionRequest,
        gvk: &'a Gvk,
        params: Option<&Object>,
    ) -> Self {
        let object = |object: &Option<Object>| {
            object
                .as_ref()
                .map_or(Value::Null, |object| object.value_as(gvk))
        };
        Self {
            object: object(&request.object),
            old_object: object(&request.old_object),
            params: params.map_or(Value::Null, |params| params.value().clone()),
            request: Value::Null,
            namespace: Value::Null,
            authorizer: None,
            original: request,
            gvk,
        }
    }

    /// The same with the variable `request` of a request for `gvr`.
    pub(super) fn with_request(&self, gvr: &Gvr) -> Self {
        Self {
            request: visible::request(self.original, gvr, self.gvk),
            ..self.clone()
        }
    }

    /// The same with the variable `namespaceObject`.
    pub(super) fn with_namespace(&self, namespace: Option<&Value>) -> Self {
        Self {
            namespace: namespace.cloned().unwrap_or(Value::Null),
            ..self.clone()
        }
    }

    /// The same with an authorizer.
    pub(super) fn with_authorizer(&self, authorizer: &Arc<dyn Authorizer>) -> Self {
        let _ = authorizer;
        self.clone()
    }
}

/// The name of the type of `variables`.
///
/// Source: `composition.go`, `variablesTypeName`.
const VARIABLES: &str = "kubernetes.variables";

/// The variables of a stage.
pub(super) struct Scope {
    programs: Arc<Programs>,
    object: Value,
    old_object: Value,
    params: Value,
    request: Value,
    namespace: Value,
    /// `authorizer` and `authorizer.requestResource`.
    authorizer: Option<(Value, Value)>,
    /// The value of each variable that has been read.
    values: Mutex<Vec<Memo>>,
    /// What variables have cost that was not yet taken.
    variables_cost: AtomicU64,
    /// The scope itself, as the map `variables`.
    variables: Weak<Self>,
}

/// What is known of a variable.
#[derive(Clone, Debug)]
enum Memo {
    Unread,
    /// It is being evaluated.
    Pending,
    Evaluated(Result<Value, EvalError>),
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl Scope {
    pub(super) fn new(programs: &Arc<Programs>, inputs: Inputs<'_>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            values: Mutex::new(vec![Memo::Unread; programs.variables.len()]),
            programs: Arc::clone(programs),
            object: inputs.object,
            old_object: inputs.old_object,
            params: inputs.params,
            request: inputs.request,
            namespace: inputs.namespace,
            authorizer: inputs.authorizer,
            variables_cost: AtomicU64::new(0),
            variables: Weak::clone(this),
        })
    }

    /// Evaluates `program`; its cost is without that of the variables it reads.
    pub(super) fn evaluate(&self, program: &Program) -> (Result<Value, EvalError>, u64) {
        let evaluation = program.eval(self, Limits::of_cost(PER_CALL_LIMIT));
        (evaluation.result, evaluation.cost)
    }

    /// What variables have cost since this was asked last.
    pub(super) fn take_variables_cost(&self) -> u64 {
        self.variables_cost.swap(0, Ordering::Relaxed)
    }

    fn values(&self) -> MutexGuard<'_, Vec<Memo>> {
        // What is known of variables is whole between any two steps.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of the variable at `n`, evaluated where it has not been.
    fn variable(&self, n: usize) -> Result<Value, EvalError> {
        let Some(variable) = self.programs.variables.get(n) else {
            return Ok(Value::Null);
        };
        let known = match self.values().get_mut(n) {
            Some(memo) => std::mem::replace(memo, Memo::Pending),
            None => Memo::Unread,
        };
        let name = || go_quote(&variable.name);
        let value = match known {
            Memo::Evaluated(value) => value,
            // Upstream evaluates without end, until its process dies.
            Memo::Pending => Err(EvalError::new(format!(
                "composited variable {} fails to evaluate: it reads itself",
                name()
            ))),
            Memo::Unread => match &variable.expression.program {
                Err(error) => Err(EvalError::new(format!(
                    "composited variable {} fails to compile: {error}",
                    name()
                ))),
                Ok(program) => {
                    let (value, cost) = self.evaluate(program);
                    self.add_variables_cost(cost);
                    value.map_err(|error| {
                        let name = name();
                        EvalError::new(format!(
                            "composited variable {name} fails to evaluate: {error}"
                        ))
                    })
                }
            },
        };
        if let Some(memo) = self.values().get_mut(n) {
            *memo = Memo::Evaluated(value.clone());
        }
        value
    }

    fn add_variables_cost(&self, cost: u64) {
        let so_far = self.variables_cost.load(Ordering::Relaxed);
        self.variables_cost
            .store(so_far.saturating_add(cost), Ordering::Relaxed);
    }
}

/// Source: `activation.go`, `ResolveName`.
impl Activation for Scope {
    fn resolve(&self, name: &str) -> Option<Value> {
        let authorizer = self.authorizer.as_ref();
        match name {
            "object" => Some(self.object.clone()),
            "oldObject" => Some(self.old_object.clone()),
            "params" => Some(self.params.clone()),
            "request" => Some(self.request.clone()),
            "namespaceObject" => Some(self.namespace.clone()),
            "authorizer" => authorizer.map(|(authorizer, _)| authorizer.clone()),
            "authorizer.requestResource" => authorizer.map(|(_, resource)| resource.clone()),
            "variables" => {
                let this: Arc<dyn MapSource> = self.variables.upgrade()?;
                Some(Value::Map(crate::cel::value::Map::from_source(this)))
            }
            _ => None,
        }
    }
}

/// The variables of the policy, as the map `variables`.
impl MapSource for Scope {
    fn type_(&self) -> Type {
        Type::Struct(StructType::undeclared(VARIABLES))
    }

    fn traits(&self) -> Traits {
        Traits::INDEXER
            .and(Traits::FIELD_TESTER)
            .and(Traits::ITERABLE)
    }

    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        let Value::String(name) = key else {
            return Err(EvalError::no_such_overload());
        };
        let Some(name) = unescape(name) else {
            return Ok(None);
        };
        self.programs
            .variable(&name)
            .map(|n| self.variable(n))
            .transpose()
    }

    fn len(&self) -> usize {
        self.programs.variables.len()
    }

    /// The values: upstream's iterator gives these, not the keys.
    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        (0..self.len()).map(|n| self.variable(n)).collect()
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        let other = other.as_map().and_then(crate::cel::value::Map::source);
        let other = other.map(|other| Arc::as_ptr(other).cast::<()>());
        let this = std::ptr::from_ref(self).cast::<()>();
        Some(match other {
            Some(other) => Ok(std::ptr::addr_eq(this, other)),
            None => Err(EvalError::no_such_overload()),
        })
    }
}
