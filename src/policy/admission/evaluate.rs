//! The evaluation of a policy for one of its params.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go`, `Validate`.

use super::Surroundings;
use super::failure::FailurePolicy;
use super::namespace::Namespace;
use super::object::Object;
use super::outcome::Evaluation;
use super::request::AdmissionRequest;
use crate::policy::compile::CompiledPolicy;
use crate::schema::{Gvk, Gvr};

/// The expressions of a policy, ready to be evaluated.
#[derive(Debug)]
pub(super) struct Evaluator {
    failure_policy: FailurePolicy,
}

impl Evaluator {
    pub(super) fn new(compiled: &CompiledPolicy) -> Self {
        let spec = compiled.policy().spec.as_ref();
        Self {
            failure_policy: FailurePolicy::new(
                spec.and_then(|spec| spec.failure_policy.as_deref()),
            ),
        }
    }

    pub(super) fn evaluate(
        &self,
        _request: &AdmissionRequest,
        _matched: (&Gvr, &Gvk),
        params: Option<&Object>,
        _namespace: Option<&Namespace>,
        _surroundings: &Surroundings<'_>,
    ) -> Evaluation {
        Evaluation {
            params: params.map(Object::namespaced_name),
            decisions: vec![
                self.failure_policy
                    .decision("expressions cannot be evaluated yet".to_owned()),
            ],
            ..Evaluation::default()
        }
    }
}
