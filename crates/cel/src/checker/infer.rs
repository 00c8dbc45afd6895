//! Type inference: one rule per kind of expression.
//!
//! Source: cel-go `checker/checker.go`.

use std::sync::Arc;

use super::substitution::{Substitution, has_params, most_general};
use super::{CheckedAst, Places, Reference};
use crate::ast::{Ast, Comprehension, Expr, ExprId, Literal, MapEntry, StructField, is_optional};
use crate::diagnostic::{Candidates, Code, DiagnosticKind, Diagnostics, UndefinedField};
use crate::env::{Env, Ident};
use crate::ext::optional;
use crate::interrupt::checkpoint;
use crate::types::{Primitive, StructType, Type};

pub(super) struct Checker<'a> {
    pub(super) ast: &'a Arc<Ast>,
    pub(super) env: &'a Env,
    pub(super) substitution: Substitution,
    places: Places<'a>,
    diagnostics: Diagnostics,
    /// Variables of the enclosing comprehensions, innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    /// A selection whose leftmost identifier cannot start a qualified name. In a long chain of selections, this saves
    /// a search for the leftmost identifier at each selection.
    plain: Option<ExprId>,
    /// See [`Behavior`](crate::version::Behavior).
    locals_hide_qualified_names: bool,
    /// See [`Behavior`](crate::version::Behavior).
    keywords_as_field_names: bool,
}

impl<'a> Checker<'a> {
    pub(super) fn new(ast: &'a Arc<Ast>, text: &'a str, env: &'a Env) -> Self {
        Self {
            ast,
            env,
            substitution: Substitution::default(),
            places: Places { text, source: None },
            diagnostics: Diagnostics::default(),
            scopes: Vec::new(),
            types: vec![None; ast.len()],
            references: vec![None; ast.len()],
            plain: None,
            locals_hide_qualified_names: env.behavior().locals_hide_qualified_names,
            keywords_as_field_names: env.behavior().keywords_as_field_names,
        }
    }

    pub(super) fn run(mut self) -> (CheckedAst, Diagnostics) {
        self.check(self.ast.root());
        let substitution = &self.substitution;
        for type_ in self.types.iter_mut().flatten() {
            if has_params(type_) {
                *type_ = substitution.resolve_to_dyn(type_);
            }
        }
        let checked = CheckedAst {
            ast: Arc::clone(self.ast),
            types: self.types,
            references: self.references,
            behavior: self.env.behavior(),
        };
        (checked, self.diagnostics)
    }

    pub(super) fn report(&mut self, id: ExprId, kind: DiagnosticKind) {
        let location = self.places.location(self.ast.offset(id));
        self.diagnostics.report_at(kind, location, id);
    }

    fn report_other(&mut self, id: ExprId, code: Code, message: String) {
        self.report(
            id,
            DiagnosticKind::Other {
                code,
                message,
                correction: None,
            },
        );
    }

    pub(super) fn set_type(&mut self, id: ExprId, type_: Type) {
        let type_ = if n_parts_exceeds(&type_, MAX_TYPE_PARTS) {
            let message = format!(
                "the type of the expression has more than {MAX_TYPE_PARTS} parts; simplify it"
            );
            self.report_other(id, Code::TooComplex, message);
            Type::Dyn
        } else {
            type_
        };
        if let Some(slot) = self.types.get_mut(id.index()) {
            *slot = Some(type_);
        }
    }

    pub(super) fn type_of(&self, id: ExprId) -> Type {
        self.types
            .get(id.index())
            .cloned()
            .flatten()
            .unwrap_or(Type::Error)
    }

    pub(super) fn set_reference(&mut self, id: ExprId, reference: Reference) {
        if let Some(slot) = self.references.get_mut(id.index()) {
            *slot = Some(reference);
        }
    }

    pub(super) fn check(&mut self, id: ExprId) {
        checkpoint();
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Unspecified => {
                self.report_other(id, Code::Syntax, "unexpected unspecified type: ".into());
            }
            Expr::Literal(literal) => self.set_type(id, literal_type(literal)),
            Expr::Ident(name) => self.check_ident(id, name),
            Expr::Select {
                operand,
                field,
                test_only,
            } => {
                self.check_select(id, *operand, field, *test_only);
            }
            Expr::Call {
                function,
                target,
                args,
            } => {
                self.check_call(id, function, *target, args);
            }
            Expr::List {
                elements,
                optional_indices,
            } => {
                self.check_list(id, elements, optional_indices);
            }
            Expr::Map(entries) => self.check_map(id, entries),
            Expr::Struct { type_name, fields } => self.check_struct(id, type_name, fields),
            Expr::Comprehension(fold) => self.check_comprehension(id, fold),
        }
    }

    /// Resolves `name`, with or without a leading dot. The variables of comprehensions shadow other declarations.
    ///
    /// Source: cel-go `common/containers/container.go`, `ResolveCandidateNames`, for the empty container.
    fn lookup(&self, name: &str) -> Option<Ident> {
        let (name, is_global) = match name.strip_prefix('.') {
            Some(global) => (global, self.locals_hide_qualified_names),
            None => (name, false),
        };
        match self.local(name).filter(|_| !is_global) {
            Some(type_) => Some(Ident::Variable(type_.clone())),
            None => self.env.lookup_ident(name),
        }
    }

    /// Returns the type of the variable `name` of an enclosing comprehension.
    fn local(&self, name: &str) -> Option<&Type> {
        let mut scopes = self.scopes.iter().rev();
        let (_, type_) = scopes.find(|(variable, _)| **variable == *name)?;
        Some(type_)
    }

    fn resolve_ident(&mut self, id: ExprId, name: Arc<str>, ident: Ident) {
        let type_ = match ident {
            Ident::Variable(type_) => type_,
            Ident::TypeName(of) => Type::type_of(of),
        };
        self.set_type(id, type_);
        let name = match name.strip_prefix('.') {
            // A variable of a comprehension hides this global variable. The leading dot is kept, so that the planner
            // reads the global variable.
            Some(global) if self.locals_hide_qualified_names && self.is_local(global) => name,
            Some(global) => global.into(),
            None => name,
        };
        self.set_reference(id, Reference::Ident(name));
    }

    fn check_ident(&mut self, id: ExprId, name: &Arc<str>) {
        match self.lookup(name) {
            Some(ident) => self.resolve_ident(id, Arc::clone(name), ident),
            None => {
                self.set_type(id, Type::Error);
                self.report_undeclared(id, name);
            }
        }
    }

    pub(super) fn report_undeclared(&mut self, id: ExprId, name: &str) {
        let name = name.into();
        self.report(id, DiagnosticKind::UndeclaredReference { name });
    }

    fn check_select(&mut self, id: ExprId, operand: ExprId, field: &str, test_only: bool) {
        if !test_only {
            if self.plain == Some(id)
                || !self.may_be_qualified(operand)
                || self.starts_with_local(operand)
            {
                self.plain = Some(operand);
            } else if let Some(name) = self.ast.qualified_name(id)
                && let Some(ident) = self.lookup(&name)
            {
                self.resolve_ident(id, name.into(), ident);
                return;
            }
        }
        let selected = self.check_select_field(id, operand, field, false);
        let type_ = if test_only {
            Type::Bool
        } else {
            self.substitution.resolve(&selected)
        };
        self.set_type(id, type_);
    }

    /// Returns true if a variable of an enclosing comprehension hides the qualified names that start with the
    /// leftmost identifier of `id`.
    fn starts_with_local(&self, id: ExprId) -> bool {
        self.locals_hide_qualified_names
            && self
                .ast
                .qualified_name(id)
                .is_some_and(|name| self.is_local(&name))
    }

    /// Returns true if the first component of `name` is a variable of an enclosing comprehension.
    fn is_local(&self, name: &str) -> bool {
        let first = name.split('.').next().unwrap_or(name);
        self.local(first).is_some()
    }

    /// Returns true if a declared qualified name may start with the leftmost identifier of `id`.
    pub(super) fn may_be_qualified(&self, id: ExprId) -> bool {
        let mut leftmost = id;
        loop {
            match self.ast.expr(leftmost) {
                Expr::Ident(name) => return self.env.is_namespace(name.trim_start_matches('.')),
                Expr::Select {
                    operand,
                    test_only: false,
                    ..
                } => leftmost = *operand,
                _ => return false,
            }
        }
    }

    /// Checks `operand.?field`. The parser represents the field as a string literal.
    pub(super) fn check_opt_select(&mut self, id: ExprId, target: Option<ExprId>, args: &[ExprId]) {
        let (None, [operand, field]) = (target, args) else {
            let member = if target.is_some() {
                " member call with"
            } else {
                ""
            };
            let message = format!(
                "unsupported optional field selection: incorrect signature.{member} argument count: {}",
                args.len()
            );
            self.report_other(id, Code::InvalidOptionalSelection, message);
            return;
        };
        let ast = self.ast;
        let Expr::Literal(Literal::String(name)) = ast.expr(*field) else {
            let message = "unsupported optional field selection".into();
            self.report_other(*field, Code::InvalidOptionalSelection, message);
            return;
        };
        let selected = self.check_select_field(id, *operand, name, true);
        let resolved = self.substitution.resolve(&selected);
        self.set_type(id, resolved);
        self.set_reference(
            id,
            Reference::Function {
                name: "_?._",
                overloads: Box::new([&optional::SELECT_FIELD]),
                namespaced: false,
            },
        );
    }

    fn check_select_field(
        &mut self,
        id: ExprId,
        operand: ExprId,
        field: &str,
        optional: bool,
    ) -> Type {
        self.check(operand);
        let operand_type = self.substitution.resolve(&self.type_of(operand));
        let unwrapped = operand_type.optional_value().cloned();
        let is_optional = optional || unwrapped.is_some();
        let target = unwrapped.unwrap_or(operand_type);
        let selected = match &target {
            Type::Map(entry) => entry.1.clone(),
            Type::Struct(object) => self.field_type(id, object, field).unwrap_or(Type::Error),
            Type::Param(_) => {
                self.substitution.bind_to_dyn(&target);
                Type::Dyn
            }
            _ => {
                if !target.is_dyn_or_error() {
                    let operand = target.clone();
                    self.report(id, DiagnosticKind::NoFieldSelection { operand });
                }
                Type::Dyn
            }
        };
        if is_optional {
            Type::optional(selected)
        } else {
            selected
        }
    }

    /// Returns the type of `field`. If `object` has no such field, reports an error and returns `None`.
    ///
    /// Source: cel-go `checker/checker.go`, `lookupFieldType`.
    fn field_type(&mut self, id: ExprId, object: &StructType, field: &str) -> Option<Type> {
        let Some(fields) = &object.fields else {
            let name = object.shown_name().into();
            self.report(id, DiagnosticKind::UnresolvedType { name });
            return None;
        };
        let is_known = self.keywords_as_field_names || !fields.is_keyword(field);
        let type_ = fields.field_type(&object.name, field).filter(|_| is_known);
        if type_.is_none() {
            let field = UndefinedField::new(field, fields);
            self.report(id, DiagnosticKind::UndefinedField(field));
        }
        type_
    }

    pub(super) fn report_mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        let (expected, actual) = (expected.clone(), actual.clone());
        self.report(id, DiagnosticKind::TypeMismatch { expected, actual });
    }

    /// Returns `T` for an optional part (`?`) of the type `optional_type(T)`. Returns other types unchanged, and
    /// reports an error unless the type is dynamic.
    fn unwrap_optional_part(&mut self, id: ExprId, type_: Type) -> Type {
        if let Some(value) = type_.optional_value() {
            return value.clone();
        }
        if !type_.is_dyn() {
            self.report_mismatch(id, &Type::optional(type_.clone()), &type_);
        }
        type_
    }

    fn check_list(&mut self, id: ExprId, elements: &[ExprId], optional_indices: &[u32]) {
        let mut elem_type = None;
        for (n, &element) in elements.iter().enumerate() {
            self.check(element);
            let mut type_ = self.type_of(element);
            if is_optional(optional_indices, n) {
                type_ = self.unwrap_optional_part(element, type_);
            }
            elem_type = Some(self.join(elem_type, type_));
        }
        // An element of the unspecified type does not determine the element type.
        let elem_type = elem_type.filter(|type_| !type_.is_unspecified());
        let elem_type = elem_type.unwrap_or_else(|| self.substitution.new_variable());
        self.set_type(id, Type::list(elem_type));
    }

    fn check_map(&mut self, id: ExprId, entries: &[MapEntry]) {
        let (mut key_type, mut value_type) = (None, None);
        for entry in entries {
            self.check(entry.key);
            let type_ = self.type_of(entry.key);
            key_type = Some(self.join(key_type, type_));
            self.check(entry.value);
            let mut type_ = self.type_of(entry.value);
            if entry.optional {
                type_ = self.unwrap_optional_part(entry.value, type_);
            }
            value_type = Some(self.join(value_type, type_));
        }
        let key_type = key_type.unwrap_or_else(|| self.substitution.new_variable());
        let value_type = value_type.unwrap_or_else(|| self.substitution.new_variable());
        self.set_type(id, Type::map(key_type, value_type));
    }

    /// Returns the common type of the previous elements and the next element.
    ///
    /// Incompatible types have the common type `dyn`. A validator rejects such literals later.
    ///
    /// Source: cel-go `checker/checker.go`, `joinTypes`, `dynAggregateLiteralElementTypesEnabled`.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else {
            return current;
        };
        if self.substitution.is_assignable(&previous, &current) {
            most_general(&previous, &current)
        } else {
            Type::Dyn
        }
    }

    fn check_struct(&mut self, id: ExprId, type_name: &str, fields: &[StructField]) {
        let name = type_name.strip_prefix('.').unwrap_or(type_name);
        // Since cel-go 0.27, only types are looked up. In older versions, a variable with the name of the type hides
        // the type, which causes an error.
        let ident = if self.locals_hide_qualified_names {
            self.env.lookup_type_name(name).map(Ident::TypeName)
        } else {
            self.lookup(type_name)
        };
        let Some(ident) = ident else {
            self.report_undeclared(id, type_name);
            self.set_type(id, Type::Error);
            return;
        };
        self.set_reference(id, Reference::Ident(name.into()));
        let result = match ident {
            Ident::TypeName(of) if matches!(of, Type::Struct(_)) || is_well_known(&of) => of,
            Ident::TypeName(of) => {
                let message = format!("'{}' is not a message type", declared_name(&of));
                self.report_other(id, Code::NotAType, message);
                Type::Error
            }
            Ident::Variable(Type::Error) => Type::Error,
            Ident::Variable(type_) => {
                let message = format!("'{}' is not a type", declared_name(&type_));
                self.report_other(id, Code::NotAType, message);
                Type::Error
            }
        };
        self.set_type(id, result.clone());
        for field in fields {
            self.check(field.value);
            let declared = match &result {
                Type::Struct(object) => self
                    .field_type(field.id, object, &field.field)
                    .unwrap_or(Type::Error),
                Type::Error => {
                    // `name` is not a message type. Upstream nevertheless looks up each field of the literal, and
                    // reports `name` as unresolved.
                    let name = name.into();
                    self.report(field.id, DiagnosticKind::UnresolvedType { name });
                    Type::Error
                }
                well_known => {
                    let message = self.env.library().message(well_known_name(well_known));
                    message
                        .and_then(|message| message.field(&field.field))
                        .unwrap_or_else(|| {
                            let undefined = UndefinedField {
                                name: Arc::clone(&field.field),
                                candidates: Candidates::Keys(Arc::default()),
                            };
                            self.report(field.id, DiagnosticKind::UndefinedField(undefined));
                            Type::Error
                        })
                }
            };
            let mut value = self.type_of(field.value);
            if field.optional {
                value = self.unwrap_optional_part(field.value, value);
            }
            if !self.substitution.is_assignable(&declared, &value) {
                let kind = DiagnosticKind::FieldTypeMismatch {
                    field: Arc::clone(&field.field),
                    declared: declared.to_string(),
                    actual: value.to_string(),
                };
                self.report(field.id, kind);
            }
        }
    }

    fn check_comprehension(&mut self, id: ExprId, fold: &Comprehension) {
        self.check(fold.iter_range);
        self.check(fold.accu_init);
        let range = self.substitution.resolve(&self.type_of(fold.iter_range));
        let accu_type = self.type_of(fold.accu_init);
        let n_outer = self.scopes.len();
        self.scopes
            .push((Arc::clone(&fold.accu_var), accu_type.clone()));
        let (var_type, var2_type) = match &range {
            Type::List(elem) if fold.iter_var2.is_some() => (Type::Int, (**elem).clone()),
            Type::List(elem) => ((**elem).clone(), Type::Dyn),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.substitution.bind_to_dyn(&range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let range = range.clone();
                self.report(fold.iter_range, DiagnosticKind::NotARange { range });
                (Type::Error, Type::Error)
            }
        };
        let n_loop = self.scopes.len();
        self.scopes.push((Arc::clone(&fold.iter_var), var_type));
        if let Some(var2) = &fold.iter_var2 {
            self.scopes.push((Arc::clone(var2), var2_type));
        }
        self.check(fold.loop_condition);
        self.assert_type(fold.loop_condition, &Type::Bool);
        self.check(fold.loop_step);
        self.assert_type(fold.loop_step, &accu_type);
        self.scopes.truncate(n_loop);
        self.check(fold.result);
        self.scopes.truncate(n_outer);
        let result = self.substitution.resolve(&self.type_of(fold.result));
        self.set_type(id, result);
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let actual = self.type_of(id);
        if !self.substitution.is_assignable(expected, &actual) {
            self.report_mismatch(id, expected, &actual);
        }
    }
}

/// Maximum number of components of a type. Each level of nested map literals can double the size of a type. cel-go
/// has no limit here.
const MAX_TYPE_PARTS: usize = 250;

fn n_parts_exceeds(type_: &Type, limit: usize) -> bool {
    fn count(type_: &Type, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else {
            return false;
        };
        *left = rest;
        match type_ {
            Type::List(elem) | Type::Type(Some(elem)) => count(elem, left),
            Type::Map(entry) => count(&entry.0, left) && count(&entry.1, left),
            Type::Opaque(opaque) => opaque.params.iter().all(|param| count(param, left)),
            _ => true,
        }
    }
    let mut left = limit;
    !count(type_, &mut left)
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Returns the declared name of a type.
///
/// Source: cel-go `common/types/types.go`, `Type.DeclaredTypeName`.
fn declared_name(type_: &Type) -> String {
    match type_ {
        Type::Wrapper(_) => format!("wrapper({})", type_.type_name()),
        _ => type_.type_name(),
    }
}

/// Returns the protobuf message name of a well-known type, or the empty string for other types.
///
/// Source: cel-go `checker/checker.go`, `getWellKnownTypeName`.
fn well_known_name(type_: &Type) -> &'static str {
    match type_ {
        Type::Any => "google.protobuf.Any",
        Type::Wrapper(Primitive::Bool) => "google.protobuf.BoolValue",
        Type::Wrapper(Primitive::Bytes) => "google.protobuf.BytesValue",
        Type::Wrapper(Primitive::Double) => "google.protobuf.DoubleValue",
        Type::Wrapper(Primitive::Int) => "google.protobuf.Int64Value",
        Type::Wrapper(Primitive::String) => "google.protobuf.StringValue",
        Type::Wrapper(Primitive::Uint) => "google.protobuf.UInt64Value",
        Type::Duration => "google.protobuf.Duration",
        Type::Dyn => "google.protobuf.Value",
        Type::List(_) => "google.protobuf.ListValue",
        Type::Null => "google.protobuf.NullValue",
        Type::Map(_) => "google.protobuf.Struct",
        Type::Timestamp => "google.protobuf.Timestamp",
        _ => "",
    }
}

/// Returns true if the type can be constructed with a message literal.
///
/// Source: cel-go `checker/checker.go`, `isWellKnownType`.
fn is_well_known(type_: &Type) -> bool {
    match type_ {
        Type::Any
        | Type::Timestamp
        | Type::Duration
        | Type::Dyn
        | Type::Null
        | Type::Wrapper(_) => true,
        Type::List(elem) => **elem == Type::Dyn,
        Type::Map(entry) => entry.0 == Type::String && entry.1 == Type::Dyn,
        _ => false,
    }
}
