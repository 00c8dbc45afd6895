//! The answers of the server, and one conversation over a real socket.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

type Problems = &'static [(&'static str, Option<&'static str>)];

fn checks(problems: Problems) -> Vec<Check> {
    let check = |(name, problem): &(&'static str, Option<&str>)| Check {
        name: (*name).into(),
        problem: problem.map(str::to_owned),
    };
    problems.iter().map(check).collect()
}

fn health(problems: Problems) -> Health {
    Health {
        checks: Arc::new(move || checks(problems)),
        alive: Arc::new(|| checks(&[("refresher", None)])),
        metrics: Arc::new(Metrics::new()),
    }
}

#[track_caller]
fn check(path: &str, verbose: bool, health: &Health, status: u16, body: &str) {
    let response = answer(&Method::GET, path, verbose, health);
    assert_eq!(
        (response.status().as_u16(), response.body().as_str()),
        (status, body)
    );
}

const READY: &[(&str, Option<&str>)] = &[("policies", None), ("crds", None)];
const UNREADY: &[(&str, Option<&str>)] = &[
    ("policies", None),
    ("crds", Some("cannot list customresourcedefinitions")),
];

#[test]
fn readiness_lists_the_checks() {
    check("/readyz", false, &health(READY), 200, "ok");
    check(
        "/readyz",
        true,
        &health(READY),
        200,
        "[+]policies ok\n[+]crds ok\nreadyz check passed\n",
    );
    check(
        "/readyz",
        false,
        &health(UNREADY),
        503,
        "[+]policies ok\n[-]crds failed: cannot list customresourcedefinitions\nreadyz check failed\n",
    );
}

#[test]
fn liveness_does_not_depend_on_the_cluster() {
    check("/livez", false, &health(UNREADY), 200, "ok");
    check(
        "/livez",
        true,
        &health(UNREADY),
        200,
        "[+]ping ok\n[+]refresher ok\nlivez check passed\n",
    );
}

#[test]
fn a_task_that_hangs_fails_liveness_and_is_named() {
    let health = Health {
        alive: Arc::new(|| checks(&[("watch of crds", Some("no progress for 301 s"))])),
        ..health(READY)
    };
    check(
        "/livez",
        false,
        &health,
        503,
        "[+]ping ok\n[-]watch of crds failed: no progress for 301 s\nlivez check failed\n",
    );
}

#[test]
fn other_requests_are_told_what_there_is() {
    check(
        "/",
        false,
        &health(READY),
        404,
        "there are /livez, /readyz and /metrics\n",
    );
    let response = answer(&Method::POST, "/readyz", false, &health(READY));
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[test]
fn metrics_have_their_content_type() {
    let response = answer(&Method::GET, "/metrics", false, &health(READY));
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[header::CONTENT_TYPE], CONTENT_TYPE);
    assert!(response.body().ends_with("# EOF\n"));
}

#[tokio::test]
async fn a_busy_port_says_what_to_do() {
    let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = first.local_addr().unwrap();
    let error = bind(address).await.unwrap_err();
    assert!(
        error.starts_with(&format!("cannot listen on {address}: ")),
        "{error}"
    );
    assert!(
        error.ends_with("; choose another address with --listen"),
        "{error}"
    );
}

#[tokio::test]
async fn answers_over_a_socket() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, health(UNREADY)));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /readyz?verbose=true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\n[+]policies ok\n[-]crds failed: cannot list customresourcedefinitions\nreadyz check failed\n"));
    server.abort();
}
