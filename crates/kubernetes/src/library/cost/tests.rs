//! Tests of the API server's estimates that no expression can show; `tests/cases/cost` has the others.

use super::*;
use crate::library::environment::LIBRARIES;
use cel::cost::UnknownSizes;
use cel::decls::{CallStyle, Sig};

static COSTS: KubernetesCosts<'static> = KubernetesCosts {
    sizes: &UnknownSizes,
};

/// Source: k8s.io/apiserver `pkg/cel/library/cost_test.go`, `TestSize`.
#[test]
fn sizes_of_replaced_strings() {
    #[track_caller]
    fn check(target: u64, args: [(u64, u64); 2], expected: (u64, u64)) {
        let node = |(min, max)| AstNode::of_type(&Type::String, Some(SizeEstimate::new(min, max)));
        let estimate = COSTS.estimate_call_cost(&Call {
            function: "replace",
            overload: "string_replace_string_string",
            target: Some(&node((target, target))),
            args: &args.map(node),
        });
        let size = estimate.and_then(|estimate| estimate.result_size);
        assert_eq!(size, Some(SizeEstimate::new(expected.0, expected.1)));
    }
    check(3, [(0, 0), (1, 1)], (7, 7));
    check(3, [(1, 1), (0, 0)], (0, 3));
    check(4, [(2, 2), (4, 4)], (4, 8));
    check(4, [(0, 1), (0, 2)], (0, 14));
    check(4, [(1, 1), (1, 2)], (4, 8));
    check(4, [(1, 2), (1, 1)], (2, 4));
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost_test.go`, `TestTypeEquality`.
#[test]
fn every_type_has_a_cost_of_equality() {
    use crate::library::types;
    let types = [
        types::AUTHORIZER,
        types::PATH_CHECK,
        types::GROUP_CHECK,
        types::RESOURCE_CHECK,
        types::DECISION,
        types::URL,
        types::QUANTITY,
        types::IP,
        types::CIDR,
        types::NAMED_FORMAT,
        types::SEMVER,
    ];
    for type_ in types.map(Sig::to_type) {
        let node = AstNode::of_type(&type_, Some(SizeEstimate::new(10, 100)));
        let estimate = COSTS.estimate_call_cost(&Call {
            function: "_==_",
            overload: "equals",
            target: None,
            args: &[node, node],
        });
        assert!(estimate.is_some(), "{type_}");
    }
}

/// An overload that was forgotten would cost one unit without a word.
#[test]
fn overloads_of_unknown_cost_are_listed() {
    /// The overloads of the libraries that upstream's estimator does not know: they cost one unit.
    const OF_ONE_UNIT: [&str; 16] = [
        "is_url_string",
        "ip_to_string",
        "cidr_to_string",
        "format.dns1123Label",
        "format.dns1123Subdomain",
        "format.dns1035Label",
        "format.qualifiedName",
        "format.dns1123LabelPrefix",
        "format.dns1123SubdomainPrefix",
        "format.dns1035LabelPrefix",
        "format.labelValue",
        "format.uri",
        "format.uuid",
        "format.byte",
        "format.date",
        "format.datetime",
    ];
    let mut unknown = Vec::new();
    let libraries = LIBRARIES
        .iter()
        .filter(|library| library.name.starts_with("kubernetes."));
    for row in libraries.flat_map(|library| library.overloads.iter().copied().flatten()) {
        let types: Vec<_> = row.args.iter().map(|sig| sig.to_type()).collect();
        let nodes: Vec<_> = types
            .iter()
            .map(|type_| AstNode::of_type(type_, None))
            .collect();
        let (target, args) = match (row.style, nodes.split_first()) {
            (CallStyle::Member, Some((target, args))) => (Some(target), args),
            _ => (None, &*nodes),
        };
        let estimate = COSTS.estimate_call_cost(&Call {
            function: row.function,
            overload: row.id,
            target,
            args,
        });
        if estimate.is_none() {
            unknown.push(row.id);
        }
    }
    assert_eq!(unknown, OF_ONE_UNIT);
}
