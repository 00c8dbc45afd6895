//! Builds minimal valid values of a type.

use regexp::MemoryLimit;
use serde_json::{Map, Value as Json, json};

use super::satisfy::MAX_LEN;
use super::{ChildType, InputType};
use kubernetes::defaulting::NOW;
use kubernetes::schema::decl_type::DeclKind;
use kubernetes::schema::escape::unescape;
use kubernetes::validity::{FieldPath, Segment, minimal_fields, sample_text};

/// Maximum nesting of a minimal value.
const MAX_DEPTH: usize = 40;

/// Maximum number of nodes in a minimal value.
const MAX_VALUES: usize = 3_000;

/// Maximum length of a generated string, in bytes.
const MAX_TEXT: usize = 1_000;

/// Sample strings. Many patterns in schemas accept at least one of them.
pub(crate) const SAMPLE_STRINGS: [&str; 14] = [
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
    NOW,
];

impl<'a> InputType<'a> {
    /// Returns the minimal valid value at `path`. `None` if a limit is exceeded, or if no valid value is found.
    pub(crate) fn minimal(&self, path: &FieldPath) -> Option<Json> {
        let mut values_left = MAX_VALUES;
        self.complete(path, None, &mut values_left, 0)
    }

    /// Adds the required values to `given`, or builds the minimal value if `given` is `None`. Returns `None` if a limit
    /// is exceeded, or if no valid value is found.
    fn complete(
        &self,
        path: &FieldPath,
        given: Option<Json>,
        values_left: &mut usize,
        depth: usize,
    ) -> Option<Json> {
        *values_left = values_left.checked_sub(1)?;
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
                self.fill_fields(path, &mut fields, values_left, depth)?;
                Some(Json::Object(fields))
            }
            DeclKind::List(_) => {
                let mut items = match given {
                    Some(Json::Array(items)) => items,
                    Some(other) => return Some(other),
                    None => Vec::new(),
                };
                let least = self.schema_number("minItems").unwrap_or(0).min(MAX_LEN);
                let n = items.len().max(least);
                let mut given = std::mem::take(&mut items).into_iter();
                for index in 0..n {
                    items.push(self.element(path, index, given.next(), values_left, depth)?);
                }
                Some(Json::Array(items))
            }
            DeclKind::Map(_) => {
                let Some(Json::Object(entries)) = given else {
                    let least = self
                        .schema_number("minProperties")
                        .unwrap_or(0)
                        .min(MAX_LEN);
                    let mut completed = Map::new();
                    for n in 0..least {
                        let name = format!("example{n}");
                        let segment = Segment::Field(name.as_str().into());
                        let value = self.child_value(path, segment, None, values_left, depth)?;
                        completed.insert(name, value);
                    }
                    return Some(Json::Object(completed));
                };
                let mut completed = Map::new();
                for (name, value) in entries {
                    let segment = Segment::Field(name.as_str().into());
                    let value = self.child_value(path, segment, Some(value), values_left, depth)?;
                    completed.insert(name, value);
                }
                Some(Json::Object(completed))
            }
            _ => given
                .or_else(|| self.required_sample(path))
                .or_else(|| self.sample_scalar()),
        }
    }

    /// Returns a valid string at `path` if the validation of a built-in kind only accepts certain strings there.
    fn required_sample(&self, path: &FieldPath) -> Option<Json> {
        let kind = self.builtin_kind()?;
        if !matches!(self.type_.kind, DeclKind::String) {
            return None;
        }
        sample_text(kind, path).map(|text| json!(text))
    }

    fn element(
        &self,
        path: &FieldPath,
        n: usize,
        given: Option<Json>,
        values_left: &mut usize,
        depth: usize,
    ) -> Option<Json> {
        self.child_value(path, Segment::Index(n), given, values_left, depth)
    }

    fn child_value(
        &self,
        path: &FieldPath,
        segment: Segment,
        given: Option<Json>,
        values_left: &mut usize,
        depth: usize,
    ) -> Option<Json> {
        match self.child(&segment) {
            ChildType::Known(input_type) => input_type.complete(
                &path.then(segment)?,
                given,
                values_left,
                depth.saturating_add(1),
            ),
            ChildType::Any => Some(given.unwrap_or_else(|| json!({}))),
            ChildType::Never => given,
        }
    }

    /// Adds the required fields of an object. Returns `None` if a required field has no valid value.
    fn fill_fields(
        &self,
        path: &FieldPath,
        fields: &mut Map<String, Json>,
        values_left: &mut usize,
        depth: usize,
    ) -> Option<()> {
        let mut certain = Vec::new();
        if let Some(kind) = self.builtin_kind() {
            for (field, value) in minimal_fields(kind, path, |field| self.has(field)) {
                certain.push(field);
                if !fields.contains_key(field) && !value.is_empty() {
                    fields.insert(field.to_owned(), serde_json::from_str(value).ok()?);
                }
            }
        }
        for field in self.type_.declared_fields() {
            let is_always_present =
                field.required || field.has_default || certain.contains(&&*field.name);
            if !is_always_present && fields.is_empty() {
                continue;
            }
            let name = unescape(&field.name)?;
            let given = fields.remove(name.as_ref());
            if given.is_some() || is_always_present {
                let segment = Segment::Field(name.as_ref().into());
                let value = self.child_value(path, segment, given, values_left, depth)?;
                fields.insert(name.into_owned(), value);
            }
        }
        Some(())
    }

    fn schema_number(&self, keyword: &str) -> Option<usize> {
        let number = self.written?.get(keyword)?.as_u64()?;
        usize::try_from(number).ok()
    }

    /// Returns a valid scalar other than the zero value of the type.
    pub(crate) fn sample_scalar(&self) -> Option<Json> {
        if let Some(values) = &self.type_.enum_values {
            let mut values = values.iter().filter(|value| value.as_str() != Some(""));
            return values.next().cloned();
        }
        Some(match &self.type_.kind {
            DeclKind::Bool => json!(true),
            DeclKind::Int | DeclKind::Double | DeclKind::IntOrString => {
                let bound = |keyword| self.written.and_then(|it| it.get(keyword)?.as_i64());
                let least = bound("minimum").unwrap_or(1);
                let whole =
                    json!(bound("maximum").map_or(least.max(1), |most| least.max(1).min(most)));
                if self.is_double() && !self.allows(&whole) {
                    // If no integer is within the limits, one of the limits is used.
                    let limits = ["minimum", "maximum"].into_iter();
                    let mut limits = limits.filter_map(|keyword| self.written?.get(keyword));
                    return limits.find(|limit| self.allows(limit)).cloned();
                }
                whole
            }
            DeclKind::Bytes => json!("YQ=="),
            DeclKind::Duration => json!("1s"),
            DeclKind::Timestamp => match self.format() {
                Some("date") => json!("2026-01-01"),
                _ => json!(NOW),
            },
            DeclKind::Quantity => json!("1"),
            DeclKind::String => Json::String(self.sample_string()?),
            _ => json!({}),
        })
    }

    pub(crate) fn format(&self) -> Option<&'a str> {
        self.written?.get("format")?.as_str()
    }

    fn sample_string(&self) -> Option<String> {
        let samples = match self.format() {
            Some("ipv4" | "ip") => &["10.0.0.1"][..],
            Some("ipv6") => &["2001:db8::1"],
            Some("cidr") => &["10.0.0.0/8"],
            Some("uri" | "url") => &["https://example.com"],
            Some("uuid" | "uuid4") => &["123e4567-e89b-42d3-a456-426614174000"],
            Some("email") => &["a@example.com"],
            Some("hostname") => &["example.com"],
            _ => &SAMPLE_STRINGS,
        };
        let least = self.schema_number("minLength").unwrap_or(0);
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

    /// Returns true if `value` is valid. For lists, maps and objects, only the type is checked.
    pub(crate) fn allows(&self, value: &Json) -> bool {
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
            self.schema_number("minLength")
                .is_none_or(|least| n >= least)
                && self.schema_number("maxLength").is_none_or(|most| n <= most)
                && written
                    .get("pattern")
                    .and_then(Json::as_str)
                    .is_none_or(|pattern| {
                        let regex = regexp::Program::for_trials(pattern);
                        regex.is_ok_and(|regex| regex.is_match(text, &MemoryLimit) == Ok(true))
                    })
        });
        is_of_type && is_within && fits
    }
}
