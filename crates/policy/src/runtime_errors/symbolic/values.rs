//! Symbolic values, and the scopes that hold the values of comprehension variables.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use cel::ast::{ExprId, Literal};
use kubernetes::validity::FieldPath;

/// The key that represents any entry of a map.
pub(crate) const ANY_KEY: &str = "example";

/// A node of an expression of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ExprRef {
    /// The index of the expression in the policy.
    pub(crate) index: usize,
    pub(crate) id: ExprId,
}

impl ExprRef {
    /// Returns the node `id` of the expression that contains `self`.
    pub(crate) fn with_id(self, id: ExprId) -> Self {
        Self { id, ..self }
    }
}

/// The value that an expression denotes, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) enum SymbolicValue {
    /// The value of an input.
    Input {
        path: FieldPath,
        /// True if the expression is an optional, such as `object.?spec`.
        is_optional: bool,
        /// The constant argument of `orValue()`, which replaces the input if it is absent.
        default: Option<Json>,
    },
    /// A value that is the same in each request.
    Constant(Json),
    /// A list in which each element is one of these values.
    List(Rc<Vec<SymbolicValue>>),
    /// The result of `+` on two operands: a concatenation or a sum. Each operand has its alternatives.
    Concat(Rc<(Vec<SymbolicValue>, Vec<SymbolicValue>)>),
    /// The list that a `filter` or `map` returns.
    Comprehension(ExprRef, Scope),
    /// A key of the map at this path.
    MapKey(FieldPath),
    /// The number of elements, entries or characters of the value at this path.
    Size(FieldPath),
    /// The list that `split` returns for the string at this path.
    SplitParts(FieldPath),
    Unknown,
}

/// Returns the symbolic value of the input at `path`.
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

/// The comprehension variables in scope, innermost first, with their values.
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

    /// Returns true if no comprehension variable is in scope.
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
