//! Outcomes of cases, of whatever a probe is about.

use serde_json::Value;

use crate::policy::admission::mutation::Step;
use crate::policy::admission::{
    Admission, AdmissionRequest, Binding, NamespaceSource, ReviewOutcome,
};

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
    /// Says which part of the constraints of `policy` does not match the request, or of each of its `bindings` where
    /// none of these does.
    pub(super) fn note_unmatched(
        &mut self,
        (policy, bindings): (&Admission, &[Binding]),
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) {
        if self.outcome.not_asked.is_some() {
            return;
        }
        let definition = &mut self.outcome.definition;
        if definition.matched.is_none() {
            definition.unmatched = policy.unmatched(request, namespaces);
        }
        let matches = &mut self.outcome.bindings;
        if matches.iter().any(|binding| binding.matches) {
            return;
        }
        for (found, binding) in matches.iter_mut().zip(bindings) {
            found.unmatched = binding.unmatched(request, namespaces);
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
