//! Parses the expressions of a policy. Each expression is parsed once.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::admissionregistration::v1::Mutation;

use super::mutations::{APPLY_CONFIGURATION, JSON_PATCH};
use super::request_policy::RequestPolicy;
use cel::ast::Ast;
use cel::ast_validators;
use cel::checker::{self, CheckedAst};
use cel::diagnostic::{Code, Diagnostic, Diagnostics};
use cel::env::Env;
use cel::interrupt::working_on;
use cel::version::Behavior;
use cel::{stack, syntax};
use kubernetes::version::KubernetesVersion;

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A match condition.
    MatchCondition,
    /// A variable.
    Variable,
    /// A validation.
    Validation,
    /// The message expression of a validation.
    MessageExpression,
    /// The value of an audit annotation.
    AuditAnnotation,
    /// A mutation's expression that returns an object to merge.
    ApplyConfiguration,
    /// A mutation's expression that returns a JSON patch.
    JsonPatch,
}

impl Role {
    /// Returns true for the expressions of mutations.
    #[must_use]
    pub const fn is_mutation(self) -> bool {
        matches!(self, Self::ApplyConfiguration | Self::JsonPatch)
    }
}

/// An expression of a policy, with its AST.
#[derive(Clone, Debug)]
pub struct PolicyExpression {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The purpose of the expression.
    pub role: Role,
    /// The name of a variable or match condition, or the key of an audit annotation.
    pub name: Option<String>,
    /// The source. White space is not trimmed.
    pub text: Arc<str>,
    parsed: Result<Arc<Ast>, Diagnostics>,
    /// The syntax of the API server's version.
    behavior: Behavior,
    /// The parser's findings with the API server's messages, computed on first use.
    in_upstream_words: OnceLock<Diagnostics>,
}

/// The wording of syntax errors. All other findings always have the API server's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Messages of this crate, written for policy authors.
    Ours,
    /// The API server's messages, for output that must be equal to the API server's output.
    Upstream,
}

/// The remaining output size in bytes for the findings about a policy. With 0 bytes left, only the first finding of
/// each expression is written.
#[derive(Debug)]
pub(super) struct OutputBudget(Cell<usize>);

/// Maximum output size in bytes for the findings about a policy. It is several times the maximum size of a stored
/// object.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// Maximum output size in bytes for the findings about a policy in the `upstream` profile.
///
/// Upstream's largest output for a single-line expression is half of this size: a hundred findings for each of ten
/// kinds, each with the source line of 16,000 characters and a line with a caret. The other half is a reserve.
const MAX_UPSTREAM_TEXT_BYTES: usize = 64 * 1024 * 1024;

impl Default for OutputBudget {
    fn default() -> Self {
        Self(Cell::new(MAX_TEXT_BYTES))
    }
}

impl OutputBudget {
    pub(super) fn upstream() -> Self {
        Self(Cell::new(MAX_UPSTREAM_TEXT_BYTES))
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.0.get() == 0
    }

    /// Removes the findings that exceed the remaining output size. `text` is the source of the expression. Returns the
    /// rendered length in bytes of the findings that are left.
    pub(super) fn cut(&self, diagnostics: &mut Diagnostics, text: &str) -> usize {
        let left = self.0.get();
        let n_bytes = diagnostics.cut(text, left);
        self.0.set(left.saturating_sub(n_bytes));
        n_bytes
    }
}

pub(super) enum ExpressionCheck<'a> {
    /// The expression cannot be parsed.
    Unparsed(&'a Diagnostics),
    /// The expression has type errors. Nodes without an error have types.
    Failed(CheckedAst, Diagnostics),
    /// The expression has no errors.
    Passed(CheckedAst),
}

impl PolicyExpression {
    pub(super) fn new(
        behavior: Behavior,
        field_ref: String,
        role: Role,
        name: Option<&str>,
        text: &str,
    ) -> Self {
        let mut n_left = MAX_NODES;
        Self::new_within((behavior, &mut n_left), field_ref, role, name, text)
    }

    fn new_within(
        (behavior, n_left): (Behavior, &mut usize),
        field_ref: String,
        role: Role,
        name: Option<&str>,
        text: &str,
    ) -> Self {
        working_on(&field_ref);
        let (ast, diagnostics) = syntax::parse_within(text, behavior, n_left);
        let parsed = ast.map(Arc::new).ok_or(diagnostics);
        Self {
            field_ref,
            role,
            name: name.map(Into::into),
            text: text.into(),
            parsed,
            behavior,
            in_upstream_words: OnceLock::new(),
        }
    }

    /// Returns the AST.
    ///
    /// # Errors
    /// Returns the parser's findings if the expression cannot be parsed.
    pub fn parsed(&self) -> Result<&Arc<Ast>, &Diagnostics> {
        self.parsed.as_ref()
    }

    /// Returns the parser's findings in the wording `words`. `diagnostics` are the findings in the wording of this
    /// crate.
    pub(super) fn in_words<'a>(
        &'a self,
        diagnostics: &'a Diagnostics,
        words: Words,
    ) -> &'a Diagnostics {
        let is_ours_alone = |finding: &Diagnostic| finding.kind.code() == Code::TooComplex;
        if words == Words::Ours || diagnostics.as_slice().iter().any(is_ours_alone) {
            return diagnostics;
        }
        self.in_upstream_words
            .get_or_init(|| antlr::findings(&self.text, self.behavior))
    }

    /// Returns the syntax with which the expression was parsed.
    pub(super) fn behavior(&self) -> Behavior {
        self.behavior
    }

    /// Returns the number of nodes in the AST. 0 if the expression cannot be parsed.
    pub(super) fn n_nodes(&self) -> usize {
        self.parsed.as_ref().map_or(0, |ast| ast.len())
    }

    pub(super) fn is_deep(&self) -> bool {
        self.parsed.as_ref().is_ok_and(|ast| checker::is_deep(ast))
    }

    /// Type-checks the expression in `env` and then validates its literals.
    ///
    /// Source: cel-go `cel/env.go`, `Env.Check`.
    pub(super) fn check(&self, env: &Env) -> ExpressionCheck<'_> {
        working_on(&self.field_ref);
        let ast = match &self.parsed {
            Ok(ast) => ast,
            Err(diagnostics) => return ExpressionCheck::Unparsed(diagnostics),
        };
        let (checked, mut diagnostics) = checker::check(ast, &self.text, env);
        if diagnostics.is_empty() {
            ast_validators::validate(&checked, env, &self.text, &mut diagnostics);
        }
        if diagnostics.is_empty() {
            ExpressionCheck::Passed(checked)
        } else {
            ExpressionCheck::Failed(checked, diagnostics)
        }
    }
}

/// Maximum total number of AST nodes in the expressions of a policy. Expressions beyond it are not compiled. A megabyte
/// of source has fewer nodes, unless macros copy their arguments.
const MAX_NODES: usize = 500_000;

/// A policy with more source bytes is parsed on a thread with a large stack.
const MAX_SHALLOW_BYTES: usize = 16 * 1024;

/// Parses all expressions of `policy`, in the order of its fields: match conditions, variables, validations (each
/// followed by its message expression), audit annotations, and then `mutations`.
pub(super) fn parse_all(
    policy: &RequestPolicy,
    mutations: &[Mutation],
    version: KubernetesVersion,
) -> Vec<PolicyExpression> {
    let in_mutations = mutation_expressions(mutations).map(|(.., text)| text.len());
    let n_bytes = n_bytes(policy) + in_mutations.sum::<usize>();
    stack::run_on_deep_stack(n_bytes > MAX_SHALLOW_BYTES, || {
        parse_each(policy, mutations, version.behavior().language)
    })
}

/// Returns the expressions with `text` in place of the source of the expression with the index `n`. Expressions of
/// mutations are only included if `has_mutations` is true. `None` if `n` is the index of a mutation, or if the
/// expressions have too many nodes.
pub(super) fn with_text(
    expressions: &[PolicyExpression],
    n: usize,
    text: &str,
    has_mutations: bool,
) -> Option<Vec<PolicyExpression>> {
    let changed = expressions.get(n).filter(|it| !it.role.is_mutation())?;
    let included = expressions.iter();
    let included = included.filter(|it| has_mutations || !it.role.is_mutation());
    let mut expressions: Vec<_> = included.cloned().collect();
    let changed = stack::run_on_deep_stack(text.len() > MAX_SHALLOW_BYTES, || {
        let (field_ref, name) = (changed.field_ref.clone(), changed.name.as_deref());
        PolicyExpression::new(changed.behavior, field_ref, changed.role, name, text)
    });
    *expressions.get_mut(n)? = changed;
    let n_nodes: usize = expressions.iter().map(PolicyExpression::n_nodes).sum();
    (n_nodes < MAX_NODES).then_some(expressions)
}

fn n_bytes(policy: &RequestPolicy) -> usize {
    let conditions = policy.match_conditions.iter();
    let variables = policy.variables.iter();
    let validations = policy.validations.iter();
    let annotations = policy.audit_annotations.iter();
    conditions.map(|c| c.expression.len()).sum::<usize>()
        + variables.map(|v| v.expression.len()).sum::<usize>()
        + validations
            .map(|v| v.expression.len() + v.message_expression.as_ref().map_or(0, String::len))
            .sum::<usize>()
        + annotations.map(|a| a.value_expression.len()).sum::<usize>()
}

fn parse_each(
    policy: &RequestPolicy,
    mutations: &[Mutation],
    behavior: Behavior,
) -> Vec<PolicyExpression> {
    let mut expressions = Vec::new();
    let mut n_left = MAX_NODES;
    for (n, condition) in policy.match_conditions.iter().enumerate() {
        let field_ref = format!("spec.matchConditions[{n}].expression");
        // The expression is not trimmed here. `compile` trims match conditions of a new policy, as the API server does.
        expressions.push(PolicyExpression::new_within(
            (behavior, &mut n_left),
            field_ref,
            Role::MatchCondition,
            Some(&condition.name),
            &condition.expression,
        ));
    }
    for (n, variable) in policy.variables.iter().enumerate() {
        let field_ref = format!("spec.variables[{n}].expression");
        expressions.push(PolicyExpression::new_within(
            (behavior, &mut n_left),
            field_ref,
            Role::Variable,
            Some(&variable.name),
            &variable.expression,
        ));
    }
    for (n, validation) in policy.validations.iter().enumerate() {
        let field_ref = format!("spec.validations[{n}].expression");
        expressions.push(PolicyExpression::new_within(
            (behavior, &mut n_left),
            field_ref,
            Role::Validation,
            None,
            &validation.expression,
        ));
        if let Some(message) = validation
            .message_expression
            .as_deref()
            .filter(|m| !m.is_empty())
        {
            let field_ref = format!("spec.validations[{n}].messageExpression");
            expressions.push(PolicyExpression::new_within(
                (behavior, &mut n_left),
                field_ref,
                Role::MessageExpression,
                None,
                message,
            ));
        }
    }
    for (n, annotation) in policy.audit_annotations.iter().enumerate() {
        let field_ref = format!("spec.auditAnnotations[{n}].valueExpression");
        expressions.push(PolicyExpression::new_within(
            (behavior, &mut n_left),
            field_ref,
            Role::AuditAnnotation,
            Some(&annotation.key),
            &annotation.value_expression,
        ));
    }
    for (role, field_ref, text) in mutation_expressions(mutations) {
        expressions.push(PolicyExpression::new_within(
            (behavior, &mut n_left),
            field_ref,
            role,
            None,
            text,
        ));
    }
    expressions
}

/// Returns the role, the field path and the source of each mutation expression. Mutations of an unknown patch type are
/// skipped.
fn mutation_expressions(mutations: &[Mutation]) -> impl Iterator<Item = (Role, String, &str)> {
    let all = mutations.iter().enumerate();
    all.filter_map(|(n, mutation)| match &*mutation.patch_type {
        APPLY_CONFIGURATION => {
            let text = mutation.apply_configuration.as_ref()?.expression.as_deref();
            let field_ref = format!("spec.mutations[{n}].applyConfiguration.expression");
            let role = Role::ApplyConfiguration;
            Some((role, field_ref, text.unwrap_or_default()))
        }
        JSON_PATCH => {
            let text = mutation.json_patch.as_ref()?.expression.as_deref();
            let field_ref = format!("spec.mutations[{n}].jsonPatch.expression");
            Some((Role::JsonPatch, field_ref, text.unwrap_or_default()))
        }
        _ => None,
    })
}
