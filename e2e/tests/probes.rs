//! Tests large probes, and probes whose policies, bindings or params are missing. Statuses stay correct, and no metrics
//! remain after a deletion.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use e2e::allowed_failures::AllowedFailure;
use e2e::conditions::{wait_for, wait_for_policy};
use e2e::control_plane::ControlPlane;
use e2e::controller::{
    Controller, control_plane, grant_access_reviews, grant_params, install_probes,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vap_status_controller::probe::api::PolicyProbe;

const TIMEOUT: Duration = Duration::from_secs(60);

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

async fn cluster() -> (ControlPlane, Client, Controller) {
    let control_plane = control_plane().await.unwrap();
    grant_params(&control_plane).unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    (control_plane, client, controller)
}

fn policy(name: &str, param_kind: Option<Value>, expression: &str) -> ValidatingAdmissionPolicy {
    object(json!({
        "metadata": {"name": name},
        "spec": {
            "paramKind": param_kind,
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["deployments"]}]},
            "validations": [{"expression": expression}],
        },
    }))
}

fn binding(policy: &str, param_ref: Option<Value>) -> ValidatingAdmissionPolicyBinding {
    object(json!({
        "metadata": {"name": policy, "annotations": {"vap-status.dev/probe-inputs": "FromCluster"}},
        "spec": {"policyName": policy, "validationActions": ["Deny"], "paramRef": param_ref},
    }))
}

/// Returns a case with a Deployment of six replicas, which must be denied.
fn case(name: &str) -> Value {
    json!({
        "name": name,
        "request": {"object": {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 6}}},
        "expect": {"decision": "Deny"},
    })
}

fn probe(name: &str, policy: &str, bindings: &str, cases: Vec<Value>) -> Value {
    json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": name},
        "spec": {"policyName": policy, "samples": "Partial", "bindings": bindings, "cases": cases},
    })
}

/// Returns the API of probes as dynamic objects, because typed objects do not support deep nesting.
fn probes(client: &Client) -> Api<DynamicObject> {
    let resource = kube::core::ApiResource::erase::<PolicyProbe>(&());
    Api::all_with(client.clone(), &resource)
}

async fn create_probe(client: &Client, probe: Value) -> kube::Result<DynamicObject> {
    let api = probes(client);
    api.create(&PostParams::default(), &object(probe)).await
}

async fn wait_for_condition(client: &Client, name: &str, type_: &str, wanted: &str) -> String {
    wait_for_policy(client, name, type_, wanted, TIMEOUT)
        .await
        .unwrap()
}

/// The status of an object. The rest of the object may be nested too deeply for decoding.
#[derive(serde::Deserialize)]
struct Outline {
    #[serde(default)]
    status: Value,
}

async fn wait_for_probe(client: &Client, name: &str, wanted: &str) -> String {
    let status = || async {
        let path = format!("/apis/vap-status.dev/v1alpha1/policyprobes/{name}/status");
        let request = http::Request::get(path).body(Vec::new())?;
        let text = client.request_text(request).await?;
        Ok(serde_json::from_str::<Outline>(&text)?.status)
    };
    wait_for(name, "Ready", wanted, TIMEOUT, status)
        .await
        .unwrap()
}

async fn series(controller: &Controller, policy: &str) -> usize {
    let (_, text) = controller.get("/metrics").await.unwrap();
    let label = format!("policy=\"{policy}\"");
    text.lines()
        .filter(|line| line.starts_with("vap_probe_cases{") && line.contains(&label))
        .count()
}

async fn compilations(controller: &Controller) -> u64 {
    let (_, text) = controller.get("/metrics").await.unwrap();
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("vap_policy_compilations_total "));
    count.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_statuses_change_with_dependencies() {
    let (_control_plane, client, controller) = cluster().await;
    let create = PostParams::default();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let map = |n: usize, max: &str| -> ConfigMap {
        object(
            json!({"metadata": {"name": format!("limit-{n}"), "labels": {"limit": "yes"}},
                      "data": {"max": max}}),
        )
    };
    let config_maps = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let limited = policy(
        "limited",
        Some(config_maps),
        "object.spec.replicas <= int(params.data.max)",
    );
    policies.create(&create, &limited).await.unwrap();
    maps.create(&create, &map(0, "5")).await.unwrap();
    let by_label = json!({"selector": {"matchLabels": {"limit": "yes"}},
                          "parameterNotFoundAction": "Deny"});
    let bound = binding("limited", Some(by_label));
    bindings.create(&create, &bound).await.unwrap();
    create_probe(
        &client,
        probe("limited", "limited", "FromCluster", vec![case("six")]),
    )
    .await
    .unwrap();
    wait_for_probe(&client, "limited", "True/ProbesPassed").await;
    wait_for_condition(&client, "limited", "Ready", "True/").await;
    let before = compilations(&controller).await;

    // A changed param does not require another compilation of the policy.
    let patch = |max: &str| Patch::Merge(json!({"data": {"max": max}}));
    maps.patch("limit-0", &PatchParams::default(), &patch("7"))
        .await
        .unwrap();
    let failed = wait_for_condition(&client, "limited", "ProbesPassed", "False/ProbesFailed").await;
    assert!(failed.contains("expected Deny, got Allow"), "{failed}");
    maps.patch("limit-0", &PatchParams::default(), &patch("5"))
        .await
        .unwrap();
    wait_for_condition(&client, "limited", "ProbesPassed", "True/").await;

    // There are more params than the controller reads, so the probe is no longer reported as passed.
    stream::iter(1..=500)
        .map(|n| {
            let (maps, map) = (maps.clone(), map(n, "5"));
            async move { maps.create(&PostParams::default(), &map).await }
        })
        .buffer_unordered(32)
        .try_for_each(|_| async { Ok(()) })
        .await
        .unwrap();
    let pending =
        wait_for_condition(&client, "limited", "ProbesPassed", "Unknown/ProbesPending").await;
    assert!(
        pending.contains("the probe needs 501 params, but at most 500 are allowed"),
        "{pending}"
    );
    wait_for_condition(&client, "limited", "Ready", "Unknown/Pending").await;
    wait_for_probe(&client, "limited", "Unknown/ProbesPending").await;

    // Without params, the binding denies the request, but no validation is false.
    let selected = ListParams::default().labels("limit=yes");
    maps.delete_collection(&DeleteParams::default(), &selected)
        .await
        .unwrap();
    wait_for_condition(&client, "limited", "ParamsResolved", "False/ParamsNotFound").await;
    let failed = wait_for_probe(&client, "limited", "False/ProbesFailed").await;
    assert!(failed.contains("there are no params"), "{failed}");
    let mut expected = case("six");
    expected["expect"] = json!({"decision": "Deny", "error": {"contains": "no params found"}});
    let patch = Patch::Merge(json!({"spec": {"cases": [expected]}}));
    probes(&client)
        .patch("limited", &PatchParams::default(), &patch)
        .await
        .unwrap();
    wait_for_probe(&client, "limited", "True/ProbesPassed").await;

    // Without a binding, no request is denied.
    bindings
        .delete("limited", &DeleteParams::default())
        .await
        .unwrap();
    let failed = wait_for_condition(&client, "limited", "ProbesPassed", "False/ProbesFailed").await;
    assert!(failed.contains("no binding"), "{failed}");
    assert_eq!(compilations(&controller).await, before);

    assert_eq!(series(&controller, "limited").await, 3);
    policies
        .delete("limited", &DeleteParams::default())
        .await
        .unwrap();
    wait_for_probe(&client, "limited", "False/PolicyNotFound").await;
    assert_eq!(series(&controller, "limited").await, 0);
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_of_deleted_param_kind_are_pending() {
    let (_control_plane, client, controller) = cluster().await;
    let create = PostParams::default();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd: CustomResourceDefinition = object(json!({
        "metadata": {"name": "limits.e2e.example.com"},
        "spec": {
            "group": "e2e.example.com", "scope": "Cluster",
            "names": {"plural": "limits", "singular": "limit", "kind": "Limit", "listKind": "LimitList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"max": {"type": "integer"}}}}}],
        },
    }));
    crds.create(&create, &crd).await.unwrap();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let limits = json!({"apiVersion": "e2e.example.com/v1", "kind": "Limit"});
    let limited = policy(
        "limited",
        Some(limits),
        "object.spec.replicas <= params.max",
    );
    policies.create(&create, &limited).await.unwrap();
    let mut inline = probe("inline", "limited", "Implied", vec![case("six")]);
    inline["spec"]["params"] = json!("Inline");
    inline["spec"]["inlineParams"] = json!([{
        "apiVersion": "e2e.example.com/v1", "kind": "Limit", "metadata": {"name": "five"}, "max": 5,
    }]);
    create_probe(&client, inline).await.unwrap();
    wait_for_probe(&client, "inline", "True/ProbesPassed").await;

    // The controller is not allowed to read these params. The status contains the missing permission.
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let bound = binding(
        "limited",
        Some(json!({"selector": {}, "parameterNotFoundAction": "Deny"})),
    );
    bindings.create(&create, &bound).await.unwrap();
    create_probe(
        &client,
        probe("from-cluster", "limited", "FromCluster", vec![case("six")]),
    )
    .await
    .unwrap();
    controller.allow([
        AllowedFailure::error(
            "listing limits.e2e.example.com is not allowed: grant get, list and watch",
        )
        .required(),
        AllowedFailure::sync("params", "forbidden").required(),
    ]);
    let wanted = "Unknown/ProbesPending: 1 of 1 case could not be evaluated: from-cluster, \"six\": \
                  listing limits.e2e.example.com is not allowed: grant get, list and watch on limits.e2e.example.com";
    wait_for_probe(&client, "from-cluster", wanted).await;

    crds.delete("limits.e2e.example.com", &DeleteParams::default())
        .await
        .unwrap();
    wait_for_condition(&client, "limited", "Ready", "False/ParamKindNotFound").await;
    let wanted = "Unknown/ProbesPending: 1 of 1 case could not be evaluated: from-cluster, \"six\": paramKind \
                  e2e.example.com/v1 Limit is not served";
    wait_for_probe(&client, "from-cluster", wanted).await;
    let pending =
        wait_for_condition(&client, "limited", "ProbesPassed", "Unknown/ProbesPending").await;
    assert!(pending.contains("1 of 2 cases"), "{pending}");
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_and_large_probes_are_evaluated_despite_deep_probes() {
    let (control_plane, client, controller) = cluster().await;
    let create = PostParams::default();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let few = policy("few", None, "object.spec.replicas <= 5");
    policies.create(&create, &few).await.unwrap();

    // The schema allows 256 cases.
    let cases = |n: usize| (0..n).map(|n| case(&format!("case {n}"))).collect();
    let refused = create_probe(&client, probe("more", "few", "Implied", cases(257)))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("256"), "{refused}");
    create_probe(&client, probe("most", "few", "Implied", cases(256)))
        .await
        .unwrap();
    let passed = wait_for_probe(&client, "most", "True/ProbesPassed").await;
    assert!(passed.contains("256 cases"), "{passed}");

    // This probe has almost the maximum size of a request.
    let mut large = case("large");
    large["request"]["object"]["metadata"]["annotations"] = json!({"a": "x".repeat(200_000)});
    large["request"]["object"]["spec"]["template"] =
        json!({"metadata": {"annotations": {"b": "y".repeat(1_000_000)}}});
    create_probe(&client, probe("large", "few", "Implied", vec![large]))
        .await
        .unwrap();
    wait_for_probe(&client, "large", "True/ProbesPassed").await;

    // The controller cannot parse this probe, because the nesting is too deep. Other probes are not affected.
    let depth = 1000;
    let mut deep = probe("deep", "few", "Implied", vec![case("deep")]);
    deep["spec"]["cases"][0]["request"]["object"]["spec"]["deep"] = json!("HERE");
    let nested = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let text = deep.to_string().replace("\"HERE\"", &nested);
    let request = http::Request::post("/apis/vap-status.dev/v1alpha1/policyprobes")
        .header("content-type", "application/json")
        .body(text.into_bytes())
        .unwrap();
    client.request_text(request).await.unwrap();
    let evaluated = wait_for_probe(&client, "deep", "Unknown/ProbesPending");
    let unread = tokio::time::timeout(TIMEOUT / 2, evaluated).await;
    let unread = unread.unwrap_or_else(|_| panic!("{}", controller.log().unwrap()));
    assert!(unread.contains("recursion limit"), "{unread}");
    let unread = wait_for_condition(&client, "few", "ProbesPassed", "Unknown/ProbesPending").await;
    assert!(
        unread.contains("deep: its spec cannot be parsed"),
        "{unread}"
    );

    // A controller that starts now must evaluate the other probes.
    stream::iter(0..100)
        .map(|n| {
            let probe = probe(&format!("p{n}"), "few", "Implied", vec![case("six")]);
            create_probe(&client, probe)
        })
        .buffer_unordered(16)
        .try_for_each(|_| async { Ok(()) })
        .await
        .unwrap();
    for n in 0..100 {
        wait_for_probe(&client, &format!("p{n}"), "True/ProbesPassed").await;
    }
    assert_eq!(series(&controller, "few").await, 103 * 3);
    controller.kill().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    probes(&client)
        .delete("deep", &DeleteParams::default())
        .await
        .unwrap();
    wait_for_condition(&client, "few", "ProbesPassed", "True/ProbesPassed").await;
    println!(
        "{} KiB resident with 102 probes",
        controller.resident_kib().unwrap()
    );
    probes(&client)
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    wait_for_condition(&client, "few", "ProbesPassed", "Unknown/NoProbes").await;
    assert_eq!(series(&controller, "few").await, 0);
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_without_access_review_permission_are_pending() {
    let (control_plane, client, controller) = cluster().await;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    grant_access_reviews(&control_plane).unwrap();
    let asking = policy(
        "asking",
        None,
        "authorizer.group('apps').resource('deployments').check('scale').allowed()",
    );
    policies
        .create(&PostParams::default(), &asking)
        .await
        .unwrap();
    let mut from_cluster = probe("asking", "asking", "Implied", vec![case("nobody")]);
    from_cluster["spec"]["authorizer"] = json!("FromCluster");
    from_cluster["spec"]["cases"][0]["request"]["userInfo"] = json!({"username": "nobody"});
    create_probe(&client, from_cluster.clone()).await.unwrap();
    wait_for_probe(&client, "asking", "True/ProbesPassed").await;

    let outcome = control_plane
        .kubectl()
        .unwrap()
        .args(["delete", "clusterrolebinding"])
        .arg("vap-status-controller-subject-access-reviews")
        .output()
        .unwrap();
    assert!(outcome.status.success());
    // The access review for the earlier user is cached for a minute, so the case now needs a different user.
    from_cluster["spec"]["cases"][0]["name"] = json!("somebody");
    from_cluster["spec"]["cases"][0]["request"]["userInfo"] = json!({"username": "somebody"});
    let apply = PatchParams::apply("e2e").force();
    probes(&client)
        .patch("asking", &apply, &Patch::Apply(&from_cluster))
        .await
        .unwrap();
    let pending = wait_for_probe(&client, "asking", "Unknown/ProbesPending").await;
    assert!(
        pending.contains("grant create on subjectaccessreviews.authorization.k8s.io"),
        "{pending}"
    );
    wait_for_condition(&client, "asking", "ProbesPassed", "Unknown/ProbesPending").await;
    controller.finish().await.unwrap();
}
