//! Type checking of a compiled policy against the schemas of the kinds that it matches.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`TypeChecker.Check`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::compile::CompiledPolicy;
use super::environment::{Declared, VariableTypes, policy_env, variable_type_upstream};
use super::expressions::{Checked, PolicyExpression, Role, TextLeft, Words};
use super::matching::{self, Target};
use super::param_kind;
use super::truthful::{self, Judge};
use super::verdicts::{Scope, Verdicts};
use cel::env::Env;
use cel::stack::run_on_deep_stack;
use cel::types::{StructType, Type};
use kubernetes::schema::Gvk;
use kubernetes::schema::decl_type::DeclType;
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::rest_mapper::RestMapper;

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
    /// The kinds that rules match by name and that were checked, sorted.
    pub checked: Vec<Gvk>,
    /// The kinds that rules match by name and that were not checked.
    pub unchecked: Vec<UncheckedKind>,
    /// The kinds that rules match by wildcards only.
    pub by_wildcard: WildcardKinds,
    /// Those of the checked kinds that rules match as subresources, sorted.
    pub subresource_kinds: Vec<Gvk>,
    /// The kind of the params with whether its schema was found, where the policy has a paramKind.
    pub params: Option<(Gvk, bool)>,
}

/// What became of the kinds that rules match by wildcards only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WildcardKinds {
    /// The kinds that were checked, sorted.
    pub checked: Vec<Gvk>,
    /// The kinds that were not checked.
    pub unchecked: Vec<UncheckedKind>,
}

/// How many nodes are checked for one policy in the upstream profile, each for each kind. The kinds that are left
/// then are not checked.
const MAX_WORK: usize = 2_500_000;

/// Why a kind of a wildcard was not checked where there are more than are checked for one policy.
pub const BEYOND: &str = "more kinds than are checked for one policy";

/// The most kinds of wildcards that have no schema, or are more than are checked, and are taken for open.
const MAX_UNSEEN_KINDS: usize = 1000;

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
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        type_check_here(policy, mapper, schemas, profile)
    })
}

fn type_check_here(
    policy: &CompiledPolicy,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
    profile: Profile,
) -> TypeCheck {
    let mut outcome = TypeCheck::default();
    let params_kind = param_kind(policy.policy());
    let params = params_kind.as_ref().map(|gvk| match schemas.resolve(gvk) {
        Resolution::Found(schema) => params_type(&schema, gvk, profile),
        Resolution::NotFound | Resolution::Unavailable(_) => Type::Dyn,
    });
    outcome.params = params_kind.map(|gvk| (gvk, params.as_ref() != Some(&Type::Dyn)));
    match profile {
        Profile::Upstream => {
            let (typed, unchecked) = resolve(
                matching::upstream_kinds(policy.policy(), mapper),
                schemas,
                profile,
            );
            outcome.unchecked = unchecked;
            check_as_upstream(policy, params.as_ref(), typed, &mut outcome);
        }
        Profile::Truthful => {
            check_truthfully(policy, params.as_ref(), mapper, schemas, &mut outcome);
        }
    }
    outcome
}

/// The types of the kinds that have one, and the others.
fn resolve(
    kinds: Vec<Gvk>,
    schemas: &dyn SchemaResolver,
    profile: Profile,
) -> (Vec<(Gvk, Type)>, Vec<UncheckedKind>) {
    let mut typed = Vec::new();
    let mut unchecked = Vec::new();
    for gvk in kinds {
        let (reason, unavailable) = match schemas.resolve(&gvk) {
            Resolution::Found(schema) => {
                let type_ = object_type(&schema, &gvk, profile);
                typed.push((gvk, type_));
                continue;
            }
            Resolution::NotFound => ("no schema is published".to_owned(), false),
            Resolution::Unavailable(reason) => (reason, true),
        };
        unchecked.push(UncheckedKind {
            gvk,
            reason,
            unavailable,
        });
    }
    (typed, unchecked)
}

fn check_as_upstream(
    policy: &CompiledPolicy,
    params: Option<&Type>,
    typed: Vec<(Gvk, Type)>,
    outcome: &mut TypeCheck,
) {
    let mut issues: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut work = 0;
    let text_left = TextLeft::of_upstream();
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
        for (n, rendered) in kind.check(&text_left) {
            issues
                .entry(n)
                .or_default()
                .push(format!("{gvk}: {rendered}\n"));
        }
        outcome.checked.push(gvk);
    }
    outcome.warnings = warnings(policy, issues);
}

/// The warnings of the texts for each expression, by its index.
fn warnings(policy: &CompiledPolicy, texts: BTreeMap<usize, Vec<String>>) -> Vec<Warning> {
    texts
        .into_iter()
        .filter_map(|(n, texts)| {
            let expression = policy.expressions().get(n)?;
            Some(Warning {
                field_ref: expression.field_ref.clone(),
                warning: texts.join("\n"),
            })
        })
        .collect()
}

fn check_truthfully(
    policy: &CompiledPolicy,
    params: Option<&Type>,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
    outcome: &mut TypeCheck,
) {
    let targets = matching::targets(policy.policy(), mapper);
    let (by_wildcard, too_many) = matching::wildcard_kinds(&targets);
    let mut of_kinds: HashMap<&Gvk, Vec<&Target<'_>>> = HashMap::new();
    for target in &targets {
        let of_kind = of_kinds.entry(&target.resource.gvk).or_default();
        of_kind.push(target);
    }
    let of_kind = |gvk: &Gvk| of_kinds.get(gvk).map(Vec::as_slice).unwrap_or_default();
    let mut judge = Judge::new(policy, params);
    let mut verdicts = Verdicts::default();
    let mut metadata: Option<Type> = None;
    let mut run = |kinds: Vec<Gvk>, is_wildcard: bool| {
        let (typed, mut unchecked) = resolve(kinds, schemas, Profile::Truthful);
        let mut checked = Vec::new();
        for (gvk, object) in typed {
            if metadata.is_none() {
                metadata = truthful::metadata_type(&object);
            }
            if judge.is_exhausted() {
                unchecked.push(UncheckedKind {
                    gvk,
                    reason: "the policy is too large to be followed for all kinds".to_owned(),
                    unavailable: false,
                });
                continue;
            }
            let judged = judge.judge(&gvk, &object, of_kind(&gvk));
            verdicts.add(gvk.clone(), is_wildcard, judged);
            checked.push(gvk);
        }
        (checked, unchecked)
    };
    (outcome.checked, outcome.unchecked) = run(matching::named_kinds(&targets), false);
    (outcome.by_wildcard.checked, outcome.by_wildcard.unchecked) = run(by_wildcard, true);
    outcome
        .by_wildcard
        .unchecked
        .extend(too_many.into_iter().map(|gvk| UncheckedKind {
            gvk,
            reason: BEYOND.to_owned(),
            unavailable: false,
        }));
    let unseen = &outcome.by_wildcard.unchecked;
    let is_complete = outcome.unchecked.is_empty() && unseen.is_empty();
    // Kinds that could not be looked at have their say all the same: for what is open, anything goes.
    let object = truthful::unseen_type(metadata);
    for unchecked in unseen {
        if unseen.len() > MAX_UNSEEN_KINDS || judge.is_exhausted() {
            break;
        }
        let mut judged = judge.judge(&unchecked.gvk, &object, of_kind(&unchecked.gvk));
        verdicts.add_sound(&mut judged);
    }
    let scope = if is_complete {
        Scope::Checked
    } else if unseen.len() <= MAX_UNSEEN_KINDS && !judge.is_exhausted() {
        Scope::Named
    } else {
        Scope::Partial
    };
    let of_subresource = |gvk: &&Gvk| {
        let mut targets = of_kind(gvk).iter();
        targets.any(|target| target.resource.gvr.is_subresource())
    };
    let checked = outcome.checked.iter();
    outcome.subresource_kinds = checked.filter(of_subresource).cloned().collect();
    outcome.warnings = warnings(policy, verdicts.into_texts(policy, scope));
}

/// The type of objects of `gvk`: upstream's, or that of the plain JSON over which the API server evaluates,
/// where timestamps, for one, are strings.
pub(super) fn object_type(schema: &Arc<DeclType>, gvk: &Gvk, profile: Profile) -> Type {
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

/// One kind of object, and the policy that is checked for it as upstream checks it.
pub(super) struct KindContext<'a> {
    pub(super) policy: &'a CompiledPolicy,
    pub(super) object: &'a Type,
    pub(super) params: Option<&'a Type>,
}

impl<'a> KindContext<'a> {
    fn env(&self) -> Env {
        policy_env(&Declared {
            object: self.object,
            params: self.params,
            authorizer: true,
            request_resource: false,
        })
    }

    fn expressions(&self) -> impl Iterator<Item = (usize, &'a PolicyExpression)> + use<'a> {
        self.policy.expressions().iter().enumerate()
    }

    /// The index of each expression in error, with the text.
    fn check<'t>(
        &self,
        text_left: &'t TextLeft,
    ) -> impl Iterator<Item = (usize, String)> + use<'a, 't> {
        let findings = move |(n, expression, checked): (usize, &PolicyExpression, Checked<'_>)| {
            Some((n, findings(expression, &checked, text_left)?))
        };
        self.check_all().into_iter().filter_map(findings)
    }

    /// Upstream's answer: variables silently, then validations and their messages.
    pub(super) fn check_all(&self) -> Vec<(usize, &'a PolicyExpression, Checked<'a>)> {
        let mut variables = VariableTypes::default();
        let mut env = self.env();
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
            .map(|(n, expression)| (n, expression, expression.check(&env)))
            .collect()
    }
}

/// What upstream says of the expression.
fn findings(
    expression: &PolicyExpression,
    checked: &Checked<'_>,
    text_left: &TextLeft,
) -> Option<String> {
    let found = match checked {
        Checked::Unparsed(found) => expression.in_words(found, Words::Upstream),
        Checked::Failed(_, found) => found,
        Checked::Passed(_) => return None,
    };
    Some(text_left.render(found, &expression.text))
}
