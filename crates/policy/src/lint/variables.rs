//! Finds variables that share a name, and variables and params that no expression reads.

use std::collections::HashMap;
use std::sync::Arc;

use cel::ast::Ast;

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::consequence::Consequence;
use crate::expressions::{PolicyExpression, Role};
use crate::param_kind;
use crate::reads::{Input, Reads};
use crate::rule::Rule;

/// Returns the variables that no expression reads, and the variables whose name a later variable also has. The API
/// server accepts both. If several variables have one name, it evaluates the last of them.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/composition.go`, `compositionState.add`.
pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let variables = policy.expressions().iter().enumerate();
    let variables = variables.filter(|(_, expression)| expression.role == Role::Variable);
    let variables: Vec<_> = variables.collect();
    let mut last: HashMap<&str, &str> = HashMap::new();
    for (_, variable) in &variables {
        last.insert(
            variable.name.as_deref().unwrap_or_default(),
            &variable.field_ref,
        );
    }
    let mut lints = Vec::new();
    let field = |field_ref: &str| field_ref.trim_end_matches(".expression").to_owned();
    for (n, variable) in variables {
        let name = variable.name.as_deref().unwrap_or_default();
        let counts = last.get(name).copied().unwrap_or_default();
        let own = field(&variable.field_ref);
        if counts != variable.field_ref {
            lints.push(Lint {
                rule: Rule::DuplicateVariable,
                field_ref: format!("{own}.name"),
                location: None,
                message: format!(
                    "`variables.{name}` always reads {}, which has the same name",
                    field(counts)
                ),
                fix: Some("give each variable a unique name".into()),
                is_harmless: false,
            });
        } else if policy.compiles(n)
            && policy.consequence(n) == Consequence::Unread
            && !may_be_read(policy, name)
        {
            lints.push(Lint {
                rule: Rule::UnusedVariable,
                field_ref: format!("{own}.name"),
                location: None,
                message: format!(
                    "no expression reads `variables.{name}`, so it is never evaluated"
                ),
                fix: Some("remove the variable, or read it in an expression".into()),
                is_harmless: true,
            });
        }
    }
    lints.extend(unused_params(policy));
    lints
}

/// Returns true if an expression that cannot be parsed contains the word `name`.
fn may_be_read(policy: &CompiledPolicy, name: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    policy.expressions().iter().any(|expression| {
        let mut words = expression.text.split(|c| !is_of_word(c));
        expression.parsed().is_err() && words.any(|word| word == name)
    })
}

/// Returns a lint if no expression reads the params of the paramKind.
fn unused_params(policy: &CompiledPolicy) -> Option<Lint> {
    param_kind(policy.policy())?;
    let expressions = policy.expressions();
    let reads_params = |expression: &PolicyExpression| {
        // An expression that cannot be parsed may be intended to read the params.
        let reads = |ast: &Arc<Ast>| Reads::new(ast).has(&[Input::Params]);
        expression.parsed().map_or(true, reads)
    };
    let is_unused = !expressions.is_empty() && !expressions.iter().any(reads_params);
    is_unused.then(|| Lint {
        rule: Rule::UnusedParams,
        field_ref: "spec.paramKind.kind".to_owned(),
        location: None,
        message:
            "no expression reads `params`, but the policy needs the param objects of its bindings"
                .to_owned(),
        fix: Some("remove the paramKind, and the paramRef of each binding".into()),
        is_harmless: true,
    })
}
