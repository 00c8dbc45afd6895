//! The costs of an overload, as its row has them.
//!
//! Source: cel-go `checker/cost.go` (`FunctionEstimator`), `interpreter/runtimecost.go` (`FunctionTracker`).

use std::fmt;

use super::node::{Call, CallEstimate, SizeEstimator};
use super::size::CostEstimate;
use crate::value::{EvalBudget, EvalError, Value};

/// The cost of a call, before it is evaluated.
#[derive(Clone, Copy)]
pub enum StaticCost {
    /// So many units, beside what the arguments cost; nothing is known of the size of the result.
    Fixed(u64),
    /// Cost of the function itself, on top of the cost of its arguments.
    Of(fn(&Call<'_>, &dyn SizeEstimator) -> CallEstimate),
    /// Cost computed by the function from the costs of its arguments, not all of which need be evaluated.
    WithArgs(fn(&Call<'_>, &[CostEstimate]) -> CallEstimate),
}

impl StaticCost {
    /// The estimate for `call`, with what the arguments cost.
    pub(crate) fn estimate(
        self,
        call: &Call<'_>,
        arg_costs: &[CostEstimate],
        sizes: &dyn SizeEstimator,
    ) -> CallEstimate {
        let own = match self {
            Self::Fixed(cost) => CallEstimate::of_cost(CostEstimate::fixed(cost)),
            Self::Of(estimate) => estimate(call, sizes),
            Self::WithArgs(estimate) => return estimate(call, arg_costs),
        };
        arg_costs.iter().fold(own, |sum, cost| sum.with(*cost))
    }
}

/// How the cost of an evaluated call is computed of its arguments and its result.
///
/// An error ends the evaluation, as a panic of upstream's does. Arguments that failed are values of the kind
/// [`Value::Error`]. A function that visits values counts them in the budget.
pub type CallCost = fn(&[Value], &Result<Value, EvalError>, &EvalBudget) -> Result<u64, EvalError>;

/// The cost of an evaluated call.
#[derive(Clone, Copy)]
pub enum RuntimeCost {
    /// So many units.
    Fixed(u64),
    /// By the arguments.
    ByArgs(fn(&[Value]) -> u64),
    /// By the arguments and the result, where upstream's accounting may panic.
    By(CallCost),
}

impl RuntimeCost {
    /// The cost of a call.
    ///
    /// # Errors
    ///
    /// Where upstream's accounting panics.
    #[inline]
    pub fn of(
        self,
        args: &[Value],
        result: &Result<Value, EvalError>,
        budget: &EvalBudget,
    ) -> Result<u64, EvalError> {
        match self {
            Self::Fixed(cost) => Ok(cost),
            Self::ByArgs(cost) => Ok(cost(args)),
            Self::By(cost) => cost(args, result, budget),
        }
    }
}

/// The calls that a cost counts for when they are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostScope {
    /// Those that the check resolved to the overload alone (`OverloadCostTracker`).
    Overload,
    /// All calls of the function that no overload's own cost counts for, also those for which the check left
    /// open which overload it is (`ActualCostEstimator`).
    Function,
}

/// The costs of an overload.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// The estimate, before an evaluation.
    pub estimate: StaticCost,
    /// The cost of an evaluated call.
    pub actual: RuntimeCost,
    /// The calls that `actual` counts for.
    pub scope: CostScope,
}

impl Costs {
    /// One unit for the call.
    pub const ONE: Self = Self::fixed(1);

    /// So many units for the call.
    #[must_use]
    pub const fn fixed(cost: u64) -> Self {
        Self::new(StaticCost::Fixed(cost), RuntimeCost::Fixed(cost))
    }

    /// The costs of one overload.
    #[must_use]
    pub const fn new(estimate: StaticCost, actual: RuntimeCost) -> Self {
        Self {
            estimate,
            actual,
            scope: CostScope::Overload,
        }
    }

    /// These costs, as those of all calls of the function.
    #[must_use]
    pub const fn of_function(mut self) -> Self {
        self.scope = CostScope::Function;
        self
    }
}

/// Where the parts of the result of a call come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOf {
    /// Nothing is known.
    Call,
    /// It is an item of the first argument, a list.
    Items,
    /// It is a value of the first argument, a map.
    Values,
    /// It is made of both operands, or is one of the last two.
    Operands,
    /// It is the argument.
    Argument,
}

impl fmt::Debug for StaticCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(cost) => write!(f, "Fixed({cost})"),
            Self::Of(_) => f.write_str("Of"),
            Self::WithArgs(_) => f.write_str("WithArgs"),
        }
    }
}

impl fmt::Debug for RuntimeCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(cost) => write!(f, "Fixed({cost})"),
            Self::ByArgs(_) => f.write_str("ByArgs"),
            Self::By(_) => f.write_str("By"),
        }
    }
}
