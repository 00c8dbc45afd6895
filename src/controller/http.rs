//! Reading documents from the API server: conditional, bounded in time and in size.

use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use hyper::body::Bytes;
use kube::Client;

use super::error::{Error, empty_body, within};

/// How long a document may take.
pub(crate) const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How large a document may be, in bytes; the largest of Kubernetes' own has 2 MiB.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// How much of an error's text is read, in bytes.
pub(crate) const MAX_ERROR_BYTES: usize = 4 * 1024;

/// A document with what its head said about it.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its entity tag, to ask later whether it changed.
    pub(crate) etag: Option<String>,
    /// Its content.
    pub(crate) body: Bytes,
}

/// Gets the document at `path`, or `None` where it still is the one with the tag `known`.
///
/// # Errors
/// Where the API server cannot be reached, does not answer in time or not with the document.
pub(crate) async fn get(
    client: &Client,
    path: &str,
    accept: &str,
    known: Option<&str>,
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
            status => {
                let text = Limited::new(body, MAX_ERROR_BYTES).collect().await;
                let text = text.map(Collected::to_bytes).unwrap_or_default();
                return Err(Error::Status {
                    code: status.as_u16(),
                    message: message(&text),
                });
            }
        }
        let body = Limited::new(body, MAX_DOCUMENT_BYTES)
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
        }))
    })
    .await
}

/// The message of a `Status`, or the text itself.
pub(crate) fn message(text: &[u8]) -> String {
    match serde_json::from_slice::<kube::core::Status>(text) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}
