//! Expressions with growing values. Each operation in a chain multiplies the size of its input.
//!
//! An operation on a `dyn` value costs one unit, regardless of the size of the value. Therefore the cost limit does not
//! limit the size of the result.

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Text,
    Bytes,
    List,
    Map,
}

const SHAPES: [Shape; 6] = [
    Shape::Text,
    Shape::Text,
    Shape::List,
    Shape::List,
    Shape::Bytes,
    Shape::Map,
];

/// Small initial values and their types.
const SEEDS: [(Shape, &str); 12] = [
    (Shape::Text, "object.metadata.name"),
    (Shape::Text, "'aaaa'"),
    (Shape::Text, "object.spec.template.spec.containers[0].name"),
    (Shape::Text, "request.name"),
    (Shape::Bytes, "b'aaaa'"),
    (Shape::Bytes, "bytes(object.metadata.name)"),
    (Shape::List, "[0]"),
    (Shape::List, "object.spec.template.spec.containers"),
    (Shape::List, "['a', object.metadata.name]"),
    (Shape::Map, "{'a': 1}"),
    (Shape::Map, "{object.metadata.name: object.metadata.name}"),
    (Shape::Map, "object.metadata.labels"),
];

/// Operations on `x`. The result has the type of `x` and is larger.
const STEPS: [(Shape, &str); 36] = [
    (Shape::Text, "x + x"),
    (Shape::Text, "x + x + x + x"),
    (Shape::Text, "string(x) + string(x)"),
    (Shape::Text, "[string(x), string(x)].join(string(x))"),
    (Shape::Text, "x.replace('a', 'aaaaaaaa')"),
    (Shape::Text, "x.replace('', 'aaaa')"),
    (Shape::Text, "'%s%s'.format([x, x])"),
    (Shape::Text, "strings.quote(x) + strings.quote(x)"),
    (Shape::Text, "x.lowerAscii() + x.upperAscii()"),
    (Shape::Text, "x.substring(0) + x.trim()"),
    (Shape::Text, "string(bytes(x)) + x"),
    (Shape::Text, "x.split('').join('') + x"),
    (Shape::Text, "x.findAll('(?s).').join('a')"),
    (Shape::Text, "x.find('(?s).*') + x"),
    (Shape::Text, "x.charAt(0) + x + x"),
    (Shape::Bytes, "x + x"),
    (Shape::Bytes, "bytes(string(x)) + x"),
    (Shape::Bytes, "x + x + x + x"),
    (Shape::List, "x + x"),
    (Shape::List, "x + x.map(y, y)"),
    (Shape::List, "x.filter(y, true) + x"),
    (Shape::List, "[x, x]"),
    (Shape::List, "[[x, x], [x, x]]"),
    (Shape::List, "x.transformList(i, v, [v, v]) + x"),
    (Shape::List, "[x, x].flatten()"),
    (Shape::List, "x.slice(0, size(x)) + x"),
    (Shape::List, "x.reverse() + x"),
    (Shape::List, "x.map(y, lists.range(20)).flatten()"),
    (Shape::List, "x + lists.range(size(x) + 1)"),
    (Shape::List, "x.map(y, string(y)).sort() + x"),
    (Shape::List, "x.map(y, [y, x])"),
    (Shape::Map, "{'a': x, 'b': x}"),
    (Shape::Map, "{'a': x, 'b': [x, x], 'c': x}"),
    (Shape::Map, "x.transformMap(k, v, x)"),
    (Shape::Map, "x.transformMap(k, v, [v, v])"),
    (
        Shape::Map,
        "{'a': x.transformMapEntry(k, v, {k + k: [v, v]}), 'b': x}",
    ),
];

/// Boolean expressions that read the complete value of `x`.
const USES: [&str; 8] = [
    "size(x) >= 0",
    "x == x",
    "[x] == [x, x] || true",
    "'%s'.format([x]) != ''",
    "x in [x]",
    "sets.contains([x], [x])",
    "!(dyn(x) in [dyn(1)])",
    "size(dyn([x, x])) == 2",
];

/// Returns a boolean expression with a chain of growing operations.
#[must_use]
pub fn expression(random: &mut Random) -> String {
    let use_ = random.choose(&USES).copied().unwrap_or_default();
    format!("{}.all(x, {use_})", chain(random, None))
}

/// Returns a string expression with a chain of growing operations, for messages and audit annotations.
#[must_use]
pub fn text(random: &mut Random) -> String {
    format!(
        "{}.map(x, string(x)).join('')",
        chain(random, Some(Shape::Text))
    )
}

/// Returns expressions for the variables `v0`, `v1` and so on. Each variable grows the value of the previous variable.
#[must_use]
pub fn variables(random: &mut Random, n: usize) -> Vec<String> {
    let shape = shape(random);
    let first = seed(random, shape);
    let growing = (1..n).map(|i| {
        let step = step(random, shape);
        format!("[dyn(variables.v{})].map(x, {step})[0]", i - 1)
    });
    std::iter::once(first).chain(growing).collect()
}

/// Returns an expression with a chain of growing operations. Its value is a list with one item.
fn chain(random: &mut Random, shape_of: Option<Shape>) -> String {
    let shape = shape_of.unwrap_or_else(|| shape(random));
    let mut text = format!("[dyn({})]", seed(random, shape));
    let is_uniform = random.permille(500);
    let mut step_of = step(random, shape);
    for _ in 0..random.below(26) + 12 {
        if !is_uniform {
            step_of = step(random, shape);
        }
        let form = if random.permille(100) {
            format!(".transformList(i, x, {step_of})")
        } else {
            format!(".map(x, {step_of})")
        };
        text.push_str(&form);
    }
    text
}

fn shape(random: &mut Random) -> Shape {
    random.choose(&SHAPES).copied().unwrap_or(Shape::Text)
}

fn seed(random: &mut Random, shape: Shape) -> String {
    pick_by_shape(random, &SEEDS, shape)
}

fn step(random: &mut Random, shape: Shape) -> String {
    pick_by_shape(random, &STEPS, shape)
}

fn pick_by_shape(random: &mut Random, table: &[(Shape, &str)], shape: Shape) -> String {
    let rows: Vec<&str> = table
        .iter()
        .filter(|(of, _)| *of == shape)
        .map(|(_, text)| *text)
        .collect();
    random.choose(&rows).copied().unwrap_or("x").to_owned()
}
