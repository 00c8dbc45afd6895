//! Semantic tokens of the expressions in YAML scalars of each style.

use gen_lsp_types::{SemanticToken, SemanticTokens, SemanticTokensParams};

use super::context::Context;
use super::cursor::{self, Expression};
use super::functions::MACROS;
use super::positions::{self, Encoding};
use crate::cel::syntax::lexer;
use crate::cel::syntax::token::{Kind, Token};
use crate::cli::input::SourceText;

/// The token types. The protocol refers to a type by its index in this list.
pub(super) const TYPES: [&str; 9] = [
    "variable", "property", "function", "method", "macro", "string", "number", "keyword",
    "operator",
];

pub(super) fn tokens(
    context: &Context<'_>,
    params: &SemanticTokensParams,
) -> Option<SemanticTokens> {
    let file = context.file(&params.text_document.uri)?;
    let mut placed = Vec::new();
    for item in cursor::items(file.objects()) {
        for expression in cursor::expressions(&file.source, &item) {
            expression_tokens(&file.source, &expression, context.encoding, &mut placed);
        }
    }
    placed.sort_unstable();
    placed.dedup_by_key(|(line, start, ..)| (*line, *start));
    let mut data = Vec::with_capacity(placed.len());
    let (mut last_line, mut last_start) = (0, 0);
    for (line, start, length, type_) in placed {
        data.push(SemanticToken {
            delta_line: line - last_line,
            delta_start: if line == last_line {
                start - last_start
            } else {
                start
            },
            length,
            token_type: type_,
            token_modifiers_bitset: 0,
        });
        (last_line, last_start) = (line, start);
    }
    Some(SemanticTokens {
        result_id: None,
        data,
    })
}

/// A token: line, start, length, and the number of its type.
type Placed = (u32, u32, u32, u32);

fn expression_tokens(
    source: &SourceText,
    expression: &Expression<'_>,
    encoding: Encoding,
    placed: &mut Vec<Placed>,
) {
    let all = lexer::tokens(expression.text).all;
    let kinds = |n: Option<usize>| n.and_then(|n| all.get(n)).map(|token| token.kind);
    for (n, token) in all.iter().enumerate() {
        let neighbors = (
            kinds(n.checked_sub(1)),
            kinds(n.checked_sub(2)),
            kinds(n.checked_add(1)),
        );
        let Some(type_) = token_type(token, expression.text, neighbors) else {
            continue;
        };
        let number = TYPES.iter().position(|known| *known == type_);
        let number = u32::try_from(number.unwrap_or_default()).unwrap_or_default();
        let start = usize::try_from(token.start).unwrap_or_default();
        let end = usize::try_from(token.end).unwrap_or_default();
        let bytes = expression.bytes(&(start..end));
        let mut at = bytes.start;
        // A string may span several lines.
        let written = source.text().get(bytes).unwrap_or_default();
        for line in written.split_inclusive('\n') {
            let blank = line.len() - line.trim_start().len();
            let shown = line.trim();
            if !shown.is_empty() {
                let first = positions::position(source, at + blank, encoding);
                let length = u32::try_from(encoding.units(shown)).unwrap_or_default();
                placed.push((first.line, first.character, length, number));
            }
            at += line.len();
        }
    }
}

/// Returns the type of a token, which also depends on the kinds of the tokens before and after it. `None` for
/// punctuation.
fn token_type(
    token: &Token,
    text: &str,
    (before, before_that, after): (Option<Kind>, Option<Kind>, Option<Kind>),
) -> Option<&'static str> {
    let is_member = before == Some(Kind::Dot)
        || before == Some(Kind::Question) && before_that == Some(Kind::Dot);
    Some(match token.kind {
        Kind::Ident if after == Some(Kind::OpenParen) => {
            let name = token.text(text);
            if MACROS.iter().any(|known| known.name == name) {
                "macro"
            } else if is_member {
                "method"
            } else {
                "function"
            }
        }
        Kind::Ident | Kind::EscapedIdent if is_member => "property",
        Kind::Ident | Kind::EscapedIdent => "variable",
        Kind::True | Kind::False | Kind::Null | Kind::In => "keyword",
        Kind::String | Kind::Bytes => "string",
        Kind::Int | Kind::Uint | Kind::Float => "number",
        Kind::And | Kind::Or | Kind::Exclamation | Kind::Question | Kind::Colon => "operator",
        kind if kind.relation().is_some() || kind.arithmetic().is_some() => "operator",
        _ => return None,
    })
}
