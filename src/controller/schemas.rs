//! The schema cache: the types of the group versions that policies need, and no others.
//!
//! A document is fetched when a policy first asks for a kind of it, turned into types and dropped.
//! It is fetched again when its address in the index changes. However many policies ask at once, one
//! document is fetched once, and one at a time, as documents are large.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::blocking;
use super::error::Error;
use super::http;
use super::openapi::Index;
use crate::schema::decl_type::DeclType;
use crate::schema::error::SchemaError;
use crate::schema::intern::Interner;
use crate::schema::openapi::OpenApiDocument;
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::{GroupVersion, Gvk};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Lookup;

/// How long a failure is remembered: policies that ask in the meantime get the same answer, rather
/// than a request each.
const FAILURE_LIFETIME: Duration = Duration::from_secs(2);

/// The types of one document, or why a kind has none.
pub(crate) type Types = HashMap<Gvk, Result<Arc<DeclType>, SchemaError>>;

/// Types by group version.
pub(crate) struct SchemaCache {
    client: Client,
    metrics: Arc<Metrics>,
    documents: Mutex<HashMap<GroupVersion, Slot>>,
    interner: Arc<Mutex<Interner>>,
    /// Whether a document was given up since the types that nobody holds were last dropped.
    has_garbage: AtomicBool,
    /// One document is read at a time.
    loading: Semaphore,
}

impl fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaCache").finish_non_exhaustive()
    }
}

/// The place of a document.
#[derive(Clone, Debug)]
struct Slot {
    address: String,
    state: Arc<tokio::sync::Mutex<State>>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Empty,
    Loaded(Arc<Types>),
    Failed {
        reason: String,
        until: Instant,
    },
}

impl SchemaCache {
    /// An empty cache.
    pub(crate) fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            metrics,
            documents: Mutex::default(),
            interner: Arc::default(),
            has_garbage: AtomicBool::new(false),
            loading: Semaphore::new(1),
        }
    }

    /// The types of `group_versions`, of those that `index` has.
    pub(crate) async fn get(
        &self,
        group_versions: &BTreeSet<GroupVersion>,
        index: &Index,
    ) -> Schemas {
        let mut schemas = Schemas::default();
        for group_version in group_versions {
            let Some(address) = index.get(group_version) else {
                continue;
            };
            match self.types(group_version, address).await {
                Ok(types) => schemas
                    .documents
                    .insert(group_version.clone(), types)
                    .map(drop),
                Err(reason) => schemas
                    .waiting
                    .insert(group_version.clone(), reason)
                    .map(drop),
            };
        }
        schemas
    }

    /// The types of one document.
    async fn types(&self, gv: &GroupVersion, address: &str) -> Result<Arc<Types>, String> {
        let slot = self.slot(gv, address);
        let mut state = slot.state.lock().await;
        match &*state {
            State::Loaded(types) => {
                self.metrics.schema_lookup(Lookup::Hit);
                return Ok(Arc::clone(types));
            }
            State::Failed { reason, until } if Instant::now() < *until => {
                return Err(reason.clone());
            }
            State::Failed { .. } | State::Empty => {}
        }
        match self.load(address).await {
            Ok(types) => {
                self.metrics.schema_lookup(Lookup::Fetched);
                tracing::debug!(group_version = %gv, kinds = types.len(), "read schemas");
                *state = State::Loaded(Arc::clone(&types));
                Ok(types)
            }
            Err(error) => {
                self.metrics.schema_lookup(Lookup::Failed);
                tracing::warn!(group_version = %gv, %error, "cannot get schemas, will try again");
                let reason = error.to_string();
                let until = Instant::now() + FAILURE_LIFETIME;
                *state = State::Failed {
                    reason: reason.clone(),
                    until,
                };
                Err(reason)
            }
        }
    }

    /// The place of the document at `address`; that of an older document is given up.
    fn slot(&self, gv: &GroupVersion, address: &str) -> Slot {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match documents.get(gv) {
            Some(slot) if slot.address == address => slot.clone(),
            _ => {
                let slot = Slot {
                    address: address.to_owned(),
                    state: Arc::default(),
                };
                if documents.insert(gv.clone(), slot.clone()).is_some() {
                    self.has_garbage.store(true, Ordering::Relaxed);
                }
                self.metrics.set_schema_documents(documents.len());
                slot
            }
        }
    }

    async fn fetch(&self, address: &str) -> Result<Option<http::Document>, Error> {
        http::get(&self.client, address, "application/json", None).await
    }

    async fn load(&self, address: &str) -> Result<Arc<Types>, Error> {
        let _turn = self.loading.acquire().await;
        let document = match self.fetch(address).await {
            // The document has changed since we read the index: the address without the hash has it as
            // it is now. It is read again under its new address when the index tells that.
            Err(Error::Status {
                code: 301 | 302 | 307 | 308,
                ..
            }) => {
                self.fetch(address.split('?').next().unwrap_or(address))
                    .await?
            }
            fetched => fetched?,
        };
        let Some(document) = document else {
            return Err(Error::Status {
                code: 304,
                message: String::new(),
            });
        };
        let interner = Arc::clone(&self.interner);
        let read = move || {
            let parsed = OpenApiDocument::parse(&document.body);
            drop(document);
            let parsed = parsed.map_err(|error| error.to_string())?;
            let mut interner = interner.lock().unwrap_or_else(PoisonError::into_inner);
            let types: Types = parsed.decl_types(&mut interner).into_iter().collect();
            Ok(Arc::new(types))
        };
        match blocking::run(blocking::Kind::Schemas, read).await {
            Ok(types) => types.map_err(Error::Decode),
            Err(_) => Err(Error::Decode("reading the document panicked".to_owned())),
        }
    }

    /// Forgets all documents but those of `needed`, and types that were in forgotten ones only.
    pub(crate) fn retain(&self, needed: &BTreeSet<GroupVersion>) {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let before = documents.len();
        documents.retain(|gv, _| needed.contains(gv));
        self.metrics.set_schema_documents(documents.len());
        let has_garbage = self.has_garbage.swap(false, Ordering::Relaxed);
        if has_garbage || documents.len() < before {
            self.interner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .purge();
        }
    }
}

/// The types that one check needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    documents: BTreeMap<GroupVersion, Arc<Types>>,
    /// Documents that are published and could not be had now, with the reason.
    pub(crate) waiting: BTreeMap<GroupVersion, String>,
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
                Some(reason) => Resolution::Unavailable(reason.clone()),
                None => Resolution::NotFound,
            },
        }
    }
}

#[cfg(test)]
mod tests;
