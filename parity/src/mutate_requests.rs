//! Compares requests for custom resources with upstream's dispatcher of mutating policies. The resulting objects must
//! be equal. For a rejection, the code and the reason must be equal.
//!
//! Source: the oracle's `mutate_admit.go`.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use vap_status_controller::defaulting;
use vap_status_controller::go_json;
use vap_status_controller::policy::admission::mutation::{
    BoundPolicy, KnownKinds, MutatingAdmission, MutationContext, MutationOutcome, mutate,
};
use vap_status_controller::policy::admission::{
    AdmissionRequest, AuthorizerList, Binding, Namespace, Object, Operation, ParamList, ParamSource,
};
use vap_status_controller::policy::mutations::shared_part_of_binding;
use vap_status_controller::schema::{Builtin, Crd, Gvr};
use vap_status_controller::version::KubernetesVersion;

use crate::guard::guard;
use crate::random::Random;
use crate::version;

/// Apply configurations, valid and invalid.
const APPLIED: [&str; 16] = [
    "Object{spec: Object.spec{size: 2}}",
    "Object{spec: Object.spec{size: has(object.spec.size) ? object.spec.size + 1 : 1}}",
    "Object{spec: Object.spec{log: [\"a\", \"b\"]}}",
    "Object{spec: Object.spec{log: [request.operation]}}",
    "Object{spec: Object.spec{log: [variables.v]}}",
    "Object{spec: Object.spec{sides: [\"x\"]}}",
    "Object{spec: Object.spec{size: null}}",
    "Object{spec: Object.spec{size: 2u}}",
    "Object{spec: Object.spec{parts: [Object.spec.parts{name: \"a\", n: 7}]}}",
    "Object{spec: Object.spec{parts: [{\"name\": \"a\"}]}}",
    "Object{spec: Object.spec{parts: object.spec.parts}}",
    "Object{spec: Object.spec{size: object.spec.nothing}}",
    "Object{spec: Object.specs{size: 1}}",
    "Object{spec: Object.spec{sise: 1}}",
    "Object{metadata: Object.metadata{labels: {\"team\": \"red\"}}}",
    "Object{metadata: Object.metadata{labels: {\"ns\": namespaceObject.metadata.labels.team}}}",
];

/// JSON patches, valid and invalid.
const PATCHED: [&str; 14] = [
    "[JSONPatch{op: \"add\", path: \"/spec/size\", value: 5}]",
    "[JSONPatch{op: \"test\", path: \"/spec/size\", value: 5}, JSONPatch{op: \"remove\", path: \"/spec/size\"}]",
    "[JSONPatch{op: \"remove\", path: \"/spec/nothing\"}]",
    "[JSONPatch{op: \"remove\", path: \"/kind\"}]",
    "[JSONPatch{op: \"add\", path: \"/spec/log\", value: [\"p\", \"q\"]}]",
    "[JSONPatch{op: \"add\", path: \"/spec/log/-\", value: \"r\"}]",
    "[JSONPatch{op: \"copy\", from: \"/metadata/name\", path: \"/spec/colour\"}]",
    "[JSONPatch{op: \"move\", from: \"/spec/log\", path: \"/spec/sides\"}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: {\"k8s.io/x\": \"1\"}}]",
    "[JSONPatch{op: \"add\", path: \"/spec/parts\", value: [Object.spec.parts{name: \"z\", n: 9}]}]",
    "object.spec.size > 1 ? [JSONPatch{op: \"replace\", path: \"/spec/size\", value: object.spec.size * 2}] : []",
    "[JSONPatch{op: \"add\", path: \"/spec/size\", value: 1.5}]",
    "[JSONPatch{op: \"add\", path: \"/spec/big\", value: 9007199254740993}]",
    "[JSONPatch{op: \"odd\", path: \"/spec\"}]",
];

const CONDITIONS: [&str; 6] = [
    "true",
    "!has(object.spec.size) || object.spec.size < 6",
    "request.operation == \"CREATE\"",
    "object.spec.colour == \"grey\"",
    "object.spec.nothing == 1",
    "false",
];

/// Generates the `n`th case: a request and the mutating policies that apply.
#[must_use]
pub fn case(seed: u64, n: u64) -> Value {
    let mut random = Random::for_event(seed, "mutating request", n);
    let mut spec = json!({});
    for (name, value) in [
        ("size", json!(random.below(7))),
        ("log", json!(["a", "x"])),
        ("parts", json!([{"name": "a", "n": 1}, {"name": "b"}])),
        ("colour", json!("blue")),
    ] {
        if random.permille(600) {
            set(&mut spec, name, value);
        }
    }
    let object = json!({"apiVersion": "example.com/v1", "kind": "Box",
        "metadata": {"name": "a", "namespace": "default"}, "spec": spec});
    let is_update = random.permille(300);
    let count = random.below(3).saturating_add(1);
    let policies: Vec<_> = (0..count).map(|n| policy(&mut random, n)).collect();
    let mut case = json!({
        "crd": definition(), "version": "v1", "resource": "boxes", "object": object, "policies": policies,
        "operation": if is_update { "UPDATE" } else { "CREATE" },
        "namespace": {"metadata": {"name": "default", "labels": {"team": "a"}}},
    });
    if is_update {
        set(&mut case, "old", object);
    }
    case
}

fn set(value: &mut Value, key: &str, to: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(key.to_owned(), to);
    }
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Box", "plural": "boxes", "listKind": "BoxList", "singular": "box"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer"}, "big": {"x-kubernetes-int-or-string": true},
                "colour": {"type": "string", "default": "grey"},
                "log": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "sides": {"type": "array", "items": {"type": "string"}},
                "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
                        "n": {"type": "integer", "default": 3}}}},
            }}},
        }}}],
    }})
}

fn policy(random: &mut Random, n: u64) -> Value {
    let count = random.below(3).saturating_add(1);
    let mutations: Vec<_> = (0..count)
        .map(|_| {
            if random.permille(600) {
                let expression = random.choose(&APPLIED);
                json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
            } else {
                json!({"patchType": "JSONPatch", "jsonPatch": {"expression": random.choose(&PATCHED)}})
            }
        })
        .collect();
    let mut spec = json!({
        "matchConstraints": {"matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [
            {"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"], "scope": "*"}]},
        "failurePolicy": random.choose(&["Fail", "Ignore", "Ignore"]),
        "reinvocationPolicy": random.choose(&["Never", "IfNeeded"]),
        "variables": [{"name": "v", "expression": "string(object.spec.size)"}],
        "mutations": mutations,
    });
    if random.permille(400) {
        let condition = json!([{"name": "c", "expression": random.choose(&CONDITIONS)}]);
        set(&mut spec, "matchConditions", condition);
    }
    let bindings: Vec<_> = (0..=random.below(2))
        .map(|b| json!({"metadata": {"name": format!("b{b}")}, "spec": {"policyName": format!("p{n}")}}))
        .collect();
    json!({"policy": {"metadata": {"name": format!("p{n}")}, "spec": spec}, "bindings": bindings})
}

/// Returns our result of a case: the mutated object as JSON, or the rejection.
///
/// # Errors
/// Returns an error if the case is malformed.
pub fn our_result(case: &Value) -> Result<std::result::Result<String, String>> {
    let part = |key: &str| case.get(key).cloned().unwrap_or_default();
    let crd = case.get("crd").map(Crd::from_value).transpose()?;
    let (mut object, mut old) = (part("object"), case.get("old").cloned());
    let gvk = Object::new(&object).gvk().clone();
    if crd.is_none() {
        // The oracle decodes built-in objects into their Go types.
        let behavior = version::get().behavior();
        for object in std::iter::once(&mut object).chain(&mut old) {
            *object = defaulting::round_trip(&gvk, object, &behavior)?;
        }
    }
    let definitions = crd.into_iter().collect();
    let kinds = KnownKinds::new(Builtin::load(KubernetesVersion::DEFAULT)?, definitions);
    let mut policies = Vec::new();
    for given in part("policies").as_array().into_iter().flatten() {
        let of = |key: &str| given.get(key).cloned().unwrap_or_default();
        policies.push((of("policy"), serde_json::from_value(of("bindings"))?));
    }
    let resource = part("resource");
    let resource = resource.as_str().unwrap_or_default();
    let gvr = Gvr::new(&*gvk.group, &*gvk.version, resource);
    let mut request = AdmissionRequest::create(gvr, Object::new(&object));
    if let Some(old) = &old {
        request.operation = Operation::Update;
        request.old_object = Some(Object::new(old));
    }
    let outcome = outcome(
        &policies,
        &Ok(ParamList::default()),
        &kinds,
        &request,
        &object,
        &part("namespace"),
    )?;
    Ok(match outcome.denial {
        Some(status) => Err(go_json::to_text(&json!({
            "code": status.code, "reason": status.reason, "message": status.message,
        }))),
        None => Ok(go_json::to_text(&outcome.object.context("no object")?)),
    })
}

/// Returns our result of a case in the oracle's format.
///
/// # Errors
/// Returns an error if the case is malformed.
pub(crate) fn line(case: &Value) -> Result<Value> {
    Ok(match guard(|| our_result(case)) {
        Ok(result) => match result? {
            Ok(object) => json!({"result": object}),
            Err(rejection) => json!({"errors": [rejection]}),
        },
        Err(panic) => json!({"panic": panic}),
    })
}

/// Returns the result of `request` for `object` in `namespace`. The policies apply in order. Each policy is paired with
/// its bindings. `params` contains the params of all policies.
///
/// # Errors
/// Returns an error if a policy or a binding cannot be read.
pub fn outcome(
    policies: &[(Value, Vec<Value>)],
    params: &std::result::Result<ParamList, String>,
    kinds: &KnownKinds,
    request: &AdmissionRequest,
    object: &Value,
    namespace: &Value,
) -> Result<MutationOutcome> {
    let mut read = Vec::new();
    for (policy, bindings) in policies {
        let policy =
            MutatingAdmission::new(&serde_json::from_value(policy.clone())?, version::get());
        let bindings = bindings.iter().map(|binding| {
            let binding = serde_json::from_value(binding.clone())?;
            Ok(Binding::new(&shared_part_of_binding(&binding)))
        });
        read.push((policy, bindings.collect::<Result<Vec<_>>>()?));
    }
    let params = match params {
        Ok(params) => Ok(params as &dyn ParamSource),
        Err(why) => Err(why.clone()),
    };
    let bound: Vec<_> = read
        .iter()
        .map(|(policy, bindings)| BoundPolicy {
            policy,
            bindings,
            params: params.clone(),
        })
        .collect();
    let namespace = Some(Namespace::new(namespace));
    let context = MutationContext::new(kinds, &namespace, Arc::new(AuthorizerList::default()));
    Ok(mutate(request, Some(object), &bound, &context))
}
