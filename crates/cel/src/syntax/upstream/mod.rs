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
mod strategy;
mod stream;
#[cfg(test)]
mod tests;

use self::parser::Parser;
use self::stream::Stream;
use super::lexer::Tokens;

/// The place of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// An offset in code points.
    Offset(u32),
    /// None: it is about the expression as a whole.
    Nowhere,
}

/// An error of the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: Where,
    /// What is wrong, in the API server's words.
    pub(super) message: String,
}

/// What the API server's parser finds.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// In the order in which it finds them; never more than a hundred and two.
    pub(super) errors: Vec<SyntaxError>,
    /// Whether it comes to the end of the text, and looks at what the text means.
    pub(super) is_complete: bool,
}

/// The errors of the grammar in `text`, whose tokens are `tokens`.
///
/// The time is a multiple of the length of the text.
pub(super) fn syntax_errors(text: &str, tokens: &Tokens) -> Outcome {
    let mut parser = Parser::new(Stream::new(text, tokens));
    parser.run();
    parser.outcome
}
