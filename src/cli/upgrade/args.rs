//! The command line of `upgrade-check`.

use std::path::PathBuf;

use crate::cli::connection::Connection;
use crate::cli::error::CliError;
use crate::cli::eval::args::{ClusterArgs, OutputArgs, PageArgs, UserArgs};
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
  MUTATES  a mutating policy changes the object differently
  COSTS    the estimated cost is near a limit only in the new version
  TAKEN    the new version accepts the policy, and the old version rejects it
  AUDIT    the audit annotations or warnings differ
  TEXT     the text of a message differs (with --text)

Each policy is evaluated under both versions, for generated requests, for the cases of
probes, and for the objects of -f or of the cluster. Each version uses its own schemas.

Exit status:
  0  no change, or only TAKEN, AUDIT and TEXT; undecided policies do not count without
     --strict
  1  a change of any other class, or the new version does not serve a resource of a rule
  2  usage error, part of the input or of the cluster could not be read, no policy was
     evaluated for any request, or, with --strict, a policy is undecided and nothing
     changes";

/// The arguments of `kubectl vap upgrade-check`.
#[derive(Debug, clap::Args)]
pub struct UpgradeArgs {
    /// Files and directories with policies and the objects that they need (bindings, params, namespaces, probes), or -
    /// for standard input; vap/NAME is a policy of a cluster
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
    /// The flag that selects whether a cluster is used.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Check the policies of the cluster whose labels match the selector
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// A directory with static manifests, which API servers load when they start. Names that end with `.static.k8s.io`
    /// are allowed only in this directory
    #[arg(long = "static", value_name = "DIR")]
    pub static_dir: Option<PathBuf>,
    /// The page size of list requests.
    #[command(flatten)]
    pub pages: PageArgs,
    /// Also show changed messages (class TEXT)
    #[arg(long)]
    pub text: bool,
    /// Also show the generated requests (as YAML) and the source of each change, and list policies that are not affected
    #[arg(short, long)]
    pub verbose: bool,
    /// Save in FILE a generated request for each change, as a probe that passes only in the old version
    #[arg(long, value_name = "FILE")]
    pub write_probes: Option<PathBuf>,
    /// Exit 2 if a policy is undecided (effect unknown) and no change was found
    #[arg(long)]
    pub strict: bool,
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

impl UpgradeArgs {
    /// Returns the version after the upgrade from `from`. `is_live` is true if a cluster was read.
    ///
    /// # Errors
    /// Returns a usage error if the version before the upgrade is unknown, or if it is not older than the new version.
    pub(super) fn new_version(
        &self,
        from: KubernetesVersion,
        is_live: bool,
    ) -> Result<KubernetesVersion, CliError> {
        if self.from.is_none() && !is_live {
            let message =
                "the version before the upgrade is unknown: pass --from VERSION, or use a cluster";
            return Err(CliError::Usage(message.to_owned()));
        }
        let next = KubernetesVersion::new(from.minor.saturating_add(1));
        let to = self.to.unwrap_or(next);
        check_order(from, to)?;
        Ok(to)
    }
}

/// Checks that `to` is a supported version after `from`.
///
/// # Errors
/// Returns a usage error if `to` is unsupported or not after `from`.
pub(super) fn check_order(from: KubernetesVersion, to: KubernetesVersion) -> Result<(), CliError> {
    let message = if !to.is_supported() {
        format!("{from} is the newest supported version; no later version can be compared")
    } else if (to.minor, to.patch) == (from.minor, from.patch) {
        format!("both versions are {to}: pass a later version with --to")
    } else if to < from {
        format!(
            "--to {to} is older than --from {from}: pass the version before the upgrade with --from"
        )
    } else {
        return Ok(());
    };
    Err(CliError::Usage(message))
}
