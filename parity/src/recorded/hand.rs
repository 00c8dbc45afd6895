//! The hand-written cases: at least one for each change between two versions.
//!
//! `parity/golden/changes.txt` lists the changes. If `kubectl vap upgrade-check` reports a change, the name of the
//! change is its identifier in `version_changes/table.rs`. Each case is preceded by the name of its table:
//!
//! ```text
//! optional-functions
//!   expressions: [1].first()
//! ```
//!
//! A case has the format of the oracle, but a policy can be written as its `spec`, with expressions as strings.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::table_kind::{TableKind, is_expression};

/// A change between versions.
#[derive(Clone, Debug)]
pub struct Change {
    /// The name of the change.
    pub name: String,
    /// The cases, each with its table.
    pub cases: Vec<(TableKind, String)>,
}

/// Reads all changes.
///
/// # Errors
/// Returns an error if the file cannot be read or a case is malformed.
pub fn changes() -> Result<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for line in read("golden/changes.txt")?.lines() {
        if let Some(case) = line.strip_prefix("  ") {
            let (table, text) = case.split_once(": ").context("a case without a table")?;
            let kind = table.parse()?;
            let change = changes.last_mut().context("a case without a change")?;
            let text = full(kind, text).with_context(|| line.to_owned())?;
            change.cases.push((kind, text));
        } else if !line.is_empty() && !line.starts_with('#') {
            changes.push(Change {
                name: line.to_owned(),
                cases: Vec::new(),
            });
        }
    }
    Ok(changes)
}

/// Returns the hand-written cases of a table: those of the changes, and those of `tests/versions/rules.txt`.
///
/// # Errors
/// Returns an error if a file cannot be read or a case is malformed.
pub fn cases(kind: TableKind) -> Result<Vec<String>> {
    let changes = changes()?.into_iter().flat_map(|change| change.cases);
    let mut cases: Vec<String> = changes
        .filter(|(of, _)| *of == kind)
        .map(|(_, text)| text)
        .collect();
    for line in read("../tests/versions/rules.txt")?.lines() {
        if line.starts_with('{') {
            let case: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            match kind {
                TableKind::Definitions => cases.push(definition(&case).to_string()),
                TableKind::CustomResources if case.get("object").is_some() => {
                    cases.push(custom_resource(case).to_string());
                }
                _ => {}
            }
        }
    }
    Ok(cases)
}

/// Returns the directory of the CustomResourceDefinitions for type checks.
#[must_use]
pub fn crds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/crds")
}

fn read(path: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Returns a case in the format of its table.
fn full(kind: TableKind, text: &str) -> Result<String> {
    if kind == TableKind::Expressions && is_expression(text) {
        return Ok(text.to_owned());
    }
    let mut case: Value = serde_json::from_str(text)?;
    match kind {
        TableKind::Expressions => {}
        TableKind::Admissions => {
            let policy = validating(take(&mut case, "policy"))?;
            set(&mut case, "policy", policy);
        }
        TableKind::Compilations | TableKind::TypeChecks => case = validating(case)?,
        TableKind::Definitions => case = definition(&case),
        TableKind::CustomResources => case = custom_resource(case),
        TableKind::Mutations => {
            let specs = match take(&mut case, "policies") {
                Value::Array(specs) => specs,
                _ => vec![take(&mut case, "policy")],
            };
            let policies = specs.into_iter().enumerate().map(|(n, spec)| {
                let mut policy = mutating(spec)?;
                let name = format!("p{n}");
                set(&mut policy, "metadata", json!({"name": name}));
                let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": name}});
                Ok(json!({"policy": policy, "bindings": [binding]}))
            });
            let policies = policies.collect::<Result<Vec<_>>>()?;
            set(&mut case, "policies", policies.into());
            set(&mut case, "operation", "CREATE".into());
            set(
                &mut case,
                "namespace",
                json!({"metadata": {"name": "default"}}),
            );
        }
    }
    Ok(case.to_string())
}

/// Removes a field of a case and returns its value. Returns null if the case lacks the field.
fn take(case: &mut Value, name: &str) -> Value {
    let fields = case.as_object_mut();
    fields
        .and_then(|fields| fields.remove(name))
        .unwrap_or_default()
}

fn set(case: &mut Value, name: &str, value: Value) {
    if let Some(fields) = case.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

/// Replaces each string in a list of the spec by an object that `full` returns for the string.
fn replace_strings(spec: &mut Value, list: &str, full: impl Fn(&str) -> Value) {
    let items = spec.get_mut(list).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if let Some(text) = item.as_str() {
            *item = full(text);
        }
    }
}

/// Returns a policy of the kind `kind`. If the spec lacks `matchConstraints`, they are set to `constraints`.
fn policy(kind: &str, mut spec: Value, constraints: Value) -> Result<Value> {
    replace_strings(
        &mut spec,
        "matchConditions",
        |expression| json!({"name": "m", "expression": expression}),
    );
    let Some(fields) = spec.as_object_mut() else {
        bail!("not the spec of a policy");
    };
    fields.entry("matchConstraints").or_insert(constraints);
    Ok(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "p"}, "spec": spec,
    }))
}

fn validating(mut spec: Value) -> Result<Value> {
    replace_strings(
        &mut spec,
        "validations",
        |expression| json!({"expression": expression}),
    );
    let constraints = json!({"resourceRules": []});
    policy("ValidatingAdmissionPolicy", spec, constraints)
}

fn mutating(mut spec: Value) -> Result<Value> {
    replace_strings(&mut spec, "mutations", |expression| {
        let (type_, field) = match expression.strip_prefix('[') {
            Some(_) => ("JSONPatch", "jsonPatch"),
            None => ("ApplyConfiguration", "applyConfiguration"),
        };
        json!({"patchType": type_, field: {"expression": expression}})
    });
    let constraints = json!({
        "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {},
        "resourceRules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "scope": "*",
        }],
    });
    if let Some(fields) = spec.as_object_mut() {
        for (name, default) in [("failurePolicy", "Fail"), ("reinvocationPolicy", "Never")] {
            fields.entry(name).or_insert(default.into());
        }
    }
    policy("MutatingAdmissionPolicy", spec, constraints)
}

/// Returns the definition for a case with a `schema`.
fn definition(case: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Box", "plural": "boxes", "listKind": "BoxList", "singular": "box"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": case.get("schema")},
            }],
        },
    })
}

/// Returns the validation of an object, for a case with a `schema`, an `object`, and possibly the `old` object.
fn custom_resource(mut case: Value) -> Value {
    let schema = take(&mut case, "schema");
    json!({"schema": schema, "objects": [case]})
}
