use super::*;

#[test]
fn type_checked_is_unknown_if_schema_is_unavailable() {
    let facts = Facts::sound().with(timed_out);
    check(
        &facts,
        ConditionType::TypeChecked,
        "Unknown SchemaUnavailable",
        "no matched kind has a usable schema; not checked: apps/v1 Deployment (timeout)",
    );
    assert_eq!(
        get(&facts.compute(at(1)), ConditionType::Ready).reason,
        "Pending"
    );
}

/// Returns facts with four expressions, `n` of which do not compile. The type checker also reports these expressions.
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
fn condition_type_checked_ignores_expressions_that_do_not_compile() {
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
    // kube-controller-manager writes the same warning.
    assert_eq!(desired.expression_warnings.len(), 1);
    assert_eq!(desired.n_type_warnings, 0);

    check(
        &uncompiled(4),
        ConditionType::TypeChecked,
        "Unknown CompilationFailed",
        "no expression compiles, so there are no types to check",
    );

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
         Deployment); with failurePolicy Fail, a request that reaches the expression is denied; 1 kind checked; not \
         checked: spec.validations[0].expression (not compiled)",
    );
    assert_eq!(other.compute(at(1)).n_type_warnings, 1);
}

#[test]
fn ready_is_true_if_schema_is_permanently_unavailable() {
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
fn partial_type_check_is_used_if_there_is_no_earlier_verdict() {
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
    // A partial verdict without a finding does not replace a complete verdict.
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
fn type_checked_message_has_numbers_of_kinds() {
    let table: [(usize, usize, usize, &str, &str); 6] = [
        // Numbers of warnings, checked kinds and unchecked kinds; expected verdict; expected message.
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
            "no matched kind has a usable schema; not checked: apps/v1 Odd0 (no schema)",
        ),
        (
            1,
            2,
            0,
            "False ExpressionWarnings",
            "spec.validations[0].expression may fail when evaluated (text on apps/v1 Deployment); with \
             failurePolicy Fail, a request that reaches the expression is denied; 2 kinds checked",
        ),
        (
            3,
            1,
            1,
            "False ExpressionWarnings",
            "spec.validations[0].expression and 2 more may fail when evaluated (text on apps/v1 \
             Deployment); with failurePolicy Fail, a request that reaches the expression is denied; 1 of 2 kinds \
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
fn type_checked_message_shows_kinds_matched_by_wildcards() {
    let table: [(usize, usize, usize, &str, &str); 4] = [
        // Numbers of checked kinds by name, checked kinds by wildcard and unchecked kinds by wildcard; expected
        // verdict; expected message.
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
            "no matched kind has a usable schema; not checked: apps/v1 Odd0 (no schema)",
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
fn type_checked_message_does_not_count_kinds_beyond_limit() {
    // The message must not depend on the number of kinds beyond the limit, because each new CRD changes this number.
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
fn message_about_type_warning_does_not_claim_failure() {
    let first = "spec.validations[0].expression";
    let warned = with_severity(Severity::Warning, first, "undefined field 'x'");
    let facts = Facts::sound().with(|facts| facts.types.findings = vec![warned.clone()]);
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[0].expression may not work as intended (undefined field 'x'); 1 kind checked",
    );
    let failing = warning("spec.validations[1].expression", "undefined field 'y'");
    let facts = Facts::sound().with(|facts| facts.types.findings = vec![warned, failing]);
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[1].expression and 1 more may fail when evaluated (undefined field 'y' on \
         apps/v1 Deployment); with failurePolicy Fail, a request that reaches the expression is denied; 1 kind checked",
    );
}

#[test]
fn type_checked_message_shows_unchecked_params_and_groups() {
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
fn type_checked_message_shows_worst_consequence() {
    let message = |n: usize| {
        let mut findings = warning(&format!("spec.validations[{n}].messageExpression"), "x");
        findings.consequence = Consequence::OtherMessage;
        findings
    };
    let facts = Facts::sound().with(|facts| facts.types.findings = vec![message(0), message(1)]);
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[0].messageExpression and 1 more may fail when evaluated (x on apps/v1 Deployment); \
         a denied request gets a different message; no extra request is denied; 1 kind checked",
    );
    let facts = facts.with(|facts| {
        let denying = warning("spec.validations[2].expression", "y");
        facts.types.findings.push(denying);
    });
    check(
        &facts,
        ConditionType::TypeChecked,
        "False ExpressionWarnings",
        "spec.validations[2].expression and 2 more may fail when evaluated (y on apps/v1 Deployment); with \
         failurePolicy Fail, a request that reaches the expression is denied; 1 kind checked",
    );
}
