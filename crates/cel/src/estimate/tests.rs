//! Tests of the estimator that need their own `SizeEstimator`. `tests/cases/cost` contains the other tests.

use std::sync::Arc;

use super::*;
use crate::cost::*;
use crate::decls::{Overload, Variable};
use crate::env::{Env, Library};
use crate::types::Type;
use crate::version::{CelGo, Release};
use crate::{checker, stdlib, syntax};

/// An estimator that returns this maximum size for every string.
struct MaxSize(u64);

impl SizeEstimator for MaxSize {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        (*node.type_() == Type::String).then_some(SizeEstimate::new(0, self.0))
    }
}

/// Type-checks `expression`. `own` contains the id of an overload, and the cost that replaces the cost of this
/// overload.
fn checked_at(
    own: Option<(&str, StaticCost)>,
    expression: &str,
    variables: &[(&str, Type)],
) -> checker::CheckedAst {
    checked_in(Release::DEFAULT, own, expression, variables)
}

fn checked_in(
    release: Release,
    own: Option<(&str, StaticCost)>,
    expression: &str,
    variables: &[(&str, Type)],
) -> checker::CheckedAst {
    let mut library = Library::new(release);
    let rows = stdlib::TABLES.iter().copied().flatten();
    if let Some((id, estimate)) = own {
        let row = rows.clone().find(|row| row.id == id).unwrap();
        let costs = Costs::new(estimate, row.costs.actual);
        library.add_overload(Overload::new(Box::leak(Box::new(row.with_costs(costs)))));
    }
    for row in rows {
        library.add_overload(Overload::new(row));
    }
    let declared = variables.iter();
    let env = Env::new(Arc::new(library))
        .extend(declared.map(|(name, type_)| Variable::new(*name, type_.clone())));
    let (ast, diagnostics) = syntax::parse(expression);
    let ast = Arc::new(ast.unwrap_or_else(|| panic!("{}", diagnostics.render(expression))));
    let (checked, diagnostics) = checker::check(&ast, expression, &env);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(expression));
    checked
}

fn checked(expression: &str, variables: &[(&str, Type)]) -> checker::CheckedAst {
    checked_at(None, expression, variables)
}

/// Source: cel-go `checker/cost_test.go`, `TestCost`, "estimated function call".
#[test]
fn custom_costs_replace_overload_costs() {
    let own = ("timestamp_to_year", StaticCost::Fixed(7));
    let variables = [("input", Type::Timestamp)];
    let checked = checked_at(Some(own), "input.getFullYear()", &variables);
    let estimate = estimate(&checked, &UnknownSizes, CostOptions::default());
    assert_eq!(estimate, CostEstimate::fixed(8));
}

/// Source: cel-go `checker/cost_test.go`, `TestCost`, "str concat custom cost estimate".
#[test]
fn custom_costs_of_standard_function_use_argument_sizes() {
    let costs = StaticCost::Of(|call, sizes| {
        let cost = |node: &AstNode<'_>| size_of(sizes, node).by_factor(0.2);
        CallEstimate::from_cost(match (call.target, call.args) {
            (Some(text), [part]) => cost(text).times(cost(part)),
            _ => CostEstimate::default(),
        })
    });
    let checked = checked_at(
        Some(("contains_string", costs)),
        "'abcdefg'.contains(str1 + str2)",
        &[("str1", Type::String), ("str2", Type::String)],
    );
    let estimate = estimate(&checked, &MaxSize(10), CostOptions::default());
    assert_eq!(estimate, CostEstimate::new(2, 12));
}

#[test]
fn cost_of_deep_tree_is_estimated() {
    let deep = format!("{}x{}", "-(".repeat(200), ")".repeat(200));
    let checked = checked(&deep, &[("x", Type::Int)]);
    let estimate = estimate(&checked, &UnknownSizes, CostOptions::default());
    assert_eq!(estimate, CostEstimate::fixed(201));
}

#[test]
fn cost_of_deeply_nested_loops_saturates() {
    let mut expression = "true".to_owned();
    for n in 0..30 {
        expression = format!("l.all(x{n}, {expression})");
    }
    let checked = checked(&expression, &[("l", Type::list(Type::Int))]);
    let estimate = estimate(&checked, &UnknownSizes, CostOptions::default());
    assert_eq!(estimate, CostEstimate::new(2, u64::MAX));
}

#[test]
fn paths_of_estimated_nodes_start_with_variable() {
    struct Seen(std::sync::Mutex<Vec<String>>);
    impl SizeEstimator for Seen {
        fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
            let steps = node.path().steps();
            let path: Vec<_> = steps.into_iter().map(PathStep::as_str).collect();
            self.0.lock().unwrap().push(path.join("."));
            None
        }
    }
    let text = Type::String;
    let map = Type::map(text.clone(), Type::list(text));
    let checked = checked(
        "m.all(k, m[k].all(v, v == m.x[0]) || k == 'a')",
        &[("m", map)],
    );
    let seen = Seen(std::sync::Mutex::default());
    let _ = estimate(&checked, &seen, CostOptions::default());
    let seen = seen.0.into_inner().unwrap();
    for path in [
        "m",
        "m.@keys",
        "m.@values",
        "m.@values.@items",
        "m.x",
        "m.x.@items",
    ] {
        assert!(seen.iter().any(|other| other == path), "{path} of {seen:?}");
    }
}

/// The expected results are those of cel-go 0.22.0 and 0.23.2.
#[test]
fn estimates_use_sizes_of_local_variables_since_cel_go_0_23() {
    const FILTER: &str =
        "['abcdefghijklmnopqrstuv', 'b'].filter(x, x.contains('abcdefghijk')).map(y, y)";
    const NESTED: &str = "[[1]].map(x, x.map(y, y)).all(z, z.all(w, w == 1))";
    let rows = [
        (
            "dyn(['a']) == dyn(['a'])",
            (23, 1_844_674_407_370_955_286),
            (23, 23),
        ),
        ("['a', 'b'].all(x, x == 'a')", (17, 21), (17, 21)),
        (FILTER, (62, 7_378_697_629_483_821_142), (66, 98)),
        (NESTED, (59, u64::MAX), (72, 79)),
        ("[[1]][0].all(x, x == 1)", (22, u64::MAX), (25, 27)),
    ];
    for (expression, before, since) in rows {
        for (cel_go, (min, max)) in [(CelGo::V0_22, before), (CelGo::V0_23, since)] {
            let release = Release {
                cel_go,
                ..Release::DEFAULT
            };
            let checked = checked_in(release, None, expression, &[]);
            let estimate = estimate(&checked, &UnknownSizes, CostOptions::default());
            assert_eq!(estimate, CostEstimate::new(min, max), "{expression}");
        }
    }
}
