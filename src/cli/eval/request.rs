//! Reads the request of `eval`: an object, an old object, an `AdmissionReview`, or the request of a probe's case.

use std::io::Read;
use std::path::Path;
use std::slice;

use serde::Deserialize;
use serde_json::{Map, Value};

#[cfg(not(target_family = "wasm"))]
use super::args::EvalArgs;
use crate::cli::error::CliError;
use crate::cli::input::files::{ReadOptions, read_all};
use crate::cli::input::values;
use crate::cli::test::expand;
use crate::probe::api::{Request, Resource};
use crate::schema::Gvr;
use crate::schema::rest_mapper::ApiResource;

/// The fields of a request in a probe's case.
const FIELDS: [&str; 12] = [
    "operation",
    "resource",
    "subResource",
    "name",
    "namespace",
    "object",
    "oldObject",
    "options",
    "dryRun",
    "namespaceObject",
    "userInfo",
    "authorizer",
];

/// Returns the request that the arguments describe.
///
/// # Errors
/// Returns an error if a file cannot be read or contains no request, or if the request has neither an object nor a
/// resource.
#[cfg(not(target_family = "wasm"))]
pub(super) fn read(args: &EvalArgs, stdin: &mut dyn Read) -> Result<Request, CliError> {
    let mut request = match &args.request {
        Some(path) => parse(path, document(path, stdin)?)?,
        None => Request::default(),
    };
    let mut object = |path: Option<&Path>| -> Result<Option<Value>, CliError> {
        let Some(path) = path else { return Ok(None) };
        let object = document(path, stdin)?;
        if !object.is_object() {
            return Err(usage_error(path, "does not contain an object"));
        }
        Ok(Some(object))
    };
    if let Some(read) = object(args.object.as_deref())? {
        request.object = Some(read);
    }
    if let Some(read) = object(args.old_object.as_deref())? {
        request.old_object = Some(read);
    }
    if let Some(operation) = args.operation {
        request.operation = Some(operation.as_str().to_owned());
    }
    if args.subresource.is_some() {
        request.sub_resource.clone_from(&args.subresource);
    }
    if let Some(user) = args.user.user_info() {
        request.user_info = Some(user);
    }
    let message = if args.request.is_none() {
        "no request: name the file of an object with --object or --old-object, or of an admission review with --request"
    } else {
        "the request has neither an object nor a resource; set --object, --old-object or --resource"
    };
    completed(request, args.resource.is_some(), message)
}

/// The texts that describe a request, for callers without files. An empty string means that the field is absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestTexts {
    /// The object, as YAML or JSON.
    pub object: String,
    /// The old object, as YAML or JSON.
    pub old_object: String,
    /// An `AdmissionReview`, or additional request fields in the format of a probe's case.
    pub request: String,
    /// The operation. If empty, the objects determine it.
    pub operation: String,
    /// The subresource.
    pub sub_resource: String,
    /// The namespace. If empty, the namespace of the object is used.
    pub namespace: String,
    /// The name of the user.
    pub user: String,
    /// The groups of the user.
    pub groups: Vec<String>,
}

/// Returns the request that the texts describe.
///
/// # Errors
/// Returns an error if a text cannot be parsed, or if the request has neither an object nor a resource.
pub(in crate::cli) fn from_texts(texts: &RequestTexts) -> Result<Request, CliError> {
    let is_blank = |text: &str| text.trim().is_empty();
    let mut request = match texts.request.as_str() {
        text if is_blank(text) => Request::default(),
        text => {
            let name = Path::new("the request");
            parse(name, parse_document(name, text)?)?
        }
    };
    let objects = [
        ("the object", &texts.object, &mut request.object),
        ("the old object", &texts.old_object, &mut request.old_object),
    ];
    for (name, text, target) in objects {
        if is_blank(text) {
            continue;
        }
        let name = Path::new(name);
        let object = parse_document(name, text)?;
        if !object.is_object() {
            return Err(usage_error(name, "does not contain an object"));
        }
        *target = Some(object);
    }
    let set = |text: &str, target: &mut Option<String>| {
        if !is_blank(text) {
            *target = Some(text.trim().to_owned());
        }
    };
    set(&texts.operation, &mut request.operation);
    set(&texts.sub_resource, &mut request.sub_resource);
    set(&texts.namespace, &mut request.namespace);
    if !is_blank(&texts.user) || !texts.groups.is_empty() {
        let user = request.user_info.get_or_insert_default();
        if !is_blank(&texts.user) {
            texts.user.trim().clone_into(&mut user.username);
        }
        if !texts.groups.is_empty() {
            user.groups.clone_from(&texts.groups);
        }
    }
    completed(
        request,
        false,
        "no request: enter an object or an old object",
    )
}

/// Completes a request. `missing` is the error message if the request has neither an object nor a resource.
///
/// # Errors
/// Returns an error if an API server never receives such a request, or if the request has neither an object nor a
/// resource.
fn completed(mut request: Request, has_resource: bool, missing: &str) -> Result<Request, CliError> {
    complete(&mut request);
    if let Some(why) = impossible_subresource(&request) {
        return Err(CliError::Usage(why));
    }
    let is_named = request.resource.is_some() || has_resource;
    if request.object.is_none() && request.old_object.is_none() && !is_named {
        return Err(CliError::Usage(missing.to_owned()));
    }
    Ok(request)
}

/// Returns the served resource for `deployments`, `deployments.apps` or `deployments.v1.apps`. Prefers `v1` if several
/// versions are served.
///
/// # Errors
/// Returns an error if no served resource has the name, or if several groups serve a resource with this name.
pub(super) fn resource(name: &str, served: &[ApiResource]) -> Result<Resource, CliError> {
    let (plural, rest) = name.split_once('.').unwrap_or((name, ""));
    let is_match = |gvr: &Gvr| {
        let versioned = format!("{}.{}", gvr.version, gvr.group);
        let versioned = versioned.trim_end_matches('.');
        gvr.resource == plural && (rest.is_empty() || rest == &*gvr.group || rest == versioned)
    };
    let matches = served
        .iter()
        .map(|served| &served.gvr)
        .filter(|gvr| is_match(gvr));
    let matches: Vec<&Gvr> = matches.collect();
    let stable = matches.iter().find(|gvr| &*gvr.version == "v1");
    let Some(found) = stable.or(matches.first()) else {
        let message = format!(
            "--resource: no resource `{name}` is served; use the plural, such as `deployments`"
        );
        return Err(CliError::Usage(message));
    };
    if let Some(other) = matches.iter().find(|gvr| gvr.group != found.group) {
        let message = format!(
            "--resource: `{name}` is served by the groups {:?} and {:?}; add the group, as in `{plural}.GROUP`",
            &*found.group, &*other.group
        );
        return Err(CliError::Usage(message));
    }
    Ok(Resource {
        group: found.group.clone(),
        version: found.version.clone(),
        resource: found.resource.clone(),
    })
}

/// Returns the reason why a request for the subresource `status` or `scale` cannot exist. Returns `None` for any other
/// request.
///
/// Source: `k8s.io/apiserver` `pkg/endpoints/installer.go` (the verbs of a storage that only implements `Updater`).
fn impossible_subresource(request: &Request) -> Option<String> {
    let subresource = request
        .sub_resource
        .as_deref()
        .filter(|it| is_only_updated(it))?;
    let operation = request.operation.as_deref().unwrap_or_default();
    if operation != "UPDATE" {
        return Some(format!(
            "requests for the subresource `{subresource}` have the operation UPDATE, not {operation}"
        ));
    }
    let objects = [&request.object, &request.old_object];
    let mut kinds = objects
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("kind")?.as_str());
    let kind = kinds.find(|kind| subresource == "scale" && *kind != "Scale")?;
    Some(format!(
        "the object of a request for the subresource `scale` is a Scale of autoscaling/v1, not a {kind}"
    ))
}

/// Returns true for a subresource whose only operation is UPDATE.
fn is_only_updated(subresource: &str) -> bool {
    matches!(subresource, "status" | "scale")
}

/// Derives the operation from the objects if it is missing, and moves the objects to the fields that the operation
/// uses.
fn complete(request: &mut Request) {
    let subresource = request.sub_resource.as_deref().unwrap_or_default();
    let is_only_updated = is_only_updated(subresource);
    let operation = request.operation.get_or_insert_with(|| {
        let operation = match (&request.object, &request.old_object) {
            _ if is_only_updated => "UPDATE",
            (Some(_), Some(_)) => "UPDATE",
            (None, Some(_)) => "DELETE",
            (_, None) => "CREATE",
        };
        operation.to_owned()
    });
    match operation.as_str() {
        "DELETE" if request.old_object.is_none() => request.old_object = request.object.take(),
        "DELETE" => request.object = None,
        "UPDATE" if request.old_object.is_none() => request.old_object.clone_from(&request.object),
        _ => {}
    }
}

/// Parses the content of a file: an `AdmissionReview`, or the request of a probe's case.
fn parse(path: &Path, value: Value) -> Result<Request, CliError> {
    let Value::Object(fields) = value else {
        return Err(usage_error(path, "does not contain a request"));
    };
    let mut request = Map::new();
    if fields.get("kind").and_then(Value::as_str) == Some("AdmissionReview") {
        let Some(reviewed) = fields.get("request").and_then(Value::as_object) else {
            return Err(usage_error(
                path,
                "is an AdmissionReview without a `request`",
            ));
        };
        expand::fill_from_review(&mut request, reviewed);
    } else {
        let unknown = fields.keys().find(|key| !FIELDS.contains(&key.as_str()));
        if let Some(unknown) = unknown {
            let message = format!(
                "is not an AdmissionReview, and `{unknown}` is not a field of a request; to evaluate an object, use --object"
            );
            return Err(usage_error(path, &message));
        }
        request = fields;
    }
    // Requests to webhooks may contain null fields of the user. `Request` does not accept null.
    if let Some(Value::Object(user)) = request.get_mut("userInfo") {
        user.retain(|_, value| !value.is_null());
    }
    let request = serde_json::from_value(Value::Object(request));
    request.map_err(|error| usage_error(path, &format!("does not contain a request: {error}")))
}

/// Returns the document of a file, or an error if the file has several.
fn document(path: &Path, stdin: &mut dyn Read) -> Result<Value, CliError> {
    if path.is_dir() {
        return Err(usage_error(path, "is a directory; pass a file"));
    }
    let mut texts = Vec::new();
    let path_buf = path.to_path_buf();
    read_all(
        slice::from_ref(&path_buf),
        stdin,
        &ReadOptions::default(),
        &mut |file| texts.push(file.text),
    );
    let text = texts
        .pop()
        .unwrap_or_else(|| Err("cannot be read".to_owned()));
    let text = text.map_err(|why| usage_error(path, &why))?;
    parse_document(path, &text)
}

/// Parses a text with one document. `path` is the name of the text in errors.
fn parse_document(path: &Path, text: &str) -> Result<Value, CliError> {
    let mut documents = values(text).into_iter();
    match (documents.next(), documents.next()) {
        (Some(Ok(value)), None) => Ok(value),
        (Some(Err(problem)), _) | (_, Some(Err(problem))) => {
            let place = problem.place.map(|place| format!("line {}: ", place.line));
            let why = format!("{}{}", place.unwrap_or_default(), problem.message);
            Err(usage_error(path, &why))
        }
        (None, _) => Err(usage_error(path, "is empty")),
        (Some(Ok(_)), Some(Ok(_))) => Err(usage_error(
            path,
            "contains several objects; a request has only one",
        )),
    }
}

fn usage_error(path: &Path, problem: &str) -> CliError {
    CliError::Usage(format!("{}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: Value, expect: Result<Value, &str>) {
        let request = parse(Path::new("a.json"), value);
        match (request, expect) {
            (Ok(mut request), Ok(expect)) => {
                complete(&mut request);
                assert_eq!(serde_json::to_value(request).unwrap(), expect);
            }
            (Err(error), Err(expect)) => {
                assert!(error.to_string().contains(expect), "{error}");
            }
            (request, expect) => panic!("{request:?}, and not {expect:?}"),
        }
    }

    #[test]
    fn request_without_operation_is_derived_from_objects() {
        let pod = json!({"kind": "Pod"});
        check(
            json!({"object": pod}),
            Ok(json!({"operation": "CREATE", "object": pod})),
        );
        check(
            json!({"oldObject": pod}),
            Ok(json!({"operation": "DELETE", "oldObject": pod})),
        );
        check(
            json!({"operation": "DELETE", "object": pod}),
            Ok(json!({"operation": "DELETE", "oldObject": pod})),
        );
        check(
            json!({"operation": "UPDATE", "object": pod}),
            Ok(json!({"operation": "UPDATE", "object": pod, "oldObject": pod})),
        );
        let review = json!({"kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "CREATE", "object": pod, "oldObject": null,
            "userInfo": {"username": "ann", "groups": null},
        }});
        check(
            review,
            Ok(json!({"operation": "CREATE", "object": pod, "userInfo": {"username": "ann"}})),
        );
    }

    #[test]
    fn invalid_request_is_an_error() {
        check(json!([]), Err("does not contain a request"));
        check(
            json!({"kind": "AdmissionReview", "request": null}),
            Err("without a `request`"),
        );
        check(
            json!({"kind": "Pod"}),
            Err("`kind` is not a field of a request"),
        );
        check(
            json!({"object": {}, "dryRun": "yes"}),
            Err("does not contain a request: invalid type"),
        );
    }
}
