//! Limits the rate of permission checks (`SubjectAccessReview`), in total and for each policy, and caches responses for
//! a minute.
//!
//! The limits protect the API server, since authors of probes choose the checks. A check over the limit leaves its case
//! pending, and does not delay other cases.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::controller::process::token_bucket::TokenBucket;
use crate::policy::admission::{AuthorizerAnswer, AuthorizerAttributes};
use crate::policy::subject::SubjectId;

/// The number of reviews that all policies together can send at once.
const BURST: u32 = 100;

/// The average interval between reviews of all policies: 10 per second.
const PACE: Duration = Duration::from_millis(100);

/// The number of reviews that the probes of one policy can send at once.
pub(crate) const BURST_OF_POLICY: u32 = 200;

/// The average interval between reviews of one policy's probes: 200 per minute.
const PACE_OF_POLICY: Duration = Duration::from_millis(300);

/// How long a response is cached.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The maximum number of cached responses.
const MAX_CACHED: usize = 2_000;

/// The maximum number of bytes of cached attributes and responses.
const MAX_CACHED_BYTES: usize = 1 << 20;

/// How often expired entries are removed.
const CLEANUP: Duration = Duration::from_secs(10);

/// Rate limits and cached responses of permission checks.
#[derive(Debug, Default)]
pub(crate) struct AccessLimiter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    overall: Option<TokenBucket>,
    by_policy: HashMap<SubjectId, TokenBucket>,
    answers: BTreeMap<AuthorizerAttributes, (Instant, AuthorizerAnswer)>,
    n_bytes: usize,
    cleaned: Option<Instant>,
}

impl AccessLimiter {
    /// Returns true if a review for the probes of `policy` may be sent now. If so, counts the review.
    pub(crate) fn may_ask(&self, policy: &SubjectId) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        state.clean(now);
        let State {
            overall, by_policy, ..
        } = &mut *state;
        let overall = overall.get_or_insert_with(|| TokenBucket::new(BURST, PACE, now));
        let of_policy = by_policy
            .entry(policy.clone())
            .or_insert_with(|| TokenBucket::new(BURST_OF_POLICY, PACE_OF_POLICY, now));
        if !overall.has_token(now) || !of_policy.has_token(now) {
            return false;
        }
        overall.take(now);
        of_policy.take(now);
        true
    }

    /// Returns the cached response to the check `asked`, if it is less than a minute old.
    pub(crate) fn cached(&self, asked: &AuthorizerAttributes) -> Option<AuthorizerAnswer> {
        let now = Instant::now();
        let state = self.lock();
        let (at, answer) = state.answers.get(asked)?;
        (now < *at + MAX_AGE).then(|| answer.clone())
    }

    /// Caches a response, unless the cache is full.
    pub(crate) fn insert(&self, asked: &AuthorizerAttributes, answer: &AuthorizerAnswer) {
        let now = Instant::now();
        let mut state = self.lock();
        state.clean(now);
        if let Some((_, replaced)) = state.answers.remove(asked) {
            state.n_bytes = state.n_bytes.saturating_sub(size(asked, &replaced));
        }
        let n_bytes = state.n_bytes.saturating_add(size(asked, answer));
        if state.answers.len() < MAX_CACHED && n_bytes <= MAX_CACHED_BYTES {
            state.n_bytes = n_bytes;
            state.answers.insert(asked.clone(), (now, answer.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes expired responses and full token buckets, at most once per [`CLEANUP`]. A missing bucket counts as full.
    fn clean(&mut self, now: Instant) {
        if self.cleaned.is_some_and(|cleaned| now < cleaned + CLEANUP) {
            return;
        }
        self.cleaned = Some(now);
        self.answers.retain(|_, (at, _)| now < *at + MAX_AGE);
        let answers = self.answers.iter();
        self.n_bytes = answers
            .map(|(asked, (_, answer))| size(asked, answer))
            .sum();
        self.by_policy.retain(|_, bucket| !bucket.is_full(now));
    }
}

/// Returns the total length of the strings in a check and in its response, in bytes.
fn size(asked: &AuthorizerAttributes, answer: &AuthorizerAnswer) -> usize {
    let texts = [
        &asked.user,
        &asked.uid,
        &asked.group,
        &asked.name,
        &asked.namespace,
        &asked.resource,
        &asked.subresource,
        &asked.verb,
        &asked.version,
        &asked.path,
        &answer.reason,
    ];
    let extra = asked.extra.iter();
    let extra = extra.flat_map(|(key, values)| std::iter::once(key).chain(values));
    texts
        .into_iter()
        .chain(&asked.groups)
        .chain(extra)
        .chain(&answer.error)
        .map(String::len)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &str) -> AuthorizerAttributes {
        AuthorizerAttributes {
            verb: verb.to_owned(),
            ..AuthorizerAttributes::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn access_reviews_are_limited_per_policy_and_in_total() {
        let limiter = AccessLimiter::default();
        let asks = |policy: &str, n: usize| {
            (0..n)
                .filter(|_| limiter.may_ask(&SubjectId::policy(policy)))
                .count()
        };
        assert_eq!(asks("a", 500), 100, "the burst of all policies");
        assert_eq!(asks("b", 500), 0);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(asks("b", 500), 50);
        // One policy can send 200 reviews at first, and then 200 in each minute.
        let mut n_asked = 0;
        for _ in 0..120 {
            tokio::time::advance(Duration::from_secs(1)).await;
            n_asked += asks("c", 100);
        }
        assert!((590..=600).contains(&n_asked), "{n_asked}");
    }

    #[tokio::test(start_paused = true)]
    async fn access_review_responses_are_cached_for_a_minute_up_to_limit() {
        let limiter = AccessLimiter::default();
        let answer = AuthorizerAnswer::default();
        for n in 0..MAX_CACHED + 10 {
            limiter.insert(&asked(&n.to_string()), &answer);
        }
        assert_eq!(limiter.lock().answers.len(), MAX_CACHED);
        assert!(limiter.cached(&asked("0")).is_some());
        assert!(limiter.cached(&asked("other")).is_none());
        tokio::time::advance(MAX_AGE).await;
        assert!(limiter.cached(&asked("0")).is_none());
        limiter.insert(&asked(&"x".repeat(MAX_CACHED_BYTES)), &answer);
        assert_eq!(limiter.lock().answers.len(), 1);
        limiter.insert(&asked("1"), &answer);
        assert_eq!(limiter.lock().answers.len(), 1, "the cache is full");
    }
}
