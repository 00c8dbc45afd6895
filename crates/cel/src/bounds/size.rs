//! Bounds of the sizes of values.

use std::sync::Arc;

use super::{Bounder, KnownPart, PartSizes};
use crate::cost::{Path, PathId, PathStep, SizeEstimate};

/// Maximum number of variable parts to which a bound refers. If a value may come from more parts, its bound contains
/// only the size of the value.
const MAX_PARTS: usize = 8;

/// The bound of the size of a value and, if it is a list or map, of its keys and elements.
///
/// The bound of an optional is that of its value.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The size of the value. If the size is unknown, its maximum is `u64::MAX`. The size of a string is a number of
    /// bytes.
    size: SizeEstimate,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    /// The value is the part of a variable at one of these paths, and has the contents of that part.
    Parts(Arc<[PathId]>),
    Elements(Arc<Elements>),
    Empty,
    Unknown,
}

/// The elements of a computed list, or the entries of a computed map.
#[derive(Clone, Debug)]
struct Elements {
    /// The keys of a map. `None` for a list.
    key: Option<Bound>,
    /// The elements of a list or the values of a map.
    value: Bound,
    /// The size of the largest single element. `None` if one element may be as large as all elements together.
    greatest: Option<u64>,
    /// The parts of variables from which this list or map is computed. They are lists or maps. Each of their elements
    /// contributes at most one element. Empty if the sources are unknown.
    sources: Arc<[PathId]>,
}

impl Default for Bound {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Bound {
    /// A value of unknown size.
    pub const UNKNOWN: Self = Self {
        size: SizeEstimate::UNKNOWN,
        inside: Inside::Unknown,
    };

    /// A value without elements. Its size is 1.
    pub(super) const SCALAR: Self = Self::sized(SizeEstimate::fixed(1));

    /// An empty string, list or map, or an optional without a value.
    pub(super) const EMPTY: Self = Self::sized(SizeEstimate::fixed(0));

    /// A value without elements, such as a string.
    pub(super) const fn sized(size: SizeEstimate) -> Self {
        Self {
            size,
            inside: Inside::Empty,
        }
    }

    /// A value without elements whose size is at most `max`.
    pub(super) const fn at_most(max: u64) -> Self {
        Self::sized(SizeEstimate::new(0, max))
    }

    pub(super) fn list(size: SizeEstimate, element: Self) -> Self {
        Self::computed(size, None, element)
    }

    pub(super) fn map(size: SizeEstimate, key: Self, value: Self) -> Self {
        Self::computed(size, Some(key), value)
    }

    fn computed(size: SizeEstimate, key: Option<Self>, value: Self) -> Self {
        let elements = Elements {
            key,
            value,
            greatest: None,
            sources: Arc::default(),
        };
        Self {
            size,
            inside: Inside::Elements(Arc::new(elements)),
        }
    }

    /// Sets the size of the largest single element of a computed list or map.
    pub(super) fn with_greatest(self, greatest: u64) -> Self {
        self.with_elements(|elements| elements.greatest = Some(greatest))
    }

    /// Sets the sources of the elements of a computed list or map. See [`Elements::sources`].
    pub(super) fn with_sources(self, sources: Arc<[PathId]>) -> Self {
        self.with_elements(|elements| elements.sources = sources)
    }

    fn with_elements(mut self, change: impl FnOnce(&mut Elements)) -> Self {
        if let Inside::Elements(elements) = &mut self.inside {
            change(Arc::make_mut(elements));
        }
        self
    }

    /// Returns the sources of the elements of this list or map. See [`Elements::sources`].
    pub(super) fn sources(&self) -> Arc<[PathId]> {
        match &self.inside {
            Inside::Parts(parts) => Arc::clone(parts),
            Inside::Elements(elements) => Arc::clone(&elements.sources),
            Inside::Empty | Inside::Unknown => Arc::default(),
        }
    }

    pub(super) fn with_size(self, size: SizeEstimate) -> Self {
        Self { size, ..self }
    }

    /// Returns the size.
    #[must_use]
    pub fn size(&self) -> SizeEstimate {
        self.size
    }

    pub(super) fn max(&self) -> u64 {
        self.size.max
    }

    /// Returns true if the value may have elements.
    pub(super) fn has_contents(&self) -> bool {
        !matches!(self.inside, Inside::Empty)
    }

    fn is_empty(&self) -> bool {
        self.size.max == 0 && !matches!(self.inside, Inside::Unknown)
    }

    /// Returns the bound of a value that has either this bound or the bound `other`.
    pub(super) fn union(&self, other: &Self, bounder: &mut Bounder<'_>) -> Self {
        let size = self.size.union(other.size);
        let inside = match (&self.inside, &other.inside) {
            _ if other.is_empty() => self.inside.clone(),
            _ if self.is_empty() => other.inside.clone(),
            (Inside::Unknown, _) | (_, Inside::Unknown) => Inside::Unknown,
            (Inside::Empty, inside) | (inside, Inside::Empty) => inside.clone(),
            (Inside::Parts(own), Inside::Parts(others)) => {
                let mut parts = own.to_vec();
                parts.extend(others.iter().filter(|part| !own.contains(part)));
                if parts.len() > MAX_PARTS {
                    Inside::Unknown
                } else {
                    Inside::Parts(parts.into())
                }
            }
            _ => {
                let value = bounder.values(self);
                let value = value.union(&bounder.values(other), bounder);
                let keys = (bounder.keys(self), bounder.keys(other));
                let key = match keys {
                    (Some(key), Some(other)) => Some(key.union(&other, bounder)),
                    (key, other) => key.or(other),
                };
                let greatest = bounder
                    .element(self)
                    .max()
                    .max(bounder.element(other).max());
                let computed = Self::computed(size, key, value);
                let (own, others) = (self.sources(), other.sources());
                let sources = if own.is_empty() || others.is_empty() {
                    Arc::default()
                } else {
                    own.iter().chain(others.iter()).copied().collect()
                };
                return computed.with_greatest(greatest).with_sources(sources);
            }
        };
        Self { size, inside }
    }
}

impl Bounder<'_> {
    /// Returns the path that appends `step` to `before`. If the path is new, also stores its part.
    pub(super) fn add_path(&mut self, before: Option<PathId>, step: PathStep) -> PathId {
        let path = self.paths.add_once(before, step);
        if path == self.parts.len() {
            self.parts.push(KnownPart {
                path: [path].into(),
                part: self.variables.part(self.path(path)),
            });
        }
        path
    }

    pub(super) fn part(&mut self, path: PathId) -> Bound {
        let Some(KnownPart { path: parts, part }) = self.parts.get(path) else {
            return Bound::UNKNOWN;
        };
        self.reads_nested_lists |= part.is_nested;
        Bound {
            size: self.sizes_of(path).size,
            inside: Inside::Parts(Arc::clone(parts)),
        }
    }

    fn sizes_of(&self, path: PathId) -> PartSizes {
        let known_part = self.parts.get(path);
        let sizes = known_part.and_then(|known| known.part.sizes.get(self.shape));
        sizes.copied().unwrap_or(PartSizes::UNKNOWN)
    }

    fn path(&self, path: PathId) -> Path<'_> {
        self.paths.path(Some(path))
    }

    /// Returns true for a list and false for a map. `None` for other values.
    fn is_list(&self, path: PathId) -> Option<bool> {
        self.parts.get(path)?.part.is_list
    }

    /// Returns the bound of the values that `step` selects from the parts of variables. A field selection from a map,
    /// as in `map.key`, selects a single value.
    fn step(&mut self, parts: &[PathId], step: &PathStep) -> Bound {
        let mut union = Bound::EMPTY;
        for part in parts {
            let is_list = self.is_list(*part);
            let step = match step {
                PathStep::Field(name) => {
                    if let Some(computed) = self.computed_field(*part, name) {
                        union = union.union(&computed, self);
                        continue;
                    }
                    if is_list == Some(false) {
                        PathStep::Element
                    } else {
                        step.clone()
                    }
                }
                PathStep::Items | PathStep::Values if is_list == Some(true) => PathStep::Items,
                PathStep::Items | PathStep::Values => PathStep::Values,
                step => step.clone(),
            };
            let path = self.add_path(Some(*part), step);
            let bound = self.part(path);
            if parts.len() == 1 && !bound.is_empty() {
                return bound;
            }
            union = union.union(&bound, self);
        }
        union
    }

    /// Returns the bound of the field `name` of the variable at `path`. `None` if its fields are not computed.
    fn computed_field(&self, path: PathId, name: &str) -> Option<Bound> {
        let root = self.paths.variable(path)?;
        let field = self.variables.field(root, name)?;
        Some(field.unwrap_or_default())
    }

    /// Returns the bound of each element of a list, or of each value of a map.
    pub(super) fn values(&mut self, of: &Bound) -> Bound {
        match &of.inside {
            Inside::Parts(parts) => self.step(&Arc::clone(parts), &PathStep::Values),
            Inside::Elements(elements) => elements.value.clone(),
            Inside::Empty if of.is_empty() => Bound::EMPTY,
            Inside::Empty | Inside::Unknown => Bound::UNKNOWN,
        }
    }

    /// Returns the bound of each key of a map. `None` for a list.
    pub(super) fn keys(&mut self, of: &Bound) -> Option<Bound> {
        match &of.inside {
            Inside::Parts(parts) => {
                if parts.iter().all(|part| self.is_list(*part) == Some(true)) {
                    return None;
                }
                Some(self.step(&Arc::clone(parts), &PathStep::Keys))
            }
            Inside::Elements(elements) => elements.key.clone(),
            Inside::Empty if of.is_empty() => Some(Bound::EMPTY),
            Inside::Empty | Inside::Unknown => Some(Bound::UNKNOWN),
        }
    }

    /// Returns true if the value comes from a variable and is known to be a map.
    pub(super) fn is_map(&self, of: &Bound) -> bool {
        match &of.inside {
            Inside::Parts(parts) => (parts.iter()).all(|it| self.is_list(*it) == Some(false)),
            _ => false,
        }
    }

    /// Returns the bound of a single element of a list, or of a single value of a map.
    pub(super) fn element(&mut self, of: &Bound) -> Bound {
        if let Inside::Parts(parts) = &of.inside {
            return self.step(&Arc::clone(parts), &PathStep::Element);
        }
        let value = self.values(of);
        if let Inside::Parts(parts) = &value.inside {
            return self.single(&Arc::clone(parts), value.size);
        }
        let greatest = match &of.inside {
            Inside::Elements(elements) => elements.greatest,
            _ => None,
        };
        let greatest = greatest.unwrap_or_else(|| {
            // Adds 1, because the average size of an element may have been rounded down.
            let of_each = value.max().saturating_add(1);
            of.max().max(1).saturating_mul(of_each)
        });
        value.with_size(SizeEstimate::new(0, greatest))
    }

    /// Returns the bound of a single value at one of the paths `parts`. A path through a list or map denotes all of its
    /// elements, but a single element may be as large as the whole object.
    fn single(&mut self, parts: &[PathId], size: SizeEstimate) -> Bound {
        let mut union = Bound::sized(SizeEstimate::new(0, size.max));
        for part in parts {
            let steps: Vec<_> = self.path(*part).steps().into_iter().cloned().collect();
            let mut path = None;
            for step in steps {
                let step = match step {
                    PathStep::Items | PathStep::Values => PathStep::Element,
                    PathStep::Keys => PathStep::Key,
                    step => step,
                };
                path = Some(self.add_path(path, step));
            }
            if let Some(path) = path {
                let part = self.part(path);
                union = union.union(&part, self);
            }
        }
        union
    }

    /// Returns the JSON size of a value in bytes.
    pub(super) fn json_size(&self, of: &Bound) -> SizeEstimate {
        let Inside::Parts(parts) = &of.inside else {
            return SizeEstimate::UNKNOWN;
        };
        let size = |part: &PathId| self.sizes_of(*part).json.unwrap_or(u64::MAX);
        SizeEstimate::new(0, parts.iter().map(size).max().unwrap_or(u64::MAX))
    }

    /// Returns the bound of the concatenation of two lists or strings.
    pub(super) fn concatenation(&mut self, one: &Bound, other: &Bound) -> Bound {
        let mut size = one.size.plus(other.size);
        let union = one.union(other, self);
        if !union.has_contents() {
            return Bound::sized(size);
        }
        let mut sources = Arc::default();
        let (own, others) = (one.sources(), other.sources());
        if one.is_empty() || other.is_empty() {
            sources = union.sources();
        } else if let Some(shared) = self.shared_size(&own, &others) {
            size = SizeEstimate::new(size.min.min(shared), size.max.min(shared));
            sources = own.iter().chain(others.iter()).copied().collect();
        }
        let value = self.values(&union);
        let greatest = self.element(&union).max();
        Bound::list(size, value)
            .with_greatest(greatest)
            .with_sources(sources)
    }

    /// Returns the maximum total number of elements of the parts `own` and `others` if all are disjoint parts of one
    /// object. `None` if a part may contain another one, or if the parts belong to different objects.
    fn shared_size(&self, own: &[PathId], others: &[PathId]) -> Option<u64> {
        let are_disjoint = |part: &PathId, other: &PathId| {
            let (steps, others) = (self.path(*part).steps(), self.path(*other).steps());
            let mut pairs = steps.iter().zip(&others).enumerate();
            let differ = pairs.find(|(_, (step, other))| step != other);
            matches!(
                differ,
                Some((1.., (PathStep::Field(_), PathStep::Field(_))))
            )
        };
        let mut pairs = own
            .iter()
            .flat_map(|part| others.iter().map(move |other| (part, other)));
        if own.is_empty() || !pairs.all(|(part, other)| are_disjoint(part, other)) {
            return None;
        }
        let parts = own.iter().chain(others);
        let mut shared = parts.map(|part| self.sizes_of(*part).shared);
        shared.try_fold(0, |max: u64, size| Some(max.max(size?)))
    }

    /// Returns the bound of the field or map value that `step` selects.
    pub(super) fn selected(&mut self, operand: &Bound, step: &PathStep) -> Bound {
        match &operand.inside {
            Inside::Parts(parts) => self.step(&Arc::clone(parts), step),
            Inside::Elements(_) => self.element(operand),
            Inside::Empty if operand.is_empty() => Bound::EMPTY,
            Inside::Empty | Inside::Unknown => Bound::UNKNOWN,
        }
    }
}
