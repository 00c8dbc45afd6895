//! Collects the facts from which the status of a subject is computed.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyStatus;

use crate::controller::cluster::crds::{self, Crds};
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::context::Context;
use crate::controller::probe_runner;
use crate::controller::probes::Probed;
use crate::controller::reconcile::check::check_in;
use crate::controller::reconcile::result::ReconcileError;
use crate::controller::subjects::check_result::{CheckOutcome, CheckResult, Lane};
use crate::controller::subjects::store::Entry;
use crate::controller::subjects::subject::Subject;
use crate::controller::watch::binding_state::{self, Bindings};
use crate::policy::nearest::is_spelling_variant;
use crate::policy::subject::SubjectKind;
use crate::policy::{self, RequestPolicy};
use crate::schema::rest_mapper::{ApiResource, RestMapper};
use crate::schema::{Gvk, Gvr};
use crate::status::bindings::BindingsState;
use crate::status::compute::{
    self as status, CompileSummary, NotServed, Observations, ParamKindState, ParamsState,
    TypeObservations,
};
use crate::status::condition::ConditionType;
use crate::status::probes::ProbesState;
use crate::status::staleness::Staleness;
use crate::status::unknown_fields::UnknownFields;
use crate::telemetry::metrics::{self, Skipped};
use crate::version::ClusterVersion;

#[derive(Debug)]
pub(crate) struct Facts {
    server: ClusterVersion,
    unknown_fields: UnknownFields,
    kind: SubjectKind,
    subject: Arc<Subject>,
    generation: i64,
    status: Option<ValidatingAdmissionPolicyStatus>,
    result: Arc<CheckResult>,
    params: ParamKindState,
    /// The group version of the paramKind, if discovery of this group version has failed for some time. Otherwise
    /// empty.
    undiscovered_params: Vec<String>,
    bindings: BindingsState,
    probes: Result<Probed, ProbesState>,
}

/// Collects the facts about the subject `entry` in `snapshot`. Checks the subject if the result of its last check is no
/// longer valid.
///
/// Returns `Skipped` if the check has no result yet. When it has one, the subject is queued again.
pub(crate) async fn observe(
    context: &Arc<Context>,
    entry: &Entry,
    snapshot: &ClusterSnapshot,
) -> Result<Result<Facts, Skipped>, ReconcileError> {
    let cached = entry
        .result
        .as_ref()
        .filter(|result| result.holds_for(&entry.generation(), snapshot));
    let result = if let Some(result) = cached {
        Arc::clone(result)
    } else {
        match context.lanes.lane(entry) {
            Lane::Quick => match check_in(context, entry, snapshot, Lane::Quick).await? {
                Ok(result) => result,
                Err(reason) => return Ok(Err(reason)),
            },
            lane => {
                context.lanes.add(&entry.id, lane);
                // Until there is a new result, the result for older inputs is used.
                let latest = entry.result.as_ref();
                match latest.filter(|result| result.is_of(&entry.generation())) {
                    Some(result) => Arc::clone(result),
                    None => return Ok(Err(Skipped::CheckDeferred)),
                }
            }
        }
    };
    let bindings = binding_state::bindings_of(context, &entry.id);
    let unknown_fields = UnknownFields {
        policy: entry.subject.unknown_fields(),
        bindings: binding_state::unknown_fields(bindings.as_deref().unwrap_or_default()),
    };
    let params = params_of(context, entry, snapshot, bindings.as_ref());
    let bindings = match bindings {
        Ok(bindings) => {
            let param_kind = entry.subject.param_kind();
            let resource = binding_state::param_resource(param_kind.as_ref(), snapshot);
            let mapper = &snapshot.mapper;
            binding_state::bindings_state(param_kind.is_some(), &bindings, resource, mapper)
        }
        Err(state) => state,
    };
    let probes = probe_runner::run_probes(context, entry, snapshot).await;
    Ok(Ok(Facts {
        kind: entry.kind(),
        subject: Arc::clone(&entry.subject),
        generation: entry.object_generation(),
        status: entry.status.clone(),
        result,
        params,
        server: snapshot.server,
        unknown_fields,
        undiscovered_params: undiscovered_params(entry.subject.policy(), &snapshot.mapper),
        bindings,
        probes,
    }))
}

/// Returns the state of the paramKind of the policy `entry` and of the params of its bindings.
fn params_of(
    context: &Arc<Context>,
    entry: &Entry,
    snapshot: &ClusterSnapshot,
    bindings: Result<&Bindings, &BindingsState>,
) -> ParamKindState {
    match param_kind_state(entry.subject.policy(), &snapshot.mapper, &snapshot.crds) {
        ParamKindState::Served(gvk, _) => {
            let params = match binding_state::param_resource(
                entry.subject.param_kind().as_ref(),
                snapshot,
            ) {
                Some(resource) => {
                    binding_state::params_state(context, &entry.id, bindings, resource)
                }
                None => ParamsState::NotReferred,
            };
            ParamKindState::Served(gvk, params)
        }
        other => other,
    }
}

impl Facts {
    /// Returns true if the params are loading. When they are loaded, the policy is queued again.
    pub(crate) fn is_reading_params(&self) -> bool {
        matches!(self.params, ParamKindState::Served(_, ParamsState::Unread))
    }

    pub(crate) fn probed(&self) -> Option<&Probed> {
        self.probes.as_ref().ok()
    }

    /// Returns the policy's failurePolicy as a metric label.
    pub(crate) fn failure_policy(&self) -> &'static str {
        if self.subject.fails_closed() {
            "Fail"
        } else {
            "Ignore"
        }
    }

    /// Returns the actions of the bindings as a metric label.
    pub(crate) fn actions(&self) -> String {
        let action = match self.kind {
            SubjectKind::ValidatingWebhookConfiguration
            | SubjectKind::MutatingWebhookConfiguration => Some("Call"),
            SubjectKind::CustomResourceDefinition => Some("Deny"),
            SubjectKind::ValidatingAdmissionPolicy | SubjectKind::MutatingAdmissionPolicy => None,
        };
        if action.is_some() {
            // If no webhook is called and no rule is evaluated, there is no action.
            let is_effective = !self.subject.webhooks().is_empty() || self.subject.has_rules();
            return metrics::actions(action.filter(|_| is_effective));
        }
        match &self.bindings {
            // Bindings of mutating policies have no actions. A bound policy mutates requests.
            BindingsState::Known(bindings) if self.kind == SubjectKind::MutatingAdmissionPolicy => {
                metrics::actions((!bindings.is_empty()).then_some("Mutate"))
            }
            BindingsState::Known(bindings) => metrics::actions(
                bindings
                    .iter()
                    .flat_map(|binding| binding.actions.iter().map(String::as_str)),
            ),
            BindingsState::Unread | BindingsState::NotPermitted => {
                metrics::ACTIONS_UNKNOWN.to_owned()
            }
        }
    }

    /// Returns the facts as input of [`status::compute()`].
    pub(crate) fn observed<'a>(
        &'a self,
        ready_requires: &'a BTreeSet<ConditionType>,
    ) -> Observations<'a> {
        let (compiled, matches, types) = match &self.result.outcome {
            CheckOutcome::Done {
                findings,
                n_expressions,
                matched,
                typed,
                waiting,
            } => (
                status::StepOutcome::Done(CompileSummary {
                    findings,
                    n_expressions: *n_expressions,
                }),
                status::StepOutcome::Done(matched),
                status::StepOutcome::Done(TypeObservations {
                    outcome: typed,
                    waiting,
                }),
            ),
            CheckOutcome::Panicked { matched } => (
                status::StepOutcome::Panicked,
                matched
                    .as_ref()
                    .map_or(status::StepOutcome::Panicked, status::StepOutcome::Done),
                status::StepOutcome::Panicked,
            ),
            CheckOutcome::DeadlineExceeded {
                late,
                compiled,
                matched,
            } => {
                let deadline = late.deadline();
                let compiled = compiled
                    .as_ref()
                    .map(|(findings, n_expressions)| CompileSummary {
                        findings,
                        n_expressions: *n_expressions,
                    });
                let exceeded = status::StepOutcome::DeadlineExceeded(deadline);
                (
                    compiled.map_or(
                        status::StepOutcome::DeadlineExceeded(deadline),
                        status::StepOutcome::Done,
                    ),
                    matched.as_ref().map_or(
                        status::StepOutcome::DeadlineExceeded(deadline),
                        status::StepOutcome::Done,
                    ),
                    exceeded,
                )
            }
        };
        Observations {
            policy: self.subject.policy(),
            generation: self.generation,
            server: self.server,
            unknown_fields: self.unknown_fields.clone(),
            status: self.status.as_ref(),
            subject: self.kind,
            compiled,
            matches,
            types,
            params: self.params.clone(),
            bindings: self.bindings.clone(),
            probes: match &self.probes {
                Ok(probed) => probed.state(),
                Err(state) => state.clone(),
            },
            ready_requires,
            staleness: Staleness {
                undiscovered_params: &self.undiscovered_params,
                is_retained_long: false,
            },
        }
    }
}

/// Returns the group version of the policy's paramKind, if discovery of this group version has failed for some time.
/// Otherwise empty.
fn undiscovered_params(policy: Option<&RequestPolicy>, mapper: &RestMapper) -> Vec<String> {
    let declared = policy.and_then(policy::declared_param_kind);
    let group_version = declared.map(|gvk| gvk.api_version());
    let group_version = group_version.filter(|gv| mapper.undiscovered.contains(gv));
    group_version.into_iter().collect()
}

/// Returns the state of the paramKind of `policy`.
fn param_kind_state(
    policy: Option<&RequestPolicy>,
    mapper: &RestMapper,
    crds: &Crds,
) -> ParamKindState {
    let Some(gvk) = policy.and_then(policy::declared_param_kind) else {
        return ParamKindState::NotRequired;
    };
    if mapper.resources_of_kind(&gvk).next().is_some() {
        return ParamKindState::Served(gvk, ParamsState::NotReferred);
    }
    let group_version = gvk.api_version();
    if let Some((_, reason)) = mapper
        .incomplete
        .iter()
        .find(|(gv, _)| *gv == group_version)
    {
        return ParamKindState::Undiscovered {
            gvk,
            reason: reason.clone(),
        };
    }
    if let Some((name, crd)) = crds::defining(crds, &gvk.group, &gvk.kind) {
        let crd_name = name.clone();
        let why = if crd.served.is_empty() {
            NotServed::NoVersion { crd: crd_name }
        } else if !crd.served.contains(&gvk.version) {
            let versions = crd
                .served
                .iter()
                .map(|version| format!("{}/{version}", gvk.group));
            NotServed::OtherVersions(versions.collect())
        } else if crd.is_established {
            NotServed::NotListed { crd: crd_name }
        } else {
            NotServed::NotEstablished {
                crd: crd_name,
                reason: crd.problem.clone(),
            }
        };
        return ParamKindState::NotServed { gvk, why };
    }
    let in_group =
        |served: &&ApiResource| served.gvk.group == gvk.group && !Gvr::is_subresource(&served.gvr);
    let names = |is_wanted: &dyn Fn(&Gvk) -> bool, text: &dyn Fn(&Gvk) -> String| -> Vec<String> {
        let kinds = mapper
            .resources
            .iter()
            .filter(in_group)
            .map(|served| &served.gvk);
        kinds.filter(|kind| is_wanted(kind)).map(text).collect()
    };
    let versions = names(&|kind| kind.kind == gvk.kind, &Gvk::api_version);
    if !versions.is_empty() {
        return ParamKindState::NotServed {
            gvk,
            why: NotServed::OtherVersions(versions),
        };
    }
    let similar = names(
        &|kind| is_spelling_variant(&kind.kind, &gvk.kind),
        &|kind| format!("{} {}", kind.api_version(), kind.kind),
    );
    ParamKindState::NotFound { gvk, similar }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::cluster::crds::tests::crd;
    use crate::controller::cluster::snapshot::tests::resource;

    fn state(param_kind: &serde_json::Value, mapper: &RestMapper, crds: &Crds) -> ParamKindState {
        let policy = serde_json::from_value(json!({"paramKind": param_kind}));
        param_kind_state(Some(&policy.unwrap()), mapper, crds)
    }

    #[track_caller]
    fn check(
        (api_version, kind): (&str, &str),
        mapper: &RestMapper,
        crds: &Crds,
        expect: impl FnOnce(Gvk) -> ParamKindState,
    ) {
        let actual = state(
            &json!({"apiVersion": api_version, "kind": kind}),
            mapper,
            crds,
        );
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        assert_eq!(actual, expect(Gvk::new(group, version, kind)));
    }

    fn mapper() -> RestMapper {
        let mut mapper = RestMapper::new(vec![
            resource("v1", "configmaps", "ConfigMap"),
            resource("example.com/v1", "limits", "Limit"),
            resource("example.com/v1", "limits/status", "Status"),
            resource("example.com/v2", "limits", "Limit"),
        ]);
        mapper.incomplete = vec![("down.example.com/v1".into(), "503".into())];
        mapper
    }

    #[test]
    fn param_kind_state_is_not_required_without_param_kind() {
        assert_eq!(
            state(&json!(null), &mapper(), &Crds::new()),
            ParamKindState::NotRequired
        );
    }

    #[test]
    fn param_kind_state_depends_on_served_resources() {
        let (mapper, none) = (mapper(), Crds::new());
        let served = |gvk| ParamKindState::Served(gvk, ParamsState::NotReferred);
        check(("v1", "ConfigMap"), &mapper, &none, served);
        check(("example.com/v2", "Limit"), &mapper, &none, served);
        check(("down.example.com/v1", "Limit"), &mapper, &none, |gvk| {
            ParamKindState::Undiscovered {
                gvk,
                reason: "503".into(),
            }
        });
        let versions = || vec!["example.com/v1".to_owned(), "example.com/v2".to_owned()];
        check(("example.com/v3", "Limit"), &mapper, &none, |gvk| {
            ParamKindState::NotServed {
                gvk,
                why: NotServed::OtherVersions(versions()),
            }
        });
        check(("example.com/v1", "Limits"), &mapper, &none, |gvk| {
            ParamKindState::NotFound {
                gvk,
                similar: vec!["example.com/v1 Limit".into(), "example.com/v2 Limit".into()],
            }
        });
        check(("example.com/v1", "Status"), &mapper, &none, |gvk| {
            ParamKindState::NotFound {
                gvk,
                similar: Vec::new(),
            }
        });
        check(("a/b/c", "Limit"), &mapper, &none, |_| {
            ParamKindState::NotFound {
                gvk: Gvk::new("", "a/b/c", "Limit"),
                similar: Vec::new(),
            }
        });
    }

    #[test]
    fn unserved_param_kind_has_reason_from_crd() {
        let name = || "limits.rules.example.com".to_owned();
        let with = |spoil: &dyn Fn(&mut crds::Crd)| -> Crds {
            let mut crd = crd("rules.example.com", "Limit", &["v1"]);
            spoil(&mut crd);
            [(name(), crd)].into()
        };
        let check = |crds: &Crds, why: NotServed| {
            check(("rules.example.com/v1", "Limit"), &mapper(), crds, |gvk| {
                ParamKindState::NotServed { gvk, why }
            });
        };
        check(&with(&|_| {}), NotServed::NotListed { crd: name() });
        check(
            &with(&|crd| crd.served = vec![]),
            NotServed::NoVersion { crd: name() },
        );
        check(
            &with(&|crd| crd.served = vec!["v2".into()]),
            NotServed::OtherVersions(vec!["rules.example.com/v2".into()]),
        );
        check(
            &with(&|crd| {
                crd.is_established = false;
                crd.problem = Some("taken".into());
            }),
            NotServed::NotEstablished {
                crd: name(),
                reason: Some("taken".into()),
            },
        );
    }
}
