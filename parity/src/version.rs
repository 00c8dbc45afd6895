//! The Kubernetes version whose results this process compares with ours. [`with`] selects a different version for one
//! call.

use std::cell::Cell;
use std::sync::OnceLock;

use vap_status_controller::version::KubernetesVersion;

static VERSION: OnceLock<KubernetesVersion> = OnceLock::new();

thread_local! {
    /// The version that the innermost [`with`] on this thread selects.
    static SCOPED: Cell<Option<KubernetesVersion>> = const { Cell::new(None) };
}

/// The default version: the version of the oracle `parity/oracle/oracle`.
pub const ORACLE: KubernetesVersion = KubernetesVersion::new(36).with_patch(3);

/// Sets the version. Only the first call has an effect.
pub fn set(version: KubernetesVersion) {
    VERSION.get_or_init(|| version);
}

/// Calls `f` with a different version. The version applies on this thread until `f` returns.
pub fn with<T>(version: KubernetesVersion, f: impl FnOnce() -> T) -> T {
    let previous = SCOPED.replace(Some(version));
    let result = f();
    SCOPED.set(previous);
    result
}

/// Returns the version of the innermost [`with`]. Without one, returns the version that [`set`] has set, or by default
/// [`ORACLE`].
#[must_use]
pub fn get() -> KubernetesVersion {
    SCOPED
        .get()
        .unwrap_or_else(|| *VERSION.get_or_init(|| ORACLE))
}
