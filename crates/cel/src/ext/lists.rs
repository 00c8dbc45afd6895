//! The lists extension, up to version 3. Version 3 adds costs but no overloads.

use std::cmp::Ordering;
use std::sync::Arc;

use super::costs::{
    DISTINCT, FLATTENED, FLATTENED_TO_DEPTH, RANGE, REVERSED, SLICED, SORTED, SORTED_BY_KEYS,
    SORTED_BY_TEXTS, SORTED_TEXTS,
};
use super::go_sort;
use super::hashing::Values;
use crate::decls::{OverloadRow, Sig, Source};
use crate::value::{EvalBudget, EvalError, List as ListValue, ListSource, Traits, Value};
use crate::version::CelGo;
use Sig::{Bool, Bytes, Double, Duration, Dyn, Int, List, Param, String, Timestamp, Uint};

const SOURCE: Source = Source::new("cel-go ext/lists.go, listsLib.CompileOptions");

/// Traits of a list.
///
/// Source: cel-go `common/types/traits/traits.go`, `ListerType`.
const LISTER: Traits = Traits::ADDER
    .and(Traits::CONTAINER)
    .and(Traits::INDEXER)
    .and(Traits::ITERABLE)
    .and(Traits::SIZER);

const T: Sig = Param("T");
const LIST_T: Sig = List(&T);

/// Overloads of version 0, which all later versions include.
pub const VERSION_0: [OverloadRow; 1] = [OverloadRow::member(
    "slice",
    "list_slice",
    &[LIST_T, Int, Int],
    LIST_T,
    SLICED,
    SOURCE,
)
.evaluated_by(slice)];

const FLATTEN_TO_DEPTH: OverloadRow = OverloadRow::member(
    "flatten",
    "list_flatten_int",
    &[List(&Dyn), Int],
    List(&Dyn),
    FLATTENED,
    SOURCE,
)
.evaluated_by(flatten)
.without_guards();

/// Overloads added by version 1.
pub const VERSION_1: [OverloadRow; 3] = [
    OverloadRow::member(
        "flatten",
        "list_flatten",
        &[List(&LIST_T)],
        LIST_T,
        FLATTENED,
        SOURCE,
    )
    .evaluated_by(flatten)
    .without_guards(),
    FLATTEN_TO_DEPTH.before_cel_go(CelGo::V0_29),
    FLATTEN_TO_DEPTH
        .with_costs(FLATTENED_TO_DEPTH)
        .since_cel_go(CelGo::V0_29),
];

const RANGE_ROW: OverloadRow = OverloadRow::global(
    "lists.range",
    "lists_range",
    &[Int],
    List(&Int),
    RANGE,
    SOURCE,
)
.evaluated_by(range);

/// Overloads added by version 2.
pub const VERSION_2: [OverloadRow; 20] = [
    OverloadRow::member(
        "sort",
        "list_int_sort",
        &[List(&Int)],
        List(&Int),
        SORTED,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_uint_sort",
        &[List(&Uint)],
        List(&Uint),
        SORTED,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_double_sort",
        &[List(&Double)],
        List(&Double),
        SORTED,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_bool_sort",
        &[List(&Bool)],
        List(&Bool),
        SORTED,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_google.protobuf.Duration_sort",
        &[List(&Duration)],
        List(&Duration),
        SORTED,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_google.protobuf.Timestamp_sort",
        &[List(&Timestamp)],
        List(&Timestamp),
        SORTED,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_string_sort",
        &[List(&String)],
        List(&String),
        SORTED_TEXTS,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "sort",
        "list_bytes_sort",
        &[List(&Bytes)],
        List(&Bytes),
        SORTED_TEXTS,
        SOURCE,
    )
    .evaluated_as_singleton(sort, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_int_sortByAssociatedKeys",
        &[LIST_T, List(&Int)],
        LIST_T,
        SORTED_BY_KEYS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_uint_sortByAssociatedKeys",
        &[LIST_T, List(&Uint)],
        LIST_T,
        SORTED_BY_KEYS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_double_sortByAssociatedKeys",
        &[LIST_T, List(&Double)],
        LIST_T,
        SORTED_BY_KEYS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_bool_sortByAssociatedKeys",
        &[LIST_T, List(&Bool)],
        LIST_T,
        SORTED_BY_KEYS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_google.protobuf.Duration_sortByAssociatedKeys",
        &[LIST_T, List(&Duration)],
        LIST_T,
        SORTED_BY_KEYS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
        &[LIST_T, List(&Timestamp)],
        LIST_T,
        SORTED_BY_KEYS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_string_sortByAssociatedKeys",
        &[LIST_T, List(&String)],
        LIST_T,
        SORTED_BY_TEXTS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_bytes_sortByAssociatedKeys",
        &[LIST_T, List(&Bytes)],
        LIST_T,
        SORTED_BY_TEXTS,
        SOURCE,
    )
    .evaluated_as_singleton(sort_by_keys, LISTER),
    RANGE_ROW.before_cel_go(CelGo::V0_29),
    RANGE_ROW
        .evaluated_by(bounded_range)
        .since_cel_go(CelGo::V0_29),
    OverloadRow::member(
        "reverse",
        "list_reverse",
        &[LIST_T],
        LIST_T,
        REVERSED,
        SOURCE,
    )
    .evaluated_by(reverse),
    OverloadRow::member(
        "distinct",
        "list_distinct",
        &[LIST_T],
        LIST_T,
        DISTINCT,
        SOURCE,
    )
    .evaluated_by(distinct),
];

type Result<T = Value> = std::result::Result<T, EvalError>;

fn list_arg(args: &[Value], n: usize) -> Result<&ListValue> {
    args.get(n)
        .and_then(Value::as_list)
        .ok_or(EvalError::no_such_overload())
}

fn int_arg(args: &[Value], n: usize) -> Result<i64> {
    args.get(n)
        .and_then(Value::as_int)
        .ok_or(EvalError::no_such_overload())
}

/// Source: cel-go `ext/lists.go`, `slice`.
fn slice(budget: &EvalBudget, args: &[Value]) -> Result {
    let (list, start, end) = (list_arg(args, 0)?, int_arg(args, 1)?, int_arg(args, 2)?);
    let failed = |reason: &str| EvalError::new(format!("cannot slice({start}, {end}), {reason}"));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Err(failed("negative indexes not supported"));
    };
    if from > to {
        return Err(failed(
            "start index must be less than or equal to end index",
        ));
    }
    if list.len() < to {
        return Err(failed(&format!("list is length {}", list.len())));
    }
    budget.reserve_list(to - from)?;
    let elements: Vec<Value> = (from..to).filter_map(|index| list.get(index)).collect();
    Ok(Value::list(elements))
}

/// Source: cel-go `ext/lists.go`, `flatten`.
fn flatten(budget: &EvalBudget, args: &[Value]) -> Result {
    let no_overload = || {
        let types: Vec<_> = args
            .iter()
            .map(|arg| arg.type_().declared_string())
            .collect();
        let (receiver, depth) = types
            .split_first()
            .map_or(("", &[][..]), |(receiver, rest)| (receiver, rest));
        EvalError::new(format!(
            "no such overload: {receiver}.flatten({})",
            depth.join(", ")
        ))
    };
    let list = list_arg(args, 0).map_err(|_| no_overload())?;
    let depth = match args.get(1) {
        Some(_) => int_arg(args, 1).map_err(|_| no_overload())?,
        None => 1,
    };
    let depth =
        usize::try_from(depth).map_err(|_| EvalError::fixed("level must be non-negative"))?;
    let mut flat = Vec::new();
    // The lists being traversed, outermost first, each with the index of its next element.
    let mut open = vec![(list.clone(), 0)];
    while let Some((list, index)) = open.last_mut() {
        let Some(element) = list.get(*index) else {
            open.pop();
            continue;
        };
        *index += 1;
        budget.step()?;
        match element {
            Value::List(inner) if open.len() <= depth => open.push((inner, 0)),
            element => {
                if flat.len() == flat.capacity() {
                    // A full vector is copied to a vector of twice its length, so both need memory at the same time.
                    budget.reserve_list(flat.len().saturating_mul(3))?;
                }
                flat.push(element);
            }
        }
    }
    Ok(Value::list(flat))
}

/// The numbers from zero up to a limit (exclusive), created on access.
#[derive(Debug)]
struct Range(usize);

impl ListSource for Range {
    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> Option<Value> {
        let is_inside = index < self.0;
        is_inside.then(|| Value::Int(i64::try_from(index).unwrap_or(i64::MAX)))
    }
}

/// Ranges of at most this length are created eagerly.
const SHORT: usize = 1_000;

/// Source: cel-go `ext/lists.go`, `genRange`.
fn range(_: &EvalBudget, args: &[Value]) -> Result {
    let len = usize::try_from(int_arg(args, 0)?).unwrap_or_default();
    let source = Range(len);
    if len <= SHORT {
        let elements: Vec<Value> = (0..len).filter_map(|index| source.get(index)).collect();
        return Ok(Value::list(elements));
    }
    Ok(Value::List(ListValue::from_source(Arc::new(source))))
}

/// The maximum length of a range since cel-go 0.29.
///
/// Source: cel-go `ext/lists.go`, `defaultMaxRangeSize`.
const MAX_RANGE_LEN: i64 = 1_000_000;

/// Source: cel-go 0.29 `ext/lists.go`, `genRange`.
fn bounded_range(budget: &EvalBudget, args: &[Value]) -> Result {
    match int_arg(args, 0)? {
        len @ ..0 => Err(EvalError::new(format!(
            "lists.range: size must be non-negative, got {len}"
        ))),
        len if len > MAX_RANGE_LEN => Err(EvalError::new(format!(
            "lists.range: size {len} exceeds maximum allowed ({MAX_RANGE_LEN})"
        ))),
        _ => range(budget, args),
    }
}

/// Source: cel-go `ext/lists.go`, `reverseList`.
fn reverse(budget: &EvalBudget, args: &[Value]) -> Result {
    let list = list_arg(args, 0)?;
    budget.reserve_list(list.len())?;
    let mut elements: Vec<Value> = list.iter().collect();
    elements.reverse();
    Ok(Value::list(elements))
}

/// Source: cel-go `ext/lists.go`, `distinctList`.
fn distinct(budget: &EvalBudget, args: &[Value]) -> Result {
    let list = list_arg(args, 0)?;
    if list.is_empty() {
        return Ok(Value::List(list.clone()));
    }
    let mut seen = Values::new(budget);
    let mut distinct = Vec::new();
    for element in list {
        budget.step()?;
        if !seen.contains(&element, |other, element| {
            element.equals_within(other, budget)
        })? {
            seen.insert(element.clone())?;
            if distinct.len() == distinct.capacity() {
                budget.reserve_list(distinct.len().saturating_mul(3))?;
            }
            distinct.push(element);
        }
    }
    Ok(Value::list(distinct))
}

fn sort(budget: &EvalBudget, args: &[Value]) -> Result {
    let list = list_arg(args, 0)?;
    sorted(list, list, budget)
}

fn sort_by_keys(budget: &EvalBudget, args: &[Value]) -> Result {
    sorted(list_arg(args, 0)?, list_arg(args, 1)?, budget)
}

/// Returns true if the type of `value` supports ordering.
fn is_comparable(value: &Value) -> bool {
    match value {
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_) => true,
        Value::Opaque(opaque) => opaque.traits().has(Traits::COMPARER),
        Value::Null
        | Value::List(_)
        | Value::Map(_)
        | Value::Type(_)
        | Value::Optional(_)
        | Value::Error(_) => false,
    }
}

/// Returns the elements of `list`, sorted by `keys`.
///
/// Source: cel-go `ext/lists.go`, `sortListByAssociatedKeys`.
fn sorted(list: &ListValue, keys: &ListValue, budget: &EvalBudget) -> Result {
    if list.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but \
             got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    // Reserves memory for the keys, the permutation, a copy of the permutation, and the elements.
    budget.reserve_list(list.len().saturating_mul(3))?;
    let keys: Vec<Value> = keys.iter().collect();
    let Some(first) = keys.first() else {
        return Ok(Value::List(list.clone()));
    };
    if !is_comparable(first) {
        return Err(EvalError::fixed("list elements must be comparable"));
    }
    let type_ = first.type_();
    if keys.len() > 1 && keys.iter().any(|key| key.type_() != type_) {
        return Err(EvalError::fixed("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let mut ended = Ok(());
    go_sort::sort(&mut order, |a, b| {
        if ended.is_ok() {
            ended = budget.poll(1);
        }
        match (keys.get(*a), keys.get(*b)) {
            // The order is irrelevant after an interruption, because `sorted` then fails.
            (Some(a), Some(b)) if ended.is_ok() => a.compare(b) == Ok(Ordering::Less),
            _ => false,
        }
    });
    ended?;
    let elements: Vec<Value> = order
        .into_iter()
        .filter_map(|index| list.get(index))
        .collect();
    Ok(Value::list(elements))
}
