//! Changes of policies in a cluster, one batch after another, for as long as somebody looks.
//!
//! A watch that ends or breaks off is begun again behind a list, whose differences from what is known are changes
//! too: nothing is missed, and nothing is told twice.

use std::collections::BTreeMap;
use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, TryStreamExt as _};
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;

use super::connection::Connected;
use super::error::CliError;
use super::live::Selection;
use super::live::objects::{self, Kind, Listed};
use crate::cluster::error::Error;

/// After how many seconds the API server ends a watch.
const WATCH_SECONDS: u32 = 240;

/// The pause after the first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// A change of a policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// It is new, or other than before.
    Put(Value),
    /// The policy of that name is gone.
    Gone(String),
}

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<DynamicObject>, kube::Error>> + Send>>;

/// A watch of policies.
pub(super) struct Watch<'a> {
    connected: &'a Connected,
    selection: &'a Selection,
    /// Where the next watch begins; nothing where a list is needed first.
    version: Option<String>,
    events: Option<Events>,
    /// The resource version of each policy that was told.
    known: BTreeMap<String, String>,
    n_failures: u32,
}

impl<'a> Watch<'a> {
    /// A watch that begins where `listed` ended; where that is no list, with one.
    pub(super) fn new(connected: &'a Connected, selection: &'a Selection, listed: &Listed) -> Self {
        let known = listed.items.iter();
        let known = known.map(|it| (objects::name(it).to_owned(), version_of(it).to_owned()));
        Self {
            connected,
            selection,
            version: Some(listed.resource_version.clone()).filter(|version| !version.is_empty()),
            events: None,
            known: known.collect(),
            n_failures: 0,
        }
    }

    /// The next changes, once there are some. Of a failure `err` is told; it is tried again.
    ///
    /// # Errors
    /// If the API server refuses.
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
                return Err(self.connected.explain(&error, None));
            }
            // A version that is too old, or a connection that was closed, is no news.
            let pause = PAUSES
                .0
                .saturating_mul(1 << self.n_failures.min(10))
                .min(PAUSES.1);
            self.n_failures = self.n_failures.saturating_add(1);
            if self.n_failures == 2 {
                let reason = super::connection::one_line(&error.to_string());
                let _ = writeln!(
                    err,
                    "warning: changes cannot be watched now, and are awaited: {reason}"
                );
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One step: a list, the begin of a watch, or an event.
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
                self.put(Kind::Policy.json(policy)?)
            }
            WatchEvent::Deleted(policy) => {
                let policy = Kind::Policy.json(policy)?;
                self.version = Some(version_of(&policy).to_owned());
                self.gone(objects::name(&policy).to_owned())
            }
            WatchEvent::Bookmark(bookmark) => {
                self.version = Some(bookmark.metadata.resource_version);
                None
            }
            WatchEvent::Error(status) => return Err(Error::Client(kube::Error::Api(status))),
        };
        Ok(changes.into_iter().collect())
    }

    fn is_asked_for(&self, name: &str) -> bool {
        let names = &self.selection.names;
        names.is_empty() || names.iter().any(|asked| asked == name)
    }

    fn put(&mut self, policy: Value) -> Option<Change> {
        let version = version_of(&policy).to_owned();
        let is_news = self.note(objects::name(&policy).to_owned(), &version);
        self.version = Some(version);
        is_news.then_some(Change::Put(policy))
    }

    /// Notes the version of a policy; the answer is false where it is known, or nobody asked for the policy.
    fn note(&mut self, name: String, version: &str) -> bool {
        self.is_asked_for(&name) && {
            let before = self.known.insert(name, version.to_owned());
            before.as_deref() != Some(version)
        }
    }

    fn gone(&mut self, name: String) -> Option<Change> {
        self.known.remove(&name);
        self.is_asked_for(&name).then_some(Change::Gone(name))
    }

    /// The changes that a list tells.
    fn differences(&mut self, items: Vec<Value>) -> Vec<Change> {
        let mut gone = self.known.clone();
        for policy in &items {
            gone.remove(objects::name(policy));
        }
        let mut changes: Vec<_> = gone
            .into_keys()
            .filter_map(|name| self.gone(name))
            .collect();
        for policy in items {
            if self.note(objects::name(&policy).to_owned(), version_of(&policy)) {
                changes.push(Change::Put(policy));
            }
        }
        changes
    }
}

fn version_of(object: &Value) -> &str {
    let version = object.pointer("/metadata/resourceVersion");
    version.and_then(Value::as_str).unwrap_or_default()
}

/// Waits until the person, or what runs the program, wants it to end.
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
        // An error of it is that the signal cannot be caught; it ends the program then.
        let _ = tokio::signal::ctrl_c().await;
    }
}
