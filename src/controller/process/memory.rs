//! Memory limits of the controller, and an estimate of the memory of parsed JSON.
//!
//! Objects of users are stored as unparsed JSON. A limit on the length of JSON does not bound the memory for parsing: 7
//! bytes (`{"b":0}`) need about 900 bytes. [`unpacked_bytes`] estimates this memory without parsing.
//!
//! `docs/limits.md` states the sum of these limits, and must be updated when a limit changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The maximum memory of one parsed probe, param, namespace or CustomResourceDefinition, in bytes.
pub(crate) const MAX_OBJECT: usize = 16 * MIB;

/// The maximum memory of a parsed object of any other kind (policies, bindings, configurations), in bytes.
pub(crate) const MAX_TYPED_OBJECT: usize = 24 * MIB;

/// The maximum memory of the parsed objects of one evaluation, in bytes. These are the params, the definitions and the
/// largest probe.
pub(crate) const MAX_EVALUATION: usize = 20 * MIB;

/// The maximum memory of the parsed objects of a quick evaluation, in bytes. Larger evaluations use the queue of slow
/// probes.
pub(crate) const MAX_QUICK_EVALUATION: usize = 4 * MIB;

/// The maximum size of one policy's stored probes, in bytes.
pub(crate) const MAX_PROBES_OF_POLICY: usize = 4 * MIB;

/// The maximum size of all stored probes, in bytes.
pub(crate) const MAX_PROBES: usize = 16 * MIB;

/// The memory of a stored probe in addition to its JSON, in bytes.
pub(crate) const PROBE_OVERHEAD: usize = KIB;

/// The size of a case's result with truncated strings, in bytes.
pub(crate) const SHORT_RESULT: usize = 128;

/// The size of all stored probe results, in bytes, above which the strings of new results are truncated.
pub(crate) const MAX_RESULTS: usize = 6 * MIB;

/// The maximum length of a truncated string in a result, in bytes.
pub(crate) const MAX_SHORT_TEXT: usize = 64;

/// The maximum JSON size of the params that are read for one policy, in bytes.
pub(crate) const MAX_PARAMS_OF_POLICY: usize = 4 * MIB;

/// The maximum JSON size of all cached params, in bytes.
pub(crate) const MAX_PARAMS: usize = 8 * MIB;

/// The maximum size of the labels of one param object, in bytes.
pub(crate) const MAX_PARAM_LABELS: usize = 16 * KIB;

/// The maximum JSON size of the CustomResourceDefinitions that are read for one policy's probes, in bytes.
pub(crate) const MAX_DEFINITIONS_OF_POLICY: usize = 4 * MIB;

/// The maximum JSON size of all cached namespaces, in bytes.
pub(crate) const MAX_NAMESPACES: usize = 4 * MIB;

/// The maximum JSON size of the namespaces that are read for one policy, in bytes.
pub(crate) const MAX_NAMESPACES_OF_POLICY: usize = 2 * MIB;

/// The maximum memory of one parsed namespace, in bytes.
pub(crate) const MAX_NAMESPACE: usize = 4 * MIB;

/// The maximum JSON size of params and definitions that wait for their evaluation, in bytes. Quick and slow evaluations
/// have separate limits.
pub(crate) const MAX_IN_FLIGHT: usize = 4 * MIB;

/// The expected maximum JSON size of an object, in bytes. The API server limits requests to 3 MiB, and etcd to 1.5 MiB.
pub(crate) const LIKELY_OBJECT_TEXT: usize = 3 * MIB / 2;

/// The maximum size of all policies that are compiled and cached for probes, in bytes.
pub(crate) const MAX_ADMISSIONS: usize = 8 * MIB;

/// The maximum size of a watch event and of a list page, in bytes. The API server accepts objects of 3 MiB, and may
/// escape a control character with six bytes. A larger page is requested again with half as many objects.
pub(crate) const MAX_WIRE_OBJECT: usize = 16 * MIB;

/// The size of an empty `serde_json` object plus an empty object of the evaluator, in bytes.
const OBJECT: usize = 640 + 64;

/// The maximum number of entries for which a `serde_json` object is a single node of a B-tree.
const NODE_ENTRIES: usize = 11;

/// The size of an entry of a `serde_json` object with several nodes, in bytes. A node of 632 bytes has at least 5
/// entries, and usually 7.
const TREE_ENTRY: usize = 128;

/// The size of an entry of the evaluator's object, in bytes. The capacity of the object is a power of two.
const FIELD: usize = 48;

/// The size of an item of a `serde_json` array, in bytes. The capacity of the array is a power of two.
const ITEM: usize = 32;

/// The size of an item of the evaluator's list, in bytes.
const LIST_ITEM: usize = 32;

/// The size of an empty list of the evaluator, in bytes.
const LIST: usize = 64;

/// The size of an empty `serde_json` string plus an empty string of the evaluator, in bytes.
const STRING: usize = 32;

/// Estimates the memory of `json` after parsing, in bytes. This includes a `serde_json::Value` and a value of the
/// evaluator.
///
/// The constants are for 64-bit platforms. The tests of this module verify them. Invalid JSON is not detected, but the
/// parser needs at most the estimated memory before it fails.
pub(crate) fn unpacked_bytes(json: &str) -> usize {
    let mut total = 0_usize;
    // The number of commas in each open container.
    let mut open: Vec<u32> = Vec::new();
    // The last byte that is not white space, to detect empty containers.
    let mut last = b' ';
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            b'"' => {
                let mut n_bytes = 0_usize;
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            n_bytes += 1;
                            bytes.next();
                        }
                        _ => n_bytes += 1,
                    }
                }
                total = total.saturating_add(STRING + 2 * n_bytes);
            }
            b'{' | b'[' => open.push(0),
            b',' => {
                if let Some(n_commas) = open.last_mut() {
                    *n_commas = n_commas.saturating_add(1);
                }
            }
            b'}' | b']' => {
                let n_commas = open.pop().unwrap_or_default();
                let is_empty = matches!(last, b'{' | b'[');
                let n = if is_empty { 0 } else { n_commas as usize + 1 };
                let container = if byte == b'}' { object(n) } else { array(n) };
                total = total.saturating_add(container);
            }
            _ => {}
        }
        last = byte;
    }
    total
}

const fn object(n: usize) -> usize {
    let tree = match n {
        0 => return LIST,
        1..=NODE_ENTRIES => 0,
        _ => n.saturating_mul(TREE_ENTRY),
    };
    OBJECT + tree + capacity(n).saturating_mul(FIELD)
}

const fn array(n: usize) -> usize {
    if n == 0 {
        return LIST;
    }
    LIST + capacity(n).saturating_mul(ITEM) + n.saturating_mul(LIST_ITEM)
}

/// Returns the capacity of a vector after `n` calls of `push`.
const fn capacity(n: usize) -> usize {
    if n <= 4 { 4 } else { n.next_power_of_two() }
}

/// Formats a size for messages, such as `91 MiB` or `3.4 MiB`.
pub(crate) fn mebibytes(n_bytes: usize) -> String {
    let tenths = n_bytes.saturating_mul(10).div_ceil(MIB);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} MiB"),
        (whole @ ..10, tenth) => format!("{whole}.{tenth} MiB"),
        (whole, _) => format!("{} MiB", whole + 1),
    }
}

/// A counter of bytes in use. Each [`Charge`] adds its bytes until it is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<AtomicUsize>);

#[derive(Debug)]
pub(crate) struct Charge {
    meter: Meter,
    n_bytes: usize,
}

impl Meter {
    pub(crate) fn in_use(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts `n_bytes` until the charge is dropped.
    pub(crate) fn charge(&self, n_bytes: usize) -> Charge {
        self.0.fetch_add(n_bytes, Ordering::Relaxed);
        Charge {
            meter: self.clone(),
            n_bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.0.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::Value;

    use super::*;
    use crate::policy::admission::Object;

    /// Asserts that the estimate for `json` is between the actual memory and `factor` times the actual memory.
    #[track_caller]
    fn check(json: &str, factor: usize) {
        let mut kept = None;
        let measured = allocation_counter::measure(|| {
            let value: Value = serde_json::from_str(json).unwrap();
            let object = Object::new(&value);
            kept = Some((value, object));
        });
        let real = usize::try_from(measured.bytes_current).unwrap();
        let estimate = unpacked_bytes(json);
        // The tolerance of 1 KiB covers the fields of a single object.
        assert!(estimate + 1024 >= real, "{estimate} < {real}");
        assert!(estimate <= factor * real + 1024, "{estimate} >> {real}");
    }

    fn repeated(n: usize, item: impl Fn(usize) -> String) -> String {
        let mut items = String::new();
        for idx in 0..n {
            let comma = if idx == 0 { "" } else { "," };
            write!(items, "{comma}{}", item(idx)).unwrap();
        }
        items
    }

    #[test]
    fn estimate_is_upper_bound_for_many_small_maps() {
        for n in [100, 1_000, 20_000] {
            check(
                &format!(r#"{{"a":[{}]}}"#, repeated(n, |_| r#"{"b":0}"#.to_owned())),
                2,
            );
        }
    }

    #[test]
    fn estimate_is_upper_bound_for_wide_map() {
        for n in [1, 11, 12, 100, 5_000] {
            check(
                &format!("{{{}}}", repeated(n, |idx| format!(r#""k{idx:06}":{idx}"#))),
                2,
            );
            check(
                &format!(
                    "{{{}}}",
                    repeated(n, |idx| format!(r#""k{}":{idx}"#, idx * 7919 % 99_991))
                ),
                2,
            );
        }
    }

    #[test]
    fn estimate_is_upper_bound_for_numbers() {
        for n in [1, 5, 129, 40_000] {
            check(&format!("[{}]", repeated(n, |idx| idx.to_string())), 2);
        }
    }

    #[test]
    fn estimate_is_upper_bound_for_strings() {
        check(
            &format!(
                "[{}]",
                repeated(10_000, |idx| format!(r#""{}""#, "x".repeat(idx % 40)))
            ),
            2,
        );
        check(&format!(r#"{{"a":"{}"}}"#, "y".repeat(1 << 20)), 2);
        check(r#"["\u00e9\"\\\n","\u0001",""]"#, 3);
    }

    #[test]
    fn estimate_is_upper_bound_for_deep_and_empty_values() {
        check(
            &format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100)),
            2,
        );
        check(&format!("{}1{}", "[".repeat(100), "]".repeat(100)), 2);
        check(&format!("[{}]", repeated(5_000, |_| "{}".to_owned())), 3);
        check(&format!("[{}]", repeated(5_000, |_| "[ ]".to_owned())), 3);
        // The estimate for JSON that is nested too deeply to be parsed is small.
        assert!(unpacked_bytes(&"[".repeat(1 << 20)) < MIB);
    }

    #[test]
    fn estimate_allocates_less_than_one_kib() {
        let json = format!("[{}]", repeated(100_000, |_| r#"{"b":[]}"#.to_owned()));
        let measured = allocation_counter::measure(|| {
            assert!(unpacked_bytes(&json) > 50 * MIB);
        });
        assert!(measured.bytes_max < 1024, "{}", measured.bytes_max);
    }

    /// Appends the JSON of a random value to `out`.
    fn value(random: &mut impl FnMut(u64) -> u64, depth: u32, out: &mut String) {
        match random(if depth == 0 { 3 } else { 5 }) {
            0 => write!(out, "{}", random(1 << 40)).unwrap(),
            1 => write!(
                out,
                r#""{}""#,
                "s".repeat(usize::try_from(random(60)).unwrap())
            )
            .unwrap(),
            2 => out.push_str("true"),
            3 => {
                out.push('[');
                for idx in 0..random(40) {
                    out.push_str(if idx == 0 { "" } else { "," });
                    value(random, depth - 1, out);
                }
                out.push(']');
            }
            _ => {
                out.push('{');
                for idx in 0..random(30) {
                    out.push_str(if idx == 0 { "" } else { "," });
                    write!(out, r#""key{idx}":"#).unwrap();
                    value(random, depth - 1, out);
                }
                out.push('}');
            }
        }
    }

    #[test]
    fn estimate_is_upper_bound_for_random_objects() {
        let mut seed = 7_u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        for _ in 0..40 {
            let mut json = String::from(r#"{"a":["#);
            for idx in 0..20 {
                json.push_str(if idx == 0 { "" } else { "," });
                value(&mut random, 3, &mut json);
            }
            json.push_str("]}");
            check(&json, 2);
        }
    }

    #[test]
    fn memory_meter_releases_bytes_of_dropped_charge() {
        let meter = Meter::default();
        let charge = meter.charge(5);
        let other = meter.charge(7);
        assert_eq!(meter.in_use(), 12);
        drop(charge);
        assert_eq!(meter.in_use(), 7);
        drop(other);
        assert_eq!(meter.in_use(), 0);
    }

    #[test]
    fn mebibytes_are_rounded_up() {
        let table = [
            (16 * MIB, "16 MiB"),
            (MIB + 1, "1.1 MiB"),
            (91 * MIB - 5, "91 MiB"),
            (90 * MIB + 1, "91 MiB"),
        ];
        for (n_bytes, text) in table {
            assert_eq!(mebibytes(n_bytes), text);
        }
    }
}
