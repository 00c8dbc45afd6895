//! Lists the objects of a kind, and watches them for changes.
//!
//! A state machine over single requests: it takes a client and the path of a kind, and returns one
//! [`ListWatchEvent`] after the other. Each request has a deadline, for its head and for the whole; all progress is
//! reported, bookmarks included, so that the caller knows that the watch works. An object that cannot be parsed is
//! an event of its own and affects only itself. There are no silent retries: a failure is an event too, and the
//! next call resumes where the last one stopped.
//!
//! Lists are consistent: they request the current state, and not that of the cache of an API server, which may lag.
//!
//! Source: client-go `tools/cache/reflector.go`; KEP-3157 (streamed lists); KEP-956 (bookmarks).

mod event;
pub(crate) mod fuzzing;
mod lines;
mod skim;

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use kube::client::Body;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::event::Unreadable;
use self::event::{Page, WireEvent};
use self::lines::{Line, Lines};
use self::skim::{Item, Splitter};
use crate::cluster::error::{Error, describe, empty_body};
use crate::cluster::http::{MAX_ERROR_BYTES, message};
use crate::controller::process::memory::MAX_WIRE_OBJECT;

/// How long the head of an answer may take, and how long a list may be silent.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// How long reading a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(120);

/// How much longer than it was asked to a watch may live before its connection is taken for dead.
const GRACE: Duration = Duration::from_secs(10);

/// How long a watch must have lived for its end to be the ordinary one.
const LEAST_LIFE: Duration = Duration::from_secs(1);

/// Representations of objects that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    Whole,
    /// Its metadata.
    Metadata,
}

impl Representation {
    const fn of_list(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        }
    }

    const fn of_watch(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }
}

/// How the objects are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// As the first events of the watch, one object in memory at a time; by pages of so many where the
    /// API server says that it cannot.
    Streamed(u32),
    /// By pages of so many objects.
    Paged(u32),
}

/// Configuration of a watch: its objects, and how they are listed.
#[derive(Clone, Debug)]
pub(crate) struct ListWatchConfig {
    /// The path of the kind, such as `/apis/apps/v1/deployments`.
    pub(crate) path: String,
    /// Representation of each object.
    pub(crate) representation: Representation,
    /// How it is listed.
    pub(crate) listing: Listing,
    /// How long one watch request lives.
    pub(crate) life: Duration,
    /// The most memory that the tree of one object may need, in bytes; `usize::MAX` if the type of the objects builds
    /// none or has its own limit.
    pub(crate) max_unpacked: usize,
}

/// Events of a list or a watch.
#[derive(Debug)]
pub(crate) enum ListWatchEvent<K> {
    /// A list begins: what was listed before may be gone.
    Init,
    /// An object of the list.
    InitApply(K),
    /// The list is whole.
    InitDone,
    /// An object was created or changed.
    Apply(K),
    /// An object was deleted.
    Delete(K),
    /// The watch works, and nothing has happened.
    Alive,
    /// An object exists, and cannot be read.
    Unreadable(Unreadable),
    /// The known resource version is too old to resume from: a list follows.
    Expired,
    /// A request failed; the next call tries again.
    Failed(Error),
}

/// Lists and watches the objects of a kind.
pub(crate) struct ListWatch<K> {
    client: Client,
    config: ListWatchConfig,
    state: State<K>,
    kind: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

enum State<K> {
    /// Nothing is known.
    Empty,
    /// A list is on its way as the first events of a watch.
    Streaming { lines: Lines, end: Instant },
    /// A list is on its way by pages; those that were read are handed out first.
    Paging {
        items: VecDeque<Result<K, Unreadable>>,
        /// The page that is being read; `next` follows if there is none.
        reader: Option<Box<PageReader>>,
        next: Page,
    },
    /// The watch is to be taken up after this state of the cluster.
    Resuming { version: String },
    /// The watch is on, as the end of a streamed list has shown, and it was not told yet.
    Begun {
        version: String,
        lines: Lines,
        end: Instant,
    },
    /// The watch is on.
    Watching {
        version: String,
        lines: Lines,
        since: Instant,
        end: Instant,
        is_silent: bool,
    },
}

impl<K: Resource + DeserializeOwned> ListWatch<K> {
    /// Nothing is asked before the first call of [`Self::next`].
    pub(crate) fn new(client: Client, config: ListWatchConfig) -> Self {
        Self {
            client,
            config,
            state: State::Empty,
            kind: PhantomData,
        }
    }

    /// The next sign, when there is one; within the deadlines of the requests there always is.
    ///
    /// Where the call is given up before it ends, what was known is given up too: a list follows.
    pub(crate) async fn next(&mut self) -> ListWatchEvent<K> {
        loop {
            let state = std::mem::replace(&mut self.state, State::Empty);
            let sign = match state {
                State::Empty => self.start().await,
                State::Streaming { lines, end } => self.stream(lines, end).await,
                State::Paging {
                    items,
                    reader,
                    next,
                } => self.page(items, reader, next).await,
                State::Resuming { version } => Some(self.resume(version).await),
                State::Begun {
                    version,
                    lines,
                    end,
                } => {
                    self.state = State::Watching {
                        version,
                        lines,
                        since: Instant::now(),
                        end,
                        is_silent: false,
                    };
                    Some(ListWatchEvent::Alive)
                }
                State::Watching {
                    version,
                    lines,
                    since,
                    end,
                    is_silent,
                } => self.follow(version, lines, since, end, is_silent).await,
            };
            if let Some(sign) = sign {
                return sign;
            }
        }
    }

    /// Begins a list.
    async fn start(&mut self) -> Option<ListWatchEvent<K>> {
        let Listing::Streamed(page) = self.config.listing else {
            self.state = State::Paging {
                items: VecDeque::new(),
                reader: None,
                next: Page::After(String::new()),
            };
            return Some(ListWatchEvent::Init);
        };
        let end = self.end();
        let streamed = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        match self.watch(streamed).await {
            Ok(lines) => {
                self.state = State::Streaming { lines, end };
                Some(ListWatchEvent::Init)
            }
            Err(error) if is_streaming_refused(&error) => {
                tracing::debug!(
                    path = self.config.path,
                    "the API server does not stream lists"
                );
                self.config.listing = Listing::Paged(page);
                None
            }
            Err(error) => Some(failed(error)),
        }
    }

    /// The next sign of a streamed list.
    async fn stream(&mut self, mut lines: Lines, end: Instant) -> Option<ListWatchEvent<K>> {
        let event = match lines.next(end.min(Instant::now() + START_TIMEOUT)).await {
            Ok(Line::Whole(line)) => event::read(&line, self.config.max_unpacked),
            Ok(Line::TooLong(skim)) => event::read_too_long(&skim),
            Ok(Line::End { .. }) => {
                return Some(ListWatchEvent::Failed(broken(
                    "the list ended before it was whole",
                )));
            }
            Err(error) => return Some(ListWatchEvent::Failed(error)),
        };
        let (told, version) = match event {
            Ok(told) => told,
            Err(error) => return Some(ListWatchEvent::Failed(error)),
        };
        let sign = match told {
            WireEvent::Error(error) => return Some(failed(error)),
            WireEvent::Bookmark { ends_list: true } => {
                // A list takes its own time from that of the watch that it began.
                self.state = State::Begun {
                    version: version.unwrap_or_default(),
                    lines,
                    end,
                };
                return Some(ListWatchEvent::InitDone);
            }
            WireEvent::Bookmark { ends_list: false } => None,
            WireEvent::Applied(object) => {
                Some(object.map_or_else(ListWatchEvent::Unreadable, ListWatchEvent::InitApply))
            }
            WireEvent::Deleted(object) => object.ok().map(ListWatchEvent::Delete),
        };
        self.state = State::Streaming { lines, end };
        sign
    }

    /// The next sign of a list by pages.
    async fn page(
        &mut self,
        mut items: VecDeque<Result<K, Unreadable>>,
        reader: Option<Box<PageReader>>,
        next: Page,
    ) -> Option<ListWatchEvent<K>> {
        if let Some(item) = items.pop_front() {
            self.state = State::Paging {
                items,
                reader,
                next,
            };
            return Some(item.map_or_else(ListWatchEvent::Unreadable, ListWatchEvent::InitApply));
        }
        let reader = match (reader, next) {
            (Some(mut reader), next) => {
                let max_unpacked = self.config.max_unpacked;
                let push = |item| items.push_back(event::item(item, max_unpacked));
                match reader.read(push).await {
                    Ok(None) => {
                        self.state = State::Paging {
                            items,
                            reader: Some(reader),
                            next,
                        };
                    }
                    Ok(Some(next)) => {
                        self.state = State::Paging {
                            items,
                            reader: None,
                            next,
                        };
                    }
                    Err(error) => return Some(failed(error)),
                }
                return None;
            }
            (None, Page::None { version }) => {
                self.state = State::Resuming { version };
                return Some(ListWatchEvent::InitDone);
            }
            (None, Page::After(mark)) => self.open_page(&mark).await,
        };
        match reader {
            Ok(reader) => {
                self.state = State::Paging {
                    items,
                    reader: Some(Box::new(reader)),
                    // Known at the end of the page.
                    next: Page::After(String::new()),
                };
                None
            }
            Err(error) => Some(failed(error)),
        }
    }

    /// Takes the watch up again after the state `version`.
    async fn resume(&mut self, version: String) -> ListWatchEvent<K> {
        let end = self.end();
        let query = format!("&resourceVersion={version}");
        match self.watch(&query).await {
            Ok(lines) => {
                self.state = State::Watching {
                    version,
                    lines,
                    since: Instant::now(),
                    end,
                    is_silent: true,
                };
                ListWatchEvent::Alive
            }
            Err(error) => {
                if may_resume(&error) {
                    self.state = State::Resuming { version };
                }
                failed(error)
            }
        }
    }

    /// The next sign of a watch that is on.
    async fn follow(
        &mut self,
        version: String,
        mut lines: Lines,
        since: Instant,
        end: Instant,
        is_silent: bool,
    ) -> Option<ListWatchEvent<K>> {
        let event = match lines.next(end).await {
            Ok(Line::Whole(line)) => event::read(&line, self.config.max_unpacked),
            Ok(Line::TooLong(skim)) => event::read_too_long(&skim),
            Ok(Line::End { is_clean }) => {
                self.state = State::Resuming { version };
                let is_ordinary = is_clean && !(is_silent && since.elapsed() < LEAST_LIFE);
                return (!is_ordinary).then(|| {
                    ListWatchEvent::Failed(broken(if is_clean {
                        "the watch ended as soon as it began"
                    } else {
                        "the watch ended in the middle of an event"
                    }))
                });
            }
            Err(error) => {
                self.state = State::Resuming { version };
                return Some(ListWatchEvent::Failed(error));
            }
        };
        let (told, new_version) = match event {
            Ok(told) => told,
            // Where an event was lost, only a list can tell what it was.
            Err(error) => return Some(ListWatchEvent::Failed(error)),
        };
        let sign = match told {
            WireEvent::Error(error) => {
                if may_resume(&error) {
                    self.state = State::Resuming { version };
                }
                return Some(failed(error));
            }
            // The state of the cluster was set back, as it is by a restored backup.
            WireEvent::Bookmark { .. } if is_older(new_version.as_deref(), &version) => {
                return Some(ListWatchEvent::Expired);
            }
            WireEvent::Bookmark { .. } => ListWatchEvent::Alive,
            WireEvent::Applied(object) => {
                object.map_or_else(ListWatchEvent::Unreadable, ListWatchEvent::Apply)
            }
            WireEvent::Deleted(Ok(object)) => ListWatchEvent::Delete(object),
            // It cannot be read, and it is gone: a list tells which.
            WireEvent::Deleted(Err(_)) => return Some(ListWatchEvent::Expired),
        };
        self.state = State::Watching {
            version: new_version.unwrap_or(version),
            lines,
            since,
            end,
            is_silent: false,
        };
        Some(sign)
    }

    fn end(&self) -> Instant {
        Instant::now() + self.config.life + GRACE
    }

    /// Begins a watch.
    async fn watch(&self, query: &str) -> Result<Lines, Error> {
        let ListWatchConfig { path, life, .. } = &self.config;
        let seconds = life.as_secs().max(1);
        let uri =
            format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}{query}");
        let body = self
            .open(&uri, self.config.representation.of_watch())
            .await?;
        Ok(Lines::new(body))
    }

    /// Opens the page after `mark`.
    async fn open_page(&self, mark: &str) -> Result<PageReader, Error> {
        let (Listing::Paged(size) | Listing::Streamed(size)) = self.config.listing;
        let path = &self.config.path;
        let mark = form_urlencoded(mark);
        let uri = format!("{path}?limit={size}{mark}");
        let body = self
            .open(&uri, self.config.representation.of_list())
            .await?;
        Ok(PageReader {
            body: Mutex::new(body),
            splitter: Splitter::new(MAX_WIRE_OBJECT),
            end: Instant::now() + PAGE_TIMEOUT,
        })
    }

    /// Sends a GET and reads the head of its answer.
    async fn open(&self, uri: &str, accept: &str) -> Result<Body, Error> {
        let request = Request::get(uri)
            .header(header::ACCEPT, accept)
            // From 1.37 on an API server compresses each event of a watch on its own.
            .header(header::ACCEPT_ENCODING, "identity");
        let request = empty_body(request)?;
        let end = Instant::now() + START_TIMEOUT;
        let answer = async {
            let (head, body) = self.client.send(request).await?.into_parts();
            if head.status == StatusCode::OK {
                return Ok(body);
            }
            let text = Limited::new(body, MAX_ERROR_BYTES).collect().await;
            let text = text.map(Collected::to_bytes).unwrap_or_default();
            Err(Error::Status {
                code: head.status.as_u16(),
                message: message(&text),
            })
        };
        timeout_at(end, answer)
            .await
            .unwrap_or(Err(Error::Timeout(START_TIMEOUT)))
    }
}

/// A page of a list that is read item by item.
struct PageReader {
    /// A mutex for the same reason as that of [`Lines`].
    body: Mutex<Body>,
    splitter: Splitter,
    end: Instant,
}

impl PageReader {
    /// Reads on. Returns the next page at the end of this one.
    async fn read(&mut self, push: impl FnMut(Item)) -> Result<Option<Page>, Error> {
        let end = self.end.min(Instant::now() + START_TIMEOUT);
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        match timeout_at(end, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                let bytes = frame.into_data().unwrap_or_default();
                if self.splitter.feed(&bytes, push) {
                    Ok(None)
                } else {
                    Err(Error::Decode("a page of a list is no list".to_owned()))
                }
            }
            Ok(Some(Err(error))) => Err(Error::Broken(describe(&error))),
            Ok(None) => event::read_page(self.splitter.rest()).map(Some),
            Err(_) => Err(Error::Timeout(START_TIMEOUT)),
        }
    }
}

fn broken(text: &str) -> Error {
    Error::Broken(text.to_owned())
}

/// The sign of a failed request: 410 means that what was known is too old.
fn failed<K>(error: Error) -> ListWatchEvent<K> {
    match error {
        Error::Status { code: 410, .. } => ListWatchEvent::Expired,
        error => ListWatchEvent::Failed(error),
    }
}

/// Reports whether a watch may resume where it was after such a failure. Where the API server rejects
/// the request itself, asking again does not help.
fn may_resume(error: &Error) -> bool {
    match error {
        Error::Status { code, .. } => matches!(code, 401 | 403 | 429 | 500 | 502 | 503),
        _ => true,
    }
}

/// Reports whether the API server does not support streamed lists.
fn is_streaming_refused(error: &Error) -> bool {
    match error {
        Error::Status { code, message } => {
            matches!(code, 400 | 422) && message.contains("sendInitialEvents")
        }
        _ => false,
    }
}

/// Reports whether the resource version `new` is older than `known`; both are numbers (KEP-5504).
fn is_older(new: Option<&str>, known: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    match (new.and_then(number), number(known)) {
        (Some(new), Some(known)) => new < known,
        _ => false,
    }
}

/// `&continue=` with the mark of a page, as it stands in a query; nothing where there is no mark.
fn form_urlencoded(mark: &str) -> String {
    if mark.is_empty() {
        return String::new();
    }
    let mut query = "&continue=".to_owned();
    for byte in mark.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            query.extend(format!("%{byte:02X}").chars());
        }
    }
    query
}

#[cfg(test)]
mod tests;
