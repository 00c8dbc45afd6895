//! A proxy between a controller and an API server that does to requests what networks and API servers do on bad
//! days, and worse.
//!
//! It speaks HTTP/1.1 without TLS to the controller, and TLS to the API server as the controller's user. Of the
//! answers to watches it knows single lines, of all others nothing but their bytes. What it does to a request or
//! to an event follows from a seed, from what is asked for, and from how often that was asked for before: so the
//! same requests meet the same faults in each run.
//!
//! - [`Fault`] is what it can do; [`Schedule`] how often it does which; [`FaultProxy::quiet`] stops all of it.
//! - [`FaultProxy::injected`] counts what was done, so that a test can tell that it tests anything.

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
pub use self::unreadable::Touched;
use crate::ControlPlane;
use crate::controller::SERVICE_ACCOUNT;
use parity::random::Random;

/// How long a half that was sent may be on its way before the connection is cut.
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
    /// The schedule in force; `None` while all is quiet.
    schedule: signal::Sender<Option<Schedule>>,
    /// How many writes have been answered.
    answered_writes: signal::Sender<u64>,
}

/// The client of the API server, which says nothing of itself to be shown.
struct Upstream(Client);

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upstream")
    }
}

#[derive(Debug, Default)]
struct State {
    /// How often each thing was asked for, or happened.
    occurrences: BTreeMap<String, u64>,
    injected: BTreeMap<Fault, u64>,
    touched: Vec<Touched>,
    withheld: Vec<String>,
}

impl FaultProxy {
    /// Starts a proxy before the API server, which is quiet until [`FaultProxy::disturb`].
    ///
    /// # Errors
    /// Returns an error if the control plane does not know the controller's user, or there is no free port.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let credentials = Kubeconfig::read_from(control_plane.kubeconfig_for(SERVICE_ACCOUNT)?)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(credentials, &options).await?;
        // A proxy of the environment cannot reach the loopback interface, and nothing is to be hidden.
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

    /// Returns the kubeconfig file of the way through this proxy.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Does from now on what `schedule` says.
    pub fn disturb(&self, schedule: Schedule) {
        self.inner.schedule.send_replace(Some(schedule));
    }

    /// Does nothing from now on; what was begun, such as a delay, is ended.
    pub fn quiet(&self) {
        self.inner.schedule.send_replace(None);
    }

    /// Answers from now on that nothing is served below `path`, quiet or not.
    pub fn withhold(&self, path: &str) {
        self.inner.state().withheld.push(path.to_owned());
    }

    /// How often each fault was injected.
    #[must_use]
    pub fn injected(&self) -> BTreeMap<Fault, u64> {
        self.inner.state().injected.clone()
    }

    /// Returns the objects that were made unreadable since this was last asked: as long as nothing happens to them, a
    /// client cannot know that they can be read again.
    #[must_use]
    pub fn take_unreadable(&self) -> Vec<Touched> {
        std::mem::take(&mut self.inner.state().touched)
    }
}

/// Answers connections until it is aborted.
async fn serve(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Too many open files: others may be closed meanwhile.
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
            // An error is a connection that was cut, by us or by the client.
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            drop(connection.await);
        });
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides on the fault for the next occurrence of `key`, one of those that `applies` accepts, with
    /// the random numbers of that occurrence; counts it.
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
        let mut random = Random::of(schedule.seed, key, *n);
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

    /// Waits until a black hole lets go of a connection, if it ever does.
    async fn black_hole(&self) {
        let holes = match self.schedule.borrow().as_ref() {
            Some(schedule) => schedule.black_holes,
            None => return,
        };
        let mut schedule = self.schedule.subscribe();
        // The sender lives as long as this.
        drop(schedule.wait_for(Option::is_none).await);
        match holes {
            BlackHoles::EndAfter(time) => tokio::time::sleep(time).await,
            BlackHoles::Stay => std::future::pending().await,
        }
    }
}

fn write_kubeconfig(path: &Path, port: u16) -> Result<()> {
    // JSON is YAML too. The proxy adds the credentials.
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
