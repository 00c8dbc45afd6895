//! Tests of the values of `request`, `namespaceObject`, `authorizer`, `variables` and converted objects.

use super::super::visible;
use super::*;
use cel::value::Value;
use kubernetes::library::authz::{AuthorizerAnswer, AuthorizerDecision, AuthorizerRule};

/// Converts a value to JSON. The value must consist of strings, numbers, booleans, lists and maps.
fn json_of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::String(text) => json!(&**text),
        Value::List(list) => list.iter().map(|item| json_of(&item)).collect(),
        Value::Map(map) => {
            let entries = map.entries().unwrap().into_iter();
            let entries = entries.map(|(key, value)| (key.as_str().unwrap().to_owned(), value));
            entries
                .map(|(key, value)| (key, json_of(&value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_evaluation(spec: &Json, request: &AdmissionRequest, expect: &[&Decision]) -> Evaluation {
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
    let matched = (&request.gvr, &request.gvk);
    let evaluation = admission(spec).evaluate(request, matched, None, None, &context);
    let decisions: Vec<_> = evaluation.decisions.iter().collect();
    assert_eq!(decisions, expect, "{spec}");
    evaluation
}

/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go`, `CreateAdmissionRequest`.
#[test]
fn request_variable_omits_empty_fields() {
    let group = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let resource = json!({"group": "apps", "version": "v1", "resource": "deployments"});
    let mut request = deployment();
    let mut expected = json!({
        "uid": "", "kind": group, "resource": resource, "requestKind": group, "requestResource": resource,
        "name": "web", "namespace": "default", "operation": "CREATE", "userInfo": {}, "object": null,
        "oldObject": null, "dryRun": false,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    });
    let value = visible::request(&request, &request.gvr, &request.gvk, false);
    assert_eq!(json_of(&value), expected);

    request.subresource = "scale".to_owned();
    request.dry_run = true;
    request.user_info = UserInfo {
        username: "ann".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["a".to_owned(), "b".to_owned()],
        extra: [
            ("k".to_owned(), Some(vec!["v".to_owned()])),
            ("n".to_owned(), None),
        ]
        .into(),
    };
    request.name.clear();
    request.namespace.clear();
    let fields = expected.as_object_mut().unwrap();
    fields.remove("name");
    fields.remove("namespace");
    fields.insert("subResource".to_owned(), json!("scale"));
    fields.insert("requestSubResource".to_owned(), json!("scale"));
    fields.insert("dryRun".to_owned(), json!(true));
    fields.insert(
        "userInfo".to_owned(),
        json!({"username": "ann", "uid": "7", "groups": ["a", "b"], "extra": {"k": ["v"], "n": null}}),
    );
    fields.insert(
        "kind".to_owned(),
        json!({"group": "extensions", "version": "v1beta1", "kind": "Old"}),
    );
    fields.insert(
        "resource".to_owned(),
        json!({"group": "extensions", "version": "v1beta1", "resource": "olds"}),
    );
    let gvr = Gvr::new("extensions", "v1beta1", "olds");
    let gvk = Gvk::new("extensions", "v1beta1", "Old");
    let value = visible::request(&request, &gvr, &gvk, false);
    assert_eq!(json_of(&value), expected);
}

/// Source: apimachinery `pkg/apis/meta/v1/types.go`, `CreateOptions`, `UpdateOptions`, `DeleteOptions`.
#[test]
fn request_options_omit_empty_fields_and_fields_of_other_operations() {
    use Operation::{Connect, Create, Delete, Update};
    for (operation, given, expect) in [
        (Create, json!({}), json!({})),
        (
            Update,
            json!({"fieldManager": "m", "fieldValidation": "Strict", "dryRun": ["All"], "other": 1}),
            json!({"fieldManager": "m", "fieldValidation": "Strict", "dryRun": ["All"]}),
        ),
        (
            Create,
            json!({"fieldManager": "", "fieldValidation": "", "dryRun": [], "gracePeriodSeconds": 1}),
            json!({}),
        ),
        (
            Delete,
            json!({
                "gracePeriodSeconds": 0, "orphanDependents": null, "propagationPolicy": "Orphan", "dryRun": ["All"],
                "fieldManager": "m", "ignoreStoreReadErrorWithClusterBreakingPotential": false,
                "preconditions": {"uid": "u", "resourceVersion": "1", "name": "x"},
            }),
            json!({
                "gracePeriodSeconds": 0, "propagationPolicy": "Orphan", "dryRun": ["All"],
                "ignoreStoreReadErrorWithClusterBreakingPotential": false,
                "preconditions": {"uid": "u", "resourceVersion": "1"},
            }),
        ),
        (
            Delete,
            json!({"preconditions": {"uid": "u"}, "dryRun": []}),
            json!({"preconditions": {"uid": "u"}}),
        ),
        (Connect, json!({"fieldManager": "m"}), Json::Null),
    ] {
        let mut expect = expect;
        if let (Some(fields), Some(kind)) = (expect.as_object_mut(), operation.options_kind()) {
            fields.insert("kind".to_owned(), json!(kind));
            fields.insert("apiVersion".to_owned(), json!("meta.k8s.io/v1"));
        }
        let mut request = deployment();
        request.operation = operation;
        request.options = Some(Object::new(&given));
        let value = visible::request(&request, &request.gvr, &request.gvk, false);
        let options = json_of(&value)["options"].clone();
        assert_eq!(options, expect, "{operation} {given}");
    }
}

/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go`, `CreateNamespaceObject`; apimachinery
/// `pkg/apis/meta/v1/types.go`, `ObjectMeta`.
#[test]
fn namespace_object_omits_empty_fields() {
    let metadata = json!({
        "name": "n", "generateName": "g", "namespace": "m", "uid": "u", "resourceVersion": "5", "generation": 2,
        "creationTimestamp": "2024-01-02T03:04:05Z", "deletionTimestamp": "2024-01-02T03:04:06Z",
        "deletionGracePeriodSeconds": 30, "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f"],
    });
    let mut given = json!({
        "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active", "conditions": [
            {"type": "T", "status": "True", "lastTransitionTime": "2024-01-02T03:04:05.9+01:00", "reason": "R",
             "message": "M"},
            {"type": "U", "reason": ""},
        ]},
    });
    let mut expected = given.clone();
    expected["status"]["conditions"] = json!([
        {"type": "T", "status": "True", "lastTransitionTime": "2024-01-02T02:04:05Z", "reason": "R", "message": "M"},
        {"type": "U", "status": "", "lastTransitionTime": null},
    ]);
    for (name, value) in [
        ("selfLink", json!("/n")),
        ("ownerReferences", json!([{"name": "o"}])),
        ("managedFields", json!([{"manager": "m"}])),
    ] {
        given["metadata"][name] = value;
    }
    assert_eq!(json_of(&visible::namespace(&given, false, true)), expected);
    expected["metadata"] = given["metadata"].clone();
    assert_eq!(json_of(&visible::namespace(&given, true, true)), expected);

    let bare = json!({"metadata": {}, "spec": {}, "status": {}});
    let empty = json!({
        "metadata": {"name": "", "generation": 0, "labels": {}, "annotations": {}, "finalizers": [], "selfLink": "",
                     "ownerReferences": [], "managedFields": []},
        "spec": {"finalizers": []},
        "status": {"phase": "", "conditions": []},
    });
    for given in [&json!({}), &bare, &empty] {
        for whole in [false, true] {
            assert_eq!(
                json_of(&visible::namespace(given, whole, true)),
                bare,
                "{given}"
            );
            let mut with_null = bare.clone();
            with_null["metadata"]["creationTimestamp"] = Json::Null;
            assert_eq!(
                json_of(&visible::namespace(given, whole, false)),
                with_null,
                "{given}"
            );
        }
    }
}

#[test]
fn converted_request_and_objects_have_the_matched_kind() {
    let mut request = deployment();
    request.old_object = request.object.clone();
    request.operation = Operation::Update;
    let converted = (
        &Gvr::new("apps", "v1beta1", "deployments"),
        &Gvk::new("apps", "v1beta1", "Deployment"),
    );
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
    for (matched, version) in [((&request.gvr, &request.gvk), "v1"), (converted, "v1beta1")] {
        for expression in [
            "object.apiVersion == 'apps/VERSION' && object.kind == 'Deployment' && object.metadata.name == 'web'",
            "oldObject.apiVersion == 'apps/VERSION' && oldObject.metadata.labels.app == 'web'",
            "request.kind.version == 'VERSION' && request.requestKind.version == 'v1'",
            "request.resource.version == 'VERSION' && request.requestResource.version == 'v1'",
        ] {
            let expression = expression.replace("VERSION", version);
            let admission = admission(&json!({"validations": [{"expression": expression}]}));
            let evaluation = admission.evaluate(&request, matched, None, None, &context);
            assert_eq!(
                evaluation.decisions,
                [Decision::admit()],
                "{expression}: {evaluation:?}"
            );
        }
    }
}

#[test]
fn authorizer_checks_user_and_resource_of_request() {
    let text = |text: &str| Some(text.to_owned());
    let rule = AuthorizerRule {
        user: text("ann"),
        verb: text("create"),
        group: text("apps"),
        resource: text("deployments"),
        subresource: text("scale"),
        namespace: text("default"),
        name: text("web"),
        answer: AuthorizerAnswer {
            decision: AuthorizerDecision::Allow,
            ..AuthorizerAnswer::default()
        },
        ..AuthorizerRule::default()
    };
    let mut request = deployment();
    request.subresource = "scale".to_owned();
    request.user_info.username = "ann".to_owned();
    let expression = "authorizer.requestResource.check('create').allowed()";
    let is_allowed = |request: &AdmissionRequest| {
        let params = ParamList::default();
        let authorizer = AuthorizerList(vec![rule.clone()]);
        let context = ReviewContext::new(&params, &None, Arc::new(authorizer));
        let matched = (&request.gvr, &request.gvk);
        let admission = admission(&json!({"validations": [{"expression": expression}]}));
        let evaluation = admission.evaluate(request, matched, None, None, &context);
        evaluation.decisions == [Decision::admit()]
    };
    assert!(is_allowed(&request));
    let changes: [fn(&mut AdmissionRequest); 6] = [
        |request| request.subresource.clear(),
        |request| request.user_info.username = "bob".to_owned(),
        |request| request.name = "api".to_owned(),
        |request| request.namespace = "other".to_owned(),
        |request| request.gvr.group = "extensions".into(),
        |request| request.gvr.resource = "replicasets".into(),
    ];
    for (n, change) in changes.iter().enumerate() {
        let mut request = request.clone();
        change(&mut request);
        assert!(!is_allowed(&request), "change {n}");
    }
}

/// Source: `k8s.io/apiserver` `pkg/cel/lazy/lazy.go`, `MapValue`.
#[test]
fn variables_map_iterates_over_values_and_is_indexed_by_name() {
    let admitted = Decision::admit();
    let variables = json!([
        {"name": "a", "expression": "'x'"},
        {"name": "b", "expression": "'y'"},
    ]);
    for expression in [
        "dyn(variables).exists(v, v == 'x') && dyn(variables).exists(v, v == 'y')",
        "dyn(variables).all(v, v != 'a' && v != 'b')",
        "dyn(variables)['b'] == 'y'",
    ] {
        let spec = json!({"variables": variables, "validations": [{"expression": expression}]});
        check_evaluation(&spec, &deployment(), &[&admitted]);
    }
    for (expression, error) in [
        ("dyn(variables)[1] == 'x'", "no such overload"),
        ("dyn(variables) == {'a': 'x', 'b': 'y'}", "no such overload"),
        ("'a' in dyn(variables)", "no such overload"),
        ("dyn(variables)['c'] == 'x'", "no such key: c"),
        ("dyn(variables)['__bad__'] == 'x'", "no such key: __bad__"),
        ("dyn(variables).c == 'x'", "no such key: c"),
    ] {
        let spec = json!({"variables": variables, "validations": [{"expression": expression}]});
        let failed = Decision {
            action: Action::Deny,
            evaluation: EvaluationResult::Error,
            message: format!("expression '{expression}' resulted in error: {error}"),
            ..Decision::admit()
        };
        check_evaluation(&spec, &deployment(), &[&failed]);
    }
}

/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go`, `Validate`.
#[test]
fn action_of_audit_annotation_depends_on_value() {
    use AuditAnnotationAction::{Error, Exclude, Publish};
    for (failure_policy, expression, action, value) in [
        ("Fail", "'a'", Publish, "a"),
        ("Fail", "' a b '", Publish, "a b"),
        ("Fail", "''", Exclude, ""),
        ("Fail", "'  '", Exclude, ""),
        ("Fail", "null", Exclude, ""),
        ("Fail", "object.metadata.x", Error, ""),
        ("Ignore", "object.metadata.x", Exclude, ""),
    ] {
        let spec = json!({
            "failurePolicy": failure_policy,
            "auditAnnotations": [{"key": "k", "valueExpression": expression}],
        });
        let evaluation = check_evaluation(&spec, &deployment(), &[]);
        let annotations: Vec<_> = evaluation
            .audit_annotations
            .iter()
            .map(|it| (&*it.key, it.action, &*it.value, !it.error.is_empty()))
            .collect();
        let has_error = expression.contains("object");
        assert_eq!(
            annotations,
            [("k", action, value, has_error)],
            "{expression}"
        );
    }
}

#[test]
fn actions_and_results_have_names() {
    assert_eq!(
        [Action::Admit, Action::Deny].map(Action::as_str),
        ["admit", "deny"]
    );
    let results = [
        EvaluationResult::Admit,
        EvaluationResult::Error,
        EvaluationResult::Deny,
    ];
    assert_eq!(
        results.map(EvaluationResult::as_str),
        ["admit", "error", "deny"]
    );
    let actions = [
        AuditAnnotationAction::Publish,
        AuditAnnotationAction::Error,
        AuditAnnotationAction::Exclude,
    ];
    assert_eq!(
        actions.map(AuditAnnotationAction::as_str),
        ["publish", "error", "exclude"]
    );
}

#[test]
fn namespaced_name_of_cluster_scoped_object_has_no_namespace() {
    let object = Object::new(&json!({"metadata": {"name": "a"}}));
    assert_eq!(object.namespaced_name(), "a");
    let object =
        Object::new(&json!({"metadata": {"name": "a", "namespace": "b", "generateName": "g"}}));
    assert_eq!(object.namespaced_name(), "b/a");
    assert_eq!(object.generate_name(), "g");
}
