//! Refines values by the conditions that guard them.
//!
//! A value such as an element of concatenated lists may have several alternatives. Only the alternatives that satisfy
//! the guard remain. An example is `s` in `has(s.template) ? s.template.spec : s`. Conditions in other expressions of
//! the policy are ignored.

use cel::ast::{Expr, ExprId, Literal};

use super::expression::{Interpreter, field_const};
use super::value::{AbstractType, AbstractValue, Const};

/// Maximum nesting of a condition. Deeper parts are ignored.
const MAX_DEPTH: u8 = 12;

/// Maximum number of fields in a path.
const MAX_PATH: usize = 8;

/// Maximum number of simultaneous refinements.
const MAX_NARROWED: usize = 32;

/// The path of a value: a variable and the fields selected from it, such as `object.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// The index of the scope that declares the variable. `None` for a variable that no comprehension declares.
    scope: Option<usize>,
    /// The names of the variable and the fields. The variable is the last element.
    names: Vec<String>,
}

/// The value at a path while a condition holds. It has fewer alternatives than without the condition.
#[derive(Clone, Debug)]
pub(super) struct Refinement {
    path: Path,
    value: AbstractValue,
}

enum Test {
    /// The value has this field.
    Has(String),
    /// The field equals the constant.
    Field(String, Const),
    /// The value is null.
    Null,
    /// The value has the type with this run-time name.
    Type(&'static str),
}

impl Test {
    /// Returns true if all values of the type pass the test, and false if no value passes it. `None` if this is
    /// unknown.
    fn passes(&self, shape: &AbstractType) -> Option<bool> {
        match self {
            Self::Has(field) => Interpreter::holds(shape, field),
            Self::Field(field, wanted) => {
                field_const(shape, field).map(|constant| constant == *wanted)
            }
            Self::Null if shape.is_null() => Some(true),
            // A value with a declared type may be null.
            Self::Null => None,
            Self::Type(name) => shape.type_name().map(|known| known == *name),
        }
    }
}

impl Interpreter<'_> {
    /// Returns the value at `id` after refinement by the enclosing conditions. `None` if it is not refined.
    pub(super) fn refined_value(&self, id: ExprId) -> Option<AbstractValue> {
        if self.refinements.is_empty() {
            return None;
        }
        let path = self.path(id)?;
        let mut refinements = self.refinements.iter().rev();
        let refinement = refinements.find(|refinements| refinements.path == path)?;
        Some(refinement.value.clone())
    }

    /// Assumes that the value of `condition` is `holds`. The assumption ends when [`Self::forget`] is called with the
    /// returned number.
    pub(super) fn assume(&mut self, condition: ExprId, holds: bool) -> usize {
        let outer = self.refinements.len();
        self.refine_by(condition, holds, MAX_DEPTH);
        outer
    }

    /// Ends the assumption for which [`Self::assume`] returned `outer`.
    pub(super) fn forget(&mut self, outer: usize) {
        self.refinements.truncate(outer);
    }

    /// Returns true if the assumption for which [`Self::assume`] returned `outer` refined a value.
    pub(super) fn knows_more_than(&self, outer: usize) -> bool {
        self.refinements.len() > outer
    }

    fn refine_by(&mut self, id: ExprId, holds: bool, depth: u8) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match self.ast.expr(id) {
            Expr::Select {
                operand,
                field,
                test_only: true,
            } => self.narrow(*operand, &Test::Has(field.to_string()), holds),
            Expr::Call {
                function,
                target,
                args,
            } => match (&**function, *target, &**args) {
                ("!_", None, &[operand]) => self.refine_by(operand, !holds, depth),
                ("_&&_", None, &[left, right]) if holds => {
                    self.refine_by(left, true, depth);
                    self.refine_by(right, true, depth);
                }
                ("_||_", None, &[left, right]) if !holds => {
                    self.refine_by(left, false, depth);
                    self.refine_by(right, false, depth);
                }
                ("@in", None, &[key, operand]) => {
                    if let Expr::Literal(Literal::String(key)) = self.ast.expr(key) {
                        self.narrow(operand, &Test::Has(key.to_string()), holds);
                    }
                }
                ("hasValue", Some(target), []) => self.refine_by_optional(target, holds, depth),
                ("_==_" | "_!=_", None, &[left, right]) => {
                    let holds = holds == (&**function == "_==_");
                    self.refine_by_equality(left, right, holds);
                    self.refine_by_equality(right, left, holds);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Refines a value by the condition `operand.?field.hasValue()`. For a chain of selections, the first field must
    /// also be present.
    fn refine_by_optional(&mut self, id: ExprId, holds: bool, depth: u8) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        let (operand, field) = match self.ast.expr(id) {
            Expr::Call { function, args, .. } => match (&**function, &**args) {
                ("_?._" | "_[?_]", &[operand, field]) => match self.ast.expr(field) {
                    Expr::Literal(Literal::String(field)) => (operand, field.to_string()),
                    _ => return,
                },
                _ => return,
            },
            Expr::Select { operand, .. } if holds => {
                return self.refine_by_optional(*operand, true, depth);
            }
            _ => return,
        };
        if self.path(operand).is_some() {
            self.narrow(operand, &Test::Has(field), holds);
        } else if holds {
            self.refine_by_optional(operand, true, depth);
        }
    }

    /// Refines a value by a condition such as `path == constant` or `type(path) == type`.
    fn refine_by_equality(&mut self, side: ExprId, other: ExprId, holds: bool) {
        let Some(constant) = self.without_recording(|this| this.eval(other).as_const().cloned())
        else {
            return;
        };
        match (self.ast.expr(side), constant) {
            (Expr::Call { function, args, .. }, Const::TypeName(name)) => {
                if let ("type", &[operand]) = (&**function, &**args) {
                    self.narrow(operand, &Test::Type(name), holds);
                }
            }
            (Expr::Ident(_) | Expr::Select { .. }, Const::Null) => {
                self.narrow(side, &Test::Null, holds);
            }
            (Expr::Select { operand, field, .. }, constant) => {
                let test = Test::Field(field.to_string(), constant);
                self.narrow(*operand, &test, holds);
            }
            _ => {}
        }
    }

    fn narrow(&mut self, id: ExprId, test: &Test, holds: bool) {
        if self.refinements.len() >= MAX_NARROWED {
            return;
        }
        let Some(path) = self.path(id) else { return };
        if let (Test::Has(field), false) = (test, holds) {
            // The value of the absent field becomes bottom, so that reading the field causes no type error.
            let mut path = path.clone();
            path.names.insert(0, field.clone());
            self.refinements.push(Refinement {
                path,
                value: AbstractValue::bottom(),
            });
        }
        let value = self.without_recording(|this| this.eval(id));
        let keep = |shape: &AbstractType| test.passes(shape) != Some(!holds);
        if let Some(value) = value.refine(keep) {
            self.refinements.push(Refinement { path, value });
        }
    }

    /// Returns the path of the expression `id`. `None` if the expression is not a path.
    fn path(&self, id: ExprId) -> Option<Path> {
        let mut names = Vec::new();
        let mut id = id;
        loop {
            match self.ast.expr(id) {
                Expr::Ident(name) => {
                    let is_named = |(scoped, _): &(_, _)| AsRef::<str>::as_ref(scoped) == &**name;
                    let scope = self.scopes.iter().rposition(is_named);
                    names.push(name.to_string());
                    return Some(Path { scope, names });
                }
                Expr::Select {
                    operand,
                    field,
                    test_only: false,
                } if names.len() < MAX_PATH => {
                    names.push(field.to_string());
                    id = *operand;
                }
                _ => return None,
            }
        }
    }

    /// Calls `look` and discards the findings that it records.
    pub(super) fn without_recording<T>(&mut self, look: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.mark();
        let (n_absent, n_present) = (self.outcome.absent.len(), self.outcome.present.len());
        let n_excused = self.outcome.suppressed.len();
        let result = look(self);
        self.discard_since(mark);
        self.outcome.absent.truncate(n_absent);
        self.outcome.present.truncate(n_present);
        self.outcome.suppressed.truncate(n_excused);
        result
    }
}
