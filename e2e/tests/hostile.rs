//! Runs a leader and a standby with the memory limit of the manifests, while hostile objects and valid policies are
//! created.
//!
//! No replica restarts, fails `/livez` or exceeds the limit. Each valid policy gets its conditions soon. `VAP_HOSTILE`
//! sets the number of groups of hostile objects, and `VAP_HOSTILE_SEED` their seed.

#![allow(
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

#[path = "support/limit.rs"]
mod limit;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use e2e::allowed_failures::AllowedFailure;
use e2e::control_plane::ControlPlane;
use e2e::controller::{
    Controller, PARAMS_ROLE, await_served, control_plane, grant_params, install_probes,
};
use e2e::hostile::{self, Family, Hostile, LABEL, objects};
use e2e::policies;
use http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Client;
use kube::api::{Api, PostParams};
use limit::{memory_kib, memory_limit_kib, mib};
use parity::random::from_environment;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The number of groups of hostile objects. Two rounds contain about 150 objects, and several variants of each family.
const N_GROUPS: u64 = 32;

/// The numbers of valid policies that are created together with hostile objects, and afterwards.
const N_SOUND: [usize; 2] = [12, 12];

/// The time limit for the conditions of a valid policy.
const SOON: Duration = Duration::from_secs(5);

/// How long the test waits for the conditions of a valid policy. Longer than [`SOON`], so that the delay of a late policy
/// can be measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// The timeout of a request for `/livez`. The manifests have the same value.
const LIVEZ_TIMEOUT: Duration = Duration::from_secs(3);

/// The minimum percentage of hostile objects that the API server accepts.
const MIN_ACCEPTED: usize = 60;

/// A replica of the controller, its maximum memory and its problems.
struct Replica {
    name: &'static str,
    controller: Controller,
    peak_kib: AtomicU64,
    problems: Mutex<Vec<String>>,
}

/// State that the test shares with the observing tasks.
struct Shared {
    replicas: Vec<Replica>,
    limit_kib: u64,
    /// The name of the latest group of hostile objects.
    latest: Mutex<String>,
    is_over: AtomicBool,
}

impl Shared {
    fn problems(&self) -> Vec<String> {
        let replicas = self.replicas.iter();
        replicas
            .flat_map(|replica| replica.problems.lock().unwrap().clone())
            .collect()
    }

    fn report(&self, replica: &Replica, problem: &str) {
        let latest = self.latest.lock().unwrap().clone();
        let problem = format!("{}: {problem}, after {latest}", replica.name);
        println!("{problem}");
        replica.problems.lock().unwrap().push(problem);
    }

    /// Observes the memory of a replica. Kills the replica above the limit, as the kernel does.
    fn watch_memory(&self, replica: &Replica) {
        let pid = replica.controller.pid();
        while !self.is_over.load(Ordering::Relaxed) {
            let Some(peak) = memory_kib(pid, "VmHWM:") else {
                self.report(replica, "the process has ended");
                return;
            };
            replica.peak_kib.store(peak, Ordering::Relaxed);
            if peak > self.limit_kib {
                let problem = format!(
                    "peak of {}, the limit is {}",
                    mib(peak),
                    mib(self.limit_kib)
                );
                self.report(replica, &problem);
                let kill = Command::new("kill")
                    .args(["-KILL", &pid.to_string()])
                    .status();
                assert!(kill.unwrap().success());
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Requests `/livez` more often than a kubelet does.
    async fn watch_livez(&self, replica: &Replica) {
        let mut n_timeouts = 0;
        while !self.is_over.load(Ordering::Relaxed) && replica.problems.lock().unwrap().is_empty() {
            match tokio::time::timeout(LIVEZ_TIMEOUT, replica.controller.get("/livez")).await {
                Ok(Ok((200, _))) => n_timeouts = 0,
                Ok(Ok((status, body))) => {
                    self.report(replica, &format!("/livez is {status}: {body}"));
                }
                Ok(Err(error)) => self.report(replica, &format!("/livez: {error:#}")),
                Err(_) => {
                    n_timeouts += 1;
                    println!("{}: /livez timed out", replica.name);
                    // A kubelet restarts a container after three consecutive failures.
                    if n_timeouts == 3 {
                        self.report(replica, "/livez timed out three times in a row");
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
}

fn observe(shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    for i in 0..shared.replicas.len() {
        let of = Arc::clone(shared);
        tasks.push(tokio::task::spawn_blocking(move || {
            of.watch_memory(&of.replicas[i]);
        }));
        let of = Arc::clone(shared);
        tasks.push(tokio::spawn(async move {
            of.watch_livez(&of.replicas[i]).await;
        }));
    }
    tasks
}

/// Starts a control plane with the CRDs of probes and of the corpus. The controller may read the params of the corpus.
async fn cluster() -> (ControlPlane, Client) {
    let control_plane = control_plane().await.unwrap();
    grant_params(&control_plane).unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(&client, crds, &objects::crd()).await.unwrap();
    await_served(&client, "hostile.example.com/v1")
        .await
        .unwrap();
    let rule = json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": ["hostile.example.com"], "resources": ["hoards"], "verbs": ["get", "list", "watch"]}}]);
    let patched = control_plane
        .kubectl()
        .unwrap()
        .args(["patch", "clusterrole", PARAMS_ROLE, "--type=json", "-p"])
        .arg(rule.to_string())
        .status();
    assert!(patched.unwrap().success());
    (control_plane, client)
}

async fn create(client: &Client, collection: &str, object: &Value) -> Result<(), kube::Error> {
    let body = serde_json::to_vec(object).unwrap();
    let request = Request::post(collection)
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    client.request_text(request).await.map(|_| ())
}

/// The numbers of accepted and rejected objects of a family, and the first rejection message.
#[derive(Default)]
struct Acceptance {
    accepted: usize,
    rejected: usize,
    example: Option<String>,
}

type Accepted = BTreeMap<Family, Acceptance>;

async fn create_group(client: &Client, group: &Hostile, counts: &mut Accepted) {
    let counts = counts.entry(group.family).or_default();
    for object in &group.objects {
        let collection = hostile::collection(object).unwrap();
        match create(client, collection, object).await {
            Ok(()) => counts.accepted += 1,
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
                counts.rejected += 1;
                let (_, reason) = status.message.split_once("ERROR: ").unwrap_or_default();
                let message: String = reason.chars().take(120).collect();
                let example = format!("{}: {} {message}", group.name, status.code);
                counts.example.get_or_insert(example);
            }
            Err(error) => panic!("{}: {error}", group.name),
        }
    }
}

/// Deletes all hostile objects without pauses. Params are deleted before their policies.
async fn delete_all(client: &Client) {
    let collections = [
        "/apis/hostile.example.com/v1/namespaces/default/hoards",
        "/api/v1/namespaces/default/configmaps",
        "/apis/vap-status.dev/v1alpha1/policyprobes",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    ];
    for collection in collections {
        let path = format!("{collection}?labelSelector={LABEL}");
        let request = Request::delete(path).body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap();
    }
}

/// Creates a valid policy. Returns the time until it has its conditions. Returns `None` after a timeout.
fn create_sound(client: &Client, n: usize) -> JoinHandle<(usize, Option<Duration>)> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    tokio::spawn(async move {
        let name = format!("sound-{n}");
        let expression = format!("object.spec.replicas <= {}", n + 1);
        let policy = policies::policy(&name, ("apps", "deployments"), &expression);
        api.create(&PostParams::default(), &policy).await.unwrap();
        let created = Instant::now();
        while created.elapsed() < PATIENCE {
            let policy = api.get(&name).await.unwrap();
            let generation = policy.metadata.generation;
            let conditions = policy.status.unwrap_or_default().conditions;
            let is_ready = conditions.iter().flatten().any(|condition| {
                condition.type_ == "Ready"
                    && condition.status == "True"
                    && condition.observed_generation == generation
            });
            if is_ready {
                return (n, Some(created.elapsed()));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (n, None)
    })
}

/// Prints the times until valid policies had their conditions. Returns the policies that took too long.
fn late(times: &[(usize, Option<Duration>)]) -> Vec<String> {
    let mut durations: Vec<Duration> = times.iter().filter_map(|(_, time)| *time).collect();
    durations.sort();
    let quantile =
        |q: usize| durations.get((durations.len() * q / 100).min(durations.len().max(1) - 1));
    println!(
        "sound policies: {} of {} with conditions; median {:?}, 90% {:?}, longest {:?}",
        durations.len(),
        times.len(),
        quantile(50),
        quantile(90),
        durations.last()
    );
    let is_late = |time: &Option<Duration>| time.is_none_or(|time| time > SOON);
    let late = times.iter().filter(|(_, time)| is_late(time));
    late.map(|(n, time)| format!("sound-{n}: {time:?}"))
        .collect()
}

fn print_acceptance(counts: &Accepted) -> (usize, usize) {
    let (mut accepted, mut all) = (0, 0);
    for (family, count) in counts {
        accepted += count.accepted;
        all += count.accepted + count.rejected;
        println!(
            "{:12} {:4} accepted, {:4} rejected  {}",
            format!("{family:?}"),
            count.accepted,
            count.rejected,
            count.example.as_deref().unwrap_or_default()
        );
    }
    (accepted, all)
}

/// Returns log messages that hostile objects may cause.
///
/// The status of a probe with 150,000 small maps takes some seconds to apply, because the API server merges the fields
/// of the probe. The API server also compiles hostile policies, which delays other writes.
fn expected() -> Vec<AllowedFailure> {
    vec![
        AllowedFailure::warning("cannot write the status of a probe"),
        AllowedFailure::warning("cannot write the status, retrying"),
        AllowedFailure::reconcile("timeout"),
        AllowedFailure::any_sync("timeout"),
        AllowedFailure::warning("the check of this policy exceeded its time limit"),
    ]
}

async fn start(control_plane: &ControlPlane, name: &'static str) -> Replica {
    let controller = Controller::start(control_plane, &["--leader-elect"])
        .await
        .unwrap();
    controller.allow(expected());
    Replica {
        name,
        controller,
        peak_kib: AtomicU64::new(0),
        problems: Mutex::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn valid_policies_are_checked_despite_hostile_objects() {
    let seed = from_environment("VAP_HOSTILE_SEED", 1).unwrap();
    let n_groups = usize::try_from(from_environment("VAP_HOSTILE", N_GROUPS).unwrap()).unwrap();
    println!("VAP_HOSTILE={n_groups} VAP_HOSTILE_SEED={seed}");
    let (control_plane, client) = cluster().await;
    let replicas = vec![
        start(&control_plane, "leader").await,
        start(&control_plane, "standby").await,
    ];
    let shared = Arc::new(Shared {
        replicas,
        limit_kib: memory_limit_kib(),
        latest: Mutex::default(),
        is_over: AtomicBool::new(false),
    });
    for replica in &shared.replicas {
        let resident = replica.controller.resident_kib().unwrap();
        println!("{} at rest: {}", replica.name, mib(resident));
    }
    let observers = observe(&shared);

    let started = Instant::now();
    let mut counts = Accepted::new();
    let mut sound = Vec::new();
    for n in 0..n_groups {
        let group = hostile::hostile(seed, n);
        *shared.latest.lock().unwrap() = format!("{} ({:?})", group.name, group.family);
        create_group(&client, &group, &mut counts).await;
        if sound.len() < N_SOUND[0] * (n + 1) / n_groups {
            sound.push(create_sound(&client, sound.len()));
        }
        if !shared.problems().is_empty() {
            break;
        }
    }
    println!("hostile objects created in {:.1?}", started.elapsed());
    for _ in 0..N_SOUND[1] {
        if !shared.problems().is_empty() {
            break;
        }
        sound.push(create_sound(&client, sound.len()));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut times = Vec::new();
    for task in sound {
        times.push(task.await.unwrap());
    }
    let late = late(&times);
    let (accepted, all) = print_acceptance(&counts);

    let resident = |shared: &Shared| -> Vec<String> {
        let replicas = shared.replicas.iter();
        let memory = replicas.map(|replica| memory_kib(replica.controller.pid(), "VmRSS:"));
        memory.map(|kib| mib(kib.unwrap_or_default())).collect()
    };
    println!("resident with hostile objects: {:?}", resident(&shared));
    delete_all(&client).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("resident 5 s after their deletion: {:?}", resident(&shared));

    shared.is_over.store(true, Ordering::Relaxed);
    for observer in observers {
        observer.await.unwrap();
    }
    let problems = shared.problems();
    let shared = Arc::into_inner(shared).unwrap();
    for replica in shared.replicas {
        let peak = mib(replica.peak_kib.load(Ordering::Relaxed));
        println!("{} peak: {peak} of {}", replica.name, mib(shared.limit_kib));
        if problems.is_empty() {
            replica.controller.finish().await.unwrap();
        } else {
            replica.controller.drop_unchecked();
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(late.is_empty(), "no conditions within {SOON:?}: {late:#?}");
    assert!(
        accepted * 100 >= all * MIN_ACCEPTED,
        "{accepted} of {all} objects were accepted"
    );
}
