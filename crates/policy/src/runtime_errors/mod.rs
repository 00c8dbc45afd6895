//! Runtime errors of expressions, each with a witness: a request on which the evaluator confirms the error.
//!
//! The search is symbolic execution with concrete confirmation: it proposes requests, and the evaluator confirms them.
//! An expression that cannot be interpreted symbolically can therefore hide a finding, but never cause a wrong one (ADR
//! 18).
//!
//! To bound the work, the search chooses a few kinds that represent all matched kinds. For each of them,
//! [`find_runtime_errors`] takes these steps, within a budget (`search`):
//!
//! 1. Symbolic values (`symbolic`): the input, or the constant, that each expression denotes. Conditions that are
//!    constant for the kind are evaluated (`symbolic::constant_conditions`). The types of inputs (`input_types`)
//!    determine which values may be absent, null or of another type.
//! 2. Failure sites (`failure_sites`): selections, indices, conversions and divisions that fail for some value of an
//!    input, each with its path condition, the conjunction of the branch conditions on the way to the site.
//! 3. Constraints (`path_conditions::solver`): the solver turns the path condition into alternative sets of
//!    `InputConstraints`. If the path condition is unsatisfiable, the site is dropped without an evaluation. Most
//!    guards are recognized this way.
//! 4. Requests (`requests::build`): minimal valid objects (`input_types::minimal`), changed to satisfy the constraints
//!    (`input_types::satisfy`), completed and validated by `kubernetes::validity`, with defaults as the API server sets
//!    them (`requests::prepare`).
//! 5. Confirmation (`requests::evaluation`, `failures`): the evaluator runs the whole policy. If the evaluation fails
//!    earlier because another value is absent, the search requires that value to be present and builds the request
//!    again.
//! 6. Reports (`reports`): the rule, the message, and a guard that fixes the expression.
//!
//! The same submodules also find
//!
//! - witnesses of type errors (`type_error_witnesses`),
//! - mutations whose result the API server rejects (`mutation_failures`, `mutation_locations`),
//! - allowed and denied requests for each validation (`examples`),
//! - bindings with a paramRef of the wrong scope (`param_scope`),
//! - comparisons whose result is constant according to the schemas (`constant_comparisons`).

mod constant_comparisons;
mod context;
mod examples;
mod failure_sites;
mod failures;
mod input_types;
mod mutation_failures;
mod mutation_locations;
mod param_scope;
mod path_conditions;
mod reports;
mod requests;
mod search;
mod symbolic;
mod type_error_witnesses;

pub use constant_comparisons::constant_comparisons;
pub use context::{Context, WrittenSchemas};
pub use examples::{Dependence, Examples, dependence, examples};
pub use mutation_failures::{FailingMutation, failing_mutations};
pub use param_scope::{ScopeMismatch, scope_mismatch};
pub use requests::Witness;
pub use requests::object_cache::ObjectCache;
pub use search::{RuntimeErrorFinding, find_runtime_errors};
pub use type_error_witnesses::{TypeErrorWitness, partial_failure_witnesses, type_error_witnesses};
