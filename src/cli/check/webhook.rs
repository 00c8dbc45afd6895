//! Checks the rules and the match conditions of webhooks.
//!
//! Match conditions of webhooks and of policies have the same variables (except `params`), the same limits, and the
//! same handling of failures. Therefore, each webhook is converted to a policy with its rules, selectors and match
//! conditions (`input::webhook`). The findings about that policy then get the names and the fields of the webhook.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`, `validateMatchConditions`;
//! `k8s.io/apiserver` `pkg/admission/plugin/webhook/accessors.go`, `GetCompiledMatcher`.

use serde_json::Value;

use super::finding::{Finding, Owner, Severity};
use super::known::Known;
use super::policy::{self, object_finding};
use super::shape;
use super::versions;
use crate::cli::input::Object;
use crate::cli::input::webhook::{as_policy, webhooks};
use crate::policy::RequestPolicy;
use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;

pub(in crate::cli) use crate::policy::webhooks::field_of_webhook;

/// Returns the number of webhooks in a configuration.
pub(super) fn count(configuration: &Object<Value>) -> usize {
    webhooks(configuration).len()
}

/// Returns the findings about the rules and match conditions of a webhook configuration. For a configuration from a
/// file, also returns decoding errors.
pub(in crate::cli) fn check(
    configuration: &Object<Value>,
    known: &Known,
    profile: Profile,
    is_of_file: bool,
) -> Vec<Finding> {
    let mut findings = shape::check(configuration);
    let has_shape = !findings.iter().any(|finding| finding.rejected);
    if !is_of_file {
        // The API server has accepted a configuration from a cluster, so its decoding errors are not reported.
        findings.clear();
    }
    let kind = configuration.value.get("kind").and_then(Value::as_str);
    let kind = kind.and_then(SubjectKind::from_kind);
    let kind = kind.unwrap_or(SubjectKind::ValidatingWebhookConfiguration);
    for (n, webhook) in webhooks(configuration).iter().enumerate() {
        match as_policy(configuration, webhook) {
            Ok(policy) => {
                findings.extend(webhook_findings((kind, n), &policy, (known, profile)));
            }
            Err(error) if has_shape => findings.push(object_finding(
                configuration,
                Severity::Error,
                Rule::InvalidObject,
                &format!("cannot read this webhook: {error}"),
                configuration.place_of(webhook),
            )),
            // The decoding errors already explain why the webhook cannot be converted.
            Err(_) => {}
        }
    }
    findings
}

/// Returns the findings about the webhook `n` of a configuration, converted to `policy`.
fn webhook_findings(
    (kind, n): (SubjectKind, usize),
    policy: &Object<RequestPolicy>,
    (known, profile): (&Known, Profile),
) -> Vec<Finding> {
    let mut findings = policy::check_as(kind, policy, (None, &[]), known, profile).findings;
    versions::check(policy, None, known.version(), &mut findings);
    for finding in &mut findings {
        finding.owner = Owner::Webhook {
            webhook: policy.value.name.clone(),
            configuration: None,
        };
        let field_ref = finding.field_ref.take();
        finding.field_ref = field_ref.map(|field_ref| field_of_webhook(n, &field_ref));
    }
    findings
}
