//! Tests of params lookups for bindings, and of their errors.

use super::*;

fn spec(fields: &Json) -> Json {
    let mut spec = json!({
        "matchConstraints": constraints(),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [],
    });
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn param(namespace: &str, name: &str) -> Object {
    Object::new(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"of": namespace}},
    }))
}

fn config_maps() -> ParamList {
    let objects = [("default", "b"), ("other", "a"), ("default", "a")];
    ParamList::new(
        true,
        objects
            .map(|(namespace, name)| param(namespace, name))
            .to_vec(),
    )
}

fn evaluated(reference: &Json, params: &ParamList) -> (ReviewOutcome, Vec<Option<String>>) {
    let bindings = [binding(&json!({"paramRef": reference}))];
    let outcome = review(&spec(&json!({})), &deployment(), &bindings, params);
    let params = outcome
        .evaluations
        .iter()
        .map(|e| e.params.clone())
        .collect();
    (outcome, params)
}

#[track_caller]
fn check(reference: &Json, expect: &[&str]) {
    let (outcome, params) = evaluated(reference, &config_maps());
    check_denial(&outcome, None);
    let params: Vec<_> = params.iter().map(|name| name.as_deref().unwrap()).collect();
    assert_eq!(params, expect);
}

#[track_caller]
fn check_error(reference: &Json, params: &ParamList, expect: &str) {
    let (outcome, _) = evaluated(reference, params);
    let message = format!(
        "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: \
         failed to configure binding: {expect}"
    );
    check_denial(&outcome, Some((422, "Invalid", &message)));
    assert_eq!(
        outcome.denial.unwrap().cause,
        format!("failed to configure binding: {expect}")
    );
}

#[test]
fn params_are_found_by_name_or_selector() {
    check(&json!({"name": "a"}), &["default/a"]);
    check(&json!({"name": "a", "namespace": "other"}), &["other/a"]);
    check(&json!({"selector": {}}), &["default/a", "default/b"]);
    check(&json!({"selector": {"matchLabels": {"of": "other"}}}), &[]);
    let selector = json!({"matchLabels": {"of": "other"}});
    check(
        &json!({"selector": selector, "namespace": "other"}),
        &["other/a"],
    );
}

#[test]
fn missing_params_deny_request_if_action_is_deny() {
    check(&json!({"name": "zz"}), &[]);
    check(
        &json!({"name": "zz", "parameterNotFoundAction": "Allow"}),
        &[],
    );
    let expect = "no params found for policy binding with `Deny` parameterNotFoundAction";
    for reference in [
        json!({"name": "zz"}),
        json!({"selector": {"matchLabels": {"x": "y"}}}),
    ] {
        let mut reference = reference;
        reference["parameterNotFoundAction"] = json!("Deny");
        check_error(&reference, &config_maps(), expect);
    }
}

#[test]
fn invalid_param_ref_is_error() {
    let params = config_maps();
    let both = json!({"name": "a", "selector": {}});
    check_error(
        &both,
        &params,
        "paramRef.name and paramRef.selector are mutually exclusive",
    );
    check_error(
        &json!({}),
        &params,
        "one of name or selector must be provided",
    );
    let wrong = json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}});
    check_error(
        &wrong,
        &params,
        "\"Bad\" is not a valid label selector operator",
    );
    let cluster = ParamList::new(false, vec![param("", "a")]);
    check_error(
        &json!({"name": "a", "namespace": "default"}),
        &cluster,
        "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
    );
}

#[test]
fn cluster_scoped_request_without_param_ref_namespace_is_denied() {
    let mut request = deployment();
    request.namespace.clear();
    let deny = |reference: Json| {
        let bindings = [binding(&json!({"paramRef": reference}))];
        let outcome = review(&spec(&json!({})), &request, &bindings, &config_maps());
        outcome.denial.map(|denial| denial.cause)
    };
    assert_eq!(
        deny(json!({"name": "a"})).unwrap(),
        "failed to configure binding: cannot use namespaced paramRef in policy binding that matches \
         cluster-scoped resources"
    );
    assert_eq!(deny(json!({"name": "a", "namespace": "default"})), None);
}

#[test]
fn binding_without_param_ref_is_evaluated_once() {
    let outcome = review(
        &spec(&json!({})),
        &deployment(),
        &[binding(&json!({}))],
        &config_maps(),
    );
    let params: Vec<_> = outcome.evaluations.iter().map(|e| &e.params).collect();
    assert_eq!(params, [&None]);
    // Without a paramKind in the policy, the paramRef is ignored.
    let spec = json!({"matchConstraints": constraints()});
    let reference = json!({"paramRef": {"name": "zz", "parameterNotFoundAction": "Deny"}});
    let outcome = review(&spec, &deployment(), &[binding(&reference)], &config_maps());
    check_denial(&outcome, None);
    assert_eq!(outcome.evaluations.len(), 1);
}

#[test]
fn error_of_params_denies_request_before_bindings_are_matched() {
    let namespaces = default_namespace();
    let params = config_maps();
    let authorizer = Arc::new(AuthorizerList::default());
    let mut context = ReviewContext::new(&params, &namespaces, authorizer);
    context.params = Err("not served".to_owned());
    let review = |fields: &Json| {
        let admission = admission(&spec(fields));
        admission.review(&deployment(), &[binding(&json!({}))], &context)
    };
    let message = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to \
                   configure policy: not served";
    let outcome = review(&json!({}));
    check_denial(&outcome, Some((422, "Invalid", message)));
    assert!(outcome.bindings.is_empty());
    check_denial(&review(&json!({"failurePolicy": "Ignore"})), None);
    let unknown = review(&json!({"failurePolicy": "Panic"}));
    assert_eq!(
        unknown.denial.unwrap().cause,
        "unrecognized failure policy: 'Panic'"
    );
}

#[test]
fn policy_without_constraints_denies_request() {
    let outcome = review(
        &json!({"validations": []}),
        &deployment(),
        &[],
        &config_maps(),
    );
    assert_eq!(
        outcome.denial.unwrap().cause,
        "failed to configure policy: policy contained no match constraints, a required field"
    );
}

#[test]
fn missing_namespace_denies_request() {
    let mut request = deployment();
    request.namespace = "zz".to_owned();
    let fields = json!({"failurePolicy": "Ignore"});
    let bindings = [binding(&json!({"validationActions": ["Warn"]}))];
    let outcome = review(&spec(&fields), &request, &bindings, &config_maps());
    check_denial(
        &outcome,
        Some((404, "NotFound", "namespaces \"zz\" not found")),
    );
    assert!(outcome.evaluations.is_empty());
}
