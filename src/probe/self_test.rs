//! Self-test of the evaluator: compares decisions for sample requests with recorded decisions of an API server.
//!
//! The controller runs the self-test once at startup. If it fails, `/readyz` reports the failure, and the process never
//! becomes ready.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use super::api::{CaseOutcome, PolicyProbeSpec};
use super::run::{self, CaseResult, RunContext};
use crate::policy::admission::{Admission, Namespace, ParamList};
use crate::policy::subject::SubjectKind;
use crate::policy::{self, RequestPolicy};
use crate::schema::resolver::SchemaSet;
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Gvk, Gvr, RestMapper};
use crate::version::KubernetesVersion;

/// The cost of each case in cel-go.
const COSTS: [i64; 6] = [151, 6, 350_156, 350_156, 202, 151];

/// Runs the self-test.
///
/// # Errors
/// Returns a description of the first failure.
pub fn run() -> Result<(), String> {
    panic::catch_unwind(|| check(&probe(), &COSTS))
        .unwrap_or_else(|_| Err("the evaluator panicked on its self-test".to_owned()))
}

/// Checks that all cases of `probe` pass with the expected costs.
fn check(probe: &Value, costs: &[i64]) -> Result<(), String> {
    let results = results(probe)?;
    for result in &results {
        let status = &result.status;
        if status.outcome != CaseOutcome::Passed {
            let difference = status.difference.as_deref().unwrap_or_default();
            return Err(format!("self-test, {:?}: {difference}", status.name));
        }
    }
    let actual: Vec<i64> = results
        .iter()
        .filter_map(|result| result.status.cost_used)
        .collect();
    if actual != costs {
        return Err(format!(
            "self-test: expected the costs {costs:?}, got {actual:?}"
        ));
    }
    Ok(())
}

fn results(probe: &Value) -> Result<Vec<CaseResult>, String> {
    let broken = |error: serde_json::Error| format!("self-test: {error}");
    let policy: ValidatingAdmissionPolicy =
        serde_json::from_value(sample_policy()).map_err(broken)?;
    let policy = RequestPolicy::from(policy);
    let probe: PolicyProbeSpec = serde_json::from_value(probe.clone()).map_err(broken)?;
    let param_kind = policy::param_kind(&policy);
    let admission = Admission::new(policy, KubernetesVersion::DEFAULT);
    let namespaces = BTreeMap::from([("shop".to_owned(), Namespace::new(&namespace()))]);
    let none = ParamList::default();
    let mapper = RestMapper::new(vec![
        served(("apps", "v1", "deployments"), "Deployment"),
        served(("", "v1", "configmaps"), "ConfigMap"),
    ]);
    let run_context = RunContext {
        admission: &admission,
        param_kind: param_kind.as_ref(),
        bindings: Ok(&[]),
        params: Ok(&none),
        namespaces: &namespaces,
        authorizer: Err("the self-test has no authorizer".to_owned()),
        mapper: &mapper,
        // The sample objects are incomplete. Without schemas, they are not validated.
        schemas: &SchemaSet::default(),
        rejection: None,
        kind: SubjectKind::ValidatingAdmissionPolicy,
        mutating: None,
        records: None,
    };
    let run = || run::run(&probe, &run_context);
    panic::catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| "the evaluator panicked on its self-test".to_owned())
}

fn served((group, version, resource): (&str, &str, &str), kind: &str) -> ApiResource {
    ApiResource {
        gvr: Gvr::new(group, version, resource),
        gvk: Gvk::new(group, version, kind),
        singular: kind.to_lowercase(),
        namespaced: true,
    }
}

fn namespace() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"stage": "production"}},
    })
}

/// Returns a policy that uses most features of policies and CEL.
fn sample_policy() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "self-test"},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"stage": "production"}},
                "resourceRules": [{
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["deployments"],
                }],
            },
            "matchConditions": [{
                "name": "no-system-user",
                "expression": "!request.userInfo.username.startsWith('system:')",
            }],
            "variables": [
                {"name": "containers", "expression": "object.spec.template.spec.containers"},
                {"name": "most", "expression": "int(params.data.replicas)"},
                {
                    "name": "untagged",
                    "expression":
                        "variables.containers.filter(c, !c.image.matches('^[a-z./]+:[0-9.]+$'))",
                },
            ],
            "validations": [
                {
                    "expression": "object.spec.replicas <= variables.most || authorizer.group('apps')\
                        .resource('deployments').subresource('scale').check('update').allowed()",
                    "messageExpression":
                        "'at most ' + string(variables.most) + ' replicas in ' + namespaceObject.metadata.name",
                    "reason": "Forbidden",
                },
                {
                    "expression": "variables.untagged.size() == 0",
                    "messageExpression":
                        "'without version: ' + variables.untagged.map(c, c.name).join(', ')",
                },
                {
                    "expression": "variables.containers.all(c, !has(c.resources.limits) || \
                        quantity(c.resources.limits.memory).isLessThan(quantity('1Gi')))",
                    "message": "containers have less than 1Gi of memory",
                },
            ],
            "auditAnnotations": [{
                "key": "replicas",
                "valueExpression": "'%d of %d'.format([object.spec.replicas, variables.most])",
            }],
        },
    })
}

fn deployment(replicas: i64, image: &str, limits: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [
                {"name": "web", "image": image, "resources": {"limits": limits}},
                {"name": "log", "image": "example.com/log:1.2"},
            ]}},
        },
    })
}

/// Returns cases that are allowed, denied, denied by an error, or not matched.
fn probe() -> Value {
    const IMAGE: &str = "example.com/web:1.0";
    let user = json!({"username": "ann"});
    let sound = deployment(3, IMAGE, &json!({"memory": "512Mi"}));
    json!({
        "policyName": "self-test",
        "params": "Inline",
        "inlineParams": [{
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "limits", "namespace": "shop"},
            "data": {"replicas": "5"},
        }],
        "bindings": "Inline",
        "inlineBindings": [{
            "policyName": "self-test",
            "paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"},
            "validationActions": ["Deny", "Audit"],
        }],
        "cases": [
            {
                "name": "a valid request is allowed",
                "request": {"object": sound, "userInfo": user},
                "expect": {
                    "decision": "Allow",
                    "applies": true,
                    "warnings": [],
                    "auditAnnotations": {"replicas": "3 of 5"},
                },
            },
            {
                "name": "a request of a system user does not match",
                "request": {"object": sound, "userInfo": {"username": "system:admin"}},
                "expect": {"decision": "Allow", "applies": false},
            },
            {
                "name": "too many replicas are denied",
                "request": {
                    "operation": "UPDATE",
                    "object": deployment(6, IMAGE, &json!({"memory": "512Mi"})),
                    "oldObject": sound,
                    "userInfo": user,
                },
                "expect": {
                    "decision": "Deny",
                    "message": "at most 5 replicas in shop",
                    "reason": "Forbidden",
                },
            },
            {
                "name": "a user with permission to scale is allowed more replicas",
                "request": {
                    "object": deployment(6, IMAGE, &json!({"memory": "512Mi"})),
                    "authorizer": [{"verb": "update", "subResource": "scale", "decision": "Allow"}],
                    "userInfo": user,
                },
                "expect": {"decision": "Allow", "auditAnnotations": {"replicas": "6 of 5"}},
            },
            {
                "name": "an image without version is denied",
                "request": {"object": deployment(3, "example.com/web:latest", &json!({"memory": "512Mi"})), "userInfo": user},
                "expect": {
                    "decision": "Deny",
                    "message": "without version: web",
                    "reason": "Invalid",
                },
            },
            {
                "name": "an error denies",
                "request": {"object": deployment(3, IMAGE, &json!({"cpu": "1"})), "userInfo": user},
                "expect": {
                    "decision": "Deny",
                    "error": {"contains": "no such key: memory"},
                },
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_test_of_evaluator_passes() {
        assert_eq!(run(), Ok(()));
    }

    #[test]
    fn self_test_reports_different_decision() {
        let mut wrong = probe();
        wrong["cases"][2]["expect"]["message"] = "at most 4 replicas in shop".into();
        assert_eq!(
            check(&wrong, &COSTS).unwrap_err(),
            "self-test, \"too many replicas are denied\": expected the message \
             \"at most 4 replicas in shop\", got \"at most 5 replicas in shop\""
        );
        let text = check(&probe(), &COSTS[1..]).unwrap_err();
        assert!(
            text.starts_with("self-test: expected the costs ["),
            "{text}"
        );
        assert!(check(&json!({}), &COSTS).is_err());
    }
}
