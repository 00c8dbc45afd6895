//! Tests of matching by match constraints.

use super::*;

fn matches(constraints: &Json, request: &AdmissionRequest) -> Result<Option<(Gvr, Gvk)>, String> {
    let admission = admission(&json!({"matchConstraints": constraints}));
    admission.matches(request, &default_namespace())
}

#[track_caller]
fn check(constraints: &Json, request: &AdmissionRequest, expect: bool) {
    let matched = matches(constraints, request).map(|matched| matched.is_some());
    assert_eq!(matched, Ok(expect), "{constraints}");
}

/// Returns [`constraints`] with `field` of the rule set to `value`.
fn rule(field: &str, value: Json) -> Json {
    let mut constraints = constraints();
    constraints["resourceRules"][0][field] = value;
    constraints
}

/// Returns [`constraints`] with `field` set to `value`.
fn with(field: &str, value: Json) -> Json {
    let mut constraints = constraints();
    constraints[field] = value;
    constraints
}

#[test]
fn rule_matches_group_version_resource_and_operation() {
    let request = deployment();
    check(&constraints(), &request, true);
    for (field, matching, other) in [
        ("apiGroups", json!(["", "apps"]), json!([""])),
        ("apiVersions", json!(["*"]), json!(["v1beta1"])),
        ("operations", json!(["*"]), json!(["UPDATE", "create"])),
        ("resources", json!(["pods", "*"]), json!(["Deployments"])),
        ("resources", json!(["*/*"]), json!(["deployments/status"])),
        ("resourceNames", json!(["x", "web"]), json!(["x", ""])),
        ("scope", json!("Namespaced"), json!("Cluster")),
        ("scope", json!("*"), json!("namespaced")),
    ] {
        check(&rule(field, matching), &request, true);
        check(&rule(field, other), &request, false);
    }
    check(&json!({}), &request, true);
    check(&json!({"resourceRules": []}), &request, true);
}

#[test]
fn rule_matches_subresource_by_name_or_wildcard() {
    let request = AdmissionRequest {
        subresource: "scale".to_owned(),
        ..deployment()
    };
    check(&constraints(), &request, false);
    check(&rule("resources", json!(["*"])), &request, false);
    for resources in ["deployments/scale", "deployments/*", "*/scale", "*/*"] {
        check(&rule("resources", json!([resources])), &request, true);
    }
}

#[test]
fn rule_treats_namespaces_as_cluster_scoped() {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let gvr = Gvr::new("", "v1", "namespaces");
    let mut request = AdmissionRequest::create(gvr, Object::new(&object));
    request.namespace = "n".to_owned();
    let scoped = |scope| {
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"], "scope": scope,
        });
        json!({"resourceRules": [rule]})
    };
    check(&scoped("Cluster"), &request, true);
    check(&scoped("Namespaced"), &request, false);
}

#[test]
fn exclude_resource_rules_override_resource_rules() {
    let request = deployment();
    let excluded = constraints()["resourceRules"].clone();
    check(&with("excludeResourceRules", excluded), &request, false);
}

#[test]
fn selectors_match_labels_of_namespace_object_and_old_object() {
    let labels = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    let mut request = deployment();
    check(
        &with("namespaceSelector", labels("env", "prod")),
        &request,
        true,
    );
    check(
        &with("namespaceSelector", labels("env", "dev")),
        &request,
        false,
    );
    check(
        &with("objectSelector", labels("app", "web")),
        &request,
        true,
    );
    check(
        &with("objectSelector", labels("app", "db")),
        &request,
        false,
    );
    request.old_object = request.object.take();
    check(
        &with("objectSelector", labels("app", "web")),
        &request,
        true,
    );
    request.old_object = None;
    check(
        &with("objectSelector", labels("app", "web")),
        &request,
        false,
    );
}

#[test]
fn namespace_selector_matches_labels_of_namespace_in_request() {
    let namespace = |labels: &Json| {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels},
        });
        let gvr = Gvr::new("", "v1", "namespaces");
        AdmissionRequest::create(gvr, Object::new(&object))
    };
    let constraints = json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}});
    let mut request = namespace(&json!({"env": "dev"}));
    check(&constraints, &request, false);
    request.operation = Operation::Delete;
    request.namespace = "default".to_owned();
    check(&constraints, &request, true);
    check(&constraints, &namespace(&json!({"env": "prod"})), true);
}

#[test]
fn namespace_selector_matches_requests_without_namespace() {
    let mut request = deployment();
    request.namespace.clear();
    let selector = json!({"matchLabels": {"env": "dev"}});
    check(&with("namespaceSelector", selector), &request, true);
}

#[test]
fn invalid_selector_is_error_only_if_rules_match() {
    let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Bad"}]});
    for field in ["namespaceSelector", "objectSelector"] {
        assert_eq!(
            matches(&with(field, wrong.clone()), &deployment()),
            Err(
                "Internal error occurred: \"Bad\" is not a valid label selector operator"
                    .to_owned()
            )
        );
        let mut other = with(field, wrong.clone());
        other["resourceRules"][0]["resources"] = json!(["pods"]);
        check(&other, &deployment(), false);
    }
}

#[test]
fn missing_namespace_is_error() {
    let mut request = deployment();
    request.namespace = "zz".to_owned();
    let selector = json!({"matchLabels": {"env": "dev"}});
    assert_eq!(
        matches(&with("namespaceSelector", selector), &request),
        Err("namespaces \"zz\" not found".to_owned())
    );
}

#[test]
fn equivalent_resources_match_unless_match_policy_is_exact() {
    let mut request = deployment();
    let equivalent = |version: &str, kind: &str| Equivalent {
        gvr: Gvr::new("apps", version, "deployments"),
        gvk: Gvk::new(
            if kind.is_empty() { "" } else { "apps" },
            if kind.is_empty() { "" } else { version },
            kind,
        ),
    };
    request.equivalents = vec![
        equivalent("v1", "Deployment"),
        equivalent("v1beta1", "Deployment"),
    ];
    let mut constraints = rule("apiVersions", json!(["v1beta1"]));
    check(&constraints, &request, false);
    constraints["matchPolicy"] = json!("Exact");
    check(&constraints, &request, false);
    constraints["matchPolicy"] = json!("Equivalent");
    assert_eq!(
        matches(&constraints, &request),
        Ok(Some((
            Gvr::new("apps", "v1beta1", "deployments"),
            Gvk::new("apps", "v1beta1", "Deployment"),
        )))
    );
    constraints["resourceRules"][0]["resourceNames"] = json!(["other"]);
    check(&constraints, &request, false);
    request.equivalents = vec![equivalent("v1beta1", "")];
    assert_eq!(
        matches(&constraints, &request),
        Err("unable to convert to apps/v1beta1, Resource=deployments: unknown kind".to_owned())
    );
}

/// The rules are relaxed one field after another until they match. The last relaxed field is the constraint that
/// excludes the request.
#[test]
fn constraint_that_prevents_a_match_is_found() {
    let unmatched = |constraints: &Json, request: &AdmissionRequest| {
        let binding = binding(&json!({"matchResources": constraints}));
        binding.unmatched(request, &default_namespace())
    };
    let labels = |value: &str| json!({"matchLabels": {"app": value, "env": value}});
    let mut many = rule("operations", json!(["DELETE"]));
    many["resourceRules"][0]["resourceNames"] = json!(["x"]);
    let mut versions = many.clone();
    versions["resourceRules"][0]["apiVersions"] = json!(["v2"]);
    let mut scoped = rule("scope", json!("Cluster"));
    scoped["resourceRules"][0]["resourceNames"] = json!(["x"]);
    let exclude = constraints()["resourceRules"].clone();
    for (constraints, expect, words) in [
        (
            with("namespaceSelector", labels("x")),
            Unmatched::NamespaceSelector,
            "its namespaceSelector does not select the namespace",
        ),
        (
            with("objectSelector", labels("x")),
            Unmatched::ObjectSelector,
            "its objectSelector does not select the object",
        ),
        (
            with("excludeResourceRules", exclude),
            Unmatched::ExcludeResourceRules,
            "its excludeResourceRules exclude the request",
        ),
        (
            rule("resourceNames", json!(["x"])),
            Unmatched::ResourceName,
            "no rule for the resource has the name of the object",
        ),
        (
            rule("scope", json!("Cluster")),
            Unmatched::Scope,
            "no rule for the resource has the scope",
        ),
        (
            scoped,
            Unmatched::Scope,
            "no rule for the resource has the scope",
        ),
        (
            rule("operations", json!(["DELETE"])),
            Unmatched::Operation,
            "no rule for the resource has the operation",
        ),
        (
            many,
            Unmatched::Operation,
            "no rule for the resource has the operation",
        ),
        (
            versions,
            Unmatched::Version,
            "no rule for the resource has the version",
        ),
        (
            rule("resources", json!(["pods"])),
            Unmatched::Resource,
            "no rule matches the resource",
        ),
        (
            rule("apiGroups", json!([""])),
            Unmatched::Resource,
            "no rule matches the resource",
        ),
    ] {
        assert_eq!(
            unmatched(&constraints, &deployment()),
            Some(expect),
            "{constraints}"
        );
        assert_eq!(expect.words(), words);
    }
    assert_eq!(unmatched(&constraints(), &deployment()), None);
    // This namespace does not exist.
    let mut request = deployment();
    request.namespace = "zz".to_owned();
    assert_eq!(
        unmatched(&with("namespaceSelector", labels("x")), &request),
        None
    );
}

#[test]
fn empty_namespace_selector_of_binding_is_ignored() {
    for (resources, expect) in [
        (json!({}), false),
        (json!({"namespaceSelector": {}}), false),
        (
            json!({"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}}),
            false,
        ),
        (
            json!({"objectSelector": {"matchLabels": {"a": "b"}}}),
            false,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
            true,
        ),
        (
            json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
            true,
        ),
    ] {
        let binding = binding(&json!({"matchResources": resources}));
        assert_eq!(binding.has_namespace_selector(), expect, "{resources}");
    }
    assert!(!binding(&json!({})).has_namespace_selector());
}
