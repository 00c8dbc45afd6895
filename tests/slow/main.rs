//! Tests that start programs, read all schemas of Kubernetes, or process large input. They are one program.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../support/api_server.rs"]
mod api_server;
#[path = "../support/checks.rs"]
mod checks;
#[path = "../support/golden.rs"]
mod golden;
#[path = "../support/mod.rs"]
mod support;

mod cli_binary;
mod cli_check_binary;
mod cli_commands;
mod cli_diff;
mod cli_diff_changes;
mod cli_diff_generated;
mod cli_expressions;
mod cli_hints;
mod cli_init;
mod cli_live;
mod cli_memory;
mod cli_mutating;
mod cli_test;
mod cli_test_options;
mod cli_traces;
mod cli_upgrade;
mod custom_resources;
mod distribution;
mod docs;
mod first_drafts;
mod hostile;
mod hostile_eval;
mod hostile_files;
#[path = "../support/json_schema.rs"]
mod json_schema;
mod listen;
mod lsp;
mod offline;
mod report_schemas;
mod safe_advice;
mod schema_golden;
mod static_manifests;
#[cfg(unix)]
mod terminal;
mod undefaulted;
