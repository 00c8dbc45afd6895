//! The objects of a case as the API server has them when it asks policies: with defaults, with what the server
//! sets, and converted where the policy matches another version of their kind.
//!
//! What cannot be known here is a reason why the case is `Pending`; it is never passed over.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::api::{Request, Samples};
use super::run::admission_request;
use super::sample;
use super::undefaulted::Undefaulted;
use crate::defaulting::{self, Stage};
use crate::policy::admission::{AdmissionRequest, Object, Operation};
use crate::schema::resolver::SchemaResolver;
use crate::schema::{Gvk, RestMapper};
use kubernetes::object_meta::coerce_metadata;

/// A request with prepared objects.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    /// The request.
    pub(crate) request: Cow<'a, Request>,
    /// Where the defaults of its kind are not known: which policies can be decided all the same.
    pub(crate) undefaulted: Option<Undefaulted>,
    /// The name that the API server makes where policies are asked about it: the request has it, like the object.
    generated: Option<String>,
}

impl<'a> Prepared<'a> {
    const fn as_written(request: &'a Request) -> Self {
        Self {
            request: Cow::Borrowed(request),
            undefaulted: None,
            generated: None,
        }
    }

    /// The request as the API server asks about it.
    ///
    /// # Errors
    /// The reason why there is no such request.
    pub(crate) fn admission_request(
        &self,
        mapper: &RestMapper,
    ) -> Result<AdmissionRequest, String> {
        let mut asked = admission_request(&self.request, mapper)?;
        if let Some(name) = &self.generated {
            asked.name.clone_from(name);
        }
        Ok(asked)
    }

    /// The same request with other names that the API server could have made; none where it makes none.
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
                undefaulted: self.undefaulted.clone(),
                generated: Some(other),
            }
        });
        renamed.collect()
    }
}

/// Other ends of made names, of the characters that they may have: letters alone, digits alone.
///
/// Source: `k8s.io/apimachinery` `pkg/util/rand/rand.go` (`alphanums`).
const OTHER_SUFFIXES: [&str; 2] = ["bcdfg", "24569"];

/// Writes another name wherever the made one is.
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

/// The request with prepared objects. A name that the API server makes is there for those alone who are asked after all
/// mutations, and a Namespace with such a name has none in its request.
///
/// Source: `k8s.io/apiserver` `pkg/registry/rest/create.go` (`AdmissionToValidateObjectFunc`, "in case the generated name
/// is populated"), `pkg/endpoints/handlers/create.go`.
///
/// # Errors
/// The reason why the API server's doing is not known.
pub(crate) fn objects<'a>(
    request: &'a Request,
    samples: Samples,
    stage: Stage,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
) -> Result<Prepared<'a>, String> {
    let raw = admission_request(request, mapper)?;
    let is_status = raw.subresource == "status";
    if raw.is_exempt() {
        return Ok(Prepared::as_written(request));
    }
    if !(raw.subresource.is_empty() || is_status) {
        let prepared = of_subresource(request, &raw);
        return Ok(Prepared {
            undefaulted: Undefaulted::allocated(request, &prepared, &raw.gvk),
            request: prepared,
            generated: None,
        });
    }
    let operation = match raw.operation {
        Operation::Create => defaulting::Operation::Create,
        Operation::Update => defaulting::Operation::Update,
        Operation::Delete => defaulting::Operation::Delete,
        Operation::Connect => return Ok(Prepared::as_written(request)),
    };
    let custom = schemas.custom(&raw.gvk);
    let is_unknown = custom.is_none() && !defaulting::has(&raw.gvk);
    if is_unknown && stage == Stage::Mutation && !is_kubernetes(&raw.gvk) {
        // In a cluster nothing more is known of the kind than its types.
        return Ok(Prepared::as_written(request));
    }
    let is_passed_over = is_unknown && stage == Stage::Validation && !is_status;
    let custom = custom.map(|(_, version)| defaulting::Custom {
        schema: version.schema.as_deref(),
        has_status: version.has_status,
    });
    // What the API server sets of all objects is set of those too whose kind is not known.
    let custom = custom.or(is_passed_over.then_some(defaulting::Custom {
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
    let prepared = prepared.map_err(|error| error.to_string())?;
    let undefaulted = is_passed_over.then(|| {
        let kind = format!("{} {}", raw.gvk.api_version(), raw.gvk.kind);
        Undefaulted::new(request, defaulting::Error::Kind(kind).to_string())
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
                    leave_out(prepared, &field);
                }
            }
        }
    }
    let undefaulted = match stage {
        Stage::Validation => {
            undefaulted.or_else(|| Undefaulted::allocated(request, &result, &raw.gvk))
        }
        Stage::Mutation => None,
    };
    let is_made = stage == Stage::Validation
        && operation == defaulting::Operation::Create
        && raw.name.is_empty();
    let made = (result.object.as_ref()).and_then(|object| object.pointer("/metadata/name"));
    let generated = made.filter(|_| is_made).and_then(Value::as_str);
    let generated = generated.map(str::to_owned);
    result.name = Some(raw.name);
    result.namespace = Some(raw.namespace);
    Ok(Prepared {
        request: Cow::Owned(result),
        undefaulted,
        generated,
    })
}

/// The request with the objects of its subresource; those of kinds that are not known are what they are sent as.
fn of_subresource<'a>(request: &'a Request, raw: &AdmissionRequest) -> Cow<'a, Request> {
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

/// Sets the metadata that an object has which is stored, where it is written without, and leaves out what is empty:
/// params are read from the cluster.
pub(crate) fn store(object: &mut Value) {
    // What cannot be read cannot be stored; the checks of the object say so.
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
        let known = metadata.entry(field).or_insert(Value::Null);
        if known.is_null() {
            *known = value.into();
        }
    }
}

/// Takes a null out of an object: what a sample was cut down by has some value in the cluster, and never null.
fn leave_out(object: &mut Value, field: &str) {
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

/// Reports whether the kind is one of Kubernetes' own, by its group.
fn is_kubernetes(gvk: &Gvk) -> bool {
    !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io")
}

/// The request with its objects of the kind `to`, as which the policy matches it, if it does.
///
/// # Errors
/// The reason why they cannot be converted here.
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
                "the policy matches {} as {}, and only a webhook of the cluster converts it",
                request.gvk.kind,
                to.api_version()
            ));
        }
        // Strategy None: the same object under another version.
        let named = |object: Option<&Value>| {
            let mut object = object?.clone();
            if let Some(fields) = object.as_object_mut() {
                fields.insert("apiVersion".to_owned(), to.api_version().into());
            }
            Some(Object::new(&object))
        };
        request.object = named(case.object.as_ref());
        request.old_object = named(case.old_object.as_ref());
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

    /// The object of a request at a stage.
    fn at(stage: Stage, request: &Value) -> Value {
        let request: Request = serde_json::from_value(request.clone()).unwrap();
        let builtin = Builtin::load().unwrap();
        let mapper = RestMapper::new(builtin.resources().to_vec());
        let (samples, schemas) = (Samples::Whole, SchemaSet::default());
        let prepared = objects(&request, samples, stage, &mapper, &schemas).unwrap();
        prepared.request.into_owned().object.unwrap()
    }

    #[test]
    fn mutating_policies_see_what_is_not_made_for_storage() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-", "uid": "mine"},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
        let request = json!({"object": pod});
        let before = at(Stage::Mutation, &request);
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
        let stored = at(Stage::Validation, &request);
        assert!(
            stored["metadata"]["name"]
                .as_str()
                .unwrap()
                .starts_with("web-")
        );
        assert!(stored["metadata"]["uid"].is_string());
    }

    #[test]
    fn a_change_has_what_its_sender_leaves_out() {
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
        let before = at(Stage::Mutation, &request);
        assert_eq!(before["metadata"]["uid"], "1-2");
        assert_eq!(before["metadata"]["generation"], 3);
        assert_eq!(before["status"]["replicas"], 2);
        assert_eq!(at(Stage::Validation, &request)["metadata"]["generation"], 4);
    }
}
