//! Parses arbitrary bytes as manifests. Checks the manifests and formats the findings.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::terminal::Terminal;

fuzz_target!(|bytes: &[u8]| {
    let options = Options {
        paths: vec![PathBuf::from("-")],
        ..Options::default()
    };
    let mut bytes = bytes;
    if let Ok(report) = check::run(&options, &mut bytes) {
        let terminal = Terminal {
            width: Some(80),
            color: true,
        };
        let _ = check::render::text(&report, terminal);
    }
});
