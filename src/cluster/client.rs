//! The client: one HTTP stack for all requests, with nothing hidden in it.
//!
//! It is the stack that kube builds, with three differences. It does not try again: what fails is seen
//! where it is asked for, counted and told. It finds out connections that died without a word, by TCP's
//! own means and by a limit on silence. And it measures each request, to the head of the answer.
//!
//! Source: kube-client `src/client/builder.rs`, `make_generic_builder`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Bytes;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceBuilder};

use crate::telemetry::metrics::{Code, Verb};

/// How long a connection may take to come about, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be silent while an answer is expected. A watch asks to be ended after two
/// minutes, so that longer silence is that of a dead connection; every other request has its own, shorter
/// limit.
const READ_TIMEOUT: Duration = Duration::from_secs(150);

/// How long a connection is idle before TCP asks whether the other side is there, and how often it asks
/// until it gives up: after a minute in all.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// How long what was sent may go without TCP's acknowledgement.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes the verb of a request, how it was answered, and the seconds that it took.
pub(crate) type Measure = Arc<dyn Fn(Verb, Code, f64) + Send + Sync>;

/// A client of the API server that `config` names.
///
/// # Errors
/// Where a certificate or a credential of `config` cannot be used.
pub(crate) fn client(
    mut config: Config,
    identity: &str,
    measure: Measure,
) -> Result<Client, kube::Error> {
    if let Some(proxy_url) = config.proxy_url.take() {
        return Err(kube::Error::ProxyProtocolDisabled {
            proxy_url: Box::new(proxy_url),
            protocol_feature: "kube/http-proxy",
        });
    }
    config
        .headers
        .push((header::USER_AGENT, user_agent(identity)));
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE.0));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE.1));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE.2));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(USER_TIMEOUT));
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_read_timeout(Some(READ_TIMEOUT));
    connector.set_reset_reader_on_write(true);
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    stack(&config, http, measure)
}

/// The layers above `http`, which sends a request as it is given one; a test has a function there.
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

/// Returns our name in the API server's audit log: the version and the instance.
fn user_agent(identity: &str) -> HeaderValue {
    let version = env!("CARGO_PKG_VERSION");
    HeaderValue::from_str(&format!("vap-status-controller/{version} ({identity})"))
        .unwrap_or(HeaderValue::from_static("vap-status-controller"))
}

/// Measures each request.
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

/// A request that was sent. It is measured when it is dropped, so that one that was given up counts too.
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

/// The verb of a request, as RBAC and audit logs name it.
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
