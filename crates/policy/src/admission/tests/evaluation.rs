//! Tests of variables, budgets and limits in evaluations.

use super::*;
use cel::value::Exceeded;
use kubernetes::library::authz::{AuthorizerAnswer, AuthorizerDecision, AuthorizerRule};

/// Evaluates a policy with `spec` for [`deployment`].
fn evaluate(spec: &Json) -> Evaluation {
    let request = deployment();
    let params = ParamList::default();
    let namespaces = default_namespace();
    let context = ReviewContext::new(&params, &namespaces, Arc::new(AuthorizerList::default()));
    let matched = (&request.gvr, &request.gvk);
    admission(spec).evaluate(&request, matched, None, namespaces.as_ref(), &context)
}

fn spec(variables: &[(String, String)], expression: &str) -> Json {
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, expression)| json!({"name": name, "expression": expression}))
        .collect();
    json!({"variables": variables, "validations": [{"expression": expression}]})
}

/// Returns variables `v0`, `v1` and so on. The expression of `v0` is `first`. Each other expression is the result of
/// `step` for a reference to the preceding variable.
fn chain(length: usize, first: &str, step: impl Fn(&str) -> String) -> Vec<(String, String)> {
    let one = |n: usize| match n.checked_sub(1) {
        None => ("v0".to_owned(), first.to_owned()),
        Some(before) => (format!("v{n}"), step(&format!("variables.v{before}"))),
    };
    (0..length).map(one).collect()
}

#[track_caller]
fn decision(evaluation: &Evaluation) -> &Decision {
    let [decision] = &evaluation.decisions[..] else {
        panic!("one decision: {evaluation:?}")
    };
    decision
}

#[test]
fn variables_are_evaluated_once_and_only_if_read() {
    let used = |expression: &str| {
        let variables = [
            ("a".to_owned(), "lists.range(100).sum()".to_owned()),
            ("b".to_owned(), "1 / 0".to_owned()),
        ];
        let evaluation = evaluate(&spec(&variables, expression));
        assert_eq!(decision(&evaluation), &Decision::admit(), "{expression}");
        evaluation.costs.validations.unwrap().used.unwrap()
    };
    let (none, once, twice) = (
        used("true"),
        used("variables.a > 0"),
        used("variables.a > 0 && variables.a > 1"),
    );
    assert_eq!(none, 0);
    assert!(once > 20 && twice < once + 10, "{once} {twice}");
}

#[test]
fn variable_that_reads_itself_fails() {
    for cycle in [
        [("a", "1"), ("a", "variables.a + 1"), ("b", "2")],
        [("a", "1"), ("b", "variables.a"), ("a", "variables.b")],
    ] {
        let variables = cycle.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let evaluation = evaluate(&spec(&variables, "variables.a == 1"));
        let message = &decision(&evaluation).message;
        assert!(message.contains("it reads itself"), "{message}");
    }
}

#[test]
fn variable_chain_beyond_depth_limit_has_no_decision() {
    let add = |before: &str| format!("{before} + 1");
    let evaluation = evaluate(&spec(&chain(400, "1", add), "variables.v399 == 400"));
    assert_eq!(decision(&evaluation), &Decision::admit());
    let evaluation = evaluate(&spec(&chain(3_000, "1", add), "variables.v2999 == 3000"));
    assert_eq!(evaluation.exceeded, Some(Exceeded::VariableDepth));
}

#[test]
fn expression_beyond_limit_on_quantity_digits_has_no_decision() {
    let is_quantity = format!("isQuantity('{}')", "9".repeat(10_001));
    for (expression, expected) in [
        (
            "quantity('9e10000').isLessThan(quantity('1'))",
            Exceeded::QuantityDigits,
        ),
        (
            "quantity('9e10000').isLessThan(quantity('1')) || true",
            Exceeded::QuantityDigits,
        ),
        (&*is_quantity, Exceeded::QuantityDigits),
    ] {
        let mut spec = spec(&[], expression);
        for failure_policy in ["Fail", "Ignore"] {
            spec["failurePolicy"] = json!(failure_policy);
            let evaluation = evaluate(&spec);
            assert_eq!(evaluation.exceeded, Some(expected), "{expression}");
        }
    }
}

#[test]
fn comparison_of_deeply_nested_values_exceeds_step_limit() {
    let wrap = |before: &str| format!("[{before}, {before}]");
    // The list has 2^40 nested elements. An evaluation that traverses them does not end in reasonable time.
    let evaluation = evaluate(&spec(&chain(40, "1", wrap), "variables.v39.size() == 2"));
    assert_eq!(decision(&evaluation), &Decision::admit());
    // The comparison has to traverse all elements, so it must end with an error. Upstream's comparison does not end.
    let evaluation = evaluate(&spec(
        &chain(40, "1", wrap),
        "variables.v39 == variables.v39",
    ));
    assert_eq!(evaluation.exceeded, Some(Exceeded::Steps(10_000_000)));
    assert_eq!(evaluation.decisions, []);
    // With this length, the type of the list is within the nesting limit. A longer chain does not compile.
    let evaluation = evaluate(&spec(&chain(240, "1", wrap), "variables.v239.size() == 2"));
    assert_eq!(decision(&evaluation), &Decision::admit());
    let evaluation = evaluate(&spec(
        &chain(1_000, "1", wrap),
        "variables.v999.size() == 2",
    ));
    let decided = decision(&evaluation);
    assert_eq!(decided.evaluation, EvaluationResult::Error);
    assert!(
        decided.message.contains("has more than 250 parts"),
        "{}",
        decided.message
    );
}

#[test]
fn variables_map_equals_itself_inside_a_variable() {
    let variables = [("a".to_owned(), "dyn(variables)".to_owned())];
    let evaluation = evaluate(&spec(&variables, "variables.a == variables"));
    assert_eq!(decision(&evaluation), &Decision::admit());
}

#[test]
fn cost_does_not_depend_on_unread_fields() {
    let annotations: serde_json::Map<_, _> = (0..10_000)
        .map(|n| (format!("key-{n}"), json!("x".repeat(100))))
        .collect();
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": annotations},
    });
    let request = AdmissionRequest::create(Gvr::new("", "v1", "configmaps"), Object::new(&object));
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
    let spec = json!({"validations": [{"expression": "object.metadata.name == 'a'"}]});
    let admission = admission(&spec);
    let matched = (&request.gvr, &request.gvk);
    let evaluation = admission.evaluate(&request, matched, None, None, &context);
    assert_eq!(decision(&evaluation), &Decision::admit());
    assert_eq!(evaluation.costs.validations.unwrap().used, Ok(4));
}

#[test]
fn syntax_error_has_api_server_wording() {
    let evaluation = evaluate(&spec(&[], "size(object"));
    let message = &decision(&evaluation).message;
    assert!(message.contains("missing ')' at '<EOF>'"), "{message}");

    let variables = [("a".to_owned(), "size('text'".to_owned())];
    let evaluation = evaluate(&spec(&variables, "variables.a == 4"));
    let message = &decision(&evaluation).message;
    let in_variable = "fails to compile: compilation failed: ERROR: <input>:1:12: Syntax error: \
         missing ')' at '<EOF>'";
    assert!(message.contains(in_variable), "{message}");
}

#[test]
fn comparisons_of_policy_share_step_limit() {
    let wrap = |before: &str| format!("[{before}, {before}]");
    let mut spec = spec(&chain(17, "1", wrap), "true");
    // One comparison is fast enough, but a thousand would take minutes.
    let validation = json!({"expression": "variables.v16 == [variables.v15, variables.v15]"});
    spec["validations"] = Json::Array(vec![validation; 1_000]);
    let evaluation = evaluate(&spec);
    assert_eq!(evaluation.exceeded, Some(Exceeded::Steps(10_000_000)));
    assert_eq!(evaluation.decisions, []);
}

/// Returns a policy with two validations. The first validation needs too much memory, and the second validation is
/// false.
fn growing(failure_policy: &str, expression: &str) -> Json {
    let mut spec = spec(
        &[("x".to_owned(), expression.to_owned())],
        "variables.x.size() > 0 || true",
    );
    spec["failurePolicy"] = json!(failure_policy);
    spec["validations"]
        .as_array_mut()
        .unwrap()
        .push(json!({"expression": "false"}));
    spec
}

#[test]
fn evaluation_that_exceeds_memory_has_no_decision() {
    let doubled = format!("['aaaa']{}", ".map(x, dyn(x) + dyn(x))".repeat(31));
    let joined = format!("[0]{}", ".map(x, [x, x])".repeat(4));
    let padded = "'a'.replace('', ['a'].map(x, dyn(x) + x).join())";
    for failure_policy in ["Fail", "Ignore", "Other"] {
        let evaluation = evaluate(&growing(failure_policy, &doubled));
        assert_eq!(evaluation.exceeded, Some(Exceeded::Memory(32 << 20)));
        assert_eq!(evaluation.decisions, []);
        for small in [&*joined, padded] {
            let evaluation = evaluate(&growing(failure_policy, small));
            assert_eq!(evaluation.exceeded, None);
            assert_eq!(evaluation.decisions.len(), 2);
        }
    }
}

#[test]
fn review_that_exceeds_memory_has_no_decision() {
    let mut spec = growing(
        "Fail",
        &format!("['aaaa']{}", ".map(x, dyn(x) + dyn(x))".repeat(31)),
    );
    spec["matchConstraints"] = json!({"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
        "operations": ["*"], "resources": ["*"]}]});
    let params = ParamList::default();
    let namespace = super::default_namespace();
    let context = ReviewContext::new(&params, &namespace, Arc::new(AuthorizerList::default()));
    let outcome = admission(&spec).review(
        &super::deployment(),
        &[super::binding(&json!({}))],
        &context,
    );
    assert_eq!(outcome.exceeded, Some(Exceeded::Memory(32 << 20)));
    assert_eq!(outcome.denial, None);
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.evaluations, []);
    assert_eq!(outcome.errors, [""; 0]);
}

#[test]
fn total_size_of_decision_messages_is_limited() {
    // The error message of each validation contains the large key.
    let mut spec = spec(&[], "true");
    let validation = json!({"expression": "{'a': 1}[object.metadata.annotations.large] == 1"});
    spec["validations"] = Json::Array(vec![validation; 1_000]);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": {"large": "x".repeat(200_000)}},
    });
    let request = AdmissionRequest::create(Gvr::new("", "v1", "configmaps"), Object::new(&object));
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
    let matched = (&request.gvr, &request.gvk);
    let evaluation = admission(&spec).evaluate(&request, matched, None, None, &context);
    assert_eq!(evaluation.exceeded, Some(Exceeded::Memory(32 << 20)));
}

#[test]
fn recorder_does_not_evaluate_lazy_variables() {
    let spec = spec(
        &[("limit".to_owned(), "1 / 0 == 1".to_owned())],
        "dyn(variables).limit == true || true",
    );
    let recorder = Arc::new(Recorder::default());
    let evaluate_with = |recorder: Option<Arc<Recorder>>| {
        let params = ParamList::default();
        let authorizer = Arc::new(AuthorizerList::default());
        let mut context = ReviewContext::new(&params, &None, authorizer);
        context.recorder = recorder;
        let request = super::deployment();
        let matched = (&request.gvr, &request.gvk);
        admission(&spec).evaluate(&request, matched, None, None, &context)
    };
    let plain = evaluate_with(None);
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            done.send(evaluate_with(Some(Arc::clone(&recorder))))
                .unwrap();
        });
        // If the recorder evaluated variables, it would deadlock. The test process could then not exit normally, so it
        // is aborted.
        let recorded = is_done.recv_timeout(std::time::Duration::from_secs(60));
        let Ok(recorded) = recorded else {
            eprintln!("the recorder waits for itself");
            std::process::abort();
        };
        assert_eq!(recorded, plain);
    });
    assert!(!recorder.take().is_empty());
}

/// Source: results of `parity/oracle admit`.
#[test]
fn object_equals_params_with_same_content() {
    let expressions = [
        ("object == params", true),
        ("params == object", true),
        ("object in [params]", true),
        ("[object, params].distinct().size() == 1", true),
        ("{'o': object} == {'o': params}", true),
        ("oldObject == params", false),
        ("params == null", false),
    ];
    let same = json!({"apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "a"}, "data": {"n": "1"}});
    let mut other = same.clone();
    other["data"]["n"] = json!("2");
    for (param, is_same) in [(&same, true), (&other, false)] {
        let gvr = Gvr::new("example.com", "v1", "limits");
        let request = AdmissionRequest::create(gvr, Object::new(&same));
        let params = ParamList::default();
        let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
        let matched = (&request.gvr, &request.gvk);
        let param = Object::new(param);
        for (expression, holds) in expressions {
            let spec = json!({
                "paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"},
                "validations": [{"expression": expression}],
            });
            let admission = admission(&spec);
            let evaluation = admission.evaluate(&request, matched, Some(&param), None, &context);
            let holds = holds && is_same;
            let is_admitted = *decision(&evaluation) == Decision::admit();
            assert_eq!(is_admitted, holds, "{expression}: {evaluation:?}");
        }
    }
}

/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/dispatcher.go` (`wrappedParam`), and results of
/// `parity/oracle admit`.
#[test]
fn params_have_api_version_and_kind() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("example.com/v1", "Limit"),
    ] {
        let request = deployment();
        let params = ParamList::default();
        let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
        let matched = (&request.gvr, &request.gvk);
        let param = Object::new(
            &json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}),
        );
        for expression in [
            "has(params.kind)",
            "has(params.apiVersion)",
            "size(params) == 3",
        ] {
            let spec = json!({
                "paramKind": {"apiVersion": api_version, "kind": kind},
                "validations": [{"expression": expression}],
            });
            let evaluation =
                admission(&spec).evaluate(&request, matched, Some(&param), None, &context);
            let decision = decision(&evaluation);
            assert_eq!(*decision, Decision::admit(), "{kind}: {expression}");
        }
    }
}

/// Source: results of `parity/oracle admit`.
#[test]
fn extra_values_of_user_may_be_null() {
    let mut request = deployment();
    request.user_info.extra = [("k".to_owned(), None), ("l".to_owned(), Some(Vec::new()))].into();
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
    let matched = (&request.gvr, &request.gvk);
    for expression in [
        "request.userInfo.extra.l == []",
        "!(request.userInfo.extra.k == [])",
        "dyn(request.userInfo.extra.k) == null",
        "has(request.userInfo.extra.k)",
    ] {
        let admission = admission(&json!({"validations": [{"expression": expression}]}));
        let evaluation = admission.evaluate(&request, matched, None, None, &context);
        assert_eq!(decision(&evaluation), &Decision::admit(), "{expression}");
    }
}

/// A selector that cannot be parsed is dropped from the check without an error.
///
/// Source: k8s.io/apiserver `pkg/cel/library/authz.go`, `resourceCheckVal.Authorize`; results of `parity/oracle admit`.
#[test]
fn invalid_selector_in_authorizer_check_is_dropped() {
    let request = deployment();
    let params = ParamList::default();
    let authorizer = AuthorizerList(vec![AuthorizerRule {
        answer: AuthorizerAnswer {
            decision: AuthorizerDecision::Allow,
            ..AuthorizerAnswer::default()
        },
        ..AuthorizerRule::default()
    }]);
    let context = ReviewContext::new(&params, &None, Arc::new(authorizer));
    let matched = (&request.gvr, &request.gvk);
    for selector in ["a=b", "!", "a in (b", "", "a,b=c", "bad key=1"] {
        for function in ["fieldSelector", "labelSelector"] {
            let check = format!(
                "authorizer.group('').resource('pods').{function}('{selector}').check('list')"
            );
            let expression = format!("{check}.allowed() && !{check}.errored()");
            let admission = admission(&json!({"validations": [{"expression": expression}]}));
            let evaluation = admission.evaluate(&request, matched, None, None, &context);
            assert_eq!(decision(&evaluation), &Decision::admit(), "{expression}");
        }
    }
}
