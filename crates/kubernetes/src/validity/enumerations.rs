//! The values of enumerations, which are string fields with a fixed set of values. The published schemas of built-in
//! kinds lack these values.

use super::path::{FieldPath, Segment};

/// The enclosing field, the field with the enumeration, and the allowed values. An empty string as the enclosing field
/// matches any field.
type Enumeration = (&'static str, &'static str, &'static [&'static str]);

/// The enumerations.
///
/// Source: `k8s.io/kubernetes` `pkg/generated/openapi/zz_generated.openapi.go` (`Enum`), `pkg/apis/rbac/validation`
/// (`ValidateRoleBinding`, `ValidateRoleBindingSubject`), `pkg/apis/storage/validation/validation.go`
/// (`validateReclaimPolicy`), `pkg/apis/core/validation/validation.go` (`ValidatePersistentVolumeClaimSpec`,
/// `ValidateNodeSelectorRequirement`), `k8s.io/apimachinery` `pkg/apis/meta/v1/validation/validation.go`
/// (`ValidateLabelSelectorRequirement`), `pkg/apis/networking/validation/validation.go`
/// (`ValidateNetworkPolicySpec`),
/// `pkg/apis/autoscaling/validation/validation.go` (`validateMetricSpec`), `pkg/apis/apps/validation/validation.go`
/// (`ValidatePersistentVolumeClaimRetentionPolicy`); `k8s.io/api` `core/v1/types.go` (`ContainerRestartPolicy`).
const ENUMS: &[Enumeration] = &[
    ("", "imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    (
        "",
        "terminationMessagePolicy",
        &["FallbackToLogsOnError", "File"],
    ),
    (
        "",
        "dnsPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
    ),
    ("spec", "restartPolicy", &["Always", "Never", "OnFailure"]),
    (
        "containers",
        "restartPolicy",
        &["Always", "Never", "OnFailure"],
    ),
    (
        "initContainers",
        "restartPolicy",
        &["Always", "Never", "OnFailure"],
    ),
    ("", "preemptionPolicy", &["Never", "PreemptLowerPriority"]),
    ("", "concurrencyPolicy", &["Allow", "Forbid", "Replace"]),
    ("", "completionMode", &["Indexed", "NonIndexed"]),
    ("", "podManagementPolicy", &["OrderedReady", "Parallel"]),
    (
        "",
        "podReplacementPolicy",
        &["Failed", "TerminatingOrFailed"],
    ),
    ("", "volumeMode", &["Block", "Filesystem"]),
    (
        "",
        "volumeBindingMode",
        &["Immediate", "WaitForFirstConsumer"],
    ),
    (
        "",
        "persistentVolumeReclaimPolicy",
        &["Delete", "Recycle", "Retain"],
    ),
    ("", "reclaimPolicy", &["Delete", "Retain"]),
    (
        "",
        "accessModes",
        &[
            "ReadWriteOnce",
            "ReadOnlyMany",
            "ReadWriteMany",
            "ReadWriteOncePod",
        ],
    ),
    ("spec", "policyTypes", &["Egress", "Ingress"]),
    ("", "ipFamilies", &["IPv4", "IPv6"]),
    ("", "nodeAffinityPolicy", &["Honor", "Ignore"]),
    ("", "nodeTaintsPolicy", &["Honor", "Ignore"]),
    (
        "persistentVolumeClaimRetentionPolicy",
        "whenDeleted",
        &["Delete", "Retain"],
    ),
    (
        "persistentVolumeClaimRetentionPolicy",
        "whenScaled",
        &["Delete", "Retain"],
    ),
    (
        "resizePolicy",
        "restartPolicy",
        &["NotRequired", "RestartContainer"],
    ),
    (
        "metrics",
        "type",
        &[
            "ContainerResource",
            "External",
            "Object",
            "Pods",
            "Resource",
        ],
    ),
    (
        "matchExpressions",
        "operator",
        &["Exists", "DoesNotExist", "In", "NotIn", "Gt", "Lt"],
    ),
    (
        "",
        "mountPropagation",
        &["Bidirectional", "HostToContainer", "None"],
    ),
    (
        "",
        "whenUnsatisfiable",
        &["DoNotSchedule", "ScheduleAnyway"],
    ),
    (
        "",
        "pathType",
        &["Exact", "ImplementationSpecific", "Prefix"],
    ),
    ("", "externalTrafficPolicy", &["Cluster", "Local"]),
    ("", "internalTrafficPolicy", &["Cluster", "Local"]),
    (
        "",
        "ipFamilyPolicy",
        &["PreferDualStack", "RequireDualStack", "SingleStack"],
    ),
    ("", "sessionAffinity", &["ClientIP", "None"]),
    (
        "",
        "unhealthyPodEvictionPolicy",
        &["AlwaysAllow", "IfHealthyBudget"],
    ),
    (
        "",
        "sideEffects",
        &["None", "NoneOnDryRun", "Some", "Unknown"],
    ),
    ("", "procMount", &["Default", "Unmasked"]),
    ("", "qosClass", &["BestEffort", "Burstable", "Guaranteed"]),
    ("", "fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
    ("ports", "protocol", &["SCTP", "TCP", "UDP"]),
    ("httpGet", "scheme", &["HTTP", "HTTPS"]),
    ("strategy", "type", &["Recreate", "RollingUpdate"]),
    ("updateStrategy", "type", &["OnDelete", "RollingUpdate"]),
    (
        "seccompProfile",
        "type",
        &["Localhost", "RuntimeDefault", "Unconfined"],
    ),
    (
        "appArmorProfile",
        "type",
        &["Localhost", "RuntimeDefault", "Unconfined"],
    ),
    (
        "hostPath",
        "type",
        &[
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    ),
    (
        "tolerations",
        "effect",
        &["NoExecute", "NoSchedule", "PreferNoSchedule"],
    ),
    (
        "taints",
        "effect",
        &["NoExecute", "NoSchedule", "PreferNoSchedule"],
    ),
    ("tolerations", "operator", &["Equal", "Exists", "Gt", "Lt"]),
    ("subjects", "kind", &["Group", "ServiceAccount", "User"]),
    ("subjects", "apiGroup", &["rbac.authorization.k8s.io"]),
    ("roleRef", "kind", &["ClusterRole", "Role"]),
    ("roleRef", "apiGroup", &["rbac.authorization.k8s.io"]),
];

/// The usages of a certificate signing request.
///
/// Source: `k8s.io/api` `certificates/v1/types.go` (`KeyUsage`); `k8s.io/kubernetes`
/// `pkg/apis/certificates/validation/validation.go` (`allValidUsages`).
const KEY_USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const SERVICE_TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

const POD_PHASES: &[&str] = &["Failed", "Pending", "Running", "Succeeded", "Unknown"];

/// Returns the possible values of the string at `path` in an object of `kind`. Returns `None` if the string is not an
/// enumeration.
#[must_use]
pub fn enum_values(kind: &str, path: &FieldPath) -> Option<&'static [&'static str]> {
    // If the string is an element of a list, look up the name of the list.
    let n_fields = path
        .segments
        .iter()
        .rposition(|it| matches!(it, Segment::Field(_)))?;
    let (last, around) = path.segments.get(..=n_fields)?.split_last()?;
    let Segment::Field(field) = last else {
        return None;
    };
    let holder = around.iter().rev().find_map(|segment| match segment {
        Segment::Field(name) => Some(&**name),
        Segment::Index(_) => None,
    });
    match (kind, &*path.fields()) {
        ("Service", ["spec", "type"]) => return Some(SERVICE_TYPES),
        ("Pod", ["status", "phase"]) => return Some(POD_PHASES),
        ("CertificateSigningRequest", ["spec", "usages"]) => return Some(KEY_USAGES),
        (_, ["metadata", ..]) => return None,
        _ => {}
    }
    let mut rows = ENUMS.iter();
    let row = rows.find(|(of, name, _)| *name == &**field && (of.is_empty() || holder == Some(of)));
    row.map(|(_, _, values)| *values)
}
