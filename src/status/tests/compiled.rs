//! Tests of the condition `Compiled`.

use super::*;

#[test]
fn message_has_field_and_consequence_if_condition_compiled_is_false() {
    let facts = Facts::sound().with(|facts| {
        facts.findings = vec![
            finding(CompileFindingKind::Unsupported, "beyond"),
            finding(
                CompileFindingKind::Failed,
                "undeclared reference to 'foo'\n | foo",
            ),
            finding(CompileFindingKind::Failed, "another"),
        ];
    });
    check(
        &facts,
        ConditionType::Compiled,
        "False CompilationFailed",
        "an expression does not compile; with failurePolicy Fail, a request that reaches the expression is denied: \
         spec.validations[0].expression (and 1 more): undeclared reference to 'foo'",
    );
    let facts = facts.with(|facts| {
        for finding in &mut facts.findings {
            finding.consequence = Consequence::LetThrough;
        }
    });
    check(
        &facts,
        ConditionType::Compiled,
        "False CompilationFailed",
        "an expression does not compile; with failurePolicy Ignore, the policy does not check requests that reach the \
         expression: spec.validations[0].expression (and 1 more): undeclared reference to 'foo'",
    );
}

/// An API server that is too new may have the function that the expression calls.
#[test]
fn compiled_is_unknown_for_unsupported_expression_in_too_new_version() {
    let facts = Facts::sound().with(|facts| {
        facts.findings = vec![finding(CompileFindingKind::Unsupported, "no function")];
        facts.server.version = KubernetesVersion::new(99);
        facts.probes = ProbesState::Known(vec![ProbeFacts {
            name: "probe".into(),
            n_cases: 1,
            failed: vec![("case".into(), "denied".into())],
            ..ProbeFacts::default()
        }]);
    });
    let newest = KubernetesVersion::NEWEST;
    check(
        &facts,
        ConditionType::Compiled,
        "Unknown UnsupportedExpression",
        &format!(
            "an expression cannot be checked by vap-status-controller, which supports Kubernetes up to {newest}, but \
             the API server runs 1.99: spec.validations[0].expression: no function"
        ),
    );
    check(
        &facts,
        ConditionType::ProbesPassed,
        "Unknown UnsupportedExpression",
        &format!(
            "the decisions of the probes are unknown, because spec.validations[0].expression cannot be checked by \
             vap-status-controller, which supports Kubernetes up to {newest}, but the API server runs 1.99"
        ),
    );
}

#[test]
fn compiled_message_shows_lowest_api_server_version() {
    let facts = Facts::sound().with(|facts| {
        facts.server = ClusterVersion {
            version: KubernetesVersion::new(35).with_patch(4),
            is_lowest_of_several: true,
        };
    });
    check(
        &facts,
        ConditionType::Compiled,
        "True AllExpressionsCompile",
        "all 4 expressions compile for Kubernetes 1.35.4, the lowest version of the API servers",
    );
}

#[test]
fn compiled_is_false_for_unsafe_expression() {
    let facts = Facts::sound()
        .with(|facts| facts.findings = vec![finding(CompileFindingKind::Unsafe, "panics")]);
    check(
        &facts,
        ConditionType::Compiled,
        "False UnsafeExpression",
        "the API server accepts an expression that it cannot evaluate safely: \
         spec.validations[0].expression: panics",
    );
}
