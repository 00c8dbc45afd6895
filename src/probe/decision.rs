//! The outcome of a case before the comparison with the expectation.

use serde_json::Value;

use crate::policy::admission::mutation::Step;
use crate::policy::admission::{
    Admission, AdmissionRequest, Binding, NamespaceSource, ReviewOutcome,
};

#[derive(Debug)]
pub(super) struct CaseDecision {
    /// The admission decision, with its evaluations and errors.
    pub(super) outcome: ReviewOutcome,
    /// The object before and after the mutations. `None` unless the target is a mutating policy.
    pub(super) mutated: Option<Box<ObjectMutation>>,
    /// The difference from the expected object. `None` unless the target is a mutating policy.
    pub(super) difference: Option<String>,
    /// The cost of the mutations. `outcome` does not include it.
    pub(super) cost: u64,
}

impl CaseDecision {
    /// Records why the request does not match: the failed match constraint of `policy`, and of each binding if none
    /// matches.
    pub(super) fn note_unmatched(
        &mut self,
        (policy, bindings): (&Admission, &[Binding]),
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) {
        if self.outcome.not_evaluated_reason.is_some() {
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
        for (matched, binding) in matches.iter_mut().zip(bindings) {
            matched.unmatched = binding.unmatched(request, namespaces);
        }
    }

    /// Creates the decision for a case without mutations.
    pub(super) fn new(outcome: ReviewOutcome) -> Self {
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
pub struct ObjectMutation {
    /// The object before the mutations.
    pub before: Value,
    /// The object after all mutations. `None` if the request is denied.
    pub after: Option<Value>,
    /// The expected object, if the case expects one and it differs from `after`.
    pub expected: Option<Value>,
    /// The evaluated mutations, in evaluation order.
    pub steps: Vec<Step>,
}

impl ObjectMutation {
    /// Returns true if the mutations changed the object.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.after
            .as_ref()
            .is_some_and(|after| *after != self.before)
    }
}
