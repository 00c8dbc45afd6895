//! An API server on a local port, for tests of commands that read a cluster. It serves the objects of a YAML file.
//!
//! The server implements discovery, OpenAPI v3, lists with pages and selectors, and single objects. Tests choose its
//! versions, pages and failures. End-to-end tests use a real API server.

#![allow(
    clippy::indexing_slicing,
    reason = "a test fails if a fixture lacks a field"
)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http::{Request, Response, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

struct Resource {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    is_namespaced: bool,
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const STATUS: &str = "vap-status.dev";

const fn resource(
    (group, version): (&'static str, &'static str),
    plural: &'static str,
    kind: &'static str,
    is_namespaced: bool,
) -> Resource {
    Resource {
        group,
        version,
        plural,
        kind,
        is_namespaced,
    }
}

const RESOURCES: [Resource; 17] = [
    resource(("", "v1"), "namespaces", "Namespace", false),
    resource(("", "v1"), "configmaps", "ConfigMap", true),
    resource(("", "v1"), "pods", "Pod", true),
    resource(("apps", "v1"), "deployments", "Deployment", true),
    resource(("coordination.k8s.io", "v1"), "leases", "Lease", true),
    resource(
        (ADMISSION, "v1"),
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        false,
    ),
    resource(
        (ADMISSION, "v1"),
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        false,
    ),
    resource(
        (ADMISSION, "v1"),
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        false,
    ),
    resource(
        (ADMISSION, "v1"),
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        false,
    ),
    resource(
        (ADMISSION, "v1"),
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        false,
    ),
    resource(
        (ADMISSION, "v1"),
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        false,
    ),
    resource(
        ("apiextensions.k8s.io", "v1"),
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
    ),
    resource(
        (STATUS, "v1alpha1"),
        "mutatingadmissionpolicystatuses",
        "MutatingAdmissionPolicyStatus",
        false,
    ),
    resource(
        (STATUS, "v1alpha1"),
        "validatingwebhookconfigurationstatuses",
        "ValidatingWebhookConfigurationStatus",
        false,
    ),
    resource(
        (STATUS, "v1alpha1"),
        "mutatingwebhookconfigurationstatuses",
        "MutatingWebhookConfigurationStatus",
        false,
    ),
    resource(
        (STATUS, "v1alpha1"),
        "customresourcedefinitionstatuses",
        "CustomResourceDefinitionStatus",
        false,
    ),
    resource(
        ("rules.example.com", "v1"),
        "replicalimits",
        "ReplicaLimit",
        true,
    ),
];

#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The path of the requests that fail. A `*` at the end matches all paths with this prefix.
    pub(crate) path: &'static str,
    pub(crate) status: u16,
    pub(crate) message: &'static str,
}

impl Fault {
    fn matches(&self, path: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.path,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) objects: Vec<Value>,
    /// The major and minor version in the response of `/version`.
    pub(crate) version: (&'static str, &'static str),
    pub(crate) faults: Vec<Fault>,
    /// The maximum number of objects in a page. It also applies if a request asks for more.
    pub(crate) page_size: usize,
}

impl Config {
    /// Creates the configuration of a server. Its version is 1.36, and its objects are those of the YAML `objects`.
    pub(crate) fn new(objects: &str) -> Self {
        let documents = objects.split("\n---\n");
        let parse = |text: &str| goyaml::to_json(text).unwrap();
        Self {
            objects: documents.map(parse).collect(),
            version: ("1", "36"),
            faults: Vec::new(),
            page_size: 500,
        }
    }

    pub(crate) fn fault(mut self, path: &'static str, status: u16, message: &'static str) -> Self {
        self.faults.push(Fault {
            path,
            status,
            message,
        });
        self
    }
}

/// A server that runs until the test program ends.
pub(crate) struct ApiServer {
    /// The address, such as `http://127.0.0.1:40000`.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    pub(crate) fn start(config: Config) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::default();
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .unwrap()
                .block_on(accept(listener, Arc::new(config), log));
        });
        Self { url, requests }
    }

    /// Returns the paths and queries of all requests, sorted.
    pub(crate) fn requests(&self) -> Vec<String> {
        let mut requests = self.requests.lock().unwrap().clone();
        requests.sort();
        requests
    }
}

/// Serves each connection in its own task. Never returns.
async fn accept(listener: TcpListener, config: Arc<Config>, log: Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (config, log) = (Arc::clone(&config), Arc::clone(&log));
        let service = service_fn(move |request: Request<Incoming>| {
            let response = serve(&request, &config, &log);
            async { Ok::<_, Infallible>(response) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// Logs a request and returns the response.
fn serve(
    request: &Request<Incoming>,
    config: &Config,
    log: &Mutex<Vec<String>>,
) -> Response<Full<Bytes>> {
    let uri = request.uri();
    log.lock().unwrap().push(uri.to_string());
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept.map_or("", |accept| accept.to_str().unwrap());
    let fault = config.faults.iter().find(|fault| fault.matches(uri.path()));
    let (status, body) = match fault {
        Some(fault) => (fault.status, failure(fault.status, fault.message)),
        None => {
            let query = parameters(uri.query().unwrap_or_default());
            respond(config, uri.path(), &query, accept)
        }
    };
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json");
    response.body(Full::from(body)).unwrap()
}

/// Parses a query. Decodes only `%3D`, `%2C`, `%2F` and `+`.
fn parameters(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let decode = |text: &str| {
        text.replace('+', " ")
            .replace("%3D", "=")
            .replace("%2C", ",")
            .replace("%2F", "/")
    };
    pairs
        .map(|(name, value)| (name.to_owned(), decode(value)))
        .collect()
}

fn failure(status: u16, message: &str) -> String {
    let reason = match status {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "InternalError",
    };
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason,
        "code": status})
    .to_string()
}

fn respond(
    config: &Config,
    path: &str,
    query: &BTreeMap<String, String>,
    accept: &str,
) -> (u16, String) {
    let (major, minor) = config.version;
    match path {
        "/version" => {
            let version = format!("v{major}.{minor}.0");
            (
                200,
                json!({"major": major, "minor": minor, "gitVersion": version}).to_string(),
            )
        }
        "/api" => (200, discovery(str::is_empty).to_string()),
        "/apis" => (200, discovery(|group| !group.is_empty()).to_string()),
        "/openapi/v3" => (200, index().to_string()),
        _ => {
            if let Some(document) = path.strip_prefix("/openapi/v3/") {
                let file = document.replace('/', "__") + "_openapi.json";
                let read = std::fs::read_to_string(openapi_dir().join(file));
                return (
                    200,
                    read.unwrap_or_else(|_| custom_document(config, document)),
                );
            }
            resources(config, path, query, accept)
        }
    }
}

fn openapi_dir() -> PathBuf {
    crate::support::openapi_dir()
}

fn discovery(has_group: impl Fn(&str) -> bool) -> Value {
    let mut groups: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
    for resource in RESOURCES.iter().filter(|it| has_group(it.group)) {
        let served = groups
            .entry((resource.group, resource.version))
            .or_default();
        served.push(json!({
            "resource": resource.plural,
            "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "scope": if resource.is_namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": resource.kind.to_lowercase(),
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        }));
    }
    let items = groups.into_iter().map(|((group, version), resources)| {
        json!({
            "metadata": {"name": group},
            "versions": [{"version": version, "resources": resources, "freshness": "Current"}],
        })
    });
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items.collect::<Vec<_>>()})
}

/// Returns the OpenAPI document of a group version, with the schemas of its CustomResourceDefinitions.
fn custom_document(config: &Config, document: &str) -> String {
    let mut schemas = serde_json::Map::new();
    for crd in config
        .objects
        .iter()
        .filter(|it| it["kind"] == "CustomResourceDefinition")
    {
        let (group, kind) = (&crd["spec"]["group"], &crd["spec"]["names"]["kind"]);
        for version in crd["spec"]["versions"].as_array().unwrap() {
            let name = &version["name"];
            let path = format!(
                "apis/{}/{}",
                group.as_str().unwrap(),
                name.as_str().unwrap()
            );
            if path != document {
                continue;
            }
            let mut schema = version["schema"]["openAPIV3Schema"].clone();
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": group, "version": name, "kind": kind}]);
            for field in ["apiVersion", "kind"] {
                schema["properties"][field] = json!({"type": "string"});
            }
            schema["properties"]["metadata"] = json!({"type": "object"});
            schemas.insert(format!("{document}.{}", kind.as_str().unwrap()), schema);
        }
    }
    json!({"openapi": "3.0.0", "info": {}, "paths": {}, "components": {"schemas": schemas}})
        .to_string()
}

fn index() -> Value {
    let paths = RESOURCES.iter().map(|resource| {
        let path = match resource.group {
            "" => format!("api/{}", resource.version),
            group => format!("apis/{group}/{}", resource.version),
        };
        let address = json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash=1")});
        (path, address)
    });
    json!({"paths": paths.collect::<BTreeMap<_, _>>()})
}

fn resources(
    config: &Config,
    path: &str,
    query: &BTreeMap<String, String>,
    accept: &str,
) -> (u16, String) {
    let steps: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, version, mut rest) = match steps.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => {
            return (
                404,
                failure(404, "the server could not find the requested resource"),
            );
        }
    };
    let mut namespace = None;
    if let ["namespaces", name, of_namespace @ ..] = rest
        && !of_namespace.is_empty()
    {
        namespace = Some(*name);
        rest = of_namespace;
    }
    let plural = rest.first().copied().unwrap_or_default();
    let served = RESOURCES
        .iter()
        .find(|it| (it.group, it.version, it.plural) == (group, version, plural));
    let Some(served) = served else {
        return (
            404,
            failure(404, "the server could not find the requested resource"),
        );
    };
    let text = |object: &Value, pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let mut objects: Vec<&Value> = config.objects.iter().collect();
    objects.retain(|object| {
        let group_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        text(object, "/apiVersion") == Some(group_version)
            && text(object, "/kind").as_deref() == Some(served.kind)
            && namespace
                .is_none_or(|name| text(object, "/metadata/namespace").as_deref() == Some(name))
    });
    if let Some(name) = rest.get(1) {
        let named = objects
            .iter()
            .find(|it| text(it, "/metadata/name").as_deref() == Some(name));
        let missing = || {
            let message = format!("{plural} \"{name}\" not found");
            let mut status: Value = serde_json::from_str(&failure(404, &message)).unwrap();
            status["details"] = json!({"name": name, "group": group, "kind": plural});
            (404, status.to_string())
        };
        return named.map_or_else(missing, |it| (200, it.to_string()));
    }
    select(&mut objects, query);
    let start: usize = query
        .get("continue")
        .map_or(0, |token| token.parse().unwrap());
    let limit: usize = query
        .get("limit")
        .map_or(usize::MAX, |limit| limit.parse().unwrap());
    let end = start
        .saturating_add(limit.min(config.page_size))
        .min(objects.len());
    let token = if end < objects.len() {
        end.to_string()
    } else {
        String::new()
    };
    let is_metadata = accept.contains("as=PartialObjectMetadata");
    // As on a real API server, items have no apiVersion and kind.
    let items = objects[start..end].iter().map(|object| {
        if is_metadata {
            return json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]});
        }
        let mut object = (*object).clone();
        let fields = object.as_object_mut().unwrap();
        fields.remove("apiVersion");
        fields.remove("kind");
        object
    });
    let items: Vec<Value> = items.collect();
    let list = json!({
        "apiVersion": if is_metadata { "meta.k8s.io/v1".to_owned() } else { path_version(group, version) },
        "kind": if is_metadata { "PartialObjectMetadataList".to_owned() } else { format!("{}List", served.kind) },
        "metadata": {"resourceVersion": "100", "continue": token},
        "items": items,
    });
    (200, list.to_string())
}

/// Removes the objects that the query's selectors do not match.
fn select(objects: &mut Vec<&Value>, query: &BTreeMap<String, String>) {
    let text = |object: &Value, pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    if let Some(selector) = query.get("labelSelector") {
        objects.retain(|object| {
            selector.split(',').all(|pair| {
                let (key, value) = pair.split_once('=').unwrap();
                object
                    .pointer("/metadata/labels")
                    .and_then(|labels| labels.get(key))
                    == Some(&json!(value))
            })
        });
    }
    if let Some(name) = query
        .get("fieldSelector")
        .and_then(|it| it.strip_prefix("metadata.name="))
    {
        objects.retain(|object| text(object, "/metadata/name").as_deref() == Some(name));
    }
}

fn path_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}
