//! Paths from a declared variable to a value, used by size estimators.
//!
//! A path consists of its last step and the path before that step, which other paths may share. All paths are stored
//! in one arena. Dropping a long path therefore needs no recursion.
//!
//! Source: cel-go `checker/cost.go`, `AstNode.Path`, `coster.exprPaths`.

use std::sync::Arc;

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// A variable, by its qualified name. Always the first step.
    Variable(Arc<str>),
    /// A field, by its escaped name. Also a map key in field syntax, as in `labels.app`.
    Field(Arc<str>),
    /// Any element of a list (cel-go's `@items`).
    Items,
    /// Any index of a list (cel-go's `@indices`).
    Indices,
    /// Any key of a map (cel-go's `@keys`).
    Keys,
    /// Any value of a map (cel-go's `@values`).
    Values,
    /// A single element of a list, or a single value of a map. Only in [`bounds`](crate::bounds).
    Element,
    /// A single key of a map. Only in [`bounds`](crate::bounds).
    Key,
}

impl PathStep {
    /// Returns cel-go's notation of the step.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Variable(name) | Self::Field(name) => name,
            Self::Items => "@items",
            Self::Indices => "@indices",
            Self::Keys => "@keys",
            Self::Values => "@values",
            Self::Element => "@element",
            Self::Key => "@key",
        }
    }
}

/// Index of the last step of a path in its arena.
pub(crate) type PathId = usize;

/// Initial capacity for the steps of a path. Most paths have fewer steps.
const USUAL_STEPS: usize = 12;

/// The paths of one estimate.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Each step, with the path that precedes it.
    steps: Vec<(Option<PathId>, PathStep)>,
    /// The paths that [`Paths::add_once`] added: at index 0 those with a single step, at index `n + 1` those that
    /// continue the path `n`.
    continuations: Vec<Vec<PathId>>,
}

impl Paths {
    /// Appends `step` to the path `before`.
    ///
    /// If `before` is `None`, the new path has a single step. For example, the elements of a list may have a path
    /// although the list itself has none.
    pub(crate) fn add(&mut self, before: Option<PathId>, step: PathStep) -> PathId {
        self.steps.push((before, step));
        self.steps.len().saturating_sub(1)
    }

    /// Like [`Paths::add`], but returns the existing path if this path has been added before.
    pub(crate) fn add_once(&mut self, before: Option<PathId>, step: PathStep) -> PathId {
        let index = before.map_or(0, |before| before.saturating_add(1));
        if self.continuations.len() <= index {
            self.continuations
                .resize_with(index.saturating_add(1), Vec::new);
        }
        let is_equal = |path: &&PathId| self.steps.get(**path).is_some_and(|(_, it)| *it == step);
        let existing = self.continuations.get(index);
        if let Some(path) = existing.and_then(|paths| paths.iter().find(is_equal)) {
            return *path;
        }
        let path = self.add(before, step);
        if let Some(paths) = self.continuations.get_mut(index) {
            paths.push(path);
        }
        path
    }

    /// Returns the name of the variable whose path is `id`. `None` for the path of a part of a variable.
    pub(crate) fn variable(&self, id: PathId) -> Option<&Arc<str>> {
        match self.steps.get(id)? {
            (None, PathStep::Variable(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns the path that ends with the step `last`.
    pub(crate) fn path(&self, last: Option<PathId>) -> Path<'_> {
        Path {
            paths: self,
            last,
            items: false,
        }
    }
}

/// An arena without paths.
pub(crate) static NO_PATHS: Paths = Paths {
    steps: Vec::new(),
    continuations: Vec::new(),
};

/// A path from a declared variable to a value. Empty for values that are not part of a variable, such as literals.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    paths: &'a Paths,
    last: Option<PathId>,
    items: bool,
}

impl<'a> Path<'a> {
    /// Returns true if the path has no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_none() && !self.items
    }

    /// Returns the steps, starting with the variable.
    #[must_use]
    pub fn steps(&self) -> Vec<&'a PathStep> {
        let mut steps = Vec::with_capacity(USUAL_STEPS);
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

    /// Returns the path of the elements of the list at this path. An empty path remains empty.
    #[must_use]
    pub(crate) fn to_items(self) -> Self {
        let items = self.last.is_some();
        Self { items, ..self }
    }
}
