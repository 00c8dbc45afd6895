//! Counterfactuals: changes that would flip the result of an expression. For example, a false `a && b` becomes true if
//! each false operand becomes true.
//!
//! Counterfactuals are derived from the recorded values and the structure of the expression. They do not consider
//! whether a request can have the changed values. A counterfactual assumes that the other subexpressions keep their
//! values. If the change may affect another subexpression because it reads the same field, the counterfactual lists
//! this subexpression with `still`.

mod reads;

use std::collections::BTreeSet;

use cel::ast::{Ast, Comprehension, Expr, ExprId, Literal};

use self::reads::{Atom, Read};
use super::{MAX_DEPTH, operand_of, quantifier, text};
use crate::admission::{RecordedValue, Recording};

/// Maximum number of shown counterfactuals.
const MAX_SHOWN: usize = 3;
const MAX_TERMS: usize = 6;

/// Maximum number of collected counterfactuals. Further counterfactuals are only counted.
const MAX_COLLECTED: usize = 32;

/// Root variables that can be null. Only the operation and the policy determine whether they are null.
const ROOTS: [&str; 4] = ["object", "oldObject", "params", "namespaceObject"];

/// The counterfactuals of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counterfactuals {
    /// The shown counterfactuals. Each is a list of terms that must be true together.
    pub shown: Vec<Vec<String>>,
    /// The number of counterfactuals that are not shown.
    pub n_more: usize,
}

/// The collected counterfactuals.
#[derive(Clone, Debug, Default)]
struct CounterfactualSet {
    counterfactuals: Vec<Counterfactual>,
    n_more: usize,
}

impl CounterfactualSet {
    fn new(counterfactual: Counterfactual) -> Self {
        Self {
            counterfactuals: vec![counterfactual],
            n_more: 0,
        }
    }

    /// Drops and counts the counterfactuals beyond the limit.
    fn cut(mut self) -> Self {
        let n_over = self.counterfactuals.len().saturating_sub(MAX_COLLECTED);
        self.n_more = self.n_more.saturating_add(n_over);
        self.counterfactuals.truncate(MAX_COLLECTED);
        self
    }

    fn len(&self) -> usize {
        self.counterfactuals.len().saturating_add(self.n_more)
    }
}

/// A list of terms, each with the value that it must have.
#[derive(Clone, Debug, Default)]
struct Counterfactual {
    /// Terms that had no value in the recorded evaluation, or a value other than the required one.
    changed: Vec<Atom>,
    /// Terms that already had the required value in the recorded evaluation.
    kept: Vec<Atom>,
}

/// The names and expressions of the policy's variables.
pub type Variables<'a> = [(String, &'a Ast)];

/// Returns the counterfactuals for which the expression with the index `n` has the result `wanted`.
///
/// Each counterfactual lists the terms that must become true. A term that is already true, but may be affected by the
/// change, is listed with `still`. The result is empty if the expression already has the result `wanted`, or if the
/// only counterfactual would repeat the expression. If there are many counterfactuals, those with the fewest terms are
/// shown.
#[must_use]
pub fn counterfactuals(
    ast: &Ast,
    n: usize,
    recording: &Recording,
    variables: &Variables<'_>,
    wanted: bool,
) -> Counterfactuals {
    let evaluation = Evaluation {
        ast,
        n,
        recording,
        variables,
    };
    let all = evaluation.counterfactuals(ast.root(), wanted, 0);
    let mut shown: Vec<Vec<String>> = (all.counterfactuals.iter())
        .filter(|counterfactual| !counterfactual.changed.is_empty())
        .filter_map(|counterfactual| evaluation.terms(counterfactual))
        .collect();
    let mut seen = BTreeSet::new();
    shown.retain(|counterfactual| seen.insert(counterfactual.clone()));
    if matches!(&*shown, [counterfactual] if **counterfactual == [text(ast, ast.root())]) {
        return Counterfactuals::default();
    }
    if shown.len() > MAX_SHOWN {
        shown.sort_by_key(Vec::len);
    }
    let n_more = shown.len().saturating_sub(MAX_SHOWN);
    shown.truncate(MAX_SHOWN);
    Counterfactuals {
        shown,
        n_more: n_more.saturating_add(all.n_more),
    }
}

/// Returns the element or entry that determined the result of the macro `id`, as a CEL expression. The macro is `all`
/// or `exists`. `None` if several elements determined the result, or if the element is unknown.
#[must_use]
pub fn deciding_element(ast: &Ast, n: usize, recording: &Recording, id: ExprId) -> Option<String> {
    let Expr::Comprehension(fold) = ast.expr(id) else {
        return None;
    };
    let evaluation = Evaluation {
        ast,
        n,
        recording,
        variables: &[],
    };
    let (is_all, test) = quantifier(ast, fold)?;
    let decides = evaluation.is(id, !is_all) || evaluation.ends_with(id, !is_all);
    decides
        .then(|| evaluation.element(id, fold, test, !is_all))
        .flatten()
}

/// An expression and the recorded values of its subexpressions.
#[derive(Clone, Copy)]
struct Evaluation<'a> {
    ast: &'a Ast,
    n: usize,
    recording: &'a Recording,
    variables: &'a Variables<'a>,
}

impl Evaluation<'_> {
    /// Returns the terms of a counterfactual as strings. `None` if the terms contradict each other, or if there are too
    /// many.
    fn terms(&self, counterfactual: &Counterfactual) -> Option<Vec<String>> {
        let all: Vec<Atom> = counterfactual
            .changed
            .iter()
            .chain(&counterfactual.kept)
            .copied()
            .collect();
        let contradicts = |one: &Atom| all.iter().any(|other| self.contradict(*one, *other));
        if counterfactual.changed.iter().any(contradicts) {
            return None;
        }
        let mut changed: Vec<String> = Vec::new();
        for (n, (id, wanted)) in counterfactual.changed.iter().enumerate() {
            let mut before = counterfactual.changed.iter().take(n);
            if !before.any(|known| known.1 == *wanted && self.is_same(known.0, *id)) {
                changed.push(self.term(*id, *wanted));
            }
        }
        let kept = counterfactual.kept.iter().filter(|kept| {
            let mut changed = counterfactual.changed.iter();
            changed.any(|changed| self.may_affect(changed.0, kept.0))
                && !self.stays(**kept, &counterfactual.changed)
                && !self.is_implied(**kept, &counterfactual.changed, 0)
        });
        let kept = kept.map(|(id, wanted)| format!("still {}", self.condition(*id, *wanted)));
        let terms: Vec<String> = changed.into_iter().chain(kept).collect();
        (terms.len() <= MAX_TERMS).then_some(terms)
    }

    /// Returns true if `atom` only requires that a root variable is not null, and no change of the terms `changed` can
    /// affect this. Only the operation and the policy determine whether the variable is null. Returns false if one of
    /// `changed` tests this variable for null or reads the operation.
    fn stays(&self, atom: Atom, changed: &[Atom]) -> bool {
        let Some(root) = self.root_there(atom) else {
            return false;
        };
        changed.iter().all(|(id, wanted)| {
            let is_of_root = |wanted| self.root_there((*id, wanted)) == Some(root);
            let reads_operation = || {
                let reads = self.reads(*id);
                reads.iter().any(Read::is_of_operation)
            };
            !is_of_root(*wanted) && !is_of_root(!*wanted) && !reads_operation()
        })
    }

    /// Returns the root variable that is not null if `atom` has its required value. `None` if `atom` does not require
    /// this of a root variable.
    fn root_there(&self, (id, wanted): Atom) -> Option<&str> {
        let (function, args) = self.ast.global_call(id)?;
        let is_there = match function {
            "_!=_" => wanted,
            "_==_" => !wanted,
            _ => return None,
        };
        let name = match args {
            [one, other] => match (self.ast.expr(*one), self.ast.expr(*other)) {
                (Expr::Ident(name), Expr::Literal(Literal::Null))
                | (Expr::Literal(Literal::Null), Expr::Ident(name)) => name,
                _ => return None,
            },
            _ => return None,
        };
        let root = ROOTS.into_iter().find(|root| **root == **name);
        root.filter(|_| is_there)
    }

    /// Collects the innermost subexpressions that cause the recorded value `wanted` of `id`.
    fn collect_causes(&self, id: ExprId, wanted: bool, depth: usize, atoms: &mut Vec<Atom>) {
        if depth < MAX_DEPTH
            && let Expr::Call {
                function,
                target: None,
                args,
            } = self.ast.expr(id)
        {
            match (&**function, &**args) {
                ("!_", [negated]) => {
                    return self.collect_causes(*negated, !wanted, depth + 1, atoms);
                }
                ("_&&_" | "_||_", terms)
                    if (&**function == "_&&_") == wanted
                        && terms.iter().all(|term| self.is(*term, wanted)) =>
                {
                    for term in terms {
                        self.collect_causes(*term, wanted, depth + 1, atoms);
                    }
                    return;
                }
                _ => {}
            }
        }
        atoms.push((id, wanted));
    }

    fn seen(&self, id: ExprId) -> Option<&RecordedValue> {
        self.recording.get(&(self.n, id.index()))
    }

    /// Returns true if all evaluations of `id` had the result `wanted`.
    fn is(&self, id: ExprId, wanted: bool) -> bool {
        self.seen(id).is_some_and(|seen| {
            let (same, other) = if wanted {
                (seen.is_true, seen.is_false)
            } else {
                (seen.is_false, seen.is_true)
            };
            same && !other && !seen.is_error
        })
    }

    /// Returns true if only the last evaluation of `id` had the result `value`. If `id` is in nested macros, this
    /// result ended all of them.
    fn ends_with(&self, id: ExprId, value: bool) -> bool {
        self.seen(id).is_some_and(|seen| {
            let first = if value {
                seen.first_true
            } else {
                seen.first_false
            };
            first.is_some() && first == seen.n.checked_sub(1) && !seen.is_error
        })
    }

    /// Returns the counterfactuals for which `id` has the result `wanted`.
    fn counterfactuals(&self, id: ExprId, wanted: bool, depth: usize) -> CounterfactualSet {
        if self.is(id, wanted) {
            let mut counterfactual = Counterfactual::default();
            self.collect_causes(id, wanted, depth, &mut counterfactual.kept);
            return CounterfactualSet::new(counterfactual);
        }
        let next = depth + 1;
        if depth < MAX_DEPTH
            && let Expr::Call {
                function,
                target: None,
                args,
            } = self.ast.expr(id)
        {
            match (&**function, &**args) {
                ("!_", [negated]) => return self.counterfactuals(*negated, !wanted, next),
                ("_&&_" | "_||_", terms) if (&**function == "_&&_") == wanted => {
                    return self.all(terms, wanted, next);
                }
                ("_&&_" | "_||_", terms) => return self.any(terms, wanted, next),
                ("_?_:_", [condition, truthy, _]) if self.is(*condition, true) => {
                    return self.branch((*condition, true), (*truthy, wanted), next);
                }
                ("_?_:_", [condition, _, falsy]) if self.is(*condition, false) => {
                    return self.branch((*condition, false), (*falsy, wanted), next);
                }
                _ => {}
            }
        }
        if self.is_constant(id) {
            return CounterfactualSet::default();
        }
        CounterfactualSet::new(Counterfactual {
            changed: vec![(id, wanted)],
            kept: Vec::new(),
        })
    }

    /// Returns the counterfactuals for which the evaluated branch of `?:` has the result `wanted`.
    fn branch(&self, condition: Atom, (branch, wanted): Atom, depth: usize) -> CounterfactualSet {
        let mut all = self.counterfactuals(branch, wanted, depth);
        for counterfactual in &mut all.counterfactuals {
            self.collect_causes(condition.0, condition.1, depth, &mut counterfactual.kept);
        }
        all
    }

    /// Returns true if `id` does not depend on the request: its only variables are those that its macros declare.
    fn is_constant(&self, id: ExprId) -> bool {
        let mut own: Vec<&str> = Vec::new();
        self.has_own_names_only(id, &mut own, 0)
    }

    fn has_own_names_only<'b>(&'b self, id: ExprId, own: &mut Vec<&'b str>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let expr = self.ast.expr(id);
        let n_own = own.len();
        if let Expr::Comprehension(fold) = expr {
            own.extend([&*fold.iter_var, &*fold.accu_var]);
            own.extend(fold.iter_var2.as_deref());
        }
        let mut only_own = match expr {
            Expr::Ident(name) => own.contains(&&**name),
            _ => true,
        };
        let mut children = Vec::new();
        self.ast.for_each_child(id, |child| children.push(child));
        for child in children {
            only_own = only_own && self.has_own_names_only(child, own, depth + 1);
        }
        own.truncate(n_own);
        only_own
    }

    /// Returns the counterfactuals for which all of `terms` have the result `wanted`.
    fn all(&self, terms: &[ExprId], wanted: bool, depth: usize) -> CounterfactualSet {
        let mut all = CounterfactualSet::new(Counterfactual::default());
        for term in terms {
            let of_term = self.counterfactuals(*term, wanted, depth);
            let n_all = all.len().saturating_mul(of_term.len());
            let n_known = all
                .counterfactuals
                .len()
                .saturating_mul(of_term.counterfactuals.len());
            let with = |counterfactual: &Counterfactual| {
                let of_term = of_term.counterfactuals.iter();
                let counterfactuals = of_term.map(|more| Counterfactual {
                    changed: [&*counterfactual.changed, &*more.changed].concat(),
                    kept: [&*counterfactual.kept, &*more.kept].concat(),
                });
                // A counterfactual with too many terms is not shown, so it is dropped.
                let is_short =
                    |counterfactual: &Counterfactual| counterfactual.changed.len() <= MAX_TERMS;
                counterfactuals.filter(is_short).collect::<Vec<_>>()
            };
            all = CounterfactualSet {
                counterfactuals: all.counterfactuals.iter().flat_map(with).collect(),
                n_more: n_all.saturating_sub(n_known),
            }
            .cut();
        }
        all
    }

    /// Returns the counterfactuals for which at least one of `terms` has the result `wanted`.
    fn any(&self, terms: &[ExprId], wanted: bool, depth: usize) -> CounterfactualSet {
        let mut all = CounterfactualSet::default();
        for term in terms {
            let of_term = self.counterfactuals(*term, wanted, depth);
            all.counterfactuals.extend(of_term.counterfactuals);
            all.n_more = all.n_more.saturating_add(of_term.n_more);
        }
        all.cut()
    }

    /// Formats a term that must have the result `wanted`. The recorded values of its operands are appended.
    fn term(&self, id: ExprId, wanted: bool) -> String {
        let term = self.condition(id, wanted);
        if self.seen(id).is_none() {
            return format!("{term} (not evaluated)");
        }
        let values: Vec<String> = self
            .compared(id)
            .into_iter()
            .filter_map(|operand| {
                let seen = self.seen(operand)?;
                let value = seen.values.first();
                let value = value.filter(|_| seen.n == 1 && !seen.is_without_text())?;
                Some(format!("{} is {value}", text(self.ast, operand)))
            })
            .collect();
        if values.is_empty() {
            return term;
        }
        format!("{term} ({})", values.join(", "))
    }

    /// Returns the operands of a call whose values are worth showing: all except literals, lists, maps and macros.
    fn compared(&self, id: ExprId) -> Vec<ExprId> {
        let Expr::Call { target, args, .. } = self.ast.expr(id) else {
            return Vec::new();
        };
        let operands = target.iter().chain(&**args).copied();
        let is_path = |id: &ExprId| {
            !matches!(
                self.ast.expr(*id),
                Expr::Literal(_) | Expr::List { .. } | Expr::Map(_) | Expr::Comprehension(_)
            )
        };
        operands.filter(is_path).collect()
    }

    /// Returns a CEL expression that is true if `id` has the result `wanted`.
    fn condition(&self, id: ExprId, wanted: bool) -> String {
        match self.ast.expr(id) {
            Expr::Comprehension(fold) => {
                if let Some(condition) = self.elements_condition(id, fold, wanted) {
                    return condition;
                }
            }
            Expr::Call {
                function,
                target: None,
                args,
            } if !wanted => match (&**function, &**args) {
                ("!_", [negated]) => return self.condition(*negated, true),
                (operator, [left, right]) => {
                    if let Some(operator) = negated(operator) {
                        let mut text = String::new();
                        operand_of(self.ast, *left, &mut text, 0);
                        text.push_str(operator);
                        operand_of(self.ast, *right, &mut text, 0);
                        return text;
                    }
                }
                _ => {}
            },
            _ => {}
        }
        let text = text(self.ast, id);
        match (wanted, self.ast.expr(id)) {
            (true, _) => text,
            (
                false,
                Expr::Call {
                    target: None, args, ..
                },
            ) if args.len() > 1 => {
                format!("!({text})")
            }
            (false, _) => format!("!{text}"),
        }
    }

    /// Returns a condition that is true if the macro `id` has the result `wanted`. An example is `x < 3 for each x of
    /// object.c`.
    fn elements_condition(&self, id: ExprId, fold: &Comprehension, wanted: bool) -> Option<String> {
        let (is_all, test) = quantifier(self.ast, fold)?;
        let some = if is_all == wanted { "each" } else { "some" };
        let condition = format!(
            "{} for {some} {} of {}",
            self.condition(test, wanted),
            fold.iter_var,
            text(self.ast, fold.iter_range)
        );
        let element = (is_all == wanted).then(|| self.element(id, fold, test, !is_all));
        Some(match element.flatten() {
            Some(element) => format!("{condition} (fails for {element})"),
            None => condition,
        })
    }

    /// Returns the first element for which `test` had the result `value`, as a CEL expression. `None` if this result
    /// did not end the macro `id`.
    fn element(
        &self,
        id: ExprId,
        fold: &Comprehension,
        test: ExprId,
        value: bool,
    ) -> Option<String> {
        let (whole, of_test) = (self.seen(id)?, self.seen(test)?);
        let first = if value {
            of_test.first_true
        } else {
            of_test.first_false
        }?;
        let range = self.seen(fold.iter_range);
        let index = if whole.n == 1 {
            first
        } else {
            // In nested macros, the last evaluation of the test determined the result if no earlier evaluation had the
            // result of the last one.
            let last = of_test.n.checked_sub(1).filter(|last| *last == first)?;
            of_test.times.get(usize::try_from(last).ok()?)?;
            let since = *range
                .filter(|range| range.n == as_count(&range.times))?
                .times
                .last()?;
            let before = of_test.times.iter().filter(|time| **time < since).count();
            last.checked_sub(u64::try_from(before).ok()?)?
        };
        let mut place = String::new();
        operand_of(self.ast, fold.iter_range, &mut place, 0);
        let is_list = range.is_none_or(|range| range.keys.is_empty());
        if is_list {
            return Some(format!("{place}[{index}]"));
        }
        let key = range?.keys.get(usize::try_from(index).ok()?)?;
        Some(format!("{place}[{key}]"))
    }
}

fn as_count(times: &[u64]) -> u64 {
    u64::try_from(times.len()).unwrap_or(u64::MAX)
}

/// Returns the negation of a comparison operator, with spaces around it: ` >= ` for `<`. `None` for other operators.
fn negated(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "_==_" => " != ",
        "_!=_" => " == ",
        "_<_" => " >= ",
        "_<=_" => " > ",
        "_>_" => " <= ",
        "_>=_" => " < ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
