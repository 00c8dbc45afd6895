//! Finds validations that require an operation or a kind although the rules also match other operations or kinds, as in
//! `request.operation == 'DELETE' && object == null` for CREATE and DELETE. Such a validation is false for all requests
//! with another operation or kind. Most authors intend `request.operation != 'DELETE' || object == null`.

use std::collections::BTreeSet;

use kubernetes::schema::rest_mapper::RestMapper;

use super::Lint;
use super::path::{self, NameTest, Operator};
use super::positions::conjuncts;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching::{self, Target};
use crate::reads::{Input, is_input};
use crate::rule::Rule;
use cel::ast::{Ast, ExprId};
use cel::source::SourceMap;

/// Maximum number of names in a message.
const MAX_NAMES: usize = 4;

pub(super) fn find(policy: &CompiledPolicy, mapper: &RestMapper) -> Vec<Lint> {
    if policy.is_mutating() {
        return Vec::new();
    }
    let with_role = |role: Role| {
        let expressions = policy.expressions().iter();
        expressions.filter(move |expression| expression.role == role)
    };
    let mut lints = Vec::new();
    for expression in with_role(Role::Validation) {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        let operands = conjuncts(ast, ast.root());
        let Some(test) = operands.iter().find_map(|id| ScopeTest::new(ast, *id)) else {
            continue;
        };
        // `request.operation == 'CREATE' && has(params.x)` may deny all updates on purpose.
        let mut others = operands.iter().filter(|id| **id != test.id);
        if !others.any(|id| reads_object(ast, *id)) {
            continue;
        }
        // A match condition may exclude the other operations or kinds.
        let is_restricted = |condition: &PolicyExpression| {
            let ast = condition.parsed().ok();
            ast.is_none_or(|ast| {
                let mut paths = ast.iter().filter_map(|(id, _)| path::path(ast, id));
                paths.any(|path| path == test.path)
            })
        };
        if with_role(Role::MatchCondition).any(is_restricted) {
            continue;
        }
        let Some(denied) = test.unmatched(policy, mapper) else {
            continue;
        };
        lints.push(Lint {
            rule: Rule::ConstantCondition,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(test.id))),
            message: format!("this is false for every {denied} request that the rules match"),
            fix: Some(
                format!(
                    "the validation denies these requests; to allow them, write `{} || (...)`",
                    test.negation()
                )
                .into(),
            ),
            is_harmless: false,
        });
    }
    lints
}

/// Returns true if the expression `id` reads `object` or `oldObject`.
fn reads_object(ast: &Ast, id: ExprId) -> bool {
    let mut nodes = ast.descendants(id).into_iter();
    nodes.any(|id| is_input(ast, id, Input::Object) || is_input(ast, id, Input::OldObject))
}

/// A comparison such as `request.operation == 'DELETE'` or `object.kind in ['Pod', 'Job']`.
struct ScopeTest<'a> {
    id: ExprId,
    path: String,
    names: Vec<&'a str>,
}

impl<'a> ScopeTest<'a> {
    /// `None` if the expression is not a comparison of the operation, kind or resource with literals.
    fn new(ast: &'a Ast, id: ExprId) -> Option<Self> {
        let NameTest {
            path,
            names,
            operator,
            is_complete,
        } = NameTest::new(ast, id)?;
        let is_scope = matches!(
            &*path,
            "request.operation" | "object.kind" | "request.kind.kind" | "request.resource.resource"
        );
        let is_required = is_complete && operator == Operator::Equal;
        (is_scope && is_required).then_some(Self { id, path, names })
    }

    /// Returns the operations, kinds or resources that the rules match and the test excludes. `None` if there are none, or
    /// if the rules match none that the test accepts.
    fn unmatched(&self, policy: &CompiledPolicy, mapper: &RestMapper) -> Option<String> {
        let targets = matching::targets(policy.policy(), mapper);
        let names = |target: &Target<'_>| -> Vec<String> {
            let resource = target.resource;
            match &*self.path {
                "request.operation" => target.operations.names().map(str::to_owned).collect(),
                "request.resource.resource" => vec![resource.gvr.resource.clone()],
                _ => vec![resource.gvk.kind.clone()],
            }
        };
        let targets = targets.iter().filter(|target| !target.by_wildcard);
        let all: BTreeSet<String> = targets.flat_map(names).collect();
        let (accepted, denied): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|name| self.names.contains(&&**name));
        let is_reported = !accepted.is_empty() && !denied.is_empty();
        is_reported.then(|| match denied.get(MAX_NAMES..) {
            Some(more @ [_, ..]) => format!(
                "{} and {} other",
                denied.get(..MAX_NAMES).unwrap_or_default().join(", "),
                more.len()
            ),
            _ => denied.join(" and "),
        })
    }

    /// Returns the source of the negated test.
    fn negation(&self) -> String {
        match &*self.names {
            [name] => format!("{} != '{name}'", self.path),
            names => format!("!({} in ['{}'])", self.path, names.join("', '")),
        }
    }
}
