//! Namespaces, as needed by selectors and expressions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use super::object::{Labels, Object};
use super::visible;
use cel::value::Value;
use kubernetes::go_values;
use kubernetes::schema::Gvk;

/// A namespace. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Namespace {
    object: Object,
    /// The value of `namespaceObject` for validations and messages.
    visible: Arc<Forms>,
    /// The value of `namespaceObject` for audit annotations.
    whole: Arc<Forms>,
}

/// The two forms of a value.
#[derive(Debug)]
struct Forms {
    unstructured: Value,
    /// Created on first use.
    go: OnceLock<Value>,
}

impl Forms {
    fn new(unstructured: Value) -> Arc<Self> {
        Arc::new(Self {
            unstructured,
            go: OnceLock::new(),
        })
    }

    /// Returns the Go value if `go` is true, and the unstructured value otherwise.
    fn get(&self, go: bool) -> Value {
        let convert = || {
            let gvk = Gvk::new("", "v1", "Namespace");
            go_values::object(&gvk, &self.unstructured).unwrap_or(self.unstructured.clone())
        };
        if go {
            self.go.get_or_init(convert).clone()
        } else {
            self.unstructured.clone()
        }
    }
}

impl Namespace {
    /// Converts the JSON of a Namespace.
    #[must_use]
    pub fn new(namespace: &Json) -> Self {
        Self {
            object: Object::new(namespace),
            visible: Forms::new(visible::namespace(namespace, false)),
            whole: Forms::new(visible::namespace(namespace, true)),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// Returns the value for validations and messages: a Go value if `go` is true.
    pub(super) fn visible(&self, go: bool) -> Value {
        self.visible.get(go)
    }

    /// Returns the value for audit annotations: a Go value if `go` is true.
    pub(super) fn whole(&self, go: bool) -> Value {
        self.whole.get(go)
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
