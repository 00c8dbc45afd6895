//! Types of the CEL root variables `params`, `request` and `namespaceObject`.

use std::sync::{Arc, LazyLock, OnceLock};

use super::InputType;
use kubernetes::schema::Gvk;
use kubernetes::schema::decl_type::{DeclField, DeclKind, DeclType};
use kubernetes::schema::rest_mapper::ApiResource;
use kubernetes::validity::Root;
use serde_json::Value as Json;

#[derive(Clone, Debug)]
pub(crate) struct ParamsType<'a> {
    pub(crate) input_type: InputType<'a>,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) is_namespaced: bool,
    /// True if some binding has no paramRef. `params` may then be null.
    pub(crate) may_be_null: bool,
    /// True if no binding has a paramRef. `params` is then always null.
    pub(crate) is_always_null: bool,
    /// The params of all requests. `None` if params are generated.
    pub(crate) given: Option<Arc<Json>>,
}

fn string_type() -> Arc<DeclType> {
    Arc::new(DeclType::scalar(DeclKind::String))
}

fn fields<const N: usize>(name: &str, fields: [(&str, Arc<DeclType>, bool); N]) -> Arc<DeclType> {
    let fields = fields.map(|(name, type_, required)| DeclField::new(name, type_, required));
    DeclType::object(name, fields)
}

fn string_list_type() -> Arc<DeclType> {
    Arc::new(DeclType::list(string_type(), -1))
}

fn map_type(value: Arc<DeclType>) -> Arc<DeclType> {
    Arc::new(DeclType::map(value, -1))
}

/// Returns the type of a map from the attributes of an authorization check to its decision.
pub(crate) fn authorizer_input_type() -> InputType<'static> {
    static TYPE: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
        let decision = || Arc::new(DeclType::scalar(DeclKind::Bool));
        let decisions = [
            ("allowed", decision(), false),
            ("denied", decision(), false),
        ];
        map_type(fields("check", decisions))
    });
    InputType::custom(Arc::clone(&TYPE), None, false)
}

/// Returns the types of all root variables. `object` is the type of objects.
pub(crate) fn roots<'a>(
    object: &InputType<'a>,
    request: &InputType<'a>,
    params: Option<&ParamsType<'a>>,
) -> Vec<(Root, InputType<'a>)> {
    let mut roots = vec![
        (Root::Object, object.clone()),
        (Root::OldObject, object.clone()),
        (Root::Request, request.clone()),
        (Root::Namespace, namespace_input_type()),
    ];
    roots.extend(params.map(|params| (Root::Params, params.input_type.clone())));
    roots
}

/// Returns the type of `request`. The fields that the API server always sets are declared as required.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (`CreateAdmissionRequest`);
/// `pkg/registry/rest/create.go` (`AdmissionToValidateObjectFunc`: a generated name is present).
pub(crate) fn request_input_type(
    resource: &ApiResource,
    is_name_generated: bool,
) -> InputType<'static> {
    static TYPES: [[OnceLock<Arc<DeclType>>; 4]; 2] = [const { [const { OnceLock::new() }; 4] }; 2];
    let is_subresource = resource.gvr.is_subresource();
    let has_namespace = resource.namespaced || is_namespace(resource);
    let [of_named, of_generated] = &TYPES;
    let [plain, namespaced, subresource, namespaced_subresource] = if is_name_generated {
        of_generated
    } else {
        of_named
    };
    let cell = match (is_subresource, has_namespace) {
        (false, false) => plain,
        (false, true) => namespaced,
        (true, false) => subresource,
        (true, true) => namespaced_subresource,
    };
    let type_ =
        cell.get_or_init(|| request_type(is_subresource, has_namespace, !is_name_generated));
    // The API server omits empty values, as it does for built-in kinds.
    let gvk = Gvk::new("admission.k8s.io", "v1", "AdmissionRequest");
    InputType::builtin(Arc::clone(type_), gvk, true)
}

pub(crate) fn is_namespace(resource: &ApiResource) -> bool {
    resource.gvk.group.is_empty() && resource.gvk.kind == "Namespace"
}

fn request_type(is_subresource: bool, has_namespace: bool, has_name: bool) -> Arc<DeclType> {
    let kind = fields(
        "kind",
        [
            ("group", string_type(), true),
            ("version", string_type(), true),
            ("kind", string_type(), true),
        ],
    );
    let named = fields(
        "resource",
        [
            ("group", string_type(), true),
            ("version", string_type(), true),
            ("resource", string_type(), true),
        ],
    );
    let user = fields(
        "user",
        [
            ("username", string_type(), true),
            ("uid", string_type(), false),
            ("groups", string_list_type(), true),
            ("extra", map_type(string_list_type()), false),
        ],
    );
    let any = || Arc::new(DeclType::scalar(DeclKind::Unknown));
    fields(
        "request",
        [
            ("kind", kind.clone(), true),
            ("resource", named.clone(), true),
            ("subResource", string_type(), is_subresource),
            ("requestKind", kind, true),
            ("requestResource", named, true),
            ("requestSubResource", string_type(), is_subresource),
            ("name", string_type(), has_name),
            ("__namespace__", string_type(), has_namespace),
            ("operation", string_type(), true),
            ("userInfo", user, true),
            ("dryRun", Arc::new(DeclType::scalar(DeclKind::Bool)), true),
            ("options", any(), true),
            ("uid", string_type(), true),
            ("object", any(), true),
            ("oldObject", any(), true),
        ],
    )
}

/// Returns the type of `namespaceObject`. The fields that the API server always sets are declared as required.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (`CreateNamespaceObject`).
pub(crate) fn namespace_input_type() -> InputType<'static> {
    static TYPE: LazyLock<Arc<DeclType>> = LazyLock::new(namespace_type);
    InputType::custom(Arc::clone(&TYPE), None, false)
}

fn namespace_type() -> Arc<DeclType> {
    let metadata = fields(
        "metadata",
        [
            ("name", string_type(), true),
            ("generateName", string_type(), false),
            ("__namespace__", string_type(), false),
            ("labels", map_type(string_type()), true),
            ("annotations", map_type(string_type()), false),
            ("uid", string_type(), true),
            ("creationTimestamp", string_type(), true),
            ("resourceVersion", string_type(), true),
            (
                "generation",
                Arc::new(DeclType::scalar(DeclKind::Int)),
                false,
            ),
            ("deletionTimestamp", string_type(), false),
            (
                "deletionGracePeriodSeconds",
                Arc::new(DeclType::scalar(DeclKind::Int)),
                false,
            ),
            ("finalizers", string_list_type(), false),
        ],
    );
    let spec = fields("spec", [("finalizers", string_list_type(), true)]);
    let status = fields("status", [("phase", string_type(), true)]);
    fields(
        "namespace",
        [
            ("metadata", metadata, true),
            ("spec", spec, true),
            ("status", status, true),
        ],
    )
}
