//! Computes the findings of upstream's type checker, for the `upstream` profile.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`TypeChecker.Check`,
//! `TypeChecker.CheckExpression`).

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::diagnostic::Diagnostics;
use cel::env::Env;
use cel::types::Type;
use kubernetes::schema::Gvk;

use super::{TypeCheck, UncheckedKind};
use crate::compile::CompiledPolicy;
use crate::environment::{Declared, VariableTypes, policy_env, variable_type_upstream};
use crate::expressions::{ExpressionCheck, OutputBudget, PolicyExpression, Role, Words};
use crate::finding::{ExpressionFindings, KindFindings};

/// Maximum number of nodes to check for one policy. A node counts once per kind. Kinds beyond the maximum are not
/// checked.
const MAX_WORK: usize = 2_500_000;

/// Checks `policy` for each kind in `typed`, and stores the results in `outcome`.
pub(super) fn check(
    policy: &CompiledPolicy,
    params: Option<&Type>,
    typed: Vec<(Gvk, Type)>,
    outcome: &mut TypeCheck,
) {
    let mut by_expression: BTreeMap<usize, Vec<KindFindings>> = BTreeMap::new();
    let mut work = 0;
    let text_left = OutputBudget::upstream();
    for (gvk, object) in typed {
        if work > MAX_WORK || text_left.is_used_up() {
            outcome.unchecked.push(UncheckedKind {
                gvk,
                reason: "the policy is too large to be checked for so many kinds".to_owned(),
                unavailable: false,
            });
            continue;
        }
        work += policy.n_nodes();
        let kind = KindContext {
            policy,
            object: &object,
            params,
        };
        for (n, errors) in kind.check(&text_left) {
            by_expression.entry(n).or_default().push(KindFindings {
                gvk: gvk.clone(),
                errors,
                warnings: Diagnostics::default(),
                repeats_locations: false,
            });
        }
        outcome.checked.push(gvk);
    }
    outcome.findings = by_expression
        .into_iter()
        .filter_map(|(n, kinds)| {
            let expression = policy.expressions().get(n)?;
            Some(ExpressionFindings {
                index: n,
                field_ref: expression.field_ref.clone(),
                text: Arc::clone(&expression.text),
                consequence: policy.consequence(n),
                kinds,
                notes: Vec::new(),
            })
        })
        .collect();
}

/// The inputs of upstream's type checker for one kind.
pub(super) struct KindContext<'a> {
    pub(super) policy: &'a CompiledPolicy,
    pub(super) object: &'a Type,
    pub(super) params: Option<&'a Type>,
}

impl<'a> KindContext<'a> {
    fn env(&self) -> Env {
        policy_env(&Declared {
            release: self.policy.version().release(),
            object: self.object,
            params: self.params,
            authorizer: true,
            request_resource: false,
            mutation: false,
        })
    }

    fn expressions(&self) -> impl Iterator<Item = (usize, &'a PolicyExpression)> + use<'a> {
        self.policy.expressions().iter().enumerate()
    }

    /// Returns the findings of each expression that has findings, with the index of the expression.
    fn check<'t>(
        &self,
        text_left: &'t OutputBudget,
    ) -> impl Iterator<Item = (usize, Diagnostics)> + use<'a, 't> {
        let findings =
            move |(n, expression, checked): (usize, &PolicyExpression, ExpressionCheck<'_>)| {
                Some((n, findings(expression, checked, text_left)?))
            };
        self.check_all().into_iter().filter_map(findings)
    }

    /// Checks the variables, and then the validations and their messages. Upstream drops the findings of variables.
    pub(super) fn check_all(&self) -> Vec<(usize, &'a PolicyExpression, ExpressionCheck<'a>)> {
        let mut variables = VariableTypes::default();
        let mut env = self.env();
        env.set_variable("variables", variables.to_type());
        for (_, variable) in self.expressions().filter(|(_, e)| e.role == Role::Variable) {
            let type_ = match variable.check(&env) {
                ExpressionCheck::Passed(checked) => variable_type_upstream(&checked.output_type()),
                ExpressionCheck::Unparsed(_) | ExpressionCheck::Failed(..) => Type::Dyn,
            };
            // Releases the environment's reference to the variables, so that `add` does not copy them.
            env.set_variable("variables", Type::Dyn);
            variables.add(variable.name.as_deref().unwrap_or_default(), type_);
            env.set_variable("variables", variables.to_type());
        }
        self.expressions()
            .filter(|(_, e)| matches!(e.role, Role::Validation | Role::MessageExpression))
            .map(|(n, expression)| (n, expression, expression.check(&env)))
            .collect()
    }
}

/// Returns upstream's findings for the expression. `None` if there are none.
fn findings(
    expression: &PolicyExpression,
    checked: ExpressionCheck<'_>,
    text_left: &OutputBudget,
) -> Option<Diagnostics> {
    let mut diagnostics = match checked {
        ExpressionCheck::Unparsed(diagnostics) => {
            expression.in_words(diagnostics, Words::Upstream).clone()
        }
        ExpressionCheck::Failed(_, diagnostics) => diagnostics,
        ExpressionCheck::Passed(_) => return None,
    };
    text_left.cut(&mut diagnostics, &expression.text);
    Some(diagnostics)
}
