//! Audit records of the controller's requests, from the API server's audit log.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::control_plane::ControlPlane;
use crate::controller::{SERVICE_ACCOUNT, grant_permissions, service_account};

const LOG: &str = "audit.log";

/// Starts a control plane like [`crate::controller::control_plane`], with an audit policy and additional arguments for
/// the API server. Also returns the directory of the audit log.
///
/// # Errors
/// Returns an error if the control plane does not start or kubectl rejects the manifests.
pub async fn audited(policy: &str, args: &[&str]) -> Result<(ControlPlane, TempDir)> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("policy.yaml");
    std::fs::write(&file, policy)?;
    let log = directory.path().join(LOG);
    let mut builder = ControlPlane::builder()
        .user(service_account())
        .api_server_arg(&format!("--audit-policy-file={}", file.display()))
        .api_server_arg(&format!("--audit-log-path={}", log.display()))
        .api_server_arg("--audit-log-mode=blocking");
    for argument in args {
        builder = builder.api_server_arg(argument);
    }
    let control_plane = builder.start().await?;
    grant_permissions(&control_plane)?;
    Ok((control_plane, directory))
}

/// Returns the audit records of the controller's requests, in the order of the log. Returns no records if there is no
/// log.
///
/// # Errors
/// Returns an error if a record cannot be read.
pub fn controller_records(directory: &Path) -> Result<Vec<Value>> {
    let text = match std::fs::read_to_string(directory.join(LOG)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let mut events = Vec::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        if event.pointer("/user/username").and_then(Value::as_str) == Some(SERVICE_ACCOUNT) {
            events.push(event);
        }
    }
    Ok(events)
}

/// Returns the verb and resource of each request of the controller, such as `patch
/// mutatingadmissionpolicystatuses/status`. Omits requests about probes.
///
/// # Errors
/// Returns an error like [`controller_records`].
pub fn controller_requests(directory: &Path) -> Result<Vec<String>> {
    let text = |event: &Value, pointer: &str| {
        let text = event.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut asked = Vec::new();
    for event in controller_records(directory)? {
        let mut resource = text(&event, "/objectRef/resource");
        if resource == "policyprobes" {
            continue;
        }
        let subresource = text(&event, "/objectRef/subresource");
        if !subresource.is_empty() {
            resource = format!("{resource}/{subresource}");
        }
        asked.push(format!("{} {resource}", text(&event, "/verb")));
    }
    Ok(asked)
}

/// Returns the number of `requests` that are neither lists nor watches.
#[must_use]
pub fn n_writes(requests: &[String]) -> usize {
    let is_read = |request: &str| request.starts_with("list ") || request.starts_with("watch ");
    requests.iter().filter(|request| !is_read(request)).count()
}
