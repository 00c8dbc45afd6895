//! Asserts that the evaluation of simple comparisons of fields allocates no heap memory.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::eval::{Bindings, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::version::KubernetesVersion;

/// Returns the number of heap blocks that the evaluation of an expression allocates. The expression must be true for
/// `object`.
fn n_blocks(text: &str, object: &Value) -> u64 {
    let env = base_env(KubernetesVersion::DEFAULT).extend([Variable::new("object", Type::Dyn)]);
    let (ast, found) = syntax::parse(text);
    assert!(found.is_empty(), "{}", found.render(text));
    let (checked, found) = checker::check(&Arc::new(ast.unwrap()), text, &env);
    assert!(found.is_empty(), "{}", found.render(text));
    let program = Program::plan(&checked, &env, &KubernetesRuntime).unwrap();
    let mut bindings = Bindings::default();
    bindings.bind("object", object.clone());
    let mut is_true = false;
    let allocated = allocation_counter::measure(|| {
        let evaluation = program.eval(&bindings, Limits::from_cost(1_000_000));
        is_true = matches!(evaluation.result, Ok(Value::Bool(true)));
    });
    assert!(is_true, "{text}");
    allocated.count_total
}

#[test]
fn simple_comparisons_allocate_nothing() {
    let mut fields = vec![r#""spec":{"replicas":3,"paused":false,"name":"web"}"#.to_owned()];
    // The expressions do not read these fields, so the fields must not cause allocations.
    fields.extend((0..20_000).map(|n| format!(r#""annotation-{n}":"some text that is not read""#)));
    let object: Value = serde_json::from_str(&format!("{{{}}}", fields.join(","))).unwrap();
    for text in [
        "object.spec.replicas <= 5",
        "object.spec.name == 'web'",
        "has(object.spec.replicas) && object.spec.replicas > 1",
        "!object.spec.paused || object.spec.replicas != 3",
        "object.spec.name.startsWith('w')",
        "object.spec.replicas in [1, 2, 3]",
    ] {
        assert_eq!(n_blocks(text, &object), 0, "{text}");
    }
}
