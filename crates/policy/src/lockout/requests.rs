//! Sample requests that are essential for a cluster, in the form in which its components send them.
//!
//! Source: `k8s.io/kubernetes` `pkg/kubelet/nodestatus`, `pkg/kubelet/kubelet_node_status.go` (`initialNode`),
//! `k8s.io/component-helpers` `apimachinery/lease/controller.go`, `k8s.io/client-go` `tools/leaderelection`,
//! `plugin/pkg/auth/authorizer/rbac/bootstrappolicy` (the users of the controllers),
//! `pkg/controller/certificates/rootcacertpublisher`.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::admission::{AdmissionRequest, Object, Operation, UserInfo};
use cel::interrupt::shielded;
use kubernetes::defaulting::{self, NOW, Stage, SubresourceRequest, UID};
use kubernetes::schema::{Gvk, Gvr};

/// A request that is essential for a cluster.
pub(super) struct EssentialRequest {
    pub(super) request: AdmissionRequest,
    /// A description of the request, such as `the registration of a node, CREATE of nodes`.
    pub(super) name: &'static str,
    /// True if nodes or the control plane do not work without the request. False if only individual workloads are
    /// affected.
    pub(super) is_vital: bool,
}

/// The namespaces of the requests.
pub(super) const NAMESPACES: [&str; 3] = ["default", "kube-node-lease", "kube-system"];

#[derive(Clone, Copy)]
enum ClusterComponent {
    Node,
    Scheduler,
    ControllerManager,
    Controller(&'static str),
}

impl ClusterComponent {
    fn user(self) -> UserInfo {
        let (username, groups) = match self {
            Self::Node => (
                "system:node:node-1".to_owned(),
                vec!["system:nodes", "system:authenticated"],
            ),
            Self::Scheduler => (
                "system:kube-scheduler".to_owned(),
                vec!["system:authenticated"],
            ),
            Self::ControllerManager => (
                "system:kube-controller-manager".to_owned(),
                vec!["system:authenticated"],
            ),
            Self::Controller(name) => (
                format!("system:serviceaccount:kube-system:{name}"),
                vec![
                    "system:serviceaccounts",
                    "system:serviceaccounts:kube-system",
                    "system:authenticated",
                ],
            ),
        };
        UserInfo {
            username,
            groups: groups.into_iter().map(str::to_owned).collect(),
            ..UserInfo::default()
        }
    }
}

/// Group, version, kind, resource and subresource.
type Resource = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const LEASE: Resource = ("coordination.k8s.io", "v1", "Lease", "leases", "");
const NODE: Resource = ("", "v1", "Node", "nodes", "");
const NODE_STATUS: Resource = ("", "v1", "Node", "nodes", "status");
const EVENT: Resource = ("", "v1", "Event", "events", "");
const CONFIG_MAP: Resource = ("", "v1", "ConfigMap", "configmaps", "");
const POD: Resource = ("", "v1", "Pod", "pods", "");
const POD_STATUS: Resource = ("", "v1", "Pod", "pods", "status");
const BINDING: Resource = ("", "v1", "Binding", "pods", "binding");
const REPLICA_SET: Resource = ("apps", "v1", "ReplicaSet", "replicasets", "");
const SLICE: Resource = (
    "discovery.k8s.io",
    "v1",
    "EndpointSlice",
    "endpointslices",
    "",
);
const TOKEN: Resource = (
    "authentication.k8s.io",
    "v1",
    "TokenRequest",
    "serviceaccounts",
    "token",
);

/// Returns the requests, most important first. They are created once and shared by all policies.
pub(super) fn essential_requests() -> &'static [EssentialRequest] {
    static REQUESTS: LazyLock<Vec<EssentialRequest>> = LazyLock::new(|| shielded(all));
    &REQUESTS
}

#[expect(
    clippy::too_many_lines,
    reason = "a table, with a row for each request"
)]
fn all() -> Vec<EssentialRequest> {
    use Operation::{Create, Delete, Update};
    let lease = |namespace: &str, name: &str| {
        object(
            LEASE,
            namespace,
            name,
            json!({"spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 40,
                "renewTime": "2026-01-01T00:00:00.000000Z",
            }}),
        )
    };
    vec![
        essential(
            "the heartbeat of a node, UPDATE of leases in kube-node-lease",
            (LEASE, Update, ClusterComponent::Node),
            &lease("kube-node-lease", "node-1"),
        ),
        essential(
            "the heartbeat of a node, UPDATE of nodes/status",
            (NODE_STATUS, Update, ClusterComponent::Node),
            &node(),
        ),
        essential(
            "the leader election of the scheduler, UPDATE of leases in kube-system",
            (LEASE, Update, ClusterComponent::Scheduler),
            &lease("kube-system", "kube-scheduler"),
        ),
        essential(
            "the leader election of the controller manager, UPDATE of leases in kube-system",
            (LEASE, Update, ClusterComponent::ControllerManager),
            &lease("kube-system", "kube-controller-manager"),
        ),
        essential(
            "the registration of a node, CREATE of nodes",
            (NODE, Create, ClusterComponent::Node),
            &joining_node(),
        ),
        essential(
            "the scheduling of a pod, CREATE of pods/binding",
            (BINDING, Create, ClusterComponent::Scheduler),
            &object(
                BINDING,
                "kube-system",
                "example",
                json!({"target": {"kind": "Node", "name": "node-1"}}),
            ),
        ),
        essential(
            "the status of a pod, UPDATE of pods/status",
            (POD_STATUS, Update, ClusterComponent::Node),
            &pod(),
        ),
        essential(
            "the final deletion of a pod, DELETE of pods by its kubelet",
            (POD, Delete, ClusterComponent::Node),
            &pod(),
        ),
        essential(
            "the token of a pod, CREATE of serviceaccounts/token",
            (TOKEN, Create, ClusterComponent::Node),
            &object(
                TOKEN,
                "kube-system",
                "example",
                json!({"spec": {
                    "audiences": ["https://kubernetes.default.svc"],
                    "expirationSeconds": 3607,
                    "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "example", "uid": UID},
                }}),
            ),
        ),
        essential(
            "the endpoints of a service, UPDATE of endpointslices",
            (
                SLICE,
                Update,
                ClusterComponent::Controller("endpointslice-controller"),
            ),
            &slice(),
        ),
        essential(
            "an event of the scheduler, CREATE of events",
            (EVENT, Create, ClusterComponent::Scheduler),
            &object(
                EVENT,
                "kube-system",
                "example",
                json!({
                    "involvedObject": {"kind": "Pod", "name": "example", "namespace": "kube-system"},
                    "reason": "Scheduled",
                    "message": "scheduled",
                    "type": "Normal",
                    "source": {"component": "default-scheduler"},
                }),
            ),
        ),
        EssentialRequest {
            is_vital: false,
            ..essential(
                "garbage collection after an owner is deleted, DELETE of replicasets",
                (
                    REPLICA_SET,
                    Delete,
                    ClusterComponent::Controller("generic-garbage-collector"),
                ),
                &replica_set(),
            )
        },
        EssentialRequest {
            is_vital: false,
            ..essential(
                "the deletion of a service's endpoints, DELETE of endpointslices",
                (
                    SLICE,
                    Delete,
                    ClusterComponent::Controller("endpointslice-controller"),
                ),
                &slice(),
            )
        },
        EssentialRequest {
            is_vital: false,
            ..essential(
                "a pod of the cluster network, CREATE of pods in kube-system",
                (
                    POD,
                    Create,
                    ClusterComponent::Controller("daemon-set-controller"),
                ),
                &pod(),
            )
        },
        EssentialRequest {
            is_vital: false,
            ..essential(
                "the certificates of new namespaces, CREATE of the ConfigMap kube-root-ca.crt",
                (
                    CONFIG_MAP,
                    Create,
                    ClusterComponent::Controller("root-ca-cert-publisher"),
                ),
                &root_certificates(),
            )
        },
    ]
}

/// Returns the `ConfigMap` that the controller manager creates in each namespace. Pods in a namespace without it do not
/// start.
///
/// Source: `k8s.io/kubernetes` `pkg/controller/certificates/rootcacertpublisher/publisher.go` (`syncNamespace`).
fn root_certificates() -> Json {
    let mut object = object(
        CONFIG_MAP,
        "default",
        "kube-root-ca.crt",
        json!({"data": {"ca.crt": "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"}}),
    );
    let description = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                       endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                       guaranteed across distributions of Kubernetes clusters.";
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        let annotations = json!({"kubernetes.io/description": description});
        metadata.insert("annotations".to_owned(), annotations);
    }
    object
}

fn essential(
    name: &'static str,
    (resource, operation, component): (Resource, Operation, ClusterComponent),
    object: &Json,
) -> EssentialRequest {
    let (group, version, kind, plural, subresource) = resource;
    let text = |field: &str| {
        let value = object.pointer(&format!("/metadata/{field}"));
        value.and_then(Json::as_str).unwrap_or_default().to_owned()
    };
    let old_object = (operation != Operation::Create).then_some(object);
    let new_object = (operation != Operation::Delete).then_some(object);
    let gvk = Gvk::new(group, version, kind);
    let namespace = text("namespace");
    let [new_object, old_object] = seen(
        &gvk,
        operation,
        (&namespace, subresource),
        [new_object, old_object],
    );
    EssentialRequest {
        request: AdmissionRequest {
            operation,
            gvk,
            // The resource `serviceaccounts/token` is in the core group. Its kind TokenRequest is in another group.
            gvr: Gvr::new(
                if kind == "TokenRequest" { "" } else { group },
                version,
                plural,
            ),
            subresource: subresource.to_owned(),
            name: text("name"),
            namespace,
            object: new_object,
            old_object,
            user_info: component.user(),
            ..AdmissionRequest::default()
        },
        name,
        is_vital: true,
    }
}

/// Returns the objects as admission plugins receive them. Fields that the API server sets are added if their values are
/// known.
fn seen(
    gvk: &Gvk,
    operation: Operation,
    (namespace, subresource): (&str, &str),
    [object, old_object]: [Option<&Json>; 2],
) -> [Option<Object>; 2] {
    let verb = match operation {
        Operation::Create => Some(defaulting::Operation::Create),
        Operation::Update => Some(defaulting::Operation::Update),
        Operation::Delete => Some(defaulting::Operation::Delete),
        Operation::Connect => None,
    };
    let is_status = subresource == "status";
    let prepared = if subresource.is_empty() || is_status {
        verb.and_then(|operation| {
            let request = defaulting::Request {
                operation,
                stage: Stage::Validation,
                gvk,
                custom: None,
                namespace,
                is_status,
                object,
                old_object,
            };
            defaulting::prepare(&request).ok()
        })
    } else {
        let name = object.and_then(|object| object.pointer("/metadata/name"));
        defaulting::subresource(&SubresourceRequest {
            gvk,
            name: name.and_then(Json::as_str).unwrap_or_default(),
            namespace,
            dry_run: false,
            object,
            old_object,
        })
    };
    match prepared {
        Some(prepared) => {
            [prepared.object, prepared.old_object].map(|object| object.as_ref().map(Object::new))
        }
        None => [object, old_object].map(|object| object.map(Object::new)),
    }
}

fn object(resource: Resource, namespace: &str, name: &str, rest: Json) -> Json {
    let (group, version, kind, ..) = resource;
    let mut object = rest;
    let mut metadata = json!({"name": name, "uid": UID, "creationTimestamp": NOW});
    if let (Some(metadata), false) = (metadata.as_object_mut(), namespace.is_empty()) {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    if let Some(fields) = object.as_object_mut() {
        let api_version = Gvk::new(group, version, kind).api_version();
        fields.insert("apiVersion".to_owned(), json!(api_version));
        fields.insert("kind".to_owned(), json!(kind));
        fields.insert("metadata".to_owned(), metadata);
    }
    object
}

fn slice() -> Json {
    object(
        SLICE,
        "default",
        "example",
        json!({
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.2"], "conditions": {"ready": true}}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        }),
    )
}

/// Returns a replica set whose owner, a deployment, no longer exists.
fn replica_set() -> Json {
    object(
        REPLICA_SET,
        "default",
        "example-5d4f8c7b9",
        json!({
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "example"}},
                "template": {
                    "metadata": {"labels": {"app": "example"}},
                    "spec": {
                        "containers": [{
                            "name": "example",
                            "image": "registry.example.com/example:1.0",
                            "imagePullPolicy": "IfNotPresent",
                            "resources": {},
                            "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        }],
                        "dnsPolicy": "ClusterFirst",
                        "restartPolicy": "Always",
                        "schedulerName": "default-scheduler",
                        "securityContext": {},
                        "terminationGracePeriodSeconds": 30,
                    },
                },
            },
            "status": {"replicas": 0},
        }),
    )
}

fn node() -> Json {
    let mut node = object(
        NODE,
        "",
        "node-1",
        json!({
            "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]},
            "status": {
                "capacity": {"cpu": "2", "memory": "4Gi", "pods": "110"},
                "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
                "conditions": [{
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": NOW,
                    "lastTransitionTime": NOW,
                }],
                "addresses": [{"type": "Hostname", "address": "node-1"}],
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": "1",
                    "containerRuntimeVersion": "containerd://2.0.0",
                    "kernelVersion": "6.1.0",
                    "kubeProxyVersion": "",
                    "kubeletVersion": "v1.36.0",
                    "machineID": "1",
                    "operatingSystem": "linux",
                    "osImage": "Linux",
                    "systemUUID": "1",
                },
            },
        }),
    );
    let labels = json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "node-1",
        "kubernetes.io/os": "linux",
    });
    if let Some(metadata) = node.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.insert("labels".to_owned(), labels);
    }
    node
}

/// Returns a node right after its registration. The controller manager has not assigned pod addresses to it yet.
fn joining_node() -> Json {
    let mut node = node();
    if let Some(fields) = node.as_object_mut() {
        fields.insert("spec".to_owned(), json!({}));
    }
    node
}

/// Returns a pod of kube-proxy, as kubeadm deploys it.
fn pod() -> Json {
    let mut pod = object(
        POD,
        "kube-system",
        "kube-proxy-example",
        json!({
            "spec": {
                "containers": [{
                    "name": "kube-proxy",
                    "image": "registry.k8s.io/kube-proxy:v1.36.0",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
                    "resources": {},
                    "securityContext": {"privileged": true},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "volumeMounts": [{"name": "lib-modules", "mountPath": "/lib/modules", "readOnly": true}],
                }],
                "dnsPolicy": "ClusterFirst",
                "enableServiceLinks": true,
                "hostNetwork": true,
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "preemptionPolicy": "PreemptLowerPriority",
                "priority": 2_000_001_000,
                "priorityClassName": "system-node-critical",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "serviceAccount": "kube-proxy",
                "serviceAccountName": "kube-proxy",
                "terminationGracePeriodSeconds": 30,
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "lib-modules", "hostPath": {"path": "/lib/modules", "type": ""}}],
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        }),
    );
    if let Some(metadata) = pod.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.insert("labels".to_owned(), json!({"k8s-app": "kube-proxy"}));
        metadata.insert(
            "ownerReferences".to_owned(),
            json!([{
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": "kube-proxy",
                "uid": UID,
                "controller": true,
                "blockOwnerDeletion": true,
            }]),
        );
    }
    pod
}
