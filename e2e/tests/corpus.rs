//! Compares the `upstream` profile with kube-controller-manager on a corpus of real policies. `./dev corpus` runs the
//! test with the variable `VAP_CORPUS_DIR`. Plain `cargo test` excludes the test.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and this one prints its counts"
)]

#[path = "support/kcm.rs"]
mod kcm;

use parity::corpus;

#[tokio::test(flavor = "multi_thread")]
async fn upstream_profile_has_same_results_as_kcm() {
    let folder = corpus::directory().unwrap().join("policies");
    kcm::upstream_profile_equals_kcm(&folder).await;
}
