//! Reads policies from a cluster: the only file of the plugin that does input and output there.
//!
//! Takes the connection flags, gives the API objects, and turns what goes wrong into one line.

use std::error::Error as _;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::args::{Connection, StatusArgs};
use super::controller::{LeaseFacts, Seen};
use super::error::CliError;
use crate::status::exclusion::Exclusion;
use crate::status::lease;

/// Policies asked for at once, so that a large cluster is read in bounded pieces.
const PAGE_SIZE: u32 = 500;

/// The longest wait for the Lease, which is the lesser thing to know.
const MAX_LEASE_WAIT: Duration = Duration::from_secs(5);

/// The present moment, against which ages are told.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Objects read from a cluster.
#[derive(Debug)]
pub(crate) struct Read {
    /// All policies in order of name, or the one that was asked for.
    pub(crate) policies: Vec<ValidatingAdmissionPolicy>,
    /// The controller's Lease.
    pub(crate) lease: Seen,
}

/// The policies of the cluster, or the one that is named, and the controller's Lease.
///
/// # Errors
/// No usable kubeconfig, no answer in time, an answer that refuses, or no such policy.
pub(crate) fn read(args: &StatusArgs) -> Result<Read, CliError> {
    let (connection, name) = (&args.connection, args.name.as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    runtime.block_on(async {
        let config = config(connection).await?;
        let server = server(&config);
        let timeout = Duration::from_secs(connection.request_timeout);
        let client =
            Client::try_from(config).map_err(|error| explain(&error, server.clone(), name))?;
        let policies = tokio::time::timeout(timeout, fetch(client.clone(), name));
        let (policies, lease) = tokio::join!(policies, lease(client, args));
        match policies {
            Ok(Ok(policies)) => Ok(Read { policies, lease }),
            Ok(Err(error)) => Err(explain(&error, server, name)),
            Err(_) => Err(CliError::Unreachable {
                server,
                reason: format!("no answer within {} s", timeout.as_secs()),
            }),
        }
    })
}

/// Reads the controller's Lease. A failure here is no reason not to show the policies.
async fn lease(client: Client, args: &StatusArgs) -> Seen {
    let leases: Api<Lease> = Api::namespaced(client, &args.controller_namespace);
    let limit = MAX_LEASE_WAIT.min(Duration::from_secs(args.connection.request_timeout));
    match tokio::time::timeout(limit, leases.get_opt(&args.lease_name)).await {
        Ok(Ok(Some(lease))) => {
            let annotations = lease.metadata.annotations.unwrap_or_default();
            let in_step_at = annotations.get(lease::IN_STEP_AT);
            let spec = lease.spec.unwrap_or_default();
            Seen::Lease(LeaseFacts {
                in_step_at: in_step_at.and_then(|text| text.parse().ok()),
                renewed_at: spec.renew_time.map(|time| time.0),
                is_held: spec
                    .holder_identity
                    .is_some_and(|holder| !holder.is_empty()),
                holds_for: i64::from(
                    spec.lease_duration_seconds
                        .unwrap_or(lease::DEFAULT_DURATION_SECONDS),
                ),
                exclusion: Exclusion::of_annotations(&annotations),
            })
        }
        Ok(Ok(None)) => Seen::Missing,
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Seen::Missing,
        Ok(Err(kube::Error::Api(status))) => Seen::Unreadable(one_line(&status.message)),
        Ok(Err(error)) => Seen::Unreadable(innermost(&error)),
        Err(_) => Seen::Unreadable(format!("no answer within {} s", limit.as_secs())),
    }
}

/// The requests themselves.
async fn fetch(
    client: Client,
    name: Option<&str>,
) -> Result<Vec<ValidatingAdmissionPolicy>, kube::Error> {
    let api = Api::<ValidatingAdmissionPolicy>::all(client);
    if let Some(name) = name {
        return Ok(vec![api.get(name).await?]);
    }
    let mut policies = Vec::new();
    let mut params = ListParams::default().limit(PAGE_SIZE);
    loop {
        let page = api.list(&params).await?;
        policies.extend(page.items);
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => break,
        }
    }
    policies.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    Ok(policies)
}

/// The connection that the flags, the environment or the pod name, in this order.
async fn config(connection: &Connection) -> Result<Config, CliError> {
    let options = KubeConfigOptions {
        context: connection.context.clone(),
        ..KubeConfigOptions::default()
    };
    let loaded = match &connection.kubeconfig {
        Some(path) => match Kubeconfig::read_from(path) {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            Err(error) => Err(error),
        },
        None if options.context.is_some() => Config::from_kubeconfig(&options).await,
        None => {
            return Config::infer().await.map_err(|error| {
                let reason = error
                    .source()
                    .map_or_else(|| error.to_string(), ToString::to_string);
                CliError::Kubeconfig(one_line(&reason))
            });
        }
    };
    loaded.map_err(|error| CliError::Kubeconfig(one_line(&error.to_string())))
}

/// The server's address without the slash that every URI ends in.
fn server(config: &Config) -> String {
    config
        .cluster_url
        .to_string()
        .trim_end_matches('/')
        .to_owned()
}

/// Explains an error of the client to the person at the terminal.
fn explain(error: &kube::Error, server: String, name: Option<&str>) -> CliError {
    let kube::Error::Api(status) = error else {
        return CliError::Unreachable {
            server,
            reason: innermost(error),
        };
    };
    let reason = one_line(&status.message);
    match (status.code, name) {
        (401, _) => CliError::Unauthorized { server, reason },
        (403, _) => CliError::Forbidden(reason),
        // A policy that does not exist is named in the answer's details; a resource that is not
        // served has none.
        (404, Some(name)) if status.details.as_ref().is_some_and(|it| it.name == name) => {
            CliError::NotFound(name.to_owned())
        }
        (404, _) => CliError::NotServed(server),
        _ => CliError::Api { server, reason },
    }
}

/// The last cause of an error: "connection refused" and not that a service failed.
fn innermost(error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    one_line(&cause.to_string())
}

/// A text of others in one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use kube::core::response::StatusDetails;

    use super::*;

    #[track_caller]
    fn check(status: Status, name: Option<&str>, expect: &str) {
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(
            explain(&error, "https://host:6443".to_owned(), name).to_string(),
            expect
        );
    }

    #[test]
    fn a_missing_policy_is_told_from_a_missing_api() {
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
            Some("a"),
            "no ValidatingAdmissionPolicy `a`; `kubectl vap status` lists all",
        );
        check(
            missing,
            Some("a"),
            "the API server at https://host:6443 does not serve admissionregistration.k8s.io/v1 \
             ValidatingAdmissionPolicy; it needs Kubernetes 1.30 or later",
        );
    }

    #[test]
    fn refusals_say_what_to_ask_for() {
        check(
            Status::failure("user \"ann\"\ncannot list", "Forbidden").with_code(403),
            None,
            "user \"ann\" cannot list; ask for `get` and `list` on \
             validatingadmissionpolicies.admissionregistration.k8s.io",
        );
    }
}
