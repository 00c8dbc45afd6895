//! Simulates ANTLR's generated parser on the state graph and collects its syntax errors.
//!
//! The simulation builds no syntax tree. The active rules are on an explicit stack, so deeply nested expressions do not
//! overflow the stack of the thread.
//!
//! Source: cel-go `parser/gen/cel_parser.go`; `github.com/antlr4-go/antlr/v4` `parser.go` (`Match`,
//! `EnterRule`, `ExitRule`, `PushNewRecursionContext`, `UnrollRecursionContexts`); cel-go
//! `parser/parser.go` (`recursionListener`).

mod strategy;

use super::grammar::{N_RULES, Rule};
use super::graph::{Choice, Edge, GRAPH, State, StateId, StateKind};
use super::prediction::{Alternative, Predictor, Step};
use super::stream::Stream;
use cel::syntax::MAX_RECURSION_DEPTH;
use cel::syntax::token::{Kind, Token, TokenSet};
use cel::syntax::{GrammarError, GrammarErrors};
use strategy::{Abort, Failure, Recovery};

/// An active rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    rule: Rule,
    /// The minimum precedence in the loop of the rule.
    precedence: u8,
    /// The state after the call. `None` for the first rule.
    pub(super) follow: Option<StateId>,
}

pub(super) struct Parser<'t> {
    pub(super) stream: Stream<'t>,
    /// The current state, which determines the expected tokens in messages.
    pub(super) state: StateId,
    /// The active rules, outermost first.
    pub(super) frames: Vec<Frame>,
    pub(super) recovery: Recovery,
    pub(super) outcome: GrammarErrors,
    predictor: Predictor,
    /// The number of token lookups, which measures the cost of the parse.
    #[cfg(test)]
    pub(super) n_looks: usize,
    /// The number of active calls of each rule. The recursion limit applies to these numbers.
    active: [u32; N_RULES],
}

/// The reason why a step has no next state.
pub(super) enum Stop {
    /// The current rule does not match.
    Failed(Failure),
    /// Parsing ends.
    Aborted(Abort),
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Self {
        Self::Aborted(abort)
    }
}

impl<'t> Parser<'t> {
    pub(super) fn new(stream: Stream<'t>) -> Self {
        Self {
            stream,
            state: 0,
            frames: Vec::new(),
            recovery: Recovery::default(),
            outcome: GrammarErrors::default(),
            predictor: Predictor::default(),
            #[cfg(test)]
            n_looks: 0,
            active: [0; N_RULES],
        }
    }

    pub(super) fn run(&mut self) {
        match self.walk() {
            Ok(()) => self.outcome.is_complete = true,
            Err(Abort::Reported) => {}
            Err(Abort::Limit(message)) => {
                self.outcome.errors.push(GrammarError { at: None, message });
            }
        }
    }

    fn walk(&mut self) -> Result<(), Abort> {
        // Like ANTLR, reads the first token before it enters the first rule.
        self.look(0)?;
        let mut id = self.call(Rule::Start, 0, None)?;
        // True if the last state was a `LoopBack` state. Such a state has already checked the next token.
        let mut is_again = false;
        loop {
            let outcome = match GRAPH.state(id).kind {
                StateKind::RuleStop => match self.return_() {
                    Some(follow) => Ok(follow),
                    None => return Ok(()),
                },
                _ => self.step(id, is_again),
            };
            is_again = GRAPH.state(id).kind == StateKind::LoopBack;
            id = match outcome {
                Ok(next) => next,
                Err(Stop::Aborted(abort)) => return Err(abort),
                Err(Stop::Failed(failure)) => {
                    self.report(&failure)?;
                    self.recover()?;
                    match self.return_() {
                        Some(follow) => follow,
                        None => return Ok(()),
                    }
                }
            };
        }
    }

    /// Moves from the state `id` to the next state, and returns the next state. `id` must not be the end of a rule.
    fn step(&mut self, id: StateId, is_again: bool) -> Result<StateId, Stop> {
        let state = GRAPH.state(id);
        let looks = match state.kind {
            StateKind::BlockStart
            | StateKind::LoopBack
            | StateKind::PlusBlockStart
            | StateKind::PlusLoopBack => true,
            StateKind::LoopEntry => !is_again,
            StateKind::LoopBlockStart => state.edges.len() > 1,
            StateKind::Basic | StateKind::BlockEnd | StateKind::LoopEnd | StateKind::RuleStop => {
                false
            }
        };
        if looks {
            self.state = id;
            self.sync()?;
        }
        let alternative = self.choose(id, state)?;
        let is_loop = matches!(state.choice, Choice::Precedence(_));
        if is_loop && alternative == 0 {
            self.exit_event();
        }
        let next = match state.edges.get(alternative) {
            Some(&Edge::Free(next)) => next,
            Some(&Edge::Token(tokens, next)) => {
                self.state = id;
                self.match_(tokens)?;
                next
            }
            Some(&Edge::Call {
                rule,
                precedence,
                follow,
            }) => {
                self.state = id;
                self.call(rule, precedence, Some(follow))?
            }
            None => id,
        };
        if state.kind == StateKind::LoopBlockStart && state.is_left_recursive {
            self.enter_event()?;
        }
        Ok(next)
    }

    fn call(
        &mut self,
        rule: Rule,
        precedence: u8,
        follow: Option<StateId>,
    ) -> Result<StateId, Abort> {
        self.frames.push(Frame {
            rule,
            precedence,
            follow,
        });
        self.enter_event()?;
        Ok(GRAPH.start(rule))
    }

    /// Leaves the current rule and returns the state after its call. Returns `None` for the first rule.
    fn return_(&mut self) -> Option<StateId> {
        self.exit_event();
        self.frames.pop()?.follow
    }

    fn count(&mut self) -> Option<&mut u32> {
        let rule = self.frames.last()?.rule;
        self.active.get_mut(rule as usize)
    }

    fn enter_event(&mut self) -> Result<(), Abort> {
        if let Some(count) = self.count() {
            *count += 1;
            if *count > MAX_RECURSION_DEPTH {
                return Err(Abort::Limit(format!(
                    "expression recursion limit exceeded: {MAX_RECURSION_DEPTH}"
                )));
            }
        }
        Ok(())
    }

    fn exit_event(&mut self) {
        if let Some(count) = self.count() {
            *count = count.saturating_sub(1);
        }
    }

    /// Returns the token at offset `ahead` from the current token. Also reports the lexical errors before this token.
    pub(super) fn look(&mut self, ahead: usize) -> Result<Token, Abort> {
        #[cfg(test)]
        {
            self.n_looks += 1;
        }
        while let Some(error) = self.stream.next_error(ahead) {
            let text = self.stream.error_text(error);
            let message = format!("token recognition error at: '{text}'");
            self.notify(error.offset, message)?;
        }
        Ok(self.stream.peek(ahead))
    }

    pub(super) fn consume(&mut self) -> Result<(), Abort> {
        self.stream.advance();
        self.look(0).map(|_| ())
    }

    fn match_(&mut self, tokens: TokenSet) -> Result<(), Stop> {
        if tokens.contains(self.stream.current()) {
            self.recovery.end();
            self.consume()?;
            return Ok(());
        }
        self.recover_inline()
    }

    fn choose(&mut self, at: StateId, state: &State) -> Result<Alternative, Stop> {
        let current = self.look(0)?;
        match &state.choice {
            Choice::None => Ok(0),
            Choice::NextToken {
                alternatives,
                or_last,
            } => {
                match alternatives
                    .iter()
                    .position(|alternative| alternative.contains(current.kind))
                {
                    Some(alternative) => Ok(alternative),
                    None if *or_last => Ok(alternatives.len().saturating_sub(1)),
                    None => Err(Stop::Failed(Failure::NoViable {
                        first: current,
                        last: current,
                    })),
                }
            }
            Choice::Precedence(alternatives) => {
                let least = self.frames.last().map_or(0, |frame| frame.precedence);
                let fits = alternatives.iter().any(|(precedence, tokens)| {
                    *precedence >= least && tokens.contains(current.kind)
                });
                Ok(usize::from(!fits))
            }
            Choice::Prediction => self.predict(at),
        }
    }

    fn predict(&mut self, at: StateId) -> Result<Alternative, Stop> {
        let mut set = self.predictor.start(at);
        let mut ahead = 0;
        loop {
            let token = self.look(ahead)?;
            match self.predictor.step(set, token.kind) {
                Step::Decided(alternative) => return Ok(alternative),
                Step::Stuck => {
                    return self
                        .predictor
                        .outside(set)
                        .ok_or(Stop::Failed(Failure::NoViable {
                            first: self.stream.peek(0),
                            last: token,
                        }));
                }
                // The end token is the last one, so prediction cannot continue.
                Step::Open(_) if token.kind == Kind::End => {
                    return Ok(self.predictor.outside(set).unwrap_or(0));
                }
                Step::Open(next) => {
                    set = next;
                    ahead += 1;
                }
            }
        }
    }
}
