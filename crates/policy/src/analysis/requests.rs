//! Groups the requests for a kind into classes by operation and resource, and determines the values of the inputs in
//! each class. An expression is interpreted once for each class.

use std::sync::Arc;

use cel::ast::{Expr, Literal};
use cel::types::{FieldTypes, StructType, Type};
use kubernetes::schema::Gvk;

use super::interpret::value::{AbstractType, AbstractValue, Const, Object};
use crate::compile::CompiledPolicy;
use crate::environment::{authorizer_types, evaluated_types};
use crate::matching::{Operations, Target};
use crate::reads::Input;

/// Maximum number of resources of one kind that are analyzed separately.
const MAX_RESOURCES: usize = 8;

/// The properties of requests that the policy's expressions may distinguish.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestFeatures {
    operations: bool,
    resources: bool,
}

impl RequestFeatures {
    pub(super) fn new(policy: &CompiledPolicy) -> Self {
        let mut features = Self::default();
        for ast in policy.expressions().iter().filter_map(|e| e.parsed().ok()) {
            for (_, expr) in ast.iter() {
                match expr {
                    Expr::Ident(name) => {
                        let is_old = Input::from_name(name) == Some(Input::OldObject);
                        features.operations |= is_old;
                    }
                    Expr::Literal(Literal::Null) => features.operations = true,
                    Expr::Select { field, .. } => features.add_field(field),
                    Expr::Literal(Literal::String(text)) => features.add_field(text),
                    _ => {}
                }
            }
        }
        features
    }

    fn add_field(&mut self, field: &str) {
        self.operations |= field == "operation";
        self.resources |= matches!(
            field,
            "resource" | "subResource" | "requestResource" | "requestSubResource"
        );
    }
}

/// A set of requests that the policy does not distinguish.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestClass<'a> {
    /// `None` if the class has several operations.
    operation: Option<&'static str>,
    /// `None` if the class has several resources.
    target: Option<&'a Target<'a>>,
}

/// Returns the classes of requests for the resources `targets` of a kind. `features` determines how requests are
/// grouped.
pub(super) fn classes<'t>(
    features: RequestFeatures,
    targets: &'t [&'t Target<'t>],
) -> Vec<RequestClass<'t>> {
    let mut classes = Vec::new();
    let split: Vec<&[&Target<'_>]> = if features.resources && targets.len() <= MAX_RESOURCES {
        targets.chunks(1).collect()
    } else {
        vec![targets]
    };
    for part in split {
        let target = match part {
            [only] => Some(*only),
            _ => None,
        };
        let operations = Operations::NAMES.into_iter().filter(|name| {
            let has = |target: &&Target<'_>| target.operations.names().any(|n| n == *name);
            part.iter().any(has)
        });
        let operations: Vec<_> = operations.collect();
        if features.operations || *operations == ["DELETE"] {
            classes.extend(operations.into_iter().map(|operation| RequestClass {
                operation: Some(operation),
                target,
            }));
        } else {
            classes.push(RequestClass {
                operation: None,
                target,
            });
        }
    }
    classes
}

/// The properties of a request class that affect the result of [`roots`]. The object type, the kind and the resource
/// are not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RequestVariant {
    operation: Option<&'static str>,
    is_namespaced: Option<bool>,
    is_of_namespaces: bool,
}

/// Returns the variants of all classes of requests for the resources `targets` of the kind `gvk`.
pub(super) fn variants(
    features: RequestFeatures,
    gvk: &Gvk,
    targets: &[&Target<'_>],
) -> Vec<RequestVariant> {
    let classes = classes(features, targets).into_iter();
    let variant = |class: RequestClass<'_>| RequestVariant {
        operation: class.operation,
        is_namespaced: class.is_namespaced(),
        is_of_namespaces: is_namespace(gvk),
    };
    classes.map(variant).collect()
}

impl RequestClass<'_> {
    /// Returns true if the objects are namespaced. `None` if the class has several resources.
    fn is_namespaced(&self) -> Option<bool> {
        self.target.map(|target| target.resource.namespaced)
    }
}

fn is_namespace(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && gvk.kind == "Namespace"
}

/// Returns a type for objects of kinds without a schema. Such objects have metadata and may have any other field.
/// `metadata` is the type of metadata in the schema of another kind, if known.
pub(super) fn schemaless_type(metadata: Option<Type>) -> Type {
    Type::Struct(StructType::new(
        "object",
        Arc::new(SchemalessFields {
            metadata: metadata.unwrap_or(Type::Dyn),
        }),
    ))
}

pub(super) fn metadata_type(object: &Type) -> Option<Type> {
    match object {
        Type::Struct(object) => {
            let fields = object.fields.as_ref()?;
            fields.field_type(&object.name, "metadata")
        }
        _ => None,
    }
}

#[derive(Debug)]
struct SchemalessFields {
    metadata: Type,
}

impl FieldTypes for SchemalessFields {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        Some(match field {
            "metadata" => self.metadata.clone(),
            _ => Type::Dyn,
        })
    }

    fn field_names(&self) -> Vec<&str> {
        vec!["metadata"]
    }

    fn may_hold(&self, _field: &str) -> bool {
        true
    }
}

/// Optional fields that the API server always writes, even if they are null: group, kind and field. All objects have
/// them, so `has(object.rules)` is also true for a role without rules.
///
/// Source: `k8s.io/api` `rbac/v1/types.go`, `discovery/v1/types.go`, `scheduling/v1/types.go`, `core/v1/types.go` (no
/// `omitempty`).
const ALWAYS_WRITTEN: [(&str, &str, &str); 7] = [
    ("rbac.authorization.k8s.io", "ClusterRole", "rules"),
    ("rbac.authorization.k8s.io", "Role", "rules"),
    ("discovery.k8s.io", "EndpointSlice", "endpoints"),
    ("discovery.k8s.io", "EndpointSlice", "ports"),
    ("scheduling.k8s.io", "PriorityClass", "value"),
    ("", "Event", "reportingComponent"),
    ("", "Event", "reportingInstance"),
];

/// Returns the fields of `gvk` in [`ALWAYS_WRITTEN`].
fn always_written(gvk: &Gvk) -> impl Iterator<Item = &'static str> {
    let of_kind = ALWAYS_WRITTEN
        .iter()
        .filter(|(group, kind, _)| (*group, *kind) == (&*gvk.group, &*gvk.kind));
    of_kind.map(|(.., field)| *field)
}

/// Returns true if [`ALWAYS_WRITTEN`] lists fields of `gvk`.
pub(super) fn is_written_in_full(gvk: &Gvk) -> bool {
    always_written(gvk).next().is_some()
}

/// Returns the names and abstract values of the root variables for one class of requests.
pub(super) fn roots(
    gvk: &Gvk,
    object: &Type,
    params: Option<&Type>,
    class: RequestClass<'_>,
) -> Vec<(&'static str, AbstractValue)> {
    let text = |text: &str| AbstractValue::constant(Const::Text(Arc::from(text)));
    let mut known_fields = vec![
        ("kind", text(&gvk.kind)),
        ("apiVersion", text(&gvk.api_version())),
    ];
    if let Type::Struct(object) = object
        && let Some(fields) = &object.fields
    {
        known_fields.extend(always_written(gvk).filter_map(|field| {
            let type_ = fields.field_type(&object.name, field)?;
            Some((field, AbstractValue::from_type(&type_)))
        }));
    }
    let subject = with_known(object, known_fields);
    let null = || AbstractValue::constant(Const::Null);
    let (new, old) = match class.operation {
        Some("CREATE" | "CONNECT") => (subject, null()),
        Some("DELETE") => (null(), subject),
        _ => (subject.clone(), subject),
    };
    let (request, namespace) = evaluated_types();
    // In a request for a Namespace, the namespace of the request is the name of the Namespace itself.
    let namespace = match class.is_namespaced() {
        Some(false) if is_namespace(gvk) => AbstractValue::json(),
        Some(false) => null(),
        Some(true) => with_known(&namespace, Vec::new()),
        None => AbstractValue::from_type(&namespace),
    };
    let (authorizer, resource_check) = authorizer_types();
    let mut roots = vec![
        ("object", new),
        ("oldObject", old),
        ("namespaceObject", namespace),
        ("request", request_value(&request, gvk, class)),
        ("authorizer", AbstractValue::plain(authorizer)),
        (
            "authorizer.requestResource",
            AbstractValue::plain(resource_check),
        ),
    ];
    roots.extend(params.map(|params| ("params", AbstractValue::from_type(params))));
    roots
}

fn request_value(request: &Type, gvk: &Gvk, class: RequestClass<'_>) -> AbstractValue {
    let text = |text: &str| AbstractValue::constant(Const::Text(Arc::from(text)));
    let field = |name: &str| match request {
        Type::Struct(object) => object
            .fields
            .as_ref()
            .and_then(|fields| fields.field_type(&object.name, name))
            .unwrap_or(Type::Dyn),
        _ => Type::Dyn,
    };
    let group_version_kind = vec![
        ("group", text(&gvk.group)),
        ("version", text(&gvk.version)),
        ("kind", text(&gvk.kind)),
    ];
    let mut known_fields = vec![
        ("kind", with_known(&field("kind"), group_version_kind)),
        (
            "requestKind",
            with_known(&field("requestKind"), vec![("kind", text(&gvk.kind))]),
        ),
    ];
    if let Some(operation) = class.operation {
        known_fields.push(("operation", text(operation)));
    }
    if let Some(target) = class.target {
        let gvr = &target.resource.gvr;
        let (resource, subresource) = gvr.resource.split_once('/').unwrap_or((&gvr.resource, ""));
        let resources = vec![
            ("group", text(&gvr.group)),
            ("version", text(&gvr.version)),
            ("resource", text(resource)),
        ];
        known_fields.push(("resource", with_known(&field("resource"), resources)));
        known_fields.push((
            "requestResource",
            with_known(
                &field("requestResource"),
                vec![("resource", text(resource))],
            ),
        ));
        // `request` has no field for an empty subresource.
        let subresource = if subresource.is_empty() {
            AbstractValue::bottom()
        } else {
            text(subresource)
        };
        known_fields.push(("subResource", subresource.clone()));
        known_fields.push(("requestSubResource", subresource));
    }
    with_known(request, known_fields)
}

/// Returns an object of the type `type_`. The fields in `known` have more precise values than declared.
fn with_known(type_: &Type, known: Vec<(&'static str, AbstractValue)>) -> AbstractValue {
    match type_ {
        Type::Struct(object) if object.fields.is_some() => {
            AbstractValue::new(AbstractType::Object(Object {
                type_: object.clone(),
                known: Some(known.into()),
            }))
        }
        _ => AbstractValue::from_type(type_),
    }
}
