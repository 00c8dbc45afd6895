//! Limits how often the status of a policy or probe is written. The limit is reached only if another client also writes
//! the status.
//!
//! If two instances run without a Lease, and their flags or versions differ, each would replace the status of the other
//! forever. The controller cannot prevent this, but it limits the load on the API server and logs a warning.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::policy::subject::SubjectId;

/// The maximum number of writes of one object per [`WINDOW`].
const MAX_WRITES: u32 = 100;

/// The period in which writes are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The number of recent writes of each object.
#[derive(Debug, Default)]
pub(crate) struct WriteLimiter(Mutex<Lately>);

#[derive(Debug, Default)]
struct Lately {
    by_object: HashMap<LimitedObject, Writes>,
    /// The time at which entries without recent writes were last removed.
    cleaned: Option<Instant>,
}

/// An object with a limited number of writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LimitedObject {
    /// A policy or another subject.
    Subject(SubjectId),
    Probe(String),
}

#[derive(Debug)]
struct Writes {
    since: Instant,
    n: u32,
}

impl WriteLimiter {
    /// Returns true if the object may be written now. If so, counts the write.
    pub(crate) fn may_write(&self, object: LimitedObject) -> bool {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(writes) = lately.by_object.get_mut(&object)
            && now < writes.since + WINDOW
        {
            writes.n = writes.n.saturating_add(1);
            return writes.n <= MAX_WRITES;
        }
        // There may be ten thousand writes per window, so old entries are removed once per window and not at each
        // write.
        if lately.cleaned.is_none_or(|cleaned| now >= cleaned + WINDOW) {
            lately.cleaned = Some(now);
            lately
                .by_object
                .retain(|_, writes| now < writes.since + WINDOW);
            lately.by_object.shrink_to_fit();
        }
        let writes = Writes { since: now, n: 1 };
        lately.by_object.insert(object, writes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::id;

    #[tokio::test(start_paused = true)]
    async fn writes_of_each_object_are_limited() {
        let write_limiter = WriteLimiter::default();
        for _ in 0..MAX_WRITES {
            assert!(write_limiter.may_write(LimitedObject::Subject(id("a"))));
        }
        assert!(!write_limiter.may_write(LimitedObject::Subject(id("a"))));
        assert!(write_limiter.may_write(LimitedObject::Subject(id("b"))));
        tokio::time::advance(WINDOW).await;
        assert!(write_limiter.may_write(LimitedObject::Subject(id("a"))));
        assert_eq!(write_limiter.0.lock().unwrap().by_object.len(), 1);
    }
}
