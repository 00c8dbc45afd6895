//! Applies one mutation to an object.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Run;
use super::error::{Failure, StepCause, internal, status};
use super::native::{self, PatchFailure};
use crate::admission::program::Expression;
use crate::admission::scope::Scope;
use crate::admission::stage;
use crate::admission::text::go_quote;
use crate::expressions::Role;
use cel::value::Value;
use kubernetes::defaulting::{Decoding, is_published_elsewhere};
use kubernetes::json_patch::{self, PatchError};
use kubernetes::library::limits::RUNTIME_CEL_COST_BUDGET;
use kubernetes::merge::{self, Types};
use kubernetes::schema::Gvk;
use kubernetes::version::Behavior;

impl Run<'_> {
    /// Returns the object after a mutation, before defaults are set.
    ///
    /// Source: `dispatcher.go`, `dispatchOne`; `patch/smd.go` and `patch/json_patch.go`, `Patch`.
    pub(super) fn mutated(
        &self,
        (role, behavior): (Role, Behavior),
        expression: &Expression,
        scope: &dyn Fn() -> Arc<Scope>,
        (gvk, object): (&Gvk, &Json),
        cost: &mut u64,
    ) -> Result<Json, Failure> {
        let Some(types) = self.context.kinds.types(gvk) else {
            let text = format!(
                "Resource kind {}, Kind={} not found. There can be a delay between when CustomResourceDefinitions are \
                 created and when they are available.",
                gvk.api_version(),
                gvk.kind
            );
            let status = status(503, "ServiceUnavailable", &text);
            return Err(Failure::request_error(StepCause::NoTypes, status));
        };
        if let Err(error) = &expression.program {
            return Err(Failure::policy_error(StepCause::Expression, error.clone()));
        }
        let of_expression = |error| Failure::policy_error(StepCause::Expression, error);
        let outcome = stage::run(
            [Some(expression)].into_iter(),
            scope,
            RUNTIME_CEL_COST_BUDGET,
        );
        *cost = outcome.cost.used.clone().unwrap_or(outcome.cost.budget);
        let results = outcome.evaluated.map_err(of_expression)?;
        let value = results.into_iter().flatten().next();
        let value = value.unwrap_or(Ok(Value::Null)).map_err(of_expression)?;
        native::allocate(&value, &self.budget).map_err(|error| of_expression(error.to_string()))?;
        if role == Role::ApplyConfiguration {
            self.configured(&value, &types, (gvk, object))
        } else {
            self.patched(&value, behavior, &types, (gvk, object))
        }
    }

    /// Sets the defaults of the object after a mutation. If the defaults are unknown, records the reason and returns
    /// the object unchanged.
    pub(super) fn completed(&mut self, gvk: &Gvk, mutated: Json) -> Json {
        match self.context.kinds.completed(gvk, mutated) {
            Ok(completed) => completed,
            Err((as_it_is, reason)) => {
                self.unknown.insert(reason);
                as_it_is
            }
        }
    }

    /// Merges the value of an `ApplyConfiguration` expression into the object.
    fn configured(
        &self,
        value: &Value,
        types: &Types,
        (gvk, object): (&Gvk, &Json),
    ) -> Result<Json, Failure> {
        let applied = native::applied(value).map_err(Failure::value_error)?;
        let none = Types::default();
        let types = if is_published_elsewhere(gvk) {
            &none
        } else {
            types
        };
        let merged = merge::apply(types, gvk, object, &applied).map_err(|error| {
            let message = format!("error applying patch: {error}");
            Failure::policy_error(StepCause::Merge(error), message)
        })?;
        let read = (self.context.kinds).read(gvk, &merged, Decoding::Conversion);
        read.map_err(|error| Failure::policy_error(StepCause::Decoding, error))
    }

    /// Applies the value of a `JSONPatch` expression to the object.
    fn patched(
        &self,
        value: &Value,
        behavior: Behavior,
        types: &Types,
        (gvk, object): (&Gvk, &Json),
    ) -> Result<Json, Failure> {
        let patch = native::patch(value, behavior).map_err(|failure| match failure {
            PatchFailure::Failed(error) => Failure::value_error(error),
            PatchFailure::Panic => Failure::panicked(),
        })?;
        if self.is_trial && patch.is_empty() {
            return Ok(object.clone());
        }
        let patched = match json_patch::apply_to_failure(object, &patch) {
            Ok(patched) => patched,
            // If a test operation fails, the API server leaves the object unchanged.
            Err((PatchError::TestFailed(_), _)) => return Ok(object.clone()),
            Err((PatchError::Panic(_), _)) => return Err(Failure::panicked()),
            Err((error, operation)) => {
                let message = format!("JSON Patch: {error}");
                let path = operation.map(|operation| operation.path.clone());
                return Err(Failure::policy_error(
                    StepCause::Patch { error, path },
                    message,
                ));
            }
        };
        let unread = |error: &str| Failure::request_error(StepCause::Decoding, internal(error));
        if self.context.kinds.is_custom(gvk) {
            return json_patch::decoded(patched).map_err(|error| unread(&error));
        }
        let read = (self.context.kinds).read(gvk, &patched, Decoding::Json);
        let read = read.map_err(|error| unread(&error))?;
        let unknown = merge::undeclared(types, gvk, &patched);
        if unknown.is_empty() {
            return Ok(read);
        }
        let unknown: Vec<_> = unknown
            .iter()
            .map(|path| format!("unknown field {}", go_quote(path)))
            .collect();
        Err(unread(&format!(
            "strict decoding error: {}",
            unknown.join(", ")
        )))
    }
}
