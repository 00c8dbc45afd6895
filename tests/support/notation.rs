//! Parses the types, variables and functions in test cases. The notation is that of the API server's messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use vap_status_controller::cel::cost::Costs;
use vap_status_controller::cel::decls::{Overload, OverloadRow, Sig, Source, Variable};
use vap_status_controller::cel::env::Library;
use vap_status_controller::cel::types::{
    FieldTypes, OPTIONAL_TYPE, Primitive, StructType, Type, TypeParam,
};

#[track_caller]
pub(crate) fn variable(line: &str, objects: &Objects) -> Variable {
    let (name, type_) = line.split_once(": ").unwrap();
    Variable::new(name, objects.parse_type(type_))
}

/// The object types and constants of a test case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    fields: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    constants: Vec<(&'static str, i64)>,
}

impl Objects {
    /// Parses lines of the form `name { field: type; ... }` and `name = number`.
    #[track_caller]
    pub(crate) fn read(lines: &[&str]) -> Self {
        let mut fields = BTreeMap::new();
        let mut constants = Vec::new();
        for line in lines {
            if let Some((name, number)) = line.split_once(" = ") {
                constants.push((&*name.to_owned().leak(), number.parse().unwrap()));
                continue;
            }
            let (name, rest) = line.split_once(" { ").unwrap();
            let rest = rest.strip_suffix(" }").unwrap().split("; ");
            let of_one = rest.map(|field| {
                let (field, type_) = field.split_once(": ").unwrap();
                (field.to_owned(), type_.to_owned())
            });
            fields.insert(name.to_owned(), of_one.collect());
        }
        Self {
            fields: Arc::new(fields),
            constants,
        }
    }

    pub(crate) fn add_to(&self, library: &mut Library) {
        for (name, value) in &self.constants {
            library.add_constant(name, *value);
        }
    }

    pub(crate) fn types(&self) -> Vec<(Arc<str>, Type)> {
        let names = self.fields.keys();
        names
            .map(|name| (Arc::from(name.as_str()), self.object(name)))
            .collect()
    }

    fn object(&self, name: &str) -> Type {
        Type::Struct(StructType::new(name, Arc::new(self.clone())))
    }

    /// Parses a type. A name is a declared object type, or otherwise an opaque type. `object NAME` is an undeclared
    /// object type.
    pub(crate) fn parse_type(&self, text: &str) -> Type {
        parse_type_with(text, &|name| {
            let object = self.fields.contains_key(name).then(|| self.object(name));
            object.unwrap_or_else(|| Type::opaque(name, Vec::new()))
        })
    }
}

impl FieldTypes for Objects {
    fn field_type(&self, owner: &str, field: &str) -> Option<Type> {
        Some(self.parse_type(self.fields.get(owner)?.get(field)?))
    }

    fn field_names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Parses an overload of the form `id: function(type, ...) -> type`. The prefix `member` means a member function. Its
/// first argument is the receiver.
///
/// Type parameters have the form `<T>`. Signatures in libraries are static, so the signature is leaked.
#[track_caller]
pub(crate) fn overload(line: &str, objects: &Objects) -> Overload {
    let (id, rest) = line.split_once(": ").unwrap();
    let (call, result) = rest.rsplit_once(" -> ").unwrap();
    let member = call.strip_prefix("member ");
    let call = member.unwrap_or(call);
    let (function, args) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
    let args = parts(args).into_iter();
    let args: Vec<Type> = args.map(|arg| objects.parse_type(arg)).collect();
    let result = objects.parse_type(result);
    let mut type_params = Vec::new();
    args.iter()
        .chain([&result])
        .for_each(|type_| collect_params(type_, &mut type_params));
    let declare = match member {
        Some(_) => OverloadRow::member,
        None => OverloadRow::global,
    };
    let (function, id) = (function.to_owned().leak(), id.to_owned().leak());
    let source = Source::new("a case");
    let row = declare(function, id, &[], Sig::Dyn, Costs::ONE, source);
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

/// Splits a list of types at the commas outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut findings = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                findings.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        findings.push(last);
    }
    findings
}

/// Parses a type. `other` resolves names that are not part of the language.
fn parse_type_with(text: &str, other: &dyn Fn(&str) -> Type) -> Type {
    let text = text.trim();
    if let Some(name) = text.strip_prefix("object ") {
        return Type::Struct(StructType::undeclared(name));
    }
    if let Some(name) = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
        return Type::Param(TypeParam::Declared(name.to_owned().leak()));
    }
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        let inner = parts(inner).into_iter();
        let inner: Vec<Type> = inner.map(|part| parse_type_with(part, other)).collect();
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
        name => other(name),
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
