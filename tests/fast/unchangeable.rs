//! Tests findings of `kubectl vap check` about updates. If the API server rejects an update, the update is not a
//! witness.

use crate::runtime_errors::{DEPLOYMENT, POD, fails, holds};

const CLAIM: (&str, &str, &str) = ("", "v1", "persistentvolumeclaims");
const JOB: (&str, &str, &str) = ("batch", "v1", "jobs");

#[test]
fn update_keeps_presence_of_immutable_field() {
    for (resource, fields) in [
        (
            CLAIM,
            &[
                "spec.volumeName",
                "spec.storageClassName",
                "spec.dataSource",
            ][..],
        ),
        (
            POD,
            &[
                "spec.nodeName",
                "spec.nodeSelector",
                "spec.hostNetwork",
                "spec.priorityClassName",
            ],
        ),
        (("storage.k8s.io", "v1", "storageclasses"), &["parameters"]),
        (("", "v1", "nodes"), &["spec.providerID", "spec.podCIDR"]),
        (
            ("apps", "v1", "statefulsets"),
            &["spec.volumeClaimTemplates"],
        ),
        (
            JOB,
            &[
                "spec.completions",
                "spec.podFailurePolicy",
                "spec.managedBy",
            ],
        ),
        (
            ("certificates.k8s.io", "v1", "certificatesigningrequests"),
            &["spec.expirationSeconds"],
        ),
        (
            ("storage.k8s.io", "v1", "volumeattachments"),
            &["spec.source.persistentVolumeName"],
        ),
        (
            ("resource.k8s.io", "v1", "resourceclaims"),
            &["spec.devices.requests"],
        ),
    ] {
        for field in fields {
            holds(
                resource,
                "UPDATE",
                &format!("!has(oldObject.{field}) || object.{field} == oldObject.{field}"),
            );
        }
    }
    for resource in ["secrets", "configmaps"] {
        holds(
            ("", "v1", resource),
            "UPDATE",
            "!has(oldObject.immutable) || !oldObject.immutable || object.immutable",
        );
    }
    holds(
        ("", "v1", "persistentvolumes"),
        "UPDATE",
        "!has(oldObject.spec.hostPath) || object.spec.hostPath.path == oldObject.spec.hostPath.path",
    );
    holds(
        POD,
        "UPDATE",
        "oldObject.spec.containers.all(c, !has(c.securityContext) || object.spec.containers.exists(d, \
         d.name == c.name && d.securityContext == c.securityContext))",
    );
}

#[test]
fn read_of_removable_field_is_reported() {
    let gone = |resource, field: &str| {
        fails(
            resource,
            "UPDATE",
            &format!("!has(oldObject.{field}) || object.{field} == oldObject.{field}"),
            &[&format!("absent-field object.{field}")],
        );
    };
    gone(
        ("networking.k8s.io", "v1", "ingresses"),
        "spec.ingressClassName",
    );
    gone(DEPLOYMENT, "spec.template.spec.nodeSelector");
    gone(("", "v1", "configmaps"), "immutable");
    gone(("", "v1", "persistentvolumes"), "spec.claimRef");
    // An update can remove the field of a bound claim.
    gone(CLAIM, "spec.volumeAttributesClassName");
    // An update can remove the fields of a suspended job.
    gone(JOB, "spec.template.spec.nodeSelector");
    gone(JOB, "spec.activeDeadlineSeconds");
    gone(POD, "metadata.labels");
    // An update can add the field, but cannot remove it.
    fails(
        CLAIM,
        "UPDATE",
        "object.spec.volumeName == oldObject.spec.volumeName || has(object.spec.volumeName) && \
         oldObject.spec.volumeName == ''",
        &[
            "absent-field object.spec.volumeName",
            "absent-field oldObject.spec.volumeName",
        ],
    );
    fails(
        CLAIM,
        "UPDATE",
        "!has(object.spec.volumeName) || object.spec.volumeName == oldObject.spec.volumeName",
        &["absent-field oldObject.spec.volumeName"],
    );
    fails(
        POD,
        "UPDATE",
        "oldObject.spec.nodeSelector['a'] == 'b'",
        &["absent-field oldObject.spec.nodeSelector"],
    );
}
