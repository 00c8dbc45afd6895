//! The API server's options for planning and evaluating expressions.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`).

use std::sync::Arc;

use cel::eval::Runtime;
use regexp::EngineBudget;

/// The API server's options for expressions. The expressions share no memory budget for regular expressions.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesRuntime;

impl Runtime for KubernetesRuntime {
    fn presence_test_has_cost(&self) -> bool {
        false
    }
}

/// The API server's options for the expressions of one policy. The regular expressions in these expressions share a
/// memory budget.
#[derive(Clone, Debug, Default)]
pub struct PolicyRuntime {
    engines: Arc<EngineBudget>,
}

impl PolicyRuntime {
    /// Creates a runtime for an analysis that evaluates each expression only a few times. To save time, no search
    /// engines are built for regular expressions, so an expression with a large pattern fails.
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
