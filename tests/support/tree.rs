//! Prints a syntax tree in the format of cel-go's tests without white space. The results of a pass can be printed with
//! each node.
//!
//! Source: cel-go `common/debug/debug.go`, `checker/printer.go`.

use std::fmt::Write as _;

use vap_status_controller::cel::ast::{Ast, Expr, ExprId, Literal};
use vap_status_controller::cel::checker::{CheckedAst, Reference};
use vap_status_controller::cel::source::SourceMap;

/// Prints the tree only.
pub(crate) fn plain(ast: &Ast) -> String {
    print(ast, &|_| String::new(), &|_| None)
}

/// Prints each node with its type and resolved reference.
pub(crate) fn checked(checked: &CheckedAst) -> String {
    let adorn = |id: ExprId| {
        let mut text = String::new();
        if let Some(type_) = checked.known_type(id) {
            let _ = write!(text, "~{type_}");
        }
        match checked.reference(id) {
            None => {}
            Some(Reference::Ident(name)) => {
                let _ = write!(text, "^{name}");
            }
            Some(Reference::Function { overloads, .. }) => {
                let mut ids: Vec<_> = overloads.iter().map(|row| row.id).collect();
                ids.sort_unstable();
                let _ = write!(text, "^{}", ids.join("|"));
            }
        }
        text
    };
    // A resolved name is printed as its full name.
    let resolved = |id: ExprId| match (checked.ast().expr(id), checked.reference(id)) {
        (Expr::Ident(_) | Expr::Select { .. }, Some(Reference::Ident(name))) => {
            Some(name.to_string())
        }
        _ => None,
    };
    print(checked.ast(), &adorn, &resolved)
}

/// Prints each node with its location. Lines start at 1, columns at 0.
pub(crate) fn places(ast: &Ast, text: &str) -> String {
    let source = SourceMap::new(text);
    let adorn = |id: ExprId| {
        let location = source.location(ast.offset(id));
        format!("^[{},{}]", location.line, location.column)
    };
    print(ast, &adorn, &|_| None)
}

fn print(
    ast: &Ast,
    adorn: &dyn Fn(ExprId) -> String,
    resolved: &dyn Fn(ExprId) -> Option<String>,
) -> String {
    let mut printer = Printer {
        ast,
        adorn,
        resolved,
        text: String::new(),
    };
    printer.expr(ast.root());
    printer
        .text
        .retain(|c| !matches!(c, ' ' | '\t' | '\r' | '\n'));
    printer.text
}

struct Printer<'a> {
    ast: &'a Ast,
    adorn: &'a dyn Fn(ExprId) -> String,
    resolved: &'a dyn Fn(ExprId) -> Option<String>,
    text: String,
}

impl Printer<'_> {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn adorn(&mut self, id: ExprId) {
        let adornment = (self.adorn)(id);
        self.push(&adornment);
    }

    fn expr(&mut self, id: ExprId) {
        let ast = self.ast;
        if let Some(name) = (self.resolved)(id) {
            self.push(&name);
            return self.adorn(id);
        }
        match ast.expr(id) {
            Expr::Unspecified => {}
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.push(name),
            Expr::Select {
                operand,
                field,
                test_only,
            } => {
                self.expr(*operand);
                self.push(".");
                self.push(field);
                if *test_only {
                    self.push("~test-only~");
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => {
                if let Some(target) = target {
                    self.expr(*target);
                    self.push(".");
                }
                self.push(function);
                self.push("(");
                self.list(args);
                self.push(")");
            }
            Expr::List { elements, .. } => {
                self.push("[");
                self.list(elements);
                self.push("]");
            }
            Expr::Map(entries) => {
                self.push("{");
                for (n, entry) in entries.iter().enumerate() {
                    self.push(if n > 0 { "," } else { "" });
                    self.push(if entry.optional { "?" } else { "" });
                    self.expr(entry.key);
                    self.push(":");
                    self.expr(entry.value);
                    self.adorn(entry.id);
                }
                self.push("}");
            }
            Expr::Struct { type_name, fields } => {
                self.push(type_name);
                self.push("{");
                for (n, field) in fields.iter().enumerate() {
                    self.push(if n > 0 { "," } else { "" });
                    self.push(if field.optional { "?" } else { "" });
                    self.push(&field.field);
                    self.push(":");
                    self.expr(field.value);
                    self.adorn(field.id);
                }
                self.push("}");
            }
            Expr::Comprehension(fold) => {
                self.push("__comprehension__(//Variable");
                self.push(&fold.iter_var);
                self.push(",");
                if let Some(second) = &fold.iter_var2 {
                    self.push(second);
                    self.push(",");
                }
                self.push("//Target");
                self.expr(fold.iter_range);
                self.push(",//Accumulator");
                self.push(&fold.accu_var);
                for (name, part) in [
                    ("Init", fold.accu_init),
                    ("LoopCondition", fold.loop_condition),
                    ("LoopStep", fold.loop_step),
                    ("Result", fold.result),
                ] {
                    self.push(",//");
                    self.push(name);
                    self.expr(part);
                }
                self.push(")");
            }
        }
        self.adorn(id);
    }

    fn list(&mut self, ids: &[ExprId]) {
        for (n, id) in ids.iter().enumerate() {
            self.push(if n > 0 { "," } else { "" });
            self.expr(*id);
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let text = match literal {
            Literal::Null => "null".to_owned(),
            Literal::Bool(value) => value.to_string(),
            Literal::Int(value) => value.to_string(),
            Literal::Uint(value) => format!("{value}u"),
            Literal::Double(value) => double(*value),
            Literal::String(value) => quote(value.as_bytes()),
            Literal::Bytes(value) => format!("b{}", quote(value)),
        };
        self.push(&text);
    }
}

fn double(value: f64) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if (-4..21).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => {
                    text.push('\\');
                    text.push(c);
                }
                '\x07' => text.push_str("\\a"),
                '\x08' => text.push_str("\\b"),
                '\x0c' => text.push_str("\\f"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\x0b' => text.push_str("\\v"),
                '\0'..=' ' | '\x7f' if c != ' ' => {
                    let _ = write!(text, "\\x{:02x}", u32::from(c));
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.push('"');
    text
}
