//! Memory limits of the controller, and an estimate of the memory that parsed JSON needs.
//!
//! Objects of users are stored as text. A text of 7 bytes (`{"b":0}`) needs about 900 bytes as a tree, so that limits
//! on text alone do not bound memory. [`unpacked_bytes`] computes the need of a text without building a tree.
//!
//! The sum of the limits is in `docs/limits.md`. Change both together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The most memory that one probe, param, namespace or CustomResourceDefinition may need when it is parsed, in bytes.
pub(crate) const MAX_OBJECT: usize = 16 * MIB;

/// The most memory that an object of a kind without own limits (policies, bindings, configurations) may need when it is
/// parsed, in bytes.
pub(crate) const MAX_TYPED_OBJECT: usize = 24 * MIB;

/// The most memory that the objects of one evaluation may need when they are parsed, in bytes: the params, the
/// definitions and the largest probe.
pub(crate) const MAX_EVALUATION: usize = 20 * MIB;

/// The same for evaluations in the quick lane; larger ones go to the slow lane.
pub(crate) const MAX_QUICK_EVALUATION: usize = 4 * MIB;

/// The most bytes that the stored probes of one policy may occupy.
pub(crate) const MAX_PROBES_OF_POLICY: usize = 4 * MIB;

/// The most bytes that all stored probes may occupy.
pub(crate) const MAX_PROBES: usize = 16 * MIB;

/// Bytes that a stored probe occupies in addition to its text.
pub(crate) const PROBE_OVERHEAD: usize = KIB;

/// Bytes that the result of a case occupies if its strings are short.
pub(crate) const SHORT_RESULT: usize = 128;

/// The most bytes that the results of all probes may occupy with full strings. Further results have short strings.
pub(crate) const MAX_RESULTS: usize = 6 * MIB;

/// The maximum length of a string in a short result, in bytes.
pub(crate) const MAX_SHORT_TEXT: usize = 64;

/// The most bytes of text of the params that are read for one policy.
pub(crate) const MAX_PARAMS_OF_POLICY: usize = 4 * MIB;

/// The most bytes of text of params that are cached for the next evaluation, of all kinds.
pub(crate) const MAX_PARAMS: usize = 8 * MIB;

/// The most bytes of the labels of an object of a paramKind.
pub(crate) const MAX_PARAM_LABELS: usize = 16 * KIB;

/// The most bytes of text of the CustomResourceDefinitions that are read for the probes of one policy.
pub(crate) const MAX_DEFINITIONS_OF_POLICY: usize = 4 * MIB;

/// The most bytes of text of cached namespaces.
pub(crate) const MAX_NAMESPACES: usize = 4 * MIB;

/// The most bytes of text of the namespaces that are read for one policy.
pub(crate) const MAX_NAMESPACES_OF_POLICY: usize = 2 * MIB;

/// The most memory that one namespace may need when it is parsed, in bytes.
pub(crate) const MAX_NAMESPACE: usize = 4 * MIB;

/// The most bytes of params and definitions in each lane that are read and not yet evaluated.
pub(crate) const MAX_IN_FLIGHT: usize = 4 * MIB;

/// Bytes of text that an object may have in the API server, which limits requests to 3 MiB and etcd to 1.5 MiB.
pub(crate) const LIKELY_OBJECT_TEXT: usize = 3 * MIB / 2;

/// The most bytes that the compiled policies cached for probes may occupy.
pub(crate) const MAX_ADMISSIONS: usize = 8 * MIB;

/// The longest event of a watch and the longest page of a list, in bytes of text. The API server accepts objects of 3 MiB
/// and may escape control characters with six bytes each. A longer page is requested again with half as many objects.
pub(crate) const MAX_WIRE_OBJECT: usize = 16 * MIB;

/// Bytes of a `serde_json` object and of the evaluator's, without entries.
const OBJECT: usize = 640 + 64;

/// Up to this many entries, a `serde_json` object is one node of a B-tree.
const NODE_ENTRIES: usize = 11;

/// Bytes of an entry of a larger `serde_json` object: a node of 632 bytes has at least 5 entries, and mostly 7.
const TREE_ENTRY: usize = 128;

/// Bytes of an entry of the evaluator's object, whose capacity is a power of two.
const FIELD: usize = 48;

/// Bytes of an item of a `serde_json` array, whose capacity is a power of two.
const ITEM: usize = 32;

/// Bytes of an item of the evaluator's list.
const LIST_ITEM: usize = 32;

/// Bytes of the evaluator's list without items.
const LIST: usize = 64;

/// Bytes of a string and of the evaluator's string, without their text.
const STRING: usize = 32;

/// Returns the bytes that a JSON text needs as a `serde_json::Value` and as a value of the evaluator together.
///
/// The constants hold for 64-bit platforms and are verified by the tests of this module. Errors in the text are
/// ignored: parsing invalid JSON needs no more than the result either.
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

/// Returns the capacity of a vector after `n` pushes.
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

/// Bytes in use, counted by all holders of a [`Charge`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<AtomicUsize>);

/// A share of a [`Meter`], which is released on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Meter,
    n_bytes: usize,
}

impl Meter {
    /// Returns the bytes in use.
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

    /// Asserts that the estimate of `json` is at least the real need, and at most `factor` times that.
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
        // A constant allowance for the fields of a single object.
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
    fn unpacked_bytes_many_small_maps() {
        for n in [100, 1_000, 20_000] {
            check(
                &format!(r#"{{"a":[{}]}}"#, repeated(n, |_| r#"{"b":0}"#.to_owned())),
                2,
            );
        }
    }

    #[test]
    fn unpacked_bytes_wide_map() {
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
    fn unpacked_bytes_numbers() {
        for n in [1, 5, 129, 40_000] {
            check(&format!("[{}]", repeated(n, |idx| idx.to_string())), 2);
        }
    }

    #[test]
    fn unpacked_bytes_strings() {
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
    fn unpacked_bytes_deep_and_empty() {
        check(
            &format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100)),
            2,
        );
        check(&format!("{}1{}", "[".repeat(100), "]".repeat(100)), 2);
        check(&format!("[{}]", repeated(5_000, |_| "{}".to_owned())), 3);
        check(&format!("[{}]", repeated(5_000, |_| "[ ]".to_owned())), 3);
        // Nested too deeply to be parsed.
        assert!(unpacked_bytes(&"[".repeat(1 << 20)) < MIB);
    }

    #[test]
    fn unpacked_bytes_builds_no_tree() {
        let json = format!("[{}]", repeated(100_000, |_| r#"{"b":[]}"#.to_owned()));
        let measured = allocation_counter::measure(|| {
            assert!(unpacked_bytes(&json) > 50 * MIB);
        });
        assert!(measured.bytes_max < 1024, "{}", measured.bytes_max);
    }

    /// Appends a random value.
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
    fn unpacked_bytes_generated_objects() {
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
    fn charge_drop_releases_bytes() {
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
    fn mebibytes_rounds_up() {
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
