//! Finds rules that match no request, and fields that can be changed through a subresource that the rules do not match.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};

use k8s_openapi::api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations};
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};

use super::{Lint, selectors};
use crate::advice::{Advice, Replacement};
use crate::compile::CompiledPolicy;
use crate::matching::{self, Operations};
use crate::nearest::{is_spelling_variant, nearest_only};
use crate::rule::Rule;
use cel::ast::{Expr, Literal};

/// Maximum number of lints of the same type for one rule.
const MAX_FOUND: usize = 5;

pub(super) fn find(policy: &CompiledPolicy, mapper: &RestMapper) -> Vec<Lint> {
    let Some(constraints) = &policy.policy().match_constraints else {
        return Vec::new();
    };
    let field_ref = "spec.matchConstraints";
    let mut lints = find_in_rules(constraints, field_ref, mapper);
    let rules = constraints.resource_rules.as_deref().unwrap_or_default();
    bypasses(policy, rules, &mut lints);
    lints.extend(selectors::find(constraints, field_ref));
    lints.extend(selectors::ineffective(
        policy.policy(),
        mapper,
        constraints,
        field_ref,
    ));
    lints.extend(own_params(policy, mapper));
    lints
}

/// Returns the lints of the rules of a policy or a binding. `field_ref` is the field that contains the rules.
#[must_use]
pub fn find_in_rules(
    constraints: &MatchResources,
    field_ref: &str,
    mapper: &RestMapper,
) -> Vec<Lint> {
    let served = ServedGroups {
        mapper,
        groups: OnceCell::new(),
    };
    let mut lints = Vec::new();
    for (n, rule) in constraints.resource_rules.iter().flatten().enumerate() {
        let field_ref = format!("{field_ref}.resourceRules[{n}]");
        lints.extend(impossible_groups(rule, &field_ref, &served).take(MAX_FOUND));
        lints.extend(impossible_operations(rule, &field_ref, mapper));
        lints.extend(names(rule, &field_ref).take(MAX_FOUND));
    }
    let excluded = constraints.exclude_resource_rules.iter().flatten();
    for (n, rule) in excluded.enumerate() {
        let field_ref = format!("{field_ref}.excludeResourceRules[{n}]");
        lints.extend(impossible_groups(rule, &field_ref, &served).take(MAX_FOUND));
        lints.extend(names(rule, &field_ref).take(MAX_FOUND));
    }
    lints
}

/// Returns a lint if `policy` matches CustomResourceDefinitions and a CRD defines its paramKind. The policy then denies
/// the request that creates this CRD.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `Dispatch` (if paramKind is
/// not served, the evaluation fails before bindings and match conditions are considered).
fn own_params(policy: &CompiledPolicy, mapper: &RestMapper) -> Option<Lint> {
    let policy = policy.policy();
    let gvk = crate::param_kind(policy)?;
    let is_custom = gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io");
    let constraints = policy.match_constraints.as_ref()?;
    let has_labels = constraints
        .object_selector
        .as_ref()
        .is_some_and(|selector| {
            selector.match_labels.iter().flatten().next().is_some()
                || selector.match_expressions.iter().flatten().next().is_some()
        });
    // With resourceNames, an excludeResourceRule may exclude this CRD.
    let mut excluded = constraints.exclude_resource_rules.iter().flatten();
    let has_exceptions = excluded.any(|rule| rule.resource_names.iter().flatten().next().is_some());
    if !is_custom || has_labels || has_exceptions || !crate::fails_closed(policy) {
        return None;
    }
    let targets = matching::targets(policy, mapper);
    // Wildcards are reported by `crate::lockout`.
    let named = targets.iter().filter(|target| !target.by_wildcard);
    let mut definitions = named.filter(|target| {
        let gvr = &target.resource.gvr;
        gvr.group == "apiextensions.k8s.io" && gvr.resource == "customresourcedefinitions"
    });
    definitions.any(|target| target.operations.names().any(|name| name == "CREATE")).then(|| Lint {
        rule: Rule::Lockout,
        field_ref: "spec.paramKind".to_owned(),
        location: None,
        message: format!(
            "until the CRD of {} {} exists, every request that the rules match is denied, including the one that creates the CRD",
            gvk.api_version(),
            gvk.kind
        ),
        fix: Some("add an excludeResourceRule whose resourceNames contain the name of the CRD".into()),
        is_harmless: false,
    })
}

/// The served API groups. They are collected only if a rule has an unusual group.
struct ServedGroups<'m> {
    mapper: &'m RestMapper,
    groups: OnceCell<HashSet<&'m str>>,
}

impl<'m> ServedGroups<'m> {
    fn groups(&self) -> &HashSet<&'m str> {
        self.groups.get_or_init(|| {
            let served = self.mapper.resources.iter();
            served.map(|served| &*served.gvr.group).collect()
        })
    }
}

/// Finds API groups that no API server can serve.
///
/// Source: `k8s.io/apiextensions-apiserver` `pkg/apis/apiextensions/validation/validation.go`,
/// `ValidateCustomResourceDefinitionSpec` (the group of a CRD contains a dot).
fn impossible_groups<'a, 'm: 'a>(
    rule: &'a NamedRuleWithOperations,
    field_ref: &'a str,
    served: &'a ServedGroups<'m>,
) -> impl Iterator<Item = Lint> + 'a {
    let groups = rule.api_groups.iter().flatten().enumerate();
    groups.filter_map(move |(n, group)| {
        let (why, fix) = match group.split_once('/') {
            Some((group, version)) if is_version(version) => (
                "a group does not include a version",
                Some(format!("write `{group}`, and `{version}` in apiVersions").into()),
            ),
            Some(_) => ("a group contains no `/`", None),
            None if group == "core" || is_version(group) => (
                "the name of the core group (pods, services) is the empty string",
                Some("write `\"\"`".into()),
            ),
            None if group.is_empty()
                || group.contains(['.', '*'])
                || is_usual(group)
                || served.groups().contains(group.as_str()) =>
            {
                return None;
            }
            None => {
                let near = intended_groups(rule, group, served.mapper)
                    .into_iter()
                    .next();
                (
                    "Kubernetes has no such group, and the group of a CRD contains a dot",
                    near.map(|it| Advice::did_you_mean(Replacement::Literal(it.to_owned()))),
                )
            }
        };
        Some(Lint {
            rule: Rule::ImpossibleGroup,
            field_ref: format!("{field_ref}.apiGroups[{n}]"),
            location: None,
            message: format!("no request has the API group `{group}`: {why}"),
            fix,
            is_harmless: false,
        })
    })
}

/// Returns true for the group of certificate signing requests, whose subresources can only be updated.
///
/// Source: `k8s.io/kubernetes` `pkg/registry/certificates/certificates/storage/storage.go` (`StatusREST` and
/// `ApprovalREST` implement `Get` and `Update`).
fn is_certificates(group: &str) -> bool {
    group == "certificates.k8s.io"
}

/// Returns true for a built-in group without a dot.
fn is_usual(group: &str) -> bool {
    matches!(group, "apps" | "batch" | "autoscaling" | "policy")
}

/// Returns true for an API version such as `v1beta1`.
fn is_version(text: &str) -> bool {
    let digits = text.strip_prefix('v').unwrap_or_default();
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns the served groups that a rule with the impossible group `group` may intend, in alphabetical order: those
/// whose first label is `group`, those that serve all resources of the rule, or the one with a similar name.
#[must_use]
pub fn intended_groups<'m>(
    rule: &NamedRuleWithOperations,
    group: &str,
    mapper: &'m RestMapper,
) -> BTreeSet<&'m str> {
    let all = mapper.resources.iter().map(|served| &*served.gvr.group);
    let all: BTreeSet<&str> = all.collect();
    let first_label = |served: &&str| served.split('.').next() == Some(group);
    let named: BTreeSet<&str> = all.iter().copied().filter(first_label).collect();
    if !named.is_empty() {
        return named;
    }
    let names = rule.resources.as_deref().unwrap_or_default();
    let serves = |group: &&str, name: &String| {
        let mut served = mapper.resources.iter();
        let is_named = |served: &ApiResource| {
            let is_kind = served.gvk.kind.eq_ignore_ascii_case(name);
            (is_kind || is_spelling_variant(&served.gvr.resource, name))
                && served.gvr.group == **group
        };
        served.any(is_named)
    };
    let serving = all.iter().copied();
    let serving = serving.filter(|group| names.iter().all(|name| serves(group, name)));
    let serving: BTreeSet<&str> = serving.filter(|_| !names.is_empty()).collect();
    if !serving.is_empty() {
        return serving;
    }
    nearest_only(group, all.into_iter()).into_iter().collect()
}

/// Finds resourceNames that look like patterns.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/matching/matching.go`, `matchesResourceRules` (names are
/// compared literally).
fn names<'a>(
    rule: &'a NamedRuleWithOperations,
    field_ref: &'a str,
) -> impl Iterator<Item = Lint> + 'a {
    let names = rule.resource_names.iter().flatten().enumerate();
    let patterns = names.filter(|(_, name)| name.contains('*'));
    patterns.map(move |(n, name)| Lint {
        rule: Rule::ImpossibleValue,
        field_ref: format!("{field_ref}.resourceNames[{n}]"),
        location: None,
        message: format!(
            "resourceNames are not patterns: the rule only matches objects named `{name}`"
        ),
        fix: Some(if name == "*" {
            "remove resourceNames: then the rule matches all names".into()
        } else {
            "test the name in a match condition, for example with `object.metadata.name.startsWith(...)`"
                .into()
        }),
        is_harmless: false,
    })
}

/// Finds resources in rules whose requests never have one of the rule's operations. Resources whose requests have the
/// same operations share a finding.
fn impossible_operations(
    rule: &NamedRuleWithOperations,
    field_ref: &str,
    mapper: &RestMapper,
) -> Vec<Lint> {
    let operations = Operations::from_names(rule.operations.as_deref().unwrap_or_default());
    // The operations of subresources are known only for built-in groups.
    let is_builtin = |group: &String| {
        group.is_empty() || group == "*" || is_usual(group) || is_certificates(group)
    };
    if !rule.api_groups.iter().flatten().any(is_builtin) {
        return Vec::new();
    }
    // Resources with the same operations: the index of the first resource, the names of all of them, and the
    // operations.
    let mut groups: Vec<(usize, Vec<&str>, Operations)> = Vec::new();
    for (n, resource) in rule.resources.iter().flatten().enumerate() {
        let (main, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let possible = Operations::possible(resource);
        let is_possible = |name| possible.names().any(|known| known == name);
        if main == "*" || sub == "*" || operations.names().any(is_possible) {
            continue;
        }
        // An unserved subresource may be misspelled, so its possible operations are unknown.
        let is_served = || {
            mapper
                .resources
                .iter()
                .any(|it| it.gvr.resource == *resource)
        };
        if !sub.is_empty() && !is_served() {
            continue;
        }
        let is_read = possible.names().next().is_none();
        let mut of_same = groups
            .iter_mut()
            .filter(|group| !is_read && group.2 == possible);
        match of_same.next() {
            Some((_, resources, _)) => resources.push(resource),
            None => groups.push((n, vec![resource], possible)),
        }
    }
    let lint = |(n, resources, possible): (usize, Vec<&str>, Operations)| {
        let names: Vec<&str> = possible.names().collect();
        let resources = match resources.as_slice() {
            [several @ .., last] if !several.is_empty() => {
                format!("{} and {last}", several.join(", "))
            }
            _ => resources.concat(),
        };
        let mut others = rule.resources.iter().flatten();
        let (message, fix) = if names.is_empty() {
            let message =
                format!("{resources} can only be read, and policies are not evaluated for reads");
            (
                message,
                "remove the resource, and restrict read access with RBAC".to_owned(),
            )
        } else {
            let message = format!(
                "requests for {resources} only have the operation {}, which the rule does not list, so the rule \
                 matches none of them",
                names.join(", ")
            );
            let fix = if others.all(|other| Operations::possible(other) == possible) {
                format!("write `operations: [{}]`", names.join(", "))
            } else {
                format!("add `{}` to the operations", names.join("`, `"))
            };
            (message, fix)
        };
        Lint {
            rule: Rule::ImpossibleOperation,
            field_ref: format!("{field_ref}.resources[{n}]"),
            location: None,
            message,
            fix: Some(fix.into()),
            is_harmless: false,
        }
    };
    groups.into_iter().take(MAX_FOUND).map(lint).collect()
}

/// Fields that a request for a subresource can change.
struct SubresourceBypass {
    /// The resources whose objects have the fields.
    resources: &'static [&'static str],
    fields: &'static [&'static str],
    subresource: &'static str,
    /// The tools that use the subresource. They are named in the message.
    how: &'static str,
    /// True if only the subresource can change the fields.
    is_exclusive: bool,
}

/// Source: `k8s.io/kubernetes` `pkg/registry/core/pod/strategy.go` (`podEphemeralContainersStrategy`,
/// `podStatusStrategy`), `pkg/registry/core/node/strategy.go` (`nodeStatusStrategy`),
/// `pkg/registry/apps/deployment/storage/storage.go` (`ScaleREST`) and the like.
const BYPASSES: [SubresourceBypass; 3] = [
    SubresourceBypass {
        resources: &["pods"],
        fields: &["ephemeralContainers"],
        subresource: "ephemeralcontainers",
        how: "users of `kubectl debug`",
        is_exclusive: true,
    },
    SubresourceBypass {
        resources: &[
            "deployments",
            "statefulsets",
            "replicasets",
            "replicationcontrollers",
        ],
        fields: &["replicas"],
        subresource: "scale",
        how: "`kubectl scale` and autoscalers",
        is_exclusive: false,
    },
    // The update strategies for `status` of these resources store the labels and annotations of the request.
    SubresourceBypass {
        resources: &["nodes", "pods"],
        fields: &["labels", "annotations"],
        subresource: "status",
        how: "kubelets and controllers",
        is_exclusive: false,
    },
];

/// Finds fields that the expressions read, and that a request for a subresource can change without matching a rule.
fn bypasses(policy: &CompiledPolicy, rules: &[NamedRuleWithOperations], lints: &mut Vec<Lint>) {
    for bypass in &BYPASSES {
        let reads = |name: &str| {
            policy.expressions().iter().any(|expression| {
                expression.parsed().is_ok_and(|ast| {
                    ast.iter().any(|(_, expr)| match expr {
                        Expr::Select { field, .. } => &**field == name,
                        // In `.?field` and `['field']`, the name of the field is a string literal.
                        Expr::Literal(Literal::String(text)) => &**text == name,
                        _ => false,
                    })
                })
            })
        };
        let mut fields = bypass.fields.iter();
        let Some(field) = fields.find(|field| reads(field)) else {
            continue;
        };
        let mut first = None;
        let mut unmatched: BTreeSet<String> = BTreeSet::new();
        for (n, rule) in rules.iter().enumerate() {
            let named = rule.resources.iter().flatten().enumerate();
            for (m, resource) in named.filter(|(_, name)| bypass.resources.contains(&name.as_str()))
            {
                let operations =
                    Operations::from_names(rule.operations.as_deref().unwrap_or_default());
                if !bypass.is_exclusive && !operations.names().any(|name| name == "UPDATE") {
                    continue;
                }
                let subresource_name = format!("{resource}/{}", bypass.subresource);
                if rules
                    .iter()
                    .any(|rule| matches(rule, &subresource_name, bypass.subresource))
                {
                    continue;
                }
                first.get_or_insert((n, m));
                unmatched.insert(subresource_name);
            }
        }
        let Some((n, m)) = first else { continue };
        let unmatched: Vec<String> = unmatched.into_iter().collect();
        let (names, quoted) = (unmatched.join(" and "), unmatched.join("`, `"));
        lints.push(Lint {
            rule: Rule::UnwatchedSubresource,
            field_ref: format!("spec.matchConstraints.resourceRules[{n}].resources[{m}]"),
            location: None,
            message: format!(
                "{} change `{field}` through {names}, which no rule matches",
                bypass.how
            ),
            fix: Some(if bypass.is_exclusive || bypass.subresource == "status" {
                format!("add `{quoted}` with UPDATE to the rules").into()
            } else {
                format!(
                    "add `{quoted}` with UPDATE; a Scale omits `spec.replicas` if it is 0, \
                     so test it with has()"
                )
                .into()
            }),
            // The policy works as intended for the requests that its rules match.
            is_harmless: true,
        });
    }
}

/// Returns true if `rule` matches a subresource such as `pods/exec`, by name or by wildcard.
fn matches(rule: &NamedRuleWithOperations, subresource_name: &str, subresource: &str) -> bool {
    let main = subresource_name.split('/').next().unwrap_or_default();
    rule.resources.iter().flatten().any(|name| {
        name == subresource_name
            || name == "*/*"
            || *name == format!("{main}/*")
            || *name == format!("*/{subresource}")
    })
}
