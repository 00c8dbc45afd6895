//! Tests with the corpus of real policies. `./dev corpus` runs them with `VAP_CORPUS_DIR`. They are not part of `cargo
//! test`, because they fail without a corpus. Other tests compare the corpus with upstream.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by a panic, and shares modules with others"
)]

#[path = "../../tests/support/checks.rs"]
mod checks;
#[path = "../../tests/support/mod.rs"]
mod support;

use parity::corpus;
use vap_status_controller::cli::input::{Input, KindFilter};
use vap_status_controller::policy::runtime_errors::Dependence;

#[test]
fn warnings_of_check_equal_those_of_the_type_checker() {
    let corpus = corpus::directory().unwrap();
    let (policies, crds) = (corpus.join("policies"), corpus.join("crds"));
    checks::warnings_match_the_type_checker(&[policies], &[crds], 401);
}

/// The check accepts every file, like kubectl.
#[test]
fn corpus_files_are_all_accepted() {
    let corpus = corpus::directory().unwrap();
    let input = Input::load(&[corpus], KindFilter::All, &mut std::io::empty());
    let refused: Vec<_> = input
        .problems
        .iter()
        .map(|problem| (&problem.file, problem.place, &problem.message))
        .collect();
    println!(
        "{} files, {} objects, {} documents that are not objects",
        input.n_files, input.n_objects, input.n_skipped
    );
    assert!(refused.is_empty(), "{refused:#?}");
    assert!(input.n_files > 0 && input.n_objects > 0);
}

/// For most validations without params and authorizer, `test init` finds a request that is denied.
#[test]
fn init_command_finds_denied_requests_for_most_validations() {
    let corpus = corpus::directory().unwrap();
    let options = vap_status_controller::cli::test::Options {
        paths: vec![corpus.join("policies")],
        crds: vec![corpus.join("crds")],
        ..vap_status_controller::cli::test::Options::default()
    };
    let report = vap_status_controller::cli::test::init::run(&options, &mut std::io::empty());
    let report = report.unwrap();
    let mut all = Vec::new();
    for policy in &report.policies {
        for (n, found) in policy.validations.iter().enumerate() {
            // Counts only validations that depend on nothing but the request.
            if found.dependence != Dependence::Request {
                continue;
            }
            if !found.denied {
                println!("{} {} validations[{n}]", policy.file, policy.name);
            }
            all.push(found.clone());
        }
    }
    let denied = all.iter().filter(|found| found.denied).count();
    let allowed = all.iter().filter(|found| found.allowed).count();
    println!(
        "{} policies, {} validations that read requests, and neither params nor authorizer: {denied} denied, \
         {allowed} allowed",
        report.policies.len(),
        all.len()
    );
    assert!(!all.is_empty() && denied * 100 >= all.len() * 80);
}
