//! As `eval`, with expressions that are generated from types, so that most of them pass the check.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::evaluate_made;

fuzz_target!(|bytes: &[u8]| evaluate_made(bytes));
