//! Generates the CustomResourceDefinition of `PolicyProbe`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::api::PolicyProbe;

/// The maximum number of objects in `inlineParams` and in `inlineBindings`.
const MAX_OBJECTS: usize = 64;

/// Returns the CustomResourceDefinition of `PolicyProbe`.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    PolicyProbe::crd()
}

/// Returns the CRD as YAML, with a comment that the file is generated.
///
/// # Errors
/// Returns an error if the CRD cannot be serialized. The function has no input, so this would be a bug.
pub fn crd_yaml() -> Result<String, serde_json::Error> {
    let crd = goyaml::to_string(&crd(), |_| false)?;
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
            "`inlineParams` requires `params: Inline`"
        ),
        rule(
            "(has(self.bindings) && self.bindings == 'Inline') == \
             (has(self.inlineBindings) && self.inlineBindings.size() > 0)",
            "`inlineBindings` must be set if and only if `bindings` is `Inline`"
        ),
        rule(
            "has(self.policyName) != has(self.target)",
            "exactly one of `policyName` (for a ValidatingAdmissionPolicy) and `target` (for other kinds) is required"
        ),
        rule(
            "has(self.target) && self.target.kind == 'MutatingAdmissionPolicy' || \
             self.cases.all(c, !has(c.expect.object) && !has(c.expect.patch) && \
             !has(c.expect.unchanged))",
            "`object`, `patch` and `unchanged` require a target of kind MutatingAdmissionPolicy"
        ),
        rule(
            "has(self.target) && self.target.kind == 'CustomResourceDefinition' || \
             self.cases.all(c, !has(c.expect.field) && !has(c.expect.errors))",
            "`field` and `errors` require a target of kind CustomResourceDefinition"
        ),
    ])
}

pub(super) fn request_rules() -> Value {
    json!([
        rule(
            "has(self.resource) || has(self.object) || has(self.oldObject)",
            "a request requires at least one of `resource`, `object` and `oldObject`"
        ),
        rule(
            "!has(self.operation) || self.operation != 'DELETE' || !has(self.object)",
            "a DELETE must not have an `object`; the deleted object is the `oldObject`"
        ),
        rule(
            "has(self.operation) && self.operation != 'CREATE' || !has(self.oldObject)",
            "a CREATE must not have an `oldObject`"
        ),
        rule(
            "has(self.operation) && self.operation in ['DELETE', 'CONNECT'] || has(self.object)",
            "a CREATE or UPDATE requires an `object`"
        ),
        rule(
            "!has(self.operation) || self.operation != 'UPDATE' || has(self.oldObject)",
            "an UPDATE requires an `oldObject`"
        ),
    ])
}

pub(super) fn expect_rules() -> Value {
    json!([
        rule(
            "has(self.decision) && self.decision == 'Deny' || \
             !(has(self.message) || has(self.messageContains) || has(self.messagePattern) || \
             has(self.reason) || has(self.field) || has(self.errors) && self.errors != 0)",
            "`message`, `messageContains`, `messagePattern`, `reason`, `field` and `errors` require `decision: Deny`"
        ),
        rule(
            "!has(self.decision) || self.decision != 'Deny' || !has(self.errors) || self.errors > 0",
            "`errors: 0` excludes `decision: Deny`, because a denied object has at least one error"
        ),
        rule(
            "has(self.decision) || has(self.error) || has(self.applies) || has(self.object) || \
             has(self.patch) || has(self.unchanged)",
            "an expectation must set at least one of `decision`, `error`, `applies`, `object`, `patch`, `unchanged`"
        ),
        rule(
            "!has(self.applies) || self.applies || has(self.error) || !has(self.decision) || \
             self.decision != 'Deny'",
            "`applies: false` excludes `decision: Deny`, because a policy that does not apply denies no request"
        ),
    ])
}

pub(super) fn target_rules() -> Value {
    json!([rule(
        "self.kind.endsWith('WebhookConfiguration') == has(self.webhook)",
        "`webhook` is required for a webhook configuration, and is not allowed for other kinds"
    )])
}

pub(super) fn error_rules() -> Value {
    json!([rule(
        "has(self.text) || has(self.contains) || has(self.pattern)",
        "an error requires at least one of `text`, `contains` and `pattern`"
    )])
}

/// Returns the schema of a string that must be one of `values`. schemars adds the field's doc comment as the
/// description.
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

/// Returns the schema of an object of any kind, with arbitrary fields.
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
                "reason": {"type": "string", "description": "The reason for the status, in one word."},
                "message": {"type": "string", "description": "The reason for the status, as a sentence."},
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "The time of the last change of the status.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation of the probe for which the condition was computed.",
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crd_file_equals_generated_crd() {
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
