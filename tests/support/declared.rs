//! Summarizes types in the format of `oracle decl --summary`: the number of fields, and a hash.

use std::sync::Arc;

use vap_status_controller::schema::{DeclKind, DeclType};

/// Returns the number of fields and nested types in `type_`, and the hash of their descriptions.
pub(crate) fn summary(type_: &Arc<DeclType>) -> (usize, String) {
    let mut lines = Vec::new();
    if type_.is_exposed() {
        write_lines(&mut lines, "", type_, false);
    }
    (lines.len(), format!("{:016x}", fnv1a(&lines)))
}

/// Writes a line for each nested type of `type_`, in the format of the oracle's hash.
fn write_lines(lines: &mut Vec<String>, path: &str, type_: &Arc<DeclType>, required: bool) {
    let name = match &type_.kind {
        DeclKind::Bool => "bool",
        DeclKind::Int => "int",
        DeclKind::Double => "double",
        DeclKind::String => "string",
        DeclKind::Bytes => "bytes",
        DeclKind::Duration => "duration",
        DeclKind::Timestamp => "timestamp",
        DeclKind::IntOrString => "dyn",
        DeclKind::List(_) => "list",
        DeclKind::Map(_) => "map",
        DeclKind::Object(_) => "object",
        // The oracle's descriptions contain no other types, so any other type leads to a different
        // hash.
        _ => "other",
    };
    let (max, min) = (type_.max_elements, type_.min_serialized_size);
    lines.push(format!("{path}\t{name}\t{max}\t{min}\t{required}\n"));
    for field in type_.declared_fields() {
        if field.type_.is_exposed() {
            let path = format!("{path}.{}", field.name);
            write_lines(lines, &path, &field.type_, field.required);
        }
    }
    match &type_.kind {
        DeclKind::List(elem) => write_lines(lines, &format!("{path}[0]"), elem, false),
        DeclKind::Map(value) => write_lines(lines, &format!("{path}['']"), value, false),
        _ => {}
    }
}

fn fnv1a(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
