//! The command line of `eval`, and the flags for the user of a request.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::connection::Connection;
use crate::cli::time_limit::Timeout;
use crate::policy::admission::Operation;
use crate::probe::api::UserInfo;
use crate::version::KubernetesVersion;

pub(in crate::cli) const HELP: &str = "\
Examples:
  kubectl vap eval policies/ --object deployment.yaml
  kubectl vap eval policies/ --object new.yaml --old-object old.yaml --request-user ann
  kubectl vap eval policies/ --request admission-review.json
  kubectl vap eval policies/ --resource deployments --subresource scale --object scale.yaml
  kubectl vap eval --context staging --object deployment.yaml
  kubectl vap eval vap/replica-limit --object - < deployment.yaml
  kubectl vap eval -f deployment.yaml --expression 'object.spec.?replicas.orValue(1) * 2'

The object is prepared as in the API server: defaults, metadata, conversion. Mutating
policies run first, and validating policies are evaluated for the mutated object. Webhooks
are not called.

Exit status:
  0  no policy denies the request, or each --expression has a value
  1  a policy denies the request, or the evaluation of an --expression failed
  2  usage error, part of the input could not be read, or a policy or expression could not be
     evaluated";

/// The arguments of `eval`.
#[derive(Debug, clap::Args)]
pub struct EvalArgs {
    /// Files and directories with policies, and with the bindings, params, namespaces and CustomResourceDefinitions
    /// that they need; - is standard input; vap/NAME is a policy of a cluster
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// A file with the object of the request; - is standard input
    #[arg(
        short = 'f',
        long,
        visible_alias = "filename",
        value_name = "FILE",
        conflicts_with = "request"
    )]
    pub object: Option<PathBuf>,
    /// A file with the old object; without --object, the request is a DELETE
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub old_object: Option<PathBuf>,
    /// A file with an admission review, or with the `request` of a probe's case
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// The operation: CREATE, UPDATE, DELETE or CONNECT [default: derived from the objects]
    #[arg(long, value_name = "OPERATION")]
    pub operation: Option<Operation>,
    /// The subresource of the request, such as scale
    #[arg(long, value_name = "NAME")]
    pub subresource: Option<String>,
    /// The resource of the request, as kubectl names it (deployments, deployments.apps, deployments.v1.apps); needed if
    /// the object belongs to a subresource, such as a Scale [default: that of the object's kind]
    #[arg(long, value_name = "RESOURCE", conflicts_with = "request")]
    pub resource: Option<String>,
    /// Evaluate a CEL expression for the request instead of the policies, and print its value; repeatable. The
    /// expression can use the inputs of a validation and, if the input has one policy, its variables and params
    #[arg(long = "expression", value_name = "EXPR")]
    pub expressions: Vec<String>,
    /// The version of the API server.
    #[command(flatten)]
    pub version: VersionArgs,
    /// The user of the request.
    #[command(flatten)]
    pub user: UserArgs,
    /// The flag that selects whether a cluster is used.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Evaluate the policies of the cluster whose labels match the selector
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The output format.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Show the values of all evaluated subexpressions, and the policies that do not match
    #[arg(short, long)]
    pub verbose: bool,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
    /// The flags for the connection to a cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The flag that selects whether a cluster is used.
#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// Use a cluster (by default, the cluster of the kubeconfig's current context); implied by the flags that select a
    /// cluster or user
    #[arg(long)]
    pub live: bool,
}

/// The page size of list requests.
#[derive(Debug, clap::Args)]
pub struct PageArgs {
    /// The number of objects per page of a list
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub chunk_size: u32,
}

/// The output format of commands that support only text and JSON.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// The output format: `text`, or `json` in a stable schema
    #[arg(
        short = 'o',
        long = "output",
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub format: OutputFormat,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Human-readable.
    Text,
    /// Machine-readable.
    Json,
}

/// The flag for the version of the API server.
#[derive(Debug, clap::Args)]
pub struct VersionArgs {
    /// The version of the API server that evaluates the requests, 1.30 to 1.37, such as 1.33 or 1.36.4
    /// [default: that of the cluster or, without a cluster, 1.37]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<KubernetesVersion>,
}

/// The user of a request, which policies see as `request.userInfo`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct UserArgs {
    /// The user in request.userInfo [default: system:anonymous]
    #[arg(long, value_name = "USER")]
    pub request_user: Option<String>,
    /// A group of that user; repeatable. system:authenticated and the groups of a service account are added
    #[arg(long, value_name = "GROUP", requires = "request_user")]
    pub request_group: Vec<String>,
}

impl UserArgs {
    /// Returns the user, or `None` if `--request-user` is not set.
    pub(in crate::cli) fn user_info(&self) -> Option<UserInfo> {
        Some(UserInfo {
            username: self.request_user.clone()?,
            groups: self.request_group.clone(),
            ..UserInfo::default()
        })
    }

    pub(in crate::cli) fn name(&self) -> &str {
        self.request_user.as_deref().unwrap_or("system:anonymous")
    }
}
