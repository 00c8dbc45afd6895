//! Reads whole CustomResourceDefinitions from the API server, since the controller stores only a few of their fields.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Request;
use kube::{Client, Resource};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::crds::CustomResourceDefinition;
use crate::cluster::error::{Error, within};
use crate::controller::process::memory;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the CRD `name`. `None` if it does not exist.
///
/// # Errors
/// Returns an error if the request fails, or if the CRD is invalid JSON or needs too much memory.
pub(crate) async fn read(client: &Client, name: &str) -> Result<Option<Value>, Error> {
    let Some(text) = read_text(client, name).await? else {
        return Ok(None);
    };
    let n_bytes = memory::unpacked_bytes(&text);
    if n_bytes > memory::MAX_TYPED_OBJECT {
        return Err(Error::Decode(format!(
            "it needs {} of memory, but the limit is {}",
            memory::mebibytes(n_bytes),
            memory::mebibytes(memory::MAX_TYPED_OBJECT)
        )));
    }
    let value = serde_json::from_str(&text).map_err(|error| Error::Decode(error.to_string()))?;
    Ok(Some(value))
}

/// Reads the JSON of the CRD `name`. `None` if it does not exist.
pub(crate) async fn read_text(client: &Client, name: &str) -> Result<Option<Box<str>>, Error> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        items: Vec<Box<RawValue>>,
    }
    // The CRD is listed by name instead of read directly, so that the controller needs only the permission to list
    // CRDs.
    let params = kube::api::ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(CustomResourceDefinition::url_path(&(), None)).list(&params);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let list = within(TIMEOUT, client.request::<List>(request)).await?;
    let item = list.items.into_iter().next_back();
    Ok(item.map(Box::<str>::from))
}

/// Returns true if `definition` has the same uid and generation as `metadata`.
pub(crate) fn is_of(definition: &Value, metadata: &ObjectMeta) -> bool {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let generation = definition.pointer("/metadata/generation");
    text("/metadata/uid") == metadata.uid.as_deref()
        && generation.and_then(Value::as_i64) == metadata.generation
}
