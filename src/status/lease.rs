//! Names and defaults of the controller's Lease. The controller renews the Lease, and the plugin reads from it how
//! recent the statuses are.

/// The annotation with the last time at which all watches and polls of the controller were in sync with the cluster.
pub const IN_SYNC_AT: &str = "vap-status.dev/in-sync-at";

/// The default name of the Lease.
pub const DEFAULT_NAME: &str = "vap-status-controller";

/// The namespace of the Lease if the namespace of the controller's pod is unknown.
pub const DEFAULT_NAMESPACE: &str = "vap-status-system";

/// The duration of a Lease without `leaseDurationSeconds`, in seconds.
pub const DEFAULT_DURATION_SECONDS: i32 = 15;
