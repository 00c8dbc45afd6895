//! The command line of `upgrade-check`.

use std::path::PathBuf;

use crate::cli::connection::Connection;
use crate::cli::diff::args::DiffOutput;
use crate::cli::eval::args::UserArgs;
use crate::cli::time_limit::Timeout;
use crate::version::KubernetesVersion;

pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap upgrade-check policies/ --from 1.34 --to 1.37
  kubectl vap upgrade-check policies/ -f manifests/ --from 1.36
  kubectl vap upgrade-check --live

The policies are evaluated for the cases of probes, and for the objects of -f or of the cluster.
Without a cluster, both versions use the schemas of Kubernetes 1.36.

Exit status:
  0  no decision changes, and both versions accept the same policies
  1  a change
  2  usage error, or part of the input or of the cluster could not be read";

/// The arguments of `kubectl vap upgrade-check`.
#[derive(Debug, clap::Args)]
pub struct UpgradeArgs {
    /// Files and directories with policies and other objects, or vap/NAME for a policy in a cluster
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// The current version of the API server, such as 1.34 or 1.36.4 [default: that of the cluster]
    #[arg(long, value_name = "VERSION")]
    pub from: Option<KubernetesVersion>,
    /// The version after the upgrade
    #[arg(long, value_name = "VERSION", default_value_t = KubernetesVersion::NEWEST)]
    pub to: KubernetesVersion,
    /// A file or directory with objects; - is standard input; repeatable. Default: the objects of the cluster or,
    /// without a cluster, the probes and other objects in the policies' files
    #[arg(short, long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// The user of the requests.
    #[command(flatten)]
    pub user: UserArgs,
    /// Use a cluster (by default, the cluster of the kubeconfig's current context); implied by the flags that select a
    /// cluster or user
    #[arg(long)]
    pub live: bool,
    /// A file or directory with CustomResourceDefinitions (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The number of objects per page of a list
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub chunk_size: u32,
    /// Also show changed messages
    #[arg(long)]
    pub text: bool,
    /// The output format: `text`, or `json` in a stable schema
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: DiffOutput,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}
