//! Changes values to satisfy constraints.

use serde_json::{Value as Json, json};

use super::minimal::SAMPLE_STRINGS;
use super::{ChildType, InputType};
use kubernetes::schema::decl_type::DeclKind;
use kubernetes::validity::{
    FieldPath, Segment, ValueConstraints, enum_values, has_unique_names, is_omitted_if_false,
};

/// Maximum length of a generated list or map.
pub(crate) const MAX_LEN: usize = 12;

impl InputType<'_> {
    /// Changes `value`, the value at `path`, so that its descendant at the relative path `rest` satisfies
    /// `constraints`. `None` if no valid value is found.
    pub(crate) fn satisfy(
        &self,
        value: &mut Json,
        path: &FieldPath,
        rest: &[Segment],
        constraints: &ValueConstraints,
    ) -> Option<()> {
        let Some((segment, rest)) = rest.split_first() else {
            return self.satisfy_here(value, path, constraints);
        };
        let is_last = rest.is_empty();
        let is_absent = is_last && constraints.is_present == Some(false);
        let child_path = path.then(segment.clone())?;
        let input_type = match self.child(segment) {
            ChildType::Known(input_type) => input_type,
            ChildType::Any => Self::any(),
            ChildType::Never => return is_absent.then_some(()),
        };
        match (segment, value) {
            (Segment::Field(name), Json::Object(fields)) => {
                let is_always_present = self.is_always_present(path, segment);
                if is_absent {
                    if is_always_present {
                        return None;
                    }
                    let removed = fields.remove(&**name);
                    if removed.is_some() && fields.is_empty() && self.is_map() {
                        let mut names = self.resource_names(path).into_iter().flatten();
                        let other = names.find(|it| ***it != **name).unwrap_or(&"other");
                        let other = (*other).to_owned();
                        fields.insert(other, input_type.minimal(&child_path)?);
                    }
                    return Some(());
                }
                if !fields.contains_key(&**name) {
                    let mut minimal = input_type.minimal(&child_path)?;
                    // The value must not be empty, because the API server omits empty values of built-in kinds.
                    if !is_always_present && self.is_builtin() && constraints.max_len != Some(0) {
                        input_type.grow(&mut minimal, &child_path, 1)?;
                    }
                    fields.insert((**name).to_owned(), minimal);
                }
                let child = fields.get_mut(&**name)?;
                input_type.satisfy(child, &child_path, rest, constraints)?;
                // The API server keeps an empty value of a field that may be null.
                let is_kept = input_type.may_be_null(&child_path);
                if is_last && !is_always_present && !is_kept && self.is_builtin() {
                    let is_dropped = match &*child {
                        Json::Bool(false) => is_omitted_if_false(name),
                        Json::String(text) => text.is_empty() && !self.is_map(),
                        Json::Array(items) => items.is_empty(),
                        Json::Object(entries) => entries.is_empty() && input_type.is_map(),
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
                    let minimal = input_type.minimal(&child_path)?;
                    items.push(self.with_unique_name(path, items, minimal));
                }
                input_type.satisfy(items.get_mut(*n)?, &child_path, rest, constraints)
            }
            _ => None,
        }
    }

    /// Adds elements or entries to `value` until there are `n`. `None` if this is not possible.
    fn grow(&self, value: &mut Json, path: &FieldPath, n: usize) -> Option<()> {
        if n > MAX_LEN {
            return None;
        }
        match value {
            Json::Array(items) => {
                while items.len() < n {
                    let child_path = path.element(items.len())?;
                    let ChildType::Known(input_type) = self.child(&Segment::Index(items.len()))
                    else {
                        return None;
                    };
                    let minimal = input_type.minimal(&child_path)?;
                    items.push(self.with_unique_name(path, items, minimal));
                }
            }
            Json::Object(entries) if self.is_map() => {
                for key in 0..n {
                    if entries.len() >= n {
                        break;
                    }
                    let name = if let Some(name) =
                        self.resource_names(path).and_then(|names| names.get(key))
                    {
                        (*name).to_owned()
                    } else if key == 0 {
                        "example".to_owned()
                    } else {
                        format!("example{key}")
                    };
                    let child_path = path.field(&name)?;
                    let segment = Segment::Field(name.as_str().into());
                    let ChildType::Known(input_type) = self.child(&segment) else {
                        return None;
                    };
                    entries.insert(name, input_type.minimal(&child_path)?);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Makes the name of `minimal` unique in `items` if Kubernetes requires unique names in the list.
    fn with_unique_name(&self, path: &FieldPath, items: &[Json], mut minimal: Json) -> Json {
        let is_keyed = (path.names().last()).is_some_and(|name| has_unique_names(name));
        let is_taken = |name: &Json| items.iter().any(|item| item.get("name") == Some(name));
        if self.is_builtin()
            && is_keyed
            && let Some(name) = minimal.get_mut("name")
            && is_taken(name)
            && let Some(text) = name.as_str()
        {
            *name = json!(format!("{text}{}", items.len()));
        }
        minimal
    }

    /// Returns typical keys if `path` is a map from resource names to quantities, such as `limits`.
    fn resource_names(&self, path: &FieldPath) -> Option<&'static [&'static str]> {
        let is_resource_list = matches!(path.segments.last(), Some(Segment::Field(name))
            if ["limits", "requests"].contains(&&**name));
        let is_claim = self.builtin_kind() == Some("PersistentVolumeClaim");
        (self.is_builtin() && is_resource_list && !is_claim).then_some(&[
            "memory",
            "cpu",
            "ephemeral-storage",
        ])
    }

    /// Adds optional fields until the object has `n` fields. Fields that are maps are added first, because a map
    /// accepts any key.
    fn add_optional_fields(&self, value: &mut Json, path: &FieldPath, n: usize) {
        let Json::Object(fields) = value else { return };
        let declared = self.type_.declared_fields().iter();
        let (maps, others): (Vec<_>, Vec<_>) =
            declared.partition(|field| matches!(field.type_.kind, DeclKind::Map(_)));
        for field in maps.into_iter().chain(others) {
            if fields.len() >= n {
                return;
            }
            let grown_minimal = || {
                let child_path = path.field(&field.name)?;
                let ChildType::Known(input_type) =
                    self.child(&Segment::Field((*field.name).into()))
                else {
                    return None;
                };
                let mut minimal = input_type.minimal(&child_path)?;
                input_type.grow(&mut minimal, &child_path, 1)?;
                // In objects of built-in kinds, the API server may omit `false`, `''` and `[]`.
                let is_kept =
                    minimal != json!(false) && minimal != json!("") && minimal != json!([]);
                is_kept.then_some(minimal)
            };
            if !fields.contains_key(&*field.name)
                && let Some(minimal) = grown_minimal()
            {
                fields.insert((*field.name).to_owned(), minimal);
            }
        }
    }

    fn satisfy_here(
        &self,
        value: &mut Json,
        path: &FieldPath,
        constraints: &ValueConstraints,
    ) -> Option<()> {
        if constraints.is_present == Some(false) {
            return None;
        }
        if let Some(equals) = &constraints.equals {
            if equals.is_null() && self.may_be_null(path) {
                *value = Json::Null;
                return Some(());
            }
            let equals = self.converted(equals);
            if !self.allows(&equals) || self.is_unlisted_value(path, &equals) {
                return None;
            }
            *value = equals;
        }
        self.grow(value, path, constraints.min_len)?;
        self.add_optional_fields(value, path, constraints.min_len);
        for held in &constraints.holds {
            match value {
                Json::Array(items) => {
                    let ChildType::Known(input_type) = self.child(&Segment::Index(0)) else {
                        return None;
                    };
                    if !input_type.allows(held) {
                        return None;
                    }
                    if !items.contains(held) {
                        items.push(held.clone());
                    }
                }
                _ => return None,
            }
        }
        if let Some(max) = constraints.max_len {
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
        let [prefix, part, suffix] = &constraints.text;
        if constraints.equals.is_none()
            && !(prefix.is_empty() && part.is_empty() && suffix.is_empty())
        {
            let simple = [prefix, part, suffix]
                .into_iter()
                .max_by_key(|text| text.len());
            let simple = simple.filter(|text| {
                text.starts_with(prefix.as_str())
                    && text.contains(part.as_str())
                    && text.ends_with(suffix.as_str())
            });
            let text = simple.map_or_else(|| format!("{prefix}{part}{suffix}"), Clone::clone);
            let text = Json::String(with_complete_words(text, constraints));
            if !self.allows(&text) {
                return None;
            }
            *value = text;
        }
        if constraints.equals.is_none() && (constraints.min.is_some() || constraints.max.is_some())
        {
            self.satisfy_range(value, constraints)?;
        }
        if constraints.differs.contains(value) {
            *value = self.different_scalar(path, &constraints.differs)?;
        }
        constraints.is_in_range(value).then_some(())
    }

    /// Converts a number to a string if this type is a string, and the reverse. The types may differ because symbolic
    /// evaluation ignores the conversions `int()` and `string()`.
    fn converted(&self, value: &Json) -> Json {
        let converted = match value {
            Json::Number(number) => Some(json!(number.to_string())),
            Json::String(text) => text.parse::<i64>().ok().map(|number| json!(number)),
            _ => None,
        };
        let converted = converted.filter(|it| !self.allows(value) && self.allows(it));
        converted.unwrap_or_else(|| value.clone())
    }

    /// Changes a number, or a string that must denote a number, so that it is in the required range.
    fn satisfy_range(&self, value: &mut Json, constraints: &ValueConstraints) -> Option<()> {
        let is_number = match &*value {
            Json::String(text) => text.parse::<i64>().is_ok(),
            value => value.is_number(),
        };
        let is_right =
            |value: &Json| constraints.is_in_range(value) && !constraints.differs.contains(value);
        if is_number && is_right(value) {
            return Some(());
        }
        let n = i64::try_from(constraints.differs.len()).unwrap_or(i64::MAX);
        let from_min = constraints.min.into_iter();
        let from_min = from_min.flat_map(|min| (0..=n).map(move |n| min.saturating_add(n)));
        let from_max = constraints.max.into_iter();
        let from_max = from_max.flat_map(|max| (0..=n).map(move |n| max.saturating_sub(n)));
        let numbers = from_min.chain(from_max);
        let mut values = numbers.map(|number| self.converted(&json!(number)));
        *value = values.find(|it| is_right(it) && self.allows(it))?;
        Some(())
    }

    /// Returns a valid scalar that is not in `values`.
    fn different_scalar(&self, path: &FieldPath, values: &[Json]) -> Option<Json> {
        let n = values.len().saturating_add(1);
        let mut scalars = self.sample_scalars(path, n).into_iter();
        scalars.find(|value| !values.contains(value))
    }

    /// Returns up to `n` different valid scalars. The values of an enumeration are first.
    pub(crate) fn sample_scalars(&self, path: &FieldPath, n: usize) -> Vec<Json> {
        let of_kind = self.builtin_kind().and_then(|kind| enum_values(kind, path));
        let of_kind = of_kind.into_iter().flatten().map(|text| json!(text));
        let enumerated = self
            .type_
            .enum_values
            .iter()
            .flat_map(|values| values.iter().cloned());
        let usual = SAMPLE_STRINGS.iter().map(|text| json!(text));
        let numbers = (0..20).map(|n| json!(n));
        let bools = [json!(true), json!(false)];
        let all = of_kind
            .chain(enumerated)
            .chain(self.sample_scalar())
            .chain(usual)
            .chain(numbers)
            .chain(bools);
        let mut samples: Vec<Json> = Vec::new();
        for value in all {
            if samples.len() >= n {
                break;
            }
            let is_new = !samples.contains(&value) && !value.is_object();
            if is_new && self.allows(&value) && !self.is_unlisted_value(path, &value) {
                samples.push(value);
            }
        }
        samples
    }

    /// Returns true if `path` is an enumeration in a built-in kind, and `value` is not one of the enumeration's values.
    fn is_unlisted_value(&self, path: &FieldPath, value: &Json) -> bool {
        let values = self.builtin_kind().and_then(|kind| enum_values(kind, path));
        let text = value.as_str().filter(|text| !text.is_empty());
        text.is_some_and(|text| values.is_some_and(|values| !values.contains(&text)))
    }
}

/// Adds a word to the end or start of a string that ends or starts with punctuation, such as `example.com/`. Does not
/// add a word before a required prefix or after a required suffix.
fn with_complete_words(mut text: String, constraints: &ValueConstraints) -> String {
    let [prefix, _, suffix] = &constraints.text;
    if text == "*" && matches!(&**prefix, "" | "*") && suffix.is_empty() {
        return "*.example.com".to_owned();
    }
    if suffix.is_empty() && text.ends_with(|c: char| c.is_ascii_punctuation()) {
        text.push_str(if text == "system:serviceaccount:" {
            // The name of a service account consists of a namespace and a name.
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
