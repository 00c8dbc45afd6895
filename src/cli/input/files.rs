//! Reads files, directories and standard input. No other module of `input` accesses the file system.
//!
//! Files are passed to the caller one by one to limit memory use. A file that cannot be read is reported, and does not
//! prevent reading the others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The name of standard input in messages.
pub const STDIN: &str = "<stdin>";

/// The name of the configuration file of `check`. This file is not read as a manifest.
pub const CONFIG_NAME: &str = ".vap.yaml";

/// The extensions of files that are read in directories.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// A file and its contents.
#[derive(Debug)]
pub struct ReadFile {
    /// The name for messages.
    pub name: String,
    /// True if the user named the file itself, instead of a directory that contains it.
    pub is_given: bool,
    /// The contents, or the reason why they cannot be read.
    pub text: Result<String, String>,
}

/// Options for reading paths.
#[derive(Clone, Copy)]
pub struct ReadOptions<'a> {
    /// Returns true if a file or directory is excluded.
    pub is_excluded: &'a dyn Fn(&Path) -> bool,
    /// Returns the string that replaces the content of a file, if there is one.
    pub text_of: &'a dyn Fn(&Path) -> Option<String>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            is_excluded: &|_| false,
            text_of: &|_| None,
        }
    }
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOptions").finish_non_exhaustive()
    }
}

/// Reads files and directories, and calls `each` for every file. Returns the number of excluded files and directories.
///
/// Paths are read in the given order. The files of a directory are read in the order of their names. `-` is standard
/// input. In directories, files with the extensions `.yaml`, `.yml` and `.json` are read.
///
/// Skips `.git`, and names that begin with `..`, because a mounted `ConfigMap` has copies of its files in such
/// directories. Follows links to directories only if they are in `paths`, to avoid cycles.
pub fn read_all(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    options: &ReadOptions<'_>,
    each: &mut dyn FnMut(ReadFile),
) -> usize {
    visit_all(paths, options.is_excluded, &mut |entry| {
        let (path, is_given) = match entry {
            Entry::Stdin => {
                return each(ReadFile {
                    name: STDIN.to_owned(),
                    is_given: true,
                    text: read(stdin),
                });
            }
            Entry::File { path, is_given } => (path, is_given),
            Entry::Unreadable { path, error } => {
                return each(ReadFile {
                    name: path.display().to_string(),
                    is_given: path.is_dir(),
                    text: Err(reason(&error)),
                });
            }
        };
        each(ReadFile {
            name: path.display().to_string(),
            is_given,
            text: text_of(path, options),
        });
    })
}

/// The state of files: for each file, the time of its last change and its size in bytes, or `None` if it cannot be read.
pub type FileStates = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

/// Returns the states of the files that [`read_all`] reads, except for standard input.
#[must_use]
pub fn states(paths: &[PathBuf], is_excluded: &dyn Fn(&Path) -> bool) -> FileStates {
    let mut states = FileStates::new();
    visit_all(paths, is_excluded, &mut |entry| match entry {
        Entry::Stdin => {}
        Entry::File { path, .. } | Entry::Unreadable { path, .. } => {
            let state =
                fs::metadata(path).and_then(|metadata| Ok((metadata.modified()?, metadata.len())));
            states.insert(path.to_owned(), state.ok());
        }
    });
    states
}

/// An entry of the file system, or standard input.
enum Entry<'a> {
    Stdin,
    File {
        path: &'a Path,
        /// True if the user named the file itself, instead of a directory that contains it.
        is_given: bool,
    },
    /// A directory that cannot be listed, or a broken link in a directory.
    Unreadable {
        path: &'a Path,
        error: io::Error,
    },
}

/// Calls `each` for the files in `paths`, in the order of [`read_all`]. Returns the number of excluded files and
/// directories.
fn visit_all(
    paths: &[PathBuf],
    is_excluded: &dyn Fn(&Path) -> bool,
    each: &mut dyn FnMut(Entry<'_>),
) -> usize {
    let mut n_excluded = 0;
    for (n, path) in paths.iter().enumerate() {
        // A path may be given twice, as in `check --static DIR DIR`.
        if paths.iter().take(n).any(|before| before == path) {
            continue;
        }
        if path.as_os_str() == "-" {
            each(Entry::Stdin);
        } else if is_excluded(path) {
            n_excluded += 1;
        } else if path.is_dir() {
            n_excluded += walk(path, is_excluded, each);
        } else {
            each(Entry::File {
                path,
                is_given: true,
            });
        }
    }
    n_excluded
}

/// Visits the files in the directory `root`. Returns the number of excluded files and directories.
fn walk(
    root: &Path,
    is_excluded: &dyn Fn(&Path) -> bool,
    each: &mut dyn FnMut(Entry<'_>),
) -> usize {
    let mut n_excluded = 0;
    let mut open_paths = vec![root.to_owned()];
    while let Some(path) = open_paths.pop() {
        if path != root && is_excluded(&path) {
            n_excluded += 1;
            continue;
        }
        let is_directory =
            path == root || fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        if !is_directory {
            // Links to files are read, as in a mounted ConfigMap, but links to directories are not followed. Reading
            // other entries, such as sockets, could block.
            match fs::metadata(&path) {
                Ok(metadata) if !metadata.is_file() => {}
                Ok(_) => each(Entry::File {
                    path: &path,
                    is_given: false,
                }),
                Err(error) => each(Entry::Unreadable { path: &path, error }),
            }
            continue;
        }
        match names(&path) {
            // Reversed, since the stack is last in, first out.
            Ok(names) => open_paths.extend(names.into_iter().rev()),
            Err(error) => each(Entry::Unreadable { path: &path, error }),
        }
    }
    n_excluded
}

/// Returns the subdirectories and manifests of a directory, sorted.
fn names(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let file_name = entry.file_name();
        let is_internal = file_name == ".git" || file_name.to_string_lossy().starts_with("..");
        let is_manifest = is_manifest(&path);
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_internal && (is_directory || is_manifest) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns true if [`read_all`] reads a file with this name in a directory.
#[must_use]
pub fn is_manifest(path: &Path) -> bool {
    let is_config = path.file_name().is_some_and(|name| name == CONFIG_NAME);
    let extension = path.extension().unwrap_or_default();
    let mut extensions = EXTENSIONS.iter();
    !is_config && extensions.any(|known| extension.eq_ignore_ascii_case(known))
}

/// Returns the content of a file, or its replacement.
fn text_of(path: &Path, options: &ReadOptions<'_>) -> Result<String, String> {
    match (options.text_of)(path) {
        Some(text) => Ok(text),
        None => open(path).and_then(|mut file| read(&mut file)),
    }
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| reason(&error))
}

/// Reads at most [`MAX_FILE_BYTES`]. The limit is needed because the reader may be endless.
fn read(reader: &mut dyn Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| reason(&error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(format!(
            "the size is over {} MiB; split the file",
            MAX_FILE_BYTES / 1024 / 1024
        ));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("the encoding is UTF-16; save the file as UTF-8".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("the encoding is not UTF-8 (byte {at}); save the file as UTF-8")
    })?;
    Ok(text)
}

/// Formats a system error without its number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text);
            text.to_lowercase()
        }
    }
}
