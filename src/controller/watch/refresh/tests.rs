//! Tests that triggers queue the affected policies, in virtual time.

use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;
use crate::cluster::testing::{ReceivedRequest, Reply, client, paths};
use crate::controller::cluster::crds::tests::crd;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::tests::{id, settings};
use crate::telemetry::Metrics;

const WIDGETS: &str = "widgets.example.com";

/// The state of the API server.
#[derive(Clone, Debug, Default)]
struct Served {
    /// The minor version of the API server. Empty for a version that cannot be parsed.
    minor: &'static str,
    is_listed: bool,
    address: Option<&'static str>,
    is_down: bool,
    /// The number of other API groups. Each serves the resource `things`.
    others: usize,
    delay: Duration,
    /// True if the documents in the index exist.
    is_described: bool,
}

struct Cluster {
    context: Arc<Context>,
    served: Arc<Mutex<Served>>,
    signals: UnboundedSender<RefreshTrigger>,
    log: crate::cluster::testing::Log,
}

fn answer(served: &Served, request: &ReceivedRequest) -> Reply {
    if served.is_down {
        return Reply::failure(503, "down");
    }
    let group = |name: String, resource: &str, kind: &str| {
        json!({"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [
            {"resource": resource, "scope": "Namespaced",
             "responseKind": {"group": name, "version": "v1", "kind": kind}}]}]})
    };
    let others = (0..served.others).map(other_group);
    let document = match request.path.as_str() {
        "/version" => json!({"major": "1", "minor": served.minor, "gitVersion": ""}),
        "/openapi/v3" => {
            let others = others.map(|name| (name, "/openapi/v3/b?hash=1"));
            let widgets = served
                .address
                .map(|address| ("example.com".to_owned(), address));
            let paths = others.chain(widgets).map(|(name, address)| {
                let address = json!({"serverRelativeURL": address});
                (format!("apis/{name}/v1"), address)
            });
            json!({"paths": paths.collect::<serde_json::Map<_, _>>()})
        }
        "/apis" => {
            let widgets = served.is_listed.then(|| "example.com".to_owned());
            let widgets = widgets.map(|name| group(name, "widgets", "Widget"));
            let others = others.map(|name| group(name, "things", "Thing"));
            let items: Vec<Value> = others.chain(widgets).collect();
            json!({"kind": "APIGroupDiscoveryList", "items": items})
        }
        path if path.starts_with("/openapi/v3/") && !served.is_described => {
            return Reply {
                body: String::new(),
                ..Reply::json(&Value::Null)
            };
        }
        path if path.starts_with("/openapi/v3/") => json!({"components": {"schemas": {}}}),
        _ => json!({"kind": "APIGroupDiscoveryList", "items": []}),
    };
    Reply::json(&document).after(served.delay)
}

fn other_group(n: usize) -> String {
    format!("g{n}.example.org")
}

fn policy(name: &str, group: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"},
        "spec": {"matchConstraints": {"resourceRules": [
            {"apiGroups": [group], "apiVersions": ["v1"], "resources": ["widgets"]}]}},
    })
}

/// Creates a cluster without CRDs and with two policies. One policy matches widgets. The other policy matches a
/// resource of another group.
fn cluster() -> Cluster {
    let served = Arc::new(Mutex::new(Served::default()));
    let now_served = Arc::clone(&served);
    let (client, log) = client(move |request| Some(answer(&now_served.lock().unwrap(), request)));
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    for (name, group) in [
        ("on-widgets", "example.com"),
        ("on-others", "other.example.com"),
    ] {
        let policy = serde_json::from_value(policy(name, group)).unwrap();
        context.store.put(policy, EventSource::Watched);
    }
    let (signals, received) = unbounded_channel();
    tokio::spawn(Refresher::new(Arc::clone(&context)).run(received));
    Cluster {
        context,
        served,
        signals,
        log,
    }
}

impl Cluster {
    fn serve(&self, is_listed: bool, address: Option<&'static str>) {
        let mut served = self.served.lock().unwrap();
        served.is_listed = is_listed;
        served.address = address;
        served.is_down = false;
    }

    fn signal(&self, signal: RefreshTrigger) {
        self.signals.send(signal).unwrap();
    }

    /// Waits for the time `wait`. Returns the policies that are then queued.
    async fn queued(&self, wait: Duration) -> Vec<String> {
        tokio::time::sleep(wait).await;
        let mut names = Vec::new();
        while let Ok(name) = tokio::time::timeout(Duration::ZERO, self.context.queue.next()).await {
            self.context.queue.done(&name);
            names.push(name.to_string());
        }
        names.sort();
        names
    }
}

fn widget() -> Crd {
    crd("example.com", "Widget", &["v1"])
}

fn listed(crds: Crds) -> RefreshTrigger {
    let kept = BTreeSet::new();
    RefreshTrigger::CrdsListed { crds, kept }
}

const SOON: Duration = Duration::from_millis(1500);

#[tokio::test(start_paused = true)]
async fn first_snapshot_waits_for_crds_and_queues_all_policies() {
    let cluster = cluster();
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
    cluster.signal(listed(Crds::new()));
    assert_eq!(cluster.queued(SOON).await, ["on-others", "on-widgets"]);
    // Without a change, no policy is queued, and discovery is polled at the interval.
    let before = paths(&cluster.log).len();
    assert_eq!(
        cluster.queued(Duration::from_secs(100)).await,
        Vec::<String>::new()
    );
    assert_eq!(paths(&cluster.log).len() - before, 10 * 4);
}

/// During an upgrade, the API servers respond in turn, and the lowest version applies.
#[tokio::test(start_paused = true)]
async fn changed_version_queues_all_policies_and_lowest_version_applies() {
    let cluster = cluster();
    let report = |minor| cluster.served.lock().unwrap().minor = minor;
    let version = || cluster.context.snapshot().server.version.minor;
    report("35");
    cluster.signal(listed(Crds::new()));
    assert_eq!(cluster.queued(SOON).await, ["on-others", "on-widgets"]);
    assert_eq!(version(), 35);
    report("36+");
    assert_eq!(
        cluster.queued(Duration::from_secs(45)).await,
        ["on-others", "on-widgets"]
    );
    assert_eq!(version(), 35);
    assert!(cluster.context.snapshot().server.is_lowest_of_several);
    assert_eq!(
        cluster.queued(Duration::from_secs(60)).await,
        ["on-others", "on-widgets"]
    );
    assert_eq!(version(), 36);
    report("35");
    assert_eq!(
        cluster.queued(Duration::from_secs(20)).await,
        ["on-others", "on-widgets"]
    );
    assert_eq!(version(), 35);
}

/// The snapshot must contain the version of an API server that is too new, because new features may explain errors.
#[tokio::test(start_paused = true)]
async fn server_version_that_is_too_new_is_kept() {
    let cluster = cluster();
    cluster.served.lock().unwrap().minor = "99";
    cluster.signal(listed(Crds::new()));
    cluster.queued(SOON).await;
    assert_eq!(
        cluster.context.snapshot().server.version,
        KubernetesVersion::new(99)
    );
}

#[tokio::test(start_paused = true)]
async fn crd_queues_policies_when_fully_published() {
    let cluster = cluster();
    cluster.signal(listed(Crds::new()));
    cluster.queued(SOON).await;
    cluster.signal(RefreshTrigger::CrdApplied(WIDGETS.into(), widget()));
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
    cluster.serve(true, None);
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
    cluster.serve(true, Some("/openapi/v3/a?hash=1"));
    assert_eq!(cluster.queued(SOON).await, ["on-widgets"]);
    // The CRD is deleted. Discovery reflects this later.
    cluster.signal(RefreshTrigger::CrdDeleted(WIDGETS.into()));
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
    cluster.serve(false, None);
    assert_eq!(cluster.queued(SOON).await, ["on-widgets"]);
}

#[tokio::test(start_paused = true)]
async fn missing_resource_of_crd_is_accepted_after_time_limit() {
    let cluster = cluster();
    cluster.signal(listed(Crds::new()));
    cluster.queued(SOON).await;
    // First the resource is listed without a document. Later it is not listed.
    cluster.serve(true, None);
    cluster.signal(RefreshTrigger::CrdApplied(WIDGETS.into(), widget()));
    assert_eq!(
        cluster.queued(Duration::from_secs(9)).await,
        Vec::<String>::new()
    );
    assert_eq!(cluster.queued(Duration::from_secs(3)).await, ["on-widgets"]);
    cluster.serve(false, None);
    assert_eq!(
        cluster.queued(Duration::from_secs(9)).await,
        Vec::<String>::new()
    );
    assert_eq!(
        cluster.queued(Duration::from_secs(20)).await,
        ["on-widgets"]
    );
}

#[tokio::test(start_paused = true)]
async fn outage_queues_no_policies() {
    let cluster = cluster();
    cluster.serve(true, Some("/openapi/v3/a?hash=1"));
    cluster.signal(listed([(WIDGETS.to_owned(), widget())].into()));
    assert_eq!(cluster.queued(SOON).await, ["on-others", "on-widgets"]);
    cluster.served.lock().unwrap().is_down = true;
    assert_eq!(
        cluster.queued(Duration::from_secs(600)).await,
        Vec::<String>::new()
    );
    assert!(
        cluster
            .context
            .readiness
            .checks()
            .iter()
            .any(|(name, problem)| { *name == "discovery" && problem.is_none() })
    );
    // The API server recovers, and its state is unchanged.
    cluster.serve(true, Some("/openapi/v3/a?hash=1"));
    assert_eq!(
        cluster.queued(Duration::from_secs(600)).await,
        Vec::<String>::new()
    );
    // The CRDs are listed again and are unchanged.
    cluster.signal(listed([(WIDGETS.to_owned(), widget())].into()));
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
    // An unreadable CRD changes nothing either, since its last state remains.
    cluster.signal(RefreshTrigger::CrdsListed {
        crds: Crds::new(),
        kept: [WIDGETS.to_owned(), "unknown".to_owned()].into(),
    });
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn changed_api_service_triggers_discovery() {
    let cluster = cluster();
    cluster.signal(listed(Crds::new()));
    cluster.queued(SOON).await;
    cluster.serve(true, Some("/openapi/v3/a?hash=1"));
    cluster.signal(RefreshTrigger::ApiServiceChanged(GroupVersion::new(
        "example.com",
        "v1",
    )));
    assert_eq!(cluster.queued(SOON).await, ["on-widgets"]);
}

#[tokio::test(start_paused = true)]
async fn slow_responses_do_not_extend_poll_interval() {
    let cluster = cluster();
    cluster.serve(true, Some("/openapi/v3/a?hash=1"));
    cluster.signal(listed([(WIDGETS.to_owned(), widget())].into()));
    cluster.queued(SOON).await;
    // The API server responds slowly, and has not published the change. Slow responses must not extend the interval.
    cluster.served.lock().unwrap().delay = Duration::from_millis(150);
    let mut changed = widget();
    changed.revision.1 += 1;
    cluster.signal(RefreshTrigger::CrdApplied(WIDGETS.into(), changed));
    tokio::time::sleep(2 * SOON).await;
    cluster.served.lock().unwrap().address = Some("/openapi/v3/a?hash=2");
    // One second is enough for the running poll, a wait of the same duration, and one more poll.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let snapshot = cluster.context.snapshot();
    let address = snapshot.index.get(&GroupVersion::new("example.com", "v1"));
    assert_eq!(address.map(String::as_str), Some("/openapi/v3/a?hash=2"));
}

/// If a CRD is deleted and recreated unchanged, the URL of its document is the same as before. If the document was
/// missing in the meantime, it must nevertheless be requested again.
#[tokio::test(start_paused = true)]
async fn document_of_recreated_crd_with_same_url_is_requested_again() {
    for is_gone_from_the_index in [false, true] {
        let cluster = cluster();
        let address = Some("/openapi/v3/a?hash=1");
        let widgets = GroupVersion::new("example.com", "v1");
        let needed = BTreeSet::from([widgets.clone()]);
        cluster.serve(true, address);
        cluster.signal(listed([(WIDGETS.to_owned(), widget())].into()));
        cluster.queued(SOON).await;
        let schemas = &cluster.context.schemas;
        let index = Arc::clone(&cluster.context.snapshot().index);
        drop(schemas.get(&id("on-widgets"), &needed, &index).await);
        let is_there = || schemas.loaded(&id("on-widgets"), &needed, &index).is_some();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(!is_there(), "the backoff is a minute by now");

        cluster.signal(RefreshTrigger::CrdDeleted(WIDGETS.into()));
        if is_gone_from_the_index {
            cluster.serve(false, None);
            tokio::time::sleep(SOON).await;
        }
        let mut again = widget();
        again.revision.1 += 1;
        cluster.signal(RefreshTrigger::CrdApplied(WIDGETS.into(), again));
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.serve(true, address);
        cluster.served.lock().unwrap().is_described = true;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(is_there(), "{is_gone_from_the_index}");
    }
}

#[tokio::test(start_paused = true)]
async fn forbidden_discovery_is_reported() {
    let (client, _) = client(|_| Some(Reply::failure(403, "no")));
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let (_signals, received) = unbounded_channel();
    tokio::spawn(Refresher::new(Arc::clone(&context)).run(received));
    tokio::time::sleep(SOON).await;
    let checks = context.readiness.checks();
    let (_, problem) = checks
        .iter()
        .find(|(name, _)| *name == "discovery")
        .unwrap();
    assert_eq!(
        problem.as_deref(),
        Some(
            "cannot read discovery (/api, /apis): the API server returned 403: no; bind the ClusterRole \
             system:discovery to the service account"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn many_crd_changes_do_not_delay_others() {
    // Each CRD is served five seconds after its creation. So there are always CRDs that are not served yet.
    const LATE: usize = 10;
    let cluster = cluster();
    cluster.signal(listed(Crds::new()));
    cluster.queued(SOON).await;
    for n in 0..120 {
        let thing = crd(&other_group(n), "Thing", &["v1"]);
        let name = format!("things.{}", other_group(n));
        cluster.signal(RefreshTrigger::CrdApplied(name, thing));
        cluster.served.lock().unwrap().others = n.saturating_sub(LATE);
        if n == 60 {
            cluster.signal(RefreshTrigger::CrdApplied(WIDGETS.into(), widget()));
        }
        if n == 62 {
            cluster.serve(true, Some("/openapi/v3/a?hash=1"));
        }
        let queued = cluster.queued(Duration::from_millis(500)).await;
        let crds = &cluster.context.snapshot().crds;
        match n {
            61 => assert!(!crds.contains_key(WIDGETS), "not served yet"),
            // The snapshot contains the CRD within a second after the API server serves it.
            64 => {
                assert!(crds.contains_key(WIDGETS));
                let mapper = &cluster.context.snapshot().mapper;
                let kind = crate::schema::Gvk::new("example.com", "v1", "Widget");
                assert!(mapper.resources_of_kind(&kind).next().is_some());
            }
            _ => assert!(queued.is_empty() || n == 63 || n == 62, "{n} {queued:?}"),
        }
        // The snapshot contains no CRDs that are not served yet.
        assert!(
            crds.len() <= n.saturating_sub(LATE) + 1,
            "{n} {}",
            crds.len()
        );
        assert!(n < 20 || crds.len() + LATE + 4 >= n, "{n} {}", crds.len());
    }
}

#[tokio::test(start_paused = true)]
async fn failed_polls_do_not_count_toward_time_limit() {
    let cluster = cluster();
    cluster.signal(listed(Crds::new()));
    cluster.queued(SOON).await;
    let mut params = policy("with-params", "other.example.com");
    params["spec"]["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
    let params = serde_json::from_value(params).unwrap();
    cluster.context.store.put(params, EventSource::Watched);
    cluster.signal(RefreshTrigger::CrdApplied(WIDGETS.into(), widget()));
    assert_eq!(cluster.queued(SOON).await, Vec::<String>::new());
    cluster.served.lock().unwrap().is_down = true;
    assert_eq!(
        cluster.queued(Duration::from_secs(300)).await,
        Vec::<String>::new()
    );
    // The API server recovers. Some seconds later, it lists the resource.
    cluster.serve(false, None);
    let n_asked = paths(&cluster.log).len();
    while paths(&cluster.log).len() == n_asked {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        cluster.queued(Duration::from_secs(7)).await,
        Vec::<String>::new()
    );
    cluster.serve(true, Some("/openapi/v3/a?hash=1"));
    assert_eq!(cluster.queued(SOON).await, ["on-widgets", "with-params"]);
}
