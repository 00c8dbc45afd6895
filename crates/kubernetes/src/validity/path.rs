//! Paths of values in an admission request. A path is a variable, followed by fields, map keys and list indices.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

/// The maximum number of segments in a path.
const MAX_SEGMENTS: usize = 32;

/// The variable at the start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The variable `object`.
    Object,
    /// The variable `oldObject`.
    OldObject,
    /// The variable `params`.
    Params,
    /// The variable `request`.
    Request,
    /// The variable `namespaceObject`.
    Namespace,
    /// The variable `authorizer`. A path consists of the attributes of an authorization check, followed by the
    /// decision: `allowed` or `denied`.
    Authorizer,
}

impl Root {
    /// Returns the name of the variable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::OldObject => "oldObject",
            Self::Params => "params",
            Self::Request => "request",
            Self::Namespace => "namespaceObject",
            Self::Authorizer => "authorizer",
        }
    }
}

/// An element of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field of an object, or a key of a map.
    Field(Arc<str>),
    /// An element of a list.
    Index(usize),
}

impl Segment {
    /// Returns the name of the field or key. Returns `None` for a list index.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Field(name) => Some(name),
            Self::Index(_) => None,
        }
    }
}

/// The path of a value in an admission request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath {
    /// The variable at the start of the path.
    pub root: Root,
    /// The path within the variable. Empty if the path is the variable itself.
    pub segments: Vec<Segment>,
}

impl FieldPath {
    /// Creates a path to the variable itself.
    #[must_use]
    pub fn new(root: Root) -> Self {
        Self {
            root,
            segments: Vec::new(),
        }
    }

    /// Returns the path with `segment` appended. Returns `None` if the path becomes too long.
    #[must_use]
    pub fn then(&self, segment: Segment) -> Option<Self> {
        let mut segments = self.segments.clone();
        segments.push(segment);
        (segments.len() <= MAX_SEGMENTS).then_some(Self {
            root: self.root,
            segments,
        })
    }

    /// Returns the path with a field or key appended. Returns `None` if the path becomes too long.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Self> {
        self.then(Segment::Field(name.into()))
    }

    /// Returns the path with a list index appended. Returns `None` if the path becomes too long.
    #[must_use]
    pub fn element(&self, n: usize) -> Option<Self> {
        self.then(Segment::Index(n))
    }

    /// Returns the path without its last segment. Returns `None` if there are no segments.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let mut segments = self.segments.clone();
        segments.pop()?;
        Some(Self {
            root: self.root,
            segments,
        })
    }

    /// Returns true if this path equals `other` or is nested in `other`.
    #[must_use]
    pub fn starts_with(&self, other: &Self) -> bool {
        self.root == other.root && self.segments.starts_with(&other.segments)
    }

    /// Returns all fields and keys, without list indices.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.segments.iter().filter_map(Segment::name).collect()
    }

    /// Returns the fields and keys before the first list index.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        self.segments.iter().map_while(Segment::name).collect()
    }
}

/// Formats the path without its variable, such as `spec.containers[0].image`.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Field(name) if is_identifier(name) => {
                    let dot = if n == 0 { "" } else { "." };
                    write!(f, "{dot}{name}")?;
                }
                Segment::Field(name) => write!(f, "[{name:?}]")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Returns the value at `path`, such as `spec.template`. An empty path is the whole value.
pub(super) fn at<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    fields(path).try_fold(value, |value, name| value.get(name))
}

/// Same as [`at`], but returns a mutable reference.
pub(super) fn at_mut<'a>(value: &'a mut Json, path: &str) -> Option<&'a mut Json> {
    fields(path).try_fold(value, |value, name| value.get_mut(name))
}

fn fields(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|name| !name.is_empty())
}

/// Returns true if expressions can select a field named `text` with a dot, as in `object.spec`.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
