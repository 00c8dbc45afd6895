//! Checks expressions without types. Used for expressions that do not compile with the types of a kind.

use std::collections::HashMap;
use std::rc::Rc;

use crate::compile::CompiledPolicy;
use crate::environment::{Declared, policy_env};
use crate::expressions::{ExpressionCheck, PolicyExpression};
use cel::checker::CheckedAst;
use cel::env::Env;
use cel::types::Type;

/// Maximum number of matched kinds for which undefined fields are accepted, because the expressions may have a branch
/// for each kind. Policies with wildcards match more kinds.
const MAX_BRANCH_KINDS: usize = 16;

/// Checks a policy's expressions in an environment in which all variables have the type `dyn`. The results do not
/// depend on the kind.
pub(super) struct UntypedChecks {
    env: Env,
    /// If true, an expression that reads an undefined field is also checked without types.
    pub(super) accepts_undefined_fields: bool,
    /// The results by the index of the expression.
    checks: HashMap<usize, Option<Rc<CheckedAst>>>,
}

impl UntypedChecks {
    /// Creates the checks of a policy that matches `n_kinds` kinds.
    pub(super) fn new(policy: &CompiledPolicy, n_kinds: usize) -> Self {
        let mut env = cost_env(policy, &Type::Dyn, &Type::Dyn);
        env.set_variable("variables", Type::Dyn);
        Self {
            env,
            accepts_undefined_fields: n_kinds <= MAX_BRANCH_KINDS,
            checks: HashMap::new(),
        }
    }

    pub(super) fn check(
        &mut self,
        (expression, n): (&PolicyExpression, usize),
    ) -> Option<Rc<CheckedAst>> {
        let check = self.checks.entry(n);
        let check = check.or_insert_with(|| match expression.check(&self.env) {
            ExpressionCheck::Passed(checked) => Some(Rc::new(checked)),
            ExpressionCheck::Unparsed(_) | ExpressionCheck::Failed(..) => None,
        });
        check.clone()
    }
}

/// Returns the environment of the policy's expressions for these types.
pub(super) fn cost_env(policy: &CompiledPolicy, object: &Type, params: &Type) -> Env {
    let has_params = crate::param_kind(policy.policy()).is_some();
    policy_env(&Declared {
        release: policy.version().release(),
        object,
        params: has_params.then_some(params),
        authorizer: true,
        request_resource: true,
        mutation: policy.is_mutating(),
    })
}
