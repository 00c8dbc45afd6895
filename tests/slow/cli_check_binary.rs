//! Tests the program `kubectl vap check`: standard input, standard error, exit statuses, and hostile input.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, thread};

use serde_json::Value;

const SOUND: &str = "config/samples/sound.yaml";
const WRONG: &str = "config/samples/misspelt_field.yaml";
const MISSING_PARAM_KIND: &str = "config/samples/missing_param_kind.yaml";
const CRD: &str = "config/samples/late/replica_limit_crd.yaml";

fn run_with(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
        .arg("check")
        .args(arguments)
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // Ignores an error: the program may exit before it has read all of standard input.
    let writer = thread::spawn(move || {
        let _ = pipe.write_all(&bytes);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn run(arguments: &[&str]) -> Output {
    run_with(arguments, b"")
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("check-{test}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn binding_with_wrong_rule_hides_no_findings_in_another_file() {
    let folder = directory("binding-rules");
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\n\
                  spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [''], apiVersions: [v1], \
                  operations: [CREATE], resources: [pods]}\n  validations:\n  \
                  - expression: object.spec.hostNetwork == false\n";
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                   metadata: {name: a}\nspec:\n  policyName: a\n  validationActions: [Deny]\n  matchResources:\n    \
                   resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], \
                   resources: [pods]}\n";
    fs::write(folder.join("policy.yaml"), policy).unwrap();
    fs::write(folder.join("binding.yaml"), binding).unwrap();
    let output = run(&[folder.to_str().unwrap(), "-o", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let findings = findings.map(|it| (it["rule"].as_str().unwrap(), it["hidden"] == true));
    let mut findings: Vec<_> = findings.collect();
    findings.sort_unstable();
    let expected = [("absent-field", false), ("unserved-resource", false)];
    assert_eq!(findings, expected);
}

#[test]
fn exit_status_of_check_depends_on_findings_and_flags() {
    assert_eq!(code(&run(&[SOUND])), 0);
    assert_eq!(code(&run(&[WRONG])), 1);
    assert_eq!(code(&run(&[WRONG, "--exit-zero"])), 0);
    assert_eq!(code(&run(&[])), 2);
    assert_eq!(code(&run(&[SOUND, "--profile", "other"])), 2);
    let missing = run(&[SOUND, "no/such/file.yaml", "--exit-zero"]);
    assert_eq!(code(&missing), 2);
    assert!(stdout(&missing).contains("cannot read no/such/file.yaml: no such file or directory"));
}

#[test]
fn unknown_results_fail_with_strict_flag() {
    assert_eq!(code(&run(&[MISSING_PARAM_KIND])), 0);
    assert_eq!(code(&run(&[MISSING_PARAM_KIND, "--strict"])), 1);
    assert_eq!(
        code(&run(&[MISSING_PARAM_KIND, "--strict", "--crds", CRD])),
        0
    );
    assert_eq!(code(&run(&[MISSING_PARAM_KIND, "--strict", CRD])), 0);
}

#[test]
fn standard_input_is_checked_like_a_file() {
    let policy = fs::read(WRONG).unwrap();
    let output = run_with(&["-"], &policy);
    assert_eq!(code(&output), 1);
    let findings = stdout(&output);
    assert!(findings.contains("--> <stdin>:19:28"), "{findings}");
    assert!(!findings.contains('\u{1b}'), "color in a pipe: {findings}");

    let json: Value =
        serde_json::from_slice(&run_with(&["-", "-o", "json"], &policy).stdout).unwrap();
    assert_eq!(json["kind"], "CheckReport");
    assert_eq!(json["findings"][0]["line"], 19);
    assert_eq!(
        json["policies"][0]["conditions"][0]["reason"],
        "ExpressionWarnings"
    );
}

#[test]
fn empty_input_is_reported() {
    let empty = run_with(&["-"], b"");
    assert_eq!(code(&empty), 2);
    assert!(stdout(&empty).contains("error[empty-input]: standard input contains no object"));
    let comment = run_with(&["-", "-o", "json"], b"# nothing\n---\n");
    assert_eq!(code(&comment), 2);
    let report: Value = serde_json::from_slice(&comment.stdout).unwrap();
    assert_eq!(report["findings"][0]["rule"], "empty-input");
    let other = run_with(&["-"], b"{apiVersion: v1, kind: Pod, metadata: {name: a}}");
    assert_eq!(code(&other), 2);
    assert!(stdout(&other).contains("skipped: 1 v1 Pod"));
    assert!(stderr(&other).contains("no ValidatingAdmissionPolicy in the input"));
    let other = run(&["tests/support"]);
    assert_eq!(code(&other), 2);
    assert!(stderr(&other).contains("no ValidatingAdmissionPolicy in the input"));
}

/// CRDs and webhook configurations are also checked without a policy.
#[test]
fn crds_and_webhooks_are_checked_without_policies() {
    let crd = run(&["config/samples/late"]);
    assert_eq!(code(&crd), 0);
    assert!(stdout(&crd).contains("1 CustomResourceDefinition in 2 files checked"));
    assert_eq!(stderr(&crd), "");
    let webhooks = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, \
                    webhooks: [{name: a.b.c, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: \
                    'https://a.b'}}]}";
    let webhooks = run_with(&["-"], webhooks.as_bytes());
    assert_eq!(code(&webhooks), 0, "{}", stdout(&webhooks));
    assert!(stdout(&webhooks).contains("1 webhook in 1 file checked"));
    assert_eq!(stderr(&webhooks), "");
}

#[test]
fn directories_are_read_recursively_without_link_loops() {
    let root = directory("links");
    let policy = fs::read_to_string(WRONG).unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::write(root.join("a/b/policy.YML"), &policy).unwrap();
    fs::write(root.join(".git/policy.yaml"), &policy).unwrap();
    fs::write(root.join("a/values.yaml"), "replicas: 3\n").unwrap();
    fs::write(
        root.join("a/template.yaml"),
        "{{- if .Values.x }}\na: b\n{{- end }}\n",
    )
    .unwrap();
    fs::write(root.join("a/notes.txt"), "a: [\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(&root, root.join("a/up")).unwrap();
        symlink("self.yaml", root.join("a/self.yaml")).unwrap();
        symlink("b/policy.YML", root.join("a/link.yaml")).unwrap();
    }
    let output = run(&[text(&root), "-o", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files: Vec<&str> = json["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["file"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    let rules: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect();
    if cfg!(unix) {
        assert_eq!(files, ["policy.YML", "link.yaml"]);
        assert_eq!(
            rules,
            [
                "undefined-field",
                "undefined-field",
                "unreadable",
                "invalid-yaml"
            ]
        );
        let message = json["findings"][2]["message"].as_str().unwrap();
        assert!(
            message.ends_with("too many levels of symbolic links"),
            "{message}"
        );
        assert_eq!(code(&output), 2);
    } else {
        assert_eq!(files, ["policy.YML"]);
        assert_eq!(rules, ["undefined-field", "invalid-yaml"]);
    }
}

#[test]
fn binary_files_are_reported() {
    let root = directory("bytes");
    for (name, bytes, reason) in [
        ("latin1.yaml", &b"a: \xe9"[..], "is not UTF-8 (byte 3)"),
        ("utf16.yaml", &b"\xff\xfea\0:\0"[..], "is UTF-16"),
    ] {
        let path = root.join(name);
        fs::write(&path, bytes).unwrap();
        let output = run(&[text(&path)]);
        assert_eq!(code(&output), 2, "{name}");
        assert!(stdout(&output).contains(reason), "{}", stdout(&output));
    }
    let path = root.join("bom.yaml");
    let policy = fs::read_to_string(SOUND).unwrap();
    fs::write(&path, format!("\u{feff}{}", policy.replace('\n', "\r\n"))).unwrap();
    assert_eq!(code(&run(&[text(&path)])), 0);

    let path = root.join("huge.yaml");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let output = run(&[text(&path)]);
    assert_eq!(code(&output), 2);
    assert!(
        stdout(&output).contains("the size is over 64 MiB"),
        "{}",
        stdout(&output)
    );
    fs::remove_file(&path).unwrap();
}

/// Returns a policy. Its spec has the lines `spec` after the match constraints.
fn policy(spec: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: \
         {{name: hostile}}\nspec:\n  matchConstraints:\n    resourceRules:\n    - {{apiGroups: [''], \
         apiVersions: [v1], operations: [CREATE], resources: [pods]}}\n{spec}"
    )
}

#[test]
fn check_of_hostile_input_terminates() {
    let bomb = {
        let mut lines = String::from("  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..30 {
            let items = vec![format!("*a{}", n - 1); 10].join(", ");
            writeln!(lines, "  a{n}: &a{n} [{items}]").unwrap();
        }
        lines
    };
    let deep = format!(
        "  validations: {}{}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let nested = format!(
        "  validations: [{{expression: \"{}\"}}]\n",
        "(".repeat(50_000)
    );
    let mut many = String::from("  validations:\n");
    for n in 0..5_000 {
        writeln!(many, "  - expression: object.spec.field{n} == 1").unwrap();
    }
    let mut chained = String::from("  variables:\n  - {name: v0, expression: '[1]'}\n");
    for n in 1..200 {
        let before = n - 1;
        writeln!(
            chained,
            "  - {{name: v{n}, expression: '[variables.v{before}, variables.v{before}]'}}"
        )
        .unwrap();
    }
    chained.push_str("  validations: [{expression: 'true'}]\n");
    let wide = format!(
        "  validations: [{{expression: 'true', message: \"{}\"}}]\n",
        "漢".repeat(300_000)
    );
    for (name, spec, exit) in [
        ("aliases", bomb, 2),
        ("deep YAML", deep, 2),
        ("deep CEL", nested, 1),
        ("many expressions", many, 1),
        ("chained variables", chained, 0),
        ("a wide message", wide, 0),
        ("keys", format!("  {}\n", "k: 1\n  ".repeat(20_000)), 1),
    ] {
        let output = run_with(&["-"], policy(&spec).as_bytes());
        let err = stderr(&output);
        assert_eq!(code(&output), exit, "{name}: {err}");
        assert!(!err.contains("panicked"), "{name}: {err}");
        assert!(output.stdout.len() < 20_000_000, "{name}");
    }
}

#[test]
fn help_of_check_has_example_and_exit_statuses() {
    let help = stdout(&run(&["--help"]));
    assert!(
        help.contains("kustomize build . | kubectl vap check -"),
        "{help}"
    );
    assert!(help.contains("Exit status:"), "{help}");
}

/// Reads the lines of a check with `--watch` up to the message that it waits for changes.
fn next_report(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    lines
        .map(Result::unwrap)
        .take_while(|line| !line.starts_with("waiting for changes"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn watch_flag_repeats_check_after_each_change() {
    let root = directory("watch");
    let policy = root.join("policy.yaml");
    fs::copy(WRONG, &policy).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
        .args(["check", "--watch", "-o", "concise", text(&root)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut lines = std::io::BufReader::new(stdout).lines();
    let has_finding = |report: &str| report.contains("[undefined-field]");
    assert!(has_finding(&next_report(&mut lines)));
    // A change of the policy.
    fs::copy(SOUND, &policy).unwrap();
    assert!(!has_finding(&next_report(&mut lines)));
    // A new file.
    fs::copy(WRONG, root.join("second.yaml")).unwrap();
    assert!(has_finding(&next_report(&mut lines)));
    // A new configuration that is invalid at first. The error does not end the command.
    let config = root.join(".vap.yaml");
    fs::write(&config, "rules: [").unwrap();
    assert!(!has_finding(&next_report(&mut lines)));
    fs::write(&config, "rules: {undefined-field: allow}").unwrap();
    assert!(!has_finding(&next_report(&mut lines)));
    // The configuration is deleted, and then a checked file.
    fs::remove_file(&config).unwrap();
    assert!(has_finding(&next_report(&mut lines)));
    fs::remove_file(root.join("second.yaml")).unwrap();
    assert!(!has_finding(&next_report(&mut lines)));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0);
    let errors = stderr(&output);
    let errors: Vec<&str> = errors.lines().collect();
    assert!(
        errors
            .iter()
            .any(|line| line.starts_with("error: ") && line.contains(".vap.yaml")),
        "{errors:?}"
    );
}

#[test]
fn watch_flag_requires_files_and_a_human_readable_format() {
    for (arguments, message) in [
        (
            vec!["--watch", "-"],
            "--watch cannot be combined with standard input",
        ),
        (
            vec!["--watch", "vap/a"],
            "--watch checks files and cannot be combined with a cluster",
        ),
        (
            vec!["--watch", SOUND, "-o", "json"],
            "--watch is only available for the formats text and concise",
        ),
        (vec!["--watch", SOUND, "--fix"], "cannot be used with"),
    ] {
        let output = run(&arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}
