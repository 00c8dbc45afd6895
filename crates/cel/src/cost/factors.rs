//! Constants of the cost model, for estimated and measured costs.
//!
//! Source: cel-go `common/cost.go`.

/// Cost of reading a variable or field (`SelectAndIdentCost`), in cost units.
pub const SELECT_AND_IDENT_COST: u64 = 1;

/// Cost of a literal (`ConstCost`), in cost units.
pub const CONST_COST: u64 = 0;

/// Cost of creating a list (`ListCreateBaseCost`), in cost units.
pub const LIST_CREATE_BASE_COST: u64 = 10;

/// Cost of creating a map (`MapCreateBaseCost`), in cost units.
pub const MAP_CREATE_BASE_COST: u64 = 30;

/// Cost of creating an object (`StructCreateBaseCost`), in cost units.
pub const STRUCT_CREATE_BASE_COST: u64 = 40;

/// Cost of traversing a string (`StringTraversalCostFactor`), in cost units per code point.
pub const STRING_TRAVERSAL_COST_FACTOR: f64 = 0.1;

/// Cost of matching a regular expression (`RegexStringLengthCostFactor`), per code point of the pattern. It is
/// multiplied by the cost of traversing the string.
pub const REGEX_STRING_LENGTH_COST_FACTOR: f64 = 0.25;
