//! Validates values against schemas: types, limits, patterns, formats, enumerations and alternatives.
//!
//! The module `metadata` validates metadata.
//!
//! Differs:
//!
//! - Fields are sorted by name. Upstream's order is random.
//! - If a value or a schema is too large, validation stops with an error.
//! - Not supported, because current CRDs cannot contain them: `$ref`, `patternProperties`, `additionalItems`,
//!   `dependencies`, and a list of schemas in `items`.
//! - Errors that start with `IMPORTANT!` do not replace other errors.
//!
//! Source: kube-openapi `pkg/validation/validate` (`schema.go`, `type.go`, `schema_props.go`, `validator.go`,
//! `slice_validator.go`, `object_validator.go`, `values.go`); apiextensions-apiserver
//! `pkg/apiserver/validation/ratcheting.go`.

use std::collections::HashSet;

use regexp::MemoryLimit;
use serde_json::{Map, Value as Json};

use super::number;
use super::outcome::{Fault, Outcome, shown};
use super::schema::Schema;
use crate::go_json;
use crate::validation_rules::FieldErrorKind;
use crate::validation_rules::correlation::Correlated;
use cel::value::{format_double, go_quote};

/// The path of a value, with a link to the parent's path.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Property(&'a Place<'a>, &'a str),
    /// A map value (`additionalProperties`) and its key.
    Entry(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// Formats the path like upstream. A map entry at the root has a leading dot.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Property(around, name) => match around.text() {
                text if text.is_empty() => (*name).to_owned(),
                text => format!("{text}.{name}"),
            },
            Self::Entry(around, name) => format!("{}.{name}", around.text()),
            Self::Item(around, index) => format!("{}[{index}]", around.text()),
        }
    }
}

/// The maximum work for validating one object. One unit is roughly the work for one byte of a string. Each validated
/// value costs an additional [`VISIT`] units.
const MAX_WORK: u64 = 200_000_000;

/// The work for validating one value against one schema, in the same unit as [`MAX_WORK`].
const VISIT: usize = 32;

/// The remaining work for one object.
#[derive(Debug)]
pub(super) struct Walk {
    left: u64,
    pub(super) is_over: bool,
}

impl Walk {
    pub(super) const fn new() -> Self {
        Self {
            left: MAX_WORK,
            is_over: false,
        }
    }

    /// Subtracts `work` from the remaining work. Returns false if `work` exceeds the remaining work.
    fn take(&mut self, work: usize) -> bool {
        match self
            .left
            .checked_sub(u64::try_from(work).unwrap_or(u64::MAX))
        {
            Some(left) => self.left = left,
            None => self.is_over = true,
        }
        !self.is_over
    }

    fn add(&mut self, outcome: &mut Outcome, fault: Fault) {
        if self.take(fault.len()) {
            outcome.add(fault);
        }
    }

    fn outcome(&mut self, fault: Fault) -> Outcome {
        if self.take(fault.len()) {
            Outcome::from_fault(fault)
        } else {
            Outcome::default()
        }
    }

    /// Validates `data` against `schema`. If the update did not change the value, returns no errors. `before` contains
    /// the old value.
    pub(super) fn ratcheted(
        &mut self,
        schema: &Schema,
        data: &Json,
        place: &Place<'_>,
        before: &Correlated<'_>,
    ) -> Outcome {
        let mut outcome = self.value(schema, data, place, Some(before));
        if !outcome.is_valid() && before.is_equal() {
            let n_checks = outcome.n_checks;
            outcome = Outcome::default();
            outcome.n_checks = n_checks;
        }
        outcome
    }

    /// Validates `data` against `schema`. `before` contains the old value if the old object has a corresponding value.
    pub(super) fn value(
        &mut self,
        schema: &Schema,
        data: &Json,
        place: &Place<'_>,
        before: Option<&Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if !self.take(VISIT) {
            return outcome;
        }
        if data.is_null() {
            outcome.merge(self.type_(schema, data, place));
            outcome.merge(self.enumerated(schema, data, place));
            return outcome;
        }
        if !schema.types.is_empty() || schema.format.is_some() {
            outcome.merge(self.type_(schema, data, place));
            outcome.count();
        }
        outcome.merge(self.combined(schema, data, place));
        outcome.count();
        if let Json::String(text) = data {
            outcome.merge(self.text(schema, text, place));
            outcome.count();
            if let Some(format) = schema.text_format {
                if self.take(text.len()) && !format.is_valid(text) {
                    let name = schema.format.as_deref().unwrap_or_default();
                    let fault = invalid_type(&place.text(), name, text);
                    self.add(&mut outcome, fault);
                }
                outcome.count();
            }
        }
        if let Json::Number(number) = data {
            let mut inner = Outcome::default();
            for fault in number::faults(schema, number, place) {
                self.add(&mut inner, fault);
            }
            inner.count();
            outcome.merge(inner);
            outcome.count();
        }
        if let Json::Array(items) = data {
            outcome.merge(self.list(schema, items, place, before));
            outcome.count();
        }
        outcome.merge(self.enumerated(schema, data, place));
        outcome.count();
        if let Json::Object(fields) = data {
            outcome.merge(self.object(schema, fields, place, before));
            outcome.count();
        }
        outcome.count();
        outcome
    }

    /// Source: kube-openapi `pkg/validation/validate/type.go`, `typeValidator.Validate`.
    fn type_(&mut self, schema: &Schema, data: &Json, place: &Place<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.count();
        let (type_, format) = number::type_of(data);
        if data.is_null() {
            if !schema.types.is_empty() && !schema.has_type("null") && !schema.nullable {
                return self.outcome(invalid_type(&place.text(), &schema.types.join(","), "null"));
            }
            return outcome;
        }
        let is_listed = schema.has_type(type_)
            || type_ == "number" && schema.has_type("integer") && number::is_whole(data)
            || type_ == "integer" && schema.has_type("number");
        let expected = schema.format.as_deref().unwrap_or_default();
        let is_text_or_list = data.is_string() || data.is_array();
        if !is_text_or_list && !expected.is_empty() && !is_listed && format != expected {
            return self.outcome(invalid_type(&place.text(), expected, format));
        }
        let takes_numbers = schema.has_type("number") || schema.has_type("integer");
        if !takes_numbers && !expected.is_empty() && is_text_or_list {
            return outcome;
        }
        if !is_listed {
            return self.outcome(invalid_type(&place.text(), &schema.types.join(","), type_));
        }
        outcome
    }

    /// Source: kube-openapi `pkg/validation/validate/validator.go`, `stringValidator.Validate`.
    fn text(&mut self, schema: &Schema, text: &str, place: &Place<'_>) -> Outcome {
        let needs_length = schema.max_length.is_some() || schema.min_length.is_some();
        let n = if needs_length {
            text.chars().count()
        } else {
            0
        };
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        if let Some(max) = schema.max_length.filter(|max| n > *max) {
            let path = place.text();
            let text = format!("{path} in body should be at most {max} chars long");
            let detail = schema.length_errors.string_text(max);
            return self.outcome(Fault::with_key(
                &path,
                FieldErrorKind::TooLong,
                None,
                text,
                detail,
            ));
        }
        if let Some(min) = schema.min_length.filter(|min| n < *min) {
            let detail = format!("should be at least {min} chars long");
            return self.outcome(invalid(&place.text(), go_quote(text), &detail));
        }
        let Some(pattern) = &schema.pattern else {
            return Outcome::default();
        };
        if !self.take(text.len()) {
            return Outcome::default();
        }
        let detail = match &pattern.program {
            Ok(program) => match program.is_match(text, &MemoryLimit) {
                Ok(true) => return Outcome::default(),
                Ok(false) => format!("should match '{}'", pattern.source),
                Err(error) => format!("should match '{}', but {error}", pattern.source),
            },
            Err(error) => format!(
                "should match '{}, but pattern is invalid: {error}'",
                pattern.source
            ),
        };
        self.outcome(invalid(&place.text(), go_quote(text), &detail))
    }

    /// Source: kube-openapi `pkg/validation/validate/validator.go`, `basicCommonValidator.Validate`.
    fn enumerated(&mut self, schema: &Schema, data: &Json, place: &Place<'_>) -> Outcome {
        if schema.values.is_empty()
            || !self.take(schema.values.len())
            || schema
                .values
                .iter()
                .any(|value| number::is_converted(data, value))
        {
            return Outcome::default();
        }
        let path = place.text();
        let values = schema.values.iter().map(|value| match value {
            Json::String(text) => go_quote(text),
            other => go_quote(&go_json::to_text(other)),
        });
        let values = values.collect::<Vec<_>>().join(", ");
        // Upstream deduplicates errors by this message. Two enumerations with the same printed values therefore cause
        // one error.
        let text = format!("{path} in body should be one of [{values}]");
        let detail = format!("supported values: {values}");
        let kind = FieldErrorKind::NotSupported;
        self.outcome(Fault::with_key(
            &path,
            kind,
            Some(shown(data)),
            text,
            detail,
        ))
    }

    /// Source: kube-openapi `pkg/validation/validate/slice_validator.go`, `schemaSliceValidator.Validate`.
    fn list(
        &mut self,
        schema: &Schema,
        items: &[Json],
        place: &Place<'_>,
        before: Option<&Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(inner) = &schema.items {
            let elements = before.map(Correlated::elements);
            for (n, item) in items.iter().enumerate() {
                let place = Place::Item(place, n);
                let element = elements.as_ref().and_then(|elements| elements.get(n));
                outcome.merge(match element {
                    Some(before) => self.ratcheted(inner, item, &place, &before),
                    None => self.value(inner, item, &place, None),
                });
            }
        }
        let n = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_items.filter(|min| n < *min) {
            let detail = format!("should have at least {min} items");
            self.add(&mut outcome, invalid(&place.text(), n.to_string(), &detail));
        }
        if let Some(max) = schema.max_items.filter(|max| n > *max) {
            self.add(&mut outcome, too_many(&place.text(), "items", n, max));
        }
        if schema.unique_items && has_duplicates(items) {
            let detail = "shouldn't contain duplicates";
            self.add(&mut outcome, invalid(&place.text(), go_quote(""), detail));
        }
        outcome.count();
        outcome
    }

    /// Source: kube-openapi `pkg/validation/validate/object_validator.go`, `objectValidator.Validate`.
    fn object(
        &mut self,
        schema: &Schema,
        fields: &Map<String, Json>,
        place: &Place<'_>,
        before: Option<&Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let n = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_properties.filter(|min| n < *min) {
            let detail = format!("should have at least {min} properties");
            self.add(&mut outcome, invalid(&place.text(), n.to_string(), &detail));
        }
        if let Some(max) = schema.max_properties.filter(|max| n > *max) {
            self.add(&mut outcome, too_many(&place.text(), "properties", n, max));
        }
        if schema.is_closed || schema.additional.is_some() {
            for (name, field) in sorted(fields) {
                if schema.properties.contains_key(name) {
                    continue;
                }
                if schema.is_closed {
                    let path = place.text();
                    let text = format!("{path}.{name} in body is a forbidden property");
                    let kind = FieldErrorKind::Invalid;
                    self.add(
                        &mut outcome,
                        Fault::new(&path, kind, Some(go_quote(name)), text),
                    );
                } else if let Some(inner) = &schema.additional {
                    let place = Place::Entry(place, name);
                    outcome.merge(self.field(inner, (name, field), &place, before));
                }
            }
        }
        for (name, inner) in &schema.properties {
            if let Some(field) = fields.get(&**name) {
                let place = Place::Property(place, name);
                outcome.merge(self.field(inner, (name, field), &place, before));
            }
        }
        for name in &schema.required {
            if !fields.contains_key(&**name) {
                let path = format!("{}.{name}", place.text());
                let text = format!("{path} in body is required");
                let kind = FieldErrorKind::Required;
                self.add(
                    &mut outcome,
                    Fault::with_key(&path, kind, None, text, String::new()),
                );
            }
        }
        outcome
    }

    /// Source: apiextensions-apiserver `pkg/apiserver/validation/ratcheting.go`, `SubPropertyValidator`.
    fn field(
        &mut self,
        schema: &Schema,
        (name, field): (&str, &Json),
        place: &Place<'_>,
        before: Option<&Correlated<'_>>,
    ) -> Outcome {
        let is_of_root = matches!(
            place,
            Place::Property(Place::Root, "kind" | "apiVersion")
                | Place::Entry(Place::Root, "kind" | "apiVersion")
        );
        let before = before
            .filter(|_| !is_of_root)
            .and_then(|before| before.key(name));
        match before {
            Some(before) => self.ratcheted(schema, field, place, &before),
            None => self.value(schema, field, place, None),
        }
    }

    /// Source: kube-openapi `pkg/validation/validate/schema_props.go`, `schemaPropsValidator.Validate`.
    fn combined(&mut self, schema: &Schema, data: &Json, place: &Place<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if !schema.any_of.is_empty() {
            let mut selected: Option<Outcome> = None;
            for alternative in &schema.any_of {
                let result = self.value(alternative, data, place, None);
                if result.is_valid() {
                    selected = Some(result);
                    break;
                }
                if selected
                    .as_ref()
                    .is_none_or(|best| result.n_checks > best.n_checks)
                {
                    selected = Some(result);
                }
            }
            if selected
                .as_ref()
                .is_some_and(|selected| !selected.is_valid())
            {
                let text = format!(
                    "{} must validate at least one schema (anyOf)",
                    go_quote(&place.text())
                );
                self.add(&mut outcome, Fault::without_path(text));
            }
            outcome.merge(selected.unwrap_or_default());
        }
        if !schema.one_of.is_empty() {
            outcome.merge(self.one_of(&schema.one_of, data, place));
        }
        if !schema.all_of.is_empty() {
            let mut n_valid: usize = 0;
            for part in &schema.all_of {
                let result = self.value(part, data, place, None);
                n_valid = n_valid.saturating_add(usize::from(result.is_valid()));
                outcome.merge(result);
            }
            if n_valid != schema.all_of.len() {
                let end = if n_valid == 0 { ". None validated" } else { "" };
                let path = go_quote(&place.text());
                let text = format!("{path} must validate all the schemas (allOf){end}");
                self.add(&mut outcome, Fault::without_path(text));
            }
        }
        if let Some(not) = &schema.not
            && self.value(not, data, place, None).is_valid()
        {
            let text = format!(
                "{} must not validate the schema (not)",
                go_quote(&place.text())
            );
            self.add(&mut outcome, Fault::without_path(text));
        }
        outcome.count();
        outcome
    }

    fn one_of(&mut self, alternatives: &[Schema], data: &Json, place: &Place<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut best: Option<Outcome> = None;
        let mut valid: Option<Outcome> = None;
        let mut n_valid: usize = 0;
        for alternative in alternatives {
            let result = self.value(alternative, data, place, None);
            if result.is_valid() {
                n_valid = n_valid.saturating_add(1);
                best = None;
                valid.get_or_insert(result);
            } else if n_valid == 0
                && best
                    .as_ref()
                    .is_none_or(|best| result.n_checks > best.n_checks)
            {
                best = Some(result);
            }
        }
        if n_valid == 1 {
            return valid.unwrap_or_default();
        }
        let reason = match n_valid {
            0 => "Found none valid".to_owned(),
            n => format!("Found {n} valid alternatives"),
        };
        let path = go_quote(&place.text());
        let text = format!("{path} must validate one and only one schema (oneOf). {reason}");
        self.add(&mut outcome, Fault::without_path(text));
        outcome.merge(best.unwrap_or_default());
        outcome
    }
}

pub(super) fn sorted(fields: &Map<String, Json>) -> Vec<(&str, &Json)> {
    let mut sorted: Vec<_> = fields
        .iter()
        .map(|(name, field)| (name.as_str(), field))
        .collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}

/// Creates an error for `value`. The message consists of the path and `detail`.
pub(super) fn invalid(path: &str, value: String, detail: &str) -> Fault {
    let text = format!("{path} in body {detail}");
    Fault::new(path, FieldErrorKind::Invalid, Some(value), text)
}

fn invalid_type(path: &str, expected: &str, actual: &str) -> Fault {
    let actual = go_quote(actual);
    let text = format!("{path} in body must be of type {expected}: {actual}");
    Fault::new(path, FieldErrorKind::TypeInvalid, Some(actual), text)
}

fn too_many(path: &str, noun: &str, n: i64, max: i64) -> Fault {
    let text = format!("{path} in body should have at most {max} {noun}");
    let detail = match max {
        1 => "must have at most 1 item".to_owned(),
        0.. => format!("must have at most {max} items"),
        _ => "has too many items".to_owned(),
    };
    Fault::with_key(
        path,
        FieldErrorKind::TooMany,
        Some(n.to_string()),
        text,
        detail,
    )
}

fn has_duplicates(items: &[Json]) -> bool {
    let mut seen = HashSet::new();
    !items.iter().all(|item| seen.insert(identity(item)))
}

/// Returns the same string for all values that Go considers equal.
pub(super) fn identity(value: &Json) -> String {
    match value {
        Json::Number(number) if !number.is_i64() => {
            format!(
                "float64 {}",
                format_double(number.as_f64().unwrap_or_default() + 0.0)
            )
        }
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(identity).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(fields) => {
            let fields = sorted(fields).into_iter();
            let fields: Vec<String> = fields
                .map(|(name, field)| format!("{}:{}", go_quote(name), identity(field)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        other => go_json::to_text(other),
    }
}
