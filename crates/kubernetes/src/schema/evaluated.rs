//! The types of values when policy expressions are evaluated.
//!
//! The API server type-checks policy expressions with the declared types. It then evaluates the expressions on plain
//! JSON, without the schema. The types of values therefore differ from the declared types:
//!
//! - A timestamp, a duration or bytes is a string. Example: the comparison `t < timestamp("2030-01-01T00:00:00Z")`,
//!   where `t` is `object.metadata.creationTimestamp`, fails for every object. `t.startsWith("2030")` works.
//! - A number is an `int` or a `double`, depending on its JSON text.
//! - A quantity is a string.
//! - Fields without a type in the schema can be read, and so can any field of an open object.
//! - A field with a default is always set, because the API server sets defaults when it decodes the request.
//! - A property has its unescaped name. For example, `object.spec.__if__` passes the type checker, but its evaluation
//!   fails.
//!
//! Source: apiserver `pkg/admission/plugin/cel/condition.go`, `objectToResolveVal`.

use std::sync::Arc;

use super::decl_type::{DeclField, DeclKind, DeclType};
use super::escape::escape;
use cel::types::{FieldTypes, StructType, Type};

impl DeclType {
    /// Returns the type that values of this type have when an expression is evaluated. If an object type has no name of
    /// its own, its name is `name`, as in [`DeclType::cel_type`].
    #[must_use]
    pub fn evaluated_type(self: &Arc<Self>, name: &str) -> Type {
        self.evaluated_as(&|| name.to_owned())
    }

    /// Returns the declared field for the unescaped property name `name`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&DeclField> {
        let escaped = escape(name)?;
        let fields = self.declared_fields();
        let idx = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
        fields.get(idx.ok()?)
    }

    /// Same as [`DeclType::evaluated_type`]. The name is computed only if the type needs one.
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
        // A property whose name cannot be escaped is never declared, but objects may have this property.
        is_open || self.0.property(field).is_some() || escape(field).is_none()
    }

    fn alternatives(&self, field: &str) -> &[Type] {
        match self.0.property(field).map(|field| &field.type_.kind) {
            Some(DeclKind::IntOrString) => &[Type::Int, Type::String],
            // A number is an integer or a double, depending on its JSON text.
            Some(DeclKind::Double) => &[Type::Int, Type::Double],
            _ => &[],
        }
    }

    fn is_required(&self, field: &str) -> bool {
        let declaration = self.0.property(field);
        declaration.is_some_and(|field| field.required || field.has_default)
    }
}
