//! Finds variables that share a name, and variables that no expression reads.

use std::collections::HashMap;

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::consequence::Consequence;
use crate::expressions::Role;
use crate::rule::Rule;

/// Returns the variables that no expression reads, and the variables that have the same name as a later one. The API
/// server accepts both. It evaluates the last of several variables with the same name.
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
                fix: Some("give each variable a unique name".to_owned()),
                is_harmless: false,
            });
        } else if policy.compiles(n) && policy.consequence(n) == Consequence::Unread {
            lints.push(Lint {
                rule: Rule::UnusedVariable,
                field_ref: format!("{own}.name"),
                location: None,
                message: format!(
                    "no expression reads `variables.{name}`, so it is never evaluated"
                ),
                fix: Some("remove the variable, or read it in an expression".to_owned()),
                is_harmless: true,
            });
        }
    }
    lints
}
