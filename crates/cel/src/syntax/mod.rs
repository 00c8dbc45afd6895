//! The parser: converts a source string into an [`Ast`].
//!
//! This is a hand-written parser of cel-go's grammar. Locations, limits and error recovery are cel-go's, because they
//! affect the reported errors. `docs/adr` states the rationale. The parser always returns a tree or diagnostics. Its
//! time and stack usage are linear in the length of the source.
//!
//! Source: cel-go `parser/parser.go`, `parser/gen/CEL.g4`.

mod follow;
mod grammar;
pub mod lexer;
mod literal;
mod macros;
mod parser;
pub mod token;
mod wording;

use std::ops::Range;

use self::lexer::Tokens;
pub(crate) use self::macros::{ACCUMULATOR, FORMER_ACCUMULATOR};
use self::parser::{Abort, Finding, NOWHERE, Parsed, Parser};
pub use self::parser::{ERROR_RECOVERY_LIMIT, ERROR_REPORTING_LIMIT, RECOVERY_LOOKAHEAD_LIMIT};
use self::token::Kind;
use super::ast::{Ast, AstBuilder, ExprId};
use super::diagnostic::{Code, Diagnostics};
use super::source::{Location, SourceMap};
use super::stack::{SHALLOW_NESTING, run_on_deep_stack};
use super::version::{Behavior, Release};

/// Maximum length of an expression, in code points.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `expressionSizeCodePointLimit`.
pub const MAX_CODE_POINTS: u32 = 100_000;

/// Maximum recursion depth of a grammar rule, and maximum nesting depth of operators and selections.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `maxRecursionDepth`.
pub const MAX_RECURSION_DEPTH: u32 = 250;

/// Maximum number of nodes of a tree. `optMap` duplicates its receiver, so the tree of a chain of such calls grows
/// exponentially. cel-go has no limit here.
const MAX_NODES: usize = 250_000;

/// Maximum number of reported syntax errors.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorReportingLimit`.
const MAX_SYNTAX_ERRORS: usize = 100;

/// Returns true if `text` is an expression without syntax errors, and has at most `max_nodes` nodes.
#[must_use]
pub fn parses(text: &str, behavior: Behavior, max_nodes: usize) -> bool {
    let mut n_left = max_nodes;
    let (ast, _) = parse_within(text, behavior, &mut n_left);
    ast.is_some()
}

/// Parses an expression. Returns the tree and the diagnostics. The tree is `None` if there are errors.
///
/// # Example
/// ```
/// let (ast, diagnostics) = cel::syntax::parse("[1, 2].map(n, n * 2)");
/// assert!(ast.is_some() && diagnostics.is_empty());
/// let (ast, diagnostics) = cel::syntax::parse("1 + ");
/// assert!(ast.is_none());
/// assert_eq!(diagnostics.as_slice().len(), 1);
/// ```
#[must_use]
pub fn parse(text: &str) -> (Option<Ast>, Diagnostics) {
    let mut n_left = MAX_NODES;
    let behavior = Behavior::new(Release::DEFAULT.cel_go);
    parse_within(text, behavior, &mut n_left)
}

/// Parses an expression with the syntax of `behavior`. Creates at most `n_left` nodes, and subtracts the number of
/// created nodes from `n_left`.
///
/// The limit of 250,000 nodes per expression also applies.
pub fn parse_within(
    text: &str,
    behavior: Behavior,
    n_left: &mut usize,
) -> (Option<Ast>, Diagnostics) {
    if let Some(diagnostics) = too_long(text) {
        return (None, diagnostics);
    }
    let tokens = lexer::tokens(text);
    let parsed = ParseResult::new(text, &tokens, MAX_NODES.min(*n_left), behavior);
    *n_left = n_left.saturating_sub(parsed.builder.len());
    match parsed.outcome {
        Ok(root) if parsed.syntax.is_empty() && parsed.semantic.is_empty() => {
            (Some(parsed.builder.build(root)), Diagnostics::default())
        }
        _ => (None, parsed.findings(text)),
    }
}

/// A syntax error reported by another parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrammarError {
    /// The offset in code points. `None` if the error concerns the whole expression.
    pub at: Option<u32>,
    /// The message.
    pub message: String,
}

/// The syntax errors reported by another parser.
#[derive(Clone, Debug, Default)]
pub struct GrammarErrors {
    /// The errors, in the order of detection.
    pub errors: Vec<GrammarError>,
    /// True if the parser reached the end of the source.
    pub is_complete: bool,
}

/// Returns the diagnostics of [`parse`], with the syntax errors of `grammar` in place of those of [`parse`].
///
/// `grammar` receives the source and its tokens. `grammar` is not called if the source is too long or too complex.
#[must_use]
pub fn diagnostics_with_grammar(
    text: &str,
    behavior: Behavior,
    grammar: impl FnOnce(&str, &Tokens) -> GrammarErrors,
) -> Diagnostics {
    if let Some(diagnostics) = too_long(text) {
        return diagnostics;
    }
    let tokens = lexer::tokens(text);
    let mut parsed = ParseResult::new(text, &tokens, MAX_NODES, behavior);
    let is_too_complex =
        matches!(&parsed.outcome, Err(Some((code, _))) if *code == Code::TooComplex);
    if !is_too_complex {
        parsed.replace_syntax_errors(grammar(text, &tokens));
    }
    parsed.findings(text)
}

/// Returns the span of the token at the byte `start` of the source. The span of a dot includes the selected name.
/// If no token starts there, for example at the end of the source, the span is a single character or empty.
#[must_use]
pub fn span_at(text: &str, start: usize) -> Range<usize> {
    let Some(first) = lexer::token_at(text, start) else {
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.chars().next().map_or(0, char::len_utf8);
        return start..start + length;
    };
    let mut end = first.end;
    if first.kind == Kind::Dot {
        let after = |end| lexer::token_after(text, end);
        let question = after(end).filter(|token| token.kind == Kind::Question);
        let name = after(question.map_or(end, |question| question.end));
        if let Some(name) = name.filter(|name| is_name(name.kind)) {
            end = name.end;
        }
    }
    start..end as usize
}

/// Returns true if a token of this kind may follow a dot.
fn is_name(kind: Kind) -> bool {
    matches!(kind, Kind::Ident | Kind::EscapedIdent)
}

fn too_long(text: &str) -> Option<Diagnostics> {
    // Each code point has at least one byte.
    if text.len() <= MAX_CODE_POINTS as usize {
        return None;
    }
    let n_code_points = text.chars().count();
    (n_code_points > MAX_CODE_POINTS as usize).then(|| {
        let mut diagnostics = Diagnostics::default();
        let message = format!(
            "expression code point size exceeds limit: size: {n_code_points}, limit {MAX_CODE_POINTS}"
        );
        diagnostics.report(Code::LimitExceeded, Location::NONE, message);
        diagnostics
    })
}

struct ParseResult {
    builder: AstBuilder,
    /// Syntax errors, ordered by location.
    syntax: Vec<Finding>,
    /// Errors in source that conforms to the grammar, such as an invalid macro call.
    semantic: Vec<Finding>,
    /// The root of the tree, or the error that aborted parsing. The error concerns the whole source. It is `None` if
    /// the cause was already reported with a location.
    outcome: Result<ExprId, Option<(Code, String)>>,
}

impl ParseResult {
    fn new(text: &str, tokens: &Tokens, max_nodes: usize, behavior: Behavior) -> Self {
        let (parser, outcome) = run_on_deep_stack(tokens.nesting > SHALLOW_NESTING, || {
            let mut parser = Parser::new(text, &tokens.all, max_nodes, behavior);
            let outcome = parser.start();
            (parser, outcome)
        });
        let Parser {
            builder,
            mut syntax,
            mut semantic,
            ..
        } = parser;
        let n_read = outcome
            .as_ref()
            .err()
            .map_or(usize::MAX, |abort| abort.n_tokens);
        let read_to = tokens.all.get(n_read).map_or(u32::MAX, |token| token.start);
        for error in tokens.errors.iter().filter(|error| error.start <= read_to) {
            syntax.push(Finding {
                offset: error.offset,
                code: Code::Syntax,
                message: wording::no_token(text, error),
            });
        }
        let outcome = match outcome {
            Ok(Parsed { id, depth }) if depth <= MAX_RECURSION_DEPTH => Ok(id),
            Ok(_) => {
                if !semantic.is_empty() {
                    semantic.truncate(n_before_too_deep(text, tokens, max_nodes, behavior));
                }
                Err(Some((Code::LimitExceeded, TOO_DEEP.to_owned())))
            }
            Err(Abort { finding, .. }) => {
                semantic.clear();
                Err(finding)
            }
        };
        syntax.sort_by_key(|finding| finding.offset);
        if let Some(last) = syntax.get_mut(MAX_SYNTAX_ERRORS) {
            last.message = format!("Syntax error: More than {MAX_SYNTAX_ERRORS} syntax errors");
            syntax.truncate(MAX_SYNTAX_ERRORS + 1);
            semantic.clear();
        }
        Self {
            builder,
            syntax,
            semantic,
            outcome,
        }
    }

    /// Replaces the syntax errors with those of another parser. Discards the tree and the semantic
    /// errors if that parser did not reach the end of the source.
    fn replace_syntax_errors(&mut self, parsed: GrammarErrors) {
        self.syntax.clear();
        if !parsed.is_complete {
            self.semantic.clear();
            self.outcome = Err(None);
        }
        for error in parsed.errors {
            match error.at {
                Some(offset) => self.syntax.push(Finding {
                    offset,
                    code: Code::Syntax,
                    message: error.message,
                }),
                None => {
                    self.outcome = Err(Some((Code::LimitExceeded, error.message)));
                }
            }
        }
    }

    fn findings(self, text: &str) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        let source = SourceMap::new(text);
        let location = |offset| {
            if offset == NOWHERE || text.is_empty() {
                // The location before the first character.
                Location {
                    line: 1,
                    column: -1,
                }
            } else {
                source.location(offset)
            }
        };
        for finding in self.syntax.into_iter().chain(self.semantic) {
            diagnostics.report(finding.code, location(finding.offset), finding.message);
        }
        if let Err(Some((code, message))) = self.outcome {
            diagnostics.report(code, Location::NONE, message);
        }
        diagnostics
    }
}

/// Returns the number of semantic errors before the first subexpression that is nested too deeply.
/// Parses the source again, because the depth of a subexpression is known only at its end.
fn n_before_too_deep(text: &str, tokens: &Tokens, max_nodes: usize, behavior: Behavior) -> usize {
    run_on_deep_stack(tokens.nesting > SHALLOW_NESTING, || {
        let mut parser = Parser::new(text, &tokens.all, max_nodes, behavior);
        parser.nested = Some(Vec::new());
        let _ = parser.start();
        parser::n_before_too_deep(parser.nested.unwrap_or_default())
    })
}

/// The error for operators and selections nested deeper than [`MAX_RECURSION_DEPTH`].
///
/// Source: cel-go `parser/parser.go`, `checkAndIncrementRecursionDepth`.
const TOO_DEEP: &str = "max recursion depth exceeded";
