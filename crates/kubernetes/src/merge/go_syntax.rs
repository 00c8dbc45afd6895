//! Formats values in error messages like the verbs of Go's `fmt`.

use cel::go_text;
use cel::value::format_double;

use super::node::Node;

/// Returns the Go type of the value, as formatted with `%T`.
pub(super) fn type_name<'a>(node: &Node<'a>) -> &'a str {
    match node {
        Node::Null => "<nil>",
        Node::Bool(_) => "bool",
        Node::Int(_) => "int64",
        Node::Double(_) => "float64",
        Node::Text(_) => "string",
        Node::List(_) => "[]interface {}",
        Node::Map(_) => "map[string]interface {}",
        Node::NonJson(other) => &other.go_type,
    }
}

/// Formats the value with `%v`. In upstream, the value is formatted as a part of a pointer to a struct.
pub(super) fn plain(node: &Node<'_>) -> String {
    let mut text = String::from("&{");
    push_plain(&mut text, node);
    text.push('}');
    text
}

fn push_plain(into: &mut String, node: &Node<'_>) {
    match node {
        Node::Null => into.push_str("<nil>"),
        Node::Bool(value) => into.push_str(&value.to_string()),
        Node::Int(value) => into.push_str(&value.to_string()),
        Node::Double(value) => into.push_str(&format_double(*value)),
        Node::Text(text) => into.push_str(text),
        Node::List(items) => {
            into.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    into.push(' ');
                }
                push_plain(into, item);
            }
            into.push(']');
        }
        Node::Map(fields) => {
            into.push_str("map[");
            for (n, (name, field)) in fields.iter().enumerate() {
                if n > 0 {
                    into.push(' ');
                }
                into.push_str(name);
                into.push(':');
                push_plain(into, field);
            }
            into.push(']');
        }
        Node::NonJson(other) => into.push_str(&other.plain),
    }
}

/// Formats the value with `%#v`. In upstream, the value is formatted as a part of a pointer to a struct.
pub(super) fn syntax(node: &Node<'_>) -> String {
    let mut text = String::from("&value.valueUnstructured{Value:");
    push_syntax(&mut text, node);
    text.push('}');
    text
}

fn push_syntax(into: &mut String, node: &Node<'_>) {
    match node {
        Node::Null => into.push_str("interface {}(nil)"),
        Node::Text(text) => into.push_str(&go_text::quote(text)),
        Node::List(items) => {
            into.push_str("[]interface {}{");
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    into.push_str(", ");
                }
                push_syntax(into, item);
            }
            into.push('}');
        }
        Node::Map(fields) => {
            into.push_str("map[string]interface {}{");
            for (n, (name, field)) in fields.iter().enumerate() {
                if n > 0 {
                    into.push_str(", ");
                }
                into.push_str(&go_text::quote(name));
                into.push(':');
                push_syntax(into, field);
            }
            into.push('}');
        }
        Node::NonJson(other) => into.push_str(&other.syntax),
        Node::Bool(_) | Node::Int(_) | Node::Double(_) => push_plain(into, node),
    }
}
