//! Beside what the model foretells, what the cluster and the metrics say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Client;
use kube::api::{Api, ListParams};

use super::model::foretold;
use super::universe::{Slot, World};
use crate::controller::Controller;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// How long all must stay as foretold until it is taken for the last word.
const STEADY: Duration = Duration::from_secs(1);

/// Waits until every condition of every policy is as foretold and stays so.
///
/// # Errors
/// When that does not come within `patience`, with the differences.
pub(super) async fn agreed(
    client: &Client,
    controller: &Controller,
    world: &World,
    patience: Duration,
) -> Result<()> {
    let started = Instant::now();
    let mut steady_since: Option<Instant> = None;
    loop {
        let differences = differences(client, controller, world).await?;
        if differences.is_empty() {
            if steady_since.get_or_insert_with(Instant::now).elapsed() >= STEADY {
                return Ok(());
            }
        } else {
            steady_since = None;
            if started.elapsed() > patience {
                bail!(
                    "not as foretold {} s after the last fault:\n  {}\n",
                    patience.as_secs(),
                    differences.join("\n  ")
                );
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the differences from the forecast.
async fn differences(
    client: &Client,
    controller: &Controller,
    world: &World,
) -> Result<Vec<String>> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let found = api.list(&ListParams::default()).await?.items;
    let mut by_name: BTreeMap<String, ValidatingAdmissionPolicy> = found
        .into_iter()
        .filter_map(|policy| Some((policy.metadata.name.clone()?, policy)))
        .collect();
    let mut differences = Vec::new();
    let mut existing = BTreeSet::new();
    for slot in Slot::ALL {
        let Some(expected) = foretold(world, slot) else {
            continue;
        };
        let policy = by_name.remove(&slot.name());
        let policy = policy.with_context(|| format!("{} is gone", slot.name()))?;
        existing.insert(slot.name());
        let generation = policy.metadata.generation;
        let status = policy.status.unwrap_or_default();
        if status.observed_generation != generation {
            differences.push(format!(
                "{}: observedGeneration is {:?} at generation {generation:?}",
                slot.name(),
                status.observed_generation
            ));
        }
        let conditions = status.conditions.unwrap_or_default();
        let unexpected = conditions
            .iter()
            .filter(|condition| !expected.contains_key(condition.type_.as_str()));
        differences.extend(unexpected.map(|condition| {
            format!(
                "{} ({:?}): {} is not foretold, and is {}/{}: {}",
                slot.name(),
                slot.shape,
                condition.type_,
                condition.status,
                condition.reason,
                condition.message
            )
        }));
        for (type_, verdict) in &expected {
            let found = conditions
                .iter()
                .find(|condition| condition.type_ == *type_);
            let told = found.map(|found| format!("{}/{}", found.status, found.reason));
            let is_current = found.is_some_and(|found| found.observed_generation == generation);
            if told.as_deref() != Some(verdict) || !is_current {
                differences.push(format!(
                    "{} ({:?}): {type_} is foretold as {verdict}, and is {} at generation {:?}: {}",
                    slot.name(),
                    slot.shape,
                    told.unwrap_or_default(),
                    found.and_then(|found| found.observed_generation),
                    found
                        .map(|found| found.message.as_str())
                        .unwrap_or_default()
                ));
            }
        }
    }
    differences.extend(by_name.into_keys().map(|name| format!("{name} is there")));
    differences.extend(series(controller, world, &existing).await?);
    Ok(differences)
}

/// Returns the series of policies that do not exist, and the missing series of those that do.
async fn series(
    controller: &Controller,
    world: &World,
    existing: &BTreeSet<String>,
) -> Result<Vec<String>> {
    let samples = controller.samples().await?;
    let told: BTreeSet<String> = samples
        .iter()
        .filter(|sample| sample.name == "vap_policy_condition")
        .filter_map(|sample| sample.label("policy").map(str::to_owned))
        .collect();
    let mut differences = Vec::new();
    if told != *existing {
        differences.push(format!(
            "the metrics tell of {told:?}, and there are {existing:?}"
        ));
    }
    let is_ready = |policy: &str| {
        samples.iter().any(|sample| {
            sample.name == "vap_policy_condition"
                && sample.label("policy") == Some(policy)
                && sample.label("condition") == Some("Ready")
                && sample.label("status") == Some("True")
                && sample.value > 0.0
        })
    };
    for slot in Slot::ALL {
        let Some(expected) = foretold(world, slot) else {
            continue;
        };
        let should_be = expected.get("Ready") == Some(&"True/Ready");
        if is_ready(&slot.name()) != should_be {
            differences.push(format!(
                "{}: the metrics tell otherwise of its readiness than is foretold ({should_be})",
                slot.name()
            ));
        }
    }
    Ok(differences)
}
