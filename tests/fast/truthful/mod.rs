//! Tests the type checking profile `truthful`. There is a pair of expressions for each rule of the profile. The first
//! one cannot fail, but upstream warns about it. The second one is similar and can fail.
//!
//! The API server's evaluator (`parity/oracle admit`) evaluates the first expression of each pair without an error.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking, and helpers take arguments by value"
)]

mod values;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};
use vap_status_controller::policy::analysis::differences::{differences, rules};
use vap_status_controller::policy::analysis::{Profile, TypeCheck, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::status::warnings::warnings;

fn kind(kind: &str, spec: Value) -> Value {
    json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": kind}],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {
                "name": {"type": "string"},
                "generateName": {"type": "string"},
                "creationTimestamp": {"type": "string", "format": "date-time"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
            "spec": spec,
        },
    })
}

/// Returns an OpenAPI document with Pod, Deployment and Scale. Scale is the kind of `deployments/scale`.
fn document() -> Vec<u8> {
    let container = json!({"type": "object", "properties": {
        "image": {"type": "string"},
        "protocol": {"type": "string", "default": "TCP"},
        "memory": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
        "if": {"type": "string"},
        "port": {"x-kubernetes-int-or-string": true},
        "ratio": {"type": "number"},
        "resources": {"type": "object", "properties": {
            "limits": {"type": "object", "additionalProperties": {"description": "Quantity"}},
        }},
        "secretRef": {"type": "object", "properties": {"name": {"type": "string"}}},
        "ports": {"type": "array", "items": {"type": "object", "properties": {
            "containerPort": {"type": "integer"},
        }}},
    }});
    let pod_spec = json!({"type": "object", "properties": {
        "containers": {"type": "array", "items": container},
        "initContainers": {"type": "array", "items": container},
        "paused": {"type": "boolean"},
        "hostNetwork": {"type": "boolean"},
        "replicas": {"type": "integer"},
        "sealed": {"type": "object"},
        "extension": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension"},
    }});
    let template = json!({"type": "object", "required": ["template"], "properties": {
        "replicas": {"type": "integer"},
        "template": {"type": "object", "properties": {"spec": pod_spec}},
    }});
    let scale = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let path = |kind: &str| {
        json!({"get": {"x-kubernetes-group-version-kind":
        {"group": "apps", "version": "v1", "kind": kind}}})
    };
    let namespaced = "/apis/apps/v1/namespaces/{namespace}";
    let document = json!({
        "paths": {
            format!("{namespaced}/pods"): path("Pod"),
            format!("{namespaced}/deployments"): path("Deployment"),
            format!("{namespaced}/deployments/{{name}}/scale"): path("Scale"),
        },
        "components": {"schemas": {
            "Pod": kind("Pod", pod_spec), "Deployment": kind("Deployment", template),
            "Scale": kind("Scale", scale),
            "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
            "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        }},
    });
    document.to_string().into_bytes()
}

/// Type-checks a policy with `rule` in the profiles `upstream` and `truthful`. Returns both outcomes.
fn outcomes(rule: Value, spec: &Value) -> (TypeCheck, TypeCheck) {
    let compiled = compiled(rule, spec);
    assert_eq!(compiled.findings(), []);
    outcomes_of(&compiled)
}

fn compiled(rule: Value, spec: &Value) -> CompiledPolicy {
    let mut spec = spec.clone();
    let mut constraints =
        json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"]});
    for (key, value) in rule.as_object().unwrap() {
        constraints[key] = value.clone();
    }
    spec["matchConstraints"]["resourceRules"] = json!([constraints]);
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    CompiledPolicy::new(&policy)
}

fn outcomes_of(compiled: &CompiledPolicy) -> (TypeCheck, TypeCheck) {
    let mut offline = Offline::default();
    offline.add_document(None, &document()).unwrap();
    let (schemas, mapper) = offline.finish();
    for difference in differences(compiled, &mapper, &schemas) {
        assert!(difference.rule.is_some(), "{difference:?}");
    }
    let check = |profile| type_check(compiled, &mapper, &schemas, profile);
    (check(Profile::Upstream), check(Profile::Truthful))
}

/// Returns the number of warnings for a policy for pods and deployments, in the profiles `upstream` and `truthful`.
fn n_warnings(spec: &Value) -> (usize, usize) {
    let (upstream, truthful) = outcomes(json!({"resources": ["pods", "deployments"]}), spec);
    (upstream.findings.len(), truthful.findings.len())
}

/// Returns the warnings for a policy with `rule` and one validation, in the profile `truthful`.
fn warnings_of(rule: Value, expression: &str) -> Vec<String> {
    let spec = json!({"validations": [{"expression": expression}]});
    let (_, truthful) = outcomes(rule, &spec);
    let warnings = warnings(&truthful.findings).into_iter();
    warnings.map(|warning| warning.text()).collect()
}

#[track_caller]
fn check_on(rule: &Value, expression: &str, wanted: &[&str]) {
    let warnings = warnings_of(rule.clone(), expression);
    let [warning] = &*warnings else {
        assert!(
            warnings.is_empty() && wanted.is_empty(),
            "{expression}: {warnings:?}"
        );
        return;
    };
    assert!(!wanted.is_empty(), "{expression}: {warning}");
    for part in wanted {
        assert!(warning.contains(part), "{expression}: {warning}");
    }
}

#[track_caller]
fn check_false(expression: &str) {
    let counts = n_warnings(&json!({"validations": [{"expression": expression}]}));
    assert_eq!(counts, (1, 0), "{expression}");
}

#[track_caller]
fn check_true(expression: &str) {
    let (_, truthful) = n_warnings(&json!({"validations": [{"expression": expression}]}));
    assert_eq!(truthful, 1, "{expression}");
}

#[test]
fn rules_have_unique_name_and_reason() {
    let names: Vec<_> = rules().map(|(name, _)| name).collect();
    assert!(names.len() >= 10);
    assert!(rules().all(|(name, reason)| !name.is_empty() && reason.len() > 20));
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn comparison_of_kind_acts_as_guard() {
    check_false(
        "object.kind == 'Pod' ? object.spec.hostNetwork == true : object.spec.template.spec.hostNetwork == true",
    );
    check_false("object.kind != 'Pod' || object.spec.hostNetwork");
    check_false("object.spec.hostNetwork || object.kind != 'Pod'");
    check_false("!(object.kind in ['Pod']) || object.spec.hostNetwork");
    check_false(
        "['Pod', 'Job'].exists(k, k == object.kind) ? object.spec.hostNetwork == true : true",
    );
    check_false("request.resource.resource != 'pods' || object.spec.hostNetwork");
    check_false("request.kind.kind != 'Pod' || object.spec.hostNetwork");
    check_true("object.kind == 'Pod' || object.spec.hostNetwork");
    check_true("object.kind != 'Pod' ? object.spec.hostNetwork == true : true");
    check_true("object.kind in ['Pod', 'Deployment'] && object.spec.hostNetwork");
}

#[test]
fn variables_and_match_conditions_act_as_guards() {
    let in_variable = json!({
        "variables": [
            {"name": "isPod", "expression": "object.kind == 'Pod'"},
            {"name": "spec", "expression": "variables.isPod ? object.spec : object.spec.template.spec"},
            {"name": "pod", "expression": "object.spec.hostNetwork"},
        ],
        "validations": [{"expression": "variables.spec.hostNetwork && (!variables.isPod || variables.pod)"}],
    });
    assert_eq!(n_warnings(&in_variable).1, 0);
    let in_condition = json!({
        "matchConditions": [{"name": "pods", "expression": "object.kind == 'Pod'"}],
        "validations": [{"expression": "object.spec.hostNetwork == true"}],
    });
    assert_eq!(n_warnings(&in_condition), (1, 0));
    let unguarded = json!({
        "variables": [{"name": "pod", "expression": "object.spec.hostNetwork"}],
        "validations": [{"expression": "variables.pod == true"}],
    });
    assert_eq!(n_warnings(&unguarded).1, 1);
    let condition_itself = json!({
        "matchConditions": [{"name": "m", "expression": "object.spec.replicsa > 1"}],
        "validations": [{"expression": "true"}],
    });
    assert_eq!(n_warnings(&condition_itself), (0, 1));
}

#[test]
fn presence_test_acts_as_guard() {
    check_false("has(object.spec.template)");
    check_false("!has(object.spec.template) || object.spec.template.spec.hostNetwork");
    check_false("object.spec.?template.hasValue()");
    check_true("has(object.spec.template.spec) && object.spec.template.spec.hostNetwork");
}

#[test]
fn equality_of_different_types_has_no_warning() {
    check_false("object.spec.replicas == null");
    check_false("object.spec.replicas != 'one'");
    check_false("object.metadata.name in [1, 2]");
    check_true("object.spec.replicas > 'one'");
    check_true("object.spec.replicas in object.metadata.name");
}

#[test]
fn lists_of_mixed_types_have_no_warning() {
    check_false(
        "object.kind != 'Pod' || size(object.spec.containers + object.spec.initContainers) > 0",
    );
    check_true("object.metadata.labels + object.metadata.labels == {}");
}

#[test]
fn fields_without_type_have_no_warning() {
    check_false(
        "object.kind != 'Pod' || object.spec.containers.all(c, c.resources.limits.cpu != null)",
    );
    check_true(
        "object.kind != 'Pod' || object.spec.containers.all(c, c.resources.limit.cpu != null)",
    );
}

#[test]
fn objects_can_be_used_as_maps() {
    check_false("'replicas' in object.spec");
    check_false("object.spec['replicas'] == 1");
    check_false("object.spec.all(field, field != 'paused')");
    check_true("object.spec.replicas.all(r, r > 1)");
}

#[test]
fn timestamp_fields_have_type_string() {
    check_false("object.metadata.creationTimestamp.startsWith('2')");
    check_true("object.metadata.creationTimestamp > timestamp('2024-01-01T00:00:00Z')");
}

#[test]
fn authorizer_has_request_resource() {
    check_false("authorizer.requestResource.check('get').allowed()");
}

#[test]
fn value_of_several_possible_types_fails_only_if_all_fail() {
    // A Pod with `secretRef` is possible, and `all` fails for it.
    check_true("object.kind != 'Pod' || object.spec.containers.all(c, c.?secretRef.orValue(true))");
    check_false_to_us(
        "object.kind != 'Pod' || object.spec.containers.all(c, c.?secretRef.?name.orValue(1) != 2)",
    );
    // The type checker accepts an argument of `orValue` whose type differs from the type of the absent value.
    check_false_to_us("object.spec.?replicas.orValue('') > 1");
    check_true("object.spec.?replicas.orValue('').startsWith('a')");
    check_false_to_us("(has(object.spec.replicas) ? object.spec.replicas : 'none') > 1 || true");
    check_true(
        "(object.metadata.name == 'a' ? object.spec : object.metadata.name).startsWith('a')",
    );
    check_false_to_us("type(object.spec) == map || object.spec.startsWith('a')");
}

/// Asserts that the profile `truthful` has no warning. The profile `upstream` may have warnings.
#[track_caller]
fn check_false_to_us(expression: &str) {
    let (_, truthful) = n_warnings(&json!({"validations": [{"expression": expression}]}));
    assert_eq!(truthful, 0, "{expression}");
}

#[test]
fn expressions_after_unavoidable_failure_are_not_reported() {
    let check = |expression: &str, wanted: &[&str]| {
        let spec = json!({
            "variables": [{"name": "tls", "expression": "object.spec.tls"}],
            "validations": [{"expression": expression}],
        });
        let (_, truthful) = outcomes(json!({"resources": ["pods"]}), &spec);
        let fields: Vec<_> = truthful
            .findings
            .iter()
            .map(|finding| &*finding.field_ref)
            .collect();
        assert_eq!(fields, wanted, "{expression}");
    };
    let (validation, variable) = (
        "spec.validations[0].expression",
        "spec.variables[0].expression",
    );
    // The variable might not be evaluated: it is read within an iteration over a list that may be absent, or in one
    // branch.
    check(
        "object.rules.all(r, variables.tls.exists(t, t == r))",
        &[validation],
    );
    check(
        "object.rules.paths.all(r, variables.tls.exists(t, t == r))",
        &[validation],
    );
    check("object.rules ? variables.tls == 'a' : true", &[validation]);
    // `||` evaluates its second operand even if the first one fails, so the variable is evaluated.
    check(
        "object.rules.all(r, r == 'a') || variables.tls == 'b'",
        &[variable, validation],
    );
    check(
        "object.spec.containers.all(c, c.image == variables.tls)",
        &[variable],
    );
    check(
        "['a'].all(r, object.rules.all(q, variables.tls == q + r))",
        &[validation],
    );
}

#[test]
fn variables_keep_their_types() {
    let check = |expression: &str, wanted: usize| {
        let spec = json!({
            "variables": [
                {"name": "pod", "expression": "object.kind == 'Pod' ? object.spec : object.spec.template.spec"},
                {"name": "all", "expression": "variables.pod.containers + variables.pod.?initContainers.orValue([])"},
                {"name": "names", "expression": "variables.all.map(c, {'image': dyn(c.image), 'n': dyn(size(c.ports))})"},
            ],
            "validations": [{"expression": expression}],
        });
        assert_eq!(n_warnings(&spec).1, wanted, "{expression}");
    };
    check("variables.pod.hostNetwork == true", 0);
    check("variables.pod.hostNetwrok == true", 1);
    check("variables.all.all(c, c.image.endsWith('a'))", 0);
    check("variables.all.all(c, c.imaeg.endsWith('a'))", 1);
    check(
        "variables.all.exists(c, c.ports.exists(p, p.containerPort > 80))",
        0,
    );
    check(
        "variables.all.exists(c, c.ports.exists(p, p.containerPort.startsWith('80')))",
        1,
    );
    check("variables.names.all(n, n.image != '' && n.n > 0)", 0);
    check("variables.names.all(n, n.name != '')", 1);
    check("variables.names.all(n, n.n.startsWith('a'))", 1);
    check(
        "has(variables.pod) && variables.?pod.?hostNetwork.orValue(false)",
        0,
    );
}

#[test]
fn object_types_depend_on_operations_of_rule() {
    let all = json!({"resources": ["deployments"], "operations": ["CREATE", "UPDATE", "DELETE"]});
    let failing = &["undefined field 'x'"][..];
    check_on(
        &all,
        "request.operation == 'DELETE' ? oldObject.spec.replicas > 0 : object.spec.replicas > 0",
        &[],
    );
    check_on(
        &all,
        "request.operation != 'CREATE' || object.spec.x == 1",
        failing,
    );
    check_on(
        &all,
        "request.operation == 'CONNECT' ? object.spec.x == 1 : true",
        &[],
    );
    check_on(&all, "object == null || object.spec.x == 1", failing);
    check_on(&all, "oldObject == null || oldObject.spec.x == 1", failing);
    // The expression fails only for DELETE, so it is not reported.
    check_on(&all, "object.spec.replicas > 0", &[]);
    let create = json!({"resources": ["deployments"], "operations": ["CREATE"]});
    check_on(&create, "oldObject == null || oldObject.spec.x == 1", &[]);
    check_on(
        &create,
        "request.operation == 'UPDATE' ? object.spec.x == 1 : true",
        &[],
    );
    check_on(
        &create,
        "oldObject.spec.replicas > 0",
        &["this value is null in every request"],
    );
    check_on(
        &create,
        "has(object.spec.paused) || oldObject.spec.replicas > 0",
        &["WARNING"],
    );
    let delete = json!({"resources": ["deployments"], "operations": ["DELETE"]});
    check_on(
        &delete,
        "object.spec.replicas > 0",
        &["this value is null in every request"],
    );
    check_on(&delete, "oldObject.spec.replicas > 0", &[]);
    check_on(&delete, "object != null && object.spec.x == 1", &[]);
}

#[test]
fn subresource_with_own_kind_is_checked() {
    let both = json!({"resources": ["deployments", "deployments/scale"], "operations": ["UPDATE"]});
    check_on(&both, "object.spec.replicas > 1", &[]);
    check_on(
        &both,
        "object.spec.replicas > 'a'",
        &["Kind=Scale: ERROR", "Kind=Deployment: ERROR"],
    );
    check_on(
        &both,
        "object.spec.template.spec.hostNetwork == true",
        &["Kind=Scale: ERROR"],
    );
    check_on(
        &both,
        "request.subResource == 'scale' || object.spec.template.spec.hostNetwork",
        &[],
    );
    check_on(
        &both,
        "has(request.subResource) || object.spec.template.spec.hostNetwork",
        &[],
    );
    check_on(
        &both,
        "request.?subResource.orValue('') == 'scale' || object.spec.template.spec.hostNetwork",
        &[],
    );
    let (_, outcome) = outcomes(both, &json!({"validations": [{"expression": "true"}]}));
    assert_eq!(outcome.subresource_kinds.len(), 1);
    assert_eq!(outcome.checked.len(), 2);
}

#[test]
fn failure_for_wildcard_is_reported_only_if_all_kinds_fail() {
    let wild = json!({"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]});
    check_on(&wild, "object.spec.hostNetwork == true", &[]);
    check_on(
        &wild,
        "has(object.spec.hostNetwork) && object.spec.hostNetwork",
        &[],
    );
    check_on(
        &wild,
        "object.metadata.nmae != ''",
        &["Kind=Pod: ERROR", "fails for all 2 kinds"],
    );
    let (_, outcome) = outcomes(wild, &json!({"validations": [{"expression": "true"}]}));
    assert_eq!(outcome.checked, []);
    assert_eq!(outcome.by_wildcard.checked.len(), 2);
    // The rule lists this kind by name, so the author intended it. A failure for this kind alone is reported.
    let named = json!({"resources": ["*", "deployments"]});
    check_on(
        &named,
        "object.spec.hostNetwork == true",
        &["Kind=Deployment: ERROR"],
    );
}

#[test]
fn excluded_resources_are_not_checked() {
    let check = |excluded: Value, wanted: usize| {
        let spec = json!({
            "matchConstraints": {"excludeResourceRules": [excluded]},
            "validations": [{"expression": "object.spec.replicas > 1 || object.spec.x == 1"}],
        });
        let (_, outcome) = outcomes(json!({"resources": ["pods", "deployments"]}), &spec);
        assert_eq!(outcome.checked.len(), wanted, "{:?}", outcome.checked);
    };
    let rule = |operation: &str, names: Value| {
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["pods"],
            "operations": [operation], "resourceNames": names})
    };
    check(rule("*", json!([])), 1);
    check(rule("CREATE", json!([])), 1);
    check(rule("UPDATE", json!([])), 2);
    check(rule("*", json!(["one"])), 2);
}

#[test]
fn presence_test_of_unknown_field_has_a_warning() {
    let pods = json!({"resources": ["pods"]});
    let vain = &[
        "Kind=Pod: WARNING: <input>:1:4: undefined field 'template'",
        "always false",
    ];
    check_on(
        &pods,
        "has(object.spec.template) && object.spec.template.spec.hostNetwork",
        vain,
    );
    let both = json!({"resources": ["pods", "deployments"]});
    check_on(
        &both,
        "has(object.spec.template) && object.spec.template.spec.hostNetwork",
        &[],
    );
    let all = "object.spec.containers.all(c, has(c.imge) && c.image != '')";
    check_on(&pods, all, &["WARNING: <input>:1:34"]);
}

#[test]
fn presence_test_of_required_field_is_always_true() {
    // A Deployment always has `template`, so only pods reach the other branch.
    check_false("has(object.spec.template) ? true : object.spec.hostNetwork == true");
    check_false_to_us(
        "(!has(object.spec.template) && object.spec.hostNetwork) || has(object.spec.template)",
    );
}

#[test]
fn absorbed_errors_are_not_reported() {
    check_false("object.spec.hostNetwork || true");
    check_false("!(object.spec.hostNetwork && false)");
    check_false("['Pod', 'Deployment'].exists(k, k == object.kind) || object.spec.hostNetwork");
    check_true("object.spec.hostNetwork || object.metadata.name == 'a'");
}

/// The API server rejects expressions that it cannot plan, even if the invalid part is never evaluated. Upstream's type
/// checker does not plan expressions, so it does not report them.
#[test]
fn planning_errors_are_reported() {
    let check = |expression: &str, wanted: &str| {
        let spec = json!({"validations": [{"expression": expression}]});
        let compiled = compiled(json!({"resources": ["deployments"]}), &spec);
        assert_eq!(compiled.findings().len(), 1, "{expression}");
        let (upstream, truthful) = outcomes_of(&compiled);
        assert_eq!(upstream.findings, [], "{expression}");
        let [warning] = &*warnings(&truthful.findings) else {
            panic!("{expression}: {:?}", truthful.findings);
        };
        assert!(
            warning.text().contains(wanted),
            "{expression}: {}",
            warning.text()
        );
    };
    check_false_to_us("true || int('1') == 1");
    check(
        "true || int('x') == 1",
        "ERROR: <input>:1:12: program instantiation failed: type conversion error from 'string' to 'int'",
    );
    check_false_to_us("object.metadata.name.find('a') == ''");
    check(
        "object.metadata.name.find('(') == ''",
        "ERROR: <input>:1:26: program instantiation failed: error parsing regexp: missing closing ): `(`",
    );
    check_false_to_us("object.metadata.labels[dyn('a')] == ''");
    check(
        "object.metadata.labels[dyn(null)] == ''",
        "ERROR: <input>:1:23: program instantiation failed: invalid qualifier type: types.Null",
    );
}

#[test]
fn variables_of_request_have_types() {
    check_false_to_us("namespaceObject.metadata.name == 'a'");
    check_true("namespaceObject.metadata.creationTimestamp < timestamp('2024-01-01T00:00:00Z')");
    check_true("namespaceObject.metadata.UID != ''");
    check_false_to_us("request.userInfo.groups.exists(g, g == 'a') && !request.dryRun");
    check_true("request.userInfo.groups.exists(g, g > dyn(1))");
}

#[test]
fn absent_optionals_have_no_warning() {
    check_false("object.spec.volumes.orValue([]).all(v, v != '') || true");
    check_false("object.spec.replicas.orValue(1) == 1");
    check_true("object.spec.replicas.hasValue()");
    check_true("object.spec.?containers.optMap(c, c.startsWith('a')).orValue(true)");
    check_false_to_us("optional.none().hasValue() ? object.spec.x == 1 : true");
    check_false_to_us("optional.of('a').orValue('b') == 'a' || object.spec.x == 1");
}

#[test]
fn message_is_checked_only_if_validation_can_fail() {
    let check = |expression: &str, wanted: usize| {
        let spec = json!({"validations": [{
            "expression": expression,
            "messageExpression": "'replicas: ' + string(object.spec.replicas) + object.spec.template.spec.paused",
        }]});
        assert_eq!(n_warnings(&spec).1, wanted, "{expression}");
    };
    check("object.metadata.name == 'a'", 1);
    check("object.metadata.name == 'a' || true", 0);
}

#[test]
fn hostile_expressions_are_checked_in_bounded_time() {
    let mut nested = "object.spec.containers".to_owned();
    for _ in 0..12 {
        nested = format!("{nested}.map(c, [dyn(c), dyn([c])]).filter(c, c != [])");
    }
    let deep = format!("{}object.spec{}", "[".repeat(100), "]".repeat(100));
    let loops = (0..10).fold("true".to_owned(), |body, n| {
        format!("object.spec.containers.all(c{n}, {body})")
    });
    let mut variables = vec![json!({"name": "v0", "expression": "[object.spec]"})];
    for n in 1..60 {
        let last = n - 1;
        variables.push(json!({"name": format!("v{n}"),
            "expression": format!("{{'a': dyn(variables.v{last}), 'b': dyn([variables.v{last}]), 'c': dyn(variables.v{last})}}")}));
    }
    let spec = json!({
        "variables": variables,
        "validations": [
            {"expression": format!("{nested} != []")},
            {"expression": format!("{deep} != []")},
            {"expression": loops},
            {"expression": "variables.v59.a.a.a != []"},
        ],
    });
    let timer = crate::processor::Timer::begin();
    n_warnings(&spec);
    assert!(timer.used() < std::time::Duration::from_secs(20));
}

/// Upstream evaluates match conditions without the variable `namespaceObject`.
///
/// Source: `matchconditions/matcher.go`, `Match`; observed with `oracle admit`.
#[test]
fn namespace_object_is_null_in_match_conditions() {
    let check = |condition: &str, expression: &str| {
        let spec = json!({
            "matchConditions": [{"name": "m", "expression": condition}],
            "validations": [{"expression": expression}],
        });
        let (_, truthful) = outcomes(json!({"resources": ["pods"]}), &spec);
        let findings = truthful.findings.into_iter();
        findings
            .map(|warning| warning.field_ref)
            .collect::<Vec<_>>()
    };
    let name = "namespaceObject.metadata.name != 'a'";
    assert_eq!(check(name, "true"), ["spec.matchConditions[0].expression"]);
    assert_eq!(check("true", name), [""; 0]);
    // The match condition is always false, so no other expression is evaluated.
    assert_eq!(
        check("namespaceObject != null", "object.spec.x == 1"),
        [""; 0]
    );
    let failing = ["spec.validations[0].expression"];
    assert_eq!(
        check("namespaceObject == null", "object.spec.x == 1"),
        failing
    );
}

/// A validation that does not compile denies no requests, so its message is never evaluated.
#[test]
fn messages_of_validations_that_do_not_compile_are_skipped() {
    let spec = json!({"validations": [
        {"expression": "'a'", "messageExpression": "object.spec.nothing + ''"},
    ]});
    let (_, truthful) = outcomes_of(&compiled(json!({"resources": ["pods"]}), &spec));
    assert_eq!(truthful.findings, []);
}

/// A wildcard matches several kinds, and a guard excludes some of them. A failure is reported only if the expression
/// fails for all remaining kinds.
#[test]
fn wildcard_failure_after_guard_is_reported_if_all_remaining_kinds_fail() {
    let wild = json!({"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]});
    let one = "only one of the kinds matched by wildcards has requests that reach this expression";
    for guarded in [
        "object.kind == 'Pod' ? object.spec.contianers.size() > 0 : true",
        "object.kind != 'Pod' || object.spec.contianers.size() > 0",
        "has(object.spec.containers) ? object.spec.contianers.size() > 0 : true",
    ] {
        check_on(
            &wild,
            guarded,
            &["Kind=Pod: ERROR", "undefined field 'contianers'", one],
        );
    }
    check_on(
        &wild,
        "object.spec.containers.size() > 0 && object.metadata.name != ''",
        &[],
    );
    let warnings = warnings_of(wild, "object.metadata.nmae != ''");
    let [warning] = &*warnings else {
        panic!("{warnings:?}")
    };
    // The warning contains a source excerpt only for the first kind. A note about all kinds follows.
    assert_eq!(warning.matches("ERROR: ").count(), 2, "{warning}");
    assert!(
        warning.ends_with("^\nthe evaluation fails for all 2 kinds that the wildcards match\n"),
        "{warning}"
    );
}
