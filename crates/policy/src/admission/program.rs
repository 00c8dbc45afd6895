//! The programs of a policy's expressions. They are planned once and evaluated for each request.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/plugin.go` (`compilePolicy`),
//! `pkg/admission/plugin/cel/compile.go` (`CompileCELExpression`).

use std::collections::HashMap;
use std::sync::Arc;

use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::reads::fields::{FieldRead, Sources};
use crate::reads::{Input, Reads};
use cel::eval::Program;
use kubernetes::version::KubernetesVersion;

#[derive(Debug)]
pub(super) struct Expression {
    /// The index of the expression in the policy.
    pub(super) index: usize,
    pub(super) text: String,
    /// The program, or the API server's compile error.
    pub(super) program: Result<PlannedExpression, String>,
}

#[derive(Debug)]
pub(super) struct PlannedExpression {
    pub(super) program: Arc<Program>,
    pub(super) depth: u32,
    /// The expensive inputs that the expression reads directly. Reads through variables are not included.
    pub(super) inputs: CostlyInputs,
    /// The index of the expression in the policy.
    pub(super) index: usize,
}

/// Flags for the inputs that are expensive to create and that few policies read. A flag is true if the input is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CostlyInputs {
    pub(super) request: bool,
    pub(super) authorizer: bool,
}

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) expression: Expression,
}

#[derive(Debug, Default)]
pub(super) struct Programs {
    pub(super) version: KubernetesVersion,
    /// See [`kubernetes::version::Behavior::reads_go_values`].
    pub(super) reads_go_values: bool,
    /// The variables. If several variables have the same name, only the last one is kept.
    pub(super) variables: Vec<Variable>,
    by_name: HashMap<String, usize>,
    /// The expensive inputs that at least one expression reads.
    pub(super) inputs: CostlyInputs,
    /// The match conditions, with their names.
    pub(super) match_conditions: Vec<(String, Expression)>,
    pub(super) validations: Vec<Expression>,
    /// The message expressions, one element per validation.
    pub(super) messages: Vec<Option<Expression>>,
    pub(super) mutations: Vec<(Role, Expression)>,
    /// The audit annotations, with their keys.
    pub(super) audit_annotations: Vec<(String, Expression)>,
}

/// Maximum number of variables for a linear search by name. With more variables, lookups use `by_name`.
const MAX_SEARCHED: usize = 8;

impl Programs {
    pub(super) fn new(compiled: &CompiledPolicy) -> Self {
        let mut programs = Self {
            version: compiled.version(),
            reads_go_values: compiled.version().behavior().reads_go_values,
            ..Self::default()
        };
        for (n, source) in compiled.expressions().iter().enumerate() {
            let program = match (compiled.program(n), source.parsed()) {
                (Some(program), Ok(ast)) => {
                    let reads = Reads::new(ast);
                    let inputs = CostlyInputs {
                        request: reads.has(&[Input::Request]),
                        authorizer: reads.has(&[Input::Authorizer]),
                    };
                    programs.inputs.request |= inputs.request;
                    programs.inputs.authorizer |= inputs.authorizer;
                    Ok(PlannedExpression {
                        program: Arc::clone(program),
                        depth: ast.depth(),
                        inputs,
                        index: n,
                    })
                }
                _ => Err(compiled
                    .compile_error_of(n)
                    .unwrap_or_else(|| "unexpected compilation error".to_owned())),
            };
            let name = source.name.clone().unwrap_or_default();
            let text = source.text.to_string();
            let expression = Expression {
                index: n,
                text,
                program,
            };
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
                role @ (Role::ApplyConfiguration | Role::JsonPatch) => {
                    programs.mutations.push((role, expression));
                }
            }
        }
        programs
    }

    fn add_variable(&mut self, name: String, expression: Expression) {
        let n = self.variables.len();
        let n = *self.by_name.entry(name.clone()).or_insert(n);
        let variable = Variable { name, expression };
        match self.variables.get_mut(n) {
            Some(known) => *known = variable,
            None => self.variables.push(variable),
        }
    }

    /// Returns the object fields that the expressions read. Expressions that do not compile read nothing, because
    /// they fail.
    pub(super) fn field_reads(&self) -> Vec<FieldRead> {
        let mut sources = Sources::default();
        let mut add = |variable: Option<&str>, expression: &Expression| {
            if expression.program.is_ok() {
                sources.add(variable, &expression.text);
            }
        };
        for variable in &self.variables {
            add(Some(&variable.name), &variable.expression);
        }
        let conditions = self.match_conditions.iter().map(|(_, it)| it);
        let mutations = self.mutations.iter().map(|(_, it)| it);
        let annotations = self.audit_annotations.iter().map(|(_, it)| it);
        let others = conditions
            .chain(&self.validations)
            .chain(self.messages.iter().flatten())
            .chain(mutations)
            .chain(annotations);
        others.for_each(|expression| add(None, expression));
        sources.reads()
    }

    /// Returns the index of the variable `name` in [`Self::variables`].
    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        if self.variables.len() > MAX_SEARCHED {
            return self.by_name.get(name).copied();
        }
        self.variables
            .iter()
            .position(|variable| *variable.name == *name)
    }
}
