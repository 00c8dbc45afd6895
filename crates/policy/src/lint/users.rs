//! Finds tests of the user name and the groups of a request that are never true, or that match more users than
//! intended.

use std::collections::HashMap;

use cel::ast::{Ast, ExprId};
use cel::source::SourceMap;

use super::Lint;
use super::path::path;
use super::positions::{Elements, StringTest, StringTestKind, conditions, string_test};
use crate::advice::Advice;
use crate::expressions::{PolicyExpression, Role};
use crate::nearest::nearest_only;
use crate::rule::Rule;

/// The groups that Kubernetes defines.
///
/// Source: `k8s.io/apiserver` `pkg/authentication/user/user.go` (`SystemPrivilegedGroup`, `NodesGroup`,
/// `MonitoringGroup`, `AllUnauthenticated`, `AllAuthenticated`), `pkg/authentication/serviceaccount/util.go`
/// (`AllServiceAccountsGroup`); `k8s.io/cluster-bootstrap` `token/api/types.go` (`BootstrapDefaultGroup`).
const GROUPS: [&str; 7] = [
    "system:authenticated",
    "system:bootstrappers",
    "system:masters",
    "system:monitoring",
    "system:nodes",
    "system:serviceaccounts",
    "system:unauthenticated",
];

/// The users that Kubernetes defines, except for users whose name has a prefix such as [`NODE`].
///
/// Source: `k8s.io/apiserver` `pkg/authentication/user/user.go` (`Anonymous`, `APIServerUser`, `KubeProxy`,
/// `KubeControllerManager`, `KubeScheduler`).
const USERS: [&str; 5] = [
    "system:anonymous",
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-proxy",
    "system:kube-scheduler",
];

/// The prefix of the user names of service accounts.
///
/// Source: `k8s.io/apiserver` `pkg/authentication/serviceaccount/util.go`, `ServiceAccountUsernamePrefix`.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The prefix of the groups of the service accounts of a namespace.
///
/// Source: `k8s.io/apiserver` `pkg/authentication/serviceaccount/util.go`, `ServiceAccountGroupPrefix`.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts:";

/// The prefix of the user names of nodes.
///
/// Source: `k8s.io/component-helpers` `auth/rbac/validation` and `k8s.io/kubernetes`
/// `pkg/auth/nodeidentifier/default.go`, `nodeUserNamePrefix`.
const NODE: &str = "system:node:";

/// Maximum length of a name in a message, in bytes.
const MAX_SHOWN: usize = 100;

/// The property of a user that an expression compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Username,
    Group,
}

pub(super) fn find(expression: &PolicyExpression, ast: &Ast) -> Vec<Lint> {
    let mut nodes = ast.iter();
    let names_system = |text: &str| text.starts_with("system");
    let is_system = |(id, _): (ExprId, _)| {
        test(ast, id).is_some_and(|test| test.literals.iter().any(|(_, text)| names_system(text)))
    };
    if !nodes.any(is_system) {
        return Vec::new();
    }
    let elements = Elements::new(ast);
    let signs = conditions(ast).into_iter();
    let signs: HashMap<usize, bool> = signs.map(|(id, sign)| (id.index(), sign)).collect();
    let mut lints = Vec::new();
    for (id, _) in ast.iter() {
        let Some(test) = test(ast, id) else { continue };
        let Some(subject) = subject(ast, &elements, &test) else {
            continue;
        };
        for (at, text) in &test.literals {
            let finding = mistaken_name(subject, test.kind, text).or_else(|| {
                let sign = signs.get(&id.index()).copied();
                open_prefix(subject, test.kind, text).filter(|_| is_widened(expression.role, sign))
            });
            let Some(finding) = finding.filter(|_| text.len() <= MAX_SHOWN) else {
                continue;
            };
            let message = if finding.rule == Rule::ImpossibleValue {
                format!("{}, so {}", finding.message, test.result_of_mismatch(text))
            } else {
                finding.message
            };
            lints.push(Lint {
                rule: finding.rule,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(*at))),
                message,
                fix: finding.help.map(Advice::from),
                is_harmless: false,
            });
        }
    }
    lints
}

/// Returns true if the policy becomes weaker when a test matches more strings than intended. `sign` is false for a
/// negated test, and `None` for a test without a known effect on the result.
pub(super) fn is_widened(role: Role, sign: Option<bool>) -> bool {
    match role {
        Role::Validation => sign == Some(true),
        Role::MatchCondition => sign == Some(false),
        _ => false,
    }
}

struct Finding {
    rule: Rule,
    message: String,
    help: Option<String>,
}

/// Returns the test if `id` tests a string, or the elements of a list as in `'a' in request.userInfo.groups`.
fn test(ast: &Ast, id: ExprId) -> Option<StringTest<'_>> {
    if let Some(test) = string_test(ast, id) {
        return Some(test);
    }
    let ("@in", [element, list]) = ast.global_call(id)? else {
        return None;
    };
    let cel::ast::Expr::Literal(cel::ast::Literal::String(text)) = ast.expr(*element) else {
        return None;
    };
    Some(StringTest {
        kind: StringTestKind::Equals,
        subject: *list,
        literals: vec![(*element, text)],
    })
}

fn subject(ast: &Ast, elements: &Elements, test: &StringTest<'_>) -> Option<Subject> {
    match path(ast, test.subject).as_deref() {
        Some("request.userInfo.username") => return Some(Subject::Username),
        Some("request.userInfo.groups") => return Some(Subject::Group),
        _ => {}
    }
    let list = path(ast, elements.list(test.subject)?)?;
    (list == "request.userInfo.groups").then_some(Subject::Group)
}

/// Finds names of groups that are compared with the user name, names of users that are compared with groups, and
/// misspelled names.
fn mistaken_name(subject: Subject, kind: StringTestKind, text: &str) -> Option<Finding> {
    let is_whole = matches!(
        kind,
        StringTestKind::Equals | StringTestKind::Differs | StringTestKind::In
    );
    let is_prefix = kind == StringTestKind::StartsWith;
    if !is_whole && !is_prefix {
        return None;
    }
    let impossible = |message: String, help: Option<String>| {
        Some(Finding {
            rule: Rule::ImpossibleValue,
            message,
            help,
        })
    };
    match subject {
        Subject::Username => {
            let is_group = GROUPS.contains(&text) || text.starts_with(SERVICE_ACCOUNTS);
            if is_group {
                let help = if is_prefix && text.starts_with("system:serviceaccounts") {
                    format!(
                        "write `{}`, the prefix of the user names of service accounts",
                        text.replacen("serviceaccounts", "serviceaccount", 1)
                    )
                } else {
                    format!("write `'{text}' in request.userInfo.groups`")
                };
                return impossible(
                    format!("`{text}` is the name of a group, and no user has such a name"),
                    Some(help),
                );
            }
            let near = nearest(text, &USERS).filter(|_| is_whole)?;
            impossible(
                format!("Kubernetes has no user `{text}`"),
                Some(format!("write `{near}`")),
            )
        }
        Subject::Group => {
            let account = text.strip_prefix(SERVICE_ACCOUNT);
            let is_user = USERS.contains(&text)
                || text.starts_with(NODE)
                || account.is_some_and(|account| account.contains(':'));
            if is_user {
                let test = if is_prefix {
                    format!("request.userInfo.username.startsWith('{text}')")
                } else {
                    format!("request.userInfo.username == '{text}'")
                };
                return impossible(
                    format!("`{text}` is the name of a user, and no group has such a name"),
                    Some(format!("write `{test}`")),
                );
            }
            if let Some(namespace) = account {
                return impossible(
                    format!("no group has the name `{text}`"),
                    Some(format!("write `{SERVICE_ACCOUNTS}{namespace}`")),
                );
            }
            let near = nearest(text, &GROUPS).filter(|_| is_whole)?;
            impossible(
                format!("Kubernetes has no group `{text}`"),
                Some(format!("write `{near}`")),
            )
        }
    }
}

/// Returns the name that was probably intended if `text` is misspelled.
fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    // The lengths must be similar, because Kubernetes distributions define other names, such as `system:admin`.
    let near = nearest_only(text, names.iter().copied())?;
    let is_typo = text.starts_with("system") && text.len().abs_diff(near.len()) <= 2;
    (near != text && is_typo && !names.contains(&text)).then_some(near)
}

/// Finds a prefix that ends with the name of a namespace, such as `system:serviceaccount:ci`.
fn open_prefix(subject: Subject, kind: StringTestKind, text: &str) -> Option<Finding> {
    let (prefix, noun) = match subject {
        Subject::Username => (SERVICE_ACCOUNT, "service accounts"),
        Subject::Group => (SERVICE_ACCOUNTS, "the groups"),
    };
    let namespace = text
        .strip_prefix(prefix)
        .filter(|_| kind == StringTestKind::StartsWith)?;
    // A prefix that ends with a hyphen is probably intended for several namespaces.
    let is_name = namespace.ends_with(|c: char| c.is_ascii_alphanumeric());
    (is_name && !namespace.contains(':')).then(|| Finding {
        rule: Rule::PartialName,
        message: format!(
            "{noun} of other namespaces, such as `{namespace}-2`, also start with `{text}`"
        ),
        help: Some(match subject {
            Subject::Username => format!("write `{text}:`"),
            Subject::Group => format!("compare with `== '{text}'`"),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(subject: Subject, kind: StringTestKind, text: &str, help: Option<&str>) {
        let finding = mistaken_name(subject, kind, text);
        let finding = finding.or_else(|| open_prefix(subject, kind, text));
        let actual = finding.and_then(|finding| finding.help);
        assert_eq!(actual.as_deref(), help, "{subject:?} {kind:?} {text}");
    }

    #[test]
    fn names_of_groups_and_users_are_not_interchangeable() {
        let (user, group) = (Subject::Username, Subject::Group);
        let (equals, starts) = (StringTestKind::Equals, StringTestKind::StartsWith);
        let masters = "write `'system:masters' in request.userInfo.groups`";
        check(user, equals, "system:masters", Some(masters));
        let prefix =
            "write `system:serviceaccount:ci`, the prefix of the user names of service accounts";
        check(user, starts, "system:serviceaccounts:ci", Some(prefix));
        let account = "write `request.userInfo.username == 'system:serviceaccount:ci:bot'`";
        check(group, equals, "system:serviceaccount:ci:bot", Some(account));
        let ci = "write `system:serviceaccounts:ci`";
        check(group, equals, "system:serviceaccount:ci", Some(ci));
        check(group, equals, "system:node", Some("write `system:nodes`"));
        check(
            group,
            equals,
            "system:master",
            Some("write `system:masters`"),
        );
        let scheduler = "write `system:kube-scheduler`";
        check(user, equals, "system:kube-sheduler", Some(scheduler));
        for name in ["system:admin", "system:nodes", "system:openshift:x", "dev"] {
            check(group, equals, name, None);
        }
        for name in [
            "system:node:a",
            "system:admin",
            "admin",
            "system:serviceaccount:a:b",
        ] {
            check(user, equals, name, None);
        }
    }

    #[test]
    fn prefix_of_service_accounts_must_end_with_a_colon() {
        let starts = StringTestKind::StartsWith;
        let write = "write `system:serviceaccount:ci:`";
        check(
            Subject::Username,
            starts,
            "system:serviceaccount:ci",
            Some(write),
        );
        for prefix in [
            "system:serviceaccount:ci:",
            "system:serviceaccount:team-",
            "system:",
        ] {
            check(Subject::Username, starts, prefix, None);
        }
    }
}
