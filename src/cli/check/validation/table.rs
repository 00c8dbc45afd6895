//! The table of the API server's constraints on policies, bindings and webhooks. Each row contains a field, a
//! constraint on it, and the upstream function that enforces the constraint.
//!
//! The table has no constraints on expressions, because the compiler reports invalid and empty expressions.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`; `k8s.io/apimachinery`
//! `pkg/api/validation/objectmeta.go`, `pkg/apis/meta/v1/validation/validation.go`.

use super::Violations;
use super::special;
use super::syntax::Form;
use super::walk::Spot;
use super::webhook;
use crate::library::limits::{
    MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH, MAX_AUDIT_ANNOTATIONS, MAX_MATCH_CONDITIONS,
};

/// A constraint of the API server on a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The path of the field, from the object or from the field of the enclosing row. `[]` denotes each item of a list.
    pub(super) field: &'static str,
    pub(super) constraint: Constraint,
    /// The upstream function or table that enforces the constraint.
    #[cfg_attr(not(test), expect(dead_code, reason = "a reference, read by a test"))]
    pub(super) source: &'static str,
}

/// A constraint on a field. An absent or null field can only violate [`Constraint::Required`] and
/// [`Constraint::Special`]. A null item of a list counts as an empty string.
#[derive(Clone, Copy, Debug)]
pub(super) enum Constraint {
    /// The field must be present and not empty. The string is a hint.
    Required(&'static str),
    /// The string must be empty or contain more than white space.
    NotBlank,
    /// The string must not contain line breaks, except at its ends.
    OneLine,
    /// The string must be one of these.
    OneOf(&'static [&'static str]),
    /// The string must have the format or be empty.
    Form(Form),
    /// The string must have the format. Unlike with [`Constraint::Form`], an empty string is a violation.
    NonEmptyForm(Form),
    /// The list must have at most this many items.
    AtMost(usize),
    /// The string must have at most this many bytes, not counting surrounding white space.
    AtMostBytes(usize),
    /// The items must be distinct.
    Distinct,
    /// The items must have distinct values of this field.
    DistinctBy(&'static str),
    /// If the list contains this item, it must not contain other items.
    Alone(&'static str),
    /// If the value is present, its fields must satisfy these constraints.
    Rows(&'static [Row]),
    /// A function that checks the field.
    Special(fn(&Spot<'_>, &mut Violations)),
}

const fn row(field: &'static str, constraint: Constraint, source: &'static str) -> Row {
    Row {
        field,
        constraint,
        source,
    }
}

use Constraint::{
    Alone, AtMost, AtMostBytes, Distinct, DistinctBy, NonEmptyForm, NotBlank, OneLine, OneOf,
    Required, Rows, Special,
};

pub(super) const POLICY: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(POLICY_SPEC),
        "validateValidatingAdmissionPolicySpec",
    ),
];

pub(super) const BINDING: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(BINDING_SPEC),
        "validateValidatingAdmissionPolicyBindingSpec",
    ),
];

pub(super) const MUTATING_POLICY: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(MUTATING_SPEC),
        "validateMutatingAdmissionPolicySpec",
    ),
];

pub(super) const MUTATING_BINDING: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(MUTATING_BINDING_SPEC),
        "validateMutatingAdmissionPolicyBindingSpec",
    ),
];

/// The constraints on a validating or mutating webhook configuration.
pub(super) const WEBHOOKS: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "webhooks[]",
        Rows(WEBHOOK),
        "validateValidatingWebhook, validateMutatingWebhook",
    ),
    row(
        "webhooks",
        DistinctBy("name"),
        "validateValidatingWebhookConfiguration, validateMutatingWebhookConfiguration",
    ),
];

/// The constraints on the metadata of a cluster-scoped object. The API server overwrites or drops the other fields:
/// `namespace`, `generation`, `uid`, the times, `managedFields`.
const METADATA: &[Row] = &[
    row("name", Special(special::name), "ValidateObjectMetaAccessor"),
    row(
        "name",
        Constraint::Form(Form::Subdomain),
        "NameIsDNSSubdomain",
    ),
    row(
        "generateName",
        Special(special::generate_name),
        "ValidateObjectMetaAccessor, SimpleNameGenerator",
    ),
    row(
        "resourceVersion",
        Special(special::resource_version),
        "etcd3 store.Create",
    ),
    row("labels", Special(special::labels), "ValidateLabels"),
    row(
        "annotations",
        Special(special::annotations),
        "ValidateAnnotations",
    ),
    row(
        "ownerReferences",
        Special(special::owner_references),
        "ValidateOwnerReferences",
    ),
    row(
        "finalizers[]",
        NonEmptyForm(Form::LabelKey),
        "ValidateFinalizerName",
    ),
    row(
        "finalizers",
        Special(special::finalizers),
        "ValidateFinalizers",
    ),
];

const POLICY_SPEC: &[Row] = &[
    row(
        "",
        Rows(SHARED_SPEC),
        "validateValidatingAdmissionPolicySpec",
    ),
    row(
        "",
        Special(special::validations_or_annotations),
        "validateValidatingAdmissionPolicySpec",
    ),
    row(
        "validations[].messageExpression",
        NotBlank,
        "validateValidation",
    ),
    row("validations[].message", NotBlank, "validateValidation"),
    row(
        "validations[].message",
        OneLine,
        "validateValidation, hasNewlines",
    ),
    row(
        "validations[].reason",
        OneOf(&["Forbidden", "Invalid", "RequestEntityTooLarge"]),
        "supportedValidationPolicyReason",
    ),
    row(
        "auditAnnotations",
        AtMost(MAX_AUDIT_ANNOTATIONS),
        "maxAuditAnnotations",
    ),
    row(
        "auditAnnotations",
        DistinctBy("key"),
        "validateValidatingAdmissionPolicySpec",
    ),
    row(
        "auditAnnotations[].key",
        Required("set the key; the audit log shows the annotation as `POLICY/KEY`"),
        "validateAuditAnnotation",
    ),
    row(
        "auditAnnotations[].key",
        Constraint::Form(Form::KeyName),
        "validateAuditAnnotation, ValidateQualifiedName",
    ),
    row(
        "auditAnnotations[].valueExpression",
        AtMostBytes(MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH),
        "maxAuditAnnotationValueExpressionLength",
    ),
];

/// The constraints that validating and mutating policies share.
const SHARED_SPEC: &[Row] = &[
    row(
        "failurePolicy",
        OneOf(&["Fail", "Ignore"]),
        "supportedFailurePolicies",
    ),
    row("paramKind", Rows(PARAM_KIND), "validateParamKind"),
    row(
        "matchConstraints",
        Required("set the resources and operations to which the policy applies"),
        "validateValidatingAdmissionPolicySpec",
    ),
    row(
        "matchConstraints",
        Rows(MATCH_RESOURCES),
        "validateMatchResources",
    ),
    row(
        "matchConstraints.resourceRules",
        Required("set the resources and operations to which the policy applies"),
        "validateValidatingAdmissionPolicySpec",
    ),
    row("", Rows(MATCH_CONDITIONS), "validateMatchConditions"),
    row(
        "variables[].name",
        Special(special::variable_name),
        "validateVariable",
    ),
    row(
        "variables[].expression",
        Special(special::not_only_blank),
        "validateVariable",
    ),
];

const MUTATING_SPEC: &[Row] = &[
    row("", Rows(SHARED_SPEC), "validateMutatingAdmissionPolicySpec"),
    row(
        "matchConstraints.resourceRules[].operations[]",
        OneOf(MUTATING_OPERATIONS),
        "validateMutatingAdmissionPolicySpec, supportedMutatingOperations",
    ),
    row(
        "mutations",
        Required("add a mutation"),
        "validateMutatingAdmissionPolicySpec",
    ),
    row("mutations[]", Rows(MUTATION), "validateMutation"),
    row(
        "reinvocationPolicy",
        Required("write Never, or IfNeeded to run again after changes by other mutations"),
        "validateMutatingAdmissionPolicySpec",
    ),
    row(
        "reinvocationPolicy",
        OneOf(&["Never", "IfNeeded"]),
        "supportedReinvocationPolicies",
    ),
];

/// The operations whose objects can be mutated.
const MUTATING_OPERATIONS: &[&str] = &["*", "CREATE", "UPDATE", "CONNECT"];

const MUTATION: &[Row] = &[
    row(
        "patchType",
        Required("write ApplyConfiguration or JSONPatch"),
        "validateMutation",
    ),
    row(
        "patchType",
        OneOf(&["ApplyConfiguration", "JSONPatch"]),
        "supportedPatchType",
    ),
    row("", Special(special::mutation), "validateMutation"),
];

const MUTATING_BINDING_SPEC: &[Row] = &[
    row(
        "",
        Rows(SHARED_BINDING_SPEC),
        "validateMutatingAdmissionPolicyBindingSpec",
    ),
    row(
        "matchResources.resourceRules[].operations[]",
        OneOf(MUTATING_OPERATIONS),
        "validateMutatingAdmissionPolicyBindingSpec, supportedMutatingOperations",
    ),
];

/// The constraints on the match conditions of a policy or a webhook.
const MATCH_CONDITIONS: &[Row] = &[
    row(
        "matchConditions",
        AtMost(MAX_MATCH_CONDITIONS),
        "validateMatchConditions",
    ),
    row(
        "matchConditions",
        DistinctBy("name"),
        "validateMatchConditions",
    ),
    row(
        "matchConditions[].name",
        Required("set a name, which appears in errors and in the audit log"),
        "validateMatchCondition",
    ),
    row(
        "matchConditions[].name",
        Constraint::Form(Form::LabelKey),
        "ValidateQualifiedName",
    ),
];

const WEBHOOK: &[Row] = &[
    row(
        "name",
        Required("set a name of at least three parts, such as check.pods.example.com"),
        "IsFullyQualifiedName",
    ),
    row(
        "name",
        Constraint::Form(Form::Domain),
        "IsFullyQualifiedName",
    ),
    row("rules[]", Rows(RULE), "validateRuleWithOperations"),
    row(
        "failurePolicy",
        OneOf(&["Fail", "Ignore"]),
        "supportedFailurePolicies",
    ),
    row("", Rows(SELECTION), "validateValidatingWebhook"),
    row(
        "sideEffects",
        Required("write None, or NoneOnDryRun if the webhook respects dry runs"),
        "validateValidatingWebhook",
    ),
    row(
        "sideEffects",
        OneOf(&["None", "NoneOnDryRun"]),
        "noSideEffectClasses",
    ),
    row(
        "timeoutSeconds",
        Special(webhook::timeout),
        "validateValidatingWebhook",
    ),
    row(
        "reinvocationPolicy",
        OneOf(&["Never", "IfNeeded"]),
        "supportedReinvocationPolicies",
    ),
    row(
        "clientConfig",
        Special(webhook::client_config),
        "validateValidatingWebhook, ValidateWebhookURL, ValidateWebhookService",
    ),
    row("", Rows(MATCH_CONDITIONS), "validateMatchConditions"),
    row(
        "admissionReviewVersions",
        Required("write [v1]"),
        "validateAdmissionReviewVersions",
    ),
    row(
        "admissionReviewVersions[]",
        NonEmptyForm(Form::Label),
        "validateAdmissionReviewVersions, IsDNS1035Label",
    ),
    row(
        "admissionReviewVersions",
        Distinct,
        "validateAdmissionReviewVersions",
    ),
    row(
        "admissionReviewVersions",
        Special(webhook::has_known_version),
        "AcceptedAdmissionReviewVersions",
    ),
];

const PARAM_KIND: &[Row] = &[
    row(
        "apiVersion",
        Required("set the group and version of the params' kind"),
        "validateParamKind",
    ),
    row(
        "apiVersion",
        Constraint::Form(Form::GroupVersion),
        "validateParamKind, parseGroupVersion",
    ),
    row(
        "kind",
        Required("set the params' kind"),
        "validateParamKind",
    ),
    row(
        "kind",
        Constraint::Form(Form::Kind),
        "validateParamKind, IsDNS1035Label",
    ),
];

/// The constraints that validating and mutating bindings share.
const SHARED_BINDING_SPEC: &[Row] = &[
    row(
        "policyName",
        Required("set the name of the policy that the binding refers to"),
        "validateValidatingAdmissionPolicyBindingSpec",
    ),
    row(
        "policyName",
        Constraint::Form(Form::Subdomain),
        "NameIsDNSSubdomain",
    ),
    row("paramRef", Special(special::param_ref), "validateParamRef"),
    row("paramRef", Rows(PARAM_REF), "validateParamRef"),
    row(
        "matchResources",
        Rows(MATCH_RESOURCES),
        "validateMatchResources",
    ),
];

const BINDING_SPEC: &[Row] = &[
    row(
        "",
        Rows(SHARED_BINDING_SPEC),
        "validateValidatingAdmissionPolicyBindingSpec",
    ),
    row(
        "validationActions",
        Required("write [Deny], or [Warn] or [Audit] for a trial"),
        "validateValidationActions",
    ),
    row(
        "validationActions[]",
        OneOf(&["Deny", "Warn", "Audit"]),
        "validValidationActions",
    ),
    row("validationActions", Distinct, "validateValidationActions"),
    row(
        "validationActions",
        Special(special::deny_and_warn),
        "validateValidationActions",
    ),
];

const PARAM_REF: &[Row] = &[
    row(
        "name",
        Constraint::Form(Form::PathSegment),
        "IsPathSegmentName",
    ),
    row("selector", Rows(LABEL_SELECTOR), "ValidateLabelSelector"),
    row(
        "parameterNotFoundAction",
        Required("write Deny or Allow: the action for requests without params"),
        "validateParamRef",
    ),
    row(
        "parameterNotFoundAction",
        OneOf(&["Allow", "Deny"]),
        "validateParamRef",
    ),
];

/// The constraints on the match policy and the selectors of match resources and webhooks.
const SELECTION: &[Row] = &[
    row(
        "matchPolicy",
        OneOf(&["Exact", "Equivalent"]),
        "supportedMatchPolicies",
    ),
    row(
        "namespaceSelector",
        Rows(LABEL_SELECTOR),
        "ValidateLabelSelector",
    ),
    row(
        "objectSelector",
        Rows(LABEL_SELECTOR),
        "ValidateLabelSelector",
    ),
];

const MATCH_RESOURCES: &[Row] = &[
    row("", Rows(SELECTION), "validateMatchResources"),
    row(
        "resourceRules[]",
        Rows(RULE),
        "validateNamedRuleWithOperations",
    ),
    row(
        "excludeResourceRules[]",
        Rows(RULE),
        "validateNamedRuleWithOperations",
    ),
];

const RULE: &[Row] = &[
    row(
        "resourceNames[]",
        Constraint::Form(Form::PathSegment),
        "IsPathSegmentName",
    ),
    row("resourceNames", Distinct, "validateNamedRuleWithOperations"),
    row(
        "operations",
        Required("write some of CREATE, UPDATE, DELETE and CONNECT, or [\"*\"]"),
        "validateRuleWithOperations",
    ),
    row(
        "operations",
        Alone("*"),
        "validateRuleWithOperations, hasWildcardOperation",
    ),
    row(
        "operations[]",
        OneOf(&["*", "CREATE", "UPDATE", "DELETE", "CONNECT"]),
        "supportedOperations",
    ),
    row(
        "apiGroups",
        Required("write the groups, [\"\"] for the core group, or [\"*\"]"),
        "validateRule",
    ),
    row("apiGroups", Alone("*"), "validateRule, hasWildcard"),
    row(
        "apiVersions",
        Required("write the versions, or [\"*\"]"),
        "validateRule",
    ),
    row("apiVersions", Alone("*"), "validateRule, hasWildcard"),
    row(
        "apiVersions[]",
        Required("write a version, such as v1"),
        "validateRule",
    ),
    row(
        "resources",
        Required("write the resources, or [\"*\"]"),
        "validateResources",
    ),
    row(
        "resources[]",
        Required("write a resource, such as pods"),
        "validateResources",
    ),
    row(
        "resources",
        Special(special::resources),
        "validateResources",
    ),
    row(
        "scope",
        OneOf(&["*", "Cluster", "Namespaced"]),
        "validScopes",
    ),
];

const LABEL_SELECTOR: &[Row] = &[
    row("matchLabels", Special(special::labels), "ValidateLabels"),
    row(
        "matchExpressions[].operator",
        Required("write In, NotIn, Exists or DoesNotExist"),
        "ValidateLabelSelectorRequirement",
    ),
    row(
        "matchExpressions[].operator",
        OneOf(&["In", "NotIn", "Exists", "DoesNotExist"]),
        "ValidateLabelSelectorRequirement",
    ),
    row(
        "matchExpressions[]",
        Special(special::requirement),
        "ValidateLabelSelectorRequirement",
    ),
    row(
        "matchExpressions[].key",
        Required("set the key of a label"),
        "ValidateLabelName",
    ),
    row(
        "matchExpressions[].key",
        Constraint::Form(Form::LabelKey),
        "ValidateLabelName",
    ),
    row(
        "matchExpressions[].values[]",
        Constraint::Form(Form::LabelValue),
        "IsLabelValue",
    ),
];
