//! Received objects as arbitrary JSON. `kube_runtime::watcher` returns this type. Afterwards each object is parsed as
//! its kind, so an object that cannot be parsed affects only itself.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::skim::Skim;
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::subjects::packed::full_name;

/// An object that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The name of the object, or `namespace/name`. Empty if the name cannot be parsed.
    pub(crate) name: String,
    pub(crate) problem: String,
}

/// The JSON of an object of any kind, with its name, namespace and resource version if these can be parsed.
#[derive(Clone, Debug)]
pub(super) struct RawObject {
    metadata: ObjectMeta,
    /// The length of the original JSON in bytes. `Some` if it was too long and was replaced by [`too_long`].
    too_long: Option<usize>,
    text: Box<RawValue>,
}

#[derive(Default, Deserialize)]
struct Outline {
    #[serde(default)]
    metadata: Option<OutlineMetadata>,
    #[serde(default, rename = "vap-status.dev/too-long")]
    too_long: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutlineMetadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

/// Returns the resource version of an object of any kind. `None` if it has none.
pub(super) fn resource_version(object: &RawValue) -> Option<String> {
    let version = outline(object).metadata?.resource_version;
    version.filter(|version| !version.is_empty())
}

fn outline(object: &RawValue) -> Outline {
    serde_json::from_str(object.get()).unwrap_or_default()
}

impl RawObject {
    pub(super) fn new(text: Box<RawValue>) -> Self {
        let Outline { metadata, too_long } = outline(&text);
        let metadata = metadata.unwrap_or_default();
        Self {
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                resource_version: metadata
                    .resource_version
                    .filter(|version| !version.is_empty()),
                ..ObjectMeta::default()
            },
            too_long,
            text,
        }
    }

    /// Parses the object.
    ///
    /// # Errors
    /// Returns an error if the object needs more than `max_unpacked` bytes of memory or is invalid. An object without a
    /// name is also invalid, since a type with only optional fields would accept any JSON object.
    pub(super) fn parse<K: Resource + DeserializeOwned>(
        &self,
        max_unpacked: usize,
    ) -> Result<K, Unreadable> {
        let problem = match self.parse_text::<K>(max_unpacked) {
            Ok(object)
                if object
                    .meta()
                    .name
                    .as_deref()
                    .is_some_and(|it| !it.is_empty()) =>
            {
                return Ok(object);
            }
            Ok(_) => "it has no name".to_owned(),
            Err(problem) => problem,
        };
        let ObjectMeta {
            name, namespace, ..
        } = &self.metadata;
        Err(Unreadable {
            name: full_name(namespace.as_deref(), name.as_deref()),
            problem,
        })
    }

    fn parse_text<K: DeserializeOwned>(&self, max_unpacked: usize) -> Result<K, String> {
        if let Some(n_bytes) = self.too_long {
            return Err(format!(
                "its JSON is {} long, but the limit is {}",
                mebibytes(n_bytes),
                mebibytes(memory::MAX_WIRE_OBJECT)
            ));
        }
        let n_bytes = match max_unpacked {
            usize::MAX => 0,
            _ => memory::unpacked_bytes(self.text.get()),
        };
        if n_bytes > max_unpacked {
            return Err(format!(
                "it needs {} of memory, but the limit is {}",
                mebibytes(n_bytes),
                mebibytes(max_unpacked)
            ));
        }
        serde_json::from_str(self.text.get()).map_err(|error| error.to_string())
    }
}

/// Returns the short JSON that replaces an object whose JSON is too long.
pub(super) fn too_long(skim: &Skim) -> String {
    let metadata = json!({
        "name": skim.name,
        "namespace": skim.namespace,
        "resourceVersion": skim.version,
    });
    json!({"metadata": metadata, "vap-status.dev/too-long": skim.n_bytes}).to_string()
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::new)
    }
}

/// The group, version and plural are empty, since requests use the URL path of the resource.
impl Resource for RawObject {
    type DynamicType = String;
    type Scope = DynamicResourceScope;

    fn kind(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn version(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn plural(_: &String) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn url_path(path: &String, _: Option<&str>) -> String {
        path.clone()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
