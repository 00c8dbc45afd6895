//! Evaluates the rules for an object and all nested values, within a cost budget.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`Validator.validate`,
//! `validateExpressions`, `evalMessageExpression`).

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value as Json};

use super::compile::{CompiledRule, OLD_SELF, SELF};
use super::correlation::{Correlated, Elements, MapList};
use super::field_error::{FieldError, FieldErrorKind};
use super::path::{Path, PathStep};
use super::rule::ValidationRule;
use super::validator::{Node, ValidationResult};
use crate::go_json;
use crate::library::limits::{MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES, PER_CALL_LIMIT};
use crate::typed_values::Lazy;
use cel::eval::{Activation, Limits, Observer, Part, Program};
use cel::value::{EvalBudget, Value, format_double, go_quote};

/// State for ratcheting: the API server turns errors of unchanged values into warnings. `current` is the validated
/// value, if the value can be correlated with the old object. `around` is the nearest enclosing correlated value.
#[derive(Clone, Copy)]
pub(super) struct Ratchet<'a, 'j> {
    pub(super) current: Option<&'a Correlated<'j>>,
    pub(super) around: Option<&'a Correlated<'j>>,
}

impl<'a, 'j> Ratchet<'a, 'j> {
    /// Returns true if the value did not change, so its errors are only warnings.
    fn is_unchanged(self) -> bool {
        let correlated = self.current.or(self.around);
        correlated.is_some_and(Correlated::is_equal)
    }

    /// Returns the state for a nested value. `part` is the nested value with its old value, or `None` if the old object
    /// lacks it.
    fn below<'b>(self, part: Option<&'b Correlated<'j>>) -> Ratchet<'b, 'j>
    where
        'a: 'b,
    {
        match self.current {
            None => self,
            current => Ratchet {
                current: part,
                around: current,
            },
        }
    }
}

/// The values of `self` and `oldSelf` for the rules of one schema.
struct Values<'a> {
    json_before: Option<&'a Json>,
    current: Lazy<'a>,
    before: Option<Lazy<'a>>,
    /// The value of `oldSelf` in rules with `optionalOldSelf`.
    optional: OnceLock<Value>,
    /// True if an optional `oldSelf` contains a CEL value, false if it contains a Go value.
    is_optional_typed: bool,
}

impl Values<'_> {
    fn optional(&self) -> &Value {
        let optional = || match (self.json_before, &self.before) {
            (Some(_), Some(before)) if self.is_optional_typed => {
                Value::some(before.whole().clone())
            }
            (Some(json), Some(before)) => Value::some(held(json, before.whole())),
            _ => Value::none(),
        };
        self.optional.get_or_init(optional)
    }
}

/// The variables for one rule.
struct Variables<'v, 'a> {
    values: &'v Values<'a>,
    has_optional: bool,
}

impl Activation for Variables<'_, '_> {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            SELF => Some(Cow::Borrowed(self.values.current.whole())),
            OLD_SELF if self.has_optional => Some(Cow::Borrowed(self.values.optional())),
            OLD_SELF => Some(Cow::Borrowed(self.values.before.as_ref()?.whole())),
            _ => None,
        }
    }

    fn resolve_part(&self, name: &str, keys: &[Arc<str>], is_test: bool) -> Option<Part<'_>> {
        match name {
            SELF => self.values.current.part(keys, is_test),
            OLD_SELF if !self.has_optional => self.values.before.as_ref()?.part(keys, is_test),
            _ => None,
        }
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Returns the content of an optional `oldSelf`. Before cel-go 0.29, this is the Go value, so objects and lists have no
/// schema.
///
/// Source: cel-go 0.26 `interpreter/attributes.go`, `applyQualifiers`.
fn held(before: &Json, typed: &Value) -> Value {
    match typed {
        Value::Map(_) | Value::List(_) | Value::Opaque(_) => Value::from(before),
        scalar => scalar.clone(),
    }
}

/// An evaluated rule, for a [`RuleObserver`].
#[derive(Clone, Copy, Debug)]
pub struct ObservedRule<'a> {
    /// The path of the validated value.
    pub place: &'a [PathStep],
    /// The index of the rule in `x-kubernetes-validations`.
    pub n: usize,
    /// The rule.
    pub rule: &'a ValidationRule,
    /// The error of the rule. `None` if the rule holds.
    pub error: Option<&'a FieldError>,
}

/// Receives notifications about evaluated rules.
pub trait RuleObserver {
    /// Called before the evaluation of a rule. Returns the observer for the rule's subexpressions.
    fn begin(&self) -> &dyn Observer;
    /// Called after the evaluation of a rule.
    fn end(&self, rule: ObservedRule<'_>);
}

pub(super) struct Walk<'w> {
    /// The remaining cost budget, in CEL cost units.
    pub(super) left: u64,
    /// True if no more rules will be evaluated.
    pub(super) is_over: bool,
    pub(super) budget: Arc<EvalBudget>,
    pub(super) outcome: ValidationResult,
    pub(super) observer: Option<&'w dyn RuleObserver>,
    pub(super) optionals_hold_cel_values: bool,
    pub(super) rule_errors_have_values: bool,
}

impl Walk<'_> {
    pub(super) fn node(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        value: &Json,
        before: Option<&Json>,
        ratchet: Ratchet<'_, '_>,
    ) {
        if self.is_over || value.is_null() {
            return;
        }
        self.rules(node, path, value, before, ratchet);
        if self.is_over {
            return;
        }
        match value {
            Json::Array(list) => {
                let Some(items) = &node.items else { return };
                let before = MapList::new(&node.schema, before);
                let elements = ratchet.current.map(Correlated::elements);
                for (n, element) in list.iter().enumerate() {
                    let part = elements
                        .as_ref()
                        .and_then(|elements: &Elements<'_>| elements.get(n));
                    let ratchet = ratchet.below(part.as_ref());
                    let before = before.get(element);
                    self.node(items, &path.index(n), element, before, ratchet);
                }
            }
            Json::Object(fields) => {
                let before = before.filter(|_| node.is_map_correlatable);
                let before = before.and_then(Json::as_object);
                if let Some(values) = &node.values {
                    for (name, value) in sorted(fields) {
                        let before = before.and_then(|before| before.get(name));
                        self.field(values, (name, &path.key(name)), value, before, ratchet);
                    }
                    return;
                }
                for (name, property) in &node.properties {
                    if let Some(value) = fields.get(&**name) {
                        let before = before.and_then(|before| before.get(&**name));
                        self.field(property, (name, &path.field(name)), value, before, ratchet);
                    }
                }
            }
            _ => {}
        }
    }

    /// Validates the field or map entry `name`. `ratchet` is the ratcheting state of the enclosing value.
    fn field(
        &mut self,
        node: &Node,
        (name, path): (&str, &Path<'_>),
        value: &Json,
        before: Option<&Json>,
        ratchet: Ratchet<'_, '_>,
    ) {
        // The root's `apiVersion` and `kind` are not ratcheted. The API server sets them to the same values in the old
        // and the new object.
        let is_of_type = matches!(name, "apiVersion" | "kind");
        let is_fixed = ratchet.around.is_none() && is_of_type;
        let part = ratchet.current.and_then(|current| current.key(name));
        let ratchet = if ratchet.current.is_some() && is_fixed {
            Ratchet {
                current: None,
                around: None,
            }
        } else {
            ratchet.below(part.as_ref())
        };
        self.node(node, path, value, before, ratchet);
    }

    fn rules(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        value: &Json,
        before: Option<&Json>,
        ratchet: Ratchet<'_, '_>,
    ) {
        let before = before.filter(|before| !before.is_null());
        if let Some(reason) = &node.compile_error {
            let detail = format!("rule compiler initialization error: {reason}");
            self.fail(node, path, detail);
            return;
        }
        if node.rules.is_empty() {
            return;
        }
        if self.left == 0 {
            self.fail(node, path, OUT_OF_BUDGET.into());
            self.is_over = true;
            return;
        }
        let budget = Arc::clone(&self.budget);
        let seen = before.filter(|_| node.uses_old_self);
        let values = Values {
            json_before: seen,
            current: Lazy::new(value, &node.schema, &budget),
            before: seen.map(|before| Lazy::new(before, &node.schema, &budget)),
            optional: OnceLock::new(),
            is_optional_typed: self.optionals_hold_cel_values,
        };
        let variables = |has_optional| Variables {
            values: &values,
            has_optional,
        };
        for (n, (rule, compiled)) in node.rules.iter().enumerate() {
            if let Some(error) = &compiled.error {
                let detail = format!("rule compile error: {}", error.detail);
                self.fail(node, path, detail);
                continue;
            }
            let Some(program) = &compiled.program else {
                continue;
            };
            let is_optional = rule.has_optional_old_self();
            if compiled.uses_old_self && before.is_none() && !is_optional {
                continue;
            }
            let inputs = variables(is_optional && node.uses_old_self);
            let n_errors = self.outcome.errors.len();
            let holds = self.evaluate(program, rule, (node, path), &inputs);
            if holds == Some(false) {
                let shown = match value {
                    _ if !self.rule_errors_have_values => Some(go_quote(node.schema.type_name())),
                    _ if matches!(node.schema.type_name(), "object" | "array") => None,
                    value => Some(shown(&Value::from(value))),
                };
                let error =
                    self.violation((rule, compiled), (node, path), &variables(false), shown);
                if !self.allocate(&error) {
                    return;
                }
                if !compiled.uses_old_self && ratchet.is_unchanged() {
                    self.outcome.warnings.push(error);
                } else {
                    self.outcome.errors.push(error);
                }
            }
            if let Some(observer) = self.observer {
                observer.end(ObservedRule {
                    place: &path.steps(),
                    n,
                    rule,
                    error: self.outcome.errors.get(n_errors),
                });
            }
            if self.is_over {
                return;
            }
        }
    }

    /// Adds an error whose value is the type name of the schema.
    fn fail(&mut self, node: &Node, path: &Path<'_>, detail: String) {
        let error = FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.text(),
            value: Some(go_quote(node.schema.type_name())),
            detail,
        };
        if self.allocate(&error) {
            self.outcome.errors.push(error);
        }
    }

    /// Subtracts the memory of an error from the budget. If it exceeds the budget, ends the validation and returns
    /// false.
    fn allocate(&mut self, error: &FieldError) -> bool {
        let value = error.value.as_ref().map_or(0, String::len);
        let n_bytes = [error.field.len(), value, error.detail.len()];
        let n_bytes = n_bytes
            .into_iter()
            .fold(size_of::<FieldError>(), usize::saturating_add);
        let has_room = self.budget.allocate(n_bytes).is_ok();
        self.is_over |= !has_room;
        has_room
    }

    /// Subtracts `cost` from the remaining budget. Returns false if `cost` exceeds the remaining budget.
    fn spend(&mut self, cost: u64) -> bool {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Evaluates a rule. If the evaluation fails, adds an error and returns `None`.
    fn evaluate(
        &mut self,
        program: &Program,
        rule: &ValidationRule,
        (node, path): (&Node, &Path<'_>),
        variables: &Variables<'_, '_>,
    ) -> Option<bool> {
        let limits = Limits {
            budget: Some(&self.budget),
            observer: self.observer.map(RuleObserver::begin),
            ..Limits::from_cost(PER_CALL_LIMIT)
        };
        let evaluation = program.eval(variables, limits);
        if self.budget.exceeded().is_some() {
            self.is_over = true;
            return None;
        }
        if !self.spend(evaluation.cost) {
            self.fail(node, path, OUT_OF_BUDGET.into());
            self.is_over = true;
            return None;
        }
        let error = match evaluation.result {
            Ok(value) => return Some(matches!(value, Value::Bool(true))),
            Err(error) => error,
        };
        let (message, rule) = (error.message(), rule.error_text());
        let detail = if message.starts_with("no such overload") {
            format!(
                "'{message}': call arguments did not match a supported operator, function or macro signature for \
                 rule: {rule}"
            )
        } else if is_over_limit(message) {
            self.is_over = true;
            format!(
                "'{message}': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
            )
        } else {
            format!("{message} evaluating rule: {rule}")
        };
        self.fail(node, path, detail);
        None
    }

    /// Returns the error of a rule whose expression is false.
    fn violation(
        &mut self,
        (rule, compiled): (&ValidationRule, &CompiledRule),
        (node, path): (&Node, &Path<'_>),
        variables: &Variables<'_, '_>,
        value: Option<String>,
    ) -> FieldError {
        let below = compiled.field_path.as_str();
        let field = if below.is_empty() {
            path.text()
        } else {
            path.field(below).text()
        };
        let detail = match &compiled.message {
            None => rule.message_or_default(),
            Some(message) => match self.message(message, rule, variables) {
                Ok(Some(text)) => text,
                Ok(None) => rule.message_or_default(),
                Err(detail) => {
                    self.is_over = true;
                    return FieldError {
                        kind: FieldErrorKind::Invalid,
                        field,
                        value: Some(go_quote(node.schema.type_name())),
                        detail,
                    };
                }
            },
        };
        let (kind, value, detail) = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => (FieldErrorKind::Forbidden, None, detail),
            Some("FieldValueRequired") => (FieldErrorKind::Required, None, detail),
            Some("FieldValueDuplicate") => (FieldErrorKind::Duplicate, value, String::new()),
            _ => (FieldErrorKind::Invalid, value, detail),
        };
        FieldError {
            kind,
            field,
            value,
            detail,
        }
    }

    /// Evaluates a message expression. Returns `None` if the evaluation fails or its result is not usable. The caller
    /// then uses the default message.
    ///
    /// # Errors
    /// Returns the detail of an error that ends the validation.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `evalMessageExpression`.
    fn message(
        &mut self,
        program: &Program,
        rule: &ValidationRule,
        variables: &Variables<'_, '_>,
    ) -> Result<Option<String>, String> {
        let limits = Limits {
            budget: Some(&self.budget),
            ..Limits::from_cost(PER_CALL_LIMIT)
        };
        let evaluation = program.eval(variables, limits);
        if let Some(exceeded) = self.budget.exceeded() {
            return Err(exceeded.to_string());
        }
        if evaluation.cost > self.left {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation \
                 rules will be run"
                    .into(),
            );
        }
        let text = match evaluation.result {
            Ok(Value::String(text)) => Some(text),
            Err(error) if is_over_limit(error.message()) => {
                return Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                    go_quote(&rule.message_expression)
                ));
            }
            Ok(_) | Err(_) => None,
        };
        self.spend(evaluation.cost);
        Ok(text.and_then(|text| {
            let text = text.trim();
            let is_fit = !text.is_empty()
                && text.len() <= MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES
                && !text.contains('\n');
            is_fit.then(|| text.to_owned())
        }))
    }
}

fn is_over_limit(message: &str) -> bool {
    message.starts_with("operation cancelled: actual cost limit exceeded")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => format_double(*value),
        Value::String(text) => go_quote(text),
        other => go_json::string_text(&other.to_go_string()),
    }
}

fn sorted(fields: &Map<String, Json>) -> Vec<(&str, &Json)> {
    let fields = fields.iter();
    let mut sorted: Vec<_> = fields.map(|(name, field)| (name.as_str(), field)).collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}
