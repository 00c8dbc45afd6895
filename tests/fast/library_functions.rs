//! Tests the values, errors and costs of library functions: those of Kubernetes and those of the CEL extensions.
//!
//! The expected results are the API server's, including its quirks.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::eval::{Bindings, Evaluation, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::version::KubernetesVersion;

const LIMIT: u64 = 1_000_000;

/// Evaluates `expression`, in which `text` is a variable.
#[track_caller]
fn evaluate(expression: &str, text: &str) -> Evaluation {
    let variable = Variable::new("text", Type::String);
    let env = base_env(KubernetesVersion::DEFAULT).extend(vec![variable]);
    let (ast, found) = syntax::parse(expression);
    assert!(found.is_empty(), "{}", found.render(expression));
    let (checked, found) = checker::check(&Arc::new(ast.unwrap()), expression, &env);
    assert!(found.is_empty(), "{}", found.render(expression));
    let program = Program::plan(&checked, &env, &KubernetesRuntime).unwrap();
    let mut bindings = Bindings::default();
    bindings.bind("text", Value::from(text));
    program.eval(&bindings, Limits::from_cost(LIMIT))
}

/// Asserts the result and the cost of each expression.
#[track_caller]
fn check(rows: &[(&str, &str, u64)]) {
    for (expression, expected, cost) in rows {
        let evaluation = evaluate(expression, "");
        let findings = match evaluation.result {
            Ok(value) => value.to_go_string(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(findings, *expected, "{expression}");
        assert_eq!(evaluation.cost, *cost, "{expression}");
    }
}

#[test]
fn quantity_functions_have_upstream_results() {
    check(&[
        ("quantity('1.5Gi').add(1)", "1610612737", 2),
        ("quantity('50k').sub(quantity('1Ki'))", "48976", 3),
        (
            "[quantity('1.500'), quantity('+5'), quantity('-'), quantity('007Ki'), quantity('0.5Ki'), quantity('1000E')]",
            "[1.500, +5, 0, 007Ki, 512, 1]",
            16,
        ),
        (
            "[quantity('1e30'), quantity('9999999999999999999999999999999999999G'), quantity('0.0000000001'), quantity('-1.0000000001')]",
            "[1e30, 9999999999999999999999999999999999999G, 1n, -1000000001n]",
            19,
        ),
        (
            "[quantity('8Ei'), quantity('9Ei'), quantity('1e100'), quantity('100000000000000000000m')]",
            "[9223372036854775807, 9223372036854775807, 10e99, 100P]",
            16,
        ),
        (
            "[quantity('1e99999999999'), quantity('1e-1000000')]",
            "[10e1215752190, 1e-9]",
            13,
        ),
        ("quantity('12345678901234567890').isInteger()", "false", 3),
        (
            "quantity('12345678901234567890').asInteger()",
            "error: cannot convert value to integer",
            3,
        ),
        ("quantity('1.5k').asInteger()", "1500", 2),
        (
            "[quantity('1.5k').asApproximateFloat(), quantity('1n').asApproximateFloat(), quantity('1e400').asApproximateFloat()]",
            "[1500, 1e-09, +Inf]",
            16,
        ),
        (
            "[sign(quantity('-1m')), sign(quantity('0')), sign(quantity('1'))]",
            "[-1, 0, 1]",
            16,
        ),
        ("quantity('1k') == quantity('1000')", "true", 3),
        (
            "quantity('2') == quantity('1').add(1)",
            "error: no such overload",
            4,
        ),
        ("quantity('1').add(1) == quantity('2')", "true", 4),
        (
            "[quantity('5')].map(q, [q.isLessThan(quantity('12345678901234567890')), q.isInteger()])",
            "[[true, false]]",
            40,
        ),
        (
            "[quantity('12345678901234567890')].map(q, [q.add(q), q])",
            "[[24691357802469135780, 24691357802469135780]]",
            39,
        ),
        (
            "quantity('1Kii')",
            "error: unable to parse quantity's suffix",
            1,
        ),
        (
            "quantity('1.2.3')",
            "error: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            1,
        ),
        (
            "isQuantity('200K') || isQuantity('Mi') || isQuantity('1e')",
            "true",
            2,
        ),
    ]);
}

#[test]
fn ip_and_cidr_functions_have_upstream_results() {
    check(&[
        ("ip('2001:DB8:0:0::1')", "2001:db8::1", 2),
        (
            "ip('fe80::1%eth0')",
            r#"error: IP address "fe80::1%eth0" with zone value is not allowed"#,
            2,
        ),
        (
            "ip('::ffff:1.2.3.4')",
            r#"error: IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed"#,
            2,
        ),
        (
            "ip('1.2.3')",
            r#"error: IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address too short"#,
            1,
        ),
        (
            "[ip.isCanonical('2001:DB8::1'), ip.isCanonical('2001:db8::1')]",
            "[false, true]",
            16,
        ),
        (
            "ip.isCanonical('x')",
            r#"error: IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP"#,
            1,
        ),
        (
            "[ip('224.0.0.1').isLinkLocalMulticast(), ip('10.0.0.1').isGlobalUnicast(), ip('127.9.9.9').isLoopback(), ip('::').isUnspecified(), ip('fe80::1').isLinkLocalUnicast()]",
            "[true, true, true, true, true]",
            20,
        ),
        ("[ip('1.2.3.4').family(), ip('::').family()]", "[4, 6]", 14),
        ("cidr('10.1.2.3/8').masked()", "10.0.0.0/8", 2),
        ("cidr('10.1.2.3/8') == cidr('10.0.0.0/8')", "false", 3),
        ("string(cidr('2001:db8::1/64').ip())", "2001:db8::1", 4),
        (
            "cidr('10.0.0.0/8').containsIP('x')",
            "error: no such overload",
            3,
        ),
        (
            "cidr('10.0.0.0/8').containsCIDR('x')",
            r#"error: network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("x"): no '/'"#,
            5,
        ),
        (
            "[cidr('10.0.0.0/8').containsIP('10.1.1.1'), cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16'), cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')]",
            "[true, true, false]",
            25,
        ),
        (
            "cidr('1.2.3.4/33')",
            r#"error: network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("1.2.3.4/33"): prefix length out of range"#,
            1,
        ),
        (
            "ip('::1') == ip('127.0.0.1') || dyn(ip('::1')) == cidr('::1/128')",
            "error: no such overload",
            7,
        ),
    ]);
}

#[test]
fn url_functions_have_upstream_results() {
    check(&[
        (
            "url('https://u:p@[::1]:80/a%20b?x=1&x=2&y#f')",
            "https://u:p@[::1]:80/a%20b?x=1&x=2&y#f",
            4,
        ),
        (
            "[url('https://u:p@[::1]:80/a%20b')].map(u, [u.getScheme(), u.getHost(), u.getHostname(), u.getPort(), u.getEscapedPath()])",
            "[[https, [::1]:80, ::1, 80, /a%20b]]",
            46,
        ),
        ("url('/p?x=%zz&y=1').getQuery()", "{y: [1]}", 3),
        (
            "url('a b')",
            r#"error: URL parse error during conversion from string: parse "a b": invalid URI for request"#,
            1,
        ),
        (
            "url('http://a b/')",
            r#"error: URL parse error during conversion from string: parse "http://a b/": invalid character " " in host name"#,
            2,
        ),
        (
            "url('http://h:80a/')",
            r#"error: URL parse error during conversion from string: parse "http://h:80a/": invalid port ":80a" after host"#,
            2,
        ),
        (
            "url('http://[::1')",
            r#"error: URL parse error during conversion from string: parse "http://[::1": missing ']' in host"#,
            2,
        ),
        ("isURL('http://a/%zz') || isURL('a/b')", "false", 2),
        ("url('HTTP://H/x') == url('http://H/x')", "true", 3),
    ]);
}

#[test]
fn semver_functions_have_upstream_results() {
    check(&[
        (
            "semver('1.2.3-rc.1+b').isLessThan(semver('1.2.3'))",
            "true",
            4,
        ),
        ("semver('v1.2', true)", "1.2.0", 1),
        (
            "semver('v1.2')",
            "error: No Major.Minor.Patch elements found",
            1,
        ),
        (
            "semver('01.2.3')",
            r#"error: Major number must not contain leading zeroes "01""#,
            1,
        ),
        (
            "semver('9223372036854775808.0.0').major()",
            "-9223372036854775808",
            4,
        ),
        (
            "[semver('1.0.0-2').compareTo(semver('1.0.0-10')), semver('1.0.0+a').compareTo(semver('1.0.0+b'))]",
            "[-1, 0]",
            16,
        ),
        ("isSemver('1.2', true) && !isSemver('1.2')", "true", 3),
        (
            "format.dns1123Label().validate('A')",
            "optional([a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')])",
            9,
        ),
    ]);
}

#[test]
fn format_functions_have_upstream_results() {
    check(&[
        (
            "format.dns1123LabelPrefix().validate('a-')",
            "optional.none()",
            9,
        ),
        (
            "format.qualifiedName().validate('a/b/c')",
            "optional([a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')])",
            16,
        ),
        (
            "format.named('uuid').value().validate('x')",
            "optional([does not match the UUID format])",
            20,
        ),
        ("format.named('UUID')", "optional.none()", 1),
        (
            "format.uri().validate('x')",
            r#"optional([parse "x": invalid URI for request])"#,
            277,
        ),
        (
            "format.date().validate('2023-02-29')",
            "optional([invalid date])",
            37,
        ),
        (
            "format.named('byte') == optional.of(format.byte())",
            "true",
            4,
        ),
        ("'a1b22'.find('[0-9]+')", "1", 2),
    ]);
}

#[test]
fn regex_functions_have_upstream_results() {
    check(&[
        ("'a1b22'.findAll('[0-9]+')", "[1, 22]", 2),
        ("'a1b22'.findAll('[0-9]?', 3)", "[, 1, 2]", 2),
        ("'a'.find('b')", "", 1),
        ("'abc'.matches('^b')", "false", 1),
        (
            "dyn('x').findAll(dyn('a') == 'a' ? '(' : 'b')",
            "error: Illegal regex: error parsing regexp: missing closing ): `(`",
            2,
        ),
        (
            "[3, 1, 2].isSorted() || ['a', 'a', 'b'].isSorted()",
            "true",
            3,
        ),
    ]);
}

#[test]
fn kubernetes_list_functions_have_upstream_results() {
    check(&[
        ("[1.5, 2.5].sum()", "4", 2),
        ("[duration('1h'), duration('30m')].sum()", "1h30m0s", 2),
        (
            "[9223372036854775807, 1].sum()",
            "error: integer overflow",
            2,
        ),
        ("[3, 1, 2].max() + [3, 1, 2].min()", "4", 7),
        (
            "[1].filter(x, x > 1).max()",
            "error: max called on empty list",
            3,
        ),
        (
            "['a', 'b', 'a'].indexOf('a') + ['a', 'b', 'a'].lastIndexOf('a')",
            "2",
            1,
        ),
        ("[[1, 2], [3]].flatten()", "[1, 2, 3]", 13),
    ]);
}

#[test]
fn list_and_set_extensions_have_upstream_results() {
    check(&[
        (
            "dyn([1]).flatten(-1)",
            "error: level must be non-negative",
            10,
        ),
        ("[1, 2, 3].slice(1, 3)", "[2, 3]", 13),
        (
            "[1, 2, 3].slice(2, 4)",
            "error: cannot slice(2, 4), list is length 3",
            12,
        ),
        ("lists.range(3).reverse()", "[2, 1, 0]", 28),
        ("['b', 'a'].sort()", "[a, b]", 19),
        ("[1, 2, 3, 4, 5].sortBy(x, x % 2)", "[2, 4, 1, 3, 5]", 134),
        (
            "lists.range(20).sortBy(x, x % 3)",
            "[9, 18, 15, 3, 12, 0, 6, 10, 7, 4, 13, 16, 1, 19, 8, 5, 11, 14, 2, 17]",
            1125,
        ),
        ("sets.contains([1, 2, 3], [2, 1, 2])", "true", 10),
        ("sets.equivalent([1, 2], [2, 1, 1])", "true", 13),
        (
            "dyn(1).distinct()",
            "error: internal error: interface conversion: types.Int is not traits.Lister: missing method Contains",
            0,
        ),
        ("'tacocat'.substring(0, 4) + 'x'.charAt(1)", "taco", 3),
        ("'tacocat'.charAt(8)", "error: index out of range: 8", 1),
        (
            "'tacocat'.substring(5, 2)",
            "error: invalid substring range. start: 5, end: 2",
            1,
        ),
    ]);
}

#[test]
fn string_extensions_have_upstream_results() {
    check(&[
        ("'a,b,c'.split(',', 2).join('|')", "a|b,c", 2),
        ("'ababab'.replace('b', 'é', 2)", "aéaéab", 2),
        (
            "['a', 'b'].join() + 'İÄß'.lowerAscii() + 'straße'.upperAscii()",
            "abİÄßSTRAßE",
            6,
        ),
        (r"' \u2003x\n'.trim()", "x", 1),
        (r#"strings.quote('a"b\n')"#, r#""a\"b\n""#, 1),
        (
            r"'%s, %d, %x, %X, %o, %b, %.2f, %e%%'.format(['s', 1, 255, b'\xab', 8, 5, 1234.567, 1052.032911275])",
            "s, 1, ff, AB, 10, 101, 1,234.57, 1.052033×10⁰³%",
            4,
        ),
        (
            "'%s'.format([[1, 'a', 1.5, b'x', null, int, {'k': duration('1s')}]])",
            r#"[1, "a", 1.500000, b"x", null, int, {"k":duration("1s")}]"#,
            1,
        ),
        ("'%s'.format([1e9])", "1e+09", 1),
        (
            "'%d'.format([dyn(1.5)])",
            "error: error during formatting: decimal clause can only be used on integers, was given double",
            1,
        ),
    ]);
}

/// Tests keys that Go's maps support, and keys for which Go panics.
#[test]
fn map_keys_of_other_types_have_upstream_results() {
    let unhashable = "error: internal error: runtime error: hash of unhashable type cel.Semver";
    check(&[
        ("dyn(quantity('1')) in {dyn(quantity('1')): 1}", "false", 35),
        ("dyn(semver('1.0.0')) in {'a': 1}", unhashable, 2),
        ("{dyn(double('NaN')): 1}.transformList(k, v, v)", "[1]", 14),
        (
            "'%s'.format([{dyn(double('NaN')): 1}])",
            "error: error during formatting: no formatting function for map key of type double",
            1,
        ),
    ]);
}

/// In cel-go, a type and an optional string wrap a Go string. A constant pattern is matched against this string.
#[test]
fn call_of_matches_on_non_strings_has_upstream_result() {
    check(&[
        ("dyn(int).matches('n')", "true", 1),
        ("dyn(int).find('n')", "n", 1),
        ("dyn(optional.of('abc')).findAll('b|c')", "[b, c]", 3),
        ("dyn(b'abc').matches('b')", "error: no such overload", 1),
    ]);
}

/// Asserts that the evaluation ends quickly with the error `expected`.
#[track_caller]
fn check_hostile(expression: &str, text: &str, expected: &str) {
    let timer = crate::processor::Timer::begin();
    let error = evaluate(expression, text).result.unwrap_err();
    assert_eq!(error.message(), expected, "{expression}");
    let used = timer.used();
    assert!(used < Duration::from_secs(20), "{expression}: {used:?}");
}

const OUT_OF_MEMORY: &str = "the evaluation needs more than 32 MiB of memory";

const OVER_LIMIT: &str = "operation cancelled: actual cost limit exceeded";

#[test]
fn huge_quantities_are_errors() {
    let refused = "quantity has too many digits";
    check_hostile("quantity('1e2147483648')", "", refused);
    check_hostile("isQuantity('1e2147483648')", "", refused);
    check_hostile("quantity('1e2147483647').add(1)", "", refused);
    check_hostile("quantity('1234567890123456789e1000000')", "", refused);
    check_hostile("quantity(text)", &"9".repeat(100_000), refused);
}

#[test]
fn huge_lists_and_strings_exceed_cost_limit() {
    check_hostile("lists.range(9223372036854775807)", "", OVER_LIMIT);
    check_hostile("lists.range(100000).sort()", "", OVER_LIMIT);
    let text = "a,".repeat(1 << 19);
    check_hostile("text.split(',').distinct()", &text, OUT_OF_MEMORY);
    let both = "sets.equivalent(text.split(','), text.split(','))";
    check_hostile(both, &text, OUT_OF_MEMORY);
    check_hostile("text.replace('', text)", &text, OUT_OF_MEMORY);
    // The cost is known before the call, because it depends only on the length of the string.
    let thrice = "['', ''].map(x, text).join(text).replace('', text)";
    check_hostile(thrice, &text, OVER_LIMIT);
}

#[test]
fn exponential_patterns_take_linear_time() {
    let text = "a".repeat(100_000);
    for pattern in [
        "^(a+)+$",
        "^(a|aa)*b",
        "(a?){100}(a){100}b",
        "((a*)*)*b",
        "(?:a{30}){30}b",
        r"(\\pL{9}|\\d){9}b",
    ] {
        let timer = crate::processor::Timer::begin();
        let expression = format!("text.matches('{pattern}')");
        let evaluation = evaluate(&expression, &text);
        assert!(evaluation.result.is_ok(), "{pattern}");
        let used = timer.used();
        assert!(used < Duration::from_secs(20), "{pattern}: {used:?}");
    }
}
