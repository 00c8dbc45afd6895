//! Changes of a value by which it meets a need.

use serde_json::{Value as Json, json};

use super::least::SAMPLES;
use super::{Shape, Step};
use kubernetes::schema::decl_type::DeclKind;
use kubernetes::validity::{
    FieldPath, Segment, ValueConstraints, enum_values, has_unique_names, is_omitted_if_false,
};

/// The longest list that is made.
pub(super) const MAX_LEN: usize = 12;

impl Shape<'_> {
    /// Changes `value`, which is at `path`, so that `need` is met behind `rest`. `is_optional` is true of a field that
    /// Kubernetes leaves out of an object of its own where it is empty.
    pub(in crate::runtime_errors) fn meet(
        &self,
        value: &mut Json,
        path: &FieldPath,
        rest: &[Segment],
        need: &ValueConstraints,
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
                    if !is_certain && self.is_own() && need.max_len != Some(0) {
                        shape.grow(&mut made, &further, 1)?;
                    }
                    fields.insert((**name).to_owned(), made);
                }
                let found = fields.get_mut(&**name)?;
                shape.meet(found, &further, rest, need)?;
                if is_last && !is_certain && self.is_own() {
                    let is_dropped = match &*found {
                        Json::Bool(false) => is_omitted_if_false(name),
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
                    let made = shape.minimal(&further)?;
                    items.push(self.distinct(path, items, made));
                }
                shape.meet(items.get_mut(*n)?, &further, rest, need)
            }
            _ => None,
        }
    }

    /// Gives `value` at least `n` elements or entries, if it can have any.
    fn grow(&self, value: &mut Json, path: &FieldPath, n: usize) -> Option<()> {
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
                    let made = shape.minimal(&further)?;
                    items.push(self.distinct(path, items, made));
                }
            }
            Json::Object(entries) if self.is_map() => {
                for key in 0..n {
                    if entries.len() >= n {
                        break;
                    }
                    let name =
                        if let Some(name) = self.amounts(path).and_then(|names| names.get(key)) {
                            (*name).to_owned()
                        } else if key == 0 {
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

    /// `made` with another name than each of `items`, which Kubernetes wants of containers and volumes.
    fn distinct(&self, path: &FieldPath, items: &[Json], mut made: Json) -> Json {
        let is_keyed = (path.names().last()).is_some_and(|name| has_unique_names(name));
        let is_taken = |name: &Json| items.iter().any(|item| item.get("name") == Some(name));
        if self.is_own()
            && is_keyed
            && let Some(name) = made.get_mut("name")
            && is_taken(name)
            && let Some(text) = name.as_str()
        {
            *name = json!(format!("{text}{}", items.len()));
        }
        made
    }

    /// The usual keys of the map at `path`, where it has amounts by resource.
    fn amounts(&self, path: &FieldPath) -> Option<&'static [&'static str]> {
        let is_amounts = matches!(path.segments.last(), Some(Segment::Field(name))
            if ["limits", "requests"].contains(&&**name));
        let is_claim = self.own_kind() == Some("PersistentVolumeClaim");
        (self.is_own() && is_amounts && !is_claim).then_some(&[
            "memory",
            "cpu",
            "ephemeral-storage",
        ])
    }

    /// Gives an object whose fields are declared optional ones until it has `n`: maps first, of which any is valid.
    fn add_fields(&self, value: &mut Json, path: &FieldPath, n: usize) {
        let Json::Object(fields) = value else { return };
        let declared = self.type_.declared_fields().iter();
        let (maps, others): (Vec<_>, Vec<_>) =
            declared.partition(|field| matches!(field.type_.kind, DeclKind::Map(_)));
        for field in maps.into_iter().chain(others) {
            if fields.len() >= n {
                return;
            }
            let made = || {
                let further = path.field(&field.name)?;
                let Step::Into(shape) = self.step(&Segment::Field((*field.name).into())) else {
                    return None;
                };
                let mut made = shape.minimal(&further)?;
                shape.grow(&mut made, &further, 1)?;
                // Kubernetes may leave these out of its own objects.
                let is_kept = made != json!(false) && made != json!("") && made != json!([]);
                is_kept.then_some(made)
            };
            if !fields.contains_key(&*field.name)
                && let Some(made) = made()
            {
                fields.insert((*field.name).to_owned(), made);
            }
        }
    }

    fn meet_here(&self, value: &mut Json, path: &FieldPath, need: &ValueConstraints) -> Option<()> {
        if need.is_present == Some(false) {
            return None;
        }
        if let Some(equals) = &need.equals {
            if equals.is_null() && self.may_be_null(path) {
                *value = Json::Null;
                return Some(());
            }
            if !self.allows(equals) || self.is_no_value(path, equals) {
                return None;
            }
            *value = equals.clone();
        }
        self.grow(value, path, need.min_len)?;
        self.add_fields(value, path, need.min_len);
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
            *value = self.other_than(path, &need.differs)?;
        }
        Some(())
    }

    /// A valid scalar that is none of `values`.
    fn other_than(&self, path: &FieldPath, values: &[Json]) -> Option<Json> {
        let of_kind = self.own_kind().and_then(|kind| enum_values(kind, path));
        let of_kind = of_kind.into_iter().flatten().map(|text| json!(text));
        let enumerated = self
            .type_
            .enum_values
            .iter()
            .flat_map(|values| values.iter().cloned());
        let usual = SAMPLES.iter().map(|text| json!(text));
        let numbers = (0..20).map(|n| json!(n));
        let bools = [json!(true), json!(false)];
        of_kind
            .chain(enumerated)
            .chain(self.scalar())
            .chain(usual)
            .chain(numbers)
            .chain(bools)
            .find(|value| {
                let is_another = !values.contains(value) && !value.is_object();
                is_another && self.allows(value) && !self.is_no_value(path, value)
            })
    }

    /// Reports whether Kubernetes has a list of values for the text at `path` that `value` is not in.
    fn is_no_value(&self, path: &FieldPath, value: &Json) -> bool {
        let values = self.own_kind().and_then(|kind| enum_values(kind, path));
        let text = value.as_str().filter(|text| !text.is_empty());
        text.is_some_and(|text| values.is_some_and(|values| !values.contains(&text)))
    }
}

/// `text` with a word more at an end that no name has, `/` or `-`, unless `need` asks for that end.
fn whole(mut text: String, need: &ValueConstraints) -> String {
    let [prefix, _, suffix] = &need.text;
    if text == "*" && prefix.is_empty() && suffix.is_empty() {
        return "*.example.com".to_owned();
    }
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
