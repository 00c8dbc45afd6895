//! Why a command could not do its work, in one line that says what to do.

use std::io;

use super::check::levels::LevelError;
use crate::schema::SchemaError;

/// A failure of the plugin itself. What is wrong with a policy is never one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// There is no kubeconfig, it cannot be read, or it does not have what was asked for.
    #[error(
        "cannot load the kubeconfig: {0}; name one with --kubeconfig or KUBECONFIG, and a context in it with --context"
    )]
    Kubeconfig(String),
    /// No answer came.
    #[error(
        "cannot reach the API server at {server}: {reason}; check that it runs and that the kubeconfig's context is the right one"
    )]
    Unreachable {
        /// Its address by the kubeconfig.
        server: String,
        /// The innermost cause.
        reason: String,
    },
    /// The API server does not know who we are.
    #[error(
        "the API server at {server} refuses the credentials of the kubeconfig: {reason}; log in again, or choose another context with --context"
    )]
    Unauthorized {
        /// Its address by the kubeconfig.
        server: String,
        /// Its own words.
        reason: String,
    },
    /// The API server knows who we are, and that we may not.
    #[error(
        "{0}; ask for `get` and `list` on validatingadmissionpolicies.admissionregistration.k8s.io"
    )]
    Forbidden(String),
    /// The API server has no `ValidatingAdmissionPolicy` of version v1.
    #[error(
        "the API server at {0} does not serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy; it needs Kubernetes 1.30 or later"
    )]
    NotServed(String),
    /// No policy has this name.
    #[error("no ValidatingAdmissionPolicy `{0}`; `kubectl vap status` lists all")]
    NotFound(String),
    /// A policy of the cluster that cannot be read as one.
    #[error("the ValidatingAdmissionPolicy `{name}` cannot be read: {reason}")]
    Undecodable {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The arguments do not go together, or name nothing.
    #[error("{0}")]
    Usage(String),
    /// No rule has this id.
    #[error("no rule `{id}`; {hint}`kubectl vap explain` lists all")]
    NoSuchRule {
        /// The id that was asked for.
        id: String,
        /// The rule that was probably meant, in a question, or nothing.
        hint: String,
    },
    /// A level is of no rule, or of two kinds.
    #[error(transparent)]
    Level(#[from] LevelError),
    /// The configuration file cannot be read, or there are several.
    #[error("{0}")]
    Config(String),
    /// Standard input has no file that could be written.
    #[error("standard input cannot be mended; name files or directories")]
    FixOfStdin,
    /// A baseline cannot be read or written.
    #[error("{0}")]
    Baseline(String),
    /// Any other answer of the API server.
    #[error("the API server at {server} answers: {reason}")]
    Api {
        /// Its address by the kubeconfig.
        server: String,
        /// Its own words.
        reason: String,
    },
    /// The asynchronous runtime does not start.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    /// The built-in schemas cannot be read: an error of the build.
    #[error("this build is broken: {0}")]
    Builtin(#[from] SchemaError),
    /// Something of the build itself cannot be used.
    #[error("this build is broken: {0}")]
    Broken(String),
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Write(#[source] io::Error),
    /// The report cannot be put into the form that was asked for.
    #[error("cannot write the report as {format}: {reason}")]
    Format {
        /// `json` or `yaml`.
        format: &'static str,
        /// The serializer's words.
        reason: String,
    },
}
