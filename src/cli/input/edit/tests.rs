//! Tests of edits.

use super::*;
use crate::cli::input::object::documents;
use goyaml::Copies;

fn object(text: &str) -> Object<()> {
    let source = Arc::new(SourceText::new("f".to_owned(), text.to_owned()));
    let mut documents_read = Vec::new();
    documents(&source, &mut Copies::default(), &mut |it| {
        documents_read.extend(it.ok());
    });
    Object::new(documents_read.pop().unwrap(), &source, ())
}

/// Checks the content of a file after the value of `a` is replaced with `new`.
#[track_caller]
fn check_value(text: &str, new: &str, wanted: Option<&str>) {
    let object = object(text);
    let node = object.document.node.get("a").unwrap();
    let edit = object.document.edit_value(&object.source, node, new);
    let edit = edit.filter(Edit::changes_one_value);
    let edited = edit.and_then(|edit| edit.applied());
    assert_eq!(edited.as_deref(), wanted);
}

#[test]
fn edited_value_keeps_its_style() {
    check_value("a: core # x\nb: 1", "", Some("a: \"\" # x\nb: 1"));
    check_value("a: core", "true", Some("a: \"true\""));
    check_value("a: core", "apps", Some("a: apps"));
    check_value("{a: 'co''re', b: 1}", "x'y", Some("{a: 'x''y', b: 1}"));
    check_value("a: \"c\\u006fre\"", "x\"\\y", Some("a: \"x\\\"\\\\y\""));
    check_value("{\"a\": \"core\"}", "\"", Some("{\"a\": \"\\\"\"}"));
    check_value("a: |-\n  core\nb: 1", "apps", Some("a: |-\n  apps\nb: 1"));
    check_value("a: >\n\n  core\n", "apps", Some("a: >\n\n  apps\n"));
    check_value("a: &x !!str core\r\n", "apps", Some("a: &x !!str apps\r\n"));
    check_value(
        "b: 1\n---\na: x\n---\nc: [\n",
        "apps",
        Some("b: 1\n---\na: apps\n---\nc: [\n"),
    );
}

#[test]
fn edit_is_rejected_if_it_changes_nothing_or_more_than_the_value() {
    check_value("a: |\n  core\n  b\n", "apps", None);
    check_value("a: |-\n  core\n", "", None);
    check_value("a: &x core\nb: *x", "apps", None);
    check_value("b: &x core\na: *x", "apps", None);
    check_value("a: core", "core", None);
    check_value("a: core", "x\ny", None);
}

#[test]
fn value_split_into_items_keeps_style_of_list() {
    for (text, wanted) in [
        ("a: [\"A,B\", C]", Some("a: [\"A\", \"B\", C]")),
        ("a: ['A B']", Some("a: ['A', 'B']")),
        ("{\"a\":[\"A,B\"]}", Some("{\"a\":[\"A\", \"B\"]}")),
        ("a:\n- A,B # x\nb: 1", Some("a:\n- A\n- B # x\nb: 1")),
        ("a:\r\n  - A,B\r\n", Some("a:\r\n  - A\r\n  - B\r\n")),
        ("a:\n- |\n  A,B\n", None),
        ("a: [&x \"A,B\"]\nb: *x", None),
    ] {
        let object = object(text);
        let node = &object.document.node.get("a").unwrap().items()[0];
        let document = &object.document;
        let edit = document.edit_into_items(&object.source, node, &["A", "B"]);
        let edited = edit.and_then(|edit| edit.applied());
        assert_eq!(edited.as_deref(), wanted, "{text}");
    }
}

/// Checks the content of a file after `wrong` in the value of `a` is replaced with `right`.
#[track_caller]
fn check_text(text: &str, wrong: &str, right: &str, wanted: Option<&str>) {
    let object = object(text);
    let value = object.document.node.get("a").unwrap().as_str().unwrap();
    let at = value.find(wrong).unwrap();
    let start = value.get(..at).unwrap().chars().count();
    let part = start..start + wrong.chars().count();
    let edit = object.edit_text("a", part, right);
    let edit = edit.filter(Edit::changes_one_value);
    let edited = edit.and_then(|edit| edit.applied());
    assert_eq!(edited.as_deref(), wanted);
}

#[test]
fn edited_text_keeps_its_style() {
    check_text("a: x == b  # c", "b", "c", Some("a: x == c  # c"));
    check_text("a: é\n    b", "b", "c", Some("a: é\n    c"));
    check_text(
        "a: x\n    b\n\n    y",
        "b",
        "c",
        Some("a: x\n    c\n\n    y"),
    );
    check_text("a: 'x ''b'' y'", "'b'", "'c'", Some("a: 'x ''c'' y'"));
    check_text(
        "a: \"x \\\"\\u0062\\\"\"",
        "\"b\"",
        "\"c\"",
        Some("a: \"x \\\"c\\\"\""),
    );
    check_text("a: \"x \\x62 y\"", "b", "c", Some("a: \"x c y\""));
    check_text("a: \"x b\\\n   b y\"", "bb", "c", Some("a: \"x c y\""));
    check_text("a: \"x \\U0001f600 y\"", "😀", "c", Some("a: \"x c y\""));
    check_text(
        "{\"a\": \"x \\ud83d\\ude00 y\"}",
        "😀",
        "c",
        Some("{\"a\": \"x c y\"}"),
    );
    check_text(
        "a: |2-\n    x\n  b\n",
        "b",
        "c",
        Some("a: |2-\n    x\n  c\n"),
    );
    check_text(
        "a: |\n  x\n    b\n\n  y\nb: 1",
        "x\n  b\n\ny",
        "c\n  d\n\ne",
        Some("a: |\n  c\n    d\n\n  e\nb: 1"),
    );
    check_text("a: >\n  x\n    b\n  y\n", "x\n  b\ny", "c\nd", None);
    check_text("a: >\n  x\n  b y\n", "b", "c", Some("a: >\n  x\n  c y\n"));
    check_text("a: x == b", "b", "c # d", Some("a: \"x == c # d\""));
    check_text("a: [x]\n---\na: &y b\nb: *y", "b", "c", None);
}

#[test]
fn edited_key_keeps_its_style() {
    for (text, wanted) in [
        ("a: 1\nb: 2", Some("x: 1\nb: 2")),
        ("{'a': 1, b: 2}", Some("{'x': 1, b: 2}")),
        ("{\"a\": [1]}", Some("{\"x\": [1]}")),
        ("? a\n: 1", Some("? x\n: 1")),
        ("a: 1\nx: 2", None),
        ("q: &q {a: 1}\nz: *q", None),
    ] {
        let object = object(text);
        let root = &object.document.node;
        let entry = root
            .entry("a")
            .or_else(|| root.get("q")?.entry("a"))
            .unwrap();
        let edit = object
            .document
            .edit_key(&object.source, &entry.key, "x")
            .unwrap();
        let edit = Some(edit).filter(Edit::changes_one_value);
        assert_eq!(edit.and_then(|edit| edit.applied()).as_deref(), wanted);
    }
}

#[test]
fn list_becomes_field_of_object() {
    for (text, wanted) in [
        (
            "a:\n- x: 1\n  y: 2\n\n- x: 3\nb: 1\n",
            "a:\n  c:\n  - x: 1\n    y: 2\n\n  - x: 3\nb: 1\n",
        ),
        (
            "a:\n  - x: 1\n  # y\nb: 1\n",
            "a:\n  c:\n  - x: 1\n  # y\nb: 1\n",
        ),
        ("a: [{x: 1}]\n", "a: {c: [{x: 1}]}\n"),
        ("{\"a\":[1]}", "{\"a\":{\"c\": [1]}}"),
    ] {
        let object = object(text);
        let node = object.document.node.get("a").unwrap();
        let edit = object.document.edit_into_field(&object.source, node, "c");
        let edit = edit.unwrap();
        let edited = edit.applied().unwrap();
        assert_eq!(edited, wanted);
        let replaced = edit.bytes.start..edit.bytes.start + edit.text.len();
        for (byte, c) in edited
            .char_indices()
            .filter(|(byte, c)| replaced.contains(byte) && "x123".contains(*c))
        {
            let before = edit.byte_before(byte - edit.bytes.start);
            assert_eq!(text.get(before..=before), Some(&*c.to_string()), "{text}");
        }
    }
}
