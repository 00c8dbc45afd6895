//! Tests of the rule, the message and the suggestions of findings.
//!
//! The evaluator confirms each finding, so an expression with a correct guard has none.

use super::*;
use crate::consequence::Consequence;

const FINDINGS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/runtime_errors/tests/findings.txt"
);

/// Returns the findings for `source`: either a whole spec, or the expression of a validation. A resource and operations
/// in brackets may precede it. Each finding includes the validation that also denies the failing requests,
/// if there is one.
fn findings(source: &str) -> Vec<String> {
    let (target, source) = match source.strip_prefix('[').and_then(|it| it.split_once("] ")) {
        Some((target, source)) if target.contains(' ') => (target, source),
        _ => ("boxes CREATE", source),
    };
    let (resource, operations) = target.split_once(' ').unwrap();
    let operations: Vec<&str> = operations.split(',').collect();
    let mut parts = resource.rsplit('/');
    let name = parts.next().unwrap();
    let resource = match parts.next() {
        Some(version) => (parts.next().unwrap_or_default(), version, name),
        None => BOX,
    };
    let spec = if source.starts_with("{\"") {
        serde_json::from_str(source).unwrap()
    } else {
        validation(source)
    };
    let cache = ObjectCache::default();
    let served = &*PLAIN;
    let policy = policy(resource, &operations, &spec);
    let (findings, _) = find_runtime_errors(&policy, &served.context(&cache));
    let lines = findings.into_iter().flat_map(|finding| {
        let message = format!("  {}: {}", finding.rule.id(), finding.message);
        let denied_by = finding.denied_by.map(|other| {
            let message = if other.is_message_shown {
                "with its message"
            } else {
                "without its message"
            };
            format!("    denied by {} {message}", other.field_ref)
        });
        let rename = finding
            .rename
            .map(|it| format!("    rename: {}", it.replacement));
        let fix = finding.fix.map(|fix| format!("    {fix}"));
        let changes = finding
            .suggestions
            .into_iter()
            .map(|it| format!("    {}: {}", it.effect.id(), it.replacement));
        std::iter::once(message)
            .chain(denied_by)
            .chain(fix)
            .chain(rename)
            .chain(changes)
            .collect::<Vec<_>>()
    });
    lines.collect()
}

/// Compares the findings with the file `findings.txt`. With `VAP_UPDATE=1`, writes the file instead.
#[test]
fn findings_have_cause_and_suggestions() {
    let mut n_cases = 0;
    let mut written = String::new();
    let table = std::fs::read_to_string(FINDINGS).unwrap();
    for group in table.trim_end().split("\n\n") {
        let (comments, case): (Vec<&str>, Vec<&str>) =
            group.lines().partition(|line| line.starts_with('#'));
        let mut lines: Vec<String> = comments.into_iter().map(str::to_owned).collect();
        if let Some(source) = case.first() {
            lines.push((*source).to_owned());
            lines.extend(findings(source));
            n_cases += 1;
        }
        written += &lines.join("\n");
        written += "\n\n";
    }
    let written = format!("{}\n", written.trim_end());
    if std::env::var_os("VAP_UPDATE").is_some() {
        std::fs::write(FINDINGS, &written).unwrap();
    } else {
        assert_eq!(written, table);
    }
    assert!(n_cases > 100, "{n_cases}");
}

/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams`.
#[test]
fn param_ref_with_wrong_scope_is_found() {
    let nodes = ("", "v1", "nodes");
    let pods = ("", "v1", "pods");
    let named = json!({"name": "a", "parameterNotFoundAction": "Allow"});
    let within = json!({"name": "a", "namespace": "default", "parameterNotFoundAction": "Allow"});
    let of_namespaced = "paramKind ConfigMap is namespaced, but paramRef has no namespace and Node is cluster-scoped: \
                         every request for nodes fails";
    let of_cluster = "paramKind Namespace is cluster-scoped, but paramRef has a namespace: every request that the \
                      binding matches fails";
    for (resource, kind, reference, expected) in [
        (pods, "ConfigMap", &named, None),
        (pods, "ConfigMap", &within, None),
        (nodes, "ConfigMap", &within, None),
        (nodes, "ConfigMap", &named, Some((of_namespaced, "Node"))),
        (pods, "Namespace", &named, None),
        (pods, "Namespace", &within, Some((of_cluster, "Pod"))),
        (nodes, "Namespace", &within, Some((of_cluster, "Node"))),
    ] {
        for (failure_policy, consequence) in [
            ("Fail", Consequence::Denied),
            ("Ignore", Consequence::LetThrough),
        ] {
            let spec = json!({
                "failurePolicy": failure_policy,
                "paramKind": {"apiVersion": "v1", "kind": kind},
                "validations": [{"expression": "true"}],
            });
            let binding = json!({
                "metadata": {"name": "b"},
                "spec": {"policyName": "p", "paramRef": reference, "validationActions": ["Deny"]},
            });
            let binding = serde_json::from_value(binding).unwrap();
            let cache = ObjectCache::default();
            let policy = policy(resource, &["CREATE"], &spec);
            let mismatch = scope_mismatch(&policy, &binding, &PLAIN.context(&cache));
            let actual = mismatch.as_ref().map(|it| (&*it.gvk.kind, it.consequence));
            let wanted = expected.map(|(_, kind)| (kind, consequence));
            assert_eq!(actual, wanted, "{resource:?} {kind} {reference}");
            if let (Some(mismatch), Some((message, _))) = (mismatch, expected) {
                assert!(mismatch.message.contains(message), "{}", mismatch.message);
            }
        }
    }
}
