//! The types of CustomResourceDefinitions, and of the schemas in them.
//!
//! Source: `k8s.io/apiextensions-apiserver` `pkg/apis/apiextensions/v1/types.go`, `types_jsonschema.go`; `marshal.go`
//! for fields whose value has one of two types.

use super::Type::{Any, Bool, Either, Int, Int32, List, Map, Number, Object, Text, Time};
use super::{CLIENT_CONFIG, Field, OBJECT_META, TEXT_LIST, Type};

/// Source: `CustomResourceDefinition`, `TypeMeta`.
pub(super) const DEFINITION: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("spec", Object(SPEC)),
    ("status", Object(STATUS)),
];

/// Source: `CustomResourceDefinitionSpec`.
const SPEC: &[Field] = &[
    ("conversion", Object(CONVERSION)),
    ("group", Text),
    ("names", Object(NAMES)),
    ("preserveUnknownFields", Bool),
    ("scope", Text),
    ("versions", List(&Object(VERSION))),
];

/// Source: `CustomResourceConversion`.
const CONVERSION: &[Field] = &[("strategy", Text), ("webhook", Object(WEBHOOK))];

/// Source: `WebhookConversion`.
const WEBHOOK: &[Field] = &[
    ("clientConfig", Object(CLIENT_CONFIG)),
    ("conversionReviewVersions", TEXT_LIST),
];

/// Source: `CustomResourceDefinitionNames`.
const NAMES: &[Field] = &[
    ("categories", TEXT_LIST),
    ("kind", Text),
    ("listKind", Text),
    ("plural", Text),
    ("shortNames", TEXT_LIST),
    ("singular", Text),
];

/// Source: `CustomResourceDefinitionVersion`.
const VERSION: &[Field] = &[
    ("additionalPrinterColumns", List(&Object(COLUMN))),
    ("deprecated", Bool),
    ("deprecationWarning", Text),
    ("name", Text),
    ("schema", Object(VALIDATION)),
    ("selectableFields", List(&Object(&[("jsonPath", Text)]))),
    ("served", Bool),
    ("storage", Bool),
    ("subresources", Object(SUBRESOURCES)),
];

/// Source: `CustomResourceColumnDefinition`.
const COLUMN: &[Field] = &[
    ("description", Text),
    ("format", Text),
    ("jsonPath", Text),
    ("name", Text),
    ("priority", Int32),
    ("type", Text),
];

/// Source: `CustomResourceSubresources`, `CustomResourceSubresourceStatus`.
const SUBRESOURCES: &[Field] = &[("scale", Object(SCALE)), ("status", Object(&[]))];

/// Source: `CustomResourceSubresourceScale`.
const SCALE: &[Field] = &[
    ("labelSelectorPath", Text),
    ("specReplicasPath", Text),
    ("statusReplicasPath", Text),
];

/// Source: `CustomResourceDefinitionStatus`.
const STATUS: &[Field] = &[
    ("acceptedNames", Object(NAMES)),
    ("conditions", List(&Object(CONDITION))),
    ("observedGeneration", Int),
    ("storedVersions", TEXT_LIST),
];

/// Source: `CustomResourceDefinitionCondition`.
const CONDITION: &[Field] = &[
    ("lastTransitionTime", Time),
    ("message", Text),
    ("observedGeneration", Int),
    ("reason", Text),
    ("status", Text),
    ("type", Text),
];

/// Source: `CustomResourceValidation`.
const VALIDATION: &[Field] = &[("openAPIV3Schema", Object(&SCHEMA))];

static SCHEMA_LIST: Type = List(&Object(&SCHEMA));
static SCHEMA_OR_TEXTS: Type = Either(&SCHEMA, &TEXT_LIST);

/// Source: `JSONSchemaProps`.
static SCHEMA: [Field; 44] = [
    ("$ref", Text),
    ("$schema", Text),
    ("additionalItems", Either(&SCHEMA, &Bool)),
    ("additionalProperties", Either(&SCHEMA, &Bool)),
    ("allOf", List(&Object(&SCHEMA))),
    ("anyOf", List(&Object(&SCHEMA))),
    ("default", Any),
    ("definitions", Map(&Object(&SCHEMA))),
    ("dependencies", Map(&SCHEMA_OR_TEXTS)),
    ("description", Text),
    ("enum", List(&Any)),
    ("example", Any),
    ("exclusiveMaximum", Bool),
    ("exclusiveMinimum", Bool),
    (
        "externalDocs",
        Object(&[("description", Text), ("url", Text)]),
    ),
    ("format", Text),
    ("id", Text),
    ("items", Either(&SCHEMA, &SCHEMA_LIST)),
    ("maxItems", Int),
    ("maxLength", Int),
    ("maxProperties", Int),
    ("maximum", Number),
    ("minItems", Int),
    ("minLength", Int),
    ("minProperties", Int),
    ("minimum", Number),
    ("multipleOf", Number),
    ("not", Object(&SCHEMA)),
    ("nullable", Bool),
    ("oneOf", List(&Object(&SCHEMA))),
    ("pattern", Text),
    ("patternProperties", Map(&Object(&SCHEMA))),
    ("properties", Map(&Object(&SCHEMA))),
    ("required", TEXT_LIST),
    ("title", Text),
    ("type", Text),
    ("uniqueItems", Bool),
    ("x-kubernetes-embedded-resource", Bool),
    ("x-kubernetes-int-or-string", Bool),
    ("x-kubernetes-list-map-keys", TEXT_LIST),
    ("x-kubernetes-list-type", Text),
    ("x-kubernetes-map-type", Text),
    ("x-kubernetes-preserve-unknown-fields", Bool),
    ("x-kubernetes-validations", List(&Object(RULE))),
];

/// Source: `ValidationRule`.
const RULE: &[Field] = &[
    ("fieldPath", Text),
    ("message", Text),
    ("messageExpression", Text),
    ("optionalOldSelf", Bool),
    ("reason", Text),
    ("rule", Text),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation_rules::KEYWORDS;

    #[test]
    fn schema_type_of_definition_has_all_keywords() {
        let names: Vec<&str> = SCHEMA.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, KEYWORDS);
    }
}
