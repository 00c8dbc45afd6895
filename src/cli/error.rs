//! Errors of commands. Each message is one line, with a remedy.

use std::io;

use super::check::levels::LevelError;
use crate::schema::SchemaError;

/// An error that ends a command. Problems in policies are not errors but findings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The kubeconfig is missing, invalid, or lacks the requested context, cluster or user.
    #[error(
        "cannot load the kubeconfig: {0}; set the file with --kubeconfig or KUBECONFIG, and the context with --context"
    )]
    Kubeconfig(String),
    #[error(
        "cannot reach the API server at {server}: {reason}; check that it is running and that the kubeconfig's context is correct"
    )]
    Unreachable { server: String, reason: String },
    #[error(
        "the API server at {server} rejects the credentials of the kubeconfig: {reason}; log in again, or choose another context with --context"
    )]
    Unauthorized { server: String, reason: String },
    #[error("{reason}{}", permissions(resource.as_deref()))]
    Forbidden {
        reason: String,
        /// The requested resource with its group, or `None` if the request is not for a resource.
        resource: Option<String>,
    },
    #[error(
        "the API server at {0} does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy; this API requires Kubernetes 1.30 or later"
    )]
    NotServed(String),
    #[error("no ValidatingAdmissionPolicy `{0}`; `kubectl vap status` lists all policies")]
    NotFound(String),
    #[error("the object `{name}` of the cluster cannot be decoded: {reason}")]
    Undecodable { name: String, reason: String },
    /// The arguments conflict or are invalid.
    #[error("{0}")]
    Usage(String),
    #[error("no rule `{id}`; {hint}`kubectl vap explain` lists all rules")]
    NoSuchRule {
        id: String,
        /// A suggestion that ends in a space, such as `did you mean ...? `; empty if no rule is similar.
        hint: String,
    },
    /// A level is set for an unknown rule, or two levels for the same rule.
    #[error(transparent)]
    Level(#[from] LevelError),
    /// The configuration file cannot be read, or there are several.
    #[error("{0}")]
    Config(String),
    #[error("fixes cannot be applied to standard input; pass files or directories")]
    FixOfStdin,
    #[error("{0}")]
    Baseline(String),
    /// An error response of the API server for which there is no more specific variant.
    #[error("the API server at {server} returned an error: {reason}")]
    Api { server: String, reason: String },
    #[error("cannot start the asynchronous runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The built-in schemas are invalid.
    #[error("the data built into kubectl-vap is invalid, please report it: {0}")]
    Builtin(#[from] SchemaError),
    /// Other built-in data is invalid.
    #[error("the data built into kubectl-vap is invalid, please report it: {0}")]
    Broken(String),
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
    #[error("cannot write the report as {format}: {reason}")]
    Format {
        /// `json` or `yaml`.
        format: &'static str,
        reason: String,
    },
}

/// Formats the permissions that a command needs for a resource.
fn permissions(resource: Option<&str>) -> String {
    resource.map_or_else(String::new, |resource| {
        format!("; this requires the permissions `get` and `list` on {resource}")
    })
}
