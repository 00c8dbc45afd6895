//! Asserts that the memory of an evaluation stays within its budget, for calls of every function.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

#[path = "support/random.rs"]
mod random;

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value as Json, json};

use random::Random;
use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::{CallStyle, OverloadRow, Sig, Variable};
use vap_status_controller::cel::eval::{Bindings, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::{EvalBudget, Value};
use vap_status_controller::library::limits::PER_CALL_LIMIT;
use vap_status_controller::library::mutation::mutation_env;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::policy::admission::{
    Admission, AdmissionRequest, AuthorizerList, Object, ParamList, ReviewContext,
};
use vap_status_controller::probe::run::implied_binding;
use vap_status_controller::schema::Gvr;
use vap_status_controller::version::KubernetesVersion;

/// The maximum peak heap size in bytes. The budget of an evaluation is 32 MiB. The plan, the object, and copies that
/// are freed immediately may use the rest.
const MAX_PEAK: u64 = 64 << 20;

/// A memory budget in bytes. The results of 20 calls with large arguments exceed it.
const SMALL_BUDGET: u64 = 512 << 10;

const OUT_OF_SMALL_BUDGET: &str = "the evaluation needs more than 524288 bytes of memory";

const OUT_OF_MEMORY: &str = "the evaluation needs more than 32 MiB of memory";

/// Returns an expression whose value has the type `sig` and is large. The expression may use the variables of
/// `bindings`. Returns `None` if there is no such expression.
fn large(sig: &Sig) -> Option<&'static str> {
    Some(match sig {
        Sig::Dyn | Sig::Any | Sig::Param(_) | Sig::String => "text",
        Sig::Null => "null",
        Sig::Bool => "true",
        Sig::Int => "7",
        Sig::Uint => "7u",
        Sig::Double => "7.5",
        Sig::Bytes => "octets",
        Sig::Duration => "duration('1h')",
        Sig::Timestamp => "timestamp('2024-01-01T00:00:00Z')",
        Sig::List(Sig::Int) => "numbers",
        Sig::List(Sig::String | Sig::Dyn | Sig::Param(_)) => "texts",
        Sig::List(Sig::List(_)) => "[texts, texts]",
        Sig::List(Sig::Optional(_)) => "texts.map(t, optional.of(t))",
        Sig::List(Sig::Bytes) => "texts.map(t, bytes(t))",
        Sig::List(Sig::Uint) => "numbers.map(n, uint(n))",
        Sig::List(Sig::Double) => "numbers.map(n, double(n))",
        Sig::List(Sig::Bool) => "numbers.map(n, n > 3)",
        Sig::List(Sig::Duration) => "numbers.map(n, duration(string(n) + 's'))",
        Sig::List(Sig::Timestamp) => "numbers.map(n, timestamp(n))",
        Sig::Map(..) => "entries",
        Sig::Optional(Sig::Map(..)) => "optional.of(entries)",
        Sig::Optional(Sig::List(_)) => "optional.of(texts)",
        Sig::Optional(_) => "optional.of(text)",
        Sig::Opaque("net.IP") | Sig::Object("net.IP") => "ip('10.0.0.1')",
        Sig::Opaque("net.CIDR") | Sig::Object("net.CIDR") => "cidr('10.0.0.0/8')",
        Sig::Opaque("kubernetes.URL") | Sig::Object("kubernetes.URL") => {
            "url('https://a/' + query)"
        }
        Sig::Opaque("kubernetes.Quantity") | Sig::Object("kubernetes.Quantity") => {
            "quantity('1e9999')"
        }
        Sig::Opaque("kubernetes.Semver") | Sig::Object("kubernetes.Semver") => {
            "semver('1.0.0-' + 'a.'.replace('a', 'aaaa') + 'b')"
        }
        _ => return None,
    })
}

fn bindings() -> Vec<(&'static str, Value)> {
    let texts: Vec<Value> = (0..5_000)
        .map(|n| Value::from(format!("text-{n}")))
        .collect();
    let entries = (0..5_000).map(|n| (Value::from(format!("key-{n}")), Value::Int(n)));
    vec![
        ("text", Value::from("a,\u{1}".repeat(10_000))),
        ("octets", Value::bytes(vec![b'a'; 25_000])),
        ("query", Value::from(format!("?{}", "a=b&".repeat(5_000)))),
        ("texts", Value::list(texts)),
        (
            "numbers",
            Value::list((0..5_000).map(Value::Int).collect::<Vec<_>>()),
        ),
        ("entries", Value::map(entries).unwrap()),
    ]
}

/// Returns a call of the overload with large arguments. Returns `None` if there is no such call.
fn call(row: &OverloadRow) -> Option<String> {
    let args = row.args.iter().map(large).collect::<Option<Vec<_>>>()?;
    let operator = row.function.trim_matches('_');
    Some(match (&*args, row.style) {
        _ if row.function.contains('@') => return None,
        ([left, right], _) if row.function == "_[_]" => format!("({left})[{right}]"),
        ([operand, _], _) if row.function.starts_with("_?.") => format!("({operand}).?field"),
        ([left, right], _) if row.function == "_[?_]" => format!("({left})[?{right}]"),
        ([condition, left, right], _) if row.function == "_?_:_" => {
            format!("({condition}) ? ({left}) : ({right})")
        }
        ([left, right], _) if row.function == "@in" || row.function == "in" => {
            format!("({left}) in ({right})")
        }
        ([left, right], _) if row.function.starts_with('_') => {
            format!("dyn({left}) {operator} dyn({right})")
        }
        ([arg], _) if row.function.ends_with('_') => format!("{operator}({arg})"),
        ([receiver, rest @ ..], CallStyle::Member) => {
            format!("({receiver}).{}({})", row.function, rest.join(", "))
        }
        (args, CallStyle::Global) => format!("{}({})", row.function, args.join(", ")),
        ([], CallStyle::Member) => return None,
    })
}

/// Evaluates an expression and asserts that the memory limit is not exceeded. Returns the result, or `None` if the
/// expression does not compile.
#[track_caller]
fn evaluate(
    text: &str,
    cost: u64,
    budget: EvalBudget,
    max_peak: u64,
) -> Option<Result<Value, String>> {
    let budget = Arc::new(budget);
    let bound = bindings();
    let types = bound.iter().map(|(name, value)| {
        let of = match value {
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Map(_) => Type::map(Type::String, Type::Int),
            _ if *name == "numbers" => Type::list(Type::Int),
            _ => Type::list(Type::String),
        };
        Variable::new(*name, of)
    });
    let env = mutation_env(KubernetesVersion::DEFAULT).extend(types);
    let (ast, found) = syntax::parse(text);
    assert!(found.is_empty(), "{}", found.render(text));
    let (checked, found) = checker::check(&Arc::new(ast.unwrap()), text, &env);
    if !found.is_empty() {
        return None;
    }
    let program = Program::plan(&checked, &env, &KubernetesRuntime).ok()?;
    let mut activation = Bindings::default();
    for (name, value) in &bound {
        activation.bind(*name, value.clone());
    }
    let started = Instant::now();
    let mut result = None;
    let used = allocation_counter::measure(|| {
        let evaluation = program.eval(
            &activation,
            Limits {
                budget: Some(&budget),
                ..Limits::from_cost(cost)
            },
        );
        result = Some(
            evaluation
                .result
                .map_err(|error| error.message().to_owned()),
        );
    });
    assert!(
        used.bytes_max < max_peak,
        "{text}: {} bytes",
        used.bytes_max
    );
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(60), "{text}: {elapsed:?}");
    result
}

/// Calls each overload 20 times with large arguments and a small budget. An overload with large results must exceed the
/// budget.
#[test]
fn results_of_all_overloads_are_counted_against_budget() {
    let (mut n_checked, mut n_exceeded) = (0, 0);
    let env = mutation_env(KubernetesVersion::DEFAULT);
    for function in env.library().functions() {
        for overload in &function.overloads {
            let row = overload.row;
            let Some(call) = call(row) else {
                continue;
            };
            // A search with a long pattern takes seconds, although it costs 1. So `matches` is called only once.
            let n_calls = if row.function == "matches" { 1 } else { 20 };
            let text = format!("lists.range({n_calls}).map(i, dyn({call})).size() >= 0");
            let budget = EvalBudget::new(10_000_000, SMALL_BUDGET);
            let Some(result) = evaluate(&text, 10 * PER_CALL_LIMIT, budget, 16 << 20) else {
                continue;
            };
            n_checked += 1;
            if result.is_err_and(|error| error == OUT_OF_SMALL_BUDGET) {
                n_exceeded += 1;
            }
        }
    }
    assert!(n_checked > 250, "{n_checked}");
    assert!(n_exceeded > 25, "{n_exceeded}");
}

/// Evaluates expressions that double the size of their value in each step.
#[test]
fn doubling_expressions_fail_with_out_of_memory() {
    for text in [
        format!(
            "['aaaa']{}.all(x, x.size() > 0)",
            ".map(x, dyn(x) + dyn(x))".repeat(31)
        ),
        format!(
            "[octets]{}.all(x, x.size() > 0)",
            ".map(x, dyn(x) + dyn(x))".repeat(31)
        ),
        "[[text]].map(x, x.map(y, y.replace('', y)).join()).size() > 0".to_owned(),
        "lists.range(100000).map(i, text.split('')).size() > 0".to_owned(),
        "lists.range(100000).map(i, '%s%s'.format([texts, texts])).size() > 0".to_owned(),
        "lists.range(100000).map(i, url('https://a/' + query).getQuery()).size() > 0".to_owned(),
        format!(
            "[texts]{}.map(x, dyn(x) + x)[0].reverse().size() > 0",
            ".map(x, x + x)".repeat(14)
        ),
        format!(
            "[texts]{}[0].join('').size() > 0",
            ".map(x, dyn(x) + dyn(x))".repeat(20)
        ),
        format!(
            "google.protobuf.Value{{list_value: [texts]{}}} == null",
            ".map(x, [dyn(x), dyn(x)])".repeat(24)
        ),
        format!(
            "'%s'.format([[text]{}]) == ''",
            ".map(x, [dyn(x), dyn(x)])".repeat(10)
        ),
    ] {
        let error = evaluate(&text, PER_CALL_LIMIT, EvalBudget::default(), MAX_PEAK)
            .unwrap()
            .unwrap_err();
        assert_eq!(error, OUT_OF_MEMORY, "{text}");
    }
}

#[test]
fn long_error_messages_are_truncated() {
    let nested = format!("[1]{}", ".map(x, [dyn(x), dyn(x)])".repeat(40));
    for text in [
        format!("{{'a': 1}}[dyn(string({nested}.size())) + text + text + text] == 1"),
        format!("[dyn({nested})].join() == ''"),
    ] {
        let error = evaluate(&text, PER_CALL_LIMIT, EvalBudget::default(), MAX_PEAK)
            .unwrap()
            .unwrap_err();
        assert!(error.len() <= (256 << 10) + 30, "{}", error.len());
    }
}

/// Generates expressions whose values grow with the depth.
struct Growth(Random);

impl Growth {
    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            let atoms = [
                "object.metadata.name",
                "object.metadata.annotations.large",
                "'a.b,c'",
            ];
            return atoms[self.0.below(atoms.len())].to_owned();
        }
        let a = self.text(depth - 1);
        let text = match self.0.below(12) {
            0..3 => format!("(string(dyn({a}) + dyn({a})))"),
            3 => format!("({a}).replace('a', {})", self.text(depth - 1)),
            4 => format!("[{a}, {a}, {a}].join({})", self.text(depth - 1)),
            5 => format!("'%s,%s,%s'.format([{a}, {a}, {}])", self.list(depth - 1)),
            6 => format!("({a}).upperAscii()"),
            7 => format!("string(bytes({a}))"),
            8 => format!("({a}).split('').map(c, c + c).join(',')"),
            9 => format!(
                "['b']{}[0]",
                ".map(x, dyn(x) + dyn(x))".repeat(self.0.below(32))
            ),
            10 => format!("({a}).findAll('.').join('ab')"),
            _ => format!("({a}).trim().lowerAscii()"),
        };
        format!("string(dyn({text}))")
    }

    fn list(&mut self, depth: u32) -> String {
        if depth == 0 {
            return ["[1, 2, 3]", "object.spec.items", "lists.range(50)"][self.0.below(3)]
                .to_owned();
        }
        let a = self.list(depth - 1);
        let list = match self.0.below(12) {
            0 | 1 => format!("(dyn({a}) + dyn({a}) + {a})"),
            2 => format!("({a}).map(x, [dyn(x), dyn(x), dyn(x)])"),
            3 => format!("({a}).map(x, {})", self.text(depth - 1)),
            4 => format!("[{a}, {a}].flatten()"),
            5 => format!("({a}).filter(x, x != 7).reverse()"),
            6 => format!("({}).split('a')", self.text(depth - 1)),
            7 => format!("({a}).transformList(i, v, [dyn(i), dyn(v)])"),
            8 => format!("[({a}).transformMap(i, v, {{'k': dyn(v), 'l': dyn([v, v])}})]"),
            9 => format!(
                "[{a}]{}[0]",
                ".map(x, dyn(x) + dyn(x))".repeat(self.0.below(24))
            ),
            10 => format!("({a}).distinct()"),
            _ => format!("({a}).map(x, {a})"),
        };
        format!("dyn({list})")
    }

    fn policy(&mut self) -> Json {
        let depth = 1 + u32::try_from(self.0.below(3)).unwrap();
        let condition = match self.0.below(4) {
            0 => format!("dyn({}).size() < 0", self.text(depth)),
            1 => format!("({}).all(x, dyn(x) == variables.v)", self.list(depth)),
            2 => format!(
                "[{}].exists(x, dyn({}) == x)",
                self.text(depth),
                self.text(depth)
            ),
            _ => "dyn(variables.v) == 1".to_owned(),
        };
        let variable = if self.0.one_in(2) {
            self.text(depth)
        } else {
            self.list(depth)
        };
        json!({
            "failurePolicy": if self.0.one_in(2) { "Fail" } else { "Ignore" },
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "variables": [{"name": "v", "expression": variable}],
            "validations": [{"expression": condition, "messageExpression": self.text(depth)}],
            "auditAnnotations": [{"key": "a", "valueExpression": self.text(depth)}],
        })
    }
}

/// Evaluates 250 generated policies with four expressions each. Each request must end within the time and memory
/// limits. A policy that exceeds the memory budget must have no decision.
#[test]
fn generated_policies_stay_within_memory() {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "aaaa", "annotations": {"large": "a,b.".repeat(300)}},
        "spec": {"items": (0..40).collect::<Vec<_>>()},
    });
    let request = AdmissionRequest::create(Gvr::new("", "v1", "pods"), Object::new(&object));
    let (params, namespaces) = (ParamList::default(), None);
    let context = ReviewContext::new(&params, &namespaces, Arc::new(AuthorizerList::default()));
    let bindings = [implied_binding("p", None)];
    let mut growth = Growth(Random(30));
    let (mut n_exceeded, mut n_decided, mut max_peak) = (0, 0, 0);
    for n in 0..250 {
        let spec = growth.policy();
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let started = Instant::now();
        let mut outcome = None;
        let used = allocation_counter::measure(|| {
            let admission = Admission::new(&policy, KubernetesVersion::DEFAULT);
            outcome = Some(admission.review(&request, &bindings, &context));
        });
        let outcome = outcome.unwrap();
        assert!(
            used.bytes_max < MAX_PEAK,
            "{n}: {} bytes: {spec}",
            used.bytes_max
        );
        max_peak = max_peak.max(used.bytes_max);
        let elapsed = started.elapsed();
        assert!(
            elapsed < Duration::from_secs(60),
            "{n}: {elapsed:?}: {spec}"
        );
        let has_compile_error = outcome
            .errors
            .iter()
            .any(|error| error.contains("compilation error") || error.contains("fails to compile"));
        assert!(!has_compile_error, "{n}: {:?}: {spec}", outcome.errors);
        match outcome.exceeded {
            Some(_) => {
                assert_eq!((outcome.denial, outcome.evaluations), (None, Vec::new()));
                assert_eq!(outcome.errors, [""; 0]);
                n_exceeded += 1;
            }
            None => {
                assert_eq!(outcome.evaluations.len(), 1);
                n_decided += 1;
            }
        }
    }
    eprintln!("{n_exceeded} exceeded, {n_decided} decided, at most {max_peak} bytes");
    assert!(
        n_exceeded > 20 && n_decided > 20,
        "{n_exceeded} {n_decided}"
    );
}
