//! The names that the expressions of a stage can read: objects, the request, and the policy's variables. Variables are
//! evaluated on first use.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/activation.go` (`evaluationActivation`), `composition.go`
//! (`compositionContext`, `variableAccessor`), `pkg/cel/lazy/lazy.go` (`MapValue`).

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::program::{PlannedExpression, Programs};
use super::recorder::Recorder;
use super::text::go_quote;
use super::trace::{TRACED_CALL_LIMIT, TRACED_CHECKS, Trace};
use cel::eval::{Activation, Limits, Observer, Part};
use cel::types::{StructType, Type};
use cel::value::{EvalBudget, EvalError, Exceeded, Map, MapSource, Traits, Value};
use kubernetes::library::estimate::AUTHORIZER_CHECK_COST;
use kubernetes::library::limits::PER_CALL_LIMIT;
use kubernetes::schema::escape::unescape;

/// Maximum total nesting of an expression and the variables that it reads, directly or indirectly.
///
/// Upstream has no such limit, because its stack can grow to one gigabyte. Exceeding the limit is therefore reported as
/// an exceeded limit of this crate. A thread with a large stack can evaluate expressions up to this nesting.
const MAX_DEPTH: u32 = 5_000;

#[derive(Clone, Debug)]
pub(super) struct Inputs {
    pub(super) object: Value,
    pub(super) old_object: Value,
    pub(super) params: Value,
    pub(super) request: Value,
    pub(super) namespace: Value,
    /// `authorizer` and `authorizer.requestResource`. `None` in stages that do not declare them.
    pub(super) authorizer: Option<(Value, Value)>,
    /// The limits on work steps and memory that all expressions share.
    pub(super) budget: Arc<EvalBudget>,
    /// Setting this flag cancels the evaluation.
    pub(super) is_cancelled: Option<Arc<AtomicBool>>,
    /// If set, records the result of each expression.
    pub(super) trace: Option<Arc<Trace>>,
    /// If set, records the values of all subexpressions.
    pub(super) recorder: Option<Arc<Recorder>>,
}

/// The type name of `variables`.
///
/// Source: `composition.go`, `variablesTypeName`.
const VARIABLES: &str = "kubernetes.variables";

pub(super) struct Scope {
    programs: Arc<Programs>,
    inputs: Arc<Inputs>,
    values: Box<[Memo]>,
    /// The total nesting of the expression and the variables that are being evaluated.
    depth: AtomicU32,
    /// The cost of variables that is not yet charged to an expression of the stage.
    variables_cost: AtomicU64,
    /// The map `variables`, created when an expression reads the map as a whole.
    variables: OnceLock<Arc<Variables>>,
    this: Weak<Self>,
}

#[derive(Debug, Default)]
struct Memo {
    value: OnceLock<Result<Value, EvalError>>,
    /// True while the variable is being evaluated.
    is_pending: AtomicBool,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl Scope {
    pub(super) fn new(programs: &Arc<Programs>, inputs: Arc<Inputs>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            values: programs.variables.iter().map(|_| Memo::default()).collect(),
            programs: Arc::clone(programs),
            inputs,
            depth: AtomicU32::new(0),
            variables_cost: AtomicU64::new(0),
            variables: OnceLock::new(),
            this: Weak::clone(this),
        })
    }

    /// Evaluates `planned`. Returns the result and the cost. The cost does not include that of the variables that the
    /// expression reads.
    pub(super) fn evaluate(&self, planned: &PlannedExpression) -> (Result<Value, EvalError>, u64) {
        let around = self.depth.load(Ordering::Relaxed);
        let depth = around.saturating_add(planned.depth);
        if depth > MAX_DEPTH {
            self.inputs.budget.exceed(Exceeded::VariableDepth);
        }
        if let Some(exceeded) = self.exceeded() {
            return (Err(exceeded.into()), 0);
        }
        let flag = self.inputs.is_cancelled.as_deref();
        let is_cancelled = || flag.is_some_and(|flag| flag.load(Ordering::Relaxed));
        if is_cancelled() {
            return (Err(EvalError::new("the evaluation was cancelled")), 0);
        }
        self.depth.store(depth, Ordering::Relaxed);
        let limit = match &self.inputs.trace {
            None => PER_CALL_LIMIT,
            Some(_) if planned.inputs.authorizer => {
                TRACED_CALL_LIMIT + TRACED_CHECKS * AUTHORIZER_CHECK_COST
            }
            Some(_) => TRACED_CALL_LIMIT,
        };
        let recorder = self.inputs.recorder.as_deref();
        let recorder = recorder.map(|recorder| recorder.expression(planned.index));
        let limits = Limits {
            observer: recorder.as_ref().map(|recorder| recorder as &dyn Observer),
            budget: Some(&self.inputs.budget),
            is_interrupted: flag
                .is_some()
                .then_some(&is_cancelled as &(dyn Fn() -> bool + Sync)),
            ..Limits::from_cost(limit)
        };
        let evaluation = planned.program.eval(self, limits);
        self.depth.store(around, Ordering::Relaxed);
        (evaluation.result, evaluation.cost)
    }

    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.inputs.budget.exceeded()
    }

    pub(super) fn budget(&self) -> &EvalBudget {
        &self.inputs.budget
    }

    pub(super) fn note(&self, index: usize, result: &Result<Value, EvalError>) {
        if let Some(trace) = &self.inputs.trace {
            trace.add(index, result);
        }
    }

    /// Returns the cost of the variables that were evaluated since the last call.
    pub(super) fn take_variables_cost(&self) -> u64 {
        self.variables_cost.swap(0, Ordering::Relaxed)
    }

    /// Returns the value of the root variable `name`. `None` if there is no such variable.
    fn named(&self, name: &str) -> Result<Option<Cow<'_, Value>>, EvalError> {
        let Some(name) = unescape(name) else {
            return Ok(None);
        };
        match self.programs.variable(&name) {
            Some(n) => Ok(Some(Cow::Borrowed(self.variable(n)?))),
            None => Ok(None),
        }
    }

    /// Returns the value of the variable with the index `n`. The variable is evaluated on first use.
    fn variable(&self, n: usize) -> Result<&Value, EvalError> {
        let (Some(variable), Some(memo)) = (self.programs.variables.get(n), self.values.get(n))
        else {
            return Ok(&Value::Null);
        };
        if let Some(known) = memo.value.get() {
            return known.as_ref().map_err(Clone::clone);
        }
        let name = || go_quote(&variable.name);
        // Upstream recurses without end here and crashes.
        if memo.is_pending.swap(true, Ordering::Relaxed) {
            return Err(EvalError::new(format!(
                "composited variable {} fails to evaluate: it reads itself",
                name()
            )));
        }
        let value = match &variable.expression.program {
            Err(error) => Err(EvalError::new(format!(
                "composited variable {} fails to compile: {error}",
                name()
            ))),
            Ok(program) => {
                let mark = self.inputs.budget.mark();
                let (value, cost) = self.evaluate(program);
                self.inputs.budget.retain(mark);
                self.note(variable.expression.index, &value);
                self.add_variables_cost(cost);
                value.map_err(|error| {
                    if self.exceeded().is_some() {
                        return error;
                    }
                    let name = name();
                    EvalError::new(format!(
                        "composited variable {name} fails to evaluate: {error}"
                    ))
                })
            }
        };
        let value = memo.value.get_or_init(|| value);
        value.as_ref().map_err(Clone::clone)
    }

    fn add_variables_cost(&self, cost: u64) {
        let so_far = self.variables_cost.load(Ordering::Relaxed);
        self.variables_cost
            .store(so_far.saturating_add(cost), Ordering::Relaxed);
    }
}

/// Source: `activation.go`, `ResolveName`.
impl Activation for Scope {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        let inputs = &self.inputs;
        let authorizer = inputs.authorizer.as_ref();
        let value = match name {
            "object" => &inputs.object,
            "oldObject" => &inputs.old_object,
            "params" => &inputs.params,
            "request" => &inputs.request,
            "namespaceObject" => &inputs.namespace,
            "authorizer" => authorizer.map(|(authorizer, _)| authorizer)?,
            "authorizer.requestResource" => authorizer.map(|(_, resource)| resource)?,
            "variables" => {
                let variables = self
                    .variables
                    .get_or_init(|| Arc::new(Variables(Weak::clone(&self.this))));
                let source: Arc<dyn MapSource> = Arc::clone(variables) as _;
                return Some(Cow::Owned(Value::Map(Map::from_source(source))));
            }
            _ => return None,
        };
        Some(Cow::Borrowed(value))
    }

    fn is_native(&self) -> bool {
        !self.programs.reads_go_values
    }

    fn resolve_part(&self, name: &str, keys: &[Arc<str>], is_test: bool) -> Option<Part<'_>> {
        let (variable, rest) = keys.split_first()?;
        if name != "variables" || (is_test && rest.is_empty()) {
            return None;
        }
        Some(match self.named(variable) {
            Ok(Some(value)) => Part::Value(1, value),
            Ok(None) => Part::Absent(0),
            Err(error) => Part::Failed(0, error),
        })
    }
}

/// The map `variables`.
///
/// A variable may contain this map, so the reference to the scope is weak. After the stage the map is empty.
#[derive(Debug)]
struct Variables(Weak<Scope>);

impl MapSource for Variables {
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
        match self.0.upgrade() {
            Some(scope) => Ok(scope.named(name)?.map(Cow::into_owned)),
            None => Ok(None),
        }
    }

    fn len(&self) -> usize {
        self.0.upgrade().map_or(0, |scope| scope.values.len())
    }

    /// Returns the values instead of the keys, as upstream's iterator does.
    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        let Some(scope) = self.0.upgrade() else {
            return Ok(Vec::new());
        };
        (0..scope.values.len())
            .map(|n| scope.variable(n).cloned())
            .collect()
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
