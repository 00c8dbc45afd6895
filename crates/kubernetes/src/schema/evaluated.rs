//! Declared types as expressions of policies meet them when they are evaluated.
//!
//! The API server checks the expressions of a policy against declared types, and then evaluates them
//! over plain JSON, without the schema. What differs:
//!
//! - a timestamp, a duration or bytes is the string that it is in JSON, so that
//!   `object.metadata.creationTimestamp < timestamp("2030-01-01T00:00:00Z")` is an error for every
//!   object, while `object.metadata.creationTimestamp.startsWith("2030")` is none;
//! - a number is an `int` or a `double`, by how it is written;
//! - a field that the schema declares without a type is there all the same, and so may be any field of an
//!   open object; a quantity is a string;
//! - what has a default is there: it was filled in when the request was decoded;
//! - a property goes by its own name: `object.spec.__if__` passes the type checker and fails.
//!
//! Source: apiserver `pkg/admission/plugin/cel/condition.go`, `objectToResolveVal`.

use std::sync::Arc;

use super::decl_type::{DeclField, DeclKind, DeclType};
use super::escape::escape;
use cel::types::{FieldTypes, StructType, Type};

impl DeclType {
    /// The type of values as expressions meet them, with `name` for the name of an object type; names
    /// are those of [`DeclType::cel_type`].
    #[must_use]
    pub fn evaluated_type(self: &Arc<Self>, name: &str) -> Type {
        self.evaluated_as(&|| name.to_owned())
    }

    /// The declaration of the property `name` of an object, by its own name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&DeclField> {
        let escaped = escape(name)?;
        let fields = self.declared_fields();
        let idx = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
        fields.get(idx.ok()?)
    }

    /// [`DeclType::evaluated_type`], by a name that most types do without.
    fn evaluated_as(self: &Arc<Self>, name: &dyn Fn() -> String) -> Type {
        match &self.kind {
            DeclKind::String
            | DeclKind::Bytes
            | DeclKind::Duration
            | DeclKind::Timestamp
            | DeclKind::Quantity => Type::String,
            DeclKind::Double | DeclKind::IntOrString | DeclKind::Unknown => Type::Dyn,
            DeclKind::List(elem) => Type::list(elem.evaluated_as(&|| name() + ".@idx")),
            DeclKind::Map(value) => {
                let value = value.evaluated_as(&|| name() + ".@elem");
                Type::map(Type::String, value)
            }
            DeclKind::Object(object) => {
                let name = object.name.clone().unwrap_or_else(|| name().into());
                Type::Struct(StructType::new(name, Arc::new(Evaluated(Arc::clone(self)))))
            }
            DeclKind::Bool => Type::Bool,
            DeclKind::Int => Type::Int,
            DeclKind::Cel(type_) => type_.clone(),
        }
    }
}

/// The fields of an object type as expressions meet them.
#[derive(Debug)]
struct Evaluated(Arc<DeclType>);

impl FieldTypes for Evaluated {
    fn field_type(&self, owner: &str, field: &str) -> Option<Type> {
        match self.0.property(field) {
            Some(field) => {
                let name = || format!("{owner}.{}", field.name);
                Some(field.type_.evaluated_as(&name))
            }
            None if self.may_hold(field) => Some(Type::Dyn),
            None => None,
        }
    }

    fn field_names(&self) -> Vec<&str> {
        let fields = self.0.declared_fields();
        fields.iter().map(|field| &*field.name).collect()
    }

    fn may_hold(&self, field: &str) -> bool {
        let is_open = matches!(&self.0.kind, DeclKind::Object(object) if object.is_open);
        // A name that cannot be escaped is not among the declarations, whether it is declared or not.
        is_open || self.0.property(field).is_some() || escape(field).is_none()
    }

    fn alternatives(&self, field: &str) -> &[Type] {
        match self.0.property(field).map(|field| &field.type_.kind) {
            Some(DeclKind::IntOrString) => &[Type::Int, Type::String],
            // A number of JSON is a whole one or not by how it is written.
            Some(DeclKind::Double) => &[Type::Int, Type::Double],
            _ => &[],
        }
    }

    fn is_required(&self, field: &str) -> bool {
        let found = self.0.property(field);
        found.is_some_and(|field| field.required || field.has_default)
    }
}
