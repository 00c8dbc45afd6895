//! The health and metrics server, with the endpoints `/livez`, `/readyz` and `/metrics` over HTTP/1.1.
//!
//! The server calls closures for the results of health checks, and gets the metrics from [`Metrics`].
//!
//! The number and duration of connections are limited, so that an untrusted client cannot exhaust the process. Such a
//! client also cannot block the kubelet. If the maximum number of connections is open, a new connection replaces the
//! oldest idle one. The large responses of `/metrics` have a separate limit.

pub mod http_probe;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use crate::telemetry::Metrics;
use crate::telemetry::metrics::CONTENT_TYPE;

/// The maximum number of open connections per port.
const MAX_CONNECTIONS: usize = 32;

/// The maximum number of concurrent responses of `/metrics`, which may be large.
const MAX_SCRAPES: usize = 4;

const PIECE_BYTES: usize = 64 * 1024;

/// The timeout for receiving request headers. Also closes idle connections.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which a connection accepts requests, and the additional time for sending its last response.
const LIFE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(30));

/// The endpoints that a port serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoints {
    /// `/livez`, `/readyz` and `/metrics`.
    All,
    /// `/livez` and `/readyz`.
    Health,
    /// `/metrics`.
    Metrics,
}

impl Endpoints {
    fn include(self, path: &str) -> bool {
        match path {
            "/livez" | "/healthz" | "/readyz" => self != Self::Metrics,
            "/metrics" => self != Self::Health,
            _ => false,
        }
    }

    const fn list(self) -> &'static str {
        match self {
            Self::All => "available endpoints: /livez, /readyz, /metrics\n",
            Self::Health => "available endpoints: /livez, /readyz\n",
            Self::Metrics => "available endpoints: /metrics\n",
        }
    }
}

/// The result of one readiness or liveness check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name that `/readyz` or `/livez` shows for the check.
    pub name: Cow<'static, str>,
    /// The reason why the check fails. `None` if it passes.
    pub problem: Option<String>,
}

/// Functions that return the content of the server's responses.
#[derive(Clone)]
pub struct Health {
    /// Performs the readiness checks.
    pub checks: Arc<dyn Fn() -> Vec<Check> + Send + Sync>,
    /// Performs the liveness checks. If one fails, the kubelet restarts the process.
    pub alive: Arc<dyn Fn() -> Vec<Check> + Send + Sync>,
    /// Updates the metrics that are measured at each scrape, before they are encoded.
    pub measure: Arc<dyn Fn() + Send + Sync>,
    /// The metrics that `/metrics` returns.
    pub metrics: Arc<Metrics>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

/// Listens on `address`. The error message contains `flag`, the command-line flag that sets the address.
///
/// `[::]` accepts IPv6 and IPv4 connections. On a machine without IPv6, `0.0.0.0` replaces it.
///
/// # Errors
/// Returns an error message with a hint if the address cannot be bound.
pub async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, String> {
    bind_with(address, flag, TcpListener::bind).await
}

/// Calls `listen` with `address`, and with `0.0.0.0` if `address` is `[::]` and the machine has no IPv6.
async fn bind_with<Listener, Binding: Future<Output = io::Result<Listener>>>(
    address: SocketAddr,
    flag: &str,
    listen: impl Fn(SocketAddr) -> Binding,
) -> Result<Listener, String> {
    let is_any = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    // These errors are about the port, so they also occur with IPv4.
    let is_about_port = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
        )
    };
    let mut bound = listen(address).await;
    if is_any && bound.as_ref().is_err_and(|error| !is_about_port(error)) {
        bound = listen((Ipv4Addr::UNSPECIFIED, address.port()).into()).await;
    }
    bound.map_err(|error| {
        format!("cannot listen on {address}: {error}; choose another address with {flag}")
    })
}

/// Serves requests until the returned future is dropped.
pub async fn serve(listener: TcpListener, health: Health, endpoints: Endpoints) {
    let scrapes = Arc::new(Semaphore::new(MAX_SCRAPES));
    let mut connections = Connections::default();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The process may be out of file descriptors. Accepting again immediately would be a busy loop.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let answering = connections.make_room();
        let (health, scrapes) = (health.clone(), Arc::clone(&scrapes));
        let handle = tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = respond(&request, &health, endpoints, &scrapes);
                let answering = Arc::clone(&answering);
                let response = response.map(|answer| answer.with_connection(answering));
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let mut served = tokio::time::timeout(LIFE.0, connection.as_mut()).await;
            if served.is_err() {
                connection.as_mut().graceful_shutdown();
                served = tokio::time::timeout(LIFE.1, connection).await;
            }
            if let Ok(Err(error)) = served {
                tracing::debug!(%error, "connection to the health server ended");
            }
        });
        connections.add(handle.abort_handle());
    }
}

/// The open connections, from the oldest to the newest.
#[derive(Default)]
struct Connections {
    open: VecDeque<Connection>,
    next: Weak<()>,
}

struct Connection {
    task: AbortHandle,
    /// The connection and each pending response own the value of this pointer. The connection is idle if the value has
    /// only one owner.
    answering: Weak<()>,
}

impl Connections {
    /// Closes a connection if the maximum number is open: the oldest idle connection, or else the oldest of all.
    fn make_room(&mut self) -> Arc<()> {
        self.open
            .retain(|connection| !connection.task.is_finished());
        if self.open.len() >= MAX_CONNECTIONS {
            let is_idle = |connection: &Connection| connection.answering.strong_count() <= 1;
            let idle = self.open.iter().position(is_idle).unwrap_or_default();
            if let Some(connection) = self.open.remove(idle) {
                connection.task.abort();
            }
        }
        let answering = Arc::new(());
        self.next = Arc::downgrade(&answering);
        answering
    }

    fn add(&mut self, task: AbortHandle) {
        let answering = std::mem::take(&mut self.next);
        self.open.push_back(Connection { task, answering });
    }
}

/// The body of a response. The permits in the other fields are released when the body is sent. hyper counts a chunk as
/// sent when it takes the chunk, so the body is split into chunks.
#[derive(Debug, Default)]
struct Answer {
    text: Bytes,
    _scrape: Option<OwnedSemaphorePermit>,
    _connection: Option<Arc<()>>,
}

impl Answer {
    fn with_connection(self, connection: Arc<()>) -> Self {
        Self {
            _connection: Some(connection),
            ..self
        }
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self {
            text: Bytes::from(text),
            ..Self::default()
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.text.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.text.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.text.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.text.len()).unwrap_or(u64::MAX))
    }
}

fn respond(
    request: &Request<Incoming>,
    health: &Health,
    endpoints: Endpoints,
    scrapes: &Arc<Semaphore>,
) -> Response<Answer> {
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_verbose = request.uri().query().is_some_and(|query| {
        query
            .split('&')
            .any(|part| part.split('=').next() == Some("verbose"))
    });
    let path = request.uri().path();
    if path != "/metrics" || !is_get || !endpoints.include(path) {
        return answer(request.method(), path, is_verbose, health, endpoints).map(Answer::from);
    }
    let Ok(scrape) = Arc::clone(scrapes).try_acquire_owned() else {
        let busy = "too many concurrent requests for /metrics\n".to_owned();
        return text(StatusCode::SERVICE_UNAVAILABLE, busy).map(Answer::from);
    };
    answer(request.method(), path, is_verbose, health, endpoints).map(|text| Answer {
        _scrape: Some(scrape),
        ..Answer::from(text)
    })
}

fn answer(
    method: &Method,
    path: &str,
    verbose: bool,
    health: &Health,
    endpoints: Endpoints,
) -> Response<String> {
    if method != Method::GET && method != Method::HEAD {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed\n".to_owned(),
        );
    }
    if !endpoints.include(path) {
        return text(StatusCode::NOT_FOUND, endpoints.list().to_owned());
    }
    match path {
        "/livez" | "/healthz" => {
            let mut checks = vec![Check {
                name: "ping".into(),
                problem: None,
            }];
            checks.extend((health.alive)());
            verdict(&checks, "livez", verbose)
        }
        "/readyz" => verdict(&(health.checks)(), "readyz", verbose),
        "/metrics" => {
            (health.measure)();
            match health.metrics.encode() {
                Ok(body) => with_type(StatusCode::OK, CONTENT_TYPE, body),
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        }
        _ => text(StatusCode::NOT_FOUND, endpoints.list().to_owned()),
    }
}

/// Returns the response with the results of `checks`. Passed checks are listed if `verbose` is true or a check failed.
fn verdict(checks: &[Check], endpoint: &str, verbose: bool) -> Response<String> {
    if checks.iter().any(|check| check.problem.is_some()) {
        return text(StatusCode::SERVICE_UNAVAILABLE, render(checks, endpoint));
    }
    let body = if verbose {
        render(checks, endpoint)
    } else {
        "ok".to_owned()
    };
    text(StatusCode::OK, body)
}

/// Formats the checks in the format of the health endpoints of Kubernetes.
fn render(checks: &[Check], endpoint: &str) -> String {
    let lines = checks.iter().map(|check| match &check.problem {
        None => format!("[+]{} ok\n", check.name),
        Some(problem) => format!("[-]{} failed: {problem}\n", check.name),
    });
    let failed = checks.iter().any(|check| check.problem.is_some());
    let verdict = if failed { "failed" } else { "passed" };
    lines
        .chain([format!("{endpoint} check {verdict}\n")])
        .collect()
}

fn text(status: StatusCode, body: String) -> Response<String> {
    with_type(status, "text/plain; charset=utf-8", body)
}

fn with_type(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(content_type),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}

#[cfg(test)]
mod tests;
