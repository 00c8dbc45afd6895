//! Forwards a request to the API server, or injects a fault.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, stream};
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use kube::client::Body;
use serde_json::Value;
use tokio::sync::mpsc;

use super::unreadable::{CorruptedObject, corrupt};
use super::{Fault, Inner, watch};
use parity::random::Random;

pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Watch,
}

/// The response to the client. An error in the body cuts the connection.
type Answer = Response<UnsyncBoxBody<Bytes, anyhow::Error>>;

/// Returns the response to a request. An error cuts the connection.
pub(super) async fn answer(inner: Arc<Inner>, request: Request<Incoming>) -> Result<Answer> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.context("the request")?.to_bytes();
    for header in [
        AUTHORIZATION,
        CONNECTION,
        CONTENT_LENGTH,
        HOST,
        TRANSFER_ENCODING,
    ] {
        parts.headers.remove(header);
    }
    let kind = kind(&parts.method, parts.uri.query().unwrap_or_default());
    let path = parts.uri.path().to_owned();
    let key = format!("{kind:?} {path}");
    let is_withheld = inner
        .state()
        .withheld
        .iter()
        .any(|withheld| path.starts_with(withheld));
    if is_withheld {
        // For a path that is not served, the API server responds with plain text.
        let answer = Response::builder()
            .status(404)
            .header("content-type", "text/plain");
        return Ok(answer.body(full_body("404 page not found\n"))?);
    }
    let forward = Request::from_parts(parts, Body::from(body.to_vec()));
    let decision = inner.decide(
        &key,
        |schedule| schedule.requests_permille,
        |fault| fault.applies_to(kind),
    );
    let answer = match decision {
        Some((fault, random)) => disturbed(&inner, forward, kind, &path, fault, random).await,
        None => forwarded(&inner, forward, kind, &path).await,
    };
    if kind == Kind::Write {
        // The delay gives the client time to read the response before the watch event arrives.
        let answered = inner.answered_writes.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            answered.send_modify(|n| *n += 1);
        });
    }
    answer
}

fn kind(method: &Method, query: &str) -> Kind {
    if *method != Method::GET && *method != Method::HEAD {
        return Kind::Write;
    }
    let mut parameters = query.split('&');
    let is_watch = parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1"));
    if is_watch { Kind::Watch } else { Kind::Read }
}

/// Injects `fault` into a request.
async fn disturbed(
    inner: &Arc<Inner>,
    request: Request<Body>,
    kind: Kind,
    path: &str,
    fault: Fault,
    mut random: Random,
) -> Result<Answer> {
    if let (Some((code, _)), Some(body)) = (fault.status(), fault.body()) {
        let mut answer = Response::builder()
            .status(code)
            .header("content-type", "application/json");
        if fault == Fault::TooManyRequests {
            answer = answer.header("retry-after", "1");
        }
        return Ok(answer.body(full_body(body.to_string()))?);
    }
    // True if the request is forwarded to the API server.
    let is_seen = random.permille(500);
    match fault {
        Fault::Delay => {
            let delay = random.duration(LONGEST_DELAY);
            if is_seen {
                let answer = forwarded(inner, request, kind, path).await;
                tokio::time::sleep(delay).await;
                answer
            } else {
                tokio::time::sleep(delay).await;
                forwarded(inner, request, kind, path).await
            }
        }
        Fault::Cut | Fault::BlackHole => {
            if is_seen {
                drop(forwarded(inner, request, kind, path).await);
            }
            if fault == Fault::BlackHole {
                inner.black_hole().await;
            }
            bail!("injected fault: {fault}")
        }
        Fault::HalfLine => {
            let (parts, body) = send(inner, request).await?.into_parts();
            let whole = body.collect().await?.to_bytes();
            let half = whole.slice(..whole.len() / 2);
            let end = stream::once(async {
                tokio::time::sleep(super::HALF_LINE_DELAY).await;
                Err(anyhow::anyhow!("half a line"))
            });
            let frames = stream::iter([Ok(Frame::data(half))]).chain(end);
            let body = StreamBody::new(frames).boxed_unsync();
            Ok(Response::from_parts(without_length(parts), body))
        }
        Fault::Unreadable => {
            let (parts, body) = send(inner, request).await?.into_parts();
            let text = body.collect().await?.to_bytes();
            let corrupted = corrupted_list(inner, path, &text, &mut random);
            let body = corrupted.map_or_else(|| full_body(text), full_body);
            Ok(Response::from_parts(without_length(parts), body))
        }
        _ => forwarded(inner, request, kind, path).await,
    }
}

/// Returns the list with one corrupted object. Returns `None` if the response is not a list, or if the list is empty.
fn corrupted_list(inner: &Inner, path: &str, text: &[u8], random: &mut Random) -> Option<String> {
    let mut list: Value = serde_json::from_slice(text).ok()?;
    let items = list.get_mut("items")?.as_array_mut()?;
    let n = random.below(items.len().try_into().ok()?);
    let item = items.get_mut(usize::try_from(n).ok()?)?;
    item.pointer("/metadata/name")?;
    // Items of a discovery response have names but are not objects.
    let corrupted_object = CorruptedObject::new(path, item);
    corrupt(item, true, random);
    inner.state().corrupted.extend(corrupted_object);
    Some(list.to_string())
}

/// Forwards the request and returns the API server's response.
async fn forwarded(
    inner: &Arc<Inner>,
    request: Request<Body>,
    kind: Kind,
    path: &str,
) -> Result<Answer> {
    let (parts, body) = send(inner, request).await?.into_parts();
    let parts = without_length(parts);
    if kind != Kind::Watch || !parts.status.is_success() {
        let text = body.collect().await?.to_bytes();
        return Ok(Response::from_parts(parts, full_body(text)));
    }
    let (sender, mut receiver) = mpsc::channel(1);
    tokio::spawn(watch::copy(
        Arc::clone(inner),
        path.to_owned(),
        body,
        sender,
    ));
    let frames = stream::poll_fn(move |context| receiver.poll_recv(context));
    Ok(Response::from_parts(
        parts,
        StreamBody::new(frames).boxed_unsync(),
    ))
}

async fn send(inner: &Inner, request: Request<Body>) -> Result<Response<Body>> {
    Ok(inner.upstream.0.send(request).await?)
}

/// Removes the content length, because the length may change.
fn without_length(mut parts: http::response::Parts) -> http::response::Parts {
    for header in [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION] {
        parts.headers.remove(header);
    }
    parts
}

fn full_body(text: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, anyhow::Error> {
    Full::new(text.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
