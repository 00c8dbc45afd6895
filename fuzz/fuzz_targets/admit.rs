//! Parses arbitrary bytes as policies, objects and probes. Runs the cases of the probes and formats the report.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cli::test::{self, Options};

fuzz_target!(|bytes: &[u8]| {
    let options = Options {
        paths: vec![PathBuf::from("-")],
        ..Options::default()
    };
    let mut bytes = bytes;
    if let Ok(report) = test::run(&options, &mut bytes) {
        let _ = test::junit::xml(&report);
    }
});
