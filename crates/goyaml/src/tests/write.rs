//! Tests of writing values as YAML.

use serde_json::{Value, json};

use crate::{to_json, to_string};

fn written(value: &Value) -> String {
    let text = to_string(value, |c| c == '\u{202e}').unwrap();
    assert_eq!(to_json(&text).unwrap(), *value, "{text}");
    text
}

#[test]
fn strings_have_quotes_only_if_needed() {
    let cases = [
        ("object.spec.replicas <= 5", "object.spec.replicas <= 5"),
        ("a: b", "'a: b'"),
        ("a:", "'a:'"),
        (":a", ":a"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("it's", "it's"),
        ("'it''s' == b", "'''it''''s'' == b'"),
        ("!has(a)", "'!has(a)'"),
        ("-a", "-a"),
        ("- a", "'- a'"),
        ("?", "'?'"),
        ("--- a", "'--- a'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("", "''"),
        ("yes", "'yes'"),
        ("010", "'010'"),
        ("0o7", "'0o7'"),
        ("1_000", "'1_000'"),
        ("1.5", "'1.5'"),
        ("2020-01-01", "2020-01-01"),
        ("<<", "'<<'"),
        ("~", "'~'"),
        ("\u{1f600} é", "\u{1f600} é"),
        ("a\tb", r#""a\tb""#),
        ("a\\b", "a\\b"),
        ("\\\"\u{202e}\u{7f}", r#""\\\"\u202e\x7F""#),
        ("a \nb", r#""a \nb""#),
        ("\u{feff}", r#""\uFEFF""#),
    ];
    for (text, expected) in cases {
        assert_eq!(written(&json!({"a": text})), format!("a: {expected}\n"));
        assert_eq!(written(&json!([text])), format!("- {expected}\n"));
        if !text.contains('\n') {
            assert_eq!(written(&json!({text: 1})), format!("{expected}: 1\n"));
        }
    }
}

#[test]
fn multiline_strings_are_written_as_block_scalars() {
    let cases = [
        ("a\nb\n", "|\n  a\n  b\n"),
        ("a\nb", "|-\n  a\n  b\n"),
        ("a\n\n  b\n\n", "|+\n  a\n\n    b\n\n"),
        ("  a\nb\n", "|2\n    a\n  b\n"),
        ("\n", "|2+\n\n"),
        ("\na", "|2-\n\n  a\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(written(&json!({"a": text})), format!("a: {expected}"));
        assert_eq!(written(&json!([text])), format!("- {expected}"));
        assert_eq!(
            written(&json!({"a": text, "b": 1})),
            format!("a: {expected}b: 1\n")
        );
    }
    assert_eq!(written(&json!({"a\nb": "c"})), "? |-\n  a\n  b\n: c\n");
}

#[test]
fn containers_are_indented_like_kubectl() {
    let value = json!({
        "list": [1, [2, []], {"a": {}, "b": [true]}, null],
        "map": {"a": {"b": 1.5}, "empty": {}},
    });
    let expected = "\
list:
- 1
- - 2
  - []
- a: {}
  b:
  - true
- null
map:
  a:
    b: 1.5
  empty: {}
";
    assert_eq!(written(&value), expected);
    assert_eq!(written(&json!({})), "{}\n");
    assert_eq!(written(&json!("a")), "a\n");
    let long = "k".repeat(129);
    let value = json!({long.clone(): [1], "l": {long.clone(): {"a": 1, "b": 2}}});
    let expected = format!("? {long}\n: - 1\nl:\n  ? {long}\n  : a: 1\n    b: 2\n");
    assert_eq!(written(&value), expected);
}

#[test]
fn numeric_keys_are_strings() {
    let value = std::collections::BTreeMap::from([(1, 2)]);
    assert_eq!(to_string(&value, |_| false).unwrap(), "'1': 2\n");
}
