//! From what was found for each kind to the warnings of a policy.
//!
//! - A rule that names a kind means that kind: what cannot be evaluated for it is warned about.
//! - A wildcard means any kind: that an expression asks for what some of them lack is no trouble as long as
//!   the whole can be evaluated for one that comes to it, be it one that could not be looked at. What only
//!   fails (`object.kind == 'Pod' ? object.spec.contianers.size() > 0 : true`) is trouble.
//! - A test for a field fails for no kind; but where no kind has the field it is never true, which is
//!   hardly meant. That is told by `WARNING` in place of `ERROR`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::compile::CompiledPolicy;
use super::expressions::PolicyExpression;
use super::flow::Issue;
use super::truthful::{Finding, Judged};
use crate::cel::ast::ExprId;
use crate::cel::diagnostic::Code;
use crate::schema::Gvk;

/// Which of the kinds that the rules match are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All, with their schemas.
    Checked,
    /// All, though there are some without a schema.
    Named,
    /// Not all.
    Partial,
}

/// How long a warning may become by kinds that wildcards match, in bytes.
const MAX_SHOWN_BYTES: usize = 32 * 1024;

/// How many places in the source are remembered.
const MAX_PLACES: usize = 8;

/// What was found for all kinds.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    kinds: Vec<Kind>,
    /// What kinds of wildcards come to without trouble: by the index of the expression, what is evaluated.
    sound: BTreeMap<usize, Vec<bool>>,
}

/// What was found for one kind.
#[derive(Debug)]
struct Kind {
    gvk: Gvk,
    is_by_wildcard: bool,
    judged: Judged,
    /// Tests for a field that no kind has, by the index of the expression.
    vain: Vec<(usize, Issue)>,
}

impl Verdicts {
    /// Adds what was found for objects of `gvk`.
    pub(super) fn add(&mut self, gvk: Gvk, is_by_wildcard: bool, mut judged: Judged) {
        if is_by_wildcard {
            self.add_sound(&mut judged);
        }
        judged.visited.clear();
        self.kinds.push(Kind {
            gvk,
            is_by_wildcard,
            judged,
            vain: Vec::new(),
        });
    }

    /// Adds what a kind that wildcards match, and that is not shown, comes to without trouble.
    pub(super) fn add_sound(&mut self, judged: &mut Judged) {
        for (n, visited) in std::mem::take(&mut judged.visited) {
            if judged.fails(n) {
                continue;
            }
            let sound = self.sound.entry(n).or_default();
            merge(sound, visited);
        }
    }

    /// Whether a kind of the wildcards evaluates `id` and the whole expression of the index `n`.
    fn is_sound(&self, n: usize, id: ExprId) -> bool {
        let visited = self.sound.get(&n);
        visited.is_some_and(|visited| visited.get(id.index()).copied().unwrap_or(false))
    }

    /// The texts about each expression, by its index.
    pub(super) fn into_texts(
        mut self,
        policy: &CompiledPolicy,
        scope: Scope,
    ) -> BTreeMap<usize, Vec<String>> {
        if scope == Scope::Checked {
            self.find_vain_tests();
        }
        self.kinds.sort_by(|left, right| left.gvk.cmp(&right.gvk));
        let n_wildcard = self.kinds.iter().filter(|kind| kind.is_by_wildcard).count();
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (n, expression) in policy.expressions().iter().enumerate() {
            let mut shown = Shown::default();
            let mut of_expression = Vec::new();
            let mut last_full = None;
            for kind in &self.kinds {
                let finding = match kind.finding(n) {
                    Some(Finding::Issues(issues)) if kind.is_by_wildcard => {
                        let hopeless = issues.iter().filter(|issue| !self.is_sound(n, issue.id));
                        let hopeless: Vec<_> = hopeless.cloned().collect();
                        (scope != Scope::Partial && !hopeless.is_empty())
                            .then_some(Finding::Issues(hopeless))
                    }
                    finding => finding.cloned(),
                };
                let fails = finding.is_some();
                let text = kind.text(n, expression, finding.as_ref());
                if text.is_empty() {
                    continue;
                }
                let full = format!("{}: {text}\n", kind.gvk);
                if !kind.is_by_wildcard {
                    of_expression.push(full.clone());
                } else if let Some(text) = shown.add(text, fails, kind.is_refused(n)) {
                    of_expression.push(format!("{}: {text}\n", kind.gvk));
                } else {
                    continue;
                }
                last_full = Some(full);
            }
            let Some(last) = of_expression.last_mut() else {
                continue;
            };
            let n_failing = shown.n_failing;
            if n_failing > 0
                && let Some(full) = last_full
            {
                // What is said of all kinds stands below a place in the source, and not as a part of a message.
                *last = full;
            }
            let _ = match n_failing {
                0 => Ok(()),
                1 if n_wildcard == 1 => {
                    writeln!(
                        last,
                        "the one kind that the wildcards match cannot be evaluated so"
                    )
                }
                n if n == n_wildcard => writeln!(
                    last,
                    "none of the {n} kinds that the wildcards match can be evaluated so"
                ),
                1 => writeln!(
                    last,
                    "the one kind of the wildcards that comes to this cannot be evaluated so"
                ),
                n => writeln!(
                    last,
                    "none of the {n} kinds of the wildcards that come to this can be evaluated so"
                ),
            };
            texts.insert(n, of_expression);
        }
        texts
    }

    /// Finds the tests for a field that no kind has.
    fn find_vain_tests(&mut self) {
        let mut vain: Vec<(usize, usize, Issue)> = Vec::new();
        for (k, kind) in self.kinds.iter().enumerate() {
            for (n, id, field) in &kind.judged.absent {
                let has_field = |kind: &Kind| kind.judged.present.contains(&(*n, *id));
                if self.kinds.iter().any(has_field) {
                    continue;
                }
                let issue = Issue {
                    id: *id,
                    code: Code::UndefinedField,
                    message: format!(
                        "undefined field '{field}': no kind that the rules match has it, so that has() is \
                         always false"
                    ),
                };
                vain.push((k, *n, issue));
            }
        }
        for (k, n, issue) in vain {
            if let Some(kind) = self.kinds.get_mut(k)
                && !kind.vain.contains(&(n, issue.clone()))
            {
                kind.vain.push((n, issue));
            }
        }
    }
}

impl Kind {
    fn is_refused(&self, n: usize) -> bool {
        matches!(self.finding(n), Some(Finding::Refused(_)))
    }

    fn finding(&self, n: usize) -> Option<&Finding> {
        let mut found = self.judged.found.iter();
        let (_, finding) = found.find(|(known, _)| *known == n)?;
        Some(finding)
    }

    /// The text about the expression of the index `n`, with `finding`; empty where there is nothing to say.
    fn text(&self, n: usize, expression: &PolicyExpression, finding: Option<&Finding>) -> String {
        let mut parts = Vec::new();
        parts.extend(finding.map(|finding| finding.render(expression)));
        let vain = self.vain.iter().filter(|(known, _)| *known == n);
        let vain: Vec<_> = vain.map(|(_, issue)| issue.clone()).collect();
        if !vain.is_empty() {
            let text = Finding::Issues(vain).render(expression);
            // Each finding begins with its severity.
            let lines = text
                .lines()
                .map(|line| match line.strip_prefix("ERROR: <input>:") {
                    Some(rest) => format!("WARNING: <input>:{rest}"),
                    None => line.to_owned(),
                });
            parts.push(lines.collect::<Vec<_>>().join("\n"));
        }
        parts.join("\n")
    }
}

/// What is shown of one expression for the kinds of wildcards.
#[derive(Default)]
struct Shown {
    n_failing: usize,
    n_bytes: usize,
    /// The places that were shown, as they are in the source.
    places: Vec<String>,
}

impl Shown {
    /// The text to show: the places in the source are shown for the first kind only, and all kinds for which
    /// there is room.
    fn add(&mut self, text: String, fails: bool, is_refused: bool) -> Option<String> {
        self.n_failing += usize::from(fails);
        let is_place = |line: &&str| line.starts_with(" | ");
        let place = text.lines().filter(is_place).collect::<Vec<_>>().join("\n");
        let text = if self.places.contains(&place) {
            let rest: Vec<_> = text.lines().filter(|line| !is_place(line)).collect();
            rest.join("\n")
        } else {
            if self.places.len() < MAX_PLACES {
                self.places.push(place);
            }
            text
        };
        // What the API server refuses, it refuses whatever the kind.
        self.n_bytes += if is_refused {
            MAX_SHOWN_BYTES / 2 + 1
        } else {
            text.len()
        };
        (self.n_bytes <= MAX_SHOWN_BYTES).then_some(text)
    }
}

/// Adds what `visited` has.
fn merge(known: &mut Vec<bool>, visited: Vec<bool>) {
    if known.is_empty() {
        *known = visited;
    } else {
        for (known, visited) in known.iter_mut().zip(visited) {
            *known |= visited;
        }
    }
}
