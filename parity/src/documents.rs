//! Reads policies from files. The documents, their order and their indices are the same as in the oracle.
//!
//! Source: the oracle's `policies.go`; apimachinery `pkg/util/yaml/decoder.go` (`YAMLReader.Read`).

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, ValidatingAdmissionPolicy,
};
use serde_json::Value;
use vap_status_controller::cli::input::decode;

const POLICY_GROUP: &str = "admissionregistration.k8s.io/";

/// A document of a file.
#[derive(Debug)]
pub struct Document {
    /// The path of the file. For a file in a directory, it starts with the path of the directory.
    pub file: String,
    /// The index of the document in its file, from 0.
    pub index: usize,
    /// The content of the document as JSON, or the reason why it cannot be parsed.
    pub value: Result<Value>,
}

/// A document with the kind of a policy.
#[derive(Debug)]
pub struct PolicyDoc {
    /// The path of the file. For a file in a directory, it starts with the path of the directory.
    pub file: String,
    /// The index of the document in its file, from 0.
    pub index: usize,
    /// The policy with the API server's defaults, or the reason why it cannot be decoded.
    pub policy: Result<ValidatingAdmissionPolicy>,
}

impl PolicyDoc {
    /// Converts the document to a type that covers both kinds of policy.
    pub fn to_any(&self) -> AnyPolicyDoc {
        let policy = match &self.policy {
            Ok(policy) => Ok(AnyPolicy::Validating(policy.clone())),
            Err(error) => Err(anyhow!("{error:#}")),
        };
        (self.file.clone(), self.index, policy)
    }
}

/// The file and index of a document, and the policy or an error.
pub type AnyPolicyDoc = (String, usize, Result<AnyPolicy>);

/// A validating or mutating policy.
#[derive(Debug)]
pub enum AnyPolicy {
    /// A validating policy.
    Validating(ValidatingAdmissionPolicy),
    /// A mutating policy.
    Mutating(MutatingAdmissionPolicy),
}

/// Loads all validating and mutating policies from files and directories, in order.
///
/// # Errors
///
/// Returns an error if a file cannot be read or split into documents.
pub fn load_any_policies(paths: &[PathBuf]) -> Result<Vec<AnyPolicyDoc>> {
    let mut policies = Vec::new();
    for Document { file, index, value } in load_documents(paths)? {
        let policy = value.and_then(|value| {
            let is_mutating = type_meta(&value, "kind")? == "MutatingAdmissionPolicy"
                && type_meta(&value, "apiVersion")?.starts_with(POLICY_GROUP);
            if is_mutating {
                let policy = decode::mutating_policy(value)?;
                return Ok(Some(AnyPolicy::Mutating(policy)));
            }
            Ok(parse_policy(value)?.map(AnyPolicy::Validating))
        });
        if let Some(policy) = policy.transpose() {
            policies.push((file, index, policy));
        }
    }
    Ok(policies)
}

/// Loads all validating policies from files and directories, in order. Documents of other kinds are skipped.
///
/// # Errors
///
/// Returns an error if a file cannot be read or split into documents.
pub fn load_policies(paths: &[PathBuf]) -> Result<Vec<PolicyDoc>> {
    let mut policies = Vec::new();
    for Document { file, index, value } in load_documents(paths)? {
        if let Some(policy) = value.and_then(parse_policy).transpose() {
            policies.push(PolicyDoc {
                file,
                index,
                policy,
            });
        }
    }
    Ok(policies)
}

/// Loads all documents from files and directories. Each item of a list is a document.
///
/// # Errors
///
/// Returns an error if a file cannot be read or split into documents.
pub fn load_documents(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes)?;
            read_documents("-", &bytes, &mut documents)?;
        } else {
            walk(path, true, &mut documents)?;
        }
    }
    Ok(documents)
}

/// Reads a file, or the files below a directory in the order of their names. `given` is true if the caller listed
/// `path`. A symbolic link is followed only in this case.
fn walk(path: &Path, given: bool, documents: &mut Vec<Document>) -> Result<()> {
    let metadata = fs::symlink_metadata(path).with_context(|| path.display().to_string())?;
    if metadata.is_dir() {
        let mut names = fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|e| e.file_name())).collect())
            .map(|mut names: Vec<_>| {
                names.sort();
                names
            })
            .with_context(|| path.display().to_string())?;
        for name in names.drain(..) {
            walk(&clean(&path.join(name)), false, documents)?;
        }
        return Ok(());
    }
    let is_manifest = path.extension().is_some_and(|extension| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    });
    if !is_manifest && !given {
        return Ok(());
    }
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    read_documents(&path.display().to_string(), &bytes, documents)
}

/// Resolves `.` and `..` lexically, like Go's `filepath.Walk`.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if cleaned.file_name().is_some() => {
                cleaned.pop();
            }
            other => cleaned.push(other),
        }
    }
    cleaned
}

fn read_documents(file: &str, bytes: &[u8], documents: &mut Vec<Document>) -> Result<()> {
    let mut index = 0;
    for raw in split(bytes).with_context(|| file.to_owned())? {
        let items = match parse(&raw) {
            Ok(Value::Null) => continue,
            Ok(value) => list_items(value).into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        for value in items {
            documents.push(Document {
                file: file.to_owned(),
                index,
                value,
            });
            index += 1;
        }
    }
    Ok(())
}

/// Parses a document as YAML, or as JSON if that fails.
fn parse(raw: &[u8]) -> Result<Value> {
    let yaml = str::from_utf8(raw)
        .map_err(anyhow::Error::from)
        .and_then(|text| Ok(goyaml::to_json(text)?));
    yaml.or_else(|error| serde_json::from_slice(raw).map_err(|_| error))
}

/// Splits a stream at lines that begin with `---`. Like the oracle, this also splits block scalars.
fn split(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut documents = Vec::new();
    let mut current = Vec::new();
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(rest) = line.strip_prefix(b"---") {
            let rest = rest.trim_ascii();
            if !rest.is_empty() && !rest.starts_with(b"#") {
                bail!(
                    "invalid YAML document separator: {}",
                    String::from_utf8_lossy(rest)
                );
            }
            if !current.is_empty() {
                documents.push(std::mem::take(&mut current));
                continue;
            }
        }
        current.extend_from_slice(line);
        current.push(b'\n');
    }
    if !current.is_empty() {
        documents.push(current);
    }
    Ok(documents)
}

/// Returns the items of a list. A document that is not a list is its own item.
fn list_items(value: Value) -> Vec<Value> {
    let is_list = value
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|k| k.ends_with("List"));
    match value {
        Value::Object(mut fields) if is_list => match fields.remove("items") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                fields.insert("items".to_owned(), other);
                vec![Value::Object(fields)]
            }
        },
        other => vec![other],
    }
}

/// Decodes a policy as v1 and sets the defaults of v1. All versions have the same fields. Returns `None` for a document
/// of a different kind.
pub(super) fn parse_policy(value: Value) -> Result<Option<ValidatingAdmissionPolicy>> {
    let kind = type_meta(&value, "kind")?;
    let is_policy = kind == "ValidatingAdmissionPolicy"
        && type_meta(&value, "apiVersion")?.starts_with(POLICY_GROUP);
    type_meta(&value, "apiVersion")?;
    if !is_policy {
        return Ok(None);
    }
    Ok(Some(decode::policy(value)?))
}

/// Returns the `apiVersion` or `kind` of a document. Returns an empty string if it is absent.
fn type_meta<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    match value {
        Value::Null => Ok(""),
        Value::Object(fields) => match fields.get(field) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(anyhow!("cannot read {other} as {field}")),
        },
        other => Err(anyhow!("not an object: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Vec<Document> {
        let mut documents = Vec::new();
        read_documents("f", text.as_bytes(), &mut documents).unwrap();
        documents
    }

    #[test]
    fn documents_are_split_at_separator_lines() {
        let documents = read(
            "--- # first\na: 1\n---   \n# nothing but a comment\n---\nkind: FooList\nitems: [null, {b: 2}]\n\
             ---\nc: [\n---\nd: |\n  x\n---\n  e: 1",
        );
        let seen: Vec<_> = documents
            .iter()
            .map(|d| (d.index, d.value.as_ref().ok()))
            .collect();
        assert_eq!(
            seen,
            [
                (0, Some(&json!({"a": 1}))),
                (1, Some(&Value::Null)),
                (2, Some(&json!({"b": 2}))),
                (3, None),
                (4, Some(&json!({"d": "x\n"}))),
                (5, Some(&json!({"e": 1}))),
            ]
        );
    }

    #[test]
    fn separator_with_content_is_an_error() {
        let error = read_documents("f", b"a: 1\n--- b: 2\n", &mut Vec::new()).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "f: invalid YAML document separator: b: 2"
        );
    }

    #[test]
    fn document_that_is_invalid_yaml_may_be_json() {
        let [document] = &read("{\n\t\"a\":1}")[..] else {
            panic!("one document")
        };
        assert_eq!(document.value.as_ref().unwrap(), &json!({"a": 1}));
    }

    fn policy(text: &str) -> Result<Option<ValidatingAdmissionPolicy>> {
        let mut documents = read(text);
        documents.remove(0).value.and_then(parse_policy)
    }

    const HEAD: &str =
        "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: ValidatingAdmissionPolicy\n";

    #[test]
    fn policy_of_older_version_is_decoded_with_defaults() {
        let policy = policy(&format!(
            "{HEAD}metadata: {{name: p, creationTimestamp: null, labels: {{a: null}}}}\n\
             spec: {{validations: [null, {{expression: 'true'}}], failurePolicy: null, matchConstraints: \
             {{resourceRules: [{{operations: [null]}}]}}}}\n\
             status: {{conditions: [{{type: A, lastTransitionTime: null}}]}}\n"
        ));
        let spec = policy.unwrap().unwrap().spec.unwrap();
        assert_eq!(spec.failure_policy.as_deref(), Some("Fail"));
        let texts: Vec<_> = spec
            .validations
            .iter()
            .flatten()
            .map(|v| &*v.expression)
            .collect();
        assert_eq!(texts, ["", "true"]);
        let constraints = spec.match_constraints.unwrap();
        assert_eq!(constraints.match_policy.as_deref(), Some("Equivalent"));
        let [rule] = &constraints.resource_rules.unwrap()[..] else {
            panic!("one rule")
        };
        assert_eq!(rule.scope.as_deref(), Some("*"));
        assert_eq!(rule.operations.as_deref(), Some(&[String::new()][..]));
    }

    #[test]
    fn documents_rejected_by_go_are_rejected() {
        for text in [
            "text",
            "[a]",
            "5",
            "kind: [a]",
            "{kind: X, apiVersion: 1}",
            &format!("{HEAD}metadata: []"),
            &format!("{HEAD}metadata: {{generation: 1.5}}"),
            &format!("{HEAD}metadata: {{labels: {{a: 1}}}}"),
            &format!("{HEAD}spec: {{validations: [{{expression: yes}}]}}"),
            &format!("{HEAD}spec: {{validations: {{}}}}"),
        ] {
            assert!(policy(text).is_err(), "{text}");
        }
        assert!(
            policy("{kind: ConfigMap, apiVersion: v1}")
                .unwrap()
                .is_none()
        );
        assert!(
            policy(&format!("{HEAD}metadata: {{generation: 1e3}}"))
                .unwrap()
                .is_some()
        );
    }
}
