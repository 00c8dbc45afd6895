//! Merges the findings for all kinds into the warnings of a policy.
//!
//! - A kind that a rule names is intended. An expression that fails for such a kind causes a warning.
//! - For a wildcard, the policy may intend only some of the kinds, and read fields that the others lack. A failing
//!   subexpression causes no warning if it evaluates without an error for another kind, or may do so for a kind without
//!   a schema. It causes a warning if it fails for all kinds for which it is evaluated. An example is
//!   `object.spec.contianers` in `object.kind == 'Pod' ? object.spec.contianers.size() > 0 : true`.
//! - Presence tests and optional selections never fail. If no kind has the field, the field is always absent, which is
//!   probably a mistake. The expression then causes a warning instead of an error.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::driver::{self, Finding, KindAnalysis};
use super::interpret::{Incomparable, Issue};
use super::{IncomparableTypes, NonOptionalReceiver, PartialFailure};
use crate::compile::CompiledPolicy;
use crate::expressions::{OutputBudget, PolicyExpression};
use crate::finding::{ExpressionFindings, KindFindings, Note};
use cel::ast::{Expr, ExprId};
use cel::diagnostic::DiagnosticKind;
use cel::interrupt::{checkpoint, working_on};
use cel::source::SourceMap;
use kubernetes::schema::Gvk;

/// The available information about the kinds that the rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All kinds are known, with schemas.
    Checked,
    /// All kinds are known, but some have no schema.
    NamesOnly,
    /// Some kinds are unknown.
    Partial,
}

/// Maximum total length, in bytes, of the warnings that one expression has for the kinds matched by wildcards.
const MAX_SHOWN_BYTES: usize = 32 * 1024;

/// Maximum number of listed kinds of a partial failure.
const MAX_PARTIAL_KINDS: usize = 6;

/// Common kinds. They come first in the list of a partial failure.
const USUAL_KINDS: [&str; 5] = ["Pod", "Deployment", "ConfigMap", "Secret", "Service"];

/// Maximum number of source excerpts that are stored to recognize findings with repeated excerpts.
const MAX_PLACES: usize = 8;

/// The merged findings for all kinds.
#[derive(Debug, Default)]
pub(super) struct Report {
    kinds: Vec<Kind>,
    /// The nodes that evaluate without an error for at least one kind matched by a wildcard, by the index of the
    /// expression.
    succeeding: BTreeMap<usize, Vec<bool>>,
    /// Comparisons whose operands are never equal because of their types, by expression and node, with the reason.
    incomparable: BTreeMap<(usize, usize), (ExprId, Incomparable)>,
    /// The match conditions and validations that are evaluated for at least one kind. The flag is true if the expression
    /// is false for all these kinds.
    is_false: BTreeMap<usize, bool>,
    /// Comparisons whose operands may be equal for at least one kind, by expression and node.
    comparable: HashSet<(usize, usize)>,
    /// Calls of `or` and `orValue` whose receiver is not an optional, by expression and node.
    non_optional: BTreeMap<(usize, usize), ExprId>,
    /// Calls of `or` and `orValue` whose receiver may be an optional for at least one kind, by expression and node.
    maybe_optional: HashSet<(usize, usize)>,
}

#[derive(Debug)]
struct Kind {
    gvk: Gvk,
    is_by_wildcard: bool,
    analysis: KindAnalysis,
    /// Presence tests and optional selections of fields that no kind has, by the index of the expression.
    always_false: BTreeMap<usize, Vec<Issue>>,
}

impl Report {
    pub(super) fn add(&mut self, gvk: Gvk, is_by_wildcard: bool, mut analysis: KindAnalysis) {
        self.add_comparisons(&mut analysis);
        self.add_receivers(&mut analysis);
        if is_by_wildcard {
            self.add_succeeding(&mut analysis);
        }
        analysis.visited.clear();
        self.kinds.push(Kind {
            gvk,
            is_by_wildcard,
            analysis,
            always_false: BTreeMap::new(),
        });
    }

    /// Records the subexpressions that evaluate without an error for a kind matched by a wildcard. Ignores the findings
    /// for this kind.
    pub(super) fn add_succeeding(&mut self, analysis: &mut KindAnalysis) {
        self.add_comparisons(analysis);
        self.add_receivers(analysis);
        for (n, visited) in std::mem::take(&mut analysis.visited) {
            if analysis.fails(n) {
                continue;
            }
            let succeeding = self.succeeding.entry(n).or_default();
            driver::add_visited(succeeding, &visited);
        }
    }

    fn add_comparisons(&mut self, analysis: &mut KindAnalysis) {
        for (n, is_false) in std::mem::take(&mut analysis.is_false) {
            *self.is_false.entry(n).or_insert(true) &= is_false && !analysis.fails(n);
        }
        for (n, id, why) in std::mem::take(&mut analysis.incomparable) {
            self.incomparable.insert((n, id.index()), (id, why));
        }
        let comparable = std::mem::take(&mut analysis.comparable).into_iter();
        self.comparable
            .extend(comparable.map(|(n, id)| (n, id.index())));
    }

    /// Records the calls of `or` and `orValue` in the analysis of one kind: those whose receiver may be an optional,
    /// and the others.
    pub(super) fn add_receivers(&mut self, analysis: &mut KindAnalysis) {
        let non_optional = std::mem::take(&mut analysis.non_optional).into_iter();
        self.non_optional
            .extend(non_optional.map(|(n, id)| ((n, id.index()), id)));
        let maybe_optional = std::mem::take(&mut analysis.maybe_optional).into_iter();
        self.maybe_optional
            .extend(maybe_optional.map(|(n, id)| (n, id.index())));
    }

    /// Returns the calls of `or` and `orValue` whose receiver is not an optional for any kind. `fails` is true if such
    /// calls fail.
    pub(super) fn non_optional(
        &self,
        policy: &CompiledPolicy,
        scope: Scope,
        fails: bool,
    ) -> Vec<NonOptionalReceiver> {
        if scope == Scope::Partial {
            return Vec::new();
        }
        let calls = self.non_optional.iter();
        let calls = calls.filter(|(place, _)| !self.maybe_optional.contains(place));
        let calls = calls.filter_map(|((n, _), call)| {
            let expression = policy.expressions().get(*n)?;
            let ast = expression.parsed().ok()?;
            Some(NonOptionalReceiver {
                index: *n,
                field_ref: expression.field_ref.clone(),
                location: SourceMap::new(&expression.text).location(ast.offset(*call)),
                call: *call,
                fails,
            })
        });
        calls.collect()
    }

    /// Returns the comparisons whose operands are never equal for any kind.
    pub(super) fn incomparable(
        &self,
        policy: &CompiledPolicy,
        scope: Scope,
    ) -> Vec<IncomparableTypes> {
        if scope == Scope::Partial {
            return Vec::new();
        }
        let incomparable = self.incomparable.iter();
        let incomparable = incomparable.filter(|(place, _)| !self.comparable.contains(place));
        let comparisons = incomparable.filter_map(|((n, _), (id, why))| {
            let expression = policy.expressions().get(*n)?;
            let ast = expression.parsed().ok()?;
            Some(IncomparableTypes {
                field_ref: expression.field_ref.clone(),
                location: SourceMap::new(&expression.text).location(ast.offset(*id)),
                message: why.message.clone(),
                operands: why.operands,
            })
        });
        comparisons.collect()
    }

    /// Returns the match conditions and validations that are false for every request of every kind. Expressions that read
    /// no input are excluded.
    pub(super) fn always_false(&self, policy: &CompiledPolicy, scope: Scope) -> Vec<usize> {
        if scope != Scope::Checked {
            return Vec::new();
        }
        let reads = |n: usize| {
            let expression = policy.expressions().get(n);
            let ast = expression.and_then(|expression| expression.parsed().ok());
            ast.is_some_and(|ast| ast.iter().any(|(_, expr)| matches!(expr, Expr::Ident(_))))
        };
        let is_false = self.is_false.iter().filter(|(_, is_false)| **is_false);
        is_false.map(|(n, _)| *n).filter(|n| reads(*n)).collect()
    }

    /// Returns the expressions that fail for only some of the kinds matched by wildcards. Each expression is reported
    /// at the location that fails for the most kinds.
    pub(super) fn partial(&self, policy: &CompiledPolicy) -> Vec<PartialFailure> {
        let expressions = policy.expressions().iter().enumerate();
        let failures = expressions.filter_map(|(n, expression)| self.partly(n, expression));
        failures.collect()
    }

    fn partly(&self, n: usize, expression: &PolicyExpression) -> Option<PartialFailure> {
        let ast = expression.parsed().ok()?;
        let mut places: BTreeMap<usize, (&Issue, Vec<&Gvk>)> = BTreeMap::new();
        let mut n_failing = 0;
        for kind in self.kinds.iter().filter(|kind| kind.is_by_wildcard) {
            checkpoint();
            let Some(Finding::Issues(issues)) = kind.analysis.findings.get(&n) else {
                continue;
            };
            let mut issues = issues.iter();
            if let Some(issue) = issues.find(|issue| self.is_evaluated_by_some(n, issue.id)) {
                n_failing += 1;
                let place = places.entry(issue.id.index());
                place.or_insert((issue, Vec::new())).1.push(&kind.gvk);
            }
        }
        // If several locations fail for the maximum number of kinds, the first of these locations is reported.
        let (issue, mut kinds) = places
            .into_values()
            .rev()
            .max_by_key(|(_, kinds)| kinds.len())?;
        let rank = |gvk: &&Gvk| {
            let usual = USUAL_KINDS.iter().position(|kind| *kind == gvk.kind);
            usual.unwrap_or(USUAL_KINDS.len())
        };
        kinds.sort_by(|left, right| (rank(left), left).cmp(&(rank(right), right)));
        kinds.truncate(MAX_PARTIAL_KINDS);
        let diagnostic = issue.to_diagnostic(ast, &SourceMap::new(&expression.text));
        Some(PartialFailure {
            index: n,
            field_ref: expression.field_ref.clone(),
            location: diagnostic.location,
            message: diagnostic.to_string(),
            kinds: kinds.into_iter().cloned().collect(),
            n_failing,
            n_all: self.kinds.iter().filter(|kind| kind.is_by_wildcard).count(),
        })
    }

    /// Returns true if the expression with the index `n` succeeds for some kind matched by a wildcard, and the
    /// evaluation for this kind reaches `id`.
    fn is_evaluated_by_some(&self, n: usize, id: ExprId) -> bool {
        let visited = self.succeeding.get(&n);
        visited.is_some_and(|visited| visited.get(id.index()).copied().unwrap_or(false))
    }

    /// Returns the findings, grouped by expression.
    pub(super) fn into_findings(
        mut self,
        policy: &CompiledPolicy,
        scope: Scope,
    ) -> Vec<ExpressionFindings> {
        if scope == Scope::Checked {
            self.find_always_false(policy);
        }
        self.kinds.sort_by(|left, right| left.gvk.cmp(&right.gvk));
        let text_left = OutputBudget::default();
        let expressions = policy.expressions().iter().enumerate();
        let findings = expressions.filter_map(|(n, expression)| {
            working_on(&expression.field_ref);
            let (kinds, notes) = self.findings_of(n, expression, scope, &text_left);
            (!kinds.is_empty()).then(|| ExpressionFindings {
                index: n,
                field_ref: expression.field_ref.clone(),
                text: Arc::clone(&expression.text),
                consequence: policy.consequence(n),
                kinds,
                notes,
            })
        });
        findings.collect()
    }

    /// Returns the findings of the expression with the index `n` for each kind, and notes about all kinds.
    fn findings_of(
        &self,
        n: usize,
        expression: &PolicyExpression,
        scope: Scope,
        text_left: &OutputBudget,
    ) -> (Vec<KindFindings>, Vec<Note>) {
        let mut shown = ShownFindings::default();
        let mut kind_findings: Vec<KindFindings> = Vec::new();
        let mut n_left_out = 0;
        for kind in &self.kinds {
            checkpoint();
            let finding = self.reportable(kind, n, scope);
            if finding.is_none() && !kind.always_false.contains_key(&n) {
                continue;
            }
            if kind.is_by_wildcard {
                shown.n_failing += usize::from(finding.is_some());
                if shown.is_full() {
                    continue;
                }
            }
            if !kind_findings.is_empty() && text_left.is_used_up() {
                n_left_out += 1;
                continue;
            }
            let mut of_kind = kind.findings(n, expression, finding.as_deref(), text_left);
            // The first finding is shown even if it exceeds the maximum length.
            if !kind.is_by_wildcard
                || shown.add(&mut of_kind, &expression.text, kind.is_rejected(n))
                || kind_findings.is_empty()
            {
                kind_findings.push(of_kind);
            }
        }
        let mut notes = Vec::new();
        if n_left_out > 0 {
            notes.push(Note::MoreKinds(n_left_out));
        }
        if shown.n_failing > 0 {
            notes.push(Note::NoWildcardKind {
                n_failing: shown.n_failing,
                n_all: self.kinds.iter().filter(|kind| kind.is_by_wildcard).count(),
            });
        }
        (kind_findings, notes)
    }

    /// Returns the finding to report for `kind` and the expression with the index `n`. If `kind` is matched by a
    /// wildcard, includes only the subexpressions that fail for all kinds that reach them, or nothing if the rules
    /// match unknown kinds.
    fn reportable<'a>(&self, kind: &'a Kind, n: usize, scope: Scope) -> Option<Cow<'a, Finding>> {
        match kind.analysis.findings.get(&n)? {
            Finding::Issues(issues) if kind.is_by_wildcard => {
                let always_failing = issues
                    .iter()
                    .filter(|issue| !self.is_evaluated_by_some(n, issue.id));
                let always_failing: Vec<_> = always_failing.cloned().collect();
                let is_reportable = scope != Scope::Partial && !always_failing.is_empty();
                is_reportable.then_some(Cow::Owned(Finding::Issues(always_failing)))
            }
            finding => Some(Cow::Borrowed(finding)),
        }
    }

    /// Finds presence tests and optional selections of fields that no kind has.
    fn find_always_false(&mut self, policy: &CompiledPolicy) {
        let present = self.kinds.iter().flat_map(|kind| &kind.analysis.present);
        let present: HashSet<_> = present.copied().collect();
        for kind in &mut self.kinds {
            let mut reported = HashSet::new();
            for (n, id, field) in &kind.analysis.absent {
                checkpoint();
                if present.contains(&(*n, *id)) || !reported.insert((*n, *id, &*field.name)) {
                    continue;
                }
                let expression = policy.expressions().get(*n);
                let ast = expression.and_then(|expression| expression.parsed().ok());
                let is_optional = ast.is_some_and(|ast| matches!(ast.expr(*id), Expr::Call { .. }));
                let issue = Issue {
                    id: *id,
                    kind: DiagnosticKind::UndefinedField(field.clone()),
                    note: Some(if is_optional {
                        "no kind that the rules match has this field, so it is always absent"
                    } else {
                        "no kind that the rules match has this field, so has() is always false"
                    }),
                };
                kind.always_false.entry(*n).or_default().push(issue);
            }
        }
    }
}

impl Kind {
    fn is_rejected(&self, n: usize) -> bool {
        matches!(
            self.analysis.findings.get(&n),
            Some(Finding::Rejected { .. })
        )
    }

    /// Returns the findings for this kind and the expression with the index `n`: `finding`, and the presence tests that
    /// are always false.
    fn findings(
        &self,
        n: usize,
        expression: &PolicyExpression,
        finding: Option<&Finding>,
        text_left: &OutputBudget,
    ) -> KindFindings {
        let errors = finding.map(|finding| finding.to_diagnostics(expression, text_left));
        let always_false = self.always_false.get(&n).map(|always_false| {
            let finding = Finding::Issues(always_false.clone());
            finding.to_diagnostics(expression, text_left)
        });
        KindFindings {
            gvk: self.gvk.clone(),
            errors: errors.unwrap_or_default(),
            warnings: always_false.unwrap_or_default(),
            repeats_locations: false,
        }
    }
}

/// The size of the findings that are shown for one expression, for all kinds matched by wildcards.
#[derive(Default)]
struct ShownFindings {
    n_failing: usize,
    n_bytes: usize,
    /// The distinct source excerpts of these findings.
    places: Vec<String>,
}

impl ShownFindings {
    fn is_full(&self) -> bool {
        self.n_bytes > MAX_SHOWN_BYTES
    }

    /// Adds the length of `findings` to the total, and returns true if the total is within the limit. `text` is the
    /// source of the expression. Sets `repeats_locations` to true if findings that were added earlier have the same
    /// excerpts as `findings`.
    fn add(&mut self, findings: &mut KindFindings, text: &str, is_rejected: bool) -> bool {
        let places = findings.errors.excerpts(text) + &findings.warnings.excerpts(text);
        findings.repeats_locations = self.places.contains(&places);
        if !findings.repeats_locations && self.places.len() < MAX_PLACES {
            self.places.push(places);
        }
        // The findings for a rejected expression are the same for every kind, so they are shown for at most two kinds.
        self.n_bytes += if is_rejected {
            MAX_SHOWN_BYTES / 2 + 1
        } else {
            findings.rendered_len(text)
        };
        !self.is_full()
    }
}
