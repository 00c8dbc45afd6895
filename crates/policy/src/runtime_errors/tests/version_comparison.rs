//! Tests of the comparison of two versions of a policy.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::admission::{Action, Evaluation};
use crate::runtime_errors::version_comparison::{LIMITS, Limits, compare_within};
use crate::version_changes::affected_nodes;
use kubernetes::version::KubernetesVersion;

/// Compares a policy for the creation and update of `resource` under two Kubernetes versions.
fn compare(resource: (&str, &str, &str), spec: &Json, [old, new]: [u16; 2]) -> VersionComparison {
    let [old, new] = [old, new].map(KubernetesVersion::new);
    let policy = policy(resource, &["CREATE", "UPDATE"], spec);
    let compile = |version| CompiledPolicy::from_parts(policy.policy().clone(), None, version);
    let compiled = [compile(old), compile(new)];
    let nodes = affected_nodes(&compiled[0], old, new);
    let cache = ObjectCache::default();
    compare_versions(
        [&compiled[0], &compiled[1]],
        &PLAIN.context(&cache),
        &nodes,
        None,
        &Arc::new(AtomicBool::new(false)),
    )
}

/// Returns the results of the first validation for each difference.
fn results(comparison: &VersionComparison) -> Vec<[&'static str; 2]> {
    let results = comparison
        .differences
        .iter()
        .map(|it| [&it.old, &it.new].map(|evaluation| evaluation.decisions[0].evaluation.as_str()));
    results.collect()
}

const PODS: (&str, &str, &str) = ("", "v1", "pods");

#[test]
fn admitted_request_that_fails_in_the_new_version_is_found() {
    let spec = validation(
        "object.spec.containers.all(c, c.volumeMounts.orValue([]).all(m, m.mountPath != '/host'))",
    );
    let comparison = compare(PODS, &spec, [36, 37]);
    assert!(results(&comparison).contains(&["admit", "error"]));
    assert_eq!(comparison.reached, [true]);
    let mounts = &comparison.differences[0].witness.request["object"]["spec"]["containers"][0];
    assert!(mounts["volumeMounts"].is_array(), "{mounts}");
    let same = compare(PODS, &spec, [35, 36]);
    assert_eq!(results(&same), [[""; 2]; 0]);
    assert!(same.n_requests > 0);
}

/// The old version denies the minimal request that reaches the call, so the search must try other values of the inputs.
#[test]
fn search_continues_after_denied_request_until_one_is_admitted() {
    let spec = json!({
        "variables": [{"name": "names", "expression": "object.spec.volumes.orValue([]).filter(v, has(v.emptyDir)).map(v, v.name)"}],
        "validations": [{"expression":
            "object.spec.containers.all(c, !c.?volumeMounts.orValue([]).exists(m, m.name in variables.names) || \
             c.?resources.?requests[?'ephemeral-storage'].hasValue())"}],
    });
    let comparison = compare(PODS, &spec, [36, 37]);
    assert!(results(&comparison).contains(&["admit", "error"]));
}

#[test]
fn node_that_is_never_evaluated_is_not_reached() {
    let spec = validation(
        "object.metadata.name == object.metadata.name.lowerAscii() || object.spec.volumes.orValue([]) == []",
    );
    let comparison = compare(PODS, &spec, [36, 37]);
    assert_eq!(results(&comparison), [[""; 2]; 0]);
    assert_eq!(comparison.reached, [false]);
}

#[test]
fn comparison_ends_when_it_is_cancelled() {
    let old = KubernetesVersion::new(36);
    let compiled = policy(
        PODS,
        &["CREATE"],
        &validation("object.spec.containers.size() > 1"),
    );
    let cache = ObjectCache::default();
    let comparison = compare_versions(
        [&compiled, &compiled],
        &PLAIN.context(&cache),
        &affected_nodes(&compiled, old, old),
        None,
        &Arc::new(AtomicBool::new(true)),
    );
    assert_eq!(comparison.n_requests, 0);
}

/// Two runs compare the same requests, because the limits are counts instead of a time.
#[test]
fn comparison_is_limited_by_requests_and_cost() {
    let spec = validation("object.metadata.?labels['a'].orValue('a').matches('^[a-z0-9]+$')");
    let compiled = policy(PODS, &["CREATE", "UPDATE"], &spec);
    let n_requests = |limits| {
        let cache = ObjectCache::default();
        let comparison = compare_within(
            limits,
            [&compiled, &compiled],
            &PLAIN.context(&cache),
            &[],
            None,
            &Arc::new(AtomicBool::new(false)),
        );
        comparison.n_requests
    };
    let all = n_requests(LIMITS);
    assert!(all > 3, "{all}");
    assert_eq!(n_requests(LIMITS), all);
    let cost = LIMITS.cost;
    assert_eq!(
        n_requests(Limits {
            n_requests: 2,
            cost
        }),
        2
    );
    assert_eq!(n_requests(Limits { cost: 1, ..LIMITS }), 1);
}

#[test]
fn generated_request_has_a_name_that_rules_permit() {
    let mut policy = policy(
        PODS,
        &["CREATE"],
        &validation("object.metadata.name == 'x'"),
    )
    .policy()
    .clone();
    let rules = policy
        .match_constraints
        .as_mut()
        .unwrap()
        .resource_rules
        .as_mut();
    rules.unwrap()[0].resource_names = Some(vec!["web".to_owned()]);
    let compile =
        |minor| CompiledPolicy::from_parts(policy.clone(), None, KubernetesVersion::new(minor));
    let compiled = [compile(36), compile(37)];
    let cache = ObjectCache::default();
    let comparison = compare_versions(
        [&compiled[0], &compiled[1]],
        &PLAIN.context(&cache),
        &[],
        None,
        &Arc::new(AtomicBool::new(false)),
    );
    assert!(comparison.n_requests > 0);
}

/// Compares two policies for the creation and update of Pods. For each difference, returns whether the old and the new
/// policy deny the request.
fn denials(old: &Json, new: &Json) -> Vec<[bool; 2]> {
    let compile = |spec: &Json| {
        let policy = policy(PODS, &["CREATE", "UPDATE"], spec);
        CompiledPolicy::from_parts(policy.policy().clone(), None, KubernetesVersion::new(37))
    };
    let compiled = [compile(old), compile(new)];
    let cache = ObjectCache::default();
    let comparison = compare_policies(
        [&compiled[0], &compiled[1]],
        &PLAIN.context(&cache),
        None,
        &Arc::new(AtomicBool::new(false)),
    );
    let denies = |evaluation: &Evaluation| {
        let mut decisions = evaluation.decisions.iter();
        decisions.any(|decision| decision.action == Action::Deny)
    };
    let differences = comparison.differences.iter();
    let mut denials: Vec<[bool; 2]> = differences
        .map(|it| [&it.old, &it.new].map(denies))
        .collect();
    denials.sort_unstable();
    denials.dedup();
    denials
}

/// The decision changes only for requests with special values of two inputs: one of the match condition and one of the
/// validation.
#[test]
fn changed_match_condition_is_tested_with_a_request_that_is_denied() {
    let policy = |namespace: &str| {
        json!({
            "matchConditions": [{"name": "a", "expression": format!("request.namespace != '{namespace}'")}],
            "validations": [{"expression": "!has(object.spec.priority) || object.spec.priority < 100"}],
        })
    };
    let denials = denials(&policy("kube-system"), &policy("kube-public"));
    assert!(denials.contains(&[false, true]), "{denials:?}");
    assert!(denials.contains(&[true, false]), "{denials:?}");
}

#[test]
fn equal_policies_have_no_differences() {
    let policy = |expression: &str| json!({"validations": [{"expression": expression, "message": "too high"}]});
    let spec = policy("!has(object.spec.priority) || object.spec.priority < 100");
    assert_eq!(denials(&spec, &spec), [[false; 2]; 0]);
    let refactored = policy("!has(object.spec.priority) || object.spec.priority <= 99");
    assert_eq!(denials(&spec, &refactored), [[false; 2]; 0]);
}
