//! Syntax errors in the words of the API server.
//!
//! These are its parser's, which is generated: they name the tokens that could have come next, and what
//! they say depends on how that parser goes on after an error. So this walks through the same grammar in
//! the same way, and notes what it would say. Texts that are not wrong never come here.
//!
//! It knows nothing of trees: what a macro, a literal or a name has wrong is found elsewhere.

mod grammar;
mod graph;
mod names;
mod parser;
mod prediction;
mod stream;
#[cfg(test)]
mod tests;

use cel::diagnostic::Diagnostics;
use cel::syntax::lexer::Tokens;
use cel::syntax::{self, GrammarErrors};

use self::parser::Parser;
use self::stream::Stream;

/// The findings of [`syntax::parse`] with the syntax errors in the words of the API server.
///
/// Empty where nothing is wrong with `text`. The time is a multiple of the length of the text.
///
/// ```
/// let found = antlr::findings("object.spec == (1");
/// let message = found.as_slice()[0].to_string();
/// assert!(message.starts_with("Syntax error: missing ')' at"), "{message}");
/// ```
///
/// Source: cel-go `parser/parser.go`, `Parser.Parse`.
#[must_use]
pub fn findings(text: &str) -> Diagnostics {
    syntax::findings_by(text, syntax_errors)
}

fn syntax_errors(text: &str, tokens: &Tokens) -> GrammarErrors {
    let mut parser = Parser::new(Stream::new(text, tokens));
    parser.run();
    parser.outcome
}
