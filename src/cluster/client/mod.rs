//! Builds the Kubernetes client for all requests to the API server.
//!
//! The HTTP stack equals the stack of kube, with these differences:
//!
//! - A request is never retried. The caller gets every failure.
//! - TCP keep-alive and a read timeout detect dead connections.
//! - The time from each request to its response headers is measured.
//! - Each new connection uses the current content of the certificate files (module `reload`).
//! - Requests to a proxy contain the API server's port even if it is the default port (module `proxy`).
//!
//! Source: kube-client `src/client/builder.rs`, `make_generic_builder`.

mod proxy;
mod reload;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use hyper::body::Bytes;
use hyper::rt::{Read, Write};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceBuilder};

use self::proxy::{Protocol, Proxy};
use self::reload::{FileStamps, ReloadingConnector};
use super::address::take_credentials;
use crate::telemetry::metrics::{Code, Verb};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout of plugin commands for establishing a connection, including TLS. Equals the default of kube.
const COMMAND_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum time without received data while a response is pending. The longest requests are watches, which
/// end after two minutes. All other requests have their own, shorter timeout.
const READ_TIMEOUT: Duration = Duration::from_secs(150);

/// TCP keep-alive: idle time before the first probe, interval of probes, and number of probes. A dead connection is
/// closed after one minute.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// The maximum time until sent data is acknowledged (`TCP_USER_TIMEOUT`).
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// A function that records the verb, the result and the duration (in seconds) of a request.
pub(crate) type Measure = Arc<dyn Fn(Verb, Code, f64) + Send + Sync>;

/// Creates the client of the controller.
pub(crate) fn client(
    config: Config,
    identity: &str,
    measure: Measure,
) -> Result<Client, kube::Error> {
    let limits = (CONNECT_TIMEOUT, Some(READ_TIMEOUT));
    build(config, user_agent(identity), limits, measure)
}

/// Creates the client of a plugin command. Each request of a command has its own timeout, so the client has no read
/// timeout.
pub(crate) fn command_client(config: Config) -> Result<Client, kube::Error> {
    let agent = concat!("kubectl-vap/", env!("CARGO_PKG_VERSION"));
    let limits = (COMMAND_CONNECT_TIMEOUT, None);
    let measure = Arc::new(|_, _, _| {});
    build(config, HeaderValue::from_static(agent), limits, measure)
}

fn build(
    mut config: Config,
    user_agent: HeaderValue,
    limits: (Duration, Option<Duration>),
    measure: Measure,
) -> Result<Client, kube::Error> {
    let credentials = take_credentials(&mut config.cluster_url);
    if let Some(credentials) = credentials.filter(|_| config.auth_info.username.is_none()) {
        config.auth_info.username = Some(credentials.user);
        config.auth_info.password = Some(credentials.password.into());
    }
    config.headers.push((header::USER_AGENT, user_agent));
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE.0));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE.1));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE.2));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(USER_TIMEOUT));
    let Some(proxy_url) = config.proxy_url.take() else {
        return over(&config, tcp, limits, measure);
    };
    let proxy = Proxy::new(&proxy_url, &mut config)?;
    match proxy.protocol {
        Protocol::Http => over(&config, proxy.tunnel(tcp), limits, measure),
        Protocol::Https => {
            let mut of_proxy = config.clone();
            // `tls_server_name` is the name in the API server's certificate. The certificate of the proxy has another
            // name.
            of_proxy.tls_server_name = None;
            let tls = of_proxy.rustls_https_connector_with_connector(tcp)?;
            over(&config, proxy.tunnel(tls), limits, measure)
        }
        Protocol::Socks => over(&config, proxy.socks(tcp), limits, measure),
    }
}

fn over<C>(
    config: &Config,
    connector: C,
    (connect_timeout, read_timeout): (Duration, Option<Duration>),
    measure: Measure,
) -> Result<Client, kube::Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Unpin + Send + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let files = FileStamps::from_config(config);
    let tls_config = config.clone();
    let tls = ReloadingConnector::new(files, move || {
        tls_config.rustls_https_connector_with_connector(connector.clone())
    })?;
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(Some(connect_timeout));
    connector.set_read_timeout(read_timeout);
    connector.set_reset_reader_on_write(true);
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    stack(config, http, measure)
}

/// Creates a client that sends requests through `http`. Adds layers for measurement, the server's address, credentials
/// and headers.
pub(crate) fn stack<S, B>(config: &Config, http: S, measure: Measure) -> Result<Client, kube::Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let stack = ServiceBuilder::new()
        .layer(Measured(measure))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(Into::into)
        .service(http);
    Ok(Client::new(stack, config.default_namespace.clone()))
}

/// Returns the user agent. It identifies the version and the instance of the controller in audit logs.
fn user_agent(identity: &str) -> HeaderValue {
    let version = env!("CARGO_PKG_VERSION");
    HeaderValue::from_str(&format!("vap-status-controller/{version} ({identity})"))
        .unwrap_or(HeaderValue::from_static("vap-status-controller"))
}

#[derive(Clone)]
struct Measured(Measure);

impl<S> Layer<S> for Measured {
    type Service = MeasuredService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        MeasuredService {
            inner,
            measure: Arc::clone(&self.0),
        }
    }
}

#[derive(Clone)]
struct MeasuredService<S> {
    inner: S,
    measure: Measure,
}

impl<S, B> Service<Request<Body>> for MeasuredService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut running = Running {
            verb: verb(&request),
            start: Instant::now(),
            code: Code::Error,
            measure: Arc::clone(&self.measure),
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Ok(answer) = &answer {
                running.answered(answer.status());
            }
            answer
        })
    }
}

/// A pending request. The guard measures the request when dropped, so canceled requests are also measured.
struct Running {
    verb: Verb,
    start: Instant,
    code: Code,
    measure: Measure,
}

impl Running {
    fn answered(&mut self, status: StatusCode) {
        self.code = Code::Status(status.as_u16());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        (self.measure)(self.verb, self.code, self.start.elapsed().as_secs_f64());
    }
}

/// Returns the verb of a request, as in RBAC rules and audit logs.
///
/// Source: `k8s.io/apiserver` `pkg/endpoints/request/requestinfo.go`, `RequestInfoFactory.NewRequestInfo`.
fn verb(request: &Request<Body>) -> Verb {
    let is_one = |segments: &[&str]| match segments {
        [_, _] => true,
        ["namespaces", _, rest @ ..] => rest.len() >= 2,
        [_, _, ..] => true,
        _ => false,
    };
    match request.method().as_str() {
        "GET" | "HEAD" => {}
        "POST" => return Verb::Create,
        "PUT" => return Verb::Update,
        "PATCH" => return Verb::Patch,
        "DELETE" => return Verb::Delete,
        _ => return Verb::Other,
    }
    let query = request.uri().query().unwrap_or_default();
    let is_watch = |part: &str| matches!(part, "watch=true" | "watch=1" | "watch");
    if query.split('&').any(is_watch) {
        return Verb::Watch;
    }
    let path = request.uri().path().trim_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    match segments.as_slice() {
        ["api", _, resource @ ..] | ["apis", _, _, resource @ ..] if !resource.is_empty() => {
            if is_one(resource) {
                Verb::Get
            } else {
                Verb::List
            }
        }
        _ => Verb::Get,
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod connection_tests;
