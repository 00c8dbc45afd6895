//! A machine that matches code points, as Go's does: for patterns that are too large for other engines.
//!
//! Its program has an instruction for each part of the pattern, and a search takes time in the product of
//! the lengths of program and text, and memory by the length of the program.
//!
//! Source: Go `regexp/syntax/compile.go`, `regexp/syntax/simplify.go`, `regexp/exec.go`.

use std::ops::Range;

use super::class::Class;
use super::hir::cases_of;
use super::ranges::{MAX_RUNE, Ranges};
use super::tree::{Flags, NodeId, NodeKind, Regex};

/// An instruction; targets are indices of instructions.
#[derive(Clone, Debug)]
enum Instruction {
    /// One code point of the class of that number, then the next instruction.
    Class(usize),
    /// Nothing is consumed if the condition holds, then the next instruction.
    Look(Look),
    /// Both, the first with preference.
    Split(usize, usize),
    Jump(usize),
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

/// Pending step of the compilation of a pattern.
enum Task {
    Node(NodeId),
    /// A choice: to go on with what follows, or to go past it.
    Open {
        greedy: bool,
    },
    /// The end of what the last choice is about.
    Close,
    /// The end of what may be repeated from an instruction on.
    Loop {
        start: usize,
        greedy: bool,
    },
    /// The begin of a part that [`Task::Loop`] may repeat; it is followed by the part.
    OpenLoop {
        part: NodeId,
        greedy: bool,
    },
    /// The end of a star: back to its choice, and the choice past it.
    CloseStar,
    /// Between two alternatives.
    Or,
    OpenAlternatives,
    CloseAlternatives,
}

struct Compiler<'a> {
    regex: &'a Regex,
    program: Vec<Instruction>,
    tasks: Vec<Task>,
    /// Choices whose end is not reached yet.
    open: Vec<(usize, bool)>,
    /// For alternatives whose end is not reached yet, the jumps to it.
    ends: Vec<Vec<usize>>,
    ranges: Vec<Ranges>,
    /// Classes that were used lately, and their numbers.
    classes: Vec<(Class, usize)>,
    /// For each node, whether it can match the empty text.
    nullable: Vec<bool>,
}

/// The number of classes that are remembered.
const MAX_CLASSES: usize = 16;

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
                    self.program.push(Instruction::Jump(start));
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
                        self.set(jump, Instruction::Jump(end));
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

    /// Pushes tasks that are to be done in the order in which they are given.
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
                    let cases = if fold {
                        cases_of(rune)
                    } else {
                        vec![(rune, rune)]
                    };
                    self.class(Ranges::new(cases));
                }
            }
            NodeKind::Class(class) => {
                let class = self.number_of(&class.class);
                self.program.push(Instruction::Class(class));
            }
            NodeKind::AnyCharNotNewline => self.class(Ranges::new(vec![(0, 9), (11, MAX_RUNE)])),
            NodeKind::AnyChar => self.class(Ranges::new(vec![(0, MAX_RUNE)])),
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

    fn class(&mut self, ranges: Ranges) {
        let class = self.add(ranges);
        self.program.push(Instruction::Class(class));
    }

    fn add(&mut self, ranges: Ranges) -> usize {
        self.ranges.push(ranges);
        self.ranges.len() - 1
    }

    fn number_of(&mut self, class: &Class) -> usize {
        if let Some((_, number)) = self.classes.iter().find(|(known, _)| known == class) {
            return *number;
        }
        let number = self.add(class.ranges());
        if self.classes.len() >= MAX_CLASSES {
            self.classes.remove(0);
        }
        self.classes.push((class.clone(), number));
        number
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

fn split(greedy: bool, part: usize, past: usize) -> Instruction {
    if greedy {
        Instruction::Split(part, past)
    } else {
        Instruction::Split(past, part)
    }
}

/// For each node, whether it can match the empty text.
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
        let of = |part: &NodeId| nullable.get(part.index()).copied().unwrap_or(false);
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
            NodeKind::Repeat { min, .. } => *min == 0 || node.parts.iter().all(of),
            NodeKind::Capture(_) | NodeKind::Plus | NodeKind::Concat => node.parts.iter().all(of),
            NodeKind::Alternate => node.parts.iter().any(of),
        };
        if let Some(place) = nullable.get_mut(id.index()) {
            *place = is_nullable;
        }
    }
    nullable
}

/// A pattern as a program.
#[derive(Debug)]
pub(super) struct Machine {
    program: Vec<Instruction>,
    /// The classes, by their numbers.
    ranges: Vec<Ranges>,
}

/// The states of a search at one place, in order of preference, each with where its match would begin.
struct States {
    active: Vec<(usize, usize)>,
    /// For each instruction, the number of the place where it was last reached.
    reached: Vec<usize>,
}

/// For each class, whether the code point at a place is in it, and the number of the place.
struct Known {
    answers: Vec<(usize, bool)>,
    place: usize,
}

impl Known {
    /// Reports whether `c`, the code point at the current position, is in a class; looked up once per
    /// position.
    fn contains(&mut self, ranges: &[Ranges], class: usize, c: char) -> bool {
        let look_up = || {
            let ranges = ranges.get(class);
            ranges.is_some_and(|ranges| ranges.contains(u32::from(c)))
        };
        match self.answers.get_mut(class) {
            Some((place, answer)) if *place == self.place => *answer,
            Some(slot) => {
                *slot = (self.place, look_up());
                slot.1
            }
            None => look_up(),
        }
    }
}

impl Machine {
    pub(super) fn new(regex: &Regex) -> Self {
        let compiler = Compiler {
            regex,
            program: Vec::new(),
            tasks: Vec::new(),
            open: Vec::new(),
            ends: Vec::new(),
            ranges: Vec::new(),
            classes: Vec::new(),
            nullable: nullable_nodes(regex),
        };
        let (program, ranges) = compiler.compile();
        Self { program, ranges }
    }

    /// The first match at or behind `start`.
    pub(super) fn find(&self, text: &str, start: usize) -> Option<Range<usize>> {
        let states = || States {
            active: Vec::new(),
            reached: vec![0; self.program.len()],
        };
        let (mut now, mut then) = (states(), states());
        let (behind, rest) = text.split_at_checked(start)?;
        let mut before = behind.chars().next_back();
        let mut rest = rest.chars();
        let mut found = None;
        let mut stack = Vec::new();
        let mut known = Known {
            answers: vec![(0, false); self.ranges.len()],
            place: 0,
        };
        // Places are numbered from one, as zero is for instructions that were never reached.
        for place in 1.. {
            known.place = place;
            let at = text.len() - rest.as_str().len();
            let after = rest.next();
            if found.is_none() {
                self.follow(&mut now, place, (0, at), (before, after), &mut stack);
            }
            if now.active.is_empty() && found.is_some() {
                break;
            }
            let next = rest.as_str().chars().next();
            for (instruction, began) in std::mem::take(&mut now.active) {
                match self.program.get(instruction) {
                    Some(Instruction::Match) => {
                        found = Some(began..at);
                        // What is less preferred is no longer of interest.
                        break;
                    }
                    Some(Instruction::Class(class))
                        if after.is_some_and(|c| known.contains(&self.ranges, *class, c)) =>
                    {
                        let state = (instruction + 1, began);
                        self.follow(&mut then, place + 1, state, (after, next), &mut stack);
                    }
                    _ => {}
                }
            }
            if after.is_none() {
                break;
            }
            std::mem::swap(&mut now, &mut then);
            before = after;
        }
        found
    }

    /// Adds what is reached from `state` without consuming anything, in order of preference.
    fn follow(
        &self,
        states: &mut States,
        place: usize,
        (instruction, began): (usize, usize),
        (before, after): (Option<char>, Option<char>),
        stack: &mut Vec<usize>,
    ) {
        stack.push(instruction);
        while let Some(instruction) = stack.pop() {
            match states.reached.get_mut(instruction) {
                Some(reached) if *reached != place => *reached = place,
                _ => continue,
            }
            match self.program.get(instruction) {
                Some(Instruction::Split(first, second)) => stack.extend([*second, *first]),
                Some(Instruction::Jump(target)) => stack.push(*target),
                Some(Instruction::Look(look)) if look.holds(before, after) => {
                    stack.push(instruction + 1);
                }
                Some(Instruction::Class(_) | Instruction::Match) => {
                    states.active.push((instruction, began));
                }
                Some(Instruction::Look(_) | Instruction::Fail) | None => {}
            }
        }
    }
}
