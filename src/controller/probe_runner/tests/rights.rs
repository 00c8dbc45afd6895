//! Tests of the cluster inputs that probes may use, and of the details that their statuses may show.

use super::*;
use crate::controller::cluster::snapshot::tests::snapshot;
use crate::controller::tests::id;

/// Returns a policy whose message contains the token of the param. For an object with two replicas, the policy fails
/// with an error that contains the token.
fn showing_policy() -> ValidatingAdmissionPolicy {
    let mut policy = policy("true");
    let spec = policy.spec.as_mut().unwrap();
    spec.param_kind =
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap"})).unwrap();
    spec.validations = serde_json::from_value(json!([{
        "expression": "object.spec.replicas == 2 ? int(params.data.token) > 0 : false",
        "messageExpression": "'the token is ' + params.data.token",
    }]))
    .unwrap();
    spec.audit_annotations = serde_json::from_value(json!([{
        "key": "token", "valueExpression": "params.data.token",
    }]))
    .unwrap();
    policy
}

/// Returns a cluster with a param that contains `token`, and the log of the requests.
fn cluster(token: &str, binding: ValidatingAdmissionPolicyBinding) -> (Arc<Context>, Log) {
    let token = token.to_owned();
    let (context, log) = context("true", move |request| {
        let map = json!({
            "metadata": {"name": "private", "namespace": "kube-system", "uid": "m", "resourceVersion": "5"},
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"token": token},
        });
        if request.path.contains("/configmaps/private") {
            return Some(Reply::json(&map));
        }
        if request.path.contains("/configmaps") {
            return Some(if request.path.contains("watch=") {
                Reply::json(&json!({"type": "BOOKMARK", "object": {
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "5"}}}))
            } else {
                Reply::json(&json!({"apiVersion": "v1", "kind": "ConfigMapList",
                    "metadata": {"resourceVersion": "5"}, "items": [map]}))
            });
        }
        if request.method == Method::PATCH && request.path.contains("/policyprobes/") {
            let mut probe = request.body.clone();
            probe["spec"] = json!({"policyName": "x", "cases": []});
            probe["metadata"]["resourceVersion"] = json!("1");
            return Some(Reply::json(&probe));
        }
        answer(request)
    });
    let mut discovered = snapshot(
        &[
            ("apps/v1", "deployments", "Deployment"),
            ("v1", "configmaps", "ConfigMap"),
        ],
        &[("apps/v1", "/openapi/v3/apis/apps/v1?hash=1")],
    );
    discovered.revision = context.snapshot().revision + 1;
    context.set_snapshot(discovered);
    let mut policy = showing_policy();
    policy.metadata.resource_version = Some("9".to_owned());
    policy.metadata.generation = Some(3);
    put(&context, policy);
    context.bindings.put(binding, EventSource::Watched);
    start(&context);
    (context, log)
}

fn referring() -> ValidatingAdmissionPolicyBinding {
    let mut binding = binding();
    binding.spec.param_ref = serde_json::from_value(json!({
        "name": "private", "namespace": "kube-system", "parameterNotFoundAction": "Deny",
    }))
    .unwrap();
    binding
}

/// Returns a probe with `fields` in its spec, and with cases that guess the content of the param.
fn guessing(fields: &Value) -> Probe {
    let case = |name: &str, replicas: i64, expect: Value| {
        json!({"name": name, "expect": expect, "request": {
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                       "spec": {"replicas": replicas}},
            "namespaceObject": {"metadata": {"name": "default"}}}})
    };
    let mut spec = json!({"policyName": "a", "samples": "Partial", "cases": [
        case("shows", 1, json!({"decision": "Allow"})),
        case("guesses", 1, json!({"decision": "Deny", "messagePattern": "token is s"})),
        case("errs", 2, json!({"decision": "Deny", "error": {"contains": "s3cr3t"}})),
        case("audits", 1, json!({"decision": "Deny", "auditAnnotations": {"token": "s3cr3t"}})),
    ]});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    serde_json::from_value(json!({
        "metadata": {"name": "p", "uid": "p", "generation": 1, "resourceVersion": "1"},
        "spec": spec,
    }))
    .unwrap()
}

/// Evaluates a probe with `fields`. Returns the bodies of all writes, the cases in the last status, and the number of
/// reads of the param.
async fn written(
    token: &str,
    binding: ValidatingAdmissionPolicyBinding,
    fields: &Value,
) -> (Vec<Value>, String, usize) {
    let (context, log) = cluster(token, binding);
    context.probes.put(guessing(fields), EventSource::Watched);
    for _ in 0..200 {
        reconcile(&context, &id("a")).await.unwrap();
        let is_done = log.lock().unwrap().iter().any(|seen| {
            seen.path.contains("/policyprobes/")
                && !seen.body.to_string().contains("not been read yet")
                && !seen.body.to_string().contains("is on its way")
        });
        if is_done {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let log = log.lock().unwrap();
    let bodies: Vec<Value> = log
        .iter()
        .filter(|seen| seen.method == Method::PATCH || seen.method == Method::POST)
        .map(|seen| seen.body.clone())
        .collect();
    let cases = log
        .iter()
        .rev()
        .find(|seen| seen.path.contains("/policyprobes/"))
        .map(|seen| seen.body["status"]["cases"].clone());
    let n_reads = log
        .iter()
        .filter(|seen| seen.path.contains("/configmaps/private"))
        .count();
    (bodies, cases.unwrap_or_default().to_string(), n_reads)
}

#[tokio::test(start_paused = true)]
async fn probe_reads_no_params_unless_a_binding_allows_it() {
    let own =
        json!({"name": "private", "namespace": "kube-system", "parameterNotFoundAction": "Deny"});
    let table = [
        (json!({"bindings": "Implied"}), "`bindings: Implied`"),
        (
            json!({"bindings": "Inline", "inlineBindings": [
                {"validationActions": ["Deny"], "paramRef": own}]}),
            "`bindings: Inline`",
        ),
        (
            json!({"bindings": "Inline", "inlineBindings": [{"validationActions": ["Deny"],
                "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}]}),
            "`bindings: Inline`",
        ),
        (
            json!({}),
            "the binding `b` does not allow probes to use its params",
        ),
    ];
    for (fields, reason) in table {
        let (first, cases, n_reads) = written("s3cr3t-one", referring(), &fields).await;
        assert!(cases.contains(reason), "{cases}");
        assert_eq!(cases.matches("\"Pending\"").count(), 4, "{cases}");
        assert_eq!(n_reads, 0, "{fields}");
        let (second, _, _) = written("7", referring(), &fields).await;
        assert_eq!(first, second, "{fields}");
        assert!(!Value::from(first).to_string().contains("s3cr3t"));
    }
}

#[tokio::test(start_paused = true)]
async fn results_that_use_params_of_the_cluster_have_no_details() {
    let (bodies, cases, n_reads) = written("s3cr3t-one", allowing(referring()), &json!({})).await;
    let text = Value::from(bodies).to_string();
    assert!(
        n_reads > 0 && cases.contains("expected Allow, got Deny"),
        "{cases}"
    );
    assert!(cases.contains("details are not shown"), "{cases}");
    assert_eq!(cases.matches("\"Passed\"").count(), 1, "{cases}");
    for secret in ["s3cr3t-one", "costUsed", "\"message\":\"the token"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_not_read_unless_a_binding_allows_it() {
    let by_label = "namespaceObject.metadata.labels['tier'] == 'test'";
    for (bindings, binding) in [("Implied", allowing(binding())), ("FromCluster", binding())] {
        let (context, log) = context(by_label, answer);
        context.bindings.put(binding, EventSource::Watched);
        let mut probe = probe(1, 6, bindings);
        probe.edit(|object| {
            let request = &mut object.spec.cases[0].request;
            request.namespace_object = None;
            request.namespace = Some("team".to_owned());
        });
        context.probes.put(probe, EventSource::Watched);
        start(&context);
        reconciled(&context, &log, 1).await;
        assert_eq!(outcomes(&log), ["Pending"], "{bindings}");
        let log = log.lock().unwrap();
        assert!(!log.iter().any(|seen| seen.path.contains("/namespaces/")));
        let written = log.iter().find(|seen| seen.path.contains("/policyprobes/"));
        let text = written.unwrap().body.to_string();
        assert!(text.contains("give the case a `namespaceObject`"), "{text}");
    }
}

/// Another writer overwrites each status, for example an instance with other permissions.
#[tokio::test(start_paused = true)]
async fn conflicting_writers_are_rate_limited() {
    let versions = Mutex::new(100_u64);
    let (context, log) = context(AT_MOST_FIVE, move |request| {
        if request.method != Method::PATCH || !request.path.contains("/policyprobes/p/status") {
            return answer(request);
        }
        let mut version = versions.lock().unwrap();
        *version += 1;
        let mut probe = serde_json::to_value(probe(1, 6, "Implied").object()).unwrap();
        probe["metadata"]["resourceVersion"] = json!(version.to_string());
        probe["status"] = request.body["status"].clone();
        probe["status"]["summary"] = json!("0/9");
        Some(Reply::json(&probe))
    });
    start(&context);
    context
        .probes
        .put(probe(1, 6, "Implied"), EventSource::Watched);
    let resync = tokio::spawn({
        let context = Arc::clone(&context);
        async move {
            loop {
                reconcile(&context, &id("a")).await.unwrap();
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    });
    tokio::time::sleep(Duration::from_secs(50)).await;
    let n_written = outcomes(&log).len();
    assert_eq!(n_written, 100);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let n_written = outcomes(&log).len();
    assert!((101..=200).contains(&n_written), "{n_written}");
    resync.abort();
}

/// An older CustomResourceDefinition of probes may lack a field. Writes of statuses with this field fail, but other
/// statuses are written.
#[tokio::test(start_paused = true)]
async fn missing_status_field_affects_no_other_probe() {
    let lacking = "failed to create typed patch object (/p; vap-status.dev/v1alpha1, Kind=PolicyProbe): \
                   .status.cases[name=\"many\"].costUsed: field not declared in schema";
    let (context, log) = context(AT_MOST_FIVE, move |request| {
        if request.method == Method::PATCH && request.path.contains("/policyprobes/p/status") {
            return Some(Reply::failure(500, lacking));
        }
        if request.method == Method::PATCH && request.path.contains("/policyprobes/") {
            let mut other = serde_json::to_value(probe(1, 6, "Implied").object()).unwrap();
            other["metadata"]["name"] = json!("q");
            other["status"] = request.body["status"].clone();
            return Some(Reply::json(&other));
        }
        answer(request)
    });
    start(&context);
    context
        .probes
        .put(probe(1, 6, "Implied"), EventSource::Watched);
    let mut other = probe(1, 6, "Implied");
    other.edit(|object| object.metadata.name = Some("q".to_owned()));
    context.probes.put(other, EventSource::Watched);
    reconcile(&context, &id("a")).await.unwrap();
    until(|| {
        let log = log.lock().unwrap();
        log.iter()
            .any(|seen| seen.path.contains("/policyprobes/q/status"))
    })
    .await;
    let text = context.metrics.encode().unwrap();
    let counted = "vap_probe_status_write_errors_total{reason=\"invalid\"}";
    assert!(text.contains(counted), "{text}");
}
