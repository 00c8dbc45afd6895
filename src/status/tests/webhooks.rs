use super::*;

fn matched(n_resources: usize, exempt: &[&str]) -> MatchSummary {
    MatchSummary {
        n_resources,
        exempt: exempt.iter().map(|name| (*name).to_owned()).collect(),
        ..MatchSummary::default()
    }
}

fn conditions(webhooks: Vec<(&str, MatchSummary)>) -> Vec<Condition> {
    with_observed(webhooks, |observed| compute(observed, at(1)).conditions)
}

/// Calls `use_of` with the facts of a configuration with `webhooks`.
pub(super) fn with_observed<T>(
    webhooks: Vec<(&str, MatchSummary)>,
    use_of: impl FnOnce(&Observations<'_>) -> T,
) -> T {
    let webhooks = webhooks.into_iter();
    let matched = MatchSummary::from_webhooks(
        webhooks
            .map(|(name, matched)| (name.to_owned(), matched))
            .collect(),
    );
    let outcome = TypeSummary::from_webhooks(Vec::new());
    // Webhook configurations do not have all conditions of `--ready-requires`.
    let ready_requires: BTreeSet<ConditionType> =
        [ConditionType::ResourcesMatched, ConditionType::Bound].into();
    let observed = Observations {
        policy: None,
        generation: 0,
        server: ClusterVersion::default(),
        unknown_fields: UnknownFields::default(),
        status: None,
        subject: SubjectKind::ValidatingWebhookConfiguration,
        compiled: StepOutcome::Done(CompileSummary {
            findings: &[],
            n_expressions: 2,
        }),
        matches: StepOutcome::Done(&matched),
        types: StepOutcome::Done(TypeObservations {
            outcome: &outcome,
            waiting: &[],
        }),
        params: ParamKindState::NotRequired,
        bindings: BindingsState::Known(Vec::new()),
        probes: ProbesState::Known(Vec::new()),
        ready_requires: &ready_requires,
        staleness: Staleness::default(),
    };
    use_of(&observed)
}

fn summary(conditions: &[Condition], type_: ConditionType) -> (String, String) {
    let condition = condition::find(conditions, type_).unwrap();
    (condition.status.clone(), condition.message.clone())
}

#[test]
fn resources_matched_is_false_if_one_webhook_is_never_called() {
    let computed = conditions(vec![
        ("a.example.com", matched(1, &[])),
        ("b.example.com", matched(0, &["x y"])),
    ]);
    let (status, message) = summary(&computed, ConditionType::ResourcesMatched);
    assert_eq!(status, "False");
    assert_eq!(
        message,
        "b.example.com: API servers never call a webhook for x y; the webhook is never called"
    );
    assert_eq!(summary(&computed, ConditionType::Ready).0, "False");
}

#[test]
fn webhook_configuration_has_no_binding_conditions() {
    for webhooks in [vec![("a.example.com", matched(1, &[]))], Vec::new()] {
        let computed = conditions(webhooks);
        assert_eq!(summary(&computed, ConditionType::Ready).0, "True");
        for absent in [
            ConditionType::Bound,
            ConditionType::ParamsResolved,
            ConditionType::ProbesPassed,
        ] {
            assert!(condition::find(&computed, absent).is_none());
        }
    }
}

#[test]
fn kind_shared_by_webhooks_is_counted_once() {
    let kinds = |names: &[&str]| -> Vec<Gvk> {
        let names = names.iter();
        names.map(|name| Gvk::new("", "v1", *name)).collect()
    };
    let check = |named: &[&str], by_wildcard: &[&str]| TypeCheck {
        checked: kinds(named),
        by_wildcard: WildcardKinds {
            checked: kinds(by_wildcard),
            ..WildcardKinds::default()
        },
        ..TypeCheck::default()
    };
    let outcome = TypeSummary::from_webhooks(vec![
        check(&["Pod"], &[]),
        check(&["Pod", "Service"], &["Node", "Secret"]),
        check(&["Secret"], &["Node", "Pod"]),
    ]);
    assert_eq!((outcome.n_checked, outcome.by_wildcard.n_checked), (3, 1));
}

#[test]
fn resources_matched_is_the_worst_result_of_the_webhooks() {
    use super::super::verdict::Evidence::{Complete, Partial, Pending};
    let some = |n| matched(n, &[]);
    let undiscovered = |n_resources| MatchSummary {
        n_resources,
        incomplete: vec![("c/v1".to_owned(), "503".to_owned())],
        ..MatchSummary::default()
    };
    let unknown =
        "a: cannot determine whether the rules match a resource; not discovered: c/v1 (503)";
    let none = "b: no rule matches a served resource; the webhook is never called";
    for (webhooks, expected) in [
        (
            vec![],
            ("True", Complete, "the configuration has no webhooks"),
        ),
        (
            vec![("a", some(1))],
            ("True", Complete, "a: the rules match 1 resource"),
        ),
        (
            vec![("a", some(1)), ("b", some(2))],
            (
                "True",
                Complete,
                "a: the rules match 1 resource, b: the rules match 2 resources",
            ),
        ),
        (
            vec![("a", some(1)), ("b", undiscovered(1))],
            (
                "True",
                Partial,
                "a: the rules match 1 resource, b: the rules match 1 resource; not discovered: c/v1 (503)",
            ),
        ),
        (
            vec![("a", undiscovered(0)), ("b", some(1))],
            ("Unknown", Pending, unknown),
        ),
        (
            vec![("a", undiscovered(0)), ("b", some(0))],
            ("False", Complete, none),
        ),
        (
            vec![("a", some(3)), ("b", some(0))],
            ("False", Complete, none),
        ),
    ] {
        let verdict = with_observed(webhooks, super::super::matched::verdict);
        let actual = (verdict.status.as_str(), verdict.evidence, &*verdict.message);
        assert_eq!(actual, expected);
    }
}
