//! Predicts an alternative with unlimited lookahead (SLL prediction).
//!
//! Each alternative is simulated with a stack of the rules that it has entered. If an alternative leaves the rule that
//! contains the decision, the simulation continues after every call of that rule (SLL).
//!
//! For ambiguous alternatives, ANTLR repeats the prediction with the actual calls (LL). In this grammar only `-1` is
//! ambiguous: it is a literal, or the negation of a literal. Both alternatives continue in the same way, so the
//! repetition is unnecessary: the first alternative is taken.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `parser_atn_simulator.go` (`execATN`, `computeReachSet`,
//! `closureWork`, `getSynValidOrSemInvalidAltThatFinishedDecisionEntryRule`).

use std::collections::{HashMap, HashSet};

use super::graph::{Edge, GRAPH, StateId, StateKind};
use cel::interrupt::checkpoint;
use cel::syntax::token::Kind;

pub(super) type Alternative = usize;

/// Index of a stack of return states in [`Stacks`].
type StackId = usize;

/// The empty stack, with which each configuration starts in the rule that contains the decision.
const BOTTOM: StackId = 0;

/// A configuration of the simulation: an alternative, and the state that it has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Config {
    alternative: Alternative,
    state: StateId,
    stack: StackId,
    /// True if the simulation has left the rule that contains the decision.
    outside: bool,
}

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

    fn pop(&self, stack: StackId) -> Option<(StateId, StackId)> {
        self.all.get(stack.checked_sub(1)?).copied()
    }
}

/// Index of a set of configurations in [`Predictor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetId(usize);

/// The configurations of all alternatives after some tokens of the lookahead.
#[derive(Clone, Debug)]
struct ConfigSet {
    configs: Vec<Config>,
    /// The first alternative, if all alternatives have the same configurations. Further tokens cannot distinguish such
    /// alternatives.
    tied: Option<Alternative>,
}

/// Result of a prediction after one token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The alternative to take.
    Decided(Alternative),
    /// No alternative accepts the token.
    Stuck,
    Open(SetId),
}

/// Simulates the alternatives token by token. The results are cached, because the same configurations recur.
#[derive(Default)]
pub(super) struct Predictor {
    stacks: Stacks,
    sets: Vec<ConfigSet>,
    known: HashMap<Vec<Config>, SetId>,
    starts: HashMap<StateId, SetId>,
    steps: HashMap<(SetId, Kind), Step>,
}

impl Predictor {
    /// Returns the configurations at `state`, before the first token. The state must have several alternatives.
    pub(super) fn start(&mut self, state: StateId) -> SetId {
        if let Some(set) = self.starts.get(&state) {
            return *set;
        }
        let starts = GRAPH.state(state).edges.iter().enumerate();
        let starts = starts.filter_map(|(alternative, edge)| match *edge {
            Edge::Free(state) => Some(Config {
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

    /// Advances the alternatives of `set` by `token`, and drops the alternatives that do not accept the token.
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
        for config in self.configs(set) {
            for edge in &GRAPH.state(config.state).edges {
                if let Edge::Token(tokens, to) = *edge
                    && tokens.contains(token)
                {
                    taken.push(Config {
                        state: to,
                        ..*config
                    });
                }
            }
        }
        let Some(first) = taken.first().map(|config| config.alternative) else {
            return Step::Stuck;
        };
        if taken.iter().all(|config| config.alternative == first) {
            return Step::Decided(first);
        }
        let set = self.spread(taken);
        let tied = self.sets.get(set.0).and_then(|set| set.tied);
        tied.map_or(Step::Open(set), Step::Decided)
    }

    fn configs(&self, set: SetId) -> &[Config] {
        self.sets
            .get(set.0)
            .map_or(&[], |set| set.configs.as_slice())
    }

    /// Returns the first alternative of `set` that has left the rule that contains the decision. If the alternative
    /// turns out to be invalid, a calling rule reports the mismatch.
    pub(super) fn outside(&self, set: SetId) -> Option<Alternative> {
        let outside = self.configs(set).iter().filter(|config| config.outside);
        outside.map(|config| config.alternative).min()
    }

    fn spread(&mut self, mut open: Vec<Config>) -> SetId {
        let (mut seen, mut configs) = (HashSet::new(), Vec::new());
        while let Some(config) = open.pop() {
            checkpoint();
            if !seen.insert(config) {
                continue;
            }
            let state = GRAPH.state(config.state);
            if state.kind == StateKind::RuleStop {
                self.leave(config, &mut open, &mut configs);
                continue;
            }
            for edge in &state.edges {
                match *edge {
                    Edge::Free(state) => open.push(Config { state, ..config }),
                    Edge::Token(..) => configs.push(config),
                    Edge::Call { rule, follow, .. } => open.push(Config {
                        state: GRAPH.start(rule),
                        stack: self.stacks.push(follow, config.stack),
                        ..config
                    }),
                }
            }
        }
        configs.sort_unstable();
        if let Some(set) = self.known.get(&configs) {
            return *set;
        }
        let set = SetId(self.sets.len());
        self.known.insert(configs.clone(), set);
        let tied = tied(&configs);
        self.sets.push(ConfigSet { configs, tied });
        set
    }

    /// Leaves the rule that ends at `config`. Continues after the rule's call. If the stack is empty, continues after
    /// every call of the rule.
    fn leave(&self, config: Config, open: &mut Vec<Config>, configs: &mut Vec<Config>) {
        if let Some((state, stack)) = self.stacks.pop(config.stack) {
            open.push(Config {
                state,
                stack,
                ..config
            });
            return;
        }
        let follows = GRAPH.follows(config.state);
        if follows.is_empty() {
            // The outermost rule ends at the end of the source, so no state follows.
            configs.push(config);
        }
        open.extend(follows.iter().map(|&state| Config {
            state,
            outside: true,
            ..config
        }));
    }
}

/// Returns the first alternative if there are several and all of them have the same configurations.
fn tied(configs: &[Config]) -> Option<Alternative> {
    let mut by_alternative: Vec<(Alternative, HashSet<(StateId, StackId)>)> = Vec::new();
    for config in configs {
        let configuration = (config.state, config.stack);
        match by_alternative
            .iter_mut()
            .find(|(alternative, _)| *alternative == config.alternative)
        {
            Some((_, configs)) => {
                configs.insert(configuration);
            }
            None => by_alternative.push((config.alternative, HashSet::from([configuration]))),
        }
    }
    let ((first, configurations), rest) = by_alternative.split_first()?;
    let is_tied = rest.iter().all(|(_, configs)| configs == configurations);
    (is_tied && !rest.is_empty()).then(|| {
        rest.iter()
            .map(|(alternative, _)| *alternative)
            .fold(*first, Alternative::min)
    })
}
