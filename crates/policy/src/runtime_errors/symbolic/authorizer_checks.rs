//! Authorization checks as inputs: the decision of `authorizer.group(...).resource(...).check(...)` is a value at a path
//! of [`Root::Authorizer`].
//!
//! The first segment of the path contains the attributes of the check, and the second one is `allowed` or `denied`. An
//! attribute that is not constant, such as `object.metadata.namespace`, is left out. The decision then applies to all
//! values of the attribute.

use serde_json::{Map, Value as Json, json};

use super::{ExprRef, Scope, SymbolicEvaluator, SymbolicValue, input_value};
use crate::admission::{AuthorizerAnswer, AuthorizerDecision, AuthorizerRule};
use crate::reads::Input;
use cel::ast::{Ast, Expr, ExprId};
use kubernetes::validity::{FieldPath, InputConstraints, Root};

/// Maximum number of calls in the receiver of a check.
const MAX_CALLS: usize = 12;

/// The attributes of a check. Functions with these names set them, except for the verb, which is the argument of
/// `check`.
const ATTRIBUTES: [&str; 7] = [
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "path",
    "verb",
];

impl SymbolicEvaluator<'_> {
    /// Returns true if the decisions of authorization checks are inputs.
    fn has_authorizer(&self) -> bool {
        self.roots.iter().any(|(root, _)| *root == Root::Authorizer)
    }

    /// Returns the symbolic value of a call of `check`, `allowed` or `denied`. `None` for other calls.
    pub(super) fn authorizer_call(
        &self,
        node: ExprRef,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
        operand_values: &dyn Fn(ExprId) -> Vec<SymbolicValue>,
    ) -> Option<SymbolicValue> {
        let target = target.filter(|_| self.has_authorizer())?;
        match (function, args) {
            ("check", [verb]) => {
                let verb = operand_values(*verb);
                let path = self.authorizer_check(node.with_id(target), &verb)?;
                Some(input_value(path))
            }
            ("allowed" | "denied", []) => match &*operand_values(target) {
                [SymbolicValue::Input { path, .. }] if path.root == Root::Authorizer => {
                    Some(SymbolicValue::Input {
                        path: path.field(function)?,
                        is_optional: false,
                        default: Some(json!(false)),
                    })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the path of the check with `target` as its receiver and `verb` as its argument. `None` if the receiver
    /// cannot be interpreted.
    fn authorizer_check(&self, target: ExprRef, verb: &[SymbolicValue]) -> Option<FieldPath> {
        let mut attributes = Map::new();
        if let [SymbolicValue::Constant(Json::String(verb))] = verb {
            attributes.insert("verb".to_owned(), json!(verb));
        }
        self.receiver_attributes(target, &mut attributes)?;
        FieldPath::new(Root::Authorizer).field(&Json::Object(attributes).to_string())
    }

    /// Adds the attributes that the receiver of a check sets. `None` if it cannot be interpreted.
    fn receiver_attributes(
        &self,
        mut node: ExprRef,
        attributes: &mut Map<String, Json>,
    ) -> Option<()> {
        for _ in 0..MAX_CALLS {
            if let Some(index) = self.read_variable(node) {
                let id = self.ast(index).map(Ast::root)?;
                node = ExprRef { index, id };
                continue;
            }
            match self.expr(node) {
                Expr::Ident(name) if Input::from_name(name) == Some(Input::Authorizer) => {
                    return Some(());
                }
                Expr::Select {
                    operand,
                    field,
                    test_only: false,
                } if &**field == "requestResource" => {
                    for name in ["group", "resource"] {
                        let resource = FieldPath::new(Root::Request).field("resource");
                        let path = resource.and_then(|it| it.field(name));
                        let mut constants = self.constants.iter();
                        let constant = constants.find(|(known, _)| Some(known) == path.as_ref());
                        if let Some((_, value)) = constant {
                            attributes.insert(name.to_owned(), value.clone());
                        }
                    }
                    node = node.with_id(*operand);
                }
                Expr::Call {
                    function,
                    target: Some(target),
                    args,
                } => {
                    if let [arg] = &**args
                        && ATTRIBUTES.contains(&&**function)
                        && let [SymbolicValue::Constant(value @ Json::String(_))] =
                            &*self.evaluate(node.with_id(*arg), &Scope::default())
                    {
                        let value = value.clone();
                        attributes.entry(&**function).or_insert(value);
                    }
                    node = node.with_id(*target);
                }
                _ => return None,
            }
        }
        None
    }
}

/// Returns rules with the decisions that `constraints` require. The rules with the most attributes come first.
pub(crate) fn authorizer_rules(constraints: &InputConstraints) -> Vec<AuthorizerRule> {
    let mut rules = Vec::new();
    for (path, of_value) in constraints.iter() {
        let [attributes, decision] = &*path.names() else {
            continue;
        };
        if path.root != Root::Authorizer {
            continue;
        }
        let is_true = of_value.equals == Some(json!(true));
        let decision = match *decision {
            "allowed" if is_true => AuthorizerDecision::Allow,
            "denied" if is_true => AuthorizerDecision::Deny,
            _ => AuthorizerDecision::NoOpinion,
        };
        rules.extend(rule(attributes, decision));
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(n_attributes(rule)));
    // For a check without a rule, `allowed()` is false. A rule without a decision is therefore kept only if a less
    // specific rule has one.
    let decisive: Vec<AuthorizerRule> =
        rules.iter().filter(|it| is_decisive(it)).cloned().collect();
    rules.retain(|rule| is_decisive(rule) || decisive.iter().any(|it| covers(it, rule)));
    rules
}

fn rule(attributes: &str, decision: AuthorizerDecision) -> Option<AuthorizerRule> {
    let attributes: Json = serde_json::from_str(attributes).ok()?;
    let text = |name: &str| Some(attributes.get(name)?.as_str()?.to_owned());
    Some(AuthorizerRule {
        user: None,
        verb: text("verb"),
        group: text("group"),
        version: None,
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: text("path"),
        answer: AuthorizerAnswer {
            decision,
            ..AuthorizerAnswer::default()
        },
    })
}

fn is_decisive(rule: &AuthorizerRule) -> bool {
    rule.answer.decision != AuthorizerDecision::NoOpinion
}

fn values(rule: &AuthorizerRule) -> [&Option<String>; 7] {
    [
        &rule.verb,
        &rule.group,
        &rule.resource,
        &rule.subresource,
        &rule.namespace,
        &rule.name,
        &rule.path,
    ]
}

fn n_attributes(rule: &AuthorizerRule) -> usize {
    values(rule).into_iter().flatten().count()
}

/// Returns true if `rule` matches all checks that `other` matches.
fn covers(rule: &AuthorizerRule, other: &AuthorizerRule) -> bool {
    let mut pairs = values(rule).into_iter().zip(values(other));
    pairs.all(|(value, other)| value.is_none() || value == other)
}
