//! Tests options of `kubectl vap test`: coverage of policies without probes, selection of cases, durations, and JUnit.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use crate::cli_commands::vap;

const POLICY: &str = "config/samples/sound.yaml";
const PROBE: &str = "config/samples/sound_probe.yaml";
const FILES: &str = "tests/cli_test/files";

/// Returns the attributes of each XML element with this name.
fn elements<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("<{name} ");
    let rest = xml.split(start.as_str()).skip(1);
    rest.filter_map(|rest| Some(rest.split_once('>')?.0))
        .collect()
}

#[test]
fn policy_without_probe_counts_as_not_covered() {
    let arguments = [
        "test",
        POLICY,
        PROBE,
        "--coverage",
        "--coverage-threshold",
        "60",
    ];
    let tested = vap(&arguments, "");
    assert_eq!(tested.status, 0, "{}{}", tested.out, tested.err);
    let other = "docs/examples/replica-limit.yaml";
    let ran = vap(&[&arguments[..], &[other]].concat(), "");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("coverage of replica-limit: 0 of ")
            && ran
                .out
                .contains("because no probe tests it (docs/examples/replica-limit.yaml)"),
        "{}",
        ran.out
    );
    assert!(
        ran.err
            .contains("below the threshold of 60%; no probe tests: replica-limit"),
        "{}",
        ran.err
    );
    let json = vap(
        &["test", POLICY, PROBE, other, "--coverage", "-o", "json"],
        "",
    )
    .json();
    let policies = json["coverage"].as_array().unwrap();
    let untested = policies
        .iter()
        .find(|it| it["policy"] == "replica-limit")
        .unwrap();
    assert_eq!(
        (&untested["probes"], &untested["covered"]),
        (&0.into(), &0.into())
    );
    // The actions of the bindings are also items of the coverage.
    let items = untested["items"].as_array().unwrap();
    assert_eq!(
        items.iter().filter(|item| item["kind"] == "action").count(),
        2
    );
}

#[test]
fn run_flag_selects_cases_by_name() {
    let ran = vap(
        &["test", POLICY, PROBE, "--run", "^sample-sound/.*denied$"],
        "",
    );
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("51 replicas are denied"), "{}", ran.out);
    assert!(!ran.out.contains("three replicas"), "{}", ran.out);
    assert!(
        ran.out
            .contains("1 of 4 cases of 1 probe in 2 files tested"),
        "{}",
        ran.out
    );
    let json = vap(
        &["test", POLICY, PROBE, "--run", "replicas", "-o", "json"],
        "",
    )
    .json();
    assert_eq!(json["summary"]["cases"], 2);
    assert_eq!(json["summary"]["notSelected"], 2);
    // The location is that of the selected case.
    let case = &json["probes"][0]["cases"][1];
    assert_eq!(
        (&case["name"], &case["line"]),
        (&"51 replicas are denied".into(), &30.into())
    );
}

#[test]
fn run_flag_without_match_or_with_invalid_pattern_is_an_error() {
    let ran = vap(&["test", POLICY, PROBE, "--run", "no such case"], "");
    assert_eq!(ran.status, 2);
    assert_eq!(
        ran.err,
        "error: no case matches `--run no such case`; names have the form PROBE/CASE, such as \
         `sample-sound/three replicas with a version are allowed`\n"
    );
    let ran = vap(&["test", POLICY, PROBE, "--run", "("], "");
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("missing closing )"), "{}", ran.err);
    let ran = vap(
        &[
            "test",
            POLICY,
            PROBE,
            "--run",
            "a",
            "--coverage",
            "--coverage-threshold",
            "1",
        ],
        "",
    );
    assert_eq!(ran.status, 2);
}

#[test]
fn failed_only_flag_hides_passed_cases_but_counts_them() {
    let all = vap(&["test", FILES], "");
    let failed = vap(&["test", FILES, "--failed-only"], "");
    assert_eq!((failed.status, all.status), (1, 1));
    assert!(all.out.contains("\n  ok "), "{}", all.out);
    assert!(!failed.out.contains("\n  ok "), "{}", failed.out);
    assert!(failed.out.contains("\n  FAILED "), "{}", failed.out);
    assert_eq!(failed.out.lines().last(), all.out.lines().last());
    let json = vap(&["test", FILES, "--failed-only", "-o", "json"], "").json();
    let cases = json["probes"].as_array().unwrap().iter();
    let n: usize = cases
        .map(|probe| probe["cases"].as_array().unwrap().len())
        .sum();
    let summary = &json["summary"];
    let count = |name: &str| usize::try_from(summary[name].as_u64().unwrap()).unwrap();
    assert_eq!(n, count("failed") + count("pending"));
    assert!(count("cases") > n);
    let passed = vap(&["test", POLICY, PROBE, "--failed-only"], "");
    assert_eq!(passed.out.lines().count(), 1, "{}", passed.out);
}

#[test]
fn durations_are_shown_on_request() {
    let without = vap(&["test", POLICY, PROBE], "");
    assert!(!without.out.contains(" ms)"), "{}", without.out);
    let with = vap(&["test", POLICY, PROBE, "--durations"], "");
    assert_eq!(with.out.matches(" ms)").count(), 5, "{}", with.out);
    let json = vap(&["test", POLICY, PROBE, "--durations", "-o", "json"], "").json();
    let probe = &json["probes"][0];
    let cases = probe["cases"].as_array().unwrap().iter();
    let sum: f64 = cases
        .map(|case| case["durationSeconds"].as_f64().unwrap())
        .sum();
    assert!(sum > 0.0 && (probe["durationSeconds"].as_f64().unwrap() - sum).abs() < 1e-6);
}

#[test]
fn junit_has_times_and_values() {
    let ran = vap(
        &[
            "test",
            FILES,
            "tests/cli_test/definitions.yaml",
            "-o",
            "junit",
        ],
        "",
    );
    assert_eq!(ran.status, 1, "{}", ran.out);
    let json = vap(
        &[
            "test",
            FILES,
            "tests/cli_test/definitions.yaml",
            "-o",
            "json",
        ],
        "",
    )
    .json();
    let cases = elements(&ran.out, "testcase");
    assert_eq!(
        Some(cases.len()),
        json["summary"]["cases"]
            .as_u64()
            .map(|n| usize::try_from(n).unwrap())
    );
    for element in [
        cases,
        elements(&ran.out, "testsuite"),
        elements(&ran.out, "testsuites"),
    ]
    .concat()
    {
        let (_, time) = element
            .split_once(" time=\"")
            .unwrap_or_else(|| panic!("{element}"));
        let (time, _) = time.split_once('"').unwrap();
        assert!(
            time.parse::<f64>().is_ok_and(|time| time >= 0.0),
            "{element}"
        );
    }
    let failures = ran.out.split("<failure ").skip(1);
    let with_values = failures.filter(|text| {
        text.split_once("</failure>")
            .is_some_and(|(text, _)| text.contains(" = false"))
    });
    assert!(with_values.count() > 0, "{}", ran.out);
}
