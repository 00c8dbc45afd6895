//! Trial runs of a mutating policy, which return only the errors of its mutations.

use serde_json::Value as Json;

use super::{BoundPolicy, MutationContext, Run, StepError};
use crate::admission::AdmissionRequest;

/// Returns the errors of a policy's mutations, each with the index of the mutation. These are the errors of
/// [`mutate`](super::mutate), except that later mutations are applied even if a mutation rejects the request. The trial
/// ends at the first mutation with an unknown result.
pub(crate) fn step_errors(
    request: AdmissionRequest,
    object: Json,
    policy: &BoundPolicy<'_>,
    context: &MutationContext<'_>,
) -> Vec<(usize, StepError)> {
    let policies = std::slice::from_ref(policy);
    let mut run = Run::new(request, Some(object), policies, context);
    run.is_trial = true;
    // The status of a rejected request is not needed. If a mutation caused the rejection, the step of this mutation has
    // the error.
    let _ = run.all();
    if run.budget.exceeded().is_some() {
        return Vec::new();
    }
    let steps = run.steps.into_iter();
    let errors = steps.filter_map(|step| Some((step.mutation, step.changes.err()?)));
    errors.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
    use serde_json::json;

    use super::super::{Kinds, KnownKinds, MutatingAdmission, mutate};
    use kubernetes::version::KubernetesVersion;

    use super::*;
    use crate::admission::{AuthorizerList, Binding, Namespace, Object, Operation, ParamList};
    use kubernetes::schema::{Builtin, Gvk, Gvr};

    const LABEL: &str = r#"[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]"#;
    const NOTHING: &str = "[]";
    const MISSING: &str = r#"[JSONPatch{op: "remove", path: "/spec/paused"}]"#;
    const UNREADABLE: &str = r#"[JSONPatch{op: "add", path: "/spec/replicas", value: "two"}]"#;
    const UNKNOWN: &str = r#"[JSONPatch{op: "add", path: "/spec/replica", value: 2}]"#;
    const UNSET: &str = r#"[JSONPatch{op: "remove", path: "/spec/progressDeadlineSeconds"}]"#;
    /// A mutation that succeeds only if `progressDeadlineSeconds` has its default value. After [`UNSET`] removes the
    /// field, the mutation succeeds only if the API server sets the default again.
    const DEFAULTED: &str = "object.spec.progressDeadlineSeconds == 600 ? [] : [JSONPatch{}]";
    const FAILS: &str = "object.spec.missing ? [] : []";

    fn policy(mutations: &[&str], reinvocation: &str) -> MutatingAdmission {
        let mutations = mutations
            .iter()
            .map(|text| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": text}}));
        let policy = json!({
            "metadata": {"name": "tried"},
            "spec": {
                "reinvocationPolicy": reinvocation,
                "failurePolicy": "Ignore",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["deployments"]}]},
                "mutations": mutations.collect::<Vec<_>>(),
            },
        });
        MutatingAdmission::new(
            &serde_json::from_value(policy).unwrap(),
            KubernetesVersion::DEFAULT,
        )
    }

    fn deployment() -> Json {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 1, "progressDeadlineSeconds": 600,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web"}]},
                },
            },
        })
    }

    #[test]
    fn trial_of_mutation_has_same_error_as_mutation() {
        let kinds = KnownKinds::new(
            Builtin::load(KubernetesVersion::DEFAULT).unwrap(),
            Vec::new(),
        );
        let namespace = json!({"metadata": {"name": "default"}});
        let namespaces = Some(Namespace::new(&namespace));
        let object = kinds
            .completed(&Gvk::new("apps", "v1", "Deployment"), deployment())
            .unwrap();
        let request = AdmissionRequest {
            operation: Operation::Create,
            gvk: Gvk::new("apps", "v1", "Deployment"),
            gvr: Gvr::new("apps", "v1", "deployments"),
            name: "web".to_owned(),
            namespace: "default".to_owned(),
            object: Some(Object::new(&object)),
            ..AdmissionRequest::default()
        };
        let binding = Binding::new(&ValidatingAdmissionPolicyBinding::default());
        let params = ParamList::default();
        let context =
            MutationContext::new(&kinds, &namespaces, Arc::new(AuthorizerList::default()));
        let all = [
            LABEL, NOTHING, MISSING, UNREADABLE, UNKNOWN, UNSET, DEFAULTED, FAILS,
        ];
        let mut n_errors = 0;
        for first in all {
            for second in all {
                for third in [NOTHING, MISSING, DEFAULTED] {
                    for reinvocation in ["Never", "IfNeeded"] {
                        let policy = policy(&[first, second, third], reinvocation);
                        let bound = BoundPolicy {
                            policy: &policy,
                            bindings: std::slice::from_ref(&binding),
                            params: Ok(&params),
                        };
                        let tried = step_errors(request.clone(), object.clone(), &bound, &context);
                        let whole = mutate(&request, Some(&object), &[bound], &context);
                        let steps = whole.steps.into_iter();
                        let errors =
                            steps.filter_map(|step| Some((step.mutation, step.changes.err()?)));
                        // Unlike `mutate`, a trial continues after a rejection, so it may return more errors.
                        let errors: Vec<_> = errors.collect();
                        assert!(tried.starts_with(&errors), "{first} {second} {third}");
                        if whole.denial.is_none() {
                            assert_eq!(tried, errors, "{first} {second} {third}");
                        }
                        n_errors += tried.len();
                    }
                }
            }
        }
        assert!(n_errors > 100, "{n_errors}");
    }
}
