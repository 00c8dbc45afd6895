//! The options of planning and evaluation that the API server's environment sets.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`).

use cel::eval::Runtime;

/// The environment of the API server.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesRuntime;

impl Runtime for KubernetesRuntime {
    fn presence_test_has_cost(&self) -> bool {
        false
    }
}
