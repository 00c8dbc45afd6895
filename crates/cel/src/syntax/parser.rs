//! Parser state and error recovery.
//!
//! The parser recovers from errors as cel-go's generated parser does, because the recovery determines later errors,
//! their locations, and the limits that are exceeded. An extraneous token is dropped, and a missing token is treated as
//! present. For any other error, the rule fails, and tokens are skipped until one is in the follow set.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `error_strategy.go` (`DefaultErrorStrategy`); cel-go
//! `parser/parser.go` (`recoveryLimitErrorStrategy`, `recursionListener`, `SyntaxError`).

use super::follow::Follow;
use super::token::{Kind, Token, TokenSet};
use super::{MAX_NODES, MAX_RECURSION_DEPTH, wording};
use crate::ast::{AstBuilder, Expr, ExprId};
use crate::diagnostic::Code;
use crate::version::Behavior;

/// Maximum number of recovery attempts before parsing is aborted.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorRecoveryLimit`.
pub const ERROR_RECOVERY_LIMIT: u32 = 30;

/// Maximum number of tokens skipped by one recovery.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorRecoveryTokenLookaheadLimit`.
pub const RECOVERY_LOOKAHEAD_LIMIT: u32 = 256;

/// Maximum number of reported syntax errors.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorReportingLimit`.
pub const ERROR_REPORTING_LIMIT: usize = 100;

/// Offset of nodes without a location in the source.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The reason why a parse was aborted: a limit of the language or of this implementation is exceeded.
#[derive(Debug)]
pub(super) struct Abort {
    /// The error to report. `None` if it has already been reported with a location.
    pub(super) finding: Option<(Code, String)>,
    /// Number of tokens that the parser has read.
    pub(super) n_tokens: usize,
}

/// An error with its offset in code points.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) offset: u32,
    pub(super) code: Code,
    pub(super) message: String,
}

/// The message if all expressions of a policy together exceed the limit on nodes.
const TOO_LARGE_POLICY: &str =
    "the expressions together are too large to check; use fewer or smaller expressions";

/// A parsed subexpression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub(super) id: ExprId,
    /// Nesting depth of operators and selections within the subexpression.
    ///
    /// Source: cel-go `parser/parser.go`, `checkAndIncrementRecursionDepth`.
    pub(super) depth: u32,
}

pub(super) type Rule<T = Parsed> = Result<T, Abort>;

/// Rules whose recursion depth is counted. The depth of other rules is never greater.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted {
    Expr,
    Relation,
    Calc,
}

/// State of the parser at the start of a subexpression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    token: usize,
    n_semantic: usize,
    n_nested: usize,
}

/// A subexpression that increases the nesting depth of operators and selections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested {
    /// Index of the first token of the subexpression.
    first: usize,
    /// Index after the last token of the subexpression.
    end: usize,
    /// Number of semantic errors reported before the subexpression.
    n_semantic: usize,
}

/// Returns the number of semantic errors before the first subexpression that is nested too deeply.
/// Upstream visits parents before children, from left to right, and stops at that subexpression.
pub(super) fn n_before_too_deep(mut nested: Vec<Nested>) -> usize {
    // If several subexpressions have the same tokens, the one recorded last encloses the others.
    // The stable sort places it first, because the order is reversed.
    nested.reverse();
    nested.sort_by_key(|part| (part.first, usize::MAX - part.end));
    let mut around: Vec<Nested> = Vec::new();
    for part in nested {
        while around.last().is_some_and(|outer| outer.end <= part.first) {
            around.pop();
        }
        if around.len() >= MAX_RECURSION_DEPTH as usize {
            return part.n_semantic;
        }
        around.push(part);
    }
    0
}

/// The input that the parser expected instead of the current token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// The first token of an expression.
    Operand,
    FieldName,
    /// An identifier after a dot.
    Name,
    /// `?` or an identifier.
    FieldOrOptional,
    Token(Kind),
    /// The closing token that matches an opening token, or an operator.
    Close(Kind, Token),
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) builder: AstBuilder,
    /// Syntax errors.
    pub(super) syntax: Vec<Finding>,
    /// Errors in source that conforms to the grammar. Discarded if parsing is aborted.
    pub(super) semantic: Vec<Finding>,
    /// Subexpressions that count toward the nesting depth, in the order of their ends. `None` if they are not recorded.
    pub(super) nested: Option<Vec<Nested>>,
    pub(super) max_nodes: usize,
    pub(super) behavior: Behavior,
    tokens: &'t [Token],
    at: usize,
    /// Index of the furthest token read.
    seen: usize,
    /// State of cel-go's generated parser.
    state: u16,
    /// True if an error was reported and no token has matched since. Further errors are suppressed.
    recovering: bool,
    last_error: Option<usize>,
    error_states: Vec<u16>,
    n_recoveries: u32,
    active: [u32; 3],
}

impl<'t> Parser<'t> {
    pub(super) fn new(
        text: &'t str,
        tokens: &'t [Token],
        max_nodes: usize,
        behavior: Behavior,
    ) -> Self {
        Self {
            text,
            builder: AstBuilder::with_capacity(tokens.len()),
            syntax: Vec::new(),
            semantic: Vec::new(),
            nested: None,
            max_nodes,
            behavior,
            tokens,
            at: 0,
            seen: 0,
            state: 0,
            recovering: false,
            last_error: None,
            error_states: Vec::new(),
            n_recoveries: 0,
            active: [0; 3],
        }
    }

    /// Returns the token `ahead` positions after the current one.
    pub(super) fn peek_token(&self, ahead: usize) -> Token {
        let end = Token {
            kind: Kind::End,
            start: 0,
            end: 0,
            offset: 0,
        };
        self.tokens
            .get(self.at + ahead)
            .or(self.tokens.last())
            .copied()
            .unwrap_or(end)
    }

    pub(super) fn peek(&self, ahead: usize) -> Kind {
        self.peek_token(ahead).kind
    }

    pub(super) fn current(&self) -> Kind {
        self.peek(0)
    }

    /// Sets the state of cel-go's generated parser.
    pub(super) fn set_state(&mut self, state: u16) {
        self.state = state;
    }

    /// Consumes the current token, which must match.
    pub(super) fn take(&mut self) -> Token {
        self.end_error_condition();
        let token = self.peek_token(0);
        self.advance();
        token
    }

    fn advance(&mut self) {
        if self.current() != Kind::End {
            self.at += 1;
        }
        self.seen = self.seen.max(self.at);
    }

    fn end_error_condition(&mut self) {
        if self.recovering {
            self.recovering = false;
            self.last_error = None;
            self.error_states.clear();
        }
    }

    /// Increments the recursion depth of `rule`. Fails if a limit is exceeded.
    pub(super) fn enter(&mut self, rule: Counted) -> Rule<()> {
        if self.builder.len() > self.max_nodes {
            return Err(self.too_large());
        }
        if let Some(active) = self.active.get_mut(rule as usize) {
            *active += 1;
            if *active > MAX_RECURSION_DEPTH {
                return Err(self.abort(
                    Code::LimitExceeded,
                    format!("expression recursion limit exceeded: {MAX_RECURSION_DEPTH}"),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn exit(&mut self, rule: Counted) {
        if let Some(active) = self.active.get_mut(rule as usize) {
            *active -= 1;
        }
    }

    pub(super) fn abort(&self, code: Code, message: String) -> Abort {
        Abort {
            finding: Some((code, message)),
            n_tokens: self.seen + 1,
        }
    }

    /// Returns the error for a tree with too many nodes.
    pub(super) fn too_large(&self) -> Abort {
        let message = if self.max_nodes < MAX_NODES {
            TOO_LARGE_POLICY.to_owned()
        } else {
            format!("the expression expands to more than {MAX_NODES} nodes; simplify it")
        };
        self.abort(Code::TooComplex, message)
    }

    /// Creates a placeholder for a missing expression.
    pub(super) fn missing(&mut self) -> Parsed {
        Parsed {
            id: self.builder.add(NOWHERE, Expr::Unspecified),
            depth: 0,
        }
    }

    pub(super) fn report_semantic(&mut self, offset: u32, code: Code, message: impl Into<String>) {
        self.semantic.push(Finding {
            offset,
            code,
            message: message.into(),
        });
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            token: self.at,
            n_semantic: self.semantic.len(),
            n_nested: self.nested.as_ref().map_or(0, Vec::len),
        }
    }

    /// Records that the subexpression from `from` up to the current token increases the nesting depth.
    pub(super) fn nests(&mut self, from: Mark) {
        if let Some(nested) = &mut self.nested {
            nested.push(Nested {
                first: from.token,
                end: self.at,
                n_semantic: from.n_semantic,
            });
        }
    }

    /// Discards the errors reported since `from`, because upstream does not validate this subexpression.
    pub(super) fn forget(&mut self, from: Mark) {
        self.semantic.truncate(from.n_semantic);
        if let Some(nested) = &mut self.nested {
            nested.truncate(from.n_nested);
        }
    }

    fn report(&mut self, at: Token, expected: Expected) -> Rule<()> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let message = wording::unexpected(self.text, at, expected);
        self.report_syntax(at.offset, message)
    }

    fn report_syntax(&mut self, offset: u32, message: String) -> Rule<()> {
        let is_last = self.syntax.len() >= ERROR_REPORTING_LIMIT;
        let message = if is_last {
            format!("Syntax error: More than {ERROR_REPORTING_LIMIT} syntax errors")
        } else {
            message
        };
        self.syntax.push(Finding {
            offset,
            code: Code::Syntax,
            message,
        });
        if is_last {
            return Err(Abort {
                finding: None,
                n_tokens: self.seen + 1,
            });
        }
        Ok(())
    }

    /// Returns true if the rule can continue. During recovery, this is always the case. Otherwise, the current token or
    /// the token after it must be in `next`. If only the token after it is in `next`, the current token is reported as
    /// extraneous and dropped.
    ///
    /// If the rule cannot continue, reports an error, recovers, and returns false. The rule must then end.
    pub(super) fn sync(
        &mut self,
        next: TokenSet,
        expected: Expected,
        follow: Follow,
    ) -> Rule<bool> {
        if self.recovering || next.contains(self.current()) || self.drop_token(next, expected)? {
            return Ok(true);
        }
        self.fail(0, expected, follow)?;
        Ok(false)
    }

    /// Like [`Self::sync`], after an element of a repetition. If the current token is unexpected, reports an error
    /// and skips tokens until the rule can continue.
    pub(super) fn sync_loop(
        &mut self,
        next: TokenSet,
        expected: Expected,
        follow: Follow,
    ) -> Rule<()> {
        if self.recovering || next.contains(self.current()) {
            return Ok(());
        }
        self.report(self.peek_token(0), expected)?;
        let until = next.union(follow.recover);
        while self.current() != Kind::End && !until.contains(self.current()) {
            self.advance();
        }
        Ok(())
    }

    /// Reports an error about the token `ahead` positions after the current one, and recovers. The
    /// rule must then end.
    pub(super) fn fail(&mut self, ahead: usize, expected: Expected, follow: Follow) -> Rule<()> {
        self.seen = self.seen.max(self.at + ahead);
        self.report(self.peek_token(ahead), expected)?;
        self.recover(follow)
    }

    /// Consumes a token of the given kind. An extraneous token before it is reported and dropped. If the token is
    /// missing, reports an error. If the current token is in `after`, continues as if the missing token were present.
    /// In all other cases, recovers and returns `None`, and the rule must end.
    pub(super) fn expect(
        &mut self,
        kind: Kind,
        after: TokenSet,
        expected: Expected,
        follow: Follow,
    ) -> Rule<Option<Token>> {
        if self.current() == kind {
            return Ok(Some(self.take()));
        }
        self.count_recovery()?;
        if self.drop_token(TokenSet::new(&[kind]), expected)? {
            return Ok(Some(self.take()));
        }
        let current = self.peek_token(0);
        if after.contains(current.kind) {
            self.report(current, expected)?;
            return Ok(Some(current));
        }
        self.fail(0, expected, follow)?;
        Ok(None)
    }

    /// Reports and drops the current token if the next one is in `next`. Returns true if it was
    /// dropped.
    fn drop_token(&mut self, next: TokenSet, expected: Expected) -> Rule<bool> {
        if !next.contains(self.peek(1)) {
            return Ok(false);
        }
        self.report(self.peek_token(0), expected)?;
        self.advance();
        self.end_error_condition();
        Ok(true)
    }

    fn count_recovery(&mut self) -> Rule<()> {
        if self.n_recoveries == ERROR_RECOVERY_LIMIT {
            let message = format!(
                "Syntax error: error recovery attempt limit exceeded: {ERROR_RECOVERY_LIMIT}"
            );
            self.report_syntax(self.peek_token(0).offset, message)?;
            return Err(Abort {
                finding: None,
                n_tokens: self.seen + 1,
            });
        }
        self.n_recoveries += 1;
        Ok(())
    }

    /// Skips input up to a token of the follow set.
    fn recover(&mut self, follow: Follow) -> Rule<()> {
        self.count_recovery()?;
        let mut n_passed = 0;
        if self.last_error == Some(self.at) && self.error_states.contains(&self.state) {
            // An error already occurred at this token in this state. Skipping the token guarantees
            // progress.
            self.skip_token(&mut n_passed)?;
        }
        self.last_error = Some(self.at);
        self.error_states.push(self.state);
        while self.current() != Kind::End && !follow.recover.contains(self.current()) {
            self.skip_token(&mut n_passed)?;
        }
        Ok(())
    }

    fn skip_token(&mut self, n_passed: &mut u32) -> Rule<()> {
        if *n_passed >= RECOVERY_LOOKAHEAD_LIMIT {
            return Err(self.abort(
                Code::LimitExceeded,
                format!(
                    "error recovery token lookahead limit exceeded: {RECOVERY_LOOKAHEAD_LIMIT}"
                ),
            ));
        }
        *n_passed += 1;
        self.advance();
        Ok(())
    }
}
