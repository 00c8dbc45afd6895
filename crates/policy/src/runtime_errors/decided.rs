//! Conditions that are the same in all requests of a kind: `object.kind == 'Pod'` and what is made of such.

use serde_json::Value as Json;

use super::symbol::{Form, Place, Reader, Scope, Symbol, form};
use cel::ast::{Comprehension, Expr, ExprId, Literal};

/// How deep a condition is read.
const MAX_DEPTH: usize = 20;

/// The longest list that is gone through.
const MAX_ELEMENTS: usize = 16;

/// The value of the condition at `place`, where it is the same in all requests of the kind.
pub(super) fn decided(reader: &Reader<'_>, place: Place, scope: &Scope) -> Option<bool> {
    decided_at(reader, place, scope, 0)
}

fn decided_at(reader: &Reader<'_>, place: Place, scope: &Scope, depth: usize) -> Option<bool> {
    if depth > MAX_DEPTH || !reader.take() {
        return None;
    }
    let here = |id| Place { n: place.n, id };
    let below = |id| decided_at(reader, here(id), scope, depth.saturating_add(1));
    let symbols = |id| reader.symbols(here(id), scope);
    match reader.expr(place) {
        Expr::Literal(Literal::Bool(value)) => Some(*value),
        Expr::Select {
            test_only: false, ..
        } => {
            let n = reader.read_variable(place)?;
            let id = reader.ast(n)?.root();
            decided_at(
                reader,
                Place { n, id },
                &Scope::default(),
                depth.saturating_add(1),
            )
        }
        Expr::Call {
            function,
            target: None,
            args,
        } => match (&**function, &**args) {
            ("!_", [arg]) => below(*arg).map(|value| !value),
            ("_&&_", args) => all(args.iter().map(|arg| below(*arg)), true),
            ("_||_", args) => all(args.iter().map(|arg| below(*arg)), false),
            ("_==_", [left, right]) => equal(&symbols(*left), &symbols(*right)),
            ("_!=_", [left, right]) => equal(&symbols(*left), &symbols(*right)).map(|value| !value),
            ("@in" | "_in_", [element, of]) => is_in(&symbols(*element), &symbols(*of)),
            _ => None,
        },
        Expr::Comprehension(fold) => of_fold(reader, place, fold, scope, depth),
        _ => None,
    }
}

/// A macro over a list that is written out.
fn of_fold(
    reader: &Reader<'_>,
    place: Place,
    fold: &Comprehension,
    scope: &Scope,
    depth: usize,
) -> Option<bool> {
    let here = |id: ExprId| Place { n: place.n, id };
    let Expr::List { elements, .. } = reader.expr(here(fold.iter_range)) else {
        return None;
    };
    let (test, is_all) = match form(reader, place.n, fold) {
        Form::All(test) => (test, true),
        Form::Exists(test) => (test, false),
        Form::ExistsOne(_) | Form::Collect(..) | Form::Bind | Form::Other => return None,
    };
    if elements.len() > MAX_ELEMENTS || fold.iter_var2.is_some() {
        return None;
    }
    let rounds = elements.iter().map(|element| {
        let element = reader.symbols(here(*element), scope);
        let scope = scope.with(&fold.iter_var, element);
        decided_at(reader, here(test), &scope, depth.saturating_add(1))
    });
    all(rounds, is_all)
}

/// The conjunction of `parts`, or their disjunction where `is_all` is false.
fn all(parts: impl Iterator<Item = Option<bool>>, is_all: bool) -> Option<bool> {
    let mut is_open = false;
    for part in parts {
        match part {
            Some(value) if value != is_all => return Some(value),
            Some(_) => {}
            None => is_open = true,
        }
    }
    (!is_open).then_some(is_all)
}

/// Reports whether two values are equal that are the same in all requests.
pub(super) fn equal(left: &[Symbol], right: &[Symbol]) -> Option<bool> {
    Some(constant(left)? == constant(right)?)
}

/// Reports whether a value is in a list, where both are the same in all requests.
pub(super) fn is_in(element: &[Symbol], of: &[Symbol]) -> Option<bool> {
    let element = constant(element)?;
    let [Symbol::Elements(elements)] = of else {
        return None;
    };
    let found = elements.iter().map(|known| {
        equal(
            std::slice::from_ref(known),
            &[Symbol::Value(element.clone())],
        )
    });
    all(found, false)
}

fn constant(symbols: &[Symbol]) -> Option<&Json> {
    match symbols {
        [Symbol::Value(value)] => Some(value),
        _ => None,
    }
}
