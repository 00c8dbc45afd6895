//! Detects changes of a policy that cannot affect a decision, so no test case can detect them.
//!
//! Compares the original and the changed expression after constant folding, which preserves results and errors exactly.
//! A change that is not proved equivalent counts as a mutant.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;

use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::reads::Reads;
use crate::policy::{RequestPolicy, matching};

/// The built-in API groups in which only subresources accept CONNECT.
///
/// Source: `k8s.io/kubernetes` `pkg/registry/core/{pod,service,node}`: the types that implement `rest.Connecter`.
const OWN_GROUPS: [&str; 5] = ["", "apps", "batch", "autoscaling", "policy"];

/// The maximum number of nodes of an expression that is folded.
const MAX_NODES: usize = 10_000;

/// Compares a policy with its changed versions.
#[derive(Debug)]
pub(super) struct EquivalenceChecker<'a> {
    compiled: &'a CompiledPolicy,
    /// The names of the variables that other expressions may read.
    live: BTreeSet<String>,
}

impl<'a> EquivalenceChecker<'a> {
    pub(super) fn new(compiled: &'a CompiledPolicy) -> Self {
        Self {
            live: live_variables(compiled),
            compiled,
        }
    }

    /// Returns true if the change of the expression at `field_ref` provably changes no decision. `changed` is the
    /// changed policy.
    pub(super) fn is_expression_equivalent(
        &self,
        changed: &CompiledPolicy,
        field_ref: &str,
    ) -> bool {
        let find = |expressions: &'a [PolicyExpression]| {
            expressions.iter().find(|it| it.field_ref == field_ref)
        };
        let Some(before) = find(self.compiled.expressions()) else {
            return false;
        };
        if before.role == Role::Variable && is_dead(before, &self.live) {
            return true;
        }
        let mut after = changed.expressions().iter();
        let after = after.find(|it| it.field_ref == field_ref);
        let (Ok(before), Some(Ok(after))) = (before.parsed(), after.map(|it| it.parsed())) else {
            return false;
        };
        fold_constants(before).is_some_and(|before| fold_constants(after) == Some(before))
    }
}

/// Returns the name of a variable, or `None` for any other expression.
fn variable_name(expression: &PolicyExpression) -> Option<&str> {
    let name = expression.name.as_deref()?;
    (expression.role == Role::Variable).then_some(name)
}

fn is_dead(variable: &PolicyExpression, live: &BTreeSet<String>) -> bool {
    variable_name(variable).is_some_and(|name| !live.contains(name))
}

/// Returns the names of the variables that other expressions may read, directly or through other variables.
fn live_variables(compiled: &CompiledPolicy) -> BTreeSet<String> {
    let all_names = || compiled.expressions().iter().filter_map(variable_name);
    let mut live: BTreeSet<&str> = BTreeSet::new();
    let mut reads = Vec::new();
    for expression in compiled.expressions() {
        let names = expression.parsed().ok().map(|ast| {
            let variables = Reads::new(ast).variables();
            let mut names = variables.names;
            if variables.may_read_all {
                names.extend(all_names());
            }
            names
        });
        match (variable_name(expression), names) {
            (Some(name), Some(names)) => reads.push((name, names)),
            // A variable whose expression has no syntax tree counts as live, because its reads are unknown.
            (Some(name), None) => {
                live.insert(name);
            }
            (None, Some(names)) => live.extend(names),
            (None, None) => {}
        }
    }
    loop {
        let n_before = live.len();
        for (name, names) in &reads {
            if live.contains(name) {
                live.extend(names);
            }
        }
        if live.len() == n_before {
            return live.into_iter().map(str::to_owned).collect();
        }
    }
}

/// Folds constants, and returns the resulting tree as a string. Equal trees have equal strings.
///
/// Returns `None` if the expression is too large.
fn fold_constants(ast: &Ast) -> Option<String> {
    if ast.iter().count() > MAX_NODES {
        return None;
    }
    let mut out = String::new();
    write_fold(ast, ast.root(), &mut out);
    Some(out)
}

/// Returns the value of a constant expression.
fn constant(ast: &Ast, id: ExprId) -> Option<Literal> {
    let (function, args) = match ast.expr(id) {
        Expr::Literal(literal) => return Some(literal.clone()),
        Expr::Call {
            function,
            target: None,
            args,
        } => (&**function, &**args),
        _ => return None,
    };
    let boolean = |id: &ExprId| match constant(ast, *id) {
        Some(Literal::Bool(value)) => Some(value),
        _ => None,
    };
    let value = match (function, args) {
        // An operand that is `false` determines the result, even if the other operand fails.
        ("_&&_", [left, right]) => match (boolean(left), boolean(right)) {
            (Some(false), _) | (_, Some(false)) => false,
            (Some(true), Some(true)) => true,
            _ => return None,
        },
        ("_||_", [left, right]) => match (boolean(left), boolean(right)) {
            (Some(true), _) | (_, Some(true)) => true,
            (Some(false), Some(false)) => false,
            _ => return None,
        },
        ("!_", [operand]) => !boolean(operand)?,
        ("_?_:_", [condition, then, otherwise]) => {
            return constant(
                ast,
                if boolean(condition)? {
                    *then
                } else {
                    *otherwise
                },
            );
        }
        (function, [left, right]) => {
            let (left, right) = (constant(ast, *left)?, constant(ast, *right)?);
            let order = match (&left, &right) {
                (Literal::Int(left), Literal::Int(right)) => left.cmp(right),
                (Literal::Uint(left), Literal::Uint(right)) => left.cmp(right),
                (Literal::String(left), Literal::String(right)) => left.cmp(right),
                (Literal::Bool(left), Literal::Bool(right)) => left.cmp(right),
                _ => return None,
            };
            match function {
                "_==_" => order.is_eq(),
                "_!=_" => order.is_ne(),
                "_<_" => order.is_lt(),
                "_<=_" => order.is_le(),
                "_>_" => order.is_gt(),
                "_>=_" => order.is_ge(),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Literal::Bool(value))
}

fn write_fold(ast: &Ast, id: ExprId, out: &mut String) {
    if let Some(literal) = constant(ast, id) {
        let _ = write!(out, "{literal:?}");
        return;
    }
    let mut write_node = |name: &str, parts: &[ExprId]| {
        let _ = write!(out, "({name:?}");
        for part in parts {
            out.push(' ');
            write_fold(ast, *part, out);
        }
        out.push(')');
    };
    match ast.expr(id) {
        Expr::Unspecified => write_node("unspecified", &[]),
        Expr::Literal(literal) => {
            let _ = write!(out, "{literal:?}");
        }
        Expr::Ident(name) => write_node(&format!("name {name}"), &[]),
        Expr::Select {
            operand,
            field,
            test_only,
        } => write_node(&format!("select {field} {test_only}"), &[*operand]),
        Expr::Call {
            function,
            target: None,
            args,
        } if &**function == "_?_:_" => {
            // A constant condition selects one branch.
            match args.first().and_then(|condition| constant(ast, *condition)) {
                Some(Literal::Bool(value)) => {
                    if let Some(branch) = args.get(if value { 1 } else { 2 }) {
                        write_fold(ast, *branch, out);
                    }
                }
                _ => write_node(function, args),
            }
        }
        Expr::Call {
            function,
            target,
            args,
        } => {
            let parts: Vec<ExprId> = target.iter().chain(args).copied().collect();
            write_node(&format!("call {function} {}", target.is_some()), &parts);
        }
        Expr::List {
            elements,
            optional_indices,
        } => write_node(&format!("list {optional_indices:?}"), elements),
        Expr::Map(entries) => {
            let parts: Vec<ExprId> = entries
                .iter()
                .flat_map(|entry| [entry.key, entry.value])
                .collect();
            let optional: Vec<bool> = entries.iter().map(|entry| entry.optional).collect();
            write_node(&format!("map {optional:?}"), &parts);
        }
        Expr::Struct { type_name, fields } => {
            let parts: Vec<ExprId> = fields.iter().map(|field| field.value).collect();
            let names: Vec<_> = fields.iter().map(|it| (&it.field, it.optional)).collect();
            write_node(&format!("struct {type_name} {names:?}"), &parts);
        }
        Expr::Comprehension(fold) => {
            let names = (&fold.iter_var, &fold.iter_var2, &fold.accu_var);
            write_node(
                &format!("fold {names:?}"),
                &[
                    fold.iter_range,
                    fold.accu_init,
                    fold.loop_condition,
                    fold.loop_step,
                    fold.result,
                ],
            );
        }
    }
}

/// Returns true if removing the operation at `m` of the rule at `n` provably changes no decision.
pub(super) fn is_operation_redundant(policy: &RequestPolicy, n: usize, m: usize) -> bool {
    let rules = matching::rules(policy);
    let Some(rule) = rules.get(n) else {
        return false;
    };
    let operations = rule.operations.as_deref().unwrap_or_default();
    let Some(operation) = operations.get(m) else {
        return false;
    };
    // The API server rejects a rule without operations.
    if operations.len() == 1 {
        return false;
    }
    let covers = |rule: &NamedRuleWithOperations, left_out: Option<usize>| {
        let operations = rule.operations.as_deref().unwrap_or_default().iter();
        let mut others = operations.enumerate().filter(|(k, _)| Some(*k) != left_out);
        others.any(|(_, other)| other == operation || other == "*")
    };
    if covers(rule, Some(m)) {
        return true;
    }
    let is_same = |other: &NamedRuleWithOperations| {
        other.api_groups == rule.api_groups
            && other.api_versions == rule.api_versions
            && other.resources == rule.resources
            && other.resource_names == rule.resource_names
            && other.scope == rule.scope
    };
    let mut others = rules.iter().enumerate().filter(|(k, _)| *k != n);
    if others.any(|(_, other)| is_same(other) && covers(other, None)) {
        return true;
    }
    let groups = rule.api_groups.as_deref().unwrap_or_default();
    let resources = rule.resources.as_deref().unwrap_or_default();
    operation == "CONNECT"
        && groups
            .iter()
            .all(|group| OWN_GROUPS.contains(&group.as_str()))
        && resources.iter().all(|resource| !resource.contains('/'))
}
