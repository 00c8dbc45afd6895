//! Errors of requests to the API server, and their classes.

use std::error::Error as StdError;
use std::time::Duration;

use kube::client::Body;

use super::address::redacted;
use crate::telemetry::metrics::ErrorReason;

/// A failed request to the API server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request could not be sent, or the API server rejected it.
    #[error("{}", describe(.0))]
    Client(#[from] kube::Error),
    /// No response arrived in time.
    #[error("no response within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The API server responded with an unexpected status.
    #[error("the API server returned {code}{}", detail(.message))]
    Status {
        /// The HTTP status.
        code: u16,
        /// The message of the response. Empty if there is none.
        message: String,
    },
    /// The response cannot be parsed.
    #[error("cannot read the response: {0}")]
    Decode(String),
    /// The response is incomplete. The field contains the complete error message.
    #[error("{0}")]
    Broken(String),
    /// The response is empty, for example because a group version has no OpenAPI document.
    ///
    /// Source: kube-openapi `pkg/handler3/handler.go`, `HandleGroupVersion`.
    #[error("the API server currently publishes no schemas for this group version")]
    Unpublished,
}

impl Error {
    /// Returns true if the client or the API server rejects the certificate of the other side.
    #[must_use]
    pub(crate) fn is_certificate_error(&self) -> bool {
        let Self::Client(error) = self else {
            return false;
        };
        let text = describe(error).to_lowercase();
        let is_certificate = || {
            text.contains("certificate")
                || text.contains("unknownissuer")
                || text.contains("unknownca")
        };
        !matches!(error, kube::Error::Api(_)) && is_certificate()
    }

    /// Returns the class of the error, which is a label value in metrics.
    #[must_use]
    pub fn reason(&self) -> ErrorReason {
        match self {
            Self::Timeout(_) => ErrorReason::Timeout,
            Self::Unpublished => ErrorReason::NotFound,
            Self::Decode(_) => ErrorReason::Decode,
            Self::Status { code, message } => status_reason(*code, message),
            Self::Client(kube::Error::Api(status)) => status_reason(status.code, &status.message),
            Self::Client(kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) => {
                ErrorReason::Decode
            }
            Self::Broken(_)
            | Self::Client(
                kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_),
            ) => ErrorReason::Connection,
            Self::Client(kube::Error::Auth(_)) => ErrorReason::Unauthorized,
            Self::Client(_) => ErrorReason::Other,
        }
    }
}

fn status_reason(code: u16, message: &str) -> ErrorReason {
    match code {
        401 => ErrorReason::Unauthorized,
        403 => ErrorReason::Forbidden,
        404 | 410 => ErrorReason::NotFound,
        409 => ErrorReason::Conflict,
        413 => ErrorReason::TooLarge,
        400 | 422 => ErrorReason::Invalid,
        429 => ErrorReason::Throttled,
        // The API server reports a size limit of etcd as an internal error.
        500 if message.contains("request is too large") => ErrorReason::TooLarge,
        500 if is_undeclared_field(message) => ErrorReason::Invalid,
        500.. => ErrorReason::Server,
        _ => ErrorReason::Other,
    }
}

/// Returns true if server-side apply failed because the schema lacks a field of the request.
///
/// The API server returns status 500 in this case, so only `message` identifies the error. Example: `failed to create
/// typed patch object (/p; vap-status.dev/v1alpha1, Kind=PolicyProbe): .status.x: field not declared in schema`.
///
/// Source: `k8s.io/apimachinery` `pkg/util/managedfields/internal/structuredmerge.go`, `Apply`; `structured-merge-diff`
/// `typed/validate.go`, `doMap`.
fn is_undeclared_field(message: &str) -> bool {
    message.starts_with("failed to create typed ")
        && message.contains(": field not declared in schema")
}

fn detail(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        String::new()
    } else {
        format!(": {line}")
    }
}

/// Formats a client error on one line: the API server's message, or the innermost cause of the error.
#[must_use]
pub fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            let message = if status.message.is_empty() {
                &status.reason
            } else {
                &status.message
            };
            format!("the API server returned {}{}", status.code, detail(message))
        }
        _ => innermost(error),
    }
}

/// Returns the message of the innermost cause, without credentials in URLs. The outer messages are less specific.
pub(super) fn innermost(error: &(dyn StdError + 'static)) -> String {
    /// The maximum length of the chain of causes. A limit is needed, because the chain may be cyclic.
    const MAX_CAUSES: usize = 16;
    let mut current = error;
    for _ in 0..MAX_CAUSES {
        match current.source() {
            Some(source) => current = source,
            None => break,
        }
    }
    redacted(&current.to_string())
}

/// Runs a request. Returns [`Error::Timeout`] if the request takes longer than `limit`.
pub(crate) async fn within<T, E>(
    limit: Duration,
    request: impl Future<Output = Result<T, E>>,
) -> Result<T, Error>
where
    Error: From<E>,
{
    match tokio::time::timeout(limit, request).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Error::Timeout(limit)),
    }
}

pub(crate) type GetRequest = http::request::Builder;

/// Builds a request without a body. Fails if a part of the request is invalid, for example a path with a space.
pub(crate) fn empty_body(request: GetRequest) -> Result<http::Request<Body>, Error> {
    request
        .body(Body::empty())
        .map_err(|error| Error::Client(kube::Error::HttpError(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, message: &str) -> Error {
        let status = kube::core::Status::failure(message, "Reason").with_code(code);
        Error::Client(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn error_reason_depends_on_status_and_message() {
        let table = [
            (api(401, ""), ErrorReason::Unauthorized),
            (api(403, ""), ErrorReason::Forbidden),
            (api(404, ""), ErrorReason::NotFound),
            (api(409, ""), ErrorReason::Conflict),
            (api(422, ""), ErrorReason::Invalid),
            (api(429, ""), ErrorReason::Throttled),
            (api(500, ""), ErrorReason::Server),
            (
                api(500, "etcdserver: request is too large"),
                ErrorReason::TooLarge,
            ),
            (api(503, ""), ErrorReason::Server),
            (
                api(
                    500,
                    "failed to create typed patch object (/p; vap-status.dev/v1alpha1, Kind=PolicyProbe): \
                     .status.cases[name=\"c\"].costUsed: field not declared in schema",
                ),
                ErrorReason::Invalid,
            ),
            (
                api(500, "the field is not declared in schema"),
                ErrorReason::Server,
            ),
            (api(418, ""), ErrorReason::Other),
            (Error::Timeout(Duration::from_secs(1)), ErrorReason::Timeout),
            (Error::Decode(String::new()), ErrorReason::Decode),
            (
                Error::Status {
                    code: 301,
                    message: String::new(),
                },
                ErrorReason::Other,
            ),
        ];
        for (error, reason) in table {
            assert_eq!(error.reason(), reason, "{error}");
        }
    }

    #[test]
    fn error_is_formatted_on_one_line() {
        assert_eq!(
            api(403, "x is forbidden: no").to_string(),
            "the API server returned 403: x is forbidden: no"
        );
        assert_eq!(
            api(500, "").to_string(),
            "the API server returned 500: Reason"
        );
        assert_eq!(
            Error::Status {
                code: 502,
                message: "<html>\nbad".into()
            }
            .to_string(),
            "the API server returned 502: <html>"
        );
        assert_eq!(
            Error::Timeout(Duration::from_secs(30)).to_string(),
            "no response within 30 s"
        );
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        assert_eq!(
            Error::Client(kube::Error::ReadEvents(refused)).to_string(),
            "refused"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn request_fails_with_timeout_error_after_limit() {
        let limit = Duration::from_secs(30);
        let never = std::future::pending::<Result<(), kube::Error>>();
        let error = within(limit, never).await.unwrap_err();
        assert_eq!(error.reason(), ErrorReason::Timeout);
    }
}
