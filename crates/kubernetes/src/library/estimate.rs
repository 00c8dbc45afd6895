//! Estimates the evaluation cost of an expression in the API server. The overload rows contain the costs of the
//! functions.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `pkg/cel/library/cost.go`.

pub use super::costs::AUTHORIZER_CHECK_COST;
use crate::version::measures_library_costs;
use cel::bounds::BoundOptions;
use cel::checker::CheckedAst;
use cel::cost::{CostEstimate, SizeEstimator};
use cel::estimate::{self, CostOptions};
use cel::version::Release;

/// The options of the API server's cost model, in which `has()` has no cost.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `baseOpts`.
pub const COST_OPTIONS: CostOptions = CostOptions {
    presence_test_has_cost: false,
};

/// Returns options for [`bounds`](cel::bounds). With these options, `bounds` computes upper bounds of the costs that an
/// API server of `release` measures when it evaluates policies. The API server itself computes no such bounds.
#[must_use]
pub fn policy_options(release: Release) -> BoundOptions {
    BoundOptions {
        presence_test_has_cost: COST_OPTIONS.presence_test_has_cost,
        ignores_platform_costs: !measures_library_costs(release),
    }
}

/// Estimates the evaluation cost of `checked` in the API server. `sizes` provides the sizes of variables.
///
/// With [`UnknownSizes`](cel::cost::UnknownSizes), a cost that depends on the size of a variable is unbounded.
///
/// The API server estimates the costs of CRD rules, and rejects a rule whose estimate exceeds the limits. For policies,
/// it makes no estimates and only measures costs during evaluation.
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
