//! From what was found for each kind to the warnings of a policy.
//!
//! - A rule that names a kind means that kind: what cannot be evaluated for it is warned about.
//! - A wildcard means any kind: that an expression asks for what some of them lack is no trouble as long as
//!   it can be evaluated for one, or for one that could not be looked at.
//! - A test for a field fails for no kind; but where no kind has the field it is never true, which is
//!   hardly meant. That is told by `WARNING` in place of `ERROR`.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use super::compile::CompiledPolicy;
use super::expressions::{PolicyExpression, TextLeft};
use super::flow::Issue;
use super::truthful::{Finding, Judged};
use crate::cel::diagnostic::Code;
use crate::schema::Gvk;

/// How long a warning may become by kinds that wildcards match, in bytes.
const MAX_SHOWN_BYTES: usize = 32 * 1024;

/// What was found for all kinds.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    kinds: Vec<Kind>,
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
    pub(super) fn add(&mut self, gvk: Gvk, is_by_wildcard: bool, judged: Judged) {
        self.kinds.push(Kind {
            gvk,
            is_by_wildcard,
            judged,
            vain: BTreeMap::new(),
        });
    }

    /// The texts about each expression, by its index; `is_complete` tells whether all kinds were looked at.
    pub(super) fn into_texts(
        mut self,
        policy: &CompiledPolicy,
        is_complete: bool,
    ) -> BTreeMap<usize, Vec<String>> {
        if is_complete {
            self.find_vain_tests();
        }
        self.kinds.sort_by(|left, right| left.gvk.cmp(&right.gvk));
        let n_wildcard = self.kinds.iter().filter(|kind| kind.is_by_wildcard).count();
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let text_left = TextLeft::default();
        for (n, expression) in policy.expressions().iter().enumerate() {
            let failing = self.kinds.iter().filter(|kind| kind.is_by_wildcard);
            let n_failing = failing.filter(|kind| kind.fails(n)).count();
            // What the API server refuses, it refuses whatever the kind.
            let mut refused = self.kinds.iter().filter(|kind| kind.is_by_wildcard);
            let is_refused = refused.any(|kind| kind.is_refused(n));
            let is_hopeless =
                n_failing > 0 && n_failing == n_wildcard && (is_complete || is_refused);
            let mut n_shown_bytes = 0;
            let mut of_expression: Vec<String> = Vec::new();
            let mut n_left_out = 0;
            for kind in &self.kinds {
                let shows_failure = !kind.is_by_wildcard || is_hopeless;
                if kind.is_by_wildcard && n_shown_bytes > MAX_SHOWN_BYTES {
                    continue;
                }
                if !of_expression.is_empty() && text_left.is_used_up() {
                    n_left_out += usize::from(kind.says_something(n, shows_failure));
                    continue;
                }
                let text = kind.text(n, expression, shows_failure, &text_left);
                if text.is_empty() {
                    continue;
                }
                if kind.is_by_wildcard {
                    // What the API server refuses, it refuses whatever the kind.
                    n_shown_bytes += if kind.is_refused(n) {
                        MAX_SHOWN_BYTES / 2 + 1
                    } else {
                        text.len()
                    };
                }
                let fits = !kind.is_by_wildcard || n_shown_bytes <= MAX_SHOWN_BYTES;
                if fits || of_expression.is_empty() {
                    of_expression.push(format!("{}: {text}\n", kind.gvk));
                }
            }
            let Some(last) = of_expression.last_mut() else {
                continue;
            };
            if n_left_out > 0 {
                let _ = writeln!(last, "what is said of {n_left_out} more kinds is left out");
            }
            match n_wildcard {
                _ if !is_hopeless => {}
                1 => *last += "the one kind that the wildcards match cannot be evaluated so\n",
                n => {
                    let _ = writeln!(
                        last,
                        "none of the {n} kinds that the wildcards match can be evaluated so"
                    );
                }
            }
            texts.insert(n, of_expression);
        }
        texts
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
    fn fails(&self, n: usize) -> bool {
        self.judged.fails(n)
    }

    fn is_refused(&self, n: usize) -> bool {
        matches!(self.judged.found.get(&n), Some(Finding::Refused(_)))
    }

    /// Whether there is something to say about the expression of the index `n`.
    fn says_something(&self, n: usize, shows_failure: bool) -> bool {
        shows_failure && self.fails(n) || self.vain.contains_key(&n)
    }

    /// The text about the expression of the index `n`; empty where there is nothing to say.
    fn text(
        &self,
        n: usize,
        expression: &PolicyExpression,
        shows_failure: bool,
        text_left: &TextLeft,
    ) -> String {
        let mut parts = Vec::new();
        if let Some(finding) = self.judged.found.get(&n)
            && shows_failure
        {
            parts.push(finding.render(expression, text_left));
        }
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
