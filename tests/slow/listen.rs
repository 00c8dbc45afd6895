//! Starts the controller without a cluster, and requests its health endpoint over IPv4 and IPv6 with the command `probe`.
//! Also parses the arguments of the manifests.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use clap::Parser as _;
use serde_json::Value;
use vap_status_controller::controller::args::Arguments;

const CONTROLLER: &str = env!("CARGO_BIN_EXE_vap-status-controller");

/// A process that is killed when the value is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts the controller without a reachable API server. Returns the process and its address for health checks.
fn start(listen: &str) -> (Process, std::net::SocketAddr) {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let config = "{apiVersion: v1, kind: Config, current-context: a, users: [],
        clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}],
        contexts: [{name: a, context: {cluster: a, user: ''}}]}";
    std::fs::write(&kubeconfig, config).unwrap();
    let mut child = Command::new(CONTROLLER)
        .args(["run", "--log-format=json", "--startup-timeout=60s"])
        // If a flag is repeated, the last one wins.
        .args(["--listen=127.0.0.1:1", &format!("--listen={listen}")])
        .env("KUBECONFIG", &kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let process = Process(child);
    let (sender, receiver) = std::sync::mpsc::channel();
    for pipe in [
        Box::new(stdout) as Box<dyn std::io::Read + Send>,
        Box::new(stderr),
    ] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines() {
                // The error is ignored, because the receiver is dropped when it has read the address.
                let _ = sender.send(line.unwrap());
            }
        });
    }
    drop(sender);
    let address = receiver.iter().find_map(|line| {
        let line: Value = goyaml::to_json(&line).ok()?;
        let fields = [&line, line.get("fields").unwrap_or(&line)];
        let listen = fields.iter().find_map(|it| it.get("listen"))?;
        listen.as_str()?.parse().ok()
    });
    drop(directory);
    (process, address.unwrap())
}

fn probe(url: &str) -> Output {
    let mut command = Command::new(CONTROLLER);
    command
        .args(["probe", "--timeout=100ms", url])
        .output()
        .unwrap()
}

#[test]
fn controller_responds_to_probe_over_both_ip_versions() {
    let (_process, address) = start("[::]:0");
    let mut hosts = vec!["127.0.0.1"];
    // On a machine without IPv6, the controller uses IPv4 instead.
    if address.is_ipv6() {
        hosts.push("[::1]");
    }
    for host in hosts {
        let url = format!("http://{host}:{}", address.port());
        let alive = probe(&format!("{url}/livez"));
        assert!(alive.status.success(), "{host}: {alive:?}");
        assert_eq!(alive.stdout, b"ok");
        // The caches are empty, because there is no cluster.
        let ready = probe(&format!("{url}/readyz"));
        assert_eq!(ready.status.code(), Some(1), "{host}: {ready:?}");
        let message = String::from_utf8(ready.stderr).unwrap();
        assert!(message.contains("503 Service Unavailable"), "{message}");
    }
}

#[test]
fn probe_of_invalid_url_is_a_usage_error() {
    let output = probe("https://localhost/readyz");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn arguments_of_manifests_are_valid() {
    for path in ["config/controller/deployment.yaml", "config/clear/job.yaml"] {
        let text = std::fs::read_to_string(path).unwrap();
        let workload = goyaml::to_json(&text).unwrap();
        let container = &workload["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].as_array().unwrap().iter();
        let arguments = arguments.map(|argument| argument.as_str().unwrap());
        let parsed =
            Arguments::try_parse_from(["vap-status-controller"].into_iter().chain(arguments));
        assert!(parsed.is_ok(), "{path}: {parsed:?}");
    }
}
