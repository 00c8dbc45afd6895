//! Runtime errors of expressions, each with a witness: a request on which the evaluator confirms the error.
//!
//! The search is symbolic execution with concrete confirmation. It proposes, the evaluator decides, so an expression that
//! cannot be interpreted symbolically costs a finding and never invents one (ADR 18):
//!
//! 1. Symbolic values (`symbol`): the part of the request, or the constant, that each expression denotes. `decided`
//!    evaluates conditions that are constant for the kind.
//! 2. Failure sites (`candidates`): selections, indices, conversions and divisions that fail for some value, each with its
//!    path condition (`PathCondition`), the conditions of all branches on the way to the site.
//! 3. Constraints (`goals`): the path condition becomes a disjunction of `InputConstraints` on the request. An
//!    unsatisfiable one ends the site without an evaluation, which is how most guards are recognized.
//! 4. Request builder (`witness::RequestBuilder`): the minimal valid objects by their types (`shape::least`), changed to satisfy the
//!    constraints (`shape::meet`), completed and checked by `kubernetes::validity`, and defaulted as the API server does
//!    (`witness::prepare`).
//! 5. Confirmation (`RequestBuilder::evaluate`, `failures`): the evaluator runs the whole policy. If a request fails before the
//!    site, the missing value is added to the constraints and the request is built again.
//! 6. Report (`words`, `guard`): the message, and a guard that fixes the expression.
//!
//! [`analyse`] runs this loop over the kinds that the rules match (`kinds`), within a budget. The same parts find requests
//! for errors of type checking (`typed`), failing mutations (`mutated`), allowed and denied examples (`examples`), params
//! of the wrong scope (`scope`) and comparisons that are constant by the schemas (`compared`).

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
