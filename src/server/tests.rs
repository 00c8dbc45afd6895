use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

use crate::policy::subject::SubjectId;

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
        measure: Arc::new(|| {}),
        metrics: Arc::new(Metrics::new()),
    }
}

#[track_caller]
fn check(path: &str, verbose: bool, health: &Health, status: u16, body: &str) {
    let response = answer(&Method::GET, path, verbose, health, Endpoints::All);
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
fn readyz_lists_its_checks() {
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
fn livez_fails_if_a_task_hangs() {
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
fn unknown_path_lists_endpoints() {
    check(
        "/",
        false,
        &health(READY),
        404,
        "available endpoints: /livez, /readyz, /metrics\n",
    );
    let response = answer(
        &Method::POST,
        "/readyz",
        false,
        &health(READY),
        Endpoints::All,
    );
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[test]
fn metrics_response_has_openmetrics_content_type() {
    let response = answer(
        &Method::GET,
        "/metrics",
        false,
        &health(READY),
        Endpoints::All,
    );
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()[header::CONTENT_TYPE], CONTENT_TYPE);
    assert!(response.body().ends_with("# EOF\n"));
}

#[tokio::test]
async fn busy_port_fails_with_hint() {
    let first = bind("127.0.0.1:0".parse().unwrap(), "--listen")
        .await
        .unwrap();
    let address = first.local_addr().unwrap();
    let error = bind(address, "--metrics-listen").await.unwrap_err();
    assert!(
        error.starts_with(&format!("cannot listen on {address}: ")),
        "{error}"
    );
    assert!(
        error.ends_with("; choose another address with --metrics-listen"),
        "{error}"
    );
}

#[tokio::test]
async fn unspecified_address_accepts_both_ip_versions() {
    let any = bind("[::]:0".parse().unwrap(), "--listen").await.unwrap();
    let local = any.local_addr().unwrap();
    tokio::spawn(serve(any, health(READY), Endpoints::All));
    assert_eq!(
        get((Ipv4Addr::LOCALHOST, local.port()).into(), "/livez").await,
        200
    );
    // On a machine without IPv6, the server uses IPv4 instead.
    if local.is_ipv6() {
        assert_eq!(
            get((Ipv6Addr::LOCALHOST, local.port()).into(), "/livez").await,
            200
        );
    }
}

#[tokio::test]
async fn unspecified_address_without_ipv6_falls_back_to_ipv4() {
    // Errno 97 is EAFNOSUPPORT: the kernel has no IPv6. EADDRNOTAVAIL: IPv6 is disabled by a sysctl.
    for error in [
        || io::Error::from_raw_os_error(97),
        || io::Error::from(io::ErrorKind::AddrNotAvailable),
    ] {
        let listen = |address: SocketAddr| async move {
            if address.is_ipv6() {
                Err(error())
            } else {
                Ok(address.to_string())
            }
        };
        let bound = bind_with("[::]:8080".parse().unwrap(), "--listen", listen).await;
        assert_eq!(bound.as_deref(), Ok("0.0.0.0:8080"));
        // The fallback is only for `[::]`.
        let bound = bind_with("[::1]:8080".parse().unwrap(), "--listen", listen).await;
        assert!(
            bound
                .unwrap_err()
                .starts_with("cannot listen on [::1]:8080: ")
        );
    }
}

#[tokio::test]
async fn unspecified_address_with_busy_port_does_not_fall_back() {
    let listen = |address: SocketAddr| async move {
        if address.is_ipv6() {
            Err(io::ErrorKind::AddrInUse.into())
        } else {
            Ok(())
        }
    };
    let bound = bind_with("[::]:8080".parse().unwrap(), "--listen", listen).await;
    assert!(bound.unwrap_err().contains("[::]:8080: "));
}

#[tokio::test]
async fn failed_readiness_is_reported_over_socket() {
    let listener = bind("127.0.0.1:0".parse().unwrap(), "--listen")
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, health(UNREADY), Endpoints::All));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /readyz?verbose=true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\n[+]policies ok\n[-]crds failed: cannot list customresourcedefinitions\nreadyz check failed\n"));
    server.abort();
}

async fn start(endpoints: Endpoints, health: Health) -> std::net::SocketAddr {
    let listener = bind("127.0.0.1:0".parse().unwrap(), "--listen")
        .await
        .unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, health, endpoints));
    address
}

async fn get(address: std::net::SocketAddr, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn server_port_serves_only_its_endpoints() {
    for (endpoints, expect) in [
        (Endpoints::All, [200, 200, 200]),
        (Endpoints::Health, [200, 200, 404]),
        (Endpoints::Metrics, [404, 404, 200]),
    ] {
        let address = start(endpoints, health(READY)).await;
        for (path, status) in ["/livez", "/readyz", "/metrics"].into_iter().zip(expect) {
            assert_eq!(get(address, path).await, status, "{endpoints:?} {path}");
        }
        assert_eq!(get(address, "/").await, 404);
    }
}

#[tokio::test]
async fn idle_connections_do_not_block_kubelet() {
    let address = start(Endpoints::All, health(READY)).await;
    let mut silent = Vec::new();
    for round in 0..5 {
        for _ in 0..MAX_CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /livez HT").await.unwrap();
            silent.push(stream);
        }
        // One second is the default timeout of the kubelet's probes.
        let answer = tokio::time::timeout(Duration::from_secs(1), get(address, "/livez"));
        assert_eq!(answer.await, Ok(200), "round {round}");
    }
}

#[tokio::test]
async fn stalled_scrapes_do_not_block_others() {
    let metrics = Metrics::new();
    let sample = crate::telemetry::metrics::PolicySample {
        probes: vec![crate::telemetry::metrics::ProbeSample {
            probe: "x".repeat(1 << 20),
            outcomes: [("Passed", 1), ("Failed", 2), ("Pending", 0)],
        }],
        ..Default::default()
    };
    for i in 0..8 {
        metrics.set_policy(&SubjectId::policy(i.to_string()), sample.clone());
    }
    let health = Health {
        metrics: Arc::new(metrics),
        ..health(READY)
    };
    let address = start(Endpoints::All, health).await;
    let mut unread = Vec::new();
    for _ in 0..MAX_SCRAPES {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        // After the first byte, the response has begun.
        stream.read_u8().await.unwrap();
        unread.push(stream);
    }
    assert_eq!(get(address, "/metrics").await, 503);
    assert_eq!(get(address, "/livez").await, 200);
    drop(unread);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while get(address, "/metrics").await != 200 {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
}

/// Runs the command `probe`. Returns the printed response or the error message.
async fn probe(url: String, timeout: Duration) -> Result<String, String> {
    let probed = tokio::task::spawn_blocking(move || {
        let mut out = Vec::new();
        http_probe::run(&url.parse().unwrap(), timeout, &mut out)
            .map(|()| String::from_utf8(out).unwrap())
    });
    probed.await.unwrap()
}

#[tokio::test]
async fn probe_prints_response_of_ready_server() {
    let address = start(Endpoints::Health, health(READY)).await;
    let timeout = Duration::from_secs(10);
    let ready = probe(format!("http://{address}/readyz?verbose"), timeout).await;
    assert_eq!(
        ready.as_deref(),
        Ok("[+]policies ok\n[+]crds ok\nreadyz check passed\n")
    );
    // The path is optional, and the server has no page at `/`.
    let root = probe(format!("http://{address}"), Duration::from_millis(100)).await;
    assert!(
        root.unwrap_err()
            .ends_with("404 Not Found: available endpoints: /livez, /readyz")
    );
}

#[tokio::test]
async fn probe_fails_with_last_response_after_timeout() {
    let address = start(Endpoints::All, health(UNREADY)).await;
    let url = format!("http://{address}/readyz");
    let error = probe(url.clone(), Duration::from_millis(100)).await;
    let expected = format!(
        "{url}: 503 Service Unavailable: [+]policies ok\n[-]crds failed: cannot list \
         customresourcedefinitions\nreadyz check failed"
    );
    assert_eq!(error.unwrap_err(), expected);
}

#[tokio::test]
async fn probe_of_silent_server_ends_at_deadline() {
    let silent = bind("127.0.0.1:0".parse().unwrap(), "--listen").await;
    let silent = silent.unwrap();
    let url = format!("http://{}/readyz", silent.local_addr().unwrap());
    let deadline = std::time::Instant::now() + Duration::from_millis(200);
    let response = http_probe::get(&url.parse().unwrap(), deadline);
    assert_eq!(response.unwrap_err(), "no complete response");
}

#[tokio::test]
async fn probe_waits_for_server_and_readiness() {
    let listener = bind("127.0.0.1:0".parse().unwrap(), "--listen").await;
    let address = listener.unwrap().local_addr().unwrap();
    // The listener has been dropped, so the first connection fails.
    let url = format!("http://localhost:{}/readyz", address.port());
    let probed = tokio::spawn(probe(url, Duration::from_secs(60)));
    tokio::time::sleep(Duration::from_millis(20)).await;
    let n_requests = std::sync::atomic::AtomicUsize::new(0);
    let health = Health {
        checks: Arc::new(move || {
            let n = n_requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            checks(if n == 0 { UNREADY } else { READY })
        }),
        ..health(READY)
    };
    let listener = bind(address, "--listen").await.unwrap();
    tokio::spawn(serve(listener, health, Endpoints::Health));
    assert_eq!(probed.await.unwrap().as_deref(), Ok("ok"));
}

#[test]
fn probe_accepts_only_urls_without_tls() {
    for (url, problem) in [
        ("https://a/readyz", "the scheme must be http"),
        ("a:8080/readyz", "not a URL"),
        ("http:///readyz", "not a URL"),
        ("/readyz", "the scheme must be http"),
        ("http://a b/", "not a URL"),
    ] {
        let error = url.parse::<http_probe::Target>().unwrap_err();
        assert!(error.contains(problem), "{url}: {error}");
    }
    for (url, host, port, path) in [
        (
            "http://a.b.svc:8080/readyz?verbose",
            "a.b.svc",
            8080,
            "/readyz?verbose",
        ),
        ("http://[::1]:81", "::1", 81, "/"),
        ("http://a", "a", 80, "/"),
    ] {
        let target: http_probe::Target = url.parse().unwrap();
        assert_eq!(target.parts(), (host, port, path));
    }
}
