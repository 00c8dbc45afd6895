//! Watches policies of a cluster, and returns changes in batches.
//!
//! If the API server ends a watch, the next watch continues at the last resource version. After a failure, the policies
//! are listed again. Their differences from the known policies are returned as changes, so that no change is lost or
//! repeated.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, TryStreamExt as _};
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;

use super::connection::{Connected, Requested};
use super::error::CliError;
use super::live::Selection;
use super::live::objects::{self, Kind, Listed};
use crate::cluster::error::Error;

/// The duration in seconds after which the API server ends a watch.
const WATCH_SECONDS: u32 = 240;

/// The delay after the first failure, and the maximum delay.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Updated(Value),
    /// The policy with this name was deleted.
    Deleted(String),
}

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<DynamicObject>, kube::Error>> + Send>>;

pub(super) struct Watch<'a> {
    connected: &'a Connected,
    selection: &'a Selection,
    /// The resource version for the next watch, or `None` if a list is needed first.
    version: Option<String>,
    events: Option<Events>,
    /// The resource version of each reported policy.
    known: BTreeMap<String, String>,
    n_failures: u32,
}

impl<'a> Watch<'a> {
    /// Creates a watch that continues from `listed`. If `listed` has no resource version, the watch begins with a list.
    pub(super) fn new(connected: &'a Connected, selection: &'a Selection, listed: &Listed) -> Self {
        let versions = listed.items.iter();
        let versions = versions.map(|it| (objects::name(it).to_owned(), version_of(it).to_owned()));
        Self {
            connected,
            selection,
            version: Some(listed.resource_version.clone()).filter(|version| !version.is_empty()),
            events: None,
            known: versions.collect(),
            n_failures: 0,
        }
    }

    /// Waits for the next changes. Retries after a failure, and writes a warning to `err` after the second failure in a
    /// row.
    ///
    /// # Errors
    /// Returns an error if the API server responds with 401 or 403.
    pub(super) async fn next(&mut self, err: &mut dyn Write) -> Result<Vec<Change>, CliError> {
        loop {
            let outcome = self.attempt().await;
            let error = match outcome {
                Ok(changes) => {
                    self.n_failures = 0;
                    if changes.is_empty() {
                        continue;
                    }
                    return Ok(changes);
                }
                Err(error) => error,
            };
            (self.events, self.version) = (None, None);
            if matches!(&error, Error::Client(kube::Error::Api(status)) if [401, 403].contains(&status.code))
            {
                return Err(self.connected.explain(&error, Requested::Policies));
            }
            // The first failure is not reported: an expired resource version or a closed connection is expected.
            let backoff = BACKOFF
                .0
                .saturating_mul(1 << self.n_failures.min(10))
                .min(BACKOFF.1);
            self.n_failures = self.n_failures.saturating_add(1);
            if self.n_failures == 2 {
                let reason = super::connection::one_line(&error.to_string());
                let _ = writeln!(err, "warning: cannot watch policies, retrying: {reason}");
            }
            tokio::time::sleep(backoff).await;
        }
    }

    /// Lists the policies, starts a watch, or waits for the next event of the watch, depending on the state.
    async fn attempt(&mut self) -> Result<Vec<Change>, Error> {
        let Some(version) = self.version.clone() else {
            let listed = objects::list(
                self.connected,
                Kind::Policy,
                self.selection.selector.as_deref(),
            )
            .await?;
            self.version = Some(listed.resource_version);
            return Ok(self.differences(listed.items));
        };
        let Some(events) = &mut self.events else {
            let mut params = WatchParams::default().timeout(WATCH_SECONDS);
            if let Some(selector) = &self.selection.selector {
                params = params.labels(selector);
            }
            let api = Kind::Policy.api(self.connected);
            let events = self.connected.within(api.watch(&params, &version)).await?;
            self.events = Some(Box::pin(events));
            return Ok(Vec::new());
        };
        let Some(event) = events.try_next().await? else {
            self.events = None;
            return Ok(Vec::new());
        };
        let changes = match event {
            WatchEvent::Added(policy) | WatchEvent::Modified(policy) => {
                self.updated(Kind::Policy.json(policy)?)
            }
            WatchEvent::Deleted(policy) => {
                let policy = Kind::Policy.json(policy)?;
                self.version = Some(version_of(&policy).to_owned());
                self.deleted(objects::name(&policy).to_owned())
            }
            WatchEvent::Bookmark(bookmark) => {
                self.version = Some(bookmark.metadata.resource_version);
                None
            }
            WatchEvent::Error(status) => return Err(Error::Client(kube::Error::Api(status))),
        };
        Ok(changes.into_iter().collect())
    }

    fn is_selected(&self, name: &str) -> bool {
        let names = &self.selection.names;
        names.is_empty() || names.iter().any(|asked| asked == name)
    }

    fn updated(&mut self, policy: Value) -> Option<Change> {
        let version = version_of(&policy).to_owned();
        let is_changed = self.record_version(objects::name(&policy).to_owned(), &version);
        self.version = Some(version);
        is_changed.then_some(Change::Updated(policy))
    }

    /// Records the version of a policy. Returns true if the policy is selected and the version is new.
    fn record_version(&mut self, name: String, version: &str) -> bool {
        self.is_selected(&name) && {
            let before = self.known.insert(name, version.to_owned());
            before.as_deref() != Some(version)
        }
    }

    fn deleted(&mut self, name: String) -> Option<Change> {
        self.known.remove(&name);
        self.is_selected(&name).then_some(Change::Deleted(name))
    }

    /// Returns the differences between a list and the known policies.
    fn differences(&mut self, items: Vec<Value>) -> Vec<Change> {
        let mut deleted = self.known.clone();
        for policy in &items {
            deleted.remove(objects::name(policy));
        }
        let mut changes: Vec<_> = deleted
            .into_keys()
            .filter_map(|name| self.deleted(name))
            .collect();
        for policy in items {
            if self.record_version(objects::name(&policy).to_owned(), version_of(&policy)) {
                changes.push(Change::Updated(policy));
            }
        }
        changes
    }
}

fn version_of(object: &Value) -> &str {
    let version = object.pointer("/metadata/resourceVersion");
    version.and_then(Value::as_str).unwrap_or_default()
}

/// Waits for Ctrl-C or SIGTERM.
pub(super) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let terminated = async {
            match signal(SignalKind::terminate()) {
                Ok(mut signals) => {
                    signals.recv().await;
                }
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminated => {}
        }
    }
    #[cfg(not(unix))]
    {
        // Returns immediately if the signal handler cannot be installed.
        let _ = tokio::signal::ctrl_c().await;
    }
}
