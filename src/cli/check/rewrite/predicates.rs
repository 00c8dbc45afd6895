//! Proposes tests and default values of CEL for functions of other languages, such as `has(a.b)` for `isset(a.b)` and
//! `a.?b.orValue(c)` for `COALESCE(a.b, c)`.

use std::ops::Range;

use super::calls::MemberCall;
use super::presence::{is_literal, optional_text, presence_test};
use super::proposal::{Proposal, string_content};
use crate::cel::syntax::token::Kind;
use crate::cli::check::suggestion::normalized;
use crate::cli::check::tokens::{MEMBER, RELATION, TokenText, UNARY};

/// A test of one value.
#[derive(Clone, Copy)]
enum Test {
    Present,
    Absent,
    Empty,
    NotEmpty,
    Type(&'static str),
    Pattern(&'static str),
    /// A test whether this member function, such as `lowerAscii`, leaves the value unchanged.
    Unchanged(&'static str),
}

/// The functions of other languages that test one value. The names are in lower case, without `_`.
const TESTS: [(&[&str], Test); 13] = [
    (
        &[
            "isset",
            "defined",
            "isdefined",
            "ispresent",
            "present",
            "exists",
            "notnull",
            "isnotnull",
            "isnotnil",
            "notnil",
            "can",
            "hasvalue",
        ],
        Test::Present,
    ),
    (
        &[
            "isnull",
            "isnil",
            "isnone",
            "isundefined",
            "undefined",
            "absent",
            "isabsent",
            "missing",
            "ismissing",
            "notexists",
        ],
        Test::Absent,
    ),
    (&["empty", "isempty"], Test::Empty),
    (&["notempty", "isnotempty", "nonempty"], Test::NotEmpty),
    (&["isstring"], Test::Type("string")),
    (&["isbool", "isboolean"], Test::Type("bool")),
    (&["isint", "isinteger"], Test::Type("int")),
    (&["isarray", "islist"], Test::Type("list")),
    (&["isobject", "ismap", "isdict"], Test::Type("map")),
    (
        &["isdigit", "isnumeric", "isdecimal"],
        Test::Pattern("^[0-9]+$"),
    ),
    (&["isalnum"], Test::Pattern("^[a-zA-Z0-9]+$")),
    (&["islower"], Test::Unchanged("lowerAscii")),
    (&["isupper"], Test::Unchanged("upperAscii")),
];

/// The functions of other languages that return the second argument if the first is absent, in lower case and without
/// `_`.
const DEFAULTS: [&str; 9] = [
    "coalesce",
    "default",
    "firstnonnull",
    "ifnull",
    "isnull",
    "nvl",
    "ordefault",
    "orelse",
    "try",
];

/// The methods of Go and Java that return a field of the metadata, each with the field.
const GETTERS: [(&str, &str); 4] = [
    ("getname", "name"),
    ("getnamespace", "namespace"),
    ("getlabels", "labels"),
    ("getannotations", "annotations"),
];

/// The operands of a function call. The receiver of a member function is the first operand.
struct Operands<'a> {
    all: Vec<Range<usize>>,
    whole: Range<usize>,
    member: Option<&'a Range<usize>>,
}

/// Proposes a test or a default value for the call of the function `name`. `n` is its parenthesis.
pub(super) fn predicate(
    source: &TokenText<'_>,
    n: usize,
    (name, member): (&str, Option<&MemberCall<'_, '_>>),
) -> Option<Proposal> {
    let mut operands = source.arguments(n)?;
    let whole = match member {
        Some(call) => {
            operands.insert(0, call.receiver.clone());
            call.whole.clone()
        }
        None => n.checked_sub(1)?..source.close(n)? + 1,
    };
    let call = Operands {
        all: operands,
        whole,
        member: member.map(|it| &it.receiver),
    };
    let name = normalized(name);
    let (text, precedence) = match call.all.as_slice() {
        [operand] => {
            if let Some(getter) = getter(source, &call, &name) {
                return replaced(source, &call, getter);
            }
            let mut rows = TESTS.iter();
            let (_, test) = rows.find(|(names, _)| names.contains(&&*name))?;
            if name == "can" && source.kind(operand.end - 1)? == Kind::CloseParen {
                let text = source.source(operand)?.to_owned();
                let proposal = replaced(source, &call, (text, MEMBER))?;
                let help = "remove `can()`: a condition is a bool".to_owned();
                return Some(Proposal { help, ..proposal });
            }
            test_of(source, operand, *test)?
        }
        [object, name_of_field] if matches!(&*name, "hasattr" | "isinstance") => {
            let text = source.receiver_text(object)?;
            match string_content(source, name_of_field).filter(|_| name == "hasattr") {
                Some(field) => (format!("has({text}.{field})"), MEMBER),
                None if name == "hasattr" => return None,
                None => {
                    let type_ = python_type(source.source(name_of_field)?)?;
                    (
                        format!("type({}) == {type_}", source.source(object)?),
                        RELATION,
                    )
                }
            }
        }
        [value, default] if DEFAULTS.contains(&&*name) => {
            let optional = optional_text(source.source(value)?)?;
            let text = format!("{optional}.orValue({})", source.source(default)?);
            if !is_literal(source, default) {
                return Some(Proposal::hint(format!("write `{text}`")));
            }
            (text, MEMBER)
        }
        [map, key, default] if matches!(&*name, "lookup" | "getattr") => {
            let map = source.receiver_text(map)?;
            let default = source.source(default)?;
            let text = match string_content(source, key) {
                Some(field) if name == "getattr" => format!("{map}.?{field}.orValue({default})"),
                _ => format!("{map}[?{}].orValue({default})", source.source(key)?),
            };
            (text, MEMBER)
        }
        _ => return None,
    };
    replaced(source, &call, (text, precedence))
}

fn replaced(
    source: &TokenText<'_>,
    call: &Operands<'_>,
    (text, precedence): (String, u8),
) -> Option<Proposal> {
    let negation = call.whole.start.checked_sub(1);
    let negation = negation.filter(|n| source.kind(*n) == Some(Kind::Exclamation));
    // `!isNull(a.b)` is `has(a.b)`.
    if let (Some(start), Some(positive)) = (negation, text.strip_prefix('!')) {
        let positive = positive.to_owned();
        let bytes = source.bytes(&(start..call.whole.end))?;
        return Some(Proposal::edit(bytes, positive));
    }
    let text = source.in_place_of(&call.whole, text, precedence);
    Some(Proposal::edit(source.bytes(&call.whole)?, text))
}

/// Returns `object.metadata.name` for `object.getName()`.
fn getter(source: &TokenText<'_>, call: &Operands<'_>, name: &str) -> Option<(String, u8)> {
    let object = source.source(call.member?)?;
    let (_, field) = GETTERS.iter().find(|(getter, _)| *getter == name)?;
    matches!(object, "object" | "oldObject").then(|| (format!("{object}.metadata.{field}"), MEMBER))
}

/// Returns the expression of a test of `operand`, and its precedence.
fn test_of(source: &TokenText<'_>, operand: &Range<usize>, test: Test) -> Option<(String, u8)> {
    let text = source.source(operand)?;
    Some(match test {
        Test::Present => presence_test(source, operand, true)?,
        Test::Absent => presence_test(source, operand, false)?,
        Test::Empty => (format!("size({text}) == 0"), RELATION),
        Test::NotEmpty => (format!("size({text}) > 0"), RELATION),
        Test::Type(name) => (format!("type({text}) == {name}"), RELATION),
        Test::Pattern(pattern) => (
            format!("{}.matches('{pattern}')", source.receiver_text(operand)?),
            UNARY,
        ),
        Test::Unchanged(function) => {
            let receiver = source.receiver_text(operand)?;
            (format!("{text} == {receiver}.{function}()"), RELATION)
        }
    })
}

/// Returns the type of CEL for a type of Python.
fn python_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "str" | "string" => "string",
        "int" => "int",
        "float" | "double" => "double",
        "bool" => "bool",
        "list" => "list",
        "dict" | "map" => "map",
        _ => return None,
    })
}
