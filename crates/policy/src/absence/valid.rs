//! Rules of validation that bind several fields of Kubernetes' own kinds, which no schema tells.

use serde_json::{Map, Value as Json, json};

/// Completes an object of `kind` so that it is valid; `None` where what it has and lacks can never be.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/rbac/validation/validation.go` (`ValidatePolicyRule`),
/// `pkg/apis/networking/validation/validation.go` (`ValidateIngressSpec`, `validateHTTPIngressPath`),
/// `pkg/apis/apps/v1/defaults.go` and `pkg/apis/apps/validation/validation.go` (`ValidateDeploymentStrategy`).
pub(super) fn complete(kind: &str, object: &mut Json) -> Option<()> {
    match kind {
        "ClusterRole" | "Role" => {
            let rules = object.get_mut("rules").and_then(Json::as_array_mut);
            for rule in rules.into_iter().flatten() {
                complete_rule(rule.as_object_mut()?, kind == "ClusterRole")?;
            }
            Some(())
        }
        "Ingress" => {
            let spec = object.get_mut("spec")?.as_object_mut()?;
            if !spec.contains_key("rules") && !spec.contains_key("defaultBackend") {
                return None;
            }
            let rules = spec.get_mut("rules").and_then(Json::as_array_mut);
            for rule in rules.into_iter().flatten() {
                let paths = rule.get_mut("http").and_then(|http| http.get_mut("paths"));
                for path in paths.and_then(Json::as_array_mut).into_iter().flatten() {
                    let path = path.as_object_mut()?;
                    if !path.contains_key("path") {
                        path.insert("pathType".to_owned(), json!("ImplementationSpecific"));
                    }
                }
            }
            Some(())
        }
        "Deployment" => {
            without_rolling_update(object.get_mut("spec")?.get_mut("strategy")?, "Recreate")
        }
        "DaemonSet" => without_rolling_update(
            object.get_mut("spec")?.get_mut("updateStrategy")?,
            "OnDelete",
        ),
        _ => Some(()),
    }
}

/// Gives a strategy without `rollingUpdate` the type `otherwise`: for the usual type it is filled in.
fn without_rolling_update(strategy: &mut Json, otherwise: &str) -> Option<()> {
    let strategy = strategy.as_object_mut()?;
    if !strategy.contains_key("rollingUpdate") {
        strategy.insert("type".to_owned(), json!(otherwise));
    } else if strategy.get("type").is_some_and(|type_| type_ == otherwise) {
        strategy.remove("rollingUpdate");
    }
    Some(())
}

/// Completes a rule of a role: it is for resources of groups or for URLs, and has verbs.
fn complete_rule(rule: &mut Map<String, Json>, may_have_urls: bool) -> Option<()> {
    let has = |rule: &Map<String, Json>, name: &str| {
        let list = rule.get(name).and_then(Json::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    if !has(rule, "verbs") {
        rule.insert("verbs".to_owned(), json!(["get"]));
    }
    let has_urls = has(rule, "nonResourceURLs");
    let has_parts = ["apiGroups", "resources", "resourceNames"].map(|name| has(rule, name));
    match has_parts {
        [false, false, false] if has_urls => may_have_urls.then_some(()),
        [false, false, false] if may_have_urls => {
            rule.insert("nonResourceURLs".to_owned(), json!(["/healthz"]));
            Some(())
        }
        [true, true, _] => (!has_urls).then_some(()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, mut object: Json, expected: Option<&Json>) {
        let outcome = complete(kind, &mut object).map(|()| object);
        assert_eq!(outcome.as_ref(), expected);
    }

    #[test]
    fn a_rule_is_for_resources_or_for_urls() {
        check(
            "ClusterRole",
            json!({"rules": [{}]}),
            Some(&json!({"rules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]})),
        );
        check("Role", json!({"rules": [{}]}), None);
        check(
            "ClusterRole",
            json!({"rules": [{"resources": ["pods"]}]}),
            None,
        );
        let whole =
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
        check("Role", whole.clone(), Some(&whole));
    }

    #[test]
    fn a_strategy_has_what_its_type_asks_for() {
        check(
            "Deployment",
            json!({"spec": {"strategy": {"type": "RollingUpdate"}}}),
            Some(&json!({"spec": {"strategy": {"type": "Recreate"}}})),
        );
        check(
            "Deployment",
            json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": {}}}}),
            Some(&json!({"spec": {"strategy": {"type": "Recreate"}}})),
        );
    }

    #[test]
    fn an_ingress_leads_somewhere() {
        check("Ingress", json!({"spec": {}}), None);
        check(
            "Ingress",
            json!({"spec": {"rules": [{"http": {"paths": [{"pathType": "Exact"}]}}]}}),
            Some(
                &json!({"spec": {"rules": [{"http": {"paths": [{"pathType": "ImplementationSpecific"}]}}]}}),
            ),
        );
    }
}
