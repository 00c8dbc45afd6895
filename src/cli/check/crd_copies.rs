//! Handles inputs with several unequal copies of a CustomResourceDefinition, for example in a Helm chart and in a
//! kustomize directory.
//!
//! A policy is checked with the nearest copy of each definition. A finding about an undefined field becomes a note if
//! another copy defines the field.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::finding::{Finding, Severity};
use super::known::Known;
use super::names;
use super::policy::PolicyCheck;
use crate::cli::input::Object;
use crate::policy::rule::Rule;
use crate::schema::Crd;

/// Maximum number of combinations of copies for which schemas are built.
const MAX_COMBINATIONS: usize = 8;

/// The copies of a definition: the index of each copy in the list of all definitions, and its file.
type Copies = Vec<(usize, String)>;

/// The definitions with several unequal copies.
#[derive(Debug, Default)]
pub(super) struct CrdCopies {
    by_name: BTreeMap<String, Copies>,
    /// The APIs for each choice of copies other than the default choice. The default choice is the first copy of each
    /// definition. The key contains the indices of the chosen copies.
    known: Mutex<HashMap<Vec<usize>, Arc<Known>>>,
}

impl CrdCopies {
    pub(super) fn new<'o>(crds: impl Iterator<Item = &'o Object<Crd>>) -> Self {
        let mut all: BTreeMap<String, Vec<(usize, &Object<Crd>)>> = BTreeMap::new();
        for (n, crd) in crds.enumerate() {
            if let Some(name) = crd.name() {
                all.entry(name.to_owned()).or_default().push((n, crd));
            }
        }
        let different = all.into_iter().filter_map(|(name, crds)| {
            let mut copies: Vec<(usize, &Object<Crd>)> = Vec::new();
            for (n, crd) in crds {
                let is_equal = |(_, other): &(usize, &Object<Crd>)| {
                    other.value.definition() == crd.value.definition()
                };
                // Equal copies in different files are all kept, because any of them may be the nearest to a policy.
                let is_of_file =
                    |(_, other): &(usize, &Object<Crd>)| other.source.name == crd.source.name;
                if !copies.iter().any(|it| is_equal(it) && is_of_file(it)) {
                    copies.push((n, crd));
                }
            }
            let (_, first) = copies.first()?;
            let mut others = copies.iter().skip(1);
            others.find(|(_, other)| other.value.definition() != first.value.definition())?;
            let copies = copies.iter().map(|(n, crd)| (*n, crd.source.name.clone()));
            Some((name, copies.collect()))
        });
        Self {
            by_name: different.collect(),
            known: Mutex::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Checks a policy of `file` with the nearest copies. A finding about an undefined field becomes a note if another
    /// copy defines the field.
    pub(super) fn check(
        &self,
        base: &Known,
        file: &str,
        check: impl Fn(&Known) -> PolicyCheck,
    ) -> PolicyCheck {
        let nearest = self.nearest_copies(file);
        let apis = self.with(base, nearest.clone());
        let mut outcome = check(apis.as_deref().unwrap_or(base));
        self.compare(base, &nearest, &mut outcome.findings, |known| {
            check(known).findings
        });
        outcome
    }

    /// Returns, for each definition, the index of the copy that is nearest to a file.
    fn nearest_copies(&self, file: &str) -> Vec<usize> {
        let nearest = self.by_name.values().filter_map(|copies| {
            let distance = |copy: &&(usize, String)| names::distance(&copy.1, file);
            copies.iter().min_by_key(distance).map(|(n, _)| *n)
        });
        nearest.collect()
    }

    /// Returns the APIs with the chosen copies. `None` if `chosen` contains the first copy of each definition, or if
    /// there are too many combinations.
    fn with(&self, base: &Known, chosen: Vec<usize>) -> Option<Arc<Known>> {
        let firsts = self.by_name.values().filter_map(|copies| copies.first());
        if firsts.map(|(n, _)| n).eq(&chosen) {
            return None;
        }
        let mut cached = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cached.get(&chosen) {
            return Some(Arc::clone(known));
        }
        if cached.len() >= MAX_COMBINATIONS {
            return None;
        }
        let built = Arc::new(base.with_first_crds(&chosen).ok()?);
        cached.insert(chosen, Arc::clone(&built));
        Some(built)
    }

    /// Changes findings about undefined fields to notes if a copy other than `nearest` defines the field. `check`
    /// returns the findings for the given APIs.
    fn compare(
        &self,
        base: &Known,
        nearest: &[usize],
        findings: &mut [Finding],
        check: impl Fn(&Known) -> Vec<Finding>,
    ) {
        let is_undefined = |finding: &Finding| {
            finding.rule == Rule::UndefinedField && finding.severity != Severity::Note
        };
        let n_copies = self.by_name.values().map(Vec::len).max().unwrap_or(0);
        for n in 0..n_copies {
            if !findings.iter().any(is_undefined) {
                return;
            }
            let copies = || {
                self.by_name
                    .values()
                    .filter_map(|it| it.get(n).or(it.last()))
            };
            let chosen: Vec<usize> = copies().map(|(n, _)| *n).collect();
            if chosen == nearest {
                continue;
            }
            let apis = self.with(base, chosen);
            let with_others = check(apis.as_deref().unwrap_or(base));
            let key = |finding: &Finding| (finding.field_ref.clone(), finding.location.place);
            let remaining = with_others.iter();
            let remaining: Vec<_> = remaining.filter(|it| is_undefined(it)).map(key).collect();
            let mut others = copies().filter(|(n, _)| !nearest.contains(n));
            let other = others.next().map(|(_, file)| &**file);
            for finding in findings.iter_mut().filter(|it| is_undefined(it)) {
                if !remaining.contains(&key(finding)) {
                    finding.severity = Severity::Note;
                    finding.fix = None;
                    finding.consequence = None;
                    finding.help = Some(format!(
                        "another copy of the CustomResourceDefinition, in {}, has the field",
                        other.unwrap_or("the input")
                    ));
                }
            }
        }
    }
}
