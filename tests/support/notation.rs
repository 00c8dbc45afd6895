//! Types, variables and functions as the cases write them: in the form that the API server prints.

use vap_status_controller::cel::decls::{Overload, OverloadRow, Sig, Variable};
use vap_status_controller::cel::types::{OPTIONAL_TYPE, Primitive, Type, TypeParam};

/// `name: type`.
#[track_caller]
pub(crate) fn variable(line: &str) -> Variable {
    let (name, type_) = line.split_once(": ").unwrap();
    Variable::new(name, parse_type(type_))
}

/// `id: function(type, ...) -> type`; before a member stands `member`, and its receiver is the first argument.
///
/// Type parameters are written `<T>`. A signature lives for ever, as those of the libraries do.
#[track_caller]
pub(crate) fn overload(line: &str) -> Overload {
    let (id, rest) = line.split_once(": ").unwrap();
    let (call, result) = rest.rsplit_once(" -> ").unwrap();
    let member = call.strip_prefix("member ");
    let call = member.unwrap_or(call);
    let (function, args) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
    let args: Vec<Type> = parts(args).into_iter().map(parse_type).collect();
    let result = parse_type(result);
    let mut type_params = Vec::new();
    args.iter()
        .chain([&result])
        .for_each(|type_| collect_params(type_, &mut type_params));
    let declare = match member {
        Some(_) => OverloadRow::member,
        None => OverloadRow::global,
    };
    let (function, id) = (function.to_owned().leak(), id.to_owned().leak());
    let row = declare(function, id, &[], Sig::Dyn, "a case");
    Overload {
        row: Box::leak(Box::new(row)),
        args: args.into(),
        result,
        type_params: type_params.into(),
    }
}

fn collect_params(type_: &Type, names: &mut Vec<&'static str>) {
    match type_ {
        Type::Param(TypeParam::Declared(name)) if !names.contains(name) => names.push(name),
        Type::List(elem) => collect_params(elem, names),
        Type::Map(entry) => {
            collect_params(&entry.0, names);
            collect_params(&entry.1, names);
        }
        Type::Opaque(opaque) => opaque
            .params
            .iter()
            .for_each(|param| collect_params(param, names)),
        Type::Type(Some(of)) => collect_params(of, names),
        _ => {}
    }
}

/// The parts of a list of types: what is between the commas outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

/// Reads a type; a name that is none of the language's is that of an opaque type.
#[track_caller]
pub(crate) fn parse_type(text: &str) -> Type {
    let text = text.trim();
    if let Some(name) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
        return Type::Param(TypeParam::Declared(name.to_owned().leak()));
    }
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        let inner: Vec<Type> = parts(inner).into_iter().map(parse_type).collect();
        return match (name, inner.as_slice()) {
            ("list", [elem]) => Type::list(elem.clone()),
            ("map", [key, value]) => Type::map(key.clone(), value.clone()),
            ("type", [of]) => Type::type_of(of.clone()),
            (OPTIONAL_TYPE, [value]) => Type::optional(value.clone()),
            ("wrapper", [of]) => Type::Wrapper(primitive(of)),
            _ => Type::opaque(name, inner),
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "any" | "google.protobuf.Any" => Type::Any,
        "null" | "null_type" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
        "type" => Type::Type(None),
        "error" => Type::Error,
        opaque => Type::opaque(opaque, Vec::new()),
    }
}

fn primitive(type_: &Type) -> Primitive {
    match type_ {
        Type::Bool => Primitive::Bool,
        Type::Bytes => Primitive::Bytes,
        Type::Double => Primitive::Double,
        Type::Int => Primitive::Int,
        Type::String => Primitive::String,
        Type::Uint => Primitive::Uint,
        other => panic!("a wrapper of {other}"),
    }
}
