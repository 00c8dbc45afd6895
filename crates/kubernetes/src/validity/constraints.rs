//! Constraints on the values of an admission request: their presence, content and size.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::path::FieldPath;

/// A constraint on the value at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// The value is present.
    Present,
    /// The value is absent. Its parent object is present.
    Absent,
    /// The value equals this value.
    Equals(Json),
    /// The value does not equal this value.
    Differs(Json),
    /// The list or map has at least this many elements or entries.
    MinLen(usize),
    /// The list or map has at most this many elements or entries.
    MaxLen(usize),
    /// The list contains this element.
    Holds(Json),
    /// The string starts with this prefix.
    Prefix(String),
    /// The string contains this substring.
    Part(String),
    /// The string ends with this suffix.
    Suffix(String),
    /// The value is a number, or a string that denotes a number, and is at least this number.
    AtLeast(i64),
    /// The value is a number, or a string that denotes a number, and is at most this number.
    AtMost(i64),
}

/// All constraints on the value at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValueConstraints {
    /// True if the value must be present, false if it must be absent, `None` if it may be present or absent.
    pub is_present: Option<bool>,
    /// The required value, if any.
    pub equals: Option<Json>,
    /// The forbidden values.
    pub differs: Vec<Json>,
    /// The minimum number of elements or entries.
    pub min_len: usize,
    /// The maximum number of elements or entries, if any.
    pub max_len: Option<usize>,
    /// The elements that the list must contain.
    pub holds: Vec<Json>,
    /// The required prefix, substring and suffix of the string. An empty string is no constraint.
    pub text: [String; 3],
    /// The minimum of a number, or of a string that denotes a number.
    pub min: Option<i64>,
    /// The maximum of a number, or of a string that denotes a number.
    pub max: Option<i64>,
}

/// A consistent set of constraints on a request. A constraint that a variable such as `oldObject` is absent means that
/// its value is null.
///
/// The solver copies a set for each disjunct, so copies share their entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct InputConstraints(BTreeMap<Arc<FieldPath>, Arc<ValueConstraints>>);

/// The maximum number of paths in a set.
const MAX_PATHS: usize = 200;

impl InputConstraints {
    /// Returns all paths and their constraints. Parents come before their fields.
    pub fn iter(&self) -> impl Iterator<Item = (&FieldPath, &ValueConstraints)> {
        self.0.iter().map(|(path, of_value)| (&**path, &**of_value))
    }

    /// Returns the constraints on the value at `path`. Returns `None` if there are no constraints.
    #[must_use]
    pub fn at(&self, path: &FieldPath) -> Option<&ValueConstraints> {
        self.0.get(path).map(|of_value| &**of_value)
    }

    /// Returns true if the value at `path` must be absent.
    #[must_use]
    pub fn is_absent(&self, path: &FieldPath) -> bool {
        self.at(path)
            .is_some_and(|of_value| of_value.is_present == Some(false))
    }

    /// Returns true if the value at `path` or a nested value must be present.
    #[must_use]
    pub fn is_present(&self, path: &FieldPath) -> bool {
        self.0
            .iter()
            .any(|(known, of_value)| of_value.is_present == Some(true) && known.starts_with(path))
    }

    /// Adds a constraint. Returns `None` if it contradicts another constraint, or if there are too many paths.
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
            Constraint::AtLeast(n) => {
                of_value.min = Some(of_value.min.map_or(n, |known| known.max(n)));
            }
            Constraint::AtMost(n) => {
                of_value.max = Some(of_value.max.map_or(n, |known| known.min(n)));
            }
        }
        is_consistent(of_value).then_some(())
    }

    /// Replaces the constraints on the value at `path`, and on nested values, with `constraint`. Returns `None` if
    /// `constraint` contradicts a remaining constraint, or if there are too many paths.
    pub fn replace(&mut self, path: &FieldPath, constraint: Constraint) -> Option<()> {
        self.0.retain(|known, _| !known.starts_with(path));
        self.add(path, constraint)
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

impl ValueConstraints {
    /// Returns true if `value` is a number within the required minimum and maximum, or is not a number. A string that
    /// denotes a number counts as a number.
    #[must_use]
    pub fn is_in_range(&self, value: &Json) -> bool {
        let number = match value {
            Json::String(text) => text.parse().ok(),
            value => value.as_f64(),
        };
        #[expect(clippy::cast_precision_loss, reason = "limits are small in practice")]
        let is_in = |number: f64| {
            self.min.is_none_or(|min| number >= min as f64)
                && self.max.is_none_or(|max| number <= max as f64)
        };
        number.is_none_or(is_in)
    }
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
    let holds_all = |value: &Json| {
        let elements = value.as_array();
        elements.is_none_or(|elements| of_value.holds.iter().all(|it| elements.contains(it)))
    };
    let is_null = of_value.equals.as_ref().is_some_and(Json::is_null);
    let excludes_null = of_value.min_len > 0
        || !of_value.holds.is_empty()
        || of_value.text.iter().any(|it| !it.is_empty());
    !(is_null && excludes_null)
        && of_value.max_len.is_none_or(|max| of_value.min_len <= max)
        && of_value
            .min
            .is_none_or(|min| of_value.max.is_none_or(|max| min <= max))
        && of_value.equals.as_ref().is_none_or(|value| {
            !of_value.differs.contains(value)
                && fits(value)
                && holds_all(value)
                && of_value.is_in_range(value)
        })
}
