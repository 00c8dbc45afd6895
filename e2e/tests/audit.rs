//! Tests `kubectl vap eval` and `audit` on a real API server. Their decisions equal those of server-side dry runs.
//! Lists are paginated. Resources that the user is not allowed to list are reported.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use e2e::control_plane::{ControlPlane, User};
use e2e::controller::binary;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The number of objects. They fill more than two pages of ten.
const OBJECTS: usize = 25;

const POLICIES: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sizes}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {audited: 'true'}}
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}
  matchConditions:
  - {name: not-exempt, expression: \"!('exempt' in object.metadata.?labels.orValue({}))\"}
  validations:
  - expression: int(object.metadata.?annotations['size'].orValue('0')) <= int(params.data.most)
    messageExpression: \"'at most ' + params.data.most + ' in ' + namespaceObject.metadata.name\"
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sizes}
spec:
  policyName: sizes
  validationActions: [Deny]
  paramRef: {name: limits, namespace: team, parameterNotFoundAction: Deny}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: users}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
  validations:
  - expression: request.userInfo.username != 'nobody' && object.metadata.name != 'refused'
    message: not this one
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: users}
spec: {policyName: users, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unbound}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
  validations: [{expression: 'false'}]
";

struct Bench {
    control_plane: ControlPlane,
}

impl Bench {
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.control_plane.directory().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn kubectl(&self, arguments: &[&str]) -> Output {
        let mut kubectl = self.control_plane.kubectl().unwrap();
        kubectl.args(arguments).output().unwrap()
    }

    #[track_caller]
    fn apply(&self, text: &str) {
        let path = self.file("applied.yaml", text);
        let output = self.kubectl(&["apply", "-f", path.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
    }

    fn vap_by(&self, user: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary("kubectl-vap").unwrap());
        let kubeconfig = self.control_plane.kubeconfig_for(user).unwrap();
        command.env("KUBECONFIG", kubeconfig).env_remove("COLUMNS");
        command.args(arguments).output().unwrap()
    }

    /// Runs a command that must exit with `status`. Returns its JSON report.
    #[track_caller]
    fn report(&self, user: &str, arguments: &[&str], status: i32) -> Value {
        let output = self.vap_by(user, &[arguments, &["-o", "json"]].concat());
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {output:?}"
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns the error of a dry run that creates the object. Empty if the creation is allowed.
    fn dry_run(&self, manifest: &str) -> String {
        let path = self.file("dry-run.yaml", manifest);
        let output = self.kubectl(&["create", "--dry-run=server", "-f", path.to_str().unwrap()]);
        if output.status.success() {
            return String::new();
        }
        String::from_utf8(output.stderr).unwrap()
    }
}

fn secret(name: &str, namespace: &str, size: usize) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {namespace}, annotations: {{size: '{size}'}}}}\n"
    )
}

async fn start() -> Bench {
    let builder = ControlPlane::builder().user(User::new("ann", &[]));
    let bench = Bench {
        control_plane: builder.start().await.unwrap(),
    };
    bench.apply(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {audited: 'true'}}\n---\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: team}\ndata: {most: '10'}\n",
    );
    let mut secrets = String::new();
    for n in 0..OBJECTS {
        write!(
            secrets,
            "---\n{}",
            secret(&format!("secret-{n}"), "team", n)
        )
        .unwrap();
    }
    write!(secrets, "---\n{}", secret("large", "other", 99)).unwrap();
    bench.apply(&secrets);
    bench.apply(POLICIES);
    let deadline = Instant::now() + TIMEOUT;
    let denied = |manifest: &str| bench.dry_run(manifest).contains("denied request");
    while !(denied(&secret("marker", "team", 11)) && denied(&secret("refused", "other", 0))) {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn eval_decides_like_a_dry_run() {
    let bench = start().await;
    let exempt =
        secret("a", "team", 50).replace("annotations", "labels: {exempt: 'true'}, annotations");
    for (manifest, by) in [
        (secret("a", "team", 10), None),
        (secret("a", "team", 11), Some("sizes")),
        (secret("a", "other", 11), None),
        (
            secret("a", "team", 0).replace("size: '0'", "size: many"),
            Some("sizes"),
        ),
        (secret("refused", "other", 0), Some("users")),
        (exempt, None),
    ] {
        let said = bench.dry_run(&manifest);
        let file = bench.file("object.yaml", &manifest);
        let arguments = ["eval", "--live", "--object", file.to_str().unwrap()];
        let report = bench.report("admin", &arguments, i32::from(by.is_some()));
        let policies = report["policies"].as_array().unwrap();
        let denied: Vec<&Value> = policies
            .iter()
            .filter(|it| it["verdict"] == "Denied")
            .collect();
        let names: Vec<&str> = denied
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            by.into_iter().collect::<Vec<_>>(),
            "{manifest}: {said}"
        );
        for policy in denied {
            assert!(
                said.contains(policy["why"].as_str().unwrap()),
                "{said}, and not {policy}"
            );
        }
        assert_eq!(said.is_empty(), by.is_none(), "{manifest}: {said}");
        let unbound = policies.iter().find(|it| it["name"] == "unbound").unwrap();
        assert_eq!(unbound["verdict"], "NotBound");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_reads_paginated_lists_and_reports_forbidden_resources() {
    let bench = start().await;
    let by_page = bench.report("admin", &["audit", "vap/sizes", "--chunk-size", "10"], 1);
    let at_once = bench.report("admin", &["audit", "vap/sizes"], 1);
    let count = |report: &Value, name: &str| report["summary"][name].as_u64().unwrap();
    for report in [&by_page, &at_once] {
        assert_eq!(report["resources"][0]["resource"], "secrets");
        assert_eq!(report["policies"][0]["matched"], OBJECTS);
        // Secrets 11 to 24 exceed the limit in the params. The policy `sizes` does not match the namespace `other`.
        assert_eq!(count(report, "violating"), 14);
        assert_eq!(count(report, "unread"), 0);
    }
    assert_eq!(by_page["objects"], at_once["objects"]);
    assert_eq!(count(&by_page, "objects"), count(&at_once, "objects"));
    let violation = &by_page["objects"][0]["results"][0]["violations"][0];
    assert_eq!(violation["message"], "at most 10 in team");
    assert_eq!(violation["params"], "team/limits");

    let all = bench.report("admin", &["audit", "--live", "-n", "team"], 1);
    let users = all["policies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "users")
        .unwrap();
    assert_eq!(users["violating"], 0);
    assert_eq!(users["assumed"][0]["input"], "request.userInfo");
    let unbound = all["policies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "unbound")
        .unwrap();
    assert_eq!(unbound["isBindingImplied"], true);
    assert_eq!(unbound["violating"], OBJECTS);

    // This user is allowed to read policies and params, but not Secrets.
    bench.apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reads}\nrules:\n\
         - {apiGroups: [admissionregistration.k8s.io], resources: ['*'], verbs: [get, list]}\n\
         - {apiGroups: [''], resources: [namespaces, configmaps], verbs: [list]}\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: reads}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]\n",
    );
    let forbidden = bench.report("ann", &["audit", "vap/sizes"], 2);
    let findings = forbidden["findings"].as_array().unwrap();
    let message = findings
        .iter()
        .find_map(|it| it["message"].as_str().filter(|it| it.contains("secrets")));
    assert!(
        message.unwrap().starts_with("secrets cannot be listed"),
        "{forbidden}"
    );
    assert_eq!(count(&forbidden, "objects"), 0);

    let old = bench.file("old.yaml", POLICIES);
    let new = bench.file(
        "new.yaml",
        &POLICIES.replace("<= int(params.data.most)", "<= int(params.data.most) + 5"),
    );
    let changed = bench.report(
        "admin",
        &[
            "diff",
            old.to_str().unwrap(),
            new.to_str().unwrap(),
            "--live",
        ],
        1,
    );
    assert_eq!(changed["summary"]["allowed"], 5, "{changed}");
    assert_eq!(changed["groups"][0]["cause"]["kind"], "Validation");
}
