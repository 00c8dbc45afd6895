//! The rules by which the API server refuses policies and bindings, a row for each: the field, what it asks of it,
//! and the function of upstream that does.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`, and of
//! `k8s.io/apimachinery` `pkg/api/validation/objectmeta.go` and `pkg/apis/meta/v1/validation/validation.go`.
//! The expressions are compiled elsewhere, which tells too where one is empty.

use super::Faults;
use super::special;
use super::syntax::Form;
use super::walk::Spot;
use super::webhook;
use crate::library::limits::{
    MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH, MAX_AUDIT_ANNOTATIONS, MAX_MATCH_CONDITIONS,
};

/// A demand of the API server on a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The field, from the object or from the field of the row that this one belongs to; `[]` stands for each item
    /// of a list.
    pub(super) field: &'static str,
    /// The demand.
    pub(super) asks: Ask,
    /// The function of upstream.
    #[cfg_attr(not(test), expect(dead_code, reason = "a note, which a test reads"))]
    pub(super) source: &'static str,
}

/// A demand on a field. All but [`Ask::Required`] are met where there is none, as null is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// It is there, and not empty; with advice.
    Required(&'static str),
    /// It is none of those that are not empty and only white space.
    NotBlank,
    /// It has no line breaks within.
    OneLine,
    /// It is one of these.
    OneOf(&'static [&'static str]),
    /// It has the form, where it is not empty.
    Form(Form),
    /// It has the form also where it is empty.
    FormOrEmpty(Form),
    /// It has so many items at most.
    AtMost(usize),
    /// It has so many bytes at most, white space around it apart.
    AtMostBytes(usize),
    /// Its items differ.
    Distinct,
    /// The texts that its items have in this field differ.
    DistinctBy(&'static str),
    /// It has no other item beside this one.
    Alone(&'static str),
    /// It meets these demands, if it is there.
    Rows(&'static [Row]),
    /// It stands this test.
    Special(fn(&Spot<'_>, &mut Faults)),
}

const fn row(field: &'static str, asks: Ask, source: &'static str) -> Row {
    Row {
        field,
        asks,
        source,
    }
}

use Ask::{
    Alone, AtMost, AtMostBytes, Distinct, DistinctBy, FormOrEmpty, NotBlank, OneLine, OneOf,
    Required, Rows, Special,
};

/// The rules of a policy.
pub(super) const POLICY: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(POLICY_SPEC),
        "validateValidatingAdmissionPolicySpec",
    ),
];

/// The rules of a binding.
pub(super) const BINDING: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(BINDING_SPEC),
        "validateValidatingAdmissionPolicyBindingSpec",
    ),
];

/// The rules of a mutating policy.
pub(super) const MUTATING_POLICY: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(MUTATING_SPEC),
        "validateMutatingAdmissionPolicySpec",
    ),
];

/// The rules of a binding of a mutating policy.
pub(super) const MUTATING_BINDING: &[Row] = &[
    row("metadata", Rows(METADATA), "ValidateObjectMeta"),
    row(
        "spec",
        Rows(MUTATING_BINDING_SPEC),
        "validateMutatingAdmissionPolicyBindingSpec",
    ),
];

/// The rules of a configuration of webhooks, validating or mutating.
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

/// The rules of the metadata of an object that has no namespace. The API server overwrites or drops what is not
/// here: `namespace`, `generation`, `uid`, the times, `managedFields`.
const METADATA: &[Row] = &[
    row("name", Special(special::name), "ValidateObjectMetaAccessor"),
    row("name", Ask::Form(Form::Subdomain), "NameIsDNSSubdomain"),
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
        FormOrEmpty(Form::LabelKey),
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
        Required("give it a key; the audit log has it behind the name of the policy and a slash"),
        "validateAuditAnnotation",
    ),
    row(
        "auditAnnotations[].key",
        Ask::Form(Form::KeyName),
        "validateAuditAnnotation, ValidateQualifiedName",
    ),
    row(
        "auditAnnotations[].valueExpression",
        AtMostBytes(MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH),
        "maxAuditAnnotationValueExpressionLength",
    ),
];

/// The rules of policies of either sort.
const SHARED_SPEC: &[Row] = &[
    row(
        "failurePolicy",
        OneOf(&["Fail", "Ignore"]),
        "supportedFailurePolicies",
    ),
    row("paramKind", Rows(PARAM_KIND), "validateParamKind"),
    row(
        "matchConstraints",
        Required("name the resources and operations that the policy is about"),
        "validateValidatingAdmissionPolicySpec",
    ),
    row(
        "matchConstraints",
        Rows(MATCH_RESOURCES),
        "validateMatchResources",
    ),
    row(
        "matchConstraints.resourceRules",
        Required("name the resources and operations that the policy is about"),
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
        Required("write what is to be changed"),
        "validateMutatingAdmissionPolicySpec",
    ),
    row("mutations[]", Rows(MUTATION), "validateMutation"),
    row(
        "reinvocationPolicy",
        Required("write Never, or IfNeeded to be asked again after changes by others"),
        "validateMutatingAdmissionPolicySpec",
    ),
    row(
        "reinvocationPolicy",
        OneOf(&["Never", "IfNeeded"]),
        "supportedReinvocationPolicies",
    ),
];

/// The operations with an object that can be changed.
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

/// The match conditions of a policy and of a webhook.
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
        Required("give it a name, which audit and errors show"),
        "validateMatchCondition",
    ),
    row(
        "matchConditions[].name",
        Ask::Form(Form::LabelKey),
        "ValidateQualifiedName",
    ),
];

const WEBHOOK: &[Row] = &[
    row(
        "name",
        Required("give it a name of three parts, such as check.pods.example.com"),
        "IsFullyQualifiedName",
    ),
    row("name", Ask::Form(Form::Domain), "IsFullyQualifiedName"),
    row("rules[]", Rows(RULE), "validateRuleWithOperations"),
    row(
        "failurePolicy",
        OneOf(&["Fail", "Ignore"]),
        "supportedFailurePolicies",
    ),
    row("", Rows(SELECTION), "validateValidatingWebhook"),
    row(
        "sideEffects",
        Required("write None, or NoneOnDryRun where a dry run is told apart"),
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
        FormOrEmpty(Form::Label),
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
        Required("write group and version of the params' kind"),
        "validateParamKind",
    ),
    row(
        "apiVersion",
        Ask::Form(Form::GroupVersion),
        "validateParamKind, parseGroupVersion",
    ),
    row(
        "kind",
        Required("write the params' kind"),
        "validateParamKind",
    ),
    row(
        "kind",
        Ask::Form(Form::Kind),
        "validateParamKind, IsDNS1035Label",
    ),
];

/// The rules of bindings of either sort.
const SHARED_BINDING_SPEC: &[Row] = &[
    row(
        "policyName",
        Required("write the name of the policy to bind"),
        "validateValidatingAdmissionPolicyBindingSpec",
    ),
    row(
        "policyName",
        Ask::Form(Form::Subdomain),
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
        Required("write [Deny], or [Warn] or [Audit] to try it"),
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
    row("name", Ask::Form(Form::PathSegment), "IsPathSegmentName"),
    row("selector", Rows(LABEL_SELECTOR), "ValidateLabelSelector"),
    row(
        "parameterNotFoundAction",
        Required("write Deny or Allow: what becomes of requests for which there are no params"),
        "validateParamRef",
    ),
    row(
        "parameterNotFoundAction",
        OneOf(&["Allow", "Deny"]),
        "validateParamRef",
    ),
];

/// The matching of versions and labels, of rules and of a webhook.
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
        Ask::Form(Form::PathSegment),
        "IsPathSegmentName",
    ),
    row("resourceNames", Distinct, "validateNamedRuleWithOperations"),
    row(
        "operations",
        Required("write those of CREATE, UPDATE, DELETE and CONNECT that are meant, or [\"*\"]"),
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
        Required("write the key of a label"),
        "ValidateLabelName",
    ),
    row(
        "matchExpressions[].key",
        Ask::Form(Form::LabelKey),
        "ValidateLabelName",
    ),
    row(
        "matchExpressions[].values[]",
        Ask::Form(Form::LabelValue),
        "IsLabelValue",
    ),
];
