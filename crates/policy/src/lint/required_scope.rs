//! Finds validations that require an operation or a kind although the rules also match other operations or kinds, as in
//! `request.operation == 'DELETE' && object == null` for CREATE and DELETE. Such a validation is false for all requests
//! with another operation or kind. Most authors intend `request.operation != 'DELETE' || object == null`.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::Validation;
use kubernetes::schema::rest_mapper::RestMapper;

use super::Lint;
use super::path::{NameTest, Operator};
use super::positions::conjuncts;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching::{self, Target};
use crate::reads::{Input, Reads, is_input};
use crate::rule::Rule;
use cel::ast::{Ast, ExprId};
use cel::source::SourceMap;

/// Maximum number of names in a message or hint.
const MAX_NAMES: usize = 4;

pub(super) fn find(policy: &CompiledPolicy, mapper: &RestMapper) -> Vec<Lint> {
    if policy.is_mutating() {
        return Vec::new();
    }
    let with_role = |role: Role| {
        let expressions = policy.expressions().iter();
        expressions.filter(move |expression| expression.role == role)
    };
    // A match condition may exclude the other operations or kinds.
    if with_role(Role::MatchCondition).any(may_select_scope) {
        return Vec::new();
    }
    let mut lints = Vec::new();
    let validations = &policy.policy().validations;
    for (expression, validation) in with_role(Role::Validation).zip(validations) {
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
        let Some(denied) = test.unmatched(policy, mapper) else {
            continue;
        };
        if is_intended(validation, &denied) {
            continue;
        }
        let denied = joined(&denied.iter().map(String::as_str).collect::<Vec<_>>());
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
    fn unmatched(&self, policy: &CompiledPolicy, mapper: &RestMapper) -> Option<Vec<String>> {
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
        is_reported.then_some(denied)
    }

    /// Returns the source of the negated test. Leaves out names that are long or have to be escaped.
    fn negation(&self) -> String {
        let is_plain = |name: &&str| {
            name.chars()
                .all(|c| c.is_alphanumeric() || "-./".contains(c))
        };
        match &*self.names {
            names if names.len() > MAX_NAMES || !names.iter().all(is_plain) => {
                format!("!({} ...)", self.path)
            }
            [name] => format!("{} != '{name}'", self.path),
            names => format!("!({} in ['{}'])", self.path, names.join("', '")),
        }
    }
}

/// Returns the names with "and" between them. A long list is cut.
pub(super) fn joined(names: &[&str]) -> String {
    match names.get(..MAX_NAMES) {
        Some(first) if names.len() > MAX_NAMES => {
            format!("{} and {} other", first.join(", "), names.len() - MAX_NAMES)
        }
        _ => names.join(" and "),
    }
}

/// Returns true if a match condition may select requests by their operation, kind or resource. Objects of different kinds
/// have different fields, and the object is null for some operations.
fn may_select_scope(condition: &PolicyExpression) -> bool {
    let Ok(ast) = condition.parsed() else {
        return true;
    };
    Reads::new(ast).attributes().any(|(input, attribute)| {
        let field = attribute.qualifiers.first().and_then(|it| it.key.name());
        let is_unrelated = matches!(
            field,
            Some("userInfo" | "namespace" | "name" | "dryRun" | "options")
        );
        matches!(input, Input::Object | Input::OldObject)
            || input == Input::Request && !is_unrelated
    })
}

/// Returns true if the message says that only some requests are allowed, or names the excluded operations or kinds.
fn is_intended(validation: &Validation, denied: &[String]) -> bool {
    const LIMITS: [&str; 4] = ["only", "immutable", "read-only", "must not change"];
    let texts = [&validation.message, &validation.message_expression];
    let texts = texts.into_iter().flatten();
    let text: String = texts.map(|text| text.to_lowercase()).collect();
    let is_named = |name: &String| {
        let name = name.to_lowercase();
        // `creat` is the stem of `create`, `created` and `creation`.
        let stem = name.strip_suffix('e').unwrap_or(&name);
        text.contains(stem)
    };
    LIMITS.iter().any(|it| text.contains(it)) || denied.iter().any(is_named)
}
