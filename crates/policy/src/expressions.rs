//! The expressions of a policy, parsed once.

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
use cel::{stack, syntax};

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A match condition.
    MatchCondition,
    /// A variable.
    Variable,
    /// A validation.
    Validation,
    /// The message of a validation.
    MessageExpression,
    /// The value of an audit annotation.
    AuditAnnotation,
    /// The object that a mutation applies.
    ApplyConfiguration,
    /// The JSON patch of a mutation.
    JsonPatch,
}

impl Role {
    /// Returns true for the expression of a mutation.
    #[must_use]
    pub const fn is_mutation(self) -> bool {
        matches!(self, Self::ApplyConfiguration | Self::JsonPatch)
    }
}

/// An expression of a policy, with its parsed tree.
#[derive(Debug)]
pub struct PolicyExpression {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The purpose of the expression.
    pub role: Role,
    /// The name of a variable or match condition, or the key of an audit annotation.
    pub name: Option<String>,
    /// The text, as in the policy.
    pub text: Arc<str>,
    parsed: Result<Arc<Ast>, Diagnostics>,
    /// The parser's findings with the API server's wording, computed on first use.
    in_upstream_words: OnceLock<Diagnostics>,
}

/// The wording of syntax errors. All other findings only have the API server's wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Our own wording, for authors of policies.
    Ours,
    /// The API server's wording, for output that is compared with it.
    Upstream,
}

/// The number of bytes of findings that may still be written for a policy. Beyond it, only the first finding of each
/// expression is written.
#[derive(Debug)]
pub(super) struct TextLeft(Cell<usize>);

/// Several times the size limit of an object in the cluster.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The maximum that upstream writes about an expression of one line: a hundred findings for each of ten kinds, each
/// with the line of 16,000 characters and a caret below it, and as much again.
const MAX_UPSTREAM_TEXT_BYTES: usize = 64 * 1024 * 1024;

impl Default for TextLeft {
    fn default() -> Self {
        Self(Cell::new(MAX_TEXT_BYTES))
    }
}

impl TextLeft {
    /// Returns the limit for the upstream profile.
    pub(super) fn upstream() -> Self {
        Self(Cell::new(MAX_UPSTREAM_TEXT_BYTES))
    }

    /// Returns true if the limit is reached.
    pub(super) fn is_used_up(&self) -> bool {
        self.0.get() == 0
    }

    /// Drops the findings in `diagnostics`, for the expression `text`, that exceed the limit. Returns the length of the
    /// rest in bytes.
    pub(super) fn cut(&self, diagnostics: &mut Diagnostics, text: &str) -> usize {
        let left = self.0.get();
        let n_bytes = diagnostics.cut(text, left);
        self.0.set(left.saturating_sub(n_bytes));
        n_bytes
    }
}

/// The result of checking an expression in an environment.
pub(super) enum ExpressionCheck<'a> {
    /// The text could not be parsed.
    Unparsed(&'a Diagnostics),
    /// Type errors, with the types as far as they are known.
    Failed(CheckedAst, Diagnostics),
    /// No errors.
    Passed(CheckedAst),
}

impl PolicyExpression {
    pub(super) fn new(field_ref: String, role: Role, name: Option<&str>, text: &str) -> Self {
        let mut n_left = MAX_NODES;
        Self::new_within(&mut n_left, field_ref, role, name, text)
    }

    fn new_within(
        n_left: &mut usize,
        field_ref: String,
        role: Role,
        name: Option<&str>,
        text: &str,
    ) -> Self {
        working_on(&field_ref);
        let (ast, diagnostics) = syntax::parse_within(text, n_left);
        let parsed = ast.map(Arc::new).ok_or(diagnostics);
        Self {
            field_ref,
            role,
            name: name.map(Into::into),
            text: text.into(),
            parsed,
            in_upstream_words: OnceLock::new(),
        }
    }

    /// Returns the tree.
    ///
    /// # Errors
    /// Returns the parser's findings if the expression cannot be parsed.
    pub fn parsed(&self) -> Result<&Arc<Ast>, &Diagnostics> {
        self.parsed.as_ref()
    }

    /// Returns `diagnostics`, the findings of the parser, in the wording `words`.
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
            .get_or_init(|| antlr::findings(&self.text))
    }

    /// Returns the number of nodes in the tree.
    pub(super) fn n_nodes(&self) -> usize {
        self.parsed.as_ref().map_or(0, |ast| ast.len())
    }

    /// Returns true if checking needs a large stack.
    pub(super) fn is_deep(&self) -> bool {
        self.parsed.as_ref().is_ok_and(|ast| checker::is_deep(ast))
    }

    /// Checks the expression in `env`: first types, then literals.
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

/// Maximum total number of nodes in the expressions of a policy. Expressions beyond it are not compiled. A megabyte of
/// text has fewer nodes, except with macros that copy.
const MAX_NODES: usize = 500_000;

/// Policies with more text than this are parsed in one thread with a large stack.
const MAX_SHALLOW_BYTES: usize = 16 * 1024;

/// Parses all expressions of `policy`, in the order of its fields: match conditions, variables, validations each with
/// its message, audit annotations, and then `mutations`.
pub(super) fn parse_all(policy: &RequestPolicy, mutations: &[Mutation]) -> Vec<PolicyExpression> {
    let in_mutations = mutation_expressions(mutations).map(|(.., text)| text.len());
    let n_bytes = n_bytes(policy) + in_mutations.sum::<usize>();
    stack::run_on_deep_stack(n_bytes > MAX_SHALLOW_BYTES, || {
        parse_each(policy, mutations)
    })
}

/// Returns the approximate size of the text to parse.
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

fn parse_each(policy: &RequestPolicy, mutations: &[Mutation]) -> Vec<PolicyExpression> {
    let mut expressions = Vec::new();
    let mut n_left = MAX_NODES;
    for (n, condition) in policy.match_conditions.iter().enumerate() {
        let field_ref = format!("spec.matchConditions[{n}].expression");
        // The API server trims these before compiling them on creation.
        expressions.push(PolicyExpression::new_within(
            &mut n_left,
            field_ref,
            Role::MatchCondition,
            Some(&condition.name),
            &condition.expression,
        ));
    }
    for (n, variable) in policy.variables.iter().enumerate() {
        let field_ref = format!("spec.variables[{n}].expression");
        expressions.push(PolicyExpression::new_within(
            &mut n_left,
            field_ref,
            Role::Variable,
            Some(&variable.name),
            &variable.expression,
        ));
    }
    for (n, validation) in policy.validations.iter().enumerate() {
        let field_ref = format!("spec.validations[{n}].expression");
        expressions.push(PolicyExpression::new_within(
            &mut n_left,
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
                &mut n_left,
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
            &mut n_left,
            field_ref,
            Role::AuditAnnotation,
            Some(&annotation.key),
            &annotation.value_expression,
        ));
    }
    for (role, field_ref, text) in mutation_expressions(mutations) {
        expressions.push(PolicyExpression::new_within(
            &mut n_left,
            field_ref,
            role,
            None,
            text,
        ));
    }
    expressions
}

/// Returns the expressions that the API server compiles, in the order of the mutations: role, field and text.
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
