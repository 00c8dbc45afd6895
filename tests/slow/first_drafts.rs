//! Checks first drafts of policies, as authors without experience write them. The files are in `tests/first_drafts`.
//!
//! A comment `# mistake: RULE, RULE fixable` states the mistakes of its line. A comment on a line of its own is about the
//! next item of a list. A mistake is `fixable` if it has one unambiguous correction. A comment `# gap: REASON` states a
//! mistake that the check does not report.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde_json::Value;

use crate::cli_commands::{directory, vap};

/// Minimum share of the mistakes that the first check reports, in percent.
const MIN_REPORTED: usize = 95;

/// Minimum number of drafts, and of their mistakes.
const MIN_DRAFTS: usize = 24;
const MIN_MISTAKES: usize = 120;

struct Mistake {
    lines: RangeInclusive<usize>,
    rule: String,
    is_fixable: bool,
}

/// The mistakes of a draft, and the number of mistakes that are not reported.
struct Marks {
    mistakes: Vec<Mistake>,
    n_gaps: usize,
}

/// Returns the last line of the item that begins after the comment in line `n`, counted from 0.
fn end_of_item(lines: &[&str], n: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let first = indent(lines[n + 1]);
    let after = lines.iter().skip(n + 2);
    let n_lines = after.take_while(|line| indent(line) > first).count();
    n + 2 + n_lines
}

fn marks(text: &str) -> Marks {
    let lines: Vec<&str> = text.lines().collect();
    let mut mistakes = Vec::new();
    let mut n_gaps = 0;
    for (n, line) in lines.iter().enumerate() {
        let (code, comment) = line.split_once("# ").unwrap_or((line, ""));
        for part in comment.split("# ") {
            let of_line = if code.trim().is_empty() {
                n + 2..=end_of_item(&lines, n)
            } else {
                n + 1..=n + 1
            };
            n_gaps += usize::from(part.starts_with("gap: "));
            let rules = part.strip_prefix("mistake: ").into_iter();
            for rule in rules.flat_map(|rules| rules.trim().split(", ")) {
                mistakes.push(Mistake {
                    lines: of_line.clone(),
                    rule: rule.trim_end_matches(" fixable").to_owned(),
                    is_fixable: rule.ends_with(" fixable"),
                });
            }
        }
    }
    Marks { mistakes, n_gaps }
}

/// Returns the findings of a check: line, rule and severity.
fn findings(json: &str) -> Vec<(usize, String, String)> {
    let report: Value = serde_json::from_str(json).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    // Equal findings of an object are merged. The other locations are in `also`.
    findings
        .flat_map(|it| {
            let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
            let (rule, severity) = (text("rule"), text("severity"));
            let others = it["also"].as_array().into_iter().flatten();
            let lines = std::iter::once(it).chain(others).map(|place| {
                let line = usize::try_from(place["line"].as_u64().unwrap_or(0)).unwrap();
                (line, rule.clone(), severity.clone())
            });
            lines.collect::<Vec<_>>()
        })
        .collect()
}

fn drafts() -> Vec<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/first_drafts");
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let drafts: BTreeSet<PathBuf> = entries.collect();
    drafts.into_iter().collect()
}

#[test]
fn first_check_reports_mistakes_and_one_fix_corrects_them() {
    let mut problems = Vec::new();
    let (mut n_mistakes, mut n_reported, mut n_gaps, mut n_drafts, mut n_green) = (0, 0, 0, 0, 0);
    for draft in drafts() {
        let name = draft.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&draft).unwrap();
        let written = marks(&text);
        n_drafts += 1;
        n_gaps += written.n_gaps;
        n_mistakes += written.mistakes.len() + written.n_gaps;
        let first = findings(&vap(&["check", draft.to_str().unwrap(), "-o", "json"], "").out);
        for mistake in &written.mistakes {
            let is_reported = |(line, rule, _): &(usize, String, String)| {
                mistake.lines.contains(line) && *rule == mistake.rule
            };
            if first.iter().any(is_reported) {
                n_reported += 1;
            } else {
                problems.push(format!(
                    "{name}:{}: {} is not reported",
                    mistake.lines.start(),
                    mistake.rule
                ));
            }
        }

        let path = directory("first_drafts", &[(name, &text)]).join(name);
        let path = path.to_str().unwrap();
        let after = findings(&vap(&["check", path, "--fix", "-o", "json"], "").out);
        let fixed = marks(&fs::read_to_string(path).unwrap());
        if fixed.mistakes.len() != written.mistakes.len() {
            problems.push(format!("{name}: --fix changes the comments"));
        }
        for mistake in fixed.mistakes.iter().filter(|mistake| mistake.is_fixable) {
            let remains = |(line, rule, _): &(usize, String, String)| {
                mistake.lines.contains(line) && *rule == mistake.rule
            };
            if after.iter().any(remains) {
                problems.push(format!(
                    "{name}:{}: {} is not fixed",
                    mistake.lines.start(),
                    mistake.rule
                ));
            }
        }
        let mut bad = after.iter().filter(|(_, _, severity)| severity != "note");
        if written.n_gaps == 0 && written.mistakes.iter().all(|mistake| mistake.is_fixable) {
            n_green += 1;
            if let Some((line, rule, _)) = bad.next() {
                problems.push(format!("{name}:{line}: {rule} remains after --fix"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(n_drafts >= MIN_DRAFTS && n_mistakes >= MIN_MISTAKES && n_green > 0);
    assert_eq!(n_reported + n_gaps, n_mistakes);
    assert!(
        n_reported * 100 >= n_mistakes * MIN_REPORTED,
        "{n_reported} of {n_mistakes} mistakes are reported"
    );
}

/// A policy in which each fix uncovers a new mistake: each renamed key contains another misspelled name.
const NESTED: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nested}
spec:
  matchConstraint:
    resourceRule:
    - {apiGroups: [app], apiVersions: [v1], operations: [create], resources: [deployment]}
  validation:
  - expresion: object.spec.replica <= '5' and object.metadata.name.startWith('Größe')
";

#[test]
fn fixes_are_applied_in_rounds_and_keep_line_endings() {
    for text in [NESTED.to_owned(), NESTED.replace('\n', "\r\n")] {
        let path = directory("fix_rounds", &[("nested.yaml", &text)]).join("nested.yaml");
        let path = path.to_str().unwrap();
        let dry = vap(&["check", path, "--diff", "-o", "json"], "");
        let dry: Value = serde_json::from_str(&dry.out).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), text);
        let report: Value =
            serde_json::from_str(&vap(&["check", path, "--fix", "-o", "json"], "").out).unwrap();
        assert_eq!(
            (&dry["fixes"][0]["fixed"], &report["fixes"][0]["fixed"]),
            (&11.into(), &11.into())
        );
        let wanted = text
            .replace("matchConstraint:", "matchConstraints:")
            .replace("resourceRule:", "resourceRules:")
            .replace("[app]", "[apps]")
            .replace("create", "CREATE")
            .replace("[deployment]", "[deployments]")
            .replace("validation:", "validations:")
            .replace("expresion", "expression")
            .replace("replica <= '5' and", "replicas <= 5 &&")
            .replace("startWith", "startsWith");
        assert_eq!(fs::read_to_string(path).unwrap(), wanted);
    }
}
