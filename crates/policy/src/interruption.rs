//! Tests that an interrupt soon ends the check of an expensive policy.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use crate::analysis::{Profile, type_check_matched};
use crate::compile::CompiledPolicy;
use crate::matching::RuleMatches;
use cel::interrupt::Interrupt;
use kubernetes::schema::offline::Offline;
use kubernetes::schema::resolver::SchemaSet;
use kubernetes::schema::rest_mapper::RestMapper;

const N_KINDS: usize = 60;
const MAX_TEXT: usize = 100_000;
const MAX_POLICY: usize = 200_000;

/// Joins the results of `part` with `separator`, up to a total of 100,000 bytes.
fn joined(separator: &str, part: impl Fn(usize) -> String) -> String {
    let mut text = part(0);
    for n in 1.. {
        let next = format!("{separator}{}", part(n));
        if text.len() + next.len() > MAX_TEXT - 100 {
            break;
        }
        text.push_str(&next);
    }
    text
}

/// Returns a policy with as many copies of `expression` as [`MAX_POLICY`] bytes allow.
fn filled(expression: &str) -> Value {
    let n = (MAX_POLICY / (expression.len() + 20)).clamp(1, 20_000);
    let validations: Vec<Value> = (0..n).map(|_| json!({"expression": expression})).collect();
    json!({"validations": validations})
}

fn variables(n: usize, expression: impl Fn(usize) -> String) -> Vec<Value> {
    let variable = |n| json!({"name": format!("v{n}"), "expression": expression(n)});
    (0..n).map(variable).collect()
}

/// Returns expensive policies by name. Each policy is extremely large in another respect than the others.
#[expect(
    clippy::too_many_lines,
    clippy::format_collect,
    reason = "a table, with an entry for each policy"
)]
fn hostile() -> Vec<(&'static str, Value)> {
    let list = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    let nested = |depth: usize, n: usize| {
        let mut text = "true".to_owned();
        for level in 0..depth {
            text = format!("{}.all(x{level}, {text})", list(n));
        }
        text
    };
    vec![
        (
            "or chain",
            filled(&joined(" || ", |n| format!("object.spec.a == {n}"))),
        ),
        (
            "and of has",
            filled(&joined(" && ", |_| "has(object.spec.a)".into())),
        ),
        (
            "unknown fields",
            filled(&joined(" || ", |n| format!("object.spec.no{n} == 1"))),
        ),
        (
            "unknown fields by condition",
            filled(&joined(" || ", |n| {
                format!("(object.spec.a == {n} && object.spec.no{n} == 1)")
            })),
        ),
        (
            "undeclared",
            filled(&format!(
                "[{}].size() > 0",
                joined(",", |n| format!("u{n}"))
            )),
        ),
        (
            "list literal",
            filled(&format!("{}.size() > 0", list(49_000))),
        ),
        (
            "in list",
            filled(&format!(
                "object.spec.a in [{}]",
                joined(",", |n| n.to_string())
            )),
        ),
        (
            "mixed list",
            filled(&format!(
                "[{}].size() > 0",
                joined(",", |n| if n % 2 == 0 {
                    n.to_string()
                } else {
                    format!("'{n}'")
                })
            )),
        ),
        (
            "map literal",
            filled(&format!(
                "{{{}}}.size() > 0",
                joined(",", |n| format!("'k{n}': {n}"))
            )),
        ),
        (
            "record of fields",
            filled(&format!(
                "{{{}}}.size() > 0",
                joined(",", |n| format!("'k{n}': object.spec.a"))
            )),
        ),
        (
            "list of maps",
            filled(&format!(
                "[{}].size() > 0",
                joined(",", |n| format!("{{'k{n}': object.spec}}"))
            )),
        ),
        (
            "ternaries",
            filled(&format!(
                "{}true",
                (0..120)
                    .map(|n| format!("object.spec.a == {n} ? object.spec.no{n} == 1 : "))
                    .collect::<String>()
            )),
        ),
        (
            "alternatives",
            filled(&joined(" || ", |n| {
                format!("(object.spec.a == {n} ? {{'a{n}': 1}} : {{'b{n}': 's'}}).a{n} == 1")
            })),
        ),
        (
            "deep",
            filled(&format!("{}true{}", "(".repeat(240), ")".repeat(240))),
        ),
        ("deep not", filled(&format!("{}true", "!".repeat(99_000)))),
        ("nested folds", filled(&nested(8, 20))),
        (
            "nested folds of fields",
            filled(&{
                let mut text = "true".to_owned();
                for level in 0..40 {
                    text = format!("object.spec.l.all(x{level}, x{level} == {level} || {text})");
                }
                text
            }),
        ),
        (
            "folds in a row",
            filled(&joined(" && ", |n| {
                format!("object.spec.l.all(x, x == {n})")
            })),
        ),
        (
            "fold of a tuple",
            filled(&format!(
                "{}.all(x, object.spec.l.exists(y, y == x))",
                list(40_000)
            )),
        ),
        (
            "map of a tuple",
            filled(&format!(
                "{}.map(x, [x]).map(x, [x, x]).size() > 0",
                list(20_000)
            )),
        ),
        (
            "types that double",
            filled(&format!("[1]{} == []", ".map(x, {x: x})".repeat(60))),
        ),
        (
            "copies that double",
            filled(&format!(
                "optional.of(1){}.hasValue()",
                ".optMap(x, x)".repeat(40)
            )),
        ),
        (
            "concatenated constants",
            filled(&joined(" + ", |_| "'a'".into())),
        ),
        (
            "pluses",
            filled(&format!("{} == 1", vec!["1"; 240].join(" + "))),
        ),
        (
            "patterns",
            filled(&joined(" || ", |n| {
                format!("object.spec.s.matches('^[a-z]{{{}}}N$')", n % 200)
            })),
        ),
        (
            "constant calls",
            filled(&joined(" || ", |n| {
                format!("'{n}'.matches('^[a-z]{{9}}N$')")
            })),
        ),
        (
            "formats",
            filled(&joined(" || ", |n| {
                format!("'%s%d'.format(['{n}', {n}]) == ''")
            })),
        ),
        (
            "one format",
            filled(&format!(
                "'{}'.format([{}]) == ''",
                "%d".repeat(20_000),
                vec!["1"; 20_000].join(",")
            )),
        ),
        (
            "quantities",
            filled(&joined(" || ", |n| {
                format!("quantity('{n}Mi').isGreaterThan(quantity('1e9'))")
            })),
        ),
        (
            "overloads",
            filled(&joined(" || ", |n| {
                format!("dyn({n}) + dyn(1) == dyn({n})")
            })),
        ),
        (
            "comparisons",
            filled(&joined(" || ", |n| format!("object.spec.a == 's{n}'"))),
        ),
        ("syntax errors", filled(&joined(" ", |_| "a".into()))),
        ("open brackets", filled(&"(".repeat(99_000))),
        ("operators", filled(&"+ - * ".repeat(16_000))),
        ("lexer errors", filled(&"$ ' ".repeat(24_000))),
        (
            "strings",
            filled(&format!("'{}' == ''", "\\\\u00e9".repeat(16_000))),
        ),
        (
            "non-ASCII",
            filled(&joined(" || ", |n| format!("'äöü' == 'é{n}'"))),
        ),
        (
            "variables in a row",
            json!({
                "variables": variables(20_000, |n| match n { 0 => "1".into(), n => format!("variables.v{} + 1", n - 1) }),
                "validations": [{"expression": "variables.v19999 == 1"}],
            }),
        ),
        (
            "variables by all",
            json!({
                "variables": variables(8_000, |_| "object.spec".into()),
                "validations": [{"expression": joined(" || ", |n| format!("variables.v{}.no{n} == 1", n % 8_000))}],
            }),
        ),
        (
            "variables of one name",
            json!({
                "variables": (0..20_000).map(|n| json!({"name": "v", "expression": format!("{n}")})).collect::<Vec<_>>(),
                "validations": [{"expression": joined(" || ", |n| format!("variables.v == {n}"))}],
            }),
        ),
        (
            "variables that double",
            json!({
                "variables": variables(200, |n| match n {
                    0 => "[object.spec.a]".into(), n => format!("[variables.v{0}, variables.v{0}]", n - 1) }),
                "validations": [{"expression": "variables.v199.size() == 2"}],
            }),
        ),
        (
            "records that double",
            json!({
                "variables": variables(200, |n| match n {
                    0 => "{'a': object.spec.a}".into(), n => format!("{{'a': variables.v{0}, 'b': variables.v{0}}}", n - 1) }),
                "validations": [{"expression": "variables.v199 == variables.v198"}],
            }),
        ),
        (
            "alternatives that double",
            json!({
                "variables": variables(300, |n| match n {
                    0 => "[object.spec.a]".into(),
                    n => format!("object.spec.a == {n} ? [variables.v{0}] : {{'a': variables.v{0}, 'b{n}': variables.v{0}}}", n - 1) }),
                "validations": [{"expression": "variables.v299 == variables.v298"}],
            }),
        ),
        (
            "match conditions",
            json!({
                "matchConditions": (0..10_000).map(|n| json!({"name": format!("c{n}"),
                    "expression": format!("object.spec.a != {n} && has(object.spec.s)")})).collect::<Vec<_>>(),
                "validations": [{"expression": "true"}],
            }),
        ),
        (
            "messages",
            json!({
                "validations": (0..10_000).map(|n| json!({"expression": format!("object.spec.a == {n}"),
                    "messageExpression": format!("'a' + string(object.spec.a) + '{n}'")})).collect::<Vec<_>>(),
            }),
        ),
        (
            "rules",
            json!({
                "matchConstraints": {"resourceRules": (0..10_000).map(|n| json!({
                    "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"],
                    "resources": [format!("widget{n}s"), "*/*"]})).collect::<Vec<_>>(),
                    "excludeResourceRules": (0..8_000).map(|n| json!({
                    "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
                    "resources": [format!("{n}/*")]})).collect::<Vec<_>>()},
                "validations": [{"expression": "true"}],
            }),
        ),
    ]
}

fn schemas() -> (SchemaSet, Arc<RestMapper>) {
    let mut offline = Offline::default();
    let mut paths = json!({});
    let mut types = json!({});
    for n in 0..N_KINDS {
        let kind = json!({"group": "example.com", "version": "v1", "kind": format!("Widget{n}")});
        paths[format!("/apis/example.com/v1/widget{n}s")] =
            json!({"get": {"x-kubernetes-group-version-kind": kind}});
        types[format!("Widget{n}")] = json!({
            "type": "object", "x-kubernetes-group-version-kind": [kind],
            "properties": {"spec": {"type": "object", "properties": {
                "a": {"type": "integer"}, "s": {"type": "string"}, format!("own{n}"): {"type": "string"},
                "l": {"type": "array", "items": {"type": "integer"}},
                "next": {"$ref": format!("#/components/schemas/Widget{n}")},
            }}},
        });
    }
    let document = json!({"paths": paths, "components": {"schemas": types}}).to_string();
    offline.add_document(None, document.as_bytes()).unwrap();
    let (schemas, mapper) = offline.finish();
    (schemas, Arc::new(mapper))
}

fn policy(mut spec: Value) -> ValidatingAdmissionPolicy {
    if spec.get("matchConstraints").is_none() {
        spec["matchConstraints"] = json!({"resourceRules": [{
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]});
    }
    serde_json::from_value(json!({"metadata": {"name": "hostile"}, "spec": spec})).unwrap()
}

/// Maximum time between two polls of an interrupt.
///
/// The limit is generous: release builds poll about ten times as often as test builds, and other tests may keep the
/// machine busy.
const MAX_GAP: Duration = Duration::from_millis(1_500);

/// The time after which a check is interrupted.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Checks `policy` for at most [`TIME_LIMIT`]. Returns the longest time between two polls of the interrupt.
fn longest_gap(
    policy: &ValidatingAdmissionPolicy,
    (schemas, mapper): &(SchemaSet, Arc<RestMapper>),
    profile: Profile,
) -> Duration {
    let start = Instant::now();
    let polled = Arc::new(Mutex::new((start, Duration::ZERO)));
    let poll = |polled: &Mutex<(Instant, Duration)>| {
        let mut polled = polled.lock().unwrap();
        let (last, longest) = *polled;
        *polled = (Instant::now(), longest.max(last.elapsed()));
    };
    let seen = Arc::clone(&polled);
    let interrupt = Interrupt::new(move || {
        poll(&seen);
        start.elapsed() > TIME_LIMIT
    });
    let outcome = interrupt.run(|| {
        let compiled = CompiledPolicy::new(policy);
        let matches = RuleMatches::new(compiled.policy(), Arc::clone(mapper));
        drop(type_check_matched(&compiled, &matches, schemas, profile));
    });
    poll(&polled);
    if outcome.is_err() {
        assert!(start.elapsed() > TIME_LIMIT);
    }
    polled.lock().unwrap().1
}

#[test]
fn checks_of_hostile_policies_can_be_interrupted() {
    let schemas = schemas();
    let mut slow = Vec::new();
    for (n, (name, spec)) in hostile().into_iter().enumerate() {
        let policy = policy(spec);
        // The two profiles do mostly the same work, so only some policies are checked with both.
        let is_upstream = n % 4 == 0;
        let profiles = [
            Some(Profile::Truthful),
            is_upstream.then_some(Profile::Upstream),
        ];
        for profile in profiles.into_iter().flatten() {
            let gap = longest_gap(&policy, &schemas, profile);
            if gap > MAX_GAP {
                slow.push((name, profile, gap));
            }
        }
    }
    assert_eq!(slow, []);
}
