//! Namespaces, as needed by selectors and expressions.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::object::{Labels, Object};
use super::visible;
use cel::value::Value;

/// A namespace. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Namespace {
    object: Object,
    /// The value of `namespaceObject` for validations and messages.
    visible: Value,
    /// The value of `namespaceObject` for audit annotations.
    whole: Value,
}

impl Namespace {
    /// Converts the JSON of a Namespace.
    #[must_use]
    pub fn new(namespace: &Json) -> Self {
        Self {
            object: Object::new(namespace),
            visible: visible::namespace(namespace, false),
            whole: visible::namespace(namespace, true),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    pub(super) fn visible(&self) -> &Value {
        &self.visible
    }

    pub(super) fn whole(&self) -> &Value {
        &self.whole
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
