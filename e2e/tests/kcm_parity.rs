//! Compares the `upstream` profile with statuses of kube-controller-manager, on generated policies.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and this one prints its counts"
)]

#[path = "support/kcm.rs"]
mod kcm;

use parity::cases::{self, Counts};

#[tokio::test(flavor = "multi_thread")]
async fn upstream_profile_has_same_results_as_kcm() {
    let directory = tempfile::tempdir().unwrap();
    let counts = Counts {
        policies: 400,
        mutating: 0,
        eval: 0,
        admit: 0,
        ..Counts::default()
    };
    cases::write(directory.path(), 7, counts).unwrap();
    kcm::upstream_profile_equals_kcm(&directory.path().join("policies")).await;
}
