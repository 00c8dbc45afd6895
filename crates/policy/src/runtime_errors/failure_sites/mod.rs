//! Failure sites: nodes of a policy's expressions that fail for some value of an input. Each has a path condition.

mod causes;
mod finder;

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use crate::runtime_errors::input_types::InputType;
use crate::runtime_errors::path_conditions::PathCondition;
use crate::runtime_errors::symbolic::free_values::{FRACTIONAL_QUANTITY, sample_int_and_string};
use crate::runtime_errors::symbolic::{ExprRef, SymbolicEvaluator};
use cel::ast::ExprId;
use finder::find_all;
use kubernetes::validity::{Constraint, FieldPath};

/// Failure sites by the index of the expression and the index of the node.
pub(crate) type SitesByNode<'s> = HashMap<(usize, usize), Vec<&'s FailureSite>>;

/// A node that fails for some value of an input.
#[derive(Debug)]
pub(crate) struct FailureSite {
    pub(crate) node: ExprRef,
    /// The input whose value makes the node fail.
    pub(crate) path: FieldPath,
    pub(crate) cause: FailureCause,
    /// The outermost node of the chain of selections and indices that contains `node`.
    pub(crate) chain: ExprId,
    /// The condition under which an evaluation reaches `node`.
    pub(crate) path_condition: PathCondition,
}

/// The property of an input's value that makes a node fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The value is absent. For a root variable such as `oldObject`, the value is null.
    Absent,
    /// The value is absent, and the call fails for the default that replaces it, as in `int(object.?x.orValue(''))`.
    FailingDefault,
    /// The value is null.
    Null,
    /// The number has the wrong CEL type. CEL reads a whole number as `int` and a fraction as `double`. The call has an
    /// overload for only one of the two types.
    NumberType,
    /// The call cannot parse the string. An example is `int('a')`.
    InvalidString,
    /// The result of `split` has no element at this index.
    ShortSplit(usize),
    /// The result of a macro has no element at this index.
    ShortList(usize),
    /// The divisor is 0. It may be a number, or the size of an empty value.
    ZeroDivisor,
    /// The value of an int-or-string field is an integer but the call only accepts a string, or the reverse.
    IntOrString,
}

impl FailureSite {
    /// Returns constraints on the value at `path`, each of which may cause the failure on its own.
    pub(crate) fn failing_constraints(&self, evaluator: &SymbolicEvaluator<'_>) -> Vec<Constraint> {
        let input_type = evaluator.input_type(&self.path);
        let is_collection = input_type
            .as_ref()
            .is_some_and(|input_type| input_type.is_list() || input_type.is_map());
        let is_quantity = input_type.as_ref().is_some_and(InputType::is_quantity);
        let is_builtin = input_type.is_some_and(|input_type| input_type.is_builtin());
        match self.cause {
            FailureCause::Absent | FailureCause::FailingDefault => vec![Constraint::Absent],
            FailureCause::Null => vec![Constraint::Equals(Json::Null)],
            FailureCause::NumberType => vec![
                Constraint::Equals(json!(1)),
                Constraint::Equals(json!(1.5)),
                Constraint::Present,
            ],
            FailureCause::InvalidString if is_quantity => {
                vec![Constraint::Equals(json!(FRACTIONAL_QUANTITY))]
            }
            // The path condition may already constrain the string to a failing value, so the first constraint only
            // requires that it is present.
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
    find_all(evaluator, None).0
}

/// Like [`find`], but also returns the path conditions of the nodes that `is_target` selects.
pub(crate) fn find_with_targets(
    evaluator: &SymbolicEvaluator<'_>,
    is_target: &dyn Fn(ExprRef) -> bool,
) -> (Vec<FailureSite>, Vec<(ExprRef, PathCondition)>) {
    find_all(evaluator, Some(is_target))
}

pub(crate) fn sites_by_node(sites: &[FailureSite]) -> SitesByNode<'_> {
    let mut sites_by_node: SitesByNode<'_> = HashMap::new();
    for site in sites {
        let node = (site.node.index, site.node.id.index());
        sites_by_node.entry(node).or_default().push(site);
    }
    sites_by_node
}
