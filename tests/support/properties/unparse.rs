//! Prints an [`Ast`] as an expression that parses to the same tree.
//!
//! The tree may be the result of `parse`, or a subexpression of a result. Macros are printed as macros. Parentheses are
//! printed only if the grammar requires them.
//!
//! The original spelling is lost. This concerns spaces, quotes, redundant parentheses, comments, and alternative
//! spellings of a macro.
//!
//! Source: cel-go `parser/unparser.go` has the same purpose. cel-go stores macro calls in the tree. This module
//! recognizes macros by their expansions.

use std::fmt::Write as _;

use vap_status_controller::cel::ast::{Ast, Comprehension, Expr, ExprId, Literal, is_optional};
use vap_status_controller::cel::stack::{SHALLOW_DEPTH, run_on_deep_stack};

/// The accumulator variable in the expansion of macros.
const ACCUMULATOR: &str = "@result";

/// The iteration variable in the expansion of macros without iteration variables.
const UNUSED_ITER_VAR: &str = "#unused";

/// The variable that the expansion of `sortBy` binds.
const SORT_BY_INPUT: &str = "@__sortBy_input__";

pub(crate) fn unparse(ast: &Ast, id: ExprId) -> String {
    run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        let mut printer = Printer {
            ast,
            text: String::new(),
        };
        printer.expr(id, Level::Conditional);
        printer.text
    })
}

/// The precedence of an expression, in ascending order.
///
/// Source: cel-go `parser/gen/CEL.g4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Conditional,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

impl Level {
    /// Returns the minimum precedence of the right operand of an operator with this precedence.
    fn tighter(self) -> Self {
        match self {
            Self::Conditional => Self::Or,
            Self::Or => Self::And,
            Self::And => Self::Relation,
            Self::Relation => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product => Self::Unary,
            Self::Unary | Self::Member => Self::Member,
        }
    }
}

/// Returns the symbol and the precedence of a binary operator. Returns `None` for other functions.
fn binary_operator(function: &str) -> Option<(&'static str, Level)> {
    Some(match function {
        "_||_" => ("||", Level::Or),
        "_&&_" => ("&&", Level::And),
        "_<_" => ("<", Level::Relation),
        "_<=_" => ("<=", Level::Relation),
        "_>_" => (">", Level::Relation),
        "_>=_" => (">=", Level::Relation),
        "_==_" => ("==", Level::Relation),
        "_!=_" => ("!=", Level::Relation),
        "@in" => ("in", Level::Relation),
        "_+_" => ("+", Level::Sum),
        "_-_" => ("-", Level::Sum),
        "_*_" => ("*", Level::Product),
        "_/_" => ("/", Level::Product),
        "_%_" => ("%", Level::Product),
        _ => return None,
    })
}

/// A macro call. `range` is the receiver.
struct MacroCall<'a> {
    range: ExprId,
    name: &'static str,
    variables: Vec<&'a str>,
    args: Vec<ExprId>,
}

struct Printer<'a> {
    ast: &'a Ast,
    text: String,
}

impl<'a> Printer<'a> {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Prints `id`, in parentheses if its precedence is lower than `at_least`.
    fn expr(&mut self, id: ExprId, at_least: Level) {
        if self.level(id) < at_least {
            self.push("(");
            self.bare(id);
            self.push(")");
        } else {
            self.bare(id);
        }
    }

    fn level(&self, id: ExprId) -> Level {
        match self.ast.expr(id) {
            // As the operand of a selection or negation, a negative literal needs parentheses: `-1.a` and `--1` parse
            // differently.
            Expr::Literal(Literal::Int(_) | Literal::Uint(_) | Literal::Double(_)) => Level::Unary,
            Expr::Call { function, args, .. } => match (&**function, args.len()) {
                ("_?_:_", 3) if self.macro_call(id).is_none() => Level::Conditional,
                ("!_" | "-_", 1) => Level::Unary,
                (_, 2) => binary_operator(function).map_or(Level::Member, |(_, level)| level),
                _ => Level::Member,
            },
            _ => Level::Member,
        }
    }

    fn bare(&mut self, id: ExprId) {
        if let Some(call) = self.macro_call(id) {
            return self.write_macro(&call);
        }
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Unspecified => {}
            Expr::Literal(of) => self.literal(of),
            Expr::Ident(name) => self.push(name),
            Expr::Select {
                operand,
                field,
                test_only,
            } => {
                self.push(if *test_only { "has(" } else { "" });
                self.expr(*operand, Level::Member);
                self.push(".");
                self.push(field);
                self.push(if *test_only { ")" } else { "" });
            }
            Expr::Call {
                function,
                target: Some(target),
                args,
            } => {
                self.expr(*target, Level::Member);
                self.push(".");
                self.push(function);
                self.arguments(args);
            }
            Expr::Call { function, args, .. } => self.call(id, function, args),
            Expr::List {
                elements,
                optional_indices,
            } => {
                self.push("[");
                for (n, element) in elements.iter().enumerate() {
                    self.separator(n);
                    self.push(optional_mark(is_optional(optional_indices, n)));
                    self.expr(*element, Level::Conditional);
                }
                self.push("]");
            }
            Expr::Map(entries) => {
                self.push("{");
                for (n, entry) in entries.iter().enumerate() {
                    self.separator(n);
                    self.push(optional_mark(entry.optional));
                    self.expr(entry.key, Level::Or);
                    self.push(": ");
                    self.expr(entry.value, Level::Conditional);
                }
                self.push("}");
            }
            Expr::Struct { type_name, fields } => {
                self.push(type_name);
                self.push("{");
                for (n, field) in fields.iter().enumerate() {
                    self.separator(n);
                    self.push(optional_mark(field.optional));
                    self.push(&field.field);
                    self.push(": ");
                    self.expr(field.value, Level::Conditional);
                }
                self.push("}");
            }
            // Only macros create comprehensions, and macro calls were printed above. Any other comprehension is printed
            // as its range.
            Expr::Comprehension(fold) => self.expr(fold.iter_range, Level::Member),
        }
    }

    fn separator(&mut self, n: usize) {
        self.push(if n > 0 { ", " } else { "" });
    }

    fn arguments(&mut self, args: &[ExprId]) {
        self.push("(");
        for (n, arg) in args.iter().enumerate() {
            self.separator(n);
            self.expr(*arg, Level::Conditional);
        }
        self.push(")");
    }

    /// Prints an operator or a function call without a receiver.
    fn call(&mut self, id: ExprId, function: &str, args: &[ExprId]) {
        match (function, args) {
            ("_?_:_", [condition, yes, no]) => {
                self.expr(*condition, Level::Or);
                self.push(" ? ");
                self.expr(*yes, Level::Or);
                self.push(" : ");
                self.expr(*no, Level::Conditional);
            }
            ("!_" | "-_", [operand]) => {
                self.push(if function == "!_" { "!" } else { "-" });
                self.expr(*operand, Level::Member);
            }
            ("_[_]" | "_[?_]", [operand, index]) => {
                self.expr(*operand, Level::Member);
                self.push(if function == "_[_]" { "[" } else { "[?" });
                self.expr(*index, Level::Conditional);
                self.push("]");
            }
            ("_?._", [operand, field]) => {
                self.expr(*operand, Level::Member);
                self.push(".?");
                if let Expr::Literal(Literal::String(field)) = self.ast.expr(*field) {
                    self.push(field);
                }
            }
            (_, [left, right]) if binary_operator(function).is_some() => {
                self.binary(id, function, *left, *right);
            }
            _ => {
                self.push(function);
                self.arguments(args);
            }
        }
    }

    fn binary(&mut self, id: ExprId, function: &str, left: ExprId, right: ExprId) {
        let Some((operator, level)) = binary_operator(function) else {
            return;
        };
        if !matches!(level, Level::Or | Level::And) {
            self.expr(left, level);
            let _ = write!(self.text, " {operator} ");
            return self.expr(right, level.tighter());
        }
        // The parser builds a balanced tree from a chain of `&&` or `||`.
        let mut terms = Vec::new();
        self.terms(id, function, &mut terms);
        if !self.is_balanced(id, function, &terms) {
            terms = vec![left, right];
        }
        for (n, term) in terms.into_iter().enumerate() {
            if n > 0 {
                let _ = write!(self.text, " {operator} ");
            }
            self.expr(term, level.tighter());
        }
    }

    /// Returns the operands of a chain in order: those of `id`, and those of nested calls of the same function.
    fn terms(&self, id: ExprId, function: &str, terms: &mut Vec<ExprId>) {
        match self.operands(id, function) {
            Some((left, right)) => {
                self.terms(left, function, terms);
                self.terms(right, function, terms);
            }
            None => terms.push(id),
        }
    }

    fn operands(&self, id: ExprId, function: &str) -> Option<(ExprId, ExprId)> {
        match self.ast.expr(id) {
            Expr::Call {
                function: of,
                target: None,
                args,
            } if **of == *function => match **args {
                [left, right] => Some((left, right)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns true if `id` is the balanced tree that the parser builds from `terms`.
    ///
    /// Source: cel-go `parser/helper.go`, `logicManager.balancedTree`.
    fn is_balanced(&self, id: ExprId, function: &str, terms: &[ExprId]) -> bool {
        if let [term] = terms {
            return *term == id;
        }
        let Some((left, right)) = self.operands(id, function) else {
            return false;
        };
        // The root is the operator in the middle of the chain.
        let n_left = terms.len().div_ceil(2);
        let Some((before, behind)) = terms.split_at_checked(n_left) else {
            return false;
        };
        self.is_balanced(left, function, before) && self.is_balanced(right, function, behind)
    }

    fn write_macro(&mut self, call: &MacroCall<'_>) {
        self.expr(call.range, Level::Member);
        self.push(".");
        self.push(call.name);
        self.push("(");
        self.push(&call.variables.join(", "));
        for arg in &call.args {
            self.push(", ");
            self.expr(*arg, Level::Conditional);
        }
        self.push(")");
    }

    /// Returns the macro call with the expansion `id`. Returns `None` if `id` is not an expansion.
    fn macro_call(&self, id: ExprId) -> Option<MacroCall<'a>> {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Comprehension(fold) if *fold.accu_var == *SORT_BY_INPUT => self.sort_by(fold),
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::Call { function, args, .. } if **function == *"_?_:_" => {
                let [condition, some, _] = **args else {
                    return None;
                };
                let Expr::Call {
                    target: Some(range),
                    ..
                } = ast.expr(condition)
                else {
                    return None;
                };
                let (name, bound) = match ast.expr(some) {
                    Expr::Call {
                        function,
                        target: None,
                        args,
                    } if **function == *"optional.of" => ("optMap", *args.first()?),
                    _ => ("optFlatMap", some),
                };
                match ast.expr(bound) {
                    Expr::Comprehension(fold)
                        if *fold.iter_var == *UNUSED_ITER_VAR
                            && *fold.accu_var != *SORT_BY_INPUT =>
                    {
                        Some(MacroCall {
                            range: *range,
                            name,
                            variables: vec![&fold.accu_var],
                            args: vec![fold.result],
                        })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn sort_by(&self, fold: &'a Comprehension) -> Option<MacroCall<'a>> {
        let Expr::Call { args, .. } = self.ast.expr(fold.result) else {
            return None;
        };
        let Expr::Comprehension(keys) = self.ast.expr(*args.first()?) else {
            return None;
        };
        let keys = self.fold(keys)?;
        Some(MacroCall {
            range: fold.accu_init,
            name: "sortBy",
            ..keys
        })
    }

    fn fold(&self, fold: &'a Comprehension) -> Option<MacroCall<'a>> {
        let (name, args) = self.fold_body(fold)?;
        let variables = [Some(&fold.iter_var), fold.iter_var2.as_ref()];
        Some(MacroCall {
            range: fold.iter_range,
            name,
            variables: variables
                .into_iter()
                .flatten()
                .map(|name| &**name)
                .collect(),
            args,
        })
    }

    fn fold_body(&self, fold: &'a Comprehension) -> Option<(&'static str, Vec<ExprId>)> {
        let Expr::Call { function, args, .. } = self.ast.expr(fold.loop_step) else {
            return None;
        };
        match (&**function, &**args, self.ast.expr(fold.accu_init)) {
            ("_&&_", [_, test], Expr::Literal(Literal::Bool(_))) => Some(("all", vec![*test])),
            ("_||_", [_, test], Expr::Literal(Literal::Bool(_))) => Some(("exists", vec![*test])),
            ("_?_:_", [test, _, _], Expr::Literal(Literal::Int(_))) => {
                Some(("exists_one", vec![*test]))
            }
            ("_?_:_", [filter, appended, last], _) if self.is_accumulator(*last) => {
                let (name, transform) = self.appended(fold, *appended)?;
                let is_variable = matches!(
                    self.ast.expr(transform), Expr::Ident(name) if *name == fold.iter_var
                );
                if name == "map" && is_variable {
                    return Some(("filter", vec![*filter]));
                }
                Some((name, vec![*filter, transform]))
            }
            _ => {
                let (name, transform) = self.appended(fold, fold.loop_step)?;
                Some((name, vec![transform]))
            }
        }
    }

    fn is_accumulator(&self, id: ExprId) -> bool {
        matches!(self.ast.expr(id), Expr::Ident(name) if **name == *ACCUMULATOR)
    }

    /// Returns the expression that a loop step appends to a list or inserts into a map, and the name of the macro.
    fn appended(&self, fold: &Comprehension, step: ExprId) -> Option<(&'static str, ExprId)> {
        let Expr::Call { function, args, .. } = self.ast.expr(step) else {
            return None;
        };
        match (&**function, &**args) {
            ("_+_", [_, list]) => {
                let Expr::List { elements, .. } = self.ast.expr(*list) else {
                    return None;
                };
                let name = match fold.iter_var2 {
                    Some(_) => "transformList",
                    None => "map",
                };
                Some((name, *elements.first()?))
            }
            ("cel.@mapInsert", [_, _, value]) => Some(("transformMap", *value)),
            ("cel.@mapInsert", [_, entries]) => Some(("transformMapEntry", *entries)),
            _ => None,
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let _ = match literal {
            Literal::Null => write!(self.text, "null"),
            Literal::Bool(value) => write!(self.text, "{value}"),
            Literal::Int(value) => write!(self.text, "{value}"),
            Literal::Uint(value) => write!(self.text, "{value}u"),
            Literal::Double(value) => write!(self.text, "{value:?}"),
            Literal::String(value) => {
                self.quoted(value);
                Ok(())
            }
            Literal::Bytes(bytes) => {
                self.quoted_bytes(bytes);
                Ok(())
            }
        };
    }

    fn quoted(&mut self, value: &str) {
        self.push("\"");
        for c in value.chars() {
            match c {
                '"' | '\\' => {
                    self.text.push('\\');
                    self.text.push(c);
                }
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                c if c.is_control() => {
                    let _ = write!(self.text, "\\u{:04x}", u32::from(c));
                }
                c => self.text.push(c),
            }
        }
        self.push("\"");
    }

    fn quoted_bytes(&mut self, bytes: &[u8]) {
        self.push("b\"");
        for byte in bytes {
            match byte {
                b'"' | b'\\' => {
                    self.text.push('\\');
                    self.text.push(char::from(*byte));
                }
                b' '..=b'~' => self.text.push(char::from(*byte)),
                _ => {
                    let _ = write!(self.text, "\\x{byte:02x}");
                }
            }
        }
        self.push("\"");
    }
}

fn optional_mark(is_optional: bool) -> &'static str {
    if is_optional { "?" } else { "" }
}
