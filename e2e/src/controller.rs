//! Runs the controller as a process on a control plane. The controller has the same permissions as in an installation.
//! Its log and metrics are checked for failures.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use vap_status_controller::probe::api::PolicyProbe;
use vap_status_controller::probe::crd::crd;

use crate::allowed_failures::{AllowedFailure, Sample, samples, unexpected_failures};
use crate::control_plane::{ControlPlane, Process, User};

/// The user name of the controller in a cluster.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:vap-status-system:vap-status-controller";

/// The number of log lines that a failed test prints.
const LOG_TAIL: usize = 20;

const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the controller's user, which has the groups of a service account.
#[must_use]
pub fn service_account() -> User {
    User::new(
        SERVICE_ACCOUNT,
        &[
            "system:serviceaccounts",
            "system:serviceaccounts:vap-status-system",
            "system:authenticated",
        ],
    )
}

/// Starts a control plane. The controller's user has only the permissions of `config/rbac`.
///
/// # Errors
/// Returns an error if the control plane does not start or kubectl rejects the manifests.
pub async fn control_plane() -> Result<ControlPlane> {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .start()
        .await?;
    grant_permissions(&control_plane)?;
    Ok(control_plane)
}

/// Grants the controller's user only the permissions of `config/rbac`.
///
/// # Errors
/// Returns an error if kubectl rejects the manifests.
pub fn grant_permissions(control_plane: &ControlPlane) -> Result<()> {
    run_kubectl(control_plane, &["create", "namespace", "vap-status-system"])?;
    let rbac = repository().join("config/rbac");
    run_kubectl(
        control_plane,
        &["apply".as_ref(), "-k".as_ref(), rbac.as_os_str()],
    )
}

/// Allows the controller's user to read config maps, which are the params in tests. In a cluster, the role for params
/// aggregates other roles. The control plane has no controller for this aggregation.
///
/// # Errors
/// Returns an error if kubectl fails.
pub fn grant_params(control_plane: &ControlPlane) -> Result<()> {
    let role =
        format!("create clusterrole {PARAMS_ROLE} --verb=get,list,watch --resource=configmaps");
    let binding = format!(
        "create clusterrolebinding {PARAMS_ROLE} --clusterrole={PARAMS_ROLE} \
         --serviceaccount=vap-status-system:vap-status-controller"
    );
    for arguments in [role, binding] {
        run_kubectl(control_plane, &arguments.split(' ').collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Allows the controller's user to create access reviews, with the role in the kustomize component
/// `subject-access-reviews`.
///
/// # Errors
/// Returns an error if kubectl rejects the manifests.
pub fn grant_access_reviews(control_plane: &ControlPlane) -> Result<()> {
    let role = repository().join("config/components/subject-access-reviews/cluster_role.yaml");
    run_kubectl(
        control_plane,
        &["apply".as_ref(), "-f".as_ref(), role.as_os_str()],
    )
}

/// Installs the CRD of the status objects with the plural name `plural`.
///
/// # Errors
/// Returns an error if kubectl rejects the manifest.
pub fn install_statuses(control_plane: &ControlPlane, plural: &str) -> Result<()> {
    let crd = repository().join(format!("crds/{plural}.vap-status.dev.yaml"));
    run_kubectl(
        control_plane,
        &["apply".as_ref(), "-f".as_ref(), crd.as_os_str()],
    )
}

/// Waits until the API server serves a resource, written as `group/version/resource`.
///
/// # Errors
/// Returns an error if the resource is not served in time.
pub async fn await_served(client: &Client, resource: &str) -> Result<()> {
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let request = http::Request::get(format!("/apis/{resource}")).body(Vec::new())?;
        match client.request_text(request).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => bail!("{resource}: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Allows the controller's user to watch a resource, with the role in the kustomize component of the same name.
///
/// # Errors
/// Returns an error if kubectl rejects the manifests.
pub fn grant_watch(control_plane: &ControlPlane, resource: &str) -> Result<()> {
    let role = format!("config/components/{resource}/cluster_role.yaml");
    let role = repository().join(role);
    run_kubectl(
        control_plane,
        &["apply".as_ref(), "-f".as_ref(), role.as_os_str()],
    )
}

/// Runs kubectl as the administrator. An error contains kubectl's standard error.
fn run_kubectl<A: AsRef<OsStr>>(control_plane: &ControlPlane, arguments: &[A]) -> Result<()> {
    let outcome = control_plane.kubectl()?.args(arguments).output()?;
    ensure!(
        outcome.status.success(),
        "{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    Ok(())
}

/// The name of the role and of the binding that [`grant_params`] creates.
pub const PARAMS_ROLE: &str = "params-of-the-test";

/// Installs the CRD of probes. Waits until the API server serves probes.
///
/// # Errors
/// Returns an error if the API server rejects the CRD, or does not serve probes within a minute.
pub async fn install_probes(client: &Client) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd()).await?;
    let probes: Api<PolicyProbe> = Api::all(client.clone());
    let deadline = Instant::now() + READY_TIMEOUT;
    while probes.list(&ListParams::default()).await.is_err() {
        ensure!(Instant::now() < deadline, "probes are not served");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Returns the root of the checkout.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Returns the path of a binary of the workspace. The binary must be in the directory of the running binary.
///
/// # Errors
/// Returns an error if the binary has not been built.
pub fn binary(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(2);
    let directory = folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    directory.with_context(|| {
        format!("{name} is not built; build it first: cargo build --bins -p vap-status-controller")
    })
}

/// Returns the CPU time of a process, in seconds.
///
/// # Errors
/// Returns an error if the process has ended.
pub fn processor_seconds(pid: u32) -> Result<f64> {
    /// Clock ticks per second (`USER_HZ`). The value is 100 on all relevant architectures.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // In `/proc/PID/stat`, the program name is in parentheses and may contain spaces.
    let fields = stat.rsplit_once(") ").context("no fields")?.1;
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / TICKS)
}

/// The time between SIGTERM and SIGKILL. A kubelet uses the same default.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A running controller. When it stops, its log and metrics are checked: failures that were not allowed are errors.
///
/// A test must call [`Controller::finish`] or another method that consumes the controller. Otherwise, the drop panics,
/// so that no test omits the check.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    address: String,
    allowed: Mutex<Vec<AllowedFailure>>,
    is_checked: bool,
}

impl Controller {
    /// Starts the controller with its service account and waits until it is ready.
    ///
    /// # Errors
    /// Returns an error if the controller is not built, or is not ready within a minute.
    pub async fn start(control_plane: &ControlPlane, args: &[&str]) -> Result<Self> {
        let kubeconfig = control_plane.kubeconfig_for(SERVICE_ACCOUNT)?;
        Self::start_with_kubeconfig(control_plane, &kubeconfig, args).await
    }

    /// Starts the controller like [`Controller::start`], but with a different kubeconfig.
    ///
    /// # Errors
    /// Returns an error like [`Controller::start`].
    pub async fn start_with_kubeconfig(
        control_plane: &ControlPlane,
        kubeconfig: &Path,
        args: &[&str],
    ) -> Result<Self> {
        let mut controller = Self::spawn_with_kubeconfig(control_plane, kubeconfig, args)?;
        let readiness = controller.await_ready().await;
        if readiness.is_err() {
            controller.is_checked = true;
        }
        readiness.map(|()| controller)
    }

    /// Starts the controller with its service account. Does not wait until it is ready.
    ///
    /// # Errors
    /// Returns an error if the controller is not built.
    pub fn spawn(control_plane: &ControlPlane, args: &[&str]) -> Result<Self> {
        let kubeconfig = control_plane.kubeconfig_for(SERVICE_ACCOUNT)?;
        Self::spawn_with_kubeconfig(control_plane, &kubeconfig, args)
    }

    fn spawn_with_kubeconfig(
        control_plane: &ControlPlane,
        kubeconfig: &Path,
        args: &[&str],
    ) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let listen = args.iter().find_map(|arg| arg.strip_prefix("--listen="));
        let address = listen.map_or_else(
            || format!("127.0.0.1:{port}"),
            // A client cannot connect to `[::]`, so requests are sent to the loopback address of IPv6.
            |listen| listen.replace("[::]", "[::1]"),
        );
        let mut command = Command::new(binary("vap-status-controller")?);
        command
            .args(["run", "--log-format=json", "--listen", &address])
            .args(args)
            .env("KUBECONFIG", kubeconfig);
        let process = control_plane.spawn(&format!("controller-{port}"), command)?;
        Ok(Self {
            process,
            address,
            allowed: Mutex::default(),
            is_checked: false,
        })
    }

    /// Waits until the controller is ready.
    ///
    /// # Errors
    /// Returns an error with the end of the log if the controller ends, or is not ready within a minute.
    pub async fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !self
            .get("/readyz")
            .await
            .is_ok_and(|(status, _)| status == 200)
        {
            self.process.check()?;
            if Instant::now() > deadline {
                bail!(
                    "the controller did not become ready{}",
                    self.process.log_tail()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Allows these failures, including failures that have already occurred.
    pub fn allow(&self, failures: impl IntoIterator<Item = AllowedFailure>) {
        self.allowed().extend(failures);
    }

    fn allowed(&self) -> MutexGuard<'_, Vec<AllowedFailure>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the controller with SIGTERM, as a kubelet does. Checks its log and metrics.
    ///
    /// # Errors
    /// Returns an error if there were failures that were not allowed, or if the controller does not exit successfully.
    pub async fn finish(mut self) -> Result<()> {
        self.is_checked = true;
        let metrics = self.get("/metrics").await;
        let status = tokio::task::block_in_place(|| self.process.terminate(STOP_TIMEOUT))?;
        let mut failures = self.failures(metrics)?;
        if !status.success() {
            failures.push(format!("it ended with {status}"));
        }
        ensure_no_failures(&failures)
    }

    /// Kills the controller with SIGKILL. Checks its log and its last metrics.
    ///
    /// # Errors
    /// Returns an error if there were failures that were not allowed.
    pub async fn kill(mut self) -> Result<()> {
        self.is_checked = true;
        let metrics = self.get("/metrics").await;
        self.process.kill();
        ensure_no_failures(&self.failures(metrics)?)
    }

    /// Waits until the controller exits by itself, for at most `timeout`. Checks its log. The metrics are not available
    /// after the exit.
    ///
    /// # Errors
    /// Returns an error if the controller does not exit, or if there were failures that were not allowed.
    pub async fn await_exit(mut self, timeout: Duration) -> Result<ExitStatus> {
        self.is_checked = true;
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.process.exit_status()? {
                ensure_no_failures(&self.failures(Ok((200, String::new())))?)?;
                return Ok(status);
            }
            ensure!(
                Instant::now() < deadline,
                "the controller is still running{}",
                self.process.log_tail()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Drops the controller without the check, and prints the end of the log. For tests that have already failed.
    #[expect(clippy::print_stderr, reason = "a failing test prints the reason")]
    pub fn drop_unchecked(mut self) {
        self.is_checked = true;
        match self.process.log() {
            Ok(log) => {
                let lines: Vec<&str> = log.lines().rev().take(LOG_TAIL).collect();
                let lines = lines.into_iter().rev();
                lines.for_each(|line| eprintln!("log: {line}"));
            }
            Err(error) => eprintln!("no log: {error:#}"),
        }
    }

    /// Returns failures that are not allowed, and required failures that did not occur.
    fn failures(&self, metrics: Result<(u16, String)>) -> Result<Vec<String>> {
        let log = self.process.log()?;
        let (metrics, rejection) = match metrics {
            Ok((200, text)) => (text, None),
            Ok((status, text)) => (String::new(), Some(format!("{status}: {text}"))),
            Err(error) => (String::new(), Some(format!("{error:#}"))),
        };
        let mut failures = unexpected_failures(&log, &metrics, &self.allowed());
        failures.extend(rejection.map(|why| format!("no metrics: {why}")));
        Ok(failures)
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends a GET of `path` to the controller. Returns the status and the body of the response.
    ///
    /// # Errors
    /// Returns an error if the controller does not respond.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(&self.address).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .context("no end of the head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, body.to_owned()))
    }

    /// Returns the resident memory in KiB.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn resident_kib(&self) -> Result<u64> {
        self.memory_kib("VmRSS:")
    }

    /// Returns the maximum resident memory since the start, in KiB.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn peak_kib(&self) -> Result<u64> {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, field: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .with_context(|| format!("no {field}"))?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
    }

    /// Returns the CPU time since the start, in seconds.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn processor_seconds(&self) -> Result<f64> {
        processor_seconds(self.pid())
    }

    /// Scrapes the metrics.
    ///
    /// # Errors
    /// Returns an error if the controller does not respond with metrics.
    pub async fn samples(&self) -> Result<Vec<Sample>> {
        let (status, text) = self.get("/metrics").await?;
        ensure!(status == 200, "{status}: {text}");
        Ok(samples(&text))
    }

    /// Returns the sum of the samples of the metric `name`.
    ///
    /// # Errors
    /// Returns an error if the controller does not respond with metrics, or if no metric has this name.
    pub async fn total(&self, name: &str) -> Result<u64> {
        let samples = self.samples().await?;
        let mut values = samples.iter().filter(|sample| sample.name == name);
        let first = values.next().with_context(|| format!("no metric {name}"))?;
        let total = values.fold(first.value, |sum, sample| sum + sample.value);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the metric is a count, which Prometheus stores as a float"
        )]
        Ok(total as u64)
    }

    /// Returns the controller's log (JSON lines).
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn log(&self) -> Result<String> {
        self.process.log()
    }
}

impl Drop for Controller {
    #[expect(
        clippy::panic,
        clippy::print_stderr,
        reason = "a test without the check must fail, and a failing test prints the reason"
    )]
    fn drop(&mut self) {
        if self.is_checked {
            return;
        }
        if std::thread::panicking() {
            let no_metrics = Ok((200, String::new()));
            let failures = self.failures(no_metrics).unwrap_or_default();
            eprintln!("unexpected failures in the controller's log: {failures:#?}");
        } else {
            panic!(
                "a controller was dropped without a check of its log and metrics: call finish() or kill()"
            );
        }
    }
}

fn ensure_no_failures(failures: &[String]) -> Result<()> {
    ensure!(
        failures.is_empty(),
        "unexpected failures of the controller:\n  {}",
        failures.join("\n  ")
    );
    Ok(())
}
