//! Symbolic values, and scopes with the values of comprehension variables.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use cel::ast::{ExprId, Literal};
use kubernetes::validity::FieldPath;

/// The key of the entry that represents all unknown keys of a map.
pub(crate) const ANY_KEY: &str = "example";

/// A node of one of the policy's expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ExprRef {
    /// The index of the expression in the policy.
    pub(crate) index: usize,
    pub(crate) id: ExprId,
}

impl ExprRef {
    /// Returns the node `id` of the expression that contains this node.
    pub(crate) fn with_id(self, id: ExprId) -> Self {
        Self { id, ..self }
    }
}

/// The known facts about the value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum SymbolicValue {
    /// The value of an input.
    Input {
        path: FieldPath,
        /// True if the expression is an optional, such as `object.?spec`.
        is_optional: bool,
        /// The constant that replaces an absent input, such as the argument of `orValue()`.
        default: Option<Json>,
    },
    /// The same value in all requests.
    Constant(Json),
    /// A list whose elements have these values.
    List(Rc<Vec<SymbolicValue>>),
    /// The result of `+`: a concatenation or a sum of two operands, each with its alternatives.
    Concat(Rc<(Vec<SymbolicValue>, Vec<SymbolicValue>)>),
    /// The resulting list of a `filter` or `map` macro.
    Comprehension(ExprRef, Scope),
    /// A key of the map at this path.
    MapKey(FieldPath),
    /// The size of the value at this path: the number of elements, entries or characters.
    Size(FieldPath),
    /// The result of `split` for the string at this path.
    SplitParts(FieldPath),
    Unknown,
}

pub(crate) fn input_value(path: FieldPath) -> SymbolicValue {
    SymbolicValue::Input {
        path,
        is_optional: false,
        default: None,
    }
}

pub(crate) fn select(
    operands: Vec<SymbolicValue>,
    step: impl Fn(&FieldPath) -> Option<FieldPath>,
) -> Vec<SymbolicValue> {
    let alternatives = operands.into_iter().map(|operand| match operand {
        SymbolicValue::Input {
            path, is_optional, ..
        } => step(&path).map_or(SymbolicValue::Unknown, |path| SymbolicValue::Input {
            path,
            is_optional,
            default: None,
        }),
        _ => SymbolicValue::Unknown,
    });
    alternatives.collect()
}

pub(crate) fn sizes_of(of: Vec<SymbolicValue>) -> Vec<SymbolicValue> {
    let sizes = of.into_iter().map(|symbolic| match symbolic {
        SymbolicValue::Input { path, .. } => SymbolicValue::Size(path),
        _ => SymbolicValue::Unknown,
    });
    sizes.collect()
}

pub(crate) fn literal_value(literal: &Literal) -> SymbolicValue {
    SymbolicValue::Constant(match literal {
        Literal::Null => Json::Null,
        Literal::Bool(value) => json!(value),
        Literal::Int(value) => json!(value),
        Literal::Uint(value) => json!(value),
        Literal::Double(value) => json!(value),
        Literal::String(text) => json!(&**text),
        Literal::Bytes(_) => return SymbolicValue::Unknown,
    })
}

/// The comprehension variables in scope and their values, innermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(Option<Rc<LocalVariable>>);

#[derive(Debug)]
struct LocalVariable {
    name: Arc<str>,
    alternatives: Vec<SymbolicValue>,
    outer: Scope,
}

impl Scope {
    pub(crate) fn with(&self, name: &Arc<str>, alternatives: Vec<SymbolicValue>) -> Self {
        Self(Some(Rc::new(LocalVariable {
            name: Arc::clone(name),
            alternatives,
            outer: self.clone(),
        })))
    }

    /// Returns true outside of comprehensions.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&[SymbolicValue]> {
        let mut scope = self.0.as_deref();
        while let Some(binding) = scope {
            if *binding.name == *name {
                return Some(&binding.alternatives);
            }
            scope = binding.outer.0.as_deref();
        }
        None
    }
}
