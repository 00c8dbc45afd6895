//! Generates admission requests from a seed. Each case also contains the policies, bindings, params and namespaces of
//! the request.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use vap_status_controller::cel::types::Type;

use super::choices::Choices;
use super::expressions::{is_steady, make};
use super::policies::{Subject, about_object, subjects, use_of};
use super::{choices, objects, pick, pieces};

/// Generates `n` cases.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read.
pub fn cases(seed: u64, n: u64) -> Result<Vec<Value>> {
    let mut subjects = subjects(&[])?;
    subjects.retain(|subject| {
        let gvr = &subject.resource.gvr;
        objects::RESOURCES.contains(&(&gvr.group, &gvr.version, &gvr.resource))
    });
    (0..n)
        .map(|at| {
            let mut choices = choices(seed, "admit", at);
            let subject = pick(&mut choices, &subjects)?;
            let mut case = case(&mut choices, subject)?;
            case["id"] = json!(format!("admit-{seed}-{at}"));
            Ok(case)
        })
        .collect()
}

/// The kind of a policy's params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Params {
    ConfigMap,
    Namespaced,
    Cluster,
}

impl Params {
    fn kind(self) -> Value {
        match self {
            Self::ConfigMap => json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            _ => json!({"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"}),
        }
    }

    fn objects(self, choices: &mut Choices<'_>) -> Vec<Value> {
        let names = ["one", "two", "three"];
        let n = choices.below(4);
        let mut objects = Vec::new();
        for name in names.into_iter().take(n) {
            let mut object = self.kind();
            object["metadata"] = json!({"name": name,
                "labels": {"env": choices.pick(&["prod", "dev"])}});
            if self == Self::ConfigMap {
                object["data"] = json!({"limit": choices.pick(&["5", "1", "x"])});
            } else {
                object["spec"] = json!({"max": choices.below(6)});
            }
            if self != Self::Cluster {
                object["metadata"]["namespace"] =
                    json!(choices.pick(&["default", "default", "team-a"]));
            }
            objects.push(object);
        }
        objects
    }
}

fn case(choices: &mut Choices<'static>, subject: &Subject) -> Result<Value> {
    let operation = choices.pick(&["CREATE", "CREATE", "CREATE", "UPDATE", "UPDATE", "DELETE"]);
    let connects = subject.resource.gvr.resource == "pods" && choices.chance(15);
    let operation = if connects { "CONNECT" } else { operation };
    let params = match choices.below(9) {
        0 => Some(Params::ConfigMap),
        1 => Some(Params::Namespaced),
        2 => Some(Params::Cluster),
        _ => None,
    };
    let mut case = json!({
        "policy": policy(choices, subject, operation, params),
        "operation": operation,
    });
    if choices.chance(80) {
        let n = if choices.chance(75) { 1 } else { 2 };
        case["bindings"] = (0..n)
            .map(|at| binding(choices, at, subject, operation, params))
            .collect();
    }
    if let Some(params) = params {
        case["params"] = params.objects(choices).into();
    }
    request(choices, &mut case, subject, operation);
    if subject.resource.gvr.resource == "deployments" && choices.chance(15) {
        equivalents(choices, &mut case)?;
    }
    Ok(case)
}

fn condition(
    choices: &mut Choices<'static>,
    subject: &Subject,
    names: &[String],
    params: Option<Params>,
) -> String {
    if params.is_some() && choices.chance(30) {
        return choices.pick(pieces::PARAMS).to_owned();
    }
    if !names.is_empty() && choices.chance(30) {
        return use_of(choices, names);
    }
    match choices.below(20) {
        0..=5 => choices.pick(pieces::TRUE).to_owned(),
        6..=9 => choices.pick(pieces::FALSE).to_owned(),
        10 => choices.pick(pieces::FAILING).to_owned(),
        11 if choices.chance(50) => choices.pick(pieces::BROKEN).to_owned(),
        11..=13 => choices.pick(pieces::REQUEST).to_owned(),
        14 | 15 => {
            let depth = 1 + u32::try_from(choices.below(2)).unwrap_or_default();
            let expression = make(&subject.material, choices, Some(&Type::Bool), depth);
            if is_steady(&expression) {
                expression
            } else {
                "true".to_owned()
            }
        }
        _ => about_object(choices, &subject.material),
    }
}

fn policy(
    choices: &mut Choices<'static>,
    subject: &Subject,
    operation: &str,
    params: Option<Params>,
) -> Value {
    let mut spec = json!({"matchConstraints": constraints(choices, subject, operation, 94)});
    match choices.below(4) {
        0 => spec["failurePolicy"] = json!("Fail"),
        1 => spec["failurePolicy"] = json!("Ignore"),
        _ => {}
    }
    if let Some(params) = params {
        spec["paramKind"] = params.kind();
    }
    let mut names = Vec::new();
    if choices.chance(40) {
        let mut variables = Vec::new();
        for at in 0..=choices.below(3) {
            let name = format!("v{at}");
            let expression = if !names.is_empty() && choices.chance(30) {
                use_of(choices, &names)
            } else {
                choices.pick(pieces::VARIABLES).to_owned()
            };
            variables.push(json!({"name": name, "expression": expression}));
            names.push(name);
        }
        spec["variables"] = variables.into();
    }
    if choices.chance(35) {
        spec["matchConditions"] = (0..=choices.below(3))
            .map(|at| {
                let expression = if choices.chance(60) {
                    choices.pick(pieces::TRUE).to_owned()
                } else {
                    condition(choices, subject, &names, params)
                };
                json!({"name": format!("m{at}"), "expression": expression})
            })
            .collect();
    }
    let n = if choices.chance(3) {
        0
    } else {
        1 + choices.below(3)
    };
    spec["validations"] = (0..n)
        .map(|_| {
            let mut one = json!({"expression": condition(choices, subject, &names, params)});
            if choices.chance(30) {
                one["message"] = json!(choices.pick(pieces::TEXTS));
            }
            if choices.chance(35) {
                one["messageExpression"] = json!(choices.pick(pieces::MESSAGES));
            }
            if choices.chance(50) {
                one["reason"] = json!(choices.pick(pieces::REASONS));
            }
            one
        })
        .collect();
    if choices.chance(35) {
        spec["auditAnnotations"] = (0..=choices.below(2))
            .map(|at| {
                let expression = choices.pick(pieces::ANNOTATIONS);
                json!({"key": format!("k{at}"), "valueExpression": expression})
            })
            .collect();
    }
    let version = choices.pick(&["v1", "v1", "v1", "v1beta1"]);
    json!({
        "apiVersion": format!("admissionregistration.k8s.io/{version}"),
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": choices.pick(&["p", "policy.example.com"])},
        "spec": spec,
    })
}

/// Generates the match constraints of a policy or binding. Their rules match the request with a probability of
/// `percent`. Selectors, which are added later, may exclude the request.
fn constraints(
    choices: &mut Choices<'_>,
    subject: &Subject,
    operation: &str,
    percent: usize,
) -> Value {
    let gvr = &subject.resource.gvr;
    let subresource = if operation == "CONNECT" { "/*" } else { "" };
    let mut rule = json!({
        "apiGroups": [gvr.group],
        "apiVersions": [gvr.version],
        "resources": [format!("{}{subresource}", gvr.resource)],
        "operations": [operation],
    });
    if !choices.chance(percent) {
        match choices.below(5) {
            0 => rule["apiGroups"] = json!(["other.example.com"]),
            1 => rule["apiVersions"] = json!(["v9"]),
            2 => rule["resources"] = json!(["others"]),
            3 => rule["operations"] = json!(["CONNECT"]),
            _ => rule["resources"] = json!([format!("{}/status", gvr.resource)]),
        }
    } else if choices.chance(30) {
        match choices.below(5) {
            0 => rule["apiGroups"] = json!(["*"]),
            1 => rule["apiVersions"] = json!(["*"]),
            2 => rule["resources"] = json!(["*/*", "*"]),
            3 => rule["operations"] = json!(["*"]),
            _ => rule["operations"] = json!(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
        }
    }
    if choices.chance(10) {
        rule["scope"] = json!(choices.pick(&["Namespaced", "Cluster", "*"]));
    }
    if choices.chance(8) {
        rule["resourceNames"] = json!([choices.pick(&["web", "worker", "other"])]);
    }
    let mut constraints = json!({"resourceRules": [rule.clone()]});
    if choices.chance(10) {
        let mut excluded = rule;
        excluded["resourceNames"] = json!([choices.pick(&["web", "other"])]);
        constraints["excludeResourceRules"] = json!([excluded]);
    }
    if choices.chance(8) {
        constraints["namespaceSelector"] = selector(choices);
    }
    if choices.chance(8) {
        constraints["objectSelector"] = selector(choices);
    }
    if choices.chance(20) {
        constraints["matchPolicy"] = json!(choices.pick(&["Exact", "Equivalent"]));
    }
    constraints
}

/// Generates a selector. It may match, not match, or be invalid.
fn selector(choices: &mut Choices<'_>) -> Value {
    let all = [
        json!({}),
        json!({"matchLabels": {"env": "prod"}}),
        json!({"matchLabels": {"app": "web"}}),
        json!({"matchExpressions": [{"key": "env", "operator": "In", "values": ["prod", "dev"]}]}),
        json!({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "nosuch", "operator": "DoesNotExist"}]}),
        json!({"matchExpressions": [{"key": "env", "operator": "Bad"}]}),
        json!({"matchExpressions": [{"key": "env", "operator": "In", "values": []}]}),
        json!({"matchLabels": {"bad key!": "x"}}),
        json!({"matchExpressions": [{"key": "env", "operator": "Exists", "values": ["x"]}]}),
    ];
    all[choices.below(all.len())].clone()
}

fn binding(
    choices: &mut Choices<'_>,
    at: usize,
    subject: &Subject,
    operation: &str,
    params: Option<Params>,
) -> Value {
    let actions: &[&[&str]] = &[
        &["Deny"],
        &["Deny"],
        &["Deny"],
        &["Warn"],
        &["Audit"],
        &["Deny", "Audit"],
        &["Warn", "Audit"],
        &[],
        &["Other"],
    ];
    let mut spec = json!({
        "policyName": "p",
        "validationActions": actions[choices.below(actions.len())],
    });
    if params.is_some() && choices.chance(93) || choices.chance(3) {
        let mut reference = json!({});
        match choices.below(10) {
            0..=4 => {
                reference["name"] = json!(choices.pick(&["one", "one", "two", "nosuch"]));
            }
            5..=8 => reference["selector"] = selector(choices),
            _ if choices.chance(50) => {
                reference = json!({"name": "one", "selector": {}});
            }
            _ => {}
        }
        if choices.chance(30) {
            reference["namespace"] = json!(choices.pick(&["default", "team-a", "nosuch"]));
        }
        if choices.chance(85) {
            reference["parameterNotFoundAction"] = json!(choices.pick(&["Allow", "Deny"]));
        }
        spec["paramRef"] = reference;
    }
    if choices.chance(30) {
        let mut resources = constraints(choices, subject, operation, 75);
        if choices.chance(40)
            && let Some(fields) = resources.as_object_mut()
        {
            fields.remove("resourceRules");
        }
        spec["matchResources"] = resources;
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("b{at}")},
        "spec": spec,
    })
}

fn request(choices: &mut Choices<'_>, case: &mut Value, subject: &Subject, operation: &str) {
    let resource = subject.resource.gvr.resource.as_str();
    let mut object = objects::object(resource);
    let is_changed = choices.chance(35);
    if is_changed {
        objects::change(choices, &mut object);
    }
    let namespace = object["metadata"]["namespace"].clone();
    let name = object["metadata"]["name"].clone();
    match operation {
        "CREATE" => case["object"] = object,
        "UPDATE" => {
            let mut old = object.clone();
            if choices.chance(60) {
                objects::change(choices, &mut old);
            }
            case["object"] = object;
            case["oldObject"] = old;
        }
        "DELETE" => case["oldObject"] = object,
        _ => {
            case["object"] = json!({"apiVersion": "v1", "kind": "PodExecOptions",
                "command": ["sh"], "stdin": true, "container": "c"});
            case["subresource"] = json!(choices.pick(&["exec", "attach", "portforward"]));
            case["gvk"] = json!({"group": "", "version": "v1", "kind": "PodExecOptions"});
            case["gvr"] = json!({"group": "", "version": "v1", "resource": resource});
            case["name"] = name;
            case["namespace"] = namespace.clone();
        }
    }
    if let Some(namespace) = namespace.as_str()
        && choices.chance(92)
    {
        let mut namespace_object = json!({"metadata": {"name": namespace}});
        if choices.chance(75) {
            namespace_object["metadata"]["labels"] = json!({"env": choices.pick(&["prod", "dev"])});
        }
        if choices.chance(40) {
            namespace_object["spec"] = json!({"finalizers": ["kubernetes"]});
            namespace_object["status"] = json!({"phase": "Active"});
        }
        case["namespaceObject"] = namespace_object;
    }
    if choices.chance(60) {
        let mut user = json!({"username": choices.pick(&["ann", "system:node:a", ""])});
        if choices.chance(60) {
            user["groups"] = json!(["dev", "system:authenticated"]);
        }
        if choices.chance(40) {
            user["uid"] = json!("u-1");
            user["extra"] = json!({"team": ["a"]});
        }
        case["userInfo"] = user;
    }
    if choices.chance(20) {
        case["dryRun"] = json!(true);
    }
    if choices.chance(25) {
        case["options"] = match operation {
            "DELETE" => json!({"gracePeriodSeconds": 5, "propagationPolicy": "Background"}),
            "CONNECT" => Value::Null,
            _ => json!({"fieldManager": "kubectl"}),
        };
    }
    if choices.chance(60) {
        case["authorizer"] = json!([
            {"verb": "delete", "group": "apps", "decision": choices.pick(&["allow", "deny", "noOpinion"])},
            {"verb": "update", "resource": resource, "decision": "allow"},
            {"verb": "custom", "decision": "deny", "reason": "not you"},
            {"path": "/metrics", "decision": "error", "reason": "broken"},
            {"user": "system:serviceaccount:default:web", "decision": "allow"},
        ]);
    }
    if choices.chance(12) {
        let budgets = [0, 1, 2, 3, 5, 8, 13, 30, 100, 1000, 5000];
        case["costBudget"] = json!(budgets[choices.below(budgets.len())]);
        if choices.chance(40) {
            case["policy"]["spec"]["matchConditions"] =
                json!([{"name": "counts", "expression": "[1, 2, 3].map(x, x + 1).size() == 3"}]);
        }
    }
    if choices.chance(1) {
        // Each condition is within the cost limit of matchConditions. Together they exceed the limit.
        case["policy"]["spec"]["matchConditions"] = ["a", "b", "c", "d"]
            .map(|name| json!({"name": name, "expression": pieces::EXPENSIVE}))
            .into_iter()
            .collect();
    }
    if choices.chance(5) && operation != "CONNECT" {
        case["subresource"] = json!(choices.pick(&["status", "scale"]));
    }
    // An API server evaluates policies only for objects whose fields have the right types.
    let is_typed = !is_changed && operation != "UPDATE" && operation != "CONNECT";
    if choices.chance(12) && is_typed {
        case["decode"] = json!("typed");
    }
}

/// Adds a second version of the request's resource. The policy may match either version.
fn equivalents(choices: &mut Choices<'_>, case: &mut Value) -> Result<()> {
    let other = |group: &str| {
        json!({"gvr": {"group": group, "version": "v1beta1", "resource": "deployments"},
            "gvk": {"group": group, "version": "v1beta1", "kind": "Deployment"}})
    };
    case["equivalents"] = if choices.chance(30) {
        json!([other("apps"), other("extensions")])
    } else {
        json!([other("apps")])
    };
    if let Some(fields) = case.as_object_mut() {
        fields.remove("decode");
    }
    let constraints = &mut case["policy"]["spec"]["matchConstraints"];
    constraints["matchPolicy"] = json!(choices.pick(&["Exact", "Equivalent", "Equivalent"]));
    let rule = &mut constraints["resourceRules"][0];
    rule["apiVersions"] = json!([choices.pick(&["v1beta1", "v1beta1", "*", "v1"])]);
    rule["apiGroups"] = json!([choices.pick(&["apps", "extensions", "*"])]);
    let validations = case["policy"]["spec"]["validations"].as_array_mut();
    validations.context("no validations")?.push(json!({
        "expression": choices.pick(&[
            "object.apiVersion == 'apps/v1'",
            "request.kind.version == 'v1beta1'",
            "request.requestKind.version == 'v1'",
            "request.resource.version != request.requestResource.version",
        ]),
    }));
    Ok(())
}
