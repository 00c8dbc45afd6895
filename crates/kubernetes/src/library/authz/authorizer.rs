//! Who may do what: what `authorizer` in expressions asks, and answers from a list.

use std::collections::BTreeMap;
use std::fmt;

/// Who asks.
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
    /// What else the authentication knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// The user that the service account `name` of `namespace` is.
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

/// What is asked of an authorizer.
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
    /// What else is known of the user.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Whether a resource is asked for, or a path.
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
    /// The path of a request that is for no resource.
    pub path: String,
    /// The selector of fields, as the expression wrote it; one that cannot be read selects everything.
    pub field_selector: String,
    /// The selector of labels, as the expression wrote it; one that cannot be read selects everything.
    pub label_selector: String,
}

/// What an authorizer decides.
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

/// The answer of an authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerAnswer {
    /// The decision.
    pub decision: AuthorizerDecision,
    /// Why; may be empty.
    pub reason: String,
    /// Why it could not be told.
    pub error: Option<String>,
}

/// Answers who may do what.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// The answer to a check.
    fn authorize(&self, attributes: &AuthorizerAttributes) -> AuthorizerAnswer;
}

/// An answer, and the checks that it answers: a field that is `None` fits all.
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
    /// The answer.
    pub answer: AuthorizerAnswer,
}

impl AuthorizerRule {
    fn fits(&self, asked: &AuthorizerAttributes) -> bool {
        [
            (&self.user, &asked.user),
            (&self.verb, &asked.verb),
            (&self.group, &asked.group),
            (&self.version, &asked.version),
            (&self.resource, &asked.resource),
            (&self.subresource, &asked.subresource),
            (&self.namespace, &asked.namespace),
            (&self.name, &asked.name),
            (&self.path, &asked.path),
        ]
        .into_iter()
        .all(|(wanted, asked)| wanted.as_ref().is_none_or(|wanted| wanted == asked))
    }
}

/// An authorizer with a list of answers: the first rule that fits answers, and where none does there is no
/// opinion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerList(pub Vec<AuthorizerRule>);

impl Authorizer for AuthorizerList {
    fn authorize(&self, attributes: &AuthorizerAttributes) -> AuthorizerAnswer {
        self.0
            .iter()
            .find(|rule| rule.fits(attributes))
            .map(|rule| rule.answer.clone())
            .unwrap_or_default()
    }
}
