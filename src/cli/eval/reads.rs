//! Facts of a request that the expressions of a policy read, apart from the object itself.
//!
//! Takes a compiled policy, gives names; it does not know which of them are known.

use std::collections::BTreeSet;

use crate::cel::ast::{Ast, Expr};
use crate::policy::compile::CompiledPolicy;

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
            of_expression(ast, &mut found);
        }
    }
    found
}

fn of_expression(ast: &Ast, found: &mut BTreeSet<Read>) {
    let is_request = |expr: &Expr| matches!(expr, Expr::Ident(name) if name.trim_start_matches('.') == "request");
    let mut n_selected = 0;
    let mut n_requests = 0;
    for (_, expr) in ast.iter() {
        match expr {
            Expr::Ident(name) => match name.trim_start_matches('.') {
                "request" => n_requests += 1,
                "oldObject" => {
                    found.insert(Read::OldObject);
                }
                "namespaceObject" => {
                    found.insert(Read::NamespaceObject);
                }
                "params" => {
                    found.insert(Read::Params);
                }
                name if name == "authorizer" || name.starts_with("authorizer.") => {
                    found.insert(Read::Authorizer);
                }
                _ => {}
            },
            Expr::Select { operand, field, .. } if is_request(ast.expr(*operand)) => {
                n_selected += 1;
                match &**field {
                    "userInfo" => {
                        found.insert(Read::User);
                    }
                    "operation" => {
                        found.insert(Read::Operation);
                    }
                    "options" | "dryRun" => {
                        found.insert(Read::Options);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    // Where the request is taken as a whole, or a field by a computed name, all of it counts as read.
    if n_requests > n_selected {
        found.extend([Read::User, Read::Operation, Read::Options]);
    }
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
        check(
            "dyn(request)['operation'] == ''",
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
