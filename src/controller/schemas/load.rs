//! Loading one document: a task that ends once it is there, and tries again as long as it is not.
//!
//! A few documents are read at once. One that is slow gives up its turn to others and goes on beside
//! them, and one that failed takes no turn at all: what an aggregated API does not answer holds nothing
//! up. What all documents that are being read take in memory is bounded.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{Load, Shared, Types};
use crate::controller::blocking;
use crate::controller::error::{Error, within};
use crate::controller::http::{self, Budget};
use crate::schema::GroupVersion;
use crate::schema::intern::Interner;
use crate::schema::openapi::OpenApiDocument;
use crate::telemetry::metrics::Lookup;

/// How many documents are read at once, those not counted that are slow or failed before.
const TURNS: usize = 4;

/// After how long a document is slow.
const SLOW: Duration = Duration::from_millis(250);

/// After how long nobody waits for a document any more that is being read.
const LATE: Duration = Duration::from_secs(2);

/// How long a document may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The pause after the first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How many bytes of documents may be in memory at once, and of those that failed before.
const BUDGETS: (usize, usize) = (32 << 20, 16 << 20);

/// Reads documents.
pub(super) struct Loader {
    client: Client,
    interner: Arc<Mutex<Interner>>,
    turns: Arc<Semaphore>,
    budget: Budget,
    /// That of documents that failed before.
    budget_apart: Budget,
}

impl Loader {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            interner: Arc::default(),
            turns: Arc::new(Semaphore::new(TURNS)),
            budget: Budget::new(BUDGETS.0),
            budget_apart: Budget::new(BUDGETS.1),
        }
    }

    /// Drops the types that nobody holds.
    pub(super) fn purge(&self) {
        self.interner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .purge();
    }

    /// Whether no types are held.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.interner.lock().unwrap().is_empty()
    }

    async fn fetch(&self, address: &str, budget: &Budget) -> Result<http::Document, Error> {
        let document =
            http::get_within(&self.client, address, "application/json", None, budget).await?;
        document.ok_or(Error::Status {
            code: 304,
            message: String::new(),
        })
    }

    /// Reads the document at `address`; `is_apart` where it failed before.
    async fn read(&self, address: &str, is_apart: bool) -> Result<Read, Error> {
        let budget = if is_apart {
            &self.budget_apart
        } else {
            &self.budget
        };
        let mut is_passing = false;
        let document = match self.fetch(address, budget).await {
            // The document has changed since we read the index: the address without the hash has it as
            // it is now. It is read again under its new address when the index tells that, or under this
            // one, should it have changed back.
            //
            // Source: kube-openapi `pkg/handler3/handler.go`, `HandleGroupVersion`.
            Err(Error::Status {
                code: 301 | 302 | 307 | 308,
                ..
            }) => {
                is_passing = true;
                let address = address.split('?').next().unwrap_or(address);
                self.fetch(address, budget).await?
            }
            fetched => fetched?,
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
            Ok(types) => Ok(Read {
                types: types.map_err(Error::Decode)?,
                is_passing,
            }),
            Err(_) => Err(Error::Decode("reading the document panicked".to_owned())),
        }
    }

    /// A turn to read a document, which one that failed before does without.
    async fn turn(&self, is_apart: bool) -> Option<OwnedSemaphorePermit> {
        if is_apart {
            return None;
        }
        // The semaphore is never closed.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }
}

/// A document as it was read.
struct Read {
    types: Arc<Types>,
    /// Whether it is not the one that the index has.
    is_passing: bool,
}

/// Loads the document of `gv` at `address`.
pub(super) async fn until_there(
    shared: Arc<Shared>,
    gv: GroupVersion,
    address: String,
    hurry: Arc<Notify>,
) {
    let mut n_failures = 0_u32;
    let mut n_passing = 0_u32;
    loop {
        let error = match attempt(&shared, &gv, &address, n_failures > 0).await {
            Ok(Read { types, is_passing }) => {
                shared.metrics.schema_lookup(Lookup::Fetched);
                if n_failures > 0 {
                    tracing::info!(group_version = %gv, "the schemas can be read again");
                }
                tracing::debug!(group_version = %gv, kinds = types.len(), is_passing, "read schemas");
                if !is_passing {
                    shared.note(&gv, &address, Load::Loaded(types));
                    return;
                }
                shared.note(&gv, &address, Load::Passing(types));
                n_failures = 0;
                drop(tokio::time::timeout(pause(n_passing), hurry.notified()).await);
                n_passing = n_passing.saturating_add(1);
                continue;
            }
            Err(error) => error,
        };
        shared.metrics.schema_lookup(Lookup::Failed);
        let pause = pause(n_failures);
        n_failures = n_failures.saturating_add(1);
        if n_failures == 1 {
            // Later failures are no news to those who wait.
            shared.note(&gv, &address, Load::Missing(error.to_string()));
        }
        if n_failures == 2 {
            tracing::warn!(group_version = %gv, %error, "cannot get schemas, trying again");
        } else {
            // A single one is ordinary: a group that is on its way out has an address and no document.
            let retry_in = pause.as_secs();
            tracing::debug!(group_version = %gv, %error, retry_in, "cannot get schemas");
        }
        drop(tokio::time::timeout(pause, hurry.notified()).await);
    }
}

/// The pause after so many failures before the last: doubled each time.
fn pause(n_failures: u32) -> Duration {
    PAUSES
        .0
        .saturating_mul(1 << n_failures.min(16))
        .min(PAUSES.1)
}

/// One attempt to read a document.
async fn attempt(
    shared: &Shared,
    gv: &GroupVersion,
    address: &str,
    is_apart: bool,
) -> Result<Read, Error> {
    let turn = shared.loader.turn(is_apart).await;
    let mut read = std::pin::pin!(within(DEADLINE, shared.loader.read(address, is_apart)));
    if let Ok(outcome) = tokio::time::timeout(SLOW, &mut read).await {
        return outcome;
    }
    drop(turn);
    if is_apart {
        return read.await;
    }
    if let Ok(outcome) = tokio::time::timeout(LATE.saturating_sub(SLOW), &mut read).await {
        return outcome;
    }
    let reason = format!("no answer within {} s yet", LATE.as_secs());
    shared.note(gv, address, Load::Missing(reason));
    read.await
}
