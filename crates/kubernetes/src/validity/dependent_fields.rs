//! Adds fields to objects of built-in kinds if other fields require them.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};

use super::constraints::{Constraint, InputConstraints};
use super::path::{FieldPath, Root, at, at_mut};

/// Adds the fields that an object of `kind` requires because of its other fields. Returns `None` if no valid object has
/// this combination of present and absent fields.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/rbac/validation/validation.go` (`ValidatePolicyRule`),
/// `pkg/apis/networking/validation/validation.go` (`ValidateIngressSpec`, `validateHTTPIngressPath`),
/// `pkg/apis/apps/v1/defaults.go` and `pkg/apis/apps/validation/validation.go` (`ValidateDeploymentStrategy`),
/// `pkg/apis/core/validation/validation.go` (`ValidateService`, `ValidatePodBinding`, `validateVolumeSource`),
/// `pkg/apis/rbac/validation/validation.go` (`ValidateRoleBindingSubject`),
/// `pkg/apis/certificates/validation/validation.go` and `pkg/registry/certificates/certificates/strategy.go` (the user
/// is set), `pkg/apis/batch/validation/validation.go` (`validateJobSpec`), `pkg/registry/core/service/storage` (node
/// ports are allocated before admission).
pub(super) fn complete(kind: &str, object: &mut Json) -> Option<()> {
    fill_required("", object);
    for at in POD_SPECS {
        if let Some(spec) = at_mut(object, at).and_then(Json::as_object_mut) {
            if at != POD_SPEC && spec.contains_key(EPHEMERAL_CONTAINERS) {
                return None;
            }
            complete_pod(kind, spec);
        }
    }
    match kind {
        "ClusterRoleBinding" | "RoleBinding" => complete_subjects(object),
        "Service" => complete_service(object.get_mut("spec")?.as_object_mut()?),
        "HorizontalPodAutoscaler" => {
            complete_autoscaler(object.get_mut("spec")?.as_object_mut()?);
            Some(())
        }
        "Secret" => {
            // A Secret with a service account token must contain the name of the service account in an annotation.
            let type_ = object.get("type").and_then(Json::as_str);
            if type_ == Some("kubernetes.io/service-account-token") {
                let metadata = object.get_mut("metadata")?.as_object_mut()?;
                fill(metadata, "annotations", json!({}));
                let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
                fill(
                    annotations,
                    "kubernetes.io/service-account.name",
                    json!("default"),
                );
            }
            Some(())
        }
        "PersistentVolumeClaim" => {
            let requests = at_mut(object, "spec.resources.requests")?;
            fill(requests.as_object_mut()?, "storage", json!("1Gi"));
            Some(())
        }
        "Binding" => {
            let target = object.get_mut("target")?.as_object_mut()?;
            fill(target, "name", json!("example"));
            Some(())
        }
        "CertificateSigningRequest" => {
            let spec = object.get_mut("spec")?.as_object_mut()?;
            fill(spec, "username", json!("example"));
            fill(spec, "usages", json!(["client auth"]));
            Some(())
        }
        "PersistentVolume" => {
            let capacity = at_mut(object, "spec.capacity")?;
            fill(capacity.as_object_mut()?, "storage", json!("1Gi"));
            Some(())
        }
        "ClusterRole" | "Role" => {
            let rules = object.get_mut("rules").and_then(Json::as_array_mut);
            for rule in rules.into_iter().flatten() {
                complete_rule(rule.as_object_mut()?, kind == "ClusterRole")?;
            }
            Some(())
        }
        "Ingress" => {
            let spec = object.get_mut("spec")?.as_object_mut()?;
            if !spec.contains_key("rules") && !spec.contains_key("defaultBackend") {
                return None;
            }
            let rules = spec.get_mut("rules").and_then(Json::as_array_mut);
            for rule in rules.into_iter().flatten() {
                let paths = rule.get_mut("http").and_then(|http| http.get_mut("paths"));
                for path in paths.and_then(Json::as_array_mut).into_iter().flatten() {
                    let path = path.as_object_mut()?;
                    if !path.contains_key("path") {
                        path.insert("pathType".to_owned(), json!("ImplementationSpecific"));
                    }
                }
            }
            Some(())
        }
        "Deployment" => {
            reconcile_strategy(object.get_mut("spec")?.get_mut("strategy")?, "Recreate")
        }
        "Job" => {
            let spec = object.get("spec")?;
            let is_indexed = spec
                .get("completionMode")
                .is_some_and(|mode| mode == "Indexed");
            (!is_indexed || spec.get("completions").is_some()).then_some(())
        }
        "DaemonSet" => reconcile_strategy(
            object.get_mut("spec")?.get_mut("updateStrategy")?,
            "OnDelete",
        ),
        _ => Some(()),
    }
}

/// The paths of Pod specs in objects of built-in kinds.
const POD_SPECS: [&str; 4] = [
    POD_SPEC,
    "spec.template.spec",
    "spec.jobTemplate.spec.template.spec",
    "template.spec",
];

/// The location of the spec in a Pod. Other kinds contain Pod specs in templates.
const POD_SPEC: &str = "spec";

/// The field for containers that can be added only to a running Pod. Pod templates and new Pods cannot have this field.
///
/// Source: `pkg/apis/core/validation/validation.go` (`ValidatePodTemplateSpec`, `ValidatePodCreate`).
const EPHEMERAL_CONTAINERS: &str = "ephemeralContainers";

/// Returns true if `constraints` require fields that a new object of `kind` must not have.
#[must_use]
pub fn fails_creation(kind: &str, constraints: &InputConstraints) -> bool {
    let spec = FieldPath::new(Root::Object).field("spec");
    let ephemeral = spec.and_then(|spec| spec.field(EPHEMERAL_CONTAINERS));
    kind == "Pod" && ephemeral.is_some_and(|path| constraints.is_present(&path))
}

/// Makes a Pod spec valid. For example, Pods of Jobs must terminate, and container names must be unique.
///
/// Source: `pkg/apis/batch/validation/validation.go` (`validateJobSpec`, `ValidateJobTemplateSpec`),
/// `pkg/apis/core/validation/validation.go` (`validateInitContainers`, `validateEphemeralContainers`).
fn complete_pod(kind: &str, spec: &mut Map<String, Json>) {
    if matches!(kind, "Job" | "CronJob")
        && spec.contains_key("containers")
        && spec
            .get("restartPolicy")
            .is_some_and(|policy| policy == "Always")
    {
        spec.insert("restartPolicy".to_owned(), json!("Never"));
    }
    let mut names = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let items = spec.get_mut(list).and_then(Json::as_array_mut);
        for (n, item) in items.into_iter().flatten().enumerate() {
            let Some(Json::String(name)) = item.get_mut("name") else {
                continue;
            };
            if name == "example" && names.contains(name.as_str()) {
                let prefix = list
                    .trim_end_matches("Containers")
                    .trim_end_matches("containers");
                *name = format!("{prefix}example{n}");
            }
            names.insert(name.clone());
        }
    }
    let tolerations = spec.get_mut("tolerations").and_then(Json::as_array_mut);
    let tolerations = tolerations.into_iter().flatten();
    for toleration in tolerations.filter_map(Json::as_object_mut) {
        complete_toleration(toleration);
    }
    complete_mounts(spec);
    complete_security(spec);
}

/// Makes a toleration valid: removes `tolerationSeconds` if the effect does not permit it, and sets the operator that a
/// `value` requires.
///
/// Source: `pkg/apis/core/validation/validation.go` (`ValidateTolerations`).
fn complete_toleration(toleration: &mut Map<String, Json>) {
    if toleration
        .get("effect")
        .is_none_or(|effect| effect != "NoExecute")
    {
        toleration.remove("tolerationSeconds");
    }
    let has_value = toleration.get("value").is_some_and(|value| value != "");
    if has_value && toleration.get("operator").is_some_and(|it| it == "Exists") {
        toleration.insert("operator".to_owned(), json!("Equal"));
    }
}

/// Returns the containers in all three container lists.
fn containers(spec: &Map<String, Json>) -> impl Iterator<Item = &Json> {
    let lists = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    lists
        .filter_map(|list| spec.get(list)?.as_array())
        .flatten()
}

/// Adds an `emptyDir` volume for each mount of a missing volume.
///
/// Source: `pkg/apis/core/validation/validation.go` (`ValidateVolumeMounts`).
fn complete_mounts(spec: &mut Map<String, Json>) {
    let mounts = containers(spec).filter_map(|it| it.get("volumeMounts")?.as_array());
    let wanted = mounts.flatten().filter_map(|mount| mount.get("name"));
    let wanted: Vec<Json> = wanted.filter(|name| *name != "").cloned().collect();
    for name in wanted {
        fill(spec, "volumes", json!([]));
        let Some(volumes) = spec.get_mut("volumes").and_then(Json::as_array_mut) else {
            return;
        };
        if !volumes
            .iter()
            .any(|volume| volume.get("name") == Some(&name))
        {
            volumes.push(json!({"name": name, "emptyDir": {}}));
        }
    }
}

/// Sets the fields of a Pod spec that the security settings of the containers require.
///
/// Source: `pkg/apis/core/validation/validation.go` (`validateWindowsHostProcessPod`, `ValidateSecurityContext`,
/// `validateHostUsers`).
fn complete_security(spec: &mut Map<String, Json>) {
    let has = |path: &str, value: &Json| {
        let mut of_containers = containers(spec).filter_map(|it| it.get("securityContext"));
        let own = spec.get("securityContext").and_then(|it| at(it, path));
        own == Some(value) || of_containers.any(|it| at(it, path) == Some(value))
    };
    let is_host_process = has("windowsOptions.hostProcess", &json!(true));
    let is_unmasked = has("procMount", &json!("Unmasked"));
    if is_host_process {
        spec.insert("hostNetwork".to_owned(), json!(true));
    }
    if is_unmasked {
        fill(spec, "hostUsers", json!(false));
    }
}

/// Adds the constraints that `constraints` imply if the object of `kind` at `root` is valid. Returns `None` if no valid
/// object satisfies the constraints.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidateService`, `isHeadlessService`),
/// `pkg/apis/core/v1/defaults.go` (`SetDefaults_Service`), `pkg/registry/core/service/storage/alloc.go`
/// (`allocateCreate`), `pkg/apis/networking/validation/validation.go` (`ValidateIngressSpec`).
pub fn add_implied_constraints(
    kind: &str,
    root: Root,
    constraints: &mut InputConstraints,
) -> Option<()> {
    let spec = FieldPath::new(root).field("spec")?;
    match kind {
        "Service" => add_service_constraints(&spec, constraints),
        // An Ingress must have rules or a default backend.
        "Ingress" if constraints.is_absent(&spec.field("defaultBackend")?) => {
            constraints.add(&spec.field("rules")?, Constraint::Present)
        }
        _ => Some(()),
    }
}

fn add_service_constraints(spec: &FieldPath, constraints: &mut InputConstraints) -> Option<()> {
    let type_ = spec.field("type")?;
    let external = json!("ExternalName");
    let addresses: Option<Vec<FieldPath>> =
        ADDRESS_FIELDS.iter().map(|name| spec.field(name)).collect();
    let addresses = addresses?;
    let has_addresses = addresses.iter().any(|path| constraints.is_present(path));
    let mut balancer_fields = LOAD_BALANCER_FIELDS.iter();
    if balancer_fields
        .any(|name| (spec.field(name)).is_some_and(|path| constraints.is_present(&path)))
    {
        constraints.add(&type_, Constraint::Equals(json!("LoadBalancer")))?;
    }
    if addresses.iter().any(|path| constraints.is_absent(path)) {
        constraints.add(&type_, Constraint::Equals(external.clone()))?;
    } else if constraints.is_absent(&spec.field("ports")?) {
        let mut as_external = constraints.clone();
        let is_external_name = !has_addresses
            && as_external
                .add(&type_, Constraint::Equals(external.clone()))
                .is_some();
        if is_external_name {
            *constraints = as_external;
        } else {
            constraints.add(&spec.field("clusterIP")?, Constraint::Equals(json!("None")))?;
            constraints.add(&type_, Constraint::Equals(json!("ClusterIP")))?;
        }
    }
    let is_external = constraints
        .at(&type_)
        .is_some_and(|of_type| of_type.equals.as_ref() == Some(&external));
    let has_addresses = addresses.iter().any(|path| constraints.is_present(path));
    (!(is_external && has_addresses)).then_some(())
}

/// The fields of every Service whose type is not `ExternalName`.
const ADDRESS_FIELDS: [&str; 5] = [
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "internalTrafficPolicy",
];

/// The fields that only a Service of the type `LoadBalancer` may have.
const LOAD_BALANCER_FIELDS: [&str; 2] = ["loadBalancerClass", "loadBalancerSourceRanges"];

fn fill(object: &mut Map<String, Json>, field: &str, value: Json) {
    object.entry(field).or_insert(value);
}

/// Makes the subjects of a role binding valid: a service account must have a namespace and no API group.
///
/// Source: `pkg/apis/rbac/validation/validation.go` (`ValidateRoleBindingSubject`).
fn complete_subjects(object: &mut Json) -> Option<()> {
    let subjects = object.get_mut("subjects").and_then(Json::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        let subject = subject.as_object_mut()?;
        if subject
            .get("kind")
            .is_some_and(|kind| kind == "ServiceAccount")
        {
            subject.remove("apiGroup");
            fill(subject, "namespace", json!("default"));
        }
    }
    Some(())
}

/// Raises the maximum of an autoscaler to its minimum.
///
/// Source: `pkg/apis/autoscaling/validation/validation.go` (`validateHorizontalPodAutoscalerSpec`).
fn complete_autoscaler(spec: &mut Map<String, Json>) {
    let min = spec.get("minReplicas").and_then(Json::as_i64);
    let max = spec.get("maxReplicas").and_then(Json::as_i64);
    if let Some(min) = min.filter(|min| max.is_some_and(|max| max < *min)) {
        spec.insert("maxReplicas".to_owned(), json!(min));
    }
}

/// Makes a Service spec valid: adds the external name or the node ports that the type requires.
fn complete_service(spec: &mut Map<String, Json>) -> Option<()> {
    let type_ = spec
        .get("type")
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_owned();
    match type_.as_str() {
        "ExternalName" => {
            fill(spec, "externalName", json!("example.com"));
            for name in ADDRESS_FIELDS {
                spec.remove(name);
            }
        }
        "NodePort" | "LoadBalancer" => {
            if spec
                .get("clusterIP")
                .is_some_and(|address| address == "None")
            {
                return None;
            }
            let ports = spec.get_mut("ports").and_then(Json::as_array_mut);
            for (port, number) in ports.into_iter().flatten().zip(30_000..) {
                fill(port.as_object_mut()?, "nodePort", json!(number));
            }
        }
        _ => {}
    }
    if spec
        .get("clusterIP")
        .is_some_and(|address| address == "None")
    {
        spec.insert("clusterIPs".to_owned(), json!(["None"]));
    }
    Some(())
}

/// Fields that validation requires, although schemas do not. Each row is an outer field, an object nested in its value,
/// and the required field of this object.
const REQUIRED: [(&str, &str, &str); 9] = [
    ("volumes", "persistentVolumeClaim", "claimName"),
    ("volumes", "secret", "secretName"),
    ("volumes", "configMap", "name"),
    ("sources", "secret", "name"),
    ("sources", "configMap", "name"),
    ("valueFrom", "secretKeyRef", "name"),
    ("valueFrom", "configMapKeyRef", "name"),
    ("envFrom", "secretRef", "name"),
    ("envFrom", "configMapRef", "name"),
];

/// Adds the fields in [`REQUIRED`], and the names of `Localhost` profiles, at any depth of `value`. `holder` is the
/// field that contains `value`.
fn fill_required(holder: &str, value: &mut Json) {
    match value {
        Json::Array(items) => {
            for item in items {
                fill_required(holder, item);
            }
        }
        Json::Object(fields) => {
            for (_, object, member) in REQUIRED.iter().filter(|(of, ..)| *of == holder) {
                if let Some(Json::Object(object)) = fields.get_mut(*object)
                    && object.get(*member).is_none_or(|known| known == "")
                {
                    object.insert((*member).to_owned(), json!("example"));
                }
            }
            let is_profile = matches!(holder, "appArmorProfile" | "seccompProfile");
            if is_profile && fields.get("type").is_some_and(|type_| type_ == "Localhost") {
                fill(fields, "localhostProfile", json!("example"));
            }
            for (name, value) in fields {
                fill_required(name, value);
            }
        }
        _ => {}
    }
}

/// Makes the `type` and the `rollingUpdate` of a strategy consistent. A strategy without `rollingUpdate` gets the type
/// `otherwise`. A strategy of this type loses its `rollingUpdate`.
fn reconcile_strategy(strategy: &mut Json, otherwise: &str) -> Option<()> {
    let strategy = strategy.as_object_mut()?;
    if !strategy.contains_key("rollingUpdate") {
        strategy.insert("type".to_owned(), json!(otherwise));
    } else if strategy.get("type").is_some_and(|type_| type_ == otherwise) {
        strategy.remove("rollingUpdate");
    }
    Some(())
}

/// Adds the required fields of a role's rule. A rule must have verbs, and either API groups with resources or URLs.
fn complete_rule(rule: &mut Map<String, Json>, may_have_urls: bool) -> Option<()> {
    let has = |rule: &Map<String, Json>, name: &str| {
        let list = rule.get(name).and_then(Json::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    if !has(rule, "verbs") {
        rule.insert("verbs".to_owned(), json!(["get"]));
    }
    let has_urls = has(rule, "nonResourceURLs");
    let has_parts = ["apiGroups", "resources", "resourceNames"].map(|name| has(rule, name));
    match has_parts {
        [false, false, false] if has_urls => may_have_urls.then_some(()),
        [false, false, false] if may_have_urls => {
            rule.insert("nonResourceURLs".to_owned(), json!(["/healthz"]));
            Some(())
        }
        [true, true, _] => (!has_urls).then_some(()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, mut object: Json, expected: Option<&Json>) {
        let outcome = complete(kind, &mut object).map(|()| object);
        assert_eq!(outcome.as_ref(), expected);
    }

    #[test]
    fn empty_role_rule_is_completed_only_if_urls_are_allowed() {
        check(
            "ClusterRole",
            json!({"rules": [{}]}),
            Some(&json!({"rules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]})),
        );
        check("Role", json!({"rules": [{}]}), None);
        check(
            "ClusterRole",
            json!({"rules": [{"resources": ["pods"]}]}),
            None,
        );
        let whole =
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
        check("Role", whole.clone(), Some(&whole));
    }

    #[test]
    fn completed_strategy_type_is_consistent_with_rolling_update() {
        check(
            "Deployment",
            json!({"spec": {"strategy": {"type": "RollingUpdate"}}}),
            Some(&json!({"spec": {"strategy": {"type": "Recreate"}}})),
        );
        check(
            "Deployment",
            json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": {}}}}),
            Some(&json!({"spec": {"strategy": {"type": "Recreate"}}})),
        );
    }

    #[test]
    fn missing_required_fields_are_added() {
        check(
            "Pod",
            json!({"spec": {"volumes": [{"name": "a", "secret": {}}, {"name": "b", "emptyDir": {}}]}}),
            Some(
                &json!({"spec": {"volumes": [{"name": "a", "secret": {"secretName": "example"}}, {"name": "b", "emptyDir": {}}]}}),
            ),
        );
        check(
            "Service",
            json!({"spec": {"type": "NodePort", "clusterIP": "None"}}),
            None,
        );
        let job = |spec: Json| json!({"spec": spec});
        check("Job", job(json!({"completionMode": "Indexed"})), None);
        let whole = job(json!({"completionMode": "Indexed", "completions": 2}));
        check("Job", whole.clone(), Some(&whole));
        check(
            "RoleBinding",
            json!({"subjects": [{"kind": "ServiceAccount", "name": "a", "apiGroup": "x"}]}),
            Some(
                &json!({"subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]}),
            ),
        );
        check(
            "Service",
            json!({"spec": {"type": "NodePort", "ports": [{"port": 1}]}}),
            Some(
                &json!({"spec": {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30_000}]}}),
            ),
        );
        check(
            "Service",
            json!({"spec": {"type": "ExternalName"}}),
            Some(&json!({"spec": {"type": "ExternalName", "externalName": "example.com"}})),
        );
        check(
            "PersistentVolumeClaim",
            json!({"spec": {"resources": {"requests": {}}}}),
            Some(&json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}})),
        );
    }

    #[test]
    fn ingress_without_backend_and_rules_is_not_completed() {
        check("Ingress", json!({"spec": {}}), None);
        check(
            "Ingress",
            json!({"spec": {"rules": [{"http": {"paths": [{"pathType": "Exact"}]}}]}}),
            Some(
                &json!({"spec": {"rules": [{"http": {"paths": [{"pathType": "ImplementationSpecific"}]}}]}}),
            ),
        );
    }
}
