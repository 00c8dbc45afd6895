//! Values for the fields of mutants. Each value is valid in some fields and invalid in others.

use serde_json::{Value, json};

use crate::random::Random;

pub(super) fn value(field: &str, random: &mut Random) -> Value {
    if random.permille(350) {
        return choose(&any(), random);
    }
    choose(&specific(field), random)
}

fn choose(values: &[Value], random: &mut Random) -> Value {
    random.choose(values).cloned().unwrap_or_default()
}

/// Returns values that are used for any field.
fn any() -> Vec<Value> {
    let long = |n: usize| Value::from("a".repeat(n));
    vec![
        json!(null),
        json!(""),
        json!(" "),
        json!("a"),
        json!("A"),
        json!("a-b"),
        json!("a_b"),
        json!("a.b"),
        json!("-a"),
        json!("a-"),
        json!("a."),
        json!("a..b"),
        json!("a/b"),
        json!("/a"),
        json!("a/"),
        json!("a/b/c"),
        json!("Example.com/a"),
        json!("50%"),
        json!("."),
        json!(".."),
        json!("é"),
        json!("a b"),
        json!("a\nb"),
        json!("a\rb\n"),
        json!("*"),
        json!("1"),
        json!("in"),
        json!("true"),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!([]),
        json!([null]),
        json!(["a"]),
        json!(["a", "a"]),
        json!({}),
        json!({"a": "b"}),
        json!({"a": null}),
        json!([{}]),
        json!([{}, {}]),
        long(63),
        long(64),
        long(253),
        long(254),
        long(300),
    ]
}

const EXPRESSIONS: [&str; 38] = [
    "true",
    " true ",
    "",
    "  ",
    "\n",
    "'a'",
    "1",
    "null",
    "object.spec.replicas > 1",
    "object.spec.replicas >",
    "object",
    "params.data.max > 1",
    "params != null",
    "variables.a",
    "variables.nope",
    "variables.size() > 0",
    "authorizer.group('').resource('pods').check('get').allowed()",
    "request.userInfo.username == 'a'",
    "request.user == 'a'",
    "namespaceObject.metadata.name == 'a'",
    "objct.spec == 1",
    "object.name.matches('[')",
    "has(object.a) || has(object)",
    "[1, 2].all(x, x > 0) ? 'a' : 'b'",
    "string(1 + 2)",
    "dyn(1) + 'a'",
    "Object{}",
    " Object{spec: Object.spec{a: [Object.spec.a{b: 1}]}} ",
    "Object.spec{}",
    "Object{spec: Object.wrong{}}",
    "Object{?metadata: optional.none()}",
    "type(Object{}) == Object ? Object{} : Object{}",
    "[]",
    "[JSONPatch{op: 'remove', path: '/spec/a'}]",
    "[JSONPatch{op: 1}]",
    "[JSONPatch{operation: 'add'}]",
    "[JSONPatch{value: JSONPatch{}.nope}]",
    "jsonpatch.escapeKey('a/b') == 'a' ? [JSONPatch{}] : [JSONPatch{op: 'a'}]",
];

/// Returns values for the field `field`. Some of them are valid.
#[expect(clippy::too_many_lines, reason = "a table of values by field")]
fn specific(field: &str) -> Vec<Value> {
    let texts = |texts: &[&str]| texts.iter().copied().map(Value::from).collect::<Vec<_>>();
    let lists = |lists: &[&[&str]]| lists.iter().map(|list| json!(list)).collect::<Vec<_>>();
    match field {
        "expression" | "messageExpression" | "valueExpression" => {
            let mut values = texts(&EXPRESSIONS);
            for n in [5_118, 5_119, 10_000] {
                values.push(format!("'{}'", "x".repeat(n)).into());
                values.push(format!("  '{}' ", "x".repeat(n)).into());
            }
            values
        }
        "sideEffects" => texts(&["None", "NoneOnDryRun", "Some", "Unknown", "none", ""]),
        "patchType" => texts(&["ApplyConfiguration", "JSONPatch", "JsonPatch", "Merge", ""]),
        "applyConfiguration" | "jsonPatch" => vec![
            json!({"expression": "Object{}"}),
            json!({"expression": "[JSONPatch{}]"}),
            json!({}),
            json!({"expression": ""}),
            json!(null),
        ],
        "mutations" => vec![
            json!([]),
            json!([{}]),
            json!([null]),
            json!([{"patchType": "JSONPatch"}]),
            json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]),
            json!([{
                "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"},
                "jsonPatch": {"expression": "["},
            }]),
        ],
        "reinvocationPolicy" => texts(&["Never", "IfNeeded", "never", "Always", ""]),
        "timeoutSeconds" => vec![
            json!(1),
            json!(30),
            json!(0),
            json!(31),
            json!(-1),
            json!(1.5),
            json!(10.0),
            json!(2_147_483_648_i64),
            json!("10"),
        ],
        "port" => vec![
            json!(1),
            json!(65_535),
            json!(0),
            json!(65_536),
            json!(-1),
            json!(2_147_483_648_i64),
            json!("https"),
        ],
        "path" => texts(&[
            "/", "/a", "/a/", "/a/b.c", "//", "a", "/a//b", "/A", "/a_b", "/-", "",
        ]),
        "caBundle" => texts(&["", "YQ==", "YQ", "no base64", "YWI=\n", "==="]),
        "url" => texts(&[
            "https://example.com",
            "https://example.com/a?",
            "https://example.com/a#",
            "HTTPS://example.com",
            "https://[::1]:8443/a",
            "https://example.com/%41",
            "http://example.com",
            "https:///a",
            "https:example.com",
            "https://a@example.com",
            "https://a:b@example.com",
            "https://example.com?a=b",
            "https://example.com#a",
            "https://exa mple.com",
            "https://example.com:port",
            "https://example.com/%zz",
            "https://:443",
            "//example.com",
            "example.com",
            "",
        ]),
        "admissionReviewVersions" => lists(&[
            &["v1"],
            &["v1beta1"],
            &["v2", "v1"],
            &["v2"],
            &["v1", "v1"],
            &["V1"],
            &["v1", "a.b"],
            &["v1", ""],
            &[],
        ]),
        "failurePolicy" => texts(&["Fail", "Ignore", "fail", "ignore", "Deny", ""]),
        "matchPolicy" => texts(&["Exact", "Equivalent", "exact", "equivalent", ""]),
        "scope" => texts(&["*", "Cluster", "Namespaced", "Namespace", "cluster", ""]),
        "operator" => texts(&[
            "In",
            "NotIn",
            "Exists",
            "DoesNotExist",
            "in",
            "Equals",
            "Gt",
            "",
        ]),
        "values" => lists(&[&[], &["a"], &["a", "a"], &[""], &["a b"], &["a/b"], &["-"]]),
        "reason" => texts(&[
            "Forbidden",
            "Invalid",
            "RequestEntityTooLarge",
            "Unauthorized",
            "NotFound",
            "invalid",
            "",
        ]),
        "message" => texts(&["a", " a\n", "a\nb", "a\r\nb", " ", "\n", "", "a\u{2028}b"]),
        "operations" => lists(&[
            &["*"],
            &["CREATE"],
            &["*", "CREATE"],
            &["CREATE", "CREATE"],
            &["*", "*"],
            &["create"],
            &["PATCH"],
            &["CONNECT", "DELETE"],
            &[""],
            &[],
        ]),
        "apiGroups" => lists(&[
            &[""],
            &["apps"],
            &["*"],
            &["*", "apps"],
            &["*", "*"],
            &["apps/v1"],
            &["Apps"],
            &["", "a b"],
            &[],
        ]),
        "apiVersions" => lists(&[
            &["v1"],
            &["*"],
            &["*", "v1"],
            &["v1", ""],
            &["V1"],
            &["apps/v1"],
            &["", "*"],
            &[],
        ]),
        "resources" => lists(&[
            &["pods"],
            &["*"],
            &["*/*"],
            &["*", "pods"],
            &["pods", "*"],
            &["*", "pods/exec"],
            &["*/*", "pods"],
            &["pods/*", "pods/exec"],
            &["pods/exec", "pods/*"],
            &["*/scale", "pods/scale"],
            &["a/scale", "*/scale"],
            &["*/*", "*/*"],
            &["*/*", "pods/*"],
            &["pods/*", "pods/*"],
            &[""],
            &["*", ""],
            &["", ""],
            &["pods/"],
            &["/exec"],
            &["a/b/c", "a/b/c"],
            &["a/*/c", "a/b"],
            &["PODS"],
            &["*", "*"],
            &["*", "a", "*"],
            &["/*", "/a"],
            &[],
        ]),
        "resourceNames" => lists(&[
            &["a"],
            &["a", "a"],
            &[""],
            &["", ""],
            &["a/b"],
            &[".."],
            &["."],
            &["50%"],
            &["A b"],
            &[],
        ]),
        "validationActions" => lists(&[
            &["Deny"],
            &["Warn"],
            &["Audit"],
            &["Deny", "Warn"],
            &["Deny", "Audit"],
            &["Warn", "Audit"],
            &["Audit", "Audit"],
            &["Deny", "Deny", "Warn"],
            &["deny"],
            &["Block"],
            &[""],
            &["", ""],
            &[],
        ]),
        "parameterNotFoundAction" => texts(&["Allow", "Deny", "allow", "Ignore", ""]),
        "paramKind" => vec![
            json!({}),
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!({"kind": "ConfigMap"}),
            json!({"apiVersion": "v1"}),
            json!(null),
        ],
        "apiVersion" => texts(&[
            "v1",
            "apps/v1",
            "/v1",
            "apps/",
            "/",
            "a/b/c",
            "Apps/v1",
            "apps/V1",
            "apps/1",
            "1",
            "example.com",
            "apps/v1.1",
            "",
        ]),
        "kind" => texts(&[
            "ConfigMap",
            "configmap",
            "Config Map",
            "1a",
            "a-",
            "A-B",
            "\u{212a}ind",
            "\u{130}nt",
            "Event",
            "",
        ]),
        "namespace" => texts(&["default", "a b", ""]),
        "resourceVersion" => texts(&[
            "0",
            "1",
            "00",
            "+1",
            "abc",
            "-1",
            "18446744073709551616",
            "",
        ]),
        "generateName" => texts(&[
            "a", "a-", "-", "A-", "a.-", "a..", "a-.", "a.", ".-", "b--", "aé-", "",
        ])
        .into_iter()
        .chain([
            json!("a".repeat(58)),
            json!("a".repeat(60)),
            json!("a".repeat(253)),
            json!("a".repeat(254)),
            json!(format!("{}.a-", "a".repeat(57))),
        ])
        .collect(),
        "creationTimestamp" | "deletionTimestamp" | "time" | "lastTransitionTime" => texts(&[
            "2024-01-02T03:04:05Z",
            "2024-01-02T03:04:05.5+02:00",
            "2024-01-02",
            "2024-01-02 03:04:05Z",
            "2024-02-30T03:04:05Z",
            "2024-01-02T03:04:05z",
            "2024-01-02T24:04:05Z",
            "2024-01-02T03:04:60Z",
            "2024-01-02T03:04:05,5Z",
            "2024-01-02T03:04:05+24:00",
            "2024-01-02T03:04:05+25:00",
            "2024-01-02T03:04:05+00:60",
            "2024-01-02T3:04:05Z",
            "",
        ]),
        "generation" | "deletionGracePeriodSeconds" | "observedGeneration" => vec![
            json!(1),
            json!(-1),
            json!(1.5),
            json!(9_223_372_036_854_775_807_u64),
            json!(9_223_372_036_854_775_808_u64),
            json!(1e19),
            json!(1e18),
            json!("1"),
        ],
        "labels" | "matchLabels" => vec![
            json!({"a": "b"}),
            json!({"a/b": "c"}),
            json!({"a": ""}),
            json!({"": "a"}),
            json!({"a b": "c"}),
            json!({"a": "b c"}),
            json!({"a": 1}),
            json!({"a": true}),
            json!({"a": null}),
            json!({"A.b/C_d": "E-f"}),
            json!({"a.b/C_d": "E-f"}),
            json!({"a/b/c": "d"}),
            json!({"a": {}}),
            json!({"a".repeat(63): "a".repeat(63)}),
            json!({"a".repeat(64): "a"}),
            json!({"a": "a".repeat(64)}),
            json!({format!("{}/a", "a".repeat(253)): "a"}),
            json!({format!("{}/a", "a".repeat(254)): "a"}),
        ],
        "annotations" => vec![
            json!({"a": "b c\nd"}),
            json!({"A.B/C": "d"}),
            json!({"a b": "c"}),
            json!({"": "a"}),
            json!({"a": 1}),
            json!({"a": null}),
            json!({"\u{212a}": "a"}),
            json!({"a": "x".repeat(262_143)}),
            json!({"a": "x".repeat(262_144)}),
            json!({"a": "x".repeat(131_072), "b": "x".repeat(131_071)}),
        ],
        "finalizers" => lists(&[
            &["a"],
            &["a/b"],
            &[""],
            &["a b"],
            &["orphan"],
            &["foregroundDeletion"],
            &["orphan", "foregroundDeletion"],
            &["a", "a"],
            &["a/b/c"],
        ]),
        "ownerReferences" => {
            let owner = |fields: Value| {
                let mut owner =
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"});
                if let (Some(owner), Value::Object(fields)) = (owner.as_object_mut(), fields) {
                    owner.extend(fields);
                }
                owner
            };
            vec![
                json!([owner(json!({}))]),
                json!([
                    owner(json!({"controller": true})),
                    owner(json!({"controller": true}))
                ]),
                json!([
                    owner(json!({"controller": true})),
                    owner(json!({"controller": true, "uid": "v"}))
                ]),
                json!([
                    owner(json!({"controller": true})),
                    owner(json!({"controller": true, "blockOwnerDeletion": true}))
                ]),
                json!([
                    owner(json!({"controller": true})),
                    owner(json!({"uid": "v"}))
                ]),
                json!([owner(json!({"kind": "Event"}))]),
                json!([owner(json!({"apiVersion": ""}))]),
                json!([owner(json!({"apiVersion": "/"}))]),
                json!([owner(json!({"apiVersion": "a/"}))]),
                json!([owner(json!({"apiVersion": "/v1", "kind": "Event"}))]),
                json!([owner(json!({"apiVersion": "a/b/c"}))]),
                json!([owner(json!({"apiVersion": "A B/é"}))]),
                json!([owner(json!({"name": ""}))]),
                json!([owner(json!({"uid": null}))]),
                json!([owner(json!({"controller": "true"}))]),
                json!([{}]),
                json!([null]),
            ]
        }
        // The names of managers are not changed, because their validity depends on the entries that remain after the
        // API server has added its own entry.
        "managedFields" => vec![
            json!([{}]),
            json!([null]),
            json!([{"operation": "Patch"}]),
            json!([{"fieldsV1": {"f:a": {}}}]),
            json!([{"fieldsV1": "a"}]),
            json!([{"manager": 1}]),
            json!([{"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {}}}]),
            json!([{"manager": "a", "operation": "Update", "time": "x"}]),
            json!([{"unknown": 1}]),
        ],
        "status" => vec![
            json!({}),
            json!({"conditions": [{"type": "a b"}]}),
            json!({"observedGeneration": "1"}),
            json!({"typeChecking": {"expressionWarnings": [{}]}}),
            json!({"conditions": {}}),
            json!({"conditions": [{"lastTransitionTime": "x"}]}),
            json!({"unknown": 1}),
            json!([]),
        ],
        "matchConditions" | "variables" => {
            let many = |n: usize| {
                (0..n)
                    .map(|n| json!({"name": format!("n{n}"), "expression": "true"}))
                    .collect::<Vec<_>>()
            };
            vec![
                json!([]),
                json!([{}]),
                json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
                json!([null]),
                json!([{"name": "A-b/c", "expression": "true"}]),
                json!([{"name": "a.b/c", "expression": "true"}]),
                json!([{"name": "", "expression": ""}, {"name": "", "expression": " "}]),
                json!(many(64)),
                json!(many(65)),
            ]
        }
        "auditAnnotations" => {
            let many = |n: usize| {
                (0..n)
                    .map(|n| json!({"key": format!("n{n}"), "valueExpression": "'a'"}))
                    .collect::<Vec<_>>()
            };
            vec![
                json!([]),
                json!([{}]),
                json!([{"key": "a", "valueExpression": "'a'"}, {"key": "a", "valueExpression": "'a'"}]),
                json!([{"key": "a/b", "valueExpression": "'a'"}]),
                json!(many(20)),
                json!(many(21)),
                json!([{"key": "a", "valueExpression": "null"}]),
                json!([{"key": "a", "valueExpression": "1"}]),
            ]
        }
        "validations" => vec![
            json!([]),
            json!([{}]),
            json!([null]),
            json!([{"expression": "true"}]),
            json!({"expression": "true"}),
        ],
        "matchConstraints" | "matchResources" => vec![
            json!({}),
            json!({"resourceRules": []}),
            json!({"resourceRules": [{}]}),
            json!({"resourceRules": [null]}),
            json!({"excludeResourceRules": [{}]}),
        ],
        "namespaceSelector" | "objectSelector" | "selector" => vec![
            json!({}),
            json!({"matchLabels": {"a": "b"}}),
            json!({"matchExpressions": [{}]}),
            json!({"matchExpressions": [null]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["a"]}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["a"]}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]}),
            json!({"matchLabel": {"a": "b"}}),
            json!({"a": "b"}),
        ],
        "paramRef" => vec![
            json!({}),
            json!({"name": "a", "parameterNotFoundAction": "Deny"}),
            json!({"name": "a"}),
            json!({"selector": {}, "parameterNotFoundAction": "Allow"}),
            json!({"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}),
            json!({"name": "", "selector": null, "parameterNotFoundAction": "Deny"}),
            json!({"name": "a", "namespace": "B c", "parameterNotFoundAction": "Deny"}),
        ],
        _ => texts(&["a", "b.c", "a-1", "a/b", "A", ""]),
    }
}
