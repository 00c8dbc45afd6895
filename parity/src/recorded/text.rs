//! Converts results in the oracle's format to the text of the tables.

use serde_json::{Map, Value};

use super::table_kind::TableKind;
use crate::share::cut_syntax_errors;

/// The result of a case that makes upstream panic. Our result for it is not compared.
pub(super) const PANIC: &str = "panic";

/// Returns the table text for a line of the oracle's output. Omits source lines of errors, and the details of syntax
/// errors.
pub(super) fn render(kind: TableKind, line: &Value) -> String {
    if line.get("panic").is_some() {
        return PANIC.to_owned();
    }
    let text = match kind {
        TableKind::Expressions => evaluation(line),
        TableKind::Admissions => admission(line).to_string(),
        TableKind::Compilations => compilation(line).to_string(),
        TableKind::TypeChecks => type_check(line).to_string(),
        TableKind::Definitions => definition(line).to_string(),
        TableKind::CustomResources => custom_resources(line).to_string(),
        TableKind::Mutations => mutation(line).to_string(),
    };
    text.replace('\n', "\\n")
}

fn field<'a>(line: &'a Value, name: &str) -> Option<&'a str> {
    line.get(name).and_then(Value::as_str)
}

fn items<'a>(line: &'a Value, name: &str) -> &'a [Value] {
    line.get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the messages of an error without source lines.
fn messages(error: &str) -> String {
    let mut error = Value::from(error);
    cut_syntax_errors(&mut error);
    let lines = error.as_str().unwrap_or_default().lines();
    let lines: Vec<_> = lines
        .filter(|line| !line.starts_with(" | "))
        .map(|line| line.replace("ERROR: <input>:", ""))
        .collect();
    lines.join("; ")
}

fn evaluation(line: &Value) -> String {
    if let Some(error) = field(line, "error") {
        return format!("no evaluation: {error}");
    }
    if let Some(error) = field(line, "checkError") {
        let messages = messages(error);
        let is_syntax_error = messages.starts_with("syntax error");
        let head = if is_syntax_error { "" } else { "error at " };
        return format!("{head}{messages}");
    }
    let result = match field(line, "runtimeError") {
        Some(error) => format!("error: {error}"),
        None => value(line.get("value").unwrap_or(&Value::Null)),
    };
    let number = |pointer| line.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let (least, most) = (number("/cost/min"), number("/cost/max"));
    let estimate = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    format!(
        "{result}, {}, cost {}, estimated {estimate}",
        field(line, "outputType").unwrap_or_default(),
        number("/actualCost")
    )
}

/// Returns a tagged value in a notation similar to CEL's.
fn value(tagged: &Value) -> String {
    let type_ = field(tagged, "type").unwrap_or("null");
    let content = tagged.get("value").unwrap_or(&Value::Null);
    let elements = || content.as_array().map_or(&[][..], Vec::as_slice);
    match (type_, content) {
        ("null" | "bool" | "int" | "string", _) => content.to_string(),
        ("uint", _) => format!("{content}u"),
        ("list", _) => {
            let elements: Vec<_> = elements().iter().map(value).collect();
            format!("[{}]", elements.join(", "))
        }
        ("map", _) => {
            let entries = elements().iter().map(|entry| {
                let part = |at| entry.get(at).map(value).unwrap_or_default();
                format!("{}: {}", part(0), part(1))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        ("optional", Value::Null) => "optional()".to_owned(),
        ("optional", _) => format!("optional({})", value(content)),
        (_, Value::String(text)) => format!("{type_}({text})"),
        _ => format!("{type_}({content})"),
    }
}

/// Returns the result of an admission, without the file and line of the case.
fn admission(line: &Value) -> Value {
    let mut line = line.clone();
    if let Some(fields) = line.as_object_mut() {
        for name in ["id", "line", "name"] {
            fields.remove(name);
        }
    }
    cut_syntax_errors(&mut line);
    line
}

/// Returns the result types or errors by field.
fn compilation(line: &Value) -> Value {
    let result = |expression: &Value| match field(expression, "error") {
        Some(error) => {
            let type_ = field(expression, "errorType").unwrap_or_default();
            format!("{type_}: {}", messages(error))
        }
        None => field(expression, "outputType")
            .unwrap_or_default()
            .to_owned(),
    };
    let expressions = items(line, "expressions").iter().map(|expression| {
        let path = field(expression, "fieldRef").unwrap_or_default();
        (path.to_owned(), Value::from(result(expression)))
    });
    with_error(line, expressions.collect())
}

/// Returns the checked types, the params, and the warnings by field.
fn type_check(line: &Value) -> Value {
    let mut fields = Map::new();
    let types = items(line, "types").iter().map(|type_| {
        let part = |name| field(type_, name).unwrap_or_default();
        let group_version = format!("{}/{}", part("group"), part("version"));
        format!("{} {}", group_version.trim_start_matches('/'), part("kind"))
    });
    fields.insert("types".to_owned(), types.collect::<Vec<_>>().into());
    if let Some(params) = line.get("params") {
        fields.insert("params".to_owned(), params.clone());
    }
    for warning in items(line, "warnings") {
        let path = field(warning, "fieldRef").unwrap_or_default();
        let text = field(warning, "warningNormalized").unwrap_or_default();
        fields.insert(path.to_owned(), messages(text).into());
    }
    with_error(line, fields)
}

/// Returns the errors about rules, or the estimated costs if there are none.
fn definition(line: &Value) -> Value {
    let mut fields = Map::new();
    let name = if items(line, "errors").is_empty() {
        "costs"
    } else {
        "errors"
    };
    let mut content = line.get(name).cloned().unwrap_or_default();
    cut_syntax_errors(&mut content);
    fields.insert(name.to_owned(), content);
    with_error(line, fields)
}

/// Returns the outcome of each object.
fn custom_resources(line: &Value) -> Value {
    let outcomes = items(line, "outcomes").iter().map(|outcomes| {
        let outcomes = outcomes.as_array().map_or(&[][..], Vec::as_slice);
        // If the oracle reports several outcomes, the outcome depends on Go's map order.
        match outcomes {
            [outcome] => outcome.clone(),
            outcomes => outcomes.to_vec().into(),
        }
    });
    let outcomes = outcomes.collect::<Vec<_>>();
    with_error(
        line,
        Map::from_iter([("objects".to_owned(), outcomes.into())]),
    )
}

/// Returns the mutated object or the errors.
fn mutation(line: &Value) -> Value {
    let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    let errors = items(line, "errors").iter();
    let errors: Vec<Value> = errors.filter_map(Value::as_str).map(parsed).collect();
    let mut fields = Map::new();
    if !errors.is_empty() {
        fields.insert("errors".to_owned(), errors.into());
    } else if let Some(result) = field(line, "result").filter(|result| !result.is_empty()) {
        let mut object = parsed(result);
        if let Some(fields) = object.as_object_mut() {
            // Go loses these fields when it decodes a built-in object.
            fields.retain(|name, _| name != "apiVersion" && name != "kind");
        }
        fields.insert("result".to_owned(), object);
    }
    with_error(line, fields)
}

fn with_error(line: &Value, mut fields: Map<String, Value>) -> Value {
    if let Some(error) = field(line, "error").filter(|error| !error.is_empty()) {
        fields.insert("error".to_owned(), error.into());
    }
    fields.into()
}
