//! The dependencies of a policy's status. They determine which policies a change affects.
//!
//! A policy depends on the resources that its rules may match, on the schemas in its check, on its paramKind, and on
//! the kinds in its probes. In doubt, a policy counts as affected. An unnecessary check costs little and writes
//! nothing, but a missed check leaves a wrong status.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;

use crate::controller::cluster::snapshot::Change;
use crate::policy::analysis::Profile;
use crate::policy::{self, RequestPolicy, matching};
use crate::schema::{GroupVersion, Gvk};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dependencies {
    /// The groups and versions of each rule.
    rules: Vec<(Vec<String>, Vec<String>)>,
    param_kind: Option<Gvk>,
    /// The group versions whose schemas were used in the check.
    pub(crate) schemas: Arc<BTreeSet<GroupVersion>>,
    /// True if the status suggests served resources that are similar to an unserved one. Then any change of resources
    /// may change the status.
    pub(crate) has_suggestions: bool,
    /// The API groups of the kinds in the policy's probes.
    pub(crate) probe_groups: BTreeSet<String>,
}

impl Dependencies {
    /// Returns the dependencies that are known without a check. `policies` contains one policy, or the webhooks of a
    /// configuration.
    pub(crate) fn new(policies: &[RequestPolicy]) -> Self {
        let rules = policies.iter().flat_map(matching::rules);
        let pair = |rule: &NamedRuleWithOperations| {
            let list = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
            (list(&rule.api_groups), list(&rule.api_versions))
        };
        Self {
            rules: rules.map(pair).collect(),
            param_kind: policies.iter().find_map(policy::param_kind),
            schemas: Arc::default(),
            has_suggestions: false,
            probe_groups: BTreeSet::new(),
        }
    }

    pub(crate) fn param_kind(&self) -> Option<&Gvk> {
        self.param_kind.as_ref()
    }

    /// Returns true if `change` may affect the status under `profile`.
    pub(crate) fn are_touched_by(&self, change: &Change, profile: Profile) -> bool {
        (self.has_suggestions && !change.resources.is_empty())
            || change
                .resources
                .iter()
                .chain(&change.schemas)
                .any(|gv| self.probe_groups.contains(&gv.group))
            || change
                .resources
                .iter()
                .any(|gv| self.depends_on_resources(gv, profile))
            || change.schemas.iter().any(|gv| self.schemas.contains(gv))
            || self.param_kind.as_ref().is_some_and(|gvk| {
                change
                    .crds
                    .iter()
                    .any(|(group, kind)| *group == gvk.group && *kind == gvk.kind)
            })
    }

    fn depends_on_resources(&self, gv: &GroupVersion, profile: Profile) -> bool {
        // Upstream's REST mapper treats the core group (the empty string) as any group.
        let core_is_any = profile == Profile::Upstream;
        let is_group = |group: &String| {
            group == "*" || *group == gv.group || (core_is_any && group.is_empty())
        };
        let is_version = |version: &String| version == "*" || *version == gv.version;
        self.rules.iter().any(|(groups, versions)| {
            groups.iter().any(is_group) && versions.iter().any(is_version)
        }) || self
            .param_kind
            .as_ref()
            .is_some_and(|gvk| gvk.group == gv.group)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::json;

    use super::*;
    use crate::controller::cluster::snapshot::tests::gv;

    fn dependencies(groups: &[&str], versions: &[&str], param_kind: Option<&str>) -> Dependencies {
        let param_kind =
            param_kind.map(|api_version| json!({"apiVersion": api_version, "kind": "Limit"}));
        let policy = json!({"metadata": {}, "spec": {
            "paramKind": param_kind,
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]},
                {"apiGroups": groups, "apiVersions": versions, "resources": ["deployments"]},
            ]},
        }});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let mut dependencies = Dependencies::new(&[policy.into()]);
        dependencies.schemas = Arc::new([gv("autoscaling/v1")].into());
        dependencies
    }

    fn resources(api_version: &str) -> Change {
        Change {
            resources: [gv(api_version)].into(),
            ..Change::default()
        }
    }

    fn schemas(api_version: &str) -> Change {
        Change {
            schemas: [gv(api_version)].into(),
            ..Change::default()
        }
    }

    fn crds(group: &str, kind: &str) -> Change {
        Change {
            crds: [(group.to_owned(), kind.to_owned())].into(),
            ..Change::default()
        }
    }

    #[test]
    fn changes_of_matched_resources_params_and_schemas_affect_policy() {
        let apps = dependencies(&["apps"], &["v1"], Some("rules.example.com/v1"));
        let any_group = dependencies(&["*"], &["v1"], None);
        let any_version = dependencies(&["apps"], &["*"], None);
        let core = dependencies(&[""], &["v1"], None);
        let table = [
            (&apps, resources("apps/v1"), true),
            (&apps, resources("batch/v1"), true),
            (&apps, resources("apps/v1beta1"), false),
            (&apps, resources("v1"), false),
            (&apps, resources("rules.example.com/v2"), true),
            (&apps, schemas("autoscaling/v1"), true),
            // The check did not use the schemas of `apps/v1`, so their change has no effect.
            (&apps, schemas("apps/v1"), false),
            (&apps, crds("rules.example.com", "Limit"), true),
            (&apps, crds("rules.example.com", "Other"), false),
            (&apps, crds("apps", "Limit"), false),
            (&apps, Change::default(), false),
            (&any_group, resources("example.com/v1"), true),
            (&any_group, resources("example.com/v2"), false),
            (&any_group, crds("rules.example.com", "Limit"), false),
            (&any_version, resources("apps/v7"), true),
            (&any_version, resources("v7"), false),
            (&core, resources("v1"), true),
            (&core, resources("events.k8s.io/v1"), false),
        ];
        for (dependencies, change, expect) in table {
            assert_eq!(
                dependencies.are_touched_by(&change, Profile::Truthful),
                expect,
                "{dependencies:?} {change:?}"
            );
        }
        // With the profile `upstream`, the core group matches any group.
        let change = resources("events.k8s.io/v1");
        assert!(core.are_touched_by(&change, Profile::Upstream));
    }

    #[test]
    fn change_of_any_resource_affects_policy_with_suggestions() {
        let mut apps = dependencies(&["apps"], &["v1"], None);
        apps.has_suggestions = true;
        assert!(apps.are_touched_by(&resources("example.com/v1"), Profile::Truthful));
        assert!(!apps.are_touched_by(&schemas("example.com/v1"), Profile::Truthful));
    }

    #[test]
    fn changes_of_kinds_in_probes_affect_policy() {
        let mut apps = dependencies(&["apps"], &["v1"], None);
        apps.probe_groups = ["example.com".to_owned()].into();
        assert!(apps.are_touched_by(&resources("example.com/v3"), Profile::Truthful));
        assert!(!apps.are_touched_by(&resources("example.org/v3"), Profile::Truthful));
        // The sample objects of probes are validated with schemas.
        assert!(apps.are_touched_by(&schemas("example.com/v3"), Profile::Truthful));
        assert!(!apps.are_touched_by(&schemas("example.org/v3"), Profile::Truthful));
    }

    #[test]
    fn empty_policy_has_no_dependencies() {
        let none = Dependencies::new(&[RequestPolicy::default()]);
        assert!(!none.are_touched_by(&resources("apps/v1"), Profile::Truthful));
    }
}
