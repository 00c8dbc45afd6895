//! Expressions that are slow to parse, check, plan or evaluate.

use std::fmt::Write as _;

use crate::random::Random;

/// The maximum length of an expression in cel-go, in code points.
///
/// Source: cel-go `parser/options.go`, `ExpressionSizeCodePointLimit`.
pub const MAX_CODE_POINTS: usize = 100_000;

/// The names of the variants of [`expression`], by index.
pub const FORMS: [&str; 12] = [
    "nested comprehensions",
    "in over dyn lists",
    "equality of shared values",
    "many terms",
    "many elements",
    "many keys",
    "one long string",
    "nested lists",
    "nested conditionals",
    "nested calls",
    "parsed values in a loop",
    "sort and distinct",
];

/// Returns a boolean expression. `form` is an index of [`FORMS`].
#[must_use]
pub fn expression(random: &mut Random, form: usize) -> String {
    let n = random.below(200);
    let depth = random.choose(&[40, 60, 110, 200]).copied().unwrap_or(40);
    match form {
        0 => {
            let n = 60 + n;
            format!(
                "lists.range({n}).all(a, lists.range({n}).all(b, lists.range({n}).all(c, a + b + c >= 0)))"
            )
        }
        1 => {
            let n = 2_000 + n * 10;
            format!("lists.range({n}).all(a, !(dyn('x') in lists.range({n}).map(e, dyn(e))))")
        }
        2 => {
            let doublings = ".map(x, [x, x])".repeat(16 + usize::try_from(n % 12).unwrap_or(0));
            format!("[dyn(1)]{doublings}.all(x, x == x && !(x in [[x, x]]))")
        }
        3 => {
            let mut text = String::from("object.spec.replicas == 0");
            let mut i = n;
            while text.len() < MAX_CODE_POINTS - 40 {
                i += 1;
                let _ = write!(text, " || object.spec.replicas == {i}");
            }
            text
        }
        4 => format!("{} in [{}]", n, joined(16_000, |i| i.to_string())),
        5 => format!("'{n}' in {{{}}}", joined(7_000, |i| format!("'{i}': {i}"))),
        6 => format!(
            "object.metadata.name != '{}'",
            "é".repeat(MAX_CODE_POINTS - 100)
        ),
        7 => nested("[", "]", "1", depth) + " != dyn(1)",
        8 => nested("(object.spec.replicas > 1 ? ", " : true)", "true", depth),
        9 => nested("dyn(", ")", "true", depth) + " == true",
        10 => {
            let value = random
                .choose(&[
                    "quantity(string(i) + 'Gi').asInteger() >= 0",
                    "url('https://example.com/' + string(i)).getHost() != ''",
                    "ip('10.0.0.' + string(i % 256)).family() == 4",
                    "semver('1.2.' + string(i)).major() == 1",
                    "timestamp('2026-01-01T00:00:00Z').getFullYear() + i > 0",
                    "string(i).matches('^[0-9]{1,' + string(i % 900 + 1) + '}$')",
                ])
                .copied()
                .unwrap_or_default();
            format!("lists.range({}).all(i, {value})", 3_000 + n * 20)
        }
        _ => {
            let n = 3_000 + n * 10;
            format!("lists.range({n}).map(i, string(-i)).sort().distinct().size() > 0")
        }
    }
}

fn joined(n: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..n).map(item).collect();
    items.join(",")
}

fn nested(open: &str, close: &str, inner: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}
