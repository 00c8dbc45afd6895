//! Rules of validation that bind several fields of Kubernetes' own kinds, which no schema tells.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};

use super::need::{Edit, Needs};
use super::path::{Path, Root, at, at_mut};

/// Completes an object of `kind` so that it is valid; `None` where what it has and lacks can never be.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/rbac/validation/validation.go` (`ValidatePolicyRule`),
/// `pkg/apis/networking/validation/validation.go` (`ValidateIngressSpec`, `validateHTTPIngressPath`),
/// `pkg/apis/apps/v1/defaults.go` and `pkg/apis/apps/validation/validation.go` (`ValidateDeploymentStrategy`),
/// `pkg/apis/core/validation/validation.go` (`ValidateService`, `ValidatePodBinding`, `validateVolumeSource`), `pkg/apis/rbac/validation/validation.go` (`ValidateRoleBindingSubject`),
/// `pkg/apis/certificates/validation/validation.go` and
/// `pkg/registry/certificates/certificates/strategy.go` (the user is given),
/// `pkg/apis/batch/validation/validation.go` (`validateJobSpec`),
/// `pkg/registry/core/service/storage`
/// (ports of nodes are given before policies are asked).
pub(super) fn complete(kind: &str, object: &mut Json) -> Option<()> {
    fill_required("", object);
    for at in TEMPLATES {
        if let Some(spec) = at_mut(object, at).and_then(Json::as_object_mut) {
            complete_pod(kind, spec);
        }
    }
    match kind {
        "ClusterRoleBinding" | "RoleBinding" => {
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
        "Service" => complete_service(object.get_mut("spec")?.as_object_mut()?),
        "Secret" => {
            // The type that belongs to an account names it.
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
            without_rolling_update(object.get_mut("spec")?.get_mut("strategy")?, "Recreate")
        }
        "Job" => {
            let spec = object.get("spec")?;
            let is_indexed = spec
                .get("completionMode")
                .is_some_and(|mode| mode == "Indexed");
            (!is_indexed || spec.get("completions").is_some()).then_some(())
        }
        "DaemonSet" => without_rolling_update(
            object.get_mut("spec")?.get_mut("updateStrategy")?,
            "OnDelete",
        ),
        _ => Some(()),
    }
}

/// The specs of Pods.
const TEMPLATES: [&str; 3] = [
    "spec",
    "spec.template.spec",
    "spec.jobTemplate.spec.template.spec",
];

/// Completes the spec of a Pod: Pods of Jobs end, and no two containers have the same name.
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
    let mut known = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let items = spec.get_mut(list).and_then(Json::as_array_mut);
        for (n, item) in items.into_iter().flatten().enumerate() {
            let Some(Json::String(name)) = item.get_mut("name") else {
                continue;
            };
            if name == "example" && known.contains(name.as_str()) {
                let prefix = list
                    .trim_end_matches("Containers")
                    .trim_end_matches("containers");
                *name = format!("{prefix}example{n}");
            }
            known.insert(name.clone());
        }
    }
    complete_mounts(spec);
    complete_security(spec);
}

/// The containers of the spec of a Pod, of all three lists.
fn containers(spec: &Map<String, Json>) -> impl Iterator<Item = &Json> {
    let lists = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    lists
        .filter_map(|list| spec.get(list)?.as_array())
        .flatten()
}

/// Adds an empty directory for each mount of a volume that is not there.
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

/// Completes what a setting of the security of a container asks of its Pod.
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

/// Adds to the needs of an object of `kind` at `root` those that follow from them; `None` where no valid object has
/// them all.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidateService`, `isHeadlessService`),
/// `pkg/apis/core/v1/defaults.go` (`SetDefaults_Service`), `pkg/registry/core/service/storage/alloc.go`
/// (`allocateCreate`).
pub(super) fn imply(kind: &str, root: Root, needs: &mut Needs) -> Option<()> {
    if kind != "Service" {
        return Some(());
    }
    let spec = Path::of(root).field("spec")?;
    let type_ = spec.field("type")?;
    let external = json!("ExternalName");
    let addresses: Option<Vec<Path>> = ADDRESSES.iter().map(|name| spec.field(name)).collect();
    let addresses = addresses?;
    let has_addresses = addresses.iter().any(|path| needs.is_present(path));
    if addresses.iter().any(|path| needs.is_absent(path)) {
        needs.add(&type_, Edit::Equals(external.clone()))?;
    } else if needs.is_absent(&spec.field("ports")?) {
        let mut of_name = needs.clone();
        let is_of_name = !has_addresses
            && of_name
                .add(&type_, Edit::Equals(external.clone()))
                .is_some();
        if is_of_name {
            *needs = of_name;
        } else {
            needs.add(&spec.field("clusterIP")?, Edit::Equals(json!("None")))?;
            needs.add(&type_, Edit::Equals(json!("ClusterIP")))?;
        }
    }
    let is_external = needs
        .at(&type_)
        .is_some_and(|need| need.equals.as_ref() == Some(&external));
    let has_addresses = addresses.iter().any(|path| needs.is_present(path));
    (!(is_external && has_addresses)).then_some(())
}

/// Fields that a Service has unless it is of the type `ExternalName`.
const ADDRESSES: [&str; 5] = [
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "internalTrafficPolicy",
];

fn fill(object: &mut Map<String, Json>, field: &str, value: Json) {
    object.entry(field).or_insert(value);
}

/// Completes the spec of a Service: by its type it has a name or ports of nodes.
fn complete_service(spec: &mut Map<String, Json>) -> Option<()> {
    let type_ = spec
        .get("type")
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_owned();
    match type_.as_str() {
        "ExternalName" => {
            fill(spec, "externalName", json!("example.com"));
            for name in ADDRESSES {
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

/// Members that validation asks for and schemas do not: the field that holds an object or a list of them, the object,
/// and its member.
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

/// Adds what [`REQUIRED`] asks for to `value` and all within it, which `holder` holds.
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

/// Gives a strategy without `rollingUpdate` the type `otherwise`: for the usual type it is filled in.
fn without_rolling_update(strategy: &mut Json, otherwise: &str) -> Option<()> {
    let strategy = strategy.as_object_mut()?;
    if !strategy.contains_key("rollingUpdate") {
        strategy.insert("type".to_owned(), json!(otherwise));
    } else if strategy.get("type").is_some_and(|type_| type_ == otherwise) {
        strategy.remove("rollingUpdate");
    }
    Some(())
}

/// Completes a rule of a role: it is for resources of groups or for URLs, and has verbs.
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
    fn a_rule_is_for_resources_or_for_urls() {
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
    fn a_strategy_has_what_its_type_asks_for() {
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
    fn what_validation_or_the_registry_asks_for_is_filled_in() {
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
    fn an_ingress_leads_somewhere() {
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
