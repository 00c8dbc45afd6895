//! Entry points of fuzz targets. They decode arbitrary bytes as responses to lists and watches.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use super::{ListWatch, ListWatchConfig, ListWatchEvent, Listing, Representation};
use crate::cluster::error::Error;

/// The number of events that were decoded from a response, by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that were listed, created, changed or deleted.
    pub objects: usize,
    /// Objects that cannot be parsed.
    pub unreadable: usize,
    /// Bookmarks, and ends of lists.
    pub others: usize,
    /// Invalid watch events, invalid pages, and errors of the server.
    pub rejected: usize,
}

/// Decodes a watch response that starts with a list. The response arrives in chunks of `chunk`
/// bytes.
pub(in crate::controller) fn read_watch<K: Resource + DeserializeOwned>(
    bytes: &[u8],
    chunk: usize,
) -> Counts {
    read::<K>(bytes, chunk, Listing::Streamed(1))
}

/// Decodes one page of a list. The page arrives in chunks of `chunk` bytes.
pub(in crate::controller) fn read_page<K: Resource + DeserializeOwned>(
    bytes: &[u8],
    chunk: usize,
) -> Counts {
    read::<K>(bytes, chunk, Listing::Paged(1))
}

/// Decodes `bytes` as the response to the first request. The second request fails, which ends the loop.
fn read<K: Resource + DeserializeOwned>(bytes: &[u8], chunk: usize, listing: Listing) -> Counts {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let Ok(runtime) = runtime else {
        return Counts::default();
    };
    let config = ListWatchConfig {
        path: "/apis".to_owned(),
        representation: Representation::Whole,
        listing,
        life: Duration::from_secs(3_600),
        max_unpacked: usize::MAX,
    };
    runtime.block_on(async {
        let mut watch = ListWatch::<K>::new(client(bytes, chunk), config);
        let mut counts = Counts::default();
        loop {
            match watch.next().await {
                ListWatchEvent::Init => {}
                ListWatchEvent::InitApply(_)
                | ListWatchEvent::Apply(_)
                | ListWatchEvent::Delete(_) => {
                    counts.objects += 1;
                }
                ListWatchEvent::Unreadable(_) => counts.unreadable += 1,
                ListWatchEvent::InitDone | ListWatchEvent::Alive => counts.others += 1,
                ListWatchEvent::Expired | ListWatchEvent::Failed(Error::Decode(_)) => {
                    counts.rejected += 1;
                    return counts;
                }
                ListWatchEvent::Failed(_) => return counts,
            }
        }
    })
}

/// Returns a client that receives one response, with the body `bytes` in several chunks.
fn client(bytes: &[u8], chunk: usize) -> Client {
    let chunks: Vec<Bytes> = bytes
        .chunks(chunk.max(1))
        .map(Bytes::copy_from_slice)
        .collect();
    let is_over = AtomicBool::new(false);
    let service = tower::service_fn(move |_: Request<Body>| {
        let frames = chunks.clone().into_iter();
        let frames = frames.map(|chunk| Ok::<_, io::Error>(Frame::data(chunk)));
        let response = if is_over.swap(true, Ordering::Relaxed) {
            Err(io::Error::other("there is one response"))
        } else {
            Ok(Response::new(StreamBody::new(stream::iter(frames))))
        };
        async { response }
    });
    Client::new(service, "default")
}
