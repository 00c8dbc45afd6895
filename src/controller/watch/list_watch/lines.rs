//! Splits a watch response into lines. Each line is a watch event.

use std::sync::{Mutex, PoisonError};

use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use super::skim::Skim;
use crate::cluster::error::{Error, describe};
use crate::controller::process::memory::MAX_WIRE_OBJECT;

/// The maximum capacity of a buffer that is kept for the next line, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Reads lines from a response body as they arrive.
pub(super) struct Lines {
    /// The mutex makes this type `Sync`, since `Body` is not. It is never locked, since all accesses use an exclusive
    /// reference.
    body: Mutex<Body>,
    /// Received bytes that have not been processed.
    chunk: Bytes,
    /// The start of a line whose end has not been received.
    begun: Vec<u8>,
    /// The event type and the object's identity in the current line. `None` unless the line is too long.
    skim: Option<Box<Skim>>,
}

/// The next item of the response.
#[derive(Debug)]
pub(super) enum Line {
    /// A line, without its newline.
    Whole(Vec<u8>),
    /// A line that is too long. Only its event type and the identity of its object are known.
    TooLong(Box<Skim>),
    /// The end of the response.
    End {
        /// False if the response ended in the middle of a line.
        is_clean: bool,
    },
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body: Mutex::new(body),
            chunk: Bytes::new(),
            begun: Vec::new(),
            skim: None,
        }
    }

    /// Waits for the next line, at most until the time `end`. Skips empty lines.
    ///
    /// # Errors
    /// Returns an error if the connection breaks, or if no line is complete before `end`.
    pub(super) async fn next(&mut self, end: Instant) -> Result<Line, Error> {
        loop {
            if let Some(at) = self.chunk.iter().position(|byte| *byte == b'\n') {
                let head = self.chunk.split_to(at);
                drop(self.chunk.split_to(1));
                if let Some(mut skim) = self.skim.take() {
                    skim.feed(&head);
                    return Ok(Line::TooLong(skim));
                }
                let mut line = std::mem::take(&mut self.begun);
                line.extend_from_slice(&head);
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Line::Whole(line));
            }
            if let Some(skim) = &mut self.skim {
                skim.feed(&self.chunk);
            } else {
                self.begun.extend_from_slice(&self.chunk);
            }
            self.chunk.clear();
            if self.begun.len() > MAX_WIRE_OBJECT {
                let mut skim = Box::<Skim>::default();
                skim.feed(&std::mem::take(&mut self.begun));
                self.skim = Some(skim);
            }
            if self.begun.is_empty() && self.begun.capacity() > KEPT_BYTES {
                self.begun = Vec::new();
            }
            let now = Instant::now();
            let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
            match timeout_at(end, body.frame()).await {
                Ok(Some(Ok(frame))) => self.chunk = frame.into_data().unwrap_or_default(),
                Ok(Some(Err(error))) => return Err(Error::Broken(describe(&error))),
                Ok(None) => {
                    let is_clean =
                        self.skim.is_none() && self.begun.iter().all(u8::is_ascii_whitespace);
                    return Ok(Line::End { is_clean });
                }
                Err(_) => return Err(Error::Timeout(end.saturating_duration_since(now))),
            }
        }
    }
}
