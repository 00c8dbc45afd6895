//! Periodic tasks that refresh probe results whose inputs are not watched.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;

use super::super::probes::Version;
use crate::cluster::error::within;
use crate::controller::context::Context;
use crate::controller::subjects::probe::Probe;
use crate::policy::subject::SubjectId;

/// The maximum age of a cached namespace.
const MAX_NAMESPACE_AGE: Duration = Duration::from_secs(5);

const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which probes that exceeded the time limit are evaluated again. They may have exceeded it because the
/// machine was busy.
const LATE_AGAIN: Duration = Duration::from_secs(600);

/// A task of the periodic resync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MaintenanceTask {
    /// Read a namespace, and evaluate dependent probes again if it has changed.
    Namespace(String),
    /// Evaluate the probes of a policy again.
    Renew(SubjectId),
    /// Report in the statuses of a policy's probes that the policy is missing.
    ReportMissing(SubjectId),
    /// Read a probe again that did not fit into the memory limit of all probes.
    Readmit(String),
}

/// Returns all tasks that are due.
pub(crate) fn tasks(context: &Context) -> Vec<MaintenanceTask> {
    let mut namespaces = BTreeSet::new();
    let mut policies = BTreeSet::new();
    context.probe_runner.for_each_outcome(|policy, outcome| {
        namespaces.extend(outcome.namespaces.keys().cloned());
        if outcome.has_asked || (outcome.is_late && outcome.at.elapsed() >= LATE_AGAIN) {
            policies.insert(policy.clone());
        }
    });
    let mut named = context.probes.policies();
    named.retain(|policy| !context.store.has(policy));
    let readmissible = context.probes.readmissible();
    let namespaces = namespaces.into_iter().map(MaintenanceTask::Namespace);
    namespaces
        .chain(policies.into_iter().map(MaintenanceTask::Renew))
        .chain(named.into_iter().map(MaintenanceTask::ReportMissing))
        .chain(readmissible.into_iter().map(MaintenanceTask::Readmit))
        .collect()
}

pub(crate) async fn run_task(context: &Context, task: MaintenanceTask) {
    let probe_runner = &context.probe_runner;
    let namespace = match task {
        MaintenanceTask::Namespace(namespace) => namespace,
        MaintenanceTask::Renew(policy) => return probe_runner.renew(&policy),
        MaintenanceTask::ReportMissing(policy) => return probe_runner.add(&policy),
        MaintenanceTask::Readmit(probe) => return readmit(context, &probe).await,
    };
    let read = probe_runner
        .namespaces
        .get(&context.client, &namespace, MAX_NAMESPACE_AGE)
        .await;
    if let Err(why) = &read {
        if context.log_throttle.is_due("namespaces") {
            tracing::warn!(
                namespace,
                "cannot read a namespace that probes depend on: {}",
                why.text
            );
        }
        // After a transient error, the last results are retained.
        if why.is_transient {
            return;
        }
    }
    let version = Version::new(&read);
    let mut changed = BTreeSet::new();
    probe_runner.for_each_outcome(|policy, outcome| {
        let with = outcome.namespaces.get(&namespace);
        if with.is_some_and(|with| *with != version) {
            changed.insert(policy.clone());
        }
    });
    for policy in changed {
        probe_runner.renew(&policy);
    }
}

/// Reads a rejected probe again, since the memory limit now allows it.
async fn readmit(context: &Context, name: &str) {
    let api: Api<Probe> = Api::all(context.client.clone());
    // The probe is listed by name, since the controller has permission to list probes, but not to get them.
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    match within(READ_TIMEOUT, api.list(&params)).await {
        Ok(list) => {
            for probe in list.items {
                context.touch(context.probes.readmit(probe));
            }
        }
        Err(error) => {
            tracing::debug!(probe = name, %error, "cannot reread a probe that exceeded the memory limit");
        }
    }
}
