//! Startup: creates a client, and checks that the controller supports the API server.
//!
//! If the user must fix a problem, the process ends with a one-line message that contains a hint. If the API server
//! does not respond yet, the controller waits for a limited time.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use tokio::time::Instant;

use crate::cluster::address::redacted;
use crate::cluster::error::{Error, within};
use crate::cluster::{client, config};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::ErrorReason;

/// The timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

const POLICY_API: &str = "/apis/admissionregistration.k8s.io/v1";

/// Returns the name of this instance: the name of its pod or host, and a random suffix. The suffix is needed because a
/// restarted container keeps the name of its pod.
#[must_use]
pub fn identity() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    let of_host = || {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned())
    };
    let name = name("POD_NAME")
        .or_else(|| name("HOSTNAME"))
        .or_else(of_host);
    let suffix = RandomState::new().build_hasher().finish();
    format!("{}_{suffix:016x}", name.as_deref().unwrap_or("unknown"))
}

/// Creates a client from the kubeconfig or from the service account of the pod. `identity` is the user agent, which the
/// audit log of the API server shows. `metrics` counts all requests.
///
/// # Errors
/// Returns an error message with a hint if the configuration is missing or invalid.
pub async fn client(identity: &str, metrics: &Arc<Metrics>) -> Result<Client, String> {
    let config = config::infer().await.map_err(|error| {
        format!(
            "cannot reach the API server: {error}; set KUBECONFIG to a kubeconfig, or run in a pod with \
             a service account"
        )
    })?;
    let address = redacted(&config.cluster_url.to_string());
    let metrics = Arc::clone(metrics);
    let measure = move |verb, code, seconds| metrics.requested(verb, code, seconds);
    client::client(config, identity, Arc::new(measure)).map_err(|error| {
        let error = redacted(&error.to_string());
        format!("cannot use the configuration for {address}: {error}; check the kubeconfig")
    })
}

/// Waits for at most `patience` until the API server responds. Then checks that it serves the policy API.
///
/// # Errors
/// Returns an error message with a hint if the API server does not respond, rejects the credentials or does not serve
/// the API.
pub async fn check_api(client: &Client, patience: Duration) -> Result<(), String> {
    let end = Instant::now() + patience;
    let mut is_logged = false;
    loop {
        let error = match policy_resources(client).await {
            Ok(resources) => return check_resources(&resources),
            Err(error) => error,
        };
        match error.reason() {
            ErrorReason::Unauthorized => {
                return Err(format!(
                    "the API server rejected the credentials: {error}; check the kubeconfig or the \
                     service account's token"
                ));
            }
            ErrorReason::Forbidden => {
                return Err(format!(
                    "discovery is not allowed: {error}; bind the ClusterRole system:discovery"
                ));
            }
            ErrorReason::NotFound => return check_resources(&[]),
            _ if error.is_certificate_error() => {
                return Err(format!(
                    "the API server's certificate is not trusted: {error}; check \
                     certificate-authority-data in the kubeconfig"
                ));
            }
            _ if Instant::now() + PAUSE > end => {
                return Err(format!(
                    "the API server does not respond: {error}; check that it is running, and check its address in the \
                     kubeconfig"
                ));
            }
            _ => {}
        }
        if !std::mem::replace(&mut is_logged, true) {
            tracing::warn!(%error, "the API server does not respond yet, waiting");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn policy_resources(client: &Client) -> Result<Vec<String>, Error> {
    let request = Request::get(POLICY_API)
        .body(Vec::new())
        .map_err(|error| Error::Client(kube::Error::HttpError(error)))?;
    let list = within(TIMEOUT, client.request::<APIResourceList>(request)).await?;
    Ok(list
        .resources
        .into_iter()
        .map(|resource| resource.name)
        .collect())
}

fn check_resources(resources: &[String]) -> Result<(), String> {
    let has = |name: &str| resources.iter().any(|resource| resource == name);
    if has("validatingadmissionpolicies") && has("validatingadmissionpolicies/status") {
        return Ok(());
    }
    Err(
        "the API server does not serve validatingadmissionpolicies in \
         admissionregistration.k8s.io/v1: it must be Kubernetes 1.30 or later"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::testing::{Reply, client};

    fn resources(names: &[&str]) -> Reply {
        let resources: Vec<_> = names
            .iter()
            .map(|name| {
                json!({"name": name, "singularName": "", "namespaced": false, "kind": "X", "verbs": []})
            })
            .collect();
        Reply::json(
            &json!({"groupVersion": "admissionregistration.k8s.io/v1", "resources": resources}),
        )
    }

    /// Returns the result of `check_api` if every request has the response `answer`.
    async fn check(answer: Option<Reply>) -> Result<(), String> {
        let (client, _) = client(move |_| answer.clone());
        check_api(&client, Duration::from_secs(60)).await
    }

    #[tokio::test(start_paused = true)]
    async fn startup_check_succeeds_if_policies_are_served() {
        let names = [
            "validatingadmissionpolicies",
            "validatingadmissionpolicies/status",
        ];
        assert_eq!(check(Some(resources(&names))).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn startup_check_fails_immediately_for_permanent_problem() {
        for (answer, text) in [
            (
                Reply::failure(401, "Unauthorized"),
                "rejected the credentials",
            ),
            (
                Reply::failure(403, "no"),
                "bind the ClusterRole system:discovery",
            ),
            (
                Reply::failure(404, "not found"),
                "it must be Kubernetes 1.30 or later",
            ),
            (
                resources(&["mutatingwebhookconfigurations"]),
                "it must be Kubernetes 1.30 or later",
            ),
            (
                resources(&["validatingadmissionpolicies"]),
                "it must be Kubernetes 1.30 or later",
            ),
        ] {
            let start = Instant::now();
            let error = check(Some(answer)).await.unwrap_err();
            assert!(error.contains(text), "{error}");
            assert_eq!(error.lines().count(), 1);
            assert!(start.elapsed() < PAUSE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn startup_check_without_response_fails_after_time_limit() {
        for answer in [None, Some(Reply::failure(503, "starting"))] {
            let start = Instant::now();
            let error = check(answer).await.unwrap_err();
            assert!(
                error.starts_with("the API server does not respond: "),
                "{error}"
            );
            assert!(
                (59..=75).contains(&start.elapsed().as_secs()),
                "{:?}",
                start.elapsed()
            );
        }
    }
}
