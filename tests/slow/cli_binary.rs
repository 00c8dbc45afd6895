//! Tests the program `kubectl-vap`: standard output, standard error and exit status.
//!
//! The API server is a thread that returns prepared responses on the loopback interface.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, thread};

use serde_json::{Value, json};

const LIST: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// Starts a server for the duration of the test process. `answers` are the responses by path. Paths omit the parameter
/// `limit`. The server also reports a version.
fn serve(answers: &[(&str, u16, Value)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"});
    let answers: BTreeMap<String, (u16, String)> = [("/version", 200, version)]
        .iter()
        .chain(answers)
        .map(|(path, code, body)| ((*path).to_owned(), (*code, body.to_string())))
        .collect();
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(&stream.unwrap(), &answers);
        }
    });
    url
}

fn answer(mut stream: &TcpStream, answers: &BTreeMap<String, (u16, String)>) {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().unwrap().unwrap();
    // Reads the remaining headers, because closing the connection with unread data would reset it.
    while !lines.next().unwrap().unwrap().is_empty() {}
    let path = request.split(' ').nth(1).unwrap();
    // Removes the limit: clients request paths such as `?&limit=500&continue=…`.
    let path = path.replace("&limit=500", "").replace("?&", "?");
    let path = path.trim_end_matches('?');
    let missing = (404, "404 page not found".to_owned());
    let (code, body) = answers.get(path).unwrap_or(&missing);
    let _ = write!(
        stream,
        "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Writes a kubeconfig with the contexts `here` and `nowhere`. The current context is `here`.
fn kubeconfig(test: &str, url: &str) -> PathBuf {
    let path = directory().join(format!("{test}.kubeconfig"));
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [
            {"name": "here", "cluster": {"server": url}},
            {"name": "nowhere", "cluster": {"server": closed_port()}},
        ],
        "contexts": [
            {"name": "here", "context": {"cluster": "here", "user": "ann"}},
            {"name": "nowhere", "context": {"cluster": "nowhere", "user": "ann"}},
        ],
        "users": [{"name": "ann", "user": {}}],
    });
    fs::write(&path, config.to_string()).unwrap();
    path
}

/// Returns an address without a listening server.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn run(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"));
    for name in ["COLUMNS", "NO_COLOR", "KUBERNETES_SERVICE_HOST"] {
        command.env_remove(name);
    }
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", directory())
        .args(arguments)
        .output()
        .unwrap()
}

fn policy(name: &str, status: &str) -> Value {
    json!({
        "metadata": {"name": name, "generation": 1, "creationTimestamp": "2026-03-01T11:00:00Z"},
        "spec": {},
        "status": {"conditions": [{
            "type": "Ready", "status": status, "reason": "R", "message": "told by the test",
            "lastTransitionTime": "2026-03-01T11:00:00Z", "observedGeneration": 1,
        }]},
    })
}

fn list(items: &[Value], next: &str) -> Value {
    json!({"kind": "ValidatingAdmissionPolicyList", "apiVersion": "admissionregistration.k8s.io/v1",
           "metadata": {"resourceVersion": "1", "continue": next}, "items": items})
}

fn failure(code: u16, reason: &str, message: &str, name: Option<&str>) -> Value {
    let details = name.map(|name| json!({"name": name, "kind": "validatingadmissionpolicies"}));
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
           "code": code, "reason": reason, "message": message, "details": details})
}

/// Asserts a usage error or a cluster error. The exit status must be 2, and standard output must be empty. Standard error
/// must be a single line that contains all strings of `expect`.
#[track_caller]
fn check_error(output: &Output, expect: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty());
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    for part in expect {
        assert!(stderr.contains(part), "no `{part}` in: {stderr}");
    }
}

#[test]
fn pages_are_merged_in_name_order() {
    let url = serve(&[
        (LIST, 200, list(&[policy("b", "True")], "more")),
        (
            &format!("{LIST}?continue=more"),
            200,
            list(&[policy("a", "True")], ""),
        ),
    ]);
    let output = run(&kubeconfig("pages", &url), &["status", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["policies"][0]["name"], "a");
    assert_eq!(report["policies"][1]["name"], "b");
    assert_eq!(report["summary"]["ready"], 2);

    let output = run(&kubeconfig("pages", &url), &["status", "--output=yaml"]);
    let from_yaml = goyaml::to_json(str::from_utf8(&output.stdout).unwrap()).unwrap();
    assert_eq!(from_yaml, report);
}

#[test]
fn errors_show_no_credentials_of_urls() {
    let closed = closed_port();
    let host = closed.strip_prefix("http://").unwrap();
    let server = format!("http://ann:p4ssw0rd@{host}");
    let config = kubeconfig("credentials", &server);
    let shown = format!("cannot reach the API server at {closed}: ");
    let output = run(&config, &["status"]);
    check_error(&output, &[&shown]);
    for output in [
        output,
        run(&config, &["status", "--server", &server]),
        run(
            &config,
            &["status", "--server", &format!("ann:p4ssw0rd@{host}")],
        ),
        run(
            &config,
            &[
                "status",
                "--server",
                &format!("http://ann:p4ssw0rd@{host} /x"),
            ],
        ),
        run(
            &config,
            &[
                "status",
                "--server",
                &format!("http://ann:p4ssw0rd@{host}:x"),
            ],
        ),
        run(
            &config,
            &["diff", "--against-cluster", "--server", &server, "x.yaml"],
        ),
    ] {
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(!stderr.contains("p4ssw0rd"), "{stderr}");
    }
    for proxy in [
        format!("http://ann:p4ssw0rd@{host}"),
        "ftp://ann:p4ssw0rd@x".to_owned(),
    ] {
        let text = fs::read_to_string(&config).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        value["clusters"][0]["cluster"] =
            json!({"server": "https://api.invalid", "proxy-url": proxy});
        fs::write(&config, value.to_string()).unwrap();
        let output = run(&config, &["status"]);
        check_error(
            &output,
            &[
                "cannot reach the API server at https://api.invalid: ",
                "prox",
            ],
        );
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("p4ssw0rd"), "{stderr}");
    }
}

#[test]
fn json_and_yaml_escape_control_characters() {
    let name = "a\u{202e}b\u{9b}31m\u{7f}";
    let url = serve(&[(LIST, 200, list(&[policy(name, "True")], ""))]);
    let config = kubeconfig("escapes", &url);
    for (format, escape) in [("json", "\\u202e"), ("yaml", "\\u202e")] {
        let output = run(&config, &["status", "-o", format]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(escape), "{text}");
        let is_shown = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(text.chars().all(is_shown), "{text:?}");
        let report = goyaml::to_json(&text).unwrap();
        assert_eq!(report["policies"][0]["name"], name);
    }
}

#[test]
fn status_command_exits_1_by_default_if_a_policy_is_not_ready() {
    let url = serve(&[
        (
            LIST,
            200,
            list(&[policy("a", "True"), policy("b", "False")], ""),
        ),
        (&format!("{LIST}/a"), 200, policy("a", "True")),
        (&format!("{LIST}/b"), 200, policy("b", "False")),
    ]);
    let config = kubeconfig("findings", &url);
    for (arguments, code) in [
        (&["status"][..], 1),
        (&["status", "--exit-zero"], 0),
        (&["status", "-o", "json"], 1),
        (&["status", "a"], 0),
        (&["status", "b"], 1),
        (&["status", "b", "-o", "wide"], 1),
    ] {
        let output = run(&config, arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        assert!(!output.stdout.is_empty());
        assert!(output.stderr.is_empty());
        assert!(
            !output.stdout.contains(&0x1b),
            "color in a pipe: {output:?}"
        );
    }
    let output = run(&config, &["status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\n  Ready=False R: told by the test\n"),
        "{text}"
    );
}

const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/vap-status-system/leases/vap-status-controller";

/// Returns the Lease of a running controller. The controller was last in sync `seconds_ago` seconds ago.
fn lease(seconds_ago: i64) -> Value {
    let now = jiff::Timestamp::now();
    let then = jiff::Timestamp::from_second(now.as_second() - seconds_ago).unwrap();
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
           "metadata": {"name": "vap-status-controller",
                        "annotations": {"vap-status.dev/in-sync-at": then.to_string()}},
           "spec": {"renewTime": format!("{now:.6}"), "holderIdentity": "a",
                    "leaseDurationSeconds": 15}})
}

/// Returns the line above the table, and the field `controller` of the JSON output.
fn status_header(test: &str, answer: (u16, Value), arguments: &[&str]) -> (String, Value) {
    let url = serve(&[
        (LIST, 200, list(&[policy("a", "True")], "")),
        (LEASE, answer.0, answer.1),
    ]);
    let config = kubeconfig(test, &url);
    let output = run(&config, arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (above, _) = text.split_once("NAME").unwrap();
    let output = run(&config, &["status", "-o", "json"]);
    assert!(output.stderr.is_empty(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    (above.to_owned(), report.get("controller").cloned().unwrap())
}

#[test]
fn possibly_stale_statuses_are_labeled() {
    let (above, controller) = status_header("in-step", (200, lease(3)), &["status"]);
    assert_eq!(above, "");
    assert_eq!(controller["current"], true);
    assert_eq!(controller["note"], Value::Null);
    assert_eq!(
        controller["lease"],
        "vap-status-system/vap-status-controller"
    );

    let (above, controller) = status_header("behind", (200, lease(14 * 60)), &["status"]);
    assert_eq!(
        above,
        "statuses may be outdated: the controller was last in sync 14m ago; it is running, see its log for \
         the reason\n\n"
    );
    assert_eq!(controller["current"], false);
    assert!(controller["lastInSync"].is_string(), "{controller}");

    let missing = failure(404, "NotFound", "leases not found", None);
    let (above, controller) = status_header("no-lease", (404, missing), &["status"]);
    assert!(
        above.starts_with(
            "cannot determine whether the statuses are current: there is no Lease vap-status-system/"
        ),
        "{above}"
    );
    assert_eq!(controller["current"], Value::Null);
    // The flags select the Lease of another controller.
    let named = ["status", "--controller-namespace=a", "--lease-name=b"];
    let (above, _) = status_header("other-lease", (200, lease(3)), &named);
    assert!(above.contains("there is no Lease a/b,"), "{above}");
}

#[test]
fn missing_lease_permission_prints_no_warning() {
    let rejection = || failure(403, "Forbidden", "User \"ann\" cannot get it", None);
    let (above, controller) = status_header("lease-403", (403, rejection()), &["status"]);
    assert_eq!(above, "");
    assert_eq!(controller["current"], Value::Null);
    let (above, _) = status_header("lease-403", (403, rejection()), &["status", "-o", "wide"]);
    assert_eq!(
        above,
        "cannot determine whether the statuses are current: Lease \
         vap-status-system/vap-status-controller: User \"ann\" cannot get it\n\n"
    );
}

#[test]
fn cluster_without_policies_exits_0() {
    let url = serve(&[(LIST, 200, list(&[], ""))]);
    let output = run(&kubeconfig("empty", &url), &["status"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    assert_eq!(output.stderr, b"no ValidatingAdmissionPolicies found\n");
}

#[test]
fn error_response_is_reported_on_one_line() {
    let forbidden = failure(403, "Forbidden", "User \"ann\" cannot list them", None);
    let url = serve(&[
        (LIST, 403, forbidden),
        (
            &format!("{LIST}/a"),
            404,
            failure(404, "NotFound", "\"a\" not found", Some("a")),
        ),
        (
            &format!("{LIST}/b"),
            401,
            failure(401, "Unauthorized", "Unauthorized", None),
        ),
    ]);
    let config = kubeconfig("refusals", &url);
    check_error(
        &run(&config, &["status"]),
        &[
            "User \"ann\" cannot list them",
            "this requires the permissions",
        ],
    );
    check_error(
        &run(&config, &["status", "a"]),
        &["no ValidatingAdmissionPolicy `a`"],
    );
    check_error(
        &run(&config, &["status", "b"]),
        &["rejects the credentials", "--context"],
    );
    check_error(&run(&config, &["status", "c"]), &["does not serve", "1.30"]);
}

#[test]
fn unreachable_cluster_is_reported_on_one_line() {
    let config = kubeconfig("reach", &closed_port());
    check_error(
        &run(&config, &["status"]),
        &["cannot reach", "http://127.0.0.1:", "refused"],
    );
    check_error(
        &run(&config, &["status", "--context", "nowhere"]),
        &["cannot reach"],
    );
    check_error(
        &run(&config, &["status", "--context", "mars"]),
        &["mars", "--context"],
    );
    check_error(
        &run(Path::new("/does/not/exist"), &["status"]),
        &["/does/not/exist", "--kubeconfig"],
    );
    let flag = ["status", "--kubeconfig", "/does/not/exist"];
    check_error(&run(&config, &flag), &["/does/not/exist", "--kubeconfig"]);
}

#[test]
fn silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let output = run(
        &kubeconfig("silent", &url),
        &["status", "--request-timeout", "1"],
    );
    check_error(&output, &["no response within 1 s"]);
}

#[test]
fn usage_error_exits_2_and_help_lists_exit_statuses() {
    let config = kubeconfig("use", &closed_port());
    for arguments in [
        &[][..],
        &["statsu"],
        &["status", "-o", "xml"],
        &["status", "a", "-l", "team=b"],
    ] {
        assert_eq!(
            run(&config, arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
    let output = run(&config, &["status", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(output.stdout).unwrap();
    for part in [
        "Usage: kubectl vap status",
        "Exit status:",
        "--exit-zero",
        "--context",
    ] {
        assert!(help.contains(part), "no `{part}` in: {help}");
    }
}
