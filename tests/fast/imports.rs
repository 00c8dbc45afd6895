//! Tests that the modules, folders and files of a package do not import each other in cycles.

#![allow(
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{read, rust_files};

/// The packages' source directories.
const PACKAGES: [&str; 9] = [
    "src",
    "crates/antlr/src",
    "crates/cel/src",
    "crates/goyaml/src",
    "crates/kubernetes/src",
    "crates/policy/src",
    "crates/regexp/src",
    "e2e/src",
    "parity/src",
];

/// The file with the allowed import cycles between files. Each paragraph is a cycle. A new cycle fails the test. A listed cycle
/// that no longer exists also fails the test.
const KNOWN_CYCLES: &str = "tests/import_cycles.txt";

/// Path of a module or item, relative to the root of the package.
type ModulePath = Vec<String>;

/// A path to a module or item, as the code of a file contains it.
#[derive(Debug)]
struct Import {
    path: ModulePath,
    /// The name that a `use` declaration gives to the path.
    name: Option<String>,
    /// True if the file only reexports the name.
    is_reexport: bool,
}

/// Returns the code of a file without comments and without test modules.
fn product_code(source: &str) -> String {
    let mut code = String::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().copied().unwrap_or_default();
        if line == "#[cfg(test)]" {
            if next.ends_with('{') && next.contains("mod ") {
                break;
            }
            if next.contains("use ") {
                while lines.next().is_some_and(|line| !line.ends_with(';')) {}
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

fn without_uses(code: &str) -> String {
    let mut body = String::new();
    let mut is_use = false;
    for line in code.lines() {
        let start = line.trim_start();
        let declaration = match start.strip_prefix("pub") {
            Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
            None => start,
        };
        is_use |= declaration.starts_with("use ");
        if !is_use {
            body.push_str(line);
            body.push('\n');
        }
        is_use &= !line.trim_end().ends_with(';');
    }
    body
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_in_name) && !code[at + word.len()..].starts_with(is_in_name)
    })
}

const fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the imports in the code of `module`. These are all paths that start with `crate`, `super`, `self` or a
/// module that `module` declares. The paths are relative to the root of the package.
fn imports(source: &str, module: &[String]) -> Vec<Import> {
    let code = product_code(source);
    let body = without_uses(&code);
    let is_word_at = |at: usize| !code[..at].ends_with(|c| is_in_name(c) || c == ':');
    let mut begins: Vec<String> = ["crate", "super", "self"].map(str::to_owned).into();
    for line in code.lines() {
        let declared = line
            .strip_suffix(';')
            .and_then(|line| line.rsplit_once("mod "));
        begins.extend(declared.map(|(_, name)| name.to_owned()));
    }
    let mut starts: Vec<(usize, &str)> = Vec::new();
    for begin in &begins {
        let path = format!("{begin}::");
        let matches = code.match_indices(&path).map(|(at, _)| at);
        starts.extend(
            matches
                .filter(|at| is_word_at(*at))
                .map(|at| (at, &**begin)),
        );
    }
    starts.sort_unstable();
    let mut imported = Vec::new();
    let mut end = 0;
    for (at, begin) in starts {
        // The path is part of the previous group of imports.
        if at < end {
            continue;
        }
        let mut paths = Vec::new();
        let rest = match begin {
            "crate" => add_paths(&code[at + "crate::".len()..], &[], &mut paths),
            _ => add_paths(&code[at..], module, &mut paths),
        };
        end = code.len() - rest.len();
        let line = &code[code[..at].rfind('\n').map_or(0, |at| at + 1)..at];
        let is_use = line
            .trim_start()
            .trim_start_matches("pub")
            .ends_with("use ");
        for (path, name) in paths {
            let is_reexport = is_use && line.contains("pub") && !has_word(&body, &name);
            let name = is_use.then_some(name);
            imported.push(Import {
                path,
                name,
                is_reexport,
            });
        }
    }
    imported
}

/// Parses a path or a group of paths at the start of `text`. Adds the paths and their names to `found`. `base` is the
/// path before the group. Returns the rest of `text`.
fn add_paths<'a>(text: &'a str, base: &[String], found: &mut Vec<(ModulePath, String)>) -> &'a str {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let mut rest = group;
        loop {
            rest = add_paths(rest, base, found).trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let end_of_name = |text: &str| text.find(|c| !is_in_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end_of_name(text));
    let mut path = base.to_vec();
    match name {
        "" => return rest,
        "super" => drop(path.pop()),
        "self" => {}
        name => path.push(name.to_owned()),
    }
    if let Some(rest) = rest.strip_prefix("::") {
        return add_paths(rest, &path, found);
    }
    let (name, rest) = match rest.strip_prefix(" as ") {
        Some(rest) => rest.split_at(end_of_name(rest)),
        None => (path.last().map_or(name, String::as_str), rest),
    };
    let name = name.to_owned();
    found.push((path, name));
    rest
}

fn reached<'a, T: Ord>(imports: &'a BTreeMap<T, BTreeSet<T>>, from: &'a T) -> BTreeSet<&'a T> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        let next = imports.get(next).into_iter().flatten();
        open.extend(next.filter(|name| seen.insert(*name)));
    }
    seen
}

/// Returns the cycles. A cycle is a group of nodes that can reach each other.
fn cycles<T: Clone + Ord>(imports: &BTreeMap<T, BTreeSet<T>>) -> BTreeSet<BTreeSet<T>> {
    let nodes = imports.keys().map(|from| (from, reached(imports, from)));
    let all: BTreeMap<&T, BTreeSet<&T>> = nodes.collect();
    let in_cycle = all.iter().filter(|(from, reached)| reached.contains(*from));
    in_cycle
        .map(|(from, reached)| {
            let is_mutual = |to: &&&T| all.get(**to).is_some_and(|back| back.contains(from));
            reached
                .iter()
                .filter(is_mutual)
                .map(|to| (*to).clone())
                .collect()
        })
        .collect()
}

#[test]
fn imports_and_cycles_of_known_examples_are_found() {
    let path = |text: &str| -> ModulePath { text.split('/').map(str::to_owned).collect() };
    let import_paths = |source: &str, module: &str| -> Vec<ModulePath> {
        let imports = imports(source, &path(module)).into_iter();
        let paths: BTreeSet<_> = imports.map(|import| import.path).collect();
        paths.into_iter().collect()
    };
    let source = "mod p;\nuse crate::a::B;\nuse crate::{c as i, d::{self, E, f}, g};\n#[cfg(test)]\nuse crate::nor_this;\n\
                  fn x() { super::h::y(); z::crate::no(); p::q(); }\nuse self::k;\n// use crate::not_this;\n\
                  #[cfg(test)]\nmod tests {\nuse crate::nor_that;\n";
    let wanted = ["a/B", "c", "d", "d/E", "d/f", "g", "h/y", "m/k", "m/p/q"];
    assert_eq!(import_paths(source, "m"), wanted.map(path));
    let source = "use super::super::a;\nuse super::{b, super::c};";
    assert_eq!(import_paths(source, "m/n"), ["a", "c", "m/b"].map(path));

    let source = "pub(crate) use self::a::{B, C as D};\nuse self::e::F;\nfn f(_: D) {}\n";
    let named = imports(source, &path("m"));
    let names: Vec<_> = named
        .iter()
        .map(|import| (import.name.as_deref().unwrap(), import.is_reexport))
        .collect();
    assert_eq!(names, [("B", true), ("D", false), ("F", false)]);

    let set = |names: &[&'static str]| -> BTreeSet<&str> { names.iter().copied().collect() };
    let mut all = BTreeMap::from([("a", set(&["b"])), ("b", set(&["c", "d"])), ("c", set(&[]))]);
    assert!(cycles(&all).is_empty());
    all.insert("c", set(&["a"]));
    all.insert("x", set(&["y", "a"]));
    all.insert("y", set(&["x"]));
    assert_eq!(
        cycles(&all),
        [set(&["a", "b", "c"]), set(&["x", "y"])].into()
    );
}

/// Returns the modules of a package with their imports. Test code is ignored.
fn modules(package: &str) -> BTreeMap<ModulePath, Vec<Import>> {
    let mut files = Vec::new();
    rust_files(package, &mut files);
    let mut modules = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(package).unwrap().trim_start_matches('/');
        let path = path.strip_suffix(".rs").unwrap();
        let path = path.strip_suffix("/mod").unwrap_or(path).split('/');
        let module: ModulePath = path.map(str::to_owned).collect();
        let is_root = ["lib", "main", "bin"].contains(&&*module[0]);
        if !is_root && !module.iter().any(|name| name == "tests") {
            let imports = imports(&read(&file), &module);
            modules.insert(module, imports);
        }
    }
    assert!(!modules.is_empty(), "{package}");
    modules
}

/// Checks that there are no import cycles:
///
/// - between the top-level modules of a package
/// - between the subfolders of a folder
/// - between the files of `src/controller`
///
/// An import of a reexported name counts as an import from the reexporting module. Cargo prevents cycles between
/// packages.
#[test]
fn module_imports_have_no_cycles() {
    let mut imported = Vec::new();
    for package in PACKAGES {
        let modules = modules(package);
        let folders: BTreeSet<&[String]> = modules
            .keys()
            .flat_map(|module| (1..module.len()).map(|depth| &module[..depth]))
            .collect();
        // Imports between the direct submodules of each folder.
        let mut within: BTreeMap<&[String], BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for (module, imports) in &modules {
            for import in imports.iter().map(|import| &import.path) {
                let pairs = module.iter().zip(import);
                let depth = pairs.take_while(|(own, other)| own == other).count();
                let (Some(from), Some(to)) = (module.get(depth), import.get(depth)) else {
                    continue;
                };
                let are_folders =
                    folders.contains(&module[..=depth]) && folders.contains(&import[..=depth]);
                let is_controller = package == "src" && module[..depth] == ["controller"];
                if depth == 0 || are_folders || is_controller {
                    let imports = within.entry(&module[..depth]).or_default();
                    imports.entry(from).or_default().insert(to);
                }
            }
        }
        for (folder, imports) in within {
            let folder = folder.join("/");
            let cycles = cycles(&imports).into_iter();
            imported.extend(cycles.map(|cycle| format!("{package}/{folder}: {cycle:?}")));
        }
    }
    assert!(imported.is_empty(), "{}", imported.join("\n"));
}

/// Returns the module that `path` refers to. If `path` refers to an item, returns the module whose file defines the
/// item. Returns `None` for the root of the package.
fn defining<'a>(
    modules: &'a BTreeMap<ModulePath, Vec<Import>>,
    path: &[String],
) -> Option<&'a ModulePath> {
    let is_module = |depth: &usize| modules.contains_key(&path[..*depth]);
    let depth = (1..=path.len()).rev().find(is_module)?;
    let (module, imports) = modules.get_key_value(&path[..depth])?;
    let Some(name) = path.get(depth) else {
        return Some(module);
    };
    let declared = (imports.iter()).find(|import| import.name.as_ref() == Some(name));
    match declared {
        Some(import) if import.path != path => {
            let path = [&import.path, &path[depth + 1..]].concat();
            defining(modules, &path)
        }
        _ => Some(module),
    }
}

/// Checks that the files of each package have no import cycles except for the listed ones.
///
/// Each file is a node. The `mod.rs` of a folder is a node, too. An import of a reexported name is an import of the
/// file that defines the name. Module declarations are not imports. `pub use` is an import only if the file uses the
/// name. A submodule that imports a name through its folder's `mod.rs` therefore does not import `mod.rs`.
#[test]
fn file_import_cycles_are_listed() {
    let mut actual = BTreeSet::new();
    for package in PACKAGES {
        let modules = modules(package);
        let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, imports) in &modules {
            let imports = imports.iter().filter(|import| !import.is_reexport);
            let imports = imports.filter_map(|import| defining(&modules, &import.path));
            let imports = imports.filter(|imported| *imported != module);
            let imports = imports.map(|imported| imported.join("/")).collect();
            files.insert(module.join("/"), imports);
        }
        for cycle in cycles(&files) {
            let files: Vec<_> = cycle
                .iter()
                .map(|file| format!("{package}/{file}\n"))
                .collect();
            actual.insert(files.concat());
        }
    }
    let list = read(KNOWN_CYCLES);
    let listed = list
        .split("\n\n")
        .map(|cycle| format!("{}\n", cycle.trim_end()));
    let listed: BTreeSet<_> = listed.collect();
    let new: Vec<_> = actual.difference(&listed).cloned().collect();
    let gone: Vec<_> = listed.difference(&actual).cloned().collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "cycles that are not in {KNOWN_CYCLES}:\n\n{}\ncycles to remove from it:\n\n{}",
        new.join("\n"),
        gone.join("\n")
    );
}
