//! Estimates of the cost of an evaluation in the API server. The costs of its functions are in their rows.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `pkg/cel/library/cost.go`.

pub use super::costs::AUTHORIZER_CHECK_COST;
use cel::checker::CheckedAst;
use cel::cost::{CostEstimate, SizeEstimator};
use cel::estimate::{self, CostOptions};

/// The API server's options of the cost model: `has()` is free.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `baseOpts`.
pub const COST_OPTIONS: CostOptions = CostOptions {
    presence_test_has_cost: false,
};

/// Estimates the cost of evaluating `checked` in the API server. `sizes` has the sizes of variables.
///
/// With [`UnknownSizes`](cel::cost::UnknownSizes), costs that depend on the size of a variable are unbounded. The API
/// server estimates the rules of CRDs and rejects those that may exceed its limits. For policies, it makes no estimates
/// and only measures.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::cost::{CostEstimate, UnknownSizes};
/// use cel::{checker, syntax};
/// use kubernetes::library::estimate;
/// use kubernetes::library::environment::base_env;
///
/// let text = "quantity('1Gi').isGreaterThan(quantity('500Mi'))";
/// let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
/// let (checked, found) = checker::check(&ast, text, base_env());
/// assert!(found.is_empty());
/// assert_eq!(estimate::estimate(&checked, &UnknownSizes), CostEstimate::fixed(3));
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn estimate(checked: &CheckedAst, sizes: &dyn SizeEstimator) -> CostEstimate {
    estimate::estimate(checked, sizes, COST_OPTIONS)
}

/// Estimates like [`estimate()`] with each of several estimators. The cost is close to that of one estimator if they
/// agree on most sizes.
#[must_use]
pub fn estimate_each(checked: &CheckedAst, sizes: &[&dyn SizeEstimator]) -> Vec<CostEstimate> {
    estimate::estimate_each(checked, sizes, COST_OPTIONS)
}
