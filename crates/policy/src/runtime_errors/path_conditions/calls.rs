//! Translates calls to disjuncts: comparisons, membership tests, string functions and optionals.

use regexp::MemoryLimit;
use serde_json::{Value as Json, json};

use super::sample_text;
use crate::runtime_errors::symbolic::constant_conditions::{
    constant_equality, constant_membership,
};
use crate::runtime_errors::symbolic::{
    ANY_KEY, Disjunct, ExprRef, Scope, SymbolicEvaluator, SymbolicValue,
};
use cel::ast::{Expr, ExprId};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// Values to try for an input if another input is compared with it.
const SAMPLE_BOUNDS: [i64; 3] = [5, 1, 100];

/// Maximum nesting of concatenations and of the variables that they read.
const MAX_CONCATENATED: u32 = 20;

/// Maximum number of sample values for an input that must differ from another input.
const MAX_SAMPLES: usize = 4;

/// Returns the disjuncts for which a call evaluates to `expected`.
pub(crate) fn call_disjuncts(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
    (function, target, args): (&str, Option<ExprId>, &[ExprId]),
    expected: bool,
) -> Vec<Disjunct> {
    let evaluate = |id| evaluator.evaluate(node.with_id(id), scope);
    let disjuncts = match (function, target, args) {
        ("orValue", Some(_), [_])
        | ("value" | "allowed" | "denied", Some(_), [])
        | ("_[_]", None, [_, _]) => {
            let alternatives = evaluator.evaluate(node, scope);
            alternatives
                .iter()
                .flat_map(|it| boolean_disjuncts(it, expected))
                .collect()
        }
        ("hasValue", Some(target), []) => {
            let constraint = if expected {
                Constraint::Present
            } else {
                Constraint::Absent
            };
            for_each_path(&evaluate(target), |path| {
                Some(Disjunct::from_constraint(path, constraint.clone()))
            })
        }
        ("_==_" | "_!=_", None, [left, right]) => {
            let is_equal = (function == "_==_") == expected;
            if is_equal
                && let Some(disjunct) = equal_concatenation(evaluator, node, scope, (*left, *right))
            {
                return vec![disjunct];
            }
            let (left, right) = (evaluate(*left), evaluate(*right));
            if let Some(value) = constant_equality(&left, &right) {
                return constant_disjuncts(value == is_equal);
            }
            let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
            pairs
                .flat_map(|(l, r)| {
                    let mut disjuncts = equality(l, r, is_equal);
                    if !is_equal && evaluator.has_several_elements() {
                        disjuncts.extend(different_inputs(evaluator, l, r));
                    }
                    disjuncts
                })
                .collect()
        }
        ("@in" | "_in_", None, [element, of]) => {
            let (element, of) = (evaluate(*element), evaluate(*of));
            if let Some(value) = constant_membership(&element, &of) {
                return constant_disjuncts(value == expected);
            }
            let pairs = element.iter().flat_map(|l| of.iter().map(move |r| (l, r)));
            pairs
                .flat_map(|(l, r)| membership(evaluator, l, r, expected))
                .collect()
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", None, [left, right]) => {
            let (left, right) = (evaluate(*left), evaluate(*right));
            let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
            pairs
                .flat_map(|(l, r)| order_disjuncts(evaluator, function, (l, r), expected))
                .collect()
        }
        ("startsWith" | "endsWith" | "contains" | "matches", Some(target), [arg]) => {
            let text = match &*evaluate(*arg) {
                [SymbolicValue::Constant(Json::String(text))] => text.clone(),
                _ => return vec![operands_present(evaluator, node, scope)],
            };
            let targets = evaluate(target);
            let mut disjuncts = for_each_path(&targets, |path| {
                if !expected {
                    return Some(Disjunct::from_constraint(
                        path,
                        Constraint::Differs(json!(text)),
                    ));
                }
                let constraint = match function {
                    "startsWith" => Constraint::Prefix(text.clone()),
                    "endsWith" => Constraint::Suffix(text.clone()),
                    "contains" => Constraint::Part(text.clone()),
                    _ => Constraint::Equals(json!(matching_text(&text)?)),
                };
                Some(Disjunct::from_constraint(path, constraint))
            });
            if expected && function == "matches" {
                // The generated string may contradict another constraint, while a different match of the pattern
                // satisfies it. A second disjunct therefore only requires that the string is present.
                disjuncts.extend(for_each_path(&targets, |path| {
                    Some(Disjunct::from_constraint(path, Constraint::Present))
                }));
            }
            disjuncts
        }
        _ => Vec::new(),
    };
    if disjuncts.is_empty() {
        vec![operands_present(evaluator, node, scope)]
    } else {
        disjuncts
    }
}

/// Returns a string that matches `pattern`: the pattern without anchors if it has no other operators, a sample, or a
/// generated string.
fn matching_text(pattern: &str) -> Option<String> {
    let regex = regexp::Program::for_trials(pattern).ok()?;
    let bare = pattern.trim_start_matches('^').trim_end_matches('$');
    let bare = bare.replace(".*", "a").replace(".+", "a").replace('\\', "");
    let samples = [
        "example",
        "a",
        "1",
        "v1.2.3",
        "example.com/a",
        "10.0.0.1",
        "A",
        "a-1",
    ];
    let has_operator = bare.contains(['*', '+', '?', '|', '(', '[', '{']);
    let bare = (!has_operator).then_some(&*bare);
    bare.into_iter()
        .chain(samples)
        .find(|text| regex.is_match(text, &MemoryLimit) == Ok(true))
        .map(str::to_owned)
        .or_else(|| sample_text::matching(pattern))
}

/// Returns strings that match `pattern`, and variants of these strings: with an added or removed character, in
/// uppercase, and in lowercase.
pub(crate) fn texts_near(pattern: &str) -> Vec<String> {
    let matching = matching_text(pattern).into_iter();
    let matching = matching.chain(sample_text::all_matching(pattern));
    let mut texts: Vec<String> = Vec::new();
    for text in matching {
        let shorter = |n: usize| text.chars().skip(n).collect::<String>();
        let mut without_last = text.clone();
        without_last.pop();
        let more = [
            format!("{text}x"),
            format!("{text}-x"),
            format!("x{text}"),
            format!("x-{text}"),
            format!("x.{text}"),
            format!("x/{text}"),
            format!("{text}1"),
            text.to_uppercase(),
            text.to_lowercase(),
            without_last,
            shorter(1),
        ];
        texts.extend([text].into_iter().chain(more));
    }
    texts.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    texts.dedup();
    texts
}

fn for_each_path(
    alternatives: &[SymbolicValue],
    disjunct: impl Fn(&FieldPath) -> Option<Disjunct>,
) -> Vec<Disjunct> {
    let paths = alternatives.iter().filter_map(|symbolic| match symbolic {
        SymbolicValue::Input { path, .. } => Some(path),
        _ => None,
    });
    paths.filter_map(disjunct).collect()
}

fn equality(left: &SymbolicValue, right: &SymbolicValue, expected: bool) -> Vec<Disjunct> {
    match (left, right) {
        (SymbolicValue::Input { path, default, .. }, SymbolicValue::Constant(value))
        | (SymbolicValue::Constant(value), SymbolicValue::Input { path, default, .. }) => {
            if value.is_null() {
                let constraint = if expected {
                    Constraint::Absent
                } else {
                    Constraint::Present
                };
                // Only a root variable, such as `oldObject`, is null if it is absent.
                return if path.segments.is_empty() || !expected {
                    vec![Disjunct::from_constraint(path, constraint)]
                } else {
                    Vec::new()
                };
            }
            let constraint = if expected {
                Constraint::Equals(value.clone())
            } else {
                Constraint::Differs(value.clone())
            };
            let mut disjuncts = vec![Disjunct::from_constraint(path, constraint)];
            if default
                .as_ref()
                .is_some_and(|default| (default == value) == expected)
            {
                disjuncts.insert(0, Disjunct::from_constraint(path, Constraint::Absent));
            }
            disjuncts
        }
        (SymbolicValue::Input { path, .. }, SymbolicValue::List(elements))
        | (SymbolicValue::List(elements), SymbolicValue::Input { path, .. }) => {
            let values = elements.iter().map(|element| match element {
                SymbolicValue::Constant(value) => Some(value.clone()),
                _ => None,
            });
            let values: Option<Vec<Json>> = values.collect();
            let constraint = values.map(|values| {
                if expected {
                    Constraint::Equals(json!(values))
                } else {
                    Constraint::Differs(json!(values))
                }
            });
            let disjunct = constraint.map(|it| Disjunct::from_constraint(path, it));
            disjunct.into_iter().collect()
        }
        (SymbolicValue::Size(path), SymbolicValue::Constant(value))
        | (SymbolicValue::Constant(value), SymbolicValue::Size(path)) => {
            let n = value.as_u64().and_then(|n| usize::try_from(n).ok());
            match n {
                Some(n) if expected => vec![Disjunct {
                    constraints: vec![
                        (path.clone(), Constraint::MinLen(n)),
                        (path.clone(), Constraint::MaxLen(n)),
                    ],
                    conditions: Vec::new(),
                }],
                Some(n) => vec![Disjunct::from_constraint(
                    path,
                    Constraint::MinLen(n.saturating_add(1)),
                )],
                None => Vec::new(),
            }
        }
        (SymbolicValue::Constant(left), SymbolicValue::Constant(right)) => ((left == right)
            == expected)
            .then(Disjunct::default)
            .into_iter()
            .collect(),
        (SymbolicValue::MapKey(map), SymbolicValue::Constant(value))
        | (SymbolicValue::Constant(value), SymbolicValue::MapKey(map)) => {
            if !expected {
                return vec![Disjunct::from_constraint(map, Constraint::MinLen(1))];
            }
            let path = value.as_str().and_then(|key| map.field(key));
            path.map(|path| Disjunct::from_constraint(&path, Constraint::Present))
                .into_iter()
                .collect()
        }
        (SymbolicValue::Input { path: left, .. }, SymbolicValue::Input { path: right, .. }) => {
            // No constraint is needed for equality, because two generated values of the same type are equal by default.
            let both = [left, right].map(|path| (path.clone(), Constraint::Present));
            let mut disjunct = Disjunct {
                constraints: both.into(),
                conditions: Vec::new(),
            };
            if !expected {
                disjunct
                    .constraints
                    .push((left.clone(), Constraint::Differs(json!("example"))));
            }
            vec![disjunct]
        }
        _ => Vec::new(),
    }
}

/// Returns a disjunct for which an input is equal to a concatenation of strings, such as
/// `request.userInfo.username == 'user:' + params.data.name`. `None` for other operands.
fn equal_concatenation(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
    (left, right): (ExprId, ExprId),
) -> Option<Disjunct> {
    let pairs = [(left, right), (right, left)].into_iter();
    let mut pairs = pairs.map(|(one, other)| (node.with_id(one), node.with_id(other)));
    pairs.find_map(|(input, sum)| {
        let root = evaluator.variable_root(sum).unwrap_or(sum);
        let call = evaluator.ast(root.index)?.global_call(root.id);
        matches!(call, Some(("_+_", _))).then_some(())?;
        let mut strings = Vec::new();
        add_strings(evaluator, (sum, scope), &mut strings, MAX_CONCATENATED)?;
        let values = evaluator.evaluate(input, scope);
        let SymbolicValue::Input { path, .. } = values.first()? else {
            return None;
        };
        let text: String = strings.iter().map(|(_, text)| text.as_str()).collect();
        let equals = |path: &FieldPath, text: &str| (path.clone(), Constraint::Equals(json!(text)));
        let parts = strings.iter();
        let parts = parts.filter_map(|(path, text)| Some(equals(path.as_ref()?, text)));
        Some(Disjunct {
            constraints: parts.chain([equals(path, &text)]).collect(),
            conditions: Vec::new(),
        })
    })
}

/// Adds the strings of a concatenation to `strings`: each literal, and for each input its path and a sample value.
/// `None` if the concatenation has other operands.
fn add_strings(
    evaluator: &SymbolicEvaluator<'_>,
    (node, scope): (ExprRef, &Scope),
    strings: &mut Vec<(Option<FieldPath>, String)>,
    max_depth: u32,
) -> Option<()> {
    let max_depth = max_depth.checked_sub(1)?;
    if let Some(root) = evaluator.variable_root(node) {
        return add_strings(evaluator, (root, &Scope::default()), strings, max_depth);
    }
    if let Expr::Call {
        function,
        target: None,
        args,
    } = evaluator.expr(node)
        && &**function == "_+_"
    {
        for arg in args {
            add_strings(evaluator, (node.with_id(*arg), scope), strings, max_depth)?;
        }
        return Some(());
    }
    strings.push(match evaluator.evaluate(node, scope).first()? {
        SymbolicValue::Constant(Json::String(text)) => (None, text.clone()),
        SymbolicValue::Input { path, .. } => (Some(path.clone()), "example".to_owned()),
        _ => return None,
    });
    Some(())
}

/// Returns disjuncts for which two inputs have different values: one input has a sample value, and the other input does
/// not have this value.
fn different_inputs(
    evaluator: &SymbolicEvaluator<'_>,
    left: &SymbolicValue,
    right: &SymbolicValue,
) -> Vec<Disjunct> {
    let (SymbolicValue::Input { path: left, .. }, SymbolicValue::Input { path: right, .. }) =
        (left, right)
    else {
        return Vec::new();
    };
    let input_type = evaluator.input_type(right);
    let samples = input_type.map_or_else(Vec::new, |it| it.sample_scalars(right, MAX_SAMPLES));
    let disjuncts = samples.into_iter().map(|sample| Disjunct {
        constraints: vec![
            (right.clone(), Constraint::Equals(sample.clone())),
            (left.clone(), Constraint::Differs(sample)),
        ],
        conditions: Vec::new(),
    });
    disjuncts.collect()
}

fn membership(
    evaluator: &SymbolicEvaluator<'_>,
    element: &SymbolicValue,
    of: &SymbolicValue,
    expected: bool,
) -> Vec<Disjunct> {
    match (element, of) {
        (SymbolicValue::Constant(value), SymbolicValue::Input { path, .. }) => {
            let is_list = evaluator
                .input_type(path)
                .is_some_and(|input_type| input_type.is_list());
            match value.as_str() {
                Some(key) if !is_list => {
                    let constraint = if expected {
                        Constraint::Present
                    } else {
                        Constraint::Absent
                    };
                    let path = path.field(key);
                    path.map(|path| Disjunct::from_constraint(&path, constraint))
                        .into_iter()
                        .collect()
                }
                _ if expected => vec![Disjunct::from_constraint(
                    path,
                    Constraint::Holds(value.clone()),
                )],
                _ => vec![Disjunct::from_constraint(path, Constraint::Present)],
            }
        }
        (SymbolicValue::Input { path, default, .. }, SymbolicValue::List(elements)) => {
            let values = elements.iter().filter_map(|element| match element {
                SymbolicValue::Constant(value) => Some(value.clone()),
                _ => None,
            });
            let mut disjuncts: Vec<_> = if expected {
                values
                    .map(|value| Disjunct::from_constraint(path, Constraint::Equals(value)))
                    .collect()
            } else {
                let constraints = values.map(|value| (path.clone(), Constraint::Differs(value)));
                vec![Disjunct {
                    constraints: constraints.collect(),
                    conditions: Vec::new(),
                }]
            };
            if !expected && default.is_some() {
                disjuncts.insert(0, Disjunct::from_constraint(path, Constraint::Absent));
            }
            disjuncts
        }
        (SymbolicValue::Constant(value), SymbolicValue::List(elements)) => {
            let is_in = elements
                .iter()
                .any(|element| matches!(element, SymbolicValue::Constant(known) if known == value));
            (is_in == expected)
                .then(Disjunct::default)
                .into_iter()
                .collect()
        }
        (SymbolicValue::MapKey(map), SymbolicValue::List(elements)) if expected => {
            let keys = elements.iter().filter_map(|element| match element {
                SymbolicValue::Constant(Json::String(key)) => map.field(key),
                _ => None,
            });
            keys.map(|path| Disjunct::from_constraint(&path, Constraint::Present))
                .collect()
        }
        (SymbolicValue::MapKey(map), _) => map
            .field(ANY_KEY)
            .map(|path| Disjunct::from_constraint(&path, Constraint::Present))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

fn ordering(
    function: &str,
    left: &SymbolicValue,
    right: &SymbolicValue,
    expected: bool,
) -> Vec<Disjunct> {
    let (symbolic, bound, is_reversed) = match (left, right) {
        (symbolic, SymbolicValue::Constant(Json::Number(bound))) => (symbolic, bound, false),
        (SymbolicValue::Constant(Json::Number(bound)), symbolic) => (symbolic, bound, true),
        _ => return Vec::new(),
    };
    let Some(bound) = bound.as_i64() else {
        return Vec::new();
    };
    let is_below = function.starts_with("_<") != is_reversed;
    let is_below = is_below == expected;
    // The neighbor of the bound satisfies both the strict and the non-strict comparison.
    let value = if is_below {
        bound.saturating_sub(1)
    } else {
        bound.saturating_add(1)
    };
    match symbolic {
        SymbolicValue::Input { path, .. } => vec![
            Disjunct::from_constraint(path, Constraint::Equals(json!(value))),
            Disjunct::from_constraint(path, Constraint::Equals(json!(bound))),
        ],
        SymbolicValue::Size(path) => {
            let constraint = |n: i64| {
                let n = usize::try_from(n.max(0)).unwrap_or(0);
                if is_below {
                    Constraint::MaxLen(n)
                } else {
                    Constraint::MinLen(n)
                }
            };
            [value, bound]
                .map(|n| Disjunct::from_constraint(path, constraint(n)))
                .into()
        }
        _ => Vec::new(),
    }
}

/// Returns the disjuncts for which an ordering comparison of two values evaluates to `expected`.
fn order_disjuncts(
    evaluator: &SymbolicEvaluator<'_>,
    function: &str,
    (left, right): (&SymbolicValue, &SymbolicValue),
    expected: bool,
) -> Vec<Disjunct> {
    if evaluator.has_several_elements() {
        let disjuncts = ranges(function, left, right, expected);
        if !disjuncts.is_empty() {
            return disjuncts;
        }
    }
    ordering(function, left, right, expected)
}

/// Returns the disjuncts for which an ordering comparison of two inputs, or of an input and a constant, evaluates to
/// `expected`.
/// Unlike [`ordering`], the result constrains the input to a range, which can be combined with other ranges.
fn ranges(
    function: &str,
    left: &SymbolicValue,
    right: &SymbolicValue,
    expected: bool,
) -> Vec<Disjunct> {
    let is_less = function.starts_with("_<") == expected;
    let has_equal = function.contains('=') == expected;
    let range = |is_below: bool, bound: i64| match (is_below, has_equal) {
        (true, true) => Constraint::AtMost(bound),
        (true, false) => Constraint::AtMost(bound.saturating_sub(1)),
        (false, true) => Constraint::AtLeast(bound),
        (false, false) => Constraint::AtLeast(bound.saturating_add(1)),
    };
    match (left, right) {
        (SymbolicValue::Input { path, default, .. }, SymbolicValue::Constant(bound)) => {
            input_range(path, default.as_ref(), bound, &|n| range(is_less, n))
        }
        (SymbolicValue::Constant(bound), SymbolicValue::Input { path, default, .. }) => {
            input_range(path, default.as_ref(), bound, &|n| range(!is_less, n))
        }
        (SymbolicValue::Input { path: left, .. }, SymbolicValue::Input { path: right, .. })
            if left != right =>
        {
            let with_bound = |bound: i64| Disjunct {
                constraints: vec![
                    (right.clone(), Constraint::Equals(json!(bound))),
                    (left.clone(), range(is_less, bound)),
                ],
                conditions: Vec::new(),
            };
            SAMPLE_BOUNDS.map(with_bound).into()
        }
        _ => Vec::new(),
    }
}

/// Returns the disjuncts for which an input is in the range that `range` returns for the number `bound`. An absent
/// input counts as `default`.
fn input_range(
    path: &FieldPath,
    default: Option<&Json>,
    bound: &Json,
    range: &dyn Fn(i64) -> Constraint,
) -> Vec<Disjunct> {
    let Some(range) = bound.as_i64().map(range) else {
        return Vec::new();
    };
    let is_in_range = |value: &Json| {
        let mut required = InputConstraints::default();
        let is_number =
            value.is_number() || value.as_str().is_some_and(|it| it.parse::<i64>().is_ok());
        let added = required.add(path, range.clone());
        let required = added.and_then(|()| required.at(path));
        is_number && required.is_some_and(|it| it.is_in_range(value))
    };
    let mut disjuncts = vec![Disjunct::from_constraint(path, range.clone())];
    if default.is_some_and(is_in_range) {
        disjuncts.push(Disjunct::from_constraint(path, Constraint::Absent));
    }
    disjuncts
}

/// Returns the disjuncts of a constant condition: one without constraints if the condition is satisfied, and none
/// otherwise.
pub(crate) fn constant_disjuncts(is_satisfied: bool) -> Vec<Disjunct> {
    is_satisfied.then(Disjunct::default).into_iter().collect()
}

/// Returns the disjuncts for which a symbolic value equals the boolean `expected`.
pub(crate) fn boolean_disjuncts(symbolic: &SymbolicValue, expected: bool) -> Vec<Disjunct> {
    match symbolic {
        SymbolicValue::Input { path, default, .. } => {
            let mut disjuncts = vec![Disjunct::from_constraint(
                path,
                Constraint::Equals(json!(expected)),
            )];
            if *default == Some(json!(expected)) {
                disjuncts.insert(0, Disjunct::from_constraint(path, Constraint::Absent));
            }
            disjuncts
        }
        SymbolicValue::Constant(Json::Bool(value)) if *value != expected => Vec::new(),
        _ => vec![Disjunct::default()],
    }
}

/// Returns a disjunct for a call that cannot be interpreted. It only requires that the operands are present.
pub(crate) fn operands_present(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
) -> Disjunct {
    let mut disjunct = Disjunct::default();
    if let Expr::Call { target, args, .. } = evaluator.expr(node) {
        for id in target.iter().chain(&**args) {
            let alternatives = evaluator.evaluate(node.with_id(*id), scope);
            for symbolic in alternatives.iter().take(1) {
                if let SymbolicValue::Input {
                    path,
                    is_optional: false,
                    default: None,
                } = symbolic
                {
                    disjunct
                        .constraints
                        .push((path.clone(), Constraint::Present));
                }
            }
        }
    }
    disjunct
}
