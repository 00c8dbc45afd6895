//! Converts suites of gator whose templates use the engine `K8sNativeValidation`.
//!
//! The template becomes the policy that Gatekeeper generates from it. The constraint becomes the binding and its
//! params.
//!
//! Source: gatekeeper `pkg/gator/verify/suite.go`, `pkg/gator/verify/assertion.go`,
//! `pkg/drivers/k8scel/transform/make_vap_objects.go` (`TemplateToPolicyDefinition`, `ConstraintToBinding`),
//! `pkg/drivers/k8scel/transform/cel_snippets.go`, `pkg/drivers/k8scel/schema/schema.go`.

use serde_json::{Map, Value as Json, json};

use super::super::expand::fill_from_review;
use super::source::{self, Source, SuiteObject, items, text_field};
use super::{Bindings, Case, Suite};

const ENGINE: &str = "K8sNativeValidation";

/// The apiVersion of constraints.
const CONSTRAINTS: &str = "constraints.gatekeeper.sh/v1beta1";

/// The match conditions for the kinds, namespaces and names of a constraint.
const MATCHERS: [(&str, &str); 4] = [
    (
        "kinds",
        "!params.?spec.match.kinds.hasValue() || params.spec.match.kinds.exists(each, \
         (each.?kinds.orValue([]).size() == 0 || '*' in each.kinds || request.kind.kind in each.kinds) && \
         (each.?apiGroups.orValue([]).size() == 0 || '*' in each.apiGroups || request.kind.group in each.apiGroups))",
    ),
    (
        "namespaces",
        "!params.?spec.match.namespaces.hasValue() || [object, oldObject].exists(it, it != null && \
         (it.metadata.?namespace.orValue('') == '' || params.spec.match.namespaces.exists(each, \
         it.metadata.namespace.matches('^' + each.replace('*', '.*') + '$'))))",
    ),
    (
        "excluded-namespaces",
        "!params.?spec.match.excludedNamespaces.hasValue() || [object, oldObject].exists(it, it != null && \
         (it.metadata.?namespace.orValue('') == '' || !params.spec.match.excludedNamespaces.exists(each, \
         it.metadata.namespace.matches('^' + each.replace('*', '.*') + '$'))))",
    ),
    (
        "name",
        "!params.?spec.match.name.hasValue() || [object, oldObject].exists(it, it != null && \
         (it.metadata.?name.orValue('').matches('^' + params.spec.match.name.replace('*', '.*') + '$') || \
         (params.spec.match.name.endsWith('*') && it.metadata.?generateName.orValue('') != '' && \
         it.metadata.generateName.matches('^' + params.spec.match.name.replace('*', '.*') + '$'))))",
    ),
];

pub(super) fn read(source: &Source, suite: &mut Suite) -> Result<(), String> {
    if source.json.get("skip") == Some(&json!(true)) {
        suite.missing(source.place("skip"), "the suite is skipped");
        return Ok(());
    }
    for (n, test) in items(&source.json, "tests") {
        let place = |field: &str| source.place(&format!("tests[{n}].{field}"));
        if test.get("skip") == Some(&json!(true)) {
            suite.missing(place("skip"), "the test is skipped");
            continue;
        }
        if test.get("invalid") == Some(&json!(true)) {
            let text = "a probe cannot test that a constraint is invalid";
            suite.missing(place("invalid"), text);
            continue;
        }
        if !text_field(test, "expansion").is_empty() {
            let text = "the API server does not support Gatekeeper's expansion of workloads";
            suite.missing(place("expansion"), text);
            continue;
        }
        let template = Source::read(&source.path(text_field(test, "template")))?;
        let policy = match policy(&template.json) {
            Ok(policy) => policy,
            Err(why) => {
                suite.missing(place("template"), why);
                continue;
            }
        };
        let constraint = Source::read(&source.path(text_field(test, "constraint")))?;
        let binding = binding(&constraint, suite);
        let name = policy.pointer("/metadata/name").and_then(Json::as_str);
        let name = name.unwrap_or_default().to_owned();
        if !suite.policies.contains(&policy) {
            suite.policies.push(policy);
        }
        for (m, case) in items(test, "cases") {
            let field = format!("tests[{n}].cases[{m}]");
            let place = source.place(&field);
            match cases(case, test, source, &place, suite) {
                Ok(cases) => {
                    for case in cases {
                        let params = Some(vec![constraint.json.clone()]);
                        suite.add(&name, Bindings::Inline(vec![binding.clone()]), params, case);
                    }
                }
                Err(why) => suite.missing(place, why),
            }
        }
    }
    Ok(())
}

fn policy(template: &Json) -> Result<Json, String> {
    let targets = template.pointer("/spec/targets").and_then(Json::as_array);
    let [target] = targets.map(Vec::as_slice).unwrap_or_default() else {
        return Err("the template must have exactly one target".to_owned());
    };
    let mut codes = items(target, "code").map(|(_, code)| code);
    let code = codes.find(|code| text_field(code, "engine") == ENGINE);
    let Some(code) = code.and_then(|code| code.get("source")) else {
        return Err(
            "the template is written in Rego, which the API server does not support".to_owned(),
        );
    };
    let kind = template.pointer("/spec/crd/spec/names/kind");
    let name = template.pointer("/metadata/name").and_then(Json::as_str);
    let list = |name: &str| -> Vec<Json> { items(code, name).map(|(_, it)| it.clone()).collect() };
    let matchers = MATCHERS.into_iter().map(|(name, expression)| {
        json!({"name": format!("gatekeeper_internal_match_{}", name.replace('-', "_")), "expression": expression})
    });
    let conditions: Vec<Json> = list("matchCondition").into_iter().chain(matchers).collect();
    let own = [
        json!({
            "name": "anyObject",
            "expression": "request.operation == 'DELETE' && object == null ? oldObject : object",
        }),
        json!({"name": "params", "expression": "params.?spec.parameters.orValue(null)"}),
    ];
    let variables: Vec<Json> = own.into_iter().chain(list("variables")).collect();
    let operations = items(target, "operations").map(|(_, it)| it.clone());
    let mut operations: Vec<Json> = operations.collect();
    if operations.is_empty() {
        operations = vec![json!("CREATE"), json!("UPDATE")];
    }
    let failure_policy = match text_field(code, "failurePolicy") {
        "" => "Fail",
        given => given,
    };
    Ok(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("gatekeeper-{}", name.unwrap_or_default())},
        "spec": {
            "failurePolicy": failure_policy,
            "paramKind": {"apiVersion": CONSTRAINTS, "kind": kind},
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": operations, "resources": ["*"]},
            ]},
            "matchConditions": conditions,
            "variables": variables,
            "validations": list("validations"),
        },
    }))
}

fn binding(constraint: &Source, suite: &mut Suite) -> Json {
    let action = constraint.json.pointer("/spec/enforcementAction");
    let action = match action.and_then(Json::as_str).unwrap_or("deny") {
        "deny" => "Deny",
        "warn" => "Warn",
        "dryrun" => "Audit",
        other => {
            let text = format!("the enforcement action `{other}` is treated as `deny`");
            suite.note(constraint.place("spec.enforcementAction"), text);
            "Deny"
        }
    };
    // The binding needs the action Deny, because gator counts violations regardless of the action.
    if action != "Deny" {
        let text = format!(
            "the binding has the action Deny, although the action of the constraint is {action}"
        );
        suite.note(constraint.place("spec.enforcementAction"), text);
    }
    let empty = json!({});
    let selection = constraint.json.pointer("/spec/match").unwrap_or(&empty);
    let mut resources = Map::new();
    for (from, into) in [
        ("labelSelector", "objectSelector"),
        ("namespaceSelector", "namespaceSelector"),
    ] {
        if let Some(selector) = selection.get(from) {
            resources.insert(into.to_owned(), selector.clone());
        }
    }
    for field in ["scope", "source"] {
        if selection.get(field).is_some() {
            let place = constraint.place(&format!("spec.match.{field}"));
            suite.note(place, format!("a policy cannot match by `{field}`"));
        }
    }
    let name = text_field(constraint.json.get("metadata").unwrap_or(&empty), "name");
    let mut binding = json!({
        "validationActions": ["Deny"],
        "paramRef": {"name": name, "parameterNotFoundAction": "Allow"},
    });
    if let Some(fields) = binding.as_object_mut().filter(|_| !resources.is_empty()) {
        fields.insert("matchResources".to_owned(), Json::Object(resources));
    }
    binding
}

/// Converts a case of gator to cases of a probe, one for each assertion.
fn cases(
    case: &Json,
    test: &Json,
    source: &Source,
    place: &str,
    suite: &mut Suite,
) -> Result<Vec<Case>, String> {
    if case.get("skip") == Some(&json!(true)) {
        return Err("the case is skipped".to_owned());
    }
    if items(case, "inventory").next().is_some() {
        return Err("a policy cannot read other objects of the cluster".to_owned());
    }
    let path = source.path(text_field(case, "object"));
    let (objects, problems) = source::objects(std::slice::from_ref(&path));
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let [object] = objects.as_slice() else {
        return Err(format!(
            "{} must contain exactly one object",
            path.display()
        ));
    };
    let request = request(object, place, suite)?;
    let name = format!("{}: {}", text_field(test, "name"), text_field(case, "name"));
    let none = json!({"violations": "no"});
    let mut assertions: Vec<&Json> = items(case, "assertions").map(|(_, it)| it).collect();
    if assertions.is_empty() {
        assertions.push(&none);
    }
    let mut converted = Vec::new();
    for assertion in assertions {
        let (expect, may_not_apply) = expectation(assertion, place, suite)?;
        converted.push(Case {
            name: name.clone(),
            request: request.clone(),
            expect,
            may_not_apply,
            place: place.to_owned(),
        });
    }
    Ok(converted)
}

fn request(
    object: &SuiteObject,
    place: &str,
    suite: &mut Suite,
) -> Result<Map<String, Json>, String> {
    let mut request = Map::new();
    let (group, _) = object.group_version();
    if object.kind() != "AdmissionReview" || group != "admission.k8s.io" {
        request.insert("object".to_owned(), object.value.clone());
        return Ok(request);
    }
    let reviewed = object.value.get("request").and_then(Json::as_object);
    fill_from_review(
        &mut request,
        reviewed.ok_or("the AdmissionReview has no `request`")?,
    );
    // A resource without a version is removed. The resource is then derived from the object.
    let resource = request.get("resource").map(|it| text_field(it, "version"));
    if resource.is_some_and(str::is_empty) {
        request.remove("resource");
    }
    let is_update = request.get("operation") == Some(&json!("UPDATE"));
    if is_update && !request.contains_key("oldObject") {
        if let Some(object) = request.get("object").cloned() {
            request.insert("oldObject".to_owned(), object);
        }
        suite.note(
            place.to_owned(),
            "the UPDATE has no oldObject; the object is used as the oldObject",
        );
    }
    Ok(request)
}

/// Returns the expectation of an assertion. Also returns true if the assertion accepts that the policy does not apply.
fn expectation(assertion: &Json, place: &str, suite: &mut Suite) -> Result<(Json, bool), String> {
    let message = assertion.get("message").and_then(Json::as_str);
    let violations = assertion.get("violations").cloned().unwrap_or_default();
    let count = violations.as_u64();
    let is_denied = match (&violations, count) {
        // `yes` and `no` are booleans in YAML 1.1.
        (Json::Null | Json::Bool(true), _) => true,
        (Json::Bool(false), _) => false,
        (Json::String(word), _) if word == "yes" || word == "no" => word == "yes",
        (_, Some(count)) => count > 0,
        (other, None) => return Err(format!("`violations: {other}` is not supported")),
    };
    let mut expect = Map::new();
    match (is_denied, message) {
        (true, message) => {
            expect.insert("decision".to_owned(), json!("Deny"));
            if let Some(pattern) = message {
                expect.insert("messagePattern".to_owned(), json!(pattern));
            }
            match count {
                Some(count) if message.is_none() => {
                    expect.insert("failingValidations".to_owned(), json!(count));
                }
                Some(count) if count > 1 => {
                    let text =
                        format!("the probe requires only one matching message instead of {count}");
                    suite.note(place.to_owned(), text);
                }
                _ => {}
            }
            Ok((Json::Object(expect), false))
        }
        (false, None) => Ok((json!({"decision": "Allow"}), true)),
        (false, Some(pattern)) if pattern.chars().all(|c| c.is_alphanumeric() || c == ' ') => Ok((
            json!({"applies": true, "forbiddenMessages": [pattern]}),
            false,
        )),
        (false, Some(_)) => {
            Err("a probe can forbid substrings of messages, but not patterns".to_owned())
        }
    }
}
