//! What `TypeChecked` says, and of which kinds.

use super::*;

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

/// Facts of which so many of four expressions do not compile, which the type checker says in its words too.
fn uncompiled(n: usize) -> Facts {
    Facts::sound().with(|facts| {
        for i in 0..n {
            let field_ref = format!("spec.validations[{i}].expression");
            let text = "undeclared reference to 'x'";
            facts.types.findings.push(warning(&field_ref, text));
            let mut failed = finding(CompileFindingKind::Failed, "undeclared reference to 'x'");
            failed.field_ref = field_ref;
            facts.findings.push(failed);
        }
    })
}

#[test]
fn what_does_not_compile_is_no_finding_of_type_checking() {
    let one = uncompiled(1);
    check(
        &one,
        ConditionType::TypeChecked,
        "True PartiallyChecked",
        "no warnings; 1 kind checked; not checked: spec.validations[0].expression (not compiled)",
    );
    let desired = one.compute(at(1));
    assert_eq!(
        get(&desired, ConditionType::Ready).reason,
        "CompilationFailed"
    );
    // What the API server's own controller would write stays.
    assert_eq!(desired.expression_warnings.len(), 1);
    assert_eq!(desired.n_type_warnings, 0);

    check(
        &uncompiled(4),
        ConditionType::TypeChecked,
        "Unknown CompilationFailed",
        "what does not compile has no types",
    );

    // Another expression has types, and they are wrong.
    let other = uncompiled(1).with(|facts| {
        facts.types.findings.push(warning(
            "spec.validations[1].expression",
            "undefined field 'replica'",
        ));
    });
    check(
        &other,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[1].expression may fail when evaluated (undefined field 'replica' on apps/v1 \
         Deployment), with failurePolicy Fail a request that reaches it is denied; 1 kind checked; not \
         checked: spec.validations[0].expression (not compiled)",
    );
    assert_eq!(other.compute(at(1)).n_type_warnings, 1);
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
        .with(|facts| facts.types.findings = vec![warning("spec.validations[0].expression", "x")])
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
            "no warnings; 37 of 41 kinds checked; not checked: apps/v1 Odd0, apps/v1 Odd1, apps/v1 \
             Odd2, apps/v1 Odd3 (no schema)",
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
            "spec.validations[0].expression may fail when evaluated (text on apps/v1 Deployment), with \
             failurePolicy Fail a request that reaches it is denied; 2 kinds checked",
        ),
        (
            3,
            1,
            1,
            "False ExpressionWarnings",
            "spec.validations[0].expression and 2 more may fail when evaluated (text on apps/v1 \
             Deployment), with failurePolicy Fail a request that reaches it is denied; 1 of 2 kinds \
             checked; not checked: apps/v1 Odd0 (no schema)",
        ),
    ];
    for (n_warnings, n_checked, n_unchecked, expect, text) in table {
        let facts = Facts::sound().with(|facts| {
            facts.types = TypeCheck {
                findings: (0..n_warnings)
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
fn kinds_beyond_those_that_are_checked_are_not_counted() {
    // Each CRD would change the message otherwise.
    for n_beyond in [1, 2, 2000] {
        let beyond = |n: usize| UncheckedKind {
            reason: crate::policy::analysis::BEYOND.to_owned(),
            ..unchecked(&format!("Beyond{n}"))
        };
        let facts = Facts::sound().with(|facts| {
            facts.types = TypeCheck {
                by_wildcard: WildcardKinds {
                    checked: vec![Gvk::new("apps", "v1", "Kind")],
                    unchecked: std::iter::once(unchecked("Odd"))
                        .chain((0..n_beyond).map(beyond))
                        .collect(),
                },
                ..TypeCheck::default()
            };
        });
        check(
            &facts,
            ConditionType::TypeChecked,
            "True PartiallyChecked",
            "no warnings; 1 of the first 2 kinds matched by wildcards checked; not checked: apps/v1 Odd \
             (no schema), others matched by wildcards (more kinds than are checked for one policy)",
        );
    }
}

#[test]
fn a_test_in_vain_is_not_said_to_fail() {
    let first = "spec.validations[0].expression";
    let vain = of_severity(Severity::Warning, first, "undefined field 'x'");
    let facts = Facts::sound().with(|facts| facts.types.findings = vec![vain.clone()]);
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[0].expression may not do what is meant (undefined field 'x'); 1 kind checked",
    );
    let failing = warning("spec.validations[1].expression", "undefined field 'y'");
    let facts = Facts::sound().with(|facts| facts.types.findings = vec![vain, failing]);
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
fn the_worst_consequence_is_told() {
    let message = |n: usize| {
        let mut found = warning(&format!("spec.validations[{n}].messageExpression"), "x");
        found.consequence = Consequence::OtherMessage;
        found
    };
    let facts = Facts::sound().with(|facts| facts.types.findings = vec![message(0), message(1)]);
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[0].messageExpression and 1 more may fail when evaluated (x on apps/v1 Deployment), \
         a request that is denied gets another message, and none is denied for it; 1 kind checked",
    );
    let facts = facts.with(|facts| {
        let denying = warning("spec.validations[2].expression", "y");
        facts.types.findings.push(denying);
    });
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[2].expression and 2 more may fail when evaluated (y on apps/v1 Deployment), with \
         failurePolicy Fail a request that reaches it is denied; 1 kind checked",
    );
}
