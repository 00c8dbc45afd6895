//! Faults that the proxy injects into requests and watch events.

use std::fmt;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::answer::Kind;

/// Defines the enum `Fault` with the names of the faults.
macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $name:literal,)*) => {
        /// A fault between a client and the API server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &'static [Self] = &[$(Self::$fault,)*];

            /// Returns the name, such as `black-hole`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)*
                }
            }
        }
    };
}

faults! {
    /// The request, its response or an event is delayed.
    Delay = "delay",
    /// A watch event arrives after the response to the write that caused the event.
    Reorder = "reorder",
    /// The connection is cut: before the request, between request and response, or before an event.
    Cut = "cut",
    /// The connection stays open, but the request gets no response, or the watch sends no more events.
    BlackHole = "black-hole",
    /// The credentials are rejected.
    Unauthorized = "401",
    /// Permission is denied.
    Forbidden = "403",
    /// A write is rejected because the object has changed.
    Conflict = "409",
    /// The resource version is too old.
    Gone = "410",
    /// Too many requests, with a retry after one second.
    TooManyRequests = "429",
    /// The API server responds with an internal error.
    InternalError = "500",
    /// The API server responds that it is unavailable.
    Unavailable = "503",
    /// A response or an event is truncated, and the connection is cut.
    HalfLine = "half-line",
    /// An object in a watch event or in a list is malformed.
    Unreadable = "unreadable",
}

impl Fault {
    /// Returns true if the fault can be injected into a request of this kind.
    pub(super) fn applies_to(self, kind: Kind) -> bool {
        match self {
            Self::Reorder => false,
            Self::Conflict => kind == Kind::Write,
            Self::Gone => kind == Kind::Watch,
            // In watches, this fault is injected into events instead.
            Self::HalfLine => kind != Kind::Watch,
            Self::Unreadable => kind == Kind::Read,
            Self::Delay
            | Self::Cut
            | Self::BlackHole
            | Self::Unauthorized
            | Self::Forbidden
            | Self::TooManyRequests
            | Self::InternalError
            | Self::Unavailable => true,
        }
    }

    /// Returns true if the fault can be injected into watch events.
    pub(super) fn applies_to_event(self, is_bookmark: bool) -> bool {
        match self {
            Self::Delay
            | Self::Reorder
            | Self::Cut
            | Self::BlackHole
            | Self::Gone
            | Self::TooManyRequests
            | Self::InternalError
            | Self::HalfLine => true,
            Self::Unreadable => !is_bookmark,
            // These faults can be injected only at the start of a watch.
            Self::Unauthorized | Self::Forbidden | Self::Conflict | Self::Unavailable => false,
        }
    }

    /// Returns the HTTP status and the reason, if the fault is an error response.
    ///
    /// Source: apimachinery `pkg/apis/meta/v1/types.go`, `StatusReason`.
    pub(super) fn status(self) -> Option<(u16, &'static str)> {
        Some(match self {
            Self::Unauthorized => (401, "Unauthorized"),
            Self::Forbidden => (403, "Forbidden"),
            Self::Conflict => (409, "Conflict"),
            Self::Gone => (410, "Expired"),
            Self::TooManyRequests => (429, "TooManyRequests"),
            Self::InternalError => (500, "InternalError"),
            Self::Unavailable => (503, "ServiceUnavailable"),
            Self::Delay
            | Self::Reorder
            | Self::Cut
            | Self::BlackHole
            | Self::HalfLine
            | Self::Unreadable => return None,
        })
    }

    /// Returns the response body, if the fault is an error response.
    pub(super) fn body(self) -> Option<Value> {
        let (code, reason) = self.status()?;
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("injected fault: {reason}"), "reason": reason, "code": code,
        });
        if self == Self::TooManyRequests
            && let Some(body) = body.as_object_mut()
        {
            body.insert("details".to_owned(), json!({"retryAfterSeconds": 1}));
        }
        Some(body)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses a list of faults: `all`, `none`, or comma-separated names.
///
/// # Errors
/// Returns an error with the known names if a name is unknown.
pub fn parse_faults(text: &str) -> Result<Vec<Fault>> {
    match text {
        "all" => Ok(Fault::ALL.to_vec()),
        "none" => Ok(Vec::new()),
        _ => text.split(',').map(parse).collect(),
    }
}

fn parse(name: &str) -> Result<Fault> {
    let fault = Fault::ALL.iter().find(|fault| fault.as_str() == name);
    fault.copied().with_context(|| {
        let names: Vec<&str> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        format!(
            "no fault `{name}`: it is one of {}, all and none",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_applies_to_requests_or_events() {
        let kinds = [Kind::Read, Kind::Write, Kind::Watch];
        for fault in Fault::ALL {
            let is_done = kinds.iter().any(|kind| fault.applies_to(*kind));
            assert!(is_done || fault.applies_to_event(false), "{fault}");
            assert_eq!(parse_faults(fault.as_str()).unwrap(), [*fault]);
        }
        assert_eq!(parse_faults("all").unwrap(), Fault::ALL);
        assert_eq!(parse_faults("none").unwrap(), []);
        assert_eq!(parse_faults("cut,410").unwrap(), [Fault::Cut, Fault::Gone]);
        let error = parse_faults("cut,cuts").unwrap_err().to_string();
        assert!(
            error.contains("no fault `cuts`: it is one of delay,"),
            "{error}"
        );
    }
}
