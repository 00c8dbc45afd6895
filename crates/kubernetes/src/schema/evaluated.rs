//! The types of values in evaluated policy expressions.
//!
//! The API server checks the expressions of a policy against the declared types, but evaluates them on plain JSON
//! without the schema. The types of values therefore differ from the declared types:
//!
//! - A timestamp, a duration or bytes is a string in JSON. `object.metadata.creationTimestamp <
//!   timestamp("2030-01-01T00:00:00Z")` fails for every object, but
//!   `object.metadata.creationTimestamp.startsWith("2030")` does not.
//! - A number is an `int` or a `double`, depending on its JSON representation.
//! - A field without a type in the schema exists, and any field of an open object may exist. A quantity is a string.
//! - A field with a default exists, because defaults are set when the request is decoded.
//! - A property has its unescaped name: `object.spec.__if__` passes the type checker, but fails when evaluated.
//!
//! Source: apiserver `pkg/admission/plugin/cel/condition.go`, `objectToResolveVal`.

use std::sync::Arc;

use super::decl_type::{DeclField, DeclKind, DeclType};
use super::escape::escape;
use cel::types::{FieldTypes, StructType, Type};

impl DeclType {
    /// Returns the type that values have in evaluated expressions. `name` becomes the name of an object type that has
    /// no name of its own, as in [`DeclType::cel_type`].
    #[must_use]
    pub fn evaluated_type(self: &Arc<Self>, name: &str) -> Type {
        self.evaluated_as(&|| name.to_owned())
    }

    /// Returns the declaration of the property whose unescaped name is `name`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&DeclField> {
        let escaped = escape(name)?;
        let fields = self.declared_fields();
        let idx = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
        fields.get(idx.ok()?)
    }

    /// Same as [`DeclType::evaluated_type`], but computes the name only if the type needs it.
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

/// The fields that an object type has in evaluated expressions.
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
        // A property whose name cannot be escaped has no declaration, but may be present.
        is_open || self.0.property(field).is_some() || escape(field).is_none()
    }

    fn alternatives(&self, field: &str) -> &[Type] {
        match self.0.property(field).map(|field| &field.type_.kind) {
            Some(DeclKind::IntOrString) => &[Type::Int, Type::String],
            // The JSON representation of a number determines whether it is an integer.
            Some(DeclKind::Double) => &[Type::Int, Type::Double],
            _ => &[],
        }
    }

    fn is_required(&self, field: &str) -> bool {
        let declaration = self.0.property(field);
        declaration.is_some_and(|field| field.required || field.has_default)
    }
}
