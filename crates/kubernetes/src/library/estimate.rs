//! Estimates the cost of evaluating an expression in the API server. The costs of the individual functions are defined
//! in their overload rows.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `pkg/cel/library/cost.go`.

pub use super::costs::AUTHORIZER_CHECK_COST;
use cel::checker::CheckedAst;
use cel::cost::{CostEstimate, SizeEstimator};
use cel::estimate::{self, CostOptions};

/// The options of the API server's cost model: `has()` is free.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `baseOpts`.
pub const COST_OPTIONS: CostOptions = CostOptions {
    presence_test_has_cost: false,
};

/// Estimates the cost of evaluating `checked` in the API server. `sizes` provides the sizes of variables.
///
/// With [`UnknownSizes`](cel::cost::UnknownSizes), costs that depend on the size of a variable are unbounded. The API
/// server estimates the costs of CRD rules and rejects rules that may exceed its limits. For policies, it makes no
/// estimates and only measures costs during evaluation.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::cost::{CostEstimate, UnknownSizes};
/// use cel::{checker, syntax};
/// use kubernetes::library::estimate;
/// use kubernetes::library::environment::base_env;
/// use kubernetes::version::KubernetesVersion;
///
/// let text = "quantity('1Gi').isGreaterThan(quantity('500Mi'))";
/// let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
/// let (checked, found) = checker::check(&ast, text, base_env(KubernetesVersion::DEFAULT));
/// assert!(found.is_empty());
/// assert_eq!(estimate::estimate(&checked, &UnknownSizes), CostEstimate::fixed(3));
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn estimate(checked: &CheckedAst, sizes: &dyn SizeEstimator) -> CostEstimate {
    estimate::estimate(checked, sizes, COST_OPTIONS)
}

/// Estimates like [`estimate()`], once for each estimator in `sizes`. If the estimators agree on most sizes, this takes
/// little more time than a single estimate.
#[must_use]
pub fn estimate_each(checked: &CheckedAst, sizes: &[&dyn SizeEstimator]) -> Vec<CostEstimate> {
    estimate::estimate_each(checked, sizes, COST_OPTIONS)
}
