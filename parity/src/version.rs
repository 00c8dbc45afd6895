//! The version of the API server that all comparisons of this process reproduce.

use std::sync::OnceLock;

use vap_status_controller::version::KubernetesVersion;

static VERSION: OnceLock<KubernetesVersion> = OnceLock::new();

/// The default version, that of the oracle `parity/oracle/oracle`.
pub const ORACLE: KubernetesVersion = KubernetesVersion::new(36).with_patch(3);

/// Sets the version. Only the first call has an effect.
pub fn set(version: KubernetesVersion) {
    VERSION.get_or_init(|| version);
}

/// Returns the version that was set, or that of the oracle.
#[must_use]
pub fn get() -> KubernetesVersion {
    *VERSION.get_or_init(|| ORACLE)
}
