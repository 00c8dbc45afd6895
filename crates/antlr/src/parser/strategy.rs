//! Error strategy of the generated parser for a token that does not fit: its message, and how it recovers.
//!
//! One token too many is dropped and one too few made up, each with a message; otherwise the rule ends, and
//! tokens are passed over up to one that may come behind any of the active rules. Until a token fits again,
//! nothing further is said.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `error_strategy.go` (`DefaultErrorStrategy`), `atn.go`
//! (`getExpectedTokens`); cel-go `parser/parser.go` (`recoveryLimitErrorStrategy`, `SyntaxError`).

use super::{Parser, Stop};
use crate::graph::{Edge, GRAPH, StateId, StateKind};
use crate::names;
use cel::syntax::GrammarError;
use cel::syntax::token::{Kind, Token, TokenSet};
use cel::syntax::{ERROR_RECOVERY_LIMIT, ERROR_REPORTING_LIMIT, RECOVERY_LOOKAHEAD_LIMIT};

/// A rule that does not fit.
pub(crate) enum Failure {
    /// The current token is none of those expected.
    Mismatch,
    /// No way on takes the tokens from the first to the last.
    NoViable { first: Token, last: Token },
}

/// Why parsing ends before the text does.
pub(crate) enum Abort {
    /// It has been said.
    Reported,
    /// A limit of the expression as a whole, with what is said about it.
    Limit(String),
}

/// State of error recovery.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// True if no token has fitted since the last error.
    is_active: bool,
    /// The token at which the last error was recovered from.
    last_at: Option<usize>,
    /// The states in which that was, since a token has fitted.
    states: Vec<StateId>,
    n_attempts: u32,
}

impl Recovery {
    /// A token fits.
    pub(crate) fn end(&mut self) {
        self.is_active = false;
        self.last_at = None;
        self.states.clear();
    }
}

impl Parser<'_> {
    /// Adds an error.
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

    /// Says that the current rule does not fit.
    pub(crate) fn report(&mut self, failure: &Failure) -> Result<(), Abort> {
        if self.recovery.is_active {
            return Ok(());
        }
        self.recovery.is_active = true;
        match *failure {
            Failure::Mismatch => {
                let found = self.shown();
                let expected = names::of_set(self.expected());
                self.notify_here(format!("mismatched input {found} expecting {expected}"))
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

    /// Looks whether the current token may come next; if it may not, it is dropped, or the rule ends.
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

    /// Takes the token that is wanted although it is not the current one, or the rule ends.
    pub(crate) fn recover_inline(&mut self) -> Result<(), Stop> {
        self.count_attempt()?;
        if self.drop_token()? {
            self.consume()?;
            return Ok(());
        }
        let behind = match GRAPH.state(self.state).edges.first() {
            Some(&Edge::Token(_, behind)) => behind,
            _ => self.state,
        };
        if self.expected_at(behind).contains(self.stream.current()) {
            self.report_missing()?;
            return Ok(());
        }
        Err(Stop::Failed(Failure::Mismatch))
    }

    /// Passes over the text up to what may come behind any of the active rules.
    pub(crate) fn recover(&mut self) -> Result<(), Abort> {
        self.count_attempt()?;
        let mut n_passed = 0;
        let at = Some(self.stream.at());
        if self.recovery.last_at == at && self.recovery.states.contains(&self.state) {
            // The same error again: without a step ahead this would have no end.
            self.pass_over(&mut n_passed)?;
        }
        self.recovery.last_at = Some(self.stream.at());
        self.recovery.states.push(self.state);
        let until = self.recovery_set();
        while self.is_before(until) {
            self.pass_over(&mut n_passed)?;
        }
        Ok(())
    }

    fn pass_over(&mut self, n_passed: &mut u32) -> Result<(), Abort> {
        if *n_passed >= RECOVERY_LOOKAHEAD_LIMIT {
            return Err(Abort::Limit(format!(
                "error recovery token lookahead limit exceeded: {RECOVERY_LOOKAHEAD_LIMIT}"
            )));
        }
        *n_passed += 1;
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

    /// Drops the current token if the one behind it is expected.
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
        let found = self.shown();
        let expected = names::of_set(self.expected());
        self.notify_here(format!("extraneous input {found} expecting {expected}"))
    }

    fn report_missing(&mut self) -> Result<(), Abort> {
        if self.recovery.is_active {
            return Ok(());
        }
        self.recovery.is_active = true;
        let found = self.shown();
        let expected = names::of_set(self.expected());
        self.notify_here(format!("missing {expected} at {found}"))
    }

    fn notify_here(&mut self, message: String) -> Result<(), Abort> {
        self.notify(self.stream.peek(0).offset, message)
    }

    fn shown(&self) -> String {
        names::of_token(self.stream.peek(0), self.stream.text)
    }

    fn is_before(&self, until: TokenSet) -> bool {
        let current = self.stream.current();
        current != Kind::End && !until.contains(current)
    }

    /// Returns the tokens that may come next.
    fn expected(&self) -> TokenSet {
        self.expected_at(self.state)
    }

    /// Returns the tokens that may come next at `state` of the current rule: where the rule may end
    /// there, also those behind its call, and so on.
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
                None => return expected.union(TokenSet::of(&[Kind::End])),
            }
        }
        expected
    }

    /// Returns the tokens that may come behind any of the active rules within the rule that called it.
    fn recovery_set(&self) -> TokenSet {
        self.frames
            .iter()
            .filter_map(|frame| frame.follow)
            .fold(TokenSet::NONE, |set, follow| {
                set.union(GRAPH.state(follow).next)
            })
    }
}
