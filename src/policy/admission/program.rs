//! The expressions of a policy as programs: compiled once, evaluated for each request.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/plugin.go` (`compilePolicy`),
//! `pkg/admission/plugin/cel/compile.go` (`CompileCELExpression`).

use std::collections::HashMap;

use crate::cel::eval::PlainRuntime;
pub(super) use crate::cel::eval::Program;
use crate::policy::compile::{CompileMode, CompiledPolicy};
use crate::policy::expressions::Role;

/// An expression, and its program or why it has none.
#[derive(Debug)]
pub(super) struct Expression {
    /// The text, as in the policy.
    pub(super) text: String,
    /// The program, or the message of the API server.
    pub(super) program: Result<Program, String>,
}

/// A variable.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) expression: Expression,
}

/// All expressions of a policy, by what they are for.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// The variables; of several of one name the last alone.
    pub(super) variables: Vec<Variable>,
    /// The match conditions, with their names.
    pub(super) match_conditions: Vec<(String, Expression)>,
    /// The validations.
    pub(super) validations: Vec<Expression>,
    /// The message expressions, as many as there are validations.
    pub(super) messages: Vec<Option<Expression>>,
    /// The audit annotations, with their keys.
    pub(super) audit_annotations: Vec<(String, Expression)>,
}

impl Programs {
    pub(super) fn new(compiled: &CompiledPolicy) -> Self {
        let expressions = compiled.expressions().iter();
        let by_field: HashMap<_, _> = expressions.map(|e| (&*e.field_ref, e)).collect();
        let mut programs = Self::default();
        compiled.compile_each(CompileMode::Stored, |outcome, checked, env| {
            let Some(source) = by_field.get(&*outcome.field_ref) else {
                return;
            };
            let program = match (outcome.outcome, checked) {
                (Ok(_), Some(checked)) => {
                    Program::plan(&checked, env, &PlainRuntime).map_err(|error| error.to_string())
                }
                (Ok(_), None) => Err("unexpected compilation error".to_owned()),
                (Err(error), _) => Err(error.message),
            };
            let name = source.name.clone().unwrap_or_default();
            let text = source.text.clone();
            let expression = Expression { text, program };
            match source.role {
                Role::Variable => programs.add_variable(name, expression),
                Role::MatchCondition => programs.match_conditions.push((name, expression)),
                Role::Validation => {
                    programs.validations.push(expression);
                    programs.messages.push(None);
                }
                Role::MessageExpression => {
                    if let Some(message) = programs.messages.last_mut() {
                        *message = Some(expression);
                    }
                }
                Role::AuditAnnotation => programs.audit_annotations.push((name, expression)),
            }
        });
        programs
    }

    fn add_variable(&mut self, name: String, expression: Expression) {
        let variable = Variable { name, expression };
        match self.variables.iter_mut().find(|v| v.name == variable.name) {
            Some(known) => *known = variable,
            None => self.variables.push(variable),
        }
    }

    /// The place of the variable `name`.
    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|v| v.name == name)
    }
}
