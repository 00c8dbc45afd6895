//! The outcome of a case before it is compared with the expectation, for all kinds of targets.

use serde_json::Value;

use crate::policy::admission::mutation::Step;
use crate::policy::admission::{
    Admission, AdmissionRequest, Binding, NamespaceSource, ReviewOutcome,
};

/// The outcome of a case, before it is compared with the expectation.
#[derive(Debug)]
pub(super) struct CaseDecision {
    /// The admission decision, with its evaluations and errors.
    pub(super) outcome: ReviewOutcome,
    /// The object before and after mutations. `None` unless the target is a mutating policy.
    pub(super) mutated: Option<Box<ObjectMutation>>,
    /// The difference from the expected object, if the target is a mutating policy.
    pub(super) difference: Option<String>,
    /// The cost of the mutations, which is not part of the cost in `outcome`.
    pub(super) cost: u64,
}

impl CaseDecision {
    /// Records in the outcome the match constraint of `policy` that does not match the request. If no binding
    /// matches, also records the constraint that does not match for each of `bindings`.
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

    /// Creates the outcome of a case without mutations.
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
    /// The object that the case expects. `None` if it equals `after`, or if the case expects no object.
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
