//! The CRD of `PolicyProbe`, as it is installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::api::PolicyProbe;

/// The most objects that a list of a probe may hold, other than its cases.
const MAX_OBJECTS: usize = 64;

/// The CRD.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    PolicyProbe::crd()
}

/// The CRD as a document of YAML, with the note that it is generated.
///
/// # Errors
/// If it cannot be written as YAML, which does not depend on any input.
pub fn crd_yaml() -> Result<String, serde_norway::Error> {
    let crd = serde_norway::to_string(&crd())?;
    Ok(format!(
        "# @generated from src/probe/api.rs by `./dev crds`; do not edit.\n{crd}"
    ))
}

fn rule(expression: &str, message: &str) -> Value {
    json!({"rule": expression, "message": message})
}

pub(super) fn spec_rules() -> Value {
    json!([
        rule(
            "!has(self.inlineParams) || self.inlineParams.size() == 0 || \
             (has(self.params) && self.params == 'Inline')",
            "inlineParams is only read where params is Inline"
        ),
        rule(
            "(has(self.bindings) && self.bindings == 'Inline') == \
             (has(self.inlineBindings) && self.inlineBindings.size() > 0)",
            "inlineBindings and bindings: Inline go together"
        ),
        rule(
            "has(self.policyName) != has(self.target)",
            "write policyName for a ValidatingAdmissionPolicy, or target for anything else: one of the two, and not both"
        ),
        rule(
            "has(self.target) && self.target.kind == 'MutatingAdmissionPolicy' || \
             self.cases.all(c, !has(c.expect.object) && !has(c.expect.patch) && \
             !has(c.expect.unchanged))",
            "object, patch and unchanged are expected of a MutatingAdmissionPolicy alone"
        ),
        rule(
            "has(self.target) && self.target.kind == 'CustomResourceDefinition' || \
             self.cases.all(c, !has(c.expect.field) && !has(c.expect.errors))",
            "field and errors are expected of a CustomResourceDefinition alone"
        ),
    ])
}

pub(super) fn request_rules() -> Value {
    json!([
        rule(
            "has(self.resource) || has(self.object) || has(self.oldObject)",
            "a request needs a resource, or an object that tells it"
        ),
        rule(
            "!has(self.operation) || self.operation != 'DELETE' || !has(self.object)",
            "a DELETE has no object: what is deleted is the oldObject"
        ),
        rule(
            "has(self.operation) && self.operation != 'CREATE' || !has(self.oldObject)",
            "a CREATE has no oldObject"
        ),
        rule(
            "has(self.operation) && self.operation in ['DELETE', 'CONNECT'] || has(self.object)",
            "a CREATE or UPDATE needs an object"
        ),
        rule(
            "!has(self.operation) || self.operation != 'UPDATE' || has(self.oldObject)",
            "an UPDATE needs an oldObject"
        ),
    ])
}

pub(super) fn expect_rules() -> Value {
    json!([
        rule(
            "has(self.decision) && self.decision == 'Deny' || \
             !(has(self.message) || has(self.messageContains) || has(self.messagePattern) || \
             has(self.reason) || has(self.field) || has(self.errors) && self.errors != 0)",
            "message, messageContains, messagePattern, reason, field and errors are those of a denial"
        ),
        rule(
            "!has(self.decision) || self.decision != 'Deny' || !has(self.errors) || self.errors > 0",
            "an object that is denied has at least one error: expect errors: 0 with decision: Allow"
        ),
        rule(
            "has(self.decision) || has(self.error) || has(self.applies) || has(self.object) || \
             has(self.patch) || has(self.unchanged)",
            "an expectation has a decision, an error, whether the policy applies, or what becomes of the object"
        ),
        rule(
            "!has(self.applies) || self.applies || has(self.error) || !has(self.decision) || \
             self.decision != 'Deny'",
            "a policy that does not apply denies nothing"
        ),
    ])
}

pub(super) fn target_rules() -> Value {
    json!([rule(
        "self.kind.endsWith('WebhookConfiguration') == has(self.webhook)",
        "a configuration of webhooks needs the name of a webhook, and nothing else has one"
    )])
}

pub(super) fn error_rules() -> Value {
    json!([rule(
        "has(self.text) || has(self.contains) || has(self.pattern)",
        "an error is told by its text, a part of it, or a pattern"
    )])
}

/// A word out of `values`; the description is that of the field.
fn enumeration(values: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": values})
}

pub(super) fn source_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["FromCluster", "Inline"])
}

pub(super) fn count_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

pub(super) fn samples_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["Whole", "Partial"])
}

pub(super) fn binding_source_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["FromCluster", "Inline", "Implied"])
}

pub(super) fn target_kind_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&super::target::kinds())
}

pub(super) fn patch_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 256,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["op", "path"],
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "op": {
                    "type": "string",
                    "enum": ["add", "remove", "replace", "move", "copy", "test"],
                },
                "path": {"type": "string"},
                "from": {"type": "string"},
            },
        },
    })
}

pub(super) fn authorizer_source_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["Inline", "FromCluster"])
}

pub(super) fn authorizer_decision_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["Allow", "Deny", "NoOpinion"])
}

pub(super) fn operation_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["CREATE", "UPDATE", "DELETE", "CONNECT"])
}

pub(super) fn decision_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["Allow", "Deny"])
}

pub(crate) fn outcome_schema(_: &mut SchemaGenerator) -> Schema {
    enumeration(&["Passed", "Failed", "Pending"])
}

/// An object of any kind. The API server keeps all of it, and prunes nothing.
pub(super) fn any_object_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

pub(super) fn inline_params_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_OBJECTS,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-embedded-resource": true,
        },
    })
}

pub(super) fn inline_bindings_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_OBJECTS,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "validationActions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 3,
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string", "enum": ["Deny", "Warn", "Audit"]},
                },
            },
        },
    })
}

pub(super) fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string", "description": "The type of the condition."},
                "status": {
                    "type": "string",
                    "description": "True, False or Unknown.",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {"type": "string", "description": "Why, in one word."},
                "message": {"type": "string", "description": "Why, in a sentence."},
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status changed last.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation of the probe that it is about.",
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crd_in_the_repository_is_the_one_of_the_types() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/crds/policyprobes.vap-status.dev.yaml"
        );
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in == crd_yaml().unwrap(),
            "{path} is out of date: run `./dev crds`"
        );
    }
}
