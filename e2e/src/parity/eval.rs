//! `parity eval`: what the checker and the evaluator answer for single expressions.
//!
//! Source: the oracle's `eval.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker;
use vap_status_controller::cel::civil;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::eval::{Bindings, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::{StructType, Type};
use vap_status_controller::cel::value::{Timestamp, Value};
use vap_status_controller::library::environment::{KubernetesVersion, base_env};
use vap_status_controller::library::limits::PER_CALL_LIMIT;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::schema::decl_type::DeclType;
use vap_status_controller::schema::{Gvk, OpenApiDocument};

use super::guard::{Panic, guard};
use super::write_line;

/// An expression to evaluate.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct EvalCase {
    id: String,
    expr: String,
    vars: BTreeMap<String, Json>,
    schema: BTreeMap<String, Json>,
    declare: Vec<String>,
    typed_values: bool,
    env: String,
    cost_limit: Option<u64>,
    authorizer: Option<Json>,
    user_info: Option<Json>,
}

/// What is printed for a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalLine {
    #[serde(skip_serializing_if = "String::is_empty")]
    id: String,
    line: usize,
    expr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    check_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    panic: Option<Panic>,
}

/// Evaluates the cases of `paths` and prints a line for each.
///
/// # Errors
///
/// If a file cannot be read, or `out` not written to.
pub fn run(paths: &[PathBuf], out: &mut dyn Write) -> Result<()> {
    for path in paths {
        let name = path.display().to_string();
        let file = fs::File::open(path).with_context(|| name.clone())?;
        for (n, text) in BufReader::new(file).lines().enumerate() {
            let text = text.with_context(|| name.clone())?;
            if text.trim().is_empty() {
                continue;
            }
            write_line(out, &line(n + 1, &text))?;
        }
    }
    Ok(())
}

/// The line of the case that is `text`.
#[must_use]
pub fn line(n: usize, text: &str) -> EvalLine {
    let case: EvalCase = match serde_json::from_str(text) {
        Ok(case) => case,
        Err(error) => {
            return EvalLine {
                line: n,
                error: Some(error.to_string()),
                ..EvalLine::default()
            };
        }
    };
    let mut line = EvalLine {
        id: case.id.clone(),
        line: n,
        expr: case.expr.clone(),
        ..EvalLine::default()
    };
    let outcome = guard(|| {
        let mut answered = line.clone();
        if let Err(error) = evaluate(&case, &mut answered) {
            answered.error = Some(format!("{error:#}"));
        }
        answered
    });
    match outcome {
        Ok(answered) => answered,
        Err(panic) => {
            line.panic = Some(panic);
            line
        }
    }
}

fn evaluate(case: &EvalCase, line: &mut EvalLine) -> Result<()> {
    let (env, bindings) = environment(case)?;
    let (parsed, mut found) = syntax::parse(&case.expr);
    let Some(ast) = parsed else {
        line.check_error = Some(found.render(&case.expr));
        return Ok(());
    };
    let ast = Arc::new(ast);
    let (checked, type_errors) = checker::check(&ast, &case.expr, &env);
    found = type_errors;
    if found.is_empty() {
        ast_validators::validate(&checked, &case.expr, &mut found);
    }
    if !found.is_empty() {
        line.check_error = Some(found.render(&case.expr));
        return Ok(());
    }
    line.output_type = Some(checked.output_type().declared_string());
    let program = Program::plan(&checked, &env, &KubernetesRuntime)?;
    let limit = case.cost_limit.unwrap_or(PER_CALL_LIMIT);
    let evaluation = program.eval(&bindings, Limits::of_cost(limit));
    line.actual_cost = Some(evaluation.cost);
    match evaluation.result {
        Ok(value) => line.value = Some(tagged(&value)),
        Err(error) => line.runtime_error = Some(error.message().to_owned()),
    }
    Ok(())
}

fn environment(case: &EvalCase) -> Result<(Env, Bindings)> {
    let base = base_env(KubernetesVersion::LATEST);
    let types = schema_types(&case.schema)?;
    let names: BTreeSet<&String> = case
        .vars
        .keys()
        .chain(&case.declare)
        .chain(case.schema.keys())
        .collect();
    let mut variables = Vec::new();
    let mut bindings = Bindings::default();
    for name in names {
        let type_ = types
            .get(name)
            .map_or(Type::Dyn, |decl| decl.cel_type(&capitalized(name)));
        variables.push(Variable::new(name.as_str(), type_));
        let Some(raw) = case.vars.get(name) else {
            continue;
        };
        let value = match case.schema.get(name) {
            Some(_) if case.typed_values => Value::Null,
            _ => Value::from(raw),
        };
        bindings.bind(name.as_str(), value);
    }
    if let Some(rules) = &case.authorizer {
        let type_ = Type::Struct(StructType::undeclared(
            "kubernetes.authorization.Authorizer",
        ));
        variables.push(Variable::new("authorizer", type_));
        let _ = (rules, &case.user_info);
    }
    Ok((base.extend(variables), bindings))
}

fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + chars.as_str())
        .unwrap_or_default()
}

/// The types of the variables that have a schema and whose schema has a type.
fn schema_types(schemas: &BTreeMap<String, Json>) -> Result<BTreeMap<String, Arc<DeclType>>> {
    if schemas.is_empty() {
        return Ok(BTreeMap::new());
    }
    // The schemas are those of the fields of an object, so that none is taken for a resource.
    let document = json!({
        "openapi": "3.0.0",
        "components": {"schemas": {"case.Variables": {
            "type": "object",
            "properties": schemas,
            "x-kubernetes-group-version-kind": [{"group": "case", "version": "v1", "kind": "Variables"}],
        }}},
    });
    let document = OpenApiDocument::parse(&serde_json::to_vec(&document)?)?;
    let root = document.decl_type(&Gvk::new("case", "v1", "Variables"))?;
    Ok(schemas
        .keys()
        .filter_map(|name| {
            let field = root.declared_field(name)?;
            Some((name.clone(), Arc::clone(&field.type_)))
        })
        .collect())
}

/// A value with its type, as the oracle prints it.
#[must_use]
pub fn tagged(value: &Value) -> Json {
    let of = |type_: &str, value: Json| json!({"type": type_, "value": value});
    match value {
        Value::Null => of("null", Json::Null),
        Value::Bool(value) => of("bool", json!(value)),
        Value::Int(value) => of("int", json!(value)),
        Value::Uint(value) => of("uint", json!(value)),
        Value::Double(value) => of("double", double_json(*value)),
        Value::String(text) => of("string", json!(**text)),
        Value::Bytes(bytes) => of("bytes", json!(base64(bytes))),
        Value::Duration(nanos) => of("duration", json!(civil::format_go_duration(*nanos))),
        Value::Timestamp(at) => {
            let utc = Timestamp {
                offset_seconds: 0,
                ..*at
            };
            of("timestamp", json!(civil::format_rfc3339(utc)))
        }
        Value::Optional(optional) => of("optional", optional.get().map_or(Json::Null, tagged)),
        Value::Error(error) => of("error", json!(error.message())),
        Value::Type(type_) => of("type", json!(type_.declared_string())),
        Value::Map(map) => {
            let mut entries: Vec<(String, Json)> = map
                .entries()
                .unwrap_or_default()
                .iter()
                .map(|(key, value)| (key_order(key), json!([tagged(key), tagged(value)])))
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            of("map", entries.into_iter().map(|(_, pair)| pair).collect())
        }
        Value::List(list) => of(
            "list",
            list.iter().map(|element| tagged(&element)).collect(),
        ),
        Value::Opaque(opaque) => {
            let text = opaque
                .text()
                .unwrap_or_else(|| opaque.native_type().to_owned());
            of(&opaque.type_().type_name(), json!(text))
        }
    }
}

/// A text that sorts as the oracle sorts keys: by type, then by value.
fn key_order(key: &Value) -> String {
    match key {
        Value::Int(value) => format!("int {:020}", value.cast_unsigned() ^ (1 << 63)),
        Value::Uint(value) => format!("uint {value:020}"),
        other => format!("{} {}", other.type_().type_name(), other.to_go_string()),
    }
}

/// What JSON can hold of a double.
fn double_json(value: f64) -> Json {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else if value == 0.0 && value.is_sign_negative() {
        json!(-0.0)
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        // Go prints whole doubles without a fraction.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the value is whole and small"
        )]
        let whole = value as i64;
        json!(whole)
    } else {
        json!(value)
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for n in 0..4 {
            let digit = ALPHABET
                .get(bits >> (18 - 6 * n) & 63)
                .copied()
                .unwrap_or(b'=');
            text.push(if n > chunk.len() { '=' } else { digit.into() });
        }
    }
    text
}
