//! The command line of `upgrade-check`.

use std::path::PathBuf;

use crate::cli::connection::Connection;
use crate::cli::diff::args::DiffOutput;
use crate::cli::eval::args::UserArgs;
use crate::cli::time_limit::Timeout;
use crate::version::KubernetesVersion;

pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap upgrade-check policies/ --from 1.36 --to 1.37
  kubectl vap upgrade-check policies/ --from 1.34 --to 1.37 --crds crds/
  kubectl vap upgrade-check policies/ -f manifests/ --from 1.36
  kubectl vap upgrade-check --context staging
  kubectl vap upgrade-check policies/ --from 1.36 --write-probes probes.yaml

Classes of changes:
  DENIES   a request is denied that was admitted before
  ADMITS   a request is admitted that was denied before
  ERRORS   an evaluation fails in only one version; the decision is the same
  REFUSED  the new version rejects the policy when it is created or changed
  MUTATES  a mutating policy changes the object in another way
  COSTS    an expression costs so much more that a limit is near
  TAKEN    the new version accepts the policy, and the old version rejects it
  AUDIT    the audit annotations or warnings differ
  TEXT     the text of a message differs (with --text)

Each policy is evaluated under both versions, for generated requests, for the cases of
probes, and for the objects of -f or of the cluster. Each version uses its own schemas.

Exit status:
  0  no change, or only TAKEN, AUDIT and TEXT; undecided policies do not count without
     --strict
  1  a change of another class
  2  usage error, part of the input or of the cluster could not be read, no policy was
     evaluated for a request, or, with --strict, a policy is undecided";

/// The arguments of `kubectl vap upgrade-check`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each field is a flag")]
pub struct UpgradeArgs {
    /// Files and directories with policies and the objects that they need: bindings, params, namespaces, probes;
    /// vap/NAME is a policy of a cluster
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// The version before the upgrade, 1.30 to 1.36, such as 1.34 or 1.36.4; required without a cluster [default: the
    /// version of the cluster]
    #[arg(long, value_name = "VERSION")]
    pub from: Option<KubernetesVersion>,
    /// The version after the upgrade, up to 1.37 [default: the next minor version]
    #[arg(long, value_name = "VERSION")]
    pub to: Option<KubernetesVersion>,
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
    /// Check the policies of the cluster whose labels match the selector
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The number of objects per page of a list
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub chunk_size: u32,
    /// Also show changes of messages, in the class TEXT
    #[arg(long)]
    pub text: bool,
    /// Show the generated request of each change as YAML, and list all undecided policies
    #[arg(short, long)]
    pub verbose: bool,
    /// Write the generated requests of the changes to FILE, as probes that pass only in the old version
    #[arg(long, value_name = "FILE")]
    pub write_probes: Option<PathBuf>,
    /// Exit 2 if a policy is undecided and no change was found
    #[arg(long)]
    pub strict: bool,
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
