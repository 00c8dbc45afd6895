//! Tests the output of `kubectl vap status`: the table at 80 and 200 columns, the details of a policy, JSON, and the
//! exit status.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "tests fail by panicking, and are more readable with inline values"
)]

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::render;
use vap_status_controller::cli::report::{PolicyReport, State, StatusReport};
use vap_status_controller::cli::terminal::Terminal;
use vap_status_controller::status::compute::DesiredStatus;
use vap_status_controller::status::exclusion::Exclusion;

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
    // Generation 3 was observed by kube-controller-manager, but not by this controller.
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
    StatusReport::from_policies(&[
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

/// Asserts that no line is wider than the terminal, and that no line ends with white space.
#[track_caller]
fn check_shape(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn table_at_80_columns_fits_width() {
    let text = render::table(&all(), now(), terminal(80), false);
    check_shape(&text, 80);
    check(
        &text,
        r"
NAME                            READY  REASON              SINCE  AGE
misspelt-field.example.com      False  ExpressionWarnings  9m     60m
  TypeChecked=False ExpressionWarnings: 1 expression has warnings:
    spec.validations[0].expression
only-upstream.example.com       -      NoStatus            -      60m
  no status from vap-status-controller; only kube-controller-manager has checked
    types: 1 warning
param-kind-missing.example.com  False  ParamKindNotFound   90s    60m
  ParamsResolved=False ParamKindNotFound: paramKind rules.example.com/v1
    ReplicaLimit is not served; with failurePolicy Fail every matching request
    is denied
  TypeChecked=Unknown SchemaUnavailable: no schema
replica-limit.example.com       True   Ready               30m    60m
stale.example.com               Stale  Ready               30m    60m
  stale: the status is for generation 1, but the policy has generation 3
untouched.example.com           -      NoStatus            -      60m
  no status from vap-status-controller

6 policies: 1 Ready, 2 not Ready, 1 stale, 2 without a status
",
    );
}

#[test]
fn table_at_200_columns_has_column_per_condition() {
    let text = render::table(&all(), now(), terminal(200), false);
    check_shape(&text, 200);
    check(
        &text,
        r"
NAME                            READY  REASON              COMPILED  TYPECHECKED  RESOURCESMATCHED  PARAMSRESOLVED  SINCE  AGE
misspelt-field.example.com      False  ExpressionWarnings  -         False        -                 -               9m     60m
  TypeChecked=False ExpressionWarnings: 1 expression has warnings: spec.validations[0].expression
only-upstream.example.com       -      NoStatus            -         -            -                 -               -      60m
  no status from vap-status-controller; only kube-controller-manager has checked types: 1 warning
param-kind-missing.example.com  False  ParamKindNotFound   True      Unknown      True              False           90s    60m
  ParamsResolved=False ParamKindNotFound: paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy Fail every matching request is denied
  TypeChecked=Unknown SchemaUnavailable: no schema
replica-limit.example.com       True   Ready               True      True         True              True            30m    60m
stale.example.com               Stale  Ready               True      True         True              True            30m    60m
  stale: the status is for generation 1, but the policy has generation 3
untouched.example.com           -      NoStatus            -         -            -                 -               -      60m
  no status from vap-status-controller

6 policies: 1 Ready, 2 not Ready, 1 stale, 2 without a status
",
    );
}

#[test]
fn wide_table_has_every_column() {
    let text = render::table(&all(), now(), terminal(200), true);
    check_shape(&text, 200);
    check(
        &text,
        r"
NAME                            READY  REASON              COMPILED  TYPECHECKED  RESOURCESMATCHED  PARAMSRESOLVED  WARNINGS  GENERATION  FAILUREPOLICY  PARAMKIND                          SINCE  AGE
misspelt-field.example.com      False  ExpressionWarnings  -         False        -                 -               1         1           Fail           -                                  9m     60m
  TypeChecked=False ExpressionWarnings: 1 expression has warnings: spec.validations[0].expression
only-upstream.example.com       -      NoStatus            -         -            -                 -               1         1           Fail           -                                  -      60m
  no status from vap-status-controller; only kube-controller-manager has checked types: 1 warning
param-kind-missing.example.com  False  ParamKindNotFound   True      Unknown      True              False           0         1           Fail           rules.example.com/v1 ReplicaLimit  90s    60m
  ParamsResolved=False ParamKindNotFound: paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy Fail every matching request is denied
  TypeChecked=Unknown SchemaUnavailable: no schema
replica-limit.example.com       True   Ready               True      True         True              True            0         1           Fail           -                                  30m    60m
stale.example.com               Stale  Ready               True      True         True              True            0         1/3         Fail           -                                  30m    60m
  stale: the status is for generation 1, but the policy has generation 3
untouched.example.com           -      NoStatus            -         -            -                 -               -         1           Fail           -                                  -      60m
  no status from vap-status-controller

6 policies: 1 Ready, 2 not Ready, 1 stale, 2 without a status
",
    );
}

#[test]
fn details_of_policy_are_complete() {
    let text = render::details(
        &PolicyReport::new(&param_kind_missing()),
        now(),
        terminal(80),
    );
    check_shape(&text, 80);
    check(
        &text,
        r"
Name:           param-kind-missing.example.com
Ready:          False, ParamKindNotFound
Age:            60m
Generation:     1
Failure policy: Fail
Param kind:     rules.example.com/v1 ReplicaLimit

CONDITION         STATUS   REASON                 SINCE
Ready             False    ParamKindNotFound      90s
Compiled          True     AllExpressionsCompile  90s
  1 expression
TypeChecked       Unknown  SchemaUnavailable      90s
  no schema
ResourcesMatched  True     ResourcesServed        90s
  1 rule
ParamsResolved    False    ParamKindNotFound      90s
  paramKind rules.example.com/v1 ReplicaLimit is not served; with failurePolicy
  Fail every matching request is denied
",
    );
}

#[test]
fn details_keep_caret_positions_of_warnings() {
    let text = render::details(&PolicyReport::new(&misspelt()), now(), terminal(80));
    check_shape(&text, 80);
    check(
        &text,
        r"
Name:           misspelt-field.example.com
Ready:          False, ExpressionWarnings
Age:            60m
Generation:     1
Failure policy: Fail
Param kind:     -

CONDITION    STATUS  REASON              SINCE
Ready        False   ExpressionWarnings  9m
TypeChecked  False   ExpressionWarnings  9m
  1 expression has warnings: spec.validations[0].expression

Expression warnings (1):
  spec.validations[0].expression
    apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'
     | object.spec.replica <= 5
     | ...........^
",
    );
}

#[test]
fn long_policy_name_is_on_separate_line() {
    let mut long = untouched();
    long.metadata.name = Some(format!("{}.example.com", "very-long-".repeat(6)));
    let text = render::table(
        &StatusReport::from_policies(&[long, sound()]),
        now(),
        terminal(80),
        false,
    );
    check_shape(&text, 80);
    check(
        &text,
        r"
NAME                       READY  REASON    SINCE  AGE
very-long-very-long-very-long-very-long-very-long-very-long-.example.com
                           -      NoStatus  -      60m
  no status from vap-status-controller
replica-limit.example.com  True   Ready     30m    60m

2 policies: 1 Ready, 1 without a status
",
    );
}

#[test]
fn long_messages_are_truncated_only_in_terminals() {
    let message = "漢字 👩‍🚀 word ".repeat(60);
    let since = "2026-03-01T11:58:30Z";
    let status = json!({"conditions": [
        condition("Ready", "Unknown", "Pending", &message, since),
        condition("Foreign", "Unknown", &"R".repeat(90), &message, since),
    ]});
    let report = StatusReport::from_policies(&[named("a", status)]);

    let text = render::table(&report, now(), terminal(80), false);
    let notes: Vec<_> = text.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(notes.len(), 3, "{text}");
    assert!(notes[2].ends_with('…'), "{text}");
    assert!(
        text.lines()
            .all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80),
        "{text}"
    );

    let piped = Terminal {
        width: None,
        color: false,
    };
    let text = render::table(&report, now(), piped, false);
    let joined = message.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.lines().any(|line| line.ends_with(&joined)), "{text}");
    assert!(
        text.starts_with("NAME  READY    REASON   FOREIGN  SINCE  AGE\n"),
        "{text}"
    );
}

#[test]
fn table_with_colors_has_same_columns() {
    let plain = render::table(&all(), now(), terminal(80), false);
    let painted = render::table(
        &all(),
        now(),
        Terminal {
            width: Some(80),
            color: true,
        },
        false,
    );
    assert!(painted.contains("\u{1b}[31mFalse\u{1b}[0m"), "{painted}");
    assert!(painted.contains("\u{1b}[32mTrue\u{1b}[0m"), "{painted}");
    assert!(painted.contains("\u{1b}[33mStale\u{1b}[0m"), "{painted}");
    let mut stripped = painted;
    for code in ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn untrusted_text_is_escaped_for_terminals() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}\r\n\u{9b}31m";
    let since = "2026-03-01T11:58:30Z";
    let mut policy = named(
        evil,
        json!({
            "observedGeneration": 1,
            "typeChecking": {"expressionWarnings": [{
                "fieldRef": evil,
                "warning": format!("{evil}\n | {evil}x\n | ...^\n | \n | \u{1b}^\n"),
            }]},
            "conditions": [
                condition("Ready", "False", evil, evil, since),
                condition(evil, evil, evil, evil, since),
            ],
        }),
    );
    policy.spec.as_mut().unwrap().failure_policy = Some(evil.to_owned());
    policy.spec.as_mut().unwrap().param_kind =
        serde_json::from_value(json!({"apiVersion": evil, "kind": evil})).unwrap();
    let report = StatusReport::from_policies(&[policy]);
    for width in [None, Some(40), Some(80), Some(200)] {
        let terminal = Terminal {
            width,
            color: false,
        };
        for text in [
            render::table(&report, now(), terminal, false),
            render::table(&report, now(), terminal, true),
            render::details(&report.policies[0], now(), terminal),
        ] {
            let order = text
                .chars()
                .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(order, None, "{text:?}");
        }
    }
}

#[test]
fn stale_and_missing_statuses_are_labeled() {
    let text = render::details(&PolicyReport::new(&stale()), now(), terminal(80));
    assert!(text.contains("\nReady:          Stale, Ready\n"), "{text}");
    assert!(
        text.contains("\nGeneration:     3 (the status is for generation 1)\n"),
        "{text}"
    );
    assert!(
        text.contains("\nstale: the status is for generation 1, but the policy has generation 3\n"),
        "{text}"
    );

    let text = render::details(&PolicyReport::new(&only_upstream()), now(), terminal(80));
    assert!(
        text.contains("\nno status from vap-status-controller; only kube-controller-manager"),
        "{text}"
    );
    assert!(
        text.contains("     | object.spec.replica <= 5\n     | ...........^\n"),
        "{text}"
    );
}

#[test]
fn long_source_excerpt_is_shown_around_caret() {
    let source = format!(
        "{} && object.spec.replica <= 5",
        "has(object.spec.replicas)".repeat(20)
    );
    let column = source.find(".replica <=").unwrap();
    let warning = format!(
        "apps/v1, Kind=Deployment: ERROR: <input>:1:{}: undefined field 'replica'\n | {source}\n | {}^",
        column + 1,
        ".".repeat(column)
    );
    let status = json!({"typeChecking": {"expressionWarnings": [
        {"fieldRef": "spec.validations[0].expression", "warning": warning},
    ]}});
    let text = render::details(&PolicyReport::new(&named("a", status)), now(), terminal(60));
    check_shape(&text, 60);
    let lines: Vec<_> = text.lines().collect();
    let at = lines.iter().position(|line| line.ends_with('^')).unwrap();
    let caret = lines[at].chars().count() - 1;
    let pointed: String = lines[at - 1].chars().skip(caret).take(8).collect();
    assert_eq!(pointed, ".replica", "{text}");
}

#[test]
fn state_of_policy_depends_on_condition_ready_and_its_generation() {
    let states: Vec<_> = all().policies.iter().map(|policy| policy.state).collect();
    assert_eq!(
        states,
        [
            State::NotReady,
            State::NoStatus,
            State::NotReady,
            State::Ready,
            State::Stale,
            State::NoStatus
        ]
    );
    // A condition without a generation has the generation of the status.
    let mut policy = sound();
    policy.metadata.generation = Some(2);
    for condition in policy.status.as_mut().unwrap().conditions.as_mut().unwrap() {
        condition.observed_generation = None;
    }
    assert_eq!(PolicyReport::new(&policy).state, State::Stale);
    policy.status.as_mut().unwrap().observed_generation = Some(2);
    assert_eq!(PolicyReport::new(&policy).state, State::Ready);
}

#[test]
fn exit_of_status_is_clean_only_if_all_policies_are_ready() {
    assert_eq!(StatusReport::from_policies(&[]).exit(), Exit::Clean);
    assert_eq!(StatusReport::from_policies(&[sound()]).exit(), Exit::Clean);
    for other in [
        misspelt(),
        only_upstream(),
        param_kind_missing(),
        stale(),
        untouched(),
    ] {
        assert_eq!(
            StatusReport::from_policies(&[sound(), other]).exit(),
            Exit::Findings
        );
    }
}

#[test]
fn excluded_policies_do_not_affect_exit_code_of_status_command() {
    let exclusion = Exclusion::new(&["untouched*".parse().unwrap()], None);
    let report = StatusReport::with_exclusion(&[sound(), untouched()], &exclusion);
    assert_eq!(report.policies.last().unwrap().state, State::Excluded);
    assert_eq!(report.exit(), Exit::Clean);
    let text = render::table(&report, now(), terminal(200), false);
    assert!(
        text.contains("untouched.example.com      -      Excluded "),
        "{text}"
    );
    assert!(
        text.contains("excluded from vap-status-controller"),
        "{text}"
    );
    assert!(
        text.ends_with("\n2 policies: 1 Ready, 1 excluded\n"),
        "{text}"
    );
    // An excluded policy counts if it has a status. A policy that is not excluded counts even without a status.
    let exclusion = Exclusion::new(&["*".parse().unwrap()], None);
    let report = StatusReport::with_exclusion(&[misspelt()], &exclusion);
    assert_eq!(report.exit(), Exit::Findings);
    let report = StatusReport::with_exclusion(&[untouched()], &Exclusion::default());
    assert_eq!(report.exit(), Exit::Findings);
}

#[test]
fn policies_without_current_status_are_evaluated_by_plugin() {
    let report = StatusReport::from_policies(&[sound(), stale(), untouched()]);
    let without_status: Vec<_> = report.without_current_status().map(str::to_owned).collect();
    assert_eq!(
        without_status,
        ["stale.example.com", "untouched.example.com"]
    );
    let conditions = misspelt().status.unwrap().conditions.unwrap();
    let status = DesiredStatus {
        observed_generation: 3,
        expression_warnings: Vec::new(),
        n_type_warnings: 0,
        conditions,
        has_retained: false,
    };
    let report = report.with_plugin_statuses(&[("stale.example.com".to_owned(), status)].into());
    assert_eq!(report.summary.checked_by_plugin, 1);
    assert_eq!((report.summary.ready, report.summary.not_ready), (1, 1));
    let judged = &report.policies[1];
    assert_eq!(
        (judged.state, judged.written_state),
        (State::NotReady, State::Stale)
    );
    assert_eq!(judged.ready().unwrap().last_transition_time, None);
    let text = render::table(&report, now(), terminal(200), false);
    assert!(text.contains("  BY "), "{text}");
    assert!(text.contains("ExpressionWarnings  kubectl-vap  "), "{text}");
    assert!(text.contains("Ready               controller   "), "{text}");
    assert!(
        text.contains("\n1 policy was evaluated by kubectl vap, "),
        "{text}"
    );
    // After a failed read, the exit status is that of an error, not that of a finding.
    let mut report = report;
    report.gaps.push("bindings".to_owned());
    assert_eq!(report.exit(), Exit::Failed);
}

/// The structure of `-o json` is a stable interface. See `StatusReport`.
#[test]
fn json_has_stable_structure() {
    let report =
        serde_json::to_value(StatusReport::from_policies(&[misspelt(), untouched()])).unwrap();
    let message = "1 expression has warnings: spec.validations[0].expression";
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "False", "reason": "ExpressionWarnings", "message": message,
            "lastTransitionTime": "2026-03-01T11:51:00Z", "observedGeneration": 1,
        })
    };
    let expect = json!({
        "apiVersion": "cli.vap-status.dev/v1alpha1",
        "kind": "StatusReport",
        "kubernetesVersion": null, "controller": null,
        "summary": {
            "total": 2, "ready": 0, "notReady": 1, "unknown": 0, "stale": 0, "noStatus": 1,
            "excluded": 0, "checkedByPlugin": 0,
        },
        "policies": [
            {
                "kind": "ValidatingAdmissionPolicy", "name": "misspelt-field.example.com", "state": "NotReady",
                "checkedBy": "controller", "writtenState": "NotReady",
                "generation": 1, "observedGeneration": 1, "created": "2026-03-01T11:00:00Z",
                "failurePolicy": "Fail", "paramKind": null, "typeCheckingCompleted": true,
                "conditions": [condition("Ready"), condition("TypeChecked")],
                "expressionWarnings": [
                    {"fieldRef": "spec.validations[0].expression", "warning": WARNING},
                ],
            },
            {
                "kind": "ValidatingAdmissionPolicy", "name": "untouched.example.com", "state": "NoStatus",
                "checkedBy": null, "writtenState": "NoStatus",
                "generation": 1, "observedGeneration": null, "created": "2026-03-01T11:00:00Z",
                "failurePolicy": "Fail", "paramKind": null, "typeCheckingCompleted": false,
                "conditions": [], "expressionWarnings": [],
            },
        ],
    });
    assert_eq!(report, expect);
}
