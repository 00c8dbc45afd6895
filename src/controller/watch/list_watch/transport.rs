//! The transport of one watch: a client through which `kube_runtime::watcher` sends its requests.
//!
//! The watcher has no deadlines, does not return bookmarks, and silently resumes after an interrupted response. The
//! transport reads the headers and each line of a response. It reports progress and failures, limits duration,
//! inactivity and size, and requests consistent lists.
//!
//! A line is passed on only when the watcher reads it. So reports and events are in the order of the lines.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use ::http::uri::InvalidUri;
use ::http::{Request, Response, StatusCode, Uri, header};
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use kube_runtime::watcher::Event;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout, timeout_at};

use super::config::{ListWatchConfig, Representation};
use super::lines::{Line, Lines};
use super::object::{self, RawObject};
use crate::cluster::error::{Error, describe};
use crate::cluster::http;
use crate::controller::process::memory::{MAX_WIRE_OBJECT, mebibytes};
use crate::controller::subjects::event_source::compare_versions;

/// The timeout of response headers, and the maximum time without data during a list.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(15);

/// The timeout for reading one page of a list.
const PAGE_TIMEOUT: Duration = Duration::from_secs(120);

/// How much longer than requested a watch may last.
///
/// This must be less than 5 s. After 5 s, the watcher itself ends a watch without data, and does not report a failure.
pub(super) const GRACE: Duration = Duration::from_secs(4);

/// The minimum duration of a watch without events. A shorter watch counts as a failure.
const MIN_LIFE: Duration = Duration::from_secs(1);

/// The annotation of the bookmark that ends a streamed list.
///
/// Source: apimachinery `pkg/apis/meta/v1/types.go`, `InitialEventsAnnotationKey`.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Facts about a watch that the watcher does not return.
#[derive(Debug)]
pub(super) enum Report {
    /// The watch works, since it received a bookmark or response headers.
    Progress,
    /// An event that the watcher would ignore or reject.
    Event(Box<Event<RawObject>>),
    /// The cause of the watcher's next failure.
    Failed(Failure),
}

#[derive(Debug)]
pub(super) enum Failure {
    /// A page of several objects is too long.
    PageTooLong,
    Request(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Request(error)
    }
}

/// The error that the watcher gets. A [`Report`] contains the cause.
#[derive(Debug, thiserror::Error)]
#[error("the request failed; the cause is in `Report::Failed`")]
pub(super) struct Reported;

/// Returns the client of one watch. The client sends requests through `client`, and reports to `reports`.
pub(super) fn client(
    client: Client,
    config: &ListWatchConfig,
    reports: UnboundedSender<Report>,
) -> Client {
    let transport = Transport {
        client,
        representation: config.representation,
        life: config.life,
        reports,
    };
    let service = tower::service_fn(move |request| transport.clone().send(request));
    Client::new(service, "default")
}

#[derive(Clone)]
struct Transport {
    client: Client,
    representation: Representation,
    life: Duration,
    reports: UnboundedSender<Report>,
}

type ResponseBody = UnsyncBoxBody<Bytes, Reported>;

impl Transport {
    async fn send(self, request: Request<Body>) -> Result<Response<ResponseBody>, Reported> {
        let start = Instant::now();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let parameter = |name: &str| {
            let mut parameters = query.split('&').filter_map(|it| it.split_once('='));
            parameters.find_map(|(key, value)| (key == name).then_some(value))
        };
        let is_watch = parameter("watch").is_some();
        let is_list = parameter("sendInitialEvents").is_some();
        let body = timeout(START_TIMEOUT, self.open(request, is_watch)).await;
        let body = match body.unwrap_or(Err(Error::Timeout(START_TIMEOUT))) {
            Ok(body) => body,
            Err(error) => return Err(self.fail(error.into())),
        };
        if !is_watch {
            return Ok(self.response(Page {
                body,
                end: Instant::now() + PAGE_TIMEOUT,
                n_bytes: 0,
                is_single: parameter("limit") == Some("1"),
            }));
        }
        if !is_list {
            self.report(Report::Progress);
        }
        let version = parameter("resourceVersion").unwrap_or_default().to_owned();
        let watch = Watch {
            reports: self.reports.clone(),
            lines: Lines::new(body),
            since: Instant::now(),
            end: start + self.life + GRACE,
            is_list,
            is_silent: true,
            is_over: false,
            version,
        };
        Ok(self.response(watch))
    }

    /// Sends a request and waits for the response headers. Returns the response body.
    async fn open(&self, request: Request<Body>, is_watch: bool) -> Result<Body, Error> {
        let (mut head, body) = request.into_parts();
        head.uri = consistent(&head.uri).map_err(|error| Error::Broken(error.to_string()))?;
        let accept = self.representation.media_type(is_watch);
        let identity = header::HeaderValue::from_static("identity");
        head.headers
            .insert(header::ACCEPT, header::HeaderValue::from_static(accept));
        head.headers.insert(header::ACCEPT_ENCODING, identity);
        let response = self.client.send(Request::from_parts(head, body)).await?;
        let (head, body) = response.into_parts();
        if head.status == StatusCode::OK {
            Ok(body)
        } else {
            Err(http::status_error(head.status, body).await)
        }
    }

    fn response(self, source: impl Source) -> Response<ResponseBody> {
        let frames = stream::unfold(Some((self, source)), |state| async {
            let (transport, mut source) = state?;
            match source.next().await {
                Ok(Some(bytes)) => Some((Ok(Frame::data(bytes)), Some((transport, source)))),
                Ok(None) => None,
                Err(failure) => Some((Err(transport.fail(failure)), None)),
            }
        });
        Response::new(StreamBody::new(frames).boxed_unsync())
    }

    fn fail(&self, failure: Failure) -> Reported {
        self.report(Report::Failed(failure));
        Reported
    }

    fn report(&self, report: Report) {
        // The error is ignored, because the receiver may have been dropped with the watch.
        drop(self.reports.send(report));
    }
}

/// Returns `uri` without the parameter `resourceVersion=0` of the watcher. With this parameter, the API server might
/// stream an outdated list.
fn consistent(uri: &Uri) -> Result<Uri, InvalidUri> {
    let text = uri.to_string().replacen("?&", "?", 1);
    match text.strip_suffix("&resourceVersion=0") {
        Some(text) if text.contains("sendInitialEvents=true") => text.parse(),
        _ => text.parse(),
    }
}

/// A response body that the watcher reads.
trait Source: Send + 'static {
    /// Returns the next bytes. `None` at the regular end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Failure>> + Send;
}

struct Page {
    body: Body,
    end: Instant,
    n_bytes: usize,
    is_single: bool,
}

impl Source for Page {
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let end = self.end.min(Instant::now() + START_TIMEOUT);
        let bytes = match timeout_at(end, self.body.frame()).await {
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(error))) => return Err(Error::Broken(describe(&error)).into()),
            Ok(None) => return Ok(None),
            Err(_) => return Err(Error::Timeout(START_TIMEOUT).into()),
        };
        self.n_bytes = self.n_bytes.saturating_add(bytes.len());
        if self.n_bytes <= MAX_WIRE_OBJECT {
            Ok(Some(bytes))
        } else if self.is_single {
            Err(Error::Decode(format!(
                "a list response with only one object is larger than {}",
                mebibytes(MAX_WIRE_OBJECT)
            ))
            .into())
        } else {
            Err(Failure::PageTooLong)
        }
    }
}

/// A watch response, which may start with a list.
struct Watch {
    reports: UnboundedSender<Report>,
    lines: Lines,
    /// The time at which the response headers arrived.
    since: Instant,
    end: Instant,
    /// True until the list is complete.
    is_list: bool,
    is_silent: bool,
    is_over: bool,
    version: String,
}

/// A watch event, which is one line of the response.
#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(rename = "type", borrow)]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Default, Deserialize)]
struct Bookmark {
    #[serde(default)]
    metadata: BookmarkMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: Option<String>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Source for Watch {
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while !self.is_over {
            let end = if self.is_list {
                self.end.min(Instant::now() + START_TIMEOUT)
            } else {
                self.end
            };
            let line = match self.lines.next(end).await? {
                Line::Whole(line) => line,
                Line::TooLong(skim) => {
                    let type_ = skim.type_.as_deref().unwrap_or_default();
                    line_of(type_, &object::too_long(&skim)).into_bytes()
                }
                Line::End { is_clean } => return Ok(self.check_end(is_clean).map(|()| None)?),
            };
            self.is_silent = false;
            if let Some(line) = self.event(&line)? {
                return Ok(Some(Bytes::from(line)));
            }
        }
        Ok(None)
    }
}

impl Watch {
    /// Converts a received line to the line that the watcher reads. `None` if the event is sent as a report instead.
    ///
    /// # Errors
    /// Returns an error if the line is not a watch event.
    fn event(&mut self, line: &[u8]) -> Result<Option<String>, Error> {
        let event: WireEvent<'_> =
            serde_json::from_slice(line).map_err(|error| Error::Decode(error.to_string()))?;
        match &*event.type_ {
            "ADDED" | "MODIFIED" | "DELETED" => {}
            "BOOKMARK" => return Ok(Some(self.bookmark(event.object))),
            "ERROR" => {
                self.is_over = true;
                return Ok(Some(line_of("ERROR", event.object.get())));
            }
            other => {
                return Err(Error::Decode(format!(
                    "a watch event has the unknown type `{other}`"
                )));
            }
        }
        let is_deleted = event.type_ == "DELETED";
        if let Some(version) = object::resource_version(event.object) {
            self.version = version;
            // During a list, the watcher ignores deletions. So they are sent as reports.
            if !(self.is_list && is_deleted) {
                return Ok(Some(line_of(&event.type_, event.object.get())));
            }
        }
        let object = RawObject::new(event.object.to_owned());
        let event = match (is_deleted, self.is_list) {
            (true, _) => Event::Delete(object),
            (false, true) => Event::InitApply(object),
            (false, false) => Event::Apply(object),
        };
        drop(self.reports.send(Report::Event(Box::new(event))));
        Ok(None)
    }

    /// Returns the line of a bookmark for the watcher.
    ///
    /// A bookmark that is older than the last version shows that the cluster was restored from a backup. Then the line
    /// is an error, so that the watcher lists again.
    fn bookmark(&mut self, object: &RawValue) -> String {
        let Bookmark { metadata } = serde_json::from_str(object.get()).unwrap_or_default();
        let annotations = metadata.annotations.unwrap_or_default();
        let ends_list = annotations
            .get(INITIAL_EVENTS_END)
            .is_some_and(|value| value == "true");
        if let Some(version) = metadata.resource_version.filter(|it| !it.is_empty()) {
            if !self.is_list && compare_versions(&version, &self.version) == Some(Ordering::Less) {
                self.is_over = true;
                return line_of("ERROR", r#"{"code":410}"#);
            }
            self.version = version;
        }
        if !self.is_list {
            drop(self.reports.send(Report::Progress));
        }
        self.is_list &= !ends_list;
        let metadata = json!({"resourceVersion": self.version, "annotations": annotations});
        let bookmark = json!({"apiVersion": "", "kind": "", "metadata": metadata});
        line_of("BOOKMARK", &bookmark.to_string())
    }

    fn check_end(&self, is_clean: bool) -> Result<(), Error> {
        let problem = if self.is_list {
            "the list ended before it was complete"
        } else if !is_clean {
            "the watch ended in the middle of an event"
        } else if self.is_silent && self.since.elapsed() < MIN_LIFE {
            "the watch ended immediately"
        } else {
            return Ok(());
        };
        Err(Error::Broken(problem.to_owned()))
    }
}

/// Returns a line for the watcher. Its type precedes its object, so that serde does not buffer the object.
fn line_of(type_: &str, object: &str) -> String {
    format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n")
}
