//! Tests the controller with CustomResourceDefinitions on a real API server. Status objects about rules appear, change
//! together with the definitions, and are deleted with them. A definition without rules has no status object. Without
//! the flag, the controller sends no requests about status objects.
//!
//! The API server rejects a definition with invalid rules. The test writes such definitions directly to etcd, as if an
//! older version had accepted them.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use e2e::allowed_failures::{AllowedFailure, new_kind};
use e2e::audit::{audited, controller_requests, n_writes};
use e2e::conditions::{condition, settled, wait_for};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, binary, install_probes};
use e2e::statuses::Statuses;
use k8s_openapi::ByteString;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vap_status_controller::policy::subject::SubjectKind;

const TIMEOUT: Duration = Duration::from_secs(60);

const FOLLOW: &str = "--follow=customresourcedefinitions";

const STATUSES: &str = "customresourcedefinitionstatuses";

/// This audit policy records every request about definitions and their status objects.
const AUDIT_POLICY: &str = r"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - group: apiextensions.k8s.io
    resources: [customresourcedefinitions, customresourcedefinitions/status]
  - group: vap-status.dev
    resources: [customresourcedefinitionstatuses, customresourcedefinitionstatuses/status]
- level: None
";

struct Cluster {
    control_plane: ControlPlane,
    client: Client,
    directory: tempfile::TempDir,
    statuses: Statuses,
}

impl Cluster {
    async fn start() -> Self {
        let (control_plane, directory) = audited(AUDIT_POLICY, &[]).await.unwrap();
        let client = control_plane.client().await.unwrap();
        install_probes(&client).await.unwrap();
        let kind = SubjectKind::CustomResourceDefinition;
        let statuses = Statuses::install(&control_plane, kind).await.unwrap();
        Self {
            control_plane,
            client,
            directory,
            statuses,
        }
    }

    fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }

    fn probes(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("vap-status.dev", "v1alpha1", "PolicyProbe");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    async fn create(&self, definition: Value) {
        let definition = serde_json::from_value(definition).unwrap();
        let create = PostParams::default();
        self.definitions()
            .create(&create, &definition)
            .await
            .unwrap();
    }

    async fn patch(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(&patch);
        let params = PatchParams::default();
        self.definitions()
            .patch(name, &params, &patch)
            .await
            .unwrap();
    }

    async fn object(&self, name: &str) -> Value {
        self.statuses.object(name).await.unwrap()
    }

    async fn wait(&self, name: &str, type_: &str, wanted: &str) -> String {
        self.statuses.wait(name, type_, wanted).await.unwrap()
    }

    async fn wait_until_deleted(&self, name: &str) {
        self.statuses.wait_until_deleted(name).await.unwrap();
    }

    async fn versions(&self) -> Vec<(String, String)> {
        self.statuses.versions().await.unwrap()
    }

    /// Waits until no status object is written for one second.
    async fn settle(&self) -> Vec<(String, String)> {
        settled(|| self.versions()).await
    }

    fn controller_requests(&self) -> Vec<String> {
        controller_requests(self.directory.path()).unwrap()
    }

    fn n_writes(&self) -> usize {
        n_writes(&self.controller_requests())
    }

    /// Changes a definition directly in etcd, as if an API server had accepted the change.
    async fn store(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let definition = self.definitions().get(name).await.unwrap();
        let mut value = serde_json::to_value(definition).unwrap();
        change(&mut value);
        let generation = value["metadata"]["generation"].as_i64().unwrap();
        value["metadata"]["generation"] = json!(generation + 1);
        // The resource version is not stored in etcd.
        value["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        let key = format!("/registry/apiextensions.k8s.io/customresourcedefinitions/{name}");
        let put = json!({
            "key": ByteString(key.into_bytes()),
            "value": ByteString(value.to_string().into_bytes()),
        });
        let answer = self.etcd_response("/v3/kv/put", &put.to_string()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Sends a request to the HTTP gateway of etcd.
    async fn etcd_response(&self, path: &str, body: &str) -> String {
        let socket = self.control_plane.directory().join("etcd.socket:1");
        let mut stream = tokio::net::UnixStream::connect(socket).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

/// Returns the definition of `plural` with two versions. `rules` contains the rules of each version.
fn definition(plural: &str, kind: &str, rules: [&[&str]; 2]) -> Value {
    let version = |n: usize, rules: &[&str]| {
        let rules = rules.iter().map(|rule| json!({"rule": rule}));
        let rules: Vec<Value> = rules.collect();
        let mut spec = json!({"type": "object", "properties": {
            "replicas": {"type": "integer", "maximum": 10 + n},
            "names": {"type": "array", "items": {"type": "string"}},
        }});
        if !rules.is_empty() {
            spec["x-kubernetes-validations"] = json!(rules);
        }
        json!({"name": format!("v{}", n + 1), "served": true, "storage": n == 0, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec}}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [version(0, rules[0]), version(1, rules[1])],
        },
    })
}

const SOUND: &str = "self.replicas <= 5";

fn status(cluster: &Cluster) -> (i32, String) {
    let output = Command::new(binary("kubectl-vap").unwrap())
        .arg("status")
        .env("KUBECONFIG", cluster.control_plane.kubeconfig().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    (output.status.code().unwrap(), lines.join("\n"))
}

/// Returns the field path of a version's rule, as in messages of the API server.
fn rule_of(version: usize) -> String {
    format!(
        "spec.versions[{version}].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    )
}

fn set_rule(definition: &mut Value, version: usize, rule: &str) {
    let place = format!(
        "/spec/versions/{version}/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule"
    );
    *definition.pointer_mut(&place).unwrap() = json!(rule);
}

/// An older API server accepted these rules. One does not compile, and one may exceed the cost limit.
async fn check_stored_rules(cluster: &Cluster, controller: &Controller) {
    let stale = "stale.example.com";
    cluster
        .store(stale, |stored| set_rule(stored, 1, "self.replica <= 5"))
        .await;
    let text = cluster
        .wait(stale, "Compiled", "False/CompilationFailed")
        .await;
    assert!(text.contains(&rule_of(1)), "{text}");
    assert!(text.contains("undefined field 'replica'"), "{text}");
    assert!(
        text.contains("objects that the rule validates are rejected"),
        "{text}"
    );
    cluster
        .wait(stale, "Stalled", "True/CompilationFailed")
        .await;
    // The API server rejects an object for the reason in the condition.
    let gvk = GroupVersionKind::gvk("example.com", "v2", "Stale");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "stale");
    let objects: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), "default", &resource);
    let object = json!({"apiVersion": "example.com/v2", "kind": "Stale", "metadata": {"name": "a"},
        "spec": {"replicas": 1}});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let answer = objects
            .create(
                &PostParams {
                    dry_run: true,
                    ..PostParams::default()
                },
                &object,
            )
            .await;
        let rejection = answer.err().map(|error| error.to_string());
        if rejection.is_some_and(|rejection| rejection.contains("rule compile error")) {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "the API server still accepts the object"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    let costly = "costly.example.com";
    let rule = "self.names.all(a, self.names.all(b, self.names.all(c, a != b || b != c)))";
    cluster
        .store(costly, |stored| set_rule(stored, 0, rule))
        .await;
    let text = cluster
        .wait(costly, "TypeChecked", "False/ExpressionWarnings")
        .await;
    assert!(text.contains(&rule_of(0)), "{text}");
    assert!(text.contains("estimated rule cost exceeds"), "{text}");
    cluster
        .wait(costly, "Compiled", "True/AllExpressionsCompile")
        .await;
    let object = cluster.object(costly).await;
    let warnings = &object["status"]["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings[0]["fieldRef"], rule_of(0), "{object:#}");

    let (code, table) = status(cluster);
    assert_eq!(code, 1, "{table}");
    for row in [
        "customresourcedefinition/stale.example.com False",
        "customresourcedefinition/sound.example.com True",
    ] {
        assert!(table.contains(row), "{table}");
    }
    assert!(!table.contains("plain.example.com"), "{table}");
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    let info = "vap_policy_info{kind=\"CustomResourceDefinition\",policy=\"stale.example.com\",\
                failure_policy=\"Fail\",actions=\"Deny\"} 1";
    assert!(metrics.contains(info), "{metrics}");
    events_are_about_the_definition(cluster, stale).await;
}

async fn events_are_about_the_definition(cluster: &Cluster, name: &str) {
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), "default");
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let all = events.list(&ListParams::default()).await.unwrap();
        let is_same_generation = |event: &Event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            regarding.kind.as_deref() == Some("CustomResourceDefinition")
                && regarding.api_version.as_deref() == Some("apiextensions.k8s.io/v1")
                && regarding.name.as_deref() == Some(name)
                && event.reason.as_deref() == Some("CompilationFailed")
        };
        if all.items.iter().any(is_same_generation) {
            return;
        }
        assert!(Instant::now() < deadline, "{all:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A new definition causes two writes, and a change of its spec causes one. New definitions without rules, and changes
/// of a definition's status, cause no writes.
async fn writes_are_counted(cluster: &Cluster, controller: &Controller) {
    cluster.settle().await;
    let before = cluster.n_writes();
    let counted = "counted.example.com";
    cluster
        .create(definition("counted", "Counted", [&[SOUND], &[]]))
        .await;
    cluster.create(definition("idle", "Idle", [&[], &[]])).await;
    cluster.wait(counted, "Ready", "True/Ready").await;
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        2,
        "{:?}",
        cluster.controller_requests()
    );

    let n_checks = controller
        .total("vap_check_duration_seconds_count")
        .await
        .unwrap();
    let status = json!({"status": {"conditions": [{"type": "Looked", "status": "True", "reason": "Test",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let patch = Patch::Merge(&status);
    cluster
        .definitions()
        .patch_status(counted, &PatchParams::default(), &patch)
        .await
        .unwrap();
    cluster
        .patch(counted, json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        2,
        "{:?}",
        cluster.controller_requests()
    );
    let after = controller.total("vap_check_duration_seconds_count").await;
    assert_eq!(after.unwrap(), n_checks);

    let changed = definition("counted", "Counted", [&[SOUND], &[SOUND]]);
    cluster
        .patch(
            counted,
            json!({"spec": {"versions": changed["spec"]["versions"]}}),
        )
        .await;
    let status = async || Ok(cluster.object(counted).await["status"]["policyGeneration"].clone());
    let deadline = Instant::now() + TIMEOUT;
    while status().await != Ok::<_, ()>(json!(2)) {
        assert!(Instant::now() < deadline, "the change is not evaluated");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        3,
        "{:?}",
        cluster.controller_requests()
    );
}

fn probe_of_plain() -> DynamicObject {
    let case = |name: &str, replicas: u32, decision: &str| {
        json!({"name": name, "expect": {"decision": decision}, "request": {"object": {
            "apiVersion": "example.com/v1", "kind": "Plain", "metadata": {"name": "a", "namespace": "default"},
            "spec": {"replicas": replicas}}}})
    };
    let probe = json!({"apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "plain"},
        "spec": {"target": {"kind": "CustomResourceDefinition", "name": "plain.example.com"},
            "cases": [case("few", 1, "Allow"), case("many", 11, "Deny")]}});
    serde_json::from_value(probe).unwrap()
}

/// A definition without rules has a status object only while a probe refers to it. If the rules of a definition are
/// removed, its status object is deleted.
async fn rules_and_probes_come_and_go(cluster: &Cluster) {
    let plain = "plain.example.com";
    assert!(cluster.object(plain).await.is_null());
    let probes = cluster.probes();
    let probe = probe_of_plain();
    probes.create(&PostParams::default(), &probe).await.unwrap();
    cluster
        .wait(plain, "ProbesPassed", "True/ProbesPassed")
        .await;
    let text = cluster
        .wait(plain, "Compiled", "True/AllExpressionsCompile")
        .await;
    assert!(text.ends_with(": the definition has no rules"), "{text}");
    // If the definition changes, the probe is evaluated again.
    let path =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/maximum";
    let mut changed = definition("plain", "Plain", [&[], &[]]);
    *changed.pointer_mut(path).unwrap() = json!(20);
    cluster
        .patch(
            plain,
            json!({"spec": {"versions": changed["spec"]["versions"]}}),
        )
        .await;
    cluster
        .wait(plain, "ProbesPassed", "False/ProbesFailed")
        .await;
    let delete = DeleteParams::default();
    probes.delete("plain", &delete).await.unwrap();
    cluster.wait_until_deleted(plain).await;

    let without = definition("counted", "Counted", [&[], &[]]);
    cluster
        .patch(
            "counted.example.com",
            json!({"spec": {"versions": without["spec"]["versions"]}}),
        )
        .await;
    cluster.wait_until_deleted("counted.example.com").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_change_with_their_definitions() {
    let cluster = Cluster::start().await;
    for (plural, kind, rules) in [
        ("sound", "CheckedProgram", [&[SOUND][..], &[SOUND]]),
        ("stale", "Stale", [&[SOUND], &[SOUND]]),
        ("costly", "Costly", [&[SOUND], &[]]),
        ("plain", "Plain", [&[], &[]]),
    ] {
        cluster.create(definition(plural, kind, rules)).await;
    }
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    let sound = "sound.example.com";
    cluster.wait(sound, "Ready", "True/Ready").await;
    let object = cluster.object(sound).await;
    for none in [
        "ResourcesMatched",
        "Bound",
        "ParamsResolved",
        "ProbesPassed",
    ] {
        assert!(condition(&object["status"], none).is_empty(), "{object:#}");
    }
    let definition = cluster.definitions().get(sound).await.unwrap();
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], definition.metadata.uid.unwrap());
    assert_eq!(owner["kind"], "CustomResourceDefinition");
    assert_eq!(owner["apiVersion"], "apiextensions.k8s.io/v1");
    let generation = definition.metadata.generation.unwrap();
    assert_eq!(object["status"]["policyGeneration"], generation);

    check_stored_rules(&cluster, &controller).await;
    writes_are_counted(&cluster, &controller).await;
    rules_and_probes_come_and_go(&cluster).await;
    let versions = cluster.settle().await;
    let names: Vec<&str> = versions.iter().map(|(name, _)| name.as_str()).collect();
    let of_ours = ["costly.example.com", sound, "stale.example.com"];
    let of_example = names.iter().filter(|name| name.ends_with(".example.com"));
    assert_eq!(of_example.copied().collect::<Vec<_>>(), of_ours);
    controller.finish().await.unwrap();

    // A restarted controller rewrites no status. It only deletes the status objects of deleted definitions.
    let n_writes = cluster.n_writes();
    let again = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !(again.get("/metrics").await.unwrap().1)
        .contains("kind=\"CustomResourceDefinition\",policy=\"sound.example.com\"")
    {
        assert!(
            Instant::now() < deadline,
            "the definition is not evaluated again"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(cluster.settle().await, versions);
    assert_eq!(
        cluster.n_writes(),
        n_writes,
        "{:?}",
        cluster.controller_requests()
    );
    let delete = DeleteParams::default();
    cluster.definitions().delete(sound, &delete).await.unwrap();
    cluster.wait_until_deleted(sound).await;
    again.finish().await.unwrap();
}

/// Without the CRD of status objects, probes are pending and report the missing CRD. After the CRD is installed, the
/// probes are evaluated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_of_definitions_without_status_crd_are_pending() {
    let cluster = Cluster::start().await;
    let name = format!("{STATUSES}.vap-status.dev");
    let delete = DeleteParams::default();
    cluster.definitions().delete(&name, &delete).await.unwrap();
    cluster
        .create(definition("plain", "Plain", [&[], &[]]))
        .await;
    cluster
        .create(definition("sound", "CheckedProgram", [&[SOUND], &[]]))
        .await;
    let probes = cluster.probes();
    let create = PostParams::default();
    probes.create(&create, &probe_of_plain()).await.unwrap();
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    let advice = format!("install the CRD {name}");
    controller.allow([AllowedFailure::warning(&advice).required()]);
    let status = async || {
        let probe = probes.get("plain").await?;
        Ok(probe.data["status"].clone())
    };
    let wait = async |wanted: &str| {
        wait_for("plain", "Ready", wanted, TIMEOUT, status)
            .await
            .unwrap()
    };
    let text = wait("Unknown/ProbesPending").await;
    assert!(
        text.contains(&format!("the CRD {name} is not installed")),
        "{text}"
    );
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    let followed = "vap_kind_watched{kind=\"CustomResourceDefinition\"} 0";
    assert!(metrics.contains(followed), "{metrics}");

    controller.allow(new_kind("definitionstatuses"));
    let kind = SubjectKind::CustomResourceDefinition;
    Statuses::install_definition(&cluster.control_plane, kind)
        .await
        .unwrap();
    cluster
        .wait("sound.example.com", "Ready", "True/Ready")
        .await;
    wait("True/ProbesPassed").await;
    cluster
        .wait("plain.example.com", "ProbesPassed", "True/ProbesPassed")
        .await;
    controller.finish().await.unwrap();
}

/// The controller has one watch of definitions, with and without the flag. Without the flag, it requests no status
/// objects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_have_only_one_watch() {
    let cluster = Cluster::start().await;
    cluster
        .create(definition("sound", "CheckedProgram", [&[SOUND], &[]]))
        .await;
    let of_definitions = |asked: &[String]| {
        let mut asked = asked.to_vec();
        asked.retain(|asked| asked == "watch customresourcedefinitions");
        asked.len()
    };
    // The audit log records a watch at its end. With this timeout, the watch ends when the controller stops.
    let args = ["--watch-timeout=3600s"];
    let controller = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    controller.finish().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = cluster.controller_requests();
    let is_of_statuses = |asked: &&String| asked.contains(STATUSES);
    assert_eq!(asked.iter().find(is_of_statuses), None, "{asked:?}");
    assert_eq!(cluster.versions().await, []);
    let without = of_definitions(&asked);
    assert!(without > 0, "{asked:?}");

    let args = ["--watch-timeout=3600s", FOLLOW];
    let controller = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    cluster
        .wait("sound.example.com", "Ready", "True/Ready")
        .await;
    controller.finish().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = cluster.controller_requests();
    assert_eq!(of_definitions(&asked), without * 2, "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_replicas_writes_definitions() {
    let cluster = Cluster::start().await;
    let args = [FOLLOW, "--leader-elect"];
    let first = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    let second = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    let names: Vec<String> = (0..5).map(|n| format!("kind{n}")).collect();
    // The CRD of probes has rules, so it has a status. This status shows that one replica is the leader.
    let of_probes = "policyprobes.vap-status.dev";
    cluster.wait(of_probes, "Ready", "True/Ready").await;
    cluster.settle().await;
    let before = cluster.n_writes();
    for name in &names {
        let kind = name.to_uppercase();
        cluster
            .create(definition(name, &kind, [&[SOUND], &[]]))
            .await;
    }
    for name in &names {
        let name = format!("{name}.example.com");
        cluster.wait(&name, "Ready", "True/Ready").await;
    }
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        10,
        "{:?}",
        cluster.controller_requests()
    );
    let writes = async |of: &Controller| of.total("vap_status_writes_total").await.unwrap();
    let n_first = writes(&first).await;
    assert!(n_first >= 5);
    assert_eq!(writes(&second).await, 0);
    first.finish().await.unwrap();
    second.finish().await.unwrap();
}
