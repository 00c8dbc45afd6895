//! Timestamps, durations and time zones.
//!
//! The results and costs are those of cel-go, with all extensions.

use super::check_all;

const ROWS: &[(&str, &str, u64)] = &[
    ("timestamp(0) in [timestamp(0)]", "true", 1),
    (
        "{duration('1s'): 1}[duration('1s')]",
        "not planned: invalid qualifier type: types.Duration",
        0,
    ),
    ("-dyn(duration('1s'))", "-1s", 1),
    ("dyn(duration('1s')) - dyn(1)", "error: no such overload", 1),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('Europe/Berlin')",
        "13",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('+02:30')",
        "15",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getMinutes('+02:30')",
        "4",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('-02:30')",
        "10",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getMinutes('-02:30')",
        "4",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('../Berlin')",
        "error: time: invalid location name",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('/Berlin')",
        "error: time: invalid location name",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('\\\\Berlin')",
        "error: time: invalid location name",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('a/..')",
        "error: time: invalid location name",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('Europe')",
        "error: is a directory",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('Europe/')",
        "error: is a directory",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('Europe/Berlin/x')",
        "error: not a directory",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('europe/berlin')",
        "error: unknown time zone europe/berlin",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('Nowhere')",
        "error: unknown time zone Nowhere",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('')",
        "12",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('Local')",
        "12",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('UTC')",
        "12",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('a:00')",
        "error: strconv.Atoi: parsing \"a\": invalid syntax",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours(':00')",
        "error: strconv.Atoi: parsing \"\": invalid syntax",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('01:b')",
        "error: strconv.Atoi: parsing \"b\": invalid syntax",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('99999999999999999999:00')",
        "error: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getHours('1:2:3')",
        "error: strconv.Atoi: parsing \"2:3\": invalid syntax",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getMilliseconds()",
        "789",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getMilliseconds('+01:00')",
        "789",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getFullYear()",
        "2024",
        1,
    ),
    ("timestamp('2024-02-29T12:34:56.789Z').getMonth()", "1", 1),
    ("timestamp('2024-02-29T12:34:56.789Z').getDate()", "29", 1),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getDayOfMonth()",
        "28",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getDayOfWeek()",
        "4",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getDayOfYear()",
        "59",
        1,
    ),
    (
        "timestamp('2024-02-29T12:34:56.789Z').getSeconds()",
        "56",
        1,
    ),
    ("duration('3661.5s').getHours()", "1", 1),
    ("duration('3661.5s').getMinutes()", "61", 1),
    ("duration('3661.5s').getSeconds()", "3661", 1),
    ("duration('3661.5s').getMilliseconds()", "3661500", 1),
    ("duration('-1.5s').getSeconds()", "-1", 1),
    (
        "duration('510038999.999999998s').getSeconds()",
        "510039000",
        1,
    ),
    (
        "duration('-510038999.999999998s').getSeconds()",
        "-510039000",
        1,
    ),
    ("duration('59.999999999s').getSeconds()", "59", 1),
    (
        "duration('60000000m59.999999999s').getMinutes()",
        "60000001",
        1,
    ),
    (
        "duration('2000000h59m59.999999999s').getHours()",
        "2000001",
        1,
    ),
    (
        "duration('-2000000h59m59.999999999s').getHours()",
        "-2000001",
        1,
    ),
    (
        "duration('510038999.999999998s').getMilliseconds()",
        "510038999999",
        1,
    ),
    ("duration('-1.5s').getMilliseconds()", "-1500", 1),
    ("timestamp(0) - timestamp(1)", "-1s", 1),
    (
        "timestamp(0) + duration('1.5s')",
        "1970-01-01 00:00:01.5 +0000 UTC",
        1,
    ),
    (
        "timestamp(0) - duration('1.5s')",
        "1969-12-31 23:59:58.5 +0000 UTC",
        1,
    ),
    (
        "duration('1s') + timestamp(0)",
        "1970-01-01 00:00:01 +0000 UTC",
        1,
    ),
    ("duration('1s') + duration('1s')", "2s", 1),
    (
        "duration('2562047h') + duration('2562047h')",
        "error: integer overflow",
        1,
    ),
    (
        "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
        "error: timestamp overflow",
        1,
    ),
    (
        "timestamp('0001-01-01T00:00:00Z') - duration('1ns')",
        "error: timestamp overflow",
        1,
    ),
    (
        "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
        "error: integer overflow",
        1,
    ),
    ("type(duration('1s'))", "google.protobuf.Duration", 0),
    ("string(duration('90s'))", "90s", 0),
    ("string(timestamp(0))", "1970-01-01T00:00:00Z", 0),
    ("int(timestamp(5))", "5", 0),
    (
        "timestamp('x')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Timestamp'",
        0,
    ),
    (
        "timestamp(253402300800)",
        "not planned: timestamp overflow",
        0,
    ),
    (
        "duration('1x')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    ("duration('1h1m1s1ms1us1ns')", "1h1m1.001001001s", 0),
    (
        "duration('9223372036.854775808s')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    ("duration('-1.5h')", "-1h30m0s", 0),
    (
        "duration('')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    ("duration('0')", "0s", 0),
    (
        "duration('.s')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    ("duration('1.s')", "1s", 0),
    ("duration('.5s')", "500ms", 0),
    (
        "duration('9223372036854775808ns')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    (
        "duration('-9223372036854775808ns')",
        "-2562047h47m16.854775808s",
        0,
    ),
    (
        "duration('18446744073709551616ns')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    (
        "duration('9223372036854775807ns')",
        "2562047h47m16.854775807s",
        0,
    ),
    (
        "duration('2562048h')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    (
        "duration('2562047h47m16.854775808s')",
        "not planned: type conversion error from 'string' to 'google.protobuf.Duration'",
        0,
    ),
    (
        "duration('-2562047h47m16.854775808s')",
        "-2562047h47m16.854775808s",
        0,
    ),
    ("duration('1s') <= duration('1s')", "true", 1),
    ("timestamp(0) > timestamp(1)", "false", 1),
];

#[test]
fn timestamps_and_durations_have_upstream_results() {
    check_all(ROWS);
}
