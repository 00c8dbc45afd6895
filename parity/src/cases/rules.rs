//! Generates CustomResourceDefinitions with validation rules from a seed, mutants of the definitions, and objects.
//!
//! Rules are generated from the types in the schema, so most of them compile. Mutants have changed expressions and
//! bounds. Some of their rules do not compile or exceed the cost limit.

use serde_json::{Map, Value, json};

use super::choices;
use super::choices::Choices;
use super::crds;

/// The maximum number of rules in a mutated definition. This limits the time per definition.
const MAX_RULES: usize = 6;

/// Generates `n` CustomResourceDefinitions with rules.
#[must_use]
pub fn definitions(seed: u64, n: u64) -> Vec<Value> {
    let mut definitions = crds::crds(seed, n);
    for (at, definition) in (0_u64..).zip(&mut definitions) {
        let mut choices = choices(seed, "crd rules", at);
        for_each_schema(definition, &mut |schema| {
            add_rules(&mut choices, schema, "self", 0);
        });
    }
    definitions
}

/// Returns `n` mutated copies of `definitions`, each with few rules.
#[must_use]
pub fn mutants(definitions: &[Value], seed: u64, n: u64) -> Vec<Value> {
    let with_rules: Vec<&Value> = definitions
        .iter()
        .filter(|definition| definition.to_string().contains("x-kubernetes-validations"))
        .collect();
    let mutant = |at| {
        let mut choices = choices(seed, "crd rule mutant", at);
        let from = with_rules.get(choices.below(with_rules.len().max(1)))?;
        let mut mutant = (*from).clone();
        keep_one_version(&mut choices, &mut mutant);
        keep_few_rules(&mut choices, &mut mutant);
        mutate(&mut choices, &mut mutant);
        Some(mutant)
    };
    (0..n).filter_map(mutant).collect()
}

fn for_each_schema(definition: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let versions = definition.pointer_mut("/spec/versions");
    for version in versions.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            visit(schema);
        }
    }
}

fn keep_one_version(choices: &mut Choices<'_>, definition: &mut Value) {
    if let Some(Value::Array(versions)) = definition.pointer_mut("/spec/versions")
        && choices.chance(90)
        && versions.len() > 1
    {
        let kept = versions.swap_remove(choices.below(versions.len()));
        *versions = vec![kept];
    }
}

/// Calls `visit` with each schema that has rules. Visits only the schemas that are part of a structural schema.
fn for_each_ruled(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(schema) = schema else {
        return;
    };
    if schema.contains_key("x-kubernetes-validations") {
        visit(schema);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(key) {
            for_each_ruled(below, visit);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            for_each_ruled(property, visit);
        }
    }
}

fn count(definition: &mut Value) -> usize {
    let mut n = 0;
    for_each_schema(definition, &mut |schema| {
        for_each_ruled(schema, &mut |schema| {
            let rules = schema.get("x-kubernetes-validations");
            n += rules.and_then(Value::as_array).map_or(0, Vec::len);
        });
    });
    n
}

fn keep_few_rules(choices: &mut Choices<'_>, definition: &mut Value) {
    let n = count(definition).max(1);
    let first = choices.below(n);
    let mut at = 0;
    for_each_schema(definition, &mut |schema| {
        for_each_ruled(schema, &mut |schema| {
            if let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations") {
                rules.retain(|_| {
                    let is_kept = (first..first + MAX_RULES).contains(&at);
                    at += 1;
                    is_kept
                });
                if rules.is_empty() {
                    schema.remove("x-kubernetes-validations");
                }
            }
        });
    });
}

fn mutate(choices: &mut Choices<'_>, definition: &mut Value) {
    for_each_schema(definition, &mut |schema| {
        for_each_ruled(schema, &mut |schema| {
            let whole = Value::Object(schema.clone());
            if choices.chance(15) {
                let bound = choices.pick(&[
                    "maxItems",
                    "maxLength",
                    "maxProperties",
                    "x-kubernetes-list-type",
                ]);
                schema.remove(bound);
            }
            if choices.chance(3) {
                schema.insert("x-kubernetes-map-type".into(), json!("odd"));
            }
            if choices.chance(10)
                && let Some(made) = rule(choices, &whole, "self")
                && let Some(Value::Array(rules)) = schema.get_mut("x-kubernetes-validations")
            {
                rules.push(made);
            }
            let rules = schema.get_mut("x-kubernetes-validations");
            for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
                if choices.chance(60) {
                    mutate_rule(choices, rule, &whole);
                }
            }
        });
        if choices.chance(10) {
            without_bounds(schema);
        }
    });
}

fn without_bounds(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for bound in ["maxItems", "maxLength", "maxProperties"] {
                if fields.get(bound).is_some_and(Value::is_number) {
                    fields.remove(bound);
                }
            }
            fields.values_mut().for_each(without_bounds);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_bounds),
        _ => {}
    }
}

fn mutate_rule(choices: &mut Choices<'_>, rule: &mut Value, schema: &Value) {
    let Value::Object(fields) = rule else { return };
    let text = |fields: &Map<String, Value>, key: &str| {
        fields
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let own = text(fields, "rule");
    match choices.below(14) {
        0..=3 => {
            fields.insert("rule".into(), changed(choices, &own).into());
        }
        4 => {
            let loops = choices.pick(&[
                "[1, 2, 3].all(i, {})",
                "'abcdef'.split('').all(c, [1,2,3].all(d, {}))",
                "({}) && self == self",
                "self == oldSelf || ({})",
                "({}) ? 1 : 2",
                "dyn({})",
                "type(self) == map || ({})",
            ]);
            fields.insert("rule".into(), loops.replace("{}", &own).into());
        }
        5 => {
            let message = choices.pick(&[
                "",
                " ",
                "a\nb",
                " fine ",
                "<b> & 'q' \"d\" \u{2028} \u{1}",
                "\u{fc}",
            ]);
            fields.insert("message".into(), message.into());
        }
        6 | 7 => {
            let message = text(fields, "messageExpression");
            let message = if message.is_empty() || choices.chance(50) {
                choices
                    .pick(&[
                        "'a' + 'b'",
                        "string(self)",
                        "1",
                        " ",
                        "self.",
                        "'x' +",
                        "oldSelf",
                        "'v: ' + string(size(self))",
                    ])
                    .to_owned()
            } else {
                changed(choices, &message)
            };
            fields.insert("messageExpression".into(), message.into());
        }
        8 => {
            let reason = choices.pick(&[
                "FieldValueForbidden",
                "FieldValueRequired",
                "FieldValueDuplicate",
                "FieldValueInvalid",
                "Odd",
                "",
            ]);
            fields.insert("reason".into(), reason.into());
        }
        9 | 10 => {
            fields.insert("fieldPath".into(), field_path(choices, schema).into());
        }
        11 => {
            fields.insert("optionalOldSelf".into(), choices.chance(60).into());
        }
        12 => {
            let rule = choices.pick(&[
                "",
                "  ",
                "true\n&& false",
                "self\n==\nself",
                "oldSelf.hasValue()",
                "oldSelf == self",
                "self",
            ]);
            fields.insert("rule".into(), rule.into());
        }
        _ => {
            if let Some(made) = boolean_rule(choices, schema) {
                fields.insert("rule".into(), made.into());
            }
        }
    }
}

fn changed(choices: &mut Choices<'_>, text: &str) -> String {
    const SWAPS: [(&str, &str); 22] = [
        ("self", "oldSelf"),
        ("oldSelf", "self"),
        ("self.", "self.x."),
        ("==", "="),
        ("==", "<"),
        ("!=", "=="),
        ("&&", "||"),
        ("&&", "&"),
        ("'", "\""),
        ("'", ""),
        ("(", ""),
        (")", "))"),
        ("has(", "size("),
        ("size(", "int("),
        ("all(", "map("),
        ("exists(", "exists_one("),
        (".", ".."),
        (".", ".no."),
        ("true", "1"),
        ("0", "0.5"),
        ("1", "'1'"),
        ("matches(", "matches('[' + "),
    ];
    let mut text = text.to_owned();
    for _ in 0..20 {
        let pair = SWAPS.get(choices.below(SWAPS.len()));
        if let Some((from, to)) = pair
            && text.contains(from)
        {
            let places: Vec<_> = text.match_indices(from).map(|(at, _)| at).collect();
            if let Some(at) = places.get(choices.below(places.len())) {
                text.replace_range(*at..*at + from.len(), to);
            }
            if choices.chance(80) {
                return text;
            }
        }
    }
    let at: Vec<_> = text
        .char_indices()
        .map(|(at, c)| (at, c.len_utf8()))
        .collect();
    if let Some((at, len)) = at.get(choices.below(at.len().max(1))) {
        text.replace_range(
            *at..*at + *len,
            choices.pick(&["", "#", "\u{e9}", " ", "9"]),
        );
    }
    text
}

fn field_path(choices: &mut Choices<'_>, schema: &Value) -> String {
    let mut names: Vec<String> = Vec::new();
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            names.push(format!(".{name}"));
            names.push(format!("['{name}']"));
            for below in property
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                names.push(format!(".{name}.{}", below.0));
            }
        }
    }
    names.extend(
        [
            ".no", "x", ".", "['a", "[0]", " ", ".a\nb", ".key", "['k.l']",
        ]
        .map(str::to_owned),
    );
    names.swap_remove(choices.below(names.len()))
}

/// Adds rules to a schema and its subschemas. `own` is an expression whose value has the schema.
fn add_rules(choices: &mut Choices<'_>, schema: &mut Value, own: &str, depth: u32) {
    if schema.get("type").is_none()
        && !is_true(schema, "x-kubernetes-int-or-string")
        && choices.chance(95)
    {
        return;
    }
    let mut rules = Vec::new();
    while rules.len() < 4 && choices.chance(if depth < 2 { 45 } else { 30 }) {
        rules.extend(rule(choices, schema, own));
    }
    let Value::Object(fields) = schema else {
        return;
    };
    if !rules.is_empty() {
        fields.insert("x-kubernetes-validations".into(), rules.into());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = fields.get_mut(key).filter(|below| below.is_object()) {
            add_rules(choices, below, own, depth + 1);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for property in properties.values_mut() {
            add_rules(choices, property, own, depth + 1);
        }
    }
}

fn boolean_rule(choices: &mut Choices<'_>, schema: &Value) -> Option<String> {
    rule(choices, schema, "self")?
        .get("rule")?
        .as_str()
        .map(str::to_owned)
}

fn rule(choices: &mut Choices<'_>, schema: &Value, own: &str) -> Option<Value> {
    let mut holds = boolean(choices, schema, own, 3)?;
    let mut fields = Map::new();
    match choices.below(10) {
        0 => holds = format!("{own} == oldSelf || ({holds})"),
        1 => {
            let before = boolean(choices, schema, "oldSelf", 2)?;
            holds = format!("({before}) ? ({holds}) : true");
        }
        2 => {
            fields.insert("optionalOldSelf".into(), choices.chance(85).into());
            holds = match choices.below(4) {
                0 => format!("oldSelf.hasValue() ? oldSelf.value() == {own} : ({holds})"),
                1 => format!("oldSelf.orValue({own}) == {own}"),
                2 => format!("!oldSelf.hasValue() || ({holds})"),
                _ => format!("oldSelf.optMap(o, o == {own}).orValue(true)"),
            };
        }
        3 => {
            let other = boolean(choices, schema, own, 2)?;
            holds = format!("({holds}) {} ({other})", choices.pick(&["&&", "||"]));
        }
        4 => holds = format!("!({holds})"),
        _ => {}
    }
    fields.insert("rule".into(), holds.into());
    if choices.chance(30) {
        fields.insert(
            "message".into(),
            choices.pick(&["must hold", " is \"odd\" ", "no"]).into(),
        );
    }
    if choices.chance(35) {
        let scalar = scalar(schema, own);
        let message = match choices.below(9) {
            0..=3 => format!("'value is ' + {scalar}"),
            4 => "'two\\nlines'".into(),
            5 => "''".into(),
            6 => format!("{scalar} + string(1 / (size({scalar}) - size({scalar})))"),
            7 => "['a', 'b'].map(x, x + 'c').join(', ')".into(),
            _ => "oldSelf == self ? 'same' : 'other'".into(),
        };
        fields.insert("messageExpression".into(), message.into());
    }
    if choices.chance(25) {
        let reason = choices.pick(&[
            "FieldValueForbidden",
            "FieldValueRequired",
            "FieldValueDuplicate",
            "FieldValueInvalid",
        ]);
        fields.insert("reason".into(), reason.into());
    }
    if choices.chance(15) && schema.get("properties").is_some() {
        fields.insert("fieldPath".into(), field_path(choices, schema).into());
    }
    Some(fields.into())
}

pub(super) fn is_true(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// Generates a string expression about a value. `of` is the expression of the value, and `schema` is its schema.
fn scalar(schema: &Value, of: &str) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => match schema.get("format").and_then(Value::as_str) {
            None => of.to_owned(),
            Some(_) => format!("string({of})"),
        },
        Some("integer" | "number") => format!("string({of})"),
        Some("array" | "object") => format!("string(size({of}))"),
        _ => "'x'".into(),
    }
}

/// Generates a boolean expression about a value. `of` is the expression of the value, and `schema` is its schema.
#[expect(clippy::too_many_lines, reason = "a table of forms by type")]
fn boolean(choices: &mut Choices<'_>, schema: &Value, of: &str, depth: u32) -> Option<String> {
    let form = |forms: &[&str], choices: &mut Choices<'_>| {
        forms
            .get(choices.below(forms.len()))
            .map(|form| form.replace("{}", of))
    };
    if is_true(schema, "x-kubernetes-int-or-string") {
        return form(
            &[
                "type({}) == int ? {} > 3 : {} != ''",
                "{} == 3",
                "{} < 5",
                "{}.size() > 2",
                "string({}) != '3'",
                "{} == {}",
            ],
            choices,
        );
    }
    match schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "boolean" => form(&["{}", "!{}", "{} == true", "{} != false"], choices),
        "integer" => form(
            &[
                "{} > 3",
                "{} % 2 == 0",
                "{} + 1 < 10",
                "{} in [1, 2, 3]",
                "10 / {} > 1",
                "[1, 2][{}] == 1",
                "{} * 4611686018427387904 != 0",
            ],
            choices,
        ),
        "number" => form(
            &["{} > 1.5", "{} == {}", "{} < 100.0", "int({}) > 2"],
            choices,
        ),
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some("duration") => form(
                &["{} < duration('1h')", "{} == {}", "{}.getMinutes() > 1"],
                choices,
            ),
            Some("date" | "date-time") => form(
                &[
                    "{} < timestamp('2030-01-01T00:00:00Z')",
                    "{}.getFullYear() > 2000",
                    "{} == {}",
                ],
                choices,
            ),
            Some("byte") => form(
                &["size({}) > 2", "{} == b'abc'", "string({}) != ''"],
                choices,
            ),
            _ => form(
                &[
                    "{}.startsWith('a')",
                    "{}.size() < 5",
                    "{}.matches('^[a-z]+$')",
                    "{} == 'x'",
                    "{}.contains('b')",
                    "{}.split(',').all(x, x.size() > 0)",
                    "isURL({})",
                    "quantity({}).isGreaterThan(quantity('1'))",
                    "isIP({}) || {} != ''",
                    "{}.lowerAscii() == {}",
                    "{} in ['a', 'b']",
                    "int({}) > 0",
                    "{}.charAt(0) == 'a'",
                    "!format.dns1123Label().validate({}).hasValue()",
                    "{}.find('[a-c]') != ''",
                    "cidr({}).containsIP('10.0.0.1')",
                ],
                choices,
            ),
        },
        "array" => {
            let variable = format!("v{depth}");
            let element = schema.get("items").filter(|_| depth > 0);
            if let Some(element) = element.filter(|_| choices.chance(60)) {
                let inner = boolean(choices, element, &variable, depth - 1)?;
                let name = choices.pick(&["all", "exists", "exists_one", "filter"]);
                return Some(match name {
                    "filter" => format!("{of}.filter({variable}, {inner}).size() < 3"),
                    name => format!("{of}.{name}({variable}, {inner})"),
                });
            }
            form(
                &[
                    "{}.size() < 3",
                    "{} == {}",
                    "({} + {}).size() > 1",
                    "{} + {} == {}",
                    "{}.all(x, x in {})",
                    "{}.map(x, x) == {}",
                    "{} != []",
                    "{}.all(x, {}.exists_one(y, x == y))",
                    "{}[0] == {}[1]",
                ],
                choices,
            )
        }
        "object" => {
            if let Some(values) = schema
                .get("additionalProperties")
                .filter(|values| values.is_object() && depth > 0)
            {
                let key = format!("k{depth}");
                let inner = boolean(choices, values, &format!("{of}[{key}]"), depth - 1)?;
                return Some(match choices.below(4) {
                    0 => format!("'a' in {of}"),
                    1 => format!("size({of}) < 3"),
                    2 => format!("{of}.exists({key}, {inner})"),
                    _ => format!("{of}.all({key}, {inner})"),
                });
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            let properties: Vec<_> = properties
                .into_iter()
                .flatten()
                .filter_map(|(name, property)| {
                    Some((
                        vap_status_controller::schema::escape::escape(name)?,
                        property,
                    ))
                })
                .collect();
            let picked = properties.get(choices.below(properties.len().max(1)));
            let Some((name, property)) = picked.filter(|_| depth > 0) else {
                return form(&["{} == {}", "true", "{} != {}"], choices);
            };
            let access = format!("{of}.{name}");
            let Some(inner) = boolean(choices, property, &access, depth - 1) else {
                return Some(format!("has({access})"));
            };
            Some(match choices.below(6) {
                0 => format!("has({access})"),
                1 => format!("!has({access}) || ({inner})"),
                2 | 3 => format!("has({access}) && ({inner})"),
                4 => format!("{of}.?{name}.hasValue() && ({inner})"),
                _ => inner,
            })
        }
        _ => None,
    }
}
