//! Objects of kinds whose defaults are not known: a policy is decided about one where what it reads is not the API
//! server's to set, and is not decided otherwise.
//!
//! The one rule of `kubectl vap test`, `eval`, `audit`, `diff` and the controller. What the API server may do to an
//! object of such a kind, as to all whose defaults are known: it fills in what is absent or has no value (`""`, `0`,
//! `false`, an empty list or map), drops such a value, writes numbers, times and bytes in its own form, and owns `status`
//! and `metadata.generation`. A value beyond that stays as it is sent.

use serde_json::Value;

use super::allocated;
use super::api::Request;
use crate::policy::admission::Admission;
use crate::policy::reads::fields::{AccessKind, FieldRead, Step};
use crate::schema::Gvk;

/// A request whose objects lack the defaults of their kind, as these are not known.
#[derive(Clone, Debug)]
pub(crate) struct Undefaulted {
    why: String,
    /// True if the object has been read from a cluster, and has its defaults.
    is_stored: bool,
    /// The same of the old object, of which nothing is set anew.
    is_old_stored: bool,
    /// The only fields that are not known of the object and the old one; `None` where all are that the kind may have.
    open: Option<[Vec<Vec<Step>>; 2]>,
}

impl Undefaulted {
    /// A request as it is written; `why` says what is not known.
    pub(super) fn new(request: &Request, why: String) -> Self {
        let is_stored = |object: &Option<Value>| {
            let uid = object.as_ref().and_then(|it| it.pointer("/metadata/uid"));
            uid.is_some_and(Value::is_string)
        };
        Self {
            why,
            is_stored: is_stored(&request.object),
            is_old_stored: is_stored(&request.old_object),
            open: None,
        }
    }

    /// A request as it is written, of which `prepared` is the same with defaults; nothing where these are all that the API
    /// server sets of objects of the kind `gvk`.
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

    /// Reports whether defaults matter for what `policy`, which matches the request, decides about it.
    ///
    /// # Errors
    /// Which field it reads that the API server may set.
    pub(crate) fn decides(&self, policy: &Admission, request: &Request) -> Result<(), String> {
        let is_open = |read: &&FieldRead| {
            if let Some([new, old]) = &self.open {
                let paths = if read.is_old { old } else { new };
                return paths.iter().any(|path| allocated::is_touched(read, path));
            }
            let object = if read.is_old {
                &request.old_object
            } else {
                &request.object
            };
            let is_stored = if read.is_old {
                self.is_old_stored
            } else {
                self.is_stored && !is_set_anew(read)
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

/// Reports whether the API server sets the field whatever a client sends.
fn is_set_anew(read: &FieldRead) -> bool {
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

/// Reports whether what is looked at is the same for the API server's object as for `object`.
fn is_settled(object: &Value, read: &FieldRead) -> bool {
    let fields = read.path.iter().map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Each => None,
    });
    let fields: Vec<Option<&str>> = fields.collect();
    match fields.as_slice() {
        // That there is an object is a matter of the operation.
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

/// Reports whether all values at the path are given, as far as they are looked at.
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
                other => is_kept(other),
            },
            AccessKind::Whole => is_kept(value),
        },
    }
}

/// Reports whether a value is one that the API server may take for none.
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

/// Reports whether a value stays as it is, with all that is in it.
fn is_kept(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) => false,
        Value::Bool(value) => *value,
        Value::Number(number) => {
            let is_whole = number.is_i64() || number.is_u64();
            is_whole && !is_empty(value)
        }
        Value::String(text) => !text.is_empty() && !has_other_form(text),
        Value::Array(items) => !items.is_empty() && items.iter().all(is_kept),
    }
}

/// Reports whether a text may be a quantity, a duration, a time, or bytes, which have a form of their own.
fn has_other_form(text: &str) -> bool {
    let first = text.bytes().next().unwrap_or_default();
    let may_be_number = first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.');
    let is_of_bytes = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n')
    };
    may_be_number || (text.contains(['\r', '\n']) && text.bytes().all(is_of_bytes))
}

#[cfg(test)]
mod tests {
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
        let policy = serde_json::from_value(policy).unwrap();
        let admission = Admission::from_compiled(&CompiledPolicy::new(&policy));
        let mut object = json!({"apiVersion": "a.k8s.io/v1", "kind": "A",
            "metadata": {"name": "a", "labels": {"b": ""}},
            "spec": {"group": "c", "off": false, "size": "1Gi", "text": "a\nb c", "bytes": "YWJj\nZA==",
                "names": ["d", "e"], "list": [{"name": "f", "on": true}, {"name": "g"}]}});
        if is_stored {
            object["metadata"]["uid"] = json!("1-2");
        }
        let request: Request = serde_json::from_value(json!({"object": object})).unwrap();
        let undefaulted = Undefaulted::new(&request, "not known".to_owned());
        let found = undefaulted.decides(&admission, &request);
        let expected = expected.map_or(Ok(()), |field| {
            Err(format!(
                "the policy reads `{field}`, which the API server may set: not known"
            ))
        });
        assert_eq!(found, expected, "{validation}");
    }

    #[test]
    fn what_the_api_server_may_set_is_not_decided_on() {
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
    fn an_object_of_a_cluster_has_its_defaults() {
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
