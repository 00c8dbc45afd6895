//! Tests expressions and values that could exhaust time, memory or the stack. Each evaluation must end quickly and stay
//! within its limits.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::eval::{Bindings, Evaluation, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::{EvalBudget, Value};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::limits::PER_CALL_LIMIT;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::version::KubernetesVersion;

const TOO_MANY_VALUES: &str = "the evaluation compares more than ";

const LIMIT_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

/// The time limit of each test. It is generous, because debug builds are slow on a busy machine. Without the tested
/// limits, an evaluation would take minutes or all memory.
const SOON: Duration = Duration::from_secs(60);

fn program(text: &str, variables: &[&str]) -> Program {
    let variables = variables.iter().map(|name| Variable::new(*name, Type::Dyn));
    let env = base_env(KubernetesVersion::DEFAULT).extend(variables);
    let (ast, found) = syntax::parse(text);
    assert!(found.is_empty(), "{}", found.render("..."));
    let (checked, found) = checker::check(&Arc::new(ast.unwrap()), text, &env);
    assert!(found.is_empty(), "{}", found.render("..."));
    Program::plan(&checked, &env, &KubernetesRuntime).unwrap()
}

fn eval(text: &str, bindings: &[(&str, Value)]) -> Evaluation {
    eval_within(text, bindings, Limits::from_cost(PER_CALL_LIMIT))
}

/// Evaluates an expression on a thread whose stack has the size of a worker thread's stack.
fn eval_within(text: &str, bindings: &[(&str, Value)], limits: Limits<'_>) -> Evaluation {
    let names: Vec<&str> = bindings.iter().map(|(name, _)| *name).collect();
    let bound: Bindings = bindings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let started = Instant::now();
    let evaluation = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(2 * 1024 * 1024)
            .spawn_scoped(scope, || program(text, &names).eval(&bound, limits))
            .unwrap()
            .join()
            .unwrap()
    });
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    evaluation
}

#[track_caller]
fn check_limit(text: &str, bindings: &[(&str, Value)]) {
    let evaluation = eval(text, bindings);
    let error = evaluation.result.unwrap_err();
    assert_eq!(error.message(), LIMIT_EXCEEDED, "cost {}", evaluation.cost);
}

#[track_caller]
fn check_bool(text: &str, bindings: &[(&str, Value)], expected: bool) {
    let evaluation = eval(text, bindings);
    let value = evaluation.result.unwrap();
    assert_eq!(value.as_bool(), Some(expected), "{value:?}");
}

fn numbers(n: i64) -> Value {
    Value::list((0..n).map(Value::Int).collect::<Vec<_>>())
}

#[test]
fn comprehensions_exceed_cost_limit() {
    let l = numbers(2_000);
    check_limit(
        "l.all(a, l.all(b, l.all(c, a + b + c >= 0)))",
        &[("l", l.clone())],
    );
    check_limit(
        "l.map(a, l.map(b, l.map(c, [a, b, c]))).size() > 0",
        &[("l", l)],
    );
}

#[test]
fn million_iterations_take_linear_time() {
    // If a term was not evaluated, the evaluator looks for its cost in earlier iterations.
    check_limit(
        "l.all(x, true || x == 1 || x == 2) && l.all(x, x < 0 || x >= 0)",
        &[("l", numbers(400_000))],
    );
}

#[test]
fn longest_operator_and_selection_chains_are_evaluated() {
    let mut sum = "1".to_owned();
    let mut ands = "x == 1".to_owned();
    let mut fields = "o".to_owned();
    for _ in 0..240 {
        sum.push_str(" + 1");
        fields.push_str(".a");
    }
    for n in 0..2_000 {
        write!(ands, " && x != {n}u + 2u").unwrap();
    }
    check_bool(&format!("{sum} == 241"), &[], true);
    check_bool(&ands, &[("x", Value::Int(1))], true);
    let mut object = "1".to_owned();
    for _ in 0..120 {
        object = format!("{{\"a\":{object}}}");
    }
    let object: Value = serde_json::from_str(&object).unwrap();
    let error = eval(&fields, &[("o", object)]).result.unwrap_err();
    assert_eq!(error.message(), "no such key: a");
}

#[test]
fn deepest_nested_brackets_are_evaluated() {
    let n = 200;
    let text = format!("dyn({}1{}) == [1]", "[".repeat(n), "]".repeat(n));
    check_bool(&text, &[], false);
    let nested = format!("{}x{}", "dyn(".repeat(n), ")".repeat(n));
    check_bool(&format!("{nested} == 1"), &[("x", Value::Int(1))], true);
}

/// Returns `n` nested comprehensions over `list`.
fn nested(n: u32, list: &str) -> String {
    let mut text = String::new();
    for level in 0..n {
        write!(text, "{list}.all(x{level}, ").unwrap();
    }
    text.push_str("x0 == 1");
    text.push_str(&")".repeat(n as usize));
    text
}

#[test]
fn deepest_nested_comprehensions_are_evaluated() {
    let is_too_deep = |n: &u32| syntax::parse(&nested(*n, "[1]")).0.is_none();
    let n = (1..250).find(is_too_deep).unwrap() - 1;
    assert!(n >= 30, "{n}");
    check_bool(&nested(n, "[1]"), &[], true);
    // The evaluation would take 2^n iterations.
    check_limit(&nested(n, "[1, 1]"), &[]);
}

#[test]
fn chains_of_five_thousand_operators_do_not_overflow_stack() {
    for chain in [
        format!("1{}", " + 1".repeat(5_000)),
        format!("o{}", ".b".repeat(5_000)),
    ] {
        let (ast, found) = syntax::parse(&chain);
        assert!(ast.is_none());
        assert_eq!(
            found.render(&chain),
            "ERROR: <input>:-1:0: max recursion depth exceeded"
        );
    }
    let ands = format!("x{}", " && x".repeat(5_000));
    check_bool(&ands, &[("x", true.into())], true);
    let ors = format!("x{}", " || x".repeat(5_000));
    check_bool(&ors, &[("x", false.into())], false);
}

#[test]
fn exponential_patterns_take_bounded_time() {
    let text = Value::from("x".repeat(3_000));
    let bound = [("s", text)];
    for pattern in [
        "(x+x+)+y",
        "(x|xx)*y",
        "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[0-9]",
        "((x{1,10}){1,10}){1,9}y",
        "(?i:(x?){500})y",
        "([\\\\p{L}\\\\p{N}]{1,900})y",
        "(^|[^y])*$y",
        "(((((((((x*)*)*)*)*)*)*)*)*)*y",
    ] {
        check_bool(&format!("s.matches('{pattern}')"), &bound, false);
        check_bool(&format!("s.findAll('{pattern}').size() == 0"), &bound, true);
    }
    // Go rejects these patterns because of their size.
    for pattern in ["((x{100}){100}){100}", "x{1001}", "(x{1000}){1000}"] {
        let (text, names) = (format!("s.matches(dyn('{pattern}'))"), ["s"]);
        let env = base_env(KubernetesVersion::DEFAULT);
        let env = env.extend(names.map(|name| Variable::new(name, Type::Dyn)));
        let (checked, _) = checker::check(&Arc::new(syntax::parse(&text).0.unwrap()), &text, &env);
        let error = Program::plan(&checked, &env, &KubernetesRuntime).unwrap_err();
        assert!(error.message().contains("invalid repeat count"), "{error}");
    }
}

/// Returns patterns of about `n_bytes` bytes that consist of a repeated fragment.
fn long_patterns(n_bytes: usize) -> Vec<String> {
    let pieces = [
        "a",
        "(a|b)",
        "a*",
        "[a-y]?",
        "\\pL",
        "(?i)k",
        "a|",
        "(?:a{9}b?)",
    ];
    let long = |piece: &&str| piece.repeat(n_bytes / piece.len());
    pieces.iter().map(long).collect()
}

#[test]
fn long_patterns_for_long_strings_exceed_cost_limit() {
    let text = Value::from("a".repeat(1_000));
    for pattern in long_patterns(3_000_000) {
        let bound = [("s", text.clone()), ("p", Value::from(pattern))];
        let started = Instant::now();
        check_limit("s.matches(p)", &bound);
        check_limit("s.find(p) == ''", &bound);
        check_limit("s.findAll(p, 3).size() == 0", &bound);
        // The cost limit applies before the patterns are parsed.
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn long_patterns_for_short_strings_take_bounded_memory() {
    for pattern in [3_000_000, 1_000_000].map(long_patterns).concat() {
        let started = Instant::now();
        let bound = [("s", Value::from("ab")), ("p", Value::from(pattern))];
        let program = program("s.matches(p)", &["s", "p"]);
        let allocated = allocation_counter::measure(|| {
            let evaluation = program.eval(&bound, Limits::from_cost(PER_CALL_LIMIT));
            if let Err(error) = evaluation.result {
                let message = error.message();
                assert!(
                    message.starts_with("error parsing regexp: expression ")
                        || message == "the evaluation needs more than 32 MiB of memory",
                    "{message:.90}"
                );
            }
        });
        assert!(allocated.bytes_max < 256 << 20, "{}", allocated.bytes_max);
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    }
}

#[test]
fn strings_of_ten_megabytes_exceed_limits() {
    let text = Value::from("a".repeat(10_000_000));
    check_bool(
        "s.startsWith('aa')",
        &[("s", Value::from("a".repeat(1_000)))],
        true,
    );
    check_limit("s.matches('(a*)*b')", &[("s", text.clone())]);
    for expression in ["s.contains('ab')", "(string(s) + string(s)).size() > 0"] {
        let error = eval(expression, &[("s", text.clone())]).result.unwrap_err();
        let message = "the evaluation needs more than 32 MiB of memory";
        assert_eq!(error.message(), message);
    }
}

#[test]
fn comparison_of_deeply_nested_values_is_an_error() {
    let nested = |leaf: i64| {
        let mut list = Value::Int(leaf);
        let mut map = Value::Int(leaf);
        let mut optional = Value::Int(leaf);
        for _ in 0..100_000 {
            list = Value::list([list]);
            map = Value::object(vec![("a".into(), map)]);
            optional = Value::some(optional);
        }
        [list, map, optional]
    };
    let [list, map, optional] = nested(1);
    let [other_list, other_map, other_optional] = nested(1);
    for (a, b) in [(list, other_list), (map, other_map)] {
        let error = eval("a == b", &[("a", a), ("b", b)]).result.unwrap_err();
        assert_eq!(error.message(), "value is nested too deeply to be compared");
    }
    assert!(optional.equals(&other_optional).is_err());
    // The nested values are dropped here. The stack of the test's thread must not overflow.
}

#[test]
fn list_repeatedly_concatenated_to_itself_is_evaluated() {
    let mut text = "l".to_owned();
    for level in 0..60 {
        text = format!("[{text}].map(x{level}, x{level} + x{level})[0]");
    }
    let evaluation = eval(&format!("size({text}) > 0"), &[("l", numbers(100))]);
    assert!(
        matches!(evaluation.result, Ok(Value::Bool(true))),
        "{:?}",
        evaluation.result.map(|value| value.as_bool())
    );
}

#[test]
fn list_appended_to_itself_is_a_copy() {
    check_bool(
        "optional.of(dyn([])).optMap(x, x + [x] + [x]).orValue([]).size() == 2",
        &[],
        true,
    );
    check_bool(
        "dyn(optional.of(dyn([])).optMap(x, x + [dyn(optional.of(x))] + [dyn({'a': x})])) == dyn(optional.none())",
        &[],
        false,
    );
}

#[test]
fn macro_results_are_appended_in_linear_time() {
    check_bool(
        "l.map(x, x).size() == 50000",
        &[("l", numbers(50_000))],
        true,
    );
    check_bool(
        "l.transformMap(i, x, x).size() == 30000",
        &[("l", numbers(30_000))],
        true,
    );
}

#[test]
fn interruption_ends_evaluation() {
    let program = program("l.all(x, l.all(y, x + y >= 0))", &["l"]);
    let bound: Bindings = [("l".to_owned(), numbers(10_000))].into_iter().collect();
    let n_asked = AtomicU32::new(0);
    let is_interrupted = || n_asked.fetch_add(1, Ordering::Relaxed) >= 3;
    let limits = Limits {
        is_interrupted: Some(&is_interrupted),
        ..Limits::from_cost(u64::MAX)
    };
    let evaluation = program.eval(&bound, limits);
    assert_eq!(
        evaluation.result.unwrap_err().message(),
        "operation interrupted"
    );
    assert_eq!(n_asked.load(Ordering::Relaxed), 4);
}

#[test]
fn evaluation_is_deterministic() {
    let object: Value = serde_json::from_str(r#"{"b":[3,1,2],"a":{"z":1,"y":2,"x":3}}"#).unwrap();
    let text = "string(o.a.map(k, k).join(',')) + string(o.b.sort()[0])";
    let first = eval(text, &[("o", object.clone())]);
    for _ in 0..5 {
        let again = eval(text, &[("o", object.clone())]);
        assert_eq!(again.cost, first.cost);
        assert!(
            again
                .result
                .unwrap()
                .equals(first.result.as_ref().unwrap())
                .unwrap()
        );
    }
}

/// Returns a list with `levels` levels. Each level contains the next level twice.
fn doubling(levels: usize) -> Value {
    (0..levels).fold(Value::Int(1), |below, _| {
        Value::list(vec![below.clone(), below])
    })
}

/// A single one of these comparisons ends quickly. Without a common limit, an expression with many of them would take
/// hours.
#[test]
fn comparisons_of_an_evaluation_share_one_limit() {
    let bindings = [("a", doubling(12)), ("b", doubling(12))];
    for comparison in [
        "a == b",
        "a in [b]",
        "[a].indexOf(b) == 0",
        "sets.contains([a], [b])",
        "[a, b].distinct().size() == 1",
    ] {
        let budget = Arc::new(EvalBudget::new(100_000, 32 << 20));
        let limits = Limits {
            budget: Some(&budget),
            ..Limits::from_cost(PER_CALL_LIMIT)
        };
        let once = eval_within(comparison, &bindings, limits);
        assert!(once.result.is_ok(), "{comparison}: {:?}", once.result);
        let text = format!("lists.range(10000).filter(i, {comparison}).size() >= 0");
        let error = eval_within(&text, &bindings, limits).result.unwrap_err();
        let message = error.message();
        assert!(
            message.starts_with(TOO_MANY_VALUES) || message == LIMIT_EXCEEDED,
            "{comparison}: {message}"
        );
    }
}

#[test]
fn index_of_call_on_doubling_list_is_bounded() {
    let bindings = [("a", doubling(40))];
    for text in ["[a].indexOf(1) == 0", "[a].lastIndexOf(1) == 0"] {
        let error = eval(text, &bindings).result.unwrap_err();
        let message = error.message();
        assert!(
            message.starts_with(TOO_MANY_VALUES) || message == LIMIT_EXCEEDED,
            "{text}: {message}"
        );
    }
}

/// The cost of `split` depends only on the length of the string, so a string that is too long is not split.
#[test]
fn split_strings_are_bounded() {
    let text = Value::from("a".repeat(10_000_000));
    for call in ["s.findAll('a')", "s.split('')", "s.replace('a', 'bb')"] {
        let bound: Bindings = [("s".to_owned(), text.clone())].into_iter().collect();
        let program = program(&format!("{call}.size() > 0"), &["s"]);
        let mut error = None;
        let allocated = allocation_counter::measure(|| {
            let evaluation = program.eval(&bound, Limits::from_cost(PER_CALL_LIMIT));
            error = evaluation.result.err();
        });
        assert_eq!(error.unwrap().message(), LIMIT_EXCEEDED, "{call}");
        assert!(
            allocated.bytes_max < 1 << 20,
            "{call}: {}",
            allocated.bytes_max
        );
    }
}
