//! The units of the cost model, of the estimate and of what is measured at run time.
//!
//! Source: cel-go `common/cost.go`.

/// The cost of reading a variable or a field (`SelectAndIdentCost`), in cost units.
pub const SELECT_AND_IDENT_COST: u64 = 1;

/// The cost of a literal (`ConstCost`), in cost units.
pub const CONST_COST: u64 = 0;

/// The cost of making a list (`ListCreateBaseCost`), in cost units.
pub const LIST_CREATE_BASE_COST: u64 = 10;

/// The cost of making a map (`MapCreateBaseCost`), in cost units.
pub const MAP_CREATE_BASE_COST: u64 = 30;

/// The cost of making an object (`StructCreateBaseCost`), in cost units.
pub const STRUCT_CREATE_BASE_COST: u64 = 40;

/// The cost of going over a string (`StringTraversalCostFactor`), in cost units per code point.
pub const STRING_TRAVERSAL_COST_FACTOR: f64 = 0.1;

/// The cost that a regular expression has for each unit of the text's cost
/// (`RegexStringLengthCostFactor`), per code point of the expression.
pub const REGEX_STRING_LENGTH_COST_FACTOR: f64 = 0.25;
