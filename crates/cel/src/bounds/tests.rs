//! Tests of the rules that derive the bounds of results.

use std::sync::Arc;

use super::*;
use crate::decls::Variable;
use crate::env::{Env, Library};
use crate::{ast::Ast, checker, ext, stdlib, syntax};

/// A string `t` of at most 10 bytes, and a list `l` of at most 4 strings with at most 10 bytes each.
struct Sizes;

impl BoundVariables for Sizes {
    fn part(&self, path: Path<'_>) -> VariablePart {
        let (is_list, size) = match &*path.steps() {
            [PathStep::Variable(name)] if **name == *"l" => (Some(true), SizeEstimate::new(0, 4)),
            [PathStep::Variable(name)] if **name == *"unknown" => (None, SizeEstimate::UNKNOWN),
            _ => (None, SizeEstimate::new(0, 10)),
        };
        let sizes = PartSizes {
            size,
            ..PartSizes::UNKNOWN
        };
        VariablePart {
            is_list,
            is_nested: false,
            sizes: vec![sizes],
        }
    }

    fn shape(&self) -> usize {
        0
    }

    fn field(&self, _: &str, _: &str) -> Option<Option<Bound>> {
        None
    }
}

/// Returns the greatest size of the value of `expression`.
fn greatest_size(expression: &str) -> u64 {
    let mut library = Library::default();
    let tables = stdlib::TABLES.iter().copied();
    for rows in tables.chain([&ext::two_var::ROWS[..]]) {
        library.add_overloads(rows);
    }
    let texts = Type::list(Type::String);
    let env = Env::new(Arc::new(library)).extend([
        Variable::new("t", Type::String),
        Variable::new("unknown", Type::String),
        Variable::new("l", texts),
    ]);
    let ast: Arc<Ast> = Arc::new(syntax::parse(expression).0.unwrap());
    let (checked, diagnostics) = checker::check(&ast, expression, &env);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(expression));
    let options = BoundOptions {
        presence_test_has_cost: false,
        ignores_platform_costs: false,
    };
    let bounds = bound(&checked, &Sizes, options, &mut BoundPaths::default());
    bounds.value.max()
}

#[test]
fn size_of_result_depends_on_sizes_of_operands() {
    for (expression, expected) in [
        ("t", 10),
        ("t + t + 'abc'", 23),
        ("t == 'a' ? t + t : t", 20),
        ("[t, t + t][0]", 20),
        ("{'a': t + t, 'b': t}['a']", 20),
        ("{'a': t + t}.a", 20),
        ("[[t + t]][0][0]", 20),
        ("string(1)", 40),
        ("string(t)", 10),
        ("l + l", 8),
        ("l.map(x, x + x)", 4),
        ("l.map(x, [x, x]).map(y, y[0])", 4),
        ("l.filter(x, x != 'a') + ['b']", 5),
        ("l[0]", 10),
        ("unknown", u64::MAX),
        ("t + unknown", u64::MAX),
        ("unknown == 'a' ? t : 'b'", 10),
        ("l.map(x, unknown)[0]", u64::MAX),
        ("l.map(x, unknown)", 4),
        ("bytes(unknown)", u64::MAX),
    ] {
        assert_eq!(greatest_size(expression), expected, "{expression}");
    }
}

#[test]
fn longest_number_in_format_includes_precision() {
    assert_eq!(calls::longest_number("%.12f %d %.300e"), 300);
    assert_eq!(calls::longest_number("%s"), 0);
}
