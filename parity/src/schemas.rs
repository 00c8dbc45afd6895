//! Reads the schemas and served resources of a cluster from files.
//!
//! Source: the oracle's `schemas.go`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use vap_status_controller::schema::{Builtin, Crd, GroupVersion, Gvk, RestMapper};
use vap_status_controller::version::KubernetesVersion;

use crate::documents;

/// The schemas and served resources of a cluster.
#[derive(Debug)]
pub struct Schemas {
    /// The schemas, by kind.
    pub types: SchemaSet,
    /// The served resources.
    pub mapper: RestMapper,
    /// The schemas of kinds that `types` lacks.
    builtin: Option<&'static Builtin>,
}

impl Schemas {
    /// Reads the OpenAPI documents (`*_openapi.json`) and the CustomResourceDefinitions in two directories. Both
    /// directories are optional.
    ///
    /// # Errors
    ///
    /// Returns an error if a directory or file cannot be read, or if a CustomResourceDefinition has no names.
    pub fn load(openapi: Option<&Path>, crds: Option<&Path>) -> Result<Self> {
        let mut offline = Offline::default();
        if let Some(directory) = openapi {
            add_documents(&mut offline, directory)?;
        }
        if let Some(directory) = crds {
            add_crds(&mut offline, directory)?;
        }
        let (types, mapper) = offline.finish();
        Ok(Self {
            types,
            mapper,
            builtin: None,
        })
    }

    /// Returns the built-in schemas and resources of a version.
    ///
    /// # Errors
    ///
    /// Returns an error if the built-in schemas cannot be read.
    pub fn builtin(version: KubernetesVersion) -> Result<Self> {
        let builtin = Builtin::load(version)?;
        Ok(Self {
            types: SchemaSet::default(),
            mapper: builtin.rest_mapper(),
            builtin: Some(builtin),
        })
    }

    /// Adds the CustomResourceDefinitions in a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory or a file cannot be read, or if a CustomResourceDefinition has no names.
    pub fn with_crds(mut self, crds: &Path) -> Result<Self> {
        let added = Self::load(None, Some(crds))?;
        self.types = added.types;
        self.mapper.resources.extend(added.mapper.resources);
        self.mapper = RestMapper::new(self.mapper.resources);
        Ok(self)
    }
}

impl SchemaResolver for Schemas {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        match (self.types.resolve(gvk), self.builtin) {
            (Resolution::NotFound, Some(builtin)) => builtin.resolve(gvk),
            (resolution, _) => resolution,
        }
    }
}

fn add_crds(offline: &mut Offline, directory: &Path) -> Result<()> {
    for document in documents::load_documents(&[PathBuf::from(directory)])? {
        let value = document.value.with_context(|| document.file.clone())?;
        if value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
            let crd = Crd::from_value(&value).with_context(|| document.file.clone())?;
            offline.add_crd(&crd);
        }
    }
    Ok(())
}

/// Returns the OpenAPI documents in a directory, sorted by name.
///
/// # Errors
/// Returns an error if the directory cannot be read or has no documents.
pub(crate) fn document_paths(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| name.ends_with("_openapi.json"));
    names.sort();
    if names.is_empty() {
        bail!("no *_openapi.json in {}", directory.display());
    }
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

fn add_documents(offline: &mut Offline, directory: &Path) -> Result<()> {
    for path in document_paths(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let own = GroupVersion::from_openapi_file_name(&name);
        offline
            .add_document(own.as_ref(), &bytes)
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}
