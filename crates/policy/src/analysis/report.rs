//! Merges the findings for each kind into the warnings of a policy.
//!
//! - A rule that names a kind intends that kind: expressions that cannot be evaluated for it cause a warning.
//! - A wildcard intends any kind: an expression may read fields that some kinds lack, as long as it evaluates for one
//!   kind that reaches the subexpression, including kinds without a schema. A subexpression that fails for all of them
//!   (`object.kind == 'Pod' ? object.spec.contianers.size() > 0 : true`) causes a warning.
//! - A test for a field never fails. But if no kind has the field, it is always false, which is probably a mistake: a
//!   warning, not an error.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::driver::{self, Finding, KindAnalysis};
use super::interpret::Issue;
use super::{IncomparableTypes, PartialFailure};
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, TextLeft};
use crate::finding::{ExpressionFindings, KindFindings, Note};
use cel::ast::{Expr, ExprId};
use cel::diagnostic::DiagnosticKind;
use cel::interrupt::{checkpoint, working_on};
use cel::source::SourceMap;
use kubernetes::schema::Gvk;

/// Knowledge of the kinds that the rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All kinds, with their schemas.
    Checked,
    /// All kinds, some without a schema.
    NamesOnly,
    /// Not all kinds.
    Partial,
}

/// Maximum length of a warning for kinds of wildcards, in bytes.
const MAX_SHOWN_BYTES: usize = 32 * 1024;

/// Maximum number of kinds of wildcards listed for a failing expression.
const MAX_PARTIAL_KINDS: usize = 6;

/// The kinds of wildcards that are listed first.
const USUAL_KINDS: [&str; 5] = ["Pod", "Deployment", "ConfigMap", "Secret", "Service"];

/// Maximum number of remembered source excerpts.
const MAX_PLACES: usize = 8;

/// The findings for all kinds.
#[derive(Debug, Default)]
pub(super) struct Report {
    kinds: Vec<Kind>,
    /// The subexpressions that some kind of a wildcard evaluates without an error, by the index of the expression.
    succeeding: BTreeMap<usize, Vec<bool>>,
    /// Comparisons of values that are never equal because of their types, by expression and location, with the reason.
    incomparable: BTreeMap<(usize, usize), (ExprId, String)>,
    /// The match conditions that some kind reaches. True if the condition is false for all of these kinds.
    is_false: BTreeMap<usize, bool>,
    /// The comparisons that can be true or false for some kind.
    comparable: HashSet<(usize, usize)>,
}

/// The findings for one kind.
#[derive(Debug)]
struct Kind {
    gvk: Gvk,
    is_by_wildcard: bool,
    analysis: KindAnalysis,
    /// Tests for a field that no kind has, by the index of the expression.
    always_false: BTreeMap<usize, Vec<Issue>>,
}

impl Report {
    /// Adds the analysis of objects of `gvk`.
    pub(super) fn add(&mut self, gvk: Gvk, is_by_wildcard: bool, mut analysis: KindAnalysis) {
        self.add_comparisons(&mut analysis);
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

    /// Adds the subexpressions that a kind of a wildcard evaluates without an error, but not its findings.
    pub(super) fn add_succeeding(&mut self, analysis: &mut KindAnalysis) {
        self.add_comparisons(analysis);
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

    /// Returns the comparisons of values that are never equal, for any kind.
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
                message: why.clone(),
            })
        });
        comparisons.collect()
    }

    /// Returns the match conditions that read an input and are false for every request, for any kind.
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

    /// Returns the expressions that fail for some kinds of wildcards where others evaluate, each with the location at
    /// which most fail.
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
        // If several locations have equally many kinds, the first.
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

    /// Returns true if some kind of the wildcards evaluates `id` and the whole expression with index `n`.
    fn is_evaluated_by_some(&self, n: usize, id: ExprId) -> bool {
        let visited = self.succeeding.get(&n);
        visited.is_some_and(|visited| visited.get(id.index()).copied().unwrap_or(false))
    }

    /// Returns the findings, by expression.
    pub(super) fn into_findings(
        mut self,
        policy: &CompiledPolicy,
        scope: Scope,
    ) -> Vec<ExpressionFindings> {
        if scope == Scope::Checked {
            self.find_always_false();
        }
        self.kinds.sort_by(|left, right| left.gvk.cmp(&right.gvk));
        let text_left = TextLeft::default();
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

    /// Returns the findings for the expression with index `n`, and those that several kinds share.
    fn findings_of(
        &self,
        n: usize,
        expression: &PolicyExpression,
        scope: Scope,
        text_left: &TextLeft,
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
            // The first is shown regardless of its length.
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

    /// Returns the finding of `kind` to report for the expression with index `n`. For a kind of wildcards, only
    /// subexpressions that fail wherever they are evaluated, and only if all kinds are known.
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

    /// Finds the tests for a field that no kind has.
    fn find_always_false(&mut self) {
        let present = self.kinds.iter().flat_map(|kind| &kind.analysis.present);
        let present: HashSet<_> = present.copied().collect();
        for kind in &mut self.kinds {
            let mut reported = HashSet::new();
            for (n, id, field) in &kind.analysis.absent {
                checkpoint();
                if present.contains(&(*n, *id)) || !reported.insert((*n, *id, &*field.name)) {
                    continue;
                }
                let issue = Issue {
                    id: *id,
                    kind: DiagnosticKind::UndefinedField(field.clone()),
                    note: Some(
                        "no kind that the rules match has this field, so has() is always false",
                    ),
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

    /// Converts `finding` and the tests that are always false to findings for the expression with index `n`.
    fn findings(
        &self,
        n: usize,
        expression: &PolicyExpression,
        finding: Option<&Finding>,
        text_left: &TextLeft,
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
            repeats_places: false,
        }
    }
}

/// The findings shown for one expression and the kinds of wildcards.
#[derive(Default)]
struct ShownFindings {
    n_failing: usize,
    n_bytes: usize,
    /// The source excerpts that were shown.
    places: Vec<String>,
}

impl ShownFindings {
    /// Returns true if the limit is reached.
    fn is_full(&self) -> bool {
        self.n_bytes > MAX_SHOWN_BYTES
    }

    /// Counts `findings`, those for the expression `text`, against the limit. Returns true if they fit. The source
    /// excerpt is shown for the first kind only.
    fn add(&mut self, findings: &mut KindFindings, text: &str, is_rejected: bool) -> bool {
        let places = findings.errors.excerpts(text) + &findings.warnings.excerpts(text);
        findings.repeats_places = self.places.contains(&places);
        if !findings.repeats_places && self.places.len() < MAX_PLACES {
            self.places.push(places);
        }
        // If the API server rejects the expression, the finding is the same for every kind.
        self.n_bytes += if is_rejected {
            MAX_SHOWN_BYTES / 2 + 1
        } else {
            findings.rendered_len(text)
        };
        !self.is_full()
    }
}
