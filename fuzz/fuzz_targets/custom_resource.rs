//! Reads the fields of a JSON object: a CustomResourceDefinition, an object, an old object, an apply configuration and
//! a patch. Validates the definition and the object. Applies the configuration and the patch.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use vap_status_controller::custom_resource::{Validator, validate_definition};
use vap_status_controller::json_patch::{self, Operation};
use vap_status_controller::merge::{self, Applied, Types};
use vap_status_controller::schema::{Crd, Gvk};
use vap_status_controller::validation_rules::schema_errors;
use vap_status_controller::version::KubernetesVersion;

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let part = |name: &str| input.get(name).cloned().unwrap_or_default();
    let (definition, object) = (part("definition"), part("object"));
    let before = input.get("before");

    let _ = validate_definition(&definition, KubernetesVersion::DEFAULT);
    let _ = schema_errors(&definition);
    if let Ok(validator) = Validator::new(&definition, "v1", KubernetesVersion::DEFAULT) {
        let verdict = validator.validate(&object, before, "default");
        let again = validator.validate(&object, before, "default");
        assert_eq!(
            format!("{verdict:?}"),
            format!("{again:?}"),
            "validating the same request again must have the same result"
        );
    }

    let operations = part("patch");
    let operations: Vec<_> = operations
        .as_array()
        .into_iter()
        .flatten()
        .map(operation)
        .collect();
    let _ = json_patch::apply(&object, &operations);
    if let Ok(same) = json_patch::apply(&object, &[]) {
        assert_eq!(same, object, "an empty patch must not change the object");
    }

    let Ok(crd) = Crd::from_value(&definition) else {
        return;
    };
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let gvk = Gvk::new(
        text("/spec/group").unwrap_or_default(),
        "v1",
        text("/spec/names/kind").unwrap_or_default(),
    );
    let applied = Applied::from(&part("applied"));
    for version in &crd.versions {
        if let Ok(types) = Types::from_crd(&crd, version) {
            let _ = merge::apply(&types, &gvk, &object, &applied);
            let _ = merge::undeclared(&types, &gvk, &object);
        }
    }
});

fn operation(json: &Value) -> Operation {
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    let mut operation = Operation::new(
        text("op").unwrap_or_default(),
        text("path").unwrap_or_default(),
    );
    operation.from = text("from").map(str::to_owned);
    operation.value = json.get("value").cloned();
    operation
}
