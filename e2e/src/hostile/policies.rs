//! Policies, bindings and probes with hostile expressions and objects.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{growth, objects, patterns, slow};
use crate::random::Random;

/// The apiVersion of policies and bindings.
pub const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// Returns a policy for Deployments. `fields` are added to its spec.
#[must_use]
pub fn policy(name: &str, fields: &Value) -> Value {
    let mut spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["deployments"]}]},
    });
    merge(&mut spec, fields);
    json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec})
}

fn merge(spec: &mut Value, fields: &Value) {
    if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
        spec.extend(fields.clone());
    }
}

/// Returns a probe with one case per object. The policy is evaluated as if it were bound to all resources.
#[must_use]
pub fn probe(name: &str, policy: &str, objects: &[Value]) -> Value {
    let cases: Vec<Value> = (0..)
        .zip(objects)
        .map(|(i, object): (u32, _)| {
            json!({"name": format!("case-{i}"), "request": {"object": object}, "expect": {"decision": "Allow"}})
        })
        .collect();
    json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": name},
        "spec": {"policyName": policy, "bindings": "Implied", "samples": "Partial", "cases": cases},
    })
}

/// Returns a binding with the action Audit. `fields` are added to its spec.
#[must_use]
pub fn binding(name: &str, policy: &str, fields: &Value) -> Value {
    let mut spec = json!({"policyName": policy, "validationActions": ["Audit"]});
    merge(&mut spec, fields);
    json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": spec})
}

/// Returns a spec with growing values in validations, messages, audit annotations, conditions or variables.
#[must_use]
pub fn growing(random: &mut Random) -> Value {
    let expression = growth::expression(random);
    match random.below(6) {
        0 => json!({
            "validations": [{"expression": "false", "messageExpression": growth::text(random)}],
        }),
        1 => json!({
            "validations": [{"expression": "true"}],
            "auditAnnotations": (0..20).map(|i| json!({
                "key": format!("key-{i}"), "valueExpression": growth::text(random)})).collect::<Vec<_>>(),
        }),
        2 => json!({
            "matchConditions": [{"name": "grows", "expression": expression}],
            "validations": [{"expression": "true"}],
        }),
        3 => {
            let n = usize::try_from(20 + random.below(30)).unwrap_or(20);
            let variables: Vec<Value> = (0..)
                .zip(growth::variables(random, n))
                .map(|(i, expression): (u32, _)| json!({"name": format!("v{i}"), "expression": expression}))
                .collect();
            json!({
                "variables": variables,
                "validations": [{"expression": format!("size(dyn(variables.v{})) >= 0", n - 1)}],
            })
        }
        _ => {
            let more = random.below(4);
            let expressions = std::iter::once(expression)
                .chain((0..more).map(|_| growth::expression(random)))
                .map(|expression| json!({"expression": expression}));
            json!({"validations": expressions.collect::<Vec<_>>()})
        }
    }
}

/// Returns a spec with expensive patterns: many patterns in one expression, or a search in a long string.
#[must_use]
pub fn matching(random: &mut Random) -> Value {
    if random.permille(250) {
        return json!({"validations": [{"expression": patterns::search(random)}]});
    }
    let n_expressions = random.below(10) + 1;
    let n_bytes = random.choose(&[400, 4_000, 20_000, 60_000]).copied();
    let expressions = (0..n_expressions).map(|_| {
        let expression = patterns::expression(random, n_bytes.unwrap_or(400));
        json!({"expression": expression})
    });
    json!({"validations": expressions.collect::<Vec<_>>()})
}

/// Returns a spec with one to four slow expressions.
#[must_use]
pub fn slow(random: &mut Random) -> Value {
    let expressions = (0..=random.below(4)).map(|_| {
        let form = usize::try_from(random.below(slow::FORMS.len() as u64)).unwrap_or_default();
        json!({"expression": slow::expression(random, form)})
    });
    json!({"validations": expressions.collect::<Vec<_>>()})
}

/// Returns a spec with many small variables, match conditions or validations.
#[must_use]
pub fn many_parts(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!({
            "variables": (0..1_000).map(|i| json!({
                "name": format!("v{i}"),
                "expression": if i == 0 { "1".to_owned() } else { format!("variables.v{} + {i}", i - 1) },
            })).collect::<Vec<_>>(),
            "validations": [{"expression": "variables.v999 > 0"}],
        }),
        1 => json!({
            "matchConditions": (0..64).map(|i| json!({
                "name": format!("c{i}"), "expression": slow::expression(random, 0)})).collect::<Vec<_>>(),
            "validations": [{"expression": "true"}],
        }),
        _ => json!({
            "validations": (0..1_000).map(|i| json!({
                "expression": format!("object.spec.replicas != {i} && object.spec.unknown{i} != 1"),
                "messageExpression": format!("string({i}) + object.metadata.name"),
            })).collect::<Vec<_>>(),
        }),
    }
}

/// Returns a spec that matches every kind. Its expressions are then checked against many schemas.
#[must_use]
pub fn wildcards(random: &mut Random) -> Value {
    let mut text = String::from("true");
    for i in 0..random.below(400) + 100 {
        let _ = write!(
            text,
            " && (!has(object.spec) || !has(object.spec.a{i}) || object.spec.a{i} == object.metadata.b{i})"
        );
    }
    json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]},
        "validations": (0..5).map(|_| json!({"expression": text})).collect::<Vec<_>>(),
    })
}

/// Returns a probe with 256 cases, the maximum. The objects are Deployments with the same number of labels, up to 99.
#[must_use]
pub fn probe_of_many_cases(random: &mut Random, name: &str, policy: &str) -> Value {
    let labels = usize::try_from(random.below(100)).unwrap_or_default();
    let objects: Vec<Value> = (0..256)
        .map(|i| objects::deployment(&format!("d{i}"), labels))
        .collect();
    probe(name, policy, &objects)
}
