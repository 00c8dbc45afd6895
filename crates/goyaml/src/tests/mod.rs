mod errors;
mod places;
mod values;
mod write;

use serde_json::json;

use super::*;

#[test]
fn yaml_is_converted_to_json_as_in_kubectl() {
    for (text, wanted) in [
        ("", json!(null)),
        ("# nothing", json!(null)),
        (
            "a: yes\nb: 'yes'\nc: !!str yes\nd: ! 5",
            json!({"a": true, "b": "yes", "c": "yes", "d": "5"}),
        ),
        (
            "a: 0777\nb: 1e3\nc: 1.5\nd: 2001-01-01",
            json!({"a": 511, "b": 1000, "c": 1.5, "d": "2001-01-01"}),
        ),
        ("yes: 1\n2: 2\n1.5: 3", json!({"true": 1, "2": 2, "1.5": 3})),
        ("a: 1\na: 2", json!({"a": 2})),
        (
            "x: &x {a: 1, b: 2}\nw: {b: 3, <<: *x}\nz: {<<: *x, b: 3}",
            json!({
                "x": {"a": 1, "b": 2}, "w": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}
            }),
        ),
        ("<<: [{a: 1}, {a: 2, b: 2}]", json!({"a": 1, "b": 2})),
        ("'<<': 1", json!({"<<": 1})),
        ("a: !!binary aGVsbG8=", json!({"a": "hello"})),
        ("a: 1\n...\nb: [", json!({"a": 1})),
        ("{\"a\": [1, null, true]}", json!({"a": [1, null, true]})),
    ] {
        assert_eq!(to_json(text).unwrap(), wanted, "{text}");
    }
}

#[test]
fn conversion_of_invalid_input_fails() {
    for text in [
        "a: [",
        "? [a]\n: b",
        "~: a",
        "a: .inf",
        "<<: 5",
        "a: !!int x",
        "a: &a [*a]",
        "a: *b",
    ] {
        assert!(to_json(text).is_err(), "{text}");
    }
}

#[test]
fn expansion_of_aliases_is_bounded() {
    let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
    for n in 1..20 {
        let items = vec![format!("*a{}", n - 1); 9].join(", ");
        lines.push(format!("a{n}: &a{n} [{items}]"));
    }
    let text = lines.join("\n");
    assert!(to_json(&text).unwrap_err().to_string().contains("line"));

    // Anchored nodes to which no alias refers do not count as copies.
    let nested: Vec<_> = (0..200).map(|n| format!("&a{n} [")).collect();
    let nested = nested.concat();
    let text = format!("{nested}{}{}", "x, ".repeat(100_000), "]".repeat(200));
    assert!(to_json(&text).is_ok());
    let one_more = format!("[{text}, *a0]");
    let error = to_json(&one_more).unwrap_err();
    assert!(error.message.contains("more than"), "{error}");
}

#[test]
fn depth_of_converted_yaml_is_bounded() {
    assert!(to_json(&"[".repeat(100_000)).is_err());
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("[a: ", "]")] {
        // In a flow list, the item `a: 1` is a map, so each item has two levels.
        let levels = if open == "[a: " { 2 } else { 1 };
        let nested = |n: usize| to_json(&format!("{}1{}", open.repeat(n), close.repeat(n)));
        let max = 255 / levels;
        assert!(nested(max).is_ok(), "{open}");
        assert!(nested(max + 1).is_err(), "{open}");
    }
}

#[test]
fn nodes_and_keys_have_spans() {
    let text = "a: 1\nb: {c: [x, 'y']}\na: &t |\n  text\nd: *t\n";
    let node = read(text, &mut Copies::default()).unwrap().unwrap();
    let slice = |node: &Node| text.get(node.span.clone()).unwrap().trim_end().to_owned();
    assert_eq!(slice(node.nearest("b.c[1]")), "'y'");
    assert_eq!(slice(node.nearest("b.c[7].x")), "[x, 'y']");
    assert_eq!(slice(node.get("a").unwrap()), "text");
    assert_eq!(node.get("d").unwrap().span, node.get("a").unwrap().span);
    assert_eq!(node.entry("a").unwrap().repeats, vec![0..1]);
    assert_eq!(node.entry("b").unwrap().key, 5..6);
}

#[test]
fn key_that_overrides_merged_entry_is_not_a_duplicate() {
    let text = "x: &x {b: 1}\nz: {<<: *x, b: 3, c: 1, c: 2}";
    let node = read(text, &mut Copies::default()).unwrap();
    let z = node.unwrap().get("z").unwrap().clone();
    assert!(z.entry("b").unwrap().repeats.is_empty());
    assert_eq!(z.entry("c").unwrap().repeats.len(), 1);
}
