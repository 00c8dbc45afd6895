//! Field paths in the format of the API server's errors.
//!
//! Source: apimachinery `pkg/util/validation/field/path.go` (`Path.String`).

use std::fmt::Write as _;

/// An element of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A field of an object.
    Field(String),
    /// An entry of a map. The API server formats it in brackets.
    Key(String),
    /// An element of a list.
    Index(usize),
}

/// A path: the last element, and a link to the parent's path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    before: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(crate) const ROOT: Path<'static> = Path {
        before: None,
        step: Step::Root,
    };

    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        self.then(Step::Field(name))
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        self.then(Step::Key(key))
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    fn then(&'a self, step: Step<'a>) -> Self {
        Self {
            before: Some(self),
            step,
        }
    }

    /// Returns the elements of the path, root first.
    pub(crate) fn steps(&self) -> Vec<PathStep> {
        let mut steps = Vec::new();
        let mut current = Some(self);
        while let Some(path) = current {
            match path.step {
                Step::Root => {}
                Step::Field(name) => steps.push(PathStep::Field(name.to_owned())),
                Step::Key(key) => steps.push(PathStep::Key(key.to_owned())),
                Step::Index(index) => steps.push(PathStep::Index(index)),
            }
            current = path.before;
        }
        steps.reverse();
        steps
    }

    /// Formats the path like the API server. The root becomes `<nil>`.
    pub(crate) fn text(&self) -> String {
        match written(&self.steps()) {
            text if text.is_empty() => "<nil>".into(),
            text => text,
        }
    }
}

/// Formats path elements like the API server. Returns an empty string for an empty path.
pub(super) fn written(steps: &[PathStep]) -> String {
    let mut text = String::new();
    for (n, step) in steps.iter().enumerate() {
        match step {
            PathStep::Field(name) if name.is_empty() => text.push_str("[]"),
            PathStep::Field(name) => {
                if n > 0 {
                    text.push('.');
                }
                text.push_str(name);
            }
            PathStep::Key(key) => {
                text.push('[');
                text.push_str(key);
                text.push(']');
            }
            PathStep::Index(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_paths_are_written_as_in_go() {
        let spec = Path::ROOT.field("spec");
        let list = spec.field("list");
        let item = list.index(3);
        assert_eq!(item.key("a.b").text(), "spec.list[3][a.b]");
        assert_eq!(item.field("c").text(), "spec.list[3].c");
        assert_eq!(Path::ROOT.text(), "<nil>");
    }
}
