//! Cases of functions, operators and characters of other languages.

use super::corrected;

/// Compares the corrected expressions, and the hints without the consequence.
pub(super) fn assert_corrected(role: &str, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let actual = corrected("[CREATE]", role, text);
        let actual = actual.split("; the API server rejects").next();
        assert_eq!(actual, Some(*expected), "{text}");
    }
}

#[test]
fn function_calls_become_member_calls() {
    assert_corrected(
        "expression",
        &[
            (
                "startswith(object.metadata.name, 'a')",
                "object.metadata.name.startsWith('a')",
            ),
            (
                "!endsWith(object.metadata.name, 'a')",
                "!object.metadata.name.endsWith('a')",
            ),
            (
                "lower(object.metadata.name + 'x') == 'a'",
                "(object.metadata.name + 'x').lowerAscii() == 'a'",
            ),
            (
                "contains(object.metadata.name, 'a')",
                "object.metadata.name.contains('a')",
            ),
            (
                "contains(object.spec.template.spec.containers, 'a')",
                "'a' in object.spec.template.spec.containers",
            ),
            (
                "contains(object.metadata.labels, 'a')",
                "write `'a' in object.metadata.labels` to search the keys of the map",
            ),
            (
                "contains(variables.names, 'a')",
                "write `variables.names.contains('a')` to search a string, or `'a' in variables.names` to search a list",
            ),
            (
                "re_match('^a', object.metadata.name)",
                "object.metadata.name.matches('^a')",
            ),
            (
                "regex_match(object.metadata.name, '^a')",
                "object.metadata.name.matches('^a')",
            ),
            (
                "hasKey(object.metadata.labels, 'a')",
                "'a' in object.metadata.labels",
            ),
            (
                "concat(',', variables.names) == 'a'",
                "variables.names.join(',') == 'a'",
            ),
            (
                "'a' in object.metadata.labels.keys()",
                "'a' in object.metadata.labels",
            ),
            (
                "object.metadata.labels.keys().all(k, k != 'a')",
                "object.metadata.labels.all(k, k != 'a')",
            ),
            (
                "object.metadata.labels.keys() == ['a']",
                "object.metadata.labels.map(k, k) == ['a']",
            ),
            (
                "Object.keys(object.metadata.labels).length > 0",
                "size(object.metadata.labels) > 0",
            ),
            (
                "object.metadata.labels.values().exists(v, v == 'a')",
                "object.metadata.labels.map(k, object.metadata.labels[k]).exists(v, v == 'a')",
            ),
            (
                "object.get(object.metadata.labels, 'a', '') == 'b'",
                "object.metadata.labels[?'a'].orValue('') == 'b'",
            ),
            (
                "object.metadata.name.lenght() < 5",
                "object.metadata.name.size() < 5",
            ),
        ],
    );
}

#[test]
fn patterns_and_optional_values_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "re.fullmatch('[a-z]+', object.metadata.name)",
                "object.metadata.name.matches('^[a-z]+$')",
            ),
            (
                "re.match('a|b', object.metadata.name)",
                "object.metadata.name.matches('^(?:a|b)')",
            ),
            (
                "re.search('a', object.metadata.name)",
                "object.metadata.name.matches('a')",
            ),
            (
                "NOT object.metadata.name LIKE '%tmp'",
                "!object.metadata.name.endsWith('tmp')",
            ),
            (
                "object.metadata.annotations?.['a/b'] != null",
                "write `object.metadata.?annotations[?'a/b'].orValue(...)` with the value to use for an absent field",
            ),
            (
                "object.spec.template.spec.volumes?.length <= 3",
                "write `size(object.spec.template.spec.?volumes.orValue([]))`",
            ),
        ],
    );
}

#[test]
fn arguments_of_macros_and_conversions_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "variables.names.exists('a') && true",
                "'a' in variables.names && true",
            ),
            (
                "variables.names.all('a')",
                "the first argument of `all()` is a name for the items: write `variables.names.all(x, x == 'a')`",
            ),
            (
                "object.spec.template.spec.containers.all(c.name != 'a')",
                "object.spec.template.spec.containers.all(c, c.name != 'a')",
            ),
            (
                "object.spec.template.spec.containers.every(c => c.name != 'a')",
                "object.spec.template.spec.containers.all(c, c.name != 'a')",
            ),
            (
                "duration(object.spec.minReadySeconds) < duration('1h')",
                "duration(string(object.spec.minReadySeconds) + 's') < duration('1h')",
            ),
            (
                "duration(object.spec.replicas) < duration('1h')",
                "duration() converts a string with a unit: write `duration(string(object.spec.replicas) + 's')` for seconds; \
                 with failurePolicy Fail, a request for which the expression fails is denied",
            ),
            ("Date.now() > 5", "expressions cannot read the current time"),
        ],
    );
}

#[test]
fn formatted_messages_are_corrected() {
    assert_corrected(
        "messageExpression",
        &[
            (
                "sprintf('%s is bad', [object.metadata.name])",
                "'%s is bad'.format([object.metadata.name])",
            ),
            (
                "fmt.Sprintf('%s is bad', object.metadata.name)",
                "'%s is bad'.format([object.metadata.name])",
            ),
            (
                "f'{object.metadata.name} has {object.spec.replicas}'",
                "string(object.metadata.name) + ' has ' + string(object.spec.replicas)",
            ),
            (
                "f'{object.spec.replicas:d} replicas'",
                "concatenate the parts, as in `string(a) + ' is b'`",
            ),
        ],
    );
}

#[test]
fn operators_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "object.metadata.name == 'a' xor object.spec.replicas > 1",
                "(object.metadata.name == 'a') != (object.spec.replicas > 1)",
            ),
            (
                "object.metadata.name !in ['a'] && true",
                "!(object.metadata.name in ['a']) && true",
            ),
            (
                "object.metadata.name notin ['a']",
                "!(object.metadata.name in ['a'])",
            ),
            (
                "object.metadata.name NOT IN ('a', 'b')",
                "!(object.metadata.name in ['a', 'b'])",
            ),
            (
                "object.metadata.name not in ['a'] or true",
                "!(object.metadata.name in ['a']) or true",
            ),
            (
                "object.metadata.name IN ('a')",
                "object.metadata.name in ['a']",
            ),
            (
                "object.spec.paused IS NOT NULL",
                "object.spec.paused != null",
            ),
            (
                "1 <= object.spec.replicas <= 5 || false",
                "1 <= object.spec.replicas && object.spec.replicas <= 5 || false",
            ),
            (
                "object.spec.replicas < 3 & object.metadata.name != 'x'",
                "object.spec.replicas < 3 && object.metadata.name != 'x'",
            ),
            (
                "request.userInfo.groups in ['a']",
                "write `request.userInfo.groups.exists(x, x in ['a'])` if one item is enough, or \
                 `request.userInfo.groups.all(x, x in ['a'])` if each item must be in the list",
            ),
            ("[ -n object.metadata.name ]", "object.metadata.name != ''"),
            (
                "[[ -z object.metadata.name ]]",
                "object.metadata.name == ''",
            ),
            (
                "[ object.spec.replicas -le 5 ]",
                "object.spec.replicas <= 5",
            ),
            ("object.spec.replicas -gt 5", "object.spec.replicas > 5"),
        ],
    );
}

#[test]
fn quantifiers_are_corrected() {
    assert_corrected(
        "expression",
        &[
            (
                "every c in object.spec.template.spec.containers { c.name != 'a' }",
                "object.spec.template.spec.containers.all(c, c.name != 'a')",
            ),
            (
                "some c in object.spec.template.spec.containers; c.name == 'a'",
                "write `object.spec.template.spec.containers.exists(c, ...)`",
            ),
            (
                "every c in object.spec.template.spec.containers { c.name != 'a'; c.tty }",
                "write `object.spec.template.spec.containers.all(c, ...)`",
            ),
            (
                "object.spec.template.spec.containers.all(lambda c: c.name != 'a')",
                "object.spec.template.spec.containers.all(c, c.name != 'a')",
            ),
            (
                "object.spec.template.spec.containers[_].name == 'a'",
                "an index denotes one item: write `object.spec.template.spec.containers.exists(x, x.name == 'a')` if one item \
                 is enough, as in Rego, or `object.spec.template.spec.containers.all(x, x.name == 'a')` if each item must \
                 match",
            ),
            (
                "object.spec.template.spec.containers[*].ports[*].name == 'a'",
                "an index denotes one item: write `object.spec.template.spec.containers.exists(x, x ...)` if one item is \
                 enough, as in Rego, or `object.spec.template.spec.containers.all(x, x ...)` if each item must match",
            ),
        ],
    );
}

#[test]
fn names_of_variables_are_corrected() {
    assert_corrected(
        "expression",
        &[
            ("Object.metadata.name == 'x'", "object.metadata.name == 'x'"),
            ("newObject.spec.replicas < 5", "object.spec.replicas < 5"),
            (".spec.replicas < 5", "object.spec.replicas < 5"),
            ("$.spec.replicas < 5", "object.spec.replicas < 5"),
            ("${object.spec.replicas} < 5", "object.spec.replicas < 5"),
            ("user != 'x'", "request.userInfo.username != 'x'"),
            ("user.name != 'x'", "request.userInfo.username != 'x'"),
            ("'x' in user.groups", "'x' in request.userInfo.groups"),
            ("namespace != 'x'", "request.namespace != 'x'"),
            (
                "namespace.labels.a != 'x'",
                "write `request.namespace` for the name of the namespace, or `namespaceObject` for its Namespace",
            ),
            (
                "input.parameters.max > 1",
                "write `params`, the param object of the binding; it requires a paramKind in the spec",
            ),
            ("has('object.spec.paused')", "has(object.spec.paused)"),
            (
                "object.metadata.labels.skip-check != 'true'",
                "object.metadata.labels['skip-check'] != 'true'",
            ),
            (
                "object.spec.strategy?.rollingUpdate?.maxSurge == 1",
                "write `object.spec.?strategy.?rollingUpdate.?maxSurge.orValue(...)` with the value to use for an absent field",
            ),
        ],
    );
}

#[test]
fn unknown_characters_are_replaced() {
    assert_corrected(
        "expression",
        &[
            (
                "object.metadata.name != ‘a’ && object.spec.replicas ≤ 5",
                "object.metadata.name != 'a' && object.spec.replicas <= 5",
            ),
            (
                "object.metadata.name != “it's”",
                "object.metadata.name != \"it's\"",
            ),
            (
                "object.spec.replicas < 5 # at most five",
                "object.spec.replicas < 5 // at most five",
            ),
            (
                "object.spec.replicas < 5 # five && object.spec.paused",
                "a comment begins with `//` and extends to the end of the line",
            ),
            ("object.spec.replicas < 5;", "object.spec.replicas < 5"),
            (
                "object.spec.replicas < 5; object.spec.replicas > 1",
                "an expression has no statements: write `&&` between conditions that must all be true",
            ),
        ],
    );
}

#[test]
fn comparison_methods_without_overload_are_corrected_to_compare_to() {
    assert_corrected(
        "expression",
        &[
            (
                "!quantity(object.metadata.name).isLessThanOrEqualTo(quantity('1Gi'))",
                "!(quantity(object.metadata.name).compareTo(quantity('1Gi')) <= 0)",
            ),
            (
                "semver(object.metadata.name).gte(semver('1.2.3'))",
                "semver(object.metadata.name).compareTo(semver('1.2.3')) >= 0",
            ),
        ],
    );
}
