//! Loads one OpenAPI document in a task that retries until the document is loaded.
//!
//! A semaphore limits the number of concurrent reads. An aggregated API that does not respond must not delay other
//! documents. So a slow read releases its permit and continues, and a retry needs no permit. The memory of all
//! documents that are being read is bounded.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::state::{Load, Shared, Types};
use crate::cluster::blocking;
use crate::cluster::error::{Error, within};
use crate::cluster::http::{self, Budget};
use crate::schema::GroupVersion;
use crate::schema::intern::Interner;
use crate::schema::openapi::OpenApiDocument;
use crate::telemetry::metrics::Lookup;

/// The number of concurrent reads, not counting slow reads and retries.
const TURNS: usize = 4;

/// The time after which a read counts as slow.
const SLOW: Duration = Duration::from_millis(250);

/// The time after which a document counts as missing although its read continues. Then policies are checked without it.
const LATE: Duration = Duration::from_secs(2);

/// The timeout for reading one document.
const DEADLINE: Duration = Duration::from_secs(10);

/// The backoff after the first failure, and the maximum backoff.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long reads of a document must fail before a warning is logged. Shorter failures are normal: the index may list a
/// document for a moment after its removal.
const ORDINARY: Duration = Duration::from_secs(1);

/// How long the response for a document must be empty before a warning is logged. Shorter times are normal if its CRD
/// is deleted and recreated.
const ORDINARY_UNPUBLISHED: Duration = Duration::from_secs(10);

/// The memory limits of documents that are being read, in bytes: for first attempts, and for retries.
const BUDGETS: (usize, usize) = (16 << 20, 8 << 20);

/// Reads and parses OpenAPI documents.
pub(super) struct Loader {
    client: Client,
    interner: Arc<Mutex<Interner>>,
    turns: Arc<Semaphore>,
    budget: Budget,
    retry_budget: Budget,
    /// The number of upcoming attempts that panic. Set by tests.
    #[cfg(test)]
    pub(super) panics: std::sync::atomic::AtomicUsize,
}

impl Loader {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            interner: Arc::default(),
            turns: Arc::new(Semaphore::new(TURNS)),
            budget: Budget::new(BUDGETS.0),
            retry_budget: Budget::new(BUDGETS.1),
            #[cfg(test)]
            panics: std::sync::atomic::AtomicUsize::default(),
        }
    }

    /// Drops interned types that are no longer used.
    pub(super) fn purge(&self) {
        self.interner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .purge();
    }

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

    /// Reads the document at `address`. Retries (`is_retry`) have a separate memory budget.
    async fn read(&self, address: &str, is_retry: bool) -> Result<Read, Error> {
        let budget = if is_retry {
            &self.retry_budget
        } else {
            &self.budget
        };
        let mut is_transient = false;
        let document = match self.fetch(address, budget).await {
            // The document has changed since the index was read. The URL without the hash returns the current version,
            // which is used until the index is read again. The loop in `until_there` continues to request `address`,
            // since the document may change back. If the index lists a new URL, another task loads that URL.
            //
            // Source: kube-openapi `pkg/handler3/handler.go`, `HandleGroupVersion`.
            Err(Error::Status {
                code: 301 | 302 | 307 | 308,
                ..
            }) => {
                is_transient = true;
                let address = address.split('?').next().unwrap_or(address);
                self.fetch(address, budget).await?
            }
            fetched => fetched?,
        };
        if document.body.is_empty() {
            return Err(Error::Unpublished);
        }
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
                is_transient,
            }),
            Err(_) => Err(Error::Decode("reading the document panicked".to_owned())),
        }
    }

    /// Waits for a permit to read a document. Returns `None` for a retry, which needs no permit.
    async fn turn(&self, is_retry: bool) -> Option<OwnedSemaphorePermit> {
        if is_retry {
            return None;
        }
        // The wait cannot fail, since the semaphore is never closed.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }
}

struct Read {
    types: Arc<Types>,
    /// True if the document is newer than the version in the index.
    is_transient: bool,
}

/// Loads the document of `gv` at `address`, and restarts after a panic. Without the restart, policies would wait
/// forever for the document.
pub(super) async fn supervised(
    (loader, shared): (Arc<Loader>, Arc<Shared>),
    gv: GroupVersion,
    address: String,
    flush: Arc<Notify>,
) {
    loop {
        let load = until_there(
            (Arc::clone(&loader), Arc::clone(&shared)),
            gv.clone(),
            address.clone(),
            Arc::clone(&flush),
        );
        if AssertUnwindSafe(load).catch_unwind().await.is_ok() {
            return;
        }
        shared.metrics.check_panicked();
        tracing::error!(
            group_version = %gv,
            "loading the schemas of this group version panicked, which is a bug; retrying; please report it"
        );
        let reason = "reading it failed with an internal error of vap-status-controller";
        shared.note(&gv, &address, Load::Missing(reason.to_owned()));
        drop(tokio::time::timeout(PAUSES.1, flush.notified()).await);
    }
}

/// Loads the document of `gv` at `address`. Retries until the version in the index is loaded.
async fn until_there(
    (loader, shared): (Arc<Loader>, Arc<Shared>),
    gv: GroupVersion,
    address: String,
    flush: Arc<Notify>,
) {
    let mut failing: Option<Failing> = None;
    let mut n_pauses = 0_u32;
    loop {
        let error = match attempt((&loader, &shared), &gv, &address, failing.is_some()).await {
            Ok(Read {
                types,
                is_transient,
            }) => {
                shared.metrics.schema_lookup(Lookup::Fetched);
                if failing.take().is_some() {
                    tracing::info!(group_version = %gv, "schemas can be read again");
                    n_pauses = 0;
                }
                tracing::debug!(group_version = %gv, kinds = types.len(), is_transient, "read schemas");
                if !is_transient {
                    shared.note(&gv, &address, Load::Loaded(types));
                    return;
                }
                shared.note(&gv, &address, Load::Passing(types));
                n_pauses = wait(n_pauses, &flush).await;
                continue;
            }
            Err(error) => error,
        };
        shared.metrics.schema_lookup(Lookup::Failed);
        if failing.is_none() {
            // Repeated failures do not notify the waiting policies again.
            shared.note(&gv, &address, Load::Missing(error.to_string()));
            n_pauses = 0;
        }
        failing
            .get_or_insert_with(Failing::new)
            .log(&gv, &error, pause(n_pauses));
        n_pauses = wait(n_pauses, &flush).await;
    }
}

/// State of a document whose reads have failed since `since`.
struct Failing {
    since: Instant,
    is_warned: bool,
}

impl Failing {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            is_warned: false,
        }
    }

    /// Logs a failure at debug level, or one warning if the failures last longer than usual.
    fn log(&mut self, gv: &GroupVersion, error: &Error, pause: Duration) {
        let ordinary = match error {
            Error::Unpublished => ORDINARY_UNPUBLISHED,
            _ => ORDINARY,
        };
        if !self.is_warned && self.since.elapsed() >= ordinary {
            self.is_warned = true;
            tracing::warn!(group_version = %gv, %error, "cannot get schemas of this group version, retrying");
        } else {
            let retry_in = pause.as_secs();
            tracing::debug!(group_version = %gv, %error, retry_in, "cannot get schemas of this group version");
        }
    }
}

/// Waits before the next attempt. A notification of `flush` ends the wait and resets the backoff. Returns the number of
/// waits since the last reset.
async fn wait(n_pauses: u32, flush: &Notify) -> u32 {
    match tokio::time::timeout(pause(n_pauses), flush.notified()).await {
        Ok(()) => 0,
        Err(_) => n_pauses.saturating_add(1),
    }
}

/// Returns the backoff after `n_pauses` previous waits. It doubles with each wait up to the maximum.
fn pause(n_pauses: u32) -> Duration {
    PAUSES.0.saturating_mul(1 << n_pauses.min(16)).min(PAUSES.1)
}

async fn attempt(
    (loader, shared): (&Loader, &Shared),
    gv: &GroupVersion,
    address: &str,
    is_retry: bool,
) -> Result<Read, Error> {
    let turn = loader.turn(is_retry).await;
    #[cfg(test)]
    {
        use std::sync::atomic::Ordering::Relaxed;
        let panics = &loader.panics;
        let is_due = panics.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
        assert!(is_due.is_err(), "a panic for a test");
    }
    let mut read = std::pin::pin!(within(DEADLINE, loader.read(address, is_retry)));
    if let Ok(outcome) = tokio::time::timeout(SLOW, &mut read).await {
        return outcome;
    }
    drop(turn);
    if is_retry {
        return read.await;
    }
    if let Ok(outcome) = tokio::time::timeout(LATE.saturating_sub(SLOW), &mut read).await {
        return outcome;
    }
    let reason = format!("no response within {} s", LATE.as_secs());
    shared.note(gv, address, Load::Missing(reason));
    read.await
}
