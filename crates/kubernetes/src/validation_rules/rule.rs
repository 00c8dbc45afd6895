//! The rules in the schemas of a CRD.

use cel::value::go_quote;
use serde_json::Value as Json;

use crate::go_json;
use crate::version::Behavior;

/// A rule of `x-kubernetes-validations`.
///
/// Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/types_jsonschema.go`, `ValidationRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationRule {
    /// The expression that must be true.
    pub rule: String,
    /// The message if the expression is false.
    pub message: String,
    /// The expression that returns the message. Empty if there is none.
    pub message_expression: String,
    /// The type of the error, such as `FieldValueForbidden`.
    pub reason: Option<String>,
    /// The path of the field to report, relative to the validated value.
    pub field_path: String,
    /// If true, `oldSelf` is a CEL optional, and the rule is also evaluated when an object is created.
    pub optional_old_self: Option<bool>,
}

impl ValidationRule {
    pub(super) const REASONS: [&'static str; 4] = [
        "FieldValueDuplicate",
        "FieldValueForbidden",
        "FieldValueInvalid",
        "FieldValueRequired",
    ];

    /// Parses a rule. Ignores fields of the wrong type, because no API server stores a rule with such fields.
    #[must_use]
    pub fn read(rule: &Json) -> Self {
        let text = |key: &str| {
            let text = rule.get(key).and_then(Json::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: rule.get("reason").and_then(Json::as_str).map(Into::into),
            field_path: text("fieldPath"),
            optional_old_self: rule.get("optionalOldSelf").and_then(Json::as_bool),
        }
    }

    pub(super) fn list_from_schema(schema: &serde_json::Map<String, Json>) -> Vec<Self> {
        let rules = schema
            .get("x-kubernetes-validations")
            .and_then(Json::as_array);
        rules.into_iter().flatten().map(Self::read).collect()
    }

    pub(super) fn has_optional_old_self(&self) -> bool {
        self.optional_old_self == Some(true)
    }

    /// Formats the rule as the value in an error message.
    pub(super) fn as_value(&self, behavior: Behavior) -> String {
        if !behavior.writes_lists_as_json {
            return self.as_go_struct();
        }
        let reason = self.reason.as_deref().map(go_json::string_text);
        let optional = self.optional_old_self.map(|is| is.to_string());
        format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
             \"OptionalOldSelf\":{}}}",
            go_json::string_text(&self.rule),
            go_json::string_text(&self.message),
            go_json::string_text(&self.message_expression),
            reason.as_deref().unwrap_or("null"),
            go_json::string_text(&self.field_path),
            optional.as_deref().unwrap_or("null"),
        )
    }

    /// Formats the rule in Go syntax. Pointers are formatted with a constant address, because their addresses in Go
    /// vary.
    fn as_go_struct(&self) -> String {
        let pointer = |is_set| if is_set { "0xc000000000" } else { "nil" };
        format!(
            "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, \
             Reason:(*apiextensions.FieldValueErrorReason)({}), FieldPath:{}, OptionalOldSelf:(*bool)({})}}",
            go_quote(&self.rule),
            go_quote(&self.message),
            go_quote(&self.message_expression),
            pointer(self.reason.is_some()),
            go_quote(&self.field_path),
            pointer(self.optional_old_self.is_some()),
        )
    }

    /// Returns the text that identifies the rule in error messages: its message, or its expression if the message is
    /// empty.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `ruleErrorString`.
    pub(super) fn error_text(&self) -> &str {
        if self.message.is_empty() {
            self.rule.trim()
        } else {
            self.message.trim()
        }
    }

    /// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `ruleMessageOrDefault`.
    pub(super) fn message_or_default(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.error_text())
        } else {
            self.message.trim().to_owned()
        }
    }
}
