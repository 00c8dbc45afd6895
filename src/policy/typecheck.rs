//! Type checking of a compiled policy against the schemas of the kinds that it matches.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`TypeChecker.Check`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::compile::CompiledPolicy;
use super::environment::{Declared, VariableTypes, policy_env, variable_type_upstream};
use super::expressions::{Checked, PolicyExpression, Role, TextLeft};
use super::matching::{self, MatchedResource};
use super::narrowing::{Const, KnownFacts, narrow};
use super::{param_kind, truthful};
use crate::cel::diagnostic::{Code, Diagnostics};
use crate::cel::env::Env;
use crate::cel::syntax::run_on_deep_stack;
use crate::cel::types::{StructType, Type};
use crate::schema::Gvk;
use crate::schema::decl_type::DeclType;
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

/// How much is done for one policy: nodes checked, each for each kind, and bytes of warnings. The kinds that
/// are left then are not checked.
const MAX_WORK: usize = 2_500_000;

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
                let type_ = object_type(&schema, &gvk, profile);
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
        Resolution::Found(schema) => params_type(&schema, gvk, profile),
        Resolution::NotFound | Resolution::Unavailable(_) => Type::Dyn,
    });
    outcome.params = params_kind.map(|gvk| (gvk, params.as_ref() != Some(&Type::Dyn)));

    let matched = matching::resolve(policy.policy(), mapper).resources;
    let mut issues: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    let mut work = 0;
    for (gvk, object) in typed {
        if work > MAX_WORK {
            outcome.unchecked.push(UncheckedKind {
                gvk,
                reason: "the policy is too large to be checked for so many kinds".to_owned(),
                unavailable: false,
            });
            continue;
        }
        let found = run_on_deep_stack(is_deep, || {
            let kind = KindContext {
                policy,
                object: &object,
                params: params.as_ref(),
                facts: known_facts(&gvk, &matched),
                text_left: TextLeft::default(),
            };
            match profile {
                Profile::Upstream => kind.check_as_upstream(),
                Profile::Truthful => kind.check_truthfully(),
            }
        });
        work += policy.n_nodes() + found.iter().map(|(_, text)| text.len()).sum::<usize>();
        for (n, rendered) in found {
            issues
                .entry(n)
                .or_default()
                .push(format!("{gvk}: {rendered}\n"));
        }
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

/// The type of objects of `gvk`: upstream's, or that of the plain JSON over which the API server evaluates,
/// where timestamps, for one, are strings.
fn object_type(schema: &Arc<DeclType>, gvk: &Gvk, profile: Profile) -> Type {
    match profile {
        Profile::Upstream => schema.cel_type(&gvk.type_name()),
        Profile::Truthful => schema.evaluated_type(&gvk.type_name()),
    }
}

/// The type of params of `gvk`. Upstream names it by the clock, as it does the type of objects, so that the
/// two are never the same, not even of one kind.
fn params_type(schema: &Arc<DeclType>, gvk: &Gvk, profile: Profile) -> Type {
    match profile {
        Profile::Upstream => schema.cel_type(&StructType::name_apart(&gvk.type_name())),
        Profile::Truthful => schema.evaluated_type(&gvk.type_name()),
    }
}

/// What is known of requests for objects of `gvk`.
fn known_facts(gvk: &Gvk, matched: &[MatchedResource]) -> KnownFacts {
    let mut paths: Vec<(&'static str, Arc<str>)> = Vec::new();
    let mut know = |path, value: &str| paths.push((path, Arc::from(value)));
    know("object.kind", &gvk.kind);
    know("oldObject.kind", &gvk.kind);
    know("object.apiVersion", &gvk.api_version());
    know("oldObject.apiVersion", &gvk.api_version());
    know("request.kind.group", &gvk.group);
    know("request.kind.version", &gvk.version);
    know("request.kind.kind", &gvk.kind);
    let mut resources = matched.iter().filter(|resource| resource.gvk == *gvk);
    if let (Some(only), None) = (resources.next(), resources.next()) {
        let (resource, subresource) = only
            .gvr
            .resource
            .split_once('/')
            .unwrap_or((&only.gvr.resource, ""));
        know("request.resource.group", &only.gvr.group);
        know("request.resource.version", &only.gvr.version);
        know("request.resource.resource", resource);
        know("request.subResource", subresource);
    }
    KnownFacts {
        paths,
        variables: Vec::new(),
    }
}

/// One kind of object, and the policy that is checked for it.
struct KindContext<'a> {
    policy: &'a CompiledPolicy,
    object: &'a Type,
    params: Option<&'a Type>,
    facts: KnownFacts,
    text_left: TextLeft,
}

/// The index of an expression in its policy, and the text of its findings.
type Found = Vec<(usize, String)>;

impl KindContext<'_> {
    fn env(&self, request_resource: bool) -> Env {
        policy_env(&Declared {
            object: self.object,
            params: self.params,
            authorizer: true,
            request_resource,
        })
    }

    fn expressions(&self) -> impl Iterator<Item = (usize, &PolicyExpression)> {
        self.policy.expressions().iter().enumerate()
    }

    /// Upstream's answer: variables silently, then validations and their messages.
    fn check_as_upstream(&self) -> Found {
        let mut variables = VariableTypes::default();
        let mut env = self.env(false);
        env.set_variable("variables", variables.to_type());
        for (_, variable) in self.expressions().filter(|(_, e)| e.role == Role::Variable) {
            let type_ = match variable.check(&env) {
                Checked::Passed(checked) => variable_type_upstream(&checked.output_type()),
                Checked::Unparsed(_) | Checked::Failed(..) => Type::Dyn,
            };
            // The environment lets go of the variables, so that adding one copies none.
            env.set_variable("variables", Type::Dyn);
            variables.add(variable.name.as_deref().unwrap_or_default(), type_);
            env.set_variable("variables", variables.to_type());
        }
        self.expressions()
            .filter(|(_, e)| matches!(e.role, Role::Validation | Role::MessageExpression))
            .filter_map(|(n, expression)| {
                Some((n, self.findings(expression, &expression.check(&env))?))
            })
            .collect()
    }

    fn findings(&self, expression: &PolicyExpression, checked: &Checked<'_>) -> Option<String> {
        let found = match checked {
            Checked::Unparsed(found) => found,
            Checked::Failed(_, found) => found,
            Checked::Passed(_) => return None,
        };
        Some(self.text_left.render(found, &expression.text))
    }

    /// All expressions; only what is trouble at run time.
    fn check_truthfully(mut self) -> Found {
        let mut env = self.env(true);
        let mut types = VariableTypes::default();
        env.set_variable("variables", types.to_type());
        let mut found = Found::new();
        let mut variables: Vec<(String, Judged)> = Vec::new();
        for (n, variable) in self.policy.expressions().iter().enumerate() {
            if variable.role != Role::Variable {
                continue;
            }
            let name = variable.name.clone().unwrap_or_default();
            let judged = self.judge(n, variable, &env);
            env.set_variable("variables", Type::Dyn);
            types.add(&name, judged.type_.clone());
            env.set_variable("variables", types.to_type());
            self.facts
                .variables
                .push((name.clone(), judged.value.clone()));
            variables.push((name, judged));
        }
        let mut read: Vec<String> = Vec::new();
        // A match condition that is false for the kind hides all else.
        let mut matches = true;
        for (n, condition) in self
            .expressions()
            .filter(|(_, e)| e.role == Role::MatchCondition)
        {
            let judged = self.judge(n, condition, &env);
            matches &= judged.value != Some(Const::Bool(false));
            found.extend(judged.finding);
            read.extend(judged.variables);
        }
        if !matches {
            return Found::new();
        }
        for (n, expression) in self.expressions() {
            if matches!(expression.role, Role::Variable | Role::MatchCondition) {
                continue;
            }
            let judged = self.judge(n, expression, &env);
            found.extend(judged.finding);
            read.extend(judged.variables);
        }
        // Variables are evaluated when something that is reached reads them.
        let mut by_name: HashMap<String, Vec<Judged>> = HashMap::new();
        for (name, judged) in variables {
            by_name.entry(name).or_default().push(judged);
        }
        while let Some(name) = read.pop() {
            for judged in by_name.remove(&name).into_iter().flatten() {
                found.extend(judged.finding);
                read.extend(judged.variables);
            }
        }
        found.sort();
        found
    }

    fn judge(&self, n: usize, expression: &PolicyExpression, env: &Env) -> Judged {
        let (checked, mut found) = match expression.check(env) {
            Checked::Unparsed(found) => {
                let finding = (!is_beyond_us(found))
                    .then(|| (n, self.text_left.render(found, &expression.text)));
                return Judged {
                    finding,
                    type_: Type::Dyn,
                    value: None,
                    variables: Vec::new(),
                };
            }
            Checked::Failed(checked, found) => (checked, found),
            Checked::Passed(checked) => (checked, Diagnostics::default()),
        };
        let is_sound = found.is_empty();
        found.retain(|finding| finding.code != Code::TooComplex);
        let reached = narrow(&checked, &self.facts);
        if self.policy.compiles(n) {
            truthful::keep_true(&mut found, &checked, &reached);
        }
        Judged {
            finding: (!found.is_empty())
                .then(|| (n, self.text_left.render(&found, &expression.text))),
            type_: if is_sound {
                checked.output_type()
            } else {
                Type::Dyn
            },
            value: reached.value,
            variables: reached.variables,
        }
    }
}

/// Whether an expression was given up for its size: that is told by the policy's compilation, and is no
/// warning about types.
fn is_beyond_us(found: &Diagnostics) -> bool {
    found
        .as_slice()
        .iter()
        .any(|finding| finding.code == Code::TooComplex)
}

/// What became of one expression in the truthful profile.
struct Judged {
    finding: Option<(usize, String)>,
    type_: Type,
    value: Option<Const>,
    variables: Vec<String>,
}
