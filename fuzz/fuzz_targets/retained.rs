//! Compiles, type-checks and drops a policy; asserts bounds on the peak of the heap and on the memory retained
//! afterwards.
//!
//! Up to 16 bytes are a seed for the generator of hostile objects. Longer input is a policy as JSON, or an expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::retained;

fuzz_target!(|bytes: &[u8]| retained::check(bytes));
