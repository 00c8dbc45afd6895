//! Tests merging and patching of objects: recorded cases with upstream's results, cases of upstream's tests, and
//! hostile input.
//!
//! `parity mutations --record` writes the recorded cases to `tests/golden/mutations`. `./dev parity` compares many more
//! generated cases with upstream.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use vap_status_controller::go_json;
use vap_status_controller::json_patch::{self, Operation, PatchError};
use vap_status_controller::merge::{self, Applied, NonJson, Types};
use vap_status_controller::schema::{Builtin, Crd, Gvk};
use vap_status_controller::version::KubernetesVersion;

const MERGES: &str = include_str!("../golden/mutations/merges.jsonl");
const PATCHES: &str = include_str!("../golden/mutations/patches.jsonl");

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn gvk_of(case: &Value) -> Gvk {
    let [group, version, kind]: [String; 3] = serde_json::from_value(case["gvk"].clone()).unwrap();
    Gvk::new(group, version, kind)
}

fn crd_types(crd: &Value) -> Types {
    let crd = Crd::from_value(crd).unwrap();
    Types::from_crd(&crd, &crd.versions[0]).unwrap()
}

fn operations(patch: &Value) -> Vec<Operation> {
    let operations = patch.as_array().unwrap().iter();
    operations
        .map(|written| Operation {
            op: written["op"].as_str().unwrap().to_owned(),
            path: written["path"].as_str().unwrap().to_owned(),
            from: written
                .get("from")
                .map(|from| from.as_str().unwrap().to_owned()),
            value: written.get("value").cloned(),
        })
        .collect()
}

#[test]
fn recorded_merges_match_upstream() {
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let cases = lines(MERGES);
    for case in &cases {
        let gvk = gvk_of(case);
        let types = match case.get("crd") {
            Some(crd) => crd_types(crd),
            None => Types::from_builtin(builtin, &gvk).unwrap(),
        };
        let findings = merge::apply(
            &types,
            &gvk,
            &case["live"],
            &Applied::from(&case["applied"]),
        );
        let findings = findings
            .map(|merged| go_json::to_text(&merged))
            .map_err(|error| error.to_string());
        let expected = match case.get("error") {
            Some(error) => Err(error.as_str().unwrap().to_owned()),
            None => Ok(case["result"].as_str().unwrap().to_owned()),
        };
        assert_eq!(findings, expected, "{case}");
    }
    assert!(cases.len() >= 100, "{}", cases.len());
}

#[test]
fn recorded_patches_match_upstream() {
    let cases = lines(PATCHES);
    for case in &cases {
        let findings = match json_patch::apply(&case["object"], &operations(&case["patch"])) {
            Ok(patched) => json_patch::decoded(patched)
                .map(|patched| go_json::to_text(&patched))
                .map_err(|error| format!("Internal error occurred: {error}")),
            Err(PatchError::TestFailed(_)) => Ok(go_json::to_text(&case["object"])),
            Err(PatchError::Panic(reason)) => Err(reason.to_owned()),
            Err(error) => Err(format!("JSON Patch: {error}")),
        };
        let text = |key: &str| case.get(key).map(|text| text.as_str().unwrap().to_owned());
        let expected = match text("error").or_else(|| text("panic")) {
            Some(error) => Err(error),
            None => Ok(text("result").unwrap()),
        };
        assert_eq!(findings, expected, "{case}");
    }
    assert!(cases.len() >= 300, "{}", cases.len());
}

fn deployment(metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

fn with_containers(containers: &Value) -> Value {
    json!({"template": {"spec": {"containers": containers}}})
}

/// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/json_patch_test.go`, `TestJSONPatch`, cases about
/// patches.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn json_patches_have_upstream_results() {
    let labels = |labels: Value| deployment(&json!({"labels": labels}), &json!({}));
    let bare = || deployment(&json!({}), &json!({}));
    let spec = |spec: Value| deployment(&json!({}), &spec);
    let containers = |names: &[&str]| {
        let containers = names.iter().map(|name| json!({"name": name})).collect();
        spec(with_containers(&containers))
    };
    let replace_after_test = |value| json!([{"op": "test", "path": "/spec/replicas", "value": value}, {"op": "replace", "path": "/spec/replicas", "value": 3}]);
    let one = |op: &str, path: &str| json!([{"op": op, "path": path}]);
    let from = |op: &str, from: &str, path: &str| json!([{"op": op, "from": from, "path": path}]);
    let set =
        |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
    let at = |key: &str| format!("/spec/template/spec/containers/{key}");
    let x = || json!({"name": "x"});
    let cases = [
        (
            spec(json!({"replicas": 1})),
            replace_after_test(100),
            spec(json!({"replicas": 1})),
        ),
        (
            spec(json!({"replicas": 1})),
            replace_after_test(1),
            spec(json!({"replicas": 3})),
        ),
        (
            spec(json!({"replicas": 1})),
            one("remove", "/spec/replicas"),
            bare(),
        ),
        (
            labels(json!({"x": "1", "y": "1"})),
            one("remove", "/metadata/labels/y"),
            labels(json!({"x": "1"})),
        ),
        (
            containers(&["a", "b", "c"]),
            one("remove", &at("1")),
            containers(&["a", "c"]),
        ),
        (
            labels(json!({"x": "1"})),
            from("copy", "/metadata/labels/x", "/metadata/labels/y"),
            labels(json!({"x": "1", "y": "1"})),
        ),
        (
            containers(&["a", "b", "c"]),
            from("copy", &at("0"), &at("-")),
            containers(&["a", "b", "c", "a"]),
        ),
        (
            labels(json!({"x": "1"})),
            from("move", "/metadata/labels/x", "/metadata/labels/y"),
            labels(json!({"y": "1"})),
        ),
        (
            containers(&["a", "b", "c"]),
            from("move", &at("0"), &at("-")),
            containers(&["b", "c", "a"]),
        ),
        (
            labels(json!({"y": "1"})),
            set("add", "/metadata/labels/x", json!("2")),
            labels(json!({"x": "2", "y": "1"})),
        ),
        (
            bare(),
            set("add", "/metadata/labels", json!({"y": "2"})),
            labels(json!({"y": "2"})),
        ),
        (
            labels(json!({"x": "1"})),
            set("add", "/metadata/labels", json!({"y": "2"})),
            labels(json!({"y": "2"})),
        ),
        (
            containers(&["a"]),
            set("add", &at("0"), x()),
            containers(&["x", "a"]),
        ),
        (
            containers(&["a"]),
            set("add", &at("-"), x()),
            containers(&["a", "x"]),
        ),
        (
            labels(json!({"y": "1"})),
            set("replace", "/metadata/labels/x", json!("2")),
            labels(json!({"x": "2", "y": "1"})),
        ),
        (
            bare(),
            set("replace", "/metadata/labels", json!({"y": "2"})),
            labels(json!({"y": "2"})),
        ),
        (
            labels(json!({"x": "1"})),
            set("replace", "/metadata/labels", json!({"y": "2"})),
            labels(json!({"y": "2"})),
        ),
        (
            containers(&["a"]),
            set("replace", &at("0"), x()),
            containers(&["x"]),
        ),
    ];
    for (object, patch, expected) in cases {
        let findings = match json_patch::apply(&object, &operations(&patch)) {
            Err(PatchError::TestFailed(_)) => object,
            other => other.unwrap(),
        };
        assert_eq!(findings, expected, "{patch}");
    }
    let patch = set("replace", &at("-"), x());
    let error = json_patch::apply(&containers(&["a"]), &operations(&patch)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "replace operation does not apply: doc is missing key: /spec/template/spec/containers/-: missing value"
    );
}

/// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd_test.go`, `TestApplyConfiguration`, cases about
/// merges; `typeconverter_test.go`.
#[test]
fn apply_configurations_have_upstream_results() {
    let gvk = Gvk::new("apps", "v1", "Deployment");
    let types =
        Types::from_builtin(Builtin::load(KubernetesVersion::DEFAULT).unwrap(), &gvk).unwrap();
    let merged = |live: &Value, applied: &Value| {
        let live = deployment(&json!({}), live);
        let merged = merge::apply(
            &types,
            &gvk,
            &live,
            &Applied::from(&json!({"spec": applied})),
        );
        merged
            .map(|merged| merged["spec"].clone())
            .map_err(|error| error.to_string())
    };
    let volumes = |volumes: Value| json!({"template": {"spec": {"volumes": volumes}}});
    let path = json!({"name": "y", "hostPath": {"path": "a"}});
    let env = |env: Value| with_containers(&json!([{"name": "nginx", "env": env}]));
    let doubled = json!([{"name": "test", "value": "a"}, {"name": "test", "value": "b"}]);
    let with_replicas = |mut spec: Value, replicas: i64| {
        spec["replicas"] = json!(replicas);
        spec
    };
    let whole = json!({
        "replicas": 1,
        "template": {"metadata": {"labels": {"app": "nginx"}}, "spec": {"containers": [{
            "name": "nginx", "image": "nginx:1.14.2", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "128M"}},
        }]}},
    });
    let cases = [
        (
            volumes(json!([{"name": "x"}])),
            volumes(json!([{"name": "y"}])),
            volumes(json!([{"name": "x"}, {"name": "y"}])),
        ),
        (
            volumes(json!([{"name": "x"}, {"name": "y"}])),
            volumes(json!([path])),
            volumes(json!([{"name": "x"}, path])),
        ),
        (
            json!({"replicas": 2}),
            json!({"replicas": 3}),
            json!({"replicas": 3}),
        ),
        (json!({}), whole.clone(), whole),
        (
            with_replicas(env(doubled.clone()), 1),
            json!({"replicas": 3}),
            with_replicas(env(doubled), 3),
        ),
        (
            env(
                json!([{"name": "test", "value": "a"}, {"name": "test", "value": "b"}, {"name": "foo", "value": "bar"}]),
            ),
            env(json!([{"name": "test", "value": "c"}])),
            env(json!([{"name": "test", "value": "c"}, {"name": "foo", "value": "bar"}])),
        ),
    ];
    for (live, applied, expected) in cases {
        assert_eq!(merged(&live, &applied), Ok(expected), "{applied}");
    }
    let live = json!({"replicas": 1});
    assert_eq!(
        merged(&live, &json!({"selector": {"matchLabels": {"l": "v"}}})),
        Err("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector".to_owned())
    );
    assert_eq!(
        merged(&live, &json!({"replicasx": 1})),
        Err("failed to convert patch object to typed object: .spec.replicasx: field not declared in schema".to_owned())
    );
}

#[test]
fn non_json_values_have_go_errors() {
    let gvk = Gvk::new("apps", "v1", "Deployment");
    let types =
        Types::from_builtin(Builtin::load(KubernetesVersion::DEFAULT).unwrap(), &gvk).unwrap();
    let null = || {
        Applied::NonJson(NonJson {
            go_type: "structpb.NullValue".to_owned(),
            plain: "NULL_VALUE".to_owned(),
            syntax: "0".to_owned(),
        })
    };
    let refused = |field: &str| {
        let spec = Applied::Map([(field.to_owned(), null())].into());
        let applied = Applied::Map([("spec".to_owned(), spec)].into());
        let live = deployment(&json!({}), &json!({}));
        merge::apply(&types, &gvk, &live, &applied)
            .unwrap_err()
            .to_string()
    };
    let heading = "failed to convert patch object to typed object: .spec";
    assert_eq!(
        refused("replicas"),
        format!("{heading}.replicas: expected numeric (int or float), got structpb.NullValue")
    );
    assert_eq!(
        refused("paused"),
        format!("{heading}.paused: expected boolean, got &{{NULL_VALUE}}")
    );
    assert_eq!(
        refused("template"),
        format!("{heading}.template: expected map, got &{{NULL_VALUE}}")
    );
}

#[test]
fn kind_without_schema_has_no_type() {
    let gvk = Gvk::new("apps", "v1", "Deployment");
    let types =
        Types::from_builtin(Builtin::load(KubernetesVersion::DEFAULT).unwrap(), &gvk).unwrap();
    let other = Gvk::new("apps", "v1", "Deploymint");
    assert!(types.has(&gvk) && !types.has(&other));
    let error = merge::apply(&types, &other, &json!({}), &Applied::from(&json!({}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to convert patch object to typed object: no corresponding type for apps/v1, Kind=Deploymint"
    );
}

#[test]
fn document_with_unconvertible_schema_is_an_error() {
    let document = |schema: Value| json!({"components": {"schemas": {"Box": schema}}}).to_string();
    let refused = |schema: Value| {
        Types::from_document(document(schema).as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert!(
        refused(json!({"type": "array"})).ends_with("Box: `items` must be specified on arrays")
    );
    assert!(refused(json!({"type": "file"})).ends_with("Box: unrecognized type: 'file'"));
    let set = json!({"type": "array", "items": {}, "x-kubernetes-list-type": "bag"});
    assert!(refused(set).ends_with("Box: unknown list type bag"));
    let map = json!({"type": "array", "items": {}, "x-kubernetes-list-type": "map"});
    assert!(
        refused(json!({"type": "object", "properties": {"a": map}}))
            .ends_with("inlined in Box: missing map keys")
    );
    let wrapped =
        json!({"type": "object", "properties": {"a": {"x-kubernetes-map-type": "loose"}}});
    assert!(refused(wrapped).ends_with("inlined in Box: unknown map type loose"));
    assert!(Types::from_document(b"[").is_err());
}

fn nested(levels: usize) -> Value {
    let mut value = json!(1);
    for _ in 0..levels {
        value = Value::Object(Map::from_iter([("a".to_owned(), value)]));
    }
    value
}

#[test]
fn too_deep_values_are_rejected_by_patch_and_merge() {
    let deep = nested(300);
    let add = Operation::new("add", "/x").with_value(deep.clone());
    assert_eq!(
        json_patch::apply(&json!({}), &[add]),
        Err(PatchError::TooDeep)
    );
    assert_eq!(json_patch::apply(&deep, &[]), Err(PatchError::TooDeep));
    // Each copy operation doubles the depth of the object.
    let mut patch = vec![Operation::new("add", "/a").with_value(json!({}))];
    for levels in 1..=12_u32 {
        let end = "/a".repeat(2_usize.pow(levels - 1));
        patch.push(Operation::new("copy", &format!("{end}/a")).with_from("/a"));
    }
    assert_eq!(
        json_patch::apply(&json!({}), &patch),
        Err(PatchError::TooDeep)
    );
    let moves: Vec<_> = (0..200)
        .map(|_| Operation::new("move", "/a/a/a/a").with_from("/b"))
        .collect();
    assert!(json_patch::apply(&json!({"a": {"a": {"a": {}}}, "b": nested(250)}), &moves).is_err());

    let gvk = Gvk::new("", "v1", "ConfigMap");
    let types =
        Types::from_builtin(Builtin::load(KubernetesVersion::DEFAULT).unwrap(), &gvk).unwrap();
    let merged = merge::apply(&types, &gvk, &json!({}), &Applied::from(&deep));
    assert_eq!(merged, Err(merge::Error::TooDeep));
}

#[test]
fn patch_copies_beyond_upstream_limit_fail() {
    let object = json!({"kind": "Box", "a": "x".repeat(1_000_000)});
    let copies: Vec<_> = (0..9)
        .map(|n| Operation::new("copy", &format!("/b{n}")).with_from("/a"))
        .collect();
    let error = json_patch::apply(&object, &copies).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Unable to complete the copy, the accumulated size increase of copy is 4000008, exceeding the limit 3145728"
    );
    assert!(json_patch::apply(&object, &copies[..3]).is_ok());
}

#[test]
fn large_lists_merge_in_linear_time() {
    let crd = json!({"spec": {
        "group": "example.com", "names": {"kind": "Box", "plural": "boxes"},
        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }}}}],
    }});
    let types = crd_types(&crd);
    let gvk = Gvk::new("example.com", "v1", "Box");
    let items = |names: &mut dyn Iterator<Item = u32>| -> Value {
        json!({"items": names.map(|n| json!({"name": n.to_string()})).collect::<Vec<_>>()})
    };
    let begin = Instant::now();
    let live = items(&mut (0..20_000));
    let applied = items(&mut (0..20_000).rev());
    let merged = merge::apply(&types, &gvk, &live, &Applied::from(&applied)).unwrap();
    assert_eq!(merged["items"], applied["items"]);
    // Many items have the same long key, which is part of many error messages.
    let name = "x".repeat(10_000);
    let doubled: Vec<_> = (0..5_000).map(|_| json!({"name": name})).collect();
    let refused = merge::apply(
        &types,
        &gvk,
        &live,
        &Applied::from(&json!({"items": doubled})),
    );
    assert!(refused.unwrap_err().to_string().len() < 3_000_000);
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}
