//! Waits until policies and probes have expected conditions.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

/// Formats the condition `type_` of a status as `True/Ready: message`. Returns an empty string if the condition is
/// absent.
#[must_use]
pub fn condition(status: &Value, type_: &str) -> String {
    let conditions = status.get("conditions").and_then(Value::as_array);
    let condition = conditions.into_iter().flatten().find(|condition| {
        let actual_type = condition.get("type").and_then(Value::as_str);
        actual_type == Some(type_)
    });
    condition.map_or(String::new(), |condition| {
        let text = |field| {
            condition
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        format!("{}/{}: {}", text("status"), text("reason"), text("message"))
    })
}

/// Waits until the text of the condition `type_` (status, reason and message) starts with `wanted`, and returns the
/// text. `status` returns the current status.
///
/// # Errors
/// Returns an error if `status` fails, or if the timeout expires. The error then contains `what` and the status.
pub async fn wait_for<F: Future<Output = Result<Value>>>(
    what: &str,
    type_: &str,
    wanted: &str,
    timeout: Duration,
    status: impl Fn() -> F,
) -> Result<String> {
    let deadline = Instant::now() + timeout;
    loop {
        let status = status().await?;
        let condition = condition(&status, type_);
        if condition.starts_with(wanted) {
            return Ok(condition);
        }
        ensure!(
            Instant::now() < deadline,
            "{what}: {type_} is not {wanted}, but {condition}\n{status:#}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Polls `versions` until it returns the same result for one second. Returns this result.
pub async fn settled<T: PartialEq, F: Future<Output = T>>(versions: impl Fn() -> F) -> T {
    let mut before = versions().await;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = versions().await;
        if now == before {
            return now;
        }
        before = now;
    }
}

/// Waits for a condition of the policy `name`, like [`wait_for`].
///
/// # Errors
/// Returns an error like [`wait_for`].
pub async fn wait_for_policy(
    client: &Client,
    name: &str,
    type_: &str,
    wanted: &str,
    timeout: Duration,
) -> Result<String> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let status = async || Ok(serde_json::to_value(api.get(name).await?.status)?);
    wait_for(name, type_, wanted, timeout, status).await
}
