//! Runs the test cases of the language in Markdown files, `tests/cases/<pass>/<topic>.md`. `tests/fast/policies.rs`
//! runs cases of whole policies, and `tests/fast/costs.rs` runs cases of costs.
//!
//! The language of a code block determines its content:
//!
//! - `vars`: variables for the following blocks, `name: type`.
//! - `functions`: functions for the following blocks, `id: name(type) -> type`.
//! - `types`: object types, `name { field: type; ... }`, and constants, `name = number`.
//! - `cel`: cases, separated by blank lines. A case is an expression and its expected results. Each result is a comment
//!   on its own line.
//! - `cel-json`: like `cel`, but the expression is a JSON string. This is for characters that editors change.
//!
//! If `plain` follows the language, the environment is only cel-go's standard library, without the validators of
//! Kubernetes. If `same-type` follows it, numbers of different types cannot be compared.
//!
//! | comment | expected result |
//! |---|---|
//! | `// type: T` | the expression compiles and has the type `T` |
//! | `// error: LINE:COLUMN: TEXT` | a finding; all findings must be listed, in the order of their locations |
//! | `// syntax error: LINE:COLUMN, ...` | the expression does not parse, and has findings at exactly these locations |
//! | `// upstream error: LINE:COLUMN: TEXT` | a finding of the parser with upstream's message; all findings, in order |
//! | `// tree: TREE` | the syntax tree, in the format of cel-go's tests without white space |
//! | `// places: TREE` | the syntax tree with the location of each node |
//! | `// checked: TREE` | the syntax tree with the type and overload of each node |

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::decls::{Overload, OverloadRow};
use vap_status_controller::cel::diagnostic::Diagnostics;
use vap_status_controller::cel::env::{Env, Library};
use vap_status_controller::cel::stdlib;
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::{OPTIONAL_TYPE, Type};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::version::KubernetesVersion;

#[path = "../support/notation.rs"]
mod notation;
#[path = "../support/tree.rs"]
mod tree;

use notation::Objects;

/// Declarations and checking mode of a block's cases.
#[derive(Default)]
struct Setting {
    objects: Objects,
    variables: Vec<Variable>,
    overloads: Vec<Overload>,
    plain: bool,
    same_type: bool,
}

/// Returns true if the overload `row` compares numbers of two different types.
///
/// Source: cel-go `checker/env.go`, `crossTypeNumericComparisonOverloads`.
fn is_cross_type(row: &OverloadRow) -> bool {
    matches!(row.function, "_<_" | "_<=_" | "_>_" | "_>=_")
        && matches!(row.args, [left, right] if left != right)
}

impl Setting {
    fn env(&self) -> Env {
        let mut library = if self.plain {
            let mut library = Library::default();
            stdlib::add_types_to(&mut library);
            let rows = stdlib::TABLES.iter().copied().flatten();
            let rows = rows.filter(|row| !(self.same_type && is_cross_type(row)));
            rows.for_each(|row| library.add_overload(Overload::new(row)));
            library.add_type(OPTIONAL_TYPE, Type::opaque(OPTIONAL_TYPE, Vec::new()));
            library
        } else {
            Library::clone(base_env(KubernetesVersion::DEFAULT).library())
        };
        for overload in &self.overloads {
            library.add_overload(overload.clone());
        }
        self.objects.add_to(&mut library);
        Env::new(Arc::new(library)).extend_types(self.objects.types())
    }
}

#[test]
fn language_cases_have_expected_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut n_cases = 0;
    let mut failures = String::new();
    for file in markdown_files(&root) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut setting = Setting::default();
        for block in blocks(&text) {
            let mut words = block.language.split(' ');
            let language = words.next().unwrap_or_default();
            (setting.plain, setting.same_type) = (false, false);
            for word in words {
                match word {
                    "plain" => setting.plain = true,
                    "same-type" => {
                        assert!(setting.plain, "`same-type` follows `plain`");
                        setting.same_type = true;
                    }
                    other => panic!("{}: a block is {other:?}", file.display()),
                }
            }
            let lines = || block.lines.iter();
            match language {
                "types" => setting.objects = Objects::read(&block.lines),
                "vars" => {
                    let variable = |line: &&str| notation::variable(line, &setting.objects);
                    setting.variables = lines().map(variable).collect();
                }
                "functions" => {
                    let overload = |line: &&str| notation::overload(line, &setting.objects);
                    setting.overloads = lines().map(overload).collect();
                }
                "cel" | "cel-json" => {
                    for case in block.lines.split(|line| line.trim().is_empty()) {
                        if case.is_empty() {
                            continue;
                        }
                        n_cases += 1;
                        if let Err(difference) = check_case(case, language, &setting) {
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
            if path.ends_with("cases/policy") || path.ends_with("cases/cost") {
                // tests/fast/policies.rs and tests/fast/costs.rs run the cases in these directories.
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

/// The kinds of expected results. `type` and `error` are results of the same check, so a case may have both.
const KINDS: [&str; 7] = [
    "type",
    "error",
    "syntax error",
    "upstream error",
    "tree",
    "places",
    "checked",
];

fn kind_of(line: &str) -> Option<&'static str> {
    let comment = line.strip_prefix("// ")?;
    KINDS.into_iter().find(|kind| {
        comment
            .strip_prefix(kind)
            .is_some_and(|c| c.starts_with(": "))
    })
}

fn check_case(case: &[&str], language: &str, setting: &Setting) -> Result<(), String> {
    let (expected, source): (Vec<&str>, Vec<&str>) =
        case.iter().partition(|line| kind_of(line).is_some());
    assert!(!expected.is_empty(), "no expected result for {source:?}");
    let mut text = source.join("\n");
    if language == "cel-json" {
        text = serde_json::from_str(&text).unwrap();
    }
    let mut actual = Vec::new();
    let mut kinds: Vec<_> = expected.iter().filter_map(|line| kind_of(line)).collect();
    kinds.dedup();
    for kind in kinds {
        actual.extend(describe(kind, &text, setting));
    }
    if actual == expected {
        return Ok(());
    }
    Err(format!(
        "{text}\n  expected {}\n  actual   {}",
        expected.join(" | "),
        actual.join(" | ")
    ))
}

/// Returns the results of an expression as comments of the kind `kind`.
fn describe(kind: &str, text: &str, setting: &Setting) -> Vec<String> {
    if kind == "upstream error" {
        return errors(
            kind,
            &antlr::findings(text, KubernetesVersion::DEFAULT.behavior().language),
        );
    }
    let (ast, found) = syntax::parse(text);
    let Some(ast) = ast else {
        return if kind == "syntax error" {
            let mut places: Vec<_> = found.as_slice().iter().map(|d| d.location).collect();
            places.sort();
            let places = places
                .iter()
                .map(|at| format!("{}:{}", at.line, at.column + 1));
            let places: Vec<_> = places.collect();
            vec![format!("// {kind}: {}", places.join(", "))]
        } else {
            errors("error", &found)
        };
    };
    match kind {
        "tree" => return vec![format!("// {kind}: {}", tree::plain(&ast))],
        "places" => return vec![format!("// {kind}: {}", tree::places(&ast, text))],
        _ => {}
    }
    let env = setting.env().extend(setting.variables.iter().cloned());
    let (checked, mut found) = checker::check(&Arc::new(ast), text, &env);
    if found.is_empty() && !setting.plain {
        ast_validators::validate(&checked, &env, text, &mut found);
    }
    if !found.is_empty() {
        return errors("error", &found);
    }
    match kind {
        "checked" => vec![format!("// {kind}: {}", tree::checked(&checked))],
        _ => vec![format!(
            "// type: {}",
            checked.output_type().declared_string()
        )],
    }
}

fn errors(kind: &str, found: &Diagnostics) -> Vec<String> {
    let mut sorted: Vec<_> = found.as_slice().iter().collect();
    sorted.sort_by_key(|diagnostic| diagnostic.location);
    sorted
        .iter()
        .map(|d| {
            format!(
                "// {kind}: {}:{}: {}",
                d.location.line,
                d.location.column + 1,
                d.to_string().replace('\n', "\\n")
            )
        })
        .collect()
}
