//! Object literals of protobuf messages.
//!
//! The results and costs are those of cel-go, with all extensions.

use super::check_all;

const ROWS: &[(&str, &str, u64)] = &[
    ("google.protobuf.BoolValue{value: true}", "true", 40),
    ("google.protobuf.BoolValue{}", "false", 40),
    ("google.protobuf.BytesValue{}", "[]", 40),
    ("google.protobuf.BytesValue{value: b'ab'}", "[97 98]", 40),
    ("google.protobuf.DoubleValue{}", "0", 40),
    ("google.protobuf.DoubleValue{value: 1.5}", "1.5", 40),
    ("google.protobuf.FloatValue{}", "0", 40),
    (
        "google.protobuf.FloatValue{value: 0.1}",
        "0.10000000149011612",
        40,
    ),
    ("google.protobuf.Int32Value{}", "0", 40),
    (
        "google.protobuf.Int32Value{value: 2147483648}",
        "error: field type conversion error for google.protobuf.Int32Value.value value type: integer overflow",
        40,
    ),
    (
        "google.protobuf.Int64Value{value: 2147483648}",
        "2147483648",
        40,
    ),
    ("google.protobuf.StringValue{}", "", 40),
    ("google.protobuf.StringValue{value: 'a'}", "a", 40),
    ("google.protobuf.UInt32Value{}", "0", 40),
    (
        "google.protobuf.UInt32Value{value: 4294967296u}",
        "error: field type conversion error for google.protobuf.UInt32Value.value value type: unsigned integer overflow",
        40,
    ),
    (
        "google.protobuf.UInt32Value{value: 4294967295u}",
        "4294967295",
        40,
    ),
    (
        "google.protobuf.UInt64Value{value: 4294967296u}",
        "4294967296",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn(1)}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: unsupported type conversion from 'int' to string",
        40,
    ),
    ("google.protobuf.ListValue{}", "[]", 40),
    (
        "google.protobuf.ListValue{values: [1, 'a', null, 2u, 1.5, b'ab', true]}",
        "[1, a, 0, 2, 1.5, YWI=, true]",
        40,
    ),
    (
        "google.protobuf.ListValue{values: [9007199254740991, 9007199254740992]}",
        "[9.007199254740991e+15, 9007199254740992]",
        40,
    ),
    (
        "google.protobuf.ListValue{values: [9007199254740991u, 9007199254740992u]}",
        "[9.007199254740991e+15, 9007199254740992]",
        40,
    ),
    (
        "google.protobuf.ListValue{values: [-9007199254740991, -9007199254740992]}",
        "[-9.007199254740991e+15, -9007199254740992]",
        40,
    ),
    (
        "google.protobuf.ListValue{values: [duration('1s'), timestamp(0)]}",
        "[1s, 1970-01-01T00:00:00Z]",
        40,
    ),
    (
        "google.protobuf.ListValue{values: [int]}",
        "error: field type conversion error for google.protobuf.ListValue.values value type: type conversion not supported for 'type'",
        40,
    ),
    (
        "google.protobuf.ListValue{values: dyn(1)}",
        "error: unsupported field type for google.protobuf.ListValue.values: int",
        40,
    ),
    (
        "google.protobuf.ListValue{values: dyn({})}",
        "error: unsupported field type for google.protobuf.ListValue.values: map(dyn, dyn)",
        40,
    ),
    ("google.protobuf.Struct{}", "{}", 40),
    (
        "google.protobuf.Struct{fields: {'a': 1, 'b': [1], 'c': {'d': null}}}",
        "{a: 1, b: [1], c: {d: 0}}",
        40,
    ),
    (
        "google.protobuf.Struct{fields: {'a': int}}",
        "error: field type conversion error for google.protobuf.Struct.fields value type: type conversion not supported for 'type'",
        40,
    ),
    (
        "google.protobuf.Struct{fields: dyn({1: 2})}",
        "error: field type conversion error for google.protobuf.Struct.fields value type: unsupported type conversion from 'int' to string",
        40,
    ),
    (
        "google.protobuf.Struct{fields: dyn([])}",
        "error: unsupported field type for google.protobuf.Struct.fields: list(dyn)",
        40,
    ),
    (
        "google.protobuf.Struct{fields: dyn(optional.of(1))}",
        "error: unsupported field type for google.protobuf.Struct.fields: optional_type",
        42,
    ),
    ("google.protobuf.Value{}", "0", 40),
    ("google.protobuf.Value{bool_value: true}", "true", 40),
    ("google.protobuf.Value{string_value: 'a'}", "a", 40),
    ("google.protobuf.Value{number_value: 1.5}", "1.5", 40),
    ("google.protobuf.Value{null_value: 0}", "0", 40),
    (
        "google.protobuf.Value{null_value: google.protobuf.NullValue.NULL_VALUE}",
        "0",
        40,
    ),
    ("google.protobuf.Value{list_value: [1]}", "[1]", 40),
    ("google.protobuf.Value{list_value: dyn({})}", "[]", 40),
    (
        "google.protobuf.Value{list_value: dyn({'ab': 1})}",
        "error: field type conversion error for google.protobuf.Value.list_value value type: type conversion error, no such field 'Ab' in type 'structpb.ListValue'",
        40,
    ),
    (
        "google.protobuf.Value{struct_value: {'a': 1}}",
        "{a: 1}",
        40,
    ),
    (
        "google.protobuf.Value{struct_value: dyn(1)}",
        "error: field type conversion error for google.protobuf.Value.struct_value value type: unsupported type conversion from 'int' to *structpb.Struct",
        40,
    ),
    (
        "google.protobuf.Value{bool_value: dyn('a')}",
        "error: field type conversion error for google.protobuf.Value.bool_value value type: unsupported native conversion from string to 'bool'",
        40,
    ),
    (
        "google.protobuf.Duration{seconds: 1, nanos: 5}",
        "1.000000005s",
        40,
    ),
    ("google.protobuf.Duration{seconds: -1}", "-1s", 40),
    (
        "google.protobuf.Duration{nanos: dyn(2147483648)}",
        "error: field type conversion error for google.protobuf.Duration.nanos value type: integer overflow",
        40,
    ),
    (
        "google.protobuf.Duration{nanos: 2147483648}",
        "error: field type conversion error for google.protobuf.Duration.nanos value type: integer overflow",
        40,
    ),
    (
        "google.protobuf.Duration{seconds: 9223372037}",
        "2562047h47m16.854775807s",
        40,
    ),
    (
        "google.protobuf.Duration{seconds: -9223372037}",
        "-2562047h47m16.854775808s",
        40,
    ),
    ("google.protobuf.Duration{}", "0s", 40),
    (
        "google.protobuf.Duration{seconds: dyn('a')}",
        "error: field type conversion error for google.protobuf.Duration.seconds value type: unsupported native conversion from string to 'int64'",
        40,
    ),
    (
        "google.protobuf.Timestamp{seconds: 1, nanos: 5}",
        "1970-01-01 00:00:01.000000005 +0000 UTC",
        40,
    ),
    (
        "google.protobuf.Timestamp{nanos: -1}",
        "1969-12-31 23:59:59.999999999 +0000 UTC",
        40,
    ),
    (
        "google.protobuf.Timestamp{nanos: 1000000000}",
        "1970-01-01 00:00:01 +0000 UTC",
        40,
    ),
    (
        "google.protobuf.Timestamp{}",
        "1970-01-01 00:00:00 +0000 UTC",
        40,
    ),
    (
        "google.protobuf.Empty{} == google.protobuf.Empty{}",
        "true",
        81,
    ),
    (
        "google.protobuf.Any{}",
        "error: unsupported conversion to ref.Val: (*dynamicpb.Message)",
        40,
    ),
    (
        "google.protobuf.Any{type_url: 'a\"b'}",
        "error: unsupported conversion to ref.Val: (*dynamicpb.Message)type_url:\"a\\\"b\"",
        40,
    ),
    (
        "google.protobuf.Any{type_url: 'a', value: b'c'}",
        "error: unsupported conversion to ref.Val: (*dynamicpb.Message)type_url:\"a\" value:\"c\"",
        40,
    ),
    (
        "google.protobuf.Any{value: b'c'}",
        "error: unsupported conversion to ref.Val: (*dynamicpb.Message)value:\"c\"",
        40,
    ),
    (
        "google.protobuf.Any{value: dyn(1)}",
        "error: field type conversion error for google.protobuf.Any.value value type: unsupported type conversion from 'int' to []uint8",
        40,
    ),
    ("google.protobuf.BytesValue{value: dyn([])}", "[]", 40),
    (
        "google.protobuf.BytesValue{value: dyn([1])}",
        "error: field type conversion error for google.protobuf.BytesValue.value value type: unsupported type conversion from 'int' to uint8",
        40,
    ),
    (
        "google.protobuf.BoolValue{value: dyn(null)}",
        "error: field type conversion error for google.protobuf.BoolValue.value value type: type conversion error from 'null_type' to 'bool'",
        40,
    ),
    (
        "google.protobuf.BoolValue{value: dyn(1)}",
        "error: field type conversion error for google.protobuf.BoolValue.value value type: unsupported type conversion from 'int' to bool",
        40,
    ),
    (
        "google.protobuf.Int64Value{value: dyn(1u)}",
        "error: field type conversion error for google.protobuf.Int64Value.value value type: unsupported type conversion from 'uint' to int64",
        40,
    ),
    (
        "google.protobuf.UInt64Value{value: dyn(1)}",
        "error: field type conversion error for google.protobuf.UInt64Value.value value type: unsupported type conversion from 'int' to uint64",
        40,
    ),
    (
        "google.protobuf.UInt64Value{value: dyn(1.0)}",
        "error: field type conversion error for google.protobuf.UInt64Value.value value type: type conversion error from Double to 'uint64'",
        40,
    ),
    (
        "google.protobuf.DoubleValue{value: dyn(true)}",
        "error: field type conversion error for google.protobuf.DoubleValue.value value type: type conversion error from bool to 'float64'",
        40,
    ),
    (
        "google.protobuf.DoubleValue{value: dyn(b'a')}",
        "error: field type conversion error for google.protobuf.DoubleValue.value value type: type conversion error from Bytes to 'float64'",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn(duration('1s'))}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: type conversion error from 'Duration' to 'string'",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn(timestamp(0))}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: type conversion error from 'Timestamp' to 'string'",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn([1])}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: type conversion error from list to 'string'",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn({})}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: type conversion error from map to 'string'",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn(int)}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: type conversion not supported for 'type'",
        40,
    ),
    (
        "google.protobuf.StringValue{value: dyn(optional.none())}",
        "error: field type conversion error for google.protobuf.StringValue.value value type: optional.none() dereference",
        42,
    ),
    (
        "google.protobuf.StringValue{value: dyn(optional.of('a'))}",
        "a",
        42,
    ),
    ("google.protobuf.NullValue.NULL_VALUE", "0", 0),
    (
        "google.protobuf.Value",
        "not planned: reference to undefined type: google.protobuf.Value",
        0,
    ),
    ("type(google.protobuf.Duration)", "type", 0),
    (
        "google.protobuf.Int32Value{?value: optional.of(3)}",
        "3",
        41,
    ),
    (
        "google.protobuf.Int32Value{?value: optional.none()}",
        "0",
        41,
    ),
    (
        "google.protobuf.Int32Value{?value: dyn(1)}",
        "error: cannot initialize optional entry 'value' from non-optional value 1",
        40,
    ),
    ("type(google.protobuf.Empty{})", "google.protobuf.Empty", 41),
];

#[test]
fn message_literals_have_upstream_results() {
    check_all(ROWS);
}
