//! Reads the schemas and resources of a running API server.

use anyhow::{Context as _, Result};
use http::Request;
use kube::Client;
use serde_json::Value;
use vap_status_controller::schema::GroupVersion;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::SchemaSet;
use vap_status_controller::schema::rest_mapper::RestMapper;

/// Reads all OpenAPI v3 documents of the API server.
///
/// # Errors
/// Returns an error if the API server does not respond or a document cannot be read.
pub async fn schemas(client: &Client) -> Result<(SchemaSet, RestMapper)> {
    let index: Value = client
        .request(Request::get("/openapi/v3").body(Vec::new())?)
        .await?;
    let paths = index
        .get("paths")
        .and_then(Value::as_object)
        .context("no paths in the index")?;
    let mut offline = Offline::default();
    for (path, entry) in paths {
        let Some(group_version) = GroupVersion::from_openapi_path(path) else {
            continue;
        };
        let url = entry
            .get("serverRelativeURL")
            .and_then(Value::as_str)
            .context("no URL")?;
        let document = client
            .request_text(Request::get(url).body(Vec::new())?)
            .await?;
        offline
            .add_document(Some(&group_version), document.as_bytes())
            .with_context(|| format!("the document of {path}"))?;
    }
    Ok(offline.finish())
}
