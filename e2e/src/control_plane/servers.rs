//! The command lines of the three servers, and their readiness checks.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

use super::ControlPlane;
use super::binaries::Binaries;
use super::process::Process;
use super::sandbox::Sandbox;

/// The timeout for the start of a server. It is long because the machine may be busy.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The interval between readiness checks.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The timeout of a readiness request to the API server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// etcd's socket. A path is limited to 108 bytes, so this path is relative to the sandbox. etcd requires a port in each
/// address, and uses the port as a part of the file name.
const ETCD_SOCKET: &str = "unix://etcd.socket:1";

/// The socket for peers. It is not used.
const ETCD_PEER_SOCKET: &str = "unix://etcd-peer.socket:1";

/// The ports for API servers. They are below the ephemeral ports of Linux and macOS. Otherwise, a client could get the
/// port of an API server that is down.
const PORTS: Range<u16> = 20_000..32_000;

pub(super) fn start_etcd(binaries: &Binaries, sandbox: &Sandbox) -> Result<Process> {
    let mut command = Command::new(binaries.etcd());
    command
        .current_dir(sandbox.directory())
        .args(["--name=default", "--data-dir=etcd"])
        // The data need not survive a crash of the machine.
        .arg("--unsafe-no-fsync")
        .arg(format!("--listen-client-urls={ETCD_SOCKET}"))
        .arg(format!("--advertise-client-urls={ETCD_SOCKET}"))
        .arg(format!("--listen-peer-urls={ETCD_PEER_SOCKET}"))
        .arg(format!("--initial-advertise-peer-urls={ETCD_PEER_SOCKET}"))
        .arg(format!("--initial-cluster=default={ETCD_PEER_SOCKET}"));
    Process::spawn(sandbox, "etcd", command)
}

pub(super) fn start_api_server(control_plane: &ControlPlane) -> Result<Process> {
    let ControlPlane {
        sandbox,
        credentials,
        ..
    } = control_plane;
    let mut command = Command::new(control_plane.binaries.api_server());
    command
        .current_dir(sandbox.directory())
        .arg(format!("--etcd-servers={ETCD_SOCKET}"))
        .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
        .arg(format!("--secure-port={}", control_plane.port))
        // By default, the API server registers its address as the endpoint of the Service `kubernetes`. An endpoint
        // must not have a loopback address.
        .arg("--endpoint-reconciler-type=none")
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        .arg("--cert-dir=certificates")
        .args(path_args(&[
            ("--tls-cert-file", credentials.serving_certificate()),
            ("--tls-private-key-file", credentials.serving_key()),
            (
                "--service-account-key-file",
                credentials.service_account_public_key(),
            ),
            (
                "--service-account-signing-key-file",
                credentials.service_account_private_key(),
            ),
            ("--token-auth-file", credentials.token_file()),
        ]))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg("--authorization-mode=RBAC")
        // This admission plugin requires that the service account of a pod exists. No controller creates service
        // accounts here.
        .arg("--disable-admission-plugins=ServiceAccount")
        .args(&control_plane.api_server_args);
    Process::spawn(sandbox, "kube-apiserver", command)
}

pub(super) fn start_kcm(control_plane: &ControlPlane, controllers: &[&str]) -> Result<Process> {
    let ControlPlane {
        sandbox,
        credentials,
        ..
    } = control_plane;
    let mut command = Command::new(control_plane.binaries.kcm()?);
    command
        .current_dir(sandbox.directory())
        .args(path_args(&[
            ("--kubeconfig", control_plane.kubeconfig()?),
            ("--root-ca-file", credentials.ca_certificate()),
            (
                "--service-account-private-key-file",
                credentials.service_account_private_key(),
            ),
        ]))
        .arg(format!("--controllers={}", controllers.join(",")))
        // Port 0 disables HTTPS, which is not needed.
        .args(["--leader-elect=false", "--secure-port=0"]);
    Process::spawn(sandbox, "kube-controller-manager", command)
}

fn path_args(flags: &[(&str, PathBuf)]) -> Vec<OsString> {
    let argument = |(flag, path): &(&str, PathBuf)| {
        let mut argument = OsString::from(flag);
        argument.push("=");
        argument.push(path);
        argument
    };
    flags.iter().map(argument).collect()
}

/// Waits until the API server is ready and has created the namespace `default`.
pub(super) async fn await_api_server(
    api_server: &mut Process,
    etcd: &mut Process,
    client: &Client,
) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let looked = tokio::time::timeout(REQUEST_TIMEOUT, is_api_server_ready(client)).await;
        if matches!(looked, Ok(Ok(true))) {
            return Ok(());
        }
        etcd.check()?;
        api_server.check()?;
        if Instant::now() > deadline {
            let why = match looked {
                Ok(Ok(_)) => "no namespace `default` yet".to_owned(),
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "no answer".to_owned(),
            };
            bail!(
                "not ready after {START_TIMEOUT:?}: {why}{}",
                api_server.log_tail()
            );
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn is_api_server_ready(client: &Client) -> Result<bool> {
    client
        .request_text(http::Request::get("/readyz").body(Vec::new())?)
        .await?;
    Ok(Api::<Namespace>::all(client.clone())
        .get_opt("default")
        .await?
        .is_some())
}

/// Waits until the controllers' caches are synced according to the log.
pub(super) async fn await_kcm(kcm: &mut Process) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while !kcm.log()?.contains("Caches are synced") {
        kcm.check()?;
        ensure!(
            Instant::now() < deadline,
            "kube-controller-manager is not ready after {START_TIMEOUT:?}{}",
            kcm.log_tail()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Returns a free loopback port. Another process may take the port before the caller does.
pub(super) fn free_port() -> Result<u16> {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    // The hasher has random keys, so that concurrent control planes try different ports.
    let hash = RandomState::new().hash_one(std::process::id());
    let skipped = usize::try_from(hash % u64::from(PORTS.end - PORTS.start))?;
    match PORTS.cycle().skip(skipped).take(PORTS.len()).find(is_free) {
        Some(port) => Ok(port),
        None => bail!("no free port on 127.0.0.1 in {PORTS:?}"),
    }
}

/// Returns true if the API server failed because another process uses its port.
pub(super) fn is_port_taken(error: &Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
