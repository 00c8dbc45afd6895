//! The messages of the server to the client, and the errors of requests.

use std::sync::mpsc::Sender;

use serde_json::{Value, json};

/// The codes of errors.
///
/// Source: JSON-RPC 2.0, "Error object"; Language Server Protocol 3.17, `ErrorCodes` and `LSPErrorCodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorCode {
    Parse = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    InternalError = -32603,
    ServerNotInitialized = -32002,
    RequestFailed = -32803,
    RequestCancelled = -32800,
}

/// Sends messages to the client.
#[derive(Clone, Debug)]
pub(super) struct Outbox(Sender<Option<Value>>);

impl Outbox {
    /// Creates an outbox that writes to a channel. `None` ends the output.
    pub(super) fn new(sender: Sender<Option<Value>>) -> Self {
        Self(sender)
    }

    /// Ends the output.
    pub(super) fn close(&self) {
        let _ = self.0.send(None);
    }

    /// Creates an outbox whose messages are not written.
    #[cfg(test)]
    pub(super) fn in_memory() -> (Self, std::sync::mpsc::Receiver<Option<Value>>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        (Self(sender), receiver)
    }

    fn send(&self, mut message: Value) {
        if let Value::Object(fields) = &mut message {
            fields.insert("jsonrpc".to_owned(), "2.0".into());
        }
        // A closed channel means that the client has disconnected.
        let _ = self.0.send(Some(message));
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(json!({"method": method, "params": params}));
    }

    pub(super) fn respond(&self, id: &Value, outcome: Outcome) {
        self.send(match outcome {
            Ok(result) => json!({"id": id, "result": result}),
            Err(Failure { code, message }) => {
                json!({"id": id, "error": {"code": code as i32, "message": message}})
            }
        });
    }

    /// Sends a request.
    pub(super) fn request(&self, id: &str, method: &str, params: &Value) {
        self.send(json!({"id": id, "method": method, "params": params}));
    }
}

/// The error response to a request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Failure {
    /// Returns the error of a valid request that cannot be fulfilled.
    pub(super) fn new(message: &str) -> Self {
        Self::with_code(ErrorCode::RequestFailed, message)
    }

    pub(super) fn with_code(code: ErrorCode, message: &str) -> Self {
        Self {
            code,
            message: message.to_owned(),
        }
    }
}

pub(super) type Outcome = Result<Value, Failure>;
