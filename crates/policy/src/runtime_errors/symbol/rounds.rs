//! Rounds of macros: the elements that they meet, and the goals for it to be so.

use serde_json::json;

use super::{ANY_KEY, Form, Goal, MAX_ALTERNATIVES, Place, Reader, Scope, Symbol, at, form};
use cel::ast::{Comprehension, Expr};
use kubernetes::validity::FieldPath;

impl Reader<'_> {
    /// The elements that a macro over `symbol` meets, with the goals for it to meet them.
    pub(in crate::runtime_errors) fn elements(
        &self,
        symbol: &Symbol,
        depth: usize,
    ) -> Vec<(Symbol, Vec<Goal>)> {
        if depth > 8 || !self.take() {
            return Vec::new();
        }
        match symbol {
            Symbol::At { path, .. } if self.is_map(path) => {
                vec![(
                    Symbol::Key(path.clone()),
                    vec![Goal::NotEmpty(path.clone())],
                )]
            }
            Symbol::At { path, .. } => path
                .element(0)
                .map(|element| (at(element), vec![Goal::NotEmpty(path.clone())]))
                .into_iter()
                .collect(),
            Symbol::Elements(elements) => {
                let elements = elements.iter().take(MAX_ALTERNATIVES);
                elements
                    .map(|element| (element.clone(), Vec::new()))
                    .collect()
            }
            Symbol::Sum(sides) => {
                let (left, right) = &**sides;
                let both = left.iter().chain(right);
                both.flat_map(|side| self.elements(side, depth.saturating_add(1)))
                    .take(MAX_ALTERNATIVES)
                    .collect()
            }
            Symbol::Collected(place, scope) => self.collected(*place, scope, depth),
            Symbol::Value(_)
            | Symbol::Key(_)
            | Symbol::Size(_)
            | Symbol::Parts(_)
            | Symbol::Unknown => Vec::new(),
        }
    }

    /// The goals for the macro of which `symbol` is the list to leave out what it is about, with the list that it
    /// goes over.
    pub(in crate::runtime_errors) fn fewer(
        &self,
        symbol: &Symbol,
    ) -> Option<(FieldPath, Vec<Goal>)> {
        let Symbol::Collected(place, scope) = symbol else {
            return None;
        };
        let Expr::Comprehension(fold) = self.expr(*place) else {
            return None;
        };
        let Form::Collect(filter, _) = form(self, place.n, fold) else {
            return None;
        };
        let here = |id| Place { n: place.n, id };
        let ranges = self.symbols(here(fold.iter_range), scope);
        let path = ranges.iter().find_map(|range| self.first_path(range, 0))?;
        if let Some(collected) = ranges
            .iter()
            .find(|range| filter.is_none() && matches!(range, Symbol::Collected(..)))
        {
            return self.fewer(collected);
        }
        let rounds = self.rounds(place.n, fold, scope, 0).into_iter();
        let excluded = filter.map_or_else(Vec::new, |filter| {
            rounds
                .map(|(round, _)| Goal::Is(here(filter), round, false))
                .collect()
        });
        Some((path, excluded))
    }

    /// The first part of the request that a list is made of.
    fn first_path(&self, symbol: &Symbol, depth: usize) -> Option<FieldPath> {
        if depth > 8 {
            return None;
        }
        let depth = depth.saturating_add(1);
        match symbol {
            Symbol::At { path, .. } | Symbol::Parts(path) => Some(path.clone()),
            Symbol::Sum(sides) => {
                let mut both = sides.0.iter().chain(&sides.1);
                both.find_map(|side| self.first_path(side, depth))
            }
            Symbol::Collected(place, scope) => {
                let Expr::Comprehension(fold) = self.expr(*place) else {
                    return None;
                };
                let range = Place {
                    n: place.n,
                    id: fold.iter_range,
                };
                let ranges = self.symbols(range, scope);
                ranges
                    .iter()
                    .find_map(|range| self.first_path(range, depth))
            }
            _ => None,
        }
    }

    fn collected(&self, place: Place, scope: &Scope, depth: usize) -> Vec<(Symbol, Vec<Goal>)> {
        let Expr::Comprehension(fold) = self.expr(place) else {
            return Vec::new();
        };
        let Form::Collect(filter, transform) = form(self, place.n, fold) else {
            return Vec::new();
        };
        let here = |id| Place { n: place.n, id };
        let mut found = Vec::new();
        for (scope, mut goals) in self.rounds(place.n, fold, scope, depth) {
            goals.extend(filter.map(|id| Goal::Is(here(id), scope.clone(), true)));
            for symbol in self.symbols(here(transform), &scope) {
                found.push((symbol, goals.clone()));
            }
        }
        found.truncate(MAX_ALTERNATIVES);
        found
    }

    /// The scopes in which the parts of `fold` are evaluated that are evaluated for each element, each with the goals
    /// for there being such an element.
    pub(in crate::runtime_errors) fn rounds(
        &self,
        n: usize,
        fold: &Comprehension,
        scope: &Scope,
        depth: usize,
    ) -> Vec<(Scope, Vec<Goal>)> {
        let range = Place {
            n,
            id: fold.iter_range,
        };
        let mut rounds = Vec::new();
        for symbol in self.symbols(range, scope) {
            for (element, goals) in self.elements(&symbol, depth.saturating_add(1)) {
                let scope = match &fold.iter_var2 {
                    None => scope.with(&fold.iter_var, vec![element]),
                    Some(second) => match &element {
                        Symbol::Key(map) => {
                            let value = map.field(ANY_KEY).map_or(Symbol::Unknown, at);
                            scope
                                .with(&fold.iter_var, vec![element.clone()])
                                .with(second, vec![value])
                        }
                        _ => scope
                            .with(&fold.iter_var, vec![Symbol::Value(json!(0))])
                            .with(second, vec![element]),
                    },
                };
                rounds.push((scope, goals));
                if rounds.len() >= MAX_ALTERNATIVES {
                    return rounds;
                }
            }
        }
        rounds
    }
}
