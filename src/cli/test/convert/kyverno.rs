//! Converts tests of the Kyverno CLI for ValidatingAdmissionPolicies.

use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};

use super::source::{Source, SuiteObject, items, objects, text_field, texts};
use super::{Bindings, Case, Suite};
use crate::cli::input::{Input, KindFilter};
use crate::policy;
use crate::policy::admission::kind_of;
use crate::schema::Gvk;

/// Fields of a test that only affect Kyverno's own policies.
const FOREIGN: [&str; 5] = [
    "exceptions",
    "targetResources",
    "context",
    "checks",
    "httpPayloads",
];

struct Setup {
    resources: Vec<SuiteObject>,
    params: Vec<Json>,
    user: Option<Json>,
    /// The names and labels of namespaces.
    namespaces: Vec<(String, Json)>,
}

pub(super) fn read(source: &Source, suite: &mut Suite) -> Result<(), String> {
    let document = &source.json;
    let paths = |name: &str| -> Vec<PathBuf> {
        let paths = texts(document, name);
        let local = paths.iter().filter(|path| !path.contains("://"));
        local.map(|path| source.path(path)).collect()
    };
    for name in ["policies", "resources"] {
        for (n, path) in items(document, name) {
            if path.as_str().is_some_and(|path| path.contains("://")) {
                let place = source.place(&format!("{name}[{n}]"));
                suite.missing(place, "remote files are not read");
            }
        }
    }
    let input = Input::load(&paths("policies"), KindFilter::All, &mut std::io::empty());
    if let Some(problem) = input.problems.first() {
        return Err(format!("{}: {}", problem.file, problem.message));
    }
    suite.files = input.files.iter().map(PathBuf::from).collect();
    for field in FOREIGN {
        if document.get(field).is_some_and(|value| !value.is_null()) {
            let text = format!("`{field}` only affects Kyverno's own policies");
            suite.note(source.place(field), text);
        }
    }
    let setup = setup(source, &paths("resources"), &paths("paramResources"), suite)?;
    for (n, result) in items(document, "results") {
        let place = source.place(&format!("results[{n}]"));
        let name = text_field(result, "policy");
        let policy = input.policies.iter().find(|it| it.name() == Some(name));
        let Some(policy) = policy else {
            let text = format!("the policies do not contain a ValidatingAdmissionPolicy `{name}`");
            suite.missing(place, text);
            continue;
        };
        let mut bindings = input.bindings.iter();
        let bindings = if bindings.any(|it| it.value.spec.policy_name == name) {
            Bindings::OfFiles
        } else {
            Bindings::Implied
        };
        let params = policy::param_kind(&policy.value);
        let params = params.map(|kind| params_of_kind(&kind, &setup, &input));
        if params.as_ref().is_some_and(Vec::is_empty) {
            let text = format!("the suite has no params for the policy `{name}`");
            suite.note(place.clone(), text);
        }
        let expected = match text_field(result, "result") {
            "" => text_field(result, "status"),
            result => result,
        };
        let expect = match expected {
            "pass" => json!({"decision": "Allow"}),
            "fail" => json!({"decision": "Deny"}),
            "skip" => json!({"applies": false}),
            "error" => json!({"error": {"pattern": "(?s)."}}),
            other => {
                suite.missing(place, format!("the result `{other}` cannot be converted"));
                continue;
            }
        };
        for object in selected_objects(result, &setup.resources, &place, suite) {
            let case = case(&object, expected, &expect, &setup, &place);
            suite.add(name, bindings.clone(), params.clone(), case);
        }
    }
    Ok(())
}

/// Returns the objects of `paramResources`, and the objects of the paramKind in the other files of the suite.
fn params_of_kind(kind: &Gvk, setup: &Setup, input: &Input) -> Vec<Json> {
    let key = |object: &Json| {
        let text = |pointer| object.pointer(pointer).cloned().unwrap_or_default();
        (
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        )
    };
    let of_resources = setup.resources.iter().map(|object| &object.value);
    let of_resources = of_resources.filter(|object| kind_of(object) == *kind);
    let of_policies = input.objects_of_kind(kind).map(|object| &object.value);
    let mut params = setup.params.clone();
    for object in of_resources.chain(of_policies) {
        let object = in_namespace(object.clone());
        if !params.iter().any(|param| key(param) == key(&object)) {
            params.push(object);
        }
    }
    params
}

/// Sets the namespace that `kubectl apply` uses for an object without a namespace.
fn in_namespace(mut object: Json) -> Json {
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata
            .entry("namespace")
            .or_insert_with(|| json!("default"));
    }
    object
}

fn setup(
    source: &Source,
    resources: &[PathBuf],
    params: &[PathBuf],
    suite: &mut Suite,
) -> Result<Setup, String> {
    let document = &source.json;
    let (resources, problems) = objects(resources);
    let (params, more) = objects(params);
    if let Some(problem) = problems.into_iter().chain(more).next() {
        return Err(problem);
    }
    let params = params.into_iter().map(|param| in_namespace(param.value));
    let mut user = None;
    let name = text_field(document, "userinfo");
    if !name.is_empty() {
        let read = Source::read(&source.path(name))?.json;
        user = read.get("userInfo").cloned();
        for field in ["roles", "clusterRoles"] {
            if read.get(field).is_some() {
                let text = format!("`{field}` of a user only affects Kyverno's own policies");
                suite.note(source.place("userinfo"), text);
            }
        }
    }
    let mut values = document.get("values").cloned().unwrap_or_default();
    let name = text_field(document, "variables");
    if !name.is_empty() {
        values = Source::read(&source.path(name))?.json;
    }
    for field in ["globalValues", "policies", "subresources"] {
        if values.get(field).is_some_and(|value| !value.is_null()) {
            let text = format!("`{field}` of the values only affects Kyverno's own policies");
            suite.note(source.place("variables"), text);
        }
    }
    let namespaces = items(&values, "namespaceSelector").map(|(_, selector)| {
        let labels = selector.get("labels").cloned().unwrap_or_default();
        (text_field(selector, "name").to_owned(), labels)
    });
    Ok(Setup {
        resources,
        params: params.collect(),
        user,
        namespaces: namespaces.collect(),
    })
}

/// Returns the objects to which an expected result of the test refers.
fn selected_objects(
    result: &Json,
    resources: &[SuiteObject],
    place: &str,
    suite: &mut Suite,
) -> Vec<SuiteObject> {
    let kind = text_field(result, "kind");
    let is_of_kind = |found: &&SuiteObject| kind.is_empty() || found.kind() == kind;
    let mut names = texts(result, "resources");
    if names.is_empty() && !text_field(result, "resource").is_empty() {
        names.push(text_field(result, "resource").to_owned());
    }
    for (_, spec) in items(result, "resourceSpecs") {
        let name = text_field(spec, "name");
        match text_field(spec, "namespace") {
            "" => names.push(name.to_owned()),
            namespace => names.push(format!("{namespace}/{name}")),
        }
    }
    if names.is_empty() {
        return resources.iter().filter(is_of_kind).cloned().collect();
    }
    let mut selected = Vec::new();
    for full in names {
        let mut parts = full.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let namespace = parts.next().unwrap_or(text_field(result, "namespace"));
        let fits = |object: &&SuiteObject| {
            is_of_kind(object)
                && object.name() == name
                && (namespace.is_empty() || object.namespace() == namespace)
        };
        match resources.iter().find(fits) {
            Some(object) => selected.push(object.clone()),
            None => suite.missing(
                place.to_owned(),
                format!("the resources do not contain {kind} {full}"),
            ),
        }
    }
    selected
}

fn case(object: &SuiteObject, expected: &str, expect: &Json, setup: &Setup, place: &str) -> Case {
    let mut request = Map::new();
    request.insert("object".to_owned(), object.value.clone());
    if let Some(user) = &setup.user {
        request.insert("userInfo".to_owned(), user.clone());
    }
    let namespace = match object.namespace() {
        "" => "default",
        namespace => namespace,
    };
    let namespace_labels = setup.namespaces.iter().find(|(name, _)| name == namespace);
    if let Some((name, labels)) = namespace_labels.filter(|_| object.kind() != "Namespace") {
        let mut labels = labels.as_object().cloned().unwrap_or_default();
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        });
        request.insert("namespaceObject".to_owned(), namespace);
    }
    Case {
        name: format!("{} {}: {expected}", object.kind(), object.name()),
        request,
        expect: expect.clone(),
        may_not_apply: false,
        place: place.to_owned(),
    }
}
