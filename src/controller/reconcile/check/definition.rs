//! Checks the validation rules of CustomResourceDefinitions. Each CRD is read from the API server for its check, since
//! schemas are not stored.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::super::result::ReconcileError;
use super::guard::{Guarded, defer, guard};
use crate::controller::cluster::definition;
use crate::controller::context::Context;
use crate::controller::subjects::check_result::{CheckOutcome, CheckResult, Lane};
use crate::controller::subjects::store::Entry;
use crate::status::compute::{CheckStep, MatchSummary};
use crate::status::definition::RuleFindings;
use crate::telemetry::metrics::{ErrorReason, Skipped};
use crate::validation_rules;
use crate::version::{CompileMode, KubernetesVersion};

/// Checks the validation rules of the CRD `entry`, within the limits of `lane`. Returns `Skipped` if there is no result
/// yet. Then the CRD is queued again later.
///
/// # Errors
/// Returns an error if the CRD cannot be read or the process ends.
pub(super) async fn check(
    context: &Context,
    entry: &Entry,
    lane: Lane,
) -> Result<Result<Arc<CheckResult>, Skipped>, ReconcileError> {
    let version = context.snapshot().server.version;
    let rules = if entry.subject.has_rules() {
        let definition = match definition::read(&context.client, &entry.id.name).await {
            Ok(Some(definition)) if definition::is_of(&definition, &entry.metadata()) => {
                Ok(definition)
            }
            Ok(_) => return Ok(Err(Skipped::ObjectChanged)),
            Err(error) if error.reason() == ErrorReason::Decode => Err(error.to_string()),
            Err(error) => return Err(ReconcileError::Unread(error)),
        };
        context.metrics.policy_compiled();
        let run_check = move || match definition {
            Ok(definition) => findings(&definition, version),
            Err(why) => RuleFindings::unreadable(&why),
        };
        let start = Instant::now();
        let rules = guard(context, &entry.id, lane, run_check).await?;
        if let Guarded::Done(..) = rules {
            context.lanes.finished(&entry.id, start.elapsed());
        }
        rules.value()
    } else {
        Ok(Some(RuleFindings::default()))
    };
    let outcome = match rules {
        Ok(Some(rules)) => CheckOutcome::Done {
            findings: rules.compiled,
            n_expressions: rules.n_expressions,
            matched: MatchSummary::default(),
            typed: rules.typed,
            waiting: Vec::new(),
        },
        Ok(None) => CheckOutcome::Panicked { matched: None },
        Err(late) => {
            let late = late.with_step(CheckStep::Compiling);
            if defer(context, entry, &late) {
                return Ok(Err(Skipped::CheckDeferred));
            }
            CheckOutcome::DeadlineExceeded {
                late,
                compiled: None,
                matched: Some(MatchSummary::default()),
            }
        }
    };
    let result = Arc::new(CheckResult::from_definition(
        entry.generation(),
        version,
        outcome,
    ));
    context.store.note(&entry.id, &result);
    Ok(Ok(result))
}

fn findings(definition: &Value, version: KubernetesVersion) -> RuleFindings {
    let verdict = validation_rules::validate_rules(definition, version, CompileMode::Stored);
    let of_schemas = if verdict.is_partial {
        validation_rules::schema_errors(definition)
    } else {
        Vec::new()
    };
    RuleFindings::new(&verdict, &of_schemas)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::cluster::snapshot::ClusterSnapshot;
    use crate::controller::subjects::event_source::EventSource;
    use crate::controller::tests::settings;
    use crate::controller::watch::definitions::tests::{definition, read_with_rules};
    use crate::controller::watch::definitions::{Listener, ReadDefinition};
    use crate::policy::subject::{SubjectId, SubjectKind};

    const DEFINITIONS: SubjectKind = SubjectKind::CustomResourceDefinition;
    use crate::cluster::testing::{Reply, client, paths};
    use crate::telemetry::Metrics;
    use crate::version::ClusterVersion;

    /// Stores the CRD `value` as the watch does. Returns its entry.
    fn entry(context: &Context, value: &Value) -> Entry {
        let (definition, rules) = read_with_rules(value).parts();
        let mut listener = Listener::new(context).unwrap();
        listener.put(&definition.metadata, rules.unwrap(), EventSource::Watched);
        let name = definition.metadata.name.unwrap();
        context
            .store
            .get(&SubjectId::new(DEFINITIONS, name))
            .unwrap()
    }

    async fn check_stored(
        stored: Value,
        told: &Value,
    ) -> (Result<Arc<CheckResult>, Skipped>, Vec<String>) {
        let (client, log) = client(move |_| Some(Reply::json(&json!({"items": [stored]}))));
        let mut settings = settings();
        settings.followed = [DEFINITIONS].into();
        let context = Context::new(client, settings, Arc::new(Metrics::new()));
        let entry = entry(&context, told);
        let result = check(&context, &entry, Lane::Quick).await.unwrap();
        if result.is_ok() {
            // The result depends only on the CRD and the version, not on the served resources.
            let entry = context.store.get(&entry.id).unwrap();
            let stored_result = entry.result.as_ref().unwrap();
            assert!(stored_result.holds_for(&entry.generation(), &context.snapshot()));
            let newer = ClusterSnapshot {
                server: ClusterVersion {
                    version: KubernetesVersion::new(37),
                    is_lowest_of_several: false,
                },
                ..ClusterSnapshot::default()
            };
            assert!(!stored_result.holds_for(&entry.generation(), &newer));
        }
        (result, paths(&log))
    }

    #[tokio::test]
    async fn rule_check_is_skipped_if_crd_generation_or_uid_differs() {
        let sound = json!([{"rule": "true"}]);
        let value = definition("a", 2, &sound);
        let (result, asked) = check_stored(value.clone(), &value).await;
        let Ok(CheckOutcome::Done { n_expressions, .. }) = result.as_ref().map(|it| &it.outcome)
        else {
            panic!("{result:?}")
        };
        assert_eq!(*n_expressions, 1);
        assert_eq!(asked.len(), 1);
        assert!(
            asked[0].contains("fieldSelector=metadata.name%3Da"),
            "{asked:?}"
        );
        let (result, _) = check_stored(definition("a", 3, &sound), &value).await;
        assert_eq!(result.unwrap_err(), Skipped::ObjectChanged);
        let (result, _) = check_stored(definition("b", 2, &sound), &value).await;
        assert_eq!(result.unwrap_err(), Skipped::ObjectChanged);
    }

    #[tokio::test]
    async fn crd_without_rules_is_not_read() {
        let value = definition("a", 2, &json!([]));
        let (result, asked) = check_stored(value.clone(), &value).await;
        assert!(result.is_ok());
        assert_eq!(asked, Vec::<String>::new());
    }
}
