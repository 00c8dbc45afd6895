//! The schema cache: the types of those group versions that policies need.
//!
//! A document is fetched when a policy first needs one of its kinds. It is converted to types and then dropped. It is
//! fetched again when its URL in the index changes. Each document is fetched once for all policies, by its own task
//! ([`load`]).
//!
//! Aggregated API servers may hang, so callers wait for a document only for a moment. A policy that did not get a
//! document is queued again when the document is loaded or cannot be read.

mod load;
mod state;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use self::load::Loader;
use self::state::{Document, Load, Parked, Shared, State};
pub(crate) use self::state::{Missing, Schemas};
use crate::cluster::blocking;
use crate::cluster::openapi::Index;
use crate::controller::process::queue::Queue;
use crate::policy::subject::SubjectId;
use crate::schema::GroupVersion;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Lookup;

/// How long callers wait for a document after it was first requested.
const GRACE: Duration = Duration::from_millis(50);

/// The maximum total time for which a policy waits for documents. Without this limit, a policy could wait for minutes
/// while an operator installs CRDs: at each attempt, other documents are loading.
const MAX_PARKED: Duration = Duration::from_secs(5);

/// The cache of OpenAPI documents. Clones share it.
#[derive(Clone)]
pub(crate) struct SchemaCache {
    shared: Arc<Shared>,
    loader: Arc<Loader>,
}

impl fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaCache").finish_non_exhaustive()
    }
}

/// The result of requesting the documents that a policy needs.
pub(crate) enum SchemaRequest {
    /// The documents, except those that are unavailable or have been loading for too long.
    Ready(Schemas),
    /// Some documents are loading. The policy is queued when they are loaded.
    Pending,
}

impl SchemaCache {
    /// Creates an empty cache. When a document is loaded, the policies that wait for it are added to `queue`.
    pub(crate) fn new(client: Client, metrics: Arc<Metrics>, queue: Arc<Queue>) -> Self {
        let shared = Shared {
            metrics,
            queue,
            state: Mutex::default(),
            changes: watch::Sender::default(),
        };
        Self {
            shared: Arc::new(shared),
            loader: Arc::new(Loader::new(client)),
        }
    }

    /// Returns the types of those `group_versions` that are in `index`, for the policy `policy`. Waits for a moment if
    /// documents are loading.
    pub(crate) async fn get(
        &self,
        policy: &SubjectId,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> SchemaRequest {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let until = match self.look(policy, group_versions, index) {
                Look::Ready(schemas) => return SchemaRequest::Ready(schemas),
                Look::Pending(None) => return SchemaRequest::Pending,
                Look::Pending(Some(until)) => until,
            };
            // The wait cannot fail, since `self` owns the sender.
            drop(tokio::time::timeout_at(until, changes.changed()).await);
        }
    }

    /// Returns the types of those `group_versions` that are in `index`. `None` if the cache lacks any of their
    /// documents in the version that `index` lists. Sends no requests.
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

    /// Returns the types of those `group_versions` whose documents are cached in the version that `index` lists. Sends
    /// no requests.
    ///
    /// Until the next cleanup, the cache also contains outdated documents, and documents that are no longer served.
    /// They are not returned.
    pub(crate) fn cached(&self, group_versions: &BTreeSet<GroupVersion>, index: &Index) -> Schemas {
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

    /// Returns a shared copy of `group_versions`, so that policies with equal sets share memory.
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

    /// Immediately retries the document of `group_version` if it has failed, and resets its backoff. `None` means all
    /// documents.
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

    /// Removes all documents except those of `needed` and those for which an existing policy waits. `exists` returns
    /// true if a policy exists.
    ///
    /// Returns true if documents were dropped since the last call. Then unused types should be purged.
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

    /// Drops unused types, on a blocking thread because this can take some time.
    pub(crate) async fn purge(&self) {
        let loader = Arc::clone(&self.loader);
        let purge = move || loader.purge();
        if blocking::run(blocking::Kind::Schemas, purge).await.is_err() {
            tracing::error!("the purge of unused types panicked, which is a bug; please report it");
        }
    }
}

enum Look {
    Ready(Schemas),
    /// Some documents are loading. The caller waits until this time. `None` if the caller must not wait any longer.
    Pending(Option<Instant>),
}

impl SchemaCache {
    /// Returns the documents if each is loaded or unavailable. Starts loading documents that are requested for the
    /// first time.
    fn look(
        &self,
        policy: &SubjectId,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> Look {
        let now = Instant::now();
        let mut state = self.shared.lock();
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
                return Look::Pending(Some(until));
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
                return Look::Pending(None);
            }
            let coming = coming.into_iter();
            schemas
                .waiting
                .extend(coming.map(|(gv, missing)| (gv.clone(), missing)));
        }
        state.parked.remove(policy);
        for _ in &schemas.documents {
            self.shared.metrics.schema_lookup(Lookup::Hit);
        }
        Look::Ready(schemas)
    }

    /// Returns the cache entry of the document at `address`. Creates a missing entry, which replaces the entry for an
    /// older version of the document.
    fn document<'a>(
        &self,
        state: &'a mut State,
        gv: &GroupVersion,
        address: &str,
        now: Instant,
    ) -> &'a mut Document {
        let cached = state.documents.remove(gv);
        let is_known = |document: &Document| document.address == address;
        let document = match cached {
            Some(document) if is_known(&document) => document,
            older => {
                state.has_garbage |= older.is_some();
                // Policies must not be checked with an outdated document, so policies that waited for the older version
                // now wait for the new one.
                let waiting = older
                    .map(|mut older| std::mem::take(&mut older.waiting))
                    .unwrap_or_default();
                let flush = Arc::default();
                let load = load::supervised(
                    (Arc::clone(&self.loader), Arc::clone(&self.shared)),
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
}

#[cfg(test)]
mod tests;
