//! A matching machine like Go's. It reads the input by code points, and searches for patterns that are too large for
//! the engines of `regex-automata`.
//!
//! The machine's program has about one instruction for each part of the pattern. The time of a search is at most
//! proportional to the length of the program times the length of the input. The memory of a search is proportional to
//! the length of the program. A search can be interrupted.
//!
//! Source: Go `regexp/syntax/compile.go`, `regexp/syntax/simplify.go`, `regexp/exec.go`.

use std::collections::HashMap;
use std::ops::Range;

use super::class::Class;
use super::hir::cases_of;
use super::limits::Limits;
use super::ranges::Ranges;
use super::tree::{Flags, NodeId, NodeKind, Regex};

pub(super) const INSTRUCTION_BYTES: usize = size_of::<Instruction>();

/// Maximum bytes of a search per instruction, for two sets of states and a stack.
pub(super) const SEARCH_BYTES: usize =
    2 * (size_of::<State>() + size_of::<u32>()) + 2 * size_of::<u32>();

/// An instruction. Each target is the index of an instruction.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// Consumes this code point and continues with the next instruction.
    Char(char),
    AnyNotNewline,
    Any,
    /// Consumes a code point of the class with this index in `ranges`.
    Class(u32),
    /// Checks a condition at the current position, such as `^`. Consumes no code point.
    Look(Look),
    /// Continues with both instructions, preferring the first.
    Split(u32, u32),
    Jump(u32),
    Fail,
    Match,
}

#[derive(Clone, Copy, Debug)]
enum Look {
    BeginLine,
    EndLine,
    BeginText,
    EndText,
    WordBoundary,
    NoWordBoundary,
}

impl Look {
    fn holds(self, before: Option<char>, after: Option<char>) -> bool {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        match self {
            Self::BeginLine => before.is_none_or(|c| c == '\n'),
            Self::EndLine => after.is_none_or(|c| c == '\n'),
            Self::BeginText => before.is_none(),
            Self::EndText => after.is_none(),
            Self::WordBoundary => is_word(before) != is_word(after),
            Self::NoWordBoundary => is_word(before) == is_word(after),
        }
    }
}

/// A pending step of compiling a pattern.
enum Task {
    Node(NodeId),
    /// Emits a choice: match the next part, or skip it.
    Open {
        greedy: bool,
    },
    /// Ends the part of the last [`Task::Open`]. The choice of that task now skips to this point.
    Close,
    /// Ends a part that may be repeated. Emits a choice: jump back to the instruction `start`, or continue.
    Loop {
        start: usize,
        greedy: bool,
    },
    /// Compiles `part` and then a [`Task::Loop`] back to its start.
    OpenLoop {
        part: NodeId,
        greedy: bool,
    },
    /// Ends the part of a `*` repetition. Emits a jump back to the choice of the last [`Task::Open`], and closes that
    /// choice.
    CloseStar,
    /// Ends an alternative that is not the last one. Emits a jump to the end of the alternation.
    Or,
    OpenAlternatives,
    CloseAlternatives,
}

struct Compiler<'a> {
    regex: &'a Regex,
    program: Vec<Instruction>,
    tasks: Vec<Task>,
    /// Open choices: the index of the instruction, and true if the choice is greedy.
    open: Vec<(usize, bool)>,
    /// For each open alternation, the indices of the jumps to its end.
    ends: Vec<Vec<usize>>,
    ranges: Vec<Ranges>,
    /// Index of each class in `ranges`.
    classes: HashMap<&'a Class, u32>,
    /// Case variants of the code points in case-insensitive literals, as indices in `ranges`.
    cases: HashMap<u32, u32>,
    /// For each node, true if it can match the empty string.
    nullable: Vec<bool>,
}

impl Compiler<'_> {
    fn compile(mut self) -> (Vec<Instruction>, Vec<Ranges>) {
        self.tasks.push(Task::Node(self.regex.root()));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Node(id) => self.node(id),
                Task::Open { greedy } => {
                    self.open.push((self.program.len(), greedy));
                    self.program.push(Instruction::Fail);
                }
                Task::Close => self.close(),
                Task::OpenLoop { part, greedy } => {
                    let start = self.program.len();
                    self.tasks.push(Task::Loop { start, greedy });
                    self.tasks.push(Task::Node(part));
                }
                Task::Loop { start, greedy } => {
                    let next = self.program.len() + 1;
                    self.program.push(split(greedy, start, next));
                }
                Task::CloseStar => {
                    let start = self.open.last().map_or(0, |(at, _)| *at);
                    self.program.push(Instruction::Jump(target(start)));
                    self.close();
                }
                Task::Or => {
                    let end = self.program.len();
                    self.ends
                        .last_mut()
                        .into_iter()
                        .for_each(|ends| ends.push(end));
                    self.program.push(Instruction::Fail);
                    self.close();
                }
                Task::OpenAlternatives => self.ends.push(Vec::new()),
                Task::CloseAlternatives => {
                    let end = self.program.len();
                    for jump in self.ends.pop().unwrap_or_default() {
                        self.set(jump, Instruction::Jump(target(end)));
                    }
                }
            }
        }
        self.program.push(Instruction::Match);
        (self.program, self.ranges)
    }

    fn set(&mut self, at: usize, instruction: Instruction) {
        if let Some(place) = self.program.get_mut(at) {
            *place = instruction;
        }
    }

    fn close(&mut self) {
        if let Some((at, greedy)) = self.open.pop() {
            let end = self.program.len();
            self.set(at, split(greedy, at + 1, end));
        }
    }

    /// Pushes tasks such that they are executed in the given order.
    fn push(&mut self, tasks: Vec<Task>) {
        self.tasks.extend(tasks.into_iter().rev());
    }

    fn node(&mut self, id: NodeId) {
        let regex = self.regex;
        let node = regex.node(id);
        let greedy = !node.flags.has(Flags::NON_GREEDY);
        let look = |look| Instruction::Look(look);
        let part = node.parts.first().copied();
        match &node.kind {
            NodeKind::NoMatch | NodeKind::LeftParen(_) | NodeKind::VerticalBar => {
                self.program.push(Instruction::Fail);
            }
            NodeKind::Empty => {}
            NodeKind::Literal(runes) => {
                let fold = node.flags.has(Flags::FOLD_CASE);
                for &rune in runes {
                    let instruction = if fold {
                        self.any_case(rune)
                    } else {
                        // A surrogate never occurs in the input, so it never matches.
                        char::from_u32(rune).map_or(Instruction::Fail, Instruction::Char)
                    };
                    self.program.push(instruction);
                }
            }
            NodeKind::Class(class) => {
                let number = match self.classes.get(&class.class) {
                    Some(number) => *number,
                    None => {
                        let number = self.add(class.class.ranges());
                        self.classes.insert(&class.class, number);
                        number
                    }
                };
                self.program.push(Instruction::Class(number));
            }
            NodeKind::AnyCharNotNewline => self.program.push(Instruction::AnyNotNewline),
            NodeKind::AnyChar => self.program.push(Instruction::Any),
            NodeKind::BeginLine => self.program.push(look(Look::BeginLine)),
            NodeKind::EndLine => self.program.push(look(Look::EndLine)),
            NodeKind::BeginText => self.program.push(look(Look::BeginText)),
            NodeKind::EndText => self.program.push(look(Look::EndText)),
            NodeKind::WordBoundary => self.program.push(look(Look::WordBoundary)),
            NodeKind::NoWordBoundary => self.program.push(look(Look::NoWordBoundary)),
            NodeKind::Capture(_) | NodeKind::Concat => {
                self.push(node.parts.iter().copied().map(Task::Node).collect());
            }
            NodeKind::Star => self.repeat(part, 0, None, greedy),
            NodeKind::Plus => self.repeat(part, 1, None, greedy),
            NodeKind::Quest => self.repeat(part, 0, Some(1), greedy),
            NodeKind::Repeat { min, max } => self.repeat(part, *min, *max, greedy),
            NodeKind::Alternate => self.alternate(&node.parts),
        }
    }

    /// Returns an instruction that matches all case variants of `rune`.
    fn any_case(&mut self, rune: u32) -> Instruction {
        if let Some(number) = self.cases.get(&rune) {
            return Instruction::Class(*number);
        }
        let cases = cases_of(rune);
        if let ([_], Some(c)) = (cases.as_slice(), char::from_u32(rune)) {
            return Instruction::Char(c);
        }
        let number = self.add(Ranges::new(cases));
        self.cases.insert(rune, number);
        Instruction::Class(number)
    }

    fn add(&mut self, ranges: Ranges) -> u32 {
        self.ranges.push(ranges);
        target(self.ranges.len() - 1)
    }

    fn alternate(&mut self, parts: &[NodeId]) {
        let mut tasks = vec![Task::OpenAlternatives];
        for (n, part) in parts.iter().enumerate() {
            let is_last = n + 1 == parts.len();
            if !is_last {
                tasks.push(Task::Open { greedy: true });
            }
            tasks.push(Task::Node(*part));
            if !is_last {
                tasks.push(Task::Or);
            }
        }
        tasks.push(Task::CloseAlternatives);
        self.push(tasks);
    }

    /// Pushes the tasks that compile a repetition of `part`.
    ///
    /// Source: Go `regexp/syntax/simplify.go`, `Regexp.Simplify`; `regexp/syntax/compile.go`, `compiler.star`.
    fn repeat(&mut self, part: Option<NodeId>, min: u32, max: Option<u32>, greedy: bool) {
        let Some(part) = part else { return };
        let mut tasks = Vec::new();
        let nullable = self.nullable.get(part.index()).copied().unwrap_or(false);
        match (min, max) {
            (0, None) if nullable => tasks.extend([
                Task::Open { greedy },
                Task::OpenLoop { part, greedy },
                Task::Close,
            ]),
            (0, None) => tasks.extend([Task::Open { greedy }, Task::Node(part), Task::CloseStar]),
            (min, None) => {
                tasks.extend((1..min).map(|_| Task::Node(part)));
                tasks.push(Task::OpenLoop { part, greedy });
            }
            (min, Some(max)) => {
                tasks.extend((0..min).map(|_| Task::Node(part)));
                let n_optional = max.saturating_sub(min);
                for _ in 0..n_optional {
                    tasks.extend([Task::Open { greedy }, Task::Node(part)]);
                }
                tasks.extend((0..n_optional).map(|_| Task::Close));
            }
        }
        self.push(tasks);
    }
}

/// Converts the index of an instruction. Go's limit is 3.3 million instructions, so every index fits into 32 bits.
fn target(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn split(greedy: bool, part: usize, past: usize) -> Instruction {
    let (part, past) = (target(part), target(past));
    if greedy {
        Instruction::Split(part, past)
    } else {
        Instruction::Split(past, part)
    }
}

/// For each node, computes whether it can match the empty string.
fn nullable_nodes(regex: &Regex) -> Vec<bool> {
    let mut nullable = vec![false; regex.nodes.len()];
    let mut pending = vec![(regex.root(), false)];
    while let Some((id, visited)) = pending.pop() {
        let node = regex.node(id);
        if !visited {
            pending.push((id, true));
            pending.extend(node.parts.iter().map(|part| (*part, false)));
            continue;
        }
        let part_is_nullable = |part: &NodeId| nullable.get(part.index()).copied().unwrap_or(false);
        let is_nullable = match &node.kind {
            NodeKind::NoMatch
            | NodeKind::LeftParen(_)
            | NodeKind::VerticalBar
            | NodeKind::Class(_)
            | NodeKind::AnyChar
            | NodeKind::AnyCharNotNewline => false,
            NodeKind::Literal(runes) => runes.is_empty(),
            NodeKind::Empty
            | NodeKind::BeginLine
            | NodeKind::EndLine
            | NodeKind::BeginText
            | NodeKind::EndText
            | NodeKind::WordBoundary
            | NodeKind::NoWordBoundary
            | NodeKind::Star
            | NodeKind::Quest => true,
            NodeKind::Repeat { min, .. } => *min == 0 || node.parts.iter().all(part_is_nullable),
            NodeKind::Capture(_) | NodeKind::Plus | NodeKind::Concat => {
                node.parts.iter().all(part_is_nullable)
            }
            NodeKind::Alternate => node.parts.iter().any(part_is_nullable),
        };
        if let Some(place) = nullable.get_mut(id.index()) {
            *place = is_nullable;
        }
    }
    nullable
}

#[derive(Debug)]
pub(super) struct Machine {
    program: Vec<Instruction>,
    ranges: Vec<Ranges>,
}

/// A state of a search: the index of an instruction, and the start of the match.
type State = (u32, usize);

/// The states of a search at one position, the preferred ones first.
#[derive(Debug, Default)]
struct States {
    active: Vec<State>,
    /// For each instruction, the number of the last position at which a search reached it.
    reached: Vec<u32>,
}

/// Memory of searches, which later searches reuse.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    now: States,
    then: States,
    stack: Vec<u32>,
    class_cache: ClassCache,
    /// Number of the last position. The next search continues the numbering, so `reached` needs no reset.
    position: u32,
}

impl Scratch {
    pub(super) fn memory_usage(&self) -> usize {
        let states = |states: &States| {
            states.active.capacity() * size_of::<State>()
                + states.reached.capacity() * size_of::<u32>()
        };
        states(&self.now)
            + states(&self.then)
            + self.stack.capacity() * size_of::<u32>()
            + self.class_cache.answers.capacity() * size_of::<(u32, bool)>()
    }
}

/// Cached results of class tests. Each entry is the last position at which the class was tested, and the result at that
/// position.
#[derive(Debug, Default)]
struct ClassCache {
    answers: Vec<(u32, bool)>,
}

impl ClassCache {
    /// Returns true if `class` contains `c`, the code point at `position`. The result is cached for the position.
    fn contains(&mut self, ranges: &[Ranges], class: u32, (position, c): (u32, char)) -> bool {
        let class = class as usize;
        let look_up = || {
            let ranges = ranges.get(class);
            ranges.is_some_and(|ranges| ranges.contains(u32::from(c)))
        };
        match self.answers.get_mut(class) {
            Some((at, answer)) if *at == position => *answer,
            Some(slot) => {
                *slot = (position, look_up());
                slot.1
            }
            None => look_up(),
        }
    }
}

/// Number of steps between two calls of [`Limits::work`].
const STEPS_AT_ONCE: usize = 1 << 14;

impl Machine {
    pub(super) fn new(regex: &Regex) -> Self {
        let compiler = Compiler {
            regex,
            program: Vec::new(),
            tasks: Vec::new(),
            open: Vec::new(),
            ends: Vec::new(),
            ranges: Vec::new(),
            classes: HashMap::new(),
            cases: HashMap::new(),
            nullable: nullable_nodes(regex),
        };
        let (mut program, ranges) = compiler.compile();
        program.shrink_to_fit();
        Self { program, ranges }
    }

    pub(super) fn len(&self) -> usize {
        self.program.len()
    }

    pub(super) fn memory_usage(&self) -> usize {
        let ranges = self.ranges.iter().map(|ranges| {
            size_of::<Ranges>() + std::mem::size_of_val::<[(u32, u32)]>(ranges.as_slice())
        });
        self.program.capacity() * INSTRUCTION_BYTES + ranges.sum::<usize>()
    }

    /// Returns the first match at or after `start`. If `earliest` is true, returns the first match that is detected.
    /// Such a match shows that the input matches, but need not be the preferred match.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub(super) fn find<L: Limits>(
        &self,
        (text, start, earliest): (&str, usize, bool),
        scratch: &mut Scratch,
        limits: &L,
    ) -> Result<Option<Range<usize>>, L::Error> {
        let Some((skipped, rest)) = text.split_at_checked(start) else {
            return Ok(None);
        };
        let Scratch {
            now,
            then,
            stack,
            class_cache,
            position,
        } = scratch;
        now.active.clear();
        then.active.clear();
        stack.clear();
        now.reached.resize(self.program.len(), 0);
        then.reached.resize(self.program.len(), 0);
        class_cache.answers.resize(self.ranges.len(), (0, false));
        let mut before = skipped.chars().next_back();
        let mut rest = rest.chars();
        let mut best = None;
        let mut n_steps = 0_usize;
        // Skips a position number: an interrupted search may have marked states with it.
        *position += 1;
        loop {
            if *position >= u32::MAX - 2 {
                now.reached.fill(0);
                then.reached.fill(0);
                class_cache.answers.fill((0, false));
                for (instruction, _) in &now.active {
                    // All numbers were reset. The active states now belong to position 1.
                    if let Some(reached) = now.reached.get_mut(*instruction as usize) {
                        *reached = 1;
                    }
                }
                *position = 0;
            }
            *position += 1;
            let offset = text.len() - rest.as_str().len();
            let after = rest.next();
            if best.is_none() {
                n_steps += self.follow(now, *position, (0, offset), (before, after), stack);
            }
            if now.active.is_empty() && best.is_some() {
                break;
            }
            let next = rest.as_str().chars().next();
            let active = std::mem::take(&mut now.active);
            n_steps += active.len() + 1;
            for &(instruction, began) in &active {
                let takes = match (self.program.get(instruction as usize), after) {
                    (Some(Instruction::Match), _) => {
                        best = Some(began..offset);
                        // The match is preferred to all later states, so these are irrelevant.
                        break;
                    }
                    (Some(Instruction::Char(expected)), Some(c)) => *expected == c,
                    (Some(Instruction::AnyNotNewline), Some(c)) => c != '\n',
                    (Some(Instruction::Any), Some(_)) => true,
                    (Some(Instruction::Class(class)), Some(c)) => {
                        class_cache.contains(&self.ranges, *class, (*position, c))
                    }
                    _ => false,
                };
                if takes {
                    let state = (instruction + 1, began);
                    n_steps += self.follow(then, *position + 1, state, (after, next), stack);
                }
            }
            // Puts the vector back, so that its memory is reused.
            now.active = active;
            now.active.clear();
            if n_steps >= STEPS_AT_ONCE {
                limits.work(n_steps)?;
                n_steps = 0;
            }
            if after.is_none() || (earliest && best.is_some()) {
                break;
            }
            std::mem::swap(now, then);
            before = after;
        }
        limits.work(n_steps)?;
        Ok(best)
    }

    /// Adds all states that are reachable from a state without consuming a code point, the preferred ones first.
    /// Returns the number of steps.
    fn follow(
        &self,
        states: &mut States,
        position: u32,
        (instruction, began): State,
        (before, after): (Option<char>, Option<char>),
        stack: &mut Vec<u32>,
    ) -> usize {
        let mut n_steps = 0;
        stack.push(instruction);
        while let Some(instruction) = stack.pop() {
            n_steps += 1;
            match states.reached.get_mut(instruction as usize) {
                Some(reached) if *reached != position => *reached = position,
                _ => continue,
            }
            match self.program.get(instruction as usize) {
                Some(Instruction::Split(first, second)) => stack.extend([*second, *first]),
                Some(Instruction::Jump(target)) => stack.push(*target),
                Some(Instruction::Look(look)) if look.holds(before, after) => {
                    stack.push(instruction + 1);
                }
                Some(
                    Instruction::Char(_)
                    | Instruction::Any
                    | Instruction::AnyNotNewline
                    | Instruction::Class(_)
                    | Instruction::Match,
                ) => states.active.push((instruction, began)),
                Some(Instruction::Look(_) | Instruction::Fail) | None => {}
            }
        }
        n_steps
    }
}
