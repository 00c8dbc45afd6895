//! Parses, checks, plans and evaluates any text with a few inputs, and asserts the properties of every expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::evaluate;

fuzz_target!(|text: &str| evaluate(text));
