//! Effective defaults: the value that the components of Kubernetes use for an absent field.
//!
//! Absence has two sources. Go's encoder omits the zero value of a field without a pointer, so an absent field has this
//! value. A field with a pointer is absent if it is not set. Its effective default is a decision of the component that
//! reads it, and is in [`POINTER_DEFAULTS`].

use serde_json::{Value, json};

use super::{FieldPath, Segment};
use crate::defaulting::table::{Go, Shape, Table, Type};
use crate::schema::Gvk;

/// The effective default of a field with a pointer: the Go struct, the field, and the value.
///
/// Source: the comments of the fields in `k8s.io/api` `core/v1/types.go` and `storage/v1/types.go`. For
/// `allowPrivilegeEscalation`, `k8s.io/kubernetes` `pkg/securitycontext/util.go` `AddNoNewPrivileges`; for
/// `automountServiceAccountToken`, `plugin/pkg/admission/serviceaccount/admission.go` `shouldAutomount`.
const POINTER_DEFAULTS: [(&str, &str, PointerDefault); 17] = [
    ("SecurityContext", "privileged", PointerDefault::Bool(false)),
    (
        "SecurityContext",
        "allowPrivilegeEscalation",
        PointerDefault::Bool(true),
    ),
    (
        "SecurityContext",
        "readOnlyRootFilesystem",
        PointerDefault::Bool(false),
    ),
    (
        "SecurityContext",
        "runAsNonRoot",
        PointerDefault::Bool(false),
    ),
    (
        "SecurityContext",
        "procMount",
        PointerDefault::Text("Default"),
    ),
    (
        "PodSecurityContext",
        "runAsNonRoot",
        PointerDefault::Bool(false),
    ),
    (
        "WindowsSecurityContextOptions",
        "hostProcess",
        PointerDefault::Bool(false),
    ),
    (
        "PodSpec",
        "automountServiceAccountToken",
        PointerDefault::Bool(true),
    ),
    (
        "ServiceAccount",
        "automountServiceAccountToken",
        PointerDefault::Bool(true),
    ),
    (
        "PodSpec",
        "shareProcessNamespace",
        PointerDefault::Bool(false),
    ),
    ("PodSpec", "hostUsers", PointerDefault::Bool(true)),
    ("PodSpec", "setHostnameAsFQDN", PointerDefault::Bool(false)),
    ("ConfigMap", "immutable", PointerDefault::Bool(false)),
    ("Secret", "immutable", PointerDefault::Bool(false)),
    (
        "StorageClass",
        "allowVolumeExpansion",
        PointerDefault::Bool(false),
    ),
    (
        "SecretVolumeSource",
        "optional",
        PointerDefault::Bool(false),
    ),
    (
        "ConfigMapVolumeSource",
        "optional",
        PointerDefault::Bool(false),
    ),
];

#[derive(Clone, Copy)]
enum PointerDefault {
    Bool(bool),
    Text(&'static str),
}

impl PointerDefault {
    fn value(self) -> Value {
        match self {
            Self::Bool(value) => value.into(),
            Self::Text(text) => text.into(),
        }
    }
}

/// Returns the value that an absent field of the built-in kind `gvk` stands for: a boolean, a number, a string, an empty
/// list or an empty map. `None` if there is no such value, if `path` ends with a key of a map or an index of a list, or if
/// the kind is not in the table of defaults.
#[must_use]
pub fn effective_default(gvk: &Gvk, path: &FieldPath) -> Option<Value> {
    let table = Table::get().ok()?;
    let mut struct_name = &*gvk.kind;
    let mut go = Go {
        type_: Type("*"),
        text: "",
    };
    let mut struct_ = Some(table.kind(gvk)?.root);
    let mut last = None;
    for segment in &path.segments {
        match (segment, struct_) {
            (Segment::Field(name), Some(n)) => {
                let field = table.fields(n).iter().find(|field| field.0 == **name)?;
                last = Some((struct_name, &*field.0));
                go = field.go();
            }
            _ => {
                last = None;
                let (Shape::List(inner) | Shape::Map(inner)) = go.type_.shape() else {
                    return None;
                };
                go = go.within(inner);
            }
        }
        if let Shape::Pointer(inner) = go.type_.shape()
            && let Shape::Struct(n) = inner.shape()
        {
            struct_name = go.within(inner).name();
            struct_ = Some(n);
        } else if let Shape::Struct(n) = go.type_.shape() {
            struct_name = go.name();
            struct_ = Some(n);
        } else {
            struct_ = None;
        }
    }
    let (struct_name, field) = last?;
    match go.type_.shape() {
        Shape::Text => Some(json!("")),
        Shape::Bool => Some(json!(false)),
        Shape::Int => Some(json!(0)),
        Shape::List(_) => Some(json!([])),
        Shape::Map(_) => Some(json!({})),
        Shape::Pointer(_) => POINTER_DEFAULTS
            .iter()
            .find(|(name, of, _)| *name == struct_name && *of == field)
            .map(|(_, _, default)| default.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Root;
    use super::*;

    fn default_of(gvk: (&str, &str, &str), path: &str) -> Option<Value> {
        let gvk = Gvk::new(gvk.0, gvk.1, gvk.2);
        let segments = path.split('.').map(|part| match part.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Field(part.into()),
        });
        let path = FieldPath {
            root: Root::Object,
            segments: segments.collect(),
        };
        effective_default(&gvk, &path)
    }

    #[test]
    fn zero_values_and_pointers_have_effective_defaults() {
        let pod = ("", "v1", "Pod");
        let deployment = ("apps", "v1", "Deployment");
        let cases = [
            (pod, "spec.hostNetwork", Some(json!(false))),
            (pod, "spec.hostname", Some(json!(""))),
            (pod, "spec.initContainers", Some(json!([]))),
            (pod, "spec.nodeSelector", Some(json!({}))),
            (pod, "metadata.labels", Some(json!({}))),
            (pod, "metadata.labels.app", None),
            (pod, "spec.automountServiceAccountToken", Some(json!(true))),
            (pod, "spec.hostUsers", Some(json!(true))),
            (pod, "spec.securityContext", None),
            (pod, "spec.securityContext.runAsUser", None),
            (pod, "spec.securityContext.runAsNonRoot", Some(json!(false))),
            (
                pod,
                "spec.containers.0.securityContext.allowPrivilegeEscalation",
                Some(json!(true)),
            ),
            (
                pod,
                "spec.containers.0.securityContext.privileged",
                Some(json!(false)),
            ),
            (
                deployment,
                "spec.template.spec.containers.0.securityContext.readOnlyRootFilesystem",
                Some(json!(false)),
            ),
            (deployment, "spec.paused", Some(json!(false))),
            (deployment, "spec.progressDeadlineSeconds", None),
            (
                ("", "v1", "ServiceAccount"),
                "automountServiceAccountToken",
                Some(json!(true)),
            ),
            (("example.com", "v1", "Widget"), "spec.size", None),
        ];
        for (gvk, path, expected) in cases {
            assert_eq!(default_of(gvk, path), expected, "{} {path}", gvk.2);
        }
    }

    #[test]
    fn each_pointer_default_is_a_field_of_a_go_struct() {
        let table = Table::get().unwrap();
        for (struct_name, field, _) in POINTER_DEFAULTS {
            let is_kind = table.kinds().any(|gvk| {
                *gvk.kind == *struct_name
                    && table
                        .kind(gvk)
                        .and_then(|kind| table.type_of(kind.root, field))
                        .is_some_and(Type::is_pointer)
            });
            let is_nested = table.structs.iter().flatten().any(|outer| {
                let go = outer.go();
                go.text.rsplit(['.', '*', ']']).next() == Some(struct_name)
                    && go
                        .type_
                        .struct_within()
                        .and_then(|n| table.type_of(n, field))
                        .is_some_and(Type::is_pointer)
            });
            assert!(is_kind || is_nested, "{struct_name}.{field}");
        }
    }
}
