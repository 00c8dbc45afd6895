//! What fuzz targets share: an environment with a few variables, and what must hold of every evaluation.

use std::sync::{Arc, LazyLock};

use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker::{self, CheckedAst};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::eval::{Bindings, Evaluation, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::environment::{KubernetesVersion, base_env};
use vap_status_controller::library::runtime::KubernetesRuntime;

/// The greatest cost of an evaluation: a tenth of the API server's limit, since instrumented code is slow.
pub const COST_LIMIT: u64 = 100_000;

/// The values of the variable `object` that every expression is evaluated with.
const OBJECTS: [&str; 3] = [
    "null",
    r#"{"metadata":{"name":"web","labels":{"app":"web","é":"\u0000"},"finalizers":[]},
        "spec":{"replicas":3,"ratio":-0.5,"template":{"spec":{"containers":[
            {"name":"a","image":"registry/a:1.2.3","args":["-v",""],"ports":[{"containerPort":80}]},
            {"name":"b","image":"b@sha256:00","resources":{"limits":{"cpu":"500m","memory":"1Gi"}}}]}}}}"#,
    r#"{"metadata":[1,[2,[3]],{"name":1e300}],"spec":"2024-02-29T12:34:56.789Z","a":{"a":{"a":{}}},
        "n":-9223372036854775808,"big":18446744073709551615}"#,
];

static INPUTS: LazyLock<Vec<Bindings>> = LazyLock::new(|| {
    let bind = |text: &&str| {
        let object: Value = serde_json::from_str(text).expect("an object is JSON");
        let mut bindings = Bindings::default();
        bindings.bind("object", object);
        bindings.bind("i", Value::Int(-7));
        bindings.bind("s", Value::from("10.0.0.1/8"));
        bindings
    };
    OBJECTS.iter().map(bind).collect()
});

static ENV: LazyLock<Env> = LazyLock::new(|| {
    base_env(KubernetesVersion::LATEST).extend([
        Variable::new("object", Type::Dyn),
        Variable::new("i", Type::Int),
        Variable::new("s", Type::String),
    ])
});

/// Parses, checks and plans `text`, and evaluates it twice with every input.
pub fn evaluate(text: &str) {
    let Some(checked) = checked(text) else {
        return;
    };
    let Ok(program) = Program::plan(&checked, &ENV, &KubernetesRuntime) else {
        return;
    };
    for input in INPUTS.iter() {
        let limits = Limits::of_cost(COST_LIMIT);
        let first = program.eval(input, limits);
        let again = program.eval(input, limits);
        assert_eq!(outcome(&first), outcome(&again), "{text}");
    }
}

fn checked(text: &str) -> Option<CheckedAst> {
    let (ast, _) = syntax::parse(text);
    let (checked, mut found) = checker::check(&Arc::new(ast?), text, &ENV);
    if found.is_empty() {
        ast_validators::validate(&checked, &ENV, text, &mut found);
    }
    found.is_empty().then_some(checked)
}

/// The kind of the result, or the error, and the cost.
fn outcome(evaluation: &Evaluation) -> (String, u64) {
    let result = match &evaluation.result {
        Ok(value) => value.type_().type_name(),
        Err(error) => error.message().to_owned(),
    };
    (result, evaluation.cost)
}
