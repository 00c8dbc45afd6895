//! Facts of a request that the expressions of a policy read, apart from the object itself.
//!
//! Takes a compiled policy, gives names; it does not know which of them are known.

use std::collections::BTreeSet;

use crate::cel::ast::Ast;
use crate::policy::compile::CompiledPolicy;
use crate::policy::reads::{Input, Reads};

/// A fact of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) enum Read {
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

impl Read {
    /// The words of the language for it.
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

/// The facts that the expressions of a policy read.
pub(in crate::cli) fn of_policy(compiled: &CompiledPolicy) -> BTreeSet<Read> {
    let mut found = BTreeSet::new();
    for expression in compiled.expressions() {
        if let Ok(ast) = expression.parsed() {
            add_reads(ast, &mut found);
        }
    }
    found
}

fn add_reads(ast: &Ast, facts: &mut BTreeSet<Read>) {
    let reads = Reads::new(ast);
    let fields = reads.fields(&[Input::Request]);
    let of_input = [
        (Input::OldObject, Read::OldObject),
        (Input::NamespaceObject, Read::NamespaceObject),
        (Input::Params, Read::Params),
        (Input::Authorizer, Read::Authorizer),
    ];
    let of_input = of_input
        .into_iter()
        .filter(|(input, _)| reads.has(&[*input]));
    facts.extend(of_input.map(|(_, fact)| fact));
    let of_request = [
        ("userInfo", Read::User),
        ("operation", Read::Operation),
        ("options", Read::Options),
        ("dryRun", Read::Options),
    ];
    let of_request = of_request
        .into_iter()
        .filter(|(name, _)| fields.contains(name));
    facts.extend(of_request.map(|(_, fact)| fact));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expression: &str, expect: &str) {
        let policy = json!({"metadata": {"name": "a"}, "spec": {"validations": [{"expression": expression}]}});
        let policy = serde_json::from_value(policy).unwrap();
        let found = of_policy(&CompiledPolicy::new(&policy));
        let found: Vec<_> = found.into_iter().map(Read::as_str).collect();
        assert_eq!(found.join(" "), expect, "{expression}");
    }

    #[test]
    fn what_is_read_is_told() {
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
