//! Determines whether a policy can be evaluated for an object with unknown defaults. This is possible if the policy
//! reads no field that the API server may set.
//!
//! The controller and the commands `test`, `eval`, `audit` and `diff` use this rule. For the kind of the object, the
//! API server is assumed to do the following:
//!
//! - Set absent fields and empty values (`""`, `0`, `false`, an empty list or map), or remove empty values.
//! - Reformat numbers, times and bytes.
//! - Set `status` and `metadata.generation`.
//!
//! Other values do not change.

use serde_json::Value;

use super::allocated;
use super::api::Request;
use crate::policy::admission::Admission;
use crate::policy::reads::fields::{AccessKind, FieldRead, Step};
use crate::schema::Gvk;

/// The fields of a request whose values in the API server are unknown.
#[derive(Clone, Debug)]
pub(crate) struct UnknownDefaults {
    why: String,
    /// True if the object comes from a cluster, so the API server has already set its defaults.
    is_stored: bool,
    /// True if the old object comes from a cluster. The API server does not change it again.
    is_old_stored: bool,
    /// The paths of the unknown fields in the object and in the old object. `None` if any field may be unknown.
    open: Option<[Vec<Vec<Step>>; 2]>,
}

impl UnknownDefaults {
    /// Creates the value for a kind whose defaults are unknown for the reason `why`. The objects of `request` are not
    /// prepared.
    pub(super) fn new(request: &Request, why: String) -> Self {
        let is_stored = |object: &Option<Value>| {
            let object = object.as_ref();
            let uid = object.and_then(|object| object.pointer("/metadata/uid"));
            uid.is_some_and(Value::is_string)
        };
        Self {
            why,
            is_stored: is_stored(&request.object),
            is_old_stored: is_stored(&request.old_object),
            open: None,
        }
    }

    /// Creates the value for a kind whose defaults are known. The unknown fields are those that the API server sets
    /// from cluster state. Returns `None` if there are none.
    pub(super) fn allocated(written: &Request, prepared: &Request, gvk: &Gvk) -> Option<Self> {
        let whole = Self::new(written, allocated::why(gvk).to_owned());
        let open = |object: &Option<Value>, is_stored: bool| {
            let object = object.as_ref().filter(|_| !is_stored);
            object.map_or_else(Vec::new, |object| allocated::open(gvk, object))
        };
        let open = [
            open(&prepared.object, whole.is_stored),
            open(&prepared.old_object, whole.is_old_stored),
        ];
        let has_open = open.iter().any(|paths| !paths.is_empty());
        has_open.then_some(Self {
            open: Some(open),
            ..whole
        })
    }

    /// Returns an error with the first field that `policy` reads and the API server may set. The policy must match the
    /// request.
    pub(crate) fn check_readable_fields(
        &self,
        policy: &Admission,
        request: &Request,
    ) -> Result<(), String> {
        let is_open = |read: &&FieldRead| {
            if let Some([new, old]) = &self.open {
                let paths = if read.is_old { old } else { new };
                return paths.iter().any(|path| allocated::affects(path, read));
            }
            let object = if read.is_old {
                &request.old_object
            } else {
                &request.object
            };
            let is_stored = if read.is_old {
                self.is_old_stored
            } else {
                self.is_stored && !is_always_set(read)
            };
            (object.as_ref()).is_some_and(|object| !is_stored && !is_settled(object, read))
        };
        match policy.field_reads().iter().find(is_open) {
            None => Ok(()),
            Some(read) => Err(format!(
                "the policy reads `{read}`, which the API server may set: {}",
                self.why
            )),
        }
    }
}

/// Returns true if the API server overwrites the client's value of the field.
fn is_always_set(read: &FieldRead) -> bool {
    let name = |step: Option<&Step>| match step {
        Some(Step::Field(name)) => Some(name.clone()),
        _ => None,
    };
    let mut steps = read.path.iter();
    match (name(steps.next()), name(steps.next())) {
        (None, _) => true,
        (Some(first), None) => first == "status" || first == "metadata",
        (Some(first), Some(second)) => {
            first == "status" || (first == "metadata" && second == "generation")
        }
    }
}

/// Returns true if `read` returns the same result before and after the API server sets fields.
fn is_settled(object: &Value, read: &FieldRead) -> bool {
    let fields = read.path.iter().map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Each => None,
    });
    let fields: Vec<Option<&str>> = fields.collect();
    match fields.as_slice() {
        // The operation determines whether an object is present. Its content is unknown.
        [] | [Some("metadata")] => read.access == AccessKind::Presence,
        [Some("apiVersion" | "kind")] => true,
        [Some("metadata"), Some("generation"), ..] | [Some("status"), ..] => false,
        [Some("metadata"), Some(name), ..] => {
            let value = object.get("metadata").and_then(|of| of.get(name));
            value.is_none_or(|value| !is_empty(value))
        }
        _ => is_given(object, &read.path, read.access),
    }
}

/// Returns true if the sample has all values at `path`, and the API server does not change the parts that `access`
/// reads.
fn is_given(value: &Value, path: &[Step], access: AccessKind) -> bool {
    match path.split_first() {
        Some((Step::Field(name), rest)) => {
            let field = value.get(name);
            field.is_some_and(|field| is_given(field, rest, access))
        }
        Some((Step::Each, rest)) => value.as_array().is_some_and(|items| {
            !items.is_empty() && items.iter().all(|item| is_given(item, rest, access))
        }),
        None => match access {
            AccessKind::Presence => !is_empty(value),
            AccessKind::Elements => match value {
                Value::Array(items) => !items.is_empty(),
                other => is_unchanged(other),
            },
            AccessKind::Whole => is_unchanged(value),
        },
    }
}

/// Returns true if the API server may treat the value as absent.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Returns true if the API server changes neither the value nor a nested value.
fn is_unchanged(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) => false,
        Value::Bool(value) => *value,
        Value::Number(number) => {
            let is_whole = number.is_i64() || number.is_u64();
            is_whole && !is_empty(value)
        }
        Value::String(text) => !text.is_empty() && !may_be_reformatted(text),
        Value::Array(items) => !items.is_empty() && items.iter().all(is_unchanged),
    }
}

/// Returns true if the string may be a quantity, duration, time or base64. The API server may rewrite such a string in
/// canonical form.
fn may_be_reformatted(text: &str) -> bool {
    let first = text.bytes().next().unwrap_or_default();
    let may_be_number = first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.');
    let is_base64 = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n')
    };
    may_be_number || (text.contains(['\r', '\n']) && text.bytes().all(is_base64))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::json;

    use super::*;
    use crate::policy::compile::CompiledPolicy;

    #[track_caller]
    fn check(validation: &str, expected: Option<&str>) {
        check_stored(validation, expected, false);
    }

    #[track_caller]
    fn check_stored(validation: &str, expected: Option<&str>, is_stored: bool) {
        let policy = json!({"metadata": {"name": "a"}, "spec": {"validations": [{"expression": validation}]}});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let admission = Admission::from_compiled(&CompiledPolicy::new(&policy));
        let mut object = json!({"apiVersion": "a.k8s.io/v1", "kind": "A",
            "metadata": {"name": "a", "labels": {"b": ""}},
            "spec": {"group": "c", "off": false, "size": "1Gi", "text": "a\nb c", "bytes": "YWJj\nZA==",
                "names": ["d", "e"], "list": [{"name": "f", "on": true}, {"name": "g"}]}});
        if is_stored {
            object["metadata"]["uid"] = json!("1-2");
        }
        let request: Request = serde_json::from_value(json!({"object": object})).unwrap();
        let unknown_defaults = UnknownDefaults::new(&request, "unknown".to_owned());
        let result = unknown_defaults.check_readable_fields(&admission, &request);
        let expected = expected.map_or(Ok(()), |field| {
            Err(format!(
                "the policy reads `{field}`, which the API server may set: unknown"
            ))
        });
        assert_eq!(result, expected, "{validation}");
    }

    #[test]
    fn policy_that_reads_fields_the_api_server_may_set_is_undecided() {
        check("object.spec.group == 'c' && oldObject == null", None);
        check("object.spec.list.all(x, x.name != '')", None);
        check(
            "object.spec.list.size() == 2 && 'd' in object.spec.names",
            None,
        );
        check(
            "object.metadata.?labels.?b.orValue('') == '' && !has(object.metadata.annotations)",
            None,
        );
        check("object.metadata.labels.all(k, k != 'x')", None);
        check("object.spec.text == '' || oldObject.spec.x == 1", None);
        check("has(object.spec.size)", None);
        check("object.kind == 'A'", None);
        check("object.spec.size == '1Gi'", Some("object.spec.size"));
        check("object.spec.bytes == ''", Some("object.spec.bytes"));
        check("has(object.spec.off)", Some("object.spec.off"));
        check("has(object.spec.other)", Some("object.spec.other"));
        check(
            "object.spec.group == 'd' || object.spec.other == 1",
            Some("object.spec.other"),
        );
        check(
            "object.spec.list.all(x, x.on)",
            Some("object.spec.list[*].on"),
        );
        check(
            "object.spec.list.exists(x, x == {})",
            Some("object.spec.list[*]"),
        );
        check("object.spec == oldObject", Some("object.spec"));
        check(
            "object.metadata.generation == 1",
            Some("object.metadata.generation"),
        );
        check("has(object.status)", Some("object.status"));
        check(
            "dyn(object) == null || size(dyn(object)) > 1",
            Some("object"),
        );
    }

    #[test]
    fn policy_that_reads_spec_of_stored_object_is_decided() {
        check_stored("has(object.spec.other)", None, true);
        check_stored("object.spec.all(k, k != 'x')", None, true);
        check_stored("has(object.status)", Some("object.status"), true);
        check_stored(
            "object.metadata.generation == 1",
            Some("object.metadata.generation"),
            true,
        );
        check_stored("object == oldObject", Some("object"), true);
    }
}
