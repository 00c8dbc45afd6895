use serde_json::{Value, json};

use super::*;

fn policy(name: &str, labels: &Value) -> ObjectMeta {
    serde_json::from_value(json!({"name": name, "labels": labels})).unwrap()
}

#[test]
fn name_pattern_with_wildcard_matches_names() {
    for (pattern, name, expect) in [
        ("a.example.com", "a.example.com", true),
        ("a.example.com", "aa.example.com", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "example.com", false),
        ("gke-*", "gke-", true),
        ("gke-*", "egke-a", false),
        ("a*b*c", "abbc", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("*", "anything", true),
    ] {
        let pattern: NamePattern = pattern.parse().unwrap();
        assert_eq!(pattern.matches(name), expect, "{pattern} {name}");
    }
    assert!("a b".parse::<NamePattern>().is_err());
    let none = Exclusion::new(&["".parse().unwrap()], Some(&"".parse().unwrap()));
    assert_eq!(none, Exclusion::default());
    assert!(!none.excludes(&policy("", &json!({}))));
}

#[test]
fn label_pattern_accepts_kubectl_syntax() {
    let vendor = json!({"vendor": "a", "tier": "x"});
    for (selector, labels, expect) in [
        ("vendor=a", &vendor, true),
        ("vendor==a,tier=x", &vendor, true),
        ("vendor=a,tier=y", &vendor, false),
        ("vendor!=a", &vendor, false),
        ("vendor!=a", &json!({}), true),
        ("vendor in (b, a)", &vendor, true),
        ("vendor in (b),tier", &vendor, false),
        ("vendor notin (b,c), tier", &vendor, true),
        ("!vendor", &vendor, false),
        ("!other", &vendor, true),
        (
            "example.com/vendor",
            &json!({"example.com/vendor": ""}),
            true,
        ),
    ] {
        let selector: LabelPattern = selector.parse().unwrap();
        let exclusion = Exclusion::new(&[], Some(&selector));
        let is_excluded = exclusion.excludes(&policy("p", labels));
        assert_eq!(is_excluded, expect, "{selector:?} {labels}");
    }
    for text in [
        "a b",
        "a in b",
        "a in (b",
        "a within (b)",
        ",",
        "a=b c",
        "-a",
    ] {
        let error = text.parse::<LabelPattern>().unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn exclusion_round_trips_through_annotations() {
    let exclusion = Exclusion::new(
        &["gke-*".parse().unwrap(), "b".parse().unwrap()],
        Some(&" vendor in (x, y) ".parse().unwrap()),
    );
    let mut annotations = BTreeMap::from([("other".to_owned(), "kept".to_owned())]);
    exclusion.annotate(&mut annotations);
    let expect = [
        ("other", "kept"),
        (NAMES_ANNOTATION, "gke-*,b"),
        (SELECTOR_ANNOTATION, "vendor in (x, y)"),
    ];
    let expect = expect.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(annotations, BTreeMap::from(expect));
    assert_eq!(Exclusion::from_annotations(&annotations), exclusion);

    // A leader without an exclusion removes the annotations of the previous leader.
    Exclusion::default().annotate(&mut annotations);
    assert_eq!(annotations.len(), 1);
    let invalid = [(NAMES_ANNOTATION, "a b"), (SELECTOR_ANNOTATION, "a b")];
    let invalid = invalid.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let invalid = Exclusion::from_annotations(&BTreeMap::from(invalid));
    assert_eq!(invalid, Exclusion::default());
}
