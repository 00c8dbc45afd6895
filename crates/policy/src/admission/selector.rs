//! Parses and matches label selectors, with apimachinery's validation errors.
//!
//! Source: apimachinery `pkg/apis/meta/v1/helpers.go` (`LabelSelectorAsSelector`),
//! `pkg/labels/selector.go` (`NewRequirement`, `Requirement.Matches`).

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubernetes::library::format::validation;
use kubernetes::version::{Behavior, KubernetesVersion};

use super::object::Labels;
use super::text::go_quote;

/// An error of the configuration of a policy or binding. [`fmt::Display`] formats it with the text of the newest
/// version.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigurationError {
    /// An error whose text does not depend on the version.
    Text(String),
    /// The selector is invalid.
    Selector {
        /// The selector.
        selector: LabelSelector,
        /// True if the API server reports the error as an internal error.
        is_internal: bool,
    },
}

impl ConfigurationError {
    /// Converts the error to an internal error of the API server.
    ///
    /// Source: apimachinery `pkg/api/errors/errors.go`, `NewInternalError`.
    pub(super) fn into_internal(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(internal(&text)),
            Self::Selector { selector, .. } => Self::Selector {
                selector,
                is_internal: true,
            },
        }
    }

    /// Formats the error like an API server with `behavior`.
    pub(super) fn text(&self, behavior: &Behavior) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Selector {
                selector,
                is_internal,
            } => {
                let error = Selector::parse(selector, behavior).err();
                let text = error.unwrap_or_default();
                if *is_internal { internal(&text) } else { text }
            }
        }
    }
}

fn internal(text: &str) -> String {
    format!("Internal error occurred: {text}")
}

impl From<String> for ConfigurationError {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ConfigurationError {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&KubernetesVersion::NEWEST.behavior()))
    }
}

fn list_text(list: &[String], behavior: &Behavior) -> String {
    if behavior.writes_lists_as_json {
        return match list {
            [] => "null".to_owned(),
            list => super::text::go_json_list(list),
        };
    }
    match list {
        [] => "[]string(nil)".to_owned(),
        list => {
            let items: Vec<_> = list.iter().map(|item| go_quote(item)).collect();
            format!("[]string{{{}}}", items.join(", "))
        }
    }
}

fn label_text(messages: &[String], behavior: &Behavior) -> String {
    let text = messages.join("; ");
    if behavior.limits_labels_in_bytes {
        text
    } else {
        validation::with_older_wording(&text)
    }
}

/// A parsed label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: SelectorOperator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Parses a label selector.
    ///
    /// # Errors
    ///
    /// Returns apimachinery's error if an operator, key or value is invalid.
    pub fn new(selector: &LabelSelector) -> Result<Self, ConfigurationError> {
        Self::parse(selector, &KubernetesVersion::NEWEST.behavior()).map_err(|_| {
            ConfigurationError::Selector {
                selector: selector.clone(),
                is_internal: false,
            }
        })
    }

    fn parse(selector: &LabelSelector, behavior: &Behavior) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            // The requirement `key: value` is represented as a set with one value.
            let values = std::slice::from_ref(value);
            requirements.push(Requirement::new(
                key,
                SelectorOperator::In,
                values,
                behavior,
            )?);
        }
        for expression in selector.match_expressions.iter().flatten() {
            let operator = match &*expression.operator {
                "In" => SelectorOperator::In,
                "NotIn" => SelectorOperator::NotIn,
                "Exists" => SelectorOperator::Exists,
                "DoesNotExist" => SelectorOperator::DoesNotExist,
                other => {
                    let operator = go_quote(other);
                    return Err(format!("{operator} is not a valid label selector operator"));
                }
            };
            let values = expression.values.as_deref().unwrap_or_default();
            requirements.push(Requirement::new(
                &expression.key,
                operator,
                values,
                behavior,
            )?);
        }
        Ok(Self(requirements))
    }

    /// Returns true if the selector has no requirements. Such a selector selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the selector selects an object with `labels`.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn new(
        key: &str,
        operator: SelectorOperator,
        values: &[String],
        behavior: &Behavior,
    ) -> Result<Self, String> {
        let mut errors = Vec::new();
        let key_errors = validation::qualified_name(key.as_bytes());
        if !key_errors.is_empty() {
            let details = label_text(&key_errors, behavior);
            errors.push(format!("key: Invalid value: {}: {details}", go_quote(key)));
        }
        match operator {
            SelectorOperator::In | SelectorOperator::NotIn if values.is_empty() => {
                let list = list_text(values, behavior);
                errors.push(format!(
                    "values: Invalid value: {list}: for 'in', 'notin' operators, values set can't be empty"
                ));
            }
            SelectorOperator::Exists | SelectorOperator::DoesNotExist if !values.is_empty() => {
                let list = list_text(values, behavior);
                errors.push(format!(
                    "values: Invalid value: {list}: values set must be empty for exists and does not exist"
                ));
            }
            _ => {}
        }
        for (n, value) in values.iter().enumerate() {
            let value_errors = validation::label_value(value.as_bytes());
            if !value_errors.is_empty() {
                let details = label_text(&value_errors, behavior);
                let value = go_quote(value);
                errors.push(format!(
                    "values[{n}][{key}]: Invalid value: {value}: {details}"
                ));
            }
        }
        if errors.is_empty() {
            Ok(Self {
                key: key.to_owned(),
                operator,
                values: values.to_vec(),
            })
        } else {
            Err(super::text::aggregate(&errors))
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let is_listed = |value: &String| self.values.contains(value);
        match self.operator {
            SelectorOperator::In => value.is_some_and(is_listed),
            SelectorOperator::NotIn => !value.is_some_and(is_listed),
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn selector(value: Json) -> Result<Selector, ConfigurationError> {
        Selector::new(&serde_json::from_value(value).unwrap())
    }

    #[track_caller]
    fn check(value: Json, labels: &Json, expect: bool) {
        let object = super::super::object::Object::new(&json!({"metadata": {"labels": labels}}));
        assert_eq!(selector(value).unwrap().matches(object.labels()), expect);
    }

    #[track_caller]
    fn check_error(value: Json, expect: &str) {
        assert_eq!(selector(value).unwrap_err().to_string(), expect);
    }

    #[test]
    fn selector_matches_if_all_requirements_match() {
        let labels = json!({"env": "prod", "team": ""});
        check(json!({}), &labels, true);
        check(json!({"matchLabels": {"env": "prod"}}), &labels, true);
        check(json!({"matchLabels": {"env": "dev"}}), &labels, false);
        check(
            json!({"matchLabels": {"env": "prod", "app": "web"}}),
            &labels,
            false,
        );
        let one = |operator, values: Json| json!({"matchExpressions": [{"key": "env", "operator": operator, "values": values}]});
        check(one("In", json!(["test", "prod"])), &labels, true);
        check(one("NotIn", json!(["test", "prod"])), &labels, false);
        check(one("NotIn", json!(["test"])), &json!({}), true);
        check(one("Exists", json!([])), &labels, true);
        check(one("DoesNotExist", json!(null)), &labels, false);
    }

    #[test]
    fn label_with_non_string_value_makes_all_labels_empty() {
        check(
            json!({"matchLabels": {"env": "prod"}}),
            &json!({"env": "prod", "n": 1}),
            false,
        );
        check(json!({"matchLabels": {"env": "prod"}}), &json!(null), false);
    }

    #[test]
    fn invalid_selector_has_apimachinery_error() {
        let one = |key, operator, values: Json| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        check_error(
            one("a", "Bad", json!([])),
            "\"Bad\" is not a valid label selector operator",
        );
        check_error(
            one("a", "In", json!([])),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        );
        check_error(
            one("a", "Exists", json!(["x", "y"])),
            "values: Invalid value: [\"x\",\"y\"]: values set must be empty for exists and does not exist",
        );
        check_error(
            json!({"matchLabels": {"bad key!": "x"}}),
            "key: Invalid value: \"bad key!\": name part must consist of alphanumeric characters, '-', '_' or \
             '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
             '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        );
        check_error(
            one("", "Exists", json!(["-"])),
            "[key: Invalid value: \"\": name part must be non-empty; name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',\
             \x20 or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?\
             [A-Za-z0-9]'), values: Invalid value: [\"-\"]: values set must be empty for exists and does not \
             exist, values[0][]: Invalid value: \"-\": a valid label must be an empty string or consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
             (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]",
        );
    }

    #[test]
    fn text_of_selector_errors_depends_on_kubernetes_version() {
        let long = "x".repeat(64);
        let in_nothing = json!({"matchExpressions": [{"key": "a", "operator": "In"}]});
        let exists =
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x", "y"]}]});
        let label = json!({"matchLabels": {"a": long}});
        let exists_text = |list| {
            format!(
                "values: Invalid value: {list}: values set must be empty for exists and does not exist"
            )
        };
        let long_text = |unit| {
            format!("values[0][a]: Invalid value: \"{long}\": must be no more than 63 {unit}")
        };
        let none_text = |list| {
            format!(
                "values: Invalid value: {list}: for 'in', 'notin' operators, values set can't be empty"
            )
        };
        let rows = [
            (&in_nothing, 33, none_text("[]string(nil)")),
            (&in_nothing, 34, none_text("null")),
            (&exists, 33, exists_text(r#"[]string{"x", "y"}"#)),
            (&exists, 34, exists_text(r#"["x","y"]"#)),
            (&label, 34, long_text("characters")),
            (&label, 35, long_text("bytes")),
        ];
        for (value, minor, expected) in rows {
            let error = selector(value.clone()).unwrap_err();
            let behavior = KubernetesVersion::new(minor).behavior();
            assert_eq!(error.text(&behavior), expected, "1.{minor}");
            let internal = format!("Internal error occurred: {expected}");
            assert_eq!(error.into_internal().text(&behavior), internal, "1.{minor}");
        }
    }
}
