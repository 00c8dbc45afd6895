//! Regular expressions that are expensive to compile, store or match. Go's parser accepts them.

use crate::random::Random;

/// Character classes. A counted repetition multiplies their compiled size.
const CLASSES: [&str; 9] = [
    "(?s).",
    r"\pL",
    r"\PL",
    r"(?i)\p{Greek}",
    r"[^\pN\pZ]",
    r"(?i)[a-zà-ÿ]",
    r"\p{Han}",
    r"[\x{0}-\x{10ffff}]",
    r"\w",
];

/// Patterns with quadratic search time in a long string.
const SEARCHES: [&str; 6] = [
    "(x|xx|xxx)*y|x",
    "(?s)(.*)(.*)(.*)[^a]$",
    "(a*)*b",
    "a*a*a*a*a*b",
    r"(\pL+\s?)+!",
    "(a|aa)+$",
];

/// Returns a pattern. Patterns with different `n` are different.
#[must_use]
pub fn pattern(random: &mut Random, n: u64) -> String {
    let count = 900 + random.below(101);
    match random.below(6) {
        0 | 1 => {
            let class = random.choose(&CLASSES).copied().unwrap_or_default();
            format!("{class}{{{count}}}{n}")
        }
        2 => {
            let class = random.choose(&CLASSES).copied().unwrap_or_default();
            format!("(?:(?:(?:{class}){{1,10}}){{1,10}}){{1,10}}{n}")
        }
        3 => {
            let n_words = 50 + random.below(400);
            let words: Vec<String> = (0..n_words)
                .map(|_| format!("{:x}{n}", random.number()))
                .collect();
            format!("(?i)({})", words.join("|"))
        }
        4 => {
            let search = random.choose(&SEARCHES).copied().unwrap_or_default();
            format!("{search}|{n}")
        }
        _ => {
            let parts: Vec<String> = (0..40).map(|i| format!("(\\pL{{25}}{i}|{n})")).collect();
            parts.concat()
        }
    }
}

/// Returns a boolean expression of about `n_bytes` bytes. Each of its terms matches a different pattern.
#[must_use]
pub fn expression(random: &mut Random, n_bytes: usize) -> String {
    let is_same_form = random.permille(400);
    let class = random.choose(&CLASSES).copied().unwrap_or_default();
    let mut text = String::from("true");
    let mut n = random.below(1_000_000);
    while text.len() < n_bytes {
        n += 1;
        let pattern = if is_same_form {
            format!("{class}{{1000}}{n}")
        } else {
            pattern(random, n)
        };
        let term = match random.below(5) {
            0 => format!("object.metadata.name.matches(r'{pattern}')"),
            // The pattern is not constant, so it is compiled during evaluation.
            1 => format!("'a'.matches(r'{pattern}' + object.metadata.name)"),
            2 => format!("object.metadata.name.findAll(r'{pattern}').size() >= 0"),
            3 => format!("'{}'.find(r'{pattern}') != 'a'", "a".repeat(50)),
            _ => format!("'a'.matches(r'{pattern}')"),
        };
        text.push_str(" && !(");
        text.push_str(&term);
        text.push_str(" && false)");
    }
    text
}

/// Returns an expression that searches a long string in quadratic time.
#[must_use]
pub fn search(random: &mut Random) -> String {
    let pattern = random.choose(&SEARCHES).copied().unwrap_or_default();
    let part = random.choose(&["x", "a", "ab "]).copied().unwrap_or("x");
    let doublings = ".map(x, x + x)".repeat(usize::try_from(10 + random.below(9)).unwrap_or(10));
    let use_ = if random.permille(500) {
        format!("x.findAll(r'{pattern}').size() >= 0")
    } else {
        format!("x.matches(r'{pattern}') || true")
    };
    format!("[dyn('{part}')]{doublings}.all(x, {use_})")
}
