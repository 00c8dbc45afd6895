//! Tests lints: suspicious code must have findings, and valid code must have none.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;

use serde_json::json;
use vap_status_controller::cli::check::finding::Owner;
use vap_status_controller::policy::rule::Rule;

use crate::manifest;

/// Returns the severity, rule and marked source of each lint finding for a policy with `spec`.
pub(crate) fn found(spec: &serde_json::Value) -> Vec<String> {
    const RULES: [Rule; 16] = [
        Rule::ConstantCondition,
        Rule::ContradictorySelector,
        Rule::DuplicateVariable,
        Rule::FailingCall,
        Rule::ImpossibleGroup,
        Rule::ImpossibleOperation,
        Rule::ImpossibleValue,
        Rule::IneffectiveSelector,
        Rule::Lockout,
        Rule::OrValueWithoutOptional,
        Rule::RemovableLabel,
        Rule::ShadowedVariable,
        Rule::StringOrder,
        Rule::IncomparableTypes,
        Rule::UnusedVariable,
        Rule::UnwatchedSubresource,
    ];
    found_of(spec, &RULES)
}

/// Same as [`found`], for the given rules.
pub(crate) fn found_of(spec: &serde_json::Value, rules: &[Rule]) -> Vec<String> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": spec,
    });
    let text = serde_json::to_string(&policy).unwrap();
    let report = manifest::report(&text, &[]);
    let of_rules = report
        .findings
        .iter()
        .filter(|finding| rules.contains(&finding.rule));
    let shown = of_rules.map(|finding| {
        let place = finding.location.place.unwrap();
        let at: String = text
            .chars()
            .skip(place.column - 1)
            .take(finding.location.length)
            .collect();
        format!(
            "{} {} at {at}",
            finding.severity.as_str(),
            finding.rule.id()
        )
    });
    shown.collect()
}

/// Returns the spec of a policy for `resources` in `groups`.
pub(crate) fn spec(
    groups: &[&str],
    resources: &[&str],
    operations: &[&str],
    expression: &str,
) -> serde_json::Value {
    json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": groups, "apiVersions": ["v1"], "operations": operations, "resources": resources}]},
        "validations": [{"expression": expression}],
    })
}

#[track_caller]
pub(crate) fn check_all(cases: &[(&str, &[&str])], of: impl Fn(&str) -> serde_json::Value) {
    let mut wrong = String::new();
    for (text, expect) in cases {
        let findings = found(&of(text));
        if findings != *expect {
            writeln!(wrong, "{text}: {findings:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn incomparable_types_and_impossible_values_are_reported() {
    let unlike: &[&str] = &["warning incomparable-types at =="];
    let cases: &[(&str, &[&str])] = &[
        // Comparisons of different types.
        ("object.spec.replicas == '50'", unlike),
        ("object.metadata.name == 5", unlike),
        (
            "object.spec.replicas != '50'",
            &["warning incomparable-types at !="],
        ),
        (
            "object.spec.replicas in ['1', '2']",
            &["warning incomparable-types at in"],
        ),
        (
            "object.spec.template.spec.containers.exists(c, c.name == 1)",
            unlike,
        ),
        ("object.spec.replicas == 50", &[]),
        ("object.spec.replicas == 50.0", &[]),
        ("dyn(object.spec.replicas) == 5u", &[]),
        (
            "object.spec.strategy.?rollingUpdate.?maxSurge.orValue('1') == 1",
            &[],
        ),
        ("object.spec.replicas in [1, 2]", &[]),
        ("'a' in object.metadata.?labels.orValue({})", &[]),
        // Impossible values of the request's fields.
        (
            "request.operation == 'create'",
            &["warning impossible-value at =="],
        ),
        (
            "request.operation in ['CREATE', 'PATCH']",
            &["warning impossible-value at in"],
        ),
        (
            "object.kind != 'deployment'",
            &["warning impossible-value at !="],
        ),
        (
            "request.resource.resource == 'deployment'",
            &["warning impossible-value at =="],
        ),
        ("request.operation == 'DELETE' || object.kind == 'Pod'", &[]),
        ("request.resource.resource == 'deployments'", &[]),
        // Impossible values of groups and versions.
        (
            "object.apiVersion == 'v1'",
            &["warning impossible-value at =="],
        ),
        (
            "request.kind.group == 'apps/v1'",
            &["warning impossible-value at =="],
        ),
        (
            "request.operation == 'CREATE' && request.resource.group in ['core']",
            &["warning impossible-value at in"],
        ),
        (
            "request.requestKind.version != 'apps/v1'",
            &["warning impossible-value at !="],
        ),
        ("object.apiVersion == 'apps/v1'", &[]),
        ("request.resource.group != 'coordination.k8s.io'", &[]),
        ("object.apiVersion != 'batch/v1'", &[]),
        ("object.apiVersion == 'apps/v1beta1'", &[]),
        ("request.requestKind.group == 'extensions'", &[]),
        ("request.kind.group == '' || object.spec.replicas < 5", &[]),
        (
            "object.apiVersion == 'batch/v1' ? true : object.spec.replicas < 5",
            &[],
        ),
    ];
    check_all(cases, |text| {
        spec(&["apps"], &["deployments"], &["CREATE"], text)
    });
}

#[test]
fn constant_conditions_and_failing_calls_are_reported() {
    let constant: &[&str] = &["warning constant-condition at >="];
    let cases: &[(&str, &[&str])] = &[
        // Comparisons with a limit, whose result is constant.
        ("size(object.metadata.name) >= 0", constant),
        (
            "object.metadata.name.size() < 0",
            &["warning constant-condition at <"],
        ),
        (
            "0 <= object.metadata.name.size()",
            &["warning constant-condition at <="],
        ),
        ("object.metadata.name.size() > 0", &[]),
        (
            "object.spec.replicas > 5 && object.spec.replicas < 3",
            &["warning constant-condition at <"],
        ),
        (
            "object.metadata.name != 'a' || object.metadata.name != 'b'",
            &["warning constant-condition at !="],
        ),
        (
            "object.spec.replicas < 5 || true",
            &["warning constant-condition at ||"],
        ),
        (
            "object.spec.replicas < 5 && false",
            &["warning constant-condition at &&"],
        ),
        ("object.spec.replicas < 5 && true", &[]),
        ("1 == 1", &["note constant-condition at =="]),
        ("true", &[]),
        ("false", &[]),
        // Comparisons of strings that contain numbers.
        (
            "object.metadata.name < '10'",
            &["warning string-order at <"],
        ),
        (
            "'512Mi' >= object.metadata.name",
            &["warning string-order at >="],
        ),
        (
            "object.metadata.name >= 'v1.29.0'",
            &["warning string-order at >="],
        ),
        ("object.metadata.name >= 'm'", &[]),
        ("object.metadata.name == '10'", &[]),
        ("object.metadata.name >= '2024-01-01'", &[]),
        // Calls that always fail because of their literal arguments.
        (
            "quantity('512MB').isLessThan(quantity(object.metadata.name))",
            &["warning failing-call at '512MB'"],
        ),
        (
            "ip('1.2.3') == ip(object.metadata.name)",
            &["warning failing-call at '1.2.3'"],
        ),
        (
            "object.spec.replicas / 0 == 1",
            &["warning failing-call at /"],
        ),
        (
            "quantity('512M').isLessThan(quantity(object.metadata.name))",
            &[],
        ),
        ("!isQuantity('512MB') || object.metadata.name == ''", &[]),
    ];
    check_all(cases, |text| {
        spec(&["apps"], &["deployments"], &["CREATE"], text)
    });
}

#[test]
fn incomparable_types_are_reported_only_if_incomparable_for_all_kinds() {
    // A Deployment has numeric replicas, and a Pod has no replicas.
    let both = |text: &str| spec(&["apps", ""], &["deployments", "pods"], &["CREATE"], text);
    let cases: &[(&str, &[&str])] = &[
        (
            "object.kind == 'Deployment' ? object.spec.replicas == '1' : true",
            &["warning incomparable-types at =="],
        ),
        // A Pod has the string `hostname`, and a Deployment has no `hostname`.
        ("object.spec.?hostname.orValue('') == ''", &[]),
    ];
    check_all(cases, both);
}

#[test]
fn impossible_groups_are_reported() {
    let group: &[&str] = &["warning impossible-group at \"apps/v1\""];
    let cases: &[(&str, &[&str])] = &[
        ("apps/v1", group),
        ("core", &["warning impossible-group at \"core\""]),
        ("v1", &["warning impossible-group at \"v1\""]),
        (
            "networking",
            &["warning impossible-group at \"networking\""],
        ),
        ("apps", &[]),
        ("", &[]),
        ("*", &[]),
        ("example.com", &[]),
    ];
    check_all(cases, |text| {
        spec(&[text], &["deployments"], &["CREATE"], "false")
    });
}

#[test]
fn impossible_operations_are_reported() {
    let of = |resource: &str, operation: &str| spec(&[""], &[resource], &[operation], "false");
    let impossible =
        |resource: &str| vec![format!("warning impossible-operation at \"{resource}\"")];
    assert_eq!(found(&of("pods/exec", "CREATE")), impossible("pods/exec"));
    assert_eq!(
        found(&of("pods/eviction", "UPDATE")),
        impossible("pods/eviction")
    );
    assert_eq!(
        found(&of("pods/status", "CREATE")),
        impossible("pods/status")
    );
    assert_eq!(found(&of("pods", "CONNECT")), impossible("pods"));
    for (resource, operation) in [
        ("pods/exec", "CONNECT"),
        ("pods/exec", "*"),
        ("pods/eviction", "CREATE"),
        ("pods/*", "CREATE"),
        ("pods", "CREATE"),
    ] {
        assert_eq!(
            found(&of(resource, operation)),
            [""; 0],
            "{resource} {operation}"
        );
    }
    let approval = "certificatesigningrequests/approval";
    for (operation, n_findings) in [("CREATE", 1), ("UPDATE", 0)] {
        let spec = spec(&["certificates.k8s.io"], &[approval], &[operation], "false");
        assert_eq!(found(&spec).len(), n_findings, "{operation}");
    }
    // The misspelled name has no known operations. The finding is for the corrected name, `pods/eviction`.
    let misspelled = found(&of("pods/evictions", "DELETE"));
    let impossible = misspelled
        .iter()
        .filter(|it| it.contains("impossible-operation"));
    assert_eq!(impossible.count(), 1, "{misspelled:?}");
}

#[test]
fn wildcards_in_exact_names_are_reported() {
    for (name, expect) in [("*", true), ("team-*", true), ("team-a", false)] {
        for field in ["resourceRules", "excludeResourceRules"] {
            let mut spec = spec(&[""], &["pods"], &["CREATE"], "object.metadata.name != ''");
            let mut rule = spec["matchConstraints"]["resourceRules"][0].clone();
            rule["resourceNames"] = json!([name]);
            spec["matchConstraints"][field] = json!([rule]);
            let findings = found(&spec);
            let is_found = findings
                .iter()
                .any(|finding| finding.starts_with("warning impossible-value"));
            assert_eq!(is_found, expect, "{field} {name}: {findings:?}");
        }
    }
}

#[test]
fn subresource_bypasses_are_reported() {
    let ephemeral = "object.spec.?ephemeralContainers.orValue([]).all(c, c.image != '')";
    let selected = "!has(object.spec.ephemeralContainers)";
    let update = |resources: &[&str], text: &str| {
        found(&spec(&[""], resources, &["CREATE", "UPDATE"], text))
    };
    let missed = ["note unwatched-subresource at \"pods\""];
    assert_eq!(update(&["pods"], selected), missed);
    assert_eq!(update(&["pods"], ephemeral), missed);
    assert_eq!(
        update(&["pods", "pods/ephemeralcontainers"], selected),
        [""; 0]
    );
    assert_eq!(update(&["pods", "pods/*"], selected), [""; 0]);
    let replicas = |operations: &[&str], resources: &[&str]| {
        found(&spec(
            &["apps"],
            resources,
            operations,
            "object.spec.replicas < 5",
        ))
    };
    let scaled = ["note unwatched-subresource at \"deployments\""];
    assert_eq!(replicas(&["CREATE", "UPDATE"], &["deployments"]), scaled);
    assert_eq!(replicas(&["CREATE"], &["deployments"]), [""; 0]);
}

#[test]
fn policies_bypassed_by_updates_are_reported() {
    let created = |group: &str, resource: &str, text: &str| {
        let spec = spec(&[group], &[resource], &["CREATE"], text);
        found_of(&spec, &[Rule::UnwatchedOperation])
    };
    let missed = [r#"note unwatched-operation at ["CREATE"]"#];
    // The API server rejects updates of these fields.
    for text in [
        "!object.spec.?hostNetwork.orValue(false)",
        "object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))",
        "size(object.spec.containers) < 5",
        "object.metadata.name != 'a'",
        "request.userInfo.username != 'a'",
    ] {
        assert_eq!(created("", "pods", text), [""; 0], "{text}");
    }
    for text in [
        "object.spec.containers.all(c, c.?image.orValue('') != 'a')",
        "'team' in object.metadata.?labels.orValue({})",
    ] {
        assert_eq!(created("", "pods", text), missed, "{text}");
    }
    assert_eq!(created("", "configmaps", "!has(object.data)"), missed);
    // A ConfigMap has no `spec`.
    let of_other_kind = "!('a' in object.spec.accessModes)";
    assert_eq!(created("", "configmaps", of_other_kind), [""; 0]);
    let review = "object.spec.?user.orValue('') != 'a'";
    assert_eq!(
        created("authorization.k8s.io", "subjectaccessreviews", review),
        [""; 0]
    );
}

#[test]
fn removable_labels_are_reported() {
    let of = |operations: &[&str], condition: &str, expression: &str| {
        let mut spec = spec(&["apps"], &["deployments"], operations, expression);
        let conditions = json!([{"name": "guarded", "expression": condition}]);
        spec.as_object_mut()
            .unwrap()
            .insert("matchConditions".to_owned(), conditions);
        found(&spec)
    };
    let guard = "has(object.metadata.labels) && 'frozen' in object.metadata.labels";
    let guarded = "object.spec.template == oldObject.spec.template";
    let findings = of(&["UPDATE"], guard, guarded);
    assert_eq!(findings, ["note removable-label at .labels"]);
    let optional = "object.metadata.?annotations[?'a'].orValue('') == 'b'";
    let findings = of(&["*"], optional, guarded);
    assert_eq!(findings, ["note removable-label at .?annotations"]);
    let silent: &[(&[&str], &str, &str)] = &[
        // A removable label is reported only if the policy depends on the label of an existing object.
        (&["UPDATE"], guard, "object.spec.template.spec.hostNetwork"),
        (&["CREATE"], guard, guarded),
        (&["UPDATE"], "has(oldObject.metadata.labels)", guarded),
        (
            &["UPDATE"],
            "has(oldObject.metadata.labels) || has(object.metadata.labels)",
            guarded,
        ),
        (&["UPDATE"], "object.metadata.name.startsWith('a')", guarded),
        (
            &["UPDATE"],
            "has(object.spec.template.metadata.labels)",
            guarded,
        ),
    ];
    for (operations, condition, expression) in silent {
        assert_eq!(
            of(operations, condition, expression),
            [""; 0],
            "{condition} {expression}"
        );
    }
}

#[test]
fn unused_and_duplicate_variables_are_reported() {
    let of = |variables: &serde_json::Value, expression: &str| {
        let mut spec = spec(&["apps"], &["deployments"], &["CREATE"], expression);
        *spec.get_mut("validations").unwrap() = json!([{"expression": expression}]);
        spec.as_object_mut()
            .unwrap()
            .insert("variables".to_owned(), variables.clone());
        found(&spec)
    };
    let a = json!({"name": "a", "expression": "object.metadata.name"});
    let b = json!({"name": "b", "expression": "variables.a"});
    assert_eq!(of(&json!([a]), "variables.a == ''"), [""; 0]);
    assert_eq!(of(&json!([a]), "false"), ["note unused-variable at \"a\""]);
    assert_eq!(of(&json!([a, b]), "variables.b == ''"), [""; 0]);
    assert_eq!(
        of(&json!([a, a]), "variables.a == ''"),
        ["warning duplicate-variable at \"a\""]
    );
}

#[test]
fn shadowed_variables_are_reported() {
    let cases: &[(&str, &[&str])] = &[
        (
            "object.spec.template.spec.containers.all(object, object.image != '')",
            &["note shadowed-variable at ("],
        ),
        (
            "object.spec.template.spec.containers.exists(request, request.image == '')",
            &["note shadowed-variable at ("],
        ),
        (
            "object.spec.template.spec.containers.all(c, c.image != '')",
            &[],
        ),
        // The policy has no paramKind, so `params` is not a predefined variable.
        (
            "object.spec.template.spec.containers.all(params, params.image != '')",
            &[],
        ),
    ];
    check_all(cases, |expression| {
        spec(&["apps"], &["deployments"], &["CREATE"], expression)
    });
}

#[test]
fn contradictory_selectors_are_reported() {
    let of = |selector: serde_json::Value| {
        let mut spec = spec(
            &["apps"],
            &["deployments"],
            &["CREATE"],
            "object.metadata.name != ''",
        );
        let constraints = spec.get_mut("matchConstraints").unwrap();
        let constraints = constraints.as_object_mut().unwrap();
        constraints.insert("namespaceSelector".to_owned(), selector);
        found(&spec)
            .iter()
            .map(|finding| finding.split(" at ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let both = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    assert_eq!(of(both), ["warning contradictory-selector"]);
    let one = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]});
    assert_eq!(of(one), [""; 0]);
    let without_values =
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": []}]});
    assert_eq!(of(without_values), [""; 0]);
}

#[test]
fn namespace_selectors_of_cluster_scoped_kinds_are_reported() {
    let of = |group: &str, resources: &[&str], selector: serde_json::Value| {
        let mut spec = spec(
            &[group],
            resources,
            &["CREATE"],
            "object.metadata.name != ''",
        );
        spec["matchConstraints"]["namespaceSelector"] = selector;
        found(&spec)
            .iter()
            .any(|finding| finding.starts_with("warning ineffective-selector"))
    };
    let labels = || json!({"matchLabels": {"a": "b"}});
    assert!(of("", &["persistentvolumes", "nodes"], labels()));
    assert!(!of("", &["persistentvolumes", "pods"], labels()));
    assert!(!of("", &["namespaces"], labels()));
    assert!(!of("", &["*"], labels()));
    assert!(!of("", &["persistentvolumes"], json!({})));
    assert!(!of("example.com", &["widgets"], labels()));
}

/// The policy applies to CRDs and requires params. The CRD of the paramKind cannot be created without params, so the
/// params cannot exist.
#[test]
fn policies_for_the_crd_of_their_own_params_are_reported() {
    let of = |group: &str, operations: &[&str], more: serde_json::Value| {
        let resources = ["customresourcedefinitions"];
        let mut spec = spec(
            &["apiextensions.k8s.io"],
            &resources,
            operations,
            "object.metadata.name != ''",
        );
        let fields = spec.as_object_mut().unwrap();
        fields.insert(
            "paramKind".to_owned(),
            json!({"apiVersion": group, "kind": "Limit"}),
        );
        for (name, value) in more.as_object().unwrap() {
            fields.insert(name.clone(), value.clone());
        }
        found(&spec)
            .iter()
            .filter(|finding| finding.contains("lockout"))
            .count()
    };
    assert_eq!(of("ex.io/v1", &["CREATE"], json!({})), 1);
    assert_eq!(of("ex.io/v1", &["UPDATE"], json!({})), 0);
    assert_eq!(of("v1", &["CREATE"], json!({})), 0);
    assert_eq!(
        of("ex.io/v1", &["CREATE"], json!({"failurePolicy": "Ignore"})),
        0
    );
}

#[test]
fn mistakes_in_bindings_are_reported() {
    let file = |param_kind: &str, binding: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             {param_kind}\n  matchConstraints:\n    resourceRules:\n    - {{apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}}\n  validations: [{{expression: 'false'}}]\n---\n\
             apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\n\
             spec: {{policyName: p, validationActions: [Deny], {binding}}}\n"
        )
    };
    let rules = |group: &str, resource: &str, operation: &str| {
        format!(
            "matchResources: {{resourceRules: [{{apiGroups: [{group}], apiVersions: ['*'], operations: [{operation}], \
             resources: [{resource}]}}]}}"
        )
    };
    let with_selector = |of_policy: &str, of_binding: &str| {
        let whole = file(
            "",
            &format!("matchResources: {{namespaceSelector: {of_binding}}}"),
        );
        let constraints = format!("matchConstraints:\n    namespaceSelector: {of_policy}\n");
        whole.replacen("matchConstraints:\n", &constraints, 1)
    };
    let kind = "paramKind: {apiVersion: v1, kind: ConfigMap}";
    let reference = "paramRef: {name: x, namespace: default, parameterNotFoundAction: Deny}";
    let cases = [
        (file("", reference), vec!["ignored-params"]),
        (file(kind, reference), vec![]),
        (
            file("", &rules("''", "pods", "'*'")),
            vec!["disjoint-rules"],
        ),
        (
            file("", &rules("apps", "deployments", "UPDATE")),
            vec!["disjoint-rules"],
        ),
        (file("", &rules("apps", "deployments", "'*'")), vec![]),
        (file("", &rules("'*'", "'*/*'", "CREATE")), vec![]),
        (
            file(
                "",
                "matchResources: {objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: NotIn, \
                 values: [b]}]}}",
            ),
            vec!["contradictory-selector"],
        ),
        (
            file("", &rules("example.com", "things", "CREATE")),
            vec!["unknown-resource"],
        ),
        (
            with_selector("{matchLabels: {a: b}}", "{matchLabels: {a: c}}"),
            vec!["contradictory-selector"],
        ),
        (
            with_selector(
                "{matchLabels: {a: b}}",
                "{matchExpressions: [{key: a, operator: In, values: [b, c]}]}",
            ),
            vec![],
        ),
    ];
    for (text, expect) in cases {
        let report = manifest::report(&text, &[]);
        let of_binding = report
            .findings
            .iter()
            .filter(|finding| matches!(finding.owner, Owner::Binding(_)));
        let rules: Vec<_> = of_binding.map(|finding| finding.rule.id()).collect();
        assert_eq!(rules, expect, "{text}");
    }
}

#[test]
fn unsatisfiable_match_conditions_are_reported() {
    let of_condition = |expression: &str| {
        let sound = "object.metadata.name != 'a'";
        let mut spec = spec(&["apps"], &["deployments"], &["CREATE", "UPDATE"], sound);
        spec["matchConditions"] = json!([{"name": "a", "expression": expression}]);
        found(&spec)
    };
    for expression in [
        "object.kind == 'Pod'",
        "object.kind != 'Deployment'",
        "object.apiVersion == 'apps/v1beta1' && object.metadata.name != 'a'",
        "request.kind.version == 'v2'",
        "request.kind.kind in ['Pod', 'Job']",
    ] {
        let findings = of_condition(expression);
        assert_eq!(findings.len(), 1, "{expression}: {findings:?}");
        let is_it = findings[0].starts_with("note constant-condition");
        assert!(is_it, "{expression}: {findings:?}");
    }
    for sound in [
        "object.kind != 'Pod' || object.metadata.name == 'a'",
        "object.kind == 'Deployment' && object.metadata.name == 'a'",
        "request.operation == 'CREATE'",
        "request.kind.version == 'v1'",
    ] {
        assert!(of_condition(sound).is_empty(), "{sound}");
    }
}

/// Common forms of the mistake. One of several selections lacks the `?`.
#[test]
fn default_of_value_that_is_not_an_optional_is_reported() {
    let of_pods = |expression: &str| {
        let mut spec = spec(&[""], &["pods"], &["CREATE"], expression);
        spec["variables"] = json!([
            {"name": "all", "expression": "object.spec.containers + object.spec.?initContainers.orValue([])"},
            {"name": "paths", "expression": "object.spec.?volumes.orValue([]).filter(v, has(v.hostPath))"},
            {"name": "host", "expression": "object.spec.?hostNetwork"},
        ]);
        let lints = found(&spec).into_iter();
        let lints = lints.filter(|it| it.contains("or-value-without-optional"));
        lints.collect::<Vec<_>>()
    };
    let read_only = "variables.paths.all(p, variables.all.all(c, c.volumeMounts.orValue([]).all(m, \
                     m.name != p.name || m.?readOnly.orValue(false) == true)))";
    let guaranteed = "variables.all.all(c, c.?resources.?limits.hasValue() && c.?resources.?requests.hasValue() && \
                      c.resources.requests.orValue({}) == c.resources.?limits.orValue({}))";
    let capabilities = "variables.all.all(c, c.?securityContext.?capabilities.?add.orValue([]).size() == 0 || \
                        c.securityContext.capabilities.add.orValue([]).size() == 1)";
    for (expression, marked) in [
        (read_only, ".volumeMounts"),
        (guaranteed, ".requests"),
        (capabilities, ".add"),
    ] {
        let lint = format!("error or-value-without-optional at {marked}");
        assert_eq!(of_pods(expression), [lint], "{expression}");
        let fixed = format!("{}.orValue(", marked.replace('.', ".?"));
        let fixed = expression.replace(&format!("{marked}.orValue("), &fixed);
        assert!(of_pods(&fixed).is_empty(), "{fixed}");
    }
    assert!(of_pods("variables.host.orValue(false) == false").is_empty());
}

#[test]
fn defaults_other_than_those_of_kubernetes_are_reported() {
    let defaults = |text: &str| {
        let spec = spec(&[""], &["pods"], &["CREATE", "UPDATE"], text);
        found_of(&spec, &[Rule::WrongDefault]).len()
    };
    for (n, text) in [
        (
            1,
            "!object.spec.?automountServiceAccountToken.orValue(false)",
        ),
        (
            1,
            "object.spec.containers.all(c, !c.?securityContext.?allowPrivilegeEscalation.orValue(false))",
        ),
        (
            0,
            "!object.spec.?automountServiceAccountToken.orValue(true)",
        ),
        (0, "!object.spec.?hostNetwork.orValue(false)"),
        // The container may inherit the value of the Pod.
        (
            0,
            "object.spec.containers.all(c, c.?securityContext.?runAsNonRoot.orValue(true))",
        ),
        (0, "!variables.?x.orValue(true)"),
    ] {
        assert_eq!(defaults(text), n, "{text}");
    }
}

#[test]
fn placeholders_in_messages_are_reported() {
    for (n, message) in [
        (1, "the name {{request.object.metadata.name}} is taken"),
        (1, "the name ${object.metadata.name} is taken"),
        (1, "the name {object.metadata.name} is taken"),
        (0, "the field object.metadata.name is required"),
        (0, "write {name: value}"),
        (0, "the name must match ^[a-z]{1,5}$"),
    ] {
        let mut spec = spec(
            &[""],
            &["pods"],
            &["CREATE", "UPDATE"],
            "object.metadata.name != 'a'",
        );
        spec["validations"][0]["message"] = json!(message);
        let lints = found_of(&spec, &[Rule::TemplateResidue]);
        assert_eq!(lints.len(), n, "{message}: {lints:?}");
    }
}
