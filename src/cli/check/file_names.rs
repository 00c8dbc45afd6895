//! File names that do not depend on the working directory, or on how the user writes the paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::config::resolve_parent;
use crate::cli::input::files::STDIN;

/// Converts paths to file names relative to a directory.
pub(super) struct Names {
    directory: PathBuf,
    cached: BTreeMap<String, String>,
}

impl Names {
    /// Creates names relative to the directory of a file, such as a baseline.
    pub(super) fn for_file(file: &Path) -> Self {
        let path = resolve_parent(file).unwrap_or_else(|| file.to_owned());
        Self {
            directory: path.parent().unwrap_or(Path::new("")).to_owned(),
            cached: BTreeMap::new(),
        }
    }

    /// Creates names relative to the root of the repository that contains the working directory. Without a repository,
    /// they are relative to the working directory.
    pub(super) fn for_repository() -> Self {
        let here = Path::new(".").canonicalize().unwrap_or_default();
        let mut directories = here.ancestors();
        let root = directories.find(|directory| directory.join(".git").exists());
        Self {
            directory: root.unwrap_or(&here).to_owned(),
            cached: BTreeMap::new(),
        }
    }

    /// Returns the name of `file`: relative to the directory, or absolute if the file is outside the directory.
    pub(super) fn relative(&mut self, file: &str) -> String {
        if file == STDIN {
            return file.to_owned();
        }
        if let Some(name) = self.cached.get(file) {
            return name.clone();
        }
        let path = resolve_parent(Path::new(file)).unwrap_or_else(|| PathBuf::from(file));
        let name = match path.strip_prefix(&self.directory) {
            Ok(below) => {
                let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
                names.join("/")
            }
            Err(_) => path.display().to_string(),
        };
        self.cached.insert(file.to_owned(), name.clone());
        name
    }

    /// Returns true if no file with this name exists.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        name != STDIN && !self.directory.join(name).exists()
    }
}
