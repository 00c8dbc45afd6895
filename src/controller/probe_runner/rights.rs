//! Restricts the cluster inputs that probes use, and the details that statuses of probes show.
//!
//! A probe does not record its author, so the author's permissions cannot be checked. The controller reads params and
//! namespaces with its own permissions. So a probe may use them only through existing bindings that allow this by an
//! annotation. Results that depend on these inputs omit messages and costs (ADR 0037).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::super::probes;
use crate::controller::subjects::binding_annotations::{ALLOWED, PROBE_INPUTS, allows_inputs};
use crate::controller::subjects::probe::{StoredSpec, namespace_of};
use crate::controller::subjects::store::Entry;
use crate::policy::admission::ReviewOutcome;
use crate::probe::api::{
    AuthorizerSource, BindingSource, Case, CaseOutcome, CaseStatus, Source as From,
};
use crate::probe::outline;
use crate::probe::run::CaseResult;

/// Explains why a result has no details.
const WITHHELD: &str = "details are not shown, as they may contain params, namespaces or permissions of the cluster; \
                        run the probe with `kubectl vap test`";

/// The cluster inputs that one probe is allowed to use.
#[derive(Clone, Debug)]
pub(super) struct Rights {
    /// Why the probe is not allowed to use params of the cluster. `None` if it is allowed to, or does not refer to
    /// params.
    params: Option<String>,
    /// True if the probe uses params of the cluster.
    uses_params: bool,
    /// Why the probe is not allowed to use namespaces of the cluster. `None` if it is allowed to, or needs no
    /// namespaces.
    namespaces: Option<String>,
    /// The namespaces of the cluster on which the results of the probe depend.
    names: BTreeSet<String>,
    asks_authorizer: bool,
}

impl Rights {
    /// Determines the cluster inputs for a probe of the policy `entry`. `bindings` are the policy's bindings in the
    /// cluster.
    pub(super) fn new(
        entry: &Entry,
        bindings: &[Arc<ValidatingAdmissionPolicyBinding>],
        probe: &StoredSpec,
    ) -> Self {
        let has_param_kind = entry.subject.param_kind().is_some();
        let refers = has_param_kind && refers_to_params(probe, bindings);
        let params = refers.then(|| params_denial(probe, bindings)).flatten();
        let names = probes::needed(entry, bindings.iter().map(AsRef::as_ref), probe);
        let namespaces = (!names.is_empty())
            .then(|| namespaces_refusal(probe, bindings))
            .flatten();
        Self {
            uses_params: refers && params.is_none(),
            params,
            namespaces,
            names,
            asks_authorizer: probe.authorizer == AuthorizerSource::FromCluster,
        }
    }

    /// Returns why the probe is not allowed to use params of the cluster. `None` if it is allowed to, or does not refer
    /// to params.
    pub(super) fn params_denial(&self) -> Option<&str> {
        self.params.as_deref()
    }

    /// Returns the namespaces of the cluster that the probe is allowed to use.
    pub(super) fn allowed_namespaces(&self) -> impl Iterator<Item = &String> {
        let names = self.namespaces.is_none().then_some(&self.names);
        names.into_iter().flatten()
    }

    /// Returns the namespaces of the cluster that the probe is not allowed to use, and the reason.
    pub(super) fn denied_namespaces(&self) -> Option<(&BTreeSet<String>, &str)> {
        Some((&self.names, self.namespaces.as_deref()?))
    }

    /// Returns true if the result of a case may reveal params, namespaces or permissions of the cluster.
    fn is_confidential(&self, case: &Case) -> bool {
        let uses_namespace = || {
            self.namespaces.is_none()
                && namespace_of(case).is_some_and(|name| self.names.contains(name))
        };
        self.uses_params || self.asks_authorizer || uses_namespace()
    }

    /// Returns the status of a case. Omits details that may reveal params, namespaces or permissions of the cluster.
    ///
    /// `is_evaluated` is true if expressions of the policy were evaluated for the case.
    pub(super) fn published(
        &self,
        case: &Case,
        result: CaseResult,
        is_evaluated: bool,
    ) -> CaseStatus {
        if is_evaluated && self.is_confidential(case) {
            withheld(case, result.status, result.outcome.as_ref())
        } else {
            result.status
        }
    }
}

/// Returns true if a probe refers to params of the cluster.
fn refers_to_params(
    probe: &StoredSpec,
    bindings: &[Arc<ValidatingAdmissionPolicyBinding>],
) -> bool {
    probe.params == From::FromCluster
        && match probe.bindings {
            BindingSource::FromCluster => bindings.iter().any(|it| it.spec.param_ref.is_some()),
            BindingSource::Inline => {
                (probe.inline_bindings.iter()).any(|spec| spec.param_ref.is_some())
            }
            BindingSource::Implied => true,
        }
}

/// Returns why a probe is not allowed to use params of the cluster. `None` if it is allowed to.
pub(super) fn params_denial(
    probe: &StoredSpec,
    bindings: &[Arc<ValidatingAdmissionPolicyBinding>],
) -> Option<String> {
    if probe.bindings != BindingSource::FromCluster {
        return Some(format!(
            "params of the cluster are used only through bindings of the cluster, but the probe has `bindings: {}`; \
             give the probe `params: Inline` with `inlineParams`, or use `bindings: FromCluster`",
            match probe.bindings {
                BindingSource::Implied => "Implied",
                BindingSource::Inline | BindingSource::FromCluster => "Inline",
            }
        ));
    }
    let mut referring = bindings.iter().filter(|it| it.spec.param_ref.is_some());
    let closed = referring.find(|binding| !allows_inputs(&binding.metadata))?;
    Some(format!(
        "the binding `{}` does not allow probes to use its params; give the probe `params: Inline` with \
         `inlineParams`, or annotate the binding with {PROBE_INPUTS}={ALLOWED}, which lets authors of probes \
         learn the params",
        closed.metadata.name.as_deref().unwrap_or_default()
    ))
}

/// Returns why a probe is not allowed to use namespaces of the cluster. `None` if it is allowed to.
fn namespaces_refusal(
    probe: &StoredSpec,
    bindings: &[Arc<ValidatingAdmissionPolicyBinding>],
) -> Option<String> {
    let action = "give the case a `namespaceObject`";
    let closed = bindings
        .iter()
        .find(|binding| !allows_inputs(&binding.metadata));
    match (probe.bindings, closed) {
        (BindingSource::FromCluster, Some(binding)) => Some(format!(
            "the binding `{}` does not allow probes to use namespaces of the cluster; {action}, or annotate the \
             binding with {PROBE_INPUTS}={ALLOWED}, which lets authors of probes learn the labels and annotations of \
             namespaces",
            binding.metadata.name.as_deref().unwrap_or_default()
        )),
        (BindingSource::FromCluster, None) if !bindings.is_empty() => None,
        _ => Some(format!(
            "labels and annotations of namespaces of the cluster are used only through bindings of the cluster that \
             allow it; {action}"
        )),
    }
}

/// Returns the status of a case without messages and costs, since these depend on the evaluated values.
fn withheld(case: &Case, status: CaseStatus, outcome: Option<&ReviewOutcome>) -> CaseStatus {
    let difference = match (status.outcome, outcome) {
        (CaseOutcome::Passed, _) => None,
        (CaseOutcome::Failed, Some(outcome)) => {
            Some(format!("{}; {WITHHELD}", outline(&case.expect, outcome)))
        }
        (CaseOutcome::Failed | CaseOutcome::Pending, _) => {
            Some(format!("the case could not be evaluated; {WITHHELD}"))
        }
    };
    CaseStatus {
        message: None,
        cost_used: None,
        difference,
        ..status
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::subjects::binding_annotations::set_allows_inputs;
    use crate::probe::api::PolicyProbeSpec;

    fn binding(
        name: &str,
        param_ref: &Value,
        is_allowed: bool,
    ) -> Arc<ValidatingAdmissionPolicyBinding> {
        let value =
            json!({"metadata": {"name": name}, "spec": {"policyName": "a", "paramRef": param_ref}});
        let mut binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(value).unwrap();
        set_allows_inputs(&mut binding.metadata, is_allowed);
        Arc::new(binding)
    }

    fn spec_of(mut spec: Value) -> PolicyProbeSpec {
        spec["cases"] =
            json!([{"name": "c", "request": {}, "expect": {"decision": "Deny", "message": "s"}}]);
        serde_json::from_value(spec).unwrap()
    }

    fn probe(spec: Value) -> StoredSpec {
        StoredSpec::new(spec_of(spec))
    }

    #[test]
    fn params_are_used_only_through_existing_bindings_that_allow_it() {
        let named = json!({"name": "private", "namespace": "kube-system"});
        let open = binding("open", &named, true);
        let closed = binding("closed", &named, false);
        let without = binding("without", &Value::Null, false);
        let selected = json!({"selector": {}});
        let table = [
            (json!({}), vec![&open, &without], None),
            (
                json!({}),
                vec![&open, &closed],
                Some("the binding `closed` does not allow"),
            ),
            (
                json!({"bindings": "Implied"}),
                vec![&open],
                Some("`bindings: Implied`"),
            ),
            (
                json!({"bindings": "Inline", "inlineBindings": [{"paramRef": named}]}),
                vec![&open],
                Some("`bindings: Inline`"),
            ),
            (
                json!({"bindings": "Inline", "inlineBindings": [{}, {"paramRef": selected}]}),
                vec![&open],
                Some("`bindings: Inline`"),
            ),
        ];
        for (spec, bindings, expected) in table {
            let bindings: Vec<_> = bindings.into_iter().cloned().collect();
            let spec = probe(spec);
            assert!(refers_to_params(&spec, &bindings), "{spec:?}");
            let rejection = params_denial(&spec, &bindings);
            match expected {
                Some(expected) => assert!(rejection.unwrap().contains(expected), "{spec:?}"),
                None => assert_eq!(rejection, None),
            }
        }
        for spec in [
            json!({"params": "Inline"}),
            json!({"params": "Inline", "bindings": "Implied"}),
            json!({"bindings": "Inline", "inlineBindings": [{}]}),
        ] {
            assert!(!refers_to_params(&probe(spec), &[Arc::clone(&open)]));
        }
        assert!(!refers_to_params(&probe(json!({})), &[without]));
    }

    #[test]
    fn namespaces_are_used_only_if_all_bindings_allow_it() {
        let open = binding("open", &Value::Null, true);
        let closed = binding("closed", &Value::Null, false);
        let rejection =
            |spec: Value, bindings: &[Arc<_>]| namespaces_refusal(&probe(spec), bindings);
        assert_eq!(rejection(json!({}), &[Arc::clone(&open)]), None);
        assert!(rejection(json!({}), &[]).is_some());
        let both = [Arc::clone(&open), closed];
        assert!(
            rejection(json!({}), &both)
                .unwrap()
                .contains("the binding `closed`")
        );
        assert!(rejection(json!({"bindings": "Implied"}), &[Arc::clone(&open)]).is_some());
        assert!(rejection(json!({"bindings": "Inline"}), &[open]).is_some());
    }

    #[test]
    fn status_with_withheld_details_has_no_message_and_no_cost() {
        let spec = spec_of(json!({}));
        let case = &spec.cases[0];
        for outcome in CaseOutcome::ALL {
            let status = |secret: &str, cost| CaseStatus {
                name: "c".to_owned(),
                outcome,
                decision: Some(crate::probe::api::Decision::Deny),
                message: Some(format!("it is {secret}")),
                cost_used: Some(cost),
                difference: Some(format!("got {secret}")),
            };
            let denied = ReviewOutcome::default();
            let shown = withheld(case, status("one", 1), Some(&denied));
            assert_eq!(shown, withheld(case, status("other", 22), Some(&denied)));
            assert_eq!(
                (shown.outcome, shown.message, shown.cost_used),
                (outcome, None, None)
            );
        }
    }
}
