//! Runtime errors of expressions, each with a witness: a request for which the evaluator confirms the error.
//!
//! The search is symbolic execution with concrete confirmation. It proposes requests, and the evaluator confirms them.
//! An expression that cannot be interpreted symbolically may hide a finding, but cannot cause a wrong one (ADR 18).
//!
//! To bound the work, the search selects a few kinds that represent all matched kinds. For each of them,
//! [`find_runtime_errors`] takes these steps within a budget (`search`). After step 2, a kind is skipped if the policy
//! reads the same types from it as from an earlier kind (`kind_signature`):
//!
//! 1. Symbolic values (`symbolic`): the input or constant that each expression denotes. Conditions that are constant
//!    for the kind are evaluated (`symbolic::constant_conditions`). The types of inputs (`input_types`) determine which
//!    values may be absent, null or of a different type.
//! 2. Failure sites (`failure_sites`): selections, indices, conversions and divisions that fail for some value of an
//!    input. Each has a path condition, the conjunction of the branch conditions under which an evaluation reaches
//!    the site.
//! 3. Solving (`path_conditions::solver`): the solver searches for sets of constraints on the request
//!    (`InputConstraints`). A request that satisfies such a set should reach the site and fail there. If the solver
//!    proves that there is no such set, the site is dropped without an evaluation. This recognizes most guards.
//! 4. Requests (`requests::build`): minimal valid objects (`input_types::minimal`) are changed to satisfy the
//!    constraints (`input_types::satisfy`). `kubernetes::validity` completes and validates them. Defaults are set as in
//!    the API server (`requests::prepare`).
//! 5. Confirmation (`requests::evaluation`, `failures`): the evaluator runs the whole policy. The evaluation may fail
//!    before the site because another value is absent. The search then requires this value and builds the request
//!    again.
//! 6. Reports (`reports`): the rule, the message, and changes that fix the expression. Each change is evaluated before it
//!    is suggested (`reports::trial`).
//!
//! Other submodules reuse these steps. They find
//!
//! - witnesses of type errors (`type_error_witnesses`),
//! - mutations whose result the API server rejects (`mutation_failures`, `mutation_locations`),
//! - allowed and denied requests for each validation (`examples`),
//! - bindings with a paramRef of the wrong scope (`param_scope`),
//! - the kinds and requests that the search does not cover (`coverage`),
//! - comparisons whose result is constant because of the schemas (`constant_comparisons`), or because a variable is
//!   always null (`null_roots`),
//! - changes of an expression that allow denied requests (`decision_changes`),
//! - requests for which the decision depends on the Kubernetes version (`version_comparison`).
//!
//! # How to change the search
//!
//! To add a failure cause:
//!
//! 1. Add a variant to `failure_sites::FailureCause`, and the constraints that trigger it to
//!    `FailureSite::failing_constraints`. The compiler then reports the other functions that match on the cause.
//! 2. Create sites with the cause in `FailureSiteFinder` (`failure_sites::finder` and `failure_sites::causes`). Use
//!    `symbolic::free_values` to check that an input can have a value that triggers it.
//! 3. Recognize the evaluator's error in `Search::matches_site` (`search`).
//! 4. Add the rule and the message to `MessageWriter` (`reports::messages`), and the suggested changes to
//!    `reports::candidates`. A new rule also needs an entry in `crate::rule`.
//!
//! To add a constraint:
//!
//! 1. Add a variant to `kubernetes::validity::constraints::Constraint` and a field to `ValueConstraints`. Combine and
//!    compare constraints in `InputConstraints::add` and `is_consistent`.
//! 2. Change values to satisfy the constraint in `InputType::satisfy_here` (`input_types::satisfy`).
//! 3. Return the constraint from `call_disjuncts` (`path_conditions::calls`) for the functions that require it.
//!
//! To change a limit, change the constant in the module that enforces it. `search` limits the evaluations, their cost,
//! the symbolic steps and the findings. `failure_sites::finder` limits the sites, `path_conditions::solver` the
//! solutions, and `requests::kinds` the kinds. The searches listed above have their own limits. ADR 18 lists the limits
//! of the main search.

mod applied_mutations;
mod constant_comparisons;
mod context;
mod coverage;
mod decision_changes;
mod examples;
mod failure_sites;
mod failures;
mod input_types;
mod kind_signature;
mod mutation_failures;
mod mutation_locations;
mod null_roots;
mod param_scope;
mod patch_literals;
mod path_conditions;
mod reports;
mod requests;
mod search;
mod string_data;
mod symbolic;
mod type_error_witnesses;
mod version_comparison;

pub use constant_comparisons::constant_comparisons;
pub use context::{Context, WrittenSchemas};
pub use coverage::Uncovered;
pub use decision_changes::{DenialReasons, allows_denied_requests};
pub use examples::{
    Attempts, Boundary, Dependence, Examples, dependence, examples, param_values, requests_near,
};
pub use failure_sites::FailureCause;
pub use mutation_failures::{FailingMutation, failing_mutations};
pub use null_roots::null_root_comparisons;
pub use param_scope::{ScopeMismatch, scope_mismatch};
pub use requests::Witness;
pub use requests::object_cache::ObjectCache;
pub use search::{DenyingValidation, RuntimeErrorFinding, find_runtime_errors};
pub use string_data::optional_string_data;
pub use type_error_witnesses::{TypeErrorWitness, partial_failure_witnesses, type_error_witnesses};
pub use version_comparison::{
    VersionComparison, VersionDifference, compare_policies, compare_versions, differing_matches,
};

#[cfg(test)]
pub(crate) mod tests;
