//! Walks through the graph as the generated parser goes through its rules, for the errors that it meets.
//!
//! No tree is made. The active rules are on a stack of its own, so that the walk takes no more of the
//! thread's stack for a deep text than for a flat one.
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
    /// Of what binds less tightly, nothing is taken in the loop of the rule.
    precedence: u8,
    /// The state behind the call; the first rule has none.
    pub(super) follow: Option<StateId>,
}

/// The state of one parse.
pub(super) struct Parser<'t> {
    pub(super) stream: Stream<'t>,
    /// The state by which it is known what was expected.
    pub(super) state: StateId,
    /// The active rules, the outermost first.
    pub(super) frames: Vec<Frame>,
    pub(super) recovery: Recovery,
    pub(super) outcome: GrammarErrors,
    predictor: Predictor,
    /// How often a token has been looked at: what the parse takes is in proportion.
    #[cfg(test)]
    pub(super) n_looks: usize,
    /// How often each rule is active.
    active: [u32; N_RULES],
}

/// Why the walk does not go on as it should.
pub(super) enum Stop {
    /// The current rule does not fit.
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

    /// Parses the text.
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
        // The first token is made before the first rule is entered.
        self.look(0)?;
        let mut at = self.call(Rule::Start, 0, None)?;
        // Whether a loop is entered from behind, where the next token has been looked at.
        let mut is_again = false;
        loop {
            let outcome = match GRAPH.state(at).kind {
                StateKind::RuleStop => match self.return_() {
                    Some(follow) => Ok(follow),
                    None => return Ok(()),
                },
                _ => self.step(at, is_again),
            };
            is_again = GRAPH.state(at).kind == StateKind::LoopBack;
            at = match outcome {
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

    /// The state behind `at`, which is not the end of a rule.
    fn step(&mut self, at: StateId, is_again: bool) -> Result<StateId, Stop> {
        let state = GRAPH.state(at);
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
            self.state = at;
            self.sync()?;
        }
        let alternative = self.choose(at, state)?;
        let is_loop = matches!(state.choice, Choice::Precedence(_));
        if is_loop && alternative == 0 {
            self.exit_event();
        }
        let next = match state.edges.get(alternative) {
            Some(&Edge::Free(next)) => next,
            Some(&Edge::Token(tokens, next)) => {
                self.state = at;
                self.match_(tokens)?;
                next
            }
            Some(&Edge::Call {
                rule,
                precedence,
                follow,
            }) => {
                self.state = at;
                self.call(rule, precedence, Some(follow))?
            }
            None => at,
        };
        if state.kind == StateKind::LoopBlockStart && state.is_left_recursive {
            self.enter_event()?;
        }
        Ok(next)
    }

    /// Enters `rule`.
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

    /// Leaves the current rule.
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

    /// The token that is `ahead` of the current one; what is no token before it is reported.
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

    /// Takes the current token.
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

    /// The alternative to take from `state`.
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
                // Behind the end there is nothing that could tell more.
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
