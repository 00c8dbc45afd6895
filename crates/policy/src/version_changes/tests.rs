//! Compares the table with the documentation, and tests the nodes that each change may affect.

use std::collections::HashSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::json;

use super::{ALL, affected_nodes};
use crate::compile::CompiledPolicy;
use crate::subexpressions::text;
use kubernetes::version::KubernetesVersion;

const DOCS: &str = include_str!("../../../../docs/versions.md");

#[test]
fn table_in_docs_lists_all_changes() {
    let row = |change: &super::VersionChange| {
        format!("| {} | {} |", change.since.kubernetes(), change.summary)
    };
    let expected: Vec<String> = ALL.iter().map(row).collect();
    let (_, table) = DOCS.split_once("| Since | Change |\n|---|---|\n").unwrap();
    let table = table.lines().take_while(|line| line.starts_with('|'));
    assert_eq!(table.collect::<Vec<_>>(), expected);
}

#[test]
fn ids_of_changes_are_unique() {
    let ids: HashSet<&str> = ALL.iter().map(|change| change.id).collect();
    assert_eq!(ids.len(), ALL.len());
}

/// Asserts that exactly the `expected` changes from 1.36 to 1.37 may affect `expression`. An expected change consists
/// of its id and the source of the affected node.
#[track_caller]
fn check(expression: &str, expected: &[(&str, &str)]) {
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"validations": [{"expression": expression}]},
    }))
    .unwrap();
    let [old, new] = [36, 37].map(KubernetesVersion::new);
    let compiled = CompiledPolicy::from_parts((&policy).into(), None, old);
    let ast = compiled.expressions()[0].parsed().unwrap();
    let nodes = affected_nodes(&compiled, old, new);
    let nodes = nodes.iter();
    let actual: Vec<(&str, String)> = nodes
        .map(|affected| (affected.change.id, text(ast, affected.node)))
        .collect();
    let actual: Vec<(&str, &str)> = actual.iter().map(|(id, text)| (*id, &**text)).collect();
    assert_eq!(actual, expected, "{expression}");
}

#[test]
fn expressions_affected_by_a_change_are_found() {
    check(
        "object.spec.a.orValue([]).all(x, x == 1)",
        &[("or-value-without-optional", "object.spec.a.orValue([])")],
    );
    check("object.spec.?a.orValue([]).all(x, x == 1)", &[]);
    check(
        "object.spec == oldObject.spec",
        &[("go-values", "object.spec == oldObject.spec")],
    );
    check("object.metadata.name == oldObject.metadata.name", &[]);
    check("object.spec == {}", &[]);
    check(
        "object.spec.maxUnavailable == 1",
        &[("new-defaults", "object.spec.maxUnavailable")],
    );
    check(
        "lists.range(object.spec.n).size() == 1",
        &[("range-limits", "lists.range(object.spec.n)")],
    );
    check(
        "object.spec.a.indexOf('', object.spec.n) == 1",
        &[("index-bounds", "object.spec.a.indexOf('', object.spec.n)")],
    );
    check("object.spec.a.indexOf('') == 1", &[]);
    check(
        "1 in object.metadata.labels",
        &[("go-values", "1 in object.metadata.labels")],
    );
    check("1 in [1, 2] && 'a' in object.metadata.labels", &[]);
    check(
        "quantity(object.spec.a).add(quantity('1')).isGreaterThan(quantity('2'))",
        &[(
            "quantity-copies",
            "quantity(object.spec.a).add(quantity('1'))",
        )],
    );
    check(
        "optional.of(quantity('1')).optMap(q, q).hasValue()",
        // The macro evaluates its receiver twice.
        &[("optional-values", "optional.of(quantity('1'))"); 2],
    );
}

#[test]
fn equal_or_reversed_versions_have_no_changes_between_them() {
    let [old, new] = [36, 37].map(KubernetesVersion::new);
    assert_eq!(super::between(old, old).count(), 0);
    assert_eq!(super::between(new, old).count(), 0);
    assert!(super::between(old, new).count() > 5);
}
