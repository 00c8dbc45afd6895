//! Parses and matches label selectors, with apimachinery's validation errors.
//!
//! Source: apimachinery `pkg/apis/meta/v1/helpers.go` (`LabelSelectorAsSelector`),
//! `pkg/labels/selector.go` (`NewRequirement`, `Requirement.Matches`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubernetes::library::format::validation;

use super::object::Labels;
use super::text::go_quote;

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
    pub fn new(selector: &LabelSelector) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            // The requirement `key: value` is represented as a set with one value.
            let values = std::slice::from_ref(value);
            requirements.push(Requirement::new(key, SelectorOperator::In, values)?);
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
            requirements.push(Requirement::new(&expression.key, operator, values)?);
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
    fn new(key: &str, operator: SelectorOperator, values: &[String]) -> Result<Self, String> {
        let mut errors = Vec::new();
        let key_errors = validation::qualified_name(key.as_bytes());
        if !key_errors.is_empty() {
            let details = key_errors.join("; ");
            errors.push(format!("key: Invalid value: {}: {details}", go_quote(key)));
        }
        match operator {
            SelectorOperator::In | SelectorOperator::NotIn if values.is_empty() => errors.push(
                "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
                    .to_owned(),
            ),
            SelectorOperator::Exists | SelectorOperator::DoesNotExist if !values.is_empty() => {
                let list = super::text::go_json_list(values);
                errors.push(format!(
                    "values: Invalid value: {list}: values set must be empty for exists and does not exist"
                ));
            }
            _ => {}
        }
        for (n, value) in values.iter().enumerate() {
            let value_errors = validation::label_value(value.as_bytes());
            if !value_errors.is_empty() {
                let details = value_errors.join("; ");
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

    fn selector(value: Json) -> Result<Selector, String> {
        Selector::new(&serde_json::from_value(value).unwrap())
    }

    #[track_caller]
    fn check(value: Json, labels: &Json, expect: bool) {
        let object = super::super::object::Object::new(&json!({"metadata": {"labels": labels}}));
        assert_eq!(selector(value).unwrap().matches(object.labels()), expect);
    }

    #[track_caller]
    fn check_error(value: Json, expect: &str) {
        assert_eq!(selector(value).unwrap_err(), expect);
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
    fn labels_with_non_string_value_are_empty() {
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
}
