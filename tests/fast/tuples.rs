//! Tests that a literal list has the type of a tuple. Each element has its own type, also in macros and variables.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::json;
use vap_status_controller::cli::check::finding::Severity;

use crate::manifest;

/// Returns the warnings for `expression`. The expression may use a variable whose value is a list of pairs.
fn warnings(expression: &str) -> Vec<String> {
    let pairs = "object.spec.template.spec.containers.map(c, [c.name, c.?args.orValue([])])";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]},
            "variables": [{"name": "pairs", "expression": pairs}],
            "validations": [{"expression": expression}],
        },
    });
    let report = manifest::report(&policy.to_string(), &[]);
    let warnings = report
        .findings
        .into_iter()
        .filter(|finding| finding.severity == Severity::Warning);
    warnings.map(|finding| finding.message).collect()
}

#[test]
fn tuple_elements_keep_their_types() {
    for expression in [
        "variables.pairs.all(p, p[0].startsWith('a') && p[1].size() > 0)",
        "object.spec.template.spec.containers.map(c, [c.name, c.ports]).all(p, p[0] != '' && p[1].all(q, q.containerPort > 5))",
        "variables.pairs.filter(p, p[1].size() > 0).all(p, p[0].startsWith('a'))",
        "(variables.pairs + [['x', []]]).all(p, p[0].startsWith('a'))",
        "[dyn(object.metadata.name), dyn(5)][1] > 3",
        "(object.metadata.name == 'a' ? [dyn('x'), dyn(1)] : [dyn('y'), dyn(2)])[0].startsWith('x')",
    ] {
        let findings = warnings(expression);
        let findings: Vec<_> = findings
            .iter()
            .filter(|message| message.contains("overload"))
            .collect();
        assert!(findings.is_empty(), "{expression}: {findings:?}");
    }
}

#[test]
fn mistyped_tuple_element_is_reported() {
    for (expression, wanted) in [
        (
            "variables.pairs.all(p, p[1].startsWith('a'))",
            "found no matching overload for 'startsWith' applied to 'list(string).(string)'",
        ),
        (
            "variables.pairs.exists(p, p[0] + 1 == 2)",
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
    ] {
        let findings = warnings(expression);
        assert!(
            findings.iter().any(|message| message == wanted),
            "{expression}: {findings:?}"
        );
    }
}
