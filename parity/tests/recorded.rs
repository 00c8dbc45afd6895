//! Compares our results with recorded results of upstream in all supported versions. The comparison needs neither Go nor
//! an oracle.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use parity::recorded::{self, Table, TableKind, hand};
use vap_status_controller::policy::version_changes::{self, Since};

fn repository_file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(path).unwrap()
}

#[track_caller]
fn check(kind: TableKind, fewest: usize) {
    let (name, table) = (kind.name(), kind.load().unwrap());
    assert!(table.cases.len() >= fewest, "{} cases", table.cases.len());
    let documented = repository_file("docs/versions.md");
    let differences = recorded::differences(kind, &table, &documented).unwrap();
    let n_differences = differences.len();
    let shown: Vec<_> = differences.into_iter().take(20).collect();
    assert!(
        shown.is_empty(),
        "{n_differences} differences in {name}.txt:\n{}",
        shown.join("\n")
    );
}

#[test]
fn expressions_have_recorded_results_in_each_version() {
    check(TableKind::Expressions, 300);
}

#[test]
fn admissions_have_recorded_results_in_each_version() {
    check(TableKind::Admissions, 30);
}

#[test]
fn policies_compile_as_in_each_version() {
    check(TableKind::Compilations, 40);
}

#[test]
fn policies_have_recorded_warnings_in_each_version() {
    check(TableKind::TypeChecks, 40);
}

#[test]
fn definitions_have_recorded_errors_and_costs_in_each_version() {
    check(TableKind::Definitions, 15);
}

#[test]
fn custom_resources_have_recorded_results_in_each_version() {
    check(TableKind::CustomResources, 10);
}

#[test]
fn mutations_have_recorded_results_in_each_version() {
    check(TableKind::Mutations, 3);
}

#[test]
fn tables_have_all_hand_written_cases() {
    for kind in TableKind::ALL {
        let table = kind.load().unwrap();
        for case in hand::cases(kind).unwrap() {
            let is_recorded = table.cases.iter().any(|recorded| recorded.text == case);
            assert!(is_recorded, "run ./dev record-versions: {case}");
        }
    }
}

/// The changes for which the oracle has no command, each with the file that tests our behavior.
const UNRECORDED: [(&str, &str); 3] = [
    ("new-defaults", "parity/tests/defaults.rs"),
    ("static-names", "tests/cli_upgrade/static-name.yaml"),
    ("webhooks-skip-reviews", "crates/policy/src/exempt.rs"),
];

/// Every change listed in the table in docs/versions.md has a case whose upstream result changes in the same release.
/// Every other hand-written change has a case whose upstream result changes in some release.
#[test]
fn every_change_has_a_case_with_a_changed_result() {
    let tables = TableKind::ALL.map(|kind| (kind.name(), kind.load().unwrap()));
    let tables: HashMap<_, _> = tables.into_iter().collect();
    let changes = hand::changes().unwrap();
    let has_changing_case = |name: &str, since: Option<Since>| {
        let change = changes.iter().find(|change| change.name == name);
        let cases = change.into_iter().flat_map(|change| &change.cases);
        cases.into_iter().any(|(kind, text)| {
            let table = &tables[kind.name()];
            let case = table.cases.iter().find(|case| case.text == *text);
            let releases = table.releases.iter().zip(table.releases.iter().skip(1));
            let mut releases = releases.filter(|(old, new)| {
                since.is_none_or(|since| since.includes(**new) && !since.includes(**old))
            });
            case.is_some_and(|case| releases.any(|(old, new)| case.differs_between(*old, *new)))
        })
    };
    let mut missing = Vec::new();
    for change in version_changes::ALL {
        if !UNRECORDED.iter().any(|(id, _)| *id == change.id)
            && !has_changing_case(change.id, Some(change.since))
        {
            missing.push(change.id);
        }
    }
    for change in &changes {
        if !has_changing_case(&change.name, None) {
            missing.push(&change.name);
        }
    }
    assert!(missing.is_empty(), "no case that changes: {missing:?}");
}

#[test]
fn recorded_tables_have_the_releases_listed_in_dev() {
    let dev = repository_file("dev");
    let list = dev.split_once("readonly RECORDED_VERSIONS=(").unwrap().1;
    let expected: Vec<_> = list.split_once(')').unwrap().0.split(' ').collect();
    for kind in TableKind::ALL {
        let releases = kind.load().unwrap().releases;
        let releases: Vec<_> = releases.iter().map(ToString::to_string).collect();
        let is_included = |release: &&&str| kind.includes(release.parse().unwrap());
        let expected: Vec<_> = expected.iter().filter(is_included).copied().collect();
        assert_eq!(releases, expected, "{}", kind.name());
    }
}

/// A table with one expression. Its results are those of upstream.
const TABLE: &str = "\
# Releases: 1.30.14 1.31.14 1.32.13 1.33.13 1.34.13 1.35.10 1.36.3 1.37.2

[1].first()
  1.30 to 1.32: error at 1:10: undeclared reference to 'first' (in container '')
  1.33 to 1.37: optional(1), optional_type(int), cost 1, estimated 11
";

const DOCUMENTED: &str = "The differences:\n- In 1.30, a list has no elements.\n";

fn differences(table: &str) -> Vec<String> {
    let table: Table = table.parse().unwrap();
    recorded::differences(TableKind::Expressions, &table, DOCUMENTED).unwrap()
}

#[test]
fn table_round_trips() {
    let table: Table = TABLE.parse().unwrap();
    let written = table.to_string();
    assert!(written.ends_with(TABLE), "{written}");
    assert_eq!(written.parse::<Table>().unwrap(), table);
}

#[test]
fn different_result_is_reported_for_each_version() {
    let actual = differences(&TABLE.replace("optional(1)", "optional(2)"));
    let starts = [
        "1.33.13: [1].first()",
        "1.34.13",
        "1.35.10",
        "1.36.3",
        "1.37.2",
    ];
    assert_eq!(actual.len(), starts.len(), "{actual:?}");
    for (difference, start) in actual.iter().zip(starts) {
        assert!(difference.starts_with(start), "{difference}");
    }
}

#[test]
fn marked_difference_must_exist_and_be_documented() {
    let other = TABLE.replace("1.30 to 1.32: error", "1.30: 1\n  1.31 to 1.32: error");
    let marked = |reason: &str| format!("{other}  not reproduced in 1.30: {reason}\n");
    assert_eq!(differences(&marked("In 1.30, a list")), [""; 0]);
    for (table, problem) in [
        (marked("?"), "docs/versions.md has no list item `?`"),
        (
            format!("{TABLE}  not reproduced in 1.30: In 1.30, a list\n"),
            "the marked difference no longer exists",
        ),
    ] {
        let actual = differences(&table);
        assert_eq!(actual.len(), 1, "{actual:?}");
        assert!(actual[0].contains(problem), "{actual:?}");
    }
}

/// The result of upstream changed in 1.32.4.
const PATCH_RELEASES: &str = "\
# Releases: 1.30.14 1.31.14 1.32.3 1.32.13 1.33.13 1.34.13 1.35.10 1.36.3 1.36.6 1.37.2

cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
  1.30 to 1.31: false, bool, cost 2, estimated 6 to 10
  1.32.3: false, bool, cost 6, estimated 6 to 10
  1.32.13 to 1.37: true, bool, cost 6, estimated 6 to 10
";

#[test]
fn patch_releases_of_a_minor_version_can_have_different_results() {
    let table: Table = PATCH_RELEASES.parse().unwrap();
    assert!(table.to_string().ends_with(PATCH_RELEASES));
    let starts = |table: String| -> Vec<String> {
        let differences = differences(&table);
        let versions = differences
            .iter()
            .map(|text| text.split(':').next().unwrap());
        versions.map(ToOwned::to_owned).collect()
    };
    assert_eq!(starts(PATCH_RELEASES.to_owned()), [""; 0]);
    let swapped = PATCH_RELEASES.replace("1.32.3: false", "1.32.3: true");
    assert_eq!(starts(swapped), ["1.32.3"]);
    let swapped = PATCH_RELEASES.replace("1.37: true", "1.37: false");
    assert_eq!(starts(swapped)[0], "1.32.13");
}

#[test]
fn missing_version_is_an_error() {
    let table: Table = TABLE.replace(" 1.37.2", "").parse().unwrap();
    assert!(recorded::differences(TableKind::Expressions, &table, DOCUMENTED).is_err());
    let table: Table = TABLE
        .replace("1.33 to 1.37", "1.33 to 1.36")
        .parse()
        .unwrap();
    assert!(recorded::differences(TableKind::Expressions, &table, DOCUMENTED).is_err());
}
