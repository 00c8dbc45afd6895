use std::sync::Arc;

use serde_json::{Value, json};

use super::CompiledPolicy;
use crate::runtime_errors::tests::policy;

const PODS: (&str, &str, &str) = ("", "v1", "pods");

/// A policy with expressions of each role. The validations read the variables.
fn spec() -> Value {
    json!({
        "matchConditions": [{"name": "c", "expression": "object.kind == 'Pod'"}],
        "variables": [
            {"name": "n", "expression": "1"},
            {"name": "sum", "expression": "variables.n + 1"},
        ],
        "validations": [
            {"expression": "variables.sum == 2", "messageExpression": "'n is ' + string(variables.n)"},
            {"expression": "variables.n < 3"},
        ],
        "auditAnnotations": [{"key": "k", "valueExpression": "string(variables.sum)"}],
    })
}

fn compiled() -> CompiledPolicy {
    policy(PODS, &["CREATE"], &spec())
}

#[test]
fn policy_with_replaced_expression_equals_newly_compiled_policy() {
    let compiled = compiled();
    assert!(compiled.findings().is_empty());
    for (field_ref, text) in [
        ("spec.matchConditions[0].expression", "object.kind == 'Job'"),
        ("spec.matchConditions[0].expression", "object.kind"),
        ("spec.variables[0].expression", "2"),
        ("spec.variables[0].expression", "'2'"),
        ("spec.variables[0].expression", "1 +"),
        ("spec.variables[1].expression", "'a'"),
        ("spec.variables[1].expression", "variables.sum + 1"),
        ("spec.validations[0].expression", "variables.sum == '2'"),
        ("spec.validations[1].expression", "variables.n < 4"),
        ("spec.validations[1].expression", ""),
        ("spec.validations[0].messageExpression", "variables.n"),
        ("spec.validations[0].messageExpression", ""),
        ("spec.auditAnnotations[0].valueExpression", "'a'"),
    ] {
        let changed = compiled.with_expression(field_ref, text.to_owned());
        let changed = changed.unwrap();
        let whole = CompiledPolicy::from_parts(changed.policy().clone(), None, compiled.version());
        let facts = |it: &CompiledPolicy| {
            let expressions = it.expressions().iter();
            let texts = expressions.map(|it| (it.field_ref.clone(), it.text.clone()));
            let texts: Vec<_> = texts.collect();
            let programs = (0..texts.len()).map(|n| it.program(n).is_some());
            (
                programs.collect::<Vec<_>>(),
                texts,
                it.findings().to_vec(),
                it.types.clone(),
            )
        };
        assert_eq!(facts(&changed), facts(&whole), "{field_ref} {text}");
    }
}

#[test]
fn replaced_expression_recompiles_only_expressions_that_may_change() {
    let compiled = compiled();
    for (field_ref, text, n_compiled) in [
        ("spec.validations[1].expression", "variables.n < 4", 1),
        ("spec.variables[0].expression", "2", 1),
        // The type of the variable changes, so the expressions after it are compiled again.
        ("spec.variables[1].expression", "'a'", 6),
    ] {
        let changed = compiled.with_expression(field_ref, text.to_owned());
        let changed = changed.unwrap();
        let is_compiled = |n: &usize| match (compiled.program(*n), changed.program(*n)) {
            (Some(before), Some(after)) => !Arc::ptr_eq(before, after),
            _ => true,
        };
        let indices = 0..compiled.n_expressions();
        assert_eq!(
            indices.filter(is_compiled).count(),
            n_compiled,
            "{field_ref}"
        );
    }
}
