//! The variables of a stage: objects, the request, and the policy's own variables, which are evaluated
//! where they are first read.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/activation.go` (`evaluationActivation`),
//! `composition.go` (`compositionContext`, `variableAccessor`), `pkg/cel/lazy/lazy.go` (`MapValue`).

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::program::{Planned, Programs};
use super::text::go_quote;
use crate::cel::checker::SHALLOW_DEPTH;
use crate::cel::eval::{Activation, Limits};
use crate::cel::syntax::run_on_deep_stack;
use crate::cel::types::{StructType, Type};
use crate::cel::value::{EvalError, Map, MapSource, Traits, Value, Work};
use crate::library::limits::PER_CALL_LIMIT;
use crate::schema::escape::unescape;

/// How deep expressions may nest together, of variables that read each other.
///
/// Upstream has no limit, and a stack of a gigabyte; what is deeper is an error of our own. A thread with a
/// large stack has room for it.
const MAX_DEPTH: u32 = 5_000;

/// The values of the variables of a stage that are there from the start.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    pub(super) object: Value,
    pub(super) old_object: Value,
    pub(super) params: Value,
    pub(super) request: Value,
    pub(super) namespace: Value,
    /// `authorizer` and `authorizer.requestResource`, in stages that have them.
    pub(super) authorizer: Option<(Value, Value)>,
}

/// The name of the type of `variables`.
///
/// Source: `composition.go`, `variablesTypeName`.
const VARIABLES: &str = "kubernetes.variables";

/// The variables of a stage.
pub(super) struct Scope {
    programs: Arc<Programs>,
    inputs: Inputs,
    /// The value of each variable that has been read.
    values: Mutex<Vec<Memo>>,
    /// How deep the expressions nest that are being evaluated: one, and the variables on the way to it.
    depth: AtomicU32,
    /// What variables have cost that was not yet taken.
    variables_cost: AtomicU64,
    /// What the comparisons of all expressions may look at.
    work: Arc<Work>,
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
    pub(super) fn new(programs: &Arc<Programs>, inputs: Inputs) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            values: Mutex::new(vec![Memo::Unread; programs.variables.len()]),
            programs: Arc::clone(programs),
            inputs,
            depth: AtomicU32::new(0),
            variables_cost: AtomicU64::new(0),
            work: Arc::default(),
            variables: Weak::clone(this),
        })
    }

    /// Evaluates `planned`; its cost is without that of the variables it reads.
    pub(super) fn evaluate(&self, planned: &Planned) -> (Result<Value, EvalError>, u64) {
        let around = self.depth.load(Ordering::Relaxed);
        let depth = around.saturating_add(planned.depth);
        if depth > MAX_DEPTH {
            let error = EvalError::new("variables that read each other nest too deep");
            return (Err(error), 0);
        }
        self.depth.store(depth, Ordering::Relaxed);
        // One expression alone sees to its own stack.
        let needs_stack = around > 0 && around <= SHALLOW_DEPTH && depth > SHALLOW_DEPTH;
        let evaluation = run_on_deep_stack(needs_stack, || {
            let limits = Limits {
                work: Some(&self.work),
                ..Limits::of_cost(PER_CALL_LIMIT)
            };
            planned.program.eval(self, limits)
        });
        self.depth.store(around, Ordering::Relaxed);
        (evaluation.result, evaluation.cost)
    }

    /// Forgets what variables have evaluated to: a value may hold the scope itself.
    pub(super) fn forget(&self) {
        let values = std::mem::take(&mut *self.values());
        drop(values);
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
        let inputs = &self.inputs;
        let authorizer = inputs.authorizer.as_ref();
        match name {
            "object" => Some(inputs.object.clone()),
            "oldObject" => Some(inputs.old_object.clone()),
            "params" => Some(inputs.params.clone()),
            "request" => Some(inputs.request.clone()),
            "namespaceObject" => Some(inputs.namespace.clone()),
            "authorizer" => authorizer.map(|(authorizer, _)| authorizer.clone()),
            "authorizer.requestResource" => authorizer.map(|(_, resource)| resource.clone()),
            "variables" => {
                let this: Arc<dyn MapSource> = self.variables.upgrade()?;
                Some(Value::Map(Map::from_source(this)))
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
        let other = other.as_map().and_then(Map::source);
        let other = other.map(|other| Arc::as_ptr(other).cast::<()>());
        let this = std::ptr::from_ref(self).cast::<()>();
        Some(match other {
            Some(other) => Ok(std::ptr::addr_eq(this, other)),
            None => Err(EvalError::no_such_overload()),
        })
    }
}
