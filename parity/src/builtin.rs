//! Generates the plugin's built-in schemas from Kubernetes' OpenAPI documents.
//!
//! Source: `k8s.io/kubernetes` `api/openapi-spec/v3`, reduced to facts about types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::{Map, Value, json};
use vap_status_controller::schema::builtin::{Index, IndexDocument, IndexResource};
use vap_status_controller::schema::extensions;
use vap_status_controller::schema::offline::served_resources;
use vap_status_controller::schema::{GroupVersion, Gvk, OpenApiDocument, RestMapper};

/// The compression level with the smallest output.
const LEVEL: u8 = 10;

/// The schema keywords that affect types or merges and whose values contain no schemas.
const KEYWORDS: [&str; 19] = [
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
    extensions::GROUP_VERSION_KIND,
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
];

/// Packs the OpenAPI documents in `directory` into the contents of a file. `version` is the Kubernetes version of the
/// documents.
///
/// # Errors
///
/// Returns an error if there are no documents or one cannot be read.
pub fn pack(directory: &Path, version: &str) -> Result<Vec<u8>> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| name.ends_with("_openapi.json"));
    names.sort();
    if names.is_empty() {
        bail!("no *_openapi.json in {}", directory.display());
    }
    let mut documents = Vec::new();
    let mut resources = Vec::new();
    for name in names {
        let bytes = fs::read(directory.join(&name)).with_context(|| name.clone())?;
        resources.extend(served_resources(&bytes).with_context(|| name.clone())?);
        let kinds: Vec<Gvk> = OpenApiDocument::parse(&bytes)
            .with_context(|| name.clone())?
            .kinds()
            .cloned()
            .collect();
        if kinds.is_empty() {
            continue;
        }
        let document: Value = serde_json::from_slice(&bytes).with_context(|| name.clone())?;
        let own = GroupVersion::from_openapi_file_name(&name);
        documents.push((own, kinds, reduced(&document).to_string()));
    }
    // The schema of a kind comes from the document of the kind's group version. If this document lacks the kind, it
    // comes from the first document with the kind.
    let mut holders: BTreeMap<Gvk, usize> = BTreeMap::new();
    for (n, (own, kinds, _)) in documents.iter().enumerate() {
        for gvk in kinds {
            if own.as_ref() == Some(&gvk.group_version()) {
                holders.insert(gvk.clone(), n);
            } else {
                holders.entry(gvk.clone()).or_insert(n);
            }
        }
    }
    let mut index = Index {
        kubernetes: version.to_owned(),
        resources: RestMapper::new(resources)
            .resources
            .into_iter()
            .map(|resource| IndexResource {
                gvr: (
                    resource.gvr.group,
                    resource.gvr.version,
                    resource.gvr.resource,
                ),
                gvk: triple(&resource.gvk),
                singular: resource.singular,
                namespaced: resource.namespaced,
            })
            .collect(),
        ..Index::default()
    };
    let mut packed = Vec::new();
    for (n, (_, _, text)) in documents.iter().enumerate() {
        let bytes = compress_to_vec_zlib(text.as_bytes(), LEVEL);
        let held = holders.iter().filter(|(_, holder)| **holder == n);
        index.documents.push(IndexDocument {
            length: bytes.len(),
            kinds: held.map(|(gvk, _)| triple(gvk)).collect(),
        });
        packed.extend(bytes);
    }
    let index = compress_to_vec_zlib(serde_json::to_string(&index)?.as_bytes(), LEVEL);
    let mut file = u32::try_from(index.len())?.to_le_bytes().to_vec();
    file.extend(index);
    file.extend(packed);
    Ok(file)
}

/// Unpacks the contents of a file into the documents. Comparisons of documents do not depend on the compression.
///
/// # Errors
///
/// Returns an error if the file was not written by [`pack`].
pub fn unpack(file: &[u8]) -> Result<Vec<String>> {
    let (head, rest) = file.split_at_checked(4).context("no length")?;
    let length = usize::try_from(u32::from_le_bytes(head.try_into()?))?;
    let (index, mut rest) = rest.split_at_checked(length).context("no index")?;
    let text = |packed: &[u8]| -> Result<String> {
        Ok(String::from_utf8(
            decompress_to_vec_zlib(packed).map_err(|error| anyhow::anyhow!("{error}"))?,
        )?)
    };
    let mut index: Index = serde_json::from_str(&text(index)?)?;
    let mut texts = Vec::new();
    for document in &mut index.documents {
        let (packed, behind) = rest
            .split_at_checked(document.length)
            .context("a document is missing")?;
        texts.push(text(packed)?);
        rest = behind;
        document.length = 0;
    }
    texts.push(serde_json::to_string(&index)?);
    Ok(texts)
}

fn triple(gvk: &Gvk) -> (String, String, String) {
    (gvk.group.clone(), gvk.version.clone(), gvk.kind.clone())
}

/// Returns the document with only its reduced schemas.
fn reduced(document: &Value) -> Value {
    let schemas = document.pointer("/components/schemas");
    let schemas = schemas.and_then(Value::as_object);
    let schemas: Map<String, Value> = schemas
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), reduced_schema(schema)))
        .collect();
    json!({"components": {"schemas": schemas}})
}

/// Removes the keywords that affect neither types nor merges. If a default is not a scalar, only its presence is
/// recorded, because the keys of lists have scalar defaults.
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
