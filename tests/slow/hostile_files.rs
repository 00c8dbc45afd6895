//! Tests files and policies that could exhaust the plugin. Each check must end quickly, take limited memory, and report
//! an error about the exceeded limit.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, report::CheckReport};
use vap_status_controller::cli::terminal::Terminal;
use vap_status_controller::cli::test::{self, report::TestReport};
use vap_status_controller::policy::{RequestPolicy, matching};
use vap_status_controller::schema::Builtin;
use vap_status_controller::schema::rest_mapper::RestMapper;
use vap_status_controller::version::KubernetesVersion;

/// The time limit of each test. It is generous, because debug builds are slow on a busy machine. Without the tested
/// limits, a check would take minutes or all memory.
const SOON: Duration = Duration::from_secs(60);

const MIB: u64 = 1024 * 1024;

/// Checks a manifest. Asserts that the check allocates less than `max_bytes`. Returns the report and its text output.
#[track_caller]
fn check_within(max_bytes: u64, text: &str) -> (CheckReport, String) {
    let started = Instant::now();
    let mut outcome = None;
    let allocated = allocation_counter::measure(|| {
        let options = check::Options {
            paths: vec![PathBuf::from("-")],
            ..check::Options::default()
        };
        let report = check::run(&options, &mut text.as_bytes()).unwrap();
        let terminal = Terminal {
            width: Some(100),
            color: false,
        };
        let rendered = check::render::text(&report, terminal);
        outcome = Some((report, rendered));
    });
    assert!(allocated.bytes_max < max_bytes, "{}", allocated.bytes_max);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    outcome.unwrap()
}

/// Runs the probes in a manifest. Asserts that this allocates less than `max_bytes`.
#[track_caller]
fn test_within(max_bytes: u64, text: &str) -> TestReport {
    let started = Instant::now();
    let mut report = None;
    let allocated = allocation_counter::measure(|| {
        let options = test::Options {
            paths: vec![PathBuf::from("-")],
            ..test::Options::default()
        };
        report = Some(test::run(&options, &mut text.as_bytes()).unwrap());
    });
    assert!(allocated.bytes_max < max_bytes, "{}", allocated.bytes_max);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    report.unwrap()
}

fn rule(groups: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": resources})
}

fn policy(rules: &[Value], validations: &[Value]) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "hostile.example.com"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations},
    })
}

fn typed(policy: Value) -> RequestPolicy {
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    policy.into()
}

fn built_in() -> RestMapper {
    RestMapper::new(
        Builtin::load(KubernetesVersion::DEFAULT)
            .unwrap()
            .resources()
            .to_vec(),
    )
}

#[test]
fn expansion_of_aliases_is_limited() {
    let long = "x".repeat(100_000);
    let aliases = vec!["*a"; 10_000].join(",");
    let bomb = format!("a: &a \"{long}\"\nb: [{aliases}]\n");
    let (report, _) = check_within(40 * MIB, &bomb);
    let message = &report.findings[0].message;
    assert!(message.contains("aliases expand to"), "{message}");

    // Many documents with aliases must not take much memory either.
    let aliases = vec!["*a"; 500].join(",");
    let document = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\na: &a \"{}\"\nb: [{aliases}]\n---\n",
        "x".repeat(10_000)
    );
    let report = test_within(80 * MIB, &document.repeat(30));
    assert!(report.findings.len() >= 25, "{}", report.findings.len());
}

#[test]
fn nested_aliases_are_limited() {
    let mut text = "a0: &a0 {x: 1}\n".to_owned();
    for n in 1..60 {
        let before = n - 1;
        writeln!(
            text,
            "a{n}: &a{n} {{<<: [*a{before}, *a{before}], k{n}: *a{before}}}"
        )
        .unwrap();
    }
    check_within(100 * MIB, &text);
}

#[test]
fn small_objects_take_little_memory() {
    let n = 10_000;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n".repeat(n);
    // Most of this memory is for the parsed objects.
    test_within(3_000 * u64::try_from(n).unwrap(), &text);
}

#[test]
fn number_of_documents_is_limited() {
    let text = "apiVersion: v1\nkind: A\n---\n".repeat(120_000);
    let (report, _) = check_within(150 * MIB, &text);
    let has_limit = |message: &str| {
        message == "cannot read <stdin>: more than 100000 documents; split the file"
    };
    let mut findings = report.findings.iter();
    assert!(findings.any(|found| has_limit(&found.message)));
}

#[test]
fn depth_limit_is_reported() {
    let text = format!("a: {}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let (report, _) = check_within(20 * MIB, &text);
    let message = &report.findings[0].message;
    assert!(message.contains("nest more than 255 deep"), "{message}");
}

#[test]
fn findings_in_one_line_file_take_bounded_time() {
    let validations: Vec<_> = (0..10_000)
        .map(|_| json!({"expression": "'é' +"}))
        .collect();
    let policy = policy(&[rule(&["apps"], &["deployments"])], &validations);
    let (report, text) = check_within(150 * MIB, &policy.to_string());
    let n_places = report.findings.iter().map(|found| 1 + found.also.len());
    let n_places: usize = n_places.sum();
    assert!(n_places >= 10_000, "{n_places}");
    let begin: String = text.chars().take(500).collect();
    assert!(text.contains("…"), "{begin}");
}

#[test]
fn findings_for_many_kinds_share_one_limit() {
    let names: Vec<_> = (0..200).map(|n| format!("u{n}")).collect();
    let expression = names.join("+");
    let validations: Vec<_> = (0..40).map(|_| json!({"expression": expression})).collect();
    let policy = policy(&[rule(&["*"], &["*"])], &validations);
    let (report, text) = check_within(150 * MIB, &policy.to_string());
    assert!(text.len() < 40_000_000, "{}", text.len());
    let warnings = report.policies[0].expression_warnings.iter();
    let n_bytes: usize = warnings.map(|warning| warning.warning.len()).sum();
    assert!(n_bytes < 20_000_000, "{n_bytes}");
}

#[test]
fn many_validations_for_all_kinds_are_bounded() {
    let validations: Vec<_> = (0..3_000)
        .map(|n| json!({"expression": format!("object.spec.replicaz <= {n}")}))
        .collect();
    let policy = policy(&[rule(&["*"], &["*"])], &validations);
    let (report, _) = check_within(150 * MIB, &policy.to_string());
    assert_eq!(report.policies.len(), 1);
}

#[test]
fn matching_many_rules_and_exclusions_takes_bounded_time() {
    let rules = vec![rule(&["*"; 20], &["*", "*/*", "pods/*"]); 500];
    let exclusions: Vec<_> = (0..3_000)
        .map(|n| rule(&["*"], &[&format!("r{n}s")]))
        .collect();
    let mut policy = policy(&rules, &[json!({"expression": "true"})]);
    policy["spec"]["matchConstraints"]["excludeResourceRules"] = exclusions.into();
    let started = Instant::now();
    let matches = matching::resolve(&typed(policy), &built_in());
    assert!(matches.resources.len() > 90, "{}", matches.resources.len());
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
}

#[test]
fn matching_many_groups_versions_and_resources_takes_bounded_time() {
    let many = |name: &str, n: usize| (0..n).map(|n| format!("{name}{n}")).collect::<Vec<_>>();
    let groups = many("group", 10_000).into_iter();
    let groups: Vec<_> = groups.map(|group| format!("{group}.example.com")).collect();
    let rule = json!({
        "apiGroups": groups, "apiVersions": many("v", 3_000),
        "operations": ["*"], "resources": many("resource", 2_000),
    });
    let policy = policy(&[rule], &[json!({"expression": "true"})]);
    let (report, text) = check_within(150 * MIB, &policy.to_string());
    assert!(report.findings.len() >= 2_000, "{}", report.findings.len());
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("… (9990"), "{text}");
    assert!(matching::upstream_kinds(&typed(policy), &built_in()).is_empty());
}

#[test]
fn rule_with_many_resources_matches_like_short_rule() {
    let mut resources: Vec<_> = (0..50).map(|n| format!("other{n}s")).collect();
    resources.extend([
        "pods".into(),
        "*/scale".into(),
        "nodes/*".into(),
        "pods".into(),
    ]);
    let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
    let long = typed(policy(&[rule(&["*"], &resources)], &[]));
    let short = typed(policy(
        &[rule(&["*"], &["nodes/*", "*/scale", "pods"])],
        &[],
    ));
    let mapper = built_in();
    let (long, short) = (
        matching::resolve(&long, &mapper),
        matching::resolve(&short, &mapper),
    );
    assert!(short.resources.len() > 5, "{:?}", short.resources);
    assert_eq!(long.resources, short.resources);
    assert_eq!((long.unserved.len(), short.unserved.len()), (50, 0));
}
