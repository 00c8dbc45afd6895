//! Finds the cause of a difference between the results of two versions: the first release with the new result, and the
//! change in this release.
//!
//! For this purpose, the policy is evaluated for one request in each release between the two versions.

use super::effects::{Effect, FieldResult, effects};
use super::generated::BothVersions;
use super::report::{Class, Reason};
use crate::cli::diff::case_result;
use crate::cli::eval::policy_set::PreparedPolicy;
use crate::cli::eval::run_case_with;
use crate::policy::admission::Admission;
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::Role;
use crate::policy::subexpressions;
use crate::policy::version_changes::{self, AffectedNode, Since, VersionChange};
use crate::probe::api::{Case, PolicyProbeSpec};
use crate::version::KubernetesVersion;

pub(super) struct Cause {
    pub(super) reason: Reason,
    pub(super) change: Option<&'static VersionChange>,
    /// The field and the source of the affected node. `None` if the node is unknown.
    pub(super) node: Option<(String, String)>,
}

/// Finds the cause of `effect`, the difference between the results of both versions for `case`. `nodes` are the nodes
/// that a change may affect.
pub(super) fn find(
    both: BothVersions<'_>,
    nodes: &[AffectedNode],
    (spec, case): (&PolicyProbeSpec, &Case),
    effect: &Effect,
) -> Option<Cause> {
    let [old, new] = both.sets.map(|set| set.known.version());
    let policy = both.policies[0];
    if policy.mutating.is_some() {
        return Some(from_nodes(nodes, effect, policy, (old, new)));
    }
    let run = |admission: &Admission| {
        let result = run_case_with(admission, policy, spec, case, both.sets[0]);
        case_result(policy, result).ok()
    };
    let before = run(&policy.admission)?;
    let mut previous = old;
    for step in old.steps_to(new) {
        let object = policy.object.value.clone();
        let compiled = CompiledPolicy::from_parts(object, None, step);
        let after = run(&Admission::from_compiled(&compiled))?;
        let mut effects = effects([before.as_ref(), after.as_ref()]).into_iter();
        if effects.any(|it| it.key() == effect.key()) {
            return Some(from_nodes(nodes, effect, policy, (previous, step)));
        }
        previous = step;
    }
    None
}

/// Finds the change between two versions that causes `effect`. Affected nodes in the field of the effect take
/// precedence over nodes in variables and enclosed fields.
fn from_nodes(
    nodes: &[AffectedNode],
    effect: &Effect,
    policy: &PreparedPolicy<'_>,
    (old, new): (KubernetesVersion, KubernetesVersion),
) -> Cause {
    let is_new = |change: &VersionChange| change.since.includes(new) && !change.since.includes(old);
    let field = effect.field.as_deref();
    let is_in_field = |affected: &&AffectedNode| {
        let expression = policy.compiled.expressions().get(affected.index);
        expression.map(|expression| expression.field_ref.as_str()) == field
    };
    let excludes = effect.results.contains(&FieldResult::NotMatched);
    let candidates = || {
        let candidates = nodes.iter().filter(|affected| is_new(affected.change));
        candidates.filter(|affected| {
            let expression = policy.compiled.expressions().get(affected.index);
            expression.is_some_and(|expression| match expression.role {
                Role::Variable => true,
                Role::MatchCondition if excludes => true,
                // An error may belong to a field that encloses the expression, such as `spec.mutations`.
                _ => field.is_none_or(|field| expression.field_ref.starts_with(field)),
            })
        })
    };
    let affected = candidates()
        .find(is_in_field)
        .or_else(|| candidates().next());
    let is_compile_error = effect
        .messages
        .iter()
        .any(|it| it.starts_with("compilation error"));
    let compiling = field.filter(|_| is_compile_error).and_then(|field| {
        let mut expressions = policy.compiled.expressions().iter();
        let expression = expressions.find(|it| it.field_ref == field)?;
        version_changes::compiling_change(&expression.text, old, new)
    });
    let change = compiling
        .or_else(|| affected.map(|affected| affected.change))
        .or_else(|| fallback_change(effect, policy, (old, new)));
    let node = affected.and_then(|affected| node_text(policy, affected));
    Cause {
        reason: reason(change, (old, new)),
        change,
        node,
    }
}

/// Guesses the change that causes an effect from its class and messages, if no affected node explains the effect.
fn fallback_change(
    effect: &Effect,
    policy: &PreparedPolicy<'_>,
    (old, new): (KubernetesVersion, KubernetesVersion),
) -> Option<&'static VersionChange> {
    let field = effect.field.as_deref();
    let has = |id| version_changes::between(old, new).any(|change| change.id == id);
    let is_about = |words: &[&str]| {
        let mut messages = effect.messages.iter();
        messages.any(|message| words.iter().any(|word| message.contains(word)))
    };
    let expressions = policy.compiled.expressions().iter();
    let mut texts = expressions
        .filter(|it| field.is_none_or(|field| it.field_ref == field))
        .map(|it| &*it.text);
    let id = match effect.class {
        _ if is_about(&["cost limit", "cost budget", "budget exceeded"]) => "library-costs",
        _ if texts.any(|text| {
            ["labelValue", "qualifiedName"]
                .iter()
                .any(|it| text.contains(it))
        }) && has("format-messages") =>
        {
            "format-messages"
        }
        // The API server panics, so the error belongs to no field.
        Class::Admits if field.is_none() && policy.mutating.is_some() => "nested-patch-values",
        Class::Audit => "audit-failures",
        Class::Text if has("format-messages") => "format-messages",
        _ if has("creation-times") && !has("go-values") => "creation-times",
        _ => "go-values",
    };
    version_changes::between(old, new).find(|change| change.id == id)
}

/// Returns the field and the source of an affected node. `None` if the expression does not parse.
pub(super) fn node_text(
    policy: &PreparedPolicy<'_>,
    affected: &AffectedNode,
) -> Option<(String, String)> {
    let expression = policy.compiled.expressions().get(affected.index)?;
    let ast = expression.parsed().ok()?;
    let text = subexpressions::text(ast, affected.node);
    Some((expression.field_ref.clone(), text))
}

/// Returns the reason why a result differs between two versions. If `change` is `None`, the reason contains only the
/// release.
pub(super) fn reason(
    change: Option<&'static VersionChange>,
    (old, new): (KubernetesVersion, KubernetesVersion),
) -> Reason {
    let release = if new.differs_only_in_cel_go(&old) {
        Since::CelGo(new.cel_go).to_string()
    } else if new.has_minor_of(&old) {
        format!("Kubernetes {new}")
    } else {
        // The change is already in the first patch release of the minor version, so no patch number is shown.
        format!("Kubernetes {}", new.platform())
    };
    Reason {
        since: change.map_or(release, |change| change.since.to_string()),
        change: change.map(|change| change.id),
        summary: change.map(|change| change.summary),
        source: change.map(|change| change.source),
    }
}
