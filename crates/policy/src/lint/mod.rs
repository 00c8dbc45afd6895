//! Lints: constructs of a policy that are valid but probably mistakes.
//!
//! The API server accepts all of these constructs, and most of them evaluate without an error. Examples are a
//! comparison that is always false, a rule for an operation that no request has, and `<` between strings that contain
//! numbers. A lint is reported only if it holds for all requests. Heuristics that are sometimes wrong do not belong
//! here.
//!
//! [`find`] analyzes the policy and its expressions. Comparisons of incomparable types, and calls of `orValue` on a
//! value that is not an optional, are found elsewhere ([`crate::analysis::TypeCheck`]), because they depend on the
//! kinds.

mod bindings;
mod bounds;
mod claims;
pub mod containers;
mod denials;
mod expressions;
mod guards;
mod labels;
mod messages;
mod model;
mod names;
mod operations;
mod optionals;
pub(crate) mod path;
mod patterns;
mod positions;
mod prose;
mod quantifiers;
mod ranges;
mod repeats;
mod required_scope;
mod rules;
mod selectors;
mod templates;
mod text_values;
mod texts;
mod users;
mod variables;

use kubernetes::schema::resolver::SchemaResolver;
use kubernetes::schema::rest_mapper::RestMapper;

use crate::compile::CompiledPolicy;
use crate::matching::MatchedResource;

pub use bindings::find_in_binding;
pub use model::Lint;
pub use optionals::{missing_optionals, missing_question_mark};
pub use rules::{find_in_rules, intended_groups};

/// Returns the lints of `policy`. `resources` are the resources that its rules match. `mapper` contains the served
/// resources, and `schemas` their types.
#[must_use]
pub fn find(
    policy: &CompiledPolicy,
    resources: &[MatchedResource],
    (mapper, schemas): (&RestMapper, &dyn SchemaResolver),
) -> Vec<Lint> {
    let mut lints = rules::find(policy, mapper);
    lints.extend(labels::find(policy));
    lints.extend(messages::find(policy));
    lints.extend(claims::find(policy));
    lints.extend(variables::find(policy));
    lints.extend(expressions::find(policy, resources, mapper));
    lints.extend(containers::find(policy));
    lints.extend(names::find(policy));
    lints.extend(operations::find(policy, mapper, schemas));
    lints.extend(operations::absent_metadata(policy, mapper));
    lints.extend(operations::misspelled_options(policy));
    lints.extend(ranges::find(policy));
    lints.extend(required_scope::find(policy, mapper));
    lints.extend(templates::find(policy));
    lints
}

#[cfg(test)]
mod tests;
