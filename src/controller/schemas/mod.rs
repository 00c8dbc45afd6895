//! The schema cache: the types of the group versions that policies need, and no others.
//!
//! A document is fetched when a policy first asks for a kind of it, turned into types and dropped.
//! It is fetched again when its address in the index changes. However many policies ask at once, one
//! document is fetched once, by a task of its own ([`load`]). Who asks waits for a moment at most, as
//! documents of aggregated APIs come from servers that may hang: then it goes away, and its policy is put
//! into the queue when the document is there, or when it is not worth waiting for any more.

mod load;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::load::Loader;
use super::blocking;
use super::openapi::Index;
use super::queue::Queue;
use crate::policy::subject::SubjectId;
use crate::schema::decl_type::DeclType;
use crate::schema::error::SchemaError;
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::{GroupVersion, Gvk};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Lookup;

/// How long who asks for a document waits for it, from when it was first asked for.
const GRACE: Duration = Duration::from_millis(50);

/// How long a policy is not judged for want of documents that are on their way, where others of them are
/// on their way each time that it is looked at: an operator may be installing CRDs for minutes.
const MAX_PARKED: Duration = Duration::from_secs(5);

/// The types of one document, or why a kind has none.
pub(crate) type Types = HashMap<Gvk, Result<Arc<DeclType>, SchemaError>>;

/// Types by group version.
#[derive(Clone)]
pub(crate) struct SchemaCache {
    shared: Arc<Shared>,
}

impl fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaCache").finish_non_exhaustive()
    }
}

/// State shared by the callers and the loading tasks.
struct Shared {
    loader: Loader,
    metrics: Arc<Metrics>,
    queue: Arc<Queue>,
    state: Mutex<State>,
    /// Tells when a document is there, or is not waited for any more.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    documents: HashMap<GroupVersion, Document>,
    /// Policies that are not judged before documents are there that are on their way.
    parked: HashMap<SubjectId, Parked>,
    /// True if a document was dropped since the types that nobody holds were last collected.
    has_garbage: bool,
    /// Sets of group versions that policies were checked against: most are those of many policies.
    sets: HashSet<Arc<BTreeSet<GroupVersion>>>,
}

/// The place of a document.
struct Document {
    address: String,
    asked_at: Instant,
    load: Load,
    /// Rises when who went away without the document should look again.
    version: Arc<AtomicU64>,
    /// The policies that asked for it and went away without, with how many documents they need: those that
    /// need few come first, as what is matched by wildcards takes long to check.
    waiting: BTreeSet<(usize, SubjectId)>,
    /// Ends the pause before the next attempt, and makes those after it short again.
    flush: Arc<Notify>,
    task: AbortHandle,
}

impl Document {
    fn flush(&self) {
        self.flush.notify_one();
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How far a document is.
enum Load {
    /// It is on its way.
    Coming,
    /// It cannot be had now, for this reason; the task goes on trying.
    Missing(String),
    /// It is there.
    Loaded(Arc<Types>),
    /// The schema is newer than the index, which may never tell: the schema may be what it was again
    /// when the index is read next. The task goes on asking for the version in the index.
    Passing(Arc<Types>),
}

/// A policy that waits for documents.
struct Parked {
    since: Instant,
    n_coming: usize,
}

/// Result of requesting documents.
pub(crate) enum Asked {
    /// All documents, but for those that are not worth waiting for.
    There(Schemas),
    /// Some are on their way; the policy is put into the queue when they are there.
    Coming,
}

impl SchemaCache {
    /// An empty cache; policies that wait for a document are put into `queue` when it is there.
    pub(crate) fn new(client: Client, metrics: Arc<Metrics>, queue: Arc<Queue>) -> Self {
        let shared = Shared {
            loader: Loader::new(client),
            metrics,
            queue,
            state: Mutex::default(),
            changes: watch::Sender::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The types of `group_versions`, of those that `index` has, for the policy of that name.
    pub(crate) async fn get(
        &self,
        policy: &SubjectId,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> Asked {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let until = match self.shared.look(policy, group_versions, index) {
                Look::There(schemas) => return Asked::There(schemas),
                Look::Coming(None) => return Asked::Coming,
                Look::Coming(Some(until)) => until,
            };
            // The sender lives as long as `self`.
            drop(tokio::time::timeout_at(until, changes.changed()).await);
        }
    }

    /// The types of `group_versions`, of those that `index` has, for the policy of that name, where all are
    /// there; asks for none.
    pub(crate) fn loaded(
        &self,
        policy: &SubjectId,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> Option<Schemas> {
        let mut schemas = Schemas::default();
        let mut state = self.shared.lock();
        for gv in group_versions {
            let Some(address) = index.get(gv) else {
                continue;
            };
            let document = state.documents.get(gv)?;
            let Load::Loaded(types) = &document.load else {
                return None;
            };
            if document.address != *address {
                return None;
            }
            schemas.documents.insert(gv.clone(), Arc::clone(types));
        }
        state.parked.remove(policy);
        drop(state);
        for _ in &schemas.documents {
            self.shared.metrics.schema_lookup(Lookup::Hit);
        }
        Some(schemas)
    }

    /// The types of those of `group_versions` that are there as `index` has them; asks for none, and nobody waits.
    ///
    /// What is no longer served, or served otherwise, may be at hand until it is cleaned up: nothing tells of that, so that it
    /// must count for nothing from the change on.
    pub(crate) fn at_hand(
        &self,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> Schemas {
        let mut schemas = Schemas::default();
        let state = self.shared.lock();
        for gv in group_versions {
            let document = state.documents.get(gv);
            let document = document.filter(|document| index.get(gv) == Some(&document.address));
            if let Some(Load::Loaded(types)) = document.map(|document| &document.load) {
                schemas.documents.insert(gv.clone(), Arc::clone(types));
            }
        }
        schemas
    }

    /// The set that is equal to `group_versions`, shared by all that have it.
    pub(crate) fn shared(
        &self,
        group_versions: BTreeSet<GroupVersion>,
    ) -> Arc<BTreeSet<GroupVersion>> {
        let mut state = self.shared.lock();
        if let Some(known) = state.sets.get(&group_versions) {
            return Arc::clone(known);
        }
        let set = Arc::new(group_versions);
        state.sets.insert(Arc::clone(&set));
        set
    }

    /// Has the documents asked for at once that could not be had, of this group version or of all, and then as often
    /// as at first.
    pub(crate) fn flush_backoff(&self, group_version: Option<&GroupVersion>) {
        let state = self.shared.lock();
        match group_version {
            Some(gv) => state
                .documents
                .get(gv)
                .into_iter()
                .for_each(Document::flush),
            None => state.documents.values().for_each(Document::flush),
        }
    }

    /// Forgets all documents but those of `needed` and those that a policy waits for that `exists`; whether
    /// there are types then that were in forgotten ones only.
    pub(crate) fn retain(
        &self,
        needed: &BTreeSet<GroupVersion>,
        exists: impl Fn(&SubjectId) -> bool,
    ) -> bool {
        let mut state = self.shared.lock();
        state.parked.retain(|policy, _| exists(policy));
        state.sets.retain(|set| Arc::strong_count(set) > 1);
        let before = state.documents.len();
        state.documents.retain(|gv, document| {
            document.waiting.retain(|(_, policy)| exists(policy));
            needed.contains(gv) || !document.waiting.is_empty()
        });
        let n_documents = state.documents.len();
        self.shared.metrics.set_schema_documents(n_documents);
        std::mem::take(&mut state.has_garbage) || n_documents < before
    }

    /// Drops the types that nobody holds, on a thread that may be busy for some time.
    pub(crate) async fn purge(&self) {
        let shared = Arc::clone(&self.shared);
        let purge = move || shared.loader.purge();
        if blocking::run(blocking::Kind::Schemas, purge).await.is_err() {
            tracing::error!("the purge of unused types panicked; please report it");
        }
    }
}

/// Result of a look at the documents.
enum Look {
    There(Schemas),
    /// Some are on their way; worth waiting for until then.
    Coming(Option<Instant>),
}

impl Shared {
    /// Looks at the documents, and has those loaded that nobody asked for before.
    fn look(
        self: &Arc<Self>,
        policy: &SubjectId,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> Look {
        let now = Instant::now();
        let mut state = self.lock();
        let mut coming = Vec::new();
        let mut schemas = Schemas::default();
        let mut until: Option<Instant> = None;
        for gv in group_versions {
            let Some(address) = index.get(gv) else {
                continue;
            };
            let document = self.document(&mut state, gv, address, now);
            match &document.load {
                Load::Loaded(types) => {
                    schemas.documents.insert(gv.clone(), Arc::clone(types));
                }
                Load::Passing(types) => {
                    schemas.documents.insert(gv.clone(), Arc::clone(types));
                    let reason = "it is changing".to_owned();
                    schemas
                        .passing
                        .push(Missing::new(reason, &document.version));
                    document
                        .waiting
                        .insert((group_versions.len(), policy.clone()));
                }
                Load::Missing(reason) => {
                    let missing = Missing::new(reason.clone(), &document.version);
                    document
                        .waiting
                        .insert((group_versions.len(), policy.clone()));
                    schemas.waiting.insert(gv.clone(), missing);
                }
                Load::Coming => {
                    until = until.max(Some(document.asked_at + GRACE));
                    let reason = "it is being read".to_owned();
                    coming.push((gv, Missing::new(reason, &document.version)));
                }
            }
        }
        if !coming.is_empty() {
            if let Some(until) = until.filter(|until| now < *until) {
                return Look::Coming(Some(until));
            }
            for (gv, _) in &coming {
                if let Some(document) = state.documents.get_mut(*gv) {
                    document
                        .waiting
                        .insert((group_versions.len(), policy.clone()));
                }
            }
            let n_coming = coming.len();
            let parked = state.parked.entry(policy.clone());
            let parked = parked.or_insert(Parked {
                since: now,
                n_coming,
            });
            parked.n_coming = n_coming;
            if now < parked.since + MAX_PARKED {
                return Look::Coming(None);
            }
            let coming = coming.into_iter();
            schemas
                .waiting
                .extend(coming.map(|(gv, missing)| (gv.clone(), missing)));
        }
        state.parked.remove(policy);
        for _ in &schemas.documents {
            self.metrics.schema_lookup(Lookup::Hit);
        }
        Look::There(schemas)
    }

    /// The place of the document at `address`; that of an older document is given up.
    fn document<'a>(
        self: &Arc<Self>,
        state: &'a mut State,
        gv: &GroupVersion,
        address: &str,
        now: Instant,
    ) -> &'a mut Document {
        let known = state.documents.remove(gv);
        let is_known = |document: &Document| document.address == address;
        let document = match known {
            Some(document) if is_known(&document) => document,
            older => {
                state.has_garbage |= older.is_some();
                // Who waits for the older one waits for this one; its policy is not judged by the other.
                let waiting = older
                    .map(|mut older| std::mem::take(&mut older.waiting))
                    .unwrap_or_default();
                let flush = Arc::default();
                let load = load::supervised(
                    Arc::clone(self),
                    gv.clone(),
                    address.to_owned(),
                    Arc::clone(&flush),
                );
                Document {
                    address: address.to_owned(),
                    asked_at: now,
                    load: Load::Coming,
                    version: Arc::default(),
                    waiting,
                    flush,
                    task: tokio::spawn(load).abort_handle(),
                }
            }
        };
        let document = state.documents.entry(gv.clone()).insert_entry(document);
        document.into_mut()
    }

    /// Notes how far the document at `address` is, and puts the policies into the queue that wait for that.
    fn note(&self, gv: &GroupVersion, address: &str, load: Load) {
        let mut state = self.lock();
        let State {
            documents, parked, ..
        } = &mut *state;
        let Some(document) = documents
            .get_mut(gv)
            .filter(|known| known.address == address)
        else {
            return;
        };
        let was_coming = matches!(document.load, Load::Coming);
        let is_there = matches!(load, Load::Loaded(_));
        document.load = load;
        document.version.fetch_add(1, Ordering::Relaxed);
        // Who was judged without the document is judged again once it is there, or once it is known why not.
        let mut touched = Vec::new();
        for (n_needed, policy) in &document.waiting {
            match parked.get_mut(policy) {
                Some(parked) => {
                    parked.n_coming = parked.n_coming.saturating_sub(usize::from(was_coming));
                    if parked.n_coming == 0 {
                        touched.push((*n_needed, policy.clone()));
                    }
                }
                None => touched.push((*n_needed, policy.clone())),
            }
        }
        if is_there {
            document.waiting.clear();
        }
        let n_documents = documents.len();
        drop(state);
        self.metrics.set_schema_documents(n_documents);
        self.changes.send_replace(());
        for (n_needed, policy) in touched {
            self.queue.add_of(&policy, n_needed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A document that a check did without.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// Why.
    pub(crate) reason: String,
    version: u64,
    versions: Arc<AtomicU64>,
}

impl Missing {
    fn new(reason: String, versions: &Arc<AtomicU64>) -> Self {
        Self {
            reason,
            version: versions.load(Ordering::Relaxed),
            versions: Arc::clone(versions),
        }
    }

    /// Reports whether another check would do without it as well, and for the same reason.
    pub(crate) fn is_still_missing(&self) -> bool {
        self.versions.load(Ordering::Relaxed) == self.version
    }
}

/// The types that one check needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    documents: BTreeMap<GroupVersion, Arc<Types>>,
    /// Documents that are published and could not be had now.
    pub(crate) waiting: BTreeMap<GroupVersion, Missing>,
    /// Documents that are not those of the index.
    passing: Vec<Missing>,
}

impl Schemas {
    /// Returns the documents that must still be missing for another check to have the same result.
    pub(crate) fn guards(&self) -> impl Iterator<Item = &Missing> {
        self.waiting.values().chain(&self.passing)
    }

    /// Reports whether these are the very documents of `other`.
    pub(crate) fn are_those_of(&self, other: &Self) -> bool {
        let mut pairs = self.documents.iter().zip(&other.documents);
        self.documents.len() == other.documents.len()
            && pairs.all(|(ours, theirs)| ours.0 == theirs.0 && Arc::ptr_eq(ours.1, theirs.1))
    }
}

impl SchemaResolver for Schemas {
    /// The type of `gvk`: that of the document of its own group version, or else of any other, as
    /// kinds of subresources are described where the resource is (`Scale` in `apps/v1`).
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        let own = self.documents.get(&gvk.group_version());
        let found = own
            .into_iter()
            .chain(self.documents.values())
            .find_map(|types| types.get(gvk));
        match found {
            Some(Ok(type_)) => Resolution::Found(Arc::clone(type_)),
            Some(Err(error)) => Resolution::Unavailable(error.to_string()),
            None => match self
                .waiting
                .get(&gvk.group_version())
                .or(self.waiting.values().next())
            {
                Some(missing) => Resolution::Unavailable(missing.reason.clone()),
                None => Resolution::NotFound,
            },
        }
    }
}

#[cfg(test)]
mod stalls;
#[cfg(test)]
mod tests;
