//! The types into which the API server decodes policies, bindings, webhooks and CustomResourceDefinitions.
//!
//! These types differ from the published OpenAPI schemas: no field is required, and formats such as times are parsed.
//!
//! Source: `k8s.io/api` `admissionregistration/v1/types.go`; `k8s.io/apimachinery` `pkg/apis/meta/v1/types.go`;
//! `k8s.io/apiextensions-apiserver` `pkg/apis/apiextensions/v1/{types,types_jsonschema,marshal}.go`.

mod definition;

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    /// A string.
    Text,
    Bool,
    /// A 64-bit integer.
    Int,
    /// A 32-bit integer.
    Int32,
    /// Bytes, as base64 or as a list of numbers.
    Bytes,
    /// An item of a list of bytes.
    Byte,
    /// An RFC 3339 time.
    Time,
    Any,
    /// A map of strings.
    Texts,
    List(&'static Type),
    /// An object with these fields.
    Object(&'static [Field]),
    Number,
    /// A map of values of this type.
    Map(&'static Type),
    /// An object with these fields, or a value of the other type. Unknown fields of the object are dropped. If the
    /// other type is a list, a scalar counts as absent.
    Either(&'static [Field], &'static Type),
}

pub(super) type Field = (&'static str, Type);

use Type::{Any, Bool, Bytes, Int, Int32, List, Object, Text, Texts, Time};

/// Returns the type of the objects of a kind. `None` if the fields of that kind are not checked.
pub(super) fn type_of_kind(kind: &str) -> Option<Type> {
    match kind {
        "ValidatingAdmissionPolicy" => Some(Object(POLICY)),
        "ValidatingAdmissionPolicyBinding" => Some(Object(BINDING)),
        "MutatingAdmissionPolicy" => Some(Object(MUTATING_POLICY)),
        "MutatingAdmissionPolicyBinding" => Some(Object(MUTATING_BINDING)),
        "ValidatingWebhookConfiguration" => Some(Object(VALIDATING_WEBHOOKS)),
        "MutatingWebhookConfiguration" => Some(Object(MUTATING_WEBHOOKS)),
        "CustomResourceDefinition" => Some(Object(definition::DEFINITION)),
        _ => None,
    }
}

/// Maximum nesting of objects and lists in the search for a field. Schemas of CustomResourceDefinitions are recursive.
const MAX_DEPTH: usize = 8;

/// Returns the paths, such as `spec`, of the objects in `kind` that have a field called `name`. In a path, `[]` follows
/// each list.
pub(super) fn parents_of(kind: &str, name: &str) -> Vec<String> {
    let mut parents = Vec::new();
    if let Some(type_) = type_of_kind(kind) {
        find_parents((type_, MAX_DEPTH), name, &mut String::new(), &mut parents);
    }
    parents
}

fn find_parents(
    (type_, depth): (Type, usize),
    name: &str,
    path: &mut String,
    parents: &mut Vec<String>,
) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match type_ {
        Object(fields) => {
            if fields.iter().any(|(field, _)| *field == name) {
                parents.push(path.clone());
            }
            let inner = fields.iter().filter(|(field, _)| *field != "metadata");
            for (field, type_) in inner {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(field);
                find_parents((*type_, depth), name, path, parents);
                path.truncate(length);
            }
        }
        List(item) => {
            let length = path.len();
            path.push_str("[]");
            find_parents((*item, depth), name, path, parents);
            path.truncate(length);
        }
        // Maps are not searched: in CustomResourceDefinitions, they contain nested schemas.
        _ => {}
    }
}

const TEXT_LIST: Type = List(&Text);

/// Source: `ValidatingAdmissionPolicy`, `TypeMeta`.
const POLICY: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("spec", Object(POLICY_SPEC)),
    ("status", Object(POLICY_STATUS)),
];

/// Source: `ValidatingAdmissionPolicyBinding`, `TypeMeta`.
const BINDING: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("spec", Object(BINDING_SPEC)),
];

/// Source: `MutatingAdmissionPolicy`, `TypeMeta`.
const MUTATING_POLICY: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("spec", Object(MUTATING_POLICY_SPEC)),
];

/// Source: `MutatingAdmissionPolicyBinding`, `TypeMeta`.
const MUTATING_BINDING: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("spec", Object(MUTATING_BINDING_SPEC)),
];

/// Source: `MutatingAdmissionPolicySpec`.
const MUTATING_POLICY_SPEC: &[Field] = &[
    ("failurePolicy", Text),
    ("matchConditions", List(&Object(NAMED_EXPRESSION))),
    ("matchConstraints", Object(MATCH_RESOURCES)),
    ("mutations", List(&Object(MUTATION))),
    ("paramKind", Object(PARAM_KIND)),
    ("reinvocationPolicy", Text),
    ("variables", List(&Object(NAMED_EXPRESSION))),
];

/// Source: `Mutation`.
const MUTATION: &[Field] = &[
    ("applyConfiguration", Object(EXPRESSION)),
    ("jsonPatch", Object(EXPRESSION)),
    ("patchType", Text),
];

/// Source: `ApplyConfiguration`, `JSONPatch`.
const EXPRESSION: &[Field] = &[("expression", Text)];

/// Source: `MutatingAdmissionPolicyBindingSpec`.
const MUTATING_BINDING_SPEC: &[Field] = &[
    ("matchResources", Object(MATCH_RESOURCES)),
    ("paramRef", Object(PARAM_REF)),
    ("policyName", Text),
];

/// Source: `ValidatingWebhookConfiguration`, `TypeMeta`.
const VALIDATING_WEBHOOKS: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("webhooks", List(&Object(VALIDATING_WEBHOOK))),
];

/// Source: `MutatingWebhookConfiguration`, `TypeMeta`.
const MUTATING_WEBHOOKS: &[Field] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Object(OBJECT_META)),
    ("webhooks", List(&Object(MUTATING_WEBHOOK))),
];

/// Source: `ValidatingWebhook`.
const VALIDATING_WEBHOOK: &[Field] = &[
    ("admissionReviewVersions", TEXT_LIST),
    ("clientConfig", Object(CLIENT_CONFIG)),
    ("failurePolicy", Text),
    ("matchConditions", List(&Object(NAMED_EXPRESSION))),
    ("matchPolicy", Text),
    ("name", Text),
    ("namespaceSelector", Object(LABEL_SELECTOR)),
    ("objectSelector", Object(LABEL_SELECTOR)),
    ("rules", List(&Object(WEBHOOK_RULE))),
    ("sideEffects", Text),
    ("timeoutSeconds", Int32),
];

/// Source: `MutatingWebhook`.
const MUTATING_WEBHOOK: &[Field] = &[
    ("admissionReviewVersions", TEXT_LIST),
    ("clientConfig", Object(CLIENT_CONFIG)),
    ("failurePolicy", Text),
    ("matchConditions", List(&Object(NAMED_EXPRESSION))),
    ("matchPolicy", Text),
    ("name", Text),
    ("namespaceSelector", Object(LABEL_SELECTOR)),
    ("objectSelector", Object(LABEL_SELECTOR)),
    ("reinvocationPolicy", Text),
    ("rules", List(&Object(WEBHOOK_RULE))),
    ("sideEffects", Text),
    ("timeoutSeconds", Int32),
];

/// Source: `WebhookClientConfig`.
const CLIENT_CONFIG: &[Field] = &[
    ("caBundle", Bytes),
    ("service", Object(SERVICE_REFERENCE)),
    ("url", Text),
];

/// Source: `ServiceReference`.
const SERVICE_REFERENCE: &[Field] = &[
    ("name", Text),
    ("namespace", Text),
    ("path", Text),
    ("port", Int32),
];

/// Source: `RuleWithOperations`, `Rule`.
const WEBHOOK_RULE: &[Field] = &[
    ("apiGroups", TEXT_LIST),
    ("apiVersions", TEXT_LIST),
    ("operations", TEXT_LIST),
    ("resources", TEXT_LIST),
    ("scope", Text),
];

/// Source: `ObjectMeta`.
const OBJECT_META: &[Field] = &[
    ("annotations", Texts),
    ("creationTimestamp", Time),
    ("deletionGracePeriodSeconds", Int),
    ("deletionTimestamp", Time),
    ("finalizers", TEXT_LIST),
    ("generateName", Text),
    ("generation", Int),
    ("labels", Texts),
    ("managedFields", List(&Object(MANAGED_FIELDS))),
    ("name", Text),
    ("namespace", Text),
    ("ownerReferences", List(&Object(OWNER_REFERENCE))),
    ("resourceVersion", Text),
    ("selfLink", Text),
    ("uid", Text),
];

/// Source: `ManagedFieldsEntry`.
const MANAGED_FIELDS: &[Field] = &[
    ("apiVersion", Text),
    ("fieldsType", Text),
    ("fieldsV1", Any),
    ("manager", Text),
    ("operation", Text),
    ("subresource", Text),
    ("time", Time),
];

/// Source: `OwnerReference`.
const OWNER_REFERENCE: &[Field] = &[
    ("apiVersion", Text),
    ("blockOwnerDeletion", Bool),
    ("controller", Bool),
    ("kind", Text),
    ("name", Text),
    ("uid", Text),
];

/// Source: `ValidatingAdmissionPolicySpec`.
const POLICY_SPEC: &[Field] = &[
    ("auditAnnotations", List(&Object(AUDIT_ANNOTATION))),
    ("failurePolicy", Text),
    ("matchConditions", List(&Object(NAMED_EXPRESSION))),
    ("matchConstraints", Object(MATCH_RESOURCES)),
    ("paramKind", Object(PARAM_KIND)),
    ("validations", List(&Object(VALIDATION))),
    ("variables", List(&Object(NAMED_EXPRESSION))),
];

/// Source: `MatchCondition`, `Variable`.
const NAMED_EXPRESSION: &[Field] = &[("expression", Text), ("name", Text)];

/// Source: `AuditAnnotation`.
const AUDIT_ANNOTATION: &[Field] = &[("key", Text), ("valueExpression", Text)];

/// Source: `Validation`.
const VALIDATION: &[Field] = &[
    ("expression", Text),
    ("message", Text),
    ("messageExpression", Text),
    ("reason", Text),
];

/// Source: `ParamKind`.
const PARAM_KIND: &[Field] = &[("apiVersion", Text), ("kind", Text)];

/// Source: `MatchResources`.
const MATCH_RESOURCES: &[Field] = &[
    ("excludeResourceRules", List(&Object(RULE))),
    ("matchPolicy", Text),
    ("namespaceSelector", Object(LABEL_SELECTOR)),
    ("objectSelector", Object(LABEL_SELECTOR)),
    ("resourceRules", List(&Object(RULE))),
];

/// Source: `NamedRuleWithOperations`, `RuleWithOperations`, `Rule`.
const RULE: &[Field] = &[
    ("apiGroups", TEXT_LIST),
    ("apiVersions", TEXT_LIST),
    ("operations", TEXT_LIST),
    ("resourceNames", TEXT_LIST),
    ("resources", TEXT_LIST),
    ("scope", Text),
];

/// Source: `LabelSelector`.
const LABEL_SELECTOR: &[Field] = &[
    ("matchExpressions", List(&Object(REQUIREMENT))),
    ("matchLabels", Texts),
];

/// Source: `LabelSelectorRequirement`.
const REQUIREMENT: &[Field] = &[("key", Text), ("operator", Text), ("values", TEXT_LIST)];

/// Source: `ValidatingAdmissionPolicyBindingSpec`.
const BINDING_SPEC: &[Field] = &[
    ("matchResources", Object(MATCH_RESOURCES)),
    ("paramRef", Object(PARAM_REF)),
    ("policyName", Text),
    ("validationActions", TEXT_LIST),
];

/// Source: `ParamRef`.
const PARAM_REF: &[Field] = &[
    ("name", Text),
    ("namespace", Text),
    ("parameterNotFoundAction", Text),
    ("selector", Object(LABEL_SELECTOR)),
];

/// Source: `ValidatingAdmissionPolicyStatus`.
const POLICY_STATUS: &[Field] = &[
    ("conditions", List(&Object(CONDITION))),
    ("observedGeneration", Int),
    ("typeChecking", Object(TYPE_CHECKING)),
];

/// Source: `TypeChecking`.
const TYPE_CHECKING: &[Field] = &[("expressionWarnings", List(&Object(EXPRESSION_WARNING)))];

/// Source: `ExpressionWarning`.
const EXPRESSION_WARNING: &[Field] = &[("fieldRef", Text), ("warning", Text)];

/// Source: `Condition`.
const CONDITION: &[Field] = &[
    ("lastTransitionTime", Time),
    ("message", Text),
    ("observedGeneration", Int),
    ("reason", Text),
    ("status", Text),
    ("type", Text),
];
