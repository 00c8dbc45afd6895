//! Tries proposed changes: evaluates the changed policy for the failing request and for other requests of the search.
//!
//! A change is suggested only if two conditions hold: the expression no longer fails for the failing request, and no
//! other result of an expression changes for a tried request. A change is not suggested if a condition that failed
//! becomes true for one request and false for another, because such an effect cannot be described.
//!
//! An expression that fails denies the request under failurePolicy Fail. A change that allows such requests is
//! suggested in two cases only: the effective default of the field implies the change, or a change that denies the
//! requests is suggested too, so that the author can choose. The effective default counts only if it is known, and if
//! it is the default of the field in all tried kinds.

use std::rc::Rc;

use super::candidates::{Candidate, KnownDefault, Proposal};
use crate::admission::Admission;
use crate::admission::trace::Step;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::runtime_errors::failures::Failure;
use crate::runtime_errors::requests::{
    Budget, RequestBuilder, SyntheticRequest, TracedRequest, minimal_constraints,
};
use crate::suggestion::{Effect, Suggestion};
use cel::source::SourceMap;
use kubernetes::validity::{Constraint, InputConstraints};

/// Maximum number of other requests for which a change is tried.
const MAX_REQUESTS: usize = 6;

/// Maximum number of suggestions for one finding.
const MAX_SUGGESTIONS: usize = 2;

/// The candidates that pass their trial.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    pub(crate) suggestions: Vec<Suggestion>,
    /// The replacement of a variable that is null in every request that the rules match.
    pub(crate) rename: Option<Suggestion>,
    /// The change of [`Proposal::assumed`], which is not tried.
    pub(crate) assumed: Option<Suggestion>,
}

/// Tries the candidates of a proposal for `failing`, a request for which the expression fails with `failure`. Returns
/// those that pass. Each candidate decrements `n_left`.
pub(crate) fn try_all(
    builder: &RequestBuilder<'_>,
    proposal: &Proposal,
    (failing, failure): (&Rc<SyntheticRequest>, &Failure),
    n_left: &mut u32,
) -> Trials {
    let policy = builder.policy;
    let expression = policy.expressions().get(failure.origin_index);
    let assumed = proposal.assumed.as_ref();
    let assumed = assumed.and_then(|it| suggestion(expression?, it, (Effect::Evaluated, None)));
    let is_empty = proposal.candidates.is_empty() && proposal.rename.is_none();
    if is_empty || *n_left == 0 {
        return Trials {
            assumed,
            ..Trials::default()
        };
    }
    let mut others = builder.evaluated_requests();
    others.retain(|other| other.digest != failing.digest);
    others.truncate(MAX_REQUESTS);
    let mut budget = Budget::UNLIMITED;
    let mut requests = Vec::new();
    for synthetic in std::iter::once(failing).chain(&others) {
        if let Some(before) = builder.traced(synthetic, &mut budget) {
            requests.push(TriedRequest {
                builder,
                synthetic: Rc::clone(synthetic),
                before,
            });
        }
    }
    let other_kinds = builder.other_kinds.iter();
    for other in other_kinds.filter(|other| other.resource.gvk != builder.resource.gvk) {
        let mut all = minimal_constraints(&other.operations);
        // Also tries requests that lack only the field with the default: its enclosing object is present.
        let defaults = proposal
            .candidates
            .iter()
            .filter_map(|it| it.default.as_ref());
        for parent in defaults.filter_map(|default| default.path.as_ref()?.parent()) {
            let mut constraints = InputConstraints::default();
            if constraints.add(&parent, Constraint::Present).is_some() {
                all.push(constraints);
            }
        }
        for constraints in all {
            let Some(synthetic) = other.built(&constraints) else {
                continue;
            };
            if let Some(before) = other.traced(&synthetic, &mut budget) {
                requests.push(TriedRequest {
                    builder: other,
                    synthetic,
                    before,
                });
            }
        }
    }
    let rename = proposal.rename.as_ref();
    let rename = rename.and_then(|it| passing(policy, it, (&requests, failure), true));
    let mut suggestions: Vec<Suggestion> = Vec::new();
    for candidate in &proposal.candidates {
        let Some(left) = n_left.checked_sub(1) else {
            break;
        };
        *n_left = left;
        let may_differ = candidate.intent.is_some();
        let Some(suggestion) = passing(policy, candidate, (&requests, failure), may_differ) else {
            continue;
        };
        let is_decided = suggestion.default.is_some() || candidate.intent.is_some();
        let is_repeated = suggestions.iter().any(|it| it.effect == suggestion.effect);
        if !is_repeated && suggestions.len() < MAX_SUGGESTIONS {
            suggestions.push(suggestion);
        }
        if is_decided {
            break;
        }
    }
    suggestions.sort_by_key(|suggestion| suggestion.effect.may_allow());
    // Candidates for different conditions may have the same text.
    suggestions.dedup_by(|second, first| second.text == first.text);
    // Allowing requests that are denied now must be the author's decision, so such a suggestion needs an alternative.
    if let [only] = &*suggestions
        && only.default.is_none()
        && only.effect.may_allow()
    {
        suggestions.clear();
    }
    Trials {
        suggestions,
        rename,
        assumed,
    }
}

/// A request, and the results of the unchanged expressions.
struct TriedRequest<'t, 'a> {
    builder: &'t RequestBuilder<'a>,
    synthetic: Rc<SyntheticRequest>,
    before: Rc<TracedRequest>,
}

/// Returns the candidate as a suggestion if it passes. If `may_differ` is true, the candidate may have different
/// effects on the requests for which the expression fails.
fn passing(
    policy: &CompiledPolicy,
    candidate: &Candidate,
    (requests, failure): (&[TriedRequest<'_, '_>], &Failure),
    may_differ: bool,
) -> Option<Suggestion> {
    let expression = policy.expressions().get(failure.origin_index)?;
    let mut text = expression.text.to_string();
    text.get(candidate.bytes.clone())?;
    text.replace_range(candidate.bytes.clone(), &candidate.replacement);
    let changed = policy.with_expression(&expression.field_ref, text)?;
    if changed.n_invalid() > policy.n_invalid() || changed.refused().len() > policy.refused().len()
    {
        return None;
    }
    let admission = Admission::from_compiled(&changed);
    let mut budget = Budget::UNLIMITED;
    let first = requests.first()?;
    let after = |tried: &TriedRequest<'_, '_>, budget: &mut Budget| {
        let request = (&*tried.synthetic, &tried.before.input);
        tried.builder.trace_input(&admission, request, budget)
    };
    let mut after_first = Some(after(first, &mut budget)?);
    let effect = effect_of_failing(policy, after_first.as_deref()?, failure.index)?;
    if effect.may_allow() && !candidate.is_exact {
        return None;
    }
    let mut default = candidate.default.as_ref();
    for tried in requests {
        let after = match after_first.take() {
            Some(after) => after,
            None => after(tried, &mut budget)?,
        };
        let gvk = &tried.builder.resource.gvk;
        let is_of_kind = candidate
            .default
            .as_ref()
            .is_some_and(|default| default.is_of(gvk));
        // The candidate reads the field from which another kind inherits the value. This kind inherits the value from a
        // different field, so the candidate does not pass.
        let inherits = |it: &KnownDefault| it.effective.inherited_from.is_some();
        if !is_of_kind && candidate.default.as_ref().is_some_and(inherits) {
            return None;
        }
        for step in &tried.before.steps {
            let Some(role) = policy.expressions().get(step.index).map(|it| it.role) else {
                continue;
            };
            let new = after.iter().find(|after| after.index == step.index);
            let is_consistent = match (&step.result, new.map(|new| &new.result)) {
                // A variable may have no result now, because no expression reads it anymore.
                _ if role == Role::Variable => true,
                (Ok(old), Some(Ok(new))) => old == new,
                (Ok(_), Some(Err(_))) => false,
                // The changed match condition is false, so later expressions are not evaluated.
                (Ok(_), None) => effect == Effect::NotMatched,
                (Err(_), Some(Ok(new))) if step.index == failure.index => {
                    let new = effect_of(role, *new);
                    let is_due = |it: &&KnownDefault| {
                        is_of_kind && it.effective.is_certain && !it.may_require_value
                    };
                    if new.may_allow() {
                        default = default.filter(is_due);
                    }
                    may_differ || is_of_kind || new == effect
                }
                (Err(_), _) => true,
            };
            if !is_consistent {
                return None;
            }
        }
    }
    let default = default.map(|default| default.literal.clone());
    suggestion(expression, candidate, (effect, default))
}

/// Returns the candidate as a suggestion with this effect and default.
fn suggestion(
    expression: &PolicyExpression,
    candidate: &Candidate,
    (effect, default): (Effect, Option<String>),
) -> Option<Suggestion> {
    let source = SourceMap::new(&expression.text);
    let offset = |byte: usize| Some(source.offset_of_byte(u32::try_from(byte).ok()?));
    let start = usize::try_from(offset(candidate.bytes.start)?).ok()?;
    let end = usize::try_from(offset(candidate.bytes.end)?).ok()?;
    Some(Suggestion {
        text: candidate.shown.clone(),
        field_ref: expression.field_ref.clone(),
        range: start..end,
        replacement: candidate.replacement.clone(),
        effect: candidate.intent.unwrap_or(effect),
        default,
    })
}

/// Returns the effect of the expression `index`, which failed before the change. `None` if the expression still fails,
/// or if it was not evaluated.
fn effect_of_failing(policy: &CompiledPolicy, steps: &[Step], index: usize) -> Option<Effect> {
    let role = policy.expressions().get(index)?.role;
    let step = steps.iter().find(|step| step.index == index)?;
    Some(effect_of(role, *step.result.as_ref().ok()?))
}

fn effect_of(role: Role, value: Option<bool>) -> Effect {
    match (role, value) {
        (Role::Validation, Some(true)) => Effect::Passed,
        (Role::Validation, Some(false)) => Effect::Denied,
        (Role::MatchCondition, Some(true)) => Effect::Matched,
        (Role::MatchCondition, Some(false)) => Effect::NotMatched,
        _ => Effect::Evaluated,
    }
}
