//! Runs the test cases of whole policies in Markdown files, `tests/cases/policy/<topic>.md`.
//!
//! Each block of the language `yaml` is a case. There are two types of case:
//!
//! - a policy, the schema of its kinds, and the expected results in the profile `upstream`
//! - expressions that are compiled one by one
//!
//! | key | meaning |
//! |---|---|
//! | `name` | the name of the case |
//! | `spec` | the spec of the policy |
//! | `schema` | the schema of every kind, including the paramKind; if it is missing, no kind has a schema |
//! | `kinds` | the expected kinds that are checked, as `group/version Kind` |
//! | `warnings` | the expected fields with a warning, in order, each with a substring of the warning |
//! | `accepted` | expressions that must compile as a validation and, in `string(...)`, as an audit annotation |
//! | `refused` | expressions that must not compile, each with a substring of the message |
//! | `params` | true if these expressions can use the variable `params` |
//! | `message` | true if these expressions are compiled only as a messageExpression, in `string(...)` |
//! | `variables` | the variables that these expressions can use |

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde::Deserialize;
use serde_json::{Value, json};
use vap_status_controller::policy::analysis::{Profile, kinds_to_check, type_check};
use vap_status_controller::policy::compile::{CompileMode, CompiledPolicy};
use vap_status_controller::policy::param_kind;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::rest_mapper::{ApiResource, RestMapper};
use vap_status_controller::schema::{Gvk, Gvr};
use vap_status_controller::status::warnings;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    spec: Value,
    schema: Option<Value>,
    kinds: Option<Vec<String>>,
    warnings: Option<Vec<BTreeMap<String, String>>>,
    #[serde(default)]
    accepted: Vec<String>,
    #[serde(default)]
    refused: BTreeMap<String, String>,
    #[serde(default)]
    params: bool,
    #[serde(default)]
    message: bool,
    #[serde(default)]
    variables: BTreeMap<String, String>,
}

#[test]
fn policy_cases_have_expected_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/policy");
    let mut failures = String::new();
    let mut n_cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```yaml\n").skip(1) {
            let (yaml, _) = block.split_once("\n```").unwrap();
            let case: Case = serde_json::from_value(goyaml::to_json(yaml).unwrap())
                .unwrap_or_else(|error| panic!("{error}:\n{yaml}"));
            n_cases += check(&case, &mut failures);
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    assert!(n_cases > 80, "only {n_cases} expectations");
}

/// Checks a case. Appends failures to `failures`. Returns the number of expectations.
fn check(case: &Case, failures: &mut String) -> usize {
    let mut n = 0;
    let mut expect = |is_met: bool, difference: &str| {
        n += 1;
        if !is_met {
            let _ = writeln!(failures, "{}: {difference}", case.name);
        }
    };
    if let Some(expected) = &case.kinds {
        let kinds = kinds_to_check(&compiled(&case.spec), &mapper(), Profile::Upstream);
        let kinds: Vec<_> = kinds.iter().map(written).collect();
        expect(kinds == *expected, &format!("kinds {kinds:?}"));
    }
    if let Some(expected) = &case.warnings {
        let warnings = warnings(case);
        let expected: Vec<_> = expected.iter().flatten().collect();
        let is_met = warnings.len() == expected.len()
            && warnings
                .iter()
                .zip(&expected)
                .all(|((field, text), (at, part))| field == *at && text.contains(part.as_str()));
        expect(is_met, &format!("warnings {warnings:?}"));
    }
    for text in &case.accepted {
        let findings = compile(case, text);
        expect(
            findings.iter().all(Option::is_none),
            &format!("{text}: {findings:?}"),
        );
    }
    for (text, part) in &case.refused {
        let findings = compile(case, text);
        let is_rejected = |error: &Option<String>| error.as_ref().is_some_and(|e| e.contains(part));
        expect(
            findings.iter().all(is_rejected),
            &format!("{text}: {findings:?}"),
        );
    }
    assert!(n > 0, "{}: the case has no expectation", case.name);
    n
}

fn compiled(spec: &Value) -> CompiledPolicy {
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    CompiledPolicy::new(&policy)
}

/// Compiles an expression in each field of the case. Returns the error for each field.
fn compile(case: &Case, text: &str) -> Vec<Option<String>> {
    let as_string = format!("string({text})");
    let mut spec = if case.message {
        json!({"validations": [{"expression": "true", "messageExpression": as_string}]})
    } else {
        json!({
            "validations": [{"expression": text}],
            "auditAnnotations": [{"key": "a", "valueExpression": as_string}],
        })
    };
    if case.params {
        spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    }
    let variables = case.variables.iter();
    spec["variables"] = variables
        .map(|(name, expression)| json!({"name": name, "expression": expression}))
        .collect();
    let compiled = compiled(&spec).compile(CompileMode::New);
    let tried = compiled
        .into_iter()
        .filter(|expression| !expression.field_ref.starts_with("spec.variables"))
        .filter(|expression| !case.message || expression.field_ref.ends_with("messageExpression"));
    tried
        .map(|expression| expression.outcome.err().map(|error| error.message()))
        .collect()
}

fn warnings(case: &Case) -> Vec<(String, String)> {
    let compiled = compiled(&case.spec);
    let mapper = mapper();
    let mut kinds = kinds_to_check(&compiled, &mapper, Profile::Upstream);
    kinds.extend(param_kind(compiled.policy()));
    let mut offline = Offline::default();
    if let Some(schema) = &case.schema {
        let mut schemas = BTreeMap::new();
        for gvk in &kinds {
            let mut schema = schema.clone();
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": gvk.group, "version": gvk.version, "kind": gvk.kind}]);
            schemas.insert(gvk.kind.clone(), schema);
        }
        let document = json!({"components": {"schemas": schemas}}).to_string();
        offline.add_document(None, document.as_bytes()).unwrap();
    }
    let (schemas, _) = offline.finish();
    let outcome = type_check(&compiled, &mapper, &schemas, Profile::Upstream);
    let warnings = warnings::warnings(&outcome.findings).into_iter();
    warnings
        .map(|warning| (warning.field_ref.clone(), warning.text()))
        .collect()
}

/// Returns the resources of upstream's tests: pods and deployments.
///
/// Source: k8s.io/apiserver `pkg/admission/plugin/policy/validating/typechecking_test.go`,
/// `buildTypeChecker`.
fn mapper() -> RestMapper {
    let resource = |group: &str, resource: &str, kind: &str| ApiResource {
        gvr: Gvr {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
        },
        gvk: Gvk {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
        },
        singular: kind.to_lowercase(),
        namespaced: false,
    };
    RestMapper::new(vec![
        resource("", "pods", "Pod"),
        resource("apps", "deployments", "Deployment"),
    ])
}

fn written(gvk: &Gvk) -> String {
    format!("{}/{} {}", gvk.group, gvk.version, gvk.kind)
}
