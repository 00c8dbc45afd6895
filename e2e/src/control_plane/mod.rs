//! A real Kubernetes control plane on this machine: etcd, kube-apiserver, and optionally kube-controller-manager.
//!
//! The control plane requires only the binaries, which [`Binaries`] finds or builds. It provides clients, kubeconfig
//! files and process IDs. It does not depend on the controller under test.
//!
//! - Several control planes can run at once. etcd uses a Unix socket in a private directory. The API server uses a free
//!   loopback port, and a certificate of its own authority.
//! - If the [`ControlPlane`] is dropped, or if its process ends in any way, all servers are stopped and all files are
//!   removed (module `sandbox`).
//!
//! # Example
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use e2e::{ControlPlane, User};
//! use k8s_openapi::api::core::v1::Namespace;
//!
//! let control_plane = ControlPlane::builder()
//!     .user(User::service_account("vap-status-system", "vap-status-controller"))
//!     .status_controller()
//!     .start()
//!     .await?;
//! let namespaces = kube::Api::<Namespace>::all(control_plane.client().await?);
//! assert!(namespaces.get_opt("default").await?.is_some());
//! # Ok(())
//! # }
//! ```

mod binaries;
mod credentials;
mod process;
mod sandbox;
mod servers;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

pub use self::binaries::{ASSETS_VARIABLE, Binaries, CACHE_VARIABLE, kubernetes_version};
use self::credentials::Credentials;
pub use self::credentials::User;
pub use self::process::Process;
use self::sandbox::Sandbox;

/// The controller in kube-controller-manager that writes policy statuses.
pub const STATUS_CONTROLLER: &str = "validatingadmissionpolicy-status-controller";

/// Settings of a control plane. Created by [`ControlPlane::builder`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    users: Vec<User>,
    api_server_args: Vec<String>,
    kcm_controllers: Vec<String>,
}

impl Builder {
    /// Adds a user, in addition to the administrator.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// Adds a command-line argument of the API server, such as
    /// `--runtime-config=admissionregistration.k8s.io/v1=false`.
    #[must_use]
    pub fn api_server_arg(mut self, argument: &str) -> Self {
        self.api_server_args.push(argument.to_owned());
        self
    }

    /// Starts kube-controller-manager with only the policy status controller.
    #[must_use]
    pub fn status_controller(self) -> Self {
        self.kcm_controllers(&[STATUS_CONTROLLER])
    }

    /// Starts kube-controller-manager with these controllers. An empty list means no kube-controller-manager.
    #[must_use]
    pub fn kcm_controllers(mut self, controllers: &[&str]) -> Self {
        self.kcm_controllers = controllers.iter().map(ToString::to_string).collect();
        self
    }

    /// Starts the control plane and waits until it is ready. This takes about three seconds.
    ///
    /// Once per machine, building the binaries takes about ten more minutes.
    ///
    /// # Errors
    /// Returns an error if the binaries cannot be found or built, or if a server does not start. If a server does not
    /// start, the error contains the end of its log.
    pub async fn start(self) -> Result<ControlPlane> {
        let binaries = tokio::task::spawn_blocking(Binaries::find_or_build).await??;
        let sandbox = Sandbox::new()?;
        let credentials = Credentials::create(sandbox.directory(), &self.users)?;
        let etcd = servers::start_etcd(&binaries, &sandbox)?;
        let mut control_plane = ControlPlane {
            kcm: None,
            api_server: None,
            etcd,
            port: 0,
            api_server_args: self.api_server_args,
            binaries,
            credentials,
            sandbox,
        };
        control_plane.start_api_server_on_a_free_port().await?;
        if !self.kcm_controllers.is_empty() {
            let controllers: Vec<&str> = self.kcm_controllers.iter().map(String::as_str).collect();
            control_plane.start_kcm(&controllers).await?;
        }
        Ok(control_plane)
    }
}

/// A running control plane. It stops when this value is dropped or when its process ends.
///
/// Dropping it blocks the thread for tens of milliseconds.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in declaration order, so a server is stopped after its clients.
    kcm: Option<Process>,
    api_server: Option<Process>,
    etcd: Process,
    port: u16,
    api_server_args: Vec<String>,
    binaries: Binaries,
    credentials: Credentials,
    sandbox: Sandbox,
}

impl ControlPlane {
    /// Creates a builder for etcd, an API server and an administrator.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts etcd and an API server.
    ///
    /// # Errors
    /// Returns an error like [`Builder::start`].
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Returns a client with the administrator's credentials.
    ///
    /// A client works only in the runtime that first used it, so each call creates a new client.
    ///
    /// # Errors
    /// Returns an error if the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        self.client_for(User::admin().name()).await
    }

    /// Returns a client with the credentials of a user that was passed to [`Builder::user`].
    ///
    /// # Errors
    /// Returns an error if there is no such user.
    pub async fn client_for(&self, user: &str) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig_for(user)?)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // A proxy from the environment cannot connect to the loopback interface.
        config.proxy_url = None;
        Ok(Client::try_from(config)?)
    }

    /// Returns the kubeconfig file of the administrator, for kubectl and for the controller.
    ///
    /// # Errors
    /// Returns an error if the administrator does not exist, which would be a bug.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        self.kubeconfig_for(User::admin().name())
    }

    /// Returns the kubeconfig file of a user that was passed to [`Builder::user`].
    ///
    /// # Errors
    /// Returns an error if there is no such user.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf> {
        self.credentials.kubeconfig(user)
    }

    /// Returns a kubectl command with the administrator's credentials.
    ///
    /// # Errors
    /// Returns an error if the administrator does not exist, which would be a bug.
    pub fn kubectl(&self) -> Result<Command> {
        let mut command = Command::new(self.binaries.kubectl());
        command
            .env("KUBECONFIG", self.kubeconfig()?)
            // By default, kubectl uses a cache and preferences in the home directory.
            .env("KUBECACHEDIR", self.directory().join("kubectl-cache"))
            .env("KUBERC", "off");
        Ok(command)
    }

    /// Starts a program, such as the controller. The program is killed together with the control plane. Its output is
    /// in `<name>.log` in [`ControlPlane::directory`].
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub fn spawn(&self, name: &str, command: Command) -> Result<Process> {
        Process::spawn(&self.sandbox, name, command)
    }

    /// Returns the URL of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns the private directory with data, credentials and logs. It is removed with the control plane.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.sandbox.directory()
    }

    /// Returns the etcd process.
    #[must_use]
    pub fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// Returns the API server process. Returns `None` after [`ControlPlane::kill_api_server`].
    #[must_use]
    pub fn api_server(&self) -> Option<&Process> {
        self.api_server.as_ref()
    }

    /// Returns the kube-controller-manager process, if it runs.
    #[must_use]
    pub fn kcm(&self) -> Option<&Process> {
        self.kcm.as_ref()
    }

    /// Kills the API server with SIGKILL. Its clients lose their connections immediately.
    pub fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Restarts the API server after [`ControlPlane::kill_api_server`]. Address, data, certificates and tokens stay the
    /// same.
    ///
    /// # Errors
    /// Returns an error if the API server still runs or does not start.
    pub async fn start_api_server_again(&mut self) -> Result<()> {
        ensure!(self.api_server.is_none(), "the API server is still running");
        self.start_api_server().await
    }

    /// Starts kube-controller-manager with these controllers and waits until their caches are synced.
    ///
    /// # Errors
    /// Returns an error if kube-controller-manager already runs, is missing from the assets, or does not start.
    pub async fn start_kcm(&mut self, controllers: &[&str]) -> Result<()> {
        ensure!(
            self.kcm.is_none(),
            "kube-controller-manager is already running"
        );
        let mut kcm = servers::start_kcm(self, controllers)?;
        servers::await_kcm(&mut kcm).await?;
        self.kcm = Some(kcm);
        Ok(())
    }

    /// Kills kube-controller-manager if it runs.
    pub fn stop_kcm(&mut self) {
        self.kcm = None;
    }

    /// Starts the API server on a free port. If another process takes the port first, tries a different port.
    async fn start_api_server_on_a_free_port(&mut self) -> Result<()> {
        let mut attempts = 5;
        loop {
            self.port = servers::free_port()?;
            self.credentials.write_kubeconfigs(&self.url())?;
            attempts -= 1;
            match self.start_api_server().await {
                Err(error) if attempts > 0 && servers::is_port_taken(&error) => {}
                outcome => return outcome,
            }
        }
    }

    async fn start_api_server(&mut self) -> Result<()> {
        let client = self.client().await?;
        let mut api_server = servers::start_api_server(self)?;
        servers::await_api_server(&mut api_server, &mut self.etcd, &client)
            .await
            .with_context(|| format!("API server at {}", self.url()))?;
        self.api_server = Some(api_server);
        Ok(())
    }
}
