//! Tests the values of valid documents.

use serde_json::{Value, json};

use crate::to_json;

#[track_caller]
fn check(text: &str, expected: &Value) {
    assert_eq!(to_json(text).as_ref(), Ok(expected), "{text}");
}

#[test]
fn directives_define_tag_handles() {
    check("%YAML 1.1\n---\na: 1", &json!({"a": 1}));
    check("%YAML 1.1 # comment\n--- # comment\na: 1", &json!({"a": 1}));
    check(
        "%TAG !y! tag:yaml.org,2002:\n---\na: !y!str 5",
        &json!({"a": "5"}),
    );
    check(
        "%TAG ! tag:yaml.org,2002:\n---\na: !int \"5\"",
        &json!({"a": 5}),
    );
    check(
        "%TAG !! tag:example.com,2000:\n---\na: !!int x",
        &json!({"a": "x"}),
    );
    check(
        "%TAG !e! tag:example.com,2000:\n%YAML 1.1\n---\na: !e!x b",
        &json!({"a": "b"}),
    );
    check(
        "%TAG !y! tag:yaml.org,\n---\na: !y!2002:str 5",
        &json!({"a": "5"}),
    );
    check("--- !!str\n...", &json!(""));
    check("%YAML 1.1\n---\n", &json!(null));
    check("---\n---\na: 1", &json!(null));
    check("--- 5\n--- 6", &json!(5));
}

#[test]
fn tags_determine_types() {
    check("!<tag:yaml.org,2002:str> 5", &json!("5"));
    check("!<tag:yaml.org,2002:i%6et> 5", &json!(5));
    check("!!%73tr 5", &json!("5"));
    check(
        "[!!str 5, ! 6, !x 7, !!float 8]",
        &json!(["5", "6", "7", 8]),
    );
    check("!local%C3%A9 5", &json!("5"));
    check("!%E2%82%AC%F0%9F%98%80 5", &json!("5"));
    check("!a;/?:@&=+$,.!~*'()[]b 5", &json!("5"));
    check("!!str", &json!(""));
    check(
        "a: !!null ''\nb: !!bool 'yes'\nc: !!float 1.5",
        &json!({"a": null, "b": true, "c": 1.5}),
    );
    check(
        "a: !!str &x 1\nb: &y !!str 2\nc: [*x, *y]",
        &json!({"a": "1", "b": "2", "c": ["1", "2"]}),
    );
    check("!!map {a: !!seq [b]}", &json!({"a": ["b"]}));
    check("!!merge <<: {a: 1}", &json!({"a": 1}));
    check("!!str <<: {a: 1}", &json!({"<<": {"a": 1}}));
    check("{a: !!str , b: 1}", &json!({"a": "", "b": 1}));
}

#[test]
fn flow_collections_allow_omitted_parts() {
    check("[]", &json!([]));
    check("{}", &json!({}));
    check("[a, b,]", &json!(["a", "b"]));
    check("{a: 1, b: 2,}", &json!({"a": 1, "b": 2}));
    check("{a, b: , c: 1}", &json!({"a": null, "b": null, "c": 1}));
    check("[a: 1, b]", &json!([{"a": 1}, "b"]));
    check("[a: , b: 1]", &json!([{"a": null}, {"b": 1}]));
    check("[? a : 1, ? b]", &json!([{"a": 1}, {"b": null}]));
    check(
        "{? a : 1, ? b, ? c : }",
        &json!({"a": 1, "b": null, "c": null}),
    );
    check("{\"a\":1, 'b':2}", &json!({"a": 1, "b": 2}));
    check("[[a], {b: [c]}]", &json!([["a"], {"b": ["c"]}]));
    check("[a\n  b, 'c\n\n  d']", &json!(["a b", "c\nd"]));
    check("[\ta,\tb\t]", &json!(["a", "b"]));
    check("[a # comment\n, b]", &json!(["a", "b"]));
}

#[test]
fn block_collections_allow_omitted_parts() {
    check("-\n- a\n-", &json!([null, "a", null]));
    check("a:\nb:", &json!({"a": null, "b": null}));
    check(
        "a:\n-\n- b\n-\nc: d",
        &json!({"a": [null, "b", null], "c": "d"}),
    );
    check(
        "a:\n- b\n-\nc:\n- d",
        &json!({"a": ["b", null], "c": ["d"]}),
    );
    check("? a\n? b\n: c", &json!({"a": null, "b": "c"}));
    check("? a\n: - b\n  - c", &json!({"a": ["b", "c"]}));
    check("- - a\n  - b\n- - - c", &json!([["a", "b"], [["c"]]]));
    check(
        "- a: 1\n  b: 2\n- c: 3",
        &json!([{"a": 1, "b": 2}, {"c": 3}]),
    );
    check("a: &x\nb: 1", &json!({"a": null, "b": 1}));
    check(
        "a: &x\n  c: 1\nb: *x",
        &json!({"a": {"c": 1}, "b": {"c": 1}}),
    );
    check("? |\n  k\n: v", &json!({"k\n": "v"}));
    check("&k a: 1\n*k : 2", &json!({"a": 2}));
    check("a:\n  - b\nc: d", &json!({"a": ["b"], "c": "d"}));
}

#[test]
fn plain_scalars_are_folded() {
    check("a: b\n  c\n\n  d\n\n\n  e", &json!({"a": "b c\nd\n\ne"}));
    check("a: b #c\nd: e#f", &json!({"a": "b", "d": "e#f"}));
    check("a: b:c ::d -e ?f", &json!({"a": "b:c ::d -e ?f"}));
    check(
        "a: -b\nc: ?d\ne: :f",
        &json!({"a": "-b", "c": "?d", "e": ":f"}),
    );
    check("a: b\u{2028}  c", &json!({"a": "b\u{2028}c"}));
    check("a: b\u{85}  c", &json!({"a": "b c"}));
    check("a: b\r\n  c\rd: 1", &json!({"a": "b c", "d": 1}));
    check("a: b\r\r\n  c", &json!({"a": "b c"}));
    check("a: [b, c d]", &json!({"a": ["b", "c d"]}));
    check("a: b, c] }", &json!({"a": "b, c] }"}));
    check("a\u{e9}: \u{1f600}", &json!({"a\u{e9}": "\u{1f600}"}));
    check("a: b\n ...c", &json!({"a": "b ...c"}));
    check("a: b\n---c: d", &json!({"a": "b", "---c": "d"}));
    check("a: b  \t\n", &json!({"a": "b"}));
}

#[test]
fn quoted_scalars_are_decoded() {
    check("'it''s'", &json!("it's"));
    check("''", &json!(""));
    check("\"\"", &json!(""));
    check("'a\\n\"'", &json!("a\\n\""));
    check("\"it's ''\"", &json!("it's ''"));
    check(
        r#""\0\a\b\t\n\v\f\r\e\ \"\'\\\N\_\L\P""#,
        &json!("\0\u{7}\u{8}\t\n\u{b}\u{c}\r\u{1b} \"'\\\u{85}\u{a0}\u{2028}\u{2029}"),
    );
    check("\"a\\\tb\"", &json!("a\tb"));
    check(r#""\x41\u00e9\U0001F600""#, &json!("A\u{e9}\u{1f600}"));
    check("\"a\n  b\n\n  c\"", &json!("a b\nc"));
    check("\"a \\\n  b\"", &json!("a b"));
    check("\"a\\\n\n  b\"", &json!("a\nb"));
    check("'a  \n  b'", &json!("a b"));
    check("\"a\u{2029}  b\"", &json!("a\u{2029}b"));
    check("' a '", &json!(" a "));
    check("'a: b': 1\n\"c\": 2", &json!({"a: b": 1, "c": 2}));
}

#[test]
fn block_scalars_are_chomped_and_folded() {
    check("a: |\n  b\n   c\n\n  d\n\n", &json!({"a": "b\n c\n\nd\n"}));
    check("a: |-\n  b\n\n", &json!({"a": "b"}));
    check("a: |+\n  b\n\n", &json!({"a": "b\n\n"}));
    check("a: |+\n\nb: 1", &json!({"a": "\n", "b": 1}));
    check("a: |\n\nb: 1", &json!({"a": "", "b": 1}));
    check(
        "a: >\n  b\n  c\n\n  d\n   e\n  f\n",
        &json!({"a": "b c\nd\n e\nf\n"}),
    );
    check("a: >\n\n  b\n\n\n  c\n", &json!({"a": "\nb\n\nc\n"}));
    check("a: |2\n   b\n  c\n", &json!({"a": " b\nc\n"}));
    check("a: |1-\n   b\n", &json!({"a": "  b"}));
    check("a: |-1\n   b\n", &json!({"a": "  b"}));
    check("a: >+2 # comment\n   b\n\n", &json!({"a": " b\n\n"}));
    check("a: >2+\n   b\n\n", &json!({"a": " b\n\n"}));
    check("- |9\n          b\n", &json!([" b\n"]));
    check("|\n a\n", &json!("a\n"));
    check("|1\n  a\n", &json!(" a\n"));
    check("a: |\n  b\u{2028}  c\n", &json!({"a": "b\u{2028}c\n"}));
    check("a: >\n  b\u{2029}  c\n", &json!({"a": "b\u{2029}c\n"}));
    check("a: |\n  b\r\n  c\r\n", &json!({"a": "b\nc\n"}));
    check("a: |\n  b\n # comment\nc: 1", &json!({"a": "b\n", "c": 1}));
    check("a: |\n  \u{e9}\n  \tb\n", &json!({"a": "\u{e9}\n\tb\n"}));
}

#[test]
fn earlier_map_in_merge_key_list_takes_precedence() {
    check(
        "a: &a {x: 1, v: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], z: 3}",
        &json!({"a": {"x": 1, "v": 1}, "b": {"x": 2, "z": 2}, "c": {"x": 1, "v": 1, "z": 3}}),
    );
    check(
        "<<: {a: 1, <<: {b: 2}}\nc: 3",
        &json!({"a": 1, "b": 2, "c": 3}),
    );
    check("a: &a {x: 1}\n<<: *a", &json!({"a": {"x": 1}, "x": 1}));
}

#[test]
fn keys_of_other_types_are_converted_to_strings() {
    check("'null': 1", &json!({"null": 1}));
    check("yes: 1\nno: 2", &json!({"true": 1, "false": 2}));
    check(
        "010: 1\n1_000: 2\n1e3: 3\n-.5: 4",
        &json!({"8": 1, "1000": 3, "-0.5": 4}),
    );
    check(
        ".inf: 1\n-.inf: 2\n.nan: 3",
        &json!({".inf": 1, "-.inf": 2, ".nan": 3}),
    );
    check("!!str 1: a\n!!int '2': b", &json!({"1": "a", "2": "b"}));
    check("2001-01-01: a", &json!({"2001-01-01": "a"}));
}

#[test]
fn byte_order_mark_is_skipped() {
    check("\u{feff}a: 1", &json!({"a": 1}));
    check("\u{feff}", &json!(null));
}
