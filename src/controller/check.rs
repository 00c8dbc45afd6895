//! Checking one policy: compile, match, fetch the schemas that are needed, type-check.
//!
//! What a policy contains is a stranger's: the work runs apart from the tasks that answer for our
//! health, and a panic in it costs this policy its verdict and nobody else anything. Its outcome is
//! kept with everything that it depends on, so that a look at an unchanged policy costs nothing.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::time::Instant;

use super::admission_cache::AdmissionCache;
use super::blocking;
use super::cluster_snapshot::ClusterSnapshot;
use super::generation::Generation;
use super::match_cache::MatchCache;
use super::openapi::Index;
use super::schemas::{Asked, Missing, SchemaCache, Schemas};
use super::store::{Body, Entry};
use crate::policy;
use crate::policy::admission::Admission;
use crate::policy::analysis::{Profile, TypeCheck, kinds_to_check, type_check_matched};
use crate::policy::compile::{CompileFinding, CompiledPolicy};
use crate::policy::matching::{self, RuleMatches, describing};
use crate::policy::webhooks;
use crate::schema::GroupVersion;
use crate::schema::rest_mapper::RestMapper;
use crate::status::compute::{Matched, Typed};
use crate::telemetry::Metrics;

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
        matched: Matched,
        typed: Typed,
        /// Documents that could not be had, with the reason.
        waiting: Vec<(String, String)>,
    },
    /// It panicked; what its rules match may be known.
    Panicked { matched: Option<Matched> },
}

impl CheckResult {
    /// The result of judging a CustomResourceDefinition, which depends on nothing beside.
    pub(crate) fn of_definition(entry: &Entry, outcome: CheckOutcome) -> Self {
        let group_versions = Arc::default();
        Self {
            generation: entry.generation(),
            revision: None,
            addresses: addresses(&group_versions, &Index::default()),
            group_versions,
            missing: Vec::new(),
            outcome,
        }
    }

    /// Reports whether it is about this very generation of the policy.
    pub(crate) fn is_of(&self, generation: &Generation) -> bool {
        self.generation == *generation
    }

    /// Reports whether a check of `entry` in `snapshot` would have the same result.
    pub(crate) fn holds_for(&self, entry: &Entry, snapshot: &ClusterSnapshot) -> bool {
        self.is_of(&entry.generation())
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
            CheckOutcome::Done { matched, .. }
            | CheckOutcome::Panicked {
                matched: Some(matched),
            } => !matched.unserved.is_empty(),
            CheckOutcome::Panicked { matched: None } => false,
        }
    }
}

/// A policy, or a webhook that is read as one, compiled and matched.
struct Part {
    compiled: CompiledPolicy,
    matches: Arc<RuleMatches>,
    /// The name and the place of a webhook, with what of its matches API servers ask webhooks about.
    webhook: Option<(usize, String, Matched)>,
}

impl Part {
    fn type_checked(&self, schemas: &Schemas, profile: Profile) -> TypeCheck {
        type_check_matched(&self.compiled, &self.matches, schemas, profile)
    }

    fn findings(&self) -> Vec<CompileFinding> {
        let mut findings = self.compiled.findings().to_vec();
        if let Some((n, _, _)) = &self.webhook {
            for finding in &mut findings {
                finding.field_ref = webhooks::of_field(*n, &finding.field_ref);
            }
        }
        findings
    }
}

/// The outcome of type checking all parts.
fn typed(parts: &[Part], schemas: &Schemas, profile: Profile) -> Typed {
    match parts {
        [part] if part.webhook.is_none() => Typed::from(part.type_checked(schemas, profile)),
        parts => {
            let parts = parts.iter();
            Typed::of_webhooks(
                parts
                    .map(|part| part.type_checked(schemas, profile))
                    .collect(),
            )
        }
    }
}

/// Kinds that the rules of all parts match.
fn matched(parts: &[Part]) -> Matched {
    match parts {
        [
            Part {
                webhook: None,
                matches,
                ..
            },
        ] => Matched::from(matches.matches()),
        parts => Matched::of_webhooks(
            parts
                .iter()
                .filter_map(|part| part.webhook.as_ref())
                .map(|(_, name, matched)| (name.clone(), matched.clone()))
                .collect(),
        ),
    }
}

/// A policy compiled and matched, or the webhooks of a configuration.
struct Examined {
    parts: Vec<Part>,
    group_versions: BTreeSet<GroupVersion>,
    /// Its type check, where its schemas were there already.
    checked: Option<TypeChecked>,
}

/// Result of a type check; `None` if it panicked.
struct TypeChecked(Option<Typed>);

/// Checks the policy `entry` in `snapshot`.
///
/// Where `admissions` are given, the policy is made ready there too, unless it is: it has probes, and need
/// not be parsed once more for them.
///
/// The answer is `None` where schemas are on their way; the policy is put into the queue when they are there.
pub(crate) async fn check(
    entry: &Entry,
    snapshot: &ClusterSnapshot,
    schemas: &SchemaCache,
    match_cache: &Arc<MatchCache>,
    profile: Profile,
    metrics: &Metrics,
    admissions: Option<Arc<AdmissionCache>>,
) -> Result<Option<CheckResult>, Interrupted> {
    let result = |group_versions: BTreeSet<GroupVersion>, missing, outcome| CheckResult {
        generation: entry.generation(),
        revision: Some(snapshot.revision),
        addresses: addresses(&group_versions, &snapshot.index),
        group_versions: schemas.shared(group_versions),
        missing,
        outcome,
    };
    let name = entry.key.as_str();
    // Upstream checks no mutating policies, so that there are no answers of its to give.
    let profile = match entry.body {
        Some(_) => Profile::Truthful,
        None => profile,
    };

    let (subject, mapper) = (entry.clone(), Arc::clone(&snapshot.mapper));
    let (known, index) = (schemas.clone(), Arc::clone(&snapshot.index));
    let match_cache = Arc::clone(match_cache);
    metrics.policy_compiled();
    let examined = guard(name, metrics, move || {
        let (parts, group_versions) =
            parts_of(&subject, profile, (&mapper, &match_cache), admissions);
        // Mostly they are there, and the thread need not be left and taken again.
        let schemas = known.loaded(&subject.key, &group_versions, &index);
        let checked = schemas.map(|schemas| {
            let typed = || typed(&parts, &schemas, profile);
            // What its rules match is known all the same.
            TypeChecked(catch_unwind(AssertUnwindSafe(typed)).ok())
        });
        Examined {
            parts,
            group_versions,
            checked,
        }
    });
    let Some(Examined {
        parts,
        group_versions,
        checked,
    }) = examined.await?
    else {
        let outcome = CheckOutcome::Panicked { matched: None };
        return Ok(Some(result(BTreeSet::new(), Vec::new(), outcome)));
    };
    let findings = parts.iter().flat_map(Part::findings).collect();
    let n_expressions = parts.iter().map(|part| part.compiled.n_expressions()).sum();
    let matched = matched(&parts);

    let mut waiting = Vec::new();
    let mut missing = Vec::new();
    let typed = if let Some(TypeChecked(typed)) = checked {
        if typed.is_none() {
            panicked(name, metrics);
        }
        typed
    } else {
        let asked = schemas.get(name, &group_versions, &snapshot.index).await;
        let Asked::There(schemas) = asked else {
            return Ok(None);
        };
        for (gv, without) in &schemas.waiting {
            waiting.push((gv.to_string(), without.reason.clone()));
        }
        missing.extend(schemas.guards().cloned());
        guard(name, metrics, move || typed(&parts, &schemas, profile)).await?
    };
    let outcome = match typed {
        Some(typed) => CheckOutcome::Done {
            findings,
            n_expressions,
            matched,
            typed,
            waiting,
        },
        None => CheckOutcome::Panicked {
            matched: Some(matched),
        },
    };
    Ok(Some(result(group_versions, missing, outcome)))
}

/// The parts of `entry`, with the group versions whose schemas it takes to check them.
fn parts_of(
    entry: &Entry,
    profile: Profile,
    (mapper, match_cache): (&Arc<RestMapper>, &MatchCache),
    admissions: Option<Arc<AdmissionCache>>,
) -> (Vec<Part>, BTreeSet<GroupVersion>) {
    if let Some(Body::Webhooks(webhooks)) = &entry.body {
        let webhooks = webhooks.iter().enumerate();
        let parts = webhooks.map(|(n, webhook)| {
            let matches = match_cache.get(webhook, mapper);
            let (asked, reviews) = matching::asked_of_webhook(webhook, matches.matches());
            let mut matched = Matched::from(&asked);
            let by_wildcard = reviews.iter().filter(|review| review.by_wildcard);
            matched.n_resources = matched.n_resources.saturating_add(reviews.len());
            matched.n_by_wildcard = matched.n_by_wildcard.saturating_add(by_wildcard.count());
            let name = webhook.metadata.name.clone().unwrap_or_default();
            Part {
                compiled: CompiledPolicy::of_parts(webhook, None),
                matches,
                webhook: Some((n, name, matched)),
            }
        });
        let parts: Vec<Part> = parts.collect();
        let group_versions = parts.iter().flat_map(|part| part.matches.group_versions());
        let group_versions = group_versions.cloned().collect();
        return (parts, group_versions);
    }
    let policy = &*entry.policy;
    let mutations = entry.body.as_ref().map(Body::mutations);
    let compiled = CompiledPolicy::of_parts(policy, mutations);
    if let Some(admissions) = admissions
        && entry.body.is_none()
        && admissions.get(policy).is_none()
    {
        admissions.put(policy, Admission::from_compiled(&compiled));
    }
    let matches = match_cache.get(policy, mapper);
    let mut group_versions = match profile {
        Profile::Truthful => matches.group_versions().clone(),
        Profile::Upstream => {
            let kinds = kinds_to_check(&compiled, mapper, profile);
            describing(&kinds, matches.matches())
        }
    };
    group_versions.extend(policy::param_kind(policy).map(|gvk| gvk.group_version()));
    let part = Part {
        compiled,
        matches,
        webhook: None,
    };
    (vec![part], group_versions)
}

/// A hash of the addresses of documents.
fn addresses(group_versions: &BTreeSet<GroupVersion>, index: &Index) -> u64 {
    let mut hasher = DefaultHasher::new();
    for gv in group_versions {
        index.get(gv).hash(&mut hasher);
    }
    hasher.finish()
}

/// The process ends before the check did.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Runs a part of a check apart from everything else; `None` if it panicked.
pub(super) async fn guard<T: Send + 'static>(
    policy: &str,
    metrics: &Metrics,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, Interrupted> {
    let start = Instant::now();
    let outcome = blocking::run(blocking::Kind::Check, work).await;
    metrics.checked(start.elapsed().as_secs_f64());
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_panic() => {
            panicked(policy, metrics);
            Ok(None)
        }
        Err(_) => Err(Interrupted),
    }
}

/// Says and counts that a check panicked.
fn panicked(policy: &str, metrics: &Metrics) {
    metrics.check_panicked();
    tracing::error!(
        policy,
        "the check of this policy panicked; please report it"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_counted_and_contained() {
        let metrics = Metrics::new();
        let outcome = guard("a", &metrics, || -> u32 { panic!("hostile") })
            .await
            .unwrap();
        assert_eq!(outcome, None);
        assert_eq!(guard("a", &metrics, || 1).await.unwrap(), Some(1));
        let text = metrics.encode().unwrap();
        assert!(text.contains("vap_check_panics_total 1\n"), "{text}");
        assert!(
            text.contains("vap_check_duration_seconds_count 2\n"),
            "{text}"
        );
    }
}
