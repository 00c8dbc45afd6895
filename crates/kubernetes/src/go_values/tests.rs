use serde_json::{Value as Json, json};

use super::*;
use crate::defaulting::round_trip;
use crate::version::KubernetesVersion;

fn typed_object(group: &str, version: &str, object: &Json) -> Value {
    let kind = object["kind"].as_str().unwrap();
    let gvk = Gvk::new(group, version, kind);
    let decoded = round_trip(&gvk, object, &KubernetesVersion::NEWEST.behavior()).unwrap();
    super::object(&gvk, &Value::from(&decoded)).unwrap()
}

fn service(spec: &Json) -> Value {
    typed_object(
        "",
        "v1",
        &json!({"apiVersion": "v1", "kind": "Service", "spec": spec}),
    )
}

#[test]
fn empty_and_unset_fields_of_structs_are_equal() {
    let with =
        |ports: Json, selector: Json| service(&json!({"ports": ports, "selector": selector}));
    let empty = with(Json::Null, Json::Null);
    for (other, expected) in [
        (with(json!([]), json!({})), true),
        (with(json!([{"port": 1}]), json!({})), false),
        (with(json!([]), json!({"a": ""})), false),
    ] {
        assert_eq!(empty.equals(&other), Ok(expected), "{other:?}");
        assert_eq!(other.equals(&empty), Ok(expected), "{other:?}");
    }
}

#[test]
fn fields_have_go_types() {
    let object =
        service(&json!({"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}}));
    let spec = object
        .as_map()
        .unwrap()
        .find(&"spec".into())
        .unwrap()
        .unwrap();
    let field = |name: &str| spec.as_map().unwrap().find(&name.into()).unwrap().unwrap();
    assert_eq!(spec.go_type(), "*common.reflectSchemalessTypedStruct");
    assert_eq!(
        field("selector").go_type(),
        "*common.reflectSchemalessTypedMap"
    );
    assert_eq!(
        field("ports").go_type(),
        "*common.reflectSchemalessTypedList"
    );
    let port = field("ports").as_list().unwrap().get(0).unwrap();
    let target = port.as_map().unwrap().find(&"targetPort".into()).unwrap();
    assert_eq!(target.unwrap().as_str(), Some("http"));
    let error = spec.as_map().unwrap().find(&Value::Int(1)).unwrap_err();
    assert_eq!(error.to_string(), "unsupported map key type: types.Int");
}

#[test]
fn object_of_unknown_kind_has_no_go_type() {
    let widget = Value::from(&json!({"kind": "Widget"}));
    assert!(super::object(&Gvk::new("example.com", "v1", "Widget"), &widget).is_none());
}
