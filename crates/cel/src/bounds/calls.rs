//! Calls: their costs, and the bounds of their results.

use super::{Bound, Bounder, SELECTIONS, is_scalar};
use crate::ast::{Expr, ExprId, Literal};
use crate::checker::Reference;
use crate::cost::{
    AstNode, Call, CallEstimate, CostEstimate, NO_PATHS, PathStep, SizeEstimate, UnknownSizes,
};
use crate::decls::OverloadRow;
use crate::types::Type;

/// Maximum length of a number, boolean, time or duration that is converted to a string, in bytes.
const MAX_SCALAR_TEXT: u64 = 40;

/// Maximum length of an address that is converted to a string, in bytes.
const MAX_ADDRESS_TEXT: u64 = 64;

/// Maximum length of a formatted number in bytes, not counting the digits of an explicit precision. A double has up to
/// 309 digits before the point.
const MAX_FORMATTED_NUMBER: u64 = 330;

/// Maximum `depth` for which the result of `flatten` has a bound.
const MAX_FLATTENED_LEVELS: i64 = 8;

/// Rule that derives the bound of a function's result from the bounds of its operands. The receiver of a member call
/// is the first operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultBound {
    /// A value that is at most as large as the first operand. Its elements have the bound of the first operand's
    /// elements.
    First,
    /// A string whose length in bytes is at most the first number times the length of the first operand, plus the
    /// second number.
    Text(u64, u64),
    /// One of the last two operands, as in a conditional.
    Either,
    /// The concatenation of both operands.
    Sum,
    /// A single element of the first operand.
    Element,
    /// The value that the second operand selects from the first one.
    Index,
    /// A field of the first operand.
    Field,
    /// The elements of the lists in the first operand.
    Flattened,
    /// A list of substrings of the first operand.
    Parts,
    /// A string of the length that the function's cost estimate returns.
    Estimated,
    /// A list of numbers with the length that the function's cost estimate returns.
    Numbers,
    /// The result of `format`. The first operand is the format string, the second one is the list of arguments.
    Formatted,
    /// The first operand as a string.
    Converted,
    /// An optional without a value.
    Nothing,
    /// The accumulator of a comprehension, with an entry added. It has a bound only if the comprehension is the
    /// expansion of a macro.
    Accumulated,
}

/// Returns the rule for the result of a function. `None` if there is no rule for the function.
///
/// The rule must hold for every overload whose result has a size.
#[must_use]
pub fn result_bound(function: &str) -> Option<ResultBound> {
    Some(match function {
        "@sortByAssociatedKeys"
        | "distinct"
        | "dyn"
        | "optional.of"
        | "optional.ofNonZeroValue"
        | "optional.unwrap"
        | "reverse"
        | "slice"
        | "sort"
        | "unwrapOpt"
        | "value" => ResultBound::First,
        "bytes" | "find" | "getHost" | "getHostname" | "getPort" | "getScheme" | "lowerAscii"
        | "substring" | "trim" | "upperAscii" => ResultBound::Text(1, 0),
        "charAt" => ResultBound::Text(0, 4),
        "jsonpatch.escapeKey" => ResultBound::Text(2, 0),
        "strings.quote" => ResultBound::Text(2, 2),
        "getEscapedPath" => ResultBound::Text(3, 0),
        "url" => ResultBound::Text(1, 1),
        "_?_:_" | "or" | "orValue" => ResultBound::Either,
        "_+_" => ResultBound::Sum,
        "first" | "last" | "max" | "min" => ResultBound::Element,
        "_[_]" | "_[?_]" => ResultBound::Index,
        "_?._" => ResultBound::Field,
        "flatten" => ResultBound::Flattened,
        "findAll" | "split" => ResultBound::Parts,
        "join" | "replace" => ResultBound::Estimated,
        "lists.range" => ResultBound::Numbers,
        "format" => ResultBound::Formatted,
        "string" => ResultBound::Converted,
        "optional.none" => ResultBound::Nothing,
        "cel.@mapInsert" => ResultBound::Accumulated,
        _ => return None,
    })
}

impl Bounder<'_> {
    pub(super) fn visit_call(
        &mut self,
        id: ExprId,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> (CostEstimate, Bound) {
        let Some(Reference::Function {
            name,
            overloads,
            namespaced,
        }) = self.checked.reference(id)
        else {
            return (CostEstimate::default(), Bound::UNKNOWN);
        };
        // `optional` in `optional.of(x)` is part of the function name, not a receiver.
        let target = target.filter(|_| !namespaced);
        let target_cost = target.map_or_else(CostEstimate::default, |target| self.visit(target));
        let arg_costs: Vec<_> = args.iter().map(|arg| self.visit(*arg)).collect();
        let called = self.called(overloads, target, (args, &arg_costs));
        let operands = target.into_iter().chain(args.iter().copied());
        let mut cost = target_cost.plus(called.cost);
        if SELECTIONS.contains(name)
            && let Some(operand) = operands.clone().next()
        {
            cost = cost.plus(self.start_cost(operand));
        }
        let bound = if self.is_scalar_at(id) {
            Bound::SCALAR
        } else {
            let operands: Vec<ExprId> = operands.collect();
            self.result(name, &operands, called.result_size)
        };
        (cost, bound)
    }

    /// Returns the union of the estimates of all overloads.
    fn called(
        &mut self,
        overloads: &[&'static OverloadRow],
        target: Option<ExprId>,
        (args, arg_costs): (&[ExprId], &[CostEstimate]),
    ) -> CallEstimate {
        let nodes = target.iter().chain(args).map(|id| {
            let (size, items_size) = self.sizes(*id);
            AstNode {
                path: NO_PATHS.path(None),
                type_: self.checked.type_at(*id),
                expr: Some(self.ast.expr(*id)),
                computed_size: Some(size),
                size: Some(size),
                items_size: Some(items_size),
            }
        });
        let nodes: Vec<_> = nodes.collect();
        let (target, args) = nodes.split_at(usize::from(target.is_some()));
        let call = Call {
            target: target.first(),
            args,
        };
        let estimates = overloads.iter().map(|overload| {
            let costs = overload.costs;
            let estimate = costs.estimate_of_actual.unwrap_or(costs.estimate);
            let mut estimate = estimate.estimate(&call, arg_costs, &UnknownSizes);
            if self.options.ignores_platform_costs && costs.is_of_platform {
                let of_args = arg_costs.iter().copied();
                estimate.cost = of_args.fold(CostEstimate::fixed(1), CostEstimate::plus);
            }
            estimate
        });
        let union = estimates.reduce(|one, other| CallEstimate {
            cost: one.cost.union(other.cost),
            result_size: match (one.result_size, other.result_size) {
                (Some(size), Some(other)) => Some(size.union(other)),
                _ => None,
            },
        });
        union.unwrap_or(CallEstimate::from_cost(CostEstimate::default()))
    }

    /// Returns the size of a visited expression. Also returns the size of its elements if it is a list, or of its keys
    /// if it is a map. Values other than strings, lists and maps have at least the size 1.
    fn sizes(&mut self, id: ExprId) -> (SizeEstimate, SizeEstimate) {
        let bound = self.bound_of(id);
        let mut size = bound.size();
        let type_ = self.checked.type_at(id);
        let has_size = matches!(
            type_,
            Type::String | Type::Bytes | Type::List(_) | Type::Map(_)
        );
        if !has_size {
            size.max = size.max.max(1);
        }
        let items_size = match type_ {
            Type::Map(_) => self.keys(&bound).unwrap_or_default().size(),
            Type::List(element) => {
                let element_bound = self.values(&bound);
                match &**element {
                    Type::List(_) | Type::Map(_) | Type::Struct(_) => {
                        self.json_size(&element_bound)
                    }
                    _ => element_bound.size(),
                }
            }
            _ => SizeEstimate::UNKNOWN,
        };
        (size, items_size)
    }

    /// Returns the bound of the result of a function. `estimated` is the result size that the function's cost estimate
    /// returns.
    fn result(
        &mut self,
        function: &str,
        operands: &[ExprId],
        estimated: Option<SizeEstimate>,
    ) -> Bound {
        let Some(result) = result_bound(function) else {
            return Bound::UNKNOWN;
        };
        let bounds: Vec<_> = operands.iter().map(|id| self.bound_of(*id)).collect();
        let estimated = estimated.unwrap_or(SizeEstimate::UNKNOWN);
        match (result, &*bounds) {
            (ResultBound::Nothing, []) => Bound::EMPTY,
            (ResultBound::First, [first, ..]) => {
                let size = first.size();
                first.clone().with_size(SizeEstimate::new(0, size.max))
            }
            (ResultBound::Text(factor, more), [first, ..]) => {
                Bound::at_most(first.max().saturating_mul(factor).saturating_add(more))
            }
            (ResultBound::Either, [.., one, other]) => one.union(other, self),
            (ResultBound::Sum, [one, other]) => self.concatenation(one, other),
            (ResultBound::Element, [list, ..]) => self.element(list),
            (ResultBound::Index, [container, _]) => self.indexed(container, operands),
            (ResultBound::Field, [operand, _]) => self.indexed(operand, operands),
            (ResultBound::Flattened, [list, ..]) => self.flattened(list, operands),
            (ResultBound::Parts, [text, ..]) => self.parts_of_text(text, estimated),
            (ResultBound::Estimated, _) => Bound::sized(estimated),
            (ResultBound::Numbers, _) => Bound::list(estimated, Bound::SCALAR),
            (ResultBound::Formatted, [format, _]) => self.formatted(format, operands),
            (ResultBound::Converted, [first, ..]) => {
                let type_ = operands.first().map(|id| self.checked.type_at(*id));
                Bound::at_most(match type_ {
                    Some(Type::String | Type::Bytes) => first.max(),
                    Some(Type::Opaque(_)) => MAX_ADDRESS_TEXT,
                    Some(type_) if is_scalar(type_) => MAX_SCALAR_TEXT,
                    _ => first.max().max(MAX_ADDRESS_TEXT),
                })
            }
            _ => Bound::UNKNOWN,
        }
    }

    /// Returns the bound of `operands[0][operands[1]]`, or of the field with the name `operands[1]`.
    fn indexed(&mut self, container: &Bound, operands: &[ExprId]) -> Bound {
        let [_, index] = operands else {
            return Bound::UNKNOWN;
        };
        match self.ast.expr(*index) {
            Expr::Literal(Literal::String(name)) => self.field(container, name),
            // Each iteration selects a different value, so all selected values together are at most as large as all
            // values of the container.
            Expr::Ident(name)
                if self
                    .local(name)
                    .and_then(|local| local.n_distinct)
                    .is_some_and(|n| n >= container.max()) =>
            {
                self.values(container)
            }
            _ => self.selected(container, &PathStep::Element),
        }
    }

    /// Returns the bound of `list.flatten(depth)`.
    fn flattened(&mut self, list: &Bound, operands: &[ExprId]) -> Bound {
        let depth = match operands {
            [_] => 1,
            [_, depth] => match self.ast.expr(*depth) {
                Expr::Literal(Literal::Int(depth)) if *depth <= MAX_FLATTENED_LEVELS => *depth,
                _ => return Bound::UNKNOWN,
            },
            _ => return Bound::UNKNOWN,
        };
        let type_ = operands.first().map(|id| self.checked.type_at(*id));
        let mut element_type = match type_ {
            Some(Type::List(element)) => Some(&**element),
            _ => None,
        };
        let mut flat = list.clone();
        for _ in 0..depth.max(1) {
            let element = self.values(&flat);
            let (is_list, is_other) = match element_type {
                Some(Type::List(_)) => (true, false),
                Some(Type::Dyn | Type::Any | Type::Param(_) | Type::Error) | None => (true, true),
                Some(_) => (false, true),
            };
            if !is_list {
                break;
            }
            let least = u64::from(is_other);
            let n = flat.max().saturating_mul(element.max().max(least));
            let inner = self.values(&element);
            let inner = if is_other {
                inner.union(&element, self)
            } else {
                inner
            };
            flat = Bound::list(SizeEstimate::new(0, n), inner);
            element_type = match element_type {
                Some(Type::List(element)) => Some(&**element),
                other => other,
            };
        }
        flat
    }

    /// Returns the bound of the list of parts into which `text` is split. The list has at most `n_parts` elements.
    fn parts_of_text(&mut self, text: &Bound, n_parts: SizeEstimate) -> Bound {
        let length = text.max();
        if self.variables.has_single_parts() {
            let part = Bound::at_most(length);
            return Bound::list(SizeEstimate::new(0, 1), part).with_greatest(length);
        }
        // There are at most `length + 1` parts, namely if each byte is a separator.
        let n = n_parts.max.min(length.saturating_add(1));
        let part = Bound::at_most(length.div_ceil(n.max(1)));
        Bound::list(SizeEstimate::new(0, n), part).with_greatest(length)
    }

    /// Returns the bound of `operands[0].format(operands[1])`.
    fn formatted(&mut self, format: &Bound, operands: &[ExprId]) -> Bound {
        let [format_id, args_id] = operands else {
            return Bound::UNKNOWN;
        };
        let Expr::Literal(Literal::String(text)) = self.ast.expr(*format_id) else {
            return Bound::UNKNOWN;
        };
        let precision = longest_number(text);
        let ast = self.ast;
        let mut size = format.max();
        match ast.expr(*args_id) {
            Expr::List { elements, .. } => {
                for element in elements {
                    let bound = self.bound_of(*element);
                    let type_ = self.checked.type_at(*element);
                    size = size.saturating_add(self.formatted_value(&bound, type_, precision));
                }
            }
            _ => {
                let args = self.bound_of(*args_id);
                size = match self.checked.type_at(*args_id) {
                    Type::List(_) => {
                        let type_ = self.checked.type_at(*args_id);
                        size.saturating_add(self.formatted_value(&args, type_, precision))
                    }
                    _ => u64::MAX,
                };
            }
        }
        Bound::at_most(size)
    }

    /// Returns the maximum length of a formatted value. A string may be formatted as hexadecimal digits.
    fn formatted_value(&mut self, bound: &Bound, type_: &Type, precision: u64) -> u64 {
        const PUNCTUATION: u64 = 6;
        if is_scalar(type_) {
            return MAX_FORMATTED_NUMBER.saturating_add(precision);
        }
        match type_ {
            Type::String | Type::Bytes => bound.max().saturating_mul(2),
            Type::List(element) => {
                let value = self.values(bound);
                let value = self.formatted_value(&value, element, precision);
                let of_each = value.saturating_add(PUNCTUATION);
                bound
                    .max()
                    .saturating_mul(of_each)
                    .saturating_add(PUNCTUATION)
            }
            Type::Map(entry) => {
                let key = self.keys(bound).unwrap_or_default();
                let key = self.formatted_value(&key, &entry.0, precision);
                let value = self.values(bound);
                let value = self.formatted_value(&value, &entry.1, precision);
                let of_each = key.saturating_add(value).saturating_add(PUNCTUATION);
                bound
                    .max()
                    .saturating_mul(of_each)
                    .saturating_add(PUNCTUATION)
            }
            _ => u64::MAX,
        }
    }
}

/// Returns the greatest number in a format string, such as a precision.
pub(super) fn longest_number(format: &str) -> u64 {
    let numbers = format.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|number| !number.is_empty());
    let numbers = numbers.map(|number| number.parse().unwrap_or(u64::MAX));
    numbers.max().unwrap_or(0)
}
