use super::*;

const DOWN: &str = "; may be out of date: metrics.k8s.io/v1 cannot be discovered";

fn message(desired: &DesiredStatus, type_: ConditionType) -> String {
    get(desired, type_).message.clone()
}

/// Adds a matched group version whose discovery has failed for more than a minute.
fn match_undiscovered(facts: &mut Facts) {
    facts.matches.undiscovered = vec!["metrics.k8s.io/v1".into()];
}

#[test]
fn note_is_added_if_resources_are_from_earlier_discovery() {
    use ConditionType::{Bound, Compiled, ParamsResolved, Ready, ResourcesMatched, TypeChecked};
    let before = Facts::sound().compute(at(5));
    let now = Facts::sound()
        .with(match_undiscovered)
        .after(&Facts::sound(), at(5))
        .compute(at(9));
    for type_ in [ResourcesMatched, TypeChecked, Ready] {
        let expected = format!("{}{DOWN}", message(&before, type_));
        assert_eq!(message(&now, type_), expected);
    }
    for type_ in [Compiled, ParamsResolved, Bound] {
        assert_eq!(message(&now, type_), message(&before, type_));
    }
    for (before, now) in before.conditions.iter().zip(&now.conditions) {
        assert_eq!(
            (&now.status, &now.reason, &now.last_transition_time),
            (&before.status, &before.reason, &before.last_transition_time)
        );
    }
    // The API responds again.
    let again = Facts::sound().after(&Facts::sound().with(match_undiscovered), at(5));
    assert_eq!(again.compute(at(5)).conditions, before.conditions);
}

#[test]
fn note_is_added_if_param_kind_is_from_earlier_discovery() {
    let facts = Facts::sound().with(|facts| {
        facts.undiscovered_params = vec!["rules.example.com/v1".into()];
    });
    let before = Facts::sound().compute(at(5));
    let now = facts.compute(at(5));
    let note = "; may be out of date: rules.example.com/v1 cannot be discovered";
    for type_ in [ConditionType::ParamsResolved, ConditionType::Ready] {
        let expected = format!("{}{note}", message(&before, type_));
        assert_eq!(message(&now, type_), expected);
    }
}

#[test]
fn note_of_failure_is_repeated_in_condition_ready() {
    let unserved = |facts: &mut Facts| {
        facts.matches = Matches::default();
        match_undiscovered(facts);
    };
    let now = Facts::sound().with(unserved).compute(at(1));
    let expected = format!("no rule matches a served resource; the policy never runs{DOWN}");
    for type_ in [ConditionType::ResourcesMatched, ConditionType::Ready] {
        assert_eq!(get(&now, type_).status, "False");
        assert_eq!(message(&now, type_), expected);
    }
}

#[test]
fn note_is_not_added_to_unknown_condition() {
    let now = Facts::sound()
        .with(|facts| {
            undiscovered(facts);
            match_undiscovered(facts);
        })
        .compute(at(1));
    let matched = get(&now, ConditionType::ResourcesMatched);
    assert_eq!(matched.status, "Unknown");
    assert!(
        !matched.message.contains("out of date"),
        "{}",
        matched.message
    );
}

#[test]
fn note_is_added_to_retained_condition_once() {
    let sound = Facts::sound();
    let before = sound.compute(at(5));
    let waiting = |is_retained_long| {
        Facts::sound().with(|facts| {
            timed_out(facts);
            facts.is_retained_long = is_retained_long;
        })
    };
    let noted = waiting(true).after(&sound, at(5));
    let now = noted.compute(at(9));
    let expected = format!(
        "{}; may be out of date: a schema cannot be read",
        message(&before, ConditionType::TypeChecked)
    );
    assert_eq!(message(&now, ConditionType::TypeChecked), expected);
    // The note is not appended again. After a restart of the controller, `is_retained_long` is false.
    for is_retained_long in [true, false] {
        let again = waiting(is_retained_long).after(&noted, at(9));
        assert_eq!(again.compute(at(20)).conditions, now.conditions);
    }
    // A retained False condition also gets the note.
    let warned = Facts::sound().with(|facts| {
        facts.types.findings = vec![warning("spec.validations[0].expression", "text\n")];
    });
    let now = waiting(true).after(&warned, at(5)).compute(at(9));
    assert!(
        message(&now, ConditionType::Ready)
            .ends_with("; may be out of date: a schema cannot be read")
    );
    assert_eq!(now.expression_warnings.len(), 1);
}

#[test]
fn joined_message_is_truncated_but_keeps_note() {
    let facts = Facts::sound().with(|facts| {
        match_undiscovered(facts);
        facts.matches.unserved = (0..4)
            .map(|n| UnservedResource {
                rule: format!("{n}{}", "x".repeat(400)),
                field_ref: "spec.matchConstraints.resourceRules[0]".into(),
                index: 0,
                name: "x".into(),
                suggestion: None,
                is_misspelled: false,
                is_known: false,
            })
            .collect();
    });
    let text = message(&facts.compute(at(1)), ConditionType::ResourcesMatched);
    assert_eq!(text.len(), message::MAX_BYTES);
    assert!(text.ends_with(&format!("…{DOWN}")), "{text}");
}

#[test]
fn note_of_retained_condition_states_its_cause() {
    use super::super::staleness::note;
    use super::super::verdict::Verdict;
    let verdict = |status| Verdict::new(status, Reason::Pending, "");
    webhooks::with_observed(Vec::new(), |observed| {
        let long = Observations {
            staleness: Staleness {
                is_retained_long: true,
                ..Staleness::default()
            },
            ..observed.clone()
        };
        for (type_, expected) in [
            (
                ConditionType::ResourcesMatched,
                Some("the served resources cannot be discovered"),
            ),
            (
                ConditionType::ParamsResolved,
                Some("the params cannot be read"),
            ),
            (ConditionType::TypeChecked, Some("a schema cannot be read")),
            (ConditionType::Compiled, Some("a schema cannot be read")),
            (
                ConditionType::ProbesPassed,
                Some("inputs of the probes cannot be read"),
            ),
            (ConditionType::Bound, Some("the bindings cannot be read")),
            (ConditionType::Ready, None),
            (ConditionType::Stalled, None),
        ] {
            for status in [ConditionStatus::True, ConditionStatus::False] {
                let noted = note(&long, type_, &verdict(status), true);
                assert_eq!(noted.as_deref(), expected, "{type_:?}");
                assert_eq!(note(&long, type_, &verdict(status), false), None);
                assert_eq!(note(observed, type_, &verdict(status), true), None);
            }
            let unknown = verdict(ConditionStatus::Unknown);
            assert_eq!(note(&long, type_, &unknown, true), None);
        }
    });
}
