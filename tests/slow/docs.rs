//! Tests README.md and the pages in docs. The output of their console sessions must be up to date, their links must
//! resolve, and their code blocks must not be too wide.
//!
//! This test runs the sessions of `kubectl vap check`, `test`, `explain`, `eval`, `audit`, `diff` and `upgrade-check`. It
//! does not run sessions that require a cluster. The line before such a session is `<!-- cluster: COMMAND -->`. The
//! command regenerates the output.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum width of a line in a code block, in columns. It is also the terminal width of the sessions.
const MAX_COLUMNS: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Adds all Markdown files in `folder`.
fn pages_below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.insert(path);
        }
    }
}

/// Returns the pages in docs and in the root of the repository.
fn pages() -> BTreeSet<PathBuf> {
    let names = ["README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY"];
    let mut findings = BTreeSet::from(names.map(|name| root().join(format!("{name}.md"))));
    pages_below(&root().join("docs"), &mut findings);
    findings
}

/// A code block of the language `console`.
struct Block {
    place: String,
    is_of_cluster: bool,
    lines: Vec<String>,
}

impl Block {
    /// Returns the commands in the block, and the output of each.
    fn commands(&self) -> Vec<(&str, String)> {
        let mut commands: Vec<(&str, String)> = Vec::new();
        for line in &self.lines {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push((command, String::new()));
            } else {
                let place = &self.place;
                let last = commands.last_mut();
                let (_, output) = last.unwrap_or_else(|| panic!("{place}: no command"));
                output.push_str(line);
                output.push('\n');
            }
        }
        commands
    }
}

fn blocks(path: &Path) -> Vec<Block> {
    let text = fs::read_to_string(path).unwrap();
    let mut blocks = Vec::new();
    let mut before = "";
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line == "```console" {
            let body = lines.by_ref().map(|(_, line)| line);
            blocks.push(Block {
                place: format!("{}:{}", path.display(), index + 1),
                is_of_cluster: before.starts_with("<!-- cluster: "),
                lines: body
                    .take_while(|line| *line != "```")
                    .map(str::to_owned)
                    .collect(),
            });
        }
        before = line;
    }
    blocks
}

/// Returns the arguments of a command that requires no cluster. Returns `None` for other commands.
fn offline(command: &str) -> Option<Vec<&str>> {
    let arguments: Vec<_> = command.strip_prefix("kubectl vap ")?.split(' ').collect();
    [
        "check",
        "test",
        "explain",
        "eval",
        "audit",
        "diff",
        "upgrade-check",
    ]
    .contains(&arguments[0])
    .then_some(arguments)
}

#[test]
fn console_sessions_match_output() {
    let (mut n_run, mut n_of_cluster) = (0, 0);
    for block in pages().iter().flat_map(|page| blocks(page)) {
        let place = &block.place;
        for (command, shown) in block.commands() {
            let Some(arguments) = offline(command) else {
                assert!(
                    block.is_of_cluster,
                    "{place}: `{command}` is not run by this test, but its block is not marked as requiring a cluster"
                );
                n_of_cluster += 1;
                continue;
            };
            assert!(
                !block.is_of_cluster,
                "{place}: `{command}` requires no cluster"
            );
            assert!(
                !command.contains(['|', '<', '>', '\'', '"', '\\', '$']),
                "{place}: `{command}` needs a shell"
            );
            let output = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
                .args(arguments)
                .current_dir(root())
                .env("COLUMNS", MAX_COLUMNS.to_string())
                .output()
                .unwrap();
            assert_eq!(
                String::from_utf8(output.stderr).unwrap(),
                "",
                "{place}: {command}"
            );
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed, shown, "{place}: {command}");
            n_run += 1;
        }
    }
    // If a session is newly marked as requiring a cluster, the expected number of such sessions must be changed.
    assert!(n_run >= 5, "only {n_run} sessions were run");
    assert_eq!(n_of_cluster, 7, "number of sessions that require a cluster");
}

#[test]
fn docs_code_blocks_fit_the_page() {
    let mut n_lines = 0;
    for page in pages() {
        for block in blocks(&page) {
            for line in &block.lines {
                n_lines += 1;
                assert!(
                    line.chars().count() <= MAX_COLUMNS,
                    "{}: {line}",
                    block.place
                );
            }
        }
    }
    assert!(n_lines > 50, "{n_lines}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for row in readme.lines().filter(|line| line.starts_with('|')) {
        assert!(row.chars().count() <= MAX_COLUMNS, "README.md: {row}");
    }
}

/// Returns the targets of links and of `{{#include …}}` in a page. Anchors and external URLs are omitted.
fn targets(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        target.split('#').next()
    });
    let included = text.split("{{#include ").skip(1);
    let included = included.filter_map(|rest| Some(rest.split_once("}}")?.0));
    links
        .chain(included)
        .filter(|target| !target.is_empty() && !target.contains([':', ' ', '`']))
        .collect()
}

#[test]
fn links_refer_to_existing_files() {
    let mut n_links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&text) {
            n_links += 1;
            assert!(
                page.parent().unwrap().join(target).exists(),
                "{} links to {target}, which does not exist",
                page.display()
            );
        }
    }
    assert!(n_links > 50, "{n_links}");
}

#[test]
fn summary_lists_each_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<_> = targets(&summary).into_iter().collect();
    let mut pages = BTreeSet::new();
    pages_below(&root().join("docs"), &mut pages);
    for page in pages {
        let name = page.strip_prefix(root().join("docs")).unwrap();
        let name = name.to_str().unwrap();
        // The documentation site does not contain the ADRs.
        if name == "SUMMARY.md" || name.starts_with("adr/") {
            continue;
        }
        assert!(
            listed.contains(name),
            "docs/SUMMARY.md does not list {name}"
        );
        let text = fs::read_to_string(&page).unwrap();
        let to_decision = targets(&text).into_iter().find(|it| it.contains("adr/"));
        assert_eq!(
            to_decision, None,
            "{name} links to a page that is not part of the site"
        );
    }
}
