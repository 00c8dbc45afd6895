//! The command line of `audit`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::connection::Connection;
use crate::cli::eval::args::{ClusterArgs, PageArgs, UserArgs, VersionArgs};
use crate::cli::time_limit::Timeout;
use crate::policy::admission::Operation;

pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap audit --live
  kubectl vap audit vap/replica-limit -n team-a
  kubectl vap audit policies/ --context staging
  kubectl vap audit policies/ -f manifests/
  kustomize build . | kubectl vap audit policies/ -f -
  kubectl vap audit --live -o jsonl > audit.jsonl
  kubectl vap audit --live -o policyreport | kubectl apply -f -

Each object is treated as a CREATE request, or as an UPDATE without changes if a policy
does not match CREATE. Request data that a stored object lacks is listed for each policy
that reads it. For a mutating policy, the output shows its changes. Webhooks are not called.

Exit status:
  0  no policy denies an object (or --exit-zero)
  1  a policy denies an object or would change it, or an evaluation fails
  2  usage error, part of the input or of the cluster could not be read, or there are no
     objects or policies to evaluate";

/// The arguments of `audit`.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Files and directories with policies, and with the bindings, params, namespaces and CustomResourceDefinitions
    /// that they need; - is standard input; vap/NAME is a policy of a cluster
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// A file or directory with objects; - is standard input; repeatable. Default: the objects of the cluster or,
    /// without a cluster, the other objects in the policies' files
    #[arg(short, long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// The operation of the requests: CREATE, UPDATE (without changes) or DELETE
    /// [default: CREATE, and UPDATE for policies that do not match CREATE]
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    pub operation: Option<Operation>,
    /// The version of the API server.
    #[command(flatten)]
    pub version: VersionArgs,
    /// The user of the requests.
    #[command(flatten)]
    pub user: UserArgs,
    /// The flag that selects whether a cluster is used.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Audit with the policies of the cluster whose labels match the selector
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The page size of list requests.
    #[command(flatten)]
    pub pages: PageArgs,
    /// The output format: `text` (a summary), `json` (one stable document), `jsonl` (one object per line, then the
    /// summary), `policyreport` or `openreports` (one report per object), or `sarif`
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: AuditOutput,
    /// Exit 0 even if policies deny objects
    #[arg(long)]
    pub exit_zero: bool,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
    /// The flags for the connection to a cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The output format of `audit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditOutput {
    /// Human-readable.
    Text,
    /// Machine-readable: one document.
    Json,
    /// Machine-readable: one line per object.
    Jsonl,
    /// For clusters and dashboards: a list of policy reports of the API group `wgpolicyk8s.io`, one for each object.
    Policyreport,
    /// For clusters and dashboards: a list of reports of the API group `openreports.io`, one for each object.
    Openreports,
    /// For code scanning.
    Sarif,
}

/// Parses the operation of the requests.
///
/// # Errors
/// Returns an error if the string is not an operation, or is CONNECT.
fn operation(text: &str) -> Result<Operation, String> {
    match text.parse()? {
        Operation::Connect => Err("a stored object cannot represent a CONNECT request".to_owned()),
        operation => Ok(operation),
    }
}
