//! Connects to an API server with the flags of kubectl, a kubeconfig or the pod's service account, and explains errors.

mod overrides;

use std::error::Error as _;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{ExecInteractiveMode, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::error::CliError;
use crate::cluster::address::redacted;
use crate::cluster::client::command_client;
use crate::cluster::config;
use crate::cluster::error::{Error, within};

/// Default timeout of a request.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a request if `--request-timeout 0` disables the limit: one day.
const NO_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Flags that select the cluster and the user, with the names and meanings of kubectl's flags.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Connection, as in kubectl")]
pub struct Connection {
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The cluster in the kubeconfig [default: the cluster of the context]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The user in the kubeconfig [default: the user of the context]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The address of the API server [default: the address of the cluster]
    #[arg(short, long, value_name = "ADDRESS")]
    pub server: Option<String>,
    /// The host name to expect in the server's certificate [default: the host in the server's address]
    #[arg(long, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// The certificates of the authorities that are trusted to sign the server's certificate
    #[arg(long, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,
    /// Skip verification of the server's certificate (insecure)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        conflicts_with = "certificate_authority")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// The bearer token to authenticate with
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// The client certificate to authenticate with
    #[arg(long, value_name = "FILE")]
    pub client_certificate: Option<PathBuf>,
    /// The private key of the client certificate
    #[arg(long, value_name = "FILE")]
    pub client_key: Option<PathBuf>,
    /// The user to act as
    #[arg(long = "as", value_name = "USER")]
    pub act_as: Option<String>,
    /// A group to act as; repeatable
    #[arg(long = "as-group", value_name = "GROUP", requires = "act_as")]
    pub act_as_groups: Vec<String>,
    /// The UID to act as
    #[arg(long = "as-uid", value_name = "UID", requires = "act_as")]
    pub act_as_uid: Option<String>,
    /// The namespace whose objects `audit` reads; unused by other commands
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// How long to wait for a response: seconds, or a duration such as 1m30s; 0 means no limit
    /// [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    pub request_timeout: Option<Duration>,
}

impl Connection {
    /// Returns true if a flag selects a cluster or a user.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let Self {
            kubeconfig,
            context,
            cluster,
            user,
            server,
            tls_server_name,
            certificate_authority,
            insecure_skip_tls_verify,
            token,
            client_certificate,
            client_key,
            act_as,
            act_as_groups,
            act_as_uid,
            namespace: _,
            request_timeout: _,
        } = self;
        let files = [
            kubeconfig,
            certificate_authority,
            client_certificate,
            client_key,
        ];
        let texts = [
            context,
            cluster,
            user,
            server,
            tls_server_name,
            token,
            act_as,
            act_as_uid,
        ];
        files.into_iter().any(Option::is_some)
            || texts.into_iter().any(Option::is_some)
            || insecure_skip_tls_verify.is_some()
            || !act_as_groups.is_empty()
    }

    /// Returns the timeout of a request.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.request_timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Returns the configuration from the kubeconfig that the flags or the environment select. Without a kubeconfig,
    /// returns the configuration of the pod in which the program runs.
    async fn config(&self) -> Result<Config, CliError> {
        match self.kubeconfig_config().await {
            Ok(config) => Ok(config),
            // Outside of a pod, the reported error is that of the kubeconfig.
            Err(why) => self.pod_config().ok_or(CliError::Kubeconfig(why)),
        }
    }

    async fn kubeconfig_config(&self) -> Result<Config, String> {
        let read = match &self.kubeconfig {
            Some(path) => config::read_kubeconfig(path),
            None => match config::default_kubeconfig() {
                Err(error) if self.server.is_some() && is_missing(&error) => {
                    Ok(Kubeconfig::default())
                }
                read => read,
            },
        };
        let kubeconfig = read.map_err(|error| reason(&error))?;
        let resolved = overrides::resolved(kubeconfig, self)?;
        let loaded = config::from_kubeconfig(resolved).await;
        loaded.map_err(|error| reason(&error))
    }

    /// Returns the configuration with which a pod connects to the API server of its own cluster.
    ///
    /// Returns `None` outside of a pod, or if flags select a kubeconfig, certificate authority, context, cluster, user
    /// or server.
    fn pod_config(&self) -> Option<Config> {
        let files = [&self.kubeconfig, &self.certificate_authority];
        let texts = [&self.context, &self.cluster, &self.user, &self.server];
        let is_named =
            files.into_iter().any(Option::is_some) || texts.into_iter().any(Option::is_some);
        if is_named {
            return None;
        }
        let mut config = Config::incluster().ok()?;
        config.tls_server_name.clone_from(&self.tls_server_name);
        config.accept_invalid_certs = self.insecure_skip_tls_verify == Some(true);
        overrides::change_user(&mut config.auth_info, self);
        Some(config)
    }

    /// Creates a client for the cluster, without making a request.
    ///
    /// # Errors
    /// Returns an error if there is no usable kubeconfig, or if its credentials cannot be used.
    pub(super) async fn connect(&self) -> Result<Connected, CliError> {
        self.connected(self.config().await?)
    }

    /// Creates a client like [`Self::connect`]. Credential programs must not read standard input, because it contains
    /// the messages of the editor.
    ///
    /// # Errors
    /// Returns an error if there is no usable kubeconfig, or if its credentials cannot be used.
    pub(super) async fn connect_without_stdin(&self) -> Result<Connected, CliError> {
        let mut config = self.config().await?;
        if let Some(program) = &mut config.auth_info.exec {
            program.interactive_mode = Some(ExecInteractiveMode::Never);
        }
        self.connected(config)
    }

    fn connected(&self, config: Config) -> Result<Connected, CliError> {
        let server = redacted(&config.cluster_url.to_string());
        let server = server.trim_end_matches('/').to_owned();
        let client = command_client(config);
        let client = client.map_err(|error| CliError::Unreachable {
            server: server.clone(),
            reason: innermost(&error),
        })?;
        Ok(Connected {
            client,
            server,
            timeout: self.timeout(),
        })
    }
}

/// The subject of a request, for error messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Requested<'a> {
    /// A list of ValidatingAdmissionPolicies.
    Policies,
    /// The ValidatingAdmissionPolicy with this name.
    Policy(&'a str),
    /// The resource with this plural name and group, such as `leases.coordination.k8s.io`.
    Resource(&'a str),
    /// A document that is not a resource, such as discovery or the version.
    Document,
}

impl<'a> Requested<'a> {
    /// Returns the resource with its group. Returns `None` for a document.
    const fn resource(self) -> Option<&'a str> {
        match self {
            Self::Policies | Self::Policy(_) => {
                Some("validatingadmissionpolicies.admissionregistration.k8s.io")
            }
            Self::Resource(resource) => Some(resource),
            Self::Document => None,
        }
    }
}

/// A client with its address and timeout.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) client: Client,
    /// The API server's address, without the trailing slash.
    pub(super) server: String,
    pub(super) timeout: Duration,
}

impl Connected {
    /// Runs a request with the timeout that the flags set.
    ///
    /// # Errors
    /// Returns the errors of the request, or an error after the timeout.
    pub(super) async fn within<T, E>(
        &self,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        within(self.timeout, request).await
    }

    /// Converts an error of a request to a [`CliError`].
    pub(super) fn explain(&self, error: &Error, requested: Requested<'_>) -> CliError {
        let server = self.server.clone();
        let (code, message, details) = match error {
            Error::Client(kube::Error::Api(status)) => {
                (status.code, &status.message, status.details.as_ref())
            }
            Error::Status { code, message } => (*code, message, None),
            Error::Client(error) => {
                let reason = innermost(error);
                return CliError::Unreachable { server, reason };
            }
            Error::Timeout(_) | Error::Decode(_) | Error::Broken(_) | Error::Unpublished => {
                let reason = one_line(&error.to_string());
                return CliError::Unreachable { server, reason };
            }
        };
        let reason = one_line(message);
        match (code, requested) {
            (401, _) => CliError::Unauthorized { server, reason },
            (403, _) => CliError::Forbidden {
                reason,
                resource: requested.resource().map(str::to_owned),
            },
            // The response for a missing policy has details with the policy's name. The response for an unserved
            // resource does not.
            (404, Requested::Policy(name)) if details.is_some_and(|it| it.name == name) => {
                CliError::NotFound(name.to_owned())
            }
            (404, _) => CliError::NotServed(server),
            _ => CliError::Api { server, reason },
        }
    }
}

/// Runs a future to completion on this thread.
///
/// # Errors
/// Returns the errors of the future, or an error if the asynchronous runtime cannot be started.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    let outcome = runtime.block_on(work);
    // A pending DNS lookup must not delay the exit.
    runtime.shutdown_background();
    outcome
}

/// Returns true if the kubeconfig does not exist, and false for any other error.
fn is_missing(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

/// Formats an error about a kubeconfig, with its causes, on one line.
fn reason(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, path) => {
            format!("{}: {}", path.display(), one_line(&error.to_string()))
        }
        error => {
            let mut text = one_line(&config::describe(error));
            let mut cause = error.source();
            while let Some(next) = cause {
                let message = one_line(&redacted(&next.to_string()));
                if !text.contains(&message) {
                    text = format!("{text}: {message}");
                }
                cause = next.source();
            }
            text
        }
    }
}

/// Returns the innermost cause of an error, such as "connection refused".
pub(super) fn innermost(error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    one_line(&redacted(&cause.to_string()))
}

/// Replaces all white space in a string, including line breaks, with single spaces.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses a timeout: whole seconds, or numbers with units.
///
/// Source: client-go `tools/clientcmd/overrides.go`, `FlagTimeout`; Go `time`, `ParseDuration`.
///
/// # Errors
/// Returns an error if the string is not a duration.
fn timeout(text: &str) -> Result<Duration, String> {
    let invalid = || {
        "expected seconds, or numbers with units, as in 30s or 1m30s; 0 means no limit".to_owned()
    };
    let parsed = if let Ok(seconds) = text.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        duration(text).ok_or_else(invalid)?
    };
    Ok(match parsed {
        Duration::ZERO => NO_TIMEOUT,
        time => time.min(NO_TIMEOUT),
    })
}

fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at_checked(end)?;
        let number: f64 = number.parse().ok()?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at_checked(end.unwrap_or(after.len()))?;
        seconds += number
            * match unit {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = after;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(NO_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use kube::core::response::StatusDetails;

    use super::*;

    fn connected() -> Connected {
        let uri = http::Uri::from_static("http://host:6443");
        Connected {
            client: Client::try_from(Config::new(uri)).unwrap(),
            server: "https://host:6443".to_owned(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    #[track_caller]
    fn check(status: Status, requested: Requested<'_>, expect: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let _entered = runtime.as_ref().unwrap().enter();
        let error = Error::Client(kube::Error::Api(Box::new(status)));
        assert_eq!(connected().explain(&error, requested).to_string(), expect);
    }

    #[test]
    fn explanation_of_404_distinguishes_missing_policy_from_missing_api() {
        let missing = Status::failure("not found", "NotFound").with_code(404);
        let details = StatusDetails {
            name: "a".to_owned(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        };
        check(
            missing.clone().with_details(details),
            Requested::Policy("a"),
            "no ValidatingAdmissionPolicy `a`; `kubectl vap status` lists all policies",
        );
        check(
            missing,
            Requested::Policy("a"),
            "the API server at https://host:6443 does not serve admissionregistration.k8s.io/v1 \
             ValidatingAdmissionPolicy; this API requires Kubernetes 1.30 or later",
        );
    }

    #[test]
    fn explanation_of_403_lists_missing_permissions() {
        check(
            Status::failure("user \"ann\"\ncannot list", "Forbidden").with_code(403),
            Requested::Policies,
            "user \"ann\" cannot list; this requires the permissions `get` and `list` on \
             validatingadmissionpolicies.admissionregistration.k8s.io",
        );
        check(
            Status::failure("no", "Forbidden").with_code(403),
            Requested::Resource("leases.coordination.k8s.io"),
            "no; this requires the permissions `get` and `list` on leases.coordination.k8s.io",
        );
        check(
            Status::failure("no", "Forbidden").with_code(403),
            Requested::Document,
            "no",
        );
    }

    #[test]
    fn timeout_accepts_durations_of_kubectl() {
        let seconds = |text: &str| timeout(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("7"), Ok(7.0));
        assert_eq!(seconds("1s"), Ok(1.0));
        assert_eq!(seconds("1m30s"), Ok(90.0));
        assert_eq!(seconds("1.5h"), Ok(5400.0));
        assert_eq!(seconds("250ms"), Ok(0.25));
        assert_eq!(timeout("0"), Ok(NO_TIMEOUT));
        assert_eq!(timeout("99999999h"), Ok(NO_TIMEOUT));
        for wrong in ["", "s", "1 s", "1d", "-1s", "x", "1s2"] {
            assert!(timeout(wrong).is_err(), "{wrong}");
        }
    }
}
