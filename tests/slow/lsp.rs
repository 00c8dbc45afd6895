//! Drives the language server of the program `kubectl-vap` over standard input and output.
#![allow(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};

use crate::api_server::{ApiServer, Config};
use crate::cli_live::{CLUSTER, NEW_POLICY};

/// The time after which a missing message fails a test.
const PATIENCE: Duration = Duration::from_secs(60);

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 50
";

const BINDING: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limit}
spec: {policyName: limit.example.com, validationActions: [Deny]}
";

/// A client with its server.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    pending: VecDeque<Value>,
    last_id: u64,
}

impl Client {
    /// Starts a server and initializes a session for a directory.
    fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[])
    }

    /// Starts a server with flags, and initializes a session for a directory.
    fn start_with(directory: &Path, flags: &[&str]) -> Self {
        let mut client = Self::uninitialized(flags);
        let params = json!({
            "processId": null,
            "workspaceFolders": [{"uri": uri(directory), "name": "w"}],
            "capabilities": {
                "general": {"positionEncodings": ["utf-8", "utf-16"]},
                "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}},
            },
        });
        let result = client.request("initialize", &params).unwrap();
        assert_eq!(result["capabilities"]["positionEncoding"], "utf-8");
        client.notify("initialized", &json!({}));
        let registration = client.wait(|message| message["method"] == "client/registerCapability");
        client.send(&json!({"id": registration["id"], "result": null}));
        client
    }

    fn uninitialized(flags: &[&str]) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
            .arg("lsp")
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut output = output;
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            input: server.stdin.take(),
            server,
            messages,
            pending: VecDeque::new(),
            last_id: 0,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"method": method, "params": params}));
    }

    /// Sends a request. Returns its result, or the code of its error.
    fn request(&mut self, method: &str, params: &Value) -> Result<Value, i64> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": params}));
        let response = self.wait(|message| message["id"] == id && message.get("method").is_none());
        match response.get("error") {
            Some(error) => Err(error["code"].as_i64().unwrap()),
            None => Ok(response["result"].clone()),
        }
    }

    /// Waits for a message for which `is_expected` returns true.
    fn wait(&mut self, is_expected: impl Fn(&Value) -> bool) -> Value {
        if let Some(n) = self.pending.iter().position(&is_expected) {
            return self.pending.remove(n).unwrap();
        }
        let start = Instant::now();
        loop {
            match self
                .messages
                .recv_timeout(PATIENCE.saturating_sub(start.elapsed()))
            {
                Ok(message) if is_expected(&message) => return message,
                Ok(message) => self.pending.push_back(message),
                Err(RecvTimeoutError::Timeout) => panic!("no message; others: {:?}", self.pending),
                Err(RecvTimeoutError::Disconnected) => panic!("the server ended"),
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}));
    }

    fn change(&mut self, uri: &str, version: i32, changes: &Value) {
        let document = json!({"uri": uri, "version": version});
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.notify("textDocument/didChange", &params);
    }

    /// Waits for the diagnostics of a version of a document. Returns the code and the line of each, counted from 1.
    fn diagnostics(&mut self, uri: &str, version: &Value) -> Vec<String> {
        let message = self.wait(|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && message["params"]["version"] == *version
        });
        let results = message["params"]["diagnostics"].as_array().unwrap().iter();
        results
            .map(|diagnostic| {
                assert_eq!(diagnostic["source"], "kubectl vap");
                let code = diagnostic["code"].as_str().unwrap();
                let link = diagnostic["codeDescription"]["href"].as_str().unwrap();
                assert!(link.ends_with(&format!("/docs/rules.md#{code}")), "{link}");
                let line = diagnostic["range"]["start"]["line"].as_u64().unwrap() + 1;
                format!("{line} {code}")
            })
            .collect()
    }

    /// Ends the session. Returns the exit status.
    fn end(mut self) -> i32 {
        self.request("shutdown", &Value::Null).unwrap();
        assert_eq!(
            self.request("textDocument/hover", &Value::Null),
            Err(-32600)
        );
        self.notify("exit", &Value::Null);
        self.server.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => length = line.strip_prefix("Content-Length: ")?.parse().ok()?,
        }
    }
    let mut bytes = vec![0; length];
    output.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Creates a directory with files for a test.
fn workspace(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("lsp")
        .join(test);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    // Without this directory, the search for a configuration would continue in the repository.
    fs::create_dir(directory.join(".git")).unwrap();
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
    directory
}

#[test]
fn diagnostics_follow_unsaved_changes() {
    let directory = workspace("changes", &[("p.yaml", POLICY), ("b.yaml", BINDING)]);
    let mut client = Client::start(&directory);
    let policy = uri(&directory.join("p.yaml"));
    client.open(&policy, POLICY);
    let first = client.diagnostics(&policy, &json!(1));
    assert_eq!(first, ["7 unwatched-subresource"]);

    // After characters are typed in quick succession, the server sends the diagnostics of the last version.
    let end = json!({"line": 8, "character": 42});
    for (n, c) in " && object.spec.rep".chars().enumerate() {
        let at = json!({"line": 8, "character": 42 + n});
        let version = i32::try_from(n).unwrap() + 2;
        client.change(
            &policy,
            version,
            &json!([{"range": {"start": at, "end": at}, "text": c.to_string()}]),
        );
    }
    let last = client.diagnostics(&policy, &json!(20));
    assert!(last.contains(&"9 undefined-field".to_owned()), "{last:?}");
    let to = json!({"line": 8, "character": 61});
    client.change(
        &policy,
        21,
        &json!([{"range": {"start": end, "end": to}, "text": " &&"}]),
    );
    let broken = client.diagnostics(&policy, &json!(21));
    assert!(broken.contains(&"9 syntax".to_owned()), "{broken:?}");

    // If one document of a file is not valid YAML, the other documents still have diagnostics.
    let text = format!("a: [\n---\n{POLICY}").replace("replicas", "replcas");
    client.change(&policy, 22, &json!([{"text": text}]));
    let results = client.diagnostics(&policy, &json!(22));
    assert_eq!(results, ["1 invalid-yaml", "11 undefined-field"]);

    client.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": policy}}),
    );
    let of_file = client.diagnostics(&policy, &Value::Null);
    assert_eq!(of_file, ["7 unwatched-subresource"]);
    assert_eq!(client.end(), 0);
}

#[test]
fn large_workspace_is_read_up_to_a_limit() {
    let directory = workspace("large", &[]);
    for n in 0..51 {
        let part = directory.join(format!("part{n}"));
        fs::create_dir(&part).unwrap();
        for n in 0..1_000 {
            fs::create_dir(part.join(n.to_string())).unwrap();
        }
    }
    let mut client = Client::start(&directory);
    client.wait_for_text("window/showMessage", "Open a smaller folder");
    assert_eq!(client.end(), 0);
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn files_that_are_not_open_have_diagnostics() {
    let broken = POLICY.replace("replicas", "replcas");
    let files = [
        ("p.yaml", &*broken),
        ("b.yaml", BINDING),
        ("c.yaml", "a: b"),
    ];
    let directory = workspace("closed", &files);
    let mut client = Client::start(&directory);
    let uri_of = |name: &str| uri(&directory.join(name));
    let (policy, binding) = (uri_of("p.yaml"), uri_of("b.yaml"));
    let changed = |name: &str| json!({"changes": [{"uri": uri_of(name), "type": 2}]});
    let all = ["9 undefined-field"];
    assert_eq!(client.diagnostics(&policy, &Value::Null), all);

    // If the policy gets a new name, the findings about its binding change when the document is saved.
    client.open(&policy, &broken);
    assert_eq!(client.diagnostics(&policy, &json!(1)), all);
    let text = broken.replace("limit.example", "other.example");
    client.change(&policy, 2, &json!([{"text": text}]));
    let saved = json!({"textDocument": {"uri": policy}});
    client.notify("textDocument/didSave", &saved);
    let of_binding = client.diagnostics(&binding, &Value::Null);
    assert_eq!(of_binding, ["4 unknown-policy"]);
    // The new name was not saved, so the file on disk still contains the old name.
    client.notify("textDocument/didClose", &saved);
    assert!(client.diagnostics(&binding, &Value::Null).is_empty());
    assert_eq!(client.diagnostics(&policy, &Value::Null), all);

    // A file that is excluded or removed has no diagnostics.
    fs::write(directory.join(".vap.yaml"), "exclude: [p.yaml]\n").unwrap();
    client.notify("workspace/didChangeWatchedFiles", &changed(".vap.yaml"));
    assert!(client.diagnostics(&policy, &Value::Null).is_empty());
    assert_eq!(
        client.diagnostics(&binding, &Value::Null),
        ["4 unknown-policy"]
    );
    fs::remove_file(directory.join("b.yaml")).unwrap();
    client.notify("workspace/didChangeWatchedFiles", &changed("b.yaml"));
    assert!(client.diagnostics(&binding, &Value::Null).is_empty());
    assert!(
        client
            .pending
            .iter()
            .all(|message| message["params"]["uri"] != uri_of("c.yaml"))
    );
    assert_eq!(client.end(), 0);
}

#[test]
fn diagnostics_depend_on_other_files() {
    let directory = workspace("others", &[("p.yaml", POLICY), ("b.yaml", BINDING)]);
    let mut client = Client::start(&directory);
    let (policy, binding) = (
        uri(&directory.join("p.yaml")),
        uri(&directory.join("b.yaml")),
    );
    client.open(&binding, BINDING);
    assert!(client.diagnostics(&binding, &json!(1)).is_empty());
    client.open(&policy, POLICY);
    client.diagnostics(&policy, &json!(1));
    // If the policy gets a new name, the findings about its binding change.
    let text = POLICY.replace("limit.example", "other.example");
    client.change(&policy, 2, &json!([{"text": text}]));
    assert_eq!(
        client.diagnostics(&binding, &json!(1)),
        ["4 unknown-policy"]
    );

    // The configuration is read again when it changes.
    fs::write(
        directory.join(".vap.yaml"),
        "levels: {unknown-policy: allow}\n",
    )
    .unwrap();
    let changes = json!([{"uri": uri(&directory.join(".vap.yaml")), "type": 1}]);
    client.notify(
        "workspace/didChangeWatchedFiles",
        &json!({"changes": changes}),
    );
    assert!(client.diagnostics(&binding, &json!(1)).is_empty());
    fs::write(directory.join(".vap.yaml"), "level: {}\n").unwrap();
    client.notify(
        "workspace/didChangeWatchedFiles",
        &json!({"changes": changes}),
    );
    let shown = client.wait(|message| message["method"] == "window/showMessage");
    let text = shown["params"]["message"].as_str().unwrap();
    assert!(text.contains("unknown key `level`"), "{text}");

    // A new file on disk contains the policy.
    fs::write(directory.join("q.yaml"), POLICY).unwrap();
    assert_eq!(
        client.diagnostics(&binding, &json!(1)),
        ["4 unknown-policy"]
    );
    let changes = json!([{"uri": uri(&directory.join("q.yaml")), "type": 1}]);
    client.notify(
        "workspace/didChangeWatchedFiles",
        &json!({"changes": changes}),
    );
    assert!(client.diagnostics(&binding, &json!(1)).is_empty());
    assert_eq!(client.end(), 0);
}

#[test]
fn each_lsp_feature_has_a_result() {
    let directory = workspace("features", &[("b.yaml", BINDING)]);
    let mut client = Client::start(&directory);
    let policy = uri(&directory.join("p.yaml"));
    let text = POLICY.replace("replicas", "replcas");
    client.open(&policy, &text);
    let range = json!({"start": {"line": 8, "character": 0}, "end": {"line": 8, "character": 60}});
    let document = json!({"uri": policy});
    let context = json!({"diagnostics": []});
    let params = json!({"textDocument": document, "range": range, "context": context});
    let actions = client.request("textDocument/codeAction", &params).unwrap();
    assert_eq!(actions[0]["title"], "replace `replcas` with `replicas`");
    let at = |character: u64| json!({"textDocument": document, "position": {"line": 8, "character": character}});
    let hover = client.request("textDocument/hover", &at(25)).unwrap();
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("object.spec: object"), "{text}");
    let list = client.request("textDocument/completion", &at(28)).unwrap();
    let mut labels = list["items"].as_array().unwrap().iter();
    assert!(labels.any(|item| item["label"] == "replicas"), "{list}");
    for method in [
        "textDocument/documentSymbol",
        "textDocument/semanticTokens/full",
        "textDocument/codeLens",
    ] {
        let result = client
            .request(method, &json!({"textDocument": document}))
            .unwrap();
        assert!(
            result.is_array() || result.is_object(),
            "{method}: {result}"
        );
    }
    let name = json!({"textDocument": document, "position": {"line": 2, "character": 20}});
    let results = client.request("textDocument/definition", &name).unwrap();
    assert_eq!(results[0]["uri"], policy);
    let mut params = name.clone();
    params["context"] = json!({"includeDeclaration": false});
    let results = client.request("textDocument/references", &params).unwrap();
    assert_eq!(results[0]["uri"], uri(&directory.join("b.yaml")));
    params["newName"] = "new.example.com".into();
    let edit = client.request("textDocument/rename", &params).unwrap();
    assert_eq!(edit["changes"].as_object().unwrap().len(), 2);
    assert_eq!(client.end(), 0);
}

#[test]
fn malformed_messages_do_not_end_the_server() {
    let directory = workspace("malformed", &[]);
    let mut client = Client::uninitialized(&[]);
    assert_eq!(
        client.request("textDocument/hover", &json!({})),
        Err(-32002)
    );
    client.notify("textDocument/didOpen", &json!({"textDocument": 1}));
    drop(client);

    let mut client = Client::start(&directory);
    let null_error = |message: &Value| message["id"].is_null() && message.get("error").is_some();
    for bytes in [
        &b"Content-Length: 5\r\n\r\n{\"a\":"[..],
        b"Content-Length: 2\r\n\r\n\xff\xfe",
        b"Content-Length: x\r\n\r\n",
        b"Content-Type: y\r\n\r\n",
    ] {
        client.write(bytes);
        let error = client.wait(null_error);
        assert_eq!(error["error"]["code"], -32700, "{bytes:?}");
    }
    for message in [
        json!([]),
        json!([1]),
        json!({"id": 1}),
        json!({"id": null, "method": "x"}),
        json!({"id": [1], "method": "x"}),
    ] {
        let text = message.to_string();
        client.write(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }
    for method in ["unknown", "initialize", ""] {
        assert!(client.request(method, &json!({})).is_err());
    }
    for params in [
        json!(null),
        json!([]),
        json!({"textDocument": {"uri": 1}}),
        json!("x"),
    ] {
        assert_eq!(client.request("textDocument/hover", &params), Err(-32602));
        client.notify("textDocument/didChange", &params);
        client.notify("workspace/didChangeWatchedFiles", &params);
        client.notify("$/cancelRequest", &params);
    }
    // Changes of a document that is not open are ignored.
    let document = uri(&directory.join("p.yaml"));
    client.change(&document, 7, &json!([{"text": "x"}]));
    client.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": document}}),
    );
    let huge = format!("{POLICY}# {}\n", "x".repeat(8 * 1024 * 1024));
    client.open(&document, &huge);
    client.diagnostics(&document, &json!(1));
    let nested = format!("a: {}", "[".repeat(100_000));
    client.change(&document, 2, &json!([{"text": nested}]));
    client.diagnostics(&document, &json!(2));
    let deep = "(".repeat(5_000);
    let text = POLICY.replace("object.spec.replicas", &deep);
    client.change(&document, 3, &json!([{"text": text}]));
    client.diagnostics(&document, &json!(3));
    let at = json!({"textDocument": {"uri": document}, "position": {"line": 8, "character": 4000}});
    for method in [
        "textDocument/hover",
        "textDocument/completion",
        "textDocument/signatureHelp",
    ] {
        assert!(client.request(method, &at).is_ok(), "{method}");
    }
    let out = json!({"textDocument": {"uri": document}, "position": {"line": 4_000_000_000_u32, "character": 4_000_000_000_u32}});
    assert!(client.request("textDocument/hover", &out).is_ok());
    assert_eq!(client.end(), 0);
}

impl Client {
    /// Waits for a message to the user whose text contains `part`.
    fn wait_for_text(&mut self, method: &str, part: &str) {
        self.wait(|message| {
            let text = message["params"]["message"].as_str();
            message["method"] == method && text.is_some_and(|text| text.contains(part))
        });
    }

    /// Waits until the diagnostics of a document are `expected`. The server checks the document again after it has read
    /// the cluster.
    fn wait_for_diagnostics(&mut self, uri: &str, version: i32, expected: &[&str]) {
        while self.diagnostics(uri, &json!(version)) != expected {}
    }
}

#[test]
fn findings_depend_on_the_cluster() {
    let directory = workspace("live", &[]);
    let server = ApiServer::start(Config::new(CLUSTER));
    let mut client = Client::start_with(&directory, &["--server", &server.url]);
    client.wait_for_text("window/logMessage", "version 1.36");
    let document = uri(&directory.join("p.yaml"));
    // The schemas that a policy needs are read when the policy is opened, and when its rules match other resources.
    let policy = NEW_POLICY.replace("params.maxReplicas + 5\n", "params.maxReplica\n");
    client.open(&document, &policy);
    let expected = ["8 unwatched-subresource", "10 undefined-field"];
    client.wait_for_diagnostics(&document, 1, &expected);
    let config_maps = policy
        .replace("[apps]", "[\"\"]")
        .replace("deployments", "configmaps")
        .replace("object.spec.replicas", "size(object.data)");
    client.change(&document, 2, &json!([{"text": config_maps}]));
    client.wait_for_diagnostics(
        &document,
        2,
        &["8 lockout", "10 absent-field", "10 undefined-field"],
    );
    // The schemas are read again when a file is saved.
    let n_requests = server.requests().len();
    client.notify(
        "textDocument/didSave",
        &json!({"textDocument": {"uri": document}}),
    );
    client.wait_for_diagnostics(
        &document,
        2,
        &["8 lockout", "10 absent-field", "10 undefined-field"],
    );
    assert!(server.requests().len() > n_requests);
    assert_eq!(client.end(), 0);
}

#[test]
fn unreadable_data_of_the_cluster_is_shown() {
    let directory = workspace("gaps", &[("p.yaml", POLICY)]);
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let config = Config::new(CLUSTER).fault(path, 403, "bindings are forbidden");
    let server = ApiServer::start(config);
    let mut client = Client::start_with(&directory, &["--server", &server.url]);
    client.wait_for_text("window/showMessage", "this requires the permission `list`");
    assert_eq!(client.end(), 0);

    // Without a cluster, the session continues with the built-in APIs.
    let mut client = Client::start_with(&directory, &["--server", "http://127.0.0.1:1"]);
    client.wait_for_text(
        "window/showMessage",
        "the built-in APIs of Kubernetes 1.37 are used",
    );
    let document = uri(&directory.join("p.yaml"));
    client.open(&document, &POLICY.replace("replicas", "replcas"));
    client.wait_for_diagnostics(&document, 1, &["9 undefined-field"]);
    assert_eq!(client.end(), 0);
}

#[test]
#[cfg(unix)]
fn credential_program_does_not_read_messages_of_the_editor() {
    let directory = workspace("credentials", &[]);
    let server = ApiServer::start(Config::new(CLUSTER));
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "t"},
    });
    let program = format!("cat > /dev/null; echo '{credential}'");
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", program],
        "interactiveMode": "IfAvailable",
    });
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"exec": exec}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    });
    let path = directory.join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    let mut client = Client::start_with(&directory, &["--kubeconfig", path.to_str().unwrap()]);
    client.wait_for_text("window/logMessage", "version 1.36");
    assert_eq!(client.end(), 0);
}

#[test]
fn server_that_ends_without_shutdown_has_exit_status_1() {
    let directory = workspace("end", &[]);
    let mut client = Client::start(&directory);
    client.notify("exit", &Value::Null);
    assert_eq!(client.server.wait().unwrap().code(), Some(1));
    let mut client = Client::start(&directory);
    client.input = None;
    assert_eq!(client.server.wait().unwrap().code(), Some(1));
}
