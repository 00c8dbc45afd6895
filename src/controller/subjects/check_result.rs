//! Results of checks, with the inputs that determine how long a result is valid.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::generation::Generation;
use crate::cluster::blocking::Kind;
use crate::cluster::openapi::Index;
use crate::controller::cluster::schemas::Missing;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::policy::compile::CompileFinding;
use crate::schema::GroupVersion;
use crate::status::compute::{CheckStep, Deadline, MatchSummary, TypeSummary};

/// A lane of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// All policies at first.
    Quick,
    /// Policies that gave way to others.
    Deferred,
    /// Policies that take seconds.
    Slow,
}

impl Lane {
    /// The threads for its checks.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Quick => Kind::Check,
            Self::Deferred => Kind::DeferredCheck,
            Self::Slow => Kind::SlowCheck,
        }
    }

    /// The name of its task.
    pub(crate) const fn task(self) -> &'static str {
        match self {
            Self::Quick => "workers",
            Self::Deferred => "deferred-checks",
            Self::Slow => "slow-checks",
        }
    }
}

/// Result of checking one generation of a policy.
#[derive(Debug)]
pub(crate) struct CheckResult {
    generation: Generation,
    /// The revision of the resources that it was matched with, where it was.
    revision: Option<u64>,
    /// The documents that it asked for, by group version; policies that ask for the same share them.
    group_versions: Arc<BTreeSet<GroupVersion>>,
    /// A hash of their addresses at that time.
    addresses: u64,
    /// The documents of them that could not be had.
    missing: Vec<Missing>,
    pub(crate) outcome: CheckOutcome,
}

/// How a check ended.
#[derive(Debug)]
pub(crate) enum CheckOutcome {
    /// It ran to its end.
    Done {
        findings: Vec<CompileFinding>,
        n_expressions: usize,
        matched: MatchSummary,
        typed: TypeSummary,
        /// Documents that could not be had, with the reason.
        waiting: Vec<(String, String)>,
    },
    /// It panicked; what its rules match may be known.
    Panicked { matched: Option<MatchSummary> },
    /// It exceeded its deadline.
    DeadlineExceeded {
        /// The step that was not finished.
        late: LateStep,
        /// The findings of compiling with the number of expressions, unless that was not finished.
        compiled: Option<(Vec<CompileFinding>, usize)>,
        /// The matches of the rules, unless these were not matched.
        matched: Option<MatchSummary>,
    },
}

/// A step of a check that was not finished in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateStep {
    step: CheckStep,
    pub(crate) late: Late,
}

/// Work that was not finished in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// The field that was worked on.
    pub(crate) field: Option<String>,
    pub(crate) limit: Duration,
    /// The lane in which it is to be tried again. `None` if it is not.
    pub(crate) next: Option<Lane>,
    pub(crate) is_stuck: bool,
}

impl Late {
    /// The same as of `step`.
    pub(crate) const fn of(self, step: CheckStep) -> LateStep {
        LateStep { step, late: self }
    }
}

impl LateStep {
    /// The deadline as the status reports it.
    pub(crate) fn deadline(&self) -> Deadline<'_> {
        Deadline {
            limit: self.late.limit,
            step: self.step,
            field: self.late.field.as_deref(),
        }
    }
}

impl CheckResult {
    /// Returns the result of a check that needed the documents `group_versions` of `index`, without those that are
    /// `missing`. The `revision` is that of the served resources, if it was matched with them.
    pub(crate) fn new(
        generation: Generation,
        revision: Option<u64>,
        (group_versions, index): (Arc<BTreeSet<GroupVersion>>, &Index),
        missing: Vec<Missing>,
        outcome: CheckOutcome,
    ) -> Self {
        Self {
            generation,
            revision,
            addresses: addresses(&group_versions, index),
            group_versions,
            missing,
            outcome,
        }
    }

    /// Returns the result of a check of a CustomResourceDefinition, which depends on nothing else.
    pub(crate) fn of_definition(generation: Generation, outcome: CheckOutcome) -> Self {
        let documents = (Arc::default(), &Index::default());
        Self::new(generation, None, documents, Vec::new(), outcome)
    }

    /// Reports whether it is about this very generation of the policy.
    pub(crate) fn is_of(&self, generation: &Generation) -> bool {
        self.generation == *generation
    }

    /// Returns true if a check of this generation in `snapshot` would have the same result.
    pub(crate) fn holds_for(&self, generation: &Generation, snapshot: &ClusterSnapshot) -> bool {
        self.is_of(generation)
            && self.missing.iter().all(Missing::is_still_missing)
            && self.is_current_in(snapshot)
    }

    /// Reports whether everything that the result depends on is unchanged in `snapshot`.
    pub(crate) fn is_current_in(&self, snapshot: &ClusterSnapshot) -> bool {
        self.revision
            .is_none_or(|revision| revision == snapshot.revision)
            && self.addresses == addresses(&self.group_versions, &snapshot.index)
    }

    /// The group versions whose schemas it depends on.
    pub(crate) fn group_versions(&self) -> &Arc<BTreeSet<GroupVersion>> {
        &self.group_versions
    }

    /// Reports whether its messages suggest resources in place of those that are not served.
    pub(crate) fn has_suggestions(&self) -> bool {
        match &self.outcome {
            CheckOutcome::Done { matched, .. } => !matched.unserved.is_empty(),
            CheckOutcome::Panicked { matched } | CheckOutcome::DeadlineExceeded { matched, .. } => {
                let matched = matched.as_ref();
                matched.is_some_and(|matched| !matched.unserved.is_empty())
            }
        }
    }
}

/// A hash of the addresses of documents.
fn addresses(group_versions: &BTreeSet<GroupVersion>, index: &Index) -> u64 {
    let mut hasher = DefaultHasher::new();
    for gv in group_versions {
        index.get(gv).hash(&mut hasher);
    }
    hasher.finish()
}
