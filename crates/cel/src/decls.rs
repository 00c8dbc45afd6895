//! Declarations of functions: one row an overload.
//!
//! A library is a `&'static [OverloadRow]`. A row holds all that is known of the overload in one
//! place, signature, costs, version, implementation, so that the checker, the cost model and the evaluator
//! cannot drift apart. Nothing else decides by the id of an overload.
//!
//! Source: cel-go `common/decls/decls.go` (`FunctionDecl`, `OverloadDecl`).

use std::sync::Arc;

use regexp::EngineBudget;

use super::cost::{Costs, ResultOf};
use super::types::{StructType, Type, TypeParam};
use super::value::{EvalBudget, EvalError, Traits, Value};

/// A type in a signature, as a constant.
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
    /// An object type that is only named, whose fields nothing declares (cel-go's `ObjectType`
    /// without a provider).
    Object(&'static str),
}

impl Sig {
    /// The type that the signature writes, with its parameters as [`TypeParam::Declared`].
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

/// How an overload is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStyle {
    /// `f(a, b)`.
    Global,
    /// `a.f(b)`: the first of the arguments is the receiver.
    Member,
}

/// The implementation of an overload; the arguments are values, never errors.
pub type Implementation = fn(&EvalBudget, &[Value]) -> Result<Value, EvalError>;

/// A call that was made simpler when it was planned.
pub type Specialized = Box<dyn Fn(&EvalBudget, &[Value]) -> Result<Value, EvalError> + Send + Sync>;

/// An operator that the evaluator has a step of its own for.
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
    OptionalOr,
    /// `orValue` of an optional.
    OptionalOrValue,
    /// The condition by which comprehensions stop early.
    NotStrictlyFalse,
}

/// How an overload is evaluated.
#[derive(Clone, Copy, Debug)]
pub enum Binding {
    /// Not at all: it is only declared.
    None,
    /// By a step of the evaluator itself, as are all overloads of its function.
    Operator(Operator),
    /// By a function for this overload; the types of the arguments are held against the signature
    /// before it is called.
    ///
    /// Source: cel-go `common/decls/decls.go`, `OverloadDecl.guardedFunctionOp`.
    Overload(Implementation),
    /// By one function for all overloads of its function, which are held against no signature; the first
    /// argument must have one of the traits, if there are any.
    ///
    /// Source: cel-go `common/decls/decls.go`, `SingletonFunctionBinding`.
    Singleton(Implementation, Traits),
}

/// Steps of planning for a call with a constant second argument.
#[derive(Clone, Copy, Debug)]
pub enum Planning {
    /// None.
    Plain,
    /// A constant list of scalars becomes a set.
    ///
    /// Source: cel-go `interpreter/decorators.go`, `maybeOptimizeSetMembership`.
    Membership,
    /// A constant text is a regular expression, which is parsed; one that is wrong is an error of planning. Its engine
    /// is built by the first search, within the budget.
    ///
    /// Source: cel-go `interpreter/optimizations.go`, `RegexOptimization`.
    Pattern(fn(&str, &Arc<EngineBudget>) -> Result<Specialized, EvalError>),
}

/// A minor version of the platform that an environment is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major version.
    pub major: u16,
    /// The minor version.
    pub minor: u16,
}

impl Version {
    /// The version of what every environment has.
    pub const ALWAYS: Self = Self::new(1, 0);

    /// The version `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The upstream declaration of overloads, and the version that introduced them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The upstream file and symbol.
    pub symbol: &'static str,
    /// The first version of the platform that has the overload.
    pub introduced: Version,
}

impl Source {
    /// Creates the declarations of `symbol`, which hold in every version.
    #[must_use]
    pub const fn new(symbol: &'static str) -> Self {
        Self {
            symbol,
            introduced: Version::ALWAYS,
        }
    }

    /// This declaration, as of `introduced`.
    #[must_use]
    pub const fn since(self, introduced: Version) -> Self {
        Self { introduced, ..self }
    }
}

/// One overload of a function: all that is known of it.
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
    /// The name of the function: `startsWith`, `_+_`, `math.greatest`.
    pub function: &'static str,
    /// The overload id, upstream's to the letter.
    pub id: &'static str,
    /// Global or member.
    pub style: CallStyle,
    /// The types of the arguments; of a member overload the first is the receiver's.
    pub args: &'static [Sig],
    /// The type of the result.
    pub result: Sig,
    /// The estimate of the cost of a call, and the cost of an evaluated one.
    pub costs: Costs,
    /// The upstream file and symbol that declare it, and the version that introduced it.
    pub source: Source,
    /// How it is evaluated.
    pub binding: Binding,
    /// Steps of planning for a call with constants.
    pub planning: Planning,
    /// Where the parts of the result come from, for estimates of costs.
    pub result_of: ResultOf,
    /// The lengths in bytes of the arguments, from the first on, above which the cost of a call is held
    /// against the limit before the call is made. The cost may then not depend on the result.
    ///
    /// Differs: upstream calls first and counts afterwards, which comes to the same, but takes seconds and
    /// much memory with arguments of megabytes.
    pub costed_before: &'static [usize],
    /// True if a call that the check resolved to this overload alone is evaluated without checking the
    /// arguments against the signature.
    ///
    /// Source: cel-go `common/decls/decls.go`, `DisableTypeGuards`.
    pub unguarded: bool,
    /// True if an error in the first of two arguments keeps the second from being evaluated; otherwise
    /// both are evaluated, which shows in the cost.
    ///
    /// Source: cel-go `interpreter/planner.go`, `planCall`; `common/decls/decls.go`, `FunctionBinding`.
    pub in_order: bool,
}

/// Rows are equal if their ids are.
impl PartialEq for OverloadRow {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for OverloadRow {}

impl OverloadRow {
    /// A global overload.
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
            costed_before: &[],
            unguarded: false,
            in_order: false,
        }
    }

    /// A member overload.
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

    /// This overload, evaluated by `implementation`.
    #[must_use]
    pub const fn evaluated_by(mut self, implementation: Implementation) -> Self {
        self.binding = Binding::Overload(implementation);
        self
    }

    /// This overload, evaluated by a step of the evaluator.
    #[must_use]
    pub const fn evaluated_as(mut self, operator: Operator) -> Self {
        self.binding = Binding::Operator(operator);
        self
    }

    /// This overload, evaluated by `implementation` as are all others of its function, for first arguments
    /// with one of `traits`.
    #[must_use]
    pub const fn evaluated_as_singleton(
        mut self,
        implementation: Implementation,
        traits: Traits,
    ) -> Self {
        self.binding = Binding::Singleton(implementation, traits);
        self
    }

    /// This overload, whose second argument is not evaluated if the first is an error.
    #[must_use]
    pub const fn evaluated_in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// This overload, with arguments that are not held against the signature.
    #[must_use]
    pub const fn without_guards(mut self) -> Self {
        self.unguarded = true;
        self
    }

    /// This overload, for whose calls with constants planning does more.
    #[must_use]
    pub const fn planned_by(mut self, planning: Planning) -> Self {
        self.planning = planning;
        self
    }

    /// This overload, with a result whose parts come from its arguments.
    #[must_use]
    pub const fn with_result_of(mut self, result_of: ResultOf) -> Self {
        self.result_of = result_of;
        self
    }

    /// This overload, whose cost is counted before calls with arguments longer than `lengths`, in bytes.
    #[must_use]
    pub const fn costed_before(mut self, lengths: &'static [usize]) -> Self {
        self.costed_before = lengths;
        self
    }

    /// This overload at the costs of another platform.
    #[must_use]
    pub const fn costing(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// These overloads as a platform has them, as of `version`.
    #[must_use]
    pub const fn introduced<const N: usize>(version: Version, mut rows: [Self; N]) -> [Self; N] {
        let mut rest: &mut [Self] = &mut rows;
        while let [row, others @ ..] = rest {
            row.source.introduced = version;
            rest = others;
        }
        rows
    }
}

/// An overload as the checker uses it: the row with its types built.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The row that declares it.
    pub row: &'static OverloadRow,
    /// The types of the arguments.
    pub args: Box<[Type]>,
    /// The type of the result.
    pub result: Type,
    /// The names of the type parameters of the signature, in order of first use.
    pub type_params: Box<[&'static str]>,
}

impl Overload {
    /// Builds the types of `row`.
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

    /// Reports whether the overload is called on a receiver.
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

/// A function: its name and its overloads, in the order of their declaration.
#[derive(Clone, Debug)]
pub struct Function {
    /// The fully qualified name.
    pub name: &'static str,
    /// The overloads; the order decides the result type of an ambiguous call.
    pub overloads: Vec<Overload>,
}

/// A variable: its name and its type.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name; it may be qualified (`authorizer.requestResource`).
    pub name: Arc<str>,
    /// The type.
    pub type_: Type,
}

impl Variable {
    /// Declares `name`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, type_: Type) -> Self {
        Self {
            name: name.into(),
            type_,
        }
    }
}
