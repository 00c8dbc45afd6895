//! Diagnostics of an expression, and cel-go's text format for them.
//!
//! Source: cel-go `common/error.go` (`Error.ToDisplayString`), `common/errors.go`
//! (`Errors.ToDisplayString`).

mod kind;

use std::fmt::{self, Write};

pub use self::kind::{Candidates, Code, DiagnosticKind, UndefinedField};
use super::ast::ExprId;
use super::interrupt::checkpoint_of;
use super::source::{Location, SourceMap};

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The expression is invalid, or its evaluation fails.
    Error,
    /// The expression is valid, but probably not intended.
    Warning,
}

impl Severity {
    /// Returns the label before the message of a diagnostic.
    ///
    /// Source: cel-go `common/error.go`, `Error.ToDisplayString`, which supports errors only.
    const fn label(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warning => "WARNING",
        }
    }
}

/// A problem with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The problem.
    pub kind: DiagnosticKind,
    /// The source location.
    pub location: Location,
    /// The expression with the problem. `None` for diagnostics of the parser.
    pub expr: Option<ExprId>,
    /// A note that supplements the message, such as the reason why the problem is certain.
    pub note: Option<&'static str>,
}

impl Diagnostic {
    /// Returns the message without cel-go's suffix ` (in container '')`. Kubernetes does not use containers.
    #[must_use]
    pub fn without_container(&self) -> String {
        let message = self.kind.without_container();
        match self.note {
            Some(note) => format!("{message}: {note}"),
            None => message,
        }
    }
}

/// Formats the message.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, note, .. } = self;
        match note {
            Some(note) => write!(f, "{kind}: {note}"),
            None => write!(f, "{kind}"),
        }
    }
}

/// Maximum number of diagnostics stored per expression. Further diagnostics are only counted.
///
/// Source: cel-go `common/errors.go`, `maxErrorsToReport`.
const MAX_REPORTED: usize = 100;

/// Maximum size of a rendering, in bytes. The number of omitted diagnostics is printed after it. Upstream has no
/// limit: it prints 3 MB for an expression of 16 KB.
const MAX_RENDERED_BYTES: usize = 128 * 1024;

/// Maximum length of a source line in bytes. Longer lines are not shown.
///
/// Source: cel-go `common/error.go`, `maxSnippetLength`.
const MAX_SNIPPET_BYTES: usize = 16_384;

/// The diagnostics of one expression, in the order of detection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    reported: Vec<Diagnostic>,
    n_found: usize,
}

impl Diagnostics {
    /// Adds a diagnostic of the parser.
    pub fn report(&mut self, code: Code, location: Location, message: impl Into<String>) {
        let message = message.into();
        self.add(Diagnostic {
            kind: DiagnosticKind::Other {
                code,
                message,
                correction: None,
            },
            location,
            expr: None,
            note: None,
        });
    }

    /// Adds a diagnostic about the expression `expr`.
    pub fn report_at(&mut self, kind: DiagnosticKind, location: Location, expr: ExprId) {
        self.add(Diagnostic {
            kind,
            location,
            expr: Some(expr),
            note: None,
        });
    }

    /// Adds a diagnostic.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        self.n_found += 1;
        if self.reported.len() < MAX_REPORTED {
            self.reported.push(diagnostic);
        }
    }

    /// Returns true if there are no diagnostics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_found == 0
    }

    /// Returns the stored diagnostics.
    #[must_use]
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.reported
    }

    /// Returns the total number of diagnostics, including those not stored.
    #[must_use]
    pub fn n_found(&self) -> usize {
        self.n_found
    }

    /// Keeps the diagnostics for which `keep` returns true, and removes the others.
    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        let n_before = self.reported.len();
        self.reported.retain(keep);
        self.n_found -= n_before - self.reported.len();
    }

    /// Returns the number of diagnostics that were not stored.
    #[must_use]
    pub fn n_left_out(&self) -> usize {
        self.n_found - self.reported.len()
    }

    /// Sorts the diagnostics by location. Removes the last ones until the rendering has at most about `max_bytes`
    /// bytes, but keeps at least one diagnostic. Returns the length of the rendering.
    pub fn cut(&mut self, text: &str, max_bytes: usize) -> usize {
        self.reported.sort_by_key(|diagnostic| diagnostic.location);
        let source = SourceMap::new(text);
        let mut length = Length(0);
        let mut n_kept = 0;
        for diagnostic in &self.reported {
            if n_kept > 0 && length.0 > max_bytes {
                break;
            }
            length.0 += usize::from(n_kept > 0);
            n_kept += 1;
            let shown = Shown {
                severity: Severity::Error,
                with_source: true,
            };
            let _ = diagnostic.write(text, &source, shown, &mut length);
        }
        self.reported.truncate(n_kept);
        let _ = self.write_left_out(&mut length);
        length.0
    }

    /// Formats the diagnostics as cel-go does, sorted by location: an `ERROR:` line for each, followed by the source
    /// line and a caret.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let mut sorted = self.clone();
        sorted.cut(text, MAX_RENDERED_BYTES);
        let shown = Shown {
            severity: Severity::Error,
            with_source: true,
        };
        sorted.render_as(text, shown)
    }

    /// Formats the diagnostics in their current order.
    #[must_use]
    pub fn render_as(&self, text: &str, shown: Shown) -> String {
        let mut out = String::new();
        let _ = self.write(text, shown, &mut out);
        out
    }

    /// Returns the length of [`Self::render_as`] in bytes.
    #[must_use]
    pub fn rendered_len(&self, text: &str, shown: Shown) -> usize {
        let mut length = Length(0);
        let _ = self.write(text, shown, &mut length);
        length.0
    }

    /// Returns the source lines shown below the diagnostics, each followed by a line with a caret.
    #[must_use]
    pub fn excerpts(&self, text: &str) -> String {
        let source = SourceMap::new(text);
        let mut out = String::new();
        for diagnostic in &self.reported {
            if let Some(snippet) = diagnostic.snippet(text, &source) {
                let _ = write_snippet(snippet, diagnostic.location.column, &mut out);
            }
        }
        out
    }

    fn write(&self, text: &str, shown: Shown, out: &mut impl Write) -> fmt::Result {
        let source = SourceMap::new(text);
        for (n, diagnostic) in self.reported.iter().enumerate() {
            if n > 0 {
                out.write_char('\n')?;
            }
            diagnostic.write(text, &source, shown, out)?;
        }
        self.write_left_out(out)
    }

    fn write_left_out(&self, out: &mut impl Write) -> fmt::Result {
        match self.n_left_out() {
            0 => Ok(()),
            n => write!(out, "\n{}", left_out(n)),
        }
    }
}

/// Formats the note about `n` diagnostics that were not stored.
///
/// Source: cel-go `common/errors.go`, `Errors.ToDisplayString`.
#[must_use]
pub fn left_out(n: usize) -> String {
    format!("{n} more errors were truncated")
}

/// Rendering options.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The severity, which determines the label before each message.
    pub severity: Severity,
    /// True if the source line and a caret are shown below each diagnostic.
    pub with_source: bool,
}

/// A writer that counts bytes.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

impl Diagnostic {
    fn write(
        &self,
        text: &str,
        source: &SourceMap,
        shown: Shown,
        out: &mut impl Write,
    ) -> fmt::Result {
        let Location { line, column } = self.location;
        let label = shown.severity.label();
        write!(out, "{label}: <input>:{line}:{}: {self}", column + 1)?;
        if shown.with_source
            && let Some(snippet) = self.snippet(text, source)
        {
            checkpoint_of(snippet.len() / 64);
            write_snippet(snippet, column, out)?;
        }
        Ok(())
    }

    /// Returns the source line shown below the diagnostic. `None` if it is not shown.
    fn snippet<'a>(&self, text: &'a str, source: &SourceMap) -> Option<&'a str> {
        let snippet = source.snippet(text, self.location.line)?;
        (snippet.len() <= MAX_SNIPPET_BYTES).then_some(snippet)
    }
}

fn write_snippet(snippet: &str, column: i32, out: &mut impl Write) -> fmt::Result {
    out.write_str("\n | ")?;
    for (n, part) in snippet.split('\t').enumerate() {
        if n > 0 {
            out.write_char(' ')?;
        }
        out.write_str(part)?;
    }
    out.write_str("\n | ")?;
    let mut chars = snippet.chars();
    for c in chars.by_ref().take(usize::try_from(column).unwrap_or(0)) {
        out.write_char(if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' })?;
    }
    out.write_char(if chars.next().is_some_and(|c| c.len_utf8() > 1) {
        '\u{ff3e}'
    } else {
        '^'
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_character_has_wide_dot_in_marker_line() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.report(Code::TypeMismatch, Location { line: 1, column: 4 }, "m");
        assert_eq!(
            diagnostics.render("'é' + 1"),
            "ERROR: <input>:1:5: m\n | 'é' + 1\n | .\u{ff0e}..^"
        );
    }

    #[test]
    fn errors_beyond_limit_are_counted() {
        let mut diagnostics = Diagnostics::default();
        for _ in 0..103 {
            diagnostics.report(Code::Syntax, Location { line: 1, column: 0 }, "m");
        }
        assert!(
            diagnostics
                .render("x")
                .ends_with("\n3 more errors were truncated")
        );
    }

    #[test]
    fn error_without_location_has_no_snippet() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.report(Code::LimitExceeded, Location::NONE, "m");
        assert_eq!(diagnostics.render("x"), "ERROR: <input>:-1:0: m");
    }
    /// Creates a diagnostic in line 1 for each of the `columns`.
    fn found(columns: &[i32]) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        for &column in columns {
            let message = format!("m{column}");
            diagnostics.report(Code::Syntax, Location { line: 1, column }, message);
        }
        diagnostics
    }

    const SHOWN: Shown = Shown {
        severity: Severity::Error,
        with_source: true,
    };

    #[test]
    fn rendered_errors_are_sorted_and_separated() {
        let mut diagnostics = found(&[3, 1]);
        let location = Location { line: 2, column: 0 };
        diagnostics.report(Code::Syntax, location, "last");
        let text = "a\tbcd\nxy";
        let sorted = "ERROR: <input>:1:2: m1\n | a bcd\n | .^\nERROR: <input>:1:4: m3\n | a bcd\n | ...^\n\
                      ERROR: <input>:2:1: last\n | xy\n | ^";
        assert_eq!(diagnostics.render(text), sorted);
        let unsorted = diagnostics.render_as(text, SHOWN);
        assert!(
            unsorted.starts_with("ERROR: <input>:1:4: m3\n"),
            "{unsorted}"
        );
        assert_eq!(diagnostics.rendered_len(text, SHOWN), unsorted.len());
        let excerpts = "\n | a bcd\n | ...^\n | a bcd\n | .^\n | xy\n | ^";
        assert_eq!(diagnostics.excerpts(text), excerpts);
        let without_source = Shown {
            with_source: false,
            ..SHOWN
        };
        assert_eq!(
            diagnostics.render_as(text, without_source),
            "ERROR: <input>:1:4: m3\nERROR: <input>:1:2: m1\nERROR: <input>:2:1: last"
        );
    }

    #[test]
    fn diagnostics_are_cut_to_maximum_length() {
        let text = "abc";
        let one = "ERROR: <input>:1:1: m0\n | abc\n | ^".len();
        for (max_bytes, n_kept) in [(0, 1), (one - 1, 1), (one, 2), (2 * one + 2, 3)] {
            let mut diagnostics = found(&[0, 1, 2]);
            let length = diagnostics.cut(text, max_bytes);
            assert_eq!(diagnostics.as_slice().len(), n_kept, "{max_bytes}");
            assert_eq!(diagnostics.n_found(), 3);
            assert_eq!(diagnostics.n_left_out(), 3 - n_kept);
            assert_eq!(length, diagnostics.render_as(text, SHOWN).len());
        }
    }

    #[test]
    fn filter_does_not_change_number_of_omitted_diagnostics() {
        let columns: Vec<i32> = (0..103).collect();
        let mut diagnostics = found(&columns);
        assert_eq!((diagnostics.n_found(), diagnostics.n_left_out()), (103, 3));
        diagnostics.retain(|diagnostic| diagnostic.location.column < 10);
        assert_eq!((diagnostics.n_found(), diagnostics.n_left_out()), (13, 3));
        assert!(!diagnostics.is_empty() && Diagnostics::default().is_empty());
    }
}
