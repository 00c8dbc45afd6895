//! Tests hostile policies and schemas. Each must result in a finding or an unknown result. None may cause a crash, a
//! hang or a stack overflow.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking, and helpers take arguments by value"
)]

use std::fmt::Write as _;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};
use vap_status_controller::policy::analysis::{Profile, TypeCheck, type_check};
use vap_status_controller::policy::compile::{CompileFindingKind, CompiledPolicy};
use vap_status_controller::schema::offline::Offline;

fn policy(spec: Value) -> ValidatingAdmissionPolicy {
    serde_json::from_value(json!({"metadata": {"name": "hostile"}, "spec": spec})).unwrap()
}

fn with_expression(expression: &str) -> CompiledPolicy {
    CompiledPolicy::new(policy(json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["widgets"],
        }]},
        "validations": [{"expression": expression}],
    })))
}

#[track_caller]
fn check_message(expression: &str, message: &str) {
    let compiled = with_expression(expression);
    let [finding] = compiled.findings() else {
        panic!("{:?}", compiled.findings())
    };
    let findings = finding.cause.message();
    assert!(findings.contains(message), "{findings}");
}

#[test]
fn nesting_beyond_limit_is_an_error() {
    let limit = "expression recursion limit exceeded: 250";
    check_message(
        &format!("{}true{}", "(".repeat(10_000), ")".repeat(10_000)),
        limit,
    );
    check_message(
        &format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)),
        limit,
    );
    check_message(&"(".repeat(50_000), limit);
    check_message(&format!("{}true", "true ? ".repeat(5_000)), "Syntax error");
    check_message(&format!("{}true", "true ? true : ".repeat(5_000)), limit);
    let chain = "max recursion depth exceeded";
    check_message(&format!("object{}", ".a".repeat(5_000)), chain);
    check_message(&format!("object{}", "[0]".repeat(5_000)), chain);
    check_message(&format!("1{} == 1", " + 1".repeat(5_000)), chain);
}

#[test]
fn expressions_at_limits_are_checked() {
    for expression in [
        format!("{}true{}", "(".repeat(200), ")".repeat(200)),
        format!("object{} == 1", ".a".repeat(240)),
        format!("true{}", " && true".repeat(5_000)),
        format!("{}true", "!".repeat(10_000)),
    ] {
        let compiled = with_expression(&expression);
        assert_eq!(compiled.findings(), [], "{}", &expression[..40]);
    }
}

#[test]
fn expression_beyond_length_limit_is_an_error() {
    let expression = format!("'{}' == ''", "a".repeat(100_000));
    check_message(
        &expression,
        "expression code point size exceeds limit: size: 100008, limit 100000",
    );
}

#[test]
fn macro_expansion_that_doubles_is_unsupported() {
    let chain = ".optMap(x, x)".repeat(40);
    let compiled = with_expression(&format!("optional.of(1){chain}.hasValue()"));
    let [finding] = compiled.findings() else {
        panic!("{:?}", compiled.findings())
    };
    assert_eq!(finding.kind, CompileFindingKind::Unsupported);
}

#[test]
fn doubling_constants_are_bounded() {
    let variables: Vec<Value> = (0..200)
        .map(|n: u32| {
            let before = n.saturating_sub(1);
            let expression = match n {
                0 => "[1]".to_owned(),
                _ => format!("[variables.v{before}, variables.v{before}]"),
            };
            json!({"name": format!("v{n}"), "expression": expression})
        })
        .collect();
    let hostile = policy(json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["widgets"]}]},
        "variables": variables,
        "validations": [{"expression": "variables.v199.size() == 2"}],
    }));
    let mut offline = Offline::default();
    let document = widgets(json!({"type": "object"}), json!({}));
    offline
        .add_document(None, document.to_string().as_bytes())
        .unwrap();
    let (schemas, mapper) = offline.finish();
    let compiled = CompiledPolicy::new(&hostile);
    let checked = type_check(&compiled, &mapper, &schemas, Profile::Truthful);
    assert_eq!((checked.checked.len(), checked.findings.len()), (1, 0));
}

#[test]
fn doubling_types_are_bounded() {
    // Each variable is a map. Its key and its value are the previous variable, so its type is twice as large.
    let mut variables = vec![json!({"name": "v0", "expression": "{'a': 1}"})];
    for n in 1..60 {
        let before = n - 1;
        let expression = format!("{{variables.v{before}: variables.v{before}}}");
        variables.push(json!({"name": format!("v{n}"), "expression": expression}));
    }
    let compiled = CompiledPolicy::new(policy(json!({
        "variables": variables,
        "validations": [{"expression": "variables.v59 == 1"}],
    })));
    let kinds: Vec<_> = compiled
        .findings()
        .iter()
        .map(|finding| finding.kind)
        .collect();
    assert!(
        kinds.contains(&CompileFindingKind::Unsupported),
        "{:?}",
        compiled.findings()
    );
    let maps = ".map(x, {x: x})".repeat(60);
    let compiled = with_expression(&format!("[1]{maps} == []"));
    let [finding] = compiled.findings() else {
        panic!("{:?}", compiled.findings())
    };
    assert_eq!(finding.kind, CompileFindingKind::Unsupported);
}

#[test]
fn macro_expansions_of_all_expressions_share_one_limit() {
    let expression = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(40));
    let validations: Vec<_> = (0..300)
        .map(|_| json!({"expression": expression}))
        .collect();
    let compiled = CompiledPolicy::new(policy(json!({"validations": validations})));
    assert_eq!(compiled.n_nodes(), 0);
    assert_eq!(compiled.findings().len(), 300);
    let is_unsupported = |kind| kind == CompileFindingKind::Unsupported;
    assert!(compiled.findings().iter().all(|f| is_unsupported(f.kind)));
    let last = &compiled.findings()[299].cause.message();
    assert!(
        last.contains("the expressions together are too large"),
        "{last}"
    );
}

/// Returns a policy whose validations contain many errors: a hundred undefined names on a line of 1.5 KB.
fn with_many_findings(n_validations: usize, n_kinds: usize) -> CompiledPolicy {
    let expression = format!("[{}]", ["undeclared_name"; 100].join(","));
    let validations: Vec<_> = (0..n_validations)
        .map(|_| json!({"expression": expression}))
        .collect();
    let resources: Vec<_> = (0..n_kinds).map(|n| format!("widget{n}s")).collect();
    CompiledPolicy::new(policy(json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": resources,
        }]},
        "validations": validations,
    })))
}

#[test]
fn memory_of_findings_is_bounded() {
    let compiled = with_many_findings(600, 1);
    assert_eq!(compiled.findings().len(), 600);
    let n_bytes: usize = compiled
        .findings()
        .iter()
        .map(|f| f.cause.message().len())
        .sum();
    assert!(n_bytes < 10_000_000, "{n_bytes}");
    let last = &compiled.findings()[599].cause.message();
    assert!(
        last.contains("undeclared reference to 'undeclared_name'"),
        "{last}"
    );
    assert!(last.ends_with("99 more errors were truncated"), "{last}");
}

#[test]
fn kinds_beyond_work_limit_are_unchecked() {
    let mut offline = Offline::default();
    for n in 0..4 {
        let kind = json!({"group": "example.com", "version": "v1", "kind": format!("Widget{n}")});
        let document = json!({
            "paths": {format!("/apis/example.com/v1/widget{n}s"):
                {"get": {"x-kubernetes-group-version-kind": kind}}},
            "components": {"schemas": {"Widget": {
                "type": "object", "x-kubernetes-group-version-kind": [kind],
            }}},
        });
        let document = document.to_string();
        offline.add_document(None, document.as_bytes()).unwrap();
    }
    let (schemas, mapper) = offline.finish();
    let few = type_check(
        &with_many_findings(1, 4),
        &mapper,
        &schemas,
        Profile::Upstream,
    );
    assert_eq!((few.checked.len(), few.unchecked.len()), (4, 0));
    let many = with_many_findings(150, 4);
    let upstream = type_check(&many, &mapper, &schemas, Profile::Upstream);
    assert_eq!((upstream.checked.len(), upstream.unchecked.len()), (2, 2));
    let reason = &upstream.unchecked[1].reason;
    assert!(reason.contains("too large"), "{reason}");
    // The profile `truthful` stops at the first error of an expression, which takes less memory.
    let truthful = type_check(&many, &mapper, &schemas, Profile::Truthful);
    assert_eq!((truthful.checked.len(), truthful.unchecked.len()), (4, 0));
}

#[test]
fn many_variables_are_compiled() {
    let mut variables = vec![json!({"name": "v0", "expression": "1"})];
    for n in 1..3_000 {
        let expression = format!("variables.v{} + 1", n - 1);
        variables.push(json!({"name": format!("v{n}"), "expression": expression}));
    }
    let compiled = CompiledPolicy::new(policy(json!({
        "variables": variables,
        "validations": [{"expression": "variables.v2999 == 3000"}],
    })));
    assert_eq!(compiled.findings(), []);
}

#[test]
fn many_deep_expressions_are_compiled() {
    let expression = format!("{}true{}", "(".repeat(60), ")".repeat(60));
    let validations: Vec<_> = (0..2_000)
        .map(|_| json!({"expression": expression}))
        .collect();
    let compiled = CompiledPolicy::new(policy(json!({"validations": validations})));
    assert_eq!(compiled.findings(), []);
    assert_eq!(compiled.n_nodes(), 2_000);
}

#[test]
fn variable_that_reads_itself_is_unsafe() {
    let compiled = CompiledPolicy::new(policy(json!({
        "variables": [
            {"name": "v", "expression": "'text'"},
            {"name": "v", "expression": "string(variables.v)"},
        ],
        "validations": [{"expression": "variables.v == 'text'"}],
    })));
    let [finding] = compiled.findings() else {
        panic!("{:?}", compiled.findings())
    };
    assert_eq!(finding.kind, CompileFindingKind::Unsafe);
}

/// Returns an OpenAPI document with the kind Widget and other schemas. `schema` is the schema of Widget.
fn widgets(schema: Value, others: Value) -> Value {
    let mut schemas = others;
    schemas["Widget"] = schema;
    schemas["Widget"]["x-kubernetes-group-version-kind"] =
        json!([{"group": "example.com", "version": "v1", "kind": "Widget"}]);
    json!({
        "paths": {"/apis/example.com/v1/widgets": {"get": {"x-kubernetes-group-version-kind":
            {"group": "example.com", "version": "v1", "kind": "Widget"}}}},
        "components": {"schemas": schemas},
    })
}

fn check_against(schema: Value, others: Value, expression: &str) -> TypeCheck {
    let document = widgets(schema, others);
    check_document(document.to_string().as_bytes(), expression)
}

fn check_document(document: &[u8], expression: &str) -> TypeCheck {
    let mut offline = Offline::default();
    offline.add_document(None, document).unwrap();
    let (schemas, mapper) = offline.finish();
    type_check(
        &with_expression(expression),
        &mapper,
        &schemas,
        Profile::Truthful,
    )
}

#[test]
fn open_objects_are_checked() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": true}}});
    let checked = check_against(schema, json!({}), "object.spec.anything == 1");
    assert_eq!(checked.checked.len(), 1);
    assert_eq!(checked.findings, []);
}

#[test]
fn circular_references_terminate() {
    let schema =
        json!({"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/Node"}}});
    let node = json!({"Node": {"type": "object", "properties": {
        "next": {"$ref": "#/components/schemas/Node"}, "value": {"type": "string"},
    }}});
    let checked = check_against(schema, node, "object.spec.value > 1");
    assert_eq!(checked.findings.len(), 1);
}

#[test]
fn doubling_references_are_bounded() {
    let mut others = json!({});
    for n in 0..40 {
        let next = format!("#/components/schemas/N{}", n + 1);
        others[format!("N{n}")] =
            json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}}});
    }
    others["N40"] = json!({"type": "string"});
    let schema =
        json!({"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/N0"}}});
    let checked = check_against(schema, others, "object.spec.a.b.a.b > 1");
    assert_eq!(checked.findings.len(), 1);
}

#[test]
fn invalid_utf8_in_description_is_accepted() {
    let text = r#"{"paths": {"/apis/example.com/v1/widgets": {"get": {"x-kubernetes-group-version-kind":
        {"group": "example.com", "version": "v1", "kind": "Widget"}}}}, "components": {"schemas": {"Widget": {
        "type": "object", "description": "DESCRIPTION", "properties": {"spec": {"type": "integer"}},
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}]}}}}"#;
    let at = text.find("DESCRIPTION").unwrap();
    let mut bytes = text.as_bytes().to_vec();
    bytes[at] = 0xff;
    bytes[at + 3] = 0xc0;
    let checked = check_document(&bytes, "object.spec > 'a'");
    assert_eq!(checked.findings.len(), 1);
}

#[test]
fn schema_of_ten_megabytes_is_parsed() {
    let mut properties = String::new();
    for n in 0..60_000 {
        let _ = write!(
            properties,
            r#""field{n}": {{"type": "string", "description": "{}"}}, "#,
            "d".repeat(130)
        );
    }
    let document = format!(
        r#"{{"paths": {{"/apis/example.com/v1/widgets": {{"get": {{"x-kubernetes-group-version-kind":
        {{"group": "example.com", "version": "v1", "kind": "Widget"}}}}}}}}, "components": {{"schemas": {{"Widget": {{
        "type": "object", "properties": {{{properties} "spec": {{"type": "integer"}}}},
        "x-kubernetes-group-version-kind": [{{"group": "example.com", "version": "v1", "kind": "Widget"}}]}}}}}}}}"#
    );
    assert!(document.len() > 10_000_000);
    let checked = check_document(document.as_bytes(), "object.field59999 > 1");
    assert_eq!(checked.findings.len(), 1);
}
