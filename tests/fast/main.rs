//! Fast tests of the engine, the command line and the repository's files. They are one program, because linking a
//! program takes longer than running its tests.
//!
//! Tests that start programs or take seconds are in `tests/slow`. Tests that measure a whole process are separate
//! programs. The module `repository` checks that each test file belongs to a program.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../support/golden.rs"]
mod golden;
#[path = "../support/manifest.rs"]
mod manifest;
#[path = "../support/processor.rs"]
mod processor;
#[path = "../support/random.rs"]
mod random;

mod advice;
mod cases;
mod check_fix;
mod check_management;
mod cli;
mod cli_check;
mod comparisons;
mod costs;
mod crd_rules;
mod creation;
mod dashboard;
mod explain;
mod failing_mutations;
mod imports;
mod in_memory;
mod library_functions;
mod lockout;
mod mutating_policies;
mod mutations;
mod overload_rows;
mod parser_peer;
mod places;
mod policies;
mod repository;
mod repository_inputs;
mod requests;
mod runtime_errors;
mod runtime_errors_and_defaults;
mod same_names;
mod suspicious;
mod suspicious_rules;
mod syntax_error_words;
mod truthful;
mod tuples;
mod typed_values;
mod unchangeable;
mod unchecked;
mod unfit_values;
mod unions;
mod versions;
mod webhooks;
mod wire;
mod wording;
