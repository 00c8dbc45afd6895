//! The schemas and resources of the built-in Kubernetes APIs, for checking policies without a cluster.
//!
//! The data file contains the OpenAPI v3 documents that the API server publishes, one per group version. Only the
//! keywords that affect types and merges are kept. Each document is compressed separately. A document is unpacked and
//! converted when one of its kinds is first requested.
//!
//! `./dev schemas` generates the data file. A test compares the types in the data file with the types in the original
//! documents.
//!
//! File format: the length of the index in 4 bytes (little-endian), the index, and the documents. The index and each
//! document are JSON compressed with zlib.

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

static DATA: &[u8] = include_bytes!("builtin.bin");

/// The maximum unpacked size of the index or of a document, in bytes.
const MAX_UNPACKED_BYTES: usize = 16 * 1024 * 1024;

/// The number of bytes that encode the length of the index.
const HEAD_BYTES: usize = 4;

/// The table of contents of the data file.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Index {
    /// The version of Kubernetes, such as `1.36.3`.
    pub kubernetes: String,
    /// The documents, in file order.
    pub documents: Vec<IndexDocument>,
    /// The served resources and subresources.
    pub resources: Vec<IndexResource>,
}

/// The index entry of a document.
#[derive(Debug, Deserialize, Serialize)]
pub struct IndexDocument {
    /// The compressed length of the document, in bytes.
    pub length: usize,
    /// Group, version and kind of each schema in the document.
    pub kinds: Vec<(String, String, String)>,
}

/// The index entry of a served resource.
#[derive(Debug, Deserialize, Serialize)]
pub struct IndexResource {
    /// Group, version and name. A subresource is written `deployments/scale`.
    pub gvr: (String, String, String),
    /// Group, version and kind of the request objects.
    pub gvk: (String, String, String),
    /// The singular name. Empty for subresources.
    pub singular: String,
    /// True if the resource is namespaced.
    pub namespaced: bool,
}

/// The types and resources of the built-in APIs.
#[derive(Debug)]
pub struct Builtin {
    kubernetes: String,
    resources: Vec<ApiResource>,
    documents: Vec<Document>,
    /// The index in `documents` of each kind's document.
    kinds: HashMap<Gvk, usize>,
}

type Types = HashMap<Gvk, Result<Arc<DeclType>, SchemaError>>;

#[derive(Debug)]
struct Document {
    packed: &'static [u8],
    types: OnceLock<Result<Types, SchemaError>>,
}

impl Builtin {
    /// Loads the data file compiled into this program. Does not unpack the documents.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the data file is corrupt.
    pub fn load() -> Result<Self, SchemaError> {
        Self::from_bytes(DATA)
    }

    fn from_bytes(data: &'static [u8]) -> Result<Self, SchemaError> {
        let broken = || SchemaError::Document("the built-in schema data is truncated".into());
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

    /// Returns the Kubernetes version of the data, such as `1.36.3`.
    #[must_use]
    pub fn kubernetes(&self) -> &str {
        &self.kubernetes
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

    /// Unpacks the OpenAPI document that contains the kind's schema. The document has only the keywords that affect
    /// types and merges.
    ///
    /// # Errors
    /// Returns [`SchemaError::UnknownKind`] if no document has a schema for the kind.
    pub fn document(&self, gvk: &Gvk) -> Result<Vec<u8>, SchemaError> {
        let document = self.kinds.get(gvk).and_then(|n| self.documents.get(*n));
        unpack(document.ok_or(SchemaError::UnknownKind)?.packed)
    }

    /// Returns the number of the document that contains the kind's schema. Kinds in the same document have the same
    /// number.
    #[must_use]
    pub fn document_number(&self, gvk: &Gvk) -> Option<usize> {
        self.kinds.get(gvk).copied()
    }

    /// Returns the group versions that have at least one resource.
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
    fn builtin_documents_are_unpacked_on_demand() {
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
    fn builtin_documents_with_truncated_data_are_an_error() {
        for length in [0, 3, 4, 100, DATA.len() - 1] {
            assert!(Builtin::from_bytes(&DATA[..length]).is_err(), "{length}");
        }
    }
}
