//! The environment of a check: functions, named types and variables.
//!
//! An [`Env`] is immutable once built and shared by reference; a check adds its own variables by
//! [`Env::extend`], which copies nothing but a list of variables.
//!
//! Source: cel-go `checker/env.go` (`Env`, `LookupIdent`, `LookupFunction`), `cel/env.go`.

use std::sync::Arc;

use super::decls::{Function, Overload, OverloadRow, Variable};
use super::message::{MessageRow, TypeResolver};
use super::names::{NameMap, NameSet};
use super::types::Type;
use super::validators::Validator;

/// Functions and named types that many environments share.
#[derive(Clone, Debug, Default)]
pub struct Library {
    functions: NameMap<Function>,
    types: NameMap<Type>,
    messages: NameMap<&'static MessageRow>,
    constants: NameMap<i64>,
    /// The first parts of dotted names.
    namespaces: NameSet,
    validators: Box<[Validator]>,
    homogeneous_exempt: Box<[&'static str]>,
}

fn first_part(name: &str) -> Option<&str> {
    name.split_once('.').map(|(first, _)| first)
}

impl Library {
    /// Adds `rows`, in order, behind the overloads that are already there.
    ///
    /// A row whose id the function already has is passed over, as cel-go's `FunctionDecl.Merge` does
    /// with an overload of the same id and signature.
    pub fn add_overloads(&mut self, rows: &'static [OverloadRow]) {
        for row in rows {
            self.add_overload(Overload::new(row));
        }
    }

    /// Adds one overload, as [`Library::add_overloads`] does; its types need not be those of its row.
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

    /// Declares `name` as the name of the type `of`, so that `type(x) == name` can be written.
    pub fn add_type(&mut self, name: &'static str, of: Type) {
        self.namespaces.extend(first_part(name));
        self.types.insert(name, of);
    }

    /// Declares a message: its name as that of its type, and its fields.
    pub fn add_message(&mut self, row: &'static MessageRow) {
        self.namespaces.extend(first_part(row.name));
        self.types.insert(row.name, row.to_type());
        self.messages.insert(row.name, row);
    }

    /// Declares `name` as an `int` of the value `value`, as enumerations do.
    pub fn add_constant(&mut self, name: &'static str, value: i64) {
        self.namespaces.extend(first_part(name));
        self.constants.insert(name, value);
    }

    /// Sets the checks after the type checker, in the order in which they report, and the functions within
    /// whose calls literals may be heterogeneous.
    pub fn set_validators(&mut self, validators: &[Validator], exempt: &[&'static str]) {
        self.validators = validators.into();
        self.homogeneous_exempt = exempt.into();
    }

    /// The checks after the type checker, in the order in which they report.
    #[must_use]
    pub fn validators(&self) -> &[Validator] {
        &self.validators
    }

    /// The functions within whose calls literals may be heterogeneous, at any depth.
    #[must_use]
    pub fn homogeneous_exempt(&self) -> &[&'static str] {
        &self.homogeneous_exempt
    }

    /// The message `name`.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<&'static MessageRow> {
        self.messages.get(name).copied()
    }

    /// The value of the constant `name`.
    #[must_use]
    pub fn constant(&self, name: &str) -> Option<i64> {
        self.constants.get(name).copied()
    }

    /// All functions, in no order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }
}

/// Declaration that a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Ident {
    /// A variable of the type.
    Variable(Type),
    /// A type by its name; the type of the expression is `type(T)`.
    TypeName(Type),
}

/// An environment: a library and variables.
///
/// Environments on one base share its library, so that one more is cheap.
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
    /// An environment without variables.
    #[must_use]
    pub fn new(library: Arc<Library>) -> Self {
        Self {
            library,
            variables: Vec::new(),
            named_types: Vec::new(),
            resolver: None,
        }
    }

    /// This environment with `variables` added; a later variable hides an earlier one of its name.
    #[must_use]
    pub fn extend(&self, variables: impl IntoIterator<Item = Variable>) -> Self {
        let mut extended = self.clone();
        extended.variables.extend(variables);
        extended
    }

    /// This environment with the named object types `types` added.
    #[must_use]
    pub fn extend_types(&self, types: impl IntoIterator<Item = (Arc<str>, Type)>) -> Self {
        let mut extended = self.clone();
        extended.named_types.extend(types);
        extended
    }

    /// This environment with the object types that `resolver` declares.
    #[must_use]
    pub fn resolving(mut self, resolver: &'static dyn TypeResolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// The resolver of the object type `name`, if one declares it.
    #[must_use]
    pub fn resolver_of(&self, name: &str) -> Option<&'static dyn TypeResolver> {
        let declares = |resolver: &&dyn TypeResolver| resolver.resolve(name).is_some();
        self.resolver.filter(declares)
    }

    /// Replaces the type of the variable `name`, or declares it.
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

    /// The meaning of `name` outside of any comprehension.
    ///
    /// Source: cel-go `checker/env.go`, `Env.LookupIdent`.
    #[must_use]
    pub fn lookup_ident(&self, name: &str) -> Option<Ident> {
        if let Some(variable) = self.variables.iter().rev().find(|v| &*v.name == name) {
            return Some(Ident::Variable(variable.type_.clone()));
        }
        if let Some(object) = self.resolver.and_then(|resolver| resolver.resolve(name)) {
            return Some(Ident::TypeName(Type::Struct(object)));
        }
        if let Some((_, of)) = self.named_types.iter().find(|(n, _)| &**n == name) {
            return Some(Ident::TypeName(of.clone()));
        }
        if let Some(of) = self.library.types.get(name) {
            return Some(Ident::TypeName(of.clone()));
        }
        self.library
            .constants
            .get(name)
            .map(|_| Ident::Variable(Type::Int))
    }

    /// Returns the library that all environments on the same base share.
    #[must_use]
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Reports whether some dotted name begins with the part `first`, in which there is no dot.
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

    /// The function `name`.
    #[must_use]
    pub fn lookup_function(&self, name: &str) -> Option<&Function> {
        self.library.functions.get(name)
    }
}
