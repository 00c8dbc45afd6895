//! Tests that probes do not reveal secrets. A user may create probes, but is not allowed to read a certain param and a
//! certain namespace. Neither messages nor results of probes may depend on them. Two clusters that differ only in a
//! secret token must look the same to the user.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::conditions::wait_for;
use e2e::control_plane::{ControlPlane, User};
use e2e::controller::{
    Controller, grant_params, grant_permissions, install_probes, service_account,
};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vap_status_controller::probe::api::PolicyProbe;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The values of the token. `int()` accepts only the first value.
const TOKENS: [&str; 2] = ["70461230917", "sesame-opens"];

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn probes(client: &Client) -> Api<DynamicObject> {
    let resource = kube::core::ApiResource::erase::<PolicyProbe>(&());
    Api::all_with(client.clone(), &resource)
}

async fn create<K>(api: Api<K>, value: Value)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), &object(value))
        .await
        .unwrap();
}

/// Starts a cluster with the token in the param `private` and in a namespace label. Returns clients of the
/// administrator and of the tenant. The tenant may create probes and read policies, bindings and Events.
async fn cluster(token: &str) -> (ControlPlane, Client, Client) {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .user(User::new("tenant", &["system:authenticated"]))
        .start()
        .await
        .unwrap();
    grant_permissions(&control_plane).unwrap();
    grant_params(&control_plane).unwrap();
    let admin = control_plane.client().await.unwrap();
    install_probes(&admin).await.unwrap();
    let rules = json!([
        {"apiGroups": ["vap-status.dev"], "resources": ["policyprobes"], "verbs": ["create", "get", "list", "watch"]},
        {"apiGroups": ["admissionregistration.k8s.io"], "verbs": ["get", "list", "watch"],
         "resources": ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["get", "list", "watch"]},
    ]);
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    create(
        roles,
        json!({"metadata": {"name": "tenant"}, "rules": rules}),
    )
    .await;
    let granted = json!({"metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tenant"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}]});
    create(Api::<ClusterRoleBinding>::all(admin.clone()), granted).await;

    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), "kube-system");
    let private = json!({"metadata": {"name": "private", "labels": {"token": token}}, "data": {"token": token}});
    create(maps, private).await;
    let namespace = json!({"metadata": {"name": "vault", "labels": {"token": token}, "annotations": {"token": token}}});
    create(Api::<Namespace>::all(admin.clone()), namespace).await;

    let constraints = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["configmaps"]}]});
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    for name in ["bound", "unbound"] {
        let policy = json!({"metadata": {"name": name}, "spec": {
            "paramKind": kind, "matchConstraints": constraints,
            "validations": [
                {"expression": "object.data.guess == params.data.token",
                 "messageExpression": "'the token is ' + params.data.token"},
                {"expression": "int(params.data.token) >= 0"},
            ],
            "auditAnnotations": [{"key": "token", "valueExpression": "string(params.data.token)"}],
        }});
        create(Api::<ValidatingAdmissionPolicy>::all(admin.clone()), policy).await;
    }
    let by_namespace = json!({"metadata": {"name": "namespaced"}, "spec": {
        "matchConstraints": constraints,
        "validations": [{"expression": "namespaceObject.metadata.labels['token'] == object.data.guess",
                         "messageExpression": "'the token is ' + namespaceObject.metadata.labels['token']"}],
    }});
    let plain = json!({"metadata": {"name": "plain"}, "spec": {
        "matchConstraints": constraints, "validations": [{"expression": "false"}]}});
    for policy in [by_namespace, plain] {
        create(Api::<ValidatingAdmissionPolicy>::all(admin.clone()), policy).await;
    }
    let reference =
        json!({"name": "private", "namespace": "kube-system", "parameterNotFoundAction": "Deny"});
    for (policy, reference) in [("bound", reference), ("namespaced", Value::Null)] {
        let binding = json!({"metadata": {"name": policy}, "spec": {
            "policyName": policy, "validationActions": ["Deny"], "paramRef": reference}});
        create(
            Api::<ValidatingAdmissionPolicyBinding>::all(admin.clone()),
            binding,
        )
        .await;
    }
    let tenant = control_plane.client_for("tenant").await.unwrap();
    (control_plane, admin, tenant)
}

/// Returns cases with which the tenant tries to guess the token. A case combines a guess with an expected result.
fn guesses(namespace: &str) -> Vec<Value> {
    let mut expected = vec![
        json!({"decision": "Allow"}),
        json!({"decision": "Deny"}),
        json!({"decision": "Deny", "error": {"contains": "parsing"}}),
        json!({"decision": "Deny", "auditAnnotations": {"token": TOKENS[0]}}),
        json!({"applies": false}),
    ];
    for token in TOKENS {
        expected.push(json!({"decision": "Deny", "message": format!("the token is {token}")}));
        expected.push(json!({"decision": "Deny", "messagePattern": format!("{token}$")}));
    }
    let guesses = ["70461230917", "sesame-opens", "7"];
    let case = |(n, (guess, expect)): (usize, (&str, &Value))| {
        json!({"name": format!("case {n}"), "expect": expect, "request": {"object": {
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"guess": guess},
                "metadata": {"name": "m", "namespace": namespace}}}})
    };
    let each = guesses
        .into_iter()
        .flat_map(|guess| expected.iter().map(move |it| (guess, it)));
    each.enumerate().map(case).collect()
}

/// Returns the tenant's probes, and the expected reasons why they are pending.
fn attacks() -> Vec<(Value, &'static str)> {
    let probe = |name: &str, policy: &str, namespace: &str, fields: Value| {
        let mut spec = json!({"policyName": policy, "cases": guesses(namespace)});
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        json!({"apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
               "metadata": {"name": name}, "spec": spec})
    };
    let inline = |spec: Value| json!({"bindings": "Inline", "inlineBindings": [spec]});
    let deny =
        |reference: Value| inline(json!({"validationActions": ["Deny"], "paramRef": reference}));
    let own = "params of the cluster are used only through bindings of the cluster";
    let namespaces = "namespaces of the cluster";
    let mut attacks = vec![
        (
            probe("by-binding", "bound", "default", json!({})),
            "the binding `bound` does not allow probes to use its params",
        ),
        (
            probe(
                "implied",
                "bound",
                "default",
                json!({"bindings": "Implied"}),
            ),
            own,
        ),
        (
            probe(
                "implied-unbound",
                "unbound",
                "kube-system",
                json!({"bindings": "Implied"}),
            ),
            own,
        ),
        (
            probe(
                "by-name",
                "bound",
                "default",
                deny(json!({
                "name": "private", "namespace": "kube-system", "parameterNotFoundAction": "Allow"})),
            ),
            own,
        ),
        (
            probe(
                "of-request",
                "unbound",
                "kube-system",
                deny(json!({
                "name": "private", "parameterNotFoundAction": "Deny"})),
            ),
            own,
        ),
        (
            probe("namespace", "namespaced", "vault", json!({})),
            namespaces,
        ),
        (
            probe(
                "namespace-implied",
                "namespaced",
                "vault",
                json!({"bindings": "Implied"}),
            ),
            namespaces,
        ),
    ];
    for (n, token) in TOKENS.iter().enumerate() {
        let labels = json!({"matchLabels": {"token": token}});
        let selected = deny(json!({"selector": labels, "parameterNotFoundAction": "Deny"}));
        attacks.push((
            probe(&format!("selected-{n}"), "bound", "default", selected),
            own,
        ));
        let in_namespace = inline(json!({"validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": labels}}));
        let name = format!("namespace-selected-{n}");
        attacks.push((probe(&name, "plain", "vault", in_namespace), namespaces));
    }
    attacks
}

async fn wait_for_probe(client: &Client, name: &str, wanted: &str) -> String {
    let status = || async {
        let probe = probes(client).get(name).await?;
        Ok(probe.data["status"].clone())
    };
    wait_for(name, "Ready", wanted, TIMEOUT, status)
        .await
        .unwrap()
}

/// Formats the conditions and cases of a status, without times.
fn shown(kind: &str, name: &str, status: &Value) -> String {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let conditions: Vec<Value> = conditions
        .into_iter()
        .map(|mut condition| {
            condition["lastTransitionTime"].take();
            condition
        })
        .collect();
    format!(
        "{kind} {name}: {} {} {}",
        status["summary"],
        Value::from(conditions),
        status["cases"]
    )
}

/// Returns all statuses, conditions, Events and metrics that the tenant can read, without times.
async fn seen(tenant: &Client, controller: &Controller) -> BTreeSet<String> {
    let all = ListParams::default();
    let mut seen = BTreeSet::new();
    for probe in probes(tenant).list(&all).await.unwrap() {
        let name = probe.metadata.name.unwrap_or_default();
        seen.insert(shown("probe", &name, &probe.data["status"]));
    }
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(tenant.clone());
    for policy in policies.list(&all).await.unwrap() {
        let status = serde_json::to_value(&policy.status).unwrap();
        seen.insert(shown(
            "policy",
            &policy.metadata.name.unwrap_or_default(),
            &status,
        ));
    }
    let events: Api<Event> = Api::namespaced(tenant.clone(), "default");
    for event in events.list(&all).await.unwrap() {
        // The API server also writes Events, for example if it repairs the allocation of a cluster IP.
        if event.reporting_controller.as_deref() != Some("vap-status-controller") {
            continue;
        }
        let about = event.regarding.and_then(|it| it.name).unwrap_or_default();
        seen.insert(format!(
            "event {about}: {:?} {:?}",
            event.reason, event.note
        ));
    }
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    let lines = metrics.lines().filter(|line| line.contains("policy=\""));
    seen.extend(lines.map(str::to_owned));
    seen
}

/// Waits until the data that the tenant can read is unchanged.
async fn settled(tenant: &Client, controller: &Controller) -> BTreeSet<String> {
    let mut before = seen(tenant, controller).await;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = seen(tenant, controller).await;
        if now == before {
            return now;
        }
        before = now;
    }
    panic!("the data that the tenant can read does not settle: {before:#?}");
}

/// Asserts that the token is not in the log, in the metrics or in `seen`. The tenant's own specs are not included.
async fn assert_hidden(token: &str, seen: &BTreeSet<String>, controller: &Controller) {
    for text in seen {
        assert!(!text.contains(token), "{text}");
    }
    let log = controller.log().unwrap();
    assert!(!log.contains(token), "{log}");
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    assert!(!metrics.contains(token), "{metrics}");
}

/// Runs all attacks in a cluster with this token. Returns the data that the tenant can read.
async fn attacked(token: &str) -> BTreeSet<String> {
    let (control_plane, admin, tenant) = cluster(token).await;
    let maps: Api<ConfigMap> = Api::namespaced(tenant.clone(), "kube-system");
    assert!(
        maps.get("private")
            .await
            .unwrap_err()
            .to_string()
            .contains("forbidden")
    );
    let namespaces: Api<Namespace> = Api::all(tenant.clone());
    assert!(
        namespaces
            .get("vault")
            .await
            .unwrap_err()
            .to_string()
            .contains("forbidden")
    );

    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let attacks = attacks();
    for (probe, _) in &attacks {
        create(probes(&tenant), probe.clone()).await;
    }
    for (probe, reason) in &attacks {
        let name = probe["metadata"]["name"].as_str().unwrap();
        let pending = wait_for_probe(&tenant, name, "Unknown/ProbesPending").await;
        assert!(pending.contains(reason), "{name}: {pending}");
    }
    let seen = settled(&tenant, &controller).await;
    assert_hidden(token, &seen, &controller).await;

    // The owner of the binding allows probes to use the params of the binding. Results are then shown, but no messages.
    let allowed =
        json!({"metadata": {"annotations": {"vap-status.dev/probe-inputs": "FromCluster"}}});
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(admin.clone());
    for binding in ["bound", "namespaced"] {
        let patch = Patch::Merge(&allowed);
        bindings
            .patch(binding, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    for name in ["by-binding", "namespace"] {
        let failed = wait_for_probe(&tenant, name, "False/ProbesFailed").await;
        assert!(failed.contains("details are not shown"), "{failed}");
    }
    // A reference in the probe itself still has no effect.
    for name in ["implied", "by-name", "namespace-implied"] {
        wait_for_probe(&tenant, name, "Unknown/ProbesPending").await;
    }
    let allowed = settled(&tenant, &controller).await;
    let has_events = allowed.iter().any(|text| text.starts_with("event "));
    assert!(has_events, "{allowed:#?}");
    assert_hidden(token, &allowed, &controller).await;
    controller.finish().await.unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_do_not_reveal_params_and_namespaces() {
    let [one, other] = TOKENS;
    let (first, second) = (attacked(one).await, attacked(other).await);
    assert!(
        first.iter().any(|text| text.contains("vap_probe_cases{")),
        "{first:#?}"
    );
    let differences: Vec<&String> = first.symmetric_difference(&second).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}
