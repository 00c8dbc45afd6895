//! Tests abstract values in the profile `truthful`: constants, decoded objects, refinement by conditions, and values of
//! several possible types.

use super::*;

#[test]
fn call_with_constant_result_acts_as_guard() {
    check_false("object.kind.matches('^Deployment$') || object.spec.hostNetwork == true");
    check_false("object.kind.size() != 3 || object.spec.hostNetwork == true");
    check_false("object.?kind != optional.of('Pod') || object.spec.hostNetwork == true");
    check_false("ip('10.0.0.1') == ip('10.0.0.1') || object.spec.x == 1");
    check_false("object.kind != timestamp('2024-01-01T00:00:00Z') || object.spec.x == 1");
    check_true("!object.kind.matches('^Pod$') || object.spec.nothing == true");
    check_true("url('https://example.com') == object.metadata.name");
}

#[test]
fn values_have_types_of_decoded_objects() {
    let pods = json!({"resources": ["pods"]});
    let container = |check: &str| format!("object.spec.containers.all(c, {check})");
    check_on(&pods, &container("c.memory.startsWith('1')"), &[]);
    check_on(
        &pods,
        &container("c.memory < 5"),
        &["applied to '(string, int)'"],
    );
    // A schema without properties has no fields. A reference to a named type without properties may have any field.
    check_on(&pods, "object.spec.extension.a == 1", &[]);
    check_on(&pods, "object.spec.sealed.a == 1", &["undefined field 'a'"]);
    // A field with a default is never absent.
    check_on(&pods, &container("has(c.protocol) || c.nothing == 1"), &[]);
    check_on(&pods, &container("c['if'] == 'a'"), &[]);
    check_on(
        &pods,
        &container("c.__if__ == 'a'"),
        &["undefined field '__if__'"],
    );
}

/// A condition narrows the possible types of a variable in its branches. For example, in `has(x.a) ? x.a : x.b`, the
/// type of `x` has a field `a` in the first branch, but not in the second one.
#[test]
fn conditions_narrow_types_of_values() {
    let pods = json!({"resources": ["pods"]});
    let named = "[{'a': 1}, {'b': 2}]";
    let of_both = "object.spec.containers.map(c, c.image == 'a' ? {'a': 1} : {'b': c.image})";
    for (range, guarded, unguarded) in [
        (of_both, "has(x.a) ? x.a == 1 : x.b != ''", "x.a == 1"),
        (of_both, "!has(x.a) || x.a == 1", "has(x.a) || x.a == 1"),
        (of_both, "has(x.a) && x.a == 1", "x.b != '' && has(x.a)"),
        (of_both, "x.a == 1 || !has(x.a)", "x.a == 1 || has(x.image)"),
        (
            of_both,
            "'a' in x ? x.a == 1 : true",
            "'b' in x ? x.a == 1 : true",
        ),
        (
            of_both,
            "x.?a.hasValue() ? x.a == 1 : true",
            "x.?b.hasValue() ? x.a == 1 : true",
        ),
        (
            named,
            "has(x.a) ? x.a == 1 : x.b == 2",
            "has(x.a) ? x.b == 1 : x.a == 2",
        ),
    ] {
        check_on(&pods, &format!("{range}.all(x, {guarded})"), &[]);
        check_on(
            &pods,
            &format!("{range}.all(x, {unguarded})"),
            &["undefined field"],
        );
    }
    let filtered = format!("{of_both}.filter(x, has(x.a))");
    check_on(&pods, &format!("{filtered}.all(x, x.a == 1)"), &[]);
    check_on(
        &pods,
        &format!("{filtered}.all(x, x.b == 1)"),
        &["undefined field 'b'"],
    );
    // A type is refined by a constant field, by a comparison with null, or by a type test.
    let by_kind = "[{'kind': dyn('a'), 'n': dyn(1)}, {'kind': dyn('b'), 'text': dyn('x')}]";
    check_on(
        &pods,
        &format!("{by_kind}.all(x, x.kind == 'a' ? x.n == 1 : x.text == 'x')"),
        &[],
    );
    check_on(
        &pods,
        &format!("{by_kind}.all(x, x.kind == 'b' ? x.n == 1 : true)"),
        &["undefined field 'n'"],
    );
    let mixed = "object.spec.containers.map(c, c.image == 'a' ? dyn(c.image) : dyn(c.ports))";
    check_on(
        &pods,
        &format!("{mixed}.all(x, type(x) == string ? x.size() > 1 : x[0] != null)"),
        &[],
    );
    check_on(
        &pods,
        &format!("{mixed}.all(x, type(x) == list ? x.startsWith('a') : true)"),
        &["startsWith"],
    );
    // A condition on a variable refines only this variable, even if another variable has the same value.
    check_on(
        &pods,
        &format!("{of_both}.all(x, has(x.a) ? {of_both}.all(x, x.a == 1) : true)"),
        &["undefined field 'a'"],
    );
}

#[test]
fn expression_that_is_never_evaluated_is_not_reported() {
    check_false(
        "has(object.spec.paused) || object.kind != 'Pod' || object.spec.paused > 1 || true",
    );
    check_false_to_us("!has(object.metadata.labels) && object.metadata.labels <= 1");
    check_true("has(object.metadata.labels) && object.metadata.labels <= 1");
    // The rule matches only the resource without subresources, so `request.subResource` is empty.
    let pods = json!({"resources": ["pods"]});
    check_on(
        &pods,
        "request.subResource == 'exec' ? object.spec.x == 1 : true",
        &[],
    );
    check_on(
        &pods,
        "true && !(request.subResource in ['a']) ? object.spec.x == 1 : true",
        &[],
    );
    check_on(
        &pods,
        "request.subResource == 'exec' || object.spec.x == 1",
        &["undefined field 'x'"],
    );
}

/// Macros over literal lists and maps are interpreted element by element. `exists` ends at the first element for which
/// the condition is true.
#[test]
fn elements_of_literals_are_interpreted_one_by_one() {
    let pods = json!({"resources": ["pods"]});
    check_on(&pods, "[{'a': 1}, {'b': 2}].exists(x, x.a == 1)", &[]);
    check_on(
        &pods,
        "[{'a': 1}, {'b': 2}].exists(x, x.a == 3)",
        &["undefined field 'a'"],
    );
    check_on(
        &pods,
        "[{'a': 1}, {'b': 2}].all(x, x.a == 1)",
        &["undefined field 'a'"],
    );
    check_on(
        &pods,
        "{'a': {'x': 1}, 'b': {}}.all(k, v, has(v.x) ? v.x == 1 : true)",
        &[],
    );
    check_on(
        &pods,
        "{'a': {'x': 1}, 'b': {'x': 2}}.all(k, v, k != 'c' && v.x > 0)",
        &[],
    );
    check_on(
        &pods,
        "{'a': {'x': 1}, 'b': {}}.all(k, v, v.x == 1)",
        &["undefined field 'x'"],
    );
    check_on(
        &pods,
        "[object.spec.containers, object.spec.initContainers].all(i, l, i < 2 && l.all(c, c.image != ''))",
        &[],
    );
}

/// If the argument of a call may be a number or a string, the call is reported only if it fails for both.
#[test]
fn call_is_reported_only_if_it_fails_for_all_types_of_value() {
    let pods = json!({"resources": ["pods"]});
    let all = |check: &str| format!("object.spec.containers.all(c, {check})");
    for fine in [
        "c.port == 80",
        "c.port > 80",
        "c.port.startsWith('a')",
        "string(c.port) != '80'",
        "type(c.port) == int ? c.port > 80 : c.port.endsWith('%')",
        "c.ratio > 0.5 && c.ratio * 2.0 > 1.0 && c.ratio * 2 > 1",
        "object.spec.containers.flatten().size() > 1",
    ] {
        check_on(&pods, &all(fine), &[]);
    }
    for failing in [
        "c.port.x == 1",
        "c.port.all(x, x == 1)",
        "c.ratio.size() > 1",
    ] {
        let warnings = warnings_of(pods.clone(), &all(failing));
        assert_eq!(warnings.len(), 1, "{failing}");
    }
}
