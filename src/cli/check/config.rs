//! Reads the configuration file of `check`, `.vap.yaml`: levels of rules, excluded paths, and defaults of flags.
//!
//! Unknown and duplicate keys are errors with the positions of the keys.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use goyaml::{Copies, Data, Entry, Node};
use serde_json::Value;

use super::glob::Glob;
use super::levels::{Level, Levels};
use super::suggestion::nearest;
use crate::cli::error::CliError;
use crate::cli::input::files::CONFIG_NAME;
use crate::cli::input::object::yaml_documents;
use crate::cli::input::{Place, SourceText};
use crate::policy::analysis::Profile;
use crate::version::{KubernetesVersion, VersionRange};

pub(super) const KEYS: [&str; 7] = [
    "baseline",
    "crds",
    "exclude",
    "kubernetesVersion",
    "levels",
    "profile",
    "strict",
];

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The contents of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The path of the file.
    pub path: PathBuf,
    /// The levels of rules.
    pub levels: Levels,
    /// The paths that are not checked.
    pub exclude: Exclude,
    /// Files and directories with CRDs. The check uses their schemas, but does not validate the CRDs themselves.
    pub crds: Vec<PathBuf>,
    /// The version of the target API server, or a range of versions.
    pub kubernetes_version: Option<VersionRange>,
    /// The checking semantics: this project's, or those of kube-controller-manager.
    pub profile: Option<Profile>,
    /// True if notes about parts of the input that could not be checked affect the exit status.
    pub strict: bool,
    /// The file of the baseline, whose findings are not reported.
    pub baseline: Option<PathBuf>,
}

/// Patterns of paths that are not checked.
#[derive(Clone, Debug, Default)]
pub struct Exclude {
    /// The directory to which the patterns are relative.
    root: PathBuf,
    globs: Vec<Glob>,
}

impl Exclude {
    /// Returns true if a file or directory is excluded.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        if self.globs.is_empty() {
            return false;
        }
        let Some(path) = resolve_parent(path) else {
            return false;
        };
        let Ok(below) = path.strip_prefix(&self.root) else {
            return false;
        };
        let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.globs.iter().any(|glob| glob.matches(&names))
    }
}

/// Resolves symbolic links in the directory of a path, but not the path's last component.
pub(super) fn resolve_parent(path: &Path) -> Option<PathBuf> {
    let Some(name) = path.file_name() else {
        return path.canonicalize().ok();
    };
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    Some(parent.canonicalize().ok()?.join(name))
}

/// Returns the newest version in the configuration for `paths`. `None` if there is no configuration, or no version in it.
///
/// # Errors
/// Returns the errors of [`find`].
pub(in crate::cli) fn pinned_version(
    paths: &[PathBuf],
) -> Result<Option<KubernetesVersion>, CliError> {
    let config = find_one(paths, "pass --kubernetes-version")?;
    let range = config.and_then(|config| config.kubernetes_version);
    Ok(range.map(|range| range.last))
}

/// Reads the configuration for a check of `paths`.
///
/// Searches for the file in the directories of the paths and their parents, up to the root of a repository. If there
/// is no file, searches in the working directory and its parents. Returns `None` if no directory has the file.
///
/// # Errors
/// Returns an error if the paths have different configuration files, or if the file cannot be read.
pub(super) fn find(paths: &[PathBuf]) -> Result<Option<Config>, CliError> {
    find_one(paths, "select one with --config, or use --no-config")
}

/// Reads the configuration for `paths`. `advice` is the end of the error message about several configuration files.
fn find_one(paths: &[PathBuf], advice: &str) -> Result<Option<Config>, CliError> {
    let mut files = BTreeSet::new();
    for path in paths {
        let path = if path.as_os_str() == "-" {
            Path::new(".")
        } else {
            path
        };
        let Ok(path) = path.canonicalize() else {
            continue;
        };
        let directory = if path.is_dir() {
            Some(path.as_path())
        } else {
            path.parent()
        };
        files.extend(directory.and_then(upwards));
    }
    if files.is_empty() {
        let here = Path::new(".").canonicalize().ok();
        files.extend(here.as_deref().and_then(upwards));
    }
    let mut files = files.into_iter();
    match (files.next(), files.next()) {
        (Some(first), Some(second)) => Err(CliError::Config(format!(
            "the paths have different configuration files, {} and {}; {advice}",
            display_path(&first),
            display_path(&second)
        ))),
        (Some(path), None) => read(&path).map(Some),
        (None, _) => Ok(None),
    }
}

/// Returns the configuration file in a directory. If there is none, returns the file of the nearest parent directory
/// within the same repository.
fn upwards(directory: &Path) -> Option<PathBuf> {
    for directory in directory.ancestors() {
        let path = directory.join(CONFIG_NAME);
        if path.is_file() {
            return Some(path);
        }
        if directory.join(".git").exists() {
            return None;
        }
    }
    None
}

/// Formats a path for messages. A path inside the working directory is relative to it.
pub(super) fn display_path(path: &Path) -> String {
    let here = Path::new(".").canonicalize().unwrap_or_default();
    let below = path.strip_prefix(&here).unwrap_or(path);
    below.display().to_string()
}

pub(super) fn read(path: &Path) -> Result<Config, CliError> {
    let name = display_path(path);
    let unreadable = |reason: String| CliError::Config(format!("cannot read {name}: {reason}"));
    let length = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if length.len() > MAX_BYTES {
        return Err(unreadable(format!("larger than {MAX_BYTES} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let path = resolve_parent(path).unwrap_or_else(|| path.to_owned());
    let source = SourceText::new(name, text);
    parse(&source, &path).map_err(|error| {
        CliError::Config(format!(
            "{}:{}:{}: {}",
            source.name, error.place.line, error.place.column, error.message
        ))
    })
}

#[derive(Debug)]
struct ParseError {
    place: Place,
    message: String,
}

struct Reader<'a> {
    source: &'a SourceText,
    directory: &'a Path,
}

fn parse(source: &SourceText, path: &Path) -> Result<Config, ParseError> {
    let text = source.text();
    let error_at = |at: usize, message: &str| ParseError {
        place: source.place(at),
        message: message.to_owned(),
    };
    let mut documents = yaml_documents(source);
    if documents.is_empty() {
        documents.push(0..text.len());
    }
    let mut document: Option<(usize, Node)> = None;
    for bytes in documents {
        let part = text.get(bytes.clone()).unwrap_or_default();
        let read = goyaml::read(part, &mut Copies::default());
        let read = read.map_err(|error| ParseError {
            place: Place {
                line: error.line + source.place(bytes.start).line - 1,
                column: error.column,
            },
            message: format!("invalid YAML: {}", error.message),
        })?;
        let read = read.filter(|node| !node.is_null());
        if let Some(node) = read {
            if document.is_some() {
                let at = bytes.start + node.span.start;
                return Err(error_at(at, "a configuration file must have one document"));
            }
            document = Some((bytes.start, node));
        }
    }
    let mut config = Config {
        path: path.to_owned(),
        ..Config::default()
    };
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    directory.clone_into(&mut config.exclude.root);
    let Some((start, node)) = document else {
        return Ok(config);
    };
    let reader = Reader { source, directory };
    reader.config(&node, start, &mut config)?;
    Ok(config)
}

impl Reader<'_> {
    fn config(&self, node: &Node, start: usize, config: &mut Config) -> Result<(), ParseError> {
        let at = DocumentStart { start };
        if !matches!(node.data, Data::Map(_)) {
            return Err(self.error_at(
                at.in_file(&node.span),
                "expected an object with keys such as `levels`",
            ));
        }
        for (key, entry) in node.entries() {
            self.expect_unique(at, key, entry)?;
            let value = &entry.node;
            match key {
                "levels" => {
                    self.expect(
                        at,
                        value,
                        matches!(value.data, Data::Map(_)),
                        key,
                        "an object such as `undefined-field: note`",
                    )?;
                    for (id, entry) in value.entries() {
                        self.expect_unique(at, id, entry)?;
                        let level =
                            self.one_of(at, &entry.node, id, &Level::ALL.map(Level::name))?;
                        let level = Level::ALL.into_iter().find(|known| known.name() == level);
                        let set = level.map(|level| config.levels.set(id, level));
                        if let Some(Err(error)) = set {
                            return Err(self.error_at(at.in_file(&entry.key), &error.to_string()));
                        }
                    }
                }
                "exclude" => {
                    for (pattern, span) in self.strings(at, value, key)? {
                        let glob = Glob::new(&pattern);
                        let glob = glob.map_err(|why| {
                            self.error_at(
                                at.in_file(&span),
                                &format!("the pattern `{pattern}` {why}"),
                            )
                        })?;
                        config.exclude.globs.push(glob);
                    }
                }
                "crds" => {
                    let paths = self.strings(at, value, key)?.into_iter();
                    config.crds = paths.map(|(path, _)| self.directory.join(path)).collect();
                }
                "baseline" => {
                    let path = value.as_str().filter(|path| !path.is_empty());
                    self.expect(at, value, path.is_some(), key, "a path")?;
                    config.baseline = path.map(|path| self.directory.join(path));
                }
                "kubernetesVersion" => {
                    // Reads the version from the source, because YAML parses 1.30 as the number 1.3.
                    let written = self
                        .source
                        .text()
                        .get(at.in_file(&value.span))
                        .unwrap_or_default();
                    let text = value.as_str().unwrap_or(written);
                    let version = text.parse::<VersionRange>().map_err(|why| {
                        self.error_at(
                            at.in_file(&value.span),
                            &format!("`{key}` is invalid: {why}"),
                        )
                    })?;
                    config.kubernetes_version = Some(version);
                }
                "profile" => {
                    let profile = self.one_of(at, value, key, &["truthful", "upstream"])?;
                    config.profile = Some(if profile == "upstream" {
                        Profile::Upstream
                    } else {
                        Profile::Truthful
                    });
                }
                "strict" => {
                    let flag = match &value.data {
                        Data::Scalar(Value::Bool(flag), _) => Some(*flag),
                        _ => None,
                    };
                    self.expect(at, value, flag.is_some(), key, "true or false")?;
                    config.strict = flag.unwrap_or_default();
                }
                _ => {
                    let meant = nearest(key, KEYS.into_iter());
                    let advice = match meant {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => format!("valid keys: {}", KEYS.join(", ")),
                    };
                    let message = format!("unknown key `{key}`; {advice}");
                    return Err(self.error_at(at.in_file(&entry.key), &message));
                }
            }
        }
        Ok(())
    }

    fn error_at(&self, span: Range<usize>, message: &str) -> ParseError {
        ParseError {
            place: self.source.place(span.start),
            message: message.to_owned(),
        }
    }

    fn expect_unique(&self, at: DocumentStart, key: &str, entry: &Entry) -> Result<(), ParseError> {
        match entry.repeats.iter().chain(&entry.merged).next() {
            Some(_) => Err(self.error_at(at.in_file(&entry.key), &format!("`{key}` is set twice"))),
            None => Ok(()),
        }
    }

    fn expect(
        &self,
        at: DocumentStart,
        node: &Node,
        holds: bool,
        key: &str,
        expected: &str,
    ) -> Result<(), ParseError> {
        if holds {
            Ok(())
        } else {
            Err(self.error_at(
                at.in_file(&node.span),
                &format!("`{key}` must be {expected}"),
            ))
        }
    }

    fn one_of<'n>(
        &self,
        at: DocumentStart,
        node: &'n Node,
        key: &str,
        names: &[&str],
    ) -> Result<&'n str, ParseError> {
        let text = node.as_str().unwrap_or_default();
        if names.contains(&text) {
            return Ok(text);
        }
        let hint = nearest(text, names.iter().copied());
        let hint = hint.map(|meant| format!("; did you mean `{meant}`?"));
        let message = format!(
            "`{key}` must be one of {}{}",
            names.join(", "),
            hint.unwrap_or_default()
        );
        Err(self.error_at(at.in_file(&node.span), &message))
    }

    /// Returns the strings of a list, each with its byte range in the document. Any other value is an error.
    fn strings(
        &self,
        at: DocumentStart,
        node: &Node,
        key: &str,
    ) -> Result<Vec<(String, Range<usize>)>, ParseError> {
        self.expect(
            at,
            node,
            matches!(node.data, Data::List(_)),
            key,
            "a list of strings",
        )?;
        let string = |item: &Node| {
            let text = item.as_str().filter(|text| !text.is_empty());
            self.expect(at, item, text.is_some(), &format!("{key}[]"), "a string")?;
            Ok((text.unwrap_or_default().to_owned(), item.span.clone()))
        };
        node.items().iter().map(string).collect()
    }
}

/// The start of the document in the file, as a byte offset.
#[derive(Clone, Copy, Debug)]
struct DocumentStart {
    start: usize,
}

impl DocumentStart {
    /// Converts byte offsets in the document to byte offsets in the file.
    fn in_file(self, span: &Range<usize>) -> Range<usize> {
        self.start + span.start..self.start + span.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let source = SourceText::new("f".to_owned(), text.to_owned());
        let config = parse(&source, Path::new("/r/.vap.yaml"));
        config.map_err(|error| {
            let Place { line, column } = error.place;
            format!("{line}:{column}: {}", error.message)
        })
    }

    #[test]
    fn configuration_with_all_keys_sets_levels_and_defaults() {
        let config = parsed(
            "# ours\n---\nlevels:\n  undefined-field: note\n  all: warn\nexclude: [vendor]\ncrds: [crds]\n\
             kubernetesVersion: 1.30\nprofile: upstream\nstrict: true\nbaseline: b.json\n",
        );
        let config = config.unwrap();
        let version = KubernetesVersion::new(30);
        let range = VersionRange {
            first: version,
            last: version,
        };
        assert_eq!(config.kubernetes_version, Some(range));
        assert_eq!(config.crds, [PathBuf::from("/r/crds")]);
        assert_eq!(config.baseline, Some(PathBuf::from("/r/b.json")));
        assert!(config.strict && config.profile == Some(Profile::Upstream));
        assert_ne!(config.levels, Levels::default());
        for empty in ["", "# nothing\n", "---\n", "{}"] {
            assert!(parsed(empty).is_ok(), "{empty}");
        }
    }

    #[test]
    fn invalid_configuration_fails_with_position() {
        for (text, wanted) in [
            (
                "level: {}",
                "1:1: unknown key `level`; did you mean `levels`?",
            ),
            (
                "---\nqqq: 1",
                "2:1: unknown key `qqq`; valid keys: baseline, crds, exclude, kubernetesVersion, levels, profile, strict",
            ),
            ("strict: true\nstrict: false", "2:1: `strict` is set twice"),
            (
                "levels:\n  absent-feild: note",
                "2:3: no rule `absent-feild`; did you mean `absent-field`? `kubectl vap explain` lists all",
            ),
            (
                "levels:\n  absent-field: notice",
                "2:17: `absent-field` must be one of error, warn, note, allow; did you mean `note`?",
            ),
            (
                "levels: [a]",
                "1:9: `levels` must be an object such as `undefined-field: note`",
            ),
            (
                "exclude: vendor",
                "1:10: `exclude` must be a list of strings",
            ),
            ("exclude: [a, 1]", "1:14: `exclude[]` must be a string"),
            (
                "exclude: [a, '!b']",
                "1:14: the pattern `!b` begins with `!`, but negation is not supported",
            ),
            (
                "kubernetesVersion: 1.37-1.33",
                "1:20: `kubernetesVersion` is invalid: write the older version first, as in 1.33-1.37",
            ),
            (
                "kubernetesVersion: 1.29",
                "1:20: `kubernetesVersion` is invalid: supported versions are 1.30 to 1.37",
            ),
            (
                "kubernetesVersion: [1]",
                "1:20: `kubernetesVersion` is invalid: supported versions are 1.30 to 1.37",
            ),
            ("strict: 'yes'", "1:9: `strict` must be true or false"),
            (
                "profile: true",
                "1:10: `profile` must be one of truthful, upstream",
            ),
            ("baseline: ''", "1:11: `baseline` must be a path"),
            ("- a", "1:1: expected an object with keys such as `levels`"),
            (
                "strict: true\n---\nstrict: true",
                "3:1: a configuration file must have one document",
            ),
            (
                "strict: [",
                "1:9: invalid YAML: missing `]` before the end of the document",
            ),
        ] {
            assert_eq!(parsed(text).unwrap_err(), wanted);
        }
    }
}
