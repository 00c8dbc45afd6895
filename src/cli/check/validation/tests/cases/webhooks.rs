//! Test cases: webhook configurations with one invalid field each.

use serde_json::{Value, json};

use super::{Case, metadata, rule, selector};

/// Returns a valid webhook configuration with all fields.
pub(super) fn webhooks() -> Value {
    let mut rule = rule();
    if let Some(fields) = rule.as_object_mut() {
        fields.remove("resourceNames");
    }
    let webhook = |name: &str, config: Value| {
        json!({
            "name": name, "admissionReviewVersions": ["v1", "v2"], "sideEffects": "None", "failurePolicy": "Ignore",
            "matchPolicy": "Exact", "timeoutSeconds": 30, "reinvocationPolicy": "IfNeeded", "rules": [rule],
            "namespaceSelector": selector(), "objectSelector": selector(), "clientConfig": config,
            "matchConditions": [{"name": "a", "expression": "true"}, {"name": "b", "expression": "true"}],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": metadata(),
        "webhooks": [
            webhook("a.example.com", json!({"service": {"namespace": "n", "name": "s", "port": 443, "path": "/a/b/"}})),
            webhook("b.example.com", json!({"url": "https://example.com:8443/path"})),
        ],
    })
}

pub(super) fn webhook_cases() -> Vec<Case> {
    const NAME: &str = "webhooks[0].name";
    const CONFIG: &str = "webhooks[0].clientConfig";
    const SERVICE: &str = "webhooks[0].clientConfig.service";
    const URL: &str = "webhooks[1].clientConfig.url";
    const VERSIONS: &str = "webhooks[0].admissionReviewVersions";
    const INVALID_URL: &[&str] = &["invalid-value webhooks[1].clientConfig.url"];
    vec![
        ("webhooks", json!(null), &[]),
        ("webhooks", json!([]), &[]),
        (NAME, json!(""), &["required webhooks[0].name"]),
        (
            NAME,
            json!("example.com"),
            &["invalid-name webhooks[0].name"],
        ),
        (
            NAME,
            json!("A.example.com"),
            &["invalid-name webhooks[0].name"],
        ),
        (
            NAME,
            json!("b.example.com"),
            &["duplicate-value webhooks[1].name"],
        ),
        (
            "webhooks[0].rules[0].operations",
            json!(["create"]),
            &["invalid-value webhooks[0].rules[0].operations[0]"],
        ),
        (
            "webhooks[0].failurePolicy",
            json!("fail"),
            &["invalid-value webhooks[0].failurePolicy"],
        ),
        (
            "webhooks[0].matchPolicy",
            json!("Like"),
            &["invalid-value webhooks[0].matchPolicy"],
        ),
        (
            "webhooks[0].sideEffects",
            json!(null),
            &["required webhooks[0].sideEffects"],
        ),
        (
            "webhooks[0].sideEffects",
            json!("Some"),
            &["invalid-value webhooks[0].sideEffects"],
        ),
        (
            "webhooks[0].timeoutSeconds",
            json!(0),
            &["invalid-value webhooks[0].timeoutSeconds"],
        ),
        (
            "webhooks[0].timeoutSeconds",
            json!(31),
            &["invalid-value webhooks[0].timeoutSeconds"],
        ),
        ("webhooks[0].timeoutSeconds", json!(null), &[]),
        (
            "webhooks[0].reinvocationPolicy",
            json!("Always"),
            &["invalid-value webhooks[0].reinvocationPolicy"],
        ),
        (
            "webhooks[0].namespaceSelector.matchExpressions[0].operator",
            json!("in"),
            &["invalid-value webhooks[0].namespaceSelector.matchExpressions[0].operator"],
        ),
        (
            "webhooks[0].objectSelector.matchLabels",
            json!({"a b": "c"}),
            &["invalid-name webhooks[0].objectSelector.matchLabels"],
        ),
        (CONFIG, json!({}), &["required webhooks[0].clientConfig"]),
        (CONFIG, json!(null), &["required webhooks[0].clientConfig"]),
        (
            CONFIG,
            json!({"url": "https://example.com", "service": {"namespace": "n", "name": "s"}}),
            &["required webhooks[0].clientConfig"],
        ),
        (
            SERVICE,
            json!({}),
            &[
                "required webhooks[0].clientConfig.service.namespace",
                "required webhooks[0].clientConfig.service.name",
            ],
        ),
        (
            SERVICE,
            json!({"namespace": "n", "name": "s", "port": 65536}),
            &["invalid-value webhooks[0].clientConfig.service.port"],
        ),
        (
            SERVICE,
            json!({"namespace": "n", "name": "s", "path": "a"}),
            &["invalid-value webhooks[0].clientConfig.service.path"],
        ),
        (
            SERVICE,
            json!({"namespace": "n", "name": "s", "path": "//"}),
            &["invalid-value webhooks[0].clientConfig.service.path"],
        ),
        (
            SERVICE,
            json!({"namespace": "n", "name": "s", "path": "/A"}),
            &["invalid-value webhooks[0].clientConfig.service.path"],
        ),
        (
            SERVICE,
            json!({"namespace": "n", "name": "s", "path": "/"}),
            &[],
        ),
        (URL, json!("http://example.com"), INVALID_URL),
        (URL, json!("https:///path"), INVALID_URL),
        (URL, json!("https://user@example.com"), INVALID_URL),
        (URL, json!("https://example.com?a=b"), INVALID_URL),
        (URL, json!("https://example.com#a"), INVALID_URL),
        (URL, json!("example.com/path"), INVALID_URL),
        (URL, json!("https://exa mple.com"), INVALID_URL),
        (
            "webhooks[0].matchConditions",
            (0..65)
                .map(|n| json!({"name": format!("n{n}"), "expression": "true"}))
                .collect(),
            &["too-large webhooks[0].matchConditions"],
        ),
        (
            "webhooks[0].matchConditions[1].name",
            json!("a"),
            &["duplicate-value webhooks[0].matchConditions[1].name"],
        ),
        (
            "webhooks[0].matchConditions[1].name",
            json!(""),
            &["required webhooks[0].matchConditions[1].name"],
        ),
        (
            "webhooks[0].matchConditions[1].name",
            json!("a b"),
            &["invalid-name webhooks[0].matchConditions[1].name"],
        ),
        (
            VERSIONS,
            json!([]),
            &["required webhooks[0].admissionReviewVersions"],
        ),
        (
            VERSIONS,
            json!(["v1", "V2"]),
            &["invalid-name webhooks[0].admissionReviewVersions[1]"],
        ),
        (
            VERSIONS,
            json!(["v1", "v1"]),
            &["duplicate-value webhooks[0].admissionReviewVersions[1]"],
        ),
        (
            VERSIONS,
            json!(["v2"]),
            &["invalid-value webhooks[0].admissionReviewVersions"],
        ),
    ]
}
