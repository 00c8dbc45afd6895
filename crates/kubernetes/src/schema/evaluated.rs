//! Declared types as seen by evaluated policy expressions.
//!
//! The API server checks the expressions of a policy against declared types and then evaluates them on plain JSON,
//! without the schema. The differences are:
//!
//! - A timestamp, a duration or bytes is a JSON string, so `object.metadata.creationTimestamp <
//!   timestamp("2030-01-01T00:00:00Z")` is an error for every object, and
//!   `object.metadata.creationTimestamp.startsWith("2030")` is not.
//! - A number is an `int` or a `double`, depending on its JSON representation.
//! - A field without a type in the schema exists, and so may any field of an open object. A quantity is a string.
//! - A field with a default exists: it was set when the request was decoded.
//! - A property has its unescaped name: `object.spec.__if__` passes the type checker and fails.
//!
//! Source: apiserver `pkg/admission/plugin/cel/condition.go`, `objectToResolveVal`.

use std::sync::Arc;

use super::decl_type::{DeclField, DeclKind, DeclType};
use super::escape::escape;
use cel::types::{FieldTypes, StructType, Type};

impl DeclType {
    /// Returns the type of values in evaluated expressions. `name` is the name of an object type without its own, as in
    /// [`DeclType::cel_type`].
    #[must_use]
    pub fn evaluated_type(self: &Arc<Self>, name: &str) -> Type {
        self.evaluated_as(&|| name.to_owned())
    }

    /// Returns the declaration of the property with the unescaped name `name`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&DeclField> {
        let escaped = escape(name)?;
        let fields = self.declared_fields();
        let idx = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
        fields.get(idx.ok()?)
    }

    /// Like [`DeclType::evaluated_type`], but most types do not need the name.
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

/// The fields of an object type in evaluated expressions.
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
        // A name that cannot be escaped has no declaration, even if the schema has the property.
        is_open || self.0.property(field).is_some() || escape(field).is_none()
    }

    fn alternatives(&self, field: &str) -> &[Type] {
        match self.0.property(field).map(|field| &field.type_.kind) {
            Some(DeclKind::IntOrString) => &[Type::Int, Type::String],
            // A JSON number is an integer or not, depending on its representation.
            Some(DeclKind::Double) => &[Type::Int, Type::Double],
            _ => &[],
        }
    }

    fn is_required(&self, field: &str) -> bool {
        let declaration = self.0.property(field);
        declaration.is_some_and(|field| field.required || field.has_default)
    }
}
