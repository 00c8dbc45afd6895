//! Parses the `fieldPath` of a rule, which is the path of a nested field that the schema declares.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`ValidFieldPath`,
//! `unescapeSingleQuote`).

use serde_json::{Map, Value as Json};

use super::path::{PathStep, written};

/// Converts the path `text` to the format of the API server's errors. Returns `None` if the path is invalid or not
/// declared in `schema`.
///
/// Differs: upstream panics if a path selects a field of map values that have no schema.
pub(super) fn normalized(text: &str, schema: &Map<String, Json>) -> Option<String> {
    let mut tokens = Tokens(text);
    let mut current = Some(schema);
    let mut steps = Vec::new();
    while let Some(token) = tokens.next() {
        let schema = current?;
        let name = match token {
            "[" => {
                let quoted = tokens.next()?;
                let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
                let name = unescaped(inner)?;
                current = Some(step(schema, name, &mut steps)?);
                if tokens.next()? != "]" {
                    return None;
                }
                continue;
            }
            "." => tokens.next()?.to_owned(),
            _ => return None,
        };
        current = Some(step(schema, name, &mut steps)?);
    }
    Some(written(&steps))
}

/// Returns the schema of the field or map entry `name`. Appends `name` to `steps`.
fn step<'a>(
    schema: &'a Map<String, Json>,
    name: String,
    steps: &mut Vec<PathStep>,
) -> Option<&'a Map<String, Json>> {
    let properties = schema.get("properties").and_then(Json::as_object);
    if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
        let property = properties.get(&name)?.as_object()?;
        steps.push(PathStep::Field(name));
        return Some(property);
    }
    match schema.get("additionalProperties")? {
        Json::Object(value) => {
            steps.push(PathStep::Key(name));
            Some(value)
        }
        _ => None,
    }
}

/// A tokenizer for paths. A token is `.`, `[`, `]`, a quoted string, or a name.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.0.as_bytes();
        let first = *bytes.first()?;
        let mut before = 0;
        let mut end = bytes.len();
        for (at, byte) in bytes.iter().enumerate() {
            if first == b'\'' {
                if at > 0 && *byte == b'\'' && before != b'\\' {
                    end = at.saturating_add(1);
                    break;
                }
            } else if matches!(byte, b'.' | b'[' | b']') {
                end = at.max(1);
                break;
            }
            before = *byte;
        }
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(token)
    }
}

/// Decodes a single-quoted string without its quotes. Returns `None` if an escape is invalid.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // A backslash at the end of the string or before a line break is not an escape.
        if c != '\\' || chars.peek().is_none_or(|next| *next == '\n') {
            plain.push(c);
            continue;
        }
        plain.push(match chars.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' => '\'',
            '\\' => '\\',
            _ => return None,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        let schema = json!({"type": "object", "properties": {
            "foo": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                "a": {"type": "string"}, "with.dot": {"type": "string"}}}},
        }});
        let result = normalized(text, schema.as_object().unwrap());
        assert_eq!(result.as_deref(), expect, "{text}");
    }

    #[test]
    fn field_path_of_rule_must_lead_to_declared_field() {
        check(".foo", Some("foo"));
        check(".foo.bar.a", Some("foo[bar].a"));
        check("['foo']['b.c'].a", Some("foo[b.c].a"));
        check(".foo['it\\'s']['with.dot']", Some("foo[it's].with.dot"));
        check(".foo.bar.b", None);
        check("foo", None);
        check(".foo[0]", None);
        check(".foo['x'", None);
        check(".foo['\\q']", None);
        check(".", None);
        check("", Some(""));
        check(".foo['x'].a", Some("foo[x].a"));
        check(".foo['x'.a", None);
        check(".foo[x].a", None);
        check(".foo['x", None);
        check("[", None);
        check(
            ".foo['\\a\\b\\f\\n\\r\\t\\v\\\\x']",
            Some("foo[\u{7}\u{8}\u{c}\n\r\t\u{b}\\x]"),
        );
        check(".foo.bar.a.b", None);
        check("..foo", None);
    }
}
