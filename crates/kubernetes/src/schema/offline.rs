//! Loads schemas and served resources from files: OpenAPI documents and CustomResourceDefinitions.
//!
//! The served resources come from the paths in the OpenAPI documents, not from discovery.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::crd::Crd;
use super::error::SchemaError;
use super::intern::Interner;
use super::openapi::{OpenApiDocument, null_to_default};
use super::resolver::SchemaSet;
use super::rest_mapper::{ApiResource, RestMapper};
use super::{GroupVersion, Gvk, Gvr, extensions};

/// A collection of schemas and resources from several documents.
#[derive(Debug, Default)]
pub struct Offline {
    schemas: SchemaSet,
    resources: Vec<ApiResource>,
    interner: Interner,
}

impl Offline {
    /// Adds an OpenAPI v3 document. `own` is the group version of the document. Use
    /// [`GroupVersion::from_openapi_file_name`] to get it from the file name.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the document cannot be parsed.
    pub fn add_document(
        &mut self,
        own: Option<&GroupVersion>,
        bytes: &[u8],
    ) -> Result<(), SchemaError> {
        let document = OpenApiDocument::parse(bytes)?;
        self.schemas
            .add_document(own, &document, &mut self.interner);
        self.resources.extend(served_resources(bytes)?);
        Ok(())
    }

    /// Adds the schemas and resources of a CustomResourceDefinition.
    pub fn add_crd(&mut self, crd: &Crd) {
        self.schemas.add_crd(crd, &mut self.interner);
        self.resources.extend(crd.resources());
    }

    /// Returns all added schemas and resources.
    #[must_use]
    pub fn finish(self) -> (SchemaSet, RestMapper) {
        (self.schemas, RestMapper::new(self.resources))
    }
}

/// The parsed part of an OpenAPI document. A path with malformed operations is skipped.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default, deserialize_with = "null_to_default")]
    paths: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kind: Value,
}

/// Returns the resources and subresources that the document's paths serve.
///
/// # Errors
/// Returns [`SchemaError::Document`] if the document is not JSON or if its paths are malformed.
pub fn served_resources(bytes: &[u8]) -> Result<Vec<ApiResource>, SchemaError> {
    let text = String::from_utf8_lossy(bytes);
    let document: Document<'_> = serde_json::from_str(&text)
        .map_err(|error| SchemaError::Document(error.to_string().into()))?;
    let mut resources: Vec<ApiResource> = Vec::new();
    for (path, operations) in &document.paths {
        let Some((gvr, namespaced)) = served_at(path) else {
            continue;
        };
        let operations = serde_json::from_str(operations.get());
        let operations: HashMap<Cow<'_, str>, &RawValue> = operations.unwrap_or_default();
        // For subresources, try the kind of the request body first, then the kind of the response. For example, the
        // request body of `pods/eviction` is an Eviction.
        let verbs: &[&str] = if gvr.is_subresource() {
            &["post", "put", "patch", "get", "delete"]
        } else {
            &["get", "post", "put", "delete"]
        };
        let kind = verbs.iter().find_map(|verb| {
            let operation: Operation = serde_json::from_str(operations.get(*verb)?.get()).ok()?;
            extensions::kind(&operation.kind)
        });
        let Some(gvk) = kind else {
            continue;
        };
        resources.push(resource(gvr, gvk, namespaced));
    }
    Ok(resources)
}

/// Returns a resource whose singular name is its kind in lower case. Subresources have no singular name.
pub(super) fn resource(gvr: Gvr, gvk: Gvk, namespaced: bool) -> ApiResource {
    let singular = if gvr.is_subresource() {
        String::new()
    } else {
        gvk.kind.to_lowercase()
    };
    ApiResource {
        gvr,
        gvk,
        singular,
        namespaced,
    }
}

/// Returns the resource or subresource of a path. The boolean is true if the path contains a namespace. Returns `None`
/// for watch paths and paths without a resource.
fn served_at(path: &str) -> Option<(Gvr, bool)> {
    let mut parts = path.trim_matches('/').split('/').peekable();
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let version = parts.next()?;
    let mut resource = parts.next().filter(|first| *first != "watch")?;
    let namespaced = resource == "namespaces" && parts.peek() == Some(&"{namespace}");
    if namespaced {
        parts.next();
        resource = parts.next()?;
    }
    let name = match (parts.next(), parts.next()) {
        (None, _) | (Some("{name}"), None) => resource.to_owned(),
        (Some("{name}"), Some(subresource)) => format!("{resource}/{subresource}"),
        _ => return None,
    };
    parts
        .next()
        .is_none()
        .then(|| (Gvr::new(group, version, name), namespaced))
}
