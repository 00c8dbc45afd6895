//! The expressions of a policy, parsed once.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};

use crate::cel::ast::Ast;
use crate::cel::ast_validators;
use crate::cel::checker::{self, CheckedAst};
use crate::cel::diagnostic::Diagnostics;
use crate::cel::env::Env;
use crate::cel::syntax;

/// What an expression is for.
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
}

/// An expression of a policy, with its parsed tree.
#[derive(Debug)]
pub struct PolicyExpression {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// What it is for.
    pub role: Role,
    /// The name of a variable or match condition; the key of an audit annotation.
    pub name: Option<String>,
    /// The text, as in the policy.
    pub text: String,
    parsed: Result<Arc<Ast>, Diagnostics>,
}

/// The outcome of checking an expression in an environment.
pub(super) enum Checked<'a> {
    /// The text could not be parsed.
    Unparsed(&'a Diagnostics),
    /// Type errors, with the types as far as they are known.
    Failed(CheckedAst, Diagnostics),
    /// No errors.
    Passed(CheckedAst),
}

impl PolicyExpression {
    pub(super) fn new(field_ref: String, role: Role, name: Option<&str>, text: &str) -> Self {
        let (ast, found) = syntax::parse(text);
        let parsed = ast.map(Arc::new).ok_or(found);
        Self {
            field_ref,
            role,
            name: name.map(Into::into),
            text: text.into(),
            parsed,
        }
    }

    /// The tree.
    ///
    /// # Errors
    /// The findings of the parser.
    pub fn parsed(&self) -> Result<&Arc<Ast>, &Diagnostics> {
        self.parsed.as_ref()
    }

    /// Checks the expression in `env`: types first, literals after.
    ///
    /// Source: cel-go `cel/env.go`, `Env.Check`.
    pub(super) fn check(&self, env: &Env) -> Checked<'_> {
        let ast = match &self.parsed {
            Ok(ast) => ast,
            Err(found) => return Checked::Unparsed(found),
        };
        let (checked, mut found) = checker::check(ast, &self.text, env);
        if found.is_empty() {
            ast_validators::validate(&checked, &self.text, &mut found);
        }
        if found.is_empty() {
            Checked::Passed(checked)
        } else {
            Checked::Failed(checked, found)
        }
    }
}

/// Parses all expressions of `policy`, in the order of its fields: match conditions, variables,
/// validations each with its message, audit annotations.
pub(super) fn parse_all(policy: &ValidatingAdmissionPolicy) -> Vec<PolicyExpression> {
    policy.spec.as_ref().map(parse_spec).unwrap_or_default()
}

fn parse_spec(spec: &ValidatingAdmissionPolicySpec) -> Vec<PolicyExpression> {
    let mut expressions = Vec::new();
    for (n, condition) in spec.match_conditions.iter().flatten().enumerate() {
        let field_ref = format!("spec.matchConditions[{n}].expression");
        // The API server trims these before it compiles them on creation.
        expressions.push(PolicyExpression::new(
            field_ref,
            Role::MatchCondition,
            Some(&condition.name),
            &condition.expression,
        ));
    }
    for (n, variable) in spec.variables.iter().flatten().enumerate() {
        let field_ref = format!("spec.variables[{n}].expression");
        expressions.push(PolicyExpression::new(
            field_ref,
            Role::Variable,
            Some(&variable.name),
            &variable.expression,
        ));
    }
    for (n, validation) in spec.validations.iter().flatten().enumerate() {
        let field_ref = format!("spec.validations[{n}].expression");
        expressions.push(PolicyExpression::new(
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
            expressions.push(PolicyExpression::new(
                field_ref,
                Role::MessageExpression,
                None,
                message,
            ));
        }
    }
    for (n, annotation) in spec.audit_annotations.iter().flatten().enumerate() {
        let field_ref = format!("spec.auditAnnotations[{n}].valueExpression");
        expressions.push(PolicyExpression::new(
            field_ref,
            Role::AuditAnnotation,
            Some(&annotation.key),
            &annotation.value_expression,
        ));
    }
    expressions
}
