//! Tests of evaluation order, errors and costs.
//!
//! The expected values and costs are upstream's. A presence test costs one unit more than in the API server, as in
//! cel-go without the API server's options. The command `parity eval` compares all functions with upstream.

mod libraries;
mod messages;
mod operators;
mod optionals;
mod times;

use std::sync::Arc;

use super::{Bindings, Evaluation, Limits, PlainRuntime, PlanError, Program};
use crate::checker;
use crate::decls::{Overload, OverloadRow, Variable};
use crate::env::{Env, Library};
use crate::ext;
use crate::stdlib;
use crate::syntax;
use crate::types::{OPTIONAL_TYPE, Type};

fn env() -> Env {
    let mut library: Library = stdlib::library();
    library.add_overloads(&ext::optional::VERSION_0);
    library.add_overloads(&ext::optional::VERSION_2);
    library.add_overloads(&ext::two_var::ROWS);
    Env::new(library.into()).extend([
        Variable::new("o", Type::Dyn),
        Variable::new("unbound", Type::Dyn),
    ])
}

static TEXTS: [OverloadRow; 4] = [
    ext::strings::FORMAT,
    ext::strings::JOIN,
    ext::strings::JOIN_WITH,
    ext::strings::QUOTE,
];

pub(crate) fn env_of_extensions() -> Env {
    let mut library = Library::clone(env().library());
    library.add_type(OPTIONAL_TYPE, Type::opaque(OPTIONAL_TYPE, Vec::new()));
    for rows in [
        &ext::lists::VERSION_0[..],
        &ext::lists::VERSION_1,
        &ext::lists::VERSION_2,
        &ext::sets::ROWS,
        &TEXTS,
    ] {
        for row in rows {
            library.add_overload(Overload::new(row));
        }
    }
    Env::new(library.into()).extend([Variable::new("o", Type::Dyn)])
}

/// Returns the value or the error, and the cost.
fn outcome(text: &str) -> (String, u64) {
    let program = match plan_in(text, &env_of_extensions()) {
        Ok(program) => program,
        Err(error) => return (format!("not planned: {}", error.message()), 0),
    };
    let object = r#"{"a":{"b":1},"l":[1,2,3],"s":"text","e":[],"n":null}"#;
    let mut bindings = Bindings::default();
    bindings.bind("o", serde_json::from_str(object).unwrap());
    let evaluation = program.eval(&bindings, Limits::from_cost(u64::MAX));
    let text = match &evaluation.result {
        Ok(value) => value.to_go_string(),
        Err(error) => format!("error: {error}"),
    };
    (text, evaluation.cost)
}

/// Asserts the results and costs of expressions. The environment has all extensions.
#[track_caller]
fn check_all(rows: &[(&str, &str, u64)]) {
    for (text, expected, cost) in rows {
        let (actual, actual_cost) = outcome(text);
        assert_eq!((actual.as_str(), actual_cost), (*expected, *cost), "{text}");
    }
}

fn plan(text: &str) -> Result<Program, PlanError> {
    plan_in(text, &env())
}

fn plan_in(text: &str, env: &Env) -> Result<Program, PlanError> {
    let (ast, diagnostics) = syntax::parse(text);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(text));
    let (checked, diagnostics) = checker::check(&Arc::new(ast.unwrap()), text, env);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(text));
    Program::plan(&checked, env, &PlainRuntime)
}

fn eval_within(text: &str, limit: u64) -> Evaluation {
    let object = r#"{"a":{"b":1},"l":[1,2,3],"s":"text","e":[]}"#;
    let mut bindings = Bindings::default();
    bindings.bind("o", serde_json::from_str(object).unwrap());
    plan(text)
        .unwrap()
        .eval(&bindings, Limits::from_cost(limit))
}

fn eval(text: &str) -> Evaluation {
    eval_within(text, u64::MAX)
}

#[track_caller]
fn check(text: &str, expected: &str, cost: u64) {
    let evaluation = eval(text);
    let actual = match &evaluation.result {
        Ok(value) => value.to_go_string(),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(
        (actual.as_str(), evaluation.cost),
        (expected, cost),
        "{text}"
    );
}

#[track_caller]
fn check_plan_error(text: &str, message: &str) {
    assert_eq!(plan(text).unwrap_err().message(), message, "{text}");
}

#[test]
fn logical_operators_absorb_errors_of_one_operand() {
    check("o.x == 1 || o.a.b == 1", "true", 7);
    check("o.a.b == 1 || o.x == 1", "true", 4);
    check("o.x == 1 && o.a.b == 2", "false", 7);
    check("o.x == 1 || o.a.b == 2", "error: no such key: x", 7);
    check("o.a.b || true", "true", 3);
    check("o.a.b || false", "error: no such overload", 3);
    check("unbound || true", "true", 1);
    check("unbound && true", "error: no such attribute(s): unbound", 1);
}

#[test]
fn conditional_evaluates_only_one_branch() {
    check("o.a.b == 1 ? 'yes' : o.x", "yes", 4);
    // An unqualified name in a branch costs nothing, so the whole conditional costs nothing.
    check(
        "true ? o : o.x",
        "{a: {b: 1}, e: [], l: [1, 2, 3], s: text}",
        0,
    );
    check("true ? o.a.b : o", "1", 2);
    check("o.a.b ? 1 : 2", "error: no such overload", 3);
}

#[test]
fn presence_test_of_absent_field_is_false() {
    check("has(o.a.b)", "true", 3);
    check("has(o.a.x)", "false", 3);
    check("has(o.x.b)", "error: no such key: x", 2);
    // A presence test on a value that has no fields is false rather than an error.
    check("has(o.s.x)", "false", 3);
}

#[test]
fn index_out_of_range_is_error() {
    check("o.l[1]", "2", 3);
    check("o.l[1.0]", "2", 3);
    check("o.l[o.a.b]", "2", 5);
    check("o.l[3]", "error: index out of bounds: 3", 3);
    check(
        "o.l['a']",
        "error: unsupported index type 'string' in list",
        3,
    );
    check("o.l[1.5]", "error: unsupported index value 1.5 in list", 3);
    check("o[o.l]", "error: invalid qualifier type: []interface {}", 3);
    check_plan_error("o[dyn(null)]", "invalid qualifier type: types.Null");
}

#[test]
fn optional_selection_of_absent_field_is_none() {
    check("o.?a.?b", "optional(1)", 3);
    check("o.?x.b", "optional.none()", 1);
    check("o.?x.orValue('d')", "d", 1);
    check("o.l[?5]", "optional.none()", 2);
    check("[?o.?x, ?o.?s]", "[text]", 13);
    check("{?'k': o.?x}", "{}", 31);
}

#[test]
fn constants_are_folded() {
    check("[1, 2, 3]", "[1, 2, 3]", 0);
    check("o.a.b in [1, 2]", "true", 3);
    check("o.a.b in [1.0, 2.5]", "true", 3);
    check("o.a.b in []", "false", 0);
    check("int('12')", "12", 0);
    check_plan_error("int('x')", "type conversion error from 'string' to 'int'");
    check_plan_error(
        "true || int('x') == 1",
        "type conversion error from 'string' to 'int'",
    );
}

#[test]
fn only_binary_calls_evaluate_arguments_after_an_error() {
    // Both arguments of a binary call are evaluated. Three or more arguments are evaluated up to the first error.
    check("o.x + o.a.b", "error: no such key: x", 6);
    check("[o.x, o.a.b]", "error: no such key: x", 12);
}

#[test]
fn comprehensions_have_values_and_costs_of_upstream() {
    check("o.l.map(x, x * 2)", "[2, 4, 6]", 45);
    check("o.l.filter(x, x > 1)", "[2, 3]", 35);
    check("o.l.exists(x, x == 2)", "true", 18);
    check("o.l.all(x, x / 0 == 1 || x > 0)", "true", 27);
    check("o.l.exists_one(x, x == 2)", "true", 12);
    check("o.e.map(x, x)", "[]", 3);
    check(
        "o.a.b.map(x, x)",
        "error: got 'types.Int', expected iterable type",
        3,
    );
    check("o.l.transformMap(i, x, i + x)", "{0: 1, 1: 3, 2: 5}", 21);
    check("o.a.map(k, k)", "[b]", 16);
}

#[test]
fn accumulator_is_evaluated_on_first_read() {
    // `x` is unused, so its value is not computed.
    check("optional.of(1).optMap(x, 5)", "optional(5)", 3);
    check("optional.none().optMap(x, o.x)", "optional.none()", 3);
    // As in upstream, an empty list that is bound to a name is mutable, so `+` appends to it.
    check(
        "optional.of([]).optMap(x, x + [1] + x)",
        "optional([1, 1])",
        9,
    );
}

#[test]
fn cost_limit_is_checked_after_each_step() {
    let evaluation = eval_within("o.l.map(x, [x, x, x]).size() > 0", 20);
    assert_eq!(
        evaluation.result.unwrap_err().message(),
        "operation cancelled: actual cost limit exceeded"
    );
    assert!(evaluation.cost > 20 && evaluation.cost < 40);
    // `||` absorbs other errors, but not an exceeded limit.
    assert!(
        eval_within("o.l.map(x, x).size() > 0 || true", 5)
            .result
            .is_err()
    );
}

#[test]
fn keys_of_map_literals_are_compared_as_in_upstream() {
    check("{'a': 1, 'a': 2}", "{a: 2}", 0);
    check("{dyn(1): 'a', dyn(2u): 'b'}[dyn(2)]", "b", 2);
    check("{dyn(1): 'a', dyn(1.0): 'b', dyn(1u): 'c'}.size()", "3", 1);
    check_plan_error(
        "{b'a': 1}",
        "internal error: runtime error: hash of unhashable type types.Bytes",
    );
}

#[test]
fn variable_whose_value_is_a_type_resolves_as_type_name() {
    check_plan_error("[int].map(t, t)", "reference to undefined type: t");
    check("type(o.l) == list", "true", 4);
    check("google.protobuf.Int32Value{value: 4}", "4", 40);
}
