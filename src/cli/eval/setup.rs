//! Reads the input of the commands that evaluate policies: files, known APIs, and data of a cluster.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
use super::cluster;
use super::policy_set::ClusterInputs;
use crate::cli::check::finding::{Finding, Location, Severity};
use crate::cli::check::known::Known;
use crate::cli::check::report::{no_crds, unread};
use crate::cli::check::shape;
#[cfg(not(target_family = "wasm"))]
use crate::cli::connection::{self, Connection};
use crate::cli::error::CliError;
use crate::cli::input::{Input, KindFilter};
#[cfg(not(target_family = "wasm"))]
use crate::cli::live::Plan;
use crate::cli::live::{ClusterData, Gap, Served};
use crate::policy::rule::Rule;
use crate::schema::{Crd, Gvk};
use crate::version::KubernetesVersion;

#[cfg(not(target_family = "wasm"))]
#[derive(Debug)]
pub(in crate::cli) struct Sources<'a> {
    /// Files, directories, and names of policies.
    pub(in crate::cli) paths: &'a [PathBuf],
    /// Files and directories of CRDs.
    pub(in crate::cli) crds: &'a [PathBuf],
    /// A label selector for policies of a cluster.
    pub(in crate::cli) selector: Option<&'a String>,
    /// The version of the API server. If it is `None`, the version of the cluster or, without a cluster, the default
    /// version is used.
    pub(in crate::cli) version: Option<KubernetesVersion>,
    /// The value of `--live`. If true, the cluster is read even if no other option refers to it.
    pub(in crate::cli) live: bool,
    pub(in crate::cli) connection: &'a Connection,
}

/// The input of an evaluation.
pub(in crate::cli) struct Setup {
    /// The objects of files, and the policies and bindings of a cluster.
    pub(in crate::cli) input: Input,
    /// The served APIs and their schemas.
    pub(in crate::cli) known: Known,
    /// Other data of the cluster, if it was read.
    pub(in crate::cli) cluster_inputs: Option<ClusterInputs>,
    pub(in crate::cli) server: Option<String>,
    /// Problems with the input, and data that could not be read.
    pub(in crate::cli) findings: Vec<Finding>,
}

/// The data of a cluster for an evaluation, and the CustomResourceDefinitions of the cluster.
pub(super) type LiveInputs = (ClusterData, Served, ClusterInputs, Vec<Crd>);

impl Setup {
    /// Reads the sources. `kinds` are the known kinds of the request's objects. Their CustomResourceDefinitions are
    /// read from the cluster.
    ///
    /// # Errors
    /// Returns an error if the sources conflict, or if the cluster cannot be reached.
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::cli) fn read(
        sources: &Sources<'_>,
        kinds: &BTreeSet<Gvk>,
        stdin: &mut dyn Read,
    ) -> Result<Self, CliError> {
        let plan = Plan::new(
            sources.paths,
            sources.selector,
            sources.live,
            sources.connection,
        )?;
        let input = Input::load(&plan.paths, KindFilter::All, stdin);
        Self::with_input(sources, &plan, input, kinds, stdin)
    }

    /// Reads the sources like [`Setup::read`], except for the files of `plan`: `input` already contains their objects.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be reached.
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::cli) fn with_input(
        sources: &Sources<'_>,
        plan: &Plan,
        input: Input,
        kinds: &BTreeSet<Gvk>,
        stdin: &mut dyn Read,
    ) -> Result<Self, CliError> {
        let crds = Input::load(sources.crds, KindFilter::Crds, stdin);
        let findings: Vec<Finding> = no_crds(sources.crds, &crds).into_iter().collect();
        Self::from_input((input, crds), findings, sources.version, |input, crds| {
            if !plan.is_live {
                return Ok(None);
            }
            let read = connection::block_on(async {
                let connected = sources.connection.connect().await?;
                let selection = plan.selection.as_ref();
                cluster::read(&connected, selection, input, crds, kinds).await
            });
            read.map(Some)
        })
    }

    /// Creates the setup from loaded files. `crds` contains additional CustomResourceDefinitions. `ask` reads the
    /// cluster, and returns `None` if no cluster is used.
    ///
    /// # Errors
    /// Returns the errors of `ask`, or an error if the built-in schemas cannot be read.
    pub(in crate::cli) fn from_input(
        (mut input, crds): (Input, Input),
        mut findings: Vec<Finding>,
        version: Option<KubernetesVersion>,
        ask: impl FnOnce(&mut Input, &Input) -> Result<Option<LiveInputs>, CliError>,
    ) -> Result<Self, CliError> {
        findings.extend(input.problems.iter().chain(&crds.problems).map(unread));
        for invalid in input.invalid.iter().chain(&crds.invalid) {
            let problems = shape::invalid(invalid).into_iter();
            findings.extend(problems.filter(|problem| problem.severity == Severity::Error));
        }
        let asked = ask(&mut input, &crds)?;
        let own_crds = std::mem::take(&mut input.crds);
        let all_crds = own_crds.into_iter().chain(crds.crds).map(|crd| crd.value);
        let (known, cluster_inputs, server) = match asked {
            Some((asked, served, cluster_inputs, live_crds)) => {
                let server = asked.server.unwrap_or_default();
                findings.extend(asked.gaps.into_iter().map(|gap| gap_finding(gap, &server)));
                let apis =
                    Known::with_cluster(version, all_crds.chain(live_crds), Arc::new(served))?;
                (apis, Some(cluster_inputs), Some(server))
            }
            None => {
                let apis = Known::new(version, all_crds, input.all_policies())?;
                (apis, None, None)
            }
        };
        Ok(Self {
            input,
            known,
            cluster_inputs,
            server,
            findings,
        })
    }
}

/// Returns the finding for data of a cluster that could not be read.
pub(in crate::cli) fn gap_finding(gap: Gap, server: &str) -> Finding {
    let severity = if gap.is_fatal {
        Severity::Error
    } else {
        Severity::Note
    };
    Finding {
        help: Some(gap.help),
        ..Finding::new(
            severity,
            Rule::ClusterReadFailed,
            gap.message,
            Location::from_file(server),
        )
    }
}
