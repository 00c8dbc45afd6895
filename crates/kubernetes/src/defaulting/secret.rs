//! Moves `stringData` of a Secret to `data`, like the API server.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/core/v1/conversion.go`, `Convert_v1_Secret_To_core_Secret`.

use serde_json::{Map, Value};

/// Moves the entries of `stringData` to `data`, encoded in base64. They replace entries in `data` with the same key.
/// The Secret is in compact form.
///
/// `given` contains `stringData` and `data` before the rules of the table were applied. The rules for these fields are
/// incomplete, because the generator of the table tried only a few keys. The result of these rules is therefore
/// discarded.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn string_data_of_secret_is_encoded_and_overrides_data() {
        let merged = |texts: Option<Value>, data: Option<Value>| {
            let mut secret = json!({"type": "Opaque", "stringData": {"wrong": "x"}});
            merge(&mut secret, [texts, data]);
            secret
        };
        let unchanged = json!({"type": "Opaque", "stringData": {"wrong": "x"}});
        assert_eq!(merged(None, Some(json!({"a": "YQ=="}))), unchanged);
        assert_eq!(
            merged(Some(json!({"a": "hi"})), None),
            json!({"type": "Opaque", "data": {"a": "aGk="}})
        );
        assert_eq!(
            merged(
                Some(json!({"a": "hi", "b": ""})),
                Some(json!({"a": "eA==", "c": "eQ=="}))
            ),
            json!({"type": "Opaque", "data": {"a": "aGk=", "b": "", "c": "eQ=="}})
        );
    }
}
