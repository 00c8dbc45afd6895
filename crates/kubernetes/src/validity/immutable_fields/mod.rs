//! Fields of built-in kinds that an update cannot change. The API server compares the new object with the stored object
//! before validating admission.

use serde_json::{Map, Value as Json};

use super::constraints::InputConstraints;
use super::path::{FieldPath, Root, Segment, at};

#[derive(Clone, Copy, Debug)]
struct ImmutableField {
    group: &'static str,
    /// The kind, or `Kind/subresource`.
    kind: &'static str,
    /// The path of the immutable field, such as `spec.selector`. Empty for the whole object.
    at: &'static str,
    /// The paths of nested fields that may change, relative to `at` and without list indices.
    except: &'static [&'static str],
    allowed: AllowedChange,
    /// A path and a JSON value. If set, the rule applies only to old objects with this value at this path.
    applies_if: Option<(&'static str, &'static str)>,
    /// A path and a JSON value. If set, the fields in `except` may change only if the old object has this value at this
    /// path.
    excepted_if: Option<(&'static str, &'static str)>,
}

/// The changes that are allowed in an otherwise immutable field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum AllowedChange {
    /// The field must not change.
    None,
    /// The field may be set if the old object lacks it.
    Set,
    /// The field may be set or changed, but not removed.
    SetOrChange,
    /// The field may be removed.
    Remove,
}

const fn immutable(group: &'static str, kind: &'static str, at: &'static str) -> ImmutableField {
    ImmutableField {
        group,
        kind,
        at,
        except: &[],
        allowed: AllowedChange::None,
        applies_if: None,
        excepted_if: None,
    }
}

impl ImmutableField {
    const fn except(mut self, except: &'static [&'static str]) -> Self {
        self.except = except;
        self
    }

    const fn allow(mut self, allowed: AllowedChange) -> Self {
        self.allowed = allowed;
        self
    }

    /// Restricts the rule to old objects in which the value at `path` is the JSON value `value`.
    const fn applies_if(mut self, path: &'static str, value: &'static str) -> Self {
        self.applies_if = Some((path, value));
        self
    }

    /// Allows changes to the fields in `except` only if the value at `path` in the old object is the JSON value
    /// `value`.
    const fn excepted_if(mut self, path: &'static str, value: &'static str) -> Self {
        self.excepted_if = Some((path, value));
        self
    }
}

const BATCH: &str = "batch";
const STORAGE: &str = "storage.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The immutable fields of built-in kinds.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/*/validation/*.go` (`Validate…Update`, `ValidateImmutableField`),
/// `pkg/registry/*/*/strategy.go` (`PrepareForUpdate`, which resets the spec of a `CertificateSigningRequest` and the
/// finalizers of a Namespace; `dropNonEphemeralContainerUpdates`, `dropNonResizeUpdates`).
const RULES: &[ImmutableField] = &[
    immutable("", "Pod", "spec").except(&[
        "containers.image",
        "initContainers.image",
        "activeDeadlineSeconds",
        "schedulingGates",
    ]),
    immutable("", "Pod", "spec.activeDeadlineSeconds").allow(AllowedChange::SetOrChange),
    immutable("", "Pod", "spec.schedulingGates").allow(AllowedChange::Remove),
    immutable("", "Pod/ephemeralcontainers", "spec").except(&["ephemeralContainers"]),
    immutable("", "Pod/resize", "spec").except(&[
        "containers.resources",
        "containers.resizePolicy",
        "initContainers.resources",
        "initContainers.resizePolicy",
        "resources",
    ]),
    immutable("", "PersistentVolumeClaim", "spec")
        .except(&[
            "volumeName",
            "storageClassName",
            "resources.requests",
            "volumeAttributesClassName",
        ])
        .excepted_if("status.phase", r#""Bound""#),
    immutable("", "PersistentVolumeClaim", "spec.volumeName").allow(AllowedChange::Set),
    immutable("", "PersistentVolumeClaim", "spec.storageClassName").allow(AllowedChange::Set),
    // All other fields of the spec are volume sources.
    immutable("", "PersistentVolume", "spec").except(&[
        "accessModes",
        "capacity",
        "claimRef",
        "csi.controllerExpandSecretRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
    ]),
    immutable("", "PersistentVolume", "spec.csi.controllerExpandSecretRef")
        .allow(AllowedChange::Set),
    immutable("", "PersistentVolume", "spec.nodeAffinity").allow(AllowedChange::Set),
    immutable("", "PersistentVolume", "spec.volumeAttributesClassName")
        .allow(AllowedChange::SetOrChange),
    immutable("", "Secret", "type"),
    immutable("", "Secret", "immutable").applies_if("immutable", "true"),
    immutable("", "Secret", "data").applies_if("immutable", "true"),
    immutable("", "ConfigMap", "immutable").applies_if("immutable", "true"),
    immutable("", "ConfigMap", "data").applies_if("immutable", "true"),
    immutable("", "ConfigMap", "binaryData").applies_if("immutable", "true"),
    immutable("", "Node", "spec.providerID").allow(AllowedChange::Set),
    immutable("", "Node", "spec.podCIDR").allow(AllowedChange::Set),
    immutable("", "Node", "spec.podCIDRs").allow(AllowedChange::Set),
    immutable("", "Node", "spec.externalID"),
    immutable("", "Namespace", "spec"),
    immutable("events.k8s.io", "Event", "").except(&["apiVersion", "kind", "metadata", "series"]),
    immutable("apps", "Deployment", "spec.selector"),
    immutable("apps", "ReplicaSet", "spec.selector"),
    immutable("apps", "DaemonSet", "spec.selector"),
    immutable("apps", "StatefulSet", "spec").except(&[
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    ]),
    immutable("apps", "ControllerRevision", "data"),
    immutable(BATCH, "Job", "spec.completions")
        .applies_if("spec.completionMode", r#""NonIndexed""#),
    immutable(BATCH, "Job", "spec.selector"),
    immutable(BATCH, "Job", "spec.completionMode"),
    immutable(BATCH, "Job", "spec.podFailurePolicy"),
    immutable(BATCH, "Job", "spec.backoffLimitPerIndex"),
    immutable(BATCH, "Job", "spec.managedBy"),
    immutable(BATCH, "Job", "spec.successPolicy"),
    immutable(BATCH, "Job", "spec.template")
        .except(&[
            "metadata.annotations",
            "metadata.labels",
            "spec.affinity.nodeAffinity",
            "spec.nodeSelector",
            "spec.schedulingGates",
            "spec.tolerations",
        ])
        .excepted_if("spec.suspend", "true"),
    immutable(STORAGE, "StorageClass", "parameters"),
    immutable(STORAGE, "StorageClass", "provisioner"),
    immutable(STORAGE, "StorageClass", "reclaimPolicy"),
    immutable(STORAGE, "StorageClass", "volumeBindingMode"),
    immutable(STORAGE, "VolumeAttachment", "spec"),
    immutable(STORAGE, "VolumeAttributesClass", "driverName"),
    immutable(STORAGE, "VolumeAttributesClass", "parameters"),
    immutable(STORAGE, "CSIStorageCapacity", "nodeTopology"),
    immutable(STORAGE, "CSIStorageCapacity", "storageClassName"),
    immutable(STORAGE, "CSIDriver", "spec.attachRequired"),
    immutable(STORAGE, "CSIDriver", "spec.volumeLifecycleModes"),
    immutable(RBAC, "RoleBinding", "roleRef"),
    immutable(RBAC, "ClusterRoleBinding", "roleRef"),
    immutable(NETWORKING, "IngressClass", "spec.controller"),
    immutable(NETWORKING, "IPAddress", "spec.parentRef"),
    immutable(NETWORKING, "ServiceCIDR", "spec.cidrs"),
    immutable(CERTIFICATES, "CertificateSigningRequest", "spec"),
    immutable(CERTIFICATES, "PodCertificateRequest", "spec"),
    immutable(CERTIFICATES, "ClusterTrustBundle", "spec.signerName"),
    immutable("scheduling.k8s.io", "PriorityClass", "value"),
    immutable("scheduling.k8s.io", "PriorityClass", "preemptionPolicy"),
    immutable("node.k8s.io", "RuntimeClass", "handler"),
    immutable("discovery.k8s.io", "EndpointSlice", "addressType"),
    immutable("coordination.k8s.io", "LeaseCandidate", "spec.leaseName"),
    immutable(RESOURCE, "ResourceClaim", "spec"),
    immutable(RESOURCE, "ResourceClaimTemplate", "spec"),
    immutable(RESOURCE, "ResourceSlice", "spec.driver"),
    immutable(RESOURCE, "ResourceSlice", "spec.nodeName"),
    immutable(RESOURCE, "ResourceSlice", "spec.pool.name"),
];

/// The immutable fields of a Service. They may change if the old or the new Service has the type `ExternalName`.
///
/// Source: `pkg/apis/core/validation/validation.go` (`validateUpgradeDowngradeClusterIPs`,
/// `validateUpgradeDowngradeIPFamilies`).
const SERVICE_ADDRESSES: &[ImmutableField] = &[
    immutable("", "Service", "spec.clusterIP"),
    immutable("", "Service", "spec.clusterIPs"),
    immutable("", "Service", "spec.ipFamilies"),
];

/// Changes both objects so that `object` is a valid update of `old`.
///
/// Usually, an immutable field is copied from `old` to `object`. If `constraints` apply to the field in `object` but
/// not in `old`, the field is copied from `object` to `old` instead.
pub fn preserve_immutable(
    group: &str,
    kind: &str,
    constraints: &InputConstraints,
    object: &mut Json,
    old: &mut Json,
) {
    let is_external =
        |object: &Json| at(object, "spec.type").is_some_and(|it| it == "ExternalName");
    let service_addresses = if is_external(object) || is_external(old) {
        &[]
    } else {
        SERVICE_ADDRESSES
    };
    let rules = RULES.iter().chain(service_addresses);
    for rule in rules.filter(|rule| rule.group == group && rule.kind == kind) {
        let update = Update { rule, constraints };
        update.disable_rule(object, old);
        if rule.applies_if.is_none_or(|value| has(old, value)) {
            update.enable_exceptions(object, old);
            let may_use_exceptions = rule.excepted_if.is_none_or(|value| has(old, value));
            let both =
                update.preserved(&mut Vec::new(), Some(object), Some(old), may_use_exceptions);
            if let (Some(new_object), Some(new_old)) = both {
                *object = new_object;
                *old = new_old;
            }
        }
    }
}

/// Fields of the metadata that updates cannot change.
///
/// Source: `k8s.io/apimachinery` `pkg/api/validation/objectmeta.go` (`ValidateObjectMetaAccessorUpdate`),
/// `k8s.io/apiserver` `pkg/registry/rest/update.go` (`BeforeUpdate`).
const IMMUTABLE_METADATA: [&str; 5] = [
    "creationTimestamp",
    "generateName",
    "name",
    "namespace",
    "uid",
];

/// Returns true if an update of some object of the kind can change the value at `path`. `path` consists only of field
/// names. It cannot select list items or map values.
///
/// If `is_whole` is false, changes to nested fields do not count.
#[must_use]
pub fn may_update(group: &str, kind: &str, path: &[&str], is_whole: bool) -> bool {
    match path {
        ["apiVersion" | "kind"] => return false,
        ["metadata", name, ..] if IMMUTABLE_METADATA.contains(name) => return false,
        _ => {}
    }
    let is_immutable = |rule: &ImmutableField| {
        let fields: Vec<&str> = rule.at.split('.').filter(|name| !name.is_empty()).collect();
        let Some(nested) = path.strip_prefix(fields.as_slice()) else {
            return false;
        };
        let is_excepted = |exception: &&str| {
            let exception: Vec<&str> = exception.split('.').collect();
            nested.starts_with(&exception) || (is_whole && exception.starts_with(nested))
        };
        rule.allowed == AllowedChange::None
            && rule.applies_if.is_none()
            && !rule.except.iter().any(is_excepted)
    };
    !RULES
        .iter()
        .filter(|rule| rule.group == group && rule.kind == kind)
        .any(is_immutable)
}

/// Returns true if `object` has the JSON value at the path.
fn has(object: &Json, (path, value): (&str, &str)) -> bool {
    let wanted: Option<Json> = serde_json::from_str(value).ok();
    at(object, path) == wanted.as_ref()
}

/// An update that is changed to comply with `rule`.
struct Update<'a> {
    rule: &'a ImmutableField,
    constraints: &'a InputConstraints,
}

/// The new and the old value at a path.
type Versions = (Option<Json>, Option<Json>);

impl Update<'_> {
    /// If the rule applies only to old objects in which a flag is true, sets this flag to false in `old`. Does nothing
    /// if the immutable field is unchanged or the flag is constrained.
    fn disable_rule(&self, object: &Json, old: &mut Json) {
        let Some((path, "true")) = self.rule.applies_if else {
            return;
        };
        let place = FieldPath::new(Root::OldObject).field(path);
        let flag = place.and_then(|place| self.constraints.at(&place));
        let is_constrained =
            flag.is_some_and(|flag| flag.equals.is_some() || !flag.differs.is_empty());
        if !is_constrained
            && at(object, self.rule.at) != at(old, self.rule.at)
            && let Some(flag @ Json::Bool(true)) = old.get_mut(path)
        {
            *flag = Json::Bool(false);
        }
    }

    /// If the fields in `except` may change only if the old object has a certain value, sets this value in `old`. Does
    /// nothing if none of these fields has changed, or if the value is constrained.
    fn enable_exceptions(&self, object: &Json, old: &mut Json) {
        let Some((path, value)) = self.rule.excepted_if else {
            return;
        };
        let differs = |exception: &&&str| {
            let path = format!("{}.{exception}", self.rule.at);
            at(object, &path) != at(old, &path)
        };
        // A field in `except` that has its own rule does not require this value.
        let mut exceptions = self.rule.except.iter();
        let is_wanted = exceptions.any(|exception| {
            let path = format!("{}.{exception}", self.rule.at);
            differs(&exception)
                && !RULES
                    .iter()
                    .any(|rule| self.is_same_kind(rule) && rule.at == path)
        });
        let names: Vec<Segment> = path
            .split('.')
            .map(|name| Segment::Field(name.into()))
            .collect();
        if !is_wanted || self.is_constrained(Root::OldObject, &names) {
            return;
        }
        let Ok(value) = serde_json::from_str(value) else {
            return;
        };
        let mut place = old;
        for name in path.split('.') {
            let Some(fields) = place.as_object_mut() else {
                return;
            };
            place = fields
                .entry(name)
                .or_insert_with(|| Json::Object(Map::new()));
        }
        *place = value;
    }

    fn is_same_kind(&self, rule: &ImmutableField) -> bool {
        (rule.group, rule.kind) == (self.rule.group, self.rule.kind)
    }

    /// Returns true if the value at `segments` or a nested value is constrained.
    fn is_constrained(&self, root: Root, segments: &[Segment]) -> bool {
        let place = FieldPath {
            root,
            segments: segments.to_vec(),
        };
        let mut constraints = self.constraints.iter();
        constraints.any(|(path, _)| path.starts_with(&place))
    }

    /// Returns the new and the old value at `path`, changed to comply with the rule.
    fn preserved(
        &self,
        path: &mut Vec<Segment>,
        new: Option<&Json>,
        old: Option<&Json>,
        may_use_exceptions: bool,
    ) -> Versions {
        let unchanged = || (new.cloned(), old.cloned());
        let names: Vec<&str> = path.iter().filter_map(Segment::name).collect();
        let names = names.join(".");
        let is_within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            outer.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let full = |exception: &str| match self.rule.at {
            "" => exception.to_owned(),
            at => format!("{at}.{exception}"),
        };
        let is_above = names != self.rule.at && is_within(self.rule.at, &names);
        let mut exceptions = self.rule.except.iter().map(|exception| full(exception));
        let is_excepted = exceptions.clone().any(|exception| exception == names);
        let has_exceptions = exceptions.any(|exception| is_within(&exception, &names));
        if new == old || !is_above && !is_within(&names, self.rule.at) {
            return unchanged();
        }
        if is_excepted {
            // A field in `except` that has its own rule is handled by that rule.
            let has_own = RULES
                .iter()
                .any(|rule| self.is_same_kind(rule) && rule.at == names);
            if may_use_exceptions || has_own {
                return unchanged();
            }
        }
        let is_constrained = self.is_constrained(Root::Object, path);
        let is_old_constrained = self.is_constrained(Root::OldObject, path);
        let descends = is_above || has_exceptions || is_constrained && is_old_constrained;
        match (new, old) {
            (Some(Json::Object(new)), Some(Json::Object(old))) if descends => {
                return self.preserved_fields(path, new, old, may_use_exceptions);
            }
            (Some(Json::Array(new)), Some(Json::Array(old)))
                if descends && new.len() == old.len() =>
            {
                let mut both = (Vec::new(), Vec::new());
                for (n, (new, old)) in new.iter().zip(old).enumerate() {
                    path.push(Segment::Index(n));
                    let versions = self.preserved(path, Some(new), Some(old), may_use_exceptions);
                    path.pop();
                    both.0.extend(versions.0);
                    both.1.extend(versions.1);
                }
                return (Some(Json::Array(both.0)), Some(Json::Array(both.1)));
            }
            _ => {}
        }
        let is_same = is_above && {
            let rest = self.rule.at.strip_prefix(&names).unwrap_or_default();
            let rest = rest.trim_start_matches('.');
            new.and_then(|new| at(new, rest)) == old.and_then(|old| at(old, rest))
        };
        let may_differ = match self.rule.allowed {
            _ if is_same => true,
            AllowedChange::None => false,
            AllowedChange::Set => old.is_none(),
            AllowedChange::SetOrChange => old.is_none() || new.is_some(),
            AllowedChange::Remove => new.is_none(),
        };
        if may_differ {
            unchanged()
        } else if is_constrained && !is_old_constrained {
            (new.cloned(), new.cloned())
        } else {
            (old.cloned(), old.cloned())
        }
    }

    fn preserved_fields(
        &self,
        path: &mut Vec<Segment>,
        new: &Map<String, Json>,
        old: &Map<String, Json>,
        may_use_exceptions: bool,
    ) -> Versions {
        let mut both = (Map::new(), Map::new());
        let of_old = old.keys().filter(|name| !new.contains_key(*name));
        for name in new.keys().chain(of_old) {
            path.push(Segment::Field(name.as_str().into()));
            let (value, old_value) =
                self.preserved(path, new.get(name), old.get(name), may_use_exceptions);
            path.pop();
            both.0.extend(value.map(|value| (name.clone(), value)));
            both.1.extend(old_value.map(|value| (name.clone(), value)));
        }
        (Some(Json::Object(both.0)), Some(Json::Object(both.1)))
    }
}

#[cfg(test)]
mod tests;
