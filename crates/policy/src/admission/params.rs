//! Looks up the params of a binding.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_dispatcher.go`,
//! `CollectParams`.

use k8s_openapi::api::admissionregistration::v1::ParamRef;

use super::object::Object;
use super::selector::{ConfigurationError, Selector};

/// The error for parameterNotFoundAction `Deny` if a binding's params are not found.
pub(crate) const NOT_FOUND: &str =
    "no params found for policy binding with `Deny` parameterNotFoundAction";

/// The objects of a policy's paramKind.
pub trait ParamSource {
    /// Returns true if objects of the paramKind are namespaced.
    fn is_namespaced(&self) -> bool;

    /// Returns the object `name` in `namespace`, or `Ok(None)` if it does not exist. `namespace` is `None` for a
    /// cluster-scoped kind.
    ///
    /// # Errors
    ///
    /// Returns an error if the objects cannot be read.
    fn get(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, String>;

    /// Returns the objects in `namespace` that `selector` selects. The policy is evaluated with them in the returned
    /// order.
    ///
    /// An API server has no fixed order. Implementations sort by namespace and name to make results reproducible.
    ///
    /// # Errors
    ///
    /// Returns an error if the objects cannot be read.
    fn list(&self, namespace: Option<&str>, selector: &Selector) -> Result<Vec<Object>, String>;
}

/// Params in memory. The default is an empty list of a cluster-scoped kind. The caller must ensure that all objects are
/// of the policy's paramKind.
#[derive(Clone, Debug, Default)]
pub struct ParamList {
    namespaced: bool,
    /// Sorted by namespace and name.
    objects: Vec<Object>,
}

impl ParamList {
    /// Creates a list of `objects` and sorts it. `namespaced` is true if their kind is namespaced.
    #[must_use]
    pub fn new(namespaced: bool, mut objects: Vec<Object>) -> Self {
        let key = |object: &Object| format!("{}/{}", object.namespace(), object.name());
        objects.sort_by_cached_key(key);
        Self {
            namespaced,
            objects,
        }
    }

    fn within<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Object> {
        self.objects
            .iter()
            .filter(move |object| namespace.is_none_or(|namespace| object.namespace() == namespace))
    }
}

impl ParamSource for ParamList {
    fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    fn get(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, String> {
        Ok(self
            .within(namespace)
            .find(|object| object.name() == name)
            .cloned())
    }

    fn list(&self, namespace: Option<&str>, selector: &Selector) -> Result<Vec<Object>, String> {
        Ok(self
            .within(namespace)
            .filter(|object| selector.matches(object.labels()))
            .cloned()
            .collect())
    }
}

/// Returns the params of a binding for a request in `namespace`. The element `None` means an evaluation without params.
///
/// `reference` is the paramRef of the binding. The policy must have a paramKind.
///
/// # Errors
///
/// Returns an error if the reference is invalid. Also returns an error if no params are found and
/// parameterNotFoundAction is `Deny`.
pub(super) fn collect(
    reference: Option<&ParamRef>,
    source: &dyn ParamSource,
    namespace: &str,
) -> Result<Vec<Option<Object>>, ConfigurationError> {
    let Some(reference) = reference else {
        return Ok(vec![None]);
    };
    let own_namespace = reference.namespace.as_deref().unwrap_or_default();
    let within = match (source.is_namespaced(), own_namespace) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".into(),
            );
        }
        (true, "") => Some(namespace),
        (true, own) => Some(own),
        (false, "") => None,
        (false, _) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into(),
            );
        }
    };
    let name = reference.name.as_deref().unwrap_or_default();
    let params: Vec<_> = match (name, &reference.selector) {
        ("", None) => return Err("one of name or selector must be provided".into()),
        ("", Some(selector)) => source.list(within, &Selector::new(selector)?)?,
        (_, Some(_)) => {
            return Err("paramRef.name and paramRef.selector are mutually exclusive".into());
        }
        (name, None) => source.get(within, name)?.into_iter().collect(),
    };
    if params.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
        return Err(NOT_FOUND.into());
    }
    Ok(params.into_iter().map(Some).collect())
}
