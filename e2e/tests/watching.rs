//! Tests the controller with MutatingAdmissionPolicies on a real API server. Their status objects appear, change
//! together with the objects on which they depend, and are deleted with the policies. Without the flag, the controller
//! sends no requests about these policies. Missing permissions affect only these policies.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::allowed_failures::{AllowedFailure, new_kind};
use e2e::audit::{audited, controller_requests, n_writes};
use e2e::conditions::{condition, settled, wait_for_policy};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, SERVICE_ACCOUNT, binary, grant_watch, install_statuses};
use e2e::statuses::Statuses;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use vap_status_controller::policy::subject::SubjectKind;

const TIMEOUT: Duration = Duration::from_secs(60);

const FOLLOW: &str = "--follow=mutatingadmissionpolicies";

/// This audit policy records every request about mutating policies.
const AUDIT_POLICY: &str = r"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - group: admissionregistration.k8s.io
    resources: [mutatingadmissionpolicies, mutatingadmissionpolicybindings]
  - group: vap-status.dev
- level: None
";

struct Cluster {
    control_plane: ControlPlane,
    client: Client,
    directory: tempfile::TempDir,
}

impl Cluster {
    async fn start(args: &[&str]) -> Self {
        let (control_plane, directory) = audited(AUDIT_POLICY, args).await.unwrap();
        let client = control_plane.client().await.unwrap();
        Self {
            control_plane,
            client,
            directory,
        }
    }

    /// Starts a cluster with the permissions and the CRD for watching mutating policies.
    async fn ready() -> Self {
        let cluster = Self::start(&[]).await;
        cluster.install().await;
        cluster
    }

    async fn install(&self) {
        let kind = SubjectKind::MutatingAdmissionPolicy;
        Statuses::install(&self.control_plane, kind).await.unwrap();
    }

    fn api(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::all_with(self.client.clone(), &resource)
    }

    fn admission(&self, kind: &str, plural: &str) -> Api<DynamicObject> {
        self.api("admissionregistration.k8s.io", "v1", kind, plural)
    }

    fn policies(&self) -> Api<DynamicObject> {
        self.admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
    }

    fn bindings(&self) -> Api<DynamicObject> {
        self.admission(
            "MutatingAdmissionPolicyBinding",
            "mutatingadmissionpolicybindings",
        )
    }

    fn statuses(&self) -> Statuses {
        Statuses::new(&self.client, SubjectKind::MutatingAdmissionPolicy)
    }

    fn crds(&self) -> Api<DynamicObject> {
        self.api(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
    }

    async fn create(&self, api: &Api<DynamicObject>, name: &str, spec: Value) {
        create(api, name, spec).await;
    }

    /// Creates a mutating policy with one mutation.
    async fn policy(&self, name: &str, group: &str, resource: &str, expression: &str) {
        let spec = policy_spec(group, resource, expression);
        self.create(&self.policies(), name, spec).await;
    }

    async fn bind(&self, name: &str) {
        let spec = json!({"policyName": name});
        self.create(&self.bindings(), name, spec).await;
    }

    async fn status(&self, name: &str) -> Value {
        self.statuses().object(name).await.unwrap()
    }

    async fn wait(&self, name: &str, type_: &str, wanted: &str) -> String {
        self.statuses().wait(name, type_, wanted).await.unwrap()
    }

    async fn wait_until_deleted(&self, name: &str) {
        self.statuses().wait_until_deleted(name).await.unwrap();
    }

    async fn versions(&self) -> Vec<(String, String)> {
        self.statuses().versions().await.unwrap()
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

async fn create(api: &Api<DynamicObject>, name: &str, spec: Value) {
    let resource = json!({"metadata": {"name": name}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(resource).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    // The API server might not serve a new CRD yet.
    while let Err(error) = api.create(&PostParams::default(), &object).await {
        assert!(Instant::now() < deadline, "{name}: {error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn policy_spec(group: &str, resource: &str, expression: &str) -> Value {
    json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource],
        }]},
        "mutations": [{
            "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
        }],
    })
}

fn crd_spec(kind: &str, replicas: &str) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "group": "e2e.example.com", "scope": "Namespaced",
        "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind,
                  "listKind": format!("{kind}List")},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": replicas}}}},
        }}}],
    })
}

const REPLICAS: &str = "Object{spec: Object.spec{replicas: 3}}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_mutating_policies_appear_and_change() {
    let cluster = Cluster::ready().await;
    cluster
        .policy("sound", "apps", "deployments", REPLICAS)
        .await;
    cluster.bind("sound").await;
    let misspelt = "Object{spec: Object.spec{minReadySeconds: object.spec.replica}}";
    cluster
        .policy("misspelt", "apps", "deployments", misspelt)
        .await;
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();

    cluster.wait("sound", "Ready", "True/Ready").await;
    let bound = cluster.wait("sound", "Bound", "True/BindingsFound").await;
    assert!(bound.ends_with(": bound by sound"), "{bound}");
    cluster.wait("misspelt", "Bound", "False/NoBindings").await;
    let checked = cluster
        .wait("misspelt", "TypeChecked", "False/ExpressionWarnings")
        .await;
    assert!(
        checked.contains("spec.mutations[0].applyConfiguration.expression"),
        "{checked}"
    );
    let object = cluster.status("misspelt").await;
    assert!(
        condition(&object["status"], "ProbesPassed").is_empty(),
        "{object:#}"
    );
    let warnings = &object["status"]["typeChecking"]["expressionWarnings"];
    let warning = warnings[0]["warning"].as_str().unwrap();
    assert!(warning.contains("undefined field 'replica'"), "{warning}");
    let policy = cluster.policies().get("misspelt").await.unwrap();
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], policy.metadata.uid.clone().unwrap());
    assert_eq!(owner["kind"], "MutatingAdmissionPolicy");
    // Tools that wait for a status compare these generations.
    assert_eq!(
        object["status"]["observedGeneration"],
        object["metadata"]["generation"]
    );
    assert_eq!(
        object["status"]["policyGeneration"],
        policy.metadata.generation.unwrap()
    );

    let patch = json!({"spec": policy_spec("apps", "deployments", REPLICAS)});
    let mended = cluster
        .policies()
        .patch("misspelt", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    cluster.wait("misspelt", "Ready", "True/Ready").await;
    assert_eq!(
        cluster.status("misspelt").await["status"]["policyGeneration"],
        mended.metadata.generation.unwrap()
    );

    // The matched kind and its schema change.
    cluster
        .policy("widgets", "e2e.example.com", "widgets", REPLICAS)
        .await;
    cluster
        .wait("widgets", "ResourcesMatched", "False/NoServedResources")
        .await;
    let crds = cluster.crds();
    let name = "widgets.e2e.example.com";
    cluster
        .create(&crds, name, crd_spec("Widget", "integer"))
        .await;
    cluster.wait("widgets", "Ready", "True/Ready").await;
    let patch = json!({"spec": crd_spec("Widget", "boolean")});
    crds.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    cluster
        .wait("widgets", "TypeChecked", "False/ExpressionWarnings")
        .await;

    // The paramKind changes.
    let mut spec = policy_spec("apps", "deployments", REPLICAS);
    spec["paramKind"] = json!({"apiVersion": "e2e.example.com/v1", "kind": "Limit"});
    cluster.create(&cluster.policies(), "params", spec).await;
    cluster
        .wait("params", "ParamsResolved", "False/ParamKindNotFound")
        .await;
    let limits = crd_spec("Limit", "integer");
    cluster
        .create(&crds, "limits.e2e.example.com", limits)
        .await;
    cluster.wait("params", "ParamsResolved", "True/").await;
    cluster.wait("params", "Ready", "True/Ready").await;

    check_plugin_output(&cluster);
    controller.finish().await.unwrap();
}

fn check_plugin_output(cluster: &Cluster) {
    let (code, table) = status(cluster, &[]);
    assert_eq!(code, 1, "{table}");
    assert!(
        table.contains("mutatingadmissionpolicy/widgets False"),
        "{table}"
    );
    assert!(
        table.contains("mutatingadmissionpolicy/sound True"),
        "{table}"
    );
    let (code, table) = status(cluster, &["map/sound"]);
    assert_eq!(code, 0, "{table}");
    assert!(table.contains("mutatingadmissionpolicy/sound"), "{table}");
    assert!(table.contains("bound by sound"), "{table}");
    let (code, json) = status(cluster, &["mutatingadmissionpolicies", "-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (code, &json["summary"]["total"]),
        (1, &json!(4)),
        "{json:#}"
    );
    assert_eq!(json["policies"][0]["kind"], "MutatingAdmissionPolicy");
    let (code, table) = status(cluster, &["map/none"]);
    assert_eq!(code, 2, "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_mutating_policies_settle_and_are_deleted() {
    let cluster = Cluster::ready().await;
    for name in ["sound", "params", "goes"] {
        cluster.policy(name, "apps", "deployments", REPLICAS).await;
    }
    cluster.bind("sound").await;
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    cluster.wait("sound", "Bound", "True/BindingsFound").await;
    cluster.wait("goes", "Ready", "True/Ready").await;

    let delete = DeleteParams::default();
    cluster.bindings().delete("sound", &delete).await.unwrap();
    cluster.wait("sound", "Bound", "False/NoBindings").await;

    // A user deletes the status object and then the policy.
    cluster
        .statuses()
        .api()
        .delete("sound", &delete)
        .await
        .unwrap();
    cluster.wait("sound", "Ready", "True/Ready").await;
    cluster.policies().delete("goes", &delete).await.unwrap();
    cluster.wait_until_deleted("goes").await;

    // A change causes one write, and a new policy causes two.
    cluster.settle().await;
    let before = cluster.n_writes();
    cluster
        .policy("counted", "apps", "deployments", REPLICAS)
        .await;
    cluster.wait("counted", "Ready", "True/Ready").await;
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        2,
        "{:?}",
        cluster.controller_requests()
    );
    cluster.bind("counted").await;
    cluster.wait("counted", "Bound", "True/BindingsFound").await;
    let versions = cluster.settle().await;
    assert_eq!(
        cluster.n_writes() - before,
        3,
        "{:?}",
        cluster.controller_requests()
    );
    controller.finish().await.unwrap();

    // A restarted controller writes nothing.
    let n_writes = cluster.n_writes();
    let again = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !(again.get("/metrics").await.unwrap().1)
        .contains("kind=\"MutatingAdmissionPolicy\",policy=\"counted\"")
    {
        assert!(
            Instant::now() < deadline,
            "the policy is not evaluated again"
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
    again.finish().await.unwrap();

    // While the controller does not run, one policy is deleted and another is created.
    cluster.policies().delete("params", &delete).await.unwrap();
    cluster.policies().delete("sound", &delete).await.unwrap();
    cluster
        .policy("sound", "apps", "deployments", REPLICAS)
        .await;
    let sound = cluster.policies().get("sound").await.unwrap();
    let third = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    cluster.wait_until_deleted("params").await;
    let uid = sound.metadata.uid.unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while cluster.status("sound").await["metadata"]["ownerReferences"][0]["uid"] != uid {
        assert!(
            Instant::now() < deadline,
            "the status object belongs to the deleted policy"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    cluster.wait("sound", "Ready", "True/Ready").await;
    third.finish().await.unwrap();

    // `clear` removes all status objects before an uninstallation.
    assert!(clear(&cluster, 0).contains("cleared"));
    assert_eq!(cluster.versions().await, []);
}

fn status(cluster: &Cluster, args: &[&str]) -> (i32, String) {
    let output = Command::new(binary("kubectl-vap").unwrap())
        .arg("status")
        .args(args)
        .env("KUBECONFIG", cluster.control_plane.kubeconfig().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    (output.status.code().unwrap(), lines.join("\n"))
}

fn clear(cluster: &Cluster, expected: i32) -> String {
    let kubeconfig: PathBuf = cluster
        .control_plane
        .kubeconfig_for(SERVICE_ACCOUNT)
        .unwrap();
    let output = Command::new(binary("vap-status-controller").unwrap())
        .args(["clear"])
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(expected), "{text}");
    text
}

/// Two policies of different kinds may have the same name. Their conditions are separate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_of_different_kinds_with_same_name_are_separate() {
    let cluster = Cluster::ready().await;
    cluster
        .policy("same", "apps", "deployments", REPLICAS)
        .await;
    let validating = cluster.admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    let spec = json!({
        "matchConstraints": policy_spec("apps", "deployments", "")["matchConstraints"],
        "validations": [{"expression": "object.spec.replica <= 5"}],
    });
    cluster.create(&validating, "same", spec).await;
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    cluster.wait("same", "Ready", "True/Ready").await;
    wait_for_policy(
        &cluster.client,
        "same",
        "Ready",
        "False/ExpressionWarnings",
        TIMEOUT,
    )
    .await
    .unwrap();
    let delete = DeleteParams::default();
    validating.delete("same", &delete).await.unwrap();
    cluster.settle().await;
    cluster.wait("same", "Ready", "True/Ready").await;
    controller.finish().await.unwrap();
}

/// Without the flag, the controller sends no requests about mutating policies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutating_policies_are_not_requested_without_flag() {
    let cluster = Cluster::ready().await;
    cluster
        .policy("sound", "apps", "deployments", REPLICAS)
        .await;
    let mut controller = Controller::start(&cluster.control_plane, &[])
        .await
        .unwrap();
    // When this new policy has its status, all watches have started. A watch of mutating policies would have started
    // too.
    let validating = cluster.admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    for name in ["first", "second"] {
        let spec = json!({
            "matchConstraints": policy_spec("apps", "deployments", "")["matchConstraints"],
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        });
        cluster.create(&validating, name, spec).await;
        wait_for_policy(&cluster.client, name, "Ready", "True/Ready", TIMEOUT)
            .await
            .unwrap();
    }
    controller.await_ready().await.unwrap();
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    let is_of_mutating = |line: &&str| line.contains("source=\"mutatingpolicies\"");
    assert_eq!(metrics.lines().find(is_of_mutating), None);
    assert_eq!(cluster.controller_requests(), Vec::<String>::new());
    assert_eq!(cluster.versions().await, []);
    controller.finish().await.unwrap();
}

/// Missing permissions affect only mutating policies. The log and the readiness response contain the role to grant.
/// Then the controller watches mutating policies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_permission_affects_only_mutating_policies() {
    let cluster = Cluster::start(&[]).await;
    install_statuses(&cluster.control_plane, "mutatingadmissionpolicystatuses").unwrap();
    cluster
        .policy("sound", "apps", "deployments", REPLICAS)
        .await;
    let validating = cluster.admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    let spec = json!({
        "matchConstraints": policy_spec("apps", "deployments", "")["matchConstraints"],
        "validations": [{"expression": "object.spec.replicas <= 5"}],
    });
    cluster.create(&validating, "validating", spec).await;
    let mut controller = Controller::spawn(&cluster.control_plane, &[FOLLOW]).unwrap();
    controller.allow([
        AllowedFailure::error("ClusterRole vap-status-controller-mutatingadmissionpolicies")
            .required(),
        AllowedFailure::any_sync("forbidden").required(),
    ]);
    wait_for_policy(
        &cluster.client,
        "validating",
        "Ready",
        "True/Ready",
        TIMEOUT,
    )
    .await
    .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !(controller.log().unwrap())
        .contains("ClusterRole vap-status-controller-mutatingadmissionpolicies")
    {
        assert!(Instant::now() < deadline, "{}", controller.log().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    not_ready(&controller, "mutatingpolicies").await;
    grant_watch(&cluster.control_plane, "mutatingadmissionpolicies").unwrap();
    cluster.wait("sound", "Ready", "True/Ready").await;
    controller.await_ready().await.unwrap();
    controller.finish().await.unwrap();
}

/// Asserts that `/readyz` shows the missing permission of `source`, and that the caches are not in sync.
async fn not_ready(controller: &Controller, source: &str) {
    let (status, text) = controller.get("/readyz").await.unwrap();
    assert_eq!(status, 503, "{text}");
    assert!(text.contains(&format!("[-]{source} failed")), "{text}");
    let role = "ClusterRole vap-status-controller-mutatingadmissionpolicies";
    assert!(text.contains(role), "{text}");
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    assert!(metrics.contains("\nvap_in_sync 0\n"), "{metrics}");
}

/// After the permission is revoked, the known bindings may be outdated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_permission_on_bindings_sets_condition() {
    let cluster = Cluster::ready().await;
    cluster
        .policy("sound", "apps", "deployments", REPLICAS)
        .await;
    cluster.bind("sound").await;
    // The API server authorizes a watch only at its start, so watches must end quickly.
    let args = [FOLLOW, "--watch-timeout=5s"];
    let mut controller = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    cluster.wait("sound", "Bound", "True/BindingsFound").await;

    controller.allow([
        AllowedFailure::error("cannot watch mutatingadmissionpolicybindings").required(),
        AllowedFailure::sync("mutatingbindings", "forbidden").required(),
    ]);
    let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
    let name = "vap-status-controller-mutatingadmissionpolicies";
    let mut less = roles.get(name).await.unwrap().rules.unwrap();
    for resources in less.iter_mut().filter_map(|rule| rule.resources.as_mut()) {
        resources.retain(|resource| resource != "mutatingadmissionpolicybindings");
    }
    let patch = Patch::Merge(json!({"rules": less}));
    roles
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    let delete = DeleteParams::default();
    cluster.wait("sound", "Bound", "Unknown/NotPermitted").await;
    not_ready(&controller, "mutatingbindings").await;
    cluster.bindings().delete("sound", &delete).await.unwrap();

    grant_watch(&cluster.control_plane, "mutatingadmissionpolicies").unwrap();
    cluster.wait("sound", "Bound", "False/NoBindings").await;
    controller.await_ready().await.unwrap();
    controller.finish().await.unwrap();
}

/// The API server first serves only a beta version of mutating policies, and the CRD of status objects is installed
/// later. The controller watches the kinds that discovery lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutating_policies_served_later_are_watched() {
    let cluster = Cluster::start(&[
        "--runtime-config=admissionregistration.k8s.io/v1beta1=true,\
         admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,\
         admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
        // This admission plugin would wait for the missing API, so the API server would not start.
        "--disable-admission-plugins=MutatingAdmissionPolicy",
    ])
    .await;
    let betas = cluster.api(
        "admissionregistration.k8s.io",
        "v1beta1",
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies",
    );
    let spec = policy_spec("apps", "deployments", REPLICAS);
    cluster.create(&betas, "beta", spec).await;
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    controller.allow([AllowedFailure::warning(
        "install the CRD mutatingadmissionpolicystatuses.vap-status.dev",
    )
    .required()]);
    let followed = async |wanted: &str| {
        let sample = format!("vap_kind_watched{{kind=\"MutatingAdmissionPolicy\"}} {wanted}");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let (_, metrics) = controller.get("/metrics").await.unwrap();
            if metrics.contains(&sample) {
                return;
            }
            assert!(Instant::now() < deadline, "{metrics}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    followed("0").await;
    assert_eq!(cluster.controller_requests(), Vec::<String>::new());
    controller.allow(new_kind("policystatuses"));
    cluster.install().await;
    followed("1").await;
    cluster.wait("beta", "Ready", "True/Ready").await;
    let owner = &cluster.status("beta").await["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "admissionregistration.k8s.io/v1beta1");
    // The CRD of status objects is deleted, and all status objects with it. Other kinds are not affected.
    controller.allow([
        AllowedFailure::any_sync("not_found"),
        AllowedFailure::warning("cannot watch mutatingadmissionpolicystatuses"),
        // The controller might recreate a status object that was deleted before its CRD.
        AllowedFailure::error("while custom resource definition is terminating"),
        AllowedFailure::warning("the API server returned 404"),
        AllowedFailure::reconcile("forbidden"),
        AllowedFailure::reconcile("not_found"),
    ]);
    let crd = "mutatingadmissionpolicystatuses.vap-status.dev";
    let delete = DeleteParams::default();
    cluster.crds().delete(crd, &delete).await.unwrap();
    followed("0").await;
    cluster.install().await;
    cluster.wait("beta", "Ready", "True/Ready").await;
    controller.finish().await.unwrap();
}

/// The API server serves neither mutating policies nor their bindings. The controller sends no requests about them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unserved_mutating_policies_are_not_requested() {
    let cluster = Cluster::start(&[
        "--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,\
         admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
        "--disable-admission-plugins=MutatingAdmissionPolicy",
    ])
    .await;
    cluster.install().await;
    let controller = Controller::start(&cluster.control_plane, &[FOLLOW])
        .await
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !(controller.log().unwrap())
        .contains("are not served; the controller will watch them once the cluster serves them")
    {
        assert!(Instant::now() < deadline, "{}", controller.log().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(cluster.controller_requests(), Vec::<String>::new());
    controller.finish().await.unwrap();
}

/// Only one of two replicas writes. When it ends, the other replica continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_two_replicas_writes_mutating_policies() {
    let cluster = Cluster::ready().await;
    let args = [FOLLOW, "--leader-elect"];
    let first = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    let second = Controller::start(&cluster.control_plane, &args)
        .await
        .unwrap();
    for n in 0..10 {
        let name = format!("p{n}");
        cluster.policy(&name, "apps", "deployments", REPLICAS).await;
    }
    for n in 0..10 {
        cluster.wait(&format!("p{n}"), "Ready", "True/Ready").await;
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
    let delete = DeleteParams::default();
    cluster.policies().delete("p0", &delete).await.unwrap();
    cluster.wait_until_deleted("p0").await;
    cluster.bind("p1").await;
    cluster.wait("p1", "Bound", "True/BindingsFound").await;
    cluster.settle().await;
    assert_eq!(
        cluster.n_writes(),
        22,
        "{:?}",
        cluster.controller_requests()
    );
    second.finish().await.unwrap();
}
