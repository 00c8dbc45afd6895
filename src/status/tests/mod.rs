use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, TypeChecking, ValidatingAdmissionPolicyStatus, Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::bindings::{BindingFacts, BindingsState};
use super::compute::{
    CheckStep, CompileSummary, Deadline, DesiredStatus, MatchSummary, MissingParams, NotServed,
    Observations, ParamKindState, ParamsState, StepOutcome, TypeObservations, TypeSummary, compute,
};
use super::condition::{self, ConditionStatus, ConditionType, Reason, condition, merge};
use super::message;
use super::probes::{ProbeFacts, ProbesState};
use super::staleness::Staleness;
use super::unknown_fields::UnknownFields;
use crate::cel::diagnostic::{Code, Diagnostics, Severity};
use crate::cel::source::Location;
use crate::policy::RequestPolicy;
use crate::policy::analysis::{TypeCheck, UncheckedKind, WildcardKinds};
use crate::policy::compile::{Cause, CompileFinding, CompileFindingKind};
use crate::policy::consequence::Consequence;
use crate::policy::finding::{ExpressionFindings, KindFindings};
use crate::policy::matching::{MatchedResource, Matches, UnservedResource};
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::schema::{Gvk, Gvr};
use crate::version::{ClusterVersion, KubernetesVersion};

mod compiled;
mod definition;
mod exempt;
mod merge;
mod mutating;
mod params;
mod staleness;
mod stalled;
mod type_checked;
mod unknown_fields;
mod warnings;
mod webhooks;

const GENERATION: i64 = 3;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The inputs of `compute` for one policy. `Facts::sound` returns a policy without problems. Each test modifies some
/// fields.
struct Facts {
    subject: SubjectKind,
    policy: RequestPolicy,
    generation: i64,
    status: Option<ValidatingAdmissionPolicyStatus>,
    findings: Vec<CompileFinding>,
    matches: Matches,
    types: TypeCheck,
    waiting: Vec<(String, String)>,
    panicked: bool,
    /// The step that exceeded its time limit, if any.
    deadline: Option<CheckStep>,
    params: ParamKindState,
    bindings: BindingsState,
    probes: ProbesState,
    ready_requires: BTreeSet<ConditionType>,
    undiscovered_params: Vec<String>,
    is_retained_long: bool,
    server: ClusterVersion,
    unknown_fields: UnknownFields,
}

impl Facts {
    fn sound() -> Self {
        Self {
            subject: SubjectKind::ValidatingAdmissionPolicy,
            policy: RequestPolicy {
                name: Some("policy".into()),
                ..RequestPolicy::default()
            },
            generation: GENERATION,
            status: None,
            findings: Vec::new(),
            server: ClusterVersion::default(),
            unknown_fields: UnknownFields::default(),
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
            panicked: false,
            deadline: None,
            params: ParamKindState::NotRequired,
            bindings: BindingsState::Known(vec![BindingFacts {
                name: "binding".into(),
                actions: vec!["Deny".into()],
                ..BindingFacts::default()
            }]),
            probes: ProbesState::Known(Vec::new()),
            ready_requires: ConditionType::COUNTING.into(),
            undiscovered_params: Vec::new(),
            is_retained_long: false,
        }
    }

    fn with(mut self, modify: impl FnOnce(&mut Self)) -> Self {
        modify(&mut self);
        self
    }

    fn ignoring(self) -> Self {
        self.with(|facts| {
            facts.policy.failure_policy = Some("Ignore".into());
        })
    }

    fn compute(&self, now: Timestamp) -> DesiredStatus {
        let outcome = TypeSummary::from(self.types.clone());
        let matched = MatchSummary::from(&self.matches);
        let types = TypeObservations {
            outcome: &outcome,
            waiting: &self.waiting,
        };
        let compiled = CompileSummary {
            findings: &self.findings,
            n_expressions: 4,
        };
        compute(
            &Observations {
                policy: Some(&self.policy),
                generation: self.generation,
                server: self.server,
                unknown_fields: self.unknown_fields.clone(),
                status: self.status.as_ref(),
                subject: self.subject,
                compiled: match self.deadline {
                    Some(CheckStep::Compiling) => self.deadline_exceeded(),
                    _ => checked(self.panicked, compiled),
                },
                matches: checked(self.panicked, &matched),
                types: match self.deadline {
                    Some(_) => self.deadline_exceeded(),
                    None => checked(self.panicked, types),
                },
                params: self.params.clone(),
                bindings: self.bindings.clone(),
                probes: self.probes.clone(),
                ready_requires: &self.ready_requires,
                staleness: Staleness {
                    undiscovered_params: &self.undiscovered_params,
                    is_retained_long: self.is_retained_long,
                },
            },
            now,
        )
    }

    fn deadline_exceeded<T>(&self) -> StepOutcome<'_, T> {
        StepOutcome::DeadlineExceeded(Deadline {
            limit: std::time::Duration::from_secs(30),
            step: self.deadline.unwrap(),
            field: Some("spec.validations[3].expression"),
        })
    }

    /// Sets the current status of the policy to the status that `compute` returns for `before`.
    fn after(mut self, before: &Self, now: Timestamp) -> Self {
        let desired = before.compute(now);
        self.status = Some(status_of(&desired));
        self
    }
}

fn checked<'a, T>(panicked: bool, value: T) -> StepOutcome<'a, T> {
    if panicked {
        StepOutcome::Panicked
    } else {
        StepOutcome::Done(value)
    }
}

/// Returns the live status after `desired` was applied.
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
        cause: Cause::Whole {
            rule: Rule::CompilationFailed,
            message: message.into(),
        },
        consequence: Consequence::Denied,
    }
}

/// Returns an error at the fifth code point of an expression, for Deployment.
fn warning(field_ref: &str, message: &str) -> ExpressionFindings {
    with_severity(Severity::Error, field_ref, message)
}

fn with_severity(severity: Severity, field_ref: &str, message: &str) -> ExpressionFindings {
    let mut kind = KindFindings {
        gvk: deployment(),
        errors: Diagnostics::default(),
        warnings: Diagnostics::default(),
        repeats_locations: false,
    };
    let diagnostics = match severity {
        Severity::Error => &mut kind.errors,
        Severity::Warning => &mut kind.warnings,
    };
    diagnostics.report(
        Code::UndefinedField,
        Location { line: 1, column: 4 },
        message,
    );
    ExpressionFindings {
        index: 0,
        field_ref: field_ref.into(),
        text: "has(é.b)".into(),
        consequence: Consequence::Denied,
        kinds: vec![kind],
        notes: Vec::new(),
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

/// `expect` consists of the status and the reason.
#[track_caller]
fn check(facts: &Facts, type_: ConditionType, expect: &str, message: &str) {
    let desired = facts.compute(at(100));
    let condition = get(&desired, type_);
    assert_eq!(format!("{} {}", condition.status, condition.reason), expect);
    assert_eq!(condition.message, message);
}

fn foreign_condition() -> Condition {
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
fn ready_is_true_for_valid_policy() {
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
fn compiled_is_unknown_but_ready_is_true_for_unsupported_expression() {
    let facts = Facts::sound()
        .with(|facts| facts.findings = vec![finding(CompileFindingKind::Unsupported, "odd()")]);
    check(
        &facts,
        ConditionType::Compiled,
        "Unknown UnsupportedExpression",
        "an expression cannot be checked by vap-status-controller: spec.validations[0].expression: odd()",
    );
    check(
        &facts,
        ConditionType::Ready,
        "True Ready",
        "no problems found; unknown: Compiled (UnsupportedExpression)",
    );
}

#[test]
fn conditions_of_panicked_check_are_unknown_and_ready_is_pending() {
    let facts = Facts::sound().with(|facts| facts.panicked = true);
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
    let desired = facts.after(&Facts::sound(), at(1)).compute(at(2));
    assert_eq!(
        get(&desired, ConditionType::Compiled).reason,
        "InternalError"
    );
}

#[test]
fn condition_whose_deadline_is_exceeded_is_unknown_and_shows_expression() {
    let facts = Facts::sound().with(|facts| {
        facts.deadline = Some(CheckStep::TypeChecking);
    });
    let desired = facts.compute(at(1));
    let types = get(&desired, ConditionType::TypeChecked);
    assert_eq!(
        (&*types.status, &*types.reason),
        ("Unknown", "DeadlineExceeded")
    );
    assert_eq!(
        types.message,
        "checking the types of the expressions exceeded the time limit of 30 s at spec.validations[3].expression; \
         warnings about the expressions are unknown, and requests are not affected; shorten or split this \
         expression, or let the rules match fewer kinds"
    );
    assert_eq!(get(&desired, ConditionType::Compiled).status, "True");
    assert_eq!(
        get(&desired, ConditionType::ResourcesMatched).status,
        "True"
    );
    let ready = get(&desired, ConditionType::Ready);
    assert_eq!((&*ready.status, &*ready.reason), ("Unknown", "Pending"));
    assert!(condition::find(&desired.conditions, ConditionType::Stalled).is_none());
    let desired = facts.after(&Facts::sound(), at(1)).compute(at(2));
    let types = get(&desired, ConditionType::TypeChecked);
    assert_eq!(types.reason, "DeadlineExceeded");
}

#[test]
fn type_checked_is_unknown_if_compilation_exceeds_deadline() {
    let facts = Facts::sound().with(|facts| {
        facts.deadline = Some(CheckStep::Compiling);
    });
    let desired = facts.compute(at(1));
    for type_ in [ConditionType::Compiled, ConditionType::TypeChecked] {
        let condition = get(&desired, type_);
        assert_eq!(condition.reason, "DeadlineExceeded");
        assert!(
            condition.message.starts_with(
                "compiling the expressions exceeded the time limit of 30 s at spec.validations[3]"
            ),
            "{}",
            condition.message
        );
    }
    assert_eq!(
        get(&desired, ConditionType::ResourcesMatched).status,
        "True"
    );
    assert!(desired.expression_warnings.is_empty());
}

#[test]
fn resources_matched_is_false_if_no_matched_resource_is_served() {
    let facts = Facts::sound().with(|facts| {
        facts.matches = Matches {
            unserved: vec![UnservedResource {
                field_ref: "spec.matchConstraints.resourceRules[0]".into(),
                index: 0,
                rule: "apps/v1 deployment".into(),
                name: "deployment".into(),
                suggestion: Some("deployments".into()),
                is_misspelled: true,
                is_known: false,
            }],
            ..Matches::default()
        };
        facts.types = TypeCheck::default();
    });
    let text = "not served: apps/v1 deployment (did you mean deployments?); the policy never runs";
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
        "the rules match no kind that can be checked",
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
fn resources_matched_message_does_not_count_wildcard_matches() {
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
    assert_eq!(facts(1, 68).compute(at(1)), facts(1, 67).compute(at(1)));
}

#[test]
fn resources_matched_message_shows_unserved_resources() {
    let facts = Facts::sound().with(|facts| {
        facts.matches.unserved = vec![UnservedResource {
            field_ref: "spec.matchConstraints.resourceRules[0]".into(),
            index: 0,
            rule: "apps/v1 statefulset".into(),
            name: "statefulset".into(),
            suggestion: None,
            is_misspelled: false,
            is_known: false,
        }];
    });
    check(
        &facts,
        ConditionType::ResourcesMatched,
        "True ResourcesServed",
        "the rules match 1 resource; not served: apps/v1 statefulset",
    );
}

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
fn resources_matched_is_unknown_if_discovery_is_incomplete() {
    let facts = Facts::sound().with(undiscovered);
    check(
        &facts,
        ConditionType::ResourcesMatched,
        "Unknown DiscoveryIncomplete",
        "cannot determine whether the rules match a resource; not discovered: metrics.k8s.io/v1 (503)",
    );
    check(
        &facts,
        ConditionType::Ready,
        "Unknown Pending",
        "ResourcesMatched is not known yet: cannot determine whether the rules match a resource; not \
         discovered: metrics.k8s.io/v1 (503)",
    );
}

#[test]
fn unavailable_inputs_retain_conditions() {
    let sound = Facts::sound();
    let before = sound.compute(at(5));
    let waiting = Facts::sound()
        .with(|facts| {
            undiscovered(facts);
            timed_out(facts);
        })
        .after(&sound, at(5));
    let now = waiting.compute(at(50));
    assert_eq!(now.conditions, before.conditions);
    assert_eq!((before.has_retained, now.has_retained), (false, true));
    assert!(now.is_satisfied_by(waiting.status.as_ref()));
}

#[test]
fn partial_discovery_retains_messages() {
    let partly = || {
        Facts::sound().with(|facts| {
            facts.matches.incomplete = vec![("metrics.k8s.io/v1".into(), "503".into())];
        })
    };
    let before = Facts::sound().compute(at(5));
    let now = partly().after(&Facts::sound(), at(5)).compute(at(50));
    assert_eq!(now.conditions, before.conditions);
    // Discovery of another group fails, but the policy was corrected. The new verdict replaces the retained one.
    let unserved = Facts::sound().with(|facts| {
        facts.matches = Matches::default();
        facts.types = TypeCheck::default();
    });
    let warned = Facts::sound().with(|facts| {
        facts.types.findings = vec![warning("spec.validations[0].expression", "x")];
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
fn retained_verdict_is_limited_to_its_generation() {
    let mut waiting = Facts::sound().with(timed_out).after(&Facts::sound(), at(5));
    waiting.generation = GENERATION + 1;
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
fn retained_verdict_retains_warnings() {
    let warned = Facts::sound().with(|facts| {
        facts.types.findings = vec![warning("spec.validations[0].expression", "text\n")];
    });
    let waiting = Facts::sound().with(timed_out).after(&warned, at(5));
    let desired = waiting.compute(at(9));
    let before = warned.compute(at(5));
    assert_eq!(desired.conditions, before.conditions);
    assert_eq!(desired.expression_warnings, before.expression_warnings);
    assert_eq!(desired.expression_warnings.len(), 1);
}

#[test]
fn params_resolved_is_unknown_for_undiscovered_kind() {
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
        "cannot determine whether paramKind rules.example.com/v1 ReplicaLimit is served: \
         discovery of rules.example.com/v1 failed: 503 unavailable",
    );
}

#[test]
fn condition_ready_has_reason_of_first_failed_required_condition() {
    use ConditionType::{Compiled, ParamsResolved, ResourcesMatched, TypeChecked};
    let invalid = |requires: &[ConditionType]| {
        Facts::sound().with(|facts| {
            facts.findings = vec![finding(CompileFindingKind::Failed, "bad")];
            facts.matches = Matches::default();
            facts.params = ParamKindState::NotFound {
                gvk: limit(),
                similar: Vec::new(),
            };
            facts.types.findings = vec![warning("spec.validations[1].expression", "text")];
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
        let desired = invalid(requires).compute(at(1));
        let ready = get(&desired, ConditionType::Ready);
        assert_eq!(
            format!("{} {}", ready.status, ready.reason),
            expect,
            "{requires:?}"
        );
    }
}

#[test]
fn conditions_computed_from_their_own_result_are_unchanged() {
    let warned = || {
        Facts::sound().with(|facts| {
            facts.types.findings = vec![warning("spec.validations[0].expression", "text")];
            facts.params = ParamKindState::Served(limit(), ParamsState::NotReferred);
        })
    };
    for facts in [Facts::sound, warned] {
        let first = facts().compute(at(10));
        let again = facts().after(&facts(), at(10));
        let second = again.compute(at(99));
        assert_eq!(first, second);
        assert!(second.is_satisfied_by(again.status.as_ref()));
        assert!(!second.is_satisfied_by(None));
    }
}

#[test]
fn existing_status_is_compared_in_every_field() {
    let desired = Facts::sound().compute(at(10));
    let changes: [fn(&mut ValidatingAdmissionPolicyStatus); 6] = [
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
    for change in changes {
        let mut live = status_of(&desired);
        assert!(desired.is_satisfied_by(Some(&live)));
        change(&mut live);
        assert!(!desired.is_satisfied_by(Some(&live)), "{live:?}");
    }
    // A missing list of warnings equals an empty list. Conditions of other controllers are ignored.
    let mut live = status_of(&desired);
    live.type_checking.as_mut().unwrap().expression_warnings = None;
    live.conditions
        .as_mut()
        .unwrap()
        .insert(0, foreign_condition());
    assert!(desired.is_satisfied_by(Some(&live)));
}
