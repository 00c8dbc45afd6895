//! Finds bindings that do not match their policy.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, ValidatingAdmissionPolicyBinding,
};
use kubernetes::schema::rest_mapper::RestMapper;

use super::{Lint, selectors};
use crate::compile::CompiledPolicy;
use crate::matching;
use crate::request_policy::RequestPolicy;
use crate::rule::Rule;

/// Returns the lints of `binding`, a binding of `policy`, with field paths in the binding. `mapper` contains the served
/// resources.
#[must_use]
pub fn find_in_binding(
    policy: &CompiledPolicy,
    binding: &ValidatingAdmissionPolicyBinding,
    mapper: &RestMapper,
) -> Vec<Lint> {
    let policy = policy.policy();
    let lints = [
        ignored_params(policy, binding),
        disjoint_rules(policy, binding, mapper),
    ];
    let resources = binding.spec.match_resources.iter();
    let selectors = resources.flat_map(|of| {
        let field_ref = "spec.matchResources";
        let ineffective = selectors::ineffective(policy, mapper, of, field_ref);
        selectors::find(of, field_ref)
            .into_iter()
            .chain(ineffective)
            .chain(selectors::disjoint_namespaces(policy, mapper, of))
    });
    lints.into_iter().flatten().chain(selectors).collect()
}

/// Returns a lint if `binding` has a paramRef but the policy has no paramKind.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams` (ignores
/// paramRef without a paramKind).
fn ignored_params(
    policy: &RequestPolicy,
    binding: &ValidatingAdmissionPolicyBinding,
) -> Option<Lint> {
    let has_kind = policy.param_kind.is_some();
    let has_ref = binding.spec.param_ref.is_some();
    (has_ref && !has_kind).then(|| Lint {
        rule: Rule::IgnoredParams,
        field_ref: "spec.paramRef".to_owned(),
        location: None,
        message: "the policy has no paramKind, so the paramRef is ignored".to_owned(),
        fix: Some("give the policy a paramKind, or remove the paramRef".into()),
        is_harmless: false,
    })
}

/// The matched operations of each resource, by group and name. Versions are ignored, because the API server converts
/// requests between the versions of a resource.
type Reach<'a> = BTreeMap<(&'a str, &'a str), Vec<&'static str>>;

fn reach<'a>(policy: &'a RequestPolicy, mapper: &'a RestMapper) -> Reach<'a> {
    let mut reach = Reach::new();
    for target in matching::targets(policy, mapper) {
        let gvr = &target.resource.gvr;
        let operations = reach.entry((&gvr.group, &gvr.resource)).or_default();
        operations.extend(target.operations.names());
    }
    reach
}

/// Returns a lint if no request matches the rules of both the binding and the policy.
fn disjoint_rules(
    policy: &RequestPolicy,
    binding: &ValidatingAdmissionPolicyBinding,
    mapper: &RestMapper,
) -> Option<Lint> {
    let of_binding = binding.spec.match_resources.as_ref()?;
    let rules = of_binding
        .resource_rules
        .as_ref()
        .filter(|rules| !rules.is_empty())?;
    // A policy with only the rules of the binding.
    let narrowed = RequestPolicy::with_constraints(MatchResources {
        resource_rules: Some(rules.clone()),
        exclude_resource_rules: of_binding.exclude_resource_rules.clone(),
        ..MatchResources::default()
    });
    // An unserved resource may be in both sets of rules, so the rules may overlap.
    let is_known = |policy| matching::resolve(policy, mapper).unserved.is_empty();
    if !is_known(policy) || !is_known(&narrowed) {
        return None;
    }
    let (wide, narrow) = (reach(policy, mapper), reach(&narrowed, mapper));
    let meets = narrow.iter().any(|(resource, operations)| {
        let of_policy = wide.get(resource);
        of_policy.is_some_and(|known| operations.iter().any(|name| known.contains(name)))
    });
    (!meets && !wide.is_empty() && !narrow.is_empty()).then(|| Lint {
        rule: Rule::DisjointRules,
        field_ref: "spec.matchResources.resourceRules".to_owned(),
        location: None,
        message: "no request matches both these rules and those of the policy, so the binding has no effect".to_owned(),
        fix: Some(
            "a binding can only narrow its policy: use resources and operations that the policy's rules also match"
                .into(),
        ),
        is_harmless: false,
    })
}
