//! The configuration of a list and watch.

use std::time::Duration;

/// The representation of objects to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    Whole,
    /// Only the metadata of the object.
    Metadata,
}

impl Representation {
    /// Returns the media type of watch events or of lists in this representation.
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

/// How to request a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// As the first events of the watch, so that only one object is in memory at a time. If the API server does not
    /// support streamed lists, the list is requested in pages of this number of objects.
    Streamed(u32),
    /// In pages of this number of objects.
    Paged(u32),
}

/// Configuration of a list and watch.
#[derive(Clone, Debug)]
pub(crate) struct ListWatchConfig {
    /// The URL path of the resource, such as `/apis/apps/v1/deployments`.
    pub(crate) path: String,
    /// The representation of objects.
    pub(crate) representation: Representation,
    /// How the list is requested.
    pub(crate) listing: Listing,
    /// The duration of one watch request.
    pub(crate) life: Duration,
    /// The maximum memory of one parsed object, in bytes. `usize::MAX` if the type of the objects does not parse
    /// arbitrary JSON or has its own limit.
    pub(crate) max_unpacked: usize,
}
