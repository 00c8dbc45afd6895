use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kubernetes::schema::Gvr;
use serde_json::{Value, json};

use super::counterfactuals;
use crate::admission::{
    Admission, AdmissionRequest, AuthorizerList, Binding, Object, ParamList, Recorder,
    ReviewContext,
};
use crate::compile::CompiledPolicy;

/// Returns the counterfactuals of `expression` for a sample object. The terms of each counterfactual are joined to a
/// string.
fn changes_of(expression: &str) -> Vec<String> {
    with_variables(&[], expression)
}

fn with_variables(variables: &[(&str, &str)], expression: &str) -> Vec<String> {
    let variables: Vec<Value> = (variables.iter())
        .map(|(name, expression)| json!({"name": name, "expression": expression}))
        .collect();
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "variables": variables,
            "validations": [{"expression": expression}],
        },
    }))
    .unwrap();
    let compiled = CompiledPolicy::new(&policy);
    assert!(compiled.findings().is_empty(), "{expression}");
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "a": 7, "b": "text", "c": [1, 2, 3], "d": true,
        "m": {"x": 1, "y": 9}, "l": [{"p": [1, 2]}, {"p": [3, 8]}, {"p": [4]}],
    });
    let request = AdmissionRequest::create(Gvr::new("", "v1", "pods"), Object::new(&object));
    let recorder = Arc::new(Recorder::default());
    let (params, namespaces) = (ParamList::default(), None);
    let authorizer = Arc::new(AuthorizerList::default());
    let mut context = ReviewContext::new(&params, &namespaces, authorizer);
    context.recorder = Some(Arc::clone(&recorder));
    let binding = serde_json::from_value(json!({
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }))
    .unwrap();
    let binding = Binding::new(&binding);
    drop(Admission::from_compiled(&compiled).review(&request, &[binding], &context));
    let recording = recorder.take();
    let index = compiled.expressions().len() - 1;
    let ast = compiled.expressions()[index].parsed().unwrap();
    let variables = compiled.variables();
    let is_true = recording[&(index, ast.root().index())].is_true;
    let counterfactuals = counterfactuals(ast, index, &recording, &variables, !is_true);
    let mut shown: Vec<String> = counterfactuals
        .shown
        .iter()
        .map(|terms| terms.join(" and "))
        .collect();
    shown.extend(
        (counterfactuals.n_more > 0).then(|| format!("and {} more", counterfactuals.n_more)),
    );
    shown
}

#[test]
fn counterfactuals_show_deciding_terms_with_operands() {
    let table: [(&str, &[&str]); 16] = [
        ("object.a <= 5", &["object.a <= 5 (object.a is 7)"]),
        ("object.a <= 9", &["object.a > 9 (object.a is 7)"]),
        ("!(object.a == 7)", &["object.a != 7 (object.a is 7)"]),
        (
            "object.d && object.a <= 5",
            &["object.a <= 5 (object.a is 7)"],
        ),
        (
            "object.a <= 5 && object.d",
            &["object.a <= 5 (object.a is 7) and object.d (not evaluated)"],
        ),
        (
            "object.a <= 5 || object.b == 'a'",
            &[
                "object.a <= 5 (object.a is 7)",
                "object.b == 'a' (object.b is \"text\")",
            ],
        ),
        (
            "(object.a <= 5 || !object.d) && object.b.startsWith('a')",
            &[
                "object.a <= 5 (object.a is 7) and object.b.startsWith('a') (not evaluated)",
                "!object.d and object.b.startsWith('a') (not evaluated)",
            ],
        ),
        // A counterfactual that only repeats the expression is not shown.
        ("has(object.e)", &[]),
        ("!has(object.a)", &[]),
        (
            "object.d ? object.a < 3 : true",
            &["object.a < 3 (object.a is 7)"],
        ),
        (
            "!object.d ? true : object.a < 3",
            &["object.a < 3 (object.a is 7)"],
        ),
        (
            "object.c.all(x, x < 3)",
            &["x < 3 for each x of object.c (fails for object.c[2])"],
        ),
        (
            "!object.c.exists(x, x == 2)",
            &["x != 2 for each x of object.c (fails for object.c[1])"],
        ),
        (
            "object.c.exists(x, x > 5)",
            &["x > 5 for some x of object.c"],
        ),
        ("object.c.exists_one(x, x > 1)", &[]),
        (
            "object.a in [1, 2]",
            &["object.a in [1, 2] (object.a is 7)"],
        ),
    ];
    for (expression, expect) in table {
        assert_eq!(changes_of(expression), expect, "{expression}");
    }
}

#[test]
fn counterfactuals_omit_values_without_text() {
    let check = "authorizer.group('apps').resource('deployments').check('list').allowed()";
    assert!(changes_of(check).is_empty());
    assert_eq!(changes_of(&format!("!{check}")), [check]);
    assert_eq!(
        changes_of(&format!("{check} && object.d")),
        [format!("{check} and object.d (not evaluated)")]
    );
}

#[test]
fn deciding_element_is_shown_by_index_or_key() {
    assert_eq!(
        changes_of("object.m.all(k, object.m[k] < 5)"),
        ["object.m[k] < 5 for each k of object.m (fails for object.m[\"y\"])"]
    );
    assert_eq!(
        changes_of("object.l.all(i, i.p.all(p, p < 5))"),
        [
            "p < 5 for each p of i.p (fails for i.p[1]) for each i of object.l (fails for object.l[1])"
        ]
    );
    // Several elements fail, so no single element determines the result.
    assert_eq!(
        changes_of("object.c.exists(x, x > 5)"),
        ["x > 5 for some x of object.c"]
    );
}

#[test]
fn counterfactuals_of_constants_are_empty() {
    for constant in [
        "false",
        "1 == 2",
        "object.d && false",
        "[1, 2].all(x, x > 5)",
        "false || (1 == 2 && object.d)",
        "true || object.d",
    ] {
        assert_eq!(changes_of(constant), [""; 0], "{constant}");
    }
    assert_eq!(
        changes_of("object.a <= 5 || false"),
        ["object.a <= 5 (object.a is 7)"]
    );
    assert_eq!(
        changes_of("[1, 2].exists(x, x == object.a)"),
        ["x == object.a for some x of [1, 2]"]
    );
}

#[test]
fn counterfactuals_beyond_limits_are_counted_or_dropped() {
    let of_number = |n: usize| format!("object.a == {n}");
    let any = |of: std::ops::Range<usize>| of.map(of_number).collect::<Vec<_>>().join(" || ");
    let first = |n: usize| format!("{} (object.a is 7)", of_number(n));
    let shown = |n: usize| vec![first(10), first(11), first(12), format!("and {n} more")];
    assert_eq!(changes_of(&any(10..15)), shown(2));
    assert_eq!(changes_of(&any(10..80)), shown(67));
    assert_eq!(changes_of(&["object.a == 1"; 4].join(" || ")), [first(1)]);
    // An operand cannot equal two values at the same time.
    let pair = "(object.a == 1 || object.a == 2)";
    assert_eq!(
        changes_of(&format!("{pair} && {pair}")),
        [first(1), first(2)]
    );
    assert_eq!(changes_of(&["object.a == 1"; 7].join(" && ")), [""; 0]);
    // Counterfactuals with the fewest terms are shown first.
    let all = format!("(object.b == 'a' && object.a == 1) || {}", any(10..14));
    assert_eq!(changes_of(&all), shown(2));
}

#[test]
fn counterfactuals_omit_null_tests_of_root_variables() {
    let table: [(&str, &[&str]); 4] = [
        (
            "object != null && object.a <= 5",
            &["object.a <= 5 (object.a is 7)"],
        ),
        (
            "!(object == null) && oldObject == null && object.a <= 5",
            &["object.a <= 5 (object.a is 7)"],
        ),
        (
            "object != null && (object.a <= 5 || request.operation == 'DELETE')",
            &[
                "object.a <= 5 (object.a is 7)",
                "request.operation == 'DELETE' (request.operation is \"CREATE\")",
            ],
        ),
        // `object.m != null` is listed with `still`, because a change of the request can make a field absent, but not
        // `object` null.
        (
            "object.m != null && object.m.x > 5",
            &["object.m.x > 5 (object.m.x is 1) and still object.m != null"],
        ),
    ];
    for (expression, counterfactuals) in table {
        assert_eq!(changes_of(expression), counterfactuals, "{expression}");
    }
}

#[test]
fn counterfactuals_of_nested_macros_show_deciding_elements() {
    assert_eq!(
        changes_of("object.l.all(x, x.p.all(y, y < 5))"),
        [
            "y < 5 for each y of x.p (fails for x.p[1]) for each x of object.l (fails for object.l[1])"
        ]
    );
}

#[test]
fn counterfactuals_list_terms_that_must_stay_true() {
    let table: [(&str, &[&str]); 14] = [
        // The first term becomes false if only `a` is removed. It remains true only if `b` is removed too, so it is
        // listed with `still`.
        (
            "(has(object.a) == has(object.b)) && (!has(object.a) || string(object.a) == object.b)",
            &[
                "!has(object.a) and still has(object.a) == has(object.b)",
                "string(object.a) == object.b (string(object.a) is \"7\", object.b is \"text\")",
            ],
        ),
        (
            "object.a >= 1 && object.a <= 5",
            &["object.a <= 5 (object.a is 7) and still object.a >= 1"],
        ),
        // `has(object.a)` is not listed, because the compared value is present before and after the change.
        (
            "has(object.a) && object.a <= 5",
            &["object.a <= 5 (object.a is 7)"],
        ),
        (
            "has(object.m) && has(object.m.x) && object.m.x > 5",
            &["object.m.x > 5 (object.m.x is 1)"],
        ),
        (
            "'x' in object.m && object.m['x'] > 5",
            &["object.m['x'] > 5 (object.m['x'] is 1)"],
        ),
        (
            "'x' in object.m && object.m == {'y': 9}",
            &["object.m == {…} (object.m is {\"x\": 1, \"y\": 9}) and still 'x' in object.m"],
        ),
        // `has(object.a)` and `!has(object.a)` are not shown together, because no object satisfies both.
        (
            "has(object.a) && (!has(object.a) || object.a == 1)",
            &["object.a == 1 (object.a is 7)"],
        ),
        (
            "object.m.y == 9 && (!has(object.m) || object.m.x > 5)",
            &["object.m.x > 5 (object.m.x is 1)"],
        ),
        // A presence test is not shown if another term implies it.
        (
            "has(object.a) && has(object.e) && object.e == object.a",
            &["has(object.e) and object.e == object.a (not evaluated)"],
        ),
        (
            "(!has(object.e) || object.a == 1) && object.b == 'x'",
            &["object.b == 'x' (object.b is \"text\")"],
        ),
        (
            "(has(object.e) || object.a > 1) && object.a < 5",
            &["object.a < 5 (object.a is 7) and still has(object.e) || (object.a > 1)"],
        ),
        (
            "object.c.exists(x, x == 1) && object.c[0] == 2",
            &["object.c[0] == 2 (object.c[0] is 1) and still x == 1 for some x of object.c"],
        ),
        (
            "object.a > 1 ? object.a < 5 : true",
            &["object.a < 5 (object.a is 7) and still object.a > 1"],
        ),
        (
            "object.?e.orValue(1) == 1 && (has(object.e) || object.a == 1)",
            &[
                "has(object.e) and still object.?e.orValue(1) == 1",
                "object.a == 1 (object.a is 7)",
            ],
        ),
    ];
    for (expression, expect) in table {
        assert_eq!(changes_of(expression), expect, "{expression}");
    }
}

#[test]
fn counterfactuals_include_conditions_on_variables_that_they_affect() {
    let variables = [("big", "object.a > 5"), ("text", "object.b == 'text'")];
    assert_eq!(
        with_variables(&variables, "variables.big && object.a < 3"),
        ["object.a < 3 (object.a is 7) and still variables.big"]
    );
    assert_eq!(
        with_variables(&variables, "variables.text && object.a < 3"),
        ["object.a < 3 (object.a is 7)"]
    );
}
