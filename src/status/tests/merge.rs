//! How conditions that were written before are merged with those computed.

use super::*;

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
