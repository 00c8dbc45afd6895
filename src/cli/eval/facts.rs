//! Determines which request data, other than the object, the expressions of a policy read.

use std::collections::BTreeSet;

use crate::cel::ast::Ast;
use crate::policy::compile::CompiledPolicy;
use crate::policy::reads::{Input, Reads};

/// A part of the request data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum RequestFact {
    /// `request.userInfo`.
    User,
    /// `request.operation`.
    Operation,
    /// `request.options` and `request.dryRun`.
    Options,
    /// `oldObject`.
    OldObject,
    /// `namespaceObject`.
    NamespaceObject,
    /// `params`.
    Params,
    /// `authorizer`.
    Authorizer,
}

impl RequestFact {
    /// Returns the CEL expression for this part.
    pub(in crate::cli) fn as_str(self) -> &'static str {
        match self {
            Self::User => "request.userInfo",
            Self::Operation => "request.operation",
            Self::Options => "request.options",
            Self::OldObject => "oldObject",
            Self::NamespaceObject => "namespaceObject",
            Self::Params => "params",
            Self::Authorizer => "authorizer",
        }
    }
}

/// Returns the request data that the expressions of a policy read.
pub(in crate::cli) fn from_policy(compiled: &CompiledPolicy) -> BTreeSet<RequestFact> {
    let mut facts = BTreeSet::new();
    for expression in compiled.expressions() {
        if let Ok(ast) = expression.parsed() {
            add_facts(ast, &mut facts);
        }
    }
    facts
}

fn add_facts(ast: &Ast, facts: &mut BTreeSet<RequestFact>) {
    let reads = Reads::new(ast);
    let fields = reads.fields(&[Input::Request]);
    let input_facts = [
        (Input::OldObject, RequestFact::OldObject),
        (Input::NamespaceObject, RequestFact::NamespaceObject),
        (Input::Params, RequestFact::Params),
        (Input::Authorizer, RequestFact::Authorizer),
    ];
    let input_facts = input_facts
        .into_iter()
        .filter(|(input, _)| reads.has(&[*input]));
    facts.extend(input_facts.map(|(_, fact)| fact));
    let request_facts = [
        ("userInfo", RequestFact::User),
        ("operation", RequestFact::Operation),
        ("options", RequestFact::Options),
        ("dryRun", RequestFact::Options),
    ];
    let request_facts = request_facts
        .into_iter()
        .filter(|(name, _)| fields.contains(name));
    facts.extend(request_facts.map(|(_, fact)| fact));
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expression: &str, expect: &str) {
        let policy = json!({"metadata": {"name": "a"}, "spec": {"validations": [{"expression": expression}]}});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let facts = from_policy(&CompiledPolicy::new(&policy));
        let facts: Vec<_> = facts.into_iter().map(RequestFact::as_str).collect();
        assert_eq!(facts.join(" "), expect, "{expression}");
    }

    #[test]
    fn request_data_that_policy_reads_is_listed() {
        check("object.request.userInfo == oldObject", "oldObject");
        check("request.userInfo.username != ''", "request.userInfo");
        check(
            "has(request.options.a) && request.name != ''",
            "request.options",
        );
        check("dyn(request)['operation'] == ''", "request.operation");
        check("request.?dryRun.orValue(false)", "request.options");
        check(
            "dyn(request)[object.key] == ''",
            "request.userInfo request.operation request.options",
        );
        check(
            "authorizer.requestResource.check('get').allowed()",
            "authorizer",
        );
        check(
            "params.a in namespaceObject.metadata.labels",
            "namespaceObject params",
        );
        check("object.metadata.name != 'oldObject'", "");
    }
}
