//! The interface for the variable `authorizer`, and an implementation with a list of rules.

use std::collections::BTreeMap;
use std::fmt;

/// The user of a request.
///
/// Source: k8s.io/apiserver `pkg/authentication/user/user.go`, `Info`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The user name.
    pub name: String,
    /// The unique id. May be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Extra attributes set by the authenticator.
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

/// The input of an authorization check.
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
    /// True for a resource, false for a path.
    pub is_resource: bool,
    /// The requested verb, such as `get`.
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
    /// The path, for a check without a resource.
    pub path: String,
    /// The field selector, exactly as in the expression. An invalid selector selects everything.
    pub field_selector: String,
    /// The label selector, exactly as in the expression. An invalid selector selects everything.
    pub label_selector: String,
}

/// The decision of an authorizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AuthorizerDecision {
    /// The request is allowed.
    Allow,
    /// The request is denied.
    Deny,
    /// The authorizer neither allows nor denies the request.
    #[default]
    NoOpinion,
}

/// The result of an authorization check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AuthorizerAnswer {
    /// The decision.
    pub decision: AuthorizerDecision,
    /// The reason for the decision. May be empty.
    pub reason: String,
    /// The error, if the check failed.
    pub error: Option<String>,
}

/// Performs authorization checks for CEL expressions.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Performs an authorization check.
    fn authorize(&self, attributes: &AuthorizerAttributes) -> AuthorizerAnswer;
}

/// A rule with the result of all checks whose attributes match the fields. A field that is `None` matches any value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AuthorizerRule {
    /// The user name to match.
    pub user: Option<String>,
    /// The verb to match.
    pub verb: Option<String>,
    /// The API group to match.
    pub group: Option<String>,
    /// The version of the API group to match.
    pub version: Option<String>,
    /// The resource to match.
    pub resource: Option<String>,
    /// The subresource to match.
    pub subresource: Option<String>,
    /// The namespace to match.
    pub namespace: Option<String>,
    /// The object name to match.
    pub name: Option<String>,
    /// The path to match, for checks without a resource.
    pub path: Option<String>,
    /// The result of matching checks.
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

/// An authorizer with a list of rules. The first rule that matches a check determines its result. If no rule matches,
/// the decision is `NoOpinion`.
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
