//! Reads a cluster on a thread: its APIs, and the bindings and params of the policies in the workspace.
//!
//! The data are read at the start, when a file is saved, and when a policy matches resources whose schemas were not read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::workspace::Workspace;
use crate::cli::check::known::Known;
use crate::cli::connection::{self, Connection};
use crate::cli::error::CliError;
use crate::cli::input::Object;
use crate::cli::live::{self, ClusterData, ListScope, Served};
use crate::policy::RequestPolicy;
use crate::schema::GroupVersion;

/// The data of a cluster that affects the findings about the workspace.
#[derive(Debug)]
pub(super) struct ClusterState {
    pub(super) served: Arc<Served>,
    /// The data of the cluster except the served APIs.
    pub(super) data: ClusterData,
    /// The bindings of the workspace's policies that are only in the cluster.
    pub(super) bindings: Vec<Object<ValidatingAdmissionPolicyBinding>>,
    /// The bindings of the workspace's mutating policies that are only in the cluster.
    pub(super) mutating_bindings: Vec<Object<ValidatingAdmissionPolicyBinding>>,
    /// The group versions whose schemas were requested.
    needed: BTreeSet<GroupVersion>,
}

impl ClusterState {
    /// Returns true if the policies need schemas that were not requested from the cluster.
    pub(super) fn lacks_schemas<'a>(
        &self,
        policies: impl Iterator<Item = &'a RequestPolicy>,
        known: &Known,
    ) -> bool {
        !live::needed(policies, &known.mapper).is_subset(&self.needed)
    }
}

/// The data of a cluster, or the reason why they cannot be read.
pub(super) type Outcome = Result<ClusterState, CliError>;

/// The queue of the reads. A read uses the newest state of the workspace.
#[derive(Debug)]
pub(super) struct Reader(Sender<Arc<Workspace>>);

impl Reader {
    /// Starts the thread, which calls `report` with the result of each read.
    pub(super) fn start(connection: Connection, report: impl Fn(Outcome) + Send + 'static) -> Self {
        let (sender, receiver) = channel::<Arc<Workspace>>();
        std::thread::spawn(move || {
            while let Ok(workspace) = receiver.recv() {
                let workspace = receiver.try_iter().last().unwrap_or(workspace);
                report(read(&connection, &workspace));
            }
        });
        Self(sender)
    }

    /// Queues a read for the policies of a workspace.
    pub(super) fn read(&self, workspace: &Arc<Workspace>) {
        let _ = self.0.send(Arc::clone(workspace));
    }
}

fn read(connection: &Connection, workspace: &Workspace) -> Outcome {
    let (mut input, crds) = workspace.all_objects();
    let (data, served) = connection::block_on(async {
        let connected = connection.connect_without_stdin().await?;
        live::read(&connected, None, (&mut input, &crds), ListScope::Admission).await
    })?;
    let own_crds = input.crds.iter().chain(&crds.crds);
    let mapper = live::with_crds(&served.mapper, own_crds.map(|crd| &crd.value));
    let needed = live::needed(input.all_policies(), &mapper);
    let counts = data.file_counts;
    Ok(ClusterState {
        served: Arc::new(served),
        data,
        bindings: input.bindings.split_off(counts.bindings),
        mutating_bindings: input.mutating_bindings.split_off(counts.mutating_bindings),
        needed,
    })
}
