use serde_json::{Value, json};

use super::*;
use crate::status::definition::RuleFindings;
use crate::validation_rules::{schema_errors, validate_rules};
use crate::version::{CompileMode, KubernetesVersion};

/// Computes the status of a definition with one version per schema.
fn computed(schemas: &[Value]) -> DesiredStatus {
    let versions = schemas.iter().enumerate().map(|(n, spec)| {
        json!({"name": format!("v{n}"), "served": true, "storage": n == 0, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec}}}})
    });
    let versions: Vec<Value> = versions.collect();
    let definition =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"versions": versions}});
    let findings = RuleFindings::new(
        &validate_rules(&definition, KubernetesVersion::DEFAULT, CompileMode::Stored),
        &schema_errors(&definition),
    );
    compute_from(&findings)
}

fn compute_from(rules: &RuleFindings) -> DesiredStatus {
    let matched = MatchSummary::default();
    // `Ready` may require conditions that a definition does not have.
    let ready_requires: BTreeSet<ConditionType> = ConditionType::ALL.into();
    let observed = Observations {
        policy: None,
        generation: 0,
        server: ClusterVersion::default(),
        unknown_fields: UnknownFields::default(),
        status: None,
        subject: SubjectKind::CustomResourceDefinition,
        compiled: StepOutcome::Done(CompileSummary {
            findings: &rules.compiled,
            n_expressions: rules.n_expressions,
        }),
        matches: StepOutcome::Done(&matched),
        types: StepOutcome::Done(TypeObservations {
            outcome: &rules.typed,
            waiting: &[],
        }),
        params: ParamKindState::NotRequired,
        bindings: BindingsState::Known(Vec::new()),
        probes: ProbesState::Known(Vec::new()),
        ready_requires: &ready_requires,
        staleness: Staleness::default(),
    };
    compute(&observed, at(1))
}

fn summary(desired: &DesiredStatus, type_: ConditionType) -> (String, String) {
    let condition = condition::find(&desired.conditions, type_);
    condition.map_or_else(Default::default, |condition| {
        let state = format!("{}/{}", condition.status, condition.reason);
        (state, condition.message.clone())
    })
}

fn spec(rules: &Value) -> Value {
    json!({"type": "object", "properties": {
            "size": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string"}},
        }, "x-kubernetes-validations": rules})
}

fn field(version: usize, rule_path: &str) -> String {
    format!(
        "spec.versions[{version}].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations{rule_path}"
    )
}

#[test]
fn valid_rules_have_three_true_conditions() {
    let desired = computed(&[
        spec(&json!([{"rule": "self.size > 0", "messageExpression": "'is small'"}])),
        spec(&json!([])),
    ]);
    let types: Vec<&str> = (desired.conditions.iter())
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(types, ["Ready", "Compiled", "TypeChecked"], "{desired:#?}");
    let (state, text) = summary(&desired, ConditionType::Compiled);
    assert_eq!(
        (&*state, &*text),
        ("True/AllExpressionsCompile", "all 2 expressions compile")
    );
    assert_eq!(summary(&desired, ConditionType::Ready).0, "True/Ready");
    assert_eq!(
        summary(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
    assert_eq!(desired.expression_warnings, []);
}

#[test]
fn message_about_invalid_rule_has_field_path_of_api_server() {
    let desired = computed(&[
        spec(&json!([])),
        spec(&json!([{"rule": "true"}, {"rule": "self.sise > 0"}, {"rule": "self.size"}])),
    ]);
    let (state, text) = summary(&desired, ConditionType::Compiled);
    assert_eq!(state, "False/CompilationFailed");
    assert_eq!(
        text,
        format!(
            "an expression does not compile; objects that the rule validates are rejected: {} (and 1 more): \
             compilation failed: ERROR: <input>:1:5: undefined field 'sise'",
            field(1, "[1].rule")
        )
    );
    // The other expression compiles, so `TypeChecked` has no error to report.
    assert_eq!(
        summary(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
    assert_eq!(
        summary(&desired, ConditionType::Stalled).0,
        "True/CompilationFailed"
    );
    let warnings: Vec<&str> = (desired.expression_warnings.iter())
        .map(|warning| warning.field_ref.as_str())
        .collect();
    assert_eq!(warnings, [field(1, "[1].rule"), field(1, "[2].rule")]);
    assert_eq!(desired.n_type_warnings, 0);
    assert!(
        desired.expression_warnings[0]
            .warning
            .contains(" | self.sise > 0")
    );
}

#[test]
fn versions_with_the_same_schema_are_reported_once() {
    let one = spec(&json!([{"rule": "self.sise > 0"}]));
    let desired = computed(&[one.clone(), one]);
    let (_, text) = summary(&desired, ConditionType::Compiled);
    let path = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule:";
    assert!(text.contains(path), "{text}");
    let (state, _) = summary(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "Unknown/CompilationFailed");
}

#[test]
fn message_about_invalid_message_expression_states_that_no_request_is_denied() {
    let rule = json!([{"rule": "self.size > 0", "messageExpression": "self.size"}]);
    let desired = computed(&[spec(&rule)]);
    let (state, text) = summary(&desired, ConditionType::Compiled);
    assert_eq!(state, "False/CompilationFailed");
    assert!(text.contains("no extra request is denied"), "{text}");
    assert!(text.contains("[0].messageExpression"), "{text}");
    assert_eq!(
        summary(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
}

#[test]
fn type_checked_is_false_for_errors_other_than_compile_errors() {
    let costly = "self.names.all(a, self.names.all(b, self.names.all(c, a != b || b != c)))";
    let desired = computed(&[spec(&json!([{"rule": costly}])), spec(&json!([]))]);
    let (state, text) = summary(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "False/ExpressionWarnings");
    let start = format!(
        "{} and 2 more: the API server rejects this in a new definition: Forbidden: estimated rule cost exceeds",
        field(0, "[0].rule")
    );
    assert!(text.starts_with(&start), "{text}");
    assert_eq!(
        summary(&desired, ConditionType::Compiled).0,
        "True/AllExpressionsCompile"
    );
    assert_eq!(
        summary(&desired, ConditionType::Ready).0,
        "False/ExpressionWarnings"
    );
    // Only an edit of the definition can correct the error.
    assert_eq!(
        summary(&desired, ConditionType::Stalled).0,
        "True/ExpressionWarnings"
    );
    assert_eq!(desired.n_type_warnings, desired.expression_warnings.len());

    let old =
        json!({"type": "array", "items": spec(&json!([{"rule": "self.size >= oldSelf.size"}]))});
    let desired = computed(&[old, spec(&json!([]))]);
    let (state, text) = summary(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "False/ExpressionWarnings");
    assert!(text.contains("oldSelf cannot be used"), "{text}");
}

#[test]
fn compiled_is_unknown_if_schema_has_other_errors() {
    let odd = json!({"properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.sise > 0"}]});
    let desired = computed(&[odd, spec(&json!([]))]);
    let (state, text) = summary(&desired, ConditionType::Compiled);
    assert_eq!(state, "Unknown/UnsupportedExpression");
    assert!(text.contains("the schema has other errors"), "{text}");
    let (state, text) = summary(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "False/ExpressionWarnings");
    assert!(text.contains("must not be empty"), "{text}");
}

#[test]
fn compiled_is_unknown_for_unreadable_definition() {
    let desired = compute_from(&RuleFindings::unreadable("it nests too deeply"));
    let (state, text) = summary(&desired, ConditionType::Compiled);
    assert_eq!(state, "Unknown/UnsupportedExpression");
    assert!(text.contains("it nests too deeply"), "{text}");
    assert_ne!(
        summary(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
}

#[test]
fn definition_without_rules_has_true_conditions_with_message() {
    let desired = compute_from(&RuleFindings::default());
    for type_ in [ConditionType::Compiled, ConditionType::TypeChecked] {
        let (state, text) = summary(&desired, type_);
        assert!(state.starts_with("True/"), "{state}");
        assert_eq!(text, "the definition has no rules");
    }
}
