//! The limits of the API server on expressions and what they cost, each under its upstream name.

/// The most that one expression may cost when it is evaluated, in cost units: about 0.1 s of work.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `PerCallLimit`.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// The most that all expressions of a policy may cost for one request, in cost units: about 1 s of work.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudget`.
pub const RUNTIME_CEL_COST_BUDGET: u64 = 10_000_000;

/// The most that all match conditions of a policy may cost for one request, in cost units.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `RuntimeCELCostBudgetMatchConditions`.
pub const RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS: u64 = 2_500_000;

/// The longest text that a `messageExpression` may evaluate to, in bytes; a longer one is not used.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `MaxEvaluatedMessageExpressionSizeBytes`.
pub const MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES: usize = 5 * 1024;

/// The number of bytes after which the value of an audit annotation is cut.
///
/// Source: k8s.io/apiserver `pkg/admission/plugin/policy/validating/dispatcher.go`,
/// `maxAuditAnnotationValueLength`.
pub const MAX_AUDIT_ANNOTATION_VALUE_LENGTH: usize = 10 * 1024;

/// The most audit annotations of a policy.
///
/// Source: k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
/// `maxAuditAnnotations`.
pub const MAX_AUDIT_ANNOTATIONS: usize = 20;

/// The longest `valueExpression` of an audit annotation, trimmed, in bytes.
///
/// Source: k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
/// `maxAuditAnnotationValueExpressionLength`.
pub const MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH: usize = 5 * 1024;

/// The most match conditions of a policy.
///
/// Source: k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`,
/// `validateMatchConditions`.
pub const MAX_MATCH_CONDITIONS: usize = 64;

/// The number of kinds after which upstream's type checker looks at no further rule of a policy, and the most
/// that it takes from one rule.
///
/// Source: k8s.io/apiserver `pkg/admission/plugin/policy/validating/typechecking.go`,
/// `maxTypesToCheck`.
pub const MAX_TYPES_TO_CHECK: usize = 10;

/// The length that the cost estimate supposes of the name of a format, in bytes.
///
/// Source: k8s.io/apiserver `pkg/cel/limits.go`, `MaxFormatSize`.
pub const MAX_FORMAT_SIZE: u64 = 64;

/// The length that the cost estimate supposes of the regular expression behind a format, in bytes.
///
/// Source: k8s.io/apiserver `pkg/cel/limits.go`, `MaxNameFormatRegexSize`.
pub const MAX_NAME_FORMAT_REGEX_SIZE: u64 = 128;
