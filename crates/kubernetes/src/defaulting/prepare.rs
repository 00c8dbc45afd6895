//! Converts request objects to the form in which policies see them.
//!
//! Source: `k8s.io/apiserver` `pkg/endpoints/handlers/create.go`, `pkg/endpoints/handlers/update.go`,
//! `pkg/registry/generic/registry/store.go`, `pkg/registry/rest/{create,update,meta}.go`;
//! `k8s.io/apiextensions-apiserver` `pkg/registry/customresource/strategy.go`.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{Error, NOW, TypedObject, UID, custom, daemon_set, kind_rules, plugins};
use crate::object_meta;
use crate::schema::Gvk;

/// The suffix of names generated from `generateName`.
pub const SUFFIX: &str = "x7x7x";

/// The value of `resourceVersion` if an object has none.
const REVISION: &str = "1";

/// The maximum length of a generated name without its suffix, in characters.
const MAX_GENERATED: usize = 58;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Updates an object.
    Update,
    /// Deletes an object.
    Delete,
}

/// The admission stage of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Mutating policies. The objects contain defaults, but not the fields that the API server sets when it stores an
    /// object.
    Mutation,
    /// Validating policies and webhooks. The objects contain all fields.
    Validation,
}

/// Facts from a CustomResourceDefinition.
#[derive(Clone, Copy, Debug)]
pub struct Custom<'a> {
    /// The structural schema of the version, if the CRD contains a schema.
    pub schema: Option<&'a Value>,
    /// True if the version has a `status` subresource.
    pub has_status: bool,
}

/// A request with the objects that the client sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operation.
    pub operation: Operation,
    /// The admission stage.
    pub stage: Stage,
    /// The kind of the object and the old object.
    pub gvk: &'a Gvk,
    /// Facts from the CRD. `None` for built-in kinds.
    pub custom: Option<Custom<'a>>,
    /// The namespace of the request. Empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// True if the request is for the `status` subresource.
    pub is_status: bool,
    /// The new object.
    pub object: Option<&'a Value>,
    /// The object that was stored before the request.
    pub old_object: Option<&'a Value>,
}

/// The objects of a request as policies see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedObjects {
    /// The new object.
    pub object: Option<Value>,
    /// The object that was stored before the request.
    pub old_object: Option<Value>,
}

/// Converts the objects of a request to the objects that the API server passes to policies.
///
/// # Errors
/// Returns an error if the value of a field is unknown, or if the API server cannot decode an object.
pub fn prepare(request: &Request<'_>) -> Result<PreparedObjects, Error> {
    let object = read(request, request.object)?;
    let old_object = read(request, request.old_object)?;
    let request = &Request {
        object: object.as_deref(),
        old_object: old_object.as_deref(),
        ..*request
    };
    let old = request.old_object.map(|old| stored(request, old));
    let old = old.transpose()?;
    let object = match (request.object, &old, request.operation) {
        (None, ..) | (_, _, Operation::Delete) => None,
        (Some(object), old, _) if request.stage == Stage::Mutation => {
            Some(decoded(request, object, old.as_ref())?)
        }
        (Some(object), Some(old), Operation::Update) => Some(updated(request, object, old)?),
        (Some(object), ..) => Some(created(request, object)?),
    };
    Ok(PreparedObjects {
        object,
        old_object: old,
    })
}

/// Decodes the metadata of a custom resource and its embedded resources into Go types. Returns objects of built-in
/// kinds unchanged, because they are decoded later.
fn read<'a>(
    request: &Request<'_>,
    object: Option<&'a Value>,
) -> Result<Option<Cow<'a, Value>>, Error> {
    let (Some(object), Some(custom)) = (object, request.custom) else {
        return Ok(object.map(Cow::Borrowed));
    };
    let mut object = object.clone();
    object_meta::coerce_metadata(&mut object, custom.schema).map_err(Error::Undecodable)?;
    Ok(Some(Cow::Owned(object)))
}

/// Returns the created object as validating policies see it.
fn created(request: &Request<'_>, object: &Value) -> Result<Value, Error> {
    let mut object = object.clone();
    let metadata = metadata(&mut object);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        metadata.remove(field);
    }
    metadata.insert("uid".to_owned(), UID.into());
    metadata.insert("creationTimestamp".to_owned(), NOW.into());
    identify(metadata, request);
    manage(metadata, request.gvk);
    if let Some(custom) = request.custom {
        complete(&mut object, custom);
        if custom.has_status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        self::metadata(&mut object).insert("generation".to_owned(), 1.into());
        return Ok(object);
    }
    let mut typed = TypedObject::read(request.gvk, &object)?;
    typed.change(|object| plugins::admit(request.gvk, object));
    typed.create()?;
    typed.write()
}

/// Returns the new object as mutating policies see it. In an update, omitted metadata fields are copied from the old
/// object. Fields that the API server sets when it stores an object are not set.
fn decoded(request: &Request<'_>, object: &Value, old: Option<&Value>) -> Result<Value, Error> {
    let mut object = object.clone();
    let has_status = object.get("status").is_some_and(|status| !status.is_null());
    let given = metadata(&mut object);
    if let Some(old) = old {
        let before = old.get("metadata").and_then(Value::as_object);
        for field in [
            "uid",
            "resourceVersion",
            "name",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
        ] {
            let value = before.and_then(|metadata| metadata.get(field));
            if given.get(field).is_none_or(Value::is_null)
                && let Some(value) = value
            {
                given.insert(field.to_owned(), value.clone());
            }
        }
        if !has_status
            && let Some(fields) = object.as_object_mut()
            && let Some(status) = old.get("status")
        {
            fields.insert("status".to_owned(), status.clone());
        }
    } else {
        for field in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            given.remove(field);
        }
        manage(given, request.gvk);
    }
    let given = metadata(&mut object);
    let is_namespace = request.gvk.group.is_empty() && request.gvk.kind == "Namespace";
    if request.namespace.is_empty() || is_namespace {
        given.remove("namespace");
    } else {
        given.insert("namespace".to_owned(), request.namespace.into());
    }
    if let Some(custom) = request.custom {
        complete(&mut object, custom);
        return Ok(object);
    }
    let mut typed = TypedObject::read(request.gvk, &object)?;
    typed.change(|object| match old {
        Some(old) => plugins::update(request.gvk, object, old),
        None => plugins::admit(request.gvk, object),
    });
    typed.write()
}

/// Returns a stored object as policies see it. Sets missing fields that the API server would have set on creation.
fn stored(request: &Request<'_>, object: &Value) -> Result<Value, Error> {
    let mut object = object.clone();
    let has_status = object.get("status").is_some_and(|status| !status.is_null());
    let given = metadata(&mut object);
    let is_known = given.contains_key("uid");
    for (field, value) in [
        ("uid", UID),
        ("creationTimestamp", NOW),
        ("resourceVersion", REVISION),
    ] {
        given.entry(field).or_insert_with(|| value.into());
    }
    identify(given, request);
    if !is_known {
        manage(given, request.gvk);
    }
    let generation = given.get("generation").cloned();
    if let Some(custom) = request.custom {
        complete(&mut object, custom);
        metadata(&mut object)
            .entry("generation")
            .or_insert_with(|| 1.into());
        return Ok(object);
    }
    let mut typed = TypedObject::read(request.gvk, &object)?;
    // An object with a uid comes from a cluster, so all its fields are already set.
    if !is_known && !has_status {
        typed.change(|object| plugins::admit(request.gvk, object));
        typed.create()?;
    } else if !is_known && generation.is_none() && kind_rules::has_generation(request.gvk) {
        typed.change(|object| {
            metadata(object).insert("generation".to_owned(), 1.into());
        });
    }
    if let Some(generation) = generation {
        typed.change(|object| {
            metadata(object).insert("generation".to_owned(), generation);
        });
    }
    typed.write()
}

/// Returns the updated object as validating policies see it.
fn updated(request: &Request<'_>, object: &Value, old: &Value) -> Result<Value, Error> {
    let mut object = object.clone();
    let given = metadata(&mut object);
    let before = old.get("metadata").and_then(Value::as_object);
    let before = |field: &str| before.and_then(|metadata| metadata.get(field)).cloned();
    given.remove("selfLink");
    for field in [
        "uid",
        "resourceVersion",
        "name",
        "deletionGracePeriodSeconds",
    ] {
        if given.get(field).is_none_or(Value::is_null)
            && let Some(value) = before(field)
        {
            given.insert(field.to_owned(), value);
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "generation"] {
        match before(field) {
            Some(value) => given.insert(field.to_owned(), value),
            None if field == "generation" => given.remove(field),
            None => None,
        };
    }
    if let Some(value) = before("managedFields") {
        given.entry("managedFields").or_insert(value);
    }
    identify(given, request);
    let has_status_apart = match request.custom {
        Some(custom) => {
            complete(&mut object, custom);
            custom.has_status
        }
        None => {
            let mut typed = TypedObject::read(request.gvk, &object)?;
            typed.change(|object| plugins::update(request.gvk, object, old));
            object = typed.write()?;
            if daemon_set::is(request.gvk) {
                daemon_set::count(&mut object, old);
            }
            kind_rules::resets_status(request.gvk)
        }
    };
    if request.is_status {
        // A request for the `status` subresource changes only the status and some metadata. All other fields are copied
        // from `old`.
        let Some(fields) = object.as_object_mut() else {
            return Ok(object);
        };
        let kept: Vec<String> = fields
            .keys()
            .filter(|name| !["status", "metadata"].contains(&name.as_str()))
            .cloned()
            .collect();
        for name in kept {
            fields.remove(&name);
        }
        for (name, value) in old.as_object().into_iter().flatten() {
            if name != "status" && name != "metadata" {
                fields.insert(name.clone(), value.clone());
            }
        }
        return Ok(object);
    }
    if has_status_apart && let Some(fields) = object.as_object_mut() {
        match old.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    let counts = match request.custom {
        Some(_) => without_metadata(&object) != without_metadata(old),
        None => kind_rules::has_generation(request.gvk) && object.get("spec") != old.get("spec"),
    };
    if counts {
        let generation = before("generation").and_then(|value| value.as_i64());
        match generation.unwrap_or_default().saturating_add(1) {
            // Go omits a zero generation when it serializes metadata.
            0 => metadata(&mut object).remove("generation"),
            next => metadata(&mut object).insert("generation".to_owned(), next.into()),
        };
    }
    Ok(object)
}

fn without_metadata(object: &Value) -> Option<Map<String, Value>> {
    let mut fields = object.as_object()?.clone();
    fields.remove("metadata");
    fields.remove("status");
    Some(fields)
}

fn complete(object: &mut Value, custom: Custom<'_>) {
    if let Some(schema) = custom.schema {
        custom::complete(object, schema);
    }
}

/// Returns the metadata. Inserts empty metadata if the object has none.
fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    if !object.get("metadata").is_some_and(Value::is_object)
        && let Some(fields) = object.as_object_mut()
    {
        fields.insert("metadata".to_owned(), json!({}));
    }
    #[expect(clippy::expect_used, reason = "the code above inserts the metadata")]
    object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .expect("metadata is an object")
}

/// Sets the namespace and, if necessary, a generated name.
fn identify(metadata: &mut Map<String, Value>, request: &Request<'_>) {
    let text = |metadata: &Map<String, Value>, field: &str| {
        let text = metadata.get(field).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if text(metadata, "name").is_none()
        && let Some(prefix) = text(metadata, "generateName")
    {
        let kept: String = prefix.chars().take(MAX_GENERATED).collect();
        metadata.insert("name".to_owned(), format!("{kept}{SUFFIX}").into());
    }
    let is_namespace = request.gvk.group.is_empty() && request.gvk.kind == "Namespace";
    if request.namespace.is_empty() || is_namespace {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), request.namespace.into());
    }
}

/// Sets `managedFields` to a placeholder for the value that the API server sets on each change.
pub(super) fn manage(metadata: &mut Map<String, Value>, gvk: &Gvk) {
    metadata.insert(
        "managedFields".to_owned(),
        json!([{
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": gvk.api_version(),
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {},
        }]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(
        stage: Stage,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<PreparedObjects, Error> {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"pod": {
            "type": "object", "x-kubernetes-embedded-resource": true}}}}});
        prepare(&Request {
            operation: old.map_or(Operation::Create, |_| Operation::Update),
            stage,
            gvk: &Gvk::new("example.com", "v1", "Widget"),
            custom: Some(Custom {
                schema: Some(&schema),
                has_status: false,
            }),
            namespace: "default",
            is_status: false,
            object: Some(object),
            old_object: old,
        })
    }

    #[test]
    fn metadata_of_custom_resource_is_decoded_into_go_type() {
        let metadata = json!({"name": "a", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": [],
            "generateName": "", "colour": "red"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}, "annotations": {"a": null}}});
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"pod": pod}});
        let mut other = widget.clone();
        other["metadata"]["labels"] = json!({"a": null});
        other["metadata"]["creationTimestamp"] = json!("2024-01-01T02:00:00.5+02:00");
        for stage in [Stage::Mutation, Stage::Validation] {
            for (object, old) in [(&widget, None), (&widget, Some(&other))] {
                let prepared = prepared(stage, object, old).unwrap();
                let object = prepared.object.unwrap();
                for name in [
                    "labels",
                    "annotations",
                    "finalizers",
                    "ownerReferences",
                    "generateName",
                    "colour",
                ] {
                    assert_eq!(object["metadata"].get(name), None, "{name}: {object}");
                }
                assert_eq!(
                    object["spec"]["pod"]["metadata"],
                    json!({"annotations": {"a": ""}})
                );
                if let Some(old) = prepared.old_object {
                    assert_eq!(old["metadata"]["labels"], json!({"a": ""}));
                    assert_eq!(old["metadata"]["creationTimestamp"], "2024-01-01T00:00:00Z");
                }
            }
        }
        let mut wrong = widget;
        wrong["metadata"]["labels"] = json!({"a": 1});
        let error = prepared(Stage::Validation, &wrong, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the API server cannot decode the object: json: cannot unmarshal number into Go struct field \
             ObjectMeta.labels of type string"
        );
    }
}
