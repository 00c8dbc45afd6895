//! The permission checks of CEL's `authorizer`. They are collected during the evaluation of cases, and sent to the API
//! server afterwards.
//!
//! An evaluation never waits for a response. A case that lacks a response has no result yet, and is evaluated again
//! after the response arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::super::probes::{AccessLimiter, BURST_OF_POLICY};
use crate::cluster::error::within;
use crate::controller::subjects::params::Unavailable;
use crate::policy::admission::{
    Authorizer, AuthorizerAnswer, AuthorizerAttributes, AuthorizerDecision,
};
use crate::policy::subject::SubjectId;
use crate::telemetry::metrics::ErrorReason;

/// The timeout of one `SubjectAccessReview`.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the probes of a policy may wait for reviews in total.
const MAX_ASKING: Duration = Duration::from_secs(30);

/// The maximum number of concurrent reviews for one policy.
const MAX_AT_ONCE: usize = 8;

/// The maximum number of reviews for the probes of one policy in one evaluation.
const MAX_QUESTIONS: usize = 200;

/// The maximum number of rounds of evaluation. The responses of one round may lead to further checks in the next round.
const MAX_ROUNDS: usize = 32;

/// The permission checks of a policy's probes, and the responses to them.
#[derive(Debug, Default)]
pub(super) struct AccessReviews {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: BTreeMap<AuthorizerAttributes, AuthorizerAnswer>,
    /// Checks that have not been sent yet.
    asked: BTreeSet<AuthorizerAttributes>,
    is_open: bool,
    /// Why no further reviews are sent. `None` while reviews are sent.
    broken: Option<Unavailable>,
    n_rounds: usize,
    waited: Duration,
}

/// The next step for the cases that lack a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Evaluate the cases again.
    Again,
    /// Leave the cases pending, for this reason.
    End(Unavailable),
}

impl AccessReviews {
    /// Returns true if the current case lacks a response. Sets `is_open` to false for the next case.
    pub(super) fn take_pending(&self) -> bool {
        std::mem::take(&mut self.lock().is_open)
    }

    /// Returns the time spent waiting for responses.
    pub(super) fn waited(&self) -> Duration {
        self.lock().waited
    }

    /// Returns true if a case requested a permission check.
    pub(super) fn has_requests(&self) -> bool {
        let state = self.lock();
        !(state.answers.is_empty() && state.asked.is_empty() && state.broken.is_none())
    }

    /// Sends the checks that were collected since the last call, and stores the responses. The rate limits of `limiter`
    /// may prevent some checks.
    pub(super) async fn ask(
        &self,
        client: &Client,
        limiter: &AccessLimiter,
        policy: &SubjectId,
    ) -> Next {
        let asked = {
            let mut state = self.lock();
            if let Some(why) = &state.broken {
                return Next::End(why.clone());
            }
            state.n_rounds += 1;
            let asked = std::mem::take(&mut state.asked);
            let n_questions = state.answers.len() + asked.len();
            if n_questions > MAX_QUESTIONS || state.n_rounds > MAX_ROUNDS {
                let why = Unavailable::lasting(format!(
                    "the probes check more than {MAX_QUESTIONS} permissions, or need more than {MAX_ROUNDS} checks \
                     one after the other; set the responses in the cases (authorizer: Inline)"
                ));
                state.broken = Some(why.clone());
                return Next::End(why);
            }
            asked
        };
        if asked.is_empty() {
            return Next::End(Unavailable::lasting(
                "internal error: a case waits for a permission check that was not recorded; please report it",
            ));
        }
        let (asked, is_limited) = self.admit(asked, limiter, policy);
        let begin = Instant::now();
        let end = begin + MAX_ASKING.saturating_sub(self.lock().waited);
        let mut answers = stream::iter(asked)
            .map(|asked| async move {
                let answer = ask(client, &asked, end).await;
                if let Ok(answer) = &answer {
                    limiter.insert(&asked, answer);
                }
                (asked, answer)
            })
            .buffer_unordered(MAX_AT_ONCE);
        while let Some((asked, answer)) = answers.next().await {
            let mut state = self.lock();
            match answer {
                Ok(answer) => drop(state.answers.insert(asked, answer)),
                // No further reviews are sent, since they would also fail, possibly after a timeout.
                Err(why) => {
                    state.broken = Some(why);
                    break;
                }
            }
        }
        let mut state = self.lock();
        state.waited += begin.elapsed();
        if is_limited {
            state.broken.get_or_insert_with(limited);
        }
        drop(state);
        // Even if some responses are missing, the received responses may be sufficient for some cases.
        Next::Again
    }

    /// Stores the cached responses of `limiter`. Returns the other checks that may be sent, and true if rate limits
    /// prevent some checks.
    fn admit(
        &self,
        asked: BTreeSet<AuthorizerAttributes>,
        limiter: &AccessLimiter,
        policy: &SubjectId,
    ) -> (Vec<AuthorizerAttributes>, bool) {
        let mut state = self.lock();
        let mut admitted = Vec::new();
        let mut is_limited = false;
        for asked in asked {
            if let Some(answer) = limiter.cached(&asked) {
                state.answers.insert(asked, answer);
            } else if limiter.may_ask(policy) {
                admitted.push(asked);
            } else {
                is_limited = true;
            }
        }
        (admitted, is_limited)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authorizer for AccessReviews {
    fn authorize(&self, asked: &AuthorizerAttributes) -> AuthorizerAnswer {
        let mut state = self.lock();
        if let Some(answer) = state.answers.get(asked) {
            return answer.clone();
        }
        state.is_open = true;
        if state.asked.len() <= MAX_QUESTIONS {
            state.asked.insert(asked.clone());
        }
        AuthorizerAnswer::default()
    }
}

/// Sends a `SubjectAccessReview` for the check `asked`. Waits for the response at most until `end`.
///
/// # Errors
/// Returns the reason why there is no response.
async fn ask(
    client: &Client,
    asked: &AuthorizerAttributes,
    end: Instant,
) -> Result<AuthorizerAnswer, Unavailable> {
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let review = review_of(asked);
    let params = PostParams::default();
    let limit = end.saturating_duration_since(Instant::now()).min(TIMEOUT);
    match within(limit, api.create(&params, &review)).await {
        Ok(review) => Ok(answer(review)),
        Err(error) if error.reason() == ErrorReason::Forbidden => {
            Err(Unavailable::lasting(format!(
                "the permissions of `authorizer` cannot be checked ({error}): grant create on \
                 subjectaccessreviews.authorization.k8s.io with the optional ClusterRole \
                 vap-status-controller-subject-access-reviews, or set the responses in the case \
                 (authorizer: Inline)"
            )))
        }
        Err(error) => Err(Unavailable::passing(format!(
            "the API server did not respond to a permission check of the variable `authorizer`: {error}"
        ))),
    }
}

/// Returns the reason for pending cases whose checks exceed the rate limit.
fn limited() -> Unavailable {
    Unavailable::passing(format!(
        "too many checks of `authorizer`: the probes of a policy can send at most {BURST_OF_POLICY} per minute, and \
         the other checks are sent later; to avoid the delay, set the responses in the cases (authorizer: Inline)"
    ))
}

fn review_of(asked: &AuthorizerAttributes) -> SubjectAccessReview {
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut spec = SubjectAccessReviewSpec {
        user: text(&asked.user),
        groups: Some(asked.groups.clone()),
        uid: text(&asked.uid),
        extra: (!asked.extra.is_empty()).then(|| asked.extra.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    if asked.path.is_empty() {
        spec.resource_attributes = Some(ResourceAttributes {
            group: text(&asked.group),
            name: text(&asked.name),
            namespace: text(&asked.namespace),
            resource: text(&asked.resource),
            subresource: text(&asked.subresource),
            verb: text(&asked.verb),
            version: text(&asked.version),
            ..ResourceAttributes::default()
        });
    } else {
        spec.non_resource_attributes = Some(NonResourceAttributes {
            path: text(&asked.path),
            verb: text(&asked.verb),
        });
    }
    SubjectAccessReview {
        spec,
        ..SubjectAccessReview::default()
    }
}

fn answer(review: SubjectAccessReview) -> AuthorizerAnswer {
    let status = review.status.unwrap_or_default();
    let decision = match (status.allowed, status.denied) {
        (true, _) => AuthorizerDecision::Allow,
        (false, Some(true)) => AuthorizerDecision::Deny,
        (false, _) => AuthorizerDecision::NoOpinion,
    };
    AuthorizerAnswer {
        decision,
        reason: status.reason.unwrap_or_default(),
        error: status.evaluation_error.filter(|text| !text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::client;

    #[tokio::test]
    async fn access_reviews_over_limit_leave_cases_pending() {
        let (client, log) = client(|_| None);
        let questions = AccessReviews::default();
        for n in 0..=MAX_QUESTIONS {
            let asked = AuthorizerAttributes {
                verb: n.to_string(),
                ..AuthorizerAttributes::default()
            };
            questions.authorize(&asked);
        }
        assert!(questions.take_pending() && !questions.take_pending());
        for _ in 0..2 {
            let limiter = AccessLimiter::default();
            let Next::End(why) = questions
                .ask(&client, &limiter, &SubjectId::policy("a"))
                .await
            else {
                panic!("checks over the limit must not be sent");
            };
            assert!(why.text.contains("more than 200 permissions"), "{why:?}");
            assert!(!why.is_transient);
        }
        assert_eq!(log.lock().unwrap().len(), 0);
    }
}
