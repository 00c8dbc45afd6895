//! Finds expressions that have the same result, or fail, for all requests.

use std::collections::BTreeSet;

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::env::Env;
use cel::source::SourceMap;
use cel::types::Type;
use kubernetes::schema::rest_mapper::RestMapper;

use super::path::{self, NameTest, Operator};
use super::{Lint, bounds, repeats};
use crate::advice::{Advice, Replacement};
use crate::analysis::{ConstantResult, evaluate_closed};
use crate::compile::CompiledPolicy;
use crate::comprehensions::{ComprehensionKind, comprehension_kind};
use crate::environment::{Declared, policy_env};
use crate::expressions::{PolicyExpression, Role};
use crate::matching::{self, MatchedResource, Operations};
use crate::nearest::{is_spelling_variant, nearest_joined};
use crate::param_kind;
use crate::reads::{Attribute, Input, Key, is_input};
use crate::rule::Rule;

/// Maximum number of calls with constant arguments that are evaluated for one policy.
const MAX_CALLS: usize = 200;

/// Maximum number of lints for one expression.
pub(super) const MAX_FOUND: usize = 20;

/// Returns the lints of the expressions of `policy`. `resources` are the resources that its rules match.
pub(super) fn find(
    policy: &CompiledPolicy,
    resources: &[MatchedResource],
    mapper: &RestMapper,
) -> Vec<Lint> {
    let has_params = param_kind(policy.policy()).is_some();
    let mut search = Search {
        env: policy_env(&Declared {
            release: policy.version().release(),
            object: &Type::Dyn,
            params: has_params.then_some(&Type::Dyn),
            authorizer: true,
            request_resource: true,
            mutation: policy.is_mutating(),
        }),
        names: Names::new(policy, resources),
        mapper,
        has_params,
        calls_left: MAX_CALLS,
    };
    let mut lints = Vec::new();
    for (n, expression) in policy.expressions().iter().enumerate() {
        // An expression that does not compile has other findings already.
        if let Ok(ast) = expression.parsed()
            && policy.compiles(n)
        {
            search.check(expression, ast, &mut lints);
        }
    }
    lints.extend(bounds::contradictory_validations(policy));
    lints
}

/// The names of the matched kinds, resources and groups.
struct Names {
    kinds: BTreeSet<String>,
    resources: BTreeSet<String>,
    api_versions: BTreeSet<String>,
    /// The API groups of the rules and of the matched kinds. `None` if a rule matches all groups.
    groups: Option<BTreeSet<String>>,
}

impl Names {
    fn new(policy: &CompiledPolicy, resources: &[MatchedResource]) -> Self {
        let rules = matching::rules(policy.policy()).iter();
        let of_rules = rules.flat_map(|rule| rule.api_groups.iter().flatten());
        let of_rules: Vec<&String> = of_rules.collect();
        // Without rules, the match constraints match all groups.
        let has_all = of_rules.is_empty() || of_rules.iter().any(|group| *group == "*");
        let of_kinds = resources.iter().map(|matched| &matched.gvk.group);
        // The kind of a subresource may be in a different group than the resource. An example is Scale.
        let groups: BTreeSet<String> = of_rules.into_iter().chain(of_kinds).cloned().collect();
        let api_versions = resources.iter().map(|matched| matched.gvk.api_version());
        let kinds = resources.iter().map(|matched| matched.gvk.kind.clone());
        let names = resources.iter().filter_map(|matched| {
            let name = matched.gvr.resource.split('/').next()?;
            Some(name.to_owned())
        });
        Self {
            kinds: kinds.collect(),
            resources: names.collect(),
            api_versions: api_versions.collect(),
            groups: (!has_all).then_some(groups),
        }
    }

    /// Returns true if the rules may match a resource or kind in the API group `group`.
    fn may_be_of(&self, group: &str) -> bool {
        self.groups
            .as_ref()
            .is_none_or(|groups| groups.contains(group))
    }

    /// Returns the finding for a comparison of `field` with the group or version `text`. `None` if a matched request
    /// may have this group or version.
    fn group_or_version(&self, field: &str, text: &str) -> Option<UnmatchedName> {
        let (before, after) = text.rsplit_once('/').unwrap_or(("", text));
        let intended = match field {
            "object.apiVersion" | "oldObject.apiVersion" if !self.may_be_of(before) => {
                let of_version = |known: &&String| known.rsplit('/').next() == Some(after);
                let mut intended = self.api_versions.iter().filter(of_version);
                intended
                    .next()
                    .filter(|_| intended.next().is_none())
                    .cloned()
            }
            "request.kind.group" | "request.resource.group"
                if text.contains('/') || !self.may_be_of(text) =>
            {
                (text.contains('/') && self.may_be_of(before)).then(|| before.to_owned())
            }
            "request.requestKind.group" | "request.requestResource.group" if text.contains('/') => {
                Some(before.to_owned())
            }
            "request.kind.version"
            | "request.resource.version"
            | "request.requestKind.version"
            | "request.requestResource.version"
                if text.contains('/') =>
            {
                Some(after.to_owned())
            }
            _ => return None,
        };
        Some(UnmatchedName { intended })
    }

    /// Returns the name in `names` that was probably intended instead of `text`: the only spelling variant of `text`.
    /// If `text` has no spelling variant, returns the most similar name, or a list of equally similar names.
    /// `is_served` is true if `text` is the name of a served kind or resource. Similar names are ignored in this case.
    /// `None` if `names` contains `text`, or several spelling variants of it.
    fn intended(names: &BTreeSet<String>, text: &str, is_served: bool) -> Option<String> {
        if names.contains(text) {
            return None;
        }
        let mut variants = names.iter().filter(|name| is_spelling_variant(name, text));
        match (variants.next(), variants.next()) {
            (Some(only), None) => Some(only.clone()),
            (Some(_), Some(_)) => None,
            (None, _) if is_served => None,
            (None, _) => nearest_joined(text, names.iter().map(String::as_str)),
        }
    }
}

/// A compared name that no matched request has.
struct UnmatchedName {
    /// The name that was probably intended.
    intended: Option<String>,
}

struct Search<'m> {
    env: Env,
    names: Names,
    mapper: &'m RestMapper,
    has_params: bool,
    calls_left: usize,
}

/// A finding at a node: its rule, its message, its fix, and true if it is harmless.
type Found = (Rule, String, Option<Advice>, bool);

impl Search<'_> {
    fn check(&mut self, expression: &PolicyExpression, ast: &Ast, lints: &mut Vec<Lint>) {
        let source = SourceMap::new(&expression.text);
        let mut at_nodes: Vec<(ExprId, Found)> = Vec::new();
        for constant in bounds::constants(ast) {
            let message = format!(
                "because of the tests of `{}`, this is always {}",
                constant.path, constant.value
            );
            let fix = if constant.value {
                "did you mean `&&`?"
            } else {
                "did you mean `||`?"
            };
            let fix = constant.may_mean_other_operator.then(|| fix.into());
            let finding = (Rule::ConstantCondition, message, fix, false);
            at_nodes.push((constant.at, finding));
        }
        for (id, repeat) in repeats::operands(ast) {
            let fix = repeat.fix.map(Advice::from);
            let finding = (repeat.rule, repeat.message, fix, false);
            at_nodes.push((id, finding));
        }
        for (id, expr) in ast.iter() {
            if at_nodes.len() >= MAX_FOUND {
                break;
            }
            if let Some(finding) = self.at(ast, id, expr) {
                at_nodes.push((shown_at(finding.0, expr).unwrap_or(id), finding));
            }
        }
        if let Some(finding) = self.whole(expression, ast) {
            at_nodes.push((ast.root(), finding));
        }
        at_nodes.sort_by_key(|(id, _)| ast.offset(*id));
        let all = at_nodes.into_iter();
        lints.extend(all.map(|(id, (rule, message, fix, is_harmless))| Lint {
            rule,
            field_ref: expression.field_ref.clone(),
            location: Some(source.location(ast.offset(id))),
            message,
            fix,
            is_harmless,
        }));
    }

    fn at(&mut self, ast: &Ast, id: ExprId, expr: &Expr) -> Option<Found> {
        decided(ast, expr)
            .or_else(|| size(ast, id))
            .or_else(|| mapped_size(ast, id))
            .or_else(|| {
                let repeat = repeats::comparison(ast, id)?;
                let fix = repeat.fix.map(Advice::from);
                Some((repeat.rule, repeat.message, fix, false))
            })
            .or_else(|| self.impossible(ast, id))
            .or_else(|| text_order(ast, id))
            .or_else(|| negated_exists_one(ast, id))
            .or_else(|| self.shadowed(expr))
            .or_else(|| self.failing(ast, id, expr))
    }

    /// Finds a macro variable that hides an input with the same name.
    fn shadowed(&self, expr: &Expr) -> Option<Found> {
        let Expr::Comprehension(fold) = expr else {
            return None;
        };
        let mut names = std::iter::once(&fold.iter_var).chain(&fold.iter_var2);
        let name = names.find(|name| {
            let input = Input::from_name(name);
            input.is_some_and(|input| input != Input::Params || self.has_params)
        })?;
        Some((
            Rule::ShadowedVariable,
            format!(
                "within this macro, `{name}` is the macro's variable, which hides the predefined variable `{name}`"
            ),
            Some("rename the macro's variable".into()),
            true,
        ))
    }

    /// Finds a comparison of a name in the request with a literal that no matched request has.
    fn impossible(&self, ast: &Ast, id: ExprId) -> Option<Found> {
        let NameTest {
            path,
            names: texts,
            operator,
            ..
        } = NameTest::new(ast, id)?;
        let is_not = operator == Operator::NotEqual;
        let always = if is_not {
            "so this is always true"
        } else {
            "so this is always false"
        };
        for text in &texts {
            let (message, intended) = match path.as_str() {
                "request.operation" if !Operations::NAMES.contains(text) => {
                    let upper = text.to_uppercase();
                    let intended = Operations::NAMES.contains(&upper.as_str()).then_some(upper);
                    let all = Operations::NAMES.join(", ");
                    (format!("`{path}` is one of {all}"), intended)
                }
                // The names of subresources are in lowercase.
                "request.subResource" | "request.requestSubResource"
                    if text.chars().any(char::is_uppercase) =>
                {
                    let lower = text.to_lowercase();
                    let mut served = self.mapper.resources.iter();
                    let is_served = served.any(|served| {
                        let sub = served.gvr.resource.split_once('/');
                        sub.is_some_and(|(_, sub)| sub == lower)
                    });
                    let message = format!("no subresource is named `{text}`");
                    (message, is_served.then_some(lower))
                }
                _ if is_pod_security_level(&path, &self.names.kinds)
                    && !LEVELS.contains(text)
                    && !text.is_empty() =>
                {
                    let intended = nearest_joined(text, LEVELS.iter().copied());
                    let all = LEVELS.join(", ");
                    (
                        format!("the Pod Security Standards have the levels {all}"),
                        intended,
                    )
                }
                "object.kind"
                | "oldObject.kind"
                | "request.kind.kind"
                | "request.requestKind.kind" => {
                    let mut served = self.mapper.resources.iter();
                    let is_served = served.any(|served| served.gvk.kind == **text);
                    let Some(intended) = Names::intended(&self.names.kinds, text, is_served) else {
                        continue;
                    };
                    (format!("the rules match no kind `{text}`"), Some(intended))
                }
                "request.resource.resource" | "request.requestResource.resource" => {
                    let mut served = self.mapper.resources.iter();
                    let is_served = served.any(|served| served.gvr.resource == **text);
                    let intended = Names::intended(&self.names.resources, text, is_served);
                    let Some(intended) = intended.or_else(|| self.resource_of_kind(text)) else {
                        continue;
                    };
                    (
                        format!("the rules match no resource `{text}`"),
                        Some(intended),
                    )
                }
                _ => match self.names.group_or_version(&path, text) {
                    // A policy for several resources may test for each of them in a subexpression. A test is therefore
                    // reported only if the whole expression requires it.
                    Some(UnmatchedName { intended })
                        if is_conjunct(ast, id)
                            && (!is_not
                                || intended.is_some() && !path.ends_with(".apiVersion")) =>
                    {
                        let what = path.rsplit('.').next().unwrap_or_default();
                        (format!("the rules match no {what} `{text}`"), intended)
                    }
                    _ => continue,
                },
            };
            let message = match texts.as_slice() {
                [_] => format!("{message}, {always}"),
                _ => format!("{message}, so `{text}` never matches"),
            };
            let fix = intended.map(|it| Advice::did_you_mean(Replacement::ComparedLiteral(it)));
            return Some((Rule::ImpossibleValue, message, fix, false));
        }
        None
    }

    /// Returns the resource of the kind `text`. `None` if several resources have this kind. Also `None` if `text` has
    /// no uppercase letter, because it may then be the name of a resource.
    fn resource_of_kind(&self, text: &str) -> Option<String> {
        text.contains(|c: char| c.is_ascii_uppercase())
            .then_some(())?;
        let served = self.mapper.resources.iter();
        let names = served
            .filter(|served| served.gvk.kind == text && !served.gvr.resource.contains('/'))
            .map(|served| &*served.gvr.resource);
        let names: BTreeSet<&str> = names.collect();
        let mut names = names.into_iter();
        let only = names.next().filter(|_| names.next().is_none())?;
        Some(only.to_owned())
    }

    /// Finds a division by zero, and a call that always fails because of its literal arguments.
    fn failing(&mut self, ast: &Ast, id: ExprId, expr: &Expr) -> Option<Found> {
        let Expr::Call {
            function,
            target,
            args,
        } = expr
        else {
            return None;
        };
        if let ("_/_" | "_%_", [_, divisor]) = (&**function, &**args)
            && matches!(
                ast.expr(*divisor),
                Expr::Literal(Literal::Int(0) | Literal::Uint(0))
            )
        {
            let message = "division by zero: this fails whenever it is evaluated".to_owned();
            return Some((Rule::FailingCall, message, None, false));
        }
        let is_literal = |id: &ExprId| matches!(ast.expr(*id), Expr::Literal(_));
        let all = target.iter().chain(args);
        if all.clone().next().is_none() || !all.clone().all(is_literal) || self.calls_left == 0 {
            return None;
        }
        self.calls_left -= 1;
        match evaluate_closed(&self.env, ast, id) {
            ConstantResult::Failed(error) => {
                let message = format!("this fails whenever it is evaluated: {error}");
                Some((Rule::FailingCall, message, None, false))
            }
            ConstantResult::Bool(_) | ConstantResult::Other => None,
        }
    }

    /// Finds a validation or match condition whose result is independent of the request.
    fn whole(&mut self, expression: &PolicyExpression, ast: &Ast) -> Option<Found> {
        if !matches!(expression.role, Role::Validation | Role::MatchCondition) {
            return None;
        }
        let is_condition = expression.role == Role::MatchCondition;
        let root = ast.root();
        let value = match ast.expr(root) {
            // A literal is intentional: `true` in a policy for audit annotations, `false` to deny all requests.
            Expr::Literal(Literal::Bool(false)) if is_condition => ConstantResult::Bool(false),
            Expr::Call { .. } if self.calls_left > 0 => {
                self.calls_left -= 1;
                evaluate_closed(&self.env, ast, root)
            }
            _ => return None,
        };
        let (message, consequence) = match (value, is_condition) {
            (ConstantResult::Bool(true), false) => (
                "this is true for every request: the validation denies nothing",
                None,
            ),
            (ConstantResult::Bool(false), true) => (
                "this is false for every request",
                Some("no request passes the match conditions".to_owned()),
            ),
            _ => return None,
        };
        let message = message.to_owned();
        Some((
            Rule::ConstantCondition,
            message,
            consequence.map(Advice::from),
            true,
        ))
    }
}

/// Returns the operand at which a finding about a call is shown: the operand of a negation, or the first operand of a
/// failing function. `None` if the finding is shown at the call itself, as for failing operators.
fn shown_at(rule: Rule, expr: &Expr) -> Option<ExprId> {
    match expr {
        Expr::Call { args, .. } if rule == Rule::NegatedExistsOne => args.first().copied(),
        Expr::Call {
            function,
            target,
            args,
        } if rule == Rule::FailingCall && Operator::from_function(function).is_none() => {
            let is_operator = function.starts_with('_');
            let first = target.iter().chain(args).next().copied();
            first.filter(|_| !is_operator)
        }
        _ => None,
    }
}

/// Returns true if `id` is an operand of the outermost `&&`: the whole expression is true only if `id` is true.
fn is_conjunct(ast: &Ast, id: ExprId) -> bool {
    let mut open = vec![ast.root()];
    while let Some(next) = open.pop() {
        if next == id {
            return true;
        }
        if let Expr::Call { function, args, .. } = ast.expr(next)
            && &**function == "_&&_"
        {
            open.extend(args);
        }
    }
    false
}

/// Finds an operand `true` of `||` or `false` of `&&`, which makes the result constant.
fn decided(ast: &Ast, expr: &Expr) -> Option<Found> {
    let Expr::Call {
        function,
        target: None,
        args,
    } = expr
    else {
        return None;
    };
    let deciding = match &**function {
        "_||_" => true,
        "_&&_" => false,
        _ => return None,
    };
    let is_deciding = |id: &ExprId| *ast.expr(*id) == Expr::Literal(Literal::Bool(deciding));
    args.iter().any(is_deciding).then(|| {
        let operator = if deciding { "||" } else { "&&" };
        let message = format!("`{operator} {deciding}` makes this always {deciding}");
        let fix = "remove the literal, or the operand that it overrides".into();
        (Rule::ConstantCondition, message, Some(fix), false)
    })
}

/// Finds a comparison of a size with a number, if the result is the same for all sizes.
fn size(ast: &Ast, id: ExprId) -> Option<Found> {
    let (operator, other, literal) = path::with_literal(ast, id)?;
    let Literal::Int(bound) = literal else {
        return None;
    };
    path::measured(ast, other)?;
    let value = match (operator, *bound) {
        (Operator::GreaterOrEqual, ..=0) | (Operator::Greater | Operator::NotEqual, ..=-1) => true,
        (Operator::Less, ..=0) | (Operator::LessOrEqual | Operator::Equal, ..=-1) => false,
        _ => return None,
    };
    let message = format!("a size is never below 0, so this is always {value}");
    let fix = value.then(|| "to require at least one, write `> 0`".to_owned());
    Some((
        Rule::ConstantCondition,
        message,
        fix.map(Advice::from),
        false,
    ))
}

/// Finds a comparison of `list.size()` with `list.map(...).size()`. The sizes are equal, because `map()` keeps the
/// number of elements.
fn mapped_size(ast: &Ast, id: ExprId) -> Option<Found> {
    let (operator, left, right) = path::operands(ast, id)?;
    let (left, right) = (path::measured(ast, left)?, path::measured(ast, right)?);
    let mapped_list = |id: ExprId| {
        let Expr::Comprehension(fold) = ast.expr(id) else {
            return None;
        };
        let kind = comprehension_kind(ast, fold);
        matches!(kind, ComprehensionKind::FilterMap(None, _)).then_some(fold.iter_range)
    };
    let is_mapped = |mapped: ExprId, list: ExprId| {
        let range = mapped_list(mapped).and_then(|range| path::path(ast, range));
        range.is_some() && range == path::path(ast, list)
    };
    (is_mapped(left, right) || is_mapped(right, left)).then_some(())?;
    let value = match operator {
        Operator::Equal | Operator::LessOrEqual | Operator::GreaterOrEqual => true,
        Operator::NotEqual | Operator::Less | Operator::Greater => false,
    };
    let message = format!("`map()` keeps the size of the list, so this is always {value}");
    let fix = "to compare the items with each other, write `list.all(a, list.exists_one(b, b.name == a.name))`";
    Some((Rule::ConstantCondition, message, Some(fix.into()), false))
}

/// Finds a negation of `exists_one()`. The negation is also true if several elements pass the test.
fn negated_exists_one(ast: &Ast, id: ExprId) -> Option<Found> {
    let ("!_", [operand]) = ast.global_call(id)? else {
        return None;
    };
    let mut macros = ast.macros().iter().filter(|call| call.at == *operand);
    let call = macros.find(|call| matches!(&*call.function, "exists_one" | "existsOne"))?;
    let message = format!(
        "`!{}()` is also true if several elements match",
        call.function
    );
    let fix = "to require that no element matches, write `exists()`".to_owned();
    Some((Rule::NegatedExistsOne, message, Some(fix.into()), false))
}

/// Finds an ordering comparison, such as `<`, of strings that are quantities, durations or versions.
fn text_order(ast: &Ast, id: ExprId) -> Option<Found> {
    let Some((operator, operand, literal)) = path::with_literal(ast, id) else {
        return resource_order(ast, id);
    };
    let Literal::String(text) = literal else {
        return None;
    };
    if !operator.is_ordering() {
        return None;
    }
    let path = path::path(ast, operand);
    let names_version = path.as_deref().is_some_and(|path| {
        let last = path.rsplit(['.', '[']).next().unwrap_or_default();
        last.to_lowercase().contains("version")
    });
    let operand = path.as_deref().unwrap_or("a");
    let symbol = operator.symbol();
    let (what, comparison) = if is_quantity(text) && !(names_version && is_version(text)) {
        let comparison = format!("quantity({operand}).compareTo(quantity('{text}')) {symbol} 0");
        ("quantities", comparison)
    } else if is_version(text) {
        // `semver(text, true)` also accepts a leading `v` and versions with missing parts, such as `1.29`.
        let is_complete = !text.starts_with('v') && text.matches('.').count() == 2;
        let more = if is_complete { "" } else { ", true" };
        let [one, other] = [operand, &format!("'{text}'")].map(|it| format!("semver({it}{more})"));
        ("versions", format!("{one}.compareTo({other}) {symbol} 0"))
    } else if is_duration(text) {
        let comparison = format!("duration({operand}) {symbol} duration('{text}')");
        ("durations", comparison)
    } else {
        return None;
    };
    Some(order_finding(what, &comparison))
}

/// Finds a comparison with `<`, `<=`, `>` or `>=` whose operands are two resource requests or limits, or one of them
/// and params. Requests and limits are strings.
fn resource_order(ast: &Ast, id: ExprId) -> Option<Found> {
    let (operator, left, right) = path::operands(ast, id)?;
    let is_param = |id: ExprId| is_input(ast, Attribute::new(ast, id).operand, Input::Params);
    let is_quantity = |id: ExprId| is_resource(ast, id) && names_quantity(ast, id);
    let is_of_resources = is_resource(ast, left) && is_resource(ast, right)
        || is_quantity(left) && is_param(right)
        || is_quantity(right) && is_param(left);
    if !operator.is_ordering() || !is_of_resources {
        return None;
    }
    let left = path::path(ast, left).unwrap_or_else(|| "a".to_owned());
    let right = path::path(ast, right).unwrap_or_else(|| "b".to_owned());
    let symbol = operator.symbol();
    let comparison = format!("quantity({left}).compareTo(quantity({right})) {symbol} 0");
    Some(order_finding("quantities", &comparison))
}

/// The levels of the Pod Security Standards. The API server rejects a Namespace with another level.
///
/// Source: `k8s.io/pod-security-admission` `api/helpers.go` (`ParseLevel`), `admission/admission.go`
/// (`ValidateNamespace`).
const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// Returns true for the label of a Namespace that contains a level of the Pod Security Standards. `kinds` are the matched
/// kinds.
fn is_pod_security_level(path: &str, kinds: &BTreeSet<String>) -> bool {
    let is_namespace = kinds.iter().all(|kind| kind == "Namespace");
    let labels: &[&str] = if is_namespace {
        &[
            "object.metadata.labels",
            "oldObject.metadata.labels",
            "namespaceObject.metadata.labels",
        ]
    } else {
        &["namespaceObject.metadata.labels"]
    };
    let mut keys = labels.iter().filter_map(|it| path.strip_prefix(it));
    keys.any(|key| {
        ["enforce", "audit", "warn"]
            .iter()
            .any(|mode| key == format!("[\"pod-security.kubernetes.io/{mode}\"]"))
    })
}

/// Returns true for an item of the map `requests` or `limits`, optionally with a default.
fn is_resource(ast: &Ast, id: ExprId) -> bool {
    let value = match ast.expr(id) {
        Expr::Call {
            function,
            target: Some(target),
            ..
        } if &**function == "orValue" => *target,
        _ => id,
    };
    let attribute = Attribute::new(ast, value);
    let maps = attribute.qualifiers.iter().rev().skip(1);
    let map = maps.map(|qualifier| &qualifier.key).next();
    matches!(map, Some(Key::Field(name)) if matches!(&**name, "requests" | "limits"))
}

/// Returns true for the request or limit of a resource of containers, such as `resources.limits['cpu']`. A custom
/// resource may have a different field `limits` with numbers.
fn names_quantity(ast: &Ast, id: ExprId) -> bool {
    let path = path::path(ast, id);
    let last = path
        .as_deref()
        .and_then(|path| path.rsplit(['.', '"']).find(|it| it.len() > 1));
    last.is_some_and(|name| matches!(name, "cpu" | "memory" | "ephemeral-storage" | "storage"))
}

fn order_finding(what: &str, comparison: &str) -> Found {
    let message =
        format!("the operands are compared as strings, not as {what}: '9' sorts after '10'");
    let fix = format!("compare {what}: `{comparison}`");
    (Rule::StringOrder, message, Some(fix.into()), false)
}

/// Returns true for a duration with one unit or more, such as `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let n_digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(n_digits.unwrap_or(rest.len()));
        let units = ["ns", "us", "ms", "s", "m", "h"];
        let next = units.iter().find_map(|unit| after.strip_prefix(unit));
        let Some(next) = next.filter(|_| number.starts_with(|c: char| c.is_ascii_digit())) else {
            return false;
        };
        rest = next;
    }
    !text.is_empty()
}

/// Returns true for a number, optionally with the suffix of a quantity, such as `500m`.
fn is_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 16] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let n_digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = text.split_at(n_digits.unwrap_or(text.len()));
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 1
        && SUFFIXES.contains(&suffix)
}

/// Returns true for a version that `semver` can read, such as `1.29.0` or `v1.29`.
fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.trim_start_matches('v').split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    (2..=3).contains(&parts.len()) && parts.iter().all(is_number)
}
