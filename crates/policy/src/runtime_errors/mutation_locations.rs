//! Locates the node at which a mutation fails, and selects a hint about how to fix it.

use crate::admission::mutation::{StepCause, StepError};
use cel::ast::{Ast, Expr, ExprId, Literal};
use kubernetes::json_patch::PatchError;
use kubernetes::library::mutation::{JSON_PATCH, OBJECT};
use kubernetes::merge;
use kubernetes::validity::{FieldPath, Root, Segment};
use serde_json::Value as Json;

use crate::runtime_errors::input_types::{ChildType, InputType};

/// Returns the node that makes a mutation fail. `None` if the node cannot be identified.
pub(super) fn failing_node(ast: &Ast, cause: &StepCause) -> Option<ExprId> {
    match cause {
        StepCause::Value {
            misplaced: Some(name),
        } => return object_literals(ast, name).next(),
        StepCause::Merge(error) => {
            let path = error.fields()?;
            let objects = object_literals(ast, OBJECT);
            let reached = objects.map(|object| deepest_field(ast, object, path, 0));
            let (_, id) =
                reached.max_by_key(|(depth, id)| (*depth, std::cmp::Reverse(id.index())))?;
            return Some(id);
        }
        _ => {}
    }
    let path = match cause {
        StepCause::Patch { path, .. } => path.as_deref(),
        _ => None,
    };
    let patches: Vec<ExprId> = object_literals(ast, JSON_PATCH).collect();
    patch_node(ast, &patches, path)
}

/// Returns the path of the first value that `object` lacks on the path of a failed patch. `None` if the patch failed
/// for a different reason, or if no object of the type `input_type` can have a value at the path.
pub(super) fn absent_path(
    object: &Json,
    input_type: &InputType<'_>,
    cause: &StepCause,
) -> Option<FieldPath> {
    let StepCause::Patch {
        error: PatchError::Missing(_),
        path: Some(pointer),
    } = cause
    else {
        return None;
    };
    let mut path = FieldPath::new(Root::Object);
    let mut absent = None;
    let (mut value, mut value_type) = (Some(object), Some(input_type.clone()));
    for key in pointer.strip_prefix('/')?.split('/') {
        let is_of_list = value_type.as_ref().is_some_and(InputType::is_list);
        let segment = match key.parse() {
            Ok(index) if is_of_list => Segment::Index(index),
            _ if key == "-" && is_of_list => Segment::Index(0),
            _ => Segment::Field(key.replace("~1", "/").replace("~0", "~").as_str().into()),
        };
        value_type = match value_type.map(|it| it.child(&segment)) {
            Some(ChildType::Known(child)) => Some(child),
            Some(ChildType::Any) | None => None,
            Some(ChildType::Never) => return None,
        };
        value = value.and_then(|value| match &segment {
            Segment::Field(name) => value.get(&**name),
            Segment::Index(n) => value.get(n),
        });
        path = path.then(segment)?;
        if value.is_none() && absent.is_none() {
            absent = Some(path.clone());
        }
    }
    absent
}

/// Returns a hint about how to fix a mutation that fails with `error`. `is_valid_path` is true if some objects have a
/// value at the path of the patch.
pub(super) fn fix(error: &StepError, is_valid_path: bool) -> Option<&'static str> {
    match &error.cause {
        StepCause::Decoding if error.message.ends_with(" of type string") => {
            Some("write the value as a string, such as '5' or 'true'")
        }
        // Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/patch/json_patch.go`, `Patch` (a list of Go
        // values and CEL values has no JSON form).
        StepCause::Value { misplaced: None } if error.message.ends_with(" to *structpb.Value") => {
            Some(
                "since Kubernetes 1.37, a list must not mix map literals with items that are read from the object: \
                 append the literal with a path that ends in `/-`, or rebuild the items with map()",
            )
        }
        StepCause::Value { misplaced: Some(_) } => {
            Some("use the type name that the message expects")
        }
        StepCause::Merge(_) if error.message.contains(": expected string, got &value.") => {
            Some("write the value as a string, such as '5' or 'true'")
        }
        StepCause::Merge(merge::Error::Atomic { .. }) => Some(
            "an ApplyConfiguration cannot set fields within atomic lists and maps; use a JSONPatch",
        ),
        StepCause::Merge(merge::Error::NoType(_)) => {
            Some("an ApplyConfiguration cannot be applied to this subresource; use a JSONPatch")
        }
        StepCause::Patch {
            error: PatchError::Missing(_),
            ..
        } if is_valid_path => Some(
            "first check with has() or `in` that the path exists, and add the parent map or list of the path if it is \
             absent",
        ),
        StepCause::Patch {
            error: PatchError::Missing(_),
            ..
        } => Some(
            "first check with has() or `in` that the path exists, and add the parent map or list of the path if it is \
             absent; in \
             a key, escape `/` as `~1`, as jsonpatch.escapeKey() does",
        ),
        _ => None,
    }
}

/// Returns the object literals of the type `name`.
fn object_literals<'a>(ast: &'a Ast, name: &'a str) -> impl Iterator<Item = ExprId> + 'a {
    ast.iter().filter_map(move |(id, expr)| match expr {
        Expr::Struct { type_name, .. } => {
            (type_name.strip_prefix('.').unwrap_or(type_name) == name).then_some(id)
        }
        _ => None,
    })
}

/// Returns the node of the path `expected` in the patch literals. If no patch has this path and there is only one
/// patch, returns its path, or the patch itself if its path is not a literal.
fn patch_node(ast: &Ast, patches: &[ExprId], expected: Option<&str>) -> Option<ExprId> {
    let path = |id: &ExprId| {
        let Expr::Struct { fields, .. } = ast.expr(*id) else {
            return None;
        };
        let field = fields.iter().find(|field| &*field.field == "path")?;
        match ast.expr(field.value) {
            Expr::Literal(Literal::String(text)) => Some((text.to_string(), field.value)),
            _ => None,
        }
    };
    let mut paths = patches.iter().filter_map(path);
    let named = paths.find(|(text, _)| Some(text.as_str()) == expected);
    match (named, patches) {
        (Some((_, id)), _) => Some(id),
        (None, [only]) => path(only).map(|(_, id)| id).or(Some(*only)),
        (None, _) => None,
    }
}

/// Follows `path` through the nested literals at `id` until a literal lacks the next field. Returns the number of
/// fields found, and the node of the last one.
fn deepest_field(ast: &Ast, id: ExprId, path: &[String], depth: usize) -> (usize, ExprId) {
    let current = (depth, id);
    let Some((name, rest)) = path.split_first() else {
        return current;
    };
    // The value of the next field, and the node of the field name.
    let next = match ast.expr(id) {
        Expr::Struct { fields, .. } => {
            let field = fields.iter().find(|field| *field.field == **name);
            field.map(|field| (field.value, field.id))
        }
        Expr::Map(entries) => {
            let is_key = |key: ExprId| matches!(ast.expr(key), Expr::Literal(Literal::String(text)) if **text == **name);
            let entry = entries.iter().find(|entry| is_key(entry.key));
            entry.map(|entry| (entry.value, entry.key))
        }
        Expr::List { elements, .. } => {
            let reached = elements
                .iter()
                .map(|id| deepest_field(ast, *id, path, depth));
            return reached
                .filter(|field| field.0 > depth)
                .max_by_key(|field| field.0)
                .unwrap_or(current);
        }
        _ => None,
    };
    next.map_or(current, |(value, name)| {
        let nested = deepest_field(ast, value, rest, depth.saturating_add(1));
        if nested.1 == value {
            (nested.0, name)
        } else {
            nested
        }
    })
}
