//! The demo: sample policies on a real API server, the controller, and the output of the plugin and kubectl.
//!
//! The samples and manifests are those in `config/`. The programs are from the same build as the demo. The demo fails
//! if a status differs from the expectation of its sample, before or after the live change.
#![expect(
    clippy::print_stdout,
    reason = "the output is for the user, and not a log"
)]

pub mod expect;
mod programs;

use std::io::Write as _;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use self::expect::Moment;
use self::programs::Programs;
use crate::ControlPlane;
use crate::allowed_failures::unexpected_failures;
use crate::control_plane::Process;
use crate::controller::{grant_permissions, repository, service_account};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// The columns of the table from kubectl without the plugin.
const COLUMNS: &str = concat!(
    r#"custom-columns=NAME:.metadata.name,"#,
    r#"READY:.status.conditions[?(@.type=="Ready")].status,"#,
    r#"REASON:.status.conditions[?(@.type=="Ready")].reason"#
);

/// The processes that continue after the output of the demo. They end when this value is dropped.
#[derive(Debug)]
pub struct Demo {
    // The fields are dropped in this order: the controller must end before the API server.
    controller: Process,
    control_plane: ControlPlane,
    programs: Programs,
}

impl Demo {
    /// Runs the demo.
    ///
    /// # Errors
    /// Returns an error if a program is missing or does not start, or if a status is unexpected.
    pub async fn run() -> Result<Self> {
        let programs = Programs::find()?;

        heading("A private Kubernetes API server");
        let start = Instant::now();
        let control_plane = ControlPlane::builder()
            .user(service_account())
            .start()
            .await?;
        let client = control_plane.client().await?;
        let version = client.apiserver_version().await?.git_version;
        let server = control_plane.url();
        println!(
            "Kubernetes {version} at {server}, ready after {}",
            time(start)
        );

        heading("Sample CRDs and policies, some of them wrong");
        shown(&control_plane, &["apply", "-k", "crds"])?;
        let crd = "customresourcedefinition/policyprobes.vap-status.dev";
        shown(
            &control_plane,
            &["wait", "--for=condition=Established", "--timeout=60s", crd],
        )?;
        shown(&control_plane, &["apply", "-k", "config/samples"])?;

        heading("The controller, with the permissions of config/rbac and no others");
        grant_permissions(&control_plane)?;
        let start = Instant::now();
        let controller = control_plane.spawn(
            "vap-status-controller",
            programs.controller(&control_plane)?,
        )?;
        let mut demo = Self {
            controller,
            control_plane,
            programs,
        };
        let policies = Api::all(client);
        let n_policies = demo.await_all(&policies, Moment::First).await?;
        println!(
            "all {n_policies} statuses are as the samples expect, {} after its start",
            time(start)
        );
        demo.await_in_sync().await?;
        demo.tables()?;
        demo.plugin(&["status", "sample-misspelt-field"])?;

        heading("The probes among the samples, in the cluster and in files");
        shown(&demo.control_plane, &["get", "policyprobes"])?;
        let status = demo.plugin(&["test", "config/samples"])?;
        ensure!(status.success(), "a probe does not pass in files");

        heading("A live change: the missing CRD is installed, the policies stay as they are");
        let start = Instant::now();
        shown(&demo.control_plane, &["apply", "-k", "config/samples/late"])?;
        for name in demo.becoming_ready(&policies).await? {
            let policy = format!("validatingadmissionpolicy/{name}");
            shown(
                &demo.control_plane,
                &["wait", "--for=condition=Ready", "--timeout=60s", &policy],
            )?;
            println!("Ready within {}", time(start));
        }
        let n_policies = demo.await_all(&policies, Moment::Late).await?;
        demo.plugin(&["status"])?;
        let failures = unexpected_failures(&demo.controller.log()?, "", &[]);
        ensure!(
            failures.is_empty(),
            "unexpected failures of the controller:\n  {}",
            failures.join("\n  ")
        );

        heading("Done");
        println!(
            "{n_policies} of {n_policies} statuses are as the samples expect, before and after the change"
        );
        Ok(demo)
    }

    /// Prints instructions for manual use of the control plane.
    ///
    /// # Errors
    /// Returns an error if the control plane has no administrator.
    pub fn invite(&self) -> Result<()> {
        let kubeconfig = self.control_plane.kubeconfig()?;
        println!("\nThe control plane and the controller run until Ctrl-C. In another terminal:\n");
        println!("  export KUBECONFIG={}", kubeconfig.display());
        println!(
            "  export PATH=$PATH:{}",
            self.programs.directory().display()
        );
        println!("  kubectl vap status");
        println!(
            "\nThe controller's log: {}",
            self.controller.log_path().display()
        );
        Ok(())
    }

    /// Waits until the controller exits, which is always an error.
    ///
    /// # Errors
    /// Returns an error when the controller has exited.
    pub async fn watch(&mut self) -> Result<()> {
        loop {
            self.check_controller()?;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until all policies have the expected statuses. Returns the number of policies.
    async fn await_all(
        &mut self,
        policies: &Api<ValidatingAdmissionPolicy>,
        moment: Moment,
    ) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let items = policies.list(&ListParams::default()).await?.items;
            ensure!(!items.is_empty(), "config/samples has installed no policy");
            let mut differences = Vec::new();
            for policy in &items {
                differences.extend(expect::differences(policy, moment)?);
            }
            if differences.is_empty() {
                return Ok(items.len());
            }
            self.check_controller()?;
            if Instant::now() > deadline {
                let _ = self.plugin(&["status"]);
                bail!(
                    "not as the samples expect after {} s:\n  {}\nthe end of the controller's log:\n{}",
                    PATIENCE.as_secs(),
                    differences.join("\n  "),
                    last_lines(&self.controller)
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the controller's Lease shows that its caches are in sync. Before that, the plugin warns about stale
    /// statuses.
    async fn await_in_sync(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut command = self.programs.plugin(&self.control_plane)?;
            let output = command.args(["status", "-o", "json"]).output()?;
            let report: Value = serde_json::from_slice(&output.stdout)
                .context("`kubectl vap status -o json` did not print JSON")?;
            let current = report.pointer("/controller/current");
            if current.and_then(Value::as_bool) == Some(true) {
                return Ok(());
            }
            self.check_controller()?;
            ensure!(
                Instant::now() < deadline,
                "the controller does not report that its caches are in sync: {report}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the names of policies whose `Ready` is expected to become True after the live change.
    async fn becoming_ready(
        &self,
        policies: &Api<ValidatingAdmissionPolicy>,
    ) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for policy in policies.list(&ListParams::default()).await? {
            let is_ready = |moment| -> Result<bool> {
                let expectations = expect::expectations(&policy, moment)?;
                Ok(expectations.iter().any(expect::Expectation::is_ready))
            };
            if is_ready(Moment::Late)? && !is_ready(Moment::First)? {
                names.push(expect::name(&policy).to_owned());
            }
        }
        ensure!(
            !names.is_empty(),
            "no sample expects a change of its status by the live change"
        );
        Ok(names)
    }

    /// Returns an error with the end of the log if the controller has ended.
    fn check_controller(&mut self) -> Result<()> {
        if let Some(status) = self.controller.exit_status()? {
            bail!(
                "the controller has ended ({status}):\n{}",
                last_lines(&self.controller)
            );
        }
        Ok(())
    }

    /// Shows the policies with the plugin, and with kubectl alone.
    fn tables(&self) -> Result<()> {
        self.plugin(&["status"])?;
        heading("The same with plain kubectl");
        shown(
            &self.control_plane,
            &["get", "validatingadmissionpolicies", "-o", COLUMNS],
        )
    }

    /// Runs the plugin. Some samples have findings, so the exit status for findings is not an error.
    fn plugin(&self, arguments: &[&str]) -> Result<ExitStatus> {
        heading(&format!("kubectl vap {}", arguments.join(" ")));
        let mut command = self.programs.plugin(&self.control_plane)?;
        let status = command
            .args(arguments)
            .current_dir(repository())
            .status()
            .context("cannot run kubectl-vap")?;
        ensure!(
            matches!(status.code(), Some(0 | 1)),
            "kubectl-vap ended with {status}"
        );
        Ok(status)
    }
}

/// Runs kubectl in the root directory of the project, and prints the command and its output.
fn shown(control_plane: &ControlPlane, arguments: &[&str]) -> Result<()> {
    let quoted: Vec<_> = arguments.iter().map(|it| quoted(it)).collect();
    println!("$ kubectl {}", quoted.join(" "));
    std::io::stdout().flush()?;
    let status = kubectl(control_plane, arguments)?
        .status()
        .context("cannot run kubectl")?;
    ensure!(
        status.success(),
        "kubectl {} ended with {status}",
        arguments.join(" ")
    );
    Ok(())
}

fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) -> Result<Command> {
    let root = repository();
    ensure!(
        root.join("config/samples").is_dir(),
        "{} does not exist: the demo needs the checkout that it was built from",
        root.display()
    );
    let mut command = control_plane.kubectl()?;
    command.args(arguments).current_dir(root);
    Ok(command)
}

/// Quotes an argument for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./=:,".contains(it);
    if argument.chars().all(is_plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

fn heading(text: &str) {
    println!("\n== {text}\n");
}

fn time(start: Instant) -> String {
    format!("{:.1} s", start.elapsed().as_secs_f64())
}

fn last_lines(process: &Process) -> String {
    let log = process.log().unwrap_or_default();
    let lines: Vec<_> = log.lines().rev().take(20).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
