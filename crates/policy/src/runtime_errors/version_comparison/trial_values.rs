//! Trial values for the inputs of changed expressions, and changes of the constraints on a request.

use serde_json::{Value as Json, json};

use crate::compile::CompiledPolicy;
use crate::runtime_errors::path_conditions::texts_near;
use cel::ast::{Expr, Literal};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, ValueConstraints};

/// Maximum number of literals for which nearby values are tried.
const MAX_LITERALS: usize = 16;

/// Maximum number of numbers that are formatted as trial strings.
const MAX_NUMBERS: usize = 24;

/// The difference between a fraction and the trial values near it.
const FRACTION: f64 = 0.001;

/// Maximum length of a trial string. If a literal may be a length, strings of about this length are tried.
const MAX_TEXT: i64 = 300;

/// Adds `constraint` on the value at `path` to `base`. If `constraint` contradicts the existing constraints on the
/// value, or determines the whole value, it replaces them. `None` if this is not possible.
pub(super) fn changed(
    base: &InputConstraints,
    path: &FieldPath,
    constraint: &Constraint,
) -> Option<InputConstraints> {
    let mut constraints = base.clone();
    let is_whole = matches!(constraint, Constraint::Equals(_) | Constraint::Absent);
    if !is_whole && constraints.add(path, constraint.clone()).is_some() {
        return Some(constraints);
    }
    let mut constraints = base.clone();
    constraints.replace(path, constraint.clone())?;
    Some(constraints)
}

/// For each list with several elements, copies the constraints on the first element to the other elements. `None` if no
/// constraint can be copied.
pub(super) fn spread(constraints: &InputConstraints) -> Option<InputConstraints> {
    let mut all = constraints.clone();
    for (list, of_list) in constraints.iter().filter(|(_, it)| it.min_len > 1) {
        let Some(first) = list.element(0) else {
            continue;
        };
        for (path, of_value) in constraints
            .iter()
            .filter(|(path, _)| path.starts_with(&first))
        {
            let rest = path
                .segments
                .get(first.segments.len()..)
                .unwrap_or_default();
            for n in 1..of_list.min_len {
                let element = list.element(n);
                let mut rest = rest.iter().cloned();
                let path = element.and_then(|it| rest.try_fold(it, |path, next| path.then(next)));
                // Constraints that contradict the element's own constraints are not copied.
                let mut extended = all.clone();
                let mut of_value = constraints_of(of_value).into_iter();
                let is_added = path.is_some_and(|path| {
                    of_value.all(|constraint| extended.add(&path, constraint).is_some())
                });
                if is_added {
                    all = extended;
                }
            }
        }
    }
    (all != *constraints).then_some(all)
}

/// Splits the combined constraints on a value into separate ones.
fn constraints_of(of_value: &ValueConstraints) -> Vec<Constraint> {
    let [prefix, part, suffix] = &of_value.text;
    let texts = [
        Constraint::Prefix(prefix.clone()),
        Constraint::Part(part.clone()),
        Constraint::Suffix(suffix.clone()),
    ];
    let is_present = of_value.is_present.map(|is_present| {
        if is_present {
            Constraint::Present
        } else {
            Constraint::Absent
        }
    });
    let mut constraints: Vec<Constraint> = is_present.into_iter().collect();
    constraints.extend(of_value.equals.clone().map(Constraint::Equals));
    constraints.extend(of_value.differs.iter().cloned().map(Constraint::Differs));
    constraints.extend(of_value.holds.iter().cloned().map(Constraint::Holds));
    constraints.extend((of_value.min_len > 0).then_some(Constraint::MinLen(of_value.min_len)));
    constraints.extend(of_value.max_len.map(Constraint::MaxLen));
    let has_text = of_value.text.iter().any(|text| !text.is_empty());
    constraints.extend(texts.into_iter().filter(|_| has_text));
    constraints.extend(of_value.min.map(Constraint::AtLeast));
    constraints.extend(of_value.max.map(Constraint::AtMost));
    constraints
}

/// Returns the elements of both lists. The elements of only one list come first.
pub(super) fn differing_first<T: Clone + PartialEq>(old: &[T], new: &[T]) -> Vec<T> {
    let only_new = new.iter().filter(|it| !old.contains(it));
    let only_old = old.iter().filter(|it| !new.contains(it));
    let both = new.iter().filter(|it| old.contains(it));
    only_new.chain(only_old).chain(both).cloned().collect()
}

/// Returns the regular expressions that a policy contains as literals.
pub(super) fn patterns(policy: &CompiledPolicy) -> Vec<String> {
    let asts = policy
        .expressions()
        .iter()
        .filter_map(|it| it.parsed().ok());
    let patterns = asts.flat_map(|ast| {
        ast.iter().filter_map(|(_, expr)| {
            let Expr::Call { function, args, .. } = expr else {
                return None;
            };
            let pattern = args.last().filter(|_| &**function == "matches")?;
            match ast.expr(*pattern) {
                Expr::Literal(Literal::String(text)) => Some(text.to_string()),
                _ => None,
            }
        })
    });
    patterns.collect()
}

/// The formats of strings that denote numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberTexts {
    /// True for percentages, such as `50%`.
    pub(super) has_percentages: bool,
    /// True for durations, such as `30s`.
    pub(super) has_durations: bool,
}

/// Returns numbers near those in `literals`, formatted as strings.
pub(super) fn number_texts(literals: &[Json], kinds: NumberTexts) -> Vec<Json> {
    let numbers = numbers_near(literals);
    let mut texts: Vec<Json> = Vec::new();
    if kinds.has_percentages {
        let percentages = numbers.iter().filter(|it| (0..=100).contains(*it));
        let percentages = percentages.chain(&[0, 50, 100]);
        texts.extend(percentages.map(|n| json!(format!("{n}%"))));
    }
    texts.extend(numbers.iter().map(|n| json!(n.to_string())));
    if kinds.has_durations {
        texts.extend(numbers.iter().map(|n| json!(format!("{n}s"))));
    }
    texts.extend(
        fractions_near(literals)
            .iter()
            .map(|n| json!(n.to_string())),
    );
    texts
}

/// Returns the integers in `literals`, and their neighbors.
pub(super) fn numbers_near(literals: &[Json]) -> Vec<i64> {
    let numbers = literals.iter().filter_map(|it| match it {
        Json::String(text) => text.trim_end_matches('%').parse().ok(),
        it => it.as_i64(),
    });
    let near = numbers.flat_map(|n| [n.saturating_sub(1), n, n.saturating_add(1)]);
    let mut numbers: Vec<i64> = Vec::new();
    for n in near {
        if numbers.len() < MAX_NUMBERS && !numbers.contains(&n) {
            numbers.push(n);
        }
    }
    numbers
}

/// Returns true if an expression of a policy calls one of `functions`.
pub(super) fn calls(policy: &CompiledPolicy, functions: &[&str]) -> bool {
    let mut asts = policy
        .expressions()
        .iter()
        .filter_map(|it| it.parsed().ok());
    asts.any(|ast| {
        let mut nodes = ast.iter();
        nodes.any(|(_, expr)| {
            matches!(expr, Expr::Call { function, .. } if functions.contains(&&**function))
        })
    })
}

/// Returns numbers near the fractions in `literals`.
fn fractions_near(literals: &[Json]) -> Vec<f64> {
    let fractions = literals
        .iter()
        .filter_map(|it| it.as_f64().filter(|_| it.is_f64()));
    let near = fractions.flat_map(|n| [n, n - FRACTION, n + FRACTION]);
    // The sums are rounded, because floating-point addition of decimal fractions is not exact.
    let rounded = near.map(|n| (n / FRACTION).round() * FRACTION);
    rounded.take(MAX_NUMBERS).collect()
}

/// Returns trial values for `literals`: variations of strings and of matches of `patterns`, and strings whose length is
/// near a number.
pub(super) fn values_near(literals: &[Json], patterns: &[String]) -> Vec<Json> {
    let separators = literals.iter().filter_map(Json::as_str);
    let separators = separators
        .filter(|text| !text.is_empty() && text.chars().all(|it| it.is_ascii_punctuation()));
    let separators: Vec<&str> = separators.collect();
    let mut values: Vec<Json> = Vec::new();
    for literal in literals.iter().take(MAX_LITERALS) {
        match literal {
            Json::String(text) if patterns.contains(text) => {
                values.extend(texts_near(text).into_iter().map(|it| json!(it)));
            }
            Json::String(text) => {
                values.push(literal.clone());
                let separated = separators.iter().flat_map(|separator| {
                    [
                        format!("{text}{separator}example"),
                        format!("example{separator}{text}"),
                    ]
                });
                values.extend(separated.map(|it| json!(it)));
                let more = [format!("x{text}"), format!("x{text}x"), text.to_uppercase()];
                values.extend(more.map(|it| json!(it)));
            }
            Json::Number(number) => {
                values.push(literal.clone());
                let n = number.as_i64().filter(|n| (2..MAX_TEXT).contains(n));
                let lengths = n.into_iter().flat_map(|n| [n - 1, n, n + 1]);
                let lengths = lengths.filter_map(|n| usize::try_from(n).ok());
                values.extend(lengths.map(|n| json!("a".repeat(n))));
            }
            _ => values.push(literal.clone()),
        }
    }
    values.extend(fractions_near(literals).into_iter().map(|n| json!(n)));
    values
}
