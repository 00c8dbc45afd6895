//! Compares the cluster and the metrics with the prediction of the model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use super::cluster_state::{ClusterState, Slot};
use super::model::{Conditions, expected_conditions};
use crate::allowed_failures::Sample;
use crate::controller::Controller;

const PAUSE: Duration = Duration::from_millis(200);

/// How long the cluster must match the prediction without interruption.
const STEADY: Duration = Duration::from_secs(1);

/// Waits until the conditions of all policies match the prediction for [`STEADY`]. `watches_mutating` includes mutating
/// policies.
///
/// # Errors
/// Returns an error with the differences after `patience`.
pub(super) async fn await_agreement(
    client: &Client,
    controller: &Controller,
    state: &ClusterState,
    watches_mutating: bool,
    patience: Duration,
) -> Result<()> {
    let started = Instant::now();
    let mut steady_since: Option<Instant> = None;
    loop {
        let differences = differences(client, controller, state, watches_mutating).await?;
        if differences.is_empty() {
            if steady_since.get_or_insert_with(Instant::now).elapsed() >= STEADY {
                return Ok(());
            }
        } else {
            steady_since = None;
            if started.elapsed() > patience {
                bail!(
                    "not as predicted {} s after the last fault:\n  {}\n",
                    patience.as_secs(),
                    differences.join("\n  ")
                );
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The conditions and generations of a policy in the cluster.
struct ActualStatus {
    generation: Option<i64>,
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
}

/// The status of each policy in the cluster, by name. The boolean is true for mutating policies.
type StatusByPolicy = BTreeMap<(bool, String), ActualStatus>;

async fn add_validating(client: &Client, actual: &mut StatusByPolicy) -> Result<()> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    for policy in api.list(&ListParams::default()).await?.items {
        let status = policy.status.unwrap_or_default();
        let key = (false, policy.metadata.name.unwrap_or_default());
        let status = ActualStatus {
            generation: policy.metadata.generation,
            observed_generation: status.observed_generation,
            conditions: status.conditions.unwrap_or_default(),
        };
        actual.insert(key, status);
    }
    Ok(())
}

/// Adds the conditions of mutating policies. Returns a message for each status object without a policy.
async fn add_mutating(client: &Client, actual: &mut StatusByPolicy) -> Result<Vec<String>> {
    let api = |group: &str, version: &str, kind: &str| {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&gvk))
    };
    let policies = api(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingAdmissionPolicy",
    );
    let objects = api(
        "vap-status.dev",
        "v1alpha1",
        "MutatingAdmissionPolicyStatus",
    );
    let mut uids = BTreeMap::new();
    for policy in policies.list(&ListParams::default()).await?.items {
        let name = policy.metadata.name.unwrap_or_default();
        uids.insert(name.clone(), policy.metadata.uid.unwrap_or_default());
        let status = ActualStatus {
            generation: policy.metadata.generation,
            observed_generation: None,
            conditions: Vec::new(),
        };
        actual.insert((true, name), status);
    }
    let mut left_over = Vec::new();
    for object in objects.list(&ListParams::default()).await?.items {
        let name = object.metadata.name.unwrap_or_default();
        let owners = object.metadata.owner_references.unwrap_or_default();
        let is_owned = uids
            .get(&name)
            .is_some_and(|uid| owners.iter().any(|owner| owner.uid == *uid));
        let Some(policy) = actual.get_mut(&(true, name.clone())).filter(|_| is_owned) else {
            left_over.push(format!(
                "{name}: a status object exists, but its policy does not"
            ));
            continue;
        };
        let own = object.metadata.generation;
        let status = object.data.get("status").cloned().unwrap_or_default();
        let policy_generation = status.get("policyGeneration").and_then(Value::as_i64);
        // Tools that wait for a status compare `observedGeneration` with the generation of the status object.
        let of_the_policy = |observed: Option<i64>| {
            policy_generation.filter(|_| observed.is_some() && observed == own)
        };
        let observed = status.get("observedGeneration").and_then(Value::as_i64);
        policy.observed_generation = of_the_policy(observed);
        let conditions = status.get("conditions").cloned().unwrap_or_default();
        let conditions: Option<Vec<Condition>> = serde_json::from_value(conditions)?;
        policy.conditions = conditions.unwrap_or_default();
        for condition in &mut policy.conditions {
            condition.observed_generation = of_the_policy(condition.observed_generation);
        }
    }
    Ok(left_over)
}

async fn differences(
    client: &Client,
    controller: &Controller,
    state: &ClusterState,
    watches_mutating: bool,
) -> Result<Vec<String>> {
    let mut actual = StatusByPolicy::new();
    add_validating(client, &mut actual).await?;
    let mut differences = Vec::new();
    if watches_mutating {
        differences.extend(add_mutating(client, &mut actual).await?);
    }
    let mut existing = BTreeSet::new();
    for slot in Slot::ALL {
        let Some(expected) = expected_conditions(state, slot) else {
            continue;
        };
        let key = (slot.is_mutating, slot.name());
        let status = actual.remove(&key);
        let status = status.with_context(|| format!("{slot} does not exist"))?;
        differences.extend(slot_differences(slot, &expected, &status));
        existing.insert(key);
    }
    let unexpected = actual.into_keys();
    differences.extend(unexpected.map(|(_, name)| format!("{name} must not exist")));
    differences.extend(series(controller, state, &existing).await?);
    Ok(differences)
}

fn slot_differences(slot: Slot, expected: &Conditions, actual: &ActualStatus) -> Vec<String> {
    let mut differences = Vec::new();
    let generation = actual.generation;
    if actual.observed_generation != generation {
        differences.push(format!(
            "{slot}: observedGeneration is {:?} at generation {generation:?}",
            actual.observed_generation
        ));
    }
    let conditions = &actual.conditions;
    let unexpected = conditions
        .iter()
        .filter(|condition| !expected.contains_key(condition.type_.as_str()));
    differences.extend(unexpected.map(|condition| {
        format!(
            "{slot} ({:?}): {} is not predicted, and is {}/{}: {}",
            slot.shape, condition.type_, condition.status, condition.reason, condition.message
        )
    }));
    // After the faults, no condition may have a note that it is out of date. An exception is the note about a group
    // version that cannot be discovered, because its API server never responds.
    let is_doubtful = |condition: &&Condition| {
        condition.message.contains("may be out of date")
            && !condition.message.ends_with("cannot be discovered")
    };
    differences.extend(
        conditions
            .iter()
            .filter(is_doubtful)
            .map(|condition| format!("{slot}: {}: {}", condition.type_, condition.message)),
    );
    for (type_, verdict) in expected {
        let condition = conditions
            .iter()
            .find(|condition| condition.type_ == *type_);
        let actual =
            condition.map(|condition| format!("{}/{}", condition.status, condition.reason));
        let is_current =
            condition.is_some_and(|condition| condition.observed_generation == generation);
        if actual.as_deref() != Some(verdict) || !is_current {
            differences.push(format!(
                "{slot} ({:?}): {type_} is predicted as {verdict}, and is {} at generation {:?}: {}",
                slot.shape,
                actual.unwrap_or_default(),
                condition.and_then(|condition| condition.observed_generation),
                condition
                    .map(|condition| condition.message.as_str())
                    .unwrap_or_default()
            ));
        }
    }
    differences
}

/// Returns messages about metrics of missing policies, and about policies without metrics.
async fn series(
    controller: &Controller,
    state: &ClusterState,
    existing: &BTreeSet<(bool, String)>,
) -> Result<Vec<String>> {
    let samples = controller.samples().await?;
    let policy_of = |sample: &Sample| {
        let is_mutating = sample.label("kind") == Some("MutatingAdmissionPolicy");
        Some((is_mutating, sample.label("policy")?.to_owned()))
    };
    let conditions = || {
        samples
            .iter()
            .filter(|sample| sample.name == "vap_policy_condition")
    };
    let actual: BTreeSet<_> = conditions().filter_map(policy_of).collect();
    let mut differences = Vec::new();
    if actual != *existing {
        differences.push(format!(
            "the metrics have {actual:?}, but the policies are {existing:?}"
        ));
    }
    let is_ready = |key: &(bool, String)| {
        conditions().any(|sample| {
            policy_of(sample).as_ref() == Some(key)
                && sample.label("condition") == Some("Ready")
                && sample.label("status") == Some("True")
                && sample.value > 0.0
        })
    };
    for slot in Slot::ALL {
        let Some(expected) = expected_conditions(state, slot) else {
            continue;
        };
        let should_be = expected.get("Ready") == Some(&"True/Ready");
        if is_ready(&(slot.is_mutating, slot.name())) != should_be {
            differences.push(format!(
                "{slot}: the metric of its readiness differs from the prediction ({should_be})"
            ));
        }
    }
    Ok(differences)
}
