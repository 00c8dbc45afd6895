//! Lines of an endless response, each a watch event.

use std::sync::{Mutex, PoisonError};

use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use super::skim::Skim;
use crate::cluster::error::{Error, describe};
use crate::controller::process::memory::MAX_WIRE_OBJECT;

/// The buffer is kept for the next line up to this size, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// Reads lines as they come.
pub(super) struct Lines {
    /// Nobody locks it: it is read through an exclusive reference. The mutex makes the lines fit for a task
    /// that moves among threads, which a body alone is not.
    body: Mutex<Body>,
    /// Bytes that were received and not handed out.
    chunk: Bytes,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// The identity of the object of a line that is too long.
    skim: Option<Box<Skim>>,
}

/// Next item of the stream.
#[derive(Debug)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that is too long, with the identity of its object.
    TooLong(Box<Skim>),
    /// The end of the response: clean, or in the middle of a line.
    End {
        /// True if no line was begun.
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

    /// The next line, until `end`. Empty ones are passed over.
    ///
    /// # Errors
    /// If the connection breaks, or `end` comes first.
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
