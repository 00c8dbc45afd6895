//! The names that an expression of a policy can use, with their types. The language server needs them.
//!
//! The environment is that of the API server's type checker, except that each variable has the type of its expression.
//! The result does not depend on the expression itself, which may have syntax errors.

use cel::env::Env;
use cel::types::Type;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::rest_mapper::RestMapper;

use crate::analysis::{Profile, object_type};
use crate::compile::CompiledPolicy;
use crate::environment::{Declared, VariableTypes, policy_env};
use crate::expressions::{ExpressionCheck, PolicyExpression, Role};
use crate::matching::{self, Kinds};
use crate::param_kind;

/// Maximum number of kinds for which environments are returned.
const MAX_KINDS: usize = 8;

/// Maximum number of matched kinds whose schemas are looked up.
const MAX_SEARCHED: usize = 4 * MAX_KINDS;

/// The environment of an expression for the objects of one kind.
#[derive(Debug)]
pub struct KindScope {
    /// The kind of the objects. `None` if no matched kind has a schema.
    pub gvk: Option<Gvk>,
    /// The environment, which declares `variables`.
    pub env: Env,
}

/// Returns the environments of the expression with the index `n`, one for each matched kind. Kinds that rules match by
/// name come first. The result is never empty.
#[must_use]
pub fn scopes(
    policy: &CompiledPolicy,
    n: usize,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
) -> Vec<KindScope> {
    let resolved = |gvk: &Gvk| match schemas.resolve(gvk) {
        Resolution::Found(schema) => Some(object_type(&schema, gvk, Profile::Truthful)),
        Resolution::NotFound | Resolution::Unavailable(_) => None,
    };
    let params = param_kind(policy.policy()).map(|gvk| resolved(&gvk).unwrap_or(Type::Dyn));
    let mut scopes = Vec::new();
    let kinds = Kinds::new(&matching::targets(policy.policy(), mapper));
    let kinds = kinds.named.into_iter().chain(kinds.by_wildcard);
    for gvk in kinds.take(MAX_SEARCHED) {
        if scopes.len() == MAX_KINDS {
            break;
        }
        let Some(object) = resolved(&gvk) else {
            continue;
        };
        scopes.push(KindScope {
            env: env(policy, n, &object, params.as_ref()),
            gvk: Some(gvk),
        });
    }
    if scopes.is_empty() {
        scopes.push(KindScope {
            gvk: None,
            env: env(policy, n, &Type::Dyn, params.as_ref()),
        });
    }
    scopes
}

/// Returns the environment of the expression with the index `n`. A variable can read the preceding variables. A match
/// condition cannot read variables.
fn env(policy: &CompiledPolicy, n: usize, object: &Type, params: Option<&Type>) -> Env {
    let mut env = policy_env(&Declared {
        release: policy.version().release(),
        object,
        params,
        authorizer: true,
        request_resource: true,
        mutation: policy.is_mutating(),
    });
    let role = policy
        .expressions()
        .get(n)
        .map(|expression| expression.role);
    if role == Some(Role::MatchCondition) {
        return env;
    }
    let mut variables = VariableTypes::default();
    let is_before = |(m, expression): &(usize, &PolicyExpression)| {
        expression.role == Role::Variable && (role != Some(Role::Variable) || *m < n)
    };
    let all = policy.expressions().iter().enumerate().filter(is_before);
    for (_, variable) in all {
        env.set_variable("variables", variables.to_type());
        let type_ = match variable.check(&env) {
            ExpressionCheck::Passed(checked) => checked.output_type(),
            ExpressionCheck::Unparsed(_) | ExpressionCheck::Failed(..) => Type::Dyn,
        };
        // Releases the environment's reference to the variables, so that `add` does not copy them.
        env.set_variable("variables", Type::Dyn);
        variables.add(variable.name.as_deref().unwrap_or_default(), type_);
    }
    env.set_variable("variables", variables.to_type());
    env
}
