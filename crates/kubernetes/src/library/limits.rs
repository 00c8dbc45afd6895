//! The API server's limits on expressions and their costs, with their upstream names.

/// The cost limit of one expression, in CEL cost units: about 0.1 s of work.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `PerCallLimit`.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// The cost limit of all expressions of a policy for one request, in CEL cost units: about 1 s of work.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudget`.
pub const RUNTIME_CEL_COST_BUDGET: u64 = 10_000_000;

/// The cost limit of all match conditions of a policy for one request, in CEL cost units.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudgetMatchConditions`.
pub const RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS: u64 = 2_500_000;

/// The maximum length of the result of a `messageExpression`, in bytes. A longer result is discarded.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `MaxEvaluatedMessageExpressionSizeBytes`.
pub const MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES: usize = 5 * 1024;

/// The maximum length of the value of an audit annotation, in bytes. A longer value is truncated.
///
/// Source: k8s.io/apiserver `pkg/admission/plugin/policy/validating/dispatcher.go`,
/// `maxAuditAnnotationValueLength`.
pub const MAX_AUDIT_ANNOTATION_VALUE_LENGTH: usize = 10 * 1024;

/// The maximum number of audit annotations of a policy.
///
/// Source: k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
/// `maxAuditAnnotations`.
pub const MAX_AUDIT_ANNOTATIONS: usize = 20;

/// The maximum length of an audit annotation's trimmed `valueExpression`, in bytes.
///
/// Source: k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
/// `maxAuditAnnotationValueExpressionLength`.
pub const MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH: usize = 5 * 1024;

/// The maximum number of match conditions of a policy.
///
/// Source: k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
/// `validateMatchConditions`.
pub const MAX_MATCH_CONDITIONS: usize = 64;

/// The maximum number of kinds for which upstream type-checks a policy, per rule. If a rule reaches this number,
/// upstream skips its remaining kinds and all later rules of the policy.
///
/// Source: k8s.io/apiserver `pkg/admission/plugin/policy/validating/typechecking.go`,
/// `maxTypesToCheck`.
pub const MAX_TYPES_TO_CHECK: usize = 10;

/// The length that cost estimates assume for the name of a format, in bytes.
///
/// Source: k8s.io/apiserver `pkg/cel/limits.go`, `MaxFormatSize`.
pub const MAX_FORMAT_SIZE: u64 = 64;

/// The length that cost estimates assume for the regular expression of a format, in bytes.
///
/// Source: k8s.io/apiserver `pkg/cel/limits.go`, `MaxNameFormatRegexSize`.
pub const MAX_NAME_FORMAT_REGEX_SIZE: u64 = 128;
