//! Tests of the overload rows of all libraries.

use std::collections::BTreeMap;

use super::*;
use crate::library::version::LATEST;
use cel::cost::RuntimeCost;
use cel::decls::{Binding, CallStyle};
use cel::env::Ident;
use cel::stdlib::comparison;
use cel::types::Type;

/// Returns the overload rows of all libraries.
fn rows() -> Vec<&'static OverloadRow> {
    tables().flatten().collect()
}

fn params(sig: Sig) -> Vec<&'static str> {
    match sig {
        Sig::Param(name) => vec![name],
        Sig::List(of) | Sig::Optional(of) | Sig::Type(of) => params(*of),
        Sig::Map(key, value) => [params(*key), params(*value)].concat(),
        _ => Vec::new(),
    }
}

/// Returns the ids of the overloads of `function`, in their order.
fn ids(function: &str) -> Vec<&'static str> {
    let function = base_env().lookup_function(function);
    function.map_or_else(Vec::new, |f| f.overloads.iter().map(|o| o.row.id).collect())
}

#[test]
fn overload_ids_are_unique_except_equals() {
    let mut seen = BTreeMap::new();
    for row in rows() {
        if let Some(other) = seen.insert(row.id, row.function)
            && row.id != comparison::EQUALS.id
        {
            panic!("{} is an overload of {} and {other}", row.id, row.function);
        }
    }
}

#[test]
fn every_overload_is_evaluated() {
    for row in rows() {
        assert!(!matches!(row.binding, Binding::None), "{}", row.id);
    }
}

/// The cost of an overload that checks the lengths of its arguments is computed before the call, so it must not depend
/// on the result.
#[test]
fn overloads_costed_before_call_have_costs_without_result() {
    for row in rows()
        .into_iter()
        .filter(|row| !row.costed_before.is_empty())
    {
        assert!(
            !matches!(row.costs.actual, RuntimeCost::By(_)),
            "{}",
            row.id
        );
    }
}

#[test]
fn overload_rows_are_well_formed() {
    for row in rows() {
        let OverloadRow {
            function,
            id,
            style,
            args,
            result,
            source,
            ..
        } = *row;
        assert!(!function.is_empty() && !id.is_empty(), "{row:?}");
        assert!(
            style == CallStyle::Global || !args.is_empty(),
            "no receiver: {row:?}"
        );
        assert!(
            source.symbol.starts_with("cel-go ") || source.symbol.starts_with("k8s.io/"),
            "{row:?}"
        );
        // If the arguments do not determine a type parameter of the result, the checker sets the parameter to `dyn`.
        // Only these two overloads have such a parameter.
        let open = params(result)
            .iter()
            .any(|param| !args.iter().any(|arg| params(*arg).contains(param)));
        assert_eq!(
            open,
            matches!(id, "optional_none" | "select_optional_field"),
            "{row:?}"
        );
    }
}

#[test]
fn overloads_of_a_function_have_different_signatures() {
    let mut seen = BTreeMap::new();
    for row in rows() {
        let signature = format!("{} {:?} {:?}", row.function, row.style, row.args);
        let other = seen.insert(signature, row.id);
        assert!(other.is_none_or(|other| other == row.id), "{row:?}");
    }
}

/// The overload of equality, introduced in 1.0, is counted twice: once with CEL's costs and once with the API server's
/// costs.
#[test]
fn number_of_overloads_per_version_is_unchanged() {
    let mut n_introduced = BTreeMap::new();
    for row in rows() {
        assert!(row.source.introduced <= LATEST, "{}", row.id);
        *n_introduced
            .entry(row.source.introduced.to_string())
            .or_insert(0) += 1;
    }
    let n_introduced: Vec<_> = n_introduced.iter().map(|(v, n)| (&**v, *n)).collect();
    assert_eq!(
        n_introduced,
        [
            ("1.0", 221),
            ("1.27", 13),
            ("1.28", 31),
            ("1.29", 5),
            ("1.30", 20),
            ("1.31", 17),
            ("1.32", 2),
            ("1.33", 10),
            ("1.34", 22),
        ]
    );
}

/// A version accepts its own additions only in stored expressions, not in new expressions. The next version accepts
/// them in new expressions as well.
#[test]
fn new_expressions_use_additions_of_previous_version() {
    let newest = rows()
        .iter()
        .map(|row| row.source.introduced)
        .max()
        .unwrap();
    assert!(!is_whole_in(newest));
    assert!(is_whole_in(usable_since(newest)));
}

/// The order of overloads determines the result type of an ambiguous call.
#[test]
fn overloads_have_upstream_order() {
    assert_eq!(
        ids("_[_]"),
        [
            "index_list",
            "index_map",
            "optional_list_index_int",
            "optional_map_index_value"
        ]
    );
    assert_eq!(
        ids("_+_"),
        [
            "add_bytes",
            "add_double",
            "add_duration_duration",
            "add_duration_timestamp",
            "add_timestamp_duration",
            "add_int64",
            "add_list",
            "add_string",
            "add_uint64"
        ]
    );
    assert_eq!(
        ids("indexOf"),
        [
            "list_a_index_of_int",
            "string_index_of_string",
            "string_index_of_string_int"
        ]
    );
    assert_eq!(
        ids("string").last_chunk(),
        Some(&["ip_to_string", "cidr_to_string"])
    );
    assert_eq!(ids("ip"), ["string_to_ip", "cidr_ip"]);
    assert_eq!(
        ids("compareTo"),
        ["quantity_compare_to", "semver_compare_to"]
    );
}

#[test]
fn validators_have_upstream_order() {
    let library = base_env().library();
    let names: Vec<_> = library.validators().iter().map(|v| v.name()).collect();
    assert_eq!(
        names,
        [
            "cel.validator.homogeneous_literals",
            "cel.validator.duration",
            "cel.validator.timestamp",
            "cel.validator.matches",
            "cel.validator.string_format"
        ]
    );
    assert_eq!(library.homogeneous_exempt(), ["format"]);
}

#[test]
fn type_names_without_declaration_do_not_resolve() {
    let named = |name| match base_env().lookup_ident(name) {
        Some(Ident::TypeName(of)) => Some(of),
        _ => None,
    };
    assert_eq!(
        named("optional_type"),
        Some(Type::opaque("optional_type", Vec::new()))
    );
    assert_eq!(named("net.IP"), Some(Type::opaque("net.IP", Vec::new())));
    assert_eq!(named("kubernetes.Quantity"), None);
}
