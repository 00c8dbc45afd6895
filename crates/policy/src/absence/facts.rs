//! Facts about Kubernetes' own kinds that their schemas do not tell: what the API server fills in or requires
//! before it asks a policy, so that an object without it never gets there.
//!
//! An object type of a schema has no name here; it is known by fields that only it has together. `default: {}`,
//! which the schemas give to every field that is a struct in Go, is in the types already.

use super::path::{Path, Segment};

/// A fact: objects with the fields `of` have the field `field`, with `value` where nothing else is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    /// Fields that the object type has.
    of: &'static [&'static str],
    /// The field.
    pub(super) field: &'static str,
    /// Its value, as JSON; empty for the least that the schema allows.
    pub(super) value: &'static str,
}

const fn fact(of: &'static [&'static str], field: &'static str, value: &'static str) -> Fact {
    Fact { of, field, value }
}

const POD_SPEC: &[&str] = &["containers", "dnsPolicy", "schedulerName"];
const CONTAINER: &[&str] = &["image", "terminationMessagePath"];
const PROBE: &[&str] = &["failureThreshold", "periodSeconds"];
const SERVICE: &[&str] = &["clusterIP", "sessionAffinity"];
const SERVICE_PORT: &[&str] = &["nodePort", "port", "targetPort"];
const DEPLOYMENT: &[&str] = &["progressDeadlineSeconds", "replicas", "template"];
const STATEFUL_SET: &[&str] = &["podManagementPolicy", "replicas", "template"];
const DAEMON_SET: &[&str] = &["revisionHistoryLimit", "template", "updateStrategy"];
const REPLICA_SET: &[&str] = &["minReadySeconds", "replicas", "selector", "template"];
const CRON_JOB: &[&str] = &["jobTemplate", "schedule"];
const CLAIM: &[&str] = &["accessModes", "volumeMode", "volumeName"];
const VOLUME: &[&str] = &["accessModes", "persistentVolumeReclaimPolicy"];
const AUTOSCALER: &[&str] = &["maxReplicas", "scaleTargetRef"];
const WEBHOOK: &[&str] = &["admissionReviewVersions", "clientConfig", "sideEffects"];
const CSI_DRIVER: &[&str] = &["attachRequired", "podInfoOnMount"];
const POLICY: &[&str] = &["matchConstraints", "validations"];
const MATCH: &[&str] = &["matchPolicy", "namespaceSelector", "resourceRules"];
const SERVICE_REFERENCE: &[&str] = &["name", "namespace", "port"];
const DEVICES: &[&str] = &["allocationMode", "count", "deviceClassName"];
const LABELS: &str = r#"{"app": "example"}"#;

/// The facts.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/*/v1/defaults.go` and `zz_generated.validations.go` (defaults that are
/// declared), `pkg/apis/core/validation/validation.go` (`validateContainers`, `ValidateService`,
/// `ValidatePersistentVolumeSpec`, `ValidatePersistentVolumeClaimSpec`), `pkg/apis/apps/validation/validation.go`
/// (a selector must match the labels of its template), `pkg/registry/batch/job/strategy.go`
/// (`generateSelector`), `pkg/registry/core/service/storage` (addresses are given before policies are asked).
const FACTS: &[Fact] = &[
    fact(
        POD_SPEC,
        "containers",
        r#"[{"name": "example", "image": "example"}]"#,
    ),
    fact(POD_SPEC, "dnsPolicy", r#""ClusterFirst""#),
    fact(POD_SPEC, "restartPolicy", r#""Always""#),
    fact(POD_SPEC, "securityContext", "{}"),
    fact(POD_SPEC, "terminationGracePeriodSeconds", "30"),
    fact(POD_SPEC, "schedulerName", r#""default-scheduler""#),
    fact(CONTAINER, "image", r#""example""#),
    fact(CONTAINER, "imagePullPolicy", r#""Always""#),
    fact(
        CONTAINER,
        "terminationMessagePath",
        r#""/dev/termination-log""#,
    ),
    fact(CONTAINER, "terminationMessagePolicy", r#""File""#),
    fact(&["containerPort", "hostPort"], "protocol", r#""TCP""#),
    fact(PROBE, "timeoutSeconds", "1"),
    fact(PROBE, "periodSeconds", "10"),
    fact(PROBE, "successThreshold", "1"),
    fact(PROBE, "failureThreshold", "3"),
    fact(&["httpHeaders", "scheme"], "path", r#""/""#),
    fact(&["httpHeaders", "scheme"], "scheme", r#""HTTP""#),
    fact(
        &["defaultMode", "optional", "secretName"],
        "defaultMode",
        "420",
    ),
    fact(
        &["defaultMode", "items", "name", "optional"],
        "defaultMode",
        "420",
    ),
    fact(&["defaultMode", "sources"], "defaultMode", "420"),
    fact(&["apiVersion", "fieldPath"], "apiVersion", r#""v1""#),
    fact(
        &["audience", "expirationSeconds", "path"],
        "expirationSeconds",
        "3600",
    ),
    fact(SERVICE, "type", r#""ClusterIP""#),
    fact(SERVICE, "sessionAffinity", r#""None""#),
    fact(SERVICE_PORT, "protocol", r#""TCP""#),
    fact(SERVICE_PORT, "targetPort", "80"),
    fact(DEPLOYMENT, "replicas", "1"),
    fact(DEPLOYMENT, "revisionHistoryLimit", "10"),
    fact(DEPLOYMENT, "progressDeadlineSeconds", "600"),
    fact(
        DEPLOYMENT,
        "strategy",
        r#"{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}"#,
    ),
    fact(STATEFUL_SET, "replicas", "1"),
    fact(STATEFUL_SET, "revisionHistoryLimit", "10"),
    fact(STATEFUL_SET, "podManagementPolicy", r#""OrderedReady""#),
    fact(
        STATEFUL_SET,
        "updateStrategy",
        r#"{"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}"#,
    ),
    fact(
        STATEFUL_SET,
        "persistentVolumeClaimRetentionPolicy",
        r#"{"whenDeleted": "Retain", "whenScaled": "Retain"}"#,
    ),
    fact(DAEMON_SET, "revisionHistoryLimit", "10"),
    fact(
        DAEMON_SET,
        "updateStrategy",
        r#"{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}"#,
    ),
    fact(&["rollingUpdate", "type"], "type", r#""RollingUpdate""#),
    fact(&["maxSurge", "maxUnavailable"], "maxSurge", r#""25%""#),
    fact(
        &["maxSurge", "maxUnavailable"],
        "maxUnavailable",
        r#""25%""#,
    ),
    fact(&["maxUnavailable", "partition"], "partition", "0"),
    fact(REPLICA_SET, "replicas", "1"),
    fact(REPLICA_SET, "template", ""),
    fact(REPLICA_SET, "selector", ""),
    fact(CRON_JOB, "concurrencyPolicy", r#""Allow""#),
    fact(CRON_JOB, "suspend", "false"),
    fact(CRON_JOB, "successfulJobsHistoryLimit", "3"),
    fact(CRON_JOB, "failedJobsHistoryLimit", "1"),
    fact(CLAIM, "accessModes", r#"["ReadWriteOnce"]"#),
    fact(CLAIM, "resources", r#"{"requests": {"storage": "1Gi"}}"#),
    fact(CLAIM, "volumeMode", r#""Filesystem""#),
    fact(VOLUME, "accessModes", r#"["ReadWriteOnce"]"#),
    fact(VOLUME, "capacity", r#"{"storage": "1Gi"}"#),
    fact(VOLUME, "persistentVolumeReclaimPolicy", r#""Retain""#),
    fact(VOLUME, "volumeMode", r#""Filesystem""#),
    fact(&["path", "type"], "type", r#""""#),
    fact(AUTOSCALER, "minReplicas", "1"),
    fact(
        &["behavior", "metrics"],
        "metrics",
        r#"[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]"#,
    ),
    fact(&["endPort", "port", "protocol"], "protocol", r#""TCP""#),
    fact(
        &["egress", "ingress", "podSelector"],
        "policyTypes",
        r#"["Ingress"]"#,
    ),
    fact(
        &["apiGroup", "kind", "name", "namespace"],
        "apiGroup",
        r#""rbac.authorization.k8s.io""#,
    ),
    fact(
        &["provisioner", "volumeBindingMode"],
        "reclaimPolicy",
        r#""Delete""#,
    ),
    fact(
        &["provisioner", "volumeBindingMode"],
        "volumeBindingMode",
        r#""Immediate""#,
    ),
    fact(
        &["globalDefault", "preemptionPolicy"],
        "preemptionPolicy",
        r#""PreemptLowerPriority""#,
    ),
    fact(CSI_DRIVER, "attachRequired", "true"),
    fact(CSI_DRIVER, "podInfoOnMount", "false"),
    fact(CSI_DRIVER, "storageCapacity", "false"),
    fact(CSI_DRIVER, "fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
    fact(CSI_DRIVER, "volumeLifecycleModes", r#"["Persistent"]"#),
    fact(WEBHOOK, "failurePolicy", r#""Fail""#),
    fact(WEBHOOK, "matchPolicy", r#""Equivalent""#),
    fact(WEBHOOK, "namespaceSelector", "{}"),
    fact(WEBHOOK, "objectSelector", "{}"),
    fact(WEBHOOK, "timeoutSeconds", "10"),
    fact(POLICY, "failurePolicy", r#""Fail""#),
    fact(MATCH, "matchPolicy", r#""Equivalent""#),
    fact(MATCH, "namespaceSelector", "{}"),
    fact(MATCH, "objectSelector", "{}"),
    fact(SERVICE_REFERENCE, "port", "443"),
    fact(DEVICES, "allocationMode", r#""ExactCount""#),
    fact(DEVICES, "count", "1"),
    fact(&["apiGroups", "operations", "resources"], "scope", r#""*""#),
    fact(
        &["apiGroups", "operations", "resources"],
        "apiGroups",
        r#"[""]"#,
    ),
    fact(
        &["apiGroups", "operations", "resources"],
        "apiVersions",
        r#"["v1"]"#,
    ),
    fact(
        &["apiGroups", "operations", "resources"],
        "operations",
        r#"["CREATE"]"#,
    ),
    fact(
        &["apiGroups", "operations", "resources"],
        "resources",
        r#"["pods"]"#,
    ),
    // Requirements of validation that a schema cannot express, and what storage sets.
    fact(&["data", "stringData", "type"], "type", r#""Opaque""#),
];

/// Facts about one place of one kind.
///
/// Source: as for [`FACTS`]; `plugin/pkg/admission/{serviceaccount,priority,defaulttolerationseconds}`, which every
/// API server runs; `pkg/registry/core/namespace/strategy.go`, `pkg/registry/core/pod/strategy.go`
/// (`PrepareForCreate`).
const FACTS_OF_KINDS: &[(&str, &str, &str, &str)] = &[
    ("Pod", "spec", "enableServiceLinks", "true"),
    ("Pod", "spec", "serviceAccountName", r#""default""#),
    ("Pod", "spec", "serviceAccount", r#""default""#),
    ("Pod", "spec", "priority", "0"),
    (
        "Pod",
        "spec",
        "preemptionPolicy",
        r#""PreemptLowerPriority""#,
    ),
    (
        "Pod",
        "spec",
        "tolerations",
        r#"[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]"#,
    ),
    ("Pod", "status", "phase", r#""Pending""#),
    ("Pod", "status", "qosClass", r#""BestEffort""#),
    ("Namespace", "status", "phase", r#""Active""#),
    ("Namespace", "spec", "finalizers", r#"["kubernetes"]"#),
    (
        "Namespace",
        "metadata",
        "labels",
        r#"{"kubernetes.io/metadata.name": "example"}"#,
    ),
    ("PersistentVolume", "status", "phase", r#""Pending""#),
    ("ReplicationController", "spec", "replicas", "1"),
    ("ReplicationController", "spec", "template", ""),
    ("ReplicationController", "spec", "selector", LABELS),
    (
        "ReplicationController",
        "spec.template.metadata",
        "labels",
        LABELS,
    ),
    ("Deployment", "spec.selector", "matchLabels", LABELS),
    ("Deployment", "spec.template.metadata", "labels", LABELS),
    ("ReplicaSet", "spec.selector", "matchLabels", LABELS),
    ("ReplicaSet", "spec.template.metadata", "labels", LABELS),
    ("StatefulSet", "spec.selector", "matchLabels", LABELS),
    ("StatefulSet", "spec.template.metadata", "labels", LABELS),
    ("DaemonSet", "spec.selector", "matchLabels", LABELS),
    ("DaemonSet", "spec.template.metadata", "labels", LABELS),
    ("CronJob", "spec", "schedule", r#""0 0 * * *""#),
    // The template of a CronJob gets none of these.
    ("Job", "spec", "backoffLimit", "6"),
    ("Job", "spec", "completionMode", r#""NonIndexed""#),
    ("Job", "spec", "parallelism", "1"),
    ("Job", "spec", "suspend", "false"),
    ("Job", "spec", "manualSelector", "false"),
    (
        "Job",
        "spec",
        "podReplacementPolicy",
        r#""TerminatingOrFailed""#,
    ),
    (
        "Job",
        "spec",
        "selector",
        r#"{"matchLabels": {"batch.kubernetes.io/controller-uid": "0"}}"#,
    ),
    (
        "Job",
        "spec.selector",
        "matchLabels",
        r#"{"batch.kubernetes.io/controller-uid": "0"}"#,
    ),
    (
        "Job",
        "spec.template.metadata",
        "labels",
        r#"{"batch.kubernetes.io/controller-uid": "0", "batch.kubernetes.io/job-name": "example"}"#,
    ),
    (
        "CustomResourceDefinition",
        "spec.names",
        "singular",
        r#""example""#,
    ),
    (
        "CustomResourceDefinition",
        "spec.names",
        "listKind",
        r#""ExampleList""#,
    ),
    (
        "CustomResourceDefinition",
        "spec",
        "conversion",
        r#"{"strategy": "None"}"#,
    ),
];

/// Fields that a minimal object gets, since the API server wants one of several; others may do without.
///
/// Source: `pkg/apis/networking/validation/validation.go` (`ValidateIngressSpec`),
/// `pkg/apis/core/validation/validation.go` (`validatePersistentVolumeSource`, `ValidateService`),
/// `pkg/apis/core/v1/defaults.go` (`SetDefaults_Service`).
const CHOICES: &[(&str, &str, &str, &str)] = &[
    // A Service of the type ExternalName has none of these, and a headless one may have no ports.
    ("Service", "spec", "internalTrafficPolicy", r#""Cluster""#),
    ("Service", "spec", "clusterIP", r#""10.0.0.1""#),
    ("Service", "spec", "clusterIPs", r#"["10.0.0.1"]"#),
    ("Service", "spec", "ipFamilies", r#"["IPv4"]"#),
    ("Service", "spec", "ipFamilyPolicy", r#""SingleStack""#),
    (
        "Service",
        "spec",
        "ports",
        r#"[{"port": 80, "protocol": "TCP", "targetPort": 80}]"#,
    ),
    (
        "Ingress",
        "spec",
        "defaultBackend",
        r#"{"service": {"name": "example", "port": {"number": 80}}}"#,
    ),
    (
        "PersistentVolume",
        "spec",
        "hostPath",
        r#"{"path": "/example", "type": ""}"#,
    ),
];

/// Names of boolean fields that the API server leaves out of an object where they are false, since they are no
/// pointers in Go.
///
/// Source: `k8s.io/api` `core/v1/types.go`, `apps/v1/types.go`.
const NEVER_FALSE: &[&str] = &[
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "stdin",
    "stdinOnce",
    "tty",
    "readOnly",
    "paused",
    "publishNotReadyAddresses",
    "unschedulable",
    "controller",
    "globalDefault",
];

/// Fields of Kubernetes' own types that are null in Go where nobody sets them, and that validation wants.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/*/validation/validation.go`.
const NEVER_NULL: &[&str] = &[
    "addresses",
    "admissionReviewVersions",
    "apiGroups",
    "containers",
    "managedFields",
    "monitors",
    "nodeSelectorTerms",
    "nonResourceURLs",
    "pathType",
    "paths",
    "resources",
    "secretRef",
    "selector",
    "sideEffects",
    "subjects",
    "values",
    "verbs",
];

/// Lists of Kubernetes' own types that are never empty in a valid object.
const NEVER_EMPTY: &[&str] = &[
    "accessModes",
    "addresses",
    "admissionReviewVersions",
    "containers",
    "monitors",
    "nodeSelectorTerms",
    "paths",
    "verbs",
];

/// Reports whether the list at `path` always has an element.
pub(super) fn is_never_empty(path: &Path) -> bool {
    let last = path.segments.last();
    matches!(last, Some(Segment::Field(name)) if NEVER_EMPTY.contains(&&**name))
}

/// Reports whether the field at `path` is never null in a valid object, whatever Go makes of one that nobody sets.
pub(super) fn is_never_null(path: &Path) -> bool {
    match &*path.names() {
        // The rules are those of the policies of a Job.
        [] | ["metadata" | "status", ..] | [.., "podFailurePolicy" | "successPolicy", "rules"] => {
            true
        }
        [.., last] => NEVER_NULL.contains(last),
    }
}

/// The facts about objects with the fields `has`.
pub(super) fn of_type(has: impl Fn(&str) -> bool) -> Vec<&'static Fact> {
    let mut found = Vec::new();
    // Facts of one type come one after the other.
    let mut of: &[&str] = &[];
    let mut is_of = false;
    for fact in FACTS {
        if !std::ptr::eq(of, fact.of) {
            of = fact.of;
            is_of = of.iter().all(|field| has(field));
        }
        if is_of && has(fact.field) {
            found.push(fact);
        }
    }
    found
}

/// Reports whether there is a fact about the field `name` of objects with the fields `has`.
pub(super) fn has_field(name: &str, has: impl Fn(&str) -> bool) -> bool {
    let mut facts = FACTS.iter().filter(|fact| fact.field == name);
    facts.any(|fact| fact.of.iter().all(|field| has(field)))
}

/// The fields and values that objects of `kind` have for certain at `path`.
pub(super) fn of_place<'a>(
    kind: &'a str,
    path: &'a Path,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    at_place(FACTS_OF_KINDS, kind, path)
}

/// The fields and values that a minimal object of `kind` has at `path`, and that others may lack.
pub(super) fn choices<'a>(
    kind: &'a str,
    path: &'a Path,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    at_place(CHOICES, kind, path)
}

fn at_place<'a>(
    table: &'static [(&'static str, &'static str, &'static str, &'static str)],
    kind: &'a str,
    path: &'a Path,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    table
        .iter()
        .filter(move |(of, at, ..)| *of == kind && is_at(at, path))
        .map(|(_, _, field, value)| (*field, *value))
}

/// Reports whether `path` is the one that `text` names.
fn is_at(text: &str, path: &Path) -> bool {
    let fields = path.fields();
    fields.len() == path.segments.len()
        && text
            .split('.')
            .filter(|name| !name.is_empty())
            .eq(fields.iter().copied())
}

/// Reports whether an optional field `name` of Kubernetes' own types is left out where it is `false`.
pub(super) fn is_never_false(name: &str) -> bool {
    NEVER_FALSE.contains(&name)
}

/// The fields of metadata that every stored or admitted object has.
///
/// Source: apiserver `pkg/registry/rest/create.go` (`BeforeCreate`), `pkg/registry/rest/meta.go`
/// (`FillObjectMetaSystemFields`), `pkg/endpoints/handlers/fieldmanager` (`managedFields`).
pub(super) const METADATA: [&str; 6] = [
    "name",
    "uid",
    "creationTimestamp",
    "managedFields",
    // On creation there is none of these, or not for every kind; nobody means that by a policy.
    "resourceVersion",
    "generation",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json() {
        let values = FACTS.iter().map(|fact| fact.value);
        let places = FACTS_OF_KINDS.iter().chain(CHOICES).map(|row| row.3);
        for value in values.chain(places).filter(|value| !value.is_empty()) {
            assert!(
                serde_json::from_str::<serde_json::Value>(value).is_ok(),
                "{value}"
            );
        }
    }
}
