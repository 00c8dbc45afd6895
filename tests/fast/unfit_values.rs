//! Tests findings of `kubectl vap check` about values for which a call fails: invalid strings, short lists, and zero
//! divisors. Each finding must have a witness.

use serde_json::json;

use crate::runtime_errors::{DEPLOYMENT, POD, fails, holds, policy, runtime_errors, shown};

const SERVICE: (&str, &str, &str) = ("", "v1", "services");
const CONFIG_MAP: (&str, &str, &str) = ("", "v1", "configmaps");

/// Returns the findings for a validation. A match condition of the policy requires that the object has a label.
fn with_label(expression: &str) -> Vec<String> {
    let spec = format!(
        "  matchConditions:\n  - {{name: m, expression: \"'n' in object.metadata.?labels.orValue({{}})\"}}\n  \
         validations:\n  - expression: {}\n",
        json!(expression)
    );
    shown(&runtime_errors(&policy(DEPLOYMENT, "CREATE", &spec), &[]))
}

#[test]
fn conversions_of_unconstrained_strings_are_reported() {
    let label = ["failing-conversion object.metadata.labels.n"];
    for expression in [
        "int(object.metadata.labels['n']) > 0",
        "quantity(object.metadata.labels.n).isInteger()",
        "duration(object.metadata.labels.n) < duration('1h')",
        "timestamp(object.metadata.labels.n) > timestamp('2026-01-01T00:00:00Z')",
        "semver(object.metadata.labels.n).major() > 1",
        "ip(object.metadata.labels.n).family() == 4",
        "object.metadata.labels.n.startsWith('v') && int(object.metadata.labels.n) > 0",
        "object.metadata.labels.n.matches('^[a-z0-9]+$') && int(object.metadata.labels.n) > 0",
        "object.metadata.labels.n.substring(3) == 'x'",
        "bool(object.metadata.?labels[?'n'].orValue('true'))",
    ] {
        assert_eq!(with_label(expression), label, "{expression}");
    }
    let annotation =
        "object.metadata.?annotations[?'q'].optMap(q, quantity(q).isInteger()).orValue(true)";
    let findings = ["failing-conversion object.metadata.annotations.q"];
    fails(POD, "CREATE", annotation, &findings);
    fails(
        CONFIG_MAP,
        "CREATE",
        "!has(object.data) || object.data.all(k, v, int(v) > 0)",
        &["failing-conversion object.data.example"],
    );
}

#[test]
fn guarded_or_formatted_strings_are_not_reported() {
    for expression in [
        "object.metadata.labels.n.matches('^[0-9]+$') && int(object.metadata.labels.n) > 0",
        "isQuantity(object.metadata.labels.n) && quantity(object.metadata.labels.n).isInteger()",
        "!isIP(object.metadata.labels.n) || ip(object.metadata.labels.n).family() == 4",
        "object.metadata.labels.n in ['1', '2'] && int(object.metadata.labels.n) > 0",
        "object.metadata.labels.n == '1' ? int(object.metadata.labels.n) == 1 : true",
        "object.metadata.labels.n.size() > 3 && object.metadata.labels.n.substring(3) == 'x'",
        "int(object.spec.replicas) > 1",
    ] {
        assert_eq!(with_label(expression), [""; 0], "{expression}");
    }
    for expression in [
        "object.spec.containers.all(c, !has(c.resources.limits) || !('cpu' in c.resources.limits) || \
         quantity(c.resources.limits.cpu).isGreaterThan(quantity('1')))",
        "timestamp(object.metadata.creationTimestamp) < timestamp('2030-01-01T00:00:00Z')",
        "!has(object.status.podIP) || ip(object.status.podIP).family() == 4",
    ] {
        holds(POD, "CREATE, UPDATE", expression);
    }
    holds(
        SERVICE,
        "CREATE",
        "!has(object.spec.clusterIP) || object.spec.clusterIP == 'None' || ip(object.spec.clusterIP).family() == 4",
    );
}

#[test]
fn conversions_of_params_are_not_reported() {
    let spec = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n  - expression: \
                \"!has(params.data) || !('max' in params.data) || object.spec.replicas <= int(params.data['max'])\"\n";
    let findings = runtime_errors(&policy(DEPLOYMENT, "CREATE", spec), &[]);
    assert_eq!(shown(&findings), [""; 0]);
}

/// The API server accepts integers and strings for the field. The calls accept only one of the types.
#[test]
fn int_or_string_values_are_reported() {
    const UNAVAILABLE: &str = "object.spec.strategy.rollingUpdate.maxUnavailable";
    let guard = "!has(object.spec.strategy.rollingUpdate) || ";
    let findings = ["int-or-string object.spec.strategy.rollingUpdate.maxUnavailable"];
    for call in [
        "X <= 1",
        "X + 1 < 3",
        "int(X) > 0",
        "X.endsWith('%')",
        "X / 2 == 0",
        "-X < 0",
        "quantity(X).isInteger()",
    ] {
        let expression = format!("{guard}{}", call.replace('X', UNAVAILABLE));
        fails(DEPLOYMENT, "CREATE", &expression, &findings);
    }
    for call in [
        "type(X) == int && X <= 1",
        "(type(X) == string ? X.endsWith('%') : X <= 1)",
        "X == 1",
        "X != '25%'",
        "string(X).endsWith('%')",
        "X == 1 || X == '25%'",
    ] {
        let expression = format!("{guard}{}", call.replace('X', UNAVAILABLE));
        holds(DEPLOYMENT, "CREATE", &expression);
    }
    let port = "object.spec.containers.all(c, !has(c.livenessProbe) || !has(c.livenessProbe.httpGet) || \
                c.livenessProbe.httpGet.port > 1024)";
    let findings = ["int-or-string object.spec.containers[0].livenessProbe.httpGet.port"];
    fails(POD, "CREATE", port, &findings);
}

#[test]
fn derived_lists_with_too_few_elements_are_reported() {
    let list = ["absent-element object.spec.template.spec.containers"];
    for expression in [
        "object.spec.template.spec.containers.filter(c, c.name == 'main')[0].image != ''",
        "object.spec.template.spec.containers.map(c, c.image)[1] != ''",
        "object.spec.template.spec.containers.filter(c, c.name == 'main').map(c, c.image)[0] != ''",
        "(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).filter(c, c.name \
         == 'main')[0].image != ''",
    ] {
        fails(DEPLOYMENT, "CREATE", expression, &list);
    }
    for expression in [
        "object.spec.template.spec.containers.all(c, object.spec.template.spec.containers.filter(d, d.name == \
         c.name)[0].image != '')",
        "object.spec.template.spec.containers.map(c, c.image)[0] != ''",
        "!object.spec.template.spec.containers.exists(c, c.name == 'main') || \
         object.spec.template.spec.containers.filter(c, c.name == 'main')[0].image != ''",
        "object.spec.template.spec.containers.filter(c, c.name == 'main').size() == 0 || \
         object.spec.template.spec.containers.filter(c, c.name == 'main')[0].image != ''",
        "object.spec.template.spec.containers.filter(c, c.name == 'main')[?0].?image.orValue('') != ''",
    ] {
        holds(DEPLOYMENT, "CREATE", expression);
    }
}

#[test]
fn splits_with_too_few_parts_are_reported() {
    fails(
        DEPLOYMENT,
        "CREATE",
        "object.metadata.name.split('-')[1] == 'x'",
        &["absent-element object.metadata.name"],
    );
    fails(
        DEPLOYMENT,
        "CREATE",
        "object.spec.template.spec.containers.all(c, c.image.split(':')[1] != 'latest')",
        &["absent-element object.spec.template.spec.containers[0].image"],
    );
    fails(
        DEPLOYMENT,
        "CREATE",
        "request.userInfo.username.split(':')[2] == 'x'",
        &["absent-element request.userInfo.username"],
    );
    for expression in [
        "object.metadata.name.split('-')[0] == 'x'",
        "size(object.metadata.name.split('-')) > 1 && object.metadata.name.split('-')[1] == 'x'",
        "object.metadata.name.contains('-') && object.metadata.name.split('-')[1] == 'x'",
        "object.spec.template.spec.containers.all(c, c.image.split('@').size() == 1 || c.image.split('@')[1] != '')",
        "!request.userInfo.username.startsWith('system:serviceaccount:') || request.userInfo.username.split(':')[3] == 'x'",
    ] {
        holds(DEPLOYMENT, "CREATE", expression);
    }
}

#[test]
fn zero_divisors_are_reported() {
    for expression in [
        "10 / object.spec.replicas > 1",
        "100 % object.spec.replicas == 0",
        "object.spec.replicas >= 0 && 10 / object.spec.replicas > 1",
    ] {
        let findings = ["division-by-zero object.spec.replicas"];
        fails(DEPLOYMENT, "CREATE", expression, &findings);
    }
    fails(
        DEPLOYMENT,
        "CREATE",
        "10 / size(object.metadata.?labels.orValue({})) > 1",
        &["division-by-zero object.metadata.labels"],
    );
    for expression in [
        "object.spec.replicas > 0 && 10 / object.spec.replicas > 1",
        "object.spec.replicas == 0 || 10 / object.spec.replicas > 1",
        "object.spec.replicas / 10 < 5",
        "10 / size(object.spec.template.spec.containers) > 1",
        "10 / object.spec.progressDeadlineSeconds < 5",
    ] {
        holds(DEPLOYMENT, "CREATE", expression);
    }
}

#[test]
fn absent_fields_of_services_are_reported() {
    let create = "CREATE, UPDATE";
    for (expression, found) in [
        (
            "object.spec.ports.all(p, p.port > 1)",
            "absent-field object.spec.ports",
        ),
        (
            "object.spec.clusterIP != 'None'",
            "absent-field object.spec.clusterIP",
        ),
        (
            "object.spec.type != 'ExternalName' || object.spec.ports[0].port > 1",
            "absent-field object.spec.ports",
        ),
        (
            "object.spec.?clusterIP.orValue('') != 'None' || object.spec.ports.size() > 0",
            "absent-field object.spec.ports",
        ),
        (
            "object.spec.ipFamilies[0] == 'IPv4'",
            "absent-field object.spec.ipFamilies",
        ),
    ] {
        fails(SERVICE, create, expression, &[found]);
    }
    for expression in [
        "object.spec.type == 'ExternalName' || object.spec.clusterIP != 'None'",
        "object.spec.type != 'ClusterIP' || object.spec.ipFamilies[0] == 'IPv4'",
        "object.spec.type != 'NodePort' || object.spec.clusterIP == 'None' || object.spec.ports.all(p, p.nodePort > 30000)",
        "object.spec.type == 'ExternalName' || object.spec.clusterIP == 'None' || object.spec.ports.size() > 0",
        "object.spec.type != 'ExternalName' || object.spec.externalName != ''",
        "object.spec.sessionAffinity == 'None'",
        "has(object.spec.clusterIP) && object.spec.clusterIP != 'None' ? object.spec.ports.size() > 0 : true",
    ] {
        holds(SERVICE, create, expression);
    }
}

#[test]
fn failing_arguments_of_authorizer_are_reported() {
    for expression in [
        "authorizer.group('').resource('x').name(object.metadata.labels['a']).check('get').allowed()",
        "authorizer.group('').resource('x').check('get').allowed() || object.metadata.labels['a'] == 'b'",
    ] {
        let findings = ["absent-field object.metadata.labels"];
        fails(POD, "CREATE", expression, &findings);
    }
    fails(
        DEPLOYMENT,
        "CREATE",
        "authorizer.serviceAccount(request.namespace, \
         object.spec.template.spec.serviceAccountName).group('').resource('secrets').check('get').allowed()",
        &["absent-field object.spec.template.spec.serviceAccountName"],
    );
    holds(
        POD,
        "CREATE",
        "authorizer.serviceAccount(request.namespace, object.spec.serviceAccountName).path('/x').check('get').allowed() && \
         authorizer.path('/y').check('get').allowed()",
    );
}

#[test]
fn witness_has_failing_value() {
    let spec = "  validations:\n  - expression: 10 / object.spec.replicas > 1\n";
    let findings = runtime_errors(&policy(DEPLOYMENT, "CREATE", spec), &[]);
    assert_eq!(
        findings[0]["message"],
        "`object.spec.replicas` may be 0: CREATE of a Deployment with 0 as spec.replicas fails with `division by zero`"
    );
    let help = findings[0]["help"].as_str().unwrap();
    assert!(
        help.contains("`object.spec.replicas != 0 && ...`"),
        "{help}"
    );
    assert_eq!(
        findings[0]["witness"]["request"]["object"]["spec"]["replicas"],
        0
    );
}

#[test]
fn conversion_is_a_note_if_another_validation_denies_unconvertible_values() {
    let severity = |other: &str| {
        let value = "object.metadata.?annotations['timeout'].orValue('5')";
        let spec = format!(
            "  variables: [{{name: v, expression: {}}}]\n  validations:\n  - expression: {}\n  - expression: int(variables.v) >= 4\n",
            json!(value),
            json!(other)
        );
        let findings = crate::manifest::findings(&policy(POD, "CREATE", &spec), &[]);
        let conversion = findings
            .into_iter()
            .find(|it| it["rule"] == "failing-conversion");
        let conversion = conversion.unwrap();
        let help = conversion["help"].as_str().unwrap().to_owned();
        (conversion["severity"].as_str().unwrap().to_owned(), help)
    };
    let (level, help) = severity("variables.v.matches('^[0-9]+$')");
    let denied = "`spec.validations[0].expression` is false for this value; that validation denies these requests anyway";
    assert!(level == "note" && help.contains(denied), "{level} {help}");
    // These validations do not deny the requests for which the conversion fails.
    for other in ["object.metadata.name == 'other'", "variables.v != 'x'"] {
        assert_eq!(severity(other).0, "warning", "{other}");
    }
}
