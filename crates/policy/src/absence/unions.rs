//! Objects of Kubernetes' own kinds of which validation wants one member of several, which no schema tells.

use serde_json::{Map, Value as Json, json};

use super::need::Needs;
use super::path::{Path, Root, Segment};

/// A type with members of which one is there.
#[derive(Clone, Copy, Debug)]
struct Union {
    /// The kind; empty for any.
    kind: &'static str,
    /// The fields that hold an object of the type, or a list of them.
    holders: &'static [&'static str],
    /// The members, with the least value of each as JSON; empty for those that are not made.
    members: &'static [(&'static str, &'static str)],
    how: How,
}

/// The number of members.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    /// One, which `type` names.
    OfType,
    /// One.
    One,
    /// One or none.
    AtMostOne,
    /// Some; the last goes with no other.
    Some,
}

/// The types.
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
        how: How::One,
    },
    Union {
        kind: "",
        holders: &["env"],
        members: &[("value", ""), ("valueFrom", "")],
        how: How::AtMostOne,
    },
    Union {
        kind: "",
        holders: &["envFrom"],
        members: &[
            ("configMapRef", r#"{"name": "example"}"#),
            ("secretRef", r#"{"name": "example"}"#),
        ],
        how: How::One,
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
        how: How::One,
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
        how: How::One,
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
        how: How::One,
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
        how: How::One,
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
        how: How::AtMostOne,
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
        how: How::One,
    },
    Union {
        kind: "",
        holders: &["ephemeral"],
        members: &[(
            "volumeClaimTemplate",
            r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
        )],
        how: How::One,
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
        how: How::One,
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
        how: How::One,
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
        how: How::OfType,
    },
    Union {
        kind: "NetworkPolicy",
        holders: &["from", "to"],
        members: &[
            ("podSelector", "{}"),
            ("namespaceSelector", "{}"),
            ("ipBlock", r#"{"cidr": "10.0.0.0/8"}"#),
        ],
        how: How::Some,
    },
];

/// Gives each union within `object`, of `kind`, the members that validation wants, other ones than `needs` exclude;
/// `None` where they exclude all, or ask for more than one.
pub(super) fn complete(kind: &str, root: Root, needs: &Needs, object: &mut Json) -> Option<()> {
    let mut walk = Walk {
        kind,
        needs,
        path: Path::of(root),
    };
    walk.complete(None, object)
}

struct Walk<'a> {
    kind: &'a str,
    needs: &'a Needs,
    path: Path,
}

impl Walk<'_> {
    /// Completes `value`, which `holder` holds.
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
                // The spec of a template is none of the kind.
                let is_near = holder != Some("spec") || self.path.segments.len() == 1;
                if let Some(union) = UNIONS.iter().find(fits).filter(|_| is_near) {
                    self.choose(union, fields)?;
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

    /// Leaves the members of `fields` that go together, and adds one where one has to be there.
    fn choose(&self, union: &Union, fields: &mut Map<String, Json>) -> Option<()> {
        let names: Vec<&str> = union.members.iter().map(|(name, _)| *name).collect();
        let present = || {
            names
                .iter()
                .copied()
                .filter(|name| fields.contains_key(*name))
        };
        let is_asked = |name: &str| {
            let path = self.path.field(name);
            path.is_some_and(|path| self.needs.is_present(&path))
        };
        let type_ = fields.get("type").and_then(Json::as_str);
        let is_of_type = |name: &str| type_ == Some(&*capital(name));
        let chosen = present()
            .find(|name| is_asked(name))
            .or_else(|| present().find(|name| union.how == How::OfType && is_of_type(name)))
            .or_else(|| present().next());
        let Some(chosen) = chosen else {
            if union.how == How::AtMostOne {
                return Some(());
            }
            let may_be = |name: &str| {
                let path = self.path.field(name);
                path.is_some_and(|path| !self.needs.is_absent(&path))
            };
            let mut free = union.members.iter();
            let (name, value) = free.find(|(name, value)| !value.is_empty() && may_be(name))?;
            fields.insert((*name).to_owned(), serde_json::from_str(value).ok()?);
            Self::name_type(union, name, fields);
            return Some(());
        };
        let last = names.last().copied();
        let goes_together = |name: &str| {
            name == chosen || union.how == How::Some && Some(chosen) != last && Some(name) != last
        };
        let others: Vec<&str> = present().filter(|name| !goes_together(name)).collect();
        if others.iter().any(|name| is_asked(name)) {
            return None;
        }
        for name in others {
            fields.remove(name);
        }
        Self::name_type(union, chosen, fields);
        Some(())
    }

    /// Names the member by the field `type`, where there is one.
    fn name_type(union: &Union, name: &str, fields: &mut Map<String, Json>) {
        if union.how == How::OfType {
            fields.insert("type".to_owned(), json!(capital(name)));
        }
    }
}

/// `name` with a capital.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::super::need::Edit;
    use super::*;

    #[test]
    fn values_are_json() {
        let values = UNIONS.iter().flat_map(|union| union.members);
        for (_, value) in values.filter(|(_, value)| !value.is_empty()) {
            assert!(serde_json::from_str::<Json>(value).is_ok(), "{value}");
        }
    }

    fn completed(kind: &str, needs: &Needs, mut object: Json) -> Option<Json> {
        complete(kind, Root::Object, needs, &mut object).map(|()| object)
    }

    #[test]
    fn another_member_takes_the_place_of_one_that_is_absent() {
        let autoscaler = |metric: Json| json!({"spec": {"metrics": [metric]}});
        let path = |name: &str| {
            let metric = Path::of(Root::Object).field("spec")?.field("metrics")?;
            metric.element(0)?.field(name)
        };
        let mut needs = Needs::default();
        for absent in ["resource", "external"] {
            needs.add(
                &path(absent).unwrap_or_else(|| Path::of(Root::Object)),
                Edit::Absent,
            );
        }
        let kind = "HorizontalPodAutoscaler";
        let made = completed(kind, &needs, autoscaler(json!({"type": "Resource"})));
        let type_ = made
            .as_ref()
            .and_then(|made| made.pointer("/spec/metrics/0/type"));
        assert_eq!(type_, Some(&json!("Pods")));
        // One of two goes.
        let both = autoscaler(json!({"type": "External", "resource": {}, "external": {}}));
        let made = completed(kind, &Needs::default(), both);
        assert_eq!(
            made,
            Some(autoscaler(json!({"type": "External", "external": {}})))
        );
    }

    #[test]
    fn a_peer_by_address_is_no_other() {
        let policy = |peer: Json| json!({"spec": {"ingress": [{"from": [peer]}]}});
        let none = Needs::default();
        let made = completed("NetworkPolicy", &none, policy(json!({})));
        assert_eq!(made, Some(policy(json!({"podSelector": {}}))));
        let both = policy(json!({"podSelector": {}, "namespaceSelector": {}}));
        assert_eq!(completed("NetworkPolicy", &none, both.clone()), Some(both));
    }
}
