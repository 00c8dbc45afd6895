//! Exclusion of policies by name or label, typically of policies that belong to the platform's vendor.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::managed_fields::owns_status;
use crate::status::exclusion::Exclusion;

/// An excluded policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excluded {
    /// True if the controller owns fields of the status.
    pub(crate) owns_status: bool,
}

/// Returns the exclusion of the object with `metadata`. `None` if the object is not excluded. `metadata` must have
/// labels and managed fields.
pub(crate) fn excluded(exclusion: &Exclusion, metadata: &ObjectMeta) -> Option<Excluded> {
    exclusion.excludes(metadata).then(|| Excluded {
        owns_status: owns_status(metadata),
    })
}
