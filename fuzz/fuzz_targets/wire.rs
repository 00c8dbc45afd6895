//! Parses arbitrary bytes as the controller parses the API server's responses: a watch, a page of a list, a policy and
//! a probe.
//!
//! The first byte is the size of the chunks in which the other bytes arrive. Asserts that the chunk size does not
//! change the result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::controller::fuzzing::{
    list_policies, list_probes, other_kinds, policy, probe, watch_policies, watch_probes,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((chunk, bytes)) = bytes.split_first() else {
        return;
    };
    let chunk = usize::from(*chunk) + 1;
    for read in [watch_policies, watch_probes, list_policies, list_probes] {
        assert_eq!(read(bytes, chunk), read(bytes, bytes.len()));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (policy(text), probe(text));
        other_kinds(text);
    }
});
