//! Lists the assumptions of an audit for each policy.
//!
//! Policies depend on request data, such as the user. Stored objects lack these data, so an audit assumes values.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde::Serialize;

use super::decide::Operations;
use crate::cli::eval::facts::RequestFact;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::policy::admission::Operation;
use crate::policy::matching;

/// A value that an audit assumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The data that the policy reads or matches, such as `request.userInfo`.
    pub input: String,
    /// The assumed value.
    pub assumed: String,
}

/// The settings of an audit that determine the assumptions.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct AuditContext<'a> {
    /// The name of the user of all requests.
    pub(in crate::cli) user: &'a str,
    /// The operation of all requests, if the flag `--operation` is set.
    pub(in crate::cli) operation: Option<Operation>,
    /// True if all namespaces of a cluster were read.
    pub(in crate::cli) has_namespaces: bool,
}

pub(in crate::cli) fn for_policy(
    policy: &PreparedPolicy<'_>,
    policy_set: &PolicySet<'_>,
    context: AuditContext<'_>,
) -> Vec<Assumption> {
    let mut assumptions = Vec::new();
    let mut add = |what: &str, assumed: String| {
        assumptions.push(Assumption {
            input: what.to_owned(),
            assumed,
        });
    };
    let operation = match context.operation {
        Some(operation) => operation.as_str().to_owned(),
        None => "CREATE, or UPDATE if the policy does not match CREATE".to_owned(),
    };
    for read in &policy.reads {
        match read {
            RequestFact::User => add(read.as_str(), context.user.to_owned()),
            RequestFact::Operation => add(read.as_str(), operation.clone()),
            RequestFact::Options => add(read.as_str(), "none".to_owned()),
            RequestFact::OldObject => {
                let assumed =
                    "null for CREATE, otherwise the object itself, so there are no changes";
                add(read.as_str(), assumed.to_owned());
            }
            RequestFact::NamespaceObject if !context.has_namespaces => {
                let assumed = if policy_set.namespaces.is_empty() {
                    "the input has no namespaces: each namespace is assumed to have only the label `kubernetes.io/metadata.name`"
                } else {
                    "a namespace that is not in the input has only the label `kubernetes.io/metadata.name`"
                };
                add(read.as_str(), assumed.to_owned());
            }
            RequestFact::Params => match &policy.params {
                Ok(_) if policy.n_params == 0 => add(read.as_str(), "there are none".to_owned()),
                Err(why) => add(read.as_str(), format!("unknown: {why}")),
                Ok(_) => {}
            },
            RequestFact::Authorizer => add(read.as_str(), "nothing is allowed".to_owned()),
            RequestFact::NamespaceObject => {}
        }
    }
    let selects = policy.has_namespace_selector();
    if selects && !context.has_namespaces && !policy.reads.contains(&RequestFact::NamespaceObject) {
        let assumed =
            "a namespace that is not in the input has only the label `kubernetes.io/metadata.name`";
        add("namespaceSelector", assumed.to_owned());
    }
    let rules = matching::rules(&policy.object.value);
    let not_audited: Vec<&str> = ["DELETE", "CONNECT"]
        .into_iter()
        .filter(|operation| {
            context
                .operation
                .is_none_or(|asked| asked.as_str() != *operation)
                && rules
                    .iter()
                    .any(|rule| has(rule.operations.as_ref(), operation))
        })
        .collect();
    if !not_audited.is_empty() {
        add(
            "operations",
            format!("not audited: {}", not_audited.join(" and ")),
        );
    }
    let has_subresource = |rule: &NamedRuleWithOperations| {
        rule.resources
            .iter()
            .flatten()
            .any(|name| name.contains('/'))
    };
    if rules.iter().any(has_subresource) {
        add(
            "subresources",
            "not stored, and therefore not audited".to_owned(),
        );
    }
    assumptions
}

/// Returns the reason why an audit evaluates the policy for no object: its rules do not match the audited operations,
/// or match only subresources. `operation` is the audited operation, if the flag `--operation` is set.
pub(in crate::cli) fn not_audited(
    policy: &PreparedPolicy<'_>,
    operation: Option<Operation>,
) -> Option<String> {
    let rules = matching::rules(&policy.object.value);
    let audited = Operations::for_stored_objects(operation);
    let is_audited = |rule: &&NamedRuleWithOperations| {
        audited.any(|operation| has(rule.operations.as_ref(), operation.as_str()))
    };
    let mut with_operation = rules.iter().filter(is_audited).peekable();
    if with_operation.peek().is_some() {
        let mut resources = with_operation.flat_map(|rule| rule.resources.iter().flatten());
        // The wildcard `*/*` contains a slash, but matches main resources too.
        let has_resource = resources.any(|name| !name.contains('/') || name == "*/*");
        return (!has_resource)
            .then(|| "the rules match only subresources, which are not stored".to_owned());
    }
    let matched = rules
        .iter()
        .flat_map(|rule| rule.operations.iter().flatten());
    let matched: BTreeSet<&str> = matched.map(String::as_str).collect();
    if matched.is_empty() {
        return None;
    }
    let is_of_objects = |name: &&str| **name != *Operation::Connect.as_str();
    let hint = match matched.iter().copied().find(is_of_objects) {
        Some(name) => format!("; `--operation {name}` evaluates such requests for the objects"),
        None => String::new(),
    };
    let matched: Vec<&str> = matched.into_iter().collect();
    Some(format!(
        "the rules match only {}{hint}",
        matched.join(" and ")
    ))
}

fn has(values: Option<&Vec<String>>, value: &str) -> bool {
    values
        .into_iter()
        .flatten()
        .any(|it| it == "*" || it == value)
}
