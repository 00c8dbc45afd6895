//! Constraints on an admission request: which values are present, absent, equal to something or of some size.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::path::FieldPath;

/// A single constraint on the value at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// The value is present.
    Present,
    /// The value is absent, and its parent is present.
    Absent,
    /// The value equals this one.
    Equals(Json),
    /// The value differs from this one.
    Differs(Json),
    /// The list or map has at least so many elements or entries.
    MinLen(usize),
    /// The list or map has at most so many elements or entries.
    MaxLen(usize),
    /// The list contains this element.
    Holds(Json),
    /// The string starts with this text.
    Prefix(String),
    /// The string contains this text.
    Part(String),
    /// The string ends with this text.
    Suffix(String),
}

/// All constraints on the value at one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueConstraints {
    /// True if the value is present, false if it is absent.
    pub is_present: Option<bool>,
    /// The value.
    pub equals: Option<Json>,
    /// Values that it differs from.
    pub differs: Vec<Json>,
    /// The least number of elements or entries.
    pub min_len: usize,
    /// The greatest number of elements or entries.
    pub max_len: Option<usize>,
    /// Elements of the list.
    pub holds: Vec<Json>,
    /// The prefix, a part and the suffix of the string; empty if unconstrained.
    pub text: [String; 3],
}

/// A consistent set of constraints on a request. An absent root variable is null.
///
/// The solver copies a set for each disjunct, so the entries are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputConstraints(BTreeMap<Arc<FieldPath>, Arc<ValueConstraints>>);

/// The most paths with constraints.
const MAX_PATHS: usize = 200;

impl InputConstraints {
    /// Returns the constraints by path, parents first.
    pub fn iter(&self) -> impl Iterator<Item = (&FieldPath, &ValueConstraints)> {
        self.0.iter().map(|(path, of_value)| (&**path, &**of_value))
    }

    /// Returns the constraints at `path`.
    #[must_use]
    pub fn at(&self, path: &FieldPath) -> Option<&ValueConstraints> {
        self.0.get(path).map(|of_value| &**of_value)
    }

    /// Returns true if the value at `path` is constrained to be absent.
    #[must_use]
    pub fn is_absent(&self, path: &FieldPath) -> bool {
        self.at(path)
            .is_some_and(|of_value| of_value.is_present == Some(false))
    }

    /// Returns true if the value at `path`, or one below it, is constrained to be present.
    #[must_use]
    pub fn is_present(&self, path: &FieldPath) -> bool {
        self.0
            .iter()
            .any(|(known, of_value)| of_value.is_present == Some(true) && known.starts_with(path))
    }

    /// Adds a constraint. `None` if it contradicts the others, or if there are too many.
    pub fn add(&mut self, path: &FieldPath, constraint: Constraint) -> Option<()> {
        if self.0.len() >= MAX_PATHS {
            return None;
        }
        if constraint == Constraint::Absent {
            if self.is_present(path) {
                return None;
            }
            if let Some(parent) = path.parent() {
                self.add(&parent, Constraint::Present)?;
            }
            self.entry(path).is_present = Some(false);
            return Some(());
        }
        let is_below_absent = |(known, of_value): (&Arc<FieldPath>, &Arc<ValueConstraints>)| {
            of_value.is_present == Some(false) && path.starts_with(known)
        };
        if self.0.iter().any(is_below_absent) {
            return None;
        }
        let of_value = self.entry(path);
        of_value.is_present = Some(true);
        match constraint {
            Constraint::Present | Constraint::Absent => {}
            Constraint::Equals(value) => {
                if of_value
                    .equals
                    .as_ref()
                    .is_some_and(|known| *known != value)
                {
                    return None;
                }
                of_value.equals = Some(value);
            }
            Constraint::Differs(value) => {
                if !of_value.differs.contains(&value) {
                    of_value.differs.push(value);
                }
            }
            Constraint::MinLen(n) => of_value.min_len = of_value.min_len.max(n),
            Constraint::MaxLen(n) => {
                of_value.max_len = Some(of_value.max_len.map_or(n, |known| known.min(n)));
            }
            Constraint::Holds(value) => {
                if !of_value.holds.contains(&value) {
                    of_value.holds.push(value);
                }
            }
            Constraint::Prefix(text) => set_text(of_value, 0, text)?,
            Constraint::Part(text) => set_text(of_value, 1, text)?,
            Constraint::Suffix(text) => set_text(of_value, 2, text)?,
        }
        is_consistent(of_value).then_some(())
    }

    fn entry(&mut self, path: &FieldPath) -> &mut ValueConstraints {
        Arc::make_mut(self.0.entry(Arc::new(path.clone())).or_default())
    }
}

fn set_text(of_value: &mut ValueConstraints, n: usize, text: String) -> Option<()> {
    let current = of_value.text.get_mut(n)?;
    if !current.is_empty() && *current != text {
        return None;
    }
    *current = text;
    Some(())
}

fn is_consistent(of_value: &ValueConstraints) -> bool {
    let [prefix, part, suffix] = &of_value.text;
    let fits = |value: &Json| {
        value.as_str().is_none_or(|text| {
            text.starts_with(prefix.as_str())
                && text.contains(part.as_str())
                && text.ends_with(suffix.as_str())
        })
    };
    let is_null = of_value.equals.as_ref().is_some_and(Json::is_null);
    let excludes_null = of_value.min_len > 0
        || !of_value.holds.is_empty()
        || of_value.text.iter().any(|it| !it.is_empty());
    !(is_null && excludes_null)
        && of_value.max_len.is_none_or(|max| of_value.min_len <= max)
        && of_value
            .equals
            .as_ref()
            .is_none_or(|value| !of_value.differs.contains(value) && fits(value))
}
