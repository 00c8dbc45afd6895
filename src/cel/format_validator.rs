//! Whether the clauses of a literal format fit the literal list of its arguments.
//!
//! Takes a checked call of `format`; gives what is wrong with it, as evaluating it would tell, by the types of
//! the arguments alone.
//!
//! Source: cel-go `ext/formatting.go`, `stringFormatValidator`, `stringFormatChecker`.

use super::ast::{Expr, ExprId, Literal};
use super::checker::{CheckedAst, Reference};
use super::ext::strings::format::{Arguments, Clause, FormatError, interpolate};
use super::types::{Primitive, Type};

/// The overload that formats a text.
const OVERLOAD: &str = "string_format";

/// What is wrong with `call`, and with which expression, if it is a call of `format` that literals decide.
pub(super) fn fault(checked: &CheckedAst, call: ExprId) -> Option<(ExprId, String)> {
    let ast = checked.ast();
    let Expr::Call {
        target: Some(target),
        args,
        ..
    } = ast.expr(call)
    else {
        return None;
    };
    let Some(Reference::Function { overloads, .. }) = checked.reference(call) else {
        return None;
    };
    let [list] = args.as_ref() else { return None };
    let (Expr::Literal(Literal::String(format)), Expr::List { elements, .. }) =
        (ast.expr(*target), ast.expr(*list))
    else {
        return None;
    };
    if !overloads.contains(&OVERLOAD) {
        return None;
    }
    let mut arguments = Types {
        checked,
        elements,
        n_requested: 0,
    };
    if let Err(fault) = interpolate(format, &mut arguments) {
        return Some((fault.at.unwrap_or(call), fault.message));
    }
    let (expected, given) = (arguments.n_requested, elements.len());
    (given > expected).then(|| {
        let message = format!(
            "too many arguments supplied to string.format (expected {expected}, got {given})"
        );
        (call, message)
    })
}

/// What is wrong, and with which of the arguments, if with one.
#[derive(Debug)]
struct Fault {
    at: Option<ExprId>,
    message: String,
}

impl FormatError for Fault {
    fn of_format(message: String) -> Self {
        Self { at: None, message }
    }

    fn behind(self, words: &str) -> Self {
        Self {
            message: format!("{words}: {}", self.message),
            ..self
        }
    }
}

/// The types of the elements of a literal list, as arguments.
struct Types<'a> {
    checked: &'a CheckedAst,
    elements: &'a [ExprId],
    n_requested: usize,
}

impl Arguments for Types<'_> {
    type Error = Fault;

    fn len(&self) -> usize {
        self.elements.len()
    }

    fn request(&mut self, _index: usize) -> Result<(), Fault> {
        self.n_requested += 1;
        Ok(())
    }

    fn write(&mut self, index: usize, clause: Clause) -> Result<String, Fault> {
        let Some(&element) = self.elements.get(index) else {
            return Ok(String::new());
        };
        let refused = match clause {
            Clause::Text => self.without_text(element),
            _ => (!is_written(&self.checked.type_of(element), clause)).then_some(element),
        };
        match refused {
            None => Ok(String::new()),
            Some(at) => Err(Fault {
                at: Some(at),
                message: clause.refusal(&self.checked.type_of(at).type_name()),
            }),
        }
    }
}

impl Types<'_> {
    /// The first expression in `id`, literals taken apart, that has no text.
    fn without_text(&self, id: ExprId) -> Option<ExprId> {
        if !is_written(&self.checked.type_of(id), Clause::Text) {
            return Some(id);
        }
        match self.checked.ast().expr(id) {
            Expr::List { elements, .. } => elements.iter().find_map(|id| self.without_text(*id)),
            Expr::Map(entries) => entries.iter().find_map(|entry| {
                self.without_text(entry.key)
                    .or_else(|| self.without_text(entry.value))
            }),
            _ => None,
        }
    }
}

/// Whether values of the type may be written by the clause. A text may be one of `NaN` and the infinities,
/// which the clauses of doubles write.
fn is_written(type_: &Type, clause: Clause) -> bool {
    let unwrapped = match type_ {
        Type::Wrapper(primitive) => Primitive::unwrapped(*primitive),
        other => other.clone(),
    };
    match unwrapped {
        Type::Dyn => true,
        Type::Int | Type::Uint => !matches!(clause, Clause::Fixed(_) | Clause::Scientific(_)),
        Type::Double => matches!(
            clause,
            Clause::Text | Clause::Fixed(_) | Clause::Scientific(_)
        ),
        Type::Bool => matches!(clause, Clause::Text | Clause::Binary),
        Type::String => matches!(
            clause,
            Clause::Text | Clause::Fixed(_) | Clause::Scientific(_) | Clause::Hex { .. }
        ),
        Type::Bytes => matches!(clause, Clause::Text | Clause::Hex { .. }),
        Type::List(_)
        | Type::Map(_)
        | Type::Duration
        | Type::Timestamp
        | Type::Type(_)
        | Type::Null => clause == Clause::Text,
        Type::Error
        | Type::Any
        | Type::Wrapper(_)
        | Type::Struct(_)
        | Type::Opaque(_)
        | Type::Param(_) => false,
    }
}
