//! The configuration of a list and watch.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    /// The whole object.
    Whole,
    /// Only the metadata of the object.
    Metadata,
}

impl Representation {
    /// Returns the media type for watch events or lists in this representation.
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
    /// As the first events of the watch. Then only one object is in memory at a time. If the API server does not
    /// support streamed lists, the list is requested in pages of this number of objects.
    Streamed(u32),
    /// In pages of this number of objects.
    Paged(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct ListWatchConfig {
    /// The URL path of the resource, such as `/apis/apps/v1/deployments`.
    pub(crate) path: String,
    pub(crate) representation: Representation,
    pub(crate) listing: Listing,
    /// How long one watch request lasts.
    pub(crate) life: Duration,
    /// The maximum memory of one parsed object, in bytes. `usize::MAX` if the type of the objects does not contain
    /// arbitrary JSON or has its own limit.
    pub(crate) max_unpacked: usize,
}
