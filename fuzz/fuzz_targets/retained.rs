//! A policy is compiled, type-checked and dropped: the peak of the heap and the memory retained afterwards are bounded.
//!
//! Up to 16 bytes are a seed of the generator of hostile objects. More are a policy as JSON, or an expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::retained;

fuzz_target!(|bytes: &[u8]| retained::check(bytes));
