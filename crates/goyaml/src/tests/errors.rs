//! Tests the positions and the messages of errors.

use crate::{Copies, json, read, to_json};

/// Asserts that the error of `text` begins with `expected`, which contains the line, the column and the message.
#[track_caller]
fn check(text: &str, expected: &str) {
    let error = to_json(text).unwrap_err().to_string();
    let (line_column, message) = expected.split_once(' ').unwrap();
    let (line, column) = line_column.split_once(':').unwrap();
    let expected = format!("line {line}, column {column}: {message}");
    assert!(error.starts_with(&expected), "{text:?}: {error}");
}

#[test]
fn invalid_directives_have_errors() {
    let unknown = "unknown directive: a line that begins with `%` must be `%YAML` or `%TAG`";
    check("%FOO 1\n---\n", &format!("1:1 {unknown}"));
    check("%YAML: 1.1\n---\n", &format!("1:1 {unknown}"));
    let version = "expected a YAML version such as `1.1`";
    check("%YAML x\n---\n", &format!("1:7 {version}"));
    check("%YAML 1\n---\n", &format!("1:8 {version}"));
    check("%YAML 1.\n---\n", &format!("1:9 {version}"));
    check("%YAML 111.1\n---\n", &format!("1:7 {version}"));
    let rejected = "kubectl reads YAML 1.1 and rejects any other version";
    check("%YAML 1.2\n---\n", &format!("1:1 {rejected}"));
    check("%YAML 2.1\n---\n", &format!("1:1 {rejected}"));
    check("%YAML 99.1\n---\n", &format!("1:1 {rejected}"));
    check("%YAML 1.1\n%YAML 1.1\n---\n", "2:1 `%YAML` is repeated");
    check(
        "%YAML 1.1 x\n---\n",
        "1:11 only a comment may follow a directive on its line",
    );
    check("%TAG e! x\n---\n", "1:6 a tag handle must begin with `!`");
    check("%TAG !e x\n---\n", "1:8 a tag handle must end with `!`");
    check("%TAG !e!x\n---\n", "1:9 missing space after the tag handle");
    check("%TAG !e! \n---\n", "1:10 missing tag name");
    check(
        "%TAG !e! a\u{e9}\n---\n",
        "1:11 missing space after the tag",
    );
    check(
        "%TAG !e! a\n%TAG !e! b\n---\n",
        "2:1 `%TAG !e!` is repeated",
    );
    check(
        "%TAG !e! a\nb: 1",
        "1:1 kubectl splits a file at `---` and rejects a directive without a `---`",
    );
}

#[test]
fn invalid_tags_have_errors() {
    let space = "missing space after the tag; quote the string if `!` is part of it";
    check("a: !<tag:x", "1:11 missing `>` at the end of the tag");
    check("a: !<>", "1:6 missing tag name");
    check("a: !<x>b", &format!("1:8 {space}"));
    check("a: !b{c}", &format!("1:6 {space}"));
    check("a: !! b", "1:6 missing tag name");
    check(
        "a: !e!x b",
        "1:4 the handle of this tag has no `%TAG !e!` directive",
    );
    let digits = "expected `%` and two hexadecimal digits";
    check("a: !x%", &format!("1:6 {digits}"));
    check("a: !x%4", &format!("1:6 {digits}"));
    check("a: !x%4g b", &format!("1:6 {digits}"));
    check("a: !x%C3 b", &format!("1:9 {digits}"));
    check("a: !x%C3 %A9", &format!("1:9 {digits}"));
    let utf8 = "these octets are not valid UTF-8";
    check("a: !x%80 b", &format!("1:6 {utf8}"));
    check("a: !x%FF b", &format!("1:6 {utf8}"));
    check("a: !x%C3%41 b", &format!("1:9 {utf8}"));
    check("a: !x%E2%82%C0 b", &format!("1:12 {utf8}"));
    check("a: !!int x", "1:10 `x` is not a valid !!int");
    check("a: !!bool 1", "1:11 `1` is not a valid !!bool");
}

#[test]
fn invalid_blocks_have_errors() {
    check(
        "- a\nb: 1",
        "2:1 expected `-`: a line indented like the items of a list must be an item",
    );
    check(
        "a: 1\n- b",
        "2:1 a `-` among the keys of an object; indent the list, or move it below its key",
    );
    check("a: 1\n b: 2", "2:3 `:` is not allowed here");
    check(
        "a: b: c",
        "1:5 `:` is not allowed here; quote the string if `:` is part of it",
    );
    check(
        "a: - b",
        "1:4 a list item cannot begin here; put `-` on a new line",
    );
    check(
        "a: ? b",
        "1:4 a key cannot begin here; put `?` on a new line",
    );
    check("a: 1\nb\nc: 2", "2:1 missing `:` after a key");
    check(
        "a:\n\t- b",
        "2:1 tabs are not allowed as indentation; use spaces",
    );
    check(
        "a: b\n\tc",
        "2:1 tabs are not allowed as indentation of a continued string",
    );
    check(
        "a: |\n\tb",
        "2:1 tabs are not allowed as indentation of a block scalar",
    );
    check(
        "a: |0\n  b",
        "1:5 the indentation indicator of a block scalar must be from 1 to 9",
    );
    check(
        "a: | b\n  c",
        "1:6 the content of a block scalar must begin on the line after `|` or `>`",
    );
    check(
        "a: |+-\n  c",
        "1:6 the content of a block scalar must begin on the line after",
    );
    check(
        "a: %b",
        "1:4 a value cannot begin with `%`; quote the string",
    );
    check(
        "a: @b",
        "1:4 a value cannot begin with `@`; quote the string",
    );
    check(
        "a: `b",
        "1:4 a value cannot begin with ```; quote the string",
    );
}

#[test]
fn invalid_flow_collections_have_errors() {
    check(
        "a: [b\n",
        "1:4 missing `,` or `]` before the end of the document",
    );
    check("a: [b,\n", "1:4 missing `]` before the end of the document");
    check(
        "a: {b: c\n",
        "1:4 missing `,` or `}` before the end of the document",
    );
    check(
        "a: {b: c,\n",
        "1:4 missing `}` before the end of the document",
    );
    check("['a' 'b']", "1:6 expected `,` or `]`");
    check("{'a': 'b' 'c'}", "1:11 expected `,` or `}`");
    check("[,]", "1:2 expected a value before `,`");
    check("]", "1:1 `]` without a `[` before it");
    check("}", "1:1 `}` without a `{` before it");
    check(
        "[- a]",
        "1:2 a list with `-` is not allowed within `[]` or `{}`",
    );
    check(
        "[|\n a]",
        "1:2 block scalars with `|` are not allowed within `[]` or `{}`; quote the string",
    );
    check(
        "[>\n a]",
        "1:2 block scalars with `>` are not allowed within `[]` or `{}`; quote the string",
    );
}

#[test]
fn invalid_scalars_have_errors() {
    check("a: 'b", "1:4 missing closing `'`");
    check("a: \"b\n c", "1:4 missing closing `\"`");
    check(
        "a: 'b\n---\n'",
        "2:1 missing closing quote before a line that begins with `---` or `...`",
    );
    check(
        "a: \"b\n...\n\"",
        "2:1 missing closing quote before a line that begins with",
    );
    check("a: \"b\\q\"", "1:6 unknown escape sequence `\\q`");
    check(
        "a: \"\\x4\"",
        "1:5 expected 2 hexadecimal digits in this escape sequence",
    );
    check(
        "a: \"\\u004\"",
        "1:5 expected 4 hexadecimal digits in this escape sequence",
    );
    check(
        "a: \"\\U0000004\"",
        "1:5 expected 8 hexadecimal digits in this escape sequence",
    );
    check(
        "a: \"\\ud800\"",
        "1:5 this escape sequence is not a valid Unicode character",
    );
    check(
        "a: .inf",
        "1:4 JSON has no infinite numbers; quote the value if it is a string",
    );
    check("a: 'x' 'y'", "1:8 expected a key at this indentation");
    check(
        "a: \u{7}",
        "1:4 the character U+0007 is not allowed; escape it in double quotes",
    );
}

#[test]
fn invalid_anchors_and_keys_have_errors() {
    let name = "an anchor name can only contain letters, digits, `_` and `-`; quote a string that begins with";
    check("a: *b", "1:4 anchor `&b` is not defined before this alias");
    check("a: * b", &format!("1:5 {name} `*`"));
    check("a: & b", &format!("1:5 {name} `&`"));
    check("a: &b.c 1", &format!("1:6 {name} `&`"));
    check("a: &b [*b]", "1:8 an anchor's value contains itself");
    check("[a]: b", "1:1 a list or an object cannot be a key");
    check(
        "~: b",
        "1:1 null cannot be a key; quote it if it is a string",
    );
    check(
        "18446744073709551615: b",
        "1:1 18446744073709551615 is too large for a key; quote the key",
    );
    check(
        "a: 1\n<<: 5",
        "2:5 `<<` can only merge an object or a list of objects",
    );
    check(
        "<<: [{}, 5]",
        "1:10 `<<` can only merge an object or a list of objects",
    );
}

#[test]
fn key_has_at_most_1024_characters() {
    let key = |n: usize| format!("{}: 1", "k".repeat(n));
    assert!(to_json(&key(1024)).is_ok());
    assert!(to_json(&key(1025)).is_err());
    // The limit counts characters, not bytes.
    assert!(to_json(&key(1024).replace('k', "\u{e9}")).is_ok());
}

#[test]
fn depth_is_limited_to_255() {
    let lists = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let deep = "lists and objects nest more than 255 deep";
    assert!(to_json(&lists(255)).is_ok());
    check(&lists(256), &format!("1:256 {deep}"));
    let blocks = |n: usize| "- ".repeat(n);
    assert!(to_json(&blocks(255)).is_ok());
    assert!(to_json(&blocks(256)).is_err());
    // The depth of an item in an aliased list is the depth of the alias plus the item's depth in that list.
    let alias = |n: usize| {
        format!(
            "a: &a {}\nb: {}*a{}",
            lists(200),
            "[".repeat(n),
            "]".repeat(n)
        )
    };
    assert!(to_json(&alias(54)).is_ok());
    assert!(to_json(&alias(55)).is_err());
    for (open, close) in [("[", "]"), ("{\"a\": ", "}")] {
        let nested = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
        assert!(json::read(&nested(255), 0).is_ok());
        let error = json::read(&nested(256), 0).unwrap_err();
        assert_eq!(error.message, deep);
    }
}

#[test]
fn copies_of_aliases_are_limited_across_documents() {
    let mut copies = Copies::default();
    let text = format!("a: &a {}\nb: [*a, *a]", "x".repeat(3 * 1024 * 1024));
    for _ in 0..2 {
        assert!(read(&text, &mut copies).is_ok());
    }
    let error = read(&text, &mut copies).unwrap_err();
    let expected =
        "aliases expand to more than 100000 nodes or 16 MiB; write the content out instead";
    assert_eq!(error.message, expected);
}

#[track_caller]
fn check_json(text: &str, expected: &str) {
    let error = json::read(text, 0).unwrap_err();
    let actual = format!("{}:{} {}", error.line, error.column, error.message);
    assert_eq!(actual, expected, "{text}");
}

#[test]
fn invalid_json_has_errors() {
    check_json("{\"a\" 1}", "1:6 expected `:`");
    check_json("{\"a\": 1", "1:8 expected `,` or `}`");
    check_json("{\"a\": 1]", "1:8 expected `,` or `}`");
    check_json("[1 2]", "1:4 expected `,` or `]`");
    check_json("[1,\n ]", "2:2 expected a JSON value");
    check_json("{a: 1}", "1:2 expected a name in double quotes");
    check_json("{\"a\": 1,}", "1:9 expected a name in double quotes");
    check_json("nul", "1:1 expected a JSON value");
    check_json("\"a", "1:3 missing closing `\"`");
    check_json(
        "\"a\nb\"",
        "1:3 a JSON string cannot contain control characters or line breaks",
    );
    check_json("\"\\q\"", "1:3 JSON does not support this escape sequence");
    check_json("\"\\u12g4\"", "1:4 expected 4 hexadecimal digits");
    check_json("\"\\u+123\"", "1:4 expected 4 hexadecimal digits");
    for (text, column) in [
        ("-", 2),
        ("-x", 2),
        ("1.", 3),
        ("1.x", 3),
        ("1e", 3),
        ("1e+", 4),
    ] {
        check_json(text, &format!("1:{column} expected a digit"));
    }
}

#[test]
fn json_values_are_read() {
    use serde_json::json;
    for (text, expected, end) in [
        (" null ", json!(null), 5),
        ("true", json!(true), 4),
        ("false,", json!(false), 5),
        ("01", json!(0), 1),
        ("-0", json!(0), 2),
        ("-5", json!(-5), 2),
        ("9223372036854775807", json!(i64::MAX), 19),
        (
            "9223372036854775808",
            json!(9_223_372_036_854_775_808.0_f64),
            19,
        ),
        ("1.5e3", json!(1500), 5),
        ("1E-2", json!(0.01), 4),
        ("2e+1", json!(20), 4),
        ("[]", json!([]), 2),
        ("[ ]", json!([]), 3),
        ("{ }", json!({}), 3),
        ("[1\t,\r\n2]", json!([1, 2]), 8),
        ("{\"a\" : 1, \"b\":{}}", json!({"a": 1, "b": {}}), 17),
        (r#""\"\\\/\b\f\n\r\t""#, json!("\"\\/\u{8}\u{c}\n\r\t"), 18),
        (r#""\u0041\u00e9""#, json!("A\u{e9}"), 14),
        (r#""\ud83d\ude00""#, json!("\u{1f600}"), 14),
        (r#""\udbff\udfff""#, json!("\u{10ffff}"), 14),
        (r#""\ud800\udc00""#, json!("\u{10000}"), 14),
        (r#""\ud83dx""#, json!("\u{fffd}x"), 9),
        (r#""\ud83d\u0041""#, json!("\u{fffd}A"), 14),
        (r#""\ud83d\ud83d\ude00""#, json!("\u{fffd}\u{1f600}"), 20),
        (r#""\ude00\ude00""#, json!("\u{fffd}\u{fffd}"), 14),
    ] {
        let (node, at) = json::read(text, 0).unwrap().unwrap();
        assert_eq!((node.unwrap().to_json(), at), (expected, end), "{text}");
    }
    assert!(json::read(" \t\r\n", 0).unwrap().is_none());
    let (second, end) = json::read("1 [2]", 1).unwrap().unwrap();
    assert_eq!((second.unwrap().span, end), (2..5, 5));
    let (large, end) = json::read("[1, 1e999, 1e400]", 0).unwrap().unwrap();
    let error = large.unwrap_err();
    assert_eq!((error.column, end), (5, 17));
    assert_eq!(error.message, "this number does not fit into 64 bits");
}
