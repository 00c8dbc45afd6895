//! Namespaces, as selectors and as expressions see them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::object::{Labels, Object};
use super::visible;
use cel::value::Value;

/// A namespace. Copies share it.
#[derive(Clone, Debug)]
pub struct Namespace {
    object: Object,
    /// The value that validations and messages see.
    visible: Value,
    /// The value that audit annotations see.
    whole: Value,
}

impl Namespace {
    /// Reads a namespace.
    #[must_use]
    pub fn new(namespace: &Json) -> Self {
        Self {
            object: Object::new(namespace),
            visible: visible::namespace(namespace, false),
            whole: visible::namespace(namespace, true),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// The variable `namespaceObject` of validations and messages.
    pub(super) fn visible(&self) -> &Value {
        &self.visible
    }

    /// The variable `namespaceObject` of audit annotations.
    pub(super) fn whole(&self) -> &Value {
        &self.whole
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        self.object.labels()
    }
}

/// Where namespaces are looked up by their names.
pub trait NamespaceSource {
    /// The namespace `name`, or `None` where there is none.
    fn namespace(&self, name: &str) -> Option<Namespace>;
}

/// No namespaces, or one.
impl NamespaceSource for Option<Namespace> {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.as_ref()
            .filter(|namespace| namespace.name() == name)
            .cloned()
    }
}

/// Namespaces by their names.
impl NamespaceSource for BTreeMap<String, Namespace> {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        self.get(name).cloned()
    }
}
