//! The programs that the demo shows: the controller and the plugin, built beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::ControlPlane;
use crate::controller::{SERVICE_ACCOUNT, binary};

/// Where the two programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    controller: PathBuf,
    plugin: PathBuf,
}

impl Programs {
    /// Looks beside the running program, where cargo puts all of a workspace.
    ///
    /// # Errors
    /// Returns an error if one is not there; the message says how to build it.
    pub(super) fn find() -> Result<Self> {
        Ok(Self {
            controller: binary("vap-status-controller")?,
            plugin: binary("kubectl-vap")?,
        })
    }

    /// `vap-status-controller run`, as its service account, on a free port.
    ///
    /// # Errors
    /// Returns an error if the control plane does not know the service account.
    pub(super) fn controller(&self, control_plane: &ControlPlane) -> Result<Command> {
        let kubeconfig = control_plane.kubeconfig_for(SERVICE_ACCOUNT)?;
        let mut command = Command::new(&self.controller);
        command
            .args(["run", "--log-format=json", "--listen", "127.0.0.1:0"])
            // As the manifests have it: the Lease tells the plugin when the controller was last in step.
            .arg("--leader-elect")
            .env("KUBECONFIG", kubeconfig);
        local(&mut command);
        Ok(command)
    }

    /// `kubectl-vap`, as the administrator.
    ///
    /// # Errors
    /// Returns an error if the control plane does not know its administrator.
    pub(super) fn plugin(&self, control_plane: &ControlPlane) -> Result<Command> {
        let mut command = Command::new(&self.plugin);
        command.env("KUBECONFIG", control_plane.kubeconfig()?);
        local(&mut command);
        Ok(command)
    }

    /// Returns the directory of both, to put into `PATH`, so that kubectl finds its plugin.
    #[must_use]
    pub(super) fn directory(&self) -> &Path {
        self.plugin.parent().unwrap_or(&self.plugin)
    }
}

/// Returns a proxy of the environment cannot reach the loopback interface of this machine.
fn local(command: &mut Command) {
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
}
