//! Name, defaults and annotation of the controller's Lease. The plugin reads from the Lease how recent the statuses
//! are.

/// The annotation with the last time at which all watches and polls were in sync with the cluster.
pub const IN_SYNC_AT: &str = "vap-status.dev/in-sync-at";

/// The annotation with the version of the program that wrote the Lease.
pub const VERSION: &str = "vap-status.dev/version";

/// The default name of the Lease.
pub const DEFAULT_NAME: &str = "vap-status-controller";

/// The namespace of the Lease if the pod's namespace is unknown.
pub const DEFAULT_NAMESPACE: &str = "vap-status-system";

/// The default of the Lease's `leaseDurationSeconds`.
pub const DEFAULT_DURATION_SECONDS: i32 = 15;
