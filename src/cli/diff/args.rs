//! The command line of `diff`.

use std::path::PathBuf;

use crate::cli::connection::Connection;
use crate::cli::eval::args::{ClusterArgs, OutputArgs, PageArgs, UserArgs, VersionArgs};
use crate::cli::time_limit::Timeout;

pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap diff old/ new/ -f manifests/
  kubectl vap diff old.yaml new.yaml --with probes/
  kubectl vap diff old.yaml new.yaml --with bindings/ --context staging
  kubectl vap diff vap/replica-limit new.yaml --live

Policies are matched by name. They are evaluated for the cases of probes, the objects of
-f, or the objects of the cluster. Each object is treated as a CREATE request, as an UPDATE
without changes, and as a DELETE, if a policy matches the operation. For changed policies,
further requests are generated. Webhooks are not called.

Exit status, as in diff(1):
  0  no decision, message or setting changed
  1  a decision, a message or another part of a response, or a setting changed
  2  usage error, part of the input or of the cluster could not be read, or no request
     matched";

/// The arguments of `kubectl vap diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// A file or directory with the old policies, or vap/NAME for a policy in a cluster
    #[arg(value_name = "OLD PATH|vap/NAME")]
    pub old: PathBuf,
    /// A file or directory with the new policies, or vap/NAME for a policy in a cluster
    #[arg(value_name = "NEW PATH|vap/NAME")]
    pub new: PathBuf,
    /// A file or directory with objects that both versions use: bindings, params, namespaces,
    /// CustomResourceDefinitions, probes; repeatable. Objects that OLD or NEW also defines are ignored, with a note
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// A file or directory with objects; - is standard input; repeatable. Default: the objects of the cluster or,
    /// without a cluster, the probes and other objects in the policies' files
    #[arg(short, long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Evaluate only the objects and the probes' cases; do not generate requests
    #[arg(long)]
    pub no_generated: bool,
    /// The version of the API server.
    #[command(flatten)]
    pub version: VersionArgs,
    /// The user of the requests.
    #[command(flatten)]
    pub user: UserArgs,
    /// The flag that selects whether a cluster is used.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// A file or directory with CustomResourceDefinitions (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The page size of list requests.
    #[command(flatten)]
    pub pages: PageArgs,
    /// The output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}
