//! Collects the paths that subexpressions read. The paths determine whether a change of one subexpression may affect
//! another.

use cel::ast::{Ast, Expr, ExprId, Literal};

use super::{Evaluation, MAX_DEPTH};
use crate::reads::{Attribute, Key};

/// Maximum number of paths of one subexpression. A subexpression with more paths counts as reading any path.
const MAX_READS: usize = 500;

/// A path that a subexpression reads. It starts at a root variable. An empty path means that any path may be read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    path: Vec<String>,
    /// The number of names at the start of the path whose values must be present. If one of them is absent, the
    /// subexpression fails.
    n_needed: usize,
    /// True if the subexpression only tests the presence of the path's last name.
    is_presence: bool,
    /// True if the recorded evaluation read the path without an error.
    is_seen: bool,
    /// True if every evaluation of the subexpression reads the path.
    is_always: bool,
}

/// A boolean subexpression and the value that it must have.
pub(super) type Atom = (ExprId, bool);

/// A chain of selections. The path ends before the first index that is not a string literal.
struct Chain {
    path: Vec<String>,
    /// True if the root has a leading dot, so that it cannot be a macro variable.
    is_absolute: bool,
    n_needed: usize,
    /// True if the chain only tests the presence of the path's last name.
    is_presence: bool,
    is_cut: bool,
    indices: Vec<ExprId>,
}

/// Returns the chain of selections that ends at `id`. `None` if the chain does not start at an identifier.
fn chain(ast: &Ast, id: ExprId) -> Option<Chain> {
    let attribute = Attribute::new(ast, id);
    let Expr::Ident(name) = ast.expr(attribute.operand) else {
        return None;
    };
    let mut chain = Chain {
        path: vec![name.trim_start_matches('.').to_owned()],
        is_absolute: name.starts_with('.'),
        n_needed: 1,
        is_presence: attribute.qualifiers.last().is_some_and(|it| it.is_test),
        is_cut: false,
        indices: Vec::new(),
    };
    let mut is_tolerant = false;
    for qualifier in &attribute.qualifiers {
        is_tolerant |= qualifier.is_optional || qualifier.is_test;
        if let Key::Computed(index) = qualifier.key {
            chain.indices.push(index);
        }
        match qualifier.key.name() {
            Some(name) if !chain.is_cut => chain.push(name, is_tolerant),
            _ => chain.is_cut = true,
        }
    }
    Some(chain)
}

impl Chain {
    fn push(&mut self, step: &str, is_tolerant: bool) {
        self.path.push(step.to_owned());
        self.n_needed += usize::from(!is_tolerant);
    }
}

impl Evaluation<'_> {
    pub(super) fn reads(&self, id: ExprId) -> Vec<Read> {
        let mut reads = Vec::new();
        self.read(id, (&mut Vec::new(), true, 0), &mut reads);
        reads
    }

    fn read(
        &self,
        id: ExprId,
        (own, is_always, depth): (&mut Vec<String>, bool, usize),
        reads: &mut Vec<Read>,
    ) {
        let anything = Read {
            path: Vec::new(),
            n_needed: 0,
            is_presence: false,
            is_seen: false,
            is_always: false,
        };
        if depth > MAX_DEPTH || reads.len() > MAX_READS {
            reads.push(anything);
            return;
        }
        let depth = depth + 1;
        if let Some(chain) = self.chain_or_test(id) {
            for index in &chain.indices {
                self.read(*index, (own, is_always, depth), reads);
            }
            match chain.path.first().map(String::as_str) {
                // Reads of a macro variable are not recorded, because the macro already reads its whole range.
                Some(root) if !chain.is_absolute && own.iter().any(|name| name == root) => {}
                Some("variables") => {
                    let definition = chain.path.get(1).and_then(|name| {
                        let mut all = self.variables.iter();
                        all.find(|(known, _)| known == name)
                    });
                    let Some((_, ast)) = definition else {
                        reads.push(anything);
                        return;
                    };
                    // For reads in the expression of a policy variable, only the paths are known.
                    let of_it = Evaluation { ast, ..*self };
                    let n_before = reads.len();
                    of_it.read(ast.root(), (&mut Vec::new(), false, depth), reads);
                    for read in reads.iter_mut().skip(n_before) {
                        let path = std::mem::take(&mut read.path);
                        *read = Read {
                            path,
                            ..anything.clone()
                        };
                    }
                }
                _ => reads.push(Read {
                    is_presence: chain.is_presence && !chain.is_cut,
                    n_needed: chain.n_needed,
                    is_seen: self.seen(id).is_some_and(|seen| !seen.is_error),
                    is_always,
                    path: chain.path,
                }),
            }
            return;
        }
        match self.ast.expr(id) {
            Expr::Comprehension(fold) => {
                self.read(fold.iter_range, (own, is_always, depth), reads);
                self.read(fold.accu_init, (own, is_always, depth), reads);
                let n_own = own.len();
                own.extend([fold.iter_var.to_string(), fold.accu_var.to_string()]);
                own.extend(fold.iter_var2.as_deref().map(str::to_owned));
                for below in [fold.loop_condition, fold.loop_step, fold.result] {
                    self.read(below, (own, false, depth), reads);
                }
                own.truncate(n_own);
            }
            expr => {
                let is_always = is_always
                    && !matches!(expr, Expr::Call { function, .. }
                        if matches!(&**function, "_&&_" | "_||_" | "_?_:_"));
                let mut below = Vec::new();
                self.ast.for_each_child(id, |child| below.push(child));
                for child in below {
                    self.read(child, (own, is_always, depth), reads);
                }
            }
        }
    }

    /// Returns the chain of selections that ends at `id`. For `'key' in chain`, the key is the last name of the path.
    fn chain_or_test(&self, id: ExprId) -> Option<Chain> {
        let Some(("@in" | "_in_", [key, operand])) = self.ast.global_call(id) else {
            return chain(self.ast, id);
        };
        let Expr::Literal(Literal::String(key)) = self.ast.expr(*key) else {
            return None;
        };
        let mut tested = chain(self.ast, *operand)?;
        if !tested.is_cut {
            tested.push(key, true);
        }
        tested.is_presence = true;
        Some(tested)
    }

    /// Returns the path if `id` tests the presence of a path. `None` for other expressions.
    fn tests(&self, id: ExprId) -> Option<Vec<String>> {
        let chain = self.chain_or_test(id)?;
        (chain.is_presence && !chain.is_cut).then_some(chain.path)
    }

    /// Returns the paths whose values are present whenever the atom has its required value.
    fn needed(&self, (id, wanted): Atom) -> Vec<Vec<String>> {
        let reads = self.reads(id).into_iter().filter(|read| read.is_always);
        let needed = reads.map(|read| read.path.into_iter().take(read.n_needed).collect());
        let tested = self.tests(id).filter(|_| wanted);
        needed.chain(tested).collect()
    }

    /// Returns true if no object can satisfy both atoms: one of them requires a value that the other excludes.
    pub(super) fn contradict(&self, one: Atom, other: Atom) -> bool {
        let excludes = |one: Atom, other: Atom| {
            let absent = self.tests(one.0).filter(|_| !one.1);
            absent.is_some_and(|absent| {
                let needed = self.needed(other);
                needed.iter().any(|path| path.starts_with(&absent))
            })
        };
        excludes(one, other) || excludes(other, one) || self.are_of_two_values(one, other)
    }

    /// Returns true if the atoms require that the same operand is equal to two different values.
    fn are_of_two_values(&self, one: Atom, other: Atom) -> bool {
        let equality = |(id, wanted): Atom| match self.ast.expr(id) {
            Expr::Call {
                function,
                target: None,
                args,
            } if (&**function == "_==_") && wanted || (&**function == "_!=_") && !wanted => {
                match &**args {
                    [operand, value] => match self.ast.expr(*value) {
                        Expr::Literal(literal) => Some((*operand, literal)),
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        };
        let of_both = equality(one).zip(equality(other));
        of_both.is_some_and(|((left, value), (right, other))| {
            // Only strings and ints are compared, because different literals of other types can be equal.
            let are_texts = matches!((value, other), (Literal::String(_), Literal::String(_)));
            let are_ints = matches!((value, other), (Literal::Int(_), Literal::Int(_)));
            (are_texts || are_ints) && value != other && self.is_same(left, right)
        })
    }

    /// Returns true if `atom` has its required value whenever all atoms of `counterfactual` have theirs.
    pub(super) fn is_implied(
        &self,
        (id, wanted): Atom,
        counterfactual: &[Atom],
        depth: usize,
    ) -> bool {
        let is_same = |known: &Atom| known.1 == wanted && self.is_same(known.0, id);
        if depth > MAX_DEPTH || counterfactual.iter().any(is_same) {
            return depth <= MAX_DEPTH;
        }
        if let Some(tested) = self.tests(id).filter(|_| wanted) {
            let mut needed = counterfactual.iter().flat_map(|known| self.needed(*known));
            return needed.any(|path| path.starts_with(&tested));
        }
        let Some((function, args)) = self.ast.global_call(id) else {
            return false;
        };
        let mut each = args.iter();
        match function {
            "!_" => each.any(|arg| self.is_implied((*arg, !wanted), counterfactual, depth + 1)),
            "_&&_" | "_||_" if (function == "_&&_") == wanted => {
                each.all(|arg| self.is_implied((*arg, wanted), counterfactual, depth + 1))
            }
            "_&&_" | "_||_" => {
                each.any(|arg| self.is_implied((*arg, wanted), counterfactual, depth + 1))
            }
            _ => false,
        }
    }

    /// Returns true if the two subexpressions have the same source.
    pub(super) fn is_same(&self, one: ExprId, other: ExprId) -> bool {
        one == other || {
            let text = super::text(self.ast, one);
            !text.contains('…') && text == super::text(self.ast, other)
        }
    }

    /// Returns true if a change of `changed` may affect the value of `other`, because of the paths that they read.
    pub(super) fn may_affect(&self, changed: ExprId, other: ExprId) -> bool {
        let of_other = self.reads(other);
        self.reads(changed).iter().any(|read| {
            let mut all = of_other.iter();
            all.any(|other| read.touches(other))
        })
    }
}

impl Read {
    /// Returns true if the path may be `request.operation` or contain it.
    pub(super) fn is_of_operation(&self) -> bool {
        let mut steps = self.path.iter().map(String::as_str);
        matches!(
            (steps.next(), steps.next()),
            (None, _) | (Some("request"), None | Some("operation"))
        )
    }

    /// Returns true if a change of the value at this path may affect a subexpression that reads the path `other`.
    fn touches(&self, other: &Self) -> bool {
        let is_related = self.path.starts_with(&other.path) || other.path.starts_with(&self.path);
        // A presence test is not affected if the changed value is present both before and after the change.
        let stays = self.is_seen
            && other.is_presence
            && other.path.len() <= self.n_needed
            && self.path.starts_with(&other.path);
        is_related && !stays
    }
}
