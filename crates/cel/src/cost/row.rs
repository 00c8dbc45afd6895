//! Costs of an overload, as defined by the row that declares it.
//!
//! Source: cel-go `checker/cost.go` (`FunctionEstimator`), `interpreter/runtimecost.go` (`FunctionTracker`).

use std::fmt;

use super::node::{Call, CallEstimate, SizeEstimator};
use super::size::CostEstimate;
use crate::value::{EvalBudget, EvalError, Value};

/// Estimated cost of a call.
#[derive(Clone, Copy)]
pub enum StaticCost {
    /// A fixed cost in addition to the cost of the arguments. The size of the result is unknown.
    Fixed(u64),
    /// The cost of the function itself, in addition to the cost of its arguments.
    Of(fn(&Call<'_>, &dyn SizeEstimator) -> CallEstimate),
    /// The total cost, computed from the costs of the arguments. Used for operators such as `&&`, which may skip an
    /// argument.
    WithArgs(fn(&Call<'_>, &[CostEstimate]) -> CallEstimate),
}

impl StaticCost {
    /// Returns the estimate for `call`, including the cost of the arguments.
    pub(crate) fn estimate(
        self,
        call: &Call<'_>,
        arg_costs: &[CostEstimate],
        sizes: &dyn SizeEstimator,
    ) -> CallEstimate {
        let own = match self {
            Self::Fixed(cost) => CallEstimate::from_cost(CostEstimate::fixed(cost)),
            Self::Of(estimate) => estimate(call, sizes),
            Self::WithArgs(estimate) => return estimate(call, arg_costs),
        };
        arg_costs.iter().fold(own, |sum, cost| sum.with(*cost))
    }
}

/// Computes the measured cost of a call from its arguments and its result.
///
/// A failed argument is passed as [`Value::Error`]. If upstream's computation panics, the function returns an error,
/// which ends the evaluation. If the function visits the contents of values, it charges the visits to the budget.
pub type CallCost = fn(&[Value], &Result<Value, EvalError>, &EvalBudget) -> Result<u64, EvalError>;

/// Measured cost of an evaluated call.
#[derive(Clone, Copy)]
pub enum RuntimeCost {
    /// A fixed cost.
    Fixed(u64),
    /// A function of the arguments.
    ByArgs(fn(&[Value]) -> u64),
    /// A function of the arguments and the result. It returns an error if upstream's computation panics.
    By(CallCost),
}

impl RuntimeCost {
    /// Returns the cost of a call.
    ///
    /// # Errors
    ///
    /// Returns an error if upstream's computation panics.
    #[inline]
    pub fn measure(
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

/// The calls to which a measured cost applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostScope {
    /// Calls that the checker resolved to this overload alone (`OverloadCostTracker`).
    Overload,
    /// The calls of `Overload`, and calls that the checker did not resolve to a single overload of the function
    /// (`ActualCostEstimator`).
    Function,
}

/// Costs of an overload.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// The estimated cost.
    pub estimate: StaticCost,
    /// The estimate of `actual` that [`bounds`](crate::bounds) uses. `None` if it is equal to `estimate`.
    pub estimate_of_actual: Option<StaticCost>,
    /// The measured cost of an evaluated call.
    pub actual: RuntimeCost,
    /// The calls to which `actual` applies.
    pub scope: CostScope,
    /// True if the platform defines `actual`. In a [`Library`](crate::env::Library) that ignores the costs of the
    /// platform, such a call costs 1.
    ///
    /// Source: cel-go `interpreter/runtimecost.go`, `CostTracker.costCall`.
    pub is_of_platform: bool,
}

impl Costs {
    /// One unit per call.
    pub const ONE: Self = Self::fixed(1);

    /// Returns these costs with an estimate of the measured cost.
    #[must_use]
    pub const fn with_estimate_of_actual(self, estimate: StaticCost) -> Self {
        Self {
            estimate_of_actual: Some(estimate),
            ..self
        }
    }

    /// Creates a fixed cost per call.
    #[must_use]
    pub const fn fixed(cost: u64) -> Self {
        Self::new(StaticCost::Fixed(cost), RuntimeCost::Fixed(cost))
    }

    /// Creates the costs of one overload.
    #[must_use]
    pub const fn new(estimate: StaticCost, actual: RuntimeCost) -> Self {
        Self {
            estimate,
            estimate_of_actual: None,
            actual,
            scope: CostScope::Overload,
            is_of_platform: false,
        }
    }

    /// Sets the scope to [`CostScope::Function`], and marks the measured cost as defined by the platform.
    #[must_use]
    pub const fn per_function(mut self) -> Self {
        self.scope = CostScope::Function;
        self.by_platform()
    }

    /// Marks the measured cost as defined by the platform.
    #[must_use]
    pub const fn by_platform(mut self) -> Self {
        self.is_of_platform = true;
        self
    }
}

/// Relation between the result of a call and its arguments. The estimator uses it to derive the path and the entry
/// sizes of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOf {
    /// Unknown.
    Call,
    /// The result is an element of the first argument, a list.
    Items,
    /// The result is a value of the first argument, a map.
    Values,
    /// The result is the concatenation of both operands, or one of the last two operands of a conditional.
    Operands,
    /// The result is the argument itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_costs_shows_kind_and_fixed_cost() {
        let costs = Costs::fixed(7);
        assert_eq!(format!("{:?}", StaticCost::Fixed(7)), "Fixed(7)");
        assert_eq!(format!("{:?}", RuntimeCost::Fixed(8)), "Fixed(8)");
        let debug = format!("{costs:?}");
        assert_eq!(debug.matches("Fixed(7)").count(), 2, "{debug}");
        let by_args = RuntimeCost::ByArgs(|_| 1);
        assert_eq!(format!("{by_args:?}"), "ByArgs");
    }
}
