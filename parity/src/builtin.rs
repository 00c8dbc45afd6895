//! Generates the plugin's built-in schemas from Kubernetes' OpenAPI documents.
//!
//! Source: `k8s.io/kubernetes` `api/openapi-spec/v3`, reduced to facts about types.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use miniz_oxide::deflate::compress_to_vec_zlib;
use serde_json::{Map, Value};
use vap_status_controller::schema::builtin::store::{
    DefinitionRow, KindRow, ResourceRow, Tables, VersionSet,
};
use vap_status_controller::schema::extensions;
use vap_status_controller::schema::offline::served_resources;
use vap_status_controller::schema::rest_mapper::ApiResource;
use vap_status_controller::schema::{Builtin, Gvk, RestMapper};

use crate::schemas::document_paths;

/// The compression level with the smallest output.
const LEVEL: u8 = 10;

/// The schema keywords that affect types or merges and whose values contain no schemas.
const KEYWORDS: [&str; 18] = [
    "$ref",
    "type",
    "format",
    "nullable",
    "default",
    "maxLength",
    "maxItems",
    "maxProperties",
    "enum",
    "required",
    extensions::INT_OR_STRING,
    extensions::EMBEDDED_RESOURCE,
    extensions::PRESERVE_UNKNOWN_FIELDS,
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
];

/// The OpenAPI documents of a Kubernetes version.
#[derive(Clone, Debug)]
pub struct Source {
    /// The version, such as `1.36.3`.
    pub version: String,
    /// The directory of the documents (`*_openapi.json`).
    pub directory: PathBuf,
}

impl FromStr for Source {
    type Err = anyhow::Error;

    /// Parses `VERSION=DIR`.
    fn from_str(text: &str) -> Result<Self> {
        let (version, directory) = text.split_once('=').context("not VERSION=DIR")?;
        Ok(Self {
            version: version.to_owned(),
            directory: directory.into(),
        })
    }
}

/// The reduced contents of the documents of a Kubernetes version.
#[derive(Debug, Default)]
struct Contents {
    /// The definition of each kind.
    kinds: BTreeMap<Gvk, String>,
    resources: Vec<ApiResource>,
    /// The schema of each definition.
    definitions: BTreeMap<String, String>,
}

impl Contents {
    fn read(source: &Source) -> Result<Self> {
        let mut contents = Self::default();
        let mut resources = Vec::new();
        for path in document_paths(&source.directory)? {
            let name = || path.display().to_string();
            let bytes = fs::read(&path).with_context(name)?;
            resources.extend(served_resources(&bytes).with_context(name)?);
            let document: Value = serde_json::from_slice(&bytes).with_context(name)?;
            contents.add(&document).with_context(name)?;
        }
        contents.resources = RestMapper::new(resources).resources;
        Ok(contents)
    }

    /// Adds the definitions of a document.
    ///
    /// # Errors
    ///
    /// Returns an error if an earlier document of this version contradicts this document: a definition has the same
    /// name and another content, or the definition of a kind has another name.
    fn add(&mut self, document: &Value) -> Result<()> {
        let schemas = document.pointer("/components/schemas");
        let schemas = schemas.and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flatten() {
            let kinds = schema.get(extensions::GROUP_VERSION_KIND);
            for gvk in kinds.map(extensions::kinds).unwrap_or_default() {
                if let Some(other) = self.kinds.insert(gvk.clone(), name.clone()) {
                    ensure!(other == *name, "{gvk}: definitions {name} and {other}");
                }
            }
            let text = reduced_schema(schema).to_string();
            if let Some(other) = self.definitions.insert(name.clone(), text.clone()) {
                ensure!(other == text, "{name}: {text} and {other}");
            }
        }
        Ok(())
    }

    /// Compares these contents with the built-in schemas of this program.
    fn compare(&self, version: &str) -> Result<()> {
        let builtin = Builtin::load(version.parse()?)?;
        ensure!(
            builtin.kubernetes() == version,
            "they are of version {}",
            builtin.kubernetes()
        );
        ensure!(
            builtin.resources() == self.resources,
            "the resources differ"
        );
        let kinds: BTreeSet<&Gvk> = builtin.kinds().collect();
        ensure!(self.kinds.keys().eq(kinds), "the kinds differ");
        for (name, expected) in &self.definitions {
            let actual = builtin.definition(name)?;
            ensure!(
                actual == Some(expected),
                "{name} is {actual:?}, not {expected}"
            );
        }
        let mut documents = BTreeMap::new();
        for (gvk, name) in &self.kinds {
            let document = match documents.entry(builtin.document_number(gvk)) {
                Entry::Occupied(document) => document.into_mut(),
                Entry::Vacant(unread) => {
                    unread.insert(serde_json::from_str::<Value>(&builtin.document(gvk)?)?)
                }
            };
            let schemas = document.pointer("/components/schemas");
            let schemas = schemas.and_then(Value::as_object).context("no schemas")?;
            let kinds = schemas
                .get(name)
                .and_then(|schema| schema.get(extensions::GROUP_VERSION_KIND));
            let kinds = kinds.map(extensions::kinds).unwrap_or_default();
            ensure!(kinds.contains(gvk), "the document of {gvk} lacks the kind");
        }
        Ok(())
    }
}

/// Kubernetes versions and the reduced contents of their documents.
#[derive(Debug)]
pub struct Documents(Vec<(String, Contents)>);

impl Documents {
    /// Reads the documents of all versions.
    ///
    /// # Errors
    ///
    /// Returns an error if documents cannot be read or contradict each other.
    pub fn read(sources: &[Source]) -> Result<Self> {
        let read = |source: &Source| {
            let contents = Contents::read(source);
            contents.with_context(|| format!("Kubernetes {}", source.version))
        };
        thread::scope(|scope| {
            let readers: Vec<_> = sources
                .iter()
                .map(|source| (source, scope.spawn(move || read(source))))
                .collect();
            let contents = readers.into_iter().map(|(source, reader)| {
                let contents = reader.join().map_err(|_| anyhow!("a reader panicked"))?;
                Ok((source.version.clone(), contents?))
            });
            contents.collect::<Result<_>>().map(Self)
        })
    }

    /// Returns the tables of the built-in schemas.
    #[must_use]
    pub fn tables(&self) -> Tables {
        let mut kinds: BTreeMap<KindRow<'_>, VersionSet> = BTreeMap::new();
        let mut resources: BTreeMap<ResourceRow<'_>, VersionSet> = BTreeMap::new();
        let mut definitions: BTreeMap<DefinitionRow<'_>, VersionSet> = BTreeMap::new();
        for (n, (_, contents)) in (0..).zip(&self.0) {
            for (gvk, definition) in &contents.kinds {
                kinds.entry(kind_row(gvk, definition)).or_default().add(n);
            }
            for resource in &contents.resources {
                resources.entry(resource_row(resource)).or_default().add(n);
            }
            for (name, schema) in &contents.definitions {
                let row = DefinitionRow { name, schema };
                definitions.entry(row).or_default().add(n);
            }
        }
        let versions: Vec<&str> = self.0.iter().map(|(version, _)| version.as_str()).collect();
        let mut tables = Tables::new(&versions);
        for (row, set) in &kinds {
            tables.add_kind(*set, row);
        }
        for (row, set) in &resources {
            tables.add_resource(*set, row);
        }
        for (row, set) in &definitions {
            tables.add_definition(*set, row);
        }
        tables
    }

    /// Compares each document with the built-in schemas of this program.
    ///
    /// # Errors
    ///
    /// Returns an error for the first difference.
    pub fn compare(&self) -> Result<()> {
        for (version, contents) in &self.0 {
            contents
                .compare(version)
                .with_context(|| format!("the built-in schemas of Kubernetes {version}"))?;
        }
        Ok(())
    }
}

/// Compresses the tables into the contents of a file.
///
/// # Errors
///
/// Returns an error if a table is too long.
pub fn pack(tables: &Tables) -> Result<Vec<u8>> {
    let file = tables.pack(|text| compress_to_vec_zlib(text, LEVEL));
    file.context("a table is longer than 4 GiB")
}

fn kind_row<'a>(gvk: &'a Gvk, definition: &'a str) -> KindRow<'a> {
    KindRow {
        group: &gvk.group,
        version: &gvk.version,
        kind: &gvk.kind,
        definition,
    }
}

fn resource_row(resource: &ApiResource) -> ResourceRow<'_> {
    let ApiResource { gvr, gvk, .. } = resource;
    ResourceRow {
        group: &gvr.group,
        version: &gvr.version,
        resource: &gvr.resource,
        gvk: (&gvk.group, &gvk.version, &gvk.kind),
        is_namespaced: resource.namespaced,
    }
}

/// Removes the keywords that affect neither types nor merges. If a default is not a scalar, records only that the
/// default exists. Only the defaults of list keys need their values, and list keys are scalars.
fn reduced_schema(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let mut kept = Map::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), value) {
            ("default", Value::Array(_) | Value::Object(_)) => Value::Bool(true),
            (keyword, value) if KEYWORDS.contains(&keyword) => value.clone(),
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, property)| (name.clone(), reduced_schema(property)))
                .collect(),
            ("items" | "additionalProperties" | "properties", value) => reduced_schema(value),
            ("allOf", Value::Array(all)) => all.iter().map(reduced_schema).collect(),
            _ => continue,
        };
        kept.insert(keyword.clone(), value);
    }
    Value::Object(kept)
}
