//! Tests of the control plane. It starts, serves requests, and survives a crash of its API server. It leaves no
//! processes or files, no matter how its owner exits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use e2e::control_plane::STATUS_CONTROLLER;
use e2e::{ControlPlane, User};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

/// A timeout that is longer than any operation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn two_control_planes_run_at_once() {
    let user = User::service_account("vap-status-system", "vap-status-controller");
    let (one, two) = tokio::join!(
        ControlPlane::builder().user(user.clone()).start(),
        ControlPlane::builder().status_controller().start(),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.url(), two.url());

    create_config_map(&one, "only-in-one").await;
    assert_eq!(config_maps(&one).await, ["only-in-one"]);
    assert!(
        config_maps(&two).await.is_empty(),
        "the two control planes share their data"
    );
    client_lists_namespaces(&one).await;
    certificate_of_another_control_plane_is_rejected(&one, &two).await;
    user_has_no_more_than_the_rights_of_its_name(&one, user.name()).await;
    kubectl_works(&one);
    kcm_writes_the_status_of_a_policy(&two).await;

    let directories = [one.directory().to_owned(), two.directory().to_owned()];
    assert_eq!(
        processes_in(&directories[0]).len(),
        4,
        "etcd, API server, two helpers"
    );
    drop(one);
    assert_gone_now(&directories[0]);
    assert_eq!(
        processes_in(&directories[1]).len(),
        5,
        "the other control plane keeps running"
    );
    client_lists_namespaces(&two).await;
    drop(two);
    assert_gone_now(&directories[1]);
}

async fn client_lists_namespaces(control_plane: &ControlPlane) {
    let namespaces = Api::<Namespace>::all(control_plane.client().await.unwrap());
    let list = namespaces.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = list
        .items
        .iter()
        .filter_map(|it| it.metadata.name.as_deref())
        .collect();
    assert!(
        names.contains(&"default") && names.contains(&"kube-system"),
        "{names:?}"
    );
}

/// The two addresses differ only in the port. Only the certificate authority distinguishes the control planes.
async fn certificate_of_another_control_plane_is_rejected(one: &ControlPlane, two: &ControlPlane) {
    let mut mixed: serde_json::Value =
        serde_json::from_slice(&fs::read(one.kubeconfig().unwrap()).unwrap()).unwrap();
    mixed["clusters"][0]["cluster"]["server"] = json!(two.url());
    let config = kube::Config::from_custom_kubeconfig(
        serde_json::from_value(mixed).unwrap(),
        &kube::config::KubeConfigOptions::default(),
    )
    .await
    .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let error = client.apiserver_version().await.unwrap_err();
    let chain = format!("{:#}", anyhow::Error::new(error));
    assert!(chain.contains("invalid peer certificate"), "{chain}");
}

async fn user_has_no_more_than_the_rights_of_its_name(control_plane: &ControlPlane, user: &str) {
    let client = control_plane.client_for(user).await.unwrap();
    let reviews = Api::<SelfSubjectReview>::all(client.clone());
    let review = serde_json::from_value(json!({})).unwrap();
    let review = reviews
        .create(&PostParams::default(), &review)
        .await
        .unwrap();
    let info = review.status.unwrap().user_info.unwrap();
    assert_eq!(info.username.as_deref(), Some(user));
    assert_eq!(
        info.groups.unwrap(),
        [
            "system:serviceaccounts",
            "system:serviceaccounts:vap-status-system",
            "system:authenticated"
        ]
    );

    let error = Api::<Namespace>::all(client)
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot list resource \"namespaces\""),
        "{error}"
    );
    let error = control_plane.client_for("joe").await.err().unwrap();
    assert!(error.to_string().contains("no user `joe`"), "{error}");
}

fn kubectl_works(control_plane: &ControlPlane) {
    let version = kubectl(control_plane, &["version", "--output=json"]);
    let version: serde_json::Value = serde_json::from_str(&version).unwrap();
    let server = version["serverVersion"]["gitVersion"].as_str().unwrap();
    assert!(server.starts_with("v1."), "{version}");
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        let built = e2e::control_plane::kubernetes_version().unwrap();
        assert_eq!(server, built);
        assert_eq!(version["clientVersion"]["gitVersion"], built);
    }
    let namespaces = kubectl(control_plane, &["get", "ns", "--output=name"]);
    assert!(
        namespaces.lines().any(|line| line == "namespace/default"),
        "{namespaces}"
    );
}

fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = control_plane
        .kubectl()
        .unwrap()
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

async fn kcm_writes_the_status_of_a_policy(control_plane: &ControlPlane) {
    let policies = Api::<ValidatingAdmissionPolicy>::all(control_plane.client().await.unwrap());
    let policy = serde_json::from_value(json!({
        "metadata": { "name": "wrong-type.example.com" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["deployments"],
            }] },
            "validations": [{ "expression": "object.spec.replicas > 'five'" }],
        },
    }))
    .unwrap();
    policies
        .create(&PostParams::default(), &policy)
        .await
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        let policy = policies.get("wrong-type.example.com").await.unwrap();
        // The API server stores an empty status in each new policy.
        if let Some(status) = policy.status.filter(|it| it.observed_generation.is_some()) {
            break status;
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "no status; {}",
            control_plane.kcm().unwrap().log().unwrap()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(status.observed_generation, Some(1));
    let warnings = status.type_checking.unwrap().expression_warnings.unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].field_ref, "spec.validations[0].expression");
    assert!(
        warnings[0]
            .warning
            .starts_with("apps/v1, Kind=Deployment: ERROR:"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn killed_servers_can_be_restarted() {
    let mut control_plane = ControlPlane::start().await.unwrap();
    let (url, client) = (control_plane.url(), control_plane.client().await.unwrap());
    let first_pid = control_plane.api_server().unwrap().pid();
    create_config_map(&control_plane, "kept").await;
    assert!(
        control_plane.start_api_server_again().await.is_err(),
        "the API server still runs"
    );

    control_plane.kill_api_server();
    assert!(control_plane.api_server().is_none());
    assert!(client.apiserver_version().await.is_err());
    control_plane.start_api_server_again().await.unwrap();
    assert_ne!(control_plane.api_server().unwrap().pid(), first_pid);
    assert_eq!(control_plane.url(), url);
    client
        .apiserver_version()
        .await
        .expect("a client created before the restart still works");
    assert_eq!(config_maps(&control_plane).await, ["kept"]);

    for _ in 0..2 {
        control_plane.start_kcm(&[STATUS_CONTROLLER]).await.unwrap();
        let pid = control_plane.kcm().unwrap().pid();
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        assert!(
            control_plane.start_kcm(&[STATUS_CONTROLLER]).await.is_err(),
            "kube-controller-manager already runs"
        );
        control_plane.stop_kcm();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    let mut command = Command::new("sh");
    command.args([
        "-c",
        "trap 'echo bye; exit 3' TERM; echo hello; while :; do sleep 0.1; done",
    ]);
    let mut process = control_plane.spawn("greeter", command).unwrap();
    let begin = Instant::now();
    while process.log().unwrap().is_empty() {
        assert!(begin.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(process.terminate(PATIENCE).unwrap().code(), Some(3));
    assert_eq!(process.log().unwrap(), "hello\nbye\n");
}

#[tokio::test]
async fn server_start_failure_shows_log() {
    let error = ControlPlane::builder()
        .api_server_arg("--no-such-flag")
        .start()
        .await
        .expect_err("the API server rejects the flag");
    let message = format!("{error:#}");
    assert!(
        message.contains("kube-apiserver ended with exit status: 1"),
        "{message}"
    );
    assert!(
        message.contains("unknown flag: --no-such-flag"),
        "{message}"
    );
}

#[tokio::test]
async fn control_plane_is_removed_after_panic() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let control_plane = ControlPlane::start().await.unwrap();
        sender.send(control_plane.directory().to_owned()).unwrap();
        panic!("on purpose");
    });
    let directory = receiver.await.unwrap();
    assert!(task.await.unwrap_err().is_panic());
    assert_gone_now(&directory);
}

#[test]
fn interrupted_control_plane_leaves_no_files_or_processes() {
    let mut owner = Owner::start();
    owner.signal("INT");
    let status = owner.program.wait().unwrap();
    assert!(status.success(), "{status}: {}", owner.message());
    assert_gone_now(&owner.directory);
}

#[test]
fn killed_control_plane_leaves_no_files_or_processes() {
    let mut owner = Owner::start();
    owner.signal("KILL");
    assert!(!owner.program.wait().unwrap().success());
    let begin = Instant::now();
    while owner.directory.exists() || !processes_in(&owner.directory).is_empty() {
        assert!(
            begin.elapsed() < PATIENCE,
            "{} exists: {}; processes: {:?}",
            owner.directory.display(),
            owner.directory.exists(),
            processes_in(&owner.directory)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The program `control-plane`, which owns a control plane.
struct Owner {
    program: Child,
    directory: PathBuf,
}

impl Owner {
    fn start() -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_control-plane"))
            .arg("--kcm")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let Some(kubeconfig) = line.trim_end().strip_prefix("export KUBECONFIG='") else {
            let directory = PathBuf::new();
            let message = Self { program, directory }.message();
            panic!("`{line}` {message}");
        };
        let kubeconfig = Path::new(kubeconfig.trim_end_matches('\''));
        let directory = kubeconfig.ancestors().nth(2).unwrap().to_owned();
        assert_eq!(
            processes_in(&directory).len(),
            5,
            "etcd, API server, KCM, two helpers"
        );
        Self { program, directory }
    }

    /// Returns the standard error of the program.
    fn message(&mut self) -> String {
        let mut message = String::new();
        let mut stderr = self.program.stderr.take().unwrap();
        stderr.read_to_string(&mut message).unwrap();
        message
    }

    fn signal(&self, name: &str) {
        let pid = self.program.id().to_string();
        let status = Command::new("sh")
            .args(["-c", "kill -s $0 $1", name, &pid])
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

async fn create_config_map(control_plane: &ControlPlane, name: &str) {
    let api = Api::<ConfigMap>::namespaced(control_plane.client().await.unwrap(), "default");
    let config_map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    api.create(&PostParams::default(), &config_map)
        .await
        .unwrap();
}

async fn config_maps(control_plane: &ControlPlane) -> Vec<String> {
    let api = Api::<ConfigMap>::namespaced(control_plane.client().await.unwrap(), "default");
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items
        .into_iter()
        .filter_map(|it| it.metadata.name)
        .collect()
}

#[track_caller]
fn assert_gone_now(directory: &Path) {
    assert!(!directory.exists(), "{} is left", directory.display());
    assert_eq!(processes_in(directory), Vec::<String>::new());
}

/// Returns the command lines of processes whose working directory or arguments contain `directory`.
fn processes_in(directory: &Path) -> Vec<String> {
    let of_process = |entry: fs::DirEntry| {
        let path = entry.path();
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        // An ended process has no readable entries in `/proc`. A zombie has no working directory and no arguments.
        let arguments = fs::read(path.join("cmdline")).ok()?;
        let command_line = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let is_inside = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
        let is_told = command_line.contains(directory.to_str()?);
        (is_inside || is_told).then_some(command_line)
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .filter_map(of_process)
        .collect()
}
