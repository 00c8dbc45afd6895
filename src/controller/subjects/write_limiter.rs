//! Limits how often the status of one policy or probe is written. Only a competing writer makes us reach the limit.
//!
//! Two instances with other flags or of other versions, both without a Lease, each replace the status of the other,
//! forever. The controller cannot end that, but it limits the load on the API server and reports it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::policy::subject::SubjectId;

/// How many writes of one object there may be in a [`WINDOW`].
const MAX_WRITES: u32 = 100;

/// The time in which writes are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The writes of each object that was written lately.
#[derive(Debug, Default)]
pub(crate) struct WriteLimiter(Mutex<Lately>);

#[derive(Debug, Default)]
struct Lately {
    by_object: HashMap<LimitedObject, Writes>,
    /// When those were last looked for that were not written lately.
    cleaned: Option<Instant>,
}

/// An object whose status is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LimitedObject {
    /// A policy or another subject.
    Subject(SubjectId),
    /// The probe of that name.
    Probe(String),
}

#[derive(Debug)]
struct Writes {
    since: Instant,
    n: u32,
}

impl WriteLimiter {
    /// Returns true if the object may be written now, and counts the write.
    pub(crate) fn may_write(&self, object: LimitedObject) -> bool {
        let mut lately = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(writes) = lately.by_object.get_mut(&object)
            && now < writes.since + WINDOW
        {
            writes.n = writes.n.saturating_add(1);
            return writes.n <= MAX_WRITES;
        }
        // Not at each write: there may be ten thousand of them in one window.
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
    async fn a_policy_is_written_so_often_and_others_are_not_held_up() {
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
