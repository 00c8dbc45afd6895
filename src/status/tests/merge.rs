use super::*;

#[test]
fn merge_changes_transition_time_only_with_status() {
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
        // Only the message and the generation differ.
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
fn merge_keeps_other_conditions_in_place() {
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
    let merged = merge(
        &[foreign_condition(), ours(1)],
        vec![compiled.clone(), ours(5)],
    );
    assert_eq!(merged, [foreign_condition(), ours(1), compiled]);
}

#[test]
fn condition_types_and_reasons_are_parsed_from_their_names() {
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
fn condition_truncates_time_and_message() {
    let now = Timestamp::new(100, 999_999_999).unwrap();
    let long = "é".repeat(5000);
    let created = condition(
        ConditionType::Ready,
        ConditionStatus::True,
        Reason::Ready,
        &long,
        1,
        now,
    );
    assert_eq!(created.last_transition_time.0, at(100));
    assert!(created.message.len() <= message::MAX_BYTES);
    assert!(created.message.ends_with('…'));
}
