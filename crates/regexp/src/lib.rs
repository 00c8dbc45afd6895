//! Go's regular expressions, as used by `matches` and `find`.
//!
//! [`parse`] parses a pattern into a [`Regex`]: a tree with the same captures, flags and character classes as Go's. For
//! an invalid pattern, it returns an error with Go's message. The syntax and the size limits are those of Go.
//!
//! A [`Program`] searches strings for a pattern. [`Limits`] limit the time and memory of a search. An [`EngineBudget`]
//! limits the memory of the engines that programs retain.
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
//! The parser does not recurse, but uses an explicit stack. A [`Class`] retains its source form, so the tree is no
//! larger than the pattern.
//!
//! Source: Go `regexp/syntax/parse.go` (`Parse` with the flags `Perl`), in the Go version of the API server.

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

/// Parses `pattern` like Go's `regexp.Compile`.
///
/// # Errors
///
/// Returns Go's error, with Go's message, if the pattern is invalid or too large.
pub fn parse(pattern: &str) -> Result<Regex, SyntaxError> {
    parser::Parser::new(pattern).parse()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
