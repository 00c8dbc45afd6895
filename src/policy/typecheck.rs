//! Type checking of a compiled policy against the schemas of the kinds that it matches.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`TypeChecker.Check`).

use std::collections::BTreeMap;

use super::compile::CompiledPolicy;
use super::environment::{Declared, VariableTypes, policy_env, variable_type_upstream};
use super::expressions::{Checked, PolicyExpression, Role};
use super::{matching, param_kind};
use crate::cel::env::Env;
use crate::cel::types::Type;
use crate::schema::Gvk;
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::rest_mapper::RestMapper;

/// Which answers the checker gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Those of kube-controller-manager v1.36, quirks included.
    Upstream,
    /// Every expression and every kind, and nothing that the API server would evaluate without error.
    #[default]
    Truthful,
}

/// A warning, in the form of the API's `ExpressionWarning`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The text.
    pub warning: String,
}

/// A kind whose objects could not be checked, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncheckedKind {
    /// The kind.
    pub gvk: Gvk,
    /// Why: no schema published, the schema cannot be read, …
    pub reason: String,
    /// Whether that may change by itself: the schema could not be had now.
    pub unavailable: bool,
}

/// The outcome of type checking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeCheck {
    /// The warnings, in the order of the policy's fields.
    pub warnings: Vec<Warning>,
    /// The kinds that were checked, sorted.
    pub checked: Vec<Gvk>,
    /// The kinds that were not checked.
    pub unchecked: Vec<UncheckedKind>,
    /// The kind of the params with whether its schema was found, where the policy has a paramKind.
    pub params: Option<(Gvk, bool)>,
}

/// The kinds whose schemas [`type_check`] asks for besides that of the params, sorted.
#[must_use]
pub fn kinds_to_check(policy: &CompiledPolicy, mapper: &RestMapper, profile: Profile) -> Vec<Gvk> {
    match profile {
        Profile::Upstream => matching::upstream_kinds(policy.policy(), mapper),
        Profile::Truthful => matching::kinds(policy.policy(), mapper),
    }
}

/// Type-checks `policy` against the kinds that its rules match.
#[must_use]
pub fn type_check(
    policy: &CompiledPolicy,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
    profile: Profile,
) -> TypeCheck {
    let mut outcome = TypeCheck::default();
    let mut typed = Vec::new();
    for gvk in kinds_to_check(policy, mapper, profile) {
        let (reason, unavailable) = match schemas.resolve(&gvk) {
            Resolution::Found(schema) => {
                let type_ = schema.cel_type(&gvk.type_name());
                typed.push((gvk, type_));
                continue;
            }
            Resolution::NotFound => ("no schema is published".to_owned(), false),
            Resolution::Unavailable(reason) => (reason, true),
        };
        outcome.unchecked.push(UncheckedKind {
            gvk,
            reason,
            unavailable,
        });
    }
    let params_kind = param_kind(policy.policy());
    let params = params_kind.as_ref().map(|gvk| match schemas.resolve(gvk) {
        Resolution::Found(schema) => schema.cel_type(&gvk.type_name()),
        Resolution::NotFound | Resolution::Unavailable(_) => Type::Dyn,
    });
    outcome.params = params_kind.map(|gvk| (gvk, params.as_ref() != Some(&Type::Dyn)));

    let mut issues: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (gvk, object) in typed {
        check_kind(policy, &object, params.as_ref(), profile, |n, rendered| {
            issues
                .entry(n)
                .or_default()
                .push(format!("{gvk}: {rendered}\n"));
        });
        outcome.checked.push(gvk);
    }
    outcome.warnings = issues
        .into_iter()
        .filter_map(|(n, texts)| {
            let expression = policy.expressions().get(n)?;
            Some(Warning {
                field_ref: expression.field_ref.clone(),
                warning: texts.join("\n"),
            })
        })
        .collect();
    outcome
}

/// Checks all expressions for objects of the type `object`; `report` gets the index of each that has
/// findings, with their text.
fn check_kind(
    policy: &CompiledPolicy,
    object: &Type,
    params: Option<&Type>,
    profile: Profile,
    mut report: impl FnMut(usize, &str),
) {
    let env = policy_env(&Declared {
        object,
        params,
        authorizer: true,
        request_resource: profile == Profile::Truthful,
    });
    let env = with_variables(policy, &env, profile, &mut report);
    for (n, expression) in policy.expressions().iter().enumerate() {
        let checks = match profile {
            Profile::Upstream => {
                matches!(expression.role, Role::Validation | Role::MessageExpression)
            }
            Profile::Truthful => expression.role != Role::Variable,
        };
        if !checks {
            continue;
        }
        if let Some(rendered) = findings(expression, &expression.check(&env)) {
            report(n, &rendered);
        }
    }
}

/// `env` with `variables`, each compiled in the environment of those before it.
fn with_variables(
    policy: &CompiledPolicy,
    env: &Env,
    profile: Profile,
    report: &mut impl FnMut(usize, &str),
) -> Env {
    let mut variables = VariableTypes::default();
    let mut env = env.clone();
    env.set_variable("variables", variables.to_type());
    for (n, expression) in policy.expressions().iter().enumerate() {
        if expression.role != Role::Variable {
            continue;
        }
        let checked = expression.check(&env);
        let type_ = match &checked {
            Checked::Passed(checked) if profile == Profile::Upstream => {
                variable_type_upstream(&checked.output_type())
            }
            Checked::Passed(checked) => checked.output_type(),
            Checked::Unparsed(_) | Checked::Failed(_) => Type::Dyn,
        };
        if profile == Profile::Truthful
            && let Some(rendered) = findings(expression, &checked)
        {
            report(n, &rendered);
        }
        variables.add(expression.name.as_deref().unwrap_or_default(), type_);
        env.set_variable("variables", variables.to_type());
    }
    env
}

fn findings(expression: &PolicyExpression, checked: &Checked<'_>) -> Option<String> {
    match checked {
        Checked::Unparsed(found) => Some(found.render(&expression.text)),
        Checked::Failed(found) => Some(found.render(&expression.text)),
        Checked::Passed(_) => None,
    }
}
