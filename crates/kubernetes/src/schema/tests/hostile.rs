//! Tests of hostile schemas, which could cause a crash or consume too much time or memory. Each test must quickly
//! return a type or an error.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::*;
use crate::schema::sizes;

/// The maximum time of a conversion, sufficient for a debug build on a busy machine. Some cases would take years if
/// types were not shared.
const LONG: Duration = Duration::from_secs(20);

/// Returns a document with schemas named `s0`, `s1` and so on. `s0` describes the kind `Test`.
fn document_of(bodies: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut text = String::from(
        r##"{"components":{"schemas":{"root":{"$ref":"#/components/schemas/s0",
        "x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Test"}]}"##,
    );
    for (n, body) in bodies.into_iter().enumerate() {
        write!(text, r#","s{n}":{body}"#).unwrap();
    }
    text.push_str("}}}");
    text.into_bytes()
}

fn to(n: usize) -> String {
    format!(r##"{{"$ref":"#/components/schemas/s{n}"}}"##)
}

/// Returns the type of `Test`. Asserts that parsing, converting and formatting the type takes little time.
#[track_caller]
fn timed(text: &[u8]) -> Result<Arc<DeclType>, SchemaError> {
    let start = Instant::now();
    let result = OpenApiDocument::parse(text)?.decl_type(&Gvk::new("", "v1", "Test"));
    let written = format!("{result:?}");
    assert!(written.len() < 1000, "{written}");
    let taken = start.elapsed();
    assert!(taken < LONG, "{taken:?}");
    result
}

#[test]
fn schema_with_exponentially_many_paths_is_converted() {
    // Each schema refers to the next schema twice, so there are 2^100 paths, but only 101 types.
    let body = |n: usize| match n {
        100 => r#"{"type":"string"}"#.into(),
        n => {
            let next = to(n + 1);
            format!(
                r#"{{"type":"object","properties":{{"a":{next},"b":{next}}},"required":["a"]}}"#
            )
        }
    };
    let type_ = timed(&document_of((0..=100).map(body))).unwrap();
    assert_eq!(type_.depth(), 101);
    assert!(Arc::ptr_eq(
        &type_.field("a").unwrap().type_,
        &type_.field("b").unwrap().type_
    ));
    check(&type_, &["a"; 100].join("."), "string");
}

#[test]
fn long_reference_chain_is_too_deep() {
    let n = 100_000;
    let body = |i: usize| match i + 1 {
        last if last == n => r#"{"type":"string"}"#.into(),
        next => format!(r#"{{"type":"object","properties":{{"a":{}}}}}"#, to(next)),
    };
    assert_eq!(
        timed(&document_of((0..n).map(body))).unwrap_err(),
        SchemaError::TooDeep
    );
}

#[test]
fn long_reference_cycle_is_an_error() {
    let n = 5_000;
    let body = |i: usize| format!(r#"{{"type":"array","items":{}}}"#, to((i + 1) % n));
    let error = timed(&document_of((0..n).map(body))).unwrap_err();
    assert!(
        matches!(error, SchemaError::TooDeep | SchemaError::TooComplex),
        "{error}"
    );
}

#[test]
fn depth_limit_applies_across_references() {
    let chain = |n: usize| {
        let body = move |i: usize| match i + 1 {
            last if last == n => r#"{"type":"string"}"#.into(),
            next => format!(r#"{{"type":"object","properties":{{"a":{}}}}}"#, to(next)),
        };
        document_of((0..n).map(body))
    };
    let max = usize::from(sizes::MAX_DEPTH);
    assert_eq!(timed(&chain(max)).unwrap().depth(), sizes::MAX_DEPTH);
    assert_eq!(timed(&chain(max + 1)).unwrap_err(), SchemaError::TooDeep);
}

#[test]
fn many_schemas_that_all_refer_to_each_other_are_too_complex() {
    let n = 40;
    let body = |_: usize| {
        let properties: Vec<_> = (0..n)
            .map(|to_| format!(r#""p{to_}":{}"#, to(to_)))
            .collect();
        format!(
            r#"{{"type":"object","properties":{{{}}}}}"#,
            properties.join(",")
        )
    };
    assert_eq!(
        timed(&document_of((0..n).map(body))).unwrap_err(),
        SchemaError::TooComplex
    );
}

#[test]
fn few_schemas_that_all_refer_to_each_other_are_expanded() {
    let n = 6;
    let body = |_: usize| {
        let properties: Vec<_> = (0..n)
            .map(|to_| format!(r#""p{to_}":{}"#, to(to_)))
            .collect();
        format!(
            r#"{{"type":"object","properties":{{{}}}}}"#,
            properties.join(",")
        )
    };
    let type_ = timed(&document_of((0..n).map(body))).unwrap();
    check(&type_, "p1.p2.p3.p4.p5", "Test#.p1.p2.p3.p4.p5");
    check(&type_, "p1.p2.p3.p4.p5.p1.p2", "undefined");
    check(&type_, "p1.p2.p1.p3", "undefined");
}

#[test]
fn deep_schema_affects_only_itself() {
    let deep = |levels: usize| {
        let (open, close) = (
            r#"{"type":"array","items":"#.repeat(levels),
            "}".repeat(levels),
        );
        format!("{open}{{}}{close}")
    };
    for levels in [200, 200_000] {
        let text = format!(
            r#"{{"components":{{"schemas":{{
            "deep":{{"x-kubernetes-group-version-kind":
                [{{"group":"","version":"v1","kind":"Deep"}}],"items":{}}},
            "good":{{"x-kubernetes-group-version-kind":
                [{{"group":"","version":"v1","kind":"Test"}}],"type":"string"}}}}}}}}"#,
            deep(levels)
        );
        check(&timed(text.as_bytes()).unwrap(), "", "string");
        let document = OpenApiDocument::parse(text.as_bytes()).unwrap();
        let error = document.decl_type(&Gvk::new("", "v1", "Deep")).unwrap_err();
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }
}

#[test]
fn document_with_too_many_schemas_is_an_error() {
    let mut text = String::from(r#"{"components":{"schemas":{"a":{"properties":{"#);
    for n in 0..=sizes::MAX_SCHEMAS {
        write!(text, r#""{n}":{{}},"#).unwrap();
    }
    text.push_str(r#""last":{}}}}}}"#);
    let error = OpenApiDocument::parse(text.as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("more than 500000 schemas"),
        "{error}"
    );
}

#[test]
fn object_with_many_required_properties_is_converted() {
    let names: Vec<_> = (0..50_000).map(|n| format!("p{n}")).collect();
    let properties: Vec<_> = names
        .iter()
        .map(|n| format!(r#""{n}":{{"type":"string"}}"#))
        .collect();
    let required: Vec<_> = names.iter().map(|n| format!(r#""{n}""#)).collect();
    let body = format!(
        r#"{{"type":"object","properties":{{{}}},"required":[{}]}}"#,
        properties.join(","),
        required.join(",")
    );
    let type_ = timed(&document_of([body])).unwrap();
    assert_eq!(type_.declared_fields().len(), 50_003);
    assert!(type_.field("p49999").unwrap().required);
}
