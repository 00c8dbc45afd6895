//! Tests how users manage the findings of `kubectl vap check`: severity levels, comments, configuration files and
//! baselines.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::golden::PLAIN;
use clap::Parser as _;
use serde_json::Value;
use vap_status_controller::cli::args::Args;
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::run;

/// A policy with one warning, `undefined-field` in line 10.
const WRONG: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - message: too many
    expression: object.spec.replica <= 50
";

/// Runs `check`. Returns standard output, standard error and the exit status.
pub(crate) fn vap(args: &[&str]) -> (String, String, Exit) {
    command(&[&["check"], args].concat())
}

/// Runs a command of the plugin. Returns standard output, standard error and the exit status.
pub(crate) fn command(args: &[&str]) -> (String, String, Exit) {
    let parsed = Args::try_parse_from([&["kubectl-vap"], args].concat());
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return (String::new(), error.to_string(), Exit::Failed),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(&parsed, PLAIN, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(err), exit)
}

pub(crate) fn directory(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("management-{test}"));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join(".git")).unwrap();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// Runs `check` for `path`. Returns the JSON report and the exit status.
pub(crate) fn json(path: &Path, args: &[&str]) -> (Value, Exit) {
    let (out, err, exit) = vap(&[&[path.to_str().unwrap(), "-o", "json"], args].concat());
    let report = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}{out}"));
    (report, exit)
}

/// Returns the findings of a report, in the form `severity rule line`.
fn findings(report: &Value) -> Vec<String> {
    let actual = report["findings"].as_array().unwrap().iter();
    actual
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap();
            format!("{} {} {}", text("severity"), text("rule"), finding["line"])
        })
        .collect()
}

/// Returns the kind of suppression and the rule of each suppressed finding.
fn suppressed(report: &Value) -> Vec<String> {
    let findings = report["suppressed"].as_array().unwrap().iter();
    findings
        .map(|of| {
            let rule = of["finding"]["rule"].as_str().unwrap();
            format!("{} {rule}", of["by"].as_str().unwrap())
        })
        .collect()
}

/// A policy with a failed case has no passed case. The name of a case does not change if lines are moved.
#[test]
fn junit_has_a_case_for_each_finding_and_each_policy_without_findings() {
    let clean = WRONG
        .replace("replica <", "replicas <")
        .replace("name: p", "name: q");
    let twice = WRONG.replace(
        "object.spec.replica <= 50",
        "object.spec.replica <= 50 && object.spec.replica > 1",
    );
    let cases = |text: &str| -> Vec<String> {
        let root = directory("junit", &[("p.yaml", text)]);
        let (out, _, _) = vap(&[root.to_str().unwrap(), "-o", "junit"]);
        let cases = out.lines().filter_map(|line| {
            let rest = line.trim().strip_prefix("<testcase classname=")?;
            Some(rest.split(" file=").next()?.to_owned())
        });
        cases.collect()
    };
    let field = "undefined-field: spec.validations[0].expression";
    let failed = format!("\"policy.p\" name=\"{field}\"");
    let passed = "\"policy.q\" name=\"no errors or warnings\"".to_owned();
    let both = format!("{WRONG}---\n{clean}");
    assert_eq!(cases(&both), [failed.clone(), passed.clone()]);
    assert_eq!(cases(&format!("\n\n{both}")), [failed, passed.clone()]);
    assert_eq!(cases(&clean), [passed]);
    let names: Vec<String> = cases(&twice);
    assert!(
        names.iter().all(|name| name.contains("policy.p")),
        "{names:?}"
    );
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
}

#[test]
fn merged_findings_have_the_help_of_each_location() {
    let label = |name: &str| format!("object.metadata.labels['{name}'] == 'x'");
    let text = WRONG.replace(
        "object.spec.replica <= 50",
        &format!("{}\n  - expression: {}", label("a"), label("b")),
    );
    let root = directory("remedies", &[("p.yaml", &text)]);
    let help = |name: &str| format!("write `has(object.metadata.labels) && '{name}' in ");
    let (out, _, _) = vap(&[root.to_str().unwrap()]);
    for line in [
        format!("= help: {}", help("a")),
        format!("= help for line 11: {}", help("b")),
    ] {
        assert!(out.contains(&line), "{line}: {out}");
    }
    let (github, _, _) = vap(&[root.to_str().unwrap(), "-o", "github"]);
    assert!(
        github.contains(&format!("; in line 11: {}", help("b"))),
        "{github}"
    );
    let (report, _) = json(&root, &[]);
    let findings = report["findings"].as_array().unwrap();
    let merged = findings.iter().find(|finding| finding["also"].is_array());
    let other = &merged.unwrap()["also"][0];
    assert!(
        other["help"].as_str().unwrap().starts_with(&help("b")),
        "{report:#}"
    );
}

#[test]
fn level_flags_change_severity_and_exit_status() {
    let root = directory("levels", &[("p.yaml", WRONG)]);
    let check = |args: &[&str]| {
        let (report, exit) = json(&root, args);
        (findings(&report), suppressed(&report), exit)
    };
    let expected = |severity: &str| vec![format!("{severity} undefined-field 10")];
    let none = Vec::<String>::new();
    assert_eq!(
        check(&[]),
        (expected("warning"), none.clone(), Exit::Findings)
    );
    let raised = check(&["--error", "undefined-field"]);
    assert_eq!(raised, (expected("error"), none.clone(), Exit::Findings));
    let lowered = check(&["--note", "undefined-field"]);
    assert_eq!(lowered, (expected("note"), none.clone(), Exit::Clean));
    let hidden = (
        none.clone(),
        vec!["level undefined-field".to_owned()],
        Exit::Clean,
    );
    assert_eq!(check(&["--allow", "absent-key,undefined-field"]), hidden);
    assert_eq!(check(&["--allow", "all"]), hidden);
    let but_one = check(&["--allow", "all", "--warn", "undefined-field"]);
    assert_eq!(but_one, (expected("warning"), none, Exit::Findings));

    let (out, _, _) = vap(&[root.to_str().unwrap(), "--allow", "all"]);
    assert_eq!(
        out,
        "1 policy in 1 file checked for Kubernetes 1.37: no findings (1 suppressed: 1 by the level of the rule)\n"
    );
}

#[test]
fn levels_do_not_apply_to_rejected_or_unreadable_input() {
    let refused = WRONG.replace("  validations", "  failurePolicy: Never\n  validations");
    let root = directory(
        "refused",
        &[
            ("p.yaml", &refused),
            ("q.yaml", "kind: ValidatingAdmissionPolicy\na: [\n"),
        ],
    );
    for level in ["--allow", "--note", "--warn"] {
        let (report, exit) = json(&root, &[level, "all", level, "invalid-value"]);
        let actual = findings(&report);
        assert!(
            actual.contains(&"error invalid-value 8".to_owned()),
            "{actual:?}"
        );
        assert!(
            actual.contains(&"error invalid-yaml 2".to_owned()),
            "{actual:?}"
        );
        assert_eq!(exit, Exit::Failed);
    }
    let (report, exit) = json(&root.join("none.yaml"), &["--allow", "all"]);
    assert_eq!(
        (findings(&report), exit),
        (vec!["error unreadable null".to_owned()], Exit::Failed)
    );
}

#[test]
fn invalid_levels_are_usage_errors() {
    for (args, wanted) in [
        (
            ["--allow", "undefined-feild", "--note", "all"],
            "error: no rule `undefined-feild`; did you mean `undefined-field`? `kubectl vap explain` lists all\n",
        ),
        (
            ["--allow", "undefined-field", "--warn", "undefined-field"],
            "error: `undefined-field` has two levels, warn and allow; remove one of them\n",
        ),
    ] {
        let (out, err, exit) = vap(&[&["config/samples"], &args[..]].concat());
        assert_eq!(
            (out.as_str(), err.as_str(), exit),
            ("", wanted, Exit::Failed)
        );
    }
}

/// Checks a manifest with the flags `args`. Returns the findings and the suppressed findings.
#[track_caller]
fn check_text(test: &str, text: &str, args: &[&str]) -> (Vec<String>, Vec<String>) {
    let root = directory(test, &[("p.yaml", text)]);
    let (report, _) = json(&root.join("p.yaml"), args);
    (findings(&report), suppressed(&report))
}

#[test]
fn comment_suppresses_finding_of_its_line_or_the_next() {
    const ALLOW: &str = "# vap: allow undefined-field, a webhook adds it";
    let expression = "    expression: object.spec.replica <= 50\n";
    let allowed = (
        Vec::<String>::new(),
        vec!["comment undefined-field".to_owned()],
    );
    for (n, text) in [
        WRONG.replace(expression, &format!("    {ALLOW}\n{expression}")),
        WRONG.replace("<= 50", &format!("<= 50 {ALLOW}")),
        WRONG.replace("  - message", &format!("  {ALLOW}\n  - message")),
        WRONG.replace("  validations:", &format!("  {ALLOW}\n  validations:")),
        WRONG.replace("validations:", &format!("validations: {ALLOW}")),
        format!("{ALLOW}\n{WRONG}"),
        format!("{ALLOW}\n---\n{WRONG}"),
        WRONG.replace(
            "object.spec.replica",
            &format!(">- {ALLOW}\n      object.metadata.name != ''\n      && object.spec.replica"),
        ),
        WRONG
            .replace(
                "object.spec.replica",
                "|\n      object.metadata.name != ''\n      && object.spec.replica",
            )
            .replace("  - message", &format!("  {ALLOW}\n  - message")),
        WRONG.replace(
            "<= 50",
            &format!("<= 50\n      && object.metadata.name != '' {ALLOW}"),
        ),
        WRONG
            .replace('\n', "\r\n")
            .replace("<= 50", &format!("<= 50 {ALLOW}")),
        format!(
            "\u{feff}{}",
            WRONG.replace("<= 50", &format!("<= 50 {ALLOW}"))
        ),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(
            check_text(&format!("comment-{n}"), &text, &[]),
            allowed,
            "{text}"
        );
        // The comment counts as used, even if the flag also hides the finding.
        let (found, _) = check_text(
            &format!("comment-{n}"),
            &text,
            &["--allow", "undefined-field"],
        );
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn unused_comments_are_reported() {
    let warning = |rule: &str, line: usize| format!("warning {rule} {line}");
    let wrong = |line| warning("undefined-field", line);
    for (n, (comment, wanted)) in [
        (
            "# vap: allow absent-key, why",
            vec![warning("unused-suppression", 10), wrong(11)],
        ),
        (
            "# vap: allow undefined-field",
            vec![warning("invalid-suppression", 10), wrong(11)],
        ),
        (
            "# vap: allow undefined-feild, why",
            vec![warning("invalid-suppression", 10), wrong(11)],
        ),
        (
            "# vap: ignore undefined-field, why",
            vec![warning("invalid-suppression", 10), wrong(11)],
        ),
        ("# allow undefined-field, why", vec![wrong(11)]),
        ("# vap: the limit", vec![wrong(11)]),
        (
            "# vap: allow undefined-field, why\n    # vap: allow absent-key, why",
            vec![warning("unused-suppression", 11)],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let text = WRONG.replace("    expression", &format!("    {comment}\n    expression"));
        let (found, _) = check_text(&format!("unused-{n}"), &text, &[]);
        assert_eq!(found, wanted, "{comment}");
    }
    // A `#` within a scalar starts no comment. It suppresses no finding, and is not reported as an unused comment.
    for expression in [
        "'# vap: allow undefined-field, a' != object.spec.replica",
        "|\n      // vap: allow undefined-field, a\n      object.spec.replica == 1\n      # vap: allow absent-key, a",
    ] {
        let text = WRONG.replace(
            "object.spec.replica <= 50",
            &serde_json::to_string(expression).unwrap(),
        );
        let text = if expression.starts_with('|') {
            WRONG.replace("object.spec.replica <= 50", expression)
        } else {
            text
        };
        let (found, suppressed) = check_text("text", &text, &[]);
        assert!(
            found.iter().all(|finding| !finding.contains("suppression")),
            "{found:?}"
        );
        assert!(suppressed.is_empty() && !found.is_empty());
    }
}

#[test]
fn comment_does_not_suppress_rejection() {
    let text = WRONG.replace(
        "  validations:",
        "  # vap: allow invalid-value, why\n  failurePolicy: Never\n  validations:",
    );
    let (found, _) = check_text("refused-comment", &text, &["--note", "unused-suppression"]);
    let wanted = [
        "note unused-suppression 8",
        "error invalid-value 9",
        "warning undefined-field 12",
    ];
    assert_eq!(found, wanted);
}

#[test]
fn comments_beyond_limit_are_ignored() {
    let comments = "# vap: allow undefined-field, again\n".repeat(50_000);
    let (found, suppressed) = check_text("flood", &format!("{WRONG}{comments}"), &[]);
    let n = |rule: &str| {
        found
            .iter()
            .filter(|finding| finding.contains(rule))
            .count()
    };
    assert_eq!(
        (n("unused-suppression"), n("invalid-suppression")),
        (1_000, 1)
    );
    assert!(suppressed.is_empty());
    let (found, suppressed) = check_text("flood-above", &format!("{comments}{WRONG}"), &[]);
    assert_eq!(found, ["warning invalid-suppression 1001"]);
    assert_eq!(suppressed, ["comment undefined-field"]);
}

#[test]
fn suppressed_findings_are_counted_and_listed() {
    let text = WRONG.replace(
        "<= 50",
        "<= 50 # vap: allow undefined-field, a webhook adds it",
    );
    let root = directory("told", &[("p.yaml", &text)]);
    let path = root.join("p.yaml");
    let path = path.to_str().unwrap();
    let (out, _, exit) = vap(&[path]);
    assert_eq!(
        (out.as_str(), exit),
        (
            "1 policy in 1 file checked for Kubernetes 1.37: no findings (1 suppressed: 1 by comments)\n",
            Exit::Clean
        )
    );
    let (out, _, _) = vap(&[path, "-o", "sarif"]);
    let sarif: Value = serde_json::from_str(&out).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["suppressions"][0]["kind"], "inSource");
    assert_eq!(
        result["suppressions"][0]["justification"],
        "a webhook adds it"
    );
    let (out, _, _) = vap(&[path, "-o", "github"]);
    assert_eq!(out, "");
    let (report, _) = json(&root, &[]);
    assert_eq!(report["suppressed"][0]["reason"], "a webhook adds it");
    assert_eq!(report["summary"]["suppressed"], 1);
}

#[test]
fn configuration_is_found_in_parent_directory() {
    let levels = "levels: {undefined-field: note}\n";
    let root = directory(
        "config",
        &[
            (".vap.yaml", levels),
            ("a/b/p.yaml", WRONG),
            ("c/.vap.yaml", "levels:\n  undefined-field: error\n"),
            ("c/p.yaml", WRONG),
            ("d/.git/x", ""),
            ("d/p.yaml", WRONG),
        ],
    );
    let result = |path: &str, args: &[&str]| {
        let (report, exit) = json(&root.join(path), args);
        (findings(&report).join(","), exit)
    };
    let with = |severity: &str, exit: Exit| (format!("{severity} undefined-field 10"), exit);
    assert_eq!(result("a/b/p.yaml", &[]), with("note", Exit::Clean));
    assert_eq!(result("a", &[]), with("note", Exit::Clean));
    assert_eq!(result("c/p.yaml", &[]), with("error", Exit::Findings));
    // The search for a configuration file stops at the root of a Git repository.
    assert_eq!(result("d", &[]), with("warning", Exit::Findings));
    let flag = ["--no-config"];
    assert_eq!(result("c", &flag), with("warning", Exit::Findings));
    let config = root.join("c/.vap.yaml");
    let config = config.to_str().unwrap();
    let flag = ["--config", config];
    assert_eq!(result("a", &flag), with("error", Exit::Findings));
    let over = ["--config", config, "--allow", "all"];
    assert_eq!(result("a", &over), (String::new(), Exit::Clean));

    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (_, err, exit) = vap(&[&path("a"), &path("c")]);
    assert_eq!(exit, Exit::Failed);
    assert!(
        err.starts_with("error: the paths have different configuration files, ")
            && err.ends_with("select one with --config, or use --no-config\n"),
        "{err}"
    );
    let (_, err, exit) = vap(&[&path("a"), "--config", &path("none.yaml")]);
    assert!(err.starts_with("error: cannot read ") && exit == Exit::Failed);
}

#[test]
fn configuration_excludes_paths_and_sets_defaults() {
    let crd = fs::read_to_string("config/samples/late/replica_limit_crd.yaml").unwrap();
    let policy = fs::read_to_string("config/samples/missing_param_kind.yaml").unwrap();
    let sort = WRONG.replace("object.spec.replica <= 50", "'[1, 2].sort() == [1, 2]'");
    let config =
        "exclude: [vendor, '*.gen.yaml']\ncrds: [crds]\nkubernetesVersion: 1.30\nstrict: true\n";
    let files = [
        (".vap.yaml", config),
        ("p/p.yaml", policy.as_str()),
        ("crds/crd.yaml", &crd),
        ("p/vendor/w.yaml", WRONG),
        ("p/w.gen.yaml", WRONG),
        ("q/sort.yaml", &sort),
    ];
    let root = directory("defaults", &files);
    let (report, exit) = json(&root.join("p"), &["--allow", "unwatched-subresource"]);
    assert_eq!((findings(&report), exit), (Vec::new(), Exit::Clean));
    assert_eq!(report["summary"]["excluded"], 2);
    assert!(
        report["configuration"]
            .as_str()
            .unwrap()
            .ends_with(".vap.yaml")
    );
    // A file is excluded even if it is an explicit argument.
    let (report, _) = json(&root.join("p/w.gen.yaml"), &[]);
    assert_eq!(report["summary"]["excluded"], 1);
    let (out, _, _) = vap(&[root.join("p").to_str().unwrap()]);
    assert!(
        out.contains("1 policy in 1 file (2 excluded) checked"),
        "{out}"
    );
    // With --strict, the note about the missing CRD also leads to the exit status for findings.
    fs::remove_file(root.join("crds/crd.yaml")).unwrap();
    assert_eq!(json(&root.join("p"), &[]).1, Exit::Findings);
    let (report, _) = json(&root.join("q"), &[]);
    assert!(findings(&report).contains(&"error newer-function 10".to_owned()));
    let (report, _) = json(&root.join("q"), &["--kubernetes-version", "1.36"]);
    assert!(!findings(&report).contains(&"error newer-function 10".to_owned()));
}

#[test]
fn invalid_configuration_is_usage_error() {
    let root = directory(
        "wrong-config",
        &[(".vap.yaml", "\nlevel: {}\n"), ("p.yaml", WRONG)],
    );
    let (out, err, exit) = vap(&[root.to_str().unwrap()]);
    assert_eq!((out.as_str(), exit), ("", Exit::Failed));
    assert!(
        err.ends_with(".vap.yaml:2:1: unknown key `level`; did you mean `levels`?\n"),
        "{err}"
    );
}

/// Equal findings at several locations are reported as one finding, but the baseline contains one entry per location.
#[test]
fn baseline_has_an_entry_for_each_location_of_a_finding() {
    let twice = WRONG.replace(
        "object.spec.replica ",
        "object.spec.replica < 9 && object.spec.replica ",
    );
    assert_ne!(twice, WRONG);
    let root = directory("baseline-places", &[("p.yaml", &twice)]);
    let (baseline, policy) = (root.join("b.json"), root.join("p.yaml"));
    let (baseline, policy) = (baseline.to_str().unwrap(), policy.to_str().unwrap());
    let (written, err, _) = vap(&[policy, "--write-baseline", baseline]);
    assert!(err.ends_with("b.json: 2 findings written\n"), "{err}");
    let (applied, ..) = vap(&[policy, "--baseline", baseline]);
    for out in [written, applied] {
        assert!(
            out.ends_with("no findings (2 suppressed: 2 by the baseline)\n"),
            "{out}"
        );
    }
}

/// A fingerprint must not depend on the notation of the path or on the working directory.
#[test]
fn gitlab_paths_are_relative_to_repository() {
    let root = directory("gitlab", &[("p.yaml", WRONG), ("q/q.yaml", WRONG)]);
    let root = root.canonicalize().unwrap();
    let repository = Path::new(".").canonicalize().unwrap();
    let below = root
        .strip_prefix(&repository)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let issues = |path: &str| -> Vec<(String, String)> {
        let (out, ..) = vap(&[path, "-o", "gitlab"]);
        let issues: Vec<Value> = serde_json::from_str(&out).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let both = |it: &Value| (text(&it["location"]["path"]), text(&it["fingerprint"]));
        issues.iter().map(both).collect()
    };
    let expected = issues(&below);
    assert_eq!(expected.len(), 2, "{expected:?}");
    assert_eq!(expected[0].0, format!("{below}/p.yaml"));
    for path in [
        format!("./{below}"),
        format!("{below}/q/.."),
        root.display().to_string(),
    ] {
        assert_eq!(issues(&path), expected, "{path}");
    }
}

#[test]
fn baseline_suppresses_old_findings_and_reports_stale_entries() {
    let root = directory(
        "baseline",
        &[
            ("p/p.yaml", WRONG),
            ("p/q.yaml", &WRONG.replace("name: p", "name: q")),
        ],
    );
    let baseline = root.join("b.json");
    let baseline = baseline.to_str().unwrap();
    let all = root.join("p");
    let (out, err, exit) = vap(&[all.to_str().unwrap(), "--write-baseline", baseline]);
    assert_eq!(exit, Exit::Clean);
    assert!(err.ends_with("b.json: 2 findings written\n"), "{err}");
    assert!(
        out.ends_with("no findings (2 suppressed: 2 by the baseline)\n"),
        "{out}"
    );
    let written = fs::read_to_string(baseline).unwrap();
    assert!(written.contains("\"file\": \"p/p.yaml\""), "{written}");

    let result = |path: &Path| {
        let (report, exit) = json(path, &["--baseline", baseline]);
        (findings(&report), suppressed(&report), exit)
    };
    let baseline_entries = |n: usize| vec!["baseline undefined-field".to_owned(); n];
    assert_eq!(result(&all), (Vec::new(), baseline_entries(2), Exit::Clean));
    // Moves lines, adds another finding of the rule `undefined-field`, and fixes the other file.
    let moved = WRONG
        .replace("spec:\n  match", "spec:\n\n  # more\n  match")
        .replace(
            "  - message",
            "  - expression: object.spec.template.speck == null\n  - message",
        );
    fs::write(root.join("p/p.yaml"), moved).unwrap();
    fs::write(
        root.join("p/q.yaml"),
        WRONG
            .replace("name: p", "name: q")
            .replace("replica ", "replicas "),
    )
    .unwrap();
    let wanted = vec![
        "note stale-baseline null".to_owned(),
        "warning undefined-field 11".to_owned(),
        "note unwatched-operation 7".to_owned(),
    ];
    assert_eq!(result(&all), (wanted, baseline_entries(1), Exit::Findings));
    // The baseline keeps the entries of unchecked files. Entries of deleted files are stale.
    let (found, _, _) = result(&root.join("p/p.yaml"));
    assert_eq!(found, ["warning undefined-field 11"]);
    fs::remove_file(root.join("p/q.yaml")).unwrap();
    let (found, _, _) = result(&root.join("p/p.yaml"));
    assert_eq!(found.len(), 2);
    let (found, _, _) = result(&root.join("p/p.yaml"));
    assert!(found[0].starts_with("note stale-baseline"));
    let (_, exit) = json(
        &all,
        &[
            "--baseline",
            baseline,
            "--allow",
            "undefined-field",
            "--error",
            "stale-baseline",
        ],
    );
    assert_eq!(exit, Exit::Findings);
}

#[test]
fn baseline_does_not_suppress_rejection() {
    let text = WRONG.replace("  validations", "  failurePolicy: Never\n  validations");
    let root = directory("baseline-refused", &[("p.yaml", &text)]);
    let baseline = root.join("b.json");
    let baseline = baseline.to_str().unwrap();
    let (report, exit) = json(&root.join("p.yaml"), &["--write-baseline", baseline]);
    assert_eq!(findings(&report), ["error invalid-value 8"]);
    assert_eq!(exit, Exit::Findings);
    let text = fs::read_to_string(baseline).unwrap();
    assert!(!text.contains("invalid-value"), "{text}");
    // An entry that a user adds by hand does not suppress the error either.
    let fingerprint = report["findings"][0]["fingerprint"].as_str().unwrap();
    let entry = format!(
        "{{\"file\": \"p.yaml\", \"rule\": \"invalid-value\", \"fingerprint\": \"{fingerprint}\", \"message\": \"\"}}"
    );
    let text = format!(
        "{{\"apiVersion\": \"cli.vap-status.dev/v1alpha1\", \"kind\": \"CheckBaseline\", \"findings\": [{entry}]}}"
    );
    fs::write(baseline, text).unwrap();
    let (report, _) = json(&root.join("p.yaml"), &["--baseline", baseline]);
    assert_eq!(
        findings(&report),
        ["error invalid-value 8", "warning undefined-field 11"]
    );

    for (text, wanted) in [
        ("{", "EOF while parsing"),
        (
            "{\"apiVersion\": \"v1\", \"kind\": \"CheckBaseline\", \"findings\": []}",
            "not a CheckBaseline",
        ),
        (
            "{\"apiVersion\": \"\", \"kind\": \"\", \"findings\": [], \"x\": 1}",
            "unknown field `x`",
        ),
    ] {
        fs::write(baseline, text).unwrap();
        let (_, err, exit) = vap(&[root.to_str().unwrap(), "--baseline", baseline]);
        assert!(err.contains(wanted) && exit == Exit::Failed, "{err}");
    }
}
