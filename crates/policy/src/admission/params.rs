//! The params of a binding.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_dispatcher.go`,
//! `CollectParams`.

use k8s_openapi::api::admissionregistration::v1::ParamRef;

use super::object::Object;
use super::selector::Selector;

/// The error where a binding denies because there are no params.
pub(crate) const NOT_FOUND: &str =
    "no params found for policy binding with `Deny` parameterNotFoundAction";

/// Where the objects of a policy's paramKind are looked up.
pub trait ParamSource {
    /// Reports whether objects of the paramKind have namespaces.
    fn is_namespaced(&self) -> bool;

    /// The object `name` in `namespace`, which is `None` where they have none.
    ///
    /// # Errors
    ///
    /// If it cannot be told whether there is such an object.
    fn get(&self, namespace: Option<&str>, name: &str) -> Result<Option<Object>, String>;

    /// The objects in `namespace` that `selector` selects, in the order in which they are evaluated.
    ///
    /// An API server has no order. That of namespaces and names makes answers repeatable.
    ///
    /// # Errors
    ///
    /// If it cannot be told which objects there are.
    fn list(&self, namespace: Option<&str>, selector: &Selector) -> Result<Vec<Object>, String>;
}

/// Params that are all at hand.
#[derive(Clone, Debug, Default)]
pub struct ParamList {
    namespaced: bool,
    /// Sorted by namespace and name.
    objects: Vec<Object>,
}

impl ParamList {
    /// The params `objects` of a kind that is `namespaced`, or not.
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

/// The params that a binding names for a request in `namespace`; `None` is an evaluation without any.
///
/// `reference` is that of a binding whose policy has a paramKind.
///
/// # Errors
///
/// What is wrong with the reference, or that nothing is found where that is not allowed.
pub(super) fn collect(
    reference: Option<&ParamRef>,
    source: &dyn ParamSource,
    namespace: &str,
) -> Result<Vec<Option<Object>>, String> {
    let Some(reference) = reference else {
        return Ok(vec![None]);
    };
    let own_namespace = reference.namespace.as_deref().unwrap_or_default();
    let within = match (source.is_namespaced(), own_namespace) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, "") => Some(namespace),
        (true, own) => Some(own),
        (false, "") => None,
        (false, _) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                    .to_owned(),
            );
        }
    };
    let name = reference.name.as_deref().unwrap_or_default();
    let params: Vec<_> = match (name, &reference.selector) {
        ("", None) => return Err("one of name or selector must be provided".to_owned()),
        ("", Some(selector)) => source.list(within, &Selector::new(selector)?)?,
        (_, Some(_)) => {
            return Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned());
        }
        (name, None) => source.get(within, name)?.into_iter().collect(),
    };
    if params.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
        return Err(NOT_FOUND.to_owned());
    }
    Ok(params.into_iter().map(Some).collect())
}
