//! Prepares the objects of a case as the API server does before it evaluates policies. Preparation sets defaults and
//! server-set fields. It also converts an object if the policy matches another version of the object's kind.
//!
//! If the result of the preparation is unknown, the case is `Pending` with the reason.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::api::{Request, Samples};
use super::run::admission_request;
use super::sample;
use super::unknown_defaults::UnknownDefaults;
use crate::defaulting::{self, Stage};
use crate::policy::admission::{AdmissionRequest, Object, Operation};
use crate::schema::resolver::SchemaResolver;
use crate::schema::{Gvk, RestMapper};
use crate::version::KubernetesVersion;
use kubernetes::object_meta::coerce_metadata;

#[derive(Debug)]
pub(crate) struct PreparedRequest<'a> {
    /// The request of the case. Its objects are prepared if preparation is supported.
    pub(crate) request: Cow<'a, Request>,
    /// The fields with unknown defaults, if any. A policy that reads one of them is not evaluated.
    pub(crate) unknown_defaults: Option<UnknownDefaults>,
    /// The generated name of the object. `None` unless the API server generates a name before it evaluates policies.
    generated: Option<String>,
}

impl<'a> PreparedRequest<'a> {
    const fn as_written(request: &'a Request) -> Self {
        Self {
            request: Cow::Borrowed(request),
            unknown_defaults: None,
            generated: None,
        }
    }

    /// Converts the request to an admission request. Returns an error if this is not possible.
    pub(crate) fn admission_request(
        &self,
        mapper: &RestMapper,
    ) -> Result<AdmissionRequest, String> {
        let mut admission_request = admission_request(&self.request, mapper)?;
        if let Some(name) = &self.generated {
            admission_request.name.clone_from(name);
        }
        Ok(admission_request)
    }

    /// Returns copies of the request with other possible generated names. Empty if no name is generated.
    pub(crate) fn renamed(&self) -> Vec<Self> {
        let Some(name) = &self.generated else {
            return Vec::new();
        };
        let prefix = name.strip_suffix(defaulting::SUFFIX).unwrap_or(name);
        let renamed = OTHER_SUFFIXES.iter().map(|suffix| {
            let other = format!("{prefix}{suffix}");
            let mut request = self.request.clone().into_owned();
            if let Some(object) = &mut request.object {
                rename(object, (name, &other));
            }
            Self {
                request: Cow::Owned(request),
                unknown_defaults: self.unknown_defaults.clone(),
                generated: Some(other),
            }
        });
        renamed.collect()
    }
}

/// Suffixes of generated names. One has only letters, one has only digits.
///
/// Source: `k8s.io/apimachinery` `pkg/util/rand/rand.go` (`alphanums`).
const OTHER_SUFFIXES: [&str; 2] = ["bcdfg", "24569"];

/// Replaces all strings that are equal to `from` with `to`, recursively.
fn rename(value: &mut Value, (from, to): (&str, &str)) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, (from, to))),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|item| rename(item, (from, to))),
        _ => {}
    }
}

/// Prepares the objects of a request to an API server of `version`. A generated name is set only for the validation
/// stage. For a Namespace with a generated name, the namespace of the request stays empty.
///
/// Source: `k8s.io/apiserver` `pkg/registry/rest/create.go` (`AdmissionToValidateObjectFunc`, "in case the generated
/// name is populated"), `pkg/endpoints/handlers/create.go`.
///
/// # Errors
/// Returns an error if the prepared objects are unknown.
pub(crate) fn objects<'a>(
    request: &'a Request,
    version: KubernetesVersion,
    (samples, stage): (Samples, Stage),
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
) -> Result<PreparedRequest<'a>, String> {
    let raw = admission_request(request, mapper)?;
    let is_status = raw.subresource == "status";
    if raw.is_exempt() {
        return Ok(PreparedRequest::as_written(request));
    }
    if !(raw.subresource.is_empty() || is_status) {
        let prepared = prepare_subresource(request, &raw);
        return Ok(PreparedRequest {
            unknown_defaults: UnknownDefaults::allocated(request, &prepared, &raw.gvk),
            request: prepared,
            generated: None,
        });
    }
    let operation = match raw.operation {
        Operation::Create => defaulting::Operation::Create,
        Operation::Update => defaulting::Operation::Update,
        Operation::Delete => defaulting::Operation::Delete,
        Operation::Connect => return Ok(PreparedRequest::as_written(request)),
    };
    let custom = schemas.custom(&raw.gvk);
    let is_custom = custom.is_some();
    let is_unknown = !is_custom && !defaulting::has(&raw.gvk);
    if is_unknown && stage == Stage::Mutation && !is_kubernetes(&raw.gvk) {
        // For kinds of other API groups, only the types are known. Therefore no defaults are set.
        return Ok(PreparedRequest::as_written(request));
    }
    let lacks_defaults = is_unknown && stage == Stage::Validation && !is_status;
    let custom = custom.map(|(_, version)| defaulting::Custom {
        schema: version.schema.as_deref(),
        has_status: version.has_status,
    });
    // Even if the defaults of a kind are unknown here, the metadata that the API server sets is known.
    let custom = custom.or(lacks_defaults.then_some(defaulting::Custom {
        schema: None,
        has_status: true,
    }));
    let prepared = defaulting::prepare(&defaulting::Request {
        operation,
        stage,
        gvk: &raw.gvk,
        custom,
        namespace: &raw.namespace,
        is_status,
        object: request.object.as_ref(),
        old_object: request.old_object.as_ref(),
    });
    let mut prepared = prepared.map_err(|error| error.to_string())?;
    if !is_custom {
        for (object, given) in [
            (&mut prepared.object, &request.object),
            (&mut prepared.old_object, &request.old_object),
        ] {
            if let Some(object) = object {
                defaulting::adapt_to_version(version, &raw.gvk, object, given.as_ref());
            }
        }
    }
    let unknown_defaults = lacks_defaults.then(|| {
        let kind = format!("{} {}", raw.gvk.api_version(), raw.gvk.kind);
        UnknownDefaults::new(request, defaulting::Error::Kind(kind).to_string())
    });
    let mut result = request.clone();
    result.object = prepared.object;
    result.old_object = prepared.old_object;
    if samples == Samples::Partial {
        for (sample, prepared) in [
            (&request.object, &mut result.object),
            (&request.old_object, &mut result.old_object),
        ] {
            if let (Some(sample), Some(prepared)) = (sample, prepared) {
                for field in sample::missing(sample, &raw.gvk, schemas) {
                    remove_null(prepared, &field);
                }
            }
        }
    }
    let unknown_defaults = match stage {
        Stage::Validation => {
            unknown_defaults.or_else(|| UnknownDefaults::allocated(request, &result, &raw.gvk))
        }
        Stage::Mutation => None,
    };
    let is_generated = stage == Stage::Validation
        && operation == defaulting::Operation::Create
        && raw.name.is_empty();
    let name = (result.object.as_ref()).and_then(|object| object.pointer("/metadata/name"));
    let generated = name.filter(|_| is_generated).and_then(Value::as_str);
    let generated = generated.map(str::to_owned);
    result.name = Some(raw.name);
    result.namespace = Some(raw.namespace);
    Ok(PreparedRequest {
        request: Cow::Owned(result),
        unknown_defaults,
        generated,
    })
}

/// Prepares the objects of a request for a subresource. Objects of unknown kinds stay unchanged.
fn prepare_subresource<'a>(request: &'a Request, raw: &AdmissionRequest) -> Cow<'a, Request> {
    let prepared = defaulting::subresource(&defaulting::SubresourceRequest {
        gvk: &raw.gvk,
        name: &raw.name,
        namespace: &raw.namespace,
        dry_run: request.dry_run,
        object: request.object.as_ref(),
        old_object: request.old_object.as_ref(),
    });
    let Some(prepared) = prepared else {
        return Cow::Borrowed(request);
    };
    let mut result = request.clone();
    result.object = prepared.object;
    result.old_object = prepared.old_object;
    Cow::Owned(result)
}

/// Adds the metadata of a stored object, and removes empty metadata. Used for params, because an API server reads
/// params from the cluster.
pub(crate) fn store(object: &mut Value) {
    // Validation reports invalid metadata, so errors are ignored here.
    let _ = coerce_metadata(object, None);
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    for (field, value) in [
        ("uid", defaulting::UID),
        ("creationTimestamp", defaulting::NOW),
        ("resourceVersion", "1"),
    ] {
        let current = metadata.entry(field).or_insert(Value::Null);
        if current.is_null() {
            *current = value.into();
        }
    }
}

/// Removes the field at the path `field` if it is null. Preparation may set a required field to null if a partial
/// sample omits it. In the cluster, a required field is not null.
fn remove_null(object: &mut Value, field: &str) {
    let (parents, last) = field.rsplit_once('.').unwrap_or(("", field));
    let mut parent = object;
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        let (name, indices) = part.split_once('[').unwrap_or((part, ""));
        let Some(mut next) = parent.get_mut(name) else {
            return;
        };
        for index in indices.split(['[', ']']).filter(|index| !index.is_empty()) {
            let item = index.parse::<usize>().ok().and_then(|n| next.get_mut(n));
            let Some(item) = item else { return };
            next = item;
        }
        parent = next;
    }
    if let Some(fields) = parent.as_object_mut()
        && fields.get(last).is_some_and(Value::is_null)
    {
        fields.remove(last);
    }
}

/// Returns true if the API group belongs to Kubernetes itself.
fn is_kubernetes(gvk: &Gvk) -> bool {
    !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io")
}

/// Converts the objects of a request to the kind `to`. Returns an error if this conversion is not supported.
pub(crate) fn convert(
    case: &Request,
    mut request: AdmissionRequest,
    to: Option<Gvk>,
    schemas: &dyn SchemaResolver,
) -> Result<AdmissionRequest, String> {
    let Some(to) = to else {
        return Ok(request);
    };
    if to == request.gvk {
        return Ok(request);
    }
    if let Some((crd, _)) = schemas.custom(&request.gvk) {
        if crd.has_webhook {
            return Err(format!(
                "the policy matches {} as {}, but only a conversion webhook in the cluster can convert it",
                request.gvk.kind,
                to.api_version()
            ));
        }
        // With the conversion strategy None, only the apiVersion changes.
        let with_version = |object: Option<&Value>| {
            let mut object = object?.clone();
            if let Some(fields) = object.as_object_mut() {
                fields.insert("apiVersion".to_owned(), to.api_version().into());
            }
            Some(Object::new(&object))
        };
        request.object = with_version(case.object.as_ref());
        request.old_object = with_version(case.old_object.as_ref());
        return Ok(request);
    }
    if !request.subresource.is_empty() {
        return Ok(request);
    }
    if !defaulting::has(&request.gvk) {
        return Err(format!(
            "the policy matches {} as {}: {}",
            request.gvk.kind,
            to.api_version(),
            defaulting::Error::Conversion(format!(
                "{} {}",
                request.gvk.api_version(),
                request.gvk.kind
            ))
        ));
    }
    let from = request.gvk.clone();
    let converted = |object: Option<&Value>| {
        let converted = object.map(|object| defaulting::convert(object, &from, &to));
        let converted = converted.transpose().map_err(|error| error.to_string())?;
        Ok::<_, String>(converted.as_ref().map(Object::new))
    };
    request.object = converted(case.object.as_ref())?;
    request.old_object = converted(case.old_object.as_ref())?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Builtin;
    use crate::schema::resolver::SchemaSet;

    /// Returns the object of `request` after preparation for `stage`.
    fn prepared_at(stage: Stage, request: &Value) -> Value {
        prepared_for(KubernetesVersion::DEFAULT, stage, request)
    }

    fn prepared_for(version: KubernetesVersion, stage: Stage, request: &Value) -> Value {
        let request: Request = serde_json::from_value(request.clone()).unwrap();
        let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
        let mapper = builtin.rest_mapper();
        let (sample, schemas) = ((Samples::Whole, stage), SchemaSet::default());
        let prepared = objects(&request, version, sample, &mapper, &schemas).unwrap();
        prepared.request.into_owned().object.unwrap()
    }

    #[test]
    fn objects_for_older_version_lack_newer_fields() {
        let request = json!({"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "web", "image": "web:1"}], "hostnameOverride": "a"}}});
        for stage in [Stage::Mutation, Stage::Validation] {
            for (minor, expected) in [(33, None), (34, Some("a")), (36, Some("a"))] {
                let version = KubernetesVersion::new(minor);
                let object = prepared_for(version, stage, &request);
                let field = object["spec"].get("hostnameOverride");
                assert_eq!(field.and_then(Value::as_str), expected, "{version}");
                assert_eq!(object["spec"]["containers"][0]["name"], "web");
            }
        }
    }

    #[test]
    fn absent_creation_time_of_pod_template_is_null_before_1_34() {
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
        let request = json!({"object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}}});
        for (minor, expected) in [(33, Some(&Value::Null)), (34, None), (37, None)] {
            let version = KubernetesVersion::new(minor);
            let object = prepared_for(version, Stage::Validation, &request);
            let metadata = &object["spec"]["template"]["metadata"];
            assert_eq!(metadata.get("creationTimestamp"), expected, "{version}");
            assert_eq!(metadata["labels"]["app"], "web");
            assert!(object["metadata"]["creationTimestamp"].is_string());
        }
    }

    #[test]
    fn objects_for_mutation_have_no_generated_metadata() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "uid": "mine"},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
        let request = json!({"object": pod});
        let before = prepared_at(Stage::Mutation, &request);
        let metadata = &before["metadata"];
        assert_eq!(metadata["namespace"], "default");
        assert!(
            metadata.get("uid").is_none() && metadata.get("name").is_none(),
            "{before}"
        );
        assert_eq!(
            before["spec"]["containers"][0]["imagePullPolicy"],
            "IfNotPresent"
        );
        assert_eq!(before["spec"]["tolerations"].as_array().unwrap().len(), 2);
        let stored = prepared_at(Stage::Validation, &request);
        assert!(
            stored["metadata"]["name"]
                .as_str()
                .unwrap()
                .starts_with("web-")
        );
        assert!(stored["metadata"]["uid"].is_string());
    }

    #[test]
    fn objects_for_update_have_metadata_and_status_of_old_object() {
        let config = |data: &str| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
                "paused": data == "new", "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}})
        };
        let mut old = config("old");
        old["metadata"]["uid"] = json!("1-2");
        old["metadata"]["generation"] = json!(3);
        old["status"] = json!({"replicas": 2});
        let request = json!({"operation": "UPDATE", "object": config("new"), "oldObject": old});
        let before = prepared_at(Stage::Mutation, &request);
        assert_eq!(before["metadata"]["uid"], "1-2");
        assert_eq!(before["metadata"]["generation"], 3);
        assert_eq!(before["status"]["replicas"], 2);
        assert_eq!(
            prepared_at(Stage::Validation, &request)["metadata"]["generation"],
            4
        );
    }
}
