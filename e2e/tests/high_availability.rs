//! Runs two replicas, and repeatedly kills one of them at random moments while policies change.
//!
//! - Only one replica writes the status of a generation.
//! - A replica never writes after the other replica has acquired the Lease.
//! - At the end, all statuses equal those of an undisturbed run.
//!
//! The API server's audit log shows which replica wrote. `VAP_HA_SEED` sets the seed, and `VAP_HA_KILLS` the number of
//! kills.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::allowed_failures::{AllowedFailure, unexpected_failures};
use e2e::audit::{audited, controller_records};
use e2e::control_plane::{ControlPlane, Process};
use e2e::controller::{SERVICE_ACCOUNT, binary};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use parity::random::{Random, from_environment};
use serde_json::{Value, json};

const N_POLICIES: u64 = 40;

/// The interval between changes. Each policy changes 15 times per minute, because there are 40 policies. The
/// controller's limit is 100 status writes per policy and minute.
const PAUSE: Duration = Duration::from_millis(100);

/// The timeout for the shutdown of a replica.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum time from the stop of the leader until the standby takes over.
const MAX_GAP: SignedDuration = SignedDuration::from_secs(2);

/// This audit policy records writes of statuses and of the Lease.
const AUDIT_POLICY: &str = r"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [patch, update]
  resources:
  - {group: admissionregistration.k8s.io, resources: [validatingadmissionpolicies/status]}
- level: Request
  verbs: [create, update]
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  namespaces: [vap-status-system]
- level: None
";

/// Flags for a short Lease duration. The test waits until Leases expire.
const SHORT: [&str; 4] = [
    "--leader-elect",
    "--lease-duration=6s",
    "--renew-deadline=4s",
    "--retry-period=500ms",
];

struct Replica {
    /// The pod name, which is the prefix of the replica's identity.
    pod: String,
    process: Process,
    address: String,
}

impl Replica {
    fn start(control_plane: &ControlPlane, n: usize, args: &[&str]) -> Self {
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let kubeconfig = control_plane.kubeconfig_for(SERVICE_ACCOUNT).unwrap();
        let pod = format!("replica-{n}");
        let mut command = Command::new(binary("vap-status-controller").unwrap());
        command
            .args(["run", "--log-format=json", "--listen", &address])
            .args(args)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAME", &pod);
        let process = control_plane.spawn(&pod, command).unwrap();
        Self {
            pod,
            process,
            address,
        }
    }

    /// Sends a GET of `path`. Returns the body if the status is successful.
    async fn get(&self, path: &str) -> Option<String> {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(&self.address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
    }

    async fn is_ready(&self) -> bool {
        self.get("/readyz").await.is_some()
    }

    async fn leads(&self) -> bool {
        let metrics = self.get("/metrics").await;
        metrics.is_some_and(|text| text.contains("\nvap_leader 1\n"))
    }

    async fn await_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.is_ready().await {
            let log = self.process.log().unwrap();
            assert!(Instant::now() < deadline, "not ready:\n{log}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops the replica with SIGTERM, as a kubelet does.
    fn stop(&mut self) {
        let status = tokio::task::block_in_place(|| self.process.terminate(PATIENCE)).unwrap();
        assert!(status.success(), "{status}");
    }

    /// Checks the failures of the replica. Only slow writes and slow Lease renewals are allowed, because the machine
    /// may be overloaded.
    fn check(&self) {
        let slow = [
            AllowedFailure::warning("no response within "),
            AllowedFailure::error("renewing the Lease "),
            AllowedFailure::warning("the list ended before it was whole"),
        ];
        let wrong = unexpected_failures(&self.process.log().unwrap(), "", &slow);
        assert_eq!(wrong, Vec::<String>::new());
    }
}

struct Replicas<'a> {
    control_plane: &'a ControlPlane,
    args: &'a [&'a str],
    n_started: usize,
    running: [Replica; 2],
}

impl<'a> Replicas<'a> {
    fn start(control_plane: &'a ControlPlane, args: &'a [&'a str]) -> Self {
        Self {
            control_plane,
            args,
            n_started: 2,
            running: [0, 1].map(|n| Replica::start(control_plane, n, args)),
        }
    }

    /// Replaces a replica that has ended.
    fn replace(&mut self, i: usize) {
        self.running[i].check();
        self.running[i] = Replica::start(self.control_plane, self.n_started, self.args);
        self.n_started += 1;
    }

    /// Waits until a replica is the leader. Returns its index.
    async fn leader(&mut self) -> usize {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            for i in 0..2 {
                if self.running[i].leads().await {
                    return i;
                }
                // A replica exits if it cannot renew its Lease in time.
                if self.running[i].process.exit_status().unwrap().is_some() {
                    self.replace(i);
                }
            }
            assert!(Instant::now() < deadline, "no replica is the leader");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn name(n: u64) -> String {
    format!("ha-{n}")
}

/// Returns the `n`th spec. All specs differ. Every second spec has a warning.
fn spec(n: u64) -> Value {
    let field = if n.is_multiple_of(2) {
        "replicas"
    } else {
        "replica"
    };
    json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments"]}]},
        "validations": [{"expression": format!("object.spec.{field} != {n}")}],
    })
}

fn policies(client: &kube::Client) -> Api<ValidatingAdmissionPolicy> {
    Api::all(client.clone())
}

async fn create_policies(client: &kube::Client) {
    for n in 0..N_POLICIES {
        let policy = json!({"metadata": {"name": name(n)}, "spec": spec(n)});
        let policy = serde_json::from_value(policy).unwrap();
        let params = PostParams::default();
        policies(client).create(&params, &policy).await.unwrap();
    }
}

/// Changes policies one after another until `stop` is true. Returns the number of changes.
fn change(client: &kube::Client, stop: &Arc<AtomicBool>) -> tokio::task::JoinHandle<u64> {
    let (client, stop) = (client.clone(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut n = N_POLICIES;
        while !stop.load(Ordering::Relaxed) {
            let patch = Patch::Merge(json!({"spec": spec(n)}));
            let name = name(n % N_POLICIES);
            let params = PatchParams::default();
            policies(&client)
                .patch(&name, &params, &patch)
                .await
                .unwrap();
            n += 1;
            tokio::time::sleep(PAUSE).await;
        }
        n - N_POLICIES
    })
}

async fn statuses(client: &kube::Client) -> BTreeMap<String, Value> {
    let list = policies(client).list(&ListParams::default()).await.unwrap();
    let status = |policy: ValidatingAdmissionPolicy| {
        let generation = policy.metadata.generation;
        let mut status = serde_json::to_value(policy.status).unwrap();
        status["isCurrent"] = (status["observedGeneration"].as_i64() == generation).into();
        (policy.metadata.name.unwrap(), status)
    };
    list.items.into_iter().map(status).collect()
}

/// Waits until all statuses are of the latest generation.
async fn settle(client: &kube::Client) -> BTreeMap<String, Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let statuses = statuses(client).await;
        if statuses.values().all(|status| status["isCurrent"] == true) {
            return statuses;
        }
        assert!(Instant::now() < deadline, "{statuses:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[derive(Debug)]
struct Write {
    /// The writing instance, from its user agent.
    by: String,
    received: Timestamp,
    answered: Timestamp,
    target: WriteTarget,
}

#[derive(Debug)]
enum WriteTarget {
    /// A write of a policy's status: the name and generation of the policy.
    Status(String, i64),
    /// A write of the Lease: the new holder. Empty if the Lease was released.
    Lease(String),
}

/// Returns the successful writes in the audit log, sorted by the times of their responses.
fn writes(directory: &Path) -> Vec<Write> {
    let mut writes: Vec<Write> = controller_records(directory)
        .unwrap()
        .into_iter()
        .filter(|event| event["responseStatus"]["code"].as_u64().unwrap() < 300)
        .map(|event| {
            let time = |field: &str| event[field].as_str().unwrap().parse().unwrap();
            let agent = event["userAgent"].as_str().unwrap();
            let object = &event["requestObject"];
            let target = match event["objectRef"]["resource"].as_str().unwrap() {
                "leases" => {
                    let holder = object["spec"]["holderIdentity"].as_str().unwrap();
                    WriteTarget::Lease(holder.to_owned())
                }
                _ => WriteTarget::Status(
                    event["objectRef"]["name"].as_str().unwrap().to_owned(),
                    object["status"]["observedGeneration"].as_i64().unwrap(),
                ),
            };
            Write {
                by: agent
                    .split_once('(')
                    .unwrap()
                    .1
                    .trim_end_matches(')')
                    .to_owned(),
                received: time("requestReceivedTimestamp"),
                answered: time("stageTimestamp"),
                target,
            }
        })
        .collect();
    writes.sort_by_key(|write| write.answered);
    writes
}

/// Checks that each generation has one writer, and that instances write only while they hold the Lease. Returns the
/// numbers of status writes and of writing instances.
fn check_writers(writes: &[Write]) -> (usize, usize) {
    let mut writers: BTreeMap<(&str, i64), BTreeSet<&str>> = BTreeMap::new();
    let mut tenures: Vec<(&str, Timestamp)> = Vec::new();
    let mut instances = BTreeSet::new();
    let mut n_statuses = 0;
    for write in writes {
        match &write.target {
            WriteTarget::Lease(holder) => {
                assert!(holder.is_empty() || *holder == write.by, "{write:?}");
                if tenures.last().is_none_or(|(last, _)| last != holder) {
                    tenures.push((holder, write.answered));
                }
            }
            WriteTarget::Status(name, generation) => {
                n_statuses += 1;
                instances.insert(&write.by);
                let of_generation = writers.entry((name, *generation)).or_default();
                of_generation.insert(&write.by);
                assert_eq!(
                    of_generation.len(),
                    1,
                    "{name} {generation}: {of_generation:?}"
                );
                let (holder, since) = tenures.last().unwrap();
                assert_eq!(*holder, write.by, "wrote without the Lease: {write:?}");
                assert!(write.received >= *since, "wrote before it led: {write:?}");
            }
        }
    }
    (n_statuses, instances.len())
}

/// The times between the SIGTERM of a leader and the first writes of its successor.
#[derive(Debug)]
struct HandOver {
    successor: String,
    to_lease: SignedDuration,
    /// The time of the first status write. `None` if the successor was stopped before it wrote a status.
    to_status: Option<SignedDuration>,
}

impl HandOver {
    /// Returns the hand-over after the leader `by` was stopped. `ended` contains the times at which replicas were
    /// killed or stopped.
    fn after_stop(
        writes: &[Write],
        by: &str,
        stopped: Timestamp,
        ended: &BTreeMap<String, Timestamp>,
    ) -> Self {
        let after = || writes.iter().filter(|write| write.answered > stopped);
        let lease = after()
            .find(|write| matches!(&write.target, WriteTarget::Lease(holder) if !holder.is_empty() && holder != by))
            .unwrap();
        let successor = &lease.by;
        let status = after().find(|write| {
            write.by == *successor && matches!(write.target, WriteTarget::Status(..))
        });
        let since = |at: Timestamp| at.duration_since(stopped);
        let pod = successor.split_once('_').unwrap().0;
        let to_status = match (status, ended.get(pod)) {
            (Some(status), _) => Some(since(status.answered)),
            // The successor lived for at least `MAX_GAP` without writing a status, so the hand-over counts as late.
            (None, Some(end)) if since(*end) >= MAX_GAP => Some(since(*end)),
            (None, Some(_)) => None,
            (None, None) => panic!("{successor} acquired the Lease and wrote nothing"),
        };
        Self {
            successor: successor.clone(),
            to_lease: since(lease.answered),
            to_status,
        }
    }
}

/// Checks that all hand-overs were quick. Prints the times.
fn check_hand_overs(
    writes: &[Write],
    hand_overs: &[(String, Timestamp)],
    ended: &BTreeMap<String, Timestamp>,
) {
    println!("from SIGTERM to the successor's Lease, and to its first status:");
    let mut late = Vec::new();
    let mut n_whole = 0;
    for (by, stopped) in hand_overs {
        let hand_over = HandOver::after_stop(writes, by, *stopped, ended);
        let HandOver {
            successor,
            to_lease,
            to_status,
        } = &hand_over;
        match to_status {
            Some(to_status) => println!("  {by} to {successor}: {to_lease:.3?} {to_status:.3?}"),
            None => println!("  {by} to {successor}: {to_lease:.3?}, then it was stopped too"),
        }
        n_whole += usize::from(to_status.is_some());
        if *to_lease >= MAX_GAP || to_status.is_some_and(|gap| gap >= MAX_GAP) {
            late.push(hand_over);
        }
    }
    assert!(late.is_empty(), "{late:#?}");
    assert!(
        hand_overs.is_empty() || n_whole > 0,
        "no successor ran long enough to write a status"
    );
}

/// Returns the current holder of the Lease according to the audit log.
fn holder(directory: &Path) -> String {
    let of_lease = |write: Write| match write.target {
        WriteTarget::Lease(holder) => Some(holder),
        WriteTarget::Status(..) => None,
    };
    let mut holders: Vec<String> = writes(directory).into_iter().filter_map(of_lease).collect();
    holders.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_killed_at_random_have_consistent_writes() {
    let seed = from_environment("VAP_HA_SEED", 1).unwrap();
    let n_kills = from_environment("VAP_HA_KILLS", 20).unwrap();
    println!("VAP_HA_SEED={seed} VAP_HA_KILLS={n_kills}");
    let mut random = Random::new(seed);
    let (control_plane, directory) = audited(AUDIT_POLICY, &[]).await.unwrap();
    let client = control_plane.client().await.unwrap();
    create_policies(&client).await;
    let mut replicas = Replicas::start(&control_plane, &SHORT);
    for replica in &replicas.running {
        replica.await_ready().await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let changes = change(&client, &stop);
    let mut hand_overs = Vec::new();
    let mut ended = BTreeMap::new();
    for _ in 0..n_kills {
        let leading = replicas.leader().await;
        if random.permille(500) {
            replicas.running[1 - leading].await_ready().await;
        }
        tokio::time::sleep(random.duration(Duration::from_secs(2))).await;
        // In 80% of the cases, the leader is killed.
        let i = if random.permille(800) {
            leading
        } else {
            1 - leading
        };
        if random.permille(500) {
            let is_hand_over = i == leading
                && replicas.running[i].leads().await
                && replicas.running[1 - i].is_ready().await;
            let by = holder(directory.path());
            let stopped = Timestamp::now();
            ended.insert(replicas.running[i].pod.clone(), stopped);
            replicas.running[i].stop();
            if is_hand_over {
                hand_overs.push((by, stopped));
            }
        } else {
            ended.insert(replicas.running[i].pod.clone(), Timestamp::now());
            replicas.running[i].process.kill();
        }
        replicas.replace(i);
    }
    replicas.leader().await;
    stop.store(true, Ordering::Relaxed);
    let n_changes = changes.await.unwrap();
    let settled = settle(&client).await;
    for replica in &mut replicas.running {
        replica.await_ready().await;
        replica.stop();
        replica.check();
    }
    let writes = writes(directory.path());
    let (n_statuses, n_writers) = check_writers(&writes);
    println!("{n_changes} changes, {n_statuses} statuses written by {n_writers} instances");
    check_hand_overs(&writes, &hand_overs, &ended);
    assert!(n_writers > 3, "the holder of the Lease changed too rarely");

    // The replica of the undisturbed run. No policy changes during this run.
    let calm = Replica::start(&control_plane, replicas.n_started, &[]);
    calm.await_ready().await;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let metrics = calm.get("/metrics").await.unwrap();
        // All policies are reconciled and the queue is empty.
        let expected = format!("\nvap_policies {N_POLICIES}\n");
        if metrics.contains(&expected) && metrics.contains("\nvap_queue_length 0\n") {
            assert!(
                metrics.contains("\nvap_status_writes_total 0\n"),
                "{metrics}"
            );
            break;
        }
        assert!(Instant::now() < deadline, "{metrics}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(statuses(&client).await, settled);
}

#[tokio::test(flavor = "multi_thread")]
async fn handover_with_default_lease_is_quick() {
    let (control_plane, directory) = audited(AUDIT_POLICY, &[]).await.unwrap();
    let client = control_plane.client().await.unwrap();
    create_policies(&client).await;
    let mut replicas = Replicas::start(&control_plane, &["--leader-elect"]);
    for replica in &replicas.running {
        replica.await_ready().await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let changes = change(&client, &stop);
    let mut hand_overs = Vec::new();
    for _ in 0..4 {
        let leading = replicas.leader().await;
        replicas.running[1 - leading].await_ready().await;
        hand_overs.push((holder(directory.path()), Timestamp::now()));
        replicas.running[leading].stop();
        replicas.replace(leading);
        replicas.leader().await;
        // The leader must write something before it is stopped.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stop.store(true, Ordering::Relaxed);
    changes.await.unwrap();
    settle(&client).await;
    let writes = writes(directory.path());
    check_writers(&writes);
    check_hand_overs(&writes, &hand_overs, &BTreeMap::new());
}
