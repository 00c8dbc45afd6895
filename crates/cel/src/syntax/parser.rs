//! The state of a parse: where it is in the text, what it has found, and how it goes on after an error.
//!
//! Errors are recovered from as cel-go's generated parser does, since what it reports next, at which
//! place, and which limits it runs into, follow from that: one token too many is dropped, one too few
//! made up, and otherwise the rule gives up and text is passed over up to what may follow.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `error_strategy.go` (`DefaultErrorStrategy`); cel-go
//! `parser/parser.go` (`recoveryLimitErrorStrategy`, `recursionListener`, `SyntaxError`).

use super::follow::Follow;
use super::token::{Kind, Token, TokenSet};
use super::{MAX_NODES, MAX_RECURSION_DEPTH, wording};
use crate::ast::{AstBuilder, Expr, ExprId};
use crate::diagnostic::Code;

/// How many recovery attempts are made before the parser gives up.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorRecoveryLimit`.
pub const ERROR_RECOVERY_LIMIT: u32 = 30;

/// How many tokens are passed over in one recovery.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorRecoveryTokenLookaheadLimit`.
pub const RECOVERY_LOOKAHEAD_LIMIT: u32 = 256;

/// How many syntax errors are reported.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `errorReportingLimit`.
pub const ERROR_REPORTING_LIMIT: usize = 100;

/// The place of what the text does not have.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The parser gave up: a limit of the language, or of ours.
#[derive(Debug)]
pub(super) struct Abort {
    /// The finding about it; `None` where it has been reported with a place.
    pub(super) finding: Option<(Code, String)>,
    /// How many tokens the parser had seen.
    pub(super) n_tokens: usize,
}

/// A finding with its place, an offset in code points.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) offset: u32,
    pub(super) code: Code,
    pub(super) message: String,
}

/// The finding where an expression is the one that is too much.
const TOO_LARGE_POLICY: &str =
    "the expressions together are too large to be judged; write fewer or smaller ones";

/// A parsed part of the expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub(super) id: ExprId,
    /// How deep operators and selections nest in it.
    ///
    /// Source: cel-go `parser/parser.go`, `checkAndIncrementRecursionDepth`.
    pub(super) depth: u32,
}

pub(super) type Rule<T = Parsed> = Result<T, Abort>;

/// The rules whose activations are counted; those of the others are not more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted {
    Expr,
    Relation,
    Calc,
}

/// How far the parser was when it came to a part of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    token: usize,
    n_meaning: usize,
    n_nested: usize,
}

/// A part of the text that counts as nested, as [`Parsed::depth`] does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested {
    /// Its first token.
    first: usize,
    /// The token behind it.
    end: usize,
    /// How many findings about what is grammatical there were before it.
    n_meaning: usize,
}

/// How many findings there are before the first part that nests too deep: a part is looked at before those
/// in it, from the left to the right, and behind that one nothing is.
pub(super) fn n_before_too_deep(mut nested: Vec<Nested>) -> usize {
    // Of parts with the same tokens the one that ended last is around the others.
    nested.reverse();
    nested.sort_by_key(|part| (part.first, usize::MAX - part.end));
    let mut around: Vec<Nested> = Vec::new();
    for part in nested {
        while around.last().is_some_and(|outer| outer.end <= part.first) {
            around.pop();
        }
        if around.len() >= MAX_RECURSION_DEPTH as usize {
            return part.n_meaning;
        }
        around.push(part);
    }
    0
}

/// What a parser expects where it finds something else.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// What an expression begins with.
    Operand,
    /// The name of a field.
    FieldName,
    /// A name behind a dot.
    Name,
    /// `?` or a name.
    FieldOrOptional,
    /// The token.
    Token(Kind),
    /// The token that closes what was opened, or an operator.
    Close(Kind, Token),
}

/// The state of one parse.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) builder: AstBuilder,
    /// Findings of the grammar.
    pub(super) syntax: Vec<Finding>,
    /// Findings about what is grammatical; void if the parser gives up.
    pub(super) meaning: Vec<Finding>,
    /// The parts that count as nested, in the order of their ends; kept only where asked for.
    pub(super) nested: Option<Vec<Nested>>,
    /// The most nodes that may be made.
    pub(super) max_nodes: usize,
    tokens: &'t [Token],
    at: usize,
    /// The furthest token that was looked at.
    seen: usize,
    /// The place in the grammar, by cel-go's number.
    state: u16,
    /// Whether an error was reported since the last token that fitted: no others are, meanwhile.
    recovering: bool,
    last_error: Option<usize>,
    error_states: Vec<u16>,
    n_recoveries: u32,
    active: [u32; 3],
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, tokens: &'t [Token], max_nodes: usize) -> Self {
        Self {
            text,
            builder: AstBuilder::with_capacity(tokens.len()),
            syntax: Vec::new(),
            meaning: Vec::new(),
            nested: None,
            max_nodes,
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

    /// The token that is `ahead` of the current one.
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

    /// Says which state of the grammar this is.
    pub(super) fn set_state(&mut self, state: u16) {
        self.state = state;
    }

    /// Takes the current token, which fits.
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

    /// Counts an activation of `rule`.
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

    /// The parser gives up, as the tree would have more nodes than it may.
    pub(super) fn too_large(&self) -> Abort {
        let message = if self.max_nodes < MAX_NODES {
            TOO_LARGE_POLICY.to_owned()
        } else {
            format!("the expression expands to more than {MAX_NODES} nodes; simplify it")
        };
        self.abort(Code::TooComplex, message)
    }

    /// A place in the tree where the text has nothing.
    pub(super) fn missing(&mut self) -> Parsed {
        Parsed {
            id: self.builder.add(NOWHERE, Expr::Unspecified),
            depth: 0,
        }
    }

    /// Adds a finding about what is grammatical.
    pub(super) fn report_meaning(&mut self, offset: u32, code: Code, message: impl Into<String>) {
        self.meaning.push(Finding {
            offset,
            code,
            message: message.into(),
        });
    }

    /// The place where a part of the text begins.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            token: self.at,
            n_meaning: self.meaning.len(),
            n_nested: self.nested.as_ref().map_or(0, Vec::len),
        }
    }

    /// Notes that what begins at `from` and ends here counts as nested.
    pub(super) fn nests(&mut self, from: Mark) {
        if let Some(nested) = &mut self.nested {
            nested.push(Nested {
                first: from.token,
                end: self.at,
                n_meaning: from.n_meaning,
            });
        }
    }

    /// Takes back what was found since `from`, in a part that nobody looks at.
    pub(super) fn forget(&mut self, from: Mark) {
        self.meaning.truncate(from.n_meaning);
        if let Some(nested) = &mut self.nested {
            nested.truncate(from.n_nested);
        }
    }

    fn report(&mut self, at: Token, wanted: Wanted) -> Rule<()> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let message = wording::unexpected(self.text, at, wanted);
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

    /// Whether the rule can go on with the current token, or, with a finding, behind it.
    ///
    /// Otherwise the error is reported and recovered from: the rule ends.
    pub(super) fn sync(&mut self, next: TokenSet, wanted: Wanted, follow: Follow) -> Rule<bool> {
        if self.recovering || next.contains(self.current()) || self.drop_token(next, wanted)? {
            return Ok(true);
        }
        self.fail(0, wanted, follow)?;
        Ok(false)
    }

    /// As [`Self::sync`] behind an element of a repetition, where the rule goes on in any case.
    pub(super) fn sync_loop(&mut self, next: TokenSet, wanted: Wanted, follow: Follow) -> Rule<()> {
        if self.recovering || next.contains(self.current()) {
            return Ok(());
        }
        self.report(self.peek_token(0), wanted)?;
        let until = next.union(follow.recover);
        while self.current() != Kind::End && !until.contains(self.current()) {
            self.advance();
        }
        Ok(())
    }

    /// Ends the rule: the token that is `ahead` does not fit.
    pub(super) fn fail(&mut self, ahead: usize, wanted: Wanted, follow: Follow) -> Rule<()> {
        self.seen = self.seen.max(self.at + ahead);
        self.report(self.peek_token(ahead), wanted)?;
        self.recover(follow)
    }

    /// Takes the token `kind`, behind which come `after`; where it is not there, it is as if it was, with
    /// a finding, or the rule ends, which is told by `None`.
    pub(super) fn expect(
        &mut self,
        kind: Kind,
        after: TokenSet,
        wanted: Wanted,
        follow: Follow,
    ) -> Rule<Option<Token>> {
        if self.current() == kind {
            return Ok(Some(self.take()));
        }
        self.count_recovery()?;
        if self.drop_token(TokenSet::of(&[kind]), wanted)? {
            return Ok(Some(self.take()));
        }
        let current = self.peek_token(0);
        if after.contains(current.kind) {
            self.report(current, wanted)?;
            return Ok(Some(current));
        }
        self.fail(0, wanted, follow)?;
        Ok(None)
    }

    /// Drops the current token where the next one fits.
    fn drop_token(&mut self, next: TokenSet, wanted: Wanted) -> Rule<bool> {
        if !next.contains(self.peek(1)) {
            return Ok(false);
        }
        self.report(self.peek_token(0), wanted)?;
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

    /// Passes over the text up to what may follow.
    fn recover(&mut self, follow: Follow) -> Rule<()> {
        self.count_recovery()?;
        let mut n_passed = 0;
        if self.last_error == Some(self.at) && self.error_states.contains(&self.state) {
            // The same error at the same place: without a step ahead this would have no end.
            self.pass_over(&mut n_passed)?;
        }
        self.last_error = Some(self.at);
        self.error_states.push(self.state);
        while self.current() != Kind::End && !follow.recover.contains(self.current()) {
            self.pass_over(&mut n_passed)?;
        }
        Ok(())
    }

    fn pass_over(&mut self, n_passed: &mut u32) -> Rule<()> {
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
