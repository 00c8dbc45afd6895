//! Tests of elections among several instances, with an in-memory API server and in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::cluster::testing::{ReceivedRequest, Reply, client};
use crate::controller::context::Context;
use crate::controller::leadership::WritePermit;
use crate::controller::leadership::lease::Timing;
use crate::controller::tests::settings;
use crate::status::exclusion::Exclusion;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Source;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// An API server with one Lease, and its connectivity to each instance.
#[derive(Debug, Default)]
struct Server {
    lease: Option<Value>,
    version: u64,
    /// Instances whose requests get no response and have no effect.
    cut: BTreeSet<&'static str>,
    /// Instances whose requests have an effect but get no response.
    mute: BTreeSet<&'static str>,
    /// An instance whose requests fail with this HTTP status and have no effect.
    rejected: Option<(&'static str, u16)>,
    /// All holders of the Lease, in order.
    holders: Vec<String>,
}

impl Server {
    fn answer(&mut self, who: &'static str, request: &ReceivedRequest) -> Option<Reply> {
        if self.cut.contains(who) {
            return None;
        }
        if let Some((refused, status)) = self.rejected
            && refused == who
        {
            return Some(Reply::failure(status, "leases is forbidden"));
        }
        let reply = self.serve(request);
        (!self.mute.contains(who)).then_some(reply)
    }

    fn serve(&mut self, request: &ReceivedRequest) -> Reply {
        let collection = "/apis/coordination.k8s.io/v1/namespaces/vap/leases";
        let path = request.path.trim_end_matches('?');
        match request.method.as_str() {
            "GET" => {
                assert_eq!(path, format!("{collection}/lease"));
                match &self.lease {
                    Some(lease) => Reply::json(lease),
                    None => Reply::failure(404, "not found"),
                }
            }
            "POST" if self.lease.is_some() => Reply::failure(409, "already exists"),
            "POST" => {
                assert_eq!(path, collection);
                self.write(request.body.clone())
            }
            "PUT" => {
                let Some(lease) = &self.lease else {
                    return Reply::failure(404, "not found");
                };
                let version = &request.body["metadata"]["resourceVersion"];
                assert!(version.is_string(), "a write without condition");
                if *version != lease["metadata"]["resourceVersion"] {
                    return Reply::failure(409, "the object has been modified");
                }
                self.write(request.body.clone())
            }
            other => panic!("{other} {path}"),
        }
    }

    fn write(&mut self, mut lease: Value) -> Reply {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap().to_owned();
        if self.holders.last() != Some(&holder) {
            self.holders.push(holder);
        }
        self.lease = Some(lease.clone());
        Reply::json(&lease)
    }
}

type Shared = Arc<Mutex<Server>>;

struct Instance {
    context: Arc<Context>,
    release: watch::Sender<bool>,
    task: JoinHandle<Result<(), String>>,
}

fn context_of(server: &Shared, name: &'static str) -> Context {
    let server = Arc::clone(server);
    let (client, _) = client(move |request| server.lock().unwrap().answer(name, request));
    Context::new(client, settings(), Arc::new(Metrics::new()))
}

fn start(server: &Shared, name: &'static str) -> Instance {
    start_with(context_of(server, name), name, TIMING)
}

fn start_with(context: Context, name: &str, timing: Timing) -> Instance {
    let context = Arc::new(context);
    let election = Election {
        namespace: "vap".to_owned(),
        name: "lease".to_owned(),
        identity: name.to_owned(),
        timing,
    };
    let (release, released) = watch::channel(false);
    let elector = Elector::new(Arc::clone(&context), election);
    Instance {
        context,
        release,
        task: tokio::spawn(elector.run(released)),
    }
}

impl Instance {
    fn may_write(&self) -> bool {
        !self.task.is_finished() && self.context.leadership.may_write().is_some()
    }

    /// Waits until the instance may write. Returns how long that took.
    async fn leads(&self) -> Duration {
        let start = Instant::now();
        while !self.may_write() {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "no instance leads"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        start.elapsed()
    }

    /// Stops the instance as SIGTERM does.
    async fn stop(self) {
        self.context.leadership.close().await;
        self.release.send_replace(true);
        self.task.await.unwrap().unwrap();
    }

    fn kill(&self) {
        self.task.abort();
    }
}

async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

fn spec(server: &Shared) -> Value {
    server.lock().unwrap().lease.as_ref().unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn election_has_one_leader() {
    let server = Shared::default();
    let first = start(&server, "a");
    assert!(first.leads().await < Duration::from_secs(1));
    let others = [start(&server, "b"), start(&server, "c")];
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(first.may_write());
        assert!(others.iter().all(|other| !other.may_write()));
    }
    assert_eq!(server.lock().unwrap().holders, ["a"]);
    let spec = spec(&server);
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    assert_ne!(spec["acquireTime"], spec["renewTime"]);
    let text = first.context.metrics.encode().unwrap();
    assert!(text.contains("vap_leader 1\n"), "{text}");
    let text = others[0].context.metrics.encode().unwrap();
    assert!(text.contains("vap_leader 0\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn killed_leader_is_replaced_after_expiry() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    seconds(60).await;
    first.kill();
    let gap = second.leads().await;
    let bounds = Duration::from_secs(12)..Duration::from_secs(17);
    assert!(bounds.contains(&gap), "{gap:?}");
    let spec = spec(&server);
    assert_eq!(spec["holderIdentity"], "b");
    assert_eq!(spec["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn stopped_leader_is_replaced_within_two_seconds() {
    let server = Shared::default();
    for _ in 0..20 {
        let first = start(&server, "a");
        first.leads().await;
        let second = start(&server, "b");
        seconds(20).await;
        first.stop().await;
        let released = spec(&server);
        assert_eq!(released["holderIdentity"], "");
        assert_eq!(released["leaseDurationSeconds"], 1);
        let gap = second.leads().await;
        assert!(gap < Duration::from_millis(1500), "{gap:?}");
        second.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_standby_does_not_write_lease() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    seconds(5).await;
    second.stop().await;
    assert_eq!(server.lock().unwrap().holders, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn lease_is_released_after_last_write() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let leadership = first.context.leadership.clone();
    let write = leadership.may_write().unwrap();
    let stopping = tokio::spawn(first.stop());
    seconds(3).await;
    assert!(leadership.may_write().is_none());
    assert_eq!(spec(&server)["holderIdentity"], "a");
    drop(write);
    stopping.await.unwrap();
    assert_eq!(spec(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn unanswered_write_ends_before_takeover() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    seconds(30).await;
    server.lock().unwrap().cut.insert("a");
    // This task writes repeatedly, as long as the first instance may write.
    let leadership = first.context.leadership.clone();
    let writes = tokio::spawn(async move {
        while let Some(permit) = leadership.may_write() {
            let never = std::future::pending::<Result<(), Error>>();
            assert!(permit.within(never).await.is_err());
        }
        Instant::now()
    });
    second.leads().await;
    let led = Instant::now();
    assert!(writes.is_finished());
    let last = writes.await.unwrap();
    assert!(last < led, "{:?}", last.duration_since(led));
    let lost = first.task.await.unwrap().unwrap_err();
    let text = "renewing the Lease vap/lease has failed for ";
    assert!(lost.starts_with(text), "{lost}");
    let text = " s, and the next attempt would exceed the renew deadline of 10 s: ";
    assert!(lost.contains(text), "{lost}");
    assert!(lost.contains(": no response within "), "{lost}");
}

#[tokio::test(start_paused = true)]
async fn leader_without_renewals_stops_writing() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    seconds(30).await;
    // The election task ends without an error, so the Lease is no longer renewed.
    first.task.abort();
    let leadership = first.context.leadership.clone();
    let mut end = Instant::now();
    while let Some(permit) = leadership.may_write() {
        end = permit.end;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!second.may_write());
    second.leads().await;
    assert!(end < Instant::now());
}

#[tokio::test(start_paused = true)]
async fn leader_keeps_lease_if_responses_are_lost() {
    // The leader's writes take effect, but the leader gets no response.
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    server.lock().unwrap().mute.insert("a");
    seconds(6).await;
    server.lock().unwrap().mute.clear();
    for _ in 0..60 {
        seconds(1).await;
        assert!(first.may_write() && !second.may_write());
    }
    // The response to a standby's write is lost. The standby leads as soon as it reads the Lease.
    first.stop().await;
    server.lock().unwrap().mute.insert("b");
    seconds(6).await;
    assert!(!second.may_write());
    server.lock().unwrap().mute.clear();
    // The standby leads only after the request without a response has timed out.
    let limit = TIMING.request_limit() + Duration::from_secs(1);
    assert!(second.leads().await < limit);
}

#[tokio::test(start_paused = true)]
async fn leader_survives_edit_or_deletion_of_lease() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    {
        let mut server = server.lock().unwrap();
        let mut lease = server.lease.clone().unwrap();
        lease["metadata"]["labels"] = json!({"team": "x"});
        server.write(lease);
    }
    seconds(10).await;
    assert!(first.may_write());
    let labels = server.lock().unwrap().lease.as_ref().unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"team": "x"}));
    server.lock().unwrap().lease = None;
    seconds(10).await;
    // One instance creates the Lease again. The other instance then reads the new Lease.
    assert!(first.may_write() ^ second.may_write());
}

#[tokio::test(start_paused = true)]
async fn leader_ends_within_two_seconds_after_losing_lease() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    {
        let mut server = server.lock().unwrap();
        let mut lease = server.lease.clone().unwrap();
        lease["spec"]["holderIdentity"] = "x".into();
        server.write(lease);
    }
    let start = Instant::now();
    let lost = first.task.await.unwrap().unwrap_err();
    assert_eq!(lost, "the Lease was lost to x");
    assert!(start.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_reported_as_problem() {
    let server = Shared::default();
    server.lock().unwrap().rejected = Some(("a", 403));
    let first = start(&server, "a");
    seconds(3).await;
    assert!(!first.may_write());
    let problem = first.context.leadership.problem().unwrap();
    assert!(
        problem.contains(
            "grant `get` and `update` on this Lease, and `create` on `leases` (coordination.k8s.io), in the Role \
             vap-status-controller-lease of the namespace vap"
        ),
        "{problem}"
    );
    server.lock().unwrap().rejected = None;
    first.leads().await;
    assert_eq!(first.context.leadership.problem(), None);
}

#[tokio::test(start_paused = true)]
async fn standby_with_rejected_credentials_becomes_unready_and_ends() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    seconds(5).await;
    server.lock().unwrap().rejected = Some(("b", 401));
    seconds(8).await;
    assert_eq!(second.context.leadership.problem(), None);
    seconds(4).await;
    let problem = second.context.leadership.problem().unwrap();
    assert!(problem.contains("has been unreadable for 1"), "{problem}");
    // A standby whose credentials are accepted again continues.
    server.lock().unwrap().rejected = None;
    seconds(2).await;
    assert_eq!(second.context.leadership.problem(), None);
    server.lock().unwrap().rejected = Some(("b", 401));
    seconds(115).await;
    assert!(!second.task.is_finished());
    seconds(10).await;
    let reason = second.task.await.unwrap().unwrap_err();
    assert!(
        reason.starts_with("the Lease vap/lease has been unreadable for 12"),
        "{reason}"
    );
    assert!(first.may_write());
}

#[tokio::test(start_paused = true)]
async fn standby_survives_outage_of_api_server() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let second = start(&server, "b");
    seconds(5).await;
    server.lock().unwrap().rejected = Some(("b", 503));
    seconds(600).await;
    assert!(!second.task.is_finished());
    assert_eq!(second.context.leadership.problem(), None);
}

#[tokio::test(start_paused = true)]
async fn lease_annotation_has_time_of_last_sync() {
    let server = Shared::default();
    let mut context = context_of(&server, "a");
    context.now = || Timestamp::from_second(1_790_000_000).unwrap();
    let readiness = context.readiness.clone();
    let first = start_with(context, "a", TIMING);
    first.leads().await;
    seconds(10).await;
    let annotations =
        |server: &Shared| server.lock().unwrap().lease.as_ref().unwrap()["metadata"].clone();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        annotations(&server)["annotations"],
        json!({"vap-status.dev/version": version})
    );
    for source in Source::ALL {
        readiness.synced(*source);
    }
    seconds(3).await;
    let metadata = annotations(&server);
    assert_eq!(
        metadata["annotations"],
        json!({"vap-status.dev/in-sync-at": "2026-09-21T14:13:20Z",
               "vap-status.dev/version": version})
    );
}

#[tokio::test(start_paused = true)]
async fn lease_annotations_contain_exclusions() {
    let server = Shared::default();
    let mut context = context_of(&server, "a");
    let selector = "vendor in (x)".parse().unwrap();
    context.settings.exclusion = Exclusion::new(&["gke-*".parse().unwrap()], Some(&selector));
    let first = start_with(context, "a", TIMING);
    first.leads().await;
    let metadata = server.lock().unwrap().lease.as_ref().unwrap()["metadata"].clone();
    assert_eq!(
        metadata["annotations"],
        json!({"vap-status.dev/exclude-names": "gke-*",
               "vap-status.dev/exclude-selector": "vendor in (x)",
               "vap-status.dev/version": env!("CARGO_PKG_VERSION")})
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeat_reports_no_problem_while_attempts_complete() {
    let server = Shared::default();
    let first = start(&server, "a");
    first.leads().await;
    let problems = |instance: &Instance| {
        let checks = instance.context.supervisor.checks().into_iter();
        checks.filter_map(|(_, problem)| problem).count()
    };
    seconds(60).await;
    assert_eq!(problems(&first), 0);
    // A standby without responses still sends heartbeats, since each attempt ends with a timeout.
    server.lock().unwrap().cut.insert("b");
    let second = start(&server, "b");
    seconds(60).await;
    assert_eq!(problems(&second), 0);
}

#[tokio::test(start_paused = true)]
async fn instance_without_election_always_writes() {
    let context = context_of(&Shared::default(), "a");
    let permit = context.leadership.may_write().unwrap();
    let never = std::future::pending::<Result<(), Error>>();
    let error = permit.within(never).await.unwrap_err();
    assert_eq!(error.to_string(), "no response within 5 s");
}

/// Returns a number below `n` from Lehmer's generator.
fn below(state: &mut u64, n: u64) -> u64 {
    *state = *state * 48_271 % 0x7fff_ffff;
    *state % n
}

#[tokio::test(start_paused = true)]
async fn random_failures_never_allow_two_writers() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let timings = [
        TIMING,
        Timing {
            lease_duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry_period: Duration::from_millis(500),
        },
    ];
    let mut n_turns = 0;
    for seed in 1..=16_u64 {
        let timing = timings[usize::from(seed % 4 != 0)];
        let mut random = seed * 7919;
        let server = Shared::default();
        let begin = |name| start_with(context_of(&server, name), name, timing);
        let mut instances = NAMES.map(begin);
        let mut writes: Vec<(&str, WritePermit)> = Vec::new();
        for _ in 0..1500 {
            tokio::time::sleep(Duration::from_millis(20 + below(&mut random, 200))).await;
            writes.retain(|(_, permit)| Instant::now() < permit.end);
            for (name, instance) in NAMES.into_iter().zip(&instances) {
                if !instance.task.is_finished()
                    && let Some(permit) = instance.context.leadership.may_write()
                {
                    writes.push((name, permit));
                }
            }
            let writers: BTreeSet<_> = writes.iter().map(|(name, _)| *name).collect();
            assert!(writers.len() <= 1, "seed {seed}: {writers:?}");
            writes.truncate(8);
            let i = usize::try_from(below(&mut random, 3)).unwrap();
            let name = NAMES[i];
            let mut server = server.lock().unwrap();
            match below(&mut random, 24) {
                0 => drop(server.cut.insert(name)),
                1 => drop(server.mute.insert(name)),
                2 => server.rejected = Some((name, 500)),
                3..=4 => {
                    server.cut.clear();
                    server.mute.clear();
                    server.rejected = None;
                }
                5 => {
                    drop(server);
                    instances[i].kill();
                    instances[i] = begin(name);
                }
                _ if instances[i].task.is_finished() => {
                    drop(server);
                    instances[i] = begin(name);
                }
                _ => {}
            }
        }
        n_turns += server.lock().unwrap().holders.len();
        for instance in instances {
            instance.kill();
        }
    }
    // The test is meaningful only if the holder of the Lease changed often.
    assert!(n_turns > 50, "{n_turns}");
}
