//! Generates expressions by type, so that most of them pass the type check. Evaluates them like the target `eval`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::evaluate_made;

fuzz_target!(|bytes: &[u8]| evaluate_made(bytes));
