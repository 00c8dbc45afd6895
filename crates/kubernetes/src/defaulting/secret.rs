//! Moves the `stringData` of a Secret to `data`, like the API server.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/core/v1/conversion.go`, `Convert_v1_Secret_To_core_Secret`.

use serde_json::{Map, Value};

/// Moves `stringData` of a Secret in compact form to `data`. It overrides entries of `data` with the same key.
///
/// `given` contains the values before any rule was applied: the table only has rules for the keys that its generator
/// tried, so their result is not usable.
pub(super) fn merge(secret: &mut Value, given: [Option<Value>; 2]) {
    let [texts, data] = given;
    let texts = texts.as_ref().and_then(Value::as_object);
    let (Some(texts), Some(fields)) = (texts, secret.as_object_mut()) else {
        return;
    };
    fields.remove("stringData");
    let mut data = match data {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    for (name, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(name.clone(), cel::base64::encode(text.as_bytes()).into());
    }
    fields.insert("data".to_owned(), data.into());
}
