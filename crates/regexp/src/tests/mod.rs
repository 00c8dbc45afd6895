//! Tests Go's error messages and limits, and the trees of some patterns.

mod alternatives;
mod errors;
mod limits;
mod matches;
mod trees;
mod unicode;

use std::fmt::Write as _;

use super::tree::{Flags, NodeId, NodeKind};
use super::unicode::simple_fold;
use super::{Regex, parse};

#[track_caller]
fn check_error(pattern: &str, expected: &str) {
    let error = parse(pattern).expect_err(pattern).to_string();
    assert_eq!(
        error,
        format!("error parsing regexp: {expected}"),
        "{pattern}"
    );
}

#[track_caller]
fn check_valid(pattern: &str) {
    if let Err(error) = parse(pattern) {
        panic!("{error}");
    }
}

/// Returns the kind of the root and the number of its parts.
#[track_caller]
fn root(pattern: &str) -> (NodeKind, usize) {
    let regex: Regex = parse(pattern).expect(pattern);
    let node = regex.node(regex.root());
    (node.kind.clone(), node.parts.len())
}

/// Returns the ranges of a pattern that consists of one class.
#[track_caller]
fn ranges(pattern: &str) -> Vec<(u32, u32)> {
    match root(pattern).0 {
        NodeKind::Class(node) => node.class.ranges().as_slice().to_vec(),
        kind => panic!("{kind:?}"),
    }
}

/// Returns the tree of `pattern` in the format of Go's tests.
#[track_caller]
fn dump(pattern: &str) -> String {
    let regex = parse(pattern).expect(pattern);
    let mut text = String::new();
    write_node(&mut text, &regex, regex.root());
    text
}

/// Source: Go `regexp/syntax/parse_test.go`, `dumpRegexp`.
fn write_node(text: &mut String, regex: &Regex, id: NodeId) {
    let node = regex.node(id);
    let is_lazy = node.flags.has(Flags::NON_GREEDY);
    let lazy = if is_lazy { "n" } else { "" };
    let _ = match &node.kind {
        NodeKind::NoMatch => write!(text, "no{{"),
        NodeKind::Empty => write!(text, "emp{{"),
        NodeKind::Literal(runes) => {
            let name = if runes.len() > 1 { "str" } else { "lit" };
            let folds = node.flags.has(Flags::FOLD_CASE)
                && runes.iter().any(|rune| simple_fold(*rune) != *rune);
            let fold = if folds { "fold" } else { "" };
            let runes: String = runes
                .iter()
                .filter_map(|rune| char::from_u32(*rune))
                .collect();
            write!(text, "{name}{fold}{{{runes}")
        }
        NodeKind::Class(class) => {
            let ranges = class.class.ranges();
            let shown: Vec<_> = ranges
                .as_slice()
                .iter()
                .map(|(lo, hi)| {
                    if lo == hi {
                        format!("{lo:#x}")
                    } else {
                        format!("{lo:#x}-{hi:#x}")
                    }
                })
                .collect();
            write!(text, "cc{{{}", shown.join(" "))
        }
        NodeKind::AnyCharNotNewline => write!(text, "dnl{{"),
        NodeKind::AnyChar => write!(text, "dot{{"),
        NodeKind::BeginLine => write!(text, "bol{{"),
        NodeKind::EndLine => write!(text, "eol{{"),
        NodeKind::BeginText => write!(text, "bot{{"),
        NodeKind::EndText if node.flags.has(Flags::WAS_DOLLAR) => write!(text, "eot{{"),
        NodeKind::EndText => write!(text, r"eot{{\z"),
        NodeKind::WordBoundary => write!(text, "wb{{"),
        NodeKind::NoWordBoundary => write!(text, "nwb{{"),
        NodeKind::Capture(capture) => match &capture.name {
            Some(name) => write!(text, "cap{{{name}:"),
            None => write!(text, "cap{{"),
        },
        NodeKind::Star => write!(text, "{lazy}star{{"),
        NodeKind::Plus => write!(text, "{lazy}plus{{"),
        NodeKind::Quest => write!(text, "{lazy}que{{"),
        NodeKind::Repeat { min, max } => {
            let max = max.map_or(-1, i64::from);
            write!(text, "{lazy}rep{{{min},{max} ")
        }
        NodeKind::Concat => write!(text, "cat{{"),
        NodeKind::Alternate => write!(text, "alt{{"),
        NodeKind::LeftParen(_) | NodeKind::VerticalBar => write!(text, "mark{{"),
    };
    for part in &node.parts {
        write_node(text, regex, *part);
    }
    text.push('}');
}

#[test]
fn parsed_groups_agree_with_go() {
    check_error("(", "missing closing ): `(`");
    check_error("(?:a", "missing closing ): `(?:a`");
    check_error("a)", "unexpected ): `a)`");
    check_error("(?P<n", "invalid named capture: `(?P<n`");
    check_error("(?P<n>", "missing closing ): `(?P<n>`");
    check_error("(?P<>a)", "invalid named capture: `(?P<>`");
    check_error("(?<a b>c)", "invalid named capture: `(?<a b>`");
    check_error("(?<é>c)", "invalid named capture: `(?<é>`");
    check_error("(?<=a)", "invalid named capture: `(?<=a)`");
    check_error("(?P=n)", "invalid or unsupported Perl syntax: `(?P`");
    check_error("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
    check_error("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`");
    check_error("(?x)", "invalid or unsupported Perl syntax: `(?x`");
    check_error("(?", "invalid or unsupported Perl syntax: `(?`");
    check_valid("(?)");
    check_valid("(?i-sm:a)(?<n>b)(?P<n>c)");
    assert_eq!(
        parse("(a)(?:b)(?P<n>c)").map(|regex| regex.n_captures()),
        Ok(2)
    );
}

#[test]
fn parsed_classes_agree_with_go() {
    check_error("[a", "missing closing ]: `[a`");
    check_error("[]", "missing closing ]: `[]`");
    check_error("[z-a]", "invalid character class range: `z-a`");
    check_error(r"[a-\d]", r"invalid escape sequence: `\d`");
    check_error("[[:foo:]]", "invalid character class range: `[:foo:]`");
    check_error(
        r"\p{Nothing}",
        r"invalid character class range: `\p{Nothing}`",
    );
    check_error(r"\p{L", r"invalid character class range: `\p{L`");
    check_error(r"\p", r"invalid character class range: `\p`");
    // Go does not find scripts whose name consists of two words.
    check_error(
        r"\p{Old_Italic}",
        r"invalid character class range: `\p{Old_Italic}`",
    );
    check_valid(r"\p{Uppercase_Letter}\p{ greek }\pN\P{^Lu}[\p{Any}]");
    assert_eq!(ranges("[]a-]"), [(0x2d, 0x2d), (0x5d, 0x5d), (0x61, 0x61)]);
    assert_eq!(ranges("[^a]"), [(0, 0x60), (0x62, 0x10_ffff)]);
    assert_eq!(
        ranges("(?i)[k]"),
        [(0x4b, 0x4b), (0x6b, 0x6b), (0x212a, 0x212a)]
    );
    assert_eq!(
        ranges(r"[\d[:alpha:]]"),
        [(0x30, 0x39), (0x41, 0x5a), (0x61, 0x7a)]
    );
    assert_eq!(ranges("a|c|b"), [(0x61, 0x63)]);
    assert_eq!(ranges(r"\p{Lu}").len(), 646);
}

#[test]
fn parsed_escapes_agree_with_go() {
    check_error(r"a\", "trailing backslash at end of expression: ``");
    check_error(r"\C", r"invalid escape sequence: `\C`");
    check_error(r"\1", r"invalid escape sequence: `\1`");
    check_error(r"\Z", r"invalid escape sequence: `\Z`");
    check_error(r"\é", r"invalid escape sequence: `\é`");
    check_error(r"\x", r"invalid escape sequence: `\x`");
    check_error(r"\xg1", r"invalid escape sequence: `\xg1`");
    check_error(r"\x{}", r"invalid escape sequence: `\x{}`");
    check_error(r"\x{110000}", r"invalid escape sequence: `\x{110000`");
    let literal = |text: &str| (NodeKind::Literal(text.chars().map(u32::from).collect()), 0);
    assert_eq!(root(r"\Qa.*\E\x41\x{1F600}\07\_"), literal("a.*A😀\u{7}_"));
    assert_eq!(root(r"\x{d800}"), (NodeKind::Literal(vec![0xd800]), 0));
}

#[test]
fn parsed_repetitions_agree_with_go() {
    check_error("*", "missing argument to repetition operator: `*`");
    check_error("a|*", "missing argument to repetition operator: `*`");
    check_error("a**", "invalid nested repetition operator: `**`");
    check_error("a+?*", "invalid nested repetition operator: `+?*`");
    check_error("a{2}{3}", "invalid nested repetition operator: `{2}{3}`");
    check_error("a{1001}", "invalid repeat count: `{1001}`");
    check_error("a{3,2}", "invalid repeat count: `{3,2}`");
    check_error("a{99999999999}", "invalid repeat count: `{99999999999}`");
    check_error("(a{100}){11}", "invalid repeat count: `{11}`");
    check_error("((a{10}){10}){11}", "invalid repeat count: `{11}`");
    check_valid("^*");
    check_valid("((a{10}){10}){10}");
    check_valid("a{,5}{ 1}{02}{a");
}

#[test]
fn common_prefixes_are_factored_out() {
    assert_eq!(root("abc|abd"), (NodeKind::Concat, 2));
    assert_eq!(root("abc|xbd|xbe"), (NodeKind::Alternate, 2));
    assert_eq!(root("[ab]c|[ab]d"), (NodeKind::Concat, 2));
    assert_eq!(root("a*b|a*c"), (NodeKind::Alternate, 2));
}

/// Runs on the small stack of a test thread. A recursive parser would overflow it.
#[test]
fn limits_of_go_are_enforced() {
    let nested = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    check_valid(&nested(999));
    check_error(
        &nested(1000),
        &format!("expression nests too deeply: `{}`", nested(1000)),
    );
    check_valid(&"(?:".repeat(20_000).replace("(?:", "(?:a)"));
    let large = format!("(?:{}){{1000}}", "[ab]".repeat(3400));
    check_error(&large, &format!("expression too large: `{large}`"));
    let classes = r"\pL".repeat(30_000);
    check_error(&classes, &format!("expression too large: `{classes}`"));
    let words: Vec<_> = (1..440).map(|n| "a".repeat(n)).collect();
    check_valid(&words.join("|"));
    let words: Vec<_> = (1..1000).map(|n| "a".repeat(n)).collect();
    assert!(parse(&words.join("|")).is_err());
}

#[test]
fn nested_concatenations_are_parsed_in_linear_time() {
    // The pattern has more than a thousand nodes, so the parser measures heights. It ends with groups whose nesting
    // depth is `n`.
    let long = "[ab].".repeat(600);
    let nested = |n: usize| {
        format!("{}{long}{}", "(?:".repeat(2_000), "[ab].)".repeat(2_000))
            + &"(".repeat(n)
            + "a"
            + &")".repeat(n)
    };
    assert!(parse(&nested(990)).is_ok());
    let error = parse(&nested(1_001)).unwrap_err();
    assert!(error.to_string().contains("nests too deeply"), "{error}");
}

#[test]
fn ranges_of_repeated_sets_are_collected_once() {
    let many = parse(&format!("[{}]", r"\pL\PN".repeat(2_000))).unwrap();
    let once = parse(r"[\pL\PN]").unwrap();
    let ranges = |regex: &Regex| match &regex.node(regex.root()).kind {
        NodeKind::Class(class) => class.class.ranges(),
        other => panic!("{other:?}"),
    };
    assert_eq!(ranges(&many), ranges(&once));
}

#[test]
fn unterminated_posix_class_is_literal() {
    let regex = parse("[[:a][[:b]").unwrap();
    assert!(matches!(regex.node(regex.root()).kind, NodeKind::Concat));
    assert!(parse("[[:a][[:b:]]").is_err());
}
