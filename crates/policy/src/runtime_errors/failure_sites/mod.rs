//! Failure sites: nodes of a policy's expressions that fail for some input value, each with its path condition.

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

/// The failure sites by the index of the expression and the index of the node in it.
pub(crate) type SitesByNode<'s> = HashMap<(usize, usize), Vec<&'s FailureSite>>;

/// A node that fails for some value of an input.
#[derive(Debug)]
pub(crate) struct FailureSite {
    /// The failing node.
    pub(crate) node: ExprRef,
    /// The input whose value causes the failure.
    pub(crate) path: FieldPath,
    /// The cause of the failure.
    pub(crate) cause: FailureCause,
    /// The outermost node of the chain of selections and indices that contains `node`.
    pub(crate) chain: ExprId,
    /// The condition under which an evaluation reaches `node`.
    pub(crate) path_condition: PathCondition,
}

/// The value of an input that causes a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// The value is absent. For a root, such as `oldObject`, this means that it is null.
    Absent,
    /// The value is null.
    Null,
    /// A number has the wrong CEL type for the call. CEL reads a whole number as `int` and a fraction as `double`, and
    /// the call has an overload for only one of the two.
    NumberType,
    /// A call cannot parse a string, such as `int('a')`.
    InvalidString,
    /// The list that `split` returns has no element at this index.
    ShortSplit(usize),
    /// The list that a macro returns has no element at this index.
    ShortList(usize),
    /// The divisor is 0, either as a number or as the size of an empty value.
    ZeroDivisor,
    /// An int-or-string field contains an integer but the call accepts only a string, or the reverse.
    IntOrString,
}

impl FailureSite {
    /// Returns alternative constraints on the value at `path`, each of which may cause the failure.
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
            // The path condition may already constrain the string, so its presence is tried first.
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

/// Finds the failure sites of all expressions, in the order of the policy's fields.
pub(crate) fn find(evaluator: &SymbolicEvaluator<'_>) -> Vec<FailureSite> {
    find_with_targets(evaluator, &HashMap::new()).0
}

/// Finds the failure sites, and also the path conditions of `target_nodes`.
pub(crate) fn find_with_targets(
    evaluator: &SymbolicEvaluator<'_>,
    target_nodes: &HashMap<ExprRef, Location>,
) -> (Vec<FailureSite>, Vec<(ExprRef, PathCondition)>) {
    find_all(evaluator, target_nodes, false)
}

/// Like [`find_with_targets`], but also searches the expressions of mutations.
pub(crate) fn find_in_mutations(
    evaluator: &SymbolicEvaluator<'_>,
    target_nodes: &HashMap<ExprRef, Location>,
) -> (Vec<FailureSite>, Vec<(ExprRef, PathCondition)>) {
    find_all(evaluator, target_nodes, true)
}

/// Groups `sites` by expression and node.
pub(crate) fn sites_by_node(sites: &[FailureSite]) -> SitesByNode<'_> {
    let mut sites_by_node: SitesByNode<'_> = HashMap::new();
    for site in sites {
        let node = (site.node.index, site.node.id.index());
        sites_by_node.entry(node).or_default().push(site);
    }
    sites_by_node
}
