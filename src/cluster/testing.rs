//! A fake API server for tests. A function maps requests to responses. The layers of the real client call the function.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) if_none_match: Option<String>,
    pub(crate) body: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) etag: Option<&'static str>,
    pub(crate) body: String,
    /// True if the connection stays open after the body.
    pub(crate) is_open: bool,
    /// The delay of the response.
    pub(crate) delay: Duration,
}

impl Reply {
    pub(crate) fn json(value: &Value) -> Self {
        Self {
            status: 200,
            etag: None,
            body: value.to_string(),
            is_open: false,
            delay: Duration::ZERO,
        }
    }

    /// Returns a watch response that sends `events` and stays open.
    pub(crate) fn watch(events: &[String]) -> Self {
        Self {
            body: events.concat(),
            is_open: true,
            ..Self::json(&Value::Null)
        }
    }

    /// Returns a watch response that sends `events` and ends.
    pub(crate) fn ended_watch(events: &[String]) -> Self {
        Self {
            is_open: false,
            ..Self::watch(events)
        }
    }

    pub(crate) fn etag(mut self, etag: &'static str) -> Self {
        self.etag = Some(etag);
        self
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(crate) fn failure(status: u16, message: &str) -> Self {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": message, "reason": "", "code": status,
        });
        Self {
            status,
            ..Self::json(&body)
        }
    }
}

pub(crate) type Log = Arc<Mutex<Vec<ReceivedRequest>>>;

/// Returns a client that sends each request to `answer`, and the log of the requests. If `answer` returns `None`, the
/// request gets no response.
pub(crate) fn client(
    answer: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
) -> (Client, Log) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let request = ReceivedRequest {
                method: head.method,
                path: head
                    .uri
                    .path_and_query()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                if_none_match: head
                    .headers
                    .get(header::IF_NONE_MATCH)
                    .map(|etag| etag.to_str().unwrap().to_owned()),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            };
            seen.lock().unwrap().push(request.clone());
            match answer(&request) {
                Some(reply) => {
                    tokio::time::sleep(reply.delay).await;
                    Ok::<_, tower::BoxError>(response(reply, &request))
                }
                None => std::future::pending().await,
            }
        }
    });
    let config = kube::Config::new(http::Uri::from_static("http://api.invalid"));
    let client = super::client::stack(&config, service, Arc::new(|_, _, _| {})).unwrap();
    (client, log)
}

type Answer = UnsyncBoxBody<Bytes, Infallible>;

fn response(reply: Reply, request: &ReceivedRequest) -> Response<Answer> {
    let mut response = Response::builder().status(reply.status);
    if let Some(etag) = reply.etag {
        response = response.header(header::ETAG, etag);
        if request.if_none_match.as_deref() == Some(etag) {
            let response = response.status(StatusCode::NOT_MODIFIED);
            return response.body(Empty::new().boxed_unsync()).unwrap();
        }
    }
    if reply.is_open {
        let head = futures::stream::iter([Ok(Frame::data(Bytes::from(reply.body)))]);
        let body = StreamBody::new(head.chain(futures::stream::pending()));
        return response.body(body.boxed_unsync()).unwrap();
    }
    let body = Full::new(Bytes::from(reply.body)).boxed_unsync();
    response.body(body).unwrap()
}

pub(crate) fn paths(log: &Log) -> Vec<String> {
    log.lock()
        .unwrap()
        .iter()
        .map(|seen| seen.path.clone())
        .collect()
}
