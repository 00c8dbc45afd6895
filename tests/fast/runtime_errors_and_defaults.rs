//! Tests findings of `kubectl vap check` about absent and null values, for objects with defaults. A witness must have
//! the fields that the API server sets. A read of a field that the API server omits or encodes as null must be
//! reported.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::json;

use crate::runtime_errors::{POD, fails, holds, policy, runtime_errors};

const STATEFUL_SET: (&str, &str, &str) = ("apps", "v1", "statefulsets");
const SERVICE: (&str, &str, &str) = ("", "v1", "services");
const CLAIM: (&str, &str, &str) = ("", "v1", "persistentvolumeclaims");
const VOLUME: (&str, &str, &str) = ("", "v1", "persistentvolumes");
const SLICE: (&str, &str, &str) = ("discovery.k8s.io", "v1", "endpointslices");
const CLUSTER_ROLE: (&str, &str, &str) = ("rbac.authorization.k8s.io", "v1", "clusterroles");

#[test]
fn fields_set_by_api_server_are_not_reported() {
    for (resource, expression) in [
        (
            STATEFUL_SET,
            "!has(object.spec.persistentVolumeClaimRetentionPolicy) || \
             object.spec.persistentVolumeClaimRetentionPolicy.whenDeleted == 'Retain'",
        ),
        (
            STATEFUL_SET,
            "!has(object.spec.volumeClaimTemplates) || object.spec.volumeClaimTemplates.all(v, \
             v.kind == 'PersistentVolumeClaim' && v.status.phase == 'Pending')",
        ),
        (
            ("autoscaling", "v2", "horizontalpodautoscalers"),
            "!has(object.spec.behavior) || !has(object.spec.behavior.scaleUp) || \
             object.spec.behavior.scaleUp.policies.all(p, p.periodSeconds < 100)",
        ),
        (VOLUME, "object.metadata.finalizers.size() > 0"),
        (CLAIM, "object.metadata.finalizers.size() > 0"),
        (("", "v1", "nodes"), "object.spec.taints.size() > 0"),
        (("", "v1", "events"), "object.firstTimestamp != ''"),
        (
            POD,
            "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.downwardAPI) || \
             v.downwardAPI.defaultMode < 1000)",
        ),
        (
            SLICE,
            "!has(object.ports) || object.ports == null || object.ports.all(p, p.protocol == 'TCP')",
        ),
        (
            ("", "v1", "replicationcontrollers"),
            "object.metadata.labels.size() > 0",
        ),
        (
            ("storage.k8s.io", "v1", "csidrivers"),
            "object.spec.seLinuxMount == false",
        ),
        (
            ("resource.k8s.io", "v1", "resourceclaims"),
            "!has(object.spec.devices.requests) || object.spec.devices.requests.all(r, !has(r.exactly) || \
             r.exactly.allocationMode == 'ExactCount')",
        ),
        (
            ("apiregistration.k8s.io", "v1", "apiservices"),
            "!has(object.spec.service) || object.spec.service.port == 443",
        ),
        // If `hostNetwork` is true, the API server sets `ports[].hostPort`.
        (
            POD,
            "!object.spec.?hostNetwork.orValue(false) || object.spec.containers.all(c, !has(c.ports) || \
             c.ports.all(p, p.hostPort > 0))",
        ),
        (
            SERVICE,
            "object.spec.type != 'LoadBalancer' || object.spec.externalTrafficPolicy == 'Local'",
        ),
        (
            CLAIM,
            "!has(object.spec.dataSource) || object.spec.dataSourceRef.kind == 'VolumeSnapshot'",
        ),
    ] {
        holds(resource, "CREATE", expression);
    }
    // The API server sets the field only on creation, so an update can remove it.
    fails(
        VOLUME,
        "UPDATE",
        "object.metadata.finalizers.size() > 0",
        &["absent-field object.metadata.finalizers"],
    );
}

#[test]
fn invalid_object_is_not_a_witness() {
    for (resource, expression) in [
        (
            VOLUME,
            "!has(request.namespace) || namespaceObject.metadata.name != 'x'",
        ),
        (
            POD,
            "!has(object.spec.volumes) || object.spec.volumes.filter(v, has(v.secret)).all(v, \
             v.secret.secretName != 'x')",
        ),
        (
            SERVICE,
            "object.spec.type in ['NodePort', 'LoadBalancer'] ? object.spec.ports.all(p, p.nodePort > 30000) : true",
        ),
        (
            ("batch", "v1", "jobs"),
            "object.spec.completionMode != 'Indexed' || object.spec.completions > 1",
        ),
    ] {
        holds(resource, "CREATE, UPDATE", expression);
    }
}

#[test]
fn default_of_one_kind_does_not_apply_to_another() {
    fails(
        ("batch", "v1", "cronjobs"),
        "CREATE",
        "object.spec.jobTemplate.spec.completionMode == 'NonIndexed'",
        &["absent-field object.spec.jobTemplate.spec.completionMode"],
    );
    fails(
        CLAIM,
        "CREATE",
        "object.status.phase == 'Pending'",
        &["absent-field object.status.phase"],
    );
}

#[test]
fn reads_of_unset_fields_that_may_be_null_are_reported() {
    for expression in [
        "object.rules.all(r, !('*' in r.verbs))",
        "!has(object.rules) || object.rules.all(r, !('*' in r.verbs))",
        "object.?rules.orValue([]).all(r, !('*' in r.verbs))",
        "size(object.rules) < 50",
    ] {
        fails(
            CLUSTER_ROLE,
            "CREATE",
            expression,
            &["absent-field object.rules"],
        );
        let help = help(CLUSTER_ROLE, expression);
        assert!(
            help.contains("`object.rules == null || ...` to allow them")
                || help.contains(
                    "`object.rules == null || object.rules.all(r, !('*' in r.verbs))` to allow them"
                ),
            "{help}"
        );
    }
    holds(
        CLUSTER_ROLE,
        "CREATE",
        "object.rules == null || object.rules.all(r, !('*' in r.verbs))",
    );
    fails(
        SLICE,
        "CREATE",
        "object.endpoints.all(e, e.addresses.size() > 0)",
        &["absent-field object.endpoints"],
    );
}

#[test]
fn read_of_replicas_in_scale_is_reported() {
    let scale = ("apps", "v1", "deployments/scale");
    let expression = "object.spec.replicas < 5";
    fails(
        scale,
        "CREATE, UPDATE",
        expression,
        &["absent-field object.spec.replicas"],
    );
    let help = help(scale, expression);
    assert!(
        help.contains("`object.spec.?replicas.orValue(0)`"),
        "{help}"
    );
    for guarded in [
        "!has(object.spec.replicas) || object.spec.replicas < 5",
        "object.spec.?replicas.orValue(0) < 5",
    ] {
        holds(scale, "UPDATE", guarded);
    }
}

/// Returns the help of the only finding for the validation `expression`.
fn help(resource: (&str, &str, &str), expression: &str) -> String {
    let spec = format!("  validations:\n  - expression: {}\n", json!(expression));
    let findings = runtime_errors(&policy(resource, "CREATE, UPDATE", &spec), &[]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings[0]["help"].as_str().unwrap().to_owned()
}

#[test]
fn advised_guard_fixes_finding() {
    for (expression, code) in [
        (
            "object.metadata.deletionTimestamp == null",
            "!has(object.metadata.deletionTimestamp)",
        ),
        (
            "object.spec.hostNetwork == false",
            "object.spec.?hostNetwork.orValue(false)",
        ),
        (
            "object.spec.nodeName == ''",
            "object.spec.?nodeName.orValue('')",
        ),
        (
            "size(object.metadata.ownerReferences) <= 1",
            "object.metadata.?ownerReferences.orValue([])",
        ),
        (
            "object.spec.runtimeClassName != null",
            "has(object.spec.runtimeClassName)",
        ),
    ] {
        let help = help(POD, expression);
        assert!(help.contains(&format!("`{code}`")), "{expression}: {help}");
        // For a comparison with null, the help replaces the whole comparison.
        let is_of_null = expression.contains("null");
        assert_eq!(
            help.contains("orValue"),
            !is_of_null,
            "{expression}: {help}"
        );
        // The changed expression has no findings.
        let chain = expression.split(['(', ')', ' ']);
        let chain = chain
            .into_iter()
            .find(|part| part.starts_with("object."))
            .unwrap();
        let changed = match code.strip_suffix("...") {
            Some(guard) => format!("{guard}{expression}"),
            None if is_of_null => code.to_owned(),
            None => expression.replace(chain, code),
        };
        holds(POD, "CREATE, UPDATE", &changed);
    }
    // A Pod has at least one container, so no guard for the size is advised.
    let help = help(
        POD,
        "object.spec.containers[0].securityContext.privileged == true",
    );
    assert!(!help.contains("size("), "{help}");
}

const GADGETS: (&str, &str, &str) = ("example.com", "v1", "gadgets");
const GADGET: &str = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              note: {type: string, nullable: true}
              ratio: {type: number}
              share: {type: number, minimum: 0.1, maximum: 0.9}
              plain: {type: string}
";

/// Returns the rule, message and help of each finding for a validation of a Gadget.
fn gadget_findings(expression: &str) -> Vec<[String; 3]> {
    let guarded = format!("has(object.spec) && {expression}");
    let spec = format!("  validations:\n  - expression: {}\n", json!(guarded));
    let manifest = policy(GADGETS, "CREATE", &spec) + GADGET;
    let actual = crate::manifest::findings(&manifest, &[]).into_iter();
    let actual = actual.filter(|finding| finding["witness"].is_object());
    let text =
        |finding: &serde_json::Value, field: &str| finding[field].as_str().unwrap().to_owned();
    actual
        .map(|finding| {
            let message = text(&finding, "message");
            let subject = message.split(':').next().unwrap().to_owned();
            let help = text(&finding, "help");
            let help = help.split(';').next().unwrap().to_owned();
            [text(&finding, "rule"), subject, help]
        })
        .collect()
}

#[test]
fn reads_of_nullable_crd_fields_are_reported() {
    assert_eq!(
        gadget_findings("has(object.spec.note) && object.spec.note.size() > 0"),
        [[
            "absent-field",
            "`object.spec.note` may be null",
            "write `object.spec.note != null && object.spec.note.size() > 0` to deny such requests, or `(object.spec.note == null || object.spec.note.size() > 0)` to allow them"
        ]]
    );
    for guarded in [
        "has(object.spec.note) && object.spec.note != null && object.spec.note.size() > 0",
        "has(object.spec.plain) && object.spec.plain.size() > 0",
    ] {
        assert_eq!(gadget_findings(guarded), <[[String; 3]; 0]>::default());
    }
}

#[test]
fn arithmetic_on_number_that_may_be_int_is_reported() {
    let rule = "no-matching-overload";
    let help = "convert the value with `double(object.spec.ratio)` if the other operand is a double such as `1.0`";
    assert_eq!(
        gadget_findings("has(object.spec.ratio) && object.spec.ratio + 1.0 > 0.5"),
        [[
            rule,
            "`object.spec.ratio` may be a whole number, which is an int",
            help
        ]]
    );
    assert_eq!(
        gadget_findings("has(object.spec.ratio) && object.spec.ratio * 2 > 0"),
        [[
            rule,
            "`object.spec.ratio` may be a fraction, which is a double",
            help
        ]]
    );
    for sound in [
        "has(object.spec.ratio) && double(object.spec.ratio) + 1.0 > 0.5",
        "has(object.spec.ratio) && object.spec.ratio < 2",
        // The bounds of `share` exclude all integers, so its value is always a double.
        "has(object.spec.share) && object.spec.share + 1.0 > 0.5",
    ] {
        assert_eq!(gadget_findings(sound), <[[String; 3]; 0]>::default());
    }
}
