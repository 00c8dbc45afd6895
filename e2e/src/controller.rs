//! The controller as a process beside a control plane, under the rights that it is installed with.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use vap_status_controller::probe::api::PolicyProbe;
use vap_status_controller::probe::crd::crd;

use crate::control_plane::{ControlPlane, Process, User};

/// The name of the user that the controller runs as in a cluster.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:vap-status-system:vap-status-controller";

/// How long the controller may take until it is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// The controller's user with the groups that a service account has; to be named to the builder of the
/// control plane.
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

/// A control plane that knows the controller's user, who has the rights of `config/rbac`, and no more.
///
/// # Errors
/// When it does not start, or kubectl refuses the manifests.
pub async fn control_plane() -> Result<ControlPlane> {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .start()
        .await?;
    grant_rights(&control_plane)?;
    Ok(control_plane)
}

/// Grants the controller's user the rights of `config/rbac`, and no more.
///
/// # Errors
/// When kubectl refuses the manifests.
pub fn grant_rights(control_plane: &ControlPlane) -> Result<()> {
    run_kubectl(control_plane, &["create", "namespace", "vap-status-system"])?;
    let rbac = repository().join("config/rbac");
    run_kubectl(
        control_plane,
        &["apply".as_ref(), "-k".as_ref(), rbac.as_os_str()],
    )
}

/// Grants the controller's user to read config maps, the params of the tests' policies: the control plane of
/// the tests has no controller that gathers roles by label.
///
/// # Errors
/// When kubectl refuses.
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

/// Grants the controller's user to ask the API server who may do what, as the component of that name does.
///
/// # Errors
/// When kubectl refuses the manifests.
pub fn grant_access_reviews(control_plane: &ControlPlane) -> Result<()> {
    let role = repository().join("config/components/subject-access-reviews/cluster_role.yaml");
    run_kubectl(
        control_plane,
        &["apply".as_ref(), "-f".as_ref(), role.as_os_str()],
    )
}

/// Runs kubectl as the administrator; what it complains of is the error.
fn run_kubectl<A: AsRef<OsStr>>(control_plane: &ControlPlane, arguments: &[A]) -> Result<()> {
    let outcome = control_plane.kubectl()?.args(arguments).output()?;
    ensure!(
        outcome.status.success(),
        "{}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    Ok(())
}

/// The name of the role, and of its binding, that [`grant_params`] makes.
pub const PARAMS_ROLE: &str = "params-of-the-test";

/// Installs the CRD of probes, and waits until they are served.
///
/// # Errors
/// When the API server refuses it, or does not serve probes in a minute.
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

/// The root of the checkout.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// A binary of the workspace, which cargo has put beside this one.
///
/// # Errors
/// When it has not been built.
pub fn binary(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folders = own.ancestors().skip(1).take(2);
    let found = folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.with_context(|| {
        format!("{name} is not built; build it first: cargo build --bins -p vap-status-controller")
    })
}

/// A running controller.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    address: String,
}

impl Controller {
    /// Starts the controller as its service account and waits until it is ready.
    ///
    /// # Errors
    /// When it is not built, or does not become ready in a minute.
    pub async fn start(control_plane: &ControlPlane, args: &[&str]) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(binary("vap-status-controller")?);
        command
            .args(["run", "--listen", &address])
            .args(args)
            .env("KUBECONFIG", control_plane.kubeconfig_for(SERVICE_ACCOUNT)?);
        let process = control_plane.spawn(&format!("controller-{port}"), command)?;
        let controller = Self { process, address };
        let deadline = Instant::now() + READY_TIMEOUT;
        while !controller
            .get("/readyz")
            .await
            .is_ok_and(|(status, _)| status == 200)
        {
            if Instant::now() > deadline {
                bail!("the controller did not become ready");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(controller)
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The status and the body of a GET of `path`.
    ///
    /// # Errors
    /// When the controller does not answer.
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

    /// The resident memory in KiB.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn resident_kib(&self) -> Result<u64> {
        self.memory_kib("VmRSS:")
    }

    /// The most resident memory so far, in KiB.
    ///
    /// # Errors
    /// When the process has ended.
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

    /// The processor time used so far, in seconds.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn processor_seconds(&self) -> Result<f64> {
        /// Clock ticks in a second: `USER_HZ`, which is 100 on all architectures of interest.
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        // The name of the program, in parentheses, may hold spaces.
        let fields = stat.rsplit_once(") ").context("no fields")?.1;
        let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<f64>);
        Ok(ticks.sum::<Result<f64, _>>()? / TICKS)
    }

    /// What the controller logged so far.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.process.log_path())?)
    }
}
