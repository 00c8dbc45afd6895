//! Names of the controller's Lease that the controller and the plugin share. The controller renews the Lease; the
//! plugin reads from it how current the statuses are.

/// The annotation with the time when all needed sources were last in sync with the cluster.
pub const IN_SYNC_AT: &str = "vap-status.dev/in-sync-at";

/// The name of the Lease.
pub const DEFAULT_NAME: &str = "vap-status-controller";

/// The namespace of the Lease if the pod's namespace is not known.
pub const DEFAULT_NAMESPACE: &str = "vap-status-system";

/// The duration of a Lease without `leaseDurationSeconds`, in seconds.
pub const DEFAULT_DURATION_SECONDS: i32 = 15;
