//! Indexes the rules of a policy to match them with many resources. Also indexes exclude rules, and group versions with
//! unknown resources.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/rules/rules.go` (`Matcher`).

use std::collections::{BTreeSet, HashMap, HashSet};

use cel::interrupt::checkpoint;
use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use kubernetes::schema::GroupVersion;
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};

use super::{Operations, excluded, list};
use crate::request_policy::RequestPolicy;

/// The values of a list in a rule. A long list is indexed, because a policy may have thousands of rules with thousands
/// of names each.
enum Values<'a> {
    Few(&'a [String]),
    Many(HashSet<&'a str>),
}

/// Maximum number of values for a linear search.
const MAX_FEW: usize = 16;

impl<'a> Values<'a> {
    fn new(values: Option<&'a Vec<String>>) -> Self {
        let values = list(values);
        if values.len() <= MAX_FEW {
            Self::Few(values)
        } else {
            Self::Many(values.iter().map(String::as_str).collect())
        }
    }

    fn contains(&self, value: &str) -> bool {
        match self {
            Self::Few(values) => values.iter().any(|known| known == value),
            Self::Many(values) => values.contains(value),
        }
    }

    /// Returns true if the list contains `value` or `*`.
    fn matches(&self, value: &str) -> bool {
        self.contains(value) || self.contains("*")
    }
}

/// A rule with indexed lists.
pub(super) struct Rule<'a> {
    pub(super) spec: &'a NamedRuleWithOperations,
    groups: Values<'a>,
    versions: Values<'a>,
    names: Values<'a>,
    pub(super) operations: Operations,
}

impl<'a> Rule<'a> {
    pub(super) fn new(rule: &'a NamedRuleWithOperations) -> Self {
        Self {
            spec: rule,
            groups: Values::new(rule.api_groups.as_ref()),
            versions: Values::new(rule.api_versions.as_ref()),
            names: Values::new(rule.resources.as_ref()),
            operations: Operations::from_names(list(rule.operations.as_ref())),
        }
    }

    /// Returns the resources in the groups of the rule, with their indices, in ascending order. Other resources cannot
    /// match the rule.
    pub(super) fn candidates<'m>(&self, mapper: &'m RestMapper) -> Vec<(usize, &'m ApiResource)> {
        let resources = &mapper.resources;
        let of_group = match &self.groups {
            Values::Few(groups) if !groups.iter().any(|group| group == "*") => groups,
            // For many groups or a wildcard, a comparison with all resources is as fast as a search for each group.
            Values::Few(_) | Values::Many(_) => return resources.iter().enumerate().collect(),
        };
        let of_group: BTreeSet<&str> = of_group.iter().map(String::as_str).collect();
        let mut candidates = Vec::new();
        for group in of_group {
            let start = resources.partition_point(|resource| *resource.gvr.group < *group);
            let from_start = resources.iter().enumerate().skip(start);
            candidates.extend(from_start.take_while(|(_, resource)| resource.gvr.group == group));
        }
        candidates
    }

    /// Calls `each` for each name in the rule that matches `resource`.
    fn for_each_name(&self, resource: &ApiResource, mut each: impl FnMut(&str)) {
        checkpoint();
        let served = resource.gvr.resource.as_str();
        let (main, sub) = served.split_once('/').unwrap_or((served, ""));
        let is_match = |name: &str| {
            let (wanted, wanted_sub) = name.split_once('/').unwrap_or((name, ""));
            (wanted == "*" || wanted == main) && (wanted_sub == "*" || wanted_sub == sub)
        };
        match &self.names {
            Values::Few(names) if !names.iter().any(|name| is_match(name)) => return,
            Values::Few(_) | Values::Many(_) => {}
        }
        let in_scope = match self.spec.scope.as_deref() {
            Some("Cluster") => !resource.namespaced,
            Some("Namespaced") => resource.namespaced,
            _ => true,
        };
        if !in_scope
            || !self.groups.matches(&resource.gvr.group)
            || !self.versions.matches(&resource.gvr.version)
        {
            return;
        }
        match &self.names {
            Values::Few(names) => {
                let matching = names.iter().filter(|name| is_match(name));
                matching.for_each(|name| each(name));
            }
            Values::Many(names) => {
                // All names with which a rule can match the resource.
                let mut could = vec![format!("{main}/*"), "*/*".to_owned()];
                could.extend([format!("{main}/{sub}"), format!("*/{sub}")]);
                if sub.is_empty() {
                    could.extend([main.to_owned(), "*".to_owned()]);
                }
                let could = could.iter().filter_map(|name| names.get(name.as_str()));
                could.for_each(|name| each(name));
            }
        }
    }

    /// Returns true if the rule matches `resource` only by wildcards. `None` if the rule does not match. Calls `each`
    /// for each matching name.
    pub(super) fn by_wildcard(
        &self,
        resource: &ApiResource,
        mut each: impl FnMut(&str),
    ) -> Option<bool> {
        let of_any_group = !self.groups.contains(&resource.gvr.group);
        let mut by_wildcard = None;
        self.for_each_name(resource, |name| {
            let by_this = of_any_group || name.contains('*');
            by_wildcard = Some(by_wildcard.unwrap_or(true) && by_this);
            each(name);
        });
        by_wildcard
    }
}

/// The operations that a policy's excludeResourceRules exclude.
pub(super) struct Exclusions<'a> {
    rules: Vec<Rule<'a>>,
    /// A cache of the excluded operations of each resource, by the index of the resource.
    of: HashMap<usize, Operations>,
}

impl<'a> Exclusions<'a> {
    pub(super) fn new(policy: &'a RequestPolicy) -> Self {
        // A rule with resourceNames excludes only some objects, so its operations remain possible for other objects.
        let rules = excluded(policy).iter();
        let rules = rules.filter(|rule| list(rule.resource_names.as_ref()).is_empty());
        Self {
            rules: rules.map(Rule::new).collect(),
            of: HashMap::new(),
        }
    }

    /// Removes the excluded operations on `resource` from `operations`. `n` is the index of the resource.
    pub(super) fn without(
        &mut self,
        operations: Operations,
        n: usize,
        resource: &ApiResource,
    ) -> Operations {
        if self.rules.is_empty() {
            return operations;
        }
        let rules = &self.rules;
        let taken = self.of.entry(n).or_insert_with(|| {
            let matching = rules
                .iter()
                .filter(|rule| rule.by_wildcard(resource, |_| {}).is_some());
            Operations(matching.fold(0, |bits, rule| bits | rule.operations.0))
        });
        Operations(operations.0 & !taken.0)
    }
}

/// Group versions whose resources are unknown.
pub(super) struct Incomplete<'a> {
    /// The group versions by group, each with its version and its index. An empty version means all versions of the
    /// group.
    by_group: HashMap<&'a str, Vec<(&'a str, usize)>>,
}

impl<'a> Incomplete<'a> {
    pub(super) fn new(incomplete: impl Iterator<Item = &'a str>) -> Self {
        let mut by_group: HashMap<_, Vec<_>> = HashMap::new();
        for (n, group_version) in incomplete.enumerate() {
            let (group, version) = GroupVersion::split(group_version);
            by_group.entry(group).or_default().push((version, n));
        }
        Self { by_group }
    }

    /// Adds to `touched` the indices of the group versions that `rule` may match.
    pub(super) fn touched(&self, rule: &Rule<'_>, touched: &mut BTreeSet<usize>) {
        let mut add = |versions: &[(&str, usize)]| {
            for (version, n) in versions {
                if !touched.contains(n) && (version.is_empty() || rule.versions.matches(version)) {
                    touched.insert(*n);
                }
            }
        };
        if self.by_group.is_empty() {
            return;
        }
        match &rule.groups {
            groups if groups.contains("*") => self.by_group.values().for_each(|of| add(of)),
            Values::Few(groups) => {
                let indices = groups
                    .iter()
                    .filter_map(|group| self.by_group.get(&**group));
                indices.for_each(|of| add(of));
            }
            Values::Many(groups) => {
                let indices = groups.iter().filter_map(|group| self.by_group.get(group));
                indices.for_each(|of| add(of));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kubernetes::schema::{Gvk, Gvr};
    use serde_json::json;

    use super::*;

    #[test]
    fn candidates_for_a_rule_are_resources_in_its_groups() {
        let groups = ["", "a", "ab", "b", "c.d"];
        let resource = |group: &&str| ApiResource {
            gvr: Gvr::new(*group, "v1", "things"),
            gvk: Gvk::new(*group, "v1", "Thing"),
            singular: String::new(),
            namespaced: true,
        };
        let mapper = RestMapper::new(groups.iter().map(resource).collect());
        let candidates = |groups: &[&str]| -> Vec<(usize, String)> {
            let rule: NamedRuleWithOperations =
                serde_json::from_value(json!({"apiGroups": groups})).unwrap();
            let candidates = Rule::new(&rule).candidates(&mapper).into_iter();
            candidates
                .map(|(n, resource)| (n, resource.gvr.group.clone()))
                .collect()
        };
        let table: [(&[&str], &[usize]); 6] = [
            (&[], &[]),
            (&["a"], &[1]),
            (&["c.d", "", "c.d", "none"], &[0, 4]),
            (&["aa"], &[]),
            (&["b", "*"], &[0, 1, 2, 3, 4]),
            (&["*"], &[0, 1, 2, 3, 4]),
        ];
        for (of_rule, expect) in table {
            let expect = expect.iter().map(|n| (*n, groups[*n].to_owned()));
            assert_eq!(
                candidates(of_rule),
                expect.collect::<Vec<_>>(),
                "{of_rule:?}"
            );
        }
    }
}
