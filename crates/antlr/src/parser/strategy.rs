//! The error strategy of the generated parser: the message for an unexpected token, and the recovery.
//!
//! A single extra token is dropped. A single missing token is treated as present. For any other error, the current rule
//! ends, and tokens are skipped until one may follow an active rule. After an error, further errors are suppressed
//! until a token matches.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `error_strategy.go` (`DefaultErrorStrategy`), `atn.go`
//! (`getExpectedTokens`); cel-go `parser/parser.go` (`recoveryLimitErrorStrategy`, `SyntaxError`).

use super::{Parser, Stop};
use crate::graph::{Edge, GRAPH, StateId, StateKind};
use crate::names;
use cel::syntax::GrammarError;
use cel::syntax::token::{Kind, Token, TokenSet};
use cel::syntax::{ERROR_RECOVERY_LIMIT, ERROR_REPORTING_LIMIT, RECOVERY_LOOKAHEAD_LIMIT};

pub(crate) enum Failure {
    /// The current token is not expected.
    Mismatch,
    /// No alternative accepts the tokens from `first` to `last`.
    NoViable { first: Token, last: Token },
}

/// The reason why parsing ends before the end of the source.
pub(crate) enum Abort {
    /// The parser has already reported the reason.
    Reported,
    /// The expression exceeds a limit. The string is the message.
    Limit(String),
}

#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// True if no token has matched since the last error.
    is_active: bool,
    /// The index of the current token at the last recovery.
    last_at: Option<usize>,
    /// The states of the recoveries since the last matching token.
    states: Vec<StateId>,
    n_attempts: u32,
}

impl Recovery {
    /// Ends the recovery after a matching token.
    pub(crate) fn end(&mut self) {
        self.is_active = false;
        self.last_at = None;
        self.states.clear();
    }
}

impl Parser<'_> {
    /// Adds an error at `offset`. Returns [`Abort`] if there are more than [`ERROR_REPORTING_LIMIT`] errors.
    pub(crate) fn notify(&mut self, offset: u32, message: String) -> Result<(), Abort> {
        let is_too_many = self.outcome.errors.len() >= ERROR_REPORTING_LIMIT;
        let message = if is_too_many {
            format!("More than {ERROR_REPORTING_LIMIT} syntax errors")
        } else {
            names::with_reserved_words(message)
        };
        self.outcome.errors.push(GrammarError {
            at: Some(offset),
            message: format!("Syntax error: {message}"),
        });
        if is_too_many {
            return Err(Abort::Reported);
        }
        Ok(())
    }

    pub(crate) fn report(&mut self, failure: &Failure) -> Result<(), Abort> {
        if self.recovery.is_active {
            return Ok(());
        }
        self.recovery.is_active = true;
        match *failure {
            Failure::Mismatch => {
                let actual = self.shown();
                let expected = names::set_text(self.expected());
                self.notify_here(format!("mismatched input {actual} expecting {expected}"))
            }
            Failure::NoViable { first, last } => {
                let input = if first.kind == Kind::End {
                    names::quoted(names::END)
                } else {
                    names::quoted(&self.stream.text_between(first, last))
                };
                self.notify(last.offset, format!("{}{input}", names::NO_VIABLE))
            }
        }
    }

    /// Checks the current token. If the token is unexpected, drops it, skips several tokens, or ends the rule.
    pub(crate) fn sync(&mut self) -> Result<(), Stop> {
        if self.recovery.is_active {
            return Ok(());
        }
        let state = GRAPH.state(self.state);
        if state.may_end || state.next.contains(self.stream.current()) {
            return Ok(());
        }
        match state.kind {
            StateKind::BlockStart
            | StateKind::LoopBlockStart
            | StateKind::PlusBlockStart
            | StateKind::LoopEntry => {
                if self.drop_token()? {
                    Ok(())
                } else {
                    Err(Stop::Failed(Failure::Mismatch))
                }
            }
            StateKind::LoopBack | StateKind::PlusLoopBack => {
                self.report_unwanted()?;
                let until = self.expected().union(self.recovery_set());
                while self.is_before(until) {
                    self.consume()?;
                }
                Ok(())
            }
            StateKind::Basic | StateKind::BlockEnd | StateKind::LoopEnd | StateKind::RuleStop => {
                Ok(())
            }
        }
    }

    /// Recovers from a mismatched token. Drops the token, treats a missing token as present, or ends the rule.
    pub(crate) fn recover_inline(&mut self) -> Result<(), Stop> {
        self.count_attempt()?;
        if self.drop_token()? {
            self.consume()?;
            return Ok(());
        }
        let follow_state = match GRAPH.state(self.state).edges.first() {
            Some(&Edge::Token(_, follow_state)) => follow_state,
            _ => self.state,
        };
        if self
            .expected_at(follow_state)
            .contains(self.stream.current())
        {
            self.report_missing()?;
            return Ok(());
        }
        Err(Stop::Failed(Failure::Mismatch))
    }

    /// Skips tokens until one may follow an active rule.
    pub(crate) fn recover(&mut self) -> Result<(), Abort> {
        self.count_attempt()?;
        let mut n_skipped = 0;
        let index = Some(self.stream.at());
        if self.recovery.last_at == index && self.recovery.states.contains(&self.state) {
            // The same error occurs again at the same token. Skipping the token ensures progress.
            self.skip(&mut n_skipped)?;
        }
        self.recovery.last_at = Some(self.stream.at());
        self.recovery.states.push(self.state);
        let until = self.recovery_set();
        while self.is_before(until) {
            self.skip(&mut n_skipped)?;
        }
        Ok(())
    }

    fn skip(&mut self, n_skipped: &mut u32) -> Result<(), Abort> {
        if *n_skipped >= RECOVERY_LOOKAHEAD_LIMIT {
            return Err(Abort::Limit(format!(
                "error recovery token lookahead limit exceeded: {RECOVERY_LOOKAHEAD_LIMIT}"
            )));
        }
        *n_skipped += 1;
        self.consume()
    }

    fn count_attempt(&mut self) -> Result<(), Abort> {
        if self.recovery.n_attempts == ERROR_RECOVERY_LIMIT {
            self.notify_here(format!(
                "error recovery attempt limit exceeded: {ERROR_RECOVERY_LIMIT}"
            ))?;
            return Err(Abort::Reported);
        }
        self.recovery.n_attempts += 1;
        Ok(())
    }

    /// Drops the current token if the next token is expected. Returns true if a token was dropped.
    fn drop_token(&mut self) -> Result<bool, Abort> {
        let next = self.look(1)?;
        if !self.expected().contains(next.kind) {
            return Ok(false);
        }
        self.report_unwanted()?;
        self.consume()?;
        self.recovery.end();
        Ok(true)
    }

    fn report_unwanted(&mut self) -> Result<(), Abort> {
        if self.recovery.is_active {
            return Ok(());
        }
        self.recovery.is_active = true;
        let actual = self.shown();
        let expected = names::set_text(self.expected());
        self.notify_here(format!("extraneous input {actual} expecting {expected}"))
    }

    fn report_missing(&mut self) -> Result<(), Abort> {
        if self.recovery.is_active {
            return Ok(());
        }
        self.recovery.is_active = true;
        let actual = self.shown();
        let expected = names::set_text(self.expected());
        self.notify_here(format!("missing {expected} at {actual}"))
    }

    fn notify_here(&mut self, message: String) -> Result<(), Abort> {
        self.notify(self.stream.peek(0).offset, message)
    }

    fn shown(&self) -> String {
        names::token_text(self.stream.peek(0), self.stream.text)
    }

    fn is_before(&self, until: TokenSet) -> bool {
        let current = self.stream.current();
        current != Kind::End && !until.contains(current)
    }

    fn expected(&self) -> TokenSet {
        self.expected_at(self.state)
    }

    /// Returns the tokens that may come next at `state` of the current rule. If the rule may end at `state`, the tokens
    /// after its call are included. The same applies to the calling rules.
    fn expected_at(&self, state: StateId) -> TokenSet {
        let first = GRAPH.state(state);
        let (mut expected, mut may_end) = (first.next, first.may_end);
        let mut follows = self.frames.iter().rev().map(|frame| frame.follow);
        while may_end {
            match follows.next().flatten() {
                Some(follow) => {
                    let follow = GRAPH.state(follow);
                    expected = expected.union(follow.next);
                    may_end = follow.may_end;
                }
                None => return expected.union(TokenSet::new(&[Kind::End])),
            }
        }
        expected
    }

    /// Returns the tokens that may follow the calls of the active rules.
    fn recovery_set(&self) -> TokenSet {
        self.frames
            .iter()
            .filter_map(|frame| frame.follow)
            .fold(TokenSet::NONE, |set, follow| {
                set.union(GRAPH.state(follow).next)
            })
    }
}
