//! Constant folding: evaluates calls with constant arguments.
//!
//! With constant folding, `object.kind.matches('^(Pod|Job)$')` is as effective a guard as `object.kind in ['Pod',
//! 'Job']`.

use std::sync::Arc;

use cel::ast::{Ast, AstBuilder, Expr, ExprId, Literal};
use cel::checker::check;
use cel::env::Env;
use cel::eval::{Bindings, Limits, Program};
use cel::value::{ErrorKind, EvalError, Value};
use kubernetes::library::runtime::PolicyRuntime;

use super::value::Const;

/// The number of steps charged for type-checking, planning and evaluating one call.
pub(super) const STEPS: u32 = 100;

/// Maximum total size, in bytes, of the literals of a call. A string that the call returns has the same limit.
const MAX_BYTES: usize = 2048;

/// The number of bytes charged for each literal. The length of a string is added.
const BYTES_OF_LITERAL: usize = 4;

/// Maximum nesting of calls.
const MAX_DEPTH: u8 = 8;

/// Maximum CEL cost of evaluating one call.
const MAX_COST: u64 = 10_000;

/// Maximum number of elements in a resulting list.
const MAX_ELEMENTS: usize = 64;

/// Binary operators that are folded by evaluation. Other operators have their own transfer functions.
const OPERATORS: [&str; 9] = [
    "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_",
];

/// Calls `function` with the constants `args`. If `is_member`, the first argument is the receiver. `None` if the result
/// is unknown.
pub(super) fn call(env: &Env, function: &str, is_member: bool, args: &[&Const]) -> Option<Const> {
    let is_operator = OPERATORS.contains(&function) && args.len() == 2;
    if !is_operator && !is_name(function) {
        return None;
    }
    let mut tree = Tree::default();
    let mut args = args.iter().map(|value| tree.add_const(value));
    let target = if is_member && !is_operator {
        Some(args.next()??)
    } else {
        None
    };
    let args = args.collect::<Option<_>>()?;
    let root = tree.add_call(function.into(), target, args);
    evaluate(env, tree.nodes.build(root))
}

/// Copies the subtree `id` to a new AST. `None` if the subtree contains anything but calls and literals.
pub(super) fn closed(ast: &Ast, id: ExprId) -> Option<Ast> {
    let mut tree = Tree::default();
    let root = tree.copy_closed(ast, id, MAX_DEPTH)?;
    Some(tree.nodes.build(root))
}

/// Evaluates `ast`, whose nodes have no locations. `None` if the evaluation fails or the result is too large.
pub(super) fn evaluate(env: &Env, ast: Ast) -> Option<Const> {
    read(&run(env, ast)?.ok()?, 2)
}

/// Evaluates `ast`. `None` if it does not compile.
fn run(env: &Env, ast: Ast) -> Option<Result<Value, EvalError>> {
    let (checked, diagnostics) = check(&Arc::new(ast), "", env);
    if !diagnostics.is_empty() {
        return None;
    }
    let program = Program::plan(&checked, env, &PolicyRuntime::for_trials()).ok()?;
    let evaluation = program.eval(&Bindings::default(), Limits::from_cost(MAX_COST));
    Some(evaluation.result)
}

/// The result of an expression that consists only of calls and literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConstantResult {
    Bool(bool),
    /// The expression failed with this error.
    Failed(String),
    /// Any other result, or no result.
    Other,
}

/// Evaluates the subtree `id` if it consists only of calls and literals. Otherwise returns `Other`.
pub(crate) fn evaluate_closed(env: &Env, ast: &Ast, id: ExprId) -> ConstantResult {
    let Some(tree) = closed(ast, id) else {
        return ConstantResult::Other;
    };
    let Some(result) = run(env, tree) else {
        return ConstantResult::Other;
    };
    match result {
        Ok(Value::Bool(value)) => ConstantResult::Bool(value),
        Err(error) if error.kind() == ErrorKind::Value => {
            ConstantResult::Failed(error.message().to_owned())
        }
        Ok(_) | Err(_) => ConstantResult::Other,
    }
}

/// Returns true if `function` is an identifier, false if it is an operator.
fn is_name(function: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    !function.starts_with('_') && function.chars().all(fits)
}

/// An AST of calls and literals under construction.
#[derive(Default)]
struct Tree {
    nodes: AstBuilder,
    n_bytes: usize,
}

impl Tree {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.nodes.add(0, expr)
    }

    fn add_call(
        &mut self,
        function: Arc<str>,
        target: Option<ExprId>,
        args: Box<[ExprId]>,
    ) -> ExprId {
        self.add(Expr::Call {
            function,
            target,
            args,
        })
    }

    fn add_literal(&mut self, literal: Literal) -> Option<ExprId> {
        self.n_bytes += BYTES_OF_LITERAL;
        if let Literal::String(text) = &literal {
            self.n_bytes += text.len();
        }
        (self.n_bytes <= MAX_BYTES).then(|| self.add(Expr::Literal(literal)))
    }

    fn add_const(&mut self, value: &Const) -> Option<ExprId> {
        match value {
            Const::Null => self.add_literal(Literal::Null),
            Const::Bool(value) => self.add_literal(Literal::Bool(*value)),
            Const::Int(value) => self.add_literal(Literal::Int(*value)),
            Const::Text(value) => self.add_literal(Literal::String(Arc::clone(value))),
            Const::List(values) => {
                let elements = values.iter().map(|value| self.add_const(value));
                let elements = elements.collect::<Option<_>>()?;
                Some(self.add(Expr::List {
                    elements,
                    optional_indices: Box::default(),
                }))
            }
            Const::TypeName(_) => None,
        }
    }

    fn copy_closed(&mut self, ast: &Ast, id: ExprId, depth: u8) -> Option<ExprId> {
        let depth = depth.checked_sub(1)?;
        match ast.expr(id) {
            Expr::Literal(Literal::Uint(_) | Literal::Double(_) | Literal::Bytes(_)) => None,
            Expr::Literal(literal) => self.add_literal(literal.clone()),
            Expr::Call {
                function,
                target,
                args,
            } => {
                let is_operator =
                    OPERATORS.contains(&&**function) || matches!(&**function, "_==_" | "_!=_");
                if !(is_operator && args.len() == 2 || is_name(function)) {
                    return None;
                }
                let target = match target {
                    Some(target) => Some(self.copy_closed(ast, *target, depth)?),
                    None => None,
                };
                let args = args.iter().map(|arg| self.copy_closed(ast, *arg, depth));
                let args = args.collect::<Option<_>>()?;
                Some(self.add_call(Arc::clone(function), target, args))
            }
            _ => None,
        }
    }
}

/// Converts a result to a constant. `None` if the result is too large, or if [`Const`] does not represent
/// its type.
fn read(value: &Value, depth: u8) -> Option<Const> {
    Some(match value {
        Value::Null => Const::Null,
        Value::Bool(value) => Const::Bool(*value),
        Value::Int(value) => Const::Int(*value),
        Value::String(text) if text.len() <= MAX_BYTES => Const::Text(Arc::clone(text)),
        Value::List(list) if list.len() <= MAX_ELEMENTS => {
            let depth = depth.checked_sub(1)?;
            let values = list.iter().map(|value| read(&value, depth));
            Const::List(values.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubernetes::version::KubernetesVersion;

    use crate::environment::{Declared, policy_env};
    use cel::types::Type;

    fn fold(function: &str, is_member: bool, args: &[Const]) -> Option<Const> {
        let env = policy_env(&Declared {
            release: KubernetesVersion::DEFAULT.release(),
            object: &Type::Dyn,
            params: None,
            authorizer: true,
            request_resource: true,
            mutation: false,
        });
        call(&env, function, is_member, &args.iter().collect::<Vec<_>>())
    }

    fn text(text: &str) -> Const {
        Const::Text(text.into())
    }

    #[test]
    fn call_with_constant_arguments_is_evaluated() {
        let pod = || text("Pod");
        for (function, is_member, args, wanted) in [
            (
                "matches",
                true,
                vec![pod(), text("^P.d$")],
                Const::Bool(true),
            ),
            ("matches", false, vec![pod(), text("x")], Const::Bool(false)),
            ("size", true, vec![text("é\"\n")], Const::Int(3)),
            ("upperAscii", true, vec![pod()], text("POD")),
            (
                "_<_",
                false,
                vec![Const::Int(-1), Const::Int(0)],
                Const::Bool(true),
            ),
            ("_+_", false, vec![pod(), text("s")], text("Pods")),
            (
                "split",
                true,
                vec![text("apps/v1"), text("/")],
                Const::List([text("apps"), text("v1")].into()),
            ),
            (
                "join",
                true,
                vec![Const::List([text("a"), text("b")].into()), text("-")],
                text("a-b"),
            ),
        ] {
            assert_eq!(fold(function, is_member, &args), Some(wanted), "{function}");
        }
    }

    #[test]
    fn call_that_fails_or_is_too_large_is_not_constant() {
        let long = text(&"a".repeat(3000));
        for (function, is_member, args) in [
            ("_/_", false, vec![Const::Int(1), Const::Int(0)]),
            ("_+_", false, vec![Const::Int(1), text("a")]),
            ("matches", true, vec![text("a"), text("(")]),
            ("size", true, vec![long]),
            ("@in", false, vec![Const::Int(1), Const::List([].into())]),
            ("type", false, vec![Const::TypeName("int")]),
        ] {
            assert_eq!(fold(function, is_member, &args), None, "{function}");
        }
    }
}
