//! Objects by their schemas: the least that is valid, and what a need adds to it or takes away.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::compared::Texts;
use super::facts;
use super::need::Need;
use super::path::{Path, Root, Segment};
use kubernetes::schema::decl_type::{DeclField, DeclKind, DeclType};
use kubernetes::schema::escape::{escape, unescape};

/// How deep a minimal object may nest.
const MAX_DEPTH: usize = 40;

/// How many values a minimal object may have.
const MAX_VALUES: usize = 3_000;

/// The longest list that is made.
const MAX_LEN: usize = 12;

/// A type, as far as it tells which values are valid.
#[derive(Clone, Debug)]
pub(super) struct Shape<'a> {
    type_: Arc<DeclType>,
    /// The schema as written, of a custom resource.
    written: Option<&'a Json>,
    /// The kind, of Kubernetes' own types.
    own_kind: Option<Arc<str>>,
    /// True if the objects live in namespaces.
    is_namespaced: bool,
}

/// The outcome of a step into a type.
pub(super) enum Step<'a> {
    /// There may be something, of this type.
    Into(Shape<'a>),
    /// There may be anything.
    Open,
    /// There is no such thing.
    Nothing,
}

impl<'a> Shape<'a> {
    /// The type of objects of `kind`, one of Kubernetes' own.
    pub(super) fn own(type_: Arc<DeclType>, kind: &str, is_namespaced: bool) -> Self {
        Self {
            type_,
            written: None,
            own_kind: Some(kind.into()),
            is_namespaced,
        }
    }

    /// The type of custom resources, with their schema as written.
    pub(super) fn custom(
        type_: Arc<DeclType>,
        written: Option<&'a Json>,
        is_namespaced: bool,
    ) -> Self {
        Self {
            type_,
            written,
            own_kind: None,
            is_namespaced,
        }
    }

    /// Anything.
    pub(super) fn open() -> Self {
        Self::custom(Arc::new(DeclType::scalar(DeclKind::Unknown)), None, false)
    }

    fn within(&self, type_: &Arc<DeclType>, written: Option<&'a Json>) -> Self {
        Self {
            type_: Arc::clone(type_),
            written,
            own_kind: self.own_kind.clone(),
            is_namespaced: self.is_namespaced,
        }
    }

    /// Reports whether it is of one of Kubernetes' own kinds.
    pub(super) fn is_own(&self) -> bool {
        self.own_kind.is_some()
    }

    /// The kind that it is of, where that is one of Kubernetes' own.
    pub(super) fn own_kind(&self) -> Option<&str> {
        self.own_kind.as_deref()
    }

    /// Reports whether it is a whole number, or any.
    pub(super) fn is_number(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Int | DeclKind::Double)
    }

    /// Reports whether it is a text without a list of values or a format.
    pub(super) fn is_free_text(&self) -> bool {
        matches!(self.type_.kind, DeclKind::String)
            && self.type_.enum_values.is_none()
            && self.format().is_none()
    }

    /// The texts that are valid, where it is a text with a list of them.
    pub(super) fn enum_texts(&self) -> Option<Texts<'_>> {
        let values = self.type_.enum_values.as_ref()?;
        values.iter().map(Json::as_str).collect()
    }

    /// Reports whether the value is a scalar that is never null: lists and maps that Kubernetes' own kinds always have
    /// may be, and a time that is not set is.
    pub(super) fn is_never_null(&self) -> bool {
        !self.type_.nullable
            && matches!(
                self.type_.kind,
                DeclKind::Bool
                    | DeclKind::Int
                    | DeclKind::Double
                    | DeclKind::String
                    | DeclKind::IntOrString
            )
    }

    /// Reports whether a CRD has rules about it that are expressions.
    pub(super) fn has_rules(&self) -> bool {
        let rules = self
            .written
            .and_then(|it| it.get("x-kubernetes-validations"));
        rules.is_some_and(|rules| !rules.is_null())
    }

    /// Reports whether nothing is known of it.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Unknown)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Map(_))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.type_.kind, DeclKind::List(_))
    }

    /// The default of an optional value of the type, as an expression writes it.
    pub(super) fn stand_in(&self) -> Option<&'static str> {
        Some(match &self.type_.kind {
            DeclKind::Bool => "false",
            DeclKind::Int => "0",
            DeclKind::String
            | DeclKind::Bytes
            | DeclKind::Duration
            | DeclKind::Timestamp
            | DeclKind::Quantity => "''",
            DeclKind::List(_) => "[]",
            DeclKind::Map(_) | DeclKind::Object(_) => "{}",
            DeclKind::Double | DeclKind::IntOrString | DeclKind::Cel(_) | DeclKind::Unknown => {
                return None;
            }
        })
    }

    /// The field `name` as it is declared.
    fn declared(&self, name: &str) -> Option<&DeclField> {
        let escaped = escape(name)?;
        let fields = self.type_.declared_fields();
        let n = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
        fields.get(n.ok()?)
    }

    fn property(&self, name: &str) -> Option<&'a Json> {
        self.written?.get("properties")?.get(name)
    }

    fn is_open(&self) -> bool {
        match &self.type_.kind {
            DeclKind::Object(object) => object.is_open,
            DeclKind::Unknown => true,
            _ => false,
        }
    }

    /// The type of what is behind `segment` of a value of the type.
    pub(super) fn step(&self, segment: &Segment) -> Step<'a> {
        match (&self.type_.kind, segment) {
            (DeclKind::Object(_), Segment::Field(name)) => match self.declared(name) {
                Some(field) => Step::Into(self.within(&field.type_, self.property(name))),
                None if self.is_open() => Step::Open,
                None => Step::Nothing,
            },
            (DeclKind::Map(value), Segment::Field(_)) => {
                let written = self.written.and_then(|it| it.get("additionalProperties"));
                Step::Into(self.within(value, written))
            }
            (DeclKind::List(elem), Segment::Index(_)) => {
                let written = self.written.and_then(|it| it.get("items"));
                Step::Into(self.within(elem, written))
            }
            (DeclKind::Unknown, _) => Step::Open,
            _ => Step::Nothing,
        }
    }

    /// Reports whether there is something behind `segment` of every valid value of the type at `path`.
    pub(super) fn is_certain(&self, path: &Path, segment: &Segment) -> bool {
        let Segment::Field(name) = segment else {
            return false;
        };
        let Some(field) = self.declared(name) else {
            return false;
        };
        field.required
            || field.has_default
            || is_root_field(path, name)
            || self.is_system_field(path, name)
            || self.is_fact(path, name)
    }

    fn has(&self, field: &str) -> bool {
        self.type_.declared_field(field).is_some()
    }

    fn is_fact(&self, path: &Path, name: &str) -> bool {
        self.own_kind.as_ref().is_some_and(|kind| {
            facts::has_field(name, |field| self.has(field))
                || facts::of_place(kind, path).any(|(field, _)| field == name)
        })
    }

    /// Reports whether the API server itself sets the field `name` of the metadata at `path`.
    fn is_system_field(&self, path: &Path, name: &str) -> bool {
        matches!(&*path.segments, [Segment::Field(field)] if **field == *"metadata")
            && matches!(path.root, Root::Object | Root::OldObject | Root::Params)
            && (facts::METADATA.contains(&name) || name == "namespace" && self.is_namespaced)
    }

    /// The least value of the type that is valid; `None` where none could be made.
    pub(super) fn minimal(&self, path: &Path) -> Option<Json> {
        let mut left = MAX_VALUES;
        self.made(path, None, &mut left, 0)
    }

    /// `given` with all that has to be there, or the least value.
    fn made(
        &self,
        path: &Path,
        given: Option<Json>,
        left: &mut usize,
        depth: usize,
    ) -> Option<Json> {
        *left = left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let given = given.or_else(|| {
            let default = self.written?.get("default")?;
            (!default.is_null()).then(|| default.clone())
        });
        match &self.type_.kind {
            DeclKind::Object(_) => {
                let mut fields = match given {
                    Some(Json::Object(fields)) => fields,
                    Some(other) => return Some(other),
                    None => Map::new(),
                };
                self.fill(path, &mut fields, left, depth)?;
                Some(Json::Object(fields))
            }
            DeclKind::List(_) => {
                let mut items = match given {
                    Some(Json::Array(items)) => items,
                    Some(other) => return Some(other),
                    None => Vec::new(),
                };
                let least = self.number("minItems").unwrap_or(0).min(MAX_LEN);
                let n = items.len().max(least);
                let mut given = std::mem::take(&mut items).into_iter();
                for index in 0..n {
                    items.push(self.element(path, index, given.next(), left, depth)?);
                }
                Some(Json::Array(items))
            }
            DeclKind::Map(_) => {
                let Some(Json::Object(entries)) = given else {
                    let least = self.number("minProperties").unwrap_or(0).min(MAX_LEN);
                    let mut made = Map::new();
                    for n in 0..least {
                        let name = format!("example{n}");
                        let segment = Segment::Field(name.as_str().into());
                        let value = self.behind(path, segment, None, left, depth)?;
                        made.insert(name, value);
                    }
                    return Some(Json::Object(made));
                };
                let mut made = Map::new();
                for (name, value) in entries {
                    let segment = Segment::Field(name.as_str().into());
                    let value = self.behind(path, segment, Some(value), left, depth)?;
                    made.insert(name, value);
                }
                Some(Json::Object(made))
            }
            _ => given.or_else(|| self.scalar()),
        }
    }

    fn element(
        &self,
        path: &Path,
        n: usize,
        given: Option<Json>,
        left: &mut usize,
        depth: usize,
    ) -> Option<Json> {
        self.behind(path, Segment::Index(n), given, left, depth)
    }

    fn behind(
        &self,
        path: &Path,
        segment: Segment,
        given: Option<Json>,
        left: &mut usize,
        depth: usize,
    ) -> Option<Json> {
        match self.step(&segment) {
            Step::Into(shape) => {
                shape.made(&path.then(segment)?, given, left, depth.saturating_add(1))
            }
            Step::Open => Some(given.unwrap_or_else(|| json!({}))),
            Step::Nothing => given,
        }
    }

    /// Adds to the fields of an object those that have to be there.
    fn fill(
        &self,
        path: &Path,
        fields: &mut Map<String, Json>,
        left: &mut usize,
        depth: usize,
    ) -> Option<()> {
        let mut certain = Vec::new();
        if let Some(kind) = &self.own_kind {
            let of_type = facts::of_type(|field| self.has(field)).into_iter();
            let facts = of_type
                .map(|fact| (fact.field, fact.value))
                .chain(facts::of_place(kind, path))
                .chain(facts::choices(kind, path));
            for (field, value) in facts {
                certain.push(field);
                if !fields.contains_key(field) && !value.is_empty() {
                    fields.insert(field.to_owned(), serde_json::from_str(value).ok()?);
                }
            }
        }
        for field in self.type_.declared_fields() {
            let is_certain = field.required || field.has_default || certain.contains(&&*field.name);
            if !is_certain && fields.is_empty() {
                continue;
            }
            let name = unescape(&field.name)?;
            let given = fields.remove(name.as_ref());
            if given.is_some() || is_certain {
                let segment = Segment::Field(name.as_ref().into());
                let value = self.behind(path, segment, given, left, depth)?;
                fields.insert(name.into_owned(), value);
            }
        }
        Some(())
    }

    fn number(&self, keyword: &str) -> Option<usize> {
        let number = self.written?.get(keyword)?.as_u64()?;
        usize::try_from(number).ok()
    }

    /// A scalar that is valid and no zero value.
    fn scalar(&self) -> Option<Json> {
        if let Some(values) = &self.type_.enum_values {
            let mut values = values.iter().filter(|value| value.as_str() != Some(""));
            return values.next().cloned();
        }
        Some(match &self.type_.kind {
            DeclKind::Bool => json!(true),
            DeclKind::Int | DeclKind::Double | DeclKind::IntOrString => {
                let bound = |keyword| self.written.and_then(|it| it.get(keyword)?.as_i64());
                let least = bound("minimum").unwrap_or(1);
                json!(bound("maximum").map_or(least.max(1), |most| least.max(1).min(most)))
            }
            DeclKind::Bytes => json!("YQ=="),
            DeclKind::Duration => json!("1s"),
            DeclKind::Timestamp => match self.format() {
                Some("date") => json!("2026-01-01"),
                _ => json!("2026-01-01T00:00:00Z"),
            },
            DeclKind::Quantity => json!("1"),
            DeclKind::String => Json::String(self.text()?),
            _ => json!({}),
        })
    }

    fn format(&self) -> Option<&'a str> {
        self.written?.get("format")?.as_str()
    }

    /// A text that is valid.
    fn text(&self) -> Option<String> {
        let samples = match self.format() {
            Some("ipv4" | "ip") => &["10.0.0.1"][..],
            Some("ipv6") => &["2001:db8::1"],
            Some("cidr") => &["10.0.0.0/8"],
            Some("uri" | "url") => &["https://example.com"],
            Some("uuid" | "uuid4") => &["123e4567-e89b-42d3-a456-426614174000"],
            Some("email") => &["a@example.com"],
            Some("hostname") => &["example.com"],
            _ => &SAMPLES,
        };
        let least = self.number("minLength").unwrap_or(0);
        if least > MAX_TEXT {
            return None;
        }
        let padded = samples.iter().map(|sample| {
            let n = least.saturating_sub(sample.len());
            format!("{sample}{}", "a".repeat(n))
        });
        let mut valid = padded.filter(|text| self.allows(&Json::String(text.clone())));
        valid.next()
    }

    /// Reports whether `value` is valid, as far as a scalar can be judged.
    fn allows(&self, value: &Json) -> bool {
        if let Some(values) = &self.type_.enum_values
            && !values.contains(value)
        {
            return false;
        }
        let is_of_type = match &self.type_.kind {
            DeclKind::Bool => value.is_boolean(),
            DeclKind::Int => value.is_i64(),
            DeclKind::Double => value.is_number(),
            DeclKind::String
            | DeclKind::Bytes
            | DeclKind::Duration
            | DeclKind::Timestamp
            | DeclKind::Quantity => value.is_string(),
            DeclKind::IntOrString => value.is_string() || value.is_i64(),
            DeclKind::List(_) => value.is_array(),
            DeclKind::Map(_) | DeclKind::Object(_) => value.is_object(),
            DeclKind::Cel(_) | DeclKind::Unknown => true,
        };
        let Some(written) = self.written else {
            return is_of_type;
        };
        let bound = |keyword| written.get(keyword).and_then(Json::as_f64);
        let is_within = value.as_f64().is_none_or(|number| {
            let excludes = |keyword| written.get(keyword) == Some(&Json::Bool(true));
            bound("minimum").is_none_or(|least| {
                number > least || number >= least && !excludes("exclusiveMinimum")
            }) && bound("maximum")
                .is_none_or(|most| number < most || number <= most && !excludes("exclusiveMaximum"))
        });
        let fits = value.as_str().is_none_or(|text| {
            let n = text.chars().count();
            self.number("minLength").is_none_or(|least| n >= least)
                && self.number("maxLength").is_none_or(|most| n <= most)
                && written
                    .get("pattern")
                    .and_then(Json::as_str)
                    .is_none_or(|pattern| {
                        regexp::Program::new(pattern).is_ok_and(|regex| regex.is_match(text))
                    })
        });
        is_of_type && is_within && fits
    }

    /// Changes `value`, which is at `path`, so that `need` is met behind `rest`. `is_optional` is true of a field that
    /// Kubernetes leaves out of an object of its own where it is empty.
    pub(super) fn meet(
        &self,
        value: &mut Json,
        path: &Path,
        rest: &[Segment],
        need: &Need,
    ) -> Option<()> {
        let Some((segment, rest)) = rest.split_first() else {
            return self.meet_here(value, path, need);
        };
        let is_last = rest.is_empty();
        let is_absent = is_last && need.is_present == Some(false);
        let further = path.then(segment.clone())?;
        let shape = match self.step(segment) {
            Step::Into(shape) => shape,
            Step::Open => Self::open(),
            Step::Nothing => return is_absent.then_some(()),
        };
        match (segment, value) {
            (Segment::Field(name), Json::Object(fields)) => {
                let is_certain = self.is_certain(path, segment);
                if is_absent {
                    if is_certain {
                        return None;
                    }
                    let removed = fields.remove(&**name);
                    if removed.is_some() && fields.is_empty() && self.is_map() {
                        fields.insert("other".to_owned(), shape.minimal(&further)?);
                    }
                    return Some(());
                }
                if !fields.contains_key(&**name) {
                    let mut made = shape.minimal(&further)?;
                    // What is empty, Kubernetes leaves out.
                    if !is_certain && self.own_kind.is_some() && need.max_len != Some(0) {
                        shape.grow(&mut made, &further, 1)?;
                    }
                    fields.insert((**name).to_owned(), made);
                }
                let found = fields.get_mut(&**name)?;
                shape.meet(found, &further, rest, need)?;
                if is_last && !is_certain && self.own_kind.is_some() {
                    let is_dropped = match &*found {
                        Json::Bool(false) => facts::is_never_false(name),
                        Json::String(text) => text.is_empty() && !self.is_map(),
                        Json::Array(items) => items.is_empty(),
                        Json::Object(entries) => entries.is_empty() && shape.is_map(),
                        Json::Null | Json::Bool(true) | Json::Number(_) => false,
                    };
                    return (!is_dropped).then_some(());
                }
                Some(())
            }
            (Segment::Index(n), Json::Array(items)) => {
                if is_absent {
                    return (items.len() <= *n).then_some(());
                }
                if *n >= MAX_LEN {
                    return None;
                }
                while items.len() <= *n {
                    items.push(shape.minimal(&further)?);
                }
                shape.meet(items.get_mut(*n)?, &further, rest, need)
            }
            _ => None,
        }
    }

    /// Gives `value` at least `n` elements or entries, if it can have any.
    fn grow(&self, value: &mut Json, path: &Path, n: usize) -> Option<()> {
        if n > MAX_LEN {
            return None;
        }
        match value {
            Json::Array(items) => {
                while items.len() < n {
                    let further = path.element(items.len())?;
                    let Step::Into(shape) = self.step(&Segment::Index(items.len())) else {
                        return None;
                    };
                    items.push(shape.minimal(&further)?);
                }
            }
            Json::Object(entries) if self.is_map() => {
                for key in 0..n {
                    if entries.len() >= n {
                        break;
                    }
                    let name = if key == 0 {
                        "example".to_owned()
                    } else {
                        format!("example{key}")
                    };
                    let further = path.field(&name)?;
                    let segment = Segment::Field(name.as_str().into());
                    let Step::Into(shape) = self.step(&segment) else {
                        return None;
                    };
                    entries.insert(name, shape.minimal(&further)?);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn meet_here(&self, value: &mut Json, path: &Path, need: &Need) -> Option<()> {
        if need.is_present == Some(false) {
            return None;
        }
        if let Some(equals) = &need.equals {
            if !self.allows(equals) {
                return None;
            }
            *value = equals.clone();
        }
        self.grow(value, path, need.min_len)?;
        for held in &need.holds {
            match value {
                Json::Array(items) => {
                    let Step::Into(shape) = self.step(&Segment::Index(0)) else {
                        return None;
                    };
                    if !shape.allows(held) {
                        return None;
                    }
                    if !items.contains(held) {
                        items.push(held.clone());
                    }
                }
                _ => return None,
            }
        }
        if let Some(max) = need.max_len {
            match value {
                Json::Array(items) => items.truncate(max),
                Json::Object(entries) => {
                    while entries.len() > max {
                        let key = entries.keys().next()?.clone();
                        entries.remove(&key);
                    }
                }
                _ => {}
            }
        }
        let [prefix, part, suffix] = &need.text;
        if need.equals.is_none() && !(prefix.is_empty() && part.is_empty() && suffix.is_empty()) {
            let simple = [prefix, part, suffix]
                .into_iter()
                .max_by_key(|text| text.len());
            let simple = simple.filter(|text| {
                text.starts_with(prefix.as_str())
                    && text.contains(part.as_str())
                    && text.ends_with(suffix.as_str())
            });
            let text = simple.map_or_else(|| format!("{prefix}{part}{suffix}"), Clone::clone);
            let text = Json::String(whole(text, need));
            if !self.allows(&text) {
                return None;
            }
            *value = text;
        }
        if need.differs.contains(value) {
            *value = self.other_than(&need.differs)?;
        }
        Some(())
    }

    /// A valid scalar that is none of `values`.
    fn other_than(&self, values: &[Json]) -> Option<Json> {
        let enumerated = self
            .type_
            .enum_values
            .iter()
            .flat_map(|values| values.iter().cloned());
        let usual = SAMPLES.iter().map(|text| json!(text));
        let numbers = (0..20).map(|n| json!(n));
        let bools = [json!(true), json!(false)];
        enumerated
            .chain(self.scalar())
            .chain(usual)
            .chain(numbers)
            .chain(bools)
            .find(|value| !values.contains(value) && self.allows(value) && !value.is_object())
    }
}

/// `text` with a word more at an end that no name has, `/` or `-`, unless `need` asks for that end.
fn whole(mut text: String, need: &Need) -> String {
    let [prefix, _, suffix] = &need.text;
    if suffix.is_empty() && text.ends_with(|c: char| c.is_ascii_punctuation()) {
        text.push_str(if text == "system:serviceaccount:" {
            // A user that is a service account has both, a namespace and a name.
            "default:example"
        } else {
            "example"
        });
    }
    if prefix.is_empty() && text.starts_with(|c: char| c.is_ascii_punctuation()) {
        text.insert_str(0, "example");
    }
    text
}

/// The fields that every object of Kubernetes' own kinds has.
fn is_root_field(path: &Path, name: &str) -> bool {
    path.segments.is_empty() && matches!(name, "apiVersion" | "kind" | "metadata")
}

/// The longest text that is made.
const MAX_TEXT: usize = 1_000;

/// Texts that patterns often allow.
const SAMPLES: [&str; 14] = [
    "example",
    "a",
    "example.com",
    "1",
    "1s",
    "10m",
    "1Gi",
    "10.0.0.1",
    "10.0.0.0/8",
    "https://example.com",
    "example.com/a",
    "v1",
    "A",
    "2026-01-01T00:00:00Z",
];
