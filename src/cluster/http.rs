//! Reads documents from the API server, with limits on time and size.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use hyper::body::Bytes;
use kube::Client;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Error, empty_body, within};

pub(crate) const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a document, in bytes. The largest document of a default Kubernetes cluster has 2 MiB.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

const MAX_ERROR_BYTES: usize = 4 * 1024;

#[derive(Debug)]
pub(crate) struct Document {
    /// The entity tag for a later conditional request.
    pub(crate) etag: Option<String>,
    pub(crate) body: Bytes,
    /// The part of the [`Budget`] that is reserved until the document is dropped.
    _share: Option<OwnedSemaphorePermit>,
}

/// A limit on the total memory of documents while they are read or parsed.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    kib: Arc<Semaphore>,
    max_bytes: usize,
}

/// A document of unknown length reserves this fraction of the budget (one fourth).
const UNKNOWN_SHARE: usize = 4;

impl Budget {
    /// Creates a budget of `max_bytes`, which is also the maximum size of a single document.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            kib: Arc::new(Semaphore::new(max_bytes / 1024)),
            max_bytes,
        }
    }

    /// Reserves a part of the budget for a document of `n_bytes`. Returns the permit, and the allowed number of bytes.
    async fn share(
        &self,
        n_bytes: Option<usize>,
    ) -> Result<(Option<OwnedSemaphorePermit>, usize), Error> {
        let allowed = n_bytes.unwrap_or(self.max_bytes / UNKNOWN_SHARE);
        if allowed > self.max_bytes {
            return Err(Error::Decode(format!(
                "the document is larger than {} MiB",
                self.max_bytes >> 20
            )));
        }
        let kib = u32::try_from(allowed / 1024).unwrap_or(u32::MAX);
        // The wait cannot fail, since the semaphore is never closed.
        let share = Arc::clone(&self.kib).acquire_many_owned(kib).await.ok();
        Ok((share, allowed))
    }
}

/// Reads the document at `path`. Returns `None` if the document still has the entity tag `known`.
pub(crate) async fn get(
    client: &Client,
    path: &str,
    accept: &str,
    known: Option<&str>,
) -> Result<Option<Document>, Error> {
    read(client, path, accept, known, None).await
}

/// Reads a document like [`get`], but waits until `budget` has room for the document. Fails if the document is larger
/// than the budget.
pub(crate) async fn get_within(
    client: &Client,
    path: &str,
    accept: &str,
    known: Option<&str>,
    budget: &Budget,
) -> Result<Option<Document>, Error> {
    read(client, path, accept, known, Some(budget)).await
}

/// Returns the error for an unsuccessful response. Includes the beginning of the response's message.
pub(crate) async fn status_error(status: StatusCode, body: kube::client::Body) -> Error {
    let text = Limited::new(body, MAX_ERROR_BYTES).collect().await;
    let text = text.map(Collected::to_bytes).unwrap_or_default();
    Error::Status {
        code: status.as_u16(),
        message: message(&text),
    }
}

async fn read(
    client: &Client,
    path: &str,
    accept: &str,
    known: Option<&str>,
    budget: Option<&Budget>,
) -> Result<Option<Document>, Error> {
    let mut request = Request::get(path).header(header::ACCEPT, accept);
    if let Some(etag) = known {
        request = request.header(header::IF_NONE_MATCH, etag);
    }
    let request = empty_body(request)?;
    within(DOCUMENT_TIMEOUT, async {
        let response = client.send(request).await?;
        let (head, body) = response.into_parts();
        match head.status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED => return Ok(None),
            status => return Err(status_error(status, body).await),
        }
        let (share, max_bytes) = match budget {
            Some(budget) => {
                let n_bytes = head.headers.get(header::CONTENT_LENGTH);
                let n_bytes = n_bytes.and_then(|length| length.to_str().ok()?.parse().ok());
                budget.share(n_bytes).await?
            }
            None => (None, MAX_DOCUMENT_BYTES),
        };
        let body = Limited::new(body, max_bytes)
            .collect()
            .await
            .map_err(|error| Error::Decode(error.to_string()))?
            .to_bytes();
        let etag = head
            .headers
            .get(header::ETAG)
            .and_then(|etag| etag.to_str().ok());
        Ok(Some(Document {
            etag: etag.map(str::to_owned),
            body,
            _share: share,
        }))
    })
    .await
}

/// Returns the message of a `Status` object, or else the whole body.
pub(crate) fn message(text: &[u8]) -> String {
    match serde_json::from_slice::<kube::core::Status>(text) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}
