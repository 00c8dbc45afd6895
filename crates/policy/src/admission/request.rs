//! Admission requests.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::object::Object;
use crate::exempt;
use kubernetes::schema::{Gvk, Gvr};

/// The operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An object is created.
    #[default]
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// A connection to an object is opened.
    Connect,
}

impl Operation {
    /// Returns the name of the operation in rules and in `request.operation`, such as `CREATE`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// Returns the kind of `request.options` for this operation. `None` for CONNECT.
    #[must_use]
    pub fn options_kind(self) -> Option<&'static str> {
        match self {
            Self::Create => Some("CreateOptions"),
            Self::Update => Some("UpdateOptions"),
            Self::Delete => Some("DeleteOptions"),
            Self::Connect => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Operation {
    type Err = String;

    /// Parses an operation. The case of letters is ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| {
                format!("unknown operation `{text}`: use CREATE, UPDATE, DELETE or CONNECT")
            })
    }
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub username: String,
    /// The unique id. It may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes from the authenticator. A value `None` is null in expressions.
    pub extra: BTreeMap<String, Option<Vec<String>>>,
}

/// A resource in another group or version that serves the same objects as the request's resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The resource.
    pub gvr: Gvr,
    /// The kind of the resource's objects.
    pub gvk: Gvk,
}

/// A request to an API server, as admission plugins receive it.
///
/// Clones share the objects. The API server sets defaults and drops unknown fields before admission. For objects of
/// built-in kinds, the caller must do this, for example with [`kubernetes::defaulting::prepare`].
#[derive(Clone, Debug, Default)]
pub struct AdmissionRequest {
    /// The operation of the request.
    pub operation: Operation,
    /// The kind of the object.
    pub gvk: Gvk,
    /// The resource, without a subresource.
    pub gvr: Gvr,
    /// The subresource. Empty for the resource itself.
    pub subresource: String,
    /// The name. It may be empty for CREATE.
    pub name: String,
    /// The namespace. Empty for cluster-scoped objects. For a Namespace, its own name.
    pub namespace: String,
    /// The object. `None` for DELETE.
    pub object: Option<Object>,
    /// The previous object. Set for UPDATE and DELETE.
    pub old_object: Option<Object>,
    /// The options. `None` for the default options of the operation ([`Operation::options_kind`]).
    pub options: Option<Object>,
    /// True for a dry run.
    pub dry_run: bool,
    /// The user.
    pub user_info: UserInfo,
    /// Other resources that serve the same objects, for `matchPolicy: Equivalent`. An object is converted to another
    /// version by replacing its apiVersion and kind.
    pub equivalents: Vec<Equivalent>,
}

impl AdmissionRequest {
    /// Returns a request to create `object` as the resource `gvr`. The kind, name and namespace come from the object. The
    /// user is empty, and there are no equivalent resources: set these fields if the policy reads them.
    #[must_use]
    pub fn create(gvr: Gvr, object: Object) -> Self {
        let mut request = Self::about(Operation::Create, gvr, &object);
        request.object = Some(object);
        request
    }

    /// Returns a request to change `old_object` to `object`, like [`AdmissionRequest::create`].
    #[must_use]
    pub fn update(gvr: Gvr, object: Object, old_object: Object) -> Self {
        let mut request = Self::about(Operation::Update, gvr, &object);
        request.object = Some(object);
        request.old_object = Some(old_object);
        request
    }

    /// Returns a request to delete `old_object`, like [`AdmissionRequest::create`].
    #[must_use]
    pub fn delete(gvr: Gvr, old_object: Object) -> Self {
        let mut request = Self::about(Operation::Delete, gvr, &old_object);
        request.old_object = Some(old_object);
        request
    }

    fn about(operation: Operation, gvr: Gvr, object: &Object) -> Self {
        Self {
            operation,
            gvk: object.gvk().clone(),
            gvr,
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
            ..Self::default()
        }
    }

    /// Returns true if the request is exempt from all policies ([`exempt::is_exempt`]).
    ///
    /// [`Admission::review`](super::Admission::review) does not check this, because it corresponds to the API server's
    /// dispatcher. The API server does not call the dispatcher for exempt requests.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        exempt::is_exempt(&self.gvr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn request_of_each_operation_has_its_objects() {
        let object = |name: &str| {
            let metadata = json!({"name": name, "namespace": "n"});
            Object::new(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}))
        };
        let gvr = || Gvr::new("", "v1", "pods");
        let create = AdmissionRequest::create(gvr(), object("a"));
        let update = AdmissionRequest::update(gvr(), object("b"), object("a"));
        let delete = AdmissionRequest::delete(gvr(), object("c"));
        let names = |request: &AdmissionRequest| {
            let objects = [&request.object, &request.old_object];
            objects.map(|object| object.as_ref().map(|object| object.name().to_owned()))
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(names(&create), [some("a"), None]);
        assert_eq!(names(&update), [some("b"), some("a")]);
        assert_eq!(names(&delete), [None, some("c")]);
        for (request, operation, name) in [
            (create, Operation::Create, "a"),
            (update, Operation::Update, "b"),
            (delete, Operation::Delete, "c"),
        ] {
            assert_eq!(request.operation, operation);
            assert_eq!((&*request.name, &*request.namespace), (name, "n"));
            assert_eq!(&*request.gvk.kind, "Pod");
        }
    }
}
