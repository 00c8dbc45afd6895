//! Configuration of a watch.

use std::time::Duration;

/// Representations of objects that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    Whole,
    /// Its metadata.
    Metadata,
}

impl Representation {
    /// The media type of a watch event or of a list.
    pub(super) const fn media_type(self, is_watch: bool) -> &'static str {
        match (self, is_watch) {
            (Self::Whole, _) => "application/json",
            (Self::Metadata, true) => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            }
            (Self::Metadata, false) => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
        }
    }
}

/// Forms of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// As the first events of the watch, with one object in memory at a time. In pages of this size if the API server
    /// does not stream lists.
    Streamed(u32),
    /// In pages of this size.
    Paged(u32),
}

/// Configuration of a watch: its objects, and how they are listed.
#[derive(Clone, Debug)]
pub(crate) struct ListWatchConfig {
    /// The path of the kind, such as `/apis/apps/v1/deployments`.
    pub(crate) path: String,
    /// Representation of each object.
    pub(crate) representation: Representation,
    /// The form of the list.
    pub(crate) listing: Listing,
    /// The duration of one watch request.
    pub(crate) life: Duration,
    /// The most memory that the tree of one object may need, in bytes; `usize::MAX` if the type of the objects builds none
    /// or has its own limit.
    pub(crate) max_unpacked: usize,
}
