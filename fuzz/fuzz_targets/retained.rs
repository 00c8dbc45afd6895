//! Compiles, type-checks and drops a policy. Asserts limits on the peak heap size, and on the memory that stays
//! allocated afterwards.
//!
//! Input of up to 16 bytes is the seed of a generator of hostile objects. Longer input is a policy in JSON or an
//! expression.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller_fuzz::retained;

fuzz_target!(|bytes: &[u8]| retained::check(bytes));
