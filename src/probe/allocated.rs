//! Fields that an API server sets from cluster state: the addresses and ports of a Service, and the status of a Scale.
//!
//! The paths of these fields in a sample object are unknown values: a case whose policy reads such a field has no
//! decision ([`super::unknown_defaults`]).
//!
//! Source: `k8s.io/kubernetes` `pkg/registry/core/service/storage/storage.go` (`beginCreate`, `normalizeClusterIPs`),
//! `alloc.go` (`allocateCreate`, `initIPFamilyFields`, `allocHealthCheckNodePort`), which run before policies are
//! evaluated; `pkg/registry/apps/deployment/storage/storage.go` (`scaleFromDeployment`).

use serde_json::Value;

use crate::policy::reads::fields::{AccessKind, FieldRead, Step};
use crate::schema::Gvk;

/// Returns the reason why the API server's values of some fields of the kind `gvk` are unknown.
pub(super) fn why(gvk: &Gvk) -> &'static str {
    match &*gvk.kind {
        "Scale" => {
            "a Scale is created from the status of the scaled object, which the request does not contain"
        }
        _ => {
            "addresses and node ports of a Service are allocated in the cluster before policies are evaluated"
        }
    }
}

/// Returns the paths of the fields of `object` that an API server sets from cluster state.
pub(super) fn open(gvk: &Gvk, object: &Value) -> Vec<Vec<Step>> {
    match (&*gvk.group, &*gvk.kind) {
        ("", "Service") => service_paths(object),
        ("autoscaling", "Scale") => scale_paths(object),
        _ => Vec::new(),
    }
}

fn to_steps(names: &[&str]) -> Vec<Step> {
    let steps = names.iter().map(|name| Step::Field((*name).to_owned()));
    steps.collect()
}

/// Returns the path `status.selector` if the Scale has no selector. An absent `status.replicas` is known to be 0.
fn scale_paths(object: &Value) -> Vec<Vec<Step>> {
    let has_selector = object.pointer("/status/selector").is_some();
    let open = (!has_selector).then(|| to_steps(&["status", "selector"]));
    open.into_iter().collect()
}

fn service_paths(object: &Value) -> Vec<Vec<Step>> {
    let field = |name: &str| object.get("spec").and_then(|spec| spec.get(name));
    let text = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default();
    let is_given = |name: &str| match field(name) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Number(number)) => number.as_i64() != Some(0),
        _ => false,
    };
    let type_ = text("type");
    if type_ == "ExternalName" {
        return Vec::new();
    }
    let is_single = text("ipFamilyPolicy") == "SingleStack";
    let mut names = Vec::new();
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        // With two IP families, the API server adds a second address and family to these lists.
        let may_grow = name.ends_with('s') && !is_single && is_given("ipFamilyPolicy");
        if !is_given(name) || may_grow {
            names.push(name);
        }
    }
    let is_balanced = type_ == "LoadBalancer";
    if is_balanced && text("externalTrafficPolicy") == "Local" && !is_given("healthCheckNodePort") {
        names.push("healthCheckNodePort");
    }
    let mut open: Vec<Vec<Step>> = names.iter().map(|name| to_steps(&["spec", name])).collect();
    let allocates = field("allocateLoadBalancerNodePorts").and_then(Value::as_bool) != Some(false);
    if type_ == "NodePort" || (is_balanced && allocates) {
        let ports = field("ports")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut numbers = ports.map(|port| port.get("nodePort").and_then(Value::as_i64));
        if numbers.any(|number| number.unwrap_or_default() == 0) {
            let mut path: Vec<Step> = to_steps(&["spec", "ports"]);
            path.extend([Step::Each, Step::Field("nodePort".to_owned())]);
            open.push(path);
        }
    }
    open
}

/// Returns true if the unknown value at `path` affects the result of `read`.
pub(super) fn affects(path: &[Step], read: &FieldRead) -> bool {
    let may_equal = |(a, b): (&Step, &Step)| a == b || *a == Step::Each || *b == Step::Each;
    if !read.path.iter().zip(path).all(may_equal) {
        return false;
    }
    match (path.len().saturating_sub(read.path.len()), read.access) {
        (0, _) | (_, AccessKind::Whole) | (1, AccessKind::Elements) => true,
        (_, AccessKind::Elements | AccessKind::Presence) => false,
    }
}
