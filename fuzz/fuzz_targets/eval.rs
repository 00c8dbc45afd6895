//! Any text is parsed, checked, planned and evaluated with a few inputs, and has the properties that every
//! expression has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::evaluate;

fuzz_target!(|text: &str| evaluate(text));
