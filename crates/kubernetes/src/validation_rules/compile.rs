//! Compiles the rules of a single schema.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go` (`Compile`, `compileRule`).

use std::sync::Arc;

use cel::checker::{self, CheckedAst, Reference};
use cel::decls::Variable;
use cel::diagnostic::{Code, Diagnostics, Severity, Shown};
use cel::env::Env;
use cel::eval::Program;
use cel::interrupt::working_on;
use cel::stack::run_on_deep_stack;
use cel::types::{OPTIONAL_TYPE, Type};
use cel::version::Behavior;
use cel::{ast_validators, syntax};
use serde_json::{Map, Value as Json};

use super::field_path;
use super::path::Path;
use super::rule::ValidationRule;
use crate::library::environment::{base_env, declared_scalars};
use crate::library::estimate;
use crate::library::runtime::KubernetesRuntime;
use crate::schema::rule_type::rule_type;
use crate::schema::{DeclType, DeclaredSizes, Interner, sizes};
use crate::version::{CompileMode, KubernetesVersion};

/// The variable for the validated value.
pub(super) const SELF: &str = "self";
/// The variable for the old value in an update.
pub(super) const OLD_SELF: &str = "oldSelf";

/// The CEL type name of the validated objects. In upstream, it is different for each compilation.
const TYPE_NAME: &str = "selfType";

/// The maximum number of AST nodes in all expressions of a CRD together. Expressions that exceed this limit are not
/// compiled.
const MAX_NODES: usize = 500_000;

/// The maximum total size of error messages, in bytes. Above this limit, only the first error of each expression is
/// reported.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Kinds of compilation errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionErrorKind {
    /// The API server rejects the expression.
    Rejected,
    /// The expression causes a panic in the API server.
    Unsafe,
    /// The expression exceeds a limit of this crate. The API server has no such limit.
    Unsupported,
}

/// A compilation error in an expression of a rule.
#[derive(Clone, Debug)]
pub struct ExpressionError {
    /// The kind of the error.
    pub kind: ExpressionErrorKind,
    /// The API server's message.
    pub detail: String,
    /// True if the expression compiles but returns the wrong type.
    pub is_result_type: bool,
    /// The errors with their locations, in this project's wording. Empty if no location is known.
    pub found: Diagnostics,
}

impl ExpressionError {
    fn rejected(detail: impl Into<String>) -> Self {
        Self {
            kind: ExpressionErrorKind::Rejected,
            detail: detail.into(),
            is_result_type: false,
            found: Diagnostics::default(),
        }
    }
}

/// A compiled rule. All fields are empty if the rule has no expression.
#[derive(Debug, Default)]
pub(super) struct CompiledRule {
    pub(super) error: Option<ExpressionError>,
    pub(super) program: Option<Program>,
    pub(super) uses_old_self: bool,
    /// The maximum cost of one evaluation of the rule.
    pub(super) max_cost: u64,
    /// The maximum number of evaluations of the rule per request, derived from the maximum request size.
    pub(super) max_cardinality: u64,
    pub(super) message_error: Option<ExpressionError>,
    pub(super) message: Option<Program>,
    pub(super) message_max_cost: u64,
    /// The path of the reported field, relative to the validated value, in the API server's format.
    pub(super) field_path: String,
}

/// A compiler for the rules of a CRD. Its limits apply to all rules together.
#[derive(Debug)]
pub(super) struct Compiler {
    env: &'static Env,
    language: Behavior,
    /// The remaining number of AST nodes for all expressions.
    nodes: usize,
    /// The remaining number of bytes for all error messages.
    text_bytes: usize,
}

impl Compiler {
    pub(super) fn new(version: KubernetesVersion, mode: CompileMode) -> Self {
        Self {
            env: base_env(version.release_in(mode)),
            language: version.language_in(mode),
            nodes: MAX_NODES,
            text_bytes: MAX_TEXT_BYTES,
        }
    }
}

/// Compiles the rules of `schema` at `path`. `type_` is the type of the validated values.
pub(super) fn compile(
    rules: &[ValidationRule],
    schema: &Map<String, Json>,
    type_: &Arc<DeclType>,
    path: &Path<'_>,
    compiler: &mut Compiler,
) -> Vec<CompiledRule> {
    if rules.is_empty() {
        return Vec::new();
    }
    let plain = env_of(compiler.env, type_, false);
    let optional = env_of(compiler.env, type_, true);
    let sizes = DeclaredSizes::for_rule(Arc::clone(type_));
    let max_cardinality = max_cardinality(type_.min_serialized_size);
    let compile = |(n, rule): (usize, &ValidationRule)| {
        working_on(&path.index(n).text());
        let env = if rule.has_optional_old_self() {
            &optional
        } else {
            &plain
        };
        let mut compiled = compile_rule(rule, env, &sizes, compiler);
        if compiled.program.is_some() {
            compiled.max_cardinality = max_cardinality;
        }
        if compiled.program.is_some()
            && compiled.message_error.is_none()
            && !rule.field_path.is_empty()
        {
            compiled.field_path =
                field_path::normalized(&rule.field_path, schema).unwrap_or_default();
        }
        compiled
    };
    rules.iter().enumerate().map(compile).collect()
}

/// Returns the environment for rules about values of the type `type_`.
fn env_of(base: &Env, type_: &Arc<DeclType>, has_optional_old_self: bool) -> Env {
    let cel_type = type_.cel_type(TYPE_NAME);
    let old_type = if has_optional_old_self {
        Type::opaque(OPTIONAL_TYPE, vec![cel_type.clone()])
    } else {
        cel_type.clone()
    };
    base.extend_types(declared_scalars()).extend([
        Variable::new(SELF, cel_type),
        Variable::new(OLD_SELF, old_type),
    ])
}

/// Returns the environment of the rules of a schema, for completion in editors. `is_resource` is true for the schema of
/// a whole custom resource. Returns `None` if the schema has no CEL type.
#[must_use]
pub fn rule_env(
    schema: &Json,
    is_resource: bool,
    has_optional_old_self: bool,
    version: KubernetesVersion,
) -> Option<Env> {
    let is_embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Json::Bool(true));
    let type_ = rule_type(
        schema.as_object()?,
        is_resource || is_embedded,
        version.behavior(),
        &mut Interner::default(),
    );
    let base = base_env(version.release_in(CompileMode::New));
    Some(env_of(base, &type_.ok()??, has_optional_old_self))
}

/// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`, `maxCardinality`.
fn max_cardinality(min_size: i64) -> u64 {
    let size = min_size.max(0).saturating_add(1);
    sizes::MAX_REQUEST_SIZE_BYTES
        .checked_div(size)
        .unwrap_or(0)
        .unsigned_abs()
}

fn compile_rule(
    rule: &ValidationRule,
    env: &Env,
    sizes: &DeclaredSizes,
    compiler: &mut Compiler,
) -> CompiledRule {
    let mut compiled = CompiledRule::default();
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    match expression(&rule.rule, env, sizes, compiler, &RULE) {
        Ok(sound) => {
            compiled.uses_old_self = sound.uses_old_self;
            compiled.max_cost = sound.max_cost;
            compiled.program = Some(sound.program);
        }
        Err((error, uses_old_self)) => {
            compiled.uses_old_self = uses_old_self;
            compiled.error = Some(error);
            return compiled;
        }
    }
    if !rule.message_expression.is_empty() {
        match expression(&rule.message_expression, env, sizes, compiler, &MESSAGE) {
            Ok(sound) => {
                compiled.message_max_cost = sound.max_cost;
                compiled.message = Some(sound.program);
            }
            Err((error, _)) => compiled.message_error = Some(error),
        }
    }
    compiled
}

/// The result type and the error messages for one kind of expression: rules or message expressions.
struct ExpressionKind {
    prefix: &'static str,
    type_: Type,
    wrong_type: &'static str,
}

static RULE: ExpressionKind = ExpressionKind {
    prefix: "",
    type_: Type::Bool,
    wrong_type: "cel expression must evaluate to a bool",
};

static MESSAGE: ExpressionKind = ExpressionKind {
    prefix: "messageExpression ",
    type_: Type::String,
    wrong_type: "messageExpression must evaluate to a string",
};

struct CheckedExpression {
    program: Program,
    uses_old_self: bool,
    max_cost: u64,
}

/// Compiles an expression. In an error, the boolean is true if the expression passes the type check and uses `oldSelf`,
/// but cannot be planned.
fn expression(
    text: &str,
    env: &Env,
    sizes: &DeclaredSizes,
    compiler: &mut Compiler,
    expression_kind: &ExpressionKind,
) -> Result<CheckedExpression, (ExpressionError, bool)> {
    let (ast, diagnostics) = syntax::parse_within(text, compiler.language, &mut compiler.nodes);
    let Some(ast) = ast.map(Arc::new) else {
        return Err((
            expression_error(diagnostics, true, text, compiler, expression_kind),
            false,
        ));
    };
    let deep = checker::is_deep(&ast);
    run_on_deep_stack(deep, || {
        let (checked, mut diagnostics) = checker::check(&ast, text, env);
        if diagnostics.is_empty() {
            ast_validators::validate(&checked, env, text, &mut diagnostics);
        }
        if !diagnostics.is_empty() {
            return Err((
                expression_error(diagnostics, false, text, compiler, expression_kind),
                false,
            ));
        }
        if checked.output_type() != expression_kind.type_ {
            let error = ExpressionError {
                is_result_type: true,
                ..ExpressionError::rejected(expression_kind.wrong_type)
            };
            return Err((error, false));
        }
        let uses_old_self = names_old_self(&checked);
        let program = Program::plan(&checked, env, &KubernetesRuntime).map_err(|error| {
            let kind = if error.is_unsafe() {
                ExpressionErrorKind::Unsafe
            } else {
                ExpressionErrorKind::Rejected
            };
            let detail = format!(
                "{}instantiation failed: {}",
                expression_kind.instantiation(),
                error.message()
            );
            let error = ExpressionError {
                kind,
                ..ExpressionError::rejected(detail)
            };
            (error, uses_old_self)
        })?;
        Ok(CheckedExpression {
            program,
            uses_old_self,
            max_cost: estimate::estimate(&checked, sizes).max,
        })
    })
}

impl ExpressionKind {
    fn instantiation(&self) -> &'static str {
        if self.prefix.is_empty() {
            "program "
        } else {
            self.prefix
        }
    }
}

fn names_old_self(checked: &CheckedAst) -> bool {
    let ast = checked.ast();
    ast.descendants(ast.root()).into_iter().any(
        |id| matches!(checked.reference(id), Some(Reference::Ident(name)) if **name == *OLD_SELF),
    )
}

fn expression_error(
    diagnostics: Diagnostics,
    is_syntax: bool,
    text: &str,
    compiler: &mut Compiler,
    expression_kind: &ExpressionKind,
) -> ExpressionError {
    let is_unsupported = diagnostics
        .as_slice()
        .iter()
        .any(|diagnostic| diagnostic.kind.code() == Code::TooComplex);
    let mut shown = if is_syntax && !is_unsupported {
        antlr::findings(text, compiler.language)
    } else {
        diagnostics.clone()
    };
    let n_bytes = shown.cut(text, compiler.text_bytes);
    compiler.text_bytes = compiler.text_bytes.saturating_sub(n_bytes);
    let words = Shown {
        severity: Severity::Error,
        with_source: true,
    };
    ExpressionError {
        kind: if is_unsupported {
            ExpressionErrorKind::Unsupported
        } else {
            ExpressionErrorKind::Rejected
        },
        detail: format!(
            "{}compilation failed: {}",
            expression_kind.prefix,
            shown.render_as(text, words)
        ),
        is_result_type: false,
        found: diagnostics,
    }
}
