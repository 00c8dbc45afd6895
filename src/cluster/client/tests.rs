//! Tests the client with a real HTTP server.

use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::*;

type Measures = Arc<Mutex<Vec<(Verb, Code)>>>;

/// A server that responds to every request with the same status, and a client of the server.
struct Server {
    client: Client,
    n_requests: Arc<AtomicUsize>,
    user_agents: Arc<Mutex<Vec<String>>>,
    measures: Measures,
}

async fn server(status: u16) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let n_requests = Arc::new(AtomicUsize::new(0));
    let user_agents = Arc::new(Mutex::new(Vec::new()));
    let (seen, agents) = (Arc::clone(&n_requests), Arc::clone(&user_agents));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (seen, agents) = (Arc::clone(&seen), Arc::clone(&agents));
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                seen.fetch_add(1, Ordering::SeqCst);
                let agent = request.headers()[header::USER_AGENT].to_str().unwrap();
                agents.lock().unwrap().push(agent.to_owned());
                let mut response = Response::new(String::new());
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    let measures = Measures::default();
    let client = client(
        Config::new(url.parse().unwrap()),
        "pod-1",
        measure(&measures),
    )
    .unwrap();
    Server {
        client,
        n_requests,
        user_agents,
        measures,
    }
}

fn measure(measures: &Measures) -> Measure {
    let measures = Arc::clone(measures);
    Arc::new(move |verb, code, _| measures.lock().unwrap().push((verb, code)))
}

fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).unwrap()
}

#[tokio::test]
async fn throttled_request_fails_without_retry() {
    for status in [429, 503, 504] {
        let server = server(status).await;
        let outcome = server.client.request_text(get("/apis")).await;
        let Err(kube::Error::Api(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(error.code, status);
        assert_eq!(server.n_requests.load(Ordering::SeqCst), 1);
        assert_eq!(
            *server.measures.lock().unwrap(),
            [(Verb::Get, Code::Status(status))]
        );
    }
}

#[tokio::test]
async fn user_agent_contains_version_and_identity() {
    let server = server(200).await;
    server.client.request_text(get("/apis")).await.unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        *server.user_agents.lock().unwrap(),
        [format!("vap-status-controller/{version} (pod-1)")]
    );
}

#[tokio::test]
async fn request_without_response_is_measured() {
    // Connections to the address of a dropped listener fail.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    // The operating system accepts connections for this listener, but no task reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    for url in [refused, silent_url] {
        let measures = Measures::default();
        let config = Config::new(url.parse().unwrap());
        let client = client(config, "pod-1", measure(&measures)).unwrap();
        let answer = client.request_text(get("/version"));
        let answer = tokio::time::timeout(Duration::from_millis(300), answer).await;
        assert!(!matches!(answer, Ok(Ok(_))));
        assert_eq!(*measures.lock().unwrap(), [(Verb::Get, Code::Error)]);
    }
}

#[test]
fn request_verb_equals_verb_in_audit_log() {
    for (method, path, expect) in [
        ("GET", "/apis", "get"),
        ("GET", "/api/v1", "get"),
        ("GET", "/apis/apps/v1", "get"),
        ("GET", "/openapi/v3/apis/apps/v1?hash=1", "get"),
        ("GET", "/api/v1/namespaces", "list"),
        ("GET", "/api/v1/namespaces/default", "get"),
        (
            "GET",
            "/api/v1/namespaces/default/configmaps?limit=1",
            "list",
        ),
        ("GET", "/api/v1/namespaces/default/configmaps/a", "get"),
        ("GET", "/apis/apps/v1/deployments", "list"),
        (
            "GET",
            "/apis/apps/v1/deployments?watch=true&limit=1",
            "watch",
        ),
        (
            "GET",
            "/apis/apps/v1/deployments?labelSelector=watch",
            "list",
        ),
        ("PATCH", "/apis/apps/v1/deployments/a/status", "patch"),
        (
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
            "update",
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            "create",
        ),
        ("DELETE", "/api/v1/pods/a", "delete"),
        ("OPTIONS", "/api", "other"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty()).unwrap();
        assert_eq!(verb(&request).as_str(), expect, "{method} {path}");
    }
}
