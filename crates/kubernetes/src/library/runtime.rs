//! The options with which the API server plans and evaluates expressions.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`).

use std::sync::Arc;

use cel::eval::Runtime;
use regexp::EngineBudget;

/// The API server's runtime options, without a shared budget for regular expressions.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesRuntime;

impl Runtime for KubernetesRuntime {
    fn presence_test_has_cost(&self) -> bool {
        false
    }
}

/// The API server's runtime options for the expressions of one policy, whose regular expressions share a memory budget.
#[derive(Clone, Debug, Default)]
pub struct PolicyRuntime {
    engines: Arc<EngineBudget>,
}

impl PolicyRuntime {
    /// Creates a runtime for expressions that an analysis evaluates only a few times. This runtime does not build
    /// search engines for regular expressions. An expression that uses a large pattern fails with an error.
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
