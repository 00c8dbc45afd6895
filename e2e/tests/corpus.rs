//! Compares the `upstream` profile with kube-controller-manager on the corpus of real policies: `./dev corpus`, with
//! `VAP_CORPUS_DIR` set. Plain `cargo test` excludes it; it fails without a corpus.

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
async fn the_upstream_profile_gives_what_kcm_writes() {
    let folder = corpus::directory().unwrap().join("policies");
    kcm::the_upstream_profile_gives_what_kcm_writes(&folder).await;
}
