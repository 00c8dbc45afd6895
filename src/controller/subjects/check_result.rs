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
    /// The first lane of each policy.
    Quick,
    /// Checks that yielded to others.
    Deferred,
    /// Checks that take seconds.
    Slow,
}

impl Lane {
    /// Returns the number of threads for its checks.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Quick => Kind::Check,
            Self::Deferred => Kind::DeferredCheck,
            Self::Slow => Kind::SlowCheck,
        }
    }

    /// Returns the name of its task.
    pub(crate) const fn task(self) -> &'static str {
        match self {
            Self::Quick => "workers",
            Self::Deferred => "deferred-checks",
            Self::Slow => "slow-checks",
        }
    }
}

/// The result of checking one generation of a policy.
#[derive(Debug)]
pub(crate) struct CheckResult {
    generation: Generation,
    /// The revision of the served resources that it was matched with. `None` if it was not matched.
    revision: Option<u64>,
    /// The needed documents by group version, shared by policies that need the same.
    group_versions: Arc<BTreeSet<GroupVersion>>,
    /// A hash of the addresses of these documents.
    addresses: u64,
    /// The unavailable documents.
    missing: Vec<Missing>,
    pub(crate) outcome: CheckOutcome,
}

/// The end of a check.
#[derive(Debug)]
pub(crate) enum CheckOutcome {
    /// It completed.
    Done {
        findings: Vec<CompileFinding>,
        n_expressions: usize,
        matched: MatchSummary,
        typed: TypeSummary,
        /// The unavailable documents, with the reason.
        waiting: Vec<(String, String)>,
    },
    /// It panicked. The matches of its rules may be known.
    Panicked { matched: Option<MatchSummary> },
    /// It exceeded its deadline.
    DeadlineExceeded {
        /// The unfinished step.
        late: LateStep,
        /// The findings of compilation with the number of expressions, if compilation finished.
        compiled: Option<(Vec<CompileFinding>, usize)>,
        /// The matches of the rules, if matching finished.
        matched: Option<MatchSummary>,
    },
}

/// A step of a check that did not finish in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateStep {
    step: CheckStep,
    pub(crate) late: Late,
}

/// Work that did not finish in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// The field in progress.
    pub(crate) field: Option<String>,
    pub(crate) limit: Duration,
    /// The lane of the next attempt. `None` if there is none.
    pub(crate) next: Option<Lane>,
    pub(crate) is_stuck: bool,
}

impl Late {
    /// Adds the step.
    pub(crate) const fn of(self, step: CheckStep) -> LateStep {
        LateStep { step, late: self }
    }
}

impl LateStep {
    /// Returns the deadline for the status.
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

    /// Returns true if the result is about the current generation of the policy.
    pub(crate) fn is_of(&self, generation: &Generation) -> bool {
        self.generation == *generation
    }

    /// Returns true if a check of this generation in `snapshot` would have the same result.
    pub(crate) fn holds_for(&self, generation: &Generation, snapshot: &ClusterSnapshot) -> bool {
        self.is_of(generation)
            && self.missing.iter().all(Missing::is_still_missing)
            && self.is_current_in(snapshot)
    }

    /// Returns true if all inputs of the result are unchanged in `snapshot`.
    pub(crate) fn is_current_in(&self, snapshot: &ClusterSnapshot) -> bool {
        self.revision
            .is_none_or(|revision| revision == snapshot.revision)
            && self.addresses == addresses(&self.group_versions, &snapshot.index)
    }

    /// Returns the group versions of the schemas that the result depends on.
    pub(crate) fn group_versions(&self) -> &Arc<BTreeSet<GroupVersion>> {
        &self.group_versions
    }

    /// Returns true if its messages suggest resources for those that are not served.
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

/// Returns a hash of the addresses of documents.
fn addresses(group_versions: &BTreeSet<GroupVersion>, index: &Index) -> u64 {
    let mut hasher = DefaultHasher::new();
    for gv in group_versions {
        index.get(gv).hash(&mut hasher);
    }
    hasher.finish()
}
