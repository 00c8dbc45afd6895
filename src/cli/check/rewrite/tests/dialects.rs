//! Cases of expressions in the style of other languages.

use super::idioms::assert_corrected;
use crate::cel::source::SourceMap;
use crate::cli::check::other_languages::proposal_at;
use crate::policy::expressions::Role;

#[test]
fn rego_and_gatekeeper_variables_are_corrected() {
    assert_corrected(
        "expression",
        &[
            ("input.request.namespace != 'a'", "request.namespace != 'a'"),
            (
                "input.review.userInfo.username == 'a'",
                "request.userInfo.username == 'a'",
            ),
            ("input.metadata.name != 'a'", "object.metadata.name != 'a'"),
            (
                "input.review.object.metadata.name != 'a'",
                "object.metadata.name != 'a'",
            ),
            (
                "input.attributes.a == 'a'",
                "write `object` for the object of the request, or `request` for its attributes",
            ),
            (
                "data.inventory.a == 'a'",
                "expressions cannot read objects other than `object`, `oldObject`, `params` and `namespaceObject`",
            ),
            (
                "element.image != 'a'",
                "name the item in a macro, as in `object.spec.containers.all(c, c.image ...)`",
            ),
            (
                "count({c | c := object.spec.template.spec.containers[_]}) == 0",
                "write `list.filter(x, ...)` or `list.map(x, ...)` for a comprehension",
            ),
            (
                "object.spec.template.spec.containers[i].name == 'a'",
                "an index denotes one item: write `object.spec.template.spec.containers.exists(x, x.name == 'a')` if one item is enough, as in Rego, or `object.spec.template.spec.containers.all(x, x.name == 'a')` if each item must match",
            ),
            (
                "c := object.spec.template.spec.containers",
                "declare a variable in `spec.variables`, and read it as `variables.name`",
            ),
            (
                "object.metadata.kind != 'Secret'",
                "object.kind != 'Secret'",
            ),
        ],
    );
}

#[test]
fn javascript_tests_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "typeof object.spec.paused === 'undefined'",
                "!has(object.spec.paused)",
            ),
            (
                "typeof object.spec.paused !== 'undefined'",
                "has(object.spec.paused)",
            ),
            (
                "typeof(object.metadata.name) == 'string'",
                "type(object.metadata.name) == string",
            ),
            (
                "typeof object.spec.replicas === 'number'",
                "write `type(object.spec.replicas) == int`",
            ),
            (
                "object.metadata.name == 'a' and // see (/docs/x) or `a`\n      true",
                "object.metadata.name == 'a' && // see (/docs/x) or `a`\n      true",
            ),
            (
                "/^a/.test(object.metadata.name)",
                "object.metadata.name.matches('^a')",
            ),
            (
                r"!/a\/b/i.test(object.metadata.name)",
                "!object.metadata.name.matches('(?i)a/b')",
            ),
            (
                "object.metadata.name.match(/^a/)",
                "object.metadata.name.matches('^a')",
            ),
            (
                r"object.metadata.name.match(/^a\d/) === null",
                r"!object.metadata.name.matches(r'^a\d')",
            ),
            (
                "object.spec.template.spec.containers.find(c => c.name == 'x') === undefined",
                "!object.spec.template.spec.containers.exists(c, c.name == 'x')",
            ),
            (
                "!object.spec.template.spec.containers.find(c => c.name == 'x')",
                "!object.spec.template.spec.containers.exists(c, c.name == 'x')",
            ),
            (
                "object.spec.template.spec.containers.findIndex(c => c.name == 'x') >= 0",
                "write `object.spec.template.spec.containers.exists(c, ...)` for a test, or `object.spec.template.spec.containers.filter(c, ...)` for the items",
            ),
            (
                "object.spec.template.spec.containers.forEach(c => c.name)",
                "write `object.spec.template.spec.containers.all(c, ...)` to test each item, or `object.spec.template.spec.containers.exists(c, ...)`",
            ),
            (
                "object.spec.template.spec.containers.reduce((a, c) => a + 1, 0) < 5",
                "expressions declare no functions: write a macro such as `list.map(x, x.a).sum()`",
            ),
            (
                "`${object.metadata.name}-x` == 'a'",
                "string(object.metadata.name) + '-x' == 'a'",
            ),
            (
                "return object.metadata.name == 'a'",
                "object.metadata.name == 'a'",
            ),
            (
                "const x = 1; x == 1",
                "declare a variable in `spec.variables`, and read it as `variables.name`",
            ),
            (
                "object.metadata.name ?: 'a'",
                "write `object.metadata.?name.orValue(...)` for a default value, or `a ? b : c` with a value between `?` and `:`",
            ),
        ],
    );
}

#[test]
fn python_comprehensions_and_tests_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "sum(1 for c in object.spec.template.spec.containers) < 3",
                "size(object.spec.template.spec.containers) < 3",
            ),
            (
                "sum(1 for c in object.spec.template.spec.containers if c.name == 'x') < 3",
                "size(object.spec.template.spec.containers.filter(c, c.name == 'x')) < 3",
            ),
            (
                "any([c.name == 'a' for c in object.spec.template.spec.containers])",
                "object.spec.template.spec.containers.exists(c, c.name == 'a')",
            ),
            (
                "any(k == 'a' for k, v in object.metadata.labels.items())",
                "object.metadata.labels.exists(k, v, k == 'a')",
            ),
            // The items of a set are distinct, but those of a list might not be.
            (
                "set(c.name for c in object.spec.template.spec.containers) == variables.names",
                "set(object.spec.template.spec.containers.map(c, c.name)) == variables.names",
            ),
            (
                "isinstance(object.metadata.name, str)",
                "type(object.metadata.name) == string",
            ),
            ("hasattr(object.spec, 'paused')", "has(object.spec.paused)"),
            (
                "type(object.metadata.name) is string",
                "type(object.metadata.name) == string",
            ),
            ("object.spec.paused is defined", "has(object.spec.paused)"),
            (
                "object.metadata.name.isdigit()",
                "object.metadata.name.matches('^[0-9]+$')",
            ),
            (
                r"re.match(r'^a\d', object.metadata.name)",
                r"object.metadata.name.matches(r'^a\d')",
            ),
            (
                "lambda c: c.image == 'a'",
                "expressions declare no functions: write a macro such as `list.all(x, ...)`",
            ),
        ],
    );
}

#[test]
fn functions_with_default_values_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "COALESCE(object.spec.paused, false)",
                "object.spec.?paused.orValue(false)",
            ),
            (
                "NVL(object.metadata.labels['a'], 'x') == 'x'",
                "object.metadata.?labels[?'a'].orValue('x') == 'x'",
            ),
            (
                "coalesce(object.spec.paused, object.spec.replicas) == 1",
                "write `object.spec.?paused.orValue(object.spec.replicas)`",
            ),
            (
                r#"lookup(object.metadata.labels, "a", "") != """#,
                r#"object.metadata.labels[?"a"].orValue("") != """#,
            ),
            ("isset(object.spec.paused)", "has(object.spec.paused)"),
            (
                "isNull(object.metadata.labels['a'])",
                "!('a' in object.metadata.labels)",
            ),
            ("!isNull(object.spec.paused)", "has(object.spec.paused)"),
            (
                "empty(object.spec.template.spec.containers)",
                "size(object.spec.template.spec.containers) == 0",
            ),
            (
                "object.metadata.name.isEmpty()",
                "size(object.metadata.name) == 0",
            ),
            (
                "parseInt(object.metadata.name, 10) > 3",
                "int(object.metadata.name) > 3",
            ),
            (
                "Number(object.metadata.name) > 3",
                "write `int(object.metadata.name)` for an integer, or `double(object.metadata.name)`",
            ),
            (
                "object.metadata.labels['a'] || 'none'",
                "`||` accepts only bools: write `object.metadata.?labels[?'a'].orValue('none')` for a default value; with failurePolicy Fail, a request for which the expression fails is denied",
            ),
        ],
    );
}

#[test]
fn sql_and_shell_operators_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "CASE WHEN object.spec.paused THEN false ELSE true END",
                "object.spec.paused ? false : true",
            ),
            (
                "CAST(object.metadata.name AS INT) > 3",
                "int(object.metadata.name) > 3",
            ),
            (
                "object.metadata.name::int > 3",
                "int(object.metadata.name) > 3",
            ),
            (
                "object.metadata.name REGEXP '^a'",
                "object.metadata.name.matches('^a')",
            ),
            (
                "object.metadata.name NOT REGEXP '^a'",
                "!object.metadata.name.matches('^a')",
            ),
            (
                "object.metadata.name ~ '^a'",
                "object.metadata.name.matches('^a')",
            ),
            (
                "object.metadata.name !~* '^a'",
                "!object.metadata.name.matches('(?i)^a')",
            ),
            (
                "object.metadata.name ILIKE 'A%'",
                "object.metadata.name.lowerAscii().startsWith('a')",
            ),
            (
                "object.metadata.name == ANY('a', 'b')",
                "object.metadata.name in ['a', 'b']",
            ),
            (
                "object.metadata.finalizers <> ['a']",
                "write `!('a' in object.metadata.finalizers)` if the list must contain none of these items, or `object.metadata.finalizers != ['a']` to compare the whole list",
            ),
            (
                "[[ object.metadata.name =~ ^a- ]]",
                "object.metadata.name.matches('^a-')",
            ),
            (
                r#"[[ object.metadata.name != "a"* ]]"#,
                "!object.metadata.name.startsWith('a')",
            ),
            (
                r#"[ -z "$object.metadata.name" ]"#,
                "object.metadata.name == ''",
            ),
            (
                "[ object.metadata.name == 'a' ]",
                "object.metadata.name == 'a'",
            ),
            (
                "[ object.metadata.name == 'a', true ]",
                "an expression is one condition: join the items of the list with `&&`",
            ),
        ],
    );
}

#[test]
fn pipes_and_terraform_functions_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "object.spec.template.spec.containers | length > 0",
                "size(object.spec.template.spec.containers) > 0",
            ),
            (
                r#"object.metadata.name | test("^a")"#,
                r#"object.metadata.name.matches("^a")"#,
            ),
            (
                "object.spec.template.spec.containers | map(.image)",
                "CEL has no pipes: call a macro of the list, as in `list.all(x, ...)` or `list.exists(x, ...)`",
            ),
            (
                r#"can(regex("^a", object.metadata.name))"#,
                r#"regex("^a", object.metadata.name)"#,
            ),
            (
                r#"regex("^a", object.metadata.name)"#,
                r#"object.metadata.name.matches("^a")"#,
            ),
            (
                r#"alltrue([for c in object.spec.template.spec.containers : c.image != "a"])"#,
                r#"object.spec.template.spec.containers.all(c, c.image != "a")"#,
            ),
            (
                r#"contains(["a", "b"], object.metadata.name)"#,
                r#"object.metadata.name in ["a", "b"]"#,
            ),
            (
                "var.names == ['a']",
                "declare a variable in `spec.variables`, and read it as `variables.name`",
            ),
            (
                "object.metadata.name // 'a'",
                "`//` begins a comment: write `a.?b.orValue(c)` for a default value, or `a / b` for a quotient",
            ),
        ],
    );
}

#[test]
fn functions_of_go_modules_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                r#"strings.EqualFold(object.metadata.name, "a")"#,
                r#"object.metadata.name.lowerAscii() == "a".lowerAscii()"#,
            ),
            (
                r#"strings.ToLower(object.metadata.name) == "a""#,
                r#"object.metadata.name.lowerAscii() == "a""#,
            ),
            (
                r#"strings.Split(object.metadata.name, "-")[0] == "a""#,
                r#"object.metadata.name.split("-")[0] == "a""#,
            ),
            (
                r#"strings.Contains(object.metadata.name, "a")"#,
                r#"object.metadata.name.contains("a")"#,
            ),
            (
                r#"regexp.MustCompile("^a").MatchString(object.metadata.name)"#,
                r#"object.metadata.name.matches("^a")"#,
            ),
            (
                "slices.Contains(variables.names, object.metadata.name)",
                "object.metadata.name in variables.names",
            ),
            (
                "strconv.Atoi(object.metadata.name) > 3",
                "int(object.metadata.name) > 3",
            ),
            (
                r#"time.ParseDuration("5m") < duration("6m")"#,
                r#"duration("5m") < duration("6m")"#,
            ),
            (
                r#"object.GetName() == "a""#,
                r#"object.metadata.name == "a""#,
            ),
            ("*object.spec.replicas > 3", "object.spec.replicas > 3"),
            (
                "reflect.DeepEqual(object.spec, object.metadata)",
                "object.spec == object.metadata",
            ),
            (
                "ptr.Deref(object.spec.paused, false)",
                "object.spec.?paused.orValue(false)",
            ),
            (
                "for _, c := range x { c }",
                "write `list.all(x, ...)` to test each item, or `list.exists(x, ...)`",
            ),
        ],
    );
}

#[test]
fn type_name_of_map_is_removed() {
    let text = "Object{metadata: Object.metadata{labels: Object.metadata.labels{'a': 'b'}}}";
    let brace = text.find("'a'").unwrap();
    let location = SourceMap::new(text).location(u32::try_from(brace).unwrap());
    let proposal = proposal_at(Role::ApplyConfiguration, text, location).unwrap();
    let (bytes, new) = proposal.edit.unwrap();
    assert_eq!(text.get(bytes), Some("Object.metadata.labels{"));
    assert_eq!(new, "{");
}
