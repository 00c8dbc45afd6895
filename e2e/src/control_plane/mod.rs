//! A real Kubernetes control plane on this machine: etcd, kube-apiserver and, on request,
//! kube-controller-manager.
//!
//! It takes nothing but the binaries (found or built by [`Binaries`]) and gives clients, kubeconfig
//! files and process ids. It deliberately knows nothing of the controller under test.
//!
//! - etcd listens on a Unix socket in a private directory, the API server on a free loopback port
//!   with a certificate of an authority made for this one control plane: several can run at once.
//! - All is stopped and removed when the [`ControlPlane`] is dropped, and also when its owner
//!   panics, is interrupted or is killed (module `sandbox` says how).
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

pub use self::binaries::{ASSETS_VARIABLE, Binaries, CACHE_VARIABLE};
use self::credentials::Credentials;
pub use self::credentials::User;
pub use self::process::Process;
use self::sandbox::Sandbox;

/// The controller of kube-controller-manager that writes the status of policies.
pub const STATUS_CONTROLLER: &str = "validatingadmissionpolicy-status-controller";

/// Components to start; [`ControlPlane::builder`] makes one.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    users: Vec<User>,
    api_server_args: Vec<String>,
    kcm_controllers: Vec<String>,
}

impl Builder {
    /// Lets the API server know one more user beside the administrator.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// Adds an argument to the command line of the API server, for instance
    /// `--runtime-config=admissionregistration.k8s.io/v1=false`.
    #[must_use]
    pub fn api_server_arg(mut self, argument: &str) -> Self {
        self.api_server_args.push(argument.to_owned());
        self
    }

    /// Starts kube-controller-manager with upstream's status controller for policies, alone.
    #[must_use]
    pub fn status_controller(self) -> Self {
        self.kcm_controllers(&[STATUS_CONTROLLER])
    }

    /// Starts kube-controller-manager with these controllers; none means not to start it.
    #[must_use]
    pub fn kcm_controllers(mut self, controllers: &[&str]) -> Self {
        self.kcm_controllers = controllers.iter().map(ToString::to_string).collect();
        self
    }

    /// Starts the control plane and returns when it is ready, which takes about three seconds.
    ///
    /// Where the binaries have to be built first it takes about ten minutes more, once a machine.
    ///
    /// # Errors
    /// Returns an error if there are no binaries and no Go to build them, or when a server does not start; the
    /// message then holds the end of its log.
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

/// A running control plane, which ends with this value or with the process that holds it.
///
/// Dropping it blocks the thread for some tens of milliseconds.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in this order: clients of a server end before the server.
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
    /// Creates a builder of a control plane; the default is etcd, an API server and an administrator.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts etcd and an API server.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Returns a client of the administrator.
    ///
    /// Each call makes a new one, since a client belongs to the runtime that first used it.
    ///
    /// # Errors
    /// Returns an error if the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        self.client_for(User::admin().name()).await
    }

    /// Returns a client of a user who was named to the [`Builder`].
    ///
    /// # Errors
    /// Returns an error if there is no such user.
    pub async fn client_for(&self, user: &str) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig_for(user)?)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // A proxy of the environment cannot reach the loopback interface of this machine.
        config.proxy_url = None;
        Ok(Client::try_from(config)?)
    }

    /// Returns the kubeconfig file of the administrator, for kubectl and for the controller.
    ///
    /// # Errors
    /// None in practice: the administrator is always known.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        self.kubeconfig_for(User::admin().name())
    }

    /// Returns the kubeconfig file of a user who was named to the [`Builder`].
    ///
    /// # Errors
    /// Returns an error if there is no such user.
    pub fn kubeconfig_for(&self, user: &str) -> Result<PathBuf> {
        self.credentials.kubeconfig(user)
    }

    /// Returns the real kubectl as the administrator; `tokio::process::Command::from` takes it too.
    ///
    /// # Errors
    /// None in practice: the administrator is always known.
    pub fn kubectl(&self) -> Result<Command> {
        let mut command = Command::new(self.binaries.kubectl());
        command
            .env("KUBECONFIG", self.kubeconfig()?)
            // kubectl would otherwise keep what it discovers, and read preferences, at home.
            .env("KUBECACHEDIR", self.directory().join("kubectl-cache"))
            .env("KUBERC", "off");
        Ok(command)
    }

    /// Starts a program, for instance the controller, that ends with this control plane at the
    /// latest, and whose output goes to `<name>.log` in [`ControlPlane::directory`].
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub fn spawn(&self, name: &str, command: Command) -> Result<Process> {
        Process::spawn(&self.sandbox, name, command)
    }

    /// Returns the address of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns the private directory that holds data, credentials and logs, gone with the control plane.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.sandbox.directory()
    }

    /// Returns the etcd process.
    #[must_use]
    pub fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// Returns the API server process, `None` after [`ControlPlane::kill_api_server`].
    #[must_use]
    pub fn api_server(&self) -> Option<&Process> {
        self.api_server.as_ref()
    }

    /// Returns the kube-controller-manager process, `None` unless it was started.
    #[must_use]
    pub fn kcm(&self) -> Option<&Process> {
        self.kcm.as_ref()
    }

    /// Kills the API server (SIGKILL), so that its clients lose their connections at once.
    pub fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server again after [`ControlPlane::kill_api_server`]: at the same address,
    /// with the same data, certificates and tokens.
    ///
    /// # Errors
    /// Returns an error if it still runs, or does not start.
    pub async fn start_api_server_again(&mut self) -> Result<()> {
        ensure!(self.api_server.is_none(), "the API server still runs");
        self.start_api_server().await
    }

    /// Starts kube-controller-manager with these controllers and waits until their caches are
    /// filled.
    ///
    /// # Errors
    /// Returns an error if it runs already, is missing from the assets, or does not start.
    pub async fn start_kcm(&mut self, controllers: &[&str]) -> Result<()> {
        ensure!(self.kcm.is_none(), "kube-controller-manager runs already");
        let mut kcm = servers::start_kcm(self, controllers)?;
        servers::await_kcm(&mut kcm).await?;
        self.kcm = Some(kcm);
        Ok(())
    }

    /// Kills kube-controller-manager, if it runs.
    pub fn stop_kcm(&mut self) {
        self.kcm = None;
    }

    /// Tries other ports as long as somebody else takes the chosen one first.
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
