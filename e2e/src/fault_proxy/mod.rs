//! A proxy between a controller and an API server that injects faults of networks and API servers.
//!
//! It speaks HTTP/1.1 without TLS to the controller, and TLS to the API server as the controller's user. It parses
//! lines of watch responses and treats other responses as bytes. The fault of a request or event depends on the seed,
//! the requested path, and the number of earlier occurrences, so the same requests get the same faults in each run.
//!
//! - [`Fault`] lists the faults; [`Schedule`] defines their frequency; [`FaultProxy::quiet`] stops them.
//! - [`FaultProxy::injected`] counts the injected faults, so that a test can check that it tests something.

mod answer;
mod fault;
mod schedule;
mod unreadable;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

pub use self::fault::{Fault, parse_faults};
pub use self::schedule::{BlackHoles, Schedule};
pub use self::unreadable::CorruptedObject;
use crate::ControlPlane;
use crate::controller::SERVICE_ACCOUNT;
use parity::random::Random;

/// How long a sent half may take to arrive before the connection is cut.
const HALF_ON_ITS_WAY: Duration = Duration::from_millis(50);

/// A running proxy; it ends when dropped, and cuts all connections.
#[derive(Debug)]
pub struct FaultProxy {
    inner: Arc<Inner>,
    kubeconfig: PathBuf,
    // Aborts the task, and with it all of its connections, when dropped.
    _server: JoinSet<()>,
}

#[derive(Debug)]
struct Inner {
    upstream: Upstream,
    state: Mutex<State>,
    /// The current schedule; `None` while the proxy is quiet.
    schedule: signal::Sender<Option<Schedule>>,
    /// The number of writes with a response.
    answered_writes: signal::Sender<u64>,
}

/// The client of the API server, without `Debug` output.
struct Upstream(Client);

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upstream")
    }
}

#[derive(Debug, Default)]
struct State {
    /// The number of occurrences per key.
    occurrences: BTreeMap<String, u64>,
    injected: BTreeMap<Fault, u64>,
    corrupted: Vec<CorruptedObject>,
    withheld: Vec<String>,
}

impl FaultProxy {
    /// Starts a proxy for the API server, which is quiet until [`FaultProxy::disturb`].
    ///
    /// # Errors
    /// Returns an error if the control plane lacks the controller's user or there is no free port.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let credentials = Kubeconfig::read_from(control_plane.kubeconfig_for(SERVICE_ACCOUNT)?)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(credentials, &options).await?;
        // A proxy of the environment cannot reach the loopback interface, and faults must not be hidden.
        config.proxy_url = None;
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = None;
        config.write_timeout = None;
        let inner = Arc::new(Inner {
            upstream: Upstream(Client::try_from(config)?),
            state: Mutex::default(),
            schedule: signal::Sender::new(None),
            answered_writes: signal::Sender::new(0),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let kubeconfig = control_plane
            .directory()
            .join(format!("proxy-{port}.kubeconfig"));
        write_kubeconfig(&kubeconfig, port)?;
        let mut server = JoinSet::new();
        server.spawn(serve(listener, Arc::clone(&inner)));
        Ok(Self {
            inner,
            kubeconfig,
            _server: server,
        })
    }

    /// Returns the kubeconfig file for connections through this proxy.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Injects faults from now on according to `schedule`.
    pub fn disturb(&self, schedule: Schedule) {
        self.inner.schedule.send_replace(Some(schedule));
    }

    /// Stops injecting faults, and ends those in progress, such as delays.
    pub fn quiet(&self) {
        self.inner.schedule.send_replace(None);
    }

    /// Responds from now on that nothing is served below `path`, even while quiet.
    pub fn withhold(&self, path: &str) {
        self.inner.state().withheld.push(path.to_owned());
    }

    /// Returns the number of injections per fault.
    #[must_use]
    pub fn injected(&self) -> BTreeMap<Fault, u64> {
        self.inner.state().injected.clone()
    }

    /// Returns the objects that were made unreadable since the last call: until they change, a client cannot know that
    /// they are readable again.
    #[must_use]
    pub fn take_unreadable(&self) -> Vec<CorruptedObject> {
        std::mem::take(&mut self.inner.state().corrupted)
    }
}

/// Serves connections until it is aborted.
async fn serve(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Too many open files: other connections may be closed meanwhile.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let inner = Arc::clone(&inner);
        connections.spawn(async move {
            let service = service_fn(|request| answer::answer(Arc::clone(&inner), request));
            // An error means that we or the client cut the connection.
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            drop(connection.await);
        });
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses the fault for the next occurrence of `key`, among those that `applies` accepts, with the random numbers
    /// of that occurrence, and counts it.
    fn decide(
        &self,
        key: &str,
        permille: impl Fn(&Schedule) -> u64,
        applies: impl Fn(Fault) -> bool,
    ) -> Option<(Fault, Random)> {
        let schedule = self.schedule.borrow();
        let schedule = schedule.as_ref()?;
        let mut state = self.state();
        let n = state.occurrences.entry(key.to_owned()).or_default();
        let mut random = Random::for_event(schedule.seed, key, *n);
        *n += 1;
        if !random.permille(permille(schedule)) {
            return None;
        }
        let mut choices = schedule.faults.clone();
        choices.retain(|fault| applies(*fault));
        let fault = *random.choose(&choices)?;
        *state.injected.entry(fault).or_default() += 1;
        Some((fault, random))
    }

    /// Waits until a black hole releases a connection, if it ever does.
    async fn black_hole(&self) {
        let holes = match self.schedule.borrow().as_ref() {
            Some(schedule) => schedule.black_holes,
            None => return,
        };
        let mut schedule = self.schedule.subscribe();
        // The sender lives as long as `self`.
        drop(schedule.wait_for(Option::is_none).await);
        match holes {
            BlackHoles::EndAfter(time) => tokio::time::sleep(time).await,
            BlackHoles::Stay => std::future::pending().await,
        }
    }
}

fn write_kubeconfig(path: &Path, port: u16) -> Result<()> {
    // JSON is a subset of YAML. The proxy adds the credentials.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "proxy", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "current-context": "proxy",
    });
    std::fs::write(path, serde_json::to_string_pretty(&config)?)
        .with_context(|| path.display().to_string())
}
