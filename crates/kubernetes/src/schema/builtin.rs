//! The built-in schemas and resources of Kubernetes, for checking policies without a cluster.
//!
//! The data are the OpenAPI v3 documents that the API server publishes, one for each group version, reduced to the
//! keywords that affect types and compressed individually. A document is unpacked and converted when the first of its
//! kinds is requested. `./dev schemas` generates the file, and a test compares its types with those of the documents.
//!
//! File format: the length of the index in 4 bytes (little-endian), the index, the documents. Index and documents are
//! JSON compressed with zlib.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::decl_type::DeclType;
use super::error::SchemaError;
use super::intern::Interner;
use super::openapi::OpenApiDocument;
use super::resolver::{Resolution, SchemaResolver};
use super::rest_mapper::ApiResource;
use super::{GroupVersion, Gvk, Gvr};

/// The built-in data.
static DATA: &[u8] = include_bytes!("builtin.bin");

/// The maximum unpacked size of the index or a document, in bytes.
const MAX_UNPACKED_BYTES: usize = 16 * 1024 * 1024;

/// The size of the length of the index, in bytes.
const HEAD_BYTES: usize = 4;

/// The index of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Index {
    /// The version of Kubernetes, `1.36.3`.
    pub kubernetes: String,
    /// The documents, in the order of the file.
    pub documents: Vec<IndexDocument>,
    /// The served resources and subresources.
    pub resources: Vec<IndexResource>,
}

/// A document in the index.
#[derive(Debug, Deserialize, Serialize)]
pub struct IndexDocument {
    /// The compressed length, in bytes.
    pub length: usize,
    /// The kinds with a schema in this document: group, version, kind.
    pub kinds: Vec<(String, String, String)>,
}

/// A resource in the index.
#[derive(Debug, Deserialize, Serialize)]
pub struct IndexResource {
    /// Group, version and name. The name of a subresource has the form `deployments/scale`.
    pub gvr: (String, String, String),
    /// Group, version and kind of the objects in its requests.
    pub gvk: (String, String, String),
    /// The singular name.
    pub singular: String,
    /// True if the resource is namespaced.
    pub namespaced: bool,
}

/// The types and resources of the built-in APIs, unpacked on demand.
#[derive(Debug)]
pub struct Builtin {
    kubernetes: String,
    resources: Vec<ApiResource>,
    documents: Vec<Document>,
    /// The index of the document of each kind.
    kinds: HashMap<Gvk, usize>,
}

/// The types of one document.
type Types = HashMap<Gvk, Result<Arc<DeclType>, SchemaError>>;

#[derive(Debug)]
struct Document {
    packed: &'static [u8],
    types: OnceLock<Result<Types, SchemaError>>,
}

impl Builtin {
    /// Loads the data of this build. The documents stay compressed.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] only in a build that fails its tests.
    pub fn load() -> Result<Self, SchemaError> {
        Self::from_bytes(DATA)
    }

    fn from_bytes(data: &'static [u8]) -> Result<Self, SchemaError> {
        let broken = || SchemaError::Document("the built-in schemas are cut short".into());
        let (head, rest) = data.split_at_checked(HEAD_BYTES).ok_or_else(broken)?;
        let head: [u8; HEAD_BYTES] = head.try_into().map_err(|_| broken())?;
        let length = usize::try_from(u32::from_le_bytes(head)).map_err(|_| broken())?;
        let (index, mut rest) = rest.split_at_checked(length).ok_or_else(broken)?;
        let index: Index = serde_json::from_slice(&unpack(index)?)
            .map_err(|error| SchemaError::Document(error.to_string().into()))?;

        let mut documents = Vec::with_capacity(index.documents.len());
        let mut kinds = HashMap::new();
        for (n, document) in index.documents.into_iter().enumerate() {
            let (packed, behind) = rest.split_at_checked(document.length).ok_or_else(broken)?;
            rest = behind;
            documents.push(Document {
                packed,
                types: OnceLock::new(),
            });
            kinds.extend(document.kinds.into_iter().map(|kind| (gvk(kind), n)));
        }
        let resources = index
            .resources
            .into_iter()
            .map(|resource| ApiResource {
                gvr: Gvr::new(resource.gvr.0, resource.gvr.1, resource.gvr.2),
                gvk: gvk(resource.gvk),
                singular: resource.singular,
                namespaced: resource.namespaced,
            })
            .collect();
        Ok(Self {
            kubernetes: index.kubernetes,
            resources,
            documents,
            kinds,
        })
    }

    /// Returns the version of Kubernetes of the data, `1.36.3`.
    #[must_use]
    pub fn kubernetes(&self) -> &str {
        &self.kubernetes
    }

    /// Returns the resources and subresources that Kubernetes serves.
    #[must_use]
    pub fn resources(&self) -> &[ApiResource] {
        &self.resources
    }

    /// Returns true if the kind has a schema.
    #[must_use]
    pub fn has(&self, gvk: &Gvk) -> bool {
        self.kinds.contains_key(gvk)
    }

    /// Returns the kinds with a schema, in no order.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// Returns the OpenAPI document with the schema of the kind, reduced to the keywords that affect types and merges.
    ///
    /// # Errors
    /// Returns [`SchemaError::UnknownKind`] if no document has the kind.
    pub fn document(&self, gvk: &Gvk) -> Result<Vec<u8>, SchemaError> {
        let document = self.kinds.get(gvk).and_then(|n| self.documents.get(*n));
        unpack(document.ok_or(SchemaError::UnknownKind)?.packed)
    }

    /// Returns the number of the document with the kind's schema. Kinds with the same number share
    /// [`Builtin::document`].
    #[must_use]
    pub fn document_number(&self, gvk: &Gvk) -> Option<usize> {
        self.kinds.get(gvk).copied()
    }

    /// Returns the group versions that serve a resource.
    #[must_use]
    pub fn group_versions(&self) -> BTreeSet<GroupVersion> {
        let served = self.resources.iter();
        served.map(|served| served.gvr.group_version()).collect()
    }
}

impl SchemaResolver for Builtin {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        let document = self.kinds.get(gvk).and_then(|n| self.documents.get(*n));
        let Some(document) = document else {
            return Resolution::NotFound;
        };
        match document.types.get_or_init(|| types(document.packed)) {
            Ok(types) => match types.get(gvk) {
                Some(Ok(type_)) => Resolution::Found(Arc::clone(type_)),
                Some(Err(error)) => Resolution::Unavailable(error.to_string()),
                None => Resolution::NotFound,
            },
            Err(error) => Resolution::Unavailable(error.to_string()),
        }
    }
}

fn types(packed: &[u8]) -> Result<Types, SchemaError> {
    let document = OpenApiDocument::parse(&unpack(packed)?)?;
    let types = document.decl_types(&mut Interner::default());
    Ok(types.into_iter().collect())
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, SchemaError> {
    miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, MAX_UNPACKED_BYTES)
        .map_err(|error| SchemaError::Document(error.to_string().into()))
}

fn gvk((group, version, kind): (String, String, String)) -> Gvk {
    Gvk::new(group, version, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_unpacked_on_demand() {
        let builtin = Builtin::load().unwrap();
        let unpacked = |builtin: &Builtin| {
            let documents = builtin.documents.iter();
            documents
                .filter(|document| document.types.get().is_some())
                .count()
        };
        assert_eq!(unpacked(&builtin), 0);
        let deployment = Gvk::new("apps", "v1", "Deployment");
        assert!(matches!(builtin.resolve(&deployment), Resolution::Found(_)));
        assert_eq!(unpacked(&builtin), 1);
        let unknown = Gvk::new("apps", "v1", "Deploymint");
        assert!(matches!(builtin.resolve(&unknown), Resolution::NotFound));
        assert_eq!(unpacked(&builtin), 1);
    }

    #[test]
    fn truncated_data_is_an_error() {
        for length in [0, 3, 4, 100, DATA.len() - 1] {
            assert!(Builtin::from_bytes(&DATA[..length]).is_err(), "{length}");
        }
    }
}
