//! The planning and evaluation options of the API server's environment.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`).

use std::sync::Arc;

use cel::eval::Runtime;
use regexp::EngineBudget;

/// The runtime of the API server.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesRuntime;

impl Runtime for KubernetesRuntime {
    fn presence_test_has_cost(&self) -> bool {
        false
    }
}

/// The runtime of the API server for the expressions of one policy, whose patterns share a budget.
#[derive(Clone, Debug, Default)]
pub struct PolicyRuntime {
    engines: Arc<EngineBudget>,
}

impl PolicyRuntime {
    /// Creates a runtime for expressions that are evaluated a few times during an analysis. It builds no engines for
    /// patterns, and large patterns end the evaluation with an error.
    #[must_use]
    pub fn for_trials() -> Self {
        Self {
            engines: Arc::new(EngineBudget::for_trials()),
        }
    }
}

impl Runtime for PolicyRuntime {
    fn presence_test_has_cost(&self) -> bool {
        KubernetesRuntime.presence_test_has_cost()
    }

    fn engines(&self) -> Arc<EngineBudget> {
        Arc::clone(&self.engines)
    }
}
