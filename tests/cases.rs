//! Cases of the language as Markdown: `tests/cases/<pass>/<topic>.md`.
//!
//! A block of language `vars` declares variables (`name: type`) for the blocks below it. A block of
//! language `cel` holds cases parted by blank lines: an expression, then what must be said of it, each as a
//! comment of its own line: `// type: T` for the type of a sound expression, `// error: LINE:COLUMN: TEXT`
//! for each finding, in the order of their places. Cases of costs are in `tests/costs.rs`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::diagnostic::Diagnostics;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::library::environment::{KubernetesVersion, base_env};

#[test]
fn cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut n_cases = 0;
    let mut failures = String::new();
    for file in markdown_files(&root) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut variables = Vec::new();
        for block in blocks(&text) {
            match block.language {
                "vars" => variables = block.lines.iter().map(|line| variable(line)).collect(),
                "cel" => {
                    for case in block.lines.split(|line| line.trim().is_empty()) {
                        if case.is_empty() {
                            continue;
                        }
                        n_cases += 1;
                        if let Err(difference) = check_case(case, &variables) {
                            let _ = writeln!(failures, "{}: {difference}", file.display());
                        }
                    }
                }
                other => panic!("{}: a block of language {other:?}", file.display()),
            }
        }
    }
    assert!(n_cases > 100, "only {n_cases} cases found");
    assert!(failures.is_empty(), "\n{failures}");
}

fn markdown_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("cases/cost") {
                // Those are of tests/costs.rs.
            } else if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

struct Block<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => {
                blocks.extend(open.take());
            }
            (Some(language), None) => {
                open = Some(Block {
                    language,
                    lines: Vec::new(),
                });
            }
            (None, Some(block)) => block.lines.push(line),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn check_case(case: &[&str], variables: &[Variable]) -> Result<(), String> {
    let (expected, source): (Vec<&str>, Vec<&str>) = case
        .iter()
        .partition(|line| line.starts_with("// type: ") || line.starts_with("// error: "));
    assert!(!expected.is_empty(), "nothing is expected of {source:?}");
    let text = source.join("\n");
    let actual = describe(&text, variables);
    if actual == expected {
        return Ok(());
    }
    Err(format!(
        "{text}\n  expected {}\n  actual   {}",
        expected.join(" | "),
        actual.join(" | ")
    ))
}

fn describe(text: &str, variables: &[Variable]) -> Vec<String> {
    let env: Env = base_env(KubernetesVersion::LATEST).extend(variables.iter().cloned());
    let (ast, found) = syntax::parse(text);
    let Some(ast) = ast else {
        return errors(&found);
    };
    let (checked, mut found) = checker::check(&Arc::new(ast), text, &env);
    if found.is_empty() {
        ast_validators::validate(&checked, text, &mut found);
    }
    if found.is_empty() {
        vec![format!(
            "// type: {}",
            checked.output_type().declared_string()
        )]
    } else {
        errors(&found)
    }
}

fn errors(found: &Diagnostics) -> Vec<String> {
    let mut sorted: Vec<_> = found.as_slice().iter().collect();
    sorted.sort_by_key(|diagnostic| diagnostic.location);
    sorted
        .iter()
        .map(|d| {
            format!(
                "// error: {}:{}: {}",
                d.location.line,
                d.location.column + 1,
                d.message
            )
        })
        .collect()
}

fn variable(line: &str) -> Variable {
    let (name, type_) = line.split_once(": ").unwrap();
    Variable::new(name, parse_type(type_.trim()))
}

fn parse_type(text: &str) -> Type {
    if let Some(inner) = text
        .strip_prefix("list(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return Type::list(parse_type(inner));
    }
    if let Some(inner) = text
        .strip_prefix("map(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let (key, value) = inner.split_once(", ").unwrap();
        return Type::map(parse_type(key), parse_type(value));
    }
    if let Some(inner) = text
        .strip_prefix("optional_type(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return Type::optional(parse_type(inner));
    }
    match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        opaque => Type::opaque(opaque, Vec::new()),
    }
}
