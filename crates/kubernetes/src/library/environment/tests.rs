//! Walks all rows of all libraries, and all versions.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use cel::decls::{Binding, CallStyle};
use cel::env::Ident;
use cel::types::Type;

/// Every row of the libraries that the latest version has.
fn rows() -> Vec<&'static OverloadRow> {
    LIBRARIES
        .iter()
        .filter(|library| library.is_in(KubernetesVersion::LATEST))
        .flat_map(|library| library.overloads.iter().copied().flatten())
        .collect()
}

fn params(sig: Sig) -> Vec<&'static str> {
    match sig {
        Sig::Param(name) => vec![name],
        Sig::List(of) | Sig::Optional(of) | Sig::Type(of) => params(*of),
        Sig::Map(key, value) => [params(*key), params(*value)].concat(),
        _ => Vec::new(),
    }
}

/// The overload ids of `function`, in order.
fn ids(version: KubernetesVersion, function: &str) -> Vec<&'static str> {
    let function = base_env(version).lookup_function(function);
    function.map_or_else(Vec::new, |f| f.overloads.iter().map(|o| o.row.id).collect())
}

#[test]
fn nothing_is_missing() {
    let functions: BTreeSet<_> = rows().iter().map(|row| row.function).collect();
    assert_eq!(rows().len(), 340);
    assert_eq!(functions.len(), 154);
}

#[test]
fn ids_are_unique() {
    let mut seen = BTreeMap::new();
    for row in rows() {
        if let Some(other) = seen.insert(row.id, row.function) {
            panic!("{} of {} and of {other}", row.id, row.function);
        }
    }
}

#[test]
fn every_function_of_a_library_is_evaluated() {
    let tables = [
        authz::ROWS,
        authz::SELECTORS,
        cidr::ROWS,
        ext::lists::VERSION_0,
        ext::lists::VERSION_1,
        ext::lists::VERSION_2,
        ext::sets::ROWS,
        ext::strings::VERSION_0,
        ext::strings::VERSION_1,
        format::CONSTANTS,
        format::ROWS,
        ip::ROWS,
        lists::ROWS,
        quantity::ROWS,
        regex::ROWS,
        semver::VERSION_0,
        semver::VERSION_1,
        url::ROWS,
    ];
    for row in tables.into_iter().flatten() {
        assert!(!matches!(row.binding, Binding::None), "{}", row.id);
    }
}

#[test]
fn rows_are_well_formed() {
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
            source.starts_with("cel-go ") || source.starts_with("k8s.io/"),
            "{row:?}"
        );
        // What the arguments leave open is `dyn` at the end of a check: only these two mean that.
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
fn overloads_of_a_function_differ() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let signature = format!("{} {:?} {:?}", row.function, row.style, row.args);
        assert!(seen.insert(signature), "{row:?}");
    }
}

#[test]
fn no_macro_hides_an_overload() {
    let macros = &base(KubernetesVersion::LATEST).macros;
    for row in rows() {
        let n_args = row.args.len() - usize::from(row.style == CallStyle::Member);
        let called = macro_name(row.function, n_args);
        assert!(!macros.contains(&called), "{row:?}");
    }
}

#[test]
fn versions() {
    let n_overloads = |minor| {
        let env = base_env(KubernetesVersion::new(1, minor));
        env.library()
            .functions()
            .map(|function| function.overloads.len())
            .sum::<usize>()
    };
    // Of 1.27 and before, without the 24 comparisons of mixed numbers.
    assert_eq!(n_overloads(0), 196);
    assert_eq!(n_overloads(26), 196);
    assert_eq!(n_overloads(27), 209);
    assert_eq!(n_overloads(28), 264);
    assert_eq!(n_overloads(29), 269);
    assert_eq!(n_overloads(30), 289);
    assert_eq!(n_overloads(31), 306);
    assert_eq!(n_overloads(32), 308);
    assert_eq!(n_overloads(33), 318);
    assert_eq!(n_overloads(34), 340);
    assert_eq!(n_overloads(36), 340);
    assert_eq!(n_overloads(99), 340);
}

#[test]
fn versions_share_what_is_equal() {
    let base = |minor| base(KubernetesVersion::new(1, minor));
    assert!(std::ptr::eq(base(34), base(36)));
    assert!(!std::ptr::eq(base(33), base(34)));
    assert!(std::ptr::eq(base(0), base(26)));
}

/// The order of overloads decides the type of an ambiguous call.
#[test]
fn order() {
    let ids = |function| ids(KubernetesVersion::LATEST, function);
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
fn macros() {
    let macros = &base(KubernetesVersion::LATEST).macros;
    assert_eq!(macros.len(), 20);
    assert!(macros.contains(&macro_name("existsOne", 3)));
    // Of two variables only: cel-go has the other, but does not enable it.
    assert!(!macros.contains(&macro_name("existsOne", 2)));
    assert_eq!(base(V1_27).macros.len(), 7);
}

#[test]
fn validators() {
    let names = |version| {
        base_env(version)
            .library()
            .validators()
            .iter()
            .map(|v| v.name())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(V1_28), ["cel.validator.homogeneous_literals"]);
    assert_eq!(
        names(V1_29),
        [
            "cel.validator.homogeneous_literals",
            "cel.validator.duration",
            "cel.validator.timestamp",
            "cel.validator.matches",
            "cel.validator.string_format"
        ]
    );
    assert_eq!(base_env(V1_29).library().homogeneous_exempt(), ["format"]);
    assert!(base_env(V1_28).library().homogeneous_exempt().is_empty());
}

#[test]
fn named_types() {
    let named = |name| match base_env(KubernetesVersion::LATEST).lookup_ident(name) {
        Some(Ident::TypeName(of)) => Some(of),
        _ => None,
    };
    assert_eq!(
        named("optional_type"),
        Some(Type::opaque("optional_type", Vec::new()))
    );
    assert_eq!(named("net.IP"), Some(Type::opaque("net.IP", Vec::new())));
    assert_eq!(named("kubernetes.Quantity"), None);
    assert_eq!(base_env(V1_29).lookup_ident("net.IP"), None);
}
