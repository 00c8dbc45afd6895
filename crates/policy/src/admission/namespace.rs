//! Namespaces, as needed by selectors and expressions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use super::object::{Labels, Object};
use super::visible;
use cel::value::Value;
use kubernetes::go_values;
use kubernetes::schema::Gvk;
use kubernetes::version::Behavior;

/// A namespace. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Namespace {
    object: Object,
    /// The value of `namespaceObject` for validations and messages.
    visible: Arc<Forms>,
    /// The value of `namespaceObject` for audit annotations.
    whole: Arc<Forms>,
}

/// The representations of one value in the supported versions.
#[derive(Debug)]
struct Forms {
    unstructured: Value,
    /// The unstructured value for versions without [`Behavior::omits_zero_times`]. `None` if it equals `unstructured`.
    with_null_time: Option<Value>,
    /// The Go value, created on first use.
    go: OnceLock<Value>,
}

impl Forms {
    /// Converts the JSON of a Namespace. If `whole` is true, includes the metadata that only audit annotations can read.
    fn new(namespace: &Json, whole: bool) -> Arc<Self> {
        let has_time = visible::has_creation_time(namespace);
        Arc::new(Self {
            unstructured: visible::namespace(namespace, whole, true),
            with_null_time: (!has_time).then(|| visible::namespace(namespace, whole, false)),
            go: OnceLock::new(),
        })
    }

    fn get(&self, behavior: &Behavior) -> Value {
        let convert = || {
            let gvk = Gvk::new("", "v1", "Namespace");
            go_values::object(&gvk, &self.unstructured).unwrap_or(self.unstructured.clone())
        };
        match &self.with_null_time {
            _ if behavior.reads_go_values => self.go.get_or_init(convert).clone(),
            Some(value) if !behavior.omits_zero_times => value.clone(),
            _ => self.unstructured.clone(),
        }
    }
}

impl Namespace {
    /// Converts the JSON of a Namespace.
    #[must_use]
    pub fn new(namespace: &Json) -> Self {
        Self {
            object: Object::new(namespace),
            visible: Forms::new(namespace, false),
            whole: Forms::new(namespace, true),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// Returns the value for validations and messages in the version with `behavior`.
    pub(super) fn visible(&self, behavior: &Behavior) -> Value {
        self.visible.get(behavior)
    }

    /// Returns the value for audit annotations in the version with `behavior`.
    pub(super) fn whole(&self, behavior: &Behavior) -> Value {
        self.whole.get(behavior)
    }

    /// Returns the labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        self.object.labels()
    }
}

/// A lookup of namespaces by name.
pub trait NamespaceSource {
    /// Returns the namespace `name`. `None` if it does not exist.
    fn namespace(&self, name: &str) -> Option<Namespace>;
}

/// At most one namespace.
impl NamespaceSource for Option<Namespace> {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.as_ref()
            .filter(|namespace| namespace.name() == name)
            .cloned()
    }
}

/// Namespaces by name.
impl NamespaceSource for BTreeMap<String, Namespace> {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.get(name).cloned()
    }
}
