//! Generates requests for custom resources and Deployments: creations and updates, with and without params. Each
//! request has its own mutating policy.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use parity::mutate_requests;
use parity::random::Random;
use serde_json::{Value, json};
use vap_status_controller::schema::{Gvk, Gvr};

use crate::dry_run::{Target, target_of};

/// Apply configurations for Deployments.
const APPLIED: [&str; 16] = [
    "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
    "Object{metadata: Object.metadata{labels: {\"team\": object.metadata.name}}}",
    "Object{metadata: Object.metadata{annotations: {\"a/b\": string(object.spec.replicas)}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     [Object.spec.template.spec.containers{name: \"side\", image: \"side:1\"}]}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     [Object.spec.template.spec.containers{name: \"web\", image: \"mirror/web:1\", env: \
     [Object.spec.template.spec.containers.env{name: \"A\", value: \"changed\"}]}]}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, \
     imagePullPolicy: \"Always\"})}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{initContainers: \
     [Object.spec.template.spec.initContainers{name: \"init\", image: \"init:1\", restartPolicy: \"Always\"}]}}}}",
    // Not allowed: setting items of an atomic list.
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{tolerations: \
     [Object.spec.template.spec.tolerations{key: \"k\", operator: \"Exists\"}]}}}}",
    // Not allowed: setting fields of an atomic struct.
    "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {\"a\": \"b\"}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{nodeSelector: {\"a\": \"b\"}}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{volumes: \
     [Object.spec.template.spec.volumes{name: \"v\", emptyDir: Object.spec.template.spec.volumes.emptyDir{}}]}}}}",
    "Object{spec: Object.spec{strategy: Object.spec.strategy{type: \"Recreate\"}}}",
    "Object{spec: Object.spec{minReadySeconds: 7, paused: !has(object.spec.paused)}}",
    "Object{spec: Object.spec{replcas: 1}}",
    "Object{spec: Object.spec{replicas: \"three\"}}",
    "Object{spec: Object.spec{replicas: object.spec.nothing}}",
];

/// JSON patches for Deployments.
const PATCHED: [&str; 12] = [
    "[JSONPatch{op: \"replace\", path: \"/spec/replicas\", value: 5}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: {\"team\": \"a\"}}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels/\" + jsonpatch.escapeKey(\"a/b~c\"), value: \"x\"}]",
    "[JSONPatch{op: \"add\", path: \"/spec/template/spec/containers/-\", value: \
     Object.spec.template.spec.containers{name: \"last\", image: \"last:1\"}}]",
    "[JSONPatch{op: \"add\", path: \"/spec/template/spec/containers/0/env\", value: []}, JSONPatch{op: \"add\", path: \
     \"/spec/template/spec/containers/0/env/-\", value: {\"name\": \"B\", \"value\": \"b\"}}]",
    "[JSONPatch{op: \"remove\", path: \"/spec/template/spec/tolerations\"}]",
    "[JSONPatch{op: \"remove\", path: \"/spec/template/spec/containers/7\"}]",
    "[JSONPatch{op: \"test\", path: \"/spec/replicas\", value: 3}, JSONPatch{op: \"replace\", path: \"/spec/replicas\", \
     value: 30}]",
    "[JSONPatch{op: \"copy\", from: \"/metadata/name\", path: \"/spec/template/metadata/labels/of\"}]",
    "[JSONPatch{op: \"move\", from: \"/spec/template/spec/containers/0/image\", path: \
     \"/metadata/annotations\"}]",
    "object.spec.template.spec.?tolerations.orValue([]).map(t, JSONPatch{op: \"add\", path: \
     \"/spec/template/spec/nodeSelector\", value: {\"k\": t.key}})",
    "[JSONPatch{op: \"add\", path: \"/spec/template/spec/unknown\", value: 1}]",
];

/// A request, and a policy that applies only to this request.
pub(crate) struct Trial {
    pub(crate) policy: Value,
    /// Fields of the binding's spec, such as `paramRef`.
    pub(crate) binding: Value,
    pub(crate) object: Value,
    /// The old object, if the request is an update.
    pub(crate) old: Option<Value>,
    pub(crate) gvr: Gvr,
    pub(crate) params: Params,
}

impl Trial {
    pub(crate) fn target(&self) -> Target {
        let kind = if self.gvr.group == "apps" {
            "Deployment"
        } else {
            "Box"
        };
        let gvk = Gvk::new(&self.gvr.group, &self.gvr.version, kind);
        target_of(gvk, &self.gvr.resource, true)
    }

    /// Returns a name for this kind of request.
    pub(crate) fn sort(&self) -> &'static str {
        match (&self.old, self.params, &*self.gvr.resource) {
            (None, Params::None, "boxes") => "Boxes",
            (None, Params::None, _) => "Deployments",
            (_, Params::None, _) => "updates",
            _ => "with params",
        }
    }
}

/// The kind of the policy's params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Params {
    /// The policy has no paramKind.
    None,
    /// Config maps are namespaced.
    ConfigMaps,
    /// Limits are custom resources without a namespace.
    Limits,
    /// The kind is not served.
    Unserved,
}

/// Apply configurations with params, for Deployments and Boxes.
const APPLIED_OF_PARAMS: [&str; 9] = [
    "Object{metadata: Object.metadata{labels: {\"of\": params.metadata.name}}}",
    "Object{metadata: Object.metadata{annotations: {\"of\": params.metadata.?namespace.orValue(\"none\") + \"/\" + \
     params.metadata.name}}}",
    "Object{metadata: Object.metadata{labels: {params.metadata.name: \"used\"}}}",
    "params == null ? Object{} : Object{metadata: Object.metadata{labels: {\"param\": \"there\"}}}",
    "Object{metadata: Object.metadata{labels: params.metadata.labels}}",
    "Object{metadata: Object.metadata{labels: {\"most\": variables.most}}}",
    "Object{metadata: Object.metadata{labels: {\"kind\": params.kind, \"version\": dyn(string(params.apiVersion).replace(\"/\", \"_\"))}}}",
    "Object{metadata: Object.metadata{annotations: {\"n\": params.data.nothing}}}",
    "Object{metadata: Object.metadata{annotations: {\"size\": string(size(params.metadata.labels))}}}",
];

/// JSON patches with params.
const PATCHED_OF_PARAMS: [&str; 6] = [
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: params.metadata.labels}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: {\"of\": params.metadata.name}}]",
    "params.metadata.labels.map(key, JSONPatch{op: \"test\", path: \"/metadata/name\", value: object.metadata.name})",
    "[JSONPatch{op: \"add\", path: \"/metadata/annotations\", value: {\"all\": string(params.metadata.labels == {\"set\": \
     \"all\"})}}]",
    "has(params.data) ? [JSONPatch{op: \"add\", path: \"/metadata/annotations\", value: params.data}] : []",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: {\"max\": string(params.spec.max)}}]",
];

/// Match conditions with params.
const CONDITIONS_OF_PARAMS: [&str; 5] = [
    "params != null",
    "params == null || params.metadata.name != \"odd\"",
    "has(params.data) || has(params.spec)",
    "params.data.team == \"red\"",
    "params.spec.max > 3",
];

/// Returns values of the field `paramRef`.
fn param_refs() -> Vec<Value> {
    let all = json!({"matchLabels": {"set": "all"}});
    let mut refs = Vec::new();
    for action in ["Allow", "Deny"] {
        for mut reference in [
            json!({"name": "limits"}),
            json!({"name": "limits", "namespace": "default"}),
            json!({"name": "limits", "namespace": "others"}),
            json!({"name": "odd"}),
            json!({"name": "not-there"}),
            json!({"name": "not-there", "namespace": "no-such-namespace"}),
            json!({"selector": {"matchLabels": {"team": "red"}}}),
            json!({"selector": {"matchLabels": {"team": "none"}}}),
            json!({"selector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, "namespace": "default"}),
            json!({"selector": all}),
        ] {
            reference["parameterNotFoundAction"] = json!(action);
            refs.push(reference);
        }
    }
    refs
}

/// Returns the params in the order of their creation.
pub(crate) fn params() -> Vec<Value> {
    let config = |name: &str, namespace: &str, labels: &Value, data: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": name, "namespace": namespace, "labels": labels}})
    };
    let limit = |name: &str, labels: &Value, spec: &Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Limit", "spec": spec,
            "metadata": {"name": name, "labels": labels}})
    };
    let red = json!({"set": "all", "team": "red"});
    let all = json!({"set": "all"});
    vec![
        config(
            "limits",
            "default",
            &red,
            &json!({"team": "red", "most": "7"}),
        ),
        config("odd", "default", &all, &json!({"team": "blue"})),
        config(
            "limits",
            "others",
            &red,
            &json!({"team": "grey", "most": "9"}),
        ),
        limit("limits", &red, &json!({"max": 5})),
        limit("odd", &all, &json!({})),
    ]
}

pub(crate) fn limits() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "limits.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster",
        "names": {"kind": "Limit", "plural": "limits", "listKind": "LimitList", "singular": "limit"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "max": {"type": "integer"}, "team": {"type": "string", "default": "green"}}}}}}}],
    }})
}

/// Apply configurations for updates of Deployments and Boxes.
const APPLIED_IN_UPDATES: [&str; 7] = [
    "Object{metadata: Object.metadata{labels: {\"op\": request.operation}}}",
    "Object{metadata: Object.metadata{labels: {\"was\": oldObject.metadata.name}}}",
    "object.spec == oldObject.spec ? Object{} : Object{metadata: Object.metadata{annotations: {\"changed\": \"yes\"}}}",
    "oldObject == null ? Object{} : Object{metadata: Object.metadata{labels: oldObject.metadata.?labels.orValue({})}}",
    "Object{metadata: Object.metadata{annotations: {\"uid\": string(oldObject.metadata.uid == object.metadata.?uid.orValue(\"\"))}}}",
    "Object{metadata: Object.metadata{annotations: {\"fields\": string(size(oldObject)) + \" \" + string(size(oldObject.spec))}}}",
    "Object{metadata: Object.metadata{annotations: {\"n\": oldObject.spec.nothing}}}",
];

/// JSON patches for updates.
const PATCHED_IN_UPDATES: [&str; 4] = [
    "[JSONPatch{op: \"replace\", path: \"/spec\", value: oldObject.spec}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: oldObject.metadata.?labels.orValue({})}]",
    "object.spec == oldObject.spec ? [] : [JSONPatch{op: \"add\", path: \"/metadata/annotations\", value: {\"gen\": \
     string(oldObject.metadata.generation)}}]",
    "[JSONPatch{op: \"add\", path: \"/status\", value: {\"replicas\": 3}}]",
];

/// Apply configurations for updates of Deployments only.
const APPLIED_IN_UPDATES_OF_DEPLOYMENTS: [&str; 4] = [
    "Object{spec: Object.spec{replicas: oldObject.spec.replicas + 1}}",
    "Object{spec: Object.spec{replicas: object.spec.replicas < oldObject.spec.replicas ? oldObject.spec.replicas : object.spec.replicas}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     oldObject.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, image: c.image})}}}}",
    "Object{spec: Object.spec{strategy: Object.spec.strategy{type: oldObject.spec.strategy.type}}}",
];

/// Apply configurations for updates of Boxes only.
const APPLIED_IN_UPDATES_OF_BOXES: [&str; 4] = [
    "Object{spec: Object.spec{size: oldObject.spec.size}}",
    "Object{spec: Object.spec{log: oldObject.spec.log}}",
    "Object{spec: Object.spec{parts: oldObject.spec.parts.map(p, Object.spec.parts{name: p.name, n: p.n + 1})}}",
    "Object{spec: Object.spec{colour: oldObject.spec.colour == object.spec.colour ? \"same\" : \"other\"}}",
];

/// Returns a trial from the `n`th request that `parity mutations` generates.
pub(crate) fn custom(seed: u64, n: u64) -> Trial {
    let case = mutate_requests::case(seed, n);
    let name = format!("m{n}");
    let mut policy = case["policies"][0]["policy"].clone();
    restrict_to_name(&mut policy, &name);
    Trial {
        policy,
        // A trial has one binding. If it had several bindings, the API server's error would be about a random binding.
        binding: json!({}),
        object: box_of(seed, n, &name),
        old: None,
        gvr: Gvr::new("example.com", "v1", "boxes"),
        params: Params::None,
    }
}

/// Returns the Box of the `n`th request that `parity mutations` generates, but with the name `name`.
fn box_of(seed: u64, n: u64, name: &str) -> Value {
    let mut object = mutate_requests::case(seed, n)["object"].clone();
    object["metadata"]["name"] = json!(name);
    object
}

pub(crate) fn deployment(seed: u64, n: u64) -> Trial {
    let mut random = Random::for_event(seed, "mutated Deployment", n);
    let name = format!("m{n}");
    let object = deployment_of(&mut random, &name);
    let count = random.below(2) + 1;
    let mutations: Vec<Value> = (0..count)
        .map(|_| mutation(&mut random, &APPLIED, &PATCHED))
        .collect();
    let policy = policy_of(&mut random, &name, &["CREATE"], "deployments", &mutations);
    Trial {
        policy,
        binding: json!({}),
        object,
        old: None,
        gvr: Gvr::new("apps", "v1", "deployments"),
        params: Params::None,
    }
}

fn deployment_of(random: &mut Random, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "web", "image": "web:1"}]}},
        },
    });
    let pod = "/spec/template/spec";
    let parts = [
        ("/spec", "replicas", json!(3)),
        ("/spec", "paused", json!(true)),
        ("/metadata", "labels", json!({"app": "web"})),
        (
            pod,
            "tolerations",
            json!([{"key": "t", "operator": "Exists"}]),
        ),
        (pod, "nodeSelector", json!({"zone": "a"})),
        (
            pod,
            "volumes",
            json!([{"name": "v", "configMap": {"name": "c"}}]),
        ),
        (
            "/spec/template/spec/containers/0",
            "env",
            json!([{"name": "A", "value": "a"}, {"name": "C", "value": "c"}]),
        ),
    ];
    for (parent, field, value) in parts {
        if random.permille(500) {
            object.pointer_mut(parent).unwrap()[field] = value;
        }
    }
    object
}

fn mutation(random: &mut Random, applied: &[&str], patched: &[&str]) -> Value {
    if random.permille(550) {
        let expression = random.choose(applied);
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
    } else {
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": random.choose(patched)}})
    }
}

fn policy_of(
    random: &mut Random,
    name: &str,
    operations: &[&str],
    resource: &str,
    mutations: &[Value],
) -> Value {
    let group = if resource == "deployments" {
        "apps"
    } else {
        "example.com"
    };
    let mut policy = json!({"spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [group], "apiVersions": ["v1"],
            "operations": operations, "resources": [resource]}]},
        "failurePolicy": if random.permille(700) { "Fail" } else { "Ignore" },
        "reinvocationPolicy": if random.permille(300) { "IfNeeded" } else { "Never" },
        "mutations": mutations,
    }});
    restrict_to_name(&mut policy, name);
    policy
}

/// Returns a trial with params. Every third trial is an update.
pub(crate) fn with_params(seed: u64, n: u64) -> Trial {
    let mut trial = if n.is_multiple_of(3) {
        updating(seed, n)
    } else if n % 3 == 1 {
        custom(seed, n)
    } else {
        deployment(seed, n)
    };
    let mut random = Random::for_event(seed, "params of mutations", n);
    let count = random.below(2) + 1;
    let mut mutations: Vec<Value> = (0..count)
        .map(|_| mutation(&mut random, &APPLIED_OF_PARAMS, &PATCHED_OF_PARAMS))
        .collect();
    if random.permille(300) {
        mutations.push(trial.policy["spec"]["mutations"][0].clone());
    }
    let (params, kind) = match random.below(20) {
        0 => (
            Params::Unserved,
            json!({"apiVersion": "example.com/v1", "kind": "Nothing"}),
        ),
        1..=12 => (
            Params::ConfigMaps,
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        ),
        _ => (
            Params::Limits,
            json!({"apiVersion": "example.com/v1", "kind": "Limit"}),
        ),
    };
    trial.params = params;
    let spec = &mut trial.policy["spec"];
    spec["mutations"] = json!(mutations);
    spec["paramKind"] = kind;
    let most =
        "params == null ? \"none\" : has(params.data) ? params.data.most : string(params.spec.max)";
    let variables = spec["variables"].as_array().cloned().unwrap_or_default();
    let most = json!({"name": "most", "expression": most});
    spec["variables"] = variables.into_iter().chain([most]).collect();
    if random.permille(350) {
        let name = spec["matchConditions"][0]["expression"]
            .as_str()
            .unwrap()
            .to_owned();
        let condition = random.choose(&CONDITIONS_OF_PARAMS).unwrap();
        let expression = format!("{name} && ({condition})");
        let conditions = spec["matchConditions"].as_array_mut().unwrap();
        conditions.push(json!({"name": "of-params", "expression": expression}));
    }
    if !random.permille(80) {
        let reference = random.choose(&param_refs()).unwrap().clone();
        if reference["selector"]["matchLabels"] == json!({"set": "all"}) {
            // The API server reads several params in random order. The result of these mutations must not depend on the
            // order.
            let each =
                "Object{metadata: Object.metadata{labels: {params.metadata.name: \"used\"}}}";
            trial.policy["spec"]["mutations"] = json!([{"patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": each}}]);
        }
        trial.binding = json!({"paramRef": reference});
    }
    trial
}

pub(crate) fn updating(seed: u64, n: u64) -> Trial {
    let mut random = Random::for_event(seed, "mutated update", n);
    let name = format!("m{n}");
    let is_box = random.permille(500);
    let (old, object) = if is_box {
        let other = if random.permille(300) { n } else { n + 1 };
        (box_of(seed, n, &name), box_of(seed, other, &name))
    } else {
        let old = deployment_of(&mut random, &name);
        (old, deployment_of(&mut random, &name))
    };
    let of_kind = if is_box {
        APPLIED_IN_UPDATES_OF_BOXES
    } else {
        APPLIED_IN_UPDATES_OF_DEPLOYMENTS
    };
    let mut applied = APPLIED_IN_UPDATES.to_vec();
    applied.extend(of_kind);
    if !is_box {
        applied.extend(&APPLIED[..13]);
    }
    let count = random.below(2) + 1;
    let mutations: Vec<Value> = (0..count)
        .map(|_| mutation(&mut random, &applied, &PATCHED_IN_UPDATES))
        .collect();
    let (group, resource) = if is_box {
        ("example.com", "boxes")
    } else {
        ("apps", "deployments")
    };
    let operations: &[&str] = random
        .choose(&[&["UPDATE"][..], &["CREATE", "UPDATE"], &["*"]])
        .unwrap();
    let policy = policy_of(&mut random, &name, operations, resource, &mutations);
    Trial {
        policy,
        binding: json!({}),
        object,
        old: Some(old),
        gvr: Gvr::new(group, "v1", resource),
        params: Params::None,
    }
}

/// Renames a policy and restricts it to the object `name`, because the policies of other trials exist at the same time.
fn restrict_to_name(policy: &mut Value, name: &str) {
    policy["apiVersion"] = json!("admissionregistration.k8s.io/v1");
    policy["kind"] = json!("MutatingAdmissionPolicy");
    policy["metadata"] = json!({"name": name});
    let mut conditions =
        vec![json!({"name": "mine", "expression": format!("request.name == '{name}'")})];
    if let Some(more) = policy["spec"]["matchConditions"].as_array() {
        // If one condition is false, errors of other conditions have no effect. Therefore each condition tests the name
        // first.
        conditions.extend(more.iter().map(|condition| {
            let expression = condition["expression"].as_str().unwrap();
            let expression = format!("request.name == '{name}' && ({expression})");
            json!({"name": condition["name"], "expression": expression})
        }));
    }
    policy["spec"]["matchConditions"] = json!(conditions);
    // The API server resolves params before it evaluates conditions. An error of params therefore affects all requests
    // that the rules match.
    let rules = policy.pointer_mut("/spec/matchConstraints/resourceRules");
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        rule["resourceNames"] = json!([name]);
    }
}
