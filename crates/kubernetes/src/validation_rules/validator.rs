//! An object held against the rules of its schema.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`Validator`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::compile::{Budget, CompiledRule, OLD_SELF, SELF, compile};
use super::correlation::{Correlated, Elements, MapList};
use super::field_error::{FieldError, FieldErrorKind, go_json_string};
use super::keywords;
use super::path::Path;
use super::rule::ValidationRule;
use crate::library::limits::{
    MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES, PER_CALL_LIMIT, RUNTIME_CEL_COST_BUDGET,
};
use crate::schema::crd::{MAX_JSON_DEPTH, is_shallower};
use crate::schema::escape::escape;
use crate::schema::rule_type::rule_type;
use crate::schema::{DeclKind, DeclType, Interner, SchemaError};
use crate::typed_values::{ValueSchema, typed_within};
use cel::eval::{Activation, Limits, Program};
use cel::value::{Value, Work, format_double, go_quote};

/// The rules of a structural schema, compiled once and held against many objects.
///
/// The object is taken to be valid by all else that its schema says, as the API server looks at rules only then; and
/// to have its defaults.
///
/// # Example
/// ```
/// use kubernetes::validation_rules::Validator;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"spec": {
///     "type": "object",
///     "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
///     "x-kubernetes-validations": [
///         {"rule": "self.min <= self.max", "message": "min must not exceed max"},
///         {"rule": "self.max >= oldSelf.max", "messageExpression": "'max was ' + string(oldSelf.max)"},
///     ],
/// }}});
/// let validator = Validator::new(&schema).map_err(|error| error.to_string())?;
/// let of = |min, max| json!({"spec": {"min": min, "max": max}});
///
/// assert!(validator.validate(&of(1, 5), None).errors.is_empty());
/// let outcome = validator.validate(&of(7, 3), Some(&of(1, 5)));
/// let errors: Vec<_> = outcome.errors.iter().map(ToString::to_string).collect();
/// assert_eq!(errors, [
///     "spec: Invalid value: min must not exceed max",
///     "spec: Invalid value: max was 5",
/// ]);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Validator {
    root: Option<Node>,
    schema: Arc<ValueSchema>,
}

/// The errors of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The errors; with any of them the object is refused. In the order of the names of fields, which upstream leaves
    /// to chance.
    pub errors: Vec<FieldError>,
    /// Errors of parts that an update has not changed, which are warnings only.
    pub warnings: Vec<FieldError>,
    /// The cost of all evaluations, in cost units.
    pub cost: u64,
    /// True if all rules were evaluated, false if the cost has put an end to it.
    pub is_complete: bool,
}

/// The rules of a schema and of what is below it.
#[derive(Debug)]
struct Node {
    rules: Vec<(ValidationRule, CompiledRule)>,
    /// The reason why no rule could be compiled.
    compile_error: Option<String>,
    uses_old_self: bool,
    is_map_correlatable: bool,
    /// The schema of values.
    schema: Arc<ValueSchema>,
    properties: HashMap<Box<str>, Node>,
    items: Option<Box<Node>>,
    values: Option<Box<Node>>,
}

impl Validator {
    /// Compiles the rules of `schema`, the `openAPIV3Schema` of a version.
    ///
    /// A rule that does not compile, which the API server does not store, is an error of every object.
    ///
    /// # Errors
    /// If the schema nests too deeply, or is too large.
    pub fn new(schema: &Json) -> Result<Self, SchemaError> {
        if !is_shallower(schema, MAX_JSON_DEPTH) {
            return Err(SchemaError::TooDeep);
        }
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        let mut interner = Interner::default();
        let root = if has_rules(map) {
            let type_ = rule_type(map, true, &mut interner)?;
            let mut building = Building {
                interner,
                budget: Budget::default(),
            };
            building.node(schema, map, true, type_.as_ref())?
        } else {
            None
        };
        Ok(Self {
            root,
            schema: ValueSchema::of_structural(schema, false),
        })
    }

    /// Holds `object` against the rules, on an update with the object `before` it.
    #[must_use]
    pub fn validate(&self, object: &Json, before: Option<&Json>) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(root) = &self.root else {
            outcome.is_complete = true;
            return outcome;
        };
        if [Some(object), before]
            .into_iter()
            .flatten()
            .any(|object| !is_shallower(object, MAX_JSON_DEPTH))
        {
            outcome.errors.push(FieldError {
                kind: FieldErrorKind::Internal,
                field: Path::ROOT.text(),
                value: None,
                detail: format!("the object nests deeper than {MAX_JSON_DEPTH} levels"),
            });
            return outcome;
        }
        let object = Value::from(object);
        let before = before.map(Value::from);
        let correlated = before
            .as_ref()
            .map(|before| Correlated::new(object.clone(), before.clone(), &self.schema));
        let mut walk = Walk {
            left: RUNTIME_CEL_COST_BUDGET,
            is_over: false,
            work: Arc::default(),
            outcome,
        };
        let ratchet = Ratchet {
            current: correlated.as_ref(),
            around: None,
        };
        walk.node(root, &Path::ROOT, &object, before.as_ref(), ratchet);
        walk.outcome.is_complete = !walk.is_over;
        walk.outcome.cost = RUNTIME_CEL_COST_BUDGET.saturating_sub(walk.left);
        walk.outcome
    }
}

/// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `hasXValidations`.
fn has_rules(schema: &Map<String, Json>) -> bool {
    let has_own = schema
        .get("x-kubernetes-validations")
        .and_then(Json::as_array)
        .is_some_and(|rules| !rules.is_empty());
    let below = ["items", "additionalProperties"].into_iter();
    let mut below = below.filter_map(|key| schema.get(key)?.as_object());
    has_own
        || below.any(has_rules)
        || keywords::schemas_of(schema, "properties").any(|(_, property)| has_rules(property))
}

struct Building {
    interner: Interner,
    budget: Budget,
}

impl Building {
    /// The rules of `schema` and below, `None` where there are none.
    fn node(
        &mut self,
        json: &Json,
        schema: &Map<String, Json>,
        is_resource: bool,
        type_: Option<&Arc<DeclType>>,
    ) -> Result<Option<Node>, SchemaError> {
        let rules = ValidationRule::of_schema(schema);
        let mut compile_error = None;
        let compiled = match type_ {
            Some(type_) => compile(&rules, schema, type_, &mut self.budget),
            None if rules.is_empty() => Vec::new(),
            None => {
                compile_error =
                    Some("failed to convert to declType for CEL validation rules".to_owned());
                Vec::new()
            }
        };
        let is_embedded = |schema| keywords::flag(schema, "x-kubernetes-embedded-resource");
        let element = type_.and_then(|type_| match &type_.kind {
            DeclKind::List(elem) | DeclKind::Map(elem) if elem.is_exposed() => Some(elem),
            _ => None,
        });
        let mut inner = |key: &str| -> Result<Option<Box<Node>>, SchemaError> {
            let Some(json) = schema.get(key) else {
                return Ok(None);
            };
            let Some(schema) = json.as_object() else {
                return Ok(None);
            };
            let node = self.node(json, schema, is_embedded(schema), element)?;
            Ok(node.map(Box::new))
        };
        let items = inner("items")?;
        let values = inner("additionalProperties")?;
        let mut properties = HashMap::new();
        let declared = schema.get("properties").and_then(Json::as_object);
        for (name, json) in declared.into_iter().flatten() {
            let Some(property) = json.as_object().filter(|property| has_rules(property)) else {
                continue;
            };
            let property_type = match escape(name) {
                Some(escaped) => type_.and_then(|type_| exposed_field(type_, &escaped)),
                None => rule_type(property, is_embedded(property), &mut self.interner)?,
            };
            let Some(property_type) = property_type else {
                continue;
            };
            let node = self.node(json, property, is_embedded(property), Some(&property_type))?;
            properties.extend(node.map(|node| (name.as_str().into(), node)));
        }
        if compiled.is_empty()
            && compile_error.is_none()
            && items.is_none()
            && values.is_none()
            && properties.is_empty()
        {
            return Ok(None);
        }
        Ok(Some(Node {
            uses_old_self: compiled.iter().any(|rule| rule.uses_old_self),
            rules: rules.into_iter().zip(compiled).collect(),
            compile_error,
            is_map_correlatable: keywords::is_map_correlatable(schema),
            schema: ValueSchema::of_structural(json, is_resource),
            properties,
            items,
            values,
        }))
    }
}

/// The type of a field that rules can see.
fn exposed_field(type_: &DeclType, escaped: &str) -> Option<Arc<DeclType>> {
    let fields = type_.declared_fields();
    let at = fields.binary_search_by(|field| (*field.name).cmp(escaped));
    let field = fields.get(at.ok()?)?;
    field.type_.is_exposed().then(|| Arc::clone(&field.type_))
}

/// The value before an update that belongs to a value, or to the nearest around it that has one.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<&'a Correlated>,
    around: Option<&'a Correlated>,
}

impl<'a> Ratchet<'a> {
    /// Reports whether an error is only a warning, since nothing has changed.
    fn is_unchanged(self) -> bool {
        let asked = self.current.or(self.around);
        asked.is_some_and(Correlated::is_equal)
    }

    /// That of a part of the value, which is `part`.
    fn below<'b>(self, part: Option<&'b Correlated>) -> Ratchet<'b>
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

/// The variables of a rule.
struct Variables {
    current: Value,
    before: Option<Value>,
}

impl Activation for Variables {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        match name {
            SELF => Some(Cow::Borrowed(&self.current)),
            OLD_SELF => self.before.as_ref().map(Cow::Borrowed),
            _ => None,
        }
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The walk through an object.
struct Walk {
    /// What may still be spent.
    left: u64,
    /// True once no further rule is to run.
    is_over: bool,
    work: Arc<Work>,
    outcome: Outcome,
}

impl Walk {
    fn node(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        value: &Value,
        before: Option<&Value>,
        ratchet: Ratchet<'_>,
    ) {
        if self.is_over || matches!(value, Value::Null) {
            return;
        }
        self.rules(node, path, value, before, ratchet);
        if self.is_over {
            return;
        }
        match value {
            Value::List(list) => {
                let Some(items) = &node.items else { return };
                let before = MapList::new(&node.schema, before);
                let elements = ratchet.current.map(Correlated::elements);
                for (n, element) in list.iter().enumerate() {
                    let part = elements.as_ref().and_then(|elements: &Elements<'_>| elements.get(n));
                    let ratchet = ratchet.below(part.as_ref());
                    let before = before.get(&element);
                    self.node(items, &path.index(n), &element, before, ratchet);
                }
            }
            Value::Map(map) => {
                let before = match before {
                    Some(Value::Map(before)) if node.is_map_correlatable => Some(before),
                    _ => None,
                };
                for (name, value) in map.as_fields().unwrap_or_default() {
                    let (below, path) = match (&node.values, node.properties.get(&**name)) {
                        (Some(values), _) => (&**values, path.key(name)),
                        (None, Some(property)) => (property, path.field(name)),
                        (None, None) => continue,
                    };
                    // What is read of these is the same, whatever was written.
                    let is_of_type = matches!(&**name, "apiVersion" | "kind");
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
                    let before = before.and_then(|before| before.field(name));
                    self.node(below, &path, value, before, ratchet);
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        node: &Node,
        path: &Path<'_>,
        value: &Value,
        before: Option<&Value>,
        ratchet: Ratchet<'_>,
    ) {
        let before = before.filter(|before| !matches!(before, Value::Null));
        let type_name = go_quote(node.schema.type_name());
        if let Some(reason) = &node.compile_error {
            let detail = format!("rule compiler initialization error: {reason}");
            self.fail(path, &type_name, detail);
            return;
        }
        if node.rules.is_empty() {
            return;
        }
        if self.left == 0 {
            self.fail(path, &type_name, OUT_OF_BUDGET.into());
            self.is_over = true;
            return;
        }
        let typed = |value| typed_within(value, &node.schema, &self.work);
        let mut variables = Variables {
            current: typed(value),
            before: None,
        };
        let mut optional = None;
        if node.uses_old_self {
            variables.before = before.map(typed);
            optional = Some(Variables {
                current: variables.current.clone(),
                before: Some(variables.before.clone().map_or(Value::none(), Value::some)),
            });
        }
        for (rule, compiled) in &node.rules {
            if let Some(error) = &compiled.error {
                let detail = format!("rule compile error: {}", error.detail);
                self.fail(path, &type_name, detail);
                continue;
            }
            let Some(program) = &compiled.program else {
                continue;
            };
            let is_optional = rule.has_optional_old_self();
            if compiled.uses_old_self && before.is_none() && !is_optional {
                continue;
            }
            let asked = match &optional {
                Some(optional) if is_optional => optional,
                _ => &variables,
            };
            let Some(holds) = self.evaluate(program, rule, path, asked, &type_name) else {
                if self.is_over {
                    return;
                }
                continue;
            };
            if holds {
                continue;
            }
            let shown = match value {
                _ if matches!(node.schema.type_name(), "object" | "array") => None,
                value => Some(shown(value)),
            };
            let error = self.violation(rule, compiled, path, &variables, shown, &type_name);
            if !compiled.uses_old_self && ratchet.is_unchanged() {
                self.outcome.warnings.push(error);
            } else {
                self.outcome.errors.push(error);
            }
            if self.is_over {
                return;
            }
        }
    }

    /// Adds an error whose value is the name of the type.
    fn fail(&mut self, path: &Path<'_>, type_name: &str, detail: String) {
        self.outcome.errors.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.text(),
            value: Some(type_name.to_owned()),
            detail,
        });
    }

    /// Takes `cost` from what is left; false if that is not enough.
    fn spend(&mut self, cost: u64) -> bool {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// The result of a rule, or `None` if it has failed, which is noted.
    fn evaluate(
        &mut self,
        program: &Program,
        rule: &ValidationRule,
        path: &Path<'_>,
        variables: &Variables,
        type_name: &str,
    ) -> Option<bool> {
        let limits = Limits {
            work: Some(&self.work),
            ..Limits::of_cost(PER_CALL_LIMIT)
        };
        let evaluation = program.eval(variables, limits);
        if !self.spend(evaluation.cost) {
            self.fail(path, type_name, OUT_OF_BUDGET.into());
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
        self.fail(path, type_name, detail);
        None
    }

    /// The error of a rule that is false.
    fn violation(
        &mut self,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        path: &Path<'_>,
        variables: &Variables,
        value: Option<String>,
        type_name: &str,
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
                        value: Some(type_name.to_owned()),
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

    /// The text of a message expression, or `None` where it has none that can be used.
    ///
    /// # Errors
    /// If no further rule is to run: the detail of the error that says so.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `evalMessageExpression`.
    fn message(
        &mut self,
        program: &Program,
        rule: &ValidationRule,
        variables: &Variables,
    ) -> Result<Option<String>, String> {
        let limits = Limits {
            work: Some(&self.work),
            ..Limits::of_cost(PER_CALL_LIMIT)
        };
        let evaluation = program.eval(variables, limits);
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

/// A scalar as an error shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => format_double(*value),
        Value::String(text) => go_quote(text),
        other => go_json_string(&other.to_go_string()),
    }
}
