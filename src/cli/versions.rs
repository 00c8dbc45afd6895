//! `kubectl vap version`: shows the versions of the plugin, the controller and the API server.

use std::fmt::Write as _;
use std::io::Write;

use serde::Serialize;

use super::args::VersionArgs;
use super::connection;
use super::controller::LeaseState;
use super::error::CliError;
use super::eval::args::OutputFormat;
use super::exit::Exit;
use super::output::{json, write};
use super::status::lease;
use super::text::clean;
use crate::cluster::version;
use crate::version::KubernetesVersion;

/// The output of `kubectl vap version -o json`. Fields may be added, but no field is removed or changes its meaning
/// while `apiVersion` stays the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    api_version: &'static str,
    /// Always `VersionReport`.
    kind: &'static str,
    /// The version of the plugin.
    plugin: &'static str,
    /// The supported versions of Kubernetes, such as `1.30-1.37`.
    kubernetes: String,
    /// The version of the controller, from its Lease; null if unknown.
    controller: Option<String>,
    /// The version of the API server; null without a cluster.
    server: Option<String>,
}

/// Runs `kubectl vap version`. If the Lease cannot be read, the other versions are printed before the error.
///
/// # Errors
/// Returns an error if the kubeconfig is invalid or the cluster cannot be read.
pub(super) fn run(
    args: &VersionArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let (oldest, newest) = (KubernetesVersion::OLDEST, KubernetesVersion::NEWEST);
    let mut report = VersionReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "VersionReport",
        plugin: env!("CARGO_PKG_VERSION"),
        kubernetes: format!("{oldest}-{newest}"),
        controller: None,
        server: None,
    };
    if args.client {
        write(out, &text_or_json(&report, args, "")?)?;
        return Ok(Exit::Clean);
    }
    let (server, state) = connection::block_on(async {
        let connected = args.connection.connect().await?;
        let version = connected.within(version::read(&connected.client));
        let (server, state) = tokio::join!(version, lease(&connected, &args.lease));
        Ok((server.map(|info| info.git_version), state))
    })?;
    let mut problems = Vec::new();
    match server {
        Ok(version) => report.server = Some(version),
        Err(error) => problems.push(format!("the version of the API server: {error}")),
    }
    let lease = &args.lease;
    let missing = match state {
        LeaseState::Lease(facts) => {
            report.controller = facts.version;
            format!("unknown: the Lease {lease} has no version")
        }
        LeaseState::Missing => format!("not found: there is no Lease {lease}"),
        LeaseState::Unreadable(reason) => {
            problems.push(format!("the Lease {lease}: {reason}"));
            "unknown".to_owned()
        }
    };
    write(out, &text_or_json(&report, args, &missing)?)?;
    for problem in &problems {
        // If standard error is not writable, only the exit status reports the error.
        let _ = writeln!(err, "error: cannot read {}", clean(problem));
    }
    if let Some(controller) = &report.controller
        && minor(controller) != minor(report.plugin)
    {
        let plugin = report.plugin;
        let _ = writeln!(
            err,
            "warning: the plugin is {plugin}, but the controller is {}: their results can differ",
            clean(controller)
        );
    }
    Ok(if problems.is_empty() {
        Exit::Clean
    } else {
        Exit::Failed
    })
}

/// Returns the major and minor version.
fn minor(version: &str) -> Option<&str> {
    version.rsplit_once('.').map(|(minor, _)| minor)
}

/// Formats the report. `missing` is shown if the version of the controller is unknown.
fn text_or_json(
    report: &VersionReport,
    args: &VersionArgs,
    missing: &str,
) -> Result<String, CliError> {
    if args.output.format == OutputFormat::Json {
        return json(report);
    }
    let supported = report.kubernetes.replace('-', " to ");
    let mut text = format!("Plugin:      {} (Kubernetes {supported})\n", report.plugin);
    if !args.client {
        let controller = report.controller.as_deref().unwrap_or(missing);
        let server = report.server.as_deref().unwrap_or("unknown");
        let _ = writeln!(text, "Controller:  {}", clean(controller));
        let _ = writeln!(text, "API server:  {}", clean(server));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_version_has_no_patch() {
        assert_eq!(minor("0.1.2"), Some("0.1"));
        assert_eq!(minor("0.1.0"), minor(env!("CARGO_PKG_VERSION")));
    }
}
