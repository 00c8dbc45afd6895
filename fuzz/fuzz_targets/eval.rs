//! Parses, checks, plans and evaluates arbitrary input. Asserts the properties that hold for every expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::evaluate;

fuzz_target!(|text: &str| evaluate(text));
