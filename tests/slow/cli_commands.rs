//! Tests `kubectl vap eval`, `audit` and `diff` with files: decisions, messages for wrong or hostile input, and exit
//! statuses.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const POLICY: &str = "docs/examples/replica-limit.yaml";

pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

#[track_caller]
pub(crate) fn vap(arguments: &[&str], stdin: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
        .args(arguments)
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Ignores an error: the command may exit before it has read its standard input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("cli_commands")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    folder
}

pub(crate) fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": "registry.example.com/web:1"}]},
            },
        },
    })
}

/// Runs `kubectl vap eval` for a sample policy, and returns the result of this policy.
#[track_caller]
fn eval(arguments: &[&str], stdin: &str, status: i32) -> Value {
    let arguments = [&["eval", POLICY, "-o", "json"], arguments].concat();
    let ran = vap(&arguments, stdin);
    assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
    ran.json()["policies"][0].clone()
}

#[test]
fn eval_shows_deciding_expression() {
    let denied = eval(&["--object", "-"], &deployment("web", 51).to_string(), 1);
    assert_eq!(denied["verdict"], "Denied");
    assert_eq!(denied["why"], "at most 50 replicas, not 51");
    assert_eq!(denied["reason"], "Invalid");
    assert_eq!(denied["code"], 422);
    assert_eq!(denied["isBindingImplied"], false);
    assert_eq!(
        denied["bindings"][0]["validationActions"],
        json!(["Deny", "Audit"])
    );
    let evaluation = &denied["evaluations"][0];
    let results = |of: &str| -> Vec<String> {
        let all = evaluation[of].as_array().unwrap().iter();
        all.map(|it| it["result"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(results("matchConditions"), ["true"]);
    assert_eq!(results("validations"), ["false", "true"]);
    let annotations = denied["auditAnnotations"].as_object().unwrap();
    assert!(annotations.contains_key("validation.policy.admission.k8s.io/validation_failure"));
    let traces = denied["trace"].as_array().unwrap();
    let deciding: Vec<&Value> = traces.iter().filter(|it| it["decides"] == true).collect();
    assert_eq!(deciding.len(), 1, "{traces:?}");
    assert_eq!(deciding[0]["fieldRef"], "spec.validations[0].expression");
    assert_eq!(deciding[0]["line"], 16);
    let parts = deciding[0]["subexpressions"].as_array().unwrap();
    assert!(
        parts
            .iter()
            .any(|part| part["text"] == "object.spec.replicas" && part["values"][0] == "51")
    );

    let allowed = eval(&["--object", "-"], &deployment("web", 50).to_string(), 0);
    assert_eq!(allowed["verdict"], "Allowed");
}

/// Policies are evaluated for the object after the API server's defaults are set.
#[test]
fn eval_sets_defaults() {
    let mut object = deployment("web", 1);
    object["spec"].as_object_mut().unwrap().remove("replicas");
    let allowed = eval(&["--object", "-"], &object.to_string(), 0);
    let traces = allowed["trace"].as_array().unwrap();
    let values = traces
        .iter()
        .flat_map(|it| it["subexpressions"].as_array().unwrap());
    let mut of_replicas = values.filter(|part| part["text"] == "object.spec.replicas");
    assert_eq!(of_replicas.next().unwrap()["values"], json!(["1"]));
    let mut object = deployment("web", 1);
    object["spec"]["replica"] = json!(3);
    let unknown = eval(&["--object", "-"], &object.to_string(), 2);
    assert_eq!(unknown["verdict"], "Unknown");
    assert!(
        unknown["why"].as_str().unwrap().contains("replica"),
        "{unknown}"
    );
}

#[test]
fn eval_explains_unmatched_policies() {
    let object = deployment("web", 51).to_string();
    let check = |arguments: &[&str], stdin: &str, verdict: &str, why: &str| {
        let findings = eval(arguments, stdin, 0);
        assert_eq!(
            (findings["verdict"].as_str(), findings["why"].as_str()),
            (Some(verdict), Some(why))
        );
    };
    check(
        &[
            "--object",
            "-",
            "--request-user",
            "ann",
            "--request-group",
            "operators",
        ],
        &object,
        "Excluded",
        "the match condition `not-of-operators` is false",
    );
    check(
        &["--old-object", "-"],
        &object,
        "NotMatched",
        "no rule for the resource has the operation",
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    check(
        &["--object", "-"],
        &map.to_string(),
        "NotMatched",
        "no rule matches the resource",
    );
}

#[test]
fn eval_accepts_admission_review() {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "UPDATE", "name": "web", "namespace": "shop",
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "userInfo": {"username": "ann", "groups": ["operators"]},
        "object": deployment("web", 60), "oldObject": deployment("web", 2), "options": null,
    }});
    let findings = eval(&["--request", "-"], &review.to_string(), 0);
    assert_eq!(findings["verdict"], "Excluded");
    let findings = eval(
        &["--request", "-", "--request-user", "ann"],
        &review.to_string(),
        1,
    );
    assert_eq!(findings["verdict"], "Denied");
}

#[test]
fn invalid_request_of_eval_is_usage_error() {
    let check = |arguments: &[&str], stdin: &str, part: &str| {
        let arguments = [&["eval", POLICY], arguments].concat();
        let ran = vap(&arguments, stdin);
        assert_eq!(ran.status, 2, "{}", ran.out);
        assert!(ran.err.contains(part), "{}", ran.err);
    };
    let two = format!("{}\n---\n{}\n", deployment("a", 1), deployment("b", 1));
    check(&["--object", "-"], &two, "several objects");
    check(&["--object", "-"], "", "is empty");
    check(&["--object", "-"], "[1]", "does not contain an object");
    check(&["--object", "-"], "a: [", "line");
    check(&["--object", "no/such.yaml"], "", "no such file");
    check(&["--object", "docs"], "", "is a directory");
    check(&["--request", "-"], "{\"kind\": \"Pod\"}", "use --object");
    check(
        &["--request", "-"],
        "{\"kind\": \"AdmissionReview\"}",
        "without a `request`",
    );
    check(
        &[],
        "",
        "no request: name the file of an object with --object",
    );
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    let deep = format!("{{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {deep}}}");
    check(&["--object", "-"], &deep, "deep");
}

#[track_caller]
fn audit(arguments: &[&str], stdin: &str, status: i32) -> Value {
    let ran = vap(
        &[&["audit", POLICY, "-o", "json"], arguments].concat(),
        stdin,
    );
    assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
    ran.json()
}

#[test]
fn objects_are_counted_and_listed_by_audit() {
    let report = audit(&["-f", "docs/examples/manifests.yaml"], "", 1);
    let summary = &report["summary"];
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(
        [
            "objects",
            "matched",
            "evaluations",
            "violating",
            "denied",
            "failing",
            "unread"
        ]
        .map(count),
        [4, 3, 3, 2, 2, 0, 0]
    );
    let objects = report["objects"].as_array().unwrap();
    let named: Vec<_> = objects
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("web", 1), ("cache", 35)]);
    let violation = &objects[0]["results"][0]["violations"][0];
    assert_eq!(violation["message"], "at most 50 replicas, not 60");
    assert_eq!(violation["fieldRef"], "spec.validations[0].expression");
    assert_eq!(violation["binding"], "replica-limit");
    let policy = &report["policies"][0];
    let assumed: Vec<_> = policy["assumed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["input"].as_str().unwrap())
        .collect();
    assert_eq!(assumed, ["request.userInfo"]);
    let fields: Vec<_> = policy["validations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["objects"].as_u64().unwrap())
        .collect();
    assert_eq!(fields, [1, 1]);

    assert_eq!(
        vap(
            &[
                "audit",
                POLICY,
                "-f",
                "docs/examples/manifests.yaml",
                "--exit-zero"
            ],
            ""
        )
        .status,
        0
    );
    let excluded = audit(
        &[
            "-f",
            "docs/examples/manifests.yaml",
            "--request-user",
            "ann",
            "--request-group",
            "operators",
        ],
        "",
        0,
    );
    assert_eq!(excluded["policies"][0]["excluded"], 3);
}

#[test]
fn unknown_operation_is_a_usage_error() {
    let arguments = ["eval", POLICY, "--object", "-", "--operation", "REMOVE"];
    let ran = vap(&arguments, &deployment("web", 6).to_string());
    assert_eq!(ran.status, 2, "{}", ran.out);
    let message = "unknown operation `REMOVE`: use CREATE, UPDATE, DELETE or CONNECT";
    assert!(ran.err.contains(message), "{}", ran.err);
}

#[test]
fn location_of_a_finding_is_followed_by_kind_of_object() {
    let expression = "object.spec.replica == 1";
    let arguments = ["eval", "--object", "-", "--expression", expression];
    let ran = vap(&arguments, &deployment("web", 6).to_string());
    let location = "--expression:1:12, on apps/v1 Deployment";
    assert!(ran.out.contains(location), "{}", ran.out);
}

#[test]
fn audit_shows_distinct_messages() {
    let audit = |name: &str, replicas: &[i64]| {
        let objects: Vec<Value> = replicas
            .iter()
            .enumerate()
            .map(|(n, replicas)| deployment(&format!("web-{n}"), *replicas))
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let folder = directory(name, &[("objects.json", &list)]);
        let objects = folder.join("objects.json");
        let policy = "docs/examples/replica-limit.yaml";
        let arguments = ["audit", policy, "-f", objects.to_str().unwrap()];
        (
            vap(&arguments, "").out,
            vap(&[&arguments[..], &["-o", "json"]].concat(), "").json(),
        )
    };
    let (out, report) = audit("audit-messages", &[60, 61, 60, 60]);
    let first = out.find("at most 50 replicas, not 60\n");
    assert!(first < out.find("at most 50 replicas, not 61\n"), "{out}");
    for line in [
        "violated by 4 objects (Audit, Deny):\n",
        ", and 2 more objects with this message\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let tally = &report["policies"][0]["validations"][0];
    assert_eq!(tally["message"], "at most 50 replicas, not 60");
    let objects = |n: usize| &tally["messages"][n]["objects"];
    assert_eq!((objects(0), objects(1)), (&3.into(), &1.into()), "{tally}");
    let (out, _) = audit("audit-message", &[60, 60]);
    let line = "violated by 2 objects (Audit, Deny): at most 50 replicas, not 60\n";
    assert!(out.contains(line), "{out}");
    let (out, report) = audit("audit-many-messages", &[60, 61, 62, 63, 64, 65, 66, 60, 65]);
    assert!(
        out.contains("    and 3 objects with other messages"),
        "{out}"
    );
    assert_eq!(
        report["policies"][0]["validations"][0]["otherMessages"], 3,
        "{report}"
    );
}

#[test]
fn audit_without_objects_fails() {
    let policy = fs::read_to_string("docs/examples/replica-limit.yaml").unwrap();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
    let object = deployment("web", 3).to_string();
    let service = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}"#;
    for (name, more, status) in [
        ("policies", "", 2),
        ("namespace", namespace, 2),
        ("unmatched", service, 0),
        ("matched", &object, 0),
    ] {
        let files = [("policy.yaml", policy.as_str()), ("more.yaml", more)];
        let folder = directory(&format!("audit-of-{name}"), &files);
        let ran = vap(&["audit", folder.to_str().unwrap()], "");
        assert_eq!(ran.status, status, "{name}: {}{}", ran.out, ran.err);
        let reason = "nothing was evaluated: the files contain no objects to audit";
        assert_eq!(ran.out.contains(reason), status == 2, "{name}: {}", ran.out);
        let path = folder.to_str().unwrap();
        let ran = vap(&["audit", path, "-o", "openreports"], "");
        assert_eq!(ran.err.contains(reason), status == 2, "{name}: {}", ran.err);
        assert_eq!(ran.status, status, "{name}");
    }
}

#[test]
fn policies_that_do_not_match_the_audit_operation_are_not_audited() {
    let text = fs::read_to_string(POLICY).unwrap();
    let object = deployment("web", 60).to_string();
    let audit = |name: &str, from: &str, to: &str, flags: &[&str]| {
        let folder = directory(name, &[("policy.yaml", &text.replace(from, to))]);
        let policy = folder.join("policy.yaml");
        let arguments = ["audit", policy.to_str().unwrap(), "-f", "-"];
        vap(&[&arguments[..], flags].concat(), &object)
    };
    let operations = "[CREATE, UPDATE]";
    let ran = audit("audit-delete", operations, "[DELETE]", &[]);
    assert_eq!(ran.status, 2, "{}", ran.out);
    let reason = "not audited: the rules match only DELETE; `--operation DELETE` evaluates such requests for the objects";
    assert!(ran.out.contains(reason), "{}", ran.out);
    assert!(ran.out.contains("nothing was evaluated"), "{}", ran.out);
    let ran = audit(
        "audit-deletions",
        operations,
        "[DELETE]",
        &["--operation", "delete"],
    );
    assert!(ran.out.contains("1 object matched"), "{}", ran.out);
    let ran = audit(
        "audit-subresources",
        "resources: [deployments]",
        "resources: [deployments/scale]",
        &["-o", "json"],
    );
    assert_eq!(
        ran.json()["policies"][0]["notAudited"],
        "the rules match only subresources, which are not stored"
    );
}

#[test]
fn audit_json_lines_end_with_summary() {
    let ran = vap(
        &[
            "audit",
            POLICY,
            "-f",
            "docs/examples/manifests.yaml",
            "-o",
            "jsonl",
        ],
        "",
    );
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1]["name"], "cache");
    assert_eq!(lines[2]["kind"], "AuditReport");
    assert_eq!(lines[2]["summary"]["violating"], 2);
}

/// For the same object, `audit` and `eval` must have the same result.
#[test]
fn audit_has_same_result_as_eval() {
    for replicas in [1, 50, 51] {
        let object = deployment("web", replicas).to_string();
        let denied =
            eval(&["--object", "-"], &object, i32::from(replicas > 50))["verdict"] == "Denied";
        let audited = audit(&["-f", "-"], &object, i32::from(replicas > 50));
        assert_eq!(
            audited["summary"]["denied"].as_u64(),
            Some(u64::from(denied)),
            "{replicas}"
        );
    }
}

#[test]
fn audit_expands_lists() {
    let (a, b) = (deployment("a", 51), deployment("b", 1));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [a, b]});
    let nested = json!({"apiVersion": "v1", "kind": "List", "items": [list]});
    let mut bare = deployment("a", 51);
    for field in ["apiVersion", "kind"] {
        bare.as_object_mut().unwrap().remove(field);
    }
    // The API server's lists contain items without apiVersion and kind.
    let typed = json!({"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {}, "items": [bare, b]});
    let lines = format!("{a}\n{b}\n");
    let yaml = format!("apiVersion: v1\nkind: List\nitems:\n- {a}\n- {b}\n");
    for text in [
        list.to_string(),
        nested.to_string(),
        typed.to_string(),
        lines,
        yaml,
    ] {
        let report = audit(&["-f", "-"], &text, 1);
        let counts = ["objects", "violating", "unread"]
            .map(|name| report["summary"][name].as_u64().unwrap());
        assert_eq!(counts, [2, 1, 0], "{text}");
    }
}

/// An object that cannot be decoded is part of the report, and does not affect other objects.
#[test]
fn audit_shows_undecodable_objects() {
    let deep = format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000));
    let deep = format!(
        "{{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {{\"name\": \"deep\"}}, \"spec\": {deep}}}"
    );
    let items = [
        deployment("good", 51).to_string(),
        "null".to_owned(),
        "7".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "{\"apiVersion\": null, \"kind\": null, \"metadata\": null}".to_owned(),
        "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\"}".to_owned(),
        "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {\"name\": null}, \"spec\": null}".to_owned(),
        deep,
    ];
    let list = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}]}}",
        items.join(",")
    );
    let report = audit(&["-f", "-"], &list, 2);
    assert_eq!(report["summary"]["objects"], 9, "{report}");
    assert_eq!(report["summary"]["violating"], 1);
    // The evaluation fails for the Deployment without a spec.
    let count = |name: &str| report["summary"][name].as_u64().unwrap();
    assert!(count("unread") >= 7, "{report}");
    assert_eq!(count("unread") + count("failing") + count("violating"), 9);
    let unread = report["unread"].as_array().unwrap();
    assert!(
        unread
            .iter()
            .all(|it| !it["reason"].as_str().unwrap().is_empty())
    );

    let folder = directory(
        "hostile",
        &[
            ("a.yaml", "a: ["),
            ("b.yaml", "just: text\n"),
            ("c.yaml", &deployment("c", 51).to_string()),
            ("d.json", "{\"apiVersion\": \"v1\""),
        ],
    );
    let report = audit(&["-f", folder.to_str().unwrap()], "", 2);
    assert_eq!(report["summary"]["violating"], 1);
    let files: Vec<_> = report["unread"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["file"].as_str().unwrap())
        .collect();
    let name = |file: &str| files.iter().any(|it| it.ends_with(file));
    assert!(
        name("a.yaml") && name("d.json") && !name("b.yaml"),
        "{files:?}"
    );
    let missing = audit(&["-f", "no/such/folder"], "", 2);
    assert_eq!(missing["summary"]["unread"], 1);
}

/// Auditing a large file takes little more memory than the size of the file.
#[test]
fn audit_memory_is_bounded() {
    let items: Vec<String> = (0..600)
        .map(|n| deployment(&format!("app-{n}"), n % 60).to_string())
        .collect();
    let list = format!(
        "{{\"apiVersion\": \"v1\", \"items\": [{}], \"kind\": \"List\"}}",
        items.join(",")
    );
    let report = audit(&["-f", "-"], &list, 1);
    assert_eq!(report["summary"]["objects"], 600);
    assert_eq!(report["summary"]["violating"], 90);
    assert_eq!(report["objects"].as_array().unwrap().len(), 90);
    let examples = report["policies"][0]["validations"][0]["examples"]
        .as_array()
        .unwrap();
    assert_eq!(examples.len(), 5);
}

#[test]
fn object_of_unknown_kind_is_counted_only_if_a_rule_may_match() {
    let widget = |group: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "a"}});
    let folder = directory("widgets", &[("policy.yaml", "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: widgets}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [a.example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  validations: [{expression: object.metadata.name != 'a'}]
")]);
    let policy = folder.join("policy.yaml");
    let run = |group: &str| {
        vap(
            &["audit", policy.to_str().unwrap(), "-f", "-", "-o", "json"],
            &widget(group).to_string(),
        )
    };
    let unknown = run("a.example.com");
    assert_eq!(unknown.status, 2, "{}", unknown.out);
    assert!(
        unknown
            .out
            .contains("its CustomResourceDefinition is missing"),
        "{}",
        unknown.out
    );
    let other = run("b.example.com");
    assert_eq!(other.status, 0, "{}", other.out);
}

#[test]
fn rejected_policy_is_not_evaluated() {
    let text = fs::read_to_string(POLICY)
        .unwrap()
        .replace("replicas <= 50", "replicas <=");
    let folder = directory("refused", &[("policy.yaml", &text)]);
    let policy = folder.join("policy.yaml");
    let policy = policy.to_str().unwrap();
    let object = deployment("web", 51).to_string();
    let ran = vap(&["eval", policy, "--object", "-", "-o", "json"], &object);
    assert_eq!(ran.status, 2);
    assert_eq!(ran.json()["policies"][0]["verdict"], "Refused");
    let ran = vap(&["audit", policy, "-f", "-", "-o", "json"], &object);
    assert_eq!(ran.status, 2);
    assert_eq!(ran.json()["summary"]["evaluations"], 0);
    let ran = vap(&["diff", POLICY, policy, "-f", "-"], &object);
    assert_eq!(ran.status, 2, "{}", ran.out);
}

#[track_caller]
fn diff(new: &str, status: i32) -> Value {
    let folder = directory(&format!("diff-{}", new.len()), &[("new.yaml", new)]);
    let new = folder.join("new.yaml");
    let objects = "docs/examples/manifests.yaml";
    let ran = vap(
        &[
            "diff",
            POLICY,
            new.to_str().unwrap(),
            "-f",
            objects,
            "-o",
            "json",
        ],
        "",
    );
    assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
    ran.json()
}

#[test]
fn changes_in_diff_are_grouped_by_cause() {
    let text = fs::read_to_string(POLICY).unwrap();
    let same = diff(&text, 0);
    assert_eq!(same["summary"]["objects"], 4);
    assert!(same["groups"].as_array().unwrap().is_empty());

    let groups = |new: &str| -> Vec<(String, String, u64, u64, u64)> {
        let report = diff(new, 1);
        let groups = report["groups"].as_array().unwrap().iter();
        groups
            .map(|group| {
                let text =
                    |name: &str| group["cause"][name].as_str().unwrap_or_default().to_owned();
                let count = |name: &str| group[name].as_u64().unwrap();
                (
                    text("kind"),
                    text("newField"),
                    count("denied"),
                    count("allowed"),
                    count("same"),
                )
            })
            .collect()
    };
    let group = |kind: &str, field: &str, denied, allowed, same| {
        (kind.to_owned(), field.to_owned(), denied, allowed, same)
    };
    let first = "spec.validations[0].expression";
    // Both versions of the policy deny the object, but with different messages.
    let stricter = fs::read_to_string("docs/examples/replica-limit-new.yaml").unwrap();
    assert_eq!(
        groups(&stricter),
        [
            group("Validation", first, 1, 0, 0),
            group("Message", first, 0, 0, 1)
        ]
    );
    assert_eq!(
        groups(&text.replace("<= 50", "<= 99")),
        [group("Validation", first, 0, 1, 0)]
    );
    let out_of_order = text.replace(
        "  validations:\n",
        "  validations:\n  - expression: object.metadata.name != 'cart'\n",
    );
    assert_eq!(
        groups(&out_of_order),
        [group("ValidationAdded", first, 1, 0, 0)]
    );
    assert_eq!(
        groups(&text.replace("[Deny, Audit]", "[Audit]")),
        [group("Actions", "", 0, 2, 0)]
    );
    assert_eq!(
        groups(&text.replace("resources: [deployments]", "resources: [daemonsets]")),
        [
            group("Constraints", "", 0, 2, 0),
            // A generated DaemonSet.
            group("Constraints", "", 1, 0, 0)
        ]
    );
    assert_eq!(
        groups(&text.replace("!('operators' in request.userInfo.groups)", "'x' == 'y'")),
        [group("MatchCondition", "", 0, 2, 0)]
    );
    let gone = text
        .replace("name: replica-limit", "name: another")
        .replace("policyName: replica-limit", "policyName: another");
    assert_eq!(
        groups(&gone),
        [group("Policy", "", 2, 0, 0), group("Policy", "", 0, 2, 0)]
    );
}

#[test]
fn diff_without_requests_is_usage_error() {
    let ran = vap(&["diff", POLICY, POLICY], "");
    assert_eq!(ran.status, 2);
    assert!(ran.out.contains("no requests to evaluate"), "{}", ran.out);
    let ran = vap(&["diff", "-", POLICY], "");
    assert_eq!(ran.status, 2);
    let probes = [
        "diff",
        "config/samples/sound.yaml",
        "config/samples/sound.yaml",
        "--with",
        "config/samples/sound_probe.yaml",
    ];
    let ran = vap(&probes, "");
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("4 cases"), "{}", ran.out);
}

/// GitHub shows at most ten annotations per step. So the tenth annotation contains the number of omitted errors. The
/// log contains all errors.
#[test]
fn failed_cases_stay_within_annotation_limit_of_github() {
    let cases: Vec<Value> = (0..15)
        .map(|n| json!({"name": format!("case {n}"), "request": {"object": deployment("a", 99)}, "expect": {"decision": "Allow"}}))
        .collect();
    let probe = json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "many"},
        "spec": {"policyName": "replica-limit", "cases": cases},
    });
    let ran = vap(&["test", POLICY, "-", "-o", "github"], &probe.to_string());
    assert_eq!(ran.status, 1);
    let commands: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.starts_with("::"))
        .collect();
    assert_eq!(commands.len(), 10, "{}", ran.out);
    assert!(
        commands[9].contains("6 more errors, which GitHub does not show"),
        "{}",
        commands[9]
    );
    let in_log = ran.out.lines().filter(|line| line.starts_with("  <stdin>"));
    assert_eq!(in_log.count(), 6, "{}", ran.out);
}
