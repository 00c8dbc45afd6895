//! Finds the controller and the plugin, and builds their commands.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::ControlPlane;
use crate::controller::{SERVICE_ACCOUNT, binary};

#[derive(Clone, Debug)]
pub(super) struct Programs {
    controller: PathBuf,
    plugin: PathBuf,
}

impl Programs {
    /// Finds the programs in the directory of the running program. If one is missing, the error contains the build
    /// command.
    pub(super) fn find() -> Result<Self> {
        Ok(Self {
            controller: binary("vap-status-controller")?,
            plugin: binary("kubectl-vap")?,
        })
    }

    /// Returns the command `vap-status-controller run` with the controller's service account and a free port.
    pub(super) fn controller(&self, control_plane: &ControlPlane) -> Result<Command> {
        let kubeconfig = control_plane.kubeconfig_for(SERVICE_ACCOUNT)?;
        let mut command = Command::new(&self.controller);
        command
            .args(["run", "--log-format=json", "--listen", "127.0.0.1:0"])
            // Leader election is on, as in the manifests. The plugin reads from the Lease when the controller was last
            // in sync.
            .arg("--leader-elect")
            .env("KUBECONFIG", kubeconfig);
        local(&mut command);
        Ok(command)
    }

    /// Returns the command `kubectl-vap` with the administrator's credentials.
    pub(super) fn plugin(&self, control_plane: &ControlPlane) -> Result<Command> {
        let mut command = Command::new(&self.plugin);
        command.env("KUBECONFIG", control_plane.kubeconfig()?);
        local(&mut command);
        Ok(command)
    }

    /// Returns the directory of the programs. If it is in `PATH`, kubectl finds its plugin.
    #[must_use]
    pub(super) fn directory(&self) -> &Path {
        self.plugin.parent().unwrap_or(&self.plugin)
    }
}

/// Disables proxies from the environment, because they cannot connect to the loopback interface.
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
