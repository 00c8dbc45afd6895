//! A proxy between a controller and an API server that injects faults of networks and API servers.
//!
//! The controller connects over HTTP/1.1 without TLS. The proxy connects to the API server over TLS, as the
//! controller's user. It parses the lines of watch responses. Other responses are forwarded as bytes, unless a fault
//! changes them.
//!
//! The fault of a request or event depends on three values: the seed, the requested path, and the number of earlier
//! occurrences of this path. Therefore each run injects the same faults into the same requests.
//!
//! - [`Fault`] lists the faults, and [`Schedule`] their frequencies. [`FaultProxy::quiet`] stops them.
//! - [`FaultProxy::injected`] returns the number of injections. A test can thus check that faults occurred.

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

/// The pause after half a line. The half must arrive before the connection is cut.
const HALF_LINE_DELAY: Duration = Duration::from_millis(50);

/// A running proxy. Dropping it cuts all connections.
#[derive(Debug)]
pub struct FaultProxy {
    inner: Arc<Inner>,
    kubeconfig: PathBuf,
    // Dropping the set aborts the task of the server, including all connections.
    _server: JoinSet<()>,
}

#[derive(Debug)]
struct Inner {
    upstream: Upstream,
    state: Mutex<State>,
    /// The current schedule. `None` while the proxy is quiet.
    schedule: signal::Sender<Option<Schedule>>,
    /// The number of writes with a response.
    answered_writes: signal::Sender<u64>,
}

/// The client of the API server. The `Debug` output omits the client.
struct Upstream(Client);

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upstream")
    }
}

#[derive(Debug, Default)]
struct State {
    /// The number of earlier requests or events for each key. The key and the number determine the fault.
    occurrences: BTreeMap<String, u64>,
    injected: BTreeMap<Fault, u64>,
    corrupted: Vec<CorruptedObject>,
    withheld: Vec<String>,
}

impl FaultProxy {
    /// Starts a proxy for the API server. It is quiet until [`FaultProxy::disturb`] is called.
    ///
    /// # Errors
    /// Returns an error if the control plane lacks the controller's user or there is no free port.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let credentials = Kubeconfig::read_from(control_plane.kubeconfig_for(SERVICE_ACCOUNT)?)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(credentials, &options).await?;
        // A proxy from the environment cannot connect to the loopback interface. Retries of the client would hide
        // faults.
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

    /// Returns a kubeconfig file for connections through this proxy.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts injecting faults.
    pub fn disturb(&self, schedule: Schedule) {
        self.inner.schedule.send_replace(Some(schedule));
    }

    /// Stops injecting faults. Ends current faults, such as delays.
    pub fn quiet(&self) {
        self.inner.schedule.send_replace(None);
    }

    /// Responds with 404 to all requests for paths that begin with `path`, even while the proxy is quiet.
    pub fn withhold(&self, path: &str) {
        self.inner.state().withheld.push(path.to_owned());
    }

    /// Returns the number of injections per fault.
    #[must_use]
    pub fn injected(&self) -> BTreeMap<Fault, u64> {
        self.inner.state().injected.clone()
    }

    /// Returns the objects that were corrupted since the last call. A watching client receives the correct object only
    /// after the next change of the object.
    #[must_use]
    pub fn take_unreadable(&self) -> Vec<CorruptedObject> {
        std::mem::take(&mut self.inner.state().corrupted)
    }
}

async fn serve(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // The process has too many open files. The pause gives other connections time to close.
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
            // An error means that the client or a fault cut the connection.
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            drop(connection.await);
        });
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses the fault for the next occurrence of `key`, if any, and counts the occurrence. `applies` returns true
    /// for possible faults. The seed, the key and the number of the occurrence determine the random numbers.
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

    /// Waits until the connections in black holes must be cut. If the schedule lets them stay open, waits forever.
    async fn black_hole(&self) {
        let holes = match self.schedule.borrow().as_ref() {
            Some(schedule) => schedule.black_holes,
            None => return,
        };
        let mut schedule = self.schedule.subscribe();
        // The wait cannot fail, since `self` owns the sender.
        drop(schedule.wait_for(Option::is_none).await);
        match holes {
            BlackHoles::EndAfter(time) => tokio::time::sleep(time).await,
            BlackHoles::Stay => std::future::pending().await,
        }
    }
}

fn write_kubeconfig(path: &Path, port: u16) -> Result<()> {
    // Kubeconfig files are YAML, which includes JSON. The file has no credentials, because the proxy adds them.
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
