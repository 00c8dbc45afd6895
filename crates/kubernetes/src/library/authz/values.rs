//! CEL values for authorization checks: the authorizer, unfinished checks, and decisions.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/authz.go` (`authorizerVal`, `pathCheckVal`, `groupCheckVal`,
//! `resourceCheckVal`, `decisionVal`, `receiverOnlyObjectVal`).

use std::sync::Arc;

use super::authorizer::{
    Authorizer, AuthorizerAnswer, AuthorizerAttributes, AuthorizerDecision, UserInfo,
};
use crate::library::types::{AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK};
use cel::decls::Sig;
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Opaque, Value};

/// The value of the variable `authorizer`: an authorizer, and the user to check.
#[derive(Clone, Debug)]
pub struct AuthorizerValue {
    user: Arc<UserInfo>,
    authorizer: Arc<dyn Authorizer>,
}

impl AuthorizerValue {
    /// Creates the value of the variable `authorizer` for a request by `user`.
    #[must_use]
    pub fn new(user: UserInfo, authorizer: Arc<dyn Authorizer>) -> Self {
        Self {
            user: Arc::new(user),
            authorizer,
        }
    }

    fn text_len(&self) -> usize {
        let groups = self.user.groups.iter().map(String::len).sum::<usize>();
        self.user.name.len().saturating_add(groups)
    }

    pub(super) fn for_service_account(&self, namespace: &str, name: &str) -> Self {
        Self::new(
            UserInfo::service_account(namespace, name),
            Arc::clone(&self.authorizer),
        )
    }

    pub(super) fn path(&self, path: &str) -> PathCheck {
        PathCheck {
            authorizer: self.clone(),
            path: path.to_owned(),
        }
    }

    pub(super) fn group(&self, group: &str) -> GroupCheck {
        GroupCheck {
            authorizer: self.clone(),
            group: group.to_owned(),
        }
    }

    /// Returns a check of a resource. For the resource of the request, this is the value of
    /// `authorizer.requestResource`.
    #[must_use]
    pub fn resource(&self, group: &str, resource: &str) -> ResourceCheck {
        self.group(group).resource(resource)
    }

    fn authorize(&self, attributes: AuthorizerAttributes) -> Decision {
        let user = &self.user;
        Decision(self.authorizer.authorize(&AuthorizerAttributes {
            user: user.name.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
            ..attributes
        }))
    }
}

/// A check of a non-resource path.
#[derive(Clone, Debug)]
pub struct PathCheck {
    authorizer: AuthorizerValue,
    path: String,
}

impl PathCheck {
    fn text_len(&self) -> usize {
        self.path.len()
    }

    pub(super) fn check(&self, verb: &str) -> Decision {
        self.authorizer.authorize(AuthorizerAttributes {
            path: self.path.clone(),
            verb: verb.to_owned(),
            ..AuthorizerAttributes::default()
        })
    }
}

/// A check of an API group. The expression has not selected a resource yet.
#[derive(Clone, Debug)]
pub struct GroupCheck {
    authorizer: AuthorizerValue,
    group: String,
}

impl GroupCheck {
    fn text_len(&self) -> usize {
        self.group.len()
    }

    pub(super) fn resource(&self, resource: &str) -> ResourceCheck {
        ResourceCheck {
            authorizer: self.authorizer.clone(),
            group: self.group.clone(),
            resource: resource.to_owned(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            field_selector: String::new(),
            label_selector: String::new(),
        }
    }
}

/// A check of a resource.
#[derive(Clone, Debug)]
pub struct ResourceCheck {
    authorizer: AuthorizerValue,
    group: String,
    resource: String,
    /// The subresource. May be empty.
    pub subresource: String,
    /// The namespace. May be empty.
    pub namespace: String,
    /// The object name. May be empty.
    pub name: String,
    pub(super) field_selector: String,
    pub(super) label_selector: String,
}

impl ResourceCheck {
    fn text_len(&self) -> usize {
        let texts = [
            &self.group,
            &self.resource,
            &self.subresource,
            &self.namespace,
            &self.name,
            &self.field_selector,
            &self.label_selector,
        ];
        texts
            .into_iter()
            .fold(0, |sum, text| sum.saturating_add(text.len()))
    }

    pub(super) fn check(&self, verb: &str) -> Decision {
        self.authorizer.authorize(AuthorizerAttributes {
            is_resource: true,
            verb: verb.to_owned(),
            group: self.group.clone(),
            version: "*".to_owned(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            field_selector: self.field_selector.clone(),
            label_selector: self.label_selector.clone(),
            ..AuthorizerAttributes::default()
        })
    }
}

/// The decision of an authorizer.
#[derive(Clone, Debug)]
pub struct Decision(AuthorizerAnswer);

impl Decision {
    fn text_len(&self) -> usize {
        let of_error = self.0.error.as_ref().map_or(0, String::len);
        self.0.reason.len().saturating_add(of_error)
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.0.decision == AuthorizerDecision::Allow
    }

    pub(super) fn reason(&self) -> &str {
        &self.0.reason
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.0.error.as_deref()
    }
}

/// Implements [`Opaque`] for types whose values have methods, but support no other operations.
macro_rules! receiver_only {
    ($($value:ty => $type_:expr, $go_type:literal);* $(;)?) => {$(
        impl Opaque for $value {
            fn type_(&self) -> Type {
                let sig: Sig = $type_;
                sig.to_type()
            }

            fn equals(&self, _: &Value) -> Result<bool, EvalError> {
                Err(EvalError::no_such_overload())
            }

            /// Returns an error message, because upstream's method `Value` returns an error for these types.
            fn text(&self) -> Option<String> {
                Some(EvalError::no_such_overload().to_string())
            }

            fn native_type(&self) -> &'static str {
                "*types.Err"
            }

            fn go_type(&self) -> &'static str {
                $go_type
            }

            fn heap_size(&self) -> usize {
                self.text_len()
            }

            fn through_native(&self, _: &EvalBudget) -> Result<Option<Value>, EvalError> {
                Err(EvalError::no_such_overload())
            }
        }
    )*};
}

receiver_only! {
    AuthorizerValue => AUTHORIZER, "library.authorizerVal";
    PathCheck => PATH_CHECK, "library.pathCheckVal";
    GroupCheck => GROUP_CHECK, "library.groupCheckVal";
    ResourceCheck => RESOURCE_CHECK, "library.resourceCheckVal";
    Decision => DECISION, "library.decisionVal";
}
