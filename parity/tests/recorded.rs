//! Compares our results with recorded results of upstream in all supported versions. The comparison needs neither Go nor
//! an oracle.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use parity::bench::Stage;
use parity::recorded::{self, TABLES, Table};

fn table(name: &str) -> Table {
    let table = fs::read_to_string(recorded::path(name)).unwrap();
    table.parse().unwrap()
}

fn repository_file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(path).unwrap()
}

#[track_caller]
fn check(stage: Stage, fewest: usize) {
    let (_, name) = TABLES.into_iter().find(|table| table.0 == stage).unwrap();
    let table = table(name);
    assert!(table.cases.len() >= fewest, "{} cases", table.cases.len());
    let documented = repository_file("docs/versions.md");
    let differences = recorded::differences(stage, &table, &documented).unwrap();
    let n_differences = differences.len();
    let shown: Vec<_> = differences.into_iter().take(20).collect();
    assert!(
        shown.is_empty(),
        "{n_differences} differences in {name}.txt:\n{}",
        shown.join("\n")
    );
}

#[test]
fn expressions_have_the_results_of_each_version() {
    check(Stage::Eval, 300);
}

#[test]
fn admissions_have_the_results_of_each_version() {
    check(Stage::Admit, 30);
}

#[test]
fn policies_compile_as_in_each_version() {
    check(Stage::Compile, 40);
}

#[test]
fn policies_have_the_warnings_of_each_version() {
    check(Stage::Typecheck, 40);
}

#[test]
fn tables_have_the_releases_of_the_recipe() {
    let dev = repository_file("dev");
    let list = dev.split_once("readonly RECORDED_VERSIONS=(").unwrap().1;
    let expected: Vec<_> = list.split_once(')').unwrap().0.split(' ').collect();
    for (_, name) in TABLES {
        let releases = table(name).releases;
        let releases: Vec<_> = releases.iter().map(ToString::to_string).collect();
        assert_eq!(releases, expected, "{name}");
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
    recorded::differences(Stage::Eval, &table, DOCUMENTED).unwrap()
}

#[test]
fn table_round_trips() {
    let table: Table = TABLE.parse().unwrap();
    let written = table.to_string();
    assert!(written.ends_with(TABLE), "{written}");
    assert_eq!(written.parse::<Table>().unwrap(), table);
}

#[test]
fn other_result_is_a_difference_in_its_versions() {
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

#[test]
fn missing_version_is_an_error() {
    let table: Table = TABLE.replace(" 1.37.2", "").parse().unwrap();
    assert!(recorded::differences(Stage::Eval, &table, DOCUMENTED).is_err());
    let table: Table = TABLE
        .replace("1.33 to 1.37", "1.33 to 1.36")
        .parse()
        .unwrap();
    assert!(recorded::differences(Stage::Eval, &table, DOCUMENTED).is_err());
}
