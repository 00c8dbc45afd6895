//! Optional values and entries.
//!
//! The results and costs are those of cel-go, with all extensions.

use super::check_all;

const ROWS: &[(&str, &str, u64)] = &[
    ("has(o.?a.b)", "true", 3),
    ("has(o.?a.x)", "false", 2),
    ("has(o.?x.b)", "false", 1),
    ("o.?a['b']", "optional(1)", 3),
    ("o.?a['x']", "optional.none()", 2),
    ("o.?l[0]", "optional(1)", 3),
    ("optional_type", "optional_type", 0),
    ("type(optional.of(1)) == optional_type", "true", 3),
    ("{?'k': optional.of(o.s)}", "{k: text}", 33),
    ("{'k': 1, ?'k': optional.none()}", "{}", 31),
    (
        "{'a': 0, 'k': 1, ?'k': optional.none(), ?'a': optional.of(2)}",
        "{a: 2}",
        32,
    ),
    ("optional.ofNonZeroValue(dyn(null))", "optional.none()", 1),
    (
        "[0u, 0.0, false, '', b'', [], {}, duration('0s'), timestamp('0001-01-01T00:00:00Z')].map(x, optional.ofNonZeroValue(x).hasValue())",
        "[false, false, false, false, false, false, false, false, false]",
        136,
    ),
    (
        "[1u, -0.0, true, 'a', b'a', [0], {0: 0}, duration('1s'), timestamp(0), int].map(x, optional.ofNonZeroValue(x).hasValue())",
        "[true, false, true, true, true, true, true, true, true, true]",
        151,
    ),
    (
        "dyn(1).hasValue()",
        "error: no such overload: hasValue(int)",
        1,
    ),
    ("dyn(1).value()", "error: no such overload: value(int)", 1),
    (
        "dyn('a').first()",
        "error: no such overload: first(string)",
        1,
    ),
    ("dyn([1]).first()", "optional(1)", 1),
    ("[].first()", "optional.none()", 1),
    ("[1, 2].last()", "optional(2)", 1),
    (
        "optional.unwrap(dyn([1]))",
        "error: no such overload: optional.unwrap(list)",
        1,
    ),
    ("[optional.of(1), optional.none()].unwrapOpt()", "[1]", 13),
    (
        "dyn(1).unwrapOpt()",
        "error: no such overload: unwrapOpt(int)",
        1,
    ),
    ("dyn(1).or(optional.of(2))", "1", 0),
    ("optional.of(1).or(dyn(2))", "optional(1)", 1),
    ("optional.none().or(optional.of(o.s))", "optional(text)", 4),
    ("optional.none().orValue(o.s)", "text", 3),
    (
        "optional.none().value()",
        "error: optional.none() dereference",
        2,
    ),
    ("optional.of(o.a).b", "optional(1)", 5),
    ("optional.of(o.a).?b", "optional(1)", 5),
    ("optional.of(o.a)['b']", "optional(1)", 5),
    ("optional.of(o.l)[0]", "optional(1)", 5),
    ("optional.of(o.l)[?9]", "optional.none()", 4),
    ("optional.of(o.l)[9]", "optional.none()", 4),
    ("optional.of(o.s).x", "optional.none()", 4),
    ("o.l[?0]", "optional(1)", 3),
    ("o.?l[?0]", "optional(1)", 3),
    ("o.a[?'b']", "optional(1)", 3),
    ("o.a[?'x']", "optional.none()", 2),
    (
        "'%s'.format([dyn(optional.of(1))])",
        "error: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type",
        13,
    ),
    ("optional.of(dyn(1)) == optional.of(1u)", "true", 3),
    (
        "[optional.of(1), optional.of(1)].distinct()",
        "[optional(1)]",
        31,
    ),
    (
        "[[optional.of(1)], [optional.of(1)]].distinct()",
        "[[optional(1)]]",
        51,
    ),
    (
        "[{1: optional.none()}, {1: optional.none()}].distinct()",
        "[{1: optional.none()}]",
        91,
    ),
];

#[test]
fn optionals_have_upstream_results() {
    check_all(ROWS);
}
