//! From what was found for each kind to the warnings of a policy.
//!
//! A rule that names a kind means that kind: what cannot be evaluated for it is warned about. A wildcard
//! means any kind: that an expression asks for what some of them lack is no trouble as long as it can be
//! evaluated for one. And a test for a field is no trouble as long as some kind has the field.

use std::collections::BTreeMap;

use super::compile::CompiledPolicy;
use super::flow::Issue;
use super::truthful::Judged;
use crate::cel::diagnostic::Code;
use crate::schema::Gvk;

/// The most kinds matched by wildcards that one warning speaks of.
const MAX_SHOWN: usize = 16;

/// What was found for all kinds.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    kinds: Vec<(Gvk, bool, Judged)>,
}

impl Verdicts {
    /// Adds what was found for objects of `gvk`.
    pub(super) fn add(&mut self, gvk: Gvk, is_wildcard: bool, judged: Judged) {
        self.kinds.push((gvk, is_wildcard, judged));
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
        self.kinds.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        let n_wildcard = self.kinds.iter().filter(|(_, wild, _)| *wild).count();
        let fails = |judged: &Judged, n: usize| judged.found.iter().any(|(known, _)| *known == n);
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (n, expression) in policy.expressions().iter().enumerate() {
            let n_failing = self
                .kinds
                .iter()
                .filter(|(_, wild, judged)| *wild && fails(judged, n))
                .count();
            let is_hopeless = n_failing > 0 && n_failing == n_wildcard;
            let mut n_shown = 0;
            let mut of_expression = Vec::new();
            for (gvk, is_wildcard, judged) in &self.kinds {
                let Some((_, finding)) = judged.found.iter().find(|(known, _)| *known == n) else {
                    continue;
                };
                if *is_wildcard {
                    n_shown += 1;
                    if !is_hopeless || n_shown > MAX_SHOWN {
                        continue;
                    }
                }
                of_expression.push(format!("{gvk}: {}\n", finding.render(expression)));
            }
            if of_expression.is_empty() {
                continue;
            }
            if is_hopeless && let Some(last) = of_expression.last_mut() {
                let what = match n_wildcard {
                    1 => "the one kind".to_owned(),
                    n => format!("none of the {n} kinds"),
                };
                let can = if n_wildcard == 1 { "cannot" } else { "can" };
                *last += &format!("{what} that the wildcards match {can} be evaluated so\n");
            }
            texts.insert(n, of_expression);
        }
        texts
    }

    /// Turns tests for a field into findings where no kind has the field.
    fn find_vain_tests(&mut self) {
        let mut vain: Vec<(usize, usize, Issue)> = Vec::new();
        for (k, (_, _, judged)) in self.kinds.iter().enumerate() {
            for (n, id, field) in &judged.absent {
                let is_present = |judged: &Judged| judged.present.contains(&(*n, *id));
                if self.kinds.iter().any(|(_, _, judged)| is_present(judged)) {
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
            if let Some((_, _, judged)) = self.kinds.get_mut(k) {
                judged.add_issue(n, issue);
            }
        }
    }
}
