//! Tests commands that read a cluster. The test's API server returns prepared objects, versions, pages and failures.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;

use crate::api_server::{ApiServer, Config};
use crate::cli_commands::{directory, vap};
use crate::golden;

pub(crate) const CLUSTER: &str = include_str!("../cli_live/cluster.yaml");

/// A policy whose paramKind and binding are only in the cluster.
pub(crate) const NEW_POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replica-limit}
spec:
  paramKind: {apiVersion: rules.example.com/v1, kind: ReplicaLimit}
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= params.maxReplicas + 5
    messageExpression: \"'at most ' + string(params.maxReplicas + 5) + ' replicas'\"
";
/// A policy that denies all Deployments since Kubernetes 1.37.
const OR_VALUE: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: image-names}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.template.spec.containers.all(c, c.image.orValue('') != '')
";
const REQUEST_OBJECT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: payments}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: docker.io/a}]}
";

/// Runs each command with the server. Compares the outputs, exit statuses and requests with `tests/cli_live/NAME.txt`.
#[track_caller]
fn check(name: &str, config: Config, commands: &[&str]) {
    let folder = directory(
        name,
        &[
            ("new.yaml", NEW_POLICY),
            ("or_value.yaml", OR_VALUE),
            ("web.yaml", REQUEST_OBJECT),
        ],
    );
    let folder = folder.to_str().unwrap();
    let server = ApiServer::start(config);
    let mut text = String::new();
    for command in commands {
        let words = command.replace("DIR", folder);
        let arguments: Vec<&str> = words.split(' ').chain(["--server", &server.url]).collect();
        let ran = vap(&arguments, "");
        let _ = write!(
            text,
            "$ kubectl vap {command}\n{}{}exit {}\n\n",
            ran.out, ran.err, ran.status
        );
    }
    let mut requests = server.requests();
    requests.dedup();
    let _ = writeln!(text, "Requests:\n{}", requests.join("\n"));
    let text = text.replace(folder, "DIR").replace(&server.url, "SERVER");
    golden::compare(&format!("tests/cli_live/{name}.txt"), &without_ages(&text));
}

/// Replaces the ages before `ago`, because they depend on the current time.
fn without_ages(text: &str) -> String {
    let mut parts = text.split(" ago");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let start = result.rfind(' ').map_or(0, |space| space + 1);
        result.replace_range(start.., "AGE ago");
        result.push_str(part);
    }
    result
}

fn cluster() -> Config {
    Config::new(CLUSTER)
}

/// Uses formats without ages, because ages depend on the current time.
#[test]
fn status_command_shows_policies_and_opted_in_kinds() {
    check(
        "status",
        cluster(),
        &[
            "status -o json",
            "status -o yaml --no-check",
            "status -o json replica-limit",
            "status -o json images missing",
            "status -o json missing",
            "status -o json -l team=platform",
            "status -o json map",
            "status -o json map/add-label map/missing",
            "status -o json crd",
            "status -o json vwc/hooks",
            "status -o json mwc",
            "status -o json --exit-zero",
            "status -o json images -l team=apps",
            "status map --watch",
            "status -o name",
        ],
    );
}

#[test]
fn version_command_shows_versions_of_plugin_and_controller_and_server() {
    let commands = [
        "version",
        "version -o json",
        "version --client",
        "version --lease-name other",
    ];
    check("version", cluster(), &commands);
}

#[test]
fn unreadable_lease_is_an_error_of_version_command() {
    let config = cluster().fault("/apis/coordination.k8s.io/v1/*", 403, "lease is forbidden");
    check("version_no_lease", config, &["version"]);
}

#[test]
fn status_command_reads_all_pages() {
    let config = Config {
        page_size: 1,
        ..cluster()
    };
    check(
        "pages",
        config,
        &["status -o json --no-check", "check --live", "audit --live"],
    );
}

#[test]
fn live_check_reports_policies_of_the_cluster_and_files() {
    check(
        "check",
        cluster(),
        &[
            "check --live",
            "check --live -o json",
            "check -l team=apps",
            "check vap/replica-limit",
            "check vap/missing",
            "check vap/images vap/missing",
            "check DIR/new.yaml --live",
            "check DIR/new.yaml",
        ],
    );
}

#[test]
fn live_audit_evaluates_stored_objects() {
    check(
        "audit",
        cluster(),
        &[
            "audit --live",
            "audit --live -o json",
            "audit --live -o jsonl",
            "audit --live -n payments",
            "audit vap/replica-limit",
            "audit DIR/new.yaml --live",
            "audit --live --exit-zero",
        ],
    );
}

#[test]
fn live_eval_uses_bindings_and_params_of_the_cluster() {
    check(
        "eval",
        cluster(),
        &[
            "eval vap/replica-limit --object DIR/web.yaml",
            "eval --live --object DIR/web.yaml -o json",
            "eval DIR/new.yaml --live --object DIR/web.yaml",
            "eval vap/replica-limit --object DIR/web.yaml --verbose",
        ],
    );
}

#[test]
fn live_diff_compares_file_with_cluster() {
    check(
        "diff",
        cluster(),
        &[
            "diff vap/replica-limit DIR/new.yaml --live",
            "diff vap/replica-limit DIR/new.yaml --live -o json",
            "diff vap/missing DIR/new.yaml --live",
        ],
    );
}

#[test]
fn live_upgrade_check_compares_stored_objects() {
    check(
        "upgrade",
        cluster(),
        &[
            "upgrade-check --live",
            "upgrade-check vap/replica-limit --to 1.37 --verbose",
            "upgrade-check DIR/new.yaml --live --from 1.35 --to 1.37",
            "upgrade-check DIR/or_value.yaml --live --verbose",
            "upgrade-check vap/missing",
        ],
    );
}

#[test]
fn unreadable_bindings_are_errors() {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let config = cluster().fault(path, 403, "bindings is forbidden");
    let commands = [
        "status -o json limits",
        "check --live",
        "audit --live",
        "eval --live --object DIR/web.yaml",
    ];
    check("no_bindings", config, &commands);
}

#[test]
fn unreadable_params_are_errors() {
    let config = cluster().fault(
        "/apis/rules.example.com/*",
        403,
        "replicalimits is forbidden",
    );
    let commands = [
        "check --live",
        "audit --live",
        "eval --live --object DIR/web.yaml",
    ];
    check("no_params", config, &commands);
}

#[test]
fn unreadable_optional_kinds_are_warnings() {
    let config = cluster()
        .fault(
            "/apis/admissionregistration.k8s.io/v1/mutating*",
            403,
            "mutating is forbidden",
        )
        .fault(
            "/apis/admissionregistration.k8s.io/v1/validatingwebhook*",
            403,
            "webhook is forbidden",
        )
        .fault(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            403,
            "crd is forbidden",
        )
        .fault("/apis/coordination.k8s.io/v1/*", 403, "lease is forbidden")
        .fault("/api/v1/namespaces", 403, "namespaces is forbidden");
    let commands = [
        "status -o json",
        "status -o json map",
        "check --live",
        "audit --live",
        "eval --live --object DIR/web.yaml",
    ];
    check("no_optional_kinds", config, &commands);
}

#[test]
fn unreadable_schemas_are_errors() {
    let config = cluster().fault("/openapi/v3", 500, "no schemas");
    check(
        "no_schemas",
        config,
        &["check --live", "status -o json changed"],
    );
}

#[test]
fn unreadable_document_is_an_error() {
    let config = cluster().fault("/openapi/v3/apis/apps/v1", 500, "no schema of apps");
    check("no_document", config, &["check --live"]);
}

#[test]
fn unreadable_discovery_is_an_error() {
    let config = cluster().fault("/apis", 500, "no groups");
    check(
        "no_discovery",
        config,
        &["check --live", "audit --live", "status -o json --no-check"],
    );
}

#[test]
fn policies_that_are_not_served_are_an_error() {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let config = cluster().fault(
        path,
        404,
        "the server could not find the requested resource",
    );
    check(
        "not_served",
        config,
        &[
            "status",
            "check --live",
            "audit --live",
            "eval --live --object DIR/web.yaml",
        ],
    );
}

#[test]
fn supported_version_nearest_to_version_of_cluster_is_used() {
    for version in ["29", "31", "99"] {
        let config = Config {
            version: ("1", version),
            ..cluster()
        };
        check(&format!("version_{version}"), config, &["check --live"]);
    }
}

#[test]
fn unreadable_version_is_reported() {
    let config = cluster().fault("/version", 403, "version is forbidden");
    check("no_version", config, &["check --live"]);
}
