//! Functions of two-variable comprehensions.

use crate::cost::Costs;
use crate::decls::{OverloadRow, Sig, Source};
use crate::value::{EvalBudget, EvalError, GROWN_ENTRY, Map as MapValue, Value};
use Sig::{Map, Param};

const SOURCE: Source = Source::new("cel-go ext/comprehensions.go, compreV2Lib.CompileOptions");

const K: Sig = Param("K");
const V: Sig = Param("V");
const MAP_KV: Sig = Map(&K, &V);

/// Functions to which the map-building macros expand.
pub const ROWS: [OverloadRow; 2] = [
    OverloadRow::global(
        "cel.@mapInsert",
        "@mapInsert_map_key_value",
        &[MAP_KV, K, V],
        MAP_KV,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(insert),
    OverloadRow::global(
        "cel.@mapInsert",
        "@mapInsert_map_map",
        &[MAP_KV, MAP_KV],
        MAP_KV,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(insert_all),
];

/// Source: cel-go `common/types/map.go`, `InsertMapKeyValue`.
fn insert(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Map(map), key, value] => {
            budget.allocate(insertion_size(map, 1))?;
            map.clone()
                .with_entry(key.clone().frozen(), value.clone().frozen())
                .map(Value::Map)
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns the bytes by which a mutable map grows if `n_entries` entries are inserted. Returns 0 for other maps,
/// because they are copied.
fn insertion_size(map: &MapValue, n_entries: usize) -> usize {
    if map.is_mutable() {
        n_entries.saturating_mul(GROWN_ENTRY)
    } else {
        0
    }
}

fn insert_all(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Map(map), Value::Map(update)] => {
            budget.allocate(insertion_size(map, update.len()))?;
            let mut map = map.clone();
            for (key, value) in update.entries()? {
                map = map.with_entry(key, value)?;
            }
            Ok(Value::Map(map))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}
