//! Finds variables that read themselves.

use std::collections::{HashMap, HashSet};

use cel::interrupt::checkpoint;

use super::Reads;
use crate::expressions::PolicyExpression;

/// Returns the names of variables that read themselves, directly or through other variables. If several variables have
/// the same name, only the last one counts. Reads of `variables` as a whole are ignored.
///
/// Uses Tarjan's algorithm for strongly connected components. It runs in linear time and without recursion.
pub(crate) fn self_reading<'a>(variables: &[&'a PolicyExpression]) -> HashSet<&'a str> {
    let mut reads: HashMap<&str, Vec<&str>> = HashMap::new();
    for variable in variables {
        let read = variable
            .parsed()
            .map_or_else(|_| Vec::new(), |ast| Reads::new(ast).variables().names);
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

/// The state of a variable in the search for cycles.
struct Order {
    /// The number of variables that the search visited before this one.
    index: usize,
    /// The smallest index of an open variable that is reachable from this one.
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
        // The path to the current variable: the name of each variable, and the number of its reads that were followed.
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

    /// Closes the strongly connected component if `name` is its root.
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
    use cel::version::{Behavior, CelGo};

    use super::*;
    use crate::expressions::Role;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: &[&str]) {
        let parsed: Vec<_> = variables
            .iter()
            .map(|(name, text)| {
                let behavior = Behavior::new(CelGo::V0_26);
                PolicyExpression::new(behavior, String::new(), Role::Variable, Some(name), text)
            })
            .collect();
        let names = self_reading(&parsed.iter().collect::<Vec<_>>());
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        assert_eq!(names, expected);
    }

    #[test]
    fn variables_that_read_themselves_are_found() {
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
