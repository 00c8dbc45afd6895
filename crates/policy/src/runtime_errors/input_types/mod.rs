//! Types of a policy's inputs, and values of these types: minimal values, and values that satisfy constraints.

mod minimal;
pub(crate) mod roots;
pub(crate) mod satisfy;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value as Json;

use kubernetes::defaulting::is_null_unset;
use kubernetes::schema::Gvk;
use kubernetes::schema::decl_type::{DeclField, DeclKind, DeclType};
use kubernetes::schema::escape::escape;
use kubernetes::validity::{
    FieldPath, Root, Segment, is_guaranteed, is_never_empty, is_never_null, is_system_metadata,
};
/// The type of an input. The CRD's schema or the built-in kind may further restrict the values.
#[derive(Clone, Debug)]
pub(crate) struct InputType<'a> {
    type_: Arc<DeclType>,
    /// The value's schema in the CRD of a custom resource, in the original JSON form.
    written: Option<&'a Json>,
    /// The built-in kind of the object that has the value. `None` for a custom resource.
    builtin: Option<Arc<Gvk>>,
    /// True if the objects of the kind are namespaced.
    is_namespaced: bool,
    /// True if new objects may have a `generateName` in place of a name.
    is_name_generated: bool,
}

pub(crate) enum ChildType<'a> {
    /// The child may be present, with a value of this type.
    Known(InputType<'a>),
    /// The child may be present, with a value of any type.
    Any,
    /// The child is always absent.
    Never,
}

impl<'a> InputType<'a> {
    pub(crate) fn builtin(type_: Arc<DeclType>, kind: Gvk, is_namespaced: bool) -> Self {
        Self {
            type_,
            written: None,
            builtin: Some(Arc::new(kind)),
            is_namespaced,
            is_name_generated: false,
        }
    }

    /// Returns the type of custom resources. `written` is the schema in their CRD, in the original JSON form.
    pub(crate) fn custom(
        type_: Arc<DeclType>,
        written: Option<&'a Json>,
        is_namespaced: bool,
    ) -> Self {
        Self {
            type_,
            written,
            builtin: None,
            is_namespaced,
            is_name_generated: false,
        }
    }

    /// Returns the type of objects that may have a `generateName` in place of a name. The API server generates names
    /// after mutating admission.
    ///
    /// Source: `k8s.io/apiserver` `pkg/endpoints/handlers/create.go` (`createHandler` calls `Admit` before `Create`),
    /// `pkg/registry/rest/create.go` (`BeforeCreate` generates the name).
    pub(crate) fn with_generated_name(self) -> Self {
        Self {
            is_name_generated: true,
            ..self
        }
    }

    pub(crate) fn is_name_generated(&self) -> bool {
        self.is_name_generated
    }

    /// Returns a type that accepts any value.
    pub(crate) fn any() -> Self {
        Self::custom(Arc::new(DeclType::scalar(DeclKind::Unknown)), None, false)
    }

    fn child_type(&self, type_: &Arc<DeclType>, written: Option<&'a Json>) -> Self {
        Self {
            type_: Arc::clone(type_),
            written,
            builtin: self.builtin.clone(),
            is_namespaced: self.is_namespaced,
            is_name_generated: self.is_name_generated,
        }
    }

    /// Returns true for a value in an object of a built-in kind.
    pub(crate) fn is_builtin(&self) -> bool {
        self.builtin.is_some()
    }

    /// Returns the built-in kind of the object that has the value. `None` for a custom resource.
    pub(crate) fn builtin_kind(&self) -> Option<&str> {
        self.builtin.as_ref().map(|gvk| &*gvk.kind)
    }

    /// Returns true for integers and doubles.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Int | DeclKind::Double)
    }

    /// Returns true for an int-or-string without further restrictions in the schema.
    pub(crate) fn is_int_or_string(&self) -> bool {
        let is_limited = |written: &Json| {
            let words = ["pattern", "enum", "minimum", "maximum", "maxLength"];
            words.into_iter().any(|word| written.get(word).is_some())
        };
        matches!(self.type_.kind, DeclKind::IntOrString) && !self.written.is_some_and(is_limited)
    }

    pub(crate) fn is_quantity(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Quantity)
    }

    pub(crate) fn is_string(&self) -> bool {
        matches!(self.type_.kind, DeclKind::String)
    }

    pub(crate) fn is_double(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Double)
    }

    /// Returns true for a string that has no enumeration and no format.
    pub(crate) fn is_unrestricted_string(&self) -> bool {
        matches!(self.type_.kind, DeclKind::String)
            && self.type_.enum_values.is_none()
            && self.format().is_none()
    }

    /// Returns the values of an enumeration of strings. `None` if the type has no enumeration, or if a value is not a
    /// string.
    pub(crate) fn enum_strings(&self) -> Option<HashSet<&str>> {
        let values = self.type_.enum_values.as_ref()?;
        values.iter().map(Json::as_str).collect()
    }

    /// Returns true for a scalar that is never null. In built-in kinds, a list, a map and an unset time may be null.
    pub(crate) fn is_never_null(&self) -> bool {
        !self.type_.nullable
            && matches!(
                self.type_.kind,
                DeclKind::Bool
                    | DeclKind::Int
                    | DeclKind::Double
                    | DeclKind::String
                    | DeclKind::IntOrString
            )
    }

    /// Returns true if a valid value at `path` may be null. This is the case if the CRD declares the value nullable, or
    /// if the API server writes an unset value as null.
    pub(crate) fn may_be_null(&self, path: &FieldPath) -> bool {
        let Some(gvk) = &self.builtin else {
            return self.type_.nullable;
        };
        if !matches!(path.root, Root::Object | Root::OldObject) || is_never_null(path) {
            return false;
        }
        is_null_unset(gvk, path.segments.iter().map(Segment::name))
    }

    /// Returns the paths of all lists and maps that may be null within the value at `path`.
    pub(crate) fn nullable_lists(&self, path: &FieldPath, depth: usize) -> Vec<FieldPath> {
        if depth > MAX_NULLABLE_DEPTH {
            return Vec::new();
        }
        let fields = self.type_.declared_fields().iter();
        let children = fields.filter_map(|field| {
            let child_path = path.field(&field.name)?;
            match self.child(child_path.segments.last()?) {
                ChildType::Known(input_type) => Some((child_path, input_type)),
                ChildType::Any | ChildType::Never => None,
            }
        });
        let paths = children.flat_map(|(path, input_type)| {
            let is_own =
                (input_type.is_list() || input_type.is_map()) && input_type.may_be_null(&path);
            let nested = input_type.nullable_lists(&path, depth.saturating_add(1));
            is_own.then_some(path).into_iter().chain(nested)
        });
        paths.collect()
    }

    /// Returns true if the CRD has validation rules for the value.
    pub(crate) fn has_rules(&self) -> bool {
        let rules = self
            .written
            .and_then(|it| it.get("x-kubernetes-validations"));
        rules.is_some_and(|rules| !rules.is_null())
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Unknown)
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.type_.kind, DeclKind::Map(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.type_.kind, DeclKind::List(_))
    }

    /// Returns the CEL literal of the zero value, as an argument of `orValue()`. `None` if the type has no zero value.
    pub(crate) fn default_literal(&self) -> Option<&'static str> {
        Some(match &self.type_.kind {
            DeclKind::Bool => "false",
            DeclKind::Int => "0",
            DeclKind::String
            | DeclKind::Bytes
            | DeclKind::Duration
            | DeclKind::Timestamp
            | DeclKind::Quantity => "''",
            DeclKind::List(_) => "[]",
            DeclKind::Map(_) | DeclKind::Object(_) => "{}",
            DeclKind::Double | DeclKind::IntOrString | DeclKind::Cel(_) | DeclKind::Unknown => {
                return None;
            }
        })
    }

    fn declared_field(&self, name: &str) -> Option<&DeclField> {
        let escaped = escape(name)?;
        let fields = self.type_.declared_fields();
        let n = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
        fields.get(n.ok()?)
    }

    fn property(&self, name: &str) -> Option<&'a Json> {
        self.written?.get("properties")?.get(name)
    }

    fn is_open(&self) -> bool {
        match &self.type_.kind {
            DeclKind::Object(object) => object.is_open,
            DeclKind::Unknown => true,
            _ => false,
        }
    }

    pub(crate) fn child(&self, segment: &Segment) -> ChildType<'a> {
        match (&self.type_.kind, segment) {
            (DeclKind::Object(_), Segment::Field(name)) => match self.declared_field(name) {
                Some(field) => ChildType::Known(self.child_type(&field.type_, self.property(name))),
                None if self.is_open() => ChildType::Any,
                None => ChildType::Never,
            },
            (DeclKind::Map(value), Segment::Field(_)) => {
                let written = self.written.and_then(|it| it.get("additionalProperties"));
                ChildType::Known(self.child_type(value, written))
            }
            (DeclKind::List(elem), Segment::Index(_)) => {
                let written = self.written.and_then(|it| it.get("items"));
                ChildType::Known(self.child_type(elem, written))
            }
            (DeclKind::Unknown, _) => ChildType::Any,
            _ => ChildType::Never,
        }
    }

    /// Returns true if every valid value at `path` has a child at `segment`.
    pub(crate) fn is_always_present(&self, path: &FieldPath, segment: &Segment) -> bool {
        let Segment::Field(name) = segment else {
            return self.is_builtin() && *segment == Segment::Index(0) && is_never_empty(path);
        };
        let Some(field) = self.declared_field(name) else {
            return false;
        };
        // A field with a default may still be absent: in a built-in kind, Go omits a scalar field with a zero value.
        let is_left_out = self.is_builtin() && field.type_.is_scalar();
        field.required
            || field.has_default && !is_left_out
            || is_root_field(path, name)
            || self.is_system_field(path, name)
            || self.is_guaranteed_by_validation(path, name)
    }

    fn has(&self, field: &str) -> bool {
        self.type_.declared_field(field).is_some()
    }

    fn is_guaranteed_by_validation(&self, path: &FieldPath, name: &str) -> bool {
        self.builtin_kind()
            .is_some_and(|kind| is_guaranteed(kind, path, name, |field| self.has(field)))
    }

    /// Returns true if the API server always sets the field `name` of the metadata at `path`.
    fn is_system_field(&self, path: &FieldPath, name: &str) -> bool {
        let may_be_generated =
            name == "name" && path.root == Root::Object && self.is_name_generated;
        matches!(&*path.segments, [Segment::Field(field)] if **field == *"metadata")
            && matches!(path.root, Root::Object | Root::OldObject | Root::Params)
            && !may_be_generated
            && (is_system_metadata(name) || name == "namespace" && self.is_namespaced)
    }
}

/// Maximum nesting of lists and maps that may be null.
const MAX_NULLABLE_DEPTH: usize = 3;

/// Returns true for the top-level fields that every object has.
fn is_root_field(path: &FieldPath, name: &str) -> bool {
    path.segments.is_empty() && matches!(name, "apiVersion" | "kind" | "metadata")
}
