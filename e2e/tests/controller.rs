//! Tests the controller on a real API server. Conditions appear. They change only when the objects on which they
//! depend change.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::time::{Duration, Instant};

use e2e::allowed_failures::{new_kind, outage};
use e2e::controller::{Controller, control_plane};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

fn policies(client: &Client) -> Api<ValidatingAdmissionPolicy> {
    Api::all(client.clone())
}

fn policy(name: &str, spec: Value) -> ValidatingAdmissionPolicy {
    serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }))
    .unwrap()
}

fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
    }]})
}

fn on_deployments(name: &str, expression: &str) -> ValidatingAdmissionPolicy {
    policy(
        name,
        json!({
            "matchConstraints": rule("apps", "v1", "deployments"),
            "validations": [{"expression": expression}],
        }),
    )
}

fn crd(replicas_type: &str) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e2e.example.com"},
        "spec": {
            "group": "e2e.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": replicas_type}}}},
            }}}],
        },
    }))
    .unwrap()
}

/// Formats the condition `type_` as `True/Ready`.
fn condition(policy: &ValidatingAdmissionPolicy, type_: &str) -> String {
    let conditions = policy
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == type_)
        .map(|condition| format!("{}/{}", condition.status, condition.reason))
        .unwrap_or_default()
}

/// Waits until `done` returns true for the policy. After a timeout, the failure contains the policy's status.
async fn wait_until(
    api: &Api<ValidatingAdmissionPolicy>,
    name: &str,
    what: &str,
    done: impl Fn(&ValidatingAdmissionPolicy) -> bool,
) -> ValidatingAdmissionPolicy {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let policy = api.get(name).await.unwrap();
        if done(&policy) {
            return policy;
        }
        assert!(
            Instant::now() < deadline,
            "{name}: not {what}: {:#?}",
            policy.status
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn wait_for_condition(
    api: &Api<ValidatingAdmissionPolicy>,
    name: &str,
    type_: &str,
    wanted: &str,
) -> ValidatingAdmissionPolicy {
    let what = format!("{type_}={wanted}");
    wait_until(api, name, &what, |policy| {
        condition(policy, type_) == wanted
    })
    .await
}

async fn assert_not_written(api: &Api<ValidatingAdmissionPolicy>, name: &str, duration: Duration) {
    let before = api.get(name).await.unwrap().metadata.resource_version;
    tokio::time::sleep(duration).await;
    assert_eq!(
        api.get(name).await.unwrap().metadata.resource_version,
        before,
        "{name} was written"
    );
}

/// Waits until a policy is not written for one second. Returns its resource version.
async fn settle(api: &Api<ValidatingAdmissionPolicy>, name: &str) -> Option<String> {
    let mut before = api.get(name).await.unwrap().metadata.resource_version;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = api.get(name).await.unwrap().metadata.resource_version;
        if now == before {
            return now;
        }
        before = now;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_invalid_policies_report_problems() {
    let control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let api = policies(&control_plane.client().await.unwrap());
    let create = PostParams::default();

    api.create(
        &create,
        &on_deployments("sound", "object.spec.replicas <= 5"),
    )
    .await
    .unwrap();
    let sound = wait_for_condition(&api, "sound", "Ready", "True/Ready").await;
    assert_eq!(condition(&sound, "Compiled"), "True/AllExpressionsCompile");
    assert_eq!(condition(&sound, "TypeChecked"), "True/NoWarnings");
    assert_eq!(
        condition(&sound, "ResourcesMatched"),
        "True/ResourcesServed"
    );
    assert_eq!(
        condition(&sound, "ParamsResolved"),
        "True/ParamsNotRequired"
    );
    let status = sound.status.unwrap();
    assert_eq!(status.observed_generation, Some(1));
    assert!(status.type_checking.is_some());

    api.create(
        &create,
        &on_deployments("misspelt", "object.spec.replicsa <= 5"),
    )
    .await
    .unwrap();
    let misspelt = wait_for_condition(&api, "misspelt", "Ready", "False/ExpressionWarnings").await;
    let warnings = misspelt
        .status
        .unwrap()
        .type_checking
        .unwrap()
        .expression_warnings
        .unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].warning,
        "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'\n | \
         object.spec.replicsa <= 5\n | ...........^\n"
    );

    let unserved = policy(
        "unserved",
        json!({
            "matchConstraints": rule("apps", "v1", "deployment"),
            "validations": [{"expression": "true"}],
        }),
    );
    api.create(&create, &unserved).await.unwrap();
    wait_for_condition(&api, "unserved", "Ready", "False/NoServedResources").await;
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_policy_change_with_its_crd() {
    let control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let client = control_plane.client().await.unwrap();
    let api = policies(&client);
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let on_widgets = policy(
        "widgets",
        json!({
            "matchConstraints": rule("e2e.example.com", "v1", "widgets"),
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        }),
    );
    api.create(&PostParams::default(), &on_widgets)
        .await
        .unwrap();
    let with_params = policy(
        "with-params",
        json!({
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "e2e.example.com/v1", "kind": "Widget"},
            "matchConstraints": rule("apps", "v1", "deployments"),
            "validations": [{"expression": "object.spec.replicas <= params.spec.replicas"}],
        }),
    );
    api.create(&PostParams::default(), &with_params)
        .await
        .unwrap();
    wait_for_condition(
        &api,
        "widgets",
        "ResourcesMatched",
        "False/NoServedResources",
    )
    .await;
    wait_for_condition(
        &api,
        "with-params",
        "ParamsResolved",
        "False/ParamKindNotFound",
    )
    .await;

    controller.allow(new_kind("params"));
    crds.create(&PostParams::default(), &crd("integer"))
        .await
        .unwrap();
    wait_for_condition(&api, "widgets", "Ready", "True/Ready").await;
    wait_for_condition(&api, "with-params", "Ready", "True/Ready").await;

    let apply = PatchParams::apply("e2e").force();
    let patch = Patch::Apply(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": serde_json::to_value(crd("string").spec).unwrap(),
    }));
    crds.patch("widgets.e2e.example.com", &apply, &patch)
        .await
        .unwrap();
    wait_for_condition(&api, "widgets", "TypeChecked", "False/ExpressionWarnings").await;
    wait_for_condition(
        &api,
        "with-params",
        "TypeChecked",
        "False/ExpressionWarnings",
    )
    .await;

    crds.delete("widgets.e2e.example.com", &DeleteParams::default())
        .await
        .unwrap();
    wait_for_condition(
        &api,
        "widgets",
        "ResourcesMatched",
        "False/NoServedResources",
    )
    .await;
    wait_for_condition(
        &api,
        "with-params",
        "ParamsResolved",
        "False/ParamKindNotFound",
    )
    .await;
    let generation = api.get("widgets").await.unwrap().metadata.generation;
    assert_eq!(generation, Some(1), "the policy itself was not changed");
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn restarted_controller_writes_no_status() {
    let mut control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let api = policies(&control_plane.client().await.unwrap());
    for name in ["one", "two"] {
        api.create(
            &PostParams::default(),
            &on_deployments(name, "object.spec.replicas <= 5"),
        )
        .await
        .unwrap();
        wait_for_condition(&api, name, "Ready", "True/Ready").await;
    }
    let before = settle(&api, "one").await;
    assert_eq!(in_sync(&controller).await, 1);

    controller.kill().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    assert_not_written(&api, "one", Duration::from_secs(5)).await;
    assert_eq!(n_writes(&controller).await, 0, "after its restart");
    assert_eq!(in_sync(&controller).await, 1, "after its restart");
    assert_eq!(
        api.get("one").await.unwrap().metadata.resource_version,
        before
    );

    controller.allow(outage());
    control_plane.kill_api_server();
    tokio::time::sleep(Duration::from_secs(2)).await;
    control_plane.start_api_server_again().await.unwrap();
    let api = policies(&control_plane.client().await.unwrap());
    assert_not_written(&api, "one", Duration::from_secs(15)).await;
    assert_eq!(
        api.get("one").await.unwrap().metadata.resource_version,
        before
    );
    assert_eq!(
        n_writes(&controller).await,
        0,
        "after the API server's restart"
    );
    assert_eq!(
        in_sync(&controller).await,
        1,
        "after the API server's restart"
    );
    api.create(
        &PostParams::default(),
        &on_deployments("three", "object.spec.replicsa <= 5"),
    )
    .await
    .unwrap();
    wait_for_condition(&api, "three", "Ready", "False/ExpressionWarnings").await;
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_and_kcm_stop_writing_after_conflict() {
    let mut control_plane = control_plane().await.unwrap();
    control_plane
        .start_kcm(&["validatingadmissionpolicy-status-controller"])
        .await
        .unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let api = policies(&control_plane.client().await.unwrap());
    // kube-controller-manager warns about the Quantity, and this controller does not. For each generation,
    // each controller overwrites the status of the other at most once.
    let quantity = "has(object.spec.template.spec.containers[0].resources.limits.cpu)";
    for generation in 1..=3 {
        let writes_before = n_writes(&controller).await;
        if generation == 1 {
            api.create(&PostParams::default(), &on_deployments("both", quantity))
                .await
                .unwrap();
        } else {
            let expression = format!("{quantity} || object.spec.replicas <= {generation}");
            let patch = json!({"spec": {"validations": [{"expression": expression}]}});
            api.patch("both", &PatchParams::default(), &Patch::Merge(patch))
                .await
                .unwrap();
        }
        wait_until(&api, "both", "at rest", |policy| {
            let status = policy.status.clone().unwrap_or_default();
            let warnings = status
                .type_checking
                .map(|checking| checking.expression_warnings);
            status.observed_generation == Some(generation)
                && condition(policy, "Ready") == "True/Ready"
                && warnings.is_some_and(|warnings| warnings.is_none_or(|w| w.is_empty()))
        })
        .await;
        settle(&api, "both").await;
        let writes = n_writes(&controller).await - writes_before;
        assert!(
            writes <= 2,
            "{writes} writes by the controller after change {generation}"
        );
        assert_not_written(&api, "both", Duration::from_secs(10)).await;
    }
    controller.finish().await.unwrap();
}

/// Returns the metric `vap_in_sync`, which an alert uses.
async fn in_sync(controller: &Controller) -> u64 {
    controller.total("vap_in_sync").await.unwrap()
}

async fn n_writes(controller: &Controller) -> u64 {
    controller.total("vap_status_writes_total").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_wait_for_ready_succeeds() {
    let control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let api = policies(&control_plane.client().await.unwrap());
    api.create(
        &PostParams::default(),
        &on_deployments("waited", "object.spec.replicas <= 5"),
    )
    .await
    .unwrap();
    let outcome = control_plane
        .kubectl()
        .unwrap()
        .args([
            "wait",
            "--for=condition=Ready",
            "--timeout=30s",
            "validatingadmissionpolicy/waited",
        ])
        .output()
        .unwrap();
    assert!(
        outcome.status.success(),
        "{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    controller.finish().await.unwrap();
}
