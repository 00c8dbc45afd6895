//! The health and metrics server: `/livez`, `/readyz` and `/metrics` over HTTP/1.1.
//!
//! It knows nothing of policies: what is ready is told by a closure, what is measured by
//! [`Metrics`]. Connections are few and short, so that a stranger on the port cannot exhaust the
//! process.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::telemetry::Metrics;
use crate::telemetry::metrics::CONTENT_TYPE;

/// How many connections are served at once; more wait.
const MAX_CONNECTIONS: usize = 32;

/// How long a client may take to send the head of a request, and how long an idle connection lives.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

/// One thing that must hold for the process to be ready, or to be left alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, as it is listed.
    pub name: Cow<'static, str>,
    /// Why it does not hold, or nothing where it does.
    pub problem: Option<String>,
}

/// What the server answers from.
#[derive(Clone)]
pub struct Health {
    /// What must hold to be ready, at the time of the call.
    pub checks: Arc<dyn Fn() -> Vec<Check> + Send + Sync>,
    /// What must hold for the process not to be started again, at the time of the call.
    pub alive: Arc<dyn Fn() -> Vec<Check> + Send + Sync>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

/// Opens the port.
///
/// # Errors
/// A sentence that says what to do, where the address cannot be listened on.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}; choose another address with --listen")
    })
}

/// Serves until the future is dropped.
pub async fn serve(listener: TcpListener, health: Health) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, for one: accepting again at once would spin.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let health = health.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let service = service_fn(|request| {
                let response = respond(&request, &health);
                async { Ok::<_, Infallible>(response) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "connection to the health server ended");
            }
        });
    }
}

fn respond(request: &Request<Incoming>, health: &Health) -> Response<String> {
    let verbose = request.uri().query().is_some_and(|query| {
        query
            .split('&')
            .any(|part| part.split('=').next() == Some("verbose"))
    });
    answer(request.method(), request.uri().path(), verbose, health)
}

/// The answer to a request.
fn answer(method: &Method, path: &str, verbose: bool, health: &Health) -> Response<String> {
    if method != Method::GET && method != Method::HEAD {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed\n".to_owned(),
        );
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
        "/metrics" => match health.metrics.encode() {
            Ok(body) => with_type(StatusCode::OK, CONTENT_TYPE, body),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /livez, /readyz and /metrics\n".to_owned(),
        ),
    }
}

/// Whether all checks pass; which do not is always told, the others where asked for.
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

/// The list of checks, in the form that Kubernetes' own components give.
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
