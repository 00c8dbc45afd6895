//! The controller's Lease, as far as the controller and the plugin must agree on it: the one keeps it, the other
//! reads from it how current the statuses are.

/// The annotation that says when all needed sources were last in step with the cluster.
pub const IN_STEP_AT: &str = "vap-status.dev/in-step-at";

/// The name of the Lease.
pub const DEFAULT_NAME: &str = "vap-status-controller";

/// Its namespace, where no pod says another.
pub const DEFAULT_NAMESPACE: &str = "vap-status-system";

/// How long a Lease holds that does not say it, in seconds.
pub const DEFAULT_DURATION_SECONDS: i32 = 15;
