//! Errors of commands. Each message is one line, with a remedy.

use std::io;

use super::check::levels::LevelError;
use crate::schema::SchemaError;

/// An error of a command. Problems with policies are findings instead.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The kubeconfig is missing, invalid, or lacks the requested context, cluster or user.
    #[error(
        "cannot load the kubeconfig: {0}; set the file with --kubeconfig or KUBECONFIG, and the context with --context"
    )]
    Kubeconfig(String),
    /// The API server does not respond.
    #[error(
        "cannot reach the API server at {server}: {reason}; check that it is running and that the kubeconfig's context is correct"
    )]
    Unreachable {
        /// The address in the kubeconfig.
        server: String,
        /// The root cause.
        reason: String,
    },
    /// The API server rejects the credentials.
    #[error(
        "the API server at {server} rejects the credentials of the kubeconfig: {reason}; log in again, or choose another context with --context"
    )]
    Unauthorized {
        /// The address in the kubeconfig.
        server: String,
        /// The message of the API server.
        reason: String,
    },
    /// The user is not allowed to send the request.
    #[error("{reason}{}", permissions(resource.as_deref()))]
    Forbidden {
        /// The message of the API server.
        reason: String,
        /// The requested resource with its group. `None` if the request is not for a resource.
        resource: Option<String>,
    },
    /// The API server does not serve `ValidatingAdmissionPolicy` v1.
    #[error(
        "the API server at {0} does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy; it needs Kubernetes 1.30 or later"
    )]
    NotServed(String),
    /// No policy has this name.
    #[error("no ValidatingAdmissionPolicy `{0}`; `kubectl vap status` lists all policies")]
    NotFound(String),
    /// A policy or another object of the cluster cannot be decoded.
    #[error("the object `{name}` of the cluster cannot be decoded: {reason}")]
    Undecodable {
        /// The name of the object.
        name: String,
        /// The message of the decoder.
        reason: String,
    },
    /// The arguments conflict or are invalid.
    #[error("{0}")]
    Usage(String),
    /// No rule has this id.
    #[error("no rule `{id}`; {hint}`kubectl vap explain` lists all rules")]
    NoSuchRule {
        /// The requested id.
        id: String,
        /// A suggestion as a question, or an empty string.
        hint: String,
    },
    /// A level is set for an unknown rule, or two levels for the same rule.
    #[error(transparent)]
    Level(#[from] LevelError),
    /// The configuration file cannot be read, or there are several.
    #[error("{0}")]
    Config(String),
    /// Fixes were requested for standard input.
    #[error("fixes cannot be applied to standard input; pass files or directories")]
    FixOfStdin,
    /// A baseline cannot be read or written.
    #[error("{0}")]
    Baseline(String),
    /// Any other error response of the API server.
    #[error("the API server at {server} returned an error: {reason}")]
    Api {
        /// The address in the kubeconfig.
        server: String,
        /// The message of the API server.
        reason: String,
    },
    /// The asynchronous runtime does not start.
    #[error("cannot start the asynchronous runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The built-in schemas are invalid.
    #[error("the data built into kubectl-vap is invalid, please report it: {0}")]
    Builtin(#[from] SchemaError),
    /// Other built-in data is invalid.
    #[error("the data built into kubectl-vap is invalid, please report it: {0}")]
    Broken(String),
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
    /// The report cannot be serialized.
    #[error("cannot write the report as {format}: {reason}")]
    Format {
        /// `json` or `yaml`.
        format: &'static str,
        /// The message of the serializer.
        reason: String,
    },
}

/// Formats the permissions that a command needs for a resource.
fn permissions(resource: Option<&str>) -> String {
    resource.map_or_else(String::new, |resource| {
        format!("; this requires the permissions `get` and `list` on {resource}")
    })
}
