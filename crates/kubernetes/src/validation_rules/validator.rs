//! Validates objects against the rules of a schema.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`Validator`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::compile::{CompiledRule, Compiler, compile};
use super::correlation::Correlated;
use super::field_error::{FieldError, FieldErrorKind};
use super::keywords;
use super::path::Path;
use super::rule::ValidationRule;
use super::walk::{Ratchet, RuleObserver, Walk};
use crate::library::limits::RUNTIME_CEL_COST_BUDGET;
use crate::schema::crd::{MAX_JSON_DEPTH, is_shallower};
use crate::schema::escape::escape;
use crate::schema::rule_type::rule_type;
use crate::schema::{DeclKind, DeclType, Interner, SchemaError};
use crate::typed_values::ValueSchema;
use crate::version::{Behavior, CompileMode, KubernetesVersion};
use cel::value::Exceeded;

/// The compiled rules of a structural schema. One validator can validate many objects.
///
/// Objects must already have their defaults and be valid against all other keywords. The API server evaluates rules
/// only for such objects.
///
/// # Example
/// ```
/// use kubernetes::validation_rules::Validator;
/// use kubernetes::version::KubernetesVersion;
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
/// let validator =
///     Validator::new(&schema, KubernetesVersion::DEFAULT).map_err(|error| error.to_string())?;
/// let object = |min, max| json!({"spec": {"min": min, "max": max}});
///
/// assert!(validator.validate(&object(1, 5), None).errors.is_empty());
/// let outcome = validator.validate(&object(7, 3), Some(&object(1, 5)));
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
    /// See [`cel::version::Behavior`].
    optionals_hold_cel_values: bool,
    /// See [`Behavior`].
    rule_errors_have_values: bool,
}

/// The result of validating one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationResult {
    /// The errors, sorted by field name. Empty if the object is valid. Upstream's order is random.
    pub errors: Vec<FieldError>,
    /// The errors of values that an update did not change. The API server reports these errors as warnings.
    pub warnings: Vec<FieldError>,
    /// The total cost of all evaluated expressions, in CEL cost units.
    pub cost: u64,
    /// True if all rules were evaluated. False if the cost limit ended the evaluation early.
    pub is_complete: bool,
    /// The exceeded limit of this crate. If set, the errors of the object are unknown.
    pub exceeded: Option<Exceeded>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) rules: Vec<(ValidationRule, CompiledRule)>,
    /// The reason why the rules of this schema cannot be compiled.
    pub(super) compile_error: Option<String>,
    pub(super) uses_old_self: bool,
    pub(super) is_map_correlatable: bool,
    pub(super) schema: Arc<ValueSchema>,
    pub(super) properties: BTreeMap<Box<str>, Node>,
    pub(super) items: Option<Box<Node>>,
    pub(super) values: Option<Box<Node>>,
}

impl Validator {
    /// Compiles the rules of `schema`, the `openAPIV3Schema` of a version, for an API server of `version`.
    ///
    /// If a rule does not compile, every object has an error. A CRD in a cluster does not contain such a rule, because
    /// API servers reject it.
    ///
    /// # Errors
    /// Returns an error if the schema is too deep or too large.
    pub fn new(schema: &Json, version: KubernetesVersion) -> Result<Self, SchemaError> {
        Self::from_part(schema, true, version)
    }

    /// Same as [`Self::new`], but for a nested schema. `is_resource` is true if the schema describes a resource.
    pub(crate) fn from_part(
        schema: &Json,
        is_resource: bool,
        version: KubernetesVersion,
    ) -> Result<Self, SchemaError> {
        if !is_shallower(schema, MAX_JSON_DEPTH) {
            return Err(SchemaError::TooDeep);
        }
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        let mut interner = Interner::default();
        let behavior = version.behavior();
        let root = if has_rules(map) {
            let type_ = rule_type(map, is_resource, behavior, &mut interner)?;
            let mut building = Building {
                interner,
                behavior,
                compiler: Compiler::new(version, CompileMode::Stored),
            };
            building.node(schema, map, is_resource, type_.as_ref())?
        } else {
            None
        };
        Ok(Self {
            root,
            schema: ValueSchema::from_structural(schema, false, behavior),
            optionals_hold_cel_values: behavior.language.optionals_hold_cel_values,
            rule_errors_have_values: behavior.rule_errors_have_values,
        })
    }

    /// Returns true if the schema has rules.
    #[must_use]
    pub const fn has_rules(&self) -> bool {
        self.root.is_some()
    }

    /// Validates `object` against the rules. For an update, `before` is the old object.
    #[must_use]
    pub fn validate(&self, object: &Json, before: Option<&Json>) -> ValidationResult {
        let mut objects = [Some(object), before].into_iter().flatten();
        if self.has_rules() && !objects.all(|object| is_shallower(object, MAX_JSON_DEPTH)) {
            let error = FieldError {
                kind: FieldErrorKind::Internal,
                field: Path::ROOT.text(),
                value: None,
                detail: format!("the object nests deeper than {MAX_JSON_DEPTH} levels"),
            };
            return ValidationResult {
                errors: vec![error],
                ..ValidationResult::default()
            };
        }
        self.validate_shallow(object, before, None)
    }

    /// Same as [`Self::validate`], but without a check of the objects' depth. Notifies `observer` of each evaluated
    /// rule.
    pub(crate) fn validate_shallow(
        &self,
        object: &Json,
        before: Option<&Json>,
        observer: Option<&dyn RuleObserver>,
    ) -> ValidationResult {
        let before_rules = before.filter(|_| self.has_rules());
        let correlated = before_rules.map(|before| Correlated::new(object, before, &self.schema));
        self.walk((object, before), correlated.as_ref(), observer)
    }

    /// Validates an update that changes nothing. Unlike in [`Self::validate`], errors of unchanged values do not become
    /// warnings.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/validation.go` (`validate`), which does not
    /// enable ratcheting.
    pub(crate) fn validate_unchanged(&self, object: &Json) -> ValidationResult {
        self.walk((object, Some(object)), None, None)
    }

    fn walk(
        &self,
        (object, before): (&Json, Option<&Json>),
        correlated: Option<&Correlated<'_>>,
        observer: Option<&dyn RuleObserver>,
    ) -> ValidationResult {
        let mut outcome = ValidationResult::default();
        let Some(root) = &self.root else {
            outcome.is_complete = true;
            return outcome;
        };
        let mut walk = Walk {
            left: RUNTIME_CEL_COST_BUDGET,
            is_over: false,
            budget: Arc::default(),
            outcome,
            observer,
            optionals_hold_cel_values: self.optionals_hold_cel_values,
            rule_errors_have_values: self.rule_errors_have_values,
        };
        let ratchet = Ratchet {
            current: correlated,
            around: None,
        };
        walk.node(root, &Path::ROOT, object, before, ratchet);
        walk.outcome.exceeded = walk.budget.exceeded();
        if walk.outcome.exceeded.is_some() {
            walk.outcome.errors.clear();
            walk.outcome.warnings.clear();
        }
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
    behavior: Behavior,
    compiler: Compiler,
}

impl Building {
    /// Compiles the rules of `schema` and its nested schemas. Returns `None` if there are no rules.
    fn node(
        &mut self,
        json: &Json,
        schema: &Map<String, Json>,
        is_resource: bool,
        type_: Option<&Arc<DeclType>>,
    ) -> Result<Option<Node>, SchemaError> {
        let rules = ValidationRule::list_from_schema(schema);
        let mut compile_error = None;
        let compiled = match type_ {
            Some(type_) => compile(&rules, schema, type_, &Path::ROOT, &mut self.compiler),
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
        let mut properties = BTreeMap::new();
        let declared = schema.get("properties").and_then(Json::as_object);
        for (name, json) in declared.into_iter().flatten() {
            let Some(property) = json.as_object().filter(|property| has_rules(property)) else {
                continue;
            };
            let property_type = match escape(name) {
                Some(escaped) => type_.and_then(|type_| exposed_field(type_, &escaped)),
                None => rule_type(
                    property,
                    is_embedded(property),
                    self.behavior,
                    &mut self.interner,
                )?,
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
            schema: ValueSchema::from_structural(json, is_resource, self.behavior),
            properties,
            items,
            values,
        }))
    }
}

/// Returns the type of the field with this escaped name. Returns `None` if rules cannot access the field.
fn exposed_field(type_: &DeclType, escaped: &str) -> Option<Arc<DeclType>> {
    let fields = type_.declared_fields();
    let index = fields.binary_search_by(|field| (*field.name).cmp(escaped));
    let field = fields.get(index.ok()?)?;
    field.type_.is_exposed().then(|| Arc::clone(&field.type_))
}
