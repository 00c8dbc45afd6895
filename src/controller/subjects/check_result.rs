//! Results of checks, with their inputs. A result is valid until one of its inputs changes.

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
use crate::version::KubernetesVersion;

/// The queue and time limit of a check. See [`super::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The lane in which each policy is checked first.
    Quick,
    /// For checks that were interrupted because other policies were waiting.
    Deferred,
    /// For checks that take seconds.
    Slow,
}

impl Lane {
    /// Returns the kind of threads for the checks of this lane.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Quick => Kind::Check,
            Self::Deferred => Kind::DeferredCheck,
            Self::Slow => Kind::SlowCheck,
        }
    }

    /// Returns the name of the lane's task for the supervisor.
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
    /// The revision of the resources with which the rules were matched. `None` if the result does not depend on
    /// resources.
    revision: Option<u64>,
    /// The version of the API server. `None` if the result does not depend on the version, or if `revision` is set,
    /// since the revision changes with the version.
    version: Option<KubernetesVersion>,
    /// The group versions whose schemas the check needed. Policies with equal sets share one set.
    group_versions: Arc<BTreeSet<GroupVersion>>,
    /// A hash of the URLs of the documents of `group_versions`.
    addresses: u64,
    /// The documents that were unavailable during the check.
    missing: Vec<Missing>,
    pub(crate) outcome: CheckOutcome,
}

#[derive(Debug)]
pub(crate) enum CheckOutcome {
    Done {
        findings: Vec<CompileFinding>,
        n_expressions: usize,
        matched: MatchSummary,
        typed: TypeSummary,
        /// The group versions of unavailable documents, with the reason.
        waiting: Vec<(String, String)>,
    },
    /// The check panicked. `matched` is known if matching was complete.
    Panicked { matched: Option<MatchSummary> },
    DeadlineExceeded {
        late: LateStep,
        /// The findings of compilation and the number of expressions, if compilation was complete.
        compiled: Option<(Vec<CompileFinding>, usize)>,
        /// The resources that the rules match, if matching was complete.
        matched: Option<MatchSummary>,
    },
}

/// The step of a check that exceeded its time limit, and the details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateStep {
    step: CheckStep,
    pub(crate) late: Late,
}

/// The details of a step that was interrupted by its time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// The field of the policy that was processed when the limit was exceeded.
    pub(crate) field: Option<String>,
    pub(crate) limit: Duration,
    /// The lane of the next attempt. `None` if there is no further attempt.
    pub(crate) next: Option<Lane>,
    pub(crate) is_stuck: bool,
}

impl Late {
    pub(crate) const fn with_step(self, step: CheckStep) -> LateStep {
        LateStep { step, late: self }
    }
}

impl LateStep {
    /// Returns the exceeded deadline in the form that the status reports.
    pub(crate) fn deadline(&self) -> Deadline<'_> {
        Deadline {
            limit: self.late.limit,
            step: self.step,
            field: self.late.field.as_deref(),
        }
    }
}

impl CheckResult {
    /// Creates the result of a check that needed the documents of `group_versions` in `index`. The documents in
    /// `missing` were unavailable.
    ///
    /// `revision` is the revision of the served resources. `None` if the result does not depend on them.
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
            version: None,
            addresses: addresses(&group_versions, index),
            group_versions,
            missing,
            outcome,
        }
    }

    /// Creates the result for a CustomResourceDefinition. The result depends only on the generation and the version of
    /// the API server.
    pub(crate) fn from_definition(
        generation: Generation,
        version: KubernetesVersion,
        outcome: CheckOutcome,
    ) -> Self {
        let documents = (Arc::default(), &Index::default());
        Self {
            version: Some(version),
            ..Self::new(generation, None, documents, Vec::new(), outcome)
        }
    }

    pub(crate) fn is_of(&self, generation: &Generation) -> bool {
        self.generation == *generation
    }

    /// Returns true if a new check of `generation` in `snapshot` would have this result again.
    pub(crate) fn holds_for(&self, generation: &Generation, snapshot: &ClusterSnapshot) -> bool {
        self.is_of(generation)
            && self.missing.iter().all(Missing::is_still_missing)
            && self.is_current_in(snapshot)
    }

    /// Returns true if the resources and schemas on which the result depends are unchanged in `snapshot`.
    pub(crate) fn is_current_in(&self, snapshot: &ClusterSnapshot) -> bool {
        self.revision
            .is_none_or(|revision| revision == snapshot.revision)
            && self
                .version
                .is_none_or(|version| version == snapshot.server.version)
            && self.addresses == addresses(&self.group_versions, &snapshot.index)
    }

    /// Returns the group versions of the schemas on which the result depends.
    pub(crate) fn group_versions(&self) -> &Arc<BTreeSet<GroupVersion>> {
        &self.group_versions
    }

    /// Returns true if rules match resources that are not served. The messages about these rules suggest similar
    /// resources.
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

/// Returns a hash of the URLs of the documents of `group_versions`.
fn addresses(group_versions: &BTreeSet<GroupVersion>, index: &Index) -> u64 {
    let mut hasher = DefaultHasher::new();
    for gv in group_versions {
        index.get(gv).hash(&mut hasher);
    }
    hasher.finish()
}
