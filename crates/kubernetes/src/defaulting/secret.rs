//! The `stringData` of a Secret, which the API server moves to `data`.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/core/v1/conversion.go`, `Convert_v1_Secret_To_core_Secret`.

use serde_json::{Map, Value};

/// Moves `stringData` to the data of a compact Secret. It overrides data with the same key.
///
/// The table only has rules for the keys that were tried, so the given values are used.
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
