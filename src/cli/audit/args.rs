//! The command line of `audit`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::connection::Connection;
use crate::cli::eval::args::Asks;
use crate::cli::time_limit::Timeout;
use crate::policy::admission::Operation;

/// Examples and exit statuses.
pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap audit --live
  kubectl vap audit vap/replica-limit -n team-a
  kubectl vap audit policies/ --context staging
  kubectl vap audit policies/ -f manifests/
  kustomize build . | kubectl vap audit policies/ -f -
  kubectl vap audit --live -o jsonl > audit.jsonl

Each object is taken for one that is created as it is, or changed into itself where a
policy matches no creation. What a stored object does not tell is named for each policy
that reads it. Of a mutating policy it is told what it would change. Webhooks are not run.

Exit status:
  0  no policy denies an object (or --exit-zero)
  1  a policy denies an object, or would change it, or its evaluation fails
  2  wrong use, or something of the input or of the cluster could not be read";

/// `audit`.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Files and directories with policies, and with the bindings, params, namespaces and CustomResourceDefinitions
    /// that they need; - is standard input; vap/NAME is a policy of a cluster
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// A file or directory with objects; - is standard input; may be given several times. Without, the objects are
    /// those of the cluster, or where none is asked those beside the policies
    #[arg(short, long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Take each object for one of a request of this operation: CREATE, UPDATE into itself, or DELETE
    /// [default: CREATE, and UPDATE for policies that do not match it]
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    pub operation: Option<Operation>,
    /// The flags of who asks.
    #[command(flatten)]
    pub asks: Asks,
    /// Ask the cluster of the kubeconfig's current context; implied by the flags that name a cluster or user
    #[arg(long)]
    pub live: bool,
    /// Audit by the policies of the cluster whose labels the selector selects
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions; may be given several times. Those among
    /// the input are used in any case
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// How many objects are asked for at once
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub chunk_size: u32,
    /// The form of the output: a summary as text, a document as stable `json`, or JSON lines as `jsonl`, an object a
    /// line and the summary last; both are written as objects are read
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: AuditOutput,
    /// End with 0 also when policies deny objects
    #[arg(long)]
    pub exit_zero: bool,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
    /// Which cluster to ask.
    #[command(flatten)]
    pub connection: Connection,
}

/// The form of the output of `audit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditOutput {
    /// For people.
    Text,
    /// For programs: one document.
    Json,
    /// For programs: a line for each object.
    Jsonl,
}

/// An operation that a stored object may be taken for.
///
/// # Errors
/// Where it is none.
fn operation(text: &str) -> Result<Operation, String> {
    match text.parse()? {
        Operation::Connect => Err("an object says nothing of a CONNECT".to_owned()),
        operation => Ok(operation),
    }
}
