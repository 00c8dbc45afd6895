//! Findings about an expression, as data, and cel-go's rendering of them.
//!
//! Source: cel-go `common/error.go` (`Error.ToDisplayString`), `common/errors.go`
//! (`Errors.ToDisplayString`).

use std::fmt::Write as _;

use super::ast::ExprId;
use super::source::{Location, SourceMap};

/// What a finding is about. The names are for good once released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The text is not an expression of the language.
    Syntax,
    /// A size or depth limit of the parser is exceeded.
    LimitExceeded,
    /// A macro is called with arguments it cannot take.
    InvalidMacroCall,
    /// A name that nothing declares.
    UndeclaredReference,
    /// A field that the object type does not have.
    UndefinedField,
    /// No overload takes arguments of these types.
    NoMatchingOverload,
    /// A type that has no fields.
    NoFieldSelection,
    /// A type that cannot be iterated over.
    NotARange,
    /// A type other than the expected one.
    TypeMismatch,
    /// A list or map literal whose parts are of unlike types.
    MixedLiteral,
    /// A type that is named but not declared.
    UnresolvedType,
    /// Something that is not a type where one is wanted.
    NotAType,
    /// An optional selection that is malformed.
    InvalidOptionalSelection,
    /// A literal argument that the function refuses.
    InvalidLiteral,
    /// An expression that is too deep or too large for this implementation.
    TooComplex,
}

impl Code {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::LimitExceeded => "limit-exceeded",
            Self::InvalidMacroCall => "invalid-macro-call",
            Self::UndeclaredReference => "undeclared-reference",
            Self::UndefinedField => "undefined-field",
            Self::NoMatchingOverload => "no-matching-overload",
            Self::NoFieldSelection => "no-field-selection",
            Self::NotARange => "not-a-range",
            Self::TypeMismatch => "type-mismatch",
            Self::MixedLiteral => "mixed-literal",
            Self::UnresolvedType => "unresolved-type",
            Self::NotAType => "not-a-type",
            Self::InvalidOptionalSelection => "invalid-optional-selection",
            Self::InvalidLiteral => "invalid-literal",
            Self::TooComplex => "too-complex",
        }
    }
}

/// A finding about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is about.
    pub code: Code,
    /// Where it is.
    pub location: Location,
    /// The expression that it is about; findings of the parser have none.
    pub expr: Option<ExprId>,
    /// What is wrong, in cel-go's words where it has some.
    pub message: String,
}

/// The most findings that are kept for one expression; further ones are counted.
///
/// Source: cel-go `common/errors.go`, `maxErrorsToReport`.
const MAX_REPORTED: usize = 100;

/// A rendering that has come to this many bytes ends with a count of what was left out. Upstream has no such
/// bound, and 3 MB of text for an expression of 16 KB.
const MAX_RENDERED_BYTES: usize = 128 * 1024;

/// Lines longer than this, in bytes, are not shown.
///
/// Source: cel-go `common/error.go`, `maxSnippetLength`.
const MAX_SNIPPET_BYTES: usize = 16_384;

/// The findings about one expression, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    reported: Vec<Diagnostic>,
    n_found: usize,
}

impl Diagnostics {
    /// Adds a finding of the parser.
    pub fn report(&mut self, code: Code, location: Location, message: impl Into<String>) {
        self.add(Diagnostic {
            code,
            location,
            expr: None,
            message: message.into(),
        });
    }

    /// Adds a finding about the expression `expr`.
    pub fn report_at(
        &mut self,
        code: Code,
        location: Location,
        expr: ExprId,
        message: impl Into<String>,
    ) {
        self.add(Diagnostic {
            code,
            location,
            expr: Some(expr),
            message: message.into(),
        });
    }

    fn add(&mut self, diagnostic: Diagnostic) {
        self.n_found += 1;
        if self.reported.len() < MAX_REPORTED {
            self.reported.push(diagnostic);
        }
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_found == 0
    }

    /// The findings that were kept.
    #[must_use]
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.reported
    }

    /// How many findings there are, kept or not.
    #[must_use]
    pub fn n_found(&self) -> usize {
        self.n_found
    }

    /// Keeps only the findings that `keep` accepts.
    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        let n_before = self.reported.len();
        self.reported.retain(keep);
        self.n_found -= n_before - self.reported.len();
    }

    /// cel-go's text: an `ERROR:` line each with the source line and a caret, sorted by place.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        self.render_within(text, MAX_RENDERED_BYTES)
    }

    /// As [`Self::render`], in about `max_bytes`, but always with the first finding.
    #[must_use]
    pub fn render_within(&self, text: &str, max_bytes: usize) -> String {
        let source = SourceMap::new(text);
        let mut sorted: Vec<_> = self.reported.iter().collect();
        sorted.sort_by_key(|diagnostic| diagnostic.location);
        let mut out = String::new();
        let mut n_shown = 0;
        for diagnostic in sorted {
            if n_shown > 0 && out.len() > max_bytes {
                break;
            }
            if n_shown > 0 {
                out.push('\n');
            }
            n_shown += 1;
            render_one(diagnostic, text, &source, &mut out);
        }
        let n_truncated = self.n_found - n_shown;
        if n_truncated > 0 {
            let _ = write!(out, "\n{n_truncated} more errors were truncated");
        }
        out
    }
}

fn render_one(diagnostic: &Diagnostic, text: &str, source: &SourceMap, out: &mut String) {
    let Location { line, column } = diagnostic.location;
    let _ = write!(
        out,
        "ERROR: <input>:{line}:{}: {}",
        column + 1,
        diagnostic.message
    );
    let Some(snippet) = source.snippet(text, line) else {
        return;
    };
    if snippet.len() > MAX_SNIPPET_BYTES {
        return;
    }
    out.push_str("\n | ");
    out.push_str(&snippet.replace('\t', " "));
    out.push_str("\n | ");
    let mut chars = snippet.chars();
    for c in chars.by_ref().take(usize::try_from(column).unwrap_or(0)) {
        out.push(if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' });
    }
    out.push(if chars.next().is_some_and(|c| c.len_utf8() > 1) {
        '\u{ff3e}'
    } else {
        '^'
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_are_wide_under_wide_characters() {
        let mut found = Diagnostics::default();
        found.report(Code::TypeMismatch, Location { line: 1, column: 4 }, "m");
        assert_eq!(
            found.render("'é' + 1"),
            "ERROR: <input>:1:5: m\n | 'é' + 1\n | .\u{ff0e}..^"
        );
    }

    #[test]
    fn errors_beyond_the_limit_are_counted() {
        let mut found = Diagnostics::default();
        for _ in 0..103 {
            found.report(Code::Syntax, Location { line: 1, column: 0 }, "m");
        }
        assert!(
            found
                .render("x")
                .ends_with("\n3 more errors were truncated")
        );
    }

    #[test]
    fn errors_without_a_place_have_no_snippet() {
        let mut found = Diagnostics::default();
        found.report(Code::LimitExceeded, Location::NONE, "m");
        assert_eq!(found.render("x"), "ERROR: <input>:-1:0: m");
    }
}
