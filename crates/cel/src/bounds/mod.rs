//! Upper bounds of measured costs, and of the sizes of values.
//!
//! Like cel-go, the module [`estimate`](crate::estimate) often does not know the size of a computed value or of its
//! elements. Here, each value has a size bound. Lists and maps also have size bounds for their keys and elements. The
//! bound of a computed value follows from the bounds of its operands. If there is no rule for a function, the size of
//! its result is unknown, and costs that depend on it are unbounded.
//!
//! # Sizes of elements
//!
//! The size bound of the elements of a list or map is an average, not the size of the largest element. Multiplied by
//! the number of elements, it is at least the size of all elements together. For example, the `n` inner lists of a
//! nested list together have at most `n * m` elements if `m` is the bound of the inner lists. [`BoundVariables`] can
//! therefore distribute the size of an object over its elements. A single element, as in `list[0]`, may be as large as
//! all elements together.

#![warn(clippy::arithmetic_side_effects)]

mod calls;
mod folds;
mod size;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::ast::{Ast, Expr, ExprId, Literal};
use crate::checker::{CheckedAst, Reference};
use crate::cost::factors::{
    CONST_COST, LIST_CREATE_BASE_COST, MAP_CREATE_BASE_COST, SELECT_AND_IDENT_COST,
    STRUCT_CREATE_BASE_COST,
};
use crate::cost::{CostEstimate, Path, PathId, PathStep, Paths, SizeEstimate};
use crate::interrupt::checkpoint;
use crate::stack::{SHALLOW_DEPTH, run_on_deep_stack};
use crate::types::{Primitive, Type};
pub use calls::{ResultBound, result_bound};
pub use size::Bound;

/// Operators that select from their first operand.
const SELECTIONS: [&str; 3] = ["_[_]", "_[?_]", "_?._"];

/// The [`VariablePart`]s to which [`Bound`]s refer. If an operation combines several bounds, these bounds must share
/// one instance, and each variable must have one type and size in all of them.
#[derive(Debug, Default)]
pub struct BoundPaths {
    paths: Paths,
    /// The part at each path.
    parts: Vec<KnownPart>,
}

/// The result of [`BoundVariables::part`].
#[derive(Debug)]
struct KnownPart {
    /// The path of the part, as a slice with one element. All bounds that refer only to this part share the slice.
    path: Arc<[PathId]>,
    part: VariablePart,
}

/// A variable, or a part of it such as a field.
#[derive(Clone, Debug, Default)]
pub struct VariablePart {
    /// True for a list, and false for a map. `None` for other values, and if the type is unknown.
    pub is_list: Option<bool>,
    /// True if the path of the part leads to or through a list or map that another list or map contains.
    pub is_nested: bool,
    /// The sizes of the part, one for each shape of the object.
    pub sizes: Vec<PartSizes>,
}

/// The sizes of a part of a variable in objects of one shape.
#[derive(Clone, Copy, Debug)]
pub struct PartSizes {
    /// The size of the part.
    pub size: SizeEstimate,
    /// The maximum number of elements of this list or map that fit into the object. Disjoint parts of one object share
    /// its space, so together they have at most as many elements as the greatest of their maximums. `None` if the
    /// maximum is unknown.
    pub shared: Option<u64>,
    /// The maximum JSON size in bytes. `None` if the maximum is unknown.
    pub json: Option<u64>,
}

impl PartSizes {
    /// The sizes of a part about which nothing is known.
    pub const UNKNOWN: Self = Self {
        size: SizeEstimate::UNKNOWN,
        shared: None,
        json: None,
    };
}

/// Options of the cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundOptions {
    /// True if a presence test, such as `has(a.b)`, is charged.
    pub presence_test_has_cost: bool,
    /// True if each call of a function whose cost the platform defines costs 1. See
    /// [`Library::ignore_platform_costs`](crate::env::Library::ignore_platform_costs).
    pub ignores_platform_costs: bool,
}

/// The bounds of the variables of an expression.
pub trait BoundVariables: Sync {
    /// Returns the part of a variable at `path`, with its sizes in objects of all shapes.
    fn part(&self, path: Path<'_>) -> VariablePart;

    /// Returns the index of the current shape of the variables in [`VariablePart::sizes`].
    fn shape(&self) -> usize;

    /// Returns the bound of `root.field`. The outer `Option` is `None` if the fields of the variable `root` are not
    /// computed. For example, the fields of `variables` are computed. The inner `Option` is `None` if the bound is
    /// unknown.
    fn field(&self, root: &str, field: &str) -> Option<Option<Bound>>;

    /// Returns true if strings are assumed to be split into a single long part. Returns false if they are assumed to be
    /// split into many short parts.
    fn has_single_parts(&self) -> bool {
        false
    }
}

/// The bounds of an expression.
#[derive(Clone, Debug, Default)]
pub struct ExpressionBounds {
    /// The cost of evaluating the expression.
    pub cost: CostEstimate,
    /// The bound of the value.
    pub value: Bound,
    /// True if the expression reads nested lists or maps. See [`VariablePart::is_nested`].
    pub reads_nested_lists: bool,
}

/// Returns the bounds of `checked`.
#[must_use]
pub fn bound(
    checked: &CheckedAst,
    variables: &dyn BoundVariables,
    options: BoundOptions,
    paths: &mut BoundPaths,
) -> ExpressionBounds {
    let ast: &Ast = checked.ast();
    run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        let mut bounder = Bounder {
            checked,
            ast,
            variables,
            options,
            shape: variables.shape(),
            paths: &mut paths.paths,
            parts: &mut paths.parts,
            bounds: vec![Bound::UNKNOWN; ast.len()],
            locals: Vec::new(),
            reads_nested_lists: false,
        };
        let cost = bounder.visit(ast.root());
        ExpressionBounds {
            cost,
            value: bounder.bound_of(ast.root()),
            reads_nested_lists: bounder.reads_nested_lists,
        }
    })
}

struct Bounder<'a> {
    checked: &'a CheckedAst,
    ast: &'a Ast,
    variables: &'a dyn BoundVariables,
    options: BoundOptions,
    shape: usize,
    paths: &'a mut Paths,
    parts: &'a mut Vec<KnownPart>,
    /// The bounds of the visited expressions, indexed by expression.
    bounds: Vec<Bound>,
    /// Variables of the enclosing comprehensions, innermost last.
    locals: Vec<Local>,
    reads_nested_lists: bool,
}

/// A comprehension variable.
struct Local {
    name: Arc<str>,
    bound: Bound,
    /// The number of iterations if the variable has a different value in each of them. This is the case for the keys of
    /// a map and the indices of a list. `None` for other variables.
    n_distinct: Option<u64>,
}

impl<'a> Bounder<'a> {
    fn bound_of(&self, id: ExprId) -> Bound {
        self.bounds.get(id.index()).cloned().unwrap_or_default()
    }

    /// Returns the cost of `id`, and stores the bound of its value.
    fn visit(&mut self, id: ExprId) -> CostEstimate {
        checkpoint();
        let (cost, bound) = self.visit_kind(id);
        let bound = if self.is_scalar_at(id) {
            Bound::SCALAR
        } else {
            bound
        };
        if let Some(slot) = self.bounds.get_mut(id.index()) {
            *slot = bound;
        }
        cost
    }

    /// Returns true if the type of `id` has a fixed size.
    fn is_scalar_at(&self, id: ExprId) -> bool {
        is_scalar(self.checked.type_at(id))
    }

    fn visit_kind(&mut self, id: ExprId) -> (CostEstimate, Bound) {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Unspecified => (CostEstimate::default(), Bound::UNKNOWN),
            Expr::Literal(literal) => (CostEstimate::fixed(CONST_COST), literal_bound(literal)),
            Expr::Ident(name) => {
                let name = self.resolved_name(id).unwrap_or(name);
                let bound = self.variable(name);
                (CostEstimate::fixed(SELECT_AND_IDENT_COST), bound)
            }
            Expr::Select {
                operand,
                field,
                test_only,
            } => match self.resolved_name(id) {
                Some(name) => {
                    let bound = self.variable(name);
                    (CostEstimate::fixed(SELECT_AND_IDENT_COST), bound)
                }
                None if *test_only => {
                    let own = u64::from(self.options.presence_test_has_cost);
                    let cost = self.visit(*operand).plus(CostEstimate::fixed(own));
                    (cost.plus(self.start_cost(*operand)), Bound::SCALAR)
                }
                None => {
                    let cost = self.visit(*operand).plus(self.start_cost(*operand));
                    let bound = if self.is_scalar_at(id) {
                        Bound::SCALAR
                    } else {
                        self.field(&self.bound_of(*operand), field)
                    };
                    let own = CostEstimate::fixed(SELECT_AND_IDENT_COST);
                    (cost.plus(own), bound)
                }
            },
            Expr::Call { target, args, .. } => self.visit_call(id, *target, args),
            Expr::List { elements, .. } => {
                let mut cost = CostEstimate::fixed(LIST_CREATE_BASE_COST);
                let mut element = Bound::EMPTY;
                for id in elements {
                    cost = cost.plus(self.visit(*id));
                    element = element.union(&self.bound_of(*id), self);
                }
                let greatest = element.max();
                let list = Bound::list(fixed(elements.len()), element);
                (cost, list.with_greatest(greatest))
            }
            Expr::Map(entries) => {
                let mut cost = CostEstimate::fixed(MAP_CREATE_BASE_COST);
                let (mut key, mut value) = (Bound::EMPTY, Bound::EMPTY);
                for entry in entries {
                    cost = cost.plus(self.visit(entry.key));
                    cost = cost.plus(self.visit(entry.value));
                    key = key.union(&self.bound_of(entry.key), self);
                    value = value.union(&self.bound_of(entry.value), self);
                }
                let greatest = value.max();
                let map = Bound::map(fixed(entries.len()), key, value);
                (cost, map.with_greatest(greatest))
            }
            Expr::Struct { fields, .. } => {
                let mut cost = CostEstimate::fixed(STRUCT_CREATE_BASE_COST);
                for field in fields {
                    cost = cost.plus(self.visit(field.value));
                }
                (cost, Bound::UNKNOWN)
            }
            Expr::Comprehension(fold) => self.visit_fold(fold),
        }
    }

    /// Returns the additional cost of the first selection from `operand`. For a computed value, such as the result of a
    /// call, this is one unit, which upstream's estimates do not include. For a variable or a selection, it is zero.
    ///
    /// Source: cel-go `interpreter/runtimecost.go`, `CostTracker`.
    fn start_cost(&self, operand: ExprId) -> CostEstimate {
        let is_started = match self.ast.expr(operand) {
            Expr::Ident(_) | Expr::Select { .. } => true,
            Expr::Call { function, .. } => SELECTIONS.contains(&&**function),
            _ => false,
        };
        CostEstimate::fixed(if is_started { 0 } else { SELECT_AND_IDENT_COST })
    }

    /// Returns the qualified name of the variable or type to which `id` resolves. `None` if `id` resolves to neither a
    /// variable nor a type.
    fn resolved_name(&self, id: ExprId) -> Option<&'a Arc<str>> {
        match self.checked.reference(id) {
            Some(Reference::Ident(name)) => Some(name),
            _ => None,
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        let mut innermost = self.locals.iter().rev();
        innermost.find(|local| *local.name == *name)
    }

    fn variable(&mut self, name: &Arc<str>) -> Bound {
        if let Some(local) = self.local(name) {
            return local.bound.clone();
        }
        let path = self.add_path(None, PathStep::Variable(Arc::clone(name)));
        self.part(path)
    }

    /// Returns the bound of the field `name`, or of the map value with the key `name`.
    fn field(&mut self, operand: &Bound, name: &Arc<str>) -> Bound {
        self.selected(operand, &PathStep::Field(Arc::clone(name)))
    }
}

/// Returns the bound that all values of the type share. `None` if their sizes differ.
#[must_use]
pub fn bound_of_type(type_: &Type) -> Option<Bound> {
    is_scalar(type_).then_some(Bound::SCALAR)
}

/// Returns true if the type has a fixed size, or if its values have no size.
fn is_scalar(type_: &Type) -> bool {
    matches!(
        type_,
        Type::Null
            | Type::Bool
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::Timestamp
            | Type::Type(_)
            | Type::Uint
            | Type::Wrapper(Primitive::Bool | Primitive::Double | Primitive::Int | Primitive::Uint)
    ) || type_.optional_value().is_some_and(is_scalar)
}

fn literal_bound(literal: &Literal) -> Bound {
    match literal {
        // The size ranges from the number of code points to the length in bytes.
        Literal::String(text) => Bound::sized(SizeEstimate::new(
            to_size(text.chars().count()),
            to_size(text.len()),
        )),
        Literal::Bytes(bytes) => Bound::sized(fixed(bytes.len())),
        _ => Bound::SCALAR,
    }
}

fn to_size(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn fixed(n: usize) -> SizeEstimate {
    SizeEstimate::fixed(to_size(n))
}
