//! Type analysis of a compiled policy: finds the expressions that fail, and the kinds for which they fail.
//!
//! The modules, in the order of use:
//!
//! - `requests`: groups the requests for a kind into classes by operation and resource. Each class has constant values
//!   for some inputs.
//! - `interpret`: the abstract interpreter, which interprets one expression for one request class.
//! - `driver`: interprets all expressions for one kind, in the API server's order. `memo` reuses the result for
//!   equivalent kinds.
//! - `report`: merges the results of all kinds into the findings of the policy.
//!
//! For the `upstream` profile, `upstream` runs upstream's type checker instead. [`differences`] explains the findings
//! that only upstream's type checker reports.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`TypeChecker.Check`).

pub mod differences;
mod driver;
mod interpret;
mod memo;
mod report;
mod requests;
mod upstream;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use crate::finding::ExpressionFindings;
use crate::matching::{self, Kinds, RuleMatches, Target};
use crate::param_kind;
use cel::ast::ExprId;
use cel::source::Location;
use cel::stack::run_on_deep_stack;
use cel::types::{StructType, Type};
use driver::Driver;
pub(crate) use interpret::constants::{ConstantResult, evaluate_closed};
use kubernetes::schema::Gvk;
use kubernetes::schema::decl_type::DeclType;
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::rest_mapper::RestMapper;
use memo::Memo;
use report::{Report, Scope};

/// Selects a type checker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The type checker of kube-controller-manager v1.36, including its quirks.
    Upstream,
    /// The type analysis of this crate. It checks all expressions and kinds, and reports only expressions that fail for
    /// some request. Used for everything except comparisons with the statuses that kube-controller-manager writes.
    #[default]
    Truthful,
}

/// A kind that was not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncheckedKind {
    /// The kind.
    pub gvk: Gvk,
    /// The reason, such as `no schema is published`.
    pub reason: String,
    /// True if the reason is temporary. A retry may then succeed.
    pub unavailable: bool,
}

/// The result of type-checking a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeCheck {
    /// The expressions with findings, in the order of the policy's fields.
    pub findings: Vec<ExpressionFindings>,
    /// The checked kinds that rules match by name, sorted.
    pub checked: Vec<Gvk>,
    /// The unchecked kinds that rules match by name.
    pub unchecked: Vec<UncheckedKind>,
    /// The kinds that rules match only by a wildcard.
    pub by_wildcard: WildcardKinds,
    /// The checked kinds of subresources, sorted.
    pub subresource_kinds: Vec<Gvk>,
    /// Comparisons whose operands are never equal, because their types differ for all kinds.
    pub incomparable: Vec<IncomparableTypes>,
    /// Calls of `or` and `orValue` whose receiver is not an optional for any kind.
    pub non_optional: Vec<NonOptionalReceiver>,
    /// The indices of the match conditions and validations that are false for all matched requests.
    pub always_false: Vec<usize>,
    /// The expressions that fail for only some of the kinds that rules match by a wildcard. They are in the order of
    /// the policy's fields.
    pub partial: Vec<PartialFailure>,
    /// The kind of the params, and true if the schema of the kind was found. `None` if the policy has no paramKind.
    pub params: Option<(Gvk, bool)>,
}

/// A comparison of values with incomparable types. It does not fail, but always has the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomparableTypes {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The location of the comparison in the expression.
    pub location: Location,
    /// The reason why the result is always the same.
    pub message: String,
    /// The types of the operands, such as `number` and `string`. The second operand of `in` has the type of the list's
    /// elements.
    pub operands: [&'static str; 2],
}

/// A call of `or` or `orValue` whose receiver is not an optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonOptionalReceiver {
    /// The index of the expression in the policy.
    pub index: usize,
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The call in the parsed expression.
    pub call: ExprId,
    /// The location of the call in the expression.
    pub location: Location,
    /// True if the call fails. False if it returns the receiver.
    pub fails: bool,
}

/// An expression that fails for only some of the kinds that rules match by a wildcard. Its failing subexpression
/// evaluates without an error for other kinds that the wildcard matches.
///
/// This is not a type checking warning, because bindings or selectors may exclude the kinds for which the expression
/// fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialFailure {
    /// The index of the expression in the policy.
    pub index: usize,
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The location of the failure. If the location differs between kinds, this is the location that most kinds share.
    pub location: Location,
    /// The error at this location.
    pub message: String,
    /// Some of the kinds for which the expression fails at this location. Common kinds come first.
    pub kinds: Vec<Gvk>,
    /// The number of kinds for which the expression fails, at any location.
    pub n_failing: usize,
    /// The number of checked kinds that wildcards match.
    pub n_all: usize,
}

/// The kinds that rules match only by a wildcard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WildcardKinds {
    /// The checked kinds, sorted.
    pub checked: Vec<Gvk>,
    /// The unchecked kinds.
    pub unchecked: Vec<UncheckedKind>,
}

/// The [`UncheckedKind::reason`] of a kind that a wildcard matches, if the policy matches too many kinds.
pub const BEYOND: &str = "more kinds than are checked for one policy";

/// Maximum number of kinds that are analyzed as objects with unknown fields. These are kinds matched by wildcards that
/// have no schema, or that exceed the maximum number of checked kinds.
const MAX_SCHEMALESS_KINDS: usize = 1000;

/// Returns the kinds whose schemas [`type_check`] needs, sorted. The kind of the params is not included.
#[must_use]
pub fn kinds_to_check(policy: &CompiledPolicy, mapper: &RestMapper, profile: Profile) -> Vec<Gvk> {
    match profile {
        Profile::Upstream => matching::upstream_kinds(policy.policy(), mapper),
        Profile::Truthful => matching::kinds(policy.policy(), mapper),
    }
}

/// Type-checks `policy` for the kinds that its rules match.
#[must_use]
pub fn type_check(
    policy: &CompiledPolicy,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
    profile: Profile,
) -> TypeCheck {
    type_check_here(policy, RuleSource::Unmatched(mapper), schemas, profile)
}

/// Type-checks a policy whose rules were already matched.
#[must_use]
pub fn type_check_matched(
    policy: &CompiledPolicy,
    matches: &RuleMatches,
    schemas: &dyn SchemaResolver,
    profile: Profile,
) -> TypeCheck {
    type_check_here(policy, RuleSource::Matched(matches), schemas, profile)
}

/// The source of the matched resources.
#[derive(Clone, Copy)]
enum RuleSource<'a> {
    /// The result of an earlier match.
    Matched(&'a RuleMatches),
    /// The served resources. The rules have not been matched with them yet.
    Unmatched(&'a RestMapper),
}

impl<'a> RuleSource<'a> {
    fn mapper(self) -> &'a RestMapper {
        match self {
            Self::Matched(matches) => matches.mapper(),
            Self::Unmatched(mapper) => mapper,
        }
    }

    fn targets(self, policy: &CompiledPolicy) -> (Vec<Target<'a>>, Cow<'a, Kinds>) {
        match self {
            Self::Matched(matches) => (matches.targets(), Cow::Borrowed(matches.kinds_by_role())),
            Self::Unmatched(mapper) => {
                let targets = matching::targets(policy.policy(), mapper);
                let kinds = Kinds::new(&targets);
                (targets, Cow::Owned(kinds))
            }
        }
    }
}

fn type_check_here(
    policy: &CompiledPolicy,
    matched: RuleSource<'_>,
    schemas: &dyn SchemaResolver,
    profile: Profile,
) -> TypeCheck {
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || check(policy, matched, schemas, profile))
}

fn check(
    policy: &CompiledPolicy,
    matched: RuleSource<'_>,
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
            let kinds = matching::upstream_kinds(policy.policy(), matched.mapper());
            let (resolved, unchecked) = resolve(&kinds, schemas);
            outcome.unchecked = unchecked;
            let typed = resolved.into_iter().map(|(gvk, schema)| {
                let type_ = object_type(&schema, &gvk, profile);
                (gvk, type_)
            });
            let typed = typed.collect();
            let behavior = policy.version().behavior();
            let is_declared =
                |params: &&Type| behavior.declares_untyped_params || **params != Type::Dyn;
            let params = params.as_ref().filter(is_declared);
            upstream::check(policy, params, typed, &mut outcome);
        }
        Profile::Truthful => {
            let memo = Memo::new(policy, params.as_ref());
            check_truthfully(
                policy,
                params.as_ref(),
                matched,
                schemas,
                memo,
                &mut outcome,
            );
        }
    }
    outcome
}

/// Splits `kinds` into those with a schema and the others.
fn resolve(
    kinds: &[Gvk],
    schemas: &dyn SchemaResolver,
) -> (Vec<(Gvk, Arc<DeclType>)>, Vec<UncheckedKind>) {
    let mut resolved = Vec::new();
    let mut unchecked = Vec::new();
    for gvk in kinds {
        let (reason, unavailable) = match schemas.resolve(gvk) {
            Resolution::Found(schema) => {
                resolved.push((gvk.clone(), schema));
                continue;
            }
            Resolution::NotFound => ("no schema is published".to_owned(), false),
            Resolution::Unavailable(reason) => (reason, true),
        };
        unchecked.push(UncheckedKind {
            gvk: gvk.clone(),
            reason,
            unavailable,
        });
    }
    (resolved, unchecked)
}

fn check_truthfully(
    policy: &CompiledPolicy,
    params: Option<&Type>,
    matched: RuleSource<'_>,
    schemas: &dyn SchemaResolver,
    mut memo: Memo<'_>,
    outcome: &mut TypeCheck,
) {
    let (targets, kinds) = matched.targets(policy);
    let mut of_kinds: HashMap<&Gvk, Vec<&Target<'_>>> = HashMap::new();
    for target in &targets {
        let of_kind = of_kinds.entry(&target.resource.gvk).or_default();
        of_kind.push(target);
    }
    let of_kind = |gvk: &Gvk| of_kinds.get(gvk).map(Vec::as_slice).unwrap_or_default();
    let mut driver = Driver::new(policy, params);
    let mut report = Report::default();
    let mut metadata: Option<Type> = None;
    let mut run = |kinds: &[Gvk], is_wildcard: bool| {
        let (resolved, mut unchecked) = resolve(kinds, schemas);
        let mut checked = Vec::new();
        memo.forget();
        for (gvk, schema) in &resolved {
            if metadata.is_none() {
                metadata = requests::metadata_type(&object_type(schema, gvk, Profile::Truthful));
            }
            if driver.is_exhausted() {
                unchecked.push(UncheckedKind {
                    gvk: gvk.clone(),
                    reason: "the policy is too large to be analyzed for all kinds".to_owned(),
                    unavailable: false,
                });
                continue;
            }
            let analysis = memo.analyze(&mut driver, gvk, schema, of_kind(gvk));
            report.add(gvk.clone(), is_wildcard, analysis);
            checked.push(gvk.clone());
        }
        (checked, unchecked)
    };
    (outcome.checked, outcome.unchecked) = run(&kinds.named, false);
    (outcome.by_wildcard.checked, outcome.by_wildcard.unchecked) = run(&kinds.by_wildcard, true);
    let beyond = kinds.beyond.iter().map(|gvk| UncheckedKind {
        gvk: gvk.clone(),
        reason: BEYOND.to_owned(),
        unavailable: false,
    });
    outcome.by_wildcard.unchecked.extend(beyond);
    let unchecked_kinds = &outcome.by_wildcard.unchecked;
    let is_complete = outcome.unchecked.is_empty() && unchecked_kinds.is_empty();
    // A kind without a schema has unknown fields, so an expression that seems to fail for it might not fail. Only
    // successful evaluations are recorded.
    let object = requests::schemaless_type(metadata);
    for unchecked in unchecked_kinds {
        if unchecked_kinds.len() > MAX_SCHEMALESS_KINDS || driver.is_exhausted() {
            break;
        }
        let gvk = &unchecked.gvk;
        let mut analysis = memo.analyze_schemaless(&mut driver, gvk, &object, of_kind(gvk));
        report.add_succeeding(&mut analysis);
    }
    let scope = if is_complete {
        Scope::Checked
    } else if unchecked_kinds.len() <= MAX_SCHEMALESS_KINDS && !driver.is_exhausted() {
        Scope::NamesOnly
    } else {
        Scope::Partial
    };
    // Requests contain no optionals, so the receivers of `or` and `orValue` do not depend on a schema.
    for unchecked in &outcome.unchecked {
        if driver.is_exhausted() {
            break;
        }
        let gvk = &unchecked.gvk;
        let mut analysis = memo.analyze_schemaless(&mut driver, gvk, &object, of_kind(gvk));
        report.add_receivers(&mut analysis);
    }
    let of_subresource = |gvk: &&Gvk| {
        let mut targets = of_kind(gvk).iter();
        targets.any(|target| target.resource.gvr.is_subresource())
    };
    let checked = outcome.checked.iter();
    outcome.subresource_kinds = checked.filter(of_subresource).cloned().collect();
    outcome.incomparable = report.incomparable(policy, scope);
    outcome.non_optional = report.non_optional(policy, scope, driver.requires_optional());
    outcome.always_false = report.always_false(policy, scope);
    outcome.partial = report.partial(policy);
    outcome.findings = report.into_findings(policy, scope);
}

/// Returns the type of objects of `gvk`. For the truthful profile, this is the type of the JSON that the API server
/// evaluates. For example, timestamps are strings in this JSON.
pub(super) fn object_type(schema: &Arc<DeclType>, gvk: &Gvk, profile: Profile) -> Type {
    match profile {
        Profile::Upstream => schema.cel_type(&gvk.type_name()),
        Profile::Truthful => schema.evaluated_type(&gvk.type_name()),
    }
}

/// Returns the type of params of `gvk`. Upstream appends a timestamp to the name of the param type and to the name of
/// the object type. These two types therefore differ even if params and object have the same kind.
fn params_type(schema: &Arc<DeclType>, gvk: &Gvk, profile: Profile) -> Type {
    match profile {
        Profile::Upstream => schema.cel_type(&StructType::distinct_name(&gvk.type_name())),
        Profile::Truthful => schema.evaluated_type(&gvk.type_name()),
    }
}

#[cfg(test)]
mod tests;
