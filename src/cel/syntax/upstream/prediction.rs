//! Which of several ways to go, found by following them all as far as it takes.
//!
//! Each way is followed with a stack of the rules it has entered; what is behind the rule in which the
//! choice is made may be anything that is behind a call of that rule. ANTLR then looks once more, with the
//! calls that there are in fact, if ways cannot be told apart; in this grammar that is so of `-1` alone,
//! which is a literal and the negation of one and the same in what may follow, so that the first way is
//! taken in any case.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `parser_atn_simulator.go` (`execATN`, `computeReachSet`,
//! `closureWork`, `getSynValidOrSemInvalidAltThatFinishedDecisionEntryRule`).

use std::collections::{HashMap, HashSet};

use super::graph::{Edge, GRAPH, StateId, StateKind};
use crate::cel::syntax::token::Kind;

/// The number of a way, from 0.
pub(super) type Way = usize;

/// A stack of the states to return to; [`Stacks`] has what it is made of.
type StackId = usize;

/// The stack of the rule in which the choice is made.
const BOTTOM: StackId = 0;

/// A place to which a way has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    way: Way,
    state: StateId,
    stack: StackId,
    /// Whether the way has left the rule in which the choice is made.
    outside: bool,
}

/// The stacks that there are, each once.
#[derive(Default)]
struct Stacks {
    all: Vec<(StateId, StackId)>,
    known: HashMap<(StateId, StackId), StackId>,
}

impl Stacks {
    fn push(&mut self, state: StateId, below: StackId) -> StackId {
        let Self { all, known } = self;
        *known.entry((state, below)).or_insert_with(|| {
            all.push((state, below));
            all.len()
        })
    }

    /// The state on top of `stack` and the rest; nothing at the bottom.
    fn pop(&self, stack: StackId) -> Option<(StateId, StackId)> {
        self.all.get(stack.checked_sub(1)?).copied()
    }
}

/// Follows the ways on from a state, token by token.
pub(super) struct Prediction {
    places: Vec<Place>,
    stacks: Stacks,
}

/// What is known after a token.
pub(super) enum Step {
    /// The way to go.
    Decided(Way),
    /// No way takes the token.
    Stuck,
    /// Another token is needed.
    Open,
}

impl Prediction {
    /// Starts at `state`, where there are several ways.
    pub(super) fn new(state: StateId) -> Self {
        let mut stacks = Stacks::default();
        let starts = GRAPH.state(state).edges.iter().enumerate();
        let starts = starts.filter_map(|(way, edge)| match *edge {
            Edge::Free(state) => Some(Place {
                way,
                state,
                stack: BOTTOM,
                outside: false,
            }),
            _ => None,
        });
        let places = spread(starts.collect(), &mut stacks);
        Self { places, stacks }
    }

    /// Follows the ways that take `token`; if none does, the prediction stays as it is.
    pub(super) fn step(&mut self, token: Kind) -> Step {
        let mut taken = Vec::new();
        for place in &self.places {
            for edge in &GRAPH.state(place.state).edges {
                if let Edge::Token(tokens, to) = *edge
                    && tokens.contains(token)
                {
                    taken.push(Place { state: to, ..*place });
                }
            }
        }
        let Some(first) = taken.first().map(|place| place.way) else {
            return Step::Stuck;
        };
        if taken.iter().all(|place| place.way == first) {
            return Step::Decided(first);
        }
        self.places = spread(taken, &mut self.stacks);
        self.in_doubt().map_or(Step::Open, Step::Decided)
    }

    /// The first way, if all are at the same places.
    fn in_doubt(&self) -> Option<Way> {
        let mut by_way: Vec<(Way, HashSet<(StateId, StackId)>)> = Vec::new();
        for place in &self.places {
            let at = (place.state, place.stack);
            match by_way.iter_mut().find(|(way, _)| *way == place.way) {
                Some((_, places)) => {
                    places.insert(at);
                }
                None => by_way.push((place.way, HashSet::from([at]))),
            }
        }
        let (first, rest) = by_way.split_first()?;
        rest.iter()
            .all(|(_, places)| *places == first.1)
            .then(|| by_way.iter().map(|(way, _)| *way).min())
            .flatten()
    }

    /// The first way that has left the rule in which the choice is made: it may be the right one, and what
    /// does not fit is the business of another rule.
    pub(super) fn outside(&self) -> Option<Way> {
        let outside = self.places.iter().filter(|place| place.outside);
        outside.map(|place| place.way).min()
    }
}

/// All places before a token to which one comes from `open` without one.
fn spread(mut open: Vec<Place>, stacks: &mut Stacks) -> Vec<Place> {
    let (mut seen, mut places) = (HashSet::new(), Vec::new());
    while let Some(place) = open.pop() {
        if !seen.insert(place) {
            continue;
        }
        let state = GRAPH.state(place.state);
        if state.kind == StateKind::RuleStop {
            if let Some((state, stack)) = stacks.pop(place.stack) {
                open.push(Place {
                    state,
                    stack,
                    ..place
                });
                continue;
            }
            let follows = GRAPH.follows(place.state);
            open.extend(follows.iter().map(|&state| Place {
                state,
                outside: true,
                ..place
            }));
        }
        let mut before_token = state.edges.is_empty() && GRAPH.follows(place.state).is_empty();
        for edge in &state.edges {
            match *edge {
                Edge::Free(state) => open.push(Place { state, ..place }),
                Edge::Token(..) => before_token = true,
                Edge::Call { rule, follow, .. } => open.push(Place {
                    state: GRAPH.start(rule),
                    stack: stacks.push(follow, place.stack),
                    ..place
                }),
            }
        }
        if before_token {
            places.push(place);
        }
    }
    places
}
