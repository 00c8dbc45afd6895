//! Validates calls of `format` whose format string and argument list are literals. Reports invalid clauses, and
//! arguments that are missing, unused or of the wrong type.
//!
//! Source: cel-go `ext/formatting.go`, `stringFormatValidator`, `stringFormatChecker`.

use crate::ast::{Ast, Expr, ExprId, Literal};
use crate::checker::{CheckedAst, Reference};
use crate::ext::strings::FORMAT;
use crate::ext::strings::format::{Arguments, Clause, FormatError, interpolate};
use crate::interrupt::checkpoint;
use crate::types::{Primitive, Type};

/// Returns the errors in calls of `format`, each with the expression that causes it.
pub(super) fn mistakes(checked: &CheckedAst) -> Vec<(ExprId, String)> {
    let ast = checked.ast();
    let is_format =
        |expr: &Expr| matches!(expr, Expr::Call { function, .. } if &**function == "format");
    if !ast.iter().any(|(_, expr)| is_format(expr)) {
        return Vec::new();
    }
    ast.descendants(ast.root())
        .into_iter()
        .filter_map(|call| {
            checkpoint();
            let (format, elements) = literal_args(checked, call)?;
            let message = mistake(checked, format, elements)?;
            Some((message.at.unwrap_or(call), message.message))
        })
        .collect()
}

/// Returns the format string and the arguments of `call`. `None` unless the format string and the argument list are
/// literals.
fn literal_args(checked: &CheckedAst, call: ExprId) -> Option<(&str, &[ExprId])> {
    let ast = checked.ast();
    let Expr::Call {
        function,
        target: Some(target),
        args,
    } = ast.expr(call)
    else {
        return None;
    };
    if &**function != "format" || !may_be_string_format(checked, call) {
        return None;
    }
    match (ast.expr(*target), &**args) {
        (Expr::Literal(Literal::String(format)), [list]) => match ast.expr(*list) {
            Expr::List { elements, .. } => Some((format, elements)),
            _ => None,
        },
        _ => None,
    }
}

fn may_be_string_format(checked: &CheckedAst, call: ExprId) -> bool {
    match checked.reference(call) {
        Some(Reference::Function { overloads, .. }) => {
            overloads.is_empty() || overloads.iter().any(|row| **row == FORMAT)
        }
        _ => true,
    }
}

/// An error in a call. `at` is the expression that causes it, or `None` if the error concerns the
/// whole call.
#[derive(Debug)]
struct Mistake {
    message: String,
    at: Option<ExprId>,
}

impl FormatError for Mistake {
    fn from_message(message: String) -> Self {
        Self { message, at: None }
    }

    fn with_prefix(self, prefix: &str) -> Self {
        let message = format!("{prefix}: {}", self.message);
        Self { message, ..self }
    }
}

fn mistake(checked: &CheckedAst, format: &str, elements: &[ExprId]) -> Option<Mistake> {
    let mut arguments = Elements {
        checked,
        ids: elements,
        n_requested: 0,
    };
    if let Err(mistake) = interpolate(format, &mut arguments) {
        return Some(mistake);
    }
    let (expected, given) = (arguments.n_requested, elements.len());
    (given > expected).then(|| {
        Mistake::from_message(format!(
            "too many arguments supplied to string.format (expected {expected}, got {given})"
        ))
    })
}

/// The arguments of a literal format string. They are only type-checked, not formatted.
struct Elements<'a> {
    checked: &'a CheckedAst,
    ids: &'a [ExprId],
    n_requested: usize,
}

impl Arguments for Elements<'_> {
    type Error = Mistake;

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn request(&mut self, _: usize) -> Result<(), Mistake> {
        self.n_requested += 1;
        Ok(())
    }

    fn write(&mut self, index: usize, clause: Clause) -> Result<String, Mistake> {
        let Some(&element) = self.ids.get(index) else {
            return Ok(String::new());
        };
        let wrong = match clause {
            Clause::Text => self.first_unformattable(element),
            _ => Some(element).filter(|element| !fits(clause, &self.checked.type_of(*element))),
        };
        match wrong {
            None => Ok(String::new()),
            Some(id) => Err(Mistake {
                message: clause.error_message(&self.checked.type_of(id).type_name()),
                at: Some(id),
            }),
        }
    }
}

impl Elements<'_> {
    /// Searches `element` and its nested elements, keys and values. Returns the first expression that `%s` cannot
    /// format. `None` if there is none.
    fn first_unformattable(&self, element: ExprId) -> Option<ExprId> {
        let ast: &Ast = self.checked.ast();
        let mut pending = vec![element];
        while let Some(id) = pending.pop() {
            if !fits(Clause::Text, &self.checked.type_of(id)) {
                return Some(id);
            }
            match ast.expr(id) {
                Expr::List { elements, .. } => pending.extend(elements.iter().rev()),
                Expr::Map(entries) => {
                    for entry in entries.iter().rev() {
                        pending.extend([entry.value, entry.key]);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

fn fits(clause: Clause, of: &Type) -> bool {
    use Primitive::{Bool, Bytes, Double, Int, String as Text, Uint};
    let primitive = match of {
        Type::Dyn => return true,
        Type::List(_)
        | Type::Map(_)
        | Type::Timestamp
        | Type::Duration
        | Type::Type(_)
        | Type::Null => return clause == Clause::Text,
        Type::Bool => Bool,
        Type::Int => Int,
        Type::Uint => Uint,
        Type::Double => Double,
        Type::String => Text,
        Type::Bytes => Bytes,
        Type::Wrapper(primitive) => *primitive,
        _ => return false,
    };
    match clause {
        Clause::Text => true,
        Clause::Decimal | Clause::Octal => matches!(primitive, Int | Uint),
        Clause::Fixed(_) | Clause::Scientific(_) => matches!(primitive, Double | Text),
        Clause::Binary => matches!(primitive, Int | Uint | Bool),
        Clause::Hex { .. } => matches!(primitive, Int | Uint | Text | Bytes),
    }
}
