//! Measures the steps of the engine: parse, type check, plan, evaluation, admission, custom resources. Compares with
//! the crates `cel` and `cel-core` in the steps that they have.
//!
//! `cargo bench --bench engine`; a part of a name after `--` selects benchmarks. `./dev bench` compares the engine with
//! upstream.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a bench ends by a panic; its functions are made by a macro"
)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value as Json, json};
use vap_status_controller::cel::checker::{self, CheckedAst};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::eval::{Bindings, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::custom_resource as whole;
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::limits::PER_CALL_LIMIT;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::policy::admission::{
    Admission, AdmissionRequest, AuthorizerList, Object, ParamList, ReviewContext,
};
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::schema::builtin::Builtin;
use vap_status_controller::schema::{Gvr, RestMapper};
use vap_status_controller::validation_rules;

/// Expressions that are typical of policies; all are true for [`deployment`].
const EXPRESSIONS: [(&str, &str); 4] = [
    ("comparison", "object.spec.replicas <= 5"),
    (
        "presence",
        "has(object.metadata.labels) && 'app' in object.metadata.labels",
    ),
    (
        "comprehension",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example/') \
         && !c.image.endsWith(':latest'))",
    ),
    ("pattern", "object.metadata.labels.app.matches('^[a-z-]+$')"),
];

fn deployment() -> Json {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "web", "image": "registry.example/web:1.2"},
                    {"name": "sidecar", "image": "registry.example/proxy:3.4"},
                ]},
            },
        },
    })
}

/// Returns the policy of the oracle's sample: three validations, two variables, a message expression.
fn policy() -> ValidatingAdmissionPolicy {
    let [_, (_, presence), (_, images), (_, pattern)] = EXPRESSIONS;
    let policy = json!({
        "metadata": {"name": "bench"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["deployments"],
            }]},
            "variables": [
                {"name": "containers", "expression": "object.spec.template.spec.containers"},
                {
                    "name": "replicas",
                    "expression": "has(object.spec.replicas) ? object.spec.replicas : 1",
                },
            ],
            "validations": [
                {
                    "expression": "variables.replicas <= 5",
                    "messageExpression": "'at most 5 replicas, not ' + string(variables.replicas)",
                },
                {"expression": images.replace("object.spec.template.spec", "variables")},
                {"expression": format!("{presence} && {pattern}")},
            ],
        },
    });
    serde_json::from_value(policy).unwrap()
}

fn env() -> Env {
    base_env().extend([Variable::new("object", Type::Dyn)])
}

fn checked(text: &str, env: &Env) -> CheckedAst {
    let (ast, found) = syntax::parse(text);
    assert!(found.is_empty(), "{}", found.render(text));
    let (checked, found) = checker::check(&Arc::new(ast.unwrap()), text, env);
    assert!(found.is_empty(), "{}", found.render(text));
    checked
}

fn program(text: &str) -> Program {
    let env = env();
    Program::plan(&checked(text, &env), &env, &KubernetesRuntime).unwrap()
}

fn bindings(object: &Json) -> Bindings {
    let mut bindings = Bindings::default();
    bindings.bind("object", Value::from(object));
    bindings
}

/// Returns the object as a value of the `cel` crate.
fn peer_value(json: &Json) -> cel_rust::Value {
    match json {
        Json::String(text) => cel_rust::Value::from(text.as_str()),
        Json::Number(number) => cel_rust::Value::Int(number.as_i64().unwrap_or_default()),
        Json::Bool(value) => cel_rust::Value::Bool(*value),
        Json::Null => cel_rust::Value::Null,
        Json::Array(items) => {
            cel_rust::Value::from(items.iter().map(peer_value).collect::<Vec<_>>())
        }
        Json::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.clone(), peer_value(value)));
            cel_rust::Value::from(fields.collect::<HashMap<_, _>>())
        }
    }
}

/// Returns the object as a value of the `cel-core` crate.
fn core_value(json: &Json) -> cel_core::Value {
    match json {
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => number.as_i64().unwrap_or_default().into(),
        Json::Bool(value) => (*value).into(),
        Json::Null => cel_core::Value::Null,
        Json::Array(items) => cel_core::Value::list(items.iter().map(core_value)),
        Json::Object(fields) => {
            let fields = fields.iter();
            cel_core::Value::map(fields.map(|(name, value)| (name.as_str(), core_value(value))))
        }
    }
}

/// Returns the environment of the `cel-core` crate that is most similar to [`env`].
fn core_env() -> cel_core::Env {
    cel_core::Env::with_standard_library()
        .with_all_extensions()
        .with_variable("object", cel_core::CelType::Dyn)
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for (name, text) in EXPRESSIONS {
        group.bench_function(name, |bencher| {
            bencher.iter(|| syntax::parse(black_box(text)));
        });
        group.bench_function(format!("{name}, crate cel"), |bencher| {
            bencher.iter(|| cel_rust::Program::compile(black_box(text)).unwrap());
        });
        group.bench_function(format!("{name}, crate cel-core"), |bencher| {
            bencher.iter(|| cel_core::parse(black_box(text)));
        });
    }
}

fn check(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse and check");
    let (env, core) = (env(), core_env());
    for (name, text) in EXPRESSIONS {
        group.bench_function(name, |bencher| {
            bencher.iter(|| checked(black_box(text), &env));
        });
        group.bench_function(format!("{name}, crate cel-core"), |bencher| {
            bencher.iter(|| core.compile(black_box(text)).unwrap());
        });
    }
    group.finish();
    let builtin = Builtin::load().unwrap();
    let mapper = RestMapper::new(builtin.resources().to_vec());
    let policy = policy();
    criterion.bench_function("check/policy of one kind", |bencher| {
        bencher.iter(|| {
            let compiled = CompiledPolicy::new(black_box(&policy));
            type_check(&compiled, &mapper, &builtin, Profile::Truthful)
        });
    });
}

fn plan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    let env = env();
    for (name, text) in EXPRESSIONS {
        let checked = checked(text, &env);
        group.bench_function(name, |bencher| {
            bencher.iter(|| Program::plan(&checked, &env, &KubernetesRuntime).unwrap());
        });
    }
    let policy = policy();
    group.bench_function("whole policy, parsed and compiled", |bencher| {
        bencher.iter(|| Admission::new(black_box(&policy)));
    });
}

fn eval(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("eval");
    let object = deployment();
    let bindings = bindings(&object);
    let core = core_env();
    for (name, text) in EXPRESSIONS {
        let program = program(text);
        let evaluation = program.eval(&bindings, Limits::from_cost(PER_CALL_LIMIT));
        assert!(matches!(evaluation.result, Ok(Value::Bool(true))), "{text}");
        group.bench_function(name, |bencher| {
            bencher.iter(|| program.eval(&bindings, Limits::from_cost(PER_CALL_LIMIT)));
        });
        let peer = cel_rust::Program::compile(text).unwrap();
        let mut context = cel_rust::Context::default();
        context.add_variable_from_value("object", peer_value(&object));
        // The crate may lack a function.
        if peer.execute(&context).is_ok() {
            group.bench_function(format!("{name}, crate cel"), |bencher| {
                bencher.iter(|| peer.execute(&context));
            });
        }
        let peer = core.program(&core.compile(text).unwrap()).unwrap();
        let mut activation = cel_core::MapActivation::new();
        activation.insert("object", core_value(&object));
        assert_eq!(peer.eval(&activation), true.into(), "{text}");
        group.bench_function(format!("{name}, crate cel-core"), |bencher| {
            bencher.iter(|| peer.eval(&activation));
        });
    }
}

/// Returns a deployment of at least `n_bytes` bytes, most of which no expression reads.
fn large_deployment(n_bytes: usize) -> Json {
    let mut object = deployment();
    let annotations: serde_json::Map<String, Json> = (0..n_bytes / 64)
        .map(|n| (format!("example.com/{n:020}"), json!("x".repeat(32))))
        .collect();
    let metadata = object.get_mut("metadata").and_then(Json::as_object_mut);
    metadata
        .unwrap()
        .insert("annotations".to_owned(), Json::Object(annotations));
    object
}

fn size(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("object size");
    for (name, n_bytes) in [("1 KiB", 1 << 10), ("1 MiB", 1 << 20)] {
        let object = large_deployment(n_bytes);
        let bindings = bindings(&object);
        for (of, text) in EXPRESSIONS {
            let program = program(text);
            group.bench_function(format!("{of}, {name}"), |bencher| {
                bencher.iter(|| program.eval(&bindings, Limits::from_cost(PER_CALL_LIMIT)));
            });
        }
        let text = object.to_string();
        group.bench_function(format!("reading of JSON, {name}"), |bencher| {
            bencher.iter_batched(
                || (),
                |()| serde_json::from_str::<Value>(black_box(&text)).unwrap(),
                BatchSize::LargeInput,
            );
        });
    }
}

fn admission(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("admission");
    let admission = Admission::new(&policy());
    let params = ParamList::default();
    let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList(Vec::new())));
    for (name, n_bytes) in [("sample", 0), ("sample in an object of 1 MiB", 1 << 20)] {
        let object = Object::new(&large_deployment(n_bytes));
        let request = AdmissionRequest::create(Gvr::new("apps", "v1", "deployments"), object);
        let evaluate = || {
            let matched = (&request.gvr, &request.gvk);
            admission.evaluate(&request, matched, None, None, &context)
        };
        let decisions = evaluate().decisions;
        assert!(decisions.iter().all(|decision| decision.message.is_empty()));
        group.bench_function(name, |bencher| bencher.iter(evaluate));
    }
}

/// Returns a definition whose rules use fields, lists and the old object.
fn definition() -> Json {
    let listener = json!({
        "type": "object",
        "required": ["name", "port"],
        "properties": {
            "name": {"type": "string", "maxLength": 63},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "protocol": {"type": "string", "default": "HTTP", "maxLength": 10},
        },
        "x-kubernetes-validations": [{"rule": "self.protocol != 'HTTP' || self.port != 443"}],
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "class": {"type": "string", "maxLength": 63},
            "replicas": {"type": "integer", "default": 1},
            "listeners": {
                "type": "array",
                "maxItems": 64,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": listener,
            },
        },
        "x-kubernetes-validations": [
            {"rule": "self.class == oldSelf.class"},
            {"rule": "!has(self.replicas) || self.replicas <= 50"},
            {"rule": "self.listeners.all(l, l.port > 0)"},
        ],
    });
    json!({"spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Gateway", "plural": "gateways"},
        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec},
        }}}],
    }})
}

/// Validates a custom resource by its rules, and by its whole definition, on creation and on update.
fn custom_resource(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("custom resource");
    let definition = definition();
    let schema = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema")
        .expect("a schema");
    let rules = validation_rules::Validator::new(schema).expect("rules");
    let all = whole::Validator::new(&definition, "v1").expect("a definition");
    let gateway = |replicas: u32| {
        let listener =
            |n: u32| json!({"name": format!("listener-{n}"), "port": 8000 + n, "protocol": "HTTP"});
        let listeners: Vec<Json> = (0..8).map(listener).collect();
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Gateway",
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"class": "fast", "replicas": replicas, "listeners": listeners},
        })
    };
    let (object, old) = (gateway(3), gateway(2));
    for (name, before) in [("created", None), ("updated", Some(&old))] {
        let holds = || rules.validate(&object, before);
        assert_eq!(holds().errors, []);
        group.bench_function(format!("rules, {name}"), |bencher| bencher.iter(holds));
        let holds = || all.validate(&object, before, "");
        assert_eq!(holds().expect("a verdict").errors, []);
        group.bench_function(format!("all, {name}"), |bencher| bencher.iter(holds));
    }
}

criterion_group!(
    benches,
    parse,
    check,
    plan,
    eval,
    size,
    admission,
    custom_resource
);
criterion_main!(benches);
