//! From goals to needs: what a request must be like for expressions to be true or false.
//!
//! This only proposes: a goal that cannot be read asks for nothing but that its parts are there, and whether the
//! needs do what they should is for the evaluator to say.

use std::rc::Rc;

use regexp::MemoryLimit;
use serde_json::{Value as Json, json};

use super::constant_conditions;
use super::sample_text;
use super::symbol::{
    ANY_KEY, BranchCondition, ComprehensionKind, ExprRef, Scope, SymbolicEvaluator, SymbolicValue,
    comprehension_kind,
};
use cel::ast::{Comprehension, Expr, ExprId, Literal};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// How many ways to reach all goals are given.
const MAX_WAYS: usize = 5;

/// The most goals and needs that are looked at for one set of goals.
const MAX_STEPS: u32 = 120;

/// How many goals, the innermost ones, are looked at for a contradiction at first sight.
const MAX_LOOKED_AT: usize = 12;

/// One way to reach a goal: needs, and goals in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    edits: Vec<(FieldPath, Constraint)>,
    goals: Vec<BranchCondition>,
}

impl Way {
    fn of(path: &FieldPath, edit: Constraint) -> Self {
        Self {
            edits: vec![(path.clone(), edit)],
            goals: Vec::new(),
        }
    }

    fn to(goals: Vec<BranchCondition>) -> Self {
        Self {
            edits: Vec::new(),
            goals,
        }
    }
}

/// The outcome of a search for needs.
pub(super) struct Solved {
    /// The needs, one for each way.
    pub(super) found: Vec<InputConstraints>,
    /// True if there is no way, also where there are more goals.
    pub(super) is_hopeless: bool,
}

/// The needs that reach all of `goals` besides `needs`, as far as the goals can be read; none where they contradict
/// each other.
pub(super) fn solve(
    evaluator: &SymbolicEvaluator<'_>,
    goals: Vec<BranchCondition>,
    needs: InputConstraints,
) -> Solved {
    if is_contradicted(evaluator, &goals, &needs) {
        return Solved {
            found: Vec::new(),
            is_hopeless: true,
        };
    }
    let mut found = Vec::new();
    let mut left = MAX_STEPS;
    let mut is_cut = false;
    let mut open = vec![(goals, needs)];
    while let Some((mut goals, mut needs)) = open.pop() {
        if found.len() >= MAX_WAYS || left == 0 || !evaluator.take_step() {
            is_cut = true;
            break;
        }
        left -= 1;
        let Some(goal) = goals.pop() else {
            if !found.contains(&needs) {
                found.push(needs);
            }
            continue;
        };
        // The first way is looked at first.
        for (n, way) in ways(evaluator, &goal).iter().enumerate().rev() {
            // Mostly there is but one way.
            let (mut goals, mut needs) = if n == 0 {
                (std::mem::take(&mut goals), std::mem::take(&mut needs))
            } else {
                (goals.clone(), needs.clone())
            };
            let met = way
                .edits
                .iter()
                .try_for_each(|(path, edit)| needs.add(path, edit.clone()));
            if met.is_some() {
                goals.extend_from_slice(&way.goals);
                open.push((goals, needs));
            }
        }
    }
    Solved {
        is_hopeless: found.is_empty() && !is_cut,
        found,
    }
}

/// Reports whether a goal that can be met in one way only, or in none, contradicts `needs` or another such goal: a
/// guard for what is absent, mostly.
fn is_contradicted(
    evaluator: &SymbolicEvaluator<'_>,
    goals: &[BranchCondition],
    needs: &InputConstraints,
) -> bool {
    let mut needs = needs.clone();
    for goal in goals.iter().take(MAX_LOOKED_AT) {
        let ways = ways(evaluator, goal);
        let mut edits = match &*ways {
            [] => return true,
            [way] => way.edits.iter(),
            _ => continue,
        };
        if edits.any(|(path, edit)| needs.add(path, edit.clone()).is_none()) {
            return true;
        }
    }
    false
}

fn ways(evaluator: &SymbolicEvaluator<'_>, goal: &BranchCondition) -> Rc<[Way]> {
    match goal {
        BranchCondition::NonEmpty(path) => [Way::of(path, Constraint::MinLen(1))].into(),
        BranchCondition::Evaluates(node, scope, wanted) if scope.is_empty() => {
            let key = (*node, *wanted);
            if let Some(known) = evaluator.ways.borrow().get(&key) {
                return Rc::clone(known);
            }
            let ways: Rc<[Way]> = truth(evaluator, *node, scope, *wanted).into();
            evaluator.ways.borrow_mut().insert(key, Rc::clone(&ways));
            ways
        }
        BranchCondition::Evaluates(node, scope, wanted) => {
            truth(evaluator, *node, scope, *wanted).into()
        }
    }
}

/// The ways for the expression at `place` to be `wanted`.
fn truth(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
    wanted: bool,
) -> Vec<Way> {
    let node_at = |id| ExprRef {
        index: node.index,
        id,
    };
    let is = |id, wanted| BranchCondition::Evaluates(node_at(id), scope.clone(), wanted);
    if let Some(n) = evaluator.read_variable(node) {
        let Some(ast) = evaluator.ast(n) else {
            return Vec::new();
        };
        let id = ast.root();
        return vec![Way::to(vec![BranchCondition::Evaluates(
            ExprRef { index: n, id },
            Scope::default(),
            wanted,
        )])];
    }
    match evaluator.expr(node) {
        Expr::Literal(Literal::Bool(value)) => if_so(*value == wanted),
        Expr::Select {
            operand,
            field,
            test_only: true,
        } => {
            let operands = evaluator.evaluate(node_at(*operand), scope);
            let paths = operands.iter().filter_map(|symbolic| match symbolic {
                SymbolicValue::Input { path, .. } => path.field(field),
                _ => None,
            });
            let edit = if wanted {
                Constraint::Present
            } else {
                Constraint::Absent
            };
            let mut ways: Vec<_> = paths.map(|path| Way::of(&path, edit.clone())).collect();
            if ways.is_empty() {
                ways.push(Way::default());
            }
            ways
        }
        Expr::Call {
            function,
            target,
            args,
        } => match (&**function, target, &**args) {
            ("!_", None, [arg]) => vec![Way::to(vec![is(*arg, !wanted)])],
            ("_&&_", None, args) if wanted => {
                vec![Way::to(
                    args.iter().rev().map(|arg| is(*arg, true)).collect(),
                )]
            }
            ("_||_", None, args) if !wanted => {
                vec![Way::to(
                    args.iter().rev().map(|arg| is(*arg, false)).collect(),
                )]
            }
            ("_&&_" | "_||_", None, args) => args
                .iter()
                .map(|arg| Way::to(vec![is(*arg, wanted)]))
                .collect(),
            ("_?_:_", None, [condition, truthy, falsy]) => vec![
                Way::to(vec![is(*truthy, wanted), is(*condition, true)]),
                Way::to(vec![is(*falsy, wanted), is(*condition, false)]),
            ],
            _ => called(evaluator, node, scope, (function, *target, args), wanted),
        },
        Expr::Comprehension(fold) => truth_of_fold(evaluator, node, fold, scope, wanted),
        _ => {
            let alternatives = evaluator.evaluate(node, scope);
            let ways: Vec<_> = alternatives
                .iter()
                .flat_map(|it| boolean(it, wanted))
                .collect();
            if ways.is_empty() {
                return vec![present(evaluator, node, scope)];
            }
            ways
        }
    }
}

/// The ways for what is the same in all requests.
fn if_so(is_so: bool) -> Vec<Way> {
    is_so.then(Way::default).into_iter().collect()
}

/// The ways for a comprehension to be `wanted`.
fn truth_of_fold(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    fold: &Comprehension,
    scope: &Scope,
    wanted: bool,
) -> Vec<Way> {
    if let Some(value) = constant_conditions::constant_truth(evaluator, node, scope) {
        return if_so(value == wanted);
    }
    let node_at = |id| ExprRef {
        index: node.index,
        id,
    };
    let test = match comprehension_kind(evaluator, node.index, fold) {
        ComprehensionKind::All(test) => Some((test, true)),
        ComprehensionKind::Exists(test) | ComprehensionKind::ExistsOne(test) => Some((test, false)),
        ComprehensionKind::Bind => {
            let bound = evaluator.evaluate(node_at(fold.accu_init), scope);
            let scope = scope.with(&fold.accu_var, bound);
            return vec![Way::to(vec![BranchCondition::Evaluates(
                node_at(fold.result),
                scope,
                wanted,
            )])];
        }
        ComprehensionKind::FilterMap(..) | ComprehensionKind::Other => None,
    };
    let Some((test, is_all)) = test else {
        return vec![present(evaluator, node, scope)];
    };
    let mut ways = Vec::new();
    // `all` is true and `exists` is false of nothing.
    if is_all == wanted {
        let range = evaluator.evaluate(node_at(fold.iter_range), scope);
        let empty = range.iter().filter_map(|symbolic| match symbolic {
            SymbolicValue::Input { path, default, .. } => Some(if default.is_some() {
                Way::of(path, Constraint::Absent)
            } else {
                Way::of(path, Constraint::MaxLen(0))
            }),
            _ => None,
        });
        ways.extend(empty);
    }
    for (iteration, mut goals) in evaluator.iterations(node.index, fold, scope, 0) {
        goals.push(BranchCondition::Evaluates(node_at(test), iteration, wanted));
        ways.push(Way::to(goals));
    }
    if ways.is_empty() {
        ways.push(Way::default());
    }
    ways
}

/// The ways for a symbol to be the boolean `wanted`.
fn boolean(symbolic: &SymbolicValue, wanted: bool) -> Vec<Way> {
    match symbolic {
        SymbolicValue::Input { path, default, .. } => {
            let mut ways = vec![Way::of(path, Constraint::Equals(json!(wanted)))];
            if *default == Some(json!(wanted)) {
                ways.insert(0, Way::of(path, Constraint::Absent));
            }
            ways
        }
        SymbolicValue::Constant(Json::Bool(value)) if *value != wanted => Vec::new(),
        _ => vec![Way::default()],
    }
}

/// The way for which all that the expression reads is there.
fn present(evaluator: &SymbolicEvaluator<'_>, node: ExprRef, scope: &Scope) -> Way {
    let mut way = Way::default();
    if let Expr::Call { target, args, .. } = evaluator.expr(node) {
        for id in target.iter().chain(&**args) {
            let alternatives = evaluator.evaluate(
                ExprRef {
                    index: node.index,
                    id: *id,
                },
                scope,
            );
            for symbolic in alternatives.iter().take(1) {
                if let SymbolicValue::Input {
                    path,
                    is_optional: false,
                    default: None,
                } = symbolic
                {
                    way.edits.push((path.clone(), Constraint::Present));
                }
            }
        }
    }
    way
}

/// The ways for a call to be `wanted`.
fn called(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
    (function, target, args): (&str, Option<ExprId>, &[ExprId]),
    wanted: bool,
) -> Vec<Way> {
    let evaluate = |id| {
        evaluator.evaluate(
            ExprRef {
                index: node.index,
                id,
            },
            scope,
        )
    };
    let found = match (function, target, args) {
        ("orValue", Some(_), [_]) | ("value", Some(_), []) | ("_[_]", None, [_, _]) => {
            let alternatives = evaluator.evaluate(node, scope);
            alternatives
                .iter()
                .flat_map(|it| boolean(it, wanted))
                .collect()
        }
        ("hasValue", Some(target), []) => {
            let edit = if wanted {
                Constraint::Present
            } else {
                Constraint::Absent
            };
            each(&evaluate(target), |path| Some(Way::of(path, edit.clone())))
        }
        ("_==_" | "_!=_", None, [left, right]) => {
            let is_equal = (function == "_==_") == wanted;
            let (left, right) = (evaluate(*left), evaluate(*right));
            if let Some(value) = constant_conditions::constant_equality(&left, &right) {
                return if_so(value == is_equal);
            }
            let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
            pairs.flat_map(|(l, r)| equality(l, r, is_equal)).collect()
        }
        ("@in" | "_in_", None, [element, of]) => {
            let (element, of) = (evaluate(*element), evaluate(*of));
            if let Some(value) = constant_conditions::constant_membership(&element, &of) {
                return if_so(value == wanted);
            }
            let pairs = element.iter().flat_map(|l| of.iter().map(move |r| (l, r)));
            pairs
                .flat_map(|(l, r)| membership(evaluator, l, r, wanted))
                .collect()
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", None, [left, right]) => {
            let (left, right) = (evaluate(*left), evaluate(*right));
            let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
            pairs
                .flat_map(|(l, r)| order(function, l, r, wanted))
                .collect()
        }
        ("startsWith" | "endsWith" | "contains" | "matches", Some(target), [arg]) => {
            let text = match &*evaluate(*arg) {
                [SymbolicValue::Constant(Json::String(text))] => text.clone(),
                _ => return vec![present(evaluator, node, scope)],
            };
            let targets = evaluate(target);
            let mut ways = each(&targets, |path| {
                if !wanted {
                    return Some(Way::of(path, Constraint::Differs(json!(text))));
                }
                let edit = match function {
                    "startsWith" => Constraint::Prefix(text.clone()),
                    "endsWith" => Constraint::Suffix(text.clone()),
                    "contains" => Constraint::Part(text.clone()),
                    _ => Constraint::Equals(json!(matching(&text)?)),
                };
                Some(Way::of(path, edit))
            });
            if wanted && function == "matches" {
                // Another text may match as well, if another one is asked for.
                ways.extend(each(&targets, |path| {
                    Some(Way::of(path, Constraint::Present))
                }));
            }
            ways
        }
        _ => Vec::new(),
    };
    if found.is_empty() {
        vec![present(evaluator, node, scope)]
    } else {
        found
    }
}

/// A text that the pattern matches, of the simplest patterns.
fn matching(pattern: &str) -> Option<String> {
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
    std::iter::once(&*bare)
        .chain(samples)
        .find(|text| regex.is_match(text, &MemoryLimit) == Ok(true))
        .map(str::to_owned)
        .or_else(|| sample_text::matching(pattern))
}

fn each(alternatives: &[SymbolicValue], way: impl Fn(&FieldPath) -> Option<Way>) -> Vec<Way> {
    let paths = alternatives.iter().filter_map(|symbolic| match symbolic {
        SymbolicValue::Input { path, .. } => Some(path),
        _ => None,
    });
    paths.filter_map(way).collect()
}

fn equality(left: &SymbolicValue, right: &SymbolicValue, wanted: bool) -> Vec<Way> {
    match (left, right) {
        (SymbolicValue::Input { path, default, .. }, SymbolicValue::Constant(value))
        | (SymbolicValue::Constant(value), SymbolicValue::Input { path, default, .. }) => {
            if value.is_null() {
                let edit = if wanted {
                    Constraint::Absent
                } else {
                    Constraint::Present
                };
                // Only a root is null.
                return if path.segments.is_empty() || !wanted {
                    vec![Way::of(path, edit)]
                } else {
                    Vec::new()
                };
            }
            let edit = if wanted {
                Constraint::Equals(value.clone())
            } else {
                Constraint::Differs(value.clone())
            };
            let mut ways = vec![Way::of(path, edit)];
            if default
                .as_ref()
                .is_some_and(|default| (default == value) == wanted)
            {
                ways.insert(0, Way::of(path, Constraint::Absent));
            }
            ways
        }
        (SymbolicValue::Size(path), SymbolicValue::Constant(value))
        | (SymbolicValue::Constant(value), SymbolicValue::Size(path)) => {
            let n = value.as_u64().and_then(|n| usize::try_from(n).ok());
            match n {
                Some(n) if wanted => vec![Way {
                    edits: vec![
                        (path.clone(), Constraint::MinLen(n)),
                        (path.clone(), Constraint::MaxLen(n)),
                    ],
                    goals: Vec::new(),
                }],
                Some(n) => vec![Way::of(path, Constraint::MinLen(n.saturating_add(1)))],
                None => Vec::new(),
            }
        }
        (SymbolicValue::Constant(left), SymbolicValue::Constant(right)) => ((left == right)
            == wanted)
            .then(Way::default)
            .into_iter()
            .collect(),
        (SymbolicValue::MapKey(map), SymbolicValue::Constant(value))
        | (SymbolicValue::Constant(value), SymbolicValue::MapKey(map)) => {
            if !wanted {
                return vec![Way::of(map, Constraint::MinLen(1))];
            }
            let path = value.as_str().and_then(|key| map.field(key));
            path.map(|path| Way::of(&path, Constraint::Present))
                .into_iter()
                .collect()
        }
        (SymbolicValue::Input { path: left, .. }, SymbolicValue::Input { path: right, .. }) => {
            // Values made alike are equal.
            let both = [left, right].map(|path| (path.clone(), Constraint::Present));
            let mut way = Way {
                edits: both.into(),
                goals: Vec::new(),
            };
            if !wanted {
                way.edits
                    .push((left.clone(), Constraint::Differs(json!("example"))));
            }
            vec![way]
        }
        _ => Vec::new(),
    }
}

fn membership(
    evaluator: &SymbolicEvaluator<'_>,
    element: &SymbolicValue,
    of: &SymbolicValue,
    wanted: bool,
) -> Vec<Way> {
    match (element, of) {
        (SymbolicValue::Constant(value), SymbolicValue::Input { path, .. }) => {
            let is_list = evaluator.shape(path).is_some_and(|shape| shape.is_list());
            match value.as_str() {
                Some(key) if !is_list => {
                    let edit = if wanted {
                        Constraint::Present
                    } else {
                        Constraint::Absent
                    };
                    let path = path.field(key);
                    path.map(|path| Way::of(&path, edit)).into_iter().collect()
                }
                _ if wanted => vec![Way::of(path, Constraint::Holds(value.clone()))],
                _ => vec![Way::of(path, Constraint::Present)],
            }
        }
        (SymbolicValue::Input { path, default, .. }, SymbolicValue::List(elements)) => {
            let values = elements.iter().filter_map(|element| match element {
                SymbolicValue::Constant(value) => Some(value.clone()),
                _ => None,
            });
            let mut ways: Vec<_> = if wanted {
                values
                    .map(|value| Way::of(path, Constraint::Equals(value)))
                    .collect()
            } else {
                let edits = values.map(|value| (path.clone(), Constraint::Differs(value)));
                vec![Way {
                    edits: edits.collect(),
                    goals: Vec::new(),
                }]
            };
            if !wanted && default.is_some() {
                ways.insert(0, Way::of(path, Constraint::Absent));
            }
            ways
        }
        (SymbolicValue::Constant(value), SymbolicValue::List(elements)) => {
            let is_in = elements
                .iter()
                .any(|element| matches!(element, SymbolicValue::Constant(known) if known == value));
            (is_in == wanted).then(Way::default).into_iter().collect()
        }
        (SymbolicValue::MapKey(map), SymbolicValue::List(elements)) if wanted => {
            let keys = elements.iter().filter_map(|element| match element {
                SymbolicValue::Constant(Json::String(key)) => map.field(key),
                _ => None,
            });
            keys.map(|path| Way::of(&path, Constraint::Present))
                .collect()
        }
        (SymbolicValue::MapKey(map), _) => map
            .field(ANY_KEY)
            .map(|path| Way::of(&path, Constraint::Present))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

fn order(function: &str, left: &SymbolicValue, right: &SymbolicValue, wanted: bool) -> Vec<Way> {
    let (symbolic, bound, is_turned) = match (left, right) {
        (symbolic, SymbolicValue::Constant(Json::Number(bound))) => (symbolic, bound, false),
        (SymbolicValue::Constant(Json::Number(bound)), symbolic) => (symbolic, bound, true),
        _ => return Vec::new(),
    };
    let Some(bound) = bound.as_i64() else {
        return Vec::new();
    };
    let is_less = function.starts_with("_<") != is_turned;
    let is_less = is_less == wanted;
    // One away from the bound is on the wanted side of it, be it among it or not.
    let value = if is_less {
        bound.saturating_sub(1)
    } else {
        bound.saturating_add(1)
    };
    match symbolic {
        SymbolicValue::Input { path, .. } => vec![
            Way::of(path, Constraint::Equals(json!(value))),
            Way::of(path, Constraint::Equals(json!(bound))),
        ],
        SymbolicValue::Size(path) => {
            let of = |n: i64| usize::try_from(n.max(0)).unwrap_or(0);
            if is_less {
                vec![Way::of(path, Constraint::MaxLen(of(value)))]
            } else {
                vec![Way::of(path, Constraint::MinLen(of(value)))]
            }
        }
        _ => Vec::new(),
    }
}
