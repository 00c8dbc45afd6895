//! Expressions whose result differs between Kubernetes versions, compared with recorded results.

use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use vap_status_controller::cel::eval::{Limits, Program};
use vap_status_controller::cel::value::Value;
use vap_status_controller::cel::{ast_validators, checker, syntax};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::policy::compile::{CompileFindingKind, CompiledPolicy};
use vap_status_controller::version::KubernetesVersion;

use crate::golden;

const PATH: &str = "tests/versions/expressions.txt";

fn shown(value: &Value) -> String {
    match value {
        Value::List(list) => {
            let elements: Vec<String> = list.iter().map(|element| shown(&element)).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Optional(optional) => match optional.get() {
            Some(value) => format!("optional({})", shown(value)),
            None => "optional()".to_owned(),
        },
        Value::Type(of) => of.declared_string(),
        other => other.to_go_string(),
    }
}

/// Returns the value and the cost of an expression, or the error with the step that reports it.
fn result(text: &str, version: KubernetesVersion) -> String {
    let env = base_env(version);
    let mut n_left = 10_000;
    let behavior = version.behavior().language;
    let (ast, diagnostics) = syntax::parse_within(text, behavior, &mut n_left);
    let Some(ast) = ast.map(Arc::new) else {
        let first = diagnostics.as_slice().first();
        return format!("syntax error: {}", first.unwrap());
    };
    let (checked, mut diagnostics) = checker::check(&ast, text, env);
    if diagnostics.is_empty() {
        ast_validators::validate(&checked, env, text, &mut diagnostics);
    }
    if let [first, ..] = diagnostics.as_slice() {
        return format!("type error: {first}");
    }
    let program = match Program::plan(&checked, env, &KubernetesRuntime) {
        Ok(program) => program,
        Err(error) => return format!("planning error: {error}"),
    };
    let none: [(&str, Value); 0] = [];
    let evaluation = program.eval(&none, Limits::from_cost(1_000_000));
    match evaluation.result {
        Ok(value) => format!("{}, cost {}", shown(&value), evaluation.cost),
        Err(error) => format!("error: {error}, cost {}", evaluation.cost),
    }
}

/// Returns the results of an expression, one line per range of versions.
fn results(text: &str) -> String {
    let mut ranges: Vec<(u16, u16, String)> = Vec::new();
    for version in KubernetesVersion::supported() {
        let actual = result(text, version);
        match ranges.last_mut() {
            Some((_, last, previous)) if *previous == actual => *last = version.minor,
            _ => ranges.push((version.minor, version.minor, actual)),
        }
    }
    let mut lines = String::new();
    for (first, last, actual) in ranges {
        let range = if first == last {
            format!("1.{first}")
        } else {
            format!("1.{first} to 1.{last}")
        };
        let _ = writeln!(lines, "  {range}: {actual}");
    }
    lines
}

#[test]
fn results_of_each_version_are_those_of_upstream() {
    let recorded = std::fs::read_to_string(PATH).unwrap();
    let mut actual = String::new();
    let mut n_expressions = 0;
    for line in recorded.lines() {
        if line.starts_with("  ") {
            continue;
        }
        actual.push_str(line);
        actual.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            n_expressions += 1;
            actual.push_str(&results(line));
        }
    }
    assert!(n_expressions > 30, "{n_expressions}");
    golden::compare(PATH, &actual);
}

/// An API server that is too new may have the function, so that the error is not certain.
#[test]
fn compile_error_in_version_that_is_too_new_is_unsupported() {
    let kind_in = |minor| {
        let policy =
            serde_json::json!({"spec": {"validations": [{"expression": "object.nextYear()"}]}});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let version = KubernetesVersion::new(minor);
        let compiled = CompiledPolicy::from_parts((&policy).into(), None, version);
        compiled.findings().first().map(|finding| finding.kind)
    };
    let newest = KubernetesVersion::NEWEST.minor;
    assert_eq!(kind_in(newest), Some(CompileFindingKind::Failed));
    assert_eq!(kind_in(newest + 1), Some(CompileFindingKind::Unsupported));
}
