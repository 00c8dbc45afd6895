//! Validates the rules of a new CustomResourceDefinition like the API server.
//!
//! The errors have the API server's messages. Only errors of rules are reported. If other errors of the CRD prevent the
//! API server from compiling rules, the rules are not compiled here either.
//!
//! Differs:
//!
//! - The API server validates defaults against the schema before it compiles rules. [`validate_rules`] does not
//!   validate defaults, but [`validate_definition`](crate::custom_resource::validate_definition) does.
//! - Errors are sorted by property name. Upstream's order is random.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
//! (`validateCustomResourceDefinitionValidation`, `ValidateCustomResourceDefinitionOpenAPISchema`),
//! `cel_validation.go` (`CELSchemaContext`).

use std::cell::RefCell;

use serde_json::{Map, Value as Json};

use super::compile::{CompiledRule, Compiler, ExpressionError, compile};
use super::context::{Context, Step};
use super::cost;
use super::field_error::{FieldError, FieldErrorKind};
use super::field_path;
use super::keywords;
use super::path::{Path, PathStep};
use super::rule::ValidationRule;
use crate::go_json;
use crate::schema::Interner;
use crate::schema::crd::{MAX_JSON_DEPTH, is_shallower};
use crate::schema::structural::is_structural;
use crate::version::{Behavior, CompileMode, KubernetesVersion};
use cel::interrupt::checkpoint;
use cel::value::go_quote;

/// An error in a CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct DefinitionError {
    /// The error as the API server reports it.
    pub error: FieldError,
    /// The path of the field in the CRD document. If all versions have the same schema, the path in `error` differs,
    /// because the API server then reports `spec.validation`.
    pub place: Vec<PathStep>,
    /// The cause of the error.
    pub cause: DefinitionCause,
}

/// The cause of an error in a CustomResourceDefinition.
#[derive(Clone, Debug, Default)]
pub enum DefinitionCause {
    /// Any cause that has no variant of its own.
    #[default]
    Other,
    /// An expression does not compile.
    Expression(ExpressionError),
    /// The estimated cost of one expression or of all expressions exceeds the limit.
    CostLimit,
    /// A rule uses `oldSelf` in a list whose elements cannot be matched with old elements.
    UncorrelatableRule,
    /// A schema contains an unknown keyword.
    UnknownKeyword,
}

impl DefinitionError {
    /// Returns the compilation error, if an expression caused this error.
    #[must_use]
    pub fn expression(&self) -> Option<&ExpressionError> {
        match &self.cause {
            DefinitionCause::Expression(error) => Some(error),
            _ => None,
        }
    }
}

/// The estimated cost of a rule or a message expression for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// The path to the expression in the API server's format.
    pub field: String,
    /// The maximum cost for one object, in CEL cost units.
    pub max_cost: u64,
    /// True if the expression compiles. Otherwise, the cost is zero.
    pub is_compiled: bool,
}

/// The result of validating the rules of a CustomResourceDefinition.
#[derive(Clone, Debug, Default)]
pub struct DefinitionVerdict {
    /// The errors. Empty if the API server accepts the rules.
    pub errors: Vec<DefinitionError>,
    /// The estimated costs of the rules and message expressions.
    pub costs: Vec<RuleCost>,
    /// True if some rules were not compiled because of other errors in the schema.
    pub is_partial: bool,
}

/// Validates the rules of a CRD like an API server of `version`. `definition` must be a CustomResourceDefinition of
/// `apiextensions.k8s.io/v1`. In a new CRD, rules cannot use the functions that `version` introduced.
///
/// # Example
/// ```
/// use kubernetes::validation_rules::validate_rules;
/// use kubernetes::version::{CompileMode, KubernetesVersion};
/// use serde_json::json;
///
/// let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
///     "type": "object",
///     "properties": {"spec": {
///         "type": "object",
///         "properties": {"replicas": {"type": "integer"}},
///         "x-kubernetes-validations": [{"rule": "self.replicas < 'five'"}],
///     }},
/// }}}]}});
/// let verdict = validate_rules(&crd, KubernetesVersion::DEFAULT, CompileMode::New);
/// let error = verdict.errors[0].error.to_string();
/// assert!(error.starts_with("spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: \
///     Invalid value: {\"Rule\":"), "{error}");
/// assert!(error.contains("found no matching overload for '_<_' applied to '(int, string)'"), "{error}");
/// ```
#[must_use]
pub fn validate_rules(
    definition: &Json,
    version: KubernetesVersion,
    mode: CompileMode,
) -> DefinitionVerdict {
    validate_rules_with(definition, (version, mode), &|_, _| Vec::new())
}

/// Validates the defaults of the structural schema at a path.
pub(crate) type DefaultErrors<'a> = &'a dyn Fn(&Json, &Path<'_>) -> Vec<DefinitionError>;

/// Same as [`validate_rules`], but also validates defaults with `default_errors`. If a default is invalid, rules are
/// not compiled.
pub(crate) fn validate_rules_with(
    definition: &Json,
    (version, mode): (KubernetesVersion, CompileMode),
    default_errors: DefaultErrors<'_>,
) -> DefinitionVerdict {
    let mut verdict = DefinitionVerdict::default();
    let versions = definition.pointer("/spec/versions");
    let versions = versions.and_then(Json::as_array);
    let versions: Vec<&Json> = versions.into_iter().flatten().collect();
    let schemas = versions
        .iter()
        .map(|version| version.get("schema").filter(|schema| !schema.is_null()));
    let are_identical = schemas
        .clone()
        .zip(schemas.skip(1))
        .all(|(one, next)| one == next);
    let mut compiler = Compiler::new(version, mode);
    let spec = Path::ROOT.field("spec");
    let versions_path = spec.field("versions");
    for (n, served) in versions.iter().enumerate() {
        let schema = served.pointer("/schema/openAPIV3Schema");
        let Some(schema) = schema.filter(|schema| schema.is_object()) else {
            continue;
        };
        let version_path = versions_path.index(n);
        let written = version_path.field("schema");
        let path = if are_identical {
            spec.field("validation")
        } else {
            written
        };
        let mut result = validate_schema(
            schema,
            &path.field("openAPIV3Schema"),
            (&mut compiler, version.behavior()),
            default_errors,
        );
        for error in &mut result.errors {
            if are_identical {
                let below = error.place.split_off(2);
                error.place = written.steps();
                error.place.extend(below);
            }
        }
        verdict.errors.append(&mut result.errors);
        verdict.costs.append(&mut result.costs);
        verdict.is_partial |= result.is_partial;
        if are_identical {
            break;
        }
    }
    verdict
}

/// Returns true if a version of `definition` has rules in its schema.
#[must_use]
pub fn has_rules(definition: &Json) -> bool {
    let versions = definition.pointer("/spec/versions");
    let versions = versions.and_then(Json::as_array);
    let mut schemas = versions
        .into_iter()
        .flatten()
        .filter_map(|version| version.pointer("/schema/openAPIV3Schema")?.as_object());
    schemas.any(schema_has_rules)
}

fn schema_has_rules(schema: &Map<String, Json>) -> bool {
    if !ValidationRule::list_from_schema(schema).is_empty() {
        return true;
    }
    let below = ["additionalProperties", "items"].into_iter();
    let mut below = below.filter_map(|keyword| schema.get(keyword)?.as_object());
    below.any(schema_has_rules)
        || keywords::schemas_of(schema, "properties").any(|(_, schema)| schema_has_rules(schema))
        || keywords::junctors(schema).any(|(_, _, schema)| schema_has_rules(schema))
}

fn validate_schema(
    schema: &Json,
    path: &Path<'_>,
    (compiler, behavior): (&mut Compiler, Behavior),
    default_errors: DefaultErrors<'_>,
) -> DefinitionVerdict {
    let unjudged = DefinitionVerdict {
        is_partial: true,
        ..DefinitionVerdict::default()
    };
    if !is_shallower(schema, MAX_JSON_DEPTH) {
        return unjudged;
    }
    let whole = schema;
    let Some(schema) = schema.as_object() else {
        return unjudged;
    };
    let is_structural = is_structural(schema);
    let of_defaults = if is_structural {
        default_errors(whole, path)
    } else {
        Vec::new()
    };
    let mut validation = SchemaValidation {
        compiler,
        interner: RefCell::default(),
        total: cost::Total::default(),
        costs: Vec::new(),
        is_partial: false,
    };
    let is_sound = is_structural && of_defaults.is_empty();
    let context = is_sound.then(|| Context::root(schema, behavior));
    let errors_of_schema = validation.schema(schema, path, &Inherited::ROOT, context.as_ref());
    let mut errors = of_defaults;
    errors.extend(errors_of_schema.about_rules);
    errors.extend(errors_of_schema.of_expressions);
    if context.is_some() && validation.total.exceeds_limit() {
        for (place, field) in validation.total.most_expensive() {
            errors.push(over_cost_limit(
                place.clone(),
                field.to_owned(),
                cost::CONTRIBUTED.into(),
            ));
        }
        errors.push(over_cost_limit(
            path.steps(),
            path.text(),
            validation.total.message(),
        ));
    }
    DefinitionVerdict {
        errors,
        costs: validation.costs,
        is_partial: validation.is_partial,
    }
}

fn over_cost_limit(place: Vec<PathStep>, field: String, detail: String) -> DefinitionError {
    DefinitionError {
        error: FieldError {
            kind: FieldErrorKind::Forbidden,
            field,
            value: None,
            detail,
        },
        place,
        cause: DefinitionCause::CostLimit,
    }
}

fn error(
    path: &Path<'_>,
    kind: FieldErrorKind,
    value: Option<String>,
    detail: impl Into<String>,
) -> DefinitionError {
    DefinitionError {
        error: FieldError {
            kind,
            field: path.text(),
            value,
            detail: detail.into(),
        },
        place: path.steps(),
        cause: DefinitionCause::Other,
    }
}

/// Errors of a schema and its nested schemas.
#[derive(Default)]
struct SchemaErrors {
    /// True if there are errors that do not concern rules.
    has_others: bool,
    /// Rule errors that are found without compiling expressions.
    about_rules: Vec<DefinitionError>,
    /// Errors that are found by compiling expressions.
    of_expressions: Vec<DefinitionError>,
}

impl SchemaErrors {
    fn append(&mut self, mut other: Self) {
        self.has_others |= other.has_others;
        self.about_rules.append(&mut other.about_rules);
        self.of_expressions.append(&mut other.of_expressions);
    }
}

/// State that nested schemas inherit.
#[derive(Clone)]
struct Inherited {
    is_root: bool,
    /// True in the schemas of a resource's `metadata`, `kind` and `apiVersion`.
    in_metadata: bool,
    allows_defaults: bool,
    /// The path of the outermost enclosing list or map whose elements cannot be matched with old elements.
    uncorrelatable: Option<String>,
}

impl Inherited {
    const ROOT: Self = Self {
        is_root: true,
        in_metadata: false,
        allows_defaults: true,
        uncorrelatable: None,
    };

    fn below(&self) -> Self {
        Self {
            is_root: false,
            ..self.clone()
        }
    }

    fn uncorrelatable_from(&mut self, path: &Path<'_>) {
        self.uncorrelatable.get_or_insert_with(|| path.text());
    }
}

struct SchemaValidation<'b> {
    compiler: &'b mut Compiler,
    interner: RefCell<Interner>,
    total: cost::Total,
    costs: Vec<RuleCost>,
    is_partial: bool,
}

impl SchemaValidation<'_> {
    /// Validates `schema` and its nested schemas. If `context` is `None`, does not compile rules.
    fn schema(
        &mut self,
        schema: &Map<String, Json>,
        path: &Path<'_>,
        inherited: &Inherited,
        context: Option<&Context<'_>>,
    ) -> SchemaErrors {
        checkpoint();
        let mut errors = SchemaErrors::default();
        if let Some(Json::Object(value)) = schema.get("additionalProperties") {
            let mut below = inherited.below();
            below.allows_defaults &= !inherited.in_metadata;
            let context = context.map(|context| context.below(value, Step::Values));
            let path = path.field("additionalProperties");
            errors.append(self.schema(value, &path, &below, context.as_ref()));
        }
        let properties = path.field("properties");
        for (name, property) in keywords::schemas_of(schema, "properties") {
            let below = below_property(schema, name, path, inherited);
            let context = context.map(|context| context.below(property, Step::Property(name)));
            errors.append(self.schema(property, &properties.key(name), &below, context.as_ref()));
        }
        for (keyword, index, nested) in keywords::junctors(schema) {
            let path = path.field(keyword);
            let nested = match index {
                Some(index) => self.schema(nested, &path.index(index), &inherited.below(), None),
                None => self.schema(nested, &path, &inherited.below(), None),
            };
            errors.append(nested);
        }
        if let Some(Json::Object(items)) = schema.get("items") {
            let mut below = inherited.below();
            if keywords::text(schema, "x-kubernetes-list-type") != "map" {
                below.uncorrelatable_from(path);
            }
            let context = context.map(|context| context.below(items, Step::Items));
            errors.append(self.schema(items, &path.field("items"), &below, context.as_ref()));
        }
        errors.has_others |=
            keywords::has_errors(schema, inherited.allows_defaults, inherited.in_metadata);
        let rules = ValidationRule::list_from_schema(schema);
        if rules.is_empty() {
            return errors;
        }
        let rules_path = path.field("x-kubernetes-validations");
        for (n, rule) in rules.iter().enumerate() {
            about_rule(rule, schema, &rules_path.index(n), &mut errors.about_rules);
        }
        let Some(context) = context.filter(|_| !errors.has_others) else {
            self.is_partial = true;
            return errors;
        };
        if !errors.about_rules.is_empty() {
            self.is_partial = true;
            return errors;
        }
        let internal = |message: &str| error(&rules_path, FieldErrorKind::Internal, None, message);
        let type_ = match context.type_(&self.interner) {
            Ok(Some(type_)) => type_,
            Ok(None) => {
                errors.of_expressions.push(internal(
                    "failed to convert to declType for CEL validation rules",
                ));
                return errors;
            }
            Err(reason) => {
                errors.of_expressions.push(internal(&format!(
                    "internal error: failed to construct type information for \
                     x-kubernetes-validations rules: {reason}"
                )));
                return errors;
            }
        };
        let compiled = compile(&rules, schema, &type_, &rules_path, self.compiler);
        for (n, (rule, compiled)) in rules.iter().zip(compiled).enumerate() {
            let path = rules_path.index(n);
            self.compiled_rule(
                (rule, &compiled),
                &path,
                inherited,
                context,
                &mut errors.of_expressions,
            );
        }
        errors
    }

    fn compiled_rule(
        &mut self,
        (rule, compiled): (&ValidationRule, &CompiledRule),
        path: &Path<'_>,
        inherited: &Inherited,
        context: &Context<'_>,
        errors: &mut Vec<DefinitionError>,
    ) {
        let rule_path = path.field("rule");
        let message_path = path.field("messageExpression");
        let cardinality = context.max_cardinality.unwrap_or(compiled.max_cardinality);
        let rule_cost = cost::product(compiled.max_cost, cardinality);
        let is_compiled = compiled.program.is_some();
        self.cost(
            &rule_path,
            (rule_cost, is_compiled),
            "estimated rule cost",
            errors,
        );
        let value = || Some(rule.as_value(context.behavior));
        let mut failed = |path: &Path<'_>, failure: &ExpressionError| {
            let detail = failure.detail.as_str();
            errors.push(DefinitionError {
                cause: DefinitionCause::Expression(failure.clone()),
                ..error(path, FieldErrorKind::Invalid, value(), detail)
            });
        };
        if let Some(failure) = &compiled.error {
            failed(&rule_path, failure);
        }
        if let Some(failure) = &compiled.message_error {
            failed(&message_path, failure);
        } else if compiled.message.is_some() {
            let what = "estimated messageExpression cost";
            self.cost(
                &message_path,
                (compiled.message_max_cost, true),
                what,
                errors,
            );
        }
        if compiled.uses_old_self {
            if let Some(within) = &inherited.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                let value = Some(go_quote(&rule.rule));
                errors.push(DefinitionError {
                    cause: DefinitionCause::UncorrelatableRule,
                    ..error(&rule_path, FieldErrorKind::Invalid, value, detail)
                });
            }
        } else if let Some(optional) = rule.optional_old_self {
            errors.push(error(
                &path.field("optionalOldSelf"),
                FieldErrorKind::Invalid,
                Some(optional.to_string()),
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }

    /// Records the estimated cost of an expression. Adds an error if the cost exceeds its limit. `what` describes the
    /// cost in the error message.
    fn cost(
        &mut self,
        path: &Path<'_>,
        (max_cost, is_compiled): (u64, bool),
        what: &str,
        errors: &mut Vec<DefinitionError>,
    ) {
        if max_cost > cost::STATIC_ESTIMATED_COST_LIMIT {
            let detail = cost::exceeded(what, max_cost, cost::STATIC_ESTIMATED_COST_LIMIT);
            errors.push(over_cost_limit(path.steps(), path.text(), detail));
        }
        self.total.add(path, max_cost);
        self.costs.push(RuleCost {
            field: path.text(),
            max_cost,
            is_compiled,
        });
    }
}

fn below_property(
    schema: &Map<String, Json>,
    name: &str,
    path: &Path<'_>,
    inherited: &Inherited,
) -> Inherited {
    let mut below = inherited.below();
    if !keywords::is_map_correlatable(schema) {
        below.uncorrelatable_from(path);
    }
    let is_resource = inherited.is_root || keywords::flag(schema, "x-kubernetes-embedded-resource");
    if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
        below.in_metadata = true;
        below.allows_defaults &= !inherited.is_root;
    }
    below
}

/// Adds the errors that are found without compiling the rule's expressions.
fn about_rule(
    rule: &ValidationRule,
    schema: &Map<String, Json>,
    path: &Path<'_>,
    errors: &mut Vec<DefinitionError>,
) {
    use FieldErrorKind::{Invalid, NotSupported, Required};
    let has_newlines = |text: &str| text.contains(['\n', '\r']);
    let quoted = |text: &str| Some(go_quote(text));
    let mut push = |field: &str, kind, value, detail: &str| {
        errors.push(error(&path.field(field), kind, value, detail));
    };
    let trimmed_message = rule.message.trim();
    if rule.rule.trim().is_empty() {
        push("rule", Required, None, "rule is not specified");
    } else if !rule.message.is_empty() && trimmed_message.is_empty() {
        let value = quoted(&rule.message);
        push("message", Invalid, value, "must be non-empty if specified");
    } else if has_newlines(trimmed_message) {
        let value = quoted(&rule.message);
        push("message", Invalid, value, "must not contain line breaks");
    } else if has_newlines(rule.rule.trim()) && trimmed_message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        push("message", Required, None, detail);
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        push("messageExpression", Required, None, detail);
    }
    if let Some(reason) = &rule.reason
        && !ValidationRule::REASONS.contains(&reason.as_str())
    {
        let supported = ValidationRule::REASONS.map(go_quote).join(", ");
        let detail = format!("supported values: {supported}");
        push(
            "reason",
            NotSupported,
            Some(go_json::string_text(reason)),
            &detail,
        );
    }
    let field_path = &rule.field_path;
    if !field_path.is_empty() && field_path.trim().is_empty() {
        let value = quoted(field_path);
        push(
            "fieldPath",
            Invalid,
            value,
            "must be non-empty if specified",
        );
    }
    if has_newlines(field_path) {
        let value = quoted(field_path);
        push("fieldPath", Invalid, value, "must not contain line breaks");
    }
    if !field_path.is_empty()
        && field_path::normalized(field_path, schema).is_none()
        && keywords::is_convertible(schema)
    {
        push(
            "fieldPath",
            Invalid,
            quoted(field_path),
            "must be a valid path",
        );
    }
}
