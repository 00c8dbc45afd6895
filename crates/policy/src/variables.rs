//! Reads of a policy's variables: `variables.a`, `.variables.a`, `dyn(variables).a`, `variables[?'a']`.

use std::collections::{HashMap, HashSet};

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::interrupt::{checkpoint, checkpoint_of};

use super::expressions::PolicyExpression;

/// The variables that an expression reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reads<'a> {
    /// The variables that it selects by name.
    pub names: Vec<&'a str>,
    /// True if it uses `variables` as a whole, and so may read any variable: `dyn(variables) == {}`.
    pub may_read_all: bool,
}

impl Reads<'_> {
    /// Returns true if the expression may read the variable `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.may_read_all || self.names.contains(&name)
    }
}

/// Returns the variables that `ast` reads.
#[must_use]
pub fn read_by(ast: &Ast) -> Reads<'_> {
    checkpoint_of(ast.len() / 16);
    let mut reads = Reads::default();
    let mut selected = HashSet::new();
    for (id, _) in ast.iter() {
        if let Some((operand, name)) = selection(ast, id)
            && let Some(variables) = variables_in(ast, operand)
        {
            selected.insert(variables);
            reads.names.push(name);
        }
    }
    reads.may_read_all = ast
        .iter()
        .any(|(id, _)| is_variables(ast, id) && !selected.contains(&id));
    reads
}

/// Returns the name of the variable that the expression `id` selects.
#[must_use]
pub fn selected(ast: &Ast, id: ExprId) -> Option<&str> {
    let (operand, name) = selection(ast, id)?;
    variables_in(ast, operand).map(|_| name)
}

/// The operators that select a field by its name.
const SELECTIONS: [&str; 3] = ["_[_]", "_[?_]", "_?._"];

/// Returns the operand and the name of a selection by a literal name.
fn selection(ast: &Ast, id: ExprId) -> Option<(ExprId, &str)> {
    match ast.expr(id) {
        Expr::Select { operand, field, .. } => Some((*operand, field)),
        Expr::Call { function, args, .. } if SELECTIONS.contains(&&**function) => match &**args {
            [operand, field] => match ast.expr(*field) {
                Expr::Literal(Literal::String(name)) => Some((*operand, name)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if `id` is the identifier `variables` or `.variables`.
#[must_use]
pub fn is_variables(ast: &Ast, id: ExprId) -> bool {
    matches!(ast.expr(id), Expr::Ident(name) if name.trim_start_matches('.') == "variables")
}

/// Returns true if `ast` contains the identifier `variables`.
pub(super) fn is_named(ast: &Ast) -> bool {
    ast.iter().any(|(id, _)| is_variables(ast, id))
}

/// Returns the identifier `variables` that `id` is, with or without `dyn()` around it.
fn variables_in(ast: &Ast, id: ExprId) -> Option<ExprId> {
    let id = without_dyn(ast, id);
    is_variables(ast, id).then_some(id)
}

/// Returns the argument of the innermost of nested `dyn()` conversions, or `id` itself.
#[must_use]
pub fn without_dyn(ast: &Ast, mut id: ExprId) -> ExprId {
    while let Some(("dyn", [inner])) = ast.global_call(id) {
        id = *inner;
    }
    id
}

/// The names that reach themselves by what the variables of these names read at run time: of two variables
/// of a name it is the last one declared. What an expression may read by taking `variables` as a whole does not
/// count.
///
/// Takes time in proportion to the reads: strongly connected parts are found by Tarjan's algorithm, without
/// recursion.
pub(super) fn self_reading<'a>(variables: &[&'a PolicyExpression]) -> HashSet<&'a str> {
    let mut reads: HashMap<&str, Vec<&str>> = HashMap::new();
    for variable in variables {
        let read = variable
            .parsed()
            .map_or_else(|_| Vec::new(), |ast| read_by(ast).names);
        reads.insert(variable.name.as_deref().unwrap_or_default(), read);
    }
    let mut search = Search {
        reads: &reads,
        orders: HashMap::new(),
        open: Vec::new(),
        in_cycles: HashSet::new(),
    };
    for variable in variables {
        search.run(variable.name.as_deref().unwrap_or_default());
    }
    search.in_cycles
}

/// The knowledge of a name in the search for cycles.
struct Order {
    /// When the search came by.
    index: usize,
    /// The earliest name that is still open and can be reached.
    lowest: usize,
    is_open: bool,
}

struct Search<'a, 'b> {
    reads: &'b HashMap<&'a str, Vec<&'a str>>,
    orders: HashMap<&'a str, Order>,
    open: Vec<&'a str>,
    in_cycles: HashSet<&'a str>,
}

impl<'a> Search<'a, '_> {
    fn enter(&mut self, name: &'a str) {
        let index = self.orders.len();
        let order = Order {
            index,
            lowest: index,
            is_open: true,
        };
        self.orders.insert(name, order);
        self.open.push(name);
    }

    fn lower(&mut self, name: &str, to: usize) {
        if let Some(order) = self.orders.get_mut(name) {
            order.lowest = order.lowest.min(to);
        }
    }

    fn run(&mut self, from: &'a str) {
        if self.orders.contains_key(from) {
            return;
        }
        // The names on the way to the current one, each with the number of reads that were followed.
        let mut path = vec![(from, 0)];
        self.enter(from);
        while let Some((name, followed)) = path.last_mut() {
            checkpoint();
            let name = *name;
            let next = self.reads.get(name).and_then(|reads| reads.get(*followed));
            *followed += 1;
            let Some(&next) = next else {
                path.pop();
                self.leave(name);
                let lowest = self.orders.get(name).map_or(usize::MAX, |o| o.lowest);
                if let Some((reader, _)) = path.last() {
                    self.lower(reader, lowest);
                }
                continue;
            };
            if next == name {
                self.in_cycles.insert(name);
            }
            let seen = self.orders.get(next);
            if let Some(order) = seen.filter(|order| order.is_open) {
                let index = order.index;
                self.lower(name, index);
            } else if seen.is_none() && self.reads.contains_key(next) {
                self.enter(next);
                path.push((next, 0));
            }
        }
    }

    /// Closes the part of the graph that `name` is the first of, if it is.
    fn leave(&mut self, name: &'a str) {
        let is_first = self
            .orders
            .get(name)
            .is_some_and(|order| order.lowest == order.index);
        if !is_first {
            return;
        }
        let start = self.open.iter().rposition(|open| *open == name);
        let part = self.open.split_off(start.unwrap_or(self.open.len()));
        let is_cycle = part.len() > 1;
        for member in part {
            if let Some(order) = self.orders.get_mut(member) {
                order.is_open = false;
            }
            if is_cycle {
                self.in_cycles.insert(member);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::Role;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: &[&str]) {
        let parsed: Vec<_> = variables
            .iter()
            .map(|(name, text)| {
                PolicyExpression::new(String::new(), Role::Variable, Some(name), text)
            })
            .collect();
        let found = self_reading(&parsed.iter().collect::<Vec<_>>());
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[track_caller]
    fn check_reads(text: &str, names: &[&str], may_read_all: bool) {
        let parsed = PolicyExpression::new(String::new(), Role::Validation, None, text);
        let mut found = read_by(parsed.parsed().unwrap());
        found.names.sort_unstable();
        found.names.dedup();
        let names = names.to_vec();
        let expected = Reads {
            names,
            may_read_all,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_read_has_a_name_or_may_be_of_every_variable() {
        check_reads("object.a == variables.b", &["b"], false);
        check_reads(
            "has(variables.b) && variables.?c.hasValue()",
            &["b", "c"],
            false,
        );
        check_reads(
            "variables['b'] + variables[?'c'].orValue(1)",
            &["b", "c"],
            false,
        );
        check_reads(
            "dyn(variables).b + dyn(dyn(.variables))['c']",
            &["b", "c"],
            false,
        );
        check_reads("variables.b && dyn(variables)[object.key]", &["b"], true);
        check_reads("dyn(variables).all(name, name != '')", &[], true);
        check_reads("[variables][0].b", &[], true);
        check_reads("dyn(variables) == {'b': 1}", &[], true);
        check_reads("size(dyn(variables)) == 'variables'", &[], true);
        check_reads("object.variables.b == 'variables'", &[], false);
    }

    #[test]
    fn variables_that_reach_themselves() {
        check(&[("a", "1"), ("b", "variables.a")], &[]);
        check(&[("a", "1"), ("a", "variables.a")], &["a"]);
        check(
            &[
                ("a", "1"),
                ("b", "variables.a"),
                ("a", "variables.b + variables.c"),
            ],
            &["a", "b"],
        );
        check(
            &[
                ("a", "variables.b"),
                ("b", "variables.c"),
                ("c", "variables.b"),
                ("d", "variables.d.e"),
            ],
            &["b", "c", "d"],
        );
    }
}
