//! Search for what can hardly be meant: parts of a policy that are valid, and that no request gives a purpose.
//!
//! None of it is refused by the API server, and most of it evaluates without an error: a comparison that is always
//! false, a rule for an operation that no request has, a text compared as a number would be. Every rule here holds
//! for all requests, or is silent: a heuristic that is sometimes right belongs elsewhere.
//!
//! [`find`] reads the policy and its expressions; comparisons of unlike types come from the analysis
//! ([`crate::analysis::TypeCheck::unlike`]), which knows the kinds.

mod bindings;
mod bounds;
mod expressions;
mod labels;
mod path;
mod rules;
mod selectors;
mod variables;

use cel::source::Location;
use kubernetes::schema::rest_mapper::RestMapper;

use crate::compile::CompiledPolicy;
use crate::matching::MatchedResource;
use crate::rule::Rule;

pub use bindings::find_in_binding;

/// A part of a policy that can hardly be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The rule that it belongs to.
    pub rule: Rule,
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The place in the expression, where the field is one.
    pub location: Option<Location>,
    /// The fault, in one line.
    pub message: String,
    /// The mend, in one line.
    pub mend: Option<String>,
    /// True if nothing that was meant goes wrong because of it.
    pub is_harmless: bool,
}

/// Finds what can hardly be meant in `policy`, whose rules match `resources` of those in `mapper`.
#[must_use]
pub fn find(
    policy: &CompiledPolicy,
    resources: &[MatchedResource],
    mapper: &RestMapper,
) -> Vec<Lint> {
    let mut found = rules::find(policy, mapper);
    found.extend(labels::find(policy));
    found.extend(variables::find(policy));
    found.extend(expressions::find(policy, resources, mapper));
    found
}
