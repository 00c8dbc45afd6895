//! Tests of the overload rows of all libraries.

use std::collections::BTreeMap;

use super::*;
use crate::version::KubernetesVersion;
use cel::cost::RuntimeCost;
use cel::decls::{Binding, CallStyle};
use cel::env::Ident;
use cel::types::Type;

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

/// Returns the ids of the overloads of `function`, in declaration order.
fn ids(function: &str) -> Vec<&'static str> {
    let function = base_env(KubernetesVersion::DEFAULT).lookup_function(function);
    function.map_or_else(Vec::new, |f| f.overloads.iter().map(|o| o.row.id).collect())
}

#[test]
fn every_overload_has_an_implementation() {
    for row in rows() {
        assert!(!matches!(row.binding, Binding::None), "{}", row.id);
    }
}

/// For some overloads, the cost is charged before the call, because it depends only on the lengths of the arguments.
#[test]
fn cost_charged_before_a_call_does_not_depend_on_its_result() {
    for row in rows()
        .into_iter()
        .filter(|row| !row.precharge_lengths.is_empty())
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
        // The checker sets a type parameter of the result to `dyn` if no argument determines it. Only the two overloads
        // below have such a parameter.
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

/// The two rows of the equality operator count as one overload in each version, because only the first row is used: the
/// one with the API server's costs.
#[test]
fn number_of_overloads_per_version_is_unchanged() {
    let n_overloads = |version: KubernetesVersion| -> usize {
        let functions = base_env(version).library().functions();
        functions.map(|function| function.overloads.len()).sum()
    };
    let counts: Vec<_> = KubernetesVersion::supported()
        .map(|version| (version.to_string(), n_overloads(version)))
        .collect();
    let counts: Vec<_> = counts.iter().map(|(v, n)| (&**v, *n)).collect();
    assert_eq!(
        counts,
        [
            ("1.30", 285),
            ("1.31", 302),
            ("1.32", 304),
            ("1.33", 318),
            ("1.34", 340),
            ("1.35", 340),
            ("1.36", 340),
            ("1.37", 340),
        ]
    );
}

/// Two rows with the same id are never available in the same release, except the two rows of equality.
#[test]
fn overloads_with_same_id_are_never_in_the_same_release() {
    for version in KubernetesVersion::supported() {
        let mut ids = BTreeMap::new();
        for row in rows()
            .iter()
            .filter(|row| row.source.available.includes(version.into()))
        {
            let other = ids.insert((row.function, row.id), row);
            assert!(other.is_none() || row.id == "equals", "{version}: {row:?}");
        }
    }
}

/// The version that introduces a function accepts it in stored expressions only. The next version also accepts it in
/// new expressions.
#[test]
fn new_expressions_cannot_use_functions_introduced_in_the_same_version() {
    let newest = KubernetesVersion::NEWEST;
    assert!(!is_whole_in(newest));
    assert!(is_whole_in(KubernetesVersion {
        min_compat: newest.minor,
        ..newest
    }));
}

/// If several overloads match a call, their order determines the result type.
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
    let library = base_env(KubernetesVersion::DEFAULT).library();
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
    let named = |name| match base_env(KubernetesVersion::DEFAULT).lookup_ident(name) {
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

/// Functions whose results have an unknown size. A cost that depends on the size of such a result is unbounded.
const RESULTS_OF_UNKNOWN_SIZE: [&str; 35] = [
    "add",
    "check",
    "cidr",
    "error",
    "fieldSelector",
    "format.byte",
    "format.date",
    "format.datetime",
    "format.dns1035Label",
    "format.dns1035LabelPrefix",
    "format.dns1123Label",
    "format.dns1123LabelPrefix",
    "format.dns1123Subdomain",
    "format.dns1123SubdomainPrefix",
    "format.labelValue",
    "format.named",
    "format.qualifiedName",
    "format.uri",
    "format.uuid",
    "getQuery",
    "group",
    "ip",
    "labelSelector",
    "masked",
    "name",
    "namespace",
    "path",
    "quantity",
    "reason",
    "resource",
    "semver",
    "serviceAccount",
    "sub",
    "subresource",
    "validate",
];

/// If the values of a function's result type vary in size, the function either has a rule for the size or is in
/// [`RESULTS_OF_UNKNOWN_SIZE`].
#[test]
fn results_with_size_have_a_bound() {
    let has_size = |sig: Sig| {
        !matches!(
            sig,
            Sig::Null
                | Sig::Bool
                | Sig::Int
                | Sig::Uint
                | Sig::Double
                | Sig::Duration
                | Sig::Timestamp
                | Sig::Type(_)
        )
    };
    let rows = rows().into_iter().filter(|row| has_size(row.result));
    let mut unknown: Vec<_> = rows
        .map(|row| row.function)
        .filter(|function| cel::bounds::result_bound(function).is_none())
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    assert_eq!(unknown, RESULTS_OF_UNKNOWN_SIZE);
}
