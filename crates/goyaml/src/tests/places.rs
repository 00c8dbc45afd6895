//! Tests of node spans, and of the positions of characters in scalars.

use serde_json::json;

use crate::{Copies, Data, Entry, Node, Style, json as json_text, read, written};

fn node(text: &str) -> Node {
    read(text, &mut Copies::default()).unwrap().unwrap()
}

/// Asserts the style of the scalar in the field `a`, and the byte index of each of its characters.
#[track_caller]
fn check(text: &str, style: Style, expected: &[usize]) {
    let root = node(text);
    let node = root.get("a").unwrap();
    let Data::Scalar(value, actual) = &node.data else {
        panic!("{node:?}");
    };
    assert_eq!(*actual, style, "{text}");
    let value = value.as_str().unwrap();
    assert_eq!(
        written(text, node.span.clone(), style, value),
        expected,
        "{text}"
    );
    assert_eq!(value.chars().count(), expected.len(), "{text}");
}

#[test]
fn each_character_of_a_scalar_has_a_position() {
    check("a: bcd\n", Style::Plain, &[3, 4, 5]);
    check("a: b\n  c\n", Style::Plain, &[3, 4, 7]);
    check("a: b\n\n  c\n", Style::Plain, &[3, 5, 8]);
    check("a: b  c\n", Style::Plain, &[3, 4, 5, 6]);
    check("a: \u{e9}b\n", Style::Plain, &[3, 5]);
    check("a: 'b''c'\n", Style::SingleQuoted, &[4, 5, 7]);
    check(
        "a: \"b\\nc\\x41d\"\n",
        Style::DoubleQuoted,
        &[4, 5, 7, 8, 12],
    );
    check("a: \"b\n c\"\n", Style::DoubleQuoted, &[4, 5, 7]);
    check(
        "a: |\n  bc\n  d\n",
        Style::Literal { indent: 2 },
        &[7, 8, 9, 12, 13],
    );
    check(
        "a: |-\n  b\n\n  c\n",
        Style::Literal { indent: 2 },
        &[8, 9, 10, 13],
    );
    check(
        "a: >\n   b\n   c\n",
        Style::Folded { indent: 3 },
        &[8, 9, 13, 14],
    );
}

#[test]
fn scalar_with_another_value_has_no_positions() {
    assert_eq!(written("a: bcd\n", 3..6, Style::Plain, "bcd"), [3, 4, 5]);
    assert_eq!(written("a: bcd\n", 3..6, Style::Plain, "bxd"), [0_usize; 0]);
    assert_eq!(
        written("\"b\\u0041\\n\"", 0..11, Style::Json, "bA\n"),
        [1, 2, 8]
    );
    assert_eq!(
        written("x\"\\ud83d\\ude00b\"", 1..16, Style::Json, "\u{1f600}b"),
        [2, 14]
    );
}

#[test]
fn json_nodes_have_style_and_span() {
    let (node, _) = json_text::read("{\"a\": \"b\", \"a\": 5}", 0)
        .unwrap()
        .unwrap();
    let node = node.unwrap();
    let entry = node.entry("a").unwrap();
    assert_eq!(entry.key, 11..14);
    assert_eq!(entry.repeats.len(), 1);
    assert_eq!(entry.repeats[0], 1..4);
    assert_eq!(entry.node.span, 16..17);
    assert_eq!(entry.node.data, Data::Scalar(json!(5), Style::Plain));
}

#[test]
fn accessors_return_parts_of_nodes() {
    let mut root = node("b: [x, ~]\na: {c: 1}\nd: ''\n");
    let names: Vec<&str> = root.entries().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b", "d"]);
    let list = root.get("b").unwrap();
    assert_eq!(list.items().len(), 2);
    assert_eq!(list.items()[0].as_str(), Some("x"));
    assert!(list.items()[1].is_null() && !list.items()[0].is_null());
    assert!(
        list.entries().next().is_none() && list.entry("a").is_none() && list.as_str().is_none()
    );
    assert!(root.items().is_empty() && root.get("c").is_none());
    assert_eq!(root.get("d").unwrap().as_str(), Some(""));
    assert_eq!(root.nearest("b[0]").as_str(), Some("x"));
    assert_eq!(root.nearest("b[2]"), root.get("b").unwrap());
    assert_eq!(root.nearest("a.x.y"), root.get("a").unwrap());
    assert_eq!(root.nearest("x"), &root);

    root.set_text("d", "new");
    root.set_text("aa", "added");
    assert_eq!(
        root.to_json(),
        json!({"a": {"c": 1}, "aa": "added", "b": ["x", null], "d": "new"})
    );
    let names: Vec<&str> = root.entries().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "aa", "b", "d"]);
    assert_eq!(root.get("aa").unwrap().span, 0..0);
    let mut scalar = node("5");
    scalar.set_text("a", "b");
    assert_eq!(scalar.to_json(), json!(5));
    if let Data::Map(entries) = &mut root.data {
        assert!(entries.remove("aa").is_some() && entries.remove("aa").is_none());
        assert!(entries.get("aa").is_none() && entries.get("b").is_some());
    }
    let entry = |span: std::ops::Range<usize>| {
        Entry::new(
            span.clone(),
            Node {
                span,
                data: Data::List(Vec::new()),
            },
        )
    };
    let built = Node::from_entries(1..9, [("z", entry(2..3)), ("y", entry(4..5))]);
    assert_eq!(built.span, 1..9);
    assert_eq!(built.to_json(), json!({"y": [], "z": []}));
    assert_eq!(built.get("z").unwrap().span, 2..3);
}

#[test]
fn entries_record_duplicate_and_merged_keys() {
    let root = node("a: 1\n<<: {a: 2, b: 3}\nb: 4\na: 5\n");
    let a = root.entry("a").unwrap();
    assert_eq!(a.node.to_json(), json!(5));
    assert_eq!(a.key, 27..28);
    assert_eq!(a.merged, [0..1, 10..11]);
    let b = root.entry("b").unwrap();
    assert_eq!(b.node.to_json(), json!(4));
    assert_eq!(b.merged.len(), 1);
    assert_eq!(b.merged[0], 16..17);
    assert!(b.repeats.is_empty());
}

#[test]
fn spans_cover_written_values() {
    let text = "a: [x, {y: 1}]\nb:\n  c: 'd'\n  e: |\n    f\n    g\nh:\n- i\n-\nj: {k: [l]}\n";
    let root = node(text);
    let slice = |path: &str| text.get(root.nearest(path).span.clone()).unwrap();
    for (path, expected) in [
        ("a", "[x, {y: 1}]"),
        ("a[0]", "x"),
        ("a[1]", "{y: 1}"),
        ("b.c", "'d'"),
        ("b", "c: 'd'\n  e: |\n    f\n    g"),
        ("b.e", "f\n    g"),
        ("h[0]", "i"),
        ("h[1]", ""),
        ("j.k", "[l]"),
    ] {
        assert_eq!(slice(path), expected, "{path}");
    }
}
