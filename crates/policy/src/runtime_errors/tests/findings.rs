//! Tests of the rule, the message and the fix of findings.
//!
//! The evaluator confirms each finding. It would not confirm a finding for a guarded expression.

use super::*;
use crate::consequence::Consequence;

/// Rule, message and fix of a finding. The fix is empty if there is none.
type Row = [&'static str; 3];

/// Group, version and name of a resource.
type Resource = (&'static str, &'static str, &'static str);

fn found(resource: (&str, &str, &str), operations: &[&str], spec: &Json) -> Vec<[String; 3]> {
    let cache = ObjectCache::default();
    let served = &*PLAIN;
    let findings =
        find_runtime_errors(&policy(resource, operations, spec), &served.context(&cache));
    let shown = findings.into_iter().map(|finding| {
        let fix = finding.fix.unwrap_or_default();
        [finding.rule.id().to_owned(), finding.message, fix]
    });
    shown.collect()
}

/// Compares the findings with the file `findings.txt`.
#[test]
fn findings_have_cause_and_guard() {
    let mut n_cases = 0;
    for case in cases(include_str!("findings.txt")) {
        let actual = found(BOX, &["CREATE"], &validation(case[0]));
        let lines = actual.iter().flat_map(|[rule, message, fix]| {
            let fix = (!fix.is_empty()).then(|| format!("    {fix}"));
            std::iter::once(format!("  {rule}: {message}")).chain(fix)
        });
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines, case[1..], "{}", case[0]);
        n_cases += 1;
    }
    assert!(n_cases > 100, "{n_cases}");
}

#[test]
fn null_object_is_reported_for_operation() {
    let cases: [(&[&str], &str, &[Row]); 8] = [
        (
            &["CREATE", "DELETE"],
            "object.metadata.name != 'a'",
            &[[
                "absent-object",
                "`object` is null on DELETE: DELETE of a Box fails with `no such key: metadata`",
                "add a guard: `object == null || ...`, or remove DELETE from the rule's operations",
            ]],
        ),
        (
            &["UPDATE"],
            "object.spec.text == oldObject.spec.text",
            &[[
                "absent-field",
                "`object.spec.text` may be absent: UPDATE of a Box without spec.text fails with `no such key: text`",
                "add a guard: `has(object.spec.text) && ...`, or write `object.spec.?text.orValue('')`",
            ]],
        ),
        (
            &["CREATE", "UPDATE"],
            "oldObject.spec.text == 'a'",
            &[
                [
                    "absent-object",
                    "`oldObject` is null on CREATE: CREATE of a Box fails with `no such key: spec`",
                    "add a guard: `oldObject == null || ...`, or remove CREATE from the rule's operations",
                ],
                [
                    "absent-field",
                    "`oldObject.spec.text` may be absent: UPDATE of a Box without oldObject.spec.text fails with `no such key: text`",
                    "add a guard: `has(oldObject.spec.text) && ...`, or write `oldObject.spec.?text.orValue('')`",
                ],
            ],
        ),
        (
            &["DELETE"],
            "oldObject.spec.text == 'a'",
            &[[
                "absent-field",
                "`oldObject.spec.text` may be absent: DELETE of a Box without oldObject.spec.text fails with `no such key: text`",
                "add a guard: `has(oldObject.spec.text) && ...`, or write `oldObject.spec.?text.orValue('')`",
            ]],
        ),
        (
            &["CREATE", "DELETE"],
            "request.operation == 'DELETE' || object.spec.text == 'a'",
            &[[
                "absent-field",
                "`object.spec.text` may be absent: CREATE of a Box without spec.text fails with `no such key: text`",
                "add a guard: `has(object.spec.text) && ...`, or write `object.spec.?text.orValue('')`",
            ]],
        ),
        (
            &["CREATE", "UPDATE"],
            "oldObject == null || oldObject.spec.text == 'a'",
            &[[
                "absent-field",
                "`oldObject.spec.text` may be absent: UPDATE of a Box without oldObject.spec.text fails with `no such key: text`",
                "add a guard: `has(oldObject.spec.text) && ...`, or write `oldObject.spec.?text.orValue('')`",
            ]],
        ),
        (
            &["CREATE", "UPDATE"],
            "request.operation != 'UPDATE' || object.spec.text == oldObject.spec.text",
            &[[
                "absent-field",
                "`object.spec.text` may be absent: UPDATE of a Box without spec.text fails with `no such key: text`",
                "add a guard: `has(object.spec.text) && ...`, or write `object.spec.?text.orValue('')`",
            ]],
        ),
        (
            &["CREATE", "DELETE"],
            "(request.operation == 'DELETE' ? oldObject : object).spec.text == 'a'",
            &[[
                "absent-field",
                "`object.spec.text` may be absent: CREATE of a Box without spec.text fails with `no such key: text`",
                "",
            ]],
        ),
    ];
    for (operations, expression, expected) in cases {
        let actual = found(BOX, operations, &validation(expression));
        assert_eq!(actual, expected, "{expression}");
    }
}

#[test]
fn fields_of_builtin_kinds_are_reported() {
    let cases: [(Resource, &str, &[Row]); 7] = [
        (
            ("", "v1", "nodes"),
            "namespaceObject.metadata.name == 'a'",
            &[[
                "absent-object",
                "`namespaceObject` is null for cluster-scoped objects: CREATE of a Node fails with `no such key: metadata`",
                "add a guard: `namespaceObject == null || ...`",
            ]],
        ),
        (
            ("", "v1", "pods"),
            "object.spec.containers[1].image == 'a'",
            &[[
                "absent-element",
                "`object.spec.containers[1]` may be absent: CREATE of a Pod without spec.containers[1] fails with `index out of bounds: 1`",
                "add a guard: `size(object.spec.containers) > 1 && ...`, or write `object.spec.containers[?1].image.orValue('')`",
            ]],
        ),
        (
            ("", "v1", "pods"),
            "object.spec.volumes.all(v, v.name == 'a')",
            &[[
                "absent-field",
                "`object.spec.volumes` may be absent: CREATE of a Pod without spec.volumes fails with `no such key: volumes`",
                "add a guard: `(!has(object.spec.volumes) || ...)`, or write `object.spec.?volumes.orValue([])`",
            ]],
        ),
        (
            ("apps", "v1", "deployments"),
            "object.spec.template.spec.containers[0].ports[0].hostPort == 3",
            &[[
                "absent-field",
                "`object.spec.template.spec.containers[0].ports` may be absent: CREATE of a Deployment without spec.template.spec.containers[0].ports fails with `no such key: ports`",
                "add a guard: `has(object.spec.template.spec.containers[0].ports) && size(object.spec.template.spec.containers[0].ports) > 0 && has(object.spec.template.spec.containers[0].ports[0].hostPort) && ...`, or write `object.spec.template.spec.containers[0].?ports[?0].?hostPort.orValue(0)`",
            ]],
        ),
        (
            ("", "v1", "configmaps"),
            "object.data.a == 'b'",
            &[[
                "absent-field",
                "`object.data` may be absent: CREATE of a ConfigMap without data fails with `no such key: data`",
                "add a guard: `has(object.data) && has(object.data.a) && ...`, or write `object.?data.?a.orValue('')`",
            ]],
        ),
        (
            ("", "v1", "configmaps"),
            "int(object.data['a']) > 3",
            &[
                [
                    "failing-conversion",
                    "`object.data.a` may be any string: CREATE of a ConfigMap with \"example\" as data.a fails with `type conversion error from 'string' to 'int'`",
                    "add a guard: `object.data['a'].matches('^-?[0-9]{1,18}$') && ...`",
                ],
                [
                    "absent-field",
                    "`object.data` may be absent: CREATE of a ConfigMap without data fails with `no such key: data`",
                    "add a guard: `has(object.data) && 'a' in object.data && ...`, or write `object.?data[?'a'].orValue('')`",
                ],
            ],
        ),
        (
            ("", "v1", "services"),
            "object.spec.ports[0].targetPort > 3",
            &[
                [
                    "absent-field",
                    "`object.spec.ports` may be absent: CREATE of a Service without spec.ports fails with `no such key: ports`",
                    "add a guard: `has(object.spec.ports) && size(object.spec.ports) > 0 && ...`",
                ],
                [
                    "int-or-string",
                    "`object.spec.ports[0].targetPort` may be an integer or a string: CREATE of a Service with \"http\" as spec.ports[0].targetPort fails with `no such overload`",
                    "add a guard: `type(object.spec.ports[0].targetPort) == int && ...`",
                ],
            ],
        ),
    ];
    for (resource, expression, expected) in cases {
        let actual = found(resource, &["CREATE"], &validation(expression));
        assert_eq!(actual, expected, "{expression}");
    }
}

#[test]
fn other_expressions_of_policy_guard_reads() {
    let cases: [(Json, &[Row]); 11] = [
        (
            json!({"matchConditions":[{"expression":"namespaceObject.metadata.name == 'a'","name":"m"}],"validations":[{"expression":"true"}]}),
            &[[
                "absent-object",
                "`namespaceObject` is null in match conditions: CREATE of a Box fails with `no such key: metadata`",
                "add a guard: `namespaceObject == null || ...`",
            ]],
        ),
        (
            json!({"matchConditions":[{"expression":"has(object.spec.text)","name":"m"}],"validations":[{"expression":"object.spec.text == 'a'"}]}),
            &[],
        ),
        (
            json!({"matchConditions":[{"expression":"!has(object.spec.text)","name":"m"}],"validations":[{"expression":"object.spec.text == 'a'"}]}),
            &[[
                "absent-field",
                "`object.spec.text` may be absent: CREATE of a Box without spec.text fails with `no such key: text`",
                "add a guard: `has(object.spec.text) && ...`, or write `object.spec.?text.orValue('')`",
            ]],
        ),
        (
            json!({"validations":[{"expression":"variables.v == 'a'"}],"variables":[{"expression":"object.spec.text","name":"v"}]}),
            &[[
                "absent-field",
                "`object.spec.text` may be absent: CREATE of a Box without spec.text fails with `no such key: text`",
                "add a guard: `has(object.spec.text) && ...`, or write `object.spec.?text.orValue('')`",
            ]],
        ),
        (
            json!({"validations":[{"expression":"has(object.spec.text) && variables.v == 'a'"}],"variables":[{"expression":"object.spec.text","name":"v"}]}),
            &[],
        ),
        (
            json!({"validations":[{"expression":"variables.v && object.spec.text == 'a'"}],"variables":[{"expression":"has(object.spec.text)","name":"v"}]}),
            &[],
        ),
        (
            json!({"validations":[{"expression":"true","messageExpression":"object.spec.text"}]}),
            &[],
        ),
        (
            json!({"validations":[{"expression":"object.metadata.name == 'a'","messageExpression":"object.spec.text"}]}),
            &[],
        ),
        (
            json!({"auditAnnotations":[{"key":"k","valueExpression":"object.spec.text"}],"validations":[{"expression":"true"}]}),
            &[],
        ),
        (
            json!({"paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"params.data.a == 'b'"}]}),
            &[[
                "absent-field",
                "`params.data` may be absent: CREATE of a Box without params.data fails with `no such key: data`",
                "add a guard: `has(params.data) && has(params.data.a) && ...`, or write `params.?data.?a.orValue('')`",
            ]],
        ),
        (
            json!({"paramKind":{"apiVersion":"example.com/v1","kind":"Box"},"validations":[{"expression":"params.spec.text == 'b'"}]}),
            &[[
                "absent-field",
                "`params.spec.text` may be absent: CREATE of a Box without params.spec.text fails with `no such key: text`",
                "add a guard: `has(params.spec.text) && ...`, or write `params.spec.?text.orValue('')`",
            ]],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(found(BOX, &["CREATE"], &spec), expected, "{spec}");
    }
}

/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams`.
#[test]
fn param_ref_with_wrong_scope_is_found() {
    let nodes = ("", "v1", "nodes");
    let pods = ("", "v1", "pods");
    let named = json!({"name": "a", "parameterNotFoundAction": "Allow"});
    let within = json!({"name": "a", "namespace": "default", "parameterNotFoundAction": "Allow"});
    let of_namespaced = "paramKind ConfigMap is namespaced, but paramRef has no namespace and Node is cluster-scoped: \
                         every request for nodes fails";
    let of_cluster = "paramKind Namespace is cluster-scoped, but paramRef has a namespace: every request that the \
                      binding matches fails";
    for (resource, kind, reference, expected) in [
        (pods, "ConfigMap", &named, None),
        (pods, "ConfigMap", &within, None),
        (nodes, "ConfigMap", &within, None),
        (nodes, "ConfigMap", &named, Some((of_namespaced, "Node"))),
        (pods, "Namespace", &named, None),
        (pods, "Namespace", &within, Some((of_cluster, "Pod"))),
        (nodes, "Namespace", &within, Some((of_cluster, "Node"))),
    ] {
        for (failure_policy, consequence) in [
            ("Fail", Consequence::Denied),
            ("Ignore", Consequence::LetThrough),
        ] {
            let spec = json!({
                "failurePolicy": failure_policy,
                "paramKind": {"apiVersion": "v1", "kind": kind},
                "validations": [{"expression": "true"}],
            });
            let binding = json!({
                "metadata": {"name": "b"},
                "spec": {"policyName": "p", "paramRef": reference, "validationActions": ["Deny"]},
            });
            let binding = serde_json::from_value(binding).unwrap();
            let cache = ObjectCache::default();
            let policy = policy(resource, &["CREATE"], &spec);
            let mismatch = scope_mismatch(&policy, &binding, &PLAIN.context(&cache));
            let actual = mismatch.as_ref().map(|it| (&*it.gvk.kind, it.consequence));
            let wanted = expected.map(|(_, kind)| (kind, consequence));
            assert_eq!(actual, wanted, "{resource:?} {kind} {reference}");
            if let (Some(mismatch), Some((message, _))) = (mismatch, expected) {
                assert!(mismatch.message.contains(message), "{}", mismatch.message);
            }
        }
    }
}
