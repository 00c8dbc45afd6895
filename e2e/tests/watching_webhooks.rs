//! Tests the controller with webhook configurations on a real API server. Status objects are created, updated and
//! deleted together with their configurations. Probes of webhooks have the same results as with `kubectl vap test`.
//! Without `--follow`, the controller sends no requests about webhook configurations.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use e2e::audit::{audited, controller_requests, n_writes};
use e2e::conditions::{condition, settled};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, binary, install_probes};
use e2e::statuses::Statuses;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use vap_status_controller::policy::subject::SubjectKind;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The prefixes of the two kinds of configurations.
const PREFIXES: [&str; 2] = ["Validating", "Mutating"];

const FOLLOW: &str = "--follow=validatingwebhookconfigurations,mutatingwebhookconfigurations";

/// This audit policy records every request about webhook configurations.
const AUDIT_POLICY: &str = r"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - group: admissionregistration.k8s.io
    resources: [validatingwebhookconfigurations, mutatingwebhookconfigurations]
  - group: vap-status.dev
    resources:
    - validatingwebhookconfigurationstatuses
    - validatingwebhookconfigurationstatuses/status
    - mutatingwebhookconfigurationstatuses
    - mutatingwebhookconfigurationstatuses/status
- level: None
";

struct Cluster {
    control_plane: ControlPlane,
    client: Client,
    directory: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let (control_plane, directory) = audited(AUDIT_POLICY, &[]).await.unwrap();
        let client = control_plane.client().await.unwrap();
        install_probes(&client).await.unwrap();
        let cluster = Self {
            control_plane,
            client,
            directory,
        };
        for prefix in PREFIXES {
            let kind = kind_of(prefix);
            Statuses::install(&cluster.control_plane, kind)
                .await
                .unwrap();
        }
        cluster
    }

    fn configurations(&self, prefix: &str) -> Api<DynamicObject> {
        let kind = format!("{prefix}WebhookConfiguration");
        let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", &kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    fn statuses(&self, prefix: &str) -> Statuses {
        Statuses::new(&self.client, kind_of(prefix))
    }

    async fn create(&self, prefix: &str, name: &str, webhooks: Value) {
        let kind = format!("{prefix}WebhookConfiguration");
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name}, "webhooks": webhooks});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let api = self.configurations(prefix);
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    async fn object(&self, prefix: &str, name: &str) -> Value {
        self.statuses(prefix).object(name).await.unwrap()
    }

    async fn wait(&self, (prefix, name): (&str, &str), type_: &str, wanted: &str) -> String {
        let statuses = self.statuses(prefix);
        statuses.wait(name, type_, wanted).await.unwrap()
    }

    async fn versions(&self) -> Vec<(String, String)> {
        let mut versions = Vec::new();
        for prefix in PREFIXES {
            versions.extend(self.statuses(prefix).versions().await.unwrap());
        }
        versions
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
}

fn kind_of(prefix: &str) -> SubjectKind {
    if prefix == "Validating" {
        SubjectKind::ValidatingWebhookConfiguration
    } else {
        SubjectKind::MutatingWebhookConfiguration
    }
}

fn webhook(name: &str, group: &str, resource: &str, condition: &str) -> Value {
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/webhook"}, "failurePolicy": "Ignore",
        "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}],
        // The webhook has no server, so API servers must not call it.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "none"}},
        "matchConditions": [{"name": "condition", "expression": condition}],
    })
}

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

fn sound(name: &str) -> Value {
    webhook(name, "apps", "deployments", "object.spec.replicas <= 5")
}

async fn create_configurations(cluster: &Cluster) {
    let misspelt = webhook(
        "two.example.com",
        "apps",
        "deployments",
        "object.spec.replica <= 5",
    );
    for prefix in PREFIXES {
        let (one, other) = (sound("one.example.com"), sound("two.example.com"));
        cluster.create(prefix, "sound", json!([one, other])).await;
        let two = json!([sound("one.example.com"), misspelt]);
        cluster.create(prefix, "misspelt", two).await;
    }
    let unserved = webhook("one.example.com", "example.com", "widgets", "true");
    let validating = PREFIXES[0];
    cluster
        .create(validating, "unserved", json!([unserved]))
        .await;
    let own = "admissionregistration.k8s.io";
    let exempt = webhook(
        "one.example.com",
        own,
        "mutatingwebhookconfigurations",
        "true",
    );
    let exempt = json!([sound("zero.example.com"), exempt]);
    cluster.create(validating, "exempt", exempt).await;
    cluster.create(validating, "empty", json!([])).await;
}

/// Checks the conditions, table rows and metrics for [`create_configurations`].
async fn check_reported_conditions(cluster: &Cluster, controller: &Controller) {
    let validating = PREFIXES[0];
    for prefix in PREFIXES {
        cluster.wait((prefix, "sound"), "Ready", "True/Ready").await;
        let checked = (prefix, "misspelt");
        let checked = cluster
            .wait(checked, "TypeChecked", "False/ExpressionWarnings")
            .await;
        assert!(
            checked.contains("webhooks[1].matchConditions[0].expression"),
            "{checked}"
        );
        let object = cluster.object(prefix, "misspelt").await;
        for none in ["Bound", "ParamsResolved", "ProbesPassed"] {
            assert!(condition(&object["status"], none).is_empty(), "{object:#}");
        }
        let warnings = &object["status"]["typeChecking"]["expressionWarnings"];
        assert_eq!(
            warnings[0]["fieldRef"],
            "webhooks[1].matchConditions[0].expression"
        );
        let configuration = cluster
            .configurations(prefix)
            .get("misspelt")
            .await
            .unwrap();
        let owner = &object["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], configuration.metadata.uid.unwrap());
        assert_eq!(owner["kind"], format!("{prefix}WebhookConfiguration"));
        let generation = configuration.metadata.generation.unwrap();
        assert_eq!(object["status"]["policyGeneration"], generation);
    }
    let matched = "ResourcesMatched";
    let text = cluster
        .wait((validating, "unserved"), matched, "False/NoServedResources")
        .await;
    assert!(text.contains("one.example.com: "), "{text}");
    assert!(text.contains("the webhook is never called"), "{text}");
    let text = cluster
        .wait((validating, "exempt"), matched, "False/ExemptResources")
        .await;
    assert!(
        text.contains("API servers never call a webhook for"),
        "{text}"
    );
    cluster
        .wait((validating, "empty"), "Ready", "True/Ready")
        .await;
    let (code, table) = status(cluster);
    assert_eq!(code, 1, "{table}");
    for row in [
        "validatingwebhookconfiguration/misspelt False",
        "mutatingwebhookconfiguration/sound True",
    ] {
        assert!(table.contains(row), "{table}");
    }
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    assert!(
        metrics.contains("kind=\"MutatingWebhookConfiguration\",policy=\"sound\""),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_change_with_their_webhook_configurations() {
    let cluster = Cluster::start().await;
    create_configurations(&cluster).await;
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    check_reported_conditions(&cluster, &controller).await;

    let mutating = PREFIXES[1];
    // A change causes one write, and a new configuration causes two.
    cluster.settle().await;
    let before = cluster.n_writes();
    let webhooks = json!([sound("one.example.com")]);
    cluster.create(mutating, "counted", webhooks).await;
    cluster
        .wait((mutating, "counted"), "Ready", "True/Ready")
        .await;
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        2,
        "{:?}",
        cluster.controller_requests()
    );
    let patch = json!({"webhooks": [sound("one.example.com"), sound("two.example.com")]});
    cluster
        .configurations(mutating)
        .patch("misspelt", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    cluster
        .wait((mutating, "misspelt"), "Ready", "True/Ready")
        .await;
    let versions = cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        3,
        "{:?}",
        cluster.controller_requests()
    );
    controller.finish().await.unwrap();

    // A restarted controller rewrites no status. It only deletes the status objects of deleted configurations.
    let n_writes = cluster.n_writes();
    let again = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !(again.get("/metrics").await.unwrap().1)
        .contains("kind=\"MutatingWebhookConfiguration\",policy=\"counted\"")
    {
        assert!(
            Instant::now() < deadline,
            "the configuration is not evaluated again"
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
    let configurations = cluster.configurations(mutating);
    configurations.delete("counted", &delete).await.unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !cluster.object(mutating, "counted").await.is_null() {
        assert!(
            Instant::now() < deadline,
            "the deleted configuration still has a status object"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    again.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_not_requested_without_flag() {
    let cluster = Cluster::start().await;
    let webhooks = json!([webhook("one.example.com", "apps", "deployments", "true")]);
    cluster.create(PREFIXES[0], "sound", webhooks).await;
    let controller = Controller::start(&cluster.control_plane, &[])
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(cluster.controller_requests(), Vec::<String>::new());
    assert_eq!(cluster.versions().await, []);
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_replicas_writes_webhooks() {
    let cluster = Cluster::start().await;
    let args = [FOLLOW, "--leader-elect"];
    let first = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    let second = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    for n in 0..5 {
        let webhooks = json!([webhook("one.example.com", "apps", "deployments", "true")]);
        for prefix in PREFIXES {
            cluster
                .create(prefix, &format!("w{n}"), webhooks.clone())
                .await;
        }
    }
    for n in 0..5 {
        for prefix in PREFIXES {
            let name = format!("w{n}");
            cluster.wait((prefix, &name), "Ready", "True/Ready").await;
        }
    }
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes(),
        20,
        "{:?}",
        cluster.controller_requests()
    );
    let writes = async |of: &Controller| of.total("vap_status_writes_total").await.unwrap();
    assert_eq!((writes(&first).await, writes(&second).await), (10, 0));
    first.finish().await.unwrap();
    second.finish().await.unwrap();
}
