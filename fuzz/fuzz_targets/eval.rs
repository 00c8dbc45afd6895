//! Any text is parsed, checked, planned and evaluated with a few inputs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::evaluate;

fuzz_target!(|text: &str| evaluate(text));
