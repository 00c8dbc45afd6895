//! Entry points of fuzz targets: the bytes of lists and watches, as any server might send them.

use std::convert::Infallible;
use std::time::Duration;

use futures::stream;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::event::{self, WireEvent};
use super::lines::{Line, Lines};
use super::skim::Splitter;
use crate::controller::process::memory::MAX_WIRE_OBJECT;

/// Numbers of items that were read from the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that were read.
    pub objects: usize,
    /// Objects that cannot be read, and have a name and a problem of their own.
    pub unreadable: usize,
    /// Bookmarks and errors of the server.
    pub others: usize,
    /// Lines or pages that are no event and no list.
    pub rejected: usize,
}

impl Counts {
    fn count<K, E>(&mut self, object: &Result<K, E>) {
        match object {
            Ok(_) => self.objects += 1,
            Err(_) => self.unreadable += 1,
        }
    }
}

/// Reads a watch that arrives in chunks of `chunk` bytes.
pub(in crate::controller) fn read_watch<K: Resource + DeserializeOwned>(
    bytes: &[u8],
    chunk: usize,
) -> Counts {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(count_lines::<K>(bytes, chunk)),
        Err(_) => Counts::default(),
    }
}

async fn count_lines<K: Resource + DeserializeOwned>(bytes: &[u8], chunk: usize) -> Counts {
    let mut counts = Counts::default();
    let Some(body) = body(bytes, chunk).await else {
        return counts;
    };
    let mut lines = Lines::new(body);
    let end = Instant::now() + Duration::from_secs(3_600);
    while let Ok(Line::Whole(line)) = lines.next(end).await {
        match event::read::<K>(&line, usize::MAX) {
            Ok((WireEvent::Applied(object) | WireEvent::Deleted(object), _)) => {
                counts.count(&object);
            }
            Ok((WireEvent::Bookmark { .. } | WireEvent::Error(_), _)) => counts.others += 1,
            Err(_) => counts.rejected += 1,
        }
    }
    counts
}

/// Returns a response body of several chunks. Only a client makes such bodies.
async fn body(bytes: &[u8], chunk: usize) -> Option<Body> {
    let chunks: Vec<Bytes> = bytes
        .chunks(chunk.max(1))
        .map(Bytes::copy_from_slice)
        .collect();
    let service = tower::service_fn(move |_: Request<Body>| {
        let frames = chunks.clone().into_iter();
        let frames = frames.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk)));
        let response = Response::new(StreamBody::new(stream::iter(frames)));
        async { Ok::<_, Infallible>(response) }
    });
    let client = Client::new(service, "default");
    let response = client.send(Request::new(Body::empty())).await.ok()?;
    Some(response.into_body())
}

/// Reads a page of a list that arrives in chunks of `chunk` bytes.
pub(in crate::controller) fn read_page<K: Resource + DeserializeOwned>(
    bytes: &[u8],
    chunk: usize,
) -> Counts {
    let mut counts = Counts::default();
    let mut splitter = Splitter::new(MAX_WIRE_OBJECT);
    for chunk in bytes.chunks(chunk.max(1)) {
        let is_list = splitter.feed(chunk, |item| {
            counts.count(&event::item::<K>(item, usize::MAX));
        });
        if !is_list {
            break;
        }
    }
    if event::read_page(splitter.rest()).is_err() {
        counts.rejected += 1;
    }
    counts
}
