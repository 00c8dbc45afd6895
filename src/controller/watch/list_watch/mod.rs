//! Lists the objects of a kind and watches them for changes, with `kube_runtime::watcher`.
//!
//! The watcher lists, resumes and relists. It returns objects as [`RawObject`]s. So an object that cannot be parsed
//! causes an event about this object, and the watch continues.
//!
//! The watcher sends its requests through [`transport`], which limits their duration, inactivity and size. The
//! transport also reports facts that the watcher does not return: bookmarks, causes of failures, and unexpected ends.
//!
//! A failure is returned as an event, and the next call of [`ListWatch::next`] tries again. There are no silent
//! retries. Lists are consistent reads, that is, `resourceVersion` is unset.
//!
//! Source: client-go `tools/cache/reflector.go`; KEP-3157 (streamed lists); KEP-956 (bookmarks).

mod config;
pub(crate) mod fuzzing;
mod lines;
mod object;
mod skim;
mod transport;

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::{Api, Client, Resource};
use kube_runtime::watcher::{self, Config, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(crate) use self::config::{ListWatchConfig, Listing, Representation};
use self::object::RawObject;
pub(crate) use self::object::Unreadable;
use self::transport::{Failure, Report};
use crate::cluster::error::Error;

/// Events of a list or a watch.
#[derive(Debug)]
pub(crate) enum ListWatchEvent<K> {
    /// A list starts. Objects that are not in the list were deleted.
    Init,
    /// An object of the list.
    InitApply(K),
    /// The list is complete.
    InitDone,
    Apply(K),
    Delete(K),
    /// The watch works, for example because it received a bookmark. No object has changed.
    Alive,
    /// An object cannot be parsed.
    Unreadable(Unreadable),
    /// The watch cannot resume, since its last resource version is too old. A new list follows.
    Expired,
    /// A request failed. The next call of [`ListWatch::next`] tries again.
    Failed(Error),
}

/// Lists and watches the objects of a kind.
pub(crate) struct ListWatch<K> {
    client: Client,
    config: ListWatchConfig,
    watch: Mutex<Watch>,
    /// Events that are returned before the watcher is polled again.
    pending: VecDeque<ListWatchEvent<K>>,
    kind: PhantomData<fn() -> K>,
}

/// A watcher, and the reports of its transport.
struct Watch {
    events: BoxStream<'static, watcher::Result<Event<RawObject>>>,
    reports: UnboundedReceiver<Report>,
    /// The cause of the watcher's next failure.
    failure: Option<Failure>,
}

enum Next {
    Report(Report),
    Event(Box<watcher::Result<Event<RawObject>>>),
}

impl<K> fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Creates a watcher. The first call of [`Self::next`] sends the first request.
    fn new(client: &Client, config: &ListWatchConfig) -> Self {
        let (sender, reports) = unbounded_channel();
        let client = transport::client(client.clone(), config, sender);
        let seconds = u32::try_from(config.life.as_secs().max(1)).unwrap_or(u32::MAX);
        let watcher_config = Config::default().timeout(seconds);
        let watcher_config = match config.listing {
            Listing::Streamed(_) => watcher_config.streaming_lists(),
            Listing::Paged(size) => watcher_config.page_size(size),
        };
        let api = Api::<RawObject>::all_with(client, &config.path);
        Self {
            events: watcher(api, watcher_config).boxed(),
            reports,
            failure: None,
        }
    }

    /// Waits for the next report of the transport or event of the watcher. Reports that precede an event are returned
    /// before it. This keeps the order of the received lines.
    async fn next(&mut self) -> Vec<Next> {
        let mut next = Vec::new();
        let event = tokio::select! {
            biased;
            Some(report) = self.reports.recv() => {
                next.push(Next::Report(report));
                return next;
            }
            event = self.events.next() => event,
        };
        while let Ok(report) = self.reports.try_recv() {
            next.push(Next::Report(report));
        }
        // `event` is always `Some`, since the stream of a watcher never ends.
        next.extend(event.map(|event| Next::Event(Box::new(event))));
        next
    }
}

impl<K: Resource + DeserializeOwned> ListWatch<K> {
    /// Creates a list and watch. The first call of [`Self::next`] sends the first request.
    pub(crate) fn new(client: Client, config: ListWatchConfig) -> Self {
        let watch = Mutex::new(Watch::new(&client, &config));
        Self {
            client,
            config,
            watch,
            pending: VecDeque::new(),
            kind: PhantomData,
        }
    }

    /// Waits for the next event. The wait ends at the deadline of the current request.
    pub(crate) async fn next(&mut self) -> ListWatchEvent<K> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            let watch = self.watch.get_mut().unwrap_or_else(PoisonError::into_inner);
            for next in watch.next().await {
                self.handle(next);
            }
        }
    }

    fn handle(&mut self, next: Next) {
        let watch = self.watch.get_mut().unwrap_or_else(PoisonError::into_inner);
        match next {
            Next::Report(Report::Progress) => self.pending.push_back(ListWatchEvent::Alive),
            Next::Report(Report::Failed(failure)) => watch.failure = Some(failure),
            Next::Report(Report::Event(event)) => self.event(*event),
            Next::Event(event) => match *event {
                Ok(event) => self.event(event),
                Err(error) => {
                    let reported = watch.failure.take();
                    self.fail(reported.unwrap_or_else(|| unreported(&error).into()));
                }
            },
        }
    }

    fn event(&mut self, event: Event<RawObject>) {
        let max_unpacked = self.config.max_unpacked;
        let parsed = |object: &RawObject| object.parse::<K>(max_unpacked);
        let event = match event {
            Event::Init => ListWatchEvent::Init,
            Event::InitApply(object) => {
                parsed(&object).map_or_else(ListWatchEvent::Unreadable, ListWatchEvent::InitApply)
            }
            Event::InitDone => ListWatchEvent::InitDone,
            Event::Apply(object) => {
                parsed(&object).map_or_else(ListWatchEvent::Unreadable, ListWatchEvent::Apply)
            }
            Event::Delete(object) => match parsed(&object) {
                Ok(object) => ListWatchEvent::Delete(object),
                // The deleted object is unknown, so a new list is necessary.
                Err(_) => {
                    self.restart();
                    ListWatchEvent::Expired
                }
            },
        };
        let is_list_over = matches!(event, ListWatchEvent::InitDone);
        self.pending.push_back(event);
        // The bookmark at the end of a streamed list also shows that the watch works.
        if is_list_over && matches!(self.config.listing, Listing::Streamed(_)) {
            self.pending.push_back(ListWatchEvent::Alive);
        }
    }

    fn fail(&mut self, failure: Failure) {
        let (Listing::Streamed(size) | Listing::Paged(size)) = self.config.listing;
        let is_streamed = matches!(self.config.listing, Listing::Streamed(_));
        let error = match failure {
            Failure::PageTooLong => {
                self.config.listing = Listing::Paged((size / 2).max(1));
                self.restart();
                return;
            }
            Failure::Request(error) if is_streamed && is_streaming_rejected(&error) => {
                tracing::debug!(
                    path = self.config.path,
                    "the API server does not stream lists"
                );
                self.config.listing = Listing::Paged(size);
                self.restart();
                return;
            }
            Failure::Request(error) => error,
        };
        if !may_resume(&error) {
            self.restart();
        }
        self.pending.push_back(match error {
            Error::Status { code: 410, .. } => ListWatchEvent::Expired,
            error => ListWatchEvent::Failed(error),
        });
    }

    /// Starts a new list and watch.
    fn restart(&mut self) {
        self.watch = Mutex::new(Watch::new(&self.client, &self.config));
    }
}

/// Returns the error for a failure without a report of the transport.
fn unreported(error: &watcher::Error) -> Error {
    match error {
        watcher::Error::WatchError(status) => Error::Status {
            code: status.code,
            message: status.message.clone(),
        },
        error => Error::Decode(error.to_string()),
    }
}

/// Returns true if a watch may resume from its last resource version after `error`. A new list is necessary if an event
/// was lost, or if the API server rejected the request permanently.
fn may_resume(error: &Error) -> bool {
    match error {
        Error::Status { code, .. } => matches!(code, 401 | 403 | 429 | 500 | 502 | 503),
        Error::Decode(_) => false,
        _ => true,
    }
}

/// Returns true if the API server does not support streamed lists.
fn is_streaming_rejected(error: &Error) -> bool {
    match error {
        Error::Status { code, message } => {
            matches!(code, 400 | 422) && message.contains("sendInitialEvents")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
