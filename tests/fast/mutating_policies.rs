//! Tests requests with mutating policies. The result is the mutated object, or the error for which the request is
//! denied.
//!
//! Most cases set no defaults after a mutation, like upstream's tests.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use serde_json::{Value, json};
use vap_status_controller::merge::Types;
use vap_status_controller::policy::admission::mutation::{
    BoundPolicy, Kinds, KnownKinds, MutatingAdmission, MutationContext, MutationOutcome, mutate,
};
use vap_status_controller::policy::admission::{
    AdmissionRequest, AuthorizerList, Binding, Namespace, NamespaceSource, Object, Operation,
    ParamList,
};
use vap_status_controller::policy::mutations::shared_part_of_binding;
use vap_status_controller::schema::{Builtin, Crd, Gvk, Gvr};
use vap_status_controller::version::KubernetesVersion;

/// The known kinds, without their defaults.
struct Plain(KnownKinds);

impl Kinds for Plain {
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>> {
        self.0.types(gvk)
    }

    fn is_custom(&self, gvk: &Gvk) -> bool {
        self.0.is_custom(gvk)
    }

    fn completed(&self, _: &Gvk, object: Value) -> Result<Value, (Value, String)> {
        Ok(object)
    }
}

struct Namespaces;

impl NamespaceSource for Namespaces {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": "a"}}});
        (name == "default").then(|| Namespace::new(&namespace))
    }
}

fn definition() -> Value {
    json!({"spec": {
        "group": "example.com", "names": {"kind": "Box", "plural": "boxes"}, "scope": "Namespaced",
        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"}, "colour": {"type": "string", "default": "grey"},
                "log": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "sides": {"type": "array", "items": {"type": "string"}},
            }},
        }}}}],
    }})
}

fn kinds() -> KnownKinds {
    KnownKinds::new(
        Builtin::load(KubernetesVersion::DEFAULT).unwrap(),
        vec![Crd::from_value(&definition()).unwrap()],
    )
}

fn policy(name: &str, spec: &Value) -> MutatingAdmission {
    policy_in(KubernetesVersion::DEFAULT, name, spec)
}

fn policy_in(version: KubernetesVersion, name: &str, spec: &Value) -> MutatingAdmission {
    let mut spec = spec.clone();
    spec["matchConstraints"] = json!({"resourceRules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]},
    ]});
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    MutatingAdmission::new(&serde_json::from_value(policy).unwrap(), version)
}

fn binding(name: &str) -> Binding {
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": "p"}});
    Binding::new(&shared_part_of_binding(
        &serde_json::from_value(binding).unwrap(),
    ))
}

fn applied(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patched(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn run(
    kinds: &dyn Kinds,
    policies: &[MutatingAdmission],
    object: &Value,
    old: Option<&Value>,
) -> MutationOutcome {
    let bindings = [binding("b")];
    let params = ParamList::default();
    let bound: Vec<_> = policies
        .iter()
        .map(|policy| BoundPolicy {
            policy,
            bindings: &bindings,
            params: Ok(&params),
        })
        .collect();
    let read = Object::new(object);
    let resource = if read.gvk().group == "apps" {
        "deployments"
    } else {
        "boxes"
    };
    let gvr = Gvr::new(&read.gvk().group, &read.gvk().version, resource);
    let mut request = AdmissionRequest::create(gvr, read);
    if let Some(old) = old {
        request.operation = Operation::Update;
        request.old_object = Some(Object::new(old));
    }
    let context = MutationContext::new(kinds, &Namespaces, Arc::new(AuthorizerList::default()));
    mutate(&request, Some(object), &bound, &context)
}

/// Applies one mutation to an object. Returns the error message if the request is denied.
fn mutated(mutation: &Value, object: &Value, old: Option<&Value>) -> Result<Value, String> {
    let policies = [policy(
        "p",
        &json!({"mutations": [mutation], "reinvocationPolicy": "Never"}),
    )];
    let outcome = run(&Plain(kinds()), &policies, object, old);
    match outcome.denial {
        Some(status) => Err(status.message),
        None => Ok(outcome.object.unwrap()),
    }
}

fn deployment(metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

/// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/json_patch_test.go`, `TestJSONPatch`, cases about
/// expressions.
#[test]
fn json_patch_expressions_have_upstream_results() {
    let labels = |labels: Value| deployment(&json!({"labels": labels}), &json!({}));
    let containers = |containers: Value| {
        deployment(
            &json!({}),
            &json!({"template": {"spec": {"containers": containers}}}),
        )
    };
    let added = |value: &str| {
        patched(&format!(
            r#"[JSONPatch{{op: "add", path: "/metadata/labels", value: {value}}}]"#
        ))
    };
    let cases = [
        (
            deployment(&json!({}), &json!({})),
            patched(
                r#"[JSONPatch{op: "add", path: "/spec", value: Object.spec{selector: Object.spec.selector{}, replicas: 10}}]"#,
            ),
            deployment(&json!({}), &json!({"selector": {}, "replicas": 10})),
        ),
        (
            labels(json!({})),
            added(
                r#"{"op": JSONPatch{op: "opValue"}.op, "path": JSONPatch{path: "pathValue"}.path, "from": JSONPatch{from: "fromValue"}.from, "value": string(JSONPatch{value: "valueValue"}.value)}"#,
            ),
            labels(
                json!({"op": "opValue", "path": "pathValue", "from": "fromValue", "value": "valueValue"}),
            ),
        ),
        (
            labels(json!({})),
            added(
                r#"{"op": string(has(JSONPatch{op: "opValue"}.op)), "value": string(has(JSONPatch{value: "valueValue"}.value)), "op-unset": string(has(JSONPatch{}.op)), "value-unset": string(has(JSONPatch{}.value))}"#,
            ),
            labels(
                json!({"op": "true", "value": "true", "op-unset": "false", "value-unset": "false"}),
            ),
        ),
        (
            labels(json!({})),
            added(
                r#"{"empty": string(JSONPatch{} == JSONPatch{}), "different-op": string(JSONPatch{op: "add"} == JSONPatch{op: "remove"}), "same-all": string(JSONPatch{op: "add", path: "path", from: "from", value: 1} == JSONPatch{op: "add", path: "path", from: "from", value: 1})}"#,
            ),
            labels(json!({"empty": "true", "different-op": "false", "same-all": "true"})),
        ),
        (
            labels(json!({})),
            patched(
                r#"[JSONPatch{op: "add", path: "/metadata/labels", value: {}}, JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("k8s.io/x~y"), value: "true"}]"#,
            ),
            labels(json!({"k8s.io/x~y": "true"})),
        ),
        (
            containers(json!([{"name": "a"}])),
            patched(
                r#"[JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: Object.spec.template.spec.containers{name: "x", ports: [Object.spec.template.spec.containers.ports{containerPort: 8080}]}}]"#,
            ),
            containers(json!([{"name": "a"}, {"name": "x", "ports": [{"containerPort": 8080}]}])),
        ),
        (
            deployment(&json!({}), &json!({"replicas": 1})),
            patched(
                r#"[JSONPatch{op: "test", path: "/spec/replicas", value: 100}, JSONPatch{op: "replace", path: "/spec/replicas", value: 3}]"#,
            ),
            deployment(&json!({}), &json!({"replicas": 1})),
        ),
    ];
    for (object, mutation, expected) in cases {
        assert_eq!(
            mutated(&mutation, &object, None),
            Ok(expected),
            "{mutation}"
        );
    }
    let of_port = |type_: &str, field: &str| {
        let value = format!(
            "Object.spec.template.spec.containers{{name: \"x\", ports: [Object.spec.template.spec.containers.{type_}{{{field}: 8080}}]}}"
        );
        let expression = format!(
            r#"[JSONPatch{{op: "add", path: "/spec/template/spec/containers/-", value: {value}}}]"#
        );
        mutated(
            &patched(&expression),
            &containers(json!([{"name": "a"}])),
            None,
        )
    };
    assert_eq!(
        of_port("ports", "containerPortZ"),
        Err("Internal error occurred: strict decoding error: unknown field \"spec.template.spec.containers[1].ports[0].containerPortZ\"".to_owned())
    );
    assert_eq!(
        of_port("portsZ", "containerPort"),
        Err("policy 'p' with binding 'b' denied request: type mismatch: unexpected type name \"Object.spec.template.spec.containers.portsZ\", expected \"Object.spec.template.spec.containers.ports\", which matches field name path from root Object type".to_owned())
    );
}

/// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd_test.go`, `TestApplyConfiguration`, cases about
/// expressions.
#[test]
fn apply_configuration_expressions_have_upstream_results() {
    let of = |spec: Value| deployment(&json!({}), &spec);
    let replicas = |n: i64| of(json!({"replicas": n}));
    let next = |of: &str| {
        applied(&format!(
            "Object{{spec: Object.spec{{replicas: {of}.spec.replicas % 2 == 0 ? {of}.spec.replicas + 1 : {of}.spec.replicas}}}}"
        ))
    };
    assert_eq!(
        mutated(&next("object"), &replicas(2), None),
        Ok(replicas(3))
    );
    assert_eq!(
        mutated(&next("oldObject"), &replicas(1), Some(&replicas(2))),
        Ok(replicas(3))
    );
    let volumes = |volumes: Value| of(json!({"template": {"spec": {"volumes": volumes}}}));
    let add = applied(
        r#"Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{volumes: [Object.spec.template.spec.volumes{name: "y"}]}}}}"#,
    );
    assert_eq!(
        mutated(&add, &volumes(json!([{"name": "x"}])), None),
        Ok(volumes(json!([{"name": "x"}, {"name": "y"}])))
    );
    let whole = applied(
        r#"Object{spec: Object.spec{replicas: 1, template: Object.spec.template{metadata: Object.spec.template.metadata{labels: {"app": "nginx"}}, spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: "nginx", image: "nginx:1.14.2", ports: [Object.spec.template.spec.containers.ports{containerPort: 80}], resources: Object.spec.template.spec.containers.resources{limits: {"cpu": "128M"}}}]}}}}"#,
    );
    let expected = of(
        json!({"replicas": 1, "template": {"metadata": {"labels": {"app": "nginx"}}, "spec": {"containers": [
        {"name": "nginx", "image": "nginx:1.14.2", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "128M"}}}]}}}),
    );
    assert_eq!(mutated(&whole, &of(json!({})), None), Ok(expected));

    let refused = |expression: &str| {
        let message = mutated(&applied(expression), &replicas(1), None).unwrap_err();
        let heading = "policy 'p' with binding 'b' denied request: ";
        message.strip_prefix(heading).unwrap().to_owned()
    };
    assert_eq!(
        refused(
            r#"Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"l": "v"}}}}"#
        ),
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector"
    );
    assert_eq!(
        refused("Object{spec: Object.specx{replicas: 1}}"),
        "type mismatch: unexpected type name \"Object.specx\", expected \"Object.spec\", which matches field name path from root Object type"
    );
    assert_eq!(
        refused("Object{spec: Object.spec{replicasx: 1}}"),
        "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared in schema"
    );
    assert_eq!(
        refused(r#""I'm a teapot!""#),
        "must evaluate to Object but got string"
    );
    assert_eq!(
        refused("Object.spec.metadata{}"),
        "must evaluate to Object but got Object.spec.metadata"
    );
    // The CEL value null is not converted to null in JSON.
    assert_eq!(
        refused("Object{spec: Object.spec{replicas: null}}"),
        "error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got structpb.NullValue"
    );
}

fn a_box(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a", "namespace": "default"}, "spec": spec})
}

#[test]
fn policies_see_earlier_mutations_and_defaults() {
    let first = policy(
        "first",
        &json!({"mutations": [
            applied("Object{spec: Object.spec{size: 2}}"),
            applied("Object{spec: Object.spec{log: [\"size \" + string(object.spec.size), string(object.spec.colour)]}}"),
        ]}),
    );
    let second = policy(
        "second",
        &json!({
            "matchConditions": [{"name": "large", "expression": "object.spec.size > 1"}],
            "variables": [{"name": "team", "expression": "namespaceObject.metadata.labels.team"}],
            "mutations": [applied("Object{spec: Object.spec{log: [variables.team + request.operation]}}")],
        }),
    );
    let outcome = run(&kinds(), &[first, second], &a_box(&json!({})), None);
    assert!(outcome.denial.is_none(), "{outcome:?}");
    let expected = json!({"size": 2, "colour": "grey", "log": ["size 2", "grey", "aCREATE"]});
    assert_eq!(outcome.object.unwrap()["spec"], expected);
}

#[test]
fn reinvocation_policy_if_needed_invokes_policy_again() {
    let count = |reinvocation: &str| {
        policy(
            "count",
            &json!({"reinvocationPolicy": reinvocation, "mutations": [
            applied("Object{spec: Object.spec{size: has(object.spec.size) ? object.spec.size + 1 : 1}}")]}),
        )
    };
    let size = |policies: &[MutatingAdmission]| {
        let outcome = run(&kinds(), policies, &a_box(&json!({})), None);
        outcome.object.unwrap()["spec"]["size"].clone()
    };
    assert_eq!(size(&[count("Never")]), 1);
    assert_eq!(size(&[count("IfNeeded")]), 2);
    let paint = policy(
        "paint",
        &json!({"mutations": [applied("Object{spec: Object.spec{colour: 'red'}}")]}),
    );
    assert_eq!(size(&[count("IfNeeded"), paint]), 2);
}

#[test]
fn failure_policy_applies_to_mutation_errors_only() {
    let failing = |failure_policy: &str| {
        policy(
            "p",
            &json!({"failurePolicy": failure_policy, "mutations": [
                applied("Object{spec: Object.spec{sides: [\"a\"]}}"),
                applied("Object{spec: Object.spec{size: object.spec.nothing}}"),
                applied("Object{spec: Object.spec{size: 7}}"),
            ]}),
        )
    };
    let outcome = run(&kinds(), &[failing("Ignore")], &a_box(&json!({})), None);
    assert!(outcome.denial.is_none());
    assert_eq!(outcome.object.unwrap()["spec"]["size"], 7);
    assert_eq!(outcome.errors.len(), 2);
    let status = run(&kinds(), &[failing("Fail")], &a_box(&json!({})), None)
        .denial
        .unwrap();
    assert_eq!((status.code, status.reason.as_str()), (403, "Invalid"));
    assert_eq!(
        status.message,
        "policy 'p' with binding 'b' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.sides"
    );
    // The patched object cannot be decoded, so the request fails regardless of failurePolicy.
    let broken = json!({"failurePolicy": "Ignore", "mutations": [patched("[JSONPatch{op: \"remove\", path: \"/kind\"}]")]});
    let status = run(&kinds(), &[policy("p", &broken)], &a_box(&json!({})), None)
        .denial
        .unwrap();
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "InternalError")
    );
    assert!(
        status
            .message
            .starts_with("Internal error occurred: Object 'Kind' is missing in '{\"apiVersion\""),
        "{}",
        status.message
    );
    let mut unknown = a_box(&json!({}));
    unknown["kind"] = json!("Bag");
    let apply = json!({"failurePolicy": "Ignore", "mutations": [applied("Object{}")]});
    let status = run(&kinds(), &[policy("p", &apply)], &unknown, None)
        .denial
        .unwrap();
    assert_eq!(
        (status.code, status.reason.as_str()),
        (503, "ServiceUnavailable")
    );
    assert_eq!(
        status.message,
        "Resource kind example.com/v1, Kind=Bag not found. There can be a delay between when CustomResourceDefinitions are created and when they are available."
    );
}

#[test]
fn object_of_delete_is_not_mutated() {
    let policies = [policy(
        "p",
        &json!({"mutations": [applied("Object{spec: Object.spec{size: 7}}")]}),
    )];
    let bindings = [binding("b")];
    let params = ParamList::default();
    let bound = [BoundPolicy {
        policy: &policies[0],
        bindings: &bindings,
        params: Ok(&params),
    }];
    let object = a_box(&json!({}));
    let request = AdmissionRequest {
        operation: Operation::Delete,
        old_object: Some(Object::new(&object)),
        ..AdmissionRequest::create(Gvr::new("example.com", "v1", "boxes"), Object::new(&object))
    };
    let kinds = kinds();
    let context = MutationContext::new(&kinds, &Namespaces, Arc::new(AuthorizerList::default()));
    let outcome = mutate(&request, None, &bound, &context);
    assert!(outcome.object.is_none() && outcome.denial.is_none());
}

#[test]
fn object_in_patch_value_list_has_error_of_upstream_panic() {
    let expression =
        "[JSONPatch{op: \"add\", path: \"/spec/sides\", value: [Object.spec.sides{a: 1}]}]";
    let spec = json!({"failurePolicy": "Ignore", "mutations": [patched(expression)]});
    let version = KubernetesVersion::new(36).with_patch(4);
    let outcome = run(
        &kinds(),
        &[policy_in(version, "p", &spec)],
        &a_box(&json!({})),
        None,
    );
    let status = outcome.denial.unwrap();
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "InternalError")
    );
    // Since 1.36.5, the object is converted.
    let version = KubernetesVersion::new(36).with_patch(5);
    let outcome = run(
        &kinds(),
        &[policy_in(version, "p", &spec)],
        &a_box(&json!({})),
        None,
    );
    assert_eq!(outcome.denial, None);
    let object = outcome.object.unwrap();
    assert_eq!(object.pointer("/spec/sides"), Some(&json!([{"a": 1}])));
}

#[test]
fn variable_named_object_does_not_hide_type_since_1_37() {
    let expression = "[1].map(Object, Object{spec: Object.spec{size: 7}})[0]";
    let spec = json!({"failurePolicy": "Fail", "mutations": [applied(expression)]});
    for (minor, expected) in [(36, None), (37, Some(json!(7)))] {
        let policy = policy_in(KubernetesVersion::new(minor), "p", &spec);
        let outcome = run(&kinds(), &[policy], &a_box(&json!({})), None);
        let object = outcome.object.filter(|_| outcome.denial.is_none());
        let size = object.and_then(|object| object.pointer("/spec/size").cloned());
        assert_eq!(size, expected, "1.{minor}");
    }
}

#[test]
fn patched_object_is_decoded_by_type() {
    let object = deployment(&json!({"name": "a"}), &json!({"replicas": 1}));
    let patch = |path: &str, value: &str| {
        let patch = format!("[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]");
        mutated(&patched(&patch), &object, None)
    };
    let replicas = "Go struct field DeploymentSpec.spec.replicas of type int32";
    let marshal = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: ";
    for (path, value, error) in [
        (
            "/spec/replicas",
            "'v'",
            &*format!("json: cannot unmarshal string into {replicas}"),
        ),
        (
            "/spec/replicas",
            "2.5",
            &format!("json: cannot unmarshal number 2.5 into {replicas}"),
        ),
        (
            "/spec/replicas",
            "3000000000",
            &format!("json: cannot unmarshal number 3000000000 into {replicas}"),
        ),
        (
            "/spec/paused",
            "'v'",
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            "/metadata/labels",
            "{'a': 1}",
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "/metadata/labels",
            "[1]",
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            "/metadata/uid",
            "1",
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type types.UID",
        ),
        (
            "/spec/template",
            "{'spec': {'containers': ['a']}}",
            "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
        ),
        (
            "/spec",
            "1",
            "json: cannot unmarshal number into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
        (
            "/spec/strategy",
            "{'rollingUpdate': {'maxSurge': 1.5}}",
            "json: cannot unmarshal number 1.5 into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            "/spec/template",
            "{'spec': {'volumes': [{'hostPath': 'a'}]}}",
            "json: cannot unmarshal string into Go struct field Volume.spec.template.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource",
        ),
        (
            "/metadata/labels/a",
            "type(1)",
            &format!("{marshal}type conversion not supported for 'type'"),
        ),
        (
            "/metadata/labels",
            "{1: 'a'}",
            &format!("{marshal}unsupported type conversion from 'int' to string"),
        ),
    ] {
        let message = patch(path, value).unwrap_err();
        assert!(message.ends_with(error), "{path} {value}: {message}");
    }
    for (path, value, replicas) in [
        ("/spec/replicas", "5.0", 5),
        ("/spec/replicas", "6", 6),
        ("/kind", "null", 1),
    ] {
        let patched = patch(path, value).unwrap();
        assert_eq!(patched["spec"]["replicas"], replicas, "{path} {value}");
    }
}

#[test]
fn change_to_unregistered_kind_is_an_error() {
    let object = deployment(&json!({"name": "a"}), &json!({"replicas": 1}));
    for (path, value, error) in [
        (
            "/kind",
            "'Other'",
            "no kind \"Other\" is registered for version \"apps/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            "/kind",
            "'StatefulSet'",
            "failed to convert object: converting (v1.StatefulSet) to (apps.Deployment): unknown conversion",
        ),
        (
            "/apiVersion",
            "'v'",
            "no kind \"Deployment\" is registered for version \"v\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            "/kind",
            "3",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
        ),
    ] {
        let patch = format!("[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]");
        let message = mutated(&patched(&patch), &object, None).unwrap_err();
        assert!(message.ends_with(error), "{path} {value}: {message}");
    }
}

#[test]
fn numbers_in_apply_configuration_are_converted_like_in_go() {
    let object = deployment(&json!({"name": "a"}), &json!({"replicas": 1}));
    let apply = |expression: &str| {
        let expression = format!("Object{{spec: Object.spec{{{expression}}}}}");
        mutated(&applied(&expression), &object, None)
    };
    for (expression, replicas) in [
        ("replicas: 4294967300", 4),
        ("replicas: 3000000000", -1_294_967_296),
        ("replicas: 5.0", 5),
    ] {
        assert_eq!(
            apply(expression).unwrap()["spec"]["replicas"],
            replicas,
            "{expression}"
        );
    }
    let message = apply("replicas: 2.5").unwrap_err();
    assert!(
        message.ends_with("cannot convert float64 to int32"),
        "{message}"
    );
}
