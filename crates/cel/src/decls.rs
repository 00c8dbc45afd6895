//! Function declarations: one row per overload.
//!
//! A library is a `&'static [OverloadRow]`. A row defines the signature, costs, version and implementation of an
//! overload, so that the checker, the cost model and the evaluator cannot diverge.
//!
//! Source: cel-go `common/decls/decls.go` (`FunctionDecl`, `OverloadDecl`).

use std::sync::Arc;

use regexp::EngineBudget;

use super::cost::{Costs, ResultOf};
use super::types::{StructType, Type, TypeParam};
use super::value::{EvalBudget, EvalError, Traits, Value};
use super::version::{Availability, CelGo, Version};

/// A type in a signature, usable in constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sig {
    /// `dyn`.
    Dyn,
    /// `google.protobuf.Any`.
    Any,
    /// `null_type`.
    Null,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// A type parameter, by name.
    Param(&'static str),
    /// `list(elem)`.
    List(&'static Sig),
    /// `map(key, value)`.
    Map(&'static Sig, &'static Sig),
    /// `optional_type(value)`.
    Optional(&'static Sig),
    /// `type(of)`.
    Type(&'static Sig),
    /// An abstract type without parameters (cel-go's `OpaqueType`).
    Opaque(&'static str),
    /// An object type without declared fields (cel-go's `ObjectType` without a provider).
    Object(&'static str),
}

impl Sig {
    /// Converts the signature type to a [`Type`]. Its parameters become [`TypeParam::Declared`].
    #[must_use]
    pub fn to_type(self) -> Type {
        match self {
            Self::Dyn => Type::Dyn,
            Self::Any => Type::Any,
            Self::Null => Type::Null,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Uint => Type::Uint,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Duration => Type::Duration,
            Self::Timestamp => Type::Timestamp,
            Self::Param(name) => Type::Param(TypeParam::Declared(name)),
            Self::List(elem) => Type::list(elem.to_type()),
            Self::Map(key, value) => Type::map(key.to_type(), value.to_type()),
            Self::Optional(value) => Type::optional(value.to_type()),
            Self::Type(of) => Type::type_of(of.to_type()),
            Self::Opaque(name) => Type::opaque(name, Vec::new()),
            Self::Object(name) => Type::Struct(StructType::undeclared(name)),
        }
    }
}

/// Call style of an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStyle {
    /// `f(a, b)`.
    Global,
    /// `a.f(b)`: the first argument is the receiver.
    Member,
}

/// Implementation of an overload. The arguments are never errors.
pub type Implementation = fn(&EvalBudget, &[Value]) -> Result<Value, EvalError>;

/// An implementation that was specialized for a call during planning.
pub type Specialized = Box<dyn Fn(&EvalBudget, &[Value]) -> Result<Value, EvalError> + Send + Sync>;

/// An operator with a dedicated evaluation step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `?:`.
    Conditional,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `[]`.
    Index,
    /// `[?]` and `.?`.
    OptionalIndex,
    /// `or` of an optional.
    OptionalOr(Receiver),
    /// `orValue` of an optional.
    OptionalOrValue(Receiver),
    /// `@not_strictly_false`, the loop condition that stops comprehensions early.
    NotStrictlyFalse,
}

/// The receivers that `or` and `orValue` accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Any value. A receiver that is not an optional is returned unchanged.
    Any,
    /// Optionals only.
    Optional,
}

/// Evaluation strategy of an overload.
#[derive(Clone, Copy, Debug)]
pub enum Binding {
    /// Declared without an implementation.
    None,
    /// A dedicated step of the evaluator, common to all overloads of the function.
    Operator(Operator),
    /// A function for this overload. Argument types are checked against the signature before the call.
    ///
    /// Source: cel-go `common/decls/decls.go`, `OverloadDecl.guardedFunctionOp`.
    Overload(Implementation),
    /// One implementation for all overloads of the function, called without checking their signatures. The first
    /// argument must have all of the traits.
    ///
    /// Source: cel-go `common/decls/decls.go`, `SingletonFunctionBinding`.
    Singleton(Implementation, Traits),
}

/// Specialization of calls with a constant second argument.
#[derive(Clone, Copy, Debug)]
pub enum Planning {
    /// No specialization.
    Plain,
    /// A constant list of scalars is converted to a set.
    ///
    /// Source: cel-go `interpreter/decorators.go`, `maybeOptimizeSetMembership`.
    Membership,
    /// A constant string is parsed as a regular expression. Planning fails if the pattern is invalid. The first
    /// search builds the regex engine, whose memory is charged to the given budget.
    ///
    /// Source: cel-go `interpreter/optimizations.go`, `RegexOptimization`.
    Pattern(fn(&str, &Arc<EngineBudget>) -> Result<Specialized, EvalError>),
}

/// The upstream declaration of an overload, and the releases that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The upstream file and symbol.
    pub symbol: &'static str,
    /// The releases that have the overload.
    pub available: Availability,
}

impl Source {
    /// Creates the source of an overload that all releases have.
    #[must_use]
    pub const fn new(symbol: &'static str) -> Self {
        Self {
            symbol,
            available: Availability::ALWAYS,
        }
    }

    /// Sets the first platform version that has the overload.
    #[must_use]
    pub const fn since(mut self, introduced: Version) -> Self {
        self.available.since = introduced;
        self
    }

    /// Returns this source with `version` as the first version of cel-go that has the overload.
    #[must_use]
    pub const fn since_cel_go(mut self, version: CelGo) -> Self {
        self.available.since_cel_go = version;
        self
    }
}

/// An overload of a function, with all its properties.
///
/// # Example
/// ```
/// use cel::cost::Costs;
/// use cel::decls::{OverloadRow, Sig, Source};
/// use cel::value::{EvalBudget, EvalError, Value};
///
/// /// `half(int) -> int`, of one cost unit.
/// static HALF: OverloadRow = OverloadRow::global(
///     "half",
///     "half_int",
///     &[Sig::Int],
///     Sig::Int,
///     Costs::ONE,
///     Source::new("an example"),
/// )
/// .evaluated_by(half);
///
/// fn half(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
///     match args {
///         [Value::Int(n)] => Ok(Value::Int(n / 2)),
///         _ => Err(EvalError::no_such_overload()),
///     }
/// }
///
/// assert_eq!(HALF.id, "half_int");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OverloadRow {
    /// The function name: `startsWith`, `_+_`, `math.greatest`.
    pub function: &'static str,
    /// The overload id, identical to upstream's.
    pub id: &'static str,
    /// The call style: global or member.
    pub style: CallStyle,
    /// The argument types. The first argument of a member overload is the receiver.
    pub args: &'static [Sig],
    /// The result type.
    pub result: Sig,
    /// The estimated and measured cost of a call.
    pub costs: Costs,
    /// The upstream declaration, and the version that introduced the overload.
    pub source: Source,
    /// The evaluation strategy.
    pub binding: Binding,
    /// The specialization of calls with a constant second argument.
    pub planning: Planning,
    /// The relation between the result and the arguments, for cost estimates.
    pub result_of: ResultOf,
    /// Maximum lengths of the leading arguments, in bytes. If an argument is longer, the cost is compared with the
    /// limit before the call. The cost of such an overload must not depend on the result.
    ///
    /// Differs: upstream compares the cost with the limit after the call. Both comparisons have the same outcome, but
    /// upstream's call takes seconds and much memory if an argument has several megabytes.
    pub precharge_lengths: &'static [usize],
    /// True if the argument types of a call are not checked against the signature at run time.
    ///
    /// Source: cel-go `common/decls/decls.go`, `DisableTypeGuards`.
    pub unguarded: bool,
    /// True if the second of two arguments is not evaluated when the first argument fails. If false, both arguments are
    /// evaluated, and the costs of both are charged.
    ///
    /// Source: cel-go `interpreter/planner.go`, `planCall`; `common/decls/decls.go`, `FunctionBinding`.
    pub in_order: bool,
}

/// Compares the ids only.
impl PartialEq for OverloadRow {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for OverloadRow {}

impl OverloadRow {
    /// Creates a global overload.
    #[must_use]
    pub const fn global(
        function: &'static str,
        id: &'static str,
        args: &'static [Sig],
        result: Sig,
        costs: Costs,
        source: Source,
    ) -> Self {
        Self {
            function,
            id,
            style: CallStyle::Global,
            args,
            result,
            costs,
            source,
            binding: Binding::None,
            planning: Planning::Plain,
            result_of: ResultOf::Call,
            precharge_lengths: &[],
            unguarded: false,
            in_order: false,
        }
    }

    /// Creates a member overload.
    #[must_use]
    pub const fn member(
        function: &'static str,
        id: &'static str,
        args: &'static [Sig],
        result: Sig,
        costs: Costs,
        source: Source,
    ) -> Self {
        Self {
            style: CallStyle::Member,
            ..Self::global(function, id, args, result, costs, source)
        }
    }

    /// Sets the implementation.
    #[must_use]
    pub const fn evaluated_by(mut self, implementation: Implementation) -> Self {
        self.binding = Binding::Overload(implementation);
        self
    }

    /// Sets the operator that evaluates the overload.
    #[must_use]
    pub const fn evaluated_as(mut self, operator: Operator) -> Self {
        self.binding = Binding::Operator(operator);
        self
    }

    /// Sets an implementation that all overloads of the function share. The first argument must have `traits`.
    #[must_use]
    pub const fn evaluated_as_singleton(
        mut self,
        implementation: Implementation,
        traits: Traits,
    ) -> Self {
        self.binding = Binding::Singleton(implementation, traits);
        self
    }

    /// Skips the evaluation of the second argument if the first one fails.
    #[must_use]
    pub const fn evaluated_in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Disables the check of argument types against the signature at run time.
    #[must_use]
    pub const fn without_guards(mut self) -> Self {
        self.unguarded = true;
        self
    }

    /// Sets the specialization of calls with a constant second argument.
    #[must_use]
    pub const fn planned_by(mut self, planning: Planning) -> Self {
        self.planning = planning;
        self
    }

    /// Sets the relation between the result and the arguments.
    #[must_use]
    pub const fn with_result_of(mut self, result_of: ResultOf) -> Self {
        self.result_of = result_of;
        self
    }

    /// Sets [`OverloadRow::precharge_lengths`].
    #[must_use]
    pub const fn precharge_lengths(mut self, lengths: &'static [usize]) -> Self {
        self.precharge_lengths = lengths;
        self
    }

    /// Replaces the costs, for a platform that defines different costs.
    #[must_use]
    pub const fn with_costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Sets the first platform version that has the overload.
    #[must_use]
    pub const fn since(mut self, version: Version) -> Self {
        self.source.available.since = version;
        self
    }

    /// Sets the first platform version that no longer has the overload.
    #[must_use]
    pub const fn before(mut self, version: Version) -> Self {
        self.source.available.before = Some(version);
        self
    }

    /// Sets the first version of cel-go that has the overload.
    #[must_use]
    pub const fn since_cel_go(mut self, version: CelGo) -> Self {
        self.source.available.since_cel_go = version;
        self
    }

    /// Sets the first version of cel-go that no longer has the overload.
    #[must_use]
    pub const fn before_cel_go(mut self, version: CelGo) -> Self {
        self.source.available.before_cel_go = Some(version);
        self
    }

    /// Returns `rows` with `version` as the platform version that introduced them.
    #[must_use]
    pub const fn introduced<const N: usize>(version: Version, mut rows: [Self; N]) -> [Self; N] {
        let mut rest: &mut [Self] = &mut rows;
        while let [row, others @ ..] = rest {
            row.source.available.since = version;
            rest = others;
        }
        rows
    }
}

/// An overload with its signature converted to [`Type`]s, as the checker needs it.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The declaring row.
    pub row: &'static OverloadRow,
    /// The argument types.
    pub args: Box<[Type]>,
    /// The result type.
    pub result: Type,
    /// Names of the type parameters of the signature, in order of first use.
    pub type_params: Box<[&'static str]>,
}

impl Overload {
    /// Creates an overload from `row`, with its signature converted to types.
    #[must_use]
    pub fn new(row: &'static OverloadRow) -> Self {
        let mut type_params = Vec::new();
        for sig in std::iter::once(&row.result).chain(row.args) {
            collect_params(sig, &mut type_params);
        }
        Self {
            row,
            args: row.args.iter().map(|sig| sig.to_type()).collect(),
            result: row.result.to_type(),
            type_params: type_params.into(),
        }
    }

    /// Returns true for a member overload.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.row.style == CallStyle::Member
    }
}

fn collect_params(sig: &Sig, names: &mut Vec<&'static str>) {
    match sig {
        Sig::Param(name) => {
            if !names.contains(name) {
                names.push(name);
            }
        }
        Sig::List(of) | Sig::Optional(of) | Sig::Type(of) => collect_params(of, names),
        Sig::Map(key, value) => {
            collect_params(key, names);
            collect_params(value, names);
        }
        Sig::Dyn
        | Sig::Any
        | Sig::Null
        | Sig::Bool
        | Sig::Int
        | Sig::Uint
        | Sig::Double
        | Sig::String
        | Sig::Bytes
        | Sig::Duration
        | Sig::Timestamp
        | Sig::Opaque(_)
        | Sig::Object(_) => {}
    }
}

/// A function: its name and its overloads, in order of declaration.
#[derive(Clone, Debug)]
pub struct Function {
    /// The qualified name.
    pub name: &'static str,
    /// The overloads. Their order determines the result type of an ambiguous call.
    pub overloads: Vec<Overload>,
}

/// A variable declaration.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name, which may be qualified (`authorizer.requestResource`).
    pub name: Arc<str>,
    /// The type.
    pub type_: Type,
}

impl Variable {
    /// Declares a variable.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, type_: Type) -> Self {
        Self {
            name: name.into(),
            type_,
        }
    }
}
