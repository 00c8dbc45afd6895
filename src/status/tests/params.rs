//! Tests of `ParamsResolved`, `Bound` and `ProbesPassed`.

use super::*;

#[test]
fn message_about_missing_param_kind_has_consequence() {
    let facts = Facts::sound().with(|facts| {
        facts.params = ParamKindState::NotFound {
            gvk: limit(),
            similar: Vec::new(),
        };
    });
    let denied = "paramKind rules.example.com/v1 ReplicaLimit is not served and no \
                  CustomResourceDefinition defines it; with failurePolicy Fail, every request that \
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
        "paramKind rules.example.com/v1 ReplicaLimit is not served and no \
         CustomResourceDefinition defines it (did you mean rules.example.com/v1 ReplicaLimits?); \
         with failurePolicy Ignore, no request is checked (\"failed to find resource referenced by \
         paramKind: 'rules.example.com/v1, Kind=ReplicaLimit'\")",
    );
}

#[test]
fn message_about_unserved_param_kind_has_cause() {
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
fn condition_params_resolved_depends_on_params_of_bindings() {
    let examined = |n_found, missing: &[MissingParams]| ParamsState::Examined {
        n_found,
        missing: missing.to_vec(),
    };
    let table = [
        (
            ParamsState::NotReferred,
            "True ParamKindServed",
            "; no binding refers to params",
        ),
        (
            ParamsState::Unread,
            "Unknown Pending",
            "; the params have not been read yet",
        ),
        (
            ParamsState::NotPermitted("grant it".into()),
            "Unknown NotPermitted",
            "; cannot determine whether the params of bindings exist; if they do not, \
             parameterNotFoundAction Deny denies every request that the binding matches: grant it",
        ),
        (
            ParamsState::BindingsNotPermitted,
            "Unknown NotPermitted",
            "; cannot determine which params are used, because bindings cannot be read (see Bound)",
        ),
        (
            examined(1, &[]),
            "True ParamsFound",
            ", and the params that bindings refer to exist",
        ),
        (
            examined(1, &[missing(true)]),
            "False ParamsNotFound",
            ", but these params do not exist: limits in namespace default (binding b); \
             parameterNotFoundAction Deny denies every request that the binding matches",
        ),
        (
            examined(0, &[missing(false)]),
            "True ParamKindServed",
            "; parameterNotFoundAction Allow skips requests, because these params do not exist: limits in \
             namespace default (binding b)",
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
fn condition_bound_depends_on_actions_of_bindings() {
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
        &Facts::sound().with(|facts| facts.bindings = BindingsState::NotPermitted),
        "Unknown NotPermitted",
        "vap-status-controller is not allowed to read bindings: grant it `list` and `watch` on \
         validatingadmissionpolicybindings",
    );
    check(
        &bound(&[]),
        "False NoBindings",
        "no ValidatingAdmissionPolicyBinding refers to the policy; the policy is not enforced",
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
        "bound by b (Audit); no binding denies requests; params is null for b (no paramRef)",
    );
    let mut broken = binding("Deny");
    broken.problem = Some("paramRef has both `name` and `selector`".into());
    check(
        &bound(&[binding("Deny"), broken.clone()]),
        "False BindingsInvalid",
        "the API server cannot use the binding b (paramRef has both `name` and `selector`); with failurePolicy Fail, \
         every request that this binding matches is denied",
    );
    // `Ready` does not require `Bound`.
    for facts in [bound(&[]), bound(&[broken])] {
        let desired = facts.compute(at(1));
        let ready = condition::find(&desired.conditions, ConditionType::Ready).unwrap();
        assert_eq!(ready.status, "True");
    }
}

#[test]
fn condition_ready_depends_on_probes() {
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
            ..ProbeFacts::default()
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
fn probes_passed_is_retained_only_during_transient_failures() {
    let with_probe = |pending: bool, is_transient: bool| {
        let cases = [("z".to_owned(), "no params".to_owned())];
        let probes = ProbesState::Known(vec![ProbeFacts {
            name: "p".into(),
            n_cases: 1,
            pending: if pending { cases.into() } else { Vec::new() },
            is_transient,
            ..ProbeFacts::default()
        }]);
        move |facts: &mut Facts| facts.probes = probes
    };
    let outcome = |pending, is_transient| {
        let before = Facts::sound().with(with_probe(false, false));
        let now = Facts::sound().with(with_probe(pending, is_transient));
        let desired = now.after(&before, at(1)).compute(at(2));
        let text = |type_| {
            let condition = condition::find(&desired.conditions, type_).unwrap();
            format!("{} {}", condition.status, condition.reason)
        };
        (
            text(ConditionType::ProbesPassed),
            text(ConditionType::Ready),
        )
    };
    let pair = |probes: &str, ready: &str| (probes.to_owned(), ready.to_owned());
    assert_eq!(
        outcome(false, false),
        pair("True ProbesPassed", "True Ready")
    );
    assert_eq!(outcome(true, true), pair("True ProbesPassed", "True Ready"));
    assert_eq!(
        outcome(true, false),
        pair("Unknown ProbesPending", "Unknown Pending")
    );
}

#[test]
fn probes_passed_message_shows_unreadable_probe() {
    let probes = ProbesState::Known(vec![ProbeFacts {
        name: "p".into(),
        problem: Some("its spec cannot be read".into()),
        ..ProbeFacts::default()
    }]);
    check(
        &Facts::sound().with(|facts| facts.probes = probes),
        ConditionType::ProbesPassed,
        "Unknown ProbesPending",
        "p: its spec cannot be read",
    );
}
