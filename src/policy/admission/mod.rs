//! Admission: what an API server decides of a request because of a policy and its bindings.
//!
//! [`Admission`] is made once of a policy; [`Admission::review`] takes a request through match
//! constraints, bindings, params, match conditions, variables, validations, messages and audit annotations
//! to an [`Outcome`]. Nothing here reads a cluster: namespaces, params and the authorizer are asked through
//! traits.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/{generic,matching,validating}`,
//! `pkg/admission/plugin/cel`, `pkg/admission/plugin/webhook/{predicates,matchconditions}`.

mod label;
mod namespace;
mod object;
mod outcome;
mod params;
mod request;
mod rules;
mod selector;
mod text;

pub use namespace::{Namespace, NamespaceSource};
pub use object::{Labels, Object};
pub use outcome::{
    Action, AuditAnnotation, AuditAnnotationAction, BindingMatch, ConditionsMatch, Costs, Decision, DefinitionMatch,
    Evaluation, EvaluationResult, Outcome, StageCost, Status,
};
pub use params::{ParamList, ParamSource};
pub use request::{AdmissionRequest, Equivalent, Operation, UserInfo};
pub use selector::Selector;
