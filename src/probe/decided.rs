//! Outcomes of cases, of whatever a probe is about.

use serde_json::Value;

use crate::policy::admission::mutation::Step;
use crate::policy::admission::{Admission, AdmissionRequest, NamespaceSource, ReviewOutcome};

/// The outcome of a case, before it is held against what is expected.
#[derive(Debug)]
pub(super) struct Decided {
    /// The decision.
    pub(super) outcome: ReviewOutcome,
    /// The object before and after mutations.
    pub(super) mutated: Option<Box<Mutated>>,
    /// How it differs from what is expected beside the decision.
    pub(super) difference: Option<String>,
    /// The cost beside that of evaluations.
    pub(super) cost: u64,
}

impl Decided {
    /// Says which part of the constraints does not match the request, where they do not.
    pub(super) fn note_unmatched(
        &mut self,
        policy: &Admission,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) {
        let is_asked = self.outcome.not_asked.is_none();
        let definition = &mut self.outcome.definition;
        if is_asked && definition.matched.is_none() {
            definition.unmatched = policy.unmatched(request, namespaces);
        }
    }

    /// A decision, and nothing beside it.
    pub(super) fn of(outcome: ReviewOutcome) -> Self {
        Self {
            outcome,
            mutated: None,
            difference: None,
            cost: 0,
        }
    }
}

/// An object before and after mutations.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutated {
    /// The object that the policy gets.
    pub before: Value,
    /// The object after all mutations; `None` where the request is denied.
    pub after: Option<Value>,
    /// The object that the case expects, where it is another.
    pub expected: Option<Value>,
    /// The mutations that were evaluated, in order.
    pub steps: Vec<Step>,
}

impl Mutated {
    /// Reports whether the object is another after the mutations.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.after
            .as_ref()
            .is_some_and(|after| *after != self.before)
    }
}
