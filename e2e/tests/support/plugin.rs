//! Runs the plugin with a control plane, as an administrator and as a user without permissions.

#![allow(dead_code, reason = "each test uses only a part of this module")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use e2e::control_plane::{ControlPlane, User};
use e2e::controller::binary;
use serde_json::Value;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.live.example.com}
spec:
  group: live.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
              color: {type: string}
";

/// Returns a policy with one validation for widgets.
pub(crate) fn policy(name: &str, expression: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {name}
  labels: {{team: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [live.example.com]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [widgets]
  validations:
  - expression: {expression}
"
    )
}

/// Creates a directory for `PATH` with the plugin and its completion program.
pub(crate) fn plugins(directory: &Path) -> PathBuf {
    let folder = directory.join("plugins");
    fs::create_dir_all(&folder).unwrap();
    let plugin = folder.join("kubectl-vap");
    if !plugin.exists() {
        std::os::unix::fs::symlink(binary("kubectl-vap").unwrap(), &plugin).unwrap();
    }
    let script = Command::new(&plugin)
        .args(["completion", "kubectl"])
        .output();
    let path = folder.join("kubectl_complete-vap");
    fs::write(&path, script.unwrap().stdout).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    folder
}

pub(crate) struct Bench {
    pub(crate) control_plane: ControlPlane,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let builder = ControlPlane::builder().user(User::new("ann", &[]));
        Self {
            control_plane: builder.start().await.unwrap(),
        }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.control_plane.directory().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) {
        let output = self
            .control_plane
            .kubectl()
            .unwrap()
            .args(arguments)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    pub(crate) fn apply(&self, text: &str) {
        let path = self.file("applied.yaml", text);
        self.kubectl(&["apply", "-f", path.to_str().unwrap()]);
    }

    pub(crate) fn install_crd(&self) {
        self.apply(CRD);
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let mut kubectl = self.control_plane.kubectl().unwrap();
            let output = kubectl.args(["get", "--raw", "/openapi/v3/apis/live.example.com/v1"]);
            let output = output.output().unwrap();
            if String::from_utf8_lossy(&output.stdout).contains("\"color\"") {
                return;
            }
            assert!(Instant::now() < deadline, "{output:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn command(&self, kubeconfig: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("kubectl-vap").unwrap());
        command.env("KUBECONFIG", kubeconfig).env_remove("COLUMNS");
        command.current_dir(self.control_plane.directory());
        command.args(arguments);
        command
    }

    pub(crate) fn vap_by(&self, user: &str, arguments: &[&str]) -> Output {
        let kubeconfig = self.control_plane.kubeconfig_for(user).unwrap();
        self.command(&kubeconfig, arguments).output().unwrap()
    }

    pub(crate) fn vap(&self, arguments: &[&str]) -> Output {
        self.vap_by("admin", arguments)
    }

    /// Allows the user ann to read policies only.
    pub(crate) fn let_ann_read_policies(&self) {
        for command in [
            "create clusterrole policies --verb=get,list,watch --resource=validatingadmissionpolicies",
            "create clusterrolebinding policies --clusterrole=policies --user=ann",
        ] {
            self.kubectl(&command.split(' ').collect::<Vec<_>>());
        }
    }

    /// Runs a command as ann. Retries until the API server has applied her permissions.
    pub(crate) fn output_for_ann(&self, arguments: &[&str]) -> Output {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let output = self.vap_by("ann", arguments);
            if !output.stdout.is_empty() || Instant::now() > deadline {
                return output;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs a command that must exit with `status`. Returns its standard output.
    #[track_caller]
    pub(crate) fn check(&self, arguments: &[&str], status: i32) -> String {
        let output = self.vap(arguments);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

pub(crate) fn rules(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|found| {
            let text = |name: &str| found[name].as_str().unwrap_or_default();
            format!("{} {} {}", text("severity"), text("rule"), text("file"))
        })
        .collect()
}
