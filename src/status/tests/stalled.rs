use super::*;
use crate::policy::matching::ExemptResource;
use crate::status::stalled::Remedy;

fn stalled(desired: &DesiredStatus) -> Option<&Condition> {
    condition::find(&desired.conditions, ConditionType::Stalled)
}

fn warned() -> Facts {
    Facts::sound().with(|facts| {
        facts.types.findings = vec![warning("spec.validations[0].expression", "text")];
    })
}

/// Asserts that `Stalled` has the reason `expect` and the message of the failing condition. `None` expects no
/// condition.
#[track_caller]
fn check_stalled(facts: &Facts, expect: Option<&str>) {
    let desired = facts.compute(at(100));
    let stalled = stalled(&desired);
    assert_eq!(stalled.map(|stalled| stalled.reason.as_str()), expect);
    let Some(stalled) = stalled else { return };
    assert_eq!(stalled.status, "True");
    assert_eq!(stalled.observed_generation, Some(GENERATION));
    assert_eq!(get(&desired, ConditionType::Ready).status, "False");
    let same = |other: &&Condition| {
        other.type_ != stalled.type_ && other.reason == stalled.reason && other.status == "False"
    };
    let failing = desired.conditions.iter().find(same).unwrap();
    assert_eq!(failing.message, stalled.message);
}

#[test]
fn stalled_is_true_if_only_an_edit_helps() {
    check_stalled(&Facts::sound(), None);
    for (kind, reason) in [
        (CompileFindingKind::Failed, Some("CompilationFailed")),
        (CompileFindingKind::Unsafe, Some("UnsafeExpression")),
        (CompileFindingKind::Unsupported, None),
    ] {
        let facts = Facts::sound().with(|facts| facts.findings = vec![finding(kind, "bad")]);
        check_stalled(&facts, reason);
    }
    let exempt = Facts::sound().with(|facts| {
        facts.types = TypeCheck::default();
        facts.matches = Matches {
            exempt: vec![ExemptResource {
                resource: "authentication.k8s.io tokenreviews".into(),
                field_ref: "spec.matchConstraints.resourceRules[0]".into(),
                name: "tokenreviews".into(),
                by_wildcard: false,
            }],
            ..Matches::default()
        };
    });
    check_stalled(&exempt, Some("ExemptResources"));
    check_stalled(&warned(), Some("ExpressionWarnings"));
}

/// A description, and a function that adds the problem to the facts.
type Problem = (&'static str, fn(&mut Facts));

#[test]
fn stalled_is_absent_if_change_of_other_object_can_help() {
    let table: [Problem; 6] = [
        ("no resource is served", |facts| {
            facts.matches = Matches::default();
        }),
        ("no paramKind", |facts| {
            facts.params = ParamKindState::NotFound {
                gvk: limit(),
                similar: Vec::new(),
            };
        }),
        ("paramKind not served", |facts| {
            facts.params = ParamKindState::NotServed {
                gvk: limit(),
                why: NotServed::NoVersion { crd: "c".into() },
            };
        }),
        ("params do not exist", |facts| {
            let missing = MissingParams {
                binding: "b".into(),
                what: "p".into(),
                denies: true,
            };
            let params = ParamsState::Examined {
                n_found: 0,
                missing: vec![missing],
            };
            facts.params = ParamKindState::Served(limit(), params);
        }),
        ("a probe failed", |facts| {
            facts.probes = ProbesState::Known(vec![ProbeFacts {
                name: "p".into(),
                n_cases: 1,
                failed: vec![("c".into(), "d".into())],
                ..ProbeFacts::default()
            }]);
        }),
        ("a binding is invalid", |facts| {
            facts.ready_requires = ConditionType::ALL.into();
            facts.bindings = BindingsState::Known(vec![BindingFacts {
                name: "b".into(),
                problem: Some("x".into()),
                ..BindingFacts::default()
            }]);
        }),
    ];
    for (problem, add) in table {
        let facts = Facts::sound().with(add);
        let desired = facts.compute(at(1));
        assert_eq!(
            get(&desired, ConditionType::Ready).status,
            "False",
            "{problem}"
        );
        assert_eq!(stalled(&desired), None, "{problem}");
        // A second failure that only an edit can correct makes the policy stalled.
        let both = facts.with(|facts| {
            facts.findings = vec![finding(CompileFindingKind::Failed, "bad")];
        });
        check_stalled(&both, Some("CompilationFailed"));
    }
}

#[test]
fn condition_stalled_ignores_conditions_that_are_not_required() {
    let facts = warned().with(|facts| {
        facts.ready_requires = [ConditionType::Compiled].into();
    });
    check_stalled(&facts, None);
}

#[test]
fn stalled_is_absent_for_warnings_about_custom_kinds() {
    let foreign = |group: &str| Gvk::new(group, "v1", "Widget");
    for (group, expect) in [
        ("batch", Some("ExpressionWarnings")),
        ("networking.k8s.io", Some("ExpressionWarnings")),
        ("gateway.networking.k8s.io", None),
        ("example.com", None),
    ] {
        let named = warned().with(|facts| facts.types.checked.push(foreign(group)));
        check_stalled(&named, expect);
        let params = warned().with(|facts| facts.types.params = Some((foreign(group), true)));
        check_stalled(&params, expect);
        let unseen = warned().with(|facts| {
            facts.types.by_wildcard = WildcardKinds {
                checked: Vec::new(),
                unchecked: vec![UncheckedKind {
                    gvk: foreign(group),
                    reason: "no schema".into(),
                    unavailable: false,
                }],
            };
        });
        check_stalled(&unseen, expect);
    }
    let undiscovered = warned().with(|facts| {
        facts.matches.incomplete = vec![("metrics.k8s.io/v1".into(), "503".into())];
    });
    check_stalled(&undiscovered, None);
}

#[test]
fn stalled_is_retained_during_outage() {
    let desired = warned().compute(at(5));
    let waiting = Facts::sound().with(timed_out).after(&warned(), at(5));
    let now = waiting.compute(at(9));
    assert_eq!(now.conditions, desired.conditions);
    assert_eq!(now.expression_warnings, desired.expression_warnings);
    assert!(stalled(&desired).is_some());
    let edited = waiting.with(|facts| facts.generation = GENERATION + 1);
    assert_eq!(stalled(&edited.compute(at(9))), None);
}

#[test]
fn stalled_is_removed_from_corrected_policy() {
    let corrected = Facts::sound().after(&warned(), at(5));
    let desired = corrected.compute(at(9));
    assert_eq!(stalled(&desired), None);
    assert!(!desired.is_satisfied_by(corrected.status.as_ref()));
    // An obsolete `Stalled` condition of this controller causes a write.
    let mut live = status_of(&desired);
    assert!(desired.is_satisfied_by(Some(&live)));
    let left_behind = stalled(&warned().compute(at(5))).unwrap().clone();
    live.conditions.as_mut().unwrap().push(left_behind.clone());
    assert!(!desired.is_satisfied_by(Some(&live)));
    // A `Stalled` condition of another controller must stay. Otherwise both controllers would overwrite each other
    // forever.
    live.conditions.as_mut().unwrap().pop();
    live.conditions.as_mut().unwrap().push(Condition {
        reason: "Reviewing".into(),
        ..left_behind
    });
    assert!(desired.is_satisfied_by(Some(&live)));
}

#[test]
fn edit_is_the_remedy_only_for_errors_of_the_policy() {
    let edits: Vec<&str> = Reason::ALL
        .iter()
        .filter(|reason| reason.remedy() != Remedy::Elsewhere)
        .map(|reason| reason.as_str())
        .collect();
    assert_eq!(
        edits,
        [
            "CompilationFailed",
            "UnsafeExpression",
            "ExpressionWarnings",
            "ExemptResources",
        ]
    );
}
