//! Parsers of lists and watches: events, pages, bookmarks, and objects one by one.
//!
//! An object that cannot be parsed is an event about this object, and not an error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::skim::{Item, Skim};
use crate::cluster::error::Error;
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::subjects::packed::full_name;

/// Marks the bookmark that ends a streamed list.
///
/// Source: apimachinery `pkg/apis/meta/v1/types.go`, `InitialEventsAnnotationKey`.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An object that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Its name, with its namespace before it where it has one; empty where that cannot be read either.
    pub(crate) name: String,
    /// Description of the problem.
    pub(crate) problem: String,
}

/// One line of a watch.
#[derive(Deserialize)]
struct WatchEvent<'a> {
    #[serde(rename = "type", borrow)]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// One page of a list without its items.
#[derive(Deserialize)]
struct ListPage {
    #[serde(default)]
    metadata: Option<PageMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_: Option<String>,
}

/// As much of any object as it takes to go on.
#[derive(Default, Deserialize)]
struct Outline {
    #[serde(default)]
    metadata: Option<OutlineMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutlineMetadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

/// The annotations of a bookmark.
#[derive(Default, Deserialize)]
struct Bookmark {
    #[serde(default)]
    metadata: BookmarkMetadata,
}

#[derive(Default, Deserialize)]
struct BookmarkMetadata {
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

/// Content of a line of a watch.
pub(super) enum WireEvent<K> {
    Applied(Result<K, Unreadable>),
    Deleted(Result<K, Unreadable>),
    Bookmark { ends_list: bool },
    Error(Error),
}

/// Continuation of a list after the items of a page.
pub(super) enum Page {
    /// The page after this mark, the first where it is empty.
    After(String),
    /// Nothing: this was the state of the cluster that the list tells of.
    None { version: String },
}

/// Reads the parts of a page besides its items.
///
/// # Errors
/// If it is no list.
pub(super) fn read_page(rest: &[u8]) -> Result<Page, Error> {
    let page: ListPage =
        serde_json::from_slice(rest).map_err(|error| Error::Decode(error.to_string()))?;
    let metadata = page.metadata.unwrap_or_default();
    Ok(match metadata.continue_.filter(|mark| !mark.is_empty()) {
        Some(mark) => Page::After(mark),
        None => Page::None {
            version: metadata.resource_version.unwrap_or_default(),
        },
    })
}

/// Reads an item of a page, which may need `max_unpacked` bytes of memory.
pub(super) fn item<K: Resource + DeserializeOwned>(
    item: Item,
    max_unpacked: usize,
) -> Result<K, Unreadable> {
    match item {
        Item::TooLong(skim) => Err(too_long(&skim)),
        Item::Whole(bytes) => match serde_json::from_slice::<&RawValue>(&bytes) {
            Ok(raw) => object(raw, max_unpacked),
            Err(error) => Err(Unreadable {
                name: String::new(),
                problem: error.to_string(),
            }),
        },
    }
}

/// Describes an object whose text is too long.
fn too_long(skim: &Skim) -> Unreadable {
    Unreadable {
        name: full_name(skim.namespace.as_deref(), skim.name.as_deref()),
        problem: format!(
            "it has {} of text, and {} are the limit",
            mebibytes(skim.n_bytes),
            mebibytes(memory::MAX_WIRE_OBJECT)
        ),
    }
}

/// Reads a line of a watch that is too long, with the resource version of its object.
///
/// # Errors
/// If it is no event of an object.
pub(super) fn read_too_long<K>(skim: &Skim) -> Result<(WireEvent<K>, Option<String>), Error> {
    let object = Err(too_long(skim));
    let event = match skim.type_.as_deref() {
        Some("ADDED" | "MODIFIED") => WireEvent::Applied(object),
        Some("DELETED") => WireEvent::Deleted(object),
        _ => {
            return Err(Error::Decode(format!(
                "an event is longer than {}",
                mebibytes(memory::MAX_WIRE_OBJECT)
            )));
        }
    };
    let version = skim.version.clone().filter(|version| !version.is_empty());
    Ok((event, version))
}

/// Reads a line of a watch, with the resource version of its object.
///
/// # Errors
/// Where it is no event.
pub(super) fn read<K: Resource + DeserializeOwned>(
    line: &[u8],
    max_unpacked: usize,
) -> Result<(WireEvent<K>, Option<String>), Error> {
    let decode = |error: serde_json::Error| Error::Decode(error.to_string());
    let event: WatchEvent<'_> = serde_json::from_slice(line).map_err(decode)?;
    let outline = outline(event.object);
    let version = outline
        .resource_version
        .filter(|version| !version.is_empty());
    let told = match &*event.type_ {
        "ADDED" | "MODIFIED" => WireEvent::Applied(object(event.object, max_unpacked)),
        "DELETED" => WireEvent::Deleted(object(event.object, max_unpacked)),
        "BOOKMARK" => {
            let bookmark: Bookmark = serde_json::from_str(event.object.get()).unwrap_or_default();
            let annotations = bookmark.metadata.annotations.unwrap_or_default();
            let ends_list = annotations
                .get(INITIAL_EVENTS_END)
                .is_some_and(|value| value == "true");
            WireEvent::Bookmark { ends_list }
        }
        "ERROR" => {
            let status: ErrorStatus = serde_json::from_str(event.object.get()).map_err(decode)?;
            WireEvent::Error(Error::Status {
                code: status.code.unwrap_or(500),
                message: status.message.unwrap_or_default(),
            })
        }
        other => {
            return Err(Error::Decode(format!(
                "a watch event of the type `{other}`"
            )));
        }
    };
    Ok((told, version))
}

/// As much of a `Status` as is told.
#[derive(Deserialize)]
struct ErrorStatus {
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    message: Option<String>,
}

fn outline(object: &RawValue) -> OutlineMetadata {
    let outline: Outline = serde_json::from_str(object.get()).unwrap_or_default();
    outline.metadata.unwrap_or_default()
}

/// Reads an object. One without a name is none: a type without a field that must be there reads any shape.
fn object<K: Resource + DeserializeOwned>(
    object: &RawValue,
    max_unpacked: usize,
) -> Result<K, Unreadable> {
    let n_bytes = match max_unpacked {
        usize::MAX => 0,
        _ => memory::unpacked_bytes(object.get()),
    };
    let read = if n_bytes <= max_unpacked {
        serde_json::from_str::<K>(object.get()).map_err(|error| error.to_string())
    } else {
        Err(format!(
            "it needs {} of memory, and {} are the limit",
            mebibytes(n_bytes),
            mebibytes(max_unpacked)
        ))
    };
    let problem = match read {
        Ok(read) if read.meta().name.as_deref().is_some_and(|it| !it.is_empty()) => {
            return Ok(read);
        }
        Ok(_) => "it has no name".to_owned(),
        Err(problem) => problem,
    };
    let OutlineMetadata {
        name, namespace, ..
    } = outline(object);
    Err(Unreadable {
        name: full_name(namespace.as_deref(), name.as_deref()),
        problem,
    })
}
