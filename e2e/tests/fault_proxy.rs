//! Tests of the fault proxy. While quiet, it changes nothing. It injects each fault as specified. The same seed
//! produces the same faults.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::control_plane::ControlPlane;
use e2e::controller::{control_plane, grant_params};
use e2e::fault_proxy::{BlackHoles, Fault, FaultProxy, Schedule};
use http::Request;
use http_body_util::BodyExt as _;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Client, Error};
use serde_json::{Value, json};

/// A timeout that is longer than any operation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const PATH: &str = "/api/v1/namespaces/default/configmaps";

struct Setup {
    // The fields are dropped in this order: the proxy before the control plane.
    proxy: FaultProxy,
    through: Client,
    direct: Client,
    control_plane: ControlPlane,
}

async fn setup() -> Setup {
    let control_plane = control_plane().await.unwrap();
    grant_params(&control_plane).unwrap();
    let proxy = FaultProxy::start(&control_plane).await.unwrap();
    let kubeconfig = Kubeconfig::read_from(proxy.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.proxy_url = None;
    config.default_retry = false;
    let direct = control_plane.client().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(direct.clone());
    let map = json!({"metadata": {"name": "a"}, "data": {"key": "value"}});
    maps.create(
        &PostParams::default(),
        &serde_json::from_value(map).unwrap(),
    )
    .await
    .unwrap();
    Setup {
        proxy,
        through: Client::try_from(config).unwrap(),
        direct,
        control_plane,
    }
}

impl Setup {
    /// Injects `fault` into every request.
    fn always(&self, fault: Fault) {
        let holes = BlackHoles::EndAfter(Duration::from_millis(100));
        let schedule = Schedule::new(1, &[fault])
            .permille(1000, 1000)
            .black_holes(holes);
        self.proxy.disturb(schedule);
    }

    /// Injects `fault` into every watch event, but not into the start of a watch.
    fn always_at_events(&self, fault: Fault) {
        let holes = BlackHoles::EndAfter(Duration::from_millis(100));
        let schedule = Schedule::new(1, &[fault])
            .permille(0, 1000)
            .black_holes(holes);
        self.proxy.disturb(schedule);
    }

    async fn text(&self, client: &Client) -> Result<String, Error> {
        let request = Request::get(PATH).body(Vec::new()).unwrap();
        client.request_text(request).await
    }

    fn n_injected(&self, fault: Fault) -> u64 {
        self.proxy
            .injected()
            .get(&fault)
            .copied()
            .unwrap_or_default()
    }

    /// Returns the lines of a watch of config maps, until the watch ends or is silent for `silence`. The boolean is
    /// true if the connection was cut.
    async fn watch(&self, client: &Client, silence: Duration) -> (Vec<String>, bool) {
        let request = Request::get(format!("{PATH}?watch=1&timeoutSeconds=20"))
            .body(Body::empty())
            .unwrap();
        let Ok(answer) = client.send(request).await else {
            return (Vec::new(), true);
        };
        let (mut text, mut body) = (String::new(), answer.into_body());
        let is_cut = loop {
            match tokio::time::timeout(silence, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
                }
                Ok(Some(Err(_))) => break true,
                Ok(None) | Err(_) => break false,
            }
        };
        (text.lines().map(str::to_owned).collect(), is_cut)
    }

    /// Returns the first bytes of a watch of config maps.
    async fn first_line(&self, client: &Client) -> Vec<u8> {
        let request = Request::get(format!("{PATH}?watch=1"))
            .body(Body::empty())
            .unwrap();
        let mut body = client.send(request).await.unwrap().into_body();
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
        frame
            .unwrap()
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap()
            .to_vec()
    }

    /// Writes `value` into the config map.
    async fn write(&self, client: &Client, value: &str) -> Result<ConfigMap, Error> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let patch = Patch::Merge(json!({"data": {"key": value}}));
        maps.patch("a", &PatchParams::default(), &patch).await
    }
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        _ => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_without_faults_changes_nothing() {
    let setup = setup().await;
    assert_eq!(
        setup.text(&setup.through).await.unwrap(),
        setup.text(&setup.direct).await.unwrap()
    );
    let second = Duration::from_secs(1);
    assert_eq!(
        setup.watch(&setup.through, second).await,
        setup.watch(&setup.direct, second).await
    );
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(setup.through.clone());
    assert_eq!(
        policies.list(&ListParams::default()).await.unwrap().items,
        []
    );
    // The proxy uses the permissions of the controller.
    let refused = setup.write(&setup.through, "other").await.unwrap_err();
    assert_eq!(code(&refused), 403);
    assert_eq!(setup.proxy.injected(), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_returns_errors_of_faults() {
    let setup = setup().await;
    for (fault, expect) in [
        (Fault::Unauthorized, 401),
        (Fault::Forbidden, 403),
        (Fault::TooManyRequests, 429),
        (Fault::InternalError, 500),
        (Fault::Unavailable, 503),
    ] {
        setup.always(fault);
        let error = setup.text(&setup.through).await.unwrap_err();
        assert_eq!(code(&error), expect, "{error}");
        assert_eq!(setup.n_injected(fault), 1);
    }
    setup.always(Fault::Conflict);
    let error = setup.write(&setup.through, "b").await.unwrap_err();
    assert_eq!(code(&error), 409);
    setup.text(&setup.through).await.unwrap();

    setup.always(Fault::Gone);
    setup.text(&setup.through).await.unwrap();
    let (lines, _) = setup.watch(&setup.through, PATIENCE).await;
    let status: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!((&status["code"], lines.len()), (&json!(410), 1));
    setup.always_at_events(Fault::Gone);
    let (lines, is_cut) = setup.watch(&setup.through, PATIENCE).await;
    let event: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert!(!is_cut && lines.len() == 1, "{lines:?}");

    setup.always(Fault::Delay);
    setup.text(&setup.through).await.unwrap();
    let (lines, _) = setup.watch(&setup.through, Duration::from_secs(5)).await;
    assert!(!lines.is_empty());
    assert!(setup.n_injected(Fault::Delay) >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_faults_break_or_delay_responses() {
    let setup = setup().await;
    setup.always(Fault::Cut);
    let error = setup.text(&setup.through).await.unwrap_err();
    assert_eq!(code(&error), 0, "{error}");
    setup.always_at_events(Fault::Cut);
    assert_eq!(
        setup.watch(&setup.through, PATIENCE).await,
        (Vec::new(), true)
    );

    setup.always(Fault::HalfLine);
    assert!(setup.text(&setup.through).await.is_err());
    setup.always_at_events(Fault::HalfLine);
    let (lines, is_cut) = setup.watch(&setup.through, PATIENCE).await;
    assert!(is_cut && lines.len() == 1, "{lines:?}");
    assert!(serde_json::from_str::<Value>(&lines[0]).is_err());

    setup.always(Fault::BlackHole);
    let asked = setup.text(&setup.through);
    let mut asked = std::pin::pin!(asked);
    let silent = tokio::time::timeout(Duration::from_secs(1), &mut asked).await;
    assert!(silent.is_err(), "{silent:?}");
    setup.proxy.quiet();
    let ended = tokio::time::timeout(PATIENCE, asked).await;
    assert!(ended.unwrap().is_err());
    setup.always_at_events(Fault::BlackHole);
    let (lines, is_cut) = setup.watch(&setup.through, Duration::from_secs(1)).await;
    assert_eq!((lines, is_cut), (Vec::new(), false));

    let stays = Schedule::new(1, &[Fault::BlackHole])
        .permille(1000, 0)
        .black_holes(BlackHoles::Stay);
    setup.proxy.disturb(stays);
    let asked = setup.text(&setup.through);
    let mut asked = std::pin::pin!(asked);
    let silent = tokio::time::timeout(Duration::from_secs(1), &mut asked).await;
    assert!(silent.is_err(), "{silent:?}");
    setup.proxy.quiet();
    let silent = tokio::time::timeout(Duration::from_secs(2), asked).await;
    assert!(silent.is_err(), "{silent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_objects_of_proxy_are_reported() {
    let setup = setup().await;
    setup.always(Fault::Unreadable);
    let through = setup.text(&setup.through).await.unwrap();
    assert_ne!(through, setup.text(&setup.direct).await.unwrap());
    setup.always_at_events(Fault::Unreadable);
    let (lines, _) = setup.watch(&setup.through, Duration::from_secs(1)).await;
    let (direct, _) = setup.watch(&setup.direct, Duration::from_secs(1)).await;
    assert_ne!(lines, direct);
    let is_corrupted = |(line, direct): (&String, &String)| {
        serde_json::from_str::<Value>(line).unwrap()
            != serde_json::from_str::<Value>(direct).unwrap()
    };
    assert!(lines.iter().zip(&direct).all(is_corrupted));
    let touched = setup.proxy.take_unreadable();
    let own = format!("{PATH}/a");
    assert!(
        touched.iter().any(|touched| touched.path == own),
        "{touched:?}"
    );
    assert_eq!(setup.proxy.take_unreadable(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn reorder_fault_delays_event_until_next_write() {
    let setup = setup().await;
    // Without a write, the event arrives after the timeout.
    setup.always_at_events(Fault::Reorder);
    let started = Instant::now();
    assert!(!setup.first_line(&setup.through).await.is_empty());
    let unanswered = started.elapsed();
    assert!(unanswered >= Duration::from_secs(1), "{unanswered:?}");

    let started = Instant::now();
    let watching = async {
        assert!(!setup.first_line(&setup.through).await.is_empty());
        started.elapsed()
    };
    let writing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        // A rejection is also a response to a write, so it releases the event.
        let refused = setup.write(&setup.through, "b").await.unwrap_err();
        assert_eq!(code(&refused), 403);
        started.elapsed()
    };
    let (seen, answered) = tokio::join!(watching, writing);
    assert!(seen > answered, "{seen:?} {answered:?}");
    assert_eq!(setup.n_injected(Fault::Reorder), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_seed_gives_same_faults() {
    let setup = setup().await;
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        // Faults depend on earlier requests, so each run needs a new proxy.
        let proxy = FaultProxy::start(&setup.control_plane).await.unwrap();
        let kubeconfig = Kubeconfig::read_from(proxy.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .unwrap();
        config.proxy_url = None;
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let faults = [Fault::Forbidden, Fault::Unavailable, Fault::Cut];
        proxy.disturb(Schedule::new(seed, &faults).permille(500, 0));
        let mut codes = Vec::new();
        for _ in 0..40 {
            codes.push(setup.text(&client).await.map_or_else(|e| code(&e), |_| 200));
        }
        runs.push((codes, proxy.injected()));
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0].0, runs[2].0);
    assert!(runs[0].0.contains(&200) && runs[0].1.len() == 3, "{runs:?}");
}
