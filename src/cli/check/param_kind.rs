//! Findings about the paramKind of a policy, and about missing params.

use super::finding::{Assumption, Finding, Severity};
use super::known::Known;
use super::policy::{PolicyAnalysis, object_finding};
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::rule::Rule;
use crate::status::Effect;
use crate::status::compute::{self, MissingParams, NotServed, ParamKindState, ParamsState};
use crate::status::message;

pub(super) fn add(
    policy: &Object<RequestPolicy>,
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let field_ref = "spec.paramKind";
    let place = policy.place_of_field("spec.paramKind.kind");
    let finding = match &analysis.params {
        ParamKindState::Served(_, ParamsState::Examined { missing, .. }) => {
            findings.extend(missing_params(policy, missing));
            return;
        }
        ParamKindState::NotRequired | ParamKindState::Served(..) => return,
        ParamKindState::Undiscovered { gvk, reason } => {
            let message = format!("unknown paramKind {}", message::kind(gvk));
            let note = Severity::Note;
            let mut finding = object_finding(policy, note, Rule::UnknownParamKind, &message, place);
            finding.help = Some(if known.is_of_cluster() {
                format!("{reason}; `params` is not checked")
            } else {
                "`params` is not checked: pass the CRD of the paramKind with --crds or in the input"
                    .to_owned()
            });
            finding
        }
        ParamKindState::NotFound { .. } | ParamKindState::NotServed { .. } => {
            let effect = Effect {
                fails_closed: crate::policy::fails_closed(&policy.value),
                subject: analysis.subject,
            };
            let Some((message, help)) = compute::unserved(&analysis.params, effect) else {
                return;
            };
            let meant = meant_param_kind(&analysis.params);
            let place = meant.map_or(place, |(field, _)| policy.place_of_field(field));
            let error = Severity::Error;
            let mut finding =
                object_finding(policy, error, Rule::ParamKindNotFound, &message, place);
            finding.help = Some(help);
            if let Some((field, value)) = meant {
                let node = policy.document.node.nearest(field);
                finding.location.length = policy.length_of(node);
                let edit = policy.document.edit_value(&policy.source, node, value);
                if is_only_difference(&analysis.params) {
                    finding.fix = edit;
                } else {
                    finding.assumption = edit.map(Assumption::new);
                }
            }
            finding
        }
    };
    findings.push(Finding {
        field_ref: Some(field_ref.to_owned()),
        ..finding
    });
}

/// For a paramKind that is not served, returns the wrong field and the only value with which the kind would be served:
/// the name of a similar kind, or the version of the kind.
fn meant_param_kind(state: &ParamKindState) -> Option<(&'static str, &str)> {
    match state {
        ParamKindState::NotFound { gvk, similar } => {
            let [only] = similar.as_slice() else {
                return None;
            };
            let (api_version, kind) = only.split_once(' ')?;
            if api_version == gvk.api_version() {
                return Some(("spec.paramKind.kind", kind));
            }
            // If the kind and the version differ, the kind is corrected first. The next round of the check corrects the
            // version.
            let is_same_kind = kind == &*gvk.kind;
            Some(if is_same_kind {
                ("spec.paramKind.apiVersion", api_version)
            } else {
                ("spec.paramKind.kind", kind)
            })
        }
        ParamKindState::NotServed {
            why: NotServed::OtherVersions(versions),
            ..
        } => match versions.as_slice() {
            [only] => Some(("spec.paramKind.apiVersion", only)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if a similar kind has the `kind` or the `apiVersion` of the paramKind, or if the state is not
/// `NotFound`.
fn is_only_difference(state: &ParamKindState) -> bool {
    let ParamKindState::NotFound { gvk, similar } = state else {
        return true;
    };
    similar.iter().any(|similar| {
        let parts = similar.split_once(' ');
        parts.is_some_and(|(version, kind)| version == gvk.api_version() || kind == &*gvk.kind)
    })
}

/// Returns findings about missing params that bindings of a cluster refer to.
fn missing_params(policy: &Object<RequestPolicy>, missing: &[MissingParams]) -> Vec<Finding> {
    let fails_closed = crate::policy::fails_closed(&policy.value);
    let findings = missing.iter().map(|missing| {
        let (severity, help) = match (missing.denies, fails_closed) {
            (true, true) => (
                Severity::Warning,
                "with parameterNotFoundAction Deny, every request that the binding matches is denied",
            ),
            (true, false) => (
                Severity::Note,
                "with failurePolicy Ignore, the binding does not check any request",
            ),
            (false, _) => (
                Severity::Note,
                "with parameterNotFoundAction Allow, the binding does not check any request",
            ),
        };
        let (what, binding) = (&missing.what, &missing.binding);
        let message = format!("params do not exist: {what}, referenced by binding {binding}");
        let place = policy.place_of_field("spec.paramKind.kind");
        let mut finding = object_finding(policy, severity, Rule::ParamsNotFound, &message, place);
        finding.help = Some(help.to_owned());
        finding.field_ref = Some("spec.paramKind".to_owned());
        finding
    });
    findings.collect()
}
