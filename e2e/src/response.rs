//! Responses of an API server, including warnings. kube discards warnings.

use anyhow::{Context as _, Result};
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// A response of the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The object in the response, or the `Status` of an error. A string if the body is not JSON.
    pub body: Value,
    /// The warnings, in the order of the `Warning` headers.
    pub warnings: Vec<String>,
}

impl Response {
    /// Sends a request. Responses with an error status are not errors.
    ///
    /// # Errors
    /// Returns an error if the request cannot be sent or the response is malformed.
    pub async fn send(client: &Client, request: Request<Body>) -> Result<Self> {
        let (head, body) = client.send(request).await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let warnings = head.headers.get_all("warning").iter().map(|value| {
            // A header value has the form `299 - "text"`. Quotes and backslashes in the text are escaped.
            let text = std::str::from_utf8(value.as_bytes())?;
            let text = text.strip_prefix("299 - ").context("a warning's code")?;
            Ok(serde_json::from_str(text)?)
        });
        Ok(Self {
            status: head.status.as_u16(),
            warnings: warnings.collect::<Result<_>>()?,
            body: serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()),
        })
    }

    /// Returns the message of the `Status`. Returns an empty string if the request succeeded.
    #[must_use]
    pub fn message(&self) -> &str {
        self.body
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns true if the request was allowed, or was denied by a policy.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.status < 300 || self.message().contains("ValidatingAdmissionPolicy '")
    }
}
