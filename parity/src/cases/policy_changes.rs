//! Makes a random change to a policy, such as a different rule or paramKind, or an additional validation.

use anyhow::Result;
use serde_json::{Value, json};

use super::choices::Choices;
use super::policies::{Subject, condition, rule_of, use_of, validation};
use super::{pick, pieces};

pub(super) fn change(
    choices: &mut Choices<'static>,
    policy: &mut Value,
    subjects: &[Subject],
) -> Result<()> {
    if !policy["spec"].is_object() {
        policy["spec"] = json!({});
    }
    let subject = pick(choices, subjects)?;
    match choices.below(20) {
        0..=8 => rules(choices, policy, subjects)?,
        9 => {
            let kinds = [
                json!({"apiVersion": "v1", "kind": "ConfigMap"}),
                json!({"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"}),
                json!({"apiVersion": "made.example.com/v1", "kind": "MadeThing12"}),
                json!({"apiVersion": "nosuch.example.com/v1", "kind": "Nosuch"}),
                json!({"apiVersion": "a/b/c", "kind": "Bad"}),
                json!({"apiVersion": "v1", "kind": "Pod"}),
                Value::Null,
            ];
            policy["spec"]["paramKind"] = kinds[choices.below(kinds.len())].clone();
        }
        10 => {
            let expression = choices.pick(pieces::PARAMS);
            push(policy, "validations", json!({"expression": expression}));
        }
        11 => {
            let added = validation(choices, subject, &["v0".to_owned()]);
            push(policy, "validations", added);
        }
        12 => {
            let expression = choices.pick(pieces::MESSAGES);
            if let Some(first) = policy.pointer_mut("/spec/validations/0") {
                first["messageExpression"] = json!(expression);
            }
        }
        13 => {
            let key = choices.pick(&["note", "a.b", "Bad Key", ""]);
            let expression = choices.pick(pieces::ANNOTATIONS);
            let annotation = json!({"key": key, "valueExpression": expression});
            push(policy, "auditAnnotations", annotation);
        }
        14 => {
            let expression = condition(choices, subject, &[]);
            push(
                policy,
                "matchConditions",
                json!({"name": "added", "expression": expression}),
            );
        }
        15 => {
            let name = choices.pick(&["v0", "v1", "object", "params", "bad-name", "x"]);
            let expression = choices.pick(pieces::VARIABLES);
            let variable = json!({"name": name, "expression": expression});
            push(policy, "variables", variable);
        }
        16 => {
            // Reverses the order of the variables, so that some variables read later ones.
            if let Some(Value::Array(variables)) = policy.pointer_mut("/spec/variables") {
                variables.reverse();
            }
            let later = json!({"name": "early", "expression": "variables.late"});
            push(policy, "variables", later);
            push(
                policy,
                "variables",
                json!({"name": "late", "expression": "1"}),
            );
        }
        17 => {
            let names = ["v0", "early", "late", "x"].map(str::to_owned);
            let expression = use_of(choices, &names);
            push(policy, "validations", json!({"expression": expression}));
        }
        18 => {
            let field = choices.pick(&[
                "validations",
                "matchConstraints",
                "variables",
                "paramKind",
                "failurePolicy",
            ]);
            policy["spec"][field] = Value::Null;
        }
        _ => {
            let reason = choices.pick(pieces::REASONS);
            if let Some(first) = policy.pointer_mut("/spec/validations/0") {
                first["reason"] = json!(reason);
                first["message"] = json!(choices.pick(pieces::TEXTS));
            }
        }
    }
    Ok(())
}

fn push(policy: &mut Value, list: &str, item: Value) {
    match &mut policy["spec"][list] {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

fn rule(groups: &Value, versions: &Value, resources: &Value) -> Value {
    json!({"apiGroups": groups, "apiVersions": versions, "resources": resources,
        "operations": ["CREATE", "UPDATE"]})
}

fn rules(choices: &mut Choices<'static>, policy: &mut Value, subjects: &[Subject]) -> Result<()> {
    let subject = pick(choices, subjects)?;
    let own = rule_of(choices, &subject.resource);
    let gvr = &subject.resource.gvr;
    let rules = match choices.below(15) {
        0 | 1 => json!([own]),
        2 => {
            let other = pick(choices, subjects)?;
            json!([own, rule_of(choices, &other.resource)])
        }
        3 => json!([rule(&json!(["*"]), &json!(["*"]), &json!(["*"]))]),
        4 => json!([rule(
            &json!([gvr.group]),
            &json!(["*"]),
            &json!([gvr.resource])
        )]),
        5 => json!([rule(
            &json!(["apps", "batch"]),
            &json!(["v1"]),
            &json!(["*"])
        )]),
        6 => {
            let resources = [
                json!(["pods/exec"]),
                json!(["deployments/scale"]),
                json!(["pods/status", "pods"]),
                json!(["pods/*"]),
                json!(["*/status"]),
                json!(["deployments/*", "deployments"]),
                json!(["pods/ephemeralcontainers"]),
                json!(["nodes/proxy"]),
            ];
            let groups = json!(["", "apps"]);
            json!([rule(
                &groups,
                &json!(["v1"]),
                &resources[choices.below(resources.len())]
            )])
        }
        7 => json!([rule(
            &json!(["nosuch.example.com"]),
            &json!(["v1"]),
            &json!(["nosuches"])
        )]),
        8 => json!([rule(
            &json!(["apps"]),
            &json!(["v1"]),
            &json!(["deployment", "Deployments", "deployments"])
        )]),
        9 => {
            // The rules match more kinds than upstream checks per policy.
            let many: Vec<Value> = subjects
                .iter()
                .take(12 + choices.below(6))
                .map(|subject| rule_of(choices, &subject.resource))
                .collect();
            many.into()
        }
        10 => json!([rule(
            &json!(["", "apps", "batch"]),
            &json!(["v1", "v1beta1", "v2"]),
            &json!(["pods", "deployments", "jobs", "configmaps"])
        )]),
        11 => json!([own.clone(), own]),
        12 => json!([]),
        13 => json!([rule(&json!(["", "apps"]), &json!(["v1"]), &json!(["*/*"]))]),
        _ => json!([rule(
            &json!(["admissionregistration.k8s.io"]),
            &json!(["v1"]),
            &json!([
                "validatingadmissionpolicies",
                "validatingadmissionpolicybindings"
            ])
        )]),
    };
    let mut constraints = json!({"resourceRules": rules});
    match choices.below(10) {
        0 => {
            constraints["excludeResourceRules"] = json!([rule_of(choices, &subject.resource)]);
        }
        1 => constraints["matchPolicy"] = json!("Exact"),
        n @ 2..=3 => {
            if let Some(rule) = constraints.pointer_mut("/resourceRules/0") {
                if n == 2 {
                    rule["resourceNames"] = json!(["one", "two"]);
                } else {
                    rule["scope"] = json!("Namespaced");
                }
            }
        }
        4 => constraints["namespaceSelector"] = json!({"matchLabels": {"env": "prod"}}),
        _ => {}
    }
    policy["spec"]["matchConstraints"] = constraints;
    Ok(())
}
