//! Fields that an API server sets from cluster state: the addresses and ports of a Service, and the status of a Scale.
//!
//! The values of these fields are unknown unless the sample object sets them. A case has no decision if its policy
//! reads an unknown field ([`super::unknown_defaults`]).
//!
//! Source: `k8s.io/kubernetes` `pkg/registry/core/service/storage/storage.go` (`beginCreate`, `normalizeClusterIPs`),
//! `alloc.go` (`allocateCreate`, `initIPFamilyFields`, `allocHealthCheckNodePort`), which run before policies are
//! evaluated; `pkg/registry/apps/deployment/storage/storage.go` (`scaleFromDeployment`).

use serde_json::Value;

use crate::policy::reads::fields::{AccessKind, FieldRead, Step};
use crate::schema::Gvk;

/// Returns the reason why the values that the API server sets in objects of a kind are unknown.
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

/// The path `status.selector` is unknown if the sample has no selector. An absent `status.replicas` is 0.
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
        // With two IP families, the API server adds a second item to these lists.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(path: &[Step]) -> String {
        let read = FieldRead {
            is_old: false,
            path: path.to_vec(),
            access: AccessKind::Whole,
        };
        read.to_string()
    }

    fn opened(group: &str, kind: &str, object: &Value) -> Vec<String> {
        let paths = open(&Gvk::new(group, "v1", kind), object);
        paths.iter().map(|path| shown(path)).collect()
    }

    #[test]
    fn absent_service_fields_that_the_api_server_allocates_are_unknown() {
        const ADDRESSES: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
        let given = json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
                           "ipFamilyPolicy": "SingleStack"});
        let with = |more: Value| {
            let mut spec = given.clone();
            let fields = spec.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            spec
        };
        let ports = |ports: Value| json!({"type": "NodePort", "ports": ports});
        let local = |type_: &str, port: Value| {
            with(json!({"type": type_, "externalTrafficPolicy": "Local",
                        "healthCheckNodePort": port, "ports": []}))
        };
        let table: Vec<(Value, Vec<&str>)> = vec![
            (json!({}), ADDRESSES.into()),
            (json!({"type": "ExternalName"}), vec![]),
            (
                json!({"clusterIP": "", "clusterIPs": [], "ipFamilies": null, "ipFamilyPolicy": ""}),
                ADDRESSES.into(),
            ),
            (with(json!({})), vec![]),
            // The API server may add a second family.
            (
                with(json!({"ipFamilyPolicy": "PreferDualStack"})),
                vec!["clusterIPs", "ipFamilies"],
            ),
            // Without ipFamilyPolicy, the API server does not add items to the lists.
            (
                with(json!({"ipFamilyPolicy": null})),
                vec!["ipFamilyPolicy"],
            ),
            (with(ports(json!([{"nodePort": 30000}]))), vec![]),
            (
                with(ports(json!([{"nodePort": 30000}, {"nodePort": 0}]))),
                vec!["ports[*].nodePort"],
            ),
            (
                with(ports(json!([{"port": 80}]))),
                vec!["ports[*].nodePort"],
            ),
            (
                with(json!({"type": "ClusterIP", "ports": [{"port": 80}]})),
                vec![],
            ),
            (
                with(json!({"type": "LoadBalancer", "ports": [{"port": 80}]})),
                vec!["ports[*].nodePort"],
            ),
            (
                with(json!({"type": "LoadBalancer", "ports": [{"port": 80}],
                            "allocateLoadBalancerNodePorts": false})),
                vec![],
            ),
            (
                with(json!({"type": "NodePort", "ports": [{"port": 80}],
                            "allocateLoadBalancerNodePorts": false})),
                vec!["ports[*].nodePort"],
            ),
            (
                local("LoadBalancer", Value::Null),
                vec!["healthCheckNodePort"],
            ),
            (local("LoadBalancer", json!(0)), vec!["healthCheckNodePort"]),
            (local("LoadBalancer", json!(30001)), vec![]),
            (local("NodePort", Value::Null), vec![]),
            (
                with(json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster"})),
                vec![],
            ),
        ];
        for (spec, expected) in table {
            let names = expected.iter().map(|name| format!("object.spec.{name}"));
            let expected: Vec<String> = names.collect();
            let object = json!({"spec": spec});
            assert_eq!(opened("", "Service", &object), expected, "{object}");
            assert_eq!(opened("serving.knative.dev", "Service", &object), [""; 0]);
        }
    }

    #[test]
    fn absent_scale_selector_is_unknown() {
        for (object, expected) in [
            (json!({}), vec!["object.status.selector"]),
            (
                json!({"status": {"replicas": 1}}),
                vec!["object.status.selector"],
            ),
            (json!({"status": {"selector": "a=b"}}), vec![]),
        ] {
            assert_eq!(opened("autoscaling", "Scale", &object), expected);
            assert_eq!(opened("apps", "Scale", &object), [""; 0]);
        }
        assert!(why(&Gvk::new("autoscaling", "v1", "Scale")).starts_with("a Scale is created"));
        assert!(why(&Gvk::new("", "v1", "Service")).starts_with("addresses and node ports"));
    }

    #[test]
    fn unknown_value_affects_reads_of_itself_and_whole_reads_of_its_parents() {
        use AccessKind::{Elements, Presence, Whole};
        let path = |text: &str| -> Vec<Step> {
            let names = text.split('.').filter(|name| !name.is_empty());
            let step = |name: &str| match name {
                "*" => Step::Each,
                name => Step::Field(name.to_owned()),
            };
            names.map(step).collect()
        };
        for (read, access, open, expected) in [
            ("spec.clusterIP", Presence, "spec.clusterIP", true),
            ("spec.clusterIP", Elements, "spec.clusterIP", true),
            ("spec.clusterIP", Whole, "spec.clusterIP", true),
            ("spec.clusterIP", Whole, "spec.clusterIPs", false),
            // The read value is inside the unknown value.
            ("spec.clusterIPs.*", Presence, "spec.clusterIPs", true),
            // The read value contains the unknown value. The presence of the unknown value can change the keys of
            // `spec`, but not the presence of `spec`.
            ("spec", Whole, "spec.clusterIP", true),
            ("spec", Elements, "spec.clusterIP", true),
            ("spec", Presence, "spec.clusterIP", false),
            ("", Whole, "spec.clusterIP", true),
            ("", Elements, "spec.clusterIP", false),
            ("metadata", Whole, "spec.clusterIP", false),
            (
                "spec.ports.*.nodePort",
                Whole,
                "spec.ports.*.nodePort",
                true,
            ),
            ("spec.ports.*.port", Whole, "spec.ports.*.nodePort", false),
            ("spec.*", Whole, "spec.clusterIP", true),
            ("spec.ports.0", Whole, "spec.ports.*", true),
            ("spec.ports", Elements, "spec.ports.*.nodePort", false),
        ] {
            let read = FieldRead {
                is_old: false,
                path: path(read),
                access,
            };
            let is_expected = affects(&path(open), &read) == expected;
            assert!(is_expected, "{read} ({access:?}) and {open}");
        }
    }
}
