//! The grammar as a graph of states (ATN), with the lookahead tokens of each state.
//!
//! The states are those of ANTLR's own graph, because they affect the messages. A message lists the tokens that are
//! expected in the current state, and the parser checks the next token only in some states.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `atn_state.go`, `ll1_analyzer.go` (`Look`), `atn.go`
//! (`NextTokens`); ANTLR 4 `tool` `ParserATNFactory`, `TailEpsilonRemover`.

use std::sync::LazyLock;

use super::grammar::{N_RULES, Part, RULES, Rule};
use cel::syntax::token::TokenSet;

pub(super) type StateId = u16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    /// Before a token or a call of a rule.
    Basic,
    /// Before an optional part or alternatives.
    BlockStart,
    /// After an optional part or alternatives.
    BlockEnd,
    /// Before a loop. If the alternatives have precedences, the state's [`Choice`] contains the precedences.
    LoopEntry,
    /// Before each repetition of a loop.
    LoopBlockStart,
    /// After each repetition of a loop.
    LoopBack,
    /// Before a part that occurs at least once.
    PlusBlockStart,
    /// After each repetition of a part that occurs at least once.
    PlusLoopBack,
    /// After the last repetition of a loop or of a part that occurs at least once.
    LoopEnd,
    RuleStop,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Edge {
    /// An epsilon edge.
    Free(StateId),
    /// Consumes one of these tokens.
    Token(TokenSet, StateId),
    /// Calls a rule. `follow` is the state after the call.
    Call {
        rule: Rule,
        precedence: u8,
        follow: StateId,
    },
}

/// Selection of one of several alternatives.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    None,
    /// The next token selects the alternative. The token sets in `alternatives` are disjoint. If no set contains the
    /// token and `or_last` is true, the last alternative is taken.
    NextToken {
        alternatives: Box<[TokenSet]>,
        or_last: bool,
    },
    /// The next token and the precedence select the alternative.
    Precedence(Box<[(u8, TokenSet)]>),
    /// Prediction with unlimited lookahead selects the alternative.
    Prediction,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) kind: StateKind,
    pub(super) edges: Vec<Edge>,
    pub(super) choice: Choice,
    /// True if the state is before the recursive alternatives of a rule that is left-recursive in the grammar.
    pub(super) is_left_recursive: bool,
    /// The tokens that may come next within the rule.
    pub(super) next: TokenSet,
    /// True if the rule may end at this state.
    pub(super) may_end: bool,
}

#[derive(Debug)]
pub(super) struct Graph {
    states: Vec<State>,
    starts: [StateId; N_RULES],
    /// For each rule, the states after its calls.
    follows: [Vec<StateId>; N_RULES],
    /// Placeholder that [`Graph::state`] returns for an unknown state. Unknown states do not occur.
    nowhere: State,
}

pub(super) static GRAPH: LazyLock<Graph> = LazyLock::new(Graph::new);

impl Graph {
    pub(super) fn state(&self, id: StateId) -> &State {
        self.states.get(usize::from(id)).unwrap_or(&self.nowhere)
    }

    pub(super) fn start(&self, rule: Rule) -> StateId {
        self.starts.get(rule as usize).copied().unwrap_or(0)
    }

    /// Returns the states after all calls of the rule whose end state is `stop`.
    pub(super) fn follows(&self, stop: StateId) -> &[StateId] {
        // INVARIANT: the stop states are the first states, in the order of their rules. The index of a stop state is
        // therefore the index of its rule.
        self.follows
            .get(usize::from(stop))
            .map_or(&[], Vec::as_slice)
    }

    fn new() -> Self {
        let nowhere = State {
            kind: StateKind::RuleStop,
            edges: Vec::new(),
            choice: Choice::None,
            is_left_recursive: false,
            next: TokenSet::NONE,
            may_end: true,
        };
        let mut graph = Self {
            states: vec![nowhere.clone(); N_RULES],
            starts: [0; N_RULES],
            follows: std::array::from_fn(|_| Vec::new()),
            nowhere,
        };
        for (rule, parts) in RULES {
            let start = graph.sequence(parts, rule as StateId);
            if let Some(slot) = graph.starts.get_mut(rule as usize) {
                *slot = start;
            }
        }
        graph.look_ahead();
        graph.choose();
        graph
    }

    fn add(&mut self, kind: StateKind, edges: Vec<Edge>) -> StateId {
        let id = StateId::try_from(self.states.len()).unwrap_or(StateId::MAX);
        self.states.push(State {
            kind,
            edges,
            choice: Choice::None,
            is_left_recursive: false,
            next: TokenSet::NONE,
            may_end: false,
        });
        id
    }

    fn connect(&mut self, from: StateId, to: &[StateId]) {
        if let Some(state) = self.states.get_mut(usize::from(from)) {
            state.edges.extend(to.iter().map(|&to| Edge::Free(to)));
        }
    }

    /// Adds states for `parts`, followed by the existing state `to`. Returns the first state.
    fn sequence(&mut self, parts: &[Part], to: StateId) -> StateId {
        parts.iter().rev().fold(to, |to, part| self.part(*part, to))
    }

    fn part(&mut self, part: Part, to: StateId) -> StateId {
        match part {
            Part::Token(kind) => self.token(TokenSet::new(&[kind]), to),
            Part::OneOf(kinds) => self.token(TokenSet::new(kinds), to),
            Part::Call(rule) => self.call(rule, 0, to),
            Part::CallAt(rule, precedence) => self.call(rule, precedence, to),
            Part::Maybe(parts) => {
                let end = self.add(StateKind::BlockEnd, vec![Edge::Free(to)]);
                let first = self.sequence(parts, end);
                self.add(
                    StateKind::BlockStart,
                    vec![Edge::Free(first), Edge::Free(end)],
                )
            }
            Part::Either(alternatives) => {
                let end = self.add(StateKind::BlockEnd, vec![Edge::Free(to)]);
                let start = self.add(StateKind::BlockStart, Vec::new());
                for parts in alternatives {
                    let first = self.sequence(parts, end);
                    self.connect(start, &[first]);
                }
                start
            }
            Part::Repeat(parts) => {
                let (entry, back) = self.repeated();
                let first = self.sequence(parts, back);
                let block = self.add(StateKind::LoopBlockStart, vec![Edge::Free(first)]);
                let end = self.add(StateKind::LoopEnd, vec![Edge::Free(to)]);
                self.connect(entry, &[block, end]);
                entry
            }
            Part::Loop(alternatives) => {
                let (entry, back) = self.repeated();
                let block = self.add(StateKind::LoopBlockStart, Vec::new());
                let mut precedences = Vec::new();
                for (precedence, parts) in alternatives {
                    let first = self.sequence(parts, back);
                    self.connect(block, &[first]);
                    precedences.push((*precedence, self.first_tokens(first)));
                }
                if let Some(state) = self.states.get_mut(usize::from(block)) {
                    state.is_left_recursive = true;
                }
                let end = self.add(StateKind::LoopEnd, vec![Edge::Free(to)]);
                self.connect(entry, &[block, end]);
                if let Some(state) = self.states.get_mut(usize::from(entry)) {
                    state.choice = Choice::Precedence(precedences.into());
                }
                entry
            }
            Part::AtLeastOnce(parts) => {
                let end = self.add(StateKind::LoopEnd, vec![Edge::Free(to)]);
                let back = self.add(StateKind::PlusLoopBack, Vec::new());
                let first = self.sequence(parts, back);
                let block = self.add(StateKind::PlusBlockStart, vec![Edge::Free(first)]);
                self.connect(back, &[first, end]);
                block
            }
        }
    }

    fn token(&mut self, tokens: TokenSet, to: StateId) -> StateId {
        self.add(StateKind::Basic, vec![Edge::Token(tokens, to)])
    }

    fn call(&mut self, rule: Rule, precedence: u8, follow: StateId) -> StateId {
        if let Some(follows) = self.follows.get_mut(rule as usize) {
            follows.push(follow);
        }
        let call = Edge::Call {
            rule,
            precedence,
            follow,
        };
        self.add(StateKind::Basic, vec![call])
    }

    /// Adds the state before a repeated part and the state after it.
    fn repeated(&mut self) -> (StateId, StateId) {
        let entry = self.add(StateKind::LoopEntry, Vec::new());
        let back = self.add(StateKind::LoopBack, vec![Edge::Free(entry)]);
        (entry, back)
    }

    /// Returns the tokens on the edge that leaves `state`. This edge must be a token edge.
    fn first_tokens(&self, state: StateId) -> TokenSet {
        match self.state(state).edges.as_slice() {
            [Edge::Token(tokens, _)] => *tokens,
            _ => TokenSet::NONE,
        }
    }

    fn look_ahead(&mut self) {
        for index in 0..self.states.len() {
            let id = StateId::try_from(index).unwrap_or(StateId::MAX);
            let (next, may_end) = self.look(id, false);
            if let Some(state) = self.states.get_mut(index) {
                state.next = next;
                state.may_end = may_end;
            }
        }
    }

    /// Returns the tokens that may come next at `from`, and true if the rule may end at `from`. If `beyond` is true,
    /// the tokens include those that may follow calls of the rule.
    fn look(&self, from: StateId, beyond: bool) -> (TokenSet, bool) {
        let (mut next, mut may_end) = (TokenSet::NONE, false);
        let (mut open, mut seen) = (vec![from], Vec::new());
        while let Some(id) = open.pop() {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let state = self.state(id);
            if state.kind == StateKind::RuleStop {
                may_end = true;
                if beyond {
                    open.extend(self.follows(id));
                }
            }
            for edge in &state.edges {
                match *edge {
                    Edge::Free(to) => open.push(to),
                    Edge::Token(tokens, _) => next = next.union(tokens),
                    // The called rule consumes at least one token, so the state after the call is irrelevant.
                    Edge::Call { rule, .. } => open.push(self.start(rule)),
                }
            }
        }
        (next, may_end)
    }

    /// Sets the [`Choice`] of each state: by the next token if that is sufficient, otherwise by prediction.
    ///
    /// Source: ANTLR 4 `tool` `ParserFactory` (`LL1OptionalBlock` and others against `*Block`).
    fn choose(&mut self) {
        for index in 0..self.states.len() {
            let Some(state) = self.states.get(index) else {
                return;
            };
            if state.edges.len() < 2 || matches!(state.choice, Choice::Precedence(_)) {
                continue;
            }
            let alternatives: Vec<_> = state
                .edges
                .iter()
                .map(|edge| match edge {
                    Edge::Free(to) => self.look(*to, true).0,
                    _ => TokenSet::NONE,
                })
                .collect();
            let mut all = TokenSet::NONE;
            let mut is_enough = state.kind != StateKind::LoopBlockStart;
            for alternative in &alternatives {
                is_enough &= !all.meets(*alternative);
                all = all.union(*alternative);
            }
            let or_last = match state.edges.last() {
                Some(Edge::Free(last)) => matches!(
                    self.state(*last).kind,
                    StateKind::BlockEnd | StateKind::LoopEnd
                ),
                _ => false,
            };
            let choice = if is_enough {
                Choice::NextToken {
                    alternatives: alternatives.into(),
                    or_last,
                }
            } else {
                Choice::Prediction
            };
            if let Some(state) = self.states.get_mut(index) {
                state.choice = choice;
            }
        }
    }
}
