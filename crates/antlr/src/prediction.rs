//! Predicts the alternative to take with unlimited lookahead (SLL prediction).
//!
//! Each alternative is simulated with a stack of the rules it has entered. An alternative that leaves the rule of the
//! decision continues after every call of that rule (SLL). If alternatives are ambiguous, ANTLR repeats the prediction
//! with the actual calls (LL). In this grammar only `-1` is ambiguous: it is both a literal and a negated literal. Both
//! alternatives continue in the same way, so the first one is taken in any case.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `parser_atn_simulator.go` (`execATN`, `computeReachSet`,
//! `closureWork`, `getSynValidOrSemInvalidAltThatFinishedDecisionEntryRule`).

use std::collections::{HashMap, HashSet};

use super::graph::{Edge, GRAPH, StateId, StateKind};
use cel::interrupt::checkpoint;
use cel::syntax::token::Kind;

/// The index of an alternative.
pub(super) type Alternative = usize;

/// A stack of return states, by its index in [`Stacks`].
type StackId = usize;

/// The empty stack, for a path within the rule that contains the decision.
const BOTTOM: StackId = 0;

/// A configuration: the state that an alternative has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    alternative: Alternative,
    state: StateId,
    stack: StackId,
    /// True if the path has left the rule that contains the decision.
    outside: bool,
}

/// The interned stacks.
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

    /// Returns the state on top of `stack` and the rest, or `None` at the bottom.
    fn pop(&self, stack: StackId) -> Option<(StateId, StackId)> {
        self.all.get(stack.checked_sub(1)?).copied()
    }
}

/// The index of a set of configurations in [`Predictor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetId(usize);

/// The configurations of all alternatives after the same tokens.
#[derive(Clone, Debug)]
struct PlaceSet {
    places: Vec<Place>,
    /// The first alternative, if all alternatives have the same configurations, so that further tokens cannot
    /// distinguish them.
    tied: Option<Alternative>,
}

/// The state of the prediction after a token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The alternative to take.
    Decided(Alternative),
    /// No alternative accepts the token.
    Stuck,
    /// Another token is needed.
    Open(SetId),
}

/// Simulates the alternatives token by token, and caches the results, since the same configurations recur.
#[derive(Default)]
pub(super) struct Predictor {
    stacks: Stacks,
    sets: Vec<PlaceSet>,
    known: HashMap<Vec<Place>, SetId>,
    starts: HashMap<StateId, SetId>,
    steps: HashMap<(SetId, Kind), Step>,
}

impl Predictor {
    /// Returns the configurations before the first token at `state`, which has several alternatives.
    pub(super) fn start(&mut self, state: StateId) -> SetId {
        if let Some(set) = self.starts.get(&state) {
            return *set;
        }
        let starts = GRAPH.state(state).edges.iter().enumerate();
        let starts = starts.filter_map(|(alternative, edge)| match *edge {
            Edge::Free(state) => Some(Place {
                alternative,
                state,
                stack: BOTTOM,
                outside: false,
            }),
            _ => None,
        });
        let set = self.spread(starts.collect());
        self.starts.insert(state, set);
        set
    }

    /// Advances the alternatives of `set` that accept `token`.
    pub(super) fn step(&mut self, set: SetId, token: Kind) -> Step {
        checkpoint();
        if let Some(step) = self.steps.get(&(set, token)) {
            return *step;
        }
        let step = self.follow(set, token);
        self.steps.insert((set, token), step);
        step
    }

    fn follow(&mut self, set: SetId, token: Kind) -> Step {
        let mut taken = Vec::new();
        for place in self.places(set) {
            for edge in &GRAPH.state(place.state).edges {
                if let Edge::Token(tokens, to) = *edge
                    && tokens.contains(token)
                {
                    taken.push(Place {
                        state: to,
                        ..*place
                    });
                }
            }
        }
        let Some(first) = taken.first().map(|place| place.alternative) else {
            return Step::Stuck;
        };
        if taken.iter().all(|place| place.alternative == first) {
            return Step::Decided(first);
        }
        let set = self.spread(taken);
        let tied = self.sets.get(set.0).and_then(|set| set.tied);
        tied.map_or(Step::Open(set), Step::Decided)
    }

    fn places(&self, set: SetId) -> &[Place] {
        self.sets
            .get(set.0)
            .map_or(&[], |set| set.places.as_slice())
    }

    /// Returns the first alternative of `set` that has left the rule that contains the decision. The alternative may be
    /// valid; otherwise a calling rule reports the mismatch.
    pub(super) fn outside(&self, set: SetId) -> Option<Alternative> {
        let outside = self.places(set).iter().filter(|place| place.outside);
        outside.map(|place| place.alternative).min()
    }

    /// Computes the epsilon closure of `open`.
    fn spread(&mut self, mut open: Vec<Place>) -> SetId {
        let (mut seen, mut places) = (HashSet::new(), Vec::new());
        while let Some(place) = open.pop() {
            checkpoint();
            if !seen.insert(place) {
                continue;
            }
            let state = GRAPH.state(place.state);
            if state.kind == StateKind::RuleStop {
                self.leave(place, &mut open, &mut places);
                continue;
            }
            for edge in &state.edges {
                match *edge {
                    Edge::Free(state) => open.push(Place { state, ..place }),
                    Edge::Token(..) => places.push(place),
                    Edge::Call { rule, follow, .. } => open.push(Place {
                        state: GRAPH.start(rule),
                        stack: self.stacks.push(follow, place.stack),
                        ..place
                    }),
                }
            }
        }
        places.sort_unstable();
        if let Some(set) = self.known.get(&places) {
            return *set;
        }
        let set = SetId(self.sets.len());
        self.known.insert(places.clone(), set);
        let tied = tied(&places);
        self.sets.push(PlaceSet { places, tied });
        set
    }

    /// Leaves the rule that ends at `place`: continues after its call, or after all of its calls if the stack is empty.
    fn leave(&self, place: Place, open: &mut Vec<Place>, places: &mut Vec<Place>) {
        if let Some((state, stack)) = self.stacks.pop(place.stack) {
            open.push(Place {
                state,
                stack,
                ..place
            });
            return;
        }
        let follows = GRAPH.follows(place.state);
        if follows.is_empty() {
            // The first rule has ended, after the end of the text.
            places.push(place);
        }
        open.extend(follows.iter().map(|&state| Place {
            state,
            outside: true,
            ..place
        }));
    }
}

/// Returns the first alternative if there are several and all have the same configurations.
fn tied(places: &[Place]) -> Option<Alternative> {
    let mut by_alternative: Vec<(Alternative, HashSet<(StateId, StackId)>)> = Vec::new();
    for place in places {
        let configuration = (place.state, place.stack);
        match by_alternative
            .iter_mut()
            .find(|(alternative, _)| *alternative == place.alternative)
        {
            Some((_, places)) => {
                places.insert(configuration);
            }
            None => by_alternative.push((place.alternative, HashSet::from([configuration]))),
        }
    }
    let ((first, configurations), rest) = by_alternative.split_first()?;
    let is_tied = rest.iter().all(|(_, places)| places == configurations);
    (is_tied && !rest.is_empty()).then(|| {
        rest.iter()
            .map(|(alternative, _)| *alternative)
            .fold(*first, Alternative::min)
    })
}
