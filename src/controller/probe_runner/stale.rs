//! Outcomes that may be old: what they depend on changes without a sign.

use std::collections::BTreeSet;
use std::time::Duration;

use super::namespaces::Version;
use super::{Finished, Prober};
use crate::controller::context::Context;

/// How old what is known of a namespace may be for it not to be read again.
const MAX_NAMESPACE_AGE: Duration = Duration::from_secs(5);

/// When probes are evaluated again that took too long: the machine may have been busy.
const LATE_AGAIN: Duration = Duration::from_secs(600);

/// Something to see to once in a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// To look whether a namespace has changed.
    Namespace(String),
    /// To evaluate the probes of a policy again.
    Renew(String),
    /// To tell the probes of a policy that does not exist so, should they not have been told.
    Tell(String),
}

/// All chores.
pub(crate) fn chores(context: &Context) -> Vec<Chore> {
    let mut namespaces = BTreeSet::new();
    let mut policies = BTreeSet::new();
    context.prober.for_each_outcome(|policy, outcome| {
        namespaces.extend(outcome.namespaces.keys().cloned());
        if outcome.has_asked || (outcome.is_late && outcome.at.elapsed() >= LATE_AGAIN) {
            policies.insert(policy.to_owned());
        }
    });
    let mut named = context.probes.policies();
    named.retain(|policy| !context.store.has(policy));
    let namespaces = namespaces.into_iter().map(Chore::Namespace);
    namespaces
        .chain(policies.into_iter().map(Chore::Renew))
        .chain(named.into_iter().map(Chore::Tell))
        .collect()
}

/// Sees to a chore.
pub(crate) async fn see_to(context: &Context, chore: Chore) {
    let prober = &context.prober;
    let namespace = match chore {
        Chore::Namespace(namespace) => namespace,
        Chore::Renew(policy) => return prober.renew(&policy),
        Chore::Tell(policy) => return prober.add(&policy),
    };
    let read = prober
        .namespaces
        .get(&context.client, &namespace, MAX_NAMESPACE_AGE)
        .await;
    if let Err(why) = &read {
        if context.log_throttle.is_due("namespaces") {
            tracing::warn!(
                namespace,
                "cannot look at a namespace that probes depend on: {}",
                why.text
            );
        }
        // What was found stands, unless waiting does not help.
        if why.is_transient {
            return;
        }
    }
    let version = Version::new(&read);
    let mut changed = BTreeSet::new();
    prober.for_each_outcome(|policy, outcome| {
        let with = outcome.namespaces.get(&namespace);
        if with.is_some_and(|with| *with != version) {
            changed.insert(policy.to_owned());
        }
    });
    for policy in changed {
        prober.renew(&policy);
    }
}

impl Prober {
    #[expect(
        clippy::iter_over_hash_type,
        reason = "what is collected is sorted by whoever asks"
    )]
    fn for_each_outcome(&self, mut see: impl FnMut(&str, &Finished)) {
        for (policy, known) in &*self.lock() {
            if let Some(outcome) = &known.outcome {
                see(policy, outcome);
            }
        }
    }
}
