//! Unions: object types with alternative fields, called members. Only certain combinations of members are valid.

use serde_json::{Map, Value as Json, json};

use super::constraints::InputConstraints;
use super::path::{FieldPath, Root, Segment};

/// An object type with alternative members.
#[derive(Clone, Copy, Debug)]
struct Union {
    /// The kind of the enclosing object. Empty if any kind matches.
    kind: &'static str,
    /// The fields whose value is an object of this type or a list of such objects.
    holders: &'static [&'static str],
    /// The members, each with a minimal value as JSON. A member with an empty value is never generated.
    members: &'static [(&'static str, &'static str)],
    count: MemberCount,
}

/// The number of members in a valid object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MemberCount {
    /// Exactly one member, which the field `type` names.
    Discriminated,
    One,
    AtMostOne,
    /// At least one member. If the last member in the list is set, no other member may be set.
    AtLeastOne,
}

/// The unions of built-in kinds.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`validateEnv`, `validateEnvVarValueFrom`,
/// `validateEnvFrom`, `validateHandler`, `validateVolumeSource`, `validateProjectedVolumeSource`,
/// `ValidatePersistentVolumeSpec`), `pkg/apis/autoscaling/validation/validation.go` (`validateMetricSpec`),
/// `pkg/apis/networking/validation/validation.go` (`ValidateNetworkPolicyPeer`, `validateIngressBackend`),
/// `pkg/apis/admissionregistration/validation/validation.go` (`validateWebhook…`),
/// `pkg/apis/resource/validation/validation.go` (`validateResourceSliceSpec`).
const UNIONS: &[Union] = &[
    Union {
        kind: "",
        holders: &["valueFrom"],
        members: &[
            (
                "fieldRef",
                r#"{"apiVersion": "v1", "fieldPath": "metadata.name"}"#,
            ),
            ("secretKeyRef", r#"{"name": "example", "key": "example"}"#),
            (
                "configMapKeyRef",
                r#"{"name": "example", "key": "example"}"#,
            ),
            ("resourceFieldRef", r#"{"resource": "limits.cpu"}"#),
            ("fileKeyRef", ""),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "",
        holders: &["env"],
        members: &[("value", ""), ("valueFrom", "")],
        count: MemberCount::AtMostOne,
    },
    Union {
        kind: "",
        holders: &["envFrom"],
        members: &[
            ("configMapRef", r#"{"name": "example"}"#),
            ("secretRef", r#"{"name": "example"}"#),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "",
        holders: &["livenessProbe", "readinessProbe", "startupProbe"],
        members: &[
            ("tcpSocket", r#"{"port": 80}"#),
            ("exec", r#"{"command": ["example"]}"#),
            ("httpGet", r#"{"path": "/", "port": 80, "scheme": "HTTP"}"#),
            ("grpc", r#"{"port": 80, "service": ""}"#),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "",
        holders: &["postStart", "preStop"],
        members: &[
            ("exec", r#"{"command": ["example"]}"#),
            ("httpGet", r#"{"path": "/", "port": 80, "scheme": "HTTP"}"#),
            ("sleep", r#"{"seconds": 1}"#),
            ("tcpSocket", ""),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "",
        holders: &["volumes"],
        members: &[
            ("emptyDir", "{}"),
            ("hostPath", r#"{"path": "/example", "type": ""}"#),
            ("awsElasticBlockStore", ""),
            ("azureDisk", ""),
            ("azureFile", ""),
            ("cephfs", ""),
            ("cinder", ""),
            ("configMap", ""),
            ("csi", ""),
            ("downwardAPI", ""),
            ("ephemeral", ""),
            ("fc", ""),
            ("flexVolume", ""),
            ("flocker", ""),
            ("gcePersistentDisk", ""),
            ("gitRepo", ""),
            ("glusterfs", ""),
            ("image", ""),
            ("iscsi", ""),
            ("nfs", ""),
            ("persistentVolumeClaim", ""),
            ("photonPersistentDisk", ""),
            ("portworxVolume", ""),
            ("projected", ""),
            ("quobyte", ""),
            ("rbd", ""),
            ("scaleIO", ""),
            ("secret", ""),
            ("storageos", ""),
            ("vsphereVolume", ""),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "PersistentVolume",
        holders: &["spec"],
        members: &[
            ("hostPath", r#"{"path": "/example", "type": ""}"#),
            ("nfs", r#"{"server": "example", "path": "/example"}"#),
            (
                "csi",
                r#"{"driver": "example.com", "volumeHandle": "example"}"#,
            ),
            ("awsElasticBlockStore", ""),
            ("azureDisk", ""),
            ("azureFile", ""),
            ("cephfs", ""),
            ("cinder", ""),
            ("fc", ""),
            ("flexVolume", ""),
            ("flocker", ""),
            ("gcePersistentDisk", ""),
            ("glusterfs", ""),
            ("iscsi", ""),
            ("local", ""),
            ("photonPersistentDisk", ""),
            ("portworxVolume", ""),
            ("quobyte", ""),
            ("rbd", ""),
            ("scaleIO", ""),
            ("storageos", ""),
            ("vsphereVolume", ""),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "",
        holders: &["sources"],
        members: &[
            ("clusterTrustBundle", ""),
            ("configMap", ""),
            ("downwardAPI", ""),
            ("podCertificate", ""),
            ("secret", ""),
            ("serviceAccountToken", ""),
        ],
        count: MemberCount::AtMostOne,
    },
    Union {
        kind: "",
        holders: &["clientConfig"],
        members: &[
            (
                "service",
                r#"{"name": "example", "namespace": "default", "port": 443}"#,
            ),
            ("url", r#""https://example.com""#),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "",
        holders: &["ephemeral"],
        members: &[(
            "volumeClaimTemplate",
            r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
        )],
        count: MemberCount::One,
    },
    Union {
        kind: "Ingress",
        holders: &["backend", "defaultBackend"],
        members: &[
            ("service", r#"{"name": "example", "port": {"number": 80}}"#),
            (
                "resource",
                r#"{"apiGroup": "example.com", "kind": "Example", "name": "example"}"#,
            ),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "ResourceSlice",
        holders: &["spec"],
        members: &[
            ("nodeName", r#""example""#),
            ("allNodes", "true"),
            ("nodeSelector", ""),
            ("perDeviceNodeSelection", ""),
        ],
        count: MemberCount::One,
    },
    Union {
        kind: "HorizontalPodAutoscaler",
        holders: &["metrics"],
        members: &[
            (
                "resource",
                r#"{"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}"#,
            ),
            (
                "external",
                r#"{"metric": {"name": "example"}, "target": {"type": "Value", "value": "1"}}"#,
            ),
            (
                "pods",
                r#"{"metric": {"name": "example"}, "target": {"type": "AverageValue", "averageValue": "1"}}"#,
            ),
            (
                "object",
                r#"{"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "example"}, "metric": {"name": "example"}, "target": {"type": "Value", "value": "1"}}"#,
            ),
            (
                "containerResource",
                r#"{"name": "cpu", "container": "example", "target": {"type": "Utilization", "averageUtilization": 80}}"#,
            ),
        ],
        count: MemberCount::Discriminated,
    },
    Union {
        kind: "NetworkPolicy",
        holders: &["from", "to"],
        members: &[
            ("podSelector", "{}"),
            ("namespaceSelector", "{}"),
            ("ipBlock", r#"{"cidr": "10.0.0.0/8"}"#),
        ],
        count: MemberCount::AtLeastOne,
    },
];

/// Returns true if the last field of `path` is a member of a union, such as `hostPath` of a volume.
#[must_use]
pub fn is_union_member(path: &FieldPath) -> bool {
    let names = path.names();
    let [.., holder, member] = &*names else {
        return false;
    };
    UNIONS.iter().any(|union| {
        union.holders.contains(holder) && union.members.iter().any(|(name, _)| name == member)
    })
}

/// Adds and removes union members in `object`, so that all unions are valid and satisfy `constraints`. Returns `None`
/// if the constraints exclude all members of a union, or if they require two incompatible members.
pub(super) fn complete(
    kind: &str,
    root: Root,
    constraints: &InputConstraints,
    object: &mut Json,
) -> Option<()> {
    let mut walk = Walk {
        kind,
        constraints,
        path: FieldPath::new(root),
    };
    walk.complete(None, object)
}

struct Walk<'a> {
    kind: &'a str,
    constraints: &'a InputConstraints,
    path: FieldPath,
}

impl Walk<'_> {
    /// Makes the unions in `value` valid. `holder` is the field that contains `value`.
    fn complete(&mut self, holder: Option<&str>, value: &mut Json) -> Option<()> {
        match value {
            Json::Array(items) => {
                for (n, item) in items.iter_mut().enumerate() {
                    self.path.segments.push(Segment::Index(n));
                    self.complete(holder, item)?;
                    self.path.segments.pop();
                }
            }
            Json::Object(fields) => {
                let fits = |union: &&Union| {
                    let is_of_kind = union.kind.is_empty() || union.kind == self.kind;
                    is_of_kind && holder.is_some_and(|holder| union.holders.contains(&holder))
                };
                // A union for the field `spec` applies only to the spec of the whole object, not to the spec of a
                // nested template.
                let is_near = holder != Some("spec") || self.path.segments.len() == 1;
                if let Some(union) = UNIONS.iter().find(fits).filter(|_| is_near) {
                    self.choose_members(union, fields)?;
                }
                for (name, value) in fields {
                    if self.path.segments.is_empty() && matches!(&**name, "metadata" | "status") {
                        continue;
                    }
                    let segment = Segment::Field(name.as_str().into());
                    self.path.segments.push(segment);
                    self.complete(Some(name), value)?;
                    self.path.segments.pop();
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Removes incompatible members from `fields`. Adds a member if one is required.
    fn choose_members(&self, union: &Union, fields: &mut Map<String, Json>) -> Option<()> {
        let names: Vec<&str> = union.members.iter().map(|(name, _)| *name).collect();
        let present = || {
            names
                .iter()
                .copied()
                .filter(|name| fields.contains_key(*name))
        };
        let is_required = |name: &str| {
            let path = self.path.field(name);
            path.is_some_and(|path| self.constraints.is_present(&path))
        };
        let type_ = fields.get("type").and_then(Json::as_str);
        let is_named = |name: &str| type_ == Some(&*capitalized(name));
        let chosen = present()
            .find(|name| is_required(name))
            .or_else(|| {
                present().find(|name| union.count == MemberCount::Discriminated && is_named(name))
            })
            .or_else(|| present().next());
        let Some(chosen) = chosen else {
            if union.count == MemberCount::AtMostOne {
                return Some(());
            }
            let may_be = |name: &str| {
                let path = self.path.field(name);
                path.is_some_and(|path| !self.constraints.is_absent(&path))
            };
            let mut free = union.members.iter();
            let (name, value) = free.find(|(name, value)| !value.is_empty() && may_be(name))?;
            fields.insert((*name).to_owned(), serde_json::from_str(value).ok()?);
            Self::set_discriminator(union, name, fields);
            return Some(());
        };
        let last = names.last().copied();
        let is_compatible = |name: &str| {
            name == chosen
                || union.count == MemberCount::AtLeastOne
                    && Some(chosen) != last
                    && Some(name) != last
        };
        let others: Vec<&str> = present().filter(|name| !is_compatible(name)).collect();
        if others.iter().any(|name| is_required(name)) {
            return None;
        }
        for name in others {
            fields.remove(name);
        }
        Self::set_discriminator(union, chosen, fields);
        Some(())
    }

    /// Sets the field `type` of a discriminated union to `name`.
    fn set_discriminator(union: &Union, name: &str, fields: &mut Map<String, Json>) {
        if union.count == MemberCount::Discriminated {
            fields.insert("type".to_owned(), json!(capitalized(name)));
        }
    }
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::super::constraints::Constraint;
    use super::*;

    #[test]
    fn union_member_values_are_valid_json() {
        let values = UNIONS.iter().flat_map(|union| union.members);
        for (_, value) in values.filter(|(_, value)| !value.is_empty()) {
            assert!(serde_json::from_str::<Json>(value).is_ok(), "{value}");
        }
    }

    fn completed(kind: &str, constraints: &InputConstraints, mut object: Json) -> Option<Json> {
        complete(kind, Root::Object, constraints, &mut object).map(|()| object)
    }

    #[test]
    fn union_member_that_must_be_absent_is_replaced() {
        let autoscaler = |metric: Json| json!({"spec": {"metrics": [metric]}});
        let path = |name: &str| {
            let metric = FieldPath::new(Root::Object)
                .field("spec")?
                .field("metrics")?;
            metric.element(0)?.field(name)
        };
        let mut constraints = InputConstraints::default();
        for absent in ["resource", "external"] {
            constraints.add(
                &path(absent).unwrap_or_else(|| FieldPath::new(Root::Object)),
                Constraint::Absent,
            );
        }
        let kind = "HorizontalPodAutoscaler";
        let completed_object =
            completed(kind, &constraints, autoscaler(json!({"type": "Resource"})));
        let type_ = completed_object
            .as_ref()
            .and_then(|completed_object| completed_object.pointer("/spec/metrics/0/type"));
        assert_eq!(type_, Some(&json!("Pods")));
        let both = autoscaler(json!({"type": "External", "resource": {}, "external": {}}));
        let completed_object = completed(kind, &InputConstraints::default(), both);
        assert_eq!(
            completed_object,
            Some(autoscaler(json!({"type": "External", "external": {}})))
        );
    }

    #[test]
    fn network_policy_peer_keeps_compatible_members() {
        let policy = |peer: Json| json!({"spec": {"ingress": [{"from": [peer]}]}});
        let none = InputConstraints::default();
        let completed_object = completed("NetworkPolicy", &none, policy(json!({})));
        assert_eq!(completed_object, Some(policy(json!({"podSelector": {}}))));
        let both = policy(json!({"podSelector": {}, "namespaceSelector": {}}));
        assert_eq!(completed("NetworkPolicy", &none, both.clone()), Some(both));
    }
}
