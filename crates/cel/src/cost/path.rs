//! Paths: how a value is reached from a declared variable, for who knows the sizes of variables.
//!
//! Paths share their beginnings: each is a last step and the path before it. They live in one arena, so
//! that a long path is dropped without recursion.
//!
//! Source: cel-go `checker/cost.go`, `AstNode.Path`, `coster.exprPaths`.

use std::sync::Arc;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A variable, by its full name; always the first step.
    Variable(Arc<str>),
    /// A field, as the expression writes it, that is escaped; or a key of a map that is selected like one.
    Field(Arc<str>),
    /// Any item of a list (cel-go's `@items`).
    Items,
    /// Any index of a list (cel-go's `@indices`).
    Indices,
    /// Any key of a map (cel-go's `@keys`).
    Keys,
    /// Any value of a map (cel-go's `@values`).
    Values,
}

impl PathStep {
    /// The step as cel-go writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Variable(name) | Self::Field(name) => name,
            Self::Items => "@items",
            Self::Indices => "@indices",
            Self::Keys => "@keys",
            Self::Values => "@values",
        }
    }
}

/// The last step of a path in its arena.
pub(crate) type PathId = usize;

/// All paths of one estimate.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Each step with the path before it.
    steps: Vec<(Option<PathId>, PathStep)>,
}

impl Paths {
    /// The path `before` with `step` behind it.
    ///
    /// `before` may be nothing: what is iterated over need not have a path, and its items have one of a
    /// single step then.
    pub(crate) fn add(&mut self, before: Option<PathId>, step: PathStep) -> PathId {
        self.steps.push((before, step));
        self.steps.len().saturating_sub(1)
    }

    /// The path of the last step `last`.
    pub(crate) fn path(&self, last: Option<PathId>) -> Path<'_> {
        Path {
            paths: self,
            last,
            items: false,
        }
    }
}

/// The arena of what has no path.
pub(crate) static NO_PATHS: Paths = Paths { steps: Vec::new() };

/// A path, or none for what no declared variable leads to.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    paths: &'a Paths,
    last: Option<PathId>,
    items: bool,
}

impl<'a> Path<'a> {
    /// Reports whether there is no path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_none() && !self.items
    }

    /// The steps, beginning with the variable.
    #[must_use]
    pub fn steps(&self) -> Vec<&'a PathStep> {
        let mut steps = Vec::new();
        if self.items {
            steps.push(&PathStep::Items);
        }
        let mut next = self.last;
        while let Some((before, step)) = next.and_then(|id| self.paths.steps.get(id)) {
            steps.push(step);
            next = *before;
        }
        steps.reverse();
        steps
    }

    /// The path of the items of the list at this path; none if this is none.
    #[must_use]
    pub(crate) fn to_items(self) -> Self {
        let items = self.last.is_some();
        Self { items, ..self }
    }
}
