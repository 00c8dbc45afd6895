//! Reads the files of a suite: the suite itself, with the locations of its fields, and the objects in the referenced
//! files.

use std::path::{Path, PathBuf};

use goyaml::{Copies, Node};
use serde_json::Value as Json;

use crate::cli::input::files::{self, ReadFile, ReadOptions};
use crate::cli::input::{Input, KindFilter, SourceText};
use crate::schema::GroupVersion;

/// A file with one document.
pub(super) struct Source {
    pub(super) json: Json,
    folder: PathBuf,
    text: SourceText,
    node: Node,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let source = SourceText::new(name.clone(), text(path)?);
        let read = goyaml::read(source.text(), &mut Copies::default());
        let node = read.map_err(|error| format!("{name}: {error}"))?;
        let node = node.ok_or_else(|| format!("{name} is empty"))?;
        Ok(Self {
            json: node.to_json(),
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            text: source,
            node,
        })
    }

    /// Returns the location of a field: the file and the line.
    pub(super) fn place(&self, field: &str) -> String {
        let node = self.node.nearest(field);
        let place = self.text.place(node.span.start);
        format!("{}:{}", self.text.name, place.line)
    }

    /// Resolves a path relative to the suite.
    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.folder.join(relative)
    }
}

pub(super) fn text(path: &Path) -> Result<String, String> {
    let mut suite_objects = Err(format!("cannot read {}: it is a directory", path.display()));
    if path.is_dir() {
        return suite_objects;
    }
    let mut each = |file: ReadFile| {
        let name = file.name;
        suite_objects = file
            .text
            .map_err(|why| format!("cannot read {name}: {why}"));
    };
    let paths = [path.to_owned()];
    files::read_all(
        &paths,
        &mut std::io::empty(),
        &ReadOptions::default(),
        &mut each,
    );
    suite_objects
}

/// An object from a file to which a suite refers.
#[derive(Clone, Debug)]
pub(super) struct SuiteObject {
    pub(super) value: Json,
}

impl SuiteObject {
    fn text(&self, pointer: &str) -> &str {
        let value = self.value.pointer(pointer).and_then(Json::as_str);
        value.unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub(super) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    pub(super) fn kind(&self) -> &str {
        self.text("/kind")
    }

    pub(super) fn group_version(&self) -> (&str, &str) {
        GroupVersion::split(self.text("/apiVersion"))
    }
}

/// Returns the objects of files, except policies and bindings, in order. Also returns the errors.
pub(super) fn objects(paths: &[PathBuf]) -> (Vec<SuiteObject>, Vec<String>) {
    let input = Input::load(paths, KindFilter::All, &mut std::io::empty());
    let problems = input.problems.iter();
    let problems = problems.map(|problem| format!("{}: {}", problem.file, problem.message));
    let others = input.others.into_iter().chain(input.namespaces);
    let suite_objects = others.map(|object| SuiteObject {
        value: object.value,
    });
    (suite_objects.collect(), problems.collect())
}

/// Returns the string of a field, or an empty string.
pub(super) fn text_field<'a>(value: &'a Json, name: &str) -> &'a str {
    value.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// Returns the items of a field, with their indices.
pub(super) fn items<'a>(value: &'a Json, name: &str) -> impl Iterator<Item = (usize, &'a Json)> {
    let items = value.get(name).and_then(Json::as_array);
    items.into_iter().flatten().enumerate()
}

pub(super) fn texts(value: &Json, name: &str) -> Vec<String> {
    let texts = items(value, name).filter_map(|(_, text)| text.as_str());
    texts.map(str::to_owned).collect()
}
