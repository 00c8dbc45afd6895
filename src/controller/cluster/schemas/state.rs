//! State of the schema cache: the loaded and loading documents, and the policies that wait for them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::controller::process::queue::Queue;
use crate::policy::subject::SubjectId;
use crate::schema::connect_options;
use crate::schema::decl_type::DeclType;
use crate::schema::error::SchemaError;
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::{GroupVersion, Gvk};
use crate::telemetry::Metrics;

/// The types of one document by kind. For a kind without a type, the value is an error.
pub(crate) type Types = HashMap<Gvk, Result<Arc<DeclType>, SchemaError>>;

/// State shared by the callers and the loading tasks.
pub(super) struct Shared {
    pub(super) metrics: Arc<Metrics>,
    pub(super) queue: Arc<Queue>,
    pub(super) state: Mutex<State>,
    /// Notified when the state of a document changes.
    pub(super) changes: watch::Sender<()>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) documents: HashMap<GroupVersion, Document>,
    pub(super) parked: HashMap<SubjectId, Parked>,
    /// True if a document was dropped since unused types were last purged.
    pub(super) has_garbage: bool,
    /// Sets of group versions that policies need. They are shared, since many policies have equal sets.
    pub(super) sets: HashSet<Arc<BTreeSet<GroupVersion>>>,
}

pub(super) struct Document {
    pub(super) address: String,
    pub(super) asked_at: Instant,
    pub(super) load: Load,
    /// Incremented when policies that were checked without the document should be checked again.
    pub(super) version: Arc<AtomicU64>,
    /// The policies that wait for the document or were checked without it, each with the number of documents that it
    /// needs. Policies with small numbers are queued first, since policies with wildcards take a long time to check.
    pub(super) waiting: BTreeSet<(usize, SubjectId)>,
    /// Notified to end the current backoff and to reset the next ones.
    pub(super) flush: Arc<Notify>,
    pub(super) task: AbortHandle,
}

impl Document {
    pub(super) fn flush(&self) {
        self.flush.notify_one();
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) enum Load {
    Coming,
    /// The document is temporarily unavailable, for this reason. The task retries.
    Missing(String),
    Loaded(Arc<Types>),
    /// The document is newer than the version in the index. The task still requests the version in the index, since the
    /// document may change back before the index is read again.
    Passing(Arc<Types>),
}

/// A policy that waits for documents.
pub(super) struct Parked {
    pub(super) since: Instant,
    pub(super) n_coming: usize,
}

impl Shared {
    /// Records the state of the document at `address`, and queues the policies that wait for it.
    pub(super) fn note(&self, gv: &GroupVersion, address: &str, load: Load) {
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
        // A policy that was checked without the document is queued. A parked policy is queued when none of its
        // documents is loading.
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A document that was unavailable during a check.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) reason: String,
    version: u64,
    versions: Arc<AtomicU64>,
}

impl Missing {
    pub(super) fn new(reason: String, versions: &Arc<AtomicU64>) -> Self {
        Self {
            reason,
            version: versions.load(Ordering::Relaxed),
            versions: Arc::clone(versions),
        }
    }

    /// Returns true if the state of the document has not changed since `self` was created. A new check would then have
    /// the same result as the previous check.
    pub(crate) fn is_still_missing(&self) -> bool {
        self.versions.load(Ordering::Relaxed) == self.version
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    pub(super) documents: BTreeMap<GroupVersion, Arc<Types>>,
    /// Published documents that are temporarily unavailable.
    pub(crate) waiting: BTreeMap<GroupVersion, Missing>,
    /// Documents that are newer than the version in the index.
    pub(super) passing: Vec<Missing>,
}

impl Schemas {
    /// Returns the documents that were unavailable or newer than the index. A new check has the same result as this one
    /// until the state of one of these documents changes.
    pub(crate) fn guards(&self) -> impl Iterator<Item = &Missing> {
        self.waiting.values().chain(&self.passing)
    }

    /// Returns true if `self` and `other` contain the same documents in the same versions.
    pub(crate) fn are_those_of(&self, other: &Self) -> bool {
        let mut pairs = self.documents.iter().zip(&other.documents);
        self.documents.len() == other.documents.len()
            && pairs.all(|(ours, theirs)| ours.0 == theirs.0 && Arc::ptr_eq(ours.1, theirs.1))
    }
}

impl SchemaResolver for Schemas {
    /// Returns the type of `gvk` from the document of its group version, or else from any other document. For example,
    /// the type of `Scale` (`autoscaling/v1`) is in the document of `apps/v1`, which defines its parent resources.
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        let own = self.documents.get(&gvk.group_version());
        let schema = own
            .into_iter()
            .chain(self.documents.values())
            .find_map(|types| types.get(gvk));
        match schema {
            Some(Ok(type_)) => Resolution::Found(Arc::clone(type_)),
            Some(Err(error)) => Resolution::Unavailable(error.to_string()),
            None => match self
                .waiting
                .get(&gvk.group_version())
                .or(self.waiting.values().next())
            {
                Some(missing) => Resolution::Unavailable(missing.reason.clone()),
                None => connect_options::resolve(gvk),
            },
        }
    }
}
