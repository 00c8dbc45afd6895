//! YAML as the API server's tools read it: YAML 1.1 scalars over a YAML 1.2 parser.
//!
//! `yes`, `on` and `0777` mean what they mean to kubectl, a key may be given twice (the last one
//! counts), and `<<` merges. What differs: more than 255 nested collections are refused (go-yaml:
//! 10,000), the bound on aliases is on the nodes they make, not on their share, and what is tagged
//! `!!timestamp` need not be one, and a tab may indent a document as a whole.
//!
//! Source: `sigs.k8s.io/yaml` `yaml.go` (`YAMLToJSON`, `convertToJSONableObject`) and
//! `go.yaml.in/yaml/v2` `decode.go` (`decoder.scalar`, `decoder.mapping`, `decoder.merge`).

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

use super::scalar;

/// The most nodes that a document may have, aliases resolved.
const MAX_NODES: usize = 1_000_000;

const CORE: &str = "tag:yaml.org,2002:";

/// The first document of `text` as JSON; null if there is none.
///
/// # Errors
///
/// If `text` is no YAML, or has no counterpart in JSON.
pub fn to_json(text: &str) -> Result<Value> {
    let mut options = granit_parser::options! { strict_indentation: true };
    options.set_emit_comments(false);
    let mut loader = Loader::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        loader
            .event(event)
            .with_context(|| format!("line {}", span.start.line()))?;
    }
    Ok(loader.root.unwrap_or_default())
}

/// A node that is complete, and what a mapping may do with it as a key.
struct Node {
    value: Value,
    is_merge: bool,
}

enum Open {
    Sequence {
        anchor: usize,
        items: Vec<Value>,
    },
    Mapping {
        anchor: usize,
        entries: Map<String, Value>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String),
    Merge,
}

#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    nodes: usize,
    root: Option<Value>,
}

impl Loader {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let node = Node {
                    value: scalar_value(&text, plain, tag.as_deref())?,
                    is_merge: text == "<<"
                        && (plain && tag.is_none() || is_merge_tag(tag.as_deref())),
                };
                self.done(node, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open::Sequence {
                    anchor,
                    items: Vec::new(),
                });
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push(Open::Mapping {
                    anchor,
                    entries: Map::new(),
                    key: None,
                });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::Sequence { anchor, items }) => self.done(
                    Node {
                        value: Value::Array(items),
                        is_merge: false,
                    },
                    anchor,
                ),
                Some(Open::Mapping {
                    anchor, entries, ..
                }) => self.done(
                    Node {
                        value: Value::Object(entries),
                        is_merge: false,
                    },
                    anchor,
                ),
                None => bail!("unbalanced end of a collection"),
            },
            Event::Alias(anchor) => {
                let value = self
                    .anchors
                    .get(&anchor)
                    .context("an anchor's value contains itself")?
                    .clone();
                self.nodes = self.nodes.saturating_add(count(&value));
                self.done(
                    Node {
                        value,
                        is_merge: false,
                    },
                    0,
                )
            }
            _ => Ok(()),
        }
    }

    /// Puts a complete node where it belongs.
    fn done(&mut self, node: Node, anchor: usize) -> Result<()> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > MAX_NODES {
            bail!("more than {MAX_NODES} nodes");
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.value.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node.value),
            Some(Open::Sequence { items, .. }) => items.push(node.value),
            Some(Open::Mapping { entries, key, .. }) => match key.take() {
                None if node.is_merge => *key = Some(Key::Merge),
                None => *key = Some(Key::Name(key_name(node.value)?)),
                Some(Key::Name(name)) => {
                    entries.insert(name, node.value);
                }
                Some(Key::Merge) => merge(entries, node.value)?,
            },
        }
        Ok(())
    }
}

/// Adds the entries of a merge key's value, over what is there: what stands behind the merge key
/// replaces them again, what stands before it does not.
fn merge(entries: &mut Map<String, Value>, value: Value) -> Result<()> {
    match value {
        Value::Object(merged) => entries.extend(merged),
        Value::Array(items) => {
            for item in items.into_iter().rev() {
                let Value::Object(merged) = item else {
                    bail!("map merge requires map or sequence of maps as the value");
                };
                entries.extend(merged);
            }
        }
        _ => bail!("map merge requires map or sequence of maps as the value"),
    }
    Ok(())
}

/// The name that a key has in JSON.
fn key_name(key: Value) -> Result<String> {
    match key {
        Value::String(name) => Ok(name),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) if number.is_f64() || number.is_i64() => Ok(number.to_string()),
        other => bail!("unsupported map key: {other}"),
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>().saturating_add(1),
        Value::Object(entries) => entries.values().map(count).sum::<usize>().saturating_add(1),
        _ => 1,
    }
}

fn full_tag(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}

fn is_merge_tag(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| full_tag(tag).strip_prefix(CORE) == Some("merge"))
}

/// The value of a scalar by its tag, or by its looks if it is plain.
fn scalar_value(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value> {
    let tag = tag.map(full_tag);
    let wanted = match &tag {
        None if plain => None,
        // Quoted, and the non-specific tag, which makes a string of anything.
        None => Some("str"),
        Some(tag) if tag == "!" => Some("str"),
        Some(tag) => Some(tag.strip_prefix(CORE).unwrap_or("str")),
    };
    let value = match wanted {
        None => scalar::resolve(text),
        Some("binary") => {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(Value::from(text))
                .context("!!binary value contains invalid base64 data")?;
            return Ok(Value::String(
                String::from_utf8_lossy(&bytes.0).into_owned(),
            ));
        }
        Some(kind @ ("bool" | "int" | "float" | "null")) => {
            let value = scalar::resolve(text);
            let fits = matches!(
                (&value, kind),
                (scalar::Scalar::Bool(_), "bool")
                    | (scalar::Scalar::Null, "null")
                    | (
                        scalar::Scalar::Int(_) | scalar::Scalar::Uint(_),
                        "int" | "float"
                    )
                    | (scalar::Scalar::Float(_), "float")
            );
            if !fits {
                bail!("cannot decode `{text}` as a !!{kind}");
            }
            value
        }
        Some(_) => scalar::Scalar::Text,
    };
    Ok(match value {
        scalar::Scalar::Null => Value::Null,
        scalar::Scalar::Bool(flag) => Value::Bool(flag),
        scalar::Scalar::Int(number) => Value::from(number),
        scalar::Scalar::Uint(number) => Value::from(number),
        scalar::Scalar::Float(number) => float(number)?,
        scalar::Scalar::Text => Value::from(text),
    })
}

/// A float as Go writes it in JSON: without a fraction where it has none, so that `1e3` may be read
/// as an integer.
fn float(number: f64) -> Result<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number)
        .map(Value::Number)
        .context("unsupported value: NaN or infinity")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_read_as_kubectl_reads_them() {
        for (text, wanted) in [
            ("", json!(null)),
            ("# nothing", json!(null)),
            (
                "a: yes\nb: 'yes'\nc: !!str yes\nd: ! 5",
                json!({"a": true, "b": "yes", "c": "yes", "d": "5"}),
            ),
            (
                "a: 0777\nb: 1e3\nc: 1.5\nd: 2001-01-01",
                json!({"a": 511, "b": 1000, "c": 1.5, "d": "2001-01-01"}),
            ),
            ("yes: 1\n2: 2\n1.5: 3", json!({"true": 1, "2": 2, "1.5": 3})),
            ("a: 1\na: 2", json!({"a": 2})),
            (
                "x: &x {a: 1, b: 2}\nw: {b: 3, <<: *x}\nz: {<<: *x, b: 3}",
                json!({
                    "x": {"a": 1, "b": 2}, "w": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}
                }),
            ),
            ("<<: [{a: 1}, {a: 2, b: 2}]", json!({"a": 1, "b": 2})),
            ("'<<': 1", json!({"<<": 1})),
            ("a: !!binary aGVsbG8=", json!({"a": "hello"})),
            ("a: 1\n...\nb: [", json!({"a": 1})),
            ("{\"a\": [1, null, true]}", json!({"a": [1, null, true]})),
        ] {
            assert_eq!(to_json(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_yaml_or_has_no_json_is_refused() {
        for text in [
            "a: [",
            "? [a]\n: b",
            "~: a",
            "a: .inf",
            "<<: 5",
            "a: !!int x",
            "a: &a [*a]",
            "a: *b",
        ] {
            assert!(to_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn aliases_cannot_exhaust_the_process() {
        let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
        for n in 1..20 {
            let items = vec![format!("*a{}", n - 1); 9].join(", ");
            lines.push(format!("a{n}: &a{n} [{items}]"));
        }
        let text = lines.join("\n");
        assert!(to_json(&text).unwrap_err().to_string().contains("line"));
    }

    #[test]
    fn depth_is_bounded() {
        assert!(to_json(&"[".repeat(100_000)).is_err());
    }
}
