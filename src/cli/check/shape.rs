//! Finds errors with which the API server's strict decoder rejects policies, bindings, webhooks and
//! CustomResourceDefinitions: unknown fields, duplicate keys, values of the wrong type.
//!
//! The module walks YAML nodes, so that each finding has a location. A null value counts as absent.
//! [`super::validation`] validates the decoded values.
//!
//! Source: `k8s.io/apimachinery` `pkg/runtime/serializer/json/json.go` (`Serializer.unmarshal`);
//! `sigs.k8s.io/json`, `UnmarshalStrict`; `sigs.k8s.io/yaml`, `YAMLToJSONStrict`.

use goyaml::{Data, Entry, Node};
use serde_json::{Number, Value};

use super::api_version;
use super::assumptions;
use super::crd::dropped;
use super::finding::{Finding, Owner, Severity};
use super::policy::object_finding;
use super::suggestion::{completed, nearest, nearest_only};
use super::types::{self, Type};
use super::validation;
use crate::cel::base64;
use crate::cel::temporal::{TimestampError, parse_timestamp};
use crate::cli::input::Object;
use crate::policy::rule::Rule;

/// Maximum number of decoding errors that are reported for one document.
const MAX_FINDINGS: usize = 20;

const CRD: &str = "CustomResourceDefinition";

/// The supported version of CustomResourceDefinitions.
const CRD_VERSION: &str = "apiextensions.k8s.io/v1";

/// Maximum length of a value that a hint quotes, in bytes.
const MAX_SHOWN: usize = 40;

/// Returns the findings about unknown fields, duplicate keys and values of the wrong type in a document.
#[must_use]
pub fn check<T>(object: &Object<T>) -> Vec<Finding> {
    let mut walk = Walk {
        object,
        findings: Vec::new(),
        n_dropping: 0,
    };
    let is_read = object.kind() != CRD || object.api_version() == CRD_VERSION;
    if let Some(type_) = types::type_of_kind(object.kind()).filter(|_| is_read) {
        walk.node(&object.document.node, type_, "");
    }
    walk.findings
}

/// Returns the findings about a document that cannot be decoded as its kind.
#[must_use]
pub fn invalid(object: &Object<String>) -> Vec<Finding> {
    if let Some(finding) = api_version::definition_finding(object) {
        return vec![finding];
    }
    let findings = check(object);
    if findings.iter().any(|finding| finding.rejected) {
        return findings;
    }
    let message = &object.value;
    let message = if message.starts_with("cannot read") {
        message.clone()
    } else {
        format!("cannot read this object: {message}")
    };
    let severity = if api_version::is_patch(object) {
        Severity::Note
    } else {
        Severity::Error
    };
    let rule = Rule::InvalidObject;
    let mut finding = object_finding(object, severity, rule, &message, object.place());
    if object.kind() == CRD && message.ends_with("is missing") {
        finding.help = Some(api_version::PATCH_HELP.to_owned());
    }
    if object.kind() == CRD {
        finding.owner = Owner::crd(object.name());
    }
    vec![finding]
}

struct Walk<'a, T> {
    object: &'a Object<T>,
    findings: Vec<Finding>,
    /// The number of enclosing values whose decoders drop unknown fields.
    n_dropping: usize,
}

impl<T> Walk<'_, T> {
    /// Checks the value `node` at `path` against a type. The recursion is bounded, because the parser limits the
    /// nesting.
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
                self.n_dropping += 1;
                self.node(node, Type::Object(fields), path);
                self.n_dropping -= 1;
            }
            (Type::Either(_, other), data) if !is_left_out(other, data) => {
                self.n_dropping += 1;
                self.node(node, *other, path);
                self.n_dropping -= 1;
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
            // Duplicate keys are errors even in untyped values.
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
            // Go also decodes bytes from a list of numbers.
            (Type::Bytes, Data::List(items)) => {
                for (n, node) in items.iter().enumerate() {
                    self.node(node, Type::Byte, &format!("{path}[{n}]"));
                }
            }
            (Type::Any | Type::Either(..), Data::Scalar(..)) => {}
            _ => self.value(node, type_, path),
        }
    }

    /// Adds a finding about a field that is not one of `fields`.
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
        let alias = alias(name, fields).filter(|_| meant.is_none());
        let completed = || completed(name, name.len() / 2, names.clone());
        let alias = alias.or_else(|| completed().filter(|_| meant.is_none()));
        // If the value does not fit the type of the similar field, renaming the key is not enough.
        let is_of_type = |meant: &str| {
            let type_ = fields.iter().find(|(field, _)| *field == meant);
            let is_text = type_.is_some_and(|(_, type_)| matches!(type_, Type::Text));
            !is_text || matches!(entry.node.data, Data::Scalar(..))
        };
        let meant = meant.or(alias).filter(|_| advice.is_none());
        let advice = advice.or_else(|| meant.map(did_you_mean));
        self.help(advice.or_else(|| self.misplaced(name, path)));
        let only = nearest_only(name, names).or(alias);
        self.rename(&entry.key, path, only.filter(|it| is_of_type(it)));
        if name == "validationActions" && meant.is_none() && !path.contains('[') {
            self.remove(entry);
        }
        if self.n_dropping > 0 {
            let added = self.findings.iter_mut().skip(n_before);
            added.for_each(|finding| dropped(finding, meant));
        }
        self.node(&entry.node, Type::Any, path);
    }

    /// Returns a hint if the field `name` belongs to another part of the object, or is a field of other policy engines.
    fn misplaced(&self, name: &str, path: &str) -> Option<String> {
        if name == "excludeNamespaces" || name == "namespaces" {
            return Some(
                "use a namespaceSelector, as in `matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, \
                 values: [kube-system]}]`"
                    .to_owned(),
            );
        }
        let mut rows = OTHER_ENGINES.iter();
        if let Some((_, hint)) = rows.find(|(field, _)| *field == name) {
            return Some((*hint).to_owned());
        }
        let parents = types::parents_of(self.object.kind(), name);
        let here = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        match &*parents {
            [only] if only.contains("[]") => Some(format!(
                "move it to an item of `{}`",
                only.split("[]").next().unwrap_or_default()
            )),
            [only] if only.is_empty() => Some("move it to the top level".to_owned()),
            [only] if only != here => Some(format!("move it to `{only}`")),
            _ if matches!(name, "matchLabels" | "matchExpressions")
                && ["matchConstraints", "matchResources"].iter().any(|it| here.ends_with(it)) =>
            {
                Some(
                    "move it to `objectSelector` for the labels of the object, or to `namespaceSelector` for those of its \
                     namespace"
                        .to_owned(),
                )
            }
            _ if here.ends_with("Selector") => Some("move it to `matchLabels`".to_owned()),
            _ if name == "validationActions" => {
                Some("remove it: a mutating binding has no actions".to_owned())
            }
            _ => None,
        }
    }

    /// Adds findings about duplicates of a key, including those from a merge key.
    ///
    /// The API server rejects YAML with duplicates. kubectl and other clients that send JSON silently keep the last
    /// duplicate.
    ///
    /// Source: `sigs.k8s.io/yaml`, `YAMLToJSON`; `k8s.io/cli-runtime` `pkg/resource/visitor.go`, `StreamVisitor`.
    fn repeats(&mut self, entry: &Entry, name: &str, path: &str) {
        for repeat in &entry.repeats {
            let message = format!("duplicate key `{name}`");
            let place = self.object.place_of_bytes(repeat);
            self.add(
                Rule::DuplicateKey,
                &message,
                place,
                path,
                length(repeat, name),
            );
            self.help(Some(
                "remove one of the keys: kubectl silently sends only the last key, but other clients may send all keys"
                    .to_owned(),
            ));
        }
        if !entry.merged.is_empty() {
            let message = format!("duplicate key `{name}`: a merge key (`<<`) also sets it");
            let place = self.object.place_of_bytes(&entry.key);
            self.add(
                Rule::DuplicateKey,
                &message,
                place,
                path,
                length(&entry.key, name),
            );
            // kubectl, Helm, kustomize, Flux and Argo CD parse the YAML and send JSON with only one of the keys, so
            // this is a note.
            let of_key = |finding: &&mut Finding| finding.field_ref.as_deref() == Some(path);
            if let Some(last) = self.findings.last_mut().filter(of_key) {
                last.severity = Severity::Note;
                last.rejected = false;
                last.help = Some(
                    "clients that convert YAML to JSON, such as kubectl, send the key once; the API server rejects \
                     the object only if it receives the YAML unchanged"
                        .to_owned(),
                );
            }
        }
    }

    /// Checks a scalar, and reports any value whose type does not match. [`Self::node`] descends into objects and
    /// lists.
    fn value(&mut self, node: &Node, type_: Type, path: &str) {
        let actual = match &node.data {
            Data::Scalar(Value::Bool(_), _) => "a boolean",
            Data::Scalar(Value::Number(_), _) => "a number",
            Data::Scalar(..) => "a string",
            Data::List(_) => "a list",
            Data::Map(_) => "an object",
        };
        let expected = match type_ {
            Type::Bool => "a boolean",
            Type::Int | Type::Int32 | Type::Byte | Type::Number => "a number",
            Type::Text | Type::Time | Type::Bytes => "a string",
            Type::List(_) => "a list",
            Type::Texts | Type::Object(_) | Type::Map(_) | Type::Either(..) => "an object",
            Type::Any => return,
        };
        let (place, length) = (self.object.place_of(node), self.object.length_of(node));
        let text = node.as_str().unwrap_or_default();
        let invalid = Rule::InvalidObject;
        if actual != expected {
            let path = if path.is_empty() {
                "the document"
            } else {
                path
            };
            let message = format!("`{path}` must be {expected}, but is {actual}");
            self.add(invalid, &message, place, path, length);
            self.help(type_advice((type_, expected), node, path));
            let object = self.object;
            let (document, source) = (&object.document, &object.source);
            let fix = match expected {
                "a string" if choices(path).is_none() => document
                    .scalar_text(source, node)
                    .and_then(|text| document.edit_value(source, node, text)),
                "a list" if is_map_of_variables(type_, node) => None,
                "a list" if !text.is_empty() || matches!(type_, Type::List(Type::Object(_))) => {
                    document.edit_into_list(source, node)
                }
                "an object" => field_of_list(type_, node)
                    .and_then(|field| document.edit_into_field(source, node, field)),
                _ => None,
            };
            let of_value = |finding: &&mut Finding| finding.field_ref.as_deref() == Some(path);
            if let Some(last) = self.findings.last_mut().filter(of_value) {
                last.fix = fix;
                if is_map_of_variables(type_, node) {
                    last.assumption = assumptions::list_of_variables(object, node);
                }
            }
            return;
        }
        match (type_, &node.data) {
            (Type::Int, Data::Scalar(Value::Number(number), _)) if !is_integer(number) => {
                let message = format!("`{path}` must be a 64-bit integer, but is {number}");
                self.add(invalid, &message, place, path, length);
            }
            (Type::Int32, Data::Scalar(Value::Number(number), _))
                if !is_within(number, i32::MIN, i32::MAX) =>
            {
                let message = format!("`{path}` must be a 32-bit integer, but is {number}");
                self.add(invalid, &message, place, path, length);
            }
            (Type::Byte, Data::Scalar(Value::Number(number), _)) if !is_within(number, 0, 255) => {
                let message = format!("`{path}` must be an integer from 0 to 255, but is {number}");
                self.add(invalid, &message, place, path, length);
            }
            (Type::Bytes, Data::Scalar(Value::String(text), _))
                if base64::decode(text).is_err() =>
            {
                let message = format!("`{path}` is not valid base64");
                self.add(invalid, &message, place, path, length);
                self.help(Some(
                    "encode the bytes as base64, or remove the field if a tool sets it".to_owned(),
                ));
            }
            (Type::Time, Data::Scalar(Value::String(text), _)) if !is_time(text) => {
                let message = format!("`{path}` is not an RFC 3339 time");
                self.add(invalid, &message, place, path, length);
                self.help(Some(
                    "write the time in RFC 3339 format, such as 2006-01-02T15:04:05Z".to_owned(),
                ));
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
            let mut finding = object_finding(self.object, Severity::Error, rule, message, place);
            finding.field_ref = Some(path.to_owned());
            finding.location.length = length;
            finding.rejected = true;
            finding.help = Some(validation::help(None));
            self.findings.push(finding);
        }
    }

    /// If the last finding is about the key at `path`, sets its fix, which renames the key to `meant`.
    fn rename(&mut self, key: &std::ops::Range<usize>, path: &str, meant: Option<&str>) {
        let of_key = |finding: &&mut Finding| finding.field_ref.as_deref() == Some(path);
        if let (Some(last), Some(meant)) = (self.findings.last_mut().filter(of_key), meant) {
            let object = self.object;
            last.fix = object.document.edit_key(&object.source, key, meant);
        }
    }

    /// Sets the fix of the last finding: the removal of the key and its value.
    fn remove(&mut self, entry: &Entry) {
        if let Some(last) = self.findings.last_mut() {
            let object = self.object;
            let document = &object.document;
            last.fix = document.edit_without_key(&object.source, &entry.key, &entry.node);
        }
    }

    /// Sets the hint of the last finding, followed by the consequence.
    fn help(&mut self, advice: Option<String>) {
        if let (Some(last), Some(advice)) = (self.findings.last_mut(), advice) {
            last.help = Some(validation::help(Some(&advice)));
        }
    }
}

/// Returns a hint about a value with the wrong type. `expected` is the type of the field, as in the message of the
/// finding.
fn type_advice((type_, expected): (Type, &str), node: &Node, path: &str) -> Option<String> {
    let text = node.as_str().unwrap_or_default();
    let is_scalar = matches!(node.data, Data::Scalar(..));
    match expected {
        "a string" if is_scalar => Some(match choices(path) {
            Some(choices) => format!("write {choices}"),
            None => "quote the value".to_owned(),
        }),
        "a string" if path.contains(".matchLabels.") => match &node.data {
            Data::List(values) => several_values(path, values),
            _ => None,
        },
        "a number" => number_in(text).map(|number| format!("write `{number}`")),
        "a list" if is_map_of_variables(type_, node) => Some(
            "write each variable as an item of the list, with the fields `name` and `expression`"
                .to_owned(),
        ),
        "a list" if !text.is_empty() && text.len() <= MAX_SHOWN => {
            Some(format!("write `[{text}]`"))
        }
        "a list" => Some("write it as an item, after `- `".to_owned()),
        "an object" => {
            field_of_list(type_, node).map(|field| format!("write the list in its field `{field}`"))
        }
        _ => None,
    }
}

/// Returns the field that probably should contain the list `node`. The author wrote the list in place of an object with
/// this field. `None` unless the items fit exactly one field. Fields that exclude something are not considered.
fn field_of_list(type_: Type, node: &Node) -> Option<&'static str> {
    let (Type::Object(fields), Data::List(items)) = (type_, &node.data) else {
        return None;
    };
    let accepts = |item: &Node, fields: &[types::Field]| match &item.data {
        Data::Map(entries) => {
            let mut names = entries.iter().map(|(name, _)| name);
            names.all(|name| fields.iter().any(|(field, _)| *field == name))
        }
        _ => false,
    };
    let mut candidates = fields.iter().filter(|(name, type_)| match type_ {
        Type::List(Type::Object(fields)) => {
            let is_exclusion = name.starts_with("exclude");
            !is_exclusion && items.iter().all(|item| accepts(item, fields))
        }
        _ => false,
    });
    let (only, _) = candidates.next().filter(|_| !items.is_empty())?;
    candidates.next().is_none().then_some(*only)
}

/// Returns true for a map of names to expressions instead of a list of variables.
fn is_map_of_variables(type_: Type, node: &Node) -> bool {
    let (Type::List(Type::Object(fields)), Data::Map(entries)) = (type_, &node.data) else {
        return false;
    };
    let is_of_variables = matches!(fields, [_, _]) && fields.iter().any(|it| it.0 == "expression");
    let mut entries = entries.iter();
    is_of_variables
        && entries.all(|(name, entry)| {
            let is_field = fields.iter().any(|(field, _)| *field == name);
            !is_field && matches!(entry.node.data, Data::Scalar(..))
        })
}

/// Returns the hint about a list of values for a label of `matchLabels`.
fn several_values(path: &str, values: &[Node]) -> Option<String> {
    let (_, key) = path.split_once(".matchLabels.")?;
    let values: Option<Vec<&str>> = values.iter().map(Node::as_str).collect();
    let values = values?.join(", ");
    (values.len() <= 2 * MAX_SHOWN).then(|| {
        format!("write `matchExpressions: [{{key: {key}, operator: In, values: [{values}]}}]` to match one of several values")
    })
}

/// Wrong names that authors write for fields, each with the correct name.
const ALIASES: [(&str, &str); 34] = [
    ("matchResources", "matchConstraints"),
    ("matchConstraints", "matchResources"),
    ("value", "valueExpression"),
    ("expression", "valueExpression"),
    ("policy", "policyName"),
    ("policyRef", "policyName"),
    ("params", "paramRef"),
    ("parameters", "paramRef"),
    ("rules", "resourceRules"),
    ("match", "matchConstraints"),
    ("matchRules", "matchConstraints"),
    ("conditions", "matchConditions"),
    ("cel", "expression"),
    ("expr", "expression"),
    ("rule", "expression"),
    ("pattern", "expression"),
    ("rego", "expression"),
    ("condition", "expression"),
    ("names", "resourceNames"),
    ("validate", "validations"),
    ("validation", "validations"),
    ("denyMessage", "message"),
    ("error", "message"),
    ("msg", "message"),
    ("actions", "validationActions"),
    ("action", "validationActions"),
    ("enforcementAction", "validationActions"),
    ("kinds", "resources"),
    ("verbs", "operations"),
    ("groups", "apiGroups"),
    ("versions", "apiVersions"),
    ("failureAction", "failurePolicy"),
    ("vars", "variables"),
    ("excludeRules", "excludeResourceRules"),
];

/// Fields of policies of other engines, each with a hint.
const OTHER_ENGINES: [(&str, &str); 5] = [
    (
        "validationFailureAction",
        "write `validationActions: [Deny]` or `[Audit]` in the binding",
    ),
    (
        "background",
        "remove it: policies check requests; `kubectl vap audit` checks stored objects",
    ),
    (
        "targets",
        "write `resourceRules` in `matchConstraints` of the policy",
    ),
    (
        "preconditions",
        "write `matchConditions`, whose expressions must be true",
    ),
    (
        "exclude",
        "write `excludeResourceRules` in `matchConstraints`, or `matchConditions`",
    ),
];

/// Returns true if authors write `name` for the field `meant`.
pub(super) fn is_alias(name: &str, meant: &str) -> bool {
    ALIASES.contains(&(name, meant))
}

/// Returns the field in `fields` for which authors write `name`.
fn alias(name: &str, fields: &[types::Field]) -> Option<&'static str> {
    let mut rows = ALIASES.iter().filter(|(alias, _)| *alias == name);
    let meant = rows.next().map(|(_, meant)| *meant)?;
    fields
        .iter()
        .any(|(field, _)| *field == meant)
        .then_some(meant)
}

/// Returns the number in a string such as `443` or `10s`. Seconds are the only unit of fields in these objects.
fn number_in(text: &str) -> Option<&str> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let is_number = (1..10).contains(&number.len()) && number.bytes().all(|c| c.is_ascii_digit());
    is_number.then_some(number)
}

/// Returns the valid values of the enumeration at `path`, as part of a hint. `None` if the field is not an enumeration.
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

/// Returns true if Go ignores the value: a scalar in a field that accepts either an object or a list.
const fn is_left_out(other: &Type, data: &Data) -> bool {
    matches!((other, data), (Type::List(_), Data::Scalar(..)))
}

/// Returns the length of a key in the source, with its quotes, in code points.
fn length(key: &std::ops::Range<usize>, name: &str) -> usize {
    let quotes = key.len().saturating_sub(name.len());
    let quotes = if quotes == 2 { 2 } else { 0 };
    (name.chars().count() + quotes).max(1)
}

/// Returns true if Go decodes the JSON number as an `int64`.
fn is_integer(number: &Number) -> bool {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    number.is_i64()
        || number.is_f64()
            && number
                .as_f64()
                .is_some_and(|number| number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number))
}

/// Returns true if the number is an integer from `min` to `max`.
fn is_within(number: &Number, min: i32, max: i32) -> bool {
    let range = f64::from(min)..=f64::from(max);
    is_integer(number)
        && number
            .as_f64()
            .is_some_and(|number| range.contains(&number))
}

/// Returns true if Go parses the string as a time. The year may be out of range.
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
    fn time_syntax_agrees_with_go() {
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
    fn integers_may_have_64_bits() {
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

    #[test]
    fn values_of_enumerations_are_listed() {
        for (path, expected) in [
            ("spec.failurePolicy", Some("`Fail` or `Ignore`")),
            (
                "spec.matchConstraints.matchPolicy",
                Some("`Exact` or `Equivalent`"),
            ),
            (
                "spec.paramRef.parameterNotFoundAction",
                Some("`Allow` or `Deny`"),
            ),
            (
                "spec.mutations[0].patchType",
                Some("`ApplyConfiguration` or `JSONPatch`"),
            ),
            ("spec.reinvocationPolicy", Some("`Never` or `IfNeeded`")),
            ("webhooks[1].sideEffects", Some("`None` or `NoneOnDryRun`")),
            (
                "spec.validationActions[0]",
                Some("`Deny`, `Warn` or `Audit`"),
            ),
            ("spec.policyName", None),
        ] {
            assert_eq!(choices(path), expected, "{path}");
        }
    }
}
