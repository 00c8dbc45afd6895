//! Conditions of CustomResourceDefinitions: about their rules, and nothing of requests and bindings.

use serde_json::{Value, json};

use super::*;
use crate::status::definition::RuleFindings;
use crate::validation_rules::{judge, schema_errors};

/// The conditions of a definition with a version for each of these schemas.
fn computed(schemas: &[Value]) -> DesiredStatus {
    let versions = schemas.iter().enumerate().map(|(n, spec)| {
        json!({"name": format!("v{n}"), "served": true, "storage": n == 0, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec}}}})
    });
    let versions: Vec<Value> = versions.collect();
    let definition =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"versions": versions}});
    let found = RuleFindings::new(&judge(&definition), &schema_errors(&definition));
    of_findings(&found)
}

fn of_findings(found: &RuleFindings) -> DesiredStatus {
    let policy = ValidatingAdmissionPolicy::default();
    let matched = Matched::default();
    // Also where the options require more than there is.
    let ready_requires: BTreeSet<ConditionType> = ConditionType::ALL.into();
    let observed = Observed {
        policy: &policy,
        subject: SubjectKind::CustomResourceDefinition,
        compiled: Checked::Done(Compiled {
            findings: &found.compiled,
            n_expressions: found.n_expressions,
        }),
        matches: Checked::Done(&matched),
        types: Checked::Done(Types {
            outcome: &found.typed,
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

fn said(desired: &DesiredStatus, type_: ConditionType) -> (String, String) {
    let found = condition::find(&desired.conditions, type_);
    found.map_or_else(Default::default, |found| {
        let state = format!("{}/{}", found.status, found.reason);
        (state, found.message.clone())
    })
}

fn spec(rules: &Value) -> Value {
    json!({"type": "object", "properties": {
            "size": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string"}},
        }, "x-kubernetes-validations": rules})
}

fn field(version: usize, of_rule: &str) -> String {
    format!(
        "spec.versions[{version}].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations{of_rule}"
    )
}

#[test]
fn sound_rules_are_ready_and_nothing_else_is_said() {
    let desired = computed(&[
        spec(&json!([{"rule": "self.size > 0", "messageExpression": "'is small'"}])),
        spec(&json!([])),
    ]);
    let types: Vec<&str> = (desired.conditions.iter())
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(types, ["Ready", "Compiled", "TypeChecked"], "{desired:#?}");
    let (state, text) = said(&desired, ConditionType::Compiled);
    assert_eq!(
        (&*state, &*text),
        ("True/AllExpressionsCompile", "all 2 expressions compile")
    );
    assert_eq!(said(&desired, ConditionType::Ready).0, "True/Ready");
    assert_eq!(
        said(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
    assert_eq!(desired.expression_warnings, []);
}

#[test]
fn a_rule_that_does_not_compile_is_named_as_the_api_server_names_it() {
    let desired = computed(&[
        spec(&json!([])),
        spec(&json!([{"rule": "true"}, {"rule": "self.sise > 0"}, {"rule": "self.size"}])),
    ]);
    let (state, text) = said(&desired, ConditionType::Compiled);
    assert_eq!(state, "False/CompilationFailed");
    assert_eq!(
        text,
        format!(
            "does not compile, an object that it is asked about is refused: {} (and 1 more): compilation failed: \
             ERROR: <input>:1:5: undefined field 'sise'",
            field(1, "[1].rule")
        )
    );
    // The rule that compiles has no fault.
    assert_eq!(
        said(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
    assert_eq!(
        said(&desired, ConditionType::Stalled).0,
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
fn all_versions_of_one_schema_are_named_once() {
    let one = spec(&json!([{"rule": "self.sise > 0"}]));
    let desired = computed(&[one.clone(), one]);
    let (_, text) = said(&desired, ConditionType::Compiled);
    let place =
        "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule:";
    assert!(text.contains(place), "{text}");
    let (state, _) = said(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "Unknown/CompilationFailed");
}

#[test]
fn a_message_that_does_not_compile_refuses_nobody() {
    let rule = json!([{"rule": "self.size > 0", "messageExpression": "self.size"}]);
    let desired = computed(&[spec(&rule)]);
    let (state, text) = said(&desired, ConditionType::Compiled);
    assert_eq!(state, "False/CompilationFailed");
    assert!(text.contains("none is denied for it"), "{text}");
    assert!(text.contains("[0].messageExpression"), "{text}");
    assert_eq!(
        said(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
}

#[test]
fn what_a_new_definition_must_not_have_is_no_matter_of_compiling() {
    let costly = "self.names.all(a, self.names.all(b, self.names.all(c, a != b || b != c)))";
    let desired = computed(&[spec(&json!([{"rule": costly}])), spec(&json!([]))]);
    let (state, text) = said(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "False/ExpressionWarnings");
    let start = format!(
        "{} and 2 more: the API server refuses that in a new definition: Forbidden: estimated rule cost exceeds",
        field(0, "[0].rule")
    );
    assert!(text.starts_with(&start), "{text}");
    assert_eq!(
        said(&desired, ConditionType::Compiled).0,
        "True/AllExpressionsCompile"
    );
    assert_eq!(
        said(&desired, ConditionType::Ready).0,
        "False/ExpressionWarnings"
    );
    // Nothing but an edit mends it.
    assert_eq!(
        said(&desired, ConditionType::Stalled).0,
        "True/ExpressionWarnings"
    );
    assert_eq!(desired.n_type_warnings, desired.expression_warnings.len());

    let old =
        json!({"type": "array", "items": spec(&json!([{"rule": "self.size >= oldSelf.size"}]))});
    let desired = computed(&[old, spec(&json!([]))]);
    let (state, text) = said(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "False/ExpressionWarnings");
    assert!(text.contains("oldSelf cannot be used"), "{text}");
}

#[test]
fn rules_of_a_schema_with_other_faults_are_not_judged() {
    let odd = json!({"properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.sise > 0"}]});
    let desired = computed(&[odd, spec(&json!([]))]);
    let (state, text) = said(&desired, ConditionType::Compiled);
    assert_eq!(state, "Unknown/UnsupportedExpression");
    assert!(text.contains("which has other faults"), "{text}");
    let (state, text) = said(&desired, ConditionType::TypeChecked);
    assert_eq!(state, "False/ExpressionWarnings");
    assert!(text.contains("must not be empty"), "{text}");
}

#[test]
fn what_cannot_be_read_is_not_judged() {
    let desired = of_findings(&RuleFindings::unreadable("it nests too deeply"));
    let (state, text) = said(&desired, ConditionType::Compiled);
    assert_eq!(state, "Unknown/UnsupportedExpression");
    assert!(text.contains("it nests too deeply"), "{text}");
    assert_ne!(
        said(&desired, ConditionType::TypeChecked).0,
        "True/NoWarnings"
    );
}

#[test]
fn one_without_rules_says_so() {
    let desired = of_findings(&RuleFindings::default());
    for type_ in [ConditionType::Compiled, ConditionType::TypeChecked] {
        let (state, text) = said(&desired, type_);
        assert!(state.starts_with("True/"), "{state}");
        assert_eq!(text, "it has no rules");
    }
}
