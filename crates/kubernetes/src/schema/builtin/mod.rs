//! The schemas and resources of the built-in Kubernetes APIs, for checking policies without a cluster.
//!
//! All supported versions share one file (`store`). A schema is converted when a kind of its group version is first
//! requested.

pub mod store;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use self::store::{Store, VersionSet};
use super::decl_type::DeclType;
use super::error::SchemaError;
use super::extensions::GROUP_VERSION_KIND;
use super::intern::Interner;
use super::openapi::OpenApiDocument;
use super::resolver::{Resolution, SchemaResolver};
use super::rest_mapper::{ApiResource, RestMapper};
use super::{GroupVersion, Gvk, Gvr, offline};
use crate::version::KubernetesVersion;

static FILE: &[u8] = include_bytes!("store.bin");

/// The prefix of a reference to a definition, in JSON syntax.
const REFERENCE: &str = "\"$ref\":\"#/components/schemas/";

/// The types and resources of the built-in APIs of one Kubernetes version.
#[derive(Debug)]
pub struct Builtin {
    store: &'static Store,
    /// The index of the version in the store.
    version: u32,
    kubernetes: &'static str,
    resources: Vec<ApiResource>,
    documents: Vec<Document>,
    kinds: HashMap<Gvk, Kind>,
    /// The schema of each definition, by name.
    definitions: OnceLock<Result<HashMap<&'static str, &'static str>, SchemaError>>,
}

#[derive(Debug)]
struct Kind {
    /// The name of the kind's definition.
    definition: &'static str,
    /// The index of the group version in [`Builtin::documents`].
    document: usize,
}

type Types = HashMap<Gvk, Result<Arc<DeclType>, SchemaError>>;

/// The kinds of one group version.
#[derive(Debug)]
struct Document {
    group_version: GroupVersion,
    types: OnceLock<Result<Types, SchemaError>>,
}

impl Builtin {
    /// Returns the built-in APIs of the supported version that is closest to `version`. They are loaded on first use.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the data in this program is corrupt.
    pub fn load(version: KubernetesVersion) -> Result<&'static Self, SchemaError> {
        const N_MINORS: usize = KubernetesVersion::N_SUPPORTED;
        static LOADED: [OnceLock<Result<Builtin, SchemaError>>; N_MINORS] =
            [const { OnceLock::new() }; N_MINORS];
        let minor = version.nearest_supported().minor;
        let n = usize::from(minor.saturating_sub(KubernetesVersion::OLDEST.minor));
        let loaded = LOADED.get(n).ok_or_else(|| no_version(minor))?;
        let builtin = loaded.get_or_init(|| Self::from_store(store()?, minor));
        builtin.as_ref().map_err(SchemaError::clone)
    }

    /// Returns the supported versions that serve the resource, oldest first.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the data in this program is corrupt.
    pub fn versions_with_resource(gvr: &Gvr) -> Result<Vec<KubernetesVersion>, SchemaError> {
        let store = store()?;
        let of_resource = store.resources().filter(|(_, row)| {
            (row.group, row.version, row.resource) == (&*gvr.group, &*gvr.version, &*gvr.resource)
        });
        let sets: Vec<VersionSet> = of_resource.map(|(set, _)| set).collect();
        Ok(store.minors(|n| sets.iter().any(|set| set.has(n))))
    }

    /// Returns the supported versions in which a definition has a property `name` that the same definition lacks in
    /// this version. The versions are sorted, oldest first.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the data in this program is corrupt.
    pub fn versions_that_add_property(
        &self,
        name: &str,
    ) -> Result<Vec<KubernetesVersion>, SchemaError> {
        let property = format!("{}:{{", serde_json::Value::from(name));
        let definitions = self.store.definitions()?;
        let with_property: Vec<_> = definitions
            .filter(|(_, row)| row.schema.contains(&property))
            .collect();
        let own = with_property
            .iter()
            .filter(|(set, _)| set.has(self.version));
        let own: HashSet<&str> = own.map(|(_, row)| row.name).collect();
        let added: Vec<VersionSet> = with_property
            .iter()
            .filter(|(_, row)| !own.contains(row.name))
            .map(|(set, _)| *set)
            .collect();
        Ok(self.store.minors(|n| added.iter().any(|set| set.has(n))))
    }

    fn from_store(store: &'static Store, minor: u16) -> Result<Self, SchemaError> {
        let prefix = format!("1.{minor}.");
        let mut versions = (0..).zip(store.versions());
        let (version, kubernetes) = versions
            .find(|(_, version)| version.starts_with(&prefix))
            .ok_or_else(|| no_version(minor))?;
        let mut documents: Vec<Document> = Vec::new();
        let mut kinds = HashMap::new();
        for (set, row) in store.kinds() {
            if !set.has(version) {
                continue;
            }
            let gvk = Gvk::new(row.group, row.version, row.kind);
            // Rows are sorted by group and version, so all kinds of a group version are adjacent.
            let group_version = gvk.group_version();
            if documents.last().map(|last| &last.group_version) != Some(&group_version) {
                documents.push(Document {
                    group_version,
                    types: OnceLock::new(),
                });
            }
            let kind = Kind {
                definition: row.definition,
                document: documents.len().saturating_sub(1),
            };
            kinds.insert(gvk, kind);
        }
        let served = store.resources().filter(|(set, _)| set.has(version));
        let resources = served
            .map(|(_, row)| {
                let gvr = Gvr::new(row.group, row.version, row.resource);
                let (group, version, kind) = row.gvk;
                offline::resource(gvr, Gvk::new(group, version, kind), row.is_namespaced)
            })
            .collect();
        Ok(Self {
            store,
            version,
            kubernetes,
            resources,
            documents,
            kinds,
            definitions: OnceLock::new(),
        })
    }

    /// Returns the Kubernetes version of the data, such as `1.36.3`.
    #[must_use]
    pub fn kubernetes(&self) -> &str {
        self.kubernetes
    }

    /// Returns a mapper of the built-in resources.
    #[must_use]
    pub fn rest_mapper(&self) -> RestMapper {
        RestMapper::new(self.resources().to_vec())
    }

    /// Returns the resources and subresources that Kubernetes serves.
    #[must_use]
    pub fn resources(&self) -> &[ApiResource] {
        &self.resources
    }

    /// Returns true if the data contains a schema for the kind.
    #[must_use]
    pub fn has(&self, gvk: &Gvk) -> bool {
        self.kinds.contains_key(gvk)
    }

    /// Returns the kinds with a schema, in arbitrary order.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// Returns the schema of a definition as JSON. It contains only the keywords that affect types and merges.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the data in this program is corrupt.
    pub fn definition(&self, name: &str) -> Result<Option<&str>, SchemaError> {
        Ok(self.definitions()?.get(name).copied())
    }

    /// Returns an OpenAPI document with the schemas of all kinds in the kind's group version.
    ///
    /// # Errors
    /// Returns [`SchemaError::UnknownKind`] if the kind has no schema.
    pub fn document(&self, gvk: &Gvk) -> Result<String, SchemaError> {
        let kind = self.kinds.get(gvk).ok_or(SchemaError::UnknownKind)?;
        self.published(kind.document)
    }

    /// Returns a number that identifies the document that contains the kind's schema.
    #[must_use]
    pub fn document_number(&self, gvk: &Gvk) -> Option<usize> {
        self.kinds.get(gvk).map(|kind| kind.document)
    }

    /// Returns the group versions that have at least one resource.
    #[must_use]
    pub fn group_versions(&self) -> BTreeSet<GroupVersion> {
        let served = self.resources.iter();
        served.map(|served| served.gvr.group_version()).collect()
    }

    fn definitions(&self) -> Result<&HashMap<&'static str, &'static str>, SchemaError> {
        let definitions = self.definitions.get_or_init(|| {
            let rows = self.store.definitions()?;
            let of_version = rows.filter(|(set, _)| set.has(self.version));
            Ok(of_version.map(|(_, row)| (row.name, row.schema)).collect())
        });
        definitions.as_ref().map_err(SchemaError::clone)
    }

    /// Returns the document with index `n` as JSON. The document contains the definitions of its kinds, and the
    /// definitions to which they refer.
    fn published(&self, n: usize) -> Result<String, SchemaError> {
        let definitions = self.definitions()?;
        let mut kinds: BTreeMap<&str, Vec<serde_json::Value>> = BTreeMap::new();
        for (gvk, kind) in self.kinds.iter().filter(|(_, kind)| kind.document == n) {
            kinds
                .entry(kind.definition)
                .or_default()
                .push(serde_json::json!({
                    "group": gvk.group,
                    "version": gvk.version,
                    "kind": gvk.kind,
                }));
        }
        let mut names: BTreeSet<&str> = kinds.keys().copied().collect();
        let mut pending: Vec<&str> = names.iter().copied().collect();
        let mut text = String::from("{\"components\":{\"schemas\":{");
        while let Some(name) = pending.pop() {
            let Some(schema) = definitions.get(name) else {
                continue;
            };
            let references = schema.split(REFERENCE).skip(1);
            for name in references.filter_map(|rest| rest.split('"').next()) {
                if names.insert(name) {
                    pending.push(name);
                }
            }
            if !text.ends_with('{') {
                text.push(',');
            }
            text.extend(["\"", name, "\":{"]);
            let keywords = schema.strip_prefix('{').unwrap_or("}");
            if let Some(kinds) = kinds.remove(name) {
                let kinds = serde_json::Value::Array(kinds).to_string();
                text.extend(["\"", GROUP_VERSION_KIND, "\":", &kinds]);
                if keywords != "}" {
                    text.push(',');
                }
            }
            text.push_str(keywords);
        }
        text.push_str("}}}");
        Ok(text)
    }

    fn types(&self, n: usize) -> Result<Types, SchemaError> {
        let document = OpenApiDocument::parse(self.published(n)?.as_bytes())?;
        let types = document.decl_types(&mut Interner::default());
        Ok(types.into_iter().collect())
    }
}

impl SchemaResolver for Builtin {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        let number = self.document_number(gvk);
        let document = number.and_then(|n| Some((n, self.documents.get(n)?)));
        let Some((n, document)) = document else {
            return Resolution::NotFound;
        };
        match document.types.get_or_init(|| self.types(n)) {
            Ok(types) => match types.get(gvk) {
                Some(Ok(type_)) => Resolution::Found(Arc::clone(type_)),
                Some(Err(error)) => Resolution::Unavailable(error.to_string()),
                None => Resolution::NotFound,
            },
            Err(error) => Resolution::Unavailable(error.to_string()),
        }
    }
}

/// Returns the tables that are built into this program.
fn store() -> Result<&'static Store, SchemaError> {
    static STORE: OnceLock<Result<Store, SchemaError>> = OnceLock::new();
    let store = STORE.get_or_init(|| Store::from_bytes(FILE));
    store.as_ref().map_err(SchemaError::clone)
}

fn no_version(minor: u16) -> SchemaError {
    SchemaError::Document(format!("the built-in schema data lacks Kubernetes 1.{minor}").into())
}

#[cfg(test)]
mod tests;
