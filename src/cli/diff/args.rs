//! The command line of `diff`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::connection::Connection;
use crate::cli::eval::args::Asks;
use crate::cli::time_limit::Timeout;

/// Examples and exit statuses.
pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap diff old/ new/ -f manifests/
  kubectl vap diff old.yaml new.yaml --with probes/
  kubectl vap diff old.yaml new.yaml --with bindings/ --context staging
  kubectl vap diff vap/replica-limit new.yaml --live

Policies are compared by their names. They are asked about the cases of probes, the
objects of -f, or those of the cluster, each taken for one that is created as it is, or
changed into itself. Webhooks are not run.

Exit status, as of diff(1):
  0  nothing that was asked about is decided otherwise, nor with another message
  1  something is
  2  wrong use, or something of the input or of the cluster could not be read";

/// `diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// A file or directory with policies as they are, or vap/NAME for one of a cluster
    #[arg(value_name = "OLD PATH|vap/NAME")]
    pub old: PathBuf,
    /// A file or directory with policies as they are to be
    #[arg(value_name = "NEW PATH|vap/NAME")]
    pub new: PathBuf,
    /// A file or directory with what both need: bindings, params, namespaces, CustomResourceDefinitions, probes; may be
    /// given several times
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// A file or directory with objects; - is standard input; may be given several times. Without, the objects are
    /// those of the cluster, or where none is asked the probes and objects beside the policies
    #[arg(short, long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// The flags of who asks.
    #[command(flatten)]
    pub asks: Asks,
    /// Ask the cluster of the kubeconfig's current context; implied by the flags that name a cluster or user
    #[arg(long)]
    pub live: bool,
    /// A file or directory with CustomResourceDefinitions; may be given several times
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// How many objects are asked for at once
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub chunk_size: u32,
    /// The form of the output: text, or stable `json`
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
    /// Which cluster to ask.
    #[command(flatten)]
    pub connection: Connection,
}

/// The form of the output of `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
}
