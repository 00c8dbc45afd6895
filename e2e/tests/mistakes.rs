//! Verifies on a real API server the findings of `kubectl vap check` about common mistakes. The witness of each finding
//! is sent as a request, and must get the predicted response.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::ControlPlane;
use e2e::controller::repository;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::values;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The minimum number of decisions. Without it, the test would pass even if decisions were dropped.
const LEAST: usize = 60;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "config_maps")]
    rules: Value,
    spec: Value,
    #[serde(default)]
    bindings: Vec<Value>,
    /// True if the bindings apply to all namespaces. Then no other case may contain requests for the same resources.
    #[serde(default)]
    is_everywhere: bool,
    #[serde(default)]
    objects: Vec<Value>,
    finding: Expected,
    #[serde(default)]
    requests: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    rule: String,
    field: String,
    at: String,
    consequence: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    #[serde(default = "create")]
    operation: String,
    /// The resource, such as `apps/v1/deployments`. The default is the resource in the rules.
    resource: Option<String>,
    object: Value,
    decision: String,
    #[serde(default)]
    says: String,
}

fn create() -> String {
    "CREATE".to_owned()
}

fn config_maps() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}])
}

fn cases() -> Vec<Case> {
    let path = repository().join("e2e/mistakes/cases.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    values(&text)
        .into_iter()
        .map(|document| serde_json::from_value(document.unwrap()).unwrap())
        .collect()
}

/// The resource and namespace of a URL path.
#[derive(Clone, Debug)]
struct Resource {
    api_version: String,
    name: String,
    namespace: Option<String>,
}

impl Resource {
    /// The cluster-scoped resources in the cases.
    const CLUSTER_SCOPED: [&str; 3] = [
        "clusterroles",
        "priorityclasses",
        "validatingadmissionpolicybindings",
    ];

    fn new(group: &str, version: &str, name: &str, namespace: &str) -> Self {
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        Self {
            api_version,
            name: name.to_owned(),
            namespace: (!Self::CLUSTER_SCOPED.contains(&name)).then(|| namespace.to_owned()),
        }
    }

    fn path(&self) -> String {
        let root = if self.api_version.contains('/') {
            "apis"
        } else {
            "api"
        };
        let within = self.namespace.as_ref();
        let within = within
            .map(|name| format!("/namespaces/{name}"))
            .unwrap_or_default();
        format!("/{root}/{}{within}/{}", self.api_version, self.name)
    }

    /// Returns the object for a request: in the namespace of the case, and without fields that the API server sets.
    fn sent(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let kinds = [
            ("configmaps", "ConfigMap"),
            ("deployments", "Deployment"),
            ("pods", "Pod"),
            ("serviceaccounts", "ServiceAccount"),
            ("clusterroles", "ClusterRole"),
            (
                "validatingadmissionpolicybindings",
                "ValidatingAdmissionPolicyBinding",
            ),
        ];
        if object.get("kind").is_none() {
            let kind = kinds.iter().find(|(name, _)| *name == self.name);
            object["kind"] = json!(kind.unwrap().1);
            object["apiVersion"] = json!(self.api_version);
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        for set in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
            "generation",
        ] {
            metadata.remove(set);
        }
        if let Some(namespace) = &self.namespace {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        object
    }
}

#[derive(Debug)]
struct Sent {
    case: String,
    operation: String,
    resource: Resource,
    object: Value,
    /// The `extra` of the user who sends the request.
    extra: Value,
    is_denied: bool,
    says: String,
}

#[derive(Debug, Default)]
struct Prepared {
    policy: Value,
    bindings: Vec<Value>,
    /// Objects that must exist before the requests.
    before: Vec<(Resource, Value)>,
    requests: Vec<Sent>,
}

impl Case {
    /// Returns a case with a policy for `ConfigMap` objects.
    fn new(name: &str, spec: Value) -> Self {
        Self {
            name: name.to_owned(),
            rules: config_maps(),
            spec,
            bindings: Vec::new(),
            is_everywhere: false,
            objects: Vec::new(),
            finding: Expected {
                rule: String::new(),
                field: String::new(),
                at: String::new(),
                consequence: None,
            },
            requests: Vec::new(),
        }
    }

    fn namespace(&self) -> String {
        format!("of-{}", self.name)
    }

    fn policy(&self) -> Value {
        let mut spec = self.spec.clone();
        spec["matchConstraints"] = json!({"resourceRules": self.rules});
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.name}, "spec": spec,
        })
    }

    fn bindings(&self) -> Vec<Value> {
        let mut specs = self.bindings.clone();
        if specs.is_empty() {
            specs.push(json!({"validationActions": ["Deny"]}));
        }
        let binding = |(n, mut spec): (usize, Value)| {
            if spec.get("policyName").is_none() {
                spec["policyName"] = json!(self.name);
            }
            if !self.is_everywhere {
                spec["matchResources"]["namespaceSelector"] =
                    json!({"matchLabels": {"kubernetes.io/metadata.name": self.namespace()}});
            }
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": format!("{}-{n}", self.name)}, "spec": spec,
            })
        };
        specs.into_iter().enumerate().map(binding).collect()
    }

    /// Writes the manifests to a file. Returns the content of the file and the findings.
    fn findings(&self, folder: &Path) -> (String, Vec<Value>) {
        let objects = std::iter::once(self.policy()).chain(self.bindings());
        let texts: Vec<_> = objects
            .map(|object| serde_json::to_string_pretty(&object).unwrap())
            .collect();
        let text = texts.join("\n---\n");
        let path = folder.join(format!("{}.yaml", self.name));
        std::fs::write(&path, &text).unwrap();
        let options = Options {
            paths: vec![path],
            ..Options::default()
        };
        let report = check::run(&options, &mut std::io::empty()).unwrap();
        let report = serde_json::to_value(&report).unwrap();
        (text, report["findings"].as_array().unwrap().clone())
    }

    /// Returns the expected finding. The error contains the actual findings.
    fn finding(&self, folder: &Path) -> Result<Value, String> {
        let (text, findings) = self.findings(folder);
        let is_expected = |finding: &&Value| {
            let line = finding["line"].as_u64().unwrap_or(1);
            let column = finding["column"].as_u64().unwrap_or(1);
            let line = text
                .lines()
                .nth(usize::try_from(line - 1).unwrap())
                .unwrap();
            let at: String = line
                .chars()
                .skip(usize::try_from(column - 1).unwrap())
                .collect();
            finding["rule"] == json!(self.finding.rule)
                && finding["fieldRef"] == json!(self.finding.field)
                && at.trim_start_matches('"').starts_with(&self.finding.at)
                && finding["consequence"]["id"].as_str() == self.finding.consequence.as_deref()
        };
        let expected = findings.iter().find(is_expected);
        expected.cloned().ok_or_else(|| {
            let reported = findings.iter().map(|finding| {
                let part = |name: &str| finding[name].to_string();
                [
                    part("rule"),
                    part("fieldRef"),
                    part("column"),
                    part("consequence"),
                ]
                .join(" ")
            });
            let reported: Vec<_> = reported.collect();
            format!(
                "{}: {:?} is not among {reported:#?}",
                self.name, self.finding
            )
        })
    }

    /// Returns the resource with this name. The default is the resource in the rules.
    fn resource(&self, name: Option<&str>) -> Resource {
        if let Some(name) = name {
            let parts: Vec<&str> = name.split('/').collect();
            return match *parts {
                [group, version, name] => Resource::new(group, version, name, &self.namespace()),
                [version, name] => Resource::new("", version, name, &self.namespace()),
                _ => panic!("{name}"),
            };
        }
        let rule = &self.rules[0];
        let text = |field: &str| rule[field][0].as_str().unwrap();
        let name = match text("resources") {
            // In one case, the rules misspell the resource.
            "configmap" => "configmaps",
            name => name,
        };
        Resource::new(
            text("apiGroups"),
            text("apiVersions"),
            name,
            &self.namespace(),
        )
    }

    fn prepare(&self, folder: &Path) -> Result<Prepared, String> {
        let mut prepared = Prepared {
            policy: self.policy(),
            bindings: self.bindings(),
            ..Prepared::default()
        };
        let finding = self.finding(folder)?;
        let resource = self.resource(None);
        for object in &self.objects {
            prepared
                .before
                .push((resource.clone(), resource.sent(object)));
        }
        for sample in &self.requests {
            let resource = self.resource(sample.resource.as_deref());
            let is_denied = match &*sample.decision {
                "denied" => true,
                "allowed" => false,
                other => panic!("{}: {other}", self.name),
            };
            prepared.requests.push(Sent {
                case: self.name.clone(),
                operation: sample.operation.clone(),
                object: resource.sent(&sample.object),
                resource,
                extra: Value::Null,
                is_denied,
                says: sample.says.clone(),
            });
        }
        if let Some(witness) = finding.get("witness") {
            self.add_witness(&finding, witness, &mut prepared);
        }
        if prepared.requests.is_empty() {
            return Err(format!("{}: no witness, and no request", self.name));
        }
        Ok(prepared)
    }

    /// Adds the request of a finding's witness, and the predicted response.
    fn add_witness(&self, finding: &Value, witness: &Value, prepared: &mut Prepared) {
        let request = &witness["request"];
        let of_resource = |field: &str| request["resource"][field].as_str().unwrap_or_default();
        let resource = Resource::new(
            of_resource("group"),
            of_resource("version"),
            of_resource("resource"),
            &self.namespace(),
        );
        let operation = request["operation"].as_str().unwrap();
        if operation != "CREATE" {
            let old = resource.sent(&request["oldObject"]);
            prepared.before.push((resource.clone(), old));
        }
        let reference = &prepared.bindings[0]["spec"]["paramRef"]["name"];
        if let (Some(params), Some(name)) = (witness.get("params"), reference.as_str()) {
            let mut params = params.clone();
            params["metadata"]["name"] = json!(name);
            let of_params = Resource::new("", "v1", "configmaps", &self.namespace());
            let params = of_params.sent(&params);
            prepared.before.push((of_params, params));
        }
        let object = match operation {
            "DELETE" => &request["oldObject"],
            _ => &request["object"],
        };
        let error = witness["error"].as_str().unwrap();
        let (is_denied, says) = match finding["consequence"]["id"].as_str() {
            // A finding about a binding has no consequence. Its help contains the prediction.
            Some("denied") | None => (true, error.to_owned()),
            Some("other-message") => {
                let validation = &self.spec["validations"][0];
                let message = validation["message"].as_str();
                (true, message.unwrap_or("failed expression").to_owned())
            }
            Some("let-through" | "no-annotation") => (false, String::new()),
            Some(other) => panic!("{}: {other}", self.name),
        };
        prepared.requests.push(Sent {
            case: self.name.clone(),
            operation: operation.to_owned(),
            object: resource.sent(object),
            resource,
            extra: request["userInfo"]["extra"].clone(),
            is_denied,
            says,
        });
    }
}

/// Sends a request as an administrator with the given user `extra`.
async fn send(
    client: &Client,
    (method, path): (&str, &str),
    body: Option<&Value>,
    extra: &Value,
) -> (u16, Value) {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    if let Some(extra) = extra.as_object() {
        request = request
            .header("Impersonate-User", "example")
            .header("Impersonate-Group", "system:masters");
        for (key, values) in extra {
            let name = format!("Impersonate-Extra-{}", key.replace('/', "%2f"));
            let values = values.as_array().unwrap().iter().filter_map(Value::as_str);
            let values: Vec<_> = values.collect();
            // An impersonation header always has a value. A key without values gets an empty value.
            let values = if values.is_empty() { vec![""] } else { values };
            for value in values {
                request = request.header(&name, value);
            }
        }
    }
    let request = request
        .body(kube::client::Body::from(body.into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

async fn post(client: &Client, path: &str, object: &Value) {
    let (status, answer) = send(client, ("POST", path), Some(object), &Value::Null).await;
    assert_eq!(status, 201, "{path}: {answer}: {object}");
}

impl Sent {
    async fn dry_run(&self, client: &Client) -> (u16, String) {
        let of = self.resource.path();
        let name = self.object["metadata"]["name"].as_str().unwrap();
        let (method, path, body) = match &*self.operation {
            "CREATE" => ("POST", of, Some(&self.object)),
            "UPDATE" => ("PUT", format!("{of}/{name}"), Some(&self.object)),
            "DELETE" => ("DELETE", format!("{of}/{name}"), None),
            other => panic!("{other}"),
        };
        let path = format!("{path}?dryRun=All");
        let (status, answer) = send(client, (method, &path), body, &self.extra).await;
        // If several policies deny the request, the response contains the first message. The other messages are in the
        // causes.
        let causes = answer["details"]["causes"].as_array();
        let causes = causes.into_iter().flatten().map(|cause| &cause["message"]);
        let texts = std::iter::once(&answer["message"]).chain(causes);
        let texts: Vec<_> = texts.filter_map(Value::as_str).collect();
        (status, texts.join("; "))
    }

    /// Returns true if the finding predicts this response.
    fn is_met(&self, (status, message): &(u16, String)) -> bool {
        if self.is_denied {
            *status >= 400
                && message.contains(&format!("ValidatingAdmissionPolicy '{}'", self.case))
                && message.contains(&self.says)
        } else {
            *status < 300
        }
    }

    /// Describes the difference from the prediction, if any. Retries, because the API server observes policies and
    /// params with a delay of a second.
    async fn difference(&self, client: &Client) -> Option<String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let answer = self.dry_run(client).await;
            if self.is_met(&answer) {
                return None;
            }
            if Instant::now() > deadline {
                return Some(format!("{self:?}\n  got {answer:?}"));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Waits until the API server enforces the policies. The API server loads all policies at once, so waiting for the last policy is
/// enough.
async fn enforced(client: &Client) {
    let resource = Resource::new("", "v1", "configmaps", "of-last");
    let sent = Sent {
        case: "last".to_owned(),
        operation: create(),
        object: resource.sent(&json!({"metadata": {"name": "a"}})),
        resource,
        extra: Value::Null,
        is_denied: true,
        says: "the last policy".to_owned(),
    };
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let answer = sent.dry_run(client).await;
        if sent.is_met(&answer) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "no policy is enforced: {answer:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_predict_results_of_the_api_server() {
    let cases = cases();
    let folder = tempfile::tempdir().unwrap();
    let mut prepared = Vec::new();
    let mut missed = Vec::new();
    for case in &cases {
        match case.prepare(folder.path()) {
            Ok(case) => prepared.push(case),
            Err(why) => missed.push(why),
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));

    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let names = cases.iter().map(Case::namespace);
    for name in names.chain(["of-last".to_owned(), "of-endless".to_owned()]) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        post(&client, "/api/v1/namespaces", &namespace).await;
    }
    for (resource, object) in prepared.iter().flat_map(|case| &case.before) {
        post(&client, &resource.path(), object).await;
    }
    let api = "/apis/admissionregistration.k8s.io/v1";
    let last = Case::new(
        "last",
        json!({"validations": [{"expression": "false", "message": "the last policy"}]}),
    );
    let all = prepared
        .iter()
        .map(|case| (case.policy.clone(), case.bindings.clone()));
    for (policy, bindings) in all.chain([(last.policy(), last.bindings())]) {
        post(
            &client,
            &format!("{api}/validatingadmissionpolicies"),
            &policy,
        )
        .await;
        for binding in bindings {
            post(
                &client,
                &format!("{api}/validatingadmissionpolicybindings"),
                &binding,
            )
            .await;
        }
    }
    enforced(&client).await;

    let requests: Vec<&Sent> = prepared.iter().flat_map(|case| &case.requests).collect();
    let mut differences = Vec::new();
    for sent in &requests {
        differences.extend(sent.difference(&client).await);
    }
    println!(
        "{} decisions over {} policies, {} denied, {} otherwise than the findings say",
        requests.len(),
        cases.len(),
        requests.iter().filter(|sent| sent.is_denied).count(),
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(requests.len() >= LEAST, "{} decisions", requests.len());

    crashes_api_server(&control_plane, &client, folder.path()).await;
}

/// The API server accepts a variable that refers to itself through `dyn`. The evaluation overflows the stack, and the
/// process of the API server ends. The check must report the variable as unsafe.
async fn crashes_api_server(control_plane: &ControlPlane, client: &Client, folder: &Path) {
    let case = Case::new(
        "endless",
        json!({
            "variables": [{"name": "x", "expression": "dyn(variables).x"}],
            "validations": [{"expression": "variables.x == 1"}],
        }),
    );
    let (_, findings) = case.findings(folder);
    let is_unsafe = |finding: &Value| finding["rule"] == json!("unsafe-expression");
    assert!(findings.iter().any(is_unsafe), "{findings:#?}");
    let api = "/apis/admissionregistration.k8s.io/v1";
    post(
        client,
        &format!("{api}/validatingadmissionpolicies"),
        &case.policy(),
    )
    .await;
    for binding in case.bindings() {
        post(
            client,
            &format!("{api}/validatingadmissionpolicybindings"),
            &binding,
        )
        .await;
    }
    let resource = case.resource(None);
    let object = resource
        .sent(&json!({"metadata": {"name": "a"}}))
        .to_string();
    let api_server = control_plane.api_server().unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !api_server
        .log()
        .unwrap()
        .contains("goroutine stack exceeds")
    {
        assert!(Instant::now() < deadline, "the API server is still running");
        let request = Request::post(format!("{}?dryRun=All", resource.path()))
            .header("content-type", "application/json")
            .body(kube::client::Body::from(object.clone().into_bytes()))
            .unwrap();
        // The API server's process ends without a response.
        let _ = client.send(request).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
