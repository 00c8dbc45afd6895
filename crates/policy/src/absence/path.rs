//! Places in a request: a root, and the fields, keys and elements on the way.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::reads::Input;

/// The longest path that is followed.
const MAX_SEGMENTS: usize = 32;

/// The part of a request where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Root {
    /// `object`.
    Object,
    /// `oldObject`.
    OldObject,
    /// `params`.
    Params,
    /// `request`.
    Request,
    /// `namespaceObject`.
    Namespace,
}

impl Root {
    /// The root that an expression calls `name`.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match Input::from_name(name)? {
            Input::Object => Self::Object,
            Input::OldObject => Self::OldObject,
            Input::Params => Self::Params,
            Input::Request => Self::Request,
            Input::NamespaceObject => Self::Namespace,
            Input::Authorizer | Input::Variables => return None,
        })
    }

    /// The name of the variable.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::OldObject => "oldObject",
            Self::Params => "params",
            Self::Request => "request",
            Self::Namespace => "namespaceObject",
        }
    }
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Segment {
    /// A field, or a key of a map.
    Field(Arc<str>),
    /// An element of a list.
    Index(usize),
}

/// A path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) segments: Vec<Segment>,
}

impl Path {
    pub(super) fn of(root: Root) -> Self {
        Self {
            root,
            segments: Vec::new(),
        }
    }

    /// The path one step further, unless it becomes too long.
    pub(super) fn then(&self, segment: Segment) -> Option<Self> {
        let mut segments = self.segments.clone();
        segments.push(segment);
        (segments.len() <= MAX_SEGMENTS).then_some(Self {
            root: self.root,
            segments,
        })
    }

    /// The field `name` of what is at the path.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        self.then(Segment::Field(name.into()))
    }

    /// The element `n` of what is at the path.
    pub(super) fn element(&self, n: usize) -> Option<Self> {
        self.then(Segment::Index(n))
    }

    /// The path without its last step; `None` of a root.
    pub(super) fn parent(&self) -> Option<Self> {
        let mut segments = self.segments.clone();
        segments.pop()?;
        Some(Self {
            root: self.root,
            segments,
        })
    }

    /// Reports whether the path is `other`, or goes through it.
    pub(super) fn starts_with(&self, other: &Self) -> bool {
        self.root == other.root && self.segments.starts_with(&other.segments)
    }

    /// The fields and keys on the way, without the elements of lists.
    pub(super) fn names(&self) -> Vec<&str> {
        let names = self.segments.iter().filter_map(|segment| match segment {
            Segment::Field(name) => Some(&**name),
            Segment::Index(_) => None,
        });
        names.collect()
    }

    /// The fields of the path, with nothing else on the way, beneath `root`.
    pub(super) fn fields(&self) -> Vec<&str> {
        let names = self.segments.iter().map_while(|segment| match segment {
            Segment::Field(name) => Some(&**name),
            Segment::Index(_) => None,
        });
        names.collect()
    }
}

/// The path without its root, `spec.containers[0].image`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Field(name) if is_name(name) => {
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

/// The value at `path`, of fields alone, `spec.template`; all of it where that is empty.
pub(super) fn at<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    fields(path).try_fold(value, |value, name| value.get(name))
}

/// The same, to change it.
pub(super) fn at_mut<'a>(value: &'a mut Json, path: &str) -> Option<&'a mut Json> {
    fields(path).try_fold(value, |value, name| value.get_mut(name))
}

fn fields(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|name| !name.is_empty())
}

/// Reports whether `text` can stand behind a dot.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
