//! Builds and runs Kubernetes' own end-to-end tests, and reads their reports.
//!
//! The Go module in `e2e/kubernetes` links the tests of `k8s.io/kubernetes/test/e2e/apimachinery`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::control_plane::ControlPlane;

/// The compiled test program of Kubernetes.
#[derive(Clone, Debug)]
pub struct Tests {
    program: PathBuf,
}

/// The outcome of each test by name. An outcome is a state of ginkgo, such as `passed`.
pub type Outcomes = BTreeMap<String, String>;

impl Tests {
    /// Builds the tests with Go into `folder`.
    ///
    /// Blocks the thread. The first build takes about two minutes if Go's cache contains the build of the control
    /// plane.
    ///
    /// # Errors
    /// Returns an error with the output of Go if the build fails.
    pub fn build(folder: &Path) -> Result<Self> {
        let program = folder.join("kubernetes-e2e");
        // The build of the control plane has the same flags, so its cached packages are reused.
        let output = Command::new("go")
            .args([
                "test",
                "-c",
                "-vet=off",
                "-trimpath",
                "-ldflags",
                "-s -w",
                "-o",
            ])
            .arg(&program)
            .arg(".")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes"))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env_remove("GOOS")
            .env_remove("GOARCH")
            .output()
            .context("run Go, which builds Kubernetes' own tests")?;
        ensure!(
            output.status.success(),
            "`go test -c` in e2e/kubernetes failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Self { program })
    }

    /// Runs the tests whose names contain `focus`, with the administrator's credentials.
    ///
    /// Blocks the thread for at most `timeout`. A failed test is not an error.
    ///
    /// # Errors
    /// Returns an error if the tests do not start or do not write a report.
    pub fn run(
        &self,
        control_plane: &ControlPlane,
        focus: &str,
        timeout: Duration,
    ) -> Result<Outcomes> {
        let folder = tempfile::tempdir_in(control_plane.directory()).context("folder for tests")?;
        let report = folder.path().join("report.json");
        let log = std::fs::File::create(folder.path().join("log"))?;
        let status = Command::new(&self.program)
            .current_dir(folder.path())
            .arg("--kubeconfig")
            .arg(control_plane.kubeconfig()?)
            .args(["--provider=skeleton", "--num-nodes=0"])
            .args(["--ginkgo.no-color", "--ginkgo.v"])
            .arg(format!("--ginkgo.focus={focus}"))
            .arg(format!("--ginkgo.timeout={}s", timeout.as_secs()))
            .arg(format!("--ginkgo.json-report={}", report.display()))
            // There are no nodes with logs.
            .arg("--disable-log-dump")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .with_context(|| self.program.display().to_string())?;
        let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let text = std::fs::read(&report)
            .with_context(|| format!("no report, {status}; printed:\n{}", log()))?;
        let suites: Vec<Suite> = serde_json::from_slice(&text).context("ginkgo's report")?;
        let specs = suites.into_iter().flat_map(|suite| suite.spec_reports);
        Ok(specs
            .filter(|spec| spec.state != "skipped")
            .map(|spec| (spec.leaf_node_text, spec.state))
            .collect())
    }
}

/// A suite in ginkgo's report.
///
/// Source: ginkgo `types/types.go`, `Report`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Vec<Spec>,
}

/// A test in ginkgo's report.
///
/// Source: ginkgo `types/types.go`, `SpecReport`, `SpecState`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    leaf_node_text: String,
    state: String,
}
