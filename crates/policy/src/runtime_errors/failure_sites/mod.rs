//! Failure sites: nodes of a policy that fail for some value, each with its path condition.

mod causes;
mod finder;

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use crate::runtime_errors::path_conditions::PathCondition;
use crate::runtime_errors::symbolic::free_values::sample_int_and_string;
use crate::runtime_errors::symbolic::{ExprRef, SymbolicEvaluator};
use cel::ast::ExprId;
use cel::source::Location;
use finder::find_all;
use kubernetes::validity::{Constraint, FieldPath};

/// Failure sites by the expression and the node.
pub(crate) type SitesByNode<'s> = HashMap<(usize, usize), Vec<&'s FailureSite>>;

/// A place that fails where something is absent, or has an unfit value.
#[derive(Debug)]
pub(crate) struct FailureSite {
    /// The place.
    pub(crate) node: ExprRef,
    /// The part of the request that makes it fail.
    pub(crate) path: FieldPath,
    /// The reason for which it fails there.
    pub(crate) cause: FailureCause,
    /// The outermost selection or index of the chain that the place is in.
    pub(crate) chain: ExprId,
    /// The goals for an evaluation to come to the place.
    pub(crate) path_condition: PathCondition,
}

/// The cause of a failure, at a path of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// Nothing is there; a root that is absent is null.
    Absent,
    /// Null is there, which nothing can be done with.
    Null,
    /// A number of the other sort, whole or not, which the call cannot take beside what it has.
    NumberType,
    /// A text that the call cannot take.
    InvalidString,
    /// A text that has fewer parts than the index asks for.
    ShortSplit(usize),
    /// A list of which a macro leaves fewer elements than the index asks for.
    ShortList(usize),
    /// The number 0, or nothing to be counted, in a divisor.
    ZeroDivisor,
    /// An integer where a text is taken, or a text where an integer is: it may be either.
    IntOrString,
}

impl FailureSite {
    /// The needs at the path that may make the place fail, each to be tried by itself.
    pub(crate) fn failing_constraints(&self, evaluator: &SymbolicEvaluator<'_>) -> Vec<Constraint> {
        let input_type = evaluator.input_type(&self.path);
        let is_collection = input_type
            .as_ref()
            .is_some_and(|input_type| input_type.is_list() || input_type.is_map());
        let is_builtin = input_type.is_some_and(|input_type| input_type.is_builtin());
        match self.cause {
            FailureCause::Absent => vec![Constraint::Absent],
            FailureCause::Null => vec![Constraint::Equals(Json::Null)],
            FailureCause::NumberType => vec![
                Constraint::Equals(json!(1)),
                Constraint::Equals(json!(1.5)),
                Constraint::Present,
            ],
            // The text that the goals ask for is tried first.
            FailureCause::InvalidString | FailureCause::ShortSplit(_) => vec![
                Constraint::Present,
                Constraint::Equals(json!("example")),
                Constraint::Equals(json!("a")),
            ],
            FailureCause::ShortList(0) => vec![Constraint::Present, Constraint::Absent],
            FailureCause::ShortList(n) => vec![
                Constraint::Present,
                Constraint::MaxLen(n),
                Constraint::Absent,
            ],
            FailureCause::ZeroDivisor if is_collection && is_builtin => vec![Constraint::Absent],
            FailureCause::ZeroDivisor if is_collection => {
                vec![Constraint::Absent, Constraint::MaxLen(0)]
            }
            FailureCause::ZeroDivisor => vec![Constraint::Equals(json!(0))],
            FailureCause::IntOrString => sample_int_and_string(&self.path)
                .map(Constraint::Equals)
                .to_vec(),
        }
    }
}

/// Finds the candidates of all expressions, in the order of the policy's fields.
pub(crate) fn find(evaluator: &SymbolicEvaluator<'_>) -> Vec<FailureSite> {
    find_with_targets(evaluator, &HashMap::new()).0
}

/// Finds the candidates, and the goals for an evaluation to get to each of `places`.
pub(crate) fn find_with_targets(
    evaluator: &SymbolicEvaluator<'_>,
    target_nodes: &HashMap<ExprRef, Location>,
) -> (Vec<FailureSite>, Vec<(ExprRef, PathCondition)>) {
    find_all(evaluator, target_nodes, false)
}

/// [`find_and_reach`], in mutations as well.
pub(crate) fn find_in_mutations(
    evaluator: &SymbolicEvaluator<'_>,
    target_nodes: &HashMap<ExprRef, Location>,
) -> (Vec<FailureSite>, Vec<(ExprRef, PathCondition)>) {
    find_all(evaluator, target_nodes, true)
}

/// The candidates by expression and node.
pub(crate) fn sites_by_node(sites: &[FailureSite]) -> SitesByNode<'_> {
    let mut sites_by_node: SitesByNode<'_> = HashMap::new();
    for site in sites {
        let node = (site.node.index, site.node.id.index());
        sites_by_node.entry(node).or_default().push(site);
    }
    sites_by_node
}
