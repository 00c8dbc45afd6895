//! Tests of Go values. The same expressions are evaluated in Kubernetes 1.36, where objects are unstructured, and in
//! 1.37.
//!
//! The expected results are those of upstream's dispatcher in both versions.

use super::*;
use kubernetes::defaulting;
use kubernetes::version::KubernetesVersion;

/// An expression and its results in Kubernetes 1.36 and 1.37.
type Case = (&'static str, &'static str, &'static str);

const DEPLOYMENT: &[Case] = &[
    ("object == oldObject", "false", "true"),
    (
        "object.spec.template.spec.containers[0].resources == oldObject.spec.template.spec.containers[0].resources",
        "false",
        "true",
    ),
    (
        "object.spec.template.spec.containers[0].resources.limits == oldObject.spec.template.spec.containers[0].resources.limits",
        "false",
        "false",
    ),
    (
        "object.spec.template.spec.securityContext == object.spec.template.spec.containers[0].securityContext",
        "true",
        "false",
    ),
    ("object.spec == 'x'", "false", "no such overload"),
    ("object.spec == null", "false", "false"),
    ("dyn(1) in request.userInfo.groups", "false", "false"),
    ("dyn(request) == dyn(object)", "false", "false"),
    (
        "dyn(request.userInfo.extra.k)[0u] == 'v'",
        "true",
        "unsupported index type: types.Uint",
    ),
    (
        "object[request.userInfo] == 1",
        "invalid qualifier type: map[string]interface {}",
        "invalid qualifier type: *common.reflectSchemalessTypedStruct",
    ),
    (
        "object.spec.selector == {'matchLabels': {'app': 'web'}}",
        "true",
        "true",
    ),
    (
        "{'matchLabels': {'app': 'web'}} == object.spec.selector",
        "true",
        "true",
    ),
    (
        "object.spec.selector == {'matchLabels': 1}",
        "false",
        "no such overload",
    ),
    (
        "{'matchLabels': 1} == object.spec.selector",
        "false",
        "false",
    ),
    (
        "object.spec.selector == {'matchLabels': null}",
        "false",
        "no such overload",
    ),
    ("object.metadata.labels == null", "false", "false"),
    (
        "object.metadata.finalizers == ['x/y', 'z/w']",
        "true",
        "true",
    ),
    ("[object.metadata] == [1]", "false", "true"),
    ("{'a': object.spec} == {'a': 1}", "false", "true"),
    (
        "1 in object.metadata.labels",
        "false",
        "unsupported map key type: types.Int",
    ),
    (
        "1 in object.metadata",
        "false",
        "unsupported map key type: types.Int",
    ),
    (
        "null in object.metadata.labels",
        "false",
        "unsupported map key type: types.Null",
    ),
    (
        "object.metadata in object",
        "false",
        "unsupported map key type: *common.reflectSchemalessTypedStruct",
    ),
    ("object.spec in [object.spec]", "true", "true"),
    (
        "object.metadata.labels[1] == 'a'",
        "no such key: 1",
        "unsupported map key type: types.Int",
    ),
    (
        "object.metadata.labels['zzz'] == 'a'",
        "no such key: zzz",
        "no such key: zzz",
    ),
    (
        "object.metadata.zzz == 'a'",
        "no such key: zzz",
        "no such key: zzz",
    ),
    (
        "object.spec.template.spec.containers[0u].name == 'a'",
        "true",
        "unsupported index type: types.Uint",
    ),
    (
        "object.spec.template.spec.containers[?0u].hasValue()",
        "true",
        "true",
    ),
    (
        "object.spec.template.spec.containers[1.5].name == 'a'",
        "unsupported index value 1.5 in list",
        "unsupported index value 1.5 in list",
    ),
    (
        "object.spec.template.spec.containers[9].name == 'a'",
        "index out of bounds: 9",
        "index out of bounds: 9",
    ),
    ("size(object.spec.selector) == 1", "true", "true"),
    (
        "optional.ofNonZeroValue(object.status).hasValue()",
        "false",
        "true",
    ),
    (
        "dyn(object.spec.template.spec.containers + [])[0u].name == 'a'",
        "true",
        "true",
    ),
    (
        "dyn([] + object.spec.template.spec.containers)[0u].name == 'a'",
        "true",
        "unsupported index type: types.Uint",
    ),
    (
        "[object.spec.selector, dyn({'matchLabels': {'app': 'web'}})].distinct().size() == 1",
        "true",
        "true",
    ),
    (
        "object.spec.template.spec.containers.map(c, c.resources).distinct().size() == 1",
        "false",
        "true",
    ),
    (
        "sets.contains(object.spec.template.spec.containers, [1])",
        "false",
        "false",
    ),
    (
        "object.spec.template.spec.containers.indexOf(1) == -1",
        "true",
        "true",
    ),
    (
        "object.spec.template.spec.containers[0].command.join(' ') == 'sh -c'",
        "true",
        "true",
    ),
    (
        "object.spec.strategy.rollingUpdate.maxUnavailable == 1",
        "true",
        "true",
    ),
    (
        "'%s'.format([object.spec.selector]) == '{\"matchLabels\": {\"app\": \"web\"}}'",
        "false",
        "false",
    ),
    ("object.metadata.labels.all(k, v, k != v)", "true", "true"),
    (
        "object[object.spec] == 1",
        "invalid qualifier type: map[string]interface {}",
        "invalid qualifier type: *common.reflectSchemalessTypedStruct",
    ),
    (
        "object[object.metadata.labels] == 1",
        "invalid qualifier type: map[string]interface {}",
        "invalid qualifier type: *common.reflectSchemalessTypedMap",
    ),
    (
        "object[object.spec.template.spec.containers] == 1",
        "invalid qualifier type: []interface {}",
        "invalid qualifier type: *common.reflectSchemalessTypedList",
    ),
    (
        "object[request.options] == 1",
        "invalid qualifier type: map[string]interface {}",
        "invalid qualifier type: *types.baseMap",
    ),
    ("request.kind == request.requestKind", "true", "true"),
    (
        "dyn(request.kind) == dyn(request.resource)",
        "false",
        "false",
    ),
    (
        "dyn(request.kind) == {'group': 'apps', 'version': 'v1', 'kind': 'Deployment'}",
        "true",
        "true",
    ),
    (
        "dyn(request.userInfo.groups) == 1",
        "false",
        "no such overload",
    ),
    (
        "dyn(request.userInfo.groups)[0u] == 'dev'",
        "true",
        "unsupported index type: types.Uint",
    ),
    ("request.options == 1", "false", "false"),
    (
        "dyn(1) in request.userInfo.extra",
        "false",
        "unsupported map key type: types.Int",
    ),
    ("1 in request.options", "false", "false"),
    (
        "dyn(namespaceObject.metadata) == 1",
        "false",
        "no such overload",
    ),
    (
        "namespaceObject.metadata.labels == {'env': 'prod'}",
        "true",
        "true",
    ),
    (
        "google.protobuf.Value{struct_value: object.metadata.labels} == {}",
        "false",
        "field type conversion error for google.protobuf.Value.struct_value value type: type conversion error from 'map(dyn, dyn)' to '*structpb.Struct'",
    ),
    (
        "google.protobuf.Value{list_value: object.metadata.finalizers} == []",
        "false",
        "field type conversion error for google.protobuf.Value.list_value value type: type conversion error from 'list(dyn)' to '*structpb.ListValue'",
    ),
    (
        "google.protobuf.Value{struct_value: object.spec} == {}",
        "false",
        "field type conversion error for google.protobuf.Value.struct_value value type: type conversion error from struct type v1.DeploymentSpec to *structpb.Struct",
    ),
];

const CLUSTER_ROLE: &[Case] = &[
    ("object == oldObject", "false", "true"),
    ("object.rules == oldObject.rules", "false", "false"),
    ("oldObject.rules == object.rules", "false", "false"),
    ("object.rules == 1", "false", "false"),
    ("oldObject.rules == 1", "false", "no such overload"),
];

const SECRET: &[Case] = &[
    ("object == oldObject", "false", "true"),
    ("object.data == oldObject.data", "false", "false"),
    ("object.data.a == b'hello'", "false", "false"),
];

/// Cases for a kind without an entry in the table of defaults.
const KIND_WITHOUT_DEFAULTS: &[Case] = &[
    ("object == oldObject", "true", "true"),
    ("object.spec == 'x'", "false", "no such overload"),
    (
        "1 in object.spec.extra",
        "false",
        "unsupported map key type: types.Int",
    ),
    (
        "object.spec.usages[0u] == 'client auth'",
        "true",
        "unsupported index type: types.Uint",
    ),
    ("object.spec.request == 'AQID'", "true", "true"),
    ("object.spec.extra == {'k': ['v']}", "true", "true"),
    ("[object.spec] == ['x']", "false", "true"),
    ("object.status == oldObject.status", "true", "true"),
];

const CUSTOM_RESOURCE: &[Case] = &[
    ("object.spec == 'x'", "false", "false"),
    ("1 in object.spec", "false", "false"),
    ("object.spec.a[0u] == 1", "true", "true"),
    (
        "object[object.spec] == 1",
        "invalid qualifier type: map[string]interface {}",
        "invalid qualifier type: *types.baseMap",
    ),
    (
        "object[object.spec.a] == 1",
        "invalid qualifier type: []interface {}",
        "invalid qualifier type: *types.baseList",
    ),
];

/// Decodes an object of a built-in kind. Returns other objects unchanged.
fn decoded(object: &Json) -> Object {
    let gvk = kind_of(object);
    let decoded = defaulting::round_trip(&gvk, object, &KubernetesVersion::NEWEST.behavior());
    Object::new(&decoded.unwrap_or_else(|_| object.clone()))
}

/// Evaluates an expression for an update of `old`. Returns `true`, `false` or the error.
fn result(
    expression: &str,
    version: &str,
    (object, old): (&Json, &Json),
    namespace: &Namespace,
) -> String {
    let policy =
        json!({"metadata": {"name": "p"}, "spec": {"validations": [{"expression": expression}]}});
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    let version: KubernetesVersion = version.parse().unwrap();
    let compiled = CompiledPolicy::from_parts((&policy).into(), None, version);
    let gvr = Gvr::new("apps", "v1", "deployments");
    let mut request = AdmissionRequest::create(gvr, decoded(object));
    request.operation = Operation::Update;
    request.old_object = Some(decoded(old));
    request.user_info.username = "ann".to_owned();
    request.user_info.groups = vec!["dev".to_owned()];
    let extra = ("k".to_owned(), Some(vec!["v".to_owned()]));
    request.user_info.extra = [extra].into_iter().collect();
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
    let matched = (&request.gvr, &request.gvk);
    let admission = Admission::from_compiled(&compiled);
    let evaluation = admission.evaluate(&request, matched, None, Some(namespace), &context);
    let decision = evaluation.decisions.first().unwrap();
    match decision.evaluation {
        EvaluationResult::Admit => "true".to_owned(),
        EvaluationResult::Deny => "false".to_owned(),
        EvaluationResult::Error => {
            let prefix = format!("expression '{expression}' resulted in error: ");
            decision.message.strip_prefix(&prefix).unwrap().to_owned()
        }
    }
}

fn check(cases: &[Case], object: &Json, old: &Json) {
    let namespace =
        Namespace::new(&json!({"metadata": {"name": "default", "labels": {"env": "prod"}}}));
    for (expression, unstructured, go) in cases {
        for (version, expected) in [("1.36", unstructured), ("1.37", go)] {
            let actual = result(expression, version, (object, old), &namespace);
            assert_eq!(actual, **expected, "{expression} in {version}");
        }
    }
}

#[test]
fn go_structs_maps_and_slices_differ_in_equality_and_lookup() {
    let deployment = |memory: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "a"},
                "finalizers": ["x/y", "z/w"]},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"rollingUpdate": {"maxUnavailable": 1}},
                "template": {"spec": {
                    "securityContext": {"runAsUser": 1},
                    "containers": [
                        {"name": "a", "command": ["sh", "-c"], "securityContext": {"runAsUser": 1},
                            "resources": {"limits": {"memory": memory}}},
                        {"name": "b", "resources": {"limits": {"memory": "1073741824"}}},
                    ],
                }},
            },
        })
    };
    check(DEPLOYMENT, &deployment("1Gi"), &deployment("1073741824"));
}

#[test]
fn unset_list_is_equal_to_empty_list_within_struct() {
    let role = |rules: Json| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
            "rules": rules})
    };
    check(CLUSTER_ROLE, &role(Json::Null), &role(json!([])));
}

#[test]
fn unset_bytes_are_equal_to_empty_bytes_within_struct() {
    let secret = |b: Json| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
            "data": {"a": "aGVsbG8=", "b": b}})
    };
    check(SECRET, &secret(Json::Null), &secret(json!("")));
}

#[test]
fn kind_without_defaults_has_go_type() {
    let request = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "a"}, "spec": {"request": "AQID", "signerName": "a.b/c", "usages": ["client auth"],
        "extra": {"k": ["v"]}}});
    let mut old = request.clone();
    old["spec"]["groups"] = json!([]);
    check(KIND_WITHOUT_DEFAULTS, &request, &old);
}

#[test]
fn custom_resource_remains_unstructured() {
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"}, "spec": {"a": [1]}});
    check(CUSTOM_RESOURCE, &widget, &widget);
}

/// Upstream encodes params without a Go type as JSON and decodes them again.
#[test]
fn whole_double_in_params_becomes_int() {
    let params = Object::new(&json!({"apiVersion": "example.com/v1", "kind": "Limit",
        "spec": {"whole": 2.0, "part": 2.5, "list": [1.0]}}));
    let whole = |is_reencoded| {
        let params = params.value_as_params(is_reencoded);
        let spec = params.as_map().unwrap().field("spec").unwrap();
        let whole = spec.as_map().unwrap().field("whole").unwrap();
        whole.as_int()
    };
    assert_eq!((whole(false), whole(true)), (None, Some(2)));
}
