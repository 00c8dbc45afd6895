//! The interface of authorization checks for `authorizer` in expressions, and an implementation with a list of rules.

use std::collections::BTreeMap;
use std::fmt;

/// A user who makes a request.
///
/// Source: k8s.io/apiserver `pkg/authentication/user/user.go`, `Info`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// The unique id; may be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Extra attributes from the authentication.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// Returns the user of the service account `name` in `namespace`.
    ///
    /// Source: k8s.io/apiserver `pkg/authentication/serviceaccount/util.go`, `ServiceAccountInfo.UserInfo`.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
            ..Self::default()
        }
    }
}

/// Attributes of a request to an authorizer.
///
/// Source: k8s.io/apiserver `pkg/authorization/authorizer/interfaces.go`, `Attributes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuthorizerAttributes {
    /// The name of the user.
    pub user: String,
    /// The unique id of the user.
    pub uid: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// Extra attributes of the user.
    pub extra: BTreeMap<String, Vec<String>>,
    /// True for a resource request, false for a path.
    pub is_resource: bool,
    /// The verb.
    pub verb: String,
    /// The API group of a resource.
    pub group: String,
    /// The version of the API group.
    pub version: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The path of a non-resource request.
    pub path: String,
    /// The field selector as written in the expression. One that cannot be parsed selects everything.
    pub field_selector: String,
    /// The label selector as written in the expression. One that cannot be parsed selects everything.
    pub label_selector: String,
}

/// Decision of an authorizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizerDecision {
    /// Allowed.
    Allow,
    /// Denied.
    Deny,
    /// Neither.
    #[default]
    NoOpinion,
}

/// The response of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerAnswer {
    /// The decision.
    pub decision: AuthorizerDecision,
    /// The reason, may be empty.
    pub reason: String,
    /// The error of a failed check.
    pub error: Option<String>,
}

/// Decides authorization checks.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides a check.
    fn authorize(&self, attributes: &AuthorizerAttributes) -> AuthorizerAnswer;
}

/// A response and the checks to which it applies. A field that is `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerRule {
    /// The name of the user.
    pub user: Option<String>,
    /// The verb.
    pub verb: Option<String>,
    /// The API group.
    pub group: Option<String>,
    /// The version of the API group.
    pub version: Option<String>,
    /// The resource.
    pub resource: Option<String>,
    /// The subresource.
    pub subresource: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: Option<String>,
    /// The path.
    pub path: Option<String>,
    /// The response.
    pub answer: AuthorizerAnswer,
}

impl AuthorizerRule {
    fn matches(&self, attributes: &AuthorizerAttributes) -> bool {
        [
            (&self.user, &attributes.user),
            (&self.verb, &attributes.verb),
            (&self.group, &attributes.group),
            (&self.version, &attributes.version),
            (&self.resource, &attributes.resource),
            (&self.subresource, &attributes.subresource),
            (&self.namespace, &attributes.namespace),
            (&self.name, &attributes.name),
            (&self.path, &attributes.path),
        ]
        .into_iter()
        .all(|(wanted, attributes)| wanted.as_ref().is_none_or(|wanted| wanted == attributes))
    }
}

/// An authorizer with a list of rules. The first matching rule determines the response, which is `NoOpinion` if there
/// is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerList(pub Vec<AuthorizerRule>);

impl Authorizer for AuthorizerList {
    fn authorize(&self, attributes: &AuthorizerAttributes) -> AuthorizerAnswer {
        self.0
            .iter()
            .find(|rule| rule.matches(attributes))
            .map(|rule| rule.answer.clone())
            .unwrap_or_default()
    }
}
