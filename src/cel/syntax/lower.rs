//! The parser's tree, lowered to ours.
//!
//! Source: cel-go `parser/parser.go` (`Visit`, `checkAndIncrementRecursionDepth`, `expandMacro`).

use std::sync::Arc;

use cel::Env;
use cel::common::ast::{
    EntryExpr, Expr as ParsedExpr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo,
};
use cel::parser::ParseErrors;

use super::guard::MAX_RECURSION_DEPTH;
use super::macros::{self, MacroError};
use crate::cel::ast::{Ast, AstBuilder, Expr, ExprId, Literal, MapEntry, StructField};
use crate::cel::diagnostic::{Code, Diagnostics};
use crate::cel::source::{Location, SourceMap};

/// The most nodes a tree may have. `optMap` copies what it is called on, so that a chain of them doubles
/// with each link; cel-go has no bound here.
const MAX_NODES: usize = 250_000;

/// How many recovery attempts the parser makes before it gives up.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorRecoveryLimit`.
const ERROR_RECOVERY_LIMIT: u32 = 30;

/// The finding where operators and selections nest deeper than [`MAX_RECURSION_DEPTH`].
///
/// Source: cel-go `parser/parser.go`, `checkAndIncrementRecursionDepth`.
pub(super) const TOO_DEEP: &str = "max recursion depth exceeded";

/// Parses `text`, whose nesting has been found bounded.
pub(super) fn parse(text: &str, source: &SourceMap) -> (Option<Ast>, Diagnostics) {
    let parser = Env::default()
        .with_optional_support(true)
        .parser()
        .max_recursion_depth(u16::try_from(MAX_RECURSION_DEPTH).unwrap_or(u16::MAX))
        .error_recovery_limit(ERROR_RECOVERY_LIMIT);
    let (root, info) = match parser.parse_with_source_info(text) {
        Ok(parsed) => parsed,
        Err(errors) => return (None, syntax_errors(&errors, text)),
    };
    let mut lowering = Lowering {
        builder: AstBuilder::default(),
        found: Diagnostics::default(),
        info: &info,
        source,
        text,
        depth: 0,
    };
    let root = lowering.expr(root);
    if let Err(Abort { code, message }) = &root {
        lowering
            .found
            .report(*code, Location::NONE, message.clone());
    }
    match root {
        Ok(root) if lowering.found.is_empty() => {
            (Some(lowering.builder.build(root)), lowering.found)
        }
        _ => (None, lowering.found),
    }
}

fn syntax_errors(errors: &ParseErrors, text: &str) -> Diagnostics {
    let mut found = Diagnostics::default();
    for error in &errors.errors {
        if is_internal(&error.msg) {
            continue;
        }
        let (line, column) = error.pos;
        let mut location = if line < 1 {
            Location::NONE
        } else {
            Location {
                line: i32::try_from(line).unwrap_or(i32::MAX),
                column: i32::try_from(column - 1).unwrap_or(i32::MAX),
            }
        };
        if text.is_empty() {
            location.column = -1;
        }
        if error.msg == ESCAPED_IDENT {
            location.column += columns_to_backtick(text, location);
        }
        found.report(Code::Syntax, location, error.msg.clone());
    }
    if found.is_empty() {
        found.report(
            Code::Syntax,
            Location::NONE,
            "Syntax error: the expression is not complete",
        );
    }
    found
}

/// Whether a message of the parser is about its own tree, which tells a person nothing.
fn is_internal(message: &str) -> bool {
    message.contains("Context`") || message.contains("ContextAll`") || message == "UNKNOWN"
}

/// The parser's finding about a field name in backticks, which the API server's environment does not
/// accept. The parser places it at the dot before the name, cel-go at the name.
const ESCAPED_IDENT: &str = "unsupported syntax: '`'";

/// How many columns the next backtick is behind `from`, on its line.
fn columns_to_backtick(text: &str, from: Location) -> i32 {
    let (Ok(line), Ok(column)) = (usize::try_from(from.line - 1), usize::try_from(from.column))
    else {
        return 0;
    };
    text.split('\n')
        .nth(line)
        .and_then(|line| line.chars().skip(column).position(|c| c == '`'))
        .map_or(0, |n| i32::try_from(n).unwrap_or(0))
}

/// Lowering gave up.
pub(super) struct Abort {
    code: Code,
    message: String,
}

impl Abort {
    fn too_large() -> Self {
        Self {
            code: Code::TooComplex,
            message: format!("the expression expands to more than {MAX_NODES} nodes; simplify it"),
        }
    }
}

/// A copy would exceed the bound on nodes.
#[derive(Debug)]
pub(super) struct CopyError;

/// The state of one lowering.
pub(super) struct Lowering<'a> {
    pub(super) builder: AstBuilder,
    found: Diagnostics,
    info: &'a SourceInfo,
    source: &'a SourceMap,
    text: &'a str,
    depth: u32,
}

type Lowered = Result<ExprId, Abort>;

impl Lowering<'_> {
    fn offset(&self, id: u64) -> u32 {
        self.info
            .offset_for(id)
            .map_or(0, |(start, _)| self.source.offset_of_byte(start))
    }

    fn add(&mut self, id: u64, expr: Expr) -> Lowered {
        if self.builder.len() >= MAX_NODES {
            return Err(Abort::too_large());
        }
        let offset = self.offset(id);
        Ok(self.builder.add(offset, expr))
    }

    fn expr(&mut self, parsed: IdedExpr) -> Lowered {
        let counts = counts_as_depth(&parsed.expr);
        if counts {
            self.depth += 1;
            if self.depth > MAX_RECURSION_DEPTH {
                return Err(Abort {
                    code: Code::LimitExceeded,
                    message: TOO_DEEP.into(),
                });
            }
        }
        let lowered = self.expr_at_depth(parsed);
        if counts {
            self.depth -= 1;
        }
        lowered
    }

    fn expr_at_depth(&mut self, parsed: IdedExpr) -> Lowered {
        let id = parsed.id;
        match parsed.expr {
            ParsedExpr::Unspecified => self.add(id, Expr::Unspecified),
            ParsedExpr::Ident(name) => self.add(id, Expr::Ident(name.into())),
            ParsedExpr::Literal(value) => {
                let literal = literal(value);
                let expr = self.add(id, Expr::Literal(literal.clone()))?;
                if is_negative(&literal) {
                    self.place_at_sign(expr);
                }
                Ok(expr)
            }
            ParsedExpr::Select(select) => {
                let operand = self.expr(*select.operand)?;
                let field = select.field.into();
                self.add(
                    id,
                    Expr::Select {
                        operand,
                        field,
                        test_only: select.test,
                    },
                )
            }
            ParsedExpr::Call(call) => {
                let target = call.target.map(|target| self.expr(*target)).transpose()?;
                let args = self.exprs(call.args)?;
                let offset = self.offset(id);
                match macros::expand(self, offset, &call.func_name, target, &args) {
                    Some(Ok(expanded)) => Ok(expanded),
                    Some(Err(MacroError::TooLarge)) => Err(Abort::too_large()),
                    Some(Err(MacroError::Invalid(at, message))) => {
                        let location = self.source.location(self.builder.offset(at));
                        self.found.report(Code::InvalidMacroCall, location, message);
                        self.add(id, Expr::Unspecified)
                    }
                    None => {
                        let function = call.func_name.into();
                        self.add(
                            id,
                            Expr::Call {
                                function,
                                target,
                                args: args.into(),
                            },
                        )
                    }
                }
            }
            ParsedExpr::List(list) => {
                let elements = self.exprs(list.elements)?.into();
                let optional_indices = list
                    .optional_indices
                    .iter()
                    .map(|&index| u32::try_from(index).unwrap_or(u32::MAX))
                    .collect();
                self.add(
                    id,
                    Expr::List {
                        elements,
                        optional_indices,
                    },
                )
            }
            ParsedExpr::Map(map) => {
                let entries = self.map_entries(map.entries)?;
                self.add(id, Expr::Map(entries))
            }
            ParsedExpr::Struct(object) => {
                let fields = self.struct_fields(object.entries)?;
                self.add(
                    id,
                    Expr::Struct {
                        type_name: object.type_name.into(),
                        fields,
                    },
                )
            }
            // The parser knows no macros, so that it makes no folds.
            ParsedExpr::Comprehension(_) => Err(Abort {
                code: Code::Syntax,
                message: "unexpected comprehension in the parsed expression".into(),
            }),
        }
    }

    /// Moves a negative literal to its sign, where cel-go places it; the parser places it at its digits.
    fn place_at_sign(&mut self, id: ExprId) {
        let offset = self.builder.offset(id) as usize;
        let before = self.text.chars().take(offset).collect::<Vec<_>>();
        if let Some(sign) = before.iter().rposition(|&c| c == '-') {
            self.builder
                .set_offset(id, u32::try_from(sign).unwrap_or(u32::MAX));
        }
    }

    fn exprs(&mut self, parsed: Vec<IdedExpr>) -> Result<Vec<ExprId>, Abort> {
        parsed.into_iter().map(|expr| self.expr(expr)).collect()
    }

    fn map_entries(&mut self, parsed: Vec<IdedEntryExpr>) -> Result<Box<[MapEntry]>, Abort> {
        let mut entries = Vec::with_capacity(parsed.len());
        for entry in parsed {
            if let EntryExpr::MapEntry(pair) = entry.expr {
                let id = self.add(entry.id, Expr::Unspecified)?;
                let key = self.expr(pair.key)?;
                let value = self.expr(pair.value)?;
                entries.push(MapEntry {
                    id,
                    key,
                    value,
                    optional: pair.optional,
                });
            }
        }
        Ok(entries.into())
    }

    fn struct_fields(&mut self, parsed: Vec<IdedEntryExpr>) -> Result<Box<[StructField]>, Abort> {
        let mut fields = Vec::with_capacity(parsed.len());
        for entry in parsed {
            if let EntryExpr::StructField(init) = entry.expr {
                let id = self.add(entry.id, Expr::Unspecified)?;
                let value = self.expr(init.value)?;
                let field = init.field.into();
                fields.push(StructField {
                    id,
                    field,
                    value,
                    optional: init.optional,
                });
            }
        }
        Ok(fields.into())
    }

    /// Copies the tree below `id`, each node at its place.
    pub(super) fn copy(&mut self, id: ExprId) -> Result<ExprId, CopyError> {
        if self.builder.len() >= MAX_NODES {
            return Err(CopyError);
        }
        let offset = self.builder.offset(id);
        let mut expr = self.builder.expr(id).clone();
        match &mut expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => *operand = self.copy(*operand)?,
            Expr::Call { target, args, .. } => {
                for part in target.iter_mut().chain(args.iter_mut()) {
                    *part = self.copy(*part)?;
                }
            }
            Expr::List { elements, .. } => {
                for element in elements.iter_mut() {
                    *element = self.copy(*element)?;
                }
            }
            Expr::Map(entries) => {
                for entry in entries.iter_mut() {
                    entry.id = self.copy(entry.id)?;
                    entry.key = self.copy(entry.key)?;
                    entry.value = self.copy(entry.value)?;
                }
            }
            Expr::Struct { fields, .. } => {
                for field in fields.iter_mut() {
                    field.id = self.copy(field.id)?;
                    field.value = self.copy(field.value)?;
                }
            }
            Expr::Comprehension(fold) => {
                for part in [
                    &mut fold.iter_range,
                    &mut fold.accu_init,
                    &mut fold.loop_condition,
                    &mut fold.loop_step,
                    &mut fold.result,
                ] {
                    *part = self.copy(*part)?;
                }
            }
        }
        Ok(self.builder.add(offset, expr))
    }
}

/// Whether cel-go counts the node when it bounds the depth of its visit.
fn counts_as_depth(expr: &ParsedExpr) -> bool {
    match expr {
        ParsedExpr::Select(_) => true,
        ParsedExpr::Call(call) => {
            call.target.is_some()
                || matches!(
                    call.func_name.as_str(),
                    "_?_:_"
                        | "_+_"
                        | "_-_"
                        | "_*_"
                        | "_/_"
                        | "_%_"
                        | "_==_"
                        | "_!=_"
                        | "_<_"
                        | "_<=_"
                        | "_>_"
                        | "_>=_"
                        | "@in"
                        | "_[_]"
                        | "_[?_]"
                        | "_?._"
                )
        }
        _ => false,
    }
}

fn literal(value: LiteralValue) -> Literal {
    match value {
        LiteralValue::Null => Literal::Null,
        LiteralValue::Boolean(value) => Literal::Bool(*value.inner()),
        LiteralValue::Int(value) => Literal::Int(*value.inner()),
        LiteralValue::UInt(value) => Literal::Uint(*value.inner()),
        LiteralValue::Double(value) => Literal::Double(*value.inner()),
        LiteralValue::String(value) => Literal::String(Arc::from(value.inner())),
        LiteralValue::Bytes(value) => Literal::Bytes(Arc::from(value.inner())),
    }
}

fn is_negative(literal: &Literal) -> bool {
    match literal {
        Literal::Int(value) => *value < 0,
        Literal::Double(value) => value.is_sign_negative(),
        Literal::Null
        | Literal::Bool(_)
        | Literal::Uint(_)
        | Literal::String(_)
        | Literal::Bytes(_) => false,
    }
}
