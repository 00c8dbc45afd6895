//! Computes the condition `TypeChecked` from the findings of the analysis. The message lists unchecked kinds and
//! expressions.

use std::collections::BTreeSet;

use super::compute::{
    CompileSummary, Observations, StepOutcome, TypeObservations, TypeSummary, WildcardTypeSummary,
    when_evaluated, worst,
};
use super::condition::{ConditionStatus, Reason};
use super::verdict::{Evidence, Verdict};
use super::{definition, message};
use crate::policy::analysis::BEYOND;
use crate::policy::compile::{CompileFinding, CompileFindingKind};
use crate::policy::subject::SubjectKind;

pub(super) fn type_checked(observed: &Observations<'_>, uncompiled: &BTreeSet<&str>) -> Verdict {
    if observed.subject == SubjectKind::CustomResourceDefinition {
        return definition::type_checked(observed, uncompiled);
    }
    let TypeObservations {
        outcome: types,
        waiting,
    } = match observed.types.done() {
        Ok(types) => *types,
        Err(unknown) => return unknown,
    };
    let gaps = gaps(observed, types, uncompiled);
    let (n_checked, n_kinds) = (
        types.n_checked + types.by_wildcard.n_checked,
        types.n_checked
            + types.unchecked.len()
            + types.by_wildcard.n_checked
            + types.by_wildcard.unchecked.len(),
    );
    let coverage = coverage(types);
    let not_checked = if gaps.is_empty() {
        String::new()
    } else {
        format!("; not checked: {}", message::list(&gaps))
    };
    // Warnings about expressions that do not compile are skipped, because `Compiled` reports these expressions.
    let of_types = || {
        let all = types.warnings.iter();
        all.filter(|warning| !uncompiled.contains(warning.field_ref.as_str()))
    };
    let failing = worst(of_types().filter(|warning| warning.fails), |warning| {
        warning.consequence
    });
    if let Some(first) = failing.or(of_types().next()) {
        let more = match of_types().count() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let headline = first.headline.as_ref();
        let text = if failing.is_some() {
            let why = headline
                .map(|(kind, problem)| format!(" ({problem} on {kind})"))
                .unwrap_or_default();
            format!(
                "{}{more} may fail when evaluated{why}; {}",
                first.field_ref,
                when_evaluated(first.consequence, observed.effect()),
            )
        } else {
            let why = headline
                .map(|(_, problem)| format!(" ({problem})"))
                .unwrap_or_default();
            format!("{}{more} may not work as intended{why}", first.field_ref)
        };
        return Verdict::new(
            ConditionStatus::False,
            Reason::ExpressionWarnings,
            format!("{text}; {coverage}{not_checked}"),
        );
    }
    let (status, reason, text) = if n_kinds == 0 {
        let text = "the rules match no kind that can be checked";
        (
            ConditionStatus::Unknown,
            Reason::NoTypesToCheck,
            text.to_owned(),
        )
    } else if is_all_uncompiled(observed, uncompiled) {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::CompilationFailed,
            "no expression compiles, so there are no types to check",
        );
    } else if n_checked == 0 {
        let text = "no matched kind has a usable schema";
        (
            ConditionStatus::Unknown,
            Reason::SchemaUnavailable,
            text.to_owned(),
        )
    } else {
        let reason = if gaps.is_empty() {
            Reason::NoWarnings
        } else {
            Reason::PartiallyChecked
        };
        (
            ConditionStatus::True,
            reason,
            format!("no warnings; {coverage}"),
        )
    };
    let verdict = Verdict::new(status, reason, format!("{text}{not_checked}"));
    verdict.with_evidence(match observed.matches {
        _ if !waiting.is_empty() => Evidence::Pending,
        StepOutcome::Done(matches) if !matches.incomplete.is_empty() => Evidence::Partial,
        _ => Evidence::Complete,
    })
}

/// Returns the fields of expressions that do not compile.
pub(super) fn uncompiled<'a>(observed: &Observations<'a>) -> BTreeSet<&'a str> {
    let StepOutcome::Done(CompileSummary { findings, .. }) = observed.compiled else {
        return BTreeSet::new();
    };
    let failed = |finding: &&CompileFinding| finding.kind == CompileFindingKind::Failed;
    let findings = findings.iter().filter(failed);
    findings.map(|finding| finding.field_ref.as_str()).collect()
}

pub(super) fn is_all_uncompiled(observed: &Observations<'_>, uncompiled: &BTreeSet<&str>) -> bool {
    match observed.compiled {
        StepOutcome::Done(CompileSummary { n_expressions, .. }) => {
            !uncompiled.is_empty() && uncompiled.len() >= n_expressions
        }
        StepOutcome::Panicked | StepOutcome::DeadlineExceeded(_) => false,
    }
}

/// Returns the expressions, kinds and groups that were not type-checked, with the reasons.
fn gaps(
    observed: &Observations<'_>,
    types: &TypeSummary,
    uncompiled: &BTreeSet<&str>,
) -> Vec<String> {
    let expressions: Vec<&str> = uncompiled.iter().copied().collect();
    let expressions = (!expressions.is_empty())
        .then(|| format!("{} (not compiled)", message::list(&expressions)));
    let unchecked = types.unchecked.iter().chain(&types.by_wildcard.unchecked);
    let kinds = message::unchecked(unchecked).into_iter();
    let params = types
        .params
        .iter()
        .filter(|(_, has_schema)| !has_schema)
        .map(|(gvk, _)| format!("params of kind {} (no schema)", message::kind(gvk)));
    let groups = match observed.matches {
        StepOutcome::Done(matches) => matches.incomplete.as_slice(),
        StepOutcome::Panicked | StepOutcome::DeadlineExceeded(_) => &[],
    };
    let groups = groups
        .iter()
        .map(|(group, _)| format!("{group} (not discovered)"));
    let others = types.by_wildcard.has_more;
    let others = others.then(|| format!("others matched by wildcards ({BEYOND})"));
    let rest = kinds.chain(others).chain(params).chain(groups);
    expressions.into_iter().chain(rest).collect()
}

/// Formats the number of checked kinds.
///
/// Kinds that only wildcards match are counted only if one of them was not checked. Otherwise each new or removed CRD
/// would change the message, and the controller would write the status of every policy with a wildcard.
fn coverage(types: &TypeSummary) -> String {
    let share = |n_checked: usize, n_unchecked: usize| match n_unchecked {
        0 => message::count(n_checked, "kind"),
        n => format!("{n_checked} of {}", message::count(n_checked + n, "kind")),
    };
    let named = share(types.n_checked, types.unchecked.len());
    let has_named = types.n_checked + types.unchecked.len() > 0;
    let WildcardTypeSummary {
        n_checked,
        unchecked,
        has_more,
    } = &*types.by_wildcard;
    let by_wildcard = match (unchecked.len(), has_more) {
        (0, false) if *n_checked == 0 => return format!("{named} checked"),
        (0, false) => "all kinds matched by wildcards".to_owned(),
        (n, false) => format!("{} matched by wildcards", share(*n_checked, n)),
        (0, true) => format!("{n_checked} of the kinds matched by wildcards"),
        (n, true) => format!(
            "{n_checked} of the first {} matched by wildcards",
            message::count(n_checked + n, "kind")
        ),
    };
    if has_named {
        format!("{named} and {by_wildcard} checked")
    } else {
        format!("{by_wildcard} checked")
    }
}
