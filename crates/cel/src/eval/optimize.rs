//! Constant folding during planning: literals and conversions of constants, and membership in constant lists.
//!
//! Source: cel-go `interpreter/decorators.go`, `decOptimize`.

use std::collections::HashSet;

use super::machine::Machine;
use super::node::{Call, Kind, Member, Node};
use super::{Bindings, Limits, PlanError, Settings};
use crate::interrupt::checkpoint;
use crate::value::{EvalBudget, EvalError, Key, Value, double_to_int, double_to_uint};

/// Evaluates a node without variables, within a separate budget. Returns `None` if this budget is exceeded. Such a
/// node is not folded, and fails during the evaluation if it is reached.
fn value_of(node: &Node) -> Option<Result<Value, EvalError>> {
    let bindings = Bindings::default();
    let budget = EvalBudget::default();
    // These settings affect only selections, and constant nodes contain none.
    let settings = Settings {
        presence_test_has_cost: true,
        optionals_hold_cel_values: true,
    };
    let limits = Limits::from_cost(u64::MAX);
    let mut machine = Machine::with(&bindings, limits, &budget, 0, settings);
    let result = machine.eval(node);
    match machine.budget.exceeded() {
        None => Some(result),
        Some(_) => None,
    }
}

/// Folds `node` into a constant. If `node` fails, the error is reported when the evaluation reaches it.
fn folded(node: Node) -> Result<Node, PlanError> {
    let kind = match value_of(&node) {
        None => return Ok(node),
        Some(Ok(value)) => Kind::Constant(value),
        Some(Err(error)) if error.ends_evaluation() => return Err(error.into()),
        Some(Err(error)) => Kind::Failure(error),
    };
    Ok(Node::new(node.id, kind))
}

fn is_constant(node: &Node) -> bool {
    node.constant().is_some()
}

/// Folds a list literal if all elements are constants.
///
/// Source: cel-go `interpreter/decorators.go`, `maybeBuildListLiteral`.
pub(super) fn list(node: Node) -> Result<Node, PlanError> {
    match &node.kind {
        Kind::List(list) if list.elements.iter().all(is_constant) => folded(node),
        _ => Ok(node),
    }
}

/// Folds a map literal if all keys and values are constants.
///
/// Source: cel-go `interpreter/decorators.go`, `maybeBuildMapLiteral`.
pub(super) fn map(node: Node) -> Result<Node, PlanError> {
    match &node.kind {
        Kind::Map(entries)
            if entries
                .iter()
                .all(|entry| is_constant(&entry.key) && is_constant(&entry.value)) =>
        {
            folded(node)
        }
        _ => Ok(node),
    }
}

/// Returns true if `function` is a type conversion.
///
/// Source: cel-go `common/overloads/overloads.go`, `IsTypeConversionFunction`.
pub(super) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

/// Folds the conversion of a constant. Planning fails if the conversion fails.
///
/// Source: cel-go `interpreter/decorators.go`, `maybeOptimizeConstUnary`.
pub(super) fn conversion(node: Node) -> Result<Node, PlanError> {
    match &node.kind {
        Kind::Call(call) if matches!(&*call.args, [arg] if is_constant(arg)) => {
            match value_of(&node) {
                None => Ok(node),
                Some(value) => Ok(Node::new(node.id, Kind::Constant(value?))),
            }
        }
        _ => Ok(node),
    }
}

/// Plans `in` as a set lookup if its list is a constant list of scalars.
///
/// Source: cel-go `interpreter/decorators.go`, `maybeOptimizeSetMembership`.
pub(super) fn membership(step: u32, call: Call) -> Result<Node, PlanError> {
    let set = match call.args.get(1).and_then(Node::constant) {
        Some(Value::List(list)) if list.is_empty() => {
            return Ok(Node::new(step, Kind::Constant(Value::Bool(false))));
        }
        Some(Value::List(list)) => set_of(list.iter()),
        _ => None,
    };
    match set {
        None => Ok(Node::new(step, Kind::Call(Box::new(call)))),
        Some(set) => {
            let arg = call.args.into_iter().next();
            let arg = arg.ok_or_else(|| PlanError::new("wrong number of operands"))?;
            Ok(Node::new(step, Kind::Member(Box::new(Member { arg, set }))))
        }
    }
}

/// Returns the keys of the elements. For a number, this includes equal numbers of other types: `1u` and `1.0` for
/// `1`. `None` if an element is not a bool, string or number.
///
/// Source: cel-go `interpreter/decorators.go`, `maybeOptimizeSetMembership`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the number is converted to a double, even if that changes it"
)]
fn set_of(elements: impl Iterator<Item = Value>) -> Option<HashSet<Key>> {
    let mut set = HashSet::new();
    for element in elements {
        checkpoint();
        let also = match &element {
            Value::Bool(_) | Value::String(_) => [None, None],
            Value::Double(value) => [
                double_to_int(*value).map(Value::Int),
                double_to_uint(*value).map(Value::Uint),
            ],
            Value::Int(value) => [
                Some(Value::Double(*value as f64)),
                u64::try_from(*value).ok().map(Value::Uint),
            ],
            Value::Uint(value) => [
                Some(Value::Double(*value as f64)),
                i64::try_from(*value).ok().map(Value::Int),
            ],
            _ => return None,
        };
        for value in std::iter::once(element).chain(also.into_iter().flatten()) {
            // A value that is not equal to itself, such as NaN, cannot be found.
            if let Ok(key) = Key::new(&value)
                && key != Key::Never
            {
                set.insert(key);
            }
        }
    }
    Some(set)
}
