//! The file with the schemas and resources of all supported Kubernetes versions.
//!
//! The file contains three tables. Each row contains the set of versions that share it, so a schema that several
//! versions publish is stored only once:
//!
//! - kinds: group, version, kind, and the name of the kind's definition
//! - resources: group, version and name of the resource; group, version and kind of the request objects; and the scope
//! - definitions: name, and the schema as JSON, without the list of its kinds
//!
//! `./dev schemas` generates the file from the OpenAPI v3 documents of each version. Only the keywords that affect
//! types and merges are kept.
//!
//! File format: the lengths of two zlib streams in 4 bytes each (little-endian), and the streams. The first stream is
//! the index: a line with the versions, and the lines of kinds and resources. The second stream is the lines of
//! definitions. Lines consist of fields separated by tabs. The first field of a row is its set of versions, as a
//! hexadecimal number whose bit `n` is set for version `n`.

use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::schema::error::SchemaError;
use crate::version::KubernetesVersion;

/// The maximum unpacked size of a stream, in bytes.
const MAX_UNPACKED_BYTES: usize = 16 * 1024 * 1024;

/// The number of bytes that encode the length of a stream.
const LENGTH_BYTES: usize = 4;

const KIND: &str = "kind";
const RESOURCE: &str = "resource";

/// The last field of a line with a namespaced resource.
const NAMESPACED: &str = "namespaced";

/// The set of Kubernetes versions that share a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionSet(u32);

impl VersionSet {
    /// Returns true if the set contains the version with index `n`.
    #[must_use]
    pub fn has(self, n: u32) -> bool {
        self.0.checked_shr(n).is_some_and(|bits| bits & 1 == 1)
    }

    /// Adds the version with index `n`.
    pub const fn add(&mut self, n: u32) {
        if let Some(bit) = 1u32.checked_shl(n) {
            self.0 |= bit;
        }
    }

    fn parse(text: &str) -> Option<Self> {
        u32::from_str_radix(text, 16).ok().map(Self)
    }
}

/// A kind, and the definition that describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindRow<'a> {
    /// The API group of the kind.
    pub group: &'a str,
    /// The API version of the kind.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The name of the definition.
    pub definition: &'a str,
}

/// A served resource or subresource, and the kind of the objects in its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceRow<'a> {
    /// The API group of the resource.
    pub group: &'a str,
    /// The API version of the resource.
    pub version: &'a str,
    /// The resource. A subresource is written `deployments/scale`.
    pub resource: &'a str,
    /// The group, version and kind of the objects in requests.
    pub gvk: (&'a str, &'a str, &'a str),
    /// True if the resource is namespaced.
    pub is_namespaced: bool,
}

/// A named schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefinitionRow<'a> {
    /// The name, such as `io.k8s.api.core.v1.Pod`.
    pub name: &'a str,
    /// The schema as JSON.
    pub schema: &'a str,
}

/// The tables of the file.
#[derive(Debug)]
pub struct Store {
    index: String,
    packed_definitions: &'static [u8],
    definitions: OnceLock<Result<String, SchemaError>>,
}

impl Store {
    /// Unpacks the index of a file. Definitions are unpacked when they are first used.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the file is truncated or corrupt.
    pub fn from_bytes(file: &'static [u8]) -> Result<Self, SchemaError> {
        let (index, packed_definitions) = split(file)?;
        Ok(Self {
            index: unpack(index)?,
            packed_definitions,
            definitions: OnceLock::new(),
        })
    }

    /// Returns the versions, such as `1.36.3`. The position of a version is its index in a [`VersionSet`].
    pub fn versions(&self) -> impl Iterator<Item = &str> {
        let first = self.index.lines().next();
        first.into_iter().flat_map(|line| line.split('\t'))
    }

    /// Returns the minor versions whose index satisfies `is_wanted`.
    pub(super) fn minors(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<KubernetesVersion> {
        let wanted = (0..).zip(self.versions()).filter(|(n, _)| is_wanted(*n));
        let parsed = wanted.filter_map(|(_, version)| version.parse::<KubernetesVersion>().ok());
        parsed
            .map(|version| KubernetesVersion::new(version.minor))
            .collect()
    }

    /// Returns the kinds with their versions, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = (VersionSet, KindRow<'_>)> {
        rows(&self.index).filter_map(|[set, table, group, version, kind, definition]| {
            let row = KindRow {
                group,
                version,
                kind,
                definition,
            };
            (table == KIND).then_some(())?;
            Some((VersionSet::parse(set)?, row))
        })
    }

    /// Returns the resources with their versions, sorted.
    pub fn resources(&self) -> impl Iterator<Item = (VersionSet, ResourceRow<'_>)> {
        rows(&self.index).filter_map(|row: [&str; 9]| {
            let [set, table, group, version, resource, gvk @ .., scope] = row;
            let row = ResourceRow {
                group,
                version,
                resource,
                gvk: gvk.into(),
                is_namespaced: scope == NAMESPACED,
            };
            (table == RESOURCE).then_some(())?;
            Some((VersionSet::parse(set)?, row))
        })
    }

    /// Returns the definitions with their versions, sorted by name.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the file is corrupt.
    pub fn definitions(
        &self,
    ) -> Result<impl Iterator<Item = (VersionSet, DefinitionRow<'_>)>, SchemaError> {
        let unpacked = self
            .definitions
            .get_or_init(|| unpack(self.packed_definitions));
        let text = unpacked.as_deref().map_err(SchemaError::clone)?;
        Ok(rows(text).filter_map(|[set, name, schema]| {
            Some((VersionSet::parse(set)?, DefinitionRow { name, schema }))
        }))
    }

    /// Returns true if the definitions have been unpacked.
    #[cfg(test)]
    pub(super) fn is_unpacked(&self) -> bool {
        self.definitions.get().is_some()
    }
}

/// Splits each line into `N` fields. Missing fields are empty. The last field is the rest of the line.
fn rows<const N: usize>(text: &str) -> impl Iterator<Item = [&str; N]> {
    text.lines().map(|line| {
        let mut row = [""; N];
        for (field, text) in row.iter_mut().zip(line.splitn(N, '\t')) {
            *field = text;
        }
        row
    })
}

/// Splits a file into its compressed streams.
fn split(file: &[u8]) -> Result<(&[u8], &[u8]), SchemaError> {
    let truncated = || SchemaError::Document("the built-in schema data is truncated".into());
    let (index_length, rest) = split_length(file).ok_or_else(truncated)?;
    let (length, rest) = split_length(rest).ok_or_else(truncated)?;
    let (index, rest) = rest.split_at_checked(index_length).ok_or_else(truncated)?;
    Ok((index, rest.get(..length).ok_or_else(truncated)?))
}

fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_at_checked(LENGTH_BYTES)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    Some((usize::try_from(length).ok()?, rest))
}

fn unpack(packed: &[u8]) -> Result<String, SchemaError> {
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, MAX_UNPACKED_BYTES)
        .map_err(|error| SchemaError::Document(error.to_string().into()))?;
    String::from_utf8(bytes).map_err(|error| SchemaError::Document(error.to_string().into()))
}

/// The unpacked streams of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// The first stream.
    pub index: String,
    /// The second stream.
    pub definitions: String,
}

impl Tables {
    /// Creates empty tables for these versions, which must be sorted, oldest first.
    #[must_use]
    pub fn new(versions: &[&str]) -> Self {
        Self {
            index: format!("{}\n", versions.join("\t")),
            definitions: String::new(),
        }
    }

    /// Unpacks a file.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the file is truncated or corrupt.
    pub fn unpack(file: &[u8]) -> Result<Self, SchemaError> {
        let (index, definitions) = split(file)?;
        Ok(Self {
            index: unpack(index)?,
            definitions: unpack(definitions)?,
        })
    }

    /// Adds a row with a kind.
    pub fn add_kind(&mut self, set: VersionSet, row: &KindRow<'_>) {
        let KindRow {
            group,
            version,
            kind,
            definition,
        } = row;
        let set = set.0;
        let _ = writeln!(
            self.index,
            "{set:x}\t{KIND}\t{group}\t{version}\t{kind}\t{definition}"
        );
    }

    /// Adds a row with a resource.
    pub fn add_resource(&mut self, set: VersionSet, row: &ResourceRow<'_>) {
        let ResourceRow {
            group,
            version,
            resource,
            gvk,
            is_namespaced,
        } = row;
        let (of_group, of_version, kind) = gvk;
        let scope = if *is_namespaced { NAMESPACED } else { "" };
        let set = set.0;
        let _ = writeln!(
            self.index,
            "{set:x}\t{RESOURCE}\t{group}\t{version}\t{resource}\t{of_group}\t{of_version}\t{kind}\t{scope}"
        );
    }

    /// Adds a row with a definition.
    pub fn add_definition(&mut self, set: VersionSet, row: &DefinitionRow<'_>) {
        let DefinitionRow { name, schema } = row;
        let _ = writeln!(self.definitions, "{:x}\t{name}\t{schema}", set.0);
    }

    /// Compresses the streams with `compress` and returns the file. `None` if a stream is longer than 4 GiB.
    #[must_use]
    pub fn pack(&self, compress: impl Fn(&[u8]) -> Vec<u8>) -> Option<Vec<u8>> {
        let streams = [&self.index, &self.definitions].map(|text| compress(text.as_bytes()));
        let mut file = Vec::new();
        for stream in &streams {
            file.extend(u32::try_from(stream.len()).ok()?.to_le_bytes());
        }
        file.extend(streams.concat());
        Some(file)
    }
}
