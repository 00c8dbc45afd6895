//! Selects the subexpressions to show for a large expression: those that determined the result, and those nearest to
//! them.

use cel::ast::{Ast, ExprId};

use super::{MAX_DEPTH, Subexpression};
use crate::admission::{RecordedValue, Recording};

/// Reduces `parts` to at most `max` subexpressions of the expression with the index `n`, in the same order.
/// Subexpressions that determined the result are preferred, outer to inner. Next are the subexpressions that are
/// nearest to them.
pub fn keep_nearest(
    parts: &mut Vec<Subexpression>,
    max: usize,
    ast: &Ast,
    n: usize,
    recording: &Recording,
) {
    if parts.len() <= max {
        return;
    }
    let evaluation = Evaluation { ast, n, recording };
    let mut off = vec![usize::MAX; ast.len()];
    evaluation.walk(ast.root(), 0, 0, &mut off);
    let distance = |part: &Subexpression| off.get(part.id.index()).copied().unwrap_or(usize::MAX);
    let mut ranked: Vec<(usize, usize, usize)> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| (distance(part), part.depth, at))
        .collect();
    ranked.sort_unstable();
    let mut kept: Vec<bool> = vec![false; parts.len()];
    for (_, _, at) in ranked.into_iter().take(max) {
        if let Some(kept) = kept.get_mut(at) {
            *kept = true;
        }
    }
    let mut kept = kept.into_iter();
    parts.retain(|_| kept.next().unwrap_or_default());
}

struct Evaluation<'a> {
    ast: &'a Ast,
    n: usize,
    recording: &'a Recording,
}

impl Evaluation<'_> {
    fn seen(&self, id: ExprId) -> Option<&RecordedValue> {
        self.recording.get(&(self.n, id.index()))
    }

    /// Computes the distance of each subexpression: the number of nodes on the path to it that did not determine the
    /// result.
    fn walk(&self, id: ExprId, distance: usize, depth: usize, off: &mut [usize]) {
        if let Some(off) = off.get_mut(id.index()) {
            *off = distance;
        }
        if depth > MAX_DEPTH {
            return;
        }
        let mut children = Vec::new();
        self.ast.for_each_child(id, |child| children.push(child));
        for child in children {
            let step = usize::from(!self.decides(id, child));
            self.walk(child, distance + step, depth + 1, off);
        }
    }

    /// Returns true if the value of `child` helped to determine the value of `id`.
    fn decides(&self, id: ExprId, child: ExprId) -> bool {
        let Some((function, args)) = self.ast.global_call(id) else {
            return true;
        };
        let (Some(whole), Some(part)) = (self.seen(id), self.seen(child)) else {
            // A child without a recorded value was not evaluated, so it did not determine the result. If the call
            // itself has no recorded value, it is part of a macro's expansion, and is assumed to depend on all
            // operands.
            return self.seen(id).is_none();
        };
        match function {
            "_&&_" | "_||_" => {
                let decisive = function == "_||_";
                let has = |seen: &RecordedValue, value: bool| {
                    if value { seen.is_true } else { seen.is_false }
                };
                if whole.is_error {
                    return part.is_error;
                }
                !has(whole, decisive) || has(part, decisive)
            }
            "_?_:_" => args.first() == Some(&child) || part.n > 0,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subexpressions::subexpressions;
    use cel::syntax;

    #[test]
    fn subexpressions_that_did_not_decide_are_dropped() {
        let (ast, _) = syntax::parse("a.x == 1 && b.y == 2 && c.z == 3");
        let ast = ast.unwrap();
        let mut all = subexpressions(&ast);
        let mut recording = Recording::new();
        for part in &all {
            let decides = part.text.contains('c');
            recording.insert(
                (0, part.id.index()),
                RecordedValue {
                    n: 1,
                    is_true: !decides,
                    is_false: decides,
                    ..RecordedValue::default()
                },
            );
        }
        keep_nearest(&mut all, 3, &ast, 0, &recording);
        let kept: Vec<&str> = all.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(kept.last(), Some(&"c.z"), "{kept:?}");
        assert!(
            !kept
                .iter()
                .any(|text| text.starts_with('a') || text.starts_with('b')),
            "{kept:?}"
        );
    }
}
