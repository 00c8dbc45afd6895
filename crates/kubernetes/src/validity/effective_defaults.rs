//! Effective defaults: the values that the components of Kubernetes use for absent fields.
//!
//! A field can be absent for two reasons. If the Go type of the field is not a pointer, Go's encoder omits the zero
//! value, so an absent field has the zero value unless [`DEFAULTS`] or [`WITHOUT_DEFAULT`] has a row for the field. If
//! the Go type is a pointer, the field is absent if it is not set. The component that reads the field then decides the
//! effective default, which is in [`DEFAULTS`]. Some fields of a container inherit the value of the Pod
//! ([`INHERITED`]).

use serde_json::{Value, json};

use self::FieldDefault::{Bool, Text, UsualBool, UsualText};
use super::{FieldPath, Segment};
use crate::defaulting::table::{Go, Shape, Table, Type};
use crate::schema::Gvk;

/// The fields whose effective default is not Go's zero value, and the pointer fields with an effective default. Each
/// row is the Go struct, the field, and the effective default.
///
/// Source: the comments of the fields in `k8s.io/api` (`core/v1/types.go`, `apps/v1/types.go`, `batch/v1/types.go`,
/// `storage/v1/types.go`, `policy/v1/types.go`, `discovery/v1/types.go`) and in
/// `k8s.io/apimachinery` `pkg/apis/meta/v1/types.go`. Fields whose default follows from code:
///
/// - `allowPrivilegeEscalation`: `k8s.io/kubernetes` `pkg/securitycontext/util.go` `AddNoNewPrivileges`;
/// - `automountServiceAccountToken`, `serviceAccountName`: `plugin/pkg/admission/serviceaccount/admission.go`
///   `shouldAutomount`, `DefaultServiceAccountName`;
/// - `SeccompProfile.type`: `pkg/kubelet/kuberuntime/helpers.go` `fieldSeccompProfile`;
/// - `optional`: `pkg/kubelet/kubelet_pods.go` and `pkg/volume/*`, which compare with true.
const DEFAULTS: [(&str, &str, FieldDefault); 48] = [
    ("SecurityContext", "privileged", Bool(false)),
    ("SecurityContext", "allowPrivilegeEscalation", Bool(true)),
    ("SecurityContext", "readOnlyRootFilesystem", Bool(false)),
    ("SecurityContext", "runAsNonRoot", Bool(false)),
    ("SecurityContext", "procMount", Text("Default")),
    ("PodSecurityContext", "runAsNonRoot", Bool(false)),
    ("PodSecurityContext", "fsGroupChangePolicy", Text("Always")),
    ("SeccompProfile", "type", UsualText("Unconfined")),
    ("WindowsSecurityContextOptions", "hostProcess", Bool(false)),
    ("PodSpec", "automountServiceAccountToken", UsualBool(true)),
    ("PodSpec", "serviceAccountName", Text("default")),
    ("PodSpec", "serviceAccount", Text("default")),
    ("PodSpec", "shareProcessNamespace", Bool(false)),
    ("PodSpec", "hostUsers", Bool(true)),
    ("PodSpec", "setHostnameAsFQDN", Bool(false)),
    ("ServiceAccount", "automountServiceAccountToken", Bool(true)),
    ("Toleration", "operator", Text("Equal")),
    (
        "TopologySpreadConstraint",
        "nodeAffinityPolicy",
        Text("Honor"),
    ),
    (
        "TopologySpreadConstraint",
        "nodeTaintsPolicy",
        Text("Ignore"),
    ),
    ("VolumeMount", "mountPropagation", Text("None")),
    ("VolumeMount", "recursiveReadOnly", Text("Disabled")),
    ("CSIVolumeSource", "readOnly", Bool(false)),
    ("SecretVolumeSource", "optional", Bool(false)),
    ("ConfigMapVolumeSource", "optional", Bool(false)),
    ("SecretProjection", "optional", Bool(false)),
    ("ConfigMapProjection", "optional", Bool(false)),
    ("ClusterTrustBundleProjection", "optional", Bool(false)),
    ("FileKeySelector", "optional", Bool(false)),
    ("SecretKeySelector", "optional", Bool(false)),
    ("ConfigMapKeySelector", "optional", Bool(false)),
    ("SecretEnvSource", "optional", Bool(false)),
    ("ConfigMapEnvSource", "optional", Bool(false)),
    ("ConfigMap", "immutable", Bool(false)),
    ("Secret", "immutable", Bool(false)),
    ("OwnerReference", "controller", Bool(false)),
    ("OwnerReference", "blockOwnerDeletion", Bool(false)),
    ("JobSpec", "manualSelector", Bool(false)),
    (
        "PodDisruptionBudgetSpec",
        "unhealthyPodEvictionPolicy",
        Text("IfHealthyBudget"),
    ),
    ("StorageClass", "allowVolumeExpansion", Bool(false)),
    (
        "CSIDriverSpec",
        "preventPodSchedulingIfMissing",
        Bool(false),
    ),
    ("CSIDriverSpec", "serviceAccountTokenInSecrets", Bool(false)),
    ("DeviceRequest", "adminAccess", Bool(false)),
    ("DeviceRequestAllocationResult", "adminAccess", Bool(false)),
    ("ExactDeviceRequest", "adminAccess", Bool(false)),
    ("DeviceToleration", "operator", Text("Equal")),
    ("EndpointConditions", "ready", Bool(true)),
    ("EndpointConditions", "serving", Bool(true)),
    ("EndpointConditions", "terminating", Bool(false)),
];

/// The fields without an effective default: no value, not even Go's zero value, has the same meaning as an absent
/// field. Most of these fields restrict something, and an absent field means no restriction. The comments state what an
/// absent field means.
///
/// Source: the comments of the fields in `k8s.io/api`. A list, map or string is absent if it is empty.
const WITHOUT_DEFAULT: [(&str, &str); 54] = [
    // Absent means all sources, destinations and ports.
    ("NetworkPolicyIngressRule", "from"),
    ("NetworkPolicyIngressRule", "ports"),
    ("NetworkPolicyEgressRule", "to"),
    ("NetworkPolicyEgressRule", "ports"),
    ("IPBlock", "except"),
    ("ServiceSpec", "loadBalancerSourceRanges"),
    ("ContainerPort", "hostIP"),
    // Absent means all hosts and paths. Requests that match no rule reach the default backend.
    ("IngressSpec", "rules"),
    ("IngressRule", "host"),
    ("IngressTLS", "hosts"),
    ("HTTPIngressRuleValue", "paths"),
    ("HTTPIngressPath", "path"),
    // The port has either a name or a number, so one of these fields is absent.
    ("ServiceBackendPort", "name"),
    ("ServiceBackendPort", "number"),
    // Absent means all objects.
    ("LabelSelector", "matchLabels"),
    ("LabelSelector", "matchExpressions"),
    ("PodSpec", "nodeSelector"),
    ("NodeSelector", "nodeSelectorTerms"),
    ("NodeSelectorTerm", "matchExpressions"),
    ("NodeSelectorTerm", "matchFields"),
    ("Scheduling", "nodeSelector"),
    ("ReplicationControllerSpec", "selector"),
    ("StorageClass", "allowedTopologies"),
    ("PolicyRule", "resourceNames"),
    ("ResourceQuotaSpec", "scopes"),
    ("ResourceClaim", "request"),
    // Absent means all taints.
    ("Toleration", "key"),
    ("Toleration", "effect"),
    // Absent means all values, with the operator `Exists`.
    ("Toleration", "value"),
    ("LabelSelectorRequirement", "values"),
    ("NodeSelectorRequirement", "values"),
    ("ScopedResourceSelectorRequirement", "values"),
    // Absent means all keys of the object.
    ("SecretVolumeSource", "items"),
    ("SecretProjection", "items"),
    ("ConfigMapVolumeSource", "items"),
    ("ConfigMapProjection", "items"),
    // Absent means the audience of the API server.
    ("ServiceAccountTokenProjection", "audience"),
    // For devices, absent means all requests, devices or taints. For a token, it means the audience of the API server.
    ("DeviceConstraint", "requests"),
    ("DeviceClaimConfiguration", "requests"),
    ("ExactDeviceRequest", "selectors"),
    ("DeviceToleration", "key"),
    ("DeviceToleration", "effect"),
    ("TokenRequestSpec", "audiences"),
    // Absent means that the node, its container runtime, the image or the scheduler decides.
    ("PodOS", "name"),
    ("AppArmorProfile", "type"),
    ("Container", "command"),
    ("Container", "args"),
    ("Container", "workingDir"),
    ("EphemeralContainer", "command"),
    ("EphemeralContainer", "args"),
    ("EphemeralContainer", "workingDir"),
    ("PodSecurityContext", "supplementalGroups"),
    ("PodSpec", "priorityClassName"),
    // In most cases, absent means the namespace of the object that contains the field.
    ("ObjectReference", "namespace"),
];

/// The fields of a container's security context that, if absent, inherit their values from the Pod's security context.
/// The other fields of both security contexts have no effective default in a container.
///
/// Source: `k8s.io/kubernetes` `pkg/securitycontext/util.go` `DetermineEffectiveSecurityContext`,
/// `pkg/kubelet/kuberuntime/helpers.go` `getSeccompProfile`.
const INHERITED: [(&str, &str); 3] = [
    ("SecurityContext", "runAsNonRoot"),
    ("SeccompProfile", "type"),
    ("WindowsSecurityContextOptions", "hostProcess"),
];

#[derive(Clone, Copy)]
enum FieldDefault {
    Bool(bool),
    Text(&'static str),
    /// The usual value. A setting of the node or of another object may change it.
    UsualBool(bool),
    UsualText(&'static str),
}

impl FieldDefault {
    fn value(self) -> Value {
        match self {
            Self::Bool(value) | Self::UsualBool(value) => value.into(),
            Self::Text(text) | Self::UsualText(text) => text.into(),
        }
    }

    fn is_certain(self) -> bool {
        !matches!(self, Self::UsualBool(_) | Self::UsualText(_))
    }
}

/// The value that Kubernetes components use for an absent field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveDefault {
    /// A boolean, a number, a string, an empty list or an empty map.
    pub value: Value,
    /// False if a setting outside of the object can change the value.
    pub is_certain: bool,
    /// The path of the field from which an absent field inherits its value: field names, each with a boolean that is
    /// true if the field may be absent. `None` if the field inherits no value. If both fields are absent, `value`
    /// applies.
    pub inherited_from: Option<Vec<(String, bool)>>,
}

/// The position of a path in the structs of a Pod.
#[derive(Clone, Copy, Default)]
struct PodPosition {
    /// The number of path segments up to and including the Pod's spec.
    spec: Option<usize>,
    /// The number of path segments before the security context of a container.
    security_context: Option<usize>,
}

/// Returns the effective default of the field at `path` in objects of the built-in kind `gvk`. Returns `None` if the
/// field has no effective default, if `path` ends with a map key or a list index, or if the kind is not in the table of
/// defaults.
#[must_use]
pub fn effective_default(gvk: &Gvk, path: &FieldPath) -> Option<EffectiveDefault> {
    let table = Table::get().ok()?;
    let mut struct_name = &*gvk.kind;
    let mut go = Go {
        type_: Type("*"),
        text: "",
    };
    let mut struct_ = Some(table.kind(gvk)?.root);
    let mut last = None;
    let mut position = PodPosition::default();
    let mut names: Vec<(String, bool)> = Vec::new();
    for (n, segment) in path.segments.iter().enumerate() {
        match (segment, struct_) {
            (Segment::Field(name), Some(fields)) => {
                let mut fields = table.fields(fields).iter();
                let field = fields.find(|field| field.0 == **name)?;
                last = Some((struct_name, &*field.0));
                go = field.go();
                names.push((name.to_string(), go.type_.is_pointer()));
            }
            _ => {
                last = None;
                let (Shape::List(inner) | Shape::Map(inner)) = go.type_.shape() else {
                    return None;
                };
                go = go.within(inner);
                names.push((String::new(), false));
            }
        }
        if let Shape::Pointer(inner) = go.type_.shape()
            && let Shape::Struct(n) = inner.shape()
        {
            struct_name = go.within(inner).name();
            struct_ = Some(n);
        } else if let Shape::Struct(n) = go.type_.shape() {
            struct_name = go.name();
            struct_ = Some(n);
        } else {
            struct_ = None;
            continue;
        }
        match struct_name {
            "PodSpec" => position.spec = Some(n + 1),
            "SecurityContext" => position.security_context = Some(n),
            _ => {}
        }
    }
    let field = last?;
    let is_in = |table: &[(&str, &str)]| table.contains(&field);
    if is_in(&WITHOUT_DEFAULT) {
        return None;
    }
    let mut inherited_from = None;
    if let Some(start) = position.security_context {
        if is_in(&INHERITED) {
            let mut inherited = names.get(..position.spec?)?.to_vec();
            inherited.extend_from_slice(names.get(start..)?);
            // If the path contains list elements, there is no single field to inherit from.
            if inherited.iter().any(|(name, _)| name.is_empty()) {
                return None;
            }
            inherited_from = Some(inherited);
        } else if !matches!(field.0, "SecurityContext" | "Capabilities") {
            return None;
        }
    }
    let row = DEFAULTS.iter().find(|row| (row.0, row.1) == field);
    let (value, is_certain) = match (row, go.type_.shape()) {
        (Some((_, _, default)), _) => (default.value(), default.is_certain()),
        // If the enclosing struct is absent, the field has no zero value. For example, a container without a probe does
        // not have a probe with a period of 0 s.
        (None, Shape::Text | Shape::Bool | Shape::Int) if has_pointer(&names) => return None,
        (None, Shape::Text) => (json!(""), true),
        (None, Shape::Bool) => (json!(false), true),
        (None, Shape::Int) => (json!(0), true),
        (None, Shape::List(_)) => (json!([]), true),
        (None, Shape::Map(_)) => (json!({}), true),
        _ => return None,
    };
    Some(EffectiveDefault {
        value,
        is_certain,
        inherited_from,
    })
}

/// Returns true if a struct that encloses the last field of a path is a pointer, and may therefore be absent. `names`
/// contains the fields of the path, each with a boolean that is true for a pointer. Elements of lists and maps have an
/// empty name. The innermost list or map element on the path exists, so only the structs inside it are considered.
fn has_pointer(names: &[(String, bool)]) -> bool {
    let parents = names.iter().rev().skip(1);
    let mut of_element = parents.take_while(|(name, _)| !name.is_empty());
    of_element.any(|(_, is_pointer)| *is_pointer)
}

#[cfg(test)]
mod tests {
    use super::super::Root;
    use super::*;

    fn default_of(
        (group, version, kind): (&str, &str, &str),
        path: &str,
    ) -> Option<EffectiveDefault> {
        let segments = path.split('.').map(|part| match part.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Field(part.into()),
        });
        let path = FieldPath {
            root: Root::Object,
            segments: segments.collect(),
        };
        effective_default(&Gvk::new(group, version, kind), &path)
    }

    #[test]
    fn absent_values_and_pointers_have_effective_defaults() {
        let pod = ("", "v1", "Pod");
        let deployment = ("apps", "v1", "Deployment");
        let cases = [
            (pod, "spec.hostNetwork", Some(json!(false))),
            (pod, "spec.hostname", Some(json!(""))),
            (pod, "spec.initContainers", Some(json!([]))),
            (pod, "spec.nodeSelector", None),
            (pod, "spec.volumes", Some(json!([]))),
            (pod, "spec.tolerations.0.key", None),
            (pod, "spec.tolerations.0.operator", Some(json!("Equal"))),
            (pod, "spec.os.name", None),
            (
                pod,
                "spec.securityContext.seccompProfile.type",
                Some(json!("Unconfined")),
            ),
            (pod, "spec.securityContext.seLinuxOptions.type", None),
            (pod, "spec.containers.0.livenessProbe.periodSeconds", None),
            (
                pod,
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.0.weight",
                Some(json!(0)),
            ),
            (
                pod,
                "spec.containers.0.securityContext.seLinuxOptions.type",
                None,
            ),
            (
                pod,
                "spec.containers.0.securityContext.capabilities.drop",
                Some(json!([])),
            ),
            (
                ("networking.k8s.io", "v1", "NetworkPolicy"),
                "spec.ingress.0.from",
                None,
            ),
            (
                ("networking.k8s.io", "v1", "NetworkPolicy"),
                "spec.podSelector.matchLabels",
                None,
            ),
            (
                ("rbac.authorization.k8s.io", "v1", "Role"),
                "rules.0.resourceNames",
                None,
            ),
            (
                deployment,
                "spec.template.spec.serviceAccountName",
                Some(json!("default")),
            ),
            (pod, "metadata.labels", Some(json!({}))),
            (pod, "metadata.labels.app", None),
            (pod, "spec.automountServiceAccountToken", Some(json!(true))),
            (pod, "spec.hostUsers", Some(json!(true))),
            (pod, "spec.securityContext", None),
            (pod, "spec.securityContext.runAsUser", None),
            (pod, "spec.securityContext.runAsNonRoot", Some(json!(false))),
            (
                pod,
                "spec.containers.0.securityContext.allowPrivilegeEscalation",
                Some(json!(true)),
            ),
            (
                pod,
                "spec.containers.0.securityContext.privileged",
                Some(json!(false)),
            ),
            (
                deployment,
                "spec.template.spec.containers.0.securityContext.readOnlyRootFilesystem",
                Some(json!(false)),
            ),
            (deployment, "spec.paused", Some(json!(false))),
            (deployment, "spec.progressDeadlineSeconds", None),
            (
                ("", "v1", "ServiceAccount"),
                "automountServiceAccountToken",
                Some(json!(true)),
            ),
            (("example.com", "v1", "Widget"), "spec.size", None),
        ];
        for (gvk, path, expected) in cases {
            let value = default_of(gvk, path).map(|default| default.value);
            assert_eq!(value, expected, "{} {path}", gvk.2);
        }
    }

    #[test]
    fn containers_inherit_values_of_the_pod() {
        let inherited = |path: &str| {
            let inherited = default_of(("apps", "v1", "Deployment"), path)?.inherited_from?;
            let names = inherited.into_iter().map(|(name, may_be_absent)| {
                let sign = if may_be_absent { "?" } else { "" };
                format!(".{sign}{name}")
            });
            Some(names.collect::<String>())
        };
        let container = "spec.template.spec.initContainers.0.securityContext";
        let of_pod = ".spec.template.spec.?securityContext";
        for field in [
            "runAsNonRoot",
            "seccompProfile.type",
            "windowsOptions.hostProcess",
        ] {
            let expected = format!("{of_pod}.?{}", field.replace('.', ".?"));
            let actual = inherited(&format!("{container}.{field}"));
            let actual =
                actual.map(|text| text.replace("seccompProfile.type", "seccompProfile.?type"));
            assert_eq!(actual, Some(expected), "{field}");
        }
        assert_eq!(inherited(&format!("{container}.privileged")), None);
        assert_eq!(
            inherited("spec.template.spec.securityContext.runAsNonRoot"),
            None
        );
    }

    #[test]
    fn each_listed_default_belongs_to_a_field_of_a_go_struct() {
        let table = Table::get().unwrap();
        let defaults = DEFAULTS.iter().map(|(name, field, _)| (*name, *field));
        let rows = defaults.chain(WITHOUT_DEFAULT).chain(INHERITED);
        let mut missing = Vec::new();
        for (struct_name, field) in rows {
            let is_kind = table.kinds().any(|gvk| {
                let kind = table.kind(gvk);
                *gvk.kind == *struct_name
                    && kind.is_some_and(|kind| table.type_of(kind.root, field).is_some())
            });
            let is_nested = table.structs.iter().flatten().any(|outer| {
                let go = outer.go();
                go.text.rsplit(['.', '*', ']']).next() == Some(struct_name)
                    && go
                        .type_
                        .struct_within()
                        .is_some_and(|n| table.type_of(n, field).is_some())
            });
            if !is_kind && !is_nested {
                missing.push((struct_name, field));
            }
        }
        assert_eq!(missing, []);
    }

    #[test]
    fn pointers_to_booleans_have_a_default() {
        let without = [
            // The API server sets these fields.
            ("AzureDiskVolumeSource", "readOnly"),
            ("CSIDriverSpec", "attachRequired"),
            ("CSIDriverSpec", "podInfoOnMount"),
            ("CSIDriverSpec", "requiresRepublish"),
            ("CSIDriverSpec", "seLinuxMount"),
            ("CSIDriverSpec", "storageCapacity"),
            ("CronJobSpec", "suspend"),
            ("JobSpec", "suspend"),
            ("PodSpec", "enableServiceLinks"),
            ("ServiceSpec", "allocateLoadBalancerNodePorts"),
            // Users do not set these fields, or they are members of a union.
            ("AdmissionRequest", "dryRun"),
            ("BasicDevice", "allNodes"),
            ("BasicDevice", "allowMultipleAllocations"),
            ("BasicDevice", "bindsToNode"),
            (
                "DeleteOptions",
                "ignoreStoreReadErrorWithClusterBreakingPotential",
            ),
            ("DeleteOptions", "orphanDependents"),
            (
                "JSONSchemaDefinitions",
                "x-kubernetes-preserve-unknown-fields",
            ),
            ("JSONSchemaProps", "x-kubernetes-preserve-unknown-fields"),
            ("ValidationRules", "optionalOldSelf"),
            ("ContainerStatus", "started"),
            ("Device", "allNodes"),
            ("Device", "allowMultipleAllocations"),
            ("Device", "bindsToNode"),
            ("DeviceAttribute", "bool"),
            ("NodeFeatures", "supplementalGroupsPolicy"),
            ("NodeRuntimeHandlerFeatures", "recursiveReadOnlyMounts"),
            ("NodeRuntimeHandlerFeatures", "userNamespaces"),
            ("ResourceSliceSpec", "allNodes"),
            ("ResourceSliceSpec", "perDeviceNodeSelection"),
        ];
        let table = Table::get().unwrap();
        let mut missing = std::collections::BTreeSet::new();
        for outer in table.structs.iter().flatten() {
            let go = outer.go();
            let name = go.text.rsplit(['.', '*', ']']).next().unwrap_or_default();
            let Some(n) = go.type_.struct_within() else {
                continue;
            };
            for field in table.fields(n) {
                let Shape::Pointer(inner) = Type(&field.1).shape() else {
                    continue;
                };
                let has_row = DEFAULTS
                    .iter()
                    .any(|row| (row.0, row.1) == (name, field.0.as_str()));
                if matches!(inner.shape(), Shape::Bool)
                    && !has_row
                    && !without.contains(&(name, field.0.as_str()))
                {
                    missing.insert((name, field.0.as_str()));
                }
            }
        }
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), []);
    }
}
