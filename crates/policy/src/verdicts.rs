//! From what was found for each kind to the warnings of a policy.
//!
//! - A rule that names a kind means that kind: what cannot be evaluated for it is warned about.
//! - A wildcard means any kind: that an expression asks for what some of them lack is no trouble as long as
//!   the whole can be evaluated for one that comes to it, be it one that could not be looked at. What only
//!   fails (`object.kind == 'Pod' ? object.spec.contianers.size() > 0 : true`) is trouble.
//! - A test for a field fails for no kind; but where no kind has the field it is never true, which is
//!   hardly meant. That is told by `WARNING` in place of `ERROR`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use super::compile::CompiledPolicy;
use super::expressions::{PolicyExpression, TextLeft};
use super::flow::Issue;
use super::truthful::{self, Finding, Judged};
use cel::ast::ExprId;
use cel::diagnostic::Code;
use kubernetes::schema::Gvk;

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
    vain: BTreeMap<usize, Vec<Issue>>,
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
            vain: BTreeMap::new(),
        });
    }

    /// Adds what a kind that wildcards match, and that is not shown, comes to without trouble.
    pub(super) fn add_sound(&mut self, judged: &mut Judged) {
        for (n, visited) in std::mem::take(&mut judged.visited) {
            if judged.fails(n) {
                continue;
            }
            let sound = self.sound.entry(n).or_default();
            truthful::add_visited(sound, &visited);
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
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let text_left = TextLeft::default();
        for (n, expression) in policy.expressions().iter().enumerate() {
            let of_expression = self.texts_of(n, expression, scope, &text_left);
            if !of_expression.is_empty() {
                texts.insert(n, of_expression);
            }
        }
        texts
    }

    /// The texts about the expression of the index `n`, one a kind, below the last what is true of all.
    fn texts_of(
        &self,
        n: usize,
        expression: &PolicyExpression,
        scope: Scope,
        text_left: &TextLeft,
    ) -> Vec<String> {
        let mut shown = Shown::default();
        let mut texts: Vec<String> = Vec::new();
        let mut last_full = None;
        let mut n_left_out = 0;
        for kind in &self.kinds {
            let finding = self.told(kind, n, scope);
            if finding.is_none() && !kind.vain.contains_key(&n) {
                continue;
            }
            if kind.is_by_wildcard {
                shown.n_failing += usize::from(finding.is_some());
                if shown.is_full() {
                    continue;
                }
            }
            if !texts.is_empty() && text_left.is_used_up() {
                n_left_out += 1;
                continue;
            }
            let text = kind.text(n, expression, finding.as_deref(), text_left);
            let full = format!("{}: {text}\n", kind.gvk);
            let shown = if kind.is_by_wildcard {
                let text = shown.add(text, kind.is_refused(n));
                text.map(|text| format!("{}: {text}\n", kind.gvk))
            } else {
                Some(full.clone())
            };
            // The first is shown however long it is.
            if let Some(text) = shown.or_else(|| texts.is_empty().then(|| full.clone())) {
                texts.push(text);
                last_full = Some(full);
            }
        }
        let mut in_common = String::new();
        if n_left_out > 0 {
            let _ = writeln!(
                in_common,
                "what is said of {n_left_out} more kinds is left out"
            );
        }
        in_common += &self.of_wildcards(shown.n_failing);
        if !in_common.is_empty()
            && let (Some(last), Some(full)) = (texts.last_mut(), last_full)
        {
            // It stands below a place in the source, and not as a part of a message.
            *last = full + &in_common;
        }
        texts
    }

    /// What is said of `n_failing` kinds of wildcards together.
    fn of_wildcards(&self, n_failing: usize) -> String {
        let n_all = self.kinds.iter().filter(|kind| kind.is_by_wildcard).count();
        match n_failing {
            0 => String::new(),
            1 if n_all == 1 => {
                "the one kind that the wildcards match cannot be evaluated so\n".to_owned()
            }
            n if n == n_all => {
                format!("none of the {n} kinds that the wildcards match can be evaluated so\n")
            }
            1 => "the one kind of the wildcards that comes to this cannot be evaluated so\n"
                .to_owned(),
            n => format!(
                "none of the {n} kinds of the wildcards that come to this can be evaluated so\n"
            ),
        }
    }

    /// What is told of `kind` about the expression of the index `n`: of a kind of wildcards what fails
    /// wherever it is evaluated, and only where all kinds are known.
    fn told<'a>(&self, kind: &'a Kind, n: usize, scope: Scope) -> Option<Cow<'a, Finding>> {
        match kind.judged.found.get(&n)? {
            Finding::Issues(issues) if kind.is_by_wildcard => {
                let hopeless = issues.iter().filter(|issue| !self.is_sound(n, issue.id));
                let hopeless: Vec<_> = hopeless.cloned().collect();
                let is_told = scope != Scope::Partial && !hopeless.is_empty();
                is_told.then_some(Cow::Owned(Finding::Issues(hopeless)))
            }
            finding => Some(Cow::Borrowed(finding)),
        }
    }

    /// Finds the tests for a field that no kind has.
    fn find_vain_tests(&mut self) {
        let present = self.kinds.iter().flat_map(|kind| &kind.judged.present);
        let present: HashSet<_> = present.copied().collect();
        for kind in &mut self.kinds {
            let mut told = HashSet::new();
            for (n, id, field) in &kind.judged.absent {
                if present.contains(&(*n, *id)) || !told.insert((*n, *id, field)) {
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
                kind.vain.entry(*n).or_default().push(issue);
            }
        }
    }
}

impl Kind {
    fn is_refused(&self, n: usize) -> bool {
        matches!(self.judged.found.get(&n), Some(Finding::Refused(_)))
    }

    /// The text about the expression of the index `n`, with `finding`; empty where there is nothing to say.
    fn text(
        &self,
        n: usize,
        expression: &PolicyExpression,
        finding: Option<&Finding>,
        text_left: &TextLeft,
    ) -> String {
        let mut parts = Vec::new();
        parts.extend(finding.map(|finding| finding.render(expression, text_left)));
        if let Some(vain) = self.vain.get(&n) {
            let text = Finding::Issues(vain.clone()).render(expression, text_left);
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
    /// Whether there is no room for another kind.
    fn is_full(&self) -> bool {
        self.n_bytes > MAX_SHOWN_BYTES
    }

    /// The text to show, where there is room for it: the places in the source are shown for the first kind only.
    fn add(&mut self, text: String, is_refused: bool) -> Option<String> {
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
        (!self.is_full()).then_some(text)
    }
}
