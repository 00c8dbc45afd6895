//! What is computed from which facts, as tables.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, TypeChecking, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus, Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;

use super::bindings::{BindingFacts, BindingsState};
use super::compute::{
    Checked, Compiled, DesiredStatus, Matched, MissingParams, NotServed, Observed, ParamKindState,
    ParamsState, Typed, Types, compute,
};
use super::condition::{self, ConditionStatus, ConditionType, Reason, condition, merge};
use super::message;
use super::probes::{ProbeFacts, ProbesState};
use crate::policy::compile::{CompileFinding, CompileFindingKind};
use crate::policy::matching::{MatchedResource, Matches, UnservedResource};
use crate::policy::typecheck::{TypeCheck, UncheckedKind, Warning, WildcardKinds};
use crate::schema::{Gvk, Gvr};

mod warnings;

const GENERATION: i64 = 3;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Owned facts of a policy that is sound in all respects; a test spoils what it is about.
struct Facts {
    policy: ValidatingAdmissionPolicy,
    findings: Vec<CompileFinding>,
    matches: Matches,
    types: TypeCheck,
    waiting: Vec<(String, String)>,
    broken_off: bool,
    params: ParamKindState,
    bindings: BindingsState,
    probes: ProbesState,
    ready_requires: BTreeSet<ConditionType>,
}

impl Facts {
    fn sound() -> Self {
        Self {
            policy: ValidatingAdmissionPolicy {
                metadata: ObjectMeta {
                    name: Some("policy".into()),
                    generation: Some(GENERATION),
                    ..ObjectMeta::default()
                },
                spec: Some(ValidatingAdmissionPolicySpec::default()),
                status: None,
            },
            findings: Vec::new(),
            matches: Matches {
                resources: vec![MatchedResource {
                    gvr: Gvr::new("apps", "v1", "deployments"),
                    gvk: deployment(),
                    by_wildcard: false,
                }],
                ..Matches::default()
            },
            types: TypeCheck {
                checked: vec![deployment()],
                ..TypeCheck::default()
            },
            waiting: Vec::new(),
            broken_off: false,
            params: ParamKindState::NotRequired,
            bindings: BindingsState::Known(vec![BindingFacts {
                name: "binding".into(),
                actions: vec!["Deny".into()],
                ..BindingFacts::default()
            }]),
            probes: ProbesState::Known(Vec::new()),
            ready_requires: ConditionType::COUNTING.into(),
        }
    }

    fn with(mut self, spoil: impl FnOnce(&mut Self)) -> Self {
        spoil(&mut self);
        self
    }

    fn ignoring(self) -> Self {
        self.with(|facts| {
            facts.policy.spec.as_mut().unwrap().failure_policy = Some("Ignore".into());
        })
    }

    fn compute(&self, now: Timestamp) -> DesiredStatus {
        let outcome = Typed::from(self.types.clone());
        let matched = Matched::from(self.matches.clone());
        let types = Types {
            outcome: &outcome,
            waiting: &self.waiting,
        };
        let compiled = Compiled {
            findings: &self.findings,
            n_expressions: 4,
        };
        compute(
            &Observed {
                policy: &self.policy,
                compiled: checked(self.broken_off, compiled),
                matches: checked(self.broken_off, &matched),
                types: checked(self.broken_off, types),
                params: self.params.clone(),
                bindings: self.bindings.clone(),
                probes: self.probes.clone(),
                ready_requires: &self.ready_requires,
            },
            now,
        )
    }

    /// These facts, with the status that `before` leads to already in place.
    fn after(mut self, before: &Self, now: Timestamp) -> Self {
        let desired = before.compute(now);
        self.policy.status = Some(status_of(&desired));
        self
    }
}

fn checked<T>(broken_off: bool, value: T) -> Checked<T> {
    if broken_off {
        Checked::BrokenOff
    } else {
        Checked::Done(value)
    }
}

/// The status that a cluster has once `desired` was applied.
fn status_of(desired: &DesiredStatus) -> ValidatingAdmissionPolicyStatus {
    ValidatingAdmissionPolicyStatus {
        conditions: Some(desired.conditions.clone()),
        observed_generation: Some(desired.observed_generation),
        type_checking: Some(TypeChecking {
            expression_warnings: Some(desired.expression_warnings.clone()),
        }),
    }
}

fn deployment() -> Gvk {
    Gvk::new("apps", "v1", "Deployment")
}

fn limit() -> Gvk {
    Gvk::new("rules.example.com", "v1", "ReplicaLimit")
}

fn finding(kind: CompileFindingKind, message: &str) -> CompileFinding {
    CompileFinding {
        field_ref: "spec.validations[0].expression".into(),
        kind,
        message: message.into(),
    }
}

fn warning(field_ref: &str, text: &str) -> Warning {
    Warning {
        field_ref: field_ref.into(),
        warning: text.into(),
    }
}

fn unchecked(kind: &str) -> UncheckedKind {
    UncheckedKind {
        gvk: Gvk::new("apps", "v1", kind),
        reason: "no schema".into(),
        unavailable: false,
    }
}

fn get(desired: &DesiredStatus, type_: ConditionType) -> &Condition {
    condition::find(&desired.conditions, type_).unwrap()
}

/// Computes and compares `status reason` of one condition, and its message.
#[track_caller]
fn check(facts: &Facts, type_: ConditionType, expect: &str, message: &str) {
    let desired = facts.compute(at(100));
    let condition = get(&desired, type_);
    assert_eq!(format!("{} {}", condition.status, condition.reason), expect);
    assert_eq!(condition.message, message);
}

#[test]
fn a_sound_policy_is_ready() {
    let desired = Facts::sound().compute(at(100));
    assert_eq!(desired.observed_generation, GENERATION);
    assert_eq!(desired.expression_warnings, []);
    let summary: Vec<String> = desired
        .conditions
        .iter()
        .map(|condition| {
            format!(
                "{} {} {}",
                condition.type_, condition.status, condition.reason
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            "Ready True Ready",
            "Compiled True AllExpressionsCompile",
            "ResourcesMatched True ResourcesServed",
            "ParamsResolved True ParamsNotRequired",
            "TypeChecked True NoWarnings",
            "ProbesPassed Unknown NoProbes",
            "Bound True BindingsFound",
        ]
    );
    for condition in &desired.conditions {
        assert_eq!(condition.observed_generation, Some(GENERATION));
        assert_eq!(condition.last_transition_time.0, at(100));
    }
}

#[test]
fn compiled_false_names_the_field_and_the_consequence() {
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
        "does not compile, with failurePolicy Fail a request that reaches it is denied: \
         spec.validations[0].expression (and 1 more): undeclared reference to 'foo'",
    );
    check(
        &facts.ignoring(),
        ConditionType::Compiled,
        "False CompilationFailed",
        "does not compile, with failurePolicy Ignore a request that reaches it is not checked by it: \
         spec.validations[0].expression (and 1 more): undeclared reference to 'foo'",
    );
}

#[test]
fn compiled_false_when_unsafe() {
    let facts = Facts::sound()
        .with(|facts| facts.findings = vec![finding(CompileFindingKind::Unsafe, "panics")]);
    check(
        &facts,
        ConditionType::Compiled,
        "False UnsafeExpression",
        "accepted by the API server, which cannot evaluate it safely: \
         spec.validations[0].expression: panics",
    );
}

#[test]
fn unsupported_is_unknown_and_does_not_stop_ready() {
    let facts = Facts::sound()
        .with(|facts| facts.findings = vec![finding(CompileFindingKind::Unsupported, "odd()")]);
    check(
        &facts,
        ConditionType::Compiled,
        "Unknown UnsupportedExpression",
        "uses what vap-status-controller cannot judge: spec.validations[0].expression: odd()",
    );
    check(
        &facts,
        ConditionType::Ready,
        "True Ready",
        "nothing wrong was found; cannot be told: Compiled (UnsupportedExpression)",
    );
}

#[test]
fn a_check_that_broke_off_is_unknown_and_pending() {
    let facts = Facts::sound().with(|facts| facts.broken_off = true);
    let desired = facts.compute(at(1));
    for type_ in [
        ConditionType::Compiled,
        ConditionType::TypeChecked,
        ConditionType::ResourcesMatched,
    ] {
        assert_eq!(get(&desired, type_).status, "Unknown");
        assert_eq!(get(&desired, type_).reason, "InternalError");
    }
    assert_eq!(get(&desired, ConditionType::Ready).status, "Unknown");
    assert_eq!(get(&desired, ConditionType::Ready).reason, "Pending");
    // An earlier verdict does not cover it up.
    let desired = facts.after(&Facts::sound(), at(1)).compute(at(2));
    assert_eq!(
        get(&desired, ConditionType::Compiled).reason,
        "InternalError"
    );
}

#[test]
fn no_served_resource_means_it_never_runs() {
    let facts = Facts::sound().with(|facts| {
        facts.matches = Matches {
            unserved: vec![UnservedResource {
                field_ref: "spec.matchConstraints.resourceRules[0]".into(),
                rule: "apps/v1 deployment".into(),
                suggestion: Some("deployments".into()),
            }],
            ..Matches::default()
        };
        facts.types = TypeCheck::default();
    });
    let text =
        "nothing serves apps/v1 deployment (did you mean deployments?); the policy never runs";
    check(
        &facts,
        ConditionType::ResourcesMatched,
        "False NoServedResources",
        text,
    );
    check(
        &facts,
        ConditionType::Ready,
        "False NoServedResources",
        text,
    );
    check(
        &facts,
        ConditionType::TypeChecked,
        "Unknown NoTypesToCheck",
        "the rules name no kind whose objects could be checked",
    );
    let without_rules = Facts::sound().with(|facts| facts.matches = Matches::default());
    check(
        &without_rules,
        ConditionType::ResourcesMatched,
        "False NoServedResources",
        "no rule matches a served resource; the policy never runs",
    );
}

#[test]
fn what_wildcards_match_is_not_counted() {
    let wildcard = |n: usize| MatchedResource {
        gvr: Gvr::new("example.com", "v1", format!("widgets{n}")),
        gvk: Gvk::new("example.com", "v1", "Widget"),
        by_wildcard: true,
    };
    let facts = |n_named: usize, n_by_wildcard: usize| {
        Facts::sound().with(|facts| {
            facts.matches.resources.truncate(n_named);
            facts
                .matches
                .resources
                .extend((0..n_by_wildcard).map(wildcard));
        })
    };
    for (facts, text) in [
        (facts(1, 0), "the rules match 1 resource"),
        (facts(0, 68), "the rules match resources by wildcards"),
        (
            facts(1, 68),
            "the rules match 1 resource by name and others by wildcards",
        ),
    ] {
        check(
            &facts,
            ConditionType::ResourcesMatched,
            "True ResourcesServed",
            text,
        );
    }
    // One more or less changes nothing, and costs no write.
    assert_eq!(facts(1, 68).compute(at(1)), facts(1, 67).compute(at(1)));
}

#[test]
fn some_unserved_resources_are_named() {
    let facts = Facts::sound().with(|facts| {
        facts.matches.unserved = vec![UnservedResource {
            field_ref: "spec.matchConstraints.resourceRules[0]".into(),
            rule: "apps/v1 statefulset".into(),
            suggestion: None,
        }];
    });
    check(
        &facts,
        ConditionType::ResourcesMatched,
        "True ResourcesServed",
        "the rules match 1 resource; not served: apps/v1 statefulset",
    );
}

/// The schema of the one kind cannot be had now.
fn timed_out(facts: &mut Facts) {
    facts.waiting = vec![("apps/v1".into(), "timeout".into())];
    facts.types = TypeCheck {
        unchecked: vec![UncheckedKind {
            gvk: deployment(),
            reason: "timeout".into(),
            unavailable: true,
        }],
        ..TypeCheck::default()
    };
}

fn undiscovered(facts: &mut Facts) {
    facts.matches = Matches {
        incomplete: vec![("metrics.k8s.io/v1".into(), "503".into())],
        ..Matches::default()
    };
    facts.types = TypeCheck::default();
}

#[test]
fn incomplete_discovery_is_unknown() {
    let facts = Facts::sound().with(undiscovered);
    check(
        &facts,
        ConditionType::ResourcesMatched,
        "Unknown DiscoveryIncomplete",
        "whether the rules match anything cannot be told, not discovered: metrics.k8s.io/v1 (503)",
    );
    check(
        &facts,
        ConditionType::Ready,
        "Unknown Pending",
        "ResourcesMatched is not known yet: whether the rules match anything cannot be told, not \
         discovered: metrics.k8s.io/v1 (503)",
    );
}

#[test]
fn what_cannot_be_told_now_does_not_overwrite_what_was_found() {
    let sound = Facts::sound();
    let before = sound.compute(at(5));
    let waiting = Facts::sound()
        .with(|facts| {
            undiscovered(facts);
            timed_out(facts);
        })
        .after(&sound, at(5));
    let now = waiting.compute(at(50));
    assert_eq!(now, before);
    assert!(now.is_met_by(waiting.policy.status.as_ref()));
}

#[test]
fn a_group_that_cannot_be_discovered_changes_no_message() {
    let partly = || {
        Facts::sound().with(|facts| {
            facts.matches.incomplete = vec![("metrics.k8s.io/v1".into(), "503".into())];
        })
    };
    let before = Facts::sound().compute(at(5));
    let now = partly().after(&Facts::sound(), at(5)).compute(at(50));
    assert_eq!(now, before);
    // But what was wrong and is right by now is said to be, whatever else cannot be discovered.
    let unserved = Facts::sound().with(|facts| {
        facts.matches = Matches::default();
        facts.types = TypeCheck::default();
    });
    let warned = Facts::sound().with(|facts| {
        facts.types.warnings = vec![warning("spec.validations[0].expression", "x")];
    });
    for wrong in [unserved, warned] {
        assert_eq!(
            get(&wrong.compute(at(1)), ConditionType::Ready).status,
            "False"
        );
        let now = partly().after(&wrong, at(1)).compute(at(2));
        assert_eq!(get(&now, ConditionType::Ready).status, "True");
        assert_eq!(now.expression_warnings, []);
    }
}

#[test]
fn a_standing_verdict_covers_its_own_generation_only() {
    let mut waiting = Facts::sound().with(timed_out).after(&Facts::sound(), at(5));
    waiting.policy.metadata.generation = Some(GENERATION + 1);
    let desired = waiting.compute(at(50));
    assert_eq!(
        get(&desired, ConditionType::TypeChecked).reason,
        "SchemaUnavailable"
    );
    assert_eq!(get(&desired, ConditionType::Ready).status, "Unknown");
    assert_eq!(
        get(&desired, ConditionType::Ready).last_transition_time.0,
        at(50)
    );
    assert_eq!(
        get(&desired, ConditionType::Compiled)
            .last_transition_time
            .0,
        at(5)
    );
}

#[test]
fn a_standing_verdict_keeps_its_warnings() {
    let warned = Facts::sound().with(|facts| {
        facts.types.warnings = vec![warning("spec.validations[0].expression", "text\n")];
    });
    let waiting = Facts::sound().with(timed_out).after(&warned, at(5));
    let desired = waiting.compute(at(9));
    assert_eq!(desired, warned.compute(at(5)));
    assert_eq!(desired.expression_warnings.len(), 1);
}

#[test]
fn schemas_that_cannot_be_had_are_unknown() {
    let facts = Facts::sound().with(timed_out);
    check(
        &facts,
        ConditionType::TypeChecked,
        "Unknown SchemaUnavailable",
        "no schema of a matched kind could be used; not checked: apps/v1 Deployment (timeout)",
    );
    assert_eq!(
        get(&facts.compute(at(1)), ConditionType::Ready).reason,
        "Pending"
    );
}

#[test]
fn a_schema_that_can_never_be_used_does_not_hold_up_ready() {
    let facts = Facts::sound().with(|facts| {
        timed_out(facts);
        facts.waiting.clear();
    });
    let desired = facts.compute(at(1));
    assert_eq!(
        get(&desired, ConditionType::TypeChecked).reason,
        "SchemaUnavailable"
    );
    assert_eq!(get(&desired, ConditionType::Ready).status, "True");
}

#[test]
fn what_can_be_checked_counts_while_the_rest_is_waited_for() {
    // Nothing stands for this generation: what is known is said.
    let partly = || {
        Facts::sound().with(|facts| {
            timed_out(facts);
            facts.types.checked = vec![Gvk::new("apps", "v1", "StatefulSet")];
        })
    };
    check(
        &partly(),
        ConditionType::TypeChecked,
        "True PartiallyChecked",
        "no warnings; 1 of 2 kinds checked; not checked: apps/v1 Deployment (timeout)",
    );
    assert_eq!(
        get(&partly().compute(at(1)), ConditionType::Ready).status,
        "True"
    );
    // A complete verdict is not replaced by a partial one, unless that finds something wrong.
    let desired = partly().after(&Facts::sound(), at(1)).compute(at(2));
    assert_eq!(
        get(&desired, ConditionType::TypeChecked).reason,
        "NoWarnings"
    );
    let desired = partly()
        .with(|facts| facts.types.warnings = vec![warning("spec.validations[0].expression", "x")])
        .after(&Facts::sound(), at(1))
        .compute(at(2));
    assert_eq!(
        get(&desired, ConditionType::TypeChecked).reason,
        "ExpressionWarnings"
    );
    assert_eq!(desired.expression_warnings.len(), 1);
}

#[test]
fn type_checked_says_its_coverage() {
    let table: [(usize, usize, usize, &str, &str); 6] = [
        // warnings, checked, unchecked
        (0, 1, 0, "True NoWarnings", "no warnings; 1 kind checked"),
        (0, 2, 0, "True NoWarnings", "no warnings; 2 kinds checked"),
        (
            0,
            37,
            4,
            "True PartiallyChecked",
            "no warnings; 37 of 41 kinds checked; not checked: apps/v1 Odd0 (no schema), apps/v1 \
             Odd1 (no schema), apps/v1 Odd2 (no schema), apps/v1 Odd3 (no schema)",
        ),
        (
            0,
            0,
            1,
            "Unknown SchemaUnavailable",
            "no schema of a matched kind could be used; not checked: apps/v1 Odd0 (no schema)",
        ),
        (
            1,
            2,
            0,
            "False ExpressionWarnings",
            "spec.validations[0].expression may fail when evaluated, with failurePolicy Fail a \
             request that reaches it is denied; 2 kinds checked",
        ),
        (
            3,
            1,
            1,
            "False ExpressionWarnings",
            "spec.validations[0].expression and 2 more may fail when evaluated, with failurePolicy \
             Fail a request that reaches it is denied; 1 of 2 kinds \
             checked; not checked: apps/v1 Odd0 (no schema)",
        ),
    ];
    for (n_warnings, n_checked, n_unchecked, expect, text) in table {
        let facts = Facts::sound().with(|facts| {
            facts.types = TypeCheck {
                warnings: (0..n_warnings)
                    .map(|n| warning(&format!("spec.validations[{n}].expression"), "text"))
                    .collect(),
                checked: (0..n_checked)
                    .map(|n| Gvk::new("apps", "v1", format!("Kind{n}")))
                    .collect(),
                unchecked: (0..n_unchecked)
                    .map(|n| unchecked(&format!("Odd{n}")))
                    .collect(),
                ..TypeCheck::default()
            };
        });
        check(&facts, ConditionType::TypeChecked, expect, text);
        assert_eq!(facts.compute(at(1)).expression_warnings.len(), n_warnings);
    }
}

#[test]
fn type_checked_says_what_became_of_wildcards() {
    let table: [(usize, usize, usize, &str, &str); 4] = [
        // by name, by wildcards: checked, unchecked
        (
            0,
            40,
            0,
            "True NoWarnings",
            "no warnings; all kinds matched by wildcards checked",
        ),
        (
            1,
            40,
            0,
            "True NoWarnings",
            "no warnings; 1 kind and all kinds matched by wildcards checked",
        ),
        (
            2,
            37,
            1,
            "True PartiallyChecked",
            "no warnings; 2 kinds and 37 of 38 kinds matched by wildcards checked; not checked: \
             apps/v1 Odd0 (no schema)",
        ),
        (
            0,
            0,
            1,
            "Unknown SchemaUnavailable",
            "no schema of a matched kind could be used; not checked: apps/v1 Odd0 (no schema)",
        ),
    ];
    let kinds = |n: usize, name: &str| -> Vec<Gvk> {
        (0..n)
            .map(|n| Gvk::new("apps", "v1", format!("{name}{n}")))
            .collect()
    };
    for (n_named, n_checked, n_unchecked, expect, text) in table {
        let facts = Facts::sound().with(|facts| {
            facts.types = TypeCheck {
                checked: kinds(n_named, "Kind"),
                by_wildcard: WildcardKinds {
                    checked: kinds(n_checked, "Wild"),
                    unchecked: (0..n_unchecked)
                        .map(|n| unchecked(&format!("Odd{n}")))
                        .collect(),
                },
                ..TypeCheck::default()
            };
        });
        check(&facts, ConditionType::TypeChecked, expect, text);
    }
}

#[test]
fn a_test_in_vain_is_not_said_to_fail() {
    let vain =
        "apps/v1, Kind=Deployment: WARNING: <input>:1:4: undefined field 'x'\n | has(object.x)";
    let facts = Facts::sound().with(|facts| {
        facts.types.warnings = vec![warning("spec.validations[0].expression", vain)];
    });
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[0].expression may not do what is meant (undefined field 'x'); 1 kind checked",
    );
    let failing = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'y'\n | object.y";
    let facts = Facts::sound().with(|facts| {
        facts.types.warnings = vec![
            warning("spec.validations[0].expression", vain),
            warning("spec.validations[1].expression", failing),
        ];
    });
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[1].expression and 1 more may fail when evaluated (undefined field 'y' on \
         apps/v1 Deployment), with failurePolicy Fail a request that reaches it is denied; 1 kind checked",
    );
}

#[test]
fn params_without_schema_and_unknown_groups_are_gaps() {
    let facts = Facts::sound().with(|facts| {
        facts.types.params = Some((limit(), false));
        facts.matches.incomplete = vec![("metrics.k8s.io/v1".into(), "503".into())];
    });
    check(
        &facts,
        ConditionType::TypeChecked,
        "True PartiallyChecked",
        "no warnings; 1 kind checked; not checked: params of kind rules.example.com/v1 ReplicaLimit \
         (no schema), metrics.k8s.io/v1 (not discovered)",
    );
    let typed = Facts::sound().with(|facts| facts.types.params = Some((limit(), true)));
    check(
        &typed,
        ConditionType::TypeChecked,
        "True NoWarnings",
        "no warnings; 1 kind checked",
    );
}

#[test]
fn params_not_found_state_the_consequence() {
    let facts = Facts::sound().with(|facts| {
        facts.params = ParamKindState::NotFound {
            gvk: limit(),
            similar: Vec::new(),
        };
    });
    let denied = "nothing serves paramKind rules.example.com/v1 ReplicaLimit and no \
                  CustomResourceDefinition defines it; with failurePolicy Fail every request that \
                  the rules match is denied once the policy has a binding (\"failed to find \
                  resource referenced by paramKind: 'rules.example.com/v1, Kind=ReplicaLimit'\")";
    check(
        &facts,
        ConditionType::ParamsResolved,
        "False ParamKindNotFound",
        denied,
    );
    check(
        &facts,
        ConditionType::Ready,
        "False ParamKindNotFound",
        denied,
    );
    check(
        &facts.ignoring().with(|facts| {
            facts.params = ParamKindState::NotFound {
                gvk: limit(),
                similar: vec!["rules.example.com/v1 ReplicaLimits".into()],
            };
        }),
        ConditionType::ParamsResolved,
        "False ParamKindNotFound",
        "nothing serves paramKind rules.example.com/v1 ReplicaLimit and no \
         CustomResourceDefinition defines it (did you mean rules.example.com/v1 ReplicaLimits?); \
         with failurePolicy Ignore no request is checked (\"failed to find resource referenced by \
         paramKind: 'rules.example.com/v1, Kind=ReplicaLimit'\")",
    );
}

#[test]
fn params_not_served_say_why() {
    let crd = || "replicalimits.rules.example.com".to_owned();
    let table = [
        (
            NotServed::OtherVersions(vec!["rules.example.com/v2".into()]),
            "ReplicaLimit is served as rules.example.com/v2",
        ),
        (
            NotServed::NoVersion { crd: crd() },
            "CustomResourceDefinition replicalimits.rules.example.com serves no version",
        ),
        (
            NotServed::NotEstablished {
                crd: crd(),
                reason: None,
            },
            "CustomResourceDefinition replicalimits.rules.example.com is not established",
        ),
        (
            NotServed::NotEstablished {
                crd: crd(),
                reason: Some("name taken".into()),
            },
            "CustomResourceDefinition replicalimits.rules.example.com is not established (name taken)",
        ),
        (
            NotServed::NotListed { crd: crd() },
            "CustomResourceDefinition replicalimits.rules.example.com is established, but the API \
             server does not list it",
        ),
    ];
    for (why, text) in table {
        let facts = Facts::sound()
            .with(|facts| facts.params = ParamKindState::NotServed { gvk: limit(), why });
        let desired = facts.compute(at(1));
        let condition = get(&desired, ConditionType::ParamsResolved);
        assert_eq!(condition.status, "False");
        assert_eq!(condition.reason, "ParamKindNotServed");
        let start =
            format!("paramKind rules.example.com/v1 ReplicaLimit is not served: {text}; with");
        assert!(
            condition.message.starts_with(&start),
            "{}",
            condition.message
        );
    }
}

fn params_are(state: ParamsState) -> Facts {
    Facts::sound().with(|facts| facts.params = ParamKindState::Served(limit(), state))
}

fn missing(denies: bool) -> MissingParams {
    MissingParams {
        binding: "b".into(),
        what: "limits in namespace default".into(),
        denies,
    }
}

#[test]
fn params_that_bindings_refer_to() {
    let examined = |n_found, missing: &[MissingParams]| ParamsState::Examined {
        n_found,
        missing: missing.to_vec(),
    };
    let table = [
        (
            ParamsState::NotReferred,
            "True ParamKindServed",
            "; no binding refers to params of it",
        ),
        (
            ParamsState::Unread,
            "Unknown Pending",
            "; the params were not read yet",
        ),
        (
            ParamsState::NotPermitted("grant it".into()),
            "Unknown NotPermitted",
            "; whether the params of bindings exist cannot be told: grant it",
        ),
        (
            examined(1, &[]),
            "True ParamsFound",
            ", and the params that bindings refer to exist",
        ),
        (
            examined(1, &[missing(true)]),
            "False ParamsNotFound",
            ", but params do not exist: limits in namespace default by binding b; \
             parameterNotFoundAction Deny denies every request that the binding matches",
        ),
        (
            examined(0, &[missing(false)]),
            "True ParamKindServed",
            "; parameterNotFoundAction Allow passes requests over, as these do not exist: limits in \
             namespace default by binding b",
        ),
    ];
    for (state, expect, text) in table {
        check(
            &params_are(state),
            ConditionType::ParamsResolved,
            expect,
            &format!("paramKind rules.example.com/v1 ReplicaLimit is served{text}"),
        );
    }
}

#[test]
fn bindings_enforce_or_do_not() {
    let bound = |bindings: &[BindingFacts]| {
        let bindings = BindingsState::Known(bindings.to_vec());
        Facts::sound().with(|facts| facts.bindings = bindings)
    };
    let binding = |action: &str| BindingFacts {
        name: "b".into(),
        actions: vec![action.into()],
        ..BindingFacts::default()
    };
    let check = |facts: &Facts, expect, text| check(facts, ConditionType::Bound, expect, text);
    check(
        &bound(&[]),
        "False NoBindings",
        "no ValidatingAdmissionPolicyBinding refers to the policy; it is not enforced",
    );
    check(
        &bound(&[binding("Deny")]),
        "True BindingsFound",
        "bound by b (Deny)",
    );
    let mut audits = binding("Audit");
    audits.gives_no_params = true;
    check(
        &bound(&[audits]),
        "True BindingsFound",
        "bound by b (Audit); none of them denies requests; params is null by b, without paramRef",
    );
    let mut broken = binding("Deny");
    broken.problem = Some("paramRef has both name and selector".into());
    check(
        &bound(&[binding("Deny"), broken.clone()]),
        "False BindingsInvalid",
        "the API server cannot use b (paramRef has both name and selector); with failurePolicy Fail \
         every request that it matches is denied",
    );
    // An unbound policy is staged, not broken.
    for facts in [bound(&[]), bound(&[broken])] {
        let desired = facts.compute(at(1));
        let ready = condition::find(&desired.conditions, ConditionType::Ready).unwrap();
        assert_eq!(ready.status, "True");
    }
}

#[test]
fn probes_decide_about_ready() {
    let probed = |failed: &[(&str, &str)], pending: &[(&str, &str)]| {
        let own = |cases: &[(&str, &str)]| -> Vec<(String, String)> {
            let own = |(case, why): &(&str, &str)| ((*case).to_owned(), (*why).to_owned());
            cases.iter().map(own).collect()
        };
        let probes = ProbesState::Known(vec![ProbeFacts {
            name: "p".into(),
            n_cases: 3,
            failed: own(failed),
            pending: own(pending),
        }]);
        Facts::sound().with(|facts| facts.probes = probes)
    };
    let ready = |facts: &Facts| {
        let desired = facts.compute(at(1));
        let ready = condition::find(&desired.conditions, ConditionType::Ready).unwrap();
        format!("{} {}", ready.status, ready.reason)
    };
    let none = Facts::sound();
    check(
        &none,
        ConditionType::ProbesPassed,
        "Unknown NoProbes",
        "no PolicyProbe refers to the policy",
    );
    assert_eq!(ready(&none), "True Ready");
    let passed = probed(&[], &[]);
    check(
        &passed,
        ConditionType::ProbesPassed,
        "True ProbesPassed",
        "3 cases of 1 probe passed",
    );
    assert_eq!(ready(&passed), "True Ready");
    let failed = probed(
        &[("six", "expected Deny, got Allow"), ("x", "y")],
        &[("z", "w")],
    );
    check(
        &failed,
        ConditionType::ProbesPassed,
        "False ProbesFailed",
        "2 of 3 cases failed: p, \"six\": expected Deny, got Allow (and 1 more)",
    );
    assert_eq!(ready(&failed), "False ProbesFailed");
    let pending = probed(&[], &[("z", "no params yet")]);
    check(
        &pending,
        ConditionType::ProbesPassed,
        "Unknown ProbesPending",
        "1 of 3 cases could not be evaluated: p, \"z\": no params yet",
    );
    assert_eq!(ready(&pending), "Unknown Pending");
}

#[test]
fn an_undiscovered_kind_is_not_judged() {
    let facts = Facts::sound().with(|facts| {
        facts.params = ParamKindState::Undiscovered {
            gvk: limit(),
            reason: "503 unavailable".into(),
        };
    });
    check(
        &facts,
        ConditionType::ParamsResolved,
        "Unknown DiscoveryIncomplete",
        "whether paramKind rules.example.com/v1 ReplicaLimit is served cannot be told: \
         rules.example.com/v1 could not be discovered: 503 unavailable",
    );
}

#[test]
fn ready_reports_the_first_failing_condition_that_counts() {
    use ConditionType::{Compiled, ParamsResolved, ResourcesMatched, TypeChecked};
    let spoilt = |requires: &[ConditionType]| {
        Facts::sound().with(|facts| {
            facts.findings = vec![finding(CompileFindingKind::Failed, "bad")];
            facts.matches = Matches::default();
            facts.params = ParamKindState::NotFound {
                gvk: limit(),
                similar: Vec::new(),
            };
            facts.types.warnings = vec![warning("spec.validations[0].expression", "text")];
            facts.ready_requires = requires.iter().copied().collect();
        })
    };
    let table: [(&[ConditionType], &str); 6] = [
        (
            &[TypeChecked, ParamsResolved, ResourcesMatched, Compiled],
            "False CompilationFailed",
        ),
        (
            &[TypeChecked, ParamsResolved, ResourcesMatched],
            "False NoServedResources",
        ),
        (&[TypeChecked, ParamsResolved], "False ParamKindNotFound"),
        (&[TypeChecked], "False ExpressionWarnings"),
        (&[Compiled], "False CompilationFailed"),
        (&[], "True Ready"),
    ];
    for (requires, expect) in table {
        let desired = spoilt(requires).compute(at(1));
        let ready = get(&desired, ConditionType::Ready);
        assert_eq!(
            format!("{} {}", ready.status, ready.reason),
            expect,
            "{requires:?}"
        );
    }
}

#[test]
fn computing_twice_changes_nothing() {
    let spoilt = || {
        Facts::sound().with(|facts| {
            facts.types.warnings = vec![warning("spec.validations[0].expression", "text")];
            facts.params = ParamKindState::Served(limit(), ParamsState::NotReferred);
        })
    };
    for facts in [Facts::sound, spoilt] {
        let first = facts().compute(at(10));
        let again = facts().after(&facts(), at(10));
        let second = again.compute(at(99));
        assert_eq!(first, second);
        assert!(second.is_met_by(again.policy.status.as_ref()));
        assert!(!second.is_met_by(None));
    }
}

#[test]
fn a_status_is_met_only_when_all_of_it_is() {
    let desired = Facts::sound().compute(at(10));
    let spoilers: [fn(&mut ValidatingAdmissionPolicyStatus); 6] = [
        |status| status.observed_generation = Some(1),
        |status| status.type_checking = None,
        |status| {
            status.type_checking.as_mut().unwrap().expression_warnings =
                Some(vec![ExpressionWarning {
                    field_ref: "f".into(),
                    warning: "w".into(),
                }]);
        },
        |status| status.conditions = None,
        |status| status.conditions.as_mut().unwrap().truncate(4),
        |status| status.conditions.as_mut().unwrap()[2].message = "other".into(),
    ];
    for spoil in spoilers {
        let mut live = status_of(&desired);
        assert!(desired.is_met_by(Some(&live)));
        spoil(&mut live);
        assert!(!desired.is_met_by(Some(&live)), "{live:?}");
    }
    // No warnings may be an empty list or none at all; conditions of others do not matter.
    let mut live = status_of(&desired);
    live.type_checking.as_mut().unwrap().expression_warnings = None;
    live.conditions.as_mut().unwrap().insert(0, of_others());
    assert!(desired.is_met_by(Some(&live)));
}

fn of_others() -> Condition {
    Condition {
        type_: "example.com/Reviewed".into(),
        status: "True".into(),
        reason: "Reviewed".into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(at(1)),
    }
}

#[test]
fn merge_moves_the_time_with_the_status_only() {
    let make = |status, reason, message: &str, generation, second| {
        condition(
            ConditionType::Compiled,
            status,
            reason,
            message,
            generation,
            at(second),
        )
    };
    let old = make(
        ConditionStatus::True,
        Reason::AllExpressionsCompile,
        "a",
        1,
        10,
    );
    let table = [
        // The same again, another message, another generation: the time stays.
        (
            make(
                ConditionStatus::True,
                Reason::AllExpressionsCompile,
                "a",
                1,
                20,
            ),
            10,
        ),
        (
            make(
                ConditionStatus::True,
                Reason::AllExpressionsCompile,
                "b",
                1,
                20,
            ),
            10,
        ),
        (
            make(
                ConditionStatus::True,
                Reason::AllExpressionsCompile,
                "a",
                2,
                20,
            ),
            10,
        ),
        // Another status: it moves.
        (
            make(
                ConditionStatus::False,
                Reason::CompilationFailed,
                "a",
                1,
                20,
            ),
            20,
        ),
        (
            make(ConditionStatus::Unknown, Reason::InternalError, "a", 1, 20),
            20,
        ),
    ];
    for (new, second) in table {
        let merged = merge(std::slice::from_ref(&old), vec![new.clone()]);
        let expect = Condition {
            last_transition_time: Time(at(second)),
            ..new
        };
        assert_eq!(merged, [expect]);
    }
}

#[test]
fn merge_leaves_the_conditions_of_others_where_they_are() {
    let ours = |second| {
        condition(
            ConditionType::Ready,
            ConditionStatus::True,
            Reason::Ready,
            "ready",
            1,
            at(second),
        )
    };
    let compiled = condition(
        ConditionType::Compiled,
        ConditionStatus::True,
        Reason::AllExpressionsCompile,
        "all",
        1,
        at(7),
    );
    let merged = merge(&[of_others(), ours(1)], vec![compiled.clone(), ours(5)]);
    assert_eq!(merged, [of_others(), ours(1), compiled]);
}

#[test]
fn names_are_api_names() {
    for type_ in ConditionType::ALL {
        assert_eq!(ConditionType::from_name(type_.as_str()), Some(type_));
    }
    assert_eq!(ConditionType::from_name("ready"), None);
    for reason in Reason::ALL {
        assert_eq!(Reason::from_name(reason.as_str()), Some(*reason));
        assert!(reason.as_str().chars().all(char::is_alphanumeric));
    }
}

#[test]
fn times_have_no_fractions_and_messages_an_end() {
    let now = Timestamp::new(100, 999_999_999).unwrap();
    let long = "é".repeat(5000);
    let made = condition(
        ConditionType::Ready,
        ConditionStatus::True,
        Reason::Ready,
        &long,
        1,
        now,
    );
    assert_eq!(made.last_transition_time.0, at(100));
    assert!(made.message.len() <= message::MAX_BYTES);
    assert!(made.message.ends_with('…'));
}
