//! Fields that objects of built-in kinds always have when a policy is evaluated. The API server sets these fields, or
//! rejects objects without them.
//!
//! Schemas do not contain the names of object types. An object type is therefore identified by fields that only this
//! type declares.

use super::path::{FieldPath, Segment};

/// A field that every object of a type has.
#[derive(Clone, Copy, Debug)]
struct GuaranteedField {
    /// The fields that identify the object type.
    type_fields: &'static [&'static str],
    /// The guaranteed field.
    field: &'static str,
    /// The usual value as JSON. If this is empty, the minimal value of the field's schema is used.
    value: &'static str,
}

const fn guaranteed(
    type_fields: &'static [&'static str],
    field: &'static str,
    value: &'static str,
) -> GuaranteedField {
    GuaranteedField {
        type_fields,
        field,
        value,
    }
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

/// The guaranteed fields by object type.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/*/v1/defaults.go` and `zz_generated.validations.go` (defaults that are
/// declared), `pkg/apis/core/validation/validation.go` (`validateContainers`, `ValidateService`,
/// `ValidatePersistentVolumeSpec`, `ValidatePersistentVolumeClaimSpec`), `pkg/apis/apps/validation/validation.go`
/// (a selector must match the labels of its template), `pkg/registry/batch/job/strategy.go`
/// (`generateSelector`), `pkg/registry/core/service/storage` (addresses are allocated before admission).
const BY_TYPE: &[GuaranteedField] = &[
    guaranteed(
        POD_SPEC,
        "containers",
        r#"[{"name": "example", "image": "example"}]"#,
    ),
    guaranteed(POD_SPEC, "dnsPolicy", r#""ClusterFirst""#),
    guaranteed(POD_SPEC, "restartPolicy", r#""Always""#),
    guaranteed(POD_SPEC, "securityContext", "{}"),
    guaranteed(POD_SPEC, "terminationGracePeriodSeconds", "30"),
    guaranteed(POD_SPEC, "schedulerName", r#""default-scheduler""#),
    guaranteed(CONTAINER, "image", r#""example""#),
    guaranteed(CONTAINER, "imagePullPolicy", r#""Always""#),
    guaranteed(
        CONTAINER,
        "terminationMessagePath",
        r#""/dev/termination-log""#,
    ),
    guaranteed(CONTAINER, "terminationMessagePolicy", r#""File""#),
    guaranteed(&["containerPort", "hostPort"], "protocol", r#""TCP""#),
    guaranteed(PROBE, "timeoutSeconds", "1"),
    guaranteed(PROBE, "periodSeconds", "10"),
    guaranteed(PROBE, "successThreshold", "1"),
    guaranteed(PROBE, "failureThreshold", "3"),
    // An option in a Pod's DNS configuration. `validatePodDNSConfig` requires its name.
    guaranteed(&["name", "value"], "name", r#""example""#),
    guaranteed(&["httpHeaders", "scheme"], "path", r#""/""#),
    guaranteed(&["httpHeaders", "scheme"], "scheme", r#""HTTP""#),
    guaranteed(
        &["defaultMode", "optional", "secretName"],
        "defaultMode",
        "420",
    ),
    guaranteed(
        &["defaultMode", "items", "name", "optional"],
        "defaultMode",
        "420",
    ),
    guaranteed(&["defaultMode", "sources"], "defaultMode", "420"),
    guaranteed(&["apiVersion", "fieldPath"], "apiVersion", r#""v1""#),
    guaranteed(
        &["audience", "expirationSeconds", "path"],
        "expirationSeconds",
        "3600",
    ),
    guaranteed(SERVICE, "type", r#""ClusterIP""#),
    guaranteed(SERVICE, "sessionAffinity", r#""None""#),
    guaranteed(SERVICE_PORT, "protocol", r#""TCP""#),
    guaranteed(SERVICE_PORT, "targetPort", "80"),
    guaranteed(DEPLOYMENT, "replicas", "1"),
    guaranteed(DEPLOYMENT, "revisionHistoryLimit", "10"),
    guaranteed(DEPLOYMENT, "progressDeadlineSeconds", "600"),
    guaranteed(
        DEPLOYMENT,
        "strategy",
        r#"{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}"#,
    ),
    guaranteed(STATEFUL_SET, "replicas", "1"),
    guaranteed(STATEFUL_SET, "revisionHistoryLimit", "10"),
    guaranteed(STATEFUL_SET, "podManagementPolicy", r#""OrderedReady""#),
    guaranteed(
        STATEFUL_SET,
        "updateStrategy",
        r#"{"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}"#,
    ),
    guaranteed(
        STATEFUL_SET,
        "persistentVolumeClaimRetentionPolicy",
        r#"{"whenDeleted": "Retain", "whenScaled": "Retain"}"#,
    ),
    guaranteed(DAEMON_SET, "revisionHistoryLimit", "10"),
    guaranteed(
        DAEMON_SET,
        "updateStrategy",
        r#"{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}"#,
    ),
    guaranteed(&["rollingUpdate", "type"], "type", r#""RollingUpdate""#),
    guaranteed(&["maxSurge", "maxUnavailable"], "maxSurge", r#""25%""#),
    guaranteed(
        &["maxSurge", "maxUnavailable"],
        "maxUnavailable",
        r#""25%""#,
    ),
    guaranteed(&["maxUnavailable", "partition"], "partition", "0"),
    guaranteed(REPLICA_SET, "replicas", "1"),
    guaranteed(REPLICA_SET, "template", ""),
    guaranteed(REPLICA_SET, "selector", ""),
    guaranteed(CRON_JOB, "concurrencyPolicy", r#""Allow""#),
    guaranteed(CRON_JOB, "suspend", "false"),
    guaranteed(CRON_JOB, "successfulJobsHistoryLimit", "3"),
    guaranteed(CRON_JOB, "failedJobsHistoryLimit", "1"),
    guaranteed(CLAIM, "accessModes", r#"["ReadWriteOnce"]"#),
    guaranteed(CLAIM, "resources", r#"{"requests": {"storage": "1Gi"}}"#),
    guaranteed(CLAIM, "volumeMode", r#""Filesystem""#),
    guaranteed(VOLUME, "accessModes", r#"["ReadWriteOnce"]"#),
    guaranteed(VOLUME, "capacity", r#"{"storage": "1Gi"}"#),
    guaranteed(VOLUME, "persistentVolumeReclaimPolicy", r#""Retain""#),
    guaranteed(VOLUME, "volumeMode", r#""Filesystem""#),
    guaranteed(&["path", "type"], "type", r#""""#),
    guaranteed(AUTOSCALER, "minReplicas", "1"),
    guaranteed(
        &["behavior", "metrics"],
        "metrics",
        r#"[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]"#,
    ),
    guaranteed(&["endPort", "port", "protocol"], "protocol", r#""TCP""#),
    guaranteed(
        &["egress", "ingress", "podSelector"],
        "policyTypes",
        r#"["Ingress"]"#,
    ),
    guaranteed(
        &["apiGroup", "kind", "name", "namespace"],
        "apiGroup",
        r#""rbac.authorization.k8s.io""#,
    ),
    guaranteed(
        &["provisioner", "volumeBindingMode"],
        "reclaimPolicy",
        r#""Delete""#,
    ),
    guaranteed(
        &["provisioner", "volumeBindingMode"],
        "volumeBindingMode",
        r#""Immediate""#,
    ),
    guaranteed(
        &["globalDefault", "preemptionPolicy"],
        "preemptionPolicy",
        r#""PreemptLowerPriority""#,
    ),
    guaranteed(CSI_DRIVER, "attachRequired", "true"),
    guaranteed(CSI_DRIVER, "podInfoOnMount", "false"),
    guaranteed(CSI_DRIVER, "storageCapacity", "false"),
    guaranteed(CSI_DRIVER, "fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
    guaranteed(CSI_DRIVER, "volumeLifecycleModes", r#"["Persistent"]"#),
    guaranteed(WEBHOOK, "failurePolicy", r#""Fail""#),
    guaranteed(WEBHOOK, "matchPolicy", r#""Equivalent""#),
    guaranteed(WEBHOOK, "namespaceSelector", "{}"),
    guaranteed(WEBHOOK, "objectSelector", "{}"),
    guaranteed(WEBHOOK, "timeoutSeconds", "10"),
    guaranteed(POLICY, "failurePolicy", r#""Fail""#),
    guaranteed(MATCH, "matchPolicy", r#""Equivalent""#),
    guaranteed(MATCH, "namespaceSelector", "{}"),
    guaranteed(MATCH, "objectSelector", "{}"),
    guaranteed(SERVICE_REFERENCE, "port", "443"),
    guaranteed(DEVICES, "allocationMode", r#""ExactCount""#),
    guaranteed(DEVICES, "count", "1"),
    guaranteed(&["apiGroups", "operations", "resources"], "scope", r#""*""#),
    guaranteed(
        &["apiGroups", "operations", "resources"],
        "apiGroups",
        r#"[""]"#,
    ),
    guaranteed(
        &["apiGroups", "operations", "resources"],
        "apiVersions",
        r#"["v1"]"#,
    ),
    guaranteed(
        &["apiGroups", "operations", "resources"],
        "operations",
        r#"["CREATE"]"#,
    ),
    guaranteed(
        &["apiGroups", "operations", "resources"],
        "resources",
        r#"["pods"]"#,
    ),
    // The API server sets the `type` of a Secret.
    guaranteed(&["data", "stringData", "type"], "type", r#""Opaque""#),
];

/// The guaranteed fields at fixed paths: the kind, the parent's path, the field, and its value as JSON.
///
/// Source: as for [`BY_TYPE`]; `plugin/pkg/admission/{serviceaccount,priority,defaulttolerationseconds}`, which every
/// API server runs; `pkg/registry/core/namespace/strategy.go`, `pkg/registry/core/pod/strategy.go`
/// (`PrepareForCreate`).
const BY_KIND: &[(&str, &str, &str, &str)] = &[
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
    // A Job has these fields, but the Job template of a CronJob does not.
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

/// Fields that generated minimal objects have, but other valid objects may lack. Validation requires one of several
/// fields, such as `hostPath` or another volume source.
///
/// Source: `pkg/apis/networking/validation/validation.go` (`ValidateIngressSpec`),
/// `pkg/apis/core/validation/validation.go` (`validatePersistentVolumeSource`, `ValidateService`),
/// `pkg/apis/core/v1/defaults.go` (`SetDefaults_Service`).
const USUAL_CHOICES: &[(&str, &str, &str, &str)] = &[
    // A Service of type `ExternalName` has none of these fields. A headless Service may have no ports.
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

/// Boolean fields that the API server omits if they are false, because their Go types are not pointers.
///
/// Source: `k8s.io/api` `core/v1/types.go`, `apps/v1/types.go`.
const OMITTED_IF_FALSE: &[&str] = &[
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

/// Fields that Go serializes as null if they are unset. Validation requires these fields, so they are never null in a
/// valid object.
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

/// Lists that validation requires to have at least one element.
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

/// Returns true if the list at `path` has at least one element in every valid object.
#[must_use]
pub fn is_never_empty(path: &FieldPath) -> bool {
    let last = path.segments.last();
    matches!(last, Some(Segment::Field(name)) if NEVER_EMPTY.contains(&&**name))
}

/// Returns true if the field at `path` is never null in a valid object, although Go serializes the field as null if it
/// is unset.
#[must_use]
pub fn is_never_null(path: &FieldPath) -> bool {
    match &*path.names() {
        // `rules` in a Job's `podFailurePolicy` and `successPolicy` is never null. Other fields named `rules` may be
        // null.
        [] | ["metadata" | "status", ..] | [.., "podFailurePolicy" | "successPolicy", "rules"] => {
            true
        }
        [.., last] => NEVER_NULL.contains(last),
    }
}

/// Returns the fields at `path` in a minimal object of `kind`, with their values as JSON. If a value is empty, the
/// minimal value of the field's schema is used. `has` returns true if the object type at `path` declares a field.
pub fn minimal_fields<'a>(
    kind: &'a str,
    path: &'a FieldPath,
    has: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    fields_of_type(has)
        .into_iter()
        .map(|row| (row.field, row.value))
        .chain(rows_at(BY_KIND, kind, path))
        .chain(rows_at(USUAL_CHOICES, kind, path))
}

/// Returns true if every admitted object of `kind` has the field `name` at `path`. `has` returns true if the object
/// type at `path` declares a field.
pub fn is_guaranteed(kind: &str, path: &FieldPath, name: &str, has: impl Fn(&str) -> bool) -> bool {
    let mut of_field = BY_TYPE.iter().filter(|row| row.field == name);
    of_field.any(|row| row.type_fields.iter().all(|field| has(field)))
        || rows_at(BY_KIND, kind, path).any(|(field, _)| field == name)
}

fn fields_of_type(has: impl Fn(&str) -> bool) -> Vec<&'static GuaranteedField> {
    let mut fields = Vec::new();
    // Rows of the same type are adjacent, so each type is checked only once.
    let mut type_fields: &[&str] = &[];
    let mut is_of_type = false;
    for row in BY_TYPE {
        if !std::ptr::eq(type_fields, row.type_fields) {
            type_fields = row.type_fields;
            is_of_type = type_fields.iter().all(|field| has(field));
        }
        if is_of_type && has(row.field) {
            fields.push(row);
        }
    }
    fields
}

fn rows_at<'a>(
    table: &'static [(&'static str, &'static str, &'static str, &'static str)],
    kind: &'a str,
    path: &'a FieldPath,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    table
        .iter()
        .filter(move |(of, at, ..)| *of == kind && is_at(at, path))
        .map(|(_, _, field, value)| (*field, *value))
}

/// Returns true if `path` consists of the dot-separated fields in `text`.
fn is_at(text: &str, path: &FieldPath) -> bool {
    let fields = path.fields();
    fields.len() == path.segments.len()
        && text
            .split('.')
            .filter(|name| !name.is_empty())
            .eq(fields.iter().copied())
}

/// Returns true if the API server omits the boolean field `name` if it is false.
#[must_use]
pub fn is_omitted_if_false(name: &str) -> bool {
    OMITTED_IF_FALSE.contains(&name)
}

/// Returns true if every stored or admitted object has the metadata field `name`.
///
/// Source: apiserver `pkg/registry/rest/create.go` (`BeforeCreate`), `pkg/registry/rest/meta.go`
/// (`FillObjectMetaSystemFields`), `pkg/endpoints/handlers/fieldmanager` (`managedFields`).
#[must_use]
pub fn is_system_metadata(name: &str) -> bool {
    // On creation, `resourceVersion` is absent. Some kinds have no `generation`. Both fields are included anyway,
    // because policies do not test for their absence.
    matches!(
        name,
        "name" | "uid" | "creationTimestamp" | "managedFields" | "resourceVersion" | "generation"
    )
}

#[cfg(test)]
mod tests {
    use super::super::path::Root;
    use super::*;

    #[test]
    fn guaranteed_field_values_are_valid_json() {
        let values = BY_TYPE.iter().map(|row| row.value);
        let places = BY_KIND.iter().chain(USUAL_CHOICES).map(|row| row.3);
        for value in values.chain(places).filter(|value| !value.is_empty()) {
            assert!(
                serde_json::from_str::<serde_json::Value>(value).is_ok(),
                "{value}"
            );
        }
    }

    #[test]
    fn path_with_list_index_does_not_match_path_of_fields() {
        let object = FieldPath::new(Root::Object);
        let template = object.field("spec").and_then(|spec| spec.field("template"));
        let template = template.unwrap();
        assert!(is_at("spec.template", &template));
        assert!(!is_at("spec", &template));
        assert!(!is_at("spec.selector", &template));
        assert!(is_at("", &object));
        let element = object.field("spec").and_then(|spec| spec.element(0));
        assert!(!is_at("spec", &element.unwrap()));
    }
}
