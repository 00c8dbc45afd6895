//! Strings that functions of the environment parse. The last strings of each list are invalid.

const QUANTITY: &[&str] = &[
    "1",
    "100m",
    "1.5Gi",
    "-3k",
    "9223372036854775808",
    "1e3",
    "0.0000000001",
    "1 Ki",
];
const SEMVER: &[&str] = &["1.2.3", "1.0.0-rc.1", "2.0.0+build", "10.20.30", "1.2"];
const IP: &[&str] = &[
    "127.0.0.1",
    "::1",
    "10.0.0.1",
    "fe80::1",
    "2001:db8::abcd",
    "1.2.3.256",
];
const CIDR: &[&str] = &[
    "10.0.0.0/8",
    "192.168.0.1/24",
    "::/0",
    "2001:db8::/32",
    "10.0.0.0/33",
];
const URL: &[&str] = &[
    "https://example.test/",
    "http://a.test:80/p?x=1&x=2",
    "/path",
    "https://[::1]:80/",
    "http://",
];
const TIME: &[&str] = &[
    "1970-01-01T00:00:00Z",
    "2024-02-29T12:34:56.789Z",
    "2000-01-01T00:00:00+05:30",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2024-02-30T00:00:00Z",
];
const DURATION: &[&str] = &[
    "0s",
    "1h30m5s",
    "-2h45m",
    "1ms",
    "2562047h47m16.854775807s",
    "1d",
];
const ZONE: &[&str] = &[
    "UTC",
    "",
    "America/New_York",
    "+05:30",
    "-08:00",
    "Mars/Base",
];
const PATTERN: &[&str] = &[
    "",
    "a",
    "^a",
    "[a-z]+",
    "a*?",
    "(a|b)+",
    "\\bfoo\\b",
    "\\p{L}{2,3}",
    "(?i)ABC",
    "x{3}",
    "(",
];
const FORMAT: &[&str] = &[
    "dns1123Label",
    "qualifiedName",
    "uri",
    "uuid",
    "byte",
    "date",
    "nosuch",
];
const PRINTED: &[&str] = &[
    "%s", "%d", "%s-%s", "%.3f", "%e", "%x", "%X", "%b", "%o", "%%", "%s %q",
];
const INT: &[&str] = &["0", "42", "-7", "9223372036854775807", "x"];
const UINT: &[&str] = &["0", "42", "18446744073709551615", "-1"];
const DOUBLE: &[&str] = &["0", "1.5", "-2.5e3", "NaN", "x"];
const BOOL: &[&str] = &["true", "false", "T", "0", "yes"];
const NAME: &[&str] = &[
    "web", "pods", "apps", "get", "a-b", "default", "", "Bad_Name", "/healthz",
];

/// Strings for functions that require no format.
pub(super) const ANY: &[&str] = &[
    "",
    "a",
    "abc",
    "foo bar foo",
    "a,b,,c",
    "  padded\t",
    "é日本😀",
    "e\u{301}",
    "ABC",
    "tab\tnew\nline",
    "quo\"te'\\",
    "\u{0}\u{7f}\u{200b}",
    "123",
    "-v",
    "x-y_z.w",
];

/// Returns strings for the `n`th argument of the overload `id`. Returns `None` if the argument has no required format.
pub(super) fn argument_texts(id: &str, n: usize) -> Option<&'static [&'static str]> {
    Some(match (id, n) {
        ("string_to_quantity" | "is_quantity_string", 0) => QUANTITY,
        (
            "string_to_semver"
            | "is_semver_string"
            | "string_bool_to_semver"
            | "is_semver_string_bool",
            0,
        ) => SEMVER,
        ("string_to_ip" | "is_ip" | "ip_is_canonical", 0) | ("cidr_contains_ip_string", 1) => IP,
        ("string_to_cidr" | "is_cidr", 0) | ("cidr_contains_cidr_string", 1) => CIDR,
        ("string_to_url" | "is_url_string", 0) => URL,
        ("string_to_timestamp", 0) => TIME,
        ("string_to_duration", 0) => DURATION,
        ("string_to_int64", 0) => INT,
        ("string_to_uint64", 0) => UINT,
        ("string_to_double", 0) => DOUBLE,
        ("string_to_bool", 0) => BOOL,
        (
            "matches"
            | "matches_string"
            | "string_find_string"
            | "string_find_all_string"
            | "string_find_all_string_int",
            1,
        ) => PATTERN,
        ("format-named", 0) => FORMAT,
        ("string_format", 0) => PRINTED,
        (id, 1..)
            if id.starts_with("authorizer_")
                || id.starts_with("resourcecheck_")
                || id.starts_with("pathcheck_") =>
        {
            NAME
        }
        (id, 1..) if id.starts_with("timestamp_to_") => ZONE,
        _ => return None,
    })
}

/// Returns true if the `n`th argument of the overload `id` should be a small number, such as an index.
pub(super) fn is_small(id: &str, n: usize) -> bool {
    match id {
        "lists_range" => n == 0,
        "list_slice" => n > 0,
        "modulo_int64" | "divide_int64" | "modulo_uint64" | "divide_uint64" => n == 1,
        _ => {
            n > 0
                && [
                    "index_list",
                    "optindex",
                    "list_index",
                    "list_flatten",
                    "string_",
                ]
                .iter()
                .any(|part| id.contains(part))
        }
    }
}
