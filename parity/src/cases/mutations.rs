//! Generates mutating policies from the fields of a kind. Some of the policies have changed expressions.

use anyhow::Result;
use serde_json::{Value, json};

use super::choices::Choices;
use super::expressions::make;
use super::policies::{Subject, condition, rule_of, subjects, use_of};
use super::{choices, mutate, pick, pieces};

/// Field names for generated objects and patches.
const FIELDS: &[&str] = &[
    "spec",
    "metadata",
    "labels",
    "replicas",
    "containers",
    "template",
    "name",
    "env",
    "data",
    "__namespace__",
    "`a-b`",
];

/// Expressions of mutations for any kind. Some are valid, some are invalid.
const PIECES: &[&str] = &[
    "Object{}",
    "Object.spec{}",
    "Object{spec: Object.wrong{}}",
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    "Object{metadata: Object.metadata{?labels: object.metadata.?labels}}",
    "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name})}}",
    "has(object.metadata.labels) ? Object{} : Object{metadata: Object.metadata{labels: {}}}",
    "true ? Object{} : null",
    "true ? Object{} : Object.spec{}",
    "type(Object{}) == Object ? Object{} : Object{}",
    "Object",
    "Object.spec",
    "Objects{}",
    "Object.{}",
    "Object{a: 1, a: 2}",
    "Object{?a: 1}",
    "Object{a: [Object.a{}, Object.b{}]}",
    "Object{a: {'b': 1, 'c': 'd'}}",
    "[1].map(Object, Object{})[0]",
    "[1].map(Object, Object.spec{})[0]",
    "dyn(Object{})",
    "Object{}.spec",
    "Object{a: Object{b: 1}.b, c: has(Object{}.d)}",
    "variables.nope",
    "[]",
    "[JSONPatch{}]",
    "[JSONPatch{op: 'add', path: '/a', value: 1}, JSONPatch{op: 'remove', path: '/b'}]",
    "[JSONPatch{op: 'test', path: '/a', value: null}]",
    "[JSONPatch{op: 'copy', from: '/a', path: '/b'}] + [JSONPatch{op: 'move', from: '/b', path: '/c'}]",
    "[JSONPatch{op: 1}]",
    "[JSONPatch{op: null}]",
    "[JSONPatch{op: dyn(1)}]",
    "[JSONPatch{operation: 'add'}]",
    "[JSONPatch{operation: dyn('add')}]",
    "[JSONPatch{operation: null}]",
    "[JSONPatch{value: JSONPatch{}.nope}]",
    "[JSONPatch{}.nope]",
    "JSONPatch{}.nope == 1 ? [JSONPatch{}] : []",
    "[JSONPatch{value: Object.spec{a: 1}}]",
    "[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey(object.metadata.name)}]",
    "[JSONPatch{path: jsonpatch.escapeKey(1)}]",
    "[JSONPatch{path: jsonpatch.unescapeKey('a')}]",
    "JSONPatch{}",
    "[Object{}]",
    "[dyn(JSONPatch{})]",
    "has(object.a) ? [JSONPatch{op: 'remove', path: '/a'}] : []",
];

/// Generates `n` mutating policies.
///
/// # Errors
/// Returns an error if a schema cannot be read.
pub fn policies(seed: u64, n: u64, crds: &[Value]) -> Result<Vec<Value>> {
    let subjects = subjects(crds)?;
    let mut policies = Vec::new();
    for at in 0..n {
        let mut choices = choices(seed, "mutating", at);
        let subject = pick(&mut choices, &subjects)?;
        let mut policy = generated(&mut choices, subject);
        policy["metadata"] = json!({"name": format!("mutating-{seed}-{at}.example.com")});
        policies.push(policy);
    }
    Ok(policies)
}

fn generated(choices: &mut Choices<'static>, subject: &Subject) -> Value {
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [rule_of(choices, &subject.resource)]},
        "reinvocationPolicy": "Never",
    });
    if choices.chance(25) {
        spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    }
    let mut names = Vec::new();
    if choices.chance(40) {
        let mut variables = Vec::new();
        for at in 0..=choices.below(3) {
            let name = format!("v{at}");
            let expression = match choices.below(4) {
                0 if !names.is_empty() => use_of(choices, &names),
                1 => choices.pick(pieces::VARIABLES).to_owned(),
                2 => choices.pick(PIECES).to_owned(),
                _ => make(&subject.material, choices, None, 1),
            };
            variables.push(json!({"name": name, "expression": expression}));
            names.push(name);
        }
        spec["variables"] = variables.into();
    }
    if choices.chance(30) {
        let expression = condition(choices, subject, &names);
        spec["matchConditions"] = json!([{"name": "m", "expression": expression}]);
    }
    spec["mutations"] = (0..=choices.below(3))
        .map(|_| mutation(choices, subject, &names))
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "spec": spec,
    })
}

fn mutation(choices: &mut Choices<'static>, subject: &Subject, names: &[String]) -> Value {
    let applies = choices.chance(50);
    let mut expression = match choices.below(10) {
        0..=2 => choices.pick(PIECES).to_owned(),
        3 if !names.is_empty() => use_of(choices, names),
        _ if applies => object(choices, subject, names, "Object", 3),
        _ => patch(choices, subject, names),
    };
    if choices.chance(25) {
        expression = mutate::change(choices, &expression);
    }
    if choices.chance(10) {
        expression = format!(" {expression}\n");
    }
    if applies {
        let of = json!({"expression": expression});
        json!({"patchType": "ApplyConfiguration", "applyConfiguration": of})
    } else {
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
    }
}

fn object(
    choices: &mut Choices<'static>,
    subject: &Subject,
    names: &[String],
    name: &str,
    depth: usize,
) -> String {
    let mut fields = Vec::new();
    for _ in 0..choices.below(4) {
        let field = choices.pick(FIELDS).to_owned();
        let part = format!("{name}.{}", field.trim_matches('`').replace('-', "_"));
        let value = match choices.below(6) {
            0 | 1 if depth > 0 => object(choices, subject, names, &part, depth - 1),
            2 if depth > 0 => format!("[{}]", object(choices, subject, names, &part, depth - 1)),
            3 if !names.is_empty() => use_of(choices, names),
            _ => make(&subject.material, choices, None, 1),
        };
        let optional = if choices.chance(15) { "?" } else { "" };
        let value = if optional.is_empty() || choices.chance(20) {
            value
        } else {
            format!("optional.of({value})")
        };
        fields.push(format!("{optional}{field}: {value}"));
    }
    format!("{name}{{{}}}", fields.join(", "))
}

fn patch(choices: &mut Choices<'static>, subject: &Subject, names: &[String]) -> String {
    let mut operations = Vec::new();
    for _ in 0..=choices.below(2) {
        let mut fields = Vec::new();
        let op = choices.pick(&[
            "'add'",
            "'remove'",
            "'replace'",
            "'test'",
            "request.operation",
        ]);
        fields.push(format!("op: {op}"));
        let path = match choices.below(3) {
            0 => "'/metadata/labels/a~1b'".to_owned(),
            1 => {
                let key = make(
                    &subject.material,
                    choices,
                    Some(&vap_status_controller::cel::types::Type::String),
                    1,
                );
                format!("'/metadata/labels/' + jsonpatch.escapeKey({key})")
            }
            _ => make(&subject.material, choices, None, 1),
        };
        fields.push(format!("path: {path}"));
        if choices.chance(70) {
            let value = match choices.below(3) {
                0 => object(choices, subject, names, "Object.spec", 1),
                1 if !names.is_empty() => use_of(choices, names),
                _ => make(&subject.material, choices, None, 1),
            };
            fields.push(format!("value: {value}"));
        }
        operations.push(format!("JSONPatch{{{}}}", fields.join(", ")));
    }
    format!("[{}]", operations.join(", "))
}
