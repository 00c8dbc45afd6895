//! The CEL types for mutation expressions: `Object`, nested types such as `Object.spec`, and `JSONPatch`.
//!
//! The `Object` types have no schema. They accept any field name, and each field has the type `dyn`.
//!
//! Source: k8s.io/apiserver `pkg/cel/mutation` (`DynamicTypeResolver`).

mod object;
mod patch;

use std::sync::Arc;

use super::environment::{ByRelease, base_env};
use super::json_patch;
use cel::env::Env;
use cel::message::TypeResolver;
use cel::types::{FieldTypes, StructType, Type};
use cel::value::{EvalError, Value};
use cel::version::Release;

pub use object::{Misplaced, ObjectValue};
pub use patch::JsonPatchValue;

/// The type name of the whole object, and the first part of the names of nested types.
pub const OBJECT: &str = "Object";

/// The type name of a JSON patch operation.
pub const JSON_PATCH: &str = "JSONPatch";

/// Returns the type of the whole object.
#[must_use]
pub fn object_type() -> Type {
    Type::Struct(any_object(OBJECT))
}

/// Returns the type of a JSON patch operation.
#[must_use]
pub fn json_patch_type() -> Type {
    Type::Struct(StructType::new(JSON_PATCH, Arc::new(PatchFields)))
}

/// Returns the base environment for mutation expressions in `release`: [`base_env`] with the functions and types for
/// mutations.
///
/// Source: k8s.io/apiserver `pkg/admission/plugin/cel/compile.go`, `hasPatchTypes`.
#[must_use]
pub fn mutation_env(release: impl Into<Release>) -> &'static Env {
    static ENVS: ByRelease = ByRelease::new();
    ENVS.get_or_build(release.into(), |release| {
        let mut library = base_env(release).library().as_ref().clone();
        library.add_overloads(json_patch::ROWS);
        Env::new(Arc::new(library)).resolving(&Resolver)
    })
}

/// Returns true if `name` is `Object` or the name of a nested type, such as `Object.spec`.
#[must_use]
pub fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[derive(Clone, Copy, Debug)]
struct Resolver;

fn any_object(name: &str) -> StructType {
    StructType::new(name, Arc::new(AnyFields))
}

impl TypeResolver for Resolver {
    fn resolve(&self, name: &str) -> Option<StructType> {
        if name == JSON_PATCH {
            return Some(StructType::new(JSON_PATCH, Arc::new(PatchFields)));
        }
        is_object(name).then(|| any_object(name))
    }

    fn is_namespace(&self, first: &str) -> bool {
        first == OBJECT
    }

    fn reads_native(&self, name: &str) -> bool {
        is_object(name)
    }

    fn make(&self, name: &Arc<str>, fields: Vec<(Arc<str>, Value)>) -> Result<Value, EvalError> {
        if **name == *JSON_PATCH {
            return JsonPatchValue::new(fields).map(Value::opaque);
        }
        Ok(Value::opaque(ObjectValue::new(Arc::clone(name), fields)))
    }
}

/// The fields of an `Object` type. Every field name is valid, and every field has the type `dyn`.
///
/// Source: k8s.io/apiserver `pkg/cel/mutation/dynamic/objects.go`, `ObjectType.Field`.
#[derive(Debug)]
struct AnyFields;

impl FieldTypes for AnyFields {
    fn field_type(&self, _owner: &str, _field: &str) -> Option<Type> {
        Some(Type::Dyn)
    }

    fn field_names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn may_hold(&self, _field: &str) -> bool {
        true
    }
}

/// The fields of a `JSONPatch`. As in upstream, the type of an unknown field accepts no value.
///
/// Source: k8s.io/apiserver `pkg/cel/mutation/jsonpatch.go`, `JSONPatchType.Field`.
#[derive(Debug)]
struct PatchFields;

impl FieldTypes for PatchFields {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        Some(match field {
            "op" | "from" | "path" => Type::String,
            "value" => Type::Dyn,
            _ => Type::unspecified(),
        })
    }

    fn field_names(&self) -> Vec<&str> {
        vec!["from", "op", "path", "value"]
    }
}

#[cfg(test)]
mod tests;
