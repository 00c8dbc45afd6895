//! Converts suites of kaptest. A suite contains tests of policies. Each test refers to objects by name, and states the
//! expected result of the policy.
//!
//! kaptest evaluates expressions without match constraints and bindings, whereas a probe evaluates them like the API
//! server. If the policy of a test does not match the object, the converted case fails, with the reason.

use serde_json::{Map, Value as Json, json};

use super::source::{Source, SuiteObject, items, objects, text_field, texts};
use super::{Bindings, Case, Suite};
use crate::cli::input::{Input, KindFilter};
use crate::policy;

/// The lists of tests for validating policies, by version of the format.
const SUITES: [&str; 2] = ["testSuites", "vapTestSuites"];

pub(super) fn is_suite(document: &Json) -> bool {
    let has = |name: &&str| document.get(*name).is_some();
    SUITES.iter().any(has) || has(&"mapTestSuites")
}

pub(super) fn read(source: &Source, suite: &mut Suite) -> Result<(), String> {
    let document = &source.json;
    let mut files = texts(document, "validatingAdmissionPolicies");
    files.extend(texts(document, "policies"));
    suite.files = files.iter().map(|file| source.path(file)).collect();
    let resources = texts(document, "resources");
    let resources: Vec<_> = resources.iter().map(|file| source.path(file)).collect();
    let (resources, problems) = objects(&resources);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let input = Input::load(&suite.files, KindFilter::Policies, &mut std::io::empty());
    if let Some(problem) = input.problems.first() {
        return Err(problem.message.clone());
    }
    for (n, _) in items(document, "mapTestSuites") {
        let place = source.place(&format!("mapTestSuites[{n}]"));
        suite.missing(place, "probes of mutating policies cannot be converted");
    }
    for list in SUITES {
        for (n, of_policy) in items(document, list) {
            let name = text_field(of_policy, "policy");
            let place = |field: &str| source.place(&format!("{list}[{n}].{field}"));
            let policy = input.policies.iter().find(|it| it.name() == Some(name));
            let Some(policy) = policy else {
                let text = format!("the files of the suite do not contain the policy `{name}`");
                suite.missing(place("policy"), text);
                continue;
            };
            let has_params = policy::param_kind(&policy.value).is_some();
            for (m, test) in items(of_policy, "tests") {
                let place = place(&format!("tests[{m}]"));
                match case(test, &place, &resources, has_params) {
                    Ok((bindings, params, case)) => suite.add(name, bindings, params, case),
                    Err(why) => suite.missing(place, why),
                }
            }
        }
    }
    Ok(())
}

type CaseDraft = (Bindings, Option<Vec<Json>>, Case);

fn case(
    test: &Json,
    place: &str,
    resources: &[SuiteObject],
    has_params: bool,
) -> Result<CaseDraft, String> {
    let mut request = Map::new();
    let mut names = Vec::new();
    for field in ["object", "oldObject"] {
        if let Some(reference) = test.get(field).filter(|it| it.is_object()) {
            let object = lookup(resources, reference)?;
            names.push(format!("{}/{}", object.kind(), object.name()));
            request.insert(field.to_owned(), object.value.clone());
        }
    }
    let operation = match (request.get("object"), request.get("oldObject")) {
        (Some(_), None) => "CREATE",
        (Some(_), Some(_)) => "UPDATE",
        (None, Some(_)) => "DELETE",
        (None, None) => return Err("a test has neither `object` nor `oldObject`".to_owned()),
    };
    request.insert("operation".to_owned(), json!(operation));
    let object = request.get("object").or_else(|| request.get("oldObject"));
    let namespace = object.and_then(|it| it.pointer("/metadata/namespace"));
    let namespace = namespace.and_then(Json::as_str).unwrap_or_default();
    let namespace = namespace.to_owned();
    let object = resources
        .iter()
        .find(|it| it.kind() == "Namespace" && it.name() == namespace);
    if let Some(object) = object.filter(|_| !namespace.is_empty()) {
        request.insert("namespaceObject".to_owned(), object.value.clone());
    }
    if let Some(user) = test.get("userInfo").filter(|it| it.is_object()) {
        request.insert("userInfo".to_owned(), user_info(user));
    }
    let param = test.get("param").filter(|it| it.is_object());
    let binding = json!({"validationActions": ["Deny"]});
    let (bindings, params) = match param {
        None if has_params => (Bindings::Inline(vec![binding]), Some(Vec::new())),
        None => (Bindings::Implied, None),
        Some(reference) => {
            let object = lookup(resources, reference)?;
            let mut param = object.value.clone();
            let mut param_namespace = object.namespace().to_owned();
            if param_namespace.is_empty() {
                // The API server looks for the param in the namespace of the object. If the object has no namespace,
                // the param is in the namespace that `kubectl apply` uses.
                param_namespace.clone_from(&namespace);
                if param_namespace.is_empty() {
                    "default".clone_into(&mut param_namespace);
                }
            }
            if let Some(metadata) = param.get_mut("metadata").and_then(Json::as_object_mut) {
                metadata.insert("namespace".to_owned(), json!(param_namespace));
            }
            let mut binding = binding;
            if let Some(fields) = binding.as_object_mut() {
                let param_ref = json!({
                    "name": object.name(), "namespace": param_namespace, "parameterNotFoundAction": "Deny",
                });
                fields.insert("paramRef".to_owned(), param_ref);
            }
            (Bindings::Inline(vec![binding]), Some(vec![param]))
        }
    };
    let expected = text_field(test, "expect");
    let expect = match expected {
        "admit" | "allow" => json!({"decision": "Allow"}),
        "deny" => json!({"decision": "Deny"}),
        "skip" => json!({"applies": false}),
        "error" => json!({"error": {"pattern": "(?s)."}}),
        other => return Err(format!("the expectation `{other}` is not supported")),
    };
    let case = Case {
        name: format!("{operation} {}: {expected}", names.join(", ")),
        request,
        expect,
        may_not_apply: false,
        place: place.to_owned(),
    };
    Ok((bindings, params, case))
}

fn lookup<'a>(resources: &'a [SuiteObject], reference: &Json) -> Result<&'a SuiteObject, String> {
    let text = |name: &str| text_field(reference, name);
    let fits = |found: &&SuiteObject| {
        let (group, version) = found.group_version();
        let is = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
        found.name() == text("name")
            && is(text("kind"), found.kind())
            && is(text("group"), group)
            && is(text("version"), version)
    };
    let mut fitting: Vec<&SuiteObject> = resources.iter().filter(fits).collect();
    if fitting.iter().any(|it| it.namespace() == text("namespace")) {
        fitting.retain(|it| it.namespace() == text("namespace"));
    } else if !text("namespace").is_empty() {
        fitting.clear();
    }
    fitting.first().copied().ok_or_else(|| {
        let named = [text("kind"), text("namespace"), text("name")];
        let named: Vec<&str> = named.into_iter().filter(|it| !it.is_empty()).collect();
        format!("the resources of the suite have no {}", named.join(" "))
    })
}

/// Converts a user. kaptest calls the username `name`.
fn user_info(user: &Json) -> Json {
    let mut info = Map::new();
    for (from, into) in [
        ("name", "username"),
        ("username", "username"),
        ("uid", "uid"),
        ("groups", "groups"),
        ("extra", "extra"),
    ] {
        if let Some(value) = user.get(from).filter(|value| !value.is_null()) {
            info.insert(into.to_owned(), value.clone());
        }
    }
    Json::Object(info)
}
