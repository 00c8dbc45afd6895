//! The document of a policy or binding held against the schema of its kind: fields that the kind does
//! not have, values of the wrong type, what is required and missing.
//!
//! It walks what is written, so that each finding has its place; null is as good as left out.

use serde_json::Value;

use super::finding::{Finding, Severity};
use super::known::Known;
use super::policy::finding;
use super::suggestion::nearest;
use crate::cli::input::Object;
use crate::cli::input::yaml::{Data, Node};
use crate::policy::rule::Rule;
use crate::schema::resolver::{Resolution, SchemaResolver as _};
use crate::schema::{DeclKind, DeclType, Gvk, escape};

/// The most findings about the shape of one document.
const MAX_FINDINGS: usize = 20;

/// The fields of a document that are no part of its spec and may hold what others wrote.
const PASSED_OVER: [&str; 2] = ["status", "metadata.managedFields"];

/// The fields of a spec that take one of a few texts, which the schemas do not tell.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`
/// (`supportedFailurePolicies`, `supportedMatchPolicies`, `supportedOperations`,
/// `supportedValidationPolicyReason`, `validateResourceRules`, `validateValidationActions`,
/// `validateParamRef`).
const ALLOWED: [(&str, &[&str]); 7] = [
    ("failurePolicy", &["Fail", "Ignore"]),
    ("matchPolicy", &["Exact", "Equivalent"]),
    ("scope", &["*", "Cluster", "Namespaced"]),
    (
        "operations",
        &["*", "CREATE", "UPDATE", "DELETE", "CONNECT"],
    ),
    (
        "reason",
        &[
            "Forbidden",
            "Invalid",
            "RequestEntityTooLarge",
            "Unauthorized",
        ],
    ),
    ("validationActions", &["Deny", "Warn", "Audit"]),
    ("parameterNotFoundAction", &["Allow", "Deny"]),
];

/// Checks the shape of a document; returns its faults.
#[must_use]
pub fn check<T>(object: &Object<T>, known: &Known) -> Vec<Finding> {
    let kind = object.document.node.nearest("kind").as_str();
    let gvk = Gvk::new(
        "admissionregistration.k8s.io",
        "v1",
        kind.unwrap_or_default(),
    );
    let mut walk = Walk {
        object,
        findings: Vec::new(),
    };
    if let Resolution::Found(type_) = known.resolve(&gvk) {
        walk.node(&object.document.node, &type_, "");
    }
    walk.findings
}

/// The faults of a document that does not have the shape of its kind.
#[must_use]
pub fn invalid(object: &Object<String>, known: &Known) -> Vec<Finding> {
    let findings = check(object, known);
    if findings
        .iter()
        .any(|found| found.rule == Rule::InvalidObject)
    {
        return findings;
    }
    let message = &object.value;
    let message = if message.starts_with("cannot read") {
        message.clone()
    } else {
        format!("cannot read this object: {message}")
    };
    let error = Severity::Error;
    vec![finding(
        object,
        error,
        Rule::InvalidObject,
        &message,
        object.place(),
    )]
}

struct Walk<'a, T> {
    object: &'a Object<T>,
    findings: Vec<Finding>,
}

impl<T> Walk<'_, T> {
    /// Holds `node`, at `path`, against its type. Types nest in bounds, and so does what is read.
    fn node(&mut self, node: &Node, type_: &DeclType, path: &str) {
        if node.is_null() || PASSED_OVER.contains(&path) {
            return;
        }
        match (&type_.kind, &node.data) {
            (DeclKind::Object(object), Data::Map(entries)) => {
                for (name, entry) in entries.iter() {
                    let path = joined(path, name);
                    let escaped = escape::escape(name);
                    let field = escaped.and_then(|name| type_.declared_field(&name));
                    for repeat in &entry.repeats {
                        let message = format!("`{name}` is given twice; the last one counts");
                        let place = self.object.place_of_bytes(repeat);
                        self.add(
                            Severity::Warning,
                            Rule::DuplicateKey,
                            &message,
                            place,
                            &path,
                            name,
                        );
                    }
                    match field {
                        Some(field) => self.node(&entry.node, &field.type_, &path),
                        None if object.is_open => {}
                        None => {
                            let place = self.object.place_of_bytes(&entry.key);
                            let message = format!("unknown field `{path}`");
                            let error = Severity::Error;
                            self.add(error, Rule::UnknownField, &message, place, &path, name);
                            let names = type_.declared_fields().iter();
                            let names = names.map(|field| &*field.name);
                            self.help(nearest(name, names).map(did_you_mean));
                        }
                    }
                }
                for field in type_.declared_fields() {
                    let name = escape::unescape(&field.name);
                    let name = name.as_deref().unwrap_or(&field.name);
                    let is_missing = node.get(name).is_none_or(Node::is_null);
                    if field.required && is_missing {
                        let path = joined(path, name);
                        let message = format!("`{path}` is required");
                        let place = self.object.place_of(node);
                        self.add(Severity::Error, Rule::Required, &message, place, &path, "");
                    }
                }
            }
            (DeclKind::List(item), Data::List(items)) => {
                for (n, node) in items.iter().enumerate() {
                    self.node(node, item, &format!("{path}[{n}]"));
                }
            }
            (DeclKind::Map(value), Data::Map(entries)) => {
                for (name, entry) in entries.iter() {
                    self.node(&entry.node, value, &joined(path, name));
                }
            }
            _ => self.scalar(node, type_, path),
        }
    }

    /// Holds what is no object of an object type, and no list of a list type, against its type.
    fn scalar(&mut self, node: &Node, type_: &DeclType, path: &str) {
        let found = match &node.data {
            Data::Scalar(Value::Bool(_), _) => "a boolean",
            Data::Scalar(Value::Number(_), _) => "a number",
            Data::Scalar(..) => "a string",
            Data::List(_) => "a list",
            Data::Map(_) => "an object",
        };
        let wanted = match &type_.kind {
            DeclKind::Bool => "a boolean",
            DeclKind::Int | DeclKind::Double => "a number",
            DeclKind::String | DeclKind::Bytes | DeclKind::Duration | DeclKind::Timestamp => {
                "a string"
            }
            DeclKind::List(_) => "a list",
            DeclKind::Map(_) | DeclKind::Object(_) => "an object",
            DeclKind::IntOrString | DeclKind::Cel(_) | DeclKind::Quantity | DeclKind::Unknown => {
                return;
            }
        };
        let place = self.object.place_of(node);
        let text = node.as_str().unwrap_or_default();
        let error = Severity::Error;
        if found != wanted {
            let message = format!("`{path}` must be {wanted}, and is {found}");
            self.add(error, Rule::InvalidObject, &message, place, path, text);
            if wanted == "a string" && matches!(node.data, Data::Scalar(..)) {
                self.help(Some("put it in quotation marks".to_owned()));
            }
            return;
        }
        let field = path.rsplit('.').next().unwrap_or(path);
        let field = field.split('[').next().unwrap_or(field);
        let is_spec = path.starts_with("spec.");
        let allowed = ALLOWED.iter().find(|(of, _)| is_spec && *of == field);
        let names = allowed.map_or(&[][..], |(_, names)| names);
        if !names.is_empty() && !names.contains(&text) {
            let message = format!(
                "`{path}` is `{text}`, and must be one of {}",
                names.join(", ")
            );
            self.add(error, Rule::InvalidValue, &message, place, path, text);
            self.help(nearest(text, names.iter().copied()).map(did_you_mean));
        }
    }

    fn add(
        &mut self,
        severity: Severity,
        rule: Rule,
        message: &str,
        place: crate::cli::input::Place,
        path: &str,
        marked: &str,
    ) {
        if self.findings.len() < MAX_FINDINGS {
            let mut found = finding(self.object, severity, rule, message, place);
            found.field_ref = Some(path.to_owned());
            found.location.length = marked.chars().count().max(1);
            self.findings.push(found);
        }
    }

    /// Adds what to do to the last finding.
    fn help(&mut self, help: Option<String>) {
        if let Some(last) = self.findings.last_mut() {
            last.help = help;
        }
    }
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
