//! Reads names for completions from a cluster and a kubeconfig, with a time limit.
//!
//! Completion must be fast and silent: errors yield no completions.

use std::time::Duration;

use kube::api::ListParams;
use kube::config::Kubeconfig;

use super::Names;
use crate::cli::connection::{Connection, Requested, block_on};
use crate::cli::error::CliError;
use crate::cli::live::objects::Kind;

/// The maximum time to wait for a response from the cluster.
const DEADLINE: Duration = Duration::from_secs(2);

/// The maximum number of names.
const MAX_NAMES: u32 = 1_000;

/// Returns the available names, sorted.
pub(in crate::cli) fn lookup(names: Names, flags: &Connection) -> Vec<String> {
    let completions = match names {
        Names::Policies => policies(flags),
        Names::Contexts | Names::Clusters | Names::Users => kubeconfig_names(names, flags),
    };
    let mut completions = completions.unwrap_or_default();
    completions.sort();
    completions
}

fn policies(flags: &Connection) -> Option<Vec<String>> {
    let asked = block_on(async {
        let listed = tokio::time::timeout(DEADLINE, async {
            let connected = flags.connect().await?;
            let params = ListParams::default().limit(MAX_NAMES);
            let listed = Kind::Policy.api(&connected).list_metadata(&params).await;
            listed.map_err(|error| connected.explain(&error.into(), Requested::Policies))
        });
        let listed = listed.await;
        Ok::<_, CliError>(listed.ok().and_then(Result::ok))
    });
    let listed = asked.ok().flatten()?;
    let names = listed.items.into_iter();
    Some(names.filter_map(|policy| policy.metadata.name).collect())
}

fn kubeconfig_names(names: Names, flags: &Connection) -> Option<Vec<String>> {
    let read = match &flags.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = read.ok()?;
    Some(match names {
        Names::Policies => Vec::new(),
        Names::Contexts => kubeconfig.contexts.into_iter().map(|it| it.name).collect(),
        Names::Clusters => kubeconfig.clusters.into_iter().map(|it| it.name).collect(),
        Names::Users => (kubeconfig.auth_infos.into_iter())
            .map(|it| it.name)
            .collect(),
    })
}
