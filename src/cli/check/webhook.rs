//! The match conditions of webhooks, checked as those of a policy are.
//!
//! A webhook asks about its match conditions what a policy asks about its own: the same variables, without params, the
//! same limits, the same treatment of failures. So each webhook is read as a policy that has its rules, selectors and
//! match conditions and nothing else (`input::webhook`); the findings get the names and the fields of the webhook back.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`, `validateMatchConditions`;
//! `k8s.io/apiserver` `pkg/admission/plugin/webhook/accessors.go`, `GetCompiledMatcher`.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::Value;

use super::finding::{Finding, Owner, Severity};
use super::known::Known;
use super::policy::{self, finding};
use super::shape;
use super::versions;
use crate::cel::decls::Version;
use crate::cli::input::Object;
use crate::cli::input::webhook::{as_policy, webhooks};
use crate::library::environment::is_whole_in;
use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;

pub(in crate::cli) use crate::policy::webhooks::of_field;

/// The number of webhooks in a configuration.
pub(super) fn count(configuration: &Object<Value>) -> usize {
    webhooks(configuration).len()
}

/// The findings about a configuration: its shape, if it is of a file, and the rules and the match conditions of its
/// webhooks.
pub(in crate::cli) fn check(
    configuration: &Object<Value>,
    known: &Known,
    (profile, version): (Profile, Version),
    is_of_file: bool,
) -> Vec<Finding> {
    let mut findings = shape::check(configuration);
    let has_shape = !findings.iter().any(|found| found.refused);
    if !is_of_file {
        // What is in a cluster was accepted, and has fields that nobody may set who creates it.
        findings.clear();
    }
    let kind = configuration.value.get("kind").and_then(Value::as_str);
    let kind = kind.and_then(SubjectKind::from_kind);
    let kind = kind.unwrap_or(SubjectKind::ValidatingWebhookConfiguration);
    for (n, webhook) in webhooks(configuration).iter().enumerate() {
        match as_policy(configuration, webhook) {
            Ok(policy) => {
                findings.extend(of_webhook((kind, n), &policy, (known, profile, version)));
            }
            Err(error) if has_shape => findings.push(finding(
                configuration,
                Severity::Error,
                Rule::InvalidObject,
                &format!("cannot read this webhook: {error}"),
                configuration.place_of(webhook),
            )),
            // It is told what shape it does not have.
            Err(_) => {}
        }
    }
    findings
}

/// The findings about the webhook `n` of a configuration, which is read as `policy`.
fn of_webhook(
    (kind, n): (SubjectKind, usize),
    policy: &Object<ValidatingAdmissionPolicy>,
    (known, profile, version): (&Known, Profile, Version),
) -> Vec<Finding> {
    let mut findings = policy::check_as(kind, policy, (None, &[]), known, profile).findings;
    if !is_whole_in(version) {
        findings.extend(versions::check(policy, None, version));
    }
    for found in &mut findings {
        found.owner = Owner::Webhook {
            webhook: policy.value.metadata.name.clone(),
            configuration: None,
        };
        let field_ref = found.field_ref.take();
        found.field_ref = field_ref.map(|field_ref| of_field(n, &field_ref));
    }
    findings
}
