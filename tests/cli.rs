//! What `kubectl vap status` shows: the table at 80 and at 200 columns, one policy in full, the
//! shape for programs, and the exit status.

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::render;
use vap_status_controller::cli::report::{PolicyReport, State, StatusReport};
use vap_status_controller::cli::terminal::Terminal;

/// The present moment of all tests.
const NOW: &str = "2026-03-01T12:00:00Z";

const WARNING: &str = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n | object.spec.replica <= 5\n | ...........^\n";

fn policy(value: Value) -> ValidatingAdmissionPolicy {
    serde_json::from_value(value).unwrap()
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, since: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": 1,
    })
}

fn named(name: &str, status: Value) -> ValidatingAdmissionPolicy {
    policy(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {
            "name": name, "generation": 1, "creationTimestamp": "2026-03-01T11:00:00Z",
        },
        "spec": {"failurePolicy": "Fail"},
        "status": status,
    }))
}

fn sound() -> ValidatingAdmissionPolicy {
    let since = "2026-03-01T11:30:00Z";
    named(
        "replica-limit.example.com",
        json!({"observedGeneration": 1, "typeChecking": {}, "conditions": [
            condition("Ready", "True", "Ready", "the policy works", since),
            condition("TypeChecked", "True", "NoWarnings", "3 expressions on 1 kind", since),
            condition("Compiled", "True", "AllExpressionsCompile", "3 expressions", since),
            condition("ResourcesMatched", "True", "ResourcesServed", "1 rule", since),
            condition("ParamsResolved", "True", "ParamsNotRequired", "no paramKind", since),
        ]}),
    )
}

fn param_kind_missing() -> ValidatingAdmissionPolicy {
    let since = "2026-03-01T11:58:30Z";
    let message = "paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy \
                   Fail every matching request is denied";
    let mut policy = named(
        "param-kind-missing.example.com",
        json!({"observedGeneration": 1, "typeChecking": {}, "conditions": [
            condition("Ready", "False", "ParamKindNotFound", message, since),
            condition("ParamsResolved", "False", "ParamKindNotFound", message, since),
            condition("Compiled", "True", "AllExpressionsCompile", "1 expression", since),
            condition("TypeChecked", "Unknown", "SchemaUnavailable", "no schema", since),
            condition("ResourcesMatched", "True", "ResourcesServed", "1 rule", since),
        ]}),
    );
    policy.spec.as_mut().unwrap().param_kind = serde_json::from_value(
        json!({"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"}),
    )
    .unwrap();
    policy
}

fn misspelt() -> ValidatingAdmissionPolicy {
    let since = "2026-03-01T11:51:00Z";
    let message = "1 expression has warnings: spec.validations[0].expression";
    named(
        "misspelt-field.example.com",
        json!({
            "observedGeneration": 1,
            "typeChecking": {"expressionWarnings": [
                {"fieldRef": "spec.validations[0].expression", "warning": WARNING},
            ]},
            "conditions": [
                condition("Ready", "False", "ExpressionWarnings", message, since),
                condition("TypeChecked", "False", "ExpressionWarnings", message, since),
            ],
        }),
    )
}

fn stale() -> ValidatingAdmissionPolicy {
    let mut policy = sound();
    policy.metadata.name = Some("stale.example.com".to_owned());
    policy.metadata.generation = Some(3);
    // As upstream's controller leaves it: it has looked at generation 3, ours has not.
    policy.status.as_mut().unwrap().observed_generation = Some(3);
    policy
}

fn untouched() -> ValidatingAdmissionPolicy {
    named("untouched.example.com", json!({}))
}

fn only_upstream() -> ValidatingAdmissionPolicy {
    named(
        "only-upstream.example.com",
        json!({"observedGeneration": 1, "typeChecking": {"expressionWarnings": [
            {"fieldRef": "spec.validations[0].expression", "warning": WARNING},
        ]}}),
    )
}

fn all() -> StatusReport {
    StatusReport::of(&[
        misspelt(),
        only_upstream(),
        param_kind_missing(),
        sound(),
        stale(),
        untouched(),
    ])
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn terminal(width: usize) -> Terminal {
    Terminal {
        width: Some(width),
        color: false,
    }
}

#[track_caller]
fn check(text: &str, expect: &str) {
    let expect = expect.trim_start_matches('\n');
    assert!(text == expect, "--- got\n{text}--- want\n{expect}--- end");
}

/// No line is wider than the terminal, and none ends in white space.
#[track_caller]
fn check_shape(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn the_table_at_80_columns() {
    let text = render::table(&all(), now(), terminal(80), false);
    check_shape(&text, 80);
    check(
        &text,
        r#"
NAME                            READY  REASON              SINCE  AGE
misspelt-field.example.com      False  ExpressionWarnings  9m     60m
  TypeChecked=False ExpressionWarnings: 1 expression has warnings:
    spec.validations[0].expression
only-upstream.example.com       -      NoStatus            -      60m
  no status from vap-status-controller; kube-controller-manager alone has
    checked types: 1 warning
param-kind-missing.example.com  False  ParamKindNotFound   90s    60m
  ParamsResolved=False ParamKindNotFound: paramKind rules.example.com/v1
    ReplicaLimit is not served; with failurePolicy Fail every matching request
    is denied
  TypeChecked=Unknown SchemaUnavailable: no schema
replica-limit.example.com       True   Ready               30m    60m
stale.example.com               Stale  Ready               30m    60m
  stale: the status is of generation 1, the policy is at 3
untouched.example.com           -      NoStatus            -      60m
  no status from vap-status-controller

6 policies: 1 Ready, 2 not Ready, 1 stale, 2 without a status
"#,
    );
}

#[test]
fn the_table_at_200_columns() {
    let text = render::table(&all(), now(), terminal(200), false);
    check_shape(&text, 200);
    check(
        &text,
        r#"
NAME                            READY  REASON              COMPILED  TYPECHECKED  RESOURCESMATCHED  PARAMSRESOLVED  SINCE  AGE
misspelt-field.example.com      False  ExpressionWarnings  -         False        -                 -               9m     60m
  TypeChecked=False ExpressionWarnings: 1 expression has warnings: spec.validations[0].expression
only-upstream.example.com       -      NoStatus            -         -            -                 -               -      60m
  no status from vap-status-controller; kube-controller-manager alone has checked types: 1 warning
param-kind-missing.example.com  False  ParamKindNotFound   True      Unknown      True              False           90s    60m
  ParamsResolved=False ParamKindNotFound: paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy Fail every matching request is denied
  TypeChecked=Unknown SchemaUnavailable: no schema
replica-limit.example.com       True   Ready               True      True         True              True            30m    60m
stale.example.com               Stale  Ready               True      True         True              True            30m    60m
  stale: the status is of generation 1, the policy is at 3
untouched.example.com           -      NoStatus            -         -            -                 -               -      60m
  no status from vap-status-controller

6 policies: 1 Ready, 2 not Ready, 1 stale, 2 without a status
"#,
    );
}

#[test]
fn the_wide_table_has_every_column() {
    let text = render::table(&all(), now(), terminal(200), true);
    check_shape(&text, 200);
    check(
        &text,
        r#"
NAME                            READY  REASON              COMPILED  TYPECHECKED  RESOURCESMATCHED  PARAMSRESOLVED  WARNINGS  GENERATION  FAILUREPOLICY  PARAMKIND                          SINCE  AGE
misspelt-field.example.com      False  ExpressionWarnings  -         False        -                 -               1         1           Fail           -                                  9m     60m
  TypeChecked=False ExpressionWarnings: 1 expression has warnings: spec.validations[0].expression
only-upstream.example.com       -      NoStatus            -         -            -                 -               1         1           Fail           -                                  -      60m
  no status from vap-status-controller; kube-controller-manager alone has checked types: 1 warning
param-kind-missing.example.com  False  ParamKindNotFound   True      Unknown      True              False           0         1           Fail           rules.example.com/v1 ReplicaLimit  90s    60m
  ParamsResolved=False ParamKindNotFound: paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy Fail every matching request is denied
  TypeChecked=Unknown SchemaUnavailable: no schema
replica-limit.example.com       True   Ready               True      True         True              True            0         1           Fail           -                                  30m    60m
stale.example.com               Stale  Ready               True      True         True              True            0         1/3         Fail           -                                  30m    60m
  stale: the status is of generation 1, the policy is at 3
untouched.example.com           -      NoStatus            -         -            -                 -               -         1           Fail           -                                  -      60m
  no status from vap-status-controller

6 policies: 1 Ready, 2 not Ready, 1 stale, 2 without a status
"#,
    );
}

#[test]
fn one_policy_in_full() {
    let text = render::details(
        &PolicyReport::of(&param_kind_missing()),
        now(),
        terminal(80),
    );
    check_shape(&text, 80);
    check(
        &text,
        r#"
Name:           param-kind-missing.example.com
Ready:          False, ParamKindNotFound
Age:            60m
Generation:     1
Failure policy: Fail
Param kind:     rules.example.com/v1 ReplicaLimit

CONDITION         STATUS   REASON                 SINCE
Ready             False    ParamKindNotFound      90s
  paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy
  Fail every matching request is denied
Compiled          True     AllExpressionsCompile  90s
  1 expression
TypeChecked       Unknown  SchemaUnavailable      90s
  no schema
ResourcesMatched  True     ResourcesServed        90s
  1 rule
ParamsResolved    False    ParamKindNotFound      90s
  paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy
  Fail every matching request is denied
"#,
    );
}

#[test]
fn warnings_keep_their_carets() {
    let text = render::details(&PolicyReport::of(&misspelt()), now(), terminal(80));
    check_shape(&text, 80);
    check(
        &text,
        r#"
Name:           misspelt-field.example.com
Ready:          False, ExpressionWarnings
Age:            60m
Generation:     1
Failure policy: Fail
Param kind:     -

CONDITION    STATUS  REASON              SINCE
Ready        False   ExpressionWarnings  9m
  1 expression has warnings: spec.validations[0].expression
TypeChecked  False   ExpressionWarnings  9m
  1 expression has warnings: spec.validations[0].expression

Expression warnings (1):
  spec.validations[0].expression
    apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'
     | object.spec.replica <= 5
     | ...........^
"#,
    );
}
