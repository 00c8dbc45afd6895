//! The syntax of Go's regular expressions, which are those of `matches` and `find`.
//!
//! [`parse`] takes a pattern and gives a [`Regex`], a tree with the captures, flags and character classes
//! that Go would make of it, or the error with Go's text. What Go refuses, for its syntax or its size, is
//! refused, and nothing else. A [`Program`] matches, within the [`Limits`] of a search and the memory of an
//! [`EngineBudget`].
//!
//! ```
//! use regexp::{MemoryLimit, Program};
//!
//! let program = Program::new(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")?;
//! assert_eq!(program.is_match("web-1", &MemoryLimit), Ok(true));
//! assert_eq!(program.is_match("Web", &MemoryLimit), Ok(false));
//! let all = Program::new("[0-9]+")?.find_all("a1b22", None, &MemoryLimit);
//! assert_eq!(all, Ok(vec!["1", "22"]));
//! let error = Program::new("a(b").unwrap_err();
//! assert_eq!(error.to_string(), "error parsing regexp: missing closing ): `a(b`");
//! # Ok::<(), regexp::SyntaxError>(())
//! ```
//!
//! The parser does not recurse over the pattern: its nesting is on a stack of its own. Classes keep the
//! form in which they are written ([`Class`]), so that the tree stays as small as the pattern.
//!
//! Source: Go `regexp/syntax/parse.go` (`Parse` with the flags `Perl`), of the release that builds the
//! API server.

mod budget;
mod cache;
mod class;
mod cursor;
mod engine;
mod error;
mod escape;
mod factor;
mod hir;
mod limits;
mod machine;
mod parser;
mod program;
mod ranges;
mod size;
mod stack;
mod tree;
mod unicode;
#[rustfmt::skip]
mod unicode_tables;

#[cfg(test)]
mod tests;

pub use budget::{
    EngineBudget, EngineBytes, MAX_CACHE_BYTES, MAX_KEPT_BYTES, MAX_OWNER_BYTES, engine_bytes,
    n_engines_built,
};
pub use class::Class;
pub use error::{SyntaxError, SyntaxErrorCode};
pub use limits::{Limits, MemoryLimit, TooLarge};
pub use program::{MAX_TRIAL_INSTRUCTIONS, Program};
pub use ranges::Ranges;
pub use tree::{Flags, Node, NodeId, NodeKind, Regex};
pub use unicode::is_printable;

/// Parses `pattern`.
///
/// # Errors
///
/// The error that Go's `regexp.Compile` gives for the pattern, with its text.
pub fn parse(pattern: &str) -> Result<Regex, SyntaxError> {
    parser::Parser::new(pattern).parse()
}
