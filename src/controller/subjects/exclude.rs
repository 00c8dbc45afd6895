//! Exclusion of policies by name or label, mostly those of the platform's vendor.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::managed_fields::owns_status;
use crate::status::exclusion::Exclusion;

/// A policy that is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excluded {
    /// True if its status has fields of ours.
    pub(crate) owns_status: bool,
}

/// Returns the exclusion of the policy if it is left alone; it must have its labels and its managed
/// fields still.
pub(crate) fn excluded(
    exclusion: &Exclusion,
    policy: &ValidatingAdmissionPolicy,
) -> Option<Excluded> {
    let metadata = &policy.metadata;
    exclusion.excludes(metadata).then(|| Excluded {
        owns_status: owns_status(metadata),
    })
}
