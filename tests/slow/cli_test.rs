//! Tests the output of `kubectl vap test` for small probes, in all formats. Also tests the exit status.
//!
//! The expected output is in `tests/cli_test`, next to the probes. `VAP_UPDATE=1 cargo test --test slow cli_test`
//! regenerates it. Review the difference before you commit it.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::golden::{self, PLAIN};
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::terminal::Terminal;
use vap_status_controller::cli::test::convert::ConvertOptions;
use vap_status_controller::cli::test::report::TestReport;
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;

fn report(paths: &[&str]) -> TestReport {
    let options = Options {
        paths: paths.iter().map(PathBuf::from).collect(),
        ..Options::default()
    };
    test::run(&options, &mut std::io::empty()).unwrap()
}

#[track_caller]
fn compare(file: &str, found: &str) {
    golden::compare(&format!("tests/cli_test/{file}"), found);
}

#[test]
fn report_of_test_command_has_passed_failed_and_pending_cases() {
    let report = report(&["tests/cli_test/files"]);
    compare("files.txt", &test::render::text(&report, PLAIN, false));
    compare(
        "files.verbose.txt",
        &test::render::text(&report, PLAIN, true),
    );
    compare("files.xml", &test::junit::xml(&report));
    let json = serde_json::to_string_pretty(&report).unwrap();
    compare("files.json", &(json + "\n"));
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (7, 4, 3));
    assert_eq!(report.exit(), Exit::Findings);
}

#[test]
fn unmatched_request_is_allowed() {
    let report = report(&["tests/cli_test/exempt.yaml"]);
    compare("exempt.txt", &test::render::text(&report, PLAIN, false));
    compare(
        "exempt.verbose.txt",
        &test::render::text(&report, PLAIN, true),
    );
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (2, 3, 0));
}

/// The result of a case about a custom resource contains the API server's errors.
#[test]
fn custom_resources_are_validated() {
    let report = report(&["tests/cli_test/definitions.yaml"]);
    compare("definitions.txt", &test::render::text(&report, PLAIN, true));
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (9, 9, 1));
    let json = serde_json::to_value(&report).unwrap();
    let probe = &json["probes"][0];
    assert_eq!(probe["target"]["kind"], "CustomResourceDefinition");
    let case = &probe["cases"][4];
    assert_eq!(
        (&case["decision"], &case["reason"]),
        (
            &"Deny".into(),
            &"FieldValueNotSupported, FieldValueInvalid".into()
        )
    );
    assert_eq!(case["errors"].as_array().unwrap().len(), 3);
}

/// For a failing case, the output must show the failing rule at its location in the definition, and the values of the
/// rule's subexpressions. Each error must be on its own line.
#[test]
fn failing_custom_resource_shows_failing_rules() {
    let report = report(&["tests/cli_test/definition_traces.yaml"]);
    compare(
        "definition_traces.txt",
        &test::render::text(&report, PLAIN, false),
    );
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (2, 7, 0));
    let trace = |case: usize| &report.probes[0].cases[case].trace;
    let decides = |case: usize| {
        let deciding = trace(case).iter().filter(|trace| trace.decides);
        let of = deciding.map(|trace| (trace.line, trace.value_at.as_deref().unwrap_or_default()));
        of.collect::<Vec<_>>()
    };
    assert_eq!(decides(0), [(26, "spec")]);
    assert_eq!(decides(1), [(47, "spec.labels[a]"), (37, "spec.mounts[1]")]);
    let parts: Vec<String> = trace(0)[0]
        .subexpressions
        .iter()
        .map(|part| part.text.clone())
        .collect();
    assert_eq!(parts, ["self.min <= self.max", "self.min", "self.max"]);
    let changes = trace(0)[0].changes.as_ref().unwrap();
    assert_eq!(
        changes.alternatives,
        [["self.min <= self.max (self.min is 7, self.max is 3)"]]
    );
    assert_eq!(decides(2).len(), 4);
    assert_eq!(report.probes[0].cases[2].not_traced.len(), 2);
    assert!(decides(3).is_empty() && !trace(3).is_empty());
    assert!(trace(8).is_empty());
    let difference = report.probes[0].cases[5].difference.as_deref().unwrap();
    assert_eq!(difference.lines().count(), 4, "{difference}");
}

/// Tests an invalid definition, a missing definition, and expectations that only policies may have.
#[test]
fn invalid_definitions_are_reported() {
    let report = report(&["tests/cli_test/definitions_invalid.yaml"]);
    compare(
        "definitions_invalid.txt",
        &test::render::text(&report, PLAIN, false),
    );
    assert_eq!(report.exit(), Exit::Failed);
}

/// A case about a webhook expects that the webhook is called, or that it is not called.
#[test]
fn webhook_cases_compare_expected_and_actual_calls() {
    let report = report(&["tests/cli_test/webhooks.yaml"]);
    compare("webhooks.txt", &test::render::text(&report, PLAIN, true));
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (7, 4, 0));
    let json = serde_json::to_value(&report).unwrap();
    let probe = &json["probes"][0];
    assert_eq!(probe["policy"], serde_json::Value::Null);
    assert_eq!(probe["target"]["webhook"], "images.example.com");
    let field = &probe["cases"][1]["trace"][0]["fieldRef"];
    assert_eq!(field, "webhooks[0].matchConditions[0].expression");
}

/// A case about a mutating policy compares the mutated object with the expected object.
#[test]
fn mutating_cases_compare_objects() {
    let report = report(&["tests/cli_test/mutating.yaml"]);
    compare("mutating.txt", &test::render::text(&report, PLAIN, false));
    let cases = report.probes.iter().flat_map(|probe| &probe.cases);
    for case in cases {
        let expected = match case.name.split(':').next() {
            Some("sound") => CaseOutcome::Passed,
            Some("pending") => CaseOutcome::Pending,
            _ => CaseOutcome::Failed,
        };
        let (name, difference) = (&case.name, &case.difference);
        assert_eq!(case.outcome, expected, "{name}: {difference:?}");
    }
    let summary = report.summary;
    assert_eq!((summary.passed, summary.errors), (11, 3));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["probes"][0]["target"]["name"], "team-labels");
    let case = &json["probes"][0]["cases"][1];
    assert_eq!(case["object"]["spec"]["replicas"], 5);
    assert_eq!(case["patch"][0]["path"], "/metadata/labels/team");
    assert_eq!(report.exit(), Exit::Failed);
}

/// Coverage and mutants are supported only for validating policies. The report lists other policies as not measured.
#[test]
fn mutating_policies_have_no_coverage() {
    let options = Options {
        paths: vec!["tests/cli_test/mutating.yaml".into()],
        coverage: true,
        mutants: true,
        ..Options::default()
    };
    let report = test::run(&options, &mut std::io::empty()).unwrap();
    let text = test::render::text(&report, PLAIN, false);
    assert!(
        text.contains(
            "not measured: MutatingAdmissionPolicy sidecars, because it is not a validating policy"
        ),
        "{text}"
    );
    assert!(
        !text.contains("coverage:") && !text.contains("mutants:"),
        "{text}"
    );
}

/// A probe is invalid if its configuration is rejected, or if it has fields that webhooks must not have.
#[test]
fn webhook_probes_reject_policy_fields() {
    let report = report(&["tests/cli_test/webhooks_invalid.yaml"]);
    compare(
        "webhooks_invalid.txt",
        &test::render::text(&report, PLAIN, false),
    );
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (0, 1, 0));
    assert_eq!(report.exit(), Exit::Failed);
}

/// A case passes only if a cluster would behave as expected. A case that would pass without testing the policy fails.
#[test]
fn vacuous_cases_fail() {
    let report = report(&["tests/cli_test/traps.yaml"]);
    compare("traps.txt", &test::render::text(&report, PLAIN, false));
    let cases = report.probes.iter().flat_map(|probe| &probe.cases);
    for case in cases {
        let expected = if case.name.starts_with("sound") {
            CaseOutcome::Passed
        } else {
            CaseOutcome::Failed
        };
        assert_eq!(
            case.outcome, expected,
            "{}: {:?}",
            case.name, case.difference
        );
    }
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.errors), (7, 21, 2));
    assert_eq!(report.exit(), Exit::Failed);
}

/// Policies are evaluated for the sample object in the version that the policy matches, with the API server's defaults.
#[test]
fn sample_objects_get_defaults_and_are_converted() {
    let report = report(&["tests/cli_test/defaults.yaml"]);
    compare("defaults.txt", &test::render::text(&report, PLAIN, true));
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (8, 0, 1));
}

/// Events are served in two API groups with different fields. The case is pending, because it requires a conversion
/// between the groups.
#[test]
fn case_that_requires_conversion_of_event_is_pending() {
    let report = report(&["tests/cli_test/events.yaml"]);
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.pending), (2, 0, 2));
    let cases = report.probes.iter().flat_map(|probe| &probe.cases);
    let why: Vec<&str> = cases
        .filter_map(|case| case.difference.as_deref())
        .collect();
    assert!(
        why.iter()
            .all(|why| why.starts_with("cannot determine how the API server converts")),
        "{why:?}"
    );
}

/// The API server's defaults are set in objects of subresources, and in the options of requests.
#[test]
fn objects_of_subresources_and_options_get_defaults() {
    let report = report(&["tests/cli_test/subresources.yaml"]);
    let text = test::render::text(&report, PLAIN, false);
    let summary = report.summary;
    assert_eq!(
        (summary.passed, summary.failed, summary.pending),
        (7, 0, 0),
        "{text}"
    );
}

#[test]
fn output_for_all_ways_to_write_cases_is_as_expected() {
    let report = report(&["tests/cli_test/ways"]);
    compare("ways.txt", &test::render::text(&report, PLAIN, false));
    compare("ways.github.txt", &test::github::annotations(&report));
    let summary = report.summary;
    assert_eq!((summary.passed, summary.failed, summary.errors), (7, 1, 3));
}

/// Tests each notation for requests, and each expectation with a right and a wrong value. The cases with "wrong" in
/// their names must fail. All others must pass.
#[test]
fn only_cases_with_wrong_in_their_name_fail() {
    let report = report(&["tests/cli_test/each_way"]);
    compare("each_way.txt", &test::render::text(&report, PLAIN, false));
    let cases = report.probes.iter().flat_map(|probe| &probe.cases);
    for case in cases {
        let wanted = if case.name.split(' ').any(|word| word == "wrong") {
            CaseOutcome::Failed
        } else {
            CaseOutcome::Passed
        };
        assert_eq!(case.outcome, wanted, "{}", case.name);
    }
    let summary = report.summary;
    assert_eq!((summary.failed, summary.errors), (19, 0));
}

#[test]
fn coverage_and_mutants_are_reported() {
    let options = Options {
        paths: vec![PathBuf::from("config/samples")],
        coverage: true,
        mutants: true,
        ..Options::default()
    };
    let report = test::run(&options, &mut std::io::empty()).unwrap();
    compare("measured.txt", &test::render::text(&report, PLAIN, false));
    let coverage = report.coverage.as_deref().unwrap();
    compare("measured.lcov", &test::coverage::lcov(coverage));
    let mutants = report.mutants.as_ref().unwrap();
    assert_eq!(mutants.total, mutants.killed + mutants.survived.len());
    assert!(mutants.killed > 0 && mutants.skipped.is_empty());
    assert!(
        coverage
            .iter()
            .all(|of| (0 < of.covered) == (0 < of.probes) && of.covered <= of.total)
    );
}

/// Converts small test suites of other tools. Compares the probes and the notes about the conversion with the expected
/// ones.
#[test]
fn suites_are_converted_to_probes() {
    for (suite, file, counts) in [
        ("kaptest", "suites/kaptest/kaptest.yaml", (7, 2, 0)),
        ("kyverno", "suites/kyverno/kyverno-test.yaml", (4, 0, 0)),
        ("gator", "suites/gator/suite.yaml", (6, 0, 0)),
        ("kat", "suites/kat", (5, 0, 0)),
    ] {
        let options = test::convert::ConvertOptions {
            suite: PathBuf::from("tests/cli_test").join(file),
            with_policies: true,
            ..test::convert::ConvertOptions::default()
        };
        let converted = test::convert::run(&options).unwrap();
        let yaml = converted.yaml().unwrap();
        compare(
            &format!("suites/{suite}.txt"),
            &(converted.diagnostics().join("\n") + "\n"),
        );
        assert_eq!(converted.exit(), Exit::Findings, "{suite}");
        let stdin = Options {
            paths: vec![PathBuf::from("-")],
            ..Options::default()
        };
        let report = test::run(&stdin, &mut yaml.as_bytes()).unwrap();
        let text = test::render::text(&report, PLAIN, false);
        compare(&format!("suites/{suite}.test.txt"), &text);
        let summary = report.summary;
        let findings = (summary.passed, summary.failed, summary.pending);
        assert_eq!(findings, counts, "{suite}: {text}");
    }
    let none = test::convert::ConvertOptions {
        suite: PathBuf::from("tests/cli_test/suites/policy.yaml"),
        ..test::convert::ConvertOptions::default()
    };
    let none = test::convert::run(&none).unwrap();
    assert_eq!(none.exit(), Exit::Failed);
    assert!(none.diagnostics()[0].contains("is not a suite of kaptest"));
}

/// The suites of Kyverno use either of two API groups.
#[test]
fn kyverno_suite_may_have_either_api_group() {
    let read = |suite: PathBuf| {
        let options = test::convert::ConvertOptions {
            suite,
            ..test::convert::ConvertOptions::default()
        };
        let converted = test::convert::run(&options).unwrap();
        assert_eq!(converted.problem, None);
        converted.probes.len()
    };
    let folder = PathBuf::from("tests/cli_test/suites/kyverno");
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("suites-of-kyverno/kyverno");
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("cli.kyverno.io/v1alpha1", "kyverno.io/v1");
        std::fs::write(copy.join(path.file_name().unwrap()), text).unwrap();
    }
    std::fs::copy(
        "tests/cli_test/suites/policy.yaml",
        copy.join("../policy.yaml"),
    )
    .unwrap();
    let name = "kyverno-test.yaml";
    let n_probes = read(folder.join(name));
    assert!(n_probes > 0);
    assert_eq!(read(copy.join(name)), n_probes);
}

/// Params can be in `paramResources`, and in the other files of the suite.
#[test]
fn kyverno_suite_has_params_of_all_files() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kyverno-params");
    std::fs::create_dir_all(&folder).unwrap();
    let policy = serde_json::json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"],
            }]},
            "validations": [{"expression": "object.metadata.name in params.data"}],
        },
    });
    let params = "{apiVersion: v1, kind: ConfigMap, metadata: {name: names}, data: {web: ''}}\n";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}, \
               spec: {containers: [{name: a, image: a}]}}\n";
    let suite = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n\
                 policies: [policy.yaml]\nresources: [resources.yaml]\n\
                 results:\n- {policy: p, kind: Pod, resources: [web], result: pass}\n";
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("kyverno-test.yaml", suite);
    for in_resources in [true, false] {
        let separated = |text: &str| format!("{text}\n---\n{params}");
        let (policy, pod) = (policy.to_string(), pod.to_owned());
        if in_resources {
            write("policy.yaml", &policy);
            write("resources.yaml", &separated(&pod));
        } else {
            write("policy.yaml", &separated(&policy));
            write("resources.yaml", &pod);
        }
        let options = |suite: PathBuf| ConvertOptions {
            suite,
            with_policies: true,
            ..ConvertOptions::default()
        };
        let converted = test::convert::run(&options(folder.join("kyverno-test.yaml"))).unwrap();
        let spec = &converted.probes[0]["spec"];
        assert_eq!(spec["inlineParams"][0]["data"]["web"], "", "{spec}");
        let paths = vec![PathBuf::from("-")];
        let all = Options {
            paths,
            ..Options::default()
        };
        let yaml = converted.yaml().unwrap();
        let report = test::run(&all, &mut yaml.as_bytes()).unwrap();
        assert_eq!(report.summary.passed, 1, "{report:?}");
        // The directory is not a suite.
        let of_directory = test::convert::run(&options(folder.clone())).unwrap();
        let problem = of_directory.diagnostics().concat();
        assert!(
            problem.contains("it lacks the subdirectory `tests`; pass "),
            "{problem}"
        );
        assert!(
            problem.contains("kyverno-params/kyverno-test.yaml"),
            "{problem}"
        );
    }
}

/// The cases from `init` must pass. For each validation, they must include an allowed and a denied request.
#[test]
fn init_generates_probes_that_pass() {
    let policy = "tests/cli_test/ways/policies.yaml";
    let options = Options {
        paths: vec![PathBuf::from(policy)],
        ..Options::default()
    };
    let generated = test::init::run(&options, &mut std::io::empty()).unwrap();
    assert_eq!(
        generated.exit(),
        Exit::Clean,
        "{:?}",
        generated.diagnostics()
    );
    let yaml = generated.yaml().unwrap();
    compare("init.yaml", &yaml);
    let both = Options {
        paths: vec![PathBuf::from(policy), PathBuf::from("-")],
        mutants: true,
        ..Options::default()
    };
    let report = test::run(&both, &mut yaml.as_bytes()).unwrap();
    let text = test::render::text(&report, PLAIN, true);
    assert_eq!(report.exit(), Exit::Clean, "{text}");
    let mutants = report.mutants.unwrap();
    assert!(mutants.killed * 2 > mutants.total, "{mutants:?}");
}

/// The API server checks a request before it evaluates policies. The denied requests from `init` must pass these
/// checks.
#[test]
fn requests_generated_by_init_are_valid() {
    let denied = |resource: &str, expression: &str| {
        let (group, resource) = resource.split_once('/').unwrap();
        let policy = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             matchConstraints:\n    resourceRules:\n    - {{apiGroups: ['{group}'], apiVersions: [v1], operations: \
             [CREATE], resources: [{resource}]}}\n  validations:\n  - {{expression: {}}}\n",
            serde_json::json!(expression)
        );
        let options = Options {
            paths: vec![PathBuf::from("-")],
            ..Options::default()
        };
        let generated = test::init::run(&options, &mut policy.as_bytes()).unwrap();
        let cases = generated
            .probes
            .first()
            .map_or(&serde_json::Value::Null, |probe| &probe["spec"]["cases"]);
        let cases = cases.as_array().into_iter().flatten();
        let mut denied = cases.filter(|case| case["expect"]["decision"] == "Deny");
        denied.next().map(|case| case["request"]["object"].clone())
    };
    for (resource, expression, at, expected) in [
        (
            "/pods",
            "object.spec.containers.all(c, c.imagePullPolicy == 'Always')",
            "/spec/containers/0/imagePullPolicy",
            "IfNotPresent",
        ),
        (
            "/services",
            "!has(object.spec.externalIPs)",
            "/spec/externalIPs/0",
            "10.0.0.1",
        ),
        (
            "batch/cronjobs",
            "object.spec.jobTemplate.spec.template.spec.containers.all(c, has(c.livenessProbe))",
            "/spec/schedule",
            "0 0 * * *",
        ),
        (
            "/pods",
            "object.spec.containers.size() < 2",
            "/spec/containers/1/name",
            "example1",
        ),
    ] {
        let object = denied(resource, expression).unwrap();
        let value = object.pointer(at).unwrap();
        assert_eq!(value, expected, "{expression}: {object:#}");
    }
    let user = "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.runAsUser) || \
                c.securityContext.runAsUser > 0)";
    let object = denied("/pods", user).unwrap();
    assert_eq!(
        object["spec"]["containers"][0]["securityContext"]["runAsUser"],
        0
    );
    // The API server rejects a Pod with ephemeral containers on creation.
    assert_eq!(
        denied("/pods", "!has(object.spec.ephemeralContainers)"),
        None
    );
}

#[test]
fn rejected_policy_fails_all_cases() {
    let report = report(&["tests/cli_test/invalid.yaml"]);
    compare("invalid.txt", &test::render::text(&report, PLAIN, false));
    compare("invalid.xml", &test::junit::xml(&report));
    assert_eq!(report.exit(), Exit::Failed);
}

#[test]
fn sample_probes_pass() {
    let report = report(&["config/samples"]);
    assert_eq!(
        report.exit(),
        Exit::Clean,
        "{}",
        test::render::text(&report, PLAIN, true)
    );
    assert_eq!((report.summary.probes, report.summary.passed), (2, 7));
}

/// The order of the files must not change the results. Color must add only escape sequences.
#[test]
fn output_does_not_depend_on_file_order_or_color() {
    let files = ["probes", "objects", "policies"];
    let files = files.map(|name| format!("tests/cli_test/files/{name}.yaml"));
    let turned = report(&files.each_ref().map(String::as_str));
    let report = report(&["tests/cli_test/files"]);
    let json = |report: &TestReport| serde_json::to_value(report).unwrap()["probes"].clone();
    assert_eq!(json(&turned), json(&report));

    let color = Terminal {
        color: true,
        ..PLAIN
    };
    let colored = test::render::text(&report, color, true);
    let mut plain = colored.replace("\u{1b}[0m", "");
    assert_ne!(plain, colored);
    for code in ["1", "1;31", "1;32", "1;33", "1;34"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, test::render::text(&report, PLAIN, true));
}

fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
        .arg("test")
        .args(arguments)
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Ignores an error: the program may exit before it has read all of standard input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn exit_status_of_test_command_depends_on_results_and_errors() {
    const SAMPLES: &str = "config/samples";
    let passed = run(&[SAMPLES], "");
    assert_eq!(code(&passed), 0);
    assert!(!passed.stdout.contains(&0x1b), "color in a pipe");
    assert_eq!(code(&run(&["tests/cli_test/files"], "")), 1);
    assert_eq!(code(&run(&["tests/cli_test/invalid.yaml"], "")), 2);
    assert_eq!(code(&run(&[SAMPLES, "no/such/file.yaml"], "")), 2);
    assert_eq!(code(&run(&[SAMPLES, "-o", "other"], "")), 2);
    assert_eq!(code(&run(&[], "")), 2);

    let policy = "config/samples/sound_params.yaml";
    let nothing = run(&[policy], "");
    assert_eq!(code(&nothing), 2);
    let text = String::from_utf8(nothing.stderr).unwrap();
    assert!(text.contains("the input has no PolicyProbe"), "{text}");

    let probe = fs::read_to_string("config/samples/sound_params_probe.yaml").unwrap();
    assert_eq!(code(&run(&["-", policy], &probe)), 0);
    let crds = ["--crds", "config/samples/team_rule_crd.yaml"];
    let probe = probe.replace("params: Inline", "params: FromCluster");
    assert_eq!(
        code(&run(&["-", policy], &probe)),
        2,
        "inlineParams are not read"
    );
    let (head, rest) = probe.split_once("  inlineParams:").unwrap();
    let (_, tail) = rest.split_once("  bindings: Inline").unwrap();
    let without = format!("{head}  bindings: Inline{tail}");
    let unknown = run(&["-", policy], &without);
    assert_eq!(code(&unknown), 1);
    let text = String::from_utf8(unknown.stdout).unwrap();
    assert!(
        text.contains("pass its CustomResourceDefinition with --crds"),
        "{text}"
    );
    let complete = run(&["-", policy, crds[0], crds[1]], &without);
    assert_eq!(code(&complete), 1);
    let text = String::from_utf8(complete.stdout).unwrap();
    assert!(text.contains("no params found"), "{text}");
}

/// For damaged input, the exit status must be one of the documented ones.
#[test]
fn damaged_input_exits_with_valid_status() {
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: usize| {
        // Source: G. Marsaglia, "Xorshift RNGs".
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % u64::try_from(below.max(1)).unwrap()).unwrap()
    };
    let mut original = Vec::new();
    for name in ["policies", "objects", "probes"] {
        original.extend(fs::read(format!("tests/cli_test/files/{name}.yaml")).unwrap());
        original.extend(b"---\n");
    }
    let pieces: [&[u8]; 12] = [
        b"", b"'", b"\"", b"\n", b"{", b"[", b"- ", b": ", b"null", b"1e999", b"---\n", b"\xff",
    ];
    for _ in 0..60 {
        let mut bytes = original.clone();
        for _ in 0..=random(6) {
            let at = random(bytes.len());
            let end = (at + random(12)).min(bytes.len());
            let piece = pieces[random(pieces.len())];
            bytes.splice(at..end, piece.iter().copied());
        }
        let options = Options {
            paths: vec![PathBuf::from("-")],
            ..Options::default()
        };
        let report = test::run(&options, &mut bytes.as_slice()).unwrap();
        let text = test::render::text(&report, PLAIN, true);
        assert!(!text.contains("please report it"), "{text}");
        let _ = test::junit::xml(&report);
    }
}

/// Without `--kubernetes-version`, the newest version in `.vap.yaml` applies.
#[test]
fn init_and_test_use_version_of_configuration() {
    let policy = r#"apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: mounts}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: object.spec.containers.all(c, c.volumeMounts.orValue([]).all(m, m.mountPath != '/host'))
"#;
    let config = "kubernetesVersion: 1.33-1.36\n";
    let folder =
        crate::cli_commands::directory("test-pinned", &[("p.yaml", policy), (".vap.yaml", config)]);
    let path = folder.join("p.yaml");
    let path = path.to_str().unwrap();
    let init =
        |words: &[&str]| crate::cli_commands::vap(&[&["test", "init", path], words].concat(), "");
    let pinned = init(&[]);
    assert_eq!(pinned.out, init(&["--kubernetes-version", "1.36"]).out);
    assert_ne!(pinned.out, init(&["--kubernetes-version", "1.37"]).out);
    let probes = folder.join("probes.yaml");
    std::fs::write(&probes, &pinned.out).unwrap();
    let probes = probes.to_str().unwrap();
    let test = |words: &[&str]| {
        let words = [&["test", path, probes], words].concat();
        crate::cli_commands::vap(&words, "").status
    };
    assert_eq!(test(&[]), 0);
    assert_eq!(test(&["--kubernetes-version", "1.37"]), 1);
}
