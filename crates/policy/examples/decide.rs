//! Decides a request with a policy and a binding, as an API server does.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use policy::admission::{
    Admission, AdmissionRequest, AuthorizerList, Binding, Namespace, Object, ParamList,
    ReviewContext,
};
use policy::k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use policy::{Gvr, KubernetesVersion};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "replica-limit"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments"],
            }]},
            "validations": [{
                "expression": "object.spec.replicas <= 5",
                "messageExpression": "'at most 5 replicas, not ' + string(object.spec.replicas)",
            }],
        },
    }))?;
    let binding = Binding::new(&serde_json::from_value(json!({
        "metadata": {"name": "replica-limit"},
        "spec": {"policyName": "replica-limit", "validationActions": ["Deny"]},
    }))?);
    let deployment = Object::new(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 7},
    }));

    // Compile the policy once. It can then decide any number of requests, on any number of threads.
    let admission = Admission::new(&policy, KubernetesVersion::DEFAULT);
    let request = AdmissionRequest::create(Gvr::new("apps", "v1", "deployments"), deployment);
    let shop = Namespace::new(&json!({"metadata": {"name": "shop"}}));
    let namespaces = BTreeMap::from([("shop".to_owned(), shop)]);
    let (params, authorizer) = (ParamList::default(), Arc::new(AuthorizerList::default()));
    let context = ReviewContext::new(&params, &namespaces, authorizer);

    let outcome = admission.review(&request, &[binding], &context);
    assert!(!outcome.is_allowed());
    let denial = outcome.denial.ok_or("the request is not denied")?;
    println!("{} {}: {}", denial.code, denial.reason, denial.message);
    Ok(())
}
