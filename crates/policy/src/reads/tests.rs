use std::fmt::Write as _;

use cel::syntax;

use super::*;

/// Formats an attribute. `?` precedes an optional key, `has` follows a presence test, and `~` precedes a dynamic
/// attribute.
fn show(ast: &Ast, attribute: &Attribute<'_>) -> String {
    let mut out = String::new();
    if attribute.is_dynamic {
        out.push('~');
    }
    if let Expr::Ident(name) = ast.expr(attribute.operand) {
        out.push_str(name);
    }
    for qualifier in &attribute.qualifiers {
        let mark = if qualifier.is_optional { "?" } else { "" };
        let _ = match qualifier.key {
            Key::Field(name) => write!(out, ".{mark}{name}"),
            Key::Literal(key) => write!(out, "[{mark}{key}]"),
            Key::Index(index) => write!(out, "[{mark}{index}]"),
            Key::Computed(_) => write!(out, "[{mark}*]"),
        };
        if qualifier.is_test {
            out.push_str(" has");
        }
    }
    out
}

#[track_caller]
fn check(expression: &str, expected: &[&str]) {
    let (ast, _) = syntax::parse(expression);
    let ast = ast.unwrap();
    let reads = Reads::new(&ast);
    let shown = reads
        .attributes()
        .map(|(_, attribute)| show(&ast, attribute));
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{expression}");
}

#[test]
fn attribute_reads_are_listed_in_source_order() {
    for (expression, expected) in [
        // Selections.
        ("object.spec.a == 1", &["object.spec.a"][..]),
        ("object.?spec.?a.orValue(1)", &["object.?spec.?a"]),
        ("object['spec'][?'a'][0]", &["object[spec][?a][0]"]),
        ("has(object.spec.a)", &["object.spec.a has"]),
        ("object == oldObject", &["object", "oldObject"]),
        ("'a' in object.metadata.labels", &["object.metadata.labels"]),
        (
            "object.list[size(params.x)].y",
            &["object.list[*].y", "params.x"],
        ),
        // Leading dots and `dyn()`.
        (".object.spec == 1", &[".object.spec"]),
        ("dyn(object).spec", &["~object.spec"]),
        ("dyn(dyn(.variables).a)['b']", &["~.variables.a[b]"]),
        ("dyn(request)", &["~request"]),
        // Strings and fields with the name of an input do not denote the input.
        (
            "'object' == params.object.request",
            &["params.object.request"],
        ),
        ("my.object == other", &[]),
        ("authorizer.group('').check('get')", &["authorizer"]),
        (
            "authorizer.requestResource.check('get').allowed()",
            &["authorizer.requestResource"],
        ),
        // Macros.
        (
            "object.a.all(x, x == namespaceObject)",
            &["object.a", "namespaceObject"],
        ),
        ("[1].all(object, object == 1)", &[]),
        ("[1].all(object, .object == object)", &[".object"]),
        ("object.a.map(object, object.b)", &["object.a"]),
        ("{'a': 1}.all(params, request, params == request)", &[]),
        (
            "[1].all(x, object.a == x) && object.b",
            &["object.a", "object.b"],
        ),
        // Literals and calls.
        (
            "[object.a, {params.k: variables.v}]",
            &["object.a", "params.k", "variables.v"],
        ),
        ("f(object.a).b.c(oldObject.d)", &["object.a", "oldObject.d"]),
        (
            "object.a ? object.b : object.c",
            &["object.a", "object.b", "object.c"],
        ),
    ] {
        check(expression, expected);
    }
}

#[test]
fn names_of_variables_that_are_read_are_listed() {
    for (expression, names, may_read_all) in [
        ("object.a == variables.b", &["b"][..], false),
        (
            "has(variables.b) && variables.?c.hasValue()",
            &["b", "c"],
            false,
        ),
        (
            "variables['b'] + variables[?'c'].orValue(1)",
            &["b", "c"],
            false,
        ),
        (
            "dyn(variables).b + dyn(dyn(.variables))['c']",
            &["b", "c"],
            false,
        ),
        ("variables.b && dyn(variables)[object.key]", &["b"], true),
        ("dyn(variables).all(name, name != '')", &[], true),
        ("[variables][0].b", &[], true),
        ("dyn(variables) == {'b': 1}", &[], true),
        ("size(dyn(variables)) == 'variables'", &[], true),
        ("object.variables.b == 'variables'", &[], false),
        ("[1].all(variables, variables.b == 1)", &[], false),
    ] {
        let (ast, _) = syntax::parse(expression);
        let ast = ast.unwrap();
        let names = names.to_vec();
        let expected = FieldNames {
            names,
            may_read_all,
        };
        assert_eq!(Reads::new(&ast).variables(), expected, "{expression}");
    }
}

#[test]
fn selection_from_variables_has_name_of_variable() {
    for (expression, expected) in [
        ("variables.a", Some("a")),
        ("dyn(.variables)[?'a']", Some("a")),
        ("variables.a.b", None),
        ("variables[object.a]", None),
        ("object.a", None),
    ] {
        let (ast, _) = syntax::parse(expression);
        let ast = ast.unwrap();
        assert_eq!(variable(&ast, ast.root()), expected, "{expression}");
    }
}
