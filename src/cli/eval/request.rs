//! The request that `eval` is asked about: an object, an old object, an `AdmissionReview`, or the request of a
//! probe's case.

use std::io::Read;
use std::path::Path;
use std::slice;

use serde_json::{Map, Value};

use super::args::EvalArgs;
use crate::cli::error::CliError;
use crate::cli::input::files::{ReadOptions, read_all};
use crate::cli::input::values;
use crate::cli::test::expand;
use crate::probe::api::{Request, Resource};
use crate::schema::Gvr;
use crate::schema::rest_mapper::ApiResource;

/// The fields of a request as a case of a probe has them.
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

/// The request of the arguments.
///
/// # Errors
/// What of it cannot be read.
pub(super) fn read(args: &EvalArgs, stdin: &mut dyn Read) -> Result<Request, CliError> {
    let mut request = match &args.request {
        Some(path) => written(path, document(path, stdin)?)?,
        None => Request::default(),
    };
    let mut object = |path: Option<&Path>| -> Result<Option<Value>, CliError> {
        let Some(path) = path else { return Ok(None) };
        let object = document(path, stdin)?;
        if !object.is_object() {
            return Err(wrong(path, "holds no object"));
        }
        Ok(Some(object))
    };
    if let Some(read) = object(args.object.as_deref())? {
        request.object = Some(read);
    }
    if let Some(read) = object(args.old_object.as_deref())? {
        request.old_object = Some(read);
    }
    if let Some(operation) = &args.operation {
        request.operation = Some(operation.to_uppercase());
    }
    if args.subresource.is_some() {
        request.sub_resource.clone_from(&args.subresource);
    }
    if let Some(user) = args.asks.user() {
        request.user_info = Some(user);
    }
    complete(&mut request);
    let is_named = request.resource.is_some() || args.resource.is_some();
    if request.object.is_none() && request.old_object.is_none() && !is_named {
        let what = "the request has neither an object nor a resource";
        return Err(CliError::Usage(what.to_owned()));
    }
    Ok(request)
}

/// The served resource that `name` names: `deployments`, `deployments.apps` or `deployments.v1.apps`. Of several
/// versions it is `v1`, or else the first.
///
/// # Errors
/// That nothing of the name is served, or resources of several groups are.
pub(super) fn resource(name: &str, served: &[ApiResource]) -> Result<Resource, CliError> {
    let (plural, rest) = name.split_once('.').unwrap_or((name, ""));
    let is_meant = |gvr: &Gvr| {
        let versioned = format!("{}.{}", gvr.version, gvr.group);
        let versioned = versioned.trim_end_matches('.');
        gvr.resource == plural && (rest.is_empty() || rest == &*gvr.group || rest == versioned)
    };
    let meant = served
        .iter()
        .map(|served| &served.gvr)
        .filter(|gvr| is_meant(gvr));
    let meant: Vec<&Gvr> = meant.collect();
    let stable = meant.iter().find(|gvr| &*gvr.version == "v1");
    let Some(found) = stable.or(meant.first()) else {
        let what =
            format!("--resource: nothing serves `{name}`; name the plural, as `deployments`");
        return Err(CliError::Usage(what));
    };
    if let Some(other) = meant.iter().find(|gvr| gvr.group != found.group) {
        let what = format!(
            "--resource: `{name}` is served by {:?} and {:?}; name the group, as `{plural}.GROUP`",
            &*found.group, &*other.group
        );
        return Err(CliError::Usage(what));
    }
    Ok(Resource {
        group: found.group.clone(),
        version: found.version.clone(),
        resource: found.resource.clone(),
    })
}

/// Sets what the objects say of the operation, and the objects that the operation has.
fn complete(request: &mut Request) {
    let operation = request.operation.get_or_insert_with(|| {
        let operation = match (&request.object, &request.old_object) {
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

/// The request that a file holds.
fn written(path: &Path, value: Value) -> Result<Request, CliError> {
    let Value::Object(fields) = value else {
        return Err(wrong(path, "holds no request"));
    };
    let mut request = Map::new();
    if fields.get("kind").and_then(Value::as_str) == Some("AdmissionReview") {
        let Some(reviewed) = fields.get("request").and_then(Value::as_object) else {
            return Err(wrong(path, "is an AdmissionReview without a `request`"));
        };
        expand::of_review(&mut request, reviewed);
    } else {
        let unknown = fields.keys().find(|key| !FIELDS.contains(&key.as_str()));
        if let Some(unknown) = unknown {
            let what = format!(
                "is no AdmissionReview, and `{unknown}` is no field of a request; an object goes to --object"
            );
            return Err(wrong(path, &what));
        }
        request = fields;
    }
    // A user has fields that are null in what webhooks are sent.
    if let Some(Value::Object(user)) = request.get_mut("userInfo") {
        user.retain(|_, value| !value.is_null());
    }
    let request = serde_json::from_value(Value::Object(request));
    request.map_err(|error| wrong(path, &format!("holds no request: {error}")))
}

/// The one document of a file.
fn document(path: &Path, stdin: &mut dyn Read) -> Result<Value, CliError> {
    if path.is_dir() {
        return Err(wrong(path, "is a directory; name a file"));
    }
    let mut texts = Vec::new();
    let path_buf = path.to_path_buf();
    read_all(
        slice::from_ref(&path_buf),
        stdin,
        &ReadOptions::default(),
        &mut |file| texts.push(file.text),
    );
    let text = texts.pop().unwrap_or_else(|| Err("is not read".to_owned()));
    let text = text.map_err(|why| wrong(path, &why))?;
    let mut found = values(&text).into_iter();
    match (found.next(), found.next()) {
        (Some(Ok(value)), None) => Ok(value),
        (Some(Err(problem)), _) | (_, Some(Err(problem))) => {
            let place = problem.place.map(|place| format!("line {}: ", place.line));
            let why = format!("{}{}", place.unwrap_or_default(), problem.message);
            Err(wrong(path, &why))
        }
        (None, _) => Err(wrong(path, "is empty")),
        (Some(Ok(_)), Some(Ok(_))) => Err(wrong(path, "holds several objects; a request has one")),
    }
}

fn wrong(path: &Path, what: &str) -> CliError {
    CliError::Usage(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: Value, expect: Result<Value, &str>) {
        let found = written(Path::new("a.json"), value);
        match (found, expect) {
            (Ok(mut found), Ok(expect)) => {
                complete(&mut found);
                assert_eq!(serde_json::to_value(found).unwrap(), expect);
            }
            (Err(found), Err(expect)) => {
                assert!(found.to_string().contains(expect), "{found}");
            }
            (found, expect) => panic!("{found:?}, and not {expect:?}"),
        }
    }

    #[test]
    fn requests_are_completed() {
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
    fn what_is_no_request_is_told() {
        check(json!([]), Err("holds no request"));
        check(
            json!({"kind": "AdmissionReview", "request": null}),
            Err("without a `request`"),
        );
        check(
            json!({"kind": "Pod"}),
            Err("`kind` is no field of a request"),
        );
        check(
            json!({"object": {}, "dryRun": "yes"}),
            Err("holds no request: invalid type"),
        );
    }
}
