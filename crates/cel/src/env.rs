//! The type-checking environment: functions, named types and variables.
//!
//! [`Env::extend`] is cheap: the new environment shares the library and copies only the list of variables.
//!
//! Source: cel-go `checker/env.go` (`Env`, `LookupIdent`, `LookupFunction`), `cel/env.go`.

use std::sync::Arc;

use super::cost::RuntimeCost;
use super::decls::{Function, Overload, OverloadRow, Variable};
use super::message::{MessageRow, TypeResolver};
use super::names::{NameMap, NameSet};
use super::types::Type;
use super::validators::Validator;
use super::version::{Behavior, Release, Version};

/// The first version of the platform in which an expression can select a field whose name is a CEL keyword.
const KEYWORDS_AS_FIELD_NAMES: Version = Version::new(1, 31);

/// Functions and named types of one release, shared by many environments.
#[derive(Clone, Debug, Default)]
pub struct Library {
    release: Release,
    functions: NameMap<Function>,
    types: NameMap<Type>,
    messages: NameMap<&'static MessageRow>,
    constants: NameMap<i64>,
    /// First components of qualified names: `optional` for `optional.of`.
    namespaces: NameSet,
    validators: Box<[Validator]>,
    homogeneous_exempt: Box<[&'static str]>,
    ignores_platform_costs: bool,
}

fn first_part(name: &str) -> Option<&str> {
    name.split_once('.').map(|(first, _)| first)
}

impl Library {
    /// Creates an empty library of `release`.
    #[must_use]
    pub fn new(release: Release) -> Self {
        Self {
            release,
            ..Self::default()
        }
    }

    /// Sets the measured cost to 1 for all calls whose cost the platform defines. Estimates do not change.
    pub fn ignore_platform_costs(&mut self) {
        self.ignores_platform_costs = true;
    }

    pub(crate) fn runtime_cost(&self, row: &OverloadRow) -> RuntimeCost {
        if self.ignores_platform_costs && row.costs.is_of_platform {
            RuntimeCost::Fixed(1)
        } else {
            row.costs.actual
        }
    }

    /// Adds the `rows` that the release has, in order, after the existing overloads.
    ///
    /// A row is skipped if the function already has an overload with the same id. In cel-go, `FunctionDecl.Merge`
    /// skips overloads with the same id and signature.
    pub fn add_overloads(&mut self, rows: &'static [OverloadRow]) {
        for row in rows {
            if row.source.available.includes(self.release) {
                self.add_overload(Overload::new(row));
            }
        }
    }

    /// Adds one overload, even if the release does not have it. Its types may differ from those of its row.
    pub fn add_overload(&mut self, overload: Overload) {
        let row = overload.row;
        self.namespaces.extend(first_part(row.function));
        let function = self
            .functions
            .entry(row.function)
            .or_insert_with(|| Function {
                name: row.function,
                overloads: Vec::new(),
            });
        if !function
            .overloads
            .iter()
            .any(|other| other.row.id == row.id)
        {
            function.overloads.push(overload);
        }
    }

    /// Declares the type name `name`. In expressions such as `type(x) == name`, it denotes the type `of`.
    pub fn add_type(&mut self, name: &'static str, of: Type) {
        self.namespaces.extend(first_part(name));
        self.types.insert(name, of);
    }

    /// Declares a message: its type name and its fields.
    pub fn add_message(&mut self, row: &'static MessageRow) {
        self.namespaces.extend(first_part(row.name));
        self.types.insert(row.name, row.to_type());
        self.messages.insert(row.name, row);
    }

    /// Declares `name` as an `int` constant, such as an enum value.
    pub fn add_constant(&mut self, name: &'static str, value: i64) {
        self.namespaces.extend(first_part(name));
        self.constants.insert(name, value);
    }

    /// Sets the validators that run after the type checker, in order. Literals may be heterogeneous within calls of
    /// the functions in `exempt`.
    pub fn set_validators(&mut self, validators: &[Validator], exempt: &[&'static str]) {
        self.validators = validators.into();
        self.homogeneous_exempt = exempt.into();
    }

    /// Returns the validators that run after the type checker, in order.
    #[must_use]
    pub fn validators(&self) -> &[Validator] {
        &self.validators
    }

    /// Returns the functions whose arguments may contain heterogeneous literals at any depth.
    #[must_use]
    pub fn homogeneous_exempt(&self) -> &[&'static str] {
        &self.homogeneous_exempt
    }

    /// Returns the message `name`. `None` if it is not declared.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<&'static MessageRow> {
        self.messages.get(name).copied()
    }

    /// Returns the value of the constant `name`. `None` if it is not declared.
    #[must_use]
    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }

    /// Iterates over all functions, in unspecified order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }
}

/// The declaration that a name resolves to.
#[derive(Clone, Debug, PartialEq)]
pub enum Ident {
    /// A variable of this type.
    Variable(Type),
    /// The name of a type. If the name denotes the type `T`, the identifier itself has the type `type(T)`.
    TypeName(Type),
}

/// An environment: a library and variables.
///
/// Environments derived from the same base share its library, so deriving one is cheap.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::decls::Variable;
/// use cel::env::{Env, Ident};
/// use cel::stdlib;
/// use cel::types::Type;
///
/// let base = Env::new(Arc::new(stdlib::library()));
/// let env = base.extend([Variable::new("name", Type::String)]);
/// assert_eq!(env.lookup_ident("name"), Some(Ident::Variable(Type::String)));
/// assert_eq!(base.lookup_ident("name"), None);
/// assert!(env.lookup_function("startsWith").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Env {
    library: Arc<Library>,
    variables: Vec<Variable>,
    named_types: Vec<(Arc<str>, Type)>,
    resolver: Option<&'static dyn TypeResolver>,
}

impl Env {
    /// Creates an environment without variables.
    #[must_use]
    pub fn new(library: Arc<Library>) -> Self {
        Self {
            library,
            variables: Vec::new(),
            named_types: Vec::new(),
            resolver: None,
        }
    }

    /// Returns this environment with `variables` added. A later variable shadows an earlier one with the same
    /// name.
    #[must_use]
    pub fn extend(&self, variables: impl IntoIterator<Item = Variable>) -> Self {
        let mut extended = self.clone();
        extended.variables.extend(variables);
        extended
    }

    /// Returns this environment with the given named types added. Only the checker knows these types. At run time,
    /// their names are undefined.
    #[must_use]
    pub fn extend_types(&self, types: impl IntoIterator<Item = (Arc<str>, Type)>) -> Self {
        let mut extended = self.clone();
        extended.named_types.extend(types);
        extended
    }

    /// Returns true if [`Env::extend_types`] added a type with this name.
    pub(crate) fn is_named_type(&self, name: &str) -> bool {
        self.named_types.iter().any(|(named, _)| &**named == name)
    }

    /// Returns this environment with the object types that `resolver` declares.
    #[must_use]
    pub fn resolving(mut self, resolver: &'static dyn TypeResolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Returns the resolver that declares the object type `name`. `None` if no resolver declares it.
    #[must_use]
    pub fn resolver_of(&self, name: &str) -> Option<&'static dyn TypeResolver> {
        let declares = |resolver: &&dyn TypeResolver| resolver.resolve(name).is_some();
        self.resolver.filter(declares)
    }

    /// Declares the variable `name`, or replaces its type.
    pub fn set_variable(&mut self, name: &str, type_: Type) {
        match self
            .variables
            .iter_mut()
            .rev()
            .find(|variable| &*variable.name == name)
        {
            Some(variable) => variable.type_ = type_,
            None => self.variables.push(Variable::new(name, type_)),
        }
    }

    /// Resolves `name`, ignoring the variables of comprehensions. `None` if it is not declared.
    ///
    /// Source: cel-go `checker/env.go`, `Env.LookupIdent`.
    #[must_use]
    pub fn lookup_ident(&self, name: &str) -> Option<Ident> {
        if let Some(variable) = self.variables.iter().rev().find(|v| &*v.name == name) {
            return Some(Ident::Variable(variable.type_.clone()));
        }
        if let Some(of) = self.lookup_type_name(name) {
            return Some(Ident::TypeName(of));
        }
        self.library
            .constants
            .get(name)
            .map(|_| Ident::Variable(Type::Int))
    }

    /// Returns the type with the given name.
    ///
    /// Source: cel-go 0.29 `checker/env.go`, `Env.resolveTypeIdent`.
    pub(crate) fn lookup_type_name(&self, name: &str) -> Option<Type> {
        if let Some(object) = self.resolver.and_then(|resolver| resolver.resolve(name)) {
            return Some(Type::Struct(object));
        }
        let named = self.named_types.iter().find(|(n, _)| &**n == name);
        let of = named.map(|(_, of)| of);
        of.or_else(|| self.library.types.get(name)).cloned()
    }

    /// Returns the library, shared by all environments derived from the same base.
    #[must_use]
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Returns the behavior of the library's release.
    #[must_use]
    pub fn behavior(&self) -> Behavior {
        let Release { platform, cel_go } = self.library.release;
        Behavior {
            keywords_as_field_names: platform >= KEYWORDS_AS_FIELD_NAMES,
            ..Behavior::new(cel_go)
        }
    }

    /// Returns true if a declared qualified name starts with the component `first`.
    #[must_use]
    pub fn is_namespace(&self, first: &str) -> bool {
        let begins = |name: &str| {
            let rest = name.strip_prefix(first);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        self.library.namespaces.contains(first)
            || self.variables.iter().any(|variable| begins(&variable.name))
            || self.named_types.iter().any(|(name, _)| begins(name))
            || self
                .resolver
                .is_some_and(|resolver| resolver.is_namespace(first))
    }

    /// Iterates over the variables. A later variable hides an earlier one with the same name.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter()
    }

    /// Returns the function `name`. `None` if it is not declared.
    #[must_use]
    pub fn lookup_function(&self, name: &str) -> Option<&Function> {
        self.library.functions.get(name)
    }
}
