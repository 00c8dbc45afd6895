//! The standard library: operators, functions and types of every environment.
//!
//! cel-go also declares the former names `_in_`, `in` and `__not_strictly_false__`. These names are disabled. They
//! are omitted here, because no expression can call them.
//!
//! Source: cel-go `common/stdlib/standard.go`, `common/types/provider.go`.

pub mod arithmetic;
pub mod collection;
pub mod comparison;
pub mod convert;
pub mod costs;
pub mod logic;
pub mod messages;
pub mod string;
pub mod time;

use super::decls::OverloadRow;
use super::env::Library;
use super::types::{Type, TypeParam};
use super::version::Release;

/// All tables of overloads, in upstream's order.
pub static TABLES: &[&[OverloadRow]] = &[
    logic::ROWS,
    arithmetic::ROWS,
    comparison::ROWS,
    collection::ROWS,
    convert::ROWS,
    string::ROWS,
    time::ROWS,
];

/// Returns a library of the default release with the standard functions, types and messages.
#[must_use]
pub fn library() -> Library {
    library_of(Release::default())
}

/// Returns a library of `release` with the standard functions, types and messages.
#[must_use]
pub fn library_of(release: Release) -> Library {
    let mut library = Library::new(release);
    for rows in TABLES {
        library.add_overloads(rows);
    }
    add_types_to(&mut library);
    library
}

/// Declares the types and messages that expressions can refer to.
///
/// As in upstream, the parameters of `list` and `map` remain type parameters. They are never bound and become
/// `dyn` at the end of a check.
///
/// Source: cel-go `common/stdlib/standard.go`, `stdTypes`.
pub fn add_types_to(library: &mut Library) {
    let param = |name| Type::Param(TypeParam::Declared(name));
    library.add_type("bool", Type::Bool);
    library.add_type("bytes", Type::Bytes);
    library.add_type("double", Type::Double);
    library.add_type("int", Type::Int);
    library.add_type("list", Type::list(param("A")));
    library.add_type("map", Type::map(param("A"), param("B")));
    library.add_type("null_type", Type::Null);
    library.add_type("string", Type::String);
    library.add_type("type", Type::Type(None));
    library.add_type("uint", Type::Uint);
    messages::add_to(library);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Env, Ident};

    fn env() -> Env {
        Env::new(library().into())
    }

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let actual = match env().lookup_ident(name) {
            Some(Ident::Variable(of)) => of.declared_string(),
            Some(Ident::TypeName(of)) => Type::type_of(of).declared_string(),
            None => "none".into(),
        };
        assert_eq!(actual, expected, "{name}");
    }

    #[test]
    fn type_names_resolve_as_in_upstream() {
        check("int", "type(int)");
        check("null_type", "type(null_type)");
        check("type", "type(type)");
        check("list", "type(list(<A>))");
        check("map", "type(map(<A>, <B>))");
        check("dyn", "none");
        check("duration", "none");
        check("error", "none");
    }

    #[test]
    fn message_names_resolve_as_in_upstream() {
        check("google.protobuf.Duration", "type(google.protobuf.Duration)");
        check("google.protobuf.Any", "type(google.protobuf.Any)");
        check("google.protobuf.Empty", "type(google.protobuf.Empty)");
        check("google.protobuf.Value", "type(dyn)");
        check("google.protobuf.ListValue", "type(list(dyn))");
        check("google.protobuf.Struct", "type(map(string, dyn))");
        check("google.protobuf.Int32Value", "type(wrapper(int))");
        check("google.protobuf.FloatValue", "type(wrapper(double))");
        check("google.protobuf.NullValue", "none");
        check("google.protobuf.NullValue.NULL_VALUE", "int");
        check("google.protobuf.FieldMask", "none");
    }

    #[test]
    fn message_fields_resolve_as_in_upstream() {
        let library = library();
        let field = |message, field| {
            library
                .message(message)
                .and_then(|row| row.field(field))
                .map(|of| of.declared_string())
        };
        assert_eq!(
            field("google.protobuf.Any", "value").as_deref(),
            Some("bytes")
        );
        assert_eq!(
            field("google.protobuf.Struct", "fields").as_deref(),
            Some("map(string, dyn)")
        );
        assert_eq!(
            field("google.protobuf.UInt32Value", "value").as_deref(),
            Some("uint")
        );
        assert_eq!(field("google.protobuf.Empty", "value"), None);
    }

    #[test]
    fn former_names_of_operators_are_undefined() {
        for name in ["_in_", "in", "__not_strictly_false__"] {
            assert!(env().lookup_function(name).is_none(), "{name}");
        }
    }
}
