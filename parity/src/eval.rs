//! `parity eval`: checks and evaluates single expressions and prints the results.
//!
//! Source: the oracle's `eval.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use kubernetes::typed_values::{self, ValueSchema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use vap_status_controller::cel::ast::Ast;
use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker::{self, CheckedAst};
use vap_status_controller::cel::cost::UnknownSizes;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::eval::{Bindings, Evaluation, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::{StructType, Type};
use vap_status_controller::cel::value::civil;
use vap_status_controller::cel::value::{Timestamp, Value};
use vap_status_controller::library::authz::{
    AuthorizerAnswer, AuthorizerDecision, AuthorizerList, AuthorizerRule, AuthorizerValue, UserInfo,
};
use vap_status_controller::library::environment::{base_env, declared_scalars};
use vap_status_controller::library::estimate;
use vap_status_controller::library::limits::PER_CALL_LIMIT;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::schema::decl_type::DeclType;
use vap_status_controller::schema::{Gvk, OpenApiDocument};

use crate::admit;
use crate::compile::CostLine;
use crate::guard::{Panic, guard};
use crate::version;
use crate::write_line;

/// An expression and its variables.
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

/// The result of a case, as a line of output.
#[derive(Clone, Debug, Default, Serialize)]
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
    cost: Option<CostLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Tagged>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual_cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    panic: Option<Panic>,
}

/// Evaluates the cases in `paths` and prints a line for each.
///
/// # Errors
///
/// Returns an error if a file cannot be read or `out` cannot be written.
pub fn run(paths: &[PathBuf], out: &mut dyn Write) -> Result<()> {
    for path in paths {
        admit::each_case(path, |n, text| write_line(out, &line(n, text)))?;
    }
    Ok(())
}

fn parse_case(text: &str) -> serde_json::Result<EvalCase> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Disables the recursion limit, because cases are deeply nested. They come from trusted files.
    deserializer.disable_recursion_limit();
    EvalCase::deserialize(&mut deserializer)
}

/// Evaluates the case in `text`, the line `n` of a file.
#[must_use]
pub fn line(n: usize, text: &str) -> EvalLine {
    let case = match parse_case(text) {
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

/// A planned expression and its variables.
#[derive(Debug)]
pub(super) struct ReadyExpression {
    program: Program,
    bindings: Bindings,
    limit: u64,
}

impl ReadyExpression {
    /// Parses a case and plans its expression. Returns `None` if the parser or the checker rejects the expression.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not a valid case.
    pub(super) fn parse(text: &str) -> Result<Option<Self>> {
        let case = parse_case(text)?;
        let planned = guard(|| plan(&case, &mut EvalLine::default()));
        Ok(planned.ok().and_then(Result::ok).flatten())
    }

    pub(super) fn evaluate(&self) -> Evaluation {
        self.program
            .eval(&self.bindings, Limits::from_cost(self.limit))
    }
}

fn evaluate(case: &EvalCase, line: &mut EvalLine) -> Result<()> {
    let Some(ready) = plan(case, line)? else {
        return Ok(());
    };
    let evaluation = ready.evaluate();
    line.actual_cost = Some(evaluation.cost);
    match evaluation.result {
        Ok(value) => line.value = Some(tagged(&value)),
        Err(error) => line.runtime_error = Some(error.message().to_owned()),
    }
    Ok(())
}

/// Returns the source of a case's expression. Also returns the checked expression, if it has no errors.
///
/// # Errors
///
/// Returns an error if the string is not a valid case.
pub fn checked(text: &str) -> Result<(String, Option<CheckedAst>)> {
    let case = parse_case(text)?;
    let (env, _) = environment(&case)?;
    let Some(ast) = parse(&case.expr) else {
        return Ok((case.expr, None));
    };
    let (checked, found) = checker::check(&Arc::new(ast), &case.expr, &env);
    Ok((case.expr, found.is_empty().then_some(checked)))
}

/// Parses an expression with the syntax of the version.
fn parse(text: &str) -> Option<Ast> {
    let mut n_left = usize::MAX;
    syntax::parse_within(text, version::get().behavior().language, &mut n_left).0
}

/// Plans the expression of a case. If the checker rejects the expression, sets the errors in `line` and returns `None`.
fn plan(case: &EvalCase, line: &mut EvalLine) -> Result<Option<ReadyExpression>> {
    let (env, bindings) = environment(case)?;
    let Some(ast) = parse(&case.expr) else {
        let behavior = version::get().behavior().language;
        line.check_error = Some(antlr::findings(&case.expr, behavior).render(&case.expr));
        return Ok(None);
    };
    let ast = Arc::new(ast);
    let (checked, mut found) = checker::check(&ast, &case.expr, &env);
    if found.is_empty() {
        ast_validators::validate(&checked, &env, &case.expr, &mut found);
    }
    if !found.is_empty() {
        line.check_error = Some(found.render(&case.expr));
        return Ok(None);
    }
    line.output_type = Some(checked.output_type().declared_string());
    line.cost = Some(estimate::estimate(&checked, &UnknownSizes).into());
    let program = Program::plan(&checked, &env, &KubernetesRuntime)?;
    let limit = case.cost_limit.unwrap_or(PER_CALL_LIMIT);
    Ok(Some(ReadyExpression {
        program,
        bindings,
        limit,
    }))
}

fn environment(case: &EvalCase) -> Result<(Env, Bindings)> {
    let base = base_env(version::get());
    let types = schema_types(&case.schema)?;
    let names: BTreeSet<&String> = case
        .vars
        .keys()
        .chain(&case.declare)
        .chain(case.schema.keys())
        .collect();
    let mut variables = Vec::new();
    let mut bindings = Bindings::default();
    let mut named_types = Vec::new();
    for name in names {
        let type_ = types
            .get(name)
            .map_or(Type::Dyn, |decl| decl.cel_type(&capitalized(name)));
        add_named(&type_, &mut named_types);
        variables.push(Variable::new(name.as_str(), type_));
        let Some(raw) = case.vars.get(name) else {
            continue;
        };
        let value = match case.schema.get(name) {
            Some(schema) if case.typed_values => typed_values::typed(
                &Value::from(raw),
                &ValueSchema::new(schema, version::get().behavior()),
            ),
            _ => Value::from(raw),
        };
        bindings.bind(name.as_str(), value);
    }
    if let Some(rules) = &case.authorizer {
        let type_ = Type::Struct(StructType::undeclared(
            "kubernetes.authorization.Authorizer",
        ));
        variables.push(Variable::new("authorizer", type_));
        let authorizer = authorizer(rules, case.user_info.as_ref());
        bindings.bind("authorizer", Value::opaque(authorizer));
    }
    if !types.is_empty() {
        named_types.extend(declared_scalars());
    }
    let env = base.extend(variables).extend_types(named_types);
    Ok((env, bindings))
}

/// Collects the object types within a type, by name. Upstream declares these types, so that expressions can create
/// objects of them.
fn add_named(type_: &Type, found: &mut Vec<(Arc<str>, Type)>) {
    match type_ {
        Type::List(element) => add_named(element, found),
        Type::Map(entry) => add_named(&entry.1, found),
        Type::Struct(object) => {
            found.push((Arc::clone(&object.name), type_.clone()));
            let fields = object.fields.iter();
            for (fields, name) in
                fields.flat_map(|f| f.field_names().into_iter().map(move |n| (f, n)))
            {
                if let Some(of_field) = fields.field_type(&object.name, name) {
                    add_named(&of_field, found);
                }
            }
        }
        _ => {}
    }
}

/// Returns an authorizer that decides by `rules`. `user` is the user of the request.
fn authorizer(rules: &Json, user: Option<&Json>) -> AuthorizerValue {
    let text = |of: &Json, key: &str| of.get(key).and_then(Json::as_str).map(ToOwned::to_owned);
    let rules = rules.as_array().into_iter().flatten().map(|rule| {
        let reason = text(rule, "reason").unwrap_or_default();
        let answer = |decision| AuthorizerAnswer {
            decision,
            reason: reason.clone(),
            error: None,
        };
        AuthorizerRule {
            user: text(rule, "user"),
            verb: text(rule, "verb"),
            group: text(rule, "group"),
            version: text(rule, "version"),
            resource: text(rule, "resource"),
            subresource: text(rule, "subresource"),
            namespace: text(rule, "namespace"),
            name: text(rule, "name"),
            path: text(rule, "path"),
            answer: match text(rule, "decision").as_deref() {
                None | Some("" | "allow") => answer(AuthorizerDecision::Allow),
                Some("deny") => answer(AuthorizerDecision::Deny),
                Some("error") => AuthorizerAnswer {
                    error: Some(reason.clone()),
                    ..AuthorizerAnswer::default()
                },
                Some(_) => answer(AuthorizerDecision::NoOpinion),
            },
        }
    });
    let user = UserInfo {
        name: user
            .and_then(|user| text(user, "username"))
            .unwrap_or_default(),
        ..UserInfo::default()
    };
    AuthorizerValue::new(user, Arc::new(AuthorizerList(rules.collect())))
}

fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + chars.as_str())
        .unwrap_or_default()
}

/// Returns the declared types of the variables. Omits variables whose schema has no type.
fn schema_types(schemas: &BTreeMap<String, Json>) -> Result<BTreeMap<String, Arc<DeclType>>> {
    if schemas.is_empty() {
        return Ok(BTreeMap::new());
    }
    // The schemas are declared as fields of one object, so that no schema is treated as a resource with `metadata`.
    let mut schemas = schemas.clone();
    for schema in schemas.values_mut().filter_map(Json::as_object_mut) {
        schema.remove("x-kubernetes-embedded-resource");
    }
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

/// A value and its type, in the oracle's format.
#[derive(Clone, Debug, Serialize)]
pub struct Tagged {
    #[serde(rename = "type")]
    type_: String,
    value: Payload,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Payload {
    Plain(Json),
    Number(Box<RawValue>),
    Held(Box<Tagged>),
    List(Vec<Tagged>),
    Entries(Vec<[Tagged; 2]>),
}

impl Tagged {
    fn plain(type_: &str, value: impl Into<Json>) -> Self {
        Self::new(type_, Payload::Plain(value.into()))
    }

    fn new(type_: &str, value: Payload) -> Self {
        Self {
            type_: type_.to_owned(),
            value,
        }
    }
}

/// Converts `value` to the oracle's JSON format, which includes the type of each value.
#[must_use]
pub fn tagged(value: &Value) -> Tagged {
    match value {
        Value::Null => Tagged::plain("null", Json::Null),
        Value::Bool(value) => Tagged::plain("bool", *value),
        Value::Int(value) => Tagged::plain("int", *value),
        Value::Uint(value) => Tagged::plain("uint", *value),
        Value::Double(value) => Tagged::new("double", double(*value)),
        Value::String(text) => Tagged::plain("string", &**text),
        Value::Bytes(bytes) => Tagged::plain("bytes", base64(bytes)),
        Value::Duration(nanos) => Tagged::plain("duration", civil::format_go_duration(*nanos)),
        Value::Timestamp(at) => {
            let utc = Timestamp {
                offset_seconds: 0,
                ..*at
            };
            Tagged::plain("timestamp", civil::format_rfc3339(utc))
        }
        Value::Optional(optional) => match optional.get() {
            Some(held) => Tagged::new("optional", Payload::Held(Box::new(tagged(held)))),
            None => Tagged::plain("optional", Json::Null),
        },
        Value::Error(error) => Tagged::plain("error", error.message()),
        Value::Type(type_) => Tagged::plain("type", type_.declared_string()),
        Value::Map(map) => {
            let mut entries: Vec<(String, [Tagged; 2])> = map
                .keys()
                .unwrap_or_default()
                .iter()
                .map(|key| (key_order(key), [tagged(key), tagged(&map.get(key))]))
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            let pairs = entries.into_iter().map(|(_, pair)| pair).collect();
            Tagged::new("map", Payload::Entries(pairs))
        }
        Value::List(list) => {
            let elements = list.iter().map(|element| tagged(&element)).collect();
            Tagged::new("list", Payload::List(elements))
        }
        Value::Opaque(opaque) => {
            let text = opaque
                .text()
                .unwrap_or_else(|| opaque.native_type().to_owned());
            Tagged::plain(&opaque.type_().type_name(), text)
        }
    }
}

/// Returns the sort key of a map key. As in the oracle, keys are sorted by type and then by value.
fn key_order(key: &Value) -> String {
    match key {
        Value::Int(value) => format!("int {:020}", value.cast_unsigned() ^ (1 << 63)),
        Value::Uint(value) => format!("uint {value:020}"),
        other => format!("{} {}", other.type_().type_name(), other.to_go_string()),
    }
}

/// Converts a double to JSON in Go's notation. JSON has no NaN and infinities, so these become strings.
///
/// Source: Go `encoding/json/encode.go`, `floatEncoder.encode`.
fn double(value: f64) -> Payload {
    if value.is_nan() {
        return Payload::Plain("NaN".into());
    }
    if value.is_infinite() {
        let text = if value > 0.0 { "Infinity" } else { "-Infinity" };
        return Payload::Plain(text.into());
    }
    let magnitude = value.abs();
    let text = if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        format!("{value:e}")
    } else {
        format!("{value}")
    };
    match RawValue::from_string(text) {
        Ok(number) => Payload::Number(number),
        Err(_) => Payload::Plain(json!(value)),
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
