//! Generates single expressions and values of their variables, for comparisons of the checker and the evaluator.

use anyhow::Result;
use serde_json::{Value, json};
use vap_status_controller::cel::types::Type;

use super::choices::Choices;
use super::expressions::{authorizer_type, declared, is_steady, make, material};
use super::generator::{Generator, Material, write_call};
use super::{choices, mistakes, mutate, schemas};

/// Generates at least `n` cases: expressions with mistakes, several calls of every overload, and random expressions.
///
/// # Errors
/// Returns an error if a schema has no type.
pub fn cases(seed: u64, n: u64) -> Result<Vec<Value>> {
    let scope = Scope::new(seed)?;
    let mut cases = Vec::new();
    for expression in mistakes::EXPRESSIONS {
        cases.push(json!({"expr": expression, "vars": {"object": object()},
            "declare": ["missing"], "authorizer": authorizer()}));
    }
    for (at, overload) in scope.material.overloads.iter().enumerate() {
        let id = overload.row.id;
        // The depth determines the arguments: 0 for literals, 1 for calls, and 2 for dynamically typed calls. Extreme
        // values follow below.
        for depth in 0..3 {
            let mut choices = choices(seed, id, depth);
            let seeded = Choices::Seeded(choices.below(1 << 30) as u64);
            let depth = u32::try_from(depth)?;
            let mut generator = Generator::new(&scope.material, seeded, depth == 2);
            let expression = generator.call_of(at, depth);
            cases.push(scope.case(&mut choices, &expression));
        }
        for round in 3..6 {
            let mut choices = choices(seed, id, round);
            let arguments: Option<Vec<String>> = overload
                .args
                .iter()
                .map(|type_| bound(&mut choices, type_))
                .collect();
            if let Some(arguments) = arguments {
                cases.push(scope.case(&mut choices, &write_call(overload, &arguments)));
            }
        }
    }
    let mut at = 0;
    while (cases.len() as u64) < n {
        let mut choices = choices(seed, "eval", at);
        at += 1;
        cases.push(match at % 8 {
            0 | 1 => schema_expression(&mut choices)?,
            2 => {
                let depth = 1 + u32::try_from(choices.below(2))?;
                let expression = make(&scope.material, &mut choices, None, depth);
                let expression = mutate::change(&mut choices, &expression);
                scope.case(&mut choices, &expression)
            }
            3 => {
                let mut case = scope.any(&mut choices)?;
                let limits = [0, 1, 2, 3, 5, 8, 13, 21, 50, 200];
                case["costLimit"] = json!(limits[choices.below(limits.len())]);
                case
            }
            _ => scope.any(&mut choices)?,
        });
    }
    cases.retain(|case| case["expr"].as_str().is_some_and(is_steady));
    for (at, case) in cases.iter_mut().enumerate() {
        case["id"] = json!(format!("eval-{seed}-{at}"));
    }
    Ok(cases)
}

fn object() -> Value {
    json!({"name": "web", "count": 3, "tags": ["a", "b"], "labels": {"app": "web"}})
}

/// Returns the rules by which the authorizer of a case decides.
fn authorizer() -> Value {
    json!([
        {"verb": "get", "decision": "allow", "reason": "may read"},
        {"verb": "list", "decision": "error", "reason": "broken"},
        {"group": "apps", "decision": "deny", "reason": "no apps"},
    ])
}

/// The variables, and the overloads and literals for expressions about the variables.
struct Scope {
    material: Material,
    vars: Value,
    schema: Value,
}

impl Scope {
    fn new(seed: u64) -> Result<Self> {
        let mut choices = choices(seed, "world", 0);
        let of_self = schemas::object(&mut choices, 4);
        let text = json!({"type": "string", "maxLength": 12});
        let schema = json!({
            "self": of_self.schema,
            "count": {"type": "integer"},
            "text": text,
            "texts": {"type": "array", "items": text, "maxItems": 4},
            "labels": {"type": "object", "additionalProperties": text},
            "since": {"type": "string", "format": "date-time"},
        });
        let mut variables = vec![("object", Type::Dyn), ("authorizer", authorizer_type())];
        for name in ["self", "count", "text", "texts", "labels", "since"] {
            variables.push((name, declared(&schema[name])?.cel_type("Self")));
        }
        Ok(Self {
            material: material(&variables),
            vars: json!({
                "self": of_self.value,
                "count": 3,
                "text": "a-b/c d",
                "texts": ["b", "", "é"],
                "labels": {"app": "web"},
                "since": "2024-02-29T12:34:56.789Z",
                "object": object(),
            }),
            schema,
        })
    }

    fn case(&self, choices: &mut Choices<'_>, expression: &str) -> Value {
        let mut case = json!({
            "expr": expression,
            "vars": self.vars,
            "schema": self.schema,
            "typedValues": choices.chance(50),
            "authorizer": authorizer(),
        });
        if choices.chance(50) {
            case["userInfo"] = json!({"username": "ann", "uid": "u", "groups": ["dev"]});
        }
        if choices.chance(20) {
            case["env"] = json!("new");
        }
        case
    }

    fn any(&self, choices: &mut Choices<'static>) -> Result<Value> {
        let depth = 1 + u32::try_from(choices.below(3))?;
        let expression = make(&self.material, choices, None, depth);
        Ok(self.case(choices, &expression))
    }
}

/// Generates an extreme value of a type. The expression is sometimes dynamically typed. Returns `None` if the type has
/// no extreme values.
fn bound(choices: &mut Choices<'_>, type_: &Type) -> Option<String> {
    let bounds: &[&str] = match type_ {
        Type::Int => &[
            "0",
            "1",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "9007199254740993",
            "64",
            "2147483648",
        ],
        Type::Uint => &[
            "0u",
            "1u",
            "18446744073709551615u",
            "9223372036854775808u",
            "9007199254740993u",
        ],
        Type::Double => &[
            "0.0",
            "-0.0",
            "1.0",
            "0.5",
            "1.7976931348623157e308",
            "5e-324",
            "(0.0 / 0.0)",
            "(1.0 / 0.0)",
            "(-1.0 / 0.0)",
            "9007199254740992.0",
            "9223372036854775807.0",
            "18446744073709551615.0",
            "-2.5",
        ],
        Type::Bool => &["true", "false"],
        Type::String => &[
            "''",
            "'a'",
            "'é😀'",
            "'\\u0000'",
            "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
            "text",
            "'A'",
            "'1'",
            "'a,b'",
        ],
        Type::Bytes => &["b''", "b'a'", "b'\\xff'", "b'\\000'", "b'é'"],
        Type::Null => &["null"],
        Type::Duration => &[
            "duration('0s')",
            "duration('1ns')",
            "duration('-1ns')",
            "duration('2562047h47m16.854775807s')",
            "duration('-2562047h47m16.854775808s')",
        ],
        Type::Timestamp => &[
            "timestamp('0001-01-01T00:00:00Z')",
            "timestamp('9999-12-31T23:59:59.999999999Z')",
            "timestamp('1970-01-01T00:00:00Z')",
            "since",
        ],
        Type::Dyn => &[
            "1",
            "'a'",
            "null",
            "object",
            "object.nosuch",
            "[1]",
            "dyn({'a': 1})",
            "1.0",
            "1u",
        ],
        _ => return None,
    };
    let value = choices.pick(bounds);
    Some(if choices.chance(25) {
        format!("dyn({value})")
    } else {
        value.to_owned()
    })
}

/// Generates a case with an expression about one variable. The variable has a schema.
fn schema_expression(choices: &mut Choices<'static>) -> Result<Value> {
    let generated = schemas::object(choices, 3);
    let of_self = declared(&generated.schema)?.cel_type("Self");
    let material = material(&[("self", of_self)]);
    let depth = 1 + u32::try_from(choices.below(2))?;
    let places: Vec<&(String, Type)> = material.places.iter().collect();
    let (place, type_) = places[choices.below(places.len())];
    let expression = match choices.below(6) {
        0 => make(&material, choices, None, depth),
        1 => make(&material, choices, Some(type_), depth),
        2 => format!(
            "{place} == {}",
            make(&material, choices, Some(type_), depth)
        ),
        _ => about(choices, place, type_),
    };
    Ok(json!({
        "expr": expression,
        "vars": {"self": generated.value},
        "schema": {"self": generated.schema},
        "typedValues": choices.chance(60),
    }))
}

/// Generates a typical expression about a value of `type_`. `place` is the path of the value.
#[expect(clippy::too_many_lines, reason = "one list per type is easy to read")]
pub(super) fn about(choices: &mut Choices<'_>, place: &str, type_: &Type) -> String {
    let of_type: &[&str] = match type_ {
        Type::Int => &[
            "P + 1",
            "P > 0",
            "P in [1, 2]",
            "P == 1.0",
            "P <= 2.5",
            "-P",
            "string(P)",
            "P % 2 == 0",
        ],
        Type::Double => &["P + 0.5", "P > 1", "int(P)", "P == 1"],
        Type::Bool => &["!P", "P && true", "P ? 1 : 2", "P == true"],
        Type::String => &[
            "P.size() < 5",
            "P.startsWith('a')",
            "P.matches('^[a-z]+$')",
            "P + 'x'",
            "P in ['a', 'web']",
            "P.split(',')",
            "P.upperAscii()",
            "P == 'web'",
            "P > 'b'",
            "P.find('[a-z]')",
            "P.contains(P)",
            "int(P)",
        ],
        Type::Bytes => &["P.size()", "string(P)", "P + b'a'", "P == b'hello'"],
        Type::Timestamp => &[
            "P.getFullYear()",
            "P < timestamp('2025-01-01T00:00:00Z')",
            "P + duration('1s')",
            "string(P)",
        ],
        Type::Duration => &[
            "P.getSeconds()",
            "P + duration('1s')",
            "P > duration('0s')",
            "string(P)",
        ],
        Type::List(_) => &[
            "P.size()",
            "P.all(x, x == x)",
            "P.map(x, [x])",
            "P.filter(x, true)",
            "P + P",
            "P[0]",
            "P[99]",
            "P.exists(x, x == P[0])",
            "P.all(i, x, i < 9)",
            "P.first()",
            "P.distinct()",
            "P.indexOf(P[0])",
            "P.all(x, P.exists_one(y, x == y))",
            "sets.equivalent(P, P)",
            "P.reverse()",
            "P.slice(0, 1)",
            "P.transformMap(i, x, x)",
            "P == []",
            "P.sort()",
            "P.max()",
            "P.sum()",
            "P.exists(x, x.name == 'one')",
        ],
        Type::Map(_) => &[
            "'k' in P",
            "P.all(k, k == k)",
            "P['k']",
            "P.size()",
            "P.exists_one(k, k == 'k')",
            "P.k",
            "P.?k.orValue(P['k'])",
            "P.transformMap(k, v, v)",
            "P.all(k, v, v == v)",
            "P.map(k, k)",
            "P == {}",
            "P[?'k']",
        ],
        _ => &[
            "P == P",
            "P.nosuch",
            "has(P.nosuch)",
            "P.?nosuch",
            "type(P) == int ? P < 5 : true",
            "P == 1",
            "P + 1",
            "P.endsWith('%')",
            "P.metadata.name",
            "P.kind",
            "P.known",
            "P.one",
            "P.spec.x",
            "'a' in P",
            "P == null",
        ],
    };
    let any: &[&str] = &[
        "P",
        "P == P",
        "dyn(P) == null",
        "type(P)",
        "[P]",
        "{'a': P}",
        "has(P)",
        "has(P) && P == P",
        "!has(P) || P == P",
        "dyn(P) == dyn(P)",
        "optional.of(P)",
        "[P, P].distinct()",
        "P != null",
    ];
    let pattern = if choices.chance(35) {
        choices.pick(any)
    } else {
        choices.pick(of_type)
    };
    let place = if choices.chance(10) {
        place.replacen('.', ".?", 1)
    } else {
        place.to_owned()
    };
    // In `pattern`, every letter `P` is a placeholder for the path.
    let mut out = String::new();
    for c in pattern.chars() {
        match c {
            'P' => out.push_str(&place),
            c => out.push(c),
        }
    }
    out
}
