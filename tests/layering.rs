//! Who may import whom, held against every file of `src`.
//!
//! The test reads paths, not `use` lines alone: `crate::…`, `super::…` up to the root of the crate,
//! and the names of outside crates, wherever they stand in the code. Comments and texts do not count.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// A module of the root, what it may import, and the sentence that says so.
struct Layer {
    name: &'static str,
    may_import: &'static [&'static str],
    rule: &'static str,
}

const BELOW_STATUS: &[&str] = &["status", "probe", "policy", "library", "schema", "cel"];

const LAYERS: [Layer; 12] = [
    Layer {
        name: "cel",
        may_import: &[],
        rule: "`cel` imports nothing of ours.",
    },
    Layer {
        name: "telemetry",
        may_import: &[],
        rule: "`telemetry` imports nothing of ours.",
    },
    Layer {
        name: "library",
        may_import: &["cel"],
        rule: "`library` imports `cel`, and neither `schema` nor what is above.",
    },
    Layer {
        name: "schema",
        may_import: &["cel"],
        rule: "`schema` imports `cel`, and neither `library` nor what is above.",
    },
    Layer {
        name: "policy",
        may_import: &["library", "schema", "cel"],
        rule: "`policy` imports `library`, `schema` and `cel`; nothing points back.",
    },
    Layer {
        name: "status",
        may_import: &["probe", "policy", "library", "schema", "cel"],
        rule: "`status` imports `probe`, `policy` and what is below it; nothing points back.",
    },
    Layer {
        name: "controller",
        may_import: &[
            "status",
            "probe",
            "policy",
            "library",
            "schema",
            "cel",
            "telemetry",
        ],
        rule: "`controller` imports `status` and what is below it, and `telemetry`.",
    },
    Layer {
        name: "server",
        may_import: &["telemetry"],
        rule: "`server` imports `telemetry` alone; readiness is a closure from main.rs.",
    },
    Layer {
        name: "cli",
        may_import: BELOW_STATUS,
        rule: "`cli` imports `status` and what is below it, never `controller`: offline means offline.",
    },
    Layer {
        name: "main",
        may_import: &[
            "controller",
            "server",
            "telemetry",
            "status",
            "probe",
            "policy",
            "library",
            "schema",
            "cel",
        ],
        rule: "main.rs wires `controller`, `server` and `telemetry`, and does not import `cli`.",
    },
    Layer {
        name: "bin",
        may_import: &[
            "cli", "status", "probe", "policy", "library", "schema", "cel",
        ],
        rule: "A kubectl plugin imports `cli` and what is below it, never `controller`.",
    },
    Layer {
        name: "probe",
        may_import: &["policy", "library", "schema", "cel"],
        rule: "`probe` imports `policy` and what is below it; nothing points back.",
    },
];

const API_RULE: &str = "`k8s-openapi` types from `policy` up.";
const API_LAYERS: [&str; 8] = [
    "policy",
    "probe",
    "status",
    "controller",
    "server",
    "cli",
    "main",
    "bin",
];

const IO_RULE: &str = "`kube`, `tokio`, `futures` and HTTP crates only in `controller`, `server`, \
                       `telemetry` and main.rs, in cli/status.rs, which reads the cluster, and in probe/, \
                       whose CRD `kube` derives.";
const IO_CRATES: [&str; 11] = [
    "futures",
    "http",
    "http_body_util",
    "hyper",
    "hyper_timeout",
    "hyper_util",
    "kube",
    "kube_runtime",
    "tokio",
    "tokio_util",
    "tower",
];
const IO_LAYERS: [&str; 4] = ["controller", "server", "telemetry", "main"];
/// The files (and what is below them) that may do I/O in a layer that else may not.
const IO_EXCEPTIONS: [&str; 2] = ["cli::status", "probe"];

const CLOCK_RULE: &str =
    "Nothing up to `status` reads a clock: what depends on the time is given it.";
const CLOCKLESS: [&str; 7] = [
    "cel", "library", "schema", "policy", "probe", "status", "bin",
];

const LAYOUT_RULE: &str = "Every module of the root is one of the layers.";

/// A file: its module path from the root of the crate, and its text.
struct Source {
    path: PathBuf,
    module: Vec<String>,
    text: String,
}

#[test]
fn every_import_points_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let sources = sources(&root);
    assert!(
        sources.len() > 20,
        "only {} files below {}",
        sources.len(),
        root.display()
    );
    let violations: Vec<String> = sources.iter().flat_map(violations).collect();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn a_forbidden_import_is_found() {
    for (file, code, wanted) in [
        ("cel/env.rs", "use crate::library::limits;", LAYERS[0].rule),
        (
            "cel/checker/mod.rs",
            "use super::super::schema::Gvk;",
            LAYERS[0].rule,
        ),
        ("cel/env.rs", "fn f(x: &k8s_openapi::List) {}", API_RULE),
        ("telemetry/mod.rs", "use crate::cel;", LAYERS[1].rule),
        (
            "library/mod.rs",
            "use crate::{cel, schema::Gvk};",
            LAYERS[2].rule,
        ),
        (
            "schema/mod.rs",
            "fn f() { crate::policy::param_kind(p) }",
            LAYERS[3].rule,
        ),
        (
            "policy/mod.rs",
            "use crate::{\n    cel::{self, env},\n    status,\n};",
            LAYERS[4].rule,
        ),
        ("policy/mod.rs", "use super::status;", LAYERS[4].rule),
        ("policy/mod.rs", "fn f() { let c: kube::Client; }", IO_RULE),
        ("policy/mod.rs", "use {tokio::sync, std::fmt};", IO_RULE),
        (
            "status/mod.rs",
            "fn f() { let now = Timestamp::now(); }",
            CLOCK_RULE,
        ),
        ("controller/mod.rs", "use crate::cli;", LAYERS[6].rule),
        ("server/mod.rs", "use crate::controller;", LAYERS[7].rule),
        ("cli/mod.rs", "use crate::controller;", LAYERS[8].rule),
        ("cli/check.rs", "use kube::Client;", IO_RULE),
        ("main.rs", "use vap_status_controller::cli;", LAYERS[9].rule),
        (
            "bin/kubectl-vap.rs",
            "use vap_status_controller::{cli, controller};",
            LAYERS[10].rule,
        ),
        ("helpers.rs", "", LAYOUT_RULE),
    ] {
        let found = violations(&source(Path::new(file), code.to_owned()));
        assert!(
            matches!(found.as_slice(), [only] if only.contains(wanted)),
            "{file}: {code}\n{found:?}"
        );
    }
}

#[test]
fn what_is_allowed_is_not_found() {
    for (file, code) in [
        ("lib.rs", "pub mod cel;"),
        (
            "policy/mod.rs",
            "use crate::{cel::env::Env, schema::Gvk};\nuse super::policy::matching;",
        ),
        (
            "policy/mod.rs",
            "// use crate::status;\n/* kube::Client */ const A: &str = \"tokio::spawn\";",
        ),
        (
            "policy/mod.rs",
            "const A: char = '\"'; const B: &str = r#\"\" crate::status\"#;",
        ),
        (
            "policy/mod.rs",
            "fn f<'a>(x: &'a str) { local::http::send(x) }",
        ),
        ("cli/status.rs", "use kube::Client;"),
        (
            "schema/tests/hostile.rs",
            "fn f() { let started = Instant::now(); }",
        ),
        ("cli/status/read.rs", "use kube::Client;"),
        (
            "schema/convert.rs",
            "mod tests { use super::super::Gvk; use super::*; }",
        ),
        (
            "controller/http.rs",
            "use http::Request; use crate::telemetry::Metrics;",
        ),
        ("bin/kubectl-vap.rs", "use vap_status_controller::cli;"),
    ] {
        let found = violations(&source(Path::new(file), code.to_owned()));
        assert!(found.is_empty(), "{file}: {code}\n{found:?}");
    }
}

fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(source(path.strip_prefix(root).unwrap(), text));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn source(path: &Path, text: String) -> Source {
    let mut module: Vec<String> = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    module.pop_if(|last| last == "mod");
    Source {
        path: path.to_owned(),
        module,
        text,
    }
}

fn violations(source: &Source) -> Vec<String> {
    let Some(name) = source.module.first().filter(|name| *name != "lib") else {
        return Vec::new();
    };
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
        return vec![format!("src/{}: {LAYOUT_RULE}", source.path.display())];
    };
    let may_do_io = IO_LAYERS.contains(&layer.name)
        || IO_EXCEPTIONS
            .iter()
            .any(|of| source.module.join("::").starts_with(of));
    let is_layer = |name: &str| LAYERS.iter().any(|layer| layer.name == name);
    let mut found: Vec<(usize, String, &str)> = Vec::new();
    for (line, path) in paths(&source.text) {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let supers = parts.iter().take_while(|part| **part == "super").count();
        let imported = match parts.first() {
            Some(&("crate" | "vap_status_controller")) => parts.get(1),
            Some(&"super") if supers >= source.module.len() => parts.get(supers),
            _ => None,
        };
        if let Some(imported) = imported
            && is_layer(imported)
            && *imported != layer.name
            && !layer.may_import.contains(imported)
        {
            found.push((line, path.join("::"), layer.rule));
        }
        let outside = parts.first().copied().unwrap_or_default();
        if outside == "k8s_openapi" && !API_LAYERS.contains(&layer.name) {
            found.push((line, path.join("::"), API_RULE));
        }
        if IO_CRATES.contains(&outside) && !may_do_io {
            found.push((line, path.join("::"), IO_RULE));
        }
        let is_test = source.module.iter().any(|part| part == "tests");
        if CLOCKLESS.contains(&layer.name)
            && !is_test
            && parts.len() > 1
            && parts.last() == Some(&"now")
        {
            found.push((line, path.join("::"), CLOCK_RULE));
        }
    }
    found
        .into_iter()
        .map(|(line, path, rule)| format!("src/{}:{line}: {path}: {rule}", source.path.display()))
        .collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Ident(String),
    Colons,
    Open,
    Close,
    Comma,
    Other,
}

/// All paths of the code with their lines, groups of a `use` taken apart.
fn paths(text: &str) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = path(&tokens, at, &[], &mut found);
    }
    found
}

/// Reads the path at `at`, behind `prefix`, and gives the place behind it.
fn path(
    tokens: &[(usize, Token)],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut parts = prefix.to_vec();
    let Some((line, first)) = tokens.get(at) else {
        return at;
    };
    if !matches!(first, Token::Ident(_)) {
        return at + 1;
    }
    loop {
        match tokens.get(at).map(|(_, token)| token) {
            Some(Token::Ident(name)) => {
                parts.push(name.clone());
                at += 1;
            }
            Some(Token::Open) => {
                at += 1;
                while !matches!(tokens.get(at), None | Some((_, Token::Close))) {
                    at = path(tokens, at, &parts, found);
                }
                return at + 1;
            }
            _ => break,
        }
        if tokens.get(at).map(|(_, token)| token) != Some(&Token::Colons) {
            break;
        }
        at += 1;
    }
    found.push((*line, parts));
    at
}

/// The tokens that paths are made of; comments, texts and characters are left out.
fn tokens(text: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = text.chars().collect();
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while at < chars.len() {
        let start = at;
        let token = match peek(at) {
            '/' if peek(at + 1) == '/' => {
                while at < chars.len() && peek(at) != '\n' {
                    at += 1;
                }
                None
            }
            '/' if peek(at + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (peek(at), peek(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 2),
                        ('*', '/') => (depth, at) = (depth - 1, at + 2),
                        _ => at += 1,
                    }
                    if depth == 0 || at >= chars.len() {
                        break None;
                    }
                }
            }
            '"' => {
                at = end_of_text(&chars, at + 1);
                Some(Token::Other)
            }
            // A character, or a lifetime.
            '\'' => {
                if peek(at + 1) == '\\' {
                    at += 3;
                    while at < chars.len() && peek(at) != '\'' {
                        at += 1;
                    }
                } else if peek(at + 2) == '\'' {
                    at += 2;
                }
                at += 1;
                Some(Token::Other)
            }
            c if is_name(c) => {
                while is_name(peek(at)) {
                    at += 1;
                }
                let name: String = chars[start..at].iter().collect();
                let hashes = (at..chars.len()).take_while(|n| peek(*n) == '#').count();
                let is_raw = name.ends_with('r') && name.len() <= 2 && peek(at + hashes) == '"';
                if is_raw {
                    let end: String = format!("\"{}", "#".repeat(hashes));
                    at += hashes + 1;
                    while at < chars.len()
                        && !chars[at..]
                            .iter()
                            .copied()
                            .zip(end.chars())
                            .all(|(a, b)| a == b)
                    {
                        at += 1;
                    }
                    at += end.len();
                    Some(Token::Other)
                } else if name.starts_with(|c: char| c.is_ascii_digit()) {
                    Some(Token::Other)
                } else {
                    Some(Token::Ident(name))
                }
            }
            ':' if peek(at + 1) == ':' => {
                at += 2;
                Some(Token::Colons)
            }
            c => {
                at += 1;
                match c {
                    '{' => Some(Token::Open),
                    '}' => Some(Token::Close),
                    ',' => Some(Token::Comma),
                    c if c.is_whitespace() => None,
                    _ => Some(Token::Other),
                }
            }
        };
        tokens.extend(token.map(|token| (line, token)));
        let end = at.min(chars.len());
        line += chars[start..end].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

/// The place behind a text that begins at `at`.
fn end_of_text(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}
