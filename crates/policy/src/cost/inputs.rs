//! The types of `request` and `namespaceObject` for cost estimates.

use std::sync::Arc;

use kubernetes::schema::{DeclField, DeclKind, DeclType};

/// The assumed maximum number of groups of a user, and of labels and annotations of a namespace.
const MAX_ENTRIES: i64 = 1000;

/// The assumed maximum length of the name of a user or group.
const MAX_GROUP_LENGTH: i64 = 256;

/// The maximum length of a name.
///
/// Source: k8s.io/apimachinery `pkg/util/validation/validation.go`, `DNS1123SubdomainMaxLength`.
const MAX_NAME_LENGTH: i64 = 253;

/// The maximum length of a label's value and of the name of a namespace.
///
/// Source: k8s.io/apimachinery `pkg/util/validation/validation.go`, `LabelValueMaxLength`, `DNS1123LabelMaxLength`.
const MAX_LABEL_LENGTH: i64 = 63;

/// The maximum size of all annotations of an object, in bytes.
///
/// Source: k8s.io/apimachinery `pkg/api/validation/objectmeta.go`, `TotalAnnotationSizeLimitB`.
const MAX_ANNOTATIONS_SIZE: i64 = 256 * 1024;

/// Returns the type of `request`, with the fields whose size matters.
pub(super) fn request() -> Arc<DeclType> {
    let groups = DeclType::list(text(MAX_GROUP_LENGTH), MAX_ENTRIES);
    let user = [
        DeclField::new("username", text(MAX_GROUP_LENGTH), true),
        DeclField::new("groups", Arc::new(groups), true),
    ];
    let fields = [
        DeclField::new("name", text(MAX_NAME_LENGTH), true),
        DeclField::new("namespace", text(MAX_LABEL_LENGTH), true),
        DeclField::new("userInfo", DeclType::object("UserInfo", user), true),
    ];
    DeclType::object("AdmissionRequest", fields)
}

/// Returns the type of `namespaceObject`, with the fields whose size matters.
pub(super) fn namespace() -> Arc<DeclType> {
    let map = |value| Arc::new(DeclType::map(value, MAX_ENTRIES));
    let metadata = [
        DeclField::new("name", text(MAX_LABEL_LENGTH), true),
        DeclField::new("labels", map(text(MAX_LABEL_LENGTH)), true),
        DeclField::new("annotations", map(text(MAX_ANNOTATIONS_SIZE)), true),
    ];
    let metadata = DeclType::object("ObjectMeta", metadata);
    DeclType::object("Namespace", [DeclField::new("metadata", metadata, true)])
}

/// Returns the type of a string with at most `max_length` code points.
pub(super) fn text(max_length: i64) -> Arc<DeclType> {
    let mut text = DeclType::scalar(DeclKind::String);
    text.max_elements = max_length;
    Arc::new(text)
}
