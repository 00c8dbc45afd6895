//! Tests of the values whose types are added by the libraries.

use std::sync::Arc;

use super::environment::base_env;
use super::runtime::KubernetesRuntime;
use crate::version::KubernetesVersion;
use cel::eval::{Limits, Program};
use cel::types::Type;
use cel::value::{EvalError, Hashed, Value};
use cel::{checker, syntax};

fn evaluated(text: &str) -> Result<Value, EvalError> {
    evaluated_in(KubernetesVersion::DEFAULT, text)
}

fn evaluated_in(version: KubernetesVersion, text: &str) -> Result<Value, EvalError> {
    let ast = Arc::new(syntax::parse(text).0.unwrap());
    let (checked, diagnostics) = checker::check(&ast, text, base_env(version));
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    let program = Program::plan(&checked, base_env(version), &KubernetesRuntime).unwrap();
    let activation: [(&str, Value); 0] = [];
    program.eval(&activation, Limits::from_cost(100_000)).result
}

/// Source: k8s.io/kubernetes `CHANGELOG/CHANGELOG-1.32.md`, v1.32.4 (#130773).
#[test]
fn cidr_contains_networks_with_different_base_address_since_1_32_4() {
    let text = "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')";
    for (version, expected) in [
        ("1.31", false),
        ("1.32.0", false),
        ("1.32.3", false),
        ("1.32.4", true),
        ("1.32", true),
        ("1.33.0", true),
    ] {
        let value = evaluated_in(version.parse().unwrap(), text);
        let is_expected = matches!(value, Ok(Value::Bool(actual)) if actual == expected);
        assert!(is_expected, "{version}: {value:?}");
    }
}

#[test]
fn values_have_go_types_and_strings() {
    for (text, type_, native, go_type, shown) in [
        ("ip('1.2.3.4')", "net.IP", "netip.Addr", "cel.IP", "1.2.3.4"),
        (
            "cidr('10.0.0.0/8')",
            "net.CIDR",
            "netip.Prefix",
            "cel.CIDR",
            "10.0.0.0/8",
        ),
        (
            "semver('1.2.3')",
            "kubernetes.Semver",
            "semver.Version",
            "cel.Semver",
            "1.2.3",
        ),
        (
            "url('https://a/b')",
            "kubernetes.URL",
            "*url.URL",
            "cel.URL",
            "https://a/b",
        ),
        (
            "quantity('1Gi')",
            "kubernetes.Quantity",
            "*resource.Quantity",
            "cel.Quantity",
            "1Gi",
        ),
        (
            "quantity('1Gi').add(1)",
            "kubernetes.Quantity",
            "*resource.Quantity",
            "*cel.Quantity",
            "1073741825",
        ),
    ] {
        let value = evaluated(text).unwrap();
        let Value::Opaque(opaque) = &value else {
            panic!("{value:?}");
        };
        assert_eq!(opaque.type_().type_name(), type_, "{text}");
        assert_eq!(
            (opaque.native_type(), opaque.go_type()),
            (native, go_type),
            "{text}"
        );
        assert_eq!(opaque.text().as_deref(), Some(shown), "{text}");
    }
    let format = evaluated("format.dns1123Label()").unwrap();
    let Value::Opaque(format) = &format else {
        panic!("{format:?}");
    };
    assert_eq!(format.native_type(), "cel.Format");
    assert_eq!(format.text().as_deref(), Some("DNS1123Label"));
    assert!(matches!(format.hashed(), Hashed::Never));
}

#[test]
fn addresses_have_size_and_string() {
    for (text, size, shown) in [
        ("ip('1.2.3.4')", 4, "1.2.3.4"),
        ("ip('::1')", 16, "::1"),
        ("cidr('10.0.0.0/8')", 1, "10.0.0.0/8"),
        ("cidr('10.0.0.0/9')", 2, "10.0.0.0/9"),
        ("cidr('10.0.0.0/0')", 0, "10.0.0.0/0"),
        ("cidr('::/128')", 16, "::/128"),
    ] {
        let value = evaluated(text).unwrap();
        let Value::Opaque(opaque) = &value else {
            panic!("{value:?}");
        };
        assert_eq!(opaque.size(), Some(size), "{text}");
        assert!(
            matches!(opaque.hashed(), Hashed::ByText(text) if text == shown),
            "{text}"
        );
    }
}

#[test]
fn values_of_different_types_are_not_equal() {
    for (value, other) in [
        ("ip('1.2.3.4')", "ip('1.2.3.5')"),
        ("cidr('10.0.0.0/8')", "cidr('10.0.0.0/9')"),
        ("semver('1.2.3')", "semver('1.2.4')"),
        ("url('https://a')", "url('https://b')"),
        ("quantity('1Gi')", "quantity('1G')"),
        ("format.uri()", "format.uuid()"),
    ] {
        for (text, expected) in [
            (format!("{value} == {value}"), true),
            (format!("{value} == {other}"), false),
            (format!("{value} != {other}"), true),
            (format!("{value} in [{other}, {value}]"), true),
            (format!("{value} in [{other}]"), false),
        ] {
            assert!(
                matches!(evaluated(&text), Ok(Value::Bool(is)) if is == expected),
                "{text}"
            );
        }
        let error = evaluated(&format!("dyn({value}) == dyn(1)")).unwrap_err();
        assert_eq!(error.message(), "no such overload", "{value}");
    }
    for (text, message) in [
        (
            "ip('1.2.3.4')",
            "type conversion error from 'net.IP' to 'int'",
        ),
        (
            "cidr('::/1')",
            "type conversion error from 'net.CIDR' to 'int'",
        ),
    ] {
        let Ok(Value::Opaque(opaque)) = evaluated(text) else {
            panic!("{text}");
        };
        let error = opaque.convert_to(&Type::Int).unwrap_err();
        assert_eq!(error.message(), message, "{text}");
    }
    for text in [
        "string(ip('1.2.3.4')) == '1.2.3.4'",
        "string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
    ] {
        assert!(matches!(evaluated(text), Ok(Value::Bool(true))), "{text}");
    }
}
