//! Detects objects of built-in kinds that are invalid because of a single value or a combination of a few fields.

use serde_json::{Map, Value as Json};

use super::enumerations::enum_values;
use super::path::{FieldPath, Root, Segment};
use crate::defaulting::Operation;
use crate::library::format::validation::{
    dns1123_label, dns1123_subdomain, label_value, qualified_name,
};

/// Integer fields that can be negative.
const SIGNED: [&str; 6] = [
    "generation",
    "oomScoreAdj",
    "priority",
    "tolerationSeconds",
    "value",
    "defaultMode",
];

/// Fields with a port number (1 to 65,535).
const PORTS: [&str; 6] = [
    "containerPort",
    "hostPort",
    "healthCheckNodePort",
    "nodePort",
    "port",
    "targetPort",
];

/// Fields with user or group ids, at most 2,147,483,647.
const IDS: [&str; 4] = ["fsGroup", "runAsGroup", "runAsUser", "supplementalGroups"];

/// Fields with an IP address or a list of IP addresses.
const IP_ADDRESSES: [&str; 8] = [
    "clusterIP",
    "clusterIPs",
    "externalIPs",
    "hostIP",
    "hostIPs",
    "loadBalancerIP",
    "podIP",
    "podIPs",
];

/// Fields with an IP network or a list of IP networks.
const CIDRS: [&str; 5] = [
    "cidr",
    "cidrs",
    "except",
    "loadBalancerSourceRanges",
    "podCIDR",
];

/// Maps whose keys must be qualified names.
const QUALIFIED_KEYS: [&str; 4] = ["annotations", "labels", "matchLabels", "nodeSelector"];

/// Maps from resource names to quantities.
const RESOURCE_LISTS: [&str; 2] = ["limits", "requests"];

/// Lists in a Pod spec whose elements have unique names.
const NAMED_LISTS: [&str; 4] = [
    "containers",
    "ephemeralContainers",
    "initContainers",
    "volumes",
];

/// Kinds whose object names need not be DNS names.
const NON_DNS_NAMES: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// Returns true if the elements of the list in the field `name` must have unique names.
#[must_use]
pub fn has_unique_names(name: &str) -> bool {
    NAMED_LISTS.contains(&name)
}

/// Returns a valid value for the string at `path` in an object of `kind`. Returns `None` if its format is unknown.
#[must_use]
pub fn sample_text(kind: &str, path: &FieldPath) -> Option<&'static str> {
    if let Some(first) = enum_values(kind, path).and_then(|values| values.first()) {
        return Some(first);
    }
    let names = path.names();
    if names.first() == Some(&"status") {
        return None;
    }
    sample_of_format(names.last()?)
}

/// Returns a valid value for the string or the list of strings in the field `name`. Returns `None` if its format is
/// unknown.
fn sample_of_format(name: &str) -> Option<&'static str> {
    if IP_ADDRESSES.contains(&name) {
        Some("10.0.0.1")
    } else {
        match name {
            "fieldPath" => Some("metadata.name"),
            "except" => Some("10.1.0.0/16"),
            "finalizers" => Some("example.com/example"),
            _ => CIDRS.contains(&name).then_some("10.0.0.0/8"),
        }
    }
}

/// Returns true if validation rejects `object` in a request with `operation`. Some invalid objects are not detected.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidatePodCreate`,
/// `ValidateTolerations`, `validateContainerResourceName`, `ValidatePodSecurityContext`, `validateSeccompProfileField`),
/// `pkg/apis/apps/validation/validation.go` (`ValidatePodTemplateSpecForReplicaSet`),
/// `pkg/apis/batch/validation/validation.go` (`validateJobSpec`), `pkg/apis/networking/validation/validation.go`
/// (`validateIngressRules`), `k8s.io/apimachinery` `pkg/api/validation/objectmeta.go`.
#[must_use]
pub fn fails_validation(kind: &str, operation: Operation, object: &Json) -> bool {
    let name = object.pointer("/metadata/name").and_then(Json::as_str);
    let is_named = NON_DNS_NAMES.contains(&kind)
        || name.is_none_or(|name| dns1123_subdomain(name.as_bytes()).is_empty());
    let is_created = operation == Operation::Create;
    let has_ephemeral = object.pointer("/spec/ephemeralContainers").is_some();
    let mut walk = Walk {
        kind,
        path: FieldPath::new(Root::Object),
    };
    !is_named || kind == "Pod" && is_created && has_ephemeral || walk.is_invalid("", object)
}

struct Walk<'a> {
    kind: &'a str,
    path: FieldPath,
}

impl Walk<'_> {
    /// Returns true if `value` is invalid. `holder` is the name of the field that contains `value`, directly or in a
    /// list.
    fn is_invalid(&mut self, holder: &str, value: &Json) -> bool {
        match value {
            Json::Object(fields) => {
                self.is_object_invalid(holder, fields)
                    || fields.iter().any(|(name, value)| {
                        // Clients do not write the status, so it is not checked.
                        let is_root = self.path.segments.is_empty();
                        if is_root && name == "status" {
                            return false;
                        }
                        self.path
                            .segments
                            .push(Segment::Field(name.as_str().into()));
                        let is_invalid = self.is_invalid(name, value);
                        self.path.segments.pop();
                        is_invalid
                    })
            }
            Json::Array(items) => {
                (NAMED_LISTS.contains(&holder) && has_duplicates(items))
                    || items.iter().any(|item| self.is_invalid(holder, item))
            }
            Json::String(text) => self.is_text_invalid(holder, text),
            Json::Number(number) => number
                .as_i64()
                .is_some_and(|n| is_number_invalid(holder, n)),
            _ => false,
        }
    }

    fn is_text_invalid(&self, holder: &str, text: &str) -> bool {
        let is_in_map = self.path.segments.iter().rev().nth(1).is_some_and(|around| {
            matches!(around, Segment::Field(name) if QUALIFIED_KEYS.contains(&&**name) || **name == *"data")
        });
        if is_in_map {
            let is_label = self.path.segments.iter().rev().nth(1).is_some_and(
                |around| matches!(around, Segment::Field(name) if **name == *"labels" || **name == *"matchLabels"),
            );
            return is_label && !label_value(text.as_bytes()).is_empty();
        }
        let is_address = || text.parse::<std::net::IpAddr>().is_ok();
        let is_range = || {
            let (address, length) = text.split_once('/').unwrap_or_default();
            address.parse::<std::net::IpAddr>().is_ok() && length.parse::<u8>().is_ok()
        };
        let is_element = holder.ends_with('s');
        let is_value = |values: &[&str]| text.is_empty() || values.contains(&text);
        enum_values(self.kind, &self.path).is_some_and(|values| !is_value(values))
            || IP_ADDRESSES.contains(&holder)
                && !(text == "None" || text.is_empty() && !is_element)
                && !is_address()
            || matches!(holder, "maxSurge" | "maxUnavailable" | "minAvailable")
                && !is_percentage(text)
            || holder == "fieldPath"
                && self.path.names().contains(&"fieldRef")
                && !["metadata.", "spec.", "status."]
                    .iter()
                    .any(|it| text.starts_with(it))
            || holder == "finalizers" && !is_finalizer(text)
            || CIDRS.contains(&holder) && !is_range()
            || holder == "image" && (text.is_empty() || text.trim() != text)
            || self.kind == "Ingress" && holder == "path" && !is_absolute(text)
            || self.kind == "Ingress" && holder == "host" && {
                let rest = text.strip_prefix("*.").unwrap_or(text);
                !text.is_empty() && !dns1123_subdomain(rest.as_bytes()).is_empty()
            }
    }

    fn is_object_invalid(&self, holder: &str, fields: &Map<String, Json>) -> bool {
        let text = |name: &str| fields.get(name).and_then(Json::as_str);
        if QUALIFIED_KEYS.contains(&holder) {
            return fields.keys().any(|key| {
                let key = if holder == "annotations" {
                    key.to_lowercase()
                } else {
                    key.clone()
                };
                !qualified_name(key.as_bytes()).is_empty()
            });
        }
        if is_combination_invalid(self.kind, holder, fields) {
            return true;
        }
        if RESOURCE_LISTS.contains(&holder) {
            return fields.keys().any(|key| !is_resource(key));
        }
        match holder {
            "seccompProfile" => {
                (text("type") == Some("Localhost")) != fields.contains_key("localhostProfile")
            }
            "volumes" => text("name").is_none_or(str::is_empty),
            "matchExpressions" => {
                let values = fields.get("values").and_then(Json::as_array);
                let has_values = values.is_some_and(|values| !values.is_empty());
                let is_of_set = matches!(text("operator"), Some("In" | "NotIn" | "Gt" | "Lt"));
                has_values != is_of_set || text("key").is_none_or(str::is_empty)
            }
            "tolerations" => {
                let has_key = text("key").is_some_and(|key| !key.is_empty());
                let has_value = text("value").is_some_and(|value| !value.is_empty());
                let is_exists = text("operator") == Some("Exists");
                !has_key && !is_exists
                    || has_value && is_exists
                    || fields.contains_key("tolerationSeconds")
                        && text("effect") != Some("NoExecute")
            }
            // `fields` is a Pod template, or the whole object if `holder` is empty.
            "template" | "" => self.is_template_invalid(fields),
            "spec" => self.is_spec_invalid(fields),
            _ => {
                NAMED_LISTS.contains(&holder)
                    && text("name").is_none_or(|name| !dns1123_label(name.as_bytes()).is_empty())
            }
        }
    }

    fn is_template_invalid(&self, fields: &Map<String, Json>) -> bool {
        let spec = fields.get("spec").and_then(Json::as_object);
        let is_of_template = !self.path.segments.is_empty();
        is_of_template && spec.is_some_and(|spec| spec.contains_key("ephemeralContainers"))
    }

    fn is_spec_invalid(&self, fields: &Map<String, Json>) -> bool {
        let lists = || NAMED_LISTS.iter().filter(|name| **name != "volumes");
        let all = lists().filter_map(|name| fields.get(*name)?.as_array());
        let all: Vec<Json> = all.flatten().cloned().collect();
        let runs_once = matches!(self.kind, "Job" | "CronJob");
        let is_template = self.path.segments.len() > 1 && fields.contains_key("containers");
        let restarts = fields
            .get("restartPolicy")
            .is_none_or(|policy| policy == "Always");
        let template = fields
            .get("template")
            .and_then(|template| template.pointer("/metadata/labels"));
        let selected = fields.get("selector");
        let selected = match self.kind {
            "ReplicationController" => selected,
            _ => selected.and_then(|selector| selector.get("matchLabels")),
        };
        if is_kind_spec_invalid(self.kind, &self.path.names(), fields) {
            return true;
        }
        let is_selected = selected.and_then(Json::as_object).is_none_or(|selected| {
            selected
                .iter()
                .all(|(key, value)| template.and_then(|labels| labels.get(key)) == Some(value))
        });
        let requirements = fields
            .get("selector")
            .and_then(|selector| selector.get("matchExpressions"));
        let mut requirements = requirements.and_then(Json::as_array).into_iter().flatten();
        let label = |requirement: &Json| template?.get(requirement.get("key")?.as_str()?);
        let is_met = |requirement: &Json| {
            let has = |value: &Json| {
                requirement
                    .get("values")
                    .and_then(Json::as_array)
                    .is_some_and(|all| all.contains(value))
            };
            match requirement.get("operator").and_then(Json::as_str) {
                Some("Exists") => label(requirement).is_some(),
                Some("DoesNotExist") => label(requirement).is_none(),
                Some("In") => label(requirement).is_some_and(has),
                Some("NotIn") => !label(requirement).is_some_and(has),
                _ => false,
            }
        };
        has_duplicates(&all)
            || fields.contains_key("template") && !requirements.all(is_met)
            || is_template && runs_once == restarts
            || fields.contains_key("template") && !is_selected
    }
}

/// Returns true if the spec at `path` in an object of `kind` lacks a required field or has a forbidden field.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidatePodSpec`,
/// `ValidateReplicationControllerSpec`, `validateSecurityContext`, `validateWindowsHostProcessPod`,
/// `ValidatePersistentVolumeClaimSpec`), `pkg/apis/batch/validation/validation.go` (`ValidateJobTemplateSpec`),
/// `pkg/apis/autoscaling/validation/validation.go` (`validateHorizontalPodAutoscalerSpec`; the feature gate
/// `HPAScaleToZero` is off by default).
fn is_kind_spec_invalid(kind: &str, path: &[&str], fields: &Map<String, Json>) -> bool {
    let is_empty = |name: &str| match fields.get(name) {
        None | Some(Json::Null) => true,
        Some(Json::Array(items)) => items.is_empty(),
        Some(Json::Object(items)) => items.is_empty(),
        Some(_) => false,
    };
    let has_template = fields.contains_key("template");
    let is_of_pod = match path {
        ["spec"] => kind == "Pod",
        [.., "template", "spec"] => true,
        _ => false,
    };
    if is_of_pod {
        return is_empty("containers") || is_pod_spec_invalid(kind, fields);
    }
    match kind {
        "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet" if path == ["spec"] => {
            is_empty("selector")
        }
        "ReplicationController" => is_empty("selector") || !has_template,
        "CronJob" if path.len() > 1 => !is_empty("selector"),
        "HorizontalPodAutoscaler" if path == ["spec"] => {
            let number = |name: &str| fields.get(name).and_then(Json::as_i64);
            let max = number("maxReplicas");
            let min = number("minReplicas").unwrap_or(1);
            min < 1 || max.is_some_and(|max| max < min)
        }
        "PersistentVolumeClaim" => {
            let modes = fields.get("accessModes").and_then(Json::as_array);
            modes.is_none_or(|modes| {
                modes.is_empty()
                    || modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod")
            })
        }
        _ => false,
    }
}

/// Returns true if a Pod spec in an object of `kind` is inconsistent with its containers, for example if a container
/// mounts a missing volume.
///
/// In a `StatefulSet`, containers may also mount volumes of the claim templates.
fn is_pod_spec_invalid(kind: &str, spec: &Map<String, Json>) -> bool {
    let lists = NAMED_LISTS.iter().filter(|name| **name != "volumes");
    let containers = lists
        .filter_map(|name| spec.get(*name)?.as_array())
        .flatten();
    let volumes = spec.get("volumes").and_then(Json::as_array);
    let has_volume = |name: &Json| {
        kind == "StatefulSet"
            || volumes.is_some_and(|volumes| volumes.iter().any(|it| it.get("name") == Some(name)))
    };
    let is = |name: &str, value: bool| spec.get(name) == Some(&Json::Bool(value));
    let own = spec.get("securityContext");
    let is_host_process = |context: Option<&Json>| {
        context.and_then(|it| it.pointer("/windowsOptions/hostProcess")) == Some(&Json::Bool(true))
    };
    let mut contexts = containers.clone().map(|it| it.get("securityContext"));
    let uses_host_process = is_host_process(own) || contexts.clone().any(is_host_process);
    let is_unmasked = contexts.any(|it| {
        let mount = it.and_then(|it| it.get("procMount"));
        mount.is_some_and(|mount| mount == "Unmasked")
    });
    let mut mounts = containers.filter_map(|it| it.get("volumeMounts")?.as_array());
    uses_host_process && !is("hostNetwork", true)
        || is_unmasked && !is("hostUsers", false)
        || mounts.any(|mounts| {
            let paths: Vec<_> = mounts.iter().map(|mount| mount.get("mountPath")).collect();
            let has_path = |path: Option<&Json>| path.is_some_and(|path| *path != "");
            !paths.iter().all(|path| has_path(*path))
                || (1..paths.len()).any(|n| paths.iter().take(n).any(|it| Some(it) == paths.get(n)))
                || mounts
                    .iter()
                    .any(|mount| !mount.get("name").is_some_and(has_volume))
        })
}

/// Returns true if an Ingress path is valid for all path types.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/networking/validation/validation.go` (`validateHTTPIngressPath`).
fn is_absolute(path: &str) -> bool {
    const BAD: [&str; 6] = ["//", "/./", "/../", "/..", "%2f", "%2F"];
    path.is_empty()
        || path.starts_with('/')
            && !BAD.iter().any(|bad| path.contains(bad))
            && !path.ends_with("/.")
}

/// Returns true if `fields` contains mutually exclusive fields. `fields` is a part of an object of `kind`, in the field
/// `holder`. If `holder` is empty, `fields` is the whole object.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidateService`,
/// `ValidatePersistentVolumeClaimSpec`), `pkg/apis/networking/validation/validation.go`
/// (`validateHTTPIngressRuleValue`, `ValidateIPBlock`), `pkg/apis/admissionregistration/validation/validation.go`
/// (`validateValidatingWebhook`), `k8s.io/apiextensions-apiserver` `pkg/apis/apiextensions/validation/validation.go`
/// (`ValidateCustomResourceDefinition`).
fn is_combination_invalid(kind: &str, holder: &str, fields: &Map<String, Json>) -> bool {
    let text = |name: &str| fields.get(name).and_then(Json::as_str).unwrap_or_default();
    let list = |name: &str| {
        fields
            .get(name)
            .and_then(Json::as_array)
            .map_or(&[][..], Vec::as_slice)
    };
    match (kind, holder) {
        ("Service", "spec") => {
            let ports = list("ports");
            let is_named = |port: &Json| port.get("name").is_some_and(|name| name != "");
            ports.len() > 1 && !ports.iter().all(is_named)
                || !list("loadBalancerSourceRanges").is_empty() && text("type") != "LoadBalancer"
        }
        ("Ingress", "http") => list("paths").is_empty(),
        ("NetworkPolicy", "ipBlock") => {
            let length = |range: &str| {
                range
                    .split_once('/')
                    .and_then(|(_, it)| it.parse::<u8>().ok())
            };
            let own = length(text("cidr"));
            list("except")
                .iter()
                .any(|it| it.as_str().and_then(length) <= own)
        }
        ("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration", "webhooks") => {
            text("name").split('.').count() < 3
                || !list("admissionReviewVersions")
                    .iter()
                    .any(|it| it == "v1" || it == "v1beta1")
        }
        ("PersistentVolumeClaim", "spec") | (_, "volumeClaimTemplates") => {
            let spec = fields
                .get("spec")
                .and_then(Json::as_object)
                .unwrap_or(fields);
            let storage = spec
                .get("resources")
                .and_then(|it| it.pointer("/requests/storage"));
            let modes = spec.get("accessModes").and_then(Json::as_array);
            storage.is_none() || modes.is_none_or(Vec::is_empty)
        }
        ("CustomResourceDefinition", "") => {
            let at = |path: &str| {
                let spec = fields.get("spec").and_then(|spec| spec.pointer(path));
                spec.and_then(Json::as_str).unwrap_or_default()
            };
            let name = fields
                .get("metadata")
                .and_then(|it| it.get("name")?.as_str());
            name != Some(&*format!("{}.{}", at("/names/plural"), at("/group")))
                || !at("/group").contains('.')
                || !matches!(at("/scope"), "Cluster" | "Namespaced")
        }
        _ => false,
    }
}

/// Returns true for a percentage such as `25%`.
fn is_percentage(text: &str) -> bool {
    let number = text.strip_suffix('%').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if the finalizer is valid. It must be a built-in name, or a name with a domain.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidateFinalizerName`).
fn is_finalizer(text: &str) -> bool {
    let is_own = matches!(text, "kubernetes" | "orphan" | "foregroundDeletion");
    is_own || text.contains('/') && qualified_name(text.as_bytes()).is_empty()
}

/// Returns true if two items have the same name.
fn has_duplicates(items: &[Json]) -> bool {
    let name = |item: &Json| item.get("name").and_then(Json::as_str).map(str::to_owned);
    let names: Vec<String> = items.iter().filter_map(name).collect();
    (1..names.len()).any(|n| {
        names
            .get(..n)
            .is_some_and(|before| names.get(n).is_some_and(|name| before.contains(name)))
    })
}

fn is_number_invalid(holder: &str, n: i64) -> bool {
    n < 0 && !SIGNED.contains(&holder)
        || n > 65_535 && PORTS.contains(&holder)
        || n == 0 && PORTS.contains(&holder) && !matches!(holder, "hostPort" | "nodePort")
        || n > i64::from(i32::MAX) && IDS.contains(&holder)
}

/// Returns true if containers may request the resource `name`. It must be built-in, or have a domain.
fn is_resource(name: &str) -> bool {
    let is_own = matches!(name, "cpu" | "memory" | "ephemeral-storage" | "storage")
        || name.starts_with("hugepages-");
    is_own || name.contains('/') && qualified_name(name.as_bytes()).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: &str, object: &Json, expected: bool) {
        assert_eq!(
            fails_validation(kind, Operation::Create, object),
            expected,
            "{object}"
        );
    }

    fn pod(spec: &Json) -> Json {
        let mut whole = json!({"containers": [{"name": "a", "image": "a"}]});
        if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
            whole.extend(spec.clone());
        }
        json!({"metadata": {"name": "a"}, "spec": whole})
    }

    #[test]
    fn invalid_combinations_of_toleration_fields_fail_validation() {
        for (toleration, expected) in [
            (json!({"key": "a"}), false),
            (json!({"operator": "Exists"}), false),
            (json!({"operator": "Equal"}), true),
            (
                json!({"key": "a", "operator": "Exists", "value": "b"}),
                true,
            ),
            (json!({"key": "a", "tolerationSeconds": 1}), true),
            (
                json!({"key": "a", "effect": "NoExecute", "tolerationSeconds": 1}),
                false,
            ),
        ] {
            check("Pod", &pod(&json!({"tolerations": [toleration]})), expected);
        }
    }

    #[test]
    fn pod_with_invalid_value_fails_validation() {
        for spec in [
            json!({"containers": [{"name": "a", "image": "a", "imagePullPolicy": "example"}]}),
            json!({"containers": [{"name": "a", "image": "a"}, {"name": "a", "image": "a"}]}),
            json!({"initContainers": [{"name": "a", "image": "a"}]}),
            json!({"ephemeralContainers": [{"name": "b", "image": "a"}]}),
            json!({"securityContext": {"fsGroup": -1}}),
            json!({"securityContext": {"seccompProfile": {"type": "example"}}}),
            json!({"securityContext": {"seccompProfile": {"type": "Localhost"}}}),
            json!({"nodeSelector": {"fluxcd.io/": "a"}}),
            json!({"containers": [{"name": "a", "image": "a", "resources": {"limits": {"example": "1"}}}]}),
            json!({"containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 70_000}]}]}),
        ] {
            check("Pod", &pod(&spec), true);
        }
        for spec in [
            json!({"containers": []}),
            json!({"containers": [{"name": "a", "image": " "}]}),
            json!({"containers": [{"name": "a", "image": "a", "volumeMounts": [{"name": "a", "mountPath": "/a"}]}]}),
            json!({"containers": [{"name": "a", "image": "a", "securityContext": {"procMount": "Unmasked"}}]}),
            json!({"securityContext": {"windowsOptions": {"hostProcess": true}}}),
        ] {
            check("Pod", &pod(&spec), true);
        }
        for spec in [
            json!({}),
            json!({"priority": -1, "tolerations": [
                {"key": "a", "effect": "NoExecute", "tolerationSeconds": -1},
            ]}),
            json!({"initContainers": [{"name": "b", "image": "a", "imagePullPolicy": "Never"}]}),
            json!({"containers": [{"name": "a", "image": "a", "resources": {"limits": {"example.com/a": "1", "cpu": "1"}}}]}),
        ] {
            check("Pod", &pod(&spec), false);
        }
    }

    #[test]
    fn object_with_mutually_exclusive_fields_fails_validation() {
        let webhook =
            |name: &str| json!({"webhooks": [{"name": name, "admissionReviewVersions": ["v1"]}]});
        let block = |except: &str| {
            json!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8",
            "except": [except]}}]}]}})
        };
        let ports = |name: &str| json!({"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": name}]}});
        let finalizer = |name: &str| json!({"metadata": {"name": "a", "finalizers": [name]}});
        for (kind, invalid, valid) in [
            (
                "ValidatingWebhookConfiguration",
                webhook("a"),
                webhook("a.b.c"),
            ),
            ("NetworkPolicy", block("10.0.0.0/8"), block("10.1.0.0/16")),
            ("Service", ports(""), ports("b")),
            ("ConfigMap", finalizer("a"), finalizer("a.b/c")),
        ] {
            check(kind, &invalid, true);
            check(kind, &valid, false);
        }
        check(
            "Ingress",
            &json!({"spec": {"rules": [{"http": {"paths": []}}]}}),
            true,
        );
        check("Service", &json!({"spec": {"externalIPs": [""]}}), true);
    }

    #[test]
    fn services_and_other_kinds_with_invalid_value_fail_validation() {
        check(
            "Service",
            &json!({"spec": {"externalIPs": ["example"]}}),
            true,
        );
        check(
            "Service",
            &json!({"spec": {"externalIPs": ["10.0.0.1"], "clusterIP": "None"}}),
            false,
        );
        check(
            "PodDisruptionBudget",
            &json!({"spec": {"maxUnavailable": -1}}),
            true,
        );
        check(
            "Ingress",
            &json!({"metadata": {"annotations": {"-snippet": "a"}}}),
            true,
        );
        check(
            "Ingress",
            &json!({"metadata": {"annotations": {"A.b/Snippet": "a b"}}}),
            false,
        );
        check(
            "Ingress",
            &json!({"spec": {"rules": [{"host": "a*b"}]}}),
            true,
        );
        check(
            "Ingress",
            &json!({"spec": {"rules": [{"host": "*.example.com"}]}}),
            false,
        );
        let job = |policy: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}], "restartPolicy": policy}}}});
        check("Job", &job("Always"), true);
        check("Job", &job("Never"), false);
        check("Deployment", &job("Never"), true);
        let unselected = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {}}});
        check("Deployment", &unselected, true);
    }
}
