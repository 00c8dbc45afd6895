//! Facts that admission would know and a stored object does not tell, for each policy that depends on it.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde::Serialize;

use crate::cli::eval::facts::RequestFact;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::policy::admission::{Binding, Operation};
use crate::policy::matching;

/// A fact of a request that is assumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// Part that the policy reads or matches, `request.userInfo`.
    pub what: String,
    /// Value that it is taken for.
    pub assumed: String,
}

/// The assumptions of an audit.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Assumptions<'a> {
    /// The name of the user.
    pub(in crate::cli) user: &'a str,
    /// The operation that is asked for.
    pub(in crate::cli) operation: Option<Operation>,
    /// True if all namespaces were read of a cluster.
    pub(in crate::cli) has_namespaces: bool,
}

/// Assumptions for `policy`.
pub(in crate::cli) fn of_policy(
    policy: &PreparedPolicy<'_>,
    policy_set: &PolicySet<'_>,
    assumptions: Assumptions<'_>,
) -> Vec<Unknown> {
    let mut found = Vec::new();
    let mut add = |what: &str, assumed: String| {
        found.push(Unknown {
            what: what.to_owned(),
            assumed,
        });
    };
    let operation = match assumptions.operation {
        Some(operation) => operation.as_str().to_owned(),
        None => "CREATE, or UPDATE where the policy matches no CREATE".to_owned(),
    };
    for read in &policy.reads {
        match read {
            RequestFact::User => add(read.as_str(), assumptions.user.to_owned()),
            RequestFact::Operation => add(read.as_str(), operation.clone()),
            RequestFact::Options => add(read.as_str(), "none".to_owned()),
            RequestFact::OldObject => {
                let assumed = "null for CREATE, else the object itself: no change is seen";
                add(read.as_str(), assumed.to_owned());
            }
            RequestFact::NamespaceObject if !assumptions.has_namespaces => {
                let assumed = if policy_set.namespaces.is_empty() {
                    "no namespace is among the input: each has its name, and no labels of its own"
                } else {
                    "a namespace that is not among the input has its name, and no labels of its own"
                };
                add(read.as_str(), assumed.to_owned());
            }
            RequestFact::Params => match &policy.params {
                Ok(_) if policy.n_params == 0 => add(read.as_str(), "there are none".to_owned()),
                Err(why) => add(read.as_str(), format!("not known: {why}")),
                Ok(_) => {}
            },
            RequestFact::Authorizer => add(read.as_str(), "nothing is allowed".to_owned()),
            RequestFact::NamespaceObject => {}
        }
    }
    let selects = has_namespace_selector(policy);
    if selects
        && !assumptions.has_namespaces
        && !policy.reads.contains(&RequestFact::NamespaceObject)
    {
        let assumed =
            "a namespace that is not among the input has its name, and no labels of its own";
        add("namespaceSelector", assumed.to_owned());
    }
    let rules = matching::rules(&policy.object.value);
    let left_out: Vec<&str> = ["DELETE", "CONNECT"]
        .into_iter()
        .filter(|operation| {
            assumptions
                .operation
                .is_none_or(|asked| asked.as_str() != *operation)
                && rules
                    .iter()
                    .any(|rule| has(rule.operations.as_ref(), operation))
        })
        .collect();
    if !left_out.is_empty() {
        add(
            "operations",
            format!("{} is not audited", left_out.join(" and ")),
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
            "nothing is stored of them: they are not audited".to_owned(),
        );
    }
    found
}

/// Reports whether the policy or one of its bindings selects namespaces by labels.
pub(in crate::cli) fn has_namespace_selector(policy: &PreparedPolicy<'_>) -> bool {
    let spec = policy.object.value.spec.as_ref();
    let constraints = spec.and_then(|spec| spec.match_constraints.as_ref());
    let selector = constraints.and_then(|it| it.namespace_selector.as_ref());
    let is_set = selector.is_some_and(|selector| {
        selector
            .match_labels
            .as_ref()
            .is_some_and(|labels| !labels.is_empty())
            || selector
                .match_expressions
                .as_ref()
                .is_some_and(|of| !of.is_empty())
    });
    is_set || policy.bindings.iter().any(Binding::has_namespace_selector)
}

fn has(values: Option<&Vec<String>>, value: &str) -> bool {
    values
        .into_iter()
        .flatten()
        .any(|it| it == "*" || it == value)
}
