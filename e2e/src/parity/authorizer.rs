//! The authorizer of a case: a list of answers.
//!
//! Source: the oracle's `authorizer.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::authz::{
    AuthorizerAnswer, AuthorizerDecision, AuthorizerList, AuthorizerRule, AuthorizerValue, UserInfo,
};

/// A rule, as cases write it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rule {
    user: Option<String>,
    verb: Option<String>,
    group: Option<String>,
    version: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    path: Option<String>,
    decision: String,
    reason: String,
}

/// A user, as cases write it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct User {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl From<Rule> for AuthorizerRule {
    fn from(rule: Rule) -> Self {
        let (decision, is_error) = match &*rule.decision {
            "" | "allow" => (AuthorizerDecision::Allow, false),
            "deny" => (AuthorizerDecision::Deny, false),
            "error" => (AuthorizerDecision::NoOpinion, true),
            _ => (AuthorizerDecision::NoOpinion, false),
        };
        let (reason, error) = if is_error {
            (String::new(), Some(rule.reason))
        } else {
            (rule.reason, None)
        };
        Self {
            user: rule.user,
            verb: rule.verb,
            group: rule.group,
            version: rule.version,
            resource: rule.resource,
            subresource: rule.subresource,
            namespace: rule.namespace,
            name: rule.name,
            path: rule.path,
            answer: AuthorizerAnswer {
                decision,
                reason,
                error,
            },
        }
    }
}

/// The variable `authorizer` for `rules` and `user`.
#[must_use]
pub fn value(rules: Vec<Rule>, user: Option<User>) -> Value {
    let user = user.map_or_else(UserInfo::default, |user| UserInfo {
        name: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
    });
    let rules = rules.into_iter().map(AuthorizerRule::from).collect();
    Value::opaque(AuthorizerValue::new(user, Arc::new(AuthorizerList(rules))))
}
