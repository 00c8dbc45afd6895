//! The document of a policy, binding, webhook or CustomResourceDefinition decoded as strictly as the API server does it: fields that the kind does
//! not have, keys given twice, values of the wrong type.
//!
//! It walks what is written, so that each finding has its place; null is as good as left out. What a value that
//! can be decoded has to be is told in [`super::validation`].
//!
//! Source: `k8s.io/apimachinery` `pkg/runtime/serializer/json/json.go` (`Serializer.unmarshal`);
//! `sigs.k8s.io/json`, `UnmarshalStrict`; `sigs.k8s.io/yaml`, `YAMLToJSONStrict`.

use goyaml::{Data, Entry, Node};
use serde_json::{Number, Value};

use super::api_version;
use super::crd::dropped;
use super::finding::{Finding, Owner, Severity};
use super::policy::finding;
use super::suggestion::{nearest, nearest_only};
use super::types::{self, Type};
use super::validation;
use crate::cel::base64;
use crate::cel::temporal::{TimestampError, parse_timestamp};
use crate::cli::input::Object;
use crate::policy::rule::Rule;

/// The most findings about the shape of one document.
const MAX_FINDINGS: usize = 20;

const CRD: &str = "CustomResourceDefinition";

/// The version of CustomResourceDefinitions whose types are known.
const CRD_VERSION: &str = "apiextensions.k8s.io/v1";

/// The longest text that advice repeats, in bytes.
const MAX_SHOWN: usize = 40;

/// Checks the shape of a document; returns its faults.
#[must_use]
pub fn check<T>(object: &Object<T>) -> Vec<Finding> {
    let mut walk = Walk {
        object,
        findings: Vec::new(),
        n_lax: 0,
    };
    let is_read = object.kind() != CRD || object.api_version() == CRD_VERSION;
    if let Some(type_) = types::of_kind(object.kind()).filter(|_| is_read) {
        walk.node(&object.document.node, type_, "");
    }
    walk.findings
}

/// The faults of a document that does not have the shape of its kind.
#[must_use]
pub fn invalid(object: &Object<String>) -> Vec<Finding> {
    if let Some(found) = api_version::of_definition(object) {
        return vec![found];
    }
    let findings = check(object);
    if findings.iter().any(|found| found.refused) {
        return findings;
    }
    let message = &object.value;
    let message = if message.starts_with("cannot read") {
        message.clone()
    } else {
        format!("cannot read this object: {message}")
    };
    let (severity, rule) = (Severity::Error, Rule::InvalidObject);
    let mut found = finding(object, severity, rule, &message, object.place());
    // Half a definition is mostly a patch, which lies beside the whole one.
    if object.kind() == CRD && message.ends_with("is missing") {
        let help = "if it is a patch of kustomize, check what `kubectl kustomize` prints, and leave this file out";
        found.help = Some(help.to_owned());
    }
    if object.kind() == CRD {
        found.owner = Owner::crd(object.name());
    }
    vec![found]
}

struct Walk<'a, T> {
    object: &'a Object<T>,
    findings: Vec<Finding>,
    /// How many values that decode themselves are around what is looked at: there unknown fields are dropped.
    n_lax: usize,
}

impl<T> Walk<'_, T> {
    /// Holds `node`, at `path`, against its type. What is read nests in bounds.
    fn node(&mut self, node: &Node, type_: Type, path: &str) {
        if node.is_null() {
            return;
        }
        match (type_, &node.data) {
            (Type::Object(fields), Data::Map(entries)) => {
                for (name, entry) in entries.iter() {
                    let path = joined(path, name);
                    self.repeats(entry, name, &path);
                    match fields.iter().find(|(field, _)| *field == name) {
                        Some((_, type_)) => self.node(&entry.node, *type_, &path),
                        None => self.unknown((name, entry), fields, &path),
                    }
                }
            }
            (Type::Either(fields, _), Data::Map(_)) => {
                self.n_lax += 1;
                self.node(node, Type::Object(fields), path);
                self.n_lax -= 1;
            }
            (Type::Either(_, other), data) if !is_left_out(other, data) => {
                self.n_lax += 1;
                self.node(node, *other, path);
                self.n_lax -= 1;
            }
            (Type::Map(value), Data::Map(entries)) => {
                for (name, entry) in entries.iter() {
                    let path = format!("{path}[{name}]");
                    self.repeats(entry, name, &path);
                    self.node(&entry.node, *value, &path);
                }
            }
            (Type::List(item), Data::List(items)) => {
                for (n, node) in items.iter().enumerate() {
                    self.node(node, *item, &format!("{path}[{n}]"));
                }
            }
            (Type::Texts, Data::Map(entries)) => {
                for (name, entry) in entries.iter() {
                    let path = joined(path, name);
                    self.repeats(entry, name, &path);
                    self.node(&entry.node, Type::Text, &path);
                }
            }
            // Keys count wherever they are.
            (Type::Any, Data::Map(entries)) => {
                for (name, entry) in entries.iter() {
                    let path = joined(path, name);
                    self.repeats(entry, name, &path);
                    self.node(&entry.node, Type::Any, &path);
                }
            }
            (Type::Any, Data::List(items)) => {
                for (n, node) in items.iter().enumerate() {
                    self.node(node, Type::Any, &format!("{path}[{n}]"));
                }
            }
            // Go reads bytes out of a list of numbers too.
            (Type::Bytes, Data::List(items)) => {
                for (n, node) in items.iter().enumerate() {
                    self.node(node, Type::Byte, &format!("{path}[{n}]"));
                }
            }
            (Type::Any | Type::Either(..), Data::Scalar(..)) => {}
            _ => self.value(node, type_, path),
        }
    }

    /// Adds a field that an object with these `fields` does not have.
    fn unknown(
        &mut self,
        (name, entry): (&str, &Entry),
        fields: &'static [types::Field],
        path: &str,
    ) {
        let message = format!("unknown field `{path}`");
        let place = self.object.place_of_bytes(&entry.key);
        let length = length(&entry.key, name);
        let n_before = self.findings.len();
        self.add(Rule::UnknownField, &message, place, path, length);
        let names = fields.iter().map(|(field, _)| *field);
        let advice = self.object.advice_on_key_at(&entry.key, name);
        let meant = nearest(name, names.clone());
        let meant = meant.filter(|_| advice.is_none());
        self.help(advice.or_else(|| meant.map(did_you_mean)));
        self.rename(&entry.key, path, nearest_only(name, names));
        if self.n_lax > 0 {
            let added = self.findings.iter_mut().skip(n_before);
            added.for_each(|found| dropped(found, meant));
        }
        self.node(&entry.node, Type::Any, path);
    }

    /// Adds the repetitions of a key, also by a merge key.
    ///
    /// kubectl and all clients that send JSON take the last of them without a word (`sigs.k8s.io/yaml`, `YAMLToJSON`;
    /// `k8s.io/cli-runtime` `pkg/resource/visitor.go`, `StreamVisitor`); the API server refuses YAML with one.
    fn repeats(&mut self, entry: &Entry, name: &str, path: &str) {
        for repeat in &entry.repeats {
            let message = format!("`{name}` is given twice");
            let place = self.object.place_of_bytes(repeat);
            self.add(
                Rule::DuplicateKey,
                &message,
                place,
                path,
                length(repeat, name),
            );
            self.help(Some(
                "remove one of the two: kubectl sends the last one without a word, where the API server gets the YAML"
                    .to_owned(),
            ));
        }
        if !entry.merged.is_empty() {
            let message = format!("`{name}` is given twice, by a merge key (`<<`) and beside it");
            let place = self.object.place_of_bytes(&entry.key);
            self.add(
                Rule::DuplicateKey,
                &message,
                place,
                path,
                length(&entry.key, name),
            );
            self.help(Some(
                "write out what differs instead of merging it: kubectl sends what stands beside `<<`, and the API server \
                 refuses the YAML"
                    .to_owned(),
            ));
        }
    }

    /// Holds what is no object of an object type, and no list of a list type, against its type.
    fn value(&mut self, node: &Node, type_: Type, path: &str) {
        let found = match &node.data {
            Data::Scalar(Value::Bool(_), _) => "a boolean",
            Data::Scalar(Value::Number(_), _) => "a number",
            Data::Scalar(..) => "a string",
            Data::List(_) => "a list",
            Data::Map(_) => "an object",
        };
        let wanted = match type_ {
            Type::Bool => "a boolean",
            Type::Int | Type::Int32 | Type::Byte | Type::Number => "a number",
            Type::Text | Type::Time | Type::Bytes => "a string",
            Type::List(_) => "a list",
            Type::Texts | Type::Object(_) | Type::Map(_) | Type::Either(..) => "an object",
            Type::Any => return,
        };
        let place = self.object.place_of(node);
        let length = self.object.length_of(node);
        let text = node.as_str().unwrap_or_default();
        let invalid = Rule::InvalidObject;
        if found != wanted {
            let path = if path.is_empty() {
                "the document"
            } else {
                path
            };
            let message = format!("`{path}` must be {wanted}, and is {found}");
            self.add(invalid, &message, place, path, length);
            let is_scalar = matches!(node.data, Data::Scalar(..));
            self.help(match wanted {
                "a string" if is_scalar => Some(match choices(path) {
                    Some(choices) => format!("write {choices}"),
                    None => "put it in quotation marks".to_owned(),
                }),
                "a list" if !text.is_empty() && text.len() <= MAX_SHOWN => {
                    Some(format!("write `[{text}]`"))
                }
                "a list" => Some("write it as an item, behind `- `".to_owned()),
                _ => None,
            });
            return;
        }
        match (type_, &node.data) {
            (Type::Int, Data::Scalar(Value::Number(number), _)) if !is_integer(number) => {
                let message = format!("`{path}` must be an integer of 64 bits, and is {number}");
                self.add(invalid, &message, place, path, length);
            }
            (Type::Int32, Data::Scalar(Value::Number(number), _))
                if !is_within(number, i32::MIN, i32::MAX) =>
            {
                let message = format!("`{path}` must be an integer of 32 bits, and is {number}");
                self.add(invalid, &message, place, path, length);
            }
            (Type::Byte, Data::Scalar(Value::Number(number), _)) if !is_within(number, 0, 255) => {
                let message = format!("`{path}` must be an integer from 0 to 255, and is {number}");
                self.add(invalid, &message, place, path, length);
            }
            (Type::Bytes, Data::Scalar(Value::String(text), _))
                if base64::decode(text).is_err() =>
            {
                let message = format!("`{path}` is no base64");
                self.add(invalid, &message, place, path, length);
                self.help(Some(
                    "write the bytes as base64, or leave it out for a tool to fill in".to_owned(),
                ));
            }
            (Type::Time, Data::Scalar(Value::String(text), _)) if !is_time(text) => {
                let message = format!("`{path}` is no time by RFC 3339");
                self.add(invalid, &message, place, path, length);
                self.help(Some("write it as 2006-01-02T15:04:05Z".to_owned()));
            }
            _ => {}
        }
    }

    fn add(
        &mut self,
        rule: Rule,
        message: &str,
        place: crate::cli::input::Place,
        path: &str,
        length: usize,
    ) {
        if self.findings.len() < MAX_FINDINGS {
            let mut found = finding(self.object, Severity::Error, rule, message, place);
            found.field_ref = Some(path.to_owned());
            found.location.length = length;
            found.refused = true;
            found.help = Some(validation::help(None));
            self.findings.push(found);
        }
    }

    /// Adds the one name that a key can have been meant for to the last finding, which is about the key at `path`.
    fn rename(&mut self, key: &std::ops::Range<usize>, path: &str, meant: Option<&str>) {
        let of_key = |found: &&mut Finding| found.field_ref.as_deref() == Some(path);
        if let (Some(last), Some(meant)) = (self.findings.last_mut().filter(of_key), meant) {
            let object = self.object;
            last.fix = object.document.edit_key(&object.source, key, meant);
        }
    }

    /// Adds what to do to the last finding.
    fn help(&mut self, advice: Option<String>) {
        if let (Some(last), Some(advice)) = (self.findings.last_mut(), advice) {
            last.help = Some(validation::help(Some(&advice)));
        }
    }
}

/// The texts that the field at `path` takes, where it takes no others: one of them was meant, and quotation marks do not
/// help.
fn choices(path: &str) -> Option<&'static str> {
    let field = path.rsplit('.').next().unwrap_or(path);
    Some(match field.split('[').next().unwrap_or(field) {
        "failurePolicy" => "`Fail` or `Ignore`",
        "matchPolicy" => "`Exact` or `Equivalent`",
        "parameterNotFoundAction" => "`Allow` or `Deny`",
        "patchType" => "`ApplyConfiguration` or `JSONPatch`",
        "reinvocationPolicy" => "`Never` or `IfNeeded`",
        "sideEffects" => "`None` or `NoneOnDryRun`",
        "validationActions" => "`Deny`, `Warn` or `Audit`",
        _ => return None,
    })
}

/// Reports whether a value that is no list counts as left out where a list is the other type that it may be of.
const fn is_left_out(other: &Type, data: &Data) -> bool {
    matches!((other, data), (Type::List(_), Data::Scalar(..)))
}

/// How many code points a key has as it is written.
fn length(key: &std::ops::Range<usize>, name: &str) -> usize {
    let quotes = key.len().saturating_sub(name.len());
    let quotes = if quotes == 2 { 2 } else { 0 };
    (name.chars().count() + quotes).max(1)
}

/// Reports whether Go decodes the number, as it is written in JSON, as an `int64`.
fn is_integer(number: &Number) -> bool {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    number.is_i64()
        || number.is_f64()
            && number
                .as_f64()
                .is_some_and(|number| number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number))
}

/// Reports whether it is an integer from `least` to `most`.
fn is_within(number: &Number, least: i32, most: i32) -> bool {
    let range = f64::from(least)..=f64::from(most);
    is_integer(number)
        && number
            .as_f64()
            .is_some_and(|number| range.contains(&number))
}

/// Reports whether Go reads the text as a time, of whatever year.
///
/// Source: `pkg/apis/meta/v1/time.go`, `Time.UnmarshalJSON`.
fn is_time(text: &str) -> bool {
    parse_timestamp(text) != Err(TimestampError::Malformed)
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, wanted) in [
            ("2006-01-02T15:04:05Z", true),
            ("2006-01-02T15:04:05.123+01:00", true),
            ("2006-01-02T15:04:05,1-23:59", true),
            ("2006-01-02T15:04:05+24:60", true),
            ("2006-01-02T15:04:05+25:00", false),
            ("2006-01-02T15:04:05+00:61", false),
            ("2024-02-29T00:00:00Z", true),
            ("2023-02-29T00:00:00Z", false),
            ("2006-01-02t15:04:05Z", false),
            ("2006-01-02T15:04:05z", false),
            ("2006-01-02T15:04:05", false),
            ("2006-01-02T15:04:05.Z", false),
            ("0000-01-02T15:04:05Z", true),
            ("2006-01-02 15:04:05Z", false),
            ("2006-01-02T3:04:05Z", true),
            ("2006-01-02T3:04:05.5+02:00", true),
            ("2006-01-02T3:4:05Z", false),
            ("2006-01-02T:04:05Z", false),
            ("2006-01-02T 3:04:05Z", false),
            ("2006-13-02T15:04:05Z", false),
            ("2006-01-02T24:04:05Z", false),
            ("2006-01-02T15:04:60Z", false),
            ("2006-01-02T15:04:05+0100", false),
            ("2006-01-02", false),
            ("", false),
        ] {
            assert_eq!(is_time(text), wanted, "{text}");
        }
    }

    #[test]
    fn integers_are_of_64_bits() {
        for (text, wanted) in [
            ("1", true),
            ("-9223372036854775808", true),
            ("9223372036854775808", false),
            ("1.5", false),
            ("1e18", true),
            ("1e19", false),
        ] {
            let number: Number = serde_json::from_str(text).unwrap();
            assert_eq!(is_integer(&number), wanted, "{text}");
        }
    }
}
