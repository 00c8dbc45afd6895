//! Converts results in the oracle's format to the text of the tables.

use serde_json::{Map, Value};

use crate::bench::Stage;
use crate::share::cut_syntax_errors;

/// The result of a case that makes upstream panic. Our result for it is not compared.
pub(super) const PANIC: &str = "panic";

/// Returns the text for a line of the oracle. It has no source lines of errors, and only the fact of a syntax error.
pub(super) fn render(stage: Stage, line: &Value) -> String {
    if line.get("panic").is_some() {
        return PANIC.to_owned();
    }
    let text = match stage {
        Stage::Eval => evaluation(line),
        Stage::Admit => admission(line).to_string(),
        Stage::Compile => compilation(line).to_string(),
        Stage::Typecheck => type_check(line).to_string(),
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

/// Returns the result of an admission without its place in the file.
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

fn with_error(line: &Value, mut fields: Map<String, Value>) -> Value {
    if let Some(error) = field(line, "error").filter(|error| !error.is_empty()) {
        fields.insert("error".to_owned(), error.into());
    }
    fields.into()
}
