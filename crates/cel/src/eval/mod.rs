//! Evaluation: a checked expression is planned once into a [`Program`] and evaluated repeatedly.
//!
//! Planning resolves names and functions, folds constants and parses constant patterns. Evaluation interprets the
//! plan, tracks the cost as the API server does, and stops at the limit. Overload rows define the costs of functions.
//! A [`Runtime`] defines the other options.
//!
//! Evaluation is recursive. When the stack is nearly used up, evaluation continues on a thread with a larger stack.
//! Trees deeper than `SHALLOW_DEPTH` are planned on such a thread. The parser bounds the depth of trees.
//!
//! Source: cel-go `interpreter` (`planner.go`, `interpretable.go`, `attributes.go`, `runtimecost.go`),
//! `cel/program.go`.

mod activation;
mod attribute;
mod cost;
mod fold;
mod machine;
mod message;
mod native;
mod node;
mod optimize;
mod plan;
mod stack;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::Arc;

pub use activation::{Activation, Bindings, Part};
use regexp::EngineBudget;

use super::ast::{Ast, ExprId};
use super::checker::CheckedAst;
use super::env::Env;
use super::interrupt::checkpoint_of;
use super::stack::{SHALLOW_DEPTH, run_on_deep_stack};
use super::value::{ErrorKind, EvalBudget, EvalError, Value};
use machine::Machine;
use node::Node;

/// The reason why an expression cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("program instantiation failed: {message}")]
pub struct PlanError {
    message: String,
    is_unsafe: bool,
    at: Option<ExprId>,
}

impl PlanError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_unsafe: false,
            at: None,
        }
    }

    /// Returns the error message without the prefix of the [`Display`](fmt::Display) output.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the innermost expression that cannot be planned. `None` if it is unknown. Upstream does not report
    /// this expression.
    #[must_use]
    pub fn at(&self) -> Option<ExprId> {
        self.at
    }

    fn within(mut self, id: ExprId) -> Self {
        self.at.get_or_insert(id);
        self
    }

    /// Returns true if upstream panics instead of returning an error.
    #[must_use]
    pub fn is_unsafe(&self) -> bool {
        self.is_unsafe
    }
}

impl From<EvalError> for PlanError {
    fn from(error: EvalError) -> Self {
        Self {
            message: error.message().to_owned(),
            is_unsafe: error.kind() == ErrorKind::Internal,
            at: None,
        }
    }
}

/// Options of planning and evaluation, defined by an environment.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Returns true if planning folds constants, builds sets from constant lists, and parses constant
    /// patterns.
    ///
    /// Source: cel-go `cel/options.go`, `OptOptimize`; `cel/program.go`, `newProgram`.
    fn folds_constants(&self) -> bool {
        true
    }

    /// Returns true if a presence test, such as `has(a.b)`, is charged.
    ///
    /// Source: cel-go `interpreter/runtimecost.go`, `PresenceTestHasCost`.
    fn presence_test_has_cost(&self) -> bool {
        true
    }

    /// Returns the memory budget for the regex engines of constant patterns. By default, each program has its own
    /// budget.
    fn engines(&self) -> Arc<EngineBudget> {
        Arc::default()
    }
}

/// A [`Runtime`] with the default options.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainRuntime;

impl Runtime for PlainRuntime {}

/// Number of checkpoints that the start of an evaluation counts as. Each iteration of a comprehension counts as one
/// more.
const CHECKPOINTS_OF_EVALUATION: usize = 16;

/// Limits of an evaluation.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Maximum cost. The evaluation ends when the cost exceeds it.
    pub cost: u64,
    /// Called periodically within comprehensions. The evaluation ends if this function returns true.
    pub is_interrupted: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// The work and memory budget, if several evaluations share one. `None` for a separate budget.
    pub budget: Option<&'a EvalBudget>,
    /// Receives the result of each subexpression.
    pub observer: Option<&'a (dyn Observer + 'a)>,
}

/// Observes the results of subexpressions during an evaluation.
pub trait Observer: Sync {
    /// Receives the result and the cost of the subexpression with the index `part` in its AST. The cost includes
    /// nested subexpressions. The subexpressions of a comprehension's body are observed once per iteration.
    fn observe(&self, part: usize, result: &Result<Value, EvalError>, cost: u64);
}

impl Limits<'_> {
    /// Limits the cost only.
    #[must_use]
    pub const fn from_cost(cost: u64) -> Self {
        Self {
            cost,
            is_interrupted: None,
            budget: None,
            observer: None,
        }
    }
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("cost", &self.cost)
            .field("is_interrupted", &self.is_interrupted.is_some())
            .field("budget", &self.budget)
            .field("observer", &self.observer.is_some())
            .finish()
    }
}

/// Result of an evaluation and its cost.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The value or the error.
    pub result: Result<Value, EvalError>,
    /// Cost of the evaluation. The last step may raise it above the limit.
    pub cost: u64,
}

/// A planned expression.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::decls::Variable;
/// use cel::env::Env;
/// use cel::eval::{Limits, PlainRuntime, Program};
/// use cel::types::Type;
/// use cel::value::Value;
/// use cel::{checker, stdlib, syntax};
///
/// let env = Env::new(Arc::new(stdlib::library())).extend([Variable::new("n", Type::Int)]);
/// let ast = Arc::new(syntax::parse("10 / n").0.ok_or("a syntax error")?);
/// let (checked, _) = checker::check(&ast, "10 / n", &env);
/// let program = Program::plan(&checked, &env, &PlainRuntime).map_err(|_| "no program")?;
/// let eval_with = |n| program.eval(&[("n", Value::Int(n))], Limits::from_cost(100)).result;
/// assert_eq!(eval_with(5).map_err(|_| "an error")?.as_int(), Some(2));
/// assert_eq!(eval_with(0).err().ok_or("a value")?.message(), "division by zero");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Program {
    root: Node,
    n_folds: usize,
    deep: bool,
    settings: Settings,
}

/// Properties of a program that apply to all its steps.
#[derive(Clone, Copy, Debug)]
struct Settings {
    presence_test_has_cost: bool,
    /// See [`Behavior::optionals_hold_cel_values`](crate::version::Behavior).
    optionals_hold_cel_values: bool,
}

impl Program {
    /// Plans `checked`, which must have been checked in `env` without errors.
    ///
    /// # Errors
    ///
    /// Returns the error of a constant expression that cannot be folded, or an error that only planning detects.
    pub fn plan(checked: &CheckedAst, env: &Env, runtime: &dyn Runtime) -> Result<Self, PlanError> {
        let ast: &Ast = checked.ast();
        let deep = ast.depth() > SHALLOW_DEPTH;
        let (root, n_folds) =
            run_on_deep_stack(deep, || plan::Planner::new(checked, env, runtime).run())?;
        Ok(Self {
            root,
            n_folds,
            deep,
            settings: Settings {
                presence_test_has_cost: runtime.presence_test_has_cost(),
                optionals_hold_cel_values: env.behavior().optionals_hold_cel_values,
            },
        })
    }

    /// Evaluates the expression with the variables of `activation`.
    #[must_use]
    pub fn eval(&self, activation: &dyn Activation, limits: Limits<'_>) -> Evaluation {
        checkpoint_of(CHECKPOINTS_OF_EVALUATION);
        let own;
        let budget = match limits.budget {
            Some(shared) => shared,
            None => {
                own = EvalBudget::default();
                &own
            }
        };
        let mut machine = Machine::new(self, activation, limits, budget);
        let result = machine.stack.enter(|| machine.eval(&self.root));
        if let Err(error) = &result
            && let ErrorKind::Limit(exceeded) = error.kind()
        {
            budget.exceed(exceeded);
        }
        Evaluation {
            result,
            cost: machine.cost(),
        }
    }

    /// Returns the value of the expression if it is a constant. `None` otherwise.
    #[must_use]
    pub fn constant(&self) -> Option<&Value> {
        self.root.constant()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Dropping the plan is recursive, so dropping a deep plan needs a large stack.
        if self.deep {
            let root = std::mem::replace(&mut self.root, Node::empty());
            run_on_deep_stack(true, || drop(root));
        }
    }
}
