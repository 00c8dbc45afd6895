//! Bindings of type variables, and assignability of types with such variables.
//!
//! Source: cel-go `checker/mapping.go`, `checker/types.go` (`internalIsAssignable`,
//! `isValidTypeSubstitution`, `mostGeneral`, `notReferencedIn`, `substitute`).

use std::sync::Arc;

use crate::interrupt::checkpoint;
use crate::types::{OpaqueType, Type, TypeParam};

/// Bindings of the type variables of one check.
///
/// cel-go copies its mapping before each attempt, and discards the copy if the attempt fails. Here, `trail` records
/// the changes, which are undone if the attempt fails.
#[derive(Debug, Default)]
pub(super) struct Substitution {
    bound: Vec<Option<Type>>,
    trail: Vec<(u32, Option<Type>)>,
}

impl Substitution {
    pub(super) fn new_variable(&mut self) -> Type {
        let number = u32::try_from(self.bound.len()).unwrap_or(u32::MAX);
        self.bound.push(None);
        Type::Param(TypeParam::Free(number))
    }

    fn find(&self, number: u32) -> Option<&Type> {
        self.bound.get(number as usize)?.as_ref()
    }

    fn bind(&mut self, number: u32, to: Type) {
        if let Some(slot) = self.bound.get_mut(number as usize) {
            let before = slot.replace(to);
            self.trail.push((number, before));
        }
    }

    fn roll_back(&mut self, mark: usize) {
        while self.trail.len() > mark {
            if let Some((number, before)) = self.trail.pop()
                && let Some(slot) = self.bound.get_mut(number as usize)
            {
                *slot = before;
            }
        }
    }

    /// Returns true if `from` is assignable to `to`. If so, keeps the bindings that the assignment requires.
    pub(super) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        let mark = self.trail.len();
        let assignable = self.assign(from, to);
        if assignable {
            self.trail.clear();
        } else {
            self.roll_back(mark);
        }
        assignable
    }

    /// Binds the type variable `type_` to `dyn`. Called for the operand of a selection and for the range of a
    /// comprehension. If the variable stayed free, a later use could bind it to a type without fields or elements.
    ///
    /// Source: cel-go `checker/checker.go`, `checkSelectField`, `checkComprehension`.
    pub(super) fn bind_to_dyn(&mut self, type_: &Type) {
        let is_bound = self.is_assignable(&Type::Dyn, type_);
        debug_assert!(is_bound, "dyn is assignable to each type");
    }

    /// Returns true if each type of `from` is assignable to the type at the same index in `to`. All assignments share
    /// the bindings of variables.
    pub(super) fn is_assignable_list(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mark = self.trail.len();
        let assignable = self.assign_list(from, to);
        if assignable {
            self.trail.clear();
        } else {
            self.roll_back(mark);
        }
        assignable
    }

    fn assign_list(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.assign(from, to))
    }

    fn assign(&mut self, from: &Type, to: &Type) -> bool {
        checkpoint();
        if let Type::Param(param) = to {
            match self.bind_if_valid(from, *param) {
                Binding::Valid => return true,
                Binding::Conflicting => return false,
                Binding::Unknown => {}
            }
        }
        if let Type::Param(param) = from {
            return matches!(self.bind_if_valid(to, *param), Binding::Valid);
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        if from.is_unspecified() || to.is_unspecified() {
            return false;
        }
        if *from == Type::Null {
            return is_nullable(to);
        }
        if *to == Type::Null {
            return is_nullable(from);
        }
        match (from, to) {
            (Type::List(from), Type::List(to)) => self.assign(from, to),
            (Type::Map(from), Type::Map(to)) => {
                self.assign(&from.0, &to.0) && self.assign(&from.1, &to.1)
            }
            (Type::Opaque(from), Type::Opaque(to)) => {
                from.name == to.name && self.assign_list(&from.params, &to.params)
            }
            (Type::Type(_), Type::Type(_)) => true,
            _ => is_exact(from, to),
        }
    }

    /// Binds `param` to `to`, unless `to` is incompatible with the current binding.
    fn bind_if_valid(&mut self, to: &Type, param: TypeParam) -> Binding {
        if *to == Type::Param(param) {
            return Binding::Valid;
        }
        let TypeParam::Free(number) = param else {
            return Binding::Unknown;
        };
        if let Some(known) = self.find(number).cloned() {
            if is_exact(to, &known) {
                return Binding::Valid;
            }
            if !self.assign(to, &known) {
                return Binding::Conflicting;
            }
            let general = most_general(to, &known);
            if self.is_not_referenced(number, &general) {
                self.bind(number, general);
            }
            return Binding::Valid;
        }
        if self.is_not_referenced(number, to) {
            self.bind(number, to.clone());
            return Binding::Valid;
        }
        Binding::Unknown
    }

    /// Returns true if the variable `number` does not occur in `within`. This is the occurs check of unification.
    fn is_not_referenced(&self, number: u32, within: &Type) -> bool {
        if is_leaf(within) {
            return true;
        }
        checkpoint();
        match within {
            Type::Param(TypeParam::Free(other)) => {
                *other != number
                    && self
                        .find(*other)
                        .is_none_or(|known| self.is_not_referenced(number, known))
            }
            Type::List(elem) => self.is_not_referenced(number, elem),
            Type::Map(entry) => {
                self.is_not_referenced(number, &entry.0) && self.is_not_referenced(number, &entry.1)
            }
            Type::Opaque(opaque) => opaque
                .params
                .iter()
                .all(|param| self.is_not_referenced(number, param)),
            Type::Type(Some(of)) => self.is_not_referenced(number, of),
            _ => true,
        }
    }

    /// Replaces the bound variables in `type_` with their types. Unbound variables remain.
    pub(super) fn resolve(&self, type_: &Type) -> Type {
        self.substitute(type_, false)
    }

    /// Replaces the bound variables in `type_` with their types, and the unbound variables with `dyn`.
    pub(super) fn resolve_to_dyn(&self, type_: &Type) -> Type {
        self.substitute(type_, true)
    }

    fn substitute(&self, type_: &Type, free_to_dyn: bool) -> Type {
        if is_leaf(type_) {
            return type_.clone();
        }
        checkpoint();
        if !has_params(type_) {
            return type_.clone();
        }
        match type_ {
            Type::Param(param) => match param {
                TypeParam::Free(number) if self.find(*number).is_some() => self
                    .find(*number)
                    .map_or(Type::Dyn, |known| self.substitute(known, free_to_dyn)),
                _ if free_to_dyn => Type::Dyn,
                _ => type_.clone(),
            },
            Type::List(elem) => Type::list(self.substitute(elem, free_to_dyn)),
            Type::Map(entry) => Type::map(
                self.substitute(&entry.0, free_to_dyn),
                self.substitute(&entry.1, free_to_dyn),
            ),
            Type::Opaque(opaque) => Type::Opaque(Arc::new(OpaqueType {
                name: Arc::clone(&opaque.name),
                params: opaque
                    .params
                    .iter()
                    .map(|p| self.substitute(p, free_to_dyn))
                    .collect(),
            })),
            Type::Type(Some(of)) => Type::type_of(self.substitute(of, free_to_dyn)),
            _ => type_.clone(),
        }
    }
}

enum Binding {
    /// The variable now has a binding that is compatible with `to`.
    Valid,
    /// The variable has a binding that is incompatible with `to`.
    Conflicting,
    /// `param` is not a variable, or `to` contains the variable itself.
    Unknown,
}

/// Replaces the declared type parameters of a signature with `variables`.
pub(super) fn instantiate(type_: &Type, variables: &[(&'static str, Type)]) -> Type {
    match type_ {
        Type::Param(TypeParam::Declared(name)) => variables
            .iter()
            .find(|(param, _)| param == name)
            .map_or_else(|| type_.clone(), |(_, variable)| variable.clone()),
        Type::List(elem) if has_params(elem) => Type::list(instantiate(elem, variables)),
        Type::Map(entry) if has_params(type_) => Type::map(
            instantiate(&entry.0, variables),
            instantiate(&entry.1, variables),
        ),
        Type::Opaque(opaque) if has_params(type_) => Type::Opaque(Arc::new(OpaqueType {
            name: Arc::clone(&opaque.name),
            params: opaque
                .params
                .iter()
                .map(|param| instantiate(param, variables))
                .collect(),
        })),
        Type::Type(Some(of)) if has_params(of) => Type::type_of(instantiate(of, variables)),
        _ => type_.clone(),
    }
}

/// Returns true if `type_` is not a variable and contains no other types.
fn is_leaf(type_: &Type) -> bool {
    !matches!(
        type_,
        Type::Param(_) | Type::List(_) | Type::Map(_) | Type::Opaque(_) | Type::Type(Some(_))
    )
}

pub(super) fn has_params(type_: &Type) -> bool {
    type_.has_part(|part| matches!(part, Type::Param(_)))
}

/// Returns true if two types are identical. A wrapper type is identical to its primitive type.
///
/// Source: cel-go `common/types/types.go`, `Type.IsExactType`.
pub(super) fn is_exact(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Wrapper(left), _) => is_exact(&left.unwrapped(), right),
        (_, Type::Wrapper(right)) => is_exact(left, &right.unwrapped()),
        _ => left == right,
    }
}

/// Returns true if null is assignable to the type.
///
/// Source: cel-go `checker/types.go`, `internalIsAssignableNull`, `isLegacyNullable`.
fn is_nullable(type_: &Type) -> bool {
    matches!(
        type_,
        Type::Null
            | Type::Wrapper(_)
            | Type::Opaque(_)
            | Type::Struct(_)
            | Type::Any
            | Type::Dyn
            | Type::Duration
            | Type::Timestamp
    )
}

/// Returns the more general of two types that unify.
///
/// Source: cel-go `checker/types.go`, `mostGeneral`.
pub(super) fn most_general(left: &Type, right: &Type) -> Type {
    if is_equal_or_less_specific(left, right) {
        left.clone()
    } else {
        right.clone()
    }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    if left.is_dyn() || matches!(left, Type::Param(_)) {
        return true;
    }
    if right.is_dyn() || matches!(right, Type::Param(_)) {
        return false;
    }
    match (left, right) {
        (Type::Opaque(left), Type::Opaque(right)) => {
            left.name == right.name
                && left.params.len() == right.params.len()
                && left
                    .params
                    .iter()
                    .zip(&right.params)
                    .all(|(l, r)| is_equal_or_less_specific(l, r))
        }
        (Type::List(left), Type::List(right)) => is_equal_or_less_specific(left, right),
        (Type::Map(left), Type::Map(right)) => {
            is_equal_or_less_specific(&left.0, &right.0)
                && is_equal_or_less_specific(&left.1, &right.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => is_exact(left, right),
    }
}
