//! Fields of Kubernetes' own kinds that a change leaves as they are: the API server validates the new object beside the
//! old one before it asks a validating policy.

use serde_json::{Map, Value as Json};

use super::need::Needs;
use super::path::{Path, Root, Segment, at};

/// The part of an object that stays as it is.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    group: &'static str,
    /// The kind, with the subresource where the rule is for its requests.
    kind: &'static str,
    /// Where it is, `spec.selector`; empty for the whole object.
    at: &'static str,
    /// Parts of it that may change, without the elements of lists on the way.
    except: &'static [&'static str],
    how: How,
    /// The rule holds where the old object has this value.
    holds: Option<(&'static str, &'static str)>,
    /// The exceptions may change where the old object has this value.
    opens: Option<(&'static str, &'static str)>,
}

/// The changes that there are nevertheless.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// None.
    Never,
    /// It may come.
    Once,
    /// It may come, and may be another.
    Kept,
    /// It may go away.
    Shrinks,
}

const fn fixed(group: &'static str, kind: &'static str, at: &'static str) -> Fixed {
    Fixed {
        group,
        kind,
        at,
        except: &[],
        how: How::Never,
        holds: None,
        opens: None,
    }
}

impl Fixed {
    const fn except(mut self, except: &'static [&'static str]) -> Self {
        self.except = except;
        self
    }

    const fn how(mut self, how: How) -> Self {
        self.how = how;
        self
    }

    /// The rule where the old object has `value`, as JSON, at `path`.
    const fn of(mut self, path: &'static str, value: &'static str) -> Self {
        self.holds = Some((path, value));
        self
    }

    /// The exceptions are for old objects that have `value`, as JSON, at `path`.
    const fn opens(mut self, path: &'static str, value: &'static str) -> Self {
        self.opens = Some((path, value));
        self
    }
}

const BATCH: &str = "batch";
const STORAGE: &str = "storage.k8s.io";
const RESOURCE: &str = "resource.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The rules.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/*/validation/*.go` (`Validate…Update`, `ValidateImmutableField`),
/// `pkg/registry/*/*/strategy.go` (`PrepareForUpdate`, which sets back the spec of a `CertificateSigningRequest` and the
/// finalizers of a Namespace; `dropNonEphemeralContainerUpdates`, `dropNonResizeUpdates`).
const RULES: &[Fixed] = &[
    fixed("", "Pod", "spec").except(&[
        "containers.image",
        "initContainers.image",
        "activeDeadlineSeconds",
        "schedulingGates",
    ]),
    fixed("", "Pod", "spec.activeDeadlineSeconds").how(How::Kept),
    fixed("", "Pod", "spec.schedulingGates").how(How::Shrinks),
    fixed("", "Pod/ephemeralcontainers", "spec").except(&["ephemeralContainers"]),
    fixed("", "Pod/resize", "spec").except(&[
        "containers.resources",
        "containers.resizePolicy",
        "initContainers.resources",
        "initContainers.resizePolicy",
        "resources",
    ]),
    fixed("", "PersistentVolumeClaim", "spec")
        .except(&[
            "volumeName",
            "storageClassName",
            "resources.requests",
            "volumeAttributesClassName",
        ])
        .opens("status.phase", r#""Bound""#),
    fixed("", "PersistentVolumeClaim", "spec.volumeName").how(How::Once),
    fixed("", "PersistentVolumeClaim", "spec.storageClassName").how(How::Once),
    // All but these is the source of the volume.
    fixed("", "PersistentVolume", "spec").except(&[
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
    fixed("", "PersistentVolume", "spec.csi.controllerExpandSecretRef").how(How::Once),
    fixed("", "PersistentVolume", "spec.nodeAffinity").how(How::Once),
    fixed("", "PersistentVolume", "spec.volumeAttributesClassName").how(How::Kept),
    fixed("", "Secret", "type"),
    fixed("", "Secret", "immutable").of("immutable", "true"),
    fixed("", "Secret", "data").of("immutable", "true"),
    fixed("", "ConfigMap", "immutable").of("immutable", "true"),
    fixed("", "ConfigMap", "data").of("immutable", "true"),
    fixed("", "ConfigMap", "binaryData").of("immutable", "true"),
    fixed("", "Node", "spec.providerID").how(How::Once),
    fixed("", "Node", "spec.podCIDR").how(How::Once),
    fixed("", "Node", "spec.podCIDRs").how(How::Once),
    fixed("", "Node", "spec.externalID"),
    fixed("", "Namespace", "spec"),
    fixed("events.k8s.io", "Event", "").except(&["apiVersion", "kind", "metadata", "series"]),
    fixed("apps", "Deployment", "spec.selector"),
    fixed("apps", "ReplicaSet", "spec.selector"),
    fixed("apps", "DaemonSet", "spec.selector"),
    fixed("apps", "StatefulSet", "spec").except(&[
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    ]),
    fixed("apps", "ControllerRevision", "data"),
    fixed(BATCH, "Job", "spec.completions").of("spec.completionMode", r#""NonIndexed""#),
    fixed(BATCH, "Job", "spec.selector"),
    fixed(BATCH, "Job", "spec.completionMode"),
    fixed(BATCH, "Job", "spec.podFailurePolicy"),
    fixed(BATCH, "Job", "spec.backoffLimitPerIndex"),
    fixed(BATCH, "Job", "spec.managedBy"),
    fixed(BATCH, "Job", "spec.successPolicy"),
    fixed(BATCH, "Job", "spec.template")
        .except(&[
            "metadata.annotations",
            "metadata.labels",
            "spec.affinity.nodeAffinity",
            "spec.nodeSelector",
            "spec.schedulingGates",
            "spec.tolerations",
        ])
        .opens("spec.suspend", "true"),
    fixed(STORAGE, "StorageClass", "parameters"),
    fixed(STORAGE, "StorageClass", "provisioner"),
    fixed(STORAGE, "StorageClass", "reclaimPolicy"),
    fixed(STORAGE, "StorageClass", "volumeBindingMode"),
    fixed(STORAGE, "VolumeAttachment", "spec"),
    fixed(STORAGE, "VolumeAttributesClass", "driverName"),
    fixed(STORAGE, "VolumeAttributesClass", "parameters"),
    fixed(STORAGE, "CSIStorageCapacity", "nodeTopology"),
    fixed(STORAGE, "CSIStorageCapacity", "storageClassName"),
    fixed(STORAGE, "CSIDriver", "spec.attachRequired"),
    fixed(STORAGE, "CSIDriver", "spec.volumeLifecycleModes"),
    fixed(RBAC, "RoleBinding", "roleRef"),
    fixed(RBAC, "ClusterRoleBinding", "roleRef"),
    fixed(NETWORKING, "IngressClass", "spec.controller"),
    fixed(NETWORKING, "IPAddress", "spec.parentRef"),
    fixed(NETWORKING, "ServiceCIDR", "spec.cidrs"),
    fixed(CERTIFICATES, "CertificateSigningRequest", "spec"),
    fixed(CERTIFICATES, "PodCertificateRequest", "spec"),
    fixed(CERTIFICATES, "ClusterTrustBundle", "spec.signerName"),
    fixed("scheduling.k8s.io", "PriorityClass", "value"),
    fixed("scheduling.k8s.io", "PriorityClass", "preemptionPolicy"),
    fixed("node.k8s.io", "RuntimeClass", "handler"),
    fixed("discovery.k8s.io", "EndpointSlice", "addressType"),
    fixed("coordination.k8s.io", "LeaseCandidate", "spec.leaseName"),
    fixed(RESOURCE, "ResourceClaim", "spec"),
    fixed(RESOURCE, "ResourceClaimTemplate", "spec"),
    fixed(RESOURCE, "ResourceSlice", "spec.driver"),
    fixed(RESOURCE, "ResourceSlice", "spec.nodeName"),
    fixed(RESOURCE, "ResourceSlice", "spec.pool.name"),
];

/// The rules of Services that both have an address.
///
/// Source: `pkg/apis/core/validation/validation.go` (`validateUpgradeDowngradeClusterIPs`,
/// `validateUpgradeDowngradeIPFamilies`).
const OF_ADDRESSES: &[Fixed] = &[
    fixed("", "Service", "spec.clusterIP"),
    fixed("", "Service", "spec.clusterIPs"),
    fixed("", "Service", "spec.ipFamilies"),
];

/// Makes a change of the objects one that validation allows: what cannot change is, in both, as in the one of which
/// `needs` ask for something there, the old one if of both.
pub(super) fn settle(group: &str, kind: &str, needs: &Needs, object: &mut Json, old: &mut Json) {
    let is_external =
        |object: &Json| at(object, "spec.type").is_some_and(|it| it == "ExternalName");
    let of_addresses = if is_external(object) || is_external(old) {
        &[]
    } else {
        OF_ADDRESSES
    };
    let rules = RULES.iter().chain(of_addresses);
    for rule in rules.filter(|rule| rule.group == group && rule.kind == kind) {
        let settling = Settling { rule, needs };
        settling.escape(object, old);
        if rule.holds.is_none_or(|value| has(old, value)) {
            settling.open(object, old);
            let is_open = rule.opens.is_none_or(|value| has(old, value));
            let made = settling.settled(&mut Vec::new(), Some(object), Some(old), is_open);
            if let (Some(made), Some(made_old)) = made {
                *object = made;
                *old = made_old;
            }
        }
    }
}

/// Reports whether `object` has a value, written as JSON, at a path.
fn has(object: &Json, (path, value): (&str, &str)) -> bool {
    let wanted: Option<Json> = serde_json::from_str(value).ok();
    at(object, path) == wanted.as_ref()
}

/// A rule that objects are made to keep.
struct Settling<'a> {
    rule: &'a Fixed,
    needs: &'a Needs,
}

/// A part of the object, and what it was before.
type Parts = (Option<Json>, Option<Json>);

impl Settling<'_> {
    /// Gives the old object `false` for what lets the rule hold where the objects differ, unless it is asked for.
    fn escape(&self, object: &Json, old: &mut Json) {
        let Some((path, "true")) = self.rule.holds else {
            return;
        };
        let place = Path::of(Root::OldObject).field(path);
        let need = place.and_then(|place| self.needs.at(&place));
        let is_asked = need.is_some_and(|need| need.equals.is_some() || !need.differs.is_empty());
        if !is_asked
            && at(object, self.rule.at) != at(old, self.rule.at)
            && let Some(flag @ Json::Bool(true)) = old.get_mut(path)
        {
            *flag = Json::Bool(false);
        }
    }

    /// Lets the exceptions change where they are to, unless something is asked of what lets them.
    fn open(&self, object: &Json, old: &mut Json) {
        let Some((path, value)) = self.rule.opens else {
            return;
        };
        let differs = |exception: &&&str| {
            let path = format!("{}.{exception}", self.rule.at);
            at(object, &path) != at(old, &path)
        };
        // What has a rule of its own needs no leave.
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
        if !is_wanted || self.asks(Root::OldObject, &names) {
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

    fn is_same_kind(&self, rule: &Fixed) -> bool {
        (rule.group, rule.kind) == (self.rule.group, self.rule.kind)
    }

    /// Reports whether something is asked of what is at `segments`, or within it.
    fn asks(&self, root: Root, segments: &[Segment]) -> bool {
        let place = Path {
            root,
            segments: segments.to_vec(),
        };
        let mut needs = self.needs.iter();
        needs.any(|(path, _)| path.starts_with(&place))
    }

    /// The parts at `path` of both objects as the rule has them; `is_open` if its exceptions may change.
    fn settled(
        &self,
        path: &mut Vec<Segment>,
        new: Option<&Json>,
        old: Option<&Json>,
        is_open: bool,
    ) -> Parts {
        let unchanged = || (new.cloned(), old.cloned());
        let names: Vec<&str> = path.iter().filter_map(name).collect();
        let names = names.join(".");
        let is_within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            outer.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let full = |exception: &str| match self.rule.at {
            "" => exception.to_owned(),
            at => format!("{at}.{exception}"),
        };
        let is_around = names != self.rule.at && is_within(self.rule.at, &names);
        let mut exceptions = self.rule.except.iter().map(|exception| full(exception));
        let is_excepted = exceptions.clone().any(|exception| exception == names);
        let has_exceptions = exceptions.any(|exception| is_within(&exception, &names));
        if new == old || !is_around && !is_within(&names, self.rule.at) {
            return unchanged();
        }
        if is_excepted {
            // Those with a rule of their own may change by that one.
            let has_own = RULES
                .iter()
                .any(|rule| self.is_same_kind(rule) && rule.at == names);
            if is_open || has_own {
                return unchanged();
            }
        }
        let is_asked = self.asks(Root::Object, path);
        let is_asked_of_old = self.asks(Root::OldObject, path);
        let goes_in = is_around || has_exceptions || is_asked && is_asked_of_old;
        match (new, old) {
            (Some(Json::Object(new)), Some(Json::Object(old))) if goes_in => {
                return self.settled_fields(path, new, old, is_open);
            }
            (Some(Json::Array(new)), Some(Json::Array(old)))
                if goes_in && new.len() == old.len() =>
            {
                let mut both = (Vec::new(), Vec::new());
                for (n, (new, old)) in new.iter().zip(old).enumerate() {
                    path.push(Segment::Index(n));
                    let made = self.settled(path, Some(new), Some(old), is_open);
                    path.pop();
                    both.0.extend(made.0);
                    both.1.extend(made.1);
                }
                return (Some(Json::Array(both.0)), Some(Json::Array(both.1)));
            }
            _ => {}
        }
        let is_same = is_around && {
            let rest = self.rule.at.strip_prefix(&names).unwrap_or_default();
            let rest = rest.trim_start_matches('.');
            new.and_then(|new| at(new, rest)) == old.and_then(|old| at(old, rest))
        };
        let may_stay = match self.rule.how {
            _ if is_same => true,
            How::Never => false,
            How::Once => old.is_none(),
            How::Kept => old.is_none() || new.is_some(),
            How::Shrinks => new.is_none(),
        };
        if may_stay {
            unchanged()
        } else if is_asked && !is_asked_of_old {
            (new.cloned(), new.cloned())
        } else {
            (old.cloned(), old.cloned())
        }
    }

    fn settled_fields(
        &self,
        path: &mut Vec<Segment>,
        new: &Map<String, Json>,
        old: &Map<String, Json>,
        is_open: bool,
    ) -> Parts {
        let mut both = (Map::new(), Map::new());
        let of_old = old.keys().filter(|name| !new.contains_key(*name));
        for name in new.keys().chain(of_old) {
            path.push(Segment::Field(name.as_str().into()));
            let (made, made_old) = self.settled(path, new.get(name), old.get(name), is_open);
            path.pop();
            both.0.extend(made.map(|value| (name.clone(), value)));
            both.1.extend(made_old.map(|value| (name.clone(), value)));
        }
        (Some(Json::Object(both.0)), Some(Json::Object(both.1)))
    }
}

fn name(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Field(name) => Some(name),
        Segment::Index(_) => None,
    }
}
