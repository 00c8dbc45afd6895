//! The request that is reviewed.

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
    /// The name in rules and in `request.operation`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }

    /// The kind of the options of such a request, none of a connection.
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

    /// Reads an operation; the case of letters does not matter.
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("unknown operation `{text}`"))
    }
}

/// Who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub username: String,
    /// The unique id; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Anything else that the authenticator knows; a list that is absent is null to expressions.
    pub extra: BTreeMap<String, Option<Vec<String>>>,
}

/// A resource that serves the same objects as that of the request, in another group or version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The resource.
    pub gvr: Gvr,
    /// The kind of its objects.
    pub gvk: Gvk,
}

/// A request to an API server, as far as policies can see it.
///
/// Objects are shared, never copied. They are what the API server has when it calls its admission
/// plugins: built-in objects with defaults set and unknown fields gone.
#[derive(Clone, Debug, Default)]
pub struct AdmissionRequest {
    /// The operation of the request.
    pub operation: Operation,
    /// The kind of the object.
    pub gvk: Gvk,
    /// The resource, without a subresource.
    pub gvr: Gvr,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The name; may be empty on creation.
    pub name: String,
    /// The namespace; empty for what has none. An API server gives a namespace itself its own name.
    pub namespace: String,
    /// The object, `None` on deletion.
    pub object: Option<Object>,
    /// The object as it was before, on change and deletion.
    pub old_object: Option<Object>,
    /// The options, `None` for those that are empty.
    pub options: Option<Object>,
    /// True if nothing is stored.
    pub dry_run: bool,
    /// Who makes the request.
    pub user_info: UserInfo,
    /// Other resources that serve the same objects, for `matchPolicy: Equivalent`. Objects are converted by
    /// replacing their apiVersion and kind.
    pub equivalents: Vec<Equivalent>,
}

impl AdmissionRequest {
    /// A request that creates `object`, of the resource `gvr`; kind, name and namespace come from the
    /// object.
    #[must_use]
    pub fn create(gvr: Gvr, object: Object) -> Self {
        Self {
            gvk: object.gvk().clone(),
            gvr,
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
            object: Some(object),
            ..Self::default()
        }
    }

    /// Reports whether no policy of the API is asked about such a request, [`exempt::is_exempt`].
    ///
    /// [`Admission::review`](super::Admission::review) does not ask this: it stands for the dispatcher, and
    /// the API server leaves exempt requests out before it calls that.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        exempt::is_exempt(&self.gvr)
    }
}
