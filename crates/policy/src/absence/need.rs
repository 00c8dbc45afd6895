//! The needs of a request: what must be there, what must not, and which values there must be.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::path::Path;

/// The need at one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Need {
    /// True if something must be there, false if nothing may.
    pub(super) is_present: Option<bool>,
    /// The value.
    pub(super) equals: Option<Json>,
    /// Values that it must not have.
    pub(super) differs: Vec<Json>,
    /// The least number of elements or entries.
    pub(super) min_len: usize,
    /// The greatest number of elements or entries.
    pub(super) max_len: Option<usize>,
    /// Elements of a list.
    pub(super) holds: Vec<Json>,
    /// The beginning, a part and the end of a text.
    pub(super) text: [String; 3],
}

/// A single need.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Something is there.
    Present,
    /// Nothing is there, though what is around it is.
    Absent,
    /// This value is there.
    Equals(Json),
    /// Another value is there.
    Differs(Json),
    /// At least so many elements or entries.
    MinLen(usize),
    /// At most so many.
    MaxLen(usize),
    /// This is among the elements.
    Holds(Json),
    /// The text begins so.
    Prefix(String),
    /// The text has this in it.
    Part(String),
    /// The text ends so.
    Suffix(String),
}

/// The needs of a request. Roots are places too: a root that is absent is null. They are copied for each way that a
/// goal may be met, so that most of them are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Needs(BTreeMap<Arc<Path>, Arc<Need>>);

/// The most places with a need.
const MAX_PLACES: usize = 200;

impl Needs {
    /// The needs by place, what is around something first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Need)> {
        self.0.iter().map(|(path, need)| (&**path, &**need))
    }

    /// The need at `path`.
    pub(super) fn at(&self, path: &Path) -> Option<&Need> {
        self.0.get(path).map(|need| &**need)
    }

    /// Reports whether nothing must be at `path`.
    pub(super) fn is_absent(&self, path: &Path) -> bool {
        self.at(path)
            .is_some_and(|need| need.is_present == Some(false))
    }

    /// Reports whether something must be at `path`.
    pub(super) fn is_present(&self, path: &Path) -> bool {
        self.0
            .iter()
            .any(|(known, need)| need.is_present == Some(true) && known.starts_with(path))
    }

    /// Adds a need; `None` where it contradicts another one.
    pub(super) fn add(&mut self, path: &Path, edit: Edit) -> Option<()> {
        if self.0.len() >= MAX_PLACES {
            return None;
        }
        if edit == Edit::Absent {
            if self.is_present(path) {
                return None;
            }
            // What is around it must be there.
            if let Some(parent) = path.parent() {
                self.add(&parent, Edit::Present)?;
            }
            self.entry(path).is_present = Some(false);
            return Some(());
        }
        let is_hidden = |(known, need): (&Arc<Path>, &Arc<Need>)| {
            need.is_present == Some(false) && path.starts_with(known)
        };
        if self.0.iter().any(is_hidden) {
            return None;
        }
        let need = self.entry(path);
        need.is_present = Some(true);
        match edit {
            Edit::Present | Edit::Absent => {}
            Edit::Equals(value) => {
                if need.equals.as_ref().is_some_and(|known| *known != value) {
                    return None;
                }
                need.equals = Some(value);
            }
            Edit::Differs(value) => {
                if !need.differs.contains(&value) {
                    need.differs.push(value);
                }
            }
            Edit::MinLen(n) => need.min_len = need.min_len.max(n),
            Edit::MaxLen(n) => {
                need.max_len = Some(need.max_len.map_or(n, |known| known.min(n)));
            }
            Edit::Holds(value) => {
                if !need.holds.contains(&value) {
                    need.holds.push(value);
                }
            }
            Edit::Prefix(text) => set_text(need, 0, text)?,
            Edit::Part(text) => set_text(need, 1, text)?,
            Edit::Suffix(text) => set_text(need, 2, text)?,
        }
        is_consistent(need).then_some(())
    }

    fn entry(&mut self, path: &Path) -> &mut Need {
        Arc::make_mut(self.0.entry(Arc::new(path.clone())).or_default())
    }
}

fn set_text(need: &mut Need, n: usize, text: String) -> Option<()> {
    let known = need.text.get_mut(n)?;
    if !known.is_empty() && *known != text {
        return None;
    }
    *known = text;
    Some(())
}

fn is_consistent(need: &Need) -> bool {
    let [prefix, part, suffix] = &need.text;
    let fits = |value: &Json| {
        value.as_str().is_none_or(|text| {
            text.starts_with(prefix.as_str())
                && text.contains(part.as_str())
                && text.ends_with(suffix.as_str())
        })
    };
    let is_null = need.equals.as_ref().is_some_and(Json::is_null);
    let asks_for_more =
        need.min_len > 0 || !need.holds.is_empty() || need.text.iter().any(|it| !it.is_empty());
    !(is_null && asks_for_more)
        && need.max_len.is_none_or(|max| need.min_len <= max)
        && need
            .equals
            .as_ref()
            .is_none_or(|value| !need.differs.contains(value) && fits(value))
}
