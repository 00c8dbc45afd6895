//! Compares types and errors of expressions with those of cel-go. All extensions are enabled.

use std::sync::Arc;

use crate::checker;
use crate::eval::tests::env_of_extensions;
use crate::syntax;

const ROWS: &[(&str, &str)] = &[
    ("google.protobuf.Duration{x: 1}", "26: undefined field 'x'"),
    (
        "google.protobuf.Duration{seconds: 'a'}",
        "32: expected type of field 'seconds' is 'int' but provided type is 'string'",
    ),
    (
        "google.protobuf.Duration{?seconds: 1}",
        "35: expected type 'optional_type(int)' but found 'int'",
    ),
    (
        "google.protobuf.Duration{seconds: optional.of(1)}",
        "32: expected type of field 'seconds' is 'int' but provided type is 'optional_type(int)'",
    ),
    (
        "google.protobuf.Duration{seconds: 1}.x",
        "36: type 'duration' does not support field selection",
    ),
    (
        "google.protobuf.Duration{seconds: 1}.seconds",
        "36: type 'duration' does not support field selection",
    ),
    ("google.protobuf.Any{value: b'a'}.value", "dyn"),
    ("google.protobuf.Any{}.x", "dyn"),
    (
        "google.protobuf.Struct{fields: {1: 'a'}}",
        "29: expected type of field 'fields' is 'map(string, dyn)' but provided type is 'map(int, string)'",
    ),
    (
        "google.protobuf.Foo{}",
        "19: undeclared reference to 'google.protobuf.Foo' (in container '')",
    ),
    (
        "Foo{}",
        "3: undeclared reference to 'Foo' (in container '')",
    ),
    ("int{}", "3: 'int' is not a message type"),
    ("o{}", "1: 'dyn' is not a type"),
    (
        "o.x{}",
        "3: undeclared reference to 'o.x' (in container '')",
    ),
    ("[1, 'a'] + ['b']", "list(dyn)"),
    (
        "[1] + ['b']",
        "4: found no matching overload for '_+_' applied to '(list(int), list(string))'",
    ),
    (
        "1 + 'a'",
        "2: found no matching overload for '_+_' applied to '(int, string)'",
    ),
    (
        "1 + 1u",
        "2: found no matching overload for '_+_' applied to '(int, uint)'",
    ),
    (
        "-'a'",
        "0: found no matching overload for '-_' applied to '(string)'",
    ),
    (
        "!1",
        "0: found no matching overload for '!_' applied to '(int)'",
    ),
    ("1 && true", "0: expected type 'bool' but found 'int'"),
    ("true || 'a'", "8: expected type 'bool' but found 'string'"),
    (
        "1 ? 2 : 3",
        "2: found no matching overload for '_?_:_' applied to '(int, int, int)'",
    ),
    (
        "true ? 1 : 'a'",
        "5: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
    ),
    (
        "true ? [1] : ['a']",
        "5: found no matching overload for '_?_:_' applied to '(bool, list(int), list(string))'",
    ),
    ("true ? [] : ['a']", "list(string)"),
    (
        "1 == 'a'",
        "2: found no matching overload for '_==_' applied to '(int, string)'",
    ),
    (
        "[1] == ['a']",
        "4: found no matching overload for '_==_' applied to '(list(int), list(string))'",
    ),
    (
        "1 in ['a']",
        "2: found no matching overload for '@in' applied to '(int, list(string))'",
    ),
    (
        "1 in 'a'",
        "2: found no matching overload for '@in' applied to '(int, string)'",
    ),
    ("'a' in {'a': 1}", "bool"),
    (
        "1 in {'a': 1}",
        "2: found no matching overload for '@in' applied to '(int, map(string, int))'",
    ),
    ("o.x.y", "dyn"),
    ("x", "0: undeclared reference to 'x' (in container '')"),
    ("x.y", "0: undeclared reference to 'x' (in container '')"),
    ("x()", "1: undeclared reference to 'x' (in container '')"),
    ("o.x()", "3: undeclared reference to 'x' (in container '')"),
    (
        "'a'.x()",
        "5: undeclared reference to 'x' (in container '')",
    ),
    (
        "'a'.size(1)",
        "8: found no matching overload for 'size' applied to 'string.(int)'",
    ),
    (
        "size()",
        "4: found no matching overload for 'size' applied to '()'",
    ),
    (
        "size(1, 2)",
        "4: found no matching overload for 'size' applied to '(int, int)'",
    ),
    (
        "size(1)",
        "4: found no matching overload for 'size' applied to '(int)'",
    ),
    (
        "'a'.startsWith(1)",
        "14: found no matching overload for 'startsWith' applied to 'string.(int)'",
    ),
    (
        "'a'.contains(b'a')",
        "12: found no matching overload for 'contains' applied to 'string.(bytes)'",
    ),
    ("[1].all(x, x)", "11: expected type 'bool' but found 'int'"),
    ("[1].all(x, x > 0)", "bool"),
    (
        "[1].map(x, y)",
        "11: undeclared reference to 'y' (in container '')",
    ),
    (
        "[1].filter(x, 'a')",
        "10: found no matching overload for '_?_:_' applied to '(string, list(int), list(int))'",
    ),
    (
        "[1].exists_one(x, x)",
        "14: found no matching overload for '_?_:_' applied to '(int, int, int)'",
    ),
    (
        "{'a': 1}.all(k, k == 1)",
        "18: found no matching overload for '_==_' applied to '(string, int)'",
    ),
    (
        "1.all(x, true)",
        "0: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    (
        "'a'.map(x, x)",
        "0: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    ("[1].map(x, x > 0, x)", "list(int)"),
    (
        "[1].map(x, x, x)",
        "7: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'",
    ),
    ("[1].transformList(i, v, i + v)", "list(int)"),
    ("[1].transformMap(i, v, 'a')", "map(int, string)"),
    (
        "[1].transformMapEntry(i, v, 1)",
        "21: found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), int)'",
    ),
    ("[1].transformMapEntry(i, v, {v: 'a'})", "map(int, string)"),
    (
        "optional.of(1).optMap(x, x + 'a')",
        "27: found no matching overload for '_+_' applied to '(int, string)'",
    ),
    (
        "optional.of(1).optFlatMap(x, 1)",
        "25: found no matching overload for '_?_:_' applied to '(bool, int, optional_type(dyn))'",
    ),
    (
        "optional.of(1).optFlatMap(x, optional.of(x))",
        "optional_type(int)",
    ),
    (
        "optional.of(1).x",
        "14: type 'int' does not support field selection",
    ),
    (
        "optional.of(1).?x",
        "14: type 'int' does not support field selection",
    ),
    (
        "'a'.?x",
        "3: type 'string' does not support field selection",
    ),
    ("[1][?0]", "optional_type(int)"),
    ("{'a': 1}[?'b']", "optional_type(int)"),
    (
        "{'a': 1}[?1]",
        "8: found no matching overload for '_[?_]' applied to '(map(string, int), int)'",
    ),
    (
        "[1]['a']",
        "3: found no matching overload for '_[_]' applied to '(list(int), string)'",
    ),
    (
        "{'a': 1}[1]",
        "8: found no matching overload for '_[_]' applied to '(map(string, int), int)'",
    ),
    (
        "1[0]",
        "1: found no matching overload for '_[_]' applied to '(int, int)'",
    ),
    (
        "[?1]",
        "2: expected type 'optional_type(int)' but found 'int'",
    ),
    ("[?optional.of(1)]", "list(int)"),
    (
        "{?'a': 1}",
        "7: expected type 'optional_type(int)' but found 'int'",
    ),
    ("{?'a': optional.of(1)}", "map(string, int)"),
    ("[1, null]", "list(dyn)"),
    ("[1, dyn('a')]", "list(dyn)"),
    ("{1: 'a', 'b': 2}", "map(dyn, dyn)"),
    ("{[1]: 2}", "map(list(int), int)"),
    ("{1.5: 2}", "map(double, int)"),
    ("has(o.x)", "bool"),
    ("has(o)", "4: invalid argument to has() macro"),
    ("has(o['x'])", "5: invalid argument to has() macro"),
    ("has(o.x())", "7: invalid argument to has() macro"),
    ("has(1)", "4: invalid argument to has() macro"),
    ("[1].all(x.y, true)", "9: argument must be a simple name"),
    ("[1].all(1, true)", "8: argument must be a simple name"),
    ("[1].map(o.x, 1)", "9: argument is not an identifier"),
    ("[1].exists(i, i, true)", "14: duplicate variable name: i"),
    ("[1].exists(i, v, true)", "bool"),
    (
        "[1].exists(i, 1, true)",
        "14: argument must be a simple name",
    ),
    (
        "optional.of(1).optMap(1, 2)",
        "22: optMap() variable name must be a simple identifier",
    ),
    ("[1].sort()", "list(int)"),
    (
        "[[1]].sort()",
        "10: found no matching overload for 'sort' applied to 'list(list(int)).()'",
    ),
    ("['a'].sortBy(x, x)", "list(string)"),
    (
        "[1].sortBy(x, [x])",
        "10: found no matching overload for '@sortByAssociatedKeys' applied to 'list(int).(list(list(int)))'",
    ),
    (
        "1.sortBy(x, x)",
        "0: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    ),
    (
        "'a'.sortBy(x, x)",
        "0: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    ),
    (
        "{'a': 1}.sortBy(x, x)",
        "0: sortBy can only be applied to a list, identifier, comprehension, call or select expression",
    ),
    ("(true ? [1] : [2]).sortBy(x, x)", "list(int)"),
    (
        "[google.protobuf.Int32Value{value: 1}].sortBy(x, x)",
        "list(wrapper(int))",
    ),
    ("[1].sortBy(1, 2)", "11: argument is not an identifier"),
    ("type(1) == int", "bool"),
    (
        "type(1) == 'a'",
        "8: found no matching overload for '_==_' applied to '(type(int), string)'",
    ),
    (
        "int + 1",
        "4: found no matching overload for '_+_' applied to '(type(int), int)'",
    ),
    ("type(int) == type", "bool"),
    ("type(1) == type(2)", "bool"),
    ("int == uint", "bool"),
    ("[int, uint]", "list(type(int))"),
    (
        "google.protobuf.Value{number_value: 1} + 1",
        "34: expected type of field 'number_value' is 'double' but provided type is 'int'",
    ),
    ("google.protobuf.Int32Value{value: 1} + 1", "int"),
    ("google.protobuf.Int32Value{value: 1} == null", "bool"),
    (
        "google.protobuf.Int32Value{value: 1} + 'a'",
        "37: found no matching overload for '_+_' applied to '(wrapper(int), string)'",
    ),
    (
        "[google.protobuf.Int32Value{value: 1}, null]",
        "list(null_type)",
    ),
    (
        "[google.protobuf.Int32Value{value: 1}, 1]",
        "list(wrapper(int))",
    ),
    ("google.protobuf.StringValue{value: 'a'}.size()", "int"),
    ("google.protobuf.BoolValue{value: true} ? 1 : 2", "int"),
    ("google.protobuf.BoolValue{value: true} && true", "bool"),
    ("google.protobuf.ListValue{values: [1]} + [1]", "list(dyn)"),
    ("google.protobuf.Struct{fields: {'a': 1}}.a", "dyn"),
    (
        "google.protobuf.Timestamp{seconds: 1} > timestamp(0)",
        "bool",
    ),
    (
        "google.protobuf.Duration{seconds: 1} + 1",
        "37: found no matching overload for '_+_' applied to '(duration, int)'",
    ),
    (
        "null == 1",
        "5: found no matching overload for '_==_' applied to '(null, int)'",
    ),
    (
        "null == 'a'",
        "5: found no matching overload for '_==_' applied to '(null, string)'",
    ),
    (
        "null == [1]",
        "5: found no matching overload for '_==_' applied to '(null, list(int))'",
    ),
    ("null == timestamp(0)", "bool"),
    ("null == duration('1s')", "bool"),
    (
        "null in [1]",
        "5: found no matching overload for '@in' applied to '(null, list(int))'",
    ),
    (
        "null + 1",
        "5: found no matching overload for '_+_' applied to '(null, int)'",
    ),
    (
        "true ? null : 1",
        "5: found no matching overload for '_?_:_' applied to '(bool, null, int)'",
    ),
    (
        "true ? null : google.protobuf.Int32Value{value: 1}",
        "null_type",
    ),
    (
        "lists.range('a')",
        "11: found no matching overload for 'lists.range' applied to '(string)'",
    ),
    ("[[1], [[2]]].flatten()", "list(dyn)"),
    (
        "[1].flatten()",
        "11: found no matching overload for 'flatten' applied to 'list(int).()'",
    ),
    (
        "sets.contains([1], ['a'])",
        "13: found no matching overload for 'sets.contains' applied to '(list(int), list(string))'",
    ),
    ("sets.contains(['a'], [])", "bool"),
    (
        "'%d'.format(1)",
        "11: found no matching overload for 'format' applied to 'string.(int)'",
    ),
    (
        "'a'.join()",
        "8: found no matching overload for 'join' applied to 'string.()'",
    ),
    (
        "[1].join()",
        "8: found no matching overload for 'join' applied to 'list(int).()'",
    ),
    (
        "['a'].join(1)",
        "10: found no matching overload for 'join' applied to 'list(string).(int)'",
    ),
    (
        "timestamp('2020-01-01T00:00:00Z') + 1",
        "34: found no matching overload for '_+_' applied to '(timestamp, int)'",
    ),
    (
        "timestamp(0) - timestamp(0) + duration('1s')",
        "google.protobuf.Duration",
    ),
    (
        "duration('1s') - timestamp(0)",
        "15: found no matching overload for '_-_' applied to '(duration, timestamp)'",
    ),
    ("[].map(x, x)[0] + 1", "int"),
    ("[].map(x, [x])", "list(list(dyn))"),
    ("{}.map(x, x)", "list(dyn)"),
    ("[[]].map(x, x.map(y, y))", "list(list(dyn))"),
    ("[dyn(1)].map(x, x + 1)", "list(int)"),
    ("dyn(1) + 1", "int"),
    ("dyn([1])[0] + 'a'", "string"),
    ("o + 1", "int"),
    ("o && o", "bool"),
    ("o ? o : 1", "dyn"),
    ("o.a + o.b", "dyn"),
    (
        "'a'[0]",
        "3: found no matching overload for '_[_]' applied to '(string, int)'",
    ),
    (
        "b'a'[0]",
        "4: found no matching overload for '_[_]' applied to '(bytes, int)'",
    ),
];

/// Returns the type, or the column and message of each error.
fn outcome(text: &str) -> String {
    let (ast, found) = syntax::parse(text);
    let (found, type_) = match ast {
        Some(ast) if found.is_empty() => {
            let (checked, found) = checker::check(&Arc::new(ast), text, &env_of_extensions());
            (found, checked.output_type().declared_string())
        }
        _ => (found, String::new()),
    };
    if found.is_empty() {
        return type_;
    }
    let errors: Vec<_> = found
        .as_slice()
        .iter()
        .map(|error| format!("{}: {}", error.location.column, error.kind))
        .collect();
    errors.join("; ")
}

#[test]
fn checker_returns_types_and_errors_of_upstream() {
    for (text, expected) in ROWS {
        assert_eq!(outcome(text), *expected, "{text}");
    }
}
